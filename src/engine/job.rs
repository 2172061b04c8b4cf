//! The work of a step's clients, compiled from the plan before the first op: shared and read only. And
//! the values of parameters, and SQL with them.

use std::cell::Cell;
use std::io::Write as _;
use std::iter::StepBy;
use std::ops::{Range, RangeFrom};

use super::errors::{Pending, in_doubt};
use crate::mysql::Tables;
use crate::mysql::wire::{Params, Value};
use crate::plan::{Plan, Spread, StatementMode, Step};
use crate::workload::{
    Const, Content, Count, Distribution, Effect, KeySource, Options, Param, Permutation, Sampler,
    Statement, StatementKind, Stream, Workload, name_part, pieces, rows, seed_of,
};

/// The kinds of a script's statements: with a result set, without one that affected rows, and others.
pub(crate) const KINDS: [&str; 3] = ["read", "write", "other"];

pub(crate) struct Job {
    pub plan: Plan,
    pub step: Step,
    pub threads: usize,
    pub tables: Tables,
    pub spread: Spread,
    pub transactions: Vec<CompiledTransaction>,
    pub statements: Vec<CompiledStatement>,
    draws: Vec<Draw>,
    slices: Vec<Distribution>,
    pub prepared: Vec<String>,
    pub serial: bool,
    /// Each kind of statement draws its own table.
    pub table_each: bool,
    pub weights: u64,
    /// Statements with times of their own: none where an op is one statement; of a script its [`KINDS`].
    pub timed_statements: usize,
    /// The clients before its own, among those of all groups.
    pub first_client: u32,
    /// Those of all groups.
    clients_in_all: u32,
    /// The part of the key streams' seed that is the group's.
    seed_part: u64,
}

/// The groups of a step as one of them sees them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OtherGroups {
    pub first_client: u32,
    pub clients_in_all: u32,
    pub threads: usize,
    pub changes: RowChanges,
}

/// The changes of rows by other groups, as far as answers are checked by them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct RowChanges {
    /// There may be more rows than at first.
    pub more: bool,
    /// Rows may be away, or have other contents.
    pub fewer: bool,
    /// SQL of one's own writes, and nobody knows how many rows there are.
    pub any: bool,
}

pub(crate) struct CompiledTransaction {
    pub weight: u64,
    pub begin: bool,
    pub passes: Vec<usize>,
    /// The statements that draw their own table once an op, and whether each has that of the one before;
    /// empty where the op draws one for all.
    pub tables: Vec<(usize, bool)>,
    /// The bulk statement that an op adds a row to.
    pub rows_of: Option<usize>,
}

pub(crate) struct CompiledStatement {
    /// The SQL around the `?`, with `{table}` still in it; of a bulk statement that of one row.
    pub pieces: Vec<String>,
    pub sources: Sources,
    /// A list of as many rows as fit: the SQL is made anew each time.
    pub bulk: Option<Bulk>,
    pub text: bool,
    pub rows: RowsOf,
    pub check: Check,
    /// The ids that it selects, where they are known to be in the table.
    pub range: Option<IdRange>,
    pub effect: Effect,
    /// Position of the first key among the parameters.
    pub key: Option<usize>,
    /// Positions of the `k` of each inserted row, as far as the effect names them.
    pub inserted_k: Vec<usize>,
    /// The next statement's parameters refer to this one's values.
    pub keeps_values: bool,
    /// Its place among a table's prepared statements: the same SQL is prepared once.
    pub prepared: usize,
}

/// The statement that the rows of an answer are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowsOf {
    Select,
    Insert,
    /// The rows that it affects were there: those of an UPDATE or a DELETE.
    Existing,
    Other,
}

/// One a parameter with its position: first those that are drawn, then those made from others.
pub(crate) type Sources = Vec<(usize, Source)>;

pub(crate) enum Source {
    Draw(usize, Form),
    Slice(usize),
    Serial,
    /// The same, scattered over so many numbers from the least one on.
    Unique(Permutation, u64, i64),
    /// A `c` that proves itself: for the id at a position, or for 0.
    C(Option<usize>),
    Pad,
    Digits(usize),
    Number(i64),
    Text(String),
    /// The value at a position of the statement before.
    Previous(usize),
    /// The value at a position, and so much.
    Sum(usize, u64, Form),
}

/// The type of a number: MySQL 8.0 would prepare a statement again for another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As the columns of tables are.
    Signed,
    /// The type for a range that no signed number holds.
    Unsigned,
}

impl Form {
    fn from_largest(largest: u128) -> Form {
        if i64::try_from(largest).is_ok() { Form::Signed } else { Form::Unsigned }
    }
}

/// The positive ids of a signed column of 32 bits.
const IDS: u64 = i32::MAX as u64;
/// All numbers of such a column.
const SIGNED_IDS: u64 = 1 << 32;

/// The ids of rows that come after all there are.
pub(crate) type Serial = StepBy<RangeFrom<u64>>;

pub(crate) struct Bulk {
    /// The SQL before the list, with `{table}` still in it, and after it.
    pub head: String,
    pub tail: String,
    pub join: String,
    pub bytes_max: usize,
}

/// The answer that is expected; bounds are the least and the most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    pub rows: (u64, u64),
    pub affected: (u64, u64),
    /// The first column is a `c` that proves itself.
    pub content: bool,
    pub value: Option<u64>,
    /// A column that has no NULL by its own definition holds none.
    pub nulls: bool,
}

/// A range of ids, all of which `prepare` has put into the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IdRange {
    /// Position of its first id among the parameters.
    first: usize,
    len: u64,
    last: u64,
}

impl IdRange {
    /// Counts its ids that are in the table: the last ranges reach beyond its end.
    #[inline]
    pub(crate) fn rows(&self, values: &Params) -> u64 {
        let first = number(values.get(self.first)).max(1);
        self.len.min((self.last + 1).saturating_sub(first))
    }
}

/// A distribution over the N ids after a base.
type Draw = (Distribution, u64, u64);

fn sampler((distribution, base, count): Draw, hot_seed: u64) -> Sampler {
    let mut sampler = Sampler::new(distribution, count, hot_seed);
    sampler.base = base;
    sampler
}

impl Job {
    pub(crate) fn new(plan: &Plan, spread: Spread, tables: Tables, step: &Step) -> Job {
        let workload = &plan.workload;
        let mut job = Job {
            plan: plan.clone(),
            step: *step,
            threads: engine_threads(plan, step.clients),
            tables,
            spread,
            transactions: Vec::new(),
            statements: Vec::new(),
            draws: Vec::new(),
            slices: Vec::new(),
            prepared: Vec::new(),
            serial: false,
            table_each: workload.transactions.iter().any(|t| workload.table_each(t)),
            weights: workload.transactions.iter().map(|t| u64::from(t.weight)).sum(),
            timed_statements: if plan.script.is_some() { KINDS.len() } else { 0 },
            first_client: 0,
            clients_in_all: step.clients,
            seed_part: name_part(&workload.name),
        };
        for transaction in &workload.transactions {
            let start = job.statements.len();
            let running = workload.running(transaction);
            let own = running.iter().enumerate().map(|(at, (s, _))| (start + at, s.with_previous));
            let tables = if workload.table_each(transaction) { own.collect() } else { Vec::new() };
            for (at, (statement, _)) in running.iter().enumerate() {
                let uses = |p: &Param| matches!(p, Param::Previous(_));
                let next = running.get(at + 1).is_some_and(|(s, _)| s.params.iter().any(uses));
                let compiled = job.statement(workload, statement);
                job.statements.push(CompiledStatement { keeps_values: next, ..compiled });
            }
            job.transactions.push(CompiledTransaction {
                weight: u64::from(transaction.weight),
                begin: workload.begins(transaction),
                passes: workload.passes(transaction).into_iter().map(|at| start + at).collect(),
                tables,
                rows_of: (plan.rules.row_an_op
                    && job.statements.get(start).is_some_and(|s| s.bulk.is_some()))
                .then_some(start),
            });
        }
        if plan.rules.prepare_all && plan.statements == StatementMode::Prepared {
            let all = workload.transactions.iter().flat_map(|t| &t.statements);
            for sql in all.map(|statement| statement.expanded(&workload.options).0) {
                intern(&mut job.prepared, sql);
            }
        }
        let several = |t: &CompiledTransaction| t.begin || t.passes.len() > 1;
        if job.statements.len() > 1 || job.transactions.iter().any(several) {
            job.timed_statements = job.statements.len();
        }
        job
    }

    /// Makes it one of several groups; `of` names the measured workload and a group beside it.
    pub(crate) fn among(mut self, others: OtherGroups, of: Option<[&str; 2]>, step: &Step) -> Job {
        self.first_client = others.first_client;
        self.clients_in_all = others.clients_in_all;
        self.threads = others.threads;
        if let Some(of) = of {
            // Another step does not repeat its keys on the same warm server, though the group is the same.
            let [measured, name] = of.map(name_part);
            let rate = step.rate.map_or(0, f64::to_bits);
            let parts = [name_part("beside"), measured, name, step.clients.into(), rate];
            self.seed_part = seed_of(&parts);
        }
        let RowChanges { fewer, any, .. } = others.changes;
        for statement in self.statements.iter_mut().filter(|_| fewer || any) {
            let Check { rows, affected, nulls, .. } = statement.check;
            let [rows, affected] =
                [rows, affected].map(|(_, most)| (0, if any { u64::MAX } else { most }));
            statement.check = Check { rows, affected, content: false, value: None, nulls };
            statement.range = None;
        }
        self
    }

    /// Lists the clients of a thread, by its number among all of the step's: they are dealt out in turn, also over
    /// the groups.
    pub(crate) fn clients_of(&self, thread: usize) -> Vec<u32> {
        let before = self.first_client as usize % self.threads;
        let first = (thread + self.threads - before) % self.threads;
        (first as u32..self.step.clients).step_by(self.threads).collect()
    }

    fn statement(&mut self, workload: &Workload, statement: &Statement) -> CompiledStatement {
        let options = &workload.options;
        let (own_sql, own_params) = statement.expanded(options);
        let bulk = statement.list.as_ref().and_then(|list| Some((list, list.bytes.as_ref()?)));
        let (sql, params) = match bulk {
            Some((list, _)) => (&list.each, &list.params),
            None => (&own_sql, &own_params),
        };
        let text = bulk.is_some() || self.plan.statements == StatementMode::Text;
        let mut sources = self.sources(params, options);
        for (_, source) in &mut sources {
            // In a literal backslashes are escapes. Those of a script's text are doubled, too.
            if let (true, Source::Text(literal)) = (text, source) {
                *literal = literal.replace('\\', r"\\");
            }
        }
        CompiledStatement {
            pieces: pieces(sql).into_iter().map(str::to_owned).collect(),
            sources,
            text,
            rows: match statement.kind() {
                StatementKind::Select => RowsOf::Select,
                _ if statement.inserts() => RowsOf::Insert,
                StatementKind::Update | StatementKind::Delete => RowsOf::Existing,
                _ => RowsOf::Other,
            },
            check: self.check(workload, statement),
            range: self.range(workload, statement),
            effect: statement.effect,
            key: own_params.iter().position(|p| matches!(p, Param::Key(_))),
            inserted_k: inserted_k(statement, options),
            keeps_values: false,
            prepared: if text { 0 } else { intern(&mut self.prepared, own_sql) },
            bulk: bulk.map(|(list, bytes)| {
                let (head, tail) = statement.sql.split_once("{list}").expect("its place");
                let (head, tail, join) = (head.to_owned(), tail.to_owned(), list.join.clone());
                Bulk { head, tail, join, bytes_max: bytes.value(options) as usize }
            }),
        }
    }

    fn sources(&mut self, params: &[Param], options: &Options) -> Sources {
        let mut sources: Sources =
            params.iter().map(|param| self.source(param, params, options)).enumerate().collect();
        sources.sort_by_key(|(_, source)| matches!(source, Source::Sum(..) | Source::C(Some(_))));
        sources
    }

    fn source(&mut self, param: &Param, params: &[Param], options: &Options) -> Source {
        let (rows, usual) = (self.tables.rows, self.plan.distribution);
        let form = Form::from_largest(param.largest(params, options));
        let mut draw = |source: KeySource, base: u64, count: u64| {
            Source::Draw(intern(&mut self.draws, (source.0.unwrap_or(usual), base, count)), form)
        };
        match param {
            Param::Key(source) => draw(*source, 0, rows),
            Param::K => draw(KeySource::default(), 0, rows),
            Param::RangeStart { len, distribution } => {
                let less = len.value(options).saturating_sub(1);
                draw(*distribution, 0, rows.saturating_sub(less))
            }
            Param::Between { min, max, distribution } => {
                draw(*distribution, min.wrapping_sub(1), (max - min).saturating_add(1))
            }
            Param::Row { per, plus } => {
                Source::Number(i64::try_from(Param::row(*per, *plus, rows)).unwrap_or(i64::MAX))
            }
            Param::Slice(source) => {
                Source::Slice(intern(&mut self.slices, source.0.unwrap_or(usual)))
            }
            Param::Serial => {
                self.serial = true;
                Source::Serial
            }
            Param::Unique => {
                self.serial = true;
                let signed = self.plan.rules.unique_below_zero;
                let (ids, least) =
                    if signed { (SIGNED_IDS, i64::from(i32::MIN)) } else { (IDS, 1) };
                Source::Unique(Permutation::new(ids, self.plan.seed), ids, least)
            }
            Param::C => Source::C(None),
            Param::Pad => Source::Pad,
            Param::Digits(n) => Source::Digits(*n),
            Param::Const(Const::Number(n)) => Source::Number(*n),
            Param::Const(Const::Text(text)) => Source::Text(text.clone()),
            Param::RangeEnd(end) => Source::Sum(end.of - 1, end.add(options), form),
            Param::SameAs(of) => Source::Sum(of - 1, 0, form),
            Param::COf(of) => Source::C(Some(of - 1)),
            Param::Previous(of) => Source::Previous(of - 1),
        }
    }

    fn check(&self, workload: &Workload, statement: &Statement) -> Check {
        let (expect, options) = (&statement.expect, &workload.options);
        let may_miss = statement.missing_if.iter().any(|name| workload.is_on(name));
        let bounds = |count: &Option<Count>| {
            let (min, max) =
                count.as_ref().map_or((0, u64::MAX), |n| n.bounds(options, self.tables.held));
            (if may_miss { 0 } else { min }, max)
        };
        Check {
            rows: bounds(&expect.rows),
            affected: bounds(&expect.affected),
            content: expect.content == Some(Content::C),
            value: expect.value.as_ref().map(|value| value.value(options)),
            // MySQL before 8.0 and MariaDB call the columns of a ROLLUP by their tables' flags.
            nulls: statement.sql.contains("{table}")
                && !statement.sql.to_ascii_uppercase().contains("ROLLUP"),
        }
    }

    /// Returns None for tables of others, and where a client may see another's DELETE before the INSERT that follows it.
    fn range(&self, workload: &Workload, statement: &Statement) -> Option<IdRange> {
        let (options, tables) = (&workload.options, &self.tables);
        let last = tables.held.filter(|_| tables.own)?;
        let deletes = workload.statements().any(|one| one.effect == Effect::Delete);
        let begins = workload.transactions.iter().all(|one| workload.begins(one));
        if statement.kind() != StatementKind::Select || (deletes && !(begins && tables.atomic)) {
            return None;
        }
        let Some(Count::Within { max: Some(max), .. }) = &statement.expect.rows else {
            return None;
        };
        let [Param::Key(_), Param::RangeEnd(end)] = &statement.params[..] else { return None };
        let len = end.add(options) + 1;
        let whole = end.of == 1 && max.value(options) == len && statement.list.is_none();
        whole.then_some(IdRange { first: 0, len, last })
    }

    /// The tables that ops are drawn for: one that is not there where no statement names one.
    pub(crate) fn places(&self) -> u32 {
        self.tables.count.max(1)
    }

    /// Deals the clients of the group out to addresses in turn; returns the place of a client's. Pinned ones move on
    /// by one when tables and addresses begin again together: else no table had all addresses.
    pub(crate) fn deal(&self, client: u32, addresses: usize) -> usize {
        let (client, tables) = (client as usize, self.places() as usize);
        let moved = match self.spread {
            Spread::Pinned => client / least_common_multiple(addresses, tables),
            Spread::Random => 0,
        };
        (client + moved) % addresses
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
        if self.plan.rules.shared_ops.is_some() {
            return None;
        }
        let (ops, clients) = (self.plan.stop.ops()?, u64::from(self.step.clients));
        Some(ops / clients + u64::from(u64::from(client) < ops % clients))
    }

    /// A client's key stream. It depends on everything but the label: another label repeats it,
    /// another step, try or phase on the same warm server does not.
    pub(crate) fn stream(&self, client: u32, measured: bool) -> Stream {
        Stream::new(seed_of(&self.seed_parts(client, measured)))
    }

    pub(crate) fn seed_parts(&self, client: u32, measured: bool) -> [u64; 8] {
        [
            self.plan.seed,
            self.seed_part,
            self.pinned_table(client).map_or(0, |t| u64::from(t) + 1),
            u64::from(client),
            u64::from(self.step.clients),
            self.step.rate.map_or(0, f64::to_bits),
            u64::from(self.step.repeat) + (u64::from(self.step.attempt.saturating_sub(1)) << 32),
            u64::from(measured),
        ]
    }

    pub(crate) fn table_share(&self, table: u32) -> TableShare {
        let text = self.plan.statements == StatementMode::Text;
        let texts = if text { self.text_pieces(table) } else { Vec::new() };
        TableShare { picks: self.picks(table), texts, lacking: Cell::default() }
    }

    pub(crate) fn picks(&self, table: u32) -> Vec<Sampler> {
        let hot_seed = seed_of(&[self.plan.seed, u64::from(table)]);
        self.draws.iter().map(|draw| sampler(*draw, hot_seed)).collect()
    }

    /// Shares of the rows differ by one row at most, and are one row where there are more clients than rows.
    pub(crate) fn slices(&self, client: u32) -> Vec<Sampler> {
        let (rows, clients) = (self.tables.rows, u128::from(self.step.clients));
        let edge = |client: u32| (u128::from(rows) * u128::from(client) / clients) as u64;
        let (base, count) = (edge(client), edge(client + 1) - edge(client));
        let base = base.min(rows.saturating_sub(1));
        let hot_seed = seed_of(&[self.plan.seed, name_part("slice"), u64::from(client)]);
        self.slices.iter().map(|of| sampler((*of, base, count), hot_seed)).collect()
    }

    /// Clients that share the table, whose largest id is `id_max`, never meet.
    pub(crate) fn serial(&self, client: u32, id_max: u64) -> Serial {
        let (place, sharers) = match self.spread {
            _ if self.clients_in_all > self.step.clients => {
                (self.first_client + client, self.clients_in_all)
            }
            Spread::Pinned => (client / self.places(), self.step.clients / self.places()),
            Spread::Random => (client, self.step.clients),
        };
        (id_max + 1 + u64::from(place)..).step_by(sharers.max(1) as usize)
    }

    pub(crate) fn sql(&self, statement: usize, table: u32) -> String {
        let statement = &self.statements[statement];
        let sql = match &statement.bulk {
            Some(bulk) => format!("{}…{}", bulk.head, bulk.tail),
            None => statement.pieces.join("?"),
        };
        self.with_table(&sql, table)
    }

    fn text_pieces(&self, table: u32) -> Vec<Vec<String>> {
        self.statements.iter().map(|statement| self.pieces(statement, table)).collect()
    }

    /// Returns the SQL around the parameters of a statement, with a table's name.
    pub(crate) fn pieces(&self, statement: &CompiledStatement, table: u32) -> Vec<String> {
        statement.pieces.iter().map(|piece| self.with_table(piece, table)).collect()
    }

    /// SQL with the name of a table (from 0). Names that loadgen gives need no quotes.
    pub(crate) fn with_table(&self, sql: &str, table: u32) -> String {
        sql.replace("{table}", &self.tables.schema.name(table + 1))
    }
}

pub(crate) fn engine_threads(plan: &Plan, clients: u32) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = plan.engine_threads.map_or(cores, |n| n as usize);
    let clients = clients.saturating_add(plan.clients_beside());
    wanted.clamp(1, clients.max(1) as usize)
}

/// The queues that arrivals come in: one an engine thread, and where clients are pinned one a
/// table of it. Threads and tables take the clients in turn, so that as many have both different
/// as the least common multiple of the two says.
pub(crate) fn queues(threads: usize, spread: Spread, tables: u32, clients: u32) -> u32 {
    let tables = if spread == Spread::Pinned { tables.max(1) as usize } else { 1 };
    least_common_multiple(threads, tables).min(clients as usize) as u32
}

/// Returns the least common multiple of two numbers above 0.
fn least_common_multiple(one: usize, other: usize) -> usize {
    let both = (one..).step_by(one).find(|n| n.is_multiple_of(other));
    both.expect("their product at the latest")
}

/// Adds up what other groups change. Nobody sees a transaction that deletes rows and puts them back.
pub(crate) fn row_changes<'w>(
    others: impl Iterator<Item = &'w Workload>,
    tables: &Tables,
) -> RowChanges {
    let mut all = RowChanges::default();
    for workload in others {
        let begins = workload.transactions.iter().all(|one| workload.begins(one));
        let inserts = workload.statements().any(Statement::inserts);
        let deletes = workload.statements().any(|one| one.kind() == StatementKind::Delete);
        all.more |= inserts && !deletes;
        all.fewer |= deletes && !(inserts && begins && tables.atomic);
        all.any |= !workload.built_in && workload.may_write();
    }
    all
}

pub(crate) fn intern<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    list.iter().position(|there| *there == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}

/// A list's rows follow one another, those of a bulk statement are made one by one.
fn inserted_k(statement: &Statement, options: &Options) -> Vec<usize> {
    let Effect::InsertK(of) = statement.effect else { return Vec::new() };
    let list = statement.list.as_ref().filter(|list| list.bytes.is_none());
    let Some(list) = list else { return vec![of - 1] };
    let (rows, before) = (list.rows(options), statement.before_list());
    (0..rows).map(|row| before + row * list.params.len() + of - 1).collect()
}

/// The part of a table's state that the clients of an engine thread share.
pub(crate) struct TableShare {
    pub picks: Vec<Sampler>,
    /// SQL of each statement around its parameters; empty unless in text mode.
    pub texts: Vec<Vec<String>>,
    /// The most rows that a range has lacked, as the server counts them.
    pub lacking: Cell<u64>,
}

pub(crate) struct Generator {
    pub stream: Stream,
    pub slices: Vec<Sampler>,
    /// By table of the client's; empty where no statement numbers rows.
    pub serials: Vec<Serial>,
    /// Values of the statement before, if the next one refers to them.
    pub previous: Params,
}

#[derive(Clone, Copy)]
pub(crate) struct TableDraws<'a> {
    pub table: u32,
    pub slot: usize,
    pub picks: &'a [Sampler],
}

impl Generator {
    #[inline]
    pub(crate) fn draw(&mut self, drawn: &mut Params, sources: &Sources, from: TableDraws<'_>) {
        drawn.clear(sources.len());
        for (at, source) in sources {
            self.draw_value(drawn, *at, source, from);
        }
    }

    #[inline]
    fn draw_value(&mut self, drawn: &mut Params, at: usize, source: &Source, from: TableDraws<'_>) {
        let stream = &mut self.stream;
        let (id, form) = match source {
            Source::Draw(i, form) => (from.picks[*i].draw(stream), *form),
            Source::Slice(i) => (self.slices[*i].draw(stream), Form::Signed),
            Source::Serial => {
                (self.serials[from.slot].next().expect("they never end"), Form::Signed)
            }
            Source::Unique(scattered, ids, least) => {
                let n = self.serials[from.slot].next().expect("they never end");
                let id = scattered.apply(n % ids).cast_signed() + least;
                return drawn.set(at, Value::Int(id));
            }
            Source::Sum(of, add, form) => (number(drawn.get(*of)).saturating_add(*add), *form),
            Source::C(of) => {
                let id = of.map_or(0, |of| number(drawn.get(of)));
                let c = rows::proven(from.table + 1, id, || stream.bits());
                return drawn.set_bytes(at, |bytes| bytes.extend_from_slice(&c));
            }
            Source::Pad => {
                let pad = rows::pad(|| stream.bits());
                return drawn.set_bytes(at, |bytes| bytes.extend_from_slice(&pad));
            }
            Source::Digits(n) => {
                let digits = (0..*n).map(|_| b'0' + stream.below(10) as u8);
                return drawn.set_bytes(at, |bytes| bytes.extend(digits));
            }
            Source::Text(text) => {
                return drawn.set_bytes(at, |bytes| bytes.extend_from_slice(text.as_bytes()));
            }
            Source::Number(n) => return drawn.set(at, Value::Int(*n)),
            Source::Previous(of) => return drawn.copy(at, &self.previous, *of),
        };
        let value = match form {
            Form::Signed => Value::Int(i64::try_from(id).unwrap_or(i64::MAX)),
            Form::Unsigned => Value::UInt(id),
        };
        drawn.set(at, value);
    }

    /// Writes as many rows as fit behind `head`, one at least. Returns the sum of the `k` that it inserts.
    pub(crate) fn bulk_into(
        &mut self,
        sql: &mut Vec<u8>,
        statement: &CompiledStatement,
        head: &str,
        from: TableDraws<'_>,
    ) -> i64 {
        let bulk = statement.bulk.as_ref().expect("one of so many bytes");
        let full = sql.len() + bulk.bytes_max;
        sql.extend_from_slice(head.as_bytes());
        let (mut rows, mut sum) = (0, 0_i64);
        let mut row = Params::default();
        loop {
            // There are none where the statement does not number rows.
            let (end, serial) = (sql.len(), self.serials.get(from.slot).cloned());
            if rows > 0 {
                sql.extend_from_slice(bulk.join.as_bytes());
            }
            self.draw(&mut row, &statement.sources, from);
            literals_into(sql, &statement.pieces, &row);
            if rows > 0 && sql.len() + bulk.tail.len() > full {
                // The row is the next statement's first: its number is given again.
                sql.truncate(end);
                if let Some(before) = serial {
                    self.serials[from.slot] = before;
                }
                break;
            }
            rows += 1;
            sum = sum.saturating_add(statement.k_of(&row));
        }
        sql.extend_from_slice(bulk.tail.as_bytes());
        sum
    }
}

impl CompiledStatement {
    #[inline]
    pub(crate) fn k_of(&self, values: &Params) -> i64 {
        let k = |at: &usize| signed(values.get(*at));
        self.inserted_k.iter().map(k).fold(0, i64::saturating_add)
    }

    /// Bounds what it may have done if its answer never comes, or tells of so many rows and is wrong.
    pub(crate) fn doubt(&self, table: u32, answered: u64) -> Option<Pending> {
        let (_, max) = self.check.affected;
        let affected = (max < u64::MAX).then_some(max.max(answered));
        (self.effect != Effect::None).then(|| (table, 1, in_doubt(self.effect, affected)))
    }
}

/// Takes a value as an id; a workload's own text may stand in for one, and counts as 0.
#[inline]
pub(crate) fn number(value: Value) -> u64 {
    match value {
        Value::UInt(id) => id,
        Value::Int(n) => u64::try_from(n).unwrap_or(0),
        Value::Null | Value::Double(_) | Value::Bytes { .. } => 0,
    }
}

fn signed(value: Value) -> i64 {
    match value {
        Value::UInt(n) => i64::try_from(n).unwrap_or(i64::MAX),
        Value::Int(n) => n,
        Value::Null | Value::Double(_) | Value::Bytes { .. } => 0,
    }
}

pub(crate) fn literals_into(sql: &mut Vec<u8>, pieces: &[impl AsRef<[u8]>], values: &Params) {
    for (i, piece) in pieces.iter().enumerate() {
        sql.extend_from_slice(piece.as_ref());
        // The last piece stands behind the last value.
        if i == values.len() {
            break;
        }
        match values.get(i) {
            Value::Null => sql.extend_from_slice(b"NULL"),
            Value::UInt(id) => write!(sql, "{id}").expect("a Vec takes everything"),
            Value::Int(n) => write!(sql, "{n}").expect("a Vec takes everything"),
            Value::Double(bits) => {
                write!(sql, "{:.6}", f64::from_bits(bits)).expect("a Vec takes everything");
            }
            Value::Bytes { start, end } => {
                sql.push(b'\'');
                for byte in values.bytes(start, end) {
                    if *byte == b'\'' {
                        sql.push(b'\'');
                    }
                    sql.push(*byte);
                }
                sql.push(b'\'');
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
