//! A password that whoever sits between client and server could get.

use super::ask::{explain, optional};
use super::options::{Address, ConnectOptions, SslMode};
use super::session::Session;
use crate::error::Result;
use crate::summary::Warning;

/// The way of logging in that sends the password itself, under a key of the server's.
const BY_KEY: &str = "caching_sha2_password";

/// What to know of an account that logged in by `caching_sha2_password` over plain TCP: when the
/// server's cache is cold, the password goes to it under a public key that came over the same
/// wire, and nobody verified that it is the server's.
///
/// # Errors
///
/// Server: the connection is lost.
pub async fn look(session: &mut Session, target: &ConnectOptions) -> Result<Option<Warning>> {
    let plain =
        matches!(target.address, Address::Tcp { .. }) && target.ssl.mode == SslMode::Disabled;
    if !plain || target.password.is_empty() {
        return Ok(None);
    }
    // An account may ask this about itself; servers before 5.7 and 10.2 do not know the question,
    // and have no such accounts.
    let asked = optional(session.query("SHOW CREATE USER CURRENT_USER()").await);
    let rows = asked.map_err(|failure| explain(&failure, "ask how the account logs in"))?;
    let by_key = rows.into_iter().flatten().flatten().flatten().any(|text| text.contains(BY_KEY));
    Ok(by_key.then(|| Warning {
        code: "password_exposed".to_owned(),
        message: format!(
            "the password goes to {} over plain TCP under a key that nobody verified: whoever \
             sits between could get it; --ssl-mode VERIFY_IDENTITY or a socket keeps it",
            target.address
        ),
    }))
}
