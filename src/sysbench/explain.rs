//! Translates a sysbench command line to the native command, and lists what still differs.

use std::path::PathBuf;

use super::arguments::script_of;
use super::hints::{NativeCommand, NativeVerb};
use super::options::{OPTIONS, OptionKind, get};
use super::settings::{Command, Settings, Test};
use crate::mysql::options::Address;
use crate::workload::Distribution;

const ALWAYS: &str = "threads time warmup-time rand-type db-ps-mode mysql-host mysql-port mysql-user \
                      mysql-db tables table-size";
const FROM_1: &str = "tables table-size range-size random-points number-of-ranges";
/// Options covered by others: old names, parameters of the distribution, requests for this command.
const LEFT_OUT: &str = "num-threads max-requests max-time tx-rate rand-spec-iter rand-spec-pct \
                        rand-spec-res rand-pareto-h rand-zipfian-exp explain";

/// Writes the command, then lines that begin with `# `.
pub(crate) fn native(settings: &Settings, loadgen: &[NativeVerb]) -> String {
    let (test, does) = match (settings.test, settings.command) {
        (test, Command::Run) => (test, "run"),
        (Test::BulkInsert, Command::Prepare) => (Test::BulkInsert, "prepare"),
        // Other commands are the same for all tests.
        (_, Command::Prepare) => (Test::PointSelect, "prepare"),
        (_, Command::Prewarm) => (Test::PointSelect, "prewarm"),
        (_, Command::Cleanup) => (Test::PointSelect, "cleanup"),
    };
    let mut native =
        NativeCommand::from_words(&[script_of(test), does], loadgen).expect("a test is a workload");
    let mut values = settings.values.clone();
    for (key, value) in option_values(settings) {
        values.set(get(key), value);
    }
    for option in OPTIONS {
        let key = option.key();
        let text = values.text(key);
        let count = (option.kind == OptionKind::Double).then(|| values.count(key).to_string());
        let value = count.as_deref().unwrap_or(text);
        let is_of = |keys: &str| keys.split(' ').any(|known| known == key);
        let from_1 = is_of(FROM_1);
        match value {
            _ if is_of(LEFT_OUT) || option.is_default(text) && !is_of(ALWAYS) => {}
            "0" if text.is_empty() && from_1 => {}
            "0" if from_1 => native.dropped.push(format!("--{key}: loadgen takes 1 and more")),
            _ => native.add_flag(&format!("--{key}"), value),
        }
    }
    let run = settings.command == Command::Run && test != Test::BulkInsert;
    // sysbench draws a table for each statement and has one queue.
    let each = if native.takes("--table-each") { "--table-each" } else { "--spread random" };
    for (wanted, switch) in [
        (run && settings.rate > 0, "--engine-threads 1"),
        // It asks: output never holds a password.
        (!settings.connect.password.is_empty(), "--password"),
        (settings.command == Command::Cleanup, "--yes"),
        (true, "--no-defaults"),
        (run, each),
    ] {
        if wanted && native.takes(switch) {
            native.words.push(switch.to_owned());
        }
    }
    let command = native.command();
    native.dropped.extend(differs(settings).map(str::to_owned));
    let lines: String = native.dropped.iter().map(|line| format!("# {line}\n")).collect();
    format!("{command}\n{lines}")
}

fn option_values(settings: &Settings) -> [(&'static str, String); 17] {
    let Settings { test, command, connect, .. } = settings;
    let run = *command == Command::Run;
    let rows = settings.values.text("table-size");
    let (tables, rows) = match test {
        Test::BulkInsert => (settings.threads, ""),
        Test::RandomPoints | Test::RandomRanges if run => (1, rows),
        _ => (settings.tables, rows),
    };
    let (events, seconds) = match command {
        Command::Prewarm => (1, 0),
        _ => (settings.events, settings.time.as_secs()),
    };
    let text = !settings.prepared || run && *test == Test::Insert;
    let (host, port, socket) = match &connect.address {
        Address::Tcp { host, port } => (host.clone(), port.to_string(), None),
        Address::Socket(path) => (String::new(), String::new(), Some(path)),
    };
    let path =
        |path: Option<&PathBuf>| path.map(|path| path.display().to_string()).unwrap_or_default();
    [
        ("tables", tables.to_string()),
        ("table-size", rows.to_owned()),
        ("threads", settings.threads.to_string()),
        ("events", events.to_string()),
        ("time", seconds.to_string()),
        ("rate", settings.rate.to_string()),
        ("rand-type", settings.distribution.to_string()),
        ("rand-seed", settings.seed.to_string()),
        ("db-ps-mode", if text { "disable" } else { "auto" }.to_owned()),
        ("mysql-host", host),
        ("mysql-port", port),
        ("mysql-socket", path(socket)),
        ("mysql-ssl", connect.ssl.mode.to_string()),
        ("mysql-ssl-ca", path(connect.ssl.ca.as_ref())),
        ("mysql-ssl-cert", path(connect.ssl.cert.as_ref())),
        ("mysql-ssl-key", path(connect.ssl.key.as_ref())),
        ("loadgen-out", path(settings.out.as_ref())),
    ]
}

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
