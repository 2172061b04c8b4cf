//! The driver's side: target, session, server.
//!
//! What is asked of the server off the hot path: [`product`] (what it is), [`dataset`] (what
//! tables it has, and whether they can be used), [`preflight`] (whether it can run the plan, all
//! problems at once), [`fingerprint`], [`variables`] and [`status`] (what a summary says of it).

pub(crate) mod ask;
pub mod dataset;
mod findings;
pub mod fingerprint;
pub mod preflight;
mod probe;
pub mod product;
mod same_host;
pub mod session;
pub mod settle;
pub mod status;
pub mod variables;
