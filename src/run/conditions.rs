//! Reads the conditions of a step, around it and within its window, for [`crate::summary::Conditions`].

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::before::{PreparedServer, close, open};
use super::summarise::StepFacts;
use crate::commands::beside::WindowWatch;
use crate::engine::run_on_thread;
use crate::mysql::{Session, Tables, status};
use crate::observe::{HostReading, Probe, Whereabouts, host};
use crate::plan::{Plan, limits};
use crate::stop::within;
use crate::summary::{Conditions, HostState, Keys, Levels, Prepared, Sample, Settled};
use crate::workload::coverage;

/// Shortest window whose thirds are worth comparing.
const WINDOW_MIN: Duration = Duration::from_secs(3);
/// Instants of the readings, as parts of the window. The last one must end before the window does.
const INSTANTS: [f64; 4] = [0.0, 1.0 / 3.0, 2.0 / 3.0, 0.98];

/// The client's unless others have the clients, and the server's if it is another one that can be read.
type Hosts = (Option<Probe>, Option<Probe>);

fn hosts(probe: Option<&Probe>, has_clients: bool) -> Hosts {
    let own = |root: &Path| Some(Probe::below(root, &Whereabouts::default()));
    match (host::recorded(), probe) {
        (_, probe) if !has_clients => (None, probe.cloned()),
        (Some(root), _) => (own(&root), None),
        (None, Some(probe)) if probe.is_local() => (Some(probe.clone()), None),
        (None, other) => (own(Path::new(host::ROOT)), other.cloned()),
    }
}

/// Reads the hosts off the thread that keeps time: it takes many files, or a command.
async fn read((client, server): Hosts) -> [Option<HostReading>; 2] {
    let read = run_on_thread(move || [client, server].map(|probe| probe?.state()));
    read.await.unwrap_or_default()
}

/// The preparations of a step, and the state that it starts from.
type StateBefore = (Option<Prepared>, Option<Settled>, Option<Levels>);

pub(super) struct Watch {
    before: StateBefore,
    hosts: Hosts,
    first: [Option<HostReading>; 2],
    window: JoinSet<Vec<Sample>>,
}

impl Watch {
    /// Reads the hosts, and starts the sampling of the window. `opened` has the window's start.
    pub(super) async fn begin(
        plan: &Plan,
        at: &PreparedServer<'_>,
        before: StateBefore,
        opened: WindowWatch,
    ) -> Watch {
        let hosts = hosts(at.probe.as_ref(), plan.host_threads.is_empty());
        let first = read(hosts.clone()).await;
        let mut window = JoinSet::new();
        if let Some(length) = plan.stop.time().filter(|length| *length >= WINDOW_MIN) {
            let mut session = None;
            // Sampling InnoDB needs a connection of its own.
            if before.2.as_ref().is_some_and(|levels| levels.pool_pages.is_some()) {
                session = within(limits::COURTESY, open(at.link, None)).await.and_then(Result::ok);
            }
            window.spawn(sample(session, hosts.0.clone(), opened, length));
        }
        Watch { before, hosts, first, window }
    }

    pub(super) async fn end(self, plan: &Plan, facts: StepFacts<'_>, ops: u64) -> Conditions {
        let window = self.window.join_all().await.concat();
        let since = |last: Option<HostReading>, first: Option<HostReading>| -> Option<HostState> {
            Some(last?.state_since(&first?))
        };
        let ([client, server], [client_then, server_then]) = (read(self.hosts).await, self.first);
        let (before, flushed, at_start) = self.before;
        let place = facts.job.in_profile.as_ref();
        let by_profile = || place?.subject.expect.iter().find_map(|expect| expect.database);
        Conditions {
            before,
            flushed,
            at_start,
            window,
            client_host: since(client, client_then),
            server_host: since(server, server_then),
            keys: keys(plan, facts.server.dataset.tables, ops),
            expected_class: plan.before.expect.or_else(by_profile),
        }
    }
}

async fn sample(
    mut session: Option<Session>,
    probe: Option<Probe>,
    mut opened: WindowWatch,
    length: Duration,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    let start = opened.changed().await.ok().and_then(|()| *opened.borrow_and_update());
    let Some(start) = start else { return samples };
    for part in INSTANTS {
        let due = start + length.mul_f64(part);
        tokio::select! {
            () = tokio::time::sleep_until(due.into()) => {}
            _ = opened.changed() => break,
        }
        let [mut pool_reads, mut pool_free_pages] = [None; 2];
        if let Some(mut asking) = session.take()
            && let Some(Ok(levels)) = within(limits::COURTESY, status::read_pool(&mut asking)).await
        {
            // A server that does not answer in time is not asked again.
            session = Some(asking);
            [pool_reads, pool_free_pages] = levels;
        }
        let at_s = Instant::now().saturating_duration_since(start).as_secs_f64();
        let client_mhz = probe.as_ref().and_then(Probe::fastest_mhz);
        samples.push(Sample { at_s, pool_reads, pool_free_pages, client_mhz });
    }
    close(session).await;
    samples
}

fn keys(plan: &Plan, tables: Tables, ops: u64) -> Option<Keys> {
    let (distribution, per_op) = plan.workload.keys_per_op(plan.distribution)?;
    let (count, rows) = (f64::from(tables.count.max(1)), tables.rows);
    let drawn = per_op * ops as f64;
    let coverage = coverage(distribution, rows, drawn / count);
    (rows > 0).then(|| Keys {
        distribution: distribution.to_string(),
        drawn,
        hottest_share: coverage.hottest_share,
        half_on_share: coverage.half_on_share,
        distinct: coverage.distinct * count,
        rows: rows as f64 * count,
    })
}
