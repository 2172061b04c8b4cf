//! Counts and durations as people write them: `16M`, `4Ki`, `90s`, `1.5h`.
//!
//! Everything is exact: a value that is no whole number of rows or nanoseconds is refused, not rounded. Parsers
//! read back what formatters print.

use std::time::Duration;

const COUNT_UNITS: [(&str, u64); 7] = [
    ("", 1),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
];

/// Nanoseconds. A bare number is seconds.
const DURATION_UNITS: [(&str, u64); 5] = [
    ("", 1_000_000_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Nanoseconds; for a limit on a latency.
const TIME_UNITS: [(&str, u64); 5] =
    [("ns", 1), ("us", 1_000), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// A rate below each of these gets one more decimal. One op an hour is 0.00028.
const RATE_LIMITS: [f64; 6] = [100.0, 10.0, 1.0, 0.1, 0.01, 0.001];

/// Parses a count: a number, then nothing, `k M G` (powers of 1000) or `Ki Mi Gi` (of 1024). A fraction must
/// come to a whole number: `1.5M`. The caller adds the flag's name to the error.
pub fn parse_count(text: &str) -> Result<u64, String> {
    scaled(text, &COUNT_UNITS, "k M G (powers of 1000) or Ki Mi Gi (powers of 1024)", "count")
}

/// Parses a count in thousandths, so that it need not be whole: `0.5` is 500.
pub(crate) fn parse_thousandths(text: &str) -> Result<u64, String> {
    let units = COUNT_UNITS.map(|(name, size)| (name, size * 1000));
    scaled(text, &units, "k M G (powers of 1000) or Ki Mi Gi (powers of 1024)", "rate")
}

/// A number, then `ms s m h`; a bare number is seconds. The caller adds the flag's name to the error.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    scaled(text, &DURATION_UNITS, "ms s m h, a bare number is seconds", "duration")
        .map(Duration::from_nanos)
}

/// Parses a latency in nanoseconds: a number, then `ns us µs ms s`. Refuses an ambiguous bare number.
pub(crate) fn parse_time(text: &str) -> Result<u64, String> {
    scaled(text, &TIME_UNITS, "ns us ms s", "time")
}

/// Parses a percentage, `2%` as 0.02; the sign may be left out.
pub(crate) fn parse_percent(text: &str) -> Result<f64, String> {
    let digits = text.strip_suffix('%').unwrap_or(text);
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    match digits.parse::<f64>() {
        Ok(value) if plain && value < 100.0 => Ok(value / 100.0),
        _ => Err(format!("'{text}' is no percentage below 100, such as 2% or 0.5%")),
    }
}

/// Formats a count with the largest unit (of 1000) that leaves at most one decimal, or plain.
pub fn count(n: u64) -> String {
    let fits = |size: u64| n >= size && n.is_multiple_of(size / 10);
    let unit = COUNT_UNITS[1..4].iter().rev().find(|(_, size)| fits(*size));
    unit.map_or_else(|| n.to_string(), |(unit, size)| decimal(n.into(), *size, unit))
}

/// Formats whole hours or minutes (from two up) as such, else seconds, below one milliseconds.
pub fn duration(length: Duration) -> String {
    let nanos = length.as_nanos();
    let [_, millis, second, minute, hour] = DURATION_UNITS;
    let whole = |(_, size): (&str, u64), least: u128| {
        nanos >= u128::from(size) * least && nanos.is_multiple_of(size.into())
    };
    let (unit, size) = match nanos {
        _ if whole(hour, 1) => hour,
        _ if whole(minute, 2) => minute,
        1..1_000_000_000 => millis,
        _ => second,
    };
    decimal(nanos, size, unit)
}

/// Returns the decimals that the smallest positive rate needs for three significant digits.
pub(crate) fn rate_decimals(per_s: impl IntoIterator<Item = f64>) -> usize {
    let sizes = per_s.into_iter().map(f64::abs);
    let least = sizes.filter(|size| *size > 0.0).fold(f64::INFINITY, f64::min);
    RATE_LIMITS.iter().filter(|limit| least < **limit).count()
}

/// Formats a rate with three significant digits, or all before the point: `0.450`, `42.0`, `26747`.
pub(crate) fn rate(per_s: f64) -> String {
    format!("{per_s:.0$}", rate_decimals([per_s]))
}

/// Formats a number in units of a power of ten, or whole ones of another, without trailing zeros.
fn decimal(n: u128, size: u64, unit: &str) -> String {
    let (whole, rest, digits) =
        (n / u128::from(size), n % u128::from(size), size.ilog10() as usize);
    let fraction = format!(".{rest:0digits$}");
    format!("{whole}{}{unit}", fraction.trim_end_matches('0').trim_end_matches('.'))
}

fn scaled(text: &str, units: &[(&str, u64)], known: &str, what: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return Err(format!("'{text}' is no {what}: a number, then {known}"));
    }
    let Some((_, size)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("'{text}' is no {what}: the unit '{unit}' is none of {known}"));
    };
    let fraction = fraction.trim_end_matches('0');
    let too_fine = || match what {
        "count" => format!("'{text}' is not a whole number"),
        _ => format!("'{text}' has too many digits behind the point for a {what}"),
    };
    let parts = u32::try_from(fraction.len()).ok().and_then(|digits| 10_u128.checked_pow(digits));
    let parts = parts.ok_or_else(too_fine)?;
    let number = format!("{whole}{fraction}").parse::<u128>().ok();
    let product = number.and_then(|number| number.checked_mul(u128::from(*size)));
    let value = product.and_then(|product| u64::try_from(product / parts).ok());
    let value = value.ok_or_else(|| format!("'{text}' is too large for a {what}"))?;
    if product.is_some_and(|product| product % parts != 0) { Err(too_fine()) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_as_the_contract_has_them() {
        for (text, n) in [
            ("0", 0),
            ("64", 64),
            ("10k", 10_000),
            ("16M", 16_000_000),
            ("10G", 10_000_000_000),
            ("4Ki", 4096),
            ("1Mi", 1 << 20),
            ("2Gi", 2 << 30),
            ("1.5M", 1_500_000),
            ("0.5Ki", 512),
            ("1.50k", 1500),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_count(text), Ok(n), "{text}");
        }
        assert!(parse_count("1.5").is_err(), "half a row");
    }

    #[test]
    fn nonsense_is_refused_with_its_text() {
        for text in [
            "", "k", ".5k", "1.", "1..5", "1.2.3k", "-1", "+1", " 1", "1 k", "1K", "1m", "1e6",
            "1kk", "١k",
        ] {
            let error = parse_count(text).unwrap_err();
            assert!(error.contains(&format!("'{text}'")), "{error}");
        }
        for text in ["", "s", "5d", "1.s", "-1s", "1 s", "1M", "0.0000000001s"] {
            let error = parse_duration(text).unwrap_err();
            assert!(error.contains(&format!("'{text}'")), "{error}");
        }
    }

    #[test]
    fn overflow_is_an_error_not_a_wrap() {
        for text in ["18446744073709551616", "18446744073709551615k", "99999999999999999999999999G"]
        {
            assert!(parse_count(text).unwrap_err().contains("too large"), "{text}");
        }
        assert!(parse_duration("18446744074").unwrap_err().contains("too large"));
        assert!(parse_duration("99999999999h").unwrap_err().contains("too large"));
        let long = format!("1.{}1k", "0".repeat(100));
        assert!(parse_count(&long).is_err());
    }

    #[test]
    fn durations_as_the_contract_has_them() {
        for (text, millis) in [
            ("10", 10_000),
            ("250ms", 250),
            ("60s", 60_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("1.5", 1500),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse_duration("0.5ms"), Ok(Duration::from_micros(500)));
    }

    #[test]
    fn formats_as_people_write() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1k"),
            (12_345, "12345"),
            (1_500_000, "1.5M"),
            (1_250_000, "1250k"),
            (16_000_000, "16M"),
            (10_000_000_000, "10G"),
        ] {
            assert_eq!(count(n), text);
        }
        for (millis, text) in [
            (0, "0s"),
            (250, "250ms"),
            (1500, "1.5s"),
            (60_000, "60s"),
            (90_000, "90s"),
            (120_000, "2m"),
            (3_600_000, "1h"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), text);
        }
        assert_eq!(duration(Duration::from_nanos(1)), "0.000001ms");
    }

    #[test]
    fn a_rate_has_three_digits_when_it_is_small() {
        struct Case {
            per_s: f64,
            shown: &'static str,
        }
        for Case { per_s, shown } in [
            Case { per_s: 0.0, shown: "0" },
            Case { per_s: 0.000_278, shown: "0.000278" },
            Case { per_s: 0.05, shown: "0.0500" },
            Case { per_s: 0.45, shown: "0.450" },
            Case { per_s: 0.9, shown: "0.900" },
            Case { per_s: 9.25, shown: "9.25" },
            Case { per_s: 42.0, shown: "42.0" },
            Case { per_s: 100.4, shown: "100" },
            Case { per_s: 26_747.4, shown: "26747" },
        ] {
            assert_eq!(rate(per_s), shown, "{per_s}");
        }
        assert_eq!(rate_decimals([1234.5, 0.0, 7.25]), 2, "a zero needs no digits");
        assert_eq!(rate_decimals([]), 0);
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(n: u64) {
            prop_assert_eq!(parse_count(&count(n)), Ok(n));
            let d = Duration::from_nanos(n);
            prop_assert_eq!(parse_duration(&duration(d)), Ok(d));
            let round = n / 1_000_000 * 1_000_000;
            prop_assert_eq!(parse_count(&count(round)), Ok(round));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,30}", number in "[0-9.]{0,40}[kMGimsh]{0,2}") {
            let _ = (parse_count(&text), parse_duration(&text));
            let _ = (parse_count(&number), parse_duration(&number));
        }
    }
}
