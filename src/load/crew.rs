//! The connections of a fill: started, watched, ended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mysql_async::Opts;
use tokio::sync::mpsc;

use super::Job;
use super::chunk::{Board, chunk_rows};
use super::fault::AGAIN;
use super::pace::{Pace, short};
use super::set_up::Ready;
use super::worker::{Shared, locked, work};
use crate::error::{Error, Result};
use crate::mysql::session::Session;
use crate::mysql::target::Target;
use crate::plan::limits;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::workload::Schema;

/// How often the live line looks at the counters.
const LOOK: Duration = Duration::from_millis(100);

/// What filling came to.
pub(super) struct Filled {
    /// When the last row was in.
    pub(super) rows_after: Duration,
    /// Rows that were there before.
    pub(super) found: u64,
}

/// Fills, indexes and marks the tables.
pub(super) async fn fill(
    target: &Target,
    opts: &Opts,
    job: &Job,
    ready: Ready,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Filled> {
    let Ready { control, tables, choice, jobs, packet } = ready;
    let count = tables.len() as u64;
    let chunk_rows = chunk_rows(count, job.rows, u64::from(jobs));
    let board = Board::new(tables.len(), job.rows, chunk_rows, choice.crowd);
    let shared = Arc::new(Shared {
        target: target.clone(),
        opts: opts.clone(),
        schema: job.schema,
        tables,
        rows: job.rows,
        data_seed: job.data_seed,
        method: choice.method,
        packet,
        board: Mutex::new(board),
        halt: Stop::default(),
        sent: Arc::default(),
        found: AtomicU64::new(0),
        indexing: Mutex::default(),
        finished: AtomicU64::new(0),
    });
    let why = choice.why.map(|why| format!(" ({why})")).unwrap_or_default();
    progress.note(&format!(
        "filling by {} over {jobs} connection{}{why}",
        choice.method,
        if jobs == 1 { "" } else { "s" }
    ));
    let (alive, ended) = mpsc::unbounded_channel();
    let threads: Vec<_> = (0..jobs).map(|i| start(i, &shared, &alive)).collect();
    drop(alive);
    let rows_after = watch(&shared, count, ended, stop, progress).await;
    let outcome = join(threads).and_then(|()| verdict(&shared, count, stop));
    if outcome.is_err() {
        let indexing = locked(&shared.indexing).clone();
        end_indexing(control, job.schema, &indexing).await;
    } else {
        control.close(limits::COURTESY).await;
    }
    outcome.map(|()| Filled { rows_after, found: shared.found.load(Ordering::Relaxed) })
}

type Thread = std::io::Result<JoinHandle<Result<()>>>;

/// `alive` is dropped when the thread ends, however it does.
fn start(number: u32, shared: &Arc<Shared>, alive: &mpsc::UnboundedSender<()>) -> Thread {
    let (shared, alive) = (Arc::clone(shared), alive.clone());
    std::thread::Builder::new().name(format!("fill-{number}")).spawn(move || {
        let _alive = alive;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Error::failed(format!("cannot make a runtime: {e}")))?;
        runtime.block_on(work(&shared))
    })
}

/// Shows how it goes until all threads are done. An interruption is handed on to them.
async fn watch(
    shared: &Shared,
    tables: u64,
    mut ended: mpsc::UnboundedReceiver<()>,
    stop: &Stop,
    progress: &mut Progress,
) -> Duration {
    let began = Instant::now();
    let total = shared.rows.saturating_mul(tables);
    let mut pace = Pace::new(total, began);
    let mut all_sent = None;
    progress.restart();
    loop {
        tokio::select! {
            biased;
            kind = stop.wait(), if shared.halt.asked().is_none() => shared.halt.ask(kind),
            // Nothing is ever sent: this is the last sender going away.
            _ = ended.recv() => break,
            () = tokio::time::sleep(LOOK) => {}
        }
        let rows = shared.sent.load(Ordering::Relaxed).min(total);
        pace.at(Instant::now(), rows);
        if rows == total && all_sent.is_none() {
            all_sent = Some(began.elapsed());
        }
        progress.update(|| {
            let finished = shared.finished.load(Ordering::Relaxed);
            let seconds = began.elapsed().as_secs();
            match locked(&shared.indexing).len() {
                _ if rows == total => {
                    format!("building indexes: {finished} of {tables} tables ready, {seconds} s")
                }
                0 => format!("filling: {}", pace.text()),
                n => format!("filling: {}; building {n} indexes", pace.text()),
            }
        });
    }
    all_sent.unwrap_or_else(|| began.elapsed())
}

/// The first error of a thread.
fn join(threads: Vec<Thread>) -> Result<()> {
    let mut first = Ok(());
    for thread in threads {
        let done = match thread.map(JoinHandle::join) {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => {
                Err(Error::failed("the driver panicked on an answer of the server").hint(AGAIN))
            }
            Err(e) => Err(Error::failed(format!("cannot start a thread: {e}"))
                .hint("fewer --jobs")
                .hint(AGAIN)),
        };
        first = first.and(done);
    }
    first
}

fn verdict(shared: &Shared, tables: u64, stop: &Stop) -> Result<()> {
    let finished = shared.finished.load(Ordering::Relaxed);
    if finished == tables {
        return Ok(());
    }
    let rows = shared.sent.load(Ordering::Relaxed);
    let total = shared.rows.saturating_mul(tables);
    let so_far = format!("{} of {} rows", short(rows as f64), short(total as f64));
    Err(match stop.asked() {
        Some(kind) => Error::new(kind, format!("interrupted after {so_far}")),
        None => Error::failed(format!("{finished} of {tables} tables are finished, {so_far}")),
    }
    .hint(AGAIN))
}

/// A server goes on building an index when the connection is gone, and the next prepare would
/// wait for it. Kills only what is our own statement without doubt.
async fn end_indexing(mut control: Session, schema: Schema, connections: &[u32]) {
    let built = match schema {
        Schema::Sbtest => "CREATE INDEX `k_",
        Schema::Phptest | Schema::Bulk => "ALTER TABLE `phptest",
    };
    if connections.is_empty() {
        return;
    }
    let killing = async {
        let list = control.query("SHOW FULL PROCESSLIST").await.unwrap_or_default();
        for row in list {
            let field = |i: usize| row.get(i).and_then(Option::as_deref);
            let id = field(0).and_then(|id| id.parse::<u32>().ok());
            let ours = field(7).is_some_and(|sql| sql.starts_with(built));
            if let Some(id) = id.filter(|id| ours && connections.contains(id)) {
                // It may have ended just now.
                let _ = control.execute(&format!("KILL {id}")).await;
            }
        }
    };
    tokio::select! {
        () = killing => {}
        () = tokio::time::sleep(limits::COURTESY) => {}
    }
}
