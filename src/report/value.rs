//! Values of a page: what files hold, and what people see.

use serde_json::Value as Json;

#[derive(Debug, Clone)]
pub(crate) struct PageValue {
    /// As files have it, in full; nothing that was not measured, or is not to be known.
    pub filed: Json,
    pub shown: String,
}

/// A part of one, which people see in percent.
pub(crate) struct Share(pub f64);

fn value(filed: impl Into<Json>, shown: impl Into<String>) -> PageValue {
    PageValue { filed: filed.into(), shown: shown.into() }
}

macro_rules! values {
    ($($of:ty: $value:expr;)*) => {
        $(impl From<$of> for PageValue { fn from(of: $of) -> PageValue { $value(of) } })*
    };
}

values! {
    &str: |text: &str| value(text, text);
    String: |text: String| value(text.as_str(), text.clone());
    // A text for files, and how people see it.
    (String, String): |(text, shown): (String, String)| value(text, shown);
    // A number for files, and how people see it.
    (f64, String): |(of, shown)| value(of + 0.0, shown);
    // With so many decimals for people; and for files, which need none.
    (f64, usize): |(of, decimals)| value(of + 0.0, number(of, decimals));
    f64: |of| PageValue::from((of, 0));
    Share: |of: Share| value(of.0, format!("{:.0}%", of.0 * 100.0));
    u64: |count: u64| value(count, count.to_string());
    u32: |count: u32| value(count, count.to_string());
    usize: |count: usize| value(count, count.to_string());
    bool: |is: bool| value(is, is.to_string());
    Vec<(String, String)>: |pairs: Vec<(String, String)>| {
        let shown: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
        value(pairs.into_iter().collect::<Json>(), shown.join("; "))
    };
}

impl<V: Into<PageValue>> From<Option<V>> for PageValue {
    fn from(of: Option<V>) -> PageValue {
        of.map_or_else(|| value((), "-"), Into::into)
    }
}

/// From here on digits say nothing and make a table unreadable.
const PLAIN_MAX: f64 = 1e15;

pub(crate) fn number(value: f64, decimals: usize) -> String {
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

/// Below this two digits take too much room behind a point.
const PLAIN_MIN: f64 = 0.00095;

/// Returns a number of which two digits are seen if it is below 0.01: `0.0040`, `2.0e-5`.
pub(crate) fn small_number(value: f64, decimals: usize) -> String {
    match value.abs() {
        size if size > 0.0 && size < PLAIN_MIN => format!("{value:.1e}"),
        size if size > 0.0 && size < 0.01 => number(value, decimals.max(4)),
        _ => number(value, decimals),
    }
}

/// Counts the limits that the smallest of some values, but for zeros, stays below.
fn below(values: impl IntoIterator<Item = f64>, limits: &[f64]) -> usize {
    let values = values.into_iter().map(f64::abs);
    let least = values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    limits.iter().filter(|limit| least < **limit).count()
}

/// Three significant digits of the smallest: one number for a table, so that its points stand below each other.
/// Three decimals at most, but up to six where it would look like 0.
pub(crate) fn decimals(values: impl IntoIterator<Item = f64>) -> usize {
    below(values, &[100.0, 10.0, 1.0, 5e-4, 5e-4, 5e-5])
}

/// Digits after the point for ratios: two, as `0.87`, and more where two would hide one.
pub(crate) fn ratio_decimals(values: impl IntoIterator<Item = f64>) -> usize {
    2 + below(values, &[0.1, 0.01])
}

pub(super) fn signed(value: f64, decimals: usize) -> String {
    let text = number(value, decimals);
    if value > 0.0 && text != number(0.0, decimals) { format!("+{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_give_the_smallest_three_digits() {
        assert_eq!(decimals([1234.5, 100.0]), 0);
        assert_eq!(decimals([1234.5, 42.0, 0.0]), 1);
        assert_eq!(decimals([7.25]), 2);
        assert_eq!(decimals([0.02]), 3);
        assert_eq!(decimals([0.0005]), 3);
        assert_eq!(decimals([0.1, 0.000_31]), 5);
        assert_eq!(decimals([0.000_02]), 6);
        assert_eq!(decimals([]), 0);
    }

    #[test]
    fn ratios_keep_digits_when_they_are_small() {
        assert_eq!(ratio_decimals([1.0, 0.87]), 2);
        assert_eq!(ratio_decimals([1.0, 0.087]), 3);
        assert_eq!(ratio_decimals([0.001]), 4);
    }

    #[test]
    fn two_digits_of_a_number_are_seen_when_it_is_below_a_hundredth() {
        for (value, decimals, shown) in [
            (0.87, 2, "0.87"),
            (0.05, 2, "0.05"),
            (0.004, 2, "0.0040"),
            (0.0014, 3, "0.0014"),
            (0.000_2, 3, "2.0e-4"),
            (-0.000_2, 3, "-2.0e-4"),
            (0.0, 3, "0.000"),
        ] {
            assert_eq!(small_number(value, decimals), shown);
        }
    }

    #[test]
    fn numbers_stay_short_when_they_are_absurd() {
        assert_eq!(number(26747.4, 0), "26747");
        assert_eq!(number(-0.2, 0), "0");
        assert_eq!(number(-0.0, 2), "0.00");
        assert_eq!(number(-3.0, 0), "-3");
        assert_eq!(number(f64::MAX, 0), "1.80e308");
        assert_eq!(number(f64::INFINITY, 2), "inf");
    }
}
