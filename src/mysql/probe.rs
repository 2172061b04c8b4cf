//! Whether the rows are really there: a sample of ids.

use super::ask::{Asked, one};
use super::dataset::{Discovered, Table};
use super::findings::Findings;
use super::session::{Failure, Session};
use crate::workload::random::Stream;
use crate::workload::table;

/// Ids looked up in each table.
const PROBES: u64 = 1000;
/// Ids looked up in all tables together, at least ten a table.
const PROBES_TOTAL: u64 = 1_000_000;
/// Ids in one statement: MariaDB turns a list of a thousand into a join.
const PROBES_A_STATEMENT: usize = 250;

/// Looks up random ids of each table: a hole would make an operation cheaper than it is. False
/// if a table cannot be read; the others are not tried then, each might wait for a lock.
pub(super) async fn probe_all(
    session: &mut Session,
    found: &Discovered,
    used: &[(u32, &Table)],
    rows: u64,
    seed: u64,
    findings: &mut Findings,
) -> Asked<bool> {
    let mut stream = Stream::new(seed);
    let probes = (PROBES_TOTAL / used.len().max(1) as u64).clamp(10, PROBES);
    for (number, table) in used {
        let ids = sample(&mut stream, rows, probes);
        let missing = match count(session, &found.sql_name(*number), &ids).await {
            Ok(counted) => (ids.len() as u64).saturating_sub(counted),
            Err(failure) => {
                let what = format!("{} cannot be read", found.name(*number));
                findings.refused(failure, &what, |code| read_hint(code, &found.database))?;
                return Ok(false);
            }
        };
        if missing > 0 {
            let what = if ids.len() as u64 == rows { "" } else { " random" };
            findings.problem(
                format!(
                    "{} has holes: {missing} of {}{what} ids from 1 to {rows} are not there",
                    found.name(*number),
                    ids.len()
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
    Ok(true)
}

/// Distinct ids of `1..=rows` in order: all, or the first, the last and random ones.
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
        let list: Vec<String> = chunk.iter().map(u64::to_string).collect();
        let sql = format!("SELECT COUNT(*) FROM {table} WHERE id IN ({})", list.join(","));
        let answer = one(session, &sql).await?.and_then(|text| text.parse::<u64>().ok());
        let Some(n) = answer else {
            return Err(Failure::Lost("COUNT(*) that is no number".to_owned()));
        };
        counted = counted.saturating_add(n);
    }
    Ok(counted)
}

/// What to do about a table that cannot be read, by the error number.
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
mod tests {
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
