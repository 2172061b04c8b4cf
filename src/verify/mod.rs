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

mod history;
mod read;
mod table;
mod verdict;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::history::{History, Known};
use self::read::{read, recovered, still_open};
use self::table::{Index, Table, has_k, indexes};
use self::verdict::judge;
use crate::error::{Error, Result};
use crate::mysql::{Liveness, ServerLink, Session, control, discover, exposure, names};
use crate::progress::Progress;
use crate::stop::{COURTESY, SILENCE};
use crate::summary::Place;
use crate::workload::Schema;
use crate::workload::table::{Mark, State};

pub use self::history::Evidence;
pub use self::verdict::{Finding, Found, Verdict};

/// How often the server is asked what it still rolls back.
const EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checked {
    pub table: String,
    pub verdict: Verdict,
    /// Rows that it holds, as far as it was read.
    pub rows: u64,
    /// The sum of `k`, where there is one.
    pub k: Option<i128>,
    /// Steps that wrote to it since it was filled, or may have.
    pub steps: u64,
    /// Writes that nobody knows the outcome of.
    pub in_doubt: u64,
}

/// Reads the tables that prepare made, all of them, and holds them against the evidence.
pub(crate) async fn verify(
    link: &ServerLink,
    evidence: &Evidence<'_>,
    progress: &mut Progress,
) -> Result<Vec<Checked>> {
    let server = Arc::new(Liveness::new(link));
    let looking = look(&server, evidence, progress);
    let (tables, missing) = server.during(looking).await?;
    let tables = Arc::new(tables);
    let found = read(&server, &tables, progress).await?;
    progress.clear();
    let checked = tables.iter().zip(found).map(|(table, found)| Checked {
        table: table.name.clone(),
        verdict: judge(table.mark.rows, &table.history, &found),
        rows: found.rows,
        k: found.k,
        steps: table.history.steps,
        in_doubt: table.history.in_doubt,
    });
    let gone = missing.into_iter().map(|(table, step)| {
        let verdict = Verdict::Undecided(format!(
            "it is not here, or not as prepare made it, and step {step} wrote to it: dropped, \
             renamed or lost"
        ));
        Checked { table, verdict, rows: 0, k: None, steps: 0, in_doubt: 0 }
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
    let target = &server.link.target;
    let mut session = Session::open(&server.link, None).await?;
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
        let others = find(&mut session, &target.database, schema, evidence, &here, &mut tables);
        foreign.push(names(schema, others.await?));
    }
    foreign.retain(|names| !names.is_empty());
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

/// Finds the tables of a kind, with their histories; returns the numbers of those that are not
/// prepare's.
async fn find(
    session: &mut Session,
    database: &str,
    schema: Schema,
    evidence: &Evidence<'_>,
    here: &Place,
    tables: &mut Vec<Table>,
) -> Result<Vec<u32>> {
    let (mut indexes, mut others) = (indexes(session, schema).await?, Vec::new());
    for (number, seen) in discover(session, database, schema).await?.tables {
        let Some(mark) = seen.mark else {
            others.push(number);
            continue;
        };
        let name = schema.name(number);
        let mut history = match mark.state {
            State::Ready => evidence.of(here, &name, &mark),
            State::Filling => History::unknown("its fill was not finished"),
        };
        if let (Some(engine), true) = (seen.keeps_what_failed(), history.steps > 0) {
            history.unknown.push(format!(
                "its engine is {engine}, which takes nothing back: of a write that failed a part \
                 may be there"
            ));
        }
        let primary = Index { name: "PRIMARY".to_owned(), k: has_k(schema) };
        let indexes = [primary].into_iter().chain(indexes.remove(&number).into_iter().flatten());
        tables.push(Table { schema, number, name, mark, history, indexes: indexes.collect() });
    }
    Ok(others)
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
    let (began, mut told) = (Instant::now(), false);
    loop {
        let left = recovered(session).await;
        let left = left.map_err(|f| control::explain(&f, "ask what the server rolls back"))?;
        let over = began.elapsed() > SILENCE;
        if left > 0 && (over || !std::mem::replace(&mut told, true)) {
            let what = if over { "going on" } else { "waiting" };
            progress.note(&format!("{what}: {}", still_open(left)));
        }
        if left == 0 || over {
            return Ok(());
        }
        tokio::time::sleep(EVERY).await;
    }
}
