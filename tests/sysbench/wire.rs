//! What the server counts and logs: the same of both programs.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

use loadgen::sandbox::Sandbox;

use super::programs::{Place, Program, lacking};
use super::shape::mask;
use crate::common::databases::say_which;
use crate::common::{self, Server, query, skipped};

/// Counters by name.
type Counts = BTreeMap<String, i64>;

/// Differences of SHOW GLOBAL STATUS around a command line, on fresh tables: 4 of 1,000 rows, unless
/// the line says otherwise.
struct Row {
    line: &'static str,
    /// Counters that are not 0, `Com_` left out; `stmt_*` on MySQL and on MariaDB.
    counts: &'static [(&'static str, i64)],
    stmts: [[i64; 3]; 2],
    /// Queries of the report: read, write, other.
    queries: [u64; 3],
}

const fn row(
    line: &'static str,
    counts: &'static [(&'static str, i64)],
    stmts: [[i64; 3]; 2],
    queries: [u64; 3],
) -> Row {
    Row { line, counts, stmts, queries }
}

const SIZE: &str = "--tables=4 --table-size=1000";
const THOUSAND: &str = "--tables=4 --table-size=1000 --threads=1 --time=0 --events=1000";

/// Counters of one thousand events by one thread. The stmt_* are prepare, execute and close.
const ROWS: &[Row] = &[
    row("oltp_point_select", &[("select", 1000)], [[4, 1000, 4]; 2], [1000, 0, 0]),
    row(
        "oltp_read_only",
        &[("select", 14000), ("begin", 1000), ("commit", 1000)],
        [[22, 15000, 21], [22, 16000, 22]],
        [14000, 0, 2000],
    ),
    row("oltp_read_only --skip_trx", &[("select", 14000)], [[20, 14000, 20]; 2], [14000, 0, 0]),
    row(
        "oltp_read_only --range_selects=off",
        &[("select", 10000), ("begin", 1000), ("commit", 1000)],
        [[6, 11000, 5], [6, 12000, 6]],
        [10000, 0, 2000],
    ),
    row(
        "oltp_read_write",
        &[
            ("select", 14000),
            ("update", 2000),
            ("delete", 1000),
            ("insert", 1000),
            ("begin", 1000),
            ("commit", 1000),
        ],
        [[38, 19000, 37], [38, 20000, 38]],
        [14000, 4000, 2000],
    ),
    row(
        "oltp_read_write --skip_trx=on",
        &[("select", 14000), ("update", 2000), ("delete", 1000), ("insert", 1000)],
        [[36, 18000, 36]; 2],
        [14000, 4000, 0],
    ),
    row(
        "oltp_read_write --delete_inserts=0 --index_updates=2",
        &[("select", 14000), ("update", 3000), ("begin", 1000), ("commit", 1000)],
        [[38, 18000, 37], [38, 19000, 38]],
        [14000, 3000, 2000],
    ),
    row(
        "oltp_write_only",
        &[("update", 2000), ("delete", 1000), ("insert", 1000), ("begin", 1000), ("commit", 1000)],
        [[18, 5000, 17], [18, 6000, 18]],
        [0, 4000, 2000],
    ),
    row("oltp_update_index", &[("update", 1000)], [[4, 1000, 4]; 2], [0, 1000, 0]),
    row("oltp_update_non_index", &[("update", 1000)], [[4, 1000, 4]; 2], [0, 1000, 0]),
    row("oltp_insert", &[("insert", 1000)], [[0; 3]; 2], [0, 1000, 0]),
    row("oltp_delete --rand-seed=1", &[("delete", 1000)], [[4, 1000, 4]; 2], [0, 245, 755]),
    row("select_random_points", &[("select", 1000)], [[1, 1000, 1]; 2], [1000, 0, 0]),
    row("select_random_ranges", &[("select", 1000)], [[1, 1000, 1]; 2], [1000, 0, 0]),
    row(
        "oltp_read_only --db-ps-mode=disable",
        &[("select", 14000), ("begin", 1000), ("commit", 1000)],
        [[0; 3]; 2],
        [14000, 0, 2000],
    ),
    row(
        "oltp_read_write --db-ps-mode=disable",
        &[
            ("select", 14000),
            ("update", 2000),
            ("delete", 1000),
            ("insert", 1000),
            ("begin", 1000),
            ("commit", 1000),
        ],
        [[0; 3]; 2],
        [14000, 4000, 2000],
    ),
    row(
        "oltp_read_only --threads=4",
        &[("select", 14000), ("begin", 1000), ("commit", 1000)],
        [[88, 15000, 84], [88, 16000, 88]],
        [14000, 0, 2000],
    ),
];

/// Counters of the commands around a run; to leave is a question, too.
const AROUND: [(&str, &[(&str, i64)]); 3] = [
    ("prepare", &[("create_table", 4), ("insert", 4), ("create_index", 4), ("Questions", 13)]),
    ("prewarm", &[("set_option", 2), ("analyze", 4), ("select", 8), ("Questions", 15)]),
    ("cleanup", &[("drop_table", 4), ("Questions", 5)]),
];

/// A server that nobody else asks.
struct Alone<'a> {
    sandbox: &'a Sandbox,
    /// What one reading of the counters counts itself.
    cost: Counts,
}

impl<'a> Alone<'a> {
    fn new(sandbox: &'a Sandbox) -> Self {
        let mut alone = Alone { sandbox, cost: Counts::new() };
        let before = alone.quiet().0;
        let (after, readings) = alone.quiet();
        alone.cost = difference(&after, &before);
        for count in alone.cost.values_mut() {
            *count /= readings;
        }
        alone
    }

    /// The counters once all other connections are gone, and how often they were read.
    fn quiet(&self) -> (Counts, i64) {
        // Of the readings with no other connection: the questions, and how many came since the one before.
        let (mut last, mut step, mut alike) = (0, 0, 0);
        for readings in 1.. {
            let rows = query(self.sandbox, "SHOW GLOBAL STATUS");
            let number = |row: &Vec<String>| Some((row[0].clone(), row[1].parse().ok()?));
            let mut counts: Counts = rows.iter().filter_map(number).collect();
            let connected = counts["Threads_connected"];
            counts.retain(|name, _| name.starts_with("Com_") || name == "Questions");
            // What a connection counted is added up a little after it is gone: each reading then counts itself.
            let questions = counts["Questions"];
            let is_like_before = connected == 1 && questions - last == step;
            alike = if is_like_before { alike + 1 } else { 0 };
            (last, step) = (questions, questions - last);
            if alike == 2 {
                return (counts, readings);
            }
            assert!(readings < 400, "{connected} connections stay");
            sleep(Duration::from_millis(20));
        }
        unreachable!("it returns or panics")
    }

    /// What the server counts while a command line runs, and what the program prints.
    fn counted(&self, place: &Place, line: &str) -> (Counts, String) {
        let before = self.quiet().0;
        let stdout = place.well(line).stdout;
        let (after, readings) = self.quiet();
        let mut counts = difference(&after, &before);
        for (name, cost) in &self.cost {
            *counts.entry(name.clone()).or_default() -= cost * readings;
        }
        counts.retain(|_, count| *count != 0);
        let short = |(name, count): (String, i64)| (name.replacen("Com_", "", 1), count);
        (counts.into_iter().map(short).collect(), stdout)
    }
}

fn difference(after: &Counts, before: &Counts) -> Counts {
    after.iter().map(|(name, count)| (name.clone(), count - before[name])).collect()
}

/// Servers of each kind, so that several rows are measured at once.
const SERVERS: usize = 4;

/// Runs the test for each item, each time on a server that nobody else asks meanwhile.
fn alone<T: Sync>(items: &[T], test: impl Fn(&T, &Alone) -> Vec<String> + Sync) {
    for server in common::servers() {
        let next = std::sync::atomic::AtomicUsize::new(0);
        let failures = Mutex::new(Vec::new());
        let work = || {
            let sandbox = started(&server);
            let alone = Alone::new(&sandbox);
            let ordering = std::sync::atomic::Ordering::Relaxed;
            while let Some(item) = items.get(next.fetch_add(1, ordering)) {
                failures.lock().expect("whole").extend(test(item, &alone));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..SERVERS.min(items.len()) {
                scope.spawn(work);
            }
        });
        let failures = failures.into_inner().expect("whole");
        let name = &server.name;
        assert!(
            failures.is_empty(),
            "{} differ on {name}:\n{}",
            failures.len(),
            failures.join("\n")
        );
    }
}

fn started(server: &Server) -> Sandbox {
    // What is written need not be kept.
    let options = [("log-output", "TABLE"), ("innodb-flush-log-at-trx-commit", "0")];
    let sandbox = common::sandbox(server, &options);
    say_which(server, &sandbox);
    sandbox
}

/// read, write, other of a report.
fn queries(stdout: &str) -> [u64; 3] {
    ["read:", "write:", "other:"].map(|key| {
        let line = stdout.lines().find_map(|line| line.trim().strip_prefix(key));
        line.unwrap_or_else(|| panic!("no {key} in {stdout}")).trim().parse().expect("a count")
    })
}

/// What a row says of this server.
fn golden(row: &Row, sandbox: &Sandbox) -> Counts {
    let mariadb = sandbox.version.contains("MariaDB");
    let stmts = row.stmts[usize::from(mariadb)];
    let names = ["stmt_prepare", "stmt_execute", "stmt_close"];
    let all = row.counts.iter().copied().chain(names.into_iter().zip(stmts));
    all.filter(|(_, count)| *count != 0).map(|(name, count)| (name.into(), count)).collect()
}

fn tell(line: &str, who: &str, counts: &Counts, expected: &Counts) -> Option<String> {
    let names = counts.keys().chain(expected.keys());
    let zero = 0;
    let of = |counts: &Counts, name: &String| *counts.get(name).unwrap_or(&zero);
    let mut apart: Vec<String> = names
        .filter(|name| of(counts, name) != of(expected, name))
        .map(|name| format!("{name} {}, not {}", of(counts, name), of(expected, name)))
        .collect();
    apart.dedup();
    apart.sort();
    apart.dedup();
    (!apart.is_empty()).then(|| format!("{line}, {who}: {}", apart.join(", ")))
}

#[test]
fn the_server_counts_the_same_statements_when_both_run_a_thousand_events() {
    if let Some(why) = lacking() {
        return skipped(why);
    }
    alone(ROWS, |row, server| {
        let measured = [Program::Ours, Program::Theirs].map(|who| {
            let place = Place::new(who, server.sandbox);
            let test = row.line.split(' ').next().expect("a test");
            place.prepared_by_sysbench(&format!("{test} {{at}} {SIZE} prepare"));
            server.counted(
                &place,
                &format!("{} {{at}} {THOUSAND} {} run", row.line, threads(row.line)),
            )
        });
        let [(ours, our_text), (theirs, their_text)] = measured;
        let mut wrong = Vec::new();
        wrong.extend(tell(row.line, "ours beside sysbench's", &ours, &theirs));
        let expected = golden(row, server.sandbox);
        for (who, mut counts) in [("ours", ours), ("sysbench's", theirs)] {
            counts.retain(|name, _| name != "Questions" && !name.starts_with("stmt_reset"));
            wrong.extend(tell(row.line, who, &counts, &expected));
        }
        for (who, text) in [("ours", &our_text), ("sysbench's", &their_text)] {
            let queries = queries(text);
            // How many rows a DELETE finds depends on the stream of a seed.
            let known =
                if row.counts.iter().any(|(name, _)| *name == "delete") && row.queries[2] == 755 {
                    queries.iter().sum::<u64>() == 1000
                        && queries[0] == 0
                        && queries[1].abs_diff(245) < 80
                } else {
                    queries == row.queries
                };
            if !known {
                wrong
                    .push(format!("{}, {who}: r/w/o {queries:?}, not {:?}", row.line, row.queries));
            }
        }
        wrong
    });
}

/// The number of threads goes last: the last of equals wins.
fn threads(line: &str) -> &str {
    line.split(' ').find(|word| word.starts_with("--threads=")).unwrap_or("")
}

#[test]
fn the_server_counts_the_same_statements_when_both_prepare_prewarm_and_clean_up() {
    if let Some(why) = lacking() {
        return skipped(why);
    }
    let tests = ["oltp_read_write", "oltp_common --threads=3", "select_random_points --threads=4"];
    alone(&tests, |test, server| {
        // Its cleanup knows one table only.
        let several = !test.starts_with("select");
        let places = [Program::Ours, Program::Theirs].map(|who| Place::new(who, server.sandbox));
        let mut wrong = Vec::new();
        for (command, expected) in AROUND {
            let size = if several || command != "cleanup" { SIZE } else { "" };
            let line = format!("{test} {{at}} {size} {command}");
            let [(ours, _), (theirs, _)] =
                places.each_ref().map(|place| server.counted(place, &line));
            wrong.extend(tell(&line, "ours beside sysbench's", &ours, &theirs));
            if *test == "oltp_read_write" {
                let expected =
                    expected.iter().map(|(name, count)| ((*name).into(), *count)).collect();
                wrong.extend(tell(&line, "ours", &ours, &expected));
                wrong.extend(tell(&line, "sysbench's", &theirs, &expected));
            }
        }
        wrong
    });
}

/// Command lines whose statements are compared one by one; `prepare` has been run before.
const LOGGED: &[&str] = &[
    "oltp_point_select --events=10 run",
    "oltp_read_only --events=10 run",
    "oltp_read_only --events=10 --skip_trx run",
    "oltp_read_only --events=10 --range_selects=off --point_selects=3 run",
    "oltp_read_only --events=10 --db-ps-mode=disable --sum_ranges=2 --range_size=7 run",
    "oltp_read_write --events=10 run",
    "oltp_read_write --events=10 --db-ps-mode=disable run",
    "oltp_write_only --events=10 run",
    "oltp_write_only --events=10 --delete_inserts=2 --index_updates=0 --non_index_updates=3 run",
    "oltp_update_index --events=10 run",
    "oltp_update_index --events=10 --index_updates=2 run",
    "oltp_update_non_index --events=10 --db-ps-mode=disable run",
    "oltp_insert --events=10 run",
    "oltp_insert --events=10 --auto_inc=off run",
    "oltp_delete --events=10 run",
    "select_random_points --events=10 run",
    "select_random_points --events=10 --random_points=3 --db-ps-mode=disable run",
    "select_random_ranges --events=10 run",
    "select_random_ranges --events=10 --number_of_ranges=2 --delta=3 run",
    "oltp_read_write prewarm",
    "oltp_read_write cleanup",
    "oltp_read_write --tables=5 --auto_inc=off cleanup",
];

/// Statements of prepare, whose tables are new.
const MADE: &[&str] = &[
    "oltp_read_write prepare",
    "oltp_common --auto_inc=off prepare",
    "oltp_insert --auto_inc=off prepare",
    "oltp_read_write --secondary prepare",
    "oltp_read_write --create_secondary=off prepare",
    "oltp_read_write --mysql_storage_engine=myisam prepare",
    "oltp_read_write --rand-type=uniform --db-ps-mode=disable prepare",
    "bulk_insert prepare",
];

/// What the server logs of each connection while a line runs, without numbers; one text a connection.
fn logged(place: &Place, line: &str) -> Vec<String> {
    let sandbox = place.db.sandbox;
    query(sandbox, "TRUNCATE mysql.general_log");
    query(sandbox, "SET GLOBAL general_log = ON");
    place.well(line);
    // The last words of a connection come a little later.
    let done = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = ";
    while query(sandbox, &format!("{done}'{}'", place.db.name))[0][0] != "0" {
        sleep(Duration::from_millis(10));
    }
    query(sandbox, "SET GLOBAL general_log = OFF");
    let columns = "thread_id, command_type, CONVERT(argument USING utf8)";
    let rows = query(sandbox, &format!("SELECT {columns} FROM mysql.general_log"));
    let mut connections: BTreeMap<&str, String> = BTreeMap::new();
    for row in &rows {
        // An id that a client makes is of 32 bits with a sign.
        let said = mask(&place.emptied(&row[2].replace('\n', " "))).replace("(-N", "(N");
        *connections.entry(&row[0]).or_default() += &format!("{}: {said}\n", row[1]);
    }
    let own = |said: &String| {
        let connect = said.lines().next().expect("a line");
        connect.starts_with("Connect: root@localhost") && connect.contains(" on DB")
    };
    let mut said: Vec<String> =
        connections.into_values().filter(own).map(|said| in_any_order(&said)).collect();
    said.sort();
    assert!(!said.is_empty(), "{line}: nothing logged of {rows:?}");
    said
}

/// In which order statements are prepared and closed is no part of the contract, nor how many blanks
/// one has.
fn in_any_order(said: &str) -> String {
    let mut lines: Vec<String> =
        said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for kind in ["Prepare: ", "Close stmt: "] {
        for run in lines.chunk_by_mut(|a, b| a.starts_with(kind) && b.starts_with(kind)) {
            run.sort();
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn compared_logs(line: &str, server: &Alone, prepared: bool) -> Vec<String> {
    let [ours, theirs] = [Program::Ours, Program::Theirs].map(|who| {
        let place = Place::new(who, server.sandbox);
        if prepared {
            place.prepared_by_sysbench("oltp_common {at} --tables=3 --table-size=50 prepare");
        }
        let (test, rest) = line.split_once(' ').expect("a test and more");
        logged(&place, &format!("{test} {{at}} --tables=3 --table-size=50 {rest}"))
    });
    let pairs = ours.iter().zip(&theirs);
    let counts = (ours.len() != theirs.len())
        .then(|| format!("{line}: {} connections, sysbench has {}", ours.len(), theirs.len()));
    let apart = |(ours, theirs): (&String, &String)| {
        let mut lines = ours.lines().zip(theirs.lines()).enumerate();
        let at = lines.find(|(_, (ours, theirs))| ours != theirs);
        let (ours_count, theirs_count) = (ours.lines().count(), theirs.lines().count());
        match at {
            Some((number, (ours, theirs))) => Some(format!(
                "{line}: packet {number}:\n    ours       {ours}\n    sysbench's {theirs}"
            )),
            None if ours_count != theirs_count => {
                let next = ours.lines().nth(theirs_count).or(theirs.lines().nth(ours_count));
                Some(format!("{line}: {ours_count} packets, sysbench has {theirs_count}: {next:?}"))
            }
            None => None,
        }
    };
    counts.into_iter().chain(pairs.filter_map(apart)).collect()
}

#[test]
fn the_server_logs_the_same_statements_in_the_same_order_when_both_run_a_line() {
    if let Some(why) = lacking() {
        return skipped(why);
    }
    let lines: Vec<(&str, bool)> =
        LOGGED.iter().map(|line| (*line, true)).chain(MADE.iter().map(|l| (*l, false))).collect();
    alone(&lines, |(line, prepared), server| compared_logs(line, server, *prepared));
}
