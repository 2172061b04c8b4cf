//! Checks SET: the variables that a dump may set, and their values. A dump saves old values in user variables
//! and restores them at its end; each may only go back to the variable it came from.

use std::collections::HashMap;

use super::cursor::{Cursor, DumpPart, LeftOut, StatementInfo, refuse_charset, unquoted};
use super::lex::Shape;
use crate::error::clip;

const VARIABLES: [&str; 23] = [
    "AUTOCOMMIT",
    "UNIQUE_CHECKS",
    "FOREIGN_KEY_CHECKS",
    "SQL_MODE",
    "SQL_NOTES",
    "NOTE_VERBOSITY",
    "TIME_ZONE",
    "CHARACTER_SET_CLIENT",
    "CHARACTER_SET_RESULTS",
    "CHARACTER_SET_CONNECTION",
    "COLLATION_CONNECTION",
    "SQL_QUOTE_SHOW_CREATE",
    "SQL_REQUIRE_PRIMARY_KEY",
    "SQL_GENERATE_INVISIBLE_PRIMARY_KEY",
    "SYSTEM_VERSIONING_INSERT_HISTORY",
    "SYSTEM_VERSIONING_ALTER_HISTORY",
    "EXPLICIT_DEFAULTS_FOR_TIMESTAMP",
    "DEFAULT_STORAGE_ENGINE",
    "STORAGE_ENGINE",
    "INNODB_STRICT_MODE",
    "CHECK_CONSTRAINT_CHECKS",
    "SQL_WARNINGS",
    "SQL_AUTO_IS_NULL",
];

/// The mode in which the server would split the file into other statements.
const BACKSLASHES: &str = "NO_BACKSLASH_ESCAPES";

/// Modes in which double quotes enclose names.
const ANSI: [&str; 7] = ["ANSI", "ANSI_QUOTES", "DB2", "MAXDB", "MSSQL", "ORACLE", "POSTGRESQL"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Saved {
    /// The old value of this variable; of this character set if it is one.
    Variable(String, Option<String>),
    Literal(String),
    /// The old value of a variable that a load does not set.
    LeftOut,
}

/// Removes the modes in which the server would split a file differently; a file may set its own.
pub(crate) fn split_as_written(modes: &str) -> String {
    let odd = |mode: &str| mode == BACKSLASHES || ANSI.contains(&mode);
    modes.split(',').filter(|mode| !odd(&mode.to_ascii_uppercase())).collect::<Vec<_>>().join(",")
}

enum Target {
    User(String),
    Session(String),
    Global(String),
}

fn left_out(variable: &str) -> Option<LeftOut> {
    match variable {
        "GTID_PURGED" => Some(LeftOut::GtidPurged),
        "SQL_LOG_BIN" => Some(LeftOut::SqlLogBin),
        "GTID_SLAVE_POS" => Some(LeftOut::Replication),
        _ => None,
    }
}

#[derive(Debug)]
pub(super) struct Variables {
    /// Character set of the statements; None if unknown.
    pub(super) charset: Option<String>,
    /// The contents of user variables, by name.
    saved: HashMap<String, Saved>,
    pub(super) ansi: bool,
}

impl Variables {
    pub(super) fn new(charset: Option<&str>) -> Variables {
        Variables { charset: charset.map(str::to_owned), saved: HashMap::new(), ansi: false }
    }

    pub(super) fn set(&mut self, words: &mut Cursor) -> Result<StatementInfo, String> {
        if words.has("NAMES") {
            return self.names(words);
        }
        if words.has("CHARSET") || words.has_all(&["CHARACTER", "SET"]) {
            self.names(words)?;
            return words.ends(DumpPart::Other);
        }
        let (mut omitted, mut kept) = (None, false);
        loop {
            match self.assignment(words)? {
                Some(about) => {
                    omitted = Some(omitted.map_or(about, |known: LeftOut| known.min(about)));
                }
                None => kept = true,
            }
            if words.peek().is_none() {
                break;
            }
            if !words.sign(b',') {
                return Err(words.odd(words.peek().expect("there is one")));
            }
        }
        match omitted {
            Some(about) if kept => {
                Err(format!("SET of {} together with other variables", about.name()))
            }
            Some(about) => Ok(StatementInfo::nameless(DumpPart::LeftOut(about))),
            None => Ok(StatementInfo::nameless(DumpPart::Other)),
        }
    }

    fn names(&mut self, words: &mut Cursor) -> Result<StatementInfo, String> {
        let name = words.take(is_name).ok_or("a character set without a name")?.range.clone();
        if words.has("COLLATE") {
            words.take(is_name);
        }
        let text = plain(&words.sql[name.clone()])?;
        refuse_charset(text.as_bytes())?;
        self.charset = Some(text.to_ascii_lowercase());
        words.ends_with(StatementInfo { kind: DumpPart::Names, name })
    }

    /// Takes `variable = value`. Returns its subject if it is left out.
    fn assignment(&mut self, words: &mut Cursor) -> Result<Option<LeftOut>, String> {
        let target = target(words)?;
        words.sign(b':');
        if !words.sign(b'=') {
            return Err("SET without a value".to_owned());
        }
        match target {
            Target::Session(name) | Target::Global(name) if left_out(&name).is_some() => {
                skip_value(words);
                Ok(left_out(&name))
            }
            Target::Global(name) => {
                Err(format!("SET GLOBAL {}: it changes the server", clip(&name, 40)))
            }
            Target::User(name) => self.save(&name, words),
            Target::Session(name) => self.assign(&name, words).map(|()| None),
        }
    }

    fn save(&mut self, name: &str, words: &mut Cursor) -> Result<Option<LeftOut>, String> {
        let value = if words.sign(b'@') {
            if !words.sign(b'@') {
                return Err("a user variable set to another".to_owned());
            }
            words.at -= 2;
            match target(words)? {
                Target::Session(of) if left_out(&of).is_some() => Saved::LeftOut,
                Target::Session(of) if VARIABLES.contains(&of.as_str()) => {
                    Saved::Variable(of, self.charset.clone())
                }
                Target::Session(of) | Target::Global(of) | Target::User(of) => {
                    return Err(format!("a look at {}", clip(&of, 40)));
                }
            }
        } else {
            Saved::Literal(literal(words)?)
        };
        let omitted = (value == Saved::LeftOut).then_some(LeftOut::SqlLogBin);
        let of_other = |known: &Saved| match (known, &value) {
            (Saved::Variable(one, _), Saved::Variable(other, _)) => one != other,
            (known, value) => known != value,
        };
        // By its version a server may skip one of the two.
        if self.saved.get(name).is_some_and(of_other) {
            return Err(format!("@{} set twice, to different things", clip(name, 40)));
        }
        self.saved.insert(name.to_owned(), value);
        Ok(omitted)
    }

    fn assign(&mut self, name: &str, words: &mut Cursor) -> Result<(), String> {
        if !VARIABLES.contains(&name) {
            return Err(format!("SET {}: no dump of tables sets it", clip(name, 40)));
        }
        if words.has("IFNULL") {
            if !(words.sign(b'(') && words.sign(b'@')) {
                return Err("SET to what is no value".to_owned());
            }
            self.restore(name, words)?;
            let more = words.sign(b',');
            let value = literal(words)?;
            self.literal(name, &value)?;
            return if more && words.sign(b')') {
                Ok(())
            } else {
                Err("IFNULL without end".to_owned())
            };
        }
        if words.sign(b'@') {
            return self.restore(name, words);
        }
        let value = literal(words)?;
        self.literal(name, &value)
    }

    fn restore(&mut self, name: &str, words: &mut Cursor) -> Result<(), String> {
        let user = user_variable(words)?;
        match self.saved.get(&user).cloned() {
            Some(Saved::Variable(of, charset)) if of == name => {
                if name == "CHARACTER_SET_CLIENT" {
                    self.charset = charset;
                }
                Ok(())
            }
            Some(Saved::Literal(value)) => self.literal(name, &value),
            _ => Err(format!("SET {name} to @{}, which has no saved {name}", clip(&user, 40))),
        }
    }

    /// Applies a value that changes how the file is read.
    fn literal(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = value.starts_with(|c: char| c.is_ascii_digit());
        let unseen = number || value.eq_ignore_ascii_case("DEFAULT");
        let charset = name.starts_with("CHARACTER_SET_") || name.starts_with("COLLATION_");
        if unseen && (charset || name == "SQL_MODE") {
            return Err(format!("SET {name} to what the file does not name"));
        }
        if name == "SQL_MODE" {
            let modes: Vec<String> =
                value.split(',').map(|mode| mode.trim().to_ascii_uppercase()).collect();
            if modes.iter().any(|mode| mode.contains(BACKSLASHES)) {
                return Err(format!(
                    "sql_mode {BACKSLASHES} is not supported: mysqldump writes for the others"
                ));
            }
            self.ansi |= modes.iter().any(|mode| ANSI.contains(&mode.as_str()));
        }
        if charset {
            let set = value.split('_').next().unwrap_or(value);
            refuse_charset(set.as_bytes())?;
        }
        if name == "CHARACTER_SET_CLIENT" {
            self.charset = Some(value.to_ascii_lowercase());
        }
        Ok(())
    }
}

fn is_name(shape: Shape) -> bool {
    matches!(shape, Shape::Word | Shape::Quoted(_))
}

/// Takes a variable's name, in upper case.
fn target(words: &mut Cursor) -> Result<Target, String> {
    let global = |scope: &str| ["GLOBAL", "PERSIST", "PERSIST_ONLY"].contains(&scope);
    let scoped = |scope: &str| ["SESSION", "LOCAL"].contains(&scope) || global(scope);
    let at = words.sign(b'@');
    if at && !words.sign(b'@') {
        return user_variable(words).map(Target::User);
    }
    let first = words.word();
    let mut name = first.ok_or("SET of what is no variable")?;
    let mut is_global = false;
    let qualified = if at { words.sign(b'.') } else { true };
    if scoped(&name)
        && qualified
        && let Some(next) = words.word()
    {
        is_global = global(&name);
        name = next;
    } else if at && qualified {
        return Err(format!("SET of a part of {}", clip(&name, 40)));
    }
    Ok(if is_global { Target::Global(name) } else { Target::Session(name) })
}

fn user_variable(words: &mut Cursor) -> Result<String, String> {
    let token = words.take(is_name).ok_or("a variable without a name")?;
    plain(&words.sql[token.range.clone()]).map(|name| name.to_ascii_uppercase())
}

fn literal(words: &mut Cursor) -> Result<String, String> {
    let signed = words.sign(b'-') || words.sign(b'+');
    let token = words.take(|_| true).ok_or("SET without a value")?;
    let followed = words.peek().map(|token| token.shape);
    match (token.shape, followed) {
        (_, Some(Shape::Sign(b'(' | b'.'))) => {}
        (Shape::Number, _) => return plain(&words.sql[token.range.clone()]),
        (Shape::Word | Shape::Quoted(b'\'' | b'"'), _) if !signed => {
            return plain(&words.sql[token.range.clone()]);
        }
        _ => {}
    }
    Err("SET to what is no value".to_owned())
}

/// Removes the quotes; refuses an escape or a quote inside, which could change the text.
fn plain(text: &[u8]) -> Result<String, String> {
    let name = unquoted(text).filter(|name| !name.contains(['\\', '\'', '"', '`']));
    name.ok_or_else(|| "SET with an escape in its text".to_owned())
}

/// Skips a value that is not sent, up to the next comma.
fn skip_value(words: &mut Cursor) {
    let mut depth = 0_usize;
    while let Some(token) = words.peek() {
        match token.shape {
            Shape::Sign(b',') if depth == 0 => return,
            Shape::Sign(b'(') => depth += 1,
            Shape::Sign(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        words.at += 1;
    }
}
