//! One connection of the fill: takes chunks and finished tables from the board until nothing
//! is left.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mysql_async::Opts;

use super::chunk::{Board, Task};
use super::fault::{AGAIN, explain};
use super::method::Method;
use super::ready_mark;
use super::set_up::claim;
use crate::error::{Error, Result};
use crate::mysql::control::{impatient, one, optional};
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::mysql::session::{Failure, Session};
use crate::plan::limits;
use crate::workload::Schema;
use crate::workload::table::quoted;

/// A table that is not finished.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unfinished {
    /// Its number.
    pub(super) number: u32,
    /// Whether an interrupted fill left rows in it.
    pub(super) begun: bool,
}

/// What all connections of a fill share.
pub(super) struct Shared {
    pub(super) target: ConnectOptions,
    pub(super) opts: Opts,
    pub(super) liveness: Liveness,
    pub(super) schema: Schema,
    /// The board's slots are places in here.
    pub(super) tables: Vec<Unfinished>,
    pub(super) rows: u64,
    pub(super) data_seed: u32,
    pub(super) method: Method,
    /// The largest packet that both ends take, bytes.
    pub(super) packet: usize,
    pub(super) board: Mutex<Board>,
    /// Rows in the tables or on their way.
    pub(super) sent: Arc<AtomicU64>,
    /// Rows that an interrupted fill had left.
    pub(super) found: AtomicU64,
    /// Connections that build an index.
    pub(super) indexing: Mutex<Vec<u32>>,
    /// Tables whose rows are being counted.
    pub(super) counting: AtomicU64,
    /// Threads that have begun.
    pub(super) begun: AtomicU32,
    pub(super) finished: AtomicU64,
}

/// Locks also what a panicking thread left: the data are plain numbers.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a session that is set up for DDL and filling, whatever the server's defaults are.
pub(super) async fn open(target: &ConnectOptions, opts: &Opts) -> Result<Session> {
    let mut session = Session::open(target, opts, None).await?;
    // Strict: bad data is an error. Without NO_ENGINE_SUBSTITUTION an old server without InnoDB
    // would quietly make MyISAM tables.
    let sql = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1, \
               wait_timeout = 28800";
    let failed = |f: Failure| explain(&f, "setting up a connection");
    session.execute(sql).await.map_err(failed)?;
    impatient(&mut session).await.map_err(failed)?;
    Ok(session)
}

/// Works until nothing is left. Whoever is dropped meanwhile drops the connection in the middle of a
/// statement, and the server rolls the chunk back.
pub(super) async fn work(shared: Arc<Shared>) -> Result<()> {
    let job = shared.begun.fetch_add(1, Ordering::Relaxed);
    let mut session = shared.open(job).await?;
    let mut mine = None;
    loop {
        let Some(task) = locked(&shared.board).next(mine) else { break };
        session = match task {
            Task::Fill(chunk) => {
                let session = shared.fill(session, job, chunk).await?;
                locked(&shared.board).done(chunk);
                mine = Some(chunk.slot);
                session
            }
            Task::Finish(slot) => shared.finish(session, slot).await?,
        };
    }
    session.close(limits::COURTESY).await;
    Ok(())
}

impl Shared {
    /// The connection of a thread.
    pub(super) async fn open(&self, job: u32) -> Result<Session> {
        let mut session = open(&self.target, &self.opts).await?;
        let claimed = claim(&mut session, &self.target.database, job).await;
        claimed.map(|()| session).map_err(|f| explain(&f, "locking"))
    }

    pub(super) fn table(&self, slot: usize) -> Result<Unfinished> {
        // A slot of this board is always a place in the list that it was made for.
        self.tables.get(slot).copied().ok_or_else(|| Error::failed("a table that is not there"))
    }

    /// The index, a count, and the mark that says so.
    async fn finish(&self, mut session: Session, slot: usize) -> Result<Session> {
        let _waits = self.liveness.waits(&session);
        let table = self.table(slot)?;
        let named = self.schema.name(table.number);
        let at = format!("building the index of {named}");
        let failed = |failure: Failure| explain(&failure, &at);
        if let Some(index) = self.schema.index(table.number)
            && !(table.begun
                && has_index(&mut session, &named, &index.name).await.map_err(failed)?)
        {
            locked(&self.indexing).push(session.id());
            session.execute(&index.sql).await.map_err(failed)?;
            locked(&self.indexing).retain(|id| *id != session.id());
        }
        let at = format!("finishing {named}");
        let failed = |failure: Failure| explain(&failure, &at);
        // In one statement, so that the server scans the smallest index.
        let sql = format!("SELECT COUNT(*), MIN(id), MAX(id) FROM {}", quoted(&named));
        self.counting.fetch_add(1, Ordering::Relaxed);
        let counted = session.query(&sql).await.map_err(failed)?;
        self.counting.fetch_sub(1, Ordering::Relaxed);
        let counted: Vec<String> = counted.into_iter().flatten().flatten().collect();
        let rows = self.rows.to_string();
        if counted != [rows.as_str(), "1", rows.as_str()] {
            let (count, ends) = counted.split_first().unwrap_or((&rows, &[]));
            let lacks = count.parse().is_ok_and(|count: u64| count < self.rows);
            let force = "--force drops it and fills it again";
            return Err(Error::data(format!(
                "{named} holds {count} rows (ids {}), not {rows} (ids 1 to {rows}): something else \
                 wrote to it",
                ends.join(" to ")
            ))
            .hint(if lacks { AGAIN } else { force }));
        }
        let mark = ready_mark(self.data_seed, self.rows);
        let sql = format!("ALTER TABLE {} COMMENT = '{mark}'", quoted(&named));
        session.execute(&sql).await.map_err(failed)?;
        // Until then MySQL 5.6 and later tell the size that the table had while it was empty.
        let sql = format!("ANALYZE NO_WRITE_TO_BINLOG TABLE {}", quoted(&named));
        optional(session.query(&sql).await).map_err(failed)?;
        self.finished.fetch_add(1, Ordering::Relaxed);
        Ok(session)
    }
}

async fn has_index(
    session: &mut Session,
    table: &str,
    index: &str,
) -> std::result::Result<bool, Failure> {
    let sql = format!(
        "SELECT 1 FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() \
         AND TABLE_NAME = '{table}' AND INDEX_NAME = '{index}'"
    );
    Ok(one(session, &sql).await?.is_some())
}
