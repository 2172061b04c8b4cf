//! Nothing is judged while the server still rolls back, and no index on one look alone.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use super::counts::{Counts, check_table, recovered, snapshot};
use super::judge::{Finding, Found};
use super::moving;
use super::read::Seen;
use super::table::Table;
use crate::error::Result;
use crate::mysql::control::{Asked, explain};
use crate::mysql::liveness::Liveness;
use crate::mysql::session::Session;
use crate::plan::limits;
use crate::progress::Progress;

/// How often the server is asked what it still rolls back.
const EVERY: Duration = Duration::from_millis(500);

/// A server that was killed rolls back in the background what had not committed, also after it
/// lets clients in. Waits for that, for so long as a step may be silent; a transaction that XA
/// prepared stays for ever.
pub(super) async fn wait_for_rollbacks(
    session: &mut Session,
    progress: &mut Progress,
) -> Result<()> {
    let began = Instant::now();
    let mut told = false;
    loop {
        let left = recovered(session).await;
        let left = left.map_err(|f| explain(&f, "ask what the server rolls back"))?.unwrap_or(0);
        if left == 0 {
            return Ok(());
        }
        if began.elapsed() > limits::SILENCE {
            progress.note(&format!("going on: {}", open(left)));
            return Ok(());
        }
        if !std::mem::replace(&mut told, true) {
            progress.note(&format!("waiting: {}", open(left)));
        }
        tokio::time::sleep(EVERY).await;
    }
}

fn open(n: u64) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} transaction{s} of before the server's start still open")
}

/// A second look at a table of which an index, or what was read, disagrees with the server's
/// own count of its rows. What was read in pieces is read again in one: between two of them a row
/// may have lost what another one gained.
pub(super) async fn confirm(
    session: &mut Session,
    table: &Table,
    seen: &mut Seen,
    liveness: &Liveness,
) -> Asked<Option<Finding>> {
    snapshot(session).await?;
    let counts = Counts::take(session, &table.name, &table.indexes).await?;
    if counts.against(&seen.read()).is_some() {
        let mut found = Found { k_start: seen.found.k_start, ..Found::default() };
        table.read(session, "1 = 1", &AtomicU64::new(0), &mut found).await?;
        seen.found = found;
    }
    session.execute("COMMIT").await?;
    if counts.rows() != seen.counts.rows() {
        return Ok(Some(moving(&liveness.others(session).await?)));
    }
    let Some((by, what)) = counts.torn().or_else(|| counts.against(&seen.read())) else {
        return Ok(None);
    };
    if let Some(left) = recovered(session).await?.filter(|left| *left > 0) {
        return Ok(Some(Finding::Unsettled(format!("{what}, but {}", open(left)))));
    }
    let said = check_table(session, &table.name).await?;
    Ok(Some(Finding::Index(by, format!("{what}; {said}"))))
}
