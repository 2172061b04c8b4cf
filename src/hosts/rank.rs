//! A process with clients of steps that another process leads, by lines over standard input and output.
//! It ends with its input.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Write, stderr, stdin, stdout};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use nix::unistd::{dup2_stdin, dup2_stdout};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::check::executable;
use super::clock;
use super::link::{SILENCE, Unread, Writer, read, spawn};
use super::merge::Merge;
use super::protocol::{Edges, FromRank, Hello, PROTOCOL, SeenServer, ToRank};
use super::words::Words;
use crate::engine::{
    self, Go, MEASURED, OrderedPlan, Part, PartOrder, StepWindow, ThreadCounts, ThreadEvent,
    ThreadMessage,
};
use crate::error::{Error, Result};
use crate::mysql::preflight::check_own;
use crate::mysql::{ConnectOptions, ServerLink, Session, fingerprint, reach};
use crate::observe::{
    ClientReading, HostReading, Ns, Probe, ROOT, Whereabouts, host, peak_resident_bytes,
    raise_descriptor_limit,
};
use crate::plan::Plan;
use crate::stop::{COURTESY, Stop, or_stop};

const GONE: &str = "rank 0, the loadgen that measures, is gone";

/// Serves over standard input and output. Whatever a script prints or reads by itself is kept away from the lines.
pub(crate) fn run(stop: &Stop) -> Result<()> {
    let streams = || -> io::Result<(File, File)> {
        let own = (stdin().as_fd().try_clone_to_owned()?, stdout().as_fd().try_clone_to_owned()?);
        dup2_stdin(File::open("/dev/null")?)?;
        dup2_stdout(stderr())?;
        Ok((own.0.into(), own.1.into()))
    };
    let streams = streams().map_err(|e| Error::failed(format!("standard input and output: {e}")));
    let (input, output) = streams?;
    serve(input, output, None, stop)
}

/// Serves until it is told that all is over; an error says that it was not. One with words of its own is
/// told no plan and no server.
pub(super) fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    words: Option<Words>,
    stop: &Stop,
) -> Result<()> {
    raise_descriptor_limit()?;
    let out: Writer<FromRank> = Writer::start(output)?;
    let (told, lines) = unbounded_channel();
    let answers = out.clone();
    spawn("read-lines", move || {
        let ended = read(input, |at, message| match message {
            // At once: what comes later counts as time on the way.
            ToRank::Ping { sent } => {
                answers.send(FromRank::Pong { sent, received: at, answered: 0 });
                let _ = told.send(Ok(ToRank::Beat));
            }
            other => drop(told.send(Ok(other))),
        });
        if let Err(unread) = ended {
            let _ = told.send(Err(match unread {
                Unread::Broken(what) => format!("{GONE}: {what}"),
                // It may hold the password.
                Unread::NoMessage(_) => {
                    "rank 0 sent a line that is no message of loadgen's".to_owned()
                }
            }));
        }
    })?;
    out.send(FromRank::Hello(Box::new(hello())));
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Error::failed(format!("cannot make a runtime: {e}")))?;
    let heard = Instant::now();
    let (stop, asked) = (stop.clone(), false);
    let kept = VecDeque::new();
    let rank = RankProcess { out, lines, kept, heard, stop, asked, words, link: None, probe: None };
    let ended = runtime.block_on(rank.serve());
    runtime.shutdown_timeout(Duration::ZERO);
    ended
}

fn hello() -> Hello {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let net = fs::read_link("/proc/self/ns/net").ok();
    Hello {
        protocol: PROTOCOL,
        program: engine::program(),
        executable: executable(),
        host: host::facts(Path::new(ROOT)),
        boot_id: boot_id.map(|id| id.trim().to_owned()),
        net: net.map(|namespace| namespace.display().to_string()),
        threads: std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
        lua: cfg!(feature = "lua"),
    }
}

struct RankProcess {
    out: Writer<FromRank>,
    lines: UnboundedReceiver<Result<ToRank, String>>,
    /// Messages that came while other work was done.
    kept: VecDeque<ToRank>,
    /// When the last of them came.
    heard: Instant,
    stop: Stop,
    /// The signal was passed on.
    asked: bool,
    words: Option<Words>,
    link: Option<ServerLink>,
    /// The server's process, if it is of this host.
    probe: Option<Probe>,
}

impl RankProcess {
    async fn serve(mut self) -> Result<()> {
        loop {
            let goes_on = match self.next().await? {
                // One with words of its own obeys no others: its lines are not proved.
                ToRank::Server { target, password, clients } if self.words.is_none() => {
                    self.meet(Ok(ConnectOptions { password, ..target }), clients).await?
                }
                ToRank::Find { label, clients } => {
                    let own = self.words.as_ref().ok_or_else(no_words);
                    let found = own.and_then(|own| own.server(label.as_deref()).cloned());
                    self.meet(found, clients).await?
                }
                ToRank::Open { at, order } => {
                    Box::pin(self.step(clock::instant(at), order)).await?
                }
                ToRank::End => false,
                // Those of a step that is over.
                _ => true,
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    async fn next(&mut self) -> Result<ToRank> {
        match self.kept.pop_front() {
            Some(message) => Ok(message),
            None => self.hear().await,
        }
    }

    /// Waits for a message; passes on a signal meanwhile.
    async fn hear(&mut self) -> Result<ToRank> {
        loop {
            let left = || Error::failed(GONE);
            tokio::select! {
                // A line that has come was heard, however long nobody listened.
                biased;
                line = self.lines.recv() => {
                    self.heard = Instant::now();
                    return line.ok_or_else(left)?.map_err(Error::failed);
                }
                () = tokio::time::sleep_until((self.heard + SILENCE).into()) => return Err(left()),
                kind = self.stop.wait(), if !self.asked => {
                    self.asked = true;
                    self.out.send(FromRank::Asked(kind));
                }
            }
        }
    }

    /// Looks at a server, and tells who it is; returns whether steps may follow.
    async fn meet(&mut self, target: Result<ConnectOptions>, clients: u32) -> Result<bool> {
        let own = check_own(clients);
        let (target, stop) = (own.and(target), self.stop.clone());
        let looking = async { or_stop(&stop, look(&target?)).await };
        let Some(looked) = self.listen_during(looking).await? else { return Ok(false) };
        self.link = None;
        let seen = looked.map(|(link, seen, probe)| {
            (self.link, self.probe) = (Some(link), probe);
            seen
        });
        self.out.send(FromRank::Server(Box::new(seen)));
        Ok(true)
    }

    /// Works while messages come; None if all is over.
    async fn listen_during<T>(&mut self, work: impl Future<Output = T>) -> Result<Option<T>> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(Some(done)),
                message = self.hear() => match message? {
                    ToRank::End => return Ok(None),
                    ToRank::Beat => {}
                    other => self.kept.push_back(other),
                },
            }
        }
    }

    /// Runs the own part of a step; returns whether others may follow.
    async fn step(&mut self, opening: Instant, order: PartOrder) -> Result<bool> {
        let link = self.link.clone().ok_or_else(|| Error::failed("no server was named"))?;
        let started = ordered(&order.plan, self.words.as_ref());
        let started = started.and_then(|plan| Part::start(plan, &order, link, opening));
        let part = match started {
            Ok(part) => part,
            Err(error) => {
                self.out.send(FromRank::Event(MEASURED, ThreadEvent::Broken(error)));
                return Ok(true);
            }
        };
        self.out.take_paused();
        let merge = |statements| Merge::new(part.threads(), statements);
        let merges: Vec<Merge> = part.timed_statements().map(merge).collect();
        let mut step = RankStep {
            running: merges.len(),
            merges,
            done: ThreadCounts::default(),
            part,
            out: self.out.clone(),
            probe: self.probe.clone(),
            host: Probe::below(Path::new(ROOT), &Whereabouts::default()),
            origin: None,
            late: 0,
            first: None,
            last: None,
        };
        loop {
            let edge = step.edge();
            tokio::select! {
                Some(message) = engine::next_event(&mut step.part.events) => step.take(message),
                message = self.next() => match message? {
                    ToRank::Go { start } => step.go(clock::instant(start)),
                    ToRank::Window(window) => step.window(window),
                    ToRank::Close => {
                        return Ok(self.listen_during(step.part.end()).await?.is_some());
                    }
                    ToRank::End => {
                        step.part.end().await;
                        return Ok(false);
                    }
                    _ => {}
                },
                () = tokio::time::sleep_until(edge.unwrap_or_else(Instant::now).into()),
                    if edge.is_some() => step.read(),
            }
        }
    }
}

fn no_words() -> Error {
    Error::failed("rank 0 asks for this rank's own command line, and it has none")
}

/// Returns the plan that is ordered: that of a rank's own words, where it has some.
fn ordered(plan: &OrderedPlan, words: Option<&Words>) -> Result<Plan> {
    match (plan, words) {
        (OrderedPlan::Whole(plan, unwritten), None) => Ok(plan.with_unwritten(unwritten)),
        (OrderedPlan::Whole(..), Some(_)) => {
            Err(Error::failed("rank 0 sent a plan instead of the hash of this rank's own"))
        }
        (OrderedPlan::Own { hash, engine_threads }, words) => {
            let own = words.ok_or_else(no_words)?.plan(hash)?.away();
            Ok(Plan { engine_threads: *engine_threads, ..own })
        }
    }
}

/// Connects to the server, and tells who it is, and its process if it is of this host.
async fn look(target: &ConnectOptions) -> Result<(ServerLink, SeenServer, Option<Probe>)> {
    // A rank's own words may leave TLS to the server.
    let link = Box::pin(reach(target, &Stop::default())).await?;
    let mut session = Box::pin(Session::open(&link, None)).await?;
    let found = Box::pin(fingerprint(&mut session, &link, None)).await?;
    session.close(COURTESY).await;
    let mut probe = None;
    if found.same_host {
        let at = found.whereabouts;
        // Reading many files must not keep messages waiting.
        probe = engine::run_on_thread(move || Probe::below(Path::new(ROOT), &at)).await.ok();
    }
    let (server, same_host, rtt_us) = (found.server, found.same_host, found.rtt_us);
    Ok((link, SeenServer { server, same_host, rtt_us }, probe))
}

/// Finds the edges that have moved to before now, and by how much. None concerns a rank that is done: nobody takes
/// an event of it.
fn find_late_edges(
    running: usize,
    before: StepWindow,
    window: StepWindow,
    now: Ns,
) -> Vec<(&'static str, Duration)> {
    let edges = [
        (window.start, before.start, "the window's start"),
        (window.end, before.end, "the window's end"),
    ];
    let late = edges.into_iter().filter(|(edge, then, _)| edge != then && *edge < now);
    let late = late.filter(|_| running > 0);
    late.map(|(edge, _, what)| (what, Duration::from_nanos(now - edge))).collect()
}

type EdgeReading = (ClientReading, Option<HostReading>);

struct RankStep {
    part: Part,
    /// By group, the measured one first.
    merges: Vec<Merge>,
    /// Groups that have not ended.
    running: usize,
    /// The ops of measured clients, and the usage of threads: each tells it with the last of its groups.
    done: ThreadCounts,
    out: Writer<FromRank>,
    probe: Option<Probe>,
    host: Probe,
    origin: Option<Instant>,
    late: Ns,
    /// Readings at the window's edges.
    first: Option<EdgeReading>,
    last: Option<EdgeReading>,
}

impl RankStep {
    /// Returns the next edge of the window that is known and not read.
    fn edge(&self) -> Option<Instant> {
        let window = *self.part.window.borrow();
        // With a number of ops groups beside end when the measured clients of all hosts have.
        let beside = self.merges.len() > 1;
        let end = if beside { window.end.min(window.last) } else { window.end };
        let edge = if self.first.is_none() { window.start } else { end };
        let known = edge < Ns::MAX && self.last.is_none();
        let origin = self.origin.filter(|_| known)?;
        origin.checked_add(Duration::from_nanos(edge))
    }

    fn read(&mut self) {
        let unread = if self.first.is_none() { &mut self.first } else { &mut self.last };
        let own = ClientReading::now(self.probe.as_ref());
        // After it: this reads many files.
        *unread = Some((own, self.host.state()));
    }

    fn go(&mut self, origin: Instant) {
        let late = origin.elapsed();
        self.origin = Some(origin);
        let start = origin.saturating_duration_since(self.part.opening()).as_nanos() as Ns;
        self.part.go.send_replace(Go::Start(start));
        self.late = late.as_nanos() as Ns;
        if late > self.part.warmup() {
            self.tell_late("the start", late);
        }
    }

    fn window(&mut self, window: StepWindow) {
        let before = self.part.window.send_replace(window);
        let now = self.origin.map_or(0, |origin| origin.elapsed().as_nanos() as Ns);
        for (what, by) in find_late_edges(self.running, before, window, now) {
            self.tell_late(what, by);
        }
    }

    fn tell_late(&self, what: &str, by: Duration) {
        let text = format!("message about {what} came {:.1} ms late", by.as_secs_f64() * 1e3);
        let hint =
            "this host, or the network to it, is slow; the step is no result: measure it again";
        let late = ThreadEvent::Late(Error::failed(text).hint(hint));
        self.out.send(FromRank::Event(MEASURED, late));
    }

    /// Passes on an event, and what a group counted once all threads have ended it.
    fn take(&mut self, message: ThreadMessage) {
        let group = message.group;
        let merge = &mut self.merges[usize::from(group)];
        for event in merge.take(message) {
            self.out.send(FromRank::Event(group, event));
        }
        if let Some(counts) = merge.take_counts() {
            self.end_group(group, counts);
        }
    }

    /// Sends the counts of a group, and before those of the last one the readings.
    fn end_group(&mut self, group: u8, counts: ThreadCounts) {
        let by_ops = self.part.window.borrow().end == Ns::MAX;
        self.running -= 1;
        self.done.usage.extend(counts.usage.iter().cloned());
        let is_measured = group == MEASURED && !counts.ops_by_client.is_empty();
        if is_measured {
            self.done.ops_by_client.clone_from(&counts.ops_by_client);
        }
        // A number of ops ends the window here; groups beside end later.
        while self.last.is_none() && (self.running == 0 || (by_ops && is_measured)) {
            self.read();
        }
        if self.running == 0 {
            self.send_edges();
        }
        self.out.send(FromRank::Event(group, ThreadEvent::Done(Box::new(counts))));
    }

    fn send_edges(&mut self) {
        if let (Some((first, host_first)), Some((last, host_last))) = (&self.first, &self.last) {
            let client = last.since(first);
            let host_edges = host_first.as_ref().zip(host_last.as_ref());
            let cores = host::facts(Path::new(ROOT)).facts.cores;
            self.out.send(FromRank::Edges(Box::new(Edges {
                share: engine::share(&self.done, &client, cores, None),
                state: host_edges.map(|(first, last)| last.state_since(first)),
                ops: self.done.ops_by_client.iter().sum(),
                client,
                max_rss_bytes: peak_resident_bytes(),
                paused: self.out.take_paused(),
                late: self.late,
            })));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::hash_plan;
    use super::*;
    use crate::plan::knobs::Knobs;
    use crate::workload::builtin;

    #[test]
    fn edge_is_late_when_it_has_passed_and_the_rank_is_not_done() {
        let before = StepWindow { start: 5, end: Ns::MAX, early: false, last: Ns::MAX };
        let ended = StepWindow { end: 7, early: true, last: 7, ..before };
        let late = vec![("the window's end", Duration::from_nanos(2))];
        for (running, now, expected) in [(1, 9, late), (1, 7, Vec::new()), (0, 9, Vec::new())] {
            assert_eq!(find_late_edges(running, before, ended, now), expected, "{running} {now}");
        }
    }

    #[test]
    fn rank_with_words_of_its_own_takes_no_other_plan() {
        let plan = |at| Knobs::default().resolve(builtin().remove(at), 1).expect("a plan");
        let words = Words { plans: vec![plan(0)], servers: Vec::new() };
        let whole = OrderedPlan::whole(&plan(1));
        let own = |at| OrderedPlan::Own { hash: hash_plan(&plan(at)), engine_threads: Some(2) };
        assert!(ordered(&whole, Some(&words)).is_err() && ordered(&whole, None).is_ok());
        assert!(ordered(&own(1), Some(&words)).is_err() && ordered(&own(0), None).is_err());
        let taken = ordered(&own(0), Some(&words)).expect("its own");
        assert_eq!((taken.workload, taken.engine_threads), (plan(0).workload, Some(2)));
    }
}
