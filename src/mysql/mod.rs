//! The driver's side: target, session, server.
//!
//! `resolve` turns flags, URL, option files and environment into a [`target::Target`];
//! `target` turns that into driver options, every one of them stated; `connect` opens one
//! connection in bounded time; `class` says what a server's error means.
//!
//! What is asked of the server off the hot path: [`product`] (what it is), [`dataset`] (what
//! tables it has) and [`settle`] (which of them are used), [`preflight`] (whether it can run the
//! plan, all problems at once), [`exposure`] (who could get the password), [`fingerprint`],
//! [`variables`], [`status`] and [`levels`] (what a summary says of it).
//!
//! `crew` runs threads with a connection each, and `pulse` tells work that takes long from a server
//! that is silent.

pub(crate) mod ask;
pub(crate) mod class;
pub mod connect;
pub(crate) mod crew;
pub mod dataset;
pub mod exposure;
mod findings;
pub mod fingerprint;
mod innodb;
pub(crate) mod levels;
pub mod options;
pub mod preflight;
mod probe;
pub mod product;
pub(crate) mod pulse;
pub(crate) mod rtt;
mod same_host;
pub mod session;
pub mod settle;
pub mod status;
pub mod variables;

// The old paths, as long as other rooms use them.
pub use options::{env, resolve};
pub mod secret {
    pub use super::options::Secret;
}
pub mod target {
    pub use super::options::{Address, ConnectOptions as Target};
}
pub mod tls {
    pub use super::connect::settle_tls as settle;
    pub use super::options::{Ssl, SslMode};
}
