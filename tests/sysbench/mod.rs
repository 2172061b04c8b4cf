//! `loadgen sysbench` beside the installed sysbench: the same command lines, the same outputs, the same
//! statements on the server.

mod cases;
mod consumers;
mod insert_benchmark;
mod ledger;
mod mends;
mod programs;
mod scripts;
mod shape;
mod summaries;
mod tpcc;
mod wire;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common;
use crate::common::databases::{SANDBOXES, say_which};
use crate::common::skipped;
use cases::{CASES, Case, KNOWN, Known, Order, Ours};
use loadgen::sandbox::Sandbox;
use programs::{Ended, Place, Program, lacking};
use shape::{Shape, mask, misprinted};

/// The case of a server without TLS.
const PLAIN: &str = "--mysql-ssl where the server has none";
/// Most of a case is waiting.
const AT_ONCE: usize = 8;

/// Runs the cases on every server, several at once, and tells all that fail.
fn each_case(cases: &[&Case], test: impl Fn(&Case, &Sandbox) -> Vec<String> + Sync) {
    for (server, sandbox) in SANDBOXES.iter() {
        say_which(server, sandbox);
        let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let failed = test(case, sandbox);
                        failures.lock().expect("whole").extend(failed);
                    }
                });
            }
        });
        let failures = failures.into_inner().expect("whole");
        assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    }
}

fn place<'a>(program: Program, case: &Case, sandbox: &'a Sandbox) -> Place<'a> {
    let place = Place::new(program, sandbox);
    for (name, text) in case.files {
        std::fs::write(place.dir().join(name), place.filled(text)).expect("written");
    }
    place
}

/// Tells whether a server that nobody set up for it offers TLS, as new ones do.
fn offers_tls(sandbox: &Sandbox) -> bool {
    let sql = "SHOW GLOBAL VARIABLES WHERE Variable_name = 'have_ssl' AND Value = 'YES' \
               OR Variable_name = 'ssl_cert' AND Value <> ''";
    !common::query(sandbox, sql).is_empty()
}

/// What differs between the programs in the lines of a case.
fn compared(case: &Case, sandbox: &Sandbox) -> Vec<String> {
    if case.name == PLAIN && offers_tls(sandbox) {
        return Vec::new();
    }
    let [ours, theirs] = [Program::Ours, Program::Theirs].map(|who| place(who, case, sandbox));
    let differs = |(number, line): (usize, &&str)| {
        let of_line = |known: &&Known| known.case == case.name && known.line == number;
        let known = KNOWN.iter().filter(|_| !programs::replaced()).find(of_line);
        let (seen, expected) = std::thread::scope(|scope| {
            let like = match known {
                Some(Known { ours: Ours::Like(other), .. }) => other,
                _ => line,
            };
            let expected = scope.spawn(|| theirs.run(like));
            (ours.run(line), expected.join().expect("it runs"))
        });
        let seen = Seen { case, ours: (&ours, seen), theirs: (&theirs, expected) };
        let wrong = seen.wrong(known);
        let tell = |wrong: String| format!("{}: sysbench {line}\n  {wrong}", case.name);
        wrong.into_iter().map(tell).collect::<Vec<String>>()
    };
    case.lines.iter().enumerate().flat_map(differs).collect()
}

/// One command line, run by both.
struct Seen<'a> {
    case: &'a Case,
    ours: (&'a Place<'a>, Ended),
    theirs: (&'a Place<'a>, Ended),
}

impl Seen<'_> {
    fn wrong(&self, known: Option<&Known>) -> Vec<String> {
        let mut wrong = match known.map(|known| (known.ours, known.why)) {
            Some((Ours::Refuses(status), why)) => self.refused(status, why),
            Some((Ours::Fatal(status), why)) => self.fatal(status, why),
            Some((Ours::Status(status), why)) => {
                let ours = self.ours.1.status;
                let wrong = (ours != status).then(|| format!("status {ours}, not {status}: {why}"));
                wrong.into_iter().chain(self.text()).collect()
            }
            Some((Ours::Fewer, why)) => {
                let same = self.ours.1.status == self.theirs.1.status && self.text().is_empty();
                return same.then(|| format!("does so now: {why}")).into_iter().collect();
            }
            Some((Ours::Like(_), _)) | None => {
                let (ours, theirs) = (self.ours.1.status, self.theirs.1.status);
                let wrong = (ours != theirs).then(|| format!("status {ours}, sysbench's {theirs}"));
                wrong.into_iter().chain(self.text()).collect()
            }
        };
        let refuses = matches!(known, Some(Known { ours: Ours::Refuses(_), .. }));
        wrong.extend(self.complaints(refuses));
        if !wrong.is_empty() && !self.ours.1.stderr.is_empty() {
            wrong.push(format!("(our standard error: {})", self.ours.1.stderr.trim_end()));
        }
        wrong
    }

    fn refused(&self, status: i32, why: &str) -> Vec<String> {
        let ended = &self.ours.1;
        let well = ended.status == status && !ended.stderr.trim().is_empty();
        let told = format!("status {} and '{}': {why}", ended.status, ended.stderr.trim());
        (!well).then_some(told).into_iter().collect()
    }

    fn fatal(&self, status: i32, why: &str) -> Vec<String> {
        let ended = &self.ours.1;
        let well =
            ended.status == status && ended.stdout.lines().any(|line| line.starts_with("FATAL: "));
        let told = format!("status {} and '{}': {why}", ended.status, ended.stdout.trim());
        (!well).then_some(told).into_iter().collect()
    }

    fn text(&self) -> Vec<String> {
        let ((here, ours), (there, theirs)) = (&self.ours, &self.theirs);
        let shape = |stdout: &str, place: &Place| {
            let shape = Shape::of(stdout, place);
            match self.case.order {
                Order::Same | Order::Help => shape,
                Order::Any => shape.unordered(),
                Order::WithoutDebug => shape.without_debug(),
            }
        };
        if self.case.order == Order::Help {
            return options(&theirs.stdout)
                .difference(&options(&ours.stdout))
                .map(|option| format!("help lacks: {option}"))
                .collect();
        }
        let mut wrong = Vec::new();
        // An event that waits for a lock makes a run longer.
        let took_as_long = (total_s(&ours.stdout) - total_s(&theirs.stdout)).abs() < 1.0;
        let expected = shape(&theirs.stdout, there);
        wrong.extend(shape(&ours.stdout, here).difference(&expected, took_as_long));
        for (who, (place, ended)) in [("ours", &self.ours), ("sysbench's", &self.theirs)] {
            let text = place.emptied(&ended.stdout);
            if ended.status == 0 && text.contains("\nSQL statistics:") {
                let misprinted = misprinted(&text);
                wrong.extend(
                    misprinted.iter().map(|line| format!("{who} is no line of sysbench: '{line}'")),
                );
            }
        }
        wrong
    }

    /// What is wrong with our standard error: it says what sysbench's does, and holds nothing that
    /// those take for results who merge it with the output.
    fn complaints(&self, refuses: bool) -> Vec<String> {
        let ((here, ours), (there, theirs)) = (&self.ours, &self.theirs);
        let told: Vec<String> = here.emptied(&ours.stderr).lines().map(mask).collect();
        let expected = there.emptied(&theirs.stderr);
        let lacks = expected.lines().map(mask).filter(|line| !refuses && !told.contains(line));
        let lacks: Vec<String> =
            lacks.map(|line| format!("standard error lacks: {line}")).collect();
        let words = ours.stderr.lines().filter(|line| !expected.contains(line));
        let parsed = words.filter_map(|line| Some(format!("'{line}' has '{}'", parsed_for(line)?)));
        lacks.into_iter().chain(parsed).collect()
    }
}

/// Returns the total time of a run, seconds; 0 where none is printed.
fn total_s(stdout: &str) -> f64 {
    let time = stdout.lines().find_map(|line| line.trim().strip_prefix("total time:"));
    time.map_or(0.0, |time| time.trim().trim_end_matches('s').parse().expect("seconds"))
}

/// Options of a help text: name, type and default.
fn options(help: &str) -> BTreeSet<String> {
    let option = |line: &str| {
        let line = line.trim_start();
        let name = line.starts_with("--").then(|| line.split_whitespace().next())??;
        let default = line.ends_with(']').then(|| line.rfind('[')).flatten();
        let default = default.filter(|at| *at > name.len()).map_or("", |at| &line[at..]);
        Some(format!("{name} {}", if default == "[]" { "" } else { default }))
    };
    // loadgen speaks to MySQL only.
    let here = |option: &String| !option.starts_with("--pgsql");
    help.lines().filter_map(option).filter(here).collect()
}

/// A word for which parsers look, and that a line of our own must not hold.
fn parsed_for(line: &str) -> Option<&'static str> {
    const ANYWHERE: [&str; 2] = ["FATAL", "per sec"];
    const WITH_COLON: [&str; 11] = [
        "min",
        "avg",
        "max",
        "sum",
        "read",
        "write",
        "other",
        "total",
        "transactions",
        "queries",
        "percentile",
    ];
    if line.starts_with('[') {
        return Some("[");
    }
    let anywhere = ANYWHERE.into_iter().find(|word| line.contains(word));
    anywhere.or_else(|| WITH_COLON.into_iter().find(|word| line.contains(&format!("{word}:"))))
}

#[test]
fn outputs_have_the_shape_of_sysbench_when_both_run_one_command_line() {
    if let Some(why) = lacking() {
        return skipped(why);
    }
    // One case alone: its name, or a part of it.
    let only = std::env::var("LOADGEN_TEST_CASE").unwrap_or_default();
    let cases: Vec<&Case> = CASES.iter().filter(|case| case.name.contains(&only)).collect();
    assert!(!cases.is_empty(), "no case has '{only}' in its name");
    each_case(&cases, compared);
}

#[test]
fn known_differences_are_of_cases_that_are_there_when_the_table_is_read() {
    for known in KNOWN {
        let case = CASES.iter().find(|case| case.name == known.case);
        let lines = case.unwrap_or_else(|| panic!("no case '{}'", known.case)).lines;
        assert!(known.line < lines.len(), "{}", known.case);
        assert!(!known.why.is_empty());
    }
}

/// Tables of an option of prepare, as a later run finds them.
const TABLES: &[&str] = &[
    "",
    "--auto_inc=off",
    "--secondary",
    "--create_secondary=off",
    "--mysql_storage_engine=myisam",
    "--rand-type=uniform",
    "--rand-type=gaussian",
    "--rand-type=pareto",
    "--rand-spec-pct=20 --rand-spec-res=50",
];

/// What can be asked of a table, by one query each; the answers are the same of both programs.
const ASKED: [&str; 4] = [
    "SHOW CREATE TABLE {db}.sbtest2",
    "SELECT COUNT(*), MIN(id), MAX(id), SUM(k BETWEEN 1 AND 2000) FROM {db}.sbtest1",
    "SELECT COUNT(*) FROM {db}.sbtest1 WHERE LENGTH(c) = 119 AND LENGTH(pad) = 59 \
     AND c REGEXP '^([0-9]{11}-){9}[0-9]{11}$' AND pad REGEXP '^([0-9]{11}-){4}[0-9]{11}$'",
    "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '{db}'",
];

#[test]
fn tables_are_those_of_sysbench_when_both_prepare_them() {
    if let Some(why) = lacking() {
        return skipped(why);
    }
    for (server, sandbox) in SANDBOXES.iter() {
        say_which(server, sandbox);
        for options in TABLES {
            let [ours, theirs] = [Program::Ours, Program::Theirs].map(|who| {
                let place = Place::new(who, sandbox);
                place.well(&format!(
                    "oltp_common {{at}} --tables=2 --table-size=2000 {options} prepare"
                ));
                let ask = |sql: &str| common::query(sandbox, &place.filled(sql));
                let answers = ASKED.map(|sql| place.emptied(&format!("{:?}", ask(sql))));
                // The spread of k decides what select_random_* read later.
                let spread = "SELECT COUNT(DISTINCT k), AVG(k), SUM(k BETWEEN 950 AND 1050) FROM {db}.sbtest1";
                let spread = ask(spread).remove(0);
                let number = |text: &String| text.parse().expect("a number");
                (answers, spread.iter().map(number).collect::<Vec<f64>>())
            });
            assert_eq!(ours.0, theirs.0, "{options}");
            for (ours, theirs) in ours.1.iter().zip(&theirs.1) {
                let near = (ours - theirs).abs() <= 0.1 * theirs + 50.0;
                assert!(near, "{options}: k is spread by {ours}, sysbench's by {theirs}");
            }
        }
    }
}

#[test]
fn ids_have_both_signs_when_the_client_makes_them() {
    let (_, sandbox) = &SANDBOXES[0];
    let place = Place::new(Program::Ours, sandbox);
    place.well("oltp_insert {at} --auto_inc=off prepare");
    place.well("oltp_insert {at} --auto_inc=off --events=60 run");
    let sql = "SELECT COUNT(*), SUM(id < 0) BETWEEN 1 AND 59 FROM {db}.sbtest1";
    assert_eq!(common::query(sandbox, &place.filled(sql)), [["60", "1"]]);
}

#[test]
fn the_verb_does_what_the_name_does_when_it_has_the_same_words() {
    if let Some(why) = lacking() {
        return skipped(why);
    }
    let lines = [
        "--version",
        "oltp_read_write {at} {t} prepare",
        "oltp_read_write {at} {t} --events=20 run",
        "oltp_read_write {at} {t} --foo run",
        "oltp_read_write {at} {t} cleanup",
    ];
    let (_, sandbox) = &SANDBOXES[0];
    let [name, verb] = [Program::Ours, Program::Verb].map(|who| Place::new(who, sandbox));
    for line in lines {
        let [(named, by_name), (called, by_verb)] = [&name, &verb].map(|place| {
            let ended = place.run(line);
            // Whether this host was busy is another matter.
            let told = ended.stderr.lines().filter(|line| !line.starts_with("warning: "));
            let told: Vec<String> = told.map(str::to_owned).collect();
            (Shape::of(&ended.stdout, place), (ended.status, told))
        });
        assert_eq!((named, by_name), (called, by_verb), "{line}");
    }
}
