//! What leaves this machine, to a server that asks for more than it should get.

use loadgen::canned::{Answer, Canned, Listen, Script, tables};
use loadgen::summary::load;

use crate::{program, run};

fn start(answers: Vec<Answer>) -> (Canned, String) {
    let server = Canned::start(Script { answers, ..Script::default() }, Listen::Port(0));
    let server = server.expect("a free port");
    let port = server.port().to_string();
    (server, port)
}

#[test]
fn a_server_that_asks_for_a_file_in_reply_to_anything_gets_none() {
    for words in [
        &["cleanup", "--yes"][..],
        &["prepare", "--rows", "100"],
        &["prepare", "--rows", "100", "--fill", "load-data"],
        &["point-select", "--ops", "10"],
        &["point-select", "--ops", "10", "--statements", "text"],
        &["load", "--rows", "100", "--mode", "load-data"],
    ] {
        // To anything at all; and to all but what the preflight asks.
        for mut answers in [vec![], tables::answers(1)] {
            answers.push(Answer::local_infile("", "/etc/passwd"));
            let (server, port) = start(answers);
            let out = tempfile::tempdir().expect("a directory");
            let tcp = ["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "u"];
            let mut command = program(&[words, &tcp[..]].concat());
            if matches!(words[0], "point-select" | "load") {
                command.arg("--out").arg(out.path());
            }
            let said = run(&mut command, "");
            assert_ne!(said.code, 0, "{words:?}: {}", said.both());
            assert_eq!(server.counts().local_bytes, 0, "{words:?}: {}", said.both());
        }
    }
}

#[test]
fn an_exposed_password_is_warned_about_and_noted() {
    let sha2 = "CREATE USER `u`@`%` IDENTIFIED WITH 'caching_sha2_password' AS '<secret>'";
    let native = sha2.replace("caching_sha2_password", "mysql_native_password");
    for (create, password, warned) in
        [(sha2, "-psecret", true), (sha2, "--password=", false), (&native, "-psecret", false)]
    {
        let mut answers = vec![Answer::value("SHOW CREATE USER CURRENT_USER()", "c", create)];
        answers.extend(tables::answers(1));
        let (_server, port) = start(answers);
        let out = tempfile::tempdir().expect("a directory");
        let tcp = ["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "u", password];
        let words = ["point-select", "--ops", "10", "--out", out.path().to_str().expect("plain")];
        let said = run(&mut program(&[&words[..], &tcp[..]].concat()), "");
        assert_eq!(said.code, 0, "{}", said.both());
        let says = "under a key that nobody verified";
        assert_eq!(said.stderr.contains(says), warned, "{create} {}", said.stderr);
        let noted = load(&[out.path().to_owned()], false).expect("a summary").steps()[0]
            .warnings
            .iter()
            .any(|warning| warning.code == "password_exposed");
        assert_eq!(noted, warned);
        let results = out.path().to_str().expect("plain");
        for words in [&["cleanup", "--yes"][..], &["verify", results]] {
            let said = run(&mut program(&[words, &tcp[..]].concat()), "");
            assert_eq!(said.stderr.contains(says), warned, "{words:?} {create} {}", said.stderr);
        }
    }
}

#[test]
fn nothing_is_said_to_a_server_that_takes_tls_away() {
    let (server, port) = start(tables::answers(1));
    for mode in ["REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"] {
        let ca = if mode == "REQUIRED" {
            None
        } else {
            Some("--ssl-ca=/etc/ssl/certs/ca-certificates.crt")
        };
        let tcp = ["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "u", "--ssl-mode", mode];
        let mut command = program(&[&["cleanup", "--yes"], &tcp[..]].concat());
        command.args(ca).env("MYSQL_PWD", "secret");
        let said = run(&mut command, "");
        assert!(said.code == 3 || said.stderr.contains("ssl-ca"), "{mode}: {}", said.both());
    }
    let counts = server.counts();
    assert_eq!((counts.sessions, counts.queries), (0, 0), "no log-in without encryption");
}
