//! Answers as bytes, built once.

use super::fault::Action;
use super::script::{Reply, Row, Script};
use super::sql::{self, AnswerKind};
use super::wire::{self, Packets, SqlError};

/// How a client wants its result sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// It executed a prepared statement.
    pub(crate) binary: bool,
    /// It negotiated `CLIENT_DEPRECATE_EOF`.
    pub(crate) deprecate_eof: bool,
}

/// Columns and rows of a result set.
#[derive(Debug, Clone)]
struct Table {
    columns: Vec<Vec<u8>>,
    rows: Vec<Vec<Option<Vec<u8>>>>,
}

impl Table {
    fn new(columns: &[&str], rows: Vec<Vec<Option<Vec<u8>>>>) -> Self {
        Table { columns: columns.iter().map(|name| wire::column(name)).collect(), rows }
    }

    fn canned(row: &Row) -> Self {
        Table::new(&[&row.column], vec![vec![Some(row.content.clone())]; row.count])
    }

    /// The same columns with other rows, each of one value.
    fn filled(&self, content: &[u8], count: usize) -> Self {
        let row = vec![Some(content.to_vec()); self.columns.len()];
        Table { columns: self.columns.clone(), rows: vec![row; count] }
    }

    fn packets(&self, dialect: Dialect) -> Vec<u8> {
        let mut packets = Packets::starting_at(1);
        let mut count = Vec::new();
        wire::put_int(&mut count, self.columns.len() as u64);
        packets.push(&count);
        for column in &self.columns {
            packets.push(column);
        }
        if !dialect.deprecate_eof {
            packets.push(&wire::eof(false));
        }
        for row in &self.rows {
            let values = row.iter().map(Option::as_deref);
            packets.push(&if dialect.binary {
                wire::binary_row(values)
            } else {
                wire::text_row(values)
            });
        }
        packets.push(&wire::eof(dialect.deprecate_eof));
        packets.into_bytes()
    }
}

/// What kind of answer it is, beyond its bytes.
#[derive(Debug)]
enum Kind {
    Table(Table),
    Ok,
    Error,
    Local,
}

/// One answer in every dialect.
#[derive(Debug)]
struct Packed {
    kind: Kind,
    /// Text, text without EOF, binary, binary without EOF.
    bytes: [Vec<u8>; 4],
}

impl Packed {
    fn plain(kind: Kind, payload: &[u8]) -> Self {
        let bytes = wire::packet(1, payload);
        Packed { kind, bytes: [bytes.clone(), bytes.clone(), bytes.clone(), bytes] }
    }

    fn ok(affected: u64) -> Self {
        Packed::plain(Kind::Ok, &wire::ok(affected))
    }

    fn error(error: &SqlError) -> Self {
        Packed::plain(Kind::Error, &wire::error(error))
    }

    fn table(table: Table) -> Self {
        let bytes = [(false, false), (false, true), (true, false), (true, true)]
            .map(|(binary, deprecate_eof)| table.packets(Dialect { binary, deprecate_eof }));
        Packed { kind: Kind::Table(table), bytes }
    }

    fn of(reply: &Reply) -> Self {
        match reply {
            Reply::Ok { affected } => Packed::ok(*affected),
            Reply::Error(error) => Packed::error(error),
            Reply::LocalInfile { file } => {
                let mut payload = vec![0xFB];
                payload.extend_from_slice(file.as_bytes());
                Packed::plain(Kind::Local, &payload)
            }
            Reply::Rows { columns, rows } => {
                let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
                let bytes = |value: &Option<String>| value.clone().map(String::into_bytes);
                let rows = rows.iter().map(|row| row.iter().map(bytes).collect()).collect();
                Packed::table(Table::new(&columns, rows))
            }
        }
    }

    fn bytes(&self, dialect: Dialect) -> &[u8] {
        let [text, text_less, binary, binary_less] = &self.bytes;
        match (dialect.binary, dialect.deprecate_eof) {
            (false, false) => text,
            (false, true) => text_less,
            (true, false) => binary,
            (true, true) => binary_less,
        }
    }
}

/// All answers that a script can give.
#[derive(Debug)]
pub(crate) struct Replies {
    texts: Vec<Vec<u8>>,
    answers: Vec<Packed>,
    canned: Packed,
    value: Packed,
    empty: Packed,
    changed: Packed,
    done: Packed,
    no_local: Packed,
}

impl Replies {
    pub(crate) fn new(script: &Script) -> Self {
        let local = SqlError::new(
            3948,
            "42000",
            "Loading local data is disabled; this must be enabled on both the client and server sides",
        );
        Replies {
            texts: script
                .answers
                .iter()
                .map(|answer| answer.matches.to_ascii_lowercase().into_bytes())
                .collect(),
            answers: script.answers.iter().map(|answer| Packed::of(&answer.reply)).collect(),
            canned: Packed::table(Table::canned(&script.row)),
            value: Packed::table(Table::new(&["value"], vec![vec![Some(b"1".to_vec())]])),
            empty: Packed::table(Table::new(&["Variable_name", "Value"], Vec::new())),
            changed: Packed::ok(1),
            done: Packed::ok(0),
            no_local: Packed::error(&local),
        }
    }

    /// Which answer a statement gets.
    pub(crate) fn plan(&self, sql: &[u8]) -> AnswerKind {
        sql::plan(sql, &self.texts)
    }

    fn packed(&self, plan: AnswerKind) -> &Packed {
        match plan {
            AnswerKind::Canned => &self.canned,
            AnswerKind::Value => &self.value,
            AnswerKind::Empty => &self.empty,
            AnswerKind::Changed => &self.changed,
            AnswerKind::Done => &self.done,
            AnswerKind::NoLocal => &self.no_local,
            AnswerKind::Answer(i) => self.answers.get(i).unwrap_or(&self.done),
        }
    }

    /// The bytes of an answer.
    pub(crate) fn bytes(&self, plan: AnswerKind, dialect: Dialect) -> &[u8] {
        self.packed(plan).bytes(dialect)
    }

    /// Whether the answer asks the client for a file.
    pub(crate) fn is_local(&self, plan: AnswerKind) -> bool {
        matches!(self.packed(plan).kind, Kind::Local)
    }

    /// Whether the answer is an error.
    pub(crate) fn is_error(&self, plan: AnswerKind) -> bool {
        matches!(self.packed(plan).kind, Kind::Error)
    }

    /// The answer to a `COM_STMT_PREPARE`: the statement, its parameters, its columns.
    pub(crate) fn prepared(
        &self,
        plan: AnswerKind,
        id: u32,
        parameters: u16,
        lean: bool,
    ) -> Vec<u8> {
        let columns = match &self.packed(plan).kind {
            Kind::Table(table) => table.columns.as_slice(),
            Kind::Ok | Kind::Error | Kind::Local => &[],
        };
        let mut payload = vec![0x00];
        payload.extend_from_slice(&id.to_le_bytes());
        payload.extend_from_slice(&(columns.len() as u16).to_le_bytes());
        payload.extend_from_slice(&parameters.to_le_bytes());
        payload.extend_from_slice(&[0, 0, 0]); // filler, warnings
        let mut packets = Packets::starting_at(1);
        packets.push(&payload);
        let parameter = wire::column("?");
        for _ in 0..parameters {
            packets.push(&parameter);
        }
        if parameters > 0 && !lean {
            packets.push(&wire::eof(false));
        }
        for column in columns {
            packets.push(column);
        }
        if !columns.is_empty() && !lean {
            packets.push(&wire::eof(false));
        }
        packets.into_bytes()
    }

    /// The answer as a fault wants it instead; `None` for faults that leave its content alone.
    pub(crate) fn twisted(
        &self,
        action: &Action,
        plan: AnswerKind,
        dialect: Dialect,
    ) -> Option<Vec<u8>> {
        let Kind::Table(canned) = &self.canned.kind else { return None };
        let table = match &self.packed(plan).kind {
            Kind::Table(table) => table,
            Kind::Ok | Kind::Error | Kind::Local => canned,
        };
        let rows = |content: &[u8], count| table.filled(content, count).packets(dialect);
        match action {
            Action::RowsInstead(count) => {
                let first = canned.rows.first().and_then(|row| row.first()).cloned().flatten();
                Some(rows(&first.unwrap_or_default(), *count))
            }
            Action::RowContent(content) => Some(rows(content, 1)),
            Action::OversizedRow(size) => Some(rows(&vec![b'x'; *size], 1)),
            Action::AffectedInstead(n) => Some(wire::packet(1, &wire::ok(*n))),
            Action::HugeColumnCount(n) => {
                let mut payload = Vec::new();
                wire::put_int(&mut payload, *n);
                Some(wire::packet(1, &payload))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The payloads' first bytes and the sequence numbers.
    fn outline(mut bytes: &[u8]) -> Vec<(u8, u8)> {
        let mut seen = Vec::new();
        while let Some((length, sequence)) = wire::header(bytes) {
            seen.push((bytes[wire::HEADER], sequence));
            bytes = &bytes[wire::HEADER + length..];
        }
        seen
    }

    #[test]
    fn result_sets_follow_the_dialect() {
        let replies = Replies::new(&Script::default());
        let of = |binary, deprecate_eof| {
            outline(replies.bytes(AnswerKind::Canned, Dialect { binary, deprecate_eof }))
        };
        assert_eq!(of(false, false), [(1, 1), (3, 2), (0xFE, 3), (119, 4), (0xFE, 5)]);
        assert_eq!(of(false, true), [(1, 1), (3, 2), (119, 3), (0xFE, 4)]);
        assert_eq!(of(true, true), [(1, 1), (3, 2), (0, 3), (0xFE, 4)]);
    }

    #[test]
    fn a_prepared_select_describes_parameters_and_columns() {
        let replies = Replies::new(&Script::default());
        let full = outline(&replies.prepared(AnswerKind::Canned, 7, 2, false));
        assert_eq!(full, [(0, 1), (3, 2), (3, 3), (0xFE, 4), (3, 5), (0xFE, 6)]);
        let lean = outline(&replies.prepared(AnswerKind::Changed, 7, 1, true));
        assert_eq!(lean, [(0, 1), (3, 2)]);
    }

    #[test]
    fn a_script_without_rows_still_twists() {
        let row = Row { count: 0, ..Row::default() };
        let replies = Replies::new(&Script { row, ..Script::default() });
        let dialect = Dialect { binary: true, deprecate_eof: true };
        let bytes = replies.twisted(&Action::RowsInstead(2), AnswerKind::Changed, dialect);
        assert_eq!(outline(&bytes.unwrap()).len(), 5);
        assert_eq!(replies.twisted(&Action::Close, AnswerKind::Changed, dialect), None);
    }
}
