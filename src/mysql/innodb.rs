//! What InnoDB tells outside of `SHOW GLOBAL STATUS`: the adaptive hash index and the history's
//! length. MariaDB has status counters for them, MySQL from 5.6 on a table of metrics, and
//! before that there is the text of `SHOW ENGINE INNODB STATUS`.

use std::collections::BTreeMap;

use super::ask::{Asked, optional, pairs};
use super::session::Session;
use crate::summary::Innodb;

/// A server that has this in its status needs none of the rest.
const IN_STATUS: &str = "Innodb_adaptive_hash_hash_searches";
/// The counters of the metrics and what they are called here.
const METRICS: [(&str, &str); 2] = [
    ("adaptive_hash_searches", "hash_searches"),
    ("adaptive_hash_searches_btree", "other_searches"),
];
/// Levels among the metrics, likewise.
const METRIC_LEVELS: [(&str, &str); 2] = [
    ("trx_rseg_history_len", "history_list_length"),
    ("log_lsn_checkpoint_age", "checkpoint_age_bytes"),
];

/// What one of the two sources says at one instant.
#[derive(Debug, Clone, PartialEq)]
pub struct Inside {
    source: &'static str,
    counters: BTreeMap<&'static str, i64>,
    levels: BTreeMap<&'static str, f64>,
}

/// Asks where the status does not tell; None where it does, or where the account may not ask.
pub(super) async fn read(
    session: &mut Session,
    status: &BTreeMap<String, i64>,
) -> Asked<Option<Inside>> {
    if status.contains_key(IN_STATUS) {
        return Ok(None);
    }
    let sql = "SELECT `NAME`, `COUNT` FROM information_schema.INNODB_METRICS \
               WHERE `STATUS` = 'enabled' AND `NAME` IN ('adaptive_hash_searches', \
               'adaptive_hash_searches_btree', 'trx_rseg_history_len', 'log_lsn_checkpoint_age')";
    let metrics = optional(pairs(session, sql).await)?.and_then(|found| of_metrics(&found));
    if metrics.is_some() {
        return Ok(metrics);
    }
    monitor(session).await
}

/// What the monitor's text says; None where the account may not ask.
pub(super) async fn monitor(session: &mut Session) -> Asked<Option<Inside>> {
    let rows = optional(session.query("SHOW ENGINE INNODB STATUS").await)?.unwrap_or_default();
    let text = rows.into_iter().next().and_then(|row| row.into_iter().flatten().last());
    Ok(text.and_then(|text| of_text(&text)))
}

fn of_metrics(found: &BTreeMap<String, String>) -> Option<Inside> {
    let number = |name: &str| found.get(name)?.parse::<i64>().ok();
    let counters: BTreeMap<_, _> =
        METRICS.iter().filter_map(|(theirs, ours)| Some((*ours, number(theirs)?))).collect();
    let levels = METRIC_LEVELS.iter();
    let levels = levels.filter_map(|(theirs, ours)| Some((*ours, number(theirs)? as f64)));
    (!counters.is_empty()).then(|| Inside { source: "metrics", counters, levels: levels.collect() })
}

/// Lines of the monitor's text, from 5.1 to 5.5 alike and hardly changed since: `%` stands for a
/// number, and the names are what the numbers are called here, empty for none.
const LINES: [(&str, &[&str]); 6] = [
    (
        "% OS file reads, % OS file writes, % OS fsyncs",
        &["os_file_reads", "os_file_writes", "os_fsyncs"],
    ),
    ("Pages read %, created %, written %", &["pages_read", "pages_created", "pages_written"]),
    ("% log i/o's done, % log i/o's/second", &["log_ios", ""]),
    ("% hash searches/s, % non-hash searches/s", &["hash_searches_per_s", "other_searches_per_s"]),
    ("History list length %", &["history_list_length"]),
    ("Per second averages calculated from the last % seconds", &["averaged_s"]),
];
/// Those that are levels; the others count since the server's start.
const LEVELS: [&str; 4] =
    ["hash_searches_per_s", "other_searches_per_s", "history_list_length", "averaged_s"];

fn of_text(text: &str) -> Option<Inside> {
    let mut inside = Inside { source: "text", counters: BTreeMap::new(), levels: BTreeMap::new() };
    for line in text.lines() {
        for (form, names) in &LINES {
            let Some(numbers) = matched(form, line) else { continue };
            for (name, number) in names.iter().zip(numbers).filter(|(name, _)| !name.is_empty()) {
                if LEVELS.contains(name) {
                    inside.levels.insert(name, number);
                } else {
                    inside.counters.insert(name, number as i64);
                }
            }
        }
    }
    let position = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        log_position(line)
    };
    if let Some(written) = position("Log sequence number") {
        inside.counters.insert("log_bytes", written);
        if let Some(checkpoint) = position("Last checkpoint at") {
            inside.levels.insert("checkpoint_age_bytes", written.saturating_sub(checkpoint) as f64);
        }
    }
    (!inside.counters.is_empty()).then_some(inside)
}

/// The numbers of a line that has a form; None if it has not.
fn matched(form: &str, line: &str) -> Option<Vec<f64>> {
    let mut rest = line.trim();
    let mut numbers = Vec::new();
    let mut parts = form.split('%');
    rest = rest.strip_prefix(parts.next()?)?;
    for part in parts {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        numbers.push(number.parse().ok()?);
        rest = after.strip_prefix(part)?;
    }
    Some(numbers)
}

/// A position of the log: one number, or before 5.1's plugin two, the upper half first.
fn log_position(text: &str) -> Option<i64> {
    let numbers: Vec<i64> =
        text.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    match numbers.as_slice() {
        [all] => Some(*all),
        [upper, lower] => upper.checked_mul(1 << 32)?.checked_add(*lower),
        _ => None,
    }
}

impl Inside {
    /// A level by its name here.
    pub(super) fn level(&self, name: &str) -> Option<f64> {
        self.levels.get(name).copied()
    }

    /// A counter by its name here.
    pub(super) fn counter(&self, name: &str) -> Option<i64> {
        self.counters.get(name).copied()
    }

    /// What happened since an earlier reading; None if they come from different sources, or if
    /// the server began to count anew.
    pub(super) fn since(&self, earlier: &Inside) -> Option<Innodb> {
        if self.source != earlier.source {
            return None;
        }
        let mut deltas = BTreeMap::new();
        for (name, after) in &self.counters {
            let Some(before) = earlier.counters.get(name) else { continue };
            let delta = after.checked_sub(*before).filter(|delta| *delta >= 0)?;
            deltas.insert((*name).to_owned(), delta);
        }
        Some(Innodb {
            source: self.source.to_owned(),
            deltas,
            last: self.levels.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// From MySQL 5.5.34, shortened.
    const TEXT: &str = "
=====================================
130402 10:11:12 INNODB MONITOR OUTPUT
=====================================
Per second averages calculated from the last 17 seconds
------------
TRANSACTIONS
------------
Trx id counter 1F03
History list length 312
FILE I/O
--------
1045 OS file reads, 219 OS file writes, 57 OS fsyncs
12.35 reads/s, 16384 avg bytes/read, 0.00 writes/s, 0.00 fsyncs/s
-------------------------------------
INSERT BUFFER AND ADAPTIVE HASH INDEX
-------------------------------------
Hash table size 276671, node heap has 1 buffer(s)
123.45 hash searches/s, 67.89 non-hash searches/s
---
LOG
---
Log sequence number 1600000
Log flushed up to   1600000
Last checkpoint at  1595675
0 pending log writes, 0 pending chkp writes
28 log i/o's done, 0.50 log i/o's/second
----------------------
Pages read 1024, created 3, written 150
0.00 reads/s, 0.00 creates/s, 0.00 writes/s
";

    #[test]
    fn the_monitors_text_is_read() {
        let inside = of_text(TEXT).expect("InnoDB's");
        let counters: Vec<_> = inside.counters.iter().map(|(k, v)| (*k, *v)).collect();
        assert_eq!(
            counters,
            [
                ("log_bytes", 1_600_000),
                ("log_ios", 28),
                ("os_file_reads", 1045),
                ("os_file_writes", 219),
                ("os_fsyncs", 57),
                ("pages_created", 3),
                ("pages_read", 1024),
                ("pages_written", 150),
            ]
        );
        let levels: Vec<_> = inside.levels.iter().map(|(k, v)| (*k, *v)).collect();
        assert_eq!(
            levels,
            [
                ("averaged_s", 17.0),
                ("checkpoint_age_bytes", 4325.0),
                ("hash_searches_per_s", 123.45),
                ("history_list_length", 312.0),
                ("other_searches_per_s", 67.89),
            ]
        );
        assert_eq!(of_text("no monitor"), None);
    }

    #[test]
    fn positions_of_built_in_5_1_have_two_halves() {
        assert_eq!(log_position(" 1 4096"), Some((1 << 32) + 4096));
        assert_eq!(log_position(" 77"), Some(77));
        assert_eq!(log_position(" x"), None);
    }

    #[test]
    fn differences_need_one_source_and_no_restart() {
        let first = of_text(TEXT).expect("InnoDB's");
        let last = of_text(&TEXT.replace("1045 OS", "2045 OS").replace("length 312", "length 9"));
        let last = last.expect("InnoDB's");
        let innodb = last.since(&first).expect("one source");
        assert_eq!((innodb.source.as_str(), innodb.deltas["os_file_reads"]), ("text", 1000));
        assert!((innodb.last["history_list_length"] - 9.0).abs() < 1e-9);
        assert_eq!(first.since(&last), None, "the server was restarted");
        let found = METRICS.iter().map(|(name, _)| ((*name).to_owned(), "5".to_owned()));
        let metrics = of_metrics(&found.collect()).expect("metrics");
        assert_eq!(metrics.counters, BTreeMap::from([("hash_searches", 5), ("other_searches", 5)]));
        assert_eq!(metrics.since(&first), None);
        assert_eq!(of_metrics(&BTreeMap::new()), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(
            written in any::<i64>(), checkpoint in any::<i64>(), text in "\\PC{0,60}", line in 0..LINES.len(),
            digits in "[0-9.]{0,30}",
        ) {
            let form = LINES[line].0.replace('%', &digits);
            let whole = format!(
                "{form}\n{text}\nLog sequence number {written}\nLast checkpoint at  {checkpoint}\n"
            );
            let inside = of_text(&whole).expect("a position");
            prop_assert_eq!(inside.counters.get("log_bytes"), Some(&written));
            let _ = inside.since(&of_text(&whole).expect("a position"));
            let _ = (of_text(&text), log_position(&text));
        }
    }
}
