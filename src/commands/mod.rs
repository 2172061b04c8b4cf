//! External commands, each in its own process group: timed suites, commands beside a window, and commands that
//! start, stop and reset a server.
//!
//! Suites find the server in `LOADGEN_HOST` and `LOADGEN_PORT`, or `LOADGEN_SOCKET`; `LOADGEN_USER`,
//! `LOADGEN_DATABASE`; and `LOADGEN_DEFAULTS_FILE`, an option file of the MySQL clients with the password, which
//! has no name and is readable to this user only.

pub(crate) mod beside;

use std::fs::{File, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, waitid};

use crate::engine::Counted;
use crate::error::{Error, Result, plain};
use crate::mysql::{Address, ConnectOptions, SslMode};
use crate::observe::{Cost, Timeline, children_usage};
use crate::plan::knobs::{SuiteSpec, SuiteTest};
use crate::plan::limits;
use crate::progress::Progress;
use crate::stop::{Group, Stop};
use crate::summary;

const LOOK: Duration = Duration::from_millis(50);
/// Characters of a command's output that an error shows.
const SHOWN_MAX: usize = 1000;

/// Called with the elapsed time, at each check for a signal.
type Look<'a> = &'a mut dyn FnMut(Duration);

/// Waits for the end of a group's leader without taking its status. Returns the elapsed time, and true if a
/// signal or the limit came first: the group is then asked to end, and killed soon after.
fn wait(
    group: &Group,
    began: Instant,
    limit: Duration,
    stop: &Stop,
    look: Look,
) -> io::Result<(Duration, bool)> {
    let (sender, ended) = mpsc::channel();
    let leader = group.pid();
    // A thread of its own notices the end at once, not at the next check.
    std::thread::Builder::new().name("command".to_owned()).spawn(move || {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(leader), flags) == Err(Errno::EINTR) {}
        let _ = sender.send(Instant::now());
    })?;
    let mut asked_at: Option<Instant> = None;
    loop {
        if let Ok(at) = ended.recv_timeout(LOOK) {
            return Ok((at.duration_since(began), asked_at.is_some()));
        }
        match asked_at {
            None if stop.asked().is_some() || began.elapsed() > limit => {
                group.signal(Signal::SIGTERM);
                asked_at = Some(Instant::now());
            }
            Some(since) if since.elapsed() > limits::COURTESY => group.signal(Signal::SIGKILL),
            _ => {}
        }
        look(began.elapsed());
    }
}

fn spawn(command: &mut Command, output: &File) -> io::Result<Group> {
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
    Group::spawn(command)
}

/// Runs a command to its end; what it starts may live on. An error has the end of its output.
pub(crate) fn run(what: &str, words: &[String], limit: Duration, stop: &Stop) -> Result<()> {
    let (program, arguments) = words.split_first().expect("a command has a program");
    // Arguments may hold a password.
    let failed = |how: String| Error::server(format!("{what} ({program} …) {how}"));
    let not_started = |e: io::Error| failed(format!("cannot be started: {e}"));
    // A file, not a pipe: a server that the command starts may inherit it and live on.
    let mut output = tempfile::tempfile().map_err(not_started)?;
    let began = Instant::now();
    let group = spawn(Command::new(program).args(arguments), &output).map_err(not_started)?;
    let (_, cut) = wait(&group, began, limit, stop, &mut |_| {}).map_err(not_started)?;
    if cut {
        stop.check()?;
        return Err(failed(format!("has not ended within {} s", limit.as_secs())).hint(
            "`within` allows it more time; a command that starts a server must not wait for its end",
        ));
    }
    let status = group.leave().map_err(|e| failed(format!("is lost: {e}")))?;
    if status.success() {
        return Ok(());
    }
    let mut text = Vec::new();
    let _ = output.rewind().and_then(|()| output.read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let text = text.trim_end();
    let from = text.char_indices().rev().nth(SHOWN_MAX).map_or(0, |(at, _)| at);
    let colon = if text.is_empty() { "" } else { ": " };
    Err(failed(format!("failed ({status}){colon}{}", &text[from..])))
}

pub(crate) const OK: &str = "ok";
const INTERRUPTED: &str = "interrupted";

type Timed = (Duration, Cost, String);

/// Goes on after a failure, not after a signal. Returns those that ran, their sum, and why that is no result.
pub(crate) fn run_suite(
    spec: &SuiteSpec,
    target: &ConnectOptions,
    output: &File,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<(Counted, Vec<summary::SuiteTest>, Option<Error>)> {
    let options = option_file(target)?;
    let started_at = jiff::Timestamp::now();
    let mut ran: Vec<summary::SuiteTest> = Vec::new();
    let all = spec.tests.len();
    progress.restart();
    for (n, test) in (1..).zip(&spec.tests) {
        if let Err(interrupted) = stop.check() {
            return Ok((count(started_at, &ran), ran, Some(interrupted)));
        }
        let mut look = |elapsed: Duration| {
            let (suite, name, seconds) = (&spec.name, &test.name, elapsed.as_secs());
            progress.update(|| format!("suite {suite}: test {n} of {all}, {name}, {seconds} s"));
        };
        let mut command = command(test, target, &options);
        let mut title = output;
        let titled = writeln!(title, "== {}: {}", test.name, hide_passwords(&test.run).join(" "));
        let timed = titled.and_then(|()| run_timed(&mut command, output, stop, &mut look));
        let entry = entry(test, timed);
        progress.clear();
        progress.note(&format!(
            "{}: {:.3} s, CPU {:.2} s user {:.2} s system, {}",
            entry.name, entry.wall_s, entry.user_s, entry.sys_s, entry.status
        ));
        ran.push(entry);
    }
    let failed = ran.iter().filter(|test| test.status != OK);
    let failed: Vec<String> =
        failed.map(|test| format!("{}: {}", test.name, test.status)).collect();
    let error = match ran.last() {
        // A signal after the last test cut nothing short.
        Some(last) if last.status == INTERRUPTED => stop.check().err(),
        _ if failed.is_empty() => None,
        _ => {
            let (count, failed) = (failed.len(), failed.join("; "));
            let text = format!("{count} of {all} tests of suite {} failed: {failed}", spec.name);
            Some(Error::failed(text).hint("what they printed is beside the summary"))
        }
    };
    Ok((count(started_at, &ran), ran, error))
}

fn count(started_at: jiff::Timestamp, ran: &[summary::SuiteTest]) -> Counted {
    let sum = |of: fn(&summary::SuiteTest) -> f64| ran.iter().map(of).sum::<f64>();
    let [user, sys] =
        [sum(|test| test.user_s), sum(|test| test.sys_s)].map(Duration::from_secs_f64);
    let good = ran.iter().filter(|test| test.status == OK).count() as u64;
    let mut timeline = Timeline::default();
    (timeline.window.ops, timeline.window.statements) = (good, good);
    Counted {
        started_at,
        measured_s: sum(|test| test.wall_s),
        cost: Cost { user, sys },
        timeline,
        errors: Vec::new(),
        per_table: Vec::new(),
    }
}

fn command(test: &SuiteTest, target: &ConnectOptions, options: &File) -> Command {
    let mut command = Command::new(&test.run[0]);
    command.args(&test.run[1..]);
    if let Some(dir) = &test.dir {
        command.current_dir(dir);
    }
    for name in ["LOADGEN_HOST", "LOADGEN_PORT", "LOADGEN_SOCKET", "LOADGEN_URL"] {
        command.env_remove(name);
    }
    match &target.address {
        Address::Tcp { host, port } => {
            command.env("LOADGEN_HOST", host).env("LOADGEN_PORT", port.to_string())
        }
        Address::Socket(path) => {
            command.env("LOADGEN_HOST", "localhost").env("LOADGEN_SOCKET", path)
        }
    };
    command
        .env("LOADGEN_USER", &target.user)
        .env("LOADGEN_DATABASE", &target.database)
        .env("LOADGEN_DEFAULTS_FILE", path(options));
    command
}

/// Runs a command to its end, and kills what it leaves in its group.
fn run_timed(command: &mut Command, output: &File, stop: &Stop, look: Look) -> io::Result<Timed> {
    // loadgen has no other children to wait for.
    let (before, began) = (children_usage(), Instant::now());
    let mut group = spawn(command, output)?;
    let (wall, cut) = wait(&group, began, Duration::MAX, stop, look)?;
    let status = group.end()?;
    let status = if cut { INTERRUPTED.to_owned() } else { describe_status(status) };
    Ok((wall, children_usage().since(&before), status))
}

fn entry(test: &SuiteTest, timed: io::Result<Timed>) -> summary::SuiteTest {
    let (wall, cost, status) = timed.unwrap_or_else(|error| {
        (Duration::ZERO, Cost::default(), plain(&format!("not started: {error}")))
    });
    summary::SuiteTest {
        name: test.name.clone(),
        run: hide_passwords(&test.run),
        wall_s: wall.as_secs_f64(),
        user_s: cost.user.as_secs_f64(),
        sys_s: cost.sys.as_secs_f64(),
        status,
    }
}

fn describe_status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => OK.to_owned(),
        (Some(code), _) => format!("exit {code}"),
        (None, number) => match number.map(Signal::try_from) {
            Some(Ok(signal)) => format!("signal {signal}"),
            _ => format!("signal {}", number.unwrap_or(0)),
        },
    }
}

/// Cuts program and arguments from the first password on: results are published.
fn hide_passwords(words: &[String]) -> Vec<String> {
    let before = std::iter::once(None).chain(words.iter().map(Some));
    let kept = |(word, before): (&String, Option<&String>)| match &word[..find_password(word)] {
        _ if before.is_some_and(|name| takes_password(name)) && !word.starts_with("--") => {
            "…".to_owned()
        }
        open if open.len() < word.len() => format!("{open}…"),
        open => open.to_owned(),
    };
    words.iter().zip(before).map(kept).collect()
}

/// Returns whether a word is an option whose value may be the next word, as not only MySQL's clients have it.
fn takes_password(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let names = ["password", "passwd", "pwd"];
    let is_named = names.into_iter().any(|name| lower.ends_with(name));
    // The password itself may end so: -pmypwd.
    let has_value = lower.contains('=')
        || lower.starts_with("-p") && !names.contains(&lower.trim_start_matches('-'));
    lower.starts_with('-') && !lower.starts_with("--skip-") && is_named && !has_value
}

/// Names before a password. The clients take any beginning of `--password` that is no other option's, and
/// `--password1` to 3.
const NAMES: [&str; 9] = [
    "password",
    "passwd",
    "pwd",
    "mysql://",
    "--passwor",
    "--passwo",
    "--passw",
    "--pass",
    "--pas",
];

/// Finds the position of a possible password in a word; the word's end if there is none.
fn find_password(word: &str) -> usize {
    let lower = word.to_ascii_lowercase();
    let named = NAMES.into_iter().filter_map(|name| {
        // `$MYSQL_PWD` in a script is no password, nor is `--password` before the next word.
        let is_given = |rest: &str| {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            rest.starts_with(['\'', '"']) || rest.trim_start().starts_with(['=', ':', '('])
        };
        lower
            .match_indices(name)
            .map(|(at, name)| at + name.len())
            .find(|end| name == "mysql://" || is_given(&lower[*end..]))
    });
    let short = word.match_indices("-p").map(|(at, sign)| (at, at + sign.len()));
    let short = short.filter(|(at, end)| {
        let before = lower[..*at].chars().next_back();
        let begins = before.is_none_or(|c| c.is_whitespace() || "'\"".contains(c));
        begins && lower[*end..].starts_with(|c: char| !c.is_whitespace())
    });
    let all = named.chain(short.map(|(_, end)| end)).chain(find_in_address(word));
    all.chain(find_in_sql(&lower)).min().unwrap_or(word.len())
}

/// Finds the position behind BY or AS before the quoted secret of an account in SQL.
fn find_in_sql(lower: &str) -> Option<usize> {
    let account = lower.find("identified")?;
    let found = ["by", "as"].into_iter().filter_map(|before| {
        let mut ends = lower[account..].match_indices(before).map(|(at, _)| account + at + 2);
        ends.find(|end| {
            let rest = lower[*end..].trim_start();
            rest.strip_prefix("password").unwrap_or(rest).trim_start().starts_with(['\'', '"'])
        })
    });
    found.min()
}

/// Finds the position of the secret in `NAME:SECRET@HOST`, as URLs and the DSNs of drivers have it.
fn find_in_address(word: &str) -> Option<usize> {
    let mut end = 0;
    let mut parts = word.split_inclusive(|c: char| c.is_whitespace() || "'\"".contains(c));
    parts.find_map(|part| {
        end += part.len();
        let (account, _) = part.rsplit_once('@')?;
        let name = account.find("://").map_or(0, |at| at + "://".len());
        let colon = account[name..].find(':')?;
        Some(end - part.len() + name + colon + 1)
    })
}

fn path(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// Makes a file in memory, without a directory entry: no password stays behind. Only this user can read it.
fn option_file(target: &ConnectOptions) -> Result<File> {
    let text = option_text(target)?;
    let write = || -> io::Result<File> {
        let mut file = File::from(memfd_create("loadgen.cnf", MFdFlags::MFD_CLOEXEC)?);
        // The clients ignore an option file that everybody may write, as this one is at first.
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(text.as_bytes())?;
        Ok(file)
    };
    write().map_err(|e| Error::failed(format!("the option file of the suite: {e}")))
}

fn option_text(target: &ConnectOptions) -> Result<String> {
    let ssl = &target.ssl;
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let mut lines = match &target.address {
        Address::Tcp { host, port } => vec![
            ("host", Some(host.clone())),
            ("port", Some(port.to_string())),
            ("protocol", Some("tcp".to_owned())),
        ],
        Address::Socket(socket) => vec![("socket", Some(socket.display().to_string()))],
    };
    let password = target.password.expose();
    // The commands must not send the password further than loadgen would.
    let mode = Some(ssl.mode).filter(|mode| *mode != SslMode::Disabled);
    lines.extend([
        ("user", Some(target.user.clone())),
        ("password", (!password.is_empty()).then(|| password.to_owned())),
        ("ssl-ca", path(&ssl.ca)),
        ("ssl-cert", path(&ssl.cert)),
        ("ssl-key", path(&ssl.key)),
        ("loose-ssl-mode", mode.map(|mode| mode.to_string())),
    ]);
    let mut text = "[client]\n".to_owned();
    for (key, value) in lines.into_iter().filter_map(|(key, value)| Some((key, value?))) {
        let quoted = quoted(&value).ok_or_else(|| {
            // The value may be the password.
            Error::usage(format!("the {key} has both kinds of quotes: no option file can hold it"))
        })?;
        text.extend([key, "=", &quoted, "\n"]);
    }
    if let Some(mode) = mode {
        // MariaDB's clients have no modes: they verify certificate and name, or nothing.
        text.push_str("[client-mariadb]\nssl\n");
        text.push_str(if mode.verifies() { "ssl-verify-server-cert\n" } else { "" });
    }
    Ok(text)
}

/// Quotes a value, since `#` would begin a comment. Quotes inside cannot be escaped; backslashes must be.
fn quoted(value: &str) -> Option<String> {
    let quote = ['"', '\''].into_iter().find(|quote| !value.contains(*quote))?;
    let escapes = [("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")];
    let escaped = escapes.iter().fold(value.to_owned(), |text, (from, to)| text.replace(from, to));
    Some(format!("{quote}{escaped}{quote}"))
}

#[cfg(test)]
mod tests {
    use nix::unistd::Pid;

    use super::*;
    use crate::error::Kind;
    use crate::mysql::options::{Secret, Ssl};

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn run_it(mut command: Command, stop: &Stop) -> summary::SuiteTest {
        let test = SuiteTest { name: "a".to_owned(), run: Vec::new(), dir: None };
        let output = tempfile::tempfile().expect("a file");
        entry(&test, run_timed(&mut command, &output, stop, &mut |_| {}))
    }

    #[test]
    fn its_end_and_time_are_told() {
        let stop = Stop::default();
        let slept = run_it(shell("sleep 0.2"), &stop);
        assert_eq!(slept.status, OK);
        assert!(slept.wall_s >= 0.2 && slept.wall_s < 60.0);
        assert_eq!(run_it(shell("exit 7"), &stop).status, "exit 7");
        assert_eq!(run_it(shell("kill -9 $$"), &stop).status, "signal SIGKILL");
        let missing = run_it(Command::new("/nonexistent/program"), &stop).status;
        assert!(missing.starts_with("not started: "), "{missing}");
    }

    #[test]
    fn processor_time_of_grandchildren_counts() {
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let timed = run_it(shell(&format!("sh -c '{spin}'; sleep 0.01")), &Stop::default());
        assert!(timed.user_s + timed.sys_s > 0.01, "{timed:?}");
    }

    #[test]
    fn a_signal_ends_the_whole_group() {
        let dir = tempfile::tempdir().expect("a directory");
        let (ready, asked) = (dir.path().join("ready"), dir.path().join("asked"));
        let script = format!(
            "trap 'echo >{1}; exit 1' TERM; sleep 1000 & echo $! >{0}.new; mv {0}.new {0}; wait",
            ready.display(),
            asked.display()
        );
        let stop = Stop::default();
        let asker = stop.clone();
        let file = ready.clone();
        let asking = std::thread::spawn(move || {
            let pid = loop {
                match std::fs::read_to_string(&file) {
                    Ok(pid) => break pid,
                    Err(_) => std::thread::sleep(Duration::from_millis(10)),
                }
            };
            asker.ask(Kind::Interrupted);
            pid.trim().parse::<i32>().expect("a pid")
        });
        let timed = run_it(shell(&script), &stop);
        assert_eq!(timed.status, INTERRUPTED);
        assert!(asked.exists(), "it was not asked before it was killed");
        ends(Pid::from_raw(asking.join().expect("asked")));
    }

    /// Orphans are waited for by init: until then they are there, and dead.
    pub(super) fn ends(process: Pid) {
        let gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            stat.rsplit(')')
                .next()
                .is_none_or(|rest| rest.trim().is_empty() || rest.trim().starts_with('Z'))
        };
        let until = Instant::now() + Duration::from_mins(1);
        while !gone() {
            assert!(Instant::now() < until, "{process} is still there");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn what_it_leaves_behind_ends_with_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("pid");
        let script = format!("sleep 1000 & echo $! >{}; exit 0", file.display());
        assert_eq!(run_it(shell(&script), &Stop::default()).status, OK);
        let pid = std::fs::read_to_string(&file).expect("written before its end");
        ends(Pid::from_raw(pid.trim().parse().expect("a pid")));
    }

    #[test]
    fn no_password_of_a_command_is_kept() {
        for (word, shown) in [
            ("-pmarker", "-p…"),
            ("--password=marker", "--password…"),
            ("--mysql-password=marker", "--mysql-password…"),
            ("--pass=marker", "--pass…"),
            ("--passwor=marker", "--passwor…"),
            ("sh -c 'mysql --pas=marker db'", "sh -c 'mysql --pas…"),
            ("--password2=marker", "--password…"),
            ("--bypass=1", "--bypass=1"),
            ("sh -c 'mysql -uroot -p\'marker x\' db'", "sh -c 'mysql -uroot -p…"),
            ("MYSQL_PWD=marker exec mysql", "MYSQL_PWD…"),
            ("MySQL://u:marker@h/d", "MySQL://…"),
            ("mariadb://u:marker@h/d", "mariadb://u:…"),
            ("sh -c 'x -dsn u:mar@ker@tcp(h:3306)/d'", "sh -c 'x -dsn u:…"),
            ("CREATE USER u IDENTIFIED BY 'marker'", "CREATE USER u IDENTIFIED BY…"),
            ("CREATE USER u IDENTIFIED\nBY\t 'marker'", "CREATE USER u IDENTIFIED\nBY…"),
            ("IDENTIFIED WITH p AS'marker'", "IDENTIFIED WITH p AS…"),
            ("IDENTIFIED BY PASSWORD '*marker'", "IDENTIFIED BY…"),
            ("SELECT 1 AS 'x' ORDER BY (y)", "SELECT 1 AS 'x' ORDER BY (y)"),
            ("mysql -e 'SET PASSWORD = marker'", "mysql -e 'SET PASSWORD…"),
            ("SET PASSWORD FOR u = PASSWORD('marker')", "SET PASSWORD FOR u = PASSWORD…"),
            ("password: marker", "password…"),
            ("http://h:8080/x", "http://h:8080/x"),
            ("scp u@h:file .", "scp u@h:file ."),
            ("größe --PASSWORD=marker", "größe --PASSWORD…"),
            ("test-create", "test-create"),
            ("--socket=/run/x.sock", "--socket=/run/x.sock"),
            ("-P3306", "-P3306"),
            (
                "mkdir -p /tmp/x; echo $MYSQL_PWD; mysql -p",
                "mkdir -p /tmp/x; echo $MYSQL_PWD; mysql -p",
            ),
            ("", ""),
        ] {
            assert_eq!(hide_passwords(&[word.to_owned()]), [shown]);
        }
        let words = ["x", "--Password", "marker", "--pwd", "-marker", "--passwd", "--a", "b"];
        let shown = ["x", "--Password", "…", "--pwd", "…", "--passwd", "--a", "b"];
        assert_eq!(hide_passwords(&words.map(str::to_owned)), shown);
        for (words, shown) in [
            (["-password", "marker"], ["-p…", "…"]),
            (["-ppassword", "-e"], ["-p…", "-e"]),
            (["--password=mypwd", "db"], ["--password…", "db"]),
        ] {
            assert_eq!(hide_passwords(&words.map(str::to_owned)), shown);
        }
    }

    fn target(password: &str) -> ConnectOptions {
        ConnectOptions {
            address: Address::Tcp { host: "db1".to_owned(), port: 3307 },
            others: Vec::new(),
            user: "me".to_owned(),
            password: Secret::new(password),
            database: "sbtest".to_owned(),
            ssl: Ssl::default(),
            connect_timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn values_survive_the_grammar() {
        let written = option_text(&target("a#b\\c\"d e")).expect("fine");
        assert!(written.contains("password='a#b\\\\c\"d e'\n"), "{written}");
        assert!(written.starts_with("[client]\nhost=\"db1\"\nport=\"3307\"\n"), "{written}");
        let error = option_text(&target("mark\"er'")).expect_err("not to be written");
        assert!(!error.render().contains("mark"), "{}", error.render());
        assert!(!option_text(&target("")).expect("fine").contains("password"));
    }

    #[test]
    fn nobody_else_reads_it_and_it_is_in_no_directory() {
        let file = option_file(&target("secret")).expect("written");
        let facts = std::fs::metadata(path(&file)).expect("its facts");
        assert_eq!(facts.permissions().mode() & 0o777, 0o600);
        assert_eq!(std::os::unix::fs::MetadataExt::nlink(&facts), 0);
        // Each reader begins at its beginning.
        for _ in 0..2 {
            let read = std::fs::read_to_string(path(&file)).expect("readable");
            assert!(read.starts_with("[client]") && read.contains("secret"), "{read}");
        }
        let path = path(&file);
        drop(file);
        assert!(!std::fs::exists(path).expect("a path"));
    }

    #[test]
    fn encryption_that_is_wanted_is_wanted_of_the_commands_too() {
        let with = |mode, ca: Option<&str>| {
            let ssl = Ssl { mode, ca: ca.map(Into::into), ..Ssl::default() };
            option_text(&ConnectOptions { ssl, ..target("x") }).expect("fine")
        };
        assert!(!with(SslMode::Disabled, None).contains("ssl"));
        let required = with(SslMode::Required, None);
        assert!(required.contains("loose-ssl-mode=\"REQUIRED\"\n"), "{required}");
        assert!(required.ends_with("[client-mariadb]\nssl\n"), "{required}");
        let verified = with(SslMode::VerifyCa, Some("/a b.pem"));
        assert!(verified.contains("ssl-ca=\"/a b.pem\"\n"), "{verified}");
        assert!(verified.ends_with("\nssl\nssl-verify-server-cert\n"), "{verified}");
    }

    fn start(script: &str, within: Duration, stop: &Stop) -> Result<()> {
        run("start", &["sh", "-c", script, "marker"].map(str::to_owned), within, stop)
    }

    #[test]
    fn a_command_succeeds_fails_or_is_ended() {
        let stop = Stop::default();
        let long = Duration::from_mins(2);
        start("sleep 3 & exit 0", long, &stop).expect("what it leaves running lives on");
        let error = start("echo no such disk; exit 3", long, &stop).expect_err("fails");
        assert!(
            error.to_string().contains("no such disk") && !error.to_string().contains("marker")
        );
        let began = Instant::now();
        let error = start("sleep 1000", Duration::from_millis(50), &stop).expect_err("late");
        assert!(error.to_string().contains("within"), "{error}");
        stop.ask(Kind::Interrupted);
        let error = start("sleep 1000", long, &stop).expect_err("interrupted");
        assert_eq!(error.kind(), Kind::Interrupted);
        assert!(began.elapsed() < Duration::from_mins(1));
        let error = run("stop", &["/nonexistent".to_owned()], long, &Stop::default());
        assert!(error.expect_err("no program").to_string().contains("/nonexistent"));
    }
}
