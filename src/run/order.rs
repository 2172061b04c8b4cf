//! Commands that start, stop and reset a server: argument lists, no shell.

use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::error::{Error, Result};
use crate::groups::Group;
use crate::stop::Stop;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Characters of its output that an error shows.
const SHOWN_MAX: usize = 1000;

/// Runs a command to its end.
///
/// # Errors
///
/// Server: it cannot be started, fails, or takes longer than `within`; with the end of what it
/// wrote. Interrupted: then it is ended too.
pub(super) fn run(what: &str, words: &[String], within: Duration, stop: &Stop) -> Result<()> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    // Arguments may hold a password.
    let failed = |how: String| Error::server(format!("{what} ({program} …) {how}"));
    // A file, not a pipe: the server that it starts may inherit it and live on.
    let mut output =
        tempfile::tempfile().map_err(|e| failed(format!("has no output file: {e}")))?;
    let handle = |file: &File| file.try_clone().map(Stdio::from);
    let (out, err) = handle(&output)
        .and_then(|out| Ok((out, handle(&output)?)))
        .map_err(|e| failed(format!("has no output file: {e}")))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(out).stderr(err);
    let mut group =
        Group::spawn(&mut command).map_err(|e| failed(format!("cannot be started: {e}")))?;
    let began = Instant::now();
    let status = loop {
        match group.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(e) => return Err(failed(format!("is lost: {e}"))),
        }
        let late = began.elapsed() > within;
        if late || stop.asked().is_some() {
            group.signal(Signal::SIGTERM);
            std::thread::sleep(Duration::from_millis(200));
            group.signal(Signal::SIGKILL);
            drop(group);
            stop.check()?;
            return Err(failed(format!("has not ended within {} s", within.as_secs()))
                .hint("`within` allows it more time; a command that starts a server must not wait for its end"));
        }
        std::thread::sleep(LOOK_EVERY);
    };
    if status.success() {
        return Ok(());
    }
    let mut text = Vec::new();
    // What cannot be read is not shown.
    let _ = output.rewind().and_then(|()| output.read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let text = text.trim_end();
    let from = text.char_indices().rev().nth(SHOWN_MAX).map_or(0, |(at, _)| at);
    let said = text.get(from..).unwrap_or_default();
    Err(failed(match said {
        "" => format!("failed ({status})"),
        said => format!("failed ({status}): {said}"),
    }))
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
