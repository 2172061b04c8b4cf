//! What several integration tests share: real servers, each in a sandbox of its own.
#![allow(dead_code, reason = "every test program uses its own part of this")]

pub(crate) mod certificates;
pub(crate) mod databases;
pub(crate) mod program;
pub(crate) mod proxy;
pub(crate) mod restarting;
pub(crate) mod sessions;
pub(crate) mod summaries;

use std::collections::HashMap;
use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};

use loadgen::sandbox::{DataDir, Sandbox, Spec};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Row, Value};

/// A server's program and what the tests call it.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
}

/// The servers to test with: this machine's mariadbd, and those that the environment variable
/// `LOADGEN_TEST_SERVERS` names as `name=program`, separated by white space.
///
/// Panics if there is no mariadbd: tests that silently do nothing are worse than none.
pub(crate) fn servers() -> Vec<Server> {
    let more = env::var("LOADGEN_TEST_SERVERS").unwrap_or_default();
    let named = more.split_whitespace().map(|entry| {
        let (name, program) = entry
            .split_once('=')
            .unwrap_or_else(|| panic!("LOADGEN_TEST_SERVERS: '{entry}' is not name=program"));
        Server { name: name.into(), program: program.into() }
    });
    std::iter::once(local()).chain(named).collect()
}

/// Runs a test on every server, on all of them at once: one that waits most of its time.
pub(crate) fn at_once(test: impl Fn(&Server) + Sync) {
    let servers = servers();
    std::thread::scope(|scope| {
        for server in &servers {
            scope.spawn(|| test(server));
        }
    });
}

/// Told past the capture of libtest: what did not run must be seen.
pub(crate) fn skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
}

/// This machine's mariadbd, for tests that need any server.
pub(crate) fn local() -> Server {
    let path = env::var_os("PATH").unwrap_or_default();
    let program = env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/libexec".into()])
        .map(|dir| dir.join("mariadbd"))
        .find(|program| program.exists())
        .expect("the tests need mariadbd: apt-get install mariadb-server-core");
    Server { name: "mariadbd".into(), program }
}

/// What to start a server with, room for the tests' connections included.
pub(crate) fn spec(program: &Path, options: &[(&str, &str)]) -> Spec {
    let own = |&(name, value): &(&str, &str)| (name.to_owned(), Some(value.to_owned()));
    Spec {
        program: Some(program.to_owned()),
        options: options.iter().map(own).collect(),
        max_connections: 300,
        max_prepared_stmts: 20_000,
        ..Spec::default()
    }
}

/// Starts a server with these options, on a copy of an initialised data directory unless they
/// would shape it; panics with the sandbox's own words if it fails.
pub(crate) fn sandbox(server: &Server, options: &[(&str, &str)]) -> Sandbox {
    let shaping = ["character", "collation", "lower", "innodb-page", "innodb-log", "innodb-undo"];
    let shapes = |(name, _): &(&str, &str)| {
        let name = name.replace('_', "-");
        shaping.iter().any(|start| name.starts_with(start))
    };
    let data = if options.iter().any(shapes) {
        DataDir::Own
    } else {
        DataDir::CopyOf(initialised(server))
    };
    start(server, &Spec { data, ..spec(&server.program, options) })
}

/// Starts a server on a data directory that it initialises.
pub(crate) fn fresh(server: &Server, options: &[(&str, &str)]) -> Sandbox {
    start(server, &spec(&server.program, options))
}

fn start(server: &Server, spec: &Spec) -> Sandbox {
    Sandbox::start(spec, &mut |_| {}, &|| false)
        .unwrap_or_else(|error| panic!("{}: {}", server.name, error.render()))
}

/// A data directory of this server's version, which later test runs find again.
fn initialised(server: &Server) -> PathBuf {
    static MADE: LazyLock<Mutex<HashMap<PathBuf, PathBuf>>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(dir) = made.get(&server.program) {
        return dir.clone();
    }
    let version = Command::new(&server.program).arg("--version").output().expect("it runs").stdout;
    let mut hasher = DefaultHasher::new();
    (&server.program, version).hash(&mut hasher);
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let dir = place.join(format!("data-{:016x}", hasher.finish()));
    if !dir.exists() {
        let new = tempfile::tempdir_in(place).expect("a directory");
        let data = DataDir::New(new.path().join("data"));
        start(server, &Spec { data, ..spec(&server.program, &[]) }).stop().expect("it ends well");
        // Another process may have been first.
        let _ = std::fs::rename(new.path().join("data"), &dir);
    }
    made.insert(server.program.clone(), dir.clone());
    dir
}

/// How to reach a sandbox, every option that decides whom the driver talks to explicit.
pub(crate) fn target(sandbox: &Sandbox) -> Opts {
    OptsBuilder::default()
        .socket(sandbox.socket.to_str())
        .user(Some("root"))
        .prefer_socket(false)
        .max_allowed_packet(Some(16 * 1024 * 1024))
        .wait_timeout(Some(600))
        .into()
}

/// The rows of a query as text, NULL as `NULL`.
pub(crate) fn query(sandbox: &Sandbox, sql: &str) -> Vec<Vec<String>> {
    try_query(sandbox, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The same of a server that may be gone.
pub(crate) fn try_query(
    sandbox: &Sandbox,
    sql: &str,
) -> Result<Vec<Vec<String>>, mysql_async::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let rows: Vec<Row> = runtime.block_on(async {
        let mut conn = Conn::new(target(sandbox)).await?;
        let rows = conn.query(sql).await?;
        conn.disconnect().await?;
        Ok::<_, mysql_async::Error>(rows)
    })?;
    let text = |value: Value| match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::NULL => "NULL".into(),
        other => other.as_sql(true),
    };
    Ok(rows.into_iter().map(|row| row.unwrap().into_iter().map(text).collect()).collect())
}
