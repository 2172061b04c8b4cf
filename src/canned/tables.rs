//! Answers that make loadgen's preflight see tables.

use super::script::Answer;

/// Rows that each table claims to have: so few that one statement can count all of their ids.
const ROWS: &str = "100";

/// Answers of a server that has foreign tables sbtest1 … sbtestN and allows what loadgen needs.
pub fn answers(tables: u32) -> Vec<Answer> {
    let names: Vec<String> = (1..=tables).map(|n| format!("sbtest{n}")).collect();
    let columns: Vec<[Option<&str>; 3]> = names
        .iter()
        .flat_map(|name| {
            [("id", "PRI"), ("k", "MUL"), ("c", ""), ("pad", "")]
                .map(|(column, key)| [Some(name.as_str()), Some(column), Some(key)])
        })
        .collect();
    let listed: Vec<[Option<&str>; 9]> = names
        .iter()
        .map(|name| {
            let (kind, engine, bytes) = (Some("BASE TABLE"), Some("InnoDB"), Some("16384"));
            [Some(name.as_str()), kind, engine, Some(""), bytes, bytes, None, None, None]
        })
        .collect();
    let columns: Vec<&[Option<&str>]> = columns.iter().map(<[_; 3]>::as_slice).collect();
    let listed: Vec<&[Option<&str>]> = listed.iter().map(<[_; 9]>::as_slice).collect();
    let pair = ["Variable_name", "Value"];
    vec![
        Answer::rows(
            "FROM information_schema.COLUMNS",
            &["TABLE_NAME", "COLUMN_NAME", "COLUMN_KEY"],
            &columns,
        ),
        Answer::rows(
            "FROM information_schema.TABLES",
            &[
                "TABLE_NAME",
                "TABLE_TYPE",
                "ENGINE",
                "TABLE_COMMENT",
                "DATA_LENGTH",
                "INDEX_LENGTH",
                "ROW_FORMAT",
                "TABLE_COLLATION",
                "CREATE_OPTIONS",
            ],
            &listed,
        ),
        Answer::value("SELECT VERSION()", "VERSION()", "8.0.0-canned"),
        Answer::value("@@session.autocommit", "@@session.autocommit", "1"),
        Answer::value("@@version_comment", "@@version_comment", "canned answers"),
        Answer::value("MAX(id)", "MAX(id)", ROWS),
        Answer::value("COUNT(*)", "COUNT(*)", ROWS),
        Answer::rows(
            "SHOW GLOBAL STATUS WHERE",
            &pair,
            &[&[Some("Threads_connected"), Some("1")], &[Some("Prepared_stmt_count"), Some("0")]],
        ),
        Answer::rows("SHOW SESSION VARIABLES", &pair, &[&[Some("wait_timeout"), Some("28800")]]),
        Answer::rows(
            "SHOW GLOBAL VARIABLES",
            &pair,
            &[
                &[Some("version"), Some("8.0.0-canned")],
                &[Some("version_comment"), Some("canned answers")],
                &[Some("max_connections"), Some("100000")],
                &[Some("max_prepared_stmt_count"), Some("1048576")],
            ],
        ),
    ]
}
