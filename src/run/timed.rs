//! Loads and suites: what is read of the server before and after, and their summaries.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::Instant;

use super::random;
use super::steps::{Surveyed, answer};
use crate::engine::readings::{self, ServerReading};
use crate::engine::{host_facts, program};
use crate::error::{Error, Kind, Result};
use crate::judge::{changed_after, no_result};
use crate::load::reload::{FORCE, LoadedTable, Reload, Reloaded};
use crate::mysql::control;
use crate::mysql::dataset;
use crate::mysql::server;
use crate::mysql::session::{Session, quoted_text};
use crate::observe::process::{ClientReading, peak_resident_bytes};
use crate::observe::times::Times;
use crate::plan::Step;
use crate::plan::limits;
use crate::plan::timed::{InsertMode, LoadSource, LoadSpec, SuiteSpec};
use crate::progress::Progress;
use crate::stop::{Stop, or_stop, within};
use crate::suite;
use crate::summary::{self, Outcome, Summary};
use crate::terms::{OnError, Spread, StatementMode, finding};
use crate::workload::Schema;

/// [`FORCE`], as a profile says it.
const REFILL: &str =
    "refill = true in [tables] drops also what prepare made; or name another database";

/// Says what to do about an error as a profile, which has no such flag.
pub(super) fn as_a_profile_says(error: Error) -> Error {
    error.instead(FORCE, REFILL)
}

/// One timed step on a server.
pub(super) struct Timed<'a> {
    pub(super) at: &'a Surveyed,
    pub(super) stop: &'a Stop,
    pub(super) step: &'a Step,
    pub(super) repeats: u32,
    /// The summary's workload, where it is not the usual name.
    pub(super) title: Option<String>,
}

/// What was measured, and what ended it early.
type Measured = (Summary, Option<Error>);

/// Read before the window.
struct Start {
    server: summary::Server,
    reading: ServerReading,
    own: ClientReading,
}

/// Read after it.
struct Finish {
    status: Option<summary::Status>,
    probed: Option<summary::Probed>,
    traffic: Option<[u64; 2]>,
    /// None where the server did not tell.
    changed: Option<Vec<summary::SettingChange>>,
}

/// Loads once, and counts afterwards what is there; with `force` over tables that prepare made, too.
///
/// # Errors
///
/// Before the first statement: a file that is not there, a server that does not take such
/// statements.
pub(super) async fn load(
    timed: &Timed<'_>,
    spec: &LoadSpec,
    force: bool,
    progress: &mut Progress,
) -> Result<Measured> {
    let Surveyed { target, opts, .. } = timed.at;
    let mut reload = Reload::open(target, opts, spec, force, timed.stop, progress).await?;
    let start = timed.start().await?;
    let mut loaded = reload.run(timed.stop, progress).await?;
    let finish = timed.finish(&start, loaded.began).await;
    let mut error = loaded.error.take();
    let mut verified = error.is_none();
    if verified {
        progress.update(|| "counting the rows".to_owned());
        error = reload.verify(&loaded, timed.stop).await.err();
        progress.clear();
    }
    if error.is_none() && loaded.tables.is_empty() {
        // What feeds a pipe may have failed.
        let text = format!("{}: no table was loaded", spec.name());
        error = Some(
            Error::data(text).hint("is the dump whole? mysqldump writes nothing where it fails"),
        );
    }
    verified &= error.is_none();
    let mut summary = timed.summary(spec.name(), start, finish, &mut error);
    let names: Vec<String> = loaded.tables.iter().map(|table| table.name.clone()).collect();
    (summary.server.data_bytes, summary.server.table_formats) =
        timed.table_facts(&names).await.unzip();
    let (data, pool) = (summary.server.data_bytes, summary.server.buffer_pool_bytes);
    summary.server.class = crate::judge::class_by_size(data, pool);
    fill(&mut summary, spec, &loaded);
    summary.load = Some(loaded_as(spec, &loaded, verified));
    Ok((summary, error))
}

/// Runs the commands once; what they print goes to a new file in `dir`.
///
/// # Errors
///
/// Before the first test.
pub(super) async fn suite(
    timed: &Timed<'_>,
    spec: &SuiteSpec,
    dir: &Path,
    progress: &mut Progress,
) -> Result<Measured> {
    let start = timed.start().await?;
    let (name, output) = output(dir, &timed.at.identity.label, spec, timed.step.repeat)?;
    let (began, started_at) = (Instant::now(), jiff::Timestamp::now());
    // It blocks this thread, and there is nothing else for it to do.
    let mut ran = suite::run(spec, &timed.at.target, &output, timed.stop, progress)?;
    let finish = timed.finish(&start, began).await;
    let usual = format!("suite-{}", spec.name);
    let mut summary = timed.summary(usual, start, finish, &mut ran.error);
    let sum = |of: fn(&summary::SuiteTest) -> f64| ran.tests.iter().map(of).sum::<f64>();
    summary.started_at = started_at.to_string();
    summary.measured_s = sum(|test| test.wall_s);
    let good = ran.tests.iter().filter(|test| test.status == "ok").count() as u64;
    count(&mut summary, good, 0, sum(|test| test.user_s), sum(|test| test.sys_s));
    summary.suite = Some(summary::Suite { tests: ran.tests, output: Some(name) });
    Ok((summary, ran.error))
}

/// A new file beside the summaries.
fn output(dir: &Path, label: &str, spec: &SuiteSpec, repeat: u32) -> Result<(String, File)> {
    let safe = |text: &str| -> String {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "+-.=@".contains(c) { c } else { '_' };
        text.chars().take(64).map(safe).collect()
    };
    let (label, suite) = (safe(label), safe(&spec.name));
    let name = format!("{label}_suite-{suite}_n{repeat}_{:016x}.output", random()?);
    let file = OpenOptions::new().write(true).create_new(true).open(dir.join(&name));
    let file = file.map_err(|e| Error::failed(format!("{}: {e}", dir.join(&name).display())))?;
    Ok((name, file))
}

impl Timed<'_> {
    /// Reads who the server is, and its counters, on a connection of its own.
    async fn start(&self) -> Result<Start> {
        let Surveyed { target, opts, identity, probe, .. } = self.at;
        let mut session = or_stop(self.stop, Session::open(target, opts, None)).await?;
        let mut server = identity.server.clone();
        let reading = async { Ok(server::renew(&mut session, &mut server).await?) };
        answer(self.stop, &target.address, reading).await?;
        let mut control = Some(session);
        let reading = ServerReading::take(&mut control, probe.as_ref()).await;
        if let Some(session) = control {
            session.close(limits::COURTESY).await;
        }
        Ok(Start { server, reading, own: ClientReading::now(probe.as_ref()) })
    }

    /// Reads the same after the window that began then. A server that does not answer in time costs
    /// the reading, not the measurement.
    async fn finish(&self, start: &Start, began: Instant) -> Finish {
        let Surveyed { target, opts, probe, .. } = self.at;
        let own = ClientReading::now(probe.as_ref());
        // Not the connection of before: a server drops one that was idle for hours.
        let session = within(limits::COURTESY, Session::open(target, opts, None)).await;
        let mut control = session.and_then(Result::ok);
        let last = ServerReading::take(&mut control, probe.as_ref()).await;
        let changed = readings::changes(&start.server, &mut control, target, opts).await;
        if let Some(session) = control {
            session.close(limits::COURTESY).await;
        }
        Finish {
            status: last.status_since(&start.reading, began),
            probed: last.probed_since(&start.reading, probe.as_ref(), began),
            traffic: own.since(&start.own).traffic,
            changed,
        }
    }

    /// Reads the size of some tables with their indexes, bytes, and their formats, each once; None
    /// where the server does not tell.
    async fn table_facts(&self, tables: &[String]) -> Option<(u64, Vec<String>)> {
        let names: Vec<String> = tables.iter().map(|name| quoted_text(name)).collect();
        if names.is_empty() {
            return None;
        }
        let which = format!("TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ({})", names.join(","));
        let asking = async {
            let mut session = Session::open(&self.at.target, &self.at.opts, None).await?;
            // MySQL 8 keeps sizes for a day otherwise; servers without the variable keep none.
            let fresh = "SET SESSION information_schema_stats_expiry = 0";
            control::optional(session.execute(fresh).await)?;
            Ok::<_, Error>(dataset::facts(&mut session, &which).await?)
        };
        within(limits::COURTESY, asking).await?.ok()
    }

    /// Makes a summary in which only the run itself is missing. Of a server that changed meanwhile
    /// it is no result, which is an error then.
    fn summary(
        &self,
        usual: String,
        start: Start,
        finish: Finish,
        error: &mut Option<Error>,
    ) -> Summary {
        let identity = &self.at.identity;
        let mut outcome = outcome(error.as_ref());
        if error.is_none()
            && let Some(changed) = finish.changed.as_deref().and_then(no_result)
        {
            (outcome, *error) = (Outcome::ServerChanged, Some(changed));
        }
        let mut found = changed_after(finish.changed.as_deref());
        if cfg!(debug_assertions) {
            found.push(finding!(DebugBuild));
        }
        if finish.status.is_none() {
            found.push(finding!(NoStatus));
        }
        let none = Times::new().distribution();
        Summary {
            schema: summary::SCHEMA.to_owned(),
            loadgen: program(),
            run_id: identity.run_id.clone(),
            step_id: identity.step_id(self.step),
            label: identity.label.clone(),
            notes: identity.notes.clone(),
            outcome,
            reason: error.as_ref().map(ToString::to_string),
            workload: summary::Workload {
                name: self.title.clone().unwrap_or(usual),
                mode: StatementMode::Text,
                distribution: "sequential".to_owned(),
                spread: Spread::Pinned,
                schema: Schema::Sbtest.to_string(),
                ..summary::Workload::default()
            },
            plan: summary::Plan {
                clients: 1,
                engine_threads: 1,
                on_error: OnError::default(),
                repeat_index: self.step.repeat,
                repeats: self.repeats,
                ..summary::Plan::default()
            },
            server: summary::Server {
                settings_changed: finish.changed.unwrap_or_default(),
                status: finish.status,
                probed: finish.probed,
                host_facts: host_facts(identity, self.at.probe.as_ref()),
                ..start.server
            },
            driver: identity.driver.clone(),
            client: summary::Client {
                host: identity.host.name.clone(),
                kernel: identity.host.kernel.clone(),
                cpu: identity.host.cpu.clone(),
                cores: identity.host.cores_usable,
                same_host: identity.same_host,
                max_rss_bytes: peak_resident_bytes(),
                rtt_us: identity.rtt_us,
                net_rx_bytes: finish.traffic.map(|[received, _]| received),
                net_tx_bytes: finish.traffic.map(|[_, sent]| sent),
                ..summary::Client::default()
            },
            latency: summary::Latency {
                service: none.clone(),
                failed: none,
                in_doubt: Some(0),
                abandoned: Some(0),
                ..summary::Latency::default()
            },
            warnings: found.into_iter().map(Into::into).collect(),
            ..Summary::default()
        }
    }
}

fn outcome(error: Option<&Error>) -> Outcome {
    match error.map(Error::kind) {
        None => Outcome::Completed,
        Some(Kind::Interrupted | Kind::Terminated) => Outcome::Interrupted,
        Some(_) => Outcome::Aborted,
    }
}

/// Writes ops and rows of a run, and what follows from them once its time is known.
fn count(summary: &mut Summary, ops: u64, rows: u64, user_s: f64, sys_s: f64) {
    let per_s = if summary.measured_s > 0.0 { ops as f64 / summary.measured_s } else { 0.0 };
    let totals = &mut summary.totals;
    (totals.ops, totals.statements, totals.rows) = (ops, ops, rows);
    (totals.tps, totals.qps) = (per_s, per_s);
    totals.per_client = summary::PerClient { ops_min: ops, ops_median: ops as f64, ops_max: ops };
    let client = &mut summary.client;
    (client.user_s, client.sys_s) = (user_s, sys_s);
    client.us_per_op = (ops > 0).then(|| (user_s + sys_s) * 1e6 / ops as f64);
}

/// Writes what a load was into its summary.
fn fill(summary: &mut Summary, spec: &LoadSpec, loaded: &Reloaded) {
    summary.started_at = loaded.started_at.to_string();
    summary.measured_s = loaded.measured_s;
    let cost = loaded.cost;
    count(summary, loaded.statements, loaded.rows, cost.user.as_secs_f64(), cost.sys.as_secs_f64());
    let sql = match (&spec.source, spec.insert) {
        (LoadSource::Dump { .. }, _) => "the dump's own",
        (_, InsertMode::Extended { .. }) => "INSERT INTO {table} VALUES (…),(…),…",
        (_, InsertMode::Single) => "INSERT INTO {table} VALUES (…)",
        (_, InsertMode::LoadData) => "LOAD DATA LOCAL INFILE … INTO TABLE {table}",
    };
    let statement =
        summary::StatementText { kind: "insert".to_owned(), sql: sql.to_owned(), repeat: 1 };
    summary.workload.statements = vec![statement];
    summary.plan.tables = loaded.tables.len() as u32;
    summary.plan.rows = loaded.tables.iter().map(|table| table.rows).max().unwrap_or(0);
    if let LoadSource::Generated { rows, data_seed } = spec.source {
        (summary.plan.tables, summary.plan.rows) = (spec.tables, rows);
        summary.plan.data_seed = Some(u64::from(data_seed));
    }
    summary.totals.errors.clone_from(&loaded.errors);
    let ops =
        |table: &LoadedTable| summary::TableOps { table: table.name.clone(), ops: table.inserts };
    summary.totals.per_table = loaded.tables.iter().map(ops).collect();
    summary.latency.service = loaded.timeline.window.service.distribution();
    summary.latency.failed = loaded.timeline.window.failed.distribution();
    summary.timeline.clone_from(&loaded.timeline.entries);
    if loaded.warnings > 0 {
        summary.warn([finding!(ServerWarnings, loaded.warnings)]);
    }
    if let (LoadSource::Dump { path }, Some(asked)) = (&spec.source, &spec.charset)
        && !asked.eq_ignore_ascii_case(&loaded.charset)
    {
        let (file, set) = (path.display().to_string(), loaded.charset.as_str());
        summary.warn([finding!(Charset, file, set, asked.as_str())]);
    }
}

fn loaded_as(spec: &LoadSpec, loaded: &Reloaded, verified: bool) -> summary::Load {
    let rows =
        |table: &LoadedTable| summary::TableRows { table: table.name.clone(), rows: table.rows };
    let (file, generated) = match &spec.source {
        LoadSource::Generated { .. } => (None, true),
        LoadSource::Dump { path } => (Some(path.display().to_string()), false),
    };
    let per_s = loaded.rows as f64 / loaded.measured_s;
    summary::Load {
        source: if generated { "generated" } else { "dump" }.to_owned(),
        file,
        mode: generated.then(|| spec.insert.to_string()),
        insert_bytes: match spec.insert {
            InsertMode::Extended { bytes } if generated => Some(bytes),
            _ => None,
        },
        rows: loaded.rows,
        rows_per_s: if loaded.measured_s > 0.0 { per_s } else { 0.0 },
        statements: loaded.statements,
        bytes: loaded.bytes,
        charset: loaded.charset.clone(),
        character_sets: loaded.character_sets.clone(),
        tables: loaded.tables.iter().map(rows).collect(),
        verified,
    }
}
