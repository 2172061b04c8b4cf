//! The session of measured clients against real servers: beside mysql_async, which is asked the same;
//! through every way to log in; and when servers speak unasked.

mod answers;
mod both;
#[path = "../common/certificates.rs"]
mod certificates;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/databases.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod databases;
mod logins;
#[path = "../sweep/program.rs"]
#[allow(dead_code, reason = "the sweep's tests use the rest")]
mod program;
#[path = "../common/proxy.rs"]
mod proxy;
mod requests;
#[path = "../common/restarting.rs"]
mod restarting;
#[path = "../common/sessions.rs"]
mod sessions;
mod unasked;
