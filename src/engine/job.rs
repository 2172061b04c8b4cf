//! What every client of a step does, compiled from the plan: every name looked up, every number
//! worked out before the first op. Shared, read only.

use std::ops::Range;

use mysql_async::Value;

use super::arrivals::QueueSpec;
use crate::plan::policy::Policy;
use crate::plan::{Arrival, Plan, Spread, StatementMode, Step, StopAt};
use crate::workload::distribution::{Distribution, Sampler};
use crate::workload::param::{Const, KeySource};
use crate::workload::random::{Stream, name_part, seed_of};
use crate::workload::{self, Content, Effect, List, Options, Param, Schema, Workload};

/// The tables that a step runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tables {
    pub schema: Schema,
    /// The first ones: `sbtest1` … `sbtestN`; 0 where no statement names one.
    pub count: u32,
    /// Ids drawn: 1 to this.
    pub rows: u64,
    /// Rows that each of them was filled with, if that is known and the same.
    pub held: Option<u64>,
    /// Made by loadgen, so that contents prove themselves.
    pub own: bool,
}

#[derive(Debug)]
pub(crate) struct Job {
    pub compiled: Compiled,
    pub weights: u64,
    /// Statements have times of their own: an op is more than one of them.
    pub timed: bool,
    pub tables: Tables,
    pub spread: Spread,
    pub text: bool,
    pub charset: Option<String>,
    pub stop: StopAt,
    pub clients: u32,
    /// Ops a second over all clients; None is a closed loop.
    pub rate: Option<f64>,
    pub policy: Policy,
    arrival: Arrival,
    seed: u64,
    workload: u64,
    repeat: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Compiled {
    pub transactions: Vec<CompiledTransaction>,
    pub statements: Vec<CompiledStatement>,
    /// What [`Source::Draw`] counts.
    pub draws: Vec<Draw>,
    /// What [`Source::Slice`] counts.
    pub slices: Vec<Distribution>,
    /// The SQL of prepared statements, with `{table}` still in it.
    pub prepared: Vec<String>,
    /// Clients number rows of their own.
    pub serial: bool,
}

/// A run of statements that is one op.
#[derive(Debug)]
pub(crate) struct CompiledTransaction {
    pub weight: u64,
    pub begin: bool,
    /// Places in [`Compiled::statements`], in order.
    pub passes: Vec<usize>,
}

#[derive(Debug)]
pub(crate) struct CompiledStatement {
    /// The SQL around the `?`, with `{table}` still in it.
    pub pieces: Vec<String>,
    pub values: Values,
    /// A list of as many rows as fit: the SQL is made anew each time.
    pub bulk: Option<Bulk>,
    pub text: bool,
    pub check: Check,
    pub effect: Effect,
    /// Position of the first key among the parameters.
    pub key: Option<usize>,
    /// Where the `k` of each row is that it inserts, as far as the effect says.
    pub inserted_k: Vec<usize>,
    /// The next statement's parameters refer to this one's values.
    pub keeps_values: bool,
    /// Its place among a table's prepared statements: the same SQL is prepared once.
    pub prepared: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Values {
    /// One a parameter, drawn in order.
    pub sources: Vec<Source>,
    /// Then those that are made from others, in order: position and how.
    pub derived: Vec<(usize, Derived)>,
}

#[derive(Debug)]
pub(crate) enum Source {
    /// A draw of the table's, by number.
    Draw(usize),
    /// A draw of the client's own, by number.
    Slice(usize),
    Serial,
    C,
    Pad,
    Digits(usize),
    Const(Value),
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

#[derive(Debug)]
pub(crate) struct Bulk {
    /// What stands before the list, with `{table}` still in it, and after it.
    pub head: String,
    pub tail: String,
    /// Of one row, around its `?`.
    pub pieces: Vec<String>,
    pub values: Values,
    pub join: String,
    pub bytes_max: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Check {
    pub counted: Counted,
    pub min: u64,
    pub max: u64,
    /// The first column is a `c` that proves itself.
    pub content: bool,
    pub value: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Rows,
    Affected,
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Draw {
    distribution: Distribution,
    ids: Ids,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Ids {
    /// 1 to so many less than the table's rows.
    Rows {
        less: u64,
    },
    Between {
        min: u64,
        max: u64,
    },
}

/// Draws numbers from `base + 1` on.
#[derive(Debug)]
pub(crate) struct Pick {
    pub sampler: Sampler,
    pub base: u64,
}

impl Job {
    pub(crate) fn new(plan: &Plan, spread: Spread, tables: Tables, step: &Step) -> Job {
        let text = plan.statements == StatementMode::Text;
        let compiled = Compiled::new(&plan.workload, plan.distribution, tables, text);
        Job {
            weights: compiled.transactions.iter().map(|t| t.weight).sum(),
            timed: compiled.statements.len() > 1
                || compiled.transactions.iter().any(|t| t.begin || t.passes.len() > 1),
            compiled,
            tables,
            spread,
            text,
            charset: plan.charset.clone(),
            stop: plan.stop,
            clients: step.clients,
            rate: step.rate,
            policy: plan.policy,
            arrival: plan.arrival,
            seed: plan.seed,
            workload: name_part(&plan.workload.name),
            repeat: step.repeat,
        }
    }

    /// Statements with times of their own: none where an op is one statement.
    pub(crate) fn timed_statements(&self) -> usize {
        if self.timed { self.compiled.statements.len() } else { 0 }
    }

    /// The tables that ops are drawn for: one that is not there where no statement names one.
    pub(crate) fn places(&self) -> u32 {
        self.tables.count.max(1)
    }

    pub(crate) fn pinned_table(&self, client: u32) -> Option<u32> {
        (self.spread == Spread::Pinned).then(|| client % self.places())
    }

    pub(crate) fn tables_of(&self, client: u32) -> Range<u32> {
        match self.pinned_table(client) {
            Some(table) => table..table + 1,
            None => 0..self.places(),
        }
    }

    /// The ops of one client with `--ops`: split evenly, the first clients take the rest.
    pub(crate) fn quota(&self, client: u32) -> Option<u64> {
        match self.stop {
            StopAt::Time(_) => None,
            StopAt::Ops(ops) => {
                let clients = u64::from(self.clients);
                Some(ops / clients + u64::from(u64::from(client) < ops % clients))
            }
        }
    }

    /// A client's key stream. It depends on everything but the label: another label repeats it,
    /// another step or phase on the same warm server does not.
    pub(crate) fn stream(&self, client: u32, measured: bool) -> Stream {
        Stream::new(seed_of(&self.seed_parts(client, measured)))
    }

    fn seed_parts(&self, client: u32, measured: bool) -> [u64; 8] {
        let table = self.pinned_table(client).map_or(0, |t| u64::from(t) + 1);
        [
            self.seed,
            self.workload,
            table,
            u64::from(client),
            u64::from(self.clients),
            self.rate.map_or(0, f64::to_bits),
            u64::from(self.repeat),
            u64::from(measured),
        ]
    }

    /// The arrival queue of some clients of one of so many threads, in an open loop.
    pub(crate) fn queue(&self, clients: &[u32], threads: usize) -> QueueSpec {
        let first = clients[0];
        let rate = self.rate.expect("an open loop has a rate");
        // The first clients of all queues are the numbers below that of the queues.
        let queues = queues(threads, self.spread, self.tables.count, self.clients);
        QueueSpec {
            arrival: self.arrival,
            per_s: rate * (clients.len() as f64 / f64::from(self.clients)),
            offset: f64::from(first) / f64::from(queues),
            ops: clients.iter().map(|client| self.quota(*client)).sum(),
            seeds: [false, true].map(|measured| {
                let mut parts = self.seed_parts(first, measured).to_vec();
                // A ninth part: no client's keys come from it.
                parts.push(name_part("arrivals"));
                seed_of(&parts)
            }),
        }
    }

    pub(crate) fn picks(&self, table: u32) -> Vec<Pick> {
        let hot_seed = seed_of(&[self.seed, u64::from(table)]);
        self.compiled.draws.iter().map(|draw| draw.pick(self.tables.rows, hot_seed)).collect()
    }

    /// What ids of a client's own share of the rows are drawn from; shares differ by one row at
    /// most, and are one row where there are more clients than rows.
    pub(crate) fn slices(&self, client: u32) -> Vec<Pick> {
        let edge = |client: u32| {
            let rows = u128::from(self.tables.rows) * u128::from(client);
            (rows / u128::from(self.clients)) as u64
        };
        let (base, end) = (edge(client), edge(client + 1));
        let hot_seed = seed_of(&[self.seed, name_part("slice"), u64::from(client)]);
        let pick = |distribution| Pick {
            sampler: Sampler::new(distribution, end - base, hot_seed),
            base: base.min(self.tables.rows.saturating_sub(1)),
        };
        self.compiled.slices.iter().map(|distribution| pick(*distribution)).collect()
    }

    /// A client's first number in a table whose largest id is `id_max`, and the distance to its
    /// next one: clients that share the table never meet.
    pub(crate) fn serials(&self, client: u32, id_max: u64) -> (u64, u64) {
        let (place, sharers) = match self.spread {
            Spread::Pinned => (client / self.places(), self.clients / self.places()),
            Spread::Random => (client, self.clients),
        };
        (id_max + 1 + u64::from(place), u64::from(sharers.max(1)))
    }

    /// The SQL that a client prepares for a table (from 0), with `?` for parameters.
    pub(crate) fn prepared(&self, table: u32) -> impl Iterator<Item = String> {
        self.compiled.prepared.iter().map(move |sql| self.with_table(sql, table))
    }

    /// The SQL of a statement on a table (from 0), for messages.
    pub(crate) fn sql(&self, statement: usize, table: u32) -> String {
        let statement = &self.compiled.statements[statement];
        let sql = match &statement.bulk {
            Some(bulk) => format!("{}…{}", bulk.head, bulk.tail),
            None => statement.pieces.join("?"),
        };
        self.with_table(&sql, table)
    }

    pub(crate) fn text_pieces(&self, table: u32) -> Vec<Vec<String>> {
        let piece = |p: &String| self.with_table(p, table);
        self.compiled.statements.iter().map(|s| s.pieces.iter().map(piece).collect()).collect()
    }

    /// SQL with the name of a table (from 0). Names that loadgen gives need no quotes.
    pub(crate) fn with_table(&self, sql: &str, table: u32) -> String {
        sql.replace("{table}", &self.tables.schema.name(table + 1))
    }
}

/// The queues that arrivals come in: one an engine thread, and where clients are pinned one a
/// table of it. Threads and tables take the clients in turn, so that as many have both different
/// as the least common multiple of the two says.
pub(crate) fn queues(threads: usize, spread: Spread, tables: u32, clients: u32) -> u32 {
    let threads = threads as u64;
    let tables = if spread == Spread::Pinned { u64::from(tables.max(1)) } else { 1 };
    let (mut x, mut y) = (threads, tables);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (threads / x * tables).min(u64::from(clients)) as u32
}

impl Compiled {
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
                compiled.statements.push(CompiledStatement { keeps_values: next, ..one });
            }
            compiled.transactions.push(CompiledTransaction {
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
        statement: &workload::Statement,
        distribution: Distribution,
        tables: Tables,
        text: bool,
    ) -> CompiledStatement {
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
        CompiledStatement {
            pieces,
            values,
            bulk,
            text,
            check: Check::new(workload, statement, tables),
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
        let (head, tail) = sql.split_once("{list}").expect("a list has its place");
        let bytes = list.bytes.as_ref().expect("a list of text has a size");
        Bulk {
            head: head.to_owned(),
            tail: tail.to_owned(),
            pieces: pieces(&list.each),
            values: self.values(workload, &list.params, distribution),
            join: list.join.clone(),
            bytes_max: bytes.value(&workload.options) as usize,
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
        let mut draw = |source: KeySource, ids: Ids| {
            let draw = Draw { distribution: drawn(source), ids };
            Source::Draw(place(&mut self.draws, draw))
        };
        match param {
            Param::Key(source) => draw(*source, Ids::Rows { less: 0 }),
            Param::K => draw(KeySource::Default, Ids::Rows { less: 0 }),
            Param::RangeStart(start) => {
                let less = start.len.value(&workload.options).saturating_sub(1);
                draw(start.distribution, Ids::Rows { less })
            }
            Param::Between(b) => draw(b.distribution, Ids::Between { min: b.min, max: b.max }),
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
    pub(crate) fn pick(&self, rows: u64, hot_seed: u64) -> Pick {
        let (base, count) = match self.ids {
            Ids::Rows { less } => (0, rows.saturating_sub(less)),
            Ids::Between { min, max } => (min.wrapping_sub(1), (max - min).saturating_add(1)),
        };
        Pick { sampler: Sampler::new(self.distribution, count, hot_seed), base }
    }
}

impl Check {
    fn new(workload: &Workload, statement: &workload::Statement, tables: Tables) -> Check {
        let expect = &statement.expect;
        let (counted, count) = match (&expect.rows, &expect.affected) {
            (Some(rows), _) => (Counted::Rows, Some(rows)),
            (None, Some(affected)) => (Counted::Affected, Some(affected)),
            (None, None) => (Counted::Nothing, None),
        };
        let all = (0, u64::MAX);
        let (min, max) = count.map_or(all, |n| n.bounds(&workload.options, tables.held));
        Check {
            counted,
            min: if workload.is_on(statement.missing_if.as_deref()) { 0 } else { min },
            max,
            content: expect.content == Some(Content::C),
            value: expect.value.as_ref().map(|value| value.value(&workload.options)),
        }
    }

    /// The most rows that a write affects, where the workload says so; at least what an answer
    /// says that it did.
    pub(crate) fn affected_max(&self, answered: u64) -> Option<u64> {
        let bounded = self.counted == Counted::Affected && self.max < u64::MAX;
        bounded.then_some(self.max.max(answered))
    }
}

fn place<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    list.iter().position(|there| *there == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}

/// See [`CompiledStatement::inserted_k`]; a list's rows follow one another.
fn inserted_k(statement: &workload::Statement, options: &Options) -> Vec<usize> {
    let Effect::InsertK(of) = statement.effect else { return Vec::new() };
    let Some(list) = &statement.list else { return vec![of - 1] };
    let (rows, before) = (list.rows(options), statement.before_list());
    (0..rows).map(|row| before + row * list.params.len() + of - 1).collect()
}

fn pieces(sql: &str) -> Vec<String> {
    sql.split('?').map(str::to_owned).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::plan;
    use crate::workload::builtin;
    use crate::workload::distribution::Distribution;
    use std::time::Duration;

    pub(crate) fn a_plan(workload: usize, clients: u32, stop: StopAt) -> Plan {
        Plan {
            workload: builtin().remove(workload),
            label: None,
            notes: Vec::new(),
            tables: None,
            rows: None,
            clients: vec![clients],
            spread: plan::SpreadChoice::Auto,
            warmup: Duration::ZERO,
            stop,
            rates: Vec::new(),
            arrival: plan::Arrival::Poisson,
            repeats: 1,
            order: plan::Order::Ascending,
            distribution: Distribution::Uniform,
            statements: plan::StatementMode::Prepared,
            seed: 1,
            engine_threads: None,
            charset: None,
            out: plan::defaults::OUT.into(),
            interval: Duration::from_secs(1),
            before: crate::plan::before::Before::default(),
            interval_log: None,
            policy: plan::policy::Policy::default(),
        }
    }

    pub(crate) const TABLES: Tables =
        Tables { schema: Schema::Sbtest, count: 8, rows: 1000, held: Some(1000), own: true };

    fn job(clients: u32, stop: StopAt, spread: Spread) -> Job {
        let plan = a_plan(0, clients, stop);
        let step = Step { number: 1, place: 1, of: 1, clients, rate: None, repeat: 1 };
        Job::new(&plan, spread, TABLES, &step)
    }

    #[test]
    fn quotas_add_up_to_the_ops() {
        for (clients, ops) in [(3, 10), (7, 3), (1, 5), (256, 1_000_001)] {
            let job = job(clients, StopAt::Ops(ops), Spread::Random);
            let quotas: Vec<u64> = (0..clients).filter_map(|c| job.quota(c)).collect();
            assert_eq!(quotas.iter().sum::<u64>(), ops);
            let (min, max) = (quotas.iter().min(), quotas.iter().max());
            assert!(max.zip(min).is_some_and(|(max, min)| max - min <= 1), "{quotas:?}");
        }
    }

    #[test]
    fn no_two_clients_or_phases_share_a_stream() {
        let job = job(64, StopAt::Ops(1), Spread::Pinned);
        let mut firsts: Vec<u64> = (0..64)
            .flat_map(|c| [job.stream(c, false).bits(), job.stream(c, true).bits()])
            .collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), 128);
    }

    #[test]
    fn queues_are_the_different_pairs_of_thread_and_table() {
        for (threads, tables, clients) in
            [(1, 1, 8), (2, 8, 64), (3, 8, 64), (4, 6, 64), (2, 8, 4), (3, 8, 16), (16, 1, 5)]
        {
            let threads = threads.min(clients);
            let pairs: std::collections::BTreeSet<(u32, u32)> =
                (0..clients).map(|client| (client % threads, client % tables)).collect();
            let pinned = queues(threads as usize, Spread::Pinned, tables, clients);
            assert_eq!(pinned as usize, pairs.len(), "{threads} {tables} {clients}");
            assert_eq!(queues(threads as usize, Spread::Random, tables, clients), threads);
        }
    }

    #[test]
    fn clients_are_dealt_over_tables() {
        let job = job(16, StopAt::Ops(1), Spread::Pinned);
        assert_eq!((job.pinned_table(0), job.pinned_table(9)), (Some(0), Some(1)));
        assert_eq!(job.sql(0, 2), "SELECT c FROM sbtest3 WHERE id=?");
        assert_eq!(job.prepared(2).collect::<Vec<_>>(), ["SELECT c FROM sbtest3 WHERE id=?"]);
        assert_eq!(job.text_pieces(0)[0], ["SELECT c FROM sbtest1 WHERE id=", ""]);
    }
}
