//! What every client of a step does, compiled from the plan: shared, read only.

use super::arrivals::Arrivals;
use crate::measure::recorder::Ns;
use crate::plan::{Arrival, Plan, Spread, Step, StopAt};
use crate::workload::distribution::{Distribution, Sampler};
use crate::workload::random::{Stream, name_part, seed_of};
use crate::workload::{Effect, Expect, KeySource, Param, table};

/// The tables that a step runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tables {
    /// `sbtest1` … `sbtestN`.
    pub count: u32,
    /// Ids drawn: 1 to this.
    pub rows: u64,
    /// Whether loadgen made them, so that contents prove themselves.
    pub own: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) transactions: Vec<Transaction>,
    pub(crate) weights: u64,
    pub(crate) statements: Vec<Statement>,
    pub(crate) tables: Tables,
    pub(crate) spread: Spread,
    pub(crate) text: bool,
    pub(crate) charset: Option<String>,
    pub(crate) stop: StopAt,
    pub(crate) clients: u32,
    /// Ops a second over all clients; None is a closed loop.
    pub(crate) rate: Option<f64>,
    arrival: Arrival,
    distribution: Distribution,
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

fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a.max(1), b.max(1));
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a.max(1) / x * b.max(1)
}

/// A run of [`Job::statements`].
#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) weight: u64,
    pub(crate) begin: bool,
    pub(crate) statements: std::ops::Range<usize>,
}

/// One statement.
#[derive(Debug)]
pub(crate) struct Statement {
    /// The SQL around the `?`, with `{table}` still in it.
    pub(crate) pieces: Vec<String>,
    pub(crate) params: Vec<Param>,
    pub(crate) expect: Expect,
    pub(crate) effect: Effect,
    /// Position of the first key among the parameters.
    pub(crate) key: Option<usize>,
}

impl Job {
    pub(crate) fn new(plan: &Plan, spread: Spread, tables: Tables, step: &Step) -> Job {
        let mut statements = Vec::new();
        let mut transactions = Vec::new();
        for transaction in &plan.workload.transactions {
            let start = statements.len();
            statements.extend(transaction.statements.iter().map(|s| Statement {
                pieces: s.sql.split('?').map(str::to_owned).collect(),
                params: s.params.clone(),
                expect: s.expect,
                effect: s.effect,
                key: s.params.iter().position(|p| matches!(p, Param::Key(_))),
            }));
            transactions.push(Transaction {
                weight: u64::from(transaction.weight),
                begin: transaction.begin,
                statements: start..statements.len(),
            });
        }
        Job {
            weights: transactions.iter().map(|t| t.weight).sum(),
            transactions,
            statements,
            tables,
            spread,
            text: plan.statements == crate::plan::StatementMode::Text,
            charset: plan.charset.clone(),
            stop: plan.stop,
            clients: step.clients,
            rate: step.rate,
            arrival: plan.arrival,
            distribution: plan.distribution,
            seed: plan.seed,
            workload: name_part(&plan.workload.name),
            repeat: step.repeat,
        }
    }

    /// Statements with times of their own: none where an op is one statement.
    pub(crate) fn timed_statements(&self) -> usize {
        if self.statements.len() > 1 { self.statements.len() } else { 0 }
    }

    /// The table that a client is pinned to, from 0.
    pub(crate) fn pinned_table(&self, client: u32) -> Option<u32> {
        (self.spread == Spread::Pinned).then(|| client % self.tables.count)
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
        let tables = if self.spread == Spread::Pinned { u64::from(self.tables.count) } else { 1 };
        // The first clients of all queues are the numbers below that of the queues.
        let queues = least_common_multiple(threads as u64, tables).min(u64::from(self.clients));
        let share = clients.len() as f64 / f64::from(self.clients.max(1));
        QueueOf {
            arrival: self.arrival,
            per_s: self.rate.unwrap_or(0.0) * share,
            offset: f64::from(first) / queues.max(1) as f64,
            ops: clients.iter().map(|client| self.quota(*client)).sum(),
            seeds: [false, true].map(|measured| {
                let [a, b, c, d, e, f, g, h] = self.seed_parts(first, measured);
                // A ninth part: no client's keys come from it.
                seed_of(&[a, b, c, d, e, f, g, h, name_part("arrivals")])
            }),
        }
    }

    /// The samplers of one table: one for each parameter of each statement, None where it is
    /// no key.
    pub(crate) fn samplers(&self, table: u32) -> Vec<Vec<Option<Sampler>>> {
        let hot_seed = seed_of(&[self.seed, u64::from(table)]);
        let sampler = |param: &Param| match param {
            Param::Key(KeySource::Default) => Some(self.distribution),
            Param::Key(KeySource::Own(distribution)) => Some(*distribution),
            Param::COf(_) => None,
        };
        self.statements
            .iter()
            .map(|s| {
                s.params
                    .iter()
                    .map(|p| sampler(p).map(|d| Sampler::new(d, self.tables.rows, hot_seed)))
                    .collect()
            })
            .collect()
    }

    /// The SQL of a statement on a table (from 0), with `?` for parameters.
    pub(crate) fn sql(&self, statement: usize, table: u32) -> String {
        let pieces = self.statements.get(statement).map(|s| s.pieces.join("?"));
        with_table(&pieces.unwrap_or_default(), table)
    }

    /// The pieces of a statement on a table, to put literals between.
    pub(crate) fn text_pieces(&self, table: u32) -> Vec<Vec<String>> {
        let piece = |p: &String| with_table(p, table);
        self.statements.iter().map(|s| s.pieces.iter().map(piece).collect()).collect()
    }
}

fn with_table(sql: &str, table: u32) -> String {
    sql.replace("{table}", &table::quoted(&table::name(table + 1)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::plan;
    use crate::workload::builtin;
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
        }
    }

    fn job(clients: u32, stop: StopAt, spread: Spread) -> Job {
        let plan = a_plan(0, clients, stop);
        let step = Step { number: 1, of: 1, clients, rate: None, repeat: 1 };
        Job::new(&plan, spread, Tables { count: 8, rows: 1000, own: true }, &step)
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
    fn clients_are_dealt_over_tables() {
        let job = job(16, StopAt::Ops(1), Spread::Pinned);
        assert_eq!((job.pinned_table(0), job.pinned_table(9)), (Some(0), Some(1)));
        assert_eq!(job.sql(0, 2), "SELECT c FROM `sbtest3` WHERE id = ?");
        assert_eq!(job.text_pieces(0)[0], ["SELECT c FROM `sbtest1` WHERE id = ", ""]);
    }
}
