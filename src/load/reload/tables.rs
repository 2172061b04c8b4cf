//! The tables of a load: whose they are before, and whether they hold what was sent after.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::load::connect::{Doing, drop_table, number};
use crate::load::dump::{Kind, unquoted};
use crate::load::ready_mark;
use crate::load::tables::in_the_way;
use crate::mysql::control::one;
use crate::mysql::session::{Session, quoted_text};
use crate::plan::timed::{LoadSource, LoadSpec};
use crate::terms::units;
use crate::workload::Schema;
use crate::workload::random::Stream;
use crate::workload::rows::Rows;
use crate::workload::table::{LOADED, Mark, State, quoted};

/// Rows of a table whose content is looked at.
const SAMPLE: u64 = 100;
/// What goes on all the same.
pub(crate) const FORCE: &str = "--force drops also what prepare made; or take another --database";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LoadedTable {
    pub name: String,
    pub rows: u64,
    /// INSERTs and LOAD DATAs into it.
    pub inserts: u64,
    /// Whether this load created it: then it must hold these rows and no others.
    created: bool,
    /// The COMMENT that its own CREATE TABLE gave it.
    comment: String,
}

impl LoadedTable {
    /// Meets a table before the first statement that names it. What is there and the dump is about
    /// to make again is dropped here, so that every load of it begins alike.
    pub(super) async fn meet(
        control: &mut Session,
        raw: &[u8],
        kind: Kind,
        force: bool,
    ) -> Result<LoadedTable> {
        let name = unquoted(raw).filter(|name| !name.is_empty()).ok_or_else(|| {
            Error::data(format!("'{}' is no table's name", String::from_utf8_lossy(raw)))
        })?;
        let there = may_take(control, std::iter::once(name.clone()), force).await?;
        if there && matches!(kind, Kind::Drop | Kind::Create) {
            drop_table(control, &name).await?;
        }
        Ok(LoadedTable { name, ..LoadedTable::default() })
    }

    /// Notes that it was just created, and marks it as this verb's own, so that it can be dropped
    /// whatever ends this load.
    pub(super) async fn created(&mut self, control: &mut Session) -> Result<()> {
        self.comment = comment(control, &self.name)
            .await?
            .ok_or_else(|| Error::failed(format!("{} was created, and is not there", self.name)))?;
        (self.created, self.rows) = (true, 0);
        match Mark::parse(&self.comment).filter(|mark| mark.state == State::Filling) {
            Some(mark) if mark.loaded => Ok(()),
            Some(mark) => set_comment(control, &self.name, &mark.by_load().to_string()).await,
            None => set_comment(control, &self.name, LOADED).await,
        }
    }
}

/// Whether one of these tables is there.
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
            None => {
                foreign = true;
                "not made by loadgen".to_owned()
            }
        };
        refused.entry(why).or_default().push(quoted(&name));
    }
    if refused.is_empty() {
        return Ok(there);
    }
    let error = in_the_way("load would overwrite what it did not make", &refused);
    Err(error.hint(if foreign {
        "tables without loadgen's mark are never dropped: DROP them yourself, or take another --database"
    } else {
        FORCE
    }))
}

/// Counts the tables, looks at a sample of generated rows, and says in the mark that they are whole.
pub(super) async fn verify(
    control: &mut Session,
    tables: &[LoadedTable],
    spec: &LoadSpec,
) -> Result<()> {
    for table in tables.iter().filter(|table| table.created) {
        let (doing, named) = (format!("counting the rows of {}", table.name), quoted(&table.name));
        let sql = format!("SELECT COUNT(*) FROM {named}");
        let count = number(control, &sql).await.doing(&doing)?;
        // The sizes that servers tell are of before the load otherwise.
        control.query(&format!("ANALYZE LOCAL TABLE {named}")).await.doing(&doing)?;
        let expected = match spec.source {
            LoadSource::Generated { rows, .. } => rows,
            LoadSource::Dump { .. } => table.rows,
        };
        if count != expected || table.rows != expected {
            return Err(Error::data(format!(
                "{} holds {count} rows after a load of {expected} (the server said {})",
                table.name, table.rows
            ))
            .hint("does something else write to it?"));
        }
        let mark = match (&spec.source, Mark::parse(&table.comment)) {
            (LoadSource::Generated { rows, data_seed }, _) => {
                sample(control, &table.name, *rows, *data_seed).await?;
                ready_mark(*data_seed, *rows)
            }
            // A dump of a table that loadgen filled: it is whole again, and holds nothing of what
            // was written to it after the dump.
            (LoadSource::Dump { .. }, Some(mark)) if mark.rows == count => match mark.state {
                State::Filling => mark,
                State::Ready => ready_mark(mark.seed, mark.rows),
            },
            (LoadSource::Dump { .. }, _) => continue,
        };
        set_comment(control, &table.name, &mark.by_load().to_string()).await?;
    }
    Ok(())
}

/// Holds the first, the last and some other rows against what they must be.
async fn sample(control: &mut Session, table: &str, count: u64, data_seed: u32) -> Result<()> {
    let number = Schema::Sbtest.number(table).expect("it was generated");
    let rows = Rows::new(data_seed, number, count);
    let mut stream = Stream::new(count);
    let mut ids: Vec<u64> = (2..SAMPLE).map(|_| 1 + stream.below(count)).collect();
    ids.extend([1, count]);
    ids.sort_unstable();
    ids.dedup();
    let list: Vec<String> = ids.iter().map(u64::to_string).collect();
    let sql = format!(
        "SELECT id, k, c, pad FROM {} WHERE id IN ({}) ORDER BY id",
        quoted(table),
        list.join(",")
    );
    let found = control.query(&sql).await.doing(&format!("reading a sample of {table}"))?;
    let mut found = found.into_iter();
    for id in ids {
        let row = rows.row(id);
        let text = |bytes: &[u8]| Some(String::from_utf8_lossy(bytes).into_owned());
        let expected =
            vec![Some(id.to_string()), Some(row.k.to_string()), text(&row.c), text(&row.pad)];
        if found.next().as_ref() != Some(&expected) {
            return Err(Error::data(format!("{table}: row {id} is not the one that was sent")));
        }
    }
    Ok(())
}

/// Reads the COMMENT of a table; None where there is none. A view has "VIEW".
async fn comment(control: &mut Session, table: &str) -> Result<Option<String>> {
    let sql = format!(
        "SELECT TABLE_COMMENT FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {}",
        quoted_text(table)
    );
    one(control, &sql).await.doing(&format!("looking for {table}"))
}

async fn set_comment(control: &mut Session, table: &str, comment: &str) -> Result<()> {
    let sql = format!("ALTER TABLE {} COMMENT = {}", quoted(table), quoted_text(comment));
    control.execute(&sql).await.doing(&format!("marking {table}")).map(drop)
}
