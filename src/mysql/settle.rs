//! Which tables and ids a run uses, and whether they are really there.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::ask::{Asked, explain, one};
use super::dataset::{Dataset, Discovered, Table, facts, names};
use super::findings::Findings;
use super::probe::{probe_all, read_hint};
use super::session::{Session, quoted_text};
use crate::error::Result;
use crate::summary::Warning;
use crate::workload::Schema;
use crate::workload::table::State;

/// What the command line asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// `--tables`; None for those that are there, 0 where no statement names one.
    pub tables: Option<u32>,
    /// `--rows`; None for as many as there are.
    pub rows: Option<u64>,
    /// Decides which ids are probed.
    pub seed: u64,
}

/// Settles which tables and ids a run uses.
///
/// Without `--tables` these are `sbtest1..N`; a gap is refused, because it is unclear what is
/// meant. Without `--rows` the tables must agree on the rows: by the COMMENT for those that
/// `prepare` made, by `MAX(id)` for foreign ones. A thousand random ids of each table must
/// exist (every one of a table with fewer), the first and the last among them.
///
/// # Errors
/// Server, with all that is wrong and a hint for each.
pub async fn settle(
    session: &mut Session,
    found: &Discovered,
    wanted: &Wanted,
) -> Result<(Dataset, Vec<Warning>)> {
    let mut findings = Findings::default();
    let dataset = examine(session, found, wanted, &mut findings)
        .await
        .map_err(|failure| explain(&failure, "look into the tables"))?;
    let warnings = findings.conclude()?;
    // Without a dataset there was a problem.
    dataset.map(|dataset| (dataset, warnings)).ok_or_else(|| {
        crate::error::Error::server(format!("no usable table in `{}`", found.database))
    })
}

/// None if there is a problem that leaves the tables or their rows open.
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
        match rows_of(session, &found.sql_name(*number), table).await {
            Ok(rows) => held.push((*number, rows)),
            Err(failure) => {
                let what = format!("{} cannot be read", found.name(*number));
                findings.refused(failure, &what, |code| read_hint(code, &found.database))?;
                return Ok(None);
            }
        }
    }
    if !found.schema.filled() {
        return Ok(Some(dataset(found.schema, &used, 0, findings)));
    }
    let Some(rows) = choose_rows(found.schema, &held, wanted.rows, findings) else {
        return Ok(None);
    };
    let readable = probe_all(session, found, &used, rows, wanted.seed, findings).await?;
    Ok(readable.then(|| dataset(found.schema, &used, rows, findings)))
}

/// Of a workload that names none of these tables: those that it names are of the same database, for
/// all that is known.
async fn none_named(session: &mut Session, found: &Discovered, wanted: &Wanted) -> Asked<Dataset> {
    let which = format!("TABLE_SCHEMA = {}", quoted_text(&found.database));
    let (data_bytes, formats) = facts(session, &which).await?;
    Ok(Dataset {
        tables: 0,
        rows: wanted.rows.unwrap_or(0),
        held: None,
        data_seed: None,
        own: false,
        ids: Vec::new(),
        data_bytes,
        formats,
    })
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
        let rows = match wanted.rows {
            _ if !found.schema.filled() => String::new(),
            None => " --rows N".to_owned(),
            Some(rows) => format!(" --rows {rows}"),
        };
        format!("`loadgen prepare{schema} --tables {tables}{rows}` creates what is missing")
    };
    let missing =
        |to: u32| names(found.schema, (1..=to).filter(|number| !found.tables.contains_key(number)));
    match wanted.tables {
        Some(tables) if found.tables.range(1..=tables).count() as u32 == tables => Some(tables),
        Some(tables) => {
            let missing = missing(tables);
            findings.problem(
                format!("--tables {tables}, but `{database}` lacks {missing}"),
                prepare(tables),
            );
            None
        }
        None if there == 0 && last == 0 => {
            findings.problem(
                format!("there is no table {} in `{database}`", found.name(1)),
                prepare(1),
            );
            None
        }
        None if there < last => {
            let hint = match there {
                0 => prepare(last),
                _ => format!("--tables {there} uses those before the gap; {}", prepare(last)),
            };
            let missing = missing(last);
            findings.problem(
                format!("`{database}` has tables up to {}, but lacks {missing}", found.name(last)),
                hint,
            );
            None
        }
        None => Some(there),
    }
}

fn are_usable(found: &Discovered, used: &[(u32, &Table)], findings: &mut Findings) -> bool {
    let mut usable = true;
    for (number, table) in used {
        if let Some(why) = &table.unusable {
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
    let max = one(session, &format!("SELECT MAX(id) FROM {name}")).await?;
    Ok(max.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// `held` is the rows of each table; never empty.
fn choose_rows(
    schema: Schema,
    held: &[(u32, u64)],
    wanted: Option<u64>,
    findings: &mut Findings,
) -> Option<u64> {
    let (least_in, least) = held.iter().copied().min_by_key(|(_, rows)| *rows)?;
    let (most_in, most) = held.iter().copied().min_by_key(|(_, rows)| Reverse(*rows))?;
    if least == 0 {
        let numbers = held.iter().filter(|(_, rows)| *rows == 0).map(|(number, _)| *number);
        let empty = names(schema, numbers);
        findings.problem(
            format!("{empty}: no rows"),
            "drop it, then `loadgen prepare` makes and fills it; or fill it as it was made",
        );
        return None;
    }
    match wanted {
        Some(rows) if rows <= least => Some(rows),
        Some(rows) => {
            findings.problem(
                format!("--rows {rows}, but {} has {least}", schema.name(least_in)),
                format!("--rows {least} uses what every table has; prepare makes larger tables"),
            );
            None
        }
        None if least == most => Some(least),
        None => {
            findings.problem(
                format!(
                    "the tables differ in their rows: {} has {least}, {} has {most}",
                    schema.name(least_in),
                    schema.name(most_in)
                ),
                format!("--rows {least} uses what every table has"),
            );
            None
        }
    }
}

fn dataset(schema: Schema, used: &[(u32, &Table)], rows: u64, findings: &mut Findings) -> Dataset {
    let marks: Vec<_> = used.iter().map(|(_, table)| table.mark).collect();
    let own = marks.iter().all(Option::is_some);
    let seed = marks.first().copied().flatten().map(|mark| mark.seed);
    let one_seed = own && marks.iter().flatten().all(|mark| Some(mark.seed) == seed);
    if own && !one_seed {
        findings.warn(
            "mixed_data_seeds",
            "the tables were prepared with different --data-seed values: none is recorded",
        );
    }
    let engine = |table: &Table| table.engine.clone().unwrap_or_default().to_ascii_lowercase();
    let mut engines: Vec<String> = used.iter().map(|(_, table)| engine(table)).collect();
    engines.sort_unstable();
    engines.dedup();
    if engines.len() > 1 {
        findings.warn("mixed_engines", format!("storage engines differ: {}", engines.join(", ")));
    }
    let plain = names(schema, used.iter().filter(|(_, table)| !table.indexed).map(|(n, _)| *n));
    if let (Some(column), false) = (schema.indexed(), plain.is_empty()) {
        let so = match schema {
            Schema::Sbtest => "updates of it are cheap and reads by it are scans",
            _ => "reads by it are scans",
        };
        findings.warn(
            &format!("{column}_not_indexed"),
            format!("{plain}: no index on {column}, so {so}"),
        );
    }
    let format = |table: &Table| match schema.indexed().filter(|_| !table.indexed) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::workload::table::Mark;

    fn table(mark: Option<(u32, u64)>) -> Table {
        Table {
            is_table: true,
            engine: Some("InnoDB".to_owned()),
            format: "InnoDB Dynamic".to_owned(),
            mark: mark.map(|(seed, rows)| Mark::ready(seed, rows, None)),
            bytes: 1000,
            unusable: None,
            indexed: true,
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
            let codes = findings.conclude().expect("no problem").into_iter().map(|w| w.code);
            (dataset, codes.collect::<Vec<_>>())
        };
        let (ours, warnings) = of(&[table(Some((7, 100))), table(Some((7, 100)))]);
        assert_eq!((ours.own, ours.data_seed, ours.data_bytes), (true, Some(7), 2000));
        assert_eq!(warnings, [""; 0]);
        let (mixed, warnings) = of(&[table(Some((7, 100))), table(Some((8, 100)))]);
        assert_eq!((mixed.own, mixed.data_seed), (true, None));
        assert_eq!(warnings, ["mixed_data_seeds"]);
        let myisam = Table { engine: Some("MyISAM".to_owned()), indexed: false, ..table(None) };
        let (foreign, warnings) = of(&[table(Some((7, 100))), myisam]);
        assert_eq!((foreign.own, foreign.data_seed), (false, None));
        assert_eq!(warnings, ["mixed_engines", "k_not_indexed"]);
    }
}
