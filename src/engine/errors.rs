//! Ops without a result: errors by code, what the policy makes of them, and what is in doubt. Counted,
//! never dropped, never silently retried.
//!
//! The ledger says what acknowledged writes change, by table, in all phases. A write is acknowledged
//! when the answer says so that makes it last: its own with autocommit, that of COMMIT otherwise. One
//! whose answer never came is in doubt, whatever the server did.
//!
//! Outages are times in which no op succeeds on any client while errors occur. The watch over them goes no
//! further than all threads have reported.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, plain};
use crate::judge::thresholds::WHOLE_INTERVAL;
use crate::mysql::{Failure, Tried, class, hint, recurs};
use crate::observe::{NAMES_MAX, Ns, seconds};
use crate::plan::{OnError, Plan, units};
use crate::stats;
use crate::summary::{Doubt, ErrorCount, Interval, LedgerEntry, Outage, Phase};
use crate::terms::{ErrorClass, add};
use crate::workload::Effect;

#[derive(Debug, Clone)]
pub enum EndReason {
    Client(ClientAction, Failure),
    /// More arrivals wait than `Rules::queue_max`.
    Queue,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientAction {
    Connect,
    Prepare,
    Execute(String),
    Query(String),
    /// A bulk statement, because its next row does not fit.
    Rows(String),
    /// The last rows of a bulk statement, when the run is over.
    Rest(String),
    /// A function of a script, which failed in these words.
    Script(ScriptPart, String),
}

/// The part of a thread of a script: up to its last event, or after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScriptPart {
    Run,
    End,
}

impl ClientAction {
    /// Returns whether it came when the run was over.
    pub(crate) fn is_late(&self) -> bool {
        matches!(self, ClientAction::Rest(_) | ClientAction::Script(ScriptPart::End, _))
    }
}

/// A connection that was not opened; with the refusal as it came where somebody shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenError {
    pub error: Error,
    pub refused: Option<Box<(ClientAction, Failure)>>,
}

impl OpenError {
    pub(super) fn refused(action: ClientAction, failure: Failure) -> OpenError {
        let error = match &action {
            ClientAction::Script(_, words) => Error::failed(words.clone()),
            _ => Error::server(failure.to_string()),
        };
        OpenError { error, refused: Some(Box::new((action, failure))) }
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> OpenError {
        OpenError { error, refused: None }
    }
}

/// Different errors kept apart at most; a server that makes up codes must not fill memory.
const KINDS_MAX: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OpError {
    /// With the request where somebody shows it (`Rules::raw_refusals`), or the loop decides by it.
    Failure(Failure, Option<Box<ClientAction>>),
    Wrong(String),
    /// No answer for so long: given up, and the connection with it.
    Timeout(Duration),
    /// No answer until the drain was over.
    Unanswered,
    /// This, and then ROLLBACK failed too: the next BEGIN would commit what is still open.
    LeftOpen(Box<OpError>),
    /// A script failed, in these words.
    Script(ScriptPart, String),
}

impl OpError {
    fn class(&self) -> ErrorClass {
        match self {
            OpError::Failure(Failure::Server { code, .. }, _) => class(*code),
            OpError::Failure(Failure::Lost(_), _) => ErrorClass::Lost,
            OpError::Wrong(_) | OpError::Script(..) => ErrorClass::Wrong,
            OpError::Timeout(_) | OpError::Unanswered => ErrorClass::Timeout,
            OpError::LeftOpen(error) => error.class(),
        }
    }

    pub(crate) fn keeps_session(&self) -> bool {
        !matches!(self, OpError::LeftOpen(_)) && self.class().keeps_session()
    }

    /// Returns whether a client could not log in again after so many ops.
    pub(super) fn is_of_login(&self) -> bool {
        matches!(self, OpError::Failure(_, Some(action)) if **action == ClientAction::Connect)
    }

    /// Returns whether it lost the rows of a bulk statement.
    pub(super) fn is_of_rows(&self) -> bool {
        let OpError::Failure(_, Some(action)) = self else { return false };
        matches!(**action, ClientAction::Rows(_) | ClientAction::Rest(_))
    }

    pub(crate) fn leaves_doubt(&self) -> bool {
        self.class().leaves_doubt()
    }

    /// Adds a ROLLBACK that failed, too. Of the two it is the one that leaves a doubt.
    pub(crate) fn left_open(self, rollback: OpError) -> OpError {
        OpError::LeftOpen(Box::new(if self.leaves_doubt() { self } else { rollback }))
    }

    pub(crate) fn goes_on(&self, policy: OnError) -> bool {
        let usual = matches!(self, OpError::Failure(Failure::Server { code, .. }, _)
            if class(*code) == ErrorClass::Session);
        usual || (self.keeps_session() && policy != OnError::Abort)
    }

    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            OpError::Failure(Failure::Server { code, .. }, _) => Some(*code),
            OpError::LeftOpen(error) => error.code(),
            _ => None,
        }
    }

    pub(crate) fn count(&self) -> ErrorCount {
        let (sqlstate, message) = match self {
            OpError::Failure(Failure::Server { sqlstate, message, .. }, _) => {
                (Some(sqlstate.clone()), message.clone())
            }
            OpError::Failure(Failure::Lost(loss), _) => (None, loss.why.clone()),
            OpError::Wrong(what) | OpError::Script(_, what) => (None, what.clone()),
            OpError::Timeout(_) | OpError::Unanswered => (None, self.to_string()),
            OpError::LeftOpen(error) => return error.count(),
        };
        let (code, class) = (self.code(), self.class());
        ErrorCount { code, sqlstate, class, message: plain(&message), count: 1 }
    }
}

impl From<Failure> for OpError {
    fn from(failure: Failure) -> OpError {
        OpError::Failure(failure, None)
    }
}

impl std::fmt::Display for OpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpError::Failure(failure, _) => failure.fmt(f),
            OpError::Wrong(what) => write!(f, "wrong answer: {what}"),
            OpError::Script(_, words) => f.write_str(words),
            OpError::Timeout(limit) => {
                write!(f, "no answer within {} (--op-timeout)", units::duration(*limit))
            }
            OpError::Unanswered => f.write_str("no answer by the end of the drain"),
            OpError::LeftOpen(error) => write!(f, "{error} (and ROLLBACK failed)"),
        }
    }
}

/// Errors by class and code; the text is that of the first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct ErrorCounts(Vec<ErrorCount>);

impl ErrorCounts {
    fn add(&mut self, new: ErrorCount) {
        let same = self.0.iter().position(|old| old.code == new.code && old.class == new.class);
        // More codes than there are: they count with the last.
        let last = (self.0.len() >= KINDS_MAX).then_some(KINDS_MAX - 1);
        match same.or(last) {
            Some(at) => self.0[at].count = self.0[at].count.saturating_add(new.count),
            None => self.0.push(new),
        }
    }

    fn into_sorted(mut self) -> Vec<ErrorCount> {
        self.0.sort_by_key(|e| (std::cmp::Reverse(e.count), e.code));
        self.0
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failures {
    errors: ErrorCounts,
    /// Those of ops that a script gave a name.
    named: BTreeMap<String, ErrorCounts>,
    pub reconnects: u64,
    /// Ops with writes that may have been done or not.
    pub in_doubt: u64,
    pub abandoned: u64,
    /// Ops of the window that are in doubt and were not given up.
    pub window_in_doubt: u64,
    pub window_abandoned: u64,
}

/// Adds errors to the sum of their class.
pub(crate) fn add_class(sums: &mut Vec<(ErrorClass, u64)>, class: &ErrorClass, count: u64) {
    match sums.iter_mut().find(|(known, _)| known == class) {
        Some((_, sum)) => *sum = sum.saturating_add(count),
        None => sums.push((class.clone(), count)),
    }
}

impl Failures {
    pub(crate) fn count_refused_reconnect(&mut self, refused: &OpError) {
        self.count(ErrorCount { class: ErrorClass::Connect, ..refused.count() });
    }

    pub(crate) fn count(&mut self, new: ErrorCount) {
        self.errors.add(new);
    }

    /// Counts an error of an op by its name, too.
    pub(crate) fn count_named(&mut self, name: String, new: ErrorCount) {
        if self.named.len() < NAMES_MAX || self.named.contains_key(&name) {
            self.named.entry(name).or_default().add(new);
        }
    }

    /// Adds up the errors by class; of none it allocates nothing.
    pub(crate) fn by_class(&self) -> Vec<(ErrorClass, u64)> {
        let mut sums = Vec::new();
        for error in &self.errors.0 {
            add_class(&mut sums, &error.class, error.count);
        }
        sums
    }

    pub(crate) fn name_host(&mut self, host: &str) {
        for error in self.named.values_mut().chain([&mut self.errors]).flat_map(|of| &mut of.0) {
            error.message = format!("{host}: {}", error.message);
        }
    }

    pub(crate) fn merge(&mut self, other: Failures) {
        other.errors.0.into_iter().for_each(|error| self.count(error));
        for (name, errors) in other.named {
            errors.0.into_iter().for_each(|error| self.count_named(name.clone(), error));
        }
        add!(self, other; reconnects, in_doubt, abandoned, window_in_doubt, window_abandoned);
    }

    pub(crate) fn take_errors(&mut self) -> Vec<ErrorCount> {
        std::mem::take(&mut self.errors).into_sorted()
    }

    /// Lists the errors of ops with a name by these.
    pub(crate) fn list_named(&self) -> BTreeMap<String, Vec<ErrorCount>> {
        let list = |(name, of): (&String, &ErrorCounts)| (name.clone(), of.clone().into_sorted());
        self.named.iter().map(list).collect()
    }
}

/// Makes the error of a step that one client's error ends.
pub(super) fn abort_error(client: u32, error: &OpError, plan: &Plan) -> Error {
    let policy = plan.policy.on_error;
    let hints: Vec<&str> = match error {
        OpError::Failure(Failure::Lost(loss), _) => vec![loss.hint(), RECONNECT],
        OpError::Wrong(_) => vec![if plan.workload.built_in { OTHER_TABLES } else { OTHER_ROWS }],
        OpError::Script(..) => Vec::new(),
        OpError::Timeout(_) if plan.script.is_some() => vec![OWN_CONNECTIONS],
        OpError::Timeout(_) | OpError::Unanswered | OpError::LeftOpen(_) => {
            vec!["--on-error reconnect drops the connection and goes on with another one"]
        }
        OpError::Failure(Failure::Server { code, message, .. }, _) => {
            let goes_on = match policy {
                // Each op would fail.
                _ if recurs(*code, message) => None,
                _ if !error.keeps_session() => Some(RECONNECT),
                OnError::Abort => {
                    Some("--on-error continue counts errors of the server and goes on")
                }
                _ => None,
            };
            let tried = if error.is_of_login() { Tried::LogIn } else { Tried::Statement };
            hint(*code, message, tried).into_iter().chain(goes_on).collect()
        }
    };
    Error::failed(format!("client {client}: {error}")).add_hints(hints)
}

const OTHER_TABLES: &str = "the tables are not what this workload needs (loadgen prepare makes them), or the server's \
     sql_select_limit cuts answers short";
const OTHER_ROWS: &str =
    "the tables do not hold what the workload's `expect` says: one of both must change";
const OWN_CONNECTIONS: &str = "a longer --op-timeout waits longer; no policy goes on after an event of a script that was given up";
const RECONNECT: &str = "--on-error reconnect opens lost connections again and goes on";

/// A shorter time without success is no outage, whatever failed in it.
const GAP_MIN: Ns = 100_000_000;
/// Nor is one of fewer than so many mean distances between two successes: slow ops, and low
/// rates, have such times every now and then.
const DISTANCES_MIN: u64 = 10;
const OUTAGES_MAX: usize = 1000;
/// More errors than this do not wait for a thread that does not report.
const PENDING_MAX: usize = 1 << 14;
/// A server is as fast as before at this part of its earlier rate.
const RECOVERED: f64 = 0.95;
const EARLIER: usize = 10;

/// An observation of one thread, from an instant on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Event {
    /// Successes, the last one at another instant.
    Success(Ns),
    /// An error, with its code and text. Those that follow each other with the same text share it.
    Error(Option<u16>, Arc<str>),
    Refused(Option<u16>, Arc<str>),
}

impl Event {
    pub(super) fn is_success(&self) -> bool {
        matches!(self, Event::Success(_))
    }
}

pub(crate) type Events = Vec<(Ns, Event)>;

pub(crate) fn add_error(events: &mut Events, at: Ns, code: Option<u16>, text: &str) {
    let text = match events.last() {
        Some((_, Event::Error(_, last))) if **last == *text => Arc::clone(last),
        _ => Arc::from(text),
    };
    events.push((at, Event::Error(code, text)));
}

/// Begins the texts of errors with the host that met them; texts that are shared stay so.
pub(crate) fn name_host(events: &mut Events, host: &str) {
    let mut named: Option<(Arc<str>, Arc<str>)> = None;
    for (_, event) in events {
        let (Event::Error(_, text) | Event::Refused(_, text)) = event else { continue };
        let (_, with_host) = match named.take().filter(|(bare, _)| bare == text) {
            Some(known) => named.insert(known),
            None => named.insert((Arc::clone(text), format!("{host}: {text}").into())),
        };
        *text = Arc::clone(with_host);
    }
}

#[derive(Default)]
pub(crate) struct OutageWatch {
    /// By thread: how far it has reported, and its ops so far.
    reported: Vec<(Ns, u64)>,
    events: Events,
    reached: Ns,
    /// `--think`: clients that pause together leave such gaps.
    pause: Ns,
    last_success: Ns,
    open: Option<Outage>,
    /// Each with the last success before it.
    found: Vec<(Ns, Outage)>,
}

impl OutageWatch {
    pub(crate) fn new(threads: usize, pause: Ns) -> OutageWatch {
        OutageWatch { reported: vec![(0, 0); threads], pause, ..OutageWatch::default() }
    }

    /// Takes what a thread saw up to an instant (`Ns::MAX` when it has ended), and its ops so far.
    /// Events after the window's end are left out.
    pub(crate) fn report(&mut self, thread: usize, (now, ops): (Ns, u64), events: Events, end: Ns) {
        self.reported[thread] = (now, ops);
        self.events.extend(events.into_iter().filter(|(at, _)| *at <= end));
        let all = self.reported.iter().map(|(now, _)| *now).min().expect("a step has threads");
        let mut errors = self.events.iter().filter(|(_, event)| !event.is_success());
        // A thread that has ended says nothing of how far the others are.
        let many = now != Ns::MAX && errors.nth(PENDING_MAX).is_some();
        self.proceed(if many { now } else { all });
    }

    /// Returns whether a thread has done more ops than it last reported.
    pub(crate) fn has_more(&self, thread: usize, ops: u64) -> bool {
        ops > self.reported[thread].1
    }

    /// Returns the last success, as far as all threads have reported.
    pub(crate) fn last_success(&self) -> Ns {
        self.last_success
    }

    /// Ends with the window; when a server was as fast as before comes from the timeline.
    pub(crate) fn finish(&mut self, end: Ns, timeline: &[Interval]) -> Vec<Outage> {
        self.proceed(end);
        self.close(None, end);
        let found = std::mem::take(&mut self.found).into_iter().map(|(since, outage)| {
            let until_s = outage.first_success_s;
            let recovered_s = until_s.and_then(|until| recovered(timeline, seconds(since), until));
            Outage { recovered_s, ..outage }
        });
        found.collect()
    }

    fn proceed(&mut self, through: Ns) {
        if through <= self.reached {
            return;
        }
        self.reached = through;
        let mut events: Vec<_> = self.events.extract_if(.., |(at, _)| *at <= through).collect();
        // An error at the same instant as a success does not start an outage.
        events.sort_by_key(|(at, event)| (*at, !event.is_success()));
        for (at, event) in events {
            match event {
                Event::Success(last) => {
                    if at > self.last_success {
                        self.close(Some(at), at);
                    }
                    self.last_success = self.last_success.max(last);
                }
                _ if at <= self.last_success => {}
                Event::Error(code, text) => self.error(at, code, &text).errors += 1,
                Event::Refused(code, text) => {
                    *self.error(at, code, &text).refused.get_or_insert(0) += 1;
                }
            }
        }
    }

    fn error(&mut self, at: Ns, code: Option<u16>, text: &str) -> &mut Outage {
        let at_s = seconds(at);
        let open = self.open.get_or_insert_with(|| Outage {
            first_error_s: at_s,
            last_error_s: at_s,
            // Known when it closes.
            gap_s: 0.0,
            first_success_s: None,
            recovered_s: None,
            code,
            errors: 0,
            refused: Some(0),
            first_error: text.to_owned(),
            last_error: text.to_owned(),
        });
        open.last_error_s = at_s;
        text.clone_into(&mut open.last_error);
        open
    }

    fn close(&mut self, until: Option<Ns>, now: Ns) {
        let Some(open) = self.open.take() else { return };
        let since = self.last_success;
        let gap = now.saturating_sub(since);
        let done: u64 = self.reported.iter().map(|(_, ops)| ops).sum();
        let distance = since / done.max(1);
        if gap >= GAP_MIN.max(distance.saturating_mul(DISTANCES_MIN)).saturating_add(self.pause)
            && self.found.len() < OUTAGES_MAX
        {
            let first_success_s = until.map(seconds);
            self.found.push((since, Outage { gap_s: seconds(gap), first_success_s, ..open }));
        }
    }
}

/// Finds the start of the first whole interval after an outage in which the rate was that of before.
fn recovered(timeline: &[Interval], since_s: f64, until_s: f64) -> Option<f64> {
    let rate = |i: &Interval| i.ops as f64 / i.length_s;
    let usable = || timeline.iter().filter(|i| i.length_s > 0.0 && i.phase != Phase::Drain);
    let before = || usable().filter(|i| i.start_s + i.length_s <= since_s);
    let longest = before().map(|i| i.length_s).fold(0.0, f64::max);
    // The end of a phase cuts one short.
    let whole = |i: &&Interval| i.length_s >= WHOLE_INTERVAL * longest;
    let earlier: Vec<f64> = before().rev().filter(whole).take(EARLIER).map(rate).collect();
    let usual = stats::median(&earlier)?;
    let after = usable().filter(|i| i.start_s >= until_s && whole(i));
    after.filter(|i| rate(i) >= usual * RECOVERED).map(|i| i.start_s).next()
}

/// The number of unsettled writes of a table (index from 0) and their possible effects. There are none
/// before the call, and where a lost connection rolls them back.
pub(crate) type Pending = (u32, u32, Doubt);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    pub effect: Effect,
    pub affected: u64,
    /// The sum of `k` of the rows that the statement sent, where the effect knows it.
    pub k: i64,
}

impl Change {
    /// Bounds what it did, if its COMMIT is in doubt.
    pub(crate) fn doubt(&self) -> Doubt {
        match self.effect {
            Effect::InsertK(_) => Doubt { rows_added: self.affected, ..bound_k(self.k, 1) },
            effect => in_doubt(effect, Some(self.affected)),
        }
    }

    pub(crate) fn enter(self, entry: &mut LedgerEntry) {
        let affected = self.affected;
        match self.effect {
            Effect::None => {}
            Effect::Update | Effect::SetC | Effect::AddK(0) => {
                entry.updates += affected;
                entry.untraced += affected;
            }
            Effect::AddK(n) => {
                entry.updates += affected;
                entry.k_taken = entry.k_taken.saturating_add(bound_k(n, affected).k_removed);
                let rows = i64::try_from(affected).unwrap_or(i64::MAX);
                entry.k_added = entry.k_added.saturating_add(n.saturating_mul(rows));
            }
            Effect::Insert => {
                entry.inserts += affected;
                entry.k_unknown += affected;
            }
            Effect::InsertK(_) => {
                entry.inserts += affected;
                let k = if affected > 0 { self.k } else { 0 };
                entry.k_added = entry.k_added.saturating_add(k);
            }
            Effect::Delete => {
                entry.deletes += affected;
                entry.k_unknown += affected;
            }
        }
    }
}

/// Bounds what a statement may have done that affects so many rows at most; None is without a bound.
pub(crate) fn in_doubt(effect: Effect, affected: Option<u64>) -> Doubt {
    let none = Doubt::default();
    match (effect, affected) {
        (Effect::None | Effect::Update | Effect::SetC, _) => none,
        (Effect::AddK(n), rows) => bound_k(n, rows.unwrap_or(u64::MAX)),
        (_, None) => Doubt { rows_unknown: 1, k_unknown: 1, ..none },
        (Effect::Delete, Some(rows)) => Doubt { rows_removed: rows, k_unknown: 1, ..none },
        (Effect::Insert | Effect::InsertK(_), Some(rows)) => {
            Doubt { rows_added: rows, k_unknown: 1, ..none }
        }
    }
}

fn bound_k(k: i64, rows: u64) -> Doubt {
    let most = k.unsigned_abs().saturating_mul(rows);
    let (k_added, k_removed) = if k < 0 { (0, most) } else { (most, 0) };
    Doubt { k_added, k_removed, ..Doubt::default() }
}

pub(crate) fn add_entry(sum: &mut LedgerEntry, more: &LedgerEntry) {
    if let Some(doubt) = &more.doubt {
        sum.doubt.get_or_insert_default().add(doubt);
    }
    add!(sum, more; k_added, updates, inserts, deletes, in_doubt, k_unknown, k_taken, untraced);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::engine::job::tests::a_plan;
    use crate::plan::{Policy, Script, StopAt};

    fn server(code: u16) -> OpError {
        OpError::from(Failure::Server {
            code,
            sqlstate: "40001".to_owned(),
            message: format!("text of {code} \u{1b}[2J"),
        })
    }

    #[test]
    fn codes_are_counted_and_only_session_errors_keep_the_session() {
        let mut errors = Failures::default();
        errors.count(server(1290).count());
        errors.count(server(1213).count());
        let mut more = Failures::default();
        more.count(server(1213).count());
        more.count(OpError::from(Failure::lost("reset")).count());
        more.count(OpError::Wrong("0 rows".to_owned()).count());
        errors.merge(more);
        let counts = errors.take_errors();
        assert_eq!((counts[0].code, counts[0].count), (Some(1213), 2));
        assert_eq!(counts.len(), 4);
        assert!(!counts[0].message.contains('\u{1b}'));
    }

    #[test]
    fn each_policy_does_more_than_the_one_before() {
        let lost = || OpError::from(Failure::lost(""));
        let goes_on = |error: OpError| {
            [OnError::Abort, OnError::Continue, OnError::Reconnect].map(|on| error.goes_on(on))
        };
        assert_eq!(goes_on(server(1213)), [true; 3]);
        assert_eq!(goes_on(server(1290)), [false, true, true]);
        assert_eq!(goes_on(OpError::Wrong(String::new())), [false, true, true]);
        assert_eq!(goes_on(server(1927)), [false; 3]);
        assert_eq!(goes_on(lost()), [false; 3]);
        assert_eq!(goes_on(OpError::Timeout(Duration::from_secs(1))), [false; 3]);
        assert_eq!(goes_on(OpError::Unanswered), [false; 3]);
    }

    #[test]
    fn error_names_its_flag_when_the_flag_gave_the_op_up_and_not_when_the_drain_did() {
        let names = |error: OpError| error.to_string().contains("--op-timeout");
        assert!(names(OpError::Timeout(Duration::from_secs(10))));
        assert!(!names(OpError::Unanswered));
    }

    fn plan_with(on_error: OnError) -> Plan {
        let policy = Policy { on_error, ..Policy::default() };
        Plan { policy, ..a_plan(0, 1, StopAt::Ops(1)) }
    }

    #[test]
    fn no_policy_is_advised_when_an_event_of_a_script_is_given_up() {
        let given_up = OpError::Timeout(Duration::from_secs(1));
        let advises = |plan: &Plan| {
            abort_error(1, &given_up, plan).hints().concat().contains("--on-error reconnect")
        };
        let plan = plan_with(OnError::Abort);
        let script = Some(Arc::new(Script::of_text("")));
        let of_script = Plan { script, ..plan.clone() };
        assert_eq!([advises(&plan), advises(&of_script)], [true, false]);
    }

    #[test]
    fn a_policy_is_advised_when_it_would_go_on_and_no_other() {
        struct Case {
            code: u16,
            policy: OnError,
            advised: Option<OnError>,
        }
        use OnError::{Abort, Continue, Reconnect};
        for Case { code, policy, advised } in [
            Case { code: 1290, policy: Abort, advised: Some(Continue) },
            Case { code: 1317, policy: Abort, advised: Some(Continue) },
            Case { code: 9999, policy: Abort, advised: Some(Continue) },
            Case { code: 1064, policy: Abort, advised: None },
            Case { code: 1153, policy: Abort, advised: None },
            Case { code: 1146, policy: Abort, advised: None },
            // The session is over.
            Case { code: 1927, policy: Abort, advised: Some(Reconnect) },
            Case { code: 1053, policy: Continue, advised: Some(Reconnect) },
            Case { code: 4031, policy: Continue, advised: Some(Reconnect) },
        ] {
            let error = Failure::Server {
                code,
                sqlstate: "HY000".to_owned(),
                message: "--read-only".to_owned(),
            };
            let error = abort_error(1, &OpError::from(error), &plan_with(policy));
            let hints = error.hints().join(" ");
            let named = [Continue, Reconnect]
                .into_iter()
                .find(|policy| hints.contains(&format!("--on-error {policy}")));
            assert_eq!(named, advised, "{code} {policy}: {hints}");
            assert!(!hints.is_empty(), "{code}");
        }
    }

    #[test]
    fn a_wrong_answer_to_a_workload_of_ones_own_names_no_prepare() {
        let hints = |built_in| {
            let mut plan = plan_with(OnError::Abort);
            plan.workload.built_in = built_in;
            abort_error(1, &OpError::Wrong("0 rows".to_owned()), &plan).hints().join(" ")
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
        errors.count(OpError::from(full()).count());
        errors.count_refused_reconnect(&full().into());
        errors.count_refused_reconnect(&full().into());
        let counts = errors.take_errors();
        assert_eq!((&counts[0].class, counts[0].count), (&ErrorClass::Connect, 2));
        assert_eq!((&counts[1].class, counts[1].code), (&ErrorClass::Full, Some(1040)));
    }

    #[test]
    fn a_server_that_makes_up_codes_does_not_fill_memory() {
        let mut errors = Failures::default();
        (0..5000).for_each(|code| errors.count(server(code).count()));
        let counts = errors.take_errors();
        assert_eq!(counts.len(), KINDS_MAX);
        assert_eq!(counts.iter().map(|c| c.count).sum::<u64>(), 5000);
    }

    const MS: Ns = 1_000_000;

    /// A report up to an instant in milliseconds: ops so far, the first and the last success since
    /// the one before, errors.
    type Report = (u64, u64, Option<(u64, u64)>, Vec<u64>);

    fn tell(watch: &mut OutageWatch, thread: usize, (now, ops, successes, errors): Report) {
        let success = |(first, last)| (first * MS, Event::Success(last * MS));
        let mut events: Events = successes.map(success).into_iter().collect();
        for ms in errors {
            add_error(&mut events, ms * MS, Some(2013), &format!("at {ms}"));
        }
        watch.report(thread, (now * MS, ops), events, 10_000 * MS);
    }

    /// Two threads that do an op a millisecond, as their reports tell, until 1000 ms.
    fn busy() -> OutageWatch {
        let mut watch = OutageWatch::new(2, 0);
        for tick in 1..=50 {
            for thread in 0..2 {
                let successes = Some((tick * 20 - 19, tick * 20));
                tell(&mut watch, thread, (tick * 20, tick * 20, successes, vec![]));
            }
        }
        watch
    }

    fn all(watch: &mut OutageWatch, end: u64) -> Vec<Outage> {
        for thread in 0..2 {
            watch.report(thread, (Ns::MAX, 1000), Vec::new(), Ns::MAX);
        }
        watch.finish(end * MS, &[])
    }

    #[test]
    fn an_outage_is_from_success_to_success_with_its_errors() {
        let mut watch = busy();
        tell(&mut watch, 0, (1020, 1000, None, vec![1010]));
        tell(&mut watch, 1, (1021, 1000, None, vec![1005]));
        tell(&mut watch, 0, (2000, 1000, None, vec![1990]));
        tell(&mut watch, 1, (3000, 1001, Some((2995, 2995)), vec![]));
        let found = all(&mut watch, 4000);
        assert_eq!(found.len(), 1);
        let told = &found[0];
        assert_eq!((told.first_error_s, told.last_error_s), (1.005, 1.99));
        assert_eq!((told.gap_s, told.first_success_s, told.errors), (1.995, Some(2.995), 3));
        assert_eq!((told.first_error.as_str(), told.code), ("at 1005", Some(2013)));
    }

    #[test]
    fn errors_of_an_outage_name_their_host_where_there_are_several() {
        let mut watch = busy();
        for (thread, host) in ["c1", "c2"].into_iter().enumerate() {
            let mut events = vec![(1300 * MS, Event::Refused(None, "full".into()))];
            (0..3).for_each(|_| add_error(&mut events, 1100 * MS, Some(2013), "gone"));
            name_host(&mut events, host);
            watch.report(thread, (2000 * MS, 1000), events, Ns::MAX);
        }
        let found = all(&mut watch, 4000);
        assert_eq!((found[0].first_error.as_str(), found[0].errors), ("c1: gone", 6));
        assert_eq!(found[0].last_error, "c2: full");
    }

    #[test]
    fn what_another_thread_saw_before_the_success_belongs_to_the_outage() {
        let mut watch = busy();
        // The first success after it is reported before the errors of the other thread, and before
        // that thread's own success of before it.
        tell(&mut watch, 0, (1020, 1005, Some((1001, 1005)), vec![1008]));
        tell(&mut watch, 0, (2000, 1005, None, vec![1500]));
        tell(&mut watch, 0, (2020, 1010, Some((2010, 2015)), vec![]));
        tell(&mut watch, 1, (1021, 1003, Some((1001, 1003)), vec![1006]));
        tell(&mut watch, 1, (2001, 1003, None, vec![1900]));
        tell(&mut watch, 1, (2021, 1004, Some((2018, 2018)), vec![2009, 2012]));
        let found = all(&mut watch, 3000);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].first_error.as_str(), found[0].last_error.as_str()),
            ("at 1006", "at 2009")
        );
        assert_eq!(
            (found[0].errors, found[0].gap_s, found[0].first_success_s),
            (5, 1.005, Some(2.01))
        );
    }

    #[test]
    fn errors_and_successes_of_one_tick_are_told_apart() {
        let mut watch = busy();
        // Within one tick: an error, a success, an error, and then nothing for a second.
        tell(&mut watch, 0, (1020, 1010, Some((1001, 1010)), vec![1004, 1012]));
        tell(&mut watch, 0, (2010, 1011, Some((2005, 2005)), vec![2004, 2006]));
        let found = all(&mut watch, 3000);
        assert_eq!((found.len(), found[0].errors, found[0].gap_s), (2, 2, 0.995));
        assert_eq!((found[0].first_error_s, found[0].last_error_s), (1.012, 2.004));
    }

    #[test]
    fn errors_among_successes_and_silence_without_errors_are_none() {
        let mut watch = busy();
        tell(&mut watch, 0, (1020, 1020, Some((1001, 1020)), vec![1010]));
        tell(&mut watch, 1, (1021, 1020, Some((1001, 1020)), vec![]));
        // Nobody asks for a while.
        tell(&mut watch, 0, (3000, 1021, Some((2990, 2990)), vec![]));
        assert_eq!(all(&mut watch, 3020), []);
    }

    #[test]
    fn one_that_lasts_to_the_end_has_no_success_after_it() {
        let mut watch = busy();
        tell(&mut watch, 0, (1020, 1000, None, vec![1010]));
        tell(&mut watch, 0, (10_010, 1001, Some((10_005, 10_005)), vec![9995, 10_003]));
        let found = all(&mut watch, 10_000);
        let told = &found[0];
        assert_eq!((told.gap_s, told.first_success_s, told.recovered_s), (9.0, None, None));
        assert_eq!((told.errors, told.last_error_s), (2, 9.995), "none of after the window");
    }

    #[test]
    fn slow_ops_fail_without_an_outage() {
        // One op a second; one of them fails.
        let mut watch = OutageWatch::new(1, 0);
        (1..=10).for_each(|s| {
            tell(&mut watch, 0, (s * 1000, s, Some((s * 1000, s * 1000)), vec![]));
        });
        tell(&mut watch, 0, (11_000, 10, None, vec![11_000]));
        tell(&mut watch, 0, (12_000, 11, Some((12_000, 12_000)), vec![]));
        assert_eq!(watch.finish(13_000 * MS, &[]), []);
    }

    #[test]
    fn a_pause_of_all_clients_is_no_outage() {
        // Eight ops every two seconds, and an error between two rounds.
        let found = |pause| {
            let mut watch = OutageWatch::new(1, pause);
            (1..=4).for_each(|round| {
                let at = round * 2000;
                tell(&mut watch, 0, (at, round * 8, Some((at, at)), vec![]));
            });
            tell(&mut watch, 0, (9000, 32, None, vec![9000]));
            tell(&mut watch, 0, (10_000, 40, Some((10_000, 10_000)), vec![]));
            watch.finish(10_000 * MS, &[]).len()
        };
        assert_eq!((found(0), found(2000 * MS)), (1, 0));
    }

    #[test]
    fn a_thread_that_does_not_report_does_not_fill_memory() {
        let mut watch = OutageWatch::new(2, 0);
        let mut events = Events::new();
        (0..=PENDING_MAX as u64).for_each(|ns| add_error(&mut events, 1 + ns, None, "the same"));
        watch.report(0, (2000 * MS, 0), events, Ns::MAX);
        assert!(watch.events.is_empty());
        assert_eq!(watch.finish(2000 * MS, &[])[0].errors, PENDING_MAX as u64 + 1);
        // Successes, of which each thread has one a tick, wait.
        let mut watch = OutageWatch::new(2, 0);
        let events = (0..=PENDING_MAX as u64).map(|ns| (1 + ns, Event::Success(1 + ns)));
        watch.report(0, (2000 * MS, 0), events.collect(), Ns::MAX);
        assert_eq!(watch.reached, 0);
    }

    #[test]
    fn outage_ends_with_its_success_when_a_thread_with_many_errors_has_ended() {
        let mut watch = OutageWatch::new(2, 0);
        let mut events = Events::new();
        (0..=PENDING_MAX as u64).for_each(|ns| add_error(&mut events, 1 + ns, None, "the same"));
        watch.report(0, (Ns::MAX, 0), events, Ns::MAX);
        tell(&mut watch, 1, (2000, 1, Some((1000, 1000)), vec![]));
        let found = watch.finish(3000 * MS, &[]);
        assert_eq!((found.len(), found[0].first_success_s), (1, Some(1.0)));
        assert_eq!(watch.last_success(), 1000 * MS);
    }

    #[test]
    fn thread_has_more_ops_when_it_has_done_some_since_its_report() {
        let mut watch = OutageWatch::new(2, 0);
        tell(&mut watch, 1, (20, 7, Some((5, 20)), vec![]));
        let more = [(0, 0), (0, 1), (1, 7), (1, 8)].map(|(of, ops)| watch.has_more(of, ops));
        assert_eq!(more, [false, true, false, true]);
    }

    /// An instant in milliseconds, and whether an op succeeded at it.
    type Seen = (u64, bool);

    /// Outages as they are: errors, the first and the last of them, the first success after them.
    fn as_it_was(threads: &[Vec<Seen>]) -> Vec<(u64, u64, u64, Option<u64>)> {
        let mut events: Vec<Seen> = threads.iter().flatten().copied().collect();
        // A success is at an instant before an error.
        events.sort_by_key(|(at, good)| (*at, !good));
        let (mut last, mut errors, mut found) = (0, Vec::new(), Vec::new());
        let ended = |errors: &[u64], gap: u64| gap >= 100 && !errors.is_empty();
        for (at, good) in events {
            match good {
                false if at > last => errors.push(at),
                false => {}
                true => {
                    errors.retain(|error| *error < at);
                    if ended(&errors, at - last) {
                        let n = errors.len() as u64;
                        found.push((n, errors[0], errors[errors.len() - 1], Some(at)));
                    }
                    errors.clear();
                    last = at;
                }
            }
        }
        if ended(&errors, 5000 - last) {
            found.push((errors.len() as u64, errors[0], errors[errors.len() - 1], None));
        }
        found
    }

    /// Ticks of a thread from an instant on: reports of its events.
    fn reports(events: &[Seen], offset: u64) -> Vec<Report> {
        let mut events = events.to_vec();
        events.sort_by_key(|(at, good)| (*at, !good));
        let ends: Vec<u64> = (0..300).map(|tick| offset + tick * 20).collect();
        let (mut from, mut ops) = (0, 0);
        ends.into_iter()
            .map(|to| {
                let here = || events.iter().filter(|(at, _)| *at > from && *at <= to);
                let good: Vec<u64> = here().filter(|e| e.1).map(|e| e.0).collect();
                let bad: Vec<u64> = here().filter(|e| !e.1).map(|e| e.0).collect();
                // Many, so that the mean distance is short.
                ops += 1000 * good.len() as u64;
                let span = good.first().copied().zip(good.last().copied());
                from = to;
                (to, ops, span, bad)
            })
            .collect()
    }

    proptest! {
        /// However the ticks of the threads lie.
        #[test]
        fn any_outage_is_told_as_it_was(
            threads in prop::collection::vec(
                prop::collection::vec((1_u64..5000, prop::bool::weighted(0.3)), 0..40), 1..5),
            offsets in prop::collection::vec(1_u64..20, 5),
        ) {
            let mut watch = OutageWatch::new(threads.len(), 0);
            let mut all: Vec<(usize, Report)> = Vec::new();
            for (thread, events) in threads.iter().enumerate() {
                for report in reports(events, offsets[thread]) {
                    all.push((thread, report));
                }
            }
            all.sort_by_key(|(thread, report)| (report.0, *thread));
            for (thread, report) in all {
                tell(&mut watch, thread, report);
            }
            let ms = |s: f64| (s * 1e3).round() as u64;
            let found: Vec<_> = watch
                .finish(5000 * MS, &[])
                .iter()
                .map(|o| (o.errors, ms(o.first_error_s), ms(o.last_error_s), o.first_success_s.map(ms)))
                .collect();
            prop_assert_eq!(found, as_it_was(&threads));
        }
    }

    #[test]
    fn a_server_has_recovered_at_the_rate_of_before() {
        let entry = |start: u32, ops| Interval::counted(Phase::Measure, f64::from(start), ops);
        let ops = [100, 110, 90, 40, 0, 30, 94, 95, 120];
        let timeline: Vec<_> = (0..).zip(ops).map(|(start, ops)| entry(start, ops)).collect();
        assert_eq!(recovered(&timeline, 3.4, 5.2), Some(7.0));
        assert_eq!(recovered(&timeline, 3.4, 8.5), None);
        assert_eq!(recovered(&timeline, 0.5, 1.5), None, "there is no earlier rate");
    }

    #[test]
    fn recovery_is_of_whole_intervals_and_of_the_median_rate() {
        let entry = |start, ops| Interval::counted(Phase::Measure, start, ops);
        let last = Interval { length_s: 0.03, ..entry(3.0, 9) };
        let timeline = |ops| [entry(0.0, 100), entry(1.0, 200), entry(2.0, 0), entry(3.0, ops)];
        // 150 a second were usual.
        assert_eq!(recovered(&timeline(145), 2.0, 2.5), Some(3.0));
        assert_eq!(recovered(&timeline(140), 2.0, 2.5), None);
        let [first, second, gap, _] = timeline(0);
        assert_eq!(recovered(&[first, second, gap, last], 2.0, 2.5), None, "a part of one");
    }

    fn change(effect: Effect, affected: u64, k: i64) -> Change {
        Change { effect, affected, k }
    }

    #[test]
    fn acknowledged_and_doubtful_writes_are_kept_apart() {
        let mut sum = LedgerEntry::default();
        let mut entry = LedgerEntry::default();
        for (effect, affected) in [
            (Effect::AddK(2), 3),
            (Effect::SetC, 1),
            (Effect::None, 7),
            (Effect::AddK(-3), 2),
            (Effect::AddK(0), 4),
        ] {
            change(effect, affected, 0).enter(&mut entry);
        }
        entry.in_doubt += 1;
        entry.doubt.get_or_insert_default().add(&in_doubt(Effect::AddK(2), Some(1)));
        add_entry(&mut sum, &entry);
        let entry = &sum;
        assert_eq!((entry.updates, entry.k_added, entry.k_taken), (10, 0, 6));
        assert_eq!((entry.in_doubt, entry.k_unknown), (1, 0));
        assert_eq!(entry.untraced, 5, "of c, and those that add nothing");
        assert_eq!(entry.doubt, Some(Doubt { k_added: 2, ..Doubt::default() }));
    }

    #[test]
    fn a_doubt_has_bounds_where_the_workload_gives_them() {
        let none = Doubt::default();
        for (effect, affected, doubt) in [
            (Effect::SetC, None, none),
            (Effect::AddK(-3), Some(2), Doubt { k_removed: 6, ..none }),
            // However many rows: no k came or went, and the other side has its bound.
            (Effect::AddK(1), None, Doubt { k_added: u64::MAX, ..none }),
            (Effect::AddK(-3), None, Doubt { k_removed: u64::MAX, ..none }),
            (Effect::Insert, Some(5), Doubt { rows_added: 5, k_unknown: 1, ..none }),
            (Effect::InsertK(1), None, Doubt { rows_unknown: 1, k_unknown: 1, ..none }),
            (Effect::Delete, Some(1), Doubt { rows_removed: 1, k_unknown: 1, ..none }),
        ] {
            assert_eq!(in_doubt(effect, affected), doubt, "{effect:?}");
        }
        // A statement that was answered is known; only whether it lasts is not.
        let known = change(Effect::InsertK(2), 1, 40).doubt();
        assert_eq!(known, Doubt { rows_added: 1, k_added: 40, ..none });
    }
}
