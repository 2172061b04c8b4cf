//! Files that mysqldump wrote: each statement is recognised by its first words.
//!
//! A dump of tables has few kinds of statements. The others are refused rather than sent: a file given
//! to a benchmark by mistake must not drop a database.

use std::ops::Range;

use memchr::memmem;

use crate::error::clip;
use crate::workload::sql::Words;

/// The effect of a statement, as far as a load asks for it.
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

pub fn classify(sql: &[u8]) -> Result<Seen, String> {
    let mut words = Words { sql, at: 0 };
    let verb = words.word();
    let kind = match verb.as_str() {
        "INSERT" | "REPLACE" => {
            while words.has("LOW_PRIORITY HIGH_PRIORITY DELAYED IGNORE") {}
            words.has("INTO");
            Kind::Insert
        }
        "SET" => return set(words),
        "DROP" if words.has("TABLE") => {
            let if_exists = words.has("IF") && words.has("EXISTS");
            if if_exists { Kind::Drop } else { Kind::Touch }
        }
        "CREATE" if words.has("TABLE") => {
            while words.has("IF NOT EXISTS") {}
            Kind::Create
        }
        "LOCK" if words.has("TABLES TABLE") => Kind::Touch,
        "ALTER" if words.has("TABLE") => Kind::Touch,
        "UNLOCK" | "COMMIT" | "BEGIN" | "START" => {
            return Ok(Seen { kind: Kind::Other, name: 0..0 });
        }
        "" => return Err("this is no statement".to_owned()),
        "DELIMITER" => return Err(format!("{verb}: triggers and routines are not loaded")),
        "USE" => return Err(format!("{verb}: a load stays in its own --database")),
        _ => return Err(clip(format!("{verb} {}", words.word()).trim_end(), 40)),
    };
    let name = words.name();
    words.skip();
    match words.rest() {
        _ if name.is_empty() => Err("a table without a name".to_owned()),
        [b'.', ..] => Err("a table of another database".to_owned()),
        [_, ..] if verb == "DROP" => Err("DROP of more than one table".to_owned()),
        _ => Ok(Seen { kind, name }),
    }
}

/// Recognises what follows `SET`. Without backslashes that escape, the server would read other
/// statements than the file is split into.
fn set(mut words: Words) -> Result<Seen, String> {
    const MODE: &str = "NO_BACKSLASH_ESCAPES";
    if memmem::find(&words.sql.to_ascii_uppercase(), MODE.as_bytes()).is_some() {
        return Err(format!("sql_mode {MODE} is not supported: mysqldump writes for the others"));
    }
    let names = words.has("NAMES");
    if names
        || words.has("CHARACTER_SET_CLIENT CHARSET")
        || (words.has("CHARACTER") && words.has("SET"))
    {
        words.skip();
        words.at += words.rest().iter().take_while(|b| b":=".contains(b)).count();
        let name = words.name();
        refuse_charset(&words.sql[name.clone()])?;
        if names {
            return Ok(Seen { kind: Kind::Names, name });
        }
    }
    Ok(Seen { kind: Kind::Other, name: 0..0 })
}

/// Character sets in which a character may have a byte that is a quote or a backslash: the file
/// cannot be split into statements without reading all of it as characters.
const SPLIT_WRONGLY: [&str; 5] = ["big5", "gbk", "gb18030", "sjis", "cp932"];

/// Refuses a character set in which a dump cannot be split.
pub(super) fn refuse_charset(name: &[u8]) -> Result<(), String> {
    let name = unquoted(name).ok_or("a character set whose name is no text")?.to_ascii_lowercase();
    if SPLIT_WRONGLY.contains(&name.as_str()) {
        return Err(format!(
            "a file in {name} is not supported, because its characters have bytes that are quotes \
             or backslashes: mysqldump --default-character-set=utf8mb4 writes another"
        ));
    }
    Ok(())
}

/// A name without its quotes; None where it is no UTF-8.
pub fn unquoted(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let inside = |quote: &&str| {
        let inside = name.strip_prefix(*quote)?.strip_suffix(*quote)?;
        Some(inside.replace(&quote.repeat(2), quote))
    };
    Some(["`", "\"", "'"].iter().find_map(inside).unwrap_or_else(|| name.to_owned()))
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
            ("DELIMITER ", "DELIMITER: triggers and routines"),
            ("USE `mysql`", "USE: a load stays"),
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
