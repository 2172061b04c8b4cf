//! The field's words as types: those of flags, profiles, summaries and reports alike. No I/O.
//!
//! Above its figure: the sentences of all findings are here, and docs/warnings.md is made of them.

mod cell;
mod choice;
mod finding;
mod gate;
pub mod units;
mod variables;

pub use cell::{Cell, Rate};
pub use choice::{
    Ahi, Arrival, Choice, Class, Format, InsertWord, Layout, OnError, Order, Picture, Spread,
    SpreadChoice, StatementMode, VerdictKind, Warm,
};
pub(crate) use finding::finding;
pub use finding::{Code, Finding, Value};
pub(crate) use gate::parse_level;
pub use gate::{Gate, Percentile, Property, Quantity};
pub(crate) use variables::{is_identity, is_restless};

/// `8 clients`, `1 client`.
pub(crate) fn clients(count: impl Into<u64>) -> String {
    counted(count, "client")
}

/// Writes a number of things: `1 step`, `2 steps`.
pub(crate) fn counted(count: impl Into<u64>, noun: &str) -> String {
    let count: u64 = count.into();
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Joins those that are there; None where there are none.
pub(crate) fn joined(all: impl IntoIterator<Item = Option<String>>, by: &str) -> Option<String> {
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(by))
}

/// Names the first so many, and counts the others: `a, b, 3 more`.
pub(crate) fn named(mut items: Vec<String>, max: usize, separator: &str) -> String {
    let more = items.len().saturating_sub(max);
    items.truncate(max);
    items.extend((more > 0).then(|| format!("{more} more")));
    items.join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_one_or_many() {
        assert_eq!(
            [clients(1_u32), clients(2_u32), clients(21_u64)],
            ["1 client", "2 clients", "21 clients"]
        );
    }

    #[test]
    fn names_beyond_the_limit_are_counted() {
        let names = || ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(named(names(), 3, ", "), "a, b, c");
        assert_eq!(named(names(), 1, "; "), "a; 2 more");
    }
}
