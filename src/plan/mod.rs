//! The plan: all decisions before the first connection, and all defaults. Pure: no connection, no clock.

pub mod experiment;
pub mod group;
pub mod knobs;
pub(crate) mod limits;
pub mod profile;
pub mod rules;
pub mod script;
pub(crate) mod search;
pub mod value;

use std::fmt;
use std::iter;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

pub use self::group::Group;
pub use self::rules::{AfterError, AtEnd, Ignored, Rules};
pub use self::script::{
    RandType, ReadScript, Script, ScriptIdentity, ScriptLine, ScriptLog, ScriptRandom, ScriptValue,
};
use self::value::{ErrorsMax, Scale, serialize_display};
use crate::error::{Error, Result};
use crate::terms::{self, Cell, Class, Gate, GroupName, Quantity};
pub use crate::terms::{
    Ahi, Arrival, OnError, Order, Spread, SpreadChoice, StatementMode, Warm, units,
};
use crate::workload::{Distribution, Schema, Setting, Stream, Workload, seed_of};

pub(crate) mod defaults {
    pub(crate) const OUT: &str = "results";
    pub(crate) const TABLES: u32 = 1;
    pub(crate) const ROWS: u64 = 10_000;
    pub(crate) const CALIBRATE_CLIENTS: &str = "1,8,64,256";
    pub(crate) const CALIBRATE_TIME: &str = "2s";
    pub(crate) const DATA_SEED: u32 = 1;
}

/// One sweep. Fields that are not serialised do not change what a step measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    #[serde(deserialize_with = "Workload::read_written")]
    pub workload: Workload,
    /// Tables; None: those that exist.
    pub tables: Option<u32>,
    pub rows: Option<u64>,
    /// Concurrent clients, a step each, ascending.
    #[serde(skip)]
    pub clients: Vec<u32>,
    pub spread: SpreadChoice,
    pub warmup: Duration,
    pub stop: StopAt,
    /// Ops a second over all clients, a step each, ascending. Empty: a closed loop, in which a client issues
    /// its next op after the last answer.
    #[serde(skip)]
    pub rates: Vec<f64>,
    pub arrival: Arrival,
    /// Pause of a client after each op of a closed loop. Skipped if unset: older resume keys stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<Duration>,
    /// Ops of a client after which it logs in again. Skipped if unset: older resume keys stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnect_every: Option<u64>,
    #[serde(skip)]
    pub repeats: u32,
    #[serde(skip)]
    pub order: Order,
    #[serde(serialize_with = "serialize_display")]
    pub distribution: Distribution,
    pub statements: StatementMode,
    #[serde(skip)]
    pub seed: u64,
    /// Operating system threads; None: min(cores, clients).
    pub engine_threads: Option<u32>,
    /// Those of each host, where several have them all. Resume keys are the same in whatever order the hosts are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty", serialize_with = "serialize_sorted")]
    pub host_threads: Vec<u32>,
    /// Character set of the sessions; None: that of the handshake.
    pub charset: Option<String>,
    pub interval: Duration,
    #[serde(skip)]
    pub interval_log: Option<PathBuf>,
    pub before: Before,
    pub policy: Policy,
    /// The name in resume keys of older versions.
    #[serde(rename = "as_sysbench", skip_serializing_if = "Rules::is_loadgen")]
    #[serde(skip_deserializing, default = "Rules::loadgen")]
    pub rules: Rules,
    /// Clients run it instead of the workload.
    #[serde(skip)]
    pub script: Option<Arc<Script>>,
    /// Those beside the measured clients. Skipped if there are none: older resume keys stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
}

/// The parts of a plan that its written form lacks, by group: the measured one is the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unwritten {
    built_in: Vec<bool>,
    scripts: Vec<Option<ReadScript>>,
}

fn serialize_sorted<S: Serializer>(numbers: &[u32], to: S) -> std::result::Result<S::Ok, S::Error> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.serialize(to)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopAt {
    Time(Duration),
    /// Number of ops over all clients, errors included, split evenly.
    Ops(u64),
}

impl StopAt {
    pub(crate) fn time(self) -> Option<Duration> {
        if let StopAt::Time(time) = self { Some(time) } else { None }
    }

    pub(crate) fn ops(self) -> Option<u64> {
        if let StopAt::Ops(ops) = self { Some(ops) } else { None }
    }
}

/// Preparation of a server before a step, and the expected class of data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    pub warm: Warm,
    pub ahi: Ahi,
    /// Upper limit on the wait until earlier writes are flushed and purged.
    pub settle: Option<Duration>,
    /// The data should fit into the buffer pool, or not.
    pub expect: Option<Class>,
}

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.warm == Warm::Pool).then(|| "warm pool".to_owned()),
            (self.ahi != Ahi::AsIs).then(|| format!("ahi {}", self.ahi)),
            self.settle.map(|limit| format!("settle {}", units::duration(limit))),
        ];
        f.write_str(terms::joined(parts, ", ").as_deref().unwrap_or("nothing"))
    }
}

/// Reactions to errors, lost connections and late answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    pub on_error: OnError,
    /// Number or share of errors that ends the step; None: no limit.
    #[serde(skip_deserializing)]
    pub errors_max: Option<ErrorsMax>,
    /// An op without an answer for this long is given up, with its connection; None waits.
    pub op_timeout: Option<Duration>,
}

impl Policy {
    pub(crate) fn reconnects(&self) -> bool {
        self.on_error == OnError::Reconnect
    }

    /// Returns how long all clients may wait for an answer, and a server may be gone between two steps.
    pub(crate) fn patience(&self) -> Duration {
        if self.reconnects() { limits::OUTAGE } else { limits::SILENCE }
    }

    /// Returns the same in a step: an op may take as long as its own limit says.
    pub(crate) fn patience_with_ops(&self) -> Duration {
        self.patience().max(self.op_timeout.unwrap_or_default())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The end of its name; goes on in a run that is continued.
    pub number: u32,
    /// Position in the order of execution, from 1.
    pub place: u32,
    pub of: u32,
    pub clients: u32,
    /// Ops a second over all clients; None in a closed loop.
    pub rate: Option<f64>,
    pub repeat: u32,
    /// Number of the try, from 1.
    pub attempt: u32,
    /// Number of its search for a rate, from 1.
    pub search: Option<u32>,
}

impl Step {
    /// Makes the first try of a step at the place of its number, outside a search.
    pub(crate) const fn new(number: u32, of: u32, cell: (u32, Option<f64>), repeat: u32) -> Step {
        let (clients, rate) = cell;
        Step { number, place: number, of, clients, rate, repeat, attempt: 1, search: None }
    }

    pub(crate) fn cell(&self) -> Cell {
        Cell::new(self.clients, self.rate)
    }

    /// Returns its number, and that of the try from the second on: `7`, `7.2`.
    pub(crate) fn name(&self) -> String {
        let Step { number, attempt, .. } = self;
        if *attempt > 1 { format!("{number}.{attempt}") } else { number.to_string() }
    }
}

impl Plan {
    pub(crate) fn cells(&self, repeat: u32) -> Vec<(u32, Option<f64>)> {
        let rates = match self.rates.as_slice() {
            [] => vec![None],
            rates => rates.iter().copied().map(Some).collect(),
        };
        let all = self.clients.iter().flat_map(|n| rates.iter().map(|rate| (*n, *rate)));
        let mut cells: Vec<(u32, Option<f64>)> = all.collect();
        if self.order == Order::Shuffled {
            shuffle(&mut cells, seed_of(&[self.seed, u64::from(repeat)]));
        }
        cells
    }

    /// Lists the steps in order. Repeats are the outermost loop, so that a drift is not within a cell.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let of = self.count_steps() as u32;
        let cells = (1..=self.repeats)
            .flat_map(|repeat| self.cells(repeat).into_iter().map(move |cell| (repeat, cell)));
        let step = |(number, (repeat, cell))| Step::new(number, of, cell, repeat);
        (1..).zip(cells).map(step).collect()
    }

    /// Returns the warm-up and window of a step; None if the window is a number of ops.
    pub(crate) fn step_time(&self) -> Option<Duration> {
        self.stop.time().map(|time| time.saturating_add(self.warmup))
    }

    pub(crate) fn count_steps(&self) -> u64 {
        let cells = self.clients.len() as u64 * self.rates.len().max(1) as u64;
        cells.saturating_mul(u64::from(self.repeats))
    }

    /// Takes the engine threads of all these hosts, which have so many each by themselves.
    pub(crate) fn add_up_threads(&mut self, hosts: &[u32]) {
        self.host_threads = hosts.iter().map(|own| self.engine_threads.unwrap_or(*own)).collect();
        self.engine_threads = Some(self.host_threads.iter().sum());
    }

    pub(crate) fn scale(&mut self, scale: Scale) {
        self.warmup = scale.warmup(self.warmup);
        self.stop = match self.stop {
            StopAt::Time(time) => StopAt::Time(scale.time(time)),
            StopAt::Ops(ops) => StopAt::Ops(scale.rows(ops)),
        };
    }

    pub(crate) fn clients_max(&self) -> u32 {
        self.clients.iter().copied().max().unwrap_or(0)
    }

    pub(crate) fn clients_beside(&self) -> u32 {
        self.groups.iter().map(|group| group.clients).fold(0, u32::saturating_add)
    }

    /// Counts those beside at the first of so many addresses: each group's are dealt out from it.
    pub(crate) fn clients_beside_at_first(&self, addresses: u32) -> u32 {
        let at_first = self.groups.iter().map(|group| group.clients.div_ceil(addresses));
        at_first.fold(0, u32::saturating_add)
    }

    /// Lists the workloads of all groups, the measured one first.
    pub(crate) fn workloads(&self) -> impl Iterator<Item = &Workload> {
        iter::once(&self.workload).chain(self.groups.iter().map(|group| &group.workload))
    }

    pub(crate) fn writes(&self) -> bool {
        self.workloads().any(Workload::writes)
    }

    /// Returns whether it writes, or nobody knows: a script may, read or not.
    pub(crate) fn may_write(&self) -> bool {
        let beside = self.groups.iter().any(|group| group.script.is_some());
        self.workloads().any(Workload::may_write) || beside || self.scripts().next().is_some()
    }

    /// Lists the scripts that were read, that of the measured clients first.
    pub(crate) fn scripts(&self) -> impl Iterator<Item = &Arc<Script>> {
        let beside = self.groups.iter().filter_map(|group| Some(&group.read.as_ref()?.script));
        self.script.iter().chain(beside)
    }

    /// Returns why verify cannot judge by the ledger of such a run, if so.
    pub(crate) fn unfollowed(&self) -> Option<String> {
        let known = self.workloads().find_map(Workload::unfollowed);
        known.or_else(|| self.scripts().next().map(|_| script::UNFOLLOWED.to_owned()))
    }

    /// Has the measured clients run a script instead of the workload.
    pub(crate) fn run_script(self, read: ReadScript) -> Plan {
        let ReadScript { mut script, after_error, distribution, statements } = read;
        let time = self.stop.time().filter(|time| *time < limits::PHASE_MAX);
        let own = Arc::make_mut(&mut script);
        own.set_of_step("time", time.map_or(0.0, |time| time.as_secs_f64()));
        own.set_of_step("events", self.stop.ops().unwrap_or(0) as f64);
        let rules = Rules { after_error, ..self.rules };
        Plan { script: Some(script), rules, distribution, statements, ..self }
    }

    pub(crate) fn is_built_in(&self) -> bool {
        self.workloads().all(|workload| workload.built_in)
    }

    /// Returns the schema of the tables that its groups use.
    pub(crate) fn schema(&self) -> Schema {
        let mut named = self.workloads().filter(|workload| workload.names_tables());
        named.next().unwrap_or(&self.workload).schema
    }

    /// Refuses groups that do not use the tables of the others.
    fn check_groups(&self) -> Result<()> {
        let schema = self.schema();
        let beside = || self.groups.iter().map(|group| &group.workload);
        let mut named = beside().filter(|workload| workload.names_tables());
        if self.tables == Some(0)
            && let Some(of_tables) = named.next()
        {
            let text = format!(
                "{} of a group uses tables of loadgen prepare, but the measured workload does not",
                of_tables.name
            );
            return Err(Error::usage(text).hint("beside it, use sql=FILE without {table}"));
        }
        let Some(other) = named.find(|other| other.schema != schema) else { return Ok(()) };
        let (name, own) = (&other.name, other.schema);
        Err(Error::usage(format!(
            "{name} uses tables of --schema {own}, and others those of {schema}"
        ))
        .hint("the groups of a step use the same tables"))
    }

    /// Returns the longest pause between two ops of a client, of all groups. In an open loop an idle one has its turn
    /// when all others had theirs.
    pub(crate) fn longest_pause(&self) -> Duration {
        let turn = |clients: u32, rate: f64| seconds_of(f64::from(clients) / rate);
        let lowest = self.rates.iter().copied().reduce(f64::min);
        let own = [self.think, lowest.map(|rate| turn(self.clients_max(), rate))];
        let beside = self.groups.iter().flat_map(|group| {
            let turn = group.rate.map(|rate| turn(group.clients, rate));
            [group.think, turn]
        });
        let longest = beside.chain(own).flatten().max().unwrap_or_default();
        // No pause is longer than the step.
        longest.min(self.step_time().unwrap_or(limits::PHASE_MAX))
    }

    fn find_group(&self, name: GroupName) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// Refuses gates of groups, and of log-ins, that are not there.
    pub(crate) fn check_gates(&self, gates: &[Gate]) -> Result<()> {
        self.check_groups_of(gates)?;
        let of_group = |name| self.find_group(name)?.reconnect_every;
        let lacks = |gate: &&Gate| {
            let every = gate.group.map_or(self.reconnect_every, of_group);
            matches!(gate.quantity, Quantity::Connect(_)) && every.is_none()
        };
        gates.iter().find(lacks).map_or(Ok(()), |gate| {
            let text = format!("gate {gate}: its clients keep their connections");
            Err(Error::usage(text).hint("--reconnect-every N, or reconnect-every=N of --beside"))
        })
    }

    fn check_groups_of(&self, gates: &[Gate]) -> Result<()> {
        let mut wanted = gates.iter().filter_map(|gate| Some((gate, gate.group?)));
        let Some((gate, name)) = wanted.find(|(_, name)| self.find_group(*name).is_none()) else {
            return Ok(());
        };
        let names = self.groups.iter().map(|group| Some(group.name.to_string()));
        let known =
            terms::joined(names, ", ").unwrap_or_else(|| "none: --beside makes one".to_owned());
        Err(Error::usage(format!("gate {gate}: there is no group '{name}'"))
            .hint(format!("groups beside: {known}")))
    }

    /// Makes the plan of a group beside, as if it were measured alone. The measured clients' number of ops ends
    /// the step: what others have begun by then still counts.
    pub(crate) fn of_group(&self, group: &Group) -> Plan {
        let by_ops = self.stop.ops().is_some();
        let grace = Some(limits::DRAIN);
        let at_end = if by_ops { AtEnd::Finish { grace, by_end: false } } else { AtEnd::Drain };
        let plan = Plan {
            workload: group.workload.clone(),
            clients: vec![group.clients],
            rates: group.rate.into_iter().collect(),
            arrival: group.arrival,
            think: group.think,
            distribution: group.distribution,
            reconnect_every: group.reconnect_every,
            statements: group.statements,
            spread: SpreadChoice::Auto,
            stop: if by_ops { StopAt::Time(limits::PHASE_MAX) } else { self.stop },
            rules: Rules { at_end, ..Rules::loadgen() },
            script: None,
            groups: Vec::new(),
            ..self.clone()
        };
        match &group.read {
            Some(read) => plan.run_script(read.clone()),
            None => plan,
        }
    }

    /// Refuses scripts whose files are too large to go to other hosts.
    pub(crate) fn check_away(&self) -> Result<()> {
        let bytes: usize = self.scripts().map(|script| script.bytes()).sum();
        if bytes <= limits::AWAY_MAX {
            return Ok(());
        }
        let paths = terms::joined(self.scripts().map(|script| Some(script.path.clone())), ", ");
        let (paths, bytes, most) =
            (paths.unwrap_or_default(), bytes.div_ceil(1 << 20), limits::AWAY_MAX >> 20);
        let text = format!("the files of {paths} have {bytes} MiB, limit {most}");
        let hint =
            format!("only {most} MiB go to other hosts: on each host read data with io.open");
        Err(Error::usage(text).hint(hint))
    }

    /// Returns it as each of several hosts runs it.
    pub(crate) fn away(&self) -> Plan {
        let mut plan = self.clone();
        let beside = plan.groups.iter_mut().filter_map(|group| group.read.as_mut());
        let scripts = plan.script.iter_mut().chain(beside.map(|read| &mut read.script));
        scripts.for_each(|script| *script = Arc::new(script.away()));
        plan
    }

    /// Takes out what its written form lacks.
    pub(crate) fn to_written(&self) -> (Plan, Unwritten) {
        let mut plan = Plan { script: None, rules: Rules::loadgen(), ..self.clone() };
        plan.workload.built_in = false;
        let measured = self.script.as_ref().map(|script| ReadScript {
            script: Arc::clone(script),
            after_error: self.rules.after_error.clone(),
            distribution: self.distribution,
            statements: self.statements,
        });
        let beside = plan.groups.iter_mut().map(|group| {
            group.workload.built_in = false;
            group.script = None;
            group.read.take()
        });
        let scripts = iter::once(measured).chain(beside).collect();
        let built_in = self.workloads().map(|workload| workload.built_in).collect();
        (plan, Unwritten { built_in, scripts })
    }

    /// Puts back what its written form lacks.
    pub(crate) fn with_unwritten(&self, unwritten: &Unwritten) -> Plan {
        let mut plan = self.clone();
        let beside = plan.groups.iter_mut().map(|group| &mut group.workload);
        let workloads = iter::once(&mut plan.workload).chain(beside);
        for (workload, built_in) in workloads.zip(&unwritten.built_in) {
            workload.built_in = *built_in;
        }
        let mut scripts = unwritten.scripts.iter().cloned();
        let measured = scripts.next().flatten();
        for (group, read) in plan.groups.iter_mut().zip(scripts) {
            group.read = read;
        }
        match measured {
            Some(read) => plan.run_script(read),
            None => plan,
        }
    }

    /// Counts the statements that all clients of its largest step prepare.
    pub(crate) fn prepared_in_all(&self, spread: Spread, tables: u32) -> u64 {
        let own = self.prepared_per_client(spread, tables) * u64::from(self.clients_max());
        own + self.count_prepared_beside(tables, 1)
    }

    /// Counts the statements that groups beside prepare at the first address: each group's clients are dealt out from it.
    pub(crate) fn count_prepared_beside(&self, tables: u32, addresses: u32) -> u64 {
        let of_group = |group: &Group| {
            let plan = self.of_group(group);
            let spread = plan.spread_over(tables).unwrap_or(Spread::Random);
            let clients = group.clients.div_ceil(addresses);
            plan.prepared_per_client(spread, tables) * u64::from(clients)
        };
        self.groups.iter().map(of_group).sum()
    }

    /// Decides how clients meet the tables; refuses a `pinned` that would touch only a part of them.
    pub(crate) fn spread_over(&self, tables: u32) -> Result<Spread> {
        if self.workload.table_a_client {
            return self.own_tables(tables);
        }
        if self.workload.transactions.iter().any(|t| self.workload.table_each(t)) {
            if self.spread == SpreadChoice::Pinned {
                let text = "--spread pinned: with --table-each no client keeps to one table";
                return Err(Error::usage(text).hint("leave out one of the two"));
            }
            return Ok(Spread::Random);
        }
        if self.script.is_some() && tables > 0 {
            // The tables are those of groups beside.
            return Ok(Spread::Random);
        }
        let odd = self.clients.iter().find(|clients| **clients % tables.max(1) != 0);
        match (self.spread, odd) {
            (SpreadChoice::Random, _) | (SpreadChoice::Auto, Some(_)) => Ok(Spread::Random),
            (SpreadChoice::Auto | SpreadChoice::Pinned, None) => Ok(Spread::Pinned),
            (SpreadChoice::Pinned, Some(clients)) => Err(Error::usage(format!(
                "--spread pinned: {} on {tables} tables would not use the tables alike",
                terms::clients(*clients)
            ))
            .hint("use client counts that are multiples of the tables, or --spread random")),
        }
    }

    fn own_tables(&self, tables: u32) -> Result<Spread> {
        let (name, schema, clients) =
            (&self.workload.name, self.workload.schema, self.clients_max());
        if self.spread == SpreadChoice::Random {
            let text = format!("--spread random: each client of {name} has a table of its own");
            return Err(Error::usage(text).hint("leave --spread out"));
        }
        if tables < clients {
            let text =
                format!("{clients} clients of {name} need a table each, and there are {tables}");
            return Err(Error::usage(text).hint(format!(
                "loadgen prepare --schema {schema} --tables {clients}, or fewer --clients"
            )));
        }
        Ok(Spread::Pinned)
    }

    pub(crate) fn tables_or_default(&self) -> u32 {
        let largest = self.workloads().filter_map(Workload::largest_table).max();
        let named = || largest.unwrap_or(0).max(defaults::TABLES);
        let usual = || if self.workload.table_a_client { self.clients_max() } else { named() };
        self.tables.unwrap_or_else(usual)
    }

    pub(crate) fn prepared_per_client(&self, spread: Spread, tables: u32) -> u64 {
        let (statements, tables) = self.prepared_by_table(spread, tables);
        u64::from(statements) * u64::from(tables)
    }

    pub(crate) fn prepared_by_table(&self, spread: Spread, tables: u32) -> (u32, u32) {
        // A workload that names no table has its statements once.
        let tables = if spread == Spread::Pinned { 1 } else { tables.max(1) };
        let prepared = self.statements == StatementMode::Prepared;
        (if prepared { self.workload.prepared() } else { 0 }, tables)
    }

    /// Lists the settings, for `--list`, with up to `each` steps a search. Hides a random seed.
    pub(crate) fn list(&self, seed_is_random: bool, each: u32) -> Vec<(&'static str, String)> {
        let workload = &self.workload;
        let mut lines = vec![("workload", workload.name.clone())];
        lines.extend(self.script.iter().map(|script| ("script", script.path.clone())));
        let option =
            |(name, setting): (&String, &Setting)| format!("{name} = {}", setting.display_value());
        lines.extend(workload.options.iter().map(|setting| ("option", option(setting))));
        for transaction in &workload.transactions {
            let begins = workload.begins(transaction);
            let begins = if begins { "BEGIN … COMMIT" } else { "autocommit" };
            lines.push(("transaction", begins.to_owned()));
            for (statement, repeat) in workload.running(transaction) {
                let times = if repeat == 1 { String::new() } else { format!("  × {repeat}") };
                lines.push(("statement", statement.brief_sql(&workload.options) + &times));
            }
        }
        lines.extend(self.groups.iter().map(|group| ("beside", group.to_string())));
        lines.extend(self.list_settings(seed_is_random));
        lines.extend(self.list_times(each));
        lines
    }

    pub(crate) fn list_steps(&self) -> String {
        let step = |Step { place, of, clients, rate, repeat, .. }: Step| {
            let rate = rate.map_or_else(String::new, |rate| format!("  {rate:>8} ops/s"));
            let (clients, repeats) = (terms::clients(clients), self.repeats);
            format!("step {place:>3} of {of}  {clients:>14}{rate}  repeat {repeat} of {repeats}\n")
        };
        self.steps().into_iter().map(step).collect()
    }

    fn list_settings(&self, seed_is_random: bool) -> Vec<(&'static str, String)> {
        let or = |value: Option<String>, usual: &str| value.unwrap_or_else(|| usual.to_owned());
        let spread = match self.tables.map(|tables| self.spread_over(tables)) {
            Some(Ok(spread)) => spread.to_string(),
            _ if self.spread == SpreadChoice::Auto => {
                "pinned where the tables divide the clients".to_owned()
            }
            _ => self.spread.to_string(),
        };
        let threads = self.engine_threads.map(|n| n.to_string());
        let tables = or(self.tables.map(|n| n.to_string()), "those that are there");
        let rows = or(self.rows.map(units::count), "what the tables say");
        let of_ours = [("tables", tables), ("rows", rows)];
        let of_ours = of_ours.into_iter().filter(|_| self.tables != Some(0));
        let settings = [
            ("distribution", self.distribution.to_string()),
            ("spread", spread),
            ("statements", self.statements.to_string()),
            ("seed", if seed_is_random { "random".to_owned() } else { self.seed.to_string() }),
            ("engine threads", or(threads, "the smaller of cores and clients")),
            ("charset", or(self.charset.clone(), "utf8mb4 (utf8 before 5.5.3)")),
        ];
        of_ours.chain(settings).collect()
    }

    fn list_times(&self, each: u32) -> impl Iterator<Item = (&'static str, String)> {
        let (time, ops) = (self.stop.time(), self.stop.ops());
        let total_time = |warmup: Duration, steps: u32| {
            let total = |time| units::duration((warmup + time) * steps);
            time.map(|time| format!("{} for {}", total(time), terms::counted(steps, "step")))
        };
        let steps = self.count_steps() as u32;
        // An open loop's warm-up doubles if its backlog must drain.
        let most = total_time(self.warmup * 2, steps.saturating_mul(each)).filter(|_| each > 1);
        let Policy { on_error, errors_max, op_timeout } = self.policy;
        let lines = [
            ("warm-up", Some(units::duration(self.warmup))),
            ("time", time.map(units::duration)),
            ("at least", total_time(self.warmup, steps)),
            ("at most", most),
            ("ops", ops.map(units::count)),
            ("arrival", (!self.rates.is_empty()).then(|| self.arrival.to_string())),
            ("think", self.think.map(units::duration)),
            ("new connection after", self.reconnect_every.map(|n| terms::counted(n, "op"))),
            ("before steps", Some(self.before.to_string())),
            ("on error", Some(on_error.to_string())),
            ("errors at most", errors_max.map(|max| max.to_string())),
            ("op timeout", op_timeout.map(units::duration)),
            ("interval", Some(units::duration(self.interval))),
        ];
        lines.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

/// Makes a duration of a year at most: sums of it stay in range.
fn seconds_of(seconds: f64) -> Duration {
    let length = Duration::try_from_secs_f64(seconds).unwrap_or(limits::PHASE_MAX);
    length.min(limits::PHASE_MAX)
}

/// Refuses more steps than two weeks allow: lists multiply.
fn check_steps(steps: u64) -> Result<()> {
    const STEPS_MAX: u64 = 20_000;
    if steps <= STEPS_MAX {
        return Ok(());
    }
    Err(Error::usage(format!("{steps} steps are more than {STEPS_MAX}"))
        .hint("fewer numbers of clients, rates or repeats"))
}

fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut stream = Stream::new(seed);
    for i in (1..items.len()).rev() {
        let j = stream.below(i as u64 + 1) as usize;
        items.swap(i, j);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::knobs::Knobs;
    use crate::workload::builtin;

    #[test]
    fn plan_with_a_script_may_write() {
        let workload = crate::workload::named("point-select").expect("it is built in");
        let reads = Plan { workload, ..plan("8") };
        assert!(!reads.may_write());
        let script = Some(Arc::new(Script::of_text("")));
        assert!(Plan { script, ..reads }.may_write());
        let workload = crate::workload::script("x", b"CALL p()", "x").expect("SQL");
        let calls = Plan { workload, ..plan("8") };
        assert_eq!((calls.writes(), calls.may_write()), (false, true));
    }

    #[test]
    fn scripts_go_to_other_hosts_when_all_their_files_are_small_enough() {
        let script = |bytes| {
            let files = vec![(String::new(), vec![b' '; bytes])];
            Arc::new(Script { files, ..Script::of_text("") })
        };
        let script_of_most = Some(script(limits::AWAY_MAX - 2));
        let mut plan = Plan { script: script_of_most, groups: beside(&["delete"]), ..plan("1") };
        for (bytes, is_small) in [(2, true), (3, false)] {
            plan.groups[0].read = Some(ReadScript {
                script: script(bytes),
                after_error: AfterError::Policy,
                distribution: Distribution::Uniform,
                statements: StatementMode::Text,
            });
            assert_eq!(plan.check_away().is_ok(), is_small, "{bytes}");
        }
    }

    #[test]
    fn silence_lasts_as_long_as_an_op_may() {
        let of = |op_timeout| Policy { op_timeout, ..Policy::default() }.patience_with_ops();
        let [short, long] = [Duration::from_secs(1), Duration::from_mins(30)];
        assert_eq!(
            [None, Some(short), Some(long)].map(of),
            [limits::SILENCE, limits::SILENCE, long]
        );
    }

    #[test]
    fn a_client_of_an_open_loop_pauses_until_its_turn_comes_again() {
        let of_rates = |rates: &[f64]| Plan { rates: rates.to_vec(), ..plan("4,8") };
        let groups = beside(&["delete,rate=0.1"]);
        for (plan, seconds) in [
            (plan("8"), 0),
            (Plan { think: Some(Duration::from_secs(3)), ..plan("8") }, 3),
            (of_rates(&[100.0, 0.5]), 16),
            (Plan { groups, ..of_rates(&[100.0]) }, 10),
            // A step of 70 s.
            (of_rates(&[1e-9]), 70),
        ] {
            assert_eq!(plan.longest_pause(), Duration::from_secs(seconds));
        }
    }

    fn plan(clients: &str) -> Plan {
        resolved(Knobs { clients: Some(clients.parse().expect(clients)), ..Knobs::default() })
    }

    fn resolved(knobs: Knobs) -> Plan {
        let knobs = Knobs { repeat: Some(value::Whole(2)), ..knobs };
        knobs.resolve(builtin().remove(0), 1).expect("a plan")
    }

    fn beside(groups: &[&str]) -> Vec<Group> {
        let groups = groups.iter().map(|group| group.parse().expect("a group")).collect();
        resolved(Knobs { groups, ..Knobs::default() }).groups
    }

    #[test]
    fn repeats_are_outermost() {
        let order: Vec<(u32, u32)> =
            plan("8..32").steps().iter().map(|s| (s.repeat, s.clients)).collect();
        assert_eq!(order, [(1, 8), (1, 16), (1, 32), (2, 8), (2, 16), (2, 32)]);
    }

    #[test]
    fn each_number_of_clients_meets_each_rate() {
        let mut plan = plan("8,16");
        plan.rates = vec![1000.0, 2000.0];
        plan.repeats = 1;
        let cells: Vec<(u32, u32, Option<f64>)> =
            plan.steps().iter().map(|s| (s.of, s.clients, s.rate)).collect();
        let (slow, fast) = (Some(1000.0), Some(2000.0));
        assert_eq!(cells, [(4, 8, slow), (4, 8, fast), (4, 16, slow), (4, 16, fast)]);
        assert!(plan.list(true, 1).contains(&("arrival", "poisson".to_owned())));
        assert!(plan.list_steps().contains("2000 ops/s"), "{}", plan.list_steps());
    }

    #[test]
    fn a_list_tells_the_longest_time_when_steps_are_searches() {
        let mut plan = plan("8,16");
        (plan.rates, plan.repeats) = (vec![1000.0], 1);
        let of = |each: u32| -> Vec<String> {
            let times = plan.list(true, each).into_iter();
            let times = times.filter(|(name, _)| name.starts_with("at "));
            times.map(|(name, time)| format!("{name} {time}")).collect()
        };
        assert_eq!(of(1), ["at least 140s for 2 steps"]);
        assert_eq!(of(30), ["at least 140s for 2 steps", "at most 80m for 60 steps"]);
    }

    #[test]
    fn a_shuffle_keeps_every_cell_and_its_seed() {
        let mut shuffled = plan("1..512");
        shuffled.order = Order::Shuffled;
        let (a, b) = (shuffled.steps(), shuffled.steps());
        assert_eq!(a, b);
        let first: Vec<u32> = a.iter().take(10).map(|s| s.clients).collect();
        assert_ne!(first, shuffled.clients, "one in 3.6 million seeds keeps the order; not 1");
        let mut sorted = first;
        sorted.sort_unstable();
        assert_eq!(sorted, shuffled.clients);
    }

    #[test]
    fn pinning_needs_multiples() {
        assert_eq!(plan("8..256").spread_over(8).ok(), Some(Spread::Pinned));
        assert_eq!(plan("1..256").spread_over(8).ok(), Some(Spread::Random));
        let mut pinned = plan("8,12");
        pinned.spread = SpreadChoice::Pinned;
        let error = pinned.spread_over(8).expect_err("12 is no multiple of 8");
        assert!(error.to_string().contains("12 clients"), "{error}");
    }

    #[test]
    fn statements_are_counted_as_the_server_counts_them() {
        let plan = plan("8");
        assert_eq!(plan.prepared_per_client(Spread::Pinned, 8), 1);
        assert_eq!(plan.prepared_per_client(Spread::Random, 8), 8);
        assert_eq!(plan.prepared_by_table(Spread::Random, 8), (1, 8));
    }

    #[test]
    fn statements_of_groups_beside_are_dealt_out_when_there_are_several_addresses() {
        let plan = Plan { groups: beside(&["update-index,clients=8", "delete"]), ..plan("8") };
        // Eight clients keep to a table each; the other one prepares for all eight.
        assert_eq!(
            [1, 2, 3].map(|addresses| plan.count_prepared_beside(8, addresses)),
            [16, 12, 11]
        );
        assert_eq!([1, 2, 3].map(|addresses| plan.clients_beside_at_first(addresses)), [9, 5, 4]);
    }

    #[test]
    fn the_list_names_every_step_and_the_time() {
        let plan = plan("8..32");
        assert_eq!(plan.list_steps().lines().count(), 6);
        assert!(plan.list(true, 1).contains(&("at least", "7m for 6 steps".to_owned())));
    }

    #[test]
    fn it_says_what_is_done() {
        assert_eq!(Before::default().to_string(), "nothing");
        let all = Before {
            warm: Warm::Pool,
            ahi: Ahi::Cold,
            settle: units::parse_duration("5m").ok(),
            expect: None,
        };
        assert_eq!(all.to_string(), "warm pool, ahi cold, settle 5m");
    }
}
