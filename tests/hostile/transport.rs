//! What leaves this machine, to a server that asks for more than it should get.

use std::path::Path;
use std::process::{Child, Command};

use loadgen::canned::{Answer, Canned, Listen, Script, tables};
use loadgen::sandbox::Sandbox;
use loadgen::summary::{ErrorClass, Summary, load};

use super::{program, root, run, said};
use crate::common::certificates::Certificates;
use crate::common::proxy::Proxy;
use crate::common::restarting::until;
use crate::common::{local, sandbox};

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

struct Account<'a> {
    create: &'a str,
    password: &'a str,
    host: &'a str,
    warned: bool,
}

#[test]
fn an_exposed_password_is_warned_about_and_noted_unless_it_stays_on_this_host() {
    let sha2 = "CREATE USER `u`@`%` IDENTIFIED WITH 'caching_sha2_password' AS '<secret>'";
    let [sha256, native] = ["sha256_password", "mysql_native_password"]
        .map(|method| sha2.replace("caching_sha2_password", method));
    // Leads to this host, and is no loopback address.
    let elsewhere = "0.0.0.0";
    for Account { create, password, host, warned } in [
        Account { create: sha2, password: "-psecret", host: elsewhere, warned: true },
        Account { create: &sha256, password: "-psecret", host: elsewhere, warned: true },
        Account { create: sha2, password: "-psecret", host: "127.0.0.1", warned: false },
        Account { create: sha2, password: "--password=", host: elsewhere, warned: false },
        Account { create: &native, password: "-psecret", host: elsewhere, warned: false },
    ] {
        let mut answers = vec![Answer::value("SHOW CREATE USER CURRENT_USER()", "c", create)];
        answers.extend(tables::answers(1));
        let (_server, port) = start(answers);
        let out = tempfile::tempdir().expect("a directory");
        let tcp = ["--no-defaults", "-h", host, "-P", &port, "-u", "u", password];
        let words = ["point-select", "--ops", "10", "--out", out.path().to_str().expect("plain")];
        let said = run(&mut program(&[&words[..], &tcp[..]].concat()), "");
        assert_eq!(said.code, 0, "{}", said.both());
        let says = "under a key that nobody verified";
        let times = said.stderr.matches(says).count();
        assert_eq!(times, usize::from(warned), "{create} {host} {}", said.stderr);
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

/// A server with TLS, its tables filled; one without; a way to the first.
struct Two {
    certificates: Certificates,
    encrypted: Sandbox,
    bare: Sandbox,
    proxy: Proxy,
}

impl Two {
    fn start() -> Two {
        let certificates = Certificates::new();
        certificates.sign("good", "DNS:localhost", 2);
        certificates.install("good");
        let encrypted = sandbox(&local(), &certificates.options());
        let prepare = ["prepare", "--tables", "1", "--rows", "100"];
        let said = run(&mut program(&[&prepare[..], &root(&encrypted)].concat()), "");
        assert_eq!(said.code, 0, "{}", said.both());
        let bare = sandbox(&local(), &[("skip-ssl", "1")]);
        let proxy = Proxy::to(encrypted.port);
        Two { certificates, encrypted, bare, proxy }
    }

    /// A sweep that wants TLS, by way of the proxy.
    fn sweep(&self, mode: &str, words: &str, out: &Path) -> Command {
        let port = self.proxy.port.to_string();
        let tcp = ["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "root"];
        let step = ["point-select", "--tables", "1", "--clients", "4", "--warmup", "0"];
        let mut command = program(&[&step[..], &tcp].concat());
        command.args(words.split(' ')).args(["--on-error", "reconnect", "--ssl-mode", mode]);
        if mode != "REQUIRED" {
            command.arg("--ssl-ca").arg(self.certificates.path("ca.pem"));
        }
        command.arg("--out").arg(out);
        command
    }

    /// Waits until its clients are at work, and then puts the server without TLS in the place of
    /// the other, until it has been tried several times.
    fn take_away(&self, sweep: &mut Child) {
        until("clients at work", || {
            let running = sweep.try_wait().expect("ours").is_none();
            !running || (self.proxy.seen().0 >= 5 && self.proxy.seen().1 > 100_000)
        });
        self.proxy.lay(self.bare.port);
        until("attempts to connect", || {
            let running = sweep.try_wait().expect("ours").is_none();
            !running || self.proxy.seen().0 >= 8
        });
    }
}

fn only_summary(out: &Path) -> Summary {
    load(&[out.to_owned()], false).expect("a summary").steps()[0].clone()
}

/// A server that had TLS and comes back without it: not a byte is said to it, not even who asks.
#[test]
fn a_run_with_tls_says_nothing_to_a_server_that_comes_back_without() {
    for mode in ["REQUIRED", "VERIFY_CA"] {
        let servers = Two::start();
        let out = tempfile::tempdir().expect("a directory");
        let mut sweep = servers.sweep(mode, "--time 15s", out.path()).spawn().expect("runs");
        servers.take_away(&mut sweep);
        let (attempts, bytes) = servers.proxy.seen();
        assert_eq!(bytes, 0, "{mode}: {attempts} connections in plain text");
        servers.proxy.lay(servers.encrypted.port);
        let said = said(&sweep.wait_with_output().expect("it ends"));
        assert_eq!(said.code, 0, "{mode}: {}", said.both());
        let summary = only_summary(out.path());
        assert_eq!(summary.totals.reconnects, 4, "{:?}", summary.totals);
        let refused =
            summary.totals.errors.iter().find(|e| e.class == ErrorClass::Connect).expect("refused");
        assert!(refused.message.contains("SSL"), "{refused:?}");
        // On a busy machine there may be another one while they come back.
        assert!(!summary.outages.is_empty(), "{:?}", summary.totals);
    }
}

/// The same at the start of a step: no waiting brings TLS back.
#[test]
fn a_server_that_stays_without_tls_ends_the_sweep_at_its_next_step() {
    let servers = Two::start();
    let out = tempfile::tempdir().expect("a directory");
    // It ends at the next step: more of them cost nothing.
    let words = "--time 4s --repeat 8";
    let mut sweep = servers.sweep("REQUIRED", words, out.path()).spawn().expect("runs");
    servers.take_away(&mut sweep);
    let said = said(&sweep.wait_with_output().expect("it ends"));
    assert_eq!(said.code, 3, "{}", said.both());
    assert!(said.stderr.contains("TLS"), "{}", said.stderr);
    assert_eq!(servers.proxy.seen().1, 0, "in plain text");
    assert!(only_summary(out.path()).totals.ops > 0, "what was measured is kept");
}
