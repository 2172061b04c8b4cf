//! What tables there are in a database, and whether they can be used.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::ask::{Asked, explain, optional};
use super::session::{Session, quoted_text};
use crate::error::Result;
use crate::workload::Schema;
use crate::workload::table::{self, Mark};

/// Everything named as the tables of a schema, such as `sbtestN`, in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovered {
    /// The database.
    pub database: String,
    /// The tables' kind.
    pub schema: Schema,
    /// By number; there may be gaps.
    pub tables: BTreeMap<u32, Table>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Whether it is a table, not a view or a sequence.
    pub is_table: bool,
    /// Its storage engine, where it has one that works.
    pub engine: Option<String>,
    /// Storage engine, row format, collation, options and indexes, as far as the server tells.
    pub format: String,
    /// What `prepare` left in its COMMENT; None for a foreign table.
    pub mark: Option<Mark>,
    /// Size of data and indexes, bytes.
    pub bytes: u64,
    /// Why no workload can use it, if so.
    pub unusable: Option<String>,
    /// Whether an index begins with the column that [`Schema::indexed`] names.
    pub indexed: bool,
}

/// Engines without transactions.
const NOT_TRANSACTIONAL: [&str; 7] =
    ["aria", "archive", "blackhole", "csv", "memory", "mrg_myisam", "myisam"];

impl Table {
    /// Its engine, if that cannot roll back.
    pub(crate) fn keeps_what_failed(&self) -> Option<&str> {
        let name = |engine: &&str| NOT_TRANSACTIONAL.contains(&&*engine.to_ascii_lowercase());
        self.engine.as_deref().filter(name)
    }
}

impl Discovered {
    /// A table's name in SQL, database included: the session may be in another one.
    pub(super) fn sql_name(&self, number: u32) -> String {
        format!("{}.{}", table::quoted(&self.database), table::quoted(&self.schema.name(number)))
    }

    /// A table's name.
    pub(super) fn name(&self, number: u32) -> String {
        self.schema.name(number)
    }

    /// N of the last table of `sbtest1..N` without a gap; 0 without `sbtest1`.
    pub fn contiguous(&self) -> u32 {
        self.tables.keys().zip(1..).take_while(|(number, expected)| **number == *expected).count()
            as u32
    }
}

/// The tables used by a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// `sbtest1..tables`.
    pub tables: u32,
    /// Ids 1 to this exist in each of them, as far as a sample shows.
    pub rows: u64,
    /// Rows that `prepare` put into each of them, if it made them all alike.
    pub held: Option<u64>,
    /// The seed of their rows, if `prepare` made them all with one seed.
    pub data_seed: Option<u32>,
    /// Whether `prepare` made them all: then every `c` proves itself.
    pub own: bool,
    /// The identity of each one's content, where it has one.
    pub ids: Vec<Option<u32>>,
    /// Size of data and indexes of these tables, bytes.
    pub data_bytes: u64,
    /// The formats of these tables, each once.
    pub formats: Vec<String>,
}

/// Size of some tables with their indexes, bytes, and their formats, each once.
pub(crate) async fn facts(session: &mut Session, which: &str) -> Asked<(u64, Vec<String>)> {
    let sql = format!(
        "SELECT TABLE_NAME, DATA_LENGTH + INDEX_LENGTH, \
         ENGINE, ROW_FORMAT, TABLE_COLLATION, CREATE_OPTIONS \
         FROM information_schema.TABLES WHERE TABLE_TYPE <> 'VIEW' AND {which}"
    );
    let indexes = indexes(session, which).await?;
    let (mut bytes, mut formats) = (0_u64, BTreeSet::new());
    for row in session.query(&sql).await? {
        let mut fields = row.into_iter();
        let name = fields.next().flatten().unwrap_or_default();
        // Null of a table that the server cannot open.
        let size = fields.next().flatten().and_then(|text| text.parse().ok());
        bytes = bytes.saturating_add(size.unwrap_or(0));
        formats.insert(format(fields, indexes.get(&name)));
    }
    Ok((bytes, formats.into_iter().collect()))
}

/// Storage engine, row format, collation, options and indexes in one text.
fn format(
    fields: impl Iterator<Item = Option<String>>,
    indexes: Option<&BTreeMap<String, Index>>,
) -> String {
    let text = fields.flatten().filter(|field| !field.is_empty()).collect::<Vec<_>>().join(" ");
    // Their names have the table's number in them.
    let indexes = indexes.into_iter().flat_map(BTreeMap::values);
    let mut indexes: Vec<String> =
        indexes.map(|index| format!("{} ({})", index.kind, index.columns.join(", "))).collect();
    indexes.sort_unstable();
    std::iter::once(text).chain(indexes).collect::<Vec<_>>().join(", ")
}

/// One index of a table.
struct Index {
    kind: String,
    columns: Vec<String>,
}

/// The indexes of some tables, by the names of both.
async fn indexes(
    session: &mut Session,
    which: &str,
) -> Asked<BTreeMap<String, BTreeMap<String, Index>>> {
    let sql = format!(
        "SELECT TABLE_NAME, INDEX_NAME, NON_UNIQUE, INDEX_TYPE, COLUMN_NAME, SUB_PART \
         FROM information_schema.STATISTICS WHERE {which} \
         ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
    );
    let mut tables: BTreeMap<String, BTreeMap<String, Index>> = BTreeMap::new();
    for row in session.query(&sql).await? {
        let mut fields = row.into_iter().map(Option::unwrap_or_default);
        let mut field = || fields.next().unwrap_or_default();
        let (table, name, non_unique, kind) = (field(), field(), field(), field());
        let (column, part) = (field(), field());
        let unique = match name.as_str() {
            "PRIMARY" => "PRIMARY ",
            _ if non_unique == "0" => "UNIQUE ",
            _ => "",
        };
        let index = tables
            .entry(table)
            .or_default()
            .entry(name)
            .or_insert_with(|| Index { kind: format!("{unique}{kind}"), columns: Vec::new() });
        index.columns.push(if part.is_empty() { column } else { format!("{column}({part})") });
    }
    Ok(tables)
}

/// Lists the tables of a database; it need not exist.
///
/// # Errors
/// Server, if the server does not answer or knows no `information_schema`.
pub async fn discover(session: &mut Session, database: &str, schema: Schema) -> Result<Discovered> {
    list(session, database, schema)
        .await
        .map_err(|failure| explain(&failure, &format!("list the tables of `{database}`")))
}

pub(super) async fn list(
    session: &mut Session,
    database: &str,
    schema: Schema,
) -> Asked<Discovered> {
    // MySQL 8 keeps sizes for a day otherwise; servers without the variable keep none.
    optional(session.execute("SET SESSION information_schema_stats_expiry = 0").await)?;
    let which = format!(
        "TABLE_SCHEMA = {} AND TABLE_NAME LIKE '{}%'",
        quoted_text(database),
        schema.prefix()
    );
    let mut columns = columns(session, &which, schema).await?;
    let indexes = indexes(session, &which).await?;
    let sql = format!(
        "SELECT TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_COMMENT, DATA_LENGTH, INDEX_LENGTH, \
         ROW_FORMAT, TABLE_COLLATION, CREATE_OPTIONS \
         FROM information_schema.TABLES WHERE {which}"
    );
    let mut tables = BTreeMap::new();
    for row in session.query(&sql).await? {
        let mut fields = row.into_iter();
        let mut field = || fields.next().flatten();
        let name = field().unwrap_or_default();
        let Some(number) = schema.number(&name) else { continue };
        let is_table = matches!(field().as_deref(), Some("BASE TABLE" | "SYSTEM VERSIONED"));
        let engine = field();
        let comment = field().unwrap_or_default();
        let mut size = || field().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let bytes = size().saturating_add(size());
        let format = format(std::iter::once(engine.clone()).chain(fields), indexes.get(&name));
        let columns = columns.remove(&number).unwrap_or_default();
        let unusable = unusable(schema, is_table, engine.is_some(), &comment, &columns);
        let mark = is_table.then(|| Mark::parse(&comment)).flatten();
        let indexed = schema.indexed().is_none_or(|column| columns.get(column) == Some(&true));
        tables.insert(number, Table { is_table, engine, format, mark, bytes, unusable, indexed });
    }
    Ok(Discovered { database: database.to_owned(), schema, tables })
}

/// The columns of one table, and whether an index begins with each.
type Columns = BTreeMap<String, bool>;

async fn columns(
    session: &mut Session,
    which: &str,
    schema: Schema,
) -> Asked<BTreeMap<u32, Columns>> {
    let sql = format!(
        "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_KEY FROM information_schema.COLUMNS \
         WHERE {which} AND COLUMN_NAME IN ('{}')",
        schema.columns().join("', '")
    );
    let mut tables: BTreeMap<u32, Columns> = BTreeMap::new();
    for row in session.query(&sql).await? {
        let mut fields = row.into_iter().map(Option::unwrap_or_default);
        let mut field = || fields.next().unwrap_or_default();
        if let Some(number) = schema.number(&field()) {
            let column = field().to_ascii_lowercase();
            tables.entry(number).or_default().insert(column, !field().is_empty());
        }
    }
    Ok(tables)
}

fn unusable(
    schema: Schema,
    is_table: bool,
    works: bool,
    comment: &str,
    columns: &Columns,
) -> Option<String> {
    if !is_table {
        return Some("is no table but a view or the like".to_owned());
    }
    if !works {
        // The server's own words on what is wrong with it.
        return Some(format!("cannot be opened: {comment}"));
    }
    let needed = schema.columns().iter().copied();
    let missing: Vec<&str> = needed.filter(|column| !columns.contains_key(*column)).collect();
    if !missing.is_empty() {
        return Some(format!("has no column {}", missing.join(", ")));
    }
    // Each operation would scan the whole table.
    (!columns.get("id").is_some_and(|indexed| *indexed)).then(|| "has no index on id".to_owned())
}

/// Table numbers as names: `sbtest1..sbtest4, sbtest7`; cut after a few ranges.
pub(crate) fn names(schema: Schema, numbers: impl IntoIterator<Item = u32>) -> String {
    const SHOWN: usize = 5;
    let prefix = schema.prefix();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let mut text = String::new();
    for (i, (first, last)) in ranges.iter().take(SHOWN).enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = match last - first {
            0 => write!(text, "{comma}{prefix}{first}"),
            1 => write!(text, "{comma}{prefix}{first}, {prefix}{last}"),
            _ => write!(text, "{comma}{prefix}{first}..{prefix}{last}"),
        };
    }
    if ranges.len() > SHOWN {
        text.push_str(" and others");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_many_tables_stay_short() {
        let names = |numbers: &[u32]| names(Schema::Sbtest, numbers.iter().copied());
        assert_eq!(names(&[1]), "sbtest1");
        assert_eq!(names(&[1, 2, 4, 5, 6]), "sbtest1, sbtest2, sbtest4..sbtest6");
        assert_eq!(
            names(&[1, 3, 5, 7, 9, 11, 13]),
            "sbtest1, sbtest3, sbtest5, sbtest7, sbtest9 and others"
        );
        assert_eq!(names(&[u32::MAX]), "sbtest4294967295");
    }

    #[test]
    fn a_gap_ends_the_contiguous_tables() {
        let table = Table {
            is_table: true,
            engine: None,
            format: String::new(),
            mark: None,
            bytes: 0,
            unusable: None,
            indexed: true,
        };
        let of = |numbers: &[u32]| Discovered {
            database: "x".to_owned(),
            schema: Schema::Sbtest,
            tables: numbers.iter().map(|n| (*n, table.clone())).collect(),
        };
        assert_eq!(of(&[]).contiguous(), 0);
        assert_eq!(of(&[2, 3]).contiguous(), 0);
        assert_eq!(of(&[1, 2, 4]).contiguous(), 2);
        assert_eq!(of(&[1, 2, 3]).contiguous(), 3);
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let columns = |list: &[(&str, bool)]| -> Columns {
            list.iter().map(|(name, key)| ((*name).to_owned(), *key)).collect()
        };
        let all = columns(&[("id", true), ("k", false), ("c", false), ("pad", false)]);
        assert_eq!(unusable(Schema::Sbtest, true, true, "", &all), None);
        let why = |is_table, works, comment, columns: &Columns| {
            unusable(Schema::Sbtest, is_table, works, comment, columns).unwrap_or_default()
        };
        assert!(why(false, false, "VIEW", &all).contains("view"));
        assert!(why(true, false, "Incorrect file", &all).contains("Incorrect file"));
        let some = columns(&[("id", true), ("c", false)]);
        assert!(why(true, true, "", &some).contains("no column k, pad"));
        let keyless = columns(&[("id", false), ("k", true), ("c", false), ("pad", false)]);
        assert!(why(true, true, "", &keyless).contains("no index on id"));
    }
}
