//! External commands, one after the other, each timed: wall clock, and user and system CPU of the
//! command and of the processes that it waited for.
//!
//! They find the server in their environment: `LOADGEN_HOST` and `LOADGEN_PORT`, or
//! `LOADGEN_SOCKET`; `LOADGEN_USER`, `LOADGEN_DATABASE`; and `LOADGEN_DEFAULTS_FILE`, an option file
//! of the MySQL clients (`--defaults-file`) that only this user reads, with all of it and the
//! password, which is on no command line and in no file that has a name.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::option_file::{self, OptionFile};
use super::wait;
use crate::error::{Error, Result, plain};
use crate::mysql::{Address, ConnectOptions};
use crate::observe::process::{Cost, children_usage};
use crate::plan::timed::{SuiteSpec, SuiteTest};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::stop::groups::Group;
use crate::summary;

/// The status of a test that succeeded.
pub(crate) const OK: &str = "ok";
/// And of one that a signal to loadgen ended.
const INTERRUPTED: &str = "interrupted";

/// How long a command took, what it cost, and how it ended.
type Timed = (Duration, Cost, String);

/// Runs the tests in order; what they print goes to `output`. One that fails does not keep the
/// others from running. Blocks until they are done, or a signal ended them. Returns those that ran,
/// and why that is no result.
///
/// # Errors
///
/// Failed: the option file cannot be written.
pub(crate) fn run(
    spec: &SuiteSpec,
    target: &ConnectOptions,
    output: &File,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<(Vec<summary::SuiteTest>, Option<Error>)> {
    let options = option_file::write(target)?;
    let mut ran: Vec<summary::SuiteTest> = Vec::new();
    let all = spec.tests.len();
    progress.restart();
    for (n, test) in (1..).zip(&spec.tests) {
        if let Err(interrupted) = stop.check() {
            return Ok((ran, Some(interrupted)));
        }
        let mut look = |elapsed: Duration| {
            let (suite, name, seconds) = (&spec.name, &test.name, elapsed.as_secs());
            progress.update(|| format!("suite {suite}: test {n} of {all}, {name}, {seconds} s"));
        };
        let mut command = command(test, target, &options);
        let titled = titled(test, output, &mut command);
        let entry = entry(test, titled.and_then(|()| timed(&mut command, stop, &mut look)));
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
        // A signal after the last test cut nothing.
        Some(last) if last.status == INTERRUPTED => stop.check().err(),
        _ if failed.is_empty() => None,
        _ => {
            let (count, failed) = (failed.len(), failed.join("; "));
            let text = format!("{count} of {all} tests of suite {} failed: {failed}", spec.name);
            Some(Error::failed(text).hint("what they printed is beside the summary"))
        }
    };
    Ok((ran, error))
}

/// Begins what a test prints with its name.
fn titled(test: &SuiteTest, mut output: &File, command: &mut Command) -> io::Result<()> {
    writeln!(output, "== {}: {}", test.name, kept(&test.run).join(" "))?;
    command.stdout(output.try_clone()?).stderr(output.try_clone()?);
    Ok(())
}

fn command(test: &SuiteTest, target: &ConnectOptions, options: &OptionFile) -> Command {
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
        .env("LOADGEN_DEFAULTS_FILE", options.path());
    command
}

/// Runs a command to its end. What it leaves behind in its group ends with it.
fn timed(command: &mut Command, stop: &Stop, look: &mut dyn FnMut(Duration)) -> io::Result<Timed> {
    // Children that are waited for while it runs are its own: loadgen has no others to wait for.
    let (before, began) = (children_usage(), Instant::now());
    let mut group = Group::spawn(command.stdin(Stdio::null()))?;
    let (wall, cut) = wait(&group, began, Duration::MAX, stop, look)?;
    // Its own process is not waited for yet: the group's number is nobody else's.
    group.signal(Signal::SIGKILL);
    let status = group.leader.wait()?;
    let status = if cut { INTERRUPTED.to_owned() } else { how(status) };
    Ok((wall, children_usage().since(&before), status))
}

fn entry(test: &SuiteTest, timed: io::Result<Timed>) -> summary::SuiteTest {
    let (wall, cost, status) = timed.unwrap_or_else(|error| {
        (Duration::ZERO, Cost::default(), plain(&format!("not started: {error}")))
    });
    summary::SuiteTest {
        name: test.name.clone(),
        run: kept(&test.run),
        wall_s: wall.as_secs_f64(),
        user_s: cost.user.as_secs_f64(),
        sys_s: cost.sys.as_secs_f64(),
        status,
    }
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => OK.to_owned(),
        (Some(code), _) => format!("exit {code}"),
        (None, number) => match number.map(Signal::try_from) {
            Some(Ok(signal)) => format!("signal {signal}"),
            _ => format!("signal {}", number.unwrap_or(0)),
        },
    }
}

/// Program and arguments as they are kept: results are shown around, and what begins like a password
/// ends there.
fn kept(words: &[String]) -> Vec<String> {
    let kept = |word: &String| match &word[..password_in(word)] {
        open if open.len() < word.len() => format!("{open}…"),
        open => open.to_owned(),
    };
    words.iter().map(kept).collect()
}

/// Where in a word something begins that may be a password; its end where nothing does.
fn password_in(word: &str) -> usize {
    let lower = word.to_ascii_lowercase();
    let named = ["password", "passwd", "pwd", "mysql://"].into_iter().filter_map(|name| {
        // A script's `$MYSQL_PWD` is none, and no more is `--password` before the next word.
        lower
            .match_indices(name)
            .map(|(at, name)| at + name.len())
            .find(|end| name == "mysql://" || lower[*end..].starts_with(['=', '\'', '"']))
    });
    let short = word.match_indices("-p").map(|(at, sign)| (at, at + sign.len()));
    let short = short.filter(|(at, end)| {
        let begins =
            lower[..*at].chars().next_back().is_none_or(|c| c.is_whitespace() || "'\"".contains(c));
        begins && lower[*end..].starts_with(|c: char| !c.is_whitespace())
    });
    named.chain(short.map(|(_, end)| end)).min().unwrap_or(word.len())
}

#[cfg(test)]
mod tests {
    use nix::unistd::Pid;

    use super::*;
    use crate::error::Kind;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn run_it(mut command: Command, stop: &Stop) -> summary::SuiteTest {
        let test = SuiteTest { name: "a".to_owned(), run: Vec::new(), dir: None };
        entry(&test, timed(&mut command, stop, &mut |_| {}))
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
    fn ends(process: Pid) {
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
            ("sh -c 'mysql -uroot -p\'marker x\' db'", "sh -c 'mysql -uroot -p…"),
            ("MYSQL_PWD=marker exec mysql", "MYSQL_PWD…"),
            ("MySQL://u:marker@h/d", "MySQL://…"),
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
            assert_eq!(kept(&[word.to_owned()]), [shown]);
        }
    }
}
