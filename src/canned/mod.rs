//! A canned-answer server with faults: for tests, benches and calibration.
//!
//! It speaks enough of the 4.1 protocol for sysbench and for any driver, looks at no table, accepts any password, and answers out of prebuilt bytes, so that what is
//! measured against it is the client. One thread, one `current_thread` runtime, one write for
//! all requests of one read.
//!
//! # What it answers
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
//! # What goes wrong
//!
//! [`Fault`]s are data: [`At`] says when, [`Action`] what.
//!
//! ```
//! use loadgen::canned::{Action, At, Canned, Fault, Listen, Script};
//!
//! let script = Script {
//!     faults: vec![Fault::new(At::EachStatement(100), Action::error(1213, "40001", "Deadlock"))],
//!     ..Script::default()
//! };
//! let server = Canned::start(script, Listen::Port(0))?;
//! assert_ne!(server.port(), 0);
//! assert_eq!(server.counts().connections, 0);
//! # Ok::<(), loadgen::error::Error>(())
//! ```

mod clock;
mod command;
mod counts;
mod fault;
mod greet;
mod input;
mod replies;
mod script;
mod server;
mod session;
mod shared;
mod sql;
pub mod tables;
mod wire;

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

pub use counts::Counts;
pub use fault::{Action, At, Fault};
pub use script::{Answer, Auth, Reply, Row, Script, Service};
pub use server::{Listen, serve};
pub use wire::SqlError;

use crate::error::{Error, Result};
use counts::Counters;

/// A running server on a thread of its own; dropping it closes every connection and stops it.
#[derive(Debug)]
pub struct Canned {
    port: u16,
    counters: Arc<Counters>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Canned {
    /// Starts a server and returns once it listens.
    ///
    /// # Errors
    /// A script that contradicts itself, an address that is taken, too few descriptors.
    pub fn start(script: Script, listen: Listen) -> Result<Canned> {
        let counters = Arc::new(Counters::default());
        let (stop, stopped) = oneshot::channel();
        let (ready, bound) = mpsc::channel();
        let shared = Arc::clone(&counters);
        let thread = std::thread::Builder::new()
            .name("canned".to_owned())
            .spawn(move || {
                let stopped = async {
                    // A dropped sender stops the server as well as a sent word.
                    let _ = stopped.await;
                };
                server::run(script, &listen, shared, stopped, |port| {
                    // Nobody waits any more only if `start` itself was unwound.
                    let _ = ready.send(port);
                })
            })
            .map_err(|e| Error::failed(format!("cannot start the canned server's thread: {e}")))?;
        match bound.recv() {
            Ok(port) => Ok(Canned { port, counters, stop: Some(stop), thread: Some(thread) }),
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

    /// What it has done so far. Commands without an answer (closing a statement, quitting) are
    /// counted when the server comes to them; an `open` of 0 says that it has seen them all.
    pub fn counts(&self) -> Counts {
        self.counters.read()
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
