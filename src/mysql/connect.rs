//! One connection, opened in bounded time, whatever the server answers.

use std::any::Any;
use std::io;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use mysql_async::{Conn, DriverError, IoError, Opts};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpStream, UnixStream};

use super::errors::{self, MESSAGE_MAX};
use super::options::{Address, ConnectOptions, Ssl, SslMode};
use crate::error::{Error, Result, clip, line};
use crate::stop::{COURTESY, within};
use crate::terms::units;

/// Opens a connection with options that [`ConnectOptions::opts`] made of this target.
pub async fn connect(target: &ConnectOptions, opts: &Opts) -> Result<Conn> {
    match try_connect(target, opts).await {
        Ok(conn) => Ok(conn),
        Err(failure) => Err(match too_old(target, &failure).await {
            Some(error) => error,
            None => failure.explain(target),
        }),
    }
}

/// Whether nobody listens there, or who does hangs up at once. Somebody who lets nobody in, or says
/// nothing in time, is somebody.
pub(crate) async fn nobody(target: &ConnectOptions, opts: &Opts) -> bool {
    match try_connect(target, opts).await {
        Err(Failure::Driver(mysql_async::Error::Io(IoError::Io(e)))) => is_absence(&e),
        _ => false,
    }
}

/// Whether an error comes of a server that is not there, or that goes.
fn is_absence(e: &io::Error) -> bool {
    // The TLS library's errors come wrapped into the first of these.
    !matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::PermissionDenied)
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The driver, or by way of it the server or the kernel.
    Driver(mysql_async::Error),
    /// `connect_timeout` went by.
    Timeout,
    /// The driver panicked: 0.37.1 does on some malformed log-in packets.
    Panic,
}

impl From<Failure> for errors::Failure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Driver(error) => error.into(),
            Failure::Timeout => {
                errors::Failure::Lost("no connection within --connect-timeout".to_owned())
            }
            Failure::Panic => {
                errors::Failure::Lost("the log-in's answer is no MySQL protocol".to_owned())
            }
        }
    }
}

pub(crate) async fn try_connect(
    target: &ConnectOptions,
    opts: &Opts,
) -> std::result::Result<Conn, Failure> {
    let opening = AssertUnwindSafe(Conn::new(opts.clone())).catch_unwind();
    match within(target.connect_timeout, opening).await {
        Some(Ok(opened)) => opened.map_err(Failure::Driver),
        Some(Err(panic)) => Err(panicked(&*panic)),
        None => Err(Failure::Timeout),
    }
}

/// Ways to log in that the driver knows and was built without: it panics instead of saying so.
const NOT_BUILT_IN: [&str; 2] = ["ed25519", "parsec"];

/// What a panic of the driver's means.
fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    let said = owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    let plugin = |name: &&str| said.contains(&format!("`{name}` authentication plugin"));
    match NOT_BUILT_IN.into_iter().find(plugin) {
        Some(name) => {
            Failure::Driver(DriverError::UnknownAuthPlugin { name: name.to_owned() }.into())
        }
        None => Failure::Panic,
    }
}

impl Failure {
    /// Whether the same server may let the same account in a little later. What it offers (TLS, ways
    /// to log in) does not change by waiting, nor does who it is.
    fn may_pass(&self) -> bool {
        match self {
            Failure::Driver(mysql_async::Error::Server(e)) => errors::may_pass(e.code),
            Failure::Driver(mysql_async::Error::Io(IoError::Io(e))) => is_absence(e),
            Failure::Driver(mysql_async::Error::Driver(DriverError::ConnectionClosed))
            | Failure::Timeout => true,
            Failure::Driver(_) | Failure::Panic => false,
        }
    }

    /// The error as it is shown: what happened at which server, and what to do.
    pub(crate) fn explain(self, target: &ConnectOptions) -> Error {
        let may_pass = self.may_pass();
        self.explained(target).passing(may_pass)
    }

    fn explained(self, target: &ConnectOptions) -> Error {
        let address = &target.address;
        match self {
            Failure::Timeout => {
                let limit = units::duration(target.connect_timeout);
                Error::server(format!("{address} let no connection through within {limit}")).hint(
                    "--connect-timeout waits longer; is it a MySQL server, and the right port?",
                )
            }
            Failure::Panic => Error::server(format!(
                "{address} answered the log-in with what is no MySQL protocol"
            )),
            Failure::Driver(mysql_async::Error::Server(e)) => {
                let error = Error::server(format!(
                    "{target}: {} ({})",
                    clip(&e.message, MESSAGE_MAX),
                    e.code
                ));
                hinted(error, server_hint(e.code, target))
            }
            Failure::Driver(mysql_async::Error::Io(IoError::Io(e))) => io_error(&e, target),
            Failure::Driver(mysql_async::Error::Io(IoError::Tls(e))) => tls_error(&e, target),
            Failure::Driver(mysql_async::Error::Driver(e)) => {
                let hint = match e {
                    DriverError::NoClientSslFlagFromServer => Some(NO_TLS.to_owned()),
                    DriverError::UnknownAuthPlugin { .. }
                    | DriverError::CleartextPluginDisabled
                    | DriverError::MysqlOldPasswordDisabled => Some(PLUGINS.to_owned()),
                    _ => None,
                };
                hinted(
                    Error::server(format!("{target}: {}", clip(&e.to_string(), MESSAGE_MAX))),
                    hint,
                )
            }
            Failure::Driver(e) => {
                Error::server(format!("{target}: {}", clip(&e.to_string(), MESSAGE_MAX)))
            }
        }
    }
}

const NO_TLS: &str = "the server offers no TLS: --ssl-mode DISABLED, or PREFERRED to take either";
const PLUGINS: &str = "accounts with mysql_native_password or caching_sha2_password can log in";

fn hinted(error: Error, hint: Option<String>) -> Error {
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn server_hint(code: u16, target: &ConnectOptions) -> Option<String> {
    let database = &target.database;
    Some(match code {
        1045 | 1698 if target.password.is_empty() => {
            "no password was given: -p asks for one; -u names the account".to_owned()
        }
        1045 | 1698 => "is it the right account (-u) and password (-p asks for it)?".to_owned(),
        1044 => format!("GRANT ALL ON {database}.* TO the account, or -D another database"),
        1049 => format!("CREATE DATABASE {database}, or -D another one"),
        1040 | 1203 => "the server's max_connections (max_user_connections) is reached".to_owned(),
        1129 | 1130 => "the server does not let this host in".to_owned(),
        3159 => "the server demands encryption: --ssl-mode REQUIRED".to_owned(),
        _ => return None,
    })
}

fn io_error(e: &io::Error, target: &ConnectOptions) -> Error {
    // The TLS library's errors come wrapped into these.
    if e.kind() == io::ErrorKind::InvalidData && target.ssl.mode != SslMode::Disabled {
        return tls_error(e, target);
    }
    let error = Error::server(format!("cannot connect to {}: {e}", target.address));
    match (&target.address, e.kind()) {
        (Address::Socket(_), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            error.hint("no server listens there: -S names another socket, --protocol tcp takes TCP")
        }
        (Address::Tcp { .. }, io::ErrorKind::ConnectionRefused) => {
            error.hint("no server listens there: -h and -P name another, -S a socket")
        }
        (_, io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) => {
            error.hint("the server hung up: its error log says why, if it is a MySQL server")
        }
        _ => error,
    }
}

fn tls_error(e: &dyn std::fmt::Display, target: &ConnectOptions) -> Error {
    let text = e.to_string();
    let mode = target.ssl.mode;
    let error = Error::server(format!("{}: TLS (ssl-mode {mode}): {text}", target.address));
    let hint = if text.contains("not valid for name") {
        "only names in the certificate's subjectAltName count: connect by one of them (-h), or \
         --ssl-mode VERIFY_CA verifies who signed it alone"
    } else if text.contains("UnknownIssuer") {
        "the certificate is not signed by what --ssl-ca holds"
    } else if text.contains("UnsupportedCertVersion") {
        "the certificate is X.509 version 1: the server needs one of version 3"
    } else if text.contains("CaUsedAsEndEntity") {
        "the server uses an authority's certificate as its own: it needs one signed by that"
    } else {
        "TLS 1.2 and 1.3 are spoken; the server may know older versions only"
    };
    let without =
        (mode == SslMode::Preferred).then(|| "--ssl-mode DISABLED does without".to_owned());
    hinted(error.hint(hint), without)
}

/// Decides PREFERRED, once and before any step, by opening one connection: the target
/// comes back as REQUIRED or DISABLED, so that every connection of a run is of one kind. Other
/// modes come back as they are, without a connection.
///
/// Only a server that offers no TLS makes it fall back. A handshake that fails is an error: to
/// go on in plain text would hide it.
pub async fn settle_tls(target: &ConnectOptions) -> Result<ConnectOptions> {
    let with = |mode| ConnectOptions { ssl: Ssl { mode, ..target.ssl.clone() }, ..target.clone() };
    if target.ssl.mode != SslMode::Preferred {
        return Ok(target.clone());
    }
    let required = with(SslMode::Required);
    match try_connect(&required, &required.opts()?).await {
        Ok(conn) => {
            // It served; whether it says goodbye is of no interest.
            let _ = within(COURTESY, conn.disconnect()).await;
            Ok(required)
        }
        Err(Failure::Driver(mysql_async::Error::Driver(
            DriverError::NoClientSslFlagFromServer,
        ))) => Ok(with(SslMode::Disabled)),
        Err(failure) => Err(failure.explain(target)),
    }
}

/// How long the second look may take: a server greets at once.
const WITHIN: Duration = Duration::from_secs(2);
/// A greeting has some 80 bytes.
const GREETING_MAX: usize = 512;
/// CLIENT_PROTOCOL_41 among the capabilities.
const PROTOCOL_41: u16 = 512;
/// ER_HANDSHAKE_ERROR, ER_NOT_SUPPORTED_AUTH_MODE: what old servers say to a log-in of today.
const LOGIN_CODES: [u16; 2] = [1043, 1251];

/// The error for a server that speaks the protocol of before 4.1; None for others.
async fn too_old(target: &ConnectOptions, failure: &Failure) -> Option<Error> {
    if !is_odd(failure) {
        return None;
    }
    let version = within(WITHIN, look(&target.address)).await??;
    let error = Error::server(format!(
        "{target} is MySQL {}: servers before 4.1 are not supported, they speak another protocol",
        line(&version)
    ));
    Some(error.hint("loadgen is tested from MySQL 5.5 and MariaDB 10.1 on"))
}

/// Whether a failure may come of another protocol.
fn is_odd(failure: &Failure) -> bool {
    match failure {
        Failure::Timeout => false,
        Failure::Driver(mysql_async::Error::Server(e)) => LOGIN_CODES.contains(&e.code),
        Failure::Driver(mysql_async::Error::Io(IoError::Io(e))) => !matches!(
            e.kind(),
            std::io::ErrorKind::ConnectionRefused
                | std::io::ErrorKind::NotFound
                | std::io::ErrorKind::PermissionDenied
        ),
        Failure::Driver(mysql_async::Error::Driver(e)) => {
            !matches!(e, DriverError::UnknownAuthPlugin { .. })
        }
        Failure::Panic | Failure::Driver(_) => true,
    }
}

/// The version of a server whose greeting is of before 4.1.
async fn look(address: &Address) -> Option<String> {
    match address {
        Address::Tcp { host, port } => {
            read(TcpStream::connect((host.as_str(), *port)).await.ok()?).await
        }
        Address::Socket(path) => read(UnixStream::connect(path).await.ok()?).await,
    }
}

async fn read(mut stream: impl AsyncRead + Unpin) -> Option<String> {
    let mut bytes = Vec::with_capacity(GREETING_MAX);
    loop {
        let mut part = [0; GREETING_MAX];
        let length = stream.read(&mut part).await.ok()?;
        bytes.extend_from_slice(part.get(..length)?);
        let whole = bytes.first().map(|length| usize::from(*length) + 4);
        if length == 0 || whole.is_some_and(|whole| bytes.len() >= whole) {
            return old_version(&bytes);
        }
    }
}

/// The version in a greeting without the capability of 4.1.
fn old_version(packet: &[u8]) -> Option<String> {
    let (protocol, rest) = packet.get(4..)?.split_first()?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    let version = String::from_utf8_lossy(rest.get(..end)?).into_owned();
    let newer = match protocol {
        9 => false,
        10 => {
            // Thread id, eight bytes of salt and a zero lie between.
            let at = end + 1 + 4 + 9;
            // 3.21 and 3.22 send none.
            match rest.get(at..at + 2) {
                Some([low, high]) => u16::from_le_bytes([*low, *high]) & PROTOCOL_41 != 0,
                _ => false,
            }
        }
        // An error packet, or no MySQL at all.
        _ => return None,
    };
    (!newer && version.starts_with(|c: char| c.is_ascii_digit())).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::fake::{fake_server, greeting};
    use super::*;
    use crate::mysql::options::Secret;

    fn target(address: Address) -> ConnectOptions {
        ConnectOptions {
            address,
            user: "root".into(),
            password: Secret::new("marker-pw"),
            database: "sbtest".into(),
            ssl: Ssl::default(),
            connect_timeout: Duration::from_millis(100),
        }
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    fn failure(target: &ConnectOptions) -> Error {
        run(async { connect(target, &target.opts().unwrap()).await.map(|_| ()).unwrap_err() })
    }

    #[test]
    fn a_port_that_stays_silent_is_given_up() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let error = failure(&target(Address::Tcp { host: "127.0.0.1".into(), port }));
        assert_eq!(error.kind(), crate::error::Kind::Server);
        assert!(error.to_string().contains("100ms"), "{error}");
    }

    /// With time enough for a busy machine to come so far.
    #[test]
    fn a_server_that_hangs_in_the_tls_handshake_is_given_up() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, _) = listener.accept().unwrap();
            let greeting = greeting(true);
            stream.write_all(&[u8::try_from(greeting.len()).unwrap(), 0, 0, 0]).unwrap();
            stream.write_all(&greeting).unwrap();
            // The TLS request and the first message, up to the client's end.
            let mut sent = Vec::new();
            let _ = stream.read_to_end(&mut sent);
            sent.len()
        });
        let ssl = Ssl { mode: SslMode::Required, ..Ssl::default() };
        let address = Address::Tcp { host: "127.0.0.1".into(), port };
        let connect_timeout = Duration::from_secs(4);
        let error = failure(&ConnectOptions { ssl, connect_timeout, ..target(address) });
        assert!(error.to_string().contains("4s"), "{error}");
        assert!(server.join().unwrap() > 36, "it got as far as TLS");
    }

    #[test]
    fn nobody_there_is_named_with_a_hint_and_no_password() {
        let dir = tempfile::tempdir().unwrap();
        let error = failure(&target(Address::Socket(dir.path().join("no.sock"))));
        assert!(
            error.to_string().contains("no.sock") && error.hints()[0].contains("-S"),
            "{error}"
        );
        let error = failure(&target(Address::Tcp { host: "127.0.0.1".into(), port: 1 }));
        assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
        assert!(!format!("{error:?}{}", error.render()).contains("marker-pw"));
    }

    #[test]
    fn refusals_of_the_server_say_what_to_do() {
        let at = target(Address::Socket("/x.sock".into()));
        let explain = |code, target: &ConnectOptions| {
            let e = mysql_async::ServerError {
                code,
                message: "no\u{1b}[2J".into(),
                state: "28000".into(),
            };
            Failure::Driver(mysql_async::Error::Server(e)).explain(target)
        };
        assert!(explain(1049, &at).hints()[0].contains("CREATE DATABASE sbtest"));
        assert!(explain(1045, &at).hints()[0].contains("right account"));
        let without = ConnectOptions { password: Secret::default(), ..at.clone() };
        assert!(explain(1045, &without).hints()[0].contains("no password"));
        assert!(!explain(9999, &at).to_string().contains('\u{1b}'));
        let tls = Failure::Driver(DriverError::NoClientSslFlagFromServer.into()).explain(&at);
        assert!(tls.hints()[0].contains("DISABLED"));
    }

    /// What PREFERRED becomes at a server that sends these packets.
    fn settled(packets: Vec<Vec<u8>>) -> Result<SslMode> {
        let (address, server) = fake_server(packets);
        let target = ConnectOptions {
            address,
            user: "root".into(),
            password: Secret::default(),
            database: String::new(),
            ssl: Ssl { mode: SslMode::Preferred, ..Ssl::default() },
            connect_timeout: Duration::from_mins(1),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let settled = runtime.block_on(settle_tls(&target));
        // With it goes the connection's goodbye, which the server waits for.
        drop(runtime);
        server.join().unwrap();
        settled.map(|target| target.ssl.mode)
    }

    #[test]
    fn preferred_falls_back_for_want_of_tls_and_for_nothing_else() {
        assert_eq!(settled(vec![greeting(false)]).unwrap(), SslMode::Disabled);
        let handshake_fails = settled(vec![greeting(true), b"no TLS".to_vec()]).unwrap_err();
        assert_eq!(handshake_fails.kind(), crate::error::Kind::Server);
        assert!(handshake_fails.to_string().contains("PREFERRED"), "{handshake_fails}");
        assert!(handshake_fails.hints().iter().any(|hint| hint.contains("DISABLED")));
        assert!(settled(vec![b"\xff\x10\x04Too many connections".to_vec()]).is_err());
    }

    #[test]
    fn failures_of_tls_say_which_end_to_look_at() {
        let preferred = Ssl { mode: SslMode::Preferred, ..Ssl::default() };
        let at = ConnectOptions { ssl: preferred, ..target(Address::Socket("/x.sock".into())) };
        for (text, hint) in [
            ("certificate not valid for name \"db1\"; certificate is …", "subjectAltName"),
            ("invalid peer certificate: UnknownIssuer", "--ssl-ca"),
            ("Other(OtherError(UnsupportedCertVersion))", "version 3"),
            ("Other(OtherError(CaUsedAsEndEntity))", "an authority's"),
            ("received corrupt message of type UnknownProtocolVersion", "older versions"),
        ] {
            let wrapped = io::Error::new(io::ErrorKind::InvalidData, text);
            let error = io_error(&wrapped, &at);
            assert!(
                error.to_string().contains(text) && error.hints()[0].contains(hint),
                "{error:?}"
            );
            assert!(error.hints()[1].contains("DISABLED"));
        }
    }

    #[test]
    fn a_way_to_log_in_that_is_not_built_in_is_named() {
        let mut switch = b"\xfeclient_ed25519\0".to_vec();
        switch.extend_from_slice(&[7; 32]);
        let (address, server) = fake_server(vec![greeting(false), switch]);
        let target = ConnectOptions { connect_timeout: Duration::from_secs(5), ..target(address) };
        let error = failure(&target);
        assert!(error.to_string().contains("ed25519"), "{error}");
        assert!(error.hints()[0].contains("mysql_native_password"), "{error:?}");
        assert!(!error.may_pass());
        server.join().unwrap();
    }

    /// The driver slices the key packet without a look (0.37.1).
    #[test]
    fn a_driver_that_panics_is_an_error_of_this_connection() {
        let ask_for_the_key = vec![1, 4];
        let (address, server) = fake_server(vec![greeting(false), ask_for_the_key, vec![]]);
        let target = ConnectOptions { connect_timeout: Duration::from_mins(1), ..target(address) };
        let error = failure(&target);
        assert!(error.to_string().contains("no MySQL protocol"), "{error}");
        server.join().unwrap();
    }
}

/// A server of one connection, for what no real one does.
#[cfg(test)]
pub(crate) mod fake {
    use super::Address;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread::{self, JoinHandle};

    /// What a MySQL 8.0 says first, with or without TLS on offer.
    pub(crate) fn greeting(tls: bool) -> Vec<u8> {
        let mut packet = b"\x0a8.0.0\0\x01\0\0\0aaaaaaaa\0\xff".to_vec();
        packet.push(if tls { 0xff } else { 0xf7 });
        packet.extend_from_slice(b"\x21\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0");
        packet.extend_from_slice(b"bbbbbbbbbbbb\0caching_sha2_password\0");
        packet
    }

    /// A server of one connection.
    pub(crate) fn fake_server(packets: Vec<Vec<u8>>) -> (Address, JoinHandle<()>) {
        server_of(vec![packets])
    }

    /// Serves one connection after the other: sends its packets, each but the first after
    /// something was received, and hangs up.
    pub(crate) fn server_of(connections: Vec<Vec<Vec<u8>>>) -> (Address, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = thread::spawn(move || {
            for packets in connections {
                let (stream, _) = listener.accept().unwrap();
                serve(stream, packets);
            }
        });
        (Address::Tcp { host: "127.0.0.1".into(), port }, thread)
    }

    fn serve(mut stream: TcpStream, packets: Vec<Vec<u8>>) {
        for (i, packet) in packets.into_iter().enumerate() {
            if i > 0 {
                let _ = stream.read(&mut [0; 4096]).unwrap();
            }
            let len = u32::try_from(packet.len()).unwrap().to_le_bytes();
            stream.write_all(&[len[0], len[1], len[2], u8::try_from(2 * i).unwrap()]).unwrap();
            stream.write_all(&packet).unwrap();
        }
        // What follows is swallowed: a reset would overtake the last packet.
        let _ = stream.read(&mut [0; 4096]);
    }
}

#[cfg(test)]
mod greeting_tests {
    use super::*;
    use crate::mysql::options::Secret;
    use proptest::prelude::*;

    /// What MySQL 4.0.30 says first: no capability of 4.1.
    fn greeting_of_4_0() -> Vec<u8> {
        let mut packet = b"\x0a4.0.30-standard-log\0\x07\0\0\0abcdefgh\0".to_vec();
        // LONG_FLAG, CONNECT_WITH_DB, COMPRESS, TRANSACTIONS; latin1; autocommit.
        packet.extend_from_slice(&[0x2c, 0x20, 0x08, 0x02, 0]);
        packet.extend_from_slice(&[0; 13]);
        packet
    }

    fn packet(body: &[u8]) -> Vec<u8> {
        let mut packet = vec![u8::try_from(body.len()).expect("short"), 0, 0, 0];
        packet.extend_from_slice(body);
        packet
    }

    #[test]
    fn old_greetings_are_told_from_newer_ones() {
        let version = old_version(&packet(&greeting_of_4_0()));
        assert_eq!(version.as_deref(), Some("4.0.30-standard-log"));
        assert_eq!(
            old_version(&packet(b"\x093.20.32\0\x07\0\0\0abcdefgh\0")).as_deref(),
            Some("3.20.32")
        );
        assert_eq!(old_version(&packet(&fake::greeting(false))), None);
        assert_eq!(old_version(&packet(b"\xff\x10\x04Too many connections")), None);
        assert_eq!(old_version(b"HTTP/1.1 400 Bad Request\r\n\r\n"), None);
        assert_eq!(old_version(b""), None);
    }

    #[test]
    fn a_server_before_4_1_is_not_supported_and_named() {
        // What it answers to the log-in that it does not understand, without an SQL state.
        let refusal = b"\xff\x13\x04Bad handshake".to_vec();
        let packets = [vec![greeting_of_4_0(), refusal], vec![greeting_of_4_0()]];
        let (address, server) = fake::server_of(packets.into());
        let target = ConnectOptions {
            address,
            user: "root".into(),
            password: Secret::default(),
            database: "sbtest".into(),
            ssl: Ssl::default(),
            connect_timeout: Duration::from_mins(1),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let error = runtime.expect("a runtime").block_on(async {
            let opts = target.opts().expect("sound");
            connect(&target, &opts).await.map(|_| ()).expect_err("too old")
        });
        assert_eq!(error.kind(), crate::error::Kind::Server);
        let shown = error.render();
        assert!(
            shown.contains("4.0.30-standard-log") && shown.contains("not supported"),
            "{shown}"
        );
        server.join().expect("served");
    }

    proptest! {
        #[test]
        fn no_greeting_panics(bytes in prop::collection::vec(any::<u8>(), 0..120), version in "[0-9.]{1,10}") {
            let _ = old_version(&bytes);
            let greeting = [b"\x09", version.as_bytes(), b"\0"].concat();
            if version.starts_with(|c: char| c.is_ascii_digit()) {
                prop_assert_eq!(old_version(&packet(&greeting)), Some(version));
            }
        }
    }
}
