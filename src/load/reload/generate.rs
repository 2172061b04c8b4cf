//! The statements of a dump that nobody wrote: sysbench's tables as `mysqldump --opt` would have
//! them in its file, their rows made on the fly.

use super::batch::{Feed, Halt, Part};
use crate::error::Error;
use crate::load::text;
use crate::plan::timed::InsertMode;
use crate::workload::filler::Filler;
use crate::workload::rows::Rows;
use crate::workload::table::{self, Mark, name, quoted};

/// What to generate.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    /// `sbtest1` to this.
    pub(super) tables: u32,
    /// Rows of each.
    pub(super) rows: u64,
    /// Seed of their content.
    pub(super) data_seed: u32,
    /// How they are put into statements.
    pub(super) insert: InsertMode,
}

/// What mysqldump's file begins with, as far as it says how rows are taken. Without
/// NO_ENGINE_SUBSTITUTION an old server without InnoDB would quietly make MyISAM tables.
const HEAD: [&str; 4] = [
    "SET UNIQUE_CHECKS=0",
    "SET FOREIGN_KEY_CHECKS=0",
    "SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'",
    "SET SQL_NOTES=0",
];

/// Makes all statements.
pub(super) fn generate(feed: &mut Feed, recipe: &Recipe) -> Result<(), Halt> {
    for sql in HEAD {
        say(feed, sql)?;
    }
    for number in 1..=recipe.tables {
        let named = quoted(&name(number));
        let mark = Mark::filling(recipe.data_seed, recipe.rows).by_load();
        say(feed, &format!("DROP TABLE IF EXISTS {named}"))?;
        say(feed, &table::create_indexed(number, recipe.rows, &mark))?;
        match recipe.insert {
            InsertMode::LoadData => {
                feed.flush(0)?;
                feed.hand_over(Part::LoadData(number))?;
            }
            InsertMode::Extended { bytes } => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                locked(feed, &named, |feed| inserts(feed, recipe, number, bytes))?;
            }
            InsertMode::Single => locked(feed, &named, |feed| inserts(feed, recipe, number, 0))?,
        }
    }
    feed.flush(0)
}

/// As mysqldump wraps the rows of a table.
fn locked(
    feed: &mut Feed,
    named: &str,
    rows: impl FnOnce(&mut Feed) -> Result<(), Halt>,
) -> Result<(), Halt> {
    say(feed, &format!("LOCK TABLES {named} WRITE"))?;
    say(feed, &format!("/*!40000 ALTER TABLE {named} DISABLE KEYS */"))?;
    rows(feed)?;
    say(feed, &format!("/*!40000 ALTER TABLE {named} ENABLE KEYS */"))?;
    say(feed, "UNLOCK TABLES")
}

/// INSERTs of all rows of a table, each below so many bytes or of one row.
fn inserts(feed: &mut Feed, recipe: &Recipe, table: u32, bytes: usize) -> Result<(), Halt> {
    let rows = Filler::from(Rows::new(recipe.data_seed, table, recipe.rows));
    let head = format!("INSERT INTO {} VALUES ", quoted(&name(table)));
    let mut next = 1;
    while next <= recipe.rows {
        let write = |out: &mut Vec<u8>| {
            next = text::extended(out, &head, rows, next, recipe.rows, bytes);
        };
        feed.statement(0, write).map_err(Error::failed)?;
        feed.full(0)?;
    }
    Ok(())
}

fn say(feed: &mut Feed, sql: &str) -> Result<(), Halt> {
    feed.statement(0, |out| out.extend_from_slice(sql.as_bytes())).map_err(Error::failed)?;
    Ok(())
}
