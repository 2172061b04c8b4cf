//! A workload's statements in the form that clients run: every name looked up, every number
//! worked out, before the first op.

use mysql_async::Value;

use super::job::Tables;
use crate::workload::distribution::{Distribution, Sampler};
use crate::workload::param::{Const, KeySource};
use crate::workload::{Content, Effect, List, Options, Param, Workload};

/// A run of statements that is one op.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) weight: u64,
    pub(crate) begin: bool,
    /// Places in [`super::job::Job::statements`], in order.
    pub(crate) passes: Vec<usize>,
}

/// One statement.
#[derive(Debug)]
pub(crate) struct Statement {
    /// The SQL around the `?`, with `{table}` still in it.
    pub(crate) pieces: Vec<String>,
    pub(crate) values: Values,
    /// A list of as many rows as fit: the SQL is made anew each time.
    pub(crate) bulk: Option<Bulk>,
    /// Goes to the server as text.
    pub(crate) text: bool,
    pub(crate) check: Check,
    pub(crate) effect: Effect,
    /// Position of the first key among the parameters.
    pub(crate) key: Option<usize>,
    /// Where the `k` of each row is that it inserts, as far as the effect says.
    pub(crate) inserted_k: Vec<usize>,
    /// The next statement's parameters refer to this one's values.
    pub(crate) keeps_values: bool,
    /// Which of a table's prepared statements it is: the same SQL is prepared once.
    pub(crate) prepared: usize,
}

/// How the values of parameters are made.
#[derive(Debug, Default)]
pub(crate) struct Values {
    /// One a parameter, drawn in order.
    pub(crate) sources: Vec<Source>,
    /// Then those that are made from others, in order: position and how.
    pub(crate) derived: Vec<(usize, Derived)>,
}

/// Where a value comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A draw of the table's, by number.
    Draw(usize),
    /// A draw of the client's own, by number.
    Slice(usize),
    /// The client's next number.
    Serial,
    /// A value for `c`.
    C,
    /// A value for `pad`.
    Pad,
    /// Random digits.
    Digits(usize),
    /// A constant.
    Const(Value),
    /// Made from others.
    Derived,
}

/// How a value is made from another one of the statement, or of the one before.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Derived {
    /// So much more than that at a position.
    Sum(usize, u64),
    /// A `c` that proves itself for the id at a position.
    C(usize),
    /// That at a position of the statement before.
    Previous(usize),
}

/// A list of so many bytes.
#[derive(Debug)]
pub(crate) struct Bulk {
    /// What stands before the list, with `{table}` still in it, and after it.
    pub(crate) head: String,
    pub(crate) tail: String,
    /// Of one row, around its `?`.
    pub(crate) pieces: Vec<String>,
    pub(crate) values: Values,
    pub(crate) join: String,
    pub(crate) bytes_max: usize,
}

/// What an answer is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) what: What,
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// The first column is a `c` that proves itself.
    pub(crate) content: bool,
    /// The first column's value.
    pub(crate) value: Option<u64>,
}

impl Check {
    /// The most rows that a write affects, where the workload says so; at least what an answer
    /// says that it did.
    pub(crate) fn affected_max(&self, answered: u64) -> Option<u64> {
        (self.what == What::Affected && self.max < u64::MAX).then_some(self.max.max(answered))
    }
}

/// Which number is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Rows,
    Affected,
    Nothing,
}

/// Ids to draw from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Draw {
    distribution: Distribution,
    range: Range,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Range {
    /// 1 to so many less than the table's rows.
    Rows { less: u64 },
    /// From one number to another.
    Between { min: u64, max: u64 },
}

/// Draws numbers from `base + 1` on.
#[derive(Debug)]
pub(crate) struct Pick {
    pub(crate) sampler: Sampler,
    pub(crate) base: u64,
}

/// A whole workload.
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    pub(crate) transactions: Vec<Transaction>,
    pub(crate) statements: Vec<Statement>,
    /// What [`Source::Draw`] counts.
    pub(crate) draws: Vec<Draw>,
    /// What [`Source::Slice`] counts.
    pub(crate) slices: Vec<Distribution>,
    /// The SQL of prepared statements, with `{table}` still in it.
    pub(crate) prepared: Vec<String>,
    /// Whether clients number rows of their own.
    pub(crate) serial: bool,
}

impl Compiled {
    /// `text` sends everything as text.
    pub(crate) fn new(
        workload: &Workload,
        distribution: Distribution,
        tables: Tables,
        text: bool,
    ) -> Compiled {
        let mut compiled = Compiled::default();
        for transaction in &workload.transactions {
            let start = compiled.statements.len();
            let running = workload.running(transaction);
            for (at, (statement, _)) in running.iter().enumerate() {
                let uses = |p: &Param| matches!(p, Param::Previous(_));
                let next = running.get(at + 1).is_some_and(|(s, _)| s.params.iter().any(uses));
                let one = compiled.statement(workload, statement, distribution, tables, text);
                compiled.statements.push(Statement { keeps_values: next, ..one });
            }
            compiled.transactions.push(Transaction {
                weight: u64::from(transaction.weight),
                begin: workload.begins(transaction),
                passes: workload.passes(transaction).into_iter().map(|at| start + at).collect(),
            });
        }
        compiled
    }

    fn statement(
        &mut self,
        workload: &Workload,
        statement: &crate::workload::Statement,
        distribution: Distribution,
        tables: Tables,
        text: bool,
    ) -> Statement {
        let options = &workload.options;
        let expanded = statement.expanded(options);
        let bulk = match &statement.list {
            Some(list) if statement.is_text() => {
                Some(self.bulk(workload, &statement.sql, list, distribution))
            }
            _ => None,
        };
        let (pieces, values) = match bulk {
            Some(_) => Default::default(),
            None => (pieces(&expanded.sql), self.values(workload, &expanded.params, distribution)),
        };
        let text = text || bulk.is_some();
        Statement {
            pieces,
            values,
            bulk,
            text,
            check: check(workload, statement, tables),
            effect: statement.effect,
            key: expanded.params.iter().position(|p| matches!(p, Param::Key(_))),
            inserted_k: inserted_k(statement, options),
            keeps_values: false,
            prepared: if text { 0 } else { place(&mut self.prepared, expanded.sql) },
        }
    }

    fn bulk(
        &mut self,
        workload: &Workload,
        sql: &str,
        list: &List,
        distribution: Distribution,
    ) -> Bulk {
        let (head, tail) = sql.split_once("{list}").unwrap_or((sql, ""));
        Bulk {
            head: head.to_owned(),
            tail: tail.to_owned(),
            pieces: pieces(&list.each),
            values: self.values(workload, &list.params, distribution),
            join: list.join.clone(),
            bytes_max: list.bytes.as_ref().map_or(0, |n| n.value(&workload.options)) as usize,
        }
    }

    fn values(&mut self, workload: &Workload, params: &[Param], all: Distribution) -> Values {
        let derived = |param: &Param| match param {
            Param::RangeEnd(end) => Some(Derived::Sum(end.of - 1, end.add(&workload.options))),
            Param::SameAs(of) => Some(Derived::Sum(of - 1, 0)),
            Param::COf(of) => Some(Derived::C(of - 1)),
            Param::Previous(of) => Some(Derived::Previous(of - 1)),
            _ => None,
        };
        Values {
            sources: params.iter().map(|param| self.source(workload, param, all)).collect(),
            derived: (0..).zip(params).filter_map(|(i, p)| Some((i, derived(p)?))).collect(),
        }
    }

    fn source(&mut self, workload: &Workload, param: &Param, all: Distribution) -> Source {
        let drawn = |source: KeySource| match source {
            KeySource::Default => all,
            KeySource::Own(distribution) => distribution,
        };
        let mut draw = |source: KeySource, range: Range| {
            let draw = Draw { distribution: drawn(source), range };
            Source::Draw(place(&mut self.draws, draw))
        };
        match param {
            Param::Key(source) => draw(*source, Range::Rows { less: 0 }),
            Param::K => draw(KeySource::Default, Range::Rows { less: 0 }),
            Param::RangeStart(start) => {
                let less = start.len.value(&workload.options).saturating_sub(1);
                draw(start.distribution, Range::Rows { less })
            }
            Param::Between(b) => draw(b.distribution, Range::Between { min: b.min, max: b.max }),
            Param::Slice(source) => Source::Slice(place(&mut self.slices, drawn(*source))),
            Param::Serial => {
                self.serial = true;
                Source::Serial
            }
            Param::C => Source::C,
            Param::Pad => Source::Pad,
            Param::Digits(n) => Source::Digits(*n),
            Param::Const(Const::Number(n)) => Source::Const(Value::Int(*n)),
            Param::Const(Const::Text(text)) => Source::Const(Value::Bytes(text.clone().into())),
            Param::RangeEnd(_) | Param::SameAs(_) | Param::Previous(_) | Param::COf(_) => {
                Source::Derived
            }
        }
    }
}

impl Draw {
    /// The sampler of a table with so many rows.
    pub(crate) fn pick(&self, rows: u64, hot_seed: u64) -> Pick {
        let (base, count) = match self.range {
            Range::Rows { less } => (0, rows.saturating_sub(less)),
            Range::Between { min, max } => (min.wrapping_sub(1), (max - min).saturating_add(1)),
        };
        Pick { sampler: Sampler::new(self.distribution, count, hot_seed), base }
    }
}

/// The position of an item in a list that holds each once.
fn place<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    list.iter().position(|there| *there == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}

/// See [`Statement::inserted_k`]; a list's rows follow one another.
fn inserted_k(statement: &crate::workload::Statement, options: &Options) -> Vec<usize> {
    let Effect::InsertK(of) = statement.effect else { return Vec::new() };
    let Some(list) = &statement.list else { return vec![of - 1] };
    let (rows, before) = (list.rows(options), statement.before_list());
    (0..rows).map(|row| before + row * list.params.len() + of - 1).collect()
}

fn pieces(sql: &str) -> Vec<String> {
    sql.split('?').map(str::to_owned).collect()
}

fn check(workload: &Workload, statement: &crate::workload::Statement, tables: Tables) -> Check {
    let expect = &statement.expect;
    let (what, count) = match (&expect.rows, &expect.affected) {
        (Some(rows), _) => (What::Rows, Some(rows)),
        (None, Some(affected)) => (What::Affected, Some(affected)),
        (None, None) => (What::Nothing, None),
    };
    let all = (0, u64::MAX);
    let (min, max) = count.map_or(all, |n| n.bounds(&workload.options, tables.held));
    Check {
        what,
        min: if workload.is_on(statement.missing_if.as_deref()) { 0 } else { min },
        max,
        content: expect.content == Some(Content::C),
        value: expect.value.as_ref().map(|value| value.value(&workload.options)),
    }
}
