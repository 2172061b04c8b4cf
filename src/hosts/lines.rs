//! Lines of another process as a fuzzer hears them, and what they become in a step.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::check::{PartCheck, explain_line};
use super::clock;
use super::launch::Way;
use super::link::{Message, Unread, read};
use super::protocol::{FromRank, ToRank};
use crate::engine::{GroupPart, OutageWatch, ThreadCounts, ThreadEvent, name_host};
use crate::error::plain;
use crate::observe::{Ns, Timeline};

const HOST: &str = "c1";
const INTERVAL: Ns = 1_000_000_000;

/// The messages of some lines, written again.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Heard {
    pub lines: Vec<String>,
    /// The texts of them that a person sees.
    pub texts: Vec<String>,
}

impl Heard {
    fn read<M: Message + DeserializeOwned>(
        bytes: &[u8],
        mut take: impl FnMut(&mut Heard, M),
    ) -> Heard {
        let mut heard = Heard::default();
        let ended = read(bytes, |_, message: M| {
            heard.lines.push(write(&message));
            take(&mut heard, message);
        });
        match ended {
            Ok(()) => {}
            Err(Unread::Broken(why)) => heard.texts.push(why),
            Err(Unread::NoMessage(line)) => {
                let explained = explain_line((1, HOST, Way::Ssh), &line, false);
                heard.texts.push(explained.unwrap_or_else(|error| error.to_string()));
            }
        }
        heard
    }
}

fn write(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("plain data")
}

/// Hears lines of rank 0 as a rank does.
pub fn hear_rank_zero(bytes: &[u8]) -> Heard {
    Heard::read(bytes, |_, message| {
        if let ToRank::Open { at, .. } | ToRank::Go { start: at } = message {
            clock::instant(at);
        }
    })
}

/// Hears lines of a rank with one thread as rank 0 does, in a step that times so many statements.
pub fn hear_rank(bytes: &[u8], clients: usize, statements: usize) -> Heard {
    let group = GroupPart { clients, timed_statements: statements };
    let mut part = PartCheck::new(1, vec![group]);
    let mut step = HeardStep {
        timeline: Timeline::new(1, statements, INTERVAL),
        outages: OutageWatch::new(1, 0),
        done: None,
    };
    let heard = Heard::read(bytes, |heard, message| match message {
        FromRank::Event(group, event) if part.check(group, &event).is_none() => {
            step.take(event, heard);
        }
        FromRank::Server(seen) => heard.texts.extend(seen.err().map(|error| error.render())),
        _ => {}
    });
    step.outages.finish(INTERVAL, &step.timeline.entries);
    if let Some(counts) = step.done {
        counts.clone().merge(counts).failures.take_errors();
    }
    heard
}

struct HeardStep {
    timeline: Timeline,
    outages: OutageWatch,
    done: Option<ThreadCounts>,
}

impl HeardStep {
    fn take(&mut self, event: ThreadEvent, heard: &mut Heard) {
        match event {
            ThreadEvent::Interval(interval) => drop(self.timeline.add(0, *interval)),
            ThreadEvent::Service(mut report) => {
                name_host(&mut report.seen, HOST);
                self.outages.report(0, (report.until, report.ops), report.seen, Ns::MAX);
            }
            ThreadEvent::Done(mut counts) => {
                counts.failures.name_host(HOST);
                self.timeline.thread_done(0);
                self.done = Some(*counts);
            }
            ThreadEvent::Waiting(error)
            | ThreadEvent::Broken(error)
            | ThreadEvent::Late(error)
            | ThreadEvent::Lost(error) => heard.texts.push(error.render()),
            ThreadEvent::NotOpened(error) => heard.texts.push(error.error.render()),
            ThreadEvent::Abort(_, error) => heard.texts.push(plain(&error.to_string())),
            ThreadEvent::Said(text) => heard.texts.push(plain(&text)),
            ThreadEvent::Opened
            | ThreadEvent::Reopened
            | ThreadEvent::Warm
            | ThreadEvent::NeedsOps => {}
        }
    }
}
