//! docs/reference, made of the code: the commands of clap's own, keys of the structs that files are
//! read into, metrics, exit statuses, fields of summaries. `LOADGEN_BLESS=1 cargo test --test pure reference`
//! writes it anew after a change.

mod free;

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, ArgAction, Command};
use serde_json::Value;

use free::FREE;
use loadgen::cli::command;
use loadgen::error::Kind;
use loadgen::report::FIGURES;
use loadgen::terms::{Code, PLACES, RESTLESS};

const ERROR: &str = include_str!("../../src/error.rs");
const GROUP: &str = include_str!("../../src/plan/group.rs");
const KNOBS: &str = include_str!("../../src/plan/knobs.rs");
const PROFILE: &str = include_str!("../../src/plan/profile/mod.rs");
const PROFILE_SCRIPT: &str = include_str!("../../src/plan/profile/script.rs");
const STATEMENT: &str = include_str!("../../src/workload/statement.rs");
const THRESHOLDS: &str = include_str!("../../src/judge/thresholds.rs");
const WORKLOAD: &str = include_str!("../../src/workload/mod.rs");
const SCHEMA: &str = include_str!("../../docs/summary.schema.json");
const IMPORTED: &str = include_str!("../../docs/imported.schema.json");
const MADE: &str = "<!-- Made by a test: LOADGEN_BLESS=1 cargo test --test pure reference -->\n";

/// Holds a file of docs/ against what the code says, or writes it.
fn hold(file: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(file);
    if std::env::var_os("LOADGEN_BLESS").is_some() {
        std::fs::write(&path, wanted).expect("docs/ can be written");
        return;
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == wanted,
        "docs/{file} is stale: LOADGEN_BLESS=1 cargo test --test pure reference"
    );
}

/// Makes a cell of a table: one line, in which no `|` ends it.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// A key of a file, and what its comment says.
#[derive(Debug)]
struct Key {
    name: String,
    about: String,
}

/// Lists the fields of a struct, or the variants of an enum, as they are spelled in files.
fn keys(source: &str, owner: &str) -> Vec<Key> {
    let head = |line: &&str| {
        let kinds = ["struct", "enum"].map(|kind| format!("{kind} {owner} {{"));
        !line.starts_with(' ') && kinds.iter().any(|kind| line.ends_with(kind.as_str()))
    };
    let mut lines = source.lines().skip_while(|line| !head(line)).skip(1).peekable();
    assert!(lines.peek().is_some(), "there is no {owner}");
    let (mut found, mut about, mut attributes) = (Vec::new(), String::new(), String::new());
    for line in lines.take_while(|line| *line != "}") {
        let deep = line.starts_with("     ");
        let line = line.trim();
        if deep || line.starts_with("#[") || [")]", "},", ""].contains(&line) {
            attributes += line;
        } else if let Some(text) = line.strip_prefix("///") {
            about += text;
        } else {
            let key = key(line, &attributes, &about);
            found.extend(key.filter(|_| !attributes.contains("#[serde(skip)]")));
            (about, attributes) = (String::new(), String::new());
        }
    }
    found
}

fn key(line: &str, attributes: &str, about: &str) -> Option<Key> {
    let line = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
    let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    let renamed = attributes.split_once("rename = \"").and_then(|(_, rest)| rest.split('"').next());
    let name = renamed.map_or_else(|| snake(&line[..end]), str::to_owned);
    Some(Key { name, about: cell(about) })
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (at, c) in name.char_indices() {
        snake.extend((c.is_ascii_uppercase() && at > 0).then_some('_'));
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// Makes a table of keys; each needs a comment.
fn table(source: &str, owner: &str) -> String {
    let mut text = String::from("| key | |\n|---|---|\n");
    for Key { name, about } in keys(source, owner) {
        assert!(!about.is_empty(), "{owner}.{name} has no comment");
        let _ = writeln!(text, "| `{name}` | {about} |");
    }
    text
}

/// Makes a list of an untagged enum's forms, whose comments show them.
fn forms(source: &str, owner: &str) -> String {
    keys(source, owner).iter().map(|key| format!("- {}\n", key.about)).collect()
}

#[test]
fn the_keys_of_profiles_are_in_the_reference() {
    let mut text = format!("# Keys of a profile\n\n{MADE}\n");
    text += "A profile is a TOML file for `loadgen run` ([experiments](../user/experiments.md)). Counts are \
             numbers or texts such as `\"16M\"`; durations are seconds or texts such as `\"10m\"`. A key that \
             is not here is an error.\n";
    let sections = [
        ("Top level", PROFILE, "Profile"),
        ("`[[server]]`: a label", PROFILE, "Server"),
        ("`[server.sandbox]`: a private server", PROFILE, "Sandbox"),
        ("`data` of a sandbox", PROFILE, "Data"),
        ("`[tables]`", PROFILE, "Tables"),
        ("`[[run]]` of a workload", KNOBS, "Knobs"),
        ("`[[run]]` of a script", PROFILE_SCRIPT, "ScriptKeys"),
        ("`[[run.group]]`: a group beside the measured clients", GROUP, "GroupKnobs"),
        ("`[[run]]` of a load or a suite", PROFILE, "Timed"),
        ("`load` of a run", KNOBS, "LoadKnobs"),
        ("`suite` of a run", KNOBS, "SuiteSpec"),
        ("`tests` of a suite", KNOBS, "SuiteTest"),
        ("`[expect]`: what must hold before a run", PROFILE, "Expect"),
        ("`[[command]]`: runs beside the windows", PROFILE, "Command"),
        ("`[[verify]]`: what the data must hold", PROFILE_SCRIPT, "Verify"),
        ("`[report]`", PROFILE, "Report"),
    ];
    for (title, source, owner) in sections {
        let _ = write!(text, "\n## {title}\n\n{}", table(source, owner));
        if owner == "Profile" {
            let turns = table(PROFILE, "RepeatOrder").replace('_', "-").replace("key", "`order`");
            let _ = write!(text, "\n{turns}");
        }
        if owner == "Knobs" {
            text += "\nWhere a run has no `tables` or no `rows`, or `rows = \"auto\"`, those of `[tables]` count.\n";
        }
        if owner == "ScriptKeys" {
            text += "\nIts other keys are those of a run of a workload, but for `workload`, `scan`, `tables`, `rows`, \
                     `spread`, `distribution`, `warm`, `ahi = \"warm\"` and `reconnect_every`, which a script decides.\n";
        }
    }
    text += "\n`[[workload]]` has the [keys of a workload](workload-keys.md).\n";
    hold("reference/profile-keys.md", &text);
}

#[test]
fn the_keys_of_workloads_are_in_the_reference() {
    let mut text = format!("# Keys of a workload\n\n{MADE}\n");
    text += "The form of `[[workload]]` in a profile and of the built-in workloads (`profiles/workloads/`). \
             [Your own workload](../user/own-workload.md) begins with an example; what expectations and \
             effects mean exactly is in [workloads](workloads.md).\n";
    let sections = [
        ("A workload", WORKLOAD, "Workload"),
        ("`[[workload.transaction]]`", WORKLOAD, "Transaction"),
        ("`[[workload.transaction.statement]]`", STATEMENT, "Statement"),
        ("`list` of a statement", STATEMENT, "List"),
        ("`params`: where the value of a `?` comes from", STATEMENT, "Param"),
        ("`range_end` of a parameter", STATEMENT, "RangeEnd"),
        ("`expect` of a statement", STATEMENT, "Expect"),
        ("`effect` of a statement", STATEMENT, "Effect"),
    ];
    for (title, source, owner) in sections {
        let _ = write!(text, "\n## {title}\n\n{}", table(source, owner));
    }
    text += "\n## A number of rows\n\n";
    text += &forms(STATEMENT, "Count");
    hold("reference/workload-keys.md", &text);
}

#[test]
fn the_exit_statuses_are_in_the_reference() {
    let kinds = [
        Kind::Failed,
        Kind::Usage,
        Kind::Server,
        Kind::Data,
        Kind::Undecided,
        Kind::Gate,
        Kind::Interrupted,
        Kind::Terminated,
    ];
    let told = keys(ERROR, "Kind");
    assert_eq!(told.len(), kinds.len(), "each kind of error is here once");
    let mut text = format!(
        "# Exit statuses\n\n{MADE}\n| status | means |\n|---|---|\n| 0 | All went well. |\n"
    );
    for kind in kinds {
        let name = snake(&format!("{kind:?}"));
        let key = told.iter().find(|key| key.name == name).expect("it is an error's");
        let code = kind.exit_code();
        let about = key.about.replace(&format!(" ({code})"), "");
        let _ = writeln!(text, "| {code} | {about} |");
    }
    text += "\nWhere several things go wrong, the worst decides the status, and the others are warnings before it. The \
             first SIGINT or SIGTERM finishes the step with what it has, marked interrupted; the second ends at \
             once. SIGHUP does what the first does; under `nohup` it is ignored.\n";
    hold("reference/exit-statuses.md", &text);
}

#[test]
fn the_metrics_are_in_the_reference() {
    let mut text = format!("# Metrics\n\n{MADE}\n");
    text += "What `--metric` of `report`, `compare` and `recheck` takes.\n\n| `--metric` | shows | | unit in files | \
             better |\n|---|---|---|---|---|\n";
    for figure in FIGURES {
        let names: Vec<String> = std::iter::once(&figure.name)
            .chain(figure.aliases)
            .map(|name| format!("`{name}`"))
            .collect();
        let better = if figure.higher_is_better { "higher" } else { "lower" };
        let words = figure.unit_in_words;
        let _ = writeln!(
            text,
            "| {} | {} | {words} | {} | {better} |",
            names.join(", "),
            figure.heading,
            figure.unit
        );
    }
    text += TIMES;
    hold("reference/metrics.md", &text);
}

const TIMES: &str = "
`natural`, the default, is `qps`; of what ran to its end (a load, a suite), `seconds`.

## Times

| `--metric` | |
|---|---|
| `p50` `p95` `p99.9` … | a percentile, any above 0 and below 100 |
| `mean` `min` `max` `stddev` | exact, not from the histogram |

Without a prefix they are of the response time in an open loop (`--rate`), of the service time in a closed one. \
`service-p99`, `response-p99` and `wait-p99` say which: the call itself; from the intended instant to the return; the \
part of that before the call. The last two exist in an open loop only. `connect.p99` is of the log-ins of \
`--reconnect-every`. Times are lower the better, in milliseconds for \
people and in microseconds in files.

A percentile is shown where at least ten values lie beyond it: p99 takes 1,000 operations, p99.9 10,000. Else the cell is \
`-` (null, or no row, in files). The summary keeps the number, and `count` beside it. The other times take one operation in \
each repeat, but for those of log-ins.

## Costs

The server's counters are read on a connection of their own just before the window and just after it, its process and host \
at the same time. An operation's share is the difference divided by the operations of the time between the first reading \
and the window's end. The operations of the warm-up's end are a part of its last interval, as if that were even: in a window of less \
than 10 s a cost may be off by some percent, below 1 s by more. A counter that a server does not have is `-`, and so is one that was reset \
between the readings, and but for those of its host all of a step in which the server was restarted. Switches are those of threads that live \
at both readings: with `--reconnect-every` `cs` is `-` where the server made more new threads than one for 20 clients, as it \
does without a thread cache.

What one such reading adds to `Com_*`, `Created_tmp_*`, `Handler_*`, `Queries`, `Questions`, `Rows_*`, `Select_*` and `Table_*` is counted after the step, with all clients at rest, and is not in the differences. It stays in them where another program asks the server meanwhile: 700 to 1,400 handler calls and one question a step, and `Com_show_status` of the deltas shows it. Four short readings within a window of 3 s or more stay in them, too.

## Groups

A group beside the measured clients has `NAME.qps`, `NAME.tps`, `NAME.errors`, `NAME.errors%`, `NAME.rows`, and times such as \
`NAME.p99`: its response time where it has a rate; `NAME.connect.p99` is of its log-ins. Costs an operation of a step \
with groups are the server's whole cost over the measured operations (`costs_beside`). With several addresses they are \
not known.
";

#[test]
fn the_fields_of_summaries_are_in_the_reference() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let mut text = format!("# The summary of a step\n\n{MADE}\n");
    text += "One JSON file a step, `loadgen.summary/1`. The same as a JSON Schema: \
             [summary.schema.json](../summary.schema.json). `[]` is each entry of a list, `{}` each name of an \
             object. Fields may be added; what a field means does not change.\n\n| field | type | |\n|---|---|---|\n";
    fields(&schema, &schema, "", &mut text);
    hold("reference/summary.md", &text);
}

#[test]
fn the_fields_of_imported_runs_are_in_the_reference() {
    let schema: Value = serde_json::from_str(IMPORTED).expect("JSON");
    let mut text = format!("# An imported run\n\n{MADE}\n");
    text += "One JSON file a run of another program, `loadgen.imported/1`, as `loadgen import` writes it. The same as a JSON \
             Schema: [imported.schema.json](../imported.schema.json). What the program's output does not tell is null. \
             `[]` is each entry of a list, `{}` each name of an object. Fields may be added; what a field means does not \
             change.\n\n| field | type | |\n|---|---|---|\n";
    fields(&schema, &schema, "", &mut text);
    hold("reference/imported.md", &text);
}

/// Follows references, and leaves null out of what may be null.
fn resolved<'a>(of: &'a Value, root: &'a Value) -> &'a Value {
    let several = ["anyOf", "oneOf"].iter().find_map(|name| of[*name].as_array());
    let only = several.and_then(|all| {
        let mut all = all.iter().filter(|one| one["type"] != "null");
        all.next().filter(|_| all.next().is_none())
    });
    match (of["$ref"].as_str(), only) {
        (Some(name), _) => resolved(&root["$defs"][name.trim_start_matches("#/$defs/")], root),
        (None, Some(only)) => resolved(only, root),
        (None, None) => of,
    }
}

fn fields(of: &Value, root: &Value, path: &str, text: &mut String) {
    for (name, field) in of["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let target = resolved(field, root);
        let told = field["description"].as_str().or(target["description"].as_str());
        let about = cell(told.unwrap_or_default());
        let _ = writeln!(text, "| `{path}` | {} | {about} |", type_of(target));
        fields(target, root, &path, text);
        for (below, mark) in [("items", "[]"), ("additionalProperties", ".{}")] {
            fields(resolved(&target[below], root), root, &format!("{path}{mark}"), text);
        }
    }
}

fn type_of(target: &Value) -> String {
    let words = |all: &Value| -> Vec<String> {
        all.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let choices = |of: &Value| -> Vec<String> {
        let one = of["const"].as_str().map(str::to_owned);
        one.into_iter().chain(words(&of["enum"])).collect()
    };
    let several = target["oneOf"].as_array().into_iter().flatten().flat_map(choices);
    let found: Vec<String> = choices(target).into_iter().chain(several).collect();
    if !found.is_empty() {
        return found.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    match &target["type"] {
        Value::String(one) => one.clone(),
        several => {
            words(several).into_iter().filter(|word| word != "null").collect::<Vec<_>>().join(", ")
        }
    }
}

#[test]
fn what_is_no_condition_is_in_the_reference() {
    let mut text =
        format!("# What must agree\n\n{MADE}\n{CONDITIONS}\n| field | why |\n|---|---|\n");
    for (field, why) in FREE {
        let _ = writeln!(text, "| `{field}` | {why} |");
    }
    text += "\nNor are variables of the server that say who and where it is, or that change by themselves:\n\n";
    let mut names: Vec<&str> = RESTLESS.split(' ').chain(PLACES.split(' ')).collect();
    names.sort_unstable();
    for name in names {
        let _ = writeln!(text, "`{name}`");
    }
    text += "\nWhere data, logs and temporary files lie is noted, and does not keep steps apart: a comparison of disks \
             needs two labels.\n";
    hold("reference/conditions.md", &text);
}

const CONDITIONS: &str = "\
Whatever a summary says of the workload, the plan, the tables, the load, the suite, the server and both hosts is a
**condition**. Steps of one cell must agree in all of them. Between labels a difference is a note: `conditions` for the
plan, the workload, the tables and the hosts, `overheads` for settings that cost time with every statement, `settings` for
the server's other variables. `compare` and `explain` refuse labels whose operations differ: tables, rows, distribution,
statements, SQL, how often each is run, options, weights, parameters, BEGIN.

Conditions of the **hosts** may change while an invocation goes on, also one that is continued later: a kernel that was
updated, cores, memory, governors, turbo, NUMA nodes, links, and the engine threads and queues that follow from the cores. Within
one `run_id` such a change is a note (`invocations`). Several invocations share a cell where they share a value. Links count only
where the traffic goes over them: none where client and server are on one host, none of containers and tunnels, and none that carried
less than the statements take at least.

Steps that do not agree are refused, and the error shows what differs. Of several invocations the newest is shown (`clash`), or taken
with `--latest`; of one invocation that does not agree with itself, `--latest` takes each cell's newest settings.

Some conditions are only noted, also within a cell: the names of the client's and the server's host, the server's data
directory, versions of loadgen and of the driver, and what the window itself decides (`class`, and `durability`, which
follows from variables). A value that an older summary does not have is unknown: a note (`unknown_conditions`) names it,
and nothing is refused.

Two servers of one version under one label share a cell, with a note (`several_servers`). It names what differs of `server_uuid` (MySQL),
`server_uid` (new versions of MariaDB), `hostname`, `datadir` and `port`. A server that tells none of these is not told from another one.
Servers that a profile starts, and private ones, are not compared: each start makes a new one.

Measured sessions set nothing that limits them: `sql_select_limit`, `max_join_size`, `max_statement_time`,
`max_execution_time`, `completion_type` and `sql_mode` are what the server gives a new session, and conditions as all its
variables are ([limits of sessions](errors.md#limits-of-sessions)).

These fields are no conditions:
";

#[test]
fn the_thresholds_are_in_the_reference() {
    let mut text = format!("# Thresholds\n\n{MADE}\n");
    text += "The numbers that decide a note or a verdict (`src/judge/thresholds.rs`). How they are applied is in \
             [verdicts](verdicts.md) and [state and window](state.md). A part of 1 is 0.01 for one percent.\n\n\
             | threshold | value | of |\n|---|---|---|\n";
    let mut about = String::new();
    for line in THRESHOLDS.lines() {
        if let Some(told) = line.strip_prefix("///") {
            about += told;
        } else if let Some((name, rest)) =
            line.strip_prefix("pub(crate) const ").and_then(|of| of.split_once(": "))
        {
            assert!(!about.is_empty(), "{name} has no comment");
            let value = rest.split_once(" = ").expect("a value").1.trim_end_matches(';');
            let told = cell(&std::mem::take(&mut about));
            let _ = writeln!(text, "| `{name}` | {} | {told} |", value.replace('_', " "));
        }
    }
    hold("reference/thresholds.md", &text);
}

#[test]
fn the_codes_are_in_the_notes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/user/notes.md");
    let text = std::fs::read_to_string(&path).expect("docs/user/notes.md");
    let (before, rest) = text.split_once("<!-- codes -->\n").expect("the list's begin");
    let (_, after) = rest.split_once("<!-- end of codes -->").expect("the list's end");
    let (mut list, mut topic) = (String::new(), "");
    for code in Code::ALL {
        if code.topic() != topic {
            topic = code.topic();
            let _ = writeln!(list, "\n## {topic}\n");
        }
        let text = cell(code.sentence());
        let entry = format!("- `{}`: {text}. {}", code.name(), instruction(code.advice()));
        list += &wrapped(entry.trim_end());
    }
    list.push('\n');
    hold("user/notes.md", &format!("{before}<!-- codes -->\n{list}<!-- end of codes -->{after}"));
}

/// Writes an advice as a sentence.
fn instruction(advice: &str) -> String {
    if advice.is_empty() { String::new() } else { format!("→ {advice}") }
}

/// Wraps an entry of a list at 120 characters.
fn wrapped(entry: &str) -> String {
    let (mut text, mut line) = (String::new(), String::new());
    for word in entry.split(' ') {
        if line.chars().count() + word.chars().count() > 118 {
            text += &line;
            text.push('\n');
            " ".clone_into(&mut line);
        }
        line += if line.is_empty() { "" } else { " " };
        line += word;
    }
    text + &line + "\n"
}

#[test]
fn the_commands_are_in_the_reference() {
    let mut all = command().0;
    all.build();
    let verbs: Vec<&Command> = all.get_subcommands().filter(|verb| !verb.is_hide_set()).collect();
    let usual = verbs.iter().find(|verb| verb.get_name() == "point-select").expect("a workload");
    let mut text = format!(
        "# Commands\n\n{MADE}\nEvery command has `--help`. A flag's value in brackets may be left away.\n"
    );
    text += "\n## Connection\n\nFlags of every command that connects. What is not given comes from `--url` or LOADGEN_URL, \
             then from the groups `[client]`, `[client-server]`, `[client-mariadb]` and `[loadgen]` of the option files, then from \
             MYSQL_HOST, MYSQL_TCP_PORT, MYSQL_UNIX_PORT and MYSQL_PWD.\n\n";
    text += &flags(usual.get_arguments().filter(|arg| is_connection(arg)));
    text += "\n## Workloads\n\nFlags of every workload, besides those of the connection.\n\n";
    text += &flags(usual.get_arguments().filter(|arg| !is_connection(arg)));
    for verb in &verbs {
        let _ = write!(text, "\n## `loadgen {}`\n\n", verb.get_name());
        let aliases: Vec<_> = verb.get_visible_aliases().map(|name| format!("`{name}`")).collect();
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        let also = if aliases.is_empty() {
            String::new()
        } else {
            format!(" Also {}.", aliases.join(", "))
        };
        let of_workloads = same(verb, "clients", usual) && same(verb, "spread", usual);
        let connects = same(verb, "socket", usual);
        let more = match (of_workloads, connects) {
            (true, _) => " With the [flags of every workload](#workloads).",
            (false, true) => " With the [flags of the connection](#connection).",
            _ => "",
        };
        let _ = writeln!(text, "{}.{also}{more}", about.trim_end_matches('.'));
        let shared = |arg: &&Arg| {
            let same = same(verb, arg.get_id().as_str(), usual);
            same && (of_workloads || is_connection(arg))
        };
        let own = flags(verb.get_arguments().filter(|arg| !shared(arg)));
        if !own.is_empty() {
            let _ = write!(text, "\n{own}");
        }
    }
    hold("reference/commands.md", &text);
}

fn is_connection(arg: &Arg) -> bool {
    arg.get_help_heading() == Some("Connection")
}

/// Tells whether a command has a flag as another one has it.
fn same(verb: &Command, id: &str, other: &Command) -> bool {
    let help = |of: &Command| {
        let arg = of.get_arguments().find(|arg| arg.get_id() == id)?;
        Some(arg.get_help().map(ToString::to_string))
    };
    help(other).is_some() && help(verb) == help(other)
}

fn flags<'a>(args: impl Iterator<Item = &'a Arg>) -> String {
    let told = ["help", "help_all", "version"];
    let args: Vec<&Arg> = args.filter(|arg| !told.contains(&arg.get_id().as_str())).collect();
    if args.is_empty() {
        return String::new();
    }
    let rows = args.into_iter().map(|arg| format!("| `{}` | {} |\n", name(arg), does(arg)));
    std::iter::once("| flag | |\n|---|---|\n".to_owned()).chain(rows).collect()
}

fn name(arg: &Arg) -> String {
    let values: Vec<String> = arg
        .get_value_names()
        .filter(|_| arg.get_action().takes_values())
        .map(|names| names.iter().map(ToString::to_string).collect())
        .unwrap_or_default();
    let value = values.join(" ");
    let optional = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
    let value = match (value.is_empty(), optional) {
        (true, _) => String::new(),
        (false, true) if !arg.is_positional() => format!("[={value}]"),
        (false, _) => format!(" {value}"),
    };
    let long = arg.get_long().map(|long| format!("--{long}"));
    let short = arg.get_short().map(|short| format!("-{short}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let many = if arg.is_positional() && matches!(arg.get_action(), ArgAction::Append) {
        "…"
    } else {
        ""
    };
    cell(&format!("{}{value}{many}", names.join(", ")))
}

fn does(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && arg.get_action().takes_values())
        .filter(|_| !arg.is_hide_possible_values_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    let values = if values.is_empty() { String::new() } else { format!(": {}", values.join(", ")) };
    let usual: Vec<_> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let usual = if usual.is_empty() || !arg.get_action().takes_values() {
        String::new()
    } else {
        format!(" [default: {}]", usual.join(","))
    };
    cell(&format!("{}{values}{usual}", help.trim_end_matches('.')))
}
