//! What the values of a command line mean: checked in sysbench's order, with its words, they become
//! [`Settings`].

use std::path::PathBuf;
use std::time::Duration;

use super::arguments::{Arguments, Env, Parsed, split};
use super::options::{self, Becomes, Group, Kind, ON, REFUSED};
use super::output;
use super::settings::{Command, Ignored, OutputVersion, Refusal, Settings, Test};
use crate::mysql::options::{DEFAULT_PORT, Secret, Ssl, SslMode};
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

/// A test, as sysbench has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Script {
    test: Test,
    /// A script of 0.5, or compiled into 0.4.
    old: bool,
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
    (OLD, Test::ReadWrite),
];

/// Gives the name of a test's script.
pub(crate) fn script_of(test: Test) -> &'static str {
    SCRIPTS.iter().find(|(_, known)| *known == test).expect("each test has a script").0
}

impl Script {
    /// Finds the script of this name, or of this path.
    fn of(word: &str) -> Option<Script> {
        let name = word.rsplit('/').next().unwrap_or(word);
        let name = name.strip_suffix(".lua").unwrap_or(name);
        let (_, test) = *SCRIPTS.iter().find(|(known, _)| *known == name)?;
        Some(Script { test, old: name == OLD })
    }

    /// Tells whether it declares the options of a group.
    fn takes(self, group: Group) -> bool {
        match group {
            Group::Tests => self.test != Test::BulkInsert,
            Group::Points => self.test == Test::RandomPoints,
            Group::Ranges => self.test == Test::RandomRanges,
            Group::Legacy => self.old,
            _ => false,
        }
    }
}

/// Gives what is to be done, or what is printed instead.
pub(super) fn resolve(args: Arguments, env: &Env<'_>) -> Result<Parsed, Refusal> {
    let script = args.test.as_deref().and_then(Script::of);
    let mut reader = Reader { args, env, header: String::new(), settings: Settings::default() };
    reader.asked()?;
    let program = reader.text("sysbench-binary");
    if !program.is_empty() && (script.is_none() || reader.text("db-driver") == "pgsql") {
        let program = PathBuf::from(program);
        return Ok(Parsed::HandOver { program, args: reader.args.theirs });
    }
    reader.limits()?;
    reader.random()?;
    reader.reports()?;
    reader.log()?;
    let script = reader.known(script)?;
    reader.declared(script)?;
    reader.command(script)?;
    reader.undone()?;
    reader.tables(script)?;
    reader.server()?;
    reader.own();
    reader.noted(script);
    let Reader { args: Arguments { preamble, notes, .. }, settings, .. } = reader;
    Ok(Parsed::Settings(Box::new(Settings { notes, preamble, ..settings })))
}

struct Reader<'a> {
    args: Arguments,
    env: &'a Env<'a>,
    /// With its empty line; empty where it is not shown.
    header: String,
    settings: Settings,
}

impl Reader<'_> {
    /// Answers `--help` and `--version`, and finds whose output is written.
    fn asked(&mut self) -> Result<(), Refusal> {
        if self.on("help") {
            return self.answer(&options::help());
        }
        if self.on("version") {
            return self.answer("sysbench 1.0.20\n");
        }
        self.settings.output = match self.text("output-version") {
            "0.5" => OutputVersion::V0_5,
            "1.0" => OutputVersion::V1_0,
            "1.1" => OutputVersion::V1_1,
            _ => return self.cannot("--output-version is one of 0.5, 1.0 and 1.1"),
        };
        Ok(())
    }

    fn limits(&mut self) -> Result<(), Refusal> {
        let threads = self.aliased("num-threads", "threads", 1)?;
        if threads < 1 {
            return self.fatal(&format!("Invalid value for --threads: {threads}.\n"));
        }
        // 0.4 ends after so many events, unless told otherwise.
        let of_0_4 = self.args.test.as_deref() == Some(OLD);
        for (name, old, text) in [("events", "max-requests", "10000"), ("time", "max-time", "0")] {
            if of_0_4 && !self.args.values.contains_key(old) {
                self.args.values.entry(name).or_insert_with(|| text.to_owned());
            }
        }
        let events = self.aliased("max-requests", "events", 0)?;
        let time = self.aliased("max-time", "time", 0)?;
        if events == 0 && time == 0 {
            let warning = format!("WARNING: {}\n", output::ENDLESS);
            self.args.preamble.before_header.push_str(&warning);
        }
        self.settings.threads = threads as u32;
        self.settings.events = events as u64;
        self.settings.time = Duration::from_secs(time as u64);
        if time > 0 {
            self.settings.forced_shutdown = self.forced_shutdown()?;
        }
        Ok(())
    }

    /// Reads an option, or its old name, which wins where it is above this.
    fn aliased(&mut self, old: &str, new: &str, above: i32) -> Result<i32, Refusal> {
        let number = self.int(old)?;
        if number <= above {
            return self.int(new);
        }
        let warning = format!("WARNING: --{old} is deprecated, use --{new} instead\n");
        self.args.preamble.before_header.push_str(&warning);
        Ok(number)
    }

    /// Reads how much later than at its end a run is given up.
    fn forced_shutdown(&self) -> Result<Option<Duration>, Refusal> {
        let (text, time) = (self.text("forced-shutdown"), self.settings.time.as_secs());
        let seconds = match text.strip_suffix('%').unwrap_or(text).parse::<u32>() {
            _ if text == "off" => return Ok(None),
            _ if text.is_empty() => time * 5 / 100,
            Ok(percent) if text.ends_with('%') => time * u64::from(percent) / 100,
            Ok(seconds) => seconds.into(),
            Err(_) => {
                return self.fatal(&format!("Invalid value for --forced-shutdown: '{text}'"));
            }
        };
        Ok(Some(Duration::from_secs(seconds)))
    }

    fn random(&mut self) -> Result<(), Refusal> {
        // Below 0 it is as good a seed; of the others, what is below 0 is out of bounds all the same.
        self.settings.seed = self.int("rand-seed")? as u32;
        let [iterations, band, within] =
            ["rand-spec-iter", "rand-spec-pct", "rand-spec-res"].map(|key| self.int(key));
        let (iterations, band, within) = (iterations? as u32, band? as u32, within? as u32);
        let distribution = match self.text("rand-type") {
            "uniform" => Some(Distribution::Uniform),
            "gaussian" => Distribution::gaussian(iterations),
            "special" => Distribution::special(iterations, band, within),
            "pareto" => Distribution::pareto(self.number("rand-pareto-h")),
            "zipfian" => Distribution::zipf_adjacent(self.number("rand-zipfian-exp")),
            name => return self.fatal(&format!("Invalid random numbers distribution: {name}.")),
        };
        self.settings.distribution = distribution.map_or_else(|| self.cannot(BOUNDS), Ok)?;
        Ok(())
    }

    fn reports(&mut self) -> Result<(), Refusal> {
        self.settings.rate = self.aliased("tx-rate", "rate", 0)? as u64;
        self.settings.report_interval = self.int("report-interval")? as u32;
        let mut checkpoints = Vec::new();
        for item in self.list("report-checkpoints") {
            let Ok(seconds) = item.parse() else {
                return self.fatal(&format!("Invalid value for --report-checkpoints: '{item}'"));
            };
            checkpoints.push(seconds);
        }
        checkpoints.sort_unstable();
        self.settings.checkpoints = checkpoints;
        self.settings.warmup = Duration::from_secs(self.int("warmup-time")? as u64);
        self.settings.connect_timeout =
            Duration::from_secs(self.int("thread-init-timeout")? as u64);
        Ok(())
    }

    fn log(&mut self) -> Result<(), Refusal> {
        // One byte in sysbench, too.
        let verbosity = self.int("verbosity")? as u8;
        if verbosity > 5 {
            let text = format!("Invalid value for verbosity: {verbosity}\n");
            return Err(self.args.refuse(&text, ""));
        }
        let percentile = self.int("percentile")?;
        if !(0..=100).contains(&percentile) {
            return self.fatal(&format!("Invalid value for --percentile: {percentile}"));
        }
        self.settings.percentile = percentile as u32;
        self.settings.histogram = self.on("histogram");
        if self.settings.histogram && percentile == 0 {
            return self.fatal("--histogram cannot be used with --percentile=0");
        }
        self.settings.debug = self.on("debug");
        self.settings.verbosity = if self.settings.debug { 5 } else { verbosity };
        self.settings.validate = self.on("validate");
        if self.settings.verbosity >= 3 {
            self.header = output::header(self.settings.output) + "\n";
        }
        if self.settings.verbosity < 2 {
            self.args.preamble.after_header.clear();
        }
        Ok(())
    }

    /// Refuses what is no test of loadgen's; a test of sysbench's wants a command.
    fn known(&self, script: Option<Script>) -> Result<Script, Refusal> {
        let given = self.args.command.is_some();
        let word = match (script, self.args.test.as_deref()) {
            (Some(script), _) if given => return Ok(script),
            (Some(Script { test: Test::BulkInsert, .. }), _) => return self.answer(&self.header),
            (Some(_), _) => return self.fatal(NO_COMMAND),
            (None, None | Some("-")) => {
                let why = "a script on standard input is Lua, which loadgen does not run";
                return self.cannot(&format!("{why}; {HAND_OVER}"));
            }
            (None, Some(word)) => self.args.shown(word),
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
    fn declared(&mut self, script: Script) -> Result<(), Refusal> {
        for option in std::mem::take(&mut self.args.left) {
            if self.args.take(&option, |entry| script.takes(entry.group)) {
                continue;
            }
            let (name, value) = split(&option);
            let wrong = options::find(name)
                .is_some_and(|entry| !entry.of_test() || script.takes(entry.group));
            // It takes any option, and has nothing behind it.
            if script.test == Test::BulkInsert && !wrong {
                let note = format!("--{name} is no option of this test: it has no effect");
                self.args.notes.push(note);
                continue;
            }
            // A password may be behind a misspelt name.
            let hidden = value.is_some() && (name.contains("pas") || name.contains("pw"));
            let shown = if hidden { format!("{name}=***") } else { option };
            return self.usage(&format!("invalid option: --{shown}"));
        }
        Ok(())
    }

    fn command(&mut self, script: Script) -> Result<(), Refusal> {
        let bulk = script.test == Test::BulkInsert;
        self.settings.command = match self.args.command.as_deref().unwrap_or_default() {
            "prepare" => Command::Prepare,
            "prewarm" | "warmup" if !bulk => Command::Prewarm,
            "run" if script.test == Test::Common => return self.fatal(COMMON_RUN),
            "run" => Command::Run,
            "cleanup" => Command::Cleanup,
            "help" if bulk => {
                return self.usage("'bulk_insert' test does not implement the 'help' command.");
            }
            "help" => {
                let word = self.args.test.as_deref().unwrap_or_default();
                let name = word.rsplit('/').next().unwrap_or(word);
                let listed = options::listed(|entry| script.takes(entry.group));
                return self.answer(&format!("{}{name} options:\n{listed}\n", self.header));
            }
            word => return self.usage(&format!("Unknown command: {}", self.args.shown(word))),
        };
        Ok(())
    }

    /// Refuses options that have nothing like them here, unless they are at their defaults.
    fn undone(&self) -> Result<(), Refusal> {
        for entry in options::OPTIONS.iter().filter(|entry| entry.about == REFUSED) {
            let usual = entry.is_usual(self.text(entry.key()));
            if let (false, Becomes::Nothing(why)) = (usual, entry.becomes) {
                return self.cannot(&format!("--{} is refused: {why}", entry.key()));
            }
        }
        Ok(())
    }

    fn tables(&mut self, script: Script) -> Result<(), Refusal> {
        self.settings.test = match script.test {
            Test::ReadWrite if self.on("oltp-read-only") => Test::ReadOnly,
            Test::ReadWrite if self.on("oltp-write-only") => Test::WriteOnly,
            test => test,
        };
        let (tables, rows) = (self.number("tables"), self.number("table-size"));
        if tables > f64::from(TABLES_MAX) || rows > ROWS_MAX as f64 {
            return self.cannot(&format!("{TABLES_MAX} tables of {ROWS_MAX} rows are the most"));
        }
        if tables < 1.0 && self.settings.command == Command::Run && script.test != Test::BulkInsert
        {
            return self.cannot("--tables leaves no table to run on");
        }
        // Below 0 is 0, as in loops.
        self.settings.counts = options::OPTIONS
            .iter()
            .filter(|entry| entry.kind == Kind::Double && script.takes(entry.group))
            .map(|entry| (entry.underscored(), self.number(entry.key()) as u64))
            .collect();
        if script.test == Test::PointSelect {
            // The script says so.
            self.settings.counts.insert("point_selects".to_owned(), 1);
        }
        self.settings.reconnect = self.number("reconnect") as u64;
        self.settings.tables = tables as u32;
        self.settings.table_size = rows as u64;
        self.settings.auto_inc = self.on("auto-inc");
        self.settings.secondary = self.on("secondary");
        self.settings.create_secondary = self.on("create-secondary");
        self.settings.range_selects = self.on("range-selects");
        self.settings.skip_trx = self.on("skip-trx");
        self.settings.storage_engine = self.text("mysql-storage-engine").to_owned();
        self.settings.create_table_options = self.text("create-table-options").to_owned();
        Ok(())
    }

    fn server(&mut self) -> Result<(), Refusal> {
        let mut faults = Vec::new();
        let driver = self.text("db-driver");
        let fault = format!("invalid database driver name: '{driver}'");
        match driver {
            "mysql" => {}
            "pgsql" => {
                let why = format!("--db-driver: servers are MySQL and MariaDB; {HAND_OVER}");
                return self.fatal_with(&fault, &why);
            }
            _ => faults.push(fault),
        }
        let mode = self.text("db-ps-mode").to_owned();
        self.settings.prepared = mode != "disable";
        if !["auto", "disable"].contains(&mode.as_str()) {
            faults.push(format!("Invalid value for db-ps-mode: {mode}"));
        }
        let [host, port, socket] =
            [self.one("mysql-host")?, self.one("mysql-port")?, self.one("mysql-socket")?];
        let mut given = |value: Option<String>, what: &str| {
            value.unwrap_or_else(|| {
                faults.push(format!("No MySQL {what} specified, aborting"));
                String::new()
            })
        };
        let (host, port) = (given(host, "hosts"), given(port, "ports"));
        self.settings.driver_fault = faults.into_iter().next();
        self.settings.port = match port.parse() {
            _ if port.is_empty() => 0,
            Ok(0) => DEFAULT_PORT,
            Ok(port) => port,
            Err(_) => return self.cannot(&format!("--mysql-port={port} is no port")),
        };
        let local = || (self.env)("MYSQL_UNIX_PORT").map_or_else(|| SOCKET.into(), PathBuf::from);
        let socket = socket.map(PathBuf::from);
        self.settings.socket = socket.or_else(|| (host == "localhost").then(local));
        self.settings.host = host;
        self.account()?;
        self.settings.ssl = self.ssl()?;
        self.ignored();
        self.settings.dry_run = self.on("mysql-dry-run");
        Ok(())
    }

    /// Gives the one value of a list: a run has one server.
    fn one(&self, key: &str) -> Result<Option<String>, Refusal> {
        let items = self.list(key);
        if items.len() > 1 {
            let why = "has several values: a run has one server; run it once for each";
            return self.cannot(&format!("--{key} {why}"));
        }
        Ok(items.first().map(|item| (*item).to_owned()))
    }

    fn account(&mut self) -> Result<(), Refusal> {
        self.settings.user = self.text("mysql-user").to_owned();
        if self.settings.user.is_empty() {
            return self.cannot("--mysql-user is empty: name the account");
        }
        self.settings.database = self.text("mysql-db").to_owned();
        let password = self.text("mysql-password");
        self.settings.password = match (self.env)("MYSQL_PWD") {
            Some(word) if password.is_empty() => {
                Secret::new(word.into_string().or_else(|_| self.cannot("MYSQL_PWD is no UTF-8"))?)
            }
            _ => Secret::new(password),
        };
        Ok(())
    }

    /// Reads how connections are encrypted; files without a name lie in the working directory.
    fn ssl(&mut self) -> Result<Ssl, Refusal> {
        let mode = match self.text("mysql-ssl") {
            text if ON.contains(&text) => SslMode::Preferred,
            text => SslMode::parse(text).unwrap_or(SslMode::Disabled),
        };
        if mode == SslMode::Disabled {
            return Ok(Ssl::default());
        }
        if self.settings.socket.is_some() {
            return self.cannot("--mysql-ssl: no TLS over a socket; --mysql-host=127.0.0.1 is TCP");
        }
        let named = |key| Some(self.text(key)).filter(|file| !file.is_empty()).map(PathBuf::from);
        let [ca, mut cert, mut key] =
            ["mysql-ssl-ca", "mysql-ssl-cert", "mysql-ssl-key"].map(named);
        if key.is_some() != cert.is_some() {
            return self.cannot("--mysql-ssl-key and --mysql-ssl-cert go together");
        }
        if mode.verifies() && ca.is_none() {
            return self.cannot(&format!("--mysql-ssl={mode} needs --mysql-ssl-ca"));
        }
        if mode != SslMode::Preferred {
            return Ok(Ssl { mode, ca: ca.filter(|_| mode.verifies()), cert, key });
        }
        self.args.notes.push(PREFERRED.to_owned());
        let found = ["client-cert.pem", "client-key.pem"].map(PathBuf::from);
        if key.is_none() && found.iter().all(|file| file.exists()) {
            [cert, key] = found.map(Some);
        }
        Ok(Ssl { mode: SslMode::Required, ca: None, cert, key })
    }

    fn ignored(&mut self) {
        let (mut codes, mut notes) = (Vec::new(), Vec::new());
        let items = self.list("mysql-ignore-errors");
        for item in items.iter().filter(|item| **item != "all") {
            let code = item.parse::<u16>();
            let odd = || format!("--mysql-ignore-errors: '{item}' is no error's number");
            notes.extend(code.is_err().then(odd));
            codes.extend(code);
        }
        let all = items.contains(&"all");
        self.settings.ignored = if all { Ignored::All } else { Ignored::Codes(codes) };
        self.args.notes.append(&mut notes);
    }

    /// Reads loadgen's own options.
    fn own(&mut self) {
        let usual = || (self.env)("LOADGEN_OUT").filter(|out| !out.is_empty()).map(PathBuf::from);
        let out = Some(self.text("loadgen-out")).filter(|out| !out.is_empty()).map(PathBuf::from);
        self.settings.out = out.or_else(usual);
        let mut given = self.args.values.clone();
        given.remove("mysql-password");
        self.settings.explain = self.on("explain").then_some(given);
    }

    /// Notes what differs.
    fn noted(&mut self, script: Script) {
        let (notes, word) = (&mut self.args.notes, self.args.test.as_deref().unwrap_or_default());
        if word.contains('/') && super::scripts::is_another(word) {
            notes.push(format!(
                "{word} is not the script of sysbench 1.0.20: loadgen runs that one"
            ));
        }
        if word == OLD {
            notes.push(format!("{OLD_TABLES}; the first is sbtest1, not sbtest"));
        } else if script.old {
            self.settings.prepared = false;
            notes.push(format!("{OLD_TABLES}; statements are text, as in 0.5"));
        }
    }

    fn text(&self, name: &str) -> &str {
        let entry = options::get(name);
        self.args.values.get(entry.key()).map_or(entry.default, String::as_str)
    }

    fn list(&self, name: &str) -> Vec<&str> {
        self.text(name).split(',').filter(|item| !item.is_empty()).collect()
    }

    fn on(&self, name: &str) -> bool {
        ON.contains(&self.text(name))
    }

    fn int(&self, name: &str) -> Result<i32, Refusal> {
        let text = self.text(name);
        // As strtol: nothing is 0.
        let read = if text.is_empty() { Ok(0) } else { text.trim_start().parse() };
        let Ok(number) = read else {
            let name = name.replace('-', "_");
            let text = format!("Invalid value for the '{name}' option: '{text}'\n");
            return Err(self.args.refuse("", &text));
        };
        if number < 0 && options::get(name).kind == Kind::Count {
            return self.cannot(&format!("--{name}={number} is below 0"));
        }
        Ok(number)
    }

    /// Reads the number that a value begins with, as strtod does; 0 where there is none.
    fn number(&self, name: &str) -> f64 {
        let text = self.text(name).trim_start();
        let numeric = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
        let end = text.find(|c| !numeric(c)).unwrap_or(text.len());
        (1..=end).rev().find_map(|end| text[..end].parse().ok()).unwrap_or(0.0)
    }

    /// Answers at once: all is well.
    fn answer<T>(&self, text: &str) -> Result<T, Refusal> {
        Err(Refusal { status: 0, ..self.args.refuse(text, "") })
    }

    /// Refuses what loadgen does not do, behind the header where it is written by then.
    fn cannot<T>(&self, why: &str) -> Result<T, Refusal> {
        Err(self.args.cannot(&self.header, why))
    }

    /// Refuses on standard error in sysbench's words, likewise.
    fn usage<T>(&self, text: &str) -> Result<T, Refusal> {
        Err(self.args.refuse(&self.header, &format!("{text}\n")))
    }

    /// Refuses on standard output in sysbench's words, likewise.
    fn fatal<T>(&self, text: &str) -> Result<T, Refusal> {
        Err(self.args.refuse(&format!("{}FATAL: {text}\n", self.header), ""))
    }

    /// Refuses in sysbench's words on standard output, and in loadgen's on standard error.
    fn fatal_with<T>(&self, text: &str, why: &str) -> Result<T, Refusal> {
        Err(self.args.cannot(&format!("{}FATAL: {text}\n", self.header), why))
    }
}
