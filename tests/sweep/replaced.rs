//! Another server at the same address, or the same one set otherwise, while a sweep runs.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Child;
use std::time::Instant;

use loadgen::sandbox::Sandbox;
use loadgen::summary::{Outcome, Summary};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::servers::prepared;
use crate::common::program::{Ended, Results, command, wait};
use crate::common::restarting::until;
use crate::common::{Server, at_once, local, query, servers, skipped};

/// A socket's name that leads to one server, then to another.
struct Address(TempDir);

impl Address {
    fn of(server: &Sandbox) -> Address {
        let address = Address(tempfile::tempdir().expect("a directory"));
        address.lead_to(server);
        address
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("mysqld.sock")
    }

    fn lead_to(&self, server: &Sandbox) {
        let new = self.0.path().join("new");
        symlink(&server.socket, &new).expect("a link");
        std::fs::rename(new, self.path()).expect("one step");
    }
}

/// A sweep at an address.
struct Sweep(Child, Instant, Results);

impl Sweep {
    fn start(address: &Address, words: &str) -> Sweep {
        let (results, path) = (Results::new(), address.path());
        let connection = ["-S", path.to_str().expect("a path"), "-u", "root"];
        let child = command(words, &connection, &results).spawn().expect("it runs");
        Sweep(child, Instant::now(), results)
    }

    fn ended(self) -> Ended {
        wait(self.0, self.1, &self.2)
    }
}

fn end(server: &Sandbox) {
    kill(Pid::from_raw(server.pid.cast_signed()), Signal::SIGKILL).expect("it runs");
}

fn count(server: &Sandbox, name: &str) -> u64 {
    query(server, &format!("SHOW GLOBAL STATUS LIKE '{name}'"))[0][1].parse().expect("a count")
}

/// Waits for updates; all that a sweep reads of a server before its step is read by then.
fn until_busy(server: &Sandbox) {
    let before = count(server, "Com_update");
    until("a busy server", || count(server, "Com_update") > before + 50);
}

fn warned(step: &Summary, code: &str) -> bool {
    step.warnings.iter().any(|warning| warning.code == code)
}

fn change<'a>(step: &'a Summary, name: &str) -> (Option<&'a str>, Option<&'a str>) {
    let found = step.server.settings_changed.iter().find(|change| change.name == name);
    let found = found.unwrap_or_else(|| panic!("{name}: {:?}", step.server.settings_changed));
    (found.before.as_deref(), found.after.as_deref())
}

/// The version and the variables of one summary are one server's.
fn consistent(step: &Summary) {
    let server = &step.server;
    assert_eq!(server.variables.get("version"), Some(&server.version));
    // What the build advertises is in the variable alone.
    assert!(server.variables["version_comment"].starts_with(&server.version_comment));
}

const LONG: &str = "update-index --tables 4 --clients 4 --warmup 0 --time 2m --on-error reconnect";

/// The first server dies in a step, and the second takes its place.
fn replaced(first: &Sandbox, second: &Sandbox, words: &str) -> Ended {
    let address = Address::of(first);
    let sweep = Sweep::start(&address, words);
    until_busy(first);
    address.lead_to(second);
    end(first);
    sweep.ended()
}

/// The step is no result, ended before its time, and its reason names this variable.
fn no_result(ended: &Ended, name: &str) {
    let step = ended.only();
    assert_eq!((ended.code, step.outcome), (1, Outcome::ServerChanged), "{}", ended.stderr);
    let reason = step.reason.as_deref().expect("a reason");
    let (before, after) = change(step, name);
    for named in [name, before.expect("a value"), after.expect("a value")] {
        assert!(reason.contains(named) && ended.stderr.contains(named), "{named}: {reason}");
    }
    assert!(step.measured_s < 119.0, "{}", step.measured_s);
    consistent(step);
}

#[test]
fn a_step_is_no_result_when_a_server_with_other_settings_takes_over() {
    let first = prepared(&local(), &[]);
    let second = prepared(&local(), &[("innodb-io-capacity", "321")]);
    let ended = replaced(&first, &second, LONG);
    no_result(&ended, "innodb_io_capacity");
    assert_eq!(change(ended.only(), "innodb_io_capacity"), (Some("200"), Some("321")));
}

#[test]
fn a_step_is_no_result_when_a_server_of_another_version_takes_over() {
    let others = &servers()[1..];
    if others.is_empty() {
        skipped("LOADGEN_TEST_SERVERS names no other server");
    }
    for other in others {
        let (first, second) = (prepared(&local(), &[]), prepared(other, &[]));
        no_result(&replaced(&first, &second, LONG), "version");
    }
}

#[test]
fn a_step_is_a_result_with_a_note_when_a_server_set_alike_takes_over() {
    let (first, second) = (prepared(&local(), &[]), prepared(&local(), &[]));
    let words = LONG.replace("2m", "10s");
    let ended = replaced(&first, &second, &words);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let step = ended.only();
    assert_eq!(step.outcome, Outcome::Completed);
    assert!(warned(step, "server_replaced"), "{:?}", step.warnings);
    let datadir = |server: &Sandbox| query(server, "SELECT @@datadir")[0][0].clone();
    assert_eq!(change(step, "datadir").1, Some(datadir(&second).as_str()));
    assert_eq!(step.server.variables["datadir"], change(step, "datadir").0.expect("a value"));
}

#[test]
fn a_step_is_no_result_when_its_clients_reach_another_server_than_the_one_that_was_looked_at() {
    let ahi = ("innodb-adaptive-hash-index", "ON");
    let first = prepared(&local(), &[ahi]);
    let second = prepared(&local(), &[ahi, ("innodb-io-capacity", "321")]);
    let address = Address::of(&first);
    let words = "point-select --tables 4 --clients 1,2 --ops 200 --ahi warm";
    let sweep = Sweep::start(&address, words);
    until("the first step", || sweep.2.summaries().len() == 1);
    // The first one lives on, as behind a proxy that leads elsewhere.
    address.lead_to(&second);
    let ended = sweep.ended();
    assert!(count(&second, "Com_select") >= 200);
    let step = ended.summaries.iter().find(|step| step.plan.clients == 2).expect("kept");
    assert_eq!((ended.code, step.outcome), (1, Outcome::ServerChanged), "{}", ended.stderr);
    assert_eq!(change(step, "innodb_io_capacity"), (Some("200"), Some("321")));
}

#[test]
fn a_step_tells_of_the_tables_of_the_server_that_took_over_in_the_one_before() {
    let (first, second) = (prepared(&local(), &[]), prepared(&local(), &[]));
    query(&second, "ALTER TABLE sbtest.sbtest1 ADD INDEX extra (pad)");
    let ended = replaced(&first, &second, &LONG.replace("2m", "10s --repeat 2"));
    assert_eq!((ended.code, ended.summaries.len()), (4, 2), "no cell takes both: {}", ended.stderr);
    let has = |repeat: u32| {
        let step = ended.summaries.iter().find(|step| step.plan.repeat_index == repeat);
        let formats = step.expect("measured").server.table_formats.clone().expect("known");
        formats.iter().any(|format| format.contains("(pad)"))
    };
    assert_eq!((has(1), has(2)), (false, true));
}

#[test]
fn a_step_tells_of_the_server_that_it_was_measured_on_when_that_came_between_steps() {
    at_once(comes_between_steps);
}

fn comes_between_steps(other: &Server) {
    let ahi = ("innodb-adaptive-hash-index", "ON");
    let first = prepared(&local(), &[ahi]);
    let second = prepared(other, &[ahi, ("innodb-io-capacity", "321")]);
    let address = Address::of(&first);
    // Each step begins with some seconds of searches.
    let words = "point-select --tables 4 --clients 1,2 --ops 200 --ahi warm --on-error reconnect";
    let sweep = Sweep::start(&address, words);
    until("the first step", || sweep.2.summaries().len() == 1);
    address.lead_to(&second);
    end(&first);
    let ended = sweep.ended();
    assert_eq!((ended.code, ended.summaries.len()), (0, 2), "{}", ended.stderr);
    let of = |clients: u32| {
        ended.summaries.iter().find(|step| step.plan.clients == clients).expect("measured")
    };
    let (one, two) = (of(1), of(2));
    for (step, capacity) in [(one, "200"), (two, "321")] {
        assert_eq!(step.outcome, Outcome::Completed);
        assert_eq!(step.server.variables["innodb_io_capacity"], capacity);
        assert_eq!(step.label, step.server.version);
        consistent(step);
    }
    assert_ne!(one.server.variables["datadir"], two.server.variables["datadir"]);
    assert!(!warned(one, "server_replaced") && warned(two, "server_replaced"));
    assert!(warned(two, "settings_changed"), "{:?}", two.warnings);
}
