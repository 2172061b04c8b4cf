//! The rows of an INSERT: literals, and functions of them.

use super::lex::{comment, in_word, is_blank, number, quoted, word};
use crate::error::clip;

/// Words that are a value, or begin one: `X'00'`.
const LITERALS: [&str; 7] = ["NULL", "X", "B", "N", "DEFAULT", "TRUE", "FALSE"];

const QUERIES: [&str; 4] = ["SELECT", "TABLE", "ROW", "WITH"];

/// Functions of values without a literal in dumps: JSON, geometry, bytes, the time of day.
const FUNCTIONS: [&str; 13] = [
    "CONVERT",
    "CAST",
    "UNHEX",
    "FROM_BASE64",
    "ST_GEOMFROMTEXT",
    "ST_GEOMFROMWKB",
    "GEOMFROMTEXT",
    "GEOMFROMWKB",
    "VEC_FROMTEXT",
    "UUID_TO_BIN",
    "NOW",
    "CURRENT_TIMESTAMP",
    "VALUES",
];

/// Refuses anything but rows behind VALUES, such as a query or a function that reads files.
pub(super) fn check(sql: &[u8], ansi: bool) -> Result<(), String> {
    let mut rows = Rows { sql, at: 0, assigns: false };
    while let Some(&byte) = sql.get(rows.at) {
        rows.at += match byte {
            b',' | b'(' | b')' | b'.' | b'+' => 1,
            _ if is_blank(byte) => 1,
            b'\'' => quoted(&sql[rows.at..], ansi)?,
            b'"' if !ansi => quoted(&sql[rows.at..], ansi)?,
            b'0'..=b'9' => rows.value(number(&sql[rows.at..]))?,
            b'-' | b'#' | b'/' => match comment(&sql[rows.at..])? {
                Some(length) => length,
                None if byte == b'-' => 1,
                None => return Err(rows.odd()),
            },
            b'`' | b'"' if rows.assigns => rows.value(quoted(&sql[rows.at..], ansi)?)?,
            b'=' if rows.assigns => 1,
            _ if in_word(byte) => rows.word()?,
            _ => return Err(rows.odd()),
        }
    }
    Ok(())
}

struct Rows<'a> {
    sql: &'a [u8],
    at: usize,
    /// ON DUPLICATE KEY UPDATE has come: columns and assignments follow.
    assigns: bool,
}

impl Rows<'_> {
    fn word(&mut self) -> Result<usize, String> {
        let length = word(&self.sql[self.at..]);
        let is =
            |word: &str| self.sql[self.at..self.at + length].eq_ignore_ascii_case(word.as_bytes());
        if is("NULL") {
            return Ok(length);
        }
        let after = self.after(length);
        match self.sql.get(after) {
            Some(b'(') if FUNCTIONS.into_iter().any(is) => Ok(length),
            Some(b'(') => Err(self.odd()),
            _ if LITERALS.into_iter().any(is) => Ok(length),
            _ if self.assigns && !QUERIES.into_iter().any(is) => Ok(length),
            // Character set of the following text.
            Some(b'\'' | b'"' | b'0'..=b'9' | b'x' | b'X') if self.sql[self.at] == b'_' => {
                Ok(length)
            }
            // A character set or a type, in CONVERT and CAST.
            _ if is("USING") || is("AS") => {
                let next = word(&self.sql[after..]);
                self.ends(after + next)
            }
            _ if is("ON") => self.on_duplicate(after),
            _ => Err(self.odd()),
        }
    }

    fn on_duplicate(&mut self, from: usize) -> Result<usize, String> {
        let mut at = from;
        for known in ["DUPLICATE", "KEY", "UPDATE"] {
            let length = word(&self.sql[at..]);
            if !self.sql[at..at + length].eq_ignore_ascii_case(known.as_bytes()) {
                return Err(self.odd());
            }
            at += length;
            at = self.after(at - self.at);
        }
        self.assigns = true;
        self.ends(at)
    }

    /// Takes `length` bytes that are no function.
    fn value(&self, length: usize) -> Result<usize, String> {
        self.ends(self.at + length)
    }

    /// Returns the length up to `end`; refuses the name of a function.
    fn ends(&self, end: usize) -> Result<usize, String> {
        let after = self.after(end - self.at);
        if self.sql.get(after) == Some(&b'(') { Err(self.odd()) } else { Ok(end - self.at) }
    }

    /// Skips `length` bytes, blanks and comments.
    fn after(&self, length: usize) -> usize {
        let mut end = self.at + length;
        loop {
            match self.sql.get(end) {
                Some(byte) if is_blank(*byte) => end += 1,
                Some(b'-' | b'#' | b'/') => match comment(&self.sql[end..]) {
                    Ok(Some(length)) => end += length,
                    // Refused when it is reached.
                    Ok(None) | Err(_) => return end,
                },
                _ => return end,
            }
        }
    }

    fn odd(&self) -> String {
        let text = &self.sql[self.at..self.sql.len().min(self.at + 80)];
        format!("no value of a row: {}", clip(&String::from_utf8_lossy(text), 30))
    }
}
