//! A workload's verb, and the flags of everything that measures on one server.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::OsStringValueParser;

use super::{DisplayArgs, listen};
use crate::error::{Error, Result};
use crate::mysql::ConnectionArgs;
use crate::plan::knobs::Knobs;
use crate::run::measure::{self, Asked};
use crate::run::steps::Job;
use crate::run::{Invocation, Place, print_data, random};
use crate::workload::Workload;

#[derive(clap::Args, Debug, Clone)]
pub(crate) struct WorkloadArgs {
    #[command(flatten)]
    pub knobs: Knobs,

    /// What this host can generate, as loadgen calibrate keeps it [default: where it keeps it]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,

    #[command(flatten)]
    pub measure: MeasureArgs,
}

#[derive(clap::Args, Debug, Clone)]
pub(crate) struct MeasureArgs {
    /// Print the plan and connect nowhere
    #[arg(long)]
    pub list: bool,

    #[command(flatten)]
    pub display: DisplayArgs,

    /// Start a private server (this program, else mariadbd or mysqld from PATH), prepare the
    /// tables, run, and take everything away again
    #[arg(
        long, value_name = "MYSQLD", num_args = 0..=1, require_equals = true,
        default_missing_value = "", value_parser = OsStringValueParser::new(),
        conflicts_with_all = ["host", "port", "user", "password", "password_fd", "socket",
            "protocol", "database", "ssl_mode", "ssl_ca", "ssl_cert", "ssl_key",
            "defaults_file", "defaults_extra_file", "no_defaults", "url"],
        help_heading = "Sandbox"
    )]
    pub sandbox: Option<OsString>,

    /// An option of the sandbox's server; may be given several times
    #[arg(
        long, value_name = "KEY[=VALUE]", requires = "sandbox", value_parser = option,
        help_heading = "Sandbox"
    )]
    pub sandbox_option: Vec<(String, Option<String>)>,

    #[command(flatten)]
    pub connection: ConnectionArgs,

    /// Command that goes before `grep -s -H . FILE…` to read /proc of the server's host, such as
    /// 'ssh db1' [default: read here, where the server runs on this host]
    #[arg(long, value_name = "COMMAND", help_heading = "Connection")]
    pub probe: Option<String>,
}

fn option(text: &str) -> std::result::Result<(String, Option<String>), String> {
    let text = text.trim_start_matches("--");
    let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
    if key.is_empty() {
        return Err("an option has a name".to_owned());
    }
    Ok((key.to_owned(), value.map(str::to_owned)))
}

impl MeasureArgs {
    /// Measures what is asked, on this server, or lists it.
    pub(super) fn run(
        self,
        asked: &Asked<'_>,
        out: PathBuf,
        calibration: Option<PathBuf>,
        random_seed: bool,
    ) -> Result<()> {
        if self.list {
            return print_data(&measure::list(asked, &out, random_seed)?);
        }
        // An empty word stands for the program of PATH.
        let program = |word: OsString| (!word.is_empty()).then(|| PathBuf::from(word));
        let sandbox = self.sandbox.map(|word| (program(word), self.sandbox_option));
        let place = Place { connection: self.connection, sandbox, probe: self.probe };
        let (progress, stop) = (self.display.progress(), &listen()?);
        measure::run(asked, &place, Invocation { progress, stop, out, calibration })
    }
}

pub(super) fn run(workload: Workload, args: WorkloadArgs) -> Result<()> {
    let knobs = args.knobs.clone();
    if let Some(log) = knobs.interval_log.as_ref().filter(|log| log.exists()) {
        return Err(Error::usage(format!("--interval-log: {} is there already", log.display()))
            .hint("another name: nothing is written over"));
    }
    // 53 bits, so that every reader of JSON sees the same number.
    let plan = knobs.resolve(workload, random()? >> 11)?;
    let Knobs { gates, slo, slo_resolution, seed, .. } = args.knobs;
    let asked = Asked {
        job: Job::Sweep(&plan),
        label: plan.label.clone(),
        notes: plan.notes.clone(),
        repeats: plan.repeats,
        gates,
        slo,
        slo_resolution: slo_resolution.unwrap_or(0.05),
        yes: false,
    };
    args.measure.run(&asked, plan.out.clone(), args.calibration, seed.is_none())
}
