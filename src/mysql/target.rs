//! A server to connect to, and the beginning of every session with it: the time limit, the character
//! set, errors that say what to do.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mysql_async::{DriverError, Error as Driver, IoError, Opts};

use super::errors::{self, Asked, Failure, MESSAGE_MAX, NO_PORT};
use super::hints::Tried::{LogIn, LogInWithoutPassword};
use super::hints::hint_in;
use super::options::{Address, ConnectOptions, SslMode};
use super::wire::{ANOTHER_QUESTION, IN_THE_CLEAR, REFUSED_KEY, tls};
use crate::error::{Error, Result, clip};
use crate::stop::{Stop, unless_stopped, within};
use crate::terms::units;

#[derive(Clone)]
pub struct ServerLink {
    pub target: ConnectOptions,
    pub opts: Opts,
    /// TLS of measured connections; None for plain text.
    pub(crate) tls: Option<tls::Tls>,
    pub stop: Stop,
    /// True if we log in for the driver, because it failed to.
    pub(crate) relayed: Arc<AtomicBool>,
    /// Links to the other addresses of the target.
    pub(crate) others: Arc<[ServerLink]>,
}

impl ServerLink {
    /// Links to a server whose encryption is decided, or that may not be there yet.
    pub fn to(target: ConnectOptions, stop: &Stop) -> Result<ServerLink> {
        let made = if target.ssl.ca.is_some() || target.ssl.cert.is_some() {
            // A file of certificates may be a pipe.
            let wanted = target.clone();
            unless_stopped(stop, move || tls::options(&wanted))
        } else {
            tls::options(&target)
        };
        let (driver, tls) = made?.unzip();
        let opts = target.opts(driver)?;
        let to = |address: &Address| {
            let (address, others) = (address.clone(), Vec::new());
            ServerLink::to(ConnectOptions { address, others, ..target.clone() }, stop)
        };
        let others = target.others.iter().map(to).collect::<Result<_>>()?;
        let relayed = Arc::default();
        Ok(ServerLink { target, opts, tls, stop: stop.clone(), relayed, others })
    }

    pub(crate) fn addresses(&self) -> usize {
        self.others.len() + 1
    }

    /// Returns the link to the address at this place of the list.
    pub(crate) fn at(&self, place: usize) -> &ServerLink {
        place.checked_sub(1).map_or(self, |other| &self.others[other])
    }
}

pub(super) fn is_absence(e: &io::Error) -> bool {
    // Errors of the TLS library are wrapped into the first of these.
    !matches!(e.kind(), ErrorKind::InvalidData | ErrorKind::PermissionDenied)
}

/// Returns whether `--connect-timeout` ended the wait, not the kernel.
pub(super) fn is_late(e: &io::Error) -> bool {
    e.kind() == ErrorKind::TimedOut && e.raw_os_error().is_none()
}

pub(super) async fn within_connect<T>(
    target: &ConnectOptions,
    opening: impl Future<Output = mysql_async::Result<T>>,
) -> mysql_async::Result<T> {
    let limit = target.connect_timeout;
    within(limit, opening).await.unwrap_or_else(|| {
        let limit = units::duration(limit);
        let why = format!("no connection within {limit} (--connect-timeout)");
        Err(io::Error::new(ErrorKind::TimedOut, why).into())
    })
}

/// Its offers (TLS, log-in methods) do not change by waiting.
fn may_pass(failure: &Driver) -> bool {
    match failure {
        Driver::Server(e) => errors::may_pass(e.code),
        Driver::Io(IoError::Io(e)) => is_absence(e),
        failure => matches!(failure, Driver::Driver(DriverError::ConnectionClosed)),
    }
}

/// The error of a wrong password, and of an account that needs TLS and did not get it.
const DENIED: u16 = 1045;

pub(super) fn explain(failure: &Driver, target: &ConnectOptions) -> Error {
    let address = &target.address;
    let message = match failure {
        Driver::Server(e) => format!("{target}: {} ({})", clip(&e.message, MESSAGE_MAX), e.code),
        Driver::Io(IoError::Tls(e)) => return tls_error(e, target),
        Driver::Io(IoError::Io(e))
            if e.kind() == ErrorKind::InvalidData && target.ssl.mode != SslMode::Disabled =>
        {
            return tls_error(e, target);
        }
        Driver::Io(IoError::Io(e)) => format!("cannot connect to {address}: {e}"),
        Driver::Driver(DriverError::UnexpectedPacket { .. }) => {
            format!("{address} answered the log-in with what is no MySQL protocol")
        }
        Driver::Other(e) => format!("{target}: {e}"),
        e => format!("{target}: {}", clip(&e.to_string(), MESSAGE_MAX)),
    };
    let error = Error::server(message).passing(may_pass(failure));
    let hint = match failure {
        Driver::Server(e) => {
            let tried = if target.password.is_empty() { LogInWithoutPassword } else { LogIn };
            hint_in(e.code, &e.message, tried, &target.database)
        }
        _ => Some(driver_hint(failure, target).to_owned()).filter(|hint| !hint.is_empty()),
    };
    let may_need_tls = matches!(failure, Driver::Server(e) if e.code == DENIED)
        && !target.password.is_empty()
        && target.ssl.mode == SslMode::Disabled
        && matches!(address, Address::Tcp { .. });
    let tls = "an account that needs TLS is refused like this, too: --ssl-mode REQUIRED, if the server offers it";
    error.add_hints(hint).add_hints(may_need_tls.then_some(tls))
}

fn driver_hint(failure: &Driver, target: &ConnectOptions) -> &'static str {
    match failure {
        Driver::Io(IoError::Io(e)) => match (&target.address, e.kind()) {
            _ if is_late(e) => "--connect-timeout waits longer; is it a MySQL server's port?",
            (Address::Socket(_), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                "no server listens there: -S names another socket, --protocol tcp takes TCP"
            }
            (Address::Tcp { .. }, ErrorKind::ConnectionRefused) => {
                "no server listens there: -h and -P name another, -S a socket"
            }
            (Address::Tcp { .. }, ErrorKind::AddrNotAvailable) => NO_PORT,
            (_, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                "the server hung up: its error log says why, if it is a MySQL server"
            }
            // The resolver's errors have no errno.
            (Address::Tcp { host, .. }, _)
                if e.raw_os_error().is_none() && host.parse::<IpAddr>().is_err() =>
            {
                "is the name of the host right? -h names another one"
            }
            _ => "",
        },
        Driver::Driver(DriverError::NoClientSslFlagFromServer) => {
            "the server offers no TLS: --ssl-mode DISABLED, or PREFERRED to take either"
        }
        Driver::Driver(
            DriverError::UnknownAuthPlugin { .. }
            | DriverError::CleartextPluginDisabled
            | DriverError::MysqlOldPasswordDisabled,
        ) => {
            "accounts with mysql_native_password, caching_sha2_password, sha256_password, ed25519 or \
             parsec can log in"
        }
        Driver::Other(why) if why.to_string() == IN_THE_CLEAR => {
            "use a socket (-S), or encrypt: --ssl-mode REQUIRED"
        }
        Driver::Other(why) if why.to_string() == ANOTHER_QUESTION => {
            "an account that asks for a password alone can log in"
        }
        Driver::Other(why) if why.to_string() == REFUSED_KEY => {
            "a socket (-S) or TLS (--ssl-mode REQUIRED) needs no key"
        }
        Driver::Other(_) => "loadgen is tested from MySQL 5.5 and MariaDB 10.1 on",
        _ => "",
    }
}

/// Parts of an error, and what they mean; an alert is the server's refusal.
const TLS_HINTS: [(&[&str], &str); 7] = [
    (
        &["not valid for name"],
        "only names in the certificate's subjectAltName count: connect by one of them (-h), or \
         --ssl-mode VERIFY_CA verifies who signed it alone",
    ),
    (&["UnknownIssuer"], "the certificate is not signed by what --ssl-ca holds"),
    (&["UnsupportedCertVersion"], "the certificate is X.509 version 1: it has to be version 3"),
    (&["CaUsedAsEndEntity"], "the server shows an authority's certificate, not one signed by that"),
    (
        &["certificate expired", "certificate not valid yet"],
        "the server needs another certificate, or a clock is wrong",
    ),
    (
        &["alert: Certificate", "alert: BadCertificate", "alert: UnknownCA"],
        "the server wants a certificate of this client that it trusts: --ssl-cert and --ssl-key",
    ),
    (&[""], "TLS 1.2 and 1.3 are spoken; the server may know older versions only"),
];

fn tls_error(e: &dyn std::fmt::Display, target: &ConnectOptions) -> Error {
    let (text, mode) = (e.to_string(), target.ssl.mode);
    let error = Error::server(format!("{}: TLS (ssl-mode {mode}): {text}", target.address));
    let is_of = |(parts, _): &&(&[&str], &str)| parts.iter().any(|part| text.contains(part));
    let (_, hint) = TLS_HINTS.iter().find(is_of).expect("the last one");
    match mode {
        SslMode::Preferred => error.hint(*hint).hint("--ssl-mode DISABLED does without"),
        _ => error.hint(*hint),
    }
}

pub(super) fn charset_error(charset: Option<&str>, failure: &Failure) -> Error {
    let what = charset.map_or("setting up a connection".to_owned(), |it| format!("--charset {it}"));
    failure.explain(&what)
}

pub(super) async fn set_names<T>(
    link: &ServerLink,
    charset: Option<&str>,
    run: impl AsyncFnOnce(&str) -> Asked<T>,
) -> Asked<()> {
    let Some(charset) = charset else { return Ok(()) };
    let (sql, limit) = (format!("SET NAMES {}", quoted_text(charset)), link.target.connect_timeout);
    let late = || format!("SET NAMES was not answered within {}", units::duration(limit));
    let set = within(limit, run(&sql)).await;
    set.unwrap_or_else(|| Err(Failure::lost(late()))).map(|_| ())
}

/// Refuses a session that broke or has an unread answer: the next answer would be that one.
#[inline]
pub(super) fn begin_request(waiting: &mut bool) -> Asked<()> {
    if std::mem::replace(waiting, true) {
        return Err(Failure::lost("the answer before was given up on"));
    }
    Ok(())
}

/// Words a connection error as libmariadb does, whose number for TCP is that of a connection in progress.
pub(crate) fn connect_error(address: &Address, failure: &Failure) -> String {
    const IN_PROGRESS: u8 = 115;
    let why = match failure {
        Failure::Server { code, message, .. } => return format!("{code}: {message}"),
        Failure::Lost(loss) => &loss.why,
    };
    let number = why.rsplit_once("(os error ").and_then(|(_, rest)| rest.strip_suffix(')'));
    match (address, number) {
        (Address::Socket(path), Some(number)) => {
            let path = path.display();
            format!("2002: Can't connect to local server through socket '{path}' ({number})")
        }
        (Address::Tcp { host, .. }, Some(_)) => {
            format!("2002: Can't connect to server on '{host}' ({IN_PROGRESS})")
        }
        (Address::Tcp { host, .. }, None) if why.starts_with("failed to lookup address") => {
            format!("2005: Unknown server host '{host}' (-2)")
        }
        _ => format!("2013: Lost connection to server at 'handshake': {why}"),
    }
}

/// Quotes a name or an option as a string literal. Not data: NO_BACKSLASH_ESCAPES would double a backslash.
pub(crate) fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
