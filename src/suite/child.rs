//! One external command in a process group of its own: started, timed, ended.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, waitid};

use crate::error::plain;
use crate::groups::Group;
use crate::observe::process::{Cost, children_usage};
use crate::plan::limits;
use crate::stop::Stop;

/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(50);

/// What one command took.
#[derive(Debug)]
pub(super) struct Timed {
    /// From its start to its end.
    pub(super) wall: Duration,
    /// Of it and of the processes that it waited for.
    pub(super) cost: Cost,
    pub(super) ended: Ended,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// With exit status 0.
    Ok,
    /// Otherwise; how.
    Failed(String),
    /// By a signal to loadgen.
    Interrupted,
}

impl Timed {
    /// It did not start.
    pub(super) fn not_started(error: &io::Error) -> Timed {
        let how = plain(&format!("not started: {error}"));
        Timed { wall: Duration::ZERO, cost: Cost::default(), ended: Ended::Failed(how) }
    }
}

/// Runs a command to its end. When loadgen is asked to stop, its process group is asked to end,
/// and killed soon after. What it leaves behind in its group ends with it.
pub(super) fn run(mut command: Command, stop: &Stop, look: &mut dyn FnMut(Duration)) -> Timed {
    command.stdin(Stdio::null());
    // Children that are waited for while it runs are its own: loadgen has no others to wait for.
    let before = children_usage();
    let began = Instant::now();
    let mut group = match Group::spawn(&mut command) {
        Ok(group) => group,
        Err(error) => return Timed::not_started(&error),
    };
    let (wall, interrupted) = wait(&group, began, stop, look);
    // Its own process is not waited for yet: the group's number is nobody else's.
    group.signal(Signal::SIGKILL);
    let status = group.wait();
    let cost = children_usage().since(&before);
    let ended = match status {
        _ if interrupted => Ended::Interrupted,
        Ok(status) if status.success() => Ended::Ok,
        Ok(status) => Ended::Failed(how(status)),
        Err(error) => Ended::Failed(error.to_string()),
    };
    Timed { wall, cost, ended }
}

/// Waits until the leader of the group has ended, without taking its status; says when that was
/// and whether loadgen was asked to stop.
fn wait(
    group: &Group,
    began: Instant,
    stop: &Stop,
    look: &mut dyn FnMut(Duration),
) -> (Duration, bool) {
    let (sender, ended) = mpsc::channel();
    let leader = group.pid();
    // A thread of its own sees the end when it happens, and not at the next look.
    let watching = std::thread::Builder::new().name("suite".to_owned()).spawn(move || {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(leader), flags) == Err(nix::errno::Errno::EINTR) {}
        let _ = sender.send(Instant::now());
    });
    if watching.is_err() {
        // Too many threads: the caller waits instead, and a signal has to wait for it.
        return (began.elapsed(), false);
    }
    let mut asked: Option<Instant> = None;
    loop {
        match ended.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(at) => return (at.duration_since(began), asked.is_some()),
            Err(RecvTimeoutError::Disconnected) => return (began.elapsed(), asked.is_some()),
        }
        match asked {
            None if stop.asked().is_some() => {
                group.signal(Signal::SIGTERM);
                asked = Some(Instant::now());
            }
            Some(since) if since.elapsed() > limits::COURTESY => {
                group.signal(Signal::SIGKILL);
            }
            _ => {}
        }
        look(began.elapsed());
    }
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("signal {signal}"),
            Err(_) => format!("signal {number}"),
        },
        (None, None) => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use nix::unistd::Pid;

    use super::*;
    use crate::error::Kind;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn run_it(command: Command, stop: &Stop) -> Timed {
        run(command, stop, &mut |_| {})
    }

    #[test]
    fn its_end_and_time_are_told() {
        let stop = Stop::default();
        let slept = run_it(shell("sleep 0.2"), &stop);
        assert_eq!(slept.ended, Ended::Ok);
        assert!(slept.wall >= Duration::from_millis(200) && slept.wall < Duration::from_mins(1));
        let failed = |script: &str| match run_it(shell(script), &stop).ended {
            Ended::Failed(how) => how,
            other => panic!("{other:?}"),
        };
        assert_eq!(failed("exit 7"), "exit 7");
        assert_eq!(failed("kill -9 $$"), "signal SIGKILL");
        match run_it(Command::new("/nonexistent/program"), &stop).ended {
            Ended::Failed(how) => assert!(how.starts_with("not started: "), "{how}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn processor_time_of_grandchildren_counts() {
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let timed = run_it(shell(&format!("sh -c '{spin}'; sleep 0.01")), &Stop::default());
        let cpu = timed.cost.user + timed.cost.sys;
        assert!(cpu > Duration::from_millis(10), "{timed:?}");
    }

    #[test]
    fn a_signal_ends_the_whole_group() {
        let dir = tempfile::tempdir().expect("a directory");
        let (ready, asked) = (dir.path().join("ready"), dir.path().join("asked"));
        let script = format!(
            "trap 'echo >{1}; exit 1' TERM; sleep 1000 & echo $! >{0}.new; mv {0}.new {0}; wait",
            ready.display(),
            asked.display()
        );
        let stop = Stop::default();
        let asker = stop.clone();
        let file = ready.clone();
        let asking = std::thread::spawn(move || {
            let pid = loop {
                match std::fs::read_to_string(&file) {
                    Ok(pid) => break pid,
                    Err(_) => std::thread::sleep(Duration::from_millis(10)),
                }
            };
            asker.ask(Kind::Interrupted);
            pid.trim().parse::<i32>().expect("a pid")
        });
        let timed = run_it(shell(&script), &stop);
        assert_eq!(timed.ended, Ended::Interrupted);
        assert!(asked.exists(), "it was not asked before it was killed");
        ends(Pid::from_raw(asking.join().expect("asked")));
    }

    /// Orphans are waited for by init: until then they are there, and dead.
    fn ends(process: Pid) {
        let gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            stat.rsplit(')')
                .next()
                .is_none_or(|rest| rest.trim().is_empty() || rest.trim().starts_with('Z'))
        };
        let until = Instant::now() + Duration::from_mins(1);
        while !gone() {
            assert!(Instant::now() < until, "{process} is still there");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn what_it_leaves_behind_ends_with_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("pid");
        let script = format!("sleep 1000 & echo $! >{}; exit 0", file.display());
        assert_eq!(run_it(shell(&script), &Stop::default()).ended, Ended::Ok);
        let pid = std::fs::read_to_string(&file).expect("written before its end");
        ends(Pid::from_raw(pid.trim().parse().expect("a pid")));
    }
}
