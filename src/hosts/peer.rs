//! One rank, as the measuring process sees it: its process, its greeting, its clock, and its events on their
//! way to the step.

use std::io::{Read, Write};
use std::process::ExitStatus;
use std::slice;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::check::{PartCheck, check_hello, explain_line};
use super::clock::{self, Offset, ROUND_TRIPS, RoundTrip};
use super::launch::{Wanted, Way};
use super::link::{SILENCE, Unread, Writer, read, spawn};
use super::protocol::{Edges, FromRank, Hello, SeenServer, ToRank};
use crate::engine::{MEASURED, ThreadEvent, ThreadMessage};
use crate::error::{Error, Kind, Result, line};
use crate::judge;
use crate::mysql::{ServerLink, changes};
use crate::observe::{Cost, Ns};
use crate::plan::limits;
use crate::stop::{Group, Stop, locked, within};
use crate::summary::{ClientHost, HostClock, Server};

/// The time in which a rank greets.
const GREETING: Duration = Duration::from_secs(15);
/// The same once its process lives: on a full host the rest of its start takes long.
const GREETING_LIVE: Duration = Duration::from_mins(1);
/// Interval of checks on processes.
const LOOK: Duration = Duration::from_millis(200);

/// A rank that has not greeted.
pub(super) struct Starting {
    pub(super) number: u32,
    pub(super) to: Writer<ToRank>,
    replies: UnboundedReceiver<(Ns, FromRank)>,
    pub(super) state: Arc<Mutex<State>>,
    way: Way,
}

pub(super) struct Peer {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) hello: Hello,
    pub(super) to: Writer<ToRank>,
    replies: UnboundedReceiver<(Ns, FromRank)>,
    state: Arc<Mutex<State>>,
    pub(super) way: Way,
    seen: Option<SeenServer>,
}

/// The part of a rank that its reader and the watch share.
pub(super) struct State {
    number: u32,
    name: String,
    way: Way,
    began: Ns,
    /// When its last line came.
    heard: Ns,
    /// The longest time between two lines, in a step.
    silence: Ns,
    group: Option<Group>,
    greeted: bool,
    lost: Option<Error>,
    /// The way of answers; None once it is lost: nobody waits for one then.
    replies: Option<UnboundedSender<(Ns, FromRank)>>,
    route: Option<Route>,
}

/// The way of a rank's events in a step.
struct Route {
    events: UnboundedSender<ThreadMessage>,
    source: usize,
    edges: Option<Box<Edges>>,
    part: PartCheck,
}

impl State {
    fn lose(&mut self, why: &str, status: Option<ExitStatus>) {
        let (number, name) = (self.number, line(&self.name));
        let how = status.map_or_else(String::new, |status| format!(" ({status})"));
        let error = Error::failed(format!("rank {number} ({name}) is lost: {why}{how}"));
        let code = status.and_then(|status| status.code());
        self.lose_for(error.hint(self.way.hint(&name, code, self.greeted)));
    }

    fn lose_for(&mut self, error: Error) {
        self.silence = self.silence.max(clock::now().saturating_sub(self.heard));
        self.replies = None;
        if let Some(group) = self.group.take() {
            group.signal(Signal::SIGKILL);
            // A process that the kernel holds must not keep others waiting.
            let _ = spawn("end-rank", move || drop(group));
        }
        if let Some(route) = self.route.as_ref().filter(|_| self.lost.is_none()) {
            route.lose(&error);
        }
        self.lost.get_or_insert(error);
    }

    /// Passes a message on to where it is waited for; nothing is heard of a rank that is lost.
    fn take(&mut self, at: Ns, message: FromRank, stop: &Stop) {
        self.silence = self.silence.max(at.saturating_sub(self.heard));
        self.heard = at;
        let (true, route) = (self.lost.is_none(), &mut self.route) else { return };
        match (message, route) {
            (FromRank::Event(group, event), Some(route)) => match route.part.check(group, &event) {
                None => route.send(group, event),
                Some(why) => self.lose(why, None),
            },
            (FromRank::Edges(edges), Some(route)) => route.edges = Some(edges),
            (FromRank::Event(..) | FromRank::Edges(_) | FromRank::Beat, _) => {}
            (FromRank::Asked(kind @ (Kind::Interrupted | Kind::Terminated)), _) => stop.ask(kind),
            (FromRank::Asked(_), _) => self.lose("it sent an unknown signal", None),
            (reply, _) => {
                self.greeted = true;
                if let Some(replies) = &self.replies {
                    let _ = replies.send((at, reply));
                }
            }
        }
    }

    /// Returns why it is lost, if it was silent for too long.
    fn find_silence(&self, now: Ns) -> Option<String> {
        let (limit, since, why) = if self.greeted {
            (SILENCE, self.heard, "no word from it for")
        } else {
            // A greeting comes first: nothing else makes up for it.
            let limit = if self.heard > self.began { GREETING_LIVE } else { GREETING };
            (limit, self.began, "it did not greet within")
        };
        let is_over = now.saturating_sub(since) > limit.as_nanos() as Ns;
        is_over.then(|| format!("{why} {} s", limit.as_secs()))
    }

    /// Takes note of the end of its lines; one that was silent for too long was lost before.
    fn end(&mut self, ended: Result<(), Unread>, status: Option<ExitStatus>) {
        if self.lost.is_some() {
            return;
        }
        let why = match ended {
            Ok(()) => Ok("its connection ended".to_owned()),
            Err(Unread::Broken(why)) => Ok(why),
            Err(Unread::NoMessage(text)) => {
                explain_line((self.number, &line(&self.name), self.way), &text, self.greeted)
            }
        };
        match why {
            Ok(why) => self.lose(&why, status),
            Err(error) => self.lose_for(error),
        }
    }
}

impl Route {
    fn send(&self, group: u8, event: ThreadEvent) {
        // Nobody listens only when the step is over.
        let _ = self.events.send(ThreadMessage { thread: self.source, group, event });
    }

    fn lose(&self, error: &Error) {
        if !self.part.is_done() {
            self.send(MEASURED, ThreadEvent::Lost(error.clone()));
        }
    }
}

/// Waits for the end of a rank's process; others may have its state meanwhile.
fn ended_within(state: &Mutex<State>, limit: Duration) -> Option<ExitStatus> {
    let began = Instant::now();
    loop {
        let mut state = locked(state);
        if state.group.as_ref()?.has_ended() {
            // Nobody signals it any more: its number may be another's.
            return state.group.take()?.end().ok();
        }
        drop(state);
        if began.elapsed() >= limit {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Starting {
    /// Starts the process of a host; its greeting is still to come.
    pub(super) fn start(number: u32, host: &str, wanted: &Wanted, stop: &Stop) -> Result<Starting> {
        let mut group = wanted.start(host)?;
        let (input, output) = (group.stdout.take(), group.stdin.take());
        let (input, output) = (input.expect("it is piped"), output.expect("it is piped"));
        let of = (number, host.to_owned(), wanted.way(host));
        Starting::lead(of, Some(group), (input, output), stop)
    }

    /// Leads a rank over any lines. One without a process of ours has words of its own.
    pub(super) fn lead(
        (number, name, way): (u32, String, Way),
        group: Option<Group>,
        (input, output): (impl Read + Send + 'static, impl Write + Send + 'static),
        stop: &Stop,
    ) -> Result<Starting> {
        let ((told, replies), began) = (unbounded_channel(), clock::now());
        let state = State {
            number,
            name,
            way,
            began,
            heard: began,
            silence: 0,
            group,
            greeted: false,
            lost: None,
            replies: Some(told),
            route: None,
        };
        let (state, to) = (Arc::new(Mutex::new(state)), Writer::start(output)?);
        let (of, stop) = (Arc::clone(&state), stop.clone());
        spawn("read-rank", move || {
            let ended = read(input, |at, message| locked(&of).take(at, message, &stop));
            // A stopped process does not end by itself.
            let status = ended_within(&of, LOOK);
            locked(&of).end(ended, status);
        })?;
        Ok(Starting { number, to, replies, state, way })
    }

    pub(super) fn lost(&self) -> Option<Error> {
        locked(&self.state).lost.clone()
    }

    pub(super) fn rename(self, name: String) -> Starting {
        locked(&self.state).name = name;
        self
    }

    /// Waits for the greeting, as long as the watch over silence does; refuses another build.
    pub(super) async fn greet(mut self) -> Result<Peer> {
        let name = locked(&self.state).name.clone();
        let (number, shown) = (self.number, line(&name));
        let Some((_, FromRank::Hello(hello))) = self.replies.recv().await else {
            let unknown = || Error::failed(format!("rank {number} ({shown}) does not greet"));
            return Err(locked(&self.state).lost.clone().unwrap_or_else(unknown));
        };
        check_hello(&hello, (number, &shown, self.way))?;
        let Starting { to, replies, state, way, .. } = self;
        Ok(Peer { number, name, hello: *hello, to, replies, state, way, seen: None })
    }
}

fn check_server(name: &str, own: &Server, theirs: &Server) -> Result<()> {
    let changed = changes(own, theirs);
    let mut others = changed.iter().filter(|change| judge::is_another(slice::from_ref(change)));
    let Some(other) = others.next() else { return Ok(()) };
    let value = |value: &Option<String>| line(value.as_deref().unwrap_or("none"));
    Err(Error::server(format!(
        "{name} reaches another server: {} is {} there and {} here",
        other.name,
        value(&other.after),
        value(&other.before)
    ))
    .hint("-h with one address of the server that means the same on all hosts, not localhost"))
}

/// Refuses a connection that is not like that of the measuring process: with words of its own a rank may have
/// another database or another way.
fn check_session(name: &str, own: &Server, theirs: &Server) -> Result<()> {
    let of = |server: &Server| {
        let database = server.database.as_deref().unwrap_or("none");
        // The cipher itself may differ by the processor.
        let tls = if server.tls_cipher.is_some() { " with TLS" } else { "" };
        format!("database {database} over {}{tls}", server.transport)
    };
    let (here, there) = (of(own), of(theirs));
    if here == there {
        return Ok(());
    }
    let text =
        format!("{name} has another connection: {} there, and {} here", line(&there), line(&here));
    Err(Error::server(text).hint("the same options of the connection for all ranks"))
}

impl Peer {
    /// Returns why it is lost, if it is.
    pub(super) fn lost(&self) -> Option<Error> {
        locked(&self.state).lost.clone()
    }

    async fn reply(&mut self, limit: Duration) -> Result<(Ns, FromRank)> {
        let reply = within(limit, self.replies.recv()).await.flatten();
        reply.ok_or_else(|| {
            // A late answer must not pass for that of a later question.
            let mut state = locked(&self.state);
            if state.lost.is_none() {
                state.lose("it does not answer", None);
            }
            state.lost.clone().expect("it is lost")
        })
    }

    pub(super) async fn measure_clock(&mut self) -> Result<Offset> {
        let mut trips = Vec::with_capacity(ROUND_TRIPS);
        while trips.len() < ROUND_TRIPS {
            self.to.send(ToRank::Ping { sent: 0 });
            // The watch over silence is sooner, and knows more.
            let reply = self.reply(SILENCE * 2).await?;
            if let (heard, FromRank::Pong { sent, received, answered }) = reply {
                trips.push(RoundTrip { sent, received, answered, heard });
            }
        }
        Ok(Offset::measure(&trips).expect("there are trips"))
    }

    /// Refuses a server that is not the one of the measuring process, and a host that cannot have so many clients.
    pub(super) async fn meet(
        &mut self,
        link: &ServerLink,
        label: Option<&str>,
        server: &Server,
        clients: u32,
    ) -> Result<()> {
        let target = link.target.clone();
        let password = target.password.clone();
        let limit = target.connect_timeout * 2 + limits::SILENCE;
        self.to.send(if self.way == Way::Launcher {
            ToRank::Find { label: label.map(str::to_owned), clients }
        } else {
            ToRank::Server { target, password, clients }
        });
        let seen = loop {
            if let (_, FromRank::Server(seen)) = self.reply(limit).await? {
                break *seen;
            }
        };
        let name = line(&self.name);
        let seen = seen.map_err(|error| error.context(format!("rank {} ({name})", self.number)))?;
        check_server(&name, server, &seen.server)?;
        check_session(&name, server, &seen.server)?;
        self.seen = Some(seen);
        Ok(())
    }

    /// Begins a step: its events go there, as those of a source.
    pub(super) fn join_step(
        &self,
        source: usize,
        part: PartCheck,
        events: &UnboundedSender<ThreadMessage>,
    ) {
        let mut state = locked(&self.state);
        let route = Route { events: events.clone(), source, edges: None, part };
        if let Some(lost) = &state.lost {
            route.lose(lost);
        }
        (state.route, state.silence) = (Some(route), 0);
    }

    /// Ends a step; returns its readings, unless it is lost or had no part.
    pub(super) fn leave_step(&self) -> Option<Box<Edges>> {
        self.to.send(ToRank::Close);
        locked(&self.state).route.take()?.edges
    }

    /// Describes its part of a step, with its clock before and after it.
    pub(super) fn describe(
        &self,
        (threads, clients): (usize, u32),
        (before, after): (&Offset, Option<&Offset>),
        edges: Option<&Edges>,
    ) -> ClientHost {
        let Hello { host, boot_id, .. } = &self.hello;
        let us = |ns: Ns| ns as f64 / 1e3;
        let later = after.map(|after| before.until(after));
        let error = later.map_or(before.error, |(_, error)| error);
        let client = edges.map(|edges| edges.client);
        let cost = client.map_or(Cost::default(), |client| client.cost);
        let traffic = |at: usize| client?.traffic.map(|both| both[at]);
        let (ops, seen) = (edges.map_or(0, |edges| edges.ops), self.seen.as_ref());
        ClientHost {
            rank: self.number,
            name: self.name.clone(),
            host: host.name.clone(),
            kernel: host.facts.kernel.clone(),
            cpu: host.facts.cpu.clone(),
            cores: host.cores_usable,
            boot_id: boot_id.clone(),
            same_host: seen.is_some_and(|seen| seen.same_host),
            clients,
            threads: threads as u32,
            ops,
            user_s: cost.user.as_secs_f64(),
            sys_s: cost.sys.as_secs_f64(),
            us_per_op: (ops > 0).then(|| cost.cpu().as_secs_f64() * 1e6 / ops as f64),
            max_rss_bytes: edges.map_or(0, |edges| edges.max_rss_bytes),
            rtt_us: seen.and_then(|seen| seen.rtt_us),
            net_rx_bytes: traffic(0),
            net_tx_bytes: traffic(1),
            share: edges.map(|edges| edges.share.clone()),
            state: edges.and_then(|edges| edges.state.clone()),
            verdict: None,
            clock: HostClock {
                offset_us: before.ns as f64 / 1e3,
                error_us: us(error),
                moved_us: later.map(|(moved, _)| moved as f64 / 1e3),
                round_trip_us: us(before.shortest),
            },
            silence_s: us(locked(&self.state).silence) / 1e6,
            paused_s: edges.map_or(0.0, |edges| us(edges.paused) / 1e6),
            late_us: edges.map_or(0.0, |edges| us(edges.late)),
        }
    }
}

/// Waits for the end of a rank that was told to; kills what has not ended in time.
pub(super) fn end_within(state: &Mutex<State>, limit: Duration) {
    if locked(state).group.is_some() {
        ended_within(state, limit);
        // One that does not end is killed.
        locked(state).group = None;
        return;
    }
    // A connection of a rank that was told ends at the other side, once it has heard of it.
    let began = Instant::now();
    while locked(state).lost.is_none() && began.elapsed() < limit {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// All ranks that were started, also one that has not greeted; None when all is over.
pub(super) type Watched = Arc<Mutex<Option<Vec<(Writer<ToRank>, Arc<Mutex<State>>)>>>>;

/// Watches over silence: a rank without a word for too long is lost.
pub(super) fn watch(watched: &Watched) -> Result<()> {
    let watched = Arc::clone(watched);
    spawn("watch-ranks", move || {
        loop {
            std::thread::sleep(LOOK);
            // Nobody waits for the lock while this works.
            let Some(all) = locked(&watched).clone() else { return };
            for (_, state) in &all {
                let mut state = locked(state);
                let why = state.find_silence(clock::now());
                if let Some(why) = why.filter(|_| state.lost.is_none()) {
                    state.lose(&why, None);
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::error::Kind;

    fn state(heard: Ns, greeted: bool) -> State {
        State {
            number: 1,
            name: "c1".to_owned(),
            way: Way::Ssh,
            began: heard,
            heard,
            silence: 0,
            group: None,
            greeted,
            lost: None,
            replies: None,
            route: None,
        }
    }

    #[test]
    fn rank_has_longer_to_greet_once_its_process_lives() {
        const S: Ns = 1_000_000_000;
        let live = State { heard: 3 * S, ..state(2 * S, false) };
        for (state, last) in [(state(2 * S, false), 17), (live, 62), (state(2 * S, true), 12)] {
            let is_lost = |at| state.find_silence(at).is_some();
            assert_eq!([is_lost(last * S), is_lost(last * S + 1)], [false, true], "{last}");
        }
    }

    #[test]
    fn silence_of_a_rank_lasts_until_it_is_lost() {
        let quiet = Duration::from_millis(2);
        let mut state = state(clock::now(), true);
        std::thread::sleep(quiet);
        state.lose("no word from it", None);
        assert!(Duration::from_nanos(state.silence) >= quiet);
    }

    #[test]
    fn server_is_the_same_when_nothing_but_its_counters_differs() {
        let server = |variables: &[(&str, &str)]| {
            let variable = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let variables: BTreeMap<_, _> = variables.iter().map(variable).collect();
            Server { version: "8.4.3".to_owned(), variables: variables.into(), ..Server::default() }
        };
        let own = server(&[("datadir", "/a"), ("gtid_executed", "1")]);
        let same = server(&[("datadir", "/a"), ("gtid_executed", "2")]);
        assert!(check_server("c1", &own, &same).is_ok());
        let session = |change: fn(&mut Server)| {
            let mut server = Server { transport: "tcp".to_owned(), ..server(&[]) };
            change(&mut server);
            check_session(
                "c1",
                &Server { transport: "tcp".to_owned(), ..Server::default() },
                &server,
            )
        };
        assert!(session(|_| {}).is_ok());
        assert!(session(|server| server.database = Some("other".to_owned())).is_err());
        assert!(session(|server| server.transport = "socket".to_owned()).is_err());
        assert!(session(|server| server.tls_cipher = Some("AES".to_owned())).is_err());
        let other = server(&[("datadir", "/b"), ("gtid_executed", "1")]);
        let refused = check_server("c1", &own, &other).expect_err("another directory");
        assert_eq!(refused.kind(), Kind::Server);
    }
}
