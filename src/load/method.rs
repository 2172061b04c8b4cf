//! LOAD DATA LOCAL or INSERT: what the server allows, and what is faster.

use clap::ValueEnum;

use crate::error::{Error, Result};

/// `--fill`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Fill {
    /// LOAD DATA LOCAL where the server allows it and INSERT is not faster.
    #[default]
    Auto,
    /// LOAD DATA LOCAL, or an error.
    LoadData,
    /// INSERT of many rows.
    Insert,
}

/// How rows get into the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// LOAD DATA LOCAL INFILE.
    LoadData,
    /// INSERT of many rows.
    Insert,
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Method::LoadData => "LOAD DATA LOCAL",
            Method::Insert => "multi-row INSERT",
        })
    }
}

/// Connections a table from which on INSERTs side by side are faster than LOAD DATA in turn:
/// an INSERT costs the server up to twice the CPU time, and by default there are two
/// connections a core.
const INSERT_PAYS: u64 = 8;

/// Connections a table where the server lets one LOAD DATA in at a time: the next one is ready
/// when the first one ends.
const IN_TURN: u32 = 2;

/// A method, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    /// How.
    pub(super) method: Method,
    /// Connections at most on one table.
    pub(super) crowd: u32,
    /// Why not the other, or how to get the faster one.
    pub(super) why: Option<String>,
}

/// Chooses. `refusal` is why the server does not take LOAD DATA LOCAL, if so; `autoinc_mode`
/// its innodb_autoinc_lock_mode: below 2 a LOAD DATA locks the table's AUTO_INCREMENT until
/// it ends, although it brings its ids, so there is one at a time in a table. INSERTs of rows
/// with ids do not take this lock.
pub(super) fn choose(
    fill: Fill,
    refusal: Option<&str>,
    autoinc_mode: u64,
    tables: u64,
    jobs: u64,
) -> Result<Choice> {
    let in_turn = autoinc_mode < 2;
    let load = Choice {
        method: Method::LoadData,
        crowd: if in_turn { IN_TURN } else { u32::MAX },
        why: None,
    };
    let insert = |why| Choice { method: Method::Insert, crowd: u32::MAX, why };
    match (fill, refusal) {
        (Fill::Insert, _) => Ok(insert(None)),
        (Fill::LoadData, Some(refusal)) => {
            Err(Error::server(format!("--fill load-data: {refusal}"))
                .hint("SET GLOBAL local_infile = 1, or leave --fill away: INSERT does it too"))
        }
        (Fill::Auto, Some(refusal)) => Ok(insert(Some(format!(
            "{refusal}; SET GLOBAL local_infile = 1 allows LOAD DATA LOCAL, which is faster"
        )))),
        (Fill::Auto, None) if in_turn && jobs >= tables.saturating_mul(INSERT_PAYS) => {
            Ok(insert(Some(format!(
                "innodb_autoinc_lock_mode = {autoinc_mode} lets LOAD DATA into a table over one \
                 connection at a time"
            ))))
        }
        (_, None) => Ok(load),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    const OFF: Option<&str> = Some("local_infile is OFF");

    fn method(fill: Fill, refusal: Option<&str>, mode: u64, tables: u64, jobs: u64) -> Method {
        choose(fill, refusal, mode, tables, jobs).expect("a choice").method
    }

    #[test]
    fn load_data_where_it_is_allowed_and_fast() {
        assert_eq!(method(Fill::Auto, None, 2, 1, 16), Method::LoadData);
        assert_eq!(method(Fill::Auto, None, 1, 8, 16), Method::LoadData);
        assert_eq!(method(Fill::Auto, None, 1, 1, 4), Method::LoadData);
        assert_eq!(method(Fill::Auto, None, 1, 1, 8), Method::Insert);
        assert_eq!(method(Fill::Auto, OFF, 2, 8, 8), Method::Insert);
        assert_eq!(method(Fill::Insert, None, 2, 8, 8), Method::Insert);
        assert_eq!(method(Fill::LoadData, None, 1, 1, 64), Method::LoadData);
    }

    #[test]
    fn it_says_why_and_how_to_get_the_faster_one() {
        let why = choose(Fill::Auto, OFF, 2, 8, 8).expect("a choice").why.expect("a reason");
        assert!(why.contains("local_infile is OFF") && why.contains("SET GLOBAL"), "{why}");
        let error = choose(Fill::LoadData, OFF, 2, 8, 8).expect_err("refused");
        assert_eq!(error.kind(), Kind::Server);
        assert!(error.render().contains("SET GLOBAL local_infile"));
        assert_eq!(choose(Fill::Auto, None, 2, 8, 8).expect("a choice").why, None);
    }

    #[test]
    fn load_data_takes_turns_in_a_table_below_mode_2() {
        let crowd = |mode| choose(Fill::LoadData, None, mode, 1, 4).expect("a choice").crowd;
        assert_eq!((crowd(0), crowd(1), crowd(2)), (2, 2, u32::MAX));
    }
}
