//! `load` and suites of external commands against real servers.

mod dumps;
mod generated;
mod program;
mod suites;

use std::path::{Path, PathBuf};

use crate::common;
use crate::common::databases::{Db, SANDBOXES, everywhere, run, say_which};
use loadgen::error::{Error, Result};
use loadgen::load;
use loadgen::mysql::session::{ServerLink, reach};
use loadgen::plan::Step;
use loadgen::plan::experiment::Dataset;
use loadgen::plan::knobs::{INSERT_BYTES, InsertMode, LoadSource, LoadSpec};
use loadgen::progress::Progress;
use loadgen::run::steps::{Job as Measuring, Steps};
use loadgen::stop::Stop;
use loadgen::summary::{Store, Summary};

/// A summary, and what ended its run early.
#[derive(Debug)]
struct Measured {
    summary: Summary,
    error: Option<Error>,
}

/// Runs the test on every server that nobody else uses meanwhile: its counters and global
/// variables are the test's own.
fn everywhere_alone(test: impl Fn(&Db)) {
    for server in common::servers() {
        let sandbox = common::sandbox(&server, &[("local-infile", "1")]);
        say_which(&server, &sandbox);
        test(&Db::new(&sandbox));
    }
}

impl Db<'_> {
    /// The first column of the first row.
    fn one(&self, sql: &str) -> String {
        let sql = sql.replace("{db}", &self.name);
        let rows = common::query(self.sandbox, &sql);
        rows.first().and_then(|row| row.first()).cloned().unwrap_or_default()
    }

    /// Without the identity, which is random.
    fn comment(&self, table: &str) -> String {
        let comment = self.one(&format!(
            "SELECT TABLE_COMMENT FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = '{{db}}' AND TABLE_NAME = '{table}'"
        ));
        comment.split_once(" id=").map_or(comment.clone(), |(before, _)| before.to_owned())
    }

    /// Measures one load or suite; its files go to this directory.
    fn measure(&self, job: Measuring, dir: &Path, stop: &Stop) -> Result<Measured> {
        let store = Store::open(dir)?;
        let mut quiet = Progress::new(true, None);
        let mut steps = Steps::new(job, &store, &mut quiet)?;
        let (number, place, of, clients, rate, repeat) = (1, 1, 1, 1, None, 1);
        let step = Step { number, place, of, clients, rate, repeat, attempt: 1, search: None };
        let (target, mut planned) = (self.target(), [step].into_iter());
        let ended = run(async {
            let link = reach(&target, stop).await?;
            steps.run(&link, |_| Ok(planned.next())).await
        });
        match steps.summaries.pop() {
            Some(summary) => Ok(Measured { summary, error: ended.err() }),
            None => Err(ended.expect_err("no summary without an error")),
        }
    }

    fn load_until(&self, spec: &LoadSpec, stop: &Stop) -> Result<Measured> {
        let dir = tempfile::tempdir().expect("a directory");
        self.measure(Measuring::Load { spec, force: false }, dir.path(), stop)
    }

    /// Makes `sbtest1` to this.
    fn prepare(&self, tables: u32, rows: u64) {
        let job = Dataset { tables, rows, data_seed: 1, ..Dataset::default() };
        let link = ServerLink::to(self.target(), &Stop::default()).expect("options");
        let mut quiet = Progress::new(true, None);
        run(load::prepare(&link, &job, &mut quiet)).expect("prepared");
    }

    /// A load that must complete.
    fn load(&self, spec: &LoadSpec) -> Summary {
        let measured = self.load_until(spec, &Stop::default());
        let measured = measured.unwrap_or_else(|error| panic!("{}", error.render()));
        assert!(measured.error.is_none(), "{:?}", measured.error);
        measured.summary
    }

    /// A load that must fail, with what was measured until then.
    fn fails(&self, spec: &LoadSpec) -> (Error, Summary) {
        let measured = self.load_until(spec, &Stop::default()).expect("it starts");
        (measured.error.expect("it fails"), measured.summary)
    }
}

const EXTENDED: InsertMode = InsertMode::Extended { bytes: INSERT_BYTES };

fn generated(rows: u64, insert: InsertMode) -> LoadSpec {
    let source = LoadSource::Generated { rows, data_seed: 1 };
    LoadSpec { tables: 1, source, insert, charset: None }
}

fn dump(path: &Path) -> LoadSpec {
    LoadSpec {
        tables: 1,
        source: LoadSource::Dump { path: path.to_owned() },
        insert: EXTENDED,
        charset: None,
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A counter of the server over the window.
fn counted(summary: &Summary, name: &str) -> i64 {
    let status = summary.server.status.as_ref().expect("the server's counters");
    status.deltas.get(name).copied().unwrap_or(0)
}
