//! The shape of an output: the text without what depends on the run.

use std::collections::BTreeSet;

use super::programs::Place;

/// What two outputs of one command line have in common.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Masked lines, interval lines left out.
    pub(crate) lines: Vec<String>,
    /// The forms of the interval lines: the last one is a race with the end.
    pub(crate) interval_forms: BTreeSet<String>,
    pub(crate) intervals: usize,
}

/// Masked lines of a statement's text in an error are cut there: sysbench cuts a message, too.
const QUERY_MAX: usize = 160;

impl Shape {
    pub(crate) fn of(stdout: &str, place: &Place) -> Shape {
        let masked: Vec<String> = place.emptied(stdout).split('\n').map(mask).collect();
        let (intervals, mut lines): (Vec<String>, Vec<String>) =
            masked.into_iter().partition(|line| is_interval(line));
        // How many buckets a histogram fills depends on the run.
        lines.dedup_by(|a, b| a == HISTOGRAM_LINE && b == HISTOGRAM_LINE);
        let thds = intervals.iter().filter(|line| line.contains("thds:")).count();
        Shape { lines, interval_forms: intervals.into_iter().collect(), intervals: thds }
    }

    /// The same without order and repeats: threads print at once.
    pub(crate) fn unordered(mut self) -> Shape {
        // sysbench's threads write a line and its end apart, so that two may stand on one.
        let starts = ["Creating ", "Inserting ", "Prewarming ", "Dropping ", "FATAL: "];
        let mut text = self.lines.join("\n");
        for start in starts {
            text = text.replace(start, &format!("\n{start}"));
        }
        self.lines = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
        self.lines.retain(|line| !line.starts_with("(last message repeated"));
        self.lines.sort();
        self.lines.dedup();
        self
    }

    /// The same without DEBUG lines, and the empty lines that some of them bring.
    pub(crate) fn without_debug(mut self) -> Shape {
        self.lines.retain(|line| !line.starts_with("DEBUG:") && !line.is_empty());
        self
    }

    /// Lines from which the two differ, or nothing. Runs that took as long have as many interval lines.
    pub(crate) fn difference(&self, theirs: &Shape, took_as_long: bool) -> Option<String> {
        if self.lines != theirs.lines {
            return Some(diff(&self.lines, &theirs.lines));
        }
        // With no line at all there is no form to compare.
        let both = self.intervals > 0 && theirs.intervals > 0;
        if both && self.interval_forms != theirs.interval_forms {
            let (ours, theirs) = (&self.interval_forms, &theirs.interval_forms);
            return Some(format!("interval lines: ours {ours:#?}, sysbench's {theirs:#?}"));
        }
        let apart = self.intervals.abs_diff(theirs.intervals);
        let (ours, theirs) = (self.intervals, theirs.intervals);
        (took_as_long && apart > 1).then(|| format!("{ours} interval lines, sysbench has {theirs}"))
    }
}

/// Lines of each side that a failure shows.
const SHOWN: usize = 12;

fn diff(ours: &[String], theirs: &[String]) -> String {
    let same = ours.iter().zip(theirs).take_while(|(ours, theirs)| ours == theirs).count();
    let mut ends = 0;
    while ends < ours.len().min(theirs.len()) - same
        && ours[ours.len() - 1 - ends] == theirs[theirs.len() - 1 - ends]
    {
        ends += 1;
    }
    let part = |sign: char, lines: &[String]| -> String {
        let differing = lines[same..lines.len() - ends].iter().take(SHOWN);
        differing.map(|line| format!("    {sign}{line}\n")).collect()
    };
    format!("from line {}:\n{}{}", same + 1, part('-', theirs), part('+', ours))
}

const HISTOGRAM_LINE: &str = "VALUE |STARS COUNT";

fn is_interval(line: &str) -> bool {
    line.starts_with("[ Ns ] thds:") || line.starts_with("[ Ns ] queue length:")
}

/// A line without its numbers: `12.50` becomes `N.NN`, blanks before it one.
pub(crate) fn mask(line: &str) -> String {
    if line.starts_with("sysbench ") && line.contains(" (using ") {
        return "sysbench VERSION (using ENGINE)".into();
    }
    if is_histogram(line) {
        return HISTOGRAM_LINE.into();
    }
    let line = without_client_words(&without_place_in_script(line));
    let masked = numbers(&line);
    match masked.find(" for query '") {
        Some(_) => masked.chars().take(QUERY_MAX).collect(),
        None => masked,
    }
}

fn is_histogram(line: &str) -> bool {
    line.trim_start().split_once(" |").is_some_and(|(value, rest)| {
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let rest = rest.trim_start_matches('*').trim_start();
        value.split_once('.').is_some_and(|(a, b)| number(a) && number(b)) && number(rest)
    })
}

/// `/usr/share/sysbench/oltp_common.lua:349:` is `FILE:N:`.
fn without_place_in_script(line: &str) -> String {
    let Some(at) = line.find(".lua:") else { return line.to_owned() };
    let start = line[..at].rfind(' ').map_or(0, |blank| blank + 1);
    let digits = line[at + 5..].bytes().take_while(u8::is_ascii_digit).count();
    format!("{}FILE:N{}", &line[..start], &line[at + 5 + digits..])
}

/// Errors of the client's own have the words of a library.
fn without_client_words(line: &str) -> String {
    for code in 2000..2100 {
        if let Some(rest) = line.strip_prefix(&format!("FATAL: error {code}: ")) {
            assert!(!rest.is_empty(), "no words: {line}");
            return format!("FATAL: error {code}: TEXT");
        }
    }
    line.to_owned()
}

/// Before a number that tells an error, which must be the same.
const CODES: [&str; 3] = ["error ", "error: ", "errno = "];

fn numbers(line: &str) -> String {
    let bytes = line.as_bytes();
    let mut masked = String::with_capacity(line.len());
    let mut at = 0;
    while let Some(c) = line[at..].chars().next() {
        if !c.is_ascii_digit() {
            masked.push(c);
            at += c.len_utf8();
            continue;
        }
        let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        let whole = digits(at);
        let point = bytes.get(at + whole) == Some(&b'.');
        let decimals = if point { digits(at + whole + 1) } else { 0 };
        if CODES.iter().any(|before| masked.ends_with(before)) {
            masked.push_str(&line[at..at + whole]);
            at += whole;
            continue;
        }
        // Blanks before it are as many as its digits leave.
        while masked.ends_with("  ") {
            masked.pop();
        }
        masked.push('N');
        at += whole;
        if decimals > 0 {
            masked.push('.');
            masked.extend(std::iter::repeat_n('N', decimals));
            at += 1 + decimals;
        }
        // So are those behind it.
        while line[at..].starts_with("  ") {
            at += 1;
        }
    }
    masked
}

/// Every line that a run prints, as a C format.
const FORMATS: &[&str] = &[
    "",
    " ",
    "Running the test with following options:",
    "Number of threads: %u",
    "Warmup time: %us",
    "Target transaction rate: %u/sec",
    "Report intermediate results every %u second(s)",
    "Debug mode enabled.",
    "Validation checks: on.",
    "Initializing random number generator from current time",
    "Initializing random number generator from seed (%u).",
    "Forcing shutdown in %u seconds",
    "Initializing worker threads...",
    "Threads started!",
    "Warming up for %u seconds...",
    "Time limit exceeded, exiting...",
    "Event limit exceeded, exiting...",
    "(last message repeated %u times)",
    "Done.",
    "WARNING: Both event and time limits are disabled, running an endless test",
    "[ %.0fs ] queue length: %u, concurrency: %u",
    "[ %.0fs ] Checkpoint report:",
    "SQL statistics:",
    "    queries performed:",
    "        read:                            %u",
    "        write:                           %u",
    "        other:                           %u",
    "        total:                           %u",
    "    transactions:                        %-6u (%.2f per sec.)",
    "    queries:                             %-6u (%.2f per sec.)",
    "    ignored errors:                      %-6u (%.2f per sec.)",
    "    reconnects:                          %-6u (%.2f per sec.)",
    "Number of unfinished transactions on forced shutdown: %u",
    "General statistics:",
    "    total time:                          %.4fs",
    "    total number of events:              %u",
    "Latency (ms):",
    "         min: %39.2f",
    "         avg: %39.2f",
    "         max: %39.2f",
    "        %3uth percentile: %27.2f",
    "         percentile stats:               disabled",
    "         sum: %39.2f",
    "Threads fairness:",
    "    events (avg/stddev):           %.4f/%.2f",
    "    execution time (avg/stddev):   %.4f/%.2f",
    "Latency histogram (values are in milliseconds)",
    "       value  ------------- distribution ------------- count",
    "%12.3f |%-40s %u",
];

/// Lines of a run that no format of sysbench's 1.0 makes, byte by byte.
pub(crate) fn misprinted(stdout: &str) -> Vec<&str> {
    // The header names the program, the list of checkpoints has no fixed length.
    let free = ["sysbench ", "Report checkpoint(s) at ", "DEBUG: ", "WARNING: ", "FATAL: "];
    let known = |line: &&str| {
        free.iter().any(|start| line.starts_with(start))
            || INTERVALS.iter().any(|format| fits(format, line))
            || FORMATS.iter().any(|format| fits(format, line))
    };
    stdout.lines().filter(|line| !known(line)).collect()
}

/// The latency of an interval names its percentile.
const INTERVALS: [&str; 1] = ["[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f \
     (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f err/s: %4.2f reconn/s: %4.2f"];

/// Tells whether `printf` with this format can have printed the line.
fn fits(format: &str, line: &str) -> bool {
    let Some(at) = format.find('%') else { return format == line };
    let Some(rest) = line.strip_prefix(&format[..at]) else { return false };
    let spec = &format[at + 1..];
    if let Some(spec) = spec.strip_prefix('%') {
        return rest.strip_prefix('%').is_some_and(|rest| fits(spec, rest));
    }
    let end = spec.find(['u', 'f', 's']).expect("a conversion");
    let (left, width) = match spec[..end].strip_prefix('-') {
        Some(width) => (true, width),
        None => (false, &spec[..end]),
    };
    let (width, decimals) = width.split_once('.').map_or((width, None), |(w, d)| (w, Some(d)));
    let width: usize = width.parse().unwrap_or(0);
    let decimals: usize = decimals.map_or(0, |digits| digits.parse().expect("a number"));
    let Some(length) = printed(rest, &spec[end..=end], left, width, decimals) else { return false };
    fits(&spec[end + 1..], &rest[length..])
}

/// How long the value at the start is in a field of this width; `None` for another form.
fn printed(rest: &str, kind: &str, left: bool, width: usize, decimals: usize) -> Option<usize> {
    let blanks = if left { 0 } else { rest.len() - rest.trim_start_matches(' ').len() };
    let value = &rest[blanks..];
    let count = |text: &str, of: fn(&u8) -> bool| text.bytes().take_while(of).count();
    let length = if kind == "s" {
        count(value, |b| *b == b'*')
    } else {
        let whole = count(value, u8::is_ascii_digit);
        let point = value[whole..].starts_with('.');
        let found = if point { count(&value[whole + 1..], u8::is_ascii_digit) } else { 0 };
        if whole == 0 || found != decimals {
            return None;
        }
        if found == 0 { whole } else { whole + 1 + found }
    };
    let padding = width.saturating_sub(length);
    if left {
        let blank = value[length..].len() - value[length..].trim_start_matches(' ').len();
        return (blank >= padding).then_some(length + padding);
    }
    (blanks == padding).then_some(blanks + length)
}

#[test]
fn a_mask_keeps_all_but_numbers_when_a_line_is_of_any_kind() {
    let lines = [
        ("        95th percentile:                    5.37", " Nth percentile: N.NN"),
        ("       100th percentile:                    5.37", " Nth percentile: N.NN"),
        ("         min:                       1.29", "         min: N.NN"),
        (
            "    transactions:                        997    (496.91 per sec.)",
            "    transactions: N (N.NN per sec.)",
        ),
        ("[ 10s ] queue length: 0, concurrency: 12", "[ Ns ] queue length: N, concurrency: N"),
        ("FATAL: error 1045: Access denied", "FATAL: error 1045: Access denied"),
        ("FATAL: error 2002: Can't connect (115)", "FATAL: error 2002: TEXT"),
        (
            "FATAL: `init' function failed: /usr/x/oltp_common.lua:22: this",
            "FATAL: `init' function failed: FILE:N: this",
        ),
        ("       0.144 |**********                               1", HISTOGRAM_LINE),
        ("sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)", "sysbench VERSION (using ENGINE)"),
        ("sysbench 1.0.20", "sysbench N.N.N"),
    ];
    for (line, masked) in lines {
        assert_eq!(mask(line), masked);
    }
}

#[test]
fn a_format_fits_a_line_when_printf_makes_it_of_one() {
    let cases = [
        ("%-6u (%.2f per sec.)", "997    (496.91 per sec.)", true),
        ("%-6u (%.2f per sec.)", "1234567 (496.91 per sec.)", true),
        ("%-6u (%.2f per sec.)", "997 (496.91 per sec.)", false),
        ("%-6u (%.2f per sec.)", "997    (496.9 per sec.)", false),
        ("sum: %8.2f", "sum:     5.37", true),
        ("sum: %8.2f", "sum:    5.37", false),
        ("sum: %8.2f", "sum: 123456.37", true),
        ("%3uth", " 95th", true),
        ("%3uth", "100th", true),
        ("(ms,%u%%): %4.2f", "(ms,95%): 5.37", true),
        ("%12.3f |%-40s %u", "       0.144 |**********                               1", true),
        ("%12.3f |%-40s %u", "       0.144 |****************************************  1", false),
        ("%u", "N", false),
        ("Done.", "Done", false),
    ];
    for (format, line, expected) in cases {
        assert_eq!(fits(format, line), expected, "{format}: {line}");
    }
}
