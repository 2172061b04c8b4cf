//! A private throw-away server from a mysqld or mariadbd program.
//!
//! ```text
//! program ─▶ ask it for its version and directories ─▶ initialise ─▶ serve ─▶ who answers? ─▶ Sandbox
//! ```
//!
//! Everything lies in one directory that only this user reads, the server listens on a socket
//! in it and on a loopback port of its own, and a keeper process takes all of it away again,
//! however loadgen ends. The server's settings are its own defaults, but for its limits of
//! connections and statements and what the user asks for.

mod directory;
mod keeper;
mod options;
mod program;
mod serve;

pub(crate) use program::find as find_program;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit};

use self::directory::Directory;
use self::keeper::Keeper;
use self::options::UserOption;
use self::serve::Served;
use crate::error::{Error, Kind, Result};

/// How long a server may take to end well before it is killed. Its data is thrown away, so
/// there is nothing to wait for but files that it keeps elsewhere at the user's wish.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// And a server whose data stays: it writes out what it holds in memory.
const ENDS_WELL_WITHIN: Duration = Duration::from_mins(30);

/// How often the user hears that something still goes on.
const SAY_EVERY: Duration = Duration::from_secs(5);

const LOOK_EVERY: Duration = Duration::from_millis(25);

#[derive(Debug, Clone, Default)]
pub struct Spec {
    /// The server's program or a wrapper of it; if `None`, mariadbd, else mysqld, from the PATH.
    pub program: Option<PathBuf>,
    /// The user's options, `-` and `_` alike; they win over those of the sandbox, and those
    /// that would break its isolation are refused. Relative paths are the server's.
    pub options: Vec<(String, Option<String>)>,
    /// How many connections it must take at least.
    pub max_connections: u32,
    /// How many prepared statements it must hold at least.
    pub max_prepared_stmts: u32,
    pub data: DataDir,
    /// What the program's `--version` must say, where the data is of that version.
    pub version: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DataDir {
    /// In the sandbox's own directory, gone with it.
    #[default]
    Own,
    /// Here, an absolute path whose parent exists: initialised by the start, and left there.
    New(PathBuf),
    /// Here, with the data that an earlier start has left; it is left there again.
    Filled(PathBuf),
    /// In the sandbox's own directory, a copy of this one, which no server uses.
    CopyOf(PathBuf),
}

/// A private server that runs. Dropping it kills the server and removes its directory.
#[derive(Debug)]
pub struct Sandbox {
    keeper: Keeper,
    socket: PathBuf,
    port: u16,
    pid: u32,
    version: String,
    program_version: String,
    stops_within: Duration,
}

/// What every part of a start works with.
struct Start<'a> {
    spec: &'a Spec,
    path: PathBuf,
    options: Vec<UserOption>,
    directory: Directory,
    keeper: Keeper,
    say: &'a mut dyn FnMut(&str),
    interrupted: &'a dyn Fn() -> bool,
    /// The soft limit of descriptors that the server starts with.
    descriptors: u64,
}

impl Start<'_> {
    /// Looks until there is something, or `None` after `limit`. An interruption is an error.
    fn until<T>(
        &mut self,
        what: &str,
        limit: Duration,
        mut look: impl FnMut(&mut Self) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let began = Instant::now();
        let mut said = began;
        loop {
            if (self.interrupted)() {
                return Err(Error::new(Kind::Interrupted, format!("interrupted: {what}")));
            }
            if let Some(found) = look(self)? {
                return Ok(Some(found));
            }
            if began.elapsed() >= limit {
                return Ok(None);
            }
            if said.elapsed() >= SAY_EVERY {
                said = Instant::now();
                (self.say)(&format!("{what}, {} s so far", began.elapsed().as_secs()));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn launch(&mut self, name: &str, arguments: &[OsString], input: Option<&Path>) -> Result<()> {
        self.keeper.launch(name, &self.path, arguments, input, self.descriptors)
    }

    /// Runs the program to its end, or gives it up after `limit`.
    fn run(
        &mut self,
        name: &str,
        arguments: &[OsString],
        input: Option<&Path>,
        what: &str,
        limit: Duration,
    ) -> Result<Option<ExitStatus>> {
        self.launch(name, arguments, input)?;
        self.until(what, limit, |start| start.keeper.ended())
    }

    /// Makes the error of a server that does not come up, with the end of this job's log.
    fn failure(&self, how: &str, job: &str) -> Error {
        failure(&self.path, how, &self.keeper.tail(job), &self.options)
    }
}

impl Sandbox {
    /// Initialises and starts a server, makes sure that it is the one that answers on its
    /// socket and its port, as root without a password, and that it has a database `sbtest`.
    ///
    /// It blocks for some seconds, `say`s what takes longer, and ends soon after `interrupted`
    /// turns true. Must not be called from inside an async runtime.
    pub fn start(
        spec: &Spec,
        say: &mut dyn FnMut(&str),
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Sandbox> {
        let began = Instant::now();
        let options = options::accept(&spec.options)?;
        let path = program::find(spec.program.as_deref())?;
        let (elsewhere, stops_within) = match &spec.data {
            DataDir::Own | DataDir::CopyOf(_) => (None, STOPS_WITHIN),
            DataDir::New(dir) | DataDir::Filled(dir) => (Some(dir.clone()), ENDS_WELL_WITHIN),
        };
        let directory = Directory::choose(elsewhere)?;
        let keeper = Keeper::start(directory.path.clone())?;
        directory.furnish()?;
        say(&format!("sandbox: {} in {}", path.display(), directory.path.display()));
        let descriptors = descriptors(spec.max_connections);
        let mut start =
            Start { spec, path, options, directory, keeper, say, interrupted, descriptors };
        let program = program::ask(&mut start)?;
        check_version(&start, &program)?;
        let data = start.directory.data.clone();
        match &spec.data {
            DataDir::Filled(_) => directory::forget(&data),
            DataDir::CopyOf(from) => {
                (start.say)(&format!("sandbox: copying the data of {}", from.display()));
                directory::copy(from, &data, &mut start)?;
            }
            DataDir::Own | DataDir::New(_) => {
                (start.say)(&format!("sandbox: initialising {}", program.version));
                serve::initialise(&program, &mut start)?;
                directory::forget(&data);
            }
        }
        (start.say)("sandbox: starting the server");
        let Served { port, pid, version } = serve::serve(&program, &mut start)?;
        (start.say)(&format!(
            "sandbox: {version} ready on port {port} after {:.1} s",
            began.elapsed().as_secs_f64()
        ));
        let (socket, program_version) = (start.directory.socket.clone(), program.version);
        Ok(Sandbox {
            keeper: start.keeper,
            socket,
            port,
            pid,
            version,
            program_version,
            stops_within,
        })
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's own process, also if the program is a wrapper.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The directory that holds everything and goes away.
    pub fn dir(&self) -> &Path {
        self.keeper.dir()
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    pub(crate) fn program_version(&self) -> &str {
        &self.program_version
    }

    /// Stops the server, well if it ends within ten seconds (half an hour where its data stays),
    /// and removes the sandbox's directory.
    pub fn stop(mut self) -> Result<()> {
        self.keeper.close(self.stops_within)
    }
}

/// Another version might refuse the data, or change it for good.
fn check_version(start: &Start, program: &program::Program) -> Result<()> {
    match &start.spec.version {
        Some(version) if *version != program.version => Err(Error::usage(format!(
            "sandbox: {} is {}, but the data directory is of {version}",
            start.path.display(),
            program.version
        ))
        .hint("give each version a directory of its own")),
        _ => Ok(()),
    }
}

/// What a server needs: by the servers' own reckoning five a connection, and some thousands
/// for tables. It raises its limit itself if the user's options ask for more.
fn descriptors(max_connections: u32) -> u64 {
    let wanted = (u64::from(max_connections) * 5 + 10_000).max(32_768);
    getrlimit(Resource::RLIMIT_NOFILE).map_or(wanted, |(_, hard)| wanted.min(hard))
}

/// The error of a server that does not come up: what happened, the end of its log, and what
/// the log suggests.
fn failure(program: &Path, how: &str, log: &str, options: &[UserOption]) -> Error {
    let program = program.display();
    let said = if log.is_empty() { "; it logged nothing" } else { "; its log ends:" };
    let mut error = Error::server(format!("sandbox: {program} {how}{said}{log}"));
    let log = log.to_lowercase();
    if ["permission denied", "errcode: 13", "errno: 13"].iter().any(|text| log.contains(text)) {
        error =
            error.hint("AppArmor or SELinux may confine this program: TMPDIR names another place");
    }
    if log.contains("no space left") {
        error = error.hint("TMPDIR names a place with more room");
    }
    if !options.is_empty() {
        error = error.hint(format!(
            "check the --sandbox-option: '{program} --no-defaults --verbose --help' lists what it knows"
        ));
    }
    error
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    impl<'a> Start<'a> {
        /// One of nothing that runs, but for its keeper.
        pub(super) fn test(
            say: &'a mut dyn FnMut(&str),
            interrupted: &'a dyn Fn() -> bool,
        ) -> Start<'a> {
            static SPEC: Spec = Spec {
                program: None,
                options: Vec::new(),
                max_connections: 0,
                max_prepared_stmts: 0,
                data: DataDir::Own,
                version: None,
            };
            let directory = Directory::choose(None).unwrap();
            let keeper = Keeper::start(directory.path.clone()).unwrap();
            let (path, options) = ("/x/mysqld".into(), Vec::new());
            Start {
                spec: &SPEC,
                path,
                options,
                directory,
                keeper,
                say,
                interrupted,
                descriptors: 64,
            }
        }
    }

    #[test]
    fn a_failure_shows_the_log_and_suggests_what_it_says() {
        let full = failure(Path::new("/x/mysqld"), "ended", "\n  No space left on device", &[]);
        assert!(full.to_string().ends_with("its log ends:\n  No space left on device"));
        assert!(full.hints()[0].contains("TMPDIR"));
        let silent = failure(Path::new("/x/mysqld"), "ended", "", &[]);
        assert!(silent.to_string().ends_with("it logged nothing"));
        assert!(silent.hints().is_empty());
        let options = options::accept(&[("sql_mode".into(), None)]).unwrap();
        assert!(
            failure(Path::new("/x/mysqld"), "ended", "", &options).hints()[0].contains("--help")
        );
    }

    #[test]
    fn a_wait_ends_with_what_it_finds_at_its_limit_or_when_interrupted() {
        let stop = Cell::new(false);
        let interrupted = || stop.get();
        let mut say = |_: &str| {};
        let mut wait = Start::test(&mut say, &interrupted);
        let mut looks = 0;
        let found = wait.until("x", Duration::from_mins(1), |_| {
            looks += 1;
            Ok((looks == 3).then_some(7))
        });
        assert_eq!(found.unwrap(), Some(7));
        assert_eq!(wait.until("x", Duration::ZERO, |_| Ok(None::<()>)).unwrap(), None);
        stop.set(true);
        let error = wait.until("x", Duration::from_mins(1), |_| Ok(None::<()>)).unwrap_err();
        assert_eq!(error.kind(), Kind::Interrupted);
    }
}
