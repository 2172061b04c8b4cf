//! A workload from SQL without a profile: the statements of a file or of the command line are one operation.

use std::io::Read;
use std::path::Path;

use super::options::ensure;
use super::sql::{Splitter, Words, length_of_comment, length_of_quoted};
use super::statement::{Param, STATEMENT_MAX, Statement, StatementKind, is_control};
use super::{Begin, KeySource, Transaction, Workload};
use crate::error::{Error, Result};

const PLACEHOLDERS: &str = "{random A..B} (a number), {digits N} (random digits) and {table} \
    (a table that loadgen prepare made) are known; the same number in several statements: SET @id = {random A..B}, then @id";

/// Upper limit on a file's bytes: it is sent again and again.
const FILE_MAX: u64 = 64 << 20;

/// Reads a file, `-` for standard input, and makes a workload of it; `flag` names it in errors.
pub(crate) fn script_of_file(path: &Path, flag: &str) -> Result<Workload> {
    let refused = |what: &dyn std::fmt::Display| {
        Error::usage(format!("{flag}{}: {what}", path.display()))
            .hint("a file of SQL statements, or loadgen sql --query 'SELECT 1'")
    };
    let mut text = Vec::new();
    let stdin = path.as_os_str() == "-";
    let read = if stdin {
        std::io::stdin().take(FILE_MAX + 1).read_to_end(&mut text)
    } else {
        let file = std::fs::File::open(path).map_err(|e| refused(&e))?;
        file.take(FILE_MAX + 1).read_to_end(&mut text)
    };
    read.map_err(|e| refused(&e))?;
    if text.len() as u64 > FILE_MAX {
        return Err(refused(&"more than 64 MiB of SQL"));
    }
    let stem = path.file_stem().filter(|_| !stdin).unwrap_or_default().to_string_lossy();
    script(&stem, &text, &path.display().to_string())
}

/// Makes a workload of these statements in order; `origin` names them in errors.
pub(crate) fn script(name: &str, text: &[u8], origin: &str) -> Result<Workload> {
    let ended = [text, b"\n;"].concat();
    let mut splitter = Splitter::new(ended.as_slice(), origin, STATEMENT_MAX);
    let (mut words, mut statements, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(split) = splitter.next_statement()? {
        let refused = |what: &str| Error::usage(format!("{origin}: line {}: {what}", split.line));
        let sql = str::from_utf8(split.sql).map_err(|_| refused("the SQL is no UTF-8"))?;
        words.push(control(sql));
        lines.push(split.line);
        statements.push(statement(sql.trim()).map_err(|what| refused(&what).hint(PLACEHOLDERS))?);
    }
    let begins = words.first().is_some_and(|word| *word == Some(Control::Begin));
    if begins && words.len() > 2 && words.last() == Some(&Some(Control::Commit)) {
        statements.pop();
        statements.remove(0);
        words.pop();
        words[0] = None;
    }
    if let Some(at) = words.iter().position(Option::is_some) {
        let text = format!("{origin}: line {}: a transaction begins or ends here", lines[at]);
        return Err(Error::usage(text).hint(
            "one transaction: BEGIN is the first statement of all, COMMIT the last, SET between them",
        ));
    }
    if statements.is_empty() {
        return Err(Error::usage(format!("{origin}: there is no statement")));
    }
    let begin = Begin::Always(begins);
    let transaction = Transaction { weight: 1, begin, table_each_if: None, statements };
    let workload = Workload {
        name: printable_name(name),
        about: "SQL of its user".to_owned(),
        transactions: vec![transaction],
        ..Workload::default()
    };
    workload.check().map_err(|what| Error::usage(format!("{origin}: {what}")))?;
    Ok(workload)
}

/// Replaces the characters that a name cannot have: it is printable ASCII without spaces.
fn printable_name(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_graphic() { c } else { '-' };
    let name: String = name.chars().map(fits).take(100).collect();
    if name.is_empty() { "sql".to_owned() } else { name }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Control {
    Begin,
    Commit,
    Other,
}

fn control(sql: &str) -> Option<Control> {
    let mut words = Words { sql: sql.as_bytes(), at: 0 };
    let all: Vec<String> = std::iter::repeat_with(|| words.word()).take(3).collect();
    let [first, second, third] = all.as_slice() else { return None };
    let alone = third.is_empty() && words.rest().is_empty();
    Some(match (first.as_str(), second.as_str()) {
        ("BEGIN", "" | "WORK") | ("START", "TRANSACTION") if alone => Control::Begin,
        ("COMMIT", "" | "WORK") if alone => Control::Commit,
        (word, _) if is_control(word) => Control::Other,
        _ => return None,
    })
}

fn statement(sql: &str) -> Result<Statement, String> {
    let (sql, params) = bind_placeholders(sql)?;
    let kind = Some(StatementKind::from_sql(&sql));
    Ok(Statement { kind, sql, params, ..Statement::default() })
}

/// Replaces each placeholder outside quotes and comments with `?`, and makes its parameter.
fn bind_placeholders(sql: &str) -> Result<(String, Vec<Param>), String> {
    let (mut text, mut params, mut rest) = (String::new(), Vec::new(), sql);
    while let Some(first) = rest.chars().next() {
        let (quoted, comment) = (length_of_quoted(rest), length_of_comment(rest.as_bytes()));
        let taken = if comment > 0 {
            text += &rest[..comment];
            comment
        } else if quoted > 0 {
            let none =
                "a placeholder stands in quotes: write it without them, CONCAT('a', {random 1..9})";
            let mut inside = rest[..quoted].split('{').skip(1);
            ensure(!inside.any(|word| matches!(placeholder(word), Ok(Some(_)))), none)?;
            text += &rest[..quoted];
            quoted
        } else if let Some((param, length)) =
            rest.strip_prefix('{').map_or(Ok(None), placeholder)?
        {
            text += if param.is_some() { "?" } else { &rest[..=length] };
            params.extend(param);
            length + 1
        } else {
            ensure(first != '?', "a ? outside of quotes has no value: write a placeholder")?;
            text.push(first);
            first.len_utf8()
        };
        rest = &rest[taken..];
    }
    Ok((text, params))
}

/// Finds it with its length and the closing brace, None for `{table}`. Unknown forms stay: `{d '2026-01-01'}`.
fn placeholder(text: &str) -> Result<Option<(Option<Param>, usize)>, String> {
    let Some((inside, _)) = text.split_once('}') else { return Ok(None) };
    let plain = |c: char| c.is_ascii_alphanumeric() || " ._".contains(c);
    let (word, value) = inside.split_once(' ').unwrap_or((inside, ""));
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
    let is_known = ["table", "digits", "random"].contains(&word);
    if !is_word || !is_known && !inside.chars().all(plain) {
        return Ok(None);
    }
    let wrong = || format!("{{{inside}}} is no placeholder");
    let number = |text: &str| {
        let digits = text.trim();
        let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let beyond = || format!("{{{inside}}}: {digits} is not within 0 to {}", u64::MAX);
        digits.parse::<u64>().map_err(|_| if is_whole { beyond() } else { wrong() })
    };
    let param = match word {
        "table" if value.is_empty() => None,
        "digits" => Some(Param::Digits(number(value)? as usize)),
        "random" => {
            let (min, max) = value.split_once("..").ok_or_else(wrong)?;
            let (min, max) = (number(min)?, number(max)?);
            Some(Param::Between { min, max, distribution: KeySource(None) })
        }
        _ => return Err(wrong()),
    };
    Ok(Some((param, inside.len() + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(text: &str) -> Result<Workload> {
        script("tx", text.as_bytes(), "tx.sql")
    }

    #[test]
    fn a_script_is_one_operation_when_it_has_several_statements() {
        struct Case {
            text: &'static str,
            begins: bool,
            kinds: &'static [StatementKind],
        }
        for Case { text, begins, kinds } in [
            Case { text: "SELECT 1", begins: false, kinds: &[StatementKind::Select] },
            Case { text: "SELECT ';' -- no; \n;", begins: false, kinds: &[StatementKind::Select] },
            Case {
                text: "BEGIN; INSERT t VALUES (1); DELETE FROM t; COMMIT;",
                begins: true,
                kinds: &[StatementKind::Insert, StatementKind::Delete],
            },
            Case {
                text: "start transaction;UPDATE t SET a=1;commit work",
                begins: true,
                kinds: &[StatementKind::Update],
            },
            Case {
                text: "UPDATE t SET a=1; SET @a = 1",
                begins: false,
                kinds: &[StatementKind::Update, StatementKind::Other],
            },
        ] {
            let workload = sql(text).expect(text);
            let [transaction] = workload.transactions.as_slice() else { panic!("{text}") };
            assert_eq!(workload.begins(transaction), begins, "{text}");
            let found: Vec<StatementKind> =
                transaction.statements.iter().map(Statement::kind).collect();
            assert_eq!(found, kinds, "{text}");
            assert!(!workload.names_tables(), "{text}");
        }
    }

    #[test]
    fn placeholders_become_parameters_outside_of_quotes() {
        let (text, params) =
            bind_placeholders("SELECT {random 5..7}, '{\"a\": 1}', {digits 3}").expect("fine");
        assert_eq!(text, "SELECT ?, '{\"a\": 1}', ?");
        let between = Param::Between { min: 5, max: 7, distribution: KeySource(None) };
        assert_eq!(params, [between, Param::Digits(3)]);
        let (text, params) =
            bind_placeholders("SELECT 1 -- it's {random 1..2}?\n, {random 1..2}").expect("fine");
        assert_eq!((text.as_str(), params.len()), ("SELECT 1 -- it's {random 1..2}?\n, ?", 1));
        let (text, params) =
            bind_placeholders("SELECT {d '2026-01-01'}, `a{`, 'it''s \\' {'").expect("fine");
        assert_eq!(
            (text.as_str(), params.len()),
            ("SELECT {d '2026-01-01'}, `a{`, 'it''s \\' {'", 0)
        );
        for text in ["SELECT é, {x = random 1..2}", "SELECT {", "{é 1}"] {
            assert_eq!(bind_placeholders(text).expect(text), (text.to_owned(), Vec::new()));
        }
        assert!(
            sql("SELECT c FROM {table} WHERE id = {random 1..9}").expect("fine").names_tables()
        );
    }

    #[test]
    fn a_script_is_refused_when_it_cannot_be_one_operation() {
        for (text, part) in [
            ("", "no statement"),
            (" -- nothing\n;;", "no statement"),
            ("SELECT 1;\nBEGIN; SELECT 2; COMMIT", "line 2: a transaction begins"),
            ("BEGIN; SELECT 1", "line 1: a transaction begins"),
            ("BEGIN; COMMIT", "line 1: a transaction begins"),
            ("BEGIN; SELECT 1; ROLLBACK", "line 1: a transaction begins"),
            ("BEGIN; SAVEPOINT a; COMMIT", "line 1: a transaction begins"),
            ("START TRANSACTION READ ONLY; SELECT 1; COMMIT", "begins or ends"),
            ("SELECT ?", "has no value"),
            ("SELECT '{random 1..2}'", "CONCAT"),
            ("SELECT {rand 1..2}", "{rand 1..2} is no placeholder"),
            ("SELECT {id}", "{id} is no placeholder"),
            ("SELECT {random 2}", "{random 2} is no placeholder"),
            ("SELECT {random 2..1}", "nothing between"),
            ("SELECT {random -2..1}", "{random -2..1} is no placeholder"),
            ("SELECT {random 1..18446744073709551616}", "0 to 18446744073709551615"),
            ("SELECT {list}", "{list} is no placeholder"),
            ("SELECT 'open", "without end"),
        ] {
            let error = sql(text).expect_err(text).render();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_name_becomes_one_word() {
        assert_eq!(
            (printable_name("my tx.v2").as_str(), printable_name("").as_str()),
            ("my-tx.v2", "sql")
        );
    }
}
