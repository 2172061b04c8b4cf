//! Loads and suites: what is read of the server before and after, and their summaries.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::Instant;

use super::before::{ServerLink, Surveyed};
use super::random;
use crate::commands::suite;
use crate::engine::host_facts;
use crate::engine::readings::{self, ServerReading};
use crate::error::{Error, Kind, Result};
use crate::judge::{changed_after, class_by_size};
use crate::load::reload::{LoadedTable, Reload, Reloaded};
use crate::mysql::{Session, dataset, optional, quoted_text};
use crate::observe::process::ClientReading;
use crate::observe::times::Times;
use crate::plan::timed::{InsertMode, LoadSource, LoadSpec, SuiteSpec};
use crate::plan::{Step, limits};
use crate::progress::Progress;
use crate::stop::within;
use crate::summary::{self, CommandRun, Outcome, Recorded, Summary};
use crate::terms::{StatementMode, finding};
use crate::workload::Schema;

/// A step that was measured, and is not kept yet.
pub(super) struct Measured {
    pub(super) summary: Summary,
    pub(super) error: Option<Error>,
    pub(super) ran: Vec<CommandRun>,
    /// The record of what it was about to write.
    pub(super) begun: Option<Recorded>,
}

/// What is read before a window, and of which step.
struct Start<'a> {
    at: &'a Surveyed<'a>,
    step: &'a Step,
    repeats: u32,
    server: summary::Server,
    reading: ServerReading,
    own: ClientReading,
}

/// Loads once, and counts afterwards what is there; with `force` over tables that prepare made, too.
pub(super) async fn load(
    at: &Surveyed<'_>,
    (step, repeats): (&Step, u32),
    (spec, force): (&LoadSpec, bool),
    progress: &mut Progress,
) -> Result<Measured> {
    let ServerLink { target, opts, stop } = at.link;
    let reload = Reload::open(target, opts, spec, force, stop, progress).await?;
    let start = Start::read(at, step, repeats).await?;
    let mut loaded = reload.run(stop, progress).await?;
    let mut summary = start.finish(spec.name(), loaded.began).await;
    let mut error = loaded.error.take();
    if error.is_none() {
        progress.update(|| "counting the rows".to_owned());
        error = loaded.verify(spec, stop).await.err();
        progress.clear();
    }
    if error.is_none() && loaded.done.tables.is_empty() {
        // What feeds a pipe may have failed.
        let text = format!("{}: no table was loaded", spec.name());
        let hint = "is the dump whole? mysqldump writes nothing where it fails";
        error = Some(Error::data(text).hint(hint));
    }
    fill(&mut summary, spec, &loaded, error.is_none());
    let server = &mut summary.server;
    (server.data_bytes, server.table_formats) =
        table_facts(at.link, &loaded.done.tables).await.unzip();
    server.class = class_by_size(server.data_bytes, server.buffer_pool_bytes);
    Ok(ended(summary, error))
}

/// Runs the commands once; what they print goes to a new file in `dir`.
pub(super) async fn suite(
    at: &Surveyed<'_>,
    (step, repeats): (&Step, u32),
    (spec, dir): (&SuiteSpec, &Path),
    progress: &mut Progress,
) -> Result<Measured> {
    let start = Start::read(at, step, repeats).await?;
    let (name, output) = output(dir, &at.identity.label, spec, step.repeat)?;
    let (began, started_at) = (Instant::now(), jiff::Timestamp::now());
    // It blocks this thread, and there is nothing else for it to do.
    let (tests, error) = suite::run(spec, &at.link.target, &output, at.link.stop, progress)?;
    let mut summary = start.finish(format!("suite-{}", spec.name), began).await;
    let sum = |of: fn(&summary::SuiteTest) -> f64| tests.iter().map(of).sum::<f64>();
    summary.started_at = started_at.to_string();
    summary.measured_s = sum(|test| test.wall_s);
    let good = tests.iter().filter(|test| test.status == suite::OK).count() as u64;
    count(&mut summary, good, 0, sum(|test| test.user_s), sum(|test| test.sys_s));
    summary.suite = Some(summary::Suite { tests, output: Some(name) });
    Ok(ended(summary, error))
}

impl<'a> Start<'a> {
    /// Reads who the server is, and its counters, on a connection of its own.
    async fn read(at: &'a Surveyed<'a>, step: &'a Step, repeats: u32) -> Result<Start<'a>> {
        let probe = at.probe.as_ref();
        let mut session = at.link.open(None).await?;
        let server = at.renewed(&mut session).await?;
        let mut control = Some(session);
        let reading = ServerReading::take(&mut control, probe).await;
        close(control).await;
        Ok(Start { at, step, repeats, server, reading, own: ClientReading::now(probe) })
    }

    /// Reads the same after the window that began then, and makes a summary in which only the run
    /// itself is missing. A server that does not answer in time costs the reading, not the
    /// measurement.
    async fn finish(self, workload: String, began: Instant) -> Summary {
        let Surveyed { link, identity, probe, .. } = self.at;
        let probe = probe.as_ref();
        let traffic = ClientReading::now(probe).since(&self.own).traffic;
        // Not the connection of before: a server drops one that was idle for hours.
        let session = within(limits::COURTESY, Session::open(&link.target, &link.opts, None)).await;
        let mut control = session.and_then(Result::ok);
        let last = ServerReading::take(&mut control, probe).await;
        let changed = readings::changes(&self.server, &mut control, &link.target, &link.opts).await;
        close(control).await;
        let mut summary = identity.summary(self.step);
        let (of, plan) = (&mut summary.workload, &mut summary.plan);
        (of.name, of.mode) = (workload, StatementMode::Text);
        (of.distribution, of.schema) = ("sequential".to_owned(), Schema::Sbtest.to_string());
        (plan.clients, plan.engine_threads) = (1, 1);
        (plan.repeat_index, plan.repeats) = (self.step.repeat, self.repeats);
        summary.client.net_rx_bytes = traffic.map(|[received, _]| received);
        summary.client.net_tx_bytes = traffic.map(|[_, sent]| sent);
        let (latency, none) = (&mut summary.latency, Times::new().distribution());
        (latency.service, latency.failed) = (none.clone(), none);
        (latency.in_doubt, latency.abandoned) = (Some(0), Some(0));
        let (status, probed) = last.since(&self.reading, probe, began);
        summary.warn(cfg!(debug_assertions).then(|| finding!(DebugBuild)));
        summary.warn(changed_after(changed.as_deref()));
        summary.warn(status.is_none().then(|| finding!(NoStatus)));
        summary.server = summary::Server {
            settings_changed: changed.unwrap_or_default(),
            status,
            probed,
            host_facts: host_facts(identity, probe),
            ..self.server
        };
        summary
    }
}

/// Reads the size of some tables with their indexes, bytes, and their formats, each once; None where
/// the server does not tell.
async fn table_facts(link: &ServerLink<'_>, tables: &[LoadedTable]) -> Option<(u64, Vec<String>)> {
    let names: Vec<String> = tables.iter().map(|table| quoted_text(&table.name)).collect();
    if names.is_empty() {
        return None;
    }
    let which = format!("TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ({})", names.join(","));
    let asking = async {
        let mut session = Session::open(&link.target, &link.opts, None).await?;
        // MySQL 8 keeps sizes for a day otherwise; servers without the variable keep none.
        let fresh = "SET SESSION information_schema_stats_expiry = 0";
        optional(session.execute(fresh).await)?;
        Ok::<_, Error>(dataset::facts(&mut session, &which).await?)
    };
    within(limits::COURTESY, asking).await?.ok()
}

async fn close(control: Option<Session>) {
    if let Some(session) = control {
        session.close(limits::COURTESY).await;
    }
}

fn output(dir: &Path, label: &str, spec: &SuiteSpec, repeat: u32) -> Result<(String, File)> {
    let (label, suite) = (summary::part(label), summary::part(&spec.name));
    let name = format!("{label}_suite-{suite}_n{repeat}_{:016x}.output", random()?);
    let file = OpenOptions::new().write(true).create_new(true).open(dir.join(&name));
    let file = file.map_err(|e| Error::failed(format!("{}: {e}", dir.join(&name).display())))?;
    Ok((name, file))
}

/// Says in the summary how it ended.
fn ended(mut summary: Summary, error: Option<Error>) -> Measured {
    summary.outcome = match error.as_ref().map(Error::kind) {
        None => Outcome::Completed,
        Some(Kind::Interrupted | Kind::Terminated) => Outcome::Interrupted,
        Some(_) => Outcome::Aborted,
    };
    summary.reason = error.as_ref().map(ToString::to_string);
    Measured { summary, error, ran: Vec::new(), begun: None }
}

fn per_s(n: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { n as f64 / seconds } else { 0.0 }
}

/// Writes ops and rows of a run, and what follows from them once its time is known.
fn count(summary: &mut Summary, ops: u64, rows: u64, user_s: f64, sys_s: f64) {
    let per_s = per_s(ops, summary.measured_s);
    let (totals, client) = (&mut summary.totals, &mut summary.client);
    (totals.ops, totals.statements, totals.rows) = (ops, ops, rows);
    (totals.tps, totals.qps) = (per_s, per_s);
    totals.per_client = summary::PerClient { ops_min: ops, ops_median: ops as f64, ops_max: ops };
    (client.user_s, client.sys_s) = (user_s, sys_s);
    client.us_per_op = (ops > 0).then(|| (user_s + sys_s) * 1e6 / ops as f64);
}

fn fill(summary: &mut Summary, spec: &LoadSpec, loaded: &Reloaded, verified: bool) {
    summary.started_at = loaded.started_at.to_string();
    summary.measured_s = loaded.measured_s;
    let cost = loaded.cost;
    count(
        summary,
        loaded.done.statements,
        loaded.rows,
        cost.user.as_secs_f64(),
        cost.sys.as_secs_f64(),
    );
    let (file, bytes, sql) = match (&spec.source, spec.insert) {
        (LoadSource::Dump { path }, _) => {
            (Some(path.display().to_string()), None, "the dump's own")
        }
        (_, InsertMode::Extended { bytes }) => {
            (None, Some(bytes), "INSERT INTO {table} VALUES (…),(…),…")
        }
        (_, InsertMode::Single) => (None, None, "INSERT INTO {table} VALUES (…)"),
        (_, InsertMode::LoadData) => (None, None, "LOAD DATA LOCAL INFILE … INTO TABLE {table}"),
    };
    let (kind, sql) = ("insert".to_owned(), sql.to_owned());
    summary.workload.statements = vec![summary::StatementText { kind, sql, repeat: 1 }];
    let (tables, plan) = (&loaded.done.tables, &mut summary.plan);
    (plan.tables, plan.rows) = match spec.source {
        LoadSource::Generated { rows, data_seed } => {
            plan.data_seed = Some(u64::from(data_seed));
            (spec.tables, rows)
        }
        LoadSource::Dump { .. } => {
            (tables.len() as u32, tables.iter().map(|table| table.rows).max().unwrap_or(0))
        }
    };
    summary.totals.errors.clone_from(&loaded.done.errors);
    let ops = |of: &LoadedTable| summary::TableOps { table: of.name.clone(), ops: of.inserts };
    summary.totals.per_table = tables.iter().map(ops).collect();
    summary.latency.service = loaded.timeline.window.service.distribution();
    summary.latency.failed = loaded.timeline.window.failed.distribution();
    summary.timeline.clone_from(&loaded.timeline.entries);
    if loaded.done.warnings > 0 {
        summary.warn([finding!(ServerWarnings, loaded.done.warnings)]);
    }
    if let (Some(file), Some(asked)) = (&file, &spec.charset)
        && !asked.eq_ignore_ascii_case(&loaded.done.charset)
    {
        let (file, set) = (file.clone(), loaded.done.charset.as_str());
        summary.warn([finding!(Charset, file, set, asked.as_str())]);
    }
    let rows = |of: &LoadedTable| summary::TableRows { table: of.name.clone(), rows: of.rows };
    summary.load = Some(summary::Load {
        source: if file.is_none() { "generated" } else { "dump" }.to_owned(),
        mode: file.is_none().then(|| spec.insert.to_string()),
        insert_bytes: bytes,
        file,
        rows: loaded.rows,
        rows_per_s: per_s(loaded.rows, loaded.measured_s),
        statements: loaded.done.statements,
        bytes: loaded.done.bytes,
        charset: loaded.done.charset.clone(),
        character_sets: loaded.character_sets.clone(),
        tables: tables.iter().map(rows).collect(),
        verified,
    });
}
