//! The load itself: statement after statement over one connection, each timed.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::Receiver;

use super::batch::{self, Item, Part};
use super::tables::Tables;
use super::{AGAIN, Loaded, Reload, Reloaded, Source, produce};
use crate::error::{Error, Result};
use crate::load::dump::{Kind, refuse_charset, unquoted};
use crate::load::fault::explain_with;
use crate::load::pace::{Pace, short};
use crate::load::text;
use crate::mysql::liveness::Liveness;
use crate::mysql::session::{Failure, Session};
use crate::observe::process::process_usage;
use crate::observe::recorder::{Ns, Op, Phases, Recorder};
use crate::observe::timeline::Timeline;
use crate::plan::timed::{LoadSource, LoadSpec};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::summary::ErrorCount;
use crate::workload::Schema;
use crate::workload::rows::Rows;
use crate::workload::table::name;

/// Length of an interval of the timeline.
const INTERVAL: Duration = Duration::from_secs(1);
/// How often the live line looks at the counters.
const LOOK: Duration = Duration::from_millis(100);

/// How far it is, for the live line.
#[derive(Debug, Default)]
struct Counters {
    rows: AtomicU64,
    /// Bytes of the dump.
    taken: AtomicU64,
}

/// Everything that the statements of a load share.
struct Work<'a> {
    spec: &'a LoadSpec,
    force: bool,
    control: &'a mut Session,
    /// Gone when its connection is.
    session: Option<Session>,
    /// Between two statements nothing is waited for: the dump may come slowly.
    liveness: &'a Liveness,
    packet: usize,
    /// The dump's name.
    file: Option<String>,
    tables: Tables,
    began: Instant,
    /// Time that loadgen took for itself.
    own: Duration,
    recorder: Recorder,
    counters: Arc<Counters>,
    statements: u64,
    bytes: u64,
    warnings: u64,
    charset: String,
    errors: Vec<ErrorCount>,
}

/// See [`Reload::run`].
pub(super) async fn run(
    reload: Reload,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<(Reloaded, Loaded)> {
    let Reload { spec, force, mut control, session, source, packet, character_sets, liveness } =
        reload;
    let timeline = Rc::new(RefCell::new(Timeline::new(1, 0, INTERVAL.as_nanos() as Ns)));
    let sink = Rc::clone(&timeline);
    let phases = Phases {
        window_start: 0,
        window_end: Ns::MAX,
        by_issue: false,
        interval: INTERVAL.as_nanos() as Ns,
    };
    let recorder = Recorder::new(
        phases,
        0,
        Box::new(move |interval| {
            sink.borrow_mut().add(0, interval);
        }),
    );
    let (file, length) = match &source {
        Source::Generated(_) => (None, None),
        Source::Dump { name, length, .. } => (Some(name.clone()), *length),
    };
    let counters = Arc::<Counters>::default();
    let charset = character_sets.get("character_set_client").cloned().unwrap_or_default();
    if let (Some(file), Err(why)) = (&file, refuse_charset(charset.as_bytes())) {
        return Err(Error::usage(format!("{file}: {why}")).hint("--charset names another"));
    }
    let mut live = Live::new(&spec, length, Arc::clone(&counters));
    progress.restart();
    let (started_at, before) = (jiff::Timestamp::now(), process_usage());
    let mut work = Work {
        spec: &spec,
        force,
        control: &mut control,
        session: Some(session),
        liveness: &liveness,
        packet,
        file,
        tables: Tables::default(),
        began: Instant::now(),
        own: Duration::ZERO,
        recorder,
        counters,
        statements: 0,
        bytes: 0,
        warnings: 0,
        charset,
        errors: Vec::new(),
    };
    // A packet has one byte before the statement.
    let parts = batch::start(produce(source, packet.saturating_sub(1)))?;
    let error = tokio::select! {
        biased;
        kind = stop.wait() => Some(Error::new(kind, "interrupted")),
        done = work.all(parts) => done.err(),
        silent = liveness.ends() => Some(silent),
        () = live.show(progress) => None,
    };
    let (end, after) = (work.now(), process_usage());
    progress.clear();
    let Work { session, tables, began, recorder, .. } = work;
    let (statements, bytes, warnings) = (work.statements, work.bytes, work.warnings);
    let (charset, errors) = (work.charset, work.errors);
    recorder.finish(end);
    timeline.borrow_mut().thread_done(0);
    let session = session.filter(|_| error.is_none());
    let timeline = Rc::try_unwrap(timeline).map_err(|_| Error::failed("the timeline is in use"))?;
    let reloaded = Reloaded {
        error,
        started_at,
        began,
        measured_s: end as f64 / 1e9,
        statements,
        bytes,
        rows: tables.all().iter().map(|table| table.rows).sum(),
        warnings,
        tables: tables.into_met(),
        charset,
        character_sets,
        errors,
        timeline: timeline.into_inner(),
        cost: after.since(&before),
    };
    Ok((reloaded, Loaded { spec, control, session, liveness }))
}

impl Work<'_> {
    /// Nanoseconds on the clock.
    fn now(&self) -> Ns {
        self.began.elapsed().saturating_sub(self.own).as_nanos() as Ns
    }

    async fn all(&mut self, mut parts: Receiver<Part>) -> Result<()> {
        loop {
            match parts.recv().await {
                Some(Part::Batch(batch)) => {
                    for (sql, item) in batch.statements() {
                        self.statement(sql, item).await?;
                    }
                    self.counters.taken.store(batch.taken(), Ordering::Relaxed);
                }
                Some(Part::LoadData(table)) => self.load_data(table).await?,
                Some(Part::End) => return Ok(()),
                Some(Part::Failed(error)) => return Err(error),
                None => return Err(Error::failed("the thread that makes statements panicked")),
            }
        }
    }

    async fn statement(&mut self, sql: &[u8], item: &Item) -> Result<()> {
        let raw = sql.get(item.seen.name.clone()).unwrap_or_default();
        let kind = item.seen.kind;
        let place = match kind {
            Kind::Other | Kind::Names => None,
            _ => Some(self.table(raw, item).await?),
        };
        let issued = self.now();
        let answer = match self.session.as_mut() {
            Some(session) => {
                let _waits = self.liveness.waits(session);
                session.run_bytes(sql).await
            }
            None => Err(Failure::Lost("the connection is gone".to_owned())),
        };
        let completed = self.now();
        let affected = match answer {
            Ok(answer) => answer.affected,
            Err(failure) => return Err(self.failed(&failure, issued, completed, item.line, raw)),
        };
        let rows = if kind == Kind::Insert { affected } else { 0 };
        self.succeeded(issued, completed, sql.len() as u64, rows);
        match (kind, place) {
            (Kind::Insert, Some(place)) => self.inserted(place, rows),
            (Kind::Create, Some(place)) => self.created(place).await?,
            (Kind::Names, _) => self.charset = unquoted(raw).unwrap_or_default(),
            _ => {}
        }
        Ok(())
    }

    /// The place of a statement's table, which is looked at when it is met first.
    async fn table(&mut self, raw: &[u8], item: &Item) -> Result<usize> {
        if let Some(place) = self.tables.known(raw) {
            return Ok(place);
        }
        let paused = Instant::now();
        let waits = self.liveness.waits(self.control);
        let met = self.tables.meet(self.control, raw, item.seen.kind, self.force).await;
        drop(waits);
        self.own += paused.elapsed();
        met.map_err(|error| match &self.file {
            Some(file) => error.context(format!("{file}: line {}", item.line)),
            None => error,
        })?;
        Ok(self.tables.all().len() - 1)
    }

    async fn created(&mut self, place: usize) -> Result<()> {
        let paused = Instant::now();
        let waits = self.liveness.waits(self.control);
        let created = self.tables.created(self.control, place).await;
        drop(waits);
        self.own += paused.elapsed();
        created
    }

    /// One statement for all rows of a table.
    async fn load_data(&mut self, table: u32) -> Result<()> {
        let LoadSource::Generated { rows: count, data_seed } = self.spec.source else {
            unreachable!("a dump has statements of its own")
        };
        let named = name(table);
        let counters = Arc::clone(&self.counters);
        let rows = Rows::new(data_seed, table, count).into();
        let lines = text::lines(rows, 1, count, self.packet, move |n| {
            counters.rows.fetch_add(n, Ordering::Relaxed);
        });
        let sent = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent);
        let lines = futures_util::StreamExt::inspect(lines, move |packet| {
            let bytes = packet.as_ref().map_or(0, |packet| packet.len() as u64);
            counted.fetch_add(bytes, Ordering::Relaxed);
        });
        let charset = self.spec.charset.as_deref().unwrap_or("latin1");
        let sql = text::load_data_in(Schema::Sbtest, table, charset);
        let session = self.session.take().expect("a load ends with its connection");
        let issued = self.now();
        let waits = self.liveness.waits(&session);
        let loaded = session.load_data(&sql, Box::pin(lines)).await;
        drop(waits);
        let completed = self.now();
        let (session, affected) = match loaded {
            Ok(loaded) => loaded,
            Err(failure) => {
                return Err(self.failed(&failure, issued, completed, 0, named.as_bytes()));
            }
        };
        self.warnings += u64::from(session.warnings());
        self.session = Some(session);
        self.succeeded(
            issued,
            completed,
            sql.len() as u64 + sent.load(Ordering::Relaxed),
            affected,
        );
        // The live line counted what was sent.
        self.counters.rows.fetch_sub(count, Ordering::Relaxed);
        if let Some(place) = self.tables.known(named.as_bytes()) {
            self.inserted(place, affected);
        }
        Ok(())
    }

    fn succeeded(&mut self, issued: Ns, completed: Ns, bytes: u64, rows: u64) {
        self.statements += 1;
        self.bytes += bytes;
        self.counters.rows.fetch_add(rows, Ordering::Relaxed);
        let (intended, measured) = (None, true);
        let op = Op { intended, issued, measured, completed, statements: 1, rows };
        self.recorder.succeeded(op);
    }

    fn inserted(&mut self, place: usize, rows: u64) {
        self.warnings += self.session.as_ref().map_or(0, |session| u64::from(session.warnings()));
        if let Some(table) = self.tables.at(place) {
            table.rows += rows;
            table.inserts += 1;
        }
    }

    /// Writes a failure down, and makes the error that ends the load.
    fn failed(
        &mut self,
        failure: &Failure,
        issued: Ns,
        completed: Ns,
        line: u64,
        raw: &[u8],
    ) -> Error {
        let (class, code, sqlstate, message) = match failure {
            Failure::Server { code, sqlstate, message } => {
                ("session", Some(*code), Some(sqlstate.clone()), message.clone())
            }
            Failure::Lost(what) => ("lost", None, None, what.clone()),
        };
        let class = class.to_owned();
        self.errors.push(ErrorCount { code, sqlstate, class, message, count: 1 });
        let at = match (&self.file, unquoted(raw)) {
            (Some(file), _) => format!("{file}: line {line}"),
            (None, Some(table)) if !table.is_empty() => format!("loading {table}"),
            _ => "loading".to_owned(),
        };
        self.recorder.failed(issued, true, completed);
        explain_with(failure, &at, AGAIN)
    }
}

/// The live line.
struct Live {
    counters: Arc<Counters>,
    pace: Pace,
    /// Whether it knows how much there will be.
    total: bool,
    dump: bool,
    began: Instant,
}

impl Live {
    fn new(spec: &LoadSpec, length: Option<u64>, counters: Arc<Counters>) -> Live {
        let (total, dump) = match spec.source {
            LoadSource::Generated { rows, .. } => {
                (Some(rows.saturating_mul(u64::from(spec.tables))), false)
            }
            LoadSource::Dump { .. } => (length, true),
        };
        let began = Instant::now();
        Live {
            counters,
            pace: Pace::new(total.unwrap_or(0), began),
            total: total.is_some(),
            dump,
            began,
        }
    }

    /// Never ends.
    async fn show(&mut self, progress: &mut Progress) {
        loop {
            tokio::time::sleep(LOOK).await;
            let rows = self.counters.rows.load(Ordering::Relaxed);
            let taken = self.counters.taken.load(Ordering::Relaxed);
            self.pace.at(Instant::now(), if self.dump { taken } else { rows });
            let per_s = rows as f64 / self.began.elapsed().as_secs_f64().max(1e-9);
            progress.update(|| match (self.dump, self.total) {
                (false, _) => format!("loading: {}", self.pace.text()),
                (true, true) => {
                    let pace = self.pace.text_of("bytes");
                    format!("loading: {} rows, {} rows/s; {pace}", short(rows as f64), short(per_s))
                }
                (true, false) => {
                    format!("loading: {} rows, {} rows/s", short(rows as f64), short(per_s))
                }
            });
        }
    }
}
