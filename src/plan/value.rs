//! Values of the knobs: one parser each for flags and profiles.

use std::collections::BTreeSet;
use std::fmt;
use std::iter::successors;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Value;

use super::limits::PHASE_MAX;
use crate::terms::units::{self, parse_count, parse_duration, parse_thousandths};
use crate::terms::{
    Ahi, Arrival, Choice, Class, Format, Gate, InsertWord, Launcher, Layout, OnError, Order,
    Picture, SpreadChoice, StatementMode, Warm,
};
use crate::workload::{Distribution, ROWS_MAX, TABLES_MAX};

/// Upper limit on clients; guards against typing errors.
pub const CLIENTS_MAX: u32 = 1_000_000;
/// Upper limit on ops a second; guards against typing errors.
pub(crate) const RATE_MAX: u64 = 10_000_000;
/// Rates are read in thousandths.
const FINE: u64 = 1_000;
/// Upper limit on the steps of one list.
const STEPS_MAX: usize = 10_000;
/// Upper limit on the characters of a label: it fills one cell of a table.
const LABEL_MAX: usize = 200;
/// Upper limit on the characters of a character set's name.
const CHARSET_MAX: usize = 32;

macro_rules! as_flags {
    ($($value:ty $([$($generic:tt)+])?),+) => {$(
        impl<'de $(, $($generic)+)?> Deserialize<'de> for $value {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = as_flag(&Value::deserialize(from)?).map_err(D::Error::custom)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    )+};
}

macro_rules! values {
    ($($(#[$about:meta])* $name:ident($inner:ty) = $parse:expr;)+) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Serialize)]
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
    /// Ops a second, a step each, from one in a thousand seconds; lists as in [`Clients`].
    Rates(Vec<f64>) = rates;
    /// None for `auto`: the size of the tables.
    RowsOrAuto(Option<u64>) = rows_or_auto;
    /// A workload's option: a number, or a switch as 1 and 0.
    OptionValue(u64) = option_value;
    /// A character set's name: it becomes part of SQL.
    CharsetName(String) = charset;
    Size(u64) = size;
}

as_flags!(
    Gate, ErrorsMax, Distribution,
    Whole<MIN, MAX> [const MIN: u64, const MAX: u64], Length<MS> [const MS: u64]
);

/// Passes the words of choices to clap, for flags, help and completions.
macro_rules! flags_choose {
    ($($choice:ty),+) => {$(
        impl ValueEnum for $choice {
            fn value_variants<'a>() -> &'a [Self] {
                Self::ALL
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                let (word, help) = self.told();
                Some(PossibleValue::new(word).help(help))
            }
        }
    )+};
}

flags_choose! {
    Arrival, SpreadChoice, Order, StatementMode, OnError, Warm, Ahi, Class, Format, Layout, Picture,
    InsertWord, Launcher
}

/// A count within bounds, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole<const MIN: u64, const MAX: u64>(pub u64);

pub type TableCount = Whole<1, { TABLES_MAX as u64 }>;
pub type RowCount = Whole<1, ROWS_MAX>;
pub type OpCount = Whole<1, { u64::MAX }>;
/// Upper limit on the repeats of a cell.
pub(crate) const REPEATS_MAX: u32 = 1000;
pub type Repeats = Whole<1, { REPEATS_MAX as u64 }>;
pub type Threads = Whole<1, 1024>;
/// Upper limit on the connections of a fill; guards against typing errors. Each has a thread and a lock.
pub(crate) const JOBS_MAX: u32 = 256;
/// Bytes of an extended INSERT: at least sysbench's longest row, at most the limit of `max_allowed_packet`.
pub type InsertBytes = Whole<1024, { 1 << 30 }>;

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    pub(crate) fn small(self) -> u32 {
        u32::try_from(self.0).expect("its bounds are smaller")
    }
}

impl<const MIN: u64, const MAX: u64> FromStr for Whole<MIN, MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let n = parse_count(text)?;
        let (min, max) = (units::count(MIN), units::count(MAX));
        let fits = (MIN..=MAX).contains(&n).then_some(Whole(n));
        fits.ok_or_else(|| format!("'{text}' is no whole number from {min} to {max}"))
    }
}

/// A duration of at least `MIN` milliseconds. The upper limit guards against typing errors and keeps sums in
/// range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Length<const MS: u64>(pub Duration);

pub(crate) type Phase = Length<0>;

impl<const MS: u64> FromStr for Length<MS> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (length, min) = (parse_duration(text)?, Duration::from_millis(MS));
        let least = units::duration(min);
        match length {
            _ if length < min => {
                Err(format!("'{text}' is too short: at least {least}, such as 1s"))
            }
            _ if length > PHASE_MAX => Err(format!("'{text}' is longer than a year")),
            _ => Ok(Length(length)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum ErrorsMax {
    Count(u64),
    Percent(f64),
}

impl ErrorsMax {
    /// Ops from which a share is judged, unless at the end: one error in two ops is no share.
    const JUDGED_FROM: u64 = 1000;

    /// Returns whether there are too many errors beside `ops` good ones; `last` if no more follow.
    pub fn exceeded(self, errors: u64, ops: u64, last: bool) -> bool {
        match self {
            ErrorsMax::Count(max) => errors > max,
            ErrorsMax::Percent(max) => {
                let all = errors.saturating_add(ops);
                let judged = last || all >= Self::JUDGED_FROM;
                judged && errors as f64 * 100.0 > max * all as f64
            }
        }
    }
}

impl fmt::Display for ErrorsMax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorsMax::Count(max) => f.write_str(&units::count(*max)),
            ErrorsMax::Percent(max) => write!(f, "{max}%"),
        }
    }
}

impl FromStr for ErrorsMax {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(number) = text.strip_suffix('%') else {
            return parse_count(text).map(ErrorsMax::Count);
        };
        let percent = number.trim().parse().ok().filter(|n| (0.0..=100.0).contains(n));
        percent.map(ErrorsMax::Percent).ok_or_else(|| format!("'{text}' is no share: 0% to 100%"))
    }
}

/// `--scale`: a factor of at most 1 for rows, times, numbers of ops and sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale(f64);

impl Default for Scale {
    fn default() -> Self {
        Scale(1.0)
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let factor = text.parse().ok().filter(|factor| *factor > 0.0 && *factor <= 1.0);
        factor.map(Scale).ok_or_else(|| format!("'{text}' is no scale: above 0, up to 1"))
    }
}

impl Scale {
    pub(crate) fn factor(self) -> f64 {
        self.0
    }

    pub(crate) fn is_full(self) -> bool {
        (self.0 - 1.0).abs() < f64::EPSILON
    }

    pub(super) fn count(self, n: u64, min: u64) -> u64 {
        if self.is_full() { n } else { ((n as f64 * self.0).round() as u64).max(min.min(n)) }
    }

    pub fn rows(self, rows: u64) -> u64 {
        self.count(rows, 1000)
    }

    pub fn time(self, time: Duration) -> Duration {
        self.duration(time, 1000)
    }

    pub(crate) fn warmup(self, warmup: Duration) -> Duration {
        self.duration(warmup, 200)
    }

    fn duration(self, length: Duration, least_ms: u64) -> Duration {
        // Whole milliseconds are easy to read.
        let scaled = Duration::from_millis((length.as_secs_f64() * self.0 * 1e3).round() as u64);
        let least = Duration::from_millis(least_ms).min(length);
        if self.is_full() { length } else { scaled.max(least) }
    }

    /// Scales an option that is a size in bytes or a number of pages, down to what servers of all versions
    /// take.
    pub fn size(self, option: &str, bytes: u64) -> u64 {
        const MIB: u64 = 1 << 20;
        if self.is_full() {
            return bytes;
        }
        let option = option.replace('-', "_");
        let min = match option.strip_prefix("loose_").unwrap_or(&option) {
            // More free pages than the pool has would leave nothing in it.
            "innodb_lru_scan_depth" => return self.count(bytes, LRU_SCAN_DEPTH_MIN),
            // 5 MiB in all versions so far; more with pages above 16 KiB.
            "innodb_buffer_pool_size" | "innodb_redo_log_capacity" => 8 * MIB,
            "innodb_log_file_size" => 4 * MIB,
            _ => MIB,
        };
        // Servers round to whole blocks.
        (self.count(bytes, min) / MIB * MIB).max(min.min(bytes))
    }
}

const LRU_SCAN_DEPTH_MIN: u64 = 100;

/// Parses a size in the notation of server options: K, M, G and T are powers of 1024.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = ["", "K", "M", "G", "T"];
    let unit = unit.iter().position(|unit| text[digits.len()..].eq_ignore_ascii_case(unit))?;
    digits.parse::<u64>().ok()?.checked_mul(1 << (10 * unit))
}

fn size(text: &str) -> Result<u64, String> {
    bytes(text).ok_or_else(|| "no size: a number, then nothing or K, M, G, T".to_owned())
}

pub(super) fn serialize_display<T: fmt::Display, S: Serializer>(
    value: &T,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

pub(super) fn as_flag(value: &Value) -> Result<String, &'static str> {
    Ok(match value {
        Value::String(text) => text.clone(),
        Value::Float(n) => n.to_string(),
        Value::Array(values) => {
            values.iter().map(as_flag).collect::<Result<Vec<_>, _>>()?.join(",")
        }
        Value::Table(_) | Value::Datetime(_) => {
            return Err("a number or a text is wanted, as the flag has it");
        }
        Value::Boolean(on) => on.to_string(),
        Value::Integer(n) => n.to_string(),
    })
}

pub(super) fn items(value: Value) -> Vec<Value> {
    if let Value::Array(values) = value { values } else { vec![value] }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Names(pub Vec<String>);

impl TryFrom<Value> for Names {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Names, &'static str> {
        let text = |name| match name {
            Value::String(text) => Ok(text),
            _ => Err("a name or a list of names is wanted"),
        };
        items(value).into_iter().map(text).collect::<Result<_, _>>().map(Names)
    }
}

impl Names {
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.texts().any(|known| known == name)
    }
}

fn clients(text: &str) -> Result<Vec<u32>, String> {
    let one = |text: &str| Ok(text.parse::<Whole<1, { CLIENTS_MAX as u64 }>>()?.0);
    Ok(list(text, one)?.into_iter().map(|n| n as u32).collect())
}

fn rates(text: &str) -> Result<Vec<f64>, String> {
    let one = |text: &str| match parse_thousandths(text)? {
        n if (1..=RATE_MAX * FINE).contains(&n) => Ok(n),
        _ => Err(format!("'{text}' is no rate from 0.001 to {} a second", units::count(RATE_MAX))),
    };
    Ok(list(text, one)?.into_iter().map(|n| n as f64 / FINE as f64).collect())
}

fn list(text: &str, one: impl Fn(&str) -> Result<u64, String>) -> Result<BTreeSet<u64>, String> {
    let one = |text: &str| one(text.trim());
    let mut numbers = BTreeSet::new();
    for part in text.split(',').map(str::trim) {
        let refused = |meant: String| format!("'{part}' is no list of numbers; {meant}?");
        if let Some(meant) = meant(part, |text| one(text).is_ok()) {
            return Err(refused(meant));
        }
        let Some((from, to)) = part.split_once("..") else {
            let ends = part.split_once('.').filter(|(from, to)| one(from).and(one(to)).is_ok());
            let meant = ends.map(|(from, to)| refused(format!("{from}..{to}")));
            numbers.insert(one(part).map_err(|why| meant.unwrap_or(why))?);
            continue;
        };
        let (to, step) = to.split_once('+').map_or((to, None), |(to, step)| (to, Some(step)));
        if from.trim().is_empty() || to.trim().is_empty() {
            return Err(format!("'{part}' needs a number on both sides of .."));
        }
        let (first, last, step) = (one(from)?, one(to)?, step.map(one).transpose()?);
        if first > last {
            let (from, to) = (from.trim(), to.trim());
            return Err(format!("'{part}' runs backwards; {to}..{from}?"));
        }
        let next = |at: &u64| Some(at + step.unwrap_or(*at)).filter(|next| *next < last);
        numbers.extend(successors(Some(first), next).take(STEPS_MAX + 1));
        numbers.insert(last);
        if numbers.len() > STEPS_MAX {
            return Err(format!("'{text}' makes more than {STEPS_MAX} steps"));
        }
    }
    Ok(numbers)
}

/// Translates a range or list in another notation: `8-64`, `1:8`, `8 16`, and `8-64-8` with a step.
fn meant(part: &str, is_number: impl Fn(&str) -> bool) -> Option<String> {
    let split = |marks: &[&str]| {
        let mark = marks.iter().find(|mark| part.contains(**mark))?;
        let numbers: Vec<&str> =
            part.split(mark).map(str::trim).filter(|n| !n.is_empty()).collect();
        (numbers.len() > 1 && numbers.iter().all(|n| is_number(n))).then_some(numbers)
    };
    let range =
        split(&["..=", "...", "…", "-", "–", ":", " to "]).and_then(|numbers| match numbers[..] {
            [from, to] => Some(format!("{from}..{to}")),
            [from, to, step] => Some(format!("{from}..{to}+{step}")),
            _ => None,
        });
    range.or_else(|| split(&[";", "/", "|", " "]).map(|numbers| numbers.join(",")))
}

fn rows_or_auto(text: &str) -> Result<Option<u64>, String> {
    if text == "auto" { Ok(None) } else { Ok(Some(text.parse::<RowCount>()?.0)) }
}

fn option_value(text: &str) -> Result<u64, String> {
    match text {
        "true" | "on" => Ok(1),
        "false" | "off" => Ok(0),
        _ => parse_count(text),
    }
}

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

/// Reads a name in a profile: it is a label, too.
pub(super) fn named<'de, D: Deserializer<'de>, T: From<String>>(from: D) -> Result<T, D::Error> {
    label(&String::deserialize(from)?).map(T::from).map_err(D::Error::custom)
}

pub(super) fn command<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let words = Vec::<String>::deserialize(from)?;
    let one = words.first().is_some_and(|program| !program.is_empty());
    if one { Ok(words) } else { Err(D::Error::custom("a command is a program and its arguments")) }
}

pub(crate) fn charset(text: &str) -> Result<String, String> {
    let fits = (1..=CHARSET_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if fits { Ok(text.to_owned()) } else { Err(format!("'{text}' is no character set's name")) }
}

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
    fn a_list_in_another_notation_is_named_in_ours() {
        for (text, ours) in [
            ("8-64", "8..64?"),
            ("8:64", "8..64?"),
            ("8..=64", "8..64?"),
            ("8...64", "8..64?"),
            ("8 to 64", "8..64?"),
            ("8-64-8", "8..64+8?"),
            ("8 16 32", "8,16,32?"),
            ("8;16", "8,16?"),
            ("1,8-1k", "8..1k?"),
        ] {
            let refused = text.parse::<Clients>().expect_err(text);
            assert!(refused.ends_with(ours), "{text}: {refused}");
            let refused = text.parse::<Rates>().expect_err(text);
            assert!(refused.ends_with(ours), "{text}: {refused}");
        }
        for text in ["8 .. 64", "8, 16", " 8 "] {
            assert!(text.parse::<Clients>().is_ok(), "{text}");
        }
        assert!("8.64".parse::<Clients>().is_err_and(|refused| refused.ends_with("8..64?")));
        assert!("8.64".parse::<Rates>().is_ok());
        for text in ["8-x", "-8", "a b", "8-", "8.x"] {
            let refused = text.parse::<Clients>().expect_err(text);
            assert!(!refused.ends_with('?'), "{text}: {refused}");
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
            assert_eq!(read(text), Ok(Whole::<1, { u64::MAX }>(16_000_000)));
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
            ("x = 0", "from 1"),
            ("x = {}", "a number or a text"),
        ] {
            assert!(read::<OpCount>(text).is_err_and(|e| e.contains(says)), "{text}");
        }
        assert!(read::<Whole<1, 5>>("x = 6").is_err_and(|e| e.contains("1 to 5")));
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
        let half: Scale = "0.5".parse().expect("a scale");
        assert_eq!(half.time(Duration::from_micros(2_000_600)), Duration::from_secs(1));
        assert_eq!(scale.size("innodb-buffer-pool-size", 64 << 30), 65 << 20);
        assert_eq!(scale.size("loose_innodb_buffer_pool_size", 4 << 30), 8 << 20);
        assert_eq!(scale.size("innodb_buffer_pool_size", 5 << 20), 5 << 20);
        assert_eq!(scale.size("sort_buffer_size", 4 << 20), 1 << 20);
        assert_eq!(scale.size("loose_innodb_lru_scan_depth", 8192), 100);
        let full = Scale::default();
        assert_eq!(full.size("innodb_lru_scan_depth", 8192), 8192);
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

    #[test]
    fn limits_are_read_as_they_are_written() {
        for (text, limit) in [
            ("0", ErrorsMax::Count(0)),
            ("2k", ErrorsMax::Count(2000)),
            ("0.5%", ErrorsMax::Percent(0.5)),
            ("100%", ErrorsMax::Percent(100.0)),
        ] {
            let read: ErrorsMax = text.parse().expect(text);
            assert_eq!(read, limit);
            assert_eq!(read.to_string().parse(), Ok(limit));
        }
        for text in ["", "%", "-1", "101%", "NaN%", "x"] {
            assert!(text.parse::<ErrorsMax>().is_err(), "{text}");
        }
    }

    #[test]
    fn one_more_than_the_limit_is_too_many() {
        assert!(!ErrorsMax::Count(3).exceeded(3, 0, true));
        assert!(ErrorsMax::Count(3).exceeded(4, 1_000_000, false));
        let one = ErrorsMax::Percent(1.0);
        assert!(!one.exceeded(1, 1, false) && one.exceeded(1, 1, true));
        assert!(!one.exceeded(10, 990, false) && one.exceeded(11, 990, false));
        assert!(!one.exceeded(0, 0, true));
    }
}
