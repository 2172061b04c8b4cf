//! Servers and connections that fall silent under verbs whose statements may take any time.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use loadgen::canned::{Action, At, Canned, Fault, Listen, Script};
use loadgen::sandbox::Sandbox;
use loadgen::summary::Outcome;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::runtime::Runtime;

use crate::common::program::Results;
use crate::common::restarting::{Restarting, until};
use crate::common::{local, query, sandbox, target};

/// A minute of silence, the question before it, and time for a busy machine.
const AT_MOST: Duration = Duration::from_mins(3);

fn loadgen(words: &str, connection: &[&str], path: Option<&Path>) -> Child {
    Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(words.split_whitespace())
        .args(path)
        .args(["--no-defaults", "-u", "root"])
        .args(connection)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs")
}

/// The exit status, and what was said.
fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A database with a small table.
fn database(server: &Sandbox, name: &str) {
    query(server, &format!("CREATE DATABASE {name}"));
    let socket = server.socket.to_str().expect("a path");
    let (code, said) = ended(loadgen("prepare --rows 10", &["-S", socket, "-D", name], None));
    assert_eq!(code, Some(0), "{said}");
}

/// A connection that keeps others waiting for these tables.
struct Holder(Runtime, Conn);

impl Holder {
    fn new(server: &Sandbox, tables: &str) -> Holder {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let mut conn = runtime.block_on(Conn::new(target(server))).expect("the server is there");
        runtime.block_on(conn.query_drop(format!("LOCK TABLES {tables}"))).expect("locked");
        Holder(runtime, conn)
    }

    fn release(mut self) {
        self.0.block_on(self.1.query_drop("UNLOCK TABLES")).expect("unlocked");
    }
}

fn until_waiting(server: &Sandbox, verbs: u32) {
    let waiting = "SELECT COUNT(*) FROM information_schema.processlist \
                   WHERE state LIKE 'Waiting for table metadata lock%'";
    until("the lock's queue", || query(server, waiting)[0][0] == verbs.to_string());
}

#[test]
fn a_stopped_server_is_given_up_and_an_interruption_ends_at_once() {
    let server = Restarting::new(sandbox(&local(), &[]));
    for name in ["a", "b", "c", "d"] {
        database(&server.sandbox, name);
    }
    let lock = "a.sbtest1 WRITE, b.sbtest1 WRITE, c.sbtest1 WRITE, d.sbtest1 WRITE";
    let holder = Holder::new(&server.sandbox, lock);
    let (results, loads) = (Results::new(), Results::new());
    let socket = server.sandbox.socket.to_str().expect("a path");
    let on = |words: &str, database: &str, path: Option<&Path>| {
        loadgen(words, &["-S", socket, "-D", database], path)
    };
    let interrupted = on("verify", "a", Some(results.dir()));
    let verbs = [
        on("verify", "a", Some(results.dir())),
        on("prepare --rows 20 --force", "b", None),
        on("cleanup --yes", "c", None),
        on("load --rows 20 --force --out", "d", Some(loads.dir())),
    ];
    until_waiting(&server.sandbox, 5);
    server.signal(Signal::SIGSTOP);
    let began = Instant::now();
    kill(Pid::from_raw(interrupted.id().cast_signed()), Signal::SIGINT).expect("it runs");
    let (code, said) = ended(interrupted);
    assert_eq!(code, Some(130), "{said}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let all = verbs.map(ended);
    server.signal(Signal::SIGCONT);
    assert!(began.elapsed() < AT_MOST, "{:?}", began.elapsed());
    for (code, said) in all {
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains(" 60s") && said.contains("hint: "), "{said}");
    }
    assert_eq!(loads.summaries()[0].outcome, Outcome::Aborted, "what there was is kept");
    holder.release();
}

/// Stands between a client and a server, and may keep answers to itself.
struct Relay {
    port: u16,
    mute: Arc<Mutex<Vec<Arc<AtomicBool>>>>,
}

impl Relay {
    fn new(to: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let mute = Arc::new(Mutex::new(Vec::new()));
        let flags = Arc::clone(&mute);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { return };
                let silent = Arc::new(AtomicBool::new(false));
                flags.lock().expect("no panic").push(Arc::clone(&silent));
                let (up, down) = (client.try_clone(), server.try_clone());
                pass(up.expect("a copy"), server, Arc::default());
                pass(down.expect("a copy"), client, silent);
            }
        });
        Relay { port, mute }
    }

    /// No answer comes any more on the connections that there are.
    fn silence(&self) {
        for silent in self.mute.lock().expect("no panic").iter() {
            silent.store(true, Ordering::Relaxed);
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, silent: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut bytes) {
            if !silent.load(Ordering::Relaxed) && to.write_all(&bytes[..n]).is_err() {
                return;
            }
        }
    });
}

#[test]
fn a_connection_whose_answer_never_comes_is_given_up() {
    let server = sandbox(&local(), &[]);
    for name in ["a", "b", "c"] {
        database(&server, name);
    }
    let holder = Holder::new(&server, "a.sbtest1 WRITE, b.sbtest1 WRITE, c.sbtest1 WRITE");
    let relay = Relay::new(server.port);
    let port = relay.port.to_string();
    let (results, loads) = (Results::new(), Results::new());
    let on = |words: &str, database: &str, path: Option<&Path>| {
        loadgen(words, &["-h", "127.0.0.1", "-P", &port, "-D", database], path)
    };
    let verbs = [
        on("verify", "a", Some(results.dir())),
        on("cleanup --yes", "b", None),
        on("load --rows 20 --force --out", "c", Some(loads.dir())),
    ];
    until_waiting(&server, 3);
    relay.silence();
    let began = Instant::now();
    holder.release();
    for (code, said) in verbs.map(ended) {
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains("hint: "), "{said}");
    }
    // It counts from the answer on: the server was never gone.
    assert!(began.elapsed() < AT_MOST, "{:?}", began.elapsed());
    assert_eq!(query(&server, "SHOW TABLES FROM b").len(), 0, "the server did what was asked");
}

/// It lets everybody in, and says nothing more.
#[test]
fn a_server_that_answers_no_question_is_given_up() {
    let stall = Fault::new(At::EachStatement(1), Action::Stall(Duration::from_hours(1)));
    let script = Script { faults: vec![stall], ..Script::default() };
    let server = Canned::start(script, Listen::Port(0)).expect("a free port");
    let port = server.port().to_string();
    let results = Results::new();
    let out = results.dir().to_str().expect("plain");
    let profile = |name: &str, more: &str| {
        let path = results.dir().join(name);
        let text = format!(
            "name = \"p\"\n[[server]]\nurl = \"mysql://u:x@127.0.0.1:{port}/d\"\n{more}\n[[run]]\n\
             suite = {{ name = \"s\", tests = [{{ name = \"t\", run = [\"true\"] }}] }}\n"
        );
        std::fs::write(&path, text).expect("writable");
        Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .arg("run")
            .arg(path)
            .arg("--out")
            .arg(results.dir().join(name.replace(".toml", "")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs")
    };
    let began = Instant::now();
    let load = format!("load --rows 10 --password=x --out {out}");
    let verbs = [
        loadgen(&load, &["-h", "127.0.0.1", "-P", &port], None),
        profile("suite.toml", ""),
        profile("started.toml", "start = [\"true\"]\nstop = [\"true\"]"),
    ];
    for (code, said) in verbs.map(ended) {
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains("hint: "), "{said}");
    }
    assert!(began.elapsed() < AT_MOST, "{:?}", began.elapsed());
}
