//! `loadgen run FILE`: an experiment from its servers to its tables.

use std::path::PathBuf;

use super::{DisplayArgs, listen};
use crate::error::Result;
use crate::plan::experiment::{Only, Overrides};
use crate::plan::value::Scale;
use crate::plan::{defaults, value};
use crate::run::{Invocation, profile};

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
Started again, it skips what is measured already (in --out) and goes on; with everything measured it
only reports. docs/profiles.md describes the file.

Examples:
  loadgen run profiles/smoke.toml
  loadgen run profiles/io-bound-point-select.toml --list
  loadgen run profiles/version-cost.toml --scale 0.001 \\
      --program 5.6=/opt/mysql-5.6/bin/mysqld --program 11.8=/usr/sbin/mariadbd")]
pub(crate) struct RunArgs {
    /// The profile
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Program of the sandboxes that name none, and its part of their labels; may be given
    /// several times [default: mariadbd or mysqld from PATH]
    #[arg(long = "program", value_name = "NAME=PATH", value_parser = program)]
    pub programs: Vec<(String, PathBuf)>,

    /// Shrink rows, times and sizes: 0.001, for one
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    pub scale: Scale,

    /// Measure a part: label=, workload=, clients= or repeat= with a list; may be given several
    /// times, then all must hold
    #[arg(long, value_name = "KEY=LIST")]
    pub only: Vec<Only>,

    /// Print the whole plan with an estimate of time and disk, and connect nowhere
    #[arg(long)]
    pub list: bool,

    /// Seed of the keys, below 2^53 [default: random, recorded]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..1 << 53))]
    pub seed: Option<u64>,

    /// Directory of the summaries
    #[arg(long, value_name = "DIR", default_value = defaults::OUT)]
    pub out: PathBuf,

    /// Measure again what an earlier version of loadgen measured into --out
    #[arg(long)]
    pub force: bool,

    /// What this host can generate, as loadgen calibrate keeps it [default: where it keeps it]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,

    #[command(flatten)]
    pub display: DisplayArgs,
}

pub(super) fn program(text: &str) -> std::result::Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !path.is_empty() => Ok((value::label(name)?, PathBuf::from(path))),
        _ => Err(format!("'{text}' is not NAME=PATH")),
    }
}

pub(super) fn run(args: RunArgs) -> Result<()> {
    let (progress, out, calibration) = (args.display.progress(), args.out, args.calibration);
    let overrides = Overrides {
        programs: args.programs,
        scale: args.scale,
        only: args.only,
        seed: 0,
        out: out.clone(),
        force: args.force,
    };
    let invocation = Invocation { progress, stop: &listen()?, out, calibration };
    profile::run(&args.file, overrides, args.seed, args.list, invocation)
}
