//! How fast a fill or a load goes, and how long it still takes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The rate is that of the last so many seconds.
const RECENT: Duration = Duration::from_secs(10);

pub(super) struct Throughput {
    total: u64,
    /// When so many rows were in, oldest first.
    seen: VecDeque<(Instant, u64)>,
}

impl Throughput {
    /// Begins now, with `total` rows to come.
    pub(super) fn new(total: u64, now: Instant) -> Throughput {
        Throughput { total, seen: VecDeque::from([(now, 0)]) }
    }

    pub(super) fn at(&mut self, now: Instant, rows: u64) {
        self.seen.push_back((now, rows));
        while self.seen.len() > 2 && now.duration_since(self.seen[1].0) >= RECENT {
            self.seen.pop_front();
        }
    }

    /// Says such as `1.23M of 1.60M rows (76 %), 212k rows/s, 2 s left`.
    pub(super) fn text(&self, what: &str) -> String {
        let ends = self.seen.front().zip(self.seen.back());
        let ((begin, from), (end, rows)) = ends.expect("it begins with one");
        let rate = rate(rows.saturating_sub(*from), end.duration_since(*begin));
        let percent = (*rows as f64 / self.total.max(1) as f64 * 100.0).floor();
        let left = match self.total.saturating_sub(*rows) {
            0 => String::new(),
            missing if rate > 0.0 => format!(", {} left", span(missing as f64 / rate)),
            _ => ", standing still".to_owned(),
        };
        format!(
            "{} of {} {what} ({percent} %), {} {what}/s{left}",
            short(*rows as f64),
            short(self.total as f64),
            short(rate)
        )
    }
}

pub(super) fn rate(rows: u64, time: Duration) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 { rows as f64 / seconds } else { 0.0 }
}

/// Writes three digits: `999`, `1.23M`, `45.6k`.
pub(super) fn short(n: f64) -> String {
    for (unit, size) in [("G", 1e9), ("M", 1e6), ("k", 1e3)] {
        // What would round to 1000 belongs to the next unit.
        if n >= size * 0.9995 {
            let value = n / size;
            let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
            return format!("{value:.decimals$}{unit}");
        }
    }
    format!("{n:.0}")
}

fn span(seconds: f64) -> String {
    if seconds < 99.5 {
        format!("{seconds:.0} s")
    } else if seconds < 99.5 * 60.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (n, text) in [
            (0.0, "0"),
            (7.0, "7"),
            (999.0, "999"),
            (999.6, "1.00k"),
            (1000.0, "1.00k"),
            (9994.0, "9.99k"),
            (9996.0, "10.0k"),
            (212_345.0, "212k"),
            (999_900.0, "1.00M"),
            (1_600_000.0, "1.60M"),
            (1e10, "10.0G"),
        ] {
            assert_eq!(short(n), text, "{n}");
        }
        assert_eq!(span(2.0), "2 s");
        assert_eq!(span(600.0), "10 min");
        assert_eq!(span(50_000.0), "13.9 h");
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let start = Instant::now();
        let mut throughput = Throughput::new(100_000, start);
        for second in 1..=20 {
            // 100 rows a second at first, 1000 from the tenth on.
            let rows = if second <= 10 { second * 100 } else { 1000 + (second - 10) * 1000 };
            throughput.at(start + Duration::from_secs(second), rows);
        }
        assert_eq!(throughput.text("rows"), "11.0k of 100k rows (11 %), 1.00k rows/s, 89 s left");
        assert!(throughput.seen.len() <= 12);
        throughput.at(start + Duration::from_secs(21), 100_000);
        assert!(
            throughput.text("rows").starts_with("100k of 100k rows (100 %)"),
            "{}",
            throughput.text("rows")
        );
        assert!(!throughput.text("rows").contains("left"));
    }

    #[test]
    fn a_rate_of_nothing_yet_is_no_division_by_zero() {
        let throughput = Throughput::new(10, Instant::now());
        assert_eq!(throughput.text("rows"), "0 of 10 rows (0 %), 0 rows/s, standing still");
    }
}
