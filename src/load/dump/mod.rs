//! Files that mysqldump wrote, read as they stream: split into statements, and each recognised by its
//! first words.
//!
//! A dump of tables has few kinds of statements. The others are refused rather than sent: a file given
//! to a benchmark by mistake must not drop a database.

mod split;

use std::ops::Range;

use memchr::{memchr, memmem};

pub use split::{Splitter, Statement};

/// What a statement does, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `DROP TABLE IF EXISTS`: nothing happens where there is none.
    Drop,
    Create,
    Insert,
    /// Another one that names a table: `LOCK TABLES`, `ALTER TABLE`, a `DROP TABLE` that fails
    /// where there is none.
    Touch,
    /// `SET NAMES`; the name is the character set's.
    Names,
    /// `SET`, `UNLOCK TABLES`, `COMMIT` and the like.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub kind: Kind,
    /// Where in it the name stands, quotes included; empty where there is none.
    pub name: Range<usize>,
}

/// Recognises a statement.
pub fn classify(sql: &[u8]) -> Result<Seen, String> {
    let mut words = Words { sql, at: 0 };
    let first = words.word();
    match first.to_ascii_uppercase().as_slice() {
        b"INSERT" | b"REPLACE" => {
            while words.has(&[b"LOW_PRIORITY", b"HIGH_PRIORITY", b"DELAYED", b"IGNORE"]) {}
            words.has(&[b"INTO"]);
            words.table(Kind::Insert)
        }
        b"SET" => {
            refuse_mode(sql)?;
            let names = words.has(&[b"NAMES"]);
            if names
                || words.has(&[b"CHARACTER_SET_CLIENT", b"CHARSET"])
                || (words.has(&[b"CHARACTER"]) && words.has(&[b"SET"]))
            {
                let name = words.value();
                refuse_charset(&sql[name.clone()])?;
                if names {
                    return Ok(Seen { kind: Kind::Names, name });
                }
            }
            Ok(Seen { kind: Kind::Other, name: 0..0 })
        }
        b"DROP" if words.has(&[b"TABLE"]) => {
            let if_exists = words.has(&[b"IF"]) && words.has(&[b"EXISTS"]);
            let seen = words.table(if if_exists { Kind::Drop } else { Kind::Touch })?;
            words.skip();
            if words.rest().is_empty() {
                Ok(seen)
            } else {
                Err("DROP of more than one table".to_owned())
            }
        }
        b"CREATE" if words.has(&[b"TABLE"]) => {
            if words.has(&[b"IF"]) {
                while words.has(&[b"NOT", b"EXISTS"]) {}
            }
            words.table(Kind::Create)
        }
        b"LOCK" if words.has(&[b"TABLES", b"TABLE"]) => words.table(Kind::Touch),
        b"ALTER" if words.has(&[b"TABLE"]) => words.table(Kind::Touch),
        b"UNLOCK" | b"COMMIT" | b"BEGIN" | b"START" => Ok(Seen { kind: Kind::Other, name: 0..0 }),
        _ => Err(refused(first, words.word())),
    }
}

/// Character sets in which a character may have a byte that is a quote or a backslash: the file
/// cannot be split into statements without reading all of it as characters.
const SPLIT_WRONGLY: [&str; 5] = ["big5", "gbk", "gb18030", "sjis", "cp932"];

/// Refuses a character set in which a dump cannot be split.
pub(in crate::load) fn refuse_charset(name: &[u8]) -> Result<(), String> {
    let Some(name) = unquoted(name).map(|name| name.to_ascii_lowercase()) else {
        return Err("a character set whose name is no text".to_owned());
    };
    if SPLIT_WRONGLY.contains(&name.as_str()) {
        return Err(format!(
            "a file in {name} is not supported, because its characters have bytes that are quotes \
             or backslashes: mysqldump --default-character-set=utf8mb4 writes another"
        ));
    }
    Ok(())
}

/// Refuses a mode in which a backslash is a character like others, and a quote behind one ends the
/// text: the server would read other statements than the file is split into.
fn refuse_mode(set: &[u8]) -> Result<(), String> {
    const MODE: &str = "NO_BACKSLASH_ESCAPES";
    if memmem::find(&set.to_ascii_uppercase(), MODE.as_bytes()).is_none() {
        return Ok(());
    }
    Err(format!("sql_mode {MODE} is not supported: mysqldump writes for the others"))
}

/// A name without its quotes; None where it is no UTF-8.
pub fn unquoted(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let inside = |quote| name.strip_prefix(quote)?.strip_suffix(quote);
    let quoted = ["`", "\"", "'"].into_iter().find_map(|quote| Some((quote, inside(quote)?)));
    let plain = |(quote, inside): (&str, &str)| inside.replace(&quote.repeat(2), quote);
    Some(quoted.map_or_else(|| name.to_owned(), plain))
}

fn refused(first: &[u8], second: &[u8]) -> String {
    let text = |word: &[u8]| String::from_utf8_lossy(word).to_ascii_uppercase();
    match text(first).as_str() {
        "DELIMITER" => "DELIMITER: triggers and routines are not loaded".to_owned(),
        "USE" => "USE: a load stays in its own --database".to_owned(),
        "" => "this is no statement".to_owned(),
        verb @ ("CREATE" | "DROP" | "ALTER" | "LOCK") => format!("{verb} {}", text(second)),
        verb => verb.chars().take(40).collect(),
    }
}

/// The words of a statement, comments passed over and versioned ones entered.
struct Words<'a> {
    sql: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.sql[self.at..]
    }

    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let step = if let [b, ..] = rest
                && b.is_ascii_whitespace()
            {
                1
            } else if let Some(inner) =
                rest.strip_prefix(b"/*!").or_else(|| rest.strip_prefix(b"/*M!"))
            {
                let digits = inner.iter().take_while(|b| b.is_ascii_digit()).count();
                rest.len() - inner.len() + digits
            } else if rest.starts_with(b"/*") {
                memmem::find(rest, b"*/").map_or(rest.len(), |end| end + 2)
            } else if rest.starts_with(b"*/") {
                2
            } else if rest.starts_with(b"-- ") || rest.starts_with(b"#") {
                memchr(b'\n', rest).map_or(rest.len(), |end| end + 1)
            } else {
                return;
            };
            self.at += step;
        }
    }

    /// The next word of letters; empty if something else follows.
    fn word(&mut self) -> &'a [u8] {
        self.skip();
        let rest = self.rest();
        let length = rest.iter().take_while(|b| b.is_ascii_alphabetic() || **b == b'_').count();
        self.at += length;
        &rest[..length]
    }

    fn has(&mut self, words: &[&[u8]]) -> bool {
        let before = self.at;
        let word = self.word();
        let found = words.iter().any(|known| known.eq_ignore_ascii_case(word));
        if !found {
            self.at = before;
        }
        found
    }

    /// Takes a name, with its quotes; empty if none follows.
    fn name(&mut self) -> Range<usize> {
        self.skip();
        let (from, rest) = (self.at, self.rest());
        let length = if let [quote @ (b'`' | b'"' | b'\''), inner @ ..] = rest {
            // One inside is doubled.
            let mut end = 0;
            loop {
                match inner.get(end..).and_then(|rest| memchr(*quote, rest)) {
                    Some(found) if inner.get(end + found + 1) == Some(quote) => end += found + 2,
                    Some(found) => break end + found + 2,
                    None => break 0,
                }
            }
        } else {
            let plain = |b: &&u8| b.is_ascii_alphanumeric() || b"_$".contains(b) || !b.is_ascii();
            rest.iter().take_while(plain).count()
        };
        self.at += length;
        from..self.at
    }

    /// Takes a name that may stand behind an equals sign.
    fn value(&mut self) -> Range<usize> {
        self.skip();
        let sign = self.rest().iter().take_while(|b| b":=".contains(b)).count();
        self.at += sign;
        self.name()
    }

    fn table(&mut self, kind: Kind) -> Result<Seen, String> {
        let name = self.name();
        self.skip();
        match self.rest() {
            _ if name.is_empty() => Err("a table without a name".to_owned()),
            [b'.', ..] => Err("a table of another database".to_owned()),
            _ => Ok(Seen { kind, name }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(sql: &str) -> Result<(Kind, String), String> {
        let seen = classify(sql.as_bytes())?;
        let name = unquoted(&sql.as_bytes()[seen.name]).expect("UTF-8");
        Ok((seen.kind, name))
    }

    #[test]
    fn statements_of_mysqldump_are_known() {
        for (sql, kind, name) in [
            ("DROP TABLE IF EXISTS `sbtest1`", Kind::Drop, "sbtest1"),
            ("DROP TABLE IF EXISTS `a` /* x */", Kind::Drop, "a"),
            ("DROP TABLE t", Kind::Touch, "t"),
            ("CREATE TABLE `a``b` (\n  `id` int)", Kind::Create, "a`b"),
            ("create table if not exists t2(id int)", Kind::Create, "t2"),
            ("INSERT INTO `sbtest1` VALUES (1)", Kind::Insert, "sbtest1"),
            ("INSERT  IGNORE INTO `s` VALUES (1)", Kind::Insert, "s"),
            ("REPLACE DELAYED t (a) VALUES (1)", Kind::Insert, "t"),
            ("INSERT INTO \"t\" VALUES (1)", Kind::Insert, "t"),
            ("LOCK TABLES `sbtest1` WRITE", Kind::Touch, "sbtest1"),
            ("/*!40000 ALTER TABLE `sbtest1` DISABLE KEYS */", Kind::Touch, "sbtest1"),
            ("UNLOCK TABLES", Kind::Other, ""),
            ("/*!40101 SET NAMES utf8mb4 */", Kind::Names, "utf8mb4"),
            ("SET NAMES 'latin1'", Kind::Names, "latin1"),
            ("/*!40101 SET character_set_client = utf8 */", Kind::Other, ""),
            ("/*!40101 SET @saved_cs_client     = @@character_set_client */", Kind::Other, ""),
            ("/*M!100616 SET @OLD_NOTE_VERBOSITY=@@NOTE_VERBOSITY */", Kind::Other, ""),
            ("set autocommit=0", Kind::Other, ""),
            ("commit", Kind::Other, ""),
            ("INSERT INTO größe VALUES (1)", Kind::Insert, "größe"),
        ] {
            assert_eq!(seen(sql), Ok((kind, name.to_owned())), "{sql}");
        }
    }

    #[test]
    fn statements_that_a_dump_of_tables_does_not_have_are_refused() {
        for (sql, part) in [
            ("DROP DATABASE sbtest", "DROP DATABASE"),
            ("CREATE DATABASE /*!32312 IF NOT EXISTS*/ `x`", "CREATE DATABASE"),
            ("/*!50001 CREATE VIEW `v` AS SELECT 1 */", "CREATE VIEW"),
            ("DROP TABLE IF EXISTS a, b", "more than one"),
            ("DROP TABLE IF EXISTS other.a", "another database"),
            ("INSERT INTO `other` . `a` VALUES (1)", "another database"),
            ("INSERT INTO VALUES", "INTO"),
            ("DELIMITER ", "DELIMITER"),
            ("USE `mysql`", "USE"),
            ("DELETE FROM t", "DELETE"),
            ("/*!40101 SET NAMES gbk */", "a file in gbk is not supported"),
            ("SET NAMES 'BIG5'", "big5"),
            ("/*!40101 SET character_set_client = sjis */", "sjis"),
            ("SET CHARACTER SET cp932", "cp932"),
            ("SET CHARSET 'gb18030'", "gb18030"),
            ("/*!40101 SET sql_mode = 'ansi,no_backslash_escapes' */", "NO_BACKSLASH_ESCAPES"),
            ("\\. /etc/passwd", "no statement"),
            ("INSERT INTO `unclosed VALUES", "without a name"),
            ("", "no statement"),
        ] {
            match seen(sql) {
                Err(why) => assert!(why.contains(part), "{sql}: {why}"),
                // The server says what is wrong with it.
                Ok((kind, name)) => assert_eq!((kind, &*name), (Kind::Insert, "VALUES"), "{sql}"),
            }
        }
    }
}
