//! The load itself: statement after statement over one connection, each timed.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::Receiver;

use super::statements::{self, Item, Part};
use super::tables::LoadedTable;
use super::{AGAIN, Reload};
use crate::error::{Error, Result};
use crate::load::connect::{AGAIN as COMPLETED, explain};
use crate::load::dump::{Kind, refuse_charset, unquoted};
use crate::load::text;
use crate::load::throughput::{Throughput, rate, short};
use crate::mysql::liveness::Liveness;
use crate::mysql::session::{Failure, Session};
use crate::observe::process::{Cost, process_usage};
use crate::observe::recorder::{Ns, Op, Phases, Recorder};
use crate::observe::timeline::Timeline;
use crate::plan::timed::{LoadSource, LoadSpec};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::summary::ErrorCount;
use crate::workload::Schema;
use crate::workload::rows::Rows;
use crate::workload::table::name;

/// Length of an interval of the timeline, nanoseconds.
const INTERVAL: Ns = 1_000_000_000;
/// How often the live line looks at the counters.
const LOOK: Duration = Duration::from_millis(100);

/// What a load came to.
#[derive(Debug)]
pub(crate) struct Reloaded {
    /// What ended it early.
    pub error: Option<Error>,
    /// The first statement.
    pub started_at: jiff::Timestamp,
    /// The same instant, for readings beside it.
    pub began: Instant,
    /// From the first statement to the last answer, loadgen's own doings left out, seconds.
    pub measured_s: f64,
    /// Statements that were answered well.
    pub statements: u64,
    /// Bytes of these, and of the lines of LOAD DATA.
    pub bytes: u64,
    /// Rows that the server says it took.
    pub rows: u64,
    /// Warnings of the INSERTs and LOAD DATAs.
    pub warnings: u64,
    /// The tables, in the order in which they came.
    pub tables: Vec<LoadedTable>,
    /// Character set of the statements: the dump's own SET NAMES, else the session's.
    pub charset: String,
    /// The loading session's character_set_… and collation_… variables at its start.
    pub character_sets: std::collections::BTreeMap<String, String>,
    /// The statement that failed.
    pub errors: Vec<ErrorCount>,
    /// Statements a second, and their times.
    pub timeline: Timeline,
    /// CPU time of this process meanwhile.
    pub cost: Cost,
}

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
    session: &'a mut Option<Session>,
    /// Between two statements nothing is waited for: the dump may come slowly.
    liveness: &'a Liveness,
    packet: usize,
    /// The dump's name.
    file: Option<String>,
    /// Time that loadgen took for itself.
    own: Duration,
    recorder: Recorder,
    counters: &'a Arc<Counters>,
    done: Reloaded,
}

impl Reload {
    /// Loads, until all is loaded, something fails, the server is silent, or `stop` is asked. On a
    /// `current_thread` runtime. [`Reload::verify`] counts what is there then.
    pub(crate) async fn run(&mut self, stop: &Stop, progress: &mut Progress) -> Result<Reloaded> {
        let Reload { spec, force, control, session, dump, packet, character_sets, liveness } = self;
        let charset = character_sets.get("character_set_client").cloned().unwrap_or_default();
        let (file, length) =
            (dump.as_ref().map(|d| d.name.clone()), dump.as_ref().map(|d| d.length));
        if let (Some(file), Err(why)) = (&file, refuse_charset(charset.as_bytes())) {
            return Err(Error::usage(format!("{file}: {why}")).hint("--charset names another"));
        }
        let timeline = Rc::new(RefCell::new(Timeline::new(1, 0, INTERVAL)));
        let sink = Rc::clone(&timeline);
        let phases =
            Phases { window_start: 0, window_end: Ns::MAX, by_issue: false, interval: INTERVAL };
        let finished = move |interval| {
            sink.borrow_mut().add(0, interval);
        };
        let counters = Arc::<Counters>::default();
        progress.restart();
        // A packet has one byte before the statement.
        let parts = statements::start(spec, dump.take(), packet.saturating_sub(1))?;
        let before = process_usage();
        let mut work = Work {
            spec,
            force: *force,
            control,
            session,
            liveness,
            packet: *packet,
            file,
            own: Duration::ZERO,
            recorder: Recorder::new(phases, 0, Box::new(finished)),
            counters: &counters,
            done: Reloaded {
                error: None,
                started_at: jiff::Timestamp::now(),
                began: Instant::now(),
                measured_s: 0.0,
                statements: 0,
                bytes: 0,
                rows: 0,
                warnings: 0,
                tables: Vec::new(),
                charset,
                character_sets: character_sets.clone(),
                errors: Vec::new(),
                timeline: Timeline::new(1, 0, INTERVAL),
                cost: Cost::default(),
            },
        };
        let error = tokio::select! {
            biased;
            done = liveness.during(stop, work.all(parts)) => done.err(),
            () = show(&counters, spec, length, progress) => None,
        };
        let (end, cost) = (work.now(), process_usage().since(&before));
        progress.clear();
        let Work { recorder, mut done, .. } = work;
        recorder.finish(end);
        timeline.borrow_mut().thread_done(0);
        std::mem::swap(&mut done.timeline, &mut timeline.borrow_mut());
        if error.is_some() {
            *session = None;
        }
        let rows = done.tables.iter().map(|table| table.rows).sum();
        Ok(Reloaded { error, measured_s: end as f64 / 1e9, rows, cost, ..done })
    }
}

impl Work<'_> {
    /// Nanoseconds on the clock.
    fn now(&self) -> Ns {
        self.done.began.elapsed().saturating_sub(self.own).as_nanos() as Ns
    }

    async fn all(&mut self, mut parts: Receiver<Result<Part>>) -> Result<()> {
        while let Some(part) = parts.recv().await {
            match part? {
                Part::Batch(batch) => {
                    for (sql, item) in batch.statements() {
                        self.statement(sql, item).await?;
                    }
                    self.counters.taken.store(batch.taken, Ordering::Relaxed);
                }
                Part::LoadData(table) => self.load_data(table).await?,
                Part::End => return Ok(()),
            }
        }
        Err(Error::failed("the thread that makes statements panicked"))
    }

    async fn statement(&mut self, sql: &[u8], item: &Item) -> Result<()> {
        let (kind, raw) = (item.seen.kind, &sql[item.seen.name.clone()]);
        let place = match kind {
            Kind::Other | Kind::Names => None,
            _ => Some(self.table(raw, item).await?),
        };
        let issued = self.now();
        let session = self.session.as_mut().expect("a load ends with its connection");
        let waits = self.liveness.waits(session);
        let answer = session.run_bytes(sql).await;
        drop(waits);
        let affected = match answer {
            Ok(answer) => answer.affected,
            Err(failure) => return Err(self.failed(&failure, issued, item.line, raw)),
        };
        let rows = if kind == Kind::Insert { affected } else { 0 };
        self.succeeded(issued, sql.len() as u64, rows);
        match (kind, place) {
            (Kind::Insert, Some(place)) => self.inserted(place, rows),
            (Kind::Create, Some(place)) => {
                let paused = Instant::now();
                let _waits = self.liveness.waits(self.control);
                self.done.tables[place].created(self.control).await?;
                self.own += paused.elapsed();
            }
            (Kind::Names, _) => {
                self.done.charset = unquoted(raw).expect("an odd character set is refused");
            }
            _ => {}
        }
        Ok(())
    }

    /// Finds the place of a statement's table, which is looked at when it is met first.
    async fn table(&mut self, raw: &[u8], item: &Item) -> Result<usize> {
        if let Some(place) = self.place(raw) {
            return Ok(place);
        }
        let paused = Instant::now();
        let _waits = self.liveness.waits(self.control);
        let met = LoadedTable::meet(self.control, raw, item.seen.kind, self.force).await;
        self.own += paused.elapsed();
        self.done.tables.push(met.map_err(|error| match &self.file {
            Some(file) => error.context(format!("{file}: line {}", item.line)),
            None => error,
        })?);
        Ok(self.done.tables.len() - 1)
    }

    /// Finds the place of the table of this name, if it was met before.
    fn place(&self, raw: &[u8]) -> Option<usize> {
        let name = unquoted(raw)?;
        self.done.tables.iter().rposition(|table| table.name == name)
    }

    /// Loads all rows of a table with one statement.
    async fn load_data(&mut self, table: u32) -> Result<()> {
        let LoadSource::Generated { rows: count, data_seed } = self.spec.source else {
            unreachable!("a dump has statements of its own")
        };
        let named = name(table);
        let place = self.place(named.as_bytes()).expect("it was created just now");
        let bytes = Arc::new(AtomicU64::new(0));
        let (counters, counted) = (Arc::clone(self.counters), Arc::clone(&bytes));
        let rows = Rows::new(data_seed, table, count).into();
        let lines = text::lines(rows, 1, count, self.packet, move |rows, bytes| {
            counters.rows.fetch_add(rows, Ordering::Relaxed);
            counted.fetch_add(bytes as u64, Ordering::Relaxed);
        });
        let charset = self.spec.charset.as_deref().unwrap_or("latin1");
        let sql = text::load_data(Schema::Sbtest, table, charset);
        let session = self.session.take().expect("a load ends with its connection");
        let issued = self.now();
        let waits = self.liveness.waits(&session);
        let loaded = session.load_data(&sql, lines).await;
        drop(waits);
        let (session, affected) =
            loaded.map_err(|failure| self.failed(&failure, issued, 0, named.as_bytes()))?;
        *self.session = Some(session);
        self.succeeded(issued, sql.len() as u64 + bytes.load(Ordering::Relaxed), affected);
        // The live line counted what was sent.
        self.counters.rows.fetch_sub(count, Ordering::Relaxed);
        self.inserted(place, affected);
        Ok(())
    }

    fn succeeded(&mut self, issued: Ns, bytes: u64, rows: u64) {
        let completed = self.now();
        self.done.statements += 1;
        self.done.bytes += bytes;
        self.counters.rows.fetch_add(rows, Ordering::Relaxed);
        let (intended, measured) = (None, true);
        let op = Op { intended, issued, measured, completed, statements: 1, rows };
        self.recorder.succeeded(op);
    }

    fn inserted(&mut self, place: usize, rows: u64) {
        let session = self.session.as_ref().expect("it answered just now");
        self.done.warnings += u64::from(session.warnings());
        let table = &mut self.done.tables[place];
        table.rows += rows;
        table.inserts += 1;
    }

    /// Writes a failure down, and makes the error that ends the load.
    fn failed(&mut self, failure: &Failure, issued: Ns, line: u64, raw: &[u8]) -> Error {
        self.recorder.failed(issued, true, self.now());
        let (class, code, sqlstate, message) = match failure {
            Failure::Server { code, sqlstate, message } => {
                ("session", Some(*code), Some(sqlstate.clone()), message.clone())
            }
            Failure::Lost(what) => ("lost", None, None, what.clone()),
        };
        let class = class.to_owned();
        self.done.errors.push(ErrorCount { code, sqlstate, class, message, count: 1 });
        let at = match (&self.file, unquoted(raw)) {
            (Some(file), _) => format!("{file}: line {line}"),
            (None, Some(table)) if !table.is_empty() => format!("loading {table}"),
            _ => "loading".to_owned(),
        };
        explain(failure).instead(COMPLETED, AGAIN).context(at)
    }
}

/// Shows the live line, and never ends. `length` is of a dump, where it is known.
async fn show(
    counters: &Counters,
    spec: &LoadSpec,
    length: Option<Option<u64>>,
    progress: &mut Progress,
) {
    let began = Instant::now();
    let total = match spec.source {
        LoadSource::Generated { rows, .. } => Some(rows * u64::from(spec.tables)),
        LoadSource::Dump { .. } => length.flatten(),
    };
    let mut throughput = total.map(|total| Throughput::new(total, began));
    loop {
        tokio::time::sleep(LOOK).await;
        let rows = counters.rows.load(Ordering::Relaxed);
        let (now, taken) = (Instant::now(), counters.taken.load(Ordering::Relaxed));
        let per_s = rate(rows, began.elapsed());
        let so_far = || format!("loading: {} rows, {} rows/s", short(rows as f64), short(per_s));
        match (&mut throughput, length) {
            (Some(throughput), None) => {
                throughput.at(now, rows);
                progress.update(|| format!("loading: {}", throughput.text("rows")));
            }
            (Some(throughput), Some(_)) => {
                throughput.at(now, taken);
                progress.update(|| format!("{}; {}", so_far(), throughput.text("bytes")));
            }
            (None, _) => progress.update(so_far),
        }
    }
}
