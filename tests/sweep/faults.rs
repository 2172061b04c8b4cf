//! What goes wrong with a server, and what a step makes of it.

use std::time::Duration;

use loadgen::canned::{Action, At, Fault};
use loadgen::summary::{self, ErrorClass, Outcome};

use crate::common::program::{Results, canned, command, run_canned};

/// Faults only of the workload's statements, not of the preflight's.
fn fault(at: At, action: Action) -> Fault {
    Fault::new(at, action).only("WHERE id=")
}

const SHORT: &str = "point-select --tables 8 --clients 8 --warmup 0 --time 2s";

#[test]
fn without_faults_both_modes_measure_and_print_the_table() {
    for mode in ["prepared", "text"] {
        let server = canned(Vec::new());
        let words = "point-select --tables 8 --clients 1,8 --warmup 0 --time 2s";
        let ended = run_canned(&format!("{words} --statements {mode}"), &server);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert_eq!(ended.summaries.len(), 2);
        let first = ended.stdout.lines().next().expect("a table");
        assert!(first.ends_with("concurrent clients"), "{}", ended.stdout);
        for summary in &ended.summaries {
            assert_eq!(summary.outcome, Outcome::Completed);
            assert!(summary.totals.ops > 0 && summary.totals.errors.is_empty());
            assert_eq!(summary.totals.rows, summary.totals.ops);
            assert!((summary.measured_s - 2.0).abs() < 1e-9);
            let starts: Vec<f64> = summary.timeline.iter().map(|i| i.start_s).collect();
            assert!(
                starts.windows(2).all(|w| w[0] < w[1]),
                "each entry once, in order: {starts:?}"
            );
            let counted: u64 = summary
                .timeline
                .iter()
                .filter(|i| i.phase == summary::Phase::Measure)
                .map(|i| i.ops)
                .sum();
            assert_eq!(counted, summary.totals.ops);
        }
    }
}

/// An answer of one column of text that is never NULL, with this row, as packets.
fn one_row(row: &[u8]) -> Action {
    let column = b"\x03def\0\0\0\x01c\x01c\x0c\x2d\0\x80\0\0\0\xfe\x01\0\0\0\0";
    let payloads: [&[u8]; 4] = [&[1], column, row, &[0xfe, 0, 0, 2, 0, 0, 0]];
    let packet = |(number, payload): (u8, &[u8])| {
        [&[u8::try_from(payload.len()).expect("short"), 0, 0, number], payload].concat()
    };
    Action::Garbage((1..).zip(payloads).flat_map(packet).collect())
}

struct OddRow {
    name: &'static str,
    mode: &'static str,
    row: &'static [u8],
    class: ErrorClass,
}

#[test]
fn a_row_that_is_none_of_its_columns_is_an_error_whatever_is_checked_of_it() {
    for OddRow { name, mode, row, class } in [
        OddRow { name: "one byte", mode: "prepared", row: b"\0", class: ErrorClass::Lost },
        OddRow { name: "cut", mode: "prepared", row: b"\0\0\x03xy", class: ErrorClass::Lost },
        OddRow { name: "longer", mode: "prepared", row: b"\0\0\x01xy", class: ErrorClass::Lost },
        OddRow { name: "NULL", mode: "prepared", row: b"\0\x04", class: ErrorClass::Wrong },
        OddRow { name: "cut", mode: "text", row: b"\x03xy", class: ErrorClass::Lost },
        OddRow { name: "longer", mode: "text", row: b"\x01xy", class: ErrorClass::Lost },
        OddRow { name: "NULL", mode: "text", row: b"\xfb", class: ErrorClass::Wrong },
    ] {
        let server = canned(vec![fault(At::Statement(100), one_row(row))]);
        let words = format!(
            "point-select --tables 8 --clients 1 --warmup 0 --ops 1000 --statements {mode}"
        );
        let ended = run_canned(&words, &server);
        assert_eq!(ended.code, 1, "{name}, {mode}: {}", ended.stderr);
        let totals = &ended.only().totals;
        let classes: Vec<&ErrorClass> = totals.errors.iter().map(|error| &error.class).collect();
        assert_eq!((classes.as_slice(), totals.ops), (&[&class][..], 99), "{name}, {mode}");
    }
    // The same answer with a whole row is one.
    let server = canned(vec![fault(At::Statement(100), one_row(b"\0\0\x01x"))]);
    let ended = run_canned("point-select --tables 8 --clients 1 --warmup 0 --ops 1000", &server);
    assert_eq!((ended.code, ended.only().totals.ops), (0, 1000), "{}", ended.stderr);
}

struct WrongAnswer {
    workload: &'static str,
    action: Action,
    says: &'static str,
}

#[test]
fn wrong_answers_are_errors_not_results() {
    for WrongAnswer { workload, action, says } in [
        WrongAnswer {
            workload: "point-select",
            action: Action::RowsInstead(0),
            says: "0 rows instead of 1",
        },
        WrongAnswer {
            workload: "point-select",
            action: Action::RowsInstead(2),
            says: "2 rows instead of 1",
        },
        WrongAnswer {
            workload: "update-index",
            action: Action::AffectedInstead(0),
            says: "0 rows affected instead of 1",
        },
    ] {
        let server = canned(vec![fault(At::Statement(500), action)]);
        let words = format!("{workload} --tables 8 --clients 8 --warmup 0 --time 2m");
        let ended = run_canned(&words, &server);
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        assert!(ended.took < Duration::from_mins(1), "the step ends with its first wrong answer");
        let summary = ended.only();
        assert_eq!(summary.outcome, Outcome::Aborted);
        assert_eq!(
            (&summary.totals.errors[0].class, summary.totals.errors[0].count),
            (&ErrorClass::Wrong, 1)
        );
        assert!(summary.totals.errors[0].message.contains(says), "{:?}", summary.totals.errors);
        assert!(summary.totals.ops > 0, "what was measured is kept");
        let told = summary.warnings.iter().find(|warning| warning.code == "wrong_answers");
        assert!(told.is_some_and(|warning| warning.message.contains(says)), "{told:?}");
        assert!(ended.stderr.contains("error: ") && ended.stderr.contains("hint: "));
        assert!(ended.stdout.is_empty(), "an aborted step fills no cell: {}", ended.stdout);
    }
}

#[test]
fn ops_are_exact_after_a_warm_up_too() {
    let server = canned(Vec::new());
    for _ in 0..15 {
        let words = "update-non-index --tables 8 --clients 64 --ops 1000 --warmup 100ms";
        let ended = run_canned(words, &server);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert_eq!(ended.only().totals.ops, 1000);
    }
}

#[test]
fn nobody_who_reads_standard_error_costs_no_measurement() {
    let server = canned(Vec::new());
    let port = server.port().to_string();
    let results = Results::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
    let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x"];
    let words = "point-select --tables 8 --clients 1,2 --warmup 0 --time 300ms";
    let status = command(words, &connection, &results).stderr(full).status().expect("it runs");
    assert_eq!(status.code(), Some(0));
    assert_eq!(results.summaries().len(), 2);
}

#[test]
fn session_errors_are_counted_and_the_session_goes_on() {
    let deadlock = Action::error(1213, "40001", "Deadlock \u{1b}[2Jfound");
    let server = canned(vec![fault(At::EachStatement(100), deadlock)]);
    let ended = run_canned("update --tables 8 --clients 8 --ops 10000", &server);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let summary = ended.only();
    let errors = &summary.totals.errors;
    assert_eq!((errors[0].code, &errors[0].class), (Some(1213), &ErrorClass::Session));
    assert!(errors[0].count >= 99 && errors[0].count <= 100, "{errors:?}");
    assert_eq!(summary.totals.ops + errors[0].count, 10_000, "errors are ops of --ops");
    assert_eq!(summary.latency.failed.count, errors[0].count, "in a histogram of their own");
    assert_eq!(summary.latency.service.count, summary.totals.ops);
    let k: i64 = summary.ledger.iter().map(|l| l.k_added).sum();
    assert_eq!(k as u64, summary.totals.ops, "a refused update adds nothing");
    assert!(!format!("{}{}", ended.stderr, errors[0].message).contains('\u{1b}'));
}

#[test]
fn a_write_that_a_proxy_lost_with_its_server_is_in_doubt() {
    let lost = Action::error(2013, "HY000", "Lost connection to MySQL server during query");
    let server = canned(vec![fault(At::EachStatement(100), lost)]);
    let ended = run_canned("update --tables 8 --clients 8 --ops 2000 --on-error continue", &server);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let summary = ended.only();
    let errors = &summary.totals.errors;
    assert_eq!((errors[0].code, &errors[0].class), (Some(2013), &ErrorClass::Behind), "{errors:?}");
    assert_eq!(summary.totals.in_doubt, errors[0].count);
    assert_eq!(summary.ledger.iter().map(|l| l.in_doubt).sum::<u64>(), errors[0].count);
    assert_eq!(summary.latency.failed.count, 0, "neither done nor failed");
    assert_eq!(summary.totals.ops + errors[0].count, 2000);
}

#[test]
fn a_lost_connection_ends_the_step_and_leaves_a_doubt() {
    for action in [Action::Close, Action::Reset, Action::HalfPacketThenClose] {
        let server = canned(vec![fault(At::Statement(500), action.clone())]);
        let words = "update --tables 8 --clients 8 --warmup 0 --time 2m";
        let ended = run_canned(words, &server);
        assert_eq!(ended.code, 1, "{action:?}: {}", ended.stderr);
        assert!(ended.took < Duration::from_mins(1));
        let summary = ended.only();
        assert_eq!(summary.totals.errors[0].class, ErrorClass::Lost, "{:?}", summary.totals.errors);
        assert_eq!(summary.ledger.iter().map(|l| l.in_doubt).sum::<u64>(), 1);
    }
}

#[test]
fn what_the_drain_gives_up_is_counted_at_its_age() {
    let stall = fault(At::Statement(500), Action::HalfPacketThenStall);
    let server = canned(vec![stall]);
    let ended = run_canned(SHORT, &server);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let summary = ended.only();
    assert_eq!(summary.totals.abandoned, 1);
    let max = summary.latency.service.max_us.expect("counted");
    assert!(max > 10e6, "stalled from early in the window to the end of the drain: {max}");
    // What the others had in flight at the window's end is in the latency too.
    let beyond = summary.latency.service.count - summary.totals.ops;
    assert!((1..=8).contains(&beyond), "{beyond}");
    assert!(ended.took < Duration::from_secs(40), "{:?}", ended.took);
}

#[test]
fn what_the_drain_gives_up_is_an_error_when_errors_are_bounded() {
    let server = canned(vec![fault(At::Statement(500), Action::HalfPacketThenStall)]);
    let ended = run_canned(&format!("{SHORT} --max-errors 0"), &server);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert_eq!(ended.only().outcome, Outcome::Aborted);
}

#[test]
fn hostile_answers_end_in_an_error_not_in_a_panic() {
    for action in [
        Action::Garbage(vec![0xff; 64]),
        Action::Garbage(vec![4, 0, 0, 1, 0xfb, 0, 0, 0]),
        Action::WrongSequence,
        Action::WrongLength(-3),
        Action::HugeColumnCount(1000),
    ] {
        let server = canned(vec![fault(At::Statement(300), action.clone())]);
        let ended = run_canned("point-select --tables 8 --clients 4 --warmup 0 --time 3s", &server);
        assert!(matches!(ended.code, 0 | 1), "{action:?}: {} {}", ended.code, ended.stderr);
        assert!(!ended.stderr.contains("panicked at"), "{action:?}: {}", ended.stderr);
        let summary = ended.only();
        let faults = summary.totals.errors.len() as u64 + summary.totals.abandoned;
        assert!(faults > 0, "{action:?}: it must be seen: {}", ended.stderr);
    }
}

#[test]
fn a_server_that_refuses_connections_is_named() {
    let refuse =
        Fault::new(At::EachConnect(1), Action::error(1040, "08004", "Too many connections"));
    let ended = run_canned(SHORT, &canned(vec![refuse]));
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("Too many connections"), "{}", ended.stderr);
    assert!(ended.summaries.is_empty());

    // The control connection gets in, the clients do not all.
    let refuse = Fault::new(At::Connect(6), Action::error(1040, "08004", "Too many connections"));
    let ended = run_canned(SHORT, &canned(vec![refuse]));
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains("max_connections"), "{}", ended.stderr);
    assert!(ended.took < Duration::from_mins(1));
}

struct Passing {
    at: At,
    code: u16,
    message: &'static str,
}

struct Lasting {
    at: At,
    code: u16,
    sqlstate: &'static str,
    message: &'static str,
}

/// Of eight clients the fourth or fifth is refused.
#[test]
fn what_waiting_does_not_mend_ends_a_step_that_may_reconnect_at_once() {
    for Lasting { at, code, sqlstate, message } in [
        Lasting {
            at: At::Connect(6),
            code: 1045,
            sqlstate: "28000",
            message: "Access denied for user",
        },
        Lasting { at: At::Connect(6), code: 1049, sqlstate: "42000", message: "Unknown database" },
        Lasting {
            at: At::Connect(6),
            code: 1130,
            sqlstate: "HY000",
            message: "Host is not allowed",
        },
        Lasting {
            at: At::Prepare(6),
            code: 1461,
            sqlstate: "42000",
            message: "max_prepared_stmt_count",
        },
        Lasting {
            at: At::Prepare(6),
            code: 1146,
            sqlstate: "42S02",
            message: "Table doesn't exist",
        },
        Lasting {
            at: At::Prepare(6),
            code: 1142,
            sqlstate: "42000",
            message: "SELECT command denied",
        },
    ] {
        let server = canned(vec![Fault::new(at, Action::error(code, sqlstate, message))]);
        let ended = run_canned(&format!("{SHORT} --on-error reconnect"), &server);
        assert_eq!(ended.code, 3, "{code}: {}", ended.stderr);
        assert!(ended.took < Duration::from_mins(1), "{code}: {:?}", ended.took);
        let says = ended.stderr.contains(message) && ended.stderr.contains(&code.to_string());
        assert!(says && !ended.stderr.contains("waiting"), "{code}: {}", ended.stderr);
        assert!(ended.summaries.is_empty());
    }
    // And what does: the client comes in later.
    for Passing { at, code, message } in [
        Passing { at: At::Connect(6), code: 1040, message: "Too many connections" },
        Passing { at: At::Connect(6), code: 1053, message: "Server shutdown in progress" },
        Passing {
            at: At::Prepare(6),
            code: 1047,
            message: "WSREP has not yet prepared node for application use",
        },
    ] {
        let server = canned(vec![Fault::new(at, Action::error(code, "08S01", message))]);
        let ended = run_canned(&format!("{SHORT} --on-error reconnect"), &server);
        assert_eq!(ended.code, 0, "{code}: {}", ended.stderr);
        assert!(ended.stderr.contains(message) && ended.only().totals.ops > 0, "{code}");
    }
}

#[test]
fn hangs_while_connecting_are_bounded() {
    for action in [Action::Garbage(Vec::new()), Action::HangAtAuth] {
        let server = canned(vec![Fault::new(At::Connect(4), action.clone())]);
        let ended = run_canned(&format!("{SHORT} --connect-timeout 1s"), &server);
        assert_eq!(ended.code, 3, "{action:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(" 1s"), "{action:?}: {}", ended.stderr);
        assert!(ended.took < Duration::from_mins(1), "{action:?}: {:?}", ended.took);
    }
    let server = canned(vec![Fault::new(At::Prepare(4), Action::HalfPacketThenStall)]);
    let ended = run_canned(&format!("{SHORT} --connect-timeout 1s"), &server);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains(" 1s"), "{}", ended.stderr);
}

#[test]
fn sql_that_the_server_cannot_parse_is_bad_input_and_other_refusals_are_not() {
    for (code, status) in [(1064, 2), (1146, 3)] {
        let refusal = Action::error(code, "42000", "no");
        let server = canned(vec![Fault::new(At::Prepare(1), refusal).only("WHERE id")]);
        let ended = run_canned("point-select --tables 8 --clients 1 --ops 10", &server);
        assert_eq!(ended.code, status, "{code}: {}", ended.stderr);
    }
}
