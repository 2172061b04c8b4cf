//! HdrHistogram's interval log: one histogram an interval, as the Java tools (`HistogramLogReader`,
//! `HistogramLogAnalyzer`) and their ports read it. Format version 1.3.
//!
//! ```text
//! START,LENGTH,MAX,HISTOGRAM
//! Tag=service,START,LENGTH,MAX,HISTOGRAM
//! ```
//!
//! Java's `HistogramLogProcessor` takes the lines without a tag, unless it is told one. So the time
//! that a step is about has none where the log is of one step: the response time of an open loop,
//! the service time of a closed one. In a log of several steps each line says which one it is of.
//!
//! Start (from BaseTime) and length in seconds, the largest value in milliseconds, the histogram
//! as V2, deflated, base64, in nanoseconds.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::observe::recorder::{Phase, RecordedInterval};
use crate::observe::times::Times;

/// A log that is being written: all steps of an invocation one after the other.
#[derive(Debug)]
pub struct IntervalLog {
    path: PathBuf,
    out: BufWriter<File>,
    base: Timestamp,
    /// What tags begin with; empty in a log of one step.
    prefix: String,
    paced: bool,
    step_s: f64,
    /// The first thing that went wrong: it must not end a measurement.
    failed: Option<Error>,
}

impl IntervalLog {
    /// Begins a log whose times count from `base`.
    ///
    /// # Errors
    ///
    /// Usage, if the file is there already or cannot be made.
    pub(crate) fn create(path: &Path, base: Timestamp) -> Result<IntervalLog> {
        let file = File::create_new(path).map_err(|e| {
            Error::usage(format!("--interval-log {}: {e}", path.display()))
                .hint("a new file in a directory that is there: nothing is written over")
        })?;
        let mut log = IntervalLog {
            path: path.to_owned(),
            out: BufWriter::new(file),
            base,
            prefix: String::new(),
            paced: false,
            step_s: 0.0,
            failed: None,
        };
        let since_epoch = seconds(base);
        let version = env!("CARGO_PKG_VERSION");
        log.write(&format!(
            "#[Logged with loadgen {version}]\n\
             #[Histogram log format version 1.3]\n\
             #[StartTime: {since_epoch:.3} (seconds since epoch), {base}]\n\
             #[BaseTime: {since_epoch:.3} (seconds since epoch)]\n\
             #[values in nanoseconds, Interval_Max in milliseconds]\n"
        ));
        Ok(log)
    }

    /// A step begins: what it is, whether it is an open loop, and what its tags begin with.
    pub(crate) fn step(&mut self, about: &str, paced: bool, prefix: &str) {
        self.paced = paced;
        prefix.clone_into(&mut self.prefix);
        // A comment is one line.
        let about = crate::error::plain(about).replace('\n', " ");
        self.write(&format!("#[{about}]\n"));
    }

    pub(crate) fn origin(&mut self, started_at: Timestamp) {
        self.step_s = seconds(started_at) - seconds(self.base);
    }

    /// One interval of the timeline. Those of the warm-up are left out, so that the log adds up to
    /// the summary's histograms.
    pub(crate) fn interval(&mut self, interval: &RecordedInterval) {
        if interval.phase == Phase::Warmup {
            return;
        }
        let response = interval.paced.as_ref().map(|paced| &paced.response);
        let main = if self.paced { "response" } else { "service" };
        for (name, times) in [("service", Some(&interval.service)), ("response", response)] {
            let Some(times) = times else { continue };
            let tag = match self.prefix.as_str() {
                "" if name == main => String::new(),
                prefix => format!("Tag={prefix}{name},"),
            };
            self.write(&self.line(&tag, interval, times));
        }
    }

    fn line(&self, tag: &str, interval: &RecordedInterval, times: &Times) -> String {
        let start_s = self.step_s + interval.start as f64 / 1e9;
        let length_s = interval.end.saturating_sub(interval.start) as f64 / 1e9;
        let max_ms = times.max_us().unwrap_or(0.0) / 1e3;
        format!("{tag}{start_s:.3},{length_s:.3},{max_ms:.3},{}\n", times.encoded())
    }

    fn write(&mut self, text: &str) {
        if self.failed.is_none()
            && let Err(e) = self.out.write_all(text.as_bytes())
        {
            self.fail(self.refused(&e));
        }
    }

    fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }

    /// A step ended: everything up to here is in the file.
    ///
    /// # Errors
    ///
    /// Failed: what could not be written, now or before.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let flushed = self.out.flush();
        flushed.map_err(|e| self.refused(&e))
    }

    fn refused(&self, error: &std::io::Error) -> Error {
        Error::failed(format!("--interval-log {}: {error}", self.path.display()))
            .hint("the summary has the timeline all the same; name a file on a disk with more room")
    }
}

fn seconds(at: Timestamp) -> f64 {
    at.as_nanosecond() as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::observe::recorder::{Op, Phases, Recorder};
    use base64::Engine as _;

    /// Two windows of 100 ms after a warm-up, an op each 10 ms that is answered 1 ms later, and
    /// which was due 2 ms before it.
    fn intervals() -> Vec<RecordedInterval> {
        let ms = 1_000_000;
        let phases = Phases {
            window_start: 100 * ms,
            window_end: 300 * ms,
            by_issue: false,
            interval: 100 * ms,
        };
        let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let sink = std::rc::Rc::clone(&seen);
        let mut recorder = Recorder::new(phases, 0, Box::new(move |i| sink.borrow_mut().push(i)));
        for i in 0..30 {
            let issued = i * 10 * ms + 5 * ms;
            let op = Op {
                intended: Some(issued - 2 * ms),
                issued,
                measured: i >= 10,
                completed: issued + ms,
                statements: 1,
                rows: 1,
            };
            recorder.succeeded(op);
        }
        recorder.finish(310 * ms);
        seen.take()
    }

    /// Tag, start, number of values and median (ms) of each line.
    fn lines(path: &Path, base: Timestamp) -> Vec<(String, Duration, u64, u64)> {
        let text = std::fs::read_to_string(path).expect("there");
        let mut lines = Vec::new();
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            match entry.expect("well formed") {
                LogEntry::StartTime(at) | LogEntry::BaseTime(at) => {
                    assert_eq!(at.as_secs(), base.as_second().unsigned_abs());
                }
                LogEntry::Interval(entry) => {
                    let bytes = base64::engine::general_purpose::STANDARD
                        .decode(entry.encoded_histogram())
                        .expect("base64");
                    let histogram: Histogram<u64> =
                        Deserializer::new().deserialize(&mut bytes.as_slice()).expect("V2");
                    let tag = entry.tag().map_or("", |tag| tag.as_str()).to_owned();
                    let median = histogram.value_at_quantile(0.5) / 1_000_000;
                    lines.push((tag, entry.start_timestamp(), histogram.len(), median));
                }
            }
        }
        lines
    }

    #[test]
    fn the_library_of_the_format_reads_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.hlog");
        let base: Timestamp = "2026-11-20T10:00:00Z".parse().expect("an instant");
        let mut log = IntervalLog::create(&path, base).expect("a file");
        assert!(IntervalLog::create(&path, base).is_err(), "nothing is written over");
        log.step("step 2 of 3: point-select\n8 clients", true, "step2.");
        log.origin("2026-11-20T10:01:00.5Z".parse().expect("an instant"));
        for interval in &intervals() {
            log.interval(interval);
        }
        log.flush().expect("written");
        let at = Duration::from_millis;
        let expected = [
            ("step2.service", at(60_600), 10, 1),
            ("step2.response", at(60_600), 10, 3),
            ("step2.service", at(60_700), 10, 1),
            ("step2.response", at(60_700), 10, 3),
            ("step2.service", at(60_800), 0, 0),
        ];
        let expected: Vec<_> =
            expected.into_iter().map(|(tag, at, n, ms)| (tag.to_owned(), at, n, ms)).collect();
        assert_eq!(lines(&path, base), expected);
    }

    #[test]
    fn what_a_single_step_is_about_has_no_tag() {
        let dir = tempfile::tempdir().expect("a directory");
        let base: Timestamp = "2026-11-20T10:00:00Z".parse().expect("an instant");
        for (paced, expected) in
            [(true, [("", 3), ("service", 1)]), (false, [("", 1), ("response", 3)])]
        {
            let path = dir.path().join(paced.to_string());
            let mut log = IntervalLog::create(&path, base).expect("a file");
            log.step("step 1 of 1", paced, "");
            log.origin(base);
            intervals().iter().take(2).for_each(|interval| log.interval(interval));
            log.flush().expect("written");
            let mut told: Vec<_> =
                lines(&path, base).into_iter().map(|(tag, _, _, ms)| (tag, ms)).collect();
            told.sort();
            assert_eq!(told, expected.map(|(tag, ms)| (tag.to_owned(), ms)));
        }
    }
}
