//! What is read around a step and within its window for [`crate::summary::Conditions`].

use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::engine::{Tables, readings};
use crate::error::Result;
use crate::mysql::control;
use crate::mysql::session::Session;
use crate::mysql::status;
use crate::observe::host;
use crate::observe::probe::{HostReading, Probe, Whereabouts};
use crate::plan::profile::Expect;
use crate::plan::{Plan, StopAt, limits};
use crate::stop::within;
use crate::summary::{Class, Conditions, HostState, Keys, Levels, Prepared, Sample, Summary};
use crate::workload::coverage::{coverage, keys_per_op};

/// A shorter window has no thirds worth comparing.
const WINDOW_MIN: Duration = Duration::from_secs(3);
/// When the window is read, as parts of its length. The last reading is over before its end.
const INSTANTS: [f64; 4] = [0.0, 1.0 / 3.0, 2.0 / 3.0, 0.98];

/// The hosts of a sweep.
#[derive(Debug, Clone)]
pub(super) struct Hosts {
    client: Probe,
    /// None where it is the client's, or nobody can look at it.
    server: Option<Probe>,
}

/// A step that is being watched.
pub(super) struct Watch {
    before: Option<Prepared>,
    at_start: Option<Levels>,
    hosts: Hosts,
    client: Option<HostReading>,
    server: Option<HostReading>,
    window: Option<JoinHandle<Vec<Sample>>>,
}

impl Hosts {
    /// `probe` is how the server's host is read.
    pub(super) fn of(probe: Option<&Probe>) -> Hosts {
        if let Some(root) = host::recorded() {
            let client = Probe::below(&root, &Whereabouts::default());
            return Hosts { client, server: None };
        }
        match probe {
            // The server's process is known there.
            Some(probe) if probe.is_local() => Hosts { client: probe.clone(), server: None },
            other => {
                Hosts { client: Probe::local(&Whereabouts::default()), server: other.cloned() }
            }
        }
    }
}

impl Watch {
    /// Reads the hosts, and sees to it that the window is looked into, over this session. `opened`
    /// tells when the window opens.
    pub(super) async fn begin(
        plan: &Plan,
        hosts: &Hosts,
        before: Option<Prepared>,
        at_start: Option<Levels>,
        session: Option<Session>,
        opened: watch::Receiver<Option<Instant>>,
    ) -> Watch {
        let client = state(&hosts.client).await;
        let server = match &hosts.server {
            Some(probe) => state(probe).await,
            None => None,
        };
        let window = length(plan)
            .map(|length| tokio::spawn(sample(session, hosts.client.clone(), opened, length)));
        Watch { before, at_start, hosts: hosts.clone(), client, server, window }
    }

    /// Reads the hosts again. The channel of the window's start says that it is over.
    pub(super) async fn end(self, plan: &Plan, expect: &[Expect], step: &Summary) -> Conditions {
        let window = match self.window {
            Some(sampling) => sampling.await.expect("sampling does not panic"),
            None => Vec::new(),
        };
        let server = match &self.hosts.server {
            Some(probe) => since(state(probe).await, self.server),
            None => None,
        };
        Conditions {
            before: self.before,
            at_start: self.at_start,
            window,
            client_host: since(state(&self.hosts.client).await, self.client),
            server_host: server,
            keys: keys(plan, step),
            expected_class: expected(plan, expect),
        }
    }
}

fn since(last: Option<HostReading>, first: Option<HostReading>) -> Option<HostState> {
    Some(last?.state_since(&first?))
}

/// Off the thread that keeps time: it reads many files, or waits for a command.
async fn state(probe: &Probe) -> Option<HostReading> {
    let probe = probe.clone();
    readings::aside(move || probe.state()).await.ok().flatten()
}

/// The window's length where it is known before, and long enough.
pub(super) fn length(plan: &Plan) -> Option<Duration> {
    match plan.stop {
        StopAt::Time(time) if time >= WINDOW_MIN => Some(time),
        StopAt::Time(_) | StopAt::Ops(_) => None,
    }
}

/// Looks into the window at some instants of it; ends with it.
async fn sample(
    session: Option<Session>,
    probe: Probe,
    mut opened: watch::Receiver<Option<Instant>>,
    length: Duration,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut session = session;
    let Some(start) = start(&mut opened).await else { return samples };
    for part in INSTANTS {
        let due = start + length.mul_f64(part);
        tokio::select! {
            () = tokio::time::sleep_until(due.into()) => {}
            // It is over before its time.
            _ = opened.changed() => break,
        }
        let (mut pool_reads, mut pool_free_pages) = (None, None);
        if let Some(mut asking) = session.take()
            && let Some(Ok(levels)) = within(limits::COURTESY, status::pool(&mut asking)).await
        {
            // A server that does not answer in time is not asked again.
            session = Some(asking);
            (pool_reads, pool_free_pages) = levels;
        }
        let at_s = Instant::now().saturating_duration_since(start).as_secs_f64();
        let client_mhz = probe.fastest_mhz();
        samples.push(Sample { at_s, pool_reads, pool_free_pages, client_mhz });
    }
    if let Some(session) = session {
        session.close(limits::COURTESY).await;
    }
    samples
}

/// The window's start, once it is known; None where there is none.
async fn start(opened: &mut watch::Receiver<Option<Instant>>) -> Option<Instant> {
    opened.changed().await.ok()?;
    *opened.borrow_and_update()
}

/// Where the keys of a step fell; None for a workload without keys.
fn keys(plan: &Plan, step: &Summary) -> Option<Keys> {
    let (distribution, per_op) = keys_per_op(&plan.workload, plan.distribution)?;
    let tables = f64::from(step.plan.tables.max(1));
    let drawn = per_op * step.totals.ops as f64;
    let told = coverage(distribution, step.plan.rows, drawn / tables);
    (step.plan.rows > 0).then(|| Keys {
        distribution: distribution.to_string(),
        drawn,
        hottest_share: told.hottest_share,
        half_on_share: told.half_on_share,
        distinct: told.distinct * tables,
        rows: step.plan.rows as f64 * tables,
    })
}

/// What the command line or the profile says of the data, as a class.
fn expected(plan: &Plan, wanted: &[Expect]) -> Option<Class> {
    let of_profile = || wanted.iter().find_map(|expect| expect.database);
    plan.before.expect.or_else(of_profile)
}

/// The server's levels; None where it does not tell.
pub(super) async fn levels(session: &mut Session, tables: Tables) -> Result<Option<Levels>> {
    let read = control::optional(status::levels(session, &tables.schema.name(1)).await);
    read.map_err(|failure| control::explain(&failure, "read the server's levels"))
}
