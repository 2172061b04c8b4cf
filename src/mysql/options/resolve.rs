//! Where the server is and how to get in: flags, URL, option files and environment become one
//! [`ConnectOptions`].
//!
//! The strongest word on each subject counts: flag, URL, option file, environment, default.
//! Whether that means TCP or the socket is decided among `protocol`, `host`, `socket` and
//! `port` together, again by the strongest; two that are equally strong and contradict each
//! other are an error when they were meant for loadgen (flags, a URL), and settled as the MySQL
//! clients do where they were not (option files usually hold a port *and* a socket).

use std::io::ErrorKind;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use super::env::Env;
use super::files;
use super::flags::{ConnectionArgs, Protocol};
use super::inputs::{Given, Inputs, Password, Rank};
use super::tls::{self, Ssl, SslMode};
use super::{Address, CONNECT_TIMEOUT, ConnectOptions, DEFAULT_PORT, Secret};
use crate::error::{Error, Kind, Result};

#[cfg(test)]
mod tests;

const DEFAULT_DATABASE: &str = "sbtest";

/// Where servers put their socket, if nobody says.
const USUAL_SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/tmp/mysql.sock",
    "/var/lib/mysql/mysql.sock",
];

/// What came of the inputs.
#[derive(Debug)]
pub struct Resolved {
    /// The server. Its password is empty if `wants_prompt`.
    pub target: ConnectOptions,
    /// What the reader should know: ignored files, encryption that an option file switched on.
    pub warnings: Vec<String>,
    /// Whether the password is to be asked for (`prompt`).
    pub wants_prompt: bool,
}

/// Resolves with this process's environment, and asks for the password if need be.
pub fn find(args: &ConnectionArgs) -> Result<(ConnectOptions, Vec<String>)> {
    let Resolved { mut target, warnings, wants_prompt } = resolve(args, &Env::real())?;
    if wants_prompt {
        target.password = prompt(&target)?;
    }
    Ok((target, warnings))
}

/// Asks for the password on the terminal, without echo.
pub(crate) fn prompt(target: &ConnectOptions) -> Result<Secret> {
    let question =
        crate::error::line(&format!("Password for {}@{}: ", target.user, target.address));
    rpassword::prompt_password(question).map(Secret::new).map_err(|e| match e.kind() {
        // Ctrl-C, which is no signal as long as the terminal shows nothing.
        ErrorKind::Interrupted => Error::new(Kind::Interrupted, "interrupted"),
        _ => Error::usage(format!("cannot ask for the password: {e}"))
            .hint("without a terminal: MYSQL_PWD, an option file, or --password-fd"),
    })
}

/// Resolves the flags in a given world. Opens no connection and asks nothing.
pub fn resolve(args: &ConnectionArgs, env: &Env) -> Result<Resolved> {
    let files = files::read(args, env)?;
    let mut warnings = files.warnings;
    let mut inputs = Inputs::default();
    inputs.environment(env)?;
    inputs.option_files(&files.settings)?;
    match (&args.url, env.text("LOADGEN_URL")?) {
        (Some(url), _) => inputs.url(url, "--url")?,
        (None, Some(url)) => inputs.url(&Secret::new(url), "LOADGEN_URL")?,
        (None, None) => {}
    }
    inputs.flags(args, env)?;

    let address = address(&inputs, env)?;
    let ssl = ssl(&inputs, &address, &mut warnings)?;
    let connect_timeout = match &inputs.connect_timeout {
        Some(given) if given.value.is_zero() => {
            return Err(Error::usage(format!("{} is 0: no server is that fast", given.from)));
        }
        given => given.as_ref().map_or(CONNECT_TIMEOUT, |given| given.value),
    };
    let user = match inputs.user {
        Some(given) => given.value,
        None => env.os_user.clone().ok_or_else(|| {
            Error::usage("this account of the operating system has no name").hint("-u names one")
        })?,
    };
    let (password, wants_prompt) = match inputs.password.map(|given| given.value) {
        Some(Password::Text(text)) => (text, false),
        Some(Password::Prompt) => (Secret::default(), true),
        None => (Secret::default(), false),
    };
    let database = inputs.database.map_or_else(|| DEFAULT_DATABASE.to_owned(), |given| given.value);
    let target = ConnectOptions { address, user, password, database, ssl, connect_timeout };
    Ok(Resolved { target, warnings, wants_prompt })
}

fn address(inputs: &Inputs, env: &Env) -> Result<Address> {
    contradictions(inputs)?;
    let host = inputs.host.as_ref().map(host_name).transpose()?;
    // Equally strong ones count in this order, which is the MySQL clients'. What option files and
    // environment say was not said together: MYSQL_HOST must not lose to a [client] socket.
    let votes = [
        inputs.protocol.as_ref().map(|given| (given.rank, given.value)),
        inputs.host.as_ref().filter(|g| !is_local(&g.value)).map(|g| (g.rank, Protocol::Tcp)),
        inputs.socket.as_ref().map(|given| (given.rank, Protocol::Socket)),
        inputs.port.as_ref().map(|given| (given.rank, Protocol::Tcp)),
    ];
    let strongest =
        votes.into_iter().flatten().rev().max_by_key(|(rank, _)| (*rank).max(Rank::File));
    let socket = || match &inputs.socket {
        Some(given) => Some(given.value.clone()),
        None => USUAL_SOCKETS.map(PathBuf::from).into_iter().find(|path| (env.is_socket)(path)),
    };
    let tcp = || Address::Tcp {
        host: host.unwrap_or_else(|| "127.0.0.1".to_owned()),
        port: inputs.port.as_ref().map_or(DEFAULT_PORT, |given| given.value),
    };
    match strongest {
        Some((_, Protocol::Tcp)) => Ok(tcp()),
        Some((_, Protocol::Socket)) => socket().map(Address::Socket).ok_or_else(|| {
            let from = inputs.protocol.as_ref().map_or("the socket", |given| &given.from);
            Error::usage(format!("{from}: there is no socket at {}", USUAL_SOCKETS.join(", ")))
                .hint("-S names it")
        }),
        None => Ok(socket().map_or_else(tcp, Address::Socket)),
    }
}

/// Two flags, or two parts of a URL, of which one says TCP and the other the socket.
fn contradictions(inputs: &Inputs) -> Result<()> {
    let remote = inputs.host.as_ref().filter(|given| !is_local(&given.value));
    let protocol = |wanted| inputs.protocol.as_ref().filter(move |given| given.value == wanted);
    let tcp = [
        remote.map(|given| (given.rank, &given.from)),
        inputs.port.as_ref().map(|given| (given.rank, &given.from)),
        protocol(Protocol::Tcp).map(|given| (given.rank, &given.from)),
    ];
    let socket = [
        inputs.socket.as_ref().map(|given| (given.rank, &given.from)),
        protocol(Protocol::Socket).map(|given| (given.rank, &given.from)),
    ];
    for (rank, a) in tcp.into_iter().flatten().filter(|(rank, _)| *rank >= Rank::Url) {
        if let Some((_, b)) = socket.into_iter().flatten().find(|(other, _)| *other == rank) {
            return Err(Error::usage(format!(
                "{a} means TCP, {b} the Unix socket: give one of them"
            )));
        }
    }
    Ok(())
}

fn is_local(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
}

/// The host without the brackets of an IPv6 address.
fn host_name(given: &Given<String>) -> Result<String> {
    let host = &given.value;
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    // A zone may follow the address.
    let ipv6 = bare.split('%').next().is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok());
    if host.starts_with('/') {
        return Err(
            Error::usage(format!("{} is a path: '{host}'", given.from)).hint("-S names a socket")
        );
    }
    if bare.contains('@') {
        let text = format!("{} is no host: it holds an @", given.from);
        return Err(Error::usage(text).hint("--url takes a URL with user and password"));
    }
    if bare.contains(':') && !ipv6 {
        return Err(
            Error::usage(format!("{} is no host: '{host}'", given.from)).hint("-P names the port")
        );
    }
    Ok(bare.to_owned())
}

fn ssl(inputs: &Inputs, address: &Address, warnings: &mut Vec<String>) -> Result<Ssl> {
    let given = inputs.ssl_mode.as_ref();
    let mode = given.map(|given| given.value).unwrap_or_default();
    let from = given.map_or("ssl-mode", |given| &given.from);
    let file = |given: &Option<Given<PathBuf>>| given.as_ref().map(|given| given.value.clone());
    if mode == SslMode::Disabled {
        unused_files(inputs, warnings)?;
        return Ok(Ssl::default());
    }
    if given.is_some_and(|given| given.rank == Rank::File) {
        warnings.push(format!("{from} makes ssl-mode {mode}: connections are encrypted"));
    }
    if let Address::Socket(_) = address {
        let socket = inputs.socket.as_ref().map_or_else(|| address.to_string(), Given::shown);
        if mode == SslMode::Preferred {
            warnings.push(format!("{from} PREFERRED has no effect over the socket {address}"));
            return Ok(Ssl::default());
        }
        let message = format!("{from} ({mode}) and the socket {socket}: no TLS goes over a socket");
        return Err(Error::usage(message).hint("--protocol tcp, or --ssl-mode DISABLED"));
    }
    match (&inputs.ssl_ca, mode.verifies()) {
        (None, true) => return Err(tls::no_ca(mode).context(from)),
        (Some(ca), false) => {
            warnings.push(format!("{} is not used: ssl-mode {mode} verifies nothing", ca.shown()));
        }
        _ => {}
    }
    match (&inputs.ssl_cert, &inputs.ssl_key) {
        (Some(cert), None) => {
            return Err(Error::usage(format!("{} needs --ssl-key", cert.shown())));
        }
        (None, Some(key)) => {
            return Err(Error::usage(format!("{} needs --ssl-cert", key.shown())));
        }
        _ => {}
    }
    let (ca, cert, key) = (file(&inputs.ssl_ca), file(&inputs.ssl_cert), file(&inputs.ssl_key));
    Ok(Ssl { mode, ca: ca.filter(|_| mode.verifies()), cert, key })
}

/// Certificates without encryption: who names them expects it.
fn unused_files(inputs: &Inputs, warnings: &mut Vec<String>) -> Result<()> {
    let files = [&inputs.ssl_ca, &inputs.ssl_cert, &inputs.ssl_key];
    for file in files.into_iter().flatten() {
        let mode = match &inputs.ssl_mode {
            Some(mode) => format!("{} is DISABLED", mode.from),
            None => "--ssl-mode is DISABLED where it is not given".to_owned(),
        };
        if file.rank >= Rank::Url {
            return Err(Error::usage(format!("{} is of no use: {mode}", file.shown()))
                .hint("--ssl-mode VERIFY_IDENTITY, VERIFY_CA or REQUIRED encrypts"));
        }
        warnings.push(format!("{} is not used: {mode}", file.shown()));
    }
    Ok(())
}
