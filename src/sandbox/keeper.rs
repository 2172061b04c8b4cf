//! The keeper: a small shell process that outlives loadgen, so that nothing is left however loadgen ends.
//!
//! It makes the sandbox's directory, and reads its standard input from loadgen. At the end of that, also if
//! loadgen was killed, it ends the last process group that it was told, and removes the directory.
//!
//! Every program of a sandbox is a job: a child of loadgen in its own process group, without the terminal's
//! Ctrl-C. It waits at a gate until the keeper knows its group; if loadgen is killed before that, it ends.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::error::{Error, Result};

pub(super) fn cannot<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> Error {
    let what = format!("sandbox: cannot {what}");
    move |why| Error::server(format!("{what}: {why}"))
}

/// `$1` is the directory. A terminal sends its signals to everyone, so they are ignored, also in `sleep` and
/// `rm`. The server has two seconds to end (a bootstrap never does), and ten more after SIGKILL.
const KEEPER: &str = r#"
trap '' HUP INT QUIT TERM PIPE TSTP
PATH=$PATH:/usr/bin:/bin
cd / || exit 1
mkdir -m 700 -- "$1" 2>&1 || exit 1
echo ready
exec >/dev/null 2>&1
group=
while read -r what number; do
    case $what in
    group) group=$number ;;
    none) group= ;;
    esac
done
if [ -n "$group" ]; then
    tries=0
    kill -s TERM -- "-$group"
    while kill -s 0 -- "-$group" && [ "$tries" -lt 120 ]; do
        tries=$((tries + 1))
        [ "$tries" -ne 20 ] || kill -s KILL -- "-$group"
        sleep 0.1 || sleep 1
    done
fi
rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }
"#;

/// `$0` is the input, `$1` the soft limit of descriptors, the rest the program. Some machines' limit is a
/// billion, and old servers allocate memory by it: it is set, not only raised.
const GATE: &str = r#"
read -r go || exit 1
ulimit -S -n "$1" 2>/dev/null || :
shift
exec "$@" <"$0"
"#;

/// Time in which a job's processes must vanish after SIGKILL.
const KILLED_WITHIN: Duration = Duration::from_secs(10);

const REMOVED_WITHIN: Duration = Duration::from_mins(1);

const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A sandbox's directory, its job, and the process that outlives loadgen. Dropping it removes everything.
#[derive(Debug)]
pub(super) struct Keeper {
    pub(super) dir: PathBuf,
    descriptors: u64,
    shell: Child,
    /// Its end of file makes the keeper clean up. Rust's pipes are close-on-exec: no other child has it.
    orders: Option<ChildStdin>,
    job: Option<Child>,
}

fn group(job: &Child) -> Pid {
    Pid::from_raw(job.id().cast_signed())
}

/// Polls until `done`, for at most `limit`. Returns whether it is.
fn wait(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !done() {
        if began.elapsed() >= limit {
            return false;
        }
        thread::sleep(LOOK_EVERY);
    }
    true
}

impl Keeper {
    /// Starts a keeper, which makes the directory `dir`: absolute, and new.
    pub(super) fn start(dir: PathBuf, descriptors: u64) -> Result<Keeper> {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", KEEPER, "loadgen-keeper"])
            .arg(&dir)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(cannot("run /bin/sh"))?;
        let (orders, output) = (shell.stdin.take(), shell.stdout.take().expect("it is piped"));
        let mut answer = String::new();
        let _ = BufReader::new(output).read_line(&mut answer);
        if answer.trim() != "ready" {
            drop(orders);
            let _ = shell.wait();
            let answer = answer.trim();
            return Err(cannot(&format!("make {}", dir.display()))(answer)
                .hint("TMPDIR names another place for it"));
        }
        Ok(Keeper { dir, descriptors, shell, orders, job: None })
    }

    pub(super) fn group(&self) -> Option<Pid> {
        self.job.as_ref().map(group)
    }

    /// Starts a job that reads `input`, or nothing, and writes `job.out` and `job.log` (standard error) in
    /// the directory. Ends the job before it.
    pub(super) fn launch(
        &mut self,
        program: &Path,
        arguments: &[OsString],
        input: Option<&Path>,
    ) -> Result<()> {
        self.end_job(Duration::ZERO);
        let what = format!("start {}", program.display());
        let file = |extension| File::create(self.file(extension)).map_err(cannot(&what));
        let mut job = Command::new("/bin/sh")
            .args(["-c", GATE])
            .arg(input.unwrap_or(Path::new("/dev/null")))
            .arg(self.descriptors.to_string())
            .arg(program)
            .args(arguments)
            .current_dir(&self.dir)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(file("out")?)
            .stderr(file("log")?)
            .spawn()
            .map_err(cannot(&what))?;
        let mut gate = job.stdin.take().expect("it is piped");
        self.order(&format!("group {}\n", group(&job)));
        self.job = Some(job);
        // If it is gone already, its exit status says so.
        let _ = gate.write_all(b"go\n");
        Ok(())
    }

    /// Returns the job's exit status once it has ended by itself. Ends what it left running.
    pub(super) fn take_status(&mut self) -> Result<Option<ExitStatus>> {
        let job = self.job.as_mut().expect("a job was started");
        let status = job.try_wait().map_err(cannot("wait"))?;
        if status.is_some() {
            self.end_job(Duration::ZERO);
        }
        Ok(status)
    }

    /// Waits for at most `limit` until the job and all that it started have ended; returns the job's status then.
    pub(super) fn own_end(&mut self, limit: Duration) -> Option<ExitStatus> {
        let job = self.job.as_mut()?;
        let (group, mut status) = (group(job), None);
        wait(limit, || {
            status = job.try_wait().ok().flatten();
            status.is_some() && killpg(group, None) == Err(Errno::ESRCH)
        })
        .then_some(status)?
    }

    /// Ends the job: SIGTERM, SIGKILL after `grace`, and waits until its processes are gone.
    pub(super) fn end_job(&mut self, grace: Duration) {
        let Some(mut job) = self.job.take() else { return };
        let group = group(&job);
        // While a process of the group exists its number is not reused, and a free number comes last.
        let mut gone = || {
            let _ = job.try_wait();
            killpg(group, None) == Err(Errno::ESRCH)
        };
        if !grace.is_zero() {
            let _ = killpg(group, Signal::SIGTERM);
        }
        if !wait(grace, &mut gone) {
            let _ = killpg(group, Signal::SIGKILL);
            wait(KILLED_WITHIN, gone);
        }
        self.order("none\n");
    }

    /// The last lines that the job wrote, indented, for an error's message.
    pub(super) fn tail(&self) -> String {
        let log = end(&self.read_output("log"));
        if log.is_empty() { end(&self.read_output("out")) } else { log }
    }

    /// Reads the job's `log` or `out`; empty if it cannot be read.
    pub(super) fn read_output(&self, extension: &str) -> String {
        let bytes = fs::read(self.file(extension)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.dir.join(format!("job.{extension}"))
    }

    pub(super) fn close(&mut self, grace: Duration) -> Result<()> {
        self.end_job(grace);
        if self.orders.take().is_none() {
            return Ok(());
        }
        wait(REMOVED_WITHIN, || !matches!(self.shell.try_wait(), Ok(None)));
        // The keeper was killed.
        if self.dir.exists()
            && let Err(error) = fs::remove_dir_all(&self.dir)
        {
            let dir = self.dir.display();
            return Err(Error::failed(format!("sandbox: cannot remove {dir}: {error}"))
                .hint(format!("remove it by hand: rm -r {dir}")));
        }
        Ok(())
    }

    fn order(&mut self, line: &str) {
        if let Some(orders) = &mut self.orders {
            // Without a keeper loadgen itself cleans up, unless it is killed.
            let _ = orders.write_all(line.as_bytes());
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Nobody is left to hear of a failure, and the data is thrown away.
        let _ = self.close(Duration::ZERO);
    }
}

/// Returns true of a line that tells a fault; those of fatal signals and failed assertions may have no mark.
fn is_error(line: &str) -> bool {
    ["ERROR", " got signal ", "Assertion failure"].iter().any(|text| line.contains(text))
}

/// Cuts a log to its end and earlier errors, indented: old servers log a dozen lines after the cause.
fn end(log: &str) -> String {
    const LAST: usize = 8;
    const ERRORS: usize = 6;
    const LINE_CHARS: usize = 300;
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(LAST));
    let errors: Vec<&str> = before.iter().filter(|line| is_error(line)).copied().collect();
    let (_, errors) = errors.split_at(errors.len().saturating_sub(ERRORS));
    let mut tail = String::new();
    for line in errors.iter().chain(last) {
        tail.push_str("\n  ");
        tail.extend(line.chars().take(LINE_CHARS));
    }
    tail
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A keeper of a directory that nobody else has.
    fn keeper() -> Keeper {
        let name = format!("loadgen-keeper-test-{:x}", getrandom::u64().unwrap());
        Keeper::start(std::env::temp_dir().join(name), 64).unwrap()
    }

    fn shell(keeper: &mut Keeper, script: &str) {
        let arguments = ["-c".into(), script.into()];
        let program = Path::new("/bin/sh");
        keeper.launch(program, &arguments, None).unwrap();
    }

    fn wait_for(done: impl FnMut() -> bool) {
        assert!(wait(Duration::from_mins(1), done), "waited in vain");
    }

    #[test]
    fn a_job_runs_in_the_directory_with_its_limit_and_its_status() {
        let mut keeper = keeper();
        shell(&mut keeper, "pwd; ulimit -n; echo said >&2; exit 3");
        let mut status = None;
        wait_for(|| {
            status = keeper.take_status().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().code(), Some(3));
        let printed = keeper.read_output("out");
        let dir = fs::canonicalize(&keeper.dir).unwrap();
        assert_eq!(printed, format!("{}\n64\n", dir.display()));
        assert_eq!(keeper.tail(), "\n  said");
    }

    #[test]
    fn the_directory_is_private_and_goes_away() {
        use std::os::unix::fs::PermissionsExt;
        let mut keeper = keeper();
        let dir = keeper.dir.clone();
        assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir(dir.join("data")).unwrap();
        fs::write(dir.join("data/x"), "x").unwrap();
        keeper.close(Duration::ZERO).unwrap();
        assert!(!dir.exists());
    }

    #[test]
    fn a_directory_that_exists_is_refused_and_kept() {
        let taken = tempfile::tempdir().unwrap();
        let error = Keeper::start(taken.path().to_owned(), 64).unwrap_err();
        assert!(error.to_string().contains("cannot make"), "{error}");
        assert!(taken.path().exists());
    }

    #[test]
    fn a_job_that_ignores_sigterm_is_killed_with_its_children() {
        let mut keeper = keeper();
        shell(&mut keeper, "trap '' TERM; sleep 1000 & echo $! ; wait");
        let mut child = String::new();
        wait_for(|| {
            child = keeper.read_output("out");
            child.ends_with('\n')
        });
        let child = Pid::from_raw(child.trim().parse().unwrap());
        let began = Instant::now();
        keeper.end_job(Duration::from_millis(200));
        assert!(began.elapsed() >= Duration::from_millis(200));
        wait_for(|| nix::sys::signal::kill(child, None).is_err());
    }

    #[test]
    fn the_directory_goes_away_when_loadgen_ends_without_a_word() {
        let mut keeper = keeper();
        fs::write(keeper.dir.join("x"), "x").unwrap();
        // The end of a process closes its pipes.
        drop(keeper.orders.take());
        wait_for(|| !keeper.dir.exists());
    }

    #[test]
    fn a_killed_keeper_does_not_keep_the_directory() {
        let mut keeper = keeper();
        shell(&mut keeper, "sleep 1000");
        keeper.shell.kill().unwrap();
        let dir = keeper.dir.clone();
        keeper.close(Duration::ZERO).unwrap();
        assert!(!dir.exists());
    }

    #[test]
    fn the_end_of_a_log_is_shown_with_the_errors_before_it() {
        let line = |i: usize| {
            let kind = if i < 20 { "[ERROR]" } else { "[Note]" };
            format!("{kind} {i} {}", "x".repeat(1000))
        };
        let log: Vec<String> = (0..40).map(line).collect();
        let shown = end(&log.join("\n\n"));
        let numbers: Vec<&str> =
            shown.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(numbers.join(" "), "14 15 16 17 18 19 32 33 34 35 36 37 38 39");
        assert!(shown.len() < 14 * 310);
    }

    #[test]
    fn a_short_log_is_shown_whole() {
        assert_eq!(end("\none\n\ntwo"), "\n  one\n  two");
        assert_eq!(end(""), "");
    }
}
