//! Numbers as a table shows them.

/// From here on digits say nothing and make a table unreadable.
const PLAIN_MAX: f64 = 1e15;

/// Returns a number with so many digits after the point.
pub(crate) fn number(value: f64, decimals: usize) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if value.abs() >= PLAIN_MAX {
        return format!("{value:.2e}");
    }
    let text = format!("{value:.decimals$}");
    // Minus nothing reads like a fault.
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| b == b'0' || b == b'.') => rest.to_owned(),
        _ => text,
    }
}

/// Digits after the point that give the smallest of the values three significant digits: one
/// number for a whole table, so that its points stand below each other.
pub(crate) fn decimals(values: impl IntoIterator<Item = f64>) -> usize {
    let smallest = values
        .into_iter()
        .map(f64::abs)
        .filter(|value| *value > 0.0 && value.is_finite())
        .fold(f64::INFINITY, f64::min);
    match smallest {
        x if x >= 100.0 => 0,
        x if x >= 10.0 => 1,
        x if x >= 1.0 => 2,
        _ => 3,
    }
}

/// Digits after the point for ratios: two, as `0.87`, and more where two would hide one.
pub(crate) fn ratio_decimals(values: impl IntoIterator<Item = f64>) -> usize {
    let smallest = values.into_iter().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    match smallest {
        x if x >= 0.1 => 2,
        x if x >= 0.01 => 3,
        _ => 4,
    }
}

/// Digits after the point for counts: none, but a median of two may lie between them.
pub(crate) fn count_decimals(values: impl IntoIterator<Item = f64>) -> usize {
    usize::from(values.into_iter().any(|value| value.fract() != 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_of_the_smallest() {
        assert_eq!(decimals([1234.5, 100.0]), 0);
        assert_eq!(decimals([1234.5, 42.0, 0.0]), 1);
        assert_eq!(decimals([7.25]), 2);
        assert_eq!(decimals([0.02]), 3);
        assert_eq!(decimals([]), 0);
    }

    #[test]
    fn small_ratios_keep_digits() {
        assert_eq!(ratio_decimals([1.0, 0.87]), 2);
        assert_eq!(ratio_decimals([1.0, 0.087]), 3);
        assert_eq!(ratio_decimals([0.001]), 4);
    }

    #[test]
    fn a_count_between_two_shows_it() {
        assert_eq!(count_decimals([3.0, 0.0]), 0);
        assert_eq!(count_decimals([3.0, 0.5]), 1);
    }

    #[test]
    fn absurd_numbers_stay_short() {
        assert_eq!(number(26747.4, 0), "26747");
        assert_eq!(number(-0.2, 0), "0");
        assert_eq!(number(-0.0, 2), "0.00");
        assert_eq!(number(-3.0, 0), "-3");
        assert_eq!(number(f64::MAX, 0), "1.80e308");
        assert_eq!(number(f64::INFINITY, 2), "inf");
    }
}
