//! MySQL's protocol as measured sessions speak it: without memory for an operation.
//!
//! * [`frame`]: commands as packets; [`decode`]: answers; `login`, `rsa`, `signature`, `tls`: log-ins. All are pure.
//! * `link`: the session itself.

pub mod decode;
pub mod frame;
mod link;
mod login;
mod rsa;
mod signature;
pub(crate) mod tls;

pub use decode::{Answer, KeptResult, Want};
pub use frame::{Params, Value};
pub(super) use link::log_in_for;
pub use link::{Inbox, LeanSession};
pub(super) use login::{ANOTHER_QUESTION, IN_THE_CLEAR, REFUSED_KEY, unexpected};
