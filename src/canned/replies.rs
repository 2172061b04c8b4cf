//! Answers as bytes, built once, and which of them a statement gets, from its text alone.

use super::fault::{Action, contains, looked_at};
use super::script::{Answer, Reply, Script};
use super::wire::{self, Packets, SqlError};

/// The place of a prebuilt answer among all; the script's own come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerKind(usize);

impl AnswerKind {
    pub(crate) const CANNED: AnswerKind = AnswerKind(0);
    /// One value, for a SELECT of no table.
    const VALUE: AnswerKind = AnswerKind(1);
    const EMPTY: AnswerKind = AnswerKind(2);
    /// OK, one row affected.
    pub(crate) const CHANGED: AnswerKind = AnswerKind(3);
    const DONE: AnswerKind = AnswerKind(4);
    /// LOAD DATA is not allowed.
    const NO_LOCAL: AnswerKind = AnswerKind(5);
    const OWN: usize = 6;
}

/// How a client wants its result sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// It executed a prepared statement.
    pub(crate) binary: bool,
    /// It negotiated `CLIENT_DEPRECATE_EOF`.
    pub(crate) deprecate_eof: bool,
}

#[derive(Debug, Clone)]
struct Table {
    columns: Vec<Vec<u8>>,
    rows: Vec<Vec<Option<Vec<u8>>>>,
}

impl Table {
    fn new(columns: &[String], rows: Vec<Vec<Option<Vec<u8>>>>) -> Self {
        Table { columns: columns.iter().map(|name| wire::column(name)).collect(), rows }
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
            packets.push(&wire::row(row, dialect.binary));
        }
        packets.push(&wire::eof(dialect.deprecate_eof));
        packets.bytes
    }
}

/// What kind of answer it is, beyond its bytes.
enum Kind {
    Table(Table),
    Ok,
    Error,
    Local,
}

/// One answer in every dialect.
struct Packed {
    kind: Kind,
    /// Text, text without EOF, binary, binary without EOF.
    bytes: [Vec<u8>; 4],
}

impl Packed {
    fn plain(kind: Kind, payload: &[u8]) -> Self {
        Packed { kind, bytes: [(); 4].map(|()| wire::packet(1, payload)) }
    }

    fn table(table: Table) -> Self {
        let bytes = [(false, false), (false, true), (true, false), (true, true)]
            .map(|(binary, deprecate_eof)| table.packets(Dialect { binary, deprecate_eof }));
        Packed { kind: Kind::Table(table), bytes }
    }

    fn of(reply: &Reply) -> Self {
        match reply {
            Reply::Ok { affected } => Packed::plain(Kind::Ok, &wire::ok(*affected)),
            Reply::Error(error) => Packed::plain(Kind::Error, &error.payload(false)),
            Reply::LocalInfile { file } => {
                Packed::plain(Kind::Local, &[b"\xFB", file.as_bytes()].concat())
            }
            Reply::Rows { columns, rows } => {
                let bytes = |value: &Option<String>| value.clone().map(String::into_bytes);
                let rows = rows.iter().map(|row| row.iter().map(bytes).collect()).collect();
                Packed::table(Table::new(columns, rows))
            }
        }
    }
}

pub(crate) struct Replies {
    /// The texts of the script's answers, in lower case.
    texts: Vec<Vec<u8>>,
    /// The canned row, the others by their [`AnswerKind`], then the script's.
    packed: Vec<Packed>,
}

impl Replies {
    pub(crate) fn new(script: &Script) -> Self {
        let row = &script.row;
        let rows = vec![vec![Some(row.content.clone())]; row.count];
        let canned = Packed::table(Table::new(std::slice::from_ref(&row.column), rows));
        let local = SqlError::new(
            3948,
            "42000",
            "Loading local data is disabled; this must be enabled on both the client and server sides",
        );
        let fixed: [Reply; AnswerKind::OWN - 1] = [
            Answer::value("", "value", "1").reply,
            Answer::rows("", &["Variable_name", "Value"], &[]).reply,
            Reply::Ok { affected: 1 },
            Reply::Ok { affected: 0 },
            Reply::Error(local),
        ];
        let own = script.answers.iter().map(|answer| &answer.reply);
        let text = |answer: &Answer| answer.matches.to_ascii_lowercase().into_bytes();
        Replies {
            texts: script.answers.iter().map(text).collect(),
            packed: [canned].into_iter().chain(fixed.iter().chain(own).map(Packed::of)).collect(),
        }
    }

    pub(crate) fn bytes(&self, plan: AnswerKind, dialect: Dialect) -> &[u8] {
        let at = 2 * usize::from(dialect.binary) + usize::from(dialect.deprecate_eof);
        &self.packed[plan.0].bytes[at]
    }

    pub(crate) fn is_local(&self, plan: AnswerKind) -> bool {
        matches!(self.packed[plan.0].kind, Kind::Local)
    }

    pub(crate) fn is_error(&self, plan: AnswerKind) -> bool {
        matches!(self.packed[plan.0].kind, Kind::Error)
    }

    /// Makes the answer to a `COM_STMT_PREPARE`: the statement, its parameters, its columns.
    pub(crate) fn prepared(
        &self,
        plan: AnswerKind,
        id: u32,
        parameters: u16,
        deprecate_eof: bool,
    ) -> Vec<u8> {
        let columns = match &self.packed[plan.0].kind {
            Kind::Table(table) => table.columns.as_slice(),
            _ => &[],
        };
        let mut payload = vec![0x00];
        payload.extend_from_slice(&id.to_le_bytes());
        payload.extend_from_slice(&(columns.len() as u16).to_le_bytes());
        payload.extend_from_slice(&parameters.to_le_bytes());
        payload.extend_from_slice(&[0, 0, 0]); // filler, warnings
        let mut packets = Packets::starting_at(1);
        packets.push(&payload);
        for definitions in [&vec![wire::column("?"); parameters.into()], columns] {
            for definition in definitions {
                packets.push(definition);
            }
            if !definitions.is_empty() && !deprecate_eof {
                packets.push(&wire::eof(false));
            }
        }
        packets.bytes
    }

    /// Makes the answer as a fault wants it instead; `None` for faults that leave its content alone.
    pub(crate) fn twisted(
        &self,
        action: &Action,
        plan: AnswerKind,
        dialect: Dialect,
    ) -> Option<Vec<u8>> {
        let Kind::Table(canned) = &self.packed[AnswerKind::CANNED.0].kind else { unreachable!() };
        let table = match &self.packed[plan.0].kind {
            Kind::Table(table) => table,
            _ => canned,
        };
        // The same columns with other rows, each of one value.
        let rows = |content: &[u8], count| {
            let row = vec![Some(content.to_vec()); table.columns.len()];
            Table { columns: table.columns.clone(), rows: vec![row; count] }.packets(dialect)
        };
        Some(match action {
            Action::RowsInstead(count) => {
                let first = canned.rows.first().and_then(|row| row[0].as_deref());
                rows(first.unwrap_or(b""), *count)
            }
            Action::RowContent(content) => rows(content, 1),
            Action::OversizedRow(size) => rows(&vec![b'x'; *size], 1),
            Action::AffectedInstead(n) => wire::packet(1, &wire::ok(*n)),
            Action::HugeColumnCount(n) => {
                let mut payload = Vec::new();
                wire::put_int(&mut payload, *n);
                wire::packet(1, &payload)
            }
            _ => return None,
        })
    }

    /// Decides which answer a statement gets.
    pub(crate) fn plan(&self, sql: &[u8]) -> AnswerKind {
        let text = looked_at(sql);
        if let Some(i) = self.texts.iter().position(|answer| contains(text, answer)) {
            return AnswerKind(AnswerKind::OWN + i);
        }
        let text = without_lead(text);
        let end = text.iter().position(|b| !b.is_ascii_alphabetic()).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        match word.to_ascii_lowercase().as_slice() {
            b"select" | b"with" => select(rest),
            b"update" | b"insert" | b"delete" | b"replace" => AnswerKind::CHANGED,
            b"show" | b"describe" | b"desc" | b"explain" => AnswerKind::EMPTY,
            b"load" => AnswerKind::NO_LOCAL,
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

/// Takes a statement from its first word on: white space, brackets and comments may come before.
fn without_lead(mut text: &[u8]) -> &[u8] {
    loop {
        let start = text.iter().position(|&b| !b.is_ascii_whitespace() && b != b'(');
        text = &text[start.unwrap_or(text.len())..];
        if !text.starts_with(b"/*") {
            return text;
        }
        let end = text.windows(2).position(|pair| pair == b"*/").map_or(text.len(), |i| i + 2);
        text = &text[end..];
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::Row;
    use super::*;
    use proptest::prelude::*;

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
            outline(replies.bytes(AnswerKind::CANNED, Dialect { binary, deprecate_eof }))
        };
        assert_eq!(of(false, false), [(1, 1), (3, 2), (0xFE, 3), (119, 4), (0xFE, 5)]);
        assert_eq!(of(false, true), [(1, 1), (3, 2), (119, 3), (0xFE, 4)]);
        assert_eq!(of(true, true), [(1, 1), (3, 2), (0, 3), (0xFE, 4)]);
    }

    #[test]
    fn a_prepared_select_describes_parameters_and_columns() {
        let replies = Replies::new(&Script::default());
        let full = outline(&replies.prepared(AnswerKind::CANNED, 7, 2, false));
        assert_eq!(full, [(0, 1), (3, 2), (3, 3), (0xFE, 4), (3, 5), (0xFE, 6)]);
        let lean = outline(&replies.prepared(AnswerKind::CHANGED, 7, 1, true));
        assert_eq!(lean, [(0, 1), (3, 2)]);
    }

    #[test]
    fn a_script_without_rows_still_twists() {
        let row = Row { count: 0, ..Row::default() };
        let replies = Replies::new(&Script { row, ..Script::default() });
        let dialect = Dialect { binary: true, deprecate_eof: true };
        let bytes = replies.twisted(&Action::RowsInstead(2), AnswerKind::CHANGED, dialect);
        assert_eq!(outline(&bytes.unwrap()).len(), 5);
        assert_eq!(replies.twisted(&Action::Close, AnswerKind::CHANGED, dialect), None);
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
