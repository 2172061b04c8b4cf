//! The driver's side: target, session, server.

pub(crate) mod ask;
pub mod session;
pub mod status;
