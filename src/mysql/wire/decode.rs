//! Decodes answers: only what a client needs of them, whatever a server sends. No size that a server
//! sends allocates memory; rows and definitions are walked over as they come.

use mysql_async::Error as Driver;
use mysql_common::io::ParseBuf;
use mysql_common::packets::StmtPacket;

use super::frame::PACKET_MAX;
use crate::mysql::errors::{Asked, Failure, server_error};

/// Longest part of a payload that is examined, bytes; readers must be able to hold it. It covers the
/// end of a column's definition, a message, and the first cell behind its row's bitmap.
pub const HEAD_MAX: usize = 32 << 10;
const CELL_MAX: usize = 4 << 10;
/// Bytes of rows that are kept where they are wanted, at most.
const ROWS_MAX: usize = 256 << 20;
/// Results of an answer that are kept where rows are wanted, at most.
const RESULTS_MAX: usize = 4096;
/// Bytes of memory that are kept for the next rows.
const ROWS_KEPT: usize = 64 << 10;
/// Longest definitions that are known again, bytes.
const KNOWN_MAX: usize = 512;

/// First bytes: NULL or a request for a file, the end of rows or of definitions, an error.
const NULL: u8 = 0xfb;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;
/// `SERVER_MORE_RESULTS_EXISTS`.
const MORE: u16 = 8;
const NOT_NULL: u8 = 1;
const UNSIGNED: u8 = 0x20;

/// A column's type and the lower half of its flags.
type Column = [u8; 2];
/// Stands for a definition that is too long to read: no server has this type.
const UNKNOWN: Column = [0x7f, 0];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answer {
    pub rows: u64,
    pub more_rows: u64,
    pub affected: u64,
    pub nulls: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Want {
    #[default]
    Count,
    /// Also the first cell of the first row.
    First,
    /// Also each result by itself; of an answer in text all rows.
    Rows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerForm {
    #[default]
    Text,
    Binary,
    Prepare,
}

/// One result of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeptResult {
    /// 0 where it is an OK.
    pub columns: usize,
    pub rows: u64,
    pub affected: u64,
    /// The place of its first row, where they are kept.
    pub begin: usize,
    end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    First,
    /// Definitions still to come, with their end that old servers send.
    Columns(u32),
    Rows,
    Done,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is of its own kind")]
pub struct Decoder {
    pub(super) deprecate_eof: bool,
    kind: AnswerForm,
    want: Want,
    state: State,
    /// The next packet's number, and whether the last one had another: then the server sent its error
    /// unasked and ends the session.
    number: u8,
    pub out_of_turn: bool,
    /// Bytes of the packet still to come, and whether its payload goes on in the next.
    skip: usize,
    goes_on: bool,
    results: u64,
    columns: Vec<Column>,
    /// The bytes that `columns` come from, up to the first row: a statement has the same each time, and
    /// comparing costs less than reading. Empty where they were not read as a whole.
    known: Vec<u8>,
    column: Column,
    cell: Vec<u8>,
    found: Option<usize>,
    /// The results that are wanted, and their rows, each with its length before it.
    kept_results: Vec<KeptResult>,
    kept: Vec<u8>,
    /// A part could not be kept.
    is_cut: bool,
    /// The server's number of the statement that was prepared, and its parameters.
    pub statement: u32,
    pub parameters: u16,
    answer: Answer,
    outcome: Option<Asked<Answer>>,
}

impl Decoder {
    pub fn new(deprecate_eof: bool) -> Decoder {
        Decoder { deprecate_eof, ..Decoder::default() }
    }

    /// Begins an answer; `number` is that of its first packet.
    pub fn expect(&mut self, kind: AnswerForm, want: Want, number: u8) {
        (self.kind, self.want, self.number) = (kind, want, number);
        self.state = State::First;
        (self.out_of_turn, self.goes_on, self.skip) = (false, false, 0);
        (self.results, self.answer) = (0, Answer::default());
        // Rows outlive what is prepared between them.
        if kind != AnswerForm::Prepare && (self.is_cut || !self.kept_results.is_empty()) {
            self.is_cut = false;
            self.kept_results.clear();
            self.free_rows();
        }
        (self.column, self.found, self.statement) = (Column::default(), None, 0);
        self.outcome = None;
    }

    /// Uses bytes up to the answer's end, and returns how many. The others, before that end at most
    /// [`HEAD_MAX`] and a header, are to be offered again with more.
    pub fn take(&mut self, bytes: &[u8]) -> Asked<usize> {
        let begins = self.state == State::First && self.results == 0 && self.skip == 0;
        let mut rest = if begins { self.skip_known(bytes) } else { bytes };
        loop {
            let here = self.skip.min(rest.len());
            rest = &rest[here..];
            self.skip -= here;
            if self.skip > 0 || self.is_whole() {
                break;
            }
            let Some((&[a, b, c, number], payload)) = rest.split_first_chunk() else { break };
            let length = u32::from_le_bytes([a, b, c, 0]) as usize;
            self.out_of_turn = number != self.number;
            let head = &payload[..length.min(payload.len()).min(HEAD_MAX)];
            let head: &[u8] = if self.goes_on { &[] } else { head };
            if head.len() < self.bytes_needed(head.first()).min(length) {
                break;
            }
            if let Err(why) = self.packet(head, length) {
                let first = head.first().map_or("none".to_owned(), |first| format!("{first:02x}"));
                let (state, expected) = (self.state, self.number);
                return Err(Failure::lost(format!(
                    "{why}: packet {number} ({expected} expected) of {length} bytes, first byte \
                     {first}, state {state:?}"
                )));
            }
            self.number = number.wrapping_add(1);
            self.goes_on = length == PACKET_MAX;
            self.skip = length;
            rest = payload;
            if begins && self.known.is_empty() && self.state == State::Rows && self.results == 0 {
                let end = bytes.len() - rest.len() + length;
                let definitions = bytes.get(..end).filter(|_| end <= KNOWN_MAX);
                self.known.extend_from_slice(definitions.unwrap_or_default());
            }
        }
        Ok(bytes.len() - rest.len())
    }

    /// Skips the definitions at an answer's begin if they are those of the last answer.
    #[inline]
    fn skip_known<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let rest = match bytes.strip_prefix(&self.known[..]) {
            Some(rest) if self.known.get(3) == Some(&self.number) => rest,
            _ => return bytes,
        };
        if self.kind == AnswerForm::Prepare {
            return bytes;
        }
        if self.kind == AnswerForm::Binary && self.want == Want::First {
            self.column = self.columns[0];
        }
        let packets = self.columns.len() + 1 + usize::from(!self.deprecate_eof);
        self.number = self.number.wrapping_add(packets as u8);
        self.state = State::Rows;
        self.keep_result(self.columns.len(), 0);
        rest
    }

    pub fn outcome(&mut self) -> Option<Asked<Answer>> {
        if self.is_whole() { self.outcome.take() } else { None }
    }

    /// Returns the first cell of the first row as it was sent, at most 4 KiB of it.
    pub fn first(&self) -> Option<&[u8]> {
        self.found.map(|length| &self.cell[..length])
    }

    pub fn number(&self) -> Option<u64> {
        let (cell, [kind, flags]) = (self.first()?, self.column);
        match kind {
            // Also of the text protocol, whose definitions are skipped; CHAR may be padded.
            0x00 | 0x0f | 0xf5..=0xff => {
                std::str::from_utf8(cell.trim_ascii_end()).ok()?.parse().ok()
            }
            0x01..=0x03 | 0x08 | 0x09 | 0x0d => {
                let negative = cell.last()? & 0x80 != 0 && flags & UNSIGNED == 0;
                let number = cell.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
                (!negative).then_some(number)
            }
            _ => None,
        }
    }

    fn is_whole(&self) -> bool {
        self.state == State::Done && self.skip == 0 && !self.goes_on
    }

    fn bytes_needed(&self, first: Option<&u8>) -> usize {
        match (self.state, self.kind, first) {
            _ if self.goes_on => 0,
            // Definitions of a prepared statement are only counted.
            (State::Columns(_), AnswerForm::Prepare, Some(..END)) => 1,
            _ => HEAD_MAX,
        }
    }

    fn is_at_first_cell(&self) -> bool {
        self.want == Want::First
            && self.results == 0
            && match self.state {
                State::Columns(_) => self.kind == AnswerForm::Binary && self.columns.is_empty(),
                State::Rows => self.answer.rows == 0,
                _ => false,
            }
    }

    fn definitions(&self, count: u16) -> u32 {
        u32::from(count) + u32::from(count > 0 && !self.deprecate_eof)
    }

    /// Handles a packet by the head of its payload; a continuation has none.
    fn packet(&mut self, head: &[u8], length: usize) -> Result<(), &'static str> {
        let first = match head.first() {
            Some(&ERROR) => {
                let error = server_error(head).ok_or("cut error")?;
                self.done(Err(Driver::Server(error).into()));
                return Ok(());
            }
            _ if self.out_of_turn => return Err("packet out of order"),
            _ if self.goes_on => return Ok(()),
            Some(first) => *first,
            None => return Err("empty packet"),
        };
        let end = first == END && length < if self.deprecate_eof { PACKET_MAX } else { 9 };
        match self.state {
            State::First if self.kind == AnswerForm::Prepare => {
                self.read_prepared(head).ok_or("no answer to a PREPARE")?;
            }
            State::First if first == 0 => {
                let (affected, status) = ok(head).ok_or("cut OK")?;
                self.answer.affected = affected;
                self.keep_result(0, affected);
                self.end(status);
            }
            State::First if first == NULL => return Err("a file is asked for"),
            State::First => {
                let count = column_count(head).ok_or("no count of columns")?;
                self.columns.clear();
                self.known.clear();
                self.keep_result(usize::from(count), 0);
                self.state = State::Columns(self.definitions(count));
            }
            State::Columns(1) if !self.deprecate_eof && !end => return Err("unknown packet"),
            State::Columns(left) => {
                if self.kind != AnswerForm::Prepare && (left > 1 || self.deprecate_eof) {
                    let known = (head.len() == length).then(|| definition(head));
                    let column = match known {
                        // No cell of this column is kept, or its type is not needed.
                        None if !self.is_at_first_cell() => UNKNOWN,
                        known => known.flatten().ok_or("no definition of a column")?,
                    };
                    if self.is_at_first_cell() {
                        self.column = column;
                    }
                    self.columns.push(column);
                }
                self.state = match left {
                    1 if self.kind == AnswerForm::Prepare => State::Done,
                    1 => State::Rows,
                    _ => State::Columns(left - 1),
                };
            }
            State::Rows if end => {
                let status = if self.deprecate_eof {
                    ok(head).map(|(_, status)| status)
                } else {
                    head.get(3..).and_then(|rest| ParseBuf(rest).checked_eat_u16_le())
                };
                self.end(status.ok_or("cut end of rows")?);
            }
            State::Rows if first == 0 || self.kind == AnswerForm::Text => {
                self.answer.nulls += self.walk(head, length).ok_or("malformed row")?;
                if self.is_at_first_cell() {
                    self.keep_cell(head).ok_or("no first cell")?;
                }
                let of_first = self.results == 0;
                if self.want == Want::Rows {
                    self.keep_row(head, length);
                }
                *if of_first { &mut self.answer.rows } else { &mut self.answer.more_rows } += 1;
            }
            State::Rows | State::Done => return Err("unknown packet"),
        }
        Ok(())
    }

    /// Ends a result, and the answer if no other result follows.
    fn end(&mut self, status: u16) {
        self.results += 1;
        self.state = State::First;
        if status & MORE == 0 {
            self.done(Ok(self.answer));
        }
    }

    fn done(&mut self, outcome: Asked<Answer>) {
        self.state = State::Done;
        self.outcome = Some(outcome);
    }

    fn read_prepared(&mut self, head: &[u8]) -> Option<()> {
        let packet: StmtPacket = ParseBuf(head).parse(()).ok()?;
        let left = self.definitions(packet.num_columns()) + self.definitions(packet.num_params());
        (self.statement, self.parameters) = (packet.statement_id(), packet.num_params());
        self.done(Ok(self.answer));
        if left > 0 {
            self.state = State::Columns(left);
        }
        Some(())
    }

    /// A row must hold one value a column; counts NULLs of NOT NULL columns. Ignores all that is behind the head.
    #[inline]
    fn walk(&self, row: &[u8], length: usize) -> Option<u64> {
        let binary = self.kind == AnswerForm::Binary;
        // A zero, then a bitmap that begins at its third bit.
        let mut at = if binary { 1 + bitmap_bytes(self.columns.len()) } else { 0 };
        let bitmap = if binary { row.get(1..at)? } else { &[] };
        let mut nulls = 0;
        for (i, column) in self.columns.iter().enumerate() {
            if at > row.len() {
                return Some(nulls);
            }
            let null = if binary {
                bitmap[(i + 2) / 8] >> ((i + 2) % 8) & 1 == 1
            } else {
                row.get(at) == Some(&NULL)
            };
            if null {
                nulls += u64::from(column[1] & NOT_NULL);
                at += usize::from(!binary);
                continue;
            }
            if binary && *column == UNKNOWN {
                return Some(nulls);
            }
            let Some(size) = size(column[0], binary, &row[at..]) else {
                return (row.len() < length).then_some(nulls);
            };
            at = at.saturating_add(size);
            // The rest of a longer one comes in another packet.
            if at > length && length < PACKET_MAX {
                return None;
            }
        }
        (at == length || (at > length && length == PACKET_MAX)).then_some(nulls)
    }

    fn keep_result(&mut self, columns: usize, affected: u64) {
        if self.want != Want::Rows {
            return;
        }
        let at = self.kept.len();
        if self.kept_results.len() < RESULTS_MAX {
            let result = KeptResult { columns, rows: 0, affected, begin: at, end: at };
            self.kept_results.push(result);
        } else {
            self.is_cut = true;
        }
    }

    fn keep_row(&mut self, row: &[u8], length: usize) {
        let Some(result) = self.kept_results.last_mut() else { return };
        result.rows += u64::from(!self.is_cut);
        if self.kind != AnswerForm::Text {
            return;
        }
        if row.len() < length || self.kept.len() + length > ROWS_MAX {
            self.is_cut = true;
        }
        if !self.is_cut {
            // At most HEAD_MAX.
            self.kept.extend_from_slice(&(length as u32).to_le_bytes());
            self.kept.extend_from_slice(row);
            result.end = self.kept.len();
        }
    }

    /// Gives up the rows that are kept, and most of their memory.
    #[inline]
    pub fn free_rows(&mut self) {
        self.kept.clear();
        self.kept.shrink_to(ROWS_KEPT);
    }

    /// Returns a result by its number from 0, where results are wanted.
    pub fn result(&self, number: usize) -> Option<KeptResult> {
        self.kept_results.get(number).copied()
    }

    /// Returns the kept row of a result at a place, and the place of the next; an error where it was too long.
    #[expect(clippy::type_complexity, reason = "cells of a row, NULLs among them")]
    pub fn row(
        &self,
        number: usize,
        at: usize,
    ) -> Result<Option<(Vec<Option<Vec<u8>>>, usize)>, &'static str> {
        let Some(result) = self.result(number) else { return Ok(None) };
        let rows = self.kept.get(at..result.end).unwrap_or_default();
        let Some((length, rest)) = rows.split_first_chunk() else {
            let is_last = number + 1 == self.kept_results.len();
            return if self.is_cut && is_last {
                Err("a row is too long to be kept")
            } else {
                Ok(None)
            };
        };
        let length = u32::from_le_bytes(*length) as usize;
        let mut row = ParseBuf(rest.get(..length).ok_or("a kept row is cut")?);
        let mut cells = Vec::with_capacity(result.columns);
        while let Some((first, behind)) = row.0.split_first() {
            if *first == NULL {
                row.0 = behind;
                cells.push(None);
            } else {
                let cell = row.checked_eat_lenenc_str().ok_or("malformed row")?;
                cells.push(Some(cell.to_vec()));
            }
        }
        Ok(Some((cells, at + 4 + length)))
    }

    fn keep_cell(&mut self, row: &[u8]) -> Option<()> {
        let mut rest = ParseBuf(row);
        let null = if self.kind == AnswerForm::Text {
            row.first() == Some(&NULL)
        } else {
            rest.checked_eat(1 + bitmap_bytes(self.columns.len()))?[1] & 4 != 0
        };
        if null {
            return Some(());
        }
        let length = match fixed(self.column[0]) {
            Some(length) => length as u64,
            None => rest.checked_eat_lenenc_int()?,
        };
        let kept = usize::try_from(length).map_or(CELL_MAX, |length| length.min(CELL_MAX));
        self.cell.clear();
        self.cell.extend_from_slice(rest.checked_eat(kept)?);
        self.found = Some(self.cell.len());
        Some(())
    }
}

fn ok(packet: &[u8]) -> Option<(u64, u16)> {
    let mut rest = ParseBuf(packet.get(1..)?);
    let affected = rest.checked_eat_lenenc_int()?;
    let _insert_id = rest.checked_eat_lenenc_int()?;
    let status = rest.checked_eat_u16_le()?;
    let _warnings = rest.checked_eat_u16_le()?;
    Some((affected, status))
}

fn definition(packet: &[u8]) -> Option<Column> {
    // Catalog, schema, and table and column, each by two names.
    let mut rest = packet;
    for _ in 0..6 {
        rest = rest.get(measure(rest)?..)?;
    }
    // Twelve bytes: character set, length, type, flags, decimals, 0, 0.
    match rest {
        [12, _, _, _, _, _, _, kind, flags, _, _, _, _, ..] => Some([*kind, *flags]),
        _ => None,
    }
}

/// Of a binary row's bitmap of NULLs, which begins at its third bit.
fn bitmap_bytes(columns: usize) -> usize {
    (columns + 9) / 8
}

/// Returns the bytes of a binary value of fixed length; None for others.
fn fixed(kind: u8) -> Option<usize> {
    match kind {
        0x01 => Some(1),
        0x02 | 0x0d => Some(2),
        0x03 | 0x04 | 0x09 => Some(4),
        0x05 | 0x08 => Some(8),
        _ => None,
    }
}

/// Returns the bytes of the value that `bytes` begin with, its length included.
#[inline]
fn size(kind: u8, binary: bool, bytes: &[u8]) -> Option<usize> {
    match fixed(kind) {
        Some(size) if binary => Some(size),
        _ => measure(bytes),
    }
}

/// Returns the bytes of a length together with what it counts.
#[inline]
fn measure(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? {
        length @ ..NULL => Some(1 + usize::from(*length)),
        _ => measure_long(bytes),
    }
}

#[cold]
fn measure_long(bytes: &[u8]) -> Option<usize> {
    let mut rest = ParseBuf(bytes);
    let length = usize::try_from(rest.checked_eat_lenenc_int()?).ok()?;
    (bytes.len() - rest.0.len()).checked_add(length)
}

fn column_count(head: &[u8]) -> Option<u16> {
    let mut rest = ParseBuf(head);
    let count = u16::try_from(rest.checked_eat_lenenc_int()?).ok()?;
    (rest.is_empty() && count > 0).then_some(count)
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use mysql_common::constants::CapabilityFlags;
    use mysql_common::packets::{
        CommonOkPacket, OkPacket, OkPacketDeserializer, OkPacketKind, OldEofPacket,
        ResultSetTerminator,
    };
    use mysql_common::proto::codec::packet_to_chunks;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    const ONE: &[u8] = &[1];
    const VARCHAR: &[u8] = b"\x03def\x01s\x01t\x01t\x01c\x01c\x0c\x2d\0\x80\0\0\0\xfd\0\0\0\0\0";
    const BIGINT: &[u8] = b"\x03def\x01s\x01t\x01t\x02id\x02id\x0c\x3f\0\x14\0\0\0\x08\0\x42\0\0\0";
    const UBIGINT: &[u8] =
        b"\x03def\x01s\x01t\x01t\x02id\x02id\x0c\x3f\0\x14\0\0\0\x08\x20\x42\0\0\0";
    const OLD_END: &[u8] = &[END, 0, 0, 2, 0];
    const OLD_MORE: &[u8] = &[END, 0, 0, 10, 0];
    const END_OF: &[u8] = &[END, 0, 0, 2, 0, 0, 0];
    const MORE_OF: &[u8] = &[END, 0, 0, 10, 0, 0, 0];
    /// The end of definitions in the old dialect.
    const DEFINED: &[u8] = b"defined";
    const OK_3: &[u8] = &[0, 3, 0, 2, 0, 0, 0];
    const OK_300: &[u8] =
        &[0, 0xfc, 44, 1, 0xfd, 9, 9, 9, 2, 0x40, 0, 0, 4, b'i', b'n', b'f', b'o'];
    const OK_MORE: &[u8] = &[0, 1, 0, 10, 0, 0, 0];
    const DEADLOCK: &[u8] = b"\xff\xbd\x04#40001Dead\x1block";
    const FULL: &[u8] = b"\xff\x10\x04Too many connections";
    const ROW_42: &[u8] = b"\x0242";
    /// Binary: a text, 17, -1 or 2^64 - 1, NULL.
    const ROW_12: &[u8] = b"\0\0\x0312 ";
    const ROW_17: &[u8] = &[0, 0, 17, 0, 0, 0, 0, 0, 0, 0];
    const ROW_FF: &[u8] = &[0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
    const ROW_NULL: &[u8] = &[0, 4];
    /// Id 258, one column, two parameters; no columns or parameters.
    const PREPARED: &[u8] = &[0, 2, 1, 0, 0, 1, 0, 2, 0, 0, 0, 0];
    const PREPARED_CALL: &[u8] = &[0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    /// Payloads as packets.
    fn framed<T: AsRef<[u8]>>(payloads: &[T], mut number: u8) -> Vec<u8> {
        let mut packets = BytesMut::new();
        for payload in payloads {
            number = packet_to_chunks(number, &mut payload.as_ref(), &mut packets);
        }
        packets.into()
    }

    /// All that an answer came to: its length, its outcome, its first cell as bytes and as number.
    type Seen = (usize, Option<Asked<Answer>>, Option<Vec<u8>>, Option<u64>);

    /// Takes bytes that arrive in parts, which end at these places.
    fn taken(
        decoder: &mut Decoder,
        bytes: &[u8],
        ends: impl IntoIterator<Item = usize>,
    ) -> Asked<Seen> {
        let mut used = 0;
        for end in ends.into_iter().chain([bytes.len()]) {
            let offered = bytes.get(used..end).unwrap_or_default();
            let now = decoder.take(offered)?;
            assert!(now <= offered.len(), "{now} of {}", offered.len());
            used += now;
        }
        let first = decoder.first().map(<[u8]>::to_vec);
        Ok((used, decoder.outcome(), first, decoder.number()))
    }

    fn decoder(old: bool, kind: AnswerForm, want: Want) -> Decoder {
        let mut decoder = Decoder::new(!old);
        decoder.expect(kind, want, 1);
        decoder
    }

    fn lost<T: std::fmt::Debug>(taken: Asked<T>) -> String {
        match taken {
            Err(Failure::Lost(loss)) => loss.why,
            other => panic!("{other:?}"),
        }
    }

    /// An answer in the new dialect; [`framed_as`] makes it one of the old.
    struct Case {
        name: &'static str,
        kind: AnswerForm,
        payloads: &'static [&'static [u8]],
        outcome: Asked<Answer>,
        /// The first cell as bytes and as number.
        cell: (Option<&'static [u8]>, Option<u64>),
    }

    #[expect(clippy::unnecessary_wraps, reason = "it stands where failed() does")]
    fn counted(rows: u64, affected: u64) -> Asked<Answer> {
        Ok(Answer { rows, affected, ..Answer::default() })
    }

    /// The same of an answer with so many rows behind its first result.
    fn with_more(more_rows: u64, counted: Asked<Answer>) -> Asked<Answer> {
        counted.map(|answer| Answer { more_rows, ..answer })
    }

    fn failed(code: u16, sqlstate: &str, message: &str) -> Asked<Answer> {
        let (sqlstate, message) = (sqlstate.to_owned(), message.to_owned());
        Err(Failure::Server { code, sqlstate, message })
    }

    /// An answer of each kind.
    fn cases() -> Vec<Case> {
        use AnswerForm::{Binary, Prepare, Text};
        const NO_CELL: (Option<&[u8]>, Option<u64>) = (None, None);
        const TEXT_42: (Option<&[u8]>, Option<u64>) = (Some(b"42"), Some(42));
        const BINARY_17: (Option<&[u8]>, Option<u64>) = (Some(b"\x11\0\0\0\0\0\0\0"), Some(17));
        const MINUS_1: (Option<&[u8]>, Option<u64>) = (Some(&[255; 8]), None);
        const ALL_ONES: (Option<&[u8]>, Option<u64>) = (Some(&[255; 8]), Some(u64::MAX));
        const PADDED: (Option<&[u8]>, Option<u64>) = (Some(b"12 "), Some(12));
        let full = || failed(1040, "HY000", "Too many connections");
        let locked = || failed(1213, "40001", "Dead\\u{1b}lock");
        let case =
            |name, kind, payloads, outcome, cell| Case { name, kind, payloads, outcome, cell };
        vec![
            case("OK", Binary, &[OK_3], counted(0, 3), NO_CELL),
            case("long OK", Text, &[OK_300], counted(0, 300), NO_CELL),
            case("error", Binary, &[DEADLOCK], locked(), NO_CELL),
            case("no SQLSTATE", Text, &[FULL], full(), NO_CELL),
            case("text", Text, &[ONE, VARCHAR, DEFINED, ROW_42, END_OF], counted(1, 0), TEXT_42),
            case("number", Text, &[ONE, BIGINT, DEFINED, ROW_42, END_OF], counted(1, 0), TEXT_42),
            case("NULL", Text, &[ONE, BIGINT, DEFINED, b"\xfb", END_OF], counted(1, 0), NO_CELL),
            case("none", Binary, &[ONE, VARCHAR, DEFINED, END_OF], counted(0, 0), NO_CELL),
            case("char", Binary, &[ONE, VARCHAR, DEFINED, ROW_12, END_OF], counted(1, 0), PADDED),
            case("17", Binary, &[ONE, BIGINT, DEFINED, ROW_17, END_OF], counted(1, 0), BINARY_17),
            case("-1", Binary, &[ONE, BIGINT, DEFINED, ROW_FF, END_OF], counted(1, 0), MINUS_1),
            case("max", Binary, &[ONE, UBIGINT, DEFINED, ROW_FF, END_OF], counted(1, 0), ALL_ONES),
            case("nil", Binary, &[ONE, BIGINT, DEFINED, ROW_NULL, END_OF], counted(1, 0), NO_CELL),
            case(
                "the first of seven columns and two rows",
                Binary,
                &[
                    &[7],
                    BIGINT,
                    VARCHAR,
                    VARCHAR,
                    VARCHAR,
                    VARCHAR,
                    VARCHAR,
                    VARCHAR,
                    DEFINED,
                    b"\0\xf8\x01\x11\0\0\0\0\0\0\0",
                    b"\0\xf8\x01\x12\0\0\0\0\0\0\0",
                    END_OF,
                ],
                counted(2, 0),
                BINARY_17,
            ),
            case("for a definition", Text, &[&[2], VARCHAR, DEADLOCK], locked(), NO_CELL),
            case("for rows", Binary, &[ONE, BIGINT, DEFINED, DEADLOCK], locked(), NO_CELL),
            case("late", Text, &[ONE, BIGINT, DEFINED, ROW_42, DEADLOCK], locked(), TEXT_42),
            case(
                "CALL with two results",
                Binary,
                &[
                    ONE, BIGINT, DEFINED, ROW_17, MORE_OF, ONE, VARCHAR, DEFINED, ROW_12, MORE_OF,
                    OK_3,
                ],
                with_more(1, counted(1, 3)),
                BINARY_17,
            ),
            case(
                "rows after OK",
                Text,
                &[OK_MORE, ONE, BIGINT, DEFINED, ROW_42, END_OF],
                with_more(1, counted(0, 1)),
                NO_CELL,
            ),
            case(
                "prepared",
                Prepare,
                &[PREPARED, VARCHAR, VARCHAR, DEFINED, BIGINT, DEFINED],
                counted(0, 0),
                NO_CELL,
            ),
            case("prepared CALL", Prepare, &[PREPARED_CALL], counted(0, 0), NO_CELL),
            case("half prepared", Prepare, &[PREPARED, VARCHAR, DEADLOCK], locked(), NO_CELL),
        ]
    }

    /// Payloads as packets of either dialect.
    fn framed_as(old: bool, payloads: &[&[u8]]) -> Vec<u8> {
        let in_dialect = |payload: &&[u8]| match *payload {
            DEFINED => old.then_some(OLD_END.to_vec()),
            END_OF if old => Some(OLD_END.to_vec()),
            MORE_OF if old => Some(OLD_MORE.to_vec()),
            payload => Some(payload.to_vec()),
        };
        framed(&payloads.iter().filter_map(in_dialect).collect::<Vec<_>>(), 1)
    }

    #[test]
    fn an_answer_is_the_same_when_it_is_cut_anywhere() {
        for Case { name, kind, payloads, outcome, cell: (first, number) } in cases() {
            for (old, want) in [
                (false, Want::First),
                (false, Want::Count),
                (true, Want::First),
                (true, Want::Count),
            ] {
                let answer = framed_as(old, payloads);
                let bytes = [&answer, &b"the next one"[..]].concat();
                let first = first.filter(|_| want == Want::First).map(<[u8]>::to_vec);
                let number = number.filter(|_| want == Want::First);
                let expected = Ok((answer.len(), Some(outcome.clone()), first, number));
                let fresh = || decoder(old, kind, want);
                for at in 0..bytes.len() {
                    assert_eq!(taken(&mut fresh(), &bytes, [at]), expected, "{name} cut at {at}");
                }
                assert_eq!(
                    taken(&mut fresh(), &bytes, 0..bytes.len()),
                    expected,
                    "{name} in bytes"
                );
                let mut whole = fresh();
                assert_eq!(whole.take(&answer), Ok(answer.len()));
                let statement = if kind == AnswerForm::Prepare { 258 } else { 0 };
                assert_eq!(whole.statement, statement, "{name}");
                let mut early = fresh();
                assert!(early.take(&answer[..answer.len() - 1]).is_ok(), "{name} is sound so far");
                assert_eq!(early.outcome(), None, "{name} ends early");
            }
        }
    }

    #[test]
    fn a_text_row_is_no_end_when_it_is_longer_than_one() {
        let rows: &[&[u8]] = &[ONE, VARCHAR, OLD_END, b"\x01x", b"\xfe\0\0\0\0\0\0\0\0", OLD_END];
        let seen = taken(&mut decoder(true, AnswerForm::Text, Want::Count), &framed(rows, 1), []);
        assert_eq!(seen.expect("rows").1, Some(counted(2, 0)));
    }

    #[test]
    fn a_decoder_forgets_an_answer_when_the_next_begins() {
        let mut decoder = Decoder::new(true);
        // Whatever state the answer before left.
        for number in 0..=255 {
            decoder.expect(AnswerForm::Text, Want::First, number);
            let rows = framed(&[ONE, VARCHAR, b"\x0242", END_OF], number);
            let seen = taken(&mut decoder, &rows, []);
            let expected = (rows.len(), Some(counted(1, 0)), Some(b"42".to_vec()), Some(42));
            assert_eq!(seen, Ok(expected));
            assert_eq!((decoder.outcome(), decoder.take(&rows)), (None, Ok(0)), "it is over");
            decoder.expect(AnswerForm::Text, Want::First, number);
            let seen = taken(&mut decoder, &framed(&[OK_3], number), []);
            assert_eq!(seen, Ok((11, Some(counted(0, 3)), None, None)));
        }
    }

    #[test]
    fn bytes_are_refused_when_they_are_no_answer() {
        use AnswerForm::{Binary, Prepare, Text};
        let cases: &[(&str, bool, AnswerForm, &[&[u8]])] = &[
            ("empty packet", false, Text, &[b""]),
            ("a file is asked for", false, Text, &[b"\xfb/etc/passwd"]),
            ("cut OK", false, Binary, &[&OK_3[..4]]),
            ("cut error", true, Text, &[&DEADLOCK[..2]]),
            ("no count", false, Text, &[b"\x01\x01"]),
            ("no count", false, Text, &[b"\xfd\0\0\x01"]),
            ("no count", true, Text, &[OLD_END]),
            ("no count", false, Text, &[b"\xfe\0\0\0\0\0\x01\0\0"]),
            ("no definition", false, Binary, &[ONE, b"\x03def\0"]),
            ("no definition", true, Text, &[ONE, &BIGINT[..BIGINT.len() - 3]]),
            ("no definition", false, Text, &[ONE, &[3; 40]]),
            ("cut OK", true, Text, &[&OK_3[..6]]),
            ("unknown packet", true, Text, &[ONE, BIGINT, b"\x0242"]),
            ("unknown packet", false, Binary, &[ONE, BIGINT, b"\x0242"]),
            ("unknown packet", true, Binary, &[ONE, BIGINT, OLD_END, b"\xfe\0\0\0\0\0\0\0\0"]),
            ("malformed row", false, Text, &[ONE, BIGINT, b"\x0342"]),
            ("malformed row", false, Text, &[ONE, BIGINT, b"\x02421"]),
            ("malformed row", true, Text, &[&[2], BIGINT, VARCHAR, OLD_END, b"\x0242"]),
            ("malformed row", false, Binary, &[ONE, BIGINT, &[0]]),
            ("malformed row", false, Binary, &[ONE, BIGINT, &ROW_17[..9]]),
            ("malformed row", true, Binary, &[ONE, VARCHAR, OLD_END, &ROW_12[..5]]),
            ("malformed row", false, Binary, &[ONE, VARCHAR, b"\0\0\x0312 4"]),
            ("malformed row", false, Binary, &[ONE, VARCHAR, b"\0\0\xff12 4"]),
            ("malformed row", false, Binary, &[ONE, VARCHAR, ROW_12, ROW_17]),
            ("malformed row", false, Binary, &[ONE, BIGINT, b"\0\x04\x11"]),
            ("cut end", true, Text, &[ONE, BIGINT, OLD_END, &OLD_END[..4]]),
            ("cut end", false, Text, &[ONE, BIGINT, &END_OF[..4]]),
            ("no answer to a PREPARE", false, Prepare, &[OK_3]),
            ("no answer to a PREPARE", false, Prepare, &[ONE]),
        ];
        for (why, old, kind, payloads) in cases {
            let bytes = framed(payloads, 1);
            for want in [Want::First, Want::Count] {
                let lost = lost(decoder(*old, *kind, want).take(&bytes));
                assert!(lost.starts_with(why), "{why}: {lost}");
            }
        }
        // Definitions have no length that would be too long, but the one that is looked at.
        let long = framed(&[ONE, &vec![3; HEAD_MAX + 1], ROW_17, END_OF], 1);
        assert_eq!(decoder(false, Binary, Want::Count).take(&long), Ok(long.len()));
        assert_eq!(
            lost(decoder(false, Binary, Want::First).take(&long)),
            "no definition of a column: packet 2 (2 expected) of 32769 bytes, first byte 03, \
             state Columns(1)"
        );
    }

    #[test]
    fn nulls_are_counted_where_the_columns_have_none() {
        // The flags of the first say that it has none, those of the second do not.
        let mut none = VARCHAR.to_vec();
        none[VARCHAR.len() - 5] |= NOT_NULL;
        let head: [&[u8]; 3] = [&[2], &none, BIGINT];
        for (kind, row, nulls) in [
            (AnswerForm::Binary, &[0, 4, 17, 0, 0, 0, 0, 0, 0, 0][..], 1),
            (AnswerForm::Binary, &[0, 8, 1, b'x'], 0),
            (AnswerForm::Binary, &[0, 12], 1),
            (AnswerForm::Text, b"\xfb\x0217", 1),
            (AnswerForm::Text, b"\x01x\xfb", 0),
            (AnswerForm::Text, b"\xfb\xfb", 1),
        ] {
            let bytes = framed(&[&head[..], &[row, row, END_OF]].concat(), 1);
            let seen = taken(&mut decoder(false, kind, Want::Count), &bytes, []).expect("rows");
            assert_eq!(seen.1, Some(Ok(Answer { rows: 2, nulls: 2 * nulls, ..Answer::default() })));
        }
    }

    #[test]
    fn a_long_row_is_walked_over_as_far_as_its_head_reaches() {
        let long = vec![b'x'; HEAD_MAX];
        let length = [0xfc, long.len() as u8, (long.len() >> 8) as u8];
        let cell = [&length[..], &long].concat();
        let take = |row: &[u8]| {
            let bytes = framed(&[&[2], VARCHAR, VARCHAR, row, END_OF], 1);
            let ends = (0..bytes.len()).step_by(1000);
            taken(&mut decoder(false, AnswerForm::Text, Want::Count), &bytes, ends)
                .map(|seen| seen.1)
        };
        assert_eq!(take(&[b"\x01y", &cell[..]].concat()), Ok(Some(counted(1, 0))));
        assert_eq!(take(&[&cell[..], b"\x01y"].concat()), Ok(Some(counted(1, 0))));
        assert!(lost(take(&[b"\x01y", &cell[..], b"z"].concat())).starts_with("malformed row"));
        assert!(lost(take(&cell[..cell.len() - 1])).starts_with("malformed row"));
    }

    #[test]
    fn a_wrong_number_ends_the_session_but_an_errors_is_told() {
        for wrong in [0, 2, 255] {
            let mut unasked = decoder(false, AnswerForm::Text, Want::Count);
            let seen = taken(&mut unasked, &framed(&[DEADLOCK], wrong), []).expect("an error");
            let told = matches!(seen.1, Some(Err(Failure::Server { code: 1213, .. })));
            assert!(told && unasked.out_of_turn, "{seen:?}");
            let refused =
                decoder(false, AnswerForm::Text, Want::Count).take(&framed(&[OK_3], wrong));
            assert!(lost(refused).starts_with("packet out of order"));
        }
        let mut rows = framed(&[ONE, BIGINT], 1);
        rows.extend(framed(&[ROW_17], 4));
        assert!(decoder(false, AnswerForm::Binary, Want::Count).take(&rows).is_err());
        // A payload that goes on does so in the next packet.
        let mut on = decoder(false, AnswerForm::Text, Want::Count);
        let begun = [&framed(&[ONE, BIGINT], 1)[..], &[255, 255, 255, 3, 0xfd, 255, 255, 255]];
        let bytes = [&begun.concat()[..], &vec![ERROR; PACKET_MAX - 4]].concat();
        assert_eq!(on.take(&bytes), Ok(bytes.len()));
        assert!(on.take(&[1, 0, 0, 5, ERROR]).is_err());
    }

    #[test]
    fn a_payload_streams_through_when_it_is_larger_than_any_buffer() {
        // 17 MB in a text row, which begins as an end does.
        let cell: Vec<u8> = (0..17 << 20).map(|at| at as u8).collect();
        let length = (cell.len() as u64).to_le_bytes();
        let row = [&[END], &length[..], &cell].concat();
        let bytes = framed(&[ONE, VARCHAR, &row, END_OF], 1);
        let ends = (0..bytes.len()).step_by(HEAD_MAX + 4);
        let seen = taken(&mut decoder(false, AnswerForm::Text, Want::First), &bytes, ends);
        let first = Some(cell[..CELL_MAX].to_vec());
        assert_eq!(seen, Ok((bytes.len(), Some(counted(1, 0)), first, None)));
        // A message of one full packet, behind which an empty one is due.
        let loud = framed(&[[&DEADLOCK[..9], &b"!".repeat(PACKET_MAX - 9)].concat()], 1);
        let ends = (0..loud.len()).step_by(HEAD_MAX + 4);
        let seen = taken(&mut decoder(false, AnswerForm::Text, Want::Count), &loud, ends);
        let said = failed(1213, "40001", &format!("{}…", "!".repeat(2000)));
        assert_eq!(seen, Ok((loud.len(), Some(said), None, None)));
        // Three hundred full packets, then an empty one.
        let mut rows = decoder(true, AnswerForm::Text, Want::Count);
        let mut take = |bytes: &[u8]| assert_eq!(rows.take(bytes), Ok(bytes.len()));
        take(&framed(&[ONE, VARCHAR, OLD_END], 1));
        let mut full = vec![ERROR; PACKET_MAX];
        // The first one begins with a cell's length.
        full[..9].copy_from_slice(&[END, 0, 0, 0, 0, 1, 0, 0, 0]);
        take(&[&[255, 255, 255, 4], &full[..]].concat());
        for number in 5..304_u32 {
            take(&[255, 255, 255, number as u8, 0]);
            take(&full[1..]);
        }
        take(&[0, 0, 0, 304_u32 as u8]);
        take(&framed(&[OLD_END], 305_u32 as u8));
        assert_eq!(rows.outcome(), Some(counted(1, 0)));
    }

    /// mysql_common's reading of an OK.
    fn theirs<T: OkPacketKind>(payload: &[u8]) -> Option<(u64, bool)> {
        let parsed = ParseBuf(payload).parse::<OkPacketDeserializer<T>>(CapabilityFlags::empty());
        let ok = OkPacket::from(parsed.ok()?);
        Some((ok.affected_rows(), ok.status_flags().bits() & MORE == 0))
    }

    proptest! {
        #[test]
        fn an_ok_is_that_of_the_driver_when_that_accepts_it(
            first in select(vec![0, END]),
            rest in vec(select(vec![0, 1, 2, 8, 10, 35, 52, 250, 252, 253, 254]), 0..40),
            old: bool,
        ) {
            let payload = [&[first], &rest[..]].concat();
            let ok = match first {
                0 => theirs::<CommonOkPacket>(&payload),
                _ if old && payload.len() < 9 => theirs::<OldEofPacket>(&payload),
                END if !old => theirs::<ResultSetTerminator>(&payload),
                _ => None,
            };
            let mut ours = decoder(old, AnswerForm::Text, Want::Count);
            let head: &[&[u8]] = match first {
                END if old => &[ONE, BIGINT, OLD_END],
                END => &[ONE, BIGINT],
                _ => &[],
            };
            let bytes = framed(&[head, &[&payload]].concat(), 1);
            let seen = taken(&mut ours, &bytes, []);
            if let Some((affected, last)) = ok {
                let (_, outcome, ..) = seen.expect("accepted");
                prop_assert_eq!(outcome, last.then_some(counted(0, affected)));
            }
        }

        #[test]
        fn any_bytes_come_to_the_same_when_they_are_cut_anywhere(
            payloads in vec(
                prop_oneof![
                    4 => select(vec![
                        ONE, VARCHAR, BIGINT, OLD_END, OLD_MORE, END_OF, MORE_OF, OK_3, OK_MORE,
                        DEADLOCK, ROW_17, ROW_NULL, PREPARED,
                    ]).prop_map(<[u8]>::to_vec),
                    1 => vec(any::<u8>(), 0..12),
                ],
                0..8,
            ),
            noise in vec(any::<u8>(), 0..12),
            kind in select(vec![AnswerForm::Text, AnswerForm::Binary, AnswerForm::Prepare]),
            old: bool,
            mut ends in vec(0..200_usize, 0..6),
        ) {
            let bytes = [framed(&payloads, 1), noise].concat();
            let whole = taken(&mut decoder(old, kind, Want::First), &bytes, []);
            ends.sort_unstable();
            ends.retain(|end| *end <= bytes.len());
            let cut = taken(&mut decoder(old, kind, Want::First), &bytes, ends);
            prop_assert_eq!(cut, whole);
        }

        #[test]
        fn an_answer_is_the_same_when_others_came_before(
            order in vec((0..cases().len(), select(vec![Want::First, Want::Count]), 0..4_usize), 1..8),
            old: bool,
        ) {
            let mut used = decoder(old, AnswerForm::Text, Want::Count);
            for (at, want, cut) in order {
                let Case { name, kind, payloads, .. } = cases().swap_remove(at);
                let bytes = framed_as(old, payloads);
                // As a whole, or cut in its first packets.
                let ends: Vec<usize> = [bytes.len(), 3, 7, 20].into_iter().skip(cut).take(1).collect();
                used.expect(kind, want, 1);
                let seen = taken(&mut used, &bytes, ends.clone());
                let fresh = taken(&mut decoder(old, kind, want), &bytes, ends);
                prop_assert_eq!(seen, fresh, "{}", name);
            }
        }
    }
}
