//! A dump's bytes into statements. Memory is that of the longest statement, and that has a limit.
//!
//! It knows what hides a semicolon: quotes of three kinds, backslashes in two of them, comments of
//! three kinds, and versioned comments (`/*!40101 … */`), which are part of the statement.

use std::io::{ErrorKind, Read};

use memchr::{memchr, memchr_iter, memchr2};

use crate::error::{Error, Result};

const READ: usize = 256 << 10;

/// Bytes that tell a compressed file, or a byte order mark.
const MAGIC_MAX: usize = 5;

/// One statement without its semicolon.
#[derive(Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Its bytes, in whatever character set the file has.
    pub sql: &'a [u8],
    /// The line that it begins on, from 1.
    pub line: u64,
}

pub struct Splitter<R> {
    source: R,
    name: String,
    limit: usize,
    buffer: Vec<u8>,
    /// The first byte that is not handed out yet.
    start: usize,
    line: u64,
    ended: bool,
    read: u64,
}

impl<R: Read> Splitter<R> {
    /// Begins with a file of this name; a statement longer than `limit` bytes is refused.
    pub fn new(source: R, name: &str, limit: usize) -> Self {
        let (name, buffer) = (name.to_owned(), Vec::new());
        Splitter { source, name, limit, buffer, start: 0, line: 1, ended: false, read: 0 }
    }

    /// Bytes of the file that were handed out or skipped so far.
    pub(crate) fn taken(&self) -> u64 {
        self.read - (self.buffer.len() - self.start) as u64
    }

    /// Finds the next statement; None at the end of the file.
    pub fn next_statement(&mut self) -> Result<Option<Statement<'_>>> {
        if self.read == 0 {
            self.open()?;
        }
        loop {
            if !self.skip_blank()? {
                return Ok(None);
            }
            let length = self.scan()?;
            let (from, line) = (self.start, self.line);
            self.advance(length + 1);
            if length > 0 {
                return Ok(Some(Statement { sql: &self.buffer[from..from + length], line }));
            }
        }
    }

    pub(crate) fn error(&self, line: u64, what: &str) -> Error {
        Error::data(format!("{}: line {line}: {what}", self.name))
    }

    /// The first bytes tell what is no text.
    fn open(&mut self) -> Result<()> {
        // A pipe may give less at a time than what tells them.
        while self.buffer.len() < MAGIC_MAX && self.fill()? {}
        let magic: [&[u8]; 4] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ"];
        if magic.iter().any(|magic| self.buffer.starts_with(magic)) {
            return Err(Error::data(format!("{}: the file is compressed", self.name))
                .hint("zcat FILE | loadgen load --from-dump -"));
        }
        // The byte order mark of UTF-8.
        if self.buffer.starts_with(b"\xef\xbb\xbf") {
            self.start = 3;
        }
        Ok(())
    }

    fn unread(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    fn advance(&mut self, bytes: usize) {
        self.line += memchr_iter(b'\n', &self.unread()[..bytes]).count() as u64;
        self.start += bytes;
    }

    fn fill(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        // What is handed out makes room: each byte is moved once at most for each that is read.
        if self.start > 0 && self.start >= self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let from = self.buffer.len();
        self.buffer.resize(from + READ, 0);
        let got = loop {
            match self.source.read(&mut self.buffer[from..]) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                got => break got,
            }
        };
        let bytes = *got.as_ref().unwrap_or(&0);
        self.buffer.truncate(from + bytes);
        self.read += bytes as u64;
        self.ended = bytes == 0;
        got.map(|bytes| bytes > 0).map_err(|e| Error::failed(format!("{}: {e}", self.name)))
    }

    fn peek(&mut self, ahead: usize) -> Result<Option<u8>> {
        while self.unread().len() <= ahead && self.fill()? {}
        Ok(self.unread().get(ahead).copied())
    }

    /// Passes over everything between statements; whether one follows.
    fn skip_blank(&mut self) -> Result<bool> {
        loop {
            match self.peek(0)? {
                None => return Ok(false),
                Some(byte) if byte.is_ascii_whitespace() => {
                    let blank = self.unread().iter().take_while(|b| b.is_ascii_whitespace());
                    self.advance(blank.count());
                }
                Some(b'#') => {
                    self.skip_past(b'\n')?;
                }
                Some(b'-') if self.is_dash_comment(0)? => {
                    self.skip_past(b'\n')?;
                }
                Some(b'/') if self.is_plain_comment()? => {
                    let line = self.line;
                    self.advance(2);
                    loop {
                        if !self.skip_past(b'*')? {
                            return Err(self.error(line, "a comment without end"));
                        }
                        if self.peek(0)? == Some(b'/') {
                            self.advance(1);
                            break;
                        }
                    }
                }
                Some(_) => return Ok(true),
            }
        }
    }

    /// Passes over everything up to and with this byte, or to the end; whether it was there.
    fn skip_past(&mut self, byte: u8) -> Result<bool> {
        loop {
            if let Some(at) = memchr(byte, self.unread()) {
                self.advance(at + 1);
                return Ok(true);
            }
            self.advance(self.unread().len());
            if !self.fill()? {
                return Ok(false);
            }
        }
    }

    /// `--` counts only before white space, as in the server.
    fn is_dash_comment(&mut self, at: usize) -> Result<bool> {
        let dashes = self.peek(at)? == Some(b'-') && self.peek(at + 1)? == Some(b'-');
        Ok(dashes && self.peek(at + 2)?.is_none_or(|b| b.is_ascii_whitespace()))
    }

    /// The length of what begins a versioned comment so far from here, whose inside is SQL.
    fn versioned(&mut self, at: usize) -> Result<Option<usize>> {
        Ok(match (self.peek(at + 2)?, self.peek(at + 3)?) {
            (Some(b'!'), _) => Some(3),
            (Some(b'M'), Some(b'!')) => Some(4),
            _ => None,
        })
    }

    /// Whether a comment is here, and for nobody. MariaDB's dumps begin with a command for its client
    /// in a versioned one: `/*!999999\- enable the sandbox mode */`.
    fn is_plain_comment(&mut self) -> Result<bool> {
        if self.peek(1)? != Some(b'*') {
            return Ok(false);
        }
        let Some(versioned) = self.versioned(0)? else { return Ok(true) };
        let mut ahead = versioned;
        while self.peek(ahead)?.is_some_and(|b| b.is_ascii_digit()) && ahead < versioned + 8 {
            ahead += 1;
        }
        Ok(self.peek(ahead)? == Some(b'\\') && self.peek(ahead + 1)? == Some(b'-'))
    }

    /// The length of the statement that begins here, without its semicolon.
    fn scan(&mut self) -> Result<usize> {
        // Versioned comments that are open.
        let (mut at, mut depth) = (0, 0_u32);
        loop {
            at = self.find(at, |text| text.iter().position(|byte| is_special(*byte)))?;
            let byte = self.unread()[at];
            at = match byte {
                b';' if depth == 0 => return Ok(at),
                quote @ (b'\'' | b'"' | b'`') => self.end_of_quote(at + 1, quote)?,
                b'#' => self.find(at, |text| memchr(b'\n', text))? + 1,
                b'-' if self.is_dash_comment(at)? => self.find(at, |text| memchr(b'\n', text))? + 1,
                b'/' if self.peek(at + 1)? == Some(b'*') => match self.versioned(at)? {
                    Some(length) => {
                        depth += 1;
                        at + length
                    }
                    None => self.end_of_comment(at + 2)?,
                },
                b'*' if depth > 0 && self.peek(at + 1)? == Some(b'/') => {
                    depth -= 1;
                    at + 2
                }
                _ => at + 1,
            };
        }
    }

    /// Finds a place in the statement from here on; it is an error if the file ends before.
    fn find(&mut self, from: usize, find: impl Fn(&[u8]) -> Option<usize>) -> Result<usize> {
        let mut from = from;
        loop {
            let rest = self.unread().get(from..).unwrap_or_default();
            let found = find(rest).map(|found| from + found);
            from = from.max(self.unread().len());
            if found.unwrap_or(from) > self.limit {
                let what =
                    format!("a statement of more than {} bytes: {}", self.limit, self.glimpse());
                return Err(self.error(self.line, &what).hint(
                    "the server takes max_allowed_packet bytes: SET GLOBAL max_allowed_packet, or \
                     dump with a smaller --net-buffer-length",
                ));
            }
            if let Some(found) = found {
                return Ok(found);
            }
            if !self.fill()? {
                return Err(self
                    .error(self.line, &format!("a statement without end: {}", self.glimpse()))
                    .hint("is the file whole? mysqldump ends each statement with a semicolon"));
            }
        }
    }

    /// The byte after a backslash says nothing, but in a name.
    fn end_of_quote(&mut self, from: usize, quote: u8) -> Result<usize> {
        let mut at = from;
        loop {
            at = self.find(at, |text| match quote {
                b'`' => memchr(quote, text),
                _ => memchr2(quote, b'\\', text),
            })?;
            if self.unread()[at] == quote {
                return Ok(at + 1);
            }
            at += 2;
        }
    }

    fn end_of_comment(&mut self, from: usize) -> Result<usize> {
        let mut at = from;
        loop {
            at = self.find(at, |text| memchr(b'*', text))? + 1;
            if self.peek(at)? == Some(b'/') {
                return Ok(at + 1);
            }
        }
    }

    fn glimpse(&self) -> String {
        let text = String::from_utf8_lossy(&self.unread()[..self.unread().len().min(120)]);
        format!("'{} …'", text.chars().take(40).collect::<String>().trim())
    }
}

/// Bytes that mean something outside quotes and comments.
fn is_special(byte: u8) -> bool {
    matches!(byte, b'\'' | b'"' | b'`' | b';' | b'#' | b'-' | b'/' | b'*')
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
}
