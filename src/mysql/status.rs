//! The server's own counters at both edges of the window.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::ask::{Asked, pairs};
use super::innodb::{self, Inside};
use super::session::Session;
use crate::observe::seconds_from;
use crate::summary;

/// Levels and not counters: their difference says little, their last value does.
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

/// What the server's `Uptime` may be off by: whole seconds, by a clock that is set now and then.
const UPTIME_OFF: Duration = Duration::from_secs(2);

/// `SHOW GLOBAL STATUS` at one instant, and what InnoDB tells elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The numeric values by the server's own names, which differ between families and versions.
    pub values: BTreeMap<String, i64>,
    /// What these lack.
    pub innodb: Option<Inside>,
    /// The values again, and their instant, where asking for that was counted itself: what is
    /// counted from here on is none of loadgen's.
    pub again: Option<(BTreeMap<String, i64>, Instant)>,
    /// The middle of the query: the counters are of some instant within half of `took` from it.
    pub at: Instant,
    /// How long the query took.
    pub took: Duration,
}

/// Reads the counters. The reading itself adds one to `Questions` and `Com_show_status`; as the
/// first of two it adds no more, and as the last nothing.
pub async fn read(session: &mut Session) -> Asked<Reading> {
    let (values, at, took) = counters(session).await?;
    let innodb = innodb::read(session, &values).await?;
    let again = match innodb {
        Some(_) => Some(counters(session).await?).map(|(values, at, _)| (values, at)),
        None => None,
    };
    Ok(Reading { values, innodb, again, at, took })
}

/// The values, the middle of the query, and how long it took.
async fn counters(session: &mut Session) -> Asked<(BTreeMap<String, i64>, Instant, Duration)> {
    let start = Instant::now();
    let texts = pairs(session, "SHOW GLOBAL STATUS").await?;
    let took = start.elapsed();
    Ok((numeric(&texts), start + took / 2, took))
}

fn numeric(texts: &BTreeMap<String, String>) -> BTreeMap<String, i64> {
    texts.iter().filter_map(|(name, text)| Some((name.clone(), text.parse().ok()?))).collect()
}

/// How long before the second of two readings the server was started, if that was after the first.
fn restarted(first: &Reading, last: &Reading) -> Option<Duration> {
    let uptime = |reading: &Reading| {
        let s = reading.values.get("Uptime")?;
        u64::try_from(*s).ok().map(Duration::from_secs)
    };
    let (before, after) = uptime(first).zip(uptime(last))?;
    let young = after + UPTIME_OFF < before + last.at.saturating_duration_since(first.at);
    // FLUSH STATUS leaves this one alone.
    let connections = |reading: &Reading| reading.values.get("Connections").copied();
    let fewer = connections(first).zip(connections(last)).is_some_and(|(one, other)| other < one);
    (young || fewer).then_some(after)
}

/// What changed between two readings: counters and gauges alike; after a restart, what the server
/// has counted since. A negative difference stays: it tells of FLUSH STATUS or of a gauge. A name that only one reading has (a
/// plugin came or went) is left out.
pub fn delta(first: &Reading, last: &Reading, window_start: Instant) -> summary::Status {
    let (before, first_at) =
        first.again.as_ref().map_or((&first.values, first.at), |(values, at)| (values, *at));
    let restarted = restarted(first, last);
    let deltas = last
        .values
        .iter()
        .filter_map(|(name, after)| {
            let before = before.get(name)?;
            let since = if restarted.is_some() { &0 } else { before };
            let difference = after.checked_sub(*since)?;
            // That it did not change says when FLUSH STATUS was given.
            (difference != 0 || name == summary::SINCE_FLUSH).then(|| (name.clone(), difference))
        })
        .collect();
    let from_start = |at: Instant| seconds_from(window_start, at);
    let gauge = |name: &&str| Some(((*name).to_owned(), *last.values.get(*name)?));
    summary::Status {
        first_s: from_start(first_at),
        last_s: from_start(last.at),
        restarted_s: restarted.map(|ago| from_start(last.at) - ago.as_secs_f64()),
        deltas,
        gauges: GAUGES.iter().filter_map(gauge).collect(),
        innodb: first.innodb.as_ref().zip(last.innodb.as_ref()).and_then(|(a, b)| b.since(a)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: Instant, values: &[(&str, &str)]) -> Reading {
        let texts = values.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Reading { values: numeric(&texts), innodb: None, again: None, at, took: Duration::ZERO }
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
        assert_eq!(delta(&young, &at(30, "32", "1200"), start).restarted_s, None, "it rounds down");
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
}
