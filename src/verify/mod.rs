//! Whether the tables hold what prepare and the runs since left there.
//!
//! ```text
//! marks in the tables ─┐
//! ledgers, records ────┼─▶ history of each table ─▶ judge ─▶ ok | LOST n | DAMAGED n | undecided
//! every row, read ─────┘
//! ```
//!
//! The rows at the start are a pure function of what the mark says, and each table's mark has an
//! identity that is new each time it is filled: the ledgers that name it are those since. What
//! cannot be known is said, not guessed: `docs/faults.md`.

mod history;
mod judge;
mod read;

use std::time::Duration;

use mysql_async::Opts;

use self::history::{Archive, History};
use self::judge::judge;
use self::read::{Table, read};
use crate::error::{Error, Result};
use crate::mysql::ask::explain;
use crate::mysql::dataset::{discover, names};
use crate::mysql::session::Session;
use crate::mysql::target::Target;
use crate::mysql::variables;
use crate::plan::limits;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::summary::{Place, Record, Summary};
use crate::workload::Schema;
use crate::workload::table::{Mark, State};

pub use self::judge::Verdict;

/// After recovery InnoDB rolls back in the background what had not committed, and meanwhile an
/// index may count rows that will not stay. So what does not agree is read again, after so long.
const PAUSES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(3), Duration::from_secs(10)];

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
pub struct Checked {
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
/// are [`Target::opts`] of `target`.
///
/// # Errors
///
/// Data: there is no table of prepare's. Server: none, or no answer. Failed: a table cannot be
/// read. Interrupted.
pub async fn verify(
    target: &Target,
    opts: &Opts,
    evidence: &Evidence<'_>,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Vec<Checked>> {
    let looking = look(target, opts, evidence, progress);
    let own = tokio::select! {
        biased;
        kind = stop.wait() => Err(Error::new(kind, "interrupted")),
        own = looking => own,
    }?;
    let ready = |own: &&Own| own.mark.state == State::Ready;
    let tables: Vec<Table> = own.iter().filter(ready).map(|own| own.table.clone()).collect();
    let mut found = read(target, opts, &tables, stop, progress).await?;
    for pause in PAUSES {
        let moving = || found.iter().zip(0..).filter(|(found, _)| !found.settled());
        let places: Vec<usize> = moving().map(|(_, place)| place).collect();
        if places.is_empty() {
            break;
        }
        let some: Vec<Table> = places.iter().filter_map(|at| tables.get(*at).cloned()).collect();
        progress.note(&format!(
            "{} of {} tables are read again: the server counts other rows than it returns",
            some.len(),
            tables.len()
        ));
        tokio::select! {
            biased;
            kind = stop.wait() => return Err(Error::new(kind, "interrupted")),
            () = tokio::time::sleep(pause) => {}
        }
        let again = read(target, opts, &some, stop, progress).await?;
        for (at, again) in places.into_iter().zip(again) {
            if let Some(found) = found.get_mut(at) {
                *found = again;
            }
        }
    }
    progress.clear();
    let mut found = found.into_iter();
    let checked = own.iter().map(|own| {
        let found = if ready(&own) { found.next() } else { None };
        Checked {
            table: own.table.name.clone(),
            rows: found.map(|found| found.rows),
            k: found.and_then(|found| found.k),
            steps: own.history.steps,
            in_doubt: own.history.in_doubt,
            verdict: match found {
                Some(found) => judge(own.mark.rows, &own.history, &found),
                None => Verdict::Undecided("its fill was not finished".to_owned()),
            },
        }
    });
    Ok(checked.collect())
}

/// The tables that carry prepare's mark, with their histories.
async fn look(
    target: &Target,
    opts: &Opts,
    evidence: &Evidence<'_>,
    progress: &mut Progress,
) -> Result<Vec<Own>> {
    let mut session = Session::open(target, opts, None).await?;
    let variables = variables::read(&mut session).await;
    let here = Place::of(&variables.map_err(|f| explain(&f, "read the server's variables"))?);
    let &Evidence { summaries, records, elsewhere } = evidence;
    let archive = Archive { summaries, records, here: &here, elsewhere };
    let (mut own, mut foreign) = (Vec::new(), Vec::new());
    for schema in Schema::ALL {
        let found = discover(&mut session, &target.database, schema).await?;
        let mut others = Vec::new();
        for (number, seen) in found.tables {
            match seen.mark {
                Some(mark) => own.push(with_history(schema, number, mark, &archive)),
                None => others.push(number),
            }
        }
        if !others.is_empty() {
            foreign.push(names(schema, others));
        }
    }
    session.close(limits::COURTESY).await;
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
    Ok(own)
}

fn with_history(schema: Schema, number: u32, mark: Mark, archive: &Archive) -> Own {
    let name = schema.name(number);
    let history = match mark.id {
        Some(id) => archive.of(&name, &format!("{id:x}")),
        None => History {
            unknown: vec![
                "an older loadgen prepared it, whose ledgers do not say whose they are".to_owned(),
            ],
            ..History::default()
        },
    };
    let (seed, rows) = (mark.seed, mark.rows);
    let untouched = history.steps == 0 && history.unknown.is_empty();
    Own { table: Table { schema, number, name, seed, rows, untouched }, mark, history }
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
