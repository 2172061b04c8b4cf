//! What a person says of a sweep: the flags of a workload's verb, and the keys of a profile's run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::value::{
    CharsetName, Clients, ErrorsMax, Length, Names, OpCount, OptionValue, Phase, Rates, Repeats,
    RowsOrAuto, TableCount, Threads, Whole, key_value, label, named,
};
use super::{
    Ahi, Arrival, Before, OnError, Order, Plan, Policy, SpreadChoice, StatementMode, StopAt, Warm,
    check_steps,
};
use crate::error::{Error, Result};
use crate::terms::units::parse_percent;
use crate::terms::{Class, Gate, parse_level};
use crate::workload::{Distribution, Workload};

const WINDOW: Duration = Duration::from_mins(1);
const WARMUP: Duration = Duration::from_secs(10);
/// A rate's search begins here, ops a second.
const SLO_START: f64 = 1000.0;

/// What is said; what is not has the default that the help names.
#[derive(clap::Args, serde::Deserialize, Debug, Clone, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Knobs {
    #[arg(skip)]
    #[serde(deserialize_with = "named")]
    pub name: Option<String>,
    #[arg(skip)]
    pub servers: Option<Names>,
    #[arg(skip)]
    pub workload: Option<Names>,
    #[arg(skip)]
    pub options: BTreeMap<String, OptionValue>,
    /// `warm = "pool"` in its older form.
    #[arg(skip)]
    pub scan: bool,

    /// Tables: sbtest1 … sbtestN, for one [default: those that are there]
    #[arg(long, value_name = "N")]
    pub tables: Option<TableCount>,

    /// Rows of each table to use; auto takes what the tables say
    #[arg(long, value_name = "N|auto", default_value = "auto")]
    pub rows: Option<RowsOrAuto>,

    /// Concurrent clients, a step each: 64 or 1,2,4 or 8..256 (doubling) or 8..64+8
    #[arg(long, value_name = "LIST", default_value = "1")]
    pub clients: Option<Clients>,

    /// How clients meet tables
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    pub spread: Option<SpreadChoice>,

    /// Warm-up before each window, not counted [default: 10s; 0 with --ops]
    #[arg(long, value_name = "DURATION")]
    pub warmup: Option<Phase>,

    /// Length of each measured window [default: 60s]
    #[arg(long, value_name = "DURATION", conflicts_with = "ops")]
    pub time: Option<Length<1>>,

    /// Ops of each step over all clients, instead of a time
    #[arg(long, value_name = "N")]
    pub ops: Option<OpCount>,

    /// Run the whole sweep so many times; cells show the median
    #[arg(long, value_name = "N", default_value = "1")]
    pub repeat: Option<Repeats>,

    /// Order of the client counts
    #[arg(long, value_enum, value_name = "ORDER", default_value = "ascending")]
    pub order: Option<Order>,

    /// Which rows are touched: uniform, zipf:S (scattered), zipf-adjacent:S, pareto:H or special
    #[arg(long, value_name = "NAME", default_value = "uniform")]
    pub distribution: Option<Distribution>,

    /// Server-side prepared statements or SQL text
    #[arg(long, value_enum, value_name = "MODE", default_value = "prepared")]
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

    /// The row of the table [default: the server's version]
    #[arg(long, value_name = "NAME", value_parser = label)]
    #[serde(skip)]
    pub label: Option<String>,

    /// Something to keep in the summaries; may be given several times
    #[arg(long = "note", value_name = "KEY=VALUE", value_parser = key_value)]
    #[serde(skip)]
    pub notes: Vec<(String, String)>,

    /// Directory of the summaries
    #[arg(long, value_name = "DIR", default_value = super::defaults::OUT)]
    #[serde(skip)]
    pub out: Option<PathBuf>,

    /// Length of an interval of the timeline, 100ms or more
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    #[serde(skip)]
    pub interval: Option<Length<100>>,

    /// Write the histogram of each interval to this new file, as an HdrHistogram interval log; in one
    /// of several steps the lines have tags: step2.service, step2.response
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub interval_log: Option<PathBuf>,

    /// Open loop: ops a second over all clients, a step each: 10k or 1k,2k or 1k..16k (doubling)
    #[arg(long, value_name = "LIST")]
    pub rate: Option<Rates>,

    /// With --rate or --slo: how arrivals are spaced [default: poisson]
    #[arg(long, value_enum, value_name = "HOW")]
    pub arrival: Option<Arrival>,

    /// Pause of a client after each op of a closed loop, outside its latency [default: none]
    #[arg(long, value_name = "DURATION")]
    pub think: Option<Length<1>>,

    /// Find the highest rate at which this holds, such as p99<2ms (response time): an open loop,
    /// doubling from --rate [default: 1k], then bisecting; may be given several times
    #[arg(long, value_name = "CONDITION", value_parser = parse_level, conflicts_with_all = ["gates", "ops"])]
    #[serde(skip)]
    pub slo: Vec<Gate>,

    /// How near a rate that holds and one that fails must be
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = resolution, requires = "slo")]
    #[serde(skip)]
    pub slo_resolution: Option<f64>,

    /// What must hold at the end, else the exit status is 99 (98 where it is not known), such as
    /// p99<5ms, qps>=10k, errors==0, errors<0.1%, mean<1ms; may be given several times
    #[arg(long = "gate", value_name = "CONDITION")]
    pub gates: Vec<Gate>,

    /// What an error does to its client and to the step; lost connections and the codes of
    /// each class are in docs/faults.md
    #[arg(long, value_enum, value_name = "POLICY", default_value = "abort")]
    pub on_error: Option<OnError>,

    /// End a step with more errors than this: a count, or a share of the ops such as 1%
    #[arg(long, value_name = "N|P%")]
    pub max_errors: Option<ErrorsMax>,

    /// Give up an op, and its connection, that has no answer after so long [default: wait]
    #[arg(long, value_name = "DURATION")]
    pub op_timeout: Option<Length<50>>,

    /// pool: read all rows and their index once, before the first step
    #[arg(long, value_enum, value_name = "WHAT", default_value = "none", help_heading = BEFORE)]
    pub warm: Option<Warm>,

    /// The adaptive hash index before each step: emptied (cold), or filled by reads (warm)
    #[arg(long, value_enum, value_name = "HOW", default_value = "as-is", help_heading = BEFORE)]
    pub ahi: Option<Ahi>,

    /// Before each step, wait until dirty pages and the history list have fallen, so long at most
    /// [without a value: 5m]
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

/// A value, or the knob that forbids it and why.
type Located<T> = std::result::Result<T, (&'static str, Error)>;

/// Reads how near two rates must be: finer than chance between two windows makes no sense.
fn resolution(text: &str) -> std::result::Result<f64, String> {
    match parse_percent(text)? {
        share if share < 0.01 => Err(format!("'{text}' is finer than 1%")),
        share => Ok(share),
    }
}

impl Knobs {
    /// Concurrent clients, a step each.
    pub(crate) fn clients(&self) -> Vec<u32> {
        self.clients.as_ref().map_or_else(|| vec![1], |clients| clients.0.clone())
    }

    /// Decides what is not said; `seed` is for keys without a seed of their own.
    ///
    /// # Errors
    ///
    /// Usage: knobs that contradict each other, or the workload.
    pub(crate) fn resolve(self, workload: Workload, seed: u64) -> Result<Plan> {
        self.located(workload, seed).map_err(|(_, error)| error)
    }

    /// Does the same, and names the knob that an error is of.
    pub(super) fn located(self, workload: Workload, seed: u64) -> Located<Plan> {
        let clients = self.clients();
        let start = self.slo.first().map_or_else(Vec::new, |_| vec![SLO_START]);
        let rates = self.rate.map_or(start, |rates| rates.0);
        let (stop, usual) = match (self.ops, self.time) {
            (Some(ops), None) => (StopAt::Ops(ops.0), Duration::ZERO),
            (None, time) => (StopAt::Time(time.map_or(WINDOW, |time| time.0)), WARMUP),
            (Some(_), Some(_)) => return Err(("ops", Error::usage("a time or ops, not both"))),
        };
        if self.arrival.is_some() && rates.is_empty() {
            let text = "an arrival is for an open loop";
            return Err(("arrival", Error::usage(text).hint("--rate, or --slo")));
        }
        if self.think.is_some() && !rates.is_empty() {
            let text = "--think is a pause of a closed loop, and a rate makes an open one";
            return Err(("think", Error::usage(text).hint("either --think, or --rate and --slo")));
        }
        let plan = Plan {
            workload,
            label: self.label,
            notes: self.notes,
            tables: self.tables.map(Whole::small),
            rows: self.rows.and_then(|rows| rows.0),
            clients,
            spread: self.spread.unwrap_or_default(),
            warmup: self.warmup.map_or(usual, |warmup| warmup.0),
            stop,
            rates,
            arrival: self.arrival.unwrap_or_default(),
            think: self.think.map(|think| think.0),
            repeats: self.repeat.map_or(1, Whole::small),
            order: self.order.unwrap_or_default(),
            distribution: self.distribution.unwrap_or(Distribution::Uniform),
            statements: self.statements.unwrap_or_default(),
            seed: self.seed.map_or(seed, |seed| seed.0),
            engine_threads: self.engine_threads.map(Whole::small),
            charset: self.charset.map(|charset| charset.0),
            out: self.out.unwrap_or_else(|| super::defaults::OUT.into()),
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
        };
        check_steps(plan.count_steps()).map_err(|error| ("clients", error))?;
        // Where the tables are given, what they forbid needs no server to be said.
        let spread = plan.tables.map_or(Ok(()), |tables| plan.spread_over(tables).map(drop));
        spread.map(|()| plan).map_err(|error| ("spread", error))
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
}
