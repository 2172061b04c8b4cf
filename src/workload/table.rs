//! sysbench's tables, and the mark that loadgen leaves in their COMMENT.

use std::fmt;

/// Rows above this need a BIGINT id: the largest INT.
const INT_MAX: u64 = 2_147_483_647;
/// Rows a table at most.
pub(crate) const ROWS_MAX: u64 = 10_000_000_000;
/// Tables at most, as a limit on nonsense.
pub(crate) const TABLES_MAX: u32 = 100_000;

/// What the names of sysbench's tables begin with.
pub(crate) const PREFIX: &str = "sbtest";

/// `sbtestN`; tables are counted from 1.
pub fn name(table: u32) -> String {
    format!("{PREFIX}{table}")
}

/// An identifier quoted for SQL.
pub(crate) fn quoted(identifier: &str) -> String {
    format!("`{}`", identifier.replace('`', "``"))
}

/// CREATE TABLE as sysbench does it; the index on `k` comes after the fill ([`create_index`]).
pub fn create(table: u32, rows: u64, mark: &Mark, charset: Option<&str>) -> String {
    definition(table, rows, mark, "", &named_charset(charset))
}

/// CREATE TABLE as mysqldump writes it: the index on `k` is there before the rows.
pub(crate) fn create_indexed(table: u32, rows: u64, mark: &Mark) -> String {
    let key = format!(",\n  KEY {} (k)", quoted(&format!("k_{table}")));
    definition(table, rows, mark, &key, "")
}

fn definition(table: u32, rows: u64, mark: &Mark, keys: &str, options: &str) -> String {
    format!(
        "CREATE TABLE {name} (\n  id {int} NOT NULL AUTO_INCREMENT,\n  k {int} DEFAULT '0' NOT NULL,\n  \
         c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  PRIMARY KEY (id){keys}\n\
         ) ENGINE=InnoDB{options} COMMENT='{mark}'",
        name = quoted(&name(table)),
        int = int(rows),
    )
}

/// The type of ids of so many rows.
pub(crate) fn int(rows: u64) -> &'static str {
    if rows > INT_MAX { "BIGINT" } else { "INTEGER" }
}

/// The clause of CREATE TABLE, empty without a name.
pub(crate) fn named_charset(charset: Option<&str>) -> String {
    charset.map(|c| format!(" DEFAULT CHARSET={c}")).unwrap_or_default()
}

/// CREATE INDEX as sysbench does it.
pub fn create_index(table: u32) -> String {
    format!("CREATE INDEX {} ON {} (k)", quoted(&format!("k_{table}")), quoted(&name(table)))
}

/// The COMMENT of a table that `load` made from somebody's dump: its own, to drop and load again,
/// but its rows are not those of a data seed.
pub(crate) const LOADED: &str = "loadgen:1 load=dump";

/// How far a table's fill got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Created; rows or the index may be missing.
    Filling,
    /// Filled, indexed, counted.
    Ready,
}

/// Bytes of a table's COMMENT on the oldest servers (MySQL 5.1).
const COMMENT_MAX: usize = 60;
/// Hexadecimal digits of an identity.
const ID_DIGITS: usize = 8;

/// The COMMENT of a table that loadgen made, such as
/// `loadgen:1 seed=1 rows=16000000 state=ready id=5f3a09c1`. A table without it is foreign:
/// usable, never dropped or refilled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Seed of the rows: 32 bits, so that the mark fits the 60 bytes of old servers.
    pub seed: u32,
    /// Rows when filled.
    pub rows: u64,
    /// How far the fill got.
    pub state: State,
    /// Tells this content from what the table held before and from all other tables: random,
    /// anew each time a table becomes ready. Old versions gave none.
    pub id: Option<u32>,
    /// Whether `load` made it, which may drop it again, and not `prepare`.
    pub loaded: bool,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match (self.state, self.loaded) {
            (State::Filling, false) => "filling",
            (State::Ready, false) => "ready",
            (State::Filling, true) => "loading",
            (State::Ready, true) => "loaded",
        };
        write!(f, "loadgen:1 seed={} rows={} state={state}", self.seed, self.rows)?;
        self.id.map_or(Ok(()), |id| write!(f, " id={id:x}"))
    }
}

impl Mark {
    /// Of a table that is not filled yet.
    pub(crate) fn filling(seed: u32, rows: u64) -> Mark {
        Mark { seed, rows, state: State::Filling, id: None, loaded: false }
    }

    /// The same of a table that `load` makes.
    #[must_use]
    pub(crate) fn by_load(self) -> Mark {
        let mark = Mark { loaded: true, ..self };
        // Its word is longer than `ready`.
        let cut = if mark.to_string().len() > COMMENT_MAX { 4 } else { 0 };
        Mark { id: mark.id.map(|id| id >> cut), ..mark }
    }

    /// Of a finished table, with as many of these random bits as there is room for: with the
    /// longest seeds and numbers of rows, two digits.
    pub fn ready(seed: u32, rows: u64, random: Option<u32>) -> Mark {
        let mark = Mark { seed, rows, state: State::Ready, id: None, loaded: false };
        let room = COMMENT_MAX.saturating_sub(mark.to_string().len() + " id=".len());
        let cut = 4 * ID_DIGITS.saturating_sub(room) as u32;
        Mark { id: random.and_then(|random| random.checked_shr(cut)), ..mark }
    }

    /// Reads a COMMENT; None for a foreign table, and for a mark of another version, which
    /// this version must not touch either.
    pub fn parse(comment: &str) -> Option<Mark> {
        let mut words = comment.split_ascii_whitespace();
        if words.next() != Some("loadgen:1") {
            return None;
        }
        let (mut seed, mut rows, mut state, mut id) = (None, None, None, None);
        let mut loaded = false;
        for word in words {
            match word.split_once('=')? {
                ("seed", v) => seed = v.parse().ok(),
                ("rows", v) => rows = v.parse().ok().filter(|r| *r <= ROWS_MAX),
                ("state", "filling") => state = Some(State::Filling),
                ("state", "ready") => state = Some(State::Ready),
                ("state", "loading") => (state, loaded) = (Some(State::Filling), true),
                ("state", "loaded") => (state, loaded) = (Some(State::Ready), true),
                ("id", v) => id = u32::from_str_radix(v, 16).ok(),
                _ => {}
            }
        }
        Some(Mark { seed: seed?, rows: rows?, state: state?, id, loaded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_mark_fits_and_comes_back() {
        let random = Some(0x9f3a_09c1);
        for mark in [
            Mark::filling(u32::MAX, ROWS_MAX),
            Mark::ready(u32::MAX, ROWS_MAX, random),
            Mark::ready(1, 0, None),
            Mark::ready(u32::MAX, ROWS_MAX, random).by_load(),
            Mark::filling(u32::MAX, ROWS_MAX).by_load(),
        ] {
            assert!(mark.to_string().len() <= COMMENT_MAX, "{mark}");
            assert_eq!(Mark::parse(&mark.to_string()), Some(mark));
        }
        let usual = Mark::ready(1, 16_000_000, random);
        assert_eq!(usual.to_string(), "loadgen:1 seed=1 rows=16000000 state=ready id=9f3a09c1");
        assert_eq!(Mark::ready(u32::MAX, ROWS_MAX, random).id, Some(0x9f), "what fits");
        let old = Mark::parse("loadgen:1 seed=1 rows=16000000 state=ready").expect("a mark");
        assert_eq!(old, Mark { id: None, ..usual });
    }

    #[test]
    fn other_comments_are_foreign() {
        for comment in [
            "",
            "my table",
            "loadgen",
            "loadgen:2 seed=1 rows=1 state=ready",
            "loadgen:1 seed=1 rows=1",
            "loadgen:1 seed=x rows=1 state=ready",
            "loadgen:1 seed=1 rows=1 state=ready junk",
        ] {
            assert_eq!(Mark::parse(comment), None, "{comment}");
        }
    }

    #[test]
    fn large_tables_get_bigint() {
        let mark = Mark::filling(1, 1);
        assert!(create(1, INT_MAX, &mark, None).contains("id INTEGER"));
        assert!(create(1, INT_MAX + 1, &mark, None).contains("k BIGINT"));
        assert!(create(1, 1, &mark, Some("latin1")).contains("DEFAULT CHARSET=latin1 COMMENT"));
        let indexed = create_indexed(3, 1, &mark);
        assert!(indexed.contains("PRIMARY KEY (id),\n  KEY `k_3` (k)\n) ENGINE=InnoDB COMMENT"));
        assert_eq!(Mark::parse(LOADED), None);
        assert_eq!(create_index(3), "CREATE INDEX `k_3` ON `sbtest3` (k)");
    }

    proptest! {
        #[test]
        fn a_mark_reads_back(seed in any::<u32>(), rows in 0..=ROWS_MAX, ready in any::<bool>(), text in "\\PC{0,60}") {
            let state = if ready { State::Ready } else { State::Filling };
            let mark = Mark { seed, rows, state, id: None, loaded: !ready };
            prop_assert_eq!(Mark::parse(&mark.to_string()), Some(mark));
            let _ = (Mark::parse(&text), Mark::parse(&format!("loadgen:1 {text}")));
        }

        #[test]
        fn a_name_stays_one_name(name in "\\PC{0,20}[`'\"\\\\]{0,5}") {
            let quoted = quoted(&name);
            let inside = quoted.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
            let inside = inside.expect("in quotes");
            prop_assert!(!inside.replace("``", "").contains('`'), "{}", quoted);
            prop_assert_eq!(inside.replace("``", "`"), name);
        }
    }
}
