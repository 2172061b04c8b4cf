//! Values of the knobs: one parser each, which the flags and the profiles share.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::limits::PHASE_MAX;
use super::policy::ErrorsMax;
use super::units::{self, parse_count, parse_duration, parse_thousandths};
use crate::terms::Gate;
use crate::workload::distribution::Distribution;
use crate::workload::table::{ROWS_MAX, TABLES_MAX};

/// Clients at most: a limit on nonsense, far above what a server takes.
pub const CLIENTS_MAX: u32 = 1_000_000;
/// Ops a second at most, likewise.
pub(crate) const RATE_MAX: u64 = 10_000_000;
/// Rates are read in thousandths.
const FINE: u64 = 1_000;
/// Steps of one list at most.
const STEPS_MAX: usize = 10_000;
/// Characters of a label at most: it is one cell of a table.
const LABEL_MAX: usize = 200;
/// Characters of a character set's name at most.
const CHARSET_MAX: usize = 32;

/// Reads a value of a profile with the parser of its flag.
macro_rules! as_flags {
    ($($value:ty),+) => {$(
        impl<'de> Deserialize<'de> for $value {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                as_flag(from)
            }
        }
    )+};
}

/// Declares values with their parsers.
macro_rules! values {
    ($($(#[$about:meta])* $name:ident($inner:ty) = $parse:expr;)+) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name(pub $inner);

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                $parse(text).map($name)
            }
        }

        as_flags!($name);
    )+};
}

values! {
    /// Numbers of clients, a step each: `64`, `1,2,4`, `8..256` (doubling; the end is always a step)
    /// or `8..64+8`; lists mix them, duplicates are dropped, the result ascends.
    Clients(Vec<u32>) = clients;
    /// Ops a second, a step each, down to one in a thousand seconds; the lists are those of
    /// [`Clients`].
    Rates(Vec<f64>) = rates;
    #[derive(Copy)]
    TableCount(u32) = tables;
    #[derive(Copy)]
    RowCount(u64) = rows;
    /// None for `auto`, what the tables say.
    #[derive(Copy)]
    RowsOrAuto(Option<u64>) = rows_or_auto;
    #[derive(Copy)]
    OpCount(u64) = ops;
    /// Bytes of an extended INSERT.
    #[derive(Copy)]
    InsertBytes(u64) = insert_bytes;
    /// A workload's option: a number, or a switch as 1 and 0.
    #[derive(Copy)]
    OptionValue(u64) = option_value;
    /// A character set's name, which reaches SQL.
    CharsetName(String) = charset;
}

as_flags!(Gate, ErrorsMax, Distribution);

/// A plain number within bounds, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole<const MIN: u64, const MAX: u64>(pub u64);

impl<const MIN: u64, const MAX: u64> FromStr for Whole<MIN, MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<u64>() {
            Ok(n) if (MIN..=MAX).contains(&n) => Ok(Whole(n)),
            _ => Err(format!("'{text}' is no whole number from {MIN} to {MAX}")),
        }
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        as_flag(from)
    }
}

/// A length of time of so many milliseconds at least: a limit on nonsense, which also keeps sums
/// of them in range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length<const MS: u64>(pub Duration);

/// A phase: a warm-up, for one.
pub(crate) type Phase = Length<0>;

impl<const MS: u64> FromStr for Length<MS> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (length, min) = (parse_duration(text)?, Duration::from_millis(MS));
        if length < min {
            return Err(format!("'{text}' is too short: at least {}", units::duration(min)));
        }
        if length > PHASE_MAX {
            return Err(format!("'{text}' is longer than a year"));
        }
        Ok(Length(length))
    }
}

impl<'de, const MS: u64> Deserialize<'de> for Length<MS> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        as_flag(from)
    }
}

fn as_flag<'de, D: Deserializer<'de>, T>(from: D) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
{
    let value = AnyValue::deserialize(from)?;
    value.to_string().parse().map_err(D::Error::custom)
}

/// A value of a profile; shown as the text that a flag would have.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number or a text, as the flag has it")]
pub(super) enum AnyValue {
    Switch(bool),
    Whole(i64),
    Number(f64),
    Text(String),
    List(Vec<AnyValue>),
}

impl fmt::Display for AnyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyValue::Switch(on) => on.fmt(f),
            AnyValue::Whole(n) => n.fmt(f),
            AnyValue::Number(n) => n.fmt(f),
            AnyValue::Text(text) => f.write_str(text),
            AnyValue::List(values) => {
                let values: Vec<String> = values.iter().map(AnyValue::to_string).collect();
                f.write_str(&values.join(","))
            }
        }
    }
}

fn clients(text: &str) -> Result<Vec<u32>, String> {
    let one = |text: &str| match (text, parse_count(text)) {
        ("", _) => Err("a number of clients is missing; 64, 1,2,4, 8..256 or 8..64+8".to_owned()),
        (_, Ok(0)) => Err("0 clients do nothing".to_owned()),
        (_, Ok(n)) if n > CLIENTS_MAX.into() => {
            Err(format!("{n} clients are more than {CLIENTS_MAX}"))
        }
        (_, n) => n,
    };
    Ok(list(text, one)?.into_iter().map(|n| n as u32).collect())
}

fn rates(text: &str) -> Result<Vec<f64>, String> {
    let one = |text: &str| match (text, parse_thousandths(text)) {
        ("", _) => Err("a rate is missing; 10k, 1k,2k, 1k..16k or 1k..4k+500".to_owned()),
        (_, Ok(0)) => Err("0 ops a second do nothing".to_owned()),
        (_, Ok(n)) if n > RATE_MAX * FINE => {
            Err(format!("'{text}' is more than {RATE_MAX} ops a second"))
        }
        (_, n) => n,
    };
    Ok(list(text, one)?.into_iter().map(|n| n as f64 / FINE as f64).collect())
}

/// Reads a list of numbers above 0, of which `one` reads each.
fn list(text: &str, one: impl Fn(&str) -> Result<u64, String>) -> Result<Vec<u64>, String> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((from, to)) => range(part.trim(), (from, to), &one, &mut numbers)?,
            None => numbers.push(one(part.trim())?),
        }
        if numbers.len() > STEPS_MAX {
            return Err(format!("'{text}' makes more than {STEPS_MAX} steps"));
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

fn range(
    part: &str,
    (from, to): (&str, &str),
    one: impl Fn(&str) -> Result<u64, String>,
    numbers: &mut Vec<u64>,
) -> Result<(), String> {
    let (end, step) = match to.split_once('+') {
        Some((to, step)) => (to, Some(one(step.trim())?)),
        None => (to, None),
    };
    let (first, last) = (one(from.trim())?, one(end.trim())?);
    if first > last {
        return Err(format!("'{part}' runs backwards; {}..{}?", end.trim(), from.trim()));
    }
    if step.is_some_and(|step| (last - first) / step > STEPS_MAX as u64) {
        return Err(format!("'{part}' makes more than {STEPS_MAX} steps"));
    }
    let mut at = first;
    while at < last {
        numbers.push(at);
        at = match step {
            Some(step) => at.saturating_add(step),
            None => at.saturating_mul(2),
        };
    }
    numbers.push(last);
    Ok(())
}

/// Reads a number of tables.
pub(crate) fn tables(text: &str) -> Result<u32, String> {
    match parse_count(text)? {
        0 => Err("0 tables hold nothing".to_owned()),
        n if n > TABLES_MAX.into() => Err(format!("{n} tables are more than {TABLES_MAX}")),
        n => Ok(n as u32),
    }
}

/// Reads a number of rows.
pub(crate) fn rows(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        0 => Err("0 rows hold nothing".to_owned()),
        n if n > ROWS_MAX => Err(format!("{n} rows are more than {ROWS_MAX}")),
        n => Ok(n),
    }
}

fn rows_or_auto(text: &str) -> Result<Option<u64>, String> {
    if text == "auto" { Ok(None) } else { rows(text).map(Some) }
}

fn ops(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        0 => Err("0 ops measure nothing".to_owned()),
        n => Ok(n),
    }
}

/// No row of sysbench's table is longer than the least, and max_allowed_packet ends at the most.
fn insert_bytes(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        n if (1024..=1 << 30).contains(&n) => Ok(n),
        _ => Err(format!("'{text}' is not within 1024 to 1Gi bytes")),
    }
}

fn option_value(text: &str) -> Result<u64, String> {
    match text {
        "true" => Ok(1),
        "false" => Ok(0),
        _ => parse_count(text),
    }
}

/// Reads a label: the row of a table.
pub(crate) fn label(text: &str) -> Result<String, String> {
    match text.chars().count() {
        0 => Err("a label has at least one character".to_owned()),
        n if n > LABEL_MAX => Err(format!("a label of {n} characters: at most {LABEL_MAX}")),
        _ if text.contains(char::is_control) => {
            Err("a label is one line: it has no control characters".to_owned())
        }
        _ => Ok(text.to_owned()),
    }
}

/// Reads a character set's name.
pub(crate) fn charset(text: &str) -> Result<String, String> {
    let fits = (1..=CHARSET_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if fits { Ok(text.to_owned()) } else { Err(format!("'{text}' is no character set's name")) }
}

/// Reads a note: a name and its text.
pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("'{text}' is not KEY=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn clients_are_read_in_every_form() {
        for (text, expected) in [
            ("64", vec![64]),
            ("1,2,4", vec![1, 2, 4]),
            ("8..256", vec![8, 16, 32, 64, 128, 256]),
            ("8..200", vec![8, 16, 32, 64, 128, 200]),
            ("8..64+8", vec![8, 16, 24, 32, 40, 48, 56, 64]),
            ("8..20+8", vec![8, 16, 20]),
            ("8..8", vec![8]),
            ("4,1..4,2", vec![1, 2, 4]),
            ("1, 1k", vec![1, 1000]),
            ("1..3", vec![1, 2, 3]),
        ] {
            assert_eq!(text.parse(), Ok(Clients(expected)), "{text}");
        }
    }

    #[test]
    fn rates_are_read_as_clients_are() {
        for (text, expected) in [
            ("10k", vec![10_000.0]),
            ("1k,2k", vec![1000.0, 2000.0]),
            ("1k..16k", vec![1000.0, 2000.0, 4000.0, 8000.0, 16_000.0]),
            ("1k..2.5k+500", vec![1000.0, 1500.0, 2000.0, 2500.0]),
            ("0.5..2", vec![0.5, 1.0, 2.0]),
            ("0.001", vec![0.001]),
        ] {
            assert_eq!(text.parse(), Ok(Rates(expected)), "{text}");
        }
    }

    #[test]
    fn lists_refuse_nonsense() {
        let both =
            ["", ",", "0", "-1", "x", "8..", "..8", "256..8", "1..8+0", "8+8", "1..2..3", "1e3"];
        for text in both.into_iter().chain(["1.5", "99999999999", "1..1000000+1"]) {
            assert!(text.parse::<Clients>().is_err(), "{text}");
        }
        for text in both.into_iter().chain(["0.0001", "11M", "NaN"]) {
            assert!(text.parse::<Rates>().is_err(), "{text}");
        }
    }

    #[test]
    fn labels_and_charsets_are_lines_of_bounded_length() {
        assert!(label("8.0.33+ps").is_ok() && label(&"x".repeat(200)).is_ok());
        for text in ["", "a\nb", "\u{1b}[2J", &"x".repeat(201)] {
            assert!(label(text).is_err(), "{text:?}");
        }
        assert!("utf8mb4".parse::<CharsetName>().is_ok());
        for text in ["", "x'y", "latin 1", &"x".repeat(33)] {
            assert!(text.parse::<CharsetName>().is_err(), "{text:?}");
        }
    }

    #[derive(Debug, serde::Deserialize)]
    struct One<T> {
        x: T,
    }

    fn read<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
        toml::from_str::<One<T>>(text).map(|one| one.x).map_err(|e| e.message().to_owned())
    }

    #[test]
    fn a_profiles_numbers_texts_and_lists_are_read_as_flags() {
        for text in ["x = 16_000_000", "x = \"16M\""] {
            assert_eq!(read(text), Ok(OpCount(16_000_000)));
        }
        for text in ["x = 0.5", "x = \"0.5\"", "x = \"500ms\""] {
            assert_eq!(read(text), Ok(Length::<500>(Duration::from_millis(500))));
        }
        assert_eq!(read("x = [64, 1, 4]"), Ok(Clients(vec![1, 4, 64])));
        assert_eq!(read("x = 3"), Ok(Clients(vec![3])));
        assert_eq!(read("x = 500"), Ok(Rates(vec![500.0])));
        for (text, says) in [
            ("x = 1.5", "1.5"),
            ("x = -1", "-1"),
            ("x = true", "'true'"),
            ("x = 0", "0 ops"),
            ("x = {}", "a number or a text"),
        ] {
            assert!(read::<OpCount>(text).is_err_and(|e| e.contains(says)), "{text}");
        }
        assert!(read::<Whole<1, 5>>("x = 6").is_err_and(|e| e.contains("from 1 to 5")));
        assert!(read::<Phase>("x = \"9000h\"").is_err_and(|e| e.contains("a year")));
    }

    proptest! {
        #[test]
        fn any_text_makes_a_bounded_ascending_list(text in "[0-9.,+kMGi ]{0,40}|\\PC{0,30}") {
            if let Ok(Rates(rates)) = text.parse() {
                prop_assert!(!rates.is_empty() && rates.len() <= 20_001);
                prop_assert!(rates.windows(2).all(|pair| pair[0] < pair[1]));
                prop_assert!(rates.iter().all(|rate| *rate > 0.0 && *rate <= RATE_MAX as f64));
            }
            let _ = text.parse::<Clients>();
        }

        #[test]
        fn both_ends_of_a_range_are_steps(from in 1_u32..1000, more in 0_u32..100_000) {
            let Clients(steps) = format!("{from}..{}", from + more).parse().expect("a range");
            prop_assert_eq!(steps.first(), Some(&from));
            prop_assert_eq!(steps.last(), Some(&(from + more)));
            prop_assert!(steps.windows(2).all(|w| w[0] < w[1]));
        }

        #[test]
        fn rates_that_are_printed_read_back(thousandths in prop::collection::btree_set(1_u64..=RATE_MAX * FINE, 1..20)) {
            let rates: Vec<f64> = thousandths.iter().map(|n| *n as f64 / FINE as f64).collect();
            let text: Vec<String> = rates.iter().map(f64::to_string).collect();
            prop_assert_eq!(text.join(",").parse(), Ok(Rates(rates)));
        }
    }
}
