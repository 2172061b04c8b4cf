//! The connections of a fill: started, watched, ended.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mysql_async::Opts;

use super::Job;
use super::chunk::{Board, chunk_rows};
use super::fault::AGAIN;
use super::pace::{Pace, short};
use super::set_up::Ready;
use super::worker::{Shared, locked, work};
use crate::error::{Error, Result};
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::mysql::session::Session;
use crate::mysql::threads::Threads;
use crate::plan::limits;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::workload::Schema;

/// What filling came to.
pub(super) struct Filled {
    /// When the last row was in.
    pub(super) rows_after: Duration,
    /// Rows that were there before.
    pub(super) found: u64,
}

/// Fills, indexes and marks the tables.
pub(super) async fn fill(
    target: &ConnectOptions,
    opts: &Opts,
    job: &Job,
    ready: Ready,
    liveness: Liveness,
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
        liveness,
        schema: job.schema,
        tables,
        rows: job.rows,
        data_seed: job.data_seed,
        method: choice.method,
        packet,
        board: Mutex::new(board),
        sent: Arc::default(),
        found: AtomicU64::new(0),
        indexing: Mutex::default(),
        counting: AtomicU64::new(0),
        begun: AtomicU32::new(0),
        finished: AtomicU64::new(0),
    });
    let why = choice.why.map(|why| format!(" ({why})")).unwrap_or_default();
    progress.note(&format!(
        "filling by {} over {jobs} connection{}{why}",
        choice.method,
        if jobs == 1 { "" } else { "s" }
    ));
    let halt = Stop::default();
    let crew = Threads {
        name: "fill",
        count: jobs as usize,
        halt: &halt,
        stop,
        liveness: &shared.liveness,
        again: AGAIN,
    };
    let mut watch = Watch::new(&shared, count, progress);
    let theirs = Arc::clone(&shared);
    let done = crew.run(move || work(Arc::clone(&theirs)), || watch.look()).await;
    let rows_after = watch.rows_after();
    let outcome = done.and_then(|()| verdict(&shared, count, stop));
    if outcome.is_err() {
        let indexing = locked(&shared.indexing).clone();
        end_indexing(control, job.schema, &indexing).await;
    } else {
        control.close(limits::COURTESY).await;
    }
    outcome.map(|()| Filled { rows_after, found: shared.found.load(Ordering::Relaxed) })
}

/// Shows how it goes.
struct Watch<'a> {
    shared: &'a Shared,
    progress: &'a mut Progress,
    tables: u64,
    total: u64,
    began: Instant,
    pace: Pace,
    all_sent: Option<Duration>,
}

impl<'a> Watch<'a> {
    fn new(shared: &'a Shared, tables: u64, progress: &'a mut Progress) -> Self {
        let began = Instant::now();
        let total = shared.rows.saturating_mul(tables);
        progress.restart();
        let pace = Pace::new(total, began);
        Watch { shared, progress, tables, total, began, pace, all_sent: None }
    }

    fn look(&mut self) {
        let Watch { shared, tables, total, began, .. } = *self;
        let rows = shared.sent.load(Ordering::Relaxed).min(total);
        self.pace.at(Instant::now(), rows);
        if rows == total && self.all_sent.is_none() {
            self.all_sent = Some(began.elapsed());
        }
        let pace = &self.pace;
        self.progress.update(|| {
            let finished = shared.finished.load(Ordering::Relaxed);
            let seconds = began.elapsed().as_secs();
            let counting = shared.counting.load(Ordering::Relaxed);
            let beside = match (locked(&shared.indexing).len(), counting) {
                (0, 0) => String::new(),
                (n, 0) => format!("; building {n} indexes"),
                (0, m) => format!("; counting {m} tables"),
                (n, m) => format!("; building {n} indexes, counting {m} tables"),
            };
            if rows == total {
                format!("filled; {finished} of {tables} tables ready, {seconds} s{beside}")
            } else {
                format!("filling: {}{beside}", pace.text())
            }
        });
    }

    /// When the last row was in.
    fn rows_after(&self) -> Duration {
        self.all_sent.unwrap_or_else(|| self.began.elapsed())
    }
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
