//! Reads every row of some tables, over several connections.
//!
//! The rows that prepare filled are read in chunks of ids, the others of a table in one piece.
//! No snapshot would span connections: instead the server counts and sums before and after, and
//! what changed meanwhile is not judged.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use mysql_async::{Opts, Row, Value};
use tokio::sync::mpsc;

use super::judge::Found;
use crate::error::{Error, Result};
use crate::mysql::session::{Failure, Session};
use crate::mysql::target::Target;
use crate::plan::{limits, units};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::workload::Schema;
use crate::workload::filler::Filler;
use crate::workload::rows::{Rows, proves};
use crate::workload::table::quoted;

/// Rows of a chunk.
const CHUNK: std::ops::RangeInclusive<u64> = 10_000..=1_000_000;
/// How often the main thread looks after the others.
const LOOK: Duration = Duration::from_millis(100);
/// Connections at most.
const JOBS_MAX: usize = 16;

/// A table to read.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) schema: Schema,
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) seed: u32,
    /// Rows that prepare filled: ids from 1.
    pub(super) rows: u64,
    /// Whether nothing was written to it since.
    pub(super) untouched: bool,
}

#[derive(Debug, Clone, Copy)]
enum Task {
    /// What the server counts and sums.
    Sum(usize),
    /// Rows of these ids.
    Rows(usize, u64, u64),
    /// Rows of all other ids.
    Others(usize),
}

type Part = (usize, Found);

struct Shared {
    target: Target,
    opts: Opts,
    tables: Vec<Table>,
    tasks: Mutex<VecDeque<Task>>,
    parts: Mutex<Vec<Part>>,
    /// Asked when one connection fails, or the user interrupts.
    halt: Stop,
    read: AtomicU64,
}

/// What is found in each of the tables, in order.
///
/// # Errors
///
/// Server: no answer. Failed: a statement, a thread. Interrupted.
pub(super) async fn read(
    target: &Target,
    opts: &Opts,
    tables: &[Table],
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Vec<Found>> {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let jobs = (2 * cores).min(JOBS_MAX);
    let run = async |tasks: VecDeque<Task>, doing: &str, progress: &mut Progress| {
        let shared = Arc::new(Shared {
            target: target.clone(),
            opts: opts.clone(),
            tables: tables.to_vec(),
            tasks: Mutex::new(tasks),
            parts: Mutex::default(),
            halt: Stop::default(),
            read: AtomicU64::new(0),
        });
        run(shared, jobs, doing, stop, progress).await
    };
    let sums = || (0..tables.len()).map(Task::Sum).collect::<VecDeque<Task>>();
    let mut found = vec![Found::default(); tables.len()];
    for (slot, part) in run(sums(), "the server counts and sums", progress).await? {
        if let Some(found) = found.get_mut(slot) {
            found.before = part.before;
        }
    }
    for (slot, part) in run(chunks(tables, jobs as u64), "reading", progress).await? {
        if let Some(found) = found.get_mut(slot) {
            found.add(&part);
        }
    }
    for (slot, part) in run(sums(), "the server counts and sums again", progress).await? {
        if let Some(found) = found.get_mut(slot) {
            found.after = part.before;
        }
    }
    Ok(found)
}

fn chunks(tables: &[Table], jobs: u64) -> VecDeque<Task> {
    let all = tables.iter().fold(0_u64, |sum, table| sum.saturating_add(table.rows));
    let size = (all / (8 * jobs).max(1)).clamp(*CHUNK.start(), *CHUNK.end());
    let mut tasks = VecDeque::new();
    for (slot, table) in tables.iter().enumerate() {
        let mut first = 1;
        while first <= table.rows {
            let last = table.rows.min(first + size - 1);
            tasks.push_back(Task::Rows(slot, first, last));
            first = last + 1;
        }
        tasks.push_back(Task::Others(slot));
    }
    tasks
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does all tasks.
async fn run(
    shared: Arc<Shared>,
    jobs: usize,
    doing: &str,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Vec<Part>> {
    let jobs = jobs.min(locked(&shared.tasks).len());
    let (alive, mut ended) = mpsc::unbounded_channel::<()>();
    let threads: Vec<_> = (0..jobs).map(|number| start(number, &shared, &alive)).collect();
    drop(alive);
    progress.restart();
    loop {
        tokio::select! {
            biased;
            kind = stop.wait(), if shared.halt.asked().is_none() => shared.halt.ask(kind),
            // Nothing is ever sent: this is the last sender going away.
            _ = ended.recv() => break,
            () = tokio::time::sleep(LOOK) => {}
        }
        progress.update(|| {
            let left = locked(&shared.tasks).len();
            match shared.read.load(Ordering::Relaxed) {
                0 => format!("{doing}: {left} tables wait"),
                rows => format!("{doing}: {} rows, {left} chunks wait", units::count(rows)),
            }
        });
    }
    let mut first = Ok(());
    for thread in threads {
        let done = match thread.map(JoinHandle::join) {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(Error::failed("the driver panicked on an answer of the server")),
            Err(error) => Err(Error::failed(format!("cannot start a thread: {error}"))),
        };
        first = first.and(done);
    }
    stop.check()?;
    first.map(|()| std::mem::take(&mut *locked(&shared.parts)))
}

type Thread = std::io::Result<JoinHandle<Result<()>>>;

/// `alive` is dropped when the thread ends, however it does.
fn start(number: usize, shared: &Arc<Shared>, alive: &mpsc::UnboundedSender<()>) -> Thread {
    let (shared, alive) = (Arc::clone(shared), alive.clone());
    std::thread::Builder::new().name(format!("verify-{number}")).spawn(move || {
        let _alive = alive;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Error::failed(format!("cannot make a runtime: {e}")))?;
        let done = runtime.block_on(async {
            tokio::select! {
                biased;
                _ = shared.halt.wait() => Ok(()),
                done = work(&shared) => done,
            }
        });
        if let Err(error) = &done {
            shared.halt.ask(error.kind());
        }
        done
    })
}

async fn work(shared: &Shared) -> Result<()> {
    let mut session = Session::open(&shared.target, &shared.opts, None).await?;
    // What others have not committed is not there.
    let isolation = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    session.execute(isolation).await.map_err(|f| explain(&f, "setting up a connection"))?;
    loop {
        let Some(task) = locked(&shared.tasks).pop_front() else { break };
        let (Task::Sum(slot) | Task::Rows(slot, ..) | Task::Others(slot)) = task;
        let Some(table) = shared.tables.get(slot) else { continue };
        let mut found = Found::default();
        let done = match task {
            Task::Sum(_) => table.sum(&mut session, &mut found).await,
            Task::Rows(_, first, last) => {
                found.k_start = table.k_start(first, last);
                let range = format!("id BETWEEN {first} AND {last}");
                table.rows(&mut session, &range, &shared.read, &mut found).await
            }
            Task::Others(_) => {
                let range = format!("id < 1 OR id > {}", table.rows);
                table.rows(&mut session, &range, &shared.read, &mut found).await
            }
        };
        done.map_err(|f| explain(&f, &format!("reading {}", table.name)))?;
        locked(&shared.parts).push((slot, found));
    }
    session.close(limits::COURTESY).await;
    Ok(())
}

fn explain(failure: &Failure, doing: &str) -> Error {
    match failure {
        Failure::Lost(_) => Error::server(format!("{doing}: {failure}")),
        Failure::Server { .. } => Error::failed(format!("{doing}: {failure}"))
            .hint("verify needs SELECT on the tables, and a server that can read them"),
    }
}

impl Table {
    fn has_k(&self) -> bool {
        self.schema != Schema::Phptest
    }

    async fn sum(
        &self,
        session: &mut Session,
        found: &mut Found,
    ) -> std::result::Result<(), Failure> {
        let sum = if self.has_k() { "SUM(k)" } else { "NULL" };
        let sql = format!("SELECT COUNT(*), {sum} FROM {}", quoted(&self.name));
        let answer = session.query(&sql).await?;
        let mut fields = answer.into_iter().flatten();
        let mut number = || fields.next().flatten().and_then(|text| text.parse::<i128>().ok());
        let rows = number().and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        // No rows have no sum.
        found.before = (rows, self.has_k().then(|| number().unwrap_or(0)));
        Ok(())
    }

    fn k_start(&self, first: u64, last: u64) -> i128 {
        if self.schema != Schema::Sbtest {
            return 0;
        }
        let rows = Rows::new(self.seed, self.number, self.rows);
        (first..=last).map(|id| i128::from(rows.k(id))).sum()
    }

    async fn rows(
        &self,
        session: &mut Session,
        range: &str,
        read: &AtomicU64,
        found: &mut Found,
    ) -> std::result::Result<(), Failure> {
        let columns = match self.schema {
            Schema::Sbtest => &["id", "k", "c"],
            other => other.columns(),
        };
        let sql =
            format!("SELECT {} FROM {} WHERE {range}", columns.join(", "), quoted(&self.name));
        let original = Rows::new(self.seed, self.number, self.rows);
        let filler = Filler::new(self.schema, self.seed, self.number, self.rows);
        let (mut line, mut expected) = (Vec::new(), Vec::new());
        found.k = self.has_k().then_some(0);
        session
            .read(&sql, |row| {
                read.fetch_add(1, Ordering::Relaxed);
                found.rows += 1;
                let id = number(&row, 0);
                if let Some(k) = &mut found.k {
                    *k += i128::from(number(&row, 1).unwrap_or(0));
                }
                let filled = id.and_then(|id| u64::try_from(id).ok());
                let Some(id) = filled.filter(|id| (1..=self.rows).contains(id)) else { return };
                found.filled += 1;
                let right = match self.schema {
                    Schema::Sbtest => {
                        found.k_filled += i128::from(original.k(id));
                        // Some SQL modes pad what they return.
                        proves(self.number, id, field(&row, 2).trim_ascii_end())
                    }
                    Schema::Phptest if self.untouched => {
                        line.clear();
                        expected.clear();
                        for i in 0..columns.len() {
                            line.extend_from_slice(field(&row, i));
                            line.push(if i + 1 < columns.len() { b'\t' } else { b'\n' });
                        }
                        if let Some(filler) = &filler {
                            filler.line(&mut expected, id);
                        }
                        line == expected
                    }
                    Schema::Phptest | Schema::Bulk => true,
                };
                if !right {
                    found.is_wrong(id);
                }
            })
            .await
    }
}

impl Found {
    fn is_wrong(&mut self, id: u64) {
        self.wrong += 1;
        self.first_wrong = Some(self.first_wrong.map_or(id, |first| first.min(id)));
    }

    /// Another part of the same table.
    fn add(&mut self, part: &Found) {
        self.rows += part.rows;
        self.filled += part.filled;
        self.k = match (self.k, part.k) {
            (Some(sum), Some(k)) => Some(sum + k),
            (sum, k) => sum.or(k),
        };
        self.k_filled += part.k_filled;
        self.k_start += part.k_start;
        self.wrong += part.wrong;
        self.first_wrong = self.first_wrong.into_iter().chain(part.first_wrong).min();
    }
}

/// A column's bytes; nothing of NULL.
fn field(row: &Row, column: usize) -> &[u8] {
    match row.as_ref(column) {
        Some(Value::Bytes(bytes)) => bytes,
        _ => &[],
    }
}

fn number(row: &Row, column: usize) -> Option<i64> {
    std::str::from_utf8(field(row, column)).ok()?.parse().ok()
}
