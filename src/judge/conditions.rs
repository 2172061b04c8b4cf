//! The table of conditions. Whatever a summary says of the workload, the plan, the tables, the
//! load, the suite, the server and both hosts is a condition, unless `tests/reference/free.rs` says why not.
#![allow(clippy::unnecessary_wraps, reason = "the values of one table have one form")]

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::mysql::facts::without_advertisement;
use crate::summary::{
    Driver, Group, HostFacts, HostState, Link, Outcome, Script, Server, Summary, Workload,
    durability,
};
use crate::terms::{self, is_identity, joined};
use crate::workload::name_part;

/// No frame of Ethernet is shorter: a statement is one at least each way.
const FRAME_MIN_BYTES: u64 = 60;

/// The value of a variable, an option or a part of a workload that is not there.
pub(crate) const ABSENT: &str = "(absent)";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Weight {
    /// A cell takes both; a note names the difference.
    Noted,
    /// A cell takes both of one invocation, with a note, for hosts change while it goes on; of several
    /// invocations one only.
    Host,
    /// A cell takes one of both only: the server's version and variables, by which labels differ.
    Server,
    /// A cell takes one of both only.
    Measurement,
    /// The same, and two labels are not compared.
    Operation,
}

/// The place in which a report names the value of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShownIn {
    Always,
    /// Below a table where it is not this.
    Unless(&'static str),
    Differing,
    /// Only if it differs at the same number of clients, which it follows from.
    ByClients,
    Apart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldBy {
    All,
    /// Sweeps and loads: no suite.
    Tables,
    /// Neither a load nor a suite.
    Sweeps,
}

pub(crate) struct Condition {
    pub(crate) name: &'static str,
    pub(crate) weight: Weight,
    pub(crate) shown: ShownIn,
    pub(crate) of: HeldBy,
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
            shown: ShownIn::$shown$(($usual))?,
            of: HeldBy::$of,
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
    "script" Operation Differing All |s| s.workload.script.as_ref().map(script_files);
    "options of the script" Operation Differing All |s|
        s.workload.script.as_ref().map(script_options);
    "groups beside" Measurement Unless("none") All |s| or_none(groups(s));
    "statements of groups beside" Measurement Differing All |s| or_none(statements_of_groups(s));
    "transport" Measurement Always All |s| Some(&s.server.transport);
    "addresses" Measurement Unless("1") Sweeps |s| Some(s.addresses.len().max(1));
    "TLS" Measurement Unless("none") All |s| or_none(s.server.tls_cipher.as_ref());
    "warm-up" Measurement Always Sweeps |s| Some(seconds(s.plan.warmup_s));
    "window" Measurement Always All |s| Some(window(s));
    "arrival" Measurement Unless("closed loop") All |s| or("closed loop", s.plan.arrival);
    "client CPU" Host Differing All |s| Some(cores(s.client.cores, &s.client.cpu));
    "driver" Measurement Differing All |s| Some(driver(s));
    "tables of" Operation Unless("sbtest") All |s| Some(&s.workload.schema);
    "load" Measurement Unless("none") All |s| or_none(loading(s));
    "charset" Measurement Unless("the driver's") All |s|
        or("the driver's", s.load.as_ref().map(|load| &load.charset).or(s.plan.charset.as_ref()));
    "before" Measurement Unless("nothing") All |s| or("nothing", before(s));
    "on error" Measurement Unless("abort") All |s| Some(s.plan.on_error);
    "begins again after errors" Measurement Unless("none") All |s|
        or_none(s.plan.begins_again.as_ref());
    "op timeout" Measurement Unless("none") All |s| or_none(s.plan.op_timeout_s.map(seconds));
    "think" Measurement Unless("none") Sweeps |s| or_none(s.plan.think_s.map(seconds));
    "reconnect every" Measurement Unless("never") Sweeps |s|
        or("never", s.plan.reconnect_every);
    "max errors" Measurement Differing All |s| or_none(s.plan.max_errors.as_ref());
    // Within an invocation threads and queues follow from the cores.
    "engine threads" Host ByClients All |s| Some(s.plan.engine_threads);
    "queues" Host ByClients All |s| s.plan.queues;
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
    "server hostname" Noted Differing All |s| s.variable("hostname");
    "datadir" Noted Differing All |s| datadir(s);
    "innodb_data_home_dir" Noted Differing All |s| place(s, "innodb_data_home_dir");
    "innodb_log_group_home_dir" Noted Differing All |s| place(s, "innodb_log_group_home_dir");
    "innodb_undo_directory" Noted Differing All |s| place(s, "innodb_undo_directory");
    "log_bin_basename" Noted Differing All |s| place(s, "log_bin_basename");
    "tmpdir" Noted Differing All |s| place(s, "tmpdir");
    "server CPU" Host Differing All |s| server_facts(s).map(|h| cores(h.cores, &h.cpu));
    // The kernel's own part of it differs by some MiB from boot to boot.
    "server memory" Host Differing All |s| server_facts(s)
        .map(|host| format!("{:.1} GiB", host.memory_bytes as f64 / f64::from(1 << 30)));
    "server kernel" Host Differing All |s| server_facts(s).map(|host| &host.kernel);
    "server governors" Host Differing All |s| governors(server_host(s)?);
    "server turbo" Host Differing All |s| server_host(s)?.turbo.map(on_or_off);
    "server NUMA nodes" Host Differing All |s| server_host(s)?.numa_nodes;
    "server links" Host Differing All |s| links(s, server_host(s)?);
    "server process's NUMA nodes" Host Differing All |s| server_host(s)?.server_numa_nodes;
    "server process's NUMA nodes here" Host Differing All |s|
        client_host(s)?.server_numa_nodes;
    "server process's cores" Host Differing All |s| server_host(s)?.server_cores;
    "server process's cores here" Host Differing All |s| client_host(s)?.server_cores;
    "client on" Measurement Apart All |s|
        Some(if s.client.same_host { "same host" } else { "other host" });
    "client host" Noted Differing All |s| Some(&s.client.host);
    "client kernel" Host Differing All |s| Some(&s.client.kernel);
    "client governors" Host Differing All |s| governors(client_host(s)?);
    "client turbo" Host Differing All |s| client_host(s)?.turbo.map(on_or_off);
    "client NUMA nodes" Host Differing All |s| client_host(s)?.numa_nodes;
    "client links" Host Differing All |s| links(s, client_host(s)?);
    "loadgen build" Measurement Apart All |s| Some(&s.loadgen.profile);
    "loadgen" Noted Differing All |s| s.loadgen.revision.as_deref().or(Some("no revision"))
        .map(|revision| format!("{} ({revision})", s.loadgen.version));
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

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

pub(crate) fn conditions(step: &Summary) -> Vec<Fact> {
    let table = values(step)
        .filter_map(|(known, value)| Some((Cow::Borrowed(known.name), value?, known.weight)));
    let set = step.workload.options.iter().filter(|(name, _)| is_set(step, name));
    let options = set.map(|(name, value)| {
        (Cow::Owned(format!("option {name}")), value.to_string(), Weight::Operation)
    });
    table.chain(options).collect()
}

/// Lists those of the table first, variables last. A condition that one does not know is no difference ([`unknown`]).
pub(crate) fn differences(first: &Summary, second: &Summary) -> Vec<Difference> {
    let mut found = differences_in(first, second, |_| true);
    by_name(&mut found, &first.workload.options, &second.workload.options, |name| {
        // An option that one lacks, and nobody has set: an older workload may not have had it.
        let steps = [first, second];
        let counts = steps.iter().all(|step| step.workload.options.contains_key(name))
            || steps.iter().any(|step| is_set(step, name));
        counts.then(|| (format!("option {name}"), Weight::Operation))
    });
    if let Some((first, second)) = definition(first).zip(definition(second)) {
        by_name(&mut found, &first, &second, |name| {
            // Expected answers, and the values that the ledger takes from answers, do not make it another operation.
            let checks = [" expect", " missing_if", " effect"].iter().any(|of| name.ends_with(of));
            Some((name.to_owned(), if checks { Weight::Measurement } else { Weight::Operation }))
        });
    }
    found.extend(fingerprint_differences(&first.server, &second.server));
    found
}

/// Lists the differences in those conditions of the table that count.
pub(crate) fn differences_in(
    first: &Summary,
    second: &Summary,
    counts: impl Fn(&Condition) -> bool,
) -> Vec<Difference> {
    let mut found = Vec::new();
    for condition in CONDITIONS.iter().filter(|condition| counts(condition)) {
        if let Some((first, second)) = (condition.value)(first).zip((condition.value)(second)) {
            compare(&mut found, condition.name, first, second, condition.weight);
        }
    }
    found
}

pub(crate) fn fingerprint_differences(first: &Server, second: &Server) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(&mut found, "version", first.version.clone(), second.version.clone(), Weight::Server);
    // Older summaries have what the build advertises.
    let comment = |server: &Server| without_advertisement(&server.version_comment).to_owned();
    compare(&mut found, "version_comment", comment(first), comment(second), Weight::Server);
    // A server, or a proxy, that does not tell them has none: that is unknown.
    let same = first.variables.is_same(&second.variables);
    if !same && !first.variables.is_empty() && !second.variables.is_empty() {
        by_name(&mut found, &first.variables, &second.variables, |name| {
            (!is_identity(name)).then(|| (name.to_owned(), Weight::Server))
        });
    }
    found
}

/// Adds the differences of two sorted lists, each of which may lack what the other one has; `named`
/// names what counts. Looking up a thousand names would take most of a large report's time.
fn by_name<V: PartialEq + ToString>(
    found: &mut Vec<Difference>,
    first: &BTreeMap<String, V>,
    second: &BTreeMap<String, V>,
    named: impl Fn(&str) -> Option<(String, Weight)>,
) {
    let text = |value: Option<&V>| value.map_or_else(|| ABSENT.to_owned(), V::to_string);
    let (mut ones, mut others) = (first.iter().peekable(), second.iter().peekable());
    while let Some(name) = ones.peek().into_iter().chain(others.peek()).map(|(name, _)| *name).min()
    {
        let first = ones.next_if(|(next, _)| *next == name).map(|(_, value)| value);
        let second = others.next_if(|(next, _)| *next == name).map(|(_, value)| value);
        if first != second
            && let Some((name, weight)) = named(name)
        {
            compare(found, &name, text(first), text(second), weight);
        }
    }
}

/// Lists the conditions of the hosts with a step's values; none where it does not know one.
pub(crate) fn of_hosts(step: &Summary) -> Vec<Option<String>> {
    let of_hosts = CONDITIONS.iter().filter(|condition| condition.weight == Weight::Host);
    of_hosts.map(|condition| (condition.value)(step)).collect()
}

fn knowledge(step: &Summary) -> Vec<(&'static str, Weight, bool)> {
    let table = values(step).map(|(known, value)| (known.name, known.weight, value.is_some()));
    let others = [
        ("parameters", Weight::Operation, step.workload.transactions.is_some()),
        ("variables", Weight::Server, !step.server.variables.is_empty()),
    ];
    table.chain(others).collect()
}

pub(crate) fn unknown(first: &Summary, second: &Summary) -> Vec<&'static str> {
    let both = knowledge(first).into_iter().zip(knowledge(second));
    let unlike = both.filter(|(one, other)| one.1 > Weight::Noted && one.2 != other.2);
    unlike.map(|((name, ..), _)| name).collect()
}

/// Returns the first step of each set of known conditions. A step that differs from none of these differs from no other.
pub(crate) fn by_knowledge<'a>(steps: &[&'a Summary]) -> Vec<&'a Summary> {
    let mut firsts: Vec<(Knowledge, &Summary)> = Vec::new();
    for step in steps {
        let known = known_of(step);
        if !firsts.iter().any(|(other, _)| *other == known) {
            firsts.push((known, step));
        }
    }
    firsts.into_iter().map(|(_, first)| first).collect()
}

pub(crate) type Knowledge<'a> = (Vec<(&'static str, Weight, bool)>, Vec<&'a String>);

pub(crate) fn known_of(step: &Summary) -> Knowledge<'_> {
    (knowledge(step), step.workload.options.keys().collect())
}

fn compare(found: &mut Vec<Difference>, name: &str, first: String, second: String, weight: Weight) {
    let difference = Difference { name: name.to_owned(), first, second, weight };
    // The version is a variable, too.
    if difference.first != difference.second && !found.contains(&difference) {
        found.push(difference);
    }
}

/// Returns true if an option is set; where that is not known, it counts as set.
fn is_set(step: &Summary, name: &str) -> bool {
    let value = step.workload.options.get(name);
    let usual = step.workload.option_defaults.as_ref().and_then(|usual| usual.get(name));
    value.is_some() && value != usual
}

fn definition(step: &Summary) -> Option<BTreeMap<String, &Value>> {
    let mut parts = BTreeMap::new();
    let transactions = step.workload.transactions.as_ref()?.as_array();
    for (number, transaction) in (1..).zip(transactions.into_iter().flatten()) {
        for name in ["weight", "begin"] {
            parts.insert(format!("transaction {number} {name}"), &transaction[name]);
        }
        let statements = transaction["statement"].as_array().into_iter().flatten();
        for (nth, statement) in (1..).zip(statements) {
            let fields = statement.as_object().into_iter().flatten();
            parts.extend(fields.filter(|(_, value)| !value.is_null()).map(|(name, value)| {
                (format!("transaction {number} statement {nth} {name}"), value)
            }));
        }
    }
    Some(parts)
}

fn or<T: ToString>(usual: &str, value: Option<T>) -> Option<String> {
    Some(value.map_or_else(|| usual.to_owned(), |value| value.to_string()))
}

fn or_none<T: ToString>(value: Option<T>) -> Option<String> {
    or("none", value)
}

/// Characters of a hash that a report shows.
const SHOWN_MAX: usize = 12;

fn script_files(script: &Script) -> String {
    each(&script.files, |file| {
        format!("{} {}", file.name, file.sha256.chars().take(SHOWN_MAX).collect::<String>())
    })
}

fn script_options(script: &Script) -> String {
    let numbers = script.options.iter().map(|(name, number)| Some(format!("{name} {number}")));
    let texts = Some(&script.texts).filter(|texts| !texts.is_empty());
    let texts = texts.map(|texts| format!("texts of hash {texts}"));
    joined(numbers.chain([texts]), ", ").unwrap_or_else(|| "none".to_owned())
}

fn groups(step: &Summary) -> Option<String> {
    let group = |group: &Group| {
        let Group { name, workload, clients, rate, arrival, think_s, reconnect_every, .. } = group;
        let who = format!("{name} ({}), {}", workload.name, terms::clients(*clients));
        let rate = rate.zip(*arrival).map(|(rate, arrival)| format!("{rate}/s {arrival}"));
        let think = think_s.map(|s| format!("think {}", seconds(s)));
        let every = reconnect_every.map(|every| format!("reconnect every {every}"));
        joined([Some(who), rate, think, every], ", ")
    };
    joined(step.groups.iter().map(group), "; ")
}

fn statements_of_groups(step: &Summary) -> Option<String> {
    let group = |Group { name, workload, .. }: &Group| {
        let Workload { mode, distribution, spread, schema, .. } = &**workload;
        let sql = each(&workload.statements, |one| format!("{} × {}", one.sql, one.repeat));
        let options = workload.options.iter().map(|(name, value)| Some(format!("{name} {value}")));
        let parameters = workload.transactions.as_ref().map(ToString::to_string);
        let parameters = parameters.map(|text| format!("parameters {:016x}", name_part(&text)));
        let how = Some(format!("{mode}, {distribution}, {spread}, {schema}"));
        let script = workload
            .script
            .as_ref()
            .map(|script| format!("{}, {}", script_files(script), script_options(script)));
        let sql = Some(format!("{name}: {sql}"));
        joined([sql, how, joined(options, ", "), parameters, script], ", ")
    };
    joined(step.groups.iter().map(group), "; ")
}

fn each<T>(all: &[T], text: fn(&T) -> String) -> String {
    all.iter().map(text).collect::<Vec<_>>().join("; ")
}

fn completed(step: &Summary) -> Option<&Summary> {
    (step.outcome == Outcome::Completed).then_some(step)
}

fn seconds(s: f64) -> String {
    format!("{s} s")
}

fn cores(count: u32, cpu: &str) -> String {
    format!("{} of {cpu}", terms::counted(count, "core"))
}

/// Words how often each statement is run; old summaries do not have it.
fn repeats(step: &Summary) -> Option<String> {
    let statements = &step.workload.statements;
    let is_known =
        step.workload.option_defaults.is_some() || statements.iter().any(|s| s.repeat != 1);
    is_known.then(|| each(statements, |statement| statement.repeat.to_string()))
}

fn window(step: &Summary) -> String {
    let ops = |ops| format!("{ops} ops");
    let asked = step.plan.time_s.map(seconds).or(step.plan.ops.map(ops));
    asked.unwrap_or_else(|| "to its end".to_owned())
}

/// Names the client library and the features that make it cheaper with some servers.
fn driver(step: &Summary) -> String {
    let Driver { name, capabilities, .. } = &step.driver;
    match capabilities.as_slice() {
        [] => format!("{name} without capabilities"),
        some => format!("{name} with {}", some.join(" and ")),
    }
}

fn loading(step: &Summary) -> Option<String> {
    let load = step.load.as_ref()?;
    let mode = load.mode.as_deref().unwrap_or(&load.source);
    let bytes = load.insert_bytes.map_or_else(String::new, |bytes| format!(" of {bytes} bytes"));
    Some(format!("{mode}{bytes}"))
}

fn before(step: &Summary) -> Option<String> {
    let done = step.conditions.as_ref()?.before.as_ref()?;
    let parts = [
        match done.warm.as_str() {
            "none" | "" => None,
            "pool" => Some("rows read".to_owned()),
            other => Some(other.to_owned()),
        },
        (!["as-is", ""].contains(&done.ahi.as_str()))
            .then(|| format!("adaptive hash index {}", done.ahi)),
        // A finding tells if it was not complete.
        done.settle.as_ref().map(|_| "--settle".to_owned()),
    ];
    joined(parts, " and ")
}

fn settle_limit(step: &Summary) -> Option<String> {
    let settled = step.conditions.as_ref()?.before.as_ref().and_then(|done| done.settle.as_ref());
    or_none(settled.map(|settle| seconds(settle.limit_s)))
}

fn commands(step: &Summary) -> Option<String> {
    let commands = completed(step)?.experiment.as_ref().map_or(&[][..], |e| e.commands.as_slice());
    or_none((!commands.is_empty()).then(|| each(commands, |command| command.program.clone())))
}

fn commands_asked(step: &Summary) -> Option<String> {
    let commands = &completed(step)?.experiment.as_ref()?.commands;
    let asked: Option<Vec<&str>> = commands.iter().map(|c| c.asked.as_deref()).collect();
    Some(asked?.join(" "))
}

fn suite(step: &Summary) -> Option<String> {
    let tests = &completed(step)?.suite.as_ref()?.tests;
    let named = each(tests, |test| format!("{}: {}", test.name, test.run.join(" ")));
    Some(format!("{} tests: {named}", tests.len()))
}

/// Words the rows, statements and bytes of a load, and its tables.
fn loaded(step: &Summary) -> Option<String> {
    let load = completed(step)?.load.as_ref()?;
    let (source, rows, statements, bytes) = (&load.source, load.rows, load.statements, load.bytes);
    let tables = each(&load.tables, |table| format!("{} {}", table.table, table.rows));
    Some(format!("{source}, {rows} rows in {statements} statements of {bytes} bytes: {tables}"))
}

fn character_sets(step: &Summary) -> Option<String> {
    let sets = step.load.as_ref()?.character_sets.iter();
    Some(sets.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", "))
}

/// Words the size of tables of unknown rows, to the next power of two: it is an estimate.
fn own_data(step: &Summary) -> Option<String> {
    let bytes = step.server.data_bytes.filter(|_| step.plan.tables == 0)?;
    let kib = (bytes as f64 / 1024.0).log2().round().exp2();
    let (size, unit) = if kib < 1024.0 { (kib, "KiB") } else { (kib / 1024.0, "MiB") };
    Some(format!("about {size} {unit}"))
}

/// Returns the place of some files of a server, which may be another disk; one below the data directory begins there.
fn place(step: &Summary, name: &str) -> Option<String> {
    let (place, datadir) = (step.variable(name)?, step.variable("datadir")?);
    let place = place.strip_prefix(datadir).unwrap_or(place).trim_start_matches("./");
    // Some versions call the data directory `.`, others `./`.
    Some(if place == "." { String::new() } else { without_made(place) })
}

/// Returns whether loadgen started the server: its data or its pid file is in a sandbox.
pub(crate) fn is_private(step: &Summary) -> bool {
    ["datadir", "pid_file"].iter().any(|name| step.variable(name).is_some_and(is_made))
}

/// Returns the data directory. Of data that loadgen keeps (`PLACE/KEPT/PROGRAM/data/`) the place is enough: each
/// label and program has a directory there.
fn datadir(step: &Summary) -> Option<String> {
    let dir = step.variable("datadir")?;
    if is_made(dir) || !is_private(step) {
        return Some(without_made(dir));
    }
    dir.trim_end_matches('/').rsplitn(4, '/').nth(3).map(str::to_owned)
}

fn is_made(path: &str) -> bool {
    without_made(path) != path
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
    let named = host.governors.iter().map(|(name, count)| Some(format!("{name} of {count}")));
    joined(named, " and ")
}

/// Names the links that the traffic may have gone over: none on one host, none that carried less than the statements.
fn links(step: &Summary, host: &HostState) -> Option<String> {
    let least = step.totals.statements.saturating_mul(FRAME_MIN_BYTES).max(1);
    let carried = |link: &Link| link.rx_bytes.min(link.tx_bytes) >= least;
    // Those of containers and tunnels have other names after each start.
    let passing = ["veth", "docker", "br-", "virbr", "cni", "tun", "tap", "wg"];
    let named = |link: &Link| {
        let lasts = !passing.iter().any(|name| link.name.starts_with(name));
        let counts = !step.client.same_host && lasts && carried(link);
        counts.then(|| format!("{} of {} Mbit/s", link.name, link.mbit_per_s))
    };
    joined(host.links.iter().map(named), " and ")
}
