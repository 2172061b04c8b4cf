//! Private servers: they start, are who they claim to be, and leave nothing behind, whatever
//! happens to them or to loadgen.

use std::cell::{Cell, RefCell};
use std::env;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Server, fresh as sandbox, local, query, servers, spec};
use loadgen::error::{Error, Kind};
use loadgen::sandbox::Sandbox;
use loadgen::summary::load;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// For this variable, see [`victim`].
const VICTIM: &str = "LOADGEN_TEST_VICTIM";

fn wait_for(what: &str, limit: Duration, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < limit, "{what}: not within {limit:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The command lines of running processes that name this directory.
fn processes_of(dir: &Path) -> Vec<String> {
    let needle = dir.to_str().unwrap();
    let read = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).ok();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| read(entry.unwrap()))
        .map(|text| String::from_utf8_lossy(&text).replace('\0', " "))
        .filter(|text| text.contains(needle))
        .collect()
}

/// What killed processes leave takes the kernel a moment.
fn nothing_left(dir: &Path) {
    let limit = Duration::from_mins(1);
    wait_for(&format!("{} gone", dir.display()), limit, || !dir.exists());
    wait_for("processes gone", limit, || processes_of(dir).is_empty());
}

/// The directory that a sandbox names first of all.
fn named_dir(said: &[String]) -> PathBuf {
    said.first().and_then(|line| line.rsplit_once(" in ")).expect("a first line").1.into()
}

/// A start that must fail: its error, its directory, what it said.
fn failing(program: &Path, options: &[(&str, &str)]) -> (Error, PathBuf) {
    let mut said = Vec::new();
    let mut say = |line: &str| said.push(line.to_owned());
    let error = Sandbox::start(&spec(program, options), &mut say, &|| false).unwrap_err();
    (error, named_dir(&said))
}

fn script(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_sandbox_is_who_it_claims_to_be_and_leaves_nothing() {
    for server in servers() {
        let began = Instant::now();
        let sandbox = sandbox(&server, &[]);
        show_time(&server, began);
        let dir = sandbox.dir().to_owned();
        let [row] = &query(&sandbox, "SELECT @@version, @@port, @@datadir, @@local_infile")[..]
        else {
            panic!("no row");
        };
        assert_eq!(row[0], sandbox.version, "{}", server.name);
        assert_eq!(row[1], sandbox.port.to_string());
        assert!(Path::new(&row[2]).starts_with(fs::canonicalize(&dir).unwrap()), "{row:?}");
        assert_eq!(row[3], "1");
        let status = fs::read_to_string(format!("/proc/{}/status", sandbox.pid)).unwrap();
        assert!(
            status.contains("mysqld") || status.contains("mariadbd") || status.contains("ld-linux"),
            "{status}"
        );
        assert!(!dir.join("data/ib_buffer_pool").exists(), "{}: nothing to restore", server.name);
        assert_eq!(query(&sandbox, "SHOW DATABASES LIKE 'sbtest'"), [["sbtest"]]);
        let limits = query(&sandbox, "SELECT @@max_connections, @@max_prepared_stmt_count");
        assert_eq!(limits, [["300", "20000"]], "{}", server.name);
        assert_eq!(query(&sandbox, "SELECT COUNT(*) FROM mysql.user WHERE User = ''"), [["0"]]);
        // What a bootstrap from incomplete SQL would lack.
        query(&sandbox, "CREATE TABLE sbtest.t (id INT PRIMARY KEY) ENGINE=InnoDB");
        query(&sandbox, "INSERT INTO sbtest.t VALUES (1)");
        query(&sandbox, "CHECK TABLE sbtest.t");
        assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        // The terminal's Ctrl-C goes to loadgen's own group.
        let group = |pid| nix::unistd::getpgid(pid).unwrap();
        assert_ne!(group(Some(Pid::from_raw(sandbox.pid.cast_signed()))), group(None));
        sandbox.stop().unwrap();
        assert!(!dir.exists() && processes_of(&dir).is_empty(), "{}", server.name);
    }
}

/// Start-up times are worth seeing, not asserting.
fn show_time(server: &Server, began: Instant) {
    let line = format!("{}: started in {:.1} s\n", server.name, began.elapsed().as_secs_f64());
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

#[test]
fn the_users_option_wins() {
    for server in servers() {
        let sandbox = sandbox(&server, &[("performance_schema", "ON"), ("max-connections", "99")]);
        let settings = query(&sandbox, "SELECT @@performance_schema, @@max_connections");
        assert_eq!(settings, [["1", "99"]], "{}", server.name);
        let dir = sandbox.dir().to_owned();
        drop(sandbox);
        nothing_left(&dir);
    }
}

#[test]
fn a_pool_is_not_restored_from_a_file_unless_the_user_wants_it() {
    for server in servers() {
        let known = "SHOW VARIABLES LIKE 'innodb_buffer_pool_%_at_%'";
        let sandbox = |options: &[(&str, &str)]| query(&sandbox(&server, options), known);
        let off = sandbox(&[]);
        assert!(off.iter().all(|row| row[1] == "OFF"), "{}: {off:?}", server.name);
        if off.is_empty() {
            continue;
        }
        let on = sandbox(&[("innodb_buffer_pool_load_at_startup", "ON")]);
        let load = on.iter().find(|row| row[0].ends_with("load_at_startup")).expect("it is known");
        assert_eq!(load[1], "ON", "{}", server.name);
    }
}

struct Measuring {
    words: &'static str,
    label_ends: &'static str,
    says: &'static str,
}

#[test]
fn a_measurement_in_a_sandbox_is_flushed_first_labelled_and_says_where_it_is() {
    let place = tempfile::tempdir().unwrap();
    for (at, Measuring { words, label_ends, says }) in [
        Measuring { words: "--clients 1,2", label_ends: "", says: "Saved 2 results in " },
        Measuring {
            words: "--sandbox-option innodb_flush_log_at_trx_commit=2 --sandbox-option skip-log-bin",
            label_ends: " innodb_flush_log_at_trx_commit=2 skip-log-bin",
            says: "Saved 1 result in ",
        },
        Measuring { words: "--settle --quiet", label_ends: "", says: "" },
    ]
    .into_iter()
    .enumerate()
    {
        let out = place.path().join(at.to_string());
        let measured = Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(["point-select", "--tables", "2", "--rows", "20k", "--ops", "100", "--out"])
            .arg(&out)
            .arg(format!("--sandbox={}", local().program.display()))
            .args(words.split(' '))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&measured.stderr);
        assert!(measured.status.success(), "{said}");
        let next = format!("{says}{0}. Next: loadgen report {0}", out.display());
        assert_eq!(said.lines().last() == Some(&next), !words.contains("--quiet"), "{said}");
        let loaded = load(&[out], false).unwrap();
        for (at, step) in loaded.steps().into_iter().enumerate() {
            let version = &step.server.version;
            let number = version.split('-').next().unwrap();
            let begins = if label_ends.is_empty() { version } else { number };
            assert_eq!(step.label, format!("{begins}{label_ends}"));
            let conditions = step.conditions.as_ref().unwrap();
            let first = at == 0 && !words.contains("--settle");
            assert_eq!(conditions.flushed.is_some(), first, "{words}");
            let codes: Vec<&str> = step.warnings.iter().map(|found| found.code.as_str()).collect();
            assert!(!codes.contains(&"debt") && !codes.contains(&"restored_pool"), "{codes:?}");
        }
    }
}

#[test]
fn directory_is_said_to_be_another_when_that_of_tmpdir_is_too_deep() {
    let place = tempfile::tempdir().unwrap();
    let deep = place.path().join("x".repeat(100));
    fs::create_dir(&deep).unwrap();
    let ended = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["point-select", "--sandbox=/bin/true", "--out"])
        .arg(place.path().join("out"))
        .env("TMPDIR", &deep)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("TMPDIR is too long for a socket"), "{said}");
}

#[test]
fn an_option_that_shapes_the_data_holds_from_the_start() {
    for server in servers() {
        if server.name.starts_with("mysql-5.5") {
            continue; // It has one page size only.
        }
        let sandbox =
            sandbox(&server, &[("innodb_page_size", "8192"), ("lower_case_table_names", "1")]);
        let settings = query(&sandbox, "SELECT @@innodb_page_size, @@lower_case_table_names");
        assert_eq!(settings, [["8192", "1"]], "{}", server.name);
        sandbox.stop().unwrap();
    }
}

#[test]
fn an_option_that_the_server_refuses_shows_its_log_and_leaves_nothing() {
    for server in servers() {
        let (error, dir) = failing(&server.program, &[("no_such_option", "3")]);
        assert!(error.to_string().contains("no-such-option=3"), "{}: {error}", server.name);
        assert!(error.hints().iter().any(|hint| hint.contains("--sandbox-option")), "{error:?}");
        nothing_left(&dir);
    }
}

#[test]
fn an_option_that_breaks_the_isolation_is_refused() {
    for name in ["datadir", "socket", "port", "pid-file", "bind_address", "skip-networking"] {
        let error = Sandbox::start(&spec(&local().program, &[(name, "x")]), &mut |_| {}, &|| false)
            .unwrap_err();
        assert_eq!(error.kind(), Kind::Usage, "{name}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn a_program_that_is_no_server_is_a_usage_error() {
    let dir = tempfile::tempdir().unwrap();
    let client = script(dir.path(), "client", "echo 'mysql  Ver 15.1 Distrib 10.11'");
    let damaged = script(dir.path(), "damaged", "echo 'cannot open libaio.so' >&2; exit 127");
    for (program, words) in [
        (Path::new("/bin/true"), "it says: nothing"),
        (Path::new("/bin/cat"), "does not tell its version"),
        (&client, "Distrib 10.11"),
        (&damaged, "libaio"),
    ] {
        let (error, left) = failing(program, &[]);
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains(words), "{error}");
        nothing_left(&left);
    }
}

#[test]
fn a_server_that_does_not_come_up_shows_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let program = local().program;
    // Serves for everything but serving.
    let text = format!(
        "case \"$*\" in *--bootstrap*|*--help*|*--version*) exec {0} \"$@\" ;; esac\necho it broke >&2\nexit 9",
        program.display()
    );
    let (error, left) = failing(&script(dir.path(), "mysqld", &text), &[]);
    assert_eq!(error.kind(), Kind::Server);
    let message = error.to_string();
    assert!(message.contains("exit status: 9") && message.contains("it broke"), "{message}");
    nothing_left(&left);
}

#[test]
fn the_servers_own_pid_is_known_behind_a_wrapper() {
    let dir = tempfile::tempdir().unwrap();
    let program = local().program;
    // Not exec: the wrapper stays the server's parent.
    let text = format!("{} \"$@\"\nexit $?", program.display());
    let wrapper = Server { name: "wrapper".into(), program: script(dir.path(), "wrapper", &text) };
    let sandbox = sandbox(&wrapper, &[]);
    let comm = fs::read_to_string(format!("/proc/{}/comm", sandbox.pid)).unwrap();
    assert_eq!(comm.trim(), "mariadbd");
    let left = sandbox.dir().to_owned();
    sandbox.stop().unwrap();
    nothing_left(&left);
}

#[test]
fn a_wrapper_that_takes_the_server_away_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "case \"$*\" in *--socket*) exec setsid -w {0} \"$@\" ;; esac\nexec {0} \"$@\"",
        local().program.display()
    );
    let (error, left) = failing(&script(dir.path(), "wrapper", &text), &[]);
    assert!(error.to_string().contains("another session"), "{error}");
    nothing_left(&left);
}

#[test]
fn a_port_that_another_process_takes_first_is_given_up() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap();
    for server in servers() {
        let marker = dir.path().join(&server.name);
        // The first time it is started as if its port had been taken meanwhile.
        let text = format!(
            "case \"$*\" in *--help*) ;; *--socket*) [ -e {0} ] || {{ : >{0}; set -- \"$@\" --port={port}; }} ;; esac\n\
             exec {1} \"$@\"",
            marker.display(),
            server.program.display()
        );
        let unlucky = Server { program: script(dir.path(), "unlucky", &text), name: server.name };
        let sandbox = sandbox(&unlucky, &[]);
        assert!(marker.exists(), "{}", unlucky.name);
        assert_ne!(sandbox.port, port);
        sandbox.stop().unwrap();
    }
}

#[test]
fn two_sandboxes_do_not_meet() {
    let server = local();
    let (one, other) = thread::scope(|scope| {
        let one = scope.spawn(|| sandbox(&server, &[]));
        let other = scope.spawn(|| sandbox(&server, &[]));
        (one.join().unwrap(), other.join().unwrap())
    });
    assert_ne!(one.port, other.port);
    assert_ne!(one.pid, other.pid);
    query(&one, "CREATE DATABASE only_here");
    assert!(query(&other, "SHOW DATABASES LIKE 'only_here'").is_empty());
    let (first, second) = (one.dir().to_owned(), other.dir().to_owned());
    one.stop().unwrap();
    query(&other, "SELECT 1");
    other.stop().unwrap();
    nothing_left(&first);
    nothing_left(&second);
}

#[test]
fn a_server_that_died_by_itself_is_taken_away_too() {
    for (signal, word) in [(Signal::SIGKILL, "SIGKILL"), (Signal::SIGABRT, "got signal 6")] {
        let mut sandbox = sandbox(&local(), &[]);
        let dir = sandbox.dir().to_owned();
        assert_eq!(sandbox.death(), None);
        kill(Pid::from_raw(sandbox.pid.cast_signed()), signal).unwrap();
        let mut death = None;
        wait_for("its end", Duration::from_mins(1), || {
            death = sandbox.death();
            death.is_some()
        });
        assert!(death.as_ref().is_some_and(|death| death.contains(word)), "{death:?}");
        sandbox.stop().unwrap();
        nothing_left(&dir);
    }
}

struct Interrupt {
    program: PathBuf,
    when: &'static str,
    later: u64,
}

#[test]
fn an_interrupted_start_ends_soon_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let hanging = script(dir.path(), "hanging", "sleep 1000");
    // A server may be there a tenth of a second after it was started.
    for Interrupt { program, when, later } in [
        Interrupt { program: hanging, when: " in ", later: 100 },
        Interrupt { program: local().program, when: "initialising", later: 100 },
        Interrupt { program: local().program, when: "starting", later: 0 },
    ] {
        let said = RefCell::new(Vec::new());
        let stopped = Cell::new(None);
        let mut say = |line: &str| {
            said.borrow_mut().push(line.to_owned());
            if line.contains(when) {
                stopped.set(Some(Instant::now()));
            }
        };
        let later = Duration::from_millis(later);
        let interrupted = || stopped.get().is_some_and(|at: Instant| at.elapsed() >= later);
        let error = Sandbox::start(&spec(&program, &[]), &mut say, &interrupted).unwrap_err();
        assert_eq!(error.kind(), Kind::Interrupted, "{error}");
        // Not at the end of what it waits for.
        assert!(stopped.get().unwrap().elapsed() < Duration::from_secs(25), "{when}");
        nothing_left(&named_dir(&said.borrow()));
    }
}

/// Not a test of its own: the process that is killed. It starts the server that the variable
/// names, writes what it hears to the file that the variable names, and waits for its end.
#[test]
fn victim() {
    let Some(order) = env::var(VICTIM).ok() else { return };
    let (report, program) = order.split_once('\n').unwrap();
    let mut report = File::create(report).unwrap();
    let mut say = |line: &str| report.write_all(format!("{line}\n").as_bytes()).unwrap();
    let _sandbox = Sandbox::start(&spec(Path::new(program), &[]), &mut say, &|| false).unwrap();
    loop {
        thread::park();
    }
}

/// Kills a process with SIGKILL some time after its sandbox said this.
fn kill_after(program: &Path, words: &str, delay: Duration) {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report");
    // The sandbox goes there, so that whatever is left can be seen.
    let place = dir.path().join("t");
    fs::create_dir(&place).unwrap();
    let mut victim = Command::new(env::current_exe().unwrap())
        .args(["--exact", "sandbox::victim"])
        .env(VICTIM, format!("{}\n{}", report.display(), program.display()))
        .env("TMPDIR", &place)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(words, Duration::from_secs(100), || {
        fs::read_to_string(&report).is_ok_and(|said| said.contains(words))
    });
    thread::sleep(delay);
    assert!(!processes_of(&place).is_empty());
    victim.kill().unwrap();
    victim.wait().unwrap();
    let limit = Duration::from_mins(1);
    wait_for("processes gone", limit, || processes_of(&place).is_empty());
    assert_eq!(
        fs::read_dir(&place).unwrap().count(),
        0,
        "something is left in {}",
        place.display()
    );
}

#[test]
fn nothing_outlives_a_killed_loadgen() {
    for server in servers() {
        kill_after(&server.program, "ready on port", Duration::ZERO);
    }
}

#[test]
fn nothing_outlives_a_loadgen_killed_while_it_starts() {
    for server in servers() {
        for (words, millis) in
            [(" in ", 0), ("initialising", 0), ("initialising", 150), ("starting", 20)]
        {
            kill_after(&server.program, words, Duration::from_millis(millis));
        }
    }
}

#[test]
fn directory_is_warned_of_when_it_is_not_below_tmpdir_and_notes_are_not_said() {
    let place = tempfile::tempdir().unwrap();
    let deep = place.path().join("x".repeat(100));
    fs::create_dir(&deep).unwrap();
    let ended = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["point-select", "--sandbox", "--tables", "1", "--rows", "100"])
        .args(["--ops", "20", "--quiet", "--out"])
        .arg(place.path().join("out"))
        .env("TMPDIR", &deep)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("warning: sandbox: the path of TMPDIR is too long"), "{said}");
}
