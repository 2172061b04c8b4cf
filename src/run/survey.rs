//! The server and its tables, looked at before the steps.

use std::time::{Duration, Instant};

use mysql_async::Opts;

use crate::engine::{Identity, Tables, readings};
use crate::error::{Error, Result};
use crate::mysql::connect::settle_tls;
use crate::mysql::control::{explain, optional};
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::mysql::preflight::{self, Needs, Ready};
use crate::mysql::session::Session;
use crate::mysql::{server, status};
use crate::observe::host;
use crate::observe::probe::{HostReading, Probe, Whereabouts};
use crate::plan::{Plan, Policy, Spread, limits, units};
use crate::progress::Progress;
use crate::stop::{Stop, or_stop, within};
use crate::summary::{Levels, Server};
use crate::terms::Finding;

/// A server that is reached, and what ends the waits for it.
#[derive(Clone)]
pub(super) struct ServerLink<'a> {
    pub(super) target: ConnectOptions,
    /// [`ConnectOptions::opts`] of it.
    pub(super) opts: Opts,
    pub(super) stop: &'a Stop,
}

impl<'a> ServerLink<'a> {
    /// Decides whether the server's connections are encrypted.
    pub(super) async fn new(target: &ConnectOptions, stop: &'a Stop) -> Result<ServerLink<'a>> {
        let target = or_stop(stop, settle_tls(target)).await?;
        Ok(ServerLink { opts: target.opts()?, target, stop })
    }

    pub(super) async fn open(&self, charset: Option<&str>) -> Result<Session> {
        or_stop(self.stop, Session::open(&self.target, &self.opts, charset)).await
    }

    /// Asks the server until it is silent for too long, or a signal. Either way the future is dropped,
    /// and its session must be, too.
    pub(super) async fn ask<T>(&self, asking: impl Future<Output = Result<T>>) -> Result<T> {
        within(limits::SILENCE, or_stop(self.stop, asking)).await.unwrap_or_else(|| {
            let limit = units::duration(limits::SILENCE);
            Err(Error::server(format!("{} has not answered within {limit}", self.target.address))
                .hint("it is stopped, out of reach or very busy")
                .passing(true))
        })
    }

    /// Does what may take any time, as long as the server answers on another connection.
    pub(super) async fn patiently<T>(
        &self,
        control: &mut Session,
        doing: impl AsyncFnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        let liveness = Liveness::new(&self.target, &self.opts);
        let _waits = liveness.waits(control);
        liveness.during(self.stop, doing(control)).await
    }
}

/// A server that was looked at, with its tables: the same for all steps.
pub(super) struct Surveyed<'a> {
    pub(super) link: ServerLink<'a>,
    /// Between the steps; None where it is lost.
    pub(super) control: Option<Session>,
    pub(super) identity: Identity,
    /// How its process and host are read, where they can be.
    pub(super) probe: Option<Probe>,
    pub(super) warnings: Vec<Finding>,
    pub(super) spread: Spread,
    /// None of a timed job.
    pub(super) tables: Tables,
    pub(super) ids: Vec<Option<u32>>,
    pub(super) whereabouts: Whereabouts,
    pub(super) hosts: Hosts,
}

impl Surveyed<'_> {
    pub(super) async fn renewed(&self, session: &mut Session) -> Result<Server> {
        let mut renewed = self.identity.server.clone();
        let reading = async {
            let read = server::renew(session, &mut renewed).await;
            read.map_err(|failure| explain(&failure, "read the server's version and variables"))
        };
        self.link.ask(reading).await?;
        Ok(renewed)
    }

    pub(super) async fn levels(&self, session: &mut Session) -> Result<Option<Levels>> {
        let table = self.tables.schema.name(1);
        let reading = async {
            let read = optional(status::levels(session, &table).await);
            read.map_err(|failure| explain(&failure, "read the server's levels"))
        };
        self.link.ask(reading).await
    }
}

#[derive(Debug, Clone)]
pub(super) struct Hosts {
    pub(super) client: Probe,
    /// None where it is the client's, or nobody can look at it.
    server: Option<Probe>,
}

impl Hosts {
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

    /// Reads the client's and the server's, off the thread that keeps time: it reads many files, or
    /// waits for a command.
    pub(super) async fn read(&self) -> [Option<HostReading>; 2] {
        let mut states = [None, None];
        for (probe, state) in
            [Some(&self.client), self.server.as_ref()].into_iter().zip(&mut states)
        {
            let Some(probe) = probe.cloned() else { continue };
            *state = readings::aside(move || probe.state()).await.ok().flatten();
        }
        states
    }
}

/// Refuses a server or tables that a sweep cannot run on, and decides how its clients meet them.
pub(super) async fn preflight(
    plan: &Plan,
    target: &ConnectOptions,
    control: &mut Session,
) -> Result<(Ready, Spread, Tables)> {
    let spread = |tables| plan.spread_over(tables).unwrap_or(Spread::Random);
    let statements = |tables| plan.prepared_by_table(spread(tables), tables);
    let clients_max = plan.clients_max();
    let schema = plan.workload.schema;
    let needs = Needs {
        database: &target.database,
        schema,
        tables: plan.tables,
        rows: plan.rows,
        seed: plan.seed,
        clients_max,
        statements: &statements,
        writes: plan.workload.writes(),
        // Opening so many takes as long, doubled for slow servers.
        quiet_max: Duration::from_secs(2) * clients_max / limits::CONNECTS_PER_S
            + limits::COURTESY
            + plan.think.unwrap_or(Duration::ZERO),
    };
    let ready = preflight::check(control, &needs).await?;
    let dataset = &ready.dataset;
    let spread = plan.spread_over(dataset.tables)?;
    if schema.filled() {
        plan.workload.fits(dataset.rows)?;
    }
    let (count, rows) = (dataset.tables, dataset.rows);
    let tables = Tables { schema, count, rows, held: dataset.held, own: dataset.own };
    Ok((ready, spread, tables))
}

/// Finds a way to read the server's process and host: as `--probe` says, else here where the server
/// runs on this host.
pub(super) async fn probe(
    prefix: Vec<String>,
    server: Whereabouts,
    same_host: bool,
) -> Result<Option<Probe>> {
    // It reads many files, or waits for a command: not on the thread that keeps time.
    let looking = readings::aside(move || match prefix.as_slice() {
        [] => Ok(same_host.then(|| Probe::local(&server))),
        prefix => {
            let probe = Probe::through(prefix, &server)?;
            Ok(Some(if same_host { probe.beside(&server) } else { probe }))
        }
    });
    looking.await.map_err(|_| {
        Error::failed("cannot look at the server's host: there is no thread to be had")
            .hint("raise the limit on processes (ulimit -u)")
    })?
}

const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Waits for a server that is gone, where lost connections are opened again.
pub(super) struct Patience<'a> {
    policy: Policy,
    stop: &'a Stop,
    began: Instant,
    said: String,
}

impl<'a> Patience<'a> {
    pub(super) fn new(policy: Policy, stop: &'a Stop) -> Patience<'a> {
        Patience { policy, stop, began: Instant::now(), said: String::new() }
    }

    /// Waits until it is time for another attempt; false at once where none mends this error, or
    /// where there is no time for one.
    pub(super) async fn lasts(&mut self, error: &Error, progress: &mut Progress) -> Result<bool> {
        let waits = self.policy.reconnects() && error.may_pass();
        if !waits || self.began.elapsed() >= self.policy.patience() {
            return Ok(false);
        }
        let text = error.to_string();
        if text != self.said {
            progress.note(&format!("waiting for the server: {text}"));
            self.said = text;
        }
        pause(self.stop, BETWEEN_LOOKS).await.map(|()| true)
    }
}

pub(super) async fn pause(stop: &Stop, time: Duration) -> Result<()> {
    let sleeping = async {
        tokio::time::sleep(time).await;
        Ok(())
    };
    or_stop(stop, sleeping).await
}
