//! One connection, opened in bounded time, whatever the server answers.

use std::any::Any;
use std::io::{self, ErrorKind};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use mysql_async::{Conn, DriverError, Error as Driver, IoError, Opts};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpStream, UnixStream};

use super::errors::{self, MESSAGE_MAX};
use super::options::{Address, ConnectOptions, Ssl, SslMode};
use crate::error::{Error, Result, clip, line};
use crate::stop::{COURTESY, Stop, or_stop, within};
use crate::terms::units;

/// A server that is reached, and what ends the waits for it.
#[derive(Clone)]
pub struct ServerLink {
    pub target: ConnectOptions,
    /// [`ConnectOptions::opts`] of it.
    pub opts: Opts,
    pub stop: Stop,
}

impl ServerLink {
    /// Decides whether the server's connections are encrypted.
    pub async fn new(target: &ConnectOptions, stop: &Stop) -> Result<ServerLink> {
        ServerLink::to(or_stop(stop, settle_tls(target)).await?, stop)
    }

    /// Takes a server whose encryption is decided, or that may not be there yet.
    pub fn to(target: ConnectOptions, stop: &Stop) -> Result<ServerLink> {
        Ok(ServerLink { opts: target.opts()?, target, stop: stop.clone() })
    }
}

pub async fn connect(target: &ConnectOptions, opts: &Opts) -> Result<Conn> {
    match try_connect(target, opts).await {
        Ok(conn) => Ok(conn),
        Err(failure) => Err(match too_old(target, &failure).await {
            Some(error) => error,
            None => failure.explain(target),
        }),
    }
}

/// Tells whether nobody listens there, or who does hangs up at once. Somebody who lets nobody in, or
/// says nothing in time, is somebody.
pub(crate) async fn nobody(link: &ServerLink) -> bool {
    match try_connect(&link.target, &link.opts).await {
        Err(Failure::Driver(Driver::Io(IoError::Io(e)))) => is_absence(&e),
        _ => false,
    }
}

/// Tells whether an error comes of a server that is not there, or that goes.
fn is_absence(e: &io::Error) -> bool {
    // The TLS library's errors come wrapped into the first of these.
    !matches!(e.kind(), ErrorKind::InvalidData | ErrorKind::PermissionDenied)
}

pub(crate) enum Failure {
    /// The driver, or by way of it the server or the kernel.
    Driver(Driver),
    Timeout,
    /// The driver panicked: 0.37.1 does on some malformed log-in packets.
    Panic,
}

impl From<Failure> for errors::Failure {
    fn from(failure: Failure) -> Self {
        errors::Failure::Lost(match failure {
            Failure::Driver(error) => return error.into(),
            Failure::Timeout => "no connection within --connect-timeout".to_owned(),
            Failure::Panic => "the log-in's answer is no MySQL protocol".to_owned(),
        })
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

/// Reads what a panic of the driver's means: it knows ways to log in that it was built without, and
/// panics instead of saying so.
fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    let said = owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    let plugin = |name: &&str| said.contains(&format!("`{name}` authentication plugin"));
    ["ed25519", "parsec"].into_iter().find(plugin).map_or(Failure::Panic, |name| {
        Failure::Driver(DriverError::UnknownAuthPlugin { name: name.to_owned() }.into())
    })
}

impl Failure {
    /// Tells whether the same server may let the same account in a little later. What it offers (TLS,
    /// ways to log in) does not change by waiting, nor does who it is.
    fn may_pass(&self) -> bool {
        match self {
            Failure::Driver(Driver::Server(e)) => errors::may_pass(e.code),
            Failure::Driver(Driver::Io(IoError::Io(e))) => is_absence(e),
            Failure::Driver(Driver::Driver(DriverError::ConnectionClosed)) | Failure::Timeout => {
                true
            }
            Failure::Driver(_) | Failure::Panic => false,
        }
    }

    /// Makes the error as it is shown: what happened at which server, and what to do.
    pub(crate) fn explain(self, target: &ConnectOptions) -> Error {
        let address = &target.address;
        let may_pass = self.may_pass();
        let said = |text: &str| format!("{target}: {}", clip(text, MESSAGE_MAX));
        let (message, hint) = match &self {
            Failure::Timeout => {
                let limit = units::duration(target.connect_timeout);
                let hint =
                    "--connect-timeout waits longer; is it a MySQL server, and the right port?";
                (format!("{address} let no connection through within {limit}"), hint.to_owned())
            }
            Failure::Panic => {
                let message =
                    format!("{address} answered the log-in with what is no MySQL protocol");
                (message, String::new())
            }
            Failure::Driver(Driver::Server(e)) => {
                (format!("{} ({})", said(&e.message), e.code), server_hint(e.code, target))
            }
            Failure::Driver(Driver::Io(IoError::Io(e))) => {
                return io_error(e, target).passing(may_pass);
            }
            Failure::Driver(Driver::Io(IoError::Tls(e))) => return tls_error(e, target),
            Failure::Driver(e) => (said(&e.to_string()), driver_hint(e).to_owned()),
        };
        let error = Error::server(message).passing(may_pass);
        if hint.is_empty() { error } else { error.hint(hint) }
    }
}

fn driver_hint(e: &Driver) -> &'static str {
    match e {
        Driver::Driver(DriverError::NoClientSslFlagFromServer) => {
            "the server offers no TLS: --ssl-mode DISABLED, or PREFERRED to take either"
        }
        Driver::Driver(
            DriverError::UnknownAuthPlugin { .. }
            | DriverError::CleartextPluginDisabled
            | DriverError::MysqlOldPasswordDisabled,
        ) => "accounts with mysql_native_password or caching_sha2_password can log in",
        _ => "",
    }
}

fn server_hint(code: u16, target: &ConnectOptions) -> String {
    let database = &target.database;
    let hint = match code {
        1044 => return format!("GRANT ALL ON {database}.* TO the account, or -D another database"),
        1049 => return format!("CREATE DATABASE {database}, or -D another one"),
        1045 | 1698 if target.password.is_empty() => {
            "no password was given: -p asks for one; -u names the account"
        }
        1045 | 1698 => "is it the right account (-u) and password (-p asks for it)?",
        1040 | 1203 => "the server's max_connections (max_user_connections) is reached",
        1129 | 1130 => "the server does not let this host in",
        3159 => "the server demands encryption: --ssl-mode REQUIRED",
        _ => "",
    };
    hint.to_owned()
}

fn io_error(e: &io::Error, target: &ConnectOptions) -> Error {
    if e.kind() == ErrorKind::InvalidData && target.ssl.mode != SslMode::Disabled {
        return tls_error(e, target);
    }
    let error = Error::server(format!("cannot connect to {}: {e}", target.address));
    match (&target.address, e.kind()) {
        (Address::Socket(_), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            error.hint("no server listens there: -S names another socket, --protocol tcp takes TCP")
        }
        (Address::Tcp { .. }, ErrorKind::ConnectionRefused) => {
            error.hint("no server listens there: -h and -P name another, -S a socket")
        }
        (_, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
            error.hint("the server hung up: its error log says why, if it is a MySQL server")
        }
        _ => error,
    }
}

const TLS_HINTS: [(&str, &str); 5] = [
    (
        "not valid for name",
        "only names in the certificate's subjectAltName count: connect by one of them (-h), or \
         --ssl-mode VERIFY_CA verifies who signed it alone",
    ),
    ("UnknownIssuer", "the certificate is not signed by what --ssl-ca holds"),
    (
        "UnsupportedCertVersion",
        "the certificate is X.509 version 1: the server needs one of version 3",
    ),
    (
        "CaUsedAsEndEntity",
        "the server uses an authority's certificate as its own: it needs one signed by that",
    ),
    ("", "TLS 1.2 and 1.3 are spoken; the server may know older versions only"),
];

fn tls_error(e: &dyn std::fmt::Display, target: &ConnectOptions) -> Error {
    let (text, mode) = (e.to_string(), target.ssl.mode);
    let error = Error::server(format!("{}: TLS (ssl-mode {mode}): {text}", target.address));
    let (_, hint) = TLS_HINTS.iter().find(|(said, _)| text.contains(said)).expect("the last one");
    match mode {
        SslMode::Preferred => error.hint(*hint).hint("--ssl-mode DISABLED does without"),
        _ => error.hint(*hint),
    }
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
        Err(Failure::Driver(Driver::Driver(DriverError::NoClientSslFlagFromServer))) => {
            Ok(with(SslMode::Disabled))
        }
        Err(failure) => Err(failure.explain(target)),
    }
}

/// How long the second look may take: a server greets at once.
const WITHIN: Duration = Duration::from_secs(2);
const PROTOCOL_41: u16 = 512;

/// Makes the error for a server that speaks the protocol of before 4.1; None for others.
async fn too_old(target: &ConnectOptions, failure: &Failure) -> Option<Error> {
    use ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
    let odd = match failure {
        // What old servers say to a log-in of today. A host that fails to log in may be locked out.
        Failure::Driver(Driver::Server(e)) => matches!(e.code, 1043 | 1251),
        Failure::Driver(Driver::Io(IoError::Io(e))) => {
            !matches!(e.kind(), ConnectionRefused | NotFound | PermissionDenied)
        }
        Failure::Driver(Driver::Driver(DriverError::UnknownAuthPlugin { .. })) => false,
        failure => !matches!(failure, Failure::Timeout),
    };
    let version = match &target.address {
        _ if !odd => return None,
        Address::Tcp { host, port } => {
            let greeting = async { read(TcpStream::connect((host.as_str(), *port)).await?).await };
            within(WITHIN, greeting).await
        }
        Address::Socket(path) => {
            within(WITHIN, async { read(UnixStream::connect(path).await?).await }).await
        }
    };
    let version = line(&old_version(&version?.ok()?)?);
    let error = Error::server(format!(
        "{target} is MySQL {version}: servers before 4.1 are not supported, they speak another \
         protocol"
    ));
    Some(error.hint("loadgen is tested from MySQL 5.5 and MariaDB 10.1 on"))
}

async fn read(mut stream: impl AsyncRead + Unpin) -> io::Result<Vec<u8>> {
    let length = stream.read_u8().await?;
    let mut bytes = vec![length];
    stream.take(u64::from(length) + 3).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// Reads the version in a greeting without the capability of 4.1.
fn old_version(packet: &[u8]) -> Option<String> {
    let (protocol, rest) = packet.get(4..)?.split_first()?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    let version = String::from_utf8_lossy(&rest[..end]).into_owned();
    // Thread id, eight bytes of salt and a zero lie between; 3.21 and 3.22 send none.
    let flags = rest.get(end + 1 + 4 + 9..).and_then(<[u8]>::first_chunk);
    let older = match protocol {
        9 => true,
        10 => flags.is_none_or(|flags| u16::from_le_bytes(*flags) & PROTOCOL_41 == 0),
        // An error packet, or no MySQL at all.
        _ => false,
    };
    (older && version.starts_with(|c: char| c.is_ascii_digit())).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::fake::{fake_server, greeting};
    use super::*;
    use crate::mysql::options::Secret;

    fn target(address: Address) -> ConnectOptions {
        let (password, connect_timeout) = (Secret::new("marker-pw"), Duration::from_millis(100));
        ConnectOptions { address, password, connect_timeout, ..ConnectOptions::canned(0) }
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
            Failure::Driver(Driver::Server(e)).explain(target)
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
        let ssl = Ssl { mode: SslMode::Preferred, ..Ssl::default() };
        let connect_timeout = Duration::from_mins(1);
        let target = ConnectOptions { address, ssl, connect_timeout, ..ConnectOptions::canned(0) };
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
        let connect_timeout = Duration::from_mins(1);
        let target = ConnectOptions { address, connect_timeout, ..ConnectOptions::canned(0) };
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
