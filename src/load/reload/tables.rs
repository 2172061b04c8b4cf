//! The tables of a load: whose they are before, and whether they hold what was sent after.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::load::dump::{Kind, unquoted};
use crate::load::fault::explain;
use crate::load::ready_mark;
use crate::load::set_up::drop_table;
use crate::mysql::control::one;
use crate::mysql::session::{Session, quoted_text};
use crate::plan::timed::{LoadSource, LoadSpec};
use crate::plan::units;
use crate::workload::Schema;
use crate::workload::random::Stream;
use crate::workload::rows::Rows;
use crate::workload::table::{LOADED, Mark, State, name, quoted};

/// Rows of a table whose content is looked at.
const SAMPLE: u64 = 100;
/// Tables that an error names for each reason.
const NAMED: usize = 5;
/// What goes on all the same.
pub(crate) const FORCE: &str = "--force drops also what prepare made; or take another --database";

/// One table of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoadedTable {
    /// Its name.
    pub name: String,
    /// Rows that the server says it took.
    pub rows: u64,
    /// INSERTs and LOAD DATAs into it.
    pub inserts: u64,
    /// Whether this load created it: then it must hold these rows and no others.
    created: bool,
    /// The COMMENT that its own CREATE TABLE gave it.
    comment: String,
}

/// All that were met so far.
#[derive(Debug, Default)]
pub(super) struct Tables {
    met: Vec<LoadedTable>,
    /// The last name as it stood in its statement, and whose it was: names come in runs.
    last: (Vec<u8>, usize),
}

impl Tables {
    pub(super) fn into_met(self) -> Vec<LoadedTable> {
        self.met
    }

    pub(super) fn all(&self) -> &[LoadedTable] {
        &self.met
    }

    /// The place of the table of this name, if it was met before.
    pub(super) fn known(&mut self, raw: &[u8]) -> Option<usize> {
        if self.last.0 == raw && !raw.is_empty() {
            return Some(self.last.1);
        }
        let name = unquoted(raw)?;
        let place = self.met.iter().position(|table| table.name == name)?;
        self.last = (raw.to_vec(), place);
        Some(place)
    }

    pub(super) fn at(&mut self, place: usize) -> Option<&mut LoadedTable> {
        self.met.get_mut(place)
    }

    /// Meets a table before the first statement that names it. What is there and the dump is about
    /// to make again is dropped here, so that every load of it begins alike.
    ///
    /// # Errors
    ///
    /// Those of [`may_take`].
    pub(super) async fn meet(
        &mut self,
        control: &mut Session,
        raw: &[u8],
        kind: Kind,
        force: bool,
    ) -> Result<()> {
        let name = unquoted(raw).filter(|name| !name.is_empty()).ok_or_else(|| {
            Error::data(format!("'{}' is no table's name", String::from_utf8_lossy(raw)))
        })?;
        let there = may_take(control, std::iter::once(name.clone()), force).await?;
        if there && matches!(kind, Kind::Drop | Kind::Create) {
            drop_table(control, &name).await?;
        }
        self.met.push(LoadedTable {
            name,
            rows: 0,
            inserts: 0,
            created: false,
            comment: String::new(),
        });
        Ok(())
    }

    /// Notes that a table was just created, and marks it as this verb's own, so that it can be
    /// dropped whatever ends this load.
    pub(super) async fn created(&mut self, control: &mut Session, place: usize) -> Result<()> {
        let Some(table) = self.met.get_mut(place) else { return Ok(()) };
        table.comment = comment(control, &table.name).await?.unwrap_or_default();
        (table.created, table.rows) = (true, 0);
        match Mark::parse(&table.comment).filter(|mark| mark.state == State::Filling) {
            Some(mark) if mark.loaded => Ok(()),
            Some(mark) => set_comment(control, &table.name, &mark.by_load().to_string()).await,
            None => set_comment(control, &table.name, LOADED).await,
        }
    }
}

/// Whether one of these tables is there.
///
/// # Errors
///
/// Data: one that `load` did not make, all of them named. With `force` it may be `prepare`'s.
pub(super) async fn may_take(
    control: &mut Session,
    tables: impl Iterator<Item = String>,
    force: bool,
) -> Result<bool> {
    let (mut there, mut foreign) = (false, false);
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in tables {
        let Some(comment) = comment(control, &name).await? else { continue };
        there = true;
        let why = match Mark::parse(&comment) {
            Some(mark) if mark.loaded || force => continue,
            None if comment == LOADED => continue,
            Some(mark) => format!("made by prepare, {} rows", units::count(mark.rows)),
            None => "not made by loadgen".to_owned(),
        };
        foreign |= Mark::parse(&comment).is_none();
        refused.entry(why).or_default().push(quoted(&name));
    }
    if refused.is_empty() {
        return Ok(there);
    }
    let lines: Vec<String> = refused
        .iter()
        .map(|(why, names)| {
            let more = match names.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
            format!("{}{more}: {why}", shown.join(", "))
        })
        .collect();
    let text = format!("load would overwrite what it did not make:\n  {}", lines.join("\n  "));
    let error = Error::data(text);
    Err(if foreign {
        error.hint("tables without loadgen's mark are never dropped: DROP them yourself, or take another --database")
    } else {
        error.hint(FORCE)
    })
}

/// Counts the tables, looks at a sample of generated rows, and says in the mark that they are whole.
///
/// # Errors
///
/// Data: a table does not hold what was sent.
pub(super) async fn verify(
    control: &mut Session,
    tables: &[LoadedTable],
    spec: &LoadSpec,
) -> Result<()> {
    for table in tables.iter().filter(|table| table.created) {
        let doing = format!("counting the rows of {}", table.name);
        let sql = format!("SELECT COUNT(*) FROM {}", quoted(&table.name));
        let count = one(control, &sql).await.map_err(|f| explain(&f, &doing))?;
        let count = count.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        // The sizes that servers tell are of before the load otherwise.
        let sql = format!("ANALYZE LOCAL TABLE {}", quoted(&table.name));
        let doing_so = format!("analysing {}", table.name);
        control.query(&sql).await.map_err(|f| explain(&f, &doing_so))?;
        let generated = match spec.source {
            LoadSource::Generated { rows, data_seed } => Some((rows, data_seed)),
            LoadSource::Dump { .. } => None,
        };
        let expected = generated.map_or(table.rows, |(rows, _)| rows);
        if count != expected || table.rows != expected {
            return Err(Error::data(format!(
                "{} holds {count} rows after a load of {expected} (the server said {})",
                table.name, table.rows
            ))
            .hint("does something else write to it?"));
        }
        if let (Some((rows, data_seed)), Some(number)) =
            (generated, Schema::Sbtest.number(&table.name))
        {
            sample(control, number, rows, data_seed).await?;
            let mark = ready_mark(data_seed, rows).by_load();
            set_comment(control, &table.name, &mark.to_string()).await?;
        } else if let Some(mark) = Mark::parse(&table.comment).filter(|mark| mark.rows == count) {
            // A dump of a table that loadgen filled: it is whole again, and holds nothing of what
            // was written to it after the dump.
            let mark = match mark.state {
                State::Filling => mark,
                State::Ready => ready_mark(mark.seed, mark.rows),
            };
            set_comment(control, &table.name, &mark.by_load().to_string()).await?;
        }
    }
    Ok(())
}

/// Holds the first, the last and some other rows against what they must be.
async fn sample(control: &mut Session, table: u32, count: u64, data_seed: u32) -> Result<()> {
    let rows = Rows::new(data_seed, table, count);
    let mut stream = Stream::new(count);
    let mut ids: Vec<u64> = (2..SAMPLE).map(|_| 1 + stream.below(count)).collect();
    ids.extend([1, count]);
    ids.sort_unstable();
    ids.dedup();
    let list: Vec<String> = ids.iter().map(u64::to_string).collect();
    let named = name(table);
    let sql = format!(
        "SELECT id, k, c, pad FROM {} WHERE id IN ({}) ORDER BY id",
        quoted(&named),
        list.join(",")
    );
    let doing = format!("reading a sample of {named}");
    let found = control.query(&sql).await.map_err(|f| explain(&f, &doing))?;
    let mut found = found.into_iter();
    for id in ids {
        let row = rows.row(id);
        let text = |bytes: &[u8]| Some(String::from_utf8_lossy(bytes).into_owned());
        let expected =
            vec![Some(id.to_string()), Some(row.k.to_string()), text(&row.c), text(&row.pad)];
        if found.next().as_ref() != Some(&expected) {
            return Err(Error::data(format!("{named}: row {id} is not the one that was sent")));
        }
    }
    Ok(())
}

/// The COMMENT of a table; None where there is none. A view has "VIEW".
async fn comment(control: &mut Session, table: &str) -> Result<Option<String>> {
    let sql = format!(
        "SELECT TABLE_COMMENT FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {}",
        quoted_text(table)
    );
    one(control, &sql).await.map_err(|f| explain(&f, &format!("looking for {table}")))
}

async fn set_comment(control: &mut Session, table: &str, comment: &str) -> Result<()> {
    let sql = format!("ALTER TABLE {} COMMENT = {}", quoted(table), quoted_text(comment));
    let done = control.execute(&sql).await;
    done.map(|_| ()).map_err(|f| explain(&f, &format!("marking {table}")))
}
