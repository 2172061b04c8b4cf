//! Verbs of profiles: run an experiment from its servers to its tables, measure again what is open.

use std::path::PathBuf;

use super::{DisplayArgs, listen};
use crate::error::Result;
use crate::plan::experiment::{Overrides, program};
use crate::plan::units::parse_percent;
use crate::report::{Metric, Question};
use crate::run::recheck::{self, Recheck};
use crate::run::{Invocation, profile};

/// A profile that is whole.
const PROFILE: &str = r#"
  name = "ab"
  tables = { count = 4, rows = "100k" }

  [[server]]
  label = "commit=1"
  sandbox = { options = { innodb_flush_log_at_trx_commit = 1 } }

  [[server]]
  label = "commit=2"
  sandbox = { options = { innodb_flush_log_at_trx_commit = 2 } }

  [[run]]
  workload = ["update-index", "point-select"]
  clients = [8, 64]
  time = "10s"
  repeat = 6
"#;

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = format!("\
Started again, it skips what is measured already (in --out) and goes on; with everything measured it
only reports. docs/reference/profile-keys.md has all keys. Two settings, measured in turn:
{PROFILE}"))]
pub(crate) struct RunArgs {
    /// The profile
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    #[command(flatten)]
    pub overrides: Overrides,

    /// Print the whole plan with an estimate of time and disk, and connect nowhere
    #[arg(long)]
    pub list: bool,

    /// Seed of the keys, below 2^53 [default: random, recorded]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..1 << 53))]
    pub seed: Option<u64>,

    /// What this host can generate, as loadgen calibrate keeps it [default: where it keeps it]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,

    #[command(flatten)]
    pub display: DisplayArgs,
}

pub(super) fn run(args: RunArgs) -> Result<()> {
    let RunArgs { file, overrides, list, seed, calibration, display } = args;
    let (progress, out) = (display.progress(), overrides.out.clone());
    let invocation = Invocation { progress, stop: &listen()?, out, calibration };
    profile::run(&file, overrides, seed, list, invocation)
}

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
Cells that `compare` leaves open (too few repeats, or neither a difference nor the lack of one shown),
cells whose runs lie too far apart, and cells whose runs were disturbed get more repeats, interleaved
over the labels: six at least, then twice as many as there are, until they are decided or have
--max-repeats. Each look on the way there counts: p is multiplied by their number, here and in a later
`compare` (docs/reference/compare.md).")]
pub(crate) struct RecheckArgs {
    /// Summaries of `loadgen run`, or directories of them; the first directory gets the new ones
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// The profile that they are of
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,

    /// As for `loadgen run`
    #[arg(long = "program", value_name = "NAME=PATH", value_parser = program)]
    pub programs: Vec<(String, PathBuf)>,

    /// The label that others are compared with [default: the profile's baseline, else its first]
    #[arg(long = "baseline", alias = "base", value_name = "LABEL")]
    pub base: Option<String>,

    /// The label that is compared [default: all others]
    #[arg(long, value_name = "LABEL")]
    pub new: Option<String>,

    /// What is compared, as for report
    #[arg(long, value_name = "METRIC", default_value_t)]
    pub metric: Metric,

    /// A smaller difference does not matter
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = parse_percent)]
    pub floor: f64,

    /// How wide the interval of a median, or the range of less than six runs, may be
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = parse_percent)]
    pub spread_max: f64,

    /// Repeats of a cell at most
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub max_repeats: u32,

    /// Print what would be run again and why, and connect nowhere
    #[arg(long)]
    pub list: bool,

    /// As for `loadgen run`
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,

    #[command(flatten)]
    pub display: DisplayArgs,
}

pub(super) fn recheck(args: RecheckArgs) -> Result<()> {
    let (progress, calibration) = (args.display.progress(), args.calibration);
    // The first directory of the paths is looked for later.
    let (stop, out) = (&listen()?, PathBuf::new());
    let invocation = Invocation { progress, stop, out, calibration };
    let RecheckArgs {
        paths, profile, programs, base, new, metric, floor, spread_max, list, ..
    } = args;
    let question = Question { metric, floor, repeats_max: args.max_repeats, ..Question::default() };
    let recheck = Recheck { paths, profile, programs, base, new, question, spread_max, list };
    recheck::run(&recheck, invocation)
}

#[cfg(test)]
mod tests {
    use super::PROFILE;
    use crate::plan::profile::Profile;

    #[test]
    fn the_profile_of_the_help_is_one() {
        Profile::parse(PROFILE, "the help").unwrap_or_else(|e| panic!("{}", e.render()));
    }
}
