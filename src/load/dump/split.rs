//! A dump's bytes into statements. Memory is that of the longest statement, and that has a limit.
//!
//! It knows what hides a semicolon: quotes of three kinds, backslashes in two of them, comments of
//! three kinds, and versioned comments (`/*!40101 … */`), which are part of the statement.

use std::io::Read;

use memchr::{memchr, memchr_iter, memchr2, memmem};

use crate::error::{Error, Result};

/// Bytes read at a time.
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

/// Where the scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Code,
    /// Inside quotes of this kind.
    Quote(u8),
    /// `-- …` and `# …`
    LineComment,
    /// `/* … */`
    Comment,
}

/// See the module.
pub struct Splitter<R> {
    source: R,
    /// The file's name, for messages.
    name: String,
    /// The longest statement, bytes.
    limit: usize,
    buffer: Vec<u8>,
    /// The first byte that is not handed out yet.
    start: usize,
    /// Lines before it.
    line: u64,
    ended: bool,
    /// Bytes read so far.
    read: u64,
}

impl<R: Read> Splitter<R> {
    /// Of a file with this name; a statement longer than `limit` bytes is refused.
    pub fn new(source: R, name: &str, limit: usize) -> Self {
        Splitter {
            source,
            name: name.to_owned(),
            limit,
            buffer: Vec::new(),
            start: 0,
            line: 1,
            ended: false,
            read: 0,
        }
    }

    /// Bytes of the file that were handed out or skipped so far.
    pub(crate) fn taken(&self) -> u64 {
        self.read - (self.buffer.len() - self.start) as u64
    }

    /// The next statement; None at the end of the file.
    ///
    /// # Errors
    ///
    /// Data, with file and line: a statement that is too long or has no end, a file that is
    /// compressed. Failed: it cannot be read.
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
                let sql = self.buffer.get(from..from + length).unwrap_or_default();
                return Ok(Some(Statement { sql, line }));
            }
        }
    }

    /// An error at a line of this file.
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
        self.buffer.get(self.start..).unwrap_or_default()
    }

    /// Moves on, and counts the lines.
    fn advance(&mut self, bytes: usize) {
        let end = (self.start + bytes).min(self.buffer.len());
        let passed = self.buffer.get(self.start..end).unwrap_or_default();
        self.line += memchr_iter(b'\n', passed).count() as u64;
        self.start = end;
    }

    /// Reads on; whether there was more.
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
        let room = self.buffer.get_mut(from..).unwrap_or_default();
        let got = loop {
            match self.source.read(room) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                got => break got,
            }
        };
        let got = got.inspect_err(|_| self.ended = true);
        self.buffer.truncate(from + got.as_ref().copied().unwrap_or(0));
        let got = got.map_err(|e| Error::failed(format!("{}: {e}", self.name)))?;
        self.read += got as u64;
        self.ended = got == 0;
        Ok(got > 0)
    }

    /// The byte so far from here, read if need be.
    fn peek(&mut self, ahead: usize) -> Result<Option<u8>> {
        while self.start + ahead >= self.buffer.len() {
            if !self.fill()? {
                return Ok(None);
            }
        }
        Ok(self.buffer.get(self.start + ahead).copied())
    }

    /// Passes over white space and comments between statements, in bounded memory; whether a
    /// statement follows.
    fn skip_blank(&mut self) -> Result<bool> {
        loop {
            match self.peek(0)? {
                None => return Ok(false),
                Some(byte) if byte.is_ascii_whitespace() => {
                    let blank = self.unread().iter().take_while(|b| b.is_ascii_whitespace());
                    let blank = blank.count();
                    self.advance(blank);
                }
                Some(b'#') => {
                    self.skip_to(b"\n")?;
                }
                Some(b'-') if self.is_dash_comment()? => {
                    self.skip_to(b"\n")?;
                }
                Some(b'/') if self.peek(1)? == Some(b'*') && self.is_plain_comment()? => {
                    let line = self.line;
                    self.advance(2);
                    if !self.skip_to(b"*/")? {
                        return Err(self.error(line, "a comment without end"));
                    }
                }
                Some(_) => return Ok(true),
            }
        }
    }

    /// `--` counts only before white space, as in the server.
    fn is_dash_comment(&mut self) -> Result<bool> {
        Ok(self.peek(1)? == Some(b'-') && self.peek(2)?.is_none_or(|b| b.is_ascii_whitespace()))
    }

    /// Whether the comment here is for nobody; the others are SQL. MariaDB's dumps begin with a
    /// command for its client in a versioned one: `/*!999999\- enable the sandbox mode */`.
    fn is_plain_comment(&mut self) -> Result<bool> {
        let versioned = match self.peek(2)? {
            Some(b'!') => 3,
            Some(b'M') if self.peek(3)? == Some(b'!') => 4,
            _ => return Ok(true),
        };
        let mut ahead = versioned;
        while self.peek(ahead)?.is_some_and(|b| b.is_ascii_digit()) && ahead < versioned + 8 {
            ahead += 1;
        }
        Ok(self.peek(ahead)? == Some(b'\\') && self.peek(ahead + 1)? == Some(b'-'))
    }

    /// Passes over everything up to and with this text, or to the end; whether it was there.
    fn skip_to(&mut self, text: &[u8]) -> Result<bool> {
        loop {
            if let Some(at) = memmem::find(self.unread(), text) {
                self.advance(at + text.len());
                return Ok(true);
            }
            // Its beginning may be the last bytes that there are.
            let keep = (text.len() - 1).min(self.unread().len());
            self.advance(self.unread().len() - keep);
            if !self.fill()? {
                self.advance(keep);
                return Ok(false);
            }
        }
    }

    /// The length of the statement that begins here, without its semicolon.
    fn scan(&mut self) -> Result<usize> {
        let mut scan = Scan { at: 0, mode: Mode::Code, depth: 0 };
        loop {
            let found = scan.on(self.unread(), self.ended);
            self.bounded(scan.at)?;
            if found {
                return Ok(scan.at);
            }
            if !self.fill()? {
                // What was left for want of a following byte is looked at once more.
                if self.unread().len() > scan.at {
                    continue;
                }
                return Err(self
                    .error(self.line, &format!("a statement without end: {}", self.glimpse()))
                    .hint("is the file whole? mysqldump ends each statement with a semicolon"));
            }
        }
    }

    fn bounded(&self, length: usize) -> Result<()> {
        if length <= self.limit {
            return Ok(());
        }
        let what = format!("a statement of more than {} bytes: {}", self.limit, self.glimpse());
        Err(self.error(self.line, &what).hint(
            "the server takes max_allowed_packet bytes: SET GLOBAL max_allowed_packet, or dump with a smaller --net-buffer-length",
        ))
    }

    /// How the statement begins.
    fn glimpse(&self) -> String {
        let text = String::from_utf8_lossy(self.unread().get(..120).unwrap_or(self.unread()));
        format!("'{} …'", text.chars().take(40).collect::<String>().trim())
    }
}

/// How far the scan of a statement came.
struct Scan {
    at: usize,
    mode: Mode,
    /// Versioned comments that are open.
    depth: u32,
}

/// What a piece of text did to it.
enum Step {
    /// It goes on.
    On,
    /// The byte there is the semicolon that ends the statement.
    Found,
    /// Only further bytes say what these are.
    Wait,
}

impl Scan {
    /// Scans on in this text; whether the statement ends in it.
    fn on(&mut self, text: &[u8], ended: bool) -> bool {
        while let Some(rest) = text.get(self.at..).filter(|rest| !rest.is_empty()) {
            let step = match self.mode {
                Mode::Code => self.code(rest, ended),
                Mode::Quote(quote) => self.quote(rest, quote, ended),
                Mode::LineComment => {
                    self.pass(memchr(b'\n', rest).map(|found| found + 1), rest.len())
                }
                Mode::Comment => {
                    // Its end may be half there.
                    let all = rest.len() - usize::from(!ended && rest.ends_with(b"*"));
                    let found = memmem::find(rest, b"*/").map(|found| found + 2);
                    if found.is_none() && all == 0 { Step::Wait } else { self.pass(found, all) }
                }
            };
            match step {
                Step::On => {}
                Step::Found => return true,
                Step::Wait => return false,
            }
        }
        self.at = self.at.min(text.len());
        false
    }

    /// Passes over what hides everything, up to its end or all there is.
    fn pass(&mut self, end: Option<usize>, all: usize) -> Step {
        if end.is_some() {
            self.mode = Mode::Code;
        }
        self.at += end.unwrap_or(all);
        Step::On
    }

    fn code(&mut self, rest: &[u8], ended: bool) -> Step {
        let Some(skip) = rest.iter().position(|byte| SPECIAL[usize::from(*byte)]) else {
            self.at += rest.len();
            return Step::On;
        };
        self.at += skip;
        let rest = rest.get(skip..).unwrap_or_default();
        // A comment's beginning is known by its fourth byte at the latest.
        if !ended && rest.len() < 4 && matches!(rest, [b'-' | b'/' | b'*', ..]) {
            return Step::Wait;
        }
        match rest {
            [b';', ..] if self.depth == 0 => return Step::Found,
            [quote @ (b'\'' | b'"' | b'`'), ..] => self.enter(1, Mode::Quote(*quote)),
            [b'#', ..] => self.enter(1, Mode::LineComment),
            [b'-', b'-'] => self.enter(2, Mode::LineComment),
            [b'-', b'-', next, ..] if next.is_ascii_whitespace() => {
                self.enter(2, Mode::LineComment);
            }
            [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] => {
                self.depth += 1;
                self.at += 3;
            }
            [b'/', b'*', ..] => self.enter(2, Mode::Comment),
            [b'*', b'/', ..] if self.depth > 0 => {
                self.depth -= 1;
                self.at += 2;
            }
            _ => self.at += 1,
        }
        Step::On
    }

    fn enter(&mut self, bytes: usize, mode: Mode) {
        self.at += bytes;
        self.mode = mode;
    }

    fn quote(&mut self, rest: &[u8], quote: u8, ended: bool) -> Step {
        let found = if quote == b'`' { memchr(quote, rest) } else { memchr2(quote, b'\\', rest) };
        let Some(found) = found else {
            self.at += rest.len();
            return Step::On;
        };
        self.at += found;
        if rest.get(found) == Some(&quote) {
            self.enter(1, Mode::Code);
        } else if found + 1 < rest.len() || ended {
            // The byte after a backslash says nothing, once it is there.
            self.at += 2;
        } else {
            return Step::Wait;
        }
        Step::On
    }
}

/// Bytes that mean something outside quotes and comments.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let bytes = b"'\"`;#-/*";
    let mut i = 0;
    while i < bytes.len() {
        special[bytes[i] as usize] = true;
        i += 1;
    }
    special
};

#[cfg(test)]
mod tests;
