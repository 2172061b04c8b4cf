//! Verbs of profiles: run an experiment from its servers to its tables, recheck undecided cells.

use std::path::PathBuf;

use super::scripts::ScriptReader;
use super::shared::{ClientArgs, DisplayArgs, listen, summary_paths};
use crate::error::{Error, Result, line};
use crate::mysql::{ConnectionArgs, Env};
use crate::plan::experiment::{Overrides, program};
use crate::plan::profile::shipped::{SHIPPED, Shipped};
use crate::plan::units::parse_percent;
use crate::plan::value;
use crate::report::{Metric, Question};
use crate::run::recheck::{self, Recheck};
use crate::run::{print_data, profile};
use crate::stop::{Stop, unless_stopped};

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
only reports. If flags of the connection name a server, it replaces all servers of the profile; its
settings do not change. docs/reference/profile-keys.md has all keys. Two settings, measured in turn:
{PROFILE}"))]
pub(crate) struct RunArgs {
    /// The file of a profile, or the name of one that is in the program (loadgen profiles)
    #[arg(value_name = "PROFILE")]
    pub profile: PathBuf,

    #[command(flatten)]
    pub overrides: Overrides,

    /// Print the whole plan with an estimate of time and disk, and connect nowhere
    #[arg(long)]
    pub list: bool,

    /// Seed of the keys, below 2^53 [default: random, recorded]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..1 << 53))]
    pub seed: Option<u64>,

    #[command(flatten)]
    pub clients: ClientArgs,

    #[command(flatten)]
    pub display: DisplayArgs,

    /// The row of the server that the connection's flags name [default: the profile's name]
    #[arg(long, value_name = "NAME", value_parser = value::label)]
    pub label: Option<String>,

    #[command(flatten)]
    pub connection: Option<ConnectionArgs>,
}

pub(super) fn run(args: RunArgs) -> Result<()> {
    let RunArgs { profile, overrides, list, seed, clients, display, label, connection } = args;
    let stop = &listen()?;
    let connection = with_password(connection, stop)?;
    let invocation = clients.invocation(&display, stop, overrides.out.clone())?;
    let source =
        profile::Source { profile, connection, label, scripts: &ScriptReader { database: None } };
    profile::run(source, overrides, seed, list, invocation)
}

/// Reads the password where a descriptor has it: a profile's server is looked for more than once.
fn with_password(
    connection: Option<ConnectionArgs>,
    stop: &Stop,
) -> Result<Option<ConnectionArgs>> {
    let Some(args) = connection else { return Ok(None) };
    // Else the tables would go to whatever listens at the default address.
    if !args.name_server(&Env::real())? {
        return Err(Error::usage("--no-defaults and --connect-timeout alone name no server")
            .hint("--host, --socket or --url names one in place of the profile's"));
    }
    unless_stopped(stop, move || args.with_password(&Env::real())).map(Some)
}

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
`loadgen run NAME` runs one of them, here or on a server that --host and the like name. If a file
has the name of a profile, loadgen takes the file: to change a profile, print it into a file.")]
pub(crate) struct ProfilesArgs {
    /// Show what this one repeats, what it needs, and how it is run
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// Print it as a file
    #[arg(long, requires = "name")]
    pub print: bool,
}

pub(super) fn profiles(ProfilesArgs { name, print }: ProfilesArgs) -> Result<()> {
    let Some(name) = name else {
        let width = SHIPPED.iter().map(|shipped| shipped.name.len()).max().unwrap_or(0);
        let row = |shipped: &Shipped| {
            let about = shipped.profile()?.about;
            Ok::<_, Error>(format!("{:width$}  {about}\n", shipped.name))
        };
        return print_data(&SHIPPED.iter().map(row).collect::<Result<String>>()?);
    };
    let shipped = Shipped::find(&name).ok_or_else(|| {
        Error::usage(format!("there is no profile '{}' in the program", line(&name)))
            .hint(format!("known profiles: {}; loadgen run takes files, too", Shipped::names()))
    })?;
    if print { print_data(shipped.text) } else { print_data(&shipped.head()) }
}

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
Cells that `compare` leaves open (too few repeats, or neither a difference nor the lack of one shown),
cells whose runs lie too far apart, and cells whose runs were disturbed get more repeats, interleaved
over the labels: six at least, then twice as many as there are, until they are decided or have
--max-repeats. Each comparison meanwhile counts: p is multiplied by the number of comparisons, here
and in a later `compare` (docs/reference/compare.md).")]
pub(crate) struct RecheckArgs {
    /// Summaries of `loadgen run`, or directories of them; the first directory gets the new ones
    /// [default: results, where it is there]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// The profile that they are of, by its file or its name
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,

    /// As for `loadgen run`
    #[arg(long = "program", value_name = "NAME=PATH", value_parser = program)]
    pub programs: Vec<(String, PathBuf)>,

    /// The label that others are compared with [default: the profile's baseline, else its first]
    #[arg(long = "baseline", alias = "base", value_name = "LABEL")]
    pub base: Option<String>,

    /// The label that is compared; only it and the baseline run again [default: all others]
    #[arg(long, value_name = "LABEL")]
    pub new: Option<String>,

    /// Metric to compare, as for report
    #[arg(long, value_name = "METRIC", default_value_t)]
    pub metric: Metric,

    /// Ignore smaller differences
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = parse_percent)]
    pub floor: f64,

    /// Largest width of a median's interval, or of the range of less than six runs
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = parse_percent)]
    pub spread_max: f64,

    /// Repeats of a cell at most
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub max_repeats: u32,

    /// Print what would be run again and why, and connect nowhere
    #[arg(long)]
    pub list: bool,

    #[command(flatten)]
    pub clients: ClientArgs,

    #[command(flatten)]
    pub display: DisplayArgs,

    /// The row of the server that the connection's flags name [default: the only label of the summaries]
    #[arg(long, value_name = "NAME", value_parser = value::label)]
    pub label: Option<String>,

    #[command(flatten)]
    pub connection: Option<ConnectionArgs>,
}

pub(super) fn recheck(args: RecheckArgs) -> Result<()> {
    let stop = &listen()?;
    // The first directory of the paths is chosen later.
    let invocation = args.clients.invocation(&args.display, stop, PathBuf::new())?;
    let RecheckArgs { profile, label, metric, floor, .. } = args;
    let (paths, connection) = (summary_paths(args.paths)?, with_password(args.connection, stop)?);
    let source =
        profile::Source { profile, connection, label, scripts: &ScriptReader { database: None } };
    let recheck = Recheck {
        paths,
        source,
        programs: args.programs,
        base: args.base,
        new: args.new,
        question: Question { metric, floor, repeats_max: args.max_repeats, ..Question::default() },
        spread_max: args.spread_max,
        list: args.list,
    };
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
