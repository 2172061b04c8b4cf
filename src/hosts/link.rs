//! Lines from one process to another: a thread writes them, another one reads them. Whoever has nothing to
//! say for a second says that it lives.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::clock;
use super::protocol::{FromRank, ToRank};
use crate::error::{Error, Result};
use crate::observe::Ns;

const BEAT: Duration = Duration::from_secs(1);
/// A process that is stopped for longer than a tick knows it afterwards.
const TICK: Duration = Duration::from_millis(100);
/// The longest time without a line from a process that lives.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

pub(super) trait Message: Serialize + Send + 'static {
    const BEAT: Self;
    /// The longest line, bytes.
    const LINE_MAX: u64;

    /// Enters the instant at which it is written, where it has one.
    fn stamp(&mut self, now: Ns);
}

impl Message for ToRank {
    const BEAT: ToRank = ToRank::Beat;
    /// A workload's SQL may have 64 MiB, with an escape for each byte.
    const LINE_MAX: u64 = 128 << 20;

    fn stamp(&mut self, now: Ns) {
        if let ToRank::Ping { sent } = self {
            *sent = now;
        }
    }
}

impl Message for FromRank {
    const BEAT: FromRank = FromRank::Beat;
    const LINE_MAX: u64 = 16 << 20;

    fn stamp(&mut self, now: Ns) {
        if let FromRank::Pong { answered, .. } = self {
            *answered = now;
        }
    }
}

/// The sending end. Nobody waits for a reader that is stuck.
#[derive(Debug)]
pub(super) struct Writer<M> {
    messages: Sender<M>,
    /// The longest delay of a tick.
    paused: Arc<AtomicU64>,
}

impl<M> Clone for Writer<M> {
    fn clone(&self) -> Writer<M> {
        Writer { messages: self.messages.clone(), paused: Arc::clone(&self.paused) }
    }
}

impl<M: Message> Writer<M> {
    /// Writes on a thread of its own, which ends with the last sender or with the reader.
    pub(super) fn start(mut out: impl Write + Send + 'static) -> Result<Writer<M>> {
        let (messages, waiting) = channel::<M>();
        let paused = Arc::new(AtomicU64::new(0));
        let noted = Arc::clone(&paused);
        let run = move || {
            let mut written = Instant::now();
            loop {
                let began = Instant::now();
                let received = waiting.recv_timeout(TICK);
                let late = began.elapsed().saturating_sub(TICK).as_nanos() as Ns;
                noted.fetch_max(late, Ordering::Relaxed);
                let mut message = match received {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Timeout) if written.elapsed() < BEAT => continue,
                    Err(RecvTimeoutError::Timeout) => M::BEAT,
                    Err(RecvTimeoutError::Disconnected) => return,
                };
                message.stamp(clock::now());
                let mut line = serde_json::to_vec(&message).expect("plain data");
                line.push(b'\n');
                if out.write_all(&line).and_then(|()| out.flush()).is_err() {
                    return;
                }
                written = Instant::now();
            }
        };
        spawn("write-lines", run)?;
        Ok(Writer { messages, paused })
    }

    /// Sends a message; one to a process that is gone is lost.
    pub(super) fn send(&self, message: M) {
        let _ = self.messages.send(message);
    }

    pub(super) fn take_paused(&self) -> Ns {
        self.paused.swap(0, Ordering::Relaxed)
    }
}

pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let started = Builder::new().name(name.to_owned()).spawn(run);
    started.map(drop).map_err(|e| {
        Error::failed(format!("cannot start a thread: {e}"))
            .hint("raise the limit on processes (ulimit -u)")
    })
}

/// The reason why no more lines are read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    Broken(String),
    /// A line that is no message; it may hold a secret.
    NoMessage(Vec<u8>),
}

/// Reads lines to the end of the input, or to one that is no message.
pub(super) fn read<M: Message + DeserializeOwned>(
    input: impl Read,
    mut take: impl FnMut(Ns, M),
) -> Result<(), Unread> {
    let (mut input, mut line) = (BufReader::new(input), Vec::new());
    loop {
        line.clear();
        let read = (&mut input).take(M::LINE_MAX).read_until(b'\n', &mut line);
        let now = clock::now();
        match read.map_err(|e| Unread::Broken(e.to_string()))? {
            0 => return Ok(()),
            _ if line.last() != Some(&b'\n') => {
                return Err(Unread::Broken("a line was cut off".to_owned()));
            }
            _ => {}
        }
        match serde_json::from_slice(&line) {
            Ok(message) => take(now, message),
            Err(_) => return Err(Unread::NoMessage(line)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINES: &str = "\
        \"Beat\"\n{\"Pong\":{\"sent\":1,\"received\":2,\"answered\":3}}\n{\"Event\":[0,\"Opened\"]}\n";

    fn messages(bytes: &[u8]) -> (usize, Result<(), Unread>) {
        let mut count = 0;
        let ended = read(bytes, |_, _: FromRank| count += 1);
        (count, ended)
    }

    #[test]
    fn lines_are_messages_up_to_one_that_is_none() {
        assert_eq!(messages(LINES.as_bytes()), (3, Ok(())));
        let (count, ended) = messages(format!("{LINES}Welcome to c1!\n{LINES}").as_bytes());
        assert_eq!((count, ended), (3, Err(Unread::NoMessage(b"Welcome to c1!\n".to_vec()))));
        let (count, ended) = messages(&LINES.as_bytes()[..LINES.len() - 1]);
        assert!(count == 2 && ended.is_err(), "the last one has no end");
    }

    proptest! {
        #[test]
        fn no_line_panics(at in 0..LINES.len(), byte: u8, more: Vec<u8>) {
            let mut bytes = LINES.as_bytes().to_vec();
            bytes[at] = byte;
            let bytes = [bytes, more].concat();
            let lines = bytes.split(|byte| *byte == b'\n').count();
            prop_assert!(messages(&bytes).0 < lines);
        }
    }
}
