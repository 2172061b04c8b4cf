//! The server's counters and levels, at the window's edges and at one instant.
//!
//! MariaDB's status has InnoDB's adaptive hash index and history. MySQL has metrics from 5.6 on, and
//! before that the text of `SHOW ENGINE INNODB STATUS`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::control::{Asked, Numbers, amount, numeric, optional, pairs, query_single};
use super::facts::{Innodb, Levels, SINCE_FLUSH, Status};
use super::session::Session;
use super::target::quoted_text;
use crate::observe::seconds_from;

/// Levels, not counters: the last value counts, not the difference.
const GAUGES: [&str; 13] = [
    "Innodb_buffer_pool_bytes_data",
    "Innodb_buffer_pool_bytes_dirty",
    "Innodb_buffer_pool_pages_data",
    "Innodb_buffer_pool_pages_dirty",
    "Innodb_buffer_pool_pages_free",
    "Innodb_buffer_pool_pages_total",
    "Innodb_checkpoint_age",
    "Innodb_checkpoint_max_age",
    "Innodb_history_list_length",
    "Innodb_page_size",
    "Prepared_stmt_count",
    "Threads_connected",
    "Threads_running",
];

/// The error of `Uptime`: whole seconds, by a clock that is set now and then.
const UPTIME_OFF: Duration = Duration::from_secs(2);

/// `SHOW GLOBAL STATUS` at one instant, and InnoDB's values from elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub values: Numbers,
    pub innodb: Option<Inside>,
    /// The values again, and their instant, where reading `innodb` was counted itself: later counts
    /// are none of loadgen's.
    pub again: Option<(Numbers, Instant)>,
    /// Counts of the reading's own statement; empty while they are unknown.
    pub own: Numbers,
    pub at: Instant,
}

/// Reads the counters. The first of two readings is in their difference: [`own_counts`] tells by how much.
pub async fn read(session: &mut Session) -> Asked<Reading> {
    let (values, at) = counters(session).await?;
    let innodb = read_inside(session, &values).await?;
    let again = if innodb.is_some() { Some(counters(session).await?) } else { None };
    Ok(Reading { values, innodb, again, own: Numbers::new(), at })
}

/// Counters that a statement moves by its work, whenever it comes.
const BY_STATEMENT: [&str; 8] =
    ["Com_", "Created_tmp_", "Handler_", "Queries", "Questions", "Rows_", "Select_", "Table_"];
/// Attempts to see one reading alone.
const OWN_ATTEMPTS: usize = 5;

/// The clients are at rest; nothing if others work meanwhile, whose amounts are not the same twice.
pub async fn own_counts(session: &mut Session) -> Asked<Numbers> {
    let (mut before, _) = counters(session).await?;
    let mut last = Numbers::new();
    for _ in 0..OWN_ATTEMPTS {
        let (after, _) = counters(session).await?;
        let added = |(name, after): (&String, &i64)| {
            let by_statement = BY_STATEMENT.iter().any(|prefix| name.starts_with(prefix));
            let added = after.checked_sub(*before.get(name)?)?;
            (by_statement && added > 0).then(|| (name.clone(), added))
        };
        let own: Numbers = after.iter().filter_map(added).collect();
        if own.get("Questions") == Some(&1) && own == last {
            return Ok(own);
        }
        (before, last) = (after, own);
    }
    Ok(Numbers::new())
}

async fn counters(session: &mut Session) -> Asked<(Numbers, Instant)> {
    let start = Instant::now();
    let texts = pairs(session, "SHOW GLOBAL STATUS").await?;
    Ok((numeric(&texts), start + start.elapsed() / 2))
}

/// Returns the server's age at the second reading, if it was started after the first.
fn restart_age(first: &Reading, last: &Reading) -> Option<Duration> {
    let uptime = |reading: &Reading| amount(&reading.values, "Uptime").map(Duration::from_secs);
    let (before, after) = uptime(first).zip(uptime(last))?;
    let between = last.at.saturating_duration_since(first.at);
    // One that is older than this was not started meanwhile: its clock was set back, or its machine paused.
    let young = after + UPTIME_OFF < before + between && after <= between + UPTIME_OFF;
    // FLUSH STATUS does not reset this one.
    let connections = |reading: &Reading| reading.values.get("Connections").copied();
    let fewer = connections(first).zip(connections(last)).is_some_and(|(one, other)| other < one);
    (young || fewer).then_some(after)
}

/// Counts since a restart. A negative one comes of FLUSH STATUS or a level. Leaves out what only one reading has.
pub fn delta(first: &Reading, last: &Reading, window_start: Instant) -> Status {
    let (before, first_at) =
        first.again.as_ref().map_or((&first.values, first.at), |(values, at)| (values, *at));
    let restarted = restart_age(first, last);
    let delta = |(name, after): (&String, &i64)| {
        let before = before.get(name)?;
        let own = last.own.get(name).copied().unwrap_or(0);
        let since = if restarted.is_some() { 0 } else { before.checked_add(own)? };
        let difference = after.checked_sub(since)?;
        // Kept even if unchanged: it dates FLUSH STATUS.
        (difference != 0 || name == SINCE_FLUSH).then(|| (name.clone().into(), difference))
    };
    let from_start = |at: Instant| seconds_from(window_start, at);
    let gauge = |name: &&str| Some(((*name).to_owned().into(), *last.values.get(*name)?));
    // A restarted server counts from 0: a difference tells nothing, also where it is positive.
    let inside = first.innodb.as_ref().zip(last.innodb.as_ref()).filter(|_| restarted.is_none());
    Status {
        first_s: from_start(first_at),
        last_s: from_start(last.at),
        restarted_s: restarted.map(|ago| from_start(last.at) - ago.as_secs_f64()),
        deltas: last.values.iter().filter_map(delta).collect(),
        gauges: GAUGES.iter().filter_map(gauge).collect(),
        innodb: inside.and_then(|(first, last)| last.since(first)),
    }
}

/// InnoDB's values from outside the status, by their names in summaries.
#[derive(Debug, Clone, PartialEq)]
pub struct Inside {
    source: &'static str,
    values: BTreeMap<&'static str, f64>,
}

/// A server with this in its status needs none of the rest.
const IN_STATUS: &str = "Innodb_adaptive_hash_hash_searches";
const METRICS: [(&str, &str); 4] = [
    ("adaptive_hash_searches", "hash_searches"),
    ("adaptive_hash_searches_btree", "other_searches"),
    ("trx_rseg_history_len", "history_list_length"),
    ("log_lsn_checkpoint_age", "checkpoint_age_bytes"),
];
/// Lines of the monitor's text, hardly changed since 5.1: `%` is a number; an empty name skips it.
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
/// The levels among these; the others count since the server's start.
const LEVELS: [&str; 5] = [
    "averaged_s",
    "checkpoint_age_bytes",
    "hash_searches_per_s",
    "history_list_length",
    "other_searches_per_s",
];

/// Reads InnoDB's values; None where the status has them, or where the account may not ask.
async fn read_inside(session: &mut Session, status: &Numbers) -> Asked<Option<Inside>> {
    if status.contains_key(IN_STATUS) {
        return Ok(None);
    }
    let names = METRICS.map(|(name, _)| quoted_text(name)).join(", ");
    let sql = format!(
        "SELECT `NAME`, `COUNT` FROM information_schema.INNODB_METRICS \
         WHERE `STATUS` = 'enabled' AND `NAME` IN ({names})"
    );
    let found = optional(pairs(session, &sql).await)?;
    match found.and_then(|found| Inside::from_metrics(&numeric(&found))) {
        Some(metrics) => Ok(Some(metrics)),
        None => read_monitor(session).await,
    }
}

async fn read_monitor(session: &mut Session) -> Asked<Option<Inside>> {
    let rows = optional(session.query("SHOW ENGINE INNODB STATUS").await)?;
    let row = rows.and_then(|rows| rows.into_iter().next());
    Ok(row
        .and_then(|row| row.into_iter().flatten().last())
        .and_then(|text| Inside::from_text(&text)))
}

impl Inside {
    /// Returns None without a counter: InnoDB did not answer.
    fn from_values(source: &'static str, values: BTreeMap<&'static str, f64>) -> Option<Inside> {
        let counts = values.keys().any(|name| !LEVELS.contains(name));
        counts.then_some(Inside { source, values })
    }

    fn from_metrics(found: &Numbers) -> Option<Inside> {
        let value = |(theirs, ours)| Some((ours, *found.get(theirs)? as f64));
        Inside::from_values("metrics", METRICS.into_iter().filter_map(value).collect())
    }

    fn from_text(text: &str) -> Option<Inside> {
        let mut values = BTreeMap::new();
        for line in text.lines() {
            let of_line = |(form, names): &(&str, _)| Some((*names, matched(form, line)?));
            let (names, numbers): (&[_], _) = LINES.iter().find_map(of_line).unwrap_or_default();
            let named = names.iter().copied().zip(numbers);
            for (name, number) in named.filter(|(name, _)| !name.is_empty()) {
                // The instances of a buffer pool follow their sum.
                values.entry(name).or_insert(number);
            }
        }
        let position = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        if let Some(written) = position("Log sequence number").and_then(log_position) {
            values.insert("log_bytes", written);
            let checkpoint = position("Last checkpoint at").and_then(log_position);
            values.extend(checkpoint.map(|at| ("checkpoint_age_bytes", written - at)));
        }
        Inside::from_values("text", values)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.values.get(name).map(|number| *number as u64)
    }

    /// Subtracts an earlier reading; None if the sources differ, or if the server began to count anew.
    fn since(&self, earlier: &Inside) -> Option<Innodb> {
        let mut since = Innodb { source: self.source.to_owned(), ..Innodb::default() };
        for (name, after) in &self.values {
            if LEVELS.contains(name) {
                since.last.insert((*name).to_owned(), *after);
            } else if let Some(before) = earlier.values.get(name) {
                since.deltas.insert((*name).to_owned(), (after - before) as i64);
            }
        }
        let sound = self.source == earlier.source && since.deltas.values().all(|delta| *delta >= 0);
        sound.then_some(since)
    }
}

fn matched(form: &str, line: &str) -> Option<Vec<f64>> {
    let mut parts = form.split('%');
    let mut rest = line.trim().strip_prefix(parts.next()?)?;
    let mut numbers = Vec::new();
    for part in parts {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        numbers.push(number.parse().ok()?);
        rest = after.strip_prefix(part)?;
    }
    Some(numbers)
}

/// Reads a log position: one number, or before 5.1's plugin two, the upper half first.
fn log_position(text: &str) -> Option<f64> {
    let numbers: Result<Vec<i64>, _> = text.split_ascii_whitespace().map(str::parse).collect();
    match numbers.ok()?.as_slice() {
        [all] => Some(*all as f64),
        [upper, lower] => Some(*upper as f64 * 2_f64.powi(32) + *lower as f64),
        _ => None,
    }
}

/// Too costly within a window. `table` is the first one used.
pub(crate) async fn read_levels(session: &mut Session, table: &str) -> Asked<Levels> {
    let texts = pairs(session, "SHOW GLOBAL STATUS").await?;
    let numbers = numeric(&texts);
    let number = |name: &str| amount(&numbers, name);
    let metrics = read_inside(session, &numbers).await?;
    // Many servers have the history as a metric, but the checkpoint in the text only.
    let has_checkpoint =
        metrics.as_ref().is_some_and(|it| it.values.contains_key("checkpoint_age_bytes"));
    let has_checkpoint = has_checkpoint || number("Innodb_checkpoint_age").is_some();
    let text = if has_checkpoint { None } else { read_monitor(session).await? };
    let level = |name: &str, inner: &str| {
        let inside = || [&metrics, &text].into_iter().flatten().find_map(|it| it.number(inner));
        number(name).or_else(inside)
    };
    let pool_load =
        texts.get("Innodb_buffer_pool_load_status").filter(|text| !text.is_empty()).cloned();
    let loaded = pool_load.as_ref().is_some_and(|load| load.contains("ompleted"));
    Ok(Levels {
        uptime_s: number("Uptime"),
        pool_pages: number("Innodb_buffer_pool_pages_total"),
        pool_free_pages: number("Innodb_buffer_pool_pages_free"),
        pool_dirty_pages: number("Innodb_buffer_pool_pages_dirty"),
        history_list_length: level("Innodb_history_list_length", "history_list_length"),
        checkpoint_age_bytes: level("Innodb_checkpoint_age", "checkpoint_age_bytes"),
        checkpoint_age_max_bytes: number("Innodb_checkpoint_max_age"),
        tables_age_s: if loaded { table_age(session, table).await? } else { None },
        pool_load,
    })
}

async fn table_age(session: &mut Session, table: &str) -> Asked<Option<u64>> {
    let sql = format!(
        "SELECT TIMESTAMPDIFF(SECOND, CREATE_TIME, NOW()) FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {}",
        quoted_text(table)
    );
    let age = optional(query_single(session, &sql).await)?.flatten();
    Ok(age.and_then(|text| text.parse().ok()))
}

/// Reads the pages that the buffer pool read from storage and its free ones; cheap enough within a window.
pub(crate) async fn read_pool(session: &mut Session) -> Asked<[Option<u64>; 2]> {
    let found = pairs(session, "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool\\_%'").await?;
    let numbers = numeric(&found);
    Ok(["Innodb_buffer_pool_reads", "Innodb_buffer_pool_pages_free"]
        .map(|name| amount(&numbers, name)))
}

/// Reads the searches that the adaptive hash index answered and did not answer, since the server's start.
pub(crate) async fn read_searches(session: &mut Session) -> Asked<Option<(u64, u64)>> {
    let found = pairs(session, "SHOW GLOBAL STATUS LIKE 'Innodb\\_adaptive\\_hash\\_%'").await?;
    let numbers = numeric(&found);
    let inside = read_inside(session, &numbers).await?;
    let count =
        |name: &str, inner: &str| amount(&numbers, name).or_else(|| inside.as_ref()?.number(inner));
    Ok(count(IN_STATUS, "hash_searches")
        .zip(count("Innodb_adaptive_hash_non_hash_searches", "other_searches")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reading(at: Instant, values: &[(&str, &str)]) -> Reading {
        let texts = values.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Reading { values: numeric(&texts), innodb: None, again: None, own: Numbers::new(), at }
    }

    #[test]
    fn after_a_restart_counts_are_those_since_then() {
        let start = Instant::now() + Duration::from_secs(100);
        let at = |s: u64, uptime: &str, questions: &str| {
            reading(
                start + Duration::from_secs(s),
                &[("Uptime", uptime), ("Questions", questions), ("Com_select", "4")],
            )
        };
        let first = at(0, "5000", "900");
        let status = delta(&first, &at(30, "12", "1200"), start);
        assert_eq!(status.restarted_s, Some(18.0));
        let deltas: Vec<_> = status.deltas.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        assert_eq!(deltas, [("Com_select", 4), ("Questions", 1200), ("Uptime", 12)]);
        // It was young before, too.
        let young = at(0, "3", "900");
        assert!(delta(&young, &at(30, "12", "1200"), start).restarted_s.is_some());
        let mut counting = at(0, "1", "900");
        counting.values.insert("Connections".to_owned(), 40);
        let mut fewer = at(30, "30", "1200");
        fewer.values.insert("Connections".to_owned(), 26);
        assert_eq!(delta(&counting, &fewer, start).restarted_s, Some(0.0), "as soon as it ran");
        assert_eq!(delta(&first, &at(30, "5030", "1200"), start).restarted_s, None);
        let set_back = delta(&first, &at(30, "4990", "1200"), start);
        assert_eq!((set_back.restarted_s, set_back.deltas["Questions"]), (None, 300));
        assert_eq!(delta(&young, &at(30, "32", "1200"), start).restarted_s, None, "it rounds down");
        let with_searches = |reading: Reading, searches: f64| {
            let values = BTreeMap::from([("hash_searches", searches)]);
            Reading { innodb: Some(Inside { source: "metrics", values }), ..reading }
        };
        let few = with_searches(first.clone(), 1.0);
        let innodb =
            |uptime: &str| delta(&few, &with_searches(at(30, uptime, "1200"), 9.0), start).innodb;
        assert_eq!(innodb("12"), None);
        assert_eq!(innodb("5030").map(|it| it.deltas["hash_searches"]), Some(8));
        // FLUSH STATUS resets counters, and not the server's age.
        let flushed = delta(&first, &at(30, "5030", "10"), start);
        assert_eq!((flushed.restarted_s, flushed.deltas["Questions"]), (None, -890));
    }

    #[test]
    fn deltas_keep_what_changed_with_its_sign() {
        let start = Instant::now() + Duration::from_secs(10);
        let first = reading(
            start.checked_sub(Duration::from_millis(500)).expect("in range"),
            &[
                ("Questions", "100"),
                ("Com_select", "7"),
                ("Slave_open_temp_tables", "50"),
                ("Ssl_cipher", ""),
                ("Last_query_cost", "1.5"),
                ("Gone", "1"),
                ("Odd", "-9223372036854775808"),
            ],
        );
        let last = reading(
            start + Duration::from_secs(2),
            &[
                ("Questions", "9100"),
                ("Com_select", "7"),
                ("Slave_open_temp_tables", "2"),
                ("Ssl_cipher", "x"),
                ("Last_query_cost", "2.5"),
                ("New", "1"),
                ("Odd", "9223372036854775807"),
                ("Innodb_buffer_pool_pages_free", "17"),
            ],
        );
        let mut twice = first.clone();
        let again = BTreeMap::from([("Questions".to_owned(), 103)]);
        twice.again = Some((again, start));
        let later = delta(&twice, &last, start);
        assert_eq!(later.deltas.get("Questions"), Some(&8997), "what asking cost is left out");
        assert!(later.first_s.abs() < 1e-9);
        let status = delta(&first, &last, start);
        let deltas: Vec<_> = status.deltas.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        assert_eq!(deltas, [("Questions", 9000), ("Slave_open_temp_tables", -48)]);
        let gauges: Vec<_> = status.gauges.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        assert_eq!(gauges, [("Innodb_buffer_pool_pages_free", 17)]);
        assert!((status.first_s + 0.5).abs() < 1e-9 && (status.last_s - 2.0).abs() < 1e-9);
    }

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
        let inside = Inside::from_text(TEXT).expect("InnoDB's");
        let values: Vec<_> = inside.values.iter().map(|(k, v)| (*k, *v)).collect();
        assert_eq!(
            values,
            [
                ("averaged_s", 17.0),
                ("checkpoint_age_bytes", 4325.0),
                ("hash_searches_per_s", 123.45),
                ("history_list_length", 312.0),
                ("log_bytes", 1_600_000.0),
                ("log_ios", 28.0),
                ("os_file_reads", 1045.0),
                ("os_file_writes", 219.0),
                ("os_fsyncs", 57.0),
                ("other_searches_per_s", 67.89),
                ("pages_created", 3.0),
                ("pages_read", 1024.0),
                ("pages_written", 150.0),
            ]
        );
        assert_eq!(Inside::from_text("no monitor"), None);
        let instances = "---BUFFER POOL 0\nPages read 8, created 0, written 9\n";
        let several = Inside::from_text(&[TEXT, instances].concat());
        assert_eq!(several, Some(inside), "the sum of all instances comes first");
    }

    #[test]
    fn positions_of_built_in_5_1_have_two_halves() {
        assert_eq!(log_position(" 1 4096"), Some(4_294_971_392.0));
        assert_eq!(log_position(" 77"), Some(77.0));
        assert_eq!(log_position(" x"), None);
    }

    #[test]
    fn differences_need_one_source_and_no_restart() {
        let first = Inside::from_text(TEXT).expect("InnoDB's");
        let last = Inside::from_text(
            &TEXT.replace("1045 OS", "2045 OS").replace("length 312", "length 9"),
        );
        let last = last.expect("InnoDB's");
        let innodb = last.since(&first).expect("one source");
        assert_eq!((innodb.source.as_str(), innodb.deltas["os_file_reads"]), ("text", 1000));
        assert!((innodb.last["history_list_length"] - 9.0).abs() < 1e-9);
        assert_eq!(first.since(&last), None, "the server was restarted");
        let found = METRICS.iter().map(|(name, _)| ((*name).to_owned(), 5));
        let metrics = Inside::from_metrics(&found.collect()).expect("metrics");
        assert_eq!((metrics.values.len(), metrics.number("hash_searches")), (4, Some(5)));
        assert_eq!(metrics.since(&first), None);
        assert_eq!(Inside::from_metrics(&BTreeMap::new()), None);
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
            let inside = Inside::from_text(&whole).expect("a position");
            prop_assert_eq!(inside.values.get("log_bytes"), Some(&(written as f64)));
            let _ = inside.since(&Inside::from_text(&whole).expect("a position"));
            let _ = (Inside::from_text(&text), log_position(&text));
        }
    }
}
