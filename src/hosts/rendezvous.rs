//! Ranks that a launcher started find each other: rank 0 listens, and takes each of the others once.

use std::fmt::Display;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::mem::replace;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::gethostname;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use socket2::{Domain, SockRef, Socket, Type};

use super::check::{compare_builds, compare_versions, executable};
use super::find::{Meeting, Membership};
use super::link::spawn;
use super::proof::{Side, Token};
use super::protocol::PROTOCOL;
use super::rank::serve;
use super::words::{Words, hash};
use crate::engine;
use crate::error::{Error, Result, VALUE_MAX, clip, line};
use crate::plan::units;
use crate::progress::Progress;
use crate::stop::{Stop, unless_stopped};
use crate::summary::Program;
use crate::terms::named;

/// The time in which a connection proves its token.
const PROVING: Duration = Duration::from_secs(5);
/// The time of a rank for an answer of rank 0.
const ANSWER: Duration = Duration::from_secs(10);
/// Upper limit on connections that have not proved it.
const UNPROVED_MAX: usize = 64;
/// Connections that the kernel keeps for rank 0 until it takes them.
const BACKLOG: i32 = 128;
/// The time after which a rank says what it waits for.
const TOLD_AFTER: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);
const RETRY: Duration = Duration::from_millis(250);
const CONNECT: Duration = Duration::from_secs(2);
/// The time without the other end's acknowledgement after which a connection ends: a cut cable.
const CUT: Duration = Duration::from_secs(4);
/// Bytes of the longest line before a rank is taken.
const LINE_MAX: usize = 16 << 10;
/// Ranks that a list names.
const NAMED_MAX: usize = 8;

/// A rank that a launcher started, with all that it needs to find the others.
#[derive(Debug, Clone)]
pub(crate) struct Launched {
    pub(crate) of: Membership,
    pub(crate) meeting: Option<Meeting>,
    pub(crate) token: Token,
    /// The longest wait for the others.
    pub(crate) wait: Duration,
}

/// The first line of a rank.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Greeting {
    protocol: u32,
    program: Program,
    executable: Option<String>,
    host: String,
    of: Membership,
    /// The hash of its plans and of its program.
    plan: String,
    nonce: String,
}

/// The last line of rank 0: whether the rank is taken.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Welcome { proof: String },
    Refused { why: String, hint: String },
}

/// A rank that has proved its token.
pub(super) struct Proved {
    pub(super) rank: u32,
    pub(super) host: String,
    pub(super) stream: TcpStream,
}

/// A connection that has proved its token. Its greeting may be that of another version.
struct Shown {
    stream: TcpStream,
    line: Vec<u8>,
    greeting: Value,
    nonce: String,
}

/// A reason not to take a rank.
struct Refusal {
    why: String,
    hint: &'static str,
    /// The right one may still come.
    is_passing: bool,
}

/// The ranks that come to rank 0, until all are there.
pub(super) struct Gathering<'a> {
    of: &'a Launched,
    plan: String,
    /// None where rank 0 is alone.
    listener: Option<(TcpListener, Option<Announcement>)>,
    deadline: Instant,
    shown: (Sender<Result<Shown>>, Receiver<Result<Shown>>),
    unproved: usize,
    here: Vec<u32>,
}

/// A file with the address of rank 0; it goes with the wait, unless it is another run's by now.
struct Announcement {
    path: PathBuf,
    text: String,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Serves as a rank other than 0, until rank 0 says that all is over.
pub(crate) fn follow(
    launched: &Launched,
    words: Words,
    progress: &mut Progress,
    stop: &Stop,
) -> Result<()> {
    let greeting = launched.greet(hash(words.plans.iter()));
    let stream = launched.find_rank_zero(&greeting, progress, stop)?;
    progress.clear();
    let input = stream.try_clone().map_err(|e| Error::failed(format!("rank 0: {e}")))?;
    serve(input, stream, Some(words), stop)
}

impl Launched {
    /// Begins to take the other ranks of this plan.
    pub(super) fn gather(&self, plan: String, progress: &mut Progress) -> Result<Gathering<'_>> {
        // It takes seconds in a debug build, which no rank waits for later.
        executable();
        let listener = self.meeting.as_ref().map(|at| self.listen(at)).transpose()?;
        if let Some((listener, _)) = &listener {
            let port = listener.local_addr().map_or(0, |address| address.port());
            let Membership { size, launcher, .. } = &self.of;
            progress.note(&format!("rank 0 of {size}, by {launcher}, listens at port {port}"));
        }
        let (deadline, shown) = (Instant::now() + self.wait, channel());
        Ok(Gathering { of: self, plan, listener, deadline, shown, unproved: 0, here: vec![0] })
    }

    fn listen(&self, at: &Meeting) -> Result<(TcpListener, Option<Announcement>)> {
        let port = match at {
            Meeting::At { port, .. } => *port,
            Meeting::File(_) => 0,
        };
        let refused = |e: io::Error| {
            Error::failed(format!("rank 0 cannot listen at port {port}: {e}"))
                .hint("--rendezvous HOST:PORT with another port, for all ranks")
        };
        let bound = if self.token.is_given() {
            // A host may have no IPv6.
            bind_to_all(port).or_else(|_| TcpListener::bind(("0.0.0.0", port)))
        } else {
            TcpListener::bind(own_address(at)?)
        };
        let listener = bound.map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let Meeting::File(path) = at else { return Ok((listener, None)) };
        let port = listener.local_addr().map_err(refused)?.port();
        let host = if self.token.is_given() { own_host() } else { "127.0.0.1".to_owned() };
        let (path, text) = (path.clone(), format!("{host}:{port}\n{}\n", self.of.job));
        announce(&path, &text)?;
        Ok((listener, Some(Announcement { path, text })))
    }

    /// Makes the greeting of this rank; each connection adds its nonce.
    fn greet(&self, plan: String) -> Greeting {
        Greeting {
            protocol: PROTOCOL,
            program: engine::program(),
            executable: executable(),
            host: own_host(),
            of: self.of.clone(),
            plan,
            nonce: String::new(),
        }
    }

    /// Connects to rank 0, for as long as it may take to be there.
    fn find_rank_zero(
        &self,
        greeting: &Greeting,
        progress: &mut Progress,
        stop: &Stop,
    ) -> Result<TcpStream> {
        let at = self.meeting.as_ref().expect("rank 0 is another one");
        let (rank, began, mut is_told) = (self.of.rank, Instant::now(), false);
        loop {
            let (own, greeting) = (self.clone(), greeting.clone());
            let error = match unless_stopped(stop, move || own.try_once(&greeting)) {
                Err(error) if error.may_pass() => error,
                ended => return ended,
            };
            let waited = began.elapsed();
            if waited >= self.wait {
                let wait = units::duration(self.wait);
                return Err(error
                    .context(format!("rank {rank} has not found rank 0 at {at} within {wait}"))
                    .hint(at.advise())
                    .hint("the output of rank 0 says why it ended; --ranks-wait waits longer"));
            }
            let state = format!("rank {rank} waits for rank 0 at {at}: {error}");
            if waited >= TOLD_AFTER && !replace(&mut is_told, true) {
                progress.note(&state);
            } else {
                progress.update(|| state);
            }
            std::thread::sleep(RETRY);
        }
    }

    /// Tries all addresses of rank 0; another attempt may help against an error that may pass.
    fn try_once(&self, greeting: &Greeting) -> Result<TcpStream> {
        // The caller names what was given.
        let (host, port, found) = match self.meeting.as_ref().expect("rank 0 is another one") {
            Meeting::At { host, port } => (host.clone(), *port, String::new()),
            Meeting::File(path) => {
                let (host, port) = read_announcement(path, &self.of.job).map_err(passing)?;
                let found = format!("{}:{port}: ", line(&host));
                (host, port, found)
            }
        };
        let failed = |e: io::Error| passing(format!("{found}{e}"));
        // A name may be new, or lead somewhere else now.
        let addresses = (host.as_str(), port).to_socket_addrs().map_err(failed)?;
        let mut last = passing(format!("{} has no address", line(&host)));
        for address in addresses {
            if !self.token.is_given() && !is_loopback(address.ip()) {
                let text = format!("rank 0 is at {}, and LOADGEN_TOKEN is not set", address.ip());
                return Err(Error::failed(text).hint(TOKEN_HINT));
            }
            let connected = TcpStream::connect_timeout(&address, CONNECT).map_err(failed);
            match connected.and_then(|stream| self.introduce(stream, greeting)) {
                Err(error) if error.may_pass() => last = error,
                ended => return ended,
            }
        }
        Err(last)
    }

    /// Greets rank 0; both prove the token.
    fn introduce(&self, mut stream: TcpStream, greeting: &Greeting) -> Result<TcpStream> {
        // Linux may connect to the own end, where the port is one of its own choice.
        if stream.local_addr().map_err(passing)? == stream.peer_addr().map_err(passing)? {
            return Err(passing("rank 0 does not listen yet"));
        }
        let until = Instant::now() + ANSWER;
        let (_, nonce): (_, String) = receive(&mut stream, until)?;
        let own = send(&mut stream, &Greeting { nonce: random()?, ..greeting.clone() })?;
        send(&mut stream, &self.token.prove(Side::Rank, &own, &nonce))?;
        let (_, answer): (_, Value) = receive(&mut stream, until)?;
        let Ok(answer) = Answer::deserialize(answer) else {
            // It has proved nothing yet: another program may be at this address for a while.
            return Err(passing("what answers there is no rank 0 of this loadgen").hint(SAME));
        };
        match answer {
            Answer::Welcome { proof }
                if self.token.verify(Side::RankZero, &own, &nonce, &proof) =>
            {
                tune(&stream).map_err(passing)?;
                Ok(stream)
            }
            Answer::Welcome { .. } => {
                let text = "rank 0 does not know the LOADGEN_TOKEN of this rank";
                Err(Error::failed(text).hint(TOKEN_HINT))
            }
            Answer::Refused { why, hint } => {
                let error = Error::failed(format!("rank 0 refuses this rank: {}", line(&why)));
                Err(error.hint(line(&hint)))
            }
        }
    }
}

/// Listens at all addresses: those of IPv4, too, whatever `net.ipv6.bindv6only` is.
fn bind_to_all(port: u16) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV6, Type::STREAM, None)?;
    socket.set_only_v6(false)?;
    // As the standard library does for all listeners.
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Returns the address at which rank 0 takes ranks of its own host, without a token.
fn own_address(at: &Meeting) -> Result<SocketAddr> {
    let Meeting::At { host, port } = at else { return Ok(([127, 0, 0, 1], 0).into()) };
    let addresses = (host.as_str(), *port).to_socket_addrs();
    let own = addresses.ok().and_then(|mut all| all.find(|address| is_loopback(address.ip())));
    own.ok_or_else(|| {
        let host = line(host);
        let text = format!("LOADGEN_TOKEN is not set, and {host} is reached from other hosts");
        Error::usage(text).hint(TOKEN_HINT)
    })
}

const SAME: &str = "the same command line and the same program for all ranks";
const TOKEN_HINT: &str = "the same LOADGEN_TOKEN for all ranks (mpirun -x LOADGEN_TOKEN): openssl rand -hex 32 makes one";

/// Makes an error that another attempt may help against.
fn passing(why: impl Display) -> Error {
    Error::failed(why.to_string()).passing(true)
}

impl Gathering<'_> {
    pub(super) fn is_complete(&self) -> bool {
        self.here.len() as u32 == self.of.of.size
    }

    /// Looks for a rank that has come, for a moment.
    pub(super) fn look(&mut self, stop: &Stop, progress: &mut Progress) -> Result<Option<Proved>> {
        stop.check()?;
        if Instant::now() >= self.deadline {
            return Err(self.give_up());
        }
        progress.update(|| self.describe());
        let Some((listener, _)) = &self.listener else { return Ok(None) };
        match listener.accept() {
            Ok((stream, peer)) if self.unproved < UNPROVED_MAX => {
                self.unproved += 1;
                let (of, shown) = (self.of.token.clone(), self.shown.0.clone());
                spawn("prove-rank", move || drop(shown.send(hear(stream, peer, &of))))?;
            }
            Ok(_) => {}
            Err(e) if is_out_of(&e) => {
                return Err(Error::failed(format!("rank 0 cannot take connections: {e}")));
            }
            // Nobody came, or somebody went again.
            Err(_) => std::thread::sleep(LOOK),
        }
        let Ok(shown) = self.shown.1.try_recv() else { return Ok(None) };
        self.unproved -= 1;
        match shown {
            Ok(shown) => self.decide(shown, progress),
            Err(why) => {
                progress.warn_once(&format!("a connection is no rank of this run: {why}"));
                Ok(None)
            }
        }
    }

    /// Takes a rank that has proved its token, or refuses it.
    fn decide(&mut self, mut shown: Shown, progress: &mut Progress) -> Result<Option<Proved>> {
        let greeting = match self.check(&shown.greeting) {
            Ok(greeting) => greeting,
            Err(Refusal { why, hint, is_passing }) => {
                let text = format!("{} is refused: {why}", name_rank(&shown.greeting));
                refuse(&mut shown.stream, &why, hint);
                if is_passing {
                    progress.warn(&text);
                    return Ok(None);
                }
                // It has ended, and no other one will come.
                return Err(Error::failed(text).hint(hint));
            }
        };
        let proof = self.of.token.prove(Side::RankZero, &shown.line, &shown.nonce);
        let welcomed = send(&mut shown.stream, &Answer::Welcome { proof });
        if welcomed.is_err() || tune(&shown.stream).is_err() {
            return Ok(None);
        }
        let (rank, host) = (greeting.of.rank, greeting.host);
        self.here.push(rank);
        Ok(Some(Proved { rank, host, stream: shown.stream }))
    }

    /// Reads the greeting of a rank that may be taken.
    fn check(&self, greeting: &Value) -> Result<Greeting, Refusal> {
        let refuse = |why, hint, is_passing| Err(Refusal { why, hint, is_passing });
        let own = &self.of.of;
        let job = |of: &Membership| line(format!("{} {}", of.launcher, of.job).trim_end());
        let of = greeting.get("of").and_then(|of| Membership::deserialize(of).ok());
        if let Some(theirs) = of.filter(|theirs| job(theirs) != job(own)) {
            let why = format!("it is of another job: {}, not {}", job(&theirs), job(own));
            return refuse(why, "another --rendezvous for each job", true);
        }
        let known = Greeting::deserialize(greeting).map_err(|_| compare_versions(greeting));
        let same = known.and_then(|of| {
            let hash = of.executable.as_deref();
            compare_builds(of.protocol, &of.program, hash).map_or(Ok(of), Err)
        });
        let greeting = match same {
            Ok(greeting) => greeting,
            Err([theirs, own]) => {
                let why = format!("it has loadgen {theirs}, and rank 0 has {own}");
                return refuse(why, SAME, false);
            }
        };
        let Membership { rank, size, .. } = greeting.of;
        if size != own.size || rank == 0 || rank >= size {
            let why = format!("it is rank {rank} of {size}, but rank 0 expects {} ranks", own.size);
            return refuse(why, "one launcher for all ranks", false);
        }
        if self.here.contains(&rank) {
            let hint = "start each rank once; the launcher must not restart a rank that ended";
            return refuse(format!("rank {rank} has connected before"), hint, true);
        }
        if greeting.plan != self.plan {
            return refuse("it has another plan".to_owned(), SAME, false);
        }
        Ok(greeting)
    }

    fn missing(&self) -> String {
        let missing = (0..self.of.of.size).filter(|rank| !self.here.contains(rank));
        named(missing.map(|rank| rank.to_string()).collect(), NAMED_MAX, ", ")
    }

    fn describe(&self) -> String {
        let (here, size) = (self.here.len(), self.of.of.size);
        format!("{here} of {size} ranks are here, waiting for rank {}", self.missing())
    }

    fn give_up(&self) -> Error {
        let (here, size, wait) = (self.here.len(), self.of.of.size, units::duration(self.of.wait));
        let missing = self.missing();
        Error::failed(format!("{here} of {size} ranks came within {wait}: rank {missing} did not"))
            .hint("a launcher that starts a few at a time (Ansible's forks, parallel -j) never starts the rest")
            .hint("the output of these ranks says why they ended; --ranks-wait waits longer")
    }
}

/// Hears a connection out: a greeting, and a proof of the token.
fn hear(mut stream: TcpStream, peer: SocketAddr, token: &Token) -> Result<Shown> {
    let (until, nonce) = (Instant::now() + PROVING, random()?);
    send(&mut stream, &nonce)?;
    let (line, greeting): (Vec<u8>, Value) = receive(&mut stream, until)?;
    let (_, proof): (_, String) = receive(&mut stream, until)?;
    let why = if !token.is_given() && !is_loopback(peer.ip()) {
        "rank 0 has no LOADGEN_TOKEN, and takes ranks of its own host only"
    } else if !token.verify(Side::Rank, &line, &nonce, &proof) {
        "it has another LOADGEN_TOKEN than rank 0, or none"
    } else {
        return Ok(Shown { stream, line, greeting, nonce });
    };
    refuse(&mut stream, why, TOKEN_HINT);
    Err(Error::failed(format!("{}: {why}", peer.ip().to_canonical())))
}

/// Names a rank by its greeting, also where that is of another version.
fn name_rank(greeting: &Value) -> String {
    let rank = greeting.pointer("/of/rank").and_then(Value::as_u64);
    let rank = rank.map_or_else(|| "a rank".to_owned(), |rank| format!("rank {rank}"));
    let host = greeting.get("host").and_then(Value::as_str).unwrap_or("an unknown host");
    format!("{rank} ({})", clip(host, VALUE_MAX))
}

fn refuse(stream: &mut TcpStream, why: &str, hint: &str) {
    let answer = Answer::Refused { why: why.to_owned(), hint: hint.to_owned() };
    // One that is gone needs no answer.
    let _ = send(stream, &answer);
}

/// Sends a line; returns it.
fn send(stream: &mut TcpStream, message: &impl Serialize) -> Result<Vec<u8>> {
    let line = serde_json::to_vec(message).expect("plain data");
    let written = stream.set_write_timeout(Some(PROVING));
    written.and_then(|()| stream.write_all(&[&line[..], b"\n"].concat())).map_err(passing)?;
    Ok(line)
}

/// Reads one line and nothing behind it.
fn receive<M: DeserializeOwned>(stream: &mut TcpStream, until: Instant) -> Result<(Vec<u8>, M)> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(passing("it does not answer"));
        }
        if line.len() > LINE_MAX {
            return Err(passing("it does not greet as a rank does"));
        }
        stream.set_read_timeout(Some(left)).map_err(passing)?;
        match stream.read(&mut byte) {
            Ok(0) => return Err(passing("the connection was closed")),
            Ok(_) if byte == *b"\n" => break,
            Ok(_) => line.push(byte[0]),
            // Its time is over, or a signal came.
            Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(e) => return Err(passing(e)),
        }
    }
    let message = serde_json::from_slice(&line);
    message.map(|message| (line, message)).map_err(|_| passing("it is no loadgen of this version"))
}

/// Prepares the connection of a rank that is taken.
fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    stream.set_nodelay(true)?;
    // Both ends send each second.
    SockRef::from(stream).set_tcp_user_timeout(Some(CUT))
}

/// Returns whether this host has no room for another connection (accept(2)).
fn is_out_of(error: &io::Error) -> bool {
    let full = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM];
    error.raw_os_error().is_some_and(|code| full.contains(&Errno::from_raw(code)))
}

fn random() -> Result<String> {
    let mut bytes = [0; 16];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|e| Error::failed(format!("no random number to be had: {e}")))?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

pub(super) fn own_host() -> String {
    gethostname()
        .map_or_else(|_| "localhost".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Writes the address of rank 0 for all who share the directory.
fn announce(path: &Path, text: &str) -> Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // Ranks may run as other accounts; the umask decides.
    builder.permissions(Permissions::from_mode(0o666));
    let written = builder.tempfile_in(dir).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.persist(path).map(drop).map_err(|e| e.error)
    });
    written.map_err(|e| {
        Error::failed(format!("--rendezvous file:{}: {e}", path.display()))
            .hint("a directory that all ranks share, and may write to")
    })
}

fn read_announcement(path: &Path, job: &str) -> Result<(String, u16), String> {
    // A pipe would keep the rank waiting.
    let flags = OFlag::O_NONBLOCK.bits();
    let opened = File::options().read(true).custom_flags(flags).open(path);
    // The caller names the file.
    let file = opened.map_err(|e| e.to_string())?;
    let mut text = String::new();
    file.take(LINE_MAX as u64).read_to_string(&mut text).map_err(|e| e.to_string())?;
    let mut lines = text.lines();
    let address = lines.next().and_then(|line| line.rsplit_once(':'));
    if lines.next() != Some(job) {
        return Err("the file is of another job".to_owned());
    }
    let address = address.and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
    address.ok_or_else(|| "the file has no address".to_owned())
}

#[cfg(test)]
mod tests {
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn silence_of_a_connection_is_told_in_words() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let mut stream = TcpStream::connect(address).expect("it listens");
        let until = Instant::now() + Duration::from_millis(20);
        let heard: Result<(Vec<u8>, Value)> = receive(&mut stream, until);
        assert_eq!(heard.expect_err("nothing was sent").to_string(), "it does not answer");
    }

    #[test]
    fn address_of_rank_zero_is_a_file_like_others() {
        let dir = tempfile::tempdir().expect("a directory");
        let [announced, other] = ["rank-0", "other"].map(|name| dir.path().join(name));
        announce(&announced, "c1:7000\njob\n").expect("it is written");
        fs::write(&other, "").expect("it is written");
        let permissions = |path| fs::metadata(path).expect("it is there").permissions();
        assert_eq!(permissions(&announced), permissions(&other));
        assert_eq!(read_announcement(&announced, "job"), Ok(("c1".to_owned(), 7000)));
        let pipe = dir.path().join("pipe");
        mkfifo(&pipe, Mode::S_IRUSR).expect("it is made");
        assert!(read_announcement(&pipe, "job").is_err(), "it waits for nobody");
    }
}
