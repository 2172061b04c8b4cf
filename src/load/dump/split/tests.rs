use std::io::{self, Cursor};

use proptest::prelude::*;

use super::*;

/// Hands out so many bytes at a time: every seam between two reads is met.
struct Drip<'a> {
    text: &'a [u8],
    bytes: usize,
}

impl Read for Drip<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.bytes.min(self.text.len()).min(out.len());
        out[..n].copy_from_slice(&self.text[..n]);
        self.text = &self.text[n..];
        Ok(n)
    }
}

fn split_in(text: &[u8], bytes: usize) -> Result<Vec<(String, u64)>> {
    let mut splitter = Splitter::new(Drip { text, bytes }, "x.sql", 1 << 20);
    let mut found = Vec::new();
    while let Some(statement) = splitter.next_statement()? {
        found.push((String::from_utf8_lossy(statement.sql).into_owned(), statement.line));
    }
    assert_eq!(splitter.taken(), text.len() as u64);
    Ok(found)
}

fn split(text: &str) -> Vec<(String, u64)> {
    let whole = split_in(text.as_bytes(), usize::MAX).expect("fine");
    for bytes in [1, 2, 3, 7] {
        assert_eq!(split_in(text.as_bytes(), bytes).expect("fine"), whole, "{bytes} at a time");
    }
    whole
}

fn statements(text: &str) -> Vec<String> {
    split(text).into_iter().map(|(sql, _)| sql).collect()
}

fn refused(text: &str) -> String {
    for bytes in [1, 3] {
        split_in(text.as_bytes(), bytes).expect_err("at any seam");
    }
    split_in(text.as_bytes(), usize::MAX).expect_err(text).to_string()
}

#[test]
fn semicolons_in_quotes_and_comments_end_nothing() {
    for sql in [
        "INSERT INTO t VALUES ('a;b')",
        "INSERT INTO t VALUES ('it''s;')",
        "INSERT INTO t VALUES ('it\\'s;',\"\\\";\")",
        "INSERT INTO t VALUES ('ends with a backslash\\\\')",
        "CREATE TABLE `a;``\\` (x int)",
        "CREATE TABLE t ( -- a comment; with 'quotes\n x int)",
        "CREATE TABLE t ( # a comment; with `quotes\n x int)",
        "CREATE TABLE t (x int /* a; ' */)",
        "/*!40101 SET a='*/;', b=2; */",
        "/*!50003 CREATE /*!50020 ; x*/ ; */",
        "SELECT 1--1",
        "SELECT 4/2*3",
    ] {
        assert_eq!(statements(&format!("{sql};\nNEXT;\n")), [sql, "NEXT"]);
    }
}

#[test]
fn comments_and_blanks_between_statements_go() {
    let text = "-- MariaDB dump\n--\n\n/*!999999\\- enable the sandbox mode */ \n/*M!999999\\- x */;\n\
                # one\n/* two; 'three */ /***/\n;;\nSET a;\r\n\r\n--\nSET b ;-- end";
    assert_eq!(split(text), [("SET a".to_owned(), 9), ("SET b ".to_owned(), 12)]);
    assert!(split("").is_empty() && split(" \n-- only a comment").is_empty());
    let marked = split_in("\u{feff}SET a;".as_bytes(), usize::MAX).expect("fine");
    assert_eq!(marked, [("SET a".to_owned(), 1)]);
}

#[test]
fn lines_are_counted_through_statements() {
    let text = "A\n'\n\n' x;\n\nB;C;\nD;";
    let lines: Vec<u64> = split(text).into_iter().map(|(_, line)| line).collect();
    assert_eq!(lines, [1, 6, 6, 7]);
}

#[test]
fn what_has_no_end_names_its_line() {
    for text in [
        "SET a;\nINSERT INTO t VALUES ('x);\n",
        "SET a;\nINSERT INTO t VALUES (1)",
        "SET a;\n/*!40101 SET x;\n",
        "SET a;\nCREATE TABLE `x;",
        "SET a;\nINSERT 'x\\",
        "SET a;\nSELECT /* x *",
        "SET a;\nSELECT -",
    ] {
        let error = refused(text);
        assert!(error.contains("x.sql: line 2: a statement without end"), "{text}: {error}");
    }
    for text in ["SET a;\n/* never closed", "SET a;\n/*/"] {
        assert!(refused(text).contains("line 2: a comment without end"), "{text}");
    }
}

#[test]
fn a_statement_has_a_limit_and_memory_too() {
    let long = format!("SET a;\nINSERT INTO t VALUES ('{}');", "x".repeat(5 << 20));
    let mut splitter = Splitter::new(Cursor::new(long.as_bytes()), "x.sql", 1 << 20);
    assert!(splitter.next_statement().expect("the first").is_some());
    let error = splitter.next_statement().expect_err("too long");
    assert!(
        error.to_string().contains("line 2: a statement of more than 1048576 bytes"),
        "{error}"
    );
    assert!(splitter.buffer.capacity() < 4 << 20, "{}", splitter.buffer.capacity());

    let comment = format!("-- {}\n/*{}*/SET a;", "x".repeat(9 << 20), "y".repeat(9 << 20));
    let mut splitter = Splitter::new(Cursor::new(comment.as_bytes()), "x.sql", 1 << 20);
    assert!(splitter.next_statement().expect("after the comments").is_some());
    assert!(splitter.buffer.capacity() < 2 << 20, "{}", splitter.buffer.capacity());
}

#[test]
fn compressed_files_are_refused_with_the_way() {
    let error = split_in(b"\x1f\x8b\x08rest", usize::MAX).expect_err("no text");
    assert!(error.render().contains("zcat"), "{}", error.render());
}

#[test]
fn a_read_error_ends_it() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("bad sector"))
        }
    }
    let error =
        Splitter::new(Broken, "x.sql", 10).next_statement().expect_err("broken").to_string();
    assert!(error.contains("x.sql") && error.contains("bad sector"), "{error}");
}

/// A value as mysqldump quotes it.
fn quoted(value: &str) -> String {
    let escaped: String = value
        .chars()
        .map(|c| match c {
            '\\' | '\'' | '"' => format!("\\{c}"),
            '\n' => "\\n".to_owned(),
            c => c.to_string(),
        })
        .collect();
    format!("'{escaped}'")
}

proptest! {
    #[test]
    fn statements_come_back_whatever_their_values(
        values in prop::collection::vec("[ -~\n;'\"\\\\`/*#-]{0,40}", 1..20),
        bytes in 1_usize..50,
    ) {
        let expected: Vec<String> =
            values.iter().map(|v| format!("INSERT INTO `t` VALUES (1,{})", quoted(v))).collect();
        let text = expected.join(";\n") + ";\n";
        let found = split_in(text.as_bytes(), bytes).expect("well formed");
        let found: Vec<String> = found.into_iter().map(|(sql, _)| sql).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn no_bytes_panic_and_seams_change_nothing(
        text in prop::collection::vec(
            prop::sample::select(b"'\"`;#-/*!M\\ \nax9\xff\0".to_vec()), 0..60),
        bytes in 1_usize..5,
    ) {
        let show = |found: Result<Vec<(String, u64)>>| found.map_err(|e| e.to_string());
        let whole = split_quietly(&text, usize::MAX);
        prop_assert_eq!(show(split_quietly(&text, bytes)), show(whole));
        let _ = crate::load::dump::classify(&text);
    }
}

fn split_quietly(text: &[u8], bytes: usize) -> Result<Vec<(String, u64)>> {
    let mut splitter = Splitter::new(Drip { text, bytes }, "x.sql", 1 << 20);
    let mut found = Vec::new();
    while let Some(statement) = splitter.next_statement()? {
        found.push((String::from_utf8_lossy(statement.sql).into_owned(), statement.line));
    }
    Ok(found)
}
