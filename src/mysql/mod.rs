//! The driver's side: how to reach a server, one session with it, and what is asked of it.
//!
//! * [`options`]: flags, URL, option files and environment become one [`options::ConnectOptions`].
//! * [`connect`] opens one connection in bounded time; [`session`] is that connection, and the only
//!   file on the hot path that touches the driver; `errors` says what a server's error means.
//! * Off the hot path: [`server`] (what it is), [`status`] (its counters), [`dataset`] (its tables),
//!   [`preflight`] (everything that keeps the plan from running), by the questions of [`control`].
//! * `threads` run side by side with a connection each; `liveness` tells work that takes long from
//!   a server that is silent.

pub mod connect;
pub mod control;
pub mod dataset;
pub(crate) mod errors;
pub(crate) mod liveness;
pub mod options;
pub mod preflight;
pub mod server;
pub mod session;
pub mod status;
pub(crate) mod threads;

// The old paths, as long as other rooms use them.
pub(crate) use control as ask;
pub use dataset as settle;
pub(crate) use errors as class;
pub use options::{env, resolve};
pub(crate) mod crew {
    pub(crate) use super::threads::Threads as Crew;
}
pub mod exposure {
    pub use super::server::exposure as look;
}
pub mod fingerprint {
    pub use super::server::{Fingerprint, fingerprint as server};
    pub(crate) use super::server::{changes, renew};
}
pub(crate) mod levels {
    pub(crate) use super::status::{levels as read, pool, searches};
}
pub mod product {
    pub use super::server::Product;
}
pub(crate) mod pulse {
    pub(crate) use super::liveness::Liveness as Pulse;
}
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
pub mod variables {
    pub use super::control::{changed, variables as read};
}
