//! Rows into a table, a chunk at a time: all of it or nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::chunk::Chunk;
use super::fault::{AGAIN, explain};
use super::method::Method;
use super::text;
use super::worker::Shared;
use crate::error::{Error, Result};
use crate::mysql::control::one;
use crate::mysql::session::{Failure, Session};
use crate::workload::filler::Filler;
use crate::workload::table::quoted;

/// Attempts at a chunk before a conflict with other connections counts as an error.
const ATTEMPTS: u32 = 10;
/// The wait before a further attempt, times the attempts so far.
const BREATH: Duration = Duration::from_millis(20);

/// Rows on their way, of the whole fill and of one chunk.
#[derive(Debug, Clone)]
struct Sent {
    all: Arc<AtomicU64>,
    chunk: Arc<AtomicU64>,
}

impl Sent {
    fn add(&self, rows: u64) {
        self.all.fetch_add(rows, Ordering::Relaxed);
        self.chunk.fetch_add(rows, Ordering::Relaxed);
    }

    fn take_back(&self) {
        self.all.fetch_sub(self.chunk.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Why a chunk is not in.
enum Trouble {
    Failure(Failure),
    Incomplete(String),
}

type Filled = std::result::Result<Session, Trouble>;

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Trouble::Failure(failure)
    }
}

impl Trouble {
    /// Whether it was a deadlock or a wait for a lock: the chunk is rolled back.
    fn is_conflict(&self) -> bool {
        matches!(self, Trouble::Failure(Failure::Server { code: 1205 | 1213, .. }))
    }
}

impl Shared {
    /// Fills a chunk, again if the server gave other connections the right of way: deleting the
    /// rests of an interrupted fill locks the seams to the neighbouring chunks too.
    pub(super) async fn fill(
        &self,
        mut session: Session,
        job: u32,
        chunk: Chunk,
    ) -> Result<Session> {
        let table = self.table(chunk.slot)?;
        let at = format!(
            "filling {} (ids {} to {})",
            self.schema.name(table.number),
            chunk.first,
            chunk.last
        );
        let (mut begun, mut attempt) = (table.begun, 1);
        loop {
            let sent = Sent { all: Arc::clone(&self.sent), chunk: Arc::default() };
            let waits = self.liveness.waits(&session);
            match self.try_fill(session, table.number, chunk, begun, &sent).await {
                Ok(session) => return Ok(session),
                Err(trouble) if trouble.is_conflict() && attempt < ATTEMPTS => sent.take_back(),
                Err(Trouble::Failure(failure)) => return Err(explain(&failure, &at)),
                Err(Trouble::Incomplete(why)) => {
                    return Err(Error::failed(format!("{at}: {why}"))
                        .hint("does something else write to these tables?")
                        .hint(AGAIN));
                }
            }
            drop(waits);
            tokio::time::sleep(BREATH * attempt).await;
            (begun, attempt) = (true, attempt + 1);
            // The old one went with its statement, and what it held is rolled back.
            session = self.open(job).await?;
        }
    }

    async fn try_fill(
        &self,
        mut session: Session,
        table: u32,
        chunk: Chunk,
        begun: bool,
        sent: &Sent,
    ) -> Filled {
        if begun && self.is_there(&mut session, table, chunk).await? {
            sent.add(chunk.rows());
            self.found.fetch_add(chunk.rows(), Ordering::Relaxed);
            return Ok(session);
        }
        match self.method {
            Method::LoadData => self.load(session, table, chunk, sent).await,
            Method::Insert => self.insert(session, table, chunk, sent).await,
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
        let named = quoted(&self.schema.name(table));
        let range = format!("WHERE id BETWEEN {} AND {}", chunk.first, chunk.last);
        // The index on k holds the ids too, and a scan of all of it might look cheaper.
        let sql = format!("SELECT COUNT(*) FROM {named} FORCE INDEX (PRIMARY) {range}");
        let count = one(session, &sql).await?.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        if count > 0 && count != chunk.rows() {
            session.execute(&format!("DELETE FROM {named} {range}")).await?;
        }
        Ok(count == chunk.rows())
    }

    /// The rows of a table. There is none where tables stay empty, and they are never filled.
    fn source(&self, table: u32) -> std::result::Result<Filler, Trouble> {
        Filler::new(self.schema, self.data_seed, table, self.rows)
            .ok_or_else(|| Trouble::Incomplete("these tables stay empty".to_owned()))
    }

    /// One statement, and so one transaction.
    async fn load(&self, session: Session, table: u32, chunk: Chunk, sent: &Sent) -> Filled {
        let counted = sent.clone();
        let lines =
            text::lines(self.source(table)?, chunk.first, chunk.last, self.packet, move |n| {
                counted.add(n);
            });
        let (session, affected) =
            session.load_data(&text::load_data(self.schema, table), lines).await?;
        // LOCAL turns errors in the data and duplicate ids into warnings.
        if affected == chunk.rows() && session.warnings() == 0 {
            return Ok(session);
        }
        Err(incomplete(session, affected, chunk.rows()).await)
    }

    /// Several statements in one transaction.
    async fn insert(&self, mut session: Session, table: u32, chunk: Chunk, sent: &Sent) -> Filled {
        session.execute("START TRANSACTION").await?;
        let mut next = chunk.first;
        while next <= chunk.last {
            let (sql, after) =
                text::insert(table, self.source(table)?, next, chunk.last, self.packet);
            let affected = session.execute(&sql).await?;
            if affected != after - next || session.warnings() != 0 {
                return Err(incomplete(session, affected, after - next).await);
            }
            sent.add(affected);
            next = after;
        }
        session.execute("COMMIT").await?;
        Ok(session)
    }
}

/// The server took rows, but not as they were sent.
async fn incomplete(mut session: Session, affected: u64, rows: u64) -> Trouble {
    let warning = match session.query("SHOW WARNINGS LIMIT 1").await {
        Ok(warnings) => warnings.into_iter().next().and_then(|w| w.into_iter().nth(2)).flatten(),
        Err(_) => None,
    };
    let why = warning.map(|text| format!(": {text}")).unwrap_or_default();
    Trouble::Incomplete(format!("the server took {affected} of {rows} rows{why}"))
}
