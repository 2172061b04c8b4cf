//! The driver's side: target, session, server.

pub mod session;
