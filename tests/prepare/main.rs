//! `prepare` and `cleanup` against real servers.

#[path = "../common/mod.rs"]
mod common;
mod content;
mod existing;
mod interrupted;
mod refusing;

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::Server;
use loadgen::error::Result;
use loadgen::load::{self, Fill, Job, Prepared};
use loadgen::mysql::secret::Secret;
use loadgen::mysql::target::{Address, Target};
use loadgen::mysql::tls::Ssl;
use loadgen::progress::Progress;
use loadgen::sandbox::Sandbox;
use loadgen::stop::Stop;

/// Every server once, for all tests of this program: each test has databases of its own. The
/// keepers take them away when the program ends.
static SANDBOXES: LazyLock<Vec<(Server, Sandbox)>> = LazyLock::new(|| {
    let start = |server: Server| {
        let sandbox = common::sandbox(&server, &[("local-infile", "1")]);
        (server, sandbox)
    };
    common::servers().into_iter().map(start).collect()
});

static DATABASES: AtomicU32 = AtomicU32::new(0);

/// An empty database of one server.
struct Db<'a> {
    sandbox: &'a Sandbox,
    name: String,
}

/// Runs the test on every server.
fn everywhere(test: impl Fn(&Db)) {
    for (server, sandbox) in SANDBOXES.iter() {
        eprint_server(server, sandbox);
        test(&Db::new(sandbox));
    }
}

#[expect(clippy::print_stderr, reason = "the harness shows it with a failure only")]
fn eprint_server(server: &Server, sandbox: &Sandbox) {
    eprintln!("on {} ({})", server.name, sandbox.version());
}

impl<'a> Db<'a> {
    fn new(sandbox: &'a Sandbox) -> Db<'a> {
        let name = format!("load_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        common::query(sandbox, &format!("CREATE DATABASE {name}"));
        Db { sandbox, name }
    }

    fn target(&self) -> Target {
        Target {
            address: Address::Socket(self.sandbox.socket().to_owned()),
            user: "root".into(),
            password: Secret::default(),
            database: self.name.clone(),
            ssl: Ssl::default(),
            connect_timeout: Duration::from_secs(10),
        }
    }

    fn prepare(&self, job: &Job) -> Result<Prepared> {
        self.prepare_until(job, &Stop::default())
    }

    fn prepare_until(&self, job: &Job, stop: &Stop) -> Result<Prepared> {
        let target = self.target();
        let opts = target.opts()?;
        run(load::prepare(&target, &opts, job, stop, &mut Progress::new(true, None)))
    }

    fn cleanup(&self) -> Result<load::Cleaned> {
        let target = self.target();
        let opts = target.opts()?;
        let mut progress = Progress::new(true, None);
        run(load::cleanup(&target, &opts, &Stop::default(), &mut progress))
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

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn job(tables: u32, rows: u64) -> Job {
    Job { tables, rows, jobs: Some(3), ..Job::default() }
}

fn by(fill: Fill, job: Job) -> Job {
    Job { fill, ..job }
}
