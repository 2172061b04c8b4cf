//! Rules of programs that parse sysbench's outputs, each written anew: what they read of loadgen's output
//! is what it says. sysbench's own output shows that a rule is right.
//!
//! Left out, as they parse no text of the stock scripts: canonical/sysbench-operator (a hook of sysbench-tpcc
//! with `err/s` and no colon), vitessio/arewefastyet (the JSON of a fork), cloud-bulldozer/benchmark-wrapper (cpu
//! and memory only).

use std::collections::BTreeMap;

use regex::Regex;

use super::programs::{Place, Program, lacking, replaced};
use crate::common::databases::{SANDBOXES, say_which};
use crate::common::skipped;

/// What a consumer reads, by names that all of them share.
type Read = BTreeMap<&'static str, f64>;

type Rule = fn(&str) -> Result<Read, String>;

/// A program that parses outputs.
struct Consumer {
    name: &'static str,
    /// Options of the run that it parses.
    options: &'static str,
    /// It reads standard error with the output, and its own command line on top.
    merges: bool,
    layout: Layout,
    rule: Rule,
}

/// Whose output it expects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// 0.5, `--output-version=0.5`.
    Old,
    /// 1.0, as the installed sysbench.
    Installed,
    /// The master branch, `--output-version=1.1`.
    Master,
}

const fn consumer(name: &'static str, options: &'static str, rule: Rule) -> Consumer {
    Consumer { name, options, merges: false, layout: Layout::Installed, rule }
}

impl Consumer {
    const fn merging(self) -> Consumer {
        Consumer { merges: true, ..self }
    }

    const fn of(self, layout: Layout) -> Consumer {
        Consumer { layout, ..self }
    }
}

const CONSUMERS: &[Consumer] = &[
    consumer("PerfKitBenchmarker", "--report-interval=1", perfkit),
    consumer("kubebench", "--report-interval=1 --percentile=99", kubebench),
    consumer("dolt", "--percentile=50", dolt),
    consumer("dolt, with intervals", "--report-interval=1", dolt),
    consumer("cockroach", "--report-interval=1", cockroach),
    consumer("lkp-tests, oltp", "--report-interval=1", lkp_oltp),
    consumer("lkp-tests, sysbench", "", lkp_sysbench),
    consumer("lkp-tests, sysbench, 1.1", "", lkp_sysbench_eps).of(Layout::Master),
    consumer("mmtests", "", mmtests),
    consumer("mytools", "", mytools).merging(),
    consumer("mytools, with a histogram", "--histogram --validate", mytools).merging(),
    consumer("sysbench-output-parser", "--report-interval=100", output_parser),
    consumer("VirtualClient", "", virtual_client).of(Layout::Master),
    consumer("VirtualClient, with intervals", "--report-interval=1", virtual_client)
        .of(Layout::Master),
    consumer("phoronix", "", phoronix).merging(),
    consumer("sysbench-scripts", "--report-interval=1", percona).of(Layout::Old),
];

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

/// The first match anywhere, as a number.
fn first(text: &str, rule: &str) -> Result<f64, String> {
    let found = pattern(rule).captures(text).ok_or_else(|| format!("no {rule}"))?;
    found[1].parse().map_err(|_| format!("{rule}: {} is no number", &found[1]))
}

fn read<const N: usize>(text: &str, rules: [(&'static str, &str); N]) -> Result<Read, String> {
    rules.into_iter().map(|(name, rule)| Ok((name, first(text, rule)?))).collect()
}

/// Each line with a bracket at its start must be an interval; the rest anywhere, the first of each.
fn perfkit(text: &str) -> Result<Read, String> {
    let intervals = text.split('\n').filter(|line| line.starts_with('['));
    for line in intervals {
        for rule in
            ["tps: (.*?) ", r"lat \(.*?\): (.*?) ", r"qps: (.*?) \(.*?\) ", r"\[ ([0-9]+)s \]"]
        {
            first(line, rule).map_err(|why| format!("{line}: {why}"))?;
        }
    }
    let number = "([0-9]*[.]?[0-9]+)";
    read(
        text,
        [
            ("tps", &format!(r"transactions: *[0-9]* *\({number} per sec.\)")),
            ("qps", &format!(r"queries: *[0-9]* *\({number} per sec.\)")),
            ("min", &format!("min: *{number}")),
            ("avg", &format!("avg: *{number}")),
            ("max", &format!("max: *{number}")),
            ("percentile", &format!("95th percentile: *{number}")),
        ],
    )
}

fn counts_and_times(text: &str, percentile: &str) -> Result<Read, String> {
    let percentile = format!(r"{percentile}th\s+percentile:\s+(\d+\.\d+)");
    read(
        text,
        [
            ("read", r"read:\s+(\d+)"),
            ("write", r"write:\s+(\d+)"),
            ("other", r"other:\s+(\d+)"),
            ("total", r"total:\s+(\d+)"),
            ("transactions", r"transactions:\s+(\d+)\s+\(\d+\.\d+\s+per\s+sec.\)"),
            ("tps", r"transactions:\s+\d+\s+\((\d+\.\d+)\s+per\s+sec.\)"),
            ("queries", r"queries:\s+(\d+)\s+\(\d+\.\d+\s+per\s+sec.\)"),
            ("qps", r"queries:\s+\d+\s+\((\d+\.\d+)\s+per\s+sec.\)"),
            ("errors", r"ignored\s+errors:\s+(\d+)\s+\(\d+\.\d+\s+per\s+sec.\)"),
            ("reconnects", r"reconnects:\s+(\d+)\s+\(\d+\.\d+\s+per\s+sec.\)"),
            ("time", r"total\s+time:\s+(\d+\.\d+)s"),
            ("events", r"total\s+number\s+of\s+events:\s+(\d+)"),
            ("min", r"min:\s+(\d+\.\d+)"),
            ("avg", r"avg:\s+(\d+\.\d+)"),
            ("max", r"max:\s+(\d+\.\d+)"),
            ("percentile", &percentile),
            ("sum", r"sum:\s+(\d+\.\d+)"),
            ("events_avg", r"events\s+\(avg/stddev\):\s+(\d+\.\d+)/\d+\.\d+"),
            ("execution_avg", r"execution\s+time\s+\(avg/stddev\):\s+(\d+\.\d+)/\d+\.\d+"),
        ],
    )
}

fn interval(percentile: &str) -> Regex {
    let number = r"(\d+\.\d+)";
    pattern(&format!(
        r"\[ \d+s \]\s+thds:\s+(\d+)\s+tps:\s+{number}\s+qps:\s+{number}\s+\(r/w/o:\s+{number}/{number}/{number}\)\s+lat\s+\(ms,{percentile}%\):\s+{number}\s+err/s:\s+{number}\s+reconn/s:\s+{number}"
    ))
}

/// Intervals by one pattern with the percentile in it, one at least.
fn kubebench(text: &str) -> Result<Read, String> {
    if !text.lines().any(|line| interval("99").is_match(line.trim())) {
        return Err("no interval".into());
    }
    // What a tail of the file is told at the end.
    let last =
        text.lines().last().is_some_and(|line| line.contains("execution time") || line.is_empty());
    if !last {
        return Err("the fairness of times is not the end".into());
    }
    counts_and_times(text, "99")
}

fn lkp_oltp(text: &str) -> Result<Read, String> {
    if !text.lines().any(|line| interval("95").is_match(line)) {
        return Err("no interval".into());
    }
    counts_and_times(text, "95")
}

/// Behind "SQL statistics:" each line is split at its colons; known keys have strict numbers.
fn dolt(text: &str) -> Result<Read, String> {
    const KEYS: [(&str, &str); 12] = [
        ("read", "read"),
        ("write", "write"),
        ("other", "other"),
        ("total", "total"),
        ("transactions", "transactions"),
        ("queries", "queries"),
        ("ignored errors", "errors"),
        ("reconnects", "reconnects"),
        ("total time", "time"),
        ("total number of events", "events"),
        ("min", "min"),
        ("sum", "sum"),
    ];
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut values = Read::new();
    for line in lines.skip_while(|line| !line.starts_with("SQL statistics:")).skip(1) {
        let mut parts = line.split(':').map(str::trim);
        let (Some(key), Some(value)) = (parts.next(), parts.next()) else { continue };
        let known = KEYS.into_iter().chain([("avg", "avg"), ("max", "max")]);
        let name = match known.into_iter().find(|(its, _)| *its == key) {
            Some((_, name)) => name,
            None if key.contains("percentile") => "percentile",
            None => continue,
        };
        let mut halves = value.split('(');
        let whole = halves.next().expect("one at least").trim().trim_end_matches('s');
        let strict = |text: &str| text.parse().map_err(|_| format!("{line}: {text} is no number"));
        values.insert(name, strict(whole)?);
        if let Some(rate) = halves.next() {
            let rate = rate.trim_matches(')').trim_end_matches(" per sec.");
            match name {
                "transactions" => values.insert("tps", strict(rate)?),
                "queries" => values.insert("qps", strict(rate)?),
                _ => Some(strict(rate)?),
            };
        }
        if halves.next().is_some() {
            return Err(format!("{line}: two brackets"));
        }
    }
    let lacking = KEYS.iter().find(|(_, name)| !values.contains_key(name));
    lacking.map_or(Ok(values), |(key, _)| Err(format!("no {key}")))
}

/// Intervals have 15 fields behind the bracket; one at least.
fn cockroach(text: &str) -> Result<Read, String> {
    let intervals = pattern(r"\[ [\d]+s \].*");
    let mut found = 0;
    for line in text.lines().filter(|line| intervals.is_match(line)) {
        let (_, output) = line.split_once("] ").ok_or("no bracket")?;
        let fields: Vec<&str> = output.split_whitespace().collect();
        if fields.len() != 15 {
            return Err(format!("{line}: {} fields", fields.len()));
        }
        let by_type = fields[7].trim_matches(['(', ')']).split('/');
        let numbers = [1, 3, 5, 10, 12, 14].map(|field| fields[field]);
        for text in by_type.clone().chain(numbers) {
            text.parse::<f64>().map_err(|_| format!("{line}: {text} is no number"))?;
        }
        if by_type.count() != 3 {
            return Err(format!("{line}: not three types"));
        }
        found += 1;
    }
    if found == 0 { Err("no interval".into()) } else { Ok(Read::new()) }
}

fn lkp_sysbench(text: &str) -> Result<Read, String> {
    read(
        text,
        [
            ("events", r"total number of events:\s+(\d+)"),
            ("min", r"min:\s+([0-9.]+)"),
            ("avg", r"avg:\s+([0-9.]+)"),
            ("max", r"max:\s+([0-9.]+)"),
            ("percentile", r"95th percentile:\s+([0-9.]+)"),
            ("events_avg", r"events\s+\(avg/stddev\):\s+([0-9.]+)/[0-9.]+"),
            ("execution_avg", r"execution time.+:\s+([0-9.]+)/[0-9.]+"),
        ],
    )
}

fn lkp_sysbench_eps(text: &str) -> Result<Read, String> {
    let mut values = lkp_sysbench(text)?;
    let eps = [("eps", r"events/s \(eps\):\s+([0-9.]+)"), ("time", r"time elapsed:\s+([0-9.]+)")];
    values.append(&mut read(text, eps)?);
    Ok(values)
}

/// The fourth word of the transactions, the empty one before the indentation counted.
fn mmtests(text: &str) -> Result<Read, String> {
    let line = text.lines().find(|line| line.contains("transactions:")).ok_or("no transactions")?;
    let blanks = pattern(r"\s+");
    let word = blanks.split(line).nth(3).ok_or("no fourth word")?.trim_start_matches('(');
    let tps = word.parse().map_err(|_| format!("{word} is no number"))?;
    Ok(Read::from([("tps", tps)]))
}

/// `grep KEY | awk '{ print $N }'` over all that was printed: one line each.
fn mytools(text: &str) -> Result<Read, String> {
    let rules = [
        ("tps", "transactions:", 3),
        ("qps", "queries:", 3),
        ("avg", "avg:", 2),
        ("max", "max:", 2),
        ("percentile", "percentile", 3),
    ];
    let word = |(name, key, number): (&'static str, &str, usize)| {
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(key)).collect();
        let [line] = lines[..] else { return Err(format!("{key}: {lines:?}")) };
        let word = line.split_whitespace().nth(number - 1).ok_or(format!("{line}: too short"))?;
        let word = word.trim_start_matches('(');
        Ok((name, word.parse().map_err(|_| format!("{line}: {word} is no number"))?))
    };
    rules.into_iter().map(word).collect()
}

/// A grammar of the whole text; the line of the interval is obligatory.
fn output_parser(text: &str) -> Result<Read, String> {
    let (word, version) = (r"[a-zA-Z0-9][a-zA-Z0-9%_:./-]*", r"\d+\.\d+\.[\w-]+");
    let rate = r"\d+\s+\(\d+\.\d+ per sec\.\)";
    let float = r"\d+\.\d+";
    let parts = [
        format!(r"^sysbench {version} \((?:(?:{word}|{version})\s*)+\)"),
        "Running the test with following options:".into(),
        r"Number of threads: \d+".into(),
        r"Report intermediate results every \d+ second\(s\)".into(),
        "Initializing random number generator from current time".into(),
        r"Initializing worker threads\.\.\.".into(),
        "Threads started!".into(),
        r"SQL statistics:\s+queries performed:".into(),
        r"read:\s+\d+\s+write:\s+\d+\s+other:\s+\d+\s+total:\s+\d+".into(),
        format!(r"transactions:\s+{rate}\s+queries:\s+{rate}"),
        format!(r"ignored errors:\s+{rate}\s+reconnects:\s+{rate}"),
        format!(r"General statistics:\s+total time:\s+{float}s\s+total number of events:\s+\d+"),
        format!(r"Latency \(ms\):\s+min:\s+{float}\s+avg:\s+{float}\s+max:\s+{float}"),
        format!(r"\d+th percentile:\s+{float}\s+sum:\s+{float}"),
        format!(r"Threads fairness:\s+events \(avg/stddev\):\s+{float}/{float}"),
        format!(r"execution time \(avg/stddev\):\s+{float}/{float}\s*$"),
    ];
    // Tells where the grammar ends, as its parser does.
    for count in 1..=parts.len() {
        if !pattern(&parts[..count].join(r"\s+")).is_match(text) {
            return Err(format!("no match from '{}' on", parts[count - 1]));
        }
    }
    counts_and_times(text, "95")
}

/// All numbers behind "SQL statistics:", by their places in the layout of the master branch.
fn virtual_client(text: &str) -> Result<Read, String> {
    const SKIPPED: [usize; 8] = [3, 12, 14, 18, 21, 22, 23, 24];
    const NAMES: [&str; 17] = [
        "read",
        "write",
        "other",
        "transactions",
        "tps",
        "queries",
        "qps",
        "errors",
        "errors_rate",
        "reconnects",
        "reconnects_rate",
        "time",
        "min",
        "avg",
        "max",
        "percentile",
        "sum",
    ];
    let version = pattern(r"sysbench\s+([\d]+\.[\d]+\.[\d]+(?:-\w+)?)");
    if !version.is_match(text) {
        return Err("no version".into());
    }
    let report = text.split("SQL statistics:").nth(1).ok_or("no statistics")?;
    let number = pattern(r"-?\d+(\.\d+)?");
    let numbers = number.find_iter(report).map(|found| found.as_str()).enumerate();
    let kept = numbers.filter(|(place, _)| !SKIPPED.contains(place)).map(|(_, text)| text);
    let values: Read =
        NAMES.into_iter().zip(kept.map(|text| text.parse().expect("a number"))).collect();
    if values.len() == NAMES.len() { Ok(values) } else { Err("too few numbers".into()) }
}

/// Results of the lines of queries and of transactions.
fn phoronix(text: &str) -> Result<Read, String> {
    let result = |key: &str| {
        let line =
            text.lines().find(|line| line.trim().starts_with(key)).ok_or(format!("no {key}"))?;
        let inside = line.split_once('(').and_then(|(_, rest)| rest.split_once(" per sec.)"));
        let (rate, _) = inside.ok_or_else(|| format!("{line}: no rate"))?;
        rate.parse::<f64>().map_err(|_| format!("{line}: {rate} is no number"))
    };
    Ok(Read::from([("tps", result("transactions:")?), ("qps", result("queries:")?)]))
}

/// Words 1, 9 and 12 of an interval line once brackets, the unit of time and commas are gone.
fn percona(text: &str) -> Result<Read, String> {
    let mut found = 0;
    for line in text.lines().filter(|line| line.contains("writes")) {
        let bare = pattern(r"\[\s*").replace(line, "").replacen("s]", "", 1).replacen("ms", "", 1);
        let words: Vec<&str> = bare.split_whitespace().map(|word| word.trim_matches(',')).collect();
        for place in [1, 9, 12] {
            let word = words.get(place - 1).ok_or(format!("{line}: no word {place}"))?;
            word.parse::<f64>().map_err(|_| format!("{line}: word {place} is {word}"))?;
        }
        found += 1;
    }
    if found == 0 { Err("no interval".into()) } else { Ok(Read::new()) }
}

/// The numbers as the text has them: the last word or the rate of the line with this key.
fn printed(text: &str, name: &str) -> Option<f64> {
    let (key, rate) = match name {
        "tps" => ("transactions:", true),
        "qps" => ("queries:", true),
        "errors_rate" => ("ignored errors:", true),
        "reconnects_rate" => ("reconnects:", true),
        "errors" => ("ignored errors:", false),
        "time" if text.contains("Throughput:") => ("time elapsed:", false),
        "time" => ("total time:", false),
        "eps" => ("events/s (eps):", false),
        "events" => ("total number of events:", false),
        "events_avg" => ("events (avg/stddev):", false),
        "execution_avg" => ("execution time (avg/stddev):", false),
        "percentile" => ("th percentile:", false),
        _ => (&*format!("{name}:").leak(), false),
    };
    let line = text.lines().find_map(|line| {
        let (before, after) = line.split_once(key)?;
        let fits = key.starts_with("th ") || before.trim().is_empty();
        fits.then_some(after.trim())
    })?;
    let word = if rate { line.split_once('(')?.1 } else { line };
    word.split([' ', '/', 's']).next()?.parse().ok()
}

/// What is wrong with the numbers that a consumer has read.
fn misread(consumer: &Consumer, text: &str) -> Option<String> {
    let values = match (consumer.rule)(text) {
        Ok(values) => values,
        Err(why) => return Some(format!("{}: {why}\n{text}", consumer.name)),
    };
    let apart = values.into_iter().find(|(name, value)| printed(text, name) != Some(*value));
    apart.map(|(name, value)| {
        format!("{} reads {name} {value}, not {:?}\n{text}", consumer.name, printed(text, name))
    })
}

/// The output of a run as a consumer has it.
fn output(consumer: &Consumer, place: &Place) -> String {
    let layout = match consumer.layout {
        Layout::Installed => "",
        Layout::Old => "--output-version=0.5",
        Layout::Master => "--output-version=1.1",
    };
    let options = consumer.options;
    let line = format!("oltp_read_write {{at}} {{t}} --threads=2 --time=2 {options} {layout} run");
    let ended = place.well(&line);
    if consumer.merges {
        format!("sysbench {line}\n{}{}", ended.stderr, ended.stdout)
    } else {
        ended.stdout
    }
}

/// Most of a run is waiting.
const AT_ONCE: usize = 8;

/// Runs of all consumers; who fails.
fn failing(who: Program, consumers: &[&Consumer]) -> Vec<String> {
    let (server, sandbox) = &SANDBOXES[0];
    say_which(server, sandbox);
    let mut failures = Vec::new();
    for some in consumers.chunks(AT_ONCE) {
        failures.extend(std::thread::scope(|scope| {
            let running: Vec<_> = some
                .iter()
                .map(|consumer| {
                    scope.spawn(|| {
                        let place = Place::new(who, sandbox);
                        place.well("oltp_read_write {at} {t} prepare");
                        misread(consumer, &output(consumer, &place))
                    })
                })
                .collect();
            let ended = running.into_iter().filter_map(|run| run.join().expect("it ends"));
            ended.collect::<Vec<String>>()
        }));
    }
    failures
}

#[test]
fn a_rule_reads_the_output_of_sysbench_when_its_layout_is_the_installed_one() {
    if let Some(why) = lacking() {
        return skipped(why);
    }
    let installed = |consumer: &&Consumer| consumer.layout == Layout::Installed;
    let consumers: Vec<&Consumer> = CONSUMERS.iter().filter(installed).collect();
    let failures = failing(Program::Theirs, &consumers);
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn a_rule_reads_our_output_when_its_layout_is_asked_for() {
    // The installed sysbench in our place has one layout.
    let ours = |consumer: &&Consumer| !replaced() || consumer.layout == Layout::Installed;
    let consumers: Vec<&Consumer> = CONSUMERS.iter().filter(ours).collect();
    let failures = failing(Program::Ours, &consumers);
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// The form of the master branch, in numbers of no run.
const MASTER: &str = "\
sysbench 1.1.0-3ceba0b (using bundled LuaJIT 2.1.0-beta3)

SQL statistics:
    queries performed:
        read:                            14084
        write:                           3998
        other:                           2003
        total:                           20085
    transactions:                        997    (496.91 per sec.)
    queries:                             20085  (10010.52 per sec.)
    ignored errors:                      9      (4.49 per sec.)
    reconnects:                          0      (0.00 per sec.)

Throughput:
    events/s (eps):                      496.9100
    time elapsed:                        2.0050s
    total number of events:              997

Latency (ms):
         min:                                    1.29
         avg:                                    4.01
         max:                                   19.43
         95th percentile:                        5.37
         sum:                                 4002.81

Threads fairness:
    events (avg/stddev):           498.5000/17.50
    execution time (avg/stddev):   2.0014/0.00

";

/// Intervals of 0.5, of its development and of its end.
const OLD: &str = "\
[  10s] threads: 16, tps: 1.00, reads/s: 14.00, writes/s: 17900.16, response time: 0.06ms (99%)
[  20s] threads: 16, tps: 1.00, reads: 14.00, writes: 17900.16, response time: 0.06ms (99%), errors: 0.00, reconnects:  0.00
";

#[test]
fn a_rule_reads_a_layout_when_it_is_written_by_hand() {
    for consumer in CONSUMERS {
        let text = match consumer.layout {
            Layout::Installed => continue,
            Layout::Master => MASTER,
            Layout::Old => OLD,
        };
        assert_eq!(misread(consumer, text), None, "{}", consumer.name);
    }
}

#[test]
fn a_rule_refuses_an_output_when_it_is_not_what_it_expects() {
    let broken = [
        ("PerfKitBenchmarker", "[ 1s ] queue length: 0, concurrency: 0\n"),
        ("cockroach", "[ 1s ] thds: 2 tps: 525.72\n"),
        ("dolt", "SQL statistics:\n    min:   disabled\n"),
        ("mytools", "note: queries: are counted\nqueries: 1 (2.0 per sec.)\n"),
        ("VirtualClient", "SQL statistics:\n    1 2 3\n"),
        ("kubebench", MASTER),
        ("sysbench-output-parser", MASTER),
        ("sysbench-scripts", MASTER),
    ];
    for (name, text) in broken {
        let consumer = CONSUMERS.iter().find(|consumer| consumer.name == name).expect(name);
        assert!((consumer.rule)(text).is_err(), "{name}");
    }
}

#[test]
fn prepare_says_nothing_fatal_when_all_is_well() {
    let (_, sandbox) = &SANDBOXES[0];
    let place = Place::new(Program::Ours, sandbox);
    let ended = place.well("oltp_read_write {at} {t} --threads=2 prepare");
    assert!(!format!("{}{}", ended.stdout, ended.stderr).contains("FATAL"), "{}", ended.stderr);
}
