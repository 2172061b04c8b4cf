//! One connection of the fill: takes chunks and finished tables from the board until nothing
//! is left.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mysql_async::Opts;

use super::chunk::{Board, Chunk, Task};
use super::fault::explain;
use super::method::Method;
use super::text;
use crate::error::{Error, Result};
use crate::mysql::ask::one;
use crate::mysql::session::{Failure, Session};
use crate::mysql::target::Target;
use crate::plan::limits;
use crate::stop::Stop;
use crate::workload::rows::Rows;
use crate::workload::table::{self, Mark, State, name, quoted};

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
    pub(super) target: Target,
    pub(super) opts: Opts,
    /// The board's slots are places in here.
    pub(super) tables: Vec<Unfinished>,
    pub(super) rows: u64,
    pub(super) data_seed: u32,
    pub(super) method: Method,
    /// The largest packet that both ends take, bytes.
    pub(super) packet: usize,
    pub(super) board: Mutex<Board>,
    /// Asked when one connection fails, or the user interrupts.
    pub(super) halt: Stop,
    /// Rows in the tables or on their way.
    pub(super) sent: Arc<AtomicU64>,
    /// Connections that build an index.
    pub(super) indexing: Mutex<Vec<u32>>,
    pub(super) finished: AtomicU64,
}

/// Locks also what a panicking thread left: the data are plain numbers.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a session that is set up for DDL and filling, whatever the server's defaults are.
pub(super) async fn open(target: &Target, opts: &Opts) -> Result<Session> {
    let mut session = Session::open(target, opts, None).await?;
    // Strict: bad data is an error. Without NO_ENGINE_SUBSTITUTION an old server without InnoDB
    // would quietly make MyISAM tables.
    let sql = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1, \
               wait_timeout = 28800";
    session.execute(sql).await.map_err(|f| explain(&f, "setting up a connection"))?;
    Ok(session)
}

/// Works until nothing is left, something fails, or `halt` is asked; in the last case the
/// connection is dropped in the middle of a statement, and the server rolls the chunk back.
pub(super) async fn work(shared: &Shared) -> Result<()> {
    let done = tokio::select! {
        biased;
        _ = shared.halt.wait() => Ok(()),
        done = tasks(shared) => done,
    };
    if let Err(error) = &done {
        shared.halt.ask(error.kind());
    }
    done
}

async fn tasks(shared: &Shared) -> Result<()> {
    let mut session = open(&shared.target, &shared.opts).await?;
    let mut mine = None;
    loop {
        let Some(task) = locked(&shared.board).next(mine) else { break };
        session = match task {
            Task::Fill(chunk) => {
                let session = shared.fill(session, chunk).await?;
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
    fn table(&self, slot: usize) -> Result<Unfinished> {
        // A slot of this board is always a place in the list that it was made for.
        self.tables.get(slot).copied().ok_or_else(|| Error::failed("a table that is not there"))
    }

    async fn fill(&self, mut session: Session, chunk: Chunk) -> Result<Session> {
        let table = self.table(chunk.slot)?;
        let at = format!("filling {} (ids {} to {})", name(table.number), chunk.first, chunk.last);
        let failed = |failure: Failure| explain(&failure, &at);
        if table.begun && self.is_there(&mut session, table.number, chunk).await.map_err(failed)? {
            self.sent.fetch_add(chunk.rows(), Ordering::Relaxed);
            return Ok(session);
        }
        match self.method {
            Method::LoadData => self.load(session, table.number, chunk, &at).await,
            Method::Insert => self.insert(session, table.number, chunk, &at).await,
        }
    }

    /// Whether an interrupted fill left this chunk whole; what is left of a broken one is
    /// deleted. Counting what is there is many times faster than filling it.
    async fn is_there(
        &self,
        session: &mut Session,
        table: u32,
        chunk: Chunk,
    ) -> std::result::Result<bool, Failure> {
        let sbtest = quoted(&name(table));
        let range = format!("WHERE id BETWEEN {} AND {}", chunk.first, chunk.last);
        // The index on k holds the ids too, and a scan of all of it might look cheaper.
        let sql = format!("SELECT COUNT(*) FROM {sbtest} FORCE INDEX (PRIMARY) {range}");
        let count = one(session, &sql).await?.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        if count > 0 && count != chunk.rows() {
            session.execute(&format!("DELETE FROM {sbtest} {range}")).await?;
        }
        Ok(count == chunk.rows())
    }

    fn source(&self, table: u32) -> Rows {
        Rows::new(self.data_seed, table, self.rows)
    }

    /// One statement, and so one transaction.
    async fn load(&self, session: Session, table: u32, chunk: Chunk, at: &str) -> Result<Session> {
        let sent = Arc::clone(&self.sent);
        let lines = text::lines(self.source(table), chunk.first, chunk.last, self.packet, sent);
        let loading = session.load_data(&text::load_data(table), lines).await;
        let (session, affected) = loading.map_err(|failure| explain(&failure, at))?;
        // LOCAL turns errors in the data and duplicate ids into warnings.
        if affected == chunk.rows() && session.warnings() == 0 {
            return Ok(session);
        }
        Err(incomplete(session, affected, chunk.rows(), at).await)
    }

    /// Several statements in one transaction.
    async fn insert(
        &self,
        mut session: Session,
        table: u32,
        chunk: Chunk,
        at: &str,
    ) -> Result<Session> {
        let failed = |failure: Failure| explain(&failure, at);
        session.execute("START TRANSACTION").await.map_err(failed)?;
        let mut next = chunk.first;
        while next <= chunk.last {
            let (sql, after) =
                text::insert(table, self.source(table), next, chunk.last, self.packet);
            let affected = session.execute(&sql).await.map_err(failed)?;
            if affected != after - next || session.warnings() != 0 {
                return Err(incomplete(session, affected, after - next, at).await);
            }
            self.sent.fetch_add(affected, Ordering::Relaxed);
            next = after;
        }
        session.execute("COMMIT").await.map_err(failed)?;
        Ok(session)
    }

    /// The index, a last look, and the mark that says so. The chunks' counts add up to the
    /// table's rows by now.
    async fn finish(&self, mut session: Session, slot: usize) -> Result<Session> {
        let table = self.table(slot)?;
        let named = name(table.number);
        let at = format!("building the index of {named}");
        let failed = |failure: Failure| explain(&failure, &at);
        if !(table.begun && has_index(&mut session, table.number).await.map_err(failed)?) {
            locked(&self.indexing).push(session.id());
            session.execute(&table::create_index(table.number)).await.map_err(failed)?;
            locked(&self.indexing).retain(|id| *id != session.id());
        }
        let at = format!("finishing {named}");
        let failed = |failure: Failure| explain(&failure, &at);
        let sql = format!("SELECT MIN(id), MAX(id) FROM {}", quoted(&named));
        let ends: Vec<Option<String>> =
            session.query(&sql).await.map_err(failed)?.into_iter().flatten().collect();
        if ends != [Some("1".to_owned()), Some(self.rows.to_string())] {
            let ends: Vec<String> = ends.into_iter().flatten().collect();
            return Err(Error::data(format!(
                "{named} holds ids {}, not 1 to {}: something else wrote to it",
                ends.join(" to "),
                self.rows
            ))
            .hint("--force drops it and fills it again"));
        }
        let mark = Mark { seed: self.data_seed, rows: self.rows, state: State::Ready };
        let sql = format!("ALTER TABLE {} COMMENT = '{mark}'", quoted(&named));
        session.execute(&sql).await.map_err(failed)?;
        self.finished.fetch_add(1, Ordering::Relaxed);
        Ok(session)
    }
}

async fn has_index(session: &mut Session, table: u32) -> std::result::Result<bool, Failure> {
    let sql = format!(
        "SELECT 1 FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() \
         AND TABLE_NAME = '{}' AND INDEX_NAME = 'k_{table}'",
        name(table)
    );
    Ok(one(session, &sql).await?.is_some())
}

/// The server took a chunk, but not as it was sent.
async fn incomplete(mut session: Session, affected: u64, rows: u64, at: &str) -> Error {
    let warning = match session.query("SHOW WARNINGS LIMIT 1").await {
        Ok(warnings) => warnings.into_iter().next().and_then(|w| w.into_iter().nth(2)).flatten(),
        Err(_) => None,
    };
    let why = warning.map(|text| format!(": {text}")).unwrap_or_default();
    Error::failed(format!("{at}: the server took {affected} of {rows} rows{why}"))
        .hint("does something else write to these tables?")
        .hint(super::fault::AGAIN)
}
