//! What every answer is held against, and what a success changes.

use serde::{Deserialize, Serialize};

use super::options::{Amount, Options};

/// What an answer must be; anything else is an error, not a result. `"any"`, `{ rows = … }` or
/// `{ affected = … }`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Form")]
pub struct Expect {
    /// Rows returned.
    pub rows: Option<Count>,
    /// Rows affected.
    pub affected: Option<Count>,
    /// Whether the first column is a `c` that must prove itself (tables of loadgen only).
    pub content: Option<Content>,
    /// What the first column of the first row must be.
    pub value: Option<Amount>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "\"any\", { rows = … } or { affected = … }")]
enum Form {
    Word(String),
    Table(Table),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    rows: Option<Count>,
    affected: Option<Count>,
    content: Option<Content>,
    value: Option<Amount>,
}

impl TryFrom<Form> for Expect {
    type Error = String;

    fn try_from(form: Form) -> Result<Expect, String> {
        let Table { rows, affected, content, value } = match form {
            Form::Word(word) if word == "any" => return Ok(Expect::default()),
            Form::Word(word) => return Err(format!("'{word}' is no expectation; \"any\" is one")),
            Form::Table(table) => table,
        };
        match (&rows, &affected) {
            (Some(_), Some(_)) => Err("rows are returned or affected, not both".to_owned()),
            (None, None) => Err("an expectation has rows or affected, or is \"any\"".to_owned()),
            (None, Some(_)) if content.is_some() || value.is_some() => {
                Err("content and value are those of rows returned".to_owned())
            }
            _ => Ok(Expect { rows, affected, content, value }),
        }
    }
}

/// What the first column of an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// The self-proving `c` of the row whose id is the statement's first key.
    C,
}

/// How many rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a number, an option, { min, max } or { per, times, limit }")]
pub enum Count {
    /// Exactly so many.
    Exactly(Amount),
    /// A part of the table's rows.
    Part(Part),
    /// Within bounds.
    Within(Within),
}

/// `{ min = 1, max = "range_size" }`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Within {
    /// At least; 0 if left away.
    #[serde(default = "none")]
    pub min: Amount,
    /// At most; no bound if left away.
    pub max: Option<Amount>,
}

/// `{ per = 200 }`: one row in so many of the table's, rounded down or up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// One of so many.
    pub per: u64,
    /// So many times that.
    #[serde(default = "once")]
    pub times: u64,
    /// But no more than so many, as LIMIT has it.
    pub limit: Option<u64>,
}

fn none() -> Amount {
    Amount::Number(0)
}

fn once() -> u64 {
    1
}

impl Count {
    /// The smallest and the largest number; `held` is the rows that each table holds, if they
    /// are known.
    pub(crate) fn bounds(&self, options: &Options, held: Option<u64>) -> (u64, u64) {
        match self {
            Count::Exactly(amount) => (amount.value(options), amount.value(options)),
            Count::Within(Within { min, max }) => {
                let max = max.as_ref().map_or(u64::MAX, |max| max.value(options));
                (min.value(options), max)
            }
            Count::Part(part) => {
                let limit = part.limit.unwrap_or(u64::MAX);
                let Some(held) = held else { return (0, limit) };
                let of = |n: u64| n.saturating_mul(part.times).min(limit);
                let per = part.per.max(1);
                (of(held / per), of(held.div_ceil(per)))
            }
        }
    }

    fn check(&self, options: &Options) -> Result<(), String> {
        match self {
            Count::Exactly(amount) => amount.check(options),
            Count::Within(Within { min, max }) => {
                min.check(options)?;
                max.as_ref().map_or(Ok(()), |max| max.check(options))?;
                match self.bounds(options, None) {
                    (min, max) if min > max => Err(format!("no number is {min} to {max}")),
                    _ => Ok(()),
                }
            }
            Count::Part(part) if part.per == 0 => Err("per = 0 divides nothing".to_owned()),
            Count::Part(_) => Ok(()),
        }
    }
}

impl Expect {
    pub(super) fn check(&self, options: &Options) -> Result<(), String> {
        for count in self.rows.iter().chain(&self.affected) {
            count.check(options)?;
        }
        self.value.as_ref().map_or(Ok(()), |value| value.check(options))
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Count::Exactly(amount) => write!(f, "{amount}"),
            Count::Within(Within { min, max: None }) => write!(f, "{min} or more"),
            Count::Within(Within { min, max: Some(max) }) => write!(f, "{min} to {max}"),
            Count::Part(Part { per, times, limit }) => {
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

impl std::fmt::Display for Expect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.rows, &self.affected) {
            (Some(rows), _) => {
                let one = matches!(rows, Count::Exactly(Amount::Number(1)));
                write!(f, "{rows} row{}", if one { "" } else { "s" })?;
                if self.content.is_some() {
                    f.write_str(", c proves itself")?;
                }
                self.value.as_ref().map_or(Ok(()), |value| write!(f, ", value {value}"))
            }
            (None, Some(affected)) => write!(f, "{affected} affected"),
            (None, None) => f.write_str("anything"),
        }
    }
}

/// What a success adds to the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing.
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
