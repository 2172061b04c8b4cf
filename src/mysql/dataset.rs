//! The tables of a database: which there are, which a run uses, and whether their rows are there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::control::{Asked, explain, one, optional, rows};
use super::errors::{Failure, Findings};
use super::session::{Session, quoted_text};
use crate::error::Result;
use crate::terms::finding;
use crate::workload::Schema;
use crate::workload::random::Stream;
use crate::workload::table::{self, Mark, State};

/// Everything named as the tables of a schema, such as `sbtestN`, in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Storage engine, row format, collation, options and indexes, as far as the server tells.
    pub format: String,
    pub charset: Option<String>,
    /// What `prepare` left in its COMMENT; None for a foreign table.
    pub mark: Option<Mark>,
    /// Size of data and indexes.
    pub bytes: u64,
    /// The schema's columns that it has, and whether an index begins with each.
    pub(crate) columns: BTreeMap<String, bool>,
}

const NOT_TRANSACTIONAL: [&str; 7] =
    ["aria", "archive", "blackhole", "csv", "memory", "mrg_myisam", "myisam"];

impl Table {
    /// Names its engine, if that cannot roll back.
    pub(crate) fn keeps_what_failed(&self) -> Option<&str> {
        let name = |engine: &&str| NOT_TRANSACTIONAL.contains(&&*engine.to_ascii_lowercase());
        self.engine.as_deref().filter(name)
    }

    /// Tells whether it is no view or sequence.
    pub fn is_table(&self) -> bool {
        matches!(self.kind.as_str(), "BASE TABLE" | "SYSTEM VERSIONED")
    }

    /// Tells whether an index begins with the column that `Schema::indexed` names.
    pub fn is_indexed(&self, schema: Schema) -> bool {
        schema.indexed().is_none_or(|column| self.columns.get(column) == Some(&true))
    }

    /// Tells why no workload can use it, if so.
    pub fn unusable(&self, schema: Schema) -> Option<String> {
        let needed = schema.columns().into_iter();
        let missing: Vec<&str> = needed.filter(|name| !self.columns.contains_key(*name)).collect();
        if !self.is_table() {
            Some("is no table but a view or the like".to_owned())
        } else if self.engine.is_none() {
            // The server's own words on what is wrong with it.
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
    /// Names a table in SQL, database included: the session may be in another one.
    pub(super) fn sql_name(&self, number: u32) -> String {
        format!("{}.{}", table::quoted(&self.database), table::quoted(&self.schema.name(number)))
    }

    pub(super) fn name(&self, number: u32) -> String {
        self.schema.name(number)
    }

    /// Finds the last table of `sbtest1..N` without a gap; 0 without `sbtest1`.
    pub fn contiguous(&self) -> u32 {
        self.tables.keys().zip(1..).take_while(|(number, expected)| **number == *expected).count()
            as u32
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dataset {
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
    pub data_bytes: u64,
    pub formats: Vec<String>,
}

/// Sums the size of some tables with their indexes, bytes, and names their formats, each once.
pub(crate) async fn facts(session: &mut Session, which: &str) -> Asked<(u64, Vec<String>)> {
    let described = described(session, which).await?;
    let tables = described.values().filter(|table| table.kind != "VIEW");
    let bytes = tables.clone().fold(0_u64, |sum, table| sum.saturating_add(table.bytes));
    let formats: BTreeSet<String> = tables.map(|table| table.format.clone()).collect();
    Ok((bytes, formats.into_iter().collect()))
}

/// Reads the rows of information_schema.TABLES; the columns are not known yet.
async fn described(session: &mut Session, which: &str) -> Asked<BTreeMap<String, Table>> {
    let mut indexes = indexes(session, which).await?;
    let sql = format!(
        "SELECT TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_COMMENT, DATA_LENGTH, INDEX_LENGTH, \
         ROW_FORMAT, TABLE_COLLATION, CREATE_OPTIONS \
         FROM information_schema.TABLES WHERE {which}"
    );
    let described = |[name, kind, engine, comment, data, index, more @ ..]: [Option<String>; 9]| {
        let name = name.unwrap_or_default();
        let text = engine.iter().chain(more.iter().flatten()).filter(|it| !it.is_empty());
        let text = text.map(String::as_str).collect::<Vec<_>>().join(" ");
        let indexes = indexes.remove(&name).unwrap_or_default();
        // A collation's name begins with that of its character set.
        let charset = more[1].as_ref().and_then(|collation| collation.split('_').next());
        // Null of a table that the server cannot open.
        let bytes = |text: Option<String>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
        let table = Table {
            kind: kind.unwrap_or_default(),
            engine,
            comment: comment.unwrap_or_default(),
            bytes: u64::saturating_add(bytes(data), bytes(index)),
            format: [vec![text], indexes].concat().join(", "),
            charset: charset.map(str::to_owned),
            ..Table::default()
        };
        (name, table)
    };
    Ok(rows(session, &sql).await?.into_iter().map(described).collect())
}

/// Describes the indexes of some tables without their names, which hold the table's number.
async fn indexes(session: &mut Session, which: &str) -> Asked<BTreeMap<String, Vec<String>>> {
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
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for ((table, _, kind), columns) in columns {
        tables.entry(table).or_default().push(format!("{kind} ({})", columns.join(", ")));
    }
    for indexes in tables.values_mut() {
        indexes.sort_unstable();
    }
    Ok(tables)
}

/// Lists the tables of a database; it need not exist.
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
    let (database_text, prefix) = (quoted_text(database), schema.prefix());
    let which = format!("TABLE_SCHEMA = {database_text} AND TABLE_NAME LIKE '{prefix}%'");
    let mut tables: BTreeMap<u32, Table> = BTreeMap::new();
    for (name, mut table) in described(session, &which).await? {
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
        // Made meanwhile, it is none of these.
        if let Some(table) = schema.number(&name).and_then(|number| tables.get_mut(&number)) {
            table.columns.insert(column.to_ascii_lowercase(), !key.is_empty());
        }
    }
    Ok(Discovered { database: database.to_owned(), schema, tables })
}

/// Names tables by their numbers: `sbtest1..sbtest4, sbtest7`; cut after a few ranges.
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
    let name = |(first, last): &(u32, u32)| match last - first {
        0 => format!("{prefix}{first}"),
        1 => format!("{prefix}{first}, {prefix}{last}"),
        _ => format!("{prefix}{first}..{prefix}{last}"),
    };
    let text = ranges.iter().take(SHOWN).map(name).collect::<Vec<_>>().join(", ");
    if ranges.len() > SHOWN { format!("{text} and others") } else { text }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    /// `--tables`; None for those that are there, 0 where no statement names one.
    pub tables: Option<u32>,
    pub rows: Option<u64>,
    pub seed: u64,
}

/// Settles which tables and ids a run uses; None if there is a problem that leaves them open.
///
/// A gap is refused, because it is unclear what is meant. Without `--rows` the tables must agree on the
/// rows: by the COMMENT for those that `prepare` made, by `MAX(id)` for foreign ones.
pub(super) async fn examine(
    session: &mut Session,
    found: &Discovered,
    wanted: &Wanted,
    findings: &mut Findings,
) -> Asked<Option<Dataset>> {
    if wanted.tables == Some(0) {
        return none_named(session, found, wanted).await.map(Some);
    }
    let Some(tables) = choose_tables(found, wanted, findings) else { return Ok(None) };
    let used: Vec<(u32, &Table)> =
        found.tables.range(1..=tables).map(|(number, table)| (*number, table)).collect();
    if !are_usable(found, &used, findings) {
        return Ok(None);
    }
    let mut held = Vec::with_capacity(used.len());
    for (number, table) in &used {
        let rows = rows_of(session, &found.sql_name(*number), table).await;
        let Some(rows) = read(rows, found, *number, findings)? else { return Ok(None) };
        held.push((*number, rows));
    }
    if !found.schema.filled() {
        return Ok(Some(dataset(found.schema, &used, 0, findings)));
    }
    let Some(rows) = choose_rows(found.schema, &held, wanted.rows, findings) else {
        return Ok(None);
    };
    let readable = probe_all(session, found, &used, rows, wanted.seed, findings).await?;
    Ok(readable.map(|()| dataset(found.schema, &used, rows, findings)))
}

fn read<T>(
    asked: Asked<T>,
    found: &Discovered,
    number: u32,
    findings: &mut Findings,
) -> Asked<Option<T>> {
    let what = format!("{} cannot be read", found.name(number));
    findings.asked(asked, &what, |code| read_hint(code, &found.database))
}

/// Settles for a workload that names none of these tables: those that it names are of this database,
/// for all that is known.
async fn none_named(session: &mut Session, found: &Discovered, wanted: &Wanted) -> Asked<Dataset> {
    let which = format!("TABLE_SCHEMA = {}", quoted_text(&found.database));
    let (data_bytes, formats) = facts(session, &which).await?;
    let rows = wanted.rows.unwrap_or(0);
    Ok(Dataset { rows, data_bytes, formats, ..Dataset::default() })
}

fn choose_tables(found: &Discovered, wanted: &Wanted, findings: &mut Findings) -> Option<u32> {
    let there = found.contiguous();
    let last = found.tables.keys().next_back().copied().unwrap_or(0);
    let database = &found.database;
    let prepare = |tables: u32| {
        let schema = match found.schema {
            Schema::Sbtest => String::new(),
            schema => format!(" --schema {schema}"),
        };
        let rows = wanted.rows.map_or("N".to_owned(), |rows| rows.to_string());
        let rows = if found.schema.filled() { format!(" --rows {rows}") } else { String::new() };
        format!("`loadgen prepare{schema} --tables {tables}{rows}` creates what is missing")
    };
    let missing =
        |to: u32| names(found.schema, (1..=to).filter(|number| !found.tables.contains_key(number)));
    match wanted.tables {
        Some(tables) if found.tables.range(1..=tables).count() as u32 == tables => Some(tables),
        Some(tables) => {
            let missing = missing(tables);
            let message = format!("--tables {tables}, but `{database}` lacks {missing}");
            findings.refuse(message, prepare(tables))
        }
        None if last == 0 => {
            let message = format!("there is no table {} in `{database}`", found.name(1));
            findings.refuse(message, prepare(1))
        }
        None if there < last => {
            let hint = match there {
                0 => prepare(last),
                _ => format!("--tables {there} uses those before the gap; {}", prepare(last)),
            };
            let (missing, last) = (missing(last), found.name(last));
            findings
                .refuse(format!("`{database}` has tables up to {last}, but lacks {missing}"), hint)
        }
        None => Some(there),
    }
}

fn are_usable(found: &Discovered, used: &[(u32, &Table)], findings: &mut Findings) -> bool {
    let mut usable = true;
    for (number, table) in used {
        if let Some(why) = table.unusable(found.schema) {
            usable = false;
            let hint = match number {
                1 => format!(
                    "loadgen uses {}, {} …: drop or rename it, or take another database with \
                     --database",
                    found.name(1),
                    found.name(2)
                ),
                _ => format!("--tables {} uses those before it", number - 1),
            };
            findings.problem(format!("{} {why}", found.name(*number)), hint);
        }
    }
    let filling = used
        .iter()
        .filter(|(_, table)| table.mark.is_some_and(|mark| mark.state == State::Filling));
    let filling = names(found.schema, filling.map(|(number, _)| *number));
    if !filling.is_empty() {
        usable = false;
        findings.problem(
            format!("the fill of {filling} was not finished"),
            "run the same `loadgen prepare` again: it completes or redoes the fill",
        );
    }
    usable
}

async fn rows_of(session: &mut Session, name: &str, table: &Table) -> Asked<u64> {
    if let Some(mark) = table.mark {
        return Ok(mark.rows);
    }
    let Some(max) = one(session, &format!("SELECT MAX(id) FROM {name}")).await? else {
        return Ok(0);
    };
    // Below 1 there are none that a workload could ask for.
    let ids = max.parse::<i128>().map(|id| u64::try_from(id).unwrap_or(0));
    ids.map_err(|_| Failure::Lost("MAX(id) that is no number".to_owned()))
}

fn choose_rows(
    schema: Schema,
    held: &[(u32, u64)],
    wanted: Option<u64>,
    findings: &mut Findings,
) -> Option<u64> {
    let (least_in, least) = held.iter().copied().min_by_key(|(_, rows)| *rows)?;
    let (most_in, most) = held.iter().copied().min_by_key(|(_, rows)| Reverse(*rows))?;
    if least == 0 {
        let empty = names(schema, held.iter().filter(|(_, rows)| *rows == 0).map(|(n, _)| *n));
        return findings.refuse(
            format!("{empty}: no rows"),
            "drop it, then `loadgen prepare` makes and fills it; or fill it as it was made",
        );
    }
    let (least_in, most_in) = (schema.name(least_in), schema.name(most_in));
    let hint = format!("--rows {least} uses what every table has");
    match wanted {
        Some(rows) if rows <= least => Some(rows),
        Some(rows) => findings.refuse(
            format!("--rows {rows}, but {least_in} has {least}"),
            format!("{hint}; prepare makes larger tables"),
        ),
        None if least == most => Some(least),
        None => findings.refuse(
            format!(
                "the tables differ in their rows: {least_in} has {least}, {most_in} has {most}"
            ),
            hint,
        ),
    }
}

fn dataset(schema: Schema, used: &[(u32, &Table)], rows: u64, findings: &mut Findings) -> Dataset {
    let marks: Vec<_> = used.iter().map(|(_, table)| table.mark).collect();
    let own = marks.iter().all(Option::is_some);
    let seed = marks.first().copied().flatten().map(|mark| mark.seed);
    let one_seed = own && marks.iter().flatten().all(|mark| Some(mark.seed) == seed);
    if own && !one_seed {
        findings.warn(finding!(MixedDataSeeds));
    }
    let engine = |table: &Table| table.engine.clone().unwrap_or_default().to_ascii_lowercase();
    let engines: BTreeSet<String> = used.iter().map(|(_, table)| engine(table)).collect();
    if engines.len() > 1 {
        let engines: Vec<String> = engines.into_iter().collect();
        findings.warn(finding!(MixedEngines, engines.join(", ")));
    }
    let plain =
        names(schema, used.iter().filter(|(_, table)| !table.is_indexed(schema)).map(|(n, _)| *n));
    if !plain.is_empty() {
        findings.warn(match schema {
            Schema::Sbtest => finding!(KNotIndexed, plain),
            _ => finding!(CountryNotIndexed, plain),
        });
    }
    let format = |table: &Table| match schema.indexed().filter(|_| !table.is_indexed(schema)) {
        Some(column) => format!("{} without an index on {column}", table.format),
        None => table.format.clone(),
    };
    let formats: BTreeSet<String> = used.iter().map(|(_, table)| format(table)).collect();
    let first = marks.first().copied().flatten().map(|mark| mark.rows);
    let alike = own && marks.iter().flatten().all(|mark| Some(mark.rows) == first);
    Dataset {
        tables: used.len() as u32,
        rows,
        held: if alike { first } else { None },
        data_seed: if one_seed { seed } else { None },
        own,
        ids: marks.iter().map(|mark| mark.as_ref().and_then(|mark| mark.id)).collect(),
        data_bytes: used.iter().fold(0, |sum, (_, table)| sum.saturating_add(table.bytes)),
        formats: formats.into_iter().collect(),
    }
}

const PROBES: u64 = 1000;
/// Ids looked up in all tables together, at least ten a table.
const PROBES_TOTAL: u64 = 1_000_000;
/// Ids in one statement: MariaDB turns a list of a thousand into a join.
const PROBES_A_STATEMENT: usize = 250;

/// Looks up random ids of each table: a hole would make an operation cheaper than it is. None
/// if a table cannot be read; the others are not tried then, each might wait for a lock.
async fn probe_all(
    session: &mut Session,
    found: &Discovered,
    used: &[(u32, &Table)],
    rows: u64,
    seed: u64,
    findings: &mut Findings,
) -> Asked<Option<()>> {
    let mut stream = Stream::new(seed);
    let probes = (PROBES_TOTAL / used.len().max(1) as u64).clamp(10, PROBES);
    for (number, table) in used {
        let ids = sample(&mut stream, rows, probes);
        let counted = count(session, &found.sql_name(*number), &ids).await;
        let Some(counted) = read(counted, found, *number, findings)? else { return Ok(None) };
        let (asked, name) = (ids.len() as u64, found.name(*number));
        if counted < asked {
            let (missing, what) = (asked - counted, if asked == rows { "" } else { " random" });
            findings.problem(
                format!(
                    "{name} has holes: {missing} of {asked}{what} ids from 1 to {rows} are not there"
                ),
                match table.mark {
                    Some(_) => "rows were deleted since: `loadgen prepare --force` makes it anew",
                    None => {
                        "an operation on an id that is not there measures something else: make \
                         the tables anew, ids from 1 without gaps"
                    }
                },
            );
        }
    }
    Ok(Some(()))
}

/// Draws distinct ids of `1..=rows` in order: all, or the first, the last and random ones.
fn sample(stream: &mut Stream, rows: u64, probes: u64) -> Vec<u64> {
    if rows <= probes {
        return (1..=rows).collect();
    }
    let mut ids = vec![1, rows];
    ids.extend((2..probes).map(|_| 1 + stream.below(rows)));
    ids.sort_unstable();
    ids.dedup();
    ids
}

async fn count(session: &mut Session, table: &str, ids: &[u64]) -> Asked<u64> {
    let mut counted: u64 = 0;
    for chunk in ids.chunks(PROBES_A_STATEMENT) {
        let list = chunk.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let sql = format!("SELECT COUNT(*) FROM {table} WHERE id IN ({list})");
        let answer = one(session, &sql).await?.and_then(|text| text.parse().ok());
        let odd = || Failure::Lost("COUNT(*) that is no number".to_owned());
        counted = counted.saturating_add(answer.ok_or_else(odd)?);
    }
    Ok(counted)
}

pub(super) fn read_hint(code: u16, database: &str) -> String {
    match code {
        1044 | 1142 | 1143 | 1227 => {
            format!("GRANT SELECT, UPDATE ON {}.* TO the account", table::quoted(database))
        }
        1205 => "another session holds a lock on it: SHOW PROCESSLIST says which".to_owned(),
        _ => "CHECK TABLE says whether it is damaged".to_owned(),
    }
}

#[cfg(test)]
mod dataset_tests {
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
        assert!(why(base, innodb, "", &some).contains("no column k, pad"));
        let keyless = [("id", false), ("k", true), ("c", false), ("pad", false)];
        assert!(why(base, innodb, "", &keyless).contains("no index on id"));
    }
}

#[cfg(test)]
mod settle_tests {
    use super::*;
    use crate::error::Error;

    fn table(mark: Option<(u32, u64)>) -> Table {
        Table {
            kind: "BASE TABLE".to_owned(),
            engine: Some("InnoDB".to_owned()),
            format: "InnoDB Dynamic".to_owned(),
            mark: mark.map(|(seed, rows)| Mark::ready(seed, rows, None)),
            bytes: 1000,
            columns: [("k".to_owned(), true)].into(),
            ..Table::default()
        }
    }

    fn found(numbers: &[u32]) -> Discovered {
        Discovered {
            database: "sbtest".to_owned(),
            schema: Schema::Sbtest,
            tables: numbers.iter().map(|n| (*n, table(Some((1, 100))))).collect(),
        }
    }

    fn chosen(numbers: &[u32], tables: Option<u32>) -> std::result::Result<u32, Error> {
        let mut findings = Findings::default();
        let wanted = Wanted { tables, rows: Some(100), seed: 1 };
        let chosen = choose_tables(&found(numbers), &wanted, &mut findings);
        findings.conclude()?;
        Ok(chosen.expect("a choice without a problem"))
    }

    #[test]
    fn tables_are_those_that_are_there() {
        assert_eq!(chosen(&[1, 2, 3], None).expect("all"), 3);
        assert_eq!(chosen(&[1, 2, 3], Some(2)).expect("a part"), 2);
        assert_eq!(chosen(&[1, 2, 5], Some(2)).expect("the gap is not used"), 2);
    }

    #[test]
    fn missing_tables_and_gaps_are_named() {
        let error = |numbers, tables| chosen(numbers, tables).expect_err("refused");
        let missing = error(&[1, 4], Some(6));
        assert_eq!(
            missing.to_string(),
            "--tables 6, but `sbtest` lacks sbtest2, sbtest3, sbtest5, sbtest6"
        );
        assert!(missing.hints()[0].contains("prepare --tables 6 --rows 100"));
        let gap = error(&[1, 2, 5], None);
        assert!(gap.to_string().contains("up to sbtest5, but lacks sbtest3, sbtest4"), "{gap}");
        assert!(gap.hints()[0].starts_with("--tables 2 "), "{:?}", gap.hints());
        assert!(error(&[3], None).hints()[0].contains("prepare --tables 3"));
        assert!(error(&[], None).to_string().contains("no table sbtest1"));
    }

    #[test]
    fn rows_must_agree_or_be_chosen() {
        let choose = |held: &[(u32, u64)], wanted| {
            let mut findings = Findings::default();
            let rows = choose_rows(Schema::Sbtest, held, wanted, &mut findings);
            findings.conclude().map(|_| rows).map_err(|e| e.render())
        };
        let even = [(1, 100), (2, 100)];
        let uneven = [(1, 100), (2, 90), (3, 110)];
        assert_eq!(choose(&even, None), Ok(Some(100)));
        assert_eq!(choose(&uneven, Some(90)), Ok(Some(90)));
        let differ = choose(&uneven, None).expect_err("refused");
        assert!(differ.contains("sbtest2 has 90, sbtest3 has 110"), "{differ}");
        assert!(differ.contains("hint: --rows 90 "), "{differ}");
        assert!(choose(&even, Some(101)).is_err_and(|e| e.contains("sbtest1 has 100")));
        assert!(choose(&[(1, 5), (2, 0)], Some(5)).is_err_and(|e| e.contains("sbtest2: no rows")));
    }

    #[test]
    fn one_seed_for_all_or_none() {
        let of = |tables: &[Table]| {
            let used: Vec<_> = (1..).zip(tables).collect();
            let mut findings = Findings::default();
            let dataset = dataset(Schema::Sbtest, &used, 100, &mut findings);
            let codes = findings.conclude().expect("no problem").into_iter().map(|w| w.code.name());
            (dataset, codes.collect::<Vec<_>>())
        };
        let (ours, warnings) = of(&[table(Some((7, 100))), table(Some((7, 100)))]);
        assert_eq!((ours.own, ours.data_seed, ours.data_bytes), (true, Some(7), 2000));
        assert_eq!(warnings, [""; 0]);
        let (mixed, warnings) = of(&[table(Some((7, 100))), table(Some((8, 100)))]);
        assert_eq!((mixed.own, mixed.data_seed), (true, None));
        assert_eq!(warnings, ["mixed_data_seeds"]);
        let engine = Some("MyISAM".to_owned());
        let myisam = Table { engine, columns: BTreeMap::new(), ..table(None) };
        let (foreign, warnings) = of(&[table(Some((7, 100))), myisam]);
        assert_eq!((foreign.own, foreign.data_seed), (false, None));
        assert_eq!(warnings, ["mixed_engines", "k_not_indexed"]);
    }
}

#[cfg(test)]
mod probe_tests {
    use super::*;

    #[test]
    fn samples_hold_both_ends_and_no_id_twice() {
        let mut stream = Stream::new(7);
        assert_eq!(sample(&mut stream, 3, 1000), [1, 2, 3]);
        for rows in [1001, 1500, 16_000_000, table::ROWS_MAX] {
            let ids = sample(&mut stream, rows, 1000);
            assert_eq!((ids[0], ids[ids.len() - 1]), (1, rows));
            assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(ids.len() > 600 && ids.len() <= 1000, "{}", ids.len());
        }
    }
}
