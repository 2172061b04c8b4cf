//! A canned-answer server with faults: for tests, benches and calibration.
//!
//! It speaks enough of the 4.1 protocol for sysbench and for any driver, looks at no table, accepts any
//! password, and answers out of prebuilt bytes, so that what is measured against it is the client.
//!
//! The first [`Answer`] whose text occurs in a statement decides, for queries and for prepared
//! statements alike. Without one, by the statement's first word:
//!
//! | statement | answer |
//! |---|---|
//! | `SELECT … FROM t` | the canned [`Row`], whatever columns were asked for |
//! | `SELECT … FROM` a system schema, `SHOW`, `DESCRIBE`, `EXPLAIN` | no rows, columns `Variable_name`, `Value` |
//! | `SELECT` without `FROM` | one row, one column `value`, `1` |
//! | `UPDATE`, `INSERT`, `DELETE`, `REPLACE` | OK, one row affected |
//! | `LOAD DATA` | error 3948, as of a server with `local_infile` off |
//! | all else (`SET`, `BEGIN`, `CREATE`, …) | OK, no row affected |
//!
//! A statement's first 4 KiB are looked at, and at most 256 KiB of it are kept. Several
//! statements in one query count and are answered as one. TLS and compression are not offered.
//!
//! [`Fault`]s are what goes wrong: [`At`] says when, [`Action`] what.
//!
//! ```
//! use loadgen::canned::{Action, At, Canned, Fault, Listen, Script};
//!
//! let deadlock = Action::error(1213, "40001", "Deadlock");
//! let faults = vec![Fault::new(At::EachStatement(100), deadlock)];
//! let server = Canned::start(Script { faults, ..Script::default() }, Listen::Port(0))?;
//! assert_ne!(server.port(), 0);
//! # Ok::<(), loadgen::error::Error>(())
//! ```

mod command;
mod fault;
mod greet;
mod replies;
mod script;
mod server;
mod session;
mod shared;
pub mod tables;
mod wire;

use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

pub use fault::{Action, At, Fault};
pub use script::{Answer, Auth, Reply, Row, Script, Service};
pub use server::{Listen, serve};
pub use wire::SqlError;

use crate::error::{Error, Result};

/// What a server has done since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted, refused ones included.
    pub connections: u64,
    pub open: u64,
    pub open_max: u64,
    /// Connections that got through the handshake.
    pub sessions: u64,
    pub queries: u64,
    pub prepares: u64,
    /// `COM_STMT_EXECUTE` of a statement that exists.
    pub executes: u64,
    pub closes: u64,
    pub pings: u64,
    /// `COM_RESET_CONNECTION` and `COM_CHANGE_USER`.
    pub resets: u64,
    pub quits: u64,
    /// Statements (of `queries` and `executes`) that ask for the canned row.
    pub selects: u64,
    /// Statements (of `queries` and `executes`) that change one row.
    pub changes: u64,
    /// Commands answered with an error that no script asked for.
    pub refused: u64,
    pub faults: u64,
    /// Bytes that clients streamed for LOAD DATA LOCAL.
    pub local_bytes: u64,
}

/// A running server on a thread of its own; dropping it closes every connection and stops it.
#[derive(Debug)]
pub struct Canned {
    port: u16,
    counts: Arc<Mutex<Counts>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Canned {
    /// Starts a server and returns once it listens.
    pub fn start(script: Script, listen: Listen) -> Result<Canned> {
        let counts = Arc::default();
        let (stop, stopped) = oneshot::channel();
        let (ready, bound) = mpsc::channel();
        let shared = Arc::clone(&counts);
        let thread = std::thread::Builder::new().name("canned".to_owned()).spawn(move || {
            // A dropped sender stops the server as well as a sent word.
            let stopped = async { _ = stopped.await };
            // Nobody waits any more only if `start` itself was unwound.
            server::run(script, &listen, shared, stopped, |port| _ = ready.send(port))
        });
        let thread = thread
            .map_err(|e| Error::failed(format!("cannot start the canned server's thread: {e}")))?;
        match bound.recv() {
            Ok(port) => Ok(Canned { port, counts, stop: Some(stop), thread: Some(thread) }),
            Err(_) => match thread.join() {
                Ok(Err(error)) => Err(error),
                _ => Err(Error::failed("the canned server ended before it listened")),
            },
        }
    }

    /// The port on 127.0.0.1; 0 if it listens on a socket.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Tells what it has done so far. Commands without an answer (closing a statement, quitting) are
    /// counted when the server comes to them; an `open` of 0 says that it has seen them all.
    pub fn counts(&self) -> Counts {
        *self.counts.lock().expect("no count panics")
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // An error of a server that is no longer wanted has no reader.
            let _ = thread.join();
        }
    }
}
