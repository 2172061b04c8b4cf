//! sysbench's text: its lines for what a run measured, and the log that writes them.
//!
//! All but the log is pure. 1.0 and 1.1 differ in the part "General statistics", 0.5 in much.

use std::io::Write;

use super::settings::{OutputVersion, Settings};
use crate::engine::per_s;
use crate::observe::{ClientEvents, EventCounts, Ns, Times, seconds};
#[cfg(feature = "lua")]
use crate::plan::ScriptLine;

/// Levels of messages, by the `--verbosity` that shows them.
#[derive(Clone, Copy)]
pub(crate) enum Level {
    Fatal,
    #[cfg(feature = "lua")]
    Alert,
    #[cfg(feature = "lua")]
    Warning,
    Notice = 3,
    Info,
    Debug,
}

/// The log of one command: it drops a message equal to the last one.
pub(crate) struct Log {
    out: Box<dyn Write + Send>,
    verbosity: u8,
    last: String,
    repeated: u32,
    /// Reports have the part of a database, as in sysbench once a driver is asked for.
    pub has_driver: bool,
    /// A sentence for standard error, behind all output.
    pub warning: Option<String>,
    pub broken: Option<std::io::Error>,
}

impl Log {
    pub(crate) fn new(out: Box<dyn Write + Send>, verbosity: u8) -> Log {
        let (last, repeated) = (String::new(), 0);
        Log { out, verbosity, last, repeated, has_driver: true, warning: None, broken: None }
    }

    /// Takes what a script's requests tell.
    #[cfg(feature = "lua")]
    pub(crate) fn take(&mut self, line: ScriptLine) {
        match line {
            ScriptLine::Fatal(text) => self.say(Level::Fatal, &text),
            ScriptLine::Alert(text) => self.say(Level::Alert, &text),
            ScriptLine::Driver => self.has_driver = true,
        }
    }

    /// Writes a message of one or several lines, and ends its last line.
    pub(crate) fn say(&mut self, level: Level, message: &str) {
        if level as u8 > self.verbosity {
            return;
        }
        if message == self.last {
            self.repeated += 1;
            return;
        }
        if self.repeated > 0 {
            self.script_line(&format!("(last message repeated {} times)", self.repeated));
        }
        (self.last, self.repeated) = (message.to_owned(), 0);
        let prefix = match level {
            Level::Fatal => "FATAL: ",
            #[cfg(feature = "lua")]
            Level::Alert => "ALERT: ",
            #[cfg(feature = "lua")]
            Level::Warning => "WARNING: ",
            Level::Notice | Level::Info => "",
            Level::Debug => "DEBUG: ",
        };
        let mut line = format!("{prefix}{message}\n").into_bytes();
        // sysbench cuts here: the newline counts, the prefix does not.
        line.truncate(prefix.len() + 4095);
        self.put(&line);
    }

    pub(crate) fn fatal(&mut self, messages: &[String]) {
        for message in messages {
            self.say(Level::Fatal, message);
        }
    }

    pub(crate) fn notice(&mut self, message: &str) {
        self.say(Level::Notice, message);
    }

    /// Writes a line with its time; such a line may repeat.
    pub(crate) fn stamped(&mut self, version: OutputVersion, at_s: u64, rest: &str) {
        if self.verbosity >= Level::Notice as u8 {
            let old = version == OutputVersion::V0_5;
            let time = if old { format!("{at_s:4}s") } else { format!(" {at_s}s ") };
            self.script_line(&format!("[{time}] {rest}"));
        }
    }

    /// Writes a line of a script at any verbosity.
    pub(crate) fn script_line(&mut self, line: &str) {
        self.put(format!("{line}\n").as_bytes());
    }

    /// Writes the histogram: the verbosity hides its title, not its rows.
    pub(crate) fn histogram(&mut self, times: &Times) {
        let mut buckets = buckets(times);
        buckets.retain(|(_, count)| *count > 0);
        self.notice("Latency histogram (values are in milliseconds)");
        if let Some(largest) = buckets.iter().map(|(_, count)| *count).max() {
            self.script_line("       value  ------------- distribution ------------- count");
            for (ms, count) in buckets {
                let bar = "*".repeat((40.0 * count as f64 / largest as f64).round() as usize);
                self.script_line(&format!("{ms:12.3} |{bar:<40} {count}"));
            }
        }
        self.notice(" ");
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.broken.is_none() {
            self.broken = self.out.write_all(bytes).and_then(|()| self.out.flush()).err();
        }
    }
}

#[derive(Default)]
pub(crate) struct Counted {
    pub counts: EventCounts,
    pub from: Ns,
    pub to: Ns,
}

impl Counted {
    pub(crate) fn take(&mut self) -> Counted {
        let next = Counted { from: self.to, to: self.to, ..Counted::default() };
        std::mem::replace(self, next)
    }

    /// The numbers that a script's own report gets.
    #[cfg(feature = "lua")]
    pub(crate) fn stat(
        &self,
        settings: &Settings,
        running: u32,
        at_s: f64,
    ) -> Vec<(&'static str, f64)> {
        let counts = &self.counts;
        let percentile = settings.values.int("percentile");
        let (min, max) = counts.times.extremes_ns().unwrap_or_default();
        let sum_s = counts.times.sum_ns() as f64 / 1e9;
        vec![
            ("threads_running", f64::from(running)),
            ("time_interval", seconds(self.to - self.from)),
            ("time_total", at_s),
            ("latency_pct", percentile_ms(&counts.times, percentile) / 1e3),
            ("latency_min", min as f64 / 1e9),
            ("latency_max", max as f64 / 1e9),
            ("latency_avg", sum_s / counts.times.count().max(1) as f64),
            ("latency_sum", sum_s),
            ("events", counts.events as f64),
            ("reads", counts.reads as f64),
            ("writes", counts.writes as f64),
            ("other", counts.others as f64),
            ("errors", counts.ignored as f64),
            ("reconnects", counts.reconnects as f64),
        ]
    }

    fn per_second(&self, count: u64) -> f64 {
        per_s(count, seconds(self.to - self.from))
    }
}

pub(crate) const INITIALIZING: &str = "Initializing worker threads...\n";

pub(crate) fn header(version: OutputVersion) -> String {
    let of_loadgen = concat!("(using loadgen ", env!("CARGO_PKG_VERSION"), ")\n");
    match version {
        OutputVersion::V0_5 => "sysbench 0.5:  multi-threaded system evaluation benchmark\n".into(),
        OutputVersion::V1_0 => format!("sysbench 1.0.20 {of_loadgen}"),
        OutputVersion::V1_1 => format!("sysbench 1.1.0 {of_loadgen}"),
    }
}

fn join_shown(lines: &[(bool, String)]) -> String {
    lines.iter().filter(|(shown, _)| *shown).flat_map(|(_, line)| [line, "\n"]).collect()
}

pub(crate) fn options(settings: &Settings) -> String {
    let Settings { threads, rate, seed, time, forced_shutdown: grace, values, .. } = settings;
    let old = settings.output == OutputVersion::V0_5;
    let (warmup, every) = (values.int("warmup-time"), values.int("report-interval"));
    let at: Vec<String> = values.checkpoints().iter().map(ToString::to_string).collect();
    let (checked, seeded, seed) = (values.on("validate"), *seed > 0, seed.cast_signed());
    let forced_s = (*time + grace.unwrap_or_default()).as_secs();
    join_shown(&[
        (true, "Running the test with following options:".into()),
        (true, format!("Number of threads: {threads}")),
        (warmup > 0, format!("Warmup time: {warmup}s")),
        (*rate > 0, format!("Target transaction rate: {rate}/sec")),
        (every > 0, format!("Report intermediate results every {every} second(s)")),
        (!at.is_empty(), format!("Report checkpoint(s) at {} seconds", at.join(", "))),
        (values.on("debug"), "Debug mode enabled.\n".into()),
        (checked && old, "Additional request validation enabled.\n".into()),
        (checked && !old, "Validation checks: on.\n".into()),
        (!seeded && old, "Random number generator seed is 0 and will be ignored\n".into()),
        (!seeded && !old, "Initializing random number generator from current time\n".into()),
        (seeded, format!("Initializing random number generator from seed ({seed}).\n")),
        (grace.is_some(), format!("Forcing shutdown in {forced_s} seconds")),
    ])
}

pub(crate) fn interval(settings: &Settings, part: &Counted, has_driver: bool) -> String {
    let counts = &part.counts;
    let EventCounts { reads, writes, others, events, ignored, reconnects, .. } = *counts;
    let [tps, qps, reads, writes, others, errors, reconnects] =
        [events, counts.statements(), reads, writes, others, ignored, reconnects]
            .map(|count| part.per_second(count));
    let (threads, percentile) = (settings.threads, settings.values.int("percentile"));
    let latency = percentile_ms(&counts.times, percentile);
    if settings.output == OutputVersion::V0_5 {
        format!(
            "threads: {threads}, tps: {tps:.2}, reads: {reads:.2}, writes: {writes:.2}, \
             response time: {latency:.2}ms ({percentile}%), errors: {errors:.2}, \
             reconnects: {reconnects:5.2}"
        )
    } else if !has_driver {
        format!("thds: {threads} eps: {tps:.2} lat (ms,{percentile}%): {latency:.2}")
    } else {
        format!(
            "thds: {threads} tps: {tps:.2} qps: {qps:.2} (r/w/o: {reads:.2}/{writes:.2}/{others:.2}) \
             lat (ms,{percentile}%): {latency:.2} err/s: {errors:.2} reconn/s: {reconnects:.2}"
        )
    }
}

/// The part is up to a checkpoint, or all. A forced shutdown gave up `unfinished` transactions.
pub(crate) fn report(
    settings: &Settings,
    part: &Counted,
    has_driver: bool,
    unfinished: Option<u64>,
) -> String {
    let EventCounts { reads, writes, others, events, ref times, ref by_client, .. } = part.counts;
    let [old, new] = [OutputVersion::V0_5, OutputVersion::V1_1].map(|of| of == settings.output);
    let row = |name: &str, value: String| format!("    {name:<37}{value}");
    let count = |name: &str, count: u64| row(name, count.to_string());
    let rate = |name: &str, count: u64| {
        row(name, format!("{count:<6} ({:.2} per sec.)", part.per_second(count)))
    };
    let (width, unit) = if old { (38, "ms") } else { (40, "") };
    let ms = |name: &str, ms: f64| format!("         {name}{ms:width$.2}{unit}");
    let (all, elapsed) = (part.counts.statements(), format!("{:.4}s", seconds(part.to)));
    let percentile = settings.values.int("percentile");
    let (some, at) = (percentile > 0, percentile_ms(times, percentile));
    let sum = times.sum_ns() as f64 / 1e6;
    let (min, max) = times.extremes_ns().unwrap_or_default();
    let lost = unfinished.unwrap_or_default();
    let given_up = format!("Number of unfinished transactions on forced shutdown: {lost}\n");
    let sql = has_driver || old;
    join_shown(&[
        (!sql, String::new()),
        (sql, format!("{} statistics:", if old { "OLTP test" } else { "SQL" })),
        (sql, "    queries performed:".into()),
        (sql, count("    read:", reads)),
        (sql, count("    write:", writes)),
        (sql, count("    other:", others)),
        (sql, count("    total:", all)),
        (sql, rate("transactions:", events)),
        (old, rate("read/write requests:", reads + writes)),
        (old, rate("other operations:", others)),
        (sql && !old, rate("queries:", all)),
        (sql, rate("ignored errors:", part.counts.ignored)),
        (sql, rate("reconnects:", part.counts.reconnects) + "\n"),
        (unfinished.is_some(), given_up),
        (true, if new { "Throughput:" } else { "General statistics:" }.into()),
        (new, row("events/s (eps):", format!("{:.4}", part.per_second(events)))),
        (true, row(if new { "time elapsed:" } else { "total time:" }, elapsed)),
        (true, count("total number of events:", events)),
        (old, row("total time taken by event execution:", format!("{:.4}s", sum / 1e3))),
        (old, "    response time:".into()),
        (!old, "\nLatency (ms):".into()),
        (true, ms("min:", min as f64 / 1e6)),
        (true, ms("avg:", sum / times.count().max(1) as f64)),
        (true, ms("max:", max as f64 / 1e6)),
        (old && some, format!("         approx. {percentile:3} percentile:{at:19.2}ms")),
        (!old && some, format!("        {percentile:3}th percentile: {at:27.2}")),
        (!old && !some, "         percentile stats:               disabled".into()),
        (!old, ms("sum:", sum)),
        (true, "\nThreads fairness:".into()),
        (true, fairness("events (avg/stddev):", by_client, |share| share.events as f64)),
        (true, fairness("execution time (avg/stddev):", by_client, |share| seconds(share.busy_ns))),
    ])
}

/// Formats the mean over the clients and its population deviation.
fn fairness(name: &str, shares: &[ClientEvents], of: fn(&ClientEvents) -> f64) -> String {
    // Not sum(), which is -0 for an empty slice.
    let mean = |of: &dyn Fn(&ClientEvents) -> f64| {
        shares.iter().map(of).fold(0.0, |sum, one| sum + one) / shares.len().max(1) as f64
    };
    let usual = mean(&of);
    let deviation = mean(&|share| (of(share) - usual).powi(2)).sqrt();
    format!("    {name:<31}{usual:.4}/{deviation:.2}")
}

/// The number of sysbench's latency buckets, whose widths grow by one factor.
const BUCKETS: usize = 1024;
/// Milliseconds of the first and the last bucket.
const RANGE_MS: (f64, f64) = (0.001, 100_000.0);

/// Counts the times in sysbench's buckets, by their centres in milliseconds.
fn buckets(times: &Times) -> Vec<(f64, u64)> {
    // The logarithm of the factor.
    let width = (RANGE_MS.1 / RANGE_MS.0).ln() / (BUCKETS - 1) as f64;
    let centre_ms = |bucket: usize| RANGE_MS.0 * (bucket as f64 * width).exp();
    let mut all: Vec<_> = (0..BUCKETS).map(|bucket| (centre_ms(bucket), 0)).collect();
    for (ns, count) in times.values() {
        let at = ((ns as f64 / 1e6).ln() - RANGE_MS.0.ln()) / width + 0.5;
        all[(at.max(0.0) as usize).min(BUCKETS - 1)].1 += count;
    }
    all
}

/// Returns the percentile as sysbench finds it: the centre of a bucket; 0 without times.
fn percentile_ms(times: &Times, percentile: i32) -> f64 {
    let rank = (times.count() as f64 * f64::from(percentile) / 100.0 + 0.5).floor() as u64;
    let mut seen = 0;
    let found = buckets(times).into_iter().find(|(_, count)| {
        seen += count;
        seen >= rank
    });
    found.filter(|_| percentile > 0).map_or(0.0, |(centre_ms, _)| centre_ms)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Kept, usual, usual_with};
    use super::*;

    fn times(ms: &[f64]) -> Times {
        let mut times = Times::new();
        for ms in ms {
            times.record((ms * 1e6) as u64);
        }
        times
    }

    /// Three transactions of two clients.
    fn counts() -> EventCounts {
        let shares = [(2, 4_000_000), (1, 3_000_000)];
        EventCounts {
            reads: 42,
            writes: 12,
            others: 6,
            events: 3,
            ignored: 1,
            unexpected: 0,
            reconnects: 0,
            times: times(&[1.0, 2.0, 4.0]),
            by_client: shares.map(|(events, busy_ns)| ClientEvents { events, busy_ns }).to_vec(),
        }
    }

    fn part() -> Counted {
        Counted { counts: counts(), from: 2_001_200_000, to: 4_001_200_000 }
    }

    const QUERIES: &str = "    queries performed:
        read:                            42
        write:                           12
        other:                           6
        total:                           60
    transactions:                        3      (1.50 per sec.)
";
    const TROUBLE: &str = "    ignored errors:                      1      (0.50 per sec.)
    reconnects:                          0      (0.00 per sec.)

";
    const LATENCY: &str = "    total number of events:              3

Latency (ms):
         min:                                    1.00
         avg:                                    2.33
         max:                                    4.00
         95th percentile:                        4.03
         sum:                                    7.00
";
    const FAIRNESS: &str = "
Threads fairness:
    events (avg/stddev):           1.5000/0.50
    execution time (avg/stddev):   0.0035/0.00
";

    fn report_text(settings: &Settings, unfinished: Option<u64>) -> String {
        let kept = Kept::default();
        kept.log(3).notice(&report(settings, &part(), true, unfinished));
        kept.text()
    }

    #[test]
    fn report_is_that_of_the_version_when_one_is_chosen() {
        let general = "General statistics:\n    total time:                          4.0012s\n";
        let expected = format!(
            "SQL statistics:\n{QUERIES}    queries:                             60     (30.00 per \
             sec.)\n{TROUBLE}{general}{LATENCY}{FAIRNESS}\n"
        );
        assert_eq!(report_text(&usual(), None), expected);

        let throughput = "Throughput:\n    events/s (eps):                      1.5000\n    time \
                          elapsed:                        4.0012s\n";
        let of_1_1 = Settings { output: OutputVersion::V1_1, ..usual() };
        assert_eq!(report_text(&of_1_1, None), expected.replace(general, throughput));

        let of_0_5 = Settings { output: OutputVersion::V0_5, ..usual() };
        let requests = "    read/write requests:                 54     (27.00 per sec.)
    other operations:                    6      (3.00 per sec.)
";
        let response = "    total number of events:              3
    total time taken by event execution: 0.0070s
    response time:
         min:                                  1.00ms
         avg:                                  2.33ms
         max:                                  4.00ms
         approx.  95 percentile:               4.03ms
";
        let expected = format!(
            "OLTP test statistics:\n{QUERIES}{requests}{TROUBLE}{general}{response}{FAIRNESS}\n"
        );
        assert_eq!(report_text(&of_0_5, None), expected);
    }

    #[test]
    fn report_says_so_when_a_percentile_is_off_or_a_shutdown_was_forced() {
        let off = usual_with("--percentile=0");
        let said = report_text(&off, Some(2));
        assert!(said.contains("         percentile stats:               disabled\n"), "{said}");
        let line = "\n\nNumber of unfinished transactions on forced shutdown: 2\n\nGeneral";
        assert!(said.contains(line), "{said}");
    }

    #[test]
    fn report_holds_zeros_when_nothing_was_done() {
        let text = report(&usual(), &Counted::default(), true, None);
        assert!(["NaN", "inf", "-0"].iter().all(|odd| !text.contains(odd)), "{text}");
        assert!(text.contains("         min:                                    0.00\n"), "{text}");
    }

    #[test]
    fn interval_line_is_that_of_the_version_when_one_is_chosen() {
        let stamped = |version, at_s, rest: &str| {
            let kept = Kept::default();
            kept.log(3).stamped(version, at_s, rest);
            kept.text()
        };
        let line =
            |output| stamped(output, 2, &interval(&Settings { output, ..usual() }, &part(), true));
        assert_eq!(
            line(OutputVersion::V1_0),
            "[ 2s ] thds: 2 tps: 1.50 qps: 30.00 (r/w/o: 21.00/6.00/3.00) lat (ms,95%): 4.03 \
             err/s: 0.50 reconn/s: 0.00\n"
        );
        assert_eq!(line(OutputVersion::V1_1), line(OutputVersion::V1_0));
        assert_eq!(
            line(OutputVersion::V0_5),
            "[   2s] threads: 2, tps: 1.50, reads: 21.00, writes: 6.00, response time: 4.03ms \
             (95%), errors: 0.50, reconnects:  0.00\n"
        );
        assert_eq!(
            stamped(OutputVersion::V1_0, 61, "queue length: 7, concurrency: 2"),
            "[ 61s ] queue length: 7, concurrency: 2\n"
        );
        assert_eq!(
            stamped(OutputVersion::V0_5, 1, "Checkpoint report:"),
            "[   1s] Checkpoint report:\n"
        );
    }

    #[test]
    fn interval_latency_is_zero_when_there_was_no_event() {
        let line = interval(&usual(), &Counted { to: 1_000_000_000, ..Counted::default() }, true);
        assert!(line.contains("lat (ms,95%): 0.00 err/s: 0.00"), "{line}");
    }

    #[test]
    fn options_are_told_in_sysbenchs_order_when_all_are_given() {
        let most = usual_with(
            "--rate=20 --report-interval=1 --report-checkpoints=1,2 --debug --validate \
             --rand-seed=7 --forced-shutdown=3",
        );
        let kept = Kept::default();
        let mut log = kept.log(3);
        log.notice(&header(most.output));
        log.notice(&options(&most));
        log.notice(INITIALIZING);
        log.notice("Threads started!\n");
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!(
            "sysbench 1.0.20 (using loadgen {version})

Running the test with following options:
Number of threads: 2
Target transaction rate: 20/sec
Report intermediate results every 1 second(s)
Report checkpoint(s) at 1, 2 seconds
Debug mode enabled.

Validation checks: on.

Initializing random number generator from seed (7).

Forcing shutdown in 13 seconds

Initializing worker threads...

Threads started!

"
        );
        assert_eq!(kept.text(), expected);
        assert!(options(&usual_with("--rand-seed=-5")).contains(" from seed (-5).\n"));
        let of_0_5 = Settings { output: OutputVersion::V0_5, ..usual() };
        assert_eq!(
            options(&of_0_5),
            "Running the test with following options:\nNumber of threads: 2\nRandom number \
             generator seed is 0 and will be ignored\n\n"
        );
    }

    #[test]
    fn percentile_is_a_bucket_of_sysbenchs_when_ranks_are_rounded() {
        let some = times(&[0.0001, 1.0, 2.0, 4.0, 200_000.0]);
        for (percentile, expected) in
            [(0, 0.0), (1, 0.001), (30, 1.0068), (50, 1.9957), (80, 4.0279), (100, 100_000.0)]
        {
            let found = percentile_ms(&some, percentile);
            assert!((found - expected).abs() <= expected * 1e-4, "{percentile}: {found}");
        }
    }

    #[test]
    fn histogram_rows_are_shown_when_the_verbosity_hides_the_title() {
        let some = times(&[1.0, 1.0, 1.0, 1.0, 2.0, 0.0001]);
        let rows = "       value  ------------- distribution ------------- count
       0.001 |**********                               1
       1.007 |**************************************** 4
       1.996 |**********                               1
";
        let title = "Latency histogram (values are in milliseconds)\n";
        for (verbosity, times, expected) in [
            (3, &some, format!("{title}{rows} \n")),
            (0, &some, rows.to_owned()),
            (3, &times(&[]), format!("{title} \n")),
        ] {
            let kept = Kept::default();
            kept.log(verbosity).histogram(times);
            assert_eq!(kept.text(), expected);
        }
    }

    #[test]
    fn log_swallows_a_message_when_it_repeats() {
        let kept = Kept::default();
        let mut log = kept.log(3);
        for message in ["a", "a", "a", "b", "b"] {
            log.fatal(&[message.to_owned()]);
            log.say(Level::Info, "hidden");
        }
        log.stamped(OutputVersion::V1_0, 1, "line");
        log.stamped(OutputVersion::V1_0, 1, "line");
        log.notice("c");
        let expected = "FATAL: a\n(last message repeated 2 times)\nFATAL: b\n[ 1s ] line\n[ 1s ] line\n(last \
                        message repeated 1 times)\nc\n";
        assert_eq!(kept.text(), expected);
    }

    #[test]
    fn message_loses_its_end_when_it_is_too_long() {
        let kept = Kept::default();
        let mut log = kept.log(0);
        log.say(Level::Fatal, &"x".repeat(4094));
        log.say(Level::Fatal, &"y".repeat(5000));
        let expected = format!("FATAL: {}\nFATAL: {}", "x".repeat(4094), "y".repeat(4095));
        assert_eq!(kept.text(), expected);
    }

    #[test]
    fn counts_of_two_parts_add_up_when_merged() {
        let mut all = EventCounts::default();
        all.merge(&counts());
        all.merge(&counts());
        assert_eq!((all.statements(), all.events, all.ignored, all.times.count()), (120, 6, 2, 6));
        assert_eq!(all.by_client[0], ClientEvents { events: 4, busy_ns: 8_000_000 });
    }
}
