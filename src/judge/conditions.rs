//! The table of conditions. Whatever a summary says of the workload, the plan, the tables, the
//! load, the suite, the server and both hosts is a condition, unless [`super::FREE`] names it.
#![allow(clippy::unnecessary_wraps, reason = "the values of one table have one form")]

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::free::is_free;
use crate::summary::{HostState, Outcome, Server, Summary, durability};

/// The value of a variable, an option or a part of a workload that is not there.
pub(crate) const ABSENT: &str = "(absent)";

/// The consequence of a difference in a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// A cell takes both; a note names the difference.
    Noted,
    /// A cell takes one of both only: the server's version and variables, by which labels differ.
    Server,
    /// A cell takes one of both only.
    Measurement,
    /// The same, and two labels are not compared.
    Operation,
}

/// The place in which a report names the value of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Below each table.
    Always,
    /// Below a table where it is not this.
    Unless(&'static str),
    /// Where it differs.
    Differing,
    /// Where it differs at the same number of clients, which it follows from.
    ByClients,
    /// In a note of its own.
    Apart,
}

/// The measurements that have a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// Every measurement.
    All,
    /// Sweeps and loads: no suite.
    Tables,
    /// Neither a load nor a suite.
    Sweeps,
}

/// One condition.
pub(crate) struct Condition {
    pub(crate) name: &'static str,
    pub(crate) weight: Weight,
    pub(crate) shown: Shown,
    pub(crate) of: Of,
    /// Its value; none where a step does not know it.
    pub(crate) value: fn(&Summary) -> Option<String>,
}

const fn condition(
    name: &'static str,
    weight: Weight,
    shown: Shown,
    value: fn(&Summary) -> Option<String>,
) -> Condition {
    Condition { name, weight, shown, of: Of::All, value }
}

impl Condition {
    const fn of(self, of: Of) -> Condition {
        Condition { of, ..self }
    }
}

use Shown::{Always, Apart, ByClients, Differing, Unless};
use Weight::{Measurement, Noted, Operation};

/// All of them in the order of importance. Options, parts of a workload's definition and variables
/// of the server are conditions, too: their names are not known before.
pub(crate) const CONDITIONS: &[Condition] = &[
    condition("tables", Operation, Always, |s| Some(s.plan.tables.to_string())).of(Of::Tables),
    condition("rows", Operation, Always, |s| Some(s.plan.rows.to_string())).of(Of::Tables),
    condition("data seed", Measurement, Always, |s| or_none(s.plan.data_seed)).of(Of::Tables),
    condition("distribution", Operation, Always, |s| Some(s.workload.distribution.clone()))
        .of(Of::Sweeps),
    condition("spread", Measurement, Always, |s| Some(s.workload.spread.to_string()))
        .of(Of::Sweeps),
    condition("statements", Operation, Always, |s| Some(s.workload.mode.to_string()))
        .of(Of::Sweeps),
    condition("SQL", Operation, Differing, |s| {
        Some(each(&s.workload.statements, |statement| statement.sql.clone()))
    }),
    condition("repeats", Operation, Differing, repeats),
    condition("transport", Measurement, Always, |s| Some(s.server.transport.clone())),
    condition("TLS", Measurement, Unless("none"), |s| or_none(s.server.tls_cipher.as_ref())),
    condition("warm-up", Measurement, Always, |s| Some(seconds(s.plan.warmup_s))).of(Of::Sweeps),
    condition("window", Measurement, Always, window),
    condition("arrival", Measurement, Unless("closed loop"), arrival),
    condition("client CPU", Measurement, Differing, client_cpu),
    condition("driver", Measurement, Differing, capabilities),
    condition("tables of", Operation, Unless("sbtest"), |s| Some(s.workload.schema.clone())),
    condition("load", Measurement, Unless("none"), loading),
    condition("charset", Measurement, Unless("the driver's"), charset),
    condition("before", Measurement, Unless("nothing"), before),
    condition("on error", Measurement, Unless("abort"), |s| Some(s.plan.on_error.to_string())),
    condition("op timeout", Measurement, Unless("none"), op_timeout),
    condition("max errors", Measurement, Differing, |s| or_none(s.plan.max_errors.as_ref())),
    condition("engine threads", Measurement, ByClients, |s| {
        Some(s.plan.engine_threads.to_string())
    }),
    condition("queues", Measurement, Apart, |s| s.plan.queues.map(|queues| queues.to_string())),
    condition("settle limit", Measurement, Differing, settle_limit),
    condition("commands beside", Measurement, Differing, commands),
    condition("arguments and instants of commands", Measurement, Differing, commands_asked),
    condition("suite", Operation, Differing, suite),
    condition("dump", Measurement, Differing, |s| or_none(s.load.as_ref()?.file.as_ref())),
    condition("loaded", Measurement, Differing, loaded),
    condition("charset of the load", Measurement, Differing, |s| {
        s.load.as_ref()?;
        or_none(s.plan.charset.as_ref())
    }),
    condition("character sets", Measurement, Differing, character_sets),
    condition("database", Measurement, Differing, |s| s.server.database.clone()),
    condition("table formats", Measurement, Differing, |s| {
        s.server.table_formats.as_ref().map(|formats| formats.join(" and "))
    }),
    condition("data", Noted, Differing, own_data),
    condition("server host", Measurement, Differing, |s| Some(s.server.host.clone())),
    condition("server hostname", Noted, Differing, |s| variable(s, "hostname")),
    condition("datadir", Noted, Differing, |s| {
        variable(s, "datadir").map(|dir| without_made(&dir))
    }),
    condition("innodb_data_home_dir", Noted, Differing, |s| place(s, "innodb_data_home_dir")),
    condition("innodb_log_group_home_dir", Noted, Differing, |s| {
        place(s, "innodb_log_group_home_dir")
    }),
    condition("innodb_undo_directory", Noted, Differing, |s| place(s, "innodb_undo_directory")),
    condition("log_bin_basename", Noted, Differing, |s| place(s, "log_bin_basename")),
    condition("tmpdir", Noted, Differing, |s| place(s, "tmpdir")),
    condition("server CPU", Measurement, Differing, |s| {
        s.server.host_facts.as_ref().map(|host| format!("{} cores of {}", host.cores, host.cpu))
    }),
    condition("server memory", Measurement, Differing, |s| {
        // The kernel's own part of it differs by some MiB from boot to boot.
        s.server.host_facts.as_ref().map(|h| format!("{:.1} GiB", gib(h.memory_bytes)))
    }),
    condition("server kernel", Measurement, Differing, |s| {
        s.server.host_facts.as_ref().map(|host| host.kernel.clone())
    }),
    condition("server governors", Measurement, Differing, |s| governors(server_host(s)?)),
    condition("server turbo", Measurement, Differing, |s| server_host(s)?.turbo.map(on_or_off)),
    condition("server NUMA nodes", Measurement, Differing, |s| counted(server_host(s)?.numa_nodes)),
    condition("server links", Measurement, Differing, |s| links(server_host(s)?)),
    condition("server process's NUMA nodes", Measurement, Differing, |s| {
        counted(server_host(s)?.server_numa_nodes)
    }),
    condition("server process's NUMA nodes here", Measurement, Differing, |s| {
        counted(client_host(s)?.server_numa_nodes)
    }),
    condition("server process's cores", Measurement, Differing, |s| {
        counted(server_host(s)?.server_cores)
    }),
    condition("server process's cores here", Measurement, Differing, |s| {
        counted(client_host(s)?.server_cores)
    }),
    condition("client on", Measurement, Apart, |s| {
        Some(if s.client.same_host { "same host" } else { "other host" }.to_owned())
    }),
    condition("client host", Noted, Differing, |s| Some(s.client.host.clone())),
    condition("client kernel", Measurement, Differing, |s| Some(s.client.kernel.clone())),
    condition("client governors", Measurement, Differing, |s| governors(client_host(s)?)),
    condition("client turbo", Measurement, Differing, |s| client_host(s)?.turbo.map(on_or_off)),
    condition("client NUMA nodes", Measurement, Differing, |s| counted(client_host(s)?.numa_nodes)),
    condition("client links", Measurement, Differing, |s| links(client_host(s)?)),
    condition("loadgen build", Measurement, Apart, |s| Some(s.loadgen.profile.clone())),
    condition("loadgen", Noted, Differing, |s| {
        let revision = s.loadgen.revision.as_deref().unwrap_or("no revision");
        Some(format!("{} ({revision})", s.loadgen.version))
    }),
    condition("driver version", Noted, Differing, |s| {
        Some(format!("{} {}", s.driver.name, s.driver.version))
    }),
    condition("class", Noted, Always, |s| s.server.class.map(|class| class.to_string())),
    condition("durability", Noted, Always, |s| {
        s.server.durability.clone().or_else(|| durability(&s.server.variables))
    }),
];

/// Variables of the server that cost time with every statement, and what they are called.
pub(crate) const OVERHEADS: [(&str, &str); 6] = [
    ("performance_schema", "performance schema"),
    ("userstat", "user statistics"),
    ("general_log", "general log"),
    ("slow_query_log", "slow query log"),
    ("long_query_time", "long_query_time"),
    ("character_set_server", "server character set"),
];

/// A condition that two steps do not share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) name: String,
    pub(crate) first: String,
    pub(crate) second: String,
    pub(crate) weight: Weight,
}

/// Name and value of a condition of a step, and what follows from a difference.
pub(crate) type Fact = (Cow<'static, str>, String, Weight);

/// The conditions of the table that a step knows, and its options.
pub(crate) fn conditions(step: &Summary) -> Vec<Fact> {
    let table = CONDITIONS.iter().filter_map(|condition| {
        Some((Cow::Borrowed(condition.name), (condition.value)(step)?, condition.weight))
    });
    table.chain(unusual_options(step)).collect()
}

/// The conditions in which two steps differ, those of the table first, variables last. What one of
/// them does not know is no difference ([`unknown`]).
pub(crate) fn differences(first: &Summary, second: &Summary) -> Vec<Difference> {
    let mut found = Vec::new();
    for condition in CONDITIONS {
        if let (Some(one), Some(other)) = ((condition.value)(first), (condition.value)(second)) {
            compare(&mut found, condition.name, one, other, condition.weight);
        }
    }
    one_by_one(&mut found, &options(first, second), &options(second, first));
    if first.workload.transactions.is_some() && second.workload.transactions.is_some() {
        one_by_one(&mut found, &definition(first), &definition(second));
    }
    found.extend(fingerprint_differences(&first.server, &second.server));
    found
}

/// Lists the versions and variables in which two servers differ.
pub(crate) fn fingerprint_differences(one: &Server, other: &Server) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut differ = |name: &str, one: &str, other: &str| {
        compare(&mut found, name, one.to_owned(), other.to_owned(), Weight::Server);
    };
    differ("version", &one.version, &other.version);
    differ("version_comment", &one.version_comment, &other.version_comment);
    // A server, or a proxy, that does not tell them has none: that is unknown.
    if one.variables.is_empty() || other.variables.is_empty() {
        return found;
    }
    let (mut ones, mut others) =
        (one.variables.iter().peekable(), other.variables.iter().peekable());
    // Both are sorted, and looking up a thousand names takes most of a large report's time.
    while let Some(name) =
        [ones.peek(), others.peek()].iter().flatten().map(|(name, _)| *name).min()
    {
        let one = ones.next_if(|(first, _)| *first == name).map_or(ABSENT, |(_, value)| value);
        let other = others.next_if(|(first, _)| *first == name).map_or(ABSENT, |(_, value)| value);
        if one != other && !is_free(&format!("server.variables.{name}")) {
            differ(name, one, other);
        }
    }
    found
}

/// Names of the conditions that one of two steps knows and the other one does not.
pub(crate) fn unknown(first: &Summary, second: &Summary) -> Vec<&'static str> {
    let table = CONDITIONS.iter().filter(|condition| {
        condition.weight > Noted
            && (condition.value)(first).is_some() != (condition.value)(second).is_some()
    });
    let mut names: Vec<&str> = table.map(|condition| condition.name).collect();
    if first.workload.transactions.is_some() != second.workload.transactions.is_some() {
        names.push("parameters");
    }
    if first.server.variables.is_empty() != second.server.variables.is_empty() {
        names.push("variables");
    }
    names
}

/// Groups steps by the conditions that they know, each group with its first step. Steps of one group
/// are compared with that one; then only the first steps need to be compared with each other.
pub(crate) fn by_knowledge<'a>(steps: &[&'a Summary]) -> Vec<(&'a Summary, Vec<&'a Summary>)> {
    let knows = |step: &'a Summary| {
        let table: Vec<bool> = CONDITIONS.iter().map(|c| (c.value)(step).is_some()).collect();
        let options: Vec<&String> = step.workload.options.keys().collect();
        let variables = !step.server.variables.is_empty();
        (table, step.workload.transactions.is_some(), variables, options)
    };
    let mut groups: Vec<(_, &Summary, Vec<&Summary>)> = Vec::new();
    for step in steps {
        let known = knows(step);
        match groups.iter_mut().find(|(other, ..)| *other == known) {
            Some((.., others)) => others.push(step),
            None => groups.push((known, step, Vec::new())),
        }
    }
    groups.into_iter().map(|(_, first, others)| (first, others)).collect()
}

fn compare(found: &mut Vec<Difference>, name: &str, first: String, second: String, weight: Weight) {
    let difference = Difference { name: name.to_owned(), first, second, weight };
    // The version is a variable, too.
    if difference.first != difference.second && !found.contains(&difference) {
        found.push(difference);
    }
}

/// Differences of two lists of facts, each of which may lack what the other one has.
fn one_by_one(found: &mut Vec<Difference>, one: &[Fact], other: &[Fact]) {
    let value = |facts: &[Fact], name: &str| {
        let fact = facts.iter().find(|(known, ..)| known == name);
        fact.map_or_else(|| ABSENT.to_owned(), |(_, value, _)| value.clone())
    };
    let mut seen = BTreeSet::new();
    for (name, _, weight) in one.iter().chain(other) {
        if seen.insert(name) {
            compare(found, name, value(one, name), value(other, name), *weight);
        }
    }
}

fn option((name, value): (&String, &u64)) -> Fact {
    (Cow::Owned(format!("option {name}")), value.to_string(), Operation)
}

fn is_usual(step: &Summary, (name, value): (&String, &u64)) -> bool {
    let defaults = step.workload.option_defaults.as_ref();
    defaults.and_then(|defaults| defaults.get(name)) == Some(value)
}

/// The options that are not as nobody sets them; all where that is not known.
fn unusual_options(step: &Summary) -> Vec<Fact> {
    let options = step.workload.options.iter();
    options.filter(|named| !is_usual(step, *named)).map(option).collect()
}

/// The options of a step but for those that the other one does not have, and nobody has set: an
/// older workload may have lacked them.
fn options(step: &Summary, other: &Summary) -> Vec<Fact> {
    let has = |name: &String| other.workload.options.contains_key(name);
    let options = step.workload.options.iter();
    options.filter(|named| has(named.0) || !is_usual(step, *named)).map(option).collect()
}

/// The parts of a workload's definition. What the answers are held against, and what the ledger
/// takes from them, does not make it another operation.
fn definition(step: &Summary) -> Vec<Fact> {
    let mut facts = Vec::new();
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let transactions = step.workload.transactions.as_ref().map(list).unwrap_or_default();
    for (number, transaction) in (1..).zip(&transactions) {
        let place = format!("transaction {number}");
        for name in ["weight", "begin"] {
            facts.push((
                Cow::Owned(format!("{place} {name}")),
                transaction[name].to_string(),
                Operation,
            ));
        }
        for (number, statement) in (1..).zip(list(&transaction["statement"])) {
            let fields = statement.as_object().into_iter().flatten();
            facts.extend(fields.filter(|(_, value)| !value.is_null()).map(|(name, value)| {
                let checks = ["expect", "missing_if", "effect"].contains(&name.as_str());
                let weight = if checks { Measurement } else { Operation };
                (
                    Cow::Owned(format!("{place} statement {number} {name}")),
                    value.to_string(),
                    weight,
                )
            }));
        }
    }
    facts
}

fn or_none<T: ToString>(value: Option<T>) -> Option<String> {
    Some(value.map_or_else(|| "none".to_owned(), |value| value.to_string()))
}

fn each<T>(all: &[T], text: fn(&T) -> String) -> String {
    all.iter().map(text).collect::<Vec<_>>().join("; ")
}

/// Gives a step that completed; none where it was cut short.
fn whole(step: &Summary) -> Option<&Summary> {
    (step.outcome == Outcome::Completed).then_some(step)
}

fn seconds(s: f64) -> String {
    format!("{s} s")
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

/// How often each statement is run; old summaries do not say.
fn repeats(step: &Summary) -> Option<String> {
    let statements = &step.workload.statements;
    let said = step.workload.option_defaults.is_some() || statements.iter().any(|s| s.repeat != 1);
    said.then(|| each(statements, |statement| statement.repeat.to_string()))
}

fn window(step: &Summary) -> Option<String> {
    Some(match (step.plan.time_s, step.plan.ops) {
        (Some(time_s), _) => seconds(time_s),
        (None, Some(ops)) => format!("{ops} ops"),
        (None, None) => "to its end".to_owned(),
    })
}

fn arrival(step: &Summary) -> Option<String> {
    Some(step.plan.arrival.map_or_else(|| "closed loop".to_owned(), |arrival| arrival.to_string()))
}

fn client_cpu(step: &Summary) -> Option<String> {
    Some(format!("{} cores of {}", step.client.cores, step.client.cpu))
}

/// Names the features that make the client library cheaper with some servers.
fn capabilities(step: &Summary) -> Option<String> {
    Some(match step.driver.capabilities.as_slice() {
        [] => "without capabilities".to_owned(),
        some => format!("with {}", some.join(" and ")),
    })
}

/// How a load put its rows into statements.
fn loading(step: &Summary) -> Option<String> {
    let Some(load) = &step.load else { return Some("none".to_owned()) };
    let mode = load.mode.as_deref().unwrap_or(&load.source);
    let bytes = load.insert_bytes.map(|bytes| format!(" of {bytes} bytes"));
    Some(format!("{mode}{}", bytes.unwrap_or_default()))
}

/// The character set of the statements.
fn charset(step: &Summary) -> Option<String> {
    let load = step.load.as_ref().map(|load| load.charset.clone());
    let charset = load.or_else(|| step.plan.charset.clone());
    Some(charset.unwrap_or_else(|| "the driver's".to_owned()))
}

/// Tells what was done before the step.
fn before(step: &Summary) -> Option<String> {
    let nothing = || Some("nothing".to_owned());
    let Some(done) = step.conditions.as_ref().and_then(|conditions| conditions.before.as_ref())
    else {
        return nothing();
    };
    let pool = match done.warm.as_str() {
        "none" | "" => None,
        "pool" => Some("rows read".to_owned()),
        other => Some(other.to_owned()),
    };
    let ahi = (!["as-is", ""].contains(&done.ahi.as_str()))
        .then(|| format!("adaptive hash index {}", done.ahi));
    let settled = done.settle.as_ref().map(|_| "settled".to_owned());
    let parts: Vec<String> = [pool, ahi, settled].into_iter().flatten().collect();
    if parts.is_empty() { nothing() } else { Some(parts.join(" and ")) }
}

fn settle_limit(step: &Summary) -> Option<String> {
    let before = step.conditions.as_ref()?.before.as_ref();
    or_none(before.and_then(|done| done.settle.as_ref()).map(|settle| seconds(settle.limit_s)))
}

fn op_timeout(step: &Summary) -> Option<String> {
    or_none(step.plan.op_timeout_s.map(seconds))
}

fn commands(step: &Summary) -> Option<String> {
    let commands = whole(step)?.experiment.as_ref().map_or(&[][..], |e| e.commands.as_slice());
    or_none((!commands.is_empty()).then(|| each(commands, |command| command.program.clone())))
}

/// Tells commands apart by their arguments and instants.
fn commands_asked(step: &Summary) -> Option<String> {
    let commands = &whole(step)?.experiment.as_ref()?.commands;
    let asked: Option<Vec<&str>> = commands.iter().map(|c| c.asked.as_deref()).collect();
    Some(asked?.join(" "))
}

fn suite(step: &Summary) -> Option<String> {
    let tests = &whole(step)?.suite.as_ref()?.tests;
    let named = each(tests, |test| format!("{}: {}", test.name, test.run.join(" ")));
    Some(format!("{} tests: {named}", tests.len()))
}

/// Tells the rows, statements and bytes of a load, and its tables.
fn loaded(step: &Summary) -> Option<String> {
    let load = whole(step)?.load.as_ref()?;
    let (source, rows, statements, bytes) = (&load.source, load.rows, load.statements, load.bytes);
    let tables = each(&load.tables, |table| format!("{} {}", table.table, table.rows));
    Some(format!("{source}, {rows} rows in {statements} statements of {bytes} bytes: {tables}"))
}

/// The size of tables of which no rows are known, to the next power of two: it is an estimate.
fn own_data(step: &Summary) -> Option<String> {
    let bytes = step.server.data_bytes.filter(|_| step.plan.tables == 0)?;
    let kib = (bytes as f64 / 1024.0).log2().round().exp2();
    Some(if kib < 1024.0 {
        format!("about {kib} KiB")
    } else {
        format!("about {} MiB", kib / 1024.0)
    })
}

fn character_sets(step: &Summary) -> Option<String> {
    let sets = &step.load.as_ref()?.character_sets;
    let sets: Vec<String> = sets.iter().map(|(name, value)| format!("{name} {value}")).collect();
    Some(sets.join(", "))
}

fn variable(step: &Summary, name: &str) -> Option<String> {
    step.server.variables.get(name).cloned()
}

/// Where a server has some of its files, which may be another disk; what is below its data directory
/// is told from there.
fn place(step: &Summary, name: &str) -> Option<String> {
    let (place, datadir) = (variable(step, name)?, variable(step, "datadir")?);
    let below = place.strip_prefix(&datadir).unwrap_or(&place).trim_start_matches("./");
    Some(without_made(below))
}

/// A path without the number of a sandbox's own directory.
fn without_made(path: &str) -> String {
    let made = |part: &str| {
        let number = part.strip_prefix("loadgen-").unwrap_or_default();
        number.len() == 16 && number.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let parts = path.split('/').map(|part| if made(part) { "loadgen-*" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

fn client_host(step: &Summary) -> Option<&HostState> {
    step.conditions.as_ref()?.client_host.as_ref()
}

fn server_host(step: &Summary) -> Option<&HostState> {
    step.conditions.as_ref()?.server_host.as_ref()
}

fn governors(host: &HostState) -> Option<String> {
    let all: Vec<String> =
        host.governors.iter().map(|(name, count)| format!("{name} of {count}")).collect();
    (!all.is_empty()).then(|| all.join(" and "))
}

fn on_or_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

fn counted(count: Option<u32>) -> Option<String> {
    count.map(|count| count.to_string())
}

fn links(host: &HostState) -> Option<String> {
    // Those of containers and tunnels come and go.
    let passing = ["veth", "docker", "br-", "virbr", "cni", "tun", "tap", "wg"];
    let lasting =
        host.links.iter().filter(|link| !passing.iter().any(|name| link.name.starts_with(name)));
    let all: Vec<String> =
        lasting.map(|link| format!("{} of {} Mbit/s", link.name, link.mbit_per_s)).collect();
    (!all.is_empty()).then(|| all.join(" and "))
}
