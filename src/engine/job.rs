//! What every client of a step does, compiled from the plan: every name looked up, every number
//! worked out before the first op. Shared, read only.

use std::ops::Range;

use mysql_async::Value;

use crate::plan::{Plan, Spread, StatementMode, Step, StopAt};
use crate::workload::distribution::{Distribution, Sampler};
use crate::workload::param::{Const, KeySource};
use crate::workload::random::{Stream, name_part, seed_of};
use crate::workload::{Content, Effect, List, Options, Param, Schema, Statement, Workload};

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
    pub plan: Plan,
    pub clients: u32,
    pub rate: Option<f64>,
    repeat: u32,
    pub compiled: Compiled,
    pub weights: u64,
    /// Statements have times of their own: an op is more than one of them.
    pub timed: bool,
    pub tables: Tables,
    pub spread: Spread,
    workload: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Compiled {
    pub transactions: Vec<CompiledTransaction>,
    pub statements: Vec<CompiledStatement>,
    pub draws: Vec<Draw>,
    pub slices: Vec<Distribution>,
    pub prepared: Vec<String>,
    pub serial: bool,
}

#[derive(Debug)]
pub(crate) struct CompiledTransaction {
    pub weight: u64,
    pub begin: bool,
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
    Draw(usize),
    Slice(usize),
    Serial,
    C,
    Pad,
    Digits(usize),
    Const(Value),
    Derived(Derived),
}

/// The ids of rows that come after all there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Serial {
    pub next: u64,
    pub step: u64,
}

/// How a value is made from another one of the statement, or of the one before.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Derived {
    Sum(usize, u64),
    /// A `c` that proves itself for the id at a position.
    C(usize),
    Previous(usize),
}

#[derive(Debug)]
pub(crate) struct Bulk {
    /// What stands before the list, with `{table}` still in it, and after it.
    pub head: String,
    pub tail: String,
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

/// So many ids from `base + 1` on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Draw {
    distribution: Distribution,
    base: u64,
    count: u64,
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
            clients: step.clients,
            rate: step.rate,
            repeat: step.repeat,
            workload: name_part(&plan.workload.name),
            plan: plan.clone(),
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
        match self.plan.stop {
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

    pub(crate) fn seed_parts(&self, client: u32, measured: bool) -> [u64; 8] {
        let table = self.pinned_table(client).map_or(0, |t| u64::from(t) + 1);
        [
            self.plan.seed,
            self.workload,
            table,
            u64::from(client),
            u64::from(self.clients),
            self.rate.map_or(0, f64::to_bits),
            u64::from(self.repeat),
            u64::from(measured),
        ]
    }

    pub(crate) fn picks(&self, table: u32) -> Vec<Pick> {
        let hot_seed = seed_of(&[self.plan.seed, u64::from(table)]);
        self.compiled.draws.iter().map(|draw| draw.pick(hot_seed)).collect()
    }

    /// What ids of a client's own share of the rows are drawn from; shares differ by one row at
    /// most, and are one row where there are more clients than rows.
    pub(crate) fn slices(&self, client: u32) -> Vec<Pick> {
        let rows = self.tables.rows;
        let edge =
            |client: u32| (u128::from(rows) * u128::from(client) / u128::from(self.clients)) as u64;
        let (base, count) = (edge(client), edge(client + 1) - edge(client));
        let base = base.min(rows.saturating_sub(1));
        let hot_seed = seed_of(&[self.plan.seed, name_part("slice"), u64::from(client)]);
        let slices = self.compiled.slices.iter();
        slices.map(|of| Draw { distribution: *of, base, count }.pick(hot_seed)).collect()
    }

    /// Numbers a client's rows in a table whose largest id is `id_max`: clients that share the table
    /// never meet.
    pub(crate) fn serial(&self, client: u32, id_max: u64) -> Serial {
        let (place, sharers) = match self.spread {
            Spread::Pinned => (client / self.places(), self.clients / self.places()),
            Spread::Random => (client, self.clients),
        };
        Serial { next: id_max + 1 + u64::from(place), step: u64::from(sharers.max(1)) }
    }

    pub(crate) fn prepared(&self, table: u32) -> impl Iterator<Item = String> {
        self.compiled.prepared.iter().map(move |sql| self.with_table(sql, table))
    }

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
        let mut compiler = Compiler { workload, distribution, tables, done: Compiled::default() };
        for transaction in &workload.transactions {
            let start = compiler.done.statements.len();
            let running = workload.running(transaction);
            for (at, (statement, _)) in running.iter().enumerate() {
                let uses = |p: &Param| matches!(p, Param::Previous(_));
                let next = running.get(at + 1).is_some_and(|(s, _)| s.params.iter().any(uses));
                let one = compiler.statement(statement, text);
                compiler.done.statements.push(CompiledStatement { keeps_values: next, ..one });
            }
            compiler.done.transactions.push(CompiledTransaction {
                weight: u64::from(transaction.weight),
                begin: workload.begins(transaction),
                passes: workload.passes(transaction).into_iter().map(|at| start + at).collect(),
            });
        }
        compiler.done
    }
}

/// A workload on its way to what clients do.
struct Compiler<'a> {
    workload: &'a Workload,
    /// Of keys that have none of their own.
    distribution: Distribution,
    tables: Tables,
    done: Compiled,
}

impl Compiler<'_> {
    fn statement(&mut self, statement: &Statement, text: bool) -> CompiledStatement {
        let options = &self.workload.options;
        let expanded = statement.expanded(options);
        let list = statement.list.as_ref().filter(|_| statement.is_text());
        let bulk = list.map(|list| self.bulk(&statement.sql, list));
        let (pieces, values) = match bulk {
            Some(_) => Default::default(),
            None => (pieces(&expanded.sql), self.values(&expanded.params)),
        };
        let text = text || bulk.is_some();
        CompiledStatement {
            pieces,
            values,
            bulk,
            text,
            check: Check::new(self.workload, statement, self.tables),
            effect: statement.effect,
            key: expanded.params.iter().position(|p| matches!(p, Param::Key(_))),
            inserted_k: inserted_k(statement, options),
            keeps_values: false,
            prepared: if text { 0 } else { place(&mut self.done.prepared, expanded.sql) },
        }
    }

    fn bulk(&mut self, sql: &str, list: &List) -> Bulk {
        let (head, tail) = sql.split_once("{list}").expect("a list has its place");
        let bytes = list.bytes.as_ref().expect("a list of text has a size");
        Bulk {
            head: head.to_owned(),
            tail: tail.to_owned(),
            pieces: pieces(&list.each),
            values: self.values(&list.params),
            join: list.join.clone(),
            bytes_max: bytes.value(&self.workload.options) as usize,
        }
    }

    fn values(&mut self, params: &[Param]) -> Values {
        let sources: Vec<Source> = params.iter().map(|param| self.source(param)).collect();
        let derived = sources.iter().enumerate().filter_map(|(at, source)| match source {
            Source::Derived(how) => Some((at, *how)),
            _ => None,
        });
        Values { derived: derived.collect(), sources }
    }

    fn source(&mut self, param: &Param) -> Source {
        let (options, rows, usual) = (&self.workload.options, self.tables.rows, self.distribution);
        let done = &mut self.done;
        let mut draw = |source: KeySource, base: u64, count: u64| {
            let distribution = source.or(usual);
            Source::Draw(place(&mut done.draws, Draw { distribution, base, count }))
        };
        match param {
            Param::Key(source) => draw(*source, 0, rows),
            Param::K => draw(KeySource::Default, 0, rows),
            Param::RangeStart { len, distribution } => {
                let less = len.value(options).saturating_sub(1);
                draw(*distribution, 0, rows.saturating_sub(less))
            }
            Param::Between { min, max, distribution } => {
                draw(*distribution, min.wrapping_sub(1), (max - min).saturating_add(1))
            }
            Param::Slice(source) => Source::Slice(place(&mut done.slices, source.or(usual))),
            Param::Serial => {
                done.serial = true;
                Source::Serial
            }
            Param::C => Source::C,
            Param::Pad => Source::Pad,
            Param::Digits(n) => Source::Digits(*n),
            Param::Const(Const::Number(n)) => Source::Const(Value::Int(*n)),
            Param::Const(Const::Text(text)) => Source::Const(Value::Bytes(text.clone().into())),
            Param::RangeEnd(end) => Source::Derived(Derived::Sum(end.of - 1, end.add(options))),
            Param::SameAs(of) => Source::Derived(Derived::Sum(of - 1, 0)),
            Param::COf(of) => Source::Derived(Derived::C(of - 1)),
            Param::Previous(of) => Source::Derived(Derived::Previous(of - 1)),
        }
    }
}

impl Draw {
    pub(crate) fn pick(self, hot_seed: u64) -> Pick {
        Pick { sampler: Sampler::new(self.distribution, self.count, hot_seed), base: self.base }
    }
}

impl Check {
    fn new(workload: &Workload, statement: &Statement, tables: Tables) -> Check {
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
            min: if statement.missing_if.iter().any(|name| workload.is_on(name)) { 0 } else { min },
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
fn inserted_k(statement: &Statement, options: &Options) -> Vec<usize> {
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
            think: None,
            repeats: 1,
            order: plan::Order::Ascending,
            distribution: Distribution::Uniform,
            statements: plan::StatementMode::Prepared,
            seed: 1,
            engine_threads: None,
            charset: None,
            out: plan::defaults::OUT.into(),
            interval: Duration::from_secs(1),
            before: crate::plan::Before::default(),
            interval_log: None,
            policy: plan::Policy::default(),
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
