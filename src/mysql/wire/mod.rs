//! MySQL's protocol as measured sessions speak it: without memory for an operation.
//!
//! * [`frame`]: commands as packets; [`decode`]: answers; `login`, `rsa`, `tls`: log-ins. All are pure.
//! * `link`: the session itself.

pub mod decode;
pub mod frame;
mod link;
mod login;
mod rsa;
pub(crate) mod tls;

pub use decode::{Answer, Want};
pub use frame::{Params, Value};
pub(super) use link::log_in;
pub use link::{Inbox, LeanSession};
pub(super) use login::{REFUSED_KEY, unexpected};
