//! `prepare --force` and `cleanup` ask whoever sits at a terminal, and touch what is marked only. Without a
//! terminal `cleanup` wants `--yes`.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use loadgen::sandbox::Sandbox;

use super::{Said, program, root, run};
use crate::common::{local, query, sandbox};

/// The program on a terminal of its own (util-linux's `script` makes one), this typed into it.
fn at_terminal(server: &Sandbox, words: &[&str], typed: &str) -> Said {
    run(&mut terminal(&program(&[words, &root(server)[..]].concat())), typed)
}

fn terminal(command: &Command) -> Command {
    let mut line = format!("'{}'", command.get_program().to_str().expect("a plain path"));
    for arg in command.get_args() {
        line = format!("{line} '{}'", arg.to_str().expect("plain"));
    }
    // An entry in the log of what was typed is of no use to anybody.
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    script.stdout(Stdio::piped()).stderr(Stdio::piped());
    script
}

/// As long as it asks for a password, the terminal makes no signal of it.
#[test]
fn ctrl_c_ends_it_while_it_asks_for_a_password() {
    let command = program(&["cleanup", "--no-defaults", "-h", "127.0.0.1", "-P", "1", "-p"]);
    let mut child = terminal(&command).stdin(Stdio::piped()).spawn().expect("script runs");
    let mut shown = Vec::new();
    let mut screen = child.stdout.take().expect("a pipe");
    while !shown.ends_with(b": ") {
        let mut byte = [0];
        screen.read_exact(&mut byte).expect("it asks");
        shown.push(byte[0]);
    }
    assert!(shown.starts_with(b"Password for "), "{}", String::from_utf8_lossy(&shown));
    // What is asked stands there a moment before what is typed is hidden.
    std::thread::sleep(Duration::from_millis(500));
    child.stdin.take().expect("a pipe").write_all(b"\x03").expect("it reads");
    screen.read_to_end(&mut shown).expect("it ends");
    let shown = String::from_utf8_lossy(&shown);
    assert_eq!(child.wait().expect("ours").code(), Some(130), "{shown}");
    // A terminal shows the first word in colour.
    assert!(shown.contains("error:") && shown.contains(" interrupted"), "{shown}");
    assert!(!shown.contains("hint"), "{shown}");
}

fn tables(server: &Sandbox) -> Vec<String> {
    let sql = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'sbtest' \
               ORDER BY 1";
    query(server, sql).into_iter().flatten().collect()
}

fn changed(server: &Sandbox) -> bool {
    query(server, "SELECT COUNT(*) FROM sbtest.sbtest1 WHERE k = 0")[0][0] != "0"
}

#[test]
fn whoever_is_at_a_terminal_is_asked_before_tables_are_dropped() {
    let server = &sandbox(&local(), &[]);
    let prepare = ["prepare", "--tables", "2", "--rows", "50"];
    let forced = [&prepare[..], &["--force"]].concat();
    let all = ["sbtest1", "sbtest2", "sbtest3"].map(str::to_owned);
    let quiet = |words: &[&str]| run(&mut program(&[words, &root(server)[..]].concat()), "");
    assert_eq!(quiet(&prepare).code, 0);
    query(server, "CREATE TABLE sbtest.sbtest3 (id INT PRIMARY KEY)");
    query(server, "UPDATE sbtest.sbtest1 SET k = 0");

    // Anything but yes, and no answer at all, leave everything as it is.
    for typed in ["n\n", "\n", "yesterday\n", "\u{4}"] {
        for words in [&forced[..], &["cleanup"]] {
            let said = at_terminal(server, words, typed);
            let asked = ["sbtest1, sbtest2", "[y/N]"].iter().all(|of| said.stdout.contains(of));
            assert!(asked, "{typed:?}: {}", said.both());
            assert_eq!(said.code, 1, "{typed:?}: {}", said.both());
            assert!(tables(server) == all && changed(server), "{typed:?}");
        }
    }
    // Nothing is dropped by a prepare that finishes what is there: no question.
    let said = at_terminal(server, &prepare, "");
    assert!(said.code == 0 && !said.stdout.contains("[y/N]"), "{}", said.both());

    let said = at_terminal(server, &forced, "y\n");
    assert!(said.code == 0 && !changed(server), "{}", said.both());
    query(server, "UPDATE sbtest.sbtest1 SET k = 0");
    let said = at_terminal(server, &[&forced[..], &["--yes"]].concat(), "");
    assert!(said.code == 0 && !said.stdout.contains("[y/N]"), "{}", said.both());
    assert!(!changed(server));
    // Scripts have no terminal, and are not asked: --force is their word, and cleanup has none but --yes.
    query(server, "UPDATE sbtest.sbtest1 SET k = 0");
    let said = quiet(&["cleanup"]);
    assert_eq!(said.code, 2, "{}", said.both());
    assert!(
        said.stderr.contains("sbtest1, sbtest2") && said.stderr.contains("--yes"),
        "{}",
        said.both()
    );
    assert!(tables(server) == all && changed(server));
    assert_eq!(quiet(&forced).code, 0);
    assert!(!changed(server));
    // So is a load, of those that it would drop.
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().to_str().expect("a plain path");
    let load = ["load", "--rows", "50", "--force", "--out", out];
    let said = at_terminal(server, &load, "n\n");
    assert!(said.code == 1 && said.stdout.contains("[y/N]"), "{}", said.both());
    assert_eq!(at_terminal(server, &load, "y\n").code, 0);
    let said = at_terminal(server, &load, "");
    assert!(said.code == 0 && !said.stdout.contains("[y/N]"), "its own: {}", said.both());
    let said = at_terminal(server, &["cleanup"], "YES\n");
    assert_eq!(said.code, 0, "{}", said.both());
    assert_eq!(tables(server), ["sbtest3"], "what has no mark stays");
    // Nothing to drop, nothing to ask.
    let said = at_terminal(server, &["cleanup"], "");
    assert!(said.code == 0 && !said.stdout.contains("[y/N]"), "{}", said.both());
    assert_eq!(quiet(&["cleanup"]).code, 0);
    assert_eq!(quiet(&prepare[..3]).code, 0);
    assert_eq!(quiet(&["cleanup", "--yes"]).code, 0);
    assert_eq!(tables(server), ["sbtest3"]);
}
