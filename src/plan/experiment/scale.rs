//! `--scale`: the same experiment, smaller: rows, times, numbers of ops and sizes.

use std::time::Duration;

/// Rows of a table at least.
const ROWS_MIN: u64 = 1000;
/// A window at least.
const TIME_MIN: Duration = Duration::from_secs(1);
/// A warm-up at least, where there is one.
const WARMUP_MIN: Duration = Duration::from_millis(200);
/// Ops of a step at least.
const OPS_MIN: u64 = 1000;

const MIB: u64 = 1 << 20;

/// What servers of all versions take at least, by the option's name with underscores.
const SIZES_MIN: [(&str, u64); 5] = [
    // 5 MiB everywhere up to now; a little more where pages are larger than 16 KiB.
    ("innodb_buffer_pool_size", 8 * MIB),
    ("innodb_log_buffer_size", MIB),
    ("innodb_log_file_size", 4 * MIB),
    ("innodb_redo_log_capacity", 8 * MIB),
    ("key_buffer_size", MIB),
];
/// Of any other size.
const SIZE_MIN: u64 = MIB;

/// A factor of at most 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale(f64);

impl Default for Scale {
    fn default() -> Self {
        Scale(1.0)
    }
}

impl std::str::FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<f64>() {
            Ok(factor) if factor > 0.0 && factor <= 1.0 => Ok(Scale(factor)),
            _ => Err(format!("'{text}' is no scale: above 0, up to 1")),
        }
    }
}

impl Scale {
    pub(crate) fn factor(self) -> f64 {
        self.0
    }

    /// Tells whether nothing changes.
    pub(crate) fn is_full(self) -> bool {
        (self.0 - 1.0).abs() < f64::EPSILON
    }

    fn count(self, n: u64, min: u64) -> u64 {
        if self.is_full() {
            return n;
        }
        ((n as f64 * self.0).round() as u64).max(min.min(n))
    }

    pub fn rows(self, rows: u64) -> u64 {
        self.count(rows, ROWS_MIN)
    }

    pub(crate) fn ops(self, ops: u64) -> u64 {
        self.count(ops, OPS_MIN)
    }

    pub fn time(self, time: Duration) -> Duration {
        self.duration(time, TIME_MIN)
    }

    /// The length of a warm-up, or when a command starts.
    pub(crate) fn warmup(self, warmup: Duration) -> Duration {
        self.duration(warmup, WARMUP_MIN)
    }

    fn duration(self, length: Duration, min: Duration) -> Duration {
        if self.is_full() || length.is_zero() {
            return length;
        }
        // Whole milliseconds read well in tables.
        let scaled = Duration::from_millis((length.as_secs_f64() * self.0 * 1e3).round() as u64);
        scaled.max(min.min(length))
    }

    /// The value of an option that is a size, in bytes.
    pub fn size(self, option: &str, bytes: u64) -> u64 {
        if self.is_full() {
            return bytes;
        }
        let option = option.replace('-', "_");
        let name = option.strip_prefix("loose_").unwrap_or(&option);
        let known = SIZES_MIN.iter().find(|(known, _)| *known == name);
        let min = known.map_or(SIZE_MIN, |(_, min)| *min);
        // Servers round to whole blocks.
        (self.count(bytes, min) / MIB * MIB).max(min.min(bytes))
    }
}

/// A size as the servers' options have it: K, M, G and T are powers of 1024.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u32 = match text.get(digits.len()..)?.to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn everything_shrinks_down_to_what_still_works() {
        let scale: Scale = "0.001".parse().expect("a scale");
        assert_eq!(
            (scale.rows(16_000_000), scale.rows(16_000), scale.rows(100)),
            (16_000, 1000, 100)
        );
        assert_eq!(scale.time(Duration::from_mins(1)), Duration::from_secs(1));
        assert_eq!(scale.time(Duration::from_mins(30)), Duration::from_millis(1800));
        assert_eq!(scale.time(Duration::from_millis(300)), Duration::from_millis(300));
        assert_eq!(scale.warmup(Duration::from_secs(10)), Duration::from_millis(200));
        assert_eq!(scale.warmup(Duration::ZERO), Duration::ZERO);
        assert_eq!(scale.size("innodb-buffer-pool-size", 64 << 30), 65 * MIB);
        assert_eq!(scale.size("loose_innodb_buffer_pool_size", 4 << 30), 8 * MIB);
        assert_eq!(scale.size("innodb_buffer_pool_size", 5 * MIB), 5 * MIB);
        assert_eq!(scale.size("sort_buffer_size", 4 << 20), MIB);
        let full = Scale::default();
        assert_eq!(full.size("innodb_buffer_pool_size", 12_345), 12_345);
        for text in ["0", "-1", "1.1", "x", "", "nan", "inf"] {
            assert!(text.parse::<Scale>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_the_servers() {
        assert_eq!(bytes("4G"), Some(4 << 30));
        assert_eq!(bytes("512k"), Some(512 << 10));
        assert_eq!(bytes("1024"), Some(1024));
        for text in ["", "G", "4X", "4GB", "-1", "1.5G", "99999999999T"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn sizes_read_back(n in 0_u64..1 << 24, unit in 0_usize..5, text in "\\PC{0,20}") {
            let name = ["", "K", "m", "G", "T"][unit];
            prop_assert_eq!(bytes(&format!(" {n}{name}")), Some(n << (10 * unit)));
            let _ = (bytes(&text), text.parse::<Scale>());
        }
    }
}
