//! Where the values of a statement's `?` come from.

use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use super::options::{Amount, Options};

/// Where a parameter's value comes from. Parameters are counted from 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Param {
    /// An id of the table, drawn anew: `{ key = "default" }`.
    Key(KeySource),
    /// An id of this client's own share of the table, one of as many shares as there are
    /// clients: `{ slice = "default" }`.
    Slice(KeySource),
    /// An id from which so many still follow in the table: `{ range_start = { len = 100 } }`.
    RangeStart(RangeStart),
    /// The end of a range that begins with another parameter:
    /// `{ range_end = { of = 1, len = 100 } }`.
    RangeEnd(RangeEnd),
    /// A number between two: `{ between = { min = 1, max = 200 } }`.
    Between(Between),
    /// A value for `k`, as `--distribution` has it: `"k"`.
    K,
    /// A number above all ids of the table, which no other client takes: `"serial"`.
    Serial,
    /// The value of another parameter of this statement: `{ same_as = 1 }`.
    SameAs(usize),
    /// The value of a parameter of the statement before: `{ previous = 1 }`.
    Previous(usize),
    /// A value for `c`, of no id in particular: `"c"`.
    C,
    /// A self-proving value of `c` for the id of another parameter: `{ c_of = 1 }`.
    COf(usize),
    /// A value for `pad`: `"pad"`.
    Pad,
    /// So many random digits: `{ digits = 32 }`.
    Digits(usize),
    /// Always the same: `{ const = 5 }`, `{ const = "text" }`.
    Const(Const),
}

/// Which distribution a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum KeySource {
    /// That of `--distribution`.
    #[default]
    Default,
    /// Its own, whatever the command line says.
    Own(Distribution),
}

impl TryFrom<String> for KeySource {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        if text == "default" {
            return Ok(KeySource::Default);
        }
        text.parse().map(KeySource::Own)
    }
}

impl From<KeySource> for String {
    fn from(source: KeySource) -> String {
        match source {
            KeySource::Default => "default".to_owned(),
            KeySource::Own(distribution) => distribution.to_string(),
        }
    }
}

/// See [`Param::RangeStart`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangeStart {
    /// Ids of the range, the first one included.
    pub len: Amount,
    /// How it is drawn.
    #[serde(default)]
    pub distribution: KeySource,
}

/// See [`Param::RangeEnd`]: exactly one of `len` and `delta`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangeEnd {
    /// The parameter that the range begins with.
    pub of: usize,
    /// Values in the range, both ends included.
    pub len: Option<Amount>,
    /// The end is so much more than the begin.
    pub delta: Option<Amount>,
}

impl RangeEnd {
    /// What is added to the begin.
    pub(crate) fn add(&self, options: &Options) -> u64 {
        match (&self.len, &self.delta) {
            (Some(len), _) => len.value(options).saturating_sub(1),
            (None, Some(delta)) => delta.value(options),
            (None, None) => 0,
        }
    }
}

/// See [`Param::Between`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Between {
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// How it is drawn; uniform unless said otherwise, whatever `--distribution` is.
    #[serde(default = "uniform")]
    pub distribution: KeySource,
}

fn uniform() -> KeySource {
    KeySource::Own(Distribution::Uniform)
}

/// A constant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a whole number or a text")]
pub enum Const {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

impl Param {
    /// The parameter of the same statement that the value is made from.
    pub(super) fn refers_to(&self) -> Option<usize> {
        match self {
            Param::SameAs(of) | Param::COf(of) => Some(*of),
            Param::RangeEnd(end) => Some(end.of),
            _ => None,
        }
    }

    /// The same with what it refers to elsewhere.
    pub(super) fn moved(mut self, place: impl Fn(usize) -> usize) -> Param {
        match &mut self {
            Param::SameAs(of) | Param::COf(of) => *of = place(*of),
            Param::RangeEnd(end) => end.of = place(end.of),
            _ => {}
        }
        self
    }

    /// Whether values are made from those of other parameters, after these are drawn.
    pub(crate) fn is_derived(&self) -> bool {
        self.refers_to().is_some() || matches!(self, Param::Previous(_))
    }

    /// Whether values are whole numbers that can be counted on from.
    fn is_number(&self) -> bool {
        !matches!(self, Param::C | Param::COf(_) | Param::Pad | Param::Digits(_) | Param::Const(_))
    }

    /// Whether values are whole numbers that can be added up.
    pub(super) fn is_counted(&self) -> bool {
        self.is_number() || matches!(self, Param::Const(Const::Number(_)))
    }

    /// What is wrong with the parameter at `at` (from 0) of these.
    pub(super) fn check(params: &[Param], at: usize, options: &Options) -> Result<(), String> {
        let Some(param) = params.get(at) else { return Ok(()) };
        if let Some(of) = param.refers_to() {
            let target = of.checked_sub(1).and_then(|i| params.get(i));
            match target {
                None => return Err(format!("{of} is no parameter (they are counted from 1)")),
                Some(target) if !target.is_number() => {
                    return Err(format!("parameter {of} holds no id or number"));
                }
                // Made in order, after all that are drawn.
                Some(target) if target.is_derived() && of > at => {
                    return Err(format!("parameter {of} is made from another one later"));
                }
                Some(_) => {}
            }
        }
        match param {
            Param::RangeEnd(end) => match (&end.len, &end.delta) {
                (Some(amount), None) | (None, Some(amount)) => amount.check(options),
                _ => Err("range_end has either a len or a delta".to_owned()),
            },
            Param::RangeStart(start) => start.len.check(options),
            Param::Between(Between { min, max, .. }) if min > max => {
                Err(format!("there is nothing between {min} and {max}"))
            }
            Param::Digits(n) if !(1..=DIGITS_MAX).contains(n) => {
                Err(format!("digits = {n} is not within 1 to {DIGITS_MAX}"))
            }
            _ => Ok(()),
        }
    }
}

/// The longest text of random digits.
const DIGITS_MAX: usize = 65_535;
