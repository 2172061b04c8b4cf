//! The flags of a workload.

use std::path::PathBuf;
use std::time::Duration;

use crate::mysql::options::ConnectionArgs;
use crate::plan::condition::Condition;
use crate::plan::limits::PHASE_MAX;
use crate::plan::names::{charset, label};
use crate::plan::policy::{ErrorsMax, OnError};
use crate::plan::units::{parse_count, parse_duration, parse_percent};
use crate::plan::{self, Arrival, Order, SpreadChoice, StatementMode, defaults};
use crate::run::ServerOptions;
use crate::workload::distribution::Distribution;
use crate::workload::table::{ROWS_MAX, TABLES_MAX};

/// Clients are looked at every 20 ms.
const OP_TIMEOUT_MIN: Duration = Duration::from_millis(50);

/// Runs a workload at each number of clients and prints the table.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct WorkloadArgs {
    /// Tables: sbtest1 … sbtestN, for one [default: those that are there]
    #[arg(long, value_name = "N", value_parser = tables)]
    pub tables: Option<u32>,

    /// Rows of each table to use; auto takes what the tables say
    #[arg(long, value_name = "N|auto", default_value = "auto", value_parser = rows)]
    pub rows: Rows,

    /// Concurrent clients, a step each: 64 or 1,2,4 or 8..256 (doubling) or 8..64+8
    #[arg(long, value_name = "LIST", default_value = defaults::CLIENTS, value_parser = plan::clients::parse)]
    pub clients: std::vec::Vec<u32>,

    /// How clients meet tables
    #[arg(long, value_enum, default_value = "auto", value_name = "HOW")]
    pub spread: SpreadChoice,

    /// Warm-up before each window, not counted [default: 10s; 0 with --ops]
    #[arg(long, value_name = "DURATION", value_parser = phase)]
    pub warmup: Option<Duration>,

    /// Length of each measured window [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = phase, conflicts_with = "ops")]
    pub time: Option<Duration>,

    /// Ops of each step over all clients, instead of a time
    #[arg(long, value_name = "N", value_parser = positive)]
    pub ops: Option<u64>,

    /// Run the whole sweep so many times; cells show the median
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    /// Order of the client counts
    #[arg(long, value_enum, default_value = "ascending", value_name = "ORDER")]
    pub order: Order,

    /// Which rows are touched: uniform, zipf:S (scattered), zipf-adjacent:S, pareto:H or special
    #[arg(long, value_name = "NAME", default_value = defaults::DISTRIBUTION)]
    pub distribution: Distribution,

    /// Server-side prepared statements or SQL text
    #[arg(long, value_enum, default_value = "prepared", value_name = "MODE")]
    pub statements: StatementMode,

    /// Seed of the keys, below 2^53 [default: random, recorded]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..1 << 53))]
    pub seed: Option<u64>,

    /// Operating system threads of the client [default: the smaller of cores and clients]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub engine_threads: Option<u32>,

    /// Character set of the sessions (SET NAMES) and of tables that a sandbox gets
    #[arg(long, value_name = "NAME", value_parser = charset)]
    pub charset: Option<String>,

    /// The row of the table [default: the server's version]
    #[arg(long, value_name = "NAME", value_parser = label)]
    pub label: Option<String>,

    /// Something to keep in the summaries; may be given several times
    #[arg(long = "note", value_name = "KEY=VALUE", value_parser = key_value)]
    pub notes: Vec<(String, String)>,

    /// Directory of the summaries
    #[arg(long, value_name = "DIR", default_value = defaults::OUT)]
    pub out: PathBuf,

    /// Print the plan and connect nowhere
    #[arg(long)]
    pub list: bool,

    /// Length of an interval of the timeline, 100ms or more
    #[arg(long, value_name = "DURATION", default_value = defaults::INTERVAL, value_parser = interval)]
    pub interval: Duration,

    /// Write the histogram of each interval to this new file, as an HdrHistogram interval log; in one
    /// of several steps the lines have tags: step2.service, step2.response
    #[arg(long, value_name = "FILE")]
    pub interval_log: Option<PathBuf>,

    /// Open loop: ops a second over all clients, a step each: 10k or 1k,2k or 1k..16k (doubling)
    #[arg(long, value_name = "LIST", value_parser = plan::rates::parse)]
    pub rate: Option<std::vec::Vec<f64>>,

    /// With --rate or --slo: how arrivals are spaced [default: poisson]
    #[arg(long, value_enum, value_name = "HOW")]
    pub arrival: Option<Arrival>,

    /// Find the highest rate at which this holds, such as p99<2ms (response time): an open loop,
    /// doubling from --rate [default: 1k], then bisecting; may be given several times
    #[arg(long, value_name = "CONDITION", value_parser = plan::condition::parse_level, conflicts_with_all = ["gates", "ops"])]
    pub slo: Vec<Condition>,

    /// How near a rate that holds and one that fails must be
    #[arg(long, value_name = "PERCENT", default_value = defaults::SLO_RESOLUTION, value_parser = resolution, requires = "slo")]
    pub slo_resolution: f64,

    /// What must hold at the end, else the exit status is 99 (98 where it is not known), such as
    /// p99<5ms, qps>=10k, errors==0, errors<0.1%, mean<1ms; may be given several times
    #[arg(long = "gate", value_name = "CONDITION")]
    pub gates: Vec<Condition>,

    /// What this host can generate, as loadgen calibrate keeps it [default: where it keeps it]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// What an error does to its client and to the step; lost connections and the codes of
    /// each class are in docs/faults.md
    #[arg(long, value_enum, default_value = "abort", value_name = "POLICY")]
    pub on_error: OnError,

    /// End a step with more errors than this: a count, or a share of the ops such as 1%
    #[arg(long, value_name = "N|P%")]
    pub max_errors: Option<ErrorsMax>,

    /// Give up an op, and its connection, that has no answer after so long [default: wait]
    #[arg(long, value_name = "DURATION", value_parser = op_timeout)]
    pub op_timeout: Option<Duration>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub display: super::DisplayArgs,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub before: super::before::BeforeArgs,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub sandbox: SandboxArgs,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would show it as help")]
    pub connection: ConnectionArgs,

    /// Command that goes before `grep -s -H . FILE…` to read /proc of the server's host, such as
    /// 'ssh db1' [default: read here, where the server runs on this host]
    #[arg(long, value_name = "COMMAND", help_heading = "Connection")]
    pub probe: Option<String>,
}

/// A private throw-away server instead of one that is there.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Sandbox")]
pub(super) struct SandboxArgs {
    /// Start a private server (this program, else mariadbd or mysqld from PATH), prepare the
    /// tables, run, and take everything away again
    #[arg(
        long, value_name = "MYSQLD", num_args = 0..=1, require_equals = true,
        default_missing_value = "", value_parser = program,
        conflicts_with_all = ["host", "port", "user", "password", "password_fd", "socket",
            "protocol", "database", "ssl_mode", "ssl_ca", "ssl_cert", "ssl_key",
            "defaults_file", "defaults_extra_file", "no_defaults", "url"]
    )]
    pub sandbox: Option<Program>,

    /// An option of the sandbox's server; may be given several times
    #[arg(long = "sandbox-option", value_name = "KEY[=VALUE]", requires = "sandbox", value_parser = option)]
    pub options: Vec<(String, Option<String>)>,
}

impl SandboxArgs {
    /// A private server's program, None in it for that of PATH, and its options.
    pub(super) fn server(self) -> Option<(Option<PathBuf>, ServerOptions)> {
        self.sandbox.map(|program| (program.0, self.options))
    }
}

/// The program of a sandbox: None is the first one of mariadbd and mysqld in PATH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program(pub Option<PathBuf>);

#[expect(clippy::unnecessary_wraps, reason = "clap wants a parser that can fail")]
fn program(text: &str) -> Result<Program, String> {
    Ok(Program((!text.is_empty()).then(|| PathBuf::from(text))))
}

/// `--rows`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// What the tables say.
    Auto,
    /// So many.
    Number(u64),
}

/// A count of tables.
pub(crate) fn tables(text: &str) -> Result<u32, String> {
    match parse_count(text)? {
        0 => Err("0 tables hold nothing".to_owned()),
        n => u32::try_from(n)
            .ok()
            .filter(|n| *n <= TABLES_MAX)
            .ok_or_else(|| format!("{n} tables are more than {TABLES_MAX}")),
    }
}

/// A count of rows.
pub(crate) fn row_count(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        0 => Err("0 rows hold nothing".to_owned()),
        n if n > ROWS_MAX => Err(format!("{n} rows are more than {ROWS_MAX}")),
        n => Ok(n),
    }
}

fn rows(text: &str) -> Result<Rows, String> {
    if text == "auto" { Ok(Rows::Auto) } else { row_count(text).map(Rows::Number) }
}

fn positive(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        0 => Err("0 ops measure nothing".to_owned()),
        n => Ok(n),
    }
}

/// Warm-up and window: a limit on nonsense, which also keeps sums of them in range.
fn phase(text: &str) -> Result<Duration, String> {
    let phase = parse_duration(text)?;
    if phase > PHASE_MAX {
        return Err(format!("'{text}' is longer than a year"));
    }
    Ok(phase)
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = phase(text)?;
    if interval < Duration::from_millis(100) {
        return Err("an interval has at least 100ms".to_owned());
    }
    Ok(interval)
}

fn op_timeout(text: &str) -> Result<Duration, String> {
    let limit = phase(text)?;
    if limit < OP_TIMEOUT_MIN {
        return Err(format!("an op has at least {}ms", OP_TIMEOUT_MIN.as_millis()));
    }
    Ok(limit)
}

/// Finer than chance between two windows makes no sense.
fn resolution(text: &str) -> Result<f64, String> {
    let share = parse_percent(text)?;
    if share < 0.01 {
        return Err(format!("'{text}' is finer than 1%"));
    }
    Ok(share)
}

pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("'{text}' is not KEY=VALUE")),
    }
}

fn option(text: &str) -> Result<(String, Option<String>), String> {
    let text = text.trim_start_matches("--");
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (text, None),
    };
    if key.is_empty() {
        Err("an option has a name".to_owned())
    } else {
        Ok((key.to_owned(), value))
    }
}
