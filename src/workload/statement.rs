//! Statements: their SQL, the sources of their parameters, the expected answers and the effects of a
//! success.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::distribution::Distribution;
use super::options::{Amount, Options, check_option, ensure};
use super::sql;
use super::table::Schema;

/// The protocol's limit on parameters of a prepared statement.
const PARAMS_MAX: u64 = 65_535;
/// Longest statement, bytes: the client sends no longer packets.
pub(super) const STATEMENT_MAX: usize = 16 << 20;
/// First words of SQL that changes rows.
const WRITING: [&str; 6] = ["UPDATE", "INSERT", "DELETE", "REPLACE", "TRUNCATE", "LOAD"];
/// First words of SQL that runs other SQL, which may write.
const RUNNING: [&str; 2] = ["CALL", "EXECUTE"];
/// First words of SQL that begins or ends a transaction.
const CONTROL: [&str; 6] = ["BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "XA"];
/// First words of SQL that makes or chooses tables, views and routines.
const DEFINING: [&str; 4] = ["CREATE", "ALTER", "RENAME", "USE"];
const SHOWN: usize = 200;

/// One round trip.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Statement {
    /// `select`, `update`, `insert`, `delete` or `other`; if left out, by its first word, the verb behind the tables of WITH, or a write behind SET STATEMENT or ANALYZE
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<StatementKind>,
    /// Required: `{table}` stands for the table, `{list}` for the list, `?` outside of quotes for a parameter.
    #[serde(default)]
    pub sql: String,
    /// One for each `?` outside of the list, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
    /// The text for `{list}`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<List>,
    /// Repeats in an op, each with values of its own [default: 1]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Amount>,
    /// Repeated together with the statement before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_previous: bool,
    /// The required answer, below; `"any"` by default
    #[serde(default, deserialize_with = "or_any")]
    pub expect: Expect,
    /// With this option on, it is no error if there are fewer rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_if: Option<String>,
    /// The change by a success, below
    #[serde(default, skip_serializing_if = "Effect::is_none")]
    pub effect: Effect,
}

/// The text for `{list}`: `each`, repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// Required: the text, with `?` for parameters.
    pub each: String,
    /// Separator [default: `", "`]
    #[serde(default = "comma")]
    pub join: String,
    /// Repeats
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<Amount>,
    /// Or the size of a statement in bytes: as many repeats as fit, sent as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Amount>,
    /// One for each `?` of `each`; they refer to each other only.
    #[serde(default)]
    pub params: Vec<Param>,
}

pub(super) fn default_one<T: From<u8>>() -> T {
    1.into()
}

fn comma() -> String {
    ", ".to_owned()
}

/// The kind of a statement in the server's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StatementKind {
    Select,
    Update,
    Insert,
    Delete,
    Other,
}

impl StatementKind {
    pub(super) fn from_sql(sql: &str) -> StatementKind {
        match first_word(sql).as_str() {
            "SELECT" => StatementKind::Select,
            "UPDATE" => StatementKind::Update,
            "INSERT" => StatementKind::Insert,
            "DELETE" => StatementKind::Delete,
            _ => StatementKind::Other,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        ["select", "update", "insert", "delete", "other"][self as usize]
    }
}

impl List {
    /// Counts the repeats in the SQL; a list of a size in bytes counts once.
    pub(crate) fn rows(&self, options: &Options) -> usize {
        self.times.as_ref().map_or(1, |times| times.value(options)) as usize
    }

    fn check(&self, options: &Options) -> Result<(), String> {
        check_params(&self.each, &self.params, options)?;
        let previous = self.params.iter().any(|p| matches!(p, Param::Previous(_)));
        ensure(!previous, "a list knows no statement before")?;
        match (&self.times, &self.bytes) {
            (None, Some(bytes)) => {
                // Every element would be the same row.
                let row = self.params.iter().any(|p| matches!(p, Param::Row { .. }));
                ensure(!row, "a row is of a list with times, not bytes")?;
                bytes.check(options)
            }
            (Some(times), None) => {
                times.check(options)?;
                ensure(self.rows(options) > 0, "a list of nothing is no SQL")?;
                let params = times.value(options) * self.params.len() as u64;
                let many = format_args!("{params} parameters are more than {PARAMS_MAX}");
                ensure(params <= PARAMS_MAX, many)?;
                let each = (self.each.len() + self.join.len()) as u64;
                let bytes = times.value(options).saturating_mul(each);
                let long = format_args!("a list of {bytes} bytes is longer than {STATEMENT_MAX}");
                ensure(bytes <= STATEMENT_MAX as u64, long)
            }
            _ => Err("a list has either times or bytes".to_owned()),
        }
    }
}

impl Statement {
    /// Returns whether it is sent as text, whatever `--statements` says.
    pub(crate) fn is_text(&self) -> bool {
        self.list.as_ref().is_some_and(|list| list.bytes.is_some())
    }

    /// Returns the SQL with one element of the list.
    pub(crate) fn brief_sql(&self, options: &Options) -> String {
        let Some(list) = &self.list else { return self.sql.clone() };
        let count = match &list.bytes {
            Some(bytes) => format!("as many as fit into {} bytes", bytes.value(options)),
            None => format!("{} of them", list.rows(options)),
        };
        self.sql.replace("{list}", &format!("{}{} … {count}", list.each, list.join))
    }

    /// Expands the list: returns the SQL with `{table}` and one parameter for each `?`, with their
    /// references adjusted. A list of a size in bytes stands there once.
    pub(crate) fn expanded(&self, options: &Options) -> (String, Vec<Param>) {
        let Some(list) = &self.list else { return (self.sql.clone(), self.params.clone()) };
        let (times, before, each) = (list.rows(options), self.before_list(), list.params.len());
        let sql = self.sql.replace("{list}", &vec![list.each.as_str(); times].join(&list.join));
        let own = |of: usize| if of > before { of + times * each } else { of };
        let (head, tail) = self.params.split_at(before);
        let mut params: Vec<Param> = head.iter().map(|p| p.with_references(own)).collect();
        for time in 0..times {
            let place = |of: usize| of + before + time * each;
            params.extend(list.params.iter().map(|p| p.behind(time).with_references(place)));
        }
        params.extend(tail.iter().map(|p| p.with_references(own)));
        (sql, params)
    }

    pub(crate) fn before_list(&self) -> usize {
        let (head, _) = self.sql.split_once("{list}").expect("a list has its place");
        sql::parameters(head)
    }

    /// Checks what the form does not. `before` is the previous statement.
    pub(super) fn check(&self, before: Option<&Self>, options: &Options) -> Result<(), String> {
        check_params(&self.sql, &self.params, options)?;
        match (&self.list, self.sql.matches("{list}").count()) {
            (None, 0) => {}
            (Some(list), 1) => list.check(options)?,
            (None, _) => return Err("{list} stands for a list, and there is none".to_owned()),
            (Some(_), n) => return Err(format!("a list has one {{list}}, not {n}")),
        }
        let several = sql::is_several(&self.brief_sql(options));
        ensure(
            !several,
            "more than one statement: a transaction takes several, each with its own `sql`",
        )?;
        self.check_previous(before)?;
        self.repeat.iter().try_for_each(|repeat| repeat.check(options))?;
        self.missing_if.iter().try_for_each(|name| check_option(name, options))?;
        self.expect.check(options)?;
        let keyed = self.params.iter().any(|p| matches!(p, Param::Key(_)));
        ensure(keyed || self.expect.content.is_none(), "content needs a key parameter")?;
        let changes = self.kind() == StatementKind::Select && self.effect != Effect::None;
        ensure(!changes, "a select changes nothing")?;
        let Effect::InsertK(of) = self.effect else { return Ok(()) };
        let params = self.list.as_ref().map_or(&self.params, |list| &list.params);
        let k = numbered(params, of).map_err(|what| format!("insert_k: {what}"))?;
        let counted = k.is_number() || matches!(k, Param::Const(Const::Number(_)));
        ensure(counted, format_args!("insert_k: parameter {of} holds no number"))
    }

    fn check_previous(&self, before: Option<&Statement>) -> Result<(), String> {
        if self.with_previous {
            ensure(before.is_some(), "with_previous, but there is no statement before")?;
            ensure(self.repeat.is_none(), "with_previous is repeated as the statement before")?;
        }
        for param in &self.params {
            let Param::Previous(of) = param else { continue };
            // Otherwise the previous statement may not run, or not in between.
            let needs = format_args!("previous = {of} needs with_previous = true");
            ensure(self.with_previous, needs)?;
            let there = |b: &Statement| b.list.is_none() && (1..=b.params.len()).contains(of);
            let none = format_args!("previous = {of} is no parameter of the statement before");
            ensure(before.is_some_and(there), none)?;
        }
        Ok(())
    }

    pub(super) fn writes(&self) -> bool {
        let writing = matches!(
            self.kind(),
            StatementKind::Update | StatementKind::Insert | StatementKind::Delete
        );
        writing || self.effect != Effect::None || WRITING.contains(&first_word(&self.sql).as_str())
    }

    pub(crate) fn may_write(&self) -> bool {
        self.writes() || RUNNING.contains(&first_word(&self.sql).as_str())
    }

    /// Other statements name what it makes or chooses: these cannot be prepared before.
    pub(super) fn defines(&self) -> bool {
        DEFINING.contains(&first_word(&self.sql).as_str())
    }

    pub(crate) fn inserts(&self) -> bool {
        self.kind() == StatementKind::Insert
            || matches!(self.effect, Effect::Insert | Effect::InsertK(_))
            || first_word(&self.sql) == "REPLACE"
    }

    pub(super) fn is_begin(&self) -> bool {
        first_word(&self.sql) == "BEGIN"
    }

    pub(crate) fn kind(&self) -> StatementKind {
        self.kind.unwrap_or_else(|| StatementKind::from_sql(&self.sql))
    }

    /// Returns why the effect does not say what it writes; `prefix` is that of the tables' names.
    pub(super) fn unfollowed(&self, prefix: &str) -> Option<String> {
        let (sql, word) = (self.sql.to_ascii_uppercase(), first_word(&self.sql));
        let none = self.effect == Effect::None;
        let ours = self.sql.contains("{table}");
        let unsaid = none && (ours || contains_name(&self.sql, prefix)) && self.writes();
        let control = is_control(&word);
        let listed = matches!(self.effect, Effect::InsertK(_)) && self.list.is_some();
        let (_, why) = [
            (
                control || (word == "SET" && sql.contains("AUTOCOMMIT")),
                "begins or ends transactions itself",
            ),
            (unsaid, "gives no effect"),
            (none && RUNNING.contains(&word.as_str()), "runs SQL that loadgen does not see"),
            (!none && !ours, "does not say {table}"),
            (
                !none && (word == "REPLACE" || sql.contains("ON DUPLICATE KEY")),
                "does not distinguish inserted rows from changed rows",
            ),
            (!none && word == "TRUNCATE", "does not show how many rows it removed"),
            (listed && sql.contains("IGNORE"), "does not show which rows it inserted"),
        ]
        .into_iter()
        .find(|(so, _)| *so)?;
        Some(format!("'{}' {why}", self.sql.chars().take(SHOWN).collect::<String>()))
    }
}

/// Returns whether SQL writes to a table that loadgen does not make.
pub(crate) fn writes_elsewhere(sql: &str) -> bool {
    let names_ours = |schema: &Schema| contains_name(sql, schema.prefix());
    let ours = sql.contains("{table}") || Schema::ALL.iter().any(names_ours);
    !ours && WRITING.contains(&first_word(sql).as_str())
}

/// Returns whether SQL for tables of one kind may write to a table of another one. `is_followed`: the effects of
/// its workload say all that it writes to `{table}`.
pub(crate) fn may_write_beside(sql: &str, kind: &str, is_followed: bool, table: &str) -> bool {
    if table.trim_end_matches(|c: char| c.is_ascii_digit()) == kind {
        return false;
    }
    let (word, names_it) = (first_word(sql), contains_name(sql, table));
    let is_seen = is_followed && sql.contains("{table}") && !names_it;
    RUNNING.contains(&word.as_str()) && !is_seen || WRITING.contains(&word.as_str()) && names_it
}

/// Looks for a name in any case, as servers with lower_case_table_names do.
fn contains_name(sql: &str, name: &str) -> bool {
    sql.to_ascii_lowercase().contains(name)
}

fn first_word(sql: &str) -> String {
    let mut words = sql::Words { sql: sql.as_bytes(), at: 0 };
    let word = words.word();
    // MariaDB's SET STATEMENT … FOR and ANALYZE do what is behind them.
    let wraps = word == "ANALYZE" || word == "SET" && words.word() == "STATEMENT";
    let behind = (wraps || word == "WITH").then(|| sql::find_verb_behind(&sql[words.at..]));
    let may_write = |verb: &str| WRITING.contains(&verb) || RUNNING.contains(&verb);
    behind.flatten().filter(|verb| !wraps || may_write(verb)).unwrap_or(word)
}

pub(super) fn is_control(word: &str) -> bool {
    CONTROL.contains(&word)
}

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
    /// Always the same row: its id is the number of rows divided by `per`, and `plus`. Further elements of a list are the
    /// rows behind it; the list has `times`: `{ row = { per = 2, plus = 1 } }`.
    Row {
        per: u64,
        #[serde(default)]
        plus: u64,
    },
    /// A value for `k`, as `--distribution` has it: `"k"`.
    K,
    /// A number above all ids, which no other client takes: `"serial"`.
    Serial,
    /// A number of 1 to 2147483647 that no other client or operation of the step takes in its table: `"unique"`.
    Unique,
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
    /// Random digits, this many: `{ digits = 32 }`.
    Digits(usize),
    /// Always the same: `{ const = 5 }`, `{ const = "text" }`.
    Const(Const),
}

/// The distribution that a key comes from; None: that of `--distribution`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct KeySource(pub Option<Distribution>);

const USUAL: &str = "default";

impl TryFrom<String> for KeySource {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let own = if text == USUAL { None } else { Some(text.parse()?) };
        Ok(KeySource(own))
    }
}

impl From<KeySource> for String {
    fn from(KeySource(own): KeySource) -> String {
        own.map_or_else(|| USUAL.to_owned(), |distribution| distribution.to_string())
    }
}

/// The end of a range: exactly one of `len` and `delta`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RangeEnd {
    /// The parameter that the range begins with
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
    KeySource(Some(Distribution::Uniform))
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a whole number or a text")]
pub(crate) enum Const {
    Number(i64),
    Text(String),
}

/// Checks that each `?` has a parameter, and that each can be made.
fn check_params(sql: &str, params: &[Param], options: &Options) -> Result<(), String> {
    let (marks, there) = (sql::parameters(sql), params.len());
    let hint = "a ? in quotes does not count";
    ensure(marks == there, format_args!("{marks} `?` but {there} params ({hint})"))?;
    (0..there).try_for_each(|at| params[at].check(at, params, options))
}

fn numbered(params: &[Param], of: usize) -> Result<&Param, String> {
    let param = of.checked_sub(1).and_then(|at| params.get(at));
    param.ok_or_else(|| format!("{of} is no parameter (they are counted from 1)"))
}

impl Param {
    /// Returns the largest possible number, for a range; a column's are signed.
    pub(crate) fn largest(&self, params: &[Param], options: &Options) -> u128 {
        let of = |of: usize| params[of - 1].largest(params, options);
        match self {
            Param::Between { max, .. } => (*max).into(),
            Param::SameAs(target) => of(*target),
            Param::RangeEnd(end) => of(end.of) + u128::from(end.add(options)),
            _ => 0,
        }
    }

    /// Returns the parameter of the same statement that the value is made from.
    pub(super) fn refers_to(&self) -> Option<usize> {
        self.clone().reference().copied()
    }

    fn reference(&mut self) -> Option<&mut usize> {
        match self {
            Param::SameAs(of) | Param::COf(of) => Some(of),
            Param::RangeEnd(end) => Some(&mut end.of),
            _ => None,
        }
    }

    fn with_references(&self, place: impl Fn(usize) -> usize) -> Param {
        let mut moved = self.clone();
        moved.reference().into_iter().for_each(|of| *of = place(*of));
        moved
    }

    /// Makes the parameter of an element that so many of the list come before.
    fn behind(&self, before: usize) -> Param {
        match *self {
            Param::Row { per, plus } => {
                Param::Row { per, plus: plus.saturating_add(before as u64) }
            }
            _ => self.clone(),
        }
    }

    /// Returns the id of a [`Param::Row`] in a table of so many rows.
    pub(crate) fn row(per: u64, plus: u64, rows: u64) -> u64 {
        (rows / per).saturating_add(plus)
    }

    /// Returns whether values can be counted on from.
    fn is_number(&self) -> bool {
        !matches!(self, Param::C | Param::COf(_) | Param::Pad | Param::Digits(_) | Param::Const(_))
    }

    fn check(&self, at: usize, params: &[Param], options: &Options) -> Result<(), String> {
        if let Some(of) = self.refers_to() {
            let target = numbered(params, of)?;
            ensure(target.is_number(), format_args!("parameter {of} holds no id or number"))?;
            // Made in order, after all drawn ones.
            let made = target.refers_to().is_some() || matches!(target, Param::Previous(_));
            let late = format_args!("parameter {of} is made from another one later");
            ensure(!made || of <= at, late)?;
        }
        match self {
            Param::RangeEnd(end) => match (&end.len, &end.delta) {
                (Some(amount), None) | (None, Some(amount)) => {
                    amount.check(options)?;
                    let largest = self.largest(params, options);
                    let beyond = format_args!("{largest} is more than {} (64 bits)", u64::MAX);
                    ensure(largest <= u64::MAX.into(), beyond)
                }
                _ => Err("range_end has either a len or a delta".to_owned()),
            },
            Param::RangeStart { len, .. } => len.check(options),
            Param::Between { min, max, .. } => {
                ensure(min <= max, format_args!("there is nothing between {min} and {max}"))
            }
            Param::Row { per, .. } => ensure(*per > 0, "per = 0 divides nothing"),
            Param::Digits(n) => {
                let bounds = format_args!("digits = {n} is not within 1 to {DIGITS_MAX}");
                ensure((1..=DIGITS_MAX).contains(n), bounds)
            }
            _ => Ok(()),
        }
    }
}

/// The required answer; any other is an error, not a result. `"any"`, `{ rows = … }` or
/// `{ affected = … }`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// Rows returned, a number of rows as below
    pub rows: Option<Count>,
    /// Rows affected, a number of rows as below
    pub affected: Option<Count>,
    /// `"c"`: the first column is a `c` that must prove itself, every sixteenth answer (tables of loadgen only)
    pub content: Option<Content>,
    /// The first column of the first row.
    pub value: Option<Amount>,
}

fn or_any<'de, D: Deserializer<'de>>(from: D) -> Result<Expect, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "\"any\", { rows = … } or { affected = … }")]
    enum Form {
        Word(String),
        /// The written form of `any`; TOML has no null.
        Written {
            rows: (),
            affected: (),
            content: (),
            value: (),
        },
        Table(Expect),
    }
    match Form::deserialize(from)? {
        Form::Word(word) if word == "any" => Ok(Expect::default()),
        Form::Written { rows: (), affected: (), content: (), value: () } => Ok(Expect::default()),
        Form::Table(expect) if expect != Expect::default() => Ok(expect),
        _ => Err(D::Error::custom("an expectation has rows or affected, or is \"any\"")),
    }
}

/// The content of an answer's first column.
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
    /// A number, or the name of an option that holds it: `rows = 1`.
    Exactly(Amount),
    /// One in so many of the table's rows, rounded down or up; so many times that, but no more than
    /// LIMIT: `{ per = 200 }`.
    Part {
        per: u64,
        #[serde(default = "default_one")]
        times: u64,
        limit: Option<u64>,
    },
    /// `{ min = 1, max = "range_size" }`, each of which may be left out.
    Within {
        #[serde(default = "none")]
        min: Amount,
        max: Option<Amount>,
    },
}

fn none() -> Amount {
    Amount::Number(0)
}

impl Count {
    /// Returns the smallest and largest number; `held` is the rows of each table, if known.
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
    fn check(&self, options: &Options) -> Result<(), String> {
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

/// The effect of a success on the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Effect {
    /// Nothing that is known
    #[default]
    None,
    /// Rows have other values, but not of `k`.
    Update,
    /// The sum of `k` grows by so much a row: `{ add_k = 1 }`.
    AddK(i64),
    /// One row's `c` has another proving value.
    SetC,
    /// New rows, with a `k` that is not known.
    Insert,
    /// New rows, whose `k` is this parameter, counted from 1 (within the list, if there is one): `{ insert_k = 2 }`.
    InsertK(usize),
    /// Rows are gone, and with them a `k` that nobody has read.
    Delete,
}

impl Effect {
    fn is_none(&self) -> bool {
        *self == Effect::None
    }
}
