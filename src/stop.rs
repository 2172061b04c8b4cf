//! Signals: the first SIGINT or SIGTERM asks to finish with what there is, the second ends at once. Any number
//! of SIGHUPs only asks: the kernel and the shell may send one each.
//!
//! Commands of the user run in their own process groups, out of reach of the terminal's Ctrl-C: the end of the
//! process has to end them first.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::error::{Error, Kind};

/// Time after which a silent server is given up.
pub(crate) const SILENCE: Duration = Duration::from_mins(1);
/// Time for goodbyes and status readings.
pub(crate) const COURTESY: Duration = Duration::from_secs(5);

const LOOK: Duration = Duration::from_millis(20);

/// Two signals of a kind within this time are one: `timeout` sends to its child and to its group.
const TWICE: Duration = Duration::from_millis(100);

/// The request to stop and its reason, shared by everything that takes time. Works across runtimes.
#[derive(Debug, Clone, Default)]
pub struct Stop(watch::Sender<Option<Kind>>);

impl Stop {
    /// Asks to stop; `kind` becomes the exit status.
    pub fn ask(&self, kind: Kind) {
        self.0.send_if_modified(|asked| {
            let first = asked.is_none();
            asked.get_or_insert(kind);
            first
        });
    }

    pub(crate) fn asked(&self) -> Option<Kind> {
        *self.0.borrow()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        self.asked().map_or(Ok(()), |kind| Err(Error::new(kind, "interrupted")))
    }

    pub(crate) async fn wait(&self) -> Kind {
        let mut asked = self.0.subscribe();
        let found = asked.wait_for(Option::is_some).await.expect("the sender lives in self");
        found.expect("it was waited for")
    }

    /// Listens to the signals on its own thread. A second signal calls `at_once`, which must not return, with
    /// the exit status. A file at its size limit becomes an error of its writer, not the end of the process.
    pub(crate) fn listen(&self, ignored_stays: bool, at_once: fn(u8) -> !) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let inside = runtime.enter();
        // Catching it is enough: the write that went too far then fails.
        drop(signal(SignalKind::from_raw(Signal::SIGXFSZ as i32))?);
        // If the starter of this process ignores it, the kernel keeps no status of a child.
        drop(signal(SignalKind::child())?);
        let mut signals = vec![(signal(SignalKind::terminate())?, Kind::Terminated, true)];
        if !(ignored_stays && ignored(Signal::SIGINT)) {
            signals.push((signal(SignalKind::interrupt())?, Kind::Interrupted, true));
        }
        if !ignored(Signal::SIGHUP) {
            signals.push((signal(SignalKind::hangup())?, Kind::Terminated, false));
        }
        drop(inside);
        let (stop, mut first) = (self.clone(), None);
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(async {
                loop {
                    let (kind, counts) = poll_fn(|context| {
                        let mut sent = signals.iter_mut().filter_map(|(signal, kind, counts)| {
                            signal.poll_recv(context).is_ready().then_some((*kind, *counts))
                        });
                        sent.next().map_or(Poll::Pending, Poll::Ready)
                    })
                    .await;
                    if counts && is_second(&mut first, kind, Instant::now()) {
                        at_once(kind.exit_code());
                    }
                    stop.ask(kind);
                }
            });
        })?;
        Ok(())
    }
}

/// Takes note of the first signal. Returns whether this one is the second.
fn is_second(first: &mut Option<(Kind, Instant)>, kind: Kind, now: Instant) -> bool {
    let (known, at) = *first.get_or_insert((kind, now));
    known != kind || now.duration_since(at) >= TWICE
}

static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A command and all that it starts; whatever is left of it is killed when this is dropped. Nothing reaps its
/// leader before: the group's number is nobody else's.
pub(crate) struct Group {
    leader: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
}

impl Group {
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Group> {
        let mut leader = command.process_group(0).spawn()?;
        locked(&RUNNING).insert(leader.id().cast_signed());
        let (stdin, stdout, stderr) =
            (leader.stdin.take(), leader.stdout.take(), leader.stderr.take());
        Ok(Group { leader, stdin, stdout, stderr })
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.leader.id().cast_signed())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // An empty group needs no signal.
        let _ = killpg(self.pid(), signal);
    }

    /// Returns whether the leader has ended. Does not take its status.
    pub(crate) fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        !matches!(waitid(Id::Pid(self.pid()), flags), Ok(WaitStatus::StillAlive))
    }

    /// Kills what is left of it. Returns the leader's status.
    pub(crate) fn end(&mut self) -> io::Result<ExitStatus> {
        let mut running = locked(&RUNNING);
        // The number of one that was ended before may be another's by now.
        if running.remove(&self.pid().as_raw()) {
            self.signal(Signal::SIGKILL);
        }
        drop(running);
        self.leader.wait()
    }

    /// Waits for the leader's end, and returns its status; what it has started lives on.
    pub(crate) fn leave(mut self) -> io::Result<ExitStatus> {
        locked(&RUNNING).remove(&self.pid().as_raw());
        self.leader.wait()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Kills all commands: the process ends, and its threads with it.
pub fn kill_all() {
    for group in locked(&RUNNING).iter() {
        let _ = killpg(Pid::from_raw(*group), Signal::SIGKILL);
    }
}

/// Locks also after a panic of another thread.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) async fn or_stop<T>(
    stop: &Stop,
    asking: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::select! {
        biased;
        kind = stop.wait() => Err(Error::new(kind, "interrupted")),
        answer = asking => answer,
    }
}

/// Runs blocking work unless asked to stop first. Its thread then ends with the process.
pub(crate) fn unless_stopped<T: Send + 'static>(
    stop: &Stop,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (done, result) = sync_channel(1);
    std::thread::Builder::new()
        .name("files".to_owned())
        .spawn(move || drop(done.send(work())))
        .map_err(|e| Error::failed(format!("cannot start a thread: {e}")))?;
    loop {
        stop.check()?;
        match result.recv_timeout(LOOK) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::failed("the thread that reads files panicked"));
            }
        }
    }
}

/// Returns None if the future was dropped. Drop the connection of a dropped query, too: its answer was not read.
#[expect(clippy::disallowed_methods, reason = "the only bounded wait")]
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, future).await.ok()
}

/// Returns whether the starter of this process (`nohup`, a shell) ignores a signal, which must stay so.
fn ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    // proc(5): a mask in hexadecimal digits, signal 1 is the lowest bit.
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & (1 << (signal as i32 - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::Stdio;

    use super::*;

    fn shell(script: &str) -> Group {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let group = Group::spawn(&mut command).expect("sh runs");
        while !group.has_ended() {
            std::thread::sleep(LOOK);
        }
        group
    }

    #[test]
    fn a_group_ends_with_what_its_leader_left_behind() {
        let began = Instant::now();
        let mut dropped = shell("sleep 100 & exit 3");
        let mut ended = shell("sleep 100 & exit 3");
        assert_eq!(ended.end().expect("its status").code(), Some(3));
        assert_eq!(ended.end().expect("it is kept").code(), Some(3));
        let mut outputs = [&mut dropped, &mut ended].map(|of| of.stdout.take().expect("a pipe"));
        drop(dropped);
        for output in &mut outputs {
            // A pipe ends with its last writer.
            assert_eq!(output.read_to_end(&mut Vec::new()).expect("its end"), 0);
        }
        assert!(began.elapsed() < Duration::from_mins(1));
    }

    #[test]
    fn what_is_left_alone_lives_on() {
        let mut group = shell("exec 3<&0; { read word <&3; echo \"$word\"; } & exit 3");
        let (input, output) = (group.stdin.take(), group.stdout.take());
        assert_eq!(group.leave().expect("its status").code(), Some(3));
        input.expect("a pipe").write_all(b"on\n").expect("it reads");
        let mut said = String::new();
        output.expect("a pipe").read_to_string(&mut said).expect("it writes");
        assert_eq!(said, "on\n");
    }

    #[test]
    fn signal_that_a_program_sends_twice_is_one() {
        let (mut first, began) = (None, Instant::now());
        let mut second = |kind, ms| is_second(&mut first, kind, began + Duration::from_millis(ms));
        assert!(!second(Kind::Terminated, 0) && !second(Kind::Terminated, 99));
        assert!(second(Kind::Terminated, 100), "a person asks again");
        assert!(second(Kind::Interrupted, 1), "of another kind");
    }

    #[test]
    fn what_blocks_is_left_when_asked_to_stop() {
        let stop = Stop::default();
        assert_eq!(unless_stopped(&stop, || Ok(5)).expect("done"), 5);
        let (never, waiting) = sync_channel::<u8>(0);
        let asking = stop.clone();
        let asked = std::thread::spawn(move || asking.ask(Kind::Interrupted));
        let ended = unless_stopped(&stop, move || Ok(waiting.recv()));
        assert_eq!(ended.expect_err("it blocks").kind(), Kind::Interrupted);
        asked.join().expect("no panic");
        drop(never);
    }

    #[test]
    fn the_first_reason_stays() {
        let stop = Stop::default();
        assert!(stop.check().is_ok());
        let other = stop.clone();
        other.ask(Kind::Terminated);
        other.ask(Kind::Interrupted);
        assert_eq!(stop.asked(), Some(Kind::Terminated));
        assert_eq!(stop.check().map_err(|e| e.kind()), Err(Kind::Terminated));
    }
}
