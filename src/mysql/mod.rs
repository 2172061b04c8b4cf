//! The driver's side: target, session, server.
//!
//! `resolve` turns flags, URL, option files and environment into a [`target::Target`];
//! `target` turns that into driver options, every one of them stated; `connect` opens one
//! connection in bounded time.

pub(crate) mod ask;
pub mod connect;
pub mod env;
mod inputs;
pub mod option_file;
pub mod resolve;
pub mod secret;
pub mod session;
pub mod status;
pub mod target;
pub mod tls;
pub(crate) mod url;
