//! What a network does to one connection stays that connection's.

use std::time::Duration;

use loadgen::canned::{Action, At, Fault};
use loadgen::summary::{ErrorClass, Outcome};

use crate::common::program::{Ended, canned, run_canned};

/// What an action must come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Seen {
    /// An error of this class.
    Error(&'static str),
    /// An op that was given up.
    Abandoned,
    /// An answer that was only slow.
    Nothing,
}

const LOST: &[Seen] = &[Seen::Error("lost")];
const ABANDONED: &[Seen] = &[Seen::Abandoned];

/// With what may come of it; what takes many round trips may be given up on a busy host.
pub(super) fn cases() -> [(Action, &'static [Seen]); 14] {
    [
        (Action::Close, LOST),
        (Action::Reset, LOST),
        (Action::HalfClose, LOST),
        (Action::HalfPacketThenClose, LOST),
        (Action::HalfPacketThenStall, ABANDONED),
        (Action::Stall(Duration::from_mins(1)), ABANDONED),
        (Action::OneByteAtATime, &[Seen::Nothing, Seen::Abandoned]),
        // As a header: 16 MiB are to follow.
        (Action::Garbage(vec![0xff; 64]), ABANDONED),
        (Action::Garbage(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()), ABANDONED),
        (Action::WrongLength(5), LOST),
        (Action::WrongLength(-3), LOST),
        (Action::WrongSequence, LOST),
        // It is skipped as it comes.
        (Action::OversizedRow(17 << 20), &[Seen::Nothing, Seen::Abandoned]),
        (Action::HugeColumnCount(1000), ABANDONED),
    ]
}

fn run(action: Action, policy: &str) -> Ended {
    let server = canned(vec![Fault::new(At::Statement(50), action).only("WHERE id=")]);
    // An open loop leaves the cores to the other cases. A busy host answers within the limit, too.
    let words = "point-select --tables 8 --clients 4 --rate 100 --arrival uniform --warmup 0 \
                 --time 12s --op-timeout 8s";
    run_canned(&format!("{words} --on-error {policy}"), &server)
}

/// All at once: each of them waits most of the time.
fn run_all(policy: &'static str) -> Vec<(Action, Seen, Ended)> {
    let running: Vec<_> = cases()
        .into_iter()
        .map(|(action, allowed)| {
            std::thread::spawn(move || (action.clone(), allowed, run(action, policy)))
        })
        .collect();
    let all: Vec<_> = running.into_iter().map(|t| t.join().expect("no panic")).collect();
    let other = all.iter().filter(|(_, allowed, ended)| !allowed.contains(&came_of_it(ended)));
    let other: Vec<String> = other.map(|(a, _, e)| format!("{a:?}: {:?}", came_of_it(e))).collect();
    assert!(other.is_empty(), "{}", other.join("\n"));
    all.into_iter().map(|(action, _, ended)| (action, came_of_it(&ended), ended)).collect()
}

/// What came of it: errors of the first class, ops that were given up.
fn came_of_it(ended: &Ended) -> Seen {
    let totals = &ended.only().totals;
    // A step that ends early leaves arrivals unissued: they are abandoned, too.
    match (totals.errors.first(), totals.abandoned) {
        (Some(error), _) if error.count == 1 && error.class == ErrorClass::Lost => {
            Seen::Error("lost")
        }
        (None, 1..) => Seen::Abandoned,
        (None, 0) => Seen::Nothing,
        other => panic!("{other:?}: {}", ended.stderr),
    }
}

#[test]
fn one_clients_bad_luck_stays_its_own() {
    for (action, seen, ended) in run_all("reconnect") {
        assert_eq!(ended.code, 0, "{action:?}: {}", ended.stderr);
        assert!(ended.took < Duration::from_secs(50), "{action:?}: {:?}", ended.took);
        let summary = ended.only();
        assert_eq!(summary.outcome, Outcome::Completed, "{action:?}");
        let totals = &summary.totals;
        let hit = u64::from(seen != Seen::Nothing);
        assert_eq!(totals.reconnects, hit, "{action:?}: {totals:?}");
        assert_eq!(totals.abandoned, u64::from(seen == Seen::Abandoned), "{action:?}");
        assert_eq!(totals.in_doubt, 0, "a select leaves no doubt");
        // The others went on, and the one came back: every other arrival is answered.
        assert_eq!(totals.intended, Some(1200), "{action:?}");
        let (service, failed) = (&summary.latency.service, &summary.latency.failed);
        assert_eq!(service.count + failed.count, 1200, "{action:?}: {totals:?}");
        assert!(totals.ops > 600, "{action:?}: {totals:?}");
    }
}

#[test]
fn without_reconnecting_the_step_ends_and_says_what_happened() {
    for (action, seen, ended) in run_all("continue") {
        let text = &ended.stderr;
        assert!(ended.took < Duration::from_secs(50), "{action:?}: {:?}", ended.took);
        if seen == Seen::Nothing {
            assert_eq!(ended.code, 0, "{action:?}: {text}");
            continue;
        }
        assert_eq!(ended.code, 1, "{action:?}: {text}");
        assert_eq!(ended.only().outcome, Outcome::Aborted);
        let says = if seen == Seen::Abandoned { "--op-timeout" } else { "error: client" };
        assert!(text.contains(says), "{action:?}: {text}");
    }
}

#[test]
fn more_errors_than_allowed_end_the_step() {
    let refuse = Action::error(1290, "HY000", "read-only");
    for (max, code) in [("10", 1), ("0.5%", 1), ("1M", 0), ("50%", 0)] {
        let fault = Fault::new(At::EachStatement(50), refuse.clone()).only("WHERE id=");
        let server = canned(vec![fault]);
        let words = "update --tables 8 --clients 4 --ops 5000 --on-error continue --max-errors";
        let ended = run_canned(&format!("{words} {max}"), &server);
        assert_eq!(ended.code, code, "{max}: {}", ended.stderr);
        let summary = ended.only();
        assert_eq!(summary.outcome == Outcome::Aborted, code == 1, "{max}");
        assert_eq!(summary.plan.max_errors.as_deref(), Some(max));
        assert_eq!(ended.stderr.contains(&format!("--max-errors is {max}")), code == 1, "{max}");
    }
}

#[test]
fn wrong_answers_are_counted_where_errors_are() {
    let wrong = Fault::new(At::EachStatement(100), Action::AffectedInstead(0)).only("WHERE id=");
    let server = canned(vec![wrong]);
    let words = "update --tables 8 --clients 4 --ops 2000 --on-error continue";
    let ended = run_canned(words, &server);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let summary = ended.only();
    let wrong = &summary.totals.errors[0];
    assert_eq!((&wrong.class, wrong.count), (&ErrorClass::Wrong, 20));
    assert_eq!(summary.totals.ops, 1980);
    // What such an answer says of a write is not to be trusted.
    assert_eq!(summary.totals.in_doubt, 20);
}
