//! The words of one statement, taken one after the other.

use std::ops::Range;

use super::lex::{Shape, Token};
use crate::error::clip;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpPart {
    /// `DROP TABLE IF EXISTS`: no error if there is no table.
    Drop,
    Create,
    Insert,
    /// Another statement that names a table: `LOCK TABLES`, `ALTER TABLE`, a `DROP TABLE` that needs one.
    Touch,
    /// `SET NAMES`; the name is the character set's.
    Names,
    /// `SET`, `UNLOCK TABLES`, `COMMIT` and the like.
    Other,
    /// Not sent, because it is about the server and not about tables.
    LeftOut(LeftOut),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    GtidPurged,
    SqlLogBin,
    Replication,
    /// A switch of MyRocks that Percona's mysqldump writes.
    RocksDb,
}

impl LeftOut {
    pub(crate) fn name(self) -> &'static str {
        match self {
            LeftOut::GtidPurged => "GTID_PURGED",
            LeftOut::SqlLogBin => "SQL_LOG_BIN",
            LeftOut::Replication => "the place in a binary log",
            LeftOut::RocksDb => "rocksdb_bulk_load",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementInfo {
    pub kind: DumpPart,
    /// Position of the name, quotes included; empty where there is none.
    pub name: Range<usize>,
}

impl StatementInfo {
    pub(super) fn nameless(kind: DumpPart) -> StatementInfo {
        StatementInfo { kind, name: 0..0 }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    pub(super) sql: &'a [u8],
    pub(super) tokens: &'a [Token],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    pub(super) fn upper(&self, token: &Token) -> String {
        String::from_utf8_lossy(&self.sql[token.range.clone()]).to_ascii_uppercase()
    }

    /// Takes the next token if it fits.
    pub(super) fn take(&mut self, fits: impl FnOnce(Shape) -> bool) -> Option<&'a Token> {
        let token = self.peek().filter(|token| fits(token.shape))?;
        self.at += 1;
        Some(token)
    }

    /// Takes a word without quotes, in upper case.
    pub(super) fn word(&mut self) -> Option<String> {
        let token = self.take(|shape| shape == Shape::Word)?;
        Some(self.upper(token))
    }

    pub(super) fn has(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|token| {
            token.shape == Shape::Word
                && self.sql[token.range.clone()].eq_ignore_ascii_case(word.as_bytes())
        });
        self.at += usize::from(found);
        found
    }

    pub(super) fn has_all(&mut self, words: &[&str]) -> bool {
        let before = self.at;
        let all = words.iter().all(|word| self.has(word));
        if !all {
            self.at = before;
        }
        all
    }

    /// Returns whether replicas are named next: SLAVE, REPLICA, ALL SLAVES.
    pub(super) fn is_of_replicas(&mut self) -> bool {
        self.has("ALL");
        ["SLAVE", "SLAVES", "REPLICA"].iter().any(|word| self.has(word))
    }

    pub(super) fn sign(&mut self, sign: u8) -> bool {
        self.take(|shape| shape == Shape::Sign(sign)).is_some()
    }

    pub(super) fn table(&mut self) -> Result<Range<usize>, String> {
        let fits = |shape| matches!(shape, Shape::Word | Shape::Quoted(b'`' | b'"'));
        let token = self.take(fits).ok_or("a table without a name")?;
        match self.peek().map(|token| token.shape) {
            Some(Shape::Sign(b'.')) => Err("a table of another database".to_owned()),
            _ => Ok(token.range.clone()),
        }
    }

    pub(super) fn ends(&self, kind: DumpPart) -> Result<StatementInfo, String> {
        self.ends_with(StatementInfo::nameless(kind))
    }

    pub(super) fn ends_with(&self, seen: StatementInfo) -> Result<StatementInfo, String> {
        match self.peek() {
            None => Ok(seen),
            Some(token) => Err(self.odd(token)),
        }
    }

    pub(super) fn odd(&self, token: &Token) -> String {
        let from = &self.sql[token.range.start..self.sql.len().min(token.range.start + 80)];
        format!("what no dump has there: {}", clip(&String::from_utf8_lossy(from), 30))
    }

    /// Returns whether the statement is one of Percona's mysqldump that switches MyRocks' bulk load.
    pub(super) fn stores_rocksdb(&self, verb: &str) -> bool {
        let variables: Vec<String> = self
            .tokens
            .windows(2)
            .filter_map(|pair| {
                let is_one = pair[0].shape == Shape::Sign(b'@') && pair[1].shape == Shape::Word;
                is_one.then(|| self.upper(&pair[1]))
            })
            .collect();
        let own = !variables.is_empty() && variables.iter().all(|name| name.contains("ROCKSDB"));
        let targets = self.tokens.iter().filter(|token| self.upper(token) == "INTO").count();
        own && match verb {
            "SELECT" => targets == 1,
            "SET" => self.peek().is_some_and(|token| token.shape == Shape::Sign(b'@')),
            _ => true,
        }
    }
}

/// Character sets with quotes or backslashes inside characters: such files cannot be split by bytes.
const SPLIT_WRONGLY: [&str; 5] = ["big5", "gbk", "gb18030", "sjis", "cp932"];

pub(in crate::load) fn refuse_charset(name: &[u8]) -> Result<(), String> {
    let name = unquoted(name).ok_or("a character set whose name is no text")?.to_ascii_lowercase();
    if SPLIT_WRONGLY.contains(&name.as_str()) {
        return Err(format!(
            "a file in {name} is not supported, because its characters have bytes that are quotes \
             or backslashes: mysqldump --default-character-set=utf8mb4 writes another"
        ));
    }
    Ok(())
}

/// Removes the quotes of a name; None if it is no UTF-8.
pub fn unquoted(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let inside = |quote: &&str| {
        let inside = name.strip_prefix(*quote)?.strip_suffix(*quote)?;
        Some(inside.replace(&quote.repeat(2), quote))
    };
    Some(["`", "\"", "'"].iter().find_map(inside).unwrap_or_else(|| name.to_owned()))
}
