//! Names and labels that would be something else in SQL, Markdown, a spreadsheet or a path.

use std::fs;

use super::{program, run};
use crate::common::{local, query, sandbox};

const LABELS: [&str; 6] = [
    "'; DROP TABLE sbtest1; --",
    "<script>alert(1)</script>",
    "../../etc/x",
    "=cmd()|' /C calc'!A0",
    "a|b`c\\",
    "%s{table}$(id)",
];

#[test]
fn a_name_is_only_a_name() {
    let server = sandbox(&local(), &[("local-infile", "1")]);
    let database = "a`b'c\"; DROP DATABASE sbtest; -- %";
    let user = "o'b`r\"";
    let quoted = format!("`{}`", database.replace('`', "``"));
    let account = format!("'{}'@'%'", user.replace('\'', "''"));
    let password = "p'`\"\\;";
    for sql in [
        format!("CREATE DATABASE {quoted}"),
        format!(
            "CREATE USER {account} IDENTIFIED BY '{}'",
            password.replace('\\', "\\\\").replace('\'', "''")
        ),
        format!("GRANT ALL ON *.* TO {account}"),
        "CREATE TABLE sbtest.canary (id INT)".to_owned(),
    ] {
        query(&server, &sql);
    }
    let port = server.port.to_string();
    let dir = tempfile::tempdir().expect("a directory");
    let results = dir.path().join("a/results");
    fs::create_dir(dir.path().join("a")).expect("writable");
    let out = results.to_str().expect("plain");
    let tcp = ["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", user, "-D", database];
    let go = |words: &[&str]| {
        let mut command = program(&[words, &tcp[..]].concat());
        let said = run(command.env("MYSQL_PWD", password), "");
        assert_eq!(said.code, 0, "{words:?}: {}", said.both());
        said
    };
    go(&["prepare", "--rows", "100", "--charset", "utf8mb4"]);
    go(&["prepare", "--rows", "100", "--force", "--fill", "insert"]);
    for label in LABELS {
        go(&[
            "update",
            "--ops",
            "20",
            "--out",
            out,
            "--label",
            label,
            "--note",
            "k='; DROP TABLE x",
        ]);
    }
    go(&["load", "--rows", "50", "--force", "--out", out, "--label", LABELS[0]]);
    let rows = format!("SELECT COUNT(*) FROM {quoted}.sbtest1");
    assert_eq!(query(&server, &rows)[0][0], "50");
    go(&["cleanup", "--yes"]);
    assert_eq!(query(&server, "SHOW TABLES FROM sbtest")[0][0], "canary");

    // Every summary is where it was to be.
    let names: Vec<String> = fs::read_dir(&results)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("plain"))
        .collect();
    assert_eq!(names.len(), LABELS.len() + 1, "{names:?}");
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-.=@_".contains(c);
    assert!(names.iter().all(|name| name.chars().all(plain)), "{names:?}");
    assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 1);

    let report = |format: &str| {
        let said = run(&mut program(&["report", out, "--format", format]), "");
        assert_eq!(said.code, 0, "{}", said.both());
        said.stdout
    };
    let text = report("text");
    assert!(LABELS.iter().all(|label| text.contains(label)), "{text}");
    let markdown = report("markdown");
    assert!(markdown.contains("\\<script\\>") && !markdown.contains("<script>"), "{markdown}");
    assert!(markdown.contains("a\\|b\\`c\\\\"), "{markdown}");
    let csv = report("csv");
    assert!(csv.contains("'=cmd()|") && !csv.contains(",=cmd"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&report("json")).expect("JSON");
    let found: Vec<&str> = json["tables"]
        .as_array()
        .expect("tables")
        .iter()
        .flat_map(|table| table["lines"].as_array().expect("lines"))
        .filter_map(|line| line["label"].as_str())
        .collect();
    assert!(LABELS.iter().all(|label| found.contains(label)), "{found:?}");
}
