//! The native command that does what a command line of sysbench's does, and what still differs.

use std::fmt::Display;

use super::plan::{RANGES, native as native_workload};
use super::settings::{Command, Ignored, Settings, Test};
use crate::mysql::options::{Ssl, SslMode};
use crate::workload::{Distribution, Workload};

/// What begins an event again unless it is told otherwise.
const RESTARTED: [u16; 3] = [1213, 1020, 1205];

/// Writes the command, and behind it lines that begin with `# `.
pub(crate) fn native(settings: &Settings) -> String {
    let mut said = Said::default();
    match settings.command {
        Command::Run => said.run(settings),
        Command::Prepare => said.prepare(settings),
        Command::Prewarm => {
            said.words(["point-select", "--warm", "pool", "--ops", "1"]);
            said.flag("--tables", &settings.tables);
            said.flag("--rows", &settings.table_size);
            said.differs("an operation is run besides");
        }
        Command::Cleanup => {
            said.words(["cleanup", "--yes"]);
            said.differs("cleanup drops the tables that loadgen prepare made, and no others");
        }
    }
    said.connection(settings);
    let lines = said.differs.iter().map(|line| format!("# {line}\n"));
    format!("loadgen {}\n{}", said.words.join(" "), lines.collect::<String>())
}

#[derive(Default)]
struct Said {
    words: Vec<String>,
    differs: Vec<String>,
}

impl Said {
    fn words<const N: usize>(&mut self, words: [&str; N]) {
        self.words.extend(words.map(quoted));
    }

    fn flag(&mut self, flag: &str, value: &dyn Display) {
        self.words.extend([flag.to_owned(), quoted(&value.to_string())]);
    }

    fn differs(&mut self, how: impl Into<String>) {
        self.differs.push(how.into());
    }

    fn run(&mut self, settings: &Settings) {
        let workload = native_workload(settings.test).expect("a test that runs is a workload");
        self.words([&workload.name]);
        match settings.test {
            Test::BulkInsert => {
                self.flag("--tables", &settings.threads);
                self.differs("an operation is a statement of many rows, an event is a row");
            }
            Test::RandomPoints | Test::RandomRanges => {
                self.flag("--tables", &1);
                self.flag("--rows", &settings.table_size);
                self.differs("loadgen prepare draws k uniformly: more rows hold a value after sysbench prepare");
            }
            _ => {
                self.flag("--tables", &settings.tables);
                self.flag("--rows", &settings.table_size);
            }
        }
        self.flag("--clients", &settings.threads);
        self.limits(settings);
        if settings.rate > 0 {
            self.flag("--rate", &settings.rate);
        }
        if settings.test != Test::BulkInsert {
            self.flag("--distribution", &settings.distribution);
        }
        let text = !settings.prepared || settings.test == Test::Insert;
        self.flag("--statements", &if text { "text" } else { "prepared" });
        if settings.seed != 0 {
            self.flag("--seed", &settings.seed);
        }
        if matches!(settings.test, Test::ReadOnly | Test::WriteOnly | Test::ReadWrite) {
            self.words(["--table-each"]);
        }
        self.options(settings, &workload);
        if settings.report_interval > 0 {
            self.flag("--progress", &format!("{}s", settings.report_interval));
        }
        if let Some(out) = &settings.out {
            self.flag("--out", &out.display());
        }
        self.errors(settings);
    }

    fn limits(&mut self, settings: &Settings) {
        let (events, seconds) = (settings.events, settings.time.as_secs());
        if events > 0 {
            self.flag("--ops", &events);
        } else if seconds > 0 {
            self.flag("--time", &format!("{seconds}s"));
        } else {
            self.differs("a run has an end: without --time after 60 s");
        }
        if events > 0 && seconds > 0 {
            self.differs(format!("a run ends after its ops, not also after {seconds} s"));
        }
        self.flag("--warmup", &format!("{}s", settings.warmup.as_secs()));
        if settings.forced_shutdown.is_some() {
            self.differs("what still runs at the end has 10 s: --op-timeout gives up earlier");
        }
        if !settings.checkpoints.is_empty() {
            self.differs("no report is written at checkpoints: the summary holds the timeline");
        }
    }

    /// Says the workload's own options, where they are not at their defaults.
    fn options(&mut self, settings: &Settings, workload: &Workload) {
        for (name, setting) in &workload.options {
            let theirs = if name == "random_ranges" { "number_of_ranges" } else { name };
            let value = match name.as_str() {
                "skip_trx" => u64::from(settings.skip_trx),
                name if RANGES.contains(&name) && !settings.range_selects => 0,
                _ => settings.counts.get(theirs).copied().unwrap_or(setting.value),
            };
            let flag = format!("--{}", name.replace('_', "-"));
            match setting.switch {
                _ if value == setting.value => {}
                true => self.words([&flag]),
                false => self.flag(&flag, &value),
            }
        }
        let updates = match settings.test {
            Test::UpdateIndex => "index_updates",
            Test::UpdateNonIndex => "non_index_updates",
            _ => return,
        };
        if let Some(count) = settings.counts.get(updates).filter(|count| **count != 1) {
            self.differs(format!("an event has {count} updates, an operation has one"));
        }
    }

    fn errors(&mut self, settings: &Settings) {
        let more = match &settings.ignored {
            Ignored::All => true,
            Ignored::Codes(codes) => codes.iter().any(|code| !RESTARTED.contains(code)),
        };
        if more {
            self.flag("--on-error", &"continue");
        }
        self.differs("an operation that fails is counted and not begun again");
        if settings.reconnect > 0 {
            self.differs(format!("connections stay open, not {} events", settings.reconnect));
        }
        if settings.dry_run {
            self.differs("the server is used: there is no dry run");
        }
    }

    fn prepare(&mut self, settings: &Settings) {
        if settings.test == Test::BulkInsert {
            self.words(["prepare", "--schema", "bulk"]);
            self.flag("--tables", &settings.threads);
            return;
        }
        self.words(["prepare"]);
        self.flag("--tables", &settings.tables);
        self.flag("--rows", &settings.table_size);
        self.flag("--jobs", &settings.threads);
        if settings.distribution != Distribution::Uniform {
            self.differs(format!("k is drawn uniformly, not by {}", settings.distribution));
        }
        for (differs, how) in [
            (!settings.auto_inc, "ids are AUTO_INCREMENT"),
            (settings.secondary, "id is the primary key"),
            (!settings.create_secondary, "an index on k is made"),
            (!settings.storage_engine.eq_ignore_ascii_case("innodb"), "tables are of InnoDB"),
            (!settings.create_table_options.is_empty(), "no words are added to CREATE TABLE"),
        ] {
            if differs {
                self.differs(how);
            }
        }
    }

    fn connection(&mut self, settings: &Settings) {
        self.words(["--no-defaults"]);
        if let Some(socket) = &settings.socket {
            self.flag("--socket", &socket.display());
        } else {
            self.flag("--host", &settings.host);
            self.flag("--port", &settings.port);
        }
        self.flag("--user", &settings.user);
        if !settings.password.is_empty() {
            // It asks: a password is in no output.
            self.words(["--password"]);
        }
        self.flag("--database", &settings.database);
        let Ssl { mode, ca, cert, key } = &settings.ssl;
        if *mode != SslMode::Disabled {
            self.flag("--ssl-mode", mode);
        }
        for (flag, file) in [("--ssl-ca", ca), ("--ssl-cert", cert), ("--ssl-key", key)] {
            if let Some(file) = file {
                self.flag(flag, &file.display());
            }
        }
    }
}

/// Writes a word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:,=%@+".contains(&b);
    let bare = !word.is_empty() && word.bytes().all(plain);
    if bare { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
