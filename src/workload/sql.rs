//! SQL as text: splits a stream into statements, and reads the words of a statement. Memory is bounded
//! by the longest statement, which has a limit.

use std::io::{ErrorKind, Read};

use memchr::{memchr, memchr_iter, memchr2, memmem};

use crate::error::{Error, Result};

const READ: usize = 256 << 10;

/// Bytes that identify a compressed file or a byte order mark.
const MAGIC_MAX: usize = 5;

/// Longest beginning that identifies a token: `/*M!99999999\-`.
const TOKEN_MAX: usize = 14;

/// A piece that hides a semicolon or ends a statement; versioned comments belong to the statement.
#[derive(Debug, Clone, Copy)]
enum Token {
    Nothing,
    Blank,
    Semicolon,
    Quote(u8),
    LineComment,
    Comment,
    /// The length of a versioned comment's opening; its inside is SQL.
    Open(usize),
    Close,
    Other,
}

impl Token {
    fn at_start(text: &[u8]) -> Token {
        match text {
            [] => Token::Nothing,
            [b';', ..] => Token::Semicolon,
            [quote @ (b'\'' | b'"' | b'`'), ..] => Token::Quote(*quote),
            // Dashes count only before white space, as in the server.
            [b'#', ..] | [b'-', b'-'] => Token::LineComment,
            [b'-', b'-', after, ..] if after.is_ascii_whitespace() => Token::LineComment,
            [b'*', b'/', ..] => Token::Close,
            [b'/', b'*', inner @ ..] => {
                let versioned = inner.strip_prefix(b"!").or_else(|| inner.strip_prefix(b"M!"));
                let Some(sql) = versioned else { return Token::Comment };
                let digits = sql.iter().take(8).take_while(|b| b.is_ascii_digit()).count();
                // MariaDB's dumps begin with a command for its client in one.
                if sql[digits..].starts_with(b"\\-") {
                    return Token::Comment;
                }
                Token::Open(text.len() - sql.len() + digits)
            }
            [first, ..] if first.is_ascii_whitespace() => Token::Blank,
            _ => Token::Other,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Split<'a> {
    /// Bytes in whatever character set the file has.
    pub sql: &'a [u8],
    pub line: u64,
}

pub struct Splitter<R> {
    source: R,
    name: String,
    limit: usize,
    buffer: Vec<u8>,
    /// Receives each read; the buffer need not be filled with zeros for it.
    block: Vec<u8>,
    /// The first byte not handed out yet.
    start: usize,
    line: u64,
    read: u64,
    /// A terminal would be asked again after its end.
    ended: bool,
}

impl<R: Read> Splitter<R> {
    pub fn new(source: R, name: &str, limit: usize) -> Self {
        let (name, buffer) = (name.to_owned(), Vec::new());
        let block = vec![0; READ];
        Splitter { source, name, limit, buffer, block, start: 0, line: 1, read: 0, ended: false }
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.read - self.rest().len() as u64
    }

    pub(crate) fn error(&self, line: u64, what: &str) -> Error {
        Error::data(format!("{}: line {line}: {what}", self.name))
    }

    pub fn next_statement(&mut self) -> Result<Option<Split<'_>>> {
        if self.read == 0 {
            self.open()?;
        }
        loop {
            let line = self.line;
            match self.token(0)? {
                Token::Nothing => return Ok(None),
                Token::Blank | Token::Semicolon => self.advance(1),
                Token::LineComment => drop(self.skip(b"\n")?),
                Token::Comment => {
                    self.advance(2);
                    if !self.skip(b"*/")? {
                        return Err(self.error(line, "a comment without end"));
                    }
                }
                _ => {
                    let length = self.scan()?;
                    let from = self.start;
                    self.advance(length + 1);
                    return Ok(Some(Split { sql: &self.buffer[from..from + length], line }));
                }
            }
        }
    }

    /// Refuses what is no text, by its first bytes.
    fn open(&mut self) -> Result<()> {
        // A pipe may deliver fewer bytes at a time.
        while self.buffer.len() < MAGIC_MAX && self.fill()? {}
        let magic: [&[u8]; 4] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ"];
        if magic.iter().any(|magic| self.buffer.starts_with(magic)) {
            return Err(Error::data(format!("{}: the file is compressed", self.name))
                .hint("zcat FILE | loadgen load --from-dump -"));
        }
        // UTF-8's byte order mark.
        if self.buffer.starts_with(b"\xef\xbb\xbf") {
            self.start = 3;
        }
        Ok(())
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    fn advance(&mut self, bytes: usize) {
        self.line += memchr_iter(b'\n', &self.rest()[..bytes]).count() as u64;
        self.start += bytes;
    }

    /// Reads on; false at the end of the file.
    fn fill(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        // Makes room: each byte is moved at most once for each byte read.
        if self.start >= self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let got = self.source.read(&mut self.block);
        let bytes = *got.as_ref().unwrap_or(&0);
        self.buffer.extend_from_slice(&self.block[..bytes]);
        self.read += bytes as u64;
        self.ended = matches!(got, Ok(0));
        match got {
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(true),
            Err(e) => Err(Error::failed(format!("{}: {e}", self.name))),
            Ok(_) => Ok(!self.ended),
        }
    }

    fn token(&mut self, at: usize) -> Result<Token> {
        while self.rest().len() <= at && self.fill()? {}
        if matches!(self.rest().get(at), Some(b'-' | b'/' | b'*')) {
            while self.rest().len() < at + TOKEN_MAX && self.fill()? {}
        }
        Ok(Token::at_start(&self.rest()[at..]))
    }

    /// Skips up to and including these bytes, or to the end; returns whether they were there.
    fn skip(&mut self, end: &[u8]) -> Result<bool> {
        loop {
            if let Some(at) = memmem::find(self.rest(), end) {
                self.advance(at + end.len());
                return Ok(true);
            }
            self.advance((self.rest().len() + 1).saturating_sub(end.len()));
            if !self.fill()? {
                self.advance(self.rest().len());
                return Ok(false);
            }
        }
    }

    /// Returns the length of the statement that begins here, without its semicolon.
    fn scan(&mut self) -> Result<usize> {
        // The nesting of versioned comments.
        let (mut at, mut depth) = (0, 0_u32);
        loop {
            at = self.find(at, |text| text.iter().position(|b| is_special(*b)))?;
            at = match self.token(at)? {
                Token::Semicolon if depth == 0 => return Ok(at),
                Token::Quote(quote) => self.end_of_quote(at + 1, quote)?,
                Token::LineComment => self.find(at, |text| memchr(b'\n', text))? + 1,
                Token::Comment => self.find(at + 2, |text| memmem::find(text, b"*/"))? + 2,
                Token::Open(length) => {
                    depth += 1;
                    at + length
                }
                Token::Close if depth > 0 => {
                    depth -= 1;
                    at + 2
                }
                _ => at + 1,
            };
        }
    }

    /// Finds a position in the statement from here on; an error if the file ends before.
    fn find(&mut self, mut from: usize, find: impl Fn(&[u8]) -> Option<usize>) -> Result<usize> {
        let (what, hint) = loop {
            let found = self.rest().get(from..).and_then(&find).map(|found| from + found);
            let known = self.rest().len();
            if found.unwrap_or(known) > self.limit {
                break (
                    format!("a statement of more than {} bytes", self.limit),
                    "the server takes max_allowed_packet bytes: SET GLOBAL max_allowed_packet, or \
                     dump with a smaller --net-buffer-length",
                );
            }
            if let Some(found) = found {
                return Ok(found);
            }
            if !self.fill()? {
                let hint = "a quote or a comment is not closed, or the end of the file is missing";
                break ("a statement without end".to_owned(), hint);
            }
            // The last byte may be the first half of what is sought.
            from = from.max(known.saturating_sub(1));
        };
        let text = String::from_utf8_lossy(&self.rest()[..self.rest().len().min(120)]);
        let glimpse: String = text.chars().take(40).collect();
        Err(self.error(self.line, &format!("{what}: '{} …'", glimpse.trim())).hint(hint))
    }

    /// Finds the end of a quote; a backslash escapes a byte, except in a name.
    fn end_of_quote(&mut self, from: usize, quote: u8) -> Result<usize> {
        let escape = if quote == b'`' { quote } else { b'\\' };
        let mut at = from;
        loop {
            at = self.find(at, |text| memchr2(quote, escape, text))?;
            if self.rest()[at] == quote {
                return Ok(at + 1);
            }
            at += 2;
        }
    }
}

/// Returns whether a byte may begin a token within a statement.
fn is_special(byte: u8) -> bool {
    matches!(byte, b'\'' | b'"' | b'`' | b';' | b'#' | b'-' | b'/' | b'*')
}

/// Counts the bytes of a comment that begins here; 0 for none.
pub(super) fn length_of_comment(text: &[u8]) -> usize {
    let (from, end) = match Token::at_start(text) {
        Token::LineComment => (0, &b"\n"[..]),
        // The star of its beginning is not that of its end.
        Token::Comment => (2, &b"*/"[..]),
        _ => return 0,
    };
    memmem::find(&text[from..], end).map_or(text.len(), |at| from + at + end.len())
}

/// Counts the bytes of a quoted text that begins here; 0 for none.
pub(super) fn length_of_quoted(text: &str) -> usize {
    let mut bytes = text.bytes().enumerate();
    let Some((_, quote @ (b'\'' | b'"' | b'`'))) = bytes.next() else { return 0 };
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' if quote != b'`' => drop(bytes.next()),
            _ if byte == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Finds the word that begins the statement itself, behind the tables of its WITH or within another one.
pub(super) fn find_verb_behind(tables: &str) -> Option<String> {
    const VERBS: [&str; 8] =
        ["SELECT", "TABLE", "UPDATE", "DELETE", "INSERT", "REPLACE", "LOAD", "CALL"];
    let (mut at, mut depth) = (0, 0_u32);
    while let Some(first) = tables[at..].chars().next() {
        let rest = &tables[at..];
        let hidden = length_of_comment(rest.as_bytes()).max(length_of_quoted(rest));
        let is_in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let word = &rest[..rest.find(|c| !is_in_word(c)).unwrap_or(rest.len())];
        let verb = VERBS.iter().find(|verb| depth == 0 && verb.eq_ignore_ascii_case(word));
        // Two of them are names of functions, too.
        let calls = |verb: &str| {
            ["INSERT", "REPLACE"].contains(&verb) && rest[word.len()..].starts_with('(')
        };
        if let Some(verb) = verb.filter(|verb| !calls(verb)) {
            return Some((*verb).to_owned());
        }
        match first {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += hidden.max(word.len()).max(first.len_utf8());
    }
    None
}

/// Splits SQL at its parameters; a `?` in quotes or comments is none, as in the server.
pub(crate) fn pieces(sql: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(found) = sql[at..].find(['?', '\'', '"', '`', '#', '-', '/']) {
        at += found;
        let rest = &sql[at..];
        let hidden = length_of_comment(rest.as_bytes()).max(length_of_quoted(rest));
        if hidden == 0 && rest.starts_with('?') {
            pieces.push(&sql[start..at]);
            start = at + 1;
        }
        at += hidden.max(1);
    }
    pieces.push(&sql[start..]);
    pieces
}

pub(super) fn parameters(sql: &str) -> usize {
    pieces(sql).len() - 1
}

/// Returns whether the server would see several statements. One without an end is left to the server.
pub(crate) fn is_several(sql: &str) -> bool {
    let ended = format!("{sql}\n;");
    let mut statements = Splitter::new(ended.as_bytes(), "", usize::MAX);
    sql.contains(';')
        && matches!(statements.next_statement(), Ok(Some(_)))
        && !matches!(statements.next_statement(), Ok(None))
}

/// Refuses what may change a server from within a READ ONLY transaction, or end it. It knows no quotes and comments:
/// the server's mode and version decide where they end.
pub(crate) fn check_query(sql: &str) -> std::result::Result<(), &'static str> {
    let sql = sql.trim_ascii();
    let end = sql.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(sql.len());
    let is_first = |word: &&str| sql[..end].eq_ignore_ascii_case(word);
    if !sql.starts_with('(') && !["SELECT", "SHOW", "WITH", "CHECKSUM"].iter().any(is_first) {
        return Err("a query begins with SELECT, SHOW, WITH, CHECKSUM or (");
    }
    if sql.trim_end_matches(|c: char| c == ';' || c.is_ascii_whitespace()).contains(';') {
        return Err("a query is one statement: no ; but at its end, 0x3B for one in a text");
    }
    if has_into(sql.as_bytes()) {
        return Err("a query has no INTO, nor that word in a name or a text");
    }
    Ok(())
}

/// The server ends some tokens without a blank: `1.0INTO`, `\NINTO`.
fn has_into(sql: &[u8]) -> bool {
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
    let is_apart = |at: usize| {
        let (before, after) = (&sql[..at], &sql[at + 4..]);
        let begins = before.last().is_none_or(|byte| byte.is_ascii_digit() || !goes_on(byte));
        (begins || before.ends_with(b"\\N")) && !after.first().is_some_and(goes_on)
    };
    let mut found =
        sql.windows(4).enumerate().filter(|(_, four)| four.eq_ignore_ascii_case(b"INTO"));
    found.any(|(at, _)| is_apart(at))
}

/// The words of a statement, without comments but with versioned ones.
pub(crate) struct Words<'a> {
    pub sql: &'a [u8],
    pub at: usize,
}

impl<'a> Words<'a> {
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.sql[self.at..]
    }

    pub(crate) fn skip(&mut self) {
        loop {
            let rest = self.rest();
            self.at += match Token::at_start(rest) {
                Token::Blank => 1,
                Token::LineComment | Token::Comment => length_of_comment(rest),
                Token::Open(length) => length,
                Token::Close => 2,
                _ => return,
            };
        }
    }

    /// Takes the next word in upper case; empty if something else follows.
    pub(crate) fn word(&mut self) -> String {
        self.skip();
        let letters = self.rest().iter().take_while(|b| b.is_ascii_alphabetic() || **b == b'_');
        let word: String = letters.map(|b| char::from(b.to_ascii_uppercase())).collect();
        self.at += word.len();
        word
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(splitter.bytes_read(), text.len() as u64);
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
    fn a_question_mark_is_a_parameter_where_the_server_takes_it_for_one() {
        for (sql, wanted) in [
            ("SELECT 1", &["SELECT 1"][..]),
            ("?", &["", ""]),
            ("SELECT ?, ?", &["SELECT ", ", ", ""]),
            ("c LIKE '%?id=%' AND id=?", &["c LIKE '%?id=%' AND id=", ""]),
            (
                "SELECT 'it''s?', \"?\", `?`, 'a\\'?', ?",
                &["SELECT 'it''s?', \"?\", `?`, 'a\\'?', ", ""],
            ),
            (
                "SELECT ? -- why?\n, ? # no?\n/* or ? */",
                &["SELECT ", " -- why?\n, ", " # no?\n/* or ? */"],
            ),
            ("SELECT 4-?/?", &["SELECT 4-", "/", ""]),
            ("SELECT /*/ ? */ ?", &["SELECT /*/ ? */ ", ""]),
            ("SELECT /*!50000 ? */ 1", &["SELECT /*!50000 ", " */ 1"]),
            ("SELECT 'é?' = ?", &["SELECT 'é?' = ", ""]),
            ("SELECT '?", &["SELECT '?"]),
        ] {
            assert_eq!(pieces(sql), wanted, "{sql}");
        }
    }

    #[test]
    fn only_one_statement_that_reads_is_a_query() {
        for sql in [
            "SELECT 1",
            "\n select points FROM pointofsale;\n",
            "(SELECT 1) UNION SELECT 2",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "SHOW TABLES",
            "CHECKSUM TABLE a",
        ] {
            assert_eq!(check_query(sql), Ok(()), "{sql}");
        }
        for sql in [
            "",
            "DROP TABLE a",
            "SELECTED",
            "/*!99999 SELECT */ SHUTDOWN",
            "SET GLOBAL max_connections = 1",
            "SELECT 1; DROP TABLE a",
            "SELECT '\\'; DROP TABLE a; -- '",
            "SELECT /*!99999 ' */ 1; DROP TABLE a; /*!99999 ' */",
            "SELECT 1 into/**/OUTFILE 'a'",
            "SELECT 1.0INTO DUMPFILE 'a'",
            "SELECT \\NINTO OUTFILE 'a'",
            "SELECT 1 /*!INTO OUTFILE 'a'*/",
        ] {
            assert!(check_query(sql).is_err(), "{sql}");
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
    fn a_statement_without_end_names_its_line() {
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
            assert!(error.contains("x.sql: line 2: "), "{text}: {error}");
        }
        for text in ["SET a;\n/* never closed", "SET a;\n/*/"] {
            assert!(refused(text).contains("line 2: "), "{text}");
        }
    }

    #[test]
    fn a_statement_has_a_limit_and_memory_too() {
        let long = format!("SET a;\nINSERT INTO t VALUES ('{}');", "x".repeat(5 << 20));
        let mut splitter = Splitter::new(Cursor::new(long.as_bytes()), "x.sql", 1 << 20);
        assert!(splitter.next_statement().expect("the first").is_some());
        let error = splitter.next_statement().expect_err("too long");
        assert!(["line 2: ", "1048576"].iter().all(|of| error.to_string().contains(of)), "{error}");
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
    fn a_read_error_names_the_file_and_the_reason() {
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
            let show = |bytes| split_in(&text, bytes).map_err(|e| e.to_string());
            prop_assert_eq!(show(bytes), show(usize::MAX));
            let mut words = Words { sql: &text, at: 0 };
            let _ = (words.word(), words.rest());
        }
    }
}
