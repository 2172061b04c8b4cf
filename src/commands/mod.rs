//! External commands, each in a process group of its own: suites that are timed, what runs beside a
//! window, and what starts, stops and resets a server.

pub(crate) mod beside;
pub(crate) mod suite;

use std::io::{self, Read, Seek};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, waitid};

use crate::error::{Error, Result};
use crate::plan::limits;
use crate::stop::{Group, Stop};

/// Between two looks for a signal.
const LOOK: Duration = Duration::from_millis(50);
/// Characters of a command's output that an error shows.
const SHOWN_MAX: usize = 1000;

/// Waits until a group's leader has ended, without taking its status. Returns the time since it
/// began, and true where a signal or the limit came first: then the group is asked to end, and killed
/// soon after.
fn wait(
    group: &Group,
    began: Instant,
    limit: Duration,
    stop: &Stop,
    look: &mut dyn FnMut(Duration),
) -> io::Result<(Duration, bool)> {
    let (sender, ended) = mpsc::channel();
    let leader = group.pid();
    // A thread of its own sees the end when it happens, and not at the next look.
    std::thread::Builder::new().name("command".to_owned()).spawn(move || {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(leader), flags) == Err(Errno::EINTR) {}
        let _ = sender.send(Instant::now());
    })?;
    let mut asked: Option<Instant> = None;
    loop {
        if let Ok(at) = ended.recv_timeout(LOOK) {
            return Ok((at.duration_since(began), asked.is_some()));
        }
        match asked {
            None if stop.asked().is_some() || began.elapsed() > limit => {
                group.signal(Signal::SIGTERM);
                asked = Some(Instant::now());
            }
            Some(since) if since.elapsed() > limits::COURTESY => group.signal(Signal::SIGKILL),
            _ => {}
        }
        look(began.elapsed());
    }
}

/// Runs a command to its end; what it starts may live on.
///
/// # Errors
///
/// Server: it cannot be started, fails, or takes longer than `limit`; with the end of what it
/// wrote. Interrupted: then it is ended too.
pub(crate) fn run(what: &str, words: &[String], limit: Duration, stop: &Stop) -> Result<()> {
    let (program, arguments) = words.split_first().expect("a command has a program");
    // Arguments may hold a password.
    let failed = |how: String| Error::server(format!("{what} ({program} …) {how}"));
    let not_started = |e: io::Error| failed(format!("cannot be started: {e}"));
    // A file, not a pipe: the server that it starts may inherit it and live on.
    let mut output = tempfile::tempfile().map_err(not_started)?;
    let [out, err] = [output.try_clone(), output.try_clone()];
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(out.map_err(not_started)?).stderr(err.map_err(not_started)?);
    let began = Instant::now();
    let mut group = Group::spawn(&mut command).map_err(not_started)?;
    let (_, cut) = wait(&group, began, limit, stop, &mut |_| {}).map_err(not_started)?;
    if cut {
        group.signal(Signal::SIGKILL);
        stop.check()?;
        return Err(failed(format!("has not ended within {} s", limit.as_secs())).hint(
            "`within` allows it more time; a command that starts a server must not wait for its end",
        ));
    }
    let status = group.leader.wait().map_err(|e| failed(format!("is lost: {e}")))?;
    if status.success() {
        return Ok(());
    }
    let mut text = Vec::new();
    // What cannot be read is not shown.
    let _ = output.rewind().and_then(|()| output.read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let text = text.trim_end();
    let from = text.char_indices().rev().nth(SHOWN_MAX).map_or(0, |(at, _)| at);
    let colon = if text.is_empty() { "" } else { ": " };
    Err(failed(format!("failed ({status}){colon}{}", &text[from..])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn shell(script: &str, within: Duration, stop: &Stop) -> Result<()> {
        run("start", &["sh", "-c", script, "marker"].map(str::to_owned), within, stop)
    }

    #[test]
    fn a_command_succeeds_fails_or_is_ended() {
        let stop = Stop::default();
        let long = Duration::from_mins(2);
        shell("sleep 3 & exit 0", long, &stop).expect("what it leaves running lives on");
        let error = shell("echo no such disk; exit 3", long, &stop).expect_err("fails");
        assert!(
            error.to_string().contains("no such disk") && !error.to_string().contains("marker")
        );
        let began = Instant::now();
        let error = shell("sleep 1000", Duration::from_millis(50), &stop).expect_err("late");
        assert!(error.to_string().contains("within"), "{error}");
        stop.ask(Kind::Interrupted);
        let error = shell("sleep 1000", long, &stop).expect_err("interrupted");
        assert_eq!(error.kind(), Kind::Interrupted);
        assert!(began.elapsed() < Duration::from_mins(1));
        let error = run("stop", &["/nonexistent".to_owned()], long, &Stop::default());
        assert!(error.expect_err("no program").to_string().contains("cannot be started"));
    }
}
