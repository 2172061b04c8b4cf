//! Timed reloads: tables dropped, created and loaded again over one connection, as
//! `mysql < dump.sql` would.
//!
//! ```text
//! a thread makes or reads statements ─▶ batches ─▶ one connection ─▶ counted, sampled, marked
//! ```
//!
//! What belongs to the load is on the clock: every statement of the dump, from the first to the
//! answer of the last. What loadgen does for itself is not: looking whose a table is, dropping its
//! own one of before, marking, counting.

mod statements;
mod tables;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mysql_async::{Opts, OptsBuilder};
use tokio::sync::mpsc::Receiver;

use self::statements::{Dump, Item, Part};
use super::connect::{AGAIN as COMPLETED, Doing, claim, control, explain, number};
use super::dump::{Kind, refuse_charset, unquoted};
use super::text;
use super::throughput::{Throughput, rate, short};
use crate::error::{Error, Result};
use crate::mysql::control::{impatient, one, pairs};
use crate::mysql::errors::Failure;
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::mysql::session::Session;
use crate::observe::process::{Cost, process_usage};
use crate::observe::recorder::{Ns, Op, Phases, Recorder};
use crate::observe::timeline::Timeline;
use crate::plan::timed::{InsertMode, LoadSource, LoadSpec};
use crate::progress::Progress;
use crate::stop::{COURTESY, Stop};
use crate::summary::ErrorCount;
use crate::terms::units;
use crate::workload::Schema;
use crate::workload::rows::{Filler, Rows};
use crate::workload::table::name;

pub(crate) use self::tables::{FORCE, LoadedTable};

const INTERVAL: Ns = 1_000_000_000;
const LOOK: Duration = Duration::from_millis(100);

/// What the same command does when it is given again.
const AGAIN: &str = "the same command again drops the tables that it made and begins anew";

/// The driver's largest packet, bytes.
const PACKET_MAX: u64 = 1 << 30;

/// Connected and ready to load; then what is left to do after it.
pub(crate) struct Reload {
    spec: LoadSpec,
    /// Whether tables that prepare made are dropped, too.
    force: bool,
    /// For what is not part of the load; it holds the lock against a second loadgen.
    control: Session,
    /// The one that loads; None once it is lost. MySQL 5.6 counts a session twice while it ends: it
    /// stays until the counters are read.
    session: Option<Session>,
    dump: Option<Dump>,
    /// The largest packet that both ends take, bytes.
    packet: usize,
    /// The loading session's character_set_… and collation_… variables at its start.
    character_sets: BTreeMap<String, String>,
    server: Rc<Liveness>,
}

impl Reload {
    /// Opens the dump and two connections. `opts` are those of `target`; with `force` tables that
    /// prepare made are dropped, too.
    pub(crate) async fn open(
        target: &ConnectOptions,
        opts: &Opts,
        spec: &LoadSpec,
        force: bool,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<Reload> {
        let dump = match &spec.source {
            LoadSource::Generated { .. } => None,
            LoadSource::Dump { path } => Some(Dump::open(path)?),
        };
        let server = Rc::new(Liveness::new(target, opts));
        let connecting = async {
            let mut control = control(&server, progress).await?;
            let _control_waits = server.waits(&control);
            let packet = check(spec, &mut control).await?;
            if dump.is_none() {
                tables::may_take(&mut control, (1..=spec.tables).map(name), force).await?;
            }
            // The driver's own limit is below what some dumps hold.
            let opts = OptsBuilder::from_opts(opts.clone()).max_allowed_packet(Some(packet));
            let opts: Opts = opts.into();
            let mut session = Session::open(target, &opts, spec.charset.as_deref()).await?;
            let _session_waits = server.waits(&session);
            impatient(&mut session).await.doing("setting up a connection")?;
            claim(&mut session, &target.database, 0).await?;
            // LIKE's underscore is any character: right for both families of names.
            let sql = "SHOW SESSION VARIABLES WHERE Variable_name LIKE 'character_set_%' \
                       OR Variable_name LIKE 'collation_%'";
            let mut character_sets = pairs(&mut session, sql).await.doing("reading variables")?;
            character_sets.remove("character_sets_dir");
            Ok((control, session, packet, character_sets))
        };
        let (control, session, packet, character_sets) = server.during(stop, connecting).await?;
        let (spec, session) = (spec.clone(), Some(session));
        Ok(Reload { spec, force, control, session, dump, packet, character_sets, server })
    }

    /// Loads, until all is loaded, something fails, the server is silent, or `stop` is asked. On a
    /// `current_thread` runtime. [`Reload::verify`] counts what is there then.
    pub(crate) async fn run(&mut self, stop: &Stop, progress: &mut Progress) -> Result<Reloaded> {
        let charset = self.character_sets.get("character_set_client").cloned().unwrap_or_default();
        let (dump, spec) = (self.dump.take(), self.spec.clone());
        if let (Some(dump), Err(why)) = (&dump, refuse_charset(charset.as_bytes())) {
            return Err(
                Error::usage(format!("{}: {why}", dump.name)).hint("--charset names another")
            );
        }
        let length = dump.as_ref().and_then(|dump| dump.length);
        let timeline = Rc::new(RefCell::new(Timeline::new(1, 0, INTERVAL)));
        let sink = Rc::clone(&timeline);
        let phases =
            Phases { window_start: 0, window_end: Ns::MAX, by_issue: false, interval: INTERVAL };
        let finished = move |interval| {
            sink.borrow_mut().add(0, interval);
        };
        let (counters, server) = (Arc::<Counters>::default(), Rc::clone(&self.server));
        let character_sets = self.character_sets.clone();
        progress.restart();
        let mut work = Work {
            file: dump.as_ref().map(|dump| dump.name.clone()),
            own: Duration::ZERO,
            recorder: Recorder::new(phases, 0, Box::new(finished)),
            counters: Arc::clone(&counters),
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
                character_sets,
                errors: Vec::new(),
                timeline: Timeline::new(1, 0, INTERVAL),
                cost: Cost::default(),
            },
            reload: self,
        };
        // A packet has one byte before the statement.
        let parts = statements::start(&spec, dump, work.reload.packet.saturating_sub(1))?;
        let before = process_usage();
        let error = tokio::select! {
            biased;
            done = server.during(stop, work.all(parts)) => done.err(),
            () = show(&counters, &spec, length, progress) => None,
        };
        let (end, cost) = (work.now(), process_usage().since(&before));
        progress.clear();
        let Work { recorder, mut done, .. } = work;
        recorder.finish(end);
        timeline.borrow_mut().thread_done(0);
        std::mem::swap(&mut done.timeline, &mut timeline.borrow_mut());
        if error.is_some() {
            self.session = None;
        }
        let rows = done.tables.iter().map(|table| table.rows).sum();
        Ok(Reloaded { error, measured_s: end as f64 / 1e9, rows, cost, ..done })
    }

    /// Counts the rows, looks at a sample of generated ones, marks the tables as whole, and says
    /// goodbye. Interrupted, the tables stay as they are, without the mark.
    pub(crate) async fn verify(self, loaded: &Reloaded, stop: &Stop) -> Result<()> {
        let Reload { spec, mut control, session, server, .. } = self;
        if let Some(session) = session {
            session.close(COURTESY).await;
        }
        let _waits = server.waits(&control);
        server.during(stop, tables::verify(&mut control, &loaded.tables, &spec)).await?;
        control.close(COURTESY).await;
        Ok(())
    }
}

/// Checks that the server takes the statements that this load makes; returns its largest packet, bytes.
async fn check(spec: &LoadSpec, control: &mut Session) -> Result<usize> {
    let packet = number(control, "SELECT @@max_allowed_packet").await.doing("reading variables")?;
    match (&spec.source, spec.insert) {
        (LoadSource::Generated { .. }, InsertMode::Extended { bytes }) if bytes > packet => {
            let wanted = units::count(bytes);
            return Err(Error::server(format!(
                "--insert-bytes {wanted}: the server's max_allowed_packet is {packet}"
            ))
            .hint("SET GLOBAL max_allowed_packet, or fewer --insert-bytes"));
        }
        (_, InsertMode::LoadData) => {
            let allowed = one(control, "SELECT @@local_infile").await.doing("reading variables")?;
            if allowed.as_deref() == Some("0") {
                return Err(Error::server("--mode load-data: local_infile is OFF")
                    .hint("SET GLOBAL local_infile = 1"));
            }
        }
        _ => {}
    }
    Ok(packet.min(PACKET_MAX) as usize)
}

#[derive(Debug)]
pub(crate) struct Reloaded {
    pub error: Option<Error>,
    pub started_at: jiff::Timestamp,
    /// The same instant, for readings beside it.
    pub began: Instant,
    /// From the first statement to the last answer, loadgen's own doings left out, seconds.
    pub measured_s: f64,
    pub statements: u64,
    /// Bytes of these, and of the lines of LOAD DATA.
    pub bytes: u64,
    pub rows: u64,
    pub warnings: u64,
    pub tables: Vec<LoadedTable>,
    /// Character set of the statements: the dump's own SET NAMES, else the session's.
    pub charset: String,
    /// The loading session's character_set_… and collation_… variables at its start.
    pub character_sets: BTreeMap<String, String>,
    pub errors: Vec<ErrorCount>,
    pub timeline: Timeline,
    pub cost: Cost,
}

#[derive(Debug, Default)]
struct Counters {
    rows: AtomicU64,
    taken: AtomicU64,
}

struct Work<'a> {
    reload: &'a mut Reload,
    file: Option<String>,
    /// Time that loadgen took for itself.
    own: Duration,
    recorder: Recorder,
    counters: Arc<Counters>,
    done: Reloaded,
}

impl Work<'_> {
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
        let session = self.reload.session.as_mut().expect("a load ends with its connection");
        let waits = self.reload.server.waits(session);
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
                let _waits = self.reload.server.waits(&self.reload.control);
                self.done.tables[place].created(&mut self.reload.control).await?;
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
        let _waits = self.reload.server.waits(&self.reload.control);
        let met =
            LoadedTable::meet(&mut self.reload.control, raw, item.seen.kind, self.reload.force)
                .await;
        self.own += paused.elapsed();
        self.done.tables.push(met.map_err(|error| match &self.file {
            Some(file) => error.context(format!("{file}: line {}", item.line)),
            None => error,
        })?);
        Ok(self.done.tables.len() - 1)
    }

    fn place(&self, raw: &[u8]) -> Option<usize> {
        let name = unquoted(raw)?;
        self.done.tables.iter().rposition(|table| table.name == name)
    }

    async fn load_data(&mut self, table: u32) -> Result<()> {
        let LoadSource::Generated { rows: count, data_seed } = self.reload.spec.source else {
            unreachable!("a dump has statements of its own")
        };
        let named = name(table);
        let place = self.place(named.as_bytes()).expect("it was created just now");
        let bytes = Arc::new(AtomicU64::new(0));
        let (counters, counted) = (Arc::clone(&self.counters), Arc::clone(&bytes));
        let rows = Filler::Sbtest(Rows::new(data_seed, table, count));
        let lines = text::lines(rows, 1, count, self.reload.packet, move |rows, bytes| {
            counters.rows.fetch_add(rows, Ordering::Relaxed);
            counted.fetch_add(bytes as u64, Ordering::Relaxed);
        });
        let charset = self.reload.spec.charset.as_deref().unwrap_or("latin1");
        let sql = text::load_data(Schema::Sbtest, table, charset);
        let session = self.reload.session.take().expect("a load ends with its connection");
        let issued = self.now();
        let waits = self.reload.server.waits(&session);
        let loaded = session.load_data(&sql, lines).await;
        drop(waits);
        let (session, affected) =
            loaded.map_err(|failure| self.failed(&failure, issued, 0, named.as_bytes()))?;
        self.reload.session = Some(session);
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
        let session = self.reload.session.as_ref().expect("it answered just now");
        self.done.warnings += u64::from(session.warnings());
        let table = &mut self.done.tables[place];
        table.rows += rows;
        table.inserts += 1;
    }

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
async fn show(counters: &Counters, spec: &LoadSpec, length: Option<u64>, progress: &mut Progress) {
    let began = Instant::now();
    let (total, of_dump) = match spec.source {
        LoadSource::Generated { rows, .. } => (Some(rows * u64::from(spec.tables)), false),
        LoadSource::Dump { .. } => (length, true),
    };
    let mut throughput = total.map(|total| Throughput::new(total, began));
    loop {
        tokio::time::sleep(LOOK).await;
        let rows = counters.rows.load(Ordering::Relaxed);
        let (now, taken) = (Instant::now(), counters.taken.load(Ordering::Relaxed));
        let per_s = rate(rows, began.elapsed());
        let so_far = || format!("loading: {} rows, {} rows/s", short(rows as f64), short(per_s));
        match &mut throughput {
            Some(throughput) if of_dump => {
                throughput.at(now, taken);
                progress.update(|| format!("{}; {}", so_far(), throughput.text("bytes")));
            }
            Some(throughput) => {
                throughput.at(now, rows);
                progress.update(|| format!("loading: {}", throughput.text("rows")));
            }
            None => progress.update(so_far),
        }
    }
}
