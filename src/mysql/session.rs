//! One connection of the driver, with time limits whatever the server answers. All but measured
//! clients use it; those have a [`super::wire::LeanSession`].
//!
//! A dropped query future leaves its answer in the connection, and the next query would return it (see
//! `docs/dev/driver.md`). So drop the whole `Session` then; one that is used all the same refuses.

use std::io::ErrorKind;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream::BoxStream;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error as Driver, IoError, Row, Value};

pub use super::errors::{Asked, Failure, LOST, Loss};
use super::errors::{class, optional};
use super::options::{ConnectOptions, Ssl, SslMode};
use super::relay::{self, Relay};
pub use super::target::ServerLink;
use super::target::{
    begin_request, charset_error, explain, is_absence, is_late, set_names, within_connect,
};
use super::wire::unexpected;
use crate::error::{Result, plain};
use crate::stop::{COURTESY, SILENCE, Stop, or_stop, within};
use crate::terms::units;

/// Decides PREFERRED once, by opening one connection: the target becomes REQUIRED or DISABLED, so that all
/// connections of a run are alike. Only a server without TLS makes it fall back: a failed handshake is an error.
pub async fn reach(target: &ConnectOptions, stop: &Stop) -> Result<ServerLink> {
    let with = |mode| {
        let ssl = Ssl { mode, ..target.ssl.clone() };
        ServerLink::to(ConnectOptions { ssl, ..target.clone() }, stop)
    };
    if target.ssl.mode != SslMode::Preferred {
        return with(target.ssl.mode);
    }
    let required = with(SslMode::Required)?;
    let settle = async {
        match connect(&required).await {
            Ok(session) => {
                session.close(COURTESY).await;
                Ok(required)
            }
            Err(Driver::Driver(DriverError::NoClientSslFlagFromServer)) => with(SslMode::Disabled),
            Err(failure) => Err(explain(&failure, target)),
        }
    };
    or_stop(stop, settle).await
}

/// Opens a connection. If the driver fails at what may be the log-in, we log in for it. If it could
/// not have done that, we do so from then on; else its failure counts, unless ours says more.
async fn connect(link: &ServerLink) -> mysql_async::Result<Session> {
    let relayed = link.relayed.load(Ordering::Relaxed);
    let failure = match try_connect(link, relayed).await {
        Err(failure) if !relayed && is_odd(&failure) => failure,
        opened => return opened,
    };
    match try_connect(link, true).await {
        Ok(session) if session.relay.as_ref().is_some_and(|relay| relay.is_needed) => {
            link.relayed.store(true, Ordering::Relaxed);
            Ok(session)
        }
        Ok(session) => {
            session.close(COURTESY).await;
            Err(failure)
        }
        Err(Driver::Io(_)) => Err(failure),
        Err(ours) => Err(ours),
    }
}

/// The log-in's method may be the cause; MySQL asks for one for unknown accounts, too.
fn is_odd(failure: &Driver) -> bool {
    use ErrorKind::{ConnectionRefused, NotFound, PermissionDenied, TimedOut};
    match failure {
        // Old servers answer a modern log-in so. Others are not tried twice: failures may lock the host out.
        Driver::Server(e) => matches!(e.code, 1043 | 1251),
        Driver::Io(IoError::Io(e)) => {
            !matches!(e.kind(), ConnectionRefused | NotFound | PermissionDenied | TimedOut)
        }
        _ => true,
    }
}

/// Returns whether nobody listens there, or hangs up at once. A refusal or a silence is somebody.
pub(crate) async fn is_nobody_listening(link: &ServerLink) -> bool {
    match try_connect(link, false).await {
        Err(Driver::Io(IoError::Io(e))) => is_absence(&e) && !is_late(&e),
        _ => false,
    }
}

/// Catches panics: the driver has them on log-in methods left out of its build and on malformed packets.
async fn try_connect(link: &ServerLink, relayed: bool) -> mysql_async::Result<Session> {
    // Boxed: the future of a log-in is large.
    let opening = Box::pin(async {
        let (conn, relay) = if relayed {
            let (conn, relay) = relay::connect(link).await?;
            (conn, Some(relay))
        } else {
            (Conn::new(link.opts.clone()).await?, None)
        };
        Ok(Session { conn, relay, waiting: false })
    });
    let opening = AssertUnwindSafe(opening).catch_unwind();
    let opening = async { opening.await.unwrap_or_else(|_| Err(unexpected())) };
    within_connect(&link.target, opening).await
}

/// The chunks of a LOAD DATA LOCAL, one packet each. After an `Err` the server would keep the rows so
/// far: drop the session instead.
pub(crate) type Infile = BoxStream<'static, std::io::Result<Bytes>>;

/// Largest answer kept off the hot path, bytes: InnoDB's monitor has a mebibyte.
const ANSWER_MAX: usize = 64 << 20;

/// A setting of own sessions; `only` begins a comment that some servers execute.
struct Setting {
    name: &'static str,
    value: &'static str,
    only: Option<&'static str>,
}

const NO_LIMIT: &str = "18446744073709551615";

/// Settings of own sessions, whatever the server's defaults. Measured sessions set none: the server's are conditions.
const OWN: [Setting; 7] = [
    Setting { name: "sql_select_limit", value: NO_LIMIT, only: None },
    Setting { name: "max_join_size", value: NO_LIMIT, only: None },
    Setting { name: "completion_type", value: "0", only: None },
    Setting { name: "sql_safe_updates", value: "0", only: None },
    // Without NO_ENGINE_SUBSTITUTION an old server without InnoDB would quietly make MyISAM tables.
    Setting { name: "sql_mode", value: "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'", only: None },
    Setting { name: "max_statement_time", value: "0", only: Some("M!100101") },
    Setting { name: "max_execution_time", value: "0", only: Some("!50708") },
];

fn own_settings() -> String {
    let [first, rest @ ..] = &OWN;
    let mut sql = format!("SET SESSION {} = {}", first.name, first.value);
    for Setting { name, value, only } in rest {
        sql += &match only {
            None => format!(", {name} = {value}"),
            Some(marker) => format!(" /*{marker} , {name} = {value} */"),
        };
    }
    sql
}

pub struct Session {
    conn: Conn,
    relay: Option<Relay>,
    /// An answer is due; stays set after a dropped future or a broken connection.
    waiting: bool,
}

impl Session {
    /// Opens within the target's limit; then sets what own sessions need, and the character set if one is given.
    pub async fn open(link: &ServerLink, charset: Option<&str>) -> Result<Session> {
        let opened = connect(link).await.map_err(|failure| explain(&failure, &link.target))?;
        let begun = opened.set_up_session(link, charset).await;
        begun.map_err(|failure| charset_error(charset, &failure))
    }

    /// Opens a session with a server that accepted one before; failures have no hints.
    pub async fn open_again(link: &ServerLink, charset: Option<&str>) -> Asked<Session> {
        let relayed = link.relayed.load(Ordering::Relaxed);
        try_connect(link, relayed).await?.set_up_session(link, charset).await
    }

    async fn set_up_session(mut self, link: &ServerLink, charset: Option<&str>) -> Asked<Session> {
        let late = || format!("the server has not answered within {}", units::duration(SILENCE));
        let set_up = within(SILENCE, self.set_up()).await;
        set_up.unwrap_or_else(|| Err(Failure::lost(late())))?;
        set_names(link, charset, async |sql| self.execute(sql).await).await?;
        Ok(self)
    }

    /// One by one where the server refuses them together; unknown settings limit nothing.
    async fn set_up(&mut self) -> Asked<()> {
        match self.execute(own_settings()).await {
            // Any other error ends the session, as where `init_connect` fails.
            Err(Failure::Server { code, .. }) if class(code).keeps_session() => {}
            set => return set.map(|_| ()),
        }
        for Setting { name, value, .. } in &OWN {
            optional(self.execute(format!("SET SESSION {name} = {value}")).await)?;
        }
        Ok(())
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.waiting
    }

    pub fn id(&self) -> u32 {
        self.conn.id()
    }

    pub async fn execute(&mut self, sql: impl AsRef<[u8]>) -> Asked<u64> {
        self.read(sql, |_| {}).await?;
        Ok(self.conn.affected_rows())
    }

    /// Runs SQL and returns all rows as text, NULL as None.
    pub async fn query(&mut self, sql: &str) -> Asked<Vec<Vec<Option<String>>>> {
        let (mut rows, mut bytes) = (Vec::new(), 0_usize);
        let take = |row: Row| {
            let row = texts(&row);
            let held = row.iter().flatten().map(String::len).sum::<usize>();
            bytes += held + size_of_val(&row[..]) + size_of_val(&row);
            if bytes <= ANSWER_MAX {
                rows.push(row);
            }
        };
        self.read(sql, take).await?;
        if bytes > ANSWER_MAX {
            self.waiting = true;
            return Err(Failure::lost(format!("an answer of more than {} MiB", ANSWER_MAX >> 20)));
        }
        Ok(rows)
    }

    /// Runs SQL and passes its rows on as they come, for answers larger than memory.
    pub(crate) async fn read(&mut self, sql: impl AsRef<[u8]>, take: impl FnMut(Row)) -> Asked<()> {
        begin_request(&mut self.waiting)?;
        let answer =
            async { self.conn.query_iter(sql.as_ref()).await?.for_each_and_drop(take).await };
        // The driver makes room for the columns that an answer announces, and panics at 2^64.
        let outcome = match AssertUnwindSafe(answer).catch_unwind().await {
            Ok(read) => read.map_err(Failure::from),
            Err(_) => Err(Failure::lost("the answer is no MySQL protocol")),
        };
        self.waiting = matches!(outcome, Err(Failure::Lost(_)));
        outcome
    }

    pub(crate) fn warnings(&self) -> u16 {
        self.conn.get_warnings()
    }

    /// Sends only this stream for LOAD DATA LOCAL, whatever file the server asks for. Consumes a
    /// refused session: its handler stays armed.
    pub async fn load_data(mut self, sql: &str, infile: Infile) -> Asked<(Session, u64)> {
        // The driver wants a handler that is Sync, which a boxed stream is not.
        let infile = std::sync::Mutex::new(infile);
        self.conn.set_infile_handler(async move {
            Ok(infile.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
        });
        let affected = self.execute(sql).await?;
        Ok((self, affected))
    }

    /// Ends the session with a goodbye, for at most `limit`.
    pub async fn close(self, limit: Duration) {
        let goodbye = async {
            let _ = self.conn.disconnect().await;
            if let Some(relay) = self.relay {
                relay.end().await;
            }
        };
        let _ = within(limit, goodbye).await;
    }
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

#[cfg(test)]
mod tests {
    use super::fake::{fake_server, greeting, server_of};
    use super::*;
    use crate::error::Error;
    use crate::mysql::options::{Address, Secret};
    use std::io;

    fn target(address: Address) -> ConnectOptions {
        let (password, connect_timeout) = (Secret::new("marker-pw"), Duration::from_millis(100));
        ConnectOptions { address, password, connect_timeout, ..ConnectOptions::canned(0) }
    }

    /// With time enough for a busy machine.
    fn patient(address: Address) -> ConnectOptions {
        ConnectOptions { connect_timeout: Duration::from_mins(1), ..target(address) }
    }

    /// With its runtime go the connection's ends, which a server waits for.
    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    fn failure(target: &ConnectOptions) -> Error {
        let link = ServerLink::to(target.clone(), &Stop::default()).unwrap();
        run(async { Session::open(&link, None).await.map(|_| ()).unwrap_err() })
    }

    #[test]
    fn a_port_that_stays_silent_is_given_up() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let error = failure(&target(Address::Tcp { host: "127.0.0.1".into(), port }));
        assert_eq!(error.kind(), crate::error::Kind::Server);
        assert!(error.to_string().contains("100ms"), "{error}");
    }

    #[test]
    fn a_name_that_is_not_resolved_has_a_hint_and_an_address_has_none() {
        let failed = || Driver::Io(IoError::Io(io::Error::other("failed to look it up")));
        let has_hint = |host: &str| {
            let target = target(Address::Tcp { host: host.into(), port: 1 });
            !explain(&failed(), &target).hints().is_empty()
        };
        assert!(has_hint("db7.example"));
        assert!(!has_hint("::1"));
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
        assert!(explain(1049, &at).hints()[0].contains("CREATE DATABASE `sbtest`"));
        assert!(explain(1045, &at).hints()[0].contains("right account"));
        let by_tcp = target(Address::Tcp { host: "db1".into(), port: 1 });
        let required = Ssl { mode: SslMode::Required, ..Ssl::default() };
        let encrypted = ConnectOptions { ssl: required, ..by_tcp.clone() };
        assert!(explain(1045, &by_tcp).hints()[1].contains("REQUIRED"));
        assert_eq!([&at, &encrypted].map(|it| explain(1045, it).hints().len()), [1, 1]);
        let without = ConnectOptions { password: Secret::default(), ..at.clone() };
        assert!(explain(1045, &without).hints()[0].contains("no password"));
        assert!(!explain(9999, &at).to_string().contains('\u{1b}'));
        let tls = super::explain(&DriverError::NoClientSslFlagFromServer.into(), &at);
        assert!(tls.hints()[0].contains("DISABLED"));
    }

    /// Decides PREFERRED at a server that sends these packets.
    fn settled(packets: Vec<Vec<u8>>) -> Result<SslMode> {
        let (address, server) = fake_server(packets);
        let ssl = Ssl { mode: SslMode::Preferred, ..Ssl::default() };
        let target = ConnectOptions { ssl, ..patient(address) };
        let settled = run(reach(&target, &Stop::default()));
        server.join().unwrap();
        settled.map(|link| link.target.ssl.mode)
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
            ("invalid peer certificate: certificate expired: verification time …", "clock"),
            ("invalid peer certificate: certificate not valid yet: …", "clock"),
            ("received fatal alert: CertificateRequired", "--ssl-cert"),
            ("received fatal alert: UnknownCA", "--ssl-cert"),
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
        for (method, name) in [
            (&b"auth_gssapi_client\0"[..], "auth_gssapi_client"),
            (b"mysql_clear_password\0", "plain text"),
            (b"dialog\0\x04Password:", "plain text"),
            (b"dialog\0\x02Token:", "something else"),
        ] {
            let switch = [b"\xfe", method].concat();
            // The driver fails, and we know why: from what we declined comes that the server hangs up.
            let (address, server) = server_of(vec![vec![greeting(false), switch]; 2]);
            let error = failure(&patient(address));
            assert!(error.to_string().contains(name), "{error}");
            assert!(!error.hints().is_empty() && !error.may_pass(), "{error:?}");
            server.join().unwrap();
        }
    }

    /// The session that a server lets in after these packets, of each connection.
    fn opened(connections: Vec<Vec<Vec<u8>>>, password: &str) -> Result<Session> {
        let (address, server) = server_of(connections);
        let target = ConnectOptions { password: password.into(), ..patient(address) };
        let link = ServerLink::to(target, &Stop::default()).unwrap();
        let opened = run(Session::open(&link, None));
        server.join().unwrap();
        opened
    }

    #[test]
    fn an_account_of_several_methods_gets_in_when_a_later_one_lets_it() {
        let method = |name: &[u8], nonce: usize| [b"\xfe", name, &[0], &vec![7; nonce]].concat();
        let ed25519 = || method(b"client_ed25519", 32);
        let native = || method(b"mysql_native_password", 21);
        let (unknown, dialog) =
            (|| method(b"auth_gssapi_client", 3), || b"\xfedialog\0\x05?".to_vec());
        let ok = || b"\0\0\0\x02\0\0\0".to_vec();
        let denied = || b"\xff\x15\x04#28000Access denied".to_vec();
        for methods in [
            vec![ed25519()],
            vec![ed25519(), native()],
            vec![dialog(), native()],
            vec![unknown(), ed25519(), native()],
            vec![native(), method(b"mysql_old_password", 9), unknown(), native()],
        ] {
            let asked = [vec![greeting(false)], methods].concat();
            // The driver breaks off, and the server does not mind.
            let then =
                |packets: Vec<Vec<u8>>| vec![asked.clone(), [asked.clone(), packets].concat()];
            // The second is the answer to what own sessions set.
            assert!(opened(then(vec![ok(), ok()]), "marker-pw").is_ok(), "{asked:?}");
            let error = opened(then(vec![denied()]), "marker-pw").err().expect("denied");
            assert!(error.to_string().contains("denied (1045)"), "{error}");
        }
    }

    #[test]
    fn session_that_the_server_ends_at_once_has_the_server_s_error() {
        let ok = b"\0\0\0\x02\0\0\0".to_vec();
        let ended = b"\xff\xa0\x04#08S01Aborted connection (init_connect command failed)".to_vec();
        let error = opened(vec![vec![greeting(false), ok, ended]], "marker-pw").err();
        let error = error.expect("ended");
        assert!(error.to_string().contains("error 1184") && error.may_pass(), "{error}");
    }

    #[test]
    fn an_account_that_is_asked_for_sha256_is_refused_as_the_server_says() {
        let switch = [&b"\xfesha256_password\0"[..], &[7; 21]].concat();
        let asked = vec![greeting(false), switch];
        let then = |packets: Vec<Vec<u8>>| vec![asked.clone(), [asked.clone(), packets].concat()];
        let denied = opened(then(vec![b"\xff\x15\x04#28000Access denied".to_vec()]), "marker-pw");
        assert!(denied.err().expect("denied").to_string().contains("denied (1045)"));
        // The second is the answer to what own sessions set.
        let ok = b"\0\0\0\x02\0\0\0".to_vec();
        assert!(opened(then(vec![ok.clone(), ok]), "").is_ok(), "we log in for the driver");
    }

    #[test]
    fn a_server_before_4_1_is_not_supported_and_named() {
        // MySQL 4.0.30 begins so: no capability of 4.1.
        let mut greeting = b"\x0a4.0.30-standard-log\0\x07\0\0\0abcdefgh\0".to_vec();
        // LONG_FLAG, CONNECT_WITH_DB, COMPRESS, TRANSACTIONS; latin1; autocommit.
        greeting.extend_from_slice(&[0x2c, 0x20, 0x08, 0x02, 0]);
        greeting.extend_from_slice(&[0; 13]);
        // It answers so to a log-in that it does not understand, without an SQL state.
        let refusal = b"\xff\x13\x04Bad handshake".to_vec();
        let (address, server) = server_of(vec![vec![greeting.clone(), refusal], vec![greeting]]);
        let error = failure(&patient(address));
        assert_eq!(error.kind(), crate::error::Kind::Server);
        let shown = error.render();
        assert!(shown.contains("4.0.30-standard-log") && shown.contains("hint: "), "{shown}");
        server.join().unwrap();
    }

    #[test]
    fn answer_that_announces_too_many_columns_is_an_error_of_its_connection() {
        let ok = || b"\0\0\0\x02\0\0\0".to_vec();
        let columns = [&b"\xfe"[..], &[0xff; 8]].concat();
        // The second OK answers what own sessions set.
        let (address, server) = fake_server(vec![greeting(false), ok(), ok(), columns]);
        let link = ServerLink::to(patient(address), &Stop::default()).unwrap();
        run(async {
            let mut session = Session::open(&link, None).await.unwrap();
            let lost = session.query("SELECT 1").await.unwrap_err();
            assert_eq!(lost, Failure::lost("the answer is no MySQL protocol"));
            assert!(!session.is_usable());
        });
        server.join().unwrap();
    }

    /// The driver slices the key packet without a look (0.37.1).
    #[test]
    fn a_driver_that_panics_is_an_error_of_this_connection() {
        let ask_for_the_key = vec![1, 4];
        let (address, server) = fake_server(vec![greeting(false), ask_for_the_key, vec![]]);
        let error = failure(&patient(address));
        assert_eq!(error.kind(), crate::error::Kind::Server, "{error}");
        server.join().unwrap();

        let (address, server) = fake_server(vec![greeting(false), vec![1, 4], vec![]]);
        let link = ServerLink::to(patient(address), &Stop::default()).unwrap();
        let lost = run(Session::open_again(&link, None)).err();
        let said = "the log-in's answer is no MySQL protocol";
        assert_eq!(lost, Some(Failure::lost(said)));
        server.join().unwrap();
    }
}

/// A server of one connection, for what no real one does.
#[cfg(test)]
pub(crate) mod fake {
    use crate::mysql::options::Address;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread::{self, JoinHandle};

    /// Makes the greeting of a MySQL 8.0, with or without TLS on offer.
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
        // After the OK of the log-in each packet answers a command, which begins to count anew.
        let mut is_in = false;
        for (i, packet) in packets.into_iter().enumerate() {
            if i > 0 {
                let _ = stream.read(&mut [0; 4096]);
            }
            let len = u32::try_from(packet.len()).unwrap().to_le_bytes();
            let number = if is_in { 1 } else { u8::try_from(2 * i).unwrap() };
            let head = [len[0], len[1], len[2], number];
            is_in |= packet.first() == Some(&0);
            // A client may hang up before it has heard all.
            if stream.write_all(&[&head, &packet[..]].concat()).is_err() {
                return;
            }
        }
        // Swallows the rest: a reset would overtake the last packet.
        let _ = stream.read(&mut [0; 4096]);
    }
}
