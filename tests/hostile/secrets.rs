//! A marker for a password, in every verb and every way to give it: it is found nowhere.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use loadgen::canned::{Action, At, Canned, Fault, Listen, Script};
use loadgen::sandbox::Sandbox;

use super::{Said, program, run, said};
use crate::common::restarting::until;
use crate::common::{local, query, sandbox};

const MARKER: &str = "Marker-7hQ";

/// One use of the program: what it is, and its expected status.
struct Use<'a> {
    name: &'a str,
    command: Command,
    input: &'a str,
    code: i32,
}

/// A server with an account whose password is the marker.
fn marked() -> Sandbox {
    let server = sandbox(&local(), &[]);
    query(&server, &format!("CREATE USER 'marked'@'%' IDENTIFIED BY '{MARKER}'"));
    query(&server, "GRANT ALL ON *.* TO 'marked'@'%'");
    server
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
    let named = |end: &str| written.iter().filter(|(path, _)| path.ends_with(end)).count();
    assert!(named(".json") >= 6 && named(".hlog") == 1, "{} files", written.len());
    assert!(named(".html") == 1 && named(".svg") == CHARTS.len(), "{} files", written.len());
    // What the sandbox's server and its start said.
    let logs = written.len();
    for entry in fs::read_dir(server.dir()).expect("a directory").flatten() {
        if entry.path().is_file() && !entry.file_name().as_encoded_bytes().ends_with(b".sock") {
            let bytes = fs::read(entry.path()).expect("readable");
            written.push((entry.path().display().to_string(), bytes));
        }
    }
    assert!(written.len() > logs, "the sandbox has logs");
    for (path, bytes) in written {
        assert!(!holds(&bytes), "{path} holds the password");
    }
}

/// The charts of `report --format svg`.
const CHARTS: [&str; 4] = ["qps", "relative", "latency", "timeline"];

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
    let (port, socket) = (server.port, server.socket.display());
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

fn use_of(name: &'static str, code: i32, line: &str) -> Use<'static> {
    let words: Vec<&str> = line.split(' ').collect();
    Use { name, command: program(&words), input: "", code }
}

fn uses(server: &Sandbox, files: &Files, results: &Path) -> Vec<Use<'static>> {
    let port = server.port.to_string();
    let socket = server.socket.to_str().expect("a plain path").to_owned();
    let results = results.to_str().expect("a plain path").to_owned();
    let url = format!("mysql://marked:{MARKER}@127.0.0.1:{port}/sbtest");
    let tcp = format!("--no-defaults -h 127.0.0.1 -P {port} -u marked");
    let step = format!("--clients 2 --ops 200 --quiet --out {results}");
    let out = Path::new(&results).parent().expect("a directory").display();
    let calibrated = "calibrate --clients 1 --engine-threads 1 --time 100ms --quiet --calibration";
    let mut calibrate = use_of("calibrate", 0, &format!("{calibrated} {out}/calibration.json"));
    calibrate.command.env("MYSQL_PWD", MARKER).env("LOADGEN_URL", &url);
    let mut with_env = use_of(
        "update, MYSQL_PWD",
        0,
        &format!("update --no-defaults -u marked -S {socket} {step} --label b"),
    );
    with_env.command.env("MYSQL_PWD", MARKER);
    let mut with_fd =
        use_of("cleanup, --password-fd", 0, &format!("cleanup --yes {tcp} --password-fd 0"));
    with_fd.input = MARKER;
    let mut uses = vec![
        use_of("prepare, -p", 0, &format!("prepare --tables 2 --rows 200 {tcp} -p{MARKER}")),
        use_of(
            "point-select, --url",
            0,
            &format!(
                "point-select --no-defaults --url {url} {step} --label a --interval-log \
                 {out}/x.hlog"
            ),
        ),
        with_env,
        use_of("verify", 0, &format!("verify {results} {tcp} -p{MARKER}")),
        use_of("verify, wrong password", 3, &format!("verify {results} {tcp} -p{MARKER}x")),
        use_of(
            "read-write, option file",
            0,
            &format!("read-write --defaults-file {} {step} --label a", files.option_file),
        ),
        use_of(
            "an option file for all to read",
            0,
            &format!("point-select --defaults-file {} {step} --label b", files.open_option_file),
        ),
        use_of("run", 0, &format!("run {} --out {results}", files.profile)),
        use_of("run --list", 0, &format!("run {} --list --out {results}", files.profile)),
        use_of("run, broken", 2, &format!("run {} --out {results}", files.broken_profile)),
        use_of("a URL out of place", 2, &format!("run {} --list", files.misplaced[0])),
        use_of("a command out of place", 2, &format!("run {} --list", files.misplaced[1])),
        use_of(
            "load",
            0,
            &format!("load --rows 100 --force {tcp} -p{MARKER} --quiet --out {results} --label l"),
        ),
        use_of("workloads", 0, "workloads"),
        use_of("wrong password", 3, &format!("cleanup --yes {tcp} -p{MARKER}x")),
        use_of(
            "wrong account",
            3,
            &format!(
                "point-select --no-defaults -h 127.0.0.1 -P {port} -u nobody -p{MARKER} {step}"
            ),
        ),
        use_of(
            "nobody there",
            3,
            &format!("point-select --no-defaults -h 127.0.0.1 -P 1 -u u -p{MARKER} {step}"),
        ),
        use_of("no TLS", 3, &format!("point-select {tcp} -p{MARKER} --ssl-mode REQUIRED {step}")),
        use_of("no such database", 3, &format!("cleanup --yes {tcp} -p{MARKER} -D nowhere")),
        use_of(
            "a broken URL",
            2,
            &format!("cleanup --no-defaults --url mysql://u:{MARKER}@h:99999/d"),
        ),
        use_of(
            "a URL with a #",
            2,
            &format!("cleanup --no-defaults --url mysql://u:{MARKER}#x@h/d"),
        ),
        use_of("a URL of nothing", 2, &format!("cleanup --no-defaults --url u:{MARKER}@h")),
        use_of("a URL for it", 2, &format!("report {url}")),
        use_of(
            "a broken option file",
            2,
            &format!("cleanup --defaults-file {}", files.broken_option_file),
        ),
        calibrate,
        with_fd,
    ];
    uses.extend(reports(&results, &out));
    uses.extend(slips(&tcp, &results));
    uses
}

/// What is easily typed wrong.
fn slips(tcp: &str, results: &str) -> Vec<Use<'static>> {
    vec![
        use_of("a word after -p", 2, &format!("cleanup {tcp} -p {MARKER}")),
        use_of(
            "a word after -p, and another password",
            2,
            &format!("cleanup {tcp} -p {MARKER} -px"),
        ),
        use_of(
            "a word after -p, and a URL's password",
            2,
            &format!("cleanup -p {MARKER} --url mysql://u:x@h/d"),
        ),
        use_of("a URL for it, in capitals", 2, &format!("report MySQL://u:{MARKER}@h/d")),
        use_of("a URL for it, as MariaDB's", 2, &format!("report mariadb://u:{MARKER}@h/d")),
        use_of("an unknown flag", 2, &format!("cleanup {tcp} -p{MARKER} --unknown")),
        use_of("no such verb", 2, &format!("nosuch -p{MARKER}")),
        use_of("a password before the verb", 2, &format!("--password={MARKER} cleanup {tcp}")),
        use_of("a password and no verb", 2, &format!("-p{MARKER} nosuch")),
        use_of("-P for -p", 2, &format!("cleanup -P{MARKER}")),
        use_of("a value for a descriptor", 2, &format!("cleanup --password-fd={MARKER}")),
        use_of("a verb without passwords", 2, &format!("report {results} --password={MARKER}")),
    ]
}

/// What reads the summaries.
fn reports(results: &str, out: &dyn std::fmt::Display) -> Vec<Use<'static>> {
    let mut reports = vec![
        use_of("report", 0, &format!("report {results} --partial")),
        use_of("report, markdown", 0, &format!("report {results} --partial --format markdown")),
        use_of("report, csv", 0, &format!("report {results} --partial --format csv")),
        use_of("report, json", 0, &format!("report {results} --partial --format json")),
        use_of(
            "report, html",
            0,
            &format!("report {results} --partial --format html -o {out}/p.html"),
        ),
        use_of("report, gates", 0, &format!("report {results} --partial --gate errors==0")),
        use_of("explain", 0, &format!("explain a b {results}")),
        use_of("report, settings", 0, &format!("report {results} --partial --layout settings")),
        use_of("compare", 0, &format!("compare {results} --base a --new b --force")),
    ];
    reports.extend(CHARTS.map(|chart| {
        let file = format!("--format svg --chart {chart} -o {out}/{chart}.svg");
        use_of("report, svg", 0, &format!("report {results} --partial {file}"))
    }));
    reports
}

/// What it leaves when it is killed in the middle of a step: the record of its writes.
#[test]
fn what_a_kill_leaves_does_not_tell() {
    let server = marked();
    let port = server.port.to_string();
    let password = format!("-p{MARKER}");
    let tcp = ["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "marked", &password];
    let out = tempfile::tempdir().expect("a directory");
    let prepared = program(&[&["prepare", "--rows", "100"], &tcp[..]].concat()).output();
    assert_eq!(prepared.expect("it runs").status.code(), Some(0));
    let words = ["update", "--time", "5m", "--warmup", "0", "--out"];
    let mut command =
        program(&[&words[..], &[out.path().to_str().expect("plain")], &tcp[..]].concat());
    let mut child = command.spawn().expect("the program runs");
    let begun = || {
        let entries = fs::read_dir(out.path()).expect("a directory").flatten();
        entries.map(|entry| entry.file_name()).any(|n| n.as_encoded_bytes().ends_with(b".begun"))
    };
    until("a record", begun);
    child.kill().expect("ours");
    let said = said(&child.wait_with_output().expect("it ends"));
    must_not_show("killed", &said);
    assert!(begun(), "it is left");
    let mut left = Vec::new();
    files(out.path(), &mut left);
    for (path, bytes) in left {
        assert!(!holds(&bytes), "{path} holds the password");
    }
}

/// Told in the words that were typed, without the hand-over's, and without advice to pass the flag as
/// something else.
#[test]
fn a_misplaced_password_is_named_as_it_was_typed() {
    let (long, short, glued) =
        (format!("--password={MARKER}"), format!("-p{MARKER}"), format!("--password{MARKER}"));
    let url = format!("mysql://u:{MARKER}@h/d");
    for (words, says) in [
        (vec![&*long, "nosuch"], "'--password'"),
        (vec![&*short, "nosuch"], "'--password'"),
        (vec!["report", "x", &*long], "'--password'"),
        (vec!["report", &*url], "'--url'"),
        (vec!["cleanup", &*short, "--unknown"], "'--unknown'"),
        (vec![&*glued, "cleanup"], "begins with --password"),
    ] {
        let said = run(&mut program(&words), "");
        must_not_show(&words.join(" "), &said);
        assert_eq!(said.code, 2, "{words:?}: {}", said.both());
        let odd = said.stderr.contains("--password-fd") || said.stderr.contains("as a value");
        assert!(said.stderr.contains(says) && !odd, "{words:?}: {}", said.stderr);
        let connects = says == "'--password'" || says == "'--url'";
        let hint = said.stderr.contains("point-select -");
        assert_eq!(hint, connects, "{words:?}: {}", said.stderr);
    }
}

/// The driver panics on these log-ins, and its panic message is nobody's.
#[test]
fn a_driver_that_breaks_shows_no_password() {
    for action in [
        Action::KeyExchange(b"", Vec::new()),
        Action::KeyExchange(&[b'n'; 20], b"\x01no key".to_vec()),
    ] {
        let faults = vec![Fault::new(At::Connect(1), action)];
        let canned = Canned::start(Script { faults, ..Script::default() }, Listen::Port(0));
        let port = canned.as_ref().expect("a free port").port().to_string();
        let password = format!("-p{MARKER}");
        let args =
            ["cleanup", "--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "u", &password];
        let said = run(&mut program(&args), "");
        must_not_show("a broken log-in", &said);
        assert_eq!(said.code, 3, "{}", said.both());
        assert!(!said.stderr.contains("panicked"), "{}", said.stderr);
    }
}

/// While it runs, neither its title nor its environment tells, nor that of what it starts.
#[test]
fn a_running_process_does_not_tell() {
    let server = marked();
    let port = server.port.to_string();
    let password = format!("-p{MARKER}");
    let tcp = ["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "marked", &password];
    let out = tempfile::tempdir().expect("a directory");
    let prepared = program(&[&["prepare", "--rows", "100"], &tcp[..]].concat()).output();
    assert_eq!(prepared.expect("it runs").status.code(), Some(0));
    let words = ["point-select", "--time", "5m", "--warmup", "0", "--out"];
    let mut command =
        program(&[&words[..], &[out.path().to_str().expect("plain")], &tcp[..]].concat());
    let child = command.spawn().expect("the program runs");
    let pid = child.id();
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    // Connected: that is after the hand-over.
    let connected = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'marked'";
    until("a connection", || query(&server, connected)[0][0] != "0");
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
