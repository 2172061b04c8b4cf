//! The tables of workloads: names, columns, DDL, and the mark that loadgen leaves in their COMMENT.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The largest INT: more rows need a BIGINT id.
const INT_MAX: u64 = 2_147_483_647;
pub(crate) const ROWS_MAX: u64 = 10_000_000_000;
/// Upper limit on tables; guards against typing errors.
pub(crate) const TABLES_MAX: u32 = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schema {
    #[default]
    Sbtest,
    /// The InnoDB benchmark suite of 2007.
    Phptest,
    /// Empty: bulk-insert fills them.
    Bulk,
}

pub(crate) struct Facts {
    prefix: &'static str,
    /// Names and types; `{int}` stands for the type of ids.
    columns: &'static [(&'static str, &'static str)],
    /// The column whose index workloads need besides that on `id`.
    pub indexed: Option<&'static str>,
    /// Builds the keys after the fill: one pass over the rows.
    index: Option<&'static str>,
    /// A column that an update may set to itself.
    pub writable: &'static str,
    /// Columns that read all rows, and the whole index.
    reads: (&'static str, Option<&'static str>),
}

const SBTEST: Facts = Facts {
    prefix: "sbtest",
    columns: &[
        ("id", "{int} NOT NULL AUTO_INCREMENT"),
        ("k", "{int} DEFAULT '0' NOT NULL"),
        ("c", "CHAR(120) DEFAULT '' NOT NULL"),
        ("pad", "CHAR(60) DEFAULT '' NOT NULL"),
    ],
    indexed: Some("k"),
    index: Some("CREATE INDEX `k_{n}` ON {table} (k)"),
    writable: "k",
    reads: ("SUM(LENGTH(c))", Some("SUM(k)")),
};

/// The table "normal" of Percona's InnoDB, MyISAM and Falcon benchmark (2007-01-08), without the
/// deprecated widths of its integers.
const PHPTEST: Facts = Facts {
    prefix: "phptest",
    columns: &[
        ("id", "{int} unsigned NOT NULL AUTO_INCREMENT"),
        ("name", "varchar(64) NOT NULL DEFAULT ''"),
        ("email", "varchar(64) NOT NULL DEFAULT ''"),
        ("password", "varchar(64) NOT NULL DEFAULT ''"),
        ("dob", "date DEFAULT NULL"),
        ("address", "varchar(128) NOT NULL DEFAULT ''"),
        ("city", "varchar(64) NOT NULL DEFAULT ''"),
        ("state_id", "tinyint unsigned NOT NULL DEFAULT '0'"),
        ("zip", "varchar(8) NOT NULL DEFAULT ''"),
        ("country_id", "smallint unsigned NOT NULL DEFAULT '0'"),
    ],
    indexed: Some("country_id"),
    index: Some(
        "ALTER TABLE {table} ADD UNIQUE KEY `email` (`email`), \
         ADD KEY `country_id` (`country_id`, `state_id`, `city`)",
    ),
    writable: "zip",
    reads: ("SUM(LENGTH(name))", Some("SUM(state_id)")),
};

const BULK: Facts = Facts {
    prefix: "bulk",
    columns: &[("id", "{int} NOT NULL"), ("k", "{int} DEFAULT '0' NOT NULL")],
    indexed: None,
    index: None,
    writable: "k",
    reads: ("SUM(k)", None),
};

impl Schema {
    pub(crate) const ALL: [Schema; 3] = [Schema::Sbtest, Schema::Phptest, Schema::Bulk];

    pub(crate) fn facts(self) -> &'static Facts {
        match self {
            Schema::Sbtest => &SBTEST,
            Schema::Phptest => &PHPTEST,
            Schema::Bulk => &BULK,
        }
    }

    pub(crate) fn prefix(self) -> &'static str {
        self.facts().prefix
    }

    pub(crate) fn columns(self) -> Vec<&'static str> {
        self.facts().columns.iter().map(|(name, _)| *name).collect()
    }

    pub fn name(self, table: u32) -> String {
        format!("{}{table}", self.prefix())
    }

    pub(crate) fn number(self, name: &str) -> Option<u32> {
        let digits = name.strip_prefix(self.prefix())?;
        let number = digits.parse().ok()?;
        (number > 0 && self.name(number) == name).then_some(number)
    }

    pub(crate) fn filled(self) -> bool {
        self != Schema::Bulk
    }

    /// Makes CREATE TABLE; [`Schema::index`] comes after the fill.
    pub fn create(self, table: u32, rows: u64, mark: &Mark, charset: Option<&str>) -> String {
        let charset = charset.map(|c| format!(" DEFAULT CHARSET={c}")).unwrap_or_default();
        self.definition(table, rows, mark, ["", &charset])
    }

    fn definition(self, table: u32, rows: u64, mark: &Mark, more: [&str; 2]) -> String {
        let [keys, options] = more;
        let columns = self.facts().columns.iter().map(|(name, kind)| format!("  {name} {kind},\n"));
        let columns: String = columns.collect();
        format!(
            "CREATE TABLE {name} (\n{columns}  PRIMARY KEY (id){keys}\n\
             ) ENGINE=InnoDB{options} COMMENT='{mark}'",
            name = quoted(&self.name(table)),
            columns = columns.replace("{int}", if rows > INT_MAX { "BIGINT" } else { "INTEGER" }),
        )
    }

    pub fn index(self, table: u32) -> Option<String> {
        let sql = self.facts().index?.replace("{n}", &table.to_string());
        Some(sql.replace("{table}", &quoted(&self.name(table))))
    }

    /// Makes statements that read all rows of a table in pieces, then its index.
    pub(crate) fn reads(self, table: u32, rows: u64, piece: u64) -> Vec<String> {
        let ((row, index), name) = (self.facts().reads, quoted(&self.name(table)));
        let pieces = rows.div_ceil(piece).max(1);
        let by_id = (1..=pieces).map(|i| {
            // The last piece also reads uncounted rows.
            let upto = format!(" AND id <= {}", i * piece);
            let upto = if i < pieces { upto.as_str() } else { "" };
            format!("SELECT {row} FROM {name} WHERE id > {}{upto}", (i - 1) * piece)
        });
        by_id.chain(index.map(|what| format!("SELECT {what} FROM {name}"))).collect()
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.prefix())
    }
}

pub(crate) fn quoted(identifier: &str) -> String {
    format!("`{}`", identifier.replace('`', "``"))
}

/// Makes CREATE TABLE as mysqldump writes it, with the index on `k` before the rows.
pub(crate) fn create_indexed(table: u32, rows: u64, mark: &Mark) -> String {
    let key = format!(",\n  KEY `k_{table}` (k)");
    Schema::Sbtest.definition(table, rows, mark, [&key, ""])
}

/// The COMMENT of a table that `load` made from a foreign dump: loadgen may drop and load it again,
/// but the rows have no data seed.
pub(crate) const LOADED: &str = "loadgen:1 load=dump";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Rows or the index may be missing.
    Filling,
    Ready,
}

/// Longest COMMENT of the oldest servers (MySQL 5.1), bytes.
const COMMENT_MAX: usize = 60;

/// The COMMENT of a table that loadgen made, such as `loadgen:1 seed=1 rows=16000000 state=ready
/// id=5f3a09c1`. A table without it is foreign: usable, never dropped or refilled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// 32 bits, so that the mark fits.
    pub seed: u32,
    pub rows: u64,
    pub state: State,
    /// Identifies this content: random, new each time a table becomes ready. Old versions gave none.
    pub id: Option<u32>,
    /// True if `load` made it, which may drop it again, not `prepare`.
    pub loaded: bool,
}

/// The words of states, and whether `load` makes the table.
const STATES: [(&str, State, bool); 4] = [
    ("filling", State::Filling, false),
    ("ready", State::Ready, false),
    ("loading", State::Filling, true),
    ("loaded", State::Ready, true),
];

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let here = |(_, state, loaded): &&_| (self.state, self.loaded) == (*state, *loaded);
        let (state, ..) = STATES.iter().find(here).expect("all are there");
        write!(f, "loadgen:1 seed={} rows={} state={state}", self.seed, self.rows)?;
        self.id.map_or(Ok(()), |id| write!(f, " id={id:x}"))
    }
}

impl Mark {
    pub(crate) fn filling(seed: u32, rows: u64) -> Mark {
        Mark { seed, rows, state: State::Filling, id: None, loaded: false }
    }

    /// Marks a finished table, with as many of the random bits as fit.
    pub fn ready(seed: u32, rows: u64, random: Option<u32>) -> Mark {
        Mark { id: random, state: State::Ready, ..Mark::filling(seed, rows) }.cut_id()
    }

    #[must_use]
    pub(crate) fn by_load(self) -> Mark {
        Mark { loaded: true, ..self }.cut_id()
    }

    /// Cuts the id until the mark fits: at least one digit always stays.
    fn cut_id(self) -> Mark {
        match self.id {
            Some(id) if self.to_string().len() > COMMENT_MAX => {
                Mark { id: (id > 0).then_some(id >> 4), ..self }.cut_id()
            }
            _ => self,
        }
    }

    /// Returns None for a foreign table, and for a mark of another version, which is not to be touched either.
    pub fn parse(comment: &str) -> Option<Mark> {
        let mut words = comment.split_ascii_whitespace();
        words.next().filter(|first| *first == "loadgen:1")?;
        let fields: BTreeMap<&str, &str> =
            words.map(|w| w.split_once('=')).collect::<Option<_>>()?;
        let (_, state, loaded) =
            STATES.into_iter().find(|of| fields.get("state") == Some(&of.0))?;
        let seed = fields.get("seed")?.parse().ok()?;
        let rows = fields.get("rows")?.parse().ok().filter(|rows| *rows <= ROWS_MAX)?;
        let id = fields.get("id").and_then(|id| u32::from_str_radix(id, 16).ok());
        Some(Mark { seed, rows, state, id, loaded })
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
        assert!(Schema::Sbtest.create(1, INT_MAX, &mark, None).contains("id INTEGER"));
        assert!(Schema::Sbtest.create(1, INT_MAX + 1, &mark, None).contains("k BIGINT"));
        assert!(
            Schema::Sbtest
                .create(1, 1, &mark, Some("latin1"))
                .contains("DEFAULT CHARSET=latin1 COMMENT")
        );
        let indexed = create_indexed(3, 1, &mark);
        assert!(indexed.contains("PRIMARY KEY (id),\n  KEY `k_3` (k)\n) ENGINE=InnoDB COMMENT"));
        assert_eq!(Mark::parse(LOADED), None);
        let index = Schema::Sbtest.index(3).expect("an index");
        assert_eq!(index, "CREATE INDEX `k_3` ON `sbtest3` (k)");
    }

    #[test]
    fn names_come_back_to_their_own_schema_only() {
        for schema in Schema::ALL {
            assert_eq!(schema.number(&schema.name(8)), Some(8));
            for other in Schema::ALL.into_iter().filter(|other| *other != schema) {
                assert_eq!(other.number(&schema.name(8)), None);
            }
            let prefix = schema.prefix();
            for odd in ["", "01", "-1", "1x", "99999999999", "+1"] {
                assert_eq!(schema.number(&format!("{prefix}{odd}")), None, "{prefix}{odd}");
            }
        }
    }

    #[test]
    fn all_rows_are_read_in_pieces() {
        let reads = Schema::Sbtest.reads(2, 250, 100);
        assert_eq!(
            reads,
            [
                "SELECT SUM(LENGTH(c)) FROM `sbtest2` WHERE id > 0 AND id <= 100",
                "SELECT SUM(LENGTH(c)) FROM `sbtest2` WHERE id > 100 AND id <= 200",
                "SELECT SUM(LENGTH(c)) FROM `sbtest2` WHERE id > 200",
                "SELECT SUM(k) FROM `sbtest2`",
            ]
        );
        assert_eq!(Schema::Bulk.reads(1, 0, 100), ["SELECT SUM(k) FROM `bulk1` WHERE id > 0"]);
    }

    #[test]
    fn every_column_that_is_used_is_made() {
        let mark = Mark::filling(1, 1);
        for schema in Schema::ALL {
            let sql = schema.create(3, 1, &mark, Some("latin1")).replace('`', "");
            for column in schema.columns() {
                assert!(sql.contains(&format!("  {column} ")), "{column}: {sql}");
            }
            assert!(sql.contains("PRIMARY KEY (id)"), "{sql}");
            assert!(
                sql.ends_with("CHARSET=latin1 COMMENT='loadgen:1 seed=1 rows=1 state=filling'")
            );
            assert_eq!(schema.index(3).is_some(), schema.facts().indexed.is_some());
        }
        assert!(Schema::Phptest.create(1, 3_000_000_000, &mark, None).contains("BIGINT unsigned"));
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
