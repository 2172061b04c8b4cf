//! The driver's side: target, session, server.
