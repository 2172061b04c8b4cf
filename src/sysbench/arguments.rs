//! Parses a command line by sysbench's grammar: words become values of options, and these, checked in
//! its order and with its messages, [`Settings`].

use std::ffi::OsString;
use std::fs;
use std::mem::take;
use std::path::PathBuf;
use std::time::Duration;

use super::options::{
    self, Becomes, Entry, Group, NO_EFFECT, OFF, ON, OptionKind, OptionValues, REFUSED,
};
use super::output;
use super::scripts::{OLD, Places, STOCK};
use super::settings::{Command, Ignored, Opening, OutputVersion, ScriptCall, Settings, Test};
use crate::mysql::options::{Address, ConnectOptions, DEFAULT_PORT, Secret, Ssl, SslMode};
use crate::plan::limits;
use crate::plan::value::CLIENTS_MAX;
use crate::workload::{Distribution, ROWS_MAX, TABLES_MAX};

/// The socket of `localhost`, unless MYSQL_UNIX_PORT names another.
const SOCKET: &str = "/run/mysqld/mysqld.sock";
/// The most checkpoints that sysbench takes.
const CHECKPOINTS_MAX: usize = 256;
/// sysbench's programs without a database.
const BUILT_IN: [&str; 5] = ["fileio", "cpu", "memory", "threads", "mutex"];
const HAND_OVER: &str = "--sysbench-binary=PATH hands it to the real sysbench";
const NO_COMMAND: &str = "/usr/share/sysbench/oltp_common.lua:28: Command is required. Supported \
                          commands: prepare, prewarm, run, cleanup, help";
const NO_HELP: &str = "'bulk_insert' test does not implement the 'help' command.";
const COMMON_RUN: &str = "`init' function failed: /usr/share/sysbench/oltp_common.lua:22: this script is meant \
                          to be included by other OLTP scripts and should not be called directly.";
const BOUNDS: &str = "--rand-spec-iter is 1 to 1000, --rand-spec-pct and --rand-spec-res are 0 to 100, \
                      --rand-pareto-h is between 0 and 1, --rand-zipfian-exp is above 0, up to 10";
const OLD_TABLES: &str = "the test oltp uses the tables of sysbench 1.0: their columns are signed, and each \
                          statement picks a table";
const FIRST: &str = "the first table is sbtest1 instead of sbtest";
const PREFERRED: &str =
    "--mysql-ssl encrypts every connection; sysbench may fall back to plain text";
const OLD_FORM: &str = "WARNING: the --test option is deprecated. You can pass a script name or path on \
                        the command line without any options.\n";

pub(crate) type Env<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

pub(crate) enum Parsed {
    Settings(Box<Settings>),
    /// The program of `--sysbench-binary` runs it; its words may hold a password.
    HandOver {
        program: PathBuf,
        args: Vec<OsString>,
    },
}

pub(crate) fn parse(args: &[OsString], env: &Env<'_>) -> Result<Parsed, Opening> {
    let mut read = Arguments::default();
    let parsed = read.words(args, env).and_then(|()| read.resolve(env));
    // Messages that sysbench has written by then come first.
    parsed.map_err(|Opening { stdout, stderr, status, .. }| Opening {
        early: read.opening.early,
        stdout: read.opening.stdout + &stdout,
        stderr,
        status,
    })
}

pub(crate) fn script_of(test: Test) -> &'static str {
    STOCK.iter().find(|(_, known, _)| *known == Some(test)).expect("each test has a script").0
}

pub(super) fn test_of(word: &str) -> Option<Test> {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name.strip_suffix(".lua").unwrap_or(name);
    STOCK.iter().find(|(known, ..)| *known == name).and_then(|(_, test, _)| *test)
}

fn takes(test: Option<Test>, group: Group) -> bool {
    match group {
        Group::Tests => !matches!(test, Some(Test::BulkInsert | Test::Script)),
        Group::Points => test == Some(Test::RandomPoints),
        Group::Ranges => test == Some(Test::RandomRanges),
        Group::Legacy => test == Some(Test::Oltp),
        _ => true,
    }
}

#[derive(Default)]
struct Arguments<'a> {
    test: Option<&'a str>,
    command: Option<&'a str>,
    values: OptionValues,
    /// The error for the first option that the test does not take.
    wrong: Option<Opening>,
    opening: Opening,
    after_header: String,
    notes: Vec<String>,
    theirs: Vec<&'a str>,
    script: Option<ScriptCall>,
    /// Words that may be passwords: never shown.
    hidden: Vec<&'a str>,
}

impl<'a> Arguments<'a> {
    fn words(&mut self, args: &'a [OsString], env: &Env<'_>) -> Result<(), Opening> {
        let args: Option<Vec<&str>> = args.iter().map(|word| word.to_str()).collect();
        let wrong = || unsupported("a word of the command line is no UTF-8");
        let mut words = args.ok_or_else(wrong)?.into_iter();
        let mut options = Vec::new();
        while let Some(word) = words.next() {
            let is_password = |word: &&str| {
                word.starts_with("--") && !word.contains('=') && options::may_be_password(word)
            };
            let is_known = test_of(word).is_some() || BUILT_IN.contains(&word);
            if !is_known && self.theirs.last().is_some_and(is_password) {
                self.hidden.push(word);
            }
            let option = word.strip_prefix("--").map(split);
            let known = option.and_then(|(name, _)| options::find(name));
            let own = known.filter(|entry| entry.group == Group::Own);
            if own.is_none() {
                self.theirs.push(word);
            }
            match option {
                Some(("test", Some(test))) => {
                    self.test = Some(test).filter(|test| !test.is_empty());
                    self.opening.early.push_str(OLD_FORM);
                }
                Some((name, None)) if own.is_some_and(|entry| entry.kind != OptionKind::Bool) => {
                    let missing = || unsupported(&format!("--{name} needs a value"));
                    let value = words.next().filter(|word| !word.starts_with("--"));
                    options.push((name, Some(value.ok_or_else(missing)?)));
                }
                Some(option) => options.push(option),
                None if self.test.is_none() => self.test = Some(word),
                None if self.command.is_none() => self.command = Some(word),
                None => {
                    let shown = self.display_word(word);
                    return Err(usage(&format!("Unrecognized command line argument: {shown}")));
                }
            }
        }
        self.script = self.script_call(env)?;
        let test = self.find_test();
        for (name, value) in options {
            self.option(name, value, test);
        }
        Ok(())
    }

    /// Returns what a script gets, if the test is one that is run from Lua.
    fn script_call(&self, env: &Env<'_>) -> Result<Option<ScriptCall>, Opening> {
        let word = self.test.unwrap_or("-");
        if BUILT_IN.contains(&word) {
            return Ok(None);
        }
        let places = Places::new(word, env);
        let found = places.find_script(word, test_of(word).map(script_of));
        let Some(path) = found.map_err(|why| unsupported(&why))? else { return Ok(None) };
        Ok(Some(ScriptCall {
            path,
            command: self.command.map(str::to_owned),
            argv: self.theirs.iter().map(|word| (*word).to_owned()).collect(),
            package_path: places.package_path(),
            stock_path: places.stock,
            ..ScriptCall::default()
        }))
    }

    fn find_test(&self) -> Option<Test> {
        if self.script.is_some() { Some(Test::Script) } else { self.test.and_then(test_of) }
    }

    fn option(&mut self, name: &str, value: Option<&str>, test: Option<Test>) {
        let text = value.unwrap_or_default();
        let is_switch = value != Some("") && (ON.contains(&text) || OFF.contains(&text));
        let fits = |kind| match kind {
            OptionKind::Bool => is_switch,
            OptionKind::Ssl => is_switch || SslMode::parse(text).is_ok(),
            _ => true,
        };
        match options::find(name).filter(|entry| takes(test, entry.group)) {
            // As in sysbench, no file has an empty name.
            Some(entry) if entry.kind == OptionKind::File && text.is_empty() => {}
            Some(entry) if entry.kind == OptionKind::File => self.config_file(text),
            Some(entry) if fits(entry.kind) => self.set(entry, name, text.to_owned()),
            // The script declares its own; its value may be any.
            None if test == Some(Test::Script) => {
                let call = self.script.as_mut().expect("the test is a script");
                call.given.push((name.to_owned(), value.map(str::to_owned)));
            }
            // bulk_insert accepts any option and ignores it.
            None if test == Some(Test::BulkInsert) => {
                self.notes.push(format!("--{name} has no effect: this test has no such option"));
            }
            _ => {
                let wrong = invalid_option(name, value);
                match &mut self.script {
                    // The script is run before its options are read.
                    Some(call) => drop(call.wrong.get_or_insert(wrong)),
                    None => drop(self.wrong.get_or_insert(usage(&wrong))),
                }
            }
        }
    }

    fn set(&mut self, entry: &'static Entry, name: &str, text: String) {
        if entry.about == NO_EFFECT && !entry.is_default(&text) {
            self.notes.push(format!("--{name} has no effect"));
        }
        self.values.set(entry, text);
    }

    fn config_file(&mut self, path: &str) {
        let bytes = fs::read(path).unwrap_or_else(|error| {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default();
            self.opening.early.push_str(&format!("{path}: {text}\n"));
            Vec::new()
        });
        for (number, line) in (1..).zip(String::from_utf8_lossy(&bytes).lines()) {
            let Some((name, text)) = line.split_once('=') else { continue };
            let items = items(text);
            self.setting(name, items.as_deref().unwrap_or_default());
            if items.is_none() {
                self.opening.early.push_str(&format!("unexpected EOL on line {number}\n"));
                break;
            }
        }
    }

    fn setting(&mut self, name: &str, items: &[&str]) {
        let is_script = self.script.is_some();
        let known = options::find(name)
            .filter(|entry| entry.group != Group::Own && !(is_script && entry.is_of_test()));
        let Some(entry) = known else {
            let name = name.replace('-', "_");
            if let Some(call) = &mut self.script {
                // It declares its options later.
                call.configured.push(name);
            } else {
                self.after_header.push_str(&format!("WARNING: {}\n", unexported(&name)));
            }
            return;
        };
        if entry.is_of_test() || entry.kind == OptionKind::File {
            return self.notes.push(unset(name));
        }
        let word = items.first().copied().unwrap_or_default();
        let text = match entry.kind {
            OptionKind::Bool | OptionKind::Ssl if OFF.contains(&word) => {
                self.notes.push(format!(
                    "{name}={word} in a config file turns the option on, as in sysbench"
                ));
                "on".to_owned()
            }
            OptionKind::Bool => "on".to_owned(),
            OptionKind::List => items.join(","),
            _ => word.to_owned(),
        };
        self.set(entry, name, text);
    }

    fn resolve(&mut self, env: &Env<'_>) -> Result<Parsed, Opening> {
        let test = self.find_test();
        let output = self.output_version()?;
        let program = self.values.text("sysbench-binary");
        if !program.is_empty() && self.is_undone(test) {
            let args = self.theirs.iter().map(OsString::from).collect();
            return Ok(Parsed::HandOver { program: program.into(), args });
        }
        self.limits()?;
        let forced_shutdown = self.forced_shutdown()?;
        self.check_numbers(|entry| entry.group == Group::Random)?;
        let distribution = self.distribution()?;
        self.old_name("tx-rate", "rate", 0)?;
        self.check_numbers(|_| true)?;
        let verbosity = self.log(output)?;
        let (test, command) = self.resolve_test(test)?;
        let driver_fault = self.driver_fault()?;
        let (connect, server) = self.connect(env)?;
        self.undone(test, command)?;
        let word = self.test.unwrap_or_default();
        let of_0_5 = test == Test::Oltp && word != OLD;
        if test == Test::Oltp {
            let differs = if of_0_5 { "statements are sent as text, as in 0.5" } else { FIRST };
            self.notes.push(format!("{OLD_TABLES}; {differs}"));
        }
        let test = match test {
            Test::Oltp if self.values.on("oltp-read-only") => Test::ReadOnly,
            Test::Oltp if self.values.on("oltp-write-only") => Test::WriteOnly,
            Test::Oltp => Test::ReadWrite,
            test => test,
        };
        let by_flag = self.path("loadgen-out").map(|out| (out, "--loadgen-out=DIR"));
        let variable = env("LOADGEN_OUT").filter(|out| !out.is_empty()).map(PathBuf::from);
        let out = by_flag.or(variable.map(|out| (out, "LOADGEN_OUT=DIR")));
        Ok(Parsed::Settings(Box::new(Settings {
            test,
            command,
            script: take(&mut self.script),
            threads: self.values.int("threads") as u32,
            events: self.values.int("events") as u64,
            time: self.values.seconds("time"),
            rate: self.values.int("rate") as u64,
            forced_shutdown,
            verbosity,
            distribution,
            // A negative number is as good a seed.
            seed: self.values.int("rand-seed") as u32,
            connect,
            server,
            ignored: self.ignored_errors(),
            prepared: self.values.text("db-ps-mode") != "disable" && !of_0_5,
            tables: self.values.count("tables") as u32,
            table_size: self.values.count("table-size"),
            output,
            out_named_by: out.as_ref().map_or("", |(_, by)| *by),
            out: out.map(|(out, _)| out),
            values: take(&mut self.values),
            notes: take(&mut self.notes),
            driver_fault,
            opening: take(&mut self.opening),
        })))
    }

    /// Returns whether only sysbench does the test.
    fn is_undone(&self, test: Option<Test>) -> bool {
        let without_lua = !cfg!(feature = "lua") && test == Some(Test::Script);
        test.is_none() || without_lua || self.values.text("db-driver") == "pgsql"
    }

    /// Answers `--help` and `--version`, and returns the version to imitate.
    fn output_version(&self) -> Result<OutputVersion, Opening> {
        if self.values.on("help") {
            return Err(answer(&options::help()));
        }
        answer("sysbench 1.0.20\n").when(self.values.on("version"))?;
        match self.values.text("output-version") {
            "0.5" => Ok(OutputVersion::V0_5),
            "1.0" => Ok(OutputVersion::V1_0),
            "1.1" => Ok(OutputVersion::V1_1),
            _ => Err(unsupported("--output-version is one of 0.5, 1.0 and 1.1")),
        }
    }

    /// Refuses a value that is no whole number where one is needed.
    fn check_numbers(&self, wanted: impl Fn(&Entry) -> bool) -> Result<(), Opening> {
        let whole = |entry: &&Entry| matches!(entry.kind, OptionKind::Int | OptionKind::Count);
        for entry in options::OPTIONS.iter().filter(whole).filter(|entry| wanted(entry)) {
            let (name, text) = (entry.key().replace('-', "_"), self.values.text(entry.key()));
            let number = options::int(text).ok_or_else(|| usage(&invalid_value(&name, text)))?;
            let is_below = number < 0 && entry.kind == OptionKind::Count;
            unsupported(&format!("--{}={text} is below 0", entry.key())).when(is_below)?;
        }
        Ok(())
    }

    fn limits(&mut self) -> Result<(), Opening> {
        // 0.4 ends after this many events unless told otherwise.
        let of_0_4 = [("max-requests", "events", "10000"), ("max-time", "time", "0")];
        for (old, new, text) in of_0_4.into_iter().filter(|_| self.test == Some(OLD)) {
            if ![old, new].iter().any(|name| self.values.is_given(name)) {
                self.values.set(options::get(new), text.to_owned());
            }
        }
        self.old_name("num-threads", "threads", 1)?;
        let threads = self.values.int("threads");
        invalid("threads", &format!("{threads}.\n")).when(threads < 1)?;
        self.old_name("max-requests", "events", 0)?;
        self.old_name("max-time", "time", 0)?;
        if self.values.int("events") == 0 && self.values.int("time") == 0 {
            self.warn("Both event and time limits are disabled, running an endless test");
        }
        Ok(())
    }

    fn old_name(&mut self, old: &str, new: &str, above: i32) -> Result<(), Opening> {
        self.check_numbers(|entry| entry.key() == old)?;
        let number = self.values.int(old);
        if number <= above {
            return self.check_numbers(|entry| entry.key() == new);
        }
        self.warn(&format!("--{old} is deprecated, use --{new} instead"));
        self.values.set(options::get(new), number.to_string());
        Ok(())
    }

    fn warn(&mut self, text: &str) {
        self.opening.stdout.push_str(&format!("WARNING: {text}\n"));
    }

    /// Returns the time after its end at which a run is given up.
    fn forced_shutdown(&self) -> Result<Option<Duration>, Opening> {
        let (text, time) = (self.values.text("forced-shutdown"), self.values.int("time") as u64);
        let seconds = match text.strip_suffix('%').unwrap_or(text).parse::<u32>() {
            _ if text.eq_ignore_ascii_case("off") || time == 0 => return Ok(None),
            _ if text.is_empty() => time * 5 / 100,
            Ok(percent) if text.ends_with('%') => time * u64::from(percent) / 100,
            Ok(seconds) => seconds.into(),
            Err(_) => return Err(invalid("forced-shutdown", &format!("'{text}'"))),
        };
        Ok(Some(Duration::from_secs(seconds)))
    }

    fn distribution(&self) -> Result<Distribution, Opening> {
        let name = self.values.text("rand-type");
        fatal(&format!("Invalid random numbers distribution: {name}."))
            .when(self.values.rand_type().is_none())?;
        self.values.distribution().ok_or_else(|| unsupported(BOUNDS))
    }

    fn log(&mut self, output: OutputVersion) -> Result<u8, Opening> {
        let checkpoints = self.values.list("report-checkpoints");
        // The first that is wrong or too many ends it.
        let mut read = checkpoints.iter().take(CHECKPOINTS_MAX + 1);
        if let Some(item) = read.find(|item| item.trim_start().parse::<u32>().is_err()) {
            return Err(invalid("report-checkpoints", &format!("'{item}'")));
        }
        let defined = format!("up to {CHECKPOINTS_MAX} can be defined");
        fatal(&format!("Too many checkpoints in --report-checkpoints ({defined})"))
            .when(checkpoints.len() > CHECKPOINTS_MAX)?;
        // sysbench keeps one byte, too.
        let verbosity = self.values.int("verbosity") as u8;
        let text = format!("Invalid value for verbosity: {verbosity}\n");
        Opening { status: 1, ..answer(&text) }.when(verbosity > 5)?;
        let percentile = self.values.int("percentile");
        invalid("percentile", &percentile.to_string()).when(!(0..=100).contains(&percentile))?;
        let none = percentile == 0 && self.values.on("histogram");
        fatal("--histogram cannot be used with --percentile=0").when(none)?;
        let verbosity = if self.values.on("debug") { 5 } else { verbosity };
        if verbosity >= 3 {
            self.opening.stdout.push_str(&(output::header(output) + "\n"));
        }
        if verbosity >= 2 {
            self.opening.stdout.push_str(&self.after_header);
        }
        Ok(verbosity)
    }

    /// Finds test and command; sysbench's tests need a command.
    fn resolve_test(&mut self, test: Option<Test>) -> Result<(Test, Command), Opening> {
        let word = self.display_word(self.test.unwrap_or("-"));
        let Some(test) = test else {
            let usual = "requires a command argument. See 'sysbench";
            usage(&format!("The '{word}' test {usual} {word} help'"))
                .when(self.command.is_none() && BUILT_IN.contains(&word))?;
            let why = "no such built-in test, file or module";
            let ours = format!(
                "'{word}' is no file or Lua module, and none of oltp_*, select_random_*, bulk_insert"
            );
            return Err(only_in_sysbench(&format!("Cannot find benchmark '{word}': {why}"), &ours));
        };
        if test == Test::Script {
            unsupported("--explain knows no scripts").when(self.values.on("explain"))?;
            let runs = self.command == Some("run");
            return Ok((test, if runs { Command::Run } else { Command::Prepare }));
        }
        let bulk = test == Test::BulkInsert;
        let Some(command) = self.command else {
            return Err(if bulk { answer("") } else { fatal(NO_COMMAND) });
        };
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        let command = match command {
            "prepare" => Command::Prepare,
            "prewarm" | "warmup" if !bulk => Command::Prewarm,
            "run" if test == Test::Common => return Err(fatal(COMMON_RUN)),
            "run" => Command::Run,
            "cleanup" => Command::Cleanup,
            "help" if bulk => return Err(usage(NO_HELP)),
            "help" => {
                let name = word.rsplit('/').next().unwrap_or(word);
                let listed = |entry: &Entry| entry.is_of_test() && takes(Some(test), entry.group);
                let listed = options::list_options(listed);
                return Err(answer(&format!("{name} options:\n{listed}\n")));
            }
            word => return Err(usage(&format!("Unknown command: {}", self.display_word(word)))),
        };
        Ok((test, command))
    }

    fn undone(&self, test: Test, command: Command) -> Result<(), Opening> {
        for entry in options::OPTIONS.iter().filter(|entry| entry.about == REFUSED) {
            let usual = entry.is_default(self.values.text(entry.key()));
            if let (false, Becomes::Nothing(why)) = (usual, entry.becomes) {
                return Err(unsupported(&format!("--{} is refused: {why}", entry.key())));
            }
        }
        let [tables, rows] = ["tables", "table-size"].map(|key| self.values.count(key));
        unsupported(&format!("{TABLES_MAX} tables of {ROWS_MAX} rows are the most"))
            .when(tables > TABLES_MAX.into() || rows > ROWS_MAX)?;
        unsupported(&format!("{CLIENTS_MAX} threads are the most"))
            .when(self.values.int("threads") as u32 > CLIENTS_MAX)?;
        let needs_table =
            command == Command::Run && !matches!(test, Test::BulkInsert | Test::Script);
        unsupported("--tables leaves no table to run on").when(tables == 0 && needs_table)
    }

    fn driver_fault(&self) -> Result<Option<String>, Opening> {
        let (driver, mode) = (self.values.text("db-driver"), self.values.text("db-ps-mode"));
        let fault = format!("invalid database driver name: '{driver}'");
        let ours = "--db-driver: servers are MySQL and MariaDB";
        only_in_sysbench(&fault, ours).when(driver == "pgsql")?;
        let none = |key| self.values.list(key).is_empty();
        let faults = [
            (driver != "mysql", fault),
            (!["auto", "disable"].contains(&mode), format!("Invalid value for db-ps-mode: {mode}")),
            (none("mysql-host"), "No MySQL hosts specified, aborting".to_owned()),
            (none("mysql-port"), "No MySQL ports specified, aborting".to_owned()),
        ];
        Ok(faults.into_iter().find_map(|(is_so, fault)| is_so.then_some(fault)))
    }

    fn connect(&mut self, env: &Env<'_>) -> Result<(ConnectOptions, String), Opening> {
        let lists = ["mysql-host", "mysql-port", "mysql-socket"];
        for key in lists {
            let why = "has several values: a run has one server; run it once for each";
            unsupported(&format!("--{key} {why}")).when(self.values.list(key).len() > 1)?;
        }
        let [host, port, socket] = lists.map(|key| self.values.list(key).concat());
        let number = options::int(&port).and_then(|number| u16::try_from(number).ok());
        let wrong = || unsupported(&format!("--mysql-port={port} is no port"));
        // An empty value is 0.
        let port = Some(number.ok_or_else(wrong)?).filter(|port| *port > 0).unwrap_or(DEFAULT_PORT);
        let mut server = format!("on host '{host}', port {port}");
        let address = if !socket.is_empty() {
            server = format!("on socket '{socket}'");
            Address::Socket(socket.into())
        } else if host == "localhost" {
            Address::Socket(env("MYSQL_UNIX_PORT").unwrap_or_else(|| SOCKET.into()).into())
        } else {
            Address::Tcp { host, port }
        };
        let user = self.values.text("mysql-user").to_owned();
        unsupported("--mysql-user is empty: name the account").when(user.is_empty())?;
        let password = self.values.take("mysql-password").filter(|word| !word.is_empty());
        let password = password.map(OsString::from).or_else(|| env("MYSQL_PWD"));
        let password = password.unwrap_or_default().into_string();
        let password = password.map_err(|_| unsupported("MYSQL_PWD is no UTF-8"))?;
        let connect = ConnectOptions {
            others: Vec::new(),
            ssl: self.ssl(&address)?,
            address,
            user,
            password: Secret::new(password),
            database: self.values.text("mysql-db").to_owned(),
            // The clock of 1.1 sets no limit for 0.
            connect_timeout: Some(self.values.seconds("thread-init-timeout"))
                .filter(|limit| !limit.is_zero())
                .unwrap_or(limits::PHASE_MAX),
        };
        Ok((connect, server))
    }

    /// Reads the TLS options; files without a name lie in the working directory.
    fn ssl(&mut self, address: &Address) -> Result<Ssl, Opening> {
        let mut mode = match self.values.text("mysql-ssl") {
            text if ON.contains(&text) => SslMode::Preferred,
            text if OFF.contains(&text) => SslMode::Disabled,
            // Any other word of a config file means on.
            text => SslMode::parse(text).unwrap_or(SslMode::Preferred),
        };
        if mode == SslMode::Disabled {
            return Ok(Ssl::default());
        }
        let [ca, mut cert, mut key] =
            ["mysql-ssl-ca", "mysql-ssl-cert", "mysql-ssl-key"].map(|key| self.path(key));
        let ca = ca.filter(|_| mode.verifies());
        unsupported("--mysql-ssl: no TLS over a socket; --mysql-host=127.0.0.1 is TCP")
            .when(matches!(address, Address::Socket(_)))?;
        let one = key.is_some() != cert.is_some();
        unsupported("--mysql-ssl-key and --mysql-ssl-cert go together").when(one)?;
        let none = mode.verifies() && ca.is_none();
        unsupported(&format!("--mysql-ssl={mode} needs --mysql-ssl-ca")).when(none)?;
        if mode == SslMode::Preferred {
            mode = SslMode::Required;
            self.notes.push(PREFERRED.to_owned());
            let found = ["client-cert.pem", "client-key.pem"].map(PathBuf::from);
            if key.is_none() && found.iter().all(|file| file.exists()) {
                [cert, key] = found.map(Some);
            }
        }
        Ok(Ssl { mode, ca, cert, key })
    }

    fn ignored_errors(&mut self) -> Ignored {
        let items = self.values.list("mysql-ignore-errors");
        let is_code = |item: &str| item.trim().parse::<u16>().is_ok();
        let odd = items.iter().filter(|item| **item != "all" && !is_code(item));
        let note = |item| {
            format!("--mysql-ignore-errors: '{item}' is not an error number, and has no effect")
        };
        self.notes.extend(odd.map(note));
        let codes = items.iter().filter_map(|item| item.trim().parse().ok()).collect();
        if items.contains(&"all") { Ignored::All } else { Ignored::Codes(codes) }
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        Some(self.values.text(name)).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    /// Returns a word for display, masked if it may be a password.
    fn display_word(&self, word: &'a str) -> &'a str {
        if self.hidden.contains(&word) { "***" } else { word }
    }
}

impl Opening {
    fn when(self, is_so: bool) -> Result<(), Opening> {
        if is_so { Err(self) } else { Ok(()) }
    }
}

fn answer(text: &str) -> Opening {
    Opening { stdout: text.to_owned(), ..Opening::default() }
}

pub(super) fn invalid_option(name: &str, value: Option<&str>) -> String {
    let value = value.map(|value| format!("={}", mask_value(name, value)));
    format!("invalid option: --{name}{}", value.unwrap_or_default())
}

/// Returns the words for an option of a config file that nobody declares.
pub(super) fn unexported(name: &str) -> String {
    format!("Global option '{name}' will not be exported, because the type is unknown")
}

/// Returns the words for an option that a config file cannot set.
pub(super) fn unset(name: &str) -> String {
    format!("{name} has no effect in a config file, as in sysbench")
}

pub(super) fn invalid_value(name: &str, value: &str) -> String {
    format!("Invalid value for the '{name}' option: '{}'", mask_value(name, value))
}

/// Returns a value for display.
fn mask_value<'a>(name: &str, value: &'a str) -> &'a str {
    if options::may_be_password(name) { "***" } else { value }
}

/// Fails on standard error in sysbench's words.
fn usage(text: &str) -> Opening {
    Opening { stderr: format!("{text}\n"), status: 1, ..Opening::default() }
}

fn unsupported(why: &str) -> Opening {
    usage(&format!("loadgen: {why}"))
}

/// Fails on standard output in sysbench's words.
fn fatal(text: &str) -> Opening {
    Opening { stdout: format!("FATAL: {text}\n"), status: 1, ..Opening::default() }
}

/// Fails like [`fatal`] for a value of an option.
fn invalid(name: &str, value: &str) -> Opening {
    fatal(&format!("Invalid value for --{name}: {value}"))
}

/// Fails like [`fatal`] and names the program that does it.
fn only_in_sysbench(text: &str, why: &str) -> Opening {
    Opening { stderr: unsupported(&format!("{why}; {HAND_OVER}")).stderr, ..fatal(text) }
}

fn split(option: &str) -> (&str, Option<&str>) {
    option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)))
}

/// Blanks and commas separate, quotes group, `#` begins a comment. None for an open quote.
fn items(text: &str) -> Option<Vec<&str>> {
    let (mut items, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next().filter(|first| *first != '#') {
        let ends = |c: char| c.is_whitespace() || c == ',';
        let (item, after) = match first {
            '"' | '\'' => rest[1..].split_once(first)?,
            _ => rest.split_once(ends).unwrap_or((rest, "")),
        };
        items.push(item);
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
    }
    Some(items)
}
