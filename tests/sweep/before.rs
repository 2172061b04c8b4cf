//! What is done to a server before a step, where the server fails meanwhile.

use std::time::{Duration, Instant};

use loadgen::canned::{Action, Answer, At, Canned, Fault, Listen, Script, tables};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::program::{Ended, Results, command, run_canned, wait};
use crate::common::restarting::until;

const AHI: &str = "innodb_adaptive_hash_index";

/// A server with an adaptive hash index.
fn server(faults: Vec<Fault>) -> Canned {
    let mut answers = tables::answers(8);
    answers.push(Answer::value(format!("@@GLOBAL.{AHI}"), AHI, "1"));
    let script = Script { answers, faults, ..Script::default() };
    Canned::start(script, Listen::Port(0)).expect("a free port")
}

fn at(statement: u64, action: Action, text: &str) -> Fault {
    Fault::new(At::Statement(statement), action).only(text)
}

/// Interrupted once the first fault has come about.
fn interrupted(flag: &str, server: &Canned) -> Ended {
    let (results, port, start) = (Results::new(), server.port().to_string(), Instant::now());
    let words = format!("point-select --tables 8 --ops 100 {flag}");
    let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x"];
    let child = command(&words, &connection, &results).spawn().expect("runs");
    until("the server's silence", || server.counts().faults == 1);
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it runs");
    wait(child, start, &results)
}

#[test]
fn a_signal_ends_what_a_silent_server_does_not() {
    let index = format!("SELECT @@GLOBAL.{AHI}");
    for (flag, text) in [
        ("--ahi cold", index.as_str()),
        ("--ahi warm", index.as_str()),
        ("--ahi warm", "WHERE id IN ("),
        ("--warm pool", "SELECT SUM(LENGTH(c))"),
    ] {
        let server = server(vec![at(1, Action::HalfPacketThenStall, text)]);
        let ended = interrupted(flag, &server);
        assert_eq!(ended.code, 130, "{flag}, {text}: {}", ended.stderr);
    }
}

#[test]
fn a_signal_does_not_leave_the_adaptive_hash_index_off() {
    let server = server(vec![
        // It never says whether it was switched off.
        at(1, Action::HalfPacketThenStall, &format!("{AHI} = OFF")),
        // Only to be counted.
        at(1, Action::Stall(Duration::ZERO), &format!("{AHI} = ON")),
    ]);
    let ended = interrupted("--ahi cold", &server);
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    assert_eq!(server.counts().faults, 2, "{}", ended.stderr);
}

/// Between two steps as within one: where lost connections are opened again, the sweep goes on.
#[test]
fn a_server_that_goes_while_a_step_is_made_ready_is_waited_for() {
    let words = "point-select --tables 8 --clients 1,2 --ops 100 --ahi cold --on-error";
    let (asked, off) = (format!("SELECT @@GLOBAL.{AHI}"), format!("{AHI} = OFF"));
    for text in [asked, off] {
        let goes = || server(vec![at(2, Action::Close, &text)]);
        let ended = run_canned(&format!("{words} reconnect"), &goes());
        assert_eq!(ended.code, 0, "{text}: {}", ended.stderr);
        assert_eq!(ended.summaries.len(), 2, "{text}: {}", ended.stderr);
        let ended = run_canned(&format!("{words} continue"), &goes());
        assert_eq!(ended.code, 3, "{text}: {}", ended.stderr);
        assert!(ended.stderr.contains("hint: "), "{text}: {}", ended.stderr);
        assert_eq!(ended.summaries.len(), 1, "{text}: {}", ended.stderr);
    }
}

#[test]
fn an_adaptive_hash_index_that_may_be_off_is_tried_again_and_told() {
    let words = "point-select --tables 8 --ops 100 --ahi cold";
    let on = format!("{AHI} = ON");
    let lost = server(vec![at(1, Action::Close, &on), at(2, Action::Stall(Duration::ZERO), &on)]);
    let ended = run_canned(words, &lost);
    assert_eq!(lost.counts().faults, 2, "over another connection: {}", ended.stderr);
    let by_hand = format!("hint: to undo: SET GLOBAL {AHI} = ON");
    assert!(!ended.stderr.contains(&by_hand), "{}", ended.stderr);

    let refuses = Action::error(1231, "42000", "it cannot");
    let refused = server(vec![Fault::new(At::EachStatement(1), refuses).only(on)]);
    let ended = run_canned(words, &refused);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!(ended.stderr.contains(&by_hand), "{}", ended.stderr);
}
