//! Checks that the tables hold what prepare and the runs since left there.
//!
//! ```text
//! marks in the tables ─┐
//! ledgers, records ────┼─▶ history of each table ─▶ judge ─▶ ok | LOST n | DAMAGED n | INDEX n
//! every row, read ─────┘                                       | undecided
//! ```
//!
//! The rows at the start are a pure function of what the mark says, and each table's mark has an
//! identity that is new each time it is filled: the ledgers that name it are those since. What
//! cannot be known is said, not guessed: `docs/faults.md`.

mod counts;
mod history;
mod read;
mod table;
mod verdict;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use mysql_async::Opts;

use self::counts::{Counts, check_table, recovered, snapshot};
use self::history::Known;
use self::read::{Seen, read};
use self::table::Table;
use self::verdict::judge;
use crate::error::{Error, Result};
use crate::mysql::control::{self, Asked};
use crate::mysql::dataset::{discover, names};
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::mysql::server::exposure;
use crate::mysql::session::Session;
use crate::progress::Progress;
use crate::stop::{COURTESY, SILENCE, Stop};
use crate::summary::Place;
use crate::workload::Schema;
use crate::workload::table::Mark;

pub use self::history::Evidence;
pub use self::verdict::{Finding, Found, Verdict};

/// How often the server is asked what it still rolls back.
const EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checked {
    pub table: String,
    pub verdict: Verdict,
    /// Rows that it holds; None where it was not read.
    pub rows: Option<u64>,
    /// The sum of `k`, where there is one.
    pub k: Option<i128>,
    /// Steps that wrote to it since it was filled, or may have.
    pub steps: u64,
    /// Writes that nobody knows the outcome of.
    pub in_doubt: u64,
}

/// Reads the tables that prepare made, all of them, and holds them against the evidence. `opts`
/// are [`ConnectOptions::opts`] of `target`.
pub(crate) async fn verify(
    target: &ConnectOptions,
    opts: &Opts,
    evidence: &Evidence<'_>,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Vec<Checked>> {
    let server = Arc::new(Liveness::new(target, opts));
    let looking = look(&server, evidence, progress);
    let (tables, missing) = server.during(stop, looking).await?;
    let tables = Arc::new(tables);
    let seen = read(&server, &tables, stop, progress).await?;
    let asking = settle(&server, &tables, seen, progress);
    let found = server.during(stop, asking).await?;
    progress.clear();
    let checked = tables.iter().zip(found).map(|(table, found)| Checked {
        table: table.name.clone(),
        rows: table.is_ready().then_some(found.rows),
        k: found.k,
        steps: table.history.steps,
        in_doubt: table.history.in_doubt,
        verdict: if table.is_ready() {
            judge(table.mark.rows, &table.history, &found)
        } else {
            Verdict::Undecided("its fill was not finished".to_owned())
        },
    });
    let gone = missing.into_iter().map(|(table, step)| {
        let verdict = Verdict::Undecided(format!(
            "it is not here, or not as prepare made it, and step {step} wrote to it: dropped, \
             renamed or lost"
        ));
        Checked { table, verdict, rows: None, k: None, steps: 0, in_doubt: 0 }
    });
    Ok(checked.chain(gone).collect())
}

/// Tells what verify says of a table of this mark in which this was found. Connects nowhere.
pub fn decide(
    evidence: &Evidence<'_>,
    here: &Place,
    table: &str,
    mark: &Mark,
    found: &Found,
) -> Verdict {
    judge(mark.rows, &evidence.of(here, table, mark), found)
}

/// Finds the tables that carry loadgen's mark, with their histories, when nothing is rolled back any
/// more; and those that are missing, with a step that wrote to each.
async fn look(
    server: &Liveness,
    evidence: &Evidence<'_>,
    progress: &mut Progress,
) -> Result<(Vec<Table>, BTreeMap<String, String>)> {
    let target = &server.target;
    let mut session = Session::open(target, &server.opts, None).await?;
    let _waits = server.waits(&session);
    if let Some(warning) = exposure(&mut session, target).await? {
        progress.warn(&warning.to_string());
    }
    let variables = control::variables(&mut session).await;
    let variables = variables.map_err(|f| control::explain(&f, "read the server's variables"))?;
    let database = control::database(&mut session).await;
    let database = database.map_err(|f| control::explain(&f, "ask which database it is"))?;
    let here = Place::of(&variables, database.as_deref());
    let (mut tables, mut foreign) = (Vec::new(), Vec::new());
    for schema in Schema::ALL {
        let mut indexes = table::indexes(&mut session, schema).await?;
        let mut others = Vec::new();
        for (number, seen) in discover(&mut session, &target.database, schema).await?.tables {
            let Some(mark) = seen.mark else {
                others.push(number);
                continue;
            };
            let mut history = evidence.of(&here, &schema.name(number), &mark);
            if let (Some(engine), true) = (seen.keeps_what_failed(), history.steps > 0) {
                history.unknown.push(format!(
                    "its engine is {engine}, which takes nothing back: of a write that failed a \
                     part may be there"
                ));
            }
            // It may have none but that of its rows.
            let indexes = indexes.remove(&number).unwrap_or_default();
            tables.push(Table::new(schema, number, mark, indexes, history));
        }
        if !others.is_empty() {
            foreign.push(names(schema, others));
        }
    }
    let foreign = foreign.join(", ");
    if tables.is_empty() {
        return Err(nothing(&target.database, &foreign));
    }
    if !foreign.is_empty() {
        progress.note(&format!("left out, not made by prepare: {foreign}"));
    }
    let known = |table: &Table| Some((table.name.clone(), format!("{:x}", table.mark.id?)));
    let known: Vec<Known> = tables.iter().filter_map(known).collect();
    match evidence.strangers(&known) {
        0 => {}
        n => progress.note(&format!(
            "{n} of the steps wrote to other tables: of another database or server, dropped, or \
             prepared again since"
        )),
    }
    wait_for_rollbacks(&mut session, progress).await?;
    session.close(COURTESY).await;
    Ok((tables, evidence.missing(&here, &known)))
}

fn nothing(database: &str, foreign: &str) -> Error {
    if foreign.is_empty() {
        return Error::data(format!("there is no table of prepare's in `{database}`"))
            .hint("--database names the one that the runs wrote to");
    }
    Error::data(format!("{foreign} of `{database}` were not made by loadgen prepare")).hint(
        "what such tables held at the start is not known: verify needs those that prepare makes",
    )
}

/// Waits while a server that was killed rolls back what had not committed: it does so in the background,
/// also after it lets clients in. A transaction that XA prepared stays for ever, so the wait has an end.
async fn wait_for_rollbacks(session: &mut Session, progress: &mut Progress) -> Result<()> {
    let began = Instant::now();
    let mut told = false;
    loop {
        let left = recovered(session).await;
        let left = left.map_err(|f| control::explain(&f, "ask what the server rolls back"))?;
        if left == 0 {
            return Ok(());
        }
        if began.elapsed() > SILENCE {
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

/// Concludes what was found in the tables; asks once more after those in which an index or what was
/// read disagrees with the server's own counts.
async fn settle(
    server: &Liveness,
    tables: &[Table],
    seen: Vec<Seen>,
    progress: &mut Progress,
) -> Result<Vec<Found>> {
    let mut session = None;
    let mut found = Vec::with_capacity(seen.len());
    for (table, mut seen) in tables.iter().zip(seen) {
        if let Some(others) = &seen.changed {
            seen.found.finding = Some(moving(others));
        } else if table.is_ready() && seen.counts.torn(&seen.read()).is_some() {
            progress.update(|| format!("{}: counting once more, CHECK TABLE", table.name));
            let session = match &mut session {
                Some(session) => session,
                none => none.insert(read::open(server).await?),
            };
            let _waits = server.waits(session);
            let confirmed = confirm(session, table, &mut seen, server).await;
            let at = || format!("checking {}", table.name);
            seen.found.finding = confirmed.map_err(|f| read::explain(&f, &at()))?;
        }
        found.push(seen.found);
    }
    if let Some(session) = session {
        session.close(COURTESY).await;
    }
    Ok(found)
}

/// Looks once more at a table of which an index, or what was read, disagrees with the server's
/// own count of its rows. What was read in pieces is read again in one: between two of them a row
/// may have lost what another one gained.
async fn confirm(
    session: &mut Session,
    table: &Table,
    seen: &mut Seen,
    server: &Liveness,
) -> Asked<Option<Finding>> {
    snapshot(session).await?;
    let counts = Counts::take(session, &table.name, &table.indexes).await?;
    if !counts.rows().agrees(&seen.read()) {
        let mut found = Found { k_start: seen.found.k_start, ..Found::default() };
        table.read(session, "1 = 1", &AtomicU64::new(0), &mut found).await?;
        seen.found = found;
    }
    session.execute("COMMIT").await?;
    if counts.rows() != seen.counts.rows() {
        return Ok(Some(moving(&server.others(session).await?)));
    }
    let Some((by, what)) = counts.torn(&seen.read()) else { return Ok(None) };
    let left = recovered(session).await?;
    if left > 0 {
        return Ok(Some(Finding::Unsettled(format!("{what}, but {}", open(left)))));
    }
    let said = check_table(session, &table.name).await?;
    Ok(Some(Finding::Index(by, format!("{what}; {said}"))))
}

fn moving(others: &[String]) -> Finding {
    let active = match others {
        [] => String::new(),
        others => format!("; active in this database: {}", others.join(", ")),
    };
    Finding::Unsettled(format!("it changed while it was read: something else writes to it{active}"))
}
