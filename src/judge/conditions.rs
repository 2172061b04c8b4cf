//! The table of conditions. Whatever a summary says of the workload, the plan, the tables, the
//! load, the suite, the server and both hosts is a condition, unless [`FREE`] names it.
#![allow(clippy::unnecessary_wraps, reason = "the values of one table have one form")]

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::summary::{HostFacts, HostState, Outcome, Server, Summary, durability};
use crate::terms::is_identity;

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
    Always,
    /// Below a table where it is not this.
    Unless(&'static str),
    Differing,
    /// Where it differs at the same number of clients, which it follows from.
    ByClients,
    Apart,
}

/// The measurements that have a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    All,
    /// Sweeps and loads: no suite.
    Tables,
    /// Neither a load nor a suite.
    Sweeps,
}

pub(crate) struct Condition {
    pub(crate) name: &'static str,
    pub(crate) weight: Weight,
    pub(crate) shown: Shown,
    pub(crate) of: Of,
    /// Its value; none where a step does not know it.
    pub(crate) value: fn(&Summary) -> Option<String>,
}

macro_rules! conditions {
    ($($name:literal $weight:ident $shown:ident$(($usual:literal))? $of:ident
        |$s:ident| $value:expr;)*) => {
        /// All of them in the order of importance. Options, parts of a workload's definition and
        /// variables of the server are conditions, too: their names are not known before.
        pub(crate) const CONDITIONS: &[Condition] = &[$(Condition {
            name: $name,
            weight: Weight::$weight,
            shown: Shown::$shown$(($usual))?,
            of: Of::$of,
            value: |$s| $value.map(|value| value.to_string()),
        }),*];
    };
}

conditions! {
    "tables" Operation Always Tables |s| Some(s.plan.tables);
    "rows" Operation Always Tables |s| Some(s.plan.rows);
    "data seed" Measurement Always Tables |s| or_none(s.plan.data_seed);
    "distribution" Operation Always Sweeps |s| Some(&s.workload.distribution);
    "spread" Measurement Always Sweeps |s| Some(s.workload.spread);
    "statements" Operation Always Sweeps |s| Some(s.workload.mode);
    "SQL" Operation Differing All |s| Some(each(&s.workload.statements, |one| one.sql.clone()));
    "repeats" Operation Differing All |s| repeats(s);
    "transport" Measurement Always All |s| Some(&s.server.transport);
    "TLS" Measurement Unless("none") All |s| or_none(s.server.tls_cipher.as_ref());
    "warm-up" Measurement Always Sweeps |s| Some(seconds(s.plan.warmup_s));
    "window" Measurement Always All |s| Some(window(s));
    "arrival" Measurement Unless("closed loop") All |s| or("closed loop", s.plan.arrival);
    "client CPU" Measurement Differing All |s| Some(cores(s.client.cores, &s.client.cpu));
    "driver" Measurement Differing All |s| Some(capabilities(s));
    "tables of" Operation Unless("sbtest") All |s| Some(&s.workload.schema);
    "load" Measurement Unless("none") All |s| or_none(loading(s));
    "charset" Measurement Unless("the driver's") All |s| or("the driver's", charset(s));
    "before" Measurement Unless("nothing") All |s| Some(before(s));
    "on error" Measurement Unless("abort") All |s| Some(s.plan.on_error);
    "op timeout" Measurement Unless("none") All |s| or_none(s.plan.op_timeout_s.map(seconds));
    "think" Measurement Unless("none") Sweeps |s| or_none(s.plan.think_s.map(seconds));
    "max errors" Measurement Differing All |s| or_none(s.plan.max_errors.as_ref());
    "engine threads" Measurement ByClients All |s| Some(s.plan.engine_threads);
    "queues" Measurement Apart All |s| s.plan.queues;
    "settle limit" Measurement Differing All |s| settle_limit(s);
    "commands beside" Measurement Differing All |s| commands(s);
    "arguments and instants of commands" Measurement Differing All |s| commands_asked(s);
    "suite" Operation Differing All |s| suite(s);
    "dump" Measurement Differing All |s| or_none(s.load.as_ref()?.file.as_ref());
    "loaded" Measurement Differing All |s| loaded(s);
    "charset of the load" Measurement Differing All |s|
        s.load.as_ref().and(or_none(s.plan.charset.as_ref()));
    "character sets" Measurement Differing All |s| character_sets(s);
    "database" Measurement Differing All |s| s.server.database.as_ref();
    "table formats" Measurement Differing All |s|
        Some(s.server.table_formats.as_ref()?.join(" and "));
    "data" Noted Differing All |s| own_data(s);
    "server host" Measurement Differing All |s| Some(&s.server.host);
    "server hostname" Noted Differing All |s| variable(s, "hostname");
    "datadir" Noted Differing All |s| variable(s, "datadir").map(without_made);
    "innodb_data_home_dir" Noted Differing All |s| place(s, "innodb_data_home_dir");
    "innodb_log_group_home_dir" Noted Differing All |s| place(s, "innodb_log_group_home_dir");
    "innodb_undo_directory" Noted Differing All |s| place(s, "innodb_undo_directory");
    "log_bin_basename" Noted Differing All |s| place(s, "log_bin_basename");
    "tmpdir" Noted Differing All |s| place(s, "tmpdir");
    "server CPU" Measurement Differing All |s| server_facts(s).map(|h| cores(h.cores, &h.cpu));
    "server memory" Measurement Differing All |s| memory(s);
    "server kernel" Measurement Differing All |s| server_facts(s).map(|host| &host.kernel);
    "server governors" Measurement Differing All |s| governors(server_host(s)?);
    "server turbo" Measurement Differing All |s| server_host(s)?.turbo.map(on_or_off);
    "server NUMA nodes" Measurement Differing All |s| server_host(s)?.numa_nodes;
    "server links" Measurement Differing All |s| links(server_host(s)?);
    "server process's NUMA nodes" Measurement Differing All |s| server_host(s)?.server_numa_nodes;
    "server process's NUMA nodes here" Measurement Differing All |s|
        client_host(s)?.server_numa_nodes;
    "server process's cores" Measurement Differing All |s| server_host(s)?.server_cores;
    "server process's cores here" Measurement Differing All |s| client_host(s)?.server_cores;
    "client on" Measurement Apart All |s|
        Some(if s.client.same_host { "same host" } else { "other host" });
    "client host" Noted Differing All |s| Some(&s.client.host);
    "client kernel" Measurement Differing All |s| Some(&s.client.kernel);
    "client governors" Measurement Differing All |s| governors(client_host(s)?);
    "client turbo" Measurement Differing All |s| client_host(s)?.turbo.map(on_or_off);
    "client NUMA nodes" Measurement Differing All |s| client_host(s)?.numa_nodes;
    "client links" Measurement Differing All |s| links(client_host(s)?);
    "loadgen build" Measurement Apart All |s| Some(&s.loadgen.profile);
    "loadgen" Noted Differing All |s| Some(version(s));
    "driver version" Noted Differing All |s|
        Some(format!("{} {}", s.driver.name, s.driver.version));
    "class" Noted Always All |s| s.server.class;
    "durability" Noted Always All |s|
        s.server.durability.clone().or_else(|| durability(&s.server.variables));
}

/// Variables of the server that cost time with every statement, and what they are called.
pub(crate) const OVERHEADS: [(&str, &str); 6] = [
    ("performance_schema", "performance schema"),
    ("userstat", "user statistics"),
    ("general_log", "general log"),
    ("slow_query_log", "slow query log"),
    ("long_query_time", "long_query_time"),
    ("character_set_server", "server character set"),
];

/// Why fields of a summary are no condition, and their paths; a path stands for all below it.
/// Variables of the server that are free have a list of their own (src/terms/variables.rs).
pub const FREE: &[(&str, &str)] = &[
    ("the form of the file", "schema"),
    ("names the invocation", "run_id"),
    ("names the step", "step_id"),
    ("names the row", "label"),
    ("the user's own words", "notes"),
    ("what does not complete fills no cell", "outcome"),
    ("belongs to the outcome", "reason"),
    ("names the table", "workload.name"),
    ("the statements and the transactions tell what was run", "workload.built_in"),
    ("follows from the SQL", "workload.statements.kind"),
    ("the values of the options count", "workload.option_defaults"),
    ("follows from the statements", "workload.unfollowed"),
    ("names the column", "plan.clients plan.rate"),
    ("repeats draw other keys of the same distribution", "plan.seed"),
    ("counts the repeats", "plan.repeat_index plan.repeats"),
    ("a sandbox takes any free one", "server.port"),
    ("a step in which a condition changed has no result", "server.settings_changed"),
    ("counters of the window", "server.status"),
    ("costs of the window", "server.probed"),
    (
        "grows with writes; tables and rows are conditions, and of other tables it is noted",
        "server.data_bytes",
    ),
    ("the variable innodb_buffer_pool_size is a condition", "server.buffer_pool_bytes"),
    ("a cost of the window", "client.user_s client.sys_s client.us_per_op client.threads"),
    ("a cost of the process", "client.max_rss_bytes"),
    ("a time", "client.rtt_us measured_s experiment.commands.at_s conditions.before.settle.took_s"),
    ("a time", "conditions.client_host.covered_s conditions.server_host.covered_s"),
    ("a counter", "client.net_rx_bytes client.net_tx_bytes"),
    ("a counter", "conditions.client_host.throttled conditions.client_host.swapped_pages"),
    ("a counter", "conditions.client_host.links.rx_bytes conditions.client_host.links.tx_bytes"),
    ("a counter", "conditions.server_host.throttled conditions.server_host.swapped_pages"),
    ("a counter", "conditions.server_host.links.rx_bytes conditions.server_host.links.tx_bytes"),
    ("the verdict judges it", "client.share"),
    ("an instant", "started_at"),
    ("the result", "totals latency timeline outages ledger load.rows_per_s"),
    ("the result", "suite.tests.wall_s suite.tests.user_s suite.tests.sys_s"),
    ("names a file", "record suite.output experiment.commands.output"),
    ("the rows are counted after the clock has stopped", "load.verified"),
    ("a suite with a failed test does not complete", "suite.tests.status"),
    ("what follows from the rest", "warnings verdict"),
    ("what the profile set is in the other fields", "experiment.profile"),
    ("names the cell of the profile", "experiment.key"),
    ("rows, warm-up and window are conditions", "experiment.scale"),
    ("names a row", "experiment.base_label"),
    ("a warning tells it", "experiment.written_by"),
    ("what the command came to", "experiment.commands.exit"),
    ("a warning judges it", "conditions.before.ahi_hits conditions.before.settle.complete"),
    ("follows from the server's version", "conditions.before.settle.unknown"),
    (
        "levels that the warnings judge",
        "conditions.before.settle.first conditions.before.settle.last conditions.at_start",
    ),
    ("readings that the warnings judge", "conditions.window"),
    ("follows from distribution and rows, and counts", "conditions.keys"),
    ("decides a warning only", "conditions.expected_class"),
];

/// Tells whether a path, without positions in lists, is free or lies below one that is.
pub fn is_free(path: &str) -> bool {
    let below = |free: &str| {
        path.strip_prefix(free).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    FREE.iter().flat_map(|(_, paths)| paths.split(' ')).any(below)
        || path.strip_prefix("server.variables.").is_some_and(is_identity)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) name: String,
    pub(crate) first: String,
    pub(crate) second: String,
    pub(crate) weight: Weight,
}

/// Name and value of a condition of a step, and what follows from a difference.
pub(crate) type Fact = (Cow<'static, str>, String, Weight);

fn values(step: &Summary) -> impl Iterator<Item = (&'static Condition, Option<String>)> {
    CONDITIONS.iter().map(|condition| (condition, (condition.value)(step)))
}

/// Lists the conditions of the table that a step knows, and its options.
pub(crate) fn conditions(step: &Summary) -> Vec<Fact> {
    let table = values(step)
        .filter_map(|(known, value)| Some((Cow::Borrowed(known.name), value?, known.weight)));
    // All options where it is not known what they usually are.
    table.chain(options(step, |_| false)).collect()
}

/// Lists the conditions in which two steps differ, those of the table first, variables last. What one
/// of them does not know is no difference ([`unknown`]).
pub(crate) fn differences(first: &Summary, second: &Summary) -> Vec<Difference> {
    let mut found = Vec::new();
    for ((condition, one), (_, other)) in values(first).zip(values(second)) {
        if let Some((one, other)) = one.zip(other) {
            compare(&mut found, condition.name, one, other, condition.weight);
        }
    }
    // An option that the other one lacks, and nobody has set: an older workload may not have had it.
    let shared = |step: &Summary, other: &Summary| -> Vec<Fact> {
        options(step, |name| other.workload.options.contains_key(name)).collect()
    };
    one_by_one(&mut found, &shared(first, second), &shared(second, first));
    if first.workload.transactions.is_some() && second.workload.transactions.is_some() {
        one_by_one(&mut found, &definition(first), &definition(second));
    }
    found.extend(fingerprint_differences(&first.server, &second.server));
    found
}

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
        if one != other && !is_identity(name) {
            differ(name, one, other);
        }
    }
    found
}

/// Names the conditions that one of two steps knows and the other one does not.
pub(crate) fn unknown(first: &Summary, second: &Summary) -> Vec<&'static str> {
    let table = values(first).zip(values(second)).filter(|((condition, one), (_, other))| {
        condition.weight > Weight::Noted && one.is_some() != other.is_some()
    });
    let mut names: Vec<&str> = table.map(|((condition, _), _)| condition.name).collect();
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
        let table: Vec<bool> = values(step).map(|(_, value)| value.is_some()).collect();
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

/// Adds the differences of two lists of facts, each of which may lack what the other one has.
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

/// Lists the options that count, or are not as nobody sets them.
fn options(step: &Summary, counts: impl Fn(&String) -> bool) -> impl Iterator<Item = Fact> {
    let usual = step.workload.option_defaults.as_ref();
    let is_usual = move |name, value| usual.and_then(|usual| usual.get(name)) == Some(value);
    let named = step.workload.options.iter();
    named.filter(move |(name, value)| counts(name) || !is_usual(*name, *value)).map(
        |(name, value)| {
            (Cow::Owned(format!("option {name}")), value.to_string(), Weight::Operation)
        },
    )
}

/// Lists the parts of a workload's definition. What the answers are held against, and what the ledger
/// takes from them, does not make it another operation.
fn definition(step: &Summary) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut fact = |name: String, value: &serde_json::Value, weight| {
        facts.push((Cow::Owned(name), value.to_string(), weight));
    };
    let transactions = step.workload.transactions.iter().filter_map(|all| all.as_array()).flatten();
    for (number, transaction) in (1..).zip(transactions) {
        for name in ["weight", "begin"] {
            fact(format!("transaction {number} {name}"), &transaction[name], Weight::Operation);
        }
        for (nth, statement) in (1..).zip(transaction["statement"].as_array().into_iter().flatten())
        {
            let fields = statement.as_object().into_iter().flatten();
            for (name, value) in fields.filter(|(_, value)| !value.is_null()) {
                let checks = ["expect", "missing_if", "effect"].contains(&name.as_str());
                let weight = if checks { Weight::Measurement } else { Weight::Operation };
                fact(format!("transaction {number} statement {nth} {name}"), value, weight);
            }
        }
    }
    facts
}

fn or<T: ToString>(usual: &str, value: Option<T>) -> Option<String> {
    Some(value.map_or_else(|| usual.to_owned(), |value| value.to_string()))
}

fn or_none<T: ToString>(value: Option<T>) -> Option<String> {
    or("none", value)
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

fn cores(count: u32, cpu: &str) -> String {
    format!("{count} cores of {cpu}")
}

/// Tells how often each statement is run; old summaries do not say.
fn repeats(step: &Summary) -> Option<String> {
    let statements = &step.workload.statements;
    let said = step.workload.option_defaults.is_some() || statements.iter().any(|s| s.repeat != 1);
    said.then(|| each(statements, |statement| statement.repeat.to_string()))
}

fn window(step: &Summary) -> String {
    match (step.plan.time_s, step.plan.ops) {
        (Some(time_s), _) => seconds(time_s),
        (None, Some(ops)) => format!("{ops} ops"),
        (None, None) => "to its end".to_owned(),
    }
}

/// Names the features that make the client library cheaper with some servers.
fn capabilities(step: &Summary) -> String {
    match step.driver.capabilities.as_slice() {
        [] => "without capabilities".to_owned(),
        some => format!("with {}", some.join(" and ")),
    }
}

fn loading(step: &Summary) -> Option<String> {
    let load = step.load.as_ref()?;
    let mode = load.mode.as_deref().unwrap_or(&load.source);
    let bytes = load.insert_bytes.map_or_else(String::new, |bytes| format!(" of {bytes} bytes"));
    Some(format!("{mode}{bytes}"))
}

fn charset(step: &Summary) -> Option<&String> {
    step.load.as_ref().map(|load| &load.charset).or(step.plan.charset.as_ref())
}

fn before(step: &Summary) -> String {
    let done = step.conditions.as_ref().and_then(|conditions| conditions.before.as_ref());
    let Some(done) = done else { return "nothing".to_owned() };
    let pool = match done.warm.as_str() {
        "none" | "" => None,
        "pool" => Some("rows read".to_owned()),
        other => Some(other.to_owned()),
    };
    let ahi = (!["as-is", ""].contains(&done.ahi.as_str()))
        .then(|| format!("adaptive hash index {}", done.ahi));
    let settled = done.settle.as_ref().map(|_| "settled".to_owned());
    let parts: Vec<String> = [pool, ahi, settled].into_iter().flatten().collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(" and ") }
}

fn settle_limit(step: &Summary) -> Option<String> {
    let settled = step.conditions.as_ref()?.before.as_ref().and_then(|done| done.settle.as_ref());
    or_none(settled.map(|settle| seconds(settle.limit_s)))
}

fn commands(step: &Summary) -> Option<String> {
    let commands = whole(step)?.experiment.as_ref().map_or(&[][..], |e| e.commands.as_slice());
    or_none((!commands.is_empty()).then(|| each(commands, |command| command.program.clone())))
}

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

fn character_sets(step: &Summary) -> Option<String> {
    let sets = step.load.as_ref()?.character_sets.iter();
    Some(sets.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", "))
}

/// Tells the size of tables of which no rows are known, to the next power of two: it is an estimate.
fn own_data(step: &Summary) -> Option<String> {
    let bytes = step.server.data_bytes.filter(|_| step.plan.tables == 0)?;
    let kib = (bytes as f64 / 1024.0).log2().round().exp2();
    let (size, unit) = if kib < 1024.0 { (kib, "KiB") } else { (kib / 1024.0, "MiB") };
    Some(format!("about {size} {unit}"))
}

fn variable<'a>(step: &'a Summary, name: &str) -> Option<&'a str> {
    step.server.variables.get(name).map(String::as_str)
}

/// Tells where a server has some of its files, which may be another disk; what is below its data
/// directory is told from there.
fn place(step: &Summary, name: &str) -> Option<String> {
    let (place, datadir) = (variable(step, name)?, variable(step, "datadir")?);
    Some(without_made(place.strip_prefix(datadir).unwrap_or(place).trim_start_matches("./")))
}

/// Shows a path without the number of a sandbox's own directory.
fn without_made(path: &str) -> String {
    let made = |part: &str| {
        let number = part.strip_prefix("loadgen-").unwrap_or_default();
        number.len() == 16 && number.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let parts = path.split('/').map(|part| if made(part) { "loadgen-*" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// Tells the memory; the kernel's own part of it differs by some MiB from boot to boot.
fn memory(step: &Summary) -> Option<String> {
    let bytes = server_facts(step)?.memory_bytes;
    Some(format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)))
}

fn version(step: &Summary) -> String {
    let revision = step.loadgen.revision.as_deref().unwrap_or("no revision");
    format!("{} ({revision})", step.loadgen.version)
}

fn server_facts(step: &Summary) -> Option<&HostFacts> {
    step.server.host_facts.as_ref()
}

fn client_host(step: &Summary) -> Option<&HostState> {
    step.conditions.as_ref()?.client_host.as_ref()
}

fn server_host(step: &Summary) -> Option<&HostState> {
    step.conditions.as_ref()?.server_host.as_ref()
}

fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn governors(host: &HostState) -> Option<String> {
    joined(host.governors.iter().map(|(name, count)| format!("{name} of {count}")))
}

fn links(host: &HostState) -> Option<String> {
    // Those of containers and tunnels come and go.
    let passing = ["veth", "docker", "br-", "virbr", "cni", "tun", "tap", "wg"];
    let lasting =
        host.links.iter().filter(|link| !passing.iter().any(|name| link.name.starts_with(name)));
    joined(lasting.map(|link| format!("{} of {} Mbit/s", link.name, link.mbit_per_s)))
}

fn joined(all: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = all.collect();
    (!all.is_empty()).then(|| all.join(" and "))
}
