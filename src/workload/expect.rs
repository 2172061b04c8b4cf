//! What every answer is held against, and what a success changes.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::options::{Amount, Options, ensure};

/// What an answer must be; anything else is an error, not a result. `"any"`, `{ rows = … }` or
/// `{ affected = … }`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    pub rows: Option<Count>,
    pub affected: Option<Count>,
    /// The first column is a `c` that must prove itself (tables of loadgen only).
    pub content: Option<Content>,
    /// The first column of the first row.
    pub value: Option<Amount>,
}

/// Reads an expectation or the word `any`.
pub(super) fn or_any<'de, D: Deserializer<'de>>(from: D) -> Result<Expect, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Word {
        Any,
    }
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "\"any\", { rows = … } or { affected = … }")]
    enum Form {
        Word(Word),
        Table(Expect),
    }
    match Form::deserialize(from)? {
        Form::Word(Word::Any) => Ok(Expect::default()),
        Form::Table(expect) if expect == Expect::default() => {
            Err(serde::de::Error::custom("an expectation has rows or affected, or is \"any\""))
        }
        Form::Table(expect) => Ok(expect),
    }
}

/// What the first column of an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Content {
    /// The self-proving `c` of the row whose id is the statement's first key.
    C,
}

/// A number of rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a number, an option, { min, max } or { per, times, limit }"
)]
pub(crate) enum Count {
    Exactly(Amount),
    /// One in so many of the table's rows, rounded down or up; so many times that, but no more than
    /// LIMIT: `{ per = 200 }`.
    Part {
        per: u64,
        #[serde(default = "once")]
        times: u64,
        limit: Option<u64>,
    },
    /// `{ min = 1, max = "range_size" }`, each of which may be left away.
    Within {
        #[serde(default = "none")]
        min: Amount,
        max: Option<Amount>,
    },
}

fn none() -> Amount {
    Amount::Number(0)
}

fn once() -> u64 {
    1
}

impl Count {
    /// Gives the smallest and the largest number; `held` is the rows that each table holds, if they
    /// are known.
    pub(crate) fn bounds(&self, options: &Options, held: Option<u64>) -> (u64, u64) {
        match self {
            Count::Exactly(amount) => (amount.value(options), amount.value(options)),
            Count::Within { min, max } => {
                let max = max.as_ref().map_or(u64::MAX, |max| max.value(options));
                (min.value(options), max)
            }
            Count::Part { per, times, limit } => {
                let limit = limit.unwrap_or(u64::MAX);
                let Some(held) = held else { return (0, limit) };
                let of = |n: u64| n.saturating_mul(*times).min(limit);
                (of(held / per), of(held.div_ceil(*per)))
            }
        }
    }

    fn check(&self, options: &Options) -> Result<(), String> {
        match self {
            Count::Exactly(amount) => amount.check(options),
            Count::Within { min, max } => {
                std::iter::once(min).chain(max).try_for_each(|bound| bound.check(options))?;
                let (min, max) = self.bounds(options, None);
                ensure(min <= max, format_args!("no number is {min} to {max}"))
            }
            Count::Part { per, .. } => ensure(*per > 0, "per = 0 divides nothing"),
        }
    }
}

impl Expect {
    pub(super) fn check(&self, options: &Options) -> Result<(), String> {
        let both = self.rows.is_some() && self.affected.is_some();
        ensure(!both, "rows are returned or affected, not both")?;
        let of_rows = self.content.is_some() || self.value.is_some();
        ensure(self.rows.is_some() || !of_rows, "content and value are those of rows returned")?;
        self.rows.iter().chain(&self.affected).try_for_each(|count| count.check(options))?;
        self.value.iter().try_for_each(|value| value.check(options))
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Count::Exactly(amount) => write!(f, "{amount}"),
            Count::Within { min, max: None } => write!(f, "{min} or more"),
            Count::Within { min, max: Some(max) } => write!(f, "{min} to {max}"),
            Count::Part { per, times, limit } => {
                if let Some(limit) = limit {
                    write!(f, "up to {limit} of ")?;
                }
                match times {
                    1 => write!(f, "1/{per} of the table's"),
                    times => write!(f, "{times} × 1/{per} of the table's"),
                }
            }
        }
    }
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.rows, &self.affected) {
            (Some(rows), _) => {
                let one = matches!(rows, Count::Exactly(Amount::Number(1)));
                write!(f, "{rows} row{}", if one { "" } else { "s" })?;
                if self.content.is_some() {
                    f.write_str(", c proves itself")?;
                }
                self.value.iter().try_for_each(|value| write!(f, ", value {value}"))
            }
            (None, Some(affected)) => write!(f, "{affected} affected"),
            (None, None) => f.write_str("anything"),
        }
    }
}

/// What a success adds to the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Effect {
    #[default]
    None,
    /// Rows have other values, but not of `k`.
    Update,
    /// The sum of `k` grows by so much a row.
    AddK(i64),
    /// One row's `c` has another proving value.
    SetC,
    /// New rows, with a `k` that is not known.
    Insert,
    /// New rows, whose `k` is this parameter, counted from 1 (within the list, if there is one).
    InsertK(usize),
    /// Rows are gone, and with them a `k` that nobody has read.
    Delete,
}

impl Effect {
    pub(super) fn is_none(&self) -> bool {
        *self == Effect::None
    }
}
