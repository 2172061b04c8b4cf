//! Connections to a server, sessions, and the questions that it is asked.
//!
//! * [`options`]: flags, URL, option files and environment become one [`options::ConnectOptions`].
//! * [`wire`] is the session of measured clients; [`session`] is one of the driver's, for all else; `errors`
//!   says what a server's error means.
//! * Off the hot path: [`server`] (what it is), [`status`] (its counters), [`dataset`] (its tables),
//!   [`preflight`] (everything that keeps the plan from running), by the questions of [`control`].
//! * `relay` logs in for the driver where it cannot.
//! * `liveness` tells long work from a silent server, and runs threads side by side.

pub mod control;
pub mod dataset;
pub(crate) mod errors;
pub mod facts;
mod hints;
pub(crate) mod liveness;
pub mod options;
pub mod preflight;
mod relay;
pub mod server;
pub mod session;
pub mod status;
pub mod target;
pub mod wire;

pub(crate) use control::{
    Numbers, explain, limit_lock_wait, number, numeric, optional, pairs, query_single, rows,
};
pub(crate) use dataset::{Dataset, Discovered, Table, Tables, discover, names};
pub(crate) use errors::{Asked, Failure, LOST, class};
pub(crate) use hints::{Tried, hint, is_passing, recurs};
pub(crate) use liveness::{Liveness, Threads};
pub(crate) use options::{Address, ConnectOptions, ConnectionArgs, Env, SslMode, resolve};
pub(crate) use preflight::{Needs, Ready, Writes};
pub(crate) use server::{Fingerprint, changes, describe_driver, exposure, fingerprint, is_local};
pub use session::reach;
pub(crate) use session::{Infile, Session, is_nobody_listening};
pub(crate) use status::Reading;
pub(crate) use target::{ServerLink, connect_error, quoted_text};
