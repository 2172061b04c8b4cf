//! The options of sysbench: for the parser, for `help`, for hints on native commands.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::plan::RandType;
use crate::workload::Distribution;

/// The section of an option in `--help`, and the tests that take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    General,
    Random,
    Log,
    Database,
    Mysql,
    /// Options of every test but bulk_insert.
    Tests,
    Points,
    Ranges,
    /// Options of the tests of 0.4 and 0.5.
    Legacy,
    /// loadgen's own; the value follows `=` or is the next word.
    Own,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionKind {
    Bool,
    /// A 32-bit number without a suffix.
    Int,
    /// An Int of at least 0.
    Count,
    /// A number; the rest of the text is ignored.
    Double,
    /// With K, M, G or T.
    Size,
    List,
    Text,
    /// A word of 1.1, or 1.0's on and off.
    Ssl,
    File,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Becomes {
    /// These flags, `@` for the value; without `@` any value but the default.
    Flags(&'static str),
    Same,
    /// Nothing, and the reason.
    Nothing(&'static str),
}
use Becomes::{Flags, Nothing, Same};
use Group::{Database, General, Legacy, Log, Mysql, Own, Points, Random, Ranges, Tests};
use OptionKind::{Bool, Count, Double, File, Int, List, Size, Ssl, Text};

pub(super) struct Entry {
    pub group: Group,
    /// Names of one meaning, with dashes; the first is that of 1.0 or 1.1.
    pub names: &'static str,
    pub kind: OptionKind,
    pub default: &'static str,
    pub about: &'static str,
    pub becomes: Becomes,
}

pub(super) const NAME: &str = "sysbench";
pub(super) const OFF: &[&str] = &["off", "false", "0"];
pub(super) const ON: &[&str] = &["", "on", "true", "1"];
pub(super) const REFUSED: &str = "refused";
/// Marks an option that is accepted and ignored.
pub(super) const NO_EFFECT: &str = "taken, has no effect";
pub(super) const NONE: &str = "loadgen has no such thing";
const ALWAYS: &str = "timeline and histogram are always kept";
const DRAWN: &str = "it goes into --distribution: special:I/P/R, pareto:H, zipf-adjacent:S";
const RAND_TYPES: &str = "uniform, gaussian, special, pareto or zipfian";
const DROP_IN: &str = "it goes with loadgen sysbench";
const PRIMARY: &str = "id is always the primary key";
const PGSQL: &str = "pgsql-host pgsql-port pgsql-user pgsql-password pgsql-db pgsql-sslmode";
const TABLE_OPTIONS: &str = "create-table-options mysql-table-options mysql-create-options";
const NO_RANGES: &str = "simple-ranges 0, sum-ranges 0, order-ranges 0, distinct-ranges 0";
const MYSQL_ONLY: &str = "servers are MySQL and MariaDB";

const USAGE: &str = "Usage:\n  sysbench [options]... [testname] [command]\n\n\
                     Commands implemented by most tests: prepare run cleanup help\n\nGeneral options:\n";
const DRIVERS: &str =
    "\n\nCompiled-in database drivers:\n  mysql - MySQL driver\n\nmysql options:\n";
const MORE: &str = "\nSee 'sysbench <testname> help' for a list of options for each test.\n\n";

macro_rules! options {
    ($($group:ident $names:tt $kind:ident $default:literal $about:expr, $becomes:expr;)+) => {
        &[$(Entry {
            group: $group, names: $names, kind: $kind, default: $default,
            about: $about, becomes: $becomes,
        }),+]
    };
}

pub(super) const OPTIONS: &[Entry] = options! {
    General "threads" Int "1" "clients, each with a connection", Flags("clients @");
    General "events" Count "0" "events after which a run ends, 0 for any number", Flags("ops @");
    General "time" Count "10" "seconds after which a run ends, 0 for any time", Flags("time @s");
    General "warmup-time" Count "0" "seconds before a run is measured", Flags("warmup @s");
    General "forced-shutdown" Text "off" "seconds or %, or off", Nothing("--op-timeout is like it");
    General "thread-stack-size" Size "64K" NO_EFFECT, Nothing(NONE);
    General "thread-init-timeout" Count "30" "seconds to connect in", Flags("connect-timeout @s");
    General "max-requests" Count "0" "old name of events", Flags("ops @");
    General "max-time" Count "0" "old name of time", Flags("time @s");
    General "num-threads" Count "1" "old name of threads", Flags("clients @");
    General "tx-rate" Count "0" "old name of rate", Flags("rate @");
    General "rate" Count "0" "events a second, 0 for as many as there can be", Flags("rate @");
    General "report-interval" Count "0" "seconds between lines, 0 for none", Flags("progress @s");
    General "report-checkpoints" List "" "seconds at which a report is written", Nothing(ALWAYS);
    General "debug" Bool "off" "verbosity 5", Nothing(NONE);
    General "validate" Bool "off" NO_EFFECT, Nothing("answers are always checked");
    General "help" Bool "off" "this text", Nothing(DROP_IN);
    General "version" Bool "off" "the version", Nothing(DROP_IN);
    General "config-file" File "" "options of a file", Nothing(NONE);
    General "luajit-cmd" Text "" NO_EFFECT, Nothing(NONE);
    Random "rand-type oltp-dist-type" Text "special" RAND_TYPES, Flags("distribution @");
    Random "rand-spec-iter oltp-dist-iter" Int "12" "numbers whose mean is drawn", Nothing(DRAWN);
    Random "rand-spec-pct oltp-dist-pct" Int "1" "width of the band, percent", Nothing(DRAWN);
    Random "rand-spec-res oltp-dist-res" Int "75" "keys on the band, percent", Nothing(DRAWN);
    Random "rand-seed" Int "0" "seed of the keys, 0 for another each time", Flags("seed @");
    Random "rand-pareto-h" Double "0.2" "shape of pareto", Nothing(DRAWN);
    Random "rand-zipfian-exp" Double "0.8" "exponent of zipfian", Nothing(DRAWN);
    Log "verbosity" Int "3" "0 for fatal errors only, up to 5", Nothing("--quiet shows warnings and errors only");
    Log "percentile" Int "95" "1 to 100, 0 for none", Nothing("all are kept: report --metric p99");
    Log "histogram" Bool "off" "the latency's histogram in the report", Nothing(ALWAYS);
    Database "db-driver" Text "mysql" "mysql", Nothing(MYSQL_ONLY);
    Database "db-ps-mode" Text "auto" "auto, or disable for text", Flags("statements @");
    Database "db-debug" Bool "off" NO_EFFECT, Nothing(NONE);
    Mysql "mysql-host" List "localhost" "host, localhost for the socket", Flags("host @");
    Mysql "mysql-port" List "3306" "TCP port", Flags("port @");
    Mysql "mysql-socket" List "" "Unix socket, used instead of the host", Flags("socket @");
    Mysql "mysql-user" Text "sbtest" "account", Flags("user @");
    Mysql "mysql-password" Text "" "its password", Flags("password");
    Mysql "mysql-db" Text "sbtest" "database of the tables", Flags("database @");
    Mysql "mysql-ssl" Ssl "off" "encryption, or a mode of 1.1", Flags("ssl-mode @");
    Mysql "mysql-ssl-key" Text "" "this client's key", Flags("ssl-key @");
    Mysql "mysql-ssl-ca" Text "" "certificates of authorities", Flags("ssl-ca @");
    Mysql "mysql-ssl-cert" Text "" "this client's certificate", Flags("ssl-cert @");
    Mysql "mysql-ssl-cipher" Text "" REFUSED, Nothing(NONE);
    Mysql "mysql-compression" Bool "off" REFUSED, Nothing("other bytes would be measured");
    Mysql "mysql-compression-algorithms" Text "" REFUSED, Nothing(NONE);
    Mysql "mysql-debug" Bool "off" NO_EFFECT, Nothing(NONE);
    Mysql "mysql-ignore-errors" List "1213,1020,1205" "errors after which an event begins again, or all", Flags("on-error continue");
    Mysql "mysql-dry-run" Bool "off" "no server is asked", Nothing(NONE);
    Database PGSQL Text "" NO_EFFECT, Nothing(MYSQL_ONLY);
    Tests "auto-inc oltp-auto-inc" Bool "on" "AUTO_INCREMENT", Nothing("tables always have it");
    Tests "create-secondary oltp-create-secondary" Bool "on" "index on k", Nothing("always made");
    Tests TABLE_OPTIONS Text "" "words behind CREATE TABLE ()", Nothing(NONE);
    Tests "delete-inserts oltp-delete-inserts" Double "1" "DELETE and INSERT, pairs an event", Same;
    Ranges "delta" Double "5" "width of a range", Same;
    Tests "distinct-ranges oltp-distinct-ranges" Double "1" "SELECT DISTINCT an event", Same;
    Tests "index-updates oltp-index-updates" Double "1" "UPDATE of k an event", Same;
    Tests "mysql-storage-engine mysql-table-engine" Text "innodb" "engine", Nothing("it is InnoDB");
    Tests "non-index-updates oltp-non-index-updates" Double "1" "UPDATE of c an event", Same;
    Ranges "number-of-ranges" Double "10" "ranges of a SELECT", Flags("random-ranges @");
    Tests "order-ranges oltp-order-ranges" Double "1" "SELECT with ORDER BY an event", Same;
    Tests "pgsql-variant" Text "" NO_EFFECT, Nothing(MYSQL_ONLY);
    Tests "point-selects oltp-point-selects" Double "10" "SELECT of one row an event", Same;
    Points "random-points" Double "10" "values in IN ()", Same;
    Tests "range-size oltp-range-size" Double "100" "rows of a range", Same;
    Tests "reconnect" Double "0" "events of a connection, 0 for all", Nothing(NONE);
    Tests "secondary oltp-secondary" Bool "off" "a plain index of id", Nothing(PRIMARY);
    Tests "simple-ranges oltp-simple-ranges" Double "1" "SELECT of a range an event", Same;
    Tests "skip-trx oltp-skip-trx" Bool "off" "no BEGIN, COMMIT", Nothing("it has no transaction");
    Tests "sum-ranges oltp-sum-ranges" Double "1" "SELECT SUM() an event", Same;
    Tests "range-selects oltp-range-selects" Bool "on" "off leaves out ranges", Flags(NO_RANGES);
    Tests "table-size oltp-table-size" Double "10000" "rows of a table", Flags("rows @");
    Tests "tables oltp-tables-count" Double "1" "tables", Same;
    Legacy "oltp-read-only" Bool "off" "no statement writes", Nothing("loadgen read-only is it");
    Legacy "oltp-write-only" Bool "off" "no statement reads", Nothing("loadgen write-only is it");
    Legacy "oltp-test-mode" Text "complex" REFUSED, Nothing("each mode is a workload");
    Legacy "oltp-table-name" Text "sbtest" REFUSED, Nothing("tables are sbtest1 and so on");
    Legacy "oltp-connect-delay mysql-engine-trx myisam-max-rows" Text "" NO_EFFECT, Nothing(NONE);
    Legacy "rand-init init-rng" Bool "off" NO_EFFECT, Nothing(NONE);
    Own "output-version" Text "1.0" "whose output is written: 0.5, 1.0 or 1.1", Nothing(DROP_IN);
    Own "loadgen-out" Text "" "directory of loadgen's own summary", Flags("out @");
    Own "sysbench-binary" Text "" "program that does what loadgen cannot", Nothing(DROP_IN);
    Own "explain" Bool "off" "prints the native command and runs nothing", Nothing(DROP_IN);
};

/// Finds an option by its name without dashes in front, in either spelling.
pub(super) fn find(name: &str) -> Option<&'static Entry> {
    let name = with_dashes(name);
    OPTIONS.iter().find(|option| option.names.split(' ').any(|known| known == name))
}

/// Returns an option that exists.
pub(super) fn get(name: &str) -> &'static Entry {
    find(name).expect("an option of the table")
}

pub(super) fn with_dashes(name: &str) -> String {
    name.replace('_', "-")
}

/// Returns whether an option, maybe a misspelt one, may be that of a password: its value is never shown.
pub(super) fn may_be_password(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("pas") || name.contains("pw")
}

impl Entry {
    /// Returns its name in maps: that of 1.0, with dashes.
    pub(super) fn key(&self) -> &'static str {
        self.names.split(' ').next().expect("split gives one")
    }

    pub(super) fn is_default(&self, value: &str) -> bool {
        let alike = self.kind == Bool && ON.contains(&value) == ON.contains(&self.default);
        alike || value == self.default
    }

    pub(super) fn is_of_test(&self) -> bool {
        matches!(self.group, Tests | Points | Ranges | Legacy)
    }

    #[cfg(feature = "lua")]
    pub(super) fn is_own(&self) -> bool {
        self.group == Own
    }

    fn form(&self) -> String {
        let name =
            if self.is_of_test() { self.key().replace('-', "_") } else { self.key().to_owned() };
        name + match self.kind {
            Bool | Ssl => "[=on|off]",
            Int | Count | Double => "=N",
            Size => "=SIZE",
            List => "=[LIST,...]",
            Text => "=STRING",
            File => "=FILENAME",
        }
    }
}

/// Option values by key, as last given; a list has commas.
#[derive(Debug, Clone, Default)]
pub(crate) struct OptionValues(BTreeMap<&'static str, String>);

impl OptionValues {
    pub(super) fn set(&mut self, entry: &Entry, text: String) {
        self.0.insert(entry.key(), text);
    }

    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    pub(super) fn is_given(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn text(&self, name: &str) -> &str {
        let entry = get(name);
        self.0.get(entry.key()).map_or(entry.default, String::as_str)
    }

    pub(super) fn list(&self, name: &str) -> Vec<&str> {
        self.text(name).split(',').filter(|item| !item.is_empty()).collect()
    }

    pub(super) fn on(&self, name: &str) -> bool {
        ON.contains(&self.text(name))
    }

    pub(super) fn int(&self, name: &str) -> i32 {
        int(self.text(name)).expect("a whole number")
    }

    pub(super) fn seconds(&self, name: &str) -> Duration {
        Duration::from_secs(self.int(name) as u64)
    }

    pub(super) fn rand_type(&self) -> Option<RandType> {
        match self.text("rand-type") {
            "uniform" => Some(RandType::Uniform),
            "gaussian" => Some(RandType::Gaussian),
            "special" => Some(RandType::Special),
            "pareto" => Some(RandType::Pareto),
            "zipfian" => Some(RandType::Zipfian),
            _ => None,
        }
    }

    /// Returns the key distribution; None for an unknown name or a parameter out of bounds.
    pub(super) fn distribution(&self) -> Option<Distribution> {
        // Negative or non-numeric parameters are out of bounds, too.
        let [iterations, band, within] = ["rand-spec-iter", "rand-spec-pct", "rand-spec-res"]
            .map(|name| int(self.text(name)).unwrap_or(-1) as u32);
        match self.rand_type()? {
            RandType::Uniform => Some(Distribution::Uniform),
            RandType::Gaussian => Distribution::gaussian(iterations),
            RandType::Special => Distribution::special(iterations, band, within),
            RandType::Pareto => Distribution::pareto(self.number("rand-pareto-h")),
            RandType::Zipfian => Distribution::zipf_adjacent(self.number("rand-zipfian-exp")),
        }
    }

    /// Returns the seconds of reports since the start, ascending.
    pub(super) fn checkpoints(&self) -> Vec<u32> {
        let items = self.list("report-checkpoints").into_iter();
        let mut all: Vec<u32> = items.filter_map(|item| item.trim_start().parse().ok()).collect();
        all.sort_unstable();
        all
    }

    /// Parses the number at the start of a value; 0 without one, and for words such as inf.
    pub(super) fn number(&self, name: &str) -> f64 {
        let text = self.text(name).trim_start();
        let ends = |c: char| !c.is_ascii_digit() && !"+-.eE".contains(c);
        let decimal = || leading_number(text.split(ends).next().unwrap_or_default());
        hexadecimal(text).unwrap_or_else(decimal)
    }

    /// Returns a number of loops, at least 0.
    pub(super) fn count(&self, name: &str) -> u64 {
        self.number(name) as u64
    }
}

/// Parses a whole number as strtol does; an empty text is 0.
pub(super) fn int(text: &str) -> Option<i32> {
    if text.is_empty() { Some(0) } else { text.trim_start().parse().ok() }
}

/// Parses the number at the start of a text, as strtod does; 0 without one.
pub(super) fn leading_number(text: &str) -> f64 {
    let text = text.trim_start();
    let parse = |end: usize| text.get(..end)?.parse::<f64>().ok();
    let decimal = || (1..=text.len()).rev().find_map(parse).unwrap_or(0.0);
    hexadecimal(text).unwrap_or_else(decimal)
}

/// Parses a whole number such as 0x10, at the start of a text.
fn hexadecimal(text: &str) -> Option<f64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let length = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
    Some(u64::from_str_radix(&digits[..length], 16).ok()? as f64)
}

pub(super) fn list_options(wanted: impl Fn(&Entry) -> bool) -> String {
    let options: Vec<&Entry> = OPTIONS.iter().filter(|option| wanted(option)).collect();
    let width = options.iter().map(|option| option.form().len()).max().unwrap_or(0);
    let line = |option: &&Entry| {
        let Entry { about, default, .. } = option;
        format!("  --{:width$} {about} [{default}]\n", option.form())
    };
    options.iter().map(line).collect()
}

/// Returns the text of `--help`, with sysbench's headings for scripts that look for its lists.
pub(super) fn help() -> String {
    let groups = [
        (USAGE, General),
        ("\nPseudo-Random Numbers Generator options:\n", Random),
        ("\nLog options:\n", Log),
        ("\nGeneral database options:\n\n", Database),
        (DRIVERS, Mysql),
        ("\nCompiled-in tests:\n\nloadgen options:\n", Own),
    ];
    let of =
        |(heading, group)| format!("{heading}{}", list_options(|option| option.group == group));
    groups.map(of).concat() + MORE
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn number_is_read_as_strtod_does_when_it_is_hexadecimal() {
        for (text, number) in [("0x10", 16.0), (" 0X1f rows", 31.0), ("0x", 0.0), ("010", 10.0)] {
            assert!((leading_number(text) - number).abs() < 1e-9, "{text}");
        }
    }

    #[test]
    fn an_option_is_in_the_table_once() {
        let mut seen = BTreeSet::new();
        for name in OPTIONS.iter().flat_map(|option| option.names.split(' ')) {
            assert!(!name.contains('_'), "{name} is written with -");
            assert!(seen.insert(name), "{name} is there twice");
        }
    }
}
