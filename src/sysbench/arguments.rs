//! A command line by sysbench's grammar: words become values of options, and these, checked in its order
//! and with its words, [`Settings`].

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::options::{self, Becomes, Entry, Group, Kind, NO_EFFECT, OFF, ON, REFUSED, Values};
use super::output;
use super::settings::{Command, Ended, Ignored, Opening, OutputVersion, Settings, Test};
use crate::mysql::options::{Address, ConnectOptions, DEFAULT_PORT, Secret, Ssl, SslMode};
use crate::workload::{Distribution, ROWS_MAX, TABLES_MAX};

/// Where `localhost` is, unless MYSQL_UNIX_PORT says otherwise.
const SOCKET: &str = "/run/mysqld/mysqld.sock";
/// The test of 0.4 and 0.5: without a path it is compiled into 0.4.
const OLD: &str = "oltp";
/// Programs inside sysbench that have nothing to do with a database.
const BUILT_IN: [&str; 5] = ["fileio", "cpu", "memory", "threads", "mutex"];
const HAND_OVER: &str = "--sysbench-binary=PATH hands it to the real sysbench";
const NO_COMMAND: &str = "/usr/share/sysbench/oltp_common.lua:28: Command is required. Supported \
                          commands: prepare, prewarm, run, cleanup, help";
const COMMON_RUN: &str = "`init' function failed: /usr/share/sysbench/oltp_common.lua:22: this script is meant \
                          to be included by other OLTP scripts and should not be called directly.";
const BOUNDS: &str = "--rand-spec-iter is 1 to 1000, --rand-spec-pct and --rand-spec-res are 0 to 100, \
                      --rand-pareto-h is between 0 and 1, --rand-zipfian-exp is above 0, up to 10";
const OLD_TABLES: &str = "the tables and statements are those of 1.0: no column is UNSIGNED, and each kind \
                          of statement draws its own table";
const PREFERRED: &str =
    "--mysql-ssl encrypts every connection, where sysbench may fall back to plain text";
const OLD_FORM: &str = "WARNING: the --test option is deprecated. You can pass a script name or path on \
                        the command line without any options.\n";

/// A variable of the environment.
pub(crate) type Env<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

/// What a command line asks for.
pub(crate) enum Parsed {
    Settings(Box<Settings>),
    /// The program of `--sysbench-binary` does it; its words may hold a password.
    HandOver {
        program: PathBuf,
        args: Vec<OsString>,
    },
}

/// Reads a command line without the program's name.
pub(crate) fn parse(args: &[OsString], env: &Env<'_>) -> Result<Parsed, Opening> {
    let mut read = Arguments::default();
    read.words(args)?;
    read.resolve(env)
}

const SCRIPTS: [(&str, Test); 13] = [
    ("oltp_common", Test::Common),
    ("oltp_point_select", Test::PointSelect),
    ("oltp_read_only", Test::ReadOnly),
    ("oltp_read_write", Test::ReadWrite),
    ("oltp_write_only", Test::WriteOnly),
    ("oltp_update_index", Test::UpdateIndex),
    ("oltp_update_non_index", Test::UpdateNonIndex),
    ("oltp_insert", Test::Insert),
    ("oltp_delete", Test::Delete),
    ("select_random_points", Test::RandomPoints),
    ("select_random_ranges", Test::RandomRanges),
    ("bulk_insert", Test::BulkInsert),
    (OLD, Test::Oltp),
];

/// Gives the name of a test's script.
pub(crate) fn script_of(test: Test) -> &'static str {
    SCRIPTS.iter().find(|(_, known)| *known == test).expect("each test has a script").0
}

/// Finds the test of this name, or of this path.
fn test_of(word: &str) -> Option<Test> {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name.strip_suffix(".lua").unwrap_or(name);
    SCRIPTS.iter().find(|(known, _)| *known == name).map(|(_, test)| *test)
}

/// Tells whether a test declares the options of a group.
fn takes(test: Test, group: Group) -> bool {
    match group {
        Group::Tests => test != Test::BulkInsert,
        Group::Points => test == Test::RandomPoints,
        Group::Ranges => test == Test::RandomRanges,
        Group::Legacy => test == Test::Oltp,
        _ => false,
    }
}

#[derive(Default)]
struct Arguments {
    test: Option<String>,
    command: Option<String>,
    values: Values,
    /// Words that only the test can know, and switches with a wrong value.
    left: Vec<String>,
    opening: Opening,
    /// Lines for standard output behind the header.
    after_header: String,
    notes: Vec<String>,
    /// The words but for those of loadgen.
    theirs: Vec<OsString>,
    /// A word that may be a password: it is in no output.
    hidden: Option<String>,
}

impl Arguments {
    fn words(&mut self, args: &[OsString]) -> Result<(), Opening> {
        let mut words = args.iter();
        let mut before = "";
        while let Some(word) = words.next() {
            let Some(text) = word.to_str() else {
                return self.cannot("a word of the command line is no UTF-8");
            };
            let follows = std::mem::replace(&mut before, text);
            let Some(option) = text.strip_prefix("--") else {
                if options::plain(follows) == "--mysql-password" {
                    self.hidden = Some(text.to_owned());
                }
                self.positional(text)?;
                self.theirs.push(word.clone());
                continue;
            };
            let own = options::find(split(option).0).filter(|entry| entry.group == Group::Own);
            let mut option = option.to_owned();
            if own.is_none() {
                self.theirs.push(word.clone());
            } else if own.is_some_and(|entry| entry.kind != Kind::Bool) && !option.contains('=') {
                let Some(value) = words.next().and_then(|value| value.to_str()) else {
                    return self.cannot(&format!("--{option} needs a value"));
                };
                option = format!("{option}={value}");
            }
            if let Some(test) = option.strip_prefix("test=") {
                self.test = Some(test).filter(|test| !test.is_empty()).map(str::to_owned);
                self.opening.stderr.push_str(OLD_FORM);
            } else if !self.take(&option, |entry| !entry.of_test()) {
                self.left.push(option);
            }
        }
        Ok(())
    }

    fn positional(&mut self, word: &str) -> Result<(), Opening> {
        match (&self.test, &self.command) {
            (None, _) => self.test = Some(word.to_owned()),
            (_, None) => self.command = Some(word.to_owned()),
            _ => {
                let shown = self.shown(word);
                return self.usage(&format!("Unrecognized command line argument: {shown}"));
            }
        }
        Ok(())
    }

    /// Takes an option `name=value` of a group that counts now; false where there is no such option, or
    /// its value is none of a switch.
    fn take(&mut self, option: &str, counts: impl Fn(&Entry) -> bool) -> bool {
        let (name, value) = split(option);
        let Some(entry) = options::find(name).filter(|entry| counts(entry)) else {
            return false;
        };
        let text = value.unwrap_or_default();
        let is_switch = ON.contains(&text) || OFF.contains(&text);
        let is_known = is_switch || entry.kind == Kind::Ssl && SslMode::parse(text).is_ok();
        match entry.kind {
            Kind::Bool | Kind::Ssl if value == Some("") || !is_known => return false,
            Kind::File => self.config_file(text),
            _ => self.set(entry, name, text.to_owned()),
        }
        true
    }

    fn set(&mut self, entry: &'static Entry, name: &str, text: String) {
        if entry.about == NO_EFFECT && !entry.is_usual(&text) {
            self.notes.push(format!("--{name} has no effect"));
        }
        self.values.set(entry, text);
    }

    /// Takes the options of a config file, as far as it can be read.
    fn config_file(&mut self, path: &str) {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                let text = error.to_string();
                let text = text.split(" (os error").next().unwrap_or_default();
                self.opening.stderr.push_str(&format!("{path}: {text}\n"));
                return;
            }
        };
        for (number, line) in (1..).zip(String::from_utf8_lossy(&bytes).lines()) {
            let Some((name, text)) = line.split_once('=') else { continue };
            let items = items(text);
            self.setting(name, items.as_deref().unwrap_or_default());
            if items.is_none() {
                self.opening.stderr.push_str(&format!("unexpected EOL on line {number}\n"));
                return;
            }
        }
    }

    /// Takes one line of a config file.
    fn setting(&mut self, name: &str, items: &[String]) {
        let known = options::find(name).filter(|entry| entry.group != Group::Own);
        let Some(entry) = known else {
            self.after_header.push_str(&format!(
                "WARNING: Global option '{}' will not be exported, because the type is unknown\n",
                name.replace('-', "_")
            ));
            return;
        };
        let word = items.first().cloned().unwrap_or_default();
        let is_switch = matches!(entry.kind, Kind::Bool | Kind::Ssl);
        if entry.of_test() || entry.kind == Kind::File {
            self.notes.push(format!("{name} in a config file has no effect, as in sysbench"));
        } else if is_switch && OFF.contains(&word.as_str()) {
            self.notes.push(format!("{name}={word} in a config file is on, as in sysbench"));
            self.set(entry, name, "on".to_owned());
        } else {
            let text = match entry.kind {
                Kind::Bool => "on".to_owned(),
                Kind::List => items.join(","),
                _ => word,
            };
            self.set(entry, name, text);
        }
    }

    /// Gives what is to be done, or what is printed instead.
    fn resolve(mut self, env: &Env<'_>) -> Result<Parsed, Opening> {
        let test = self.test.as_deref().and_then(test_of);
        let output = self.asked()?;
        let program = self.values.text("sysbench-binary");
        if !program.is_empty() && (test.is_none() || self.values.text("db-driver") == "pgsql") {
            let program = PathBuf::from(program);
            return Ok(Parsed::HandOver { program, args: self.theirs });
        }
        self.numbers()?;
        let [threads, events, time] = self.limits()?;
        let forced_shutdown = self.forced_shutdown(time)?;
        let distribution = self.distribution()?;
        let rate = self.aliased("tx-rate", "rate", 0);
        let checkpoints = self.values.list("report-checkpoints");
        if let Some(item) = checkpoints.iter().find(|item| item.parse::<u32>().is_err()) {
            return self.fatal(&format!("Invalid value for --report-checkpoints: '{item}'"));
        }
        let verbosity = self.log(output)?;
        let test = self.known(test)?;
        self.declared(test)?;
        let command = self.command(test)?;
        self.undone()?;
        let (tables, table_size) = self.tables(test, command)?;
        let driver_fault = self.driver_fault()?;
        let (connect, server) = self.connect(env)?;
        let ignored = self.ignored();
        let of_0_5 = test == Test::Oltp && self.test.as_deref() != Some(OLD);
        self.noted(of_0_5);
        if verbosity >= 2 {
            self.opening.stdout.push_str(&self.after_header);
        }
        let test = match test {
            Test::Oltp if self.values.on("oltp-read-only") => Test::ReadOnly,
            Test::Oltp if self.values.on("oltp-write-only") => Test::WriteOnly,
            Test::Oltp => Test::ReadWrite,
            test => test,
        };
        let out = || env("LOADGEN_OUT").filter(|out| !out.is_empty()).map(PathBuf::from);
        Ok(Parsed::Settings(Box::new(Settings {
            test,
            command,
            threads: threads as u32,
            events: events as u64,
            time: Duration::from_secs(time as u64),
            rate: rate as u64,
            forced_shutdown,
            verbosity,
            distribution,
            // Below 0 it is as good a seed.
            seed: self.values.int("rand-seed") as u32,
            connect,
            server,
            ignored,
            prepared: self.values.text("db-ps-mode") != "disable" && !of_0_5,
            tables,
            table_size,
            output,
            out: self.path("loadgen-out").or_else(out),
            values: self.values,
            notes: self.notes,
            driver_fault,
            opening: self.opening,
        })))
    }

    /// Answers `--help` and `--version`, and finds whose output is written.
    fn asked(&self) -> Result<OutputVersion, Opening> {
        if self.values.on("help") {
            return self.answer(&options::help());
        }
        if self.values.on("version") {
            return self.answer("sysbench 1.0.20\n");
        }
        match self.values.text("output-version") {
            "0.5" => Ok(OutputVersion::V0_5),
            "1.0" => Ok(OutputVersion::V1_0),
            "1.1" => Ok(OutputVersion::V1_1),
            _ => self.cannot("--output-version is one of 0.5, 1.0 and 1.1"),
        }
    }

    /// Refuses what is no whole number where one is needed.
    fn numbers(&self) -> Result<(), Opening> {
        for entry in options::OPTIONS.iter().filter(|entry| entry.kind.is_int()) {
            let (name, text) = (entry.key(), self.values.text(entry.key()));
            match options::int(text) {
                None => {
                    let name = entry.underscored();
                    return self.usage(&format!("Invalid value for the '{name}' option: '{text}'"));
                }
                Some(..0) if entry.kind == Kind::Count => {
                    return self.cannot(&format!("--{name}={text} is below 0"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Reads the number of threads, of events, and of seconds.
    fn limits(&mut self) -> Result<[i32; 3], Opening> {
        let threads = self.aliased("num-threads", "threads", 1);
        if threads < 1 {
            return self.fatal(&format!("Invalid value for --threads: {threads}.\n"));
        }
        // 0.4 ends after so many events, unless told otherwise.
        if self.test.as_deref() == Some(OLD) {
            self.values.set_unless("max-requests", "events", "10000");
            self.values.set_unless("max-time", "time", "0");
        }
        let events = self.aliased("max-requests", "events", 0);
        let time = self.aliased("max-time", "time", 0);
        if events == 0 && time == 0 {
            self.warn("Both event and time limits are disabled, running an endless test");
        }
        Ok([threads, events, time])
    }

    /// Reads an option, or its old name, which wins where it is above this.
    fn aliased(&mut self, old: &str, new: &str, above: i32) -> i32 {
        let number = self.values.int(old);
        if number <= above {
            return self.values.int(new);
        }
        self.warn(&format!("--{old} is deprecated, use --{new} instead"));
        number
    }

    fn warn(&mut self, text: &str) {
        self.opening.stdout.push_str(&format!("WARNING: {text}\n"));
    }

    /// Reads how much later than at its end a run is given up.
    fn forced_shutdown(&self, time: i32) -> Result<Option<Duration>, Opening> {
        let (text, time) = (self.values.text("forced-shutdown"), time as u64);
        let seconds = match text.strip_suffix('%').unwrap_or(text).parse::<u32>() {
            _ if text == "off" || time == 0 => return Ok(None),
            _ if text.is_empty() => time * 5 / 100,
            Ok(percent) if text.ends_with('%') => time * u64::from(percent) / 100,
            Ok(seconds) => seconds.into(),
            Err(_) => {
                return self.fatal(&format!("Invalid value for --forced-shutdown: '{text}'"));
            }
        };
        Ok(Some(Duration::from_secs(seconds)))
    }

    fn distribution(&self) -> Result<Distribution, Opening> {
        // What is below 0 is out of bounds all the same.
        let [iterations, band, within] = ["rand-spec-iter", "rand-spec-pct", "rand-spec-res"]
            .map(|name| self.values.int(name) as u32);
        let distribution = match self.values.text("rand-type") {
            "uniform" => Some(Distribution::Uniform),
            "gaussian" => Distribution::gaussian(iterations),
            "special" => Distribution::special(iterations, band, within),
            "pareto" => Distribution::pareto(self.values.number("rand-pareto-h")),
            "zipfian" => Distribution::zipf_adjacent(self.values.number("rand-zipfian-exp")),
            name => return self.fatal(&format!("Invalid random numbers distribution: {name}.")),
        };
        distribution.map_or_else(|| self.cannot(BOUNDS), Ok)
    }

    /// Finds what is shown.
    fn log(&mut self, output: OutputVersion) -> Result<u8, Opening> {
        // One byte in sysbench, too.
        let (verbosity, percentile) =
            (self.values.int("verbosity") as u8, self.values.int("percentile"));
        if verbosity > 5 {
            return self.ended(1, &format!("Invalid value for verbosity: {verbosity}\n"), "");
        }
        if !(0..=100).contains(&percentile) {
            return self.fatal(&format!("Invalid value for --percentile: {percentile}"));
        }
        if percentile == 0 && self.values.on("histogram") {
            return self.fatal("--histogram cannot be used with --percentile=0");
        }
        let verbosity = if self.values.on("debug") { 5 } else { verbosity };
        if verbosity >= 3 {
            self.opening.stdout.push_str(&(output::header(output) + "\n"));
        }
        Ok(verbosity)
    }

    /// Refuses what is no test of loadgen's; a test of sysbench's wants a command.
    fn known(&self, test: Option<Test>) -> Result<Test, Opening> {
        let given = self.command.is_some();
        let word = match (test, self.test.as_deref()) {
            (Some(test), _) if given => return Ok(test),
            (Some(Test::BulkInsert), _) => return self.answer(""),
            (Some(_), _) => return self.fatal(NO_COMMAND),
            (None, None | Some("-")) => {
                let why = "a script on standard input is Lua, which loadgen does not run";
                return self.cannot(&format!("{why}; {HAND_OVER}"));
            }
            (None, Some(word)) => self.shown(word),
        };
        if BUILT_IN.contains(&word) && !given {
            let usage = format!("requires a command argument. See 'sysbench {word} help'");
            return self.usage(&format!("The '{word}' test {usage}"));
        }
        let text = format!("Cannot find benchmark '{word}': no such built-in test, file or module");
        let why =
            format!("'{word}' is none of oltp_*, select_random_* and bulk_insert; {HAND_OVER}");
        self.fatal_with(&text, &why)
    }

    /// Takes the options that this test declares.
    fn declared(&mut self, test: Test) -> Result<(), Opening> {
        for option in std::mem::take(&mut self.left) {
            if self.take(&option, |entry| takes(test, entry.group)) {
                continue;
            }
            let (name, value) = split(&option);
            let wrong = options::find(name)
                .is_some_and(|entry| !entry.of_test() || takes(test, entry.group));
            // It takes any option, and has nothing behind it.
            if test == Test::BulkInsert && !wrong {
                let note = format!("--{name} is no option of this test: it has no effect");
                self.notes.push(note);
                continue;
            }
            // A password may be behind a misspelt name.
            let hidden = value.is_some() && (name.contains("pas") || name.contains("pw"));
            let shown = if hidden { format!("{name}=***") } else { option };
            return self.usage(&format!("invalid option: --{shown}"));
        }
        Ok(())
    }

    fn command(&self, test: Test) -> Result<Command, Opening> {
        let bulk = test == Test::BulkInsert;
        match self.command.as_deref().unwrap_or_default() {
            "prepare" => Ok(Command::Prepare),
            "prewarm" | "warmup" if !bulk => Ok(Command::Prewarm),
            "run" if test == Test::Common => self.fatal(COMMON_RUN),
            "run" => Ok(Command::Run),
            "cleanup" => Ok(Command::Cleanup),
            "help" if bulk => {
                self.usage("'bulk_insert' test does not implement the 'help' command.")
            }
            "help" => {
                let word = self.test.as_deref().unwrap_or_default();
                let name = word.rsplit('/').next().unwrap_or(word);
                let listed = options::listed(|entry| takes(test, entry.group));
                self.answer(&format!("{name} options:\n{listed}\n"))
            }
            word => self.usage(&format!("Unknown command: {}", self.shown(word))),
        }
    }

    /// Refuses options that have nothing like them here, unless they are at their defaults.
    fn undone(&self) -> Result<(), Opening> {
        for entry in options::OPTIONS.iter().filter(|entry| entry.about == REFUSED) {
            let usual = entry.is_usual(self.values.text(entry.key()));
            if let (false, Becomes::Nothing(why)) = (usual, entry.becomes) {
                return self.cannot(&format!("--{} is refused: {why}", entry.key()));
            }
        }
        Ok(())
    }

    /// Reads the number of tables, and of rows in each.
    fn tables(&self, test: Test, command: Command) -> Result<(u32, u64), Opening> {
        let [tables, rows] = ["tables", "table-size"].map(|key| self.values.count(key));
        if tables > TABLES_MAX.into() || rows > ROWS_MAX {
            return self.cannot(&format!("{TABLES_MAX} tables of {ROWS_MAX} rows are the most"));
        }
        if tables == 0 && command == Command::Run && test != Test::BulkInsert {
            return self.cannot("--tables leaves no table to run on");
        }
        Ok((tables as u32, rows))
    }

    /// Tells what sysbench finds wrong with its driver at the first connection.
    fn driver_fault(&self) -> Result<Option<String>, Opening> {
        let (driver, mode) = (self.values.text("db-driver"), self.values.text("db-ps-mode"));
        let fault = format!("invalid database driver name: '{driver}'");
        if driver == "pgsql" {
            let why = format!("--db-driver: servers are MySQL and MariaDB; {HAND_OVER}");
            return self.fatal_with(&fault, &why);
        }
        let none = |key| self.values.list(key).is_empty();
        let faults = [
            (driver != "mysql", fault),
            (!["auto", "disable"].contains(&mode), format!("Invalid value for db-ps-mode: {mode}")),
            (none("mysql-host"), "No MySQL hosts specified, aborting".to_owned()),
            (none("mysql-port"), "No MySQL ports specified, aborting".to_owned()),
        ];
        Ok(faults.into_iter().find_map(|(is_so, fault)| is_so.then_some(fault)))
    }

    /// Reads which server it is, and how messages name it.
    fn connect(&mut self, env: &Env<'_>) -> Result<(ConnectOptions, String), Opening> {
        let [host, port, socket] =
            ["mysql-host", "mysql-port", "mysql-socket"].map(|key| self.one(key));
        let (host, port, socket) = (host?, port?, socket?);
        let port = match port.parse() {
            Ok(0) => DEFAULT_PORT,
            Ok(port) => port,
            Err(_) if port.is_empty() => DEFAULT_PORT,
            Err(_) => return self.cannot(&format!("--mysql-port={port} is no port")),
        };
        let local = || env("MYSQL_UNIX_PORT").unwrap_or_else(|| SOCKET.into());
        let mut server = format!("on host '{host}', port {port}");
        let address = match socket {
            socket if !socket.is_empty() => {
                server = format!("on socket '{socket}'");
                Address::Socket(socket.into())
            }
            _ if host == "localhost" => Address::Socket(local().into()),
            _ => Address::Tcp { host, port },
        };
        let user = self.values.text("mysql-user").to_owned();
        if user.is_empty() {
            return self.cannot("--mysql-user is empty: name the account");
        }
        let database = self.values.text("mysql-db").to_owned();
        let password = self.password(env)?;
        let ssl = self.ssl(&address)?;
        let connect_timeout = self.values.seconds("thread-init-timeout");
        let connect = ConnectOptions { address, user, password, database, ssl, connect_timeout };
        Ok((connect, server))
    }

    /// Gives the one value of a list, empty where there is none: a run has one server.
    fn one(&self, key: &str) -> Result<String, Opening> {
        match self.values.list(key)[..] {
            [] => Ok(String::new()),
            [item] => Ok(item.to_owned()),
            _ => {
                let why = "has several values: a run has one server; run it once for each";
                self.cannot(&format!("--{key} {why}"))
            }
        }
    }

    /// Takes the password off the values.
    fn password(&mut self, env: &Env<'_>) -> Result<Secret, Opening> {
        let given = self.values.take("mysql-password").filter(|word| !word.is_empty());
        match (given, env("MYSQL_PWD")) {
            (Some(word), _) => Ok(Secret::new(word)),
            (None, Some(word)) => match word.into_string() {
                Ok(word) => Ok(Secret::new(word)),
                Err(_) => self.cannot("MYSQL_PWD is no UTF-8"),
            },
            (None, None) => Ok(Secret::default()),
        }
    }

    /// Reads how connections are encrypted; files without a name lie in the working directory.
    fn ssl(&mut self, address: &Address) -> Result<Ssl, Opening> {
        let mode = match self.values.text("mysql-ssl") {
            text if ON.contains(&text) => SslMode::Preferred,
            text => SslMode::parse(text).unwrap_or(SslMode::Disabled),
        };
        if mode == SslMode::Disabled {
            return Ok(Ssl::default());
        }
        if matches!(address, Address::Socket(_)) {
            return self.cannot("--mysql-ssl: no TLS over a socket; --mysql-host=127.0.0.1 is TCP");
        }
        let [ca, mut cert, mut key] =
            ["mysql-ssl-ca", "mysql-ssl-cert", "mysql-ssl-key"].map(|key| self.path(key));
        if key.is_some() != cert.is_some() {
            return self.cannot("--mysql-ssl-key and --mysql-ssl-cert go together");
        }
        if mode.verifies() && ca.is_none() {
            return self.cannot(&format!("--mysql-ssl={mode} needs --mysql-ssl-ca"));
        }
        if mode != SslMode::Preferred {
            return Ok(Ssl { mode, ca: ca.filter(|_| mode.verifies()), cert, key });
        }
        self.notes.push(PREFERRED.to_owned());
        let found = ["client-cert.pem", "client-key.pem"].map(PathBuf::from);
        if key.is_none() && found.iter().all(|file| file.exists()) {
            [cert, key] = found.map(Some);
        }
        Ok(Ssl { mode: SslMode::Required, ca: None, cert, key })
    }

    fn ignored(&mut self) -> Ignored {
        let (mut codes, mut notes) = (Vec::new(), Vec::new());
        for item in self.values.list("mysql-ignore-errors") {
            match item.parse() {
                _ if item == "all" => return Ignored::All,
                Ok(code) => codes.push(code),
                Err(_) => {
                    notes.push(format!("--mysql-ignore-errors: '{item}' is no error's number"));
                }
            }
        }
        self.notes.append(&mut notes);
        Ignored::Codes(codes)
    }

    /// Notes what differs.
    fn noted(&mut self, of_0_5: bool) {
        let word = self.test.as_deref().unwrap_or_default();
        let another = word.contains('/') && super::scripts::is_another(word);
        let notes = [
            (
                another,
                format!("{word} is not the script of sysbench 1.0.20: loadgen runs that one"),
            ),
            (word == OLD, format!("{OLD_TABLES}; the first is sbtest1, not sbtest")),
            (of_0_5, format!("{OLD_TABLES}; statements are text, as in 0.5")),
        ];
        self.notes.extend(notes.into_iter().filter_map(|(is_so, note)| is_so.then_some(note)));
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        Some(self.values.text(name)).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    /// Shows a word, unless it may be a password.
    fn shown<'a>(&self, word: &'a str) -> &'a str {
        if self.hidden.as_deref() == Some(word) { "***" } else { word }
    }

    /// Answers at once: all is well.
    fn answer<T>(&self, text: &str) -> Result<T, Opening> {
        self.ended(0, text, "")
    }

    /// Refuses what loadgen does not do.
    fn cannot<T>(&self, why: &str) -> Result<T, Opening> {
        self.ended(1, "", &format!("loadgen: {why}\n"))
    }

    /// Refuses on standard error in sysbench's words.
    fn usage<T>(&self, text: &str) -> Result<T, Opening> {
        self.ended(1, "", &format!("{text}\n"))
    }

    /// Refuses on standard output in sysbench's words.
    fn fatal<T>(&self, text: &str) -> Result<T, Opening> {
        self.ended(1, &format!("FATAL: {text}\n"), "")
    }

    /// Likewise, and says more on standard error in loadgen's.
    fn fatal_with<T>(&self, text: &str, why: &str) -> Result<T, Opening> {
        self.ended(1, &format!("FATAL: {text}\n"), &format!("loadgen: {why}\n"))
    }

    /// Ends behind what sysbench has written by then.
    fn ended<T>(&self, status: Ended, stdout: &str, stderr: &str) -> Result<T, Opening> {
        let Opening { stdout: before, stderr: said, .. } = &self.opening;
        let (stdout, stderr) = (format!("{before}{stdout}"), format!("{said}{stderr}"));
        Err(Opening { stdout, stderr, status })
    }
}

/// Splits an option into its name and its value.
fn split(option: &str) -> (&str, Option<&str>) {
    option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)))
}

/// Splits a value of a config file: blanks and commas part, quotes hold together, `#` begins a comment.
/// None where a quote has no end.
fn items(text: &str) -> Option<Vec<String>> {
    let (mut items, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next().filter(|first| *first != '#') {
        let (item, after) = match first {
            '"' | '\'' => rest[1..].split_once(first)?,
            _ => {
                let end = rest.find(|c: char| c.is_whitespace() || c == ',');
                rest.split_at(end.unwrap_or(rest.len()))
            }
        };
        items.push(item.to_owned());
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
    }
    Some(items)
}
