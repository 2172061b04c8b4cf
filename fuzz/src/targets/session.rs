//! A whole session against a server whose every byte is the fuzzer's.
//!
//! ```text
//! input   = flags calls record…
//! flags   = 1: TLS is asked for · 2: a password · 4: a character set is set at the start
//!           8: the session of a measured client
//! calls   = four calls of the client, two bits each: query, update, update, LOAD DATA LOCAL; of a
//!           measured client: query, prepared, update, update
//! record  = kind (mod 5) length (two bytes, little endian, mod 2048) payload
//! kind    = 0: a packet, once the client has said something · 1: a packet at once
//!           2: bytes as they are · 3: a packet of a wrong number · 4: a packet, byte by byte
//! ```
//!
//! Then the server hangs up. No timer decides anything: the server waits for the client for as
//! many turns of the runtime as the client needs to say what it has to say.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use loadgen::error::plain;
use loadgen::mysql::options::{Address, ConnectOptions, Secret, Ssl, SslMode};
use loadgen::mysql::session::{Failure, ServerLink, Session};
use loadgen::mysql::wire::{Inbox, LeanSession, Params, Value, Want};
use loadgen::stop::Stop;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::{LocalSet, yield_now};

use super::harmless;

/// States of the protocol, as far as client and server came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum State {
    /// The client answered the greeting.
    Greeted,
    /// It asked for TLS.
    TlsRequest,
    /// It answered a demand for another way to log in.
    AuthSwitch,
    /// It answered a further word of that way.
    AuthMore,
    /// The server refused the log-in.
    Refused,
    LoggedIn,
    /// A statement as text was asked.
    Query,
    TextRows,
    NoRows,
    /// OK with rows affected.
    Affected,
    /// An error of the server's, after which the session goes on.
    ServerError,
    /// A statement was to be prepared.
    Prepare,
    Prepared,
    /// A prepared statement was to be run.
    Execute,
    BinaryRows,
    BinaryOk,
    /// Rows ended by EOF.
    Eof,
    /// Rows ended by an OK that is marked as one.
    OkAsEof,
    /// The server asked for a file, and got the stream that was for it.
    Infile,
    /// The server asked for a file that nobody had promised.
    InfileRefused,
    /// The session ended on what is no protocol.
    Lost,
    /// The driver panicked, and that was caught.
    DriverPanic,
}

impl State {
    pub(crate) const ALL: [State; 22] = [
        State::Greeted,
        State::TlsRequest,
        State::AuthSwitch,
        State::AuthMore,
        State::Refused,
        State::LoggedIn,
        State::Query,
        State::TextRows,
        State::NoRows,
        State::Affected,
        State::ServerError,
        State::Prepare,
        State::Prepared,
        State::Execute,
        State::BinaryRows,
        State::BinaryOk,
        State::Eof,
        State::OkAsEof,
        State::Infile,
        State::InfileRefused,
        State::Lost,
        State::DriverPanic,
    ];
}

/// The states that were reached.
#[derive(Debug, Default)]
pub(crate) struct Seen(Cell<u32>);

impl Seen {
    fn reach(&self, state: State) {
        self.0.set(self.0.get() | 1 << state as u32);
    }

    pub(crate) fn has(&self, state: State) -> bool {
        self.0.get() & (1 << state as u32) != 0
    }
}

/// How many turns of the runtime the server waits for the client.
const TURNS: usize = 12;
/// What the client streams, and nothing else ever leaves it after a request for a file.
const STREAM: &[u8] = b"1\t2\tstream-of-loadgen\n";
const PASSWORD: &str = "marker-pw";

/// Runs the input's session; what was reached.
pub(crate) fn session(bytes: &[u8]) -> Rc<Seen> {
    let seen = Rc::new(Seen::default());
    let [flags, calls, records @ ..] = bytes else { return seen };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let script = Rc::new(Script::read(records));
    let local = LocalSet::new();
    // The server may make the very same word up.
    let told = bytes.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes());
    let (flags, calls, counted) = (*flags, *calls, Rc::clone(&seen));
    local.block_on(&runtime.expect("a runtime"), async move {
        let tls = flags & 1 != 0;
        let address = listen(tls, script, Rc::clone(&counted)).await;
        let target = ConnectOptions {
            address,
            others: Vec::new(),
            user: "root".to_owned(),
            password: Secret::new(if flags & 2 != 0 { PASSWORD } else { "" }),
            database: "sbtest".to_owned(),
            ssl: Ssl {
                mode: if tls { SslMode::Required } else { SslMode::Disabled },
                ..Ssl::default()
            },
            connect_timeout: Duration::from_secs(20),
        };
        let charset = (flags & 4 != 0).then_some("latin1");
        let shown = if flags & 8 != 0 {
            measured(&target, charset, calls, &counted).await
        } else {
            let client = client(&target, charset, calls, &counted);
            AssertUnwindSafe(client).catch_unwind().await.unwrap_or_else(|_| {
                // The hook has told a panic of ours from one of the driver's.
                counted.reach(State::DriverPanic);
                Vec::new()
            })
        };
        if let Address::Socket(path) = &target.address {
            let _ = std::fs::remove_file(path);
        }
        for text in shown {
            harmless(&text);
            assert!(told || !text.contains(PASSWORD), "{text}");
        }
    });
    seen
}

/// The server, for as many connections as come.
async fn listen(tcp: bool, script: Rc<Script>, seen: Rc<Seen>) -> Address {
    static DIR: OnceLock<tempfile::TempDir> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    if tcp {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                Server::new(stream, Rc::clone(&seen)).run(&script).await;
            }
        });
        return Address::Tcp { host: "127.0.0.1".to_owned(), port };
    }
    let dir = DIR.get_or_init(|| tempfile::tempdir().expect("a directory"));
    let path = dir.path().join(NEXT.fetch_add(1, Ordering::Relaxed).to_string());
    let listener = UnixListener::bind(&path).expect("a socket");
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            Server::new(stream, Rc::clone(&seen)).run(&script).await;
        }
    });
    Address::Socket(path)
}

/// What loadgen does with a server; all texts that came of it.
async fn client(
    target: &ConnectOptions,
    charset: Option<&str>,
    calls: u8,
    seen: &Seen,
) -> Vec<String> {
    let mut shown = Vec::new();
    let link = ServerLink::to(target.clone(), &Stop::default()).expect("sound options");
    let mut session = match Session::open(&link, charset).await {
        Ok(session) => session,
        Err(error) => {
            let text = error.to_string();
            if text.contains("(1045)") {
                seen.reach(State::Refused);
            }
            if text.contains("no MySQL protocol") {
                seen.reach(State::DriverPanic);
            }
            return vec![error.render(), format!("{error:?}")];
        }
    };
    seen.reach(State::LoggedIn);
    for at in 0..4 {
        let failure = match calls >> (2 * at) & 3 {
            0 => match session.query("SELECT 1").await {
                Ok(rows) => {
                    seen.reach(if rows.is_empty() { State::NoRows } else { State::TextRows });
                    shown.extend(rows.into_iter().flatten().flatten());
                    None
                }
                Err(failure) => Some(failure),
            },
            1 | 2 => match session.execute("UPDATE t SET k = 1").await {
                Ok(0) => None,
                Ok(_) => {
                    seen.reach(State::Affected);
                    None
                }
                Err(failure) => Some(failure),
            },
            _ => {
                let infile = stream::iter([Ok(Bytes::from_static(STREAM))]).boxed();
                match session.load_data("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", infile).await {
                    Ok((same, _)) => {
                        session = same;
                        None
                    }
                    Err(failure) => {
                        told(&failure, seen, &mut shown);
                        return shown;
                    }
                }
            }
        };
        let Some(failure) = failure else { continue };
        told(&failure, seen, &mut shown);
        if matches!(failure, Failure::Lost(_)) {
            // A session that broke never answers again.
            let again = session.query("SELECT 2").await;
            assert!(matches!(again, Err(Failure::Lost(_))), "{again:?}");
            return shown;
        }
    }
    session.close(Duration::from_secs(20)).await;
    shown
}

/// The same of a measured client. It must not panic.
async fn measured(
    target: &ConnectOptions,
    charset: Option<&str>,
    calls: u8,
    seen: &Seen,
) -> Vec<String> {
    let link = ServerLink::to(target.clone(), &Stop::default()).expect("sound options");
    let mut session = match LeanSession::open(&link, &Inbox::default(), charset).await {
        Ok(session) => session,
        Err(error) => return vec![error.render(), format!("{error:?}")],
    };
    let mut shown = Vec::new();
    for at in 0..4 {
        let called = match calls >> (2 * at) & 3 {
            0 => session.run_text("SELECT 1").await.map(|_| ()),
            1 => prepared(&mut session, seen).await,
            _ => session.run_text("UPDATE t SET k = 1").await.map(|_| ()),
        };
        let _ = (session.number(), session.first());
        let Err(failure) = called else { continue };
        told(&failure, seen, &mut shown);
        if !session.is_usable() {
            let again = session.run_text("SELECT 2").await;
            assert!(matches!(again, Err(Failure::Lost(_))), "{again:?}");
            return shown;
        }
    }
    session.close(Duration::from_secs(20)).await;
    shown
}

async fn prepared(session: &mut LeanSession, seen: &Seen) -> Result<(), Failure> {
    let id = session.prepare("SELECT c FROM t WHERE id = ?").await?;
    seen.reach(State::Prepared);
    let mut params = Params::default();
    params.clear(1);
    params.set(0, Value::Int(1));
    let answer = session.execute(id, &params, Want::First).await?;
    seen.reach(if answer.rows > 0 { State::BinaryRows } else { State::BinaryOk });
    Ok(())
}

fn told(failure: &Failure, seen: &Seen, shown: &mut Vec<String>) {
    match failure {
        Failure::Server { .. } => seen.reach(State::ServerError),
        Failure::Lost(loss) => {
            seen.reach(State::Lost);
            if loss.why.to_ascii_lowercase().contains("infile") {
                seen.reach(State::InfileRefused);
            }
        }
    }
    shown.push(failure.to_string());
    shown.push(plain(&format!("{failure:?}")));
}

/// What one record does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Answer,
    More,
    Raw,
    WrongNumber,
    Drip,
}

/// The records, their bytes one after the other as they go out.
struct Script {
    bytes: Vec<u8>,
    /// Kind and end of each.
    records: Vec<(Kind, usize)>,
}

impl Script {
    fn read(mut records: &[u8]) -> Script {
        let mut script = Script { bytes: Vec::new(), records: Vec::new() };
        while let [kind, low, high, rest @ ..] = records {
            let length = usize::from(u16::from_le_bytes([*low, *high])) % 2048;
            let (payload, after) = rest.split_at(length.min(rest.len()));
            records = after;
            let kind = match kind % 5 {
                0 => Kind::Answer,
                1 => Kind::More,
                2 => Kind::Raw,
                3 => Kind::WrongNumber,
                _ => Kind::Drip,
            };
            if kind != Kind::Raw {
                let [low, high, ..] = (payload.len() as u32).to_le_bytes();
                script.bytes.extend([low, high, 0, 0]);
            }
            script.bytes.extend(payload);
            script.records.push((kind, script.bytes.len()));
        }
        tame(&mut script.bytes);
        script
    }
}

/// Takes the one known way to end the process out: a count of columns beyond 2^16, for which the
/// driver reserves memory at once (`docs/dev/faults.md`). A name where the count would be is a demand
/// for another log-in, and too large a number to be reserved at all.
fn tame(mut bytes: &mut [u8]) {
    while let [a, b, c, _, rest @ ..] = bytes {
        let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
        let (payload, after) = rest.split_at_mut(length.min(rest.len()));
        let name = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
        match payload {
            [0xfd, _, _, high, ..] => *high = 0,
            [0xfe, count @ ..] if count.len() >= 8 && !count[..8].iter().all(name) => {
                count[2..8].fill(0);
            }
            _ => {}
        }
        bytes = after;
    }
}

/// One connection as the server sees it.
struct Server<S> {
    stream: S,
    seen: Rc<Seen>,
    /// What the client said and was not looked at yet.
    inbox: Vec<u8>,
    /// It speaks TLS, so that its bytes are no packets.
    tls: bool,
    /// Packets of the client so far.
    packets: u64,
    /// The first byte of what was sent last, and its length.
    last: (u8, usize),
    /// The server asked for a file.
    asked: bool,
    number: u8,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Server<S> {
    fn new(stream: S, seen: Rc<Seen>) -> Self {
        let inbox = Vec::new();
        Server {
            stream,
            seen,
            inbox,
            tls: false,
            packets: 0,
            last: (0, 0),
            asked: false,
            number: 0,
        }
    }

    async fn run(mut self, script: &Script) {
        let mut at = 0;
        for (index, (kind, end)) in script.records.iter().enumerate() {
            let mut bytes = script.bytes.get(at..*end).unwrap_or_default().to_vec();
            at = *end;
            // The client speaks second.
            if index > 0 && !matches!(kind, Kind::More) && !self.hears().await {
                return;
            }
            match (kind, bytes.as_mut_slice()) {
                (Kind::Raw, _) => {}
                (kind, [_, _, _, number, payload @ ..]) => {
                    let wrong: u8 = if *kind == Kind::WrongNumber { 17 } else { 0 };
                    *number = self.number.wrapping_add(wrong);
                    self.number = self.number.wrapping_add(1);
                    self.last = (payload.first().copied().unwrap_or(0), payload.len());
                    self.asked |= self.last.0 == 0xfb;
                    self.ends_rows();
                }
                _ => {}
            }
            let parts = if *kind == Kind::Drip { 1 } else { bytes.len().max(1) };
            for part in bytes.chunks(parts) {
                if self.stream.write_all(part).await.is_err() {
                    return;
                }
                if *kind == Kind::Drip {
                    yield_now().await;
                }
            }
        }
        // What is said last is heard, too; a reset would overtake what was sent.
        let _ = self.stream.shutdown().await;
        while self.hears().await {}
    }

    fn ends_rows(&self) {
        match self.last {
            (0xfe, 5) => self.seen.reach(State::Eof),
            (0xfe, 7..=8) => self.seen.reach(State::OkAsEof),
            _ => {}
        }
    }

    /// Waits until the client has said something, or has nothing to say; whether it is still
    /// there.
    async fn hears(&mut self) -> bool {
        let mut buffer = [0; 4096];
        for _ in 0..TURNS {
            let read = self.stream.read(&mut buffer).now_or_never();
            match read {
                Some(Ok(0) | Err(_)) => return false,
                Some(Ok(length)) => {
                    self.inbox.extend_from_slice(&buffer[..length]);
                    self.look();
                    return true;
                }
                None => yield_now().await,
            }
        }
        // At the end nobody has anything to say any more.
        true
    }

    /// The client's packets.
    fn look(&mut self) {
        while !self.tls && self.inbox.len() >= 4 {
            let length = usize::from(self.inbox[0])
                | usize::from(self.inbox[1]) << 8
                | usize::from(self.inbox[2]) << 16;
            if self.inbox.len() < 4 + length {
                return;
            }
            let packet: Vec<u8> = self.inbox.drain(..4 + length).collect();
            self.number = packet[3].wrapping_add(1);
            self.packet(&packet[4..], packet[3]);
            self.packets += 1;
        }
    }

    fn packet(&mut self, payload: &[u8], number: u8) {
        let seen = Rc::clone(&self.seen);
        if self.packets == 0 {
            seen.reach(State::Greeted);
            if payload.len() == 32 {
                seen.reach(State::TlsRequest);
                self.tls = true;
            }
            return;
        }
        let asked = std::mem::take(&mut self.asked);
        if number > 0 {
            match self.last.0 {
                0xfe => seen.reach(State::AuthSwitch),
                0x01 => seen.reach(State::AuthMore),
                0xfb if asked && !payload.is_empty() => {
                    assert_eq!(payload, STREAM, "only the stream is sent");
                    seen.reach(State::Infile);
                }
                _ => {}
            }
            return;
        }
        match payload.first() {
            Some(0x03) => seen.reach(State::Query),
            Some(0x16) => seen.reach(State::Prepare),
            Some(0x17) => seen.reach(State::Execute),
            _ => {}
        }
    }
}
