//! The native command that does what a command line of sysbench's does, and what still differs.

use std::fmt::Display;
use std::path::PathBuf;

use super::arguments::script_of;
use super::hints::{NativeVerb, Said};
use super::options::{Group, Kind};
use super::settings::{Command, Settings, Test};
use crate::mysql::options::{Address, SslMode};
use crate::workload::Distribution;

/// Writes the command, and behind it lines that begin with `# `.
pub(crate) fn native(settings: &Settings, loadgen: &[NativeVerb]) -> String {
    let (test, does) = match (settings.test, settings.command) {
        (test, Command::Run) => (test, "run"),
        (_, Command::Prewarm) => (Test::PointSelect, "prewarm"),
        (Test::BulkInsert, Command::Prepare) => (Test::BulkInsert, "prepare"),
        (_, Command::Prepare) => (Test::PointSelect, "prepare"),
        (_, Command::Cleanup) => (Test::PointSelect, "cleanup"),
    };
    let words = [script_of(test).to_owned(), does.to_owned()];
    let mut said = Said::of(&words, loadgen).expect("a test that runs is a workload");
    for (flag, value) in exact(settings) {
        said.exact(flag, &value);
    }
    for (option, text) in settings.values.given() {
        let exact = matches!(option.group, Group::Random | Group::Legacy | Group::Own);
        if !exact && !option.is_usual(text) {
            let key = option.key();
            let of_loops = option.kind == Kind::Double;
            let value =
                if of_loops { settings.values.count(key).to_string() } else { text.to_owned() };
            said.say(&format!("--{key}"), Some(value.as_str()).filter(|value| !value.is_empty()));
        }
    }
    if !settings.connect.password.is_empty() {
        // It asks: a password is in no output.
        said.say("--password", None);
    }
    let cleanup = settings.command == Command::Cleanup;
    for (wanted, switch) in [(true, "--no-defaults"), (true, "--table-each"), (cleanup, "--yes")] {
        if wanted && said.takes(switch) {
            said.words.push(switch.to_owned());
        }
    }
    let command = said.command();
    let more = differs(settings).into_iter().filter(|(differs, _)| *differs);
    said.dropped.extend(more.map(|(_, how)| how.to_owned()));
    let lines: String = said.dropped.iter().map(|line| format!("# {line}\n")).collect();
    format!("{command}\n{lines}")
}

/// Gives the flags whose values are known, whether they were given or not: what is empty is left out.
fn exact(settings: &Settings) -> Vec<(&'static str, String)> {
    let Settings { test, threads, tables, table_size, connect, .. } = settings;
    let ssl = &connect.ssl;
    let when =
        |there: bool, value: &dyn Display| if there { value.to_string() } else { String::new() };
    let path = |file: &Option<PathBuf>| {
        file.as_ref().map_or_else(String::new, |file| file.display().to_string())
    };
    let (tables, rows) = match test {
        Test::BulkInsert => (*threads, 0),
        Test::RandomPoints | Test::RandomRanges if settings.command == Command::Run => {
            (1, *table_size)
        }
        _ => (*tables, *table_size),
    };
    let (events, seconds) = match settings.command {
        Command::Prewarm => (1, 0),
        _ => (settings.events, settings.time.as_secs()),
    };
    let text = !settings.prepared || *test == Test::Insert;
    let (host, port, socket) = match &connect.address {
        Address::Tcp { host, port } => (host.clone(), port.to_string(), String::new()),
        Address::Socket(path) => (String::new(), String::new(), path.display().to_string()),
    };
    vec![
        ("--tables", when(tables > 0, &tables)),
        ("--rows", when(rows > 0, &rows)),
        ("--clients", threads.to_string()),
        ("--jobs", threads.to_string()),
        ("--ops", when(events > 0, &events)),
        ("--time", when(seconds > 0, &format!("{seconds}s"))),
        ("--warmup", format!("{}s", settings.values.int("warmup-time"))),
        ("--rate", when(settings.rate > 0, &settings.rate)),
        ("--distribution", settings.distribution.to_string()),
        ("--statements", if text { "text" } else { "prepared" }.to_owned()),
        ("--seed", when(settings.seed > 0, &settings.seed)),
        ("--out", path(&settings.out)),
        ("--socket", socket),
        ("--host", host),
        ("--port", port),
        ("--user", connect.user.clone()),
        ("--database", connect.database.clone()),
        ("--ssl-mode", when(ssl.mode != SslMode::Disabled, &ssl.mode)),
        ("--ssl-ca", path(&ssl.ca)),
        ("--ssl-cert", path(&ssl.cert)),
        ("--ssl-key", path(&ssl.key)),
    ]
}

/// Tells what is not the same, whatever was given.
fn differs(settings: &Settings) -> [(bool, &'static str); 5] {
    let Settings { test, command, .. } = *settings;
    let run = command == Command::Run;
    let keys = run && matches!(test, Test::RandomPoints | Test::RandomRanges);
    let draws = command == Command::Prepare && settings.distribution != Distribution::Uniform;
    let endless = run && settings.events == 0 && settings.time.is_zero();
    [
        (run, "an operation that fails is counted and not begun again"),
        (run && test == Test::BulkInsert, "an operation is many rows, an event is a row"),
        (keys || draws, "loadgen prepare draws k uniformly, sysbench prepare by --rand-type"),
        (endless, "a run has an end: without --time after 60 s"),
        (command == Command::Cleanup, "cleanup drops only what loadgen prepare made"),
    ]
}
