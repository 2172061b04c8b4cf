//! What makes two steps the same measurement: plan, server and client host.

use std::collections::BTreeSet;

use super::escape::clip;
use crate::error::{Error, Result};
use crate::summary::identity::IDENTITY;
use crate::summary::{Mode, Server, Summary, durability};
use crate::words;

/// Differences that an error names.
const NAMED_MAX: usize = 10;
/// Longest value that an error or a note shows, characters.
const VALUE_MAX: usize = 60;

/// The value of a variable that a server does not have.
pub(crate) const ABSENT: &str = "(absent)";

/// One setting that two steps do not share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Difference {
    pub(crate) name: String,
    pub(crate) first: String,
    pub(crate) second: String,
}

/// Name and value of what a reader of a table takes for granted: the data, the statements, how
/// they were sent and for how long. In the order of importance.
pub(crate) fn conditions(step: &Summary) -> Vec<(&'static str, String)> {
    let plan = &step.plan;
    let seconds = |s: f64| format!("{s} s");
    let mode = match step.workload.mode {
        Mode::Prepared => "prepared",
        Mode::Text => "text",
    };
    let window = match (plan.time_s, plan.ops) {
        (Some(time_s), _) => seconds(time_s),
        (None, Some(ops)) => format!("{ops} ops"),
        (None, None) => "to its end".to_owned(),
    };
    let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    let sql: Vec<&str> = step.workload.statements.iter().map(|s| s.sql.as_str()).collect();
    vec![
        ("tables", plan.tables.to_string()),
        ("rows", plan.rows.to_string()),
        ("data seed", plan.data_seed.map_or_else(|| "none".to_owned(), |seed| seed.to_string())),
        ("distribution", step.workload.distribution.clone()),
        ("spread", step.workload.spread.clone()),
        ("statements", mode.to_owned()),
        ("SQL", sql.join("; ")),
        ("transport", step.server.transport.clone()),
        ("TLS", or_none(&step.server.tls_cipher)),
        ("warm-up", seconds(plan.warmup_s)),
        ("window", window),
        ("arrival", plan.arrival.clone().unwrap_or_else(|| "closed loop".to_owned())),
        ("client CPU", format!("{} cores of {}", step.client.cores, step.client.cpu)),
        ("driver", capabilities(step)),
        ("tables of", step.workload.schema.clone()),
        ("options", options(step)),
        ("load", loading(step)),
        ("charset", charset(step)),
        ("before", before(step)),
        ("on error", plan.on_error.clone()),
        ("op timeout", plan.op_timeout_s.map_or_else(|| "none".to_owned(), seconds)),
    ]
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

/// What was done before the steps.
fn before(step: &Summary) -> String {
    let Some(done) = step.conditions.as_ref().and_then(|conditions| conditions.before.as_ref())
    else {
        return "nothing".to_owned();
    };
    let pool = (done.warm == "pool").then(|| "rows read".to_owned());
    let ahi = (done.ahi != "as-is").then(|| format!("adaptive hash index {}", done.ahi));
    let settled = done.settle.as_ref().map(|_| "settled".to_owned());
    let parts: Vec<String> = [pool, ahi, settled].into_iter().flatten().collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(" and ") }
}

/// The workload's options, `range_size 100 and …`.
fn options(step: &Summary) -> String {
    let options = &step.workload.options;
    if options.is_empty() {
        return "none".to_owned();
    }
    let options: Vec<String> = options.iter().map(|(k, v)| format!("{k} {v}")).collect();
    options.join(" and ")
}

/// How a load put its rows into statements.
fn loading(step: &Summary) -> String {
    let Some(load) = &step.load else { return "none".to_owned() };
    let mode = load.mode.as_deref().unwrap_or(&load.source);
    let bytes = load.insert_bytes.map(|bytes| format!(" of {bytes} bytes"));
    format!("{mode}{}", bytes.unwrap_or_default())
}

/// The character set of the statements.
fn charset(step: &Summary) -> String {
    let load = step.load.as_ref().map(|load| load.charset.clone());
    let charset = load.or_else(|| step.plan.charset.clone());
    charset.unwrap_or_else(|| "the driver's".to_owned())
}

/// What makes the client library cheaper with some servers than with others.
fn capabilities(step: &Summary) -> String {
    let driver = &step.driver;
    match driver.capabilities.as_slice() {
        [] => "without capabilities".to_owned(),
        some => format!("with {}", some.join(" and ")),
    }
}

/// What a reader wants to know of the server besides: whether its pages came from storage, and
/// what its commits wait for. No reason to refuse a cell: the class is measured.
pub(crate) fn server_conditions(step: &Summary) -> Vec<(&'static str, String)> {
    let server = &step.server;
    let class = server.class.map(|class| class.to_string());
    let durability = server.durability.clone().or_else(|| durability(&server.variables));
    [("class", class), ("durability", durability)]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// The settings of two steps that differ, but for the cell that they are in, the seed of the
/// keys and the number of repeats. The server's count only between invocations: within one,
/// what changed during a step is a warning of that step.
pub(crate) fn differences(first: &Summary, second: &Summary) -> Vec<Difference> {
    let mut found = plan_differences(first, second);
    if first.run_id != second.run_id {
        found.extend(server_differences(first, second));
    }
    found
}

/// The settings of the plan and of the client in which two steps differ.
pub(crate) fn plan_differences(first: &Summary, second: &Summary) -> Vec<Difference> {
    let mut found = Found::default();
    for ((name, one), (_, other)) in conditions(first).iter().zip(conditions(second).iter()) {
        found.compare(name, one, other);
    }
    let threads = |step: &Summary| step.plan.engine_threads.to_string();
    found.compare("engine threads", &threads(first), &threads(second));
    found.0
}

/// The settings outside of the plan in which two steps differ.
pub(crate) fn server_differences(first: &Summary, second: &Summary) -> Vec<Difference> {
    let mut found = Found::default();
    let place = |step: &Summary| if step.client.same_host { "same host" } else { "other host" };
    found.compare("loadgen build", &first.loadgen.profile, &second.loadgen.profile);
    found.compare("client on", place(first), place(second));
    let (one, other) = (&first.server, &second.server);
    found.compare("server host", &one.host, &other.host);
    found.compare("version", &one.version, &other.version);
    found.compare("version_comment", &one.version_comment, &other.version_comment);
    let names: BTreeSet<&String> = one.variables.keys().chain(other.variables.keys()).collect();
    for name in names.into_iter().filter(|name| !IDENTITY.contains(&name.as_str())) {
        let value = |of: &'_ Server| of.variables.get(name).cloned();
        let absent = || ABSENT.to_owned();
        let (one, other) = (value(one), value(other));
        if one != other {
            found.compare(name, &one.unwrap_or_else(absent), &other.unwrap_or_else(absent));
        }
    }
    found.0
}

/// Paths of a build's own files: two builds of one version differ in nothing else.
const BUILD: &[&str] =
    &["basedir", "character_sets_dir", "lc_messages_dir", "plugin_dir", "tmpdir"];

/// The settings of the second step that the first has not, for a legend: its variables but for
/// those that follow from others, and how it was spoken to.
pub(crate) fn legend(first: &Summary, second: &Summary) -> Vec<(String, String)> {
    let spoken = |(name, _): &(&str, String)| ["statements", "transport", "TLS"].contains(name);
    let mut found = Found::default();
    let (one, other) = (conditions(first), conditions(second));
    for ((name, one), (_, other)) in one.iter().zip(&other).filter(|(one, _)| spoken(one)) {
        found.compare(name, one, other);
    }
    let variables = &second.server.variables;
    let known =
        |name: &str| first.server.variables.contains_key(name) || variables.contains_key(name);
    let differences = server_differences(first, second);
    let schema = differences.iter().any(|d| d.name == "performance_schema");
    // Without it, the sizes that it would have are others, or not there.
    let follows = |name: &str| schema && name.starts_with("performance_schema_");
    let counts =
        |d: &Difference| known(&d.name) && !BUILD.contains(&d.name.as_str()) && !follows(&d.name);
    found.0.extend(differences.into_iter().filter(counts));
    found.0.into_iter().map(|d| (d.name, d.second)).collect()
}

/// Differences as they are found.
#[derive(Default)]
struct Found(Vec<Difference>);

impl Found {
    fn compare(&mut self, name: &str, first: &str, second: &str) {
        if first != second {
            self.0.push(Difference {
                name: name.to_owned(),
                first: first.to_owned(),
                second: second.to_owned(),
            });
        }
    }
}

/// Refuses to pool steps that are not the same measurement.
pub(crate) fn agree(steps: &[&Summary]) -> Result<()> {
    let Some((first, others)) = steps.split_first() else { return Ok(()) };
    for other in others {
        let differences = differences(first, other);
        if !differences.is_empty() {
            return Err(refusal(first, other, &differences));
        }
    }
    Ok(())
}

fn refusal(first: &Summary, second: &Summary, differences: &[Difference]) -> Error {
    let named: Vec<String> = differences
        .iter()
        .take(NAMED_MAX)
        .map(|d| {
            let clip = |text| clip(text, VALUE_MAX);
            format!("\n  {}: {} / {}", clip(&d.name), clip(&d.first), clip(&d.second))
        })
        .collect();
    let more = differences.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!("\n  … and {more} more") } else { String::new() };
    let same_run = first.run_id == second.run_id;
    let error = Error::data(format!(
        "'{}' of {} at {} was measured {} with different settings, in steps {} ({}) and \
         {} ({}):{}{more}",
        clip(&first.label, VALUE_MAX),
        clip(&first.workload.name, VALUE_MAX),
        words::clients(first.plan.clients),
        if same_run { "in one invocation" } else { "by several invocations" },
        clip(&first.step_id, VALUE_MAX),
        clip(&first.started_at, VALUE_MAX),
        clip(&second.step_id, VALUE_MAX),
        clip(&second.started_at, VALUE_MAX),
        named.concat(),
    ));
    if same_run {
        error.hint("name the files of one of them only, or give them labels of their own (--label)")
    } else {
        error
            .hint("--latest takes the newest invocation of each label only")
            .hint("or give each configuration a label of its own (--label)")
    }
}
