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

mod read;
mod verdict;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::read::{Table, indexes, read, recovered, still_open};
use self::verdict::Known;
use crate::error::{Error, Result};
use crate::load::{Numbers, named};
use crate::mysql::{Liveness, ServerLink, Session, control, discover, exposure};
use crate::progress::Progress;
use crate::stop::{COURTESY, SILENCE};
use crate::summary::Place;
use crate::workload::Schema;

pub use self::verdict::{Evidence, Found, History, Verdict, judge};

/// How often the server is asked what it still rolls back.
const EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checked {
    pub table: String,
    pub verdict: Verdict,
    /// What it holds, as far as it was read.
    pub found: Found,
    pub history: History,
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
    let checked = tables.iter().cloned().zip(found).map(|(table, found)| {
        let Table { name: table, mark, history, .. } = table;
        Checked { table, verdict: judge(mark.rows, &history, &found), found, history }
    });
    let gone = missing.into_iter().map(|(table, step)| {
        let verdict = Verdict::Undecided(format!(
            "it is not here, or not as prepare made it, and step {step} wrote to it: dropped, \
             renamed or lost"
        ));
        Checked { table, verdict, found: Found::default(), history: History::default() }
    });
    Ok(checked.chain(gone).collect())
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
    let (mut tables, mut foreign) = (Vec::new(), Numbers::new());
    for schema in Schema::ALL {
        let mut indexes = indexes(&mut session, schema).await?;
        for (number, seen) in discover(&mut session, &target.database, schema).await?.tables {
            let Some(mark) = seen.mark else {
                foreign.entry(schema).or_default().push(number);
                continue;
            };
            let name = schema.name(number);
            let mut history = evidence.of(&here, &name, &mark);
            if let (Some(engine), true) = (seen.keeps_what_failed(), history.steps > 0) {
                history.unknown.push(format!(
                    "its engine is {engine}, which takes nothing back: of a write that failed a \
                     part may be there"
                ));
            }
            let primary = vec![("PRIMARY".to_owned(), schema != Schema::Phptest)];
            let indexes = [primary, indexes.remove(&number).unwrap_or_default()].concat();
            tables.push(Table { schema, number, name, mark, history, indexes });
        }
    }
    let others = match named(&foreign) {
        foreign if foreign.is_empty() => foreign,
        foreign => format!("; not made by loadgen prepare: {foreign}"),
    };
    if tables.is_empty() {
        let none = format!("there is no table of prepare's in `{}`{others}", target.database);
        return Err(Error::data(none)
            .hint("verify needs what prepare fills: --database names where the runs wrote to"));
    }
    if !others.is_empty() {
        progress.note(&format!("left out{others}"));
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
