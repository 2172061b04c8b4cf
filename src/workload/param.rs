//! Where the values of a statement's `?` come from.

use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use super::options::{Amount, Options, ensure};

/// The longest text of random digits.
const DIGITS_MAX: usize = 65_535;

/// The source of a parameter's value. Parameters are counted from 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Param {
    /// An id of the table, drawn anew: `{ key = "default" }`.
    Key(KeySource),
    /// An id of this client's own share of the table: `{ slice = "default" }`.
    Slice(KeySource),
    /// An id from which so many still follow in the table: `{ range_start = { len = 100 } }`.
    RangeStart {
        /// The first one included.
        len: Amount,
        #[serde(default)]
        distribution: KeySource,
    },
    /// The end of a range from another parameter on: `{ range_end = { of = 1, len = 100 } }`.
    RangeEnd(RangeEnd),
    /// A number between two: `{ between = { min = 1, max = 200 } }`.
    Between {
        min: u64,
        max: u64,
        /// Whatever `--distribution` is.
        #[serde(default = "uniform")]
        distribution: KeySource,
    },
    /// A value for `k`, as `--distribution` has it: `"k"`.
    K,
    /// A number above all ids, which no other client takes: `"serial"`.
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

/// The distribution that a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum KeySource {
    /// That of `--distribution`.
    #[default]
    Default,
    Own(Distribution),
}

impl TryFrom<String> for KeySource {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "default" { Ok(KeySource::Default) } else { text.parse().map(KeySource::Own) }
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

impl KeySource {
    /// Gives the distribution, where that of `--distribution` is this.
    pub(crate) fn or(self, usual: Distribution) -> Distribution {
        match self {
            KeySource::Default => usual,
            KeySource::Own(distribution) => distribution,
        }
    }
}

/// The end of a range: exactly one of `len` and `delta`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RangeEnd {
    pub of: usize,
    /// Values in the range, both ends included.
    pub len: Option<Amount>,
    /// The end is so much more than the begin.
    pub delta: Option<Amount>,
}

impl RangeEnd {
    pub(crate) fn add(&self, options: &Options) -> u64 {
        match &self.len {
            Some(len) => len.value(options).saturating_sub(1),
            None => self.delta.as_ref().expect("a len or a delta").value(options),
        }
    }
}

fn uniform() -> KeySource {
    KeySource::Own(Distribution::Uniform)
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a whole number or a text")]
pub(crate) enum Const {
    Number(i64),
    Text(String),
}

/// Checks that there is a parameter for each `?`, and that each can be made.
pub(super) fn check(sql: &str, params: &[Param], options: &Options) -> Result<(), String> {
    let (marks, there) = (sql.matches('?').count(), params.len());
    let hint = "a ? of the text itself: { const = \"?\" }";
    ensure(marks == there, format_args!("{marks} `?` but {there} params ({hint})"))?;
    (0..there).try_for_each(|at| params[at].check(at, params, options))
}

impl Param {
    /// Gives the parameter of the same statement that the value is made from.
    pub(super) fn refers_to(&self) -> Option<usize> {
        match self {
            Param::SameAs(of) | Param::COf(of) => Some(*of),
            Param::RangeEnd(end) => Some(end.of),
            _ => None,
        }
    }

    /// Makes the same with what it refers to elsewhere.
    pub(super) fn moved(&self, place: impl Fn(usize) -> usize) -> Param {
        let mut moved = self.clone();
        match &mut moved {
            Param::SameAs(of) | Param::COf(of) => *of = place(*of),
            Param::RangeEnd(end) => end.of = place(end.of),
            _ => {}
        }
        moved
    }

    /// Tells whether values can be counted on from.
    fn is_number(&self) -> bool {
        !matches!(self, Param::C | Param::COf(_) | Param::Pad | Param::Digits(_) | Param::Const(_))
    }

    /// Tells whether values can be added up.
    pub(super) fn is_counted(&self) -> bool {
        self.is_number() || matches!(self, Param::Const(Const::Number(_)))
    }

    fn check(&self, at: usize, params: &[Param], options: &Options) -> Result<(), String> {
        if let Some(of) = self.refers_to() {
            let target = of.checked_sub(1).and_then(|i| params.get(i));
            let none = || format!("{of} is no parameter (they are counted from 1)");
            let target = target.ok_or_else(none)?;
            ensure(target.is_number(), format_args!("parameter {of} holds no id or number"))?;
            // Made in order, after all that are drawn.
            let made = target.refers_to().is_some() || matches!(target, Param::Previous(_));
            let late = format_args!("parameter {of} is made from another one later");
            ensure(!made || of <= at, late)?;
        }
        match self {
            Param::RangeEnd(end) => match (&end.len, &end.delta) {
                (Some(amount), None) | (None, Some(amount)) => amount.check(options),
                _ => Err("range_end has either a len or a delta".to_owned()),
            },
            Param::RangeStart { len, .. } => len.check(options),
            Param::Between { min, max, .. } => {
                ensure(min <= max, format_args!("there is nothing between {min} and {max}"))
            }
            Param::Digits(n) => {
                let bounds = format_args!("digits = {n} is not within 1 to {DIGITS_MAX}");
                ensure((1..=DIGITS_MAX).contains(n), bounds)
            }
            _ => Ok(()),
        }
    }
}
