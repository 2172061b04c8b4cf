//! Ops without a result: errors by code, what the policy makes of them, and what is in doubt. Counted,
//! never dropped, never silently retried.

use std::time::Duration;

use super::ledger::add;
use super::outages::{Events, add_error};
use crate::error::{Error, plain};
use crate::mysql::{Class, Failure, LOST, class};
use crate::observe::recorder::Ns;
use crate::plan::{OnError, units};
use crate::summary::ErrorCount;

/// Different errors kept apart at most; a server that makes up codes must not fill memory.
const KINDS_MAX: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpError {
    Failure(Failure),
    Wrong(String),
    Driver(String),
    /// No answer for so long: given up, and the connection with it.
    Timeout(Duration),
    /// This, and then ROLLBACK failed too: the next BEGIN would commit what is still open.
    LeftOpen(Box<OpError>),
}

impl OpError {
    /// Tells its class in the summary, whether the session is as good as before, and whether a write that
    /// ended so may have been done all the same.
    fn traits(&self) -> (&'static str, bool, bool) {
        match self {
            OpError::Failure(Failure::Server { code, .. }) => {
                let class = class(*code);
                (class.name(), class.keeps_session(), class.leaves_doubt())
            }
            OpError::Failure(Failure::Lost(_)) => ("lost", false, true),
            // What a wrong answer says of a write is not to be trusted.
            OpError::Wrong(_) => ("wrong", true, true),
            OpError::Driver(_) => ("driver", false, true),
            OpError::Timeout(_) => ("timeout", false, true),
            OpError::LeftOpen(error) => (error.traits().0, false, error.leaves_doubt()),
        }
    }

    pub(crate) fn keeps_session(&self) -> bool {
        self.traits().1
    }

    pub(crate) fn leaves_doubt(&self) -> bool {
        self.traits().2
    }

    /// Adds a ROLLBACK that failed, too. Of the two it is the one that leaves a doubt.
    pub(crate) fn left_open(self, rollback: OpError) -> OpError {
        OpError::LeftOpen(Box::new(if self.leaves_doubt() { self } else { rollback }))
    }

    pub(crate) fn goes_on(&self, policy: OnError) -> bool {
        let usual = matches!(self, OpError::Failure(Failure::Server { code, .. })
            if class(*code) == Class::Session);
        usual || (self.keeps_session() && policy != OnError::Abort)
    }

    pub(crate) fn reopens(&self, policy: OnError) -> bool {
        !self.keeps_session() && policy == OnError::Reconnect
    }

    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            OpError::Failure(Failure::Server { code, .. }) => Some(*code),
            OpError::LeftOpen(error) => error.code(),
            _ => None,
        }
    }

    fn count(&self) -> ErrorCount {
        let (sqlstate, message) = match self {
            OpError::Failure(Failure::Server { sqlstate, message, .. }) => {
                (Some(sqlstate.clone()), message.clone())
            }
            OpError::Failure(Failure::Lost(what))
            | OpError::Wrong(what)
            | OpError::Driver(what) => (None, what.clone()),
            OpError::Timeout(_) => (None, self.to_string()),
            OpError::LeftOpen(error) => return error.count(),
        };
        let (code, class) = (self.code(), self.traits().0.to_owned());
        ErrorCount { code, sqlstate, class, message: plain(&message), count: 1 }
    }
}

impl std::fmt::Display for OpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpError::Failure(failure) => failure.fmt(f),
            OpError::Wrong(what) => write!(f, "wrong answer: {what}"),
            OpError::Driver(what) => write!(f, "the driver panicked on an answer: {what}"),
            OpError::Timeout(limit) => {
                write!(f, "no answer within {} (--op-timeout)", units::duration(*limit))
            }
            OpError::LeftOpen(error) => write!(f, "{error} (and ROLLBACK failed)"),
        }
    }
}

/// What an engine thread counted of ops without a result.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    /// By class and code; the text is that of the first.
    errors: Vec<ErrorCount>,
    /// Errors since the last report to the watch over outages.
    pub new: Events,
    pub reconnects: u64,
    /// Ops with writes that may have been done or not.
    pub in_doubt: u64,
    pub abandoned: u64,
    /// Of those in doubt and not given up, those of the window.
    pub window_in_doubt: u64,
    /// Of those given up, those of the window.
    pub window_abandoned: u64,
}

impl Failures {
    pub(crate) fn add(&mut self, error: &OpError) {
        self.count(error.count());
    }

    /// Counts a connection that could not be opened again: no op of anybody's.
    pub(crate) fn refused(&mut self, now: Ns, failure: Failure) {
        let text = format!("cannot connect: {failure}");
        let refused = OpError::Failure(failure);
        add_error(&mut self.new, now, refused.code(), &text);
        self.count(ErrorCount { class: "connect".to_owned(), ..refused.count() });
    }

    fn count(&mut self, new: ErrorCount) {
        let same = |old: &&mut ErrorCount| old.code == new.code && old.class == new.class;
        if let Some(old) = self.errors.iter_mut().find(same) {
            old.count += new.count;
        } else if self.errors.len() < KINDS_MAX {
            self.errors.push(new);
        } else {
            // More codes than there are: they count with the last.
            self.errors[KINDS_MAX - 1].count += new.count;
        }
    }

    pub(crate) fn merge(&mut self, other: Failures) {
        other.errors.into_iter().for_each(|error| self.count(error));
        add!(self, other; reconnects, in_doubt, abandoned, window_in_doubt, window_abandoned);
    }

    pub(crate) fn give_up(&mut self, measured: bool) {
        self.abandoned += 1;
        self.window_abandoned += u64::from(measured);
    }

    pub(crate) fn take_errors(&mut self) -> Vec<ErrorCount> {
        self.errors.sort_by_key(|e| (std::cmp::Reverse(e.count), e.code));
        std::mem::take(&mut self.errors)
    }
}

/// Makes the error of a step that cannot go on after what happened to one client. `built_in` says
/// that the workload is loadgen's own.
pub(super) fn abort_error(client: u32, error: &OpError, built_in: bool) -> Error {
    let hints: &[&str] = match error {
        OpError::Failure(Failure::Lost(_)) => {
            &[LOST, "--on-error reconnect opens lost connections again and goes on"]
        }
        OpError::Wrong(_) if built_in => {
            &["the tables are not what this workload needs; loadgen prepare makes them"]
        }
        OpError::Wrong(_) => {
            &["the tables do not hold what the workload's `expect` says: one of both must change"]
        }
        OpError::Timeout(_) | OpError::LeftOpen(_) => {
            &["--on-error reconnect drops the connection and goes on with another one"]
        }
        OpError::Failure(Failure::Server { .. }) => {
            &["--on-error continue counts errors of the server and goes on"]
        }
        OpError::Driver(_) => &[],
    };
    let failed = Error::failed(format!("client {client}: {error}"));
    hints.iter().fold(failed, |failed, hint| failed.hint(*hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(code: u16) -> OpError {
        OpError::Failure(Failure::Server {
            code,
            sqlstate: "40001".to_owned(),
            message: format!("text of {code} \u{1b}[2J"),
        })
    }

    #[test]
    fn codes_are_counted_and_only_session_errors_keep_the_session() {
        let mut errors = Failures::default();
        errors.add(&server(1290));
        errors.add(&server(1213));
        let mut more = Failures::default();
        more.add(&server(1213));
        more.add(&OpError::Failure(Failure::Lost("reset".to_owned())));
        more.add(&OpError::Wrong("0 rows".to_owned()));
        errors.merge(more);
        let counts = errors.take_errors();
        assert_eq!((counts[0].code, counts[0].count), (Some(1213), 2));
        assert_eq!(counts.len(), 4);
        assert!(!counts[0].message.contains('\u{1b}'));
    }

    #[test]
    fn each_policy_does_more_than_the_one_before() {
        let lost = || OpError::Failure(Failure::Lost(String::new()));
        let policies = [OnError::Abort, OnError::Continue, OnError::Reconnect];
        // Goes on, goes on with another connection.
        let of =
            |error: OpError| policies.map(|policy| (error.goes_on(policy), error.reopens(policy)));
        let (end, goes_on, reopens) = ((false, false), (true, false), (false, true));
        assert_eq!(of(server(1213)), [goes_on; 3]);
        assert_eq!(of(server(1290)), [end, goes_on, goes_on]);
        assert_eq!(of(OpError::Wrong(String::new())), [end, goes_on, goes_on]);
        let session_gone = [end, end, reopens];
        assert_eq!(of(server(1927)), session_gone);
        assert_eq!(of(lost()), session_gone);
        assert_eq!(of(OpError::Timeout(Duration::from_secs(1))), session_gone);
        assert_eq!(of(OpError::Driver(String::new())), session_gone);
    }

    #[test]
    fn a_wrong_answer_to_a_workload_of_ones_own_names_no_prepare() {
        let hints = |built_in| {
            let error = abort_error(1, &OpError::Wrong("0 rows".to_owned()), built_in);
            error.hints().join(" ")
        };
        assert!(hints(true).contains("loadgen prepare"));
        assert!(!hints(false).is_empty() && !hints(false).contains("prepare"));
    }

    #[test]
    fn a_rollback_that_fails_hides_no_doubt_and_ends_the_session() {
        // The first may have been committed, the second was not; both keep the session.
        for both in [server(1180).left_open(server(1290)), server(1290).left_open(server(1180))] {
            assert_eq!((both.leaves_doubt(), both.code()), (true, Some(1180)));
            assert!(!both.keeps_session());
            assert_eq!(both.count(), server(1180).count());
            assert!(both.reopens(OnError::Reconnect) && !both.reopens(OnError::Continue));
            assert!(!both.goes_on(OnError::Reconnect));
        }
        let neither = server(1205).left_open(server(1290));
        assert_eq!((neither.leaves_doubt(), neither.code()), (false, Some(1290)));
        assert!(!neither.goes_on(OnError::Abort));
    }

    #[test]
    fn refused_connections_are_counted_apart() {
        let mut errors = Failures::default();
        let full = || Failure::Server {
            code: 1040,
            sqlstate: "08004".to_owned(),
            message: "Too many connections".to_owned(),
        };
        errors.add(&OpError::Failure(full()));
        errors.refused(0, full());
        errors.refused(0, full());
        let counts = errors.take_errors();
        assert_eq!((counts[0].class.as_str(), counts[0].count), ("connect", 2));
        assert_eq!((counts[1].class.as_str(), counts[1].code), ("full", Some(1040)));
    }

    #[test]
    fn a_server_that_makes_up_codes_does_not_fill_memory() {
        let mut errors = Failures::default();
        (0..5000).for_each(|code| errors.add(&server(code)));
        let counts = errors.take_errors();
        assert_eq!(counts.len(), KINDS_MAX);
        assert_eq!(counts.iter().map(|c| c.count).sum::<u64>(), 5000);
    }
}
