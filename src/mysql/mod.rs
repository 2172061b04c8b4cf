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
pub mod env;
pub mod exposure;
mod findings;
pub mod fingerprint;
mod innodb;
mod inputs;
pub(crate) mod levels;
pub(crate) mod option_file;
pub mod preflight;
mod probe;
pub mod product;
pub(crate) mod pulse;
pub mod resolve;
pub(crate) mod rtt;
mod same_host;
pub mod secret;
pub mod session;
pub mod settle;
pub mod status;
pub mod target;
pub mod tls;
pub(crate) mod url;
pub mod variables;
