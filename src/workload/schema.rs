//! The tables that workloads run on: names, columns, DDL.

use serde::{Deserialize, Serialize};

use super::table::{self, Mark, int, named_charset, quoted};

/// A kind of tables.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Schema {
    /// sysbench's sbtest1 … sbtestN
    #[default]
    Sbtest,
    /// phptest1 … phptestN of the InnoDB benchmark suite of 2007
    Phptest,
    /// bulk1 … bulkN, empty: bulk-insert fills them
    Bulk,
}

/// What is built after the fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Index {
    /// The last key that the statement makes: if it is there, all are.
    pub name: String,
    /// The statement.
    pub sql: String,
}

impl Schema {
    /// All of them.
    pub(crate) const ALL: [Schema; 3] = [Schema::Sbtest, Schema::Phptest, Schema::Bulk];

    /// What names begin with; as the word on the command line too.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Schema::Sbtest => table::PREFIX,
            Schema::Phptest => "phptest",
            Schema::Bulk => "bulk",
        }
    }

    /// The name of a table; tables are counted from 1.
    pub(crate) fn name(self, table: u32) -> String {
        format!("{}{table}", self.prefix())
    }

    /// The number of a table named by [`Schema::name`].
    pub(crate) fn number(self, name: &str) -> Option<u32> {
        let digits = name.strip_prefix(self.prefix())?;
        (!digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()))
            .then(|| digits.parse().ok())
            .flatten()
    }

    /// Whether `prepare` puts rows into the tables.
    pub(crate) fn filled(self) -> bool {
        self != Schema::Bulk
    }

    /// The columns without which no workload can use a table.
    pub(crate) fn columns(self) -> &'static [&'static str] {
        match self {
            Schema::Sbtest => &["id", "k", "c", "pad"],
            Schema::Phptest => &[
                "id",
                "name",
                "email",
                "password",
                "dob",
                "address",
                "city",
                "state_id",
                "zip",
                "country_id",
            ],
            Schema::Bulk => &["id", "k"],
        }
    }

    /// The column whose index the workloads need besides that on `id`.
    pub(crate) fn indexed(self) -> Option<&'static str> {
        match self {
            Schema::Sbtest => Some("k"),
            Schema::Phptest => Some("country_id"),
            Schema::Bulk => None,
        }
    }

    /// A column that an update may set to itself.
    pub(crate) fn writable(self) -> &'static str {
        match self {
            Schema::Sbtest | Schema::Bulk => "k",
            Schema::Phptest => "zip",
        }
    }

    /// CREATE TABLE; what is an index of its own comes after the fill ([`Schema::index`]).
    pub(crate) fn create(
        self,
        table: u32,
        rows: u64,
        mark: &Mark,
        charset: Option<&str>,
    ) -> String {
        let columns = match self {
            Schema::Sbtest => return table::create(table, rows, mark, charset),
            Schema::Phptest => phptest_columns(int(rows)),
            Schema::Bulk => {
                format!("id {int} NOT NULL,\n  k {int} DEFAULT '0' NOT NULL", int = int(rows))
            }
        };
        format!(
            "CREATE TABLE {name} (\n  {columns},\n  PRIMARY KEY (id)\n) \
             ENGINE=InnoDB{charset} COMMENT='{mark}'",
            name = quoted(&self.name(table)),
            charset = named_charset(charset),
        )
    }

    /// What is built after the fill, if anything.
    pub(crate) fn index(self, table: u32) -> Option<Index> {
        match self {
            Schema::Sbtest => {
                Some(Index { name: format!("k_{table}"), sql: table::create_index(table) })
            }
            // One statement: one pass over the rows.
            Schema::Phptest => Some(Index {
                name: "country_id".to_owned(),
                sql: format!(
                    "ALTER TABLE {} ADD UNIQUE KEY `email` (`email`), \
                     ADD KEY `country_id` (`country_id`, `state_id`, `city`)",
                    quoted(&self.name(table))
                ),
            }),
            Schema::Bulk => None,
        }
    }
}

impl Schema {
    /// Statements that read all rows of a table, so many ids each, then its index.
    pub(crate) fn reads(self, table: u32, rows: u64, piece: u64) -> Vec<String> {
        let (row, index) = match self {
            Schema::Sbtest => ("SUM(LENGTH(c))", Some("SUM(k)")),
            Schema::Phptest => ("SUM(LENGTH(name))", Some("SUM(state_id)")),
            Schema::Bulk => ("SUM(k)", None),
        };
        let name = quoted(&self.name(table));
        let piece = piece.max(1);
        let pieces = rows.div_ceil(piece).max(1);
        let by_id = (0..pieces).map(|i| {
            // Rows that nobody counted are in the last piece.
            let to = match i + 1 {
                last if last == pieces => String::new(),
                next => format!(" AND id <= {}", next * piece),
            };
            format!("SELECT {row} FROM {name} WHERE id > {}{to}", i * piece)
        });
        by_id.chain(index.map(|what| format!("SELECT {what} FROM {name}"))).collect()
    }
}

impl std::fmt::Display for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.prefix())
    }
}

/// The table "normal" of Percona's InnoDB, MyISAM and Falcon benchmark (2007-01-08), without the
/// widths of its integers, which mean nothing and are deprecated.
fn phptest_columns(int: &str) -> String {
    format!(
        "`id` {int} unsigned NOT NULL AUTO_INCREMENT,\n  \
         `name` varchar(64) NOT NULL DEFAULT '',\n  \
         `email` varchar(64) NOT NULL DEFAULT '',\n  \
         `password` varchar(64) NOT NULL DEFAULT '',\n  \
         `dob` date DEFAULT NULL,\n  \
         `address` varchar(128) NOT NULL DEFAULT '',\n  \
         `city` varchar(64) NOT NULL DEFAULT '',\n  \
         `state_id` tinyint unsigned NOT NULL DEFAULT '0',\n  \
         `zip` varchar(8) NOT NULL DEFAULT '',\n  \
         `country_id` smallint unsigned NOT NULL DEFAULT '0'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(schema.index(3).is_some(), schema.indexed().is_some());
        }
        assert!(Schema::Phptest.create(1, 3_000_000_000, &mark, None).contains("BIGINT unsigned"));
    }
}
