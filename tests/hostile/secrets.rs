//! A marker for a password, in every verb and every way to give it: it is found nowhere.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use loadgen::canned::{Action, At, Canned, Fault, Listen, Script};
use loadgen::sandbox::Sandbox;

use crate::common::{local, query, sandbox};
use crate::{Said, program, run, said};

const MARKER: &str = "Marker-7hQ";

/// One use of the program: what it is, and its expected status.
struct Use<'a> {
    name: &'a str,
    command: Command,
    input: &'a str,
    code: i32,
}

fn must_not_show(name: &str, said: &Said) {
    assert!(!said.both().contains(MARKER), "{name} shows the password:\n{}", said.both());
}

/// Every file below a directory.
fn files(dir: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push((path.display().to_string(), fs::read(&path).expect("readable")));
        }
    }
}

fn holds(bytes: &[u8]) -> bool {
    bytes.windows(MARKER.len()).any(|part| part == MARKER.as_bytes())
}

#[test]
fn a_password_is_shown_and_written_nowhere() {
    let server = sandbox(&local(), &[("local-infile", "1")]);
    for sql in [
        format!("CREATE USER 'marked'@'%' IDENTIFIED BY '{MARKER}'"),
        "GRANT ALL ON *.* TO 'marked'@'%'".to_owned(),
    ] {
        query(&server, &sql);
    }
    let given = tempfile::tempdir().expect("a directory");
    let out = tempfile::tempdir().expect("a directory");
    let results = out.path().join("results");
    let files_of = write_files(given.path(), &server);
    for Use { name, mut command, input, code } in uses(&server, &files_of, &results) {
        let said = run(&mut command, input);
        must_not_show(name, &said);
        assert_eq!(said.code, code, "{name}: {}", said.both());
    }
    let mut written = Vec::new();
    files(out.path(), &mut written);
    assert!(written.len() >= 6, "{} files", written.len());
    for (path, bytes) in written {
        assert!(!holds(&bytes), "{path} holds the password");
    }
}

/// Profile and option files that hold the password, sound ones and broken ones.
struct Files {
    option_file: String,
    open_option_file: String,
    broken_option_file: String,
    profile: String,
    broken_profile: String,
    /// A URL and a command where something else belongs.
    misplaced: [String; 2],
}

fn write_files(dir: &Path, server: &Sandbox) -> Files {
    let (port, socket) = (server.port(), server.socket().display());
    let url = format!("mysql://marked:{MARKER}@127.0.0.1:{port}/sbtest");
    let run = "[tables]\ncount = 1\nrows = 200\n[[run]]\nworkload = [\"point-select\"]\n\
               clients = 2\nops = 100\n";
    let write = |name: &str, mode: u32, text: String| {
        let path = dir.join(name);
        fs::write(&path, text).expect("writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
        path.to_str().expect("a plain path").to_owned()
    };
    let client = format!("[client]\nuser=marked\npassword={MARKER}\nsocket={socket}\n");
    Files {
        option_file: write("my.cnf", 0o600, client.clone()),
        open_option_file: write("open.cnf", 0o644, client),
        broken_option_file: write("broken.cnf", 0o600, format!("[loadgen]\npassword {MARKER}\n")),
        profile: write(
            "p.toml",
            0o600,
            format!("name = \"p\"\n[[server]]\nlabel = \"p\"\nurl = \"{url}\"\n{run}"),
        ),
        misplaced: [
            ("url.toml", format!("clients = \"{url}\"")),
            ("command.toml", format!("[[command]]\nat = 0\nrun = \"mysql -p{MARKER}\"")),
        ]
        .map(|(name, text)| write(name, 0o600, format!("name = \"p\"\n[[run]]\n{text}\n"))),
        broken_profile: write(
            "broken.toml",
            0o600,
            format!("name = \"p\"\n[[server]]\nlabel = \"p\"\nurl = \"{url}\" oops\n{run}"),
        ),
    }
}

fn uses<'a>(server: &Sandbox, files: &Files, results: &Path) -> Vec<Use<'a>> {
    let port = server.port().to_string();
    let socket = server.socket().to_str().expect("a plain path").to_owned();
    let results = results.to_str().expect("a plain path").to_owned();
    let url = format!("mysql://marked:{MARKER}@127.0.0.1:{port}/sbtest");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let nobody = closed.local_addr().expect("bound").port();
    drop(closed);
    let use_of = |name: &'a str, code: i32, line: String| {
        let words: Vec<&str> = line.split(' ').collect();
        Use { name, command: program(&words), input: "", code }
    };
    let tcp = format!("--no-defaults -h 127.0.0.1 -P {port} -u marked");
    let step = format!("--clients 2 --ops 200 --quiet --out {results}");
    let mut with_env = use_of(
        "update, MYSQL_PWD",
        0,
        format!("update --no-defaults -u marked -S {socket} {step} --label b"),
    );
    with_env.command.env("MYSQL_PWD", MARKER);
    let mut with_fd =
        use_of("cleanup, --password-fd", 0, format!("cleanup --yes {tcp} --password-fd 0"));
    with_fd.input = MARKER;
    vec![
        use_of("prepare, -p", 0, format!("prepare --tables 2 --rows 200 {tcp} -p{MARKER}")),
        use_of(
            "point-select, --url",
            0,
            format!("point-select --no-defaults --url {url} {step} --label a"),
        ),
        with_env,
        use_of(
            "read-write, option file",
            0,
            format!("read-write --defaults-file {} {step} --label a", files.option_file),
        ),
        use_of(
            "an option file for all to read",
            0,
            format!("point-select --defaults-file {} {step} --label b", files.open_option_file),
        ),
        use_of("run", 0, format!("run {} --out {results}", files.profile)),
        use_of("run --list", 0, format!("run {} --list --out {results}", files.profile)),
        use_of("run, broken", 2, format!("run {} --out {results}", files.broken_profile)),
        use_of("a URL out of place", 2, format!("run {} --list", files.misplaced[0])),
        use_of("a command out of place", 2, format!("run {} --list", files.misplaced[1])),
        use_of(
            "load",
            0,
            format!("load --rows 100 {tcp} -p{MARKER} --quiet --out {results} --label l"),
        ),
        use_of("report", 0, format!("report {results} --partial")),
        use_of("report, markdown", 0, format!("report {results} --partial --format markdown")),
        use_of("report, csv", 0, format!("report {results} --partial --format csv")),
        use_of("report, json", 0, format!("report {results} --partial --format json")),
        use_of("report, settings", 0, format!("report {results} --partial --layout settings")),
        use_of("compare", 0, format!("compare {results} --base a --new b --force")),
        use_of("workloads", 0, "workloads".to_owned()),
        use_of("wrong password", 3, format!("cleanup --yes {tcp} -p{MARKER}x")),
        use_of(
            "wrong account",
            3,
            format!(
                "point-select --no-defaults -h 127.0.0.1 -P {port} -u nobody -p{MARKER} {step}"
            ),
        ),
        use_of(
            "nobody there",
            3,
            format!("point-select --no-defaults -h 127.0.0.1 -P {nobody} -u u -p{MARKER} {step}"),
        ),
        use_of("no TLS", 3, format!("point-select {tcp} -p{MARKER} --ssl-mode REQUIRED {step}")),
        use_of("no such database", 3, format!("cleanup --yes {tcp} -p{MARKER} -D nowhere")),
        use_of(
            "a broken URL",
            2,
            format!("cleanup --no-defaults --url mysql://u:{MARKER}@h:99999/d"),
        ),
        use_of(
            "a URL with a #",
            2,
            format!("cleanup --no-defaults --url mysql://u:{MARKER}#x@h/d"),
        ),
        use_of("a URL of nothing", 2, format!("cleanup --no-defaults --url u:{MARKER}@h")),
        use_of("a word after -p", 2, format!("cleanup {tcp} -p {MARKER}")),
        use_of("an unknown flag", 2, format!("cleanup {tcp} -p{MARKER} --unknown")),
        use_of(
            "a broken option file",
            2,
            format!("cleanup --defaults-file {}", files.broken_option_file),
        ),
        with_fd,
    ]
}

/// The driver panics on these log-ins, and its panic message is nobody's.
#[test]
fn a_driver_that_breaks_shows_no_password() {
    for action in [Action::EmptyAuthSwitchNonce, Action::PublicKey(b"\x01no key".to_vec())] {
        let faults = vec![Fault::new(At::Connect(1), action)];
        let canned = Canned::start(Script { faults, ..Script::default() }, Listen::Port(0));
        let port = canned.as_ref().expect("a free port").port().to_string();
        let password = format!("-p{MARKER}");
        let args =
            ["cleanup", "--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "u", &password];
        let said = run(&mut program(&args), "");
        must_not_show("a broken log-in", &said);
        assert_eq!(said.code, 3, "{}", said.both());
        assert!(said.stderr.contains("no MySQL protocol"), "{}", said.stderr);
    }
}

/// While it runs, neither its title nor its environment tells, nor that of what it starts.
#[test]
fn a_running_process_does_not_tell() {
    let server = sandbox(&local(), &[]);
    query(&server, &format!("CREATE USER 'marked'@'%' IDENTIFIED BY '{MARKER}'"));
    query(&server, "GRANT ALL ON *.* TO 'marked'@'%'");
    let port = server.port().to_string();
    let password = format!("-p{MARKER}");
    let tcp = ["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "marked", &password];
    let out = tempfile::tempdir().expect("a directory");
    let prepared = program(&[&["prepare", "--rows", "100"], &tcp[..]].concat()).output();
    assert_eq!(prepared.expect("it runs").status.code(), Some(0));
    let words = ["point-select", "--time", "20", "--warmup", "0", "--out"];
    let mut command =
        program(&[&words[..], &[out.path().to_str().expect("plain")], &tcp[..]].concat());
    let child = command.spawn().expect("the program runs");
    let pid = child.id();
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let deadline = Instant::now() + Duration::from_secs(30);
    // Connected: that is after the hand-over.
    let connected = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'marked'";
    while query(&server, connected)[0][0] == "0" {
        assert!(Instant::now() < deadline, "it never connected");
        std::thread::sleep(Duration::from_millis(20));
    }
    let title = read("cmdline");
    assert!(!title.is_empty() && !holds(&title), "{}", String::from_utf8_lossy(&title));
    assert!(String::from_utf8_lossy(&title).contains("--password-fd="));
    assert!(!holds(&read("environ")));
    let process = nix::unistd::Pid::from_raw(i32::try_from(pid).expect("a pid"));
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGTERM).expect("ours");
    let said = said(&child.wait_with_output().expect("it ends"));
    must_not_show("interrupted", &said);
    assert_eq!(said.code, 143, "{}", said.both());
}
