//! Timed reloads: tables dropped, created and loaded again over one connection, like `mysql < dump.sql`.
//!
//! ```text
//! a thread makes or reads statements ─▶ batches ─▶ one connection ─▶ counted, sampled, marked
//! ```
//!
//! The clock runs from the dump's first statement to its last answer, without loadgen's own work: checking
//! tables, dropping its own, marking, counting. Batches save a wake-up a statement; few are ahead.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use memchr::memmem;
use mysql_async::OptsBuilder;
use tokio::sync::mpsc;

use super::connect::{
    AGAIN as COMPLETED, Doing, control, drop_table, explain, lock_connection, set_up_session,
};
use super::dump::{DumpPart, LeftOut, StatementInfo, refuse_charset, split_as_written, unquoted};
use super::fill::{Throughput, extended, lines, load_data, ready_mark, short, short_rate};
use super::source::{Dump, Item, LOOK, Statements, beside};
use super::{DATABASE_CHARSET, Refused, refuse_binary};
use crate::engine::{Counted, per_s};
use crate::error::{Error, Result};
use crate::mysql::{
    Asked, Failure, Liveness, ServerLink, Session, dataset, number, optional, pairs, query_single,
    quoted_text,
};
use crate::observe::{Ns, Op, Phases, Recorder, Timeline, process_usage};
use crate::plan::knobs::{InsertMode, LoadSource, LoadSpec};
use crate::progress::Progress;
use crate::stop::COURTESY;
use crate::summary::{ErrorCount, TableOps};
use crate::terms::{ErrorClass, joined, units};
use crate::workload::{Filler, LOADED, Mark, Rows, Schema, State, Stream, quoted, table};

const INTERVAL: Ns = 1_000_000_000;
const PHASES: Phases =
    Phases { window_start: 0, window_end: Ns::MAX, by_issue: false, interval: INTERVAL };

/// The driver's largest packet, bytes.
const PACKET_MAX: u64 = 1 << 30;

/// Replaces the hint of a fill, which a load does not complete.
pub(crate) fn reload_error(error: Error) -> Error {
    let again = "the same command again drops the tables that it made and begins anew";
    error.instead(COMPLETED, again)
}

pub(crate) struct Reload {
    spec: LoadSpec,
    /// True if prepare's tables are dropped, too.
    force: bool,
    /// For work that is not part of the load; it holds the lock against a second loadgen.
    control: Session,
    /// The loading session; None once lost. Kept until the counters are read: MySQL 5.6 counts a session
    /// twice while it ends.
    session: Option<Session>,
    dump: Option<Dump>,
    file: Option<String>,
    /// Largest packet that both ends take, bytes.
    packet: usize,
    server: Rc<Liveness>,
    pub began: Instant,
    /// Time of loadgen's own work.
    own: Duration,
    recorder: Recorder,
    timeline: Rc<RefCell<Timeline>>,
    counters: Arc<Counters>,
    pub done: Loaded,
}

/// Opens both sessions. Returns the largest packet and the loading session's character sets, too.
async fn connect(
    server: &Liveness,
    spec: &LoadSpec,
    force: bool,
    progress: &mut Progress,
) -> Result<(Session, Session, usize, BTreeMap<String, String>)> {
    let (link, mut control) = (&server.link, control(server, progress).await?);
    let _control_waits = server.waits(&control);
    let packet = check(spec, &mut control).await?;
    let is_generated = matches!(spec.source, LoadSource::Generated { .. });
    if is_generated {
        let names = (1..=spec.tables).map(|number| Schema::Sbtest.name(number)).collect();
        may_take(&mut control, names, force).await?;
    }
    // Some dumps exceed the driver's default limit.
    let opts = OptsBuilder::from_opts(link.opts.clone()).max_allowed_packet(Some(packet));
    let wide = ServerLink { opts: opts.into(), ..link.clone() };
    let mut session = Session::open(&wide, spec.charset.as_deref()).await?;
    let _session_waits = server.waits(&session);
    set_up_session(&mut session).await?;
    lock_connection(&mut session, &link.target.database, 0).await?;
    if !is_generated {
        split_alike(&mut session).await.doing("setting up a connection")?;
    }
    // LIKE's underscore matches any character, which is right for both families of names.
    let sql = "SHOW SESSION VARIABLES WHERE Variable_name LIKE 'character_set_%' \
               OR Variable_name LIKE 'collation_%'";
    let mut character_sets = pairs(&mut session, sql).await.doing("reading variables")?;
    character_sets.remove("character_sets_dir");
    if is_generated {
        let charset = character_sets.get("character_set_database").map_or("", String::as_str);
        let refused = refuse_binary(Schema::Sbtest, charset, DATABASE_CHARSET);
        refused.map_err(|error| error.hint("ALTER DATABASE names another for new tables"))?;
    }
    Ok((control, session, packet, character_sets))
}

impl Reload {
    pub(crate) async fn open(
        link: &ServerLink,
        spec: &LoadSpec,
        force: bool,
        progress: &mut Progress,
    ) -> Result<Reload> {
        let mut dump = match &spec.source {
            LoadSource::Generated { .. } => None,
            LoadSource::Dump { path } => {
                let path = path.clone();
                Some(beside(&link.stop, move || Dump::open(&path)).await?)
            }
        };
        let server = Rc::new(Liveness::new(link));
        let connecting = connect(&server, spec, force, progress);
        let (control, session, packet, character_sets) = server.during(connecting).await?;
        let charset = character_sets.get("character_set_client").cloned().unwrap_or_default();
        if let (Some(dump), Err(why)) = (&dump, refuse_charset(charset.as_bytes())) {
            let error = Error::usage(format!("{}: {why}", dump.name));
            return Err(error.hint("--charset names another"));
        }
        if let Some(dump) = &mut dump {
            dump.charset.clone_from(&charset);
            dump.check(limit(packet), &link.stop, progress).await?;
        }
        let read_before = dump.as_ref().is_some_and(|dump| dump.again.is_some());
        let timeline = Rc::new(RefCell::new(Timeline::new(1, 0, INTERVAL)));
        let sink = Rc::clone(&timeline);
        let finished = move |interval| drop(sink.borrow_mut().add(0, interval));
        Ok(Reload {
            spec: spec.clone(),
            force,
            control,
            session: Some(session),
            file: dump.as_ref().map(|dump| dump.name.clone()),
            dump,
            packet,
            server,
            began: Instant::now(),
            own: Duration::ZERO,
            recorder: Recorder::new(PHASES, 0, Box::new(finished)),
            timeline,
            counters: Arc::default(),
            done: Loaded { character_sets, charset, read_before, ..Loaded::default() },
        })
    }

    /// Loads until the end, an error, a silent server or a signal. Returns the reason of an early end. Needs
    /// a `current_thread` runtime. [`Reload::verify`] counts the rows afterwards.
    pub(crate) async fn run(&mut self, progress: &mut Progress) -> Result<Option<Error>> {
        let (dump, server) = (self.dump.take(), Rc::clone(&self.server));
        let length = dump.as_ref().and_then(|dump| dump.length);
        let live_line = show(Arc::clone(&self.counters), self.spec.clone(), length, progress);
        let batches = start(&self.spec, dump, limit(self.packet))?;
        let before = process_usage();
        let started_at = jiff::Timestamp::now();
        self.began = Instant::now();
        let error = tokio::select! {
            biased;
            done = server.during(self.all(batches)) => done.err(),
            () = live_line => None,
        };
        let end = self.now();
        let cost = process_usage().since(&before);
        progress.clear();
        self.recorder.finish(end);
        let mut timeline = self.timeline.take();
        timeline.thread_done(0);
        let (errors, tables) = (std::mem::take(&mut self.done.counted.errors), &self.done.tables);
        self.done.rows = tables.iter().map(|table| table.rows).sum();
        // Without the rows of a table that the dump made again later.
        timeline.window.rows = self.done.rows;
        let ops = |of: &LoadedTable| TableOps { table: of.name.clone(), ops: of.inserts };
        let (measured_s, per_table) = (end as f64 / 1e9, tables.iter().map(ops).collect());
        self.done.counted = Counted { started_at, measured_s, cost, timeline, errors, per_table };
        self.session = self.session.take().filter(|_| error.is_none());
        Ok(error)
    }

    /// Closes the connections, too. After an interruption the tables stay without a mark.
    pub(crate) async fn verify(
        mut self,
        tables: &[LoadedTable],
        progress: &mut Progress,
    ) -> Result<()> {
        if let Some(session) = self.session.take() {
            session.close(COURTESY).await;
        }
        let live_line = async {
            loop {
                tokio::time::sleep(LOOK).await;
                progress.update(|| "checking the rows".to_owned());
            }
        };
        let _waits = self.server.waits(&self.control);
        let checked = tokio::select! {
            biased;
            done = self.server.during(verify(&mut self.control, tables, &self.spec)) => done,
            () = live_line => Ok(()),
        };
        progress.clear();
        checked?;
        self.control.close(COURTESY).await;
        Ok(())
    }

    fn now(&self) -> Ns {
        self.began.elapsed().saturating_sub(self.own).as_nanos() as Ns
    }

    async fn all(&mut self, mut batches: mpsc::Receiver<Batch>) -> Result<()> {
        while let Some(batch) = batches.recv().await {
            let batch = batch?;
            if batch.is_empty() {
                return Ok(());
            }
            for item in &batch {
                self.statement(item).await?;
                self.counters.taken.store(item.taken, Ordering::Relaxed);
            }
        }
        Err(Error::failed("the thread that makes statements panicked"))
    }

    async fn statement(&mut self, item: &Item) -> Result<()> {
        let (kind, raw) = (item.seen.kind, &item.sql[item.seen.name.clone()]);
        let place = match kind {
            DumpPart::LeftOut(about) => {
                self.done.left_out.insert(about);
                return Ok(());
            }
            DumpPart::Other | DumpPart::Names => None,
            _ => Some(self.table(raw, item).await?),
        };
        let issued = self.now();
        let sent = self.send(item).await;
        let affected = sent.map_err(|failure| self.failed(&failure, issued, item))?;
        let rows = if kind == DumpPart::Insert { affected } else { 0 };
        let completed = self.now();
        self.done.bytes += item.sql.len() as u64 + self.counters.lines.swap(0, Ordering::Relaxed);
        self.counters.rows.fetch_add(rows, Ordering::Relaxed);
        let measured = true;
        let op = Op { issued, measured, completed, statements: 1, rows, ..Op::default() };
        self.recorder.succeeded(op);
        match (kind, place) {
            (DumpPart::Insert, Some(place)) => {
                let session = self.session.as_ref().expect("it answered just now");
                self.done.warnings += u64::from(session.warnings());
                let table = &mut self.done.tables[place];
                (table.rows, table.inserts) = (table.rows + rows, table.inserts + 1);
            }
            (DumpPart::Create, Some(place)) => {
                let paused = Instant::now();
                let _waits = self.server.waits(&self.control);
                self.done.tables[place].created(&mut self.control).await?;
                self.own += paused.elapsed();
            }
            (DumpPart::Names, _) => {
                self.done.charset = unquoted(raw).expect("an odd character set is refused");
            }
            _ => {}
        }
        Ok(())
    }

    /// Drops an existing table that the dump makes again when it is met first, so that every load begins alike.
    async fn table(&mut self, raw: &[u8], item: &Item) -> Result<usize> {
        let name = unquoted(raw).filter(|name| !name.is_empty());
        let known = |name: &String| self.done.tables.iter().rposition(|it| it.name == *name);
        if let Some(place) = name.as_ref().and_then(known) {
            return Ok(place);
        }
        let paused = Instant::now();
        let open = self.session.as_mut().expect("a load ends with its connection");
        let (control, force, server) = (&mut self.control, self.force, &self.server);
        let meeting = async {
            let name = name.ok_or_else(|| {
                Error::data(format!("'{}' is no table's name", String::from_utf8_lossy(raw)))
            })?;
            let exists = {
                let _waits = server.waits(control);
                may_take(control, vec![name.clone()], force).await?
            };
            if exists && matches!(item.seen.kind, DumpPart::Drop | DumpPart::Create) {
                let _waits = server.waits(open);
                // As the statement itself would: with or without foreign key checks.
                drop_table(open, &name).await?;
            }
            Ok(LoadedTable { name, ..LoadedTable::default() })
        };
        let met = meeting.await.map_err(|error: Error| error.context(self.at(item)));
        self.own += paused.elapsed();
        self.done.tables.push(met?);
        Ok(self.done.tables.len() - 1)
    }

    fn at(&self, item: &Item) -> String {
        let name = unquoted(&item.sql[item.seen.name.clone()]).unwrap_or_default();
        match &self.file {
            Some(file) => format!("{file}: line {}", item.line),
            None => format!("loading {name}").trim_end().to_owned(),
        }
    }

    /// Sends a statement, with the lines that it asks for; returns the affected rows.
    async fn send(&mut self, item: &Item) -> Asked<u64> {
        let Reload { session, server, spec, packet, counters, .. } = self;
        let open = session.as_mut().expect("a load ends with its connection");
        let _waits = server.waits(open);
        let (Some(table), LoadSource::Generated { rows, data_seed }) = (item.rows_of, &spec.source)
        else {
            return open.execute(&item.sql).await;
        };
        let counting = Arc::clone(counters);
        let filler = Filler::sbtest(Rows::new(*data_seed, table, *rows));
        let lines = lines(filler, 1, *rows, *packet, move |rows, bytes| {
            counting.rows.fetch_add(rows, Ordering::Relaxed);
            counting.lines.fetch_add(bytes as u64, Ordering::Relaxed);
        });
        let sql = std::str::from_utf8(&item.sql).expect("our own");
        let open = session.take().expect("it is there");
        let (open, affected) = open.load_data(sql, lines).await?;
        *session = Some(open);
        // The live line counted the sent rows.
        counters.rows.fetch_sub(*rows, Ordering::Relaxed);
        Ok(affected)
    }

    fn failed(&mut self, failure: &Failure, issued: Ns, item: &Item) -> Error {
        self.recorder.failed(issued, true, self.now());
        let (class, code, sqlstate, message) = match failure {
            Failure::Server { code, sqlstate, message } => {
                (ErrorClass::Session, Some(*code), Some(sqlstate.clone()), message.clone())
            }
            Failure::Lost(loss) => (ErrorClass::Lost, None, None, loss.why.clone()),
        };
        self.done.counted.errors.push(ErrorCount { code, sqlstate, class, message, count: 1 });
        explain(failure).context(self.at(item))
    }
}

/// Checks that the server takes this load's statements; returns its largest packet, bytes.
async fn check(spec: &LoadSpec, control: &mut Session) -> Result<usize> {
    let packet = number(control, "SELECT @@max_allowed_packet").await.doing("reading variables")?;
    match (&spec.source, spec.insert) {
        // Servers refuse a packet of that length, too.
        (LoadSource::Generated { .. }, InsertMode::Extended { bytes }) if bytes >= packet => {
            let wanted = units::count(bytes);
            return Err(Error::server(format!(
                "--insert-bytes {wanted}: the server's max_allowed_packet is {packet}"
            ))
            .hint("SET GLOBAL max_allowed_packet, or fewer --insert-bytes"));
        }
        (_, InsertMode::LoadData) => {
            let allowed =
                query_single(control, "SELECT @@local_infile").await.doing("reading variables")?;
            if allowed.as_deref() == Some("0") {
                return Err(Error::server("--mode load-data: local_infile is OFF")
                    .hint("SET GLOBAL local_infile = 1"));
            }
        }
        _ => {}
    }
    Ok(packet.min(PACKET_MAX) as usize)
}

#[derive(Default)]
pub(crate) struct Loaded {
    /// From the first statement to the last answer, without loadgen's own work.
    pub counted: Counted,
    pub rows: u64,
    /// The loading session's character_set_… and collation_… variables at its start.
    pub character_sets: BTreeMap<String, String>,
    /// Bytes of statements, and of the lines of LOAD DATA.
    pub bytes: u64,
    pub warnings: u64,
    pub tables: Vec<LoadedTable>,
    /// Character set of the statements: the dump's own SET NAMES, else the session's.
    pub charset: String,
    /// True if the dump was read to its end before the first statement was sent.
    pub read_before: bool,
    pub left_out: BTreeSet<LeftOut>,
}

#[derive(Debug, Default)]
struct Counters {
    rows: AtomicU64,
    taken: AtomicU64,
    lines: AtomicU64,
}

/// Updates the live line, and never ends. `length` is that of a dump, if known.
async fn show(counts: Arc<Counters>, spec: LoadSpec, length: Option<u64>, progress: &mut Progress) {
    let began = Instant::now();
    let (total, what) = match spec.source {
        LoadSource::Generated { rows, .. } => (Some(rows * u64::from(spec.tables)), "rows"),
        LoadSource::Dump { .. } => (length, "bytes"),
    };
    let mut throughput = total.map(|total| Throughput::new(total, began));
    loop {
        tokio::time::sleep(LOOK).await;
        let [rows, taken] = [&counts.rows, &counts.taken].map(|n| n.load(Ordering::Relaxed));
        let rate = short_rate(per_s(rows, began.elapsed().as_secs_f64()));
        let of_dump = format!("{} rows, {rate} rows/s", short(rows as f64));
        let text = throughput.as_mut().map(|throughput| {
            throughput.at(Instant::now(), if what == "rows" { rows } else { taken });
            throughput.text(what, false)
        });
        let line = joined([(what == "bytes").then_some(of_dump), text], "; ");
        progress.update(|| format!("loading: {}", line.unwrap_or_default()));
    }
}

const BATCH: usize = 64 << 10;
/// Upper limit on batches that are ready.
const AHEAD: usize = 2;

/// Returns the longest statement: one byte precedes it, and a server takes what is shorter than its limit.
fn limit(packet: usize) -> usize {
    packet.saturating_sub(2)
}

/// Removes the session's modes in which the server would split the file differently. A dump sets its own.
async fn split_alike(session: &mut Session) -> Asked<()> {
    let modes = query_single(session, "SELECT @@SESSION.sql_mode").await?.unwrap_or_default();
    let without = split_as_written(&modes);
    if without == modes {
        return Ok(());
    }
    let sql = format!("SET SESSION sql_mode = {}", quoted_text(&without));
    session.execute(&sql).await.map(drop)
}

type Batch = Result<Vec<Item>>;

struct Feed {
    batches: mpsc::Sender<Batch>,
    batch: Vec<Item>,
    bytes: usize,
}

impl Feed {
    fn push(&mut self, item: Item) -> Result<()> {
        self.bytes += item.sql.len();
        self.batch.push(item);
        if self.bytes >= BATCH { self.flush() } else { Ok(()) }
    }

    /// Adds one of our own statements; it names the table `named`, unless that is empty.
    fn say(&mut self, kind: DumpPart, named: &str, sql: impl Into<Vec<u8>>) -> Result<()> {
        let sql = sql.into();
        let at = memmem::find(&sql, named.as_bytes()).expect("it names its table");
        let seen = StatementInfo { kind, name: at..at + named.len() };
        self.push(Item { sql, line: 0, taken: 0, seen, rows_of: None })
    }

    fn flush(&mut self) -> Result<()> {
        self.bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() { Ok(()) } else { self.hand_over(Ok(batch)) }
    }

    fn hand_over(&mut self, batch: Batch) -> Result<()> {
        let sent = self.batches.blocking_send(batch);
        sent.map_err(|_| Error::failed("nobody wants the statements"))
    }
}

/// Starts the thread that makes the statements, or reads those of a dump, of at most `limit` bytes. It ends
/// when the receiver is gone; one that reads standard input ends with the process.
fn start(spec: &LoadSpec, dump: Option<Dump>, limit: usize) -> Result<mpsc::Receiver<Batch>> {
    let (batches, receiver) = mpsc::channel(AHEAD);
    let (mut feed, spec) = (Feed { batches, batch: Vec::new(), bytes: 0 }, spec.clone());
    let work = move || {
        let done = match dump {
            Some(dump) => read(&mut feed, dump, limit),
            None => generate(&mut feed, &spec),
        };
        // Statements before a fault are sent, as any client would. It fails only if the receiver is gone.
        let _ = feed.flush().and_then(|()| feed.hand_over(done.map(|()| Vec::new())));
    };
    std::thread::Builder::new()
        .name("statements".to_owned())
        .spawn(work)
        .map_err(|e| Error::failed(format!("cannot start a thread: {e}")))?;
    Ok(receiver)
}

fn read(feed: &mut Feed, dump: Dump, limit: usize) -> Result<()> {
    let mut statements = Statements::new(dump.file, &dump.name, limit, &dump.charset);
    while let Some(item) = statements.next(true)? {
        feed.push(item)?;
    }
    Ok(())
}

/// Head of mysqldump's file, as far as it affects rows. Without NO_ENGINE_SUBSTITUTION an old server without
/// InnoDB would silently make MyISAM tables.
const HEAD: [&str; 4] = [
    "SET UNIQUE_CHECKS=0",
    "SET FOREIGN_KEY_CHECKS=0",
    "SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'",
    "SET SQL_NOTES=0",
];

fn generate(feed: &mut Feed, spec: &LoadSpec) -> Result<()> {
    let LoadSource::Generated { rows, data_seed } = spec.source else {
        unreachable!("a dump is read")
    };
    for sql in HEAD {
        feed.say(DumpPart::Other, "", sql)?;
    }
    for number in 1..=spec.tables {
        let named = quoted(&Schema::Sbtest.name(number));
        let mark = Mark::filling(data_seed, rows).by_load();
        feed.say(DumpPart::Drop, &named, format!("DROP TABLE IF EXISTS {named}"))?;
        feed.say(DumpPart::Create, &named, table::create_indexed(number, rows, &mark))?;
        let bytes = match spec.insert {
            InsertMode::LoadData => {
                let charset = spec.charset.as_deref().unwrap_or("latin1");
                let sql = load_data(Schema::Sbtest, number, charset);
                let at = sql.find(&named).expect("it names its table");
                let seen = StatementInfo { kind: DumpPart::Insert, name: at..at + named.len() };
                let (sql, rows_of) = (sql.into_bytes(), Some(number));
                feed.push(Item { sql, line: 0, taken: 0, seen, rows_of })?;
                continue;
            }
            InsertMode::Extended { bytes } => usize::try_from(bytes).unwrap_or(usize::MAX),
            InsertMode::Single => 0,
        };
        feed.say(DumpPart::Touch, &named, format!("LOCK TABLES {named} WRITE"))?;
        let keys = |switch| format!("/*!40000 ALTER TABLE {named} {switch} KEYS */");
        feed.say(DumpPart::Touch, &named, keys("DISABLE"))?;
        let filler = Filler::sbtest(Rows::new(data_seed, number, rows));
        let head = format!("INSERT INTO {named} VALUES ");
        let (mut next, mut size) = (1, 0);
        while next <= rows {
            let mut sql = Vec::with_capacity(size);
            next = extended(&mut sql, &head, filler, next, rows, bytes);
            size = sql.len();
            feed.say(DumpPart::Insert, &named, sql)?;
        }
        feed.say(DumpPart::Touch, &named, keys("ENABLE"))?;
        feed.say(DumpPart::Other, "", "UNLOCK TABLES")?;
    }
    Ok(())
}

const SAMPLE: u64 = 100;
pub(crate) const FORCE: &str = "--force drops also what prepare made; or take another --database";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LoadedTable {
    pub name: String,
    pub rows: u64,
    pub inserts: u64,
    /// True if this load created it: then it must hold exactly these rows.
    created: bool,
    comment: String,
}

impl LoadedTable {
    /// Notes that it was just created, and marks it as load's own: it can be dropped however this ends.
    async fn created(&mut self, control: &mut Session) -> Result<()> {
        self.comment = comment(control, &self.name)
            .await?
            .ok_or_else(|| Error::failed(format!("{} was created, and is not there", self.name)))?;
        (self.created, self.rows) = (true, 0);
        match Mark::parse(&self.comment).filter(|mark| mark.state == State::Filling) {
            Some(mark) if mark.loaded => Ok(()),
            Some(mark) => set_comment(control, &self.name, &mark.by_load().to_string()).await,
            None => set_comment(control, &self.name, LOADED).await,
        }
    }
}

/// Returns whether one of these tables exists; an error if load must not drop it.
async fn may_take(control: &mut Session, tables: Vec<String>, force: bool) -> Result<bool> {
    let (mut there, mut refused) = (false, Refused::default());
    for name in tables {
        let Some(comment) = comment(control, &name).await? else { continue };
        there = true;
        match Mark::parse(&comment) {
            Some(mark) if mark.loaded || force => {}
            None if comment == LOADED => {}
            Some(Mark { rows, .. }) => {
                let why = format!("made by prepare, {} rows", units::count(rows));
                refused.add(quoted(&name), why, true);
            }
            None => refused.add(quoted(&name), "not made by loadgen".to_owned(), false),
        }
    }
    let what = "load would overwrite what it did not make";
    refused.conclude(what, "loadgen", FORCE).map(|()| there)
}

/// Counts the tables' rows, checks a sample of generated ones, and marks the tables as whole.
async fn verify(control: &mut Session, tables: &[LoadedTable], spec: &LoadSpec) -> Result<()> {
    for table in tables.iter().filter(|table| table.created) {
        let (doing, named) = (format!("counting the rows of {}", table.name), quoted(&table.name));
        let sql = format!("SELECT COUNT(*) FROM {named}");
        let count = number(control, &sql).await.doing(&doing)?;
        // Servers report older sizes otherwise.
        control.query(&format!("ANALYZE LOCAL TABLE {named}")).await.doing(&doing)?;
        let expected = match spec.source {
            LoadSource::Generated { rows, .. } => rows,
            LoadSource::Dump { .. } => table.rows,
        };
        if count != expected || table.rows != expected {
            return Err(Error::data(format!(
                "{} holds {count} rows after a load of {expected} (the server said {})",
                table.name, table.rows
            ))
            .hint("does something else write to it?"));
        }
        let mark = Mark::parse(&table.comment).filter(|mark| mark.rows == count);
        let mark = match (&spec.source, mark) {
            (LoadSource::Generated { rows, data_seed }, _) => {
                sample(control, &table.name, *rows, *data_seed).await?;
                ready_mark(*data_seed, *rows)
            }
            // The dump may have writes of runs, of which the new content's ledgers know nothing.
            (LoadSource::Dump { .. }, Some(mark)) => {
                if !is_as_filled(control, &table.name, mark).await? {
                    continue;
                }
                match mark.state {
                    State::Filling => mark,
                    State::Ready => ready_mark(mark.seed, mark.rows),
                }
            }
            (LoadSource::Dump { .. }, None) => continue,
        };
        set_comment(control, &table.name, &mark.by_load().to_string()).await?;
    }
    Ok(())
}

async fn sample(control: &mut Session, table: &str, count: u64, data_seed: u32) -> Result<()> {
    let number = Schema::Sbtest.number(table).expect("it was generated");
    let filler = Filler::sbtest(Rows::new(data_seed, number, count));
    let other = find_other(control, table, &filler, count).await;
    match other.doing(&format!("reading a sample of {table}"))? {
        None => Ok(()),
        Some(id) => Err(Error::data(format!("{table}: row {id} is not the one that was sent"))),
    }
}

/// Finds a row that is not the filled one, in a sample of so many.
async fn find_other(
    control: &mut Session,
    table: &str,
    filler: &Filler,
    count: u64,
) -> Asked<Option<u64>> {
    let ids = dataset::sample(&mut Stream::new(count), count, SAMPLE);
    let list: Vec<String> = ids.iter().map(u64::to_string).collect();
    let columns = filler.schema.columns().join(", ");
    let sql = format!(
        "SELECT {columns} FROM {} WHERE id IN ({}) ORDER BY id",
        quoted(table),
        list.join(",")
    );
    let found = control.query(&sql).await?;
    let mut found = found.into_iter().map(|row| row.into_iter().flatten().collect::<Vec<_>>());
    let mut line = Vec::new();
    Ok(ids.into_iter().find(|id| {
        line.clear();
        filler.line(&mut line, *id);
        found.next().is_none_or(|row| (row.join("\t") + "\n").into_bytes() != line)
    }))
}

/// Returns whether the rows are those that the mark's seed makes: the sum of `k`, which `verify` adds writes to, and a
/// sample.
async fn is_as_filled(control: &mut Session, table: &str, mark: Mark) -> Result<bool> {
    let of = |schema: Schema| Some((schema, schema.number(table)?));
    let Some((schema, number)) = Schema::ALL.into_iter().find_map(of) else { return Ok(false) };
    let Some(filler) = Filler::new(schema, mark.seed, number, mark.rows) else {
        return Ok(mark.rows == 0);
    };
    let doing = format!("reading the rows of {table}");
    if schema == Schema::Sbtest && mark.rows > 0 {
        let rows = Rows::new(mark.seed, number, mark.rows);
        let filled: u128 = (1..=mark.rows).map(|id| u128::from(rows.k(id))).sum();
        let sql = format!("SELECT SUM(k) FROM {}", quoted(table));
        let sum = optional(query_single(control, &sql).await).doing(&doing)?.flatten();
        if sum != Some(filled.to_string()) {
            return Ok(false);
        }
    }
    // The server refuses it if a column is missing.
    let other = optional(find_other(control, table, &filler, mark.rows).await).doing(&doing)?;
    Ok(other == Some(None))
}

/// Reads the COMMENT of a table; None if there is no table. A view has "VIEW".
async fn comment(control: &mut Session, table: &str) -> Result<Option<String>> {
    let sql = format!(
        "SELECT TABLE_COMMENT FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {}",
        quoted_text(table)
    );
    query_single(control, &sql).await.doing(&format!("looking for {table}"))
}

async fn set_comment(control: &mut Session, table: &str, comment: &str) -> Result<()> {
    let sql = format!("ALTER TABLE {} COMMENT = {}", quoted(table), quoted_text(comment));
    control.execute(&sql).await.doing(&format!("marking {table}")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canned::{Answer, Canned, Listen, Script};
    use crate::error::Kind;
    use crate::mysql::ConnectOptions;
    use crate::stop::Stop;

    /// Opens a load of generated rows into a database of this character set.
    fn refusal(charset: &str, insert: InsertMode) -> Option<Kind> {
        let variable = [Some("character_set_database"), Some(charset)];
        let answers = vec![
            Answer::value("@@max_allowed_packet", "bytes", "1048576"),
            Answer::rows("SHOW SESSION VARIABLES", &["Variable_name", "Value"], &[&variable]),
        ];
        let server = Canned::start(Script { answers, ..Script::default() }, Listen::Port(0));
        let server = server.expect("a free port");
        let target = ConnectOptions::canned(server.port());
        let link = ServerLink::to(target, &Stop::default()).expect("options");
        let source = LoadSource::Generated { rows: 1, data_seed: 1 };
        let spec = LoadSpec { tables: 1, source, insert, charset: None };
        let mut quiet = Progress::new(true, None);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let opened = Reload::open(&link, &spec, false, &mut quiet);
        runtime.expect("a runtime").block_on(async { opened.await.err().map(|e| e.kind()) })
    }

    #[test]
    fn generated_rows_are_refused_when_new_tables_are_binary() {
        let refused = ["binary", "latin1"].map(|charset| refusal(charset, InsertMode::Single));
        assert_eq!(refused, [Some(Kind::Usage), None]);
    }

    #[test]
    fn statement_stays_shorter_than_the_packet_that_a_server_refuses() {
        let of = |bytes| refusal("latin1", InsertMode::Extended { bytes });
        assert_eq!([of(1 << 20), of((1 << 20) - 1)], [Some(Kind::Server), None]);
        assert_eq!(1 + limit(1 << 20), (1 << 20) - 1);
    }
}
