//! `loadgen run FILE`: an experiment from its servers to its tables.
//!
//! ```text
//! FILE ─▶ Profile ─▶ Experiment ─▶ legs: server taken, tables prepared, one sweep ─▶ report
//! ```

mod beside;
mod drive;
mod existing;
mod expect;
mod host;
mod order;
pub(crate) mod recheck;
mod resume;
mod role;
mod stock;
mod tables;

use std::collections::HashMap;
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub(crate) use self::role::Role;
use crate::cli::DisplayArgs;
use crate::cmd::calibrate::kept;
use crate::cmd::sweep::random;
use crate::cmd::{conclude, gate, print_data};
use crate::error::{Error, Result, worst};
use crate::observe::process::raise_descriptor_limit;
use crate::plan::experiment::scale::Scale;
use crate::plan::experiment::{Cell, Experiment, Only, Overrides, Part};
use crate::plan::profile::Profile;
use crate::plan::{defaults, names};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::summary::{Outcome, Store, Summary};

/// Bytes of a profile at most: a dump that is given by mistake is not read to its end.
const PROFILE_MAX: u64 = 4 << 20;

/// Run an experiment from its profile.
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

    /// What this host can generate, as loadgen calibrate keeps it [default: where it keeps it]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub display: DisplayArgs,
}

pub(crate) fn program(text: &str) -> std::result::Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !path.is_empty() => Ok((names::label(name)?, PathBuf::from(path))),
        _ => Err(format!("'{text}' is not NAME=PATH")),
    }
}

/// Runs the verb.
pub(crate) fn run(args: &RunArgs, stop: &Stop) -> Result<()> {
    let profile = read(&args.file)?;
    // Before hours of measuring, not after.
    tables::check(&profile)?;
    existing::check(&profile)?;
    let mut overrides = Overrides {
        programs: args.programs.clone(),
        scale: args.scale,
        only: args.only.clone(),
        // 53 bits, so that every reader of JSON sees the same number.
        seed: args.seed.map_or_else(|| random().map(|seed| seed >> 11), Ok)?,
        out: args.out.clone(),
    };
    let mut experiment = Experiment::new(&profile, &overrides)?;
    let mut progress = Progress::new(args.display.quiet, args.display.progress);
    // Not there yet before the first step.
    let earlier = if args.out.is_dir() {
        resume::find(std::slice::from_ref(&args.out), &experiment, &mut progress)?
    } else {
        resume::Earlier::default()
    };
    if let (Some((_, seed)), None) = (&earlier.run, args.seed) {
        // One seed for all labels, also for those that are measured later.
        overrides.seed = *seed;
        experiment = Experiment::new(&profile, &overrides)?;
    }
    let wanted = |cell: &Cell| !earlier.has(&cell.key);
    if args.list {
        return print_data(&experiment.list(wanted));
    }
    let legs = experiment.legs(wanted);
    say_what_is_there(&experiment, &earlier, &mut progress);
    let (mut measured, mut errors) = (Vec::new(), Vec::new());
    if !legs.is_empty() {
        let store = Store::open(&args.out)?;
        raise_descriptor_limit()?;
        warn_of_debug_build(&mut progress);
        let calibration = kept::find(args.calibration.as_deref(), &mut progress);
        let mut drive = drive::Drive {
            experiment: &experiment,
            stop,
            store: &store,
            progress: &mut progress,
            run_id: match &earlier.run {
                Some((id, _)) => id.clone(),
                None => format!("{:016x}", random()?),
            },
            offset: earlier.last_step,
            places: (0, 0),
            calibration,
            servers: drive::servers(earlier.done.values()),
            summaries: Vec::new(),
        };
        errors = drive.run(&legs);
        measured = drive.summaries;
        progress.clear();
    }
    let mut fell = earlier.fell;
    fell.extend(measured.iter().filter(|s| s.outcome != Outcome::Completed).cloned());
    let all: Vec<Summary> = together(earlier.done, measured).into_values().collect();
    let printed = tables::print(&experiment, &all);
    let judged = judge(&experiment, &all.iter().chain(&fell).collect::<Vec<_>>(), &mut progress);
    // Those of the legs are told already.
    conclude([worst(errors).map_or(Ok(()), Err), printed, judged], &mut progress)
}

/// The profile in a file.
fn read(path: &Path) -> Result<Profile> {
    let origin = path.display().to_string();
    let refused =
        |why: &dyn Display| Error::usage(format!("{origin}: {why}")).hint("name a profile");
    let mut text = String::new();
    let file = File::open(path).map_err(|e| refused(&e))?;
    file.take(PROFILE_MAX + 1).read_to_string(&mut text).map_err(|e| refused(&e))?;
    if text.len() as u64 > PROFILE_MAX {
        return Err(refused(&format!("it is larger than {} MiB", PROFILE_MAX >> 20)));
    }
    Profile::parse(&text, &origin)
}

fn warn_of_debug_build(progress: &mut Progress) {
    if cfg!(debug_assertions) {
        progress.warn("this is a debug build; its numbers are not for comparing");
    }
}

/// Holds the tables of all runs against their gates: what did not complete hides no errors.
fn judge(experiment: &Experiment, all: &[&Summary], progress: &mut Progress) -> Result<()> {
    let of = |part: &Part| all.iter().copied().filter(|s| s.workload.name == part.title).collect();
    let parts = experiment.parts.iter();
    gate::check(parts.map(|part| (of(part), part.gates.as_slice())), progress)
}

fn say_what_is_there(experiment: &Experiment, earlier: &resume::Earlier, progress: &mut Progress) {
    let of = experiment.cells.len();
    let done = experiment.cells.iter().filter(|cell| earlier.has(&cell.key)).count();
    if done == of {
        progress.note(&format!("all {of} steps are measured already"));
    } else if done > 0 {
        progress.note(&format!("{done} of {of} steps are measured already and skipped"));
    }
}

/// What is there of each cell: its newest summary.
fn together(
    mut done: HashMap<String, Summary>,
    measured: Vec<Summary>,
) -> HashMap<String, Summary> {
    for summary in measured {
        let key = summary.experiment.as_ref().map(|experiment| experiment.key.clone());
        if let (Some(key), Outcome::Completed) = (key, summary.outcome) {
            done.insert(key, summary);
        }
    }
    done
}
