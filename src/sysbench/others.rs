//! Words of other load generators, for hints to native commands: their counterparts, and why some have none.

use super::options::{Becomes, Entry, Group, NONE, OptionKind, with_dashes};
use Becomes::{Flags, Nothing};

/// A load generator whose words people type out of habit.
pub(super) struct Program {
    pub name: &'static str,
    /// Flags; one letter means a short one.
    flags: &'static [Entry],
}

const ALL_KEPT: &str = "all are kept: report --metric p99";
const OWN_SQL: &str = "loadgen sql --file FILE has your own SQL";
const A_COMMAND: &str = "a workload is a command: point-select, read-write";
const TABLES: &str = "the tables are sysbench's: prepare --tables, --rows";
const STEPS: &str = "--clients 8..64 makes a step of each number";
const GATES: &str = "--gate 'p99<5ms'";

macro_rules! flags {
    ($($names:literal $kind:ident $becomes:expr;)+) => {
        &[$(Entry {
            group: Group::Own, names: $names, kind: OptionKind::$kind, about: "", becomes: $becomes,
            default: if matches!(OptionKind::$kind, OptionKind::Bool) { "off" } else { "" },
        }),+]
    };
}

pub(super) static PROGRAMS: [Program; 5] = [
    Program {
        name: "oha",
        flags: flags! {
            "n" Text Flags("ops @");
            "c connections" Text Flags("clients @");
            "z duration" Text Flags("time @");
            "q query-per-second" Text Flags("rate @");
            "t" Text Flags("op-timeout @");
            "burst-delay burst-rate" Text Nothing("--rate spreads arrivals by --arrival");
            "latency-correction" Bool Nothing("with --rate a latency always counts from its intended instant");
            "no-tui" Bool Flags("quiet");
        },
    },
    Program {
        name: "k6",
        flags: flags! {
            "vus" Text Flags("clients @");
            "d duration" Text Flags("time @");
            "i iterations" Text Flags("ops @");
            "rps" Text Flags("rate @");
            "s stage stages" Text Nothing(STEPS);
            "threshold thresholds" Text Nothing(GATES);
            "summary-trend-stats" Text Nothing(ALL_KEPT);
            "summary-export" Text Nothing("each step leaves a summary in --out DIR");
            "no-summary" Bool Flags("quiet");
        },
    },
    Program {
        name: "wrk",
        flags: flags! {
            "t" Text Flags("engine-threads @");
            "c connections" Text Flags("clients @");
            "d duration" Text Flags("time @");
            "R" Text Flags("rate @");
            "timeout" Text Flags("op-timeout @");
            "s script" Text Nothing(OWN_SQL);
            "L latency" Bool Nothing(ALL_KEPT);
        },
    },
    Program {
        name: "mysqlslap",
        flags: flags! {
            "c concurrency" Text Flags("clients @");
            "i iterations" Text Flags("repeat @");
            "number-of-queries" Text Flags("ops @");
            "q query" Text Flags("query @");
            "create-schema" Text Flags("database @");
            "create" Text Nothing("loadgen prepare makes the tables");
            "e engine" Text Nothing("the tables are of InnoDB");
            "a auto-generate-sql" Bool Nothing(A_COMMAND);
            "auto-generate-sql-load-type" Text Nothing(A_COMMAND);
            "auto-generate-sql-execute-number" Text Flags("ops @");
            "auto-generate-sql-write-number" Text Flags("rows @");
            "auto-generate-sql-add-autoincrement auto-generate-sql-guid-primary" Bool Nothing(TABLES);
            "auto-generate-sql-secondary-indexes" Text Nothing(TABLES);
            "auto-generate-sql-unique-query-number auto-generate-sql-unique-write-number" Text Nothing(TABLES);
            "x number-char-cols" Text Nothing(TABLES);
            "y number-int-cols" Text Nothing(TABLES);
            "commit" Text Nothing("read-write has transactions");
            "detach" Text Nothing("a connection stays open");
            "F delimiter" Text Nothing("statements end with ;");
            "only-print" Bool Flags("list");
            "no-drop" Bool Nothing("the tables stay until loadgen cleanup");
            "pre-query post-query" Text Nothing(NONE);
            "pre-system post-system" Text Nothing(NONE);
            "s silent" Bool Flags("quiet");
        },
    },
    Program {
        name: "hammerdb",
        flags: flags! {
            "vu num-vu mysql-num-vu" Text Flags("clients @");
            "rampup mysql-rampup" Text Flags("warmup @m");
            "mysql-duration" Text Flags("time @m");
            "total-iterations mysql-total-iterations" Text Flags("ops @");
            "count-ware mysql-count-ware warehouses" Text Nothing(OWN_SQL);
            "mysql-dbase" Text Flags("database @");
            "mysql-pass" Text Flags("password");
        },
    },
];

const COMMANDS: [(&str, &str); 6] = [
    ("buildschema", "prepare"),
    ("deleteschema", "cleanup"),
    ("hammerdbcli", "point-select"),
    ("vurun", "point-select"),
    ("wrk2", "point-select"),
    ("slap", "point-select"),
];

pub(crate) fn command(word: &str) -> Option<&'static str> {
    let (_, ours) = COMMANDS.iter().find(|(theirs, _)| word.eq_ignore_ascii_case(theirs))?;
    Some(ours)
}

pub(super) fn program(word: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.name == word)
}

/// Lists the programs that know the most of these flags, if any knows one.
pub(super) fn programs_with(flags: &[&str]) -> Vec<&'static Program> {
    let known =
        |program: &Program| flags.iter().filter(|flag| program.find(flag).is_some()).count();
    let most = PROGRAMS.iter().map(known).max().filter(|most| *most > 0);
    PROGRAMS.iter().filter(|program| Some(known(program)) == most).collect()
}

impl Program {
    pub(super) fn find(&self, flag: &str) -> Option<&'static Entry> {
        let name = match flag.strip_prefix("--") {
            Some(name) if name.len() > 1 => name,
            None => flag.strip_prefix('-').filter(|name| name.len() == 1)?,
            Some(_) => return None,
        };
        let name = with_dashes(name);
        self.flags.iter().find(|entry| entry.names.split(' ').any(|known| known == name))
    }
}

/// Splits a short flag from its value: -c64.
pub(super) fn split_glued(arg: &str) -> Option<(&str, &str)> {
    let (flag, value) = arg.split_at_checked(2)?;
    let known = PROGRAMS.iter().any(|program| program.find(flag).is_some());
    (known && value.starts_with(|c: char| c.is_ascii_digit())).then_some((flag, value))
}

#[cfg(test)]
pub(crate) fn native_flags() -> impl Iterator<Item = String> {
    let entries = PROGRAMS.iter().flat_map(|program| program.flags);
    entries.filter_map(|entry| match entry.becomes {
        Flags(ours) => Some(format!("--{}", ours.split(' ').next().expect("a flag"))),
        _ => None,
    })
}
