//! `prepare` and `cleanup` against real servers.

mod content;
mod existing;
mod interrupted;
mod refusing;

use crate::common;
use crate::common::databases::{Db, SANDBOXES, everywhere, run};
use loadgen::error::Result;
use loadgen::load::{self, Filled, Numbers};
use loadgen::mysql::session::ServerLink;
use loadgen::plan::experiment::{Dataset, Method};
use loadgen::progress::Progress;
use loadgen::stop::Stop;

impl Db<'_> {
    fn prepare(&self, job: &Dataset) -> Result<Filled> {
        self.prepare_until(job, &Stop::default())
    }

    fn prepare_until(&self, job: &Dataset, stop: &Stop) -> Result<Filled> {
        let link = ServerLink::to(self.target(), stop)?;
        run(load::prepare(&link, job, &mut Progress::new(true, None)))
    }

    fn cleanup(&self) -> Result<(Numbers, Numbers)> {
        let link = ServerLink::to(self.target(), &Stop::default())?;
        let mut progress = Progress::new(true, None);
        run(load::cleanup(&link, &mut progress))
    }

    /// Runs SQL; `{}` is the database with a dot.
    fn query(&self, sql: &str) -> Vec<Vec<String>> {
        common::query(self.sandbox, &sql.replace("{}", &format!("{}.", self.name)))
    }

    /// The first field of the first row, empty without one.
    fn one(&self, sql: &str) -> String {
        self.query(sql).into_iter().flatten().next().unwrap_or_default()
    }

    fn count(&self, table: u32) -> u64 {
        self.one(&format!("SELECT COUNT(*) FROM {{}}sbtest{table}")).parse().expect("a count")
    }

    /// CHECKSUM TABLE: equal for equal rows in the order of the key.
    fn checksum(&self, table: u32) -> String {
        self.query(&format!("CHECKSUM TABLE {{}}sbtest{table}")).remove(0).remove(1)
    }

    /// Without the identity, which is random.
    fn comment(&self, table: u32) -> String {
        let comment = self.info(table, "TABLE_COMMENT");
        comment.split_once(" id=").map_or(comment.clone(), |(before, _)| before.to_owned())
    }

    fn info(&self, table: u32, column: &str) -> String {
        self.one(&format!(
            "SELECT {column} FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = '{}' AND TABLE_NAME = 'sbtest{table}'",
            self.name
        ))
    }

    fn tables(&self) -> Vec<String> {
        let rows = self.query(&format!("SHOW TABLES FROM {}", self.name));
        rows.into_iter().flatten().collect()
    }

    /// Name, columns and order of the table's indexes.
    fn indexes(&self, table: u32) -> Vec<Vec<String>> {
        self.query(&format!(
            "SELECT INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, NON_UNIQUE \
             FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = '{}' \
             AND TABLE_NAME = 'sbtest{table}' ORDER BY 1, 2",
            self.name
        ))
    }
}

fn job(tables: u32, rows: u64) -> Dataset {
    Dataset { tables, rows, data_seed: 1, jobs: Some(3), ..Dataset::default() }
}

fn by(fill: Method, job: Dataset) -> Dataset {
    Dataset { fill: Some(fill), ..job }
}
