//! Checks of what comes from a rank: its program is this one, and its events fit its part of a step. A step
//! indexes and adds without looking.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::LazyLock;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::launch::Way;
use super::protocol::{Hello, PROTOCOL};
use crate::engine::{self, GroupPart, ThreadEvent};
use crate::error::{Error, Result, clip};
use crate::observe::{NAMES_MAX, Ns, RecordedInterval, is_name};
use crate::summary::Program;

/// The cores that Linux knows at most.
const CORES_MAX: u32 = 8192;
/// Characters of a line that an error shows.
const SHOWN_MAX: usize = 200;

/// Returns the hash of the running program where its revision does not tell what it was built from.
pub(super) fn executable() -> Option<String> {
    static HASH: LazyLock<Option<String>> = LazyLock::new(|| {
        let mut file = BufReader::new(File::open("/proc/self/exe").ok()?);
        let mut hash = Sha256::new();
        loop {
            let part = file.fill_buf().ok()?;
            if part.is_empty() {
                return Some(format!("{:x}", hash.finalize()));
            }
            hash.update(part);
            let length = part.len();
            file.consume(length);
        }
    });
    let is_known = |revision: &String| !revision.ends_with('+');
    if engine::program().revision.as_ref().is_some_and(is_known) { None } else { HASH.clone() }
}

/// Compares the build of another process with this one; returns both as errors name them, if they differ: its
/// messages and its work may differ, too.
pub(super) fn compare_builds(
    protocol: u32,
    program: &Program,
    hash: Option<&str>,
) -> Option<[String; 2]> {
    let own = engine::program();
    if (protocol, program, hash) == (PROTOCOL, &own, executable().as_deref()) {
        return None;
    }
    let told = |program: &Program| {
        let revision = program.revision.as_deref().unwrap_or("no revision");
        clip(&format!("{} ({revision}, {})", program.version, program.profile), SHOWN_MAX)
    };
    let mut theirs = told(program);
    if *program == own {
        theirs.push_str(" of another build");
    }
    Some([theirs, told(&own)])
}

/// Reads the version of a greeting that this one cannot read; returns both as errors name them.
pub(super) fn compare_versions(greeting: &Value) -> [String; 2] {
    let version = greeting.pointer("/program/version").and_then(Value::as_str);
    let protocol = greeting.get("protocol").and_then(Value::as_u64);
    let protocol = protocol.map_or_else(|| "an unknown one".to_owned(), |of| of.to_string());
    let revision = greeting.pointer("/program/revision").and_then(Value::as_str);
    let told = |version: &str, revision: Option<&str>, protocol: &str| {
        let revision = revision.unwrap_or("no revision");
        clip(&format!("{version} ({revision}) with protocol {protocol}"), SHOWN_MAX)
    };
    let own = engine::program();
    [
        told(version.unwrap_or("of another version"), revision, &protocol),
        told(&own.version, own.revision.as_deref(), &PROTOCOL.to_string()),
    ]
}

/// Refuses another build, and what no host has.
pub(super) fn check_hello(hello: &Hello, of: (u32, &str, Way)) -> Result<()> {
    let builds = compare_builds(hello.protocol, &hello.program, hello.executable.as_deref());
    if let Some(builds) = builds {
        return Err(another_build(of, &builds));
    }
    if !(1..=CORES_MAX).contains(&hello.threads) {
        let (number, name, _) = of;
        let text =
            format!("rank {number} ({name}) has {} cores: no host has so many", hello.threads);
        return Err(Error::failed(text));
    }
    Ok(())
}

fn another_build((number, name, way): (u32, &str, Way), [theirs, own]: &[String; 2]) -> Error {
    Error::failed(format!("rank {number} ({name}) has loadgen {theirs}, and this is {own}"))
        .hint(way.same_program(name))
}

/// Explains a line that is no message; it is shown only before the greeting, when the rank has no password
/// yet that a launcher could send back.
pub(super) fn explain_line(of: (u32, &str, Way), text: &[u8], greeted: bool) -> Result<String> {
    let greeting = serde_json::from_slice::<Value>(text).ok();
    let hello = greeting.as_ref().and_then(|greeting| greeting.get("Hello"));
    if let Some(hello) = hello.filter(|hello| hello.get("protocol").is_some_and(Value::is_u64)) {
        return Err(another_build(of, &compare_versions(hello)));
    }
    if greeted {
        return Ok("it sent a line that is no message of loadgen's".to_owned());
    }
    let shown = clip(String::from_utf8_lossy(text).trim_end(), SHOWN_MAX);
    let (number, name, way) = of;
    let text = format!("rank {number} ({name}) is lost: '{shown}' is no message of loadgen's");
    let files = "whatever starts loadgen there must print nothing: look at the shell's start files";
    // No shell writes to a launcher's connection.
    let hint = if way == Way::Launcher { way.hint(name, None, false) } else { files.to_owned() };
    Err(Error::failed(text).hint(hint))
}

/// More than a step counts: no sum of fewer overflows.
const COUNT_MAX: u64 = 1 << 48;

fn are_counts<'a>(all: impl IntoIterator<Item = &'a u64>) -> bool {
    all.into_iter().all(|count| *count < COUNT_MAX)
}

/// The part of a step that a rank has, and what it has reported of it.
#[derive(Debug)]
pub(super) struct PartCheck {
    /// Threads that have not told their usage: each does with the last of its groups.
    threads: usize,
    groups: Vec<GroupCheck>,
}

#[derive(Debug)]
struct GroupCheck {
    part: GroupPart,
    opened: usize,
    is_warm: bool,
    is_done: bool,
    last_start: Ns,
}

impl PartCheck {
    pub(super) fn new(threads: usize, groups: Vec<GroupPart>) -> PartCheck {
        let check =
            |part| GroupCheck { part, opened: 0, is_warm: false, is_done: false, last_start: 0 };
        PartCheck { threads, groups: groups.into_iter().map(check).collect() }
    }

    pub(super) fn is_done(&self) -> bool {
        self.groups.iter().all(|group| group.is_done)
    }

    /// Takes note of an event of a group; returns what is wrong with it.
    pub(super) fn check(&mut self, group: u8, event: &ThreadEvent) -> Option<&'static str> {
        let all_done = self.is_done();
        let fits = match (self.groups.get_mut(usize::from(group)), event) {
            (None, _) => false,
            // These are of all groups.
            (_, ThreadEvent::Broken(_) | ThreadEvent::Late(_)) => !all_done,
            (Some(of), ThreadEvent::Done(counts)) => {
                let left = self.threads.checked_sub(counts.usage.len());
                self.threads = left.unwrap_or(0);
                of.fits(event) && left.is_some() && (self.threads == 0 || !self.is_done())
            }
            (Some(of), _) => of.fits(event),
        };
        (!fits).then_some("it sent an event that does not fit its part of the step")
    }
}

impl GroupCheck {
    fn fits(&mut self, event: &ThreadEvent) -> bool {
        match event {
            ThreadEvent::Service(report) => are_counts([&report.ops]),
            _ if self.is_done => false,
            ThreadEvent::Opened => {
                self.opened += 1;
                self.opened <= self.part.clients
            }
            ThreadEvent::Warm => !std::mem::replace(&mut self.is_warm, true),
            ThreadEvent::Interval(interval) => {
                // The end of one may be moved when the next has begun on another thread.
                let follows = self.last_start <= interval.start && interval.start <= interval.end;
                self.last_start = interval.start;
                let RecordedInterval { ops, statements, rows, unmatched, errors, .. } = &**interval;
                let named = interval.named.iter().flat_map(|of| [&of.ops, &of.retried]);
                follows
                    && interval.by_statement.len() == self.part.timed_statements
                    && interval.events.is_none()
                    && are_counts(named)
                    && interval.named.len() <= NAMES_MAX
                    && interval.named.iter().all(|of| is_name(&of.name))
                    && are_counts([ops, statements, rows, unmatched, errors])
            }
            ThreadEvent::Done(counts) => {
                self.is_done = true;
                counts.ops_by_client.len() == self.part.clients
                    && are_counts(counts.ops_by_client.iter().chain(&counts.ops_by_table))
            }
            ThreadEvent::NeedsOps | ThreadEvent::Lost(_) => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ThreadCounts;
    use crate::observe::NamedOps;

    #[test]
    fn event_is_refused_when_it_does_not_fit_the_part() {
        use ThreadEvent::{Lost, NeedsOps, Opened, Warm};
        let interval = |start, end| {
            ThreadEvent::Interval(Box::new(RecordedInterval { start, end, ..Default::default() }))
        };
        let done = |clients| {
            let counts = ThreadCounts { ops_by_client: vec![7; clients], ..Default::default() };
            ThreadEvent::Done(Box::new(counts))
        };
        let part = |clients| GroupPart { clients, timed_statements: 0 };
        let refused = |events: &[ThreadEvent]| {
            let mut check = PartCheck::new(0, vec![part(1)]);
            events.iter().position(|event| check.check(0, event).is_some())
        };
        assert_eq!(refused(&[Opened, Warm, interval(0, 5), interval(5, 9), done(1)]), None);
        assert_eq!(refused(&[Opened, Opened]), Some(1));
        assert_eq!(refused(&[Warm, Warm]), Some(1));
        assert_eq!(refused(&[interval(4, 9), interval(0, 5)]), Some(1));
        assert_eq!(refused(&[interval(5, 4)]), Some(0));
        let many = RecordedInterval { ops: u64::MAX, end: 5, ..Default::default() };
        assert_eq!(refused(&[ThreadEvent::Interval(Box::new(many))]), Some(0));
        let named = vec![NamedOps { ops: u64::MAX, ..NamedOps::new("payment") }];
        let many = RecordedInterval { named, end: 5, ..Default::default() };
        assert_eq!(refused(&[ThreadEvent::Interval(Box::new(many))]), Some(0));
        assert_eq!(refused(&[done(2)]), Some(0));
        assert_eq!(refused(&[done(1), done(1)]), Some(1));
        assert_eq!(refused(&[NeedsOps]), Some(0));
        assert_eq!(refused(&[Lost(Error::failed("x"))]), Some(0));
        let mut check = PartCheck::new(0, vec![part(1), part(2)]);
        assert!(check.check(2, &Opened).is_some(), "there are two groups");
        let broken = ThreadEvent::Broken(Error::failed("x"));
        for (group, event, fits) in [
            (0, done(1), true),
            (0, Opened, false),
            (1, Opened, true),
            (0, broken.clone(), true),
            (1, done(1), false),
            (1, broken, false),
        ] {
            assert_eq!(check.check(group, &event).is_none(), fits, "{group} {event:?}");
        }
    }

    #[test]
    fn usage_of_all_threads_has_come_when_the_last_group_is_done() {
        let check = |threads| {
            let part = GroupPart { clients: 0, timed_statements: 0 };
            let mut check = PartCheck::new(threads, vec![part; 2]);
            let done = ThreadEvent::Done(Box::default());
            [0, 1].map(|group| check.check(group, &done).is_none())
        };
        assert_eq!((check(0), check(1)), ([true, true], [true, false]));
    }

    #[test]
    fn line_is_shown_until_there_is_a_password_to_show() {
        let explain =
            |text: &str, greeted| explain_line((1, "c1", Way::Ssh), text.as_bytes(), greeted);
        let error = explain("Welcome to c1!\n", false).expect_err("no greeting");
        assert!(error.to_string().contains("Welcome") && error.render().contains("start files"));
        assert!(!explain("Welcome to c1!\n", true).expect("a line").contains("Welcome"));
        let other = r#"{"Hello":{"protocol":99,"program":{"version":"9.1"}}}"#;
        let error = explain(other, false).expect_err("another program").to_string();
        assert!(error.contains("9.1") && error.contains("99"), "{error}");
    }
}
