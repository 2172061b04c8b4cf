//! External commands, one after the other, each timed: wall clock, and user and system CPU of the
//! command and of the processes that it waited for.
//!
//! They find the server in their environment: `LOADGEN_HOST` and `LOADGEN_PORT`, or
//! `LOADGEN_SOCKET`; `LOADGEN_USER`, `LOADGEN_DATABASE`; and `LOADGEN_DEFAULTS_FILE`, an option file
//! of the MySQL clients (`--defaults-file`) that only this user reads, with all of it and the
//! password, which is on no command line and in no file that has a name.

mod child;
mod option_file;

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use self::child::{Ended, Timed};
use self::option_file::OptionFile;
use crate::error::{Error, Result};
use crate::mysql::options::{Address, ConnectOptions};
use crate::plan::timed::{SuiteSpec, SuiteTest};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::summary;

/// What a suite came to.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The tests that ran, in order.
    pub tests: Vec<summary::SuiteTest>,
    /// Why it did not complete: a test that failed, or an interruption.
    pub error: Option<Error>,
}

/// Runs the tests in order; what they print goes to `output`. One that fails does not keep the
/// others from running. Blocks until they are done, or a signal ended them.
///
/// # Errors
///
/// Usage: a suite without tests, a test without a program. Failed: the option file cannot be
/// written.
pub(crate) fn run(
    spec: &SuiteSpec,
    target: &ConnectOptions,
    output: &File,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Ran> {
    check(spec)?;
    let options = option_file::write(target)?;
    let mut ran = Ran { tests: Vec::new(), error: None };
    let mut failed = Vec::new();
    progress.restart();
    for (done, test) in spec.tests.iter().enumerate() {
        if let Err(interrupted) = stop.check() {
            ran.error = Some(interrupted);
            return Ok(ran);
        }
        let mut look = |elapsed: Duration| {
            let (all, seconds) = (spec.tests.len(), elapsed.as_secs());
            progress.update(|| {
                format!(
                    "suite {}: test {} of {all}, {}, {seconds} s",
                    spec.name,
                    done + 1,
                    test.name
                )
            });
        };
        let timed = one(test, target, &options, output, stop, &mut look);
        progress.clear();
        let entry = entry(test, &timed);
        progress.note(&format!(
            "{}: {:.3} s, CPU {:.2} s user {:.2} s system, {}",
            entry.name, entry.wall_s, entry.user_s, entry.sys_s, entry.status
        ));
        match timed.ended {
            Ended::Ok => {}
            Ended::Interrupted => ran.error = stop.check().err(),
            Ended::Failed(_) => failed.push(format!("{}: {}", test.name, entry.status)),
        }
        ran.tests.push(entry);
    }
    if ran.error.is_none() && !failed.is_empty() {
        let (n, of) = (failed.len(), spec.tests.len());
        ran.error = Some(
            Error::failed(format!(
                "{n} of {of} tests of suite {} failed: {}",
                spec.name,
                failed.join("; ")
            ))
            .hint("what they printed is beside the summary"),
        );
    }
    Ok(ran)
}

fn check(spec: &SuiteSpec) -> Result<()> {
    if spec.tests.is_empty() {
        return Err(Error::usage(format!("suite {} has no tests", spec.name)));
    }
    match spec.tests.iter().find(|test| test.run.first().is_none_or(String::is_empty)) {
        None => Ok(()),
        Some(test) => {
            Err(Error::usage(format!("suite {}: test {} names no program", spec.name, test.name)))
        }
    }
}

/// Runs one test; a fault before its start is its failure.
fn one(
    test: &SuiteTest,
    target: &ConnectOptions,
    options: &OptionFile,
    output: &File,
    stop: &Stop,
    look: &mut dyn FnMut(Duration),
) -> Timed {
    let titled = (|| {
        let mut file = output;
        writeln!(file, "== {}: {}", test.name, kept(&test.run).join(" "))?;
        Ok((output.try_clone()?, output.try_clone()?))
    })();
    let (out, err) = match titled {
        Ok(both) => both,
        Err(e) => return Timed::not_started(&e),
    };
    let mut command = std::process::Command::new(test.run.first().map_or("", String::as_str));
    command.args(test.run.get(1..).unwrap_or_default()).stdout(out).stderr(err);
    if let Some(dir) = &test.dir {
        command.current_dir(dir);
    }
    for name in ["LOADGEN_HOST", "LOADGEN_PORT", "LOADGEN_SOCKET", "LOADGEN_URL"] {
        command.env_remove(name);
    }
    match &target.address {
        Address::Tcp { host, port } => {
            command.env("LOADGEN_HOST", host).env("LOADGEN_PORT", port.to_string());
        }
        Address::Socket(path) => {
            command.env("LOADGEN_HOST", "localhost").env("LOADGEN_SOCKET", path);
        }
    }
    command
        .env("LOADGEN_USER", &target.user)
        .env("LOADGEN_DATABASE", &target.database)
        .env("LOADGEN_DEFAULTS_FILE", options.path());
    child::run(command, stop, look)
}

fn entry(test: &SuiteTest, timed: &Timed) -> summary::SuiteTest {
    summary::SuiteTest {
        name: test.name.clone(),
        run: kept(&test.run),
        wall_s: timed.wall.as_secs_f64(),
        user_s: timed.cost.user.as_secs_f64(),
        sys_s: timed.cost.sys.as_secs_f64(),
        status: match &timed.ended {
            Ended::Ok => "ok".to_owned(),
            Ended::Interrupted => "interrupted".to_owned(),
            Ended::Failed(how) => how.clone(),
        },
    }
}

/// Program and arguments as they are kept: results are shown around, and what begins like a password
/// ends there.
fn kept(words: &[String]) -> Vec<String> {
    words
        .iter()
        .map(|word| {
            word.get(..password_in(word)).map_or_else(String::new, |open| {
                if open.len() < word.len() { format!("{open}…") } else { open.to_owned() }
            })
        })
        .collect()
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
    use super::*;

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
