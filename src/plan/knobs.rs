//! The settings of a sweep, a load or a suite: flags of verbs, and keys of a profile's run.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::group::{Find, GroupKnobs, find_builtin, resolve, schemas};
use super::value::{
    CharsetName, Clients, ErrorsMax, InsertBytes, Length, Names, OpCount, OptionValue, Phase,
    Rates, Repeats, RowCount, RowsOrAuto, TableCount, Threads, Whole, command, named,
};
use super::{
    Ahi, Arrival, Before, OnError, Order, Plan, Policy, Rules, SpreadChoice, StatementMode, StopAt,
    Warm, check_steps, defaults,
};
use crate::error::{Error, Result};
use crate::terms::units::parse_percent;
use crate::terms::{Class, Gate, InsertWord, parse_level};
use crate::workload::{Distribution, Workload};

/// Default bytes of an extended INSERT: mysqldump's `net_buffer_length` according to its manual.
pub const INSERT_BYTES: u64 = 1_046_528;
/// The default of `--slo-resolution`, a share.
pub(crate) const SLO_RESOLUTION: f64 = 0.05;
const WINDOW: Duration = Duration::from_mins(1);
const WARMUP: Duration = Duration::from_secs(10);
/// First rate of a search, ops a second.
const SLO_START: f64 = 1000.0;

/// The given settings; the help has the defaults of the others.
#[derive(clap::Args, Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Knobs {
    /// The title of its table, needed where one workload is run twice
    #[arg(skip)]
    #[serde(deserialize_with = "named")]
    pub name: Option<String>,
    /// Labels that it is for [default: all]
    #[arg(skip)]
    pub servers: Option<Names>,
    /// A name or a list of names, built in or of this file: each is a table of its own
    #[arg(skip)]
    pub workload: Option<Names>,
    /// The workload's options: `{ range_size = 10, skip_trx = true }`
    #[arg(skip)]
    pub options: BTreeMap<String, OptionValue>,
    /// `true` is `warm = "pool"` in its older form
    #[arg(skip)]
    pub scan: bool,

    /// Tables, for example sbtest1 … sbtestN [default: those that are there]
    #[arg(long, value_name = "N")]
    pub tables: Option<TableCount>,

    /// Rows of each table to use; auto takes what the tables say
    #[arg(long, value_name = "N|auto", default_value = "auto")]
    pub rows: Option<RowsOrAuto>,

    /// Concurrent clients, a step each: 64 or 1,2,4 or 8..256 (doubling) or 8..64+8
    #[arg(long, value_name = "LIST", default_value = "1")]
    pub clients: Option<Clients>,

    /// Assignment of clients to tables
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    pub spread: Option<SpreadChoice>,

    /// Warm-up before each window, not counted [default: 10s; 0 with --ops]
    #[arg(long, value_name = "DURATION")]
    pub warmup: Option<Phase>,

    /// Length of each measured window [default: 60s]
    #[arg(long, value_name = "DURATION", conflicts_with = "ops")]
    pub time: Option<Length<1>>,

    /// Ops of each step, an equal part for each client, instead of a time
    #[arg(long, value_name = "N")]
    pub ops: Option<OpCount>,

    /// Run the whole sweep N times; cells show the median
    #[arg(long, value_name = "N", default_value = "1")]
    pub repeat: Option<Repeats>,

    /// Order of the client counts
    #[arg(long, value_enum, value_name = "ORDER", default_value = "ascending")]
    pub order: Option<Order>,

    /// Distribution of keys: uniform, zipf:S (scattered), zipf-adjacent:S, pareto:H, gaussian or special
    /// [default: uniform]
    #[arg(long, value_name = "NAME")]
    pub distribution: Option<Distribution>,

    /// Server-side prepared statements or SQL text [default: prepared]
    #[arg(long, value_enum, value_name = "MODE")]
    pub statements: Option<StatementMode>,

    /// Seed of the keys, below 2^53 [default: random, recorded]
    #[arg(long, value_name = "N")]
    #[serde(skip)]
    pub seed: Option<Whole<0, { (1 << 53) - 1 }>>,

    /// Operating system threads of the client [default: the smaller of cores and clients]
    #[arg(long, value_name = "N")]
    pub engine_threads: Option<Threads>,

    /// Character set of the sessions (SET NAMES) and of tables that a sandbox gets
    #[arg(long, value_name = "NAME")]
    pub charset: Option<CharsetName>,

    /// Length of an interval of the timeline, 100ms or more
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    #[serde(skip)]
    pub interval: Option<Length<100>>,

    /// Write the histogram of each interval to this new file, an HdrHistogram interval log
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub interval_log: Option<PathBuf>,

    /// Open loop: ops a second over all clients, a step each: 10k or 1k,2k or 1k..16k (doubling)
    #[arg(long, value_name = "LIST")]
    pub rate: Option<Rates>,

    /// With --rate or --slo: spacing of arrivals [default: poisson]
    #[arg(long, value_enum, value_name = "HOW")]
    pub arrival: Option<Arrival>,

    /// Pause of a client after each op of a closed loop, outside its latency [default: none]
    #[arg(long, value_name = "DURATION")]
    pub think: Option<Length<1>>,

    /// Close each connection after N ops of its client, and log in again [default: never]
    #[arg(long, value_name = "N")]
    pub reconnect_every: Option<OpCount>,

    /// Another workload beside it in all steps, several times: update-index,clients=4,rate=200 (a profile: [[run.group]])
    #[arg(long = "beside", value_name = "GROUP")]
    #[serde(rename = "group")]
    pub groups: Vec<GroupKnobs>,

    /// Find the highest rate at which this holds, such as p99<10ms; the first is --rate, else 1k;
    /// several times: all must hold
    #[arg(long, value_name = "CONDITION", value_parser = parse_level, conflicts_with_all = ["gates", "ops"])]
    #[serde(skip)]
    pub slo: Vec<Gate>,

    /// Largest difference between the rate that holds and the one that fails
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = resolution, requires = "slo")]
    #[serde(skip)]
    pub slo_resolution: Option<f64>,

    /// Exit with 99 unless this holds, such as p99<5ms, qps>=10k or errors<0.1% (98: not known);
    /// several times: all must hold
    #[arg(long = "gate", value_name = "CONDITION")]
    pub gates: Vec<Gate>,

    /// Reaction to errors; deadlocks and the like are only counted
    #[arg(long, value_enum, value_name = "POLICY", default_value = "abort")]
    pub on_error: Option<OnError>,

    /// End a step with more errors than this: a count, or a share of the ops such as 1%
    #[arg(long, value_name = "N|P%")]
    pub max_errors: Option<ErrorsMax>,

    /// Give up an op, and its connection, after this time without an answer [default: wait while any client gets answers]
    #[arg(long, value_name = "DURATION")]
    pub op_timeout: Option<Length<50>>,

    /// pool: read all rows and their index once, before the first step
    #[arg(long, value_enum, value_name = "WHAT", default_value = "none", help_heading = BEFORE)]
    pub warm: Option<Warm>,

    /// The adaptive hash index before each step: emptied (cold), or filled by reads (warm)
    #[arg(long, value_enum, value_name = "HOW", default_value = "as-is", help_heading = BEFORE)]
    pub ahi: Option<Ahi>,

    /// Before each step, wait until dirty pages and the history list have fallen, at most for this
    /// time [without a value: 5m]
    #[arg(
        long, value_name = "DURATION", num_args = 0..=1, require_equals = true,
        default_missing_value = "5m", help_heading = BEFORE
    )]
    pub settle: Option<Phase>,

    /// Warn where the data turn out not to be cached, or not to be io-bound
    #[arg(long, value_enum, value_name = "CLASS", help_heading = BEFORE)]
    #[serde(skip)]
    pub expect_class: Option<Class>,
}

const BEFORE: &str = "Before the steps";

/// A value, or the knob that is refused with the reason.
type Located<T> = Result<T, (&'static str, Error)>;

/// Reads the resolution of a search: finer than noise between two windows makes no sense.
fn resolution(text: &str) -> Result<f64, String> {
    match parse_percent(text)? {
        share if share < 0.01 => Err(format!("'{text}' is finer than 1%")),
        share => Ok(share),
    }
}

impl Knobs {
    pub(crate) fn clients(&self) -> Vec<u32> {
        self.clients.as_ref().map_or_else(|| vec![1], |clients| clients.0.clone())
    }

    /// Makes those of a script, which has tables of its own. Refuses a setting that it decides by itself, unless it
    /// is for the tables of groups beside: names the key, and who says it instead.
    pub(crate) fn of_script(&self, find: &Find<'_>) -> Result<Knobs, (&'static str, &'static str)> {
        let by_option = "an option of the script may say it";
        let own = "the script opens its connections";
        let of_prepare = "it reads the tables of loadgen prepare";
        let no_tables = schemas(&self.groups, find).is_empty();
        let rows = self.rows.as_ref().is_some_and(|rows| rows.0.is_some());
        let spread = self.spread.is_some_and(|spread| spread != SpreadChoice::default());
        let keys = self.distribution.is_some();
        let all = [
            (spread, "spread", "the script chooses the table"),
            (no_tables && self.tables.is_some(), "tables", by_option),
            (no_tables && rows, "rows", by_option),
            (no_tables && keys, "distribution", "rand-type among its options says it"),
            (no_tables && self.warm == Some(Warm::Pool), "warm", of_prepare),
            (no_tables && self.ahi == Some(Ahi::Warm), "ahi", of_prepare),
            (self.reconnect_every.is_some(), "reconnect_every", own),
        ];
        if let Some((_, key, why)) = all.into_iter().find(|(is_given, ..)| *is_given) {
            return Err((key, why));
        }
        let mut knobs = self.clone();
        if no_tables {
            (knobs.tables, knobs.rows) = (Some(Whole(0)), Some(RowsOrAuto(Some(0))));
        }
        Ok(knobs)
    }

    /// `seed` is for keys without a seed. Refuses knobs that contradict each other, or the workload.
    pub(crate) fn resolve(self, workload: Workload, seed: u64) -> Result<Plan> {
        self.located(workload, seed, &find_builtin).map_err(|(_, error)| error)
    }

    /// Resolves the knobs; `find` finds the workloads of groups. An error names its knob.
    pub(super) fn located(self, workload: Workload, seed: u64, find: &Find<'_>) -> Located<Plan> {
        let clients = self.clients();
        let start = self.slo.first().map_or_else(Vec::new, |_| vec![SLO_START]);
        let rates = self.rate.map_or(start, |rates| rates.0);
        let (stop, usual) = match (self.ops, self.time) {
            (Some(ops), None) => (StopAt::Ops(ops.0), Duration::ZERO),
            (None, time) => (StopAt::Time(time.map_or(WINDOW, |time| time.0)), WARMUP),
            (Some(_), Some(_)) => return Err(("ops", Error::usage("a time or ops, not both"))),
        };
        if self.arrival.is_some() && rates.is_empty() {
            let text = "--arrival is for an open loop, and there is no rate";
            return Err(("arrival", Error::usage(text).hint("--rate or --slo makes an open loop")));
        }
        if self.think.is_some() && !rates.is_empty() {
            let text = "--think is a pause of a closed loop, and a rate makes an open one";
            return Err(("think", Error::usage(text).hint("either --think, or --rate and --slo")));
        }
        let distribution = self.distribution.unwrap_or(Distribution::Uniform);
        let groups = resolve(&self.groups, find, (distribution, self.statements));
        // Statements that use new tables cannot be prepared before these exist.
        let mode = if workload.defines() { StatementMode::Text } else { StatementMode::Prepared };
        let plan = Plan {
            workload,
            tables: self.tables.map(Whole::small),
            rows: self.rows.and_then(|rows| rows.0),
            clients,
            spread: self.spread.unwrap_or_default(),
            warmup: self.warmup.map_or(usual, |warmup| warmup.0),
            stop,
            rates,
            arrival: self.arrival.unwrap_or_default(),
            think: self.think.map(|think| think.0),
            reconnect_every: self.reconnect_every.map(|every| every.0),
            repeats: self.repeat.map_or(1, Whole::small),
            order: self.order.unwrap_or_default(),
            distribution,
            statements: self.statements.unwrap_or(mode),
            seed: self.seed.map_or(seed, |seed| seed.0),
            engine_threads: self.engine_threads.map(Whole::small),
            host_threads: Vec::new(),
            charset: self.charset.map(|charset| charset.0),
            interval: self.interval.map_or(Duration::from_secs(1), |interval| interval.0),
            interval_log: self.interval_log,
            before: Before {
                warm: self.warm.unwrap_or_default(),
                ahi: self.ahi.unwrap_or_default(),
                settle: self.settle.map(|limit| limit.0),
                expect: self.expect_class,
            },
            policy: Policy {
                on_error: self.on_error.unwrap_or_default(),
                errors_max: self.max_errors,
                op_timeout: self.op_timeout.map(|limit| limit.0),
            },
            rules: Rules::loadgen(),
            script: None,
            groups: groups.map_err(|error| ("group", error))?,
        };
        plan.check_groups().map_err(|error| ("group", error))?;
        plan.check_gates(&self.gates).map_err(|error| ("gates", error))?;
        check_steps(plan.count_steps()).map_err(|error| ("clients", error))?;
        // Given tables can be checked without a server.
        let spread = plan.tables.map_or(Ok(()), |tables| plan.spread_over(tables).map(drop));
        spread.map(|()| plan).map_err(|error| ("spread", error))
    }
}

/// A table (or several, one after the other) that is dropped, created and loaded again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "LoadKnobs")]
pub struct LoadSpec {
    /// Tables `sbtest1` … `sbtestN` of generated rows; 1 for a dump, which names its own.
    pub tables: u32,
    pub source: LoadSource,
    /// For generated rows; a dump is replayed as it is.
    pub insert: InsertMode,
    /// Character set on the wire (`SET NAMES`); None: what the server's connection starts with.
    pub charset: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum LoadSource {
    /// sysbench's rows, made on the fly.
    Generated { rows: u64, data_seed: u32 },
    /// A file that mysqldump wrote; `-` is standard input.
    Dump { path: PathBuf },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum InsertMode {
    /// INSERTs of many rows, as `mysqldump --opt` writes them.
    Extended {
        /// A statement ends before it would grow longer than this.
        bytes: u64,
    },
    /// One row a statement, as `mysqldump --opt --skip-extended-insert` writes them.
    Single,
    LoadData,
}

impl fmt::Display for InsertMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            InsertMode::Extended { .. } => InsertWord::Extended,
            InsertMode::Single => InsertWord::Single,
            InsertMode::LoadData => InsertWord::LoadData,
        };
        word.fmt(f)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteSpec {
    /// Its name; the workload of its summary is `suite-NAME`
    #[serde(deserialize_with = "named")]
    pub name: String,
    /// Its tests, one after the other
    pub tests: Vec<SuiteTest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteTest {
    /// Its name
    #[serde(deserialize_with = "named")]
    pub name: String,
    /// Program and arguments; no shell reads them
    #[serde(deserialize_with = "command")]
    pub run: Vec<String>,
    /// The directory that it runs in
    pub dir: Option<PathBuf>,
}

/// The settings of a load that are given: the flags of its verb, and a profile's `load`.
#[derive(clap::Args, Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoadKnobs {
    /// Tables sbtest1 to sbtestN, one after the other [default: 1]
    #[arg(long, value_name = "N")]
    pub tables: Option<TableCount>,

    /// Rows of each table, up to 10G [default: 10k]
    #[arg(long, value_name = "N")]
    pub rows: Option<RowCount>,

    /// Seed of the rows' content [default: 1]
    #[arg(long, value_name = "N")]
    pub data_seed: Option<u32>,

    /// Load this file of mysqldump's instead, statement by statement as it is; - is standard input
    #[arg(
        long = "from-dump", value_name = "FILE",
        conflicts_with_all = ["tables", "rows", "data_seed", "mode", "insert_bytes"]
    )]
    pub dump: Option<PathBuf>,

    /// extended (many rows a statement), single (one row) or load-data (LOAD DATA LOCAL)
    /// [default: extended]
    #[arg(long, value_name = "MODE", value_enum, hide_possible_values = true)]
    pub mode: Option<InsertWord>,

    /// Bytes that an extended INSERT stays below [default: 1046528, as mysqldump]
    #[arg(long, value_name = "N")]
    pub insert_bytes: Option<InsertBytes>,

    /// Character set of the statements (SET NAMES), such as latin1, utf8 or utf8mb4
    #[arg(long, value_name = "NAME")]
    pub charset: Option<CharsetName>,
}

impl TryFrom<LoadKnobs> for LoadSpec {
    type Error = String;

    fn try_from(knobs: LoadKnobs) -> Result<LoadSpec, String> {
        let refused = |what: &str| Err(what.to_owned());
        let own = knobs.mode.is_some() || knobs.insert_bytes.is_some();
        let own = own || knobs.tables.is_some() || knobs.data_seed.is_some();
        let source = match (knobs.dump, knobs.rows) {
            (Some(_), Some(_)) => return refused("a load has rows or a dump, not both"),
            (Some(_), None) if own => {
                return refused(
                    "a dump is sent as it is: tables, mode, data_seed and insert_bytes have no \
                     effect on it; leave them out",
                );
            }
            (Some(path), None) => LoadSource::Dump { path },
            (None, rows) => LoadSource::Generated {
                rows: rows.map_or(defaults::ROWS, |rows| rows.0),
                data_seed: knobs.data_seed.unwrap_or(defaults::DATA_SEED),
            },
        };
        let insert = match (knobs.mode.unwrap_or_default(), knobs.insert_bytes) {
            (InsertWord::Extended, bytes) => {
                InsertMode::Extended { bytes: bytes.map_or(INSERT_BYTES, |bytes| bytes.0) }
            }
            (_, Some(_)) => return refused("only the mode extended has a number of bytes"),
            (InsertWord::Single, None) => InsertMode::Single,
            (InsertWord::LoadData, None) => InsertMode::LoadData,
        };
        let tables = knobs.tables.map_or(1, Whole::small);
        Ok(LoadSpec { tables, source, insert, charset: knobs.charset.map(|name| name.0) })
    }
}

impl LoadSpec {
    /// Names the summary's workload: loads of different kinds are different tables of a report.
    pub(crate) fn name(&self) -> String {
        match (&self.source, self.insert) {
            (LoadSource::Generated { .. }, InsertMode::Extended { .. }) => "load".to_owned(),
            (LoadSource::Generated { .. }, InsertMode::Single) => "load-single".to_owned(),
            (LoadSource::Generated { .. }, InsertMode::LoadData) => "load-data".to_owned(),
            (LoadSource::Dump { path }, _) if path == Path::new("-") => "load-dump".to_owned(),
            (LoadSource::Dump { path }, _) => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                format!("load-dump-{}", stem.chars().take(100).collect::<String>())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;
    use crate::workload::builtin;

    #[test]
    fn what_is_not_said_is_what_the_help_names() {
        let matches = Knobs::augment_args(clap::Command::new("x")).get_matches_from(["x"]);
        let flags = Knobs::from_arg_matches(&matches).expect("the defaults are sound");
        let plan = |knobs: Knobs| knobs.resolve(builtin().remove(0), 1).expect("a plan");
        assert_eq!(plan(flags), plan(Knobs::default()));
    }

    #[test]
    fn a_pause_is_refused_in_an_open_loop() {
        let think = Some(Length(Duration::from_millis(5)));
        let plan = |knobs: Knobs| Knobs { think, ..knobs }.resolve(builtin().remove(0), 1);
        assert_eq!(plan(Knobs::default()).expect("closed").think, think.map(|think| think.0));
        let open = Knobs { rate: Some("100".parse().expect("a rate")), ..Knobs::default() };
        assert!(plan(open).expect_err("open").to_string().contains("--think"));
    }

    #[test]
    fn ops_and_a_window_have_their_own_warm_ups() {
        let warmup = |knobs: Knobs| knobs.resolve(builtin().remove(0), 1).expect("a plan").warmup;
        assert_eq!(warmup(Knobs::default()), Duration::from_secs(10));
        let ops = Knobs { ops: Some(Whole(5)), ..Knobs::default() };
        assert_eq!(warmup(ops.clone()), Duration::ZERO);
        let both = Knobs { warmup: Some(Length(Duration::from_secs(1))), ..ops };
        assert_eq!(warmup(both), Duration::from_secs(1));
    }

    fn load(text: &str) -> Result<LoadSpec, String> {
        toml::from_str(text).map_err(|e: toml::de::Error| e.to_string())
    }

    #[test]
    fn a_load_as_a_profile_spells_it() {
        let spec = load("rows = \"16M\"\nmode = \"single\"\ncharset = \"latin1\"").expect("fine");
        assert_eq!(
            spec,
            LoadSpec {
                tables: 1,
                source: LoadSource::Generated { rows: 16_000_000, data_seed: 1 },
                insert: InsertMode::Single,
                charset: Some("latin1".to_owned()),
            }
        );
        let spec =
            load("rows = 5\ntables = 8\ninsert_bytes = \"64Ki\"\ndata_seed = 3").expect("fine");
        assert_eq!((spec.tables, spec.insert), (8, InsertMode::Extended { bytes: 65_536 }));
        let spec = load("").expect("the reference names the default");
        assert_eq!(spec.source, LoadSource::Generated { rows: 10_000, data_seed: 1 });
        let spec = load("dump = \"a.sql\"").expect("fine");
        assert_eq!(spec.source, LoadSource::Dump { path: PathBuf::from("a.sql") });
    }

    #[test]
    fn nonsense_is_named() {
        for (text, part) in [
            ("rows = 1\ndump = \"x\"", "not both"),
            ("dump = \"x\"\nmode = \"single\"", "as it is"),
            ("dump = \"x\"\ndata_seed = 3", "as it is"),
            ("rows = 0", "from 1"),
            ("rows = \"1x\"", "'1x'"),
            ("rows = 1\nmode = \"fast\"", "fast"),
            ("rows = 1\nmode = \"single\"\ninsert_bytes = 2000", "extended"),
            ("rows = 1\ninsert_bytes = 10", "'10'"),
            ("rows = 1\ntables = 4294967297", "tables"),
            ("rows = 1\nrow = 2", "row"),
        ] {
            let error = load(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_suite_as_a_profile_spells_it() {
        let text = "name = \"s\"\ntests = [{ name = \"a\", run = [\"true\"], dir = \"/\" }]";
        let suite: SuiteSpec = toml::from_str(text).expect("fine");
        assert_eq!(suite.tests[0].run, ["true"]);
        assert!(toml::from_str::<SuiteSpec>("name = \"s\"\ntests = []\nx = 1").is_err());
    }
}
