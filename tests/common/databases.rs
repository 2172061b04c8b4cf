//! Databases of their own for the tests of one program, on servers that all of them share.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use loadgen::mysql::options::{Address, ConnectOptions, Secret, Ssl};
use loadgen::sandbox::Sandbox;

use super::{self as common, Server};

/// Every server once, for all tests of this program: each test has databases of its own. The
/// keepers take them away when the program ends.
pub(crate) static SANDBOXES: LazyLock<Vec<(Server, Sandbox)>> = LazyLock::new(|| {
    let start = |server: Server| {
        let sandbox = common::sandbox(&server, &[("local-infile", "1")]);
        (server, sandbox)
    };
    common::servers().into_iter().map(start).collect()
});

static DATABASES: AtomicU32 = AtomicU32::new(0);

/// A database of one server, empty at first.
pub(crate) struct Db<'a> {
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) name: String,
}

/// Runs the test on every server.
pub(crate) fn everywhere(test: impl Fn(&Db)) {
    for (server, sandbox) in SANDBOXES.iter() {
        say_which(server, sandbox);
        test(&Db::new(sandbox));
    }
}

#[expect(clippy::print_stderr, reason = "the harness shows it with a failure only")]
pub(crate) fn say_which(server: &Server, sandbox: &Sandbox) {
    eprintln!("on {} ({})", server.name, &sandbox.version);
}

impl<'a> Db<'a> {
    pub(crate) fn new(sandbox: &'a Sandbox) -> Db<'a> {
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        common::query(sandbox, &format!("CREATE DATABASE {name}"));
        Db { sandbox, name }
    }

    pub(crate) fn target(&self) -> ConnectOptions {
        ConnectOptions {
            address: Address::Socket(self.sandbox.socket.clone()),
            others: Vec::new(),
            user: "root".into(),
            password: Secret::default(),
            database: self.name.clone(),
            ssl: Ssl::default(),
            connect_timeout: Duration::from_secs(10),
        }
    }
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}
