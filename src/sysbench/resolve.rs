//! What the values of a command line mean: checked in sysbench's order, with its words, they become
//! [`Settings`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::arguments::{Arguments, Env, Parsed, Value, split};
use super::options::{self, Becomes, Entry, Group, Kind, NO_EFFECT, OFF, ON, REFUSED};
use super::settings::{Command, Ignored, OutputVersion, Refusal, Settings, Test};
use crate::mysql::options::{DEFAULT_PORT, Secret, Ssl, SslMode};
use crate::workload::{Distribution, ROWS_MAX, TABLES_MAX};

/// Where `localhost` is, unless MYSQL_UNIX_PORT says otherwise.
const SOCKET: &str = "/run/mysqld/mysqld.sock";
/// Checkpoints at most.
const CHECKPOINTS_MAX: usize = 256;
/// Programs inside sysbench that have nothing to do with a database.
const BUILT_IN: [&str; 5] = ["fileio", "cpu", "memory", "threads", "mutex"];
const HAND_OVER: &str = "--sysbench-binary=PATH hands it to the real sysbench";

const OLD_TABLES: &str = "the tables and statements are those of 1.0: no column is UNSIGNED, and each kind \
                          of statement draws its own table";

const PREFERRED: &str =
    "--mysql-ssl encrypts every connection, where sysbench may fall back to plain text";

/// Counts of every test but bulk_insert.
const COUNTS: &str = "point_selects simple_ranges sum_ranges order_ranges distinct_ranges range_size \
                      index_updates non_index_updates delete_inserts";

/// A test, as sysbench has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Script {
    /// None for `oltp`, which is what its options say.
    test: Option<Test>,
    era: Era,
}

/// The version of sysbench that a test is of; its defaults are of the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    /// 1.0 and 1.1.
    Stock,
    /// A script of 0.5.
    V0_5,
    /// Compiled into 0.4.
    V0_4,
}

const STOCK: [(&str, Test); 12] = [
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
];

/// Scripts of 0.5.
const OLD: [(&str, Test); 6] = [
    ("oltp_simple", Test::PointSelect),
    ("select", Test::PointSelect),
    ("insert", Test::Insert),
    ("delete", Test::Delete),
    ("update_index", Test::UpdateIndex),
    ("update_non_index", Test::UpdateNonIndex),
];

/// Gives the name of a test's script.
pub(crate) fn script_of(test: Test) -> &'static str {
    STOCK.iter().find(|(_, known)| *known == test).expect("each test has a script").0
}

impl Script {
    /// Finds the script of this name, or of this path.
    fn of(word: &str) -> Option<Script> {
        let name = word.rsplit('/').next().unwrap_or(word);
        let name = name.strip_suffix(".lua").unwrap_or(name);
        let among = |tests: &[(&str, Test)], era| {
            let found = tests.iter().find(|(known, _)| *known == name);
            found.map(|(_, test)| Script { test: Some(*test), era })
        };
        let era = if word == name { Era::V0_4 } else { Era::V0_5 };
        let mode = || (name == "oltp").then_some(Script { test: None, era });
        among(&STOCK, Era::Stock).or_else(|| among(&OLD, Era::V0_5)).or_else(mode)
    }

    /// Tells whether it declares the options of a group.
    fn takes(self, group: Group) -> bool {
        match group {
            Group::Tests => self.test != Some(Test::BulkInsert),
            Group::Points => self.test == Some(Test::RandomPoints),
            Group::Ranges => self.test == Some(Test::RandomRanges),
            Group::Legacy => self.era != Era::Stock,
            _ => false,
        }
    }
}

/// Gives what is to be done, or what is printed instead.
pub(super) fn resolve(args: Arguments, env: &Env<'_>) -> Result<Parsed, Refusal> {
    let word = args.test.clone();
    let script = word.as_deref().and_then(Script::of);
    let mut reader = Reader { args, env, header: String::new(), settings: Settings::default() };
    reader.asked()?;
    let program = reader.text("sysbench-binary");
    if !program.is_empty() && (script.is_none() || reader.text("db-driver") == "pgsql") {
        let program = PathBuf::from(program);
        return Ok(Parsed::HandOver { program, args: reader.args.theirs });
    }
    reader.limits(script)?;
    reader.random()?;
    reader.reports()?;
    reader.log()?;
    let script = reader.known(script, word.as_deref())?;
    reader.declared(script)?;
    reader.command(script)?;
    reader.counts(script);
    reader.undone()?;
    reader.settings.test = script.test.map_or_else(|| reader.mode(), Ok)?;
    reader.tables()?;
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
        let answer = |text: &str| Err(Refusal { status: 0, ..self.args.refuse(text, "") });
        if self.on("help") {
            return answer(&options::help());
        }
        if self.on("version") {
            return answer("sysbench 1.0.20\n");
        }
        self.settings.output = match self.text("output-version") {
            "0.5" => OutputVersion::V0_5,
            "1.0" => OutputVersion::V1_0,
            "1.1" => OutputVersion::V1_1,
            other => {
                return Err(
                    self.cannot(format!("--output-version={other} is none of 0.5, 1.0 and 1.1"))
                );
            }
        };
        Ok(())
    }

    fn limits(&mut self, script: Option<Script>) -> Result<(), Refusal> {
        let threads = self.aliased("num-threads", "threads", 1)?;
        self.settings.threads = match u32::try_from(threads) {
            Ok(threads) if threads > 0 => threads,
            _ => return Err(self.fatal(format!("Invalid value for --threads: {threads}.\n"))),
        };
        // 0.4 and 0.5 end after so many events, unless told otherwise.
        let old = script.is_some_and(|script| match script.era {
            Era::Stock => false,
            Era::V0_5 => self.settings.output == OutputVersion::V0_5,
            Era::V0_4 => true,
        });
        let usual =
            |keys: [&str; 2]| old && !keys.iter().any(|key| self.args.values.contains_key(key));
        let usual = (usual(["events", "max-requests"]), usual(["time", "max-time"]));
        let events = if usual.0 { 10_000 } else { self.aliased("max-requests", "events", 0)? };
        let time = if usual.1 { 0 } else { self.aliased("max-time", "time", 0)? };
        if events == 0 && time == 0 {
            self.args.preamble.before_header.push_str(
                "WARNING: Both event and time limits are disabled, running an endless test\n",
            );
        }
        for (name, _) in [("events", events), ("time", time)].iter().filter(|(_, n)| *n < 0) {
            self.args.notes.push(format!("--{name} below 0 is no limit"));
        }
        self.settings.events = u64::try_from(events).unwrap_or(0);
        self.settings.time = Duration::from_secs(u64::try_from(time).unwrap_or(0));
        if time != 0 {
            let after = self.forced_shutdown(self.settings.time.as_secs())?;
            self.settings.forced_shutdown = after.filter(|_| time > 0);
        }
        if !is_size(self.text("thread-stack-size")) {
            return Err(self.fatal("Invalid value for thread-stack-size: 0.\n"));
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
    fn forced_shutdown(&self, time: u64) -> Result<Option<Duration>, Refusal> {
        let text = self.text("forced-shutdown");
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let seconds = match (digits.parse::<i64>(), &text[digits.len()..]) {
            _ if text == "off" => return Ok(None),
            _ if text.is_empty() => time * 5 / 100,
            (Ok(number), "") => u64::try_from(number).unwrap_or(0),
            (Ok(percent), "%") => time * u64::try_from(percent).unwrap_or(0) / 100,
            _ => return Err(self.fatal(format!("Invalid value for --forced-shutdown: '{text}'"))),
        };
        Ok(Some(Duration::from_secs(seconds)))
    }

    fn random(&mut self) -> Result<(), Refusal> {
        // Below 0 it is as good a seed.
        self.settings.seed = self.int("rand-seed")? as u32;
        let name = self.text("rand-type");
        if !["uniform", "gaussian", "special", "pareto", "zipfian"].contains(&name) {
            return Err(self.fatal(format!("Invalid random numbers distribution: {name}.")));
        }
        let shape = |key| number(self.text(key));
        let [iterations, band, within] =
            ["rand-spec-iter", "rand-spec-pct", "rand-spec-res"].map(|key| self.int(key));
        // What is below 0 is out of bounds all the same.
        let (iterations, band, within) = (iterations? as u32, band? as u32, within? as u32);
        let distribution = match name {
            "uniform" => Some(Distribution::Uniform),
            "gaussian" => Distribution::gaussian(iterations),
            "pareto" => Distribution::pareto(shape("rand-pareto-h")),
            "zipfian" => Distribution::zipf_adjacent(shape("rand-zipfian-exp")),
            _ => Distribution::special(iterations, band, within),
        };
        let bounds = match name {
            "pareto" => "--rand-pareto-h is a number between 0 and 1",
            "zipfian" => "--rand-zipfian-exp is a number above 0, up to 10",
            _ => "--rand-spec-iter is 1 to 1000, --rand-spec-pct and --rand-spec-res are 0 to 100",
        };
        self.settings.distribution = distribution.ok_or_else(|| self.cannot(bounds))?;
        Ok(())
    }

    fn reports(&mut self) -> Result<(), Refusal> {
        let rate = self.aliased("tx-rate", "rate", 0)?;
        let Ok(rate) = u64::try_from(rate) else {
            return Err(self.cannot(format!("--rate={rate} is below 0")));
        };
        self.settings.rate = rate;
        self.settings.report_interval = self.count("report-interval")? as u32;
        let mut checkpoints = Vec::new();
        for item in self.list("report-checkpoints") {
            checkpoints.push(item.parse().map_err(|_| {
                self.fatal(format!("Invalid value for --report-checkpoints: '{item}'"))
            })?);
        }
        if checkpoints.len() > CHECKPOINTS_MAX {
            return Err(
                self.cannot(format!("--report-checkpoints takes {CHECKPOINTS_MAX} at most"))
            );
        }
        checkpoints.sort_unstable();
        self.settings.checkpoints = checkpoints;
        self.settings.warmup = Duration::from_secs(self.count("warmup-time")?);
        self.settings.connect_timeout = Duration::from_secs(self.count("thread-init-timeout")?);
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
        self.settings.percentile = match u32::try_from(percentile) {
            Ok(percentile) if percentile <= 100 => percentile,
            _ => return Err(self.fatal(format!("Invalid value for --percentile: {percentile}"))),
        };
        self.settings.histogram = self.on("histogram");
        if self.settings.histogram && percentile == 0 {
            return Err(self.fatal("--histogram cannot be used with --percentile=0"));
        }
        self.settings.debug = self.on("debug");
        self.settings.verbosity = if self.settings.debug { 5 } else { verbosity };
        self.settings.validate = self.on("validate");
        if self.settings.verbosity >= 3 {
            self.header = header(self.settings.output);
        }
        Ok(())
    }

    /// Refuses what is no test of loadgen's; a test of sysbench's wants a command.
    fn known(&self, script: Option<Script>, word: Option<&str>) -> Result<Script, Refusal> {
        let given = self.args.command.is_some();
        let word = match (script, word) {
            (Some(script), _) if given => return Ok(script),
            (Some(Script { test: Some(Test::BulkInsert), .. }), _) => {
                return Err(Refusal { status: 0, ..self.args.refuse(&self.header, "") });
            }
            (Some(_), _) => {
                return Err(self.fatal(
                    "/usr/share/sysbench/oltp_common.lua:28: Command is required. Supported \
                     commands: prepare, prewarm, run, cleanup, help",
                ));
            }
            (None, None | Some("-")) => {
                let why = "a script on standard input is Lua, which loadgen does not run";
                return Err(self.cannot(format!("{why}; {HAND_OVER}")));
            }
            (None, Some(word)) => self.args.shown(word),
        };
        let why = match BUILT_IN.contains(&word) {
            true if !given => {
                return Err(self.usage(&format!(
                    "The '{word}' test requires a command argument. See 'sysbench {word} help'"
                )));
            }
            true => format!("{word} measures no database"),
            false => format!("'{word}' is none of oltp_*, select_random_* and bulk_insert"),
        };
        let header = &self.header;
        let text = format!(
            "{header}FATAL: Cannot find benchmark '{word}': no such built-in test, file or module\n"
        );
        Err(self.args.cannot(&text, &format!("{why}; {HAND_OVER}")))
    }

    /// Takes the options that this test declares.
    fn declared(&mut self, script: Script) -> Result<(), Refusal> {
        // They take any option, and most have nothing behind it.
        let any = script.era != Era::Stock || script.test == Some(Test::BulkInsert);
        for option in std::mem::take(&mut self.args.left) {
            if self.args.take(&option, |entry| script.takes(entry.group)) {
                continue;
            }
            let (name, value) = split(&option);
            let wrong = |entry: &Entry| !entry.of_test() || script.takes(entry.group);
            if any && !options::find(name).is_some_and(wrong) {
                self.args
                    .notes
                    .push(format!("--{name} is no option of this test: it has no effect"));
                continue;
            }
            // A password may be behind a misspelt name.
            let masked = value
                .filter(|_| name.contains("pas") || name.contains("pw"))
                .map(|_| format!("{name}=***"));
            return Err(self.usage(&format!("invalid option: --{}", masked.unwrap_or(option))));
        }
        Ok(())
    }

    fn command(&mut self, script: Script) -> Result<(), Refusal> {
        let word = self.args.command.clone().unwrap_or_default();
        let bulk = script.test == Some(Test::BulkInsert);
        self.settings.command = match word.as_str() {
            "prepare" => Command::Prepare,
            "prewarm" | "warmup" if !bulk => Command::Prewarm,
            "run" if script.test == Some(Test::Common) => {
                return Err(self.fatal(
                    "`init' function failed: /usr/share/sysbench/oltp_common.lua:22: this script \
                     is meant to be included by other OLTP scripts and should not be called directly.",
                ));
            }
            "run" => Command::Run,
            "cleanup" => Command::Cleanup,
            "help" if bulk => {
                return Err(self.usage("'bulk_insert' test does not implement the 'help' command."));
            }
            "help" => return Err(self.help(script)),
            _ => return Err(self.usage(&format!("Unknown command: {}", self.args.shown(&word)))),
        };
        Ok(())
    }

    /// Lists the options of a test.
    fn help(&self, script: Script) -> Refusal {
        let word = self.args.test.as_deref().unwrap_or_default();
        let name = word.rsplit('/').next().unwrap_or(word);
        let taken = |entry: &&Entry| script.takes(entry.group);
        let mut declared: Vec<&Entry> = options::OPTIONS.iter().filter(taken).collect();
        declared.sort_by_key(|entry| entry.key());
        let text = format!("{}{name} options:\n{}\n", self.header, options::listed(&declared));
        Refusal { status: 0, ..self.args.refuse(&text, "") }
    }

    /// Reads the numbers of a test: below 0 is 0, as in loops.
    fn counts(&mut self, script: Script) {
        let of = |name: &'static str| (name, number(self.text(name)) as u64);
        let mut counts: BTreeMap<&'static str, u64> = COUNTS.split(' ').map(of).collect();
        match script.test {
            Some(Test::RandomPoints) => counts.extend([of("random_points")]),
            Some(Test::RandomRanges) => counts.extend(["number_of_ranges", "delta"].map(of)),
            // The script says so.
            Some(Test::PointSelect) => _ = counts.insert("point_selects", 1),
            _ => {}
        }
        self.settings.counts = counts;
    }

    /// Refuses options that have nothing like them here, unless they are at their defaults.
    fn undone(&self) -> Result<(), Refusal> {
        for entry in options::OPTIONS.iter().filter(|entry| entry.about == REFUSED) {
            let value = self.text(entry.key());
            let usual = match entry.kind {
                Kind::Bool => OFF.contains(&value),
                _ => value == entry.default,
            };
            if let (false, Becomes::Nothing(why)) = (usual, entry.becomes) {
                return Err(self.cannot(format!("--{} is refused: {why}", entry.key())));
            }
        }
        Ok(())
    }

    /// Finds the test that `oltp` of 0.4 and 0.5 is.
    fn mode(&self) -> Result<Test, Refusal> {
        Ok(match (self.text("oltp-test-mode"), self.text("oltp-nontrx-mode")) {
            ("complex", _) if self.on("oltp-read-only") => Test::ReadOnly,
            ("complex", _) if self.on("oltp-write-only") => Test::WriteOnly,
            ("complex", _) => Test::ReadWrite,
            ("simple", _) | ("nontrx", "select") => Test::PointSelect,
            ("nontrx", "update_key") => Test::UpdateIndex,
            ("nontrx", "update_nokey") => Test::UpdateNonIndex,
            ("nontrx", "insert") => Test::Insert,
            ("nontrx", "delete") => Test::Delete,
            (mode, nontrx) => {
                return Err(self.cannot(format!(
                    "--oltp-test-mode={mode}, --oltp-nontrx-mode={nontrx}: no workload is like it"
                )));
            }
        })
    }

    fn tables(&mut self) -> Result<(), Refusal> {
        let (tables, rows) = (number(self.text("tables")), number(self.text("table-size")));
        if tables > f64::from(TABLES_MAX) || rows > ROWS_MAX as f64 {
            return Err(self.cannot(format!("{TABLES_MAX} tables of {ROWS_MAX} rows are the most")));
        }
        let none = tables < 1.0 && self.settings.command == Command::Run;
        if none && self.settings.test != Test::BulkInsert {
            return Err(
                self.cannot(format!("--tables={} leaves no table to run on", self.text("tables")))
            );
        }
        self.settings.reconnect = number(self.text("reconnect")) as u64;
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
                return Err(self.args.cannot(&format!("{}FATAL: {fault}\n", self.header), &why));
            }
            _ => faults.push(fault),
        }
        let mode = self.text("db-ps-mode").to_owned();
        self.settings.prepared = mode != "disable";
        if !["auto", "disable"].contains(&mode.as_str()) {
            faults.push(format!("Invalid value for db-ps-mode: {mode}"));
        }
        let [hosts, ports, sockets] =
            [self.one("mysql-host")?, self.one("mysql-port")?, self.one("mysql-socket")?];
        let mut given = |value: Option<String>, what: &str| {
            value.unwrap_or_else(|| {
                faults.push(format!("No MySQL {what} specified, aborting"));
                String::new()
            })
        };
        let (host, port) = (given(hosts, "hosts"), given(ports, "ports"));
        self.settings.driver_fault = faults.into_iter().next();
        self.settings.port = match port.parse() {
            _ if port.is_empty() => 0,
            Ok(0) => DEFAULT_PORT,
            Ok(port) => port,
            Err(_) => {
                return Err(self.cannot(format!("--mysql-port={port} is no port")));
            }
        };
        let local = || (self.env)("MYSQL_UNIX_PORT").map_or_else(|| SOCKET.into(), PathBuf::from);
        let socket = sockets.map(PathBuf::from);
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
        match self.list(key).as_slice() {
            [] => Ok(None),
            [one] => Ok(Some((*one).to_owned())),
            _ => Err(self.cannot(format!(
                "--{key} has several values: a run has one server; run it once for each"
            ))),
        }
    }

    fn account(&mut self) -> Result<(), Refusal> {
        let user = self.text("mysql-user").to_owned();
        if user.is_empty() {
            return Err(self.cannot("--mysql-user is empty: name the account"));
        }
        self.settings.user = user;
        self.settings.database = self.text("mysql-db").to_owned();
        let password = self.text("mysql-password");
        self.settings.password = match (self.env)("MYSQL_PWD") {
            Some(word) if password.is_empty() => {
                let text = word.to_str().map(Secret::new);
                text.ok_or_else(|| self.cannot("MYSQL_PWD is no UTF-8"))?
            }
            _ => Secret::new(password),
        };
        Ok(())
    }

    /// Reads how connections are encrypted; files without a name lie in the working directory.
    fn ssl(&mut self) -> Result<Ssl, Refusal> {
        let text = self.text("mysql-ssl").to_owned();
        let mode = match SslMode::parse(&text) {
            Ok(mode) => mode,
            Err(_) if ON.contains(&text.as_str()) => SslMode::Preferred,
            Err(_) => SslMode::Disabled,
        };
        let preferred = mode == SslMode::Preferred;
        match mode {
            SslMode::Disabled => return Ok(Ssl::default()),
            _ if self.settings.socket.is_some() => {
                return Err(self.cannot(
                    "--mysql-ssl: no TLS goes over a socket; --mysql-host=127.0.0.1 is TCP",
                ));
            }
            _ if preferred => self.args.notes.push(PREFERRED.to_owned()),
            _ => {}
        }
        let mode = if preferred { SslMode::Required } else { mode };
        let named = |key| Some(self.text(key)).filter(|file| !file.is_empty()).map(PathBuf::from);
        let [mut key, mut cert, ca] =
            ["mysql-ssl-key", "mysql-ssl-cert", "mysql-ssl-ca"].map(named);
        if preferred && key.is_none() && cert.is_none() {
            let found = ["client-key.pem", "client-cert.pem"].map(PathBuf::from);
            if found.iter().all(|file| file.exists()) {
                [key, cert] = found.map(Some);
            }
        }
        if key.is_some() != cert.is_some() {
            return Err(self.cannot("--mysql-ssl-key and --mysql-ssl-cert go together"));
        }
        if mode.verifies() && ca.is_none() {
            return Err(self.cannot(format!("--mysql-ssl={text} needs --mysql-ssl-ca")));
        }
        Ok(Ssl { mode, ca: ca.filter(|_| mode.verifies()), cert, key })
    }

    fn ignored(&mut self) {
        let (mut codes, mut all, mut odd) = (Vec::new(), false, Vec::new());
        for item in self.list("mysql-ignore-errors") {
            match item.parse() {
                Ok(code) => codes.push(code),
                Err(_) if item == "all" => all = true,
                Err(_) => odd.push(format!("--mysql-ignore-errors: '{item}' is no error's number")),
            }
        }
        self.args.notes.append(&mut odd);
        self.settings.ignored = if all { Ignored::All } else { Ignored::Codes(codes) };
    }

    /// Reads loadgen's own options.
    fn own(&mut self) {
        let out = Some(self.text("loadgen-out")).filter(|out| !out.is_empty()).map(PathBuf::from);
        let usual = || (self.env)("LOADGEN_OUT").filter(|out| !out.is_empty()).map(PathBuf::from);
        self.settings.out = out.or_else(usual);
        self.settings.explain = self.on("explain");
    }

    /// Notes what was taken and does nothing, and what differs.
    fn noted(&mut self, script: Script) {
        let mut notes = Vec::new();
        for entry in options::OPTIONS {
            let Some(given) = self.args.values.get(entry.key()) else { continue };
            let off = entry.kind == Kind::Bool && OFF.contains(&given.text());
            if entry.about == NO_EFFECT && !off {
                notes.push(format!("--{} has no effect", given.name));
            }
        }
        let word = self.args.test.as_deref().unwrap_or_default();
        if word.contains('/') && super::scripts::is_another(word) {
            notes.push(format!(
                "{word} is not the script of sysbench 1.0.20: loadgen runs that one"
            ));
        }
        match script.era {
            Era::Stock => {}
            Era::V0_5 => {
                self.settings.prepared = false;
                notes.push(format!("{OLD_TABLES}; statements are text, as in 0.5"));
            }
            Era::V0_4 => notes.push(format!("{OLD_TABLES}; the first is sbtest1, not sbtest")),
        }
        self.args.notes.append(&mut notes);
        if self.settings.verbosity >= 2 {
            let line = |name: &String| {
                format!(
                    "WARNING: Global option '{name}' will not be exported, because the type is unknown\n"
                )
            };
            self.args.preamble.after_header = self.args.unknown.iter().map(line).collect();
        }
    }

    fn value(&self, name: &str) -> (&'static Entry, Option<&Value>) {
        let entry = options::find(name).expect("an option of the table");
        (entry, self.args.values.get(entry.key()))
    }

    fn text(&self, name: &str) -> &str {
        let (entry, given) = self.value(name);
        given.map_or(entry.default, Value::text)
    }

    fn list(&self, name: &str) -> Vec<&str> {
        let (entry, given) = self.value(name);
        let items: Vec<&str> = match given {
            Some(value) => value.items.iter().map(String::as_str).collect(),
            None => entry.default.split(',').collect(),
        };
        items.into_iter().filter(|item| !item.is_empty()).collect()
    }

    fn on(&self, name: &str) -> bool {
        ON.contains(&self.text(name))
    }

    fn int(&self, name: &str) -> Result<i32, Refusal> {
        let text = self.text(name);
        // As strtol: nothing is 0.
        let read = if text.is_empty() { Ok(0) } else { text.trim_start().parse() };
        read.map_err(|_| {
            let name = self.value(name).0.underscored();
            self.args.refuse("", &format!("Invalid value for the '{name}' option: '{text}'\n"))
        })
    }

    /// Reads a number that is not below 0.
    fn count(&self, name: &str) -> Result<u64, Refusal> {
        let number = self.int(name)?;
        u64::try_from(number).map_err(|_| self.cannot(format!("--{name}={number} is below 0")))
    }

    /// Refuses what loadgen does not do, behind the header where it is written by then.
    fn cannot(&self, why: impl AsRef<str>) -> Refusal {
        self.args.cannot(&self.header, why.as_ref())
    }

    /// Refuses on standard error in sysbench's words, likewise.
    fn usage(&self, text: &str) -> Refusal {
        self.args.refuse(&self.header, &format!("{text}\n"))
    }

    /// Refuses on standard output in sysbench's words, likewise.
    fn fatal(&self, text: impl AsRef<str>) -> Refusal {
        self.args.refuse(&format!("{}FATAL: {}\n", self.header, text.as_ref()), "")
    }
}

/// Gives the first lines of a run, with the empty one.
pub(super) fn header(output: OutputVersion) -> String {
    let loadgen = concat!("(using loadgen ", env!("CARGO_PKG_VERSION"), ")");
    match output {
        OutputVersion::V0_5 => {
            "sysbench 0.5:  multi-threaded system evaluation benchmark\n\n".to_owned()
        }
        OutputVersion::V1_0 => format!("sysbench 1.0.20 {loadgen}\n\n"),
        OutputVersion::V1_1 => format!("sysbench 1.1.0 {loadgen}\n\n"),
    }
}

/// Tells whether a text begins with a number of bytes above 0, with or without a unit.
fn is_size(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = text[end..].chars().next().is_none_or(|unit| "kmgtKMGT".contains(unit));
    unit && text[..end].parse::<u64>().is_ok_and(|size| size > 0)
}

/// Reads the number that a text begins with, as strtod does; 0 where there is none.
fn number(text: &str) -> f64 {
    let text = text.trim_start();
    if let Some(hex) = text.strip_prefix("0x") {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        return u64::from_str_radix(&hex[..end], 16).unwrap_or(0) as f64;
    }
    let numeric = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    let end = text.find(|c| !numeric(c)).unwrap_or(text.len());
    (1..=end).rev().find_map(|end| text[..end].parse().ok()).unwrap_or(0.0)
}
