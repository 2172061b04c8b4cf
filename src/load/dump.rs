//! Reads files of tables as SQL, as mysqldump writes them, and judges each statement before it is sent. Other
//! statements and variables are refused: a wrong file must not change a server.

mod cursor;
mod lex;
mod set;
mod values;

use std::ops::Range;

use self::cursor::Cursor;
pub(super) use self::cursor::refuse_charset;
pub use self::cursor::{DumpPart, LeftOut, StatementInfo, unquoted};
use self::lex::{AMBIGUOUS, Shape, Token, Tokens, tokens};
use self::set::Variables;
pub(super) use self::set::split_as_written;
use crate::error::clip;

/// Judges the statements of one file in their order: SET changes how later ones are read.
#[derive(Debug)]
pub struct Judge {
    variables: Variables,
    /// True if the prepared statement is left out.
    prepared: bool,
}

impl Judge {
    /// Begins a file whose first statements are in this character set.
    pub fn new(charset: Option<&str>) -> Judge {
        Judge { variables: Variables::new(charset), prepared: false }
    }

    pub fn judge(&mut self, sql: &[u8]) -> Result<StatementInfo, String> {
        let (mut inserts, mut depth) = (None, 0);
        let begins_rows = |token: &Token| {
            let word = &sql[token.range.clone()];
            let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
            let inserts = *inserts.get_or_insert_with(|| is("INSERT") || is("REPLACE"));
            match token.shape {
                Shape::Sign(b'(') => depth += 1,
                Shape::Sign(b')') => depth -= 1,
                _ => {}
            }
            inserts && depth == 0 && token.shape == Shape::Word && (is("VALUES") || is("VALUE"))
        };
        let all = tokens(sql, self.variables.ansi, begins_rows)?;
        let mut words = Cursor { sql, tokens: &all.list, at: 0 };
        let whole = all.versioned.iter().all(|range| *range == (0..all.list.len()));
        let verb = words.word();
        let verb = verb.as_deref().ok_or("this is no statement")?;
        if let Some(left_out) = self.left_out(verb, words.clone()) {
            return Ok(StatementInfo::nameless(DumpPart::LeftOut(left_out)));
        }
        let seen = match verb {
            "SET" => self.variables.set(&mut words),
            "INSERT" | "REPLACE" => insert(&mut words).and_then(|seen| {
                values::check(&sql[all.end..], self.variables.ansi).map(|()| seen)
            }),
            "CREATE" if words.has("TABLE") => create(&mut words, &all, whole),
            "ALTER" if words.has("TABLE") => alter(&mut words),
            "DROP" if words.has("TABLE") => drop_table(&mut words),
            "LOCK" if words.has("TABLES") || words.has("TABLE") => lock(&mut words),
            "ANALYZE" if words.has("TABLE") => histogram(&mut words),
            "UNLOCK" if words.has("TABLES") || words.has("TABLE") => words.ends(DumpPart::Other),
            "COMMIT" => words.ends(DumpPart::Other),
            "BEGIN" => {
                words.has("WORK");
                words.ends(DumpPart::Other)
            }
            "START" if words.has("TRANSACTION") => words.ends(DumpPart::Other),
            _ => Err(unknown(verb, &mut words)),
        }?;
        if !whole && !matches!(seen.kind, DumpPart::Create | DumpPart::LeftOut(_)) {
            return Err(AMBIGUOUS.to_owned());
        }
        self.readable(&sql[seen.name.clone()]).map(|()| seen)
    }

    fn left_out(&mut self, verb: &str, mut words: Cursor) -> Option<LeftOut> {
        match verb {
            "CHANGE" if words.has("MASTER") || words.has("REPLICATION") => {
                Some(LeftOut::Replication)
            }
            // Written by mysqldump --apply-slave-statements.
            "STOP" | "START" | "RESET" if words.is_of_replicas() => Some(LeftOut::Replication),
            "EXECUTE" | "DEALLOCATE" if self.prepared => Some(LeftOut::RocksDb),
            "SELECT" | "PREPARE" | "SET" if words.stores_rocksdb(verb) => {
                self.prepared |= verb == "PREPARE";
                Some(LeftOut::RocksDb)
            }
            _ => None,
        }
    }

    /// Refuses a name whose bytes loadgen and the server would read as different letters.
    fn readable(&self, name: &[u8]) -> Result<(), String> {
        let charset = self.variables.charset.as_ref();
        let utf8 = charset.is_none_or(|set| set.starts_with("utf8") || set == "binary");
        if utf8 || name.is_ascii() {
            return Ok(());
        }
        Err("a table's name with letters beyond ASCII, in a file that is not in UTF-8".to_owned())
    }
}

/// Names a statement that no dump of tables has, with the reason.
fn unknown(verb: &str, words: &mut Cursor) -> String {
    let list = words.tokens.iter().skip(1).take(12);
    let object = list.filter(|token| token.shape == Shape::Word).find_map(|token| {
        let word = words.upper(token);
        match word.as_str() {
            "VIEW" => Some("views"),
            "TRIGGER" => Some("triggers"),
            "PROCEDURE" | "FUNCTION" | "PACKAGE" => Some("routines"),
            "EVENT" => Some("events"),
            "SEQUENCE" => Some("sequences"),
            _ => None,
        }
    });
    let what = clip(format!("{verb} {}", words.word().unwrap_or_default()).trim_end(), 40);
    match (verb, object) {
        ("DELIMITER", _) => format!("{verb}: triggers and routines are not loaded"),
        ("USE", _) => format!("{verb}: a load stays in its own --database"),
        ("CREATE" | "DROP" | "ALTER", Some(object)) => format!("{what}: {object} are not loaded"),
        _ => what,
    }
}

fn insert(words: &mut Cursor) -> Result<StatementInfo, String> {
    while ["LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE"].iter().any(|word| words.has(word))
    {
    }
    words.has("INTO");
    let name = words.table()?;
    if words.sign(b'(') {
        let in_list =
            |shape| matches!(shape, Shape::Word | Shape::Quoted(b'`' | b'"') | Shape::Sign(b','));
        while words.take(in_list).is_some() {}
        if !words.sign(b')') {
            return Err("a list of columns without end".to_owned());
        }
    }
    match words.peek() {
        _ if words.has("VALUES") || words.has("VALUE") => {
            Ok(StatementInfo { kind: DumpPart::Insert, name })
        }
        Some(token) => Err(words.odd(token)),
        None => Err("an INSERT without VALUES".to_owned()),
    }
}

fn drop_table(words: &mut Cursor) -> Result<StatementInfo, String> {
    let kind = if words.has_all(&["IF", "EXISTS"]) { DumpPart::Drop } else { DumpPart::Touch };
    let name = words.table()?;
    if words.sign(b',') {
        return Err("DROP of more than one table".to_owned());
    }
    words.ends_with(StatementInfo { kind, name })
}

fn lock(words: &mut Cursor) -> Result<StatementInfo, String> {
    let name = words.table()?;
    if !words.has("WRITE") && words.has("READ") {
        words.has("LOCAL");
    }
    words.ends_with(StatementInfo { kind: DumpPart::Touch, name })
}

/// Takes the statements of MySQL's mysqldump for a table that has a histogram.
fn histogram(words: &mut Cursor) -> Result<StatementInfo, String> {
    let name = words.table()?;
    if !words.has_all(&["UPDATE", "HISTOGRAM", "ON"]) {
        return Err("ANALYZE without a histogram".to_owned());
    }
    while words.take(|shape| !matches!(shape, Shape::Sign(s) if s != b',')).is_some() {}
    words.ends_with(StatementInfo { kind: DumpPart::Touch, name })
}

fn create(words: &mut Cursor, all: &Tokens, whole: bool) -> Result<StatementInfo, String> {
    let from = words.at;
    let if_not_exists = words.has_all(&["IF", "NOT", "EXISTS"]).then_some(from..words.at);
    let name = words.table()?;
    let body = words.at;
    if !words.sign(b'(') {
        return Err("a CREATE TABLE without columns".to_owned());
    }
    // The name, and its presence, must be the same to all servers.
    let fits = |range: &Range<usize>| range.start > body || Some(range) == if_not_exists.as_ref();
    if !whole && !all.versioned.iter().all(fits) {
        return Err(AMBIGUOUS.to_owned());
    }
    words.at = body;
    let versioned = if whole { &[][..] } else { &all.versioned };
    definition(words, versioned).map(|_| StatementInfo { kind: DumpPart::Create, name })
}

/// Actions of a dump's ALTER TABLE: switch keys, or add definitions that follow the rows.
const ACTIONS: [&[&str]; 5] =
    [&["DISABLE", "KEYS"], &["ENABLE", "KEYS"], &["ADD"], &["MODIFY"], &["AUTO_INCREMENT"]];

fn alter(words: &mut Cursor) -> Result<StatementInfo, String> {
    let name = words.table()?;
    let mut starts = vec![words.at];
    starts.extend(definition(words, &[])?);
    for at in starts {
        words.at = at;
        if !ACTIONS.iter().any(|action| words.has_all(action)) {
            let word = words.word().unwrap_or_default();
            return Err(clip(format!("ALTER TABLE … {word}").trim_end(), 40));
        }
    }
    Ok(StatementInfo { kind: DumpPart::Touch, name })
}

/// Engines that keep a table's rows in its own database.
const ENGINES: [&str; 14] = [
    "INNODB",
    "MYISAM",
    "ARIA",
    "MARIA",
    "MEMORY",
    "HEAP",
    "ARCHIVE",
    "CSV",
    "BLACKHOLE",
    "ROCKSDB",
    "TOKUDB",
    "NDB",
    "NDBCLUSTER",
    "COLUMNSTORE",
];

/// Checks that it reads no other table and no file. Returns the positions after its commas outside of brackets.
fn definition(words: &mut Cursor, versioned: &[Range<usize>]) -> Result<Vec<usize>, String> {
    let (mut depth, mut starts) = (0_usize, Vec::new());
    let mut depths = Vec::new();
    while let Some(token) = words.peek() {
        let at = words.at;
        depths.push((at, depth));
        words.at += 1;
        match token.shape {
            Shape::Sign(b'(') => depth += 1,
            Shape::Sign(b')') => depth = depth.checked_sub(1).ok_or("a bracket too many")?,
            Shape::Sign(b',') if depth == 0 => starts.push(words.at),
            Shape::Word => refuse_foreign(words, token, depth)?,
            _ => {}
        }
    }
    depths.push((words.at, depth));
    let depth_at =
        |at: usize| depths.iter().find(|(known, _)| *known == at).map(|(_, depth)| *depth);
    for Range { start, end } in versioned.iter().filter(|range| depth_at(range.start).is_some()) {
        let before = depth_at(*start);
        if depth_at(*end) != before || (*start..*end).any(|at| depth_at(at) < before) {
            return Err(AMBIGUOUS.to_owned());
        }
    }
    Ok(starts)
}

/// Refuses a word by which a definition uses something outside its table; the cursor is behind the word.
fn refuse_foreign(words: &Cursor, token: &Token, depth: usize) -> Result<(), String> {
    let (mut next, word) = (words.clone(), words.upper(token));
    let before = words.at.checked_sub(2).and_then(|at| words.tokens.get(at));
    let before = before.map_or_else(String::new, |token| words.upper(token));
    let refused = match word.as_str() {
        "SELECT" | "TABLE" | "UNION" | "LOAD_FILE" => true,
        "LIKE" => depth <= 1,
        "ROW" => next.sign(b'('),
        "DIRECTORY" => ["DATA", "INDEX"].contains(&before.as_str()),
        "REFERENCES" => {
            next.table()?;
            false
        }
        "ENGINE" | "TYPE" => {
            let assigned = next.sign(b'=');
            let engine = next.peek().map(|token| words.upper(token)).unwrap_or_default();
            let engine = engine.trim_matches(['\'', '"', '`']);
            (assigned || (depth == 0 && word == "ENGINE")) && !ENGINES.contains(&engine)
        }
        _ => false,
    };
    if refused { Err(words.odd(token)) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
