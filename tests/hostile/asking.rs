//! `prepare --force` and `cleanup` ask whoever sits at a terminal, and touch what is marked only.

use std::process::Command;

use loadgen::sandbox::Sandbox;

use crate::common::{local, query, sandbox};
use crate::{Said, program, root, run};

/// The program on a terminal of its own (util-linux's `script` makes one), this typed into it.
fn at_terminal(server: &Sandbox, words: &[&str], typed: &str) -> Said {
    let command = program(&[words, &root(server)[..]].concat());
    let mut line = format!("'{}'", command.get_program().to_str().expect("a plain path"));
    for arg in command.get_args() {
        line = format!("{line} '{}'", arg.to_str().expect("plain"));
    }
    // An entry in the log of what was typed is of no use to anybody.
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    script.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    run(&mut script, typed)
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
            let question = "Drop sbtest1, sbtest2 at root@";
            assert!(said.stdout.contains(question), "{typed:?}: {}", said.both());
            assert!(said.stdout.contains("nothing was dropped"), "{typed:?}: {}", said.both());
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
    // Scripts have no terminal, and are not asked.
    query(server, "UPDATE sbtest.sbtest1 SET k = 0");
    assert_eq!(quiet(&forced).code, 0);
    assert!(!changed(server));
    let said = at_terminal(server, &["cleanup"], "YES\n");
    assert_eq!(said.code, 0, "{}", said.both());
    assert_eq!(tables(server), ["sbtest3"], "what has no mark stays");
    // Nothing to drop, nothing to ask.
    let said = at_terminal(server, &["cleanup"], "");
    assert!(said.code == 0 && !said.stdout.contains("[y/N]"), "{}", said.both());
}
