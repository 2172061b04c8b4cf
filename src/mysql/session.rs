//! One connection: opened in bounded time, whatever the server answers, and what is sent over it. The
//! only file on the hot path that touches the driver.
//!
//! A query future that is dropped before its answer leaves the answer in the connection, and
//! the next query returns it (see `docs/dev/driver.md`). So whoever gives up on a query drops the
//! whole `Session`, and one that is used all the same refuses.

use std::any::Any;
use std::io::{self, ErrorKind};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream::BoxStream;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error as Driver, IoError, Opts, Params, Row, Value};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpStream, UnixStream};

use super::errors::{self, MESSAGE_MAX};
pub use super::errors::{Asked, Failure, LOST};
use super::options::{Address, ConnectOptions, Ssl, SslMode};
use crate::error::{Error, Result, clip, line, plain};
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
        Err(failure) => {
            Err(too_old(target, &failure).await.unwrap_or_else(|| explain(&failure, target)))
        }
    }
}

/// Tells whether nobody listens there, or who does hangs up at once. Somebody who lets nobody in, or
/// says nothing in time, is somebody.
pub(crate) async fn nobody(link: &ServerLink) -> bool {
    match try_connect(&link.target, &link.opts).await {
        Err(Driver::Io(IoError::Io(e))) => is_absence(&e) && !is_late(&e),
        _ => false,
    }
}

/// Tells whether an error comes of a server that is not there, or that goes.
fn is_absence(e: &io::Error) -> bool {
    // The TLS library's errors come wrapped into the first of these.
    !matches!(e.kind(), ErrorKind::InvalidData | ErrorKind::PermissionDenied)
}

/// Tells whether it is the end of `--connect-timeout`, not one that the kernel saw.
fn is_late(e: &io::Error) -> bool {
    e.kind() == ErrorKind::TimedOut && e.raw_os_error().is_none()
}

pub(super) async fn try_connect(target: &ConnectOptions, opts: &Opts) -> mysql_async::Result<Conn> {
    let opening = AssertUnwindSafe(Conn::new(opts.clone())).catch_unwind();
    let limit = target.connect_timeout;
    match within(limit, opening).await {
        Some(Ok(opened)) => opened,
        Some(Err(panic)) => Err(panicked(&*panic).into()),
        None => {
            let limit = units::duration(limit);
            let why = format!("no connection within {limit} (--connect-timeout)");
            Err(io::Error::new(ErrorKind::TimedOut, why).into())
        }
    }
}

/// Reads what a panic of the driver's means: it knows ways to log in that it was built without, and
/// panics instead of saying so; and 0.37.1 does on some malformed packets.
fn panicked(panic: &(dyn Any + Send)) -> DriverError {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    let said = owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    let plugin = |name: &&str| said.contains(&format!("`{name}` authentication plugin"));
    match ["ed25519", "parsec"].into_iter().find(plugin) {
        Some(name) => DriverError::UnknownAuthPlugin { name: name.to_owned() },
        None => DriverError::UnexpectedPacket { payload: Vec::new() },
    }
}

/// Tells whether the same server may let the same account in a little later. What it offers (TLS,
/// ways to log in) does not change by waiting, nor does who it is.
fn may_pass(failure: &Driver) -> bool {
    match failure {
        Driver::Server(e) => errors::may_pass(e.code),
        Driver::Io(IoError::Io(e)) => is_absence(e),
        failure => matches!(failure, Driver::Driver(DriverError::ConnectionClosed)),
    }
}

/// Makes the error as it is shown: what happened at which server, and what to do.
fn explain(failure: &Driver, target: &ConnectOptions) -> Error {
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
        e => format!("{target}: {}", clip(&e.to_string(), MESSAGE_MAX)),
    };
    let error = Error::server(message).passing(may_pass(failure));
    match hint(failure, target) {
        hint if hint.is_empty() => error,
        hint => error.hint(hint),
    }
}

fn hint(failure: &Driver, target: &ConnectOptions) -> String {
    let database = &target.database;
    let hint = match failure {
        Driver::Server(e) => match e.code {
            1044 => {
                return format!("GRANT ALL ON {database}.* TO the account, or -D another database");
            }
            1049 => return format!("CREATE DATABASE {database}, or -D another one"),
            1045 | 1698 if target.password.is_empty() => {
                "no password was given: -p asks for one; -u names the account"
            }
            1045 | 1698 => "is it the right account (-u) and password (-p asks for it)?",
            1040 | 1203 => "the server's max_connections (max_user_connections) is reached",
            1129 | 1130 => "the server does not let this host in",
            3159 => "the server demands encryption: --ssl-mode REQUIRED",
            _ => "",
        },
        Driver::Io(IoError::Io(e)) => match (&target.address, e.kind()) {
            _ if is_late(e) => {
                "--connect-timeout waits longer; is it a MySQL server, and the right port?"
            }
            (Address::Socket(_), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                "no server listens there: -S names another socket, --protocol tcp takes TCP"
            }
            (Address::Tcp { .. }, ErrorKind::ConnectionRefused) => {
                "no server listens there: -h and -P name another, -S a socket"
            }
            (_, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                "the server hung up: its error log says why, if it is a MySQL server"
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
        ) => "accounts with mysql_native_password or caching_sha2_password can log in",
        _ => "",
    };
    hint.to_owned()
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
        Err(Driver::Driver(DriverError::NoClientSslFlagFromServer)) => Ok(with(SslMode::Disabled)),
        Err(failure) => Err(explain(&failure, target)),
    }
}

/// How long the second look may take: a server greets at once.
const WITHIN: Duration = Duration::from_secs(2);
const PROTOCOL_41: u16 = 512;

/// Makes the error for a server that speaks the protocol of before 4.1; None for others.
async fn too_old(target: &ConnectOptions, failure: &Driver) -> Option<Error> {
    use ErrorKind::{ConnectionRefused, NotFound, PermissionDenied, TimedOut};
    let odd = match failure {
        // What old servers say to a log-in of today. A host that fails to log in may be locked out.
        Driver::Server(e) => matches!(e.code, 1043 | 1251),
        Driver::Io(IoError::Io(e)) => {
            !matches!(e.kind(), ConnectionRefused | NotFound | PermissionDenied | TimedOut)
        }
        failure => !matches!(failure, Driver::Driver(DriverError::UnknownAuthPlugin { .. })),
    };
    if !odd {
        return None;
    }
    let greeting = within(WITHIN, async {
        match &target.address {
            Address::Tcp { host, port } => {
                read(TcpStream::connect((host.as_str(), *port)).await?).await
            }
            Address::Socket(path) => read(UnixStream::connect(path).await?).await,
        }
    });
    let version = line(&old_version(&greeting.await?.ok()?)?);
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

/// The chunks of a LOAD DATA LOCAL; each becomes one packet. An `Err` would end the stream
/// as if it were whole, and the server would keep the rows so far: drop the session instead.
pub(crate) type Infile = BoxStream<'static, std::io::Result<Bytes>>;

/// Bytes of one answer off the hot path that are kept: InnoDB's monitor has a mebibyte.
const ANSWER_MAX: usize = 64 << 20;

/// An open connection and its prepared statements. Handles of one session mean nothing to
/// another: the driver would run whatever has that id there.
pub struct Session {
    conn: Conn,
    statements: Vec<mysql_async::Statement>,
    /// An answer is due: a future that was dropped, or a broken connection, leaves it set.
    waiting: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    pub rows: u64,
    pub affected: u64,
    pub first: Option<Row>,
}

impl Answer {
    fn take(&mut self, row: Row) {
        self.rows += 1;
        if self.first.is_none() {
            self.first = Some(row);
        }
    }

    /// Reads the first column of the first row.
    pub fn content(&self) -> Option<&[u8]> {
        match self.first.as_ref()?.as_ref(0)? {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Reads the first column of the first row as a whole number, text or not.
    pub fn number(&self) -> Option<u64> {
        match self.first.as_ref()?.as_ref(0)? {
            Value::UInt(n) => Some(*n),
            Value::Int(n) => u64::try_from(*n).ok(),
            Value::Bytes(bytes) => std::str::from_utf8(bytes.trim_ascii_end()).ok()?.parse().ok(),
            _ => None,
        }
    }
}

impl Session {
    /// Connects and authenticates within the target's limit, then sets the character set if one
    /// is given.
    pub async fn open(link: &ServerLink, charset: Option<&str>) -> Result<Session> {
        let conn = connect(&link.target, &link.opts).await?;
        Session::begun(conn, &link.target, charset).await.map_err(|failure| {
            Error::server(format!("--charset {}: {failure}", charset.unwrap_or_default()))
                .passing(failure.may_pass())
        })
    }

    /// Does the same for a server that has let such a session in before: why not now, without hints.
    pub async fn open_again(link: &ServerLink, charset: Option<&str>) -> Asked<Session> {
        let conn = try_connect(&link.target, &link.opts).await?;
        Session::begun(conn, &link.target, charset).await
    }

    async fn begun(conn: Conn, target: &ConnectOptions, charset: Option<&str>) -> Asked<Session> {
        let mut session = Session { conn, statements: Vec::new(), waiting: false };
        let Some(charset) = charset else { return Ok(session) };
        let limit = target.connect_timeout;
        let set = within(limit, async move {
            session.execute(&format!("SET NAMES {}", quoted_text(charset))).await?;
            Ok(session)
        });
        set.await.unwrap_or_else(|| {
            let limit = units::duration(limit);
            Err(Failure::Lost(format!("SET NAMES was not answered within {limit}")))
        })
    }

    /// Tells whether it can be asked something.
    pub(crate) fn is_usable(&self) -> bool {
        !self.waiting
    }

    /// Drops a session whose answer nobody waits for any more. Within a runtime the driver would wait
    /// for the rest of an answer, maybe for ever, to say goodbye.
    pub(crate) fn abandon(self) {
        // Where there is no thread to be had it is dropped here.
        let _ = std::thread::Builder::new().spawn(move || drop(self));
    }

    pub fn id(&self) -> u32 {
        self.conn.id()
    }

    pub async fn prepare(&mut self, sql: &str) -> Asked<usize> {
        begin(&mut self.waiting)?;
        let prepared = self.conn.prep(sql).await;
        let statement = self.end(prepared)?;
        self.statements.push(statement);
        Ok(self.statements.len() - 1)
    }

    pub async fn run_prepared(&mut self, handle: usize, params: Vec<Value>) -> Asked<Answer> {
        let Some(statement) = self.statements.get(handle) else {
            return Err(Failure::Lost(format!("no statement {handle} in this session")));
        };
        begin(&mut self.waiting)?;
        let mut answer = Answer::default();
        let params = if params.is_empty() { Params::Empty } else { Params::Positional(params) };
        let outcome = async {
            let result = self.conn.exec_iter(statement, params).await?;
            result.for_each_and_drop(|row| answer.take(row)).await
        };
        let outcome = outcome.await;
        self.end(outcome)?;
        answer.affected = self.conn.affected_rows();
        Ok(answer)
    }

    /// Runs SQL that may be in any character set: one round trip.
    pub async fn run_text(&mut self, sql: impl AsRef<[u8]>) -> Asked<Answer> {
        let mut answer = Answer::default();
        self.read(sql, |row| answer.take(row)).await?;
        answer.affected = self.conn.affected_rows();
        Ok(answer)
    }

    /// Runs SQL off the hot path and returns the rows affected.
    pub async fn execute(&mut self, sql: &str) -> Asked<u64> {
        Ok(self.run_text(sql).await?.affected)
    }

    /// Runs SQL off the hot path and returns all rows as text, NULL as None.
    pub async fn query(&mut self, sql: &str) -> Asked<Vec<Vec<Option<String>>>> {
        let (mut rows, mut bytes) = (Vec::new(), 0_usize);
        let take = |row: Row| {
            bytes = bytes.saturating_add(size(&row));
            if bytes <= ANSWER_MAX {
                rows.push(texts(&row));
            }
        };
        self.read(sql, take).await?;
        if bytes > ANSWER_MAX {
            self.waiting = true;
            return Err(Failure::Lost(format!("an answer of more than {} MiB", ANSWER_MAX >> 20)));
        }
        Ok(rows)
    }

    /// Runs SQL and hands its rows on as they come: answers larger than memory.
    pub(crate) async fn read(&mut self, sql: impl AsRef<[u8]>, take: impl FnMut(Row)) -> Asked<()> {
        begin(&mut self.waiting)?;
        let outcome =
            async { self.conn.query_iter(sql.as_ref()).await?.for_each_and_drop(take).await };
        let outcome = outcome.await;
        self.end(outcome)
    }

    fn end<T>(&mut self, outcome: mysql_async::Result<T>) -> Asked<T> {
        let outcome = outcome.map_err(Failure::from);
        self.waiting = matches!(outcome, Err(Failure::Lost(_)));
        outcome
    }

    pub(crate) fn warnings(&self) -> u16 {
        self.conn.get_warnings()
    }

    /// LOAD DATA LOCAL: sends only this stream, whatever file the server asks for. The handler
    /// stays armed when the server refuses, so the session is consumed then.
    pub async fn load_data(mut self, sql: &str, infile: Infile) -> Asked<(Session, u64)> {
        // The driver wants a handler that is Sync, which a boxed stream is not.
        let infile = std::sync::Mutex::new(infile);
        self.conn.set_infile_handler(async move {
            Ok(infile.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
        });
        let affected = self.execute(sql).await?;
        Ok((self, affected))
    }

    /// Says goodbye, for at most `limit`.
    pub async fn close(self, limit: Duration) {
        let _ = within(limit, self.conn.disconnect()).await;
    }
}

/// Refuses a session whose last answer was never read, or that broke: the driver itself would
/// return the answer of before.
fn begin(waiting: &mut bool) -> Asked<()> {
    if std::mem::replace(waiting, true) {
        return Err(Failure::Lost("the answer before was given up on".to_owned()));
    }
    Ok(())
}

fn size(row: &Row) -> usize {
    let bytes = |i| match row.as_ref(i) {
        Some(Value::Bytes(bytes)) => bytes.len(),
        _ => 0,
    };
    (0..row.len()).map(|i| bytes(i) + size_of::<Option<String>>()).sum::<usize>() + size_of::<Row>()
}

fn texts(row: &Row) -> Vec<Option<String>> {
    (0..row.len())
        .map(|i| match row.as_ref(i) {
            None | Some(Value::NULL) => None,
            Some(Value::Bytes(bytes)) => Some(plain(&String::from_utf8_lossy(bytes))),
            Some(other) => Some(other.as_sql(true)),
        })
        .collect()
}

/// Makes a string literal of a name or an option. Not of data: under NO_BACKSLASH_ESCAPES a backslash
/// would be two.
pub(crate) fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
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
            super::explain(&Driver::Server(e), target)
        };
        assert!(explain(1049, &at).hints()[0].contains("CREATE DATABASE sbtest"));
        assert!(explain(1045, &at).hints()[0].contains("right account"));
        let without = ConnectOptions { password: Secret::default(), ..at.clone() };
        assert!(explain(1045, &without).hints()[0].contains("no password"));
        assert!(!explain(9999, &at).to_string().contains('\u{1b}'));
        let tls = super::explain(&DriverError::NoClientSslFlagFromServer.into(), &at);
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
            let error = super::explain(&wrapped.into(), &at);
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

        let (address, server) = fake_server(vec![greeting(false), vec![1, 4], vec![]]);
        let link = ServerLink::to(ConnectOptions { address, ..target }, &Stop::default()).unwrap();
        let lost = run(Session::open_again(&link, None)).err();
        let said = "the log-in's answer is no MySQL protocol";
        assert_eq!(lost, Some(Failure::Lost(said.to_owned())));
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
