//! Whether the tables hold what prepare and the runs since left there.
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
mod judge;
mod read;
mod settle;
mod table;
mod tasks;

use std::collections::BTreeMap;

use mysql_async::Opts;

use self::history::{Archive, History};
use self::judge::judge;
use self::read::{Seen, read};
use self::settle::{confirm, wait_for_rollbacks};
use self::table::Table;
use crate::error::{Error, Result};
use crate::mysql::control;
use crate::mysql::dataset::{discover, names};
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::mysql::server;
use crate::mysql::session::Session;
use crate::plan::limits;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::summary::{Place, Record, Summary};
use crate::workload::Schema;
use crate::workload::table::{Mark, State};

pub use self::judge::{Finding, Found, Verdict};

/// What is known of the runs.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// Their summaries.
    pub summaries: &'a [&'a Summary],
    /// What steps without a summary left: names and records.
    pub records: &'a [(String, Record)],
    /// Whether what was written on another server counts too: this one is its replica, or has
    /// its data.
    pub elsewhere: bool,
}

/// What was found of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checked {
    /// Its name.
    pub table: String,
    /// What is to be said of it.
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

/// A table that prepare made, and what is known of it.
struct Own {
    table: Table,
    mark: Mark,
    history: History,
}

/// Reads the tables that prepare made, all of them, and holds them against the evidence. `opts`
/// are [`ConnectOptions::opts`] of `target`.
///
/// # Errors
///
/// Data: there is no table of prepare's. Server: none, or silence. Failed: a table cannot be
/// read. Interrupted.
pub(crate) async fn verify(
    target: &ConnectOptions,
    opts: &Opts,
    evidence: &Evidence<'_>,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Vec<Checked>> {
    let liveness = Liveness::new(target, opts);
    let looking = look(target, opts, evidence, &liveness, progress);
    let (own, missing) = liveness.during(stop, looking).await?;
    let ready = |own: &&Own| own.mark.state == State::Ready;
    let tables: Vec<Table> = own.iter().filter(ready).map(|own| own.table.clone()).collect();
    let (seen, liveness) = read(target, opts, &tables, liveness, stop, progress).await?;
    let asking = settle_all(target, opts, &tables, seen, &liveness, progress);
    let mut found = liveness.during(stop, asking).await?.into_iter();
    progress.clear();
    let checked = own.iter().map(|own| {
        let found = if ready(&own) { found.next() } else { None };
        Checked {
            table: own.table.name.clone(),
            rows: found.as_ref().map(|found| found.rows),
            k: found.as_ref().and_then(|found| found.k),
            steps: own.history.steps,
            in_doubt: own.history.in_doubt,
            verdict: match found {
                Some(found) => judge(own.mark.rows, &own.history, &found),
                None => Verdict::Undecided("its fill was not finished".to_owned()),
            },
        }
    });
    Ok(checked.chain(missing.into_iter().map(gone)).collect())
}

/// A table that a step wrote to.
fn gone((table, step): (String, String)) -> Checked {
    let why = format!(
        "it is not here, or not as prepare made it, and step {step} wrote to it: dropped, renamed \
         or lost"
    );
    let (rows, k) = (None, None);
    Checked { table, verdict: Verdict::Undecided(why), rows, k, steps: 0, in_doubt: 0 }
}

/// What verify says of a table of this mark in which this was found. Connects nowhere.
pub fn decide(
    evidence: &Evidence<'_>,
    here: &Place,
    table: &str,
    mark: &Mark,
    found: &Found,
) -> Verdict {
    judge(mark.rows, &history(table, mark, &evidence.archive(here)), found)
}

impl<'a> Evidence<'a> {
    fn archive(&self, here: &'a Place) -> Archive<'a> {
        let Evidence { summaries, records, elsewhere } = *self;
        Archive { summaries, records, here, elsewhere }
    }
}

/// The tables that carry prepare's mark, with their histories, when nothing is rolled back any
/// more; and those that are missing, with a step that wrote to each.
async fn look(
    target: &ConnectOptions,
    opts: &Opts,
    evidence: &Evidence<'_>,
    liveness: &Liveness,
    progress: &mut Progress,
) -> Result<(Vec<Own>, BTreeMap<String, String>)> {
    let mut session = Session::open(target, opts, None).await?;
    let _waits = liveness.waits(&session);
    if let Some(warning) = server::exposure(&mut session, target).await? {
        progress.warn(&warning.to_string());
    }
    let variables = control::variables(&mut session).await;
    let variables = variables.map_err(|f| control::explain(&f, "read the server's variables"))?;
    let database = control::database(&mut session).await;
    let database = database.map_err(|f| control::explain(&f, "ask which database it is"))?;
    let here = Place::of(&variables, database.as_deref());
    let archive = evidence.archive(&here);
    let (mut own, mut foreign) = (Vec::new(), Vec::new());
    for schema in Schema::ALL {
        let found = discover(&mut session, &target.database, schema).await?;
        let mut indexes = table::indexes(&mut session, schema).await?;
        let mut others = Vec::new();
        for (number, seen) in found.tables {
            let Some(mark) = seen.mark else {
                others.push(number);
                continue;
            };
            let mut history = history(&schema.name(number), &mark, &archive);
            if let (Some(engine), true) = (seen.keeps_what_failed(), history.steps > 0) {
                history.cannot(format!(
                    "its engine is {engine}, which takes nothing back: of a write that failed a \
                     part may be there"
                ));
            }
            let indexes = indexes.remove(&number).unwrap_or_default();
            own.push(Own {
                table: Table::new(schema, number, &mark, indexes, &history),
                mark,
                history,
            });
        }
        if !others.is_empty() {
            foreign.push(names(schema, others));
        }
    }
    let foreign = foreign.join(", ");
    if own.is_empty() {
        return Err(nothing(&target.database, &foreign));
    }
    if !foreign.is_empty() {
        progress.note(&format!("left out, not made by prepare: {foreign}"));
    }
    let known: Vec<(String, String)> = own.iter().filter_map(Own::identity).collect();
    match archive.strangers(&known) {
        0 => {}
        n => progress.note(&format!(
            "{n} of the steps wrote to other tables: of another database or server, dropped, or \
             prepared again since"
        )),
    }
    wait_for_rollbacks(&mut session, progress).await?;
    session.close(limits::COURTESY).await;
    Ok((own, archive.missing(&known)))
}

/// What was found in the tables, those asked after once more in which an index or what was read
/// disagrees with the server's own counts.
async fn settle_all(
    target: &ConnectOptions,
    opts: &Opts,
    tables: &[Table],
    seen: Vec<Seen>,
    liveness: &Liveness,
    progress: &mut Progress,
) -> Result<Vec<Found>> {
    let mut session = None;
    let mut found = Vec::with_capacity(seen.len());
    for (table, mut seen) in tables.iter().zip(seen) {
        seen.found.finding = match &seen.changed {
            Some(others) => Some(moving(others)),
            None if seen.counts.torn().or_else(|| seen.counts.against(&seen.read())).is_none() => {
                None
            }
            None => {
                progress.update(|| format!("{}: counting once more, CHECK TABLE", table.name));
                let mut open = match session.take() {
                    Some(session) => session,
                    None => read::open(target, opts).await?,
                };
                let _waits = liveness.waits(&open);
                let confirmed = confirm(&mut open, table, &mut seen, liveness).await;
                session = Some(open);
                confirmed.map_err(|f| read::explain(&f, &format!("checking {}", table.name)))?
            }
        };
        found.push(seen.found);
    }
    if let Some(session) = session {
        session.close(limits::COURTESY).await;
    }
    Ok(found)
}

fn moving(others: &[String]) -> Finding {
    let active = match others {
        [] => String::new(),
        others => format!("; active in this database: {}", others.join(", ")),
    };
    Finding::Unsettled(format!("it changed while it was read: something else writes to it{active}"))
}

/// Its history since it was filled.
fn history(table: &str, mark: &Mark, archive: &Archive<'_>) -> History {
    match mark.id {
        Some(id) => archive.of(table, &format!("{id:x}")),
        None => History {
            unknown: vec![
                "an older loadgen prepared it, whose ledgers do not say whose they are".to_owned(),
            ],
            ..History::default()
        },
    }
}

impl Own {
    fn identity(&self) -> Option<(String, String)> {
        Some((self.table.name.clone(), format!("{:x}", self.mark.id?)))
    }
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
