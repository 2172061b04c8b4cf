//! What every client of a step does, compiled from the plan: shared, read only.

use super::arrivals::Arrivals;
use super::compile::{Compiled, Pick, Statement, Transaction};
use crate::observe::recorder::Ns;
use crate::plan::policy::Policy;
use crate::plan::{Arrival, Plan, Spread, Step, StopAt};
use crate::workload::Schema;
use crate::workload::distribution::Sampler;
use crate::workload::random::{Stream, name_part, seed_of};

/// The tables that a step runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tables {
    /// Their kind.
    pub schema: Schema,
    /// The first ones: `sbtest1` … `sbtestN`; 0 where no statement names one.
    pub count: u32,
    /// Ids drawn: 1 to this.
    pub rows: u64,
    /// Rows that each of them was filled with, if that is known and the same.
    pub held: Option<u64>,
    /// Whether loadgen made them, so that contents prove themselves.
    pub own: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Job {
    compiled: Compiled,
    pub(crate) weights: u64,
    /// Whether statements have times of their own: an op is more than one of them.
    pub(crate) timed: bool,
    pub(crate) tables: Tables,
    pub(crate) spread: Spread,
    pub(crate) text: bool,
    pub(crate) charset: Option<String>,
    pub(crate) stop: StopAt,
    pub(crate) clients: u32,
    /// Ops a second over all clients; None is a closed loop.
    pub(crate) rate: Option<f64>,
    pub(crate) policy: Policy,
    arrival: Arrival,
    seed: u64,
    workload: u64,
    repeat: u32,
}

/// What makes an arrival queue.
#[derive(Debug, Clone)]
pub(crate) struct QueueOf {
    arrival: Arrival,
    /// Its share of the rate, by connections.
    pub(crate) per_s: f64,
    /// Where evenly spaced arrivals begin, in gaps.
    offset: f64,
    /// Its share of `--ops`.
    pub(crate) ops: Option<u64>,
    /// Of the warm-up, of the window.
    seeds: [u64; 2],
}

impl QueueOf {
    /// The arrivals of a phase that begins at `start`.
    pub(crate) fn arrivals(&self, start: Ns, measured: bool) -> Arrivals {
        let [warmup, window] = self.seeds;
        let stream = Stream::new(if measured { window } else { warmup });
        Arrivals::new(self.arrival, self.per_s, start, self.offset, stream)
    }
}

/// The queues that arrivals come in: one an engine thread, and where clients are pinned one a
/// table of it. Threads and tables take the clients in turn, so that as many have both different
/// as the least common multiple of the two says.
pub(crate) fn queues(threads: usize, spread: Spread, tables: u32, clients: u32) -> u32 {
    let threads = (threads as u64).max(1);
    let tables = if spread == Spread::Pinned { u64::from(tables.max(1)) } else { 1 };
    let (mut x, mut y) = (threads, tables);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (threads / x * tables).min(u64::from(clients)) as u32
}

impl Job {
    pub(crate) fn new(plan: &Plan, spread: Spread, tables: Tables, step: &Step) -> Job {
        let text = plan.statements == crate::plan::StatementMode::Text;
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

    pub(crate) fn transactions(&self) -> &[Transaction] {
        &self.compiled.transactions
    }

    pub(crate) fn statements(&self) -> &[Statement] {
        &self.compiled.statements
    }

    /// Statements with times of their own: none where an op is one statement.
    pub(crate) fn timed_statements(&self) -> usize {
        if self.timed { self.statements().len() } else { 0 }
    }

    /// The tables that ops are drawn for: one that is not there where no statement names one.
    pub(crate) fn places(&self) -> u32 {
        self.tables.count.max(1)
    }

    /// The table that a client is pinned to, from 0.
    pub(crate) fn pinned_table(&self, client: u32) -> Option<u32> {
        (self.spread == Spread::Pinned).then(|| client % self.places())
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

    /// A client's key stream. It depends on everything but the label: another label repeats
    /// it, another step or phase on the same warm server does not. The rate's place is 0
    /// for a closed loop.
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

    /// The arrival queue of some clients of one of so many threads.
    pub(crate) fn queue(&self, clients: &[u32], threads: usize) -> QueueOf {
        let first = clients.first().copied().unwrap_or(0);
        // The first clients of all queues are the numbers below that of the queues.
        let queues = queues(threads, self.spread, self.tables.count, self.clients);
        let share = clients.len() as f64 / f64::from(self.clients.max(1));
        QueueOf {
            arrival: self.arrival,
            per_s: self.rate.unwrap_or(0.0) * share,
            offset: f64::from(first) / f64::from(queues.max(1)),
            ops: clients.iter().map(|client| self.quota(*client)).sum(),
            seeds: [false, true].map(|measured| {
                let mut parts = self.seed_parts(first, measured).to_vec();
                // A ninth part: no client's keys come from it.
                parts.push(name_part("arrivals"));
                seed_of(&parts)
            }),
        }
    }

    /// What ids of one table (from 0) are drawn from.
    pub(crate) fn picks(&self, table: u32) -> Vec<Pick> {
        let hot_seed = seed_of(&[self.seed, u64::from(table)]);
        self.compiled.draws.iter().map(|draw| draw.pick(self.tables.rows, hot_seed)).collect()
    }

    /// What ids of a client's own share of the rows are drawn from; shares differ by one row at
    /// most, and are one row where there are more clients than rows.
    pub(crate) fn slices(&self, client: u32) -> Vec<Pick> {
        let edge = |client: u32| {
            let rows = u128::from(self.tables.rows) * u128::from(client);
            (rows / u128::from(self.clients.max(1))) as u64
        };
        let (base, end) = (edge(client), edge(client + 1));
        let hot_seed = seed_of(&[self.seed, name_part("slice"), u64::from(client)]);
        let pick = |distribution| Pick {
            sampler: Sampler::new(distribution, end - base, hot_seed),
            base: base.min(self.tables.rows.saturating_sub(1)),
        };
        self.compiled.slices.iter().map(|distribution| pick(*distribution)).collect()
    }

    /// Whether clients number rows of their own.
    pub(crate) fn serial(&self) -> bool {
        self.compiled.serial
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

    /// The tables of a client, from 0.
    pub(crate) fn tables_of(&self, client: u32) -> std::ops::Range<u32> {
        match self.pinned_table(client) {
            Some(table) => table..table + 1,
            None => 0..self.places(),
        }
    }

    /// The SQL that a client prepares for a table (from 0), with `?` for parameters.
    pub(crate) fn prepared(&self, table: u32) -> impl Iterator<Item = String> {
        self.compiled.prepared.iter().map(move |sql| self.with_table(sql, table))
    }

    /// Statements that a client prepares for each table.
    pub(crate) fn prepared_a_table(&self) -> usize {
        self.compiled.prepared.len()
    }

    /// The SQL of a statement on a table (from 0), for messages.
    pub(crate) fn sql(&self, statement: usize, table: u32) -> String {
        let sql = self.statements().get(statement).map(|s| match &s.bulk {
            Some(bulk) => format!("{}…{}", bulk.head, bulk.tail),
            None => s.pieces.join("?"),
        });
        self.with_table(&sql.unwrap_or_default(), table)
    }

    /// The pieces of a statement on a table, to put literals between.
    pub(crate) fn text_pieces(&self, table: u32) -> Vec<Vec<String>> {
        let piece = |p: &String| self.with_table(p, table);
        self.statements().iter().map(|s| s.pieces.iter().map(piece).collect()).collect()
    }

    /// SQL with the name of a table (from 0). Names that loadgen gives need no quotes.
    pub(crate) fn with_table(&self, sql: &str, table: u32) -> String {
        sql.replace("{table}", &self.tables.schema.name(table + 1))
    }
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
