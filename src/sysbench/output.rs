//! sysbench's text: its lines for what a run measured, and the log that writes them.
//!
//! All but the log is pure. 1.0 and 1.1 differ in the part "General statistics", 0.5 in much.

use std::io::{ErrorKind, Write};

use super::settings::{Ended, OutputVersion, Settings};
use crate::error::{Error, Result};
use crate::observe::{ClientEvents, EventCounts, Times};

/// Levels of messages, by what `--verbosity` shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Fatal,
    /// Alerts and warnings of sysbench's log do not occur here.
    Notice = 3,
    Info,
    Debug,
}

/// Bytes of a message at most, its newline included, its prefix not.
const MESSAGE_MAX: usize = 4095;

/// The log of one command: it swallows a message that is equal to the last one.
pub(crate) struct Log {
    out: Box<dyn Write + Send>,
    verbosity: u8,
    last: String,
    repeated: u32,
    /// Why a write failed first.
    broken: Option<std::io::Error>,
}

impl Log {
    pub(crate) fn new(out: Box<dyn Write + Send>, verbosity: u8) -> Log {
        Log { out, verbosity, last: String::new(), repeated: 0, broken: None }
    }

    /// Writes a message, of one line or several, and ends its last line.
    pub(crate) fn say(&mut self, level: Level, message: &str) {
        if !self.shows(level) {
            return;
        }
        if message == self.last {
            self.repeated += 1;
            return;
        }
        if self.repeated > 0 {
            let line = format!("(last message repeated {} times)\n", self.repeated);
            self.put(line.as_bytes());
        }
        (self.last, self.repeated) = (message.to_owned(), 0);
        let body = format!("{message}\n").into_bytes();
        let cut = &body[..body.len().min(MESSAGE_MAX)];
        let prefix = match level {
            Level::Fatal => "FATAL: ",
            Level::Notice | Level::Info => "",
            Level::Debug => "DEBUG: ",
        };
        self.put(&[prefix.as_bytes(), cut].concat());
    }

    /// Writes the lines of an error.
    pub(crate) fn fatal(&mut self, messages: &[String]) {
        for message in messages {
            self.say(Level::Fatal, message);
        }
    }

    pub(crate) fn notice(&mut self, message: &str) {
        self.say(Level::Notice, message);
    }

    /// Writes a line that begins with the time: such a line may repeat.
    pub(crate) fn stamped(&mut self, line: &str) {
        if self.shows(Level::Notice) {
            self.put(format!("{line}\n").as_bytes());
        }
    }

    /// Writes a line of a script, whatever the verbosity.
    pub(crate) fn plain(&mut self, line: &str) {
        self.put(format!("{line}\n").as_bytes());
    }

    /// Writes the histogram. Its title obeys the verbosity, its rows do not.
    pub(crate) fn histogram(&mut self, times: &Times) {
        let rows = histogram(times);
        if !rows.is_empty() {
            self.notice("Latency histogram (values are in milliseconds)");
            self.put(rows.as_bytes());
            self.notice(" ");
        }
    }

    fn shows(&self, level: Level) -> bool {
        level as u8 <= self.verbosity
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Gives the exit status of a command whose log could not be written: of a closed pipe that of the
    /// signal, of which a shell says nothing.
    pub(crate) fn written(self, status: Ended) -> Result<Ended> {
        match self.broken {
            None => Ok(status),
            Some(e) if e.kind() == ErrorKind::BrokenPipe => Ok(141),
            Some(e) => Err(Error::failed(format!("standard output: {e}"))),
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.broken.is_none() {
            self.broken = self.out.write_all(bytes).and_then(|()| self.out.flush()).err();
        }
    }
}

/// When the counts of a report were taken.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Span {
    /// Seconds since the start.
    pub total_s: f64,
    /// Seconds since the start or the last checkpoint.
    pub part_s: f64,
    /// Transactions that a forced shutdown gave up.
    pub unfinished: Option<u64>,
}

pub(crate) const INITIALIZING: &str = "Initializing worker threads...\n";
pub(crate) const STARTED: &str = "Threads started!\n";
pub(crate) const TIME_LIMIT: &str = "Time limit exceeded, exiting...";
pub(crate) const EVENT_LIMIT: &str = "Event limit exceeded, exiting...";
pub(crate) const DONE: &str = "Done.\n";
/// Fatal, where the time of a forced shutdown is over.
pub(crate) const FORCED: &str = "The --max-time limit has expired, forcing shutdown...";
/// Fatal, where too many events wait for a client.
pub(crate) const QUEUE_FULL: &str = "The event queue is full. This means the worker threads are \
                                     unable to keep up with the specified event generation rate";

/// Makes the first message of every command.
pub(crate) fn header(version: OutputVersion) -> String {
    let of_loadgen = concat!("(using loadgen ", env!("CARGO_PKG_VERSION"), ")\n");
    match version {
        OutputVersion::V0_5 => "sysbench 0.5:  multi-threaded system evaluation benchmark\n".into(),
        OutputVersion::V1_0 => format!("sysbench 1.0.20 {of_loadgen}"),
        OutputVersion::V1_1 => format!("sysbench 1.1.0 {of_loadgen}"),
    }
}

/// Makes the message that tells the options of a run.
pub(crate) fn options(settings: &Settings) -> String {
    let Settings { threads, rate, seed, values, .. } = settings;
    let old = settings.output == OutputVersion::V0_5;
    let (warmup, every) = (values.int("warmup-time"), values.int("report-interval"));
    let at: Vec<String> = values.checkpoints().iter().map(ToString::to_string).collect();
    let validation =
        if old { "Additional request validation enabled." } else { "Validation checks: on." };
    let generator = match (seed, old) {
        (0, true) => "Random number generator seed is 0 and will be ignored\n".to_owned(),
        (0, false) => "Initializing random number generator from current time\n".to_owned(),
        _ => format!("Initializing random number generator from seed ({seed}).\n"),
    };
    let forced = settings.forced_shutdown.map(|grace| (settings.time + grace).as_secs());
    let lines = [
        (true, "Running the test with following options:".to_owned()),
        (true, format!("Number of threads: {threads}")),
        (warmup > 0, format!("Warmup time: {warmup}s")),
        (*rate > 0, format!("Target transaction rate: {rate}/sec")),
        (every > 0, format!("Report intermediate results every {every} second(s)")),
        (!at.is_empty(), format!("Report checkpoint(s) at {} seconds", at.join(", "))),
        (values.on("debug"), "Debug mode enabled.\n".to_owned()),
        (values.on("validate"), format!("{validation}\n")),
        (true, generator),
        (forced.is_some(), format!("Forcing shutdown in {} seconds", forced.unwrap_or(0))),
    ];
    lines.into_iter().filter(|(shown, _)| *shown).map(|(_, line)| line + "\n").collect()
}

/// Makes an interval's line, `at_s` seconds after the start and `length_s` after the last one.
pub(crate) fn interval(
    settings: &Settings,
    at_s: f64,
    length_s: f64,
    counts: &EventCounts,
) -> String {
    let rate = |count: u64| per_second(count, length_s);
    let (tps, qps) = (rate(counts.events), rate(counts.statements()));
    let (reads, writes, others) = (rate(counts.reads), rate(counts.writes), rate(counts.others));
    let (errors, reconnects) = (rate(counts.ignored), rate(counts.reconnects));
    let (threads, percentile) = (settings.threads, settings.values.int("percentile"));
    let latency = percentile_ms(&counts.times, percentile);
    let rest = if settings.output == OutputVersion::V0_5 {
        format!(
            "threads: {threads}, tps: {tps:.2}, reads: {reads:.2}, writes: {writes:.2}, \
             response time: {latency:.2}ms ({percentile}%), errors: {errors:.2}, \
             reconnects: {reconnects:5.2}"
        )
    } else {
        format!(
            "thds: {threads} tps: {tps:4.2} qps: {qps:4.2} (r/w/o: \
             {reads:4.2}/{writes:4.2}/{others:4.2}) lat (ms,{percentile}%): {latency:4.2} \
             err/s: {errors:4.2} reconn/s: {reconnects:4.2}"
        )
    };
    stamped(settings.output, at_s, &rest)
}

/// Makes a line of an instant.
pub(crate) fn stamped(version: OutputVersion, at_s: f64, rest: &str) -> String {
    match version {
        OutputVersion::V0_5 => format!("[{at_s:4.0}s] {rest}"),
        OutputVersion::V1_0 | OutputVersion::V1_1 => format!("[ {at_s:.0}s ] {rest}"),
    }
}

/// Makes the report of a run, or of its part up to a checkpoint.
pub(crate) fn report(settings: &Settings, counts: &EventCounts, span: &Span) -> String {
    let EventCounts { reads, writes, others, events, ignored, reconnects, .. } = *counts;
    let Span { total_s, part_s, unfinished } = *span;
    let (old, total) = (settings.output == OutputVersion::V0_5, counts.statements());
    let rated = |name: &str, count: u64| {
        format!("    {name:<37}{count:<6} ({:.2} per sec.)\n", per_second(count, part_s))
    };
    let title = if old { "OLTP test statistics:" } else { "SQL statistics:" };
    let mut out = format!("{title}\n    queries performed:\n");
    for (name, count) in
        [("read:", reads), ("write:", writes), ("other:", others), ("total:", total)]
    {
        out += &format!("        {name:<33}{count}\n");
    }
    out += &rated("transactions:", events);
    if old {
        out += &rated("read/write requests:", reads + writes);
        out += &rated("other operations:", others);
    } else {
        out += &rated("queries:", total);
    }
    out += &(rated("ignored errors:", ignored) + &rated("reconnects:", reconnects) + "\n");
    if let Some(count) = unfinished {
        out += &format!("Number of unfinished transactions on forced shutdown: {count}\n\n");
    }
    if settings.output == OutputVersion::V1_1 {
        let rate = per_second(events, part_s);
        out += &format!("Throughput:\n    {:<37}{rate:.4}\n", "events/s (eps):");
        out += &format!("    {:<37}{total_s:.4}s\n", "time elapsed:");
    } else {
        out += &format!("General statistics:\n    {:<37}{total_s:.4}s\n", "total time:");
    }
    out += &format!("    {:<37}{events}\n", "total number of events:");
    out + &latency(settings, &counts.times) + &fairness(&counts.by_client)
}

fn latency(settings: &Settings, times: &Times) -> String {
    let percentile = settings.values.int("percentile");
    let (old, value) = (settings.output == OutputVersion::V0_5, percentile_ms(times, percentile));
    let sum = times.sum_ns() as f64 / 1e6;
    let (min, max) = times.extremes_ns().unwrap_or_default();
    let [min, max] = [min, max].map(|ns| ns as f64 / 1e6);
    let avg = sum / times.count().max(1) as f64;
    let mut out = if old {
        let seconds = sum / 1e3;
        format!("    total time taken by event execution: {seconds:.4}s\n    response time:\n")
    } else {
        "\nLatency (ms):\n".to_owned()
    };
    let (width, unit) = if old { (38, "ms") } else { (40, "") };
    for (name, value) in [("min:", min), ("avg:", avg), ("max:", max)] {
        out += &format!("         {name}{value:width$.2}{unit}\n");
    }
    out += &match (old, percentile) {
        (true, 0) => String::new(),
        (true, _) => format!("         approx. {percentile:3} percentile:{value:19.2}ms\n"),
        (false, 0) => "         percentile stats:               disabled\n".to_owned(),
        (false, _) => format!("        {percentile:3}th percentile: {value:27.2}\n"),
    };
    if old { out } else { out + &format!("         sum: {sum:39.2}\n") }
}

fn fairness(shares: &[ClientEvents]) -> String {
    let (events, events_deviation) = spread(shares, |share| share.events as f64);
    let (busy, busy_deviation) = spread(shares, |share| share.busy_ns as f64 / 1e9);
    format!(
        "\nThreads fairness:\n    events (avg/stddev):           {events:.4}/{events_deviation:.2}\n    \
         execution time (avg/stddev):   {busy:.4}/{busy_deviation:.2}\n"
    )
}

/// Gives the mean over the clients, and the deviation of this population.
fn spread(shares: &[ClientEvents], of: impl Fn(&ClientEvents) -> f64) -> (f64, f64) {
    let n = shares.len().max(1) as f64;
    let mean = shares.iter().map(&of).sum::<f64>() / n;
    let squares: f64 = shares.iter().map(|share| (of(share) - mean).powi(2)).sum();
    (mean, (squares / n).sqrt())
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// sysbench counts latencies in so many buckets, whose widths grow by one factor.
const BUCKETS: usize = 1024;
/// Milliseconds of the first and of the last bucket.
const RANGE_MS: (f64, f64) = (0.001, 100_000.0);
/// Characters of the longest bar.
const BAR: u64 = 40;

/// Logarithm of the factor between two buckets.
fn width() -> f64 {
    (RANGE_MS.1 / RANGE_MS.0).ln() / (BUCKETS - 1) as f64
}

/// Counts the times in sysbench's buckets.
fn buckets(times: &Times) -> Vec<u64> {
    let (mut counts, width) = (vec![0; BUCKETS], width());
    for (ns, count) in times.values() {
        let at = ((ns as f64 / 1e6).ln() - RANGE_MS.0.ln()) / width + 0.5;
        counts[(at.max(0.0) as usize).min(BUCKETS - 1)] += count;
    }
    counts
}

/// Gives the centre of a bucket.
fn centre_ms(bucket: usize) -> f64 {
    RANGE_MS.0 * (bucket as f64 * width()).exp()
}

/// Gives the percentile as sysbench finds it: the centre of a bucket; 0 where there is none.
fn percentile_ms(times: &Times, percentile: i32) -> f64 {
    if percentile == 0 || times.count() == 0 {
        return 0.0;
    }
    let rank = (times.count() as f64 * f64::from(percentile) / 100.0 + 0.5).floor() as u64;
    let mut seen = 0;
    let bucket = buckets(times).into_iter().position(|count| {
        seen += count;
        seen >= rank
    });
    centre_ms(bucket.expect("no rank is above the count"))
}

/// Makes the rows of the histogram, each with its line's end; none where nothing was counted.
fn histogram(times: &Times) -> String {
    let counts = buckets(times);
    let largest = counts.iter().copied().max().unwrap_or_default();
    let mut out = String::new();
    for (bucket, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
        if out.is_empty() {
            out.push_str("       value  ------------- distribution ------------- count\n");
        }
        let bar = "*".repeat((BAR as f64 * count as f64 / largest as f64).round() as usize);
        out += &format!("{:12.3} |{bar:<40} {count}\n", centre_ms(bucket));
    }
    out
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

    const SPAN: Span = Span { total_s: 4.0012, part_s: 2.0, unfinished: None };

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

    fn said(settings: &Settings, span: &Span) -> String {
        let kept = Kept::default();
        kept.log(3).notice(&report(settings, &counts(), span));
        kept.text()
    }

    #[test]
    fn report_is_that_of_the_version_when_one_is_chosen() {
        let general = "General statistics:\n    total time:                          4.0012s\n";
        let expected = format!(
            "SQL statistics:\n{QUERIES}    queries:                             60     (30.00 per \
             sec.)\n{TROUBLE}{general}{LATENCY}{FAIRNESS}\n"
        );
        assert_eq!(said(&usual(), &SPAN), expected);

        let throughput = "Throughput:\n    events/s (eps):                      1.5000\n    time \
                          elapsed:                        4.0012s\n";
        let of_1_1 = Settings { output: OutputVersion::V1_1, ..usual() };
        assert_eq!(said(&of_1_1, &SPAN), expected.replace(general, throughput));

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
        assert_eq!(said(&of_0_5, &SPAN), expected);
    }

    #[test]
    fn report_says_so_when_a_percentile_is_off_or_a_shutdown_was_forced() {
        let forced = Span { unfinished: Some(2), ..SPAN };
        let off = usual_with("--percentile=0");
        let said = said(&off, &forced);
        assert!(said.contains("         percentile stats:               disabled\n"), "{said}");
        let line = "\n\nNumber of unfinished transactions on forced shutdown: 2\n\nGeneral";
        assert!(said.contains(line), "{said}");
    }

    #[test]
    fn report_holds_zeros_when_nothing_was_done() {
        let text = report(&usual(), &EventCounts::default(), &Span::default());
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert!(text.contains("         min:                                    0.00\n"), "{text}");
    }

    #[test]
    fn interval_line_is_that_of_the_version_when_one_is_chosen() {
        let line = |output| interval(&Settings { output, ..usual() }, 2.0004, 2.0, &counts());
        assert_eq!(
            line(OutputVersion::V1_0),
            "[ 2s ] thds: 2 tps: 1.50 qps: 30.00 (r/w/o: 21.00/6.00/3.00) lat (ms,95%): 4.03 \
             err/s: 0.50 reconn/s: 0.00"
        );
        assert_eq!(line(OutputVersion::V1_1), line(OutputVersion::V1_0));
        assert_eq!(
            line(OutputVersion::V0_5),
            "[   2s] threads: 2, tps: 1.50, reads: 21.00, writes: 6.00, response time: 4.03ms \
             (95%), errors: 0.50, reconnects:  0.00"
        );
        assert_eq!(
            stamped(OutputVersion::V1_0, 61.0, "queue length: 7, concurrency: 2"),
            "[ 61s ] queue length: 7, concurrency: 2"
        );
        assert_eq!(
            stamped(OutputVersion::V0_5, 1.0, "Checkpoint report:"),
            "[   1s] Checkpoint report:"
        );
    }

    #[test]
    fn interval_latency_is_zero_when_there_was_no_event() {
        let line = interval(&usual(), 1.0, 1.0, &EventCounts::default());
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
        log.notice(STARTED);
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
        for (verbosity, expected) in [(3, format!("{title}{rows} \n")), (0, rows.to_owned())] {
            let kept = Kept::default();
            kept.log(verbosity).histogram(&some);
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
        log.stamped("[ 1s ]");
        log.stamped("[ 1s ]");
        log.notice("c");
        let expected = "FATAL: a\n(last message repeated 2 times)\nFATAL: b\n[ 1s ]\n[ 1s ]\n(last \
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
