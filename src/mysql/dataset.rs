//! The tables of a database and their properties.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::control::{Asked, explain, optional, rows};
use super::session::Session;
use super::target::quoted_text;
use crate::error::Result;
use crate::terms;
use crate::workload::{Mark, Schema, Stream, table};

pub struct Discovered {
    pub database: String,
    pub schema: Schema,
    pub tables: BTreeMap<u32, Table>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// `BASE TABLE`, `VIEW` …
    pub(crate) kind: String,
    pub engine: Option<String>,
    pub(crate) comment: String,
    /// Storage engine, row format, collation, options and indexes, as far as the server reports them.
    pub format: String,
    pub charset: Option<String>,
    /// The mark of `prepare` in its COMMENT; None for a foreign table.
    pub mark: Option<Mark>,
    pub bytes: u64,
    /// The schema's columns in the table, and whether an index begins with each.
    pub(crate) columns: BTreeMap<String, bool>,
    /// The first columns of its indexes, in lower case.
    pub(crate) leading: BTreeSet<String>,
}

/// The indexes of a table without their names, which hold its number.
#[derive(Default)]
struct TableIndexes {
    texts: Vec<String>,
    leading: BTreeSet<String>,
}

const NOT_TRANSACTIONAL: [&str; 7] =
    ["aria", "archive", "blackhole", "csv", "memory", "mrg_myisam", "myisam"];

impl Table {
    pub(crate) fn engine_without_rollback(&self) -> Option<&str> {
        let name = |engine: &&str| NOT_TRANSACTIONAL.contains(&&*engine.to_ascii_lowercase());
        self.engine.as_deref().filter(name)
    }

    pub fn is_table(&self) -> bool {
        matches!(self.kind.as_str(), "BASE TABLE" | "SYSTEM VERSIONED")
    }

    pub fn is_indexed(&self, schema: Schema) -> bool {
        schema.facts().indexed.is_none_or(|column| self.columns.get(column) == Some(&true))
    }

    pub fn unusable(&self, schema: Schema) -> Option<String> {
        let needed = schema.columns().into_iter();
        let missing: Vec<&str> = needed.filter(|name| !self.columns.contains_key(*name)).collect();
        if !self.is_table() {
            Some("is no table but a view or the like".to_owned())
        } else if self.engine.is_none() {
            // The comment then holds the server's error.
            Some(format!("cannot be opened: {}", self.comment))
        } else if !missing.is_empty() {
            Some(format!("has no column {}", missing.join(", ")))
        } else {
            // Each operation would scan the whole table.
            (self.columns.get("id") != Some(&true)).then(|| "has no index on id".to_owned())
        }
    }
}

impl Discovered {
    /// Quotes the table's name with its database: the session may be in another one.
    pub(super) fn sql_name(&self, number: u32) -> String {
        format!("{}.{}", table::quoted(&self.database), table::quoted(&self.schema.name(number)))
    }

    pub(super) fn name(&self, number: u32) -> String {
        self.schema.name(number)
    }

    /// Collects the ids of the contents that `prepare` made, by the number of the table.
    pub(crate) fn ids(&self) -> BTreeMap<u32, u32> {
        let id = |(number, table): (&u32, &Table)| Some((*number, table.mark?.id?));
        self.tables.iter().filter_map(id).collect()
    }

    /// Finds the last table of `sbtest1..N` without a gap; 0 without `sbtest1`.
    pub fn contiguous(&self) -> u32 {
        self.tables.keys().zip(1..).take_while(|(number, expected)| **number == *expected).count()
            as u32
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tables {
    pub schema: Schema,
    /// Tables from `sbtest1` on; 0 where no statement names one.
    pub count: u32,
    /// Ids are drawn from 1 to this; each table has them all, as far as a sample shows.
    pub rows: u64,
    /// Rows that `prepare` put into each table, if all have the same.
    pub held: Option<u64>,
    /// True if `prepare` made all tables: then every `c` can be checked.
    pub own: bool,
    /// True if others see all changes of a transaction or none.
    pub atomic: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dataset {
    pub tables: Tables,
    /// The seed of the rows, if `prepare` used one for all tables.
    pub data_seed: Option<u32>,
    /// The ids of contents by the number of the table, also of tables that the run does not use.
    pub ids: BTreeMap<u32, u32>,
    pub data_bytes: u64,
    pub formats: Vec<String>,
}

pub(crate) async fn size_and_formats(
    session: &mut Session,
    which: &str,
) -> Asked<(u64, Vec<String>)> {
    let tables = describe_tables(session, which).await?.into_values();
    Ok(totals(tables.filter(|table| table.kind != "VIEW").map(|it| (it.bytes, it.format))))
}

pub(super) fn totals(tables: impl Iterator<Item = (u64, String)>) -> (u64, Vec<String>) {
    let (bytes, formats): (Vec<u64>, BTreeSet<String>) = tables.unzip();
    (bytes.into_iter().fold(0, u64::saturating_add), formats.into_iter().collect())
}

/// Reads the rows of information_schema.TABLES; `columns` stays empty.
async fn describe_tables(session: &mut Session, which: &str) -> Asked<BTreeMap<String, Table>> {
    let mut indexes = describe_indexes(session, which).await?;
    let sql = format!(
        "SELECT TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_COMMENT, DATA_LENGTH, INDEX_LENGTH, \
         ROW_FORMAT, TABLE_COLLATION, CREATE_OPTIONS \
         FROM information_schema.TABLES WHERE {which}"
    );
    let table = |[name, row @ ..]: [Option<String>; 9]| {
        let name = name.unwrap_or_default();
        let indexes = indexes.remove(&name).unwrap_or_default();
        (name, read_table(row, indexes))
    };
    Ok(rows(session, &sql).await?.into_iter().map(table).collect())
}

fn read_table(row: [Option<String>; 8], indexes: TableIndexes) -> Table {
    let [kind, engine, comment, data, index, more @ ..] = row;
    let text = engine.iter().chain(more.iter().flatten()).filter(|it| !it.is_empty());
    let text = text.map(String::as_str).collect::<Vec<_>>().join(" ");
    // A collation's name begins with that of its character set.
    let charset = more[1].as_ref().and_then(|collation| collation.split('_').next());
    // NULL for a table that the server cannot open.
    let bytes = |text: Option<String>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
    Table {
        kind: kind.unwrap_or_default(),
        engine,
        comment: comment.unwrap_or_default(),
        bytes: u64::saturating_add(bytes(data), bytes(index)),
        format: [vec![text], indexes.texts].concat().join(", "),
        charset: charset.map(str::to_owned),
        leading: indexes.leading,
        ..Table::default()
    }
}

async fn describe_indexes(
    session: &mut Session,
    which: &str,
) -> Asked<BTreeMap<String, TableIndexes>> {
    let sql = format!(
        "SELECT TABLE_NAME, INDEX_NAME, NON_UNIQUE, INDEX_TYPE, COLUMN_NAME, SUB_PART \
         FROM information_schema.STATISTICS WHERE {which} \
         ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
    );
    let mut columns: BTreeMap<(String, String, String), Vec<String>> = BTreeMap::new();
    for row in rows::<6>(session, &sql).await? {
        let [table, name, non_unique, kind, column, part] = row.map(Option::unwrap_or_default);
        let unique = match name.as_str() {
            "PRIMARY" => "PRIMARY ",
            _ if non_unique == "0" => "UNIQUE ",
            _ => "",
        };
        let column = if part.is_empty() { column } else { format!("{column}({part})") };
        columns.entry((table, name, format!("{unique}{kind}"))).or_default().push(column);
    }
    let mut tables: BTreeMap<String, TableIndexes> = BTreeMap::new();
    for ((table, _, kind), columns) in columns {
        let indexes = tables.entry(table).or_default();
        indexes.texts.push(format!("{kind} ({})", columns.join(", ")));
        indexes.leading.extend(columns.first().map(|column| column.to_ascii_lowercase()));
    }
    for indexes in tables.values_mut() {
        indexes.texts.sort_unstable();
    }
    Ok(tables)
}

/// Lists the tables of a database, which need not exist.
pub async fn discover(session: &mut Session, database: &str, schema: Schema) -> Result<Discovered> {
    list_tables(session, database, schema)
        .await
        .map_err(|failure| explain(&failure, &format!("list the tables of `{database}`")))
}

pub(super) async fn list_tables(
    session: &mut Session,
    database: &str,
    schema: Schema,
) -> Asked<Discovered> {
    // MySQL 8 otherwise caches sizes for a day.
    optional(session.execute("SET SESSION information_schema_stats_expiry = 0").await)?;
    let (database_text, prefix) = (quoted_text(database), schema.prefix());
    let which = format!("TABLE_SCHEMA = {database_text} AND TABLE_NAME LIKE '{prefix}%'");
    let mut tables: BTreeMap<u32, Table> = BTreeMap::new();
    for (name, mut table) in describe_tables(session, &which).await? {
        table.mark = table.is_table().then(|| Mark::parse(&table.comment)).flatten();
        tables.extend(schema.number(&name).map(|number| (number, table)));
    }
    let sql = format!(
        "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_KEY FROM information_schema.COLUMNS \
         WHERE {which} AND COLUMN_NAME IN ('{}')",
        schema.columns().join("', '")
    );
    for row in rows::<3>(session, &sql).await? {
        let [name, column, key] = row.map(Option::unwrap_or_default);
        // A table made meanwhile is not in the list.
        if let Some(table) = schema.number(&name).and_then(|number| tables.get_mut(&number)) {
            let column = column.to_ascii_lowercase();
            // Each column of a composite primary key is PRI.
            let is_leading = match key.as_str() {
                "PRI" if !table.leading.is_empty() => table.leading.contains(&column),
                key => !key.is_empty(),
            };
            table.columns.insert(column, is_leading);
        }
    }
    Ok(Discovered { database: database.to_owned(), schema, tables })
}

/// Names tables by their numbers: `sbtest1..sbtest4, sbtest7`; cut after a few ranges.
pub(crate) fn names(schema: Schema, numbers: impl IntoIterator<Item = u32>) -> String {
    const SHOWN: usize = 5;
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let name = |(first, last)| match last - first {
        0 => schema.name(first),
        1 => format!("{}, {}", schema.name(first), schema.name(last)),
        _ => format!("{}..{}", schema.name(first), schema.name(last)),
    };
    terms::named(ranges.into_iter().map(name).collect(), SHOWN, ", ")
}

/// Draws distinct ids of `1..=rows` in order: all, or the first, the last and random ones.
pub(crate) fn sample(stream: &mut Stream, rows: u64, probes: u64) -> Vec<u64> {
    if rows <= probes {
        return (1..=rows).collect();
    }
    let mut ids = vec![1, rows];
    ids.extend((2..probes).map(|_| 1 + stream.below(rows)));
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canned::{Answer, Canned, Listen, Script};
    use crate::mysql::{ConnectOptions, ServerLink};
    use crate::stop::Stop;

    #[test]
    fn names_of_many_tables_stay_short() {
        let names = |numbers: &[u32]| names(Schema::Sbtest, numbers.iter().copied());
        assert_eq!(names(&[1]), "sbtest1");
        assert_eq!(names(&[1, 2, 4, 5, 6]), "sbtest1, sbtest2, sbtest4..sbtest6");
        assert_eq!(
            names(&[1, 3, 5, 7, 9, 11, 13]),
            "sbtest1, sbtest3, sbtest5, sbtest7, sbtest9, 2 more"
        );
        assert_eq!(names(&[u32::MAX]), "sbtest4294967295");
    }

    #[test]
    fn a_gap_ends_the_contiguous_tables() {
        let of = |numbers: &[u32]| Discovered {
            database: "x".to_owned(),
            schema: Schema::Sbtest,
            tables: numbers.iter().map(|n| (*n, Table::default())).collect(),
        };
        assert_eq!(of(&[]).contiguous(), 0);
        assert_eq!(of(&[2, 3]).contiguous(), 0);
        assert_eq!(of(&[1, 2, 4]).contiguous(), 2);
        assert_eq!(of(&[1, 2, 3]).contiguous(), 3);
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let why = |kind: &str, engine: Option<&str>, comment: &str, columns: &[(&str, bool)]| {
            let table = Table {
                kind: kind.to_owned(),
                engine: engine.map(str::to_owned),
                comment: comment.to_owned(),
                columns: columns.iter().map(|(name, key)| ((*name).to_owned(), *key)).collect(),
                ..Table::default()
            };
            table.unusable(Schema::Sbtest).unwrap_or_default()
        };
        let (base, innodb) = ("BASE TABLE", Some("InnoDB"));
        let all = [("id", true), ("k", false), ("c", false), ("pad", false)];
        assert_eq!(why(base, innodb, "", &all), "");
        assert!(why("VIEW", None, "VIEW", &all).contains("view"));
        assert!(why(base, None, "Incorrect file", &all).contains("Incorrect file"));
        let some = [("id", true), ("c", false)];
        assert_eq!(why(base, innodb, "", &some), "has no column k, pad");
        let keyless = [("id", false), ("k", true), ("c", false), ("pad", false)];
        assert_eq!(why(base, innodb, "", &keyless), "has no index on id");
    }

    /// Returns whether `id` and `k` are indexed, by the columns of these indexes.
    fn indexed(indexes: &[(&str, &str)]) -> [bool; 2] {
        let row = |&(name, column)| ["sbtest1", name, "0", "BTREE", column, ""].map(Some);
        let listed: Vec<[Option<&str>; 6]> = indexes.iter().map(row).collect();
        let listed: Vec<&[Option<&str>]> = listed.iter().map(|row| &row[..]).collect();
        let columns = [["sbtest1", "id", "PRI"].map(Some), ["sbtest1", "k", "PRI"].map(Some)];
        let table = ["sbtest1", "BASE TABLE", "InnoDB", "", "0", "0", "", "", ""].map(Some);
        let answers = vec![
            Answer::rows("information_schema.STATISTICS", &["x"; 6], &listed),
            Answer::rows("information_schema.COLUMNS", &["x"; 3], &[&columns[0], &columns[1]]),
            Answer::rows("information_schema.TABLES", &["x"; 9], &[&table]),
        ];
        let server = Canned::start(Script { answers, ..Script::default() }, Listen::Port(0));
        let server = server.expect("a free port");
        let target = ConnectOptions::canned(server.port());
        let link = ServerLink::to(target, &Stop::default()).expect("options");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let found = runtime.expect("a runtime").block_on(async {
            let mut session = Session::open(&link, None).await.expect("a session");
            list_tables(&mut session, "sbtest", Schema::Sbtest).await.expect("the tables")
        });
        ["id", "k"].map(|column| found.tables[&1].columns[column])
    }

    #[test]
    fn column_of_a_composite_primary_key_is_indexed_when_an_index_begins_with_it() {
        assert_eq!(indexed(&[("PRIMARY", "id"), ("PRIMARY", "k")]), [true, false]);
        assert_eq!(indexed(&[("PRIMARY", "k"), ("PRIMARY", "id")]), [false, true]);
        let beside = [("PRIMARY", "k"), ("PRIMARY", "id"), ("by_id", "id")];
        assert_eq!(indexed(&beside), [true, true]);
        assert_eq!(indexed(&[]), [true, true], "the server lists no indexes");
    }
}
