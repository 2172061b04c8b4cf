//! A canned-answer server with faults, for tests, benches and calibration.
//!
//! It speaks enough of the 4.1 protocol for sysbench and any driver, has no tables, accepts any
//! password, and sends prebuilt bytes, so that the client is what is measured.
//!
//! The first [`Answer`] whose text occurs in a statement decides. Without one, the statement's first
//! word:
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
//! It matches a statement's first 4 KiB, and keeps at most 256 KiB. Several statements in one query
//! count and are answered as one. TLS and compression are not offered.
//!
//! Each [`Fault`] has its time ([`At`]) and its effect ([`Action`]).
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

mod script;
mod server;
mod session;
pub mod tables;
mod wire;

pub use script::{Action, Answer, At, Auth, Fault, Reply, Row, Script, Service, SqlError};
pub use server::{Canned, Listen, serve};
pub use session::Counts;
