//! The native command that does what a command line of sysbench's does, and what still differs.

use std::path::PathBuf;

use super::arguments::script_of;
use super::hints::{NativeVerb, Said};
use super::options::{Group, Kind};
use super::settings::{Command, Settings, Test};
use crate::mysql::options::{Address, SslMode};
use crate::workload::Distribution;

/// Writes the command, and behind it lines that begin with `# `.
pub(crate) fn native(settings: &Settings, loadgen: &[NativeVerb]) -> String {
    let bulk = settings.test == Test::BulkInsert;
    let (test, does) = match settings.command {
        Command::Run => (settings.test, "run"),
        Command::Prepare if bulk => (Test::BulkInsert, "prepare"),
        // What else is done is the same for all tests.
        Command::Prepare => (Test::PointSelect, "prepare"),
        Command::Prewarm => (Test::PointSelect, "prewarm"),
        Command::Cleanup => (Test::PointSelect, "cleanup"),
    };
    let words = [script_of(test), does];
    let mut said = Said::of(&words, loadgen).expect("a test that runs is a workload");
    let exact = exact(settings);
    for (option, text) in settings.values.given() {
        let key = option.key();
        let known = matches!(option.group, Group::Random | Group::Legacy | Group::Own)
            || exact.iter().any(|(exact, _)| *exact == key);
        let loops = (option.kind == Kind::Double).then(|| settings.values.count(key).to_string());
        if !known && !option.is_usual(text) {
            said.say(&format!("--{key}"), loops.as_deref().unwrap_or(text));
        }
    }
    for (key, value) in exact {
        said.say(&format!("--{key}"), &value);
    }
    // A password is asked for: it is in no output.
    let password = !settings.connect.password.is_empty();
    let cleanup = settings.command == Command::Cleanup;
    let always = [(true, "--no-defaults"), (true, "--table-each")];
    for (wanted, switch) in [(password, "--password"), (cleanup, "--yes")].into_iter().chain(always)
    {
        if wanted && said.takes(switch) {
            said.words.push(switch.to_owned());
        }
    }
    let command = said.command();
    said.dropped.extend(differs(settings).map(str::to_owned));
    let lines: String = said.dropped.iter().map(|line| format!("# {line}\n")).collect();
    format!("{command}\n{lines}")
}

/// Gives the options whose values matter whether they were given or not, by their keys.
fn exact(settings: &Settings) -> Vec<(&'static str, String)> {
    let Settings { test, threads, tables, table_size, connect, .. } = settings;
    let ssl = &connect.ssl;
    let path = |file: &Option<PathBuf>| {
        file.as_ref().map_or_else(String::new, |file| file.display().to_string())
    };
    let (tables, rows) = match test {
        Test::BulkInsert => (*threads, String::new()),
        Test::RandomPoints | Test::RandomRanges if settings.command == Command::Run => {
            (1, table_size.to_string())
        }
        _ => (*tables, table_size.to_string()),
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
    let mode = if ssl.mode == SslMode::Disabled { "off".to_owned() } else { ssl.mode.to_string() };
    vec![
        ("tables", tables.to_string()),
        ("table-size", rows),
        ("threads", threads.to_string()),
        ("events", events.to_string()),
        ("time", seconds.to_string()),
        ("warmup-time", settings.values.int("warmup-time").to_string()),
        ("rate", settings.rate.to_string()),
        ("rand-type", settings.distribution.to_string()),
        ("db-ps-mode", if text { "disable" } else { "auto" }.to_owned()),
        ("rand-seed", settings.seed.to_string()),
        ("loadgen-out", path(&settings.out)),
        ("mysql-socket", socket),
        ("mysql-host", host),
        ("mysql-port", port),
        ("mysql-user", connect.user.clone()),
        ("mysql-db", connect.database.clone()),
        ("mysql-ssl", mode),
        ("mysql-ssl-ca", path(&ssl.ca)),
        ("mysql-ssl-cert", path(&ssl.cert)),
        ("mysql-ssl-key", path(&ssl.key)),
    ]
}

/// Tells what is not the same, whatever was given.
fn differs(settings: &Settings) -> impl Iterator<Item = &'static str> {
    let Settings { test, command, .. } = *settings;
    let run = command == Command::Run;
    let keys = run && matches!(test, Test::RandomPoints | Test::RandomRanges);
    let draws = command == Command::Prepare && settings.distribution != Distribution::Uniform;
    let endless = run && settings.events == 0 && settings.time.is_zero();
    let lines = [
        (run, "an operation that fails is counted and not begun again"),
        (run && test == Test::BulkInsert, "an operation is many rows, an event is a row"),
        (keys || draws, "loadgen prepare draws k uniformly, sysbench prepare by --rand-type"),
        (endless, "a run has an end: without --time after 60 s"),
        (command == Command::Cleanup, "cleanup drops only what loadgen prepare made"),
    ];
    lines.into_iter().filter_map(|(differs, line)| differs.then_some(line))
}
