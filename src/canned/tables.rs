//! Answers that let loadgen's preflight see tables.

use super::script::{Answer, Reply};

/// Rows of each table: few enough for one statement to count all ids.
const ROWS: &str = "100";

/// Makes the answers of a server with foreign tables sbtest1 … sbtestN that allows what loadgen needs.
pub fn answers(tables: u32) -> Vec<Answer> {
    // Bars separate columns and values. loadgen reads them by position, others by name.
    let rows = |matches, columns: &str, rows: Vec<String>| {
        let value = |text: &str| (text != "NULL").then(|| text.as_bytes().to_vec());
        let columns = columns.split('|').map(str::to_owned).collect();
        let rows = rows.iter().map(|row| row.split('|').map(value).collect()).collect();
        Answer::new(matches, Reply::Rows { columns, rows })
    };
    let pairs = |matches, pairs: &[&str]| {
        rows(matches, "Variable_name|Value", pairs.iter().copied().map(str::to_owned).collect())
    };
    let columns = (1..=tables).flat_map(|n| {
        ["id|PRI", "k|MUL", "c|", "pad|"].map(|column| format!("sbtest{n}|{column}"))
    });
    let listed = |n| format!("sbtest{n}|BASE TABLE|InnoDB||16384|16384|NULL|NULL|NULL");
    vec![
        rows(
            "FROM information_schema.COLUMNS",
            "TABLE_NAME|COLUMN_NAME|COLUMN_KEY",
            columns.collect(),
        ),
        rows(
            "FROM information_schema.TABLES",
            "TABLE_NAME|TABLE_TYPE|ENGINE|TABLE_COMMENT|DATA_LENGTH|INDEX_LENGTH|ROW_FORMAT|\
             TABLE_COLLATION|CREATE_OPTIONS",
            (1..=tables).map(listed).collect(),
        ),
        Answer::value("SELECT VERSION()", "VERSION()", "8.0.0-canned"),
        Answer::value("@@session.autocommit", "@@session.autocommit", "1"),
        Answer::value("@@version_comment", "@@version_comment", "canned answers"),
        Answer::value("MAX(id)", "MAX(id)", ROWS),
        Answer::value("COUNT(*)", "COUNT(*)", ROWS),
        pairs("SHOW GLOBAL STATUS WHERE", &["Threads_connected|1", "Prepared_stmt_count|0"]),
        pairs("SHOW SESSION VARIABLES", &["wait_timeout|28800"]),
        pairs(
            "SHOW GLOBAL VARIABLES",
            &[
                "version|8.0.0-canned",
                "version_comment|canned answers",
                "max_connections|100000",
                "max_prepared_stmt_count|1048576",
            ],
        ),
    ]
}
