//! Packets: their framing, the commands of a client in bounded memory, and prebuilt answers with the
//! choice between them by a statement's text.

use std::io;

use bytes::{Buf, BytesMut};
use mysql_common::io::BufMutExt;
use mysql_common::proto::codec::packet_to_chunks;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::script::{Action, Answer, Reply, Script, SqlError, contains, looked_at};
use crate::workload::sql::Words;

/// The longest payload of one packet; a longer one goes on in the next.
pub(crate) const PAYLOAD_MAX: usize = 0xFF_FFFF;
pub(crate) const HEADER: usize = 4;

/// `SERVER_STATUS_AUTOCOMMIT`.
pub(crate) const AUTOCOMMIT: u16 = 2;
/// `utf8mb4_general_ci`.
pub(crate) const CHARSET: u8 = 45;

pub(crate) const LOCAL: u8 = 0xFB;

pub(crate) const KEPT: usize = 256 << 10;
/// First size of a read buffer: 10,000 connections must fit in memory.
const SMALL: usize = 1 << 10;

/// Frames payloads, in several packets if needed, numbered from `sequence`.
pub(crate) fn packets<T: AsRef<[u8]>>(
    mut sequence: u8,
    payloads: impl IntoIterator<Item = T>,
) -> Vec<u8> {
    let mut packets = BytesMut::new();
    for payload in payloads {
        sequence = packet_to_chunks(sequence, &mut payload.as_ref(), &mut packets);
    }
    packets.into()
}

pub(crate) fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    packets(sequence, [payload])
}

pub(crate) fn header(bytes: &[u8]) -> Option<(usize, u8)> {
    let &[a, b, c, sequence] = bytes.first_chunk::<HEADER>()?;
    Some((u32::from_le_bytes([a, b, c, 0]) as usize, sequence))
}

fn int(n: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_lenenc_int(n);
    bytes
}

fn ok_like(mark: u8, affected: u64) -> Vec<u8> {
    let [low, high] = AUTOCOMMIT.to_le_bytes();
    // Last insert id, status, warnings.
    [&[mark], int(affected).as_slice(), &[0, low, high, 0, 0]].concat()
}

pub(crate) fn ok(affected: u64) -> Vec<u8> {
    ok_like(0x00, affected)
}

/// Makes the end of columns (never after `CLIENT_DEPRECATE_EOF`) or of rows.
pub(crate) fn eof(deprecate_eof: bool) -> Vec<u8> {
    if deprecate_eof {
        return ok_like(0xFE, 0);
    }
    let [low, high] = AUTOCOMMIT.to_le_bytes();
    vec![0xFE, 0, 0, low, high] // 0, 0: warnings
}

fn column(name: &str) -> Vec<u8> {
    const STRING: u8 = 0xFE;
    let mut out = Vec::new();
    // Catalog, schema, table twice, name twice.
    for text in ["def", "", "", "", name, name] {
        out.put_lenenc_str(text.as_bytes());
    }
    let (charset, length) = (u16::from(CHARSET).to_le_bytes(), 480_u32.to_le_bytes());
    // Type, flags, decimals and filler come last.
    [&out, [0x0C].as_slice(), &charset, &length, &[STRING, 0, 0, 0, 0, 0]].concat()
}

/// Makes a row of the text or binary protocol; `None` is NULL.
fn row(values: &[Option<Vec<u8>>], binary: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if binary {
        // A zero, and a bitmap of NULLs that starts at bit 2.
        out.resize(1 + (values.len() + 2).div_ceil(8), 0);
    }
    for (i, value) in values.iter().enumerate() {
        match value {
            Some(bytes) => out.put_lenenc_str(bytes),
            None if binary => out[1 + (i + 2) / 8] |= 1 << ((i + 2) % 8),
            None => out.push(0xFB),
        }
    }
    out
}

/// The read buffer of a connection: bytes in, whole commands out.
#[derive(Default)]
pub(crate) struct Input {
    buffer: BytesMut,
    /// The size of a read that filled the buffer: more is likely waiting.
    crowded: usize,
    /// Bytes left of the current packet, whether another one continues it, and its number.
    left: usize,
    more: bool,
    sequence: u8,
    /// The command so far, at most [`KEPT`] bytes of it.
    command: Vec<u8>,
}

impl Input {
    /// An error at the client's end. The buffer grows with arriving bytes, never with what a header announces.
    pub(crate) async fn fill(&mut self, socket: &mut TcpStream) -> io::Result<()> {
        self.buffer.reserve((2 * self.crowded).clamp(SMALL, KEPT));
        let room = self.buffer.capacity() - self.buffer.len();
        let n = socket.read_buf(&mut self.buffer).await?;
        self.crowded = if n == room { n } else { 0 };
        if n == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Passes on the available part of a command; at its end returns the number of its last packet.
    pub(crate) fn take(&mut self, mut part: impl FnMut(&[u8])) -> Option<u8> {
        loop {
            if self.left == 0 {
                let (length, sequence) = header(&self.buffer)?;
                self.buffer.advance(HEADER);
                (self.left, self.more, self.sequence) = (length, length == PAYLOAD_MAX, sequence);
            }
            let here = self.left.min(self.buffer.len());
            part(&self.buffer[..here]);
            self.buffer.advance(here);
            self.left -= here;
            if self.left > 0 || !self.more {
                return (self.left == 0).then_some(self.sequence);
            }
        }
    }

    /// Takes the next complete command with the number of its last packet.
    pub(crate) fn next_command(&mut self) -> Option<(u8, &[u8])> {
        let mut command = std::mem::take(&mut self.command);
        if self.left == 0 && !self.more {
            command.clear();
        }
        let ended = self.take(|part| {
            let wanted = part.len().min(KEPT - command.len());
            command.extend_from_slice(&part[..wanted]);
        });
        self.command = command;
        Some((ended?, &self.command))
    }
}

/// The index of a prebuilt answer; the script's own come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerKind(usize);

impl AnswerKind {
    pub(crate) const CANNED: AnswerKind = AnswerKind(0);
    const VALUE: AnswerKind = AnswerKind(1);
    const EMPTY: AnswerKind = AnswerKind(2);
    pub(crate) const CHANGED: AnswerKind = AnswerKind(3);
    const DONE: AnswerKind = AnswerKind(4);
    const NO_LOCAL: AnswerKind = AnswerKind(5);
    const OWN: usize = 6;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) binary: bool,
    pub(crate) deprecate_eof: bool,
}

fn answer_packets(reply: &Reply, Dialect { binary, deprecate_eof }: Dialect) -> Vec<u8> {
    match reply {
        Reply::Ok { affected } => packet(1, &ok(*affected)),
        Reply::Error(error) => packet(1, &error.payload(false)),
        Reply::LocalInfile { file } => packet(1, &[&[LOCAL], file.as_bytes()].concat()),
        Reply::Rows { columns, rows } => {
            let mut payloads = vec![int(columns.len() as u64)];
            payloads.extend(columns.iter().map(|name| column(name)));
            payloads.extend((!deprecate_eof).then(|| eof(false)));
            payloads.extend(rows.iter().map(|values| row(values, binary)));
            payloads.push(eof(deprecate_eof));
            packets(1, payloads)
        }
    }
}

pub(crate) struct Replies {
    content: Vec<u8>,
    texts: Vec<Vec<u8>>,
    /// The canned row, the others by their [`AnswerKind`], then the script's.
    replies: Vec<Reply>,
    /// Each as text, text without EOF, binary, binary without EOF.
    bytes: Vec<[Vec<u8>; 4]>,
}

impl Replies {
    pub(crate) fn new(script: &Script) -> Self {
        let row = vec![Some(script.row.content.clone())];
        let local = SqlError::new(
            3948,
            "42000",
            "Loading local data is disabled; this must be enabled on both the client and server sides",
        );
        let fixed: [Reply; AnswerKind::OWN] = [
            Reply::Rows {
                columns: vec![script.row.column.clone()],
                rows: vec![row; script.row.count],
            },
            Answer::value("", "value", "1").reply,
            Answer::rows("", &["Variable_name", "Value"], &[]).reply,
            Reply::Ok { affected: 1 },
            Reply::Ok { affected: 0 },
            Reply::Error(local),
        ];
        let own = script.answers.iter().map(|answer| answer.reply.clone());
        let replies: Vec<Reply> = fixed.into_iter().chain(own).collect();
        let in_all_dialects = |reply: &Reply| {
            [(false, false), (false, true), (true, false), (true, true)].map(
                |(binary, deprecate_eof)| answer_packets(reply, Dialect { binary, deprecate_eof }),
            )
        };
        let text = |answer: &Answer| answer.matches.to_ascii_lowercase().into_bytes();
        Replies {
            content: script.row.content.clone(),
            texts: script.answers.iter().map(text).collect(),
            bytes: replies.iter().map(in_all_dialects).collect(),
            replies,
        }
    }

    pub(crate) fn bytes(&self, plan: AnswerKind, dialect: Dialect) -> &[u8] {
        let at = 2 * usize::from(dialect.binary) + usize::from(dialect.deprecate_eof);
        &self.bytes[plan.0][at]
    }

    /// Returns whether an answer begins with [`ERROR`] or [`LOCAL`].
    pub(crate) fn is(&self, plan: AnswerKind, first: u8) -> bool {
        self.bytes[plan.0][0][HEADER] == first
    }

    fn columns(&self, plan: AnswerKind) -> &[String] {
        match &self.replies[plan.0] {
            Reply::Rows { columns, .. } => columns,
            _ => &[],
        }
    }

    pub(crate) fn prepare_answer(
        &self,
        plan: AnswerKind,
        id: u32,
        parameters: u16,
        deprecate_eof: bool,
    ) -> Vec<u8> {
        let columns = self.columns(plan);
        let count = (columns.len() as u16).to_le_bytes();
        // Filler and warnings come last.
        let mut payloads = vec![
            [&[0], id.to_le_bytes().as_slice(), &count, &parameters.to_le_bytes(), &[0; 3]]
                .concat(),
        ];
        for names in [&vec!["?".to_owned(); parameters.into()], columns] {
            payloads.extend(names.iter().map(|name| column(name)));
            payloads.extend((!names.is_empty() && !deprecate_eof).then(|| eof(false)));
        }
        packets(1, payloads)
    }

    /// Makes the answer as a fault changes it; `None` for faults that keep its content.
    pub(crate) fn faulty_answer(
        &self,
        action: &Action,
        plan: AnswerKind,
        dialect: Dialect,
    ) -> Option<Vec<u8>> {
        // The same columns with other rows, each of one value.
        let rows = |content: &[u8], count| {
            let columns = match self.columns(plan) {
                [] => self.columns(AnswerKind::CANNED).to_vec(),
                columns => columns.to_vec(),
            };
            let row = vec![Some(content.to_vec()); columns.len()];
            answer_packets(&Reply::Rows { columns, rows: vec![row; count] }, dialect)
        };
        Some(match action {
            Action::RowsInstead(count) => rows(&self.content, *count),
            Action::RowContent(content) => rows(content, 1),
            Action::OversizedRow(size) => rows(&vec![b'x'; *size], 1),
            Action::AffectedInstead(n) => packet(1, &ok(*n)),
            Action::HugeColumnCount(n) => packet(1, &int(*n)),
            _ => return None,
        })
    }

    pub(crate) fn plan(&self, sql: &[u8]) -> AnswerKind {
        let text = looked_at(sql);
        if let Some(i) = self.texts.iter().position(|answer| contains(text, answer)) {
            return AnswerKind(AnswerKind::OWN + i);
        }
        let mut words = Words { sql: text, at: 0 };
        let mut first = words.word();
        while first.is_empty() && words.rest().starts_with(b"(") {
            words.at += 1;
            first = words.word();
        }
        match first.as_str() {
            "SELECT" | "WITH" => select(words.rest()),
            "UPDATE" | "INSERT" | "DELETE" | "REPLACE" => AnswerKind::CHANGED,
            "SHOW" | "DESCRIBE" | "DESC" | "EXPLAIN" => AnswerKind::EMPTY,
            "LOAD" => AnswerKind::NO_LOCAL,
            _ => AnswerKind::DONE,
        }
    }
}

fn select(text: &[u8]) -> AnswerKind {
    const SYSTEM: [&[u8]; 4] = [b"information_schema", b"performance_schema", b"mysql.", b"sys."];
    let from = text.split(u8::is_ascii_whitespace).any(|w| w.eq_ignore_ascii_case(b"from"));
    if !from {
        AnswerKind::VALUE
    } else if SYSTEM.iter().any(|schema| contains(text, schema)) {
        AnswerKind::EMPTY
    } else {
        AnswerKind::CANNED
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::Row;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nulls_are_marked_in_both_protocols() {
        let values = [None, Some(b"ab".to_vec())];
        assert_eq!(row(&values, false), [0xFB, 2, b'a', b'b']);
        assert_eq!(row(&values, true), [0, 0b100, 2, b'a', b'b']);
    }

    /// Feeds bytes in pieces, as reads of that size would, and collects the commands.
    fn commands(bytes: &[u8], piece: usize) -> Vec<(usize, u8, u8)> {
        let (mut input, mut seen) = (Input::default(), Vec::new());
        for read in bytes.chunks(piece) {
            input.buffer.extend_from_slice(read);
            while let Some((sequence, payload)) = input.next_command() {
                seen.push((payload.len(), payload.first().copied().unwrap_or(0), sequence));
            }
            assert!(input.buffer.len() < HEADER);
        }
        seen
    }

    #[test]
    fn commands_come_out_whole_however_they_arrive() {
        let mut bytes = Vec::new();
        for (byte, size) in [(1, 1), (2, 0), (3, 5_000), (4, KEPT), (5, KEPT + 1), (6, 3)] {
            bytes.extend(packet(byte, &vec![byte; size]));
        }
        let expected = [(1, 1, 1), (0, 0, 2), (5_000, 3, 3), (KEPT, 4, 4), (KEPT, 5, 5), (3, 6, 6)];
        for piece in [1, 7, 1_000, usize::MAX] {
            assert_eq!(commands(&bytes, piece), expected, "pieces of {piece}");
        }
    }

    #[test]
    fn a_command_of_several_packets_is_one() {
        let mut bytes = packet(0, &vec![9; PAYLOAD_MAX + 10]);
        bytes.extend(packet(0, &vec![8; PAYLOAD_MAX]));
        bytes.extend(packet(0, b"x"));
        let expected = [(KEPT, 9, 1), (KEPT, 8, 1), (1, b'x', 0)];
        assert_eq!(commands(&bytes, 100_000), expected);
    }

    /// The payloads' first bytes and the sequence numbers.
    fn outline(mut bytes: &[u8]) -> Vec<(u8, u8)> {
        let mut seen = Vec::new();
        while let Some((length, sequence)) = header(bytes) {
            seen.push((bytes[HEADER], sequence));
            bytes = &bytes[HEADER + length..];
        }
        seen
    }

    #[test]
    fn result_sets_follow_the_dialect() {
        let replies = Replies::new(&Script::default());
        let of = |binary, deprecate_eof| {
            outline(replies.bytes(AnswerKind::CANNED, Dialect { binary, deprecate_eof }))
        };
        assert_eq!(of(false, false), [(1, 1), (3, 2), (0xFE, 3), (119, 4), (0xFE, 5)]);
        assert_eq!(of(false, true), [(1, 1), (3, 2), (119, 3), (0xFE, 4)]);
        assert_eq!(of(true, true), [(1, 1), (3, 2), (0, 3), (0xFE, 4)]);
    }

    #[test]
    fn a_prepared_select_describes_parameters_and_columns() {
        let replies = Replies::new(&Script::default());
        let full = outline(&replies.prepare_answer(AnswerKind::CANNED, 7, 2, false));
        assert_eq!(full, [(0, 1), (3, 2), (3, 3), (0xFE, 4), (3, 5), (0xFE, 6)]);
        let lean = outline(&replies.prepare_answer(AnswerKind::CHANGED, 7, 1, true));
        assert_eq!(lean, [(0, 1), (3, 2)]);
    }

    #[test]
    fn a_script_without_rows_still_twists() {
        let row = Row { count: 0, ..Row::default() };
        let replies = Replies::new(&Script { row, ..Script::default() });
        let dialect = Dialect { binary: true, deprecate_eof: true };
        let bytes = replies.faulty_answer(&Action::RowsInstead(2), AnswerKind::CHANGED, dialect);
        assert_eq!(outline(&bytes.unwrap()).len(), 5);
        assert_eq!(replies.faulty_answer(&Action::Close, AnswerKind::CHANGED, dialect), None);
    }

    fn planned(sql: &str) -> AnswerKind {
        let answers = ["@@version", "c=?"].map(|text| Answer::ok(text, 0)).to_vec();
        Replies::new(&Script { answers, ..Script::default() }).plan(sql.as_bytes())
    }

    #[test]
    fn the_first_word_decides_unless_an_answer_matches() {
        assert_eq!(planned("SELECT c FROM sbtest1 WHERE id=?"), AnswerKind::CANNED);
        assert_eq!(planned(" /* x */ (select c\nfrom t)"), AnswerKind::CANNED);
        assert_eq!(planned("SELECT 1"), AnswerKind::VALUE);
        assert_eq!(planned("SELECT 'fromage'"), AnswerKind::VALUE);
        assert_eq!(planned("SELECT x FROM information_schema.tables"), AnswerKind::EMPTY);
        assert_eq!(planned("show status"), AnswerKind::EMPTY);
        assert_eq!(planned("UPDATE t SET k=k+1 WHERE id=?"), AnswerKind::CHANGED);
        assert_eq!(planned("LOAD DATA LOCAL INFILE 'x' INTO TABLE t"), AnswerKind::NO_LOCAL);
        assert_eq!(planned("BEGIN"), AnswerKind::DONE);
        assert_eq!(planned(""), AnswerKind::DONE);
        assert_eq!(planned("/*"), AnswerKind::DONE);
        assert_eq!(planned("select @@VERSION"), AnswerKind(AnswerKind::OWN));
        assert_eq!(planned("UPDATE t SET C=? WHERE id=?"), AnswerKind(AnswerKind::OWN + 1));
    }

    #[test]
    fn only_the_beginning_is_matched() {
        let far = format!("INSERT {} @@version", "x".repeat(4096));
        assert_eq!(planned(&far), AnswerKind::CHANGED);
    }

    proptest! {
        #[test]
        fn no_statement_panics(sql in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Replies::new(&Script::default()).plan(&sql);
        }
    }
}
