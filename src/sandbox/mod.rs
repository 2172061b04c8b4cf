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

mod copy;
mod identity;
mod initialise;
mod keeper;
mod layout;
mod log;
mod options;
mod program;
mod serve;
mod wait;

pub(crate) use program::find as find_program;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit};

use self::keeper::Keeper;
use self::layout::Layout;
use self::options::UserOption;
use self::wait::Wait;
use crate::error::{Error, Result};

/// How long a server may take to end well before it is killed. Its data is thrown away, so
/// there is nothing to wait for but files that it keeps elsewhere at the user's wish.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// And a server whose data stays: it writes out what it holds in memory.
const ENDS_WELL_WITHIN: Duration = Duration::from_mins(30);

/// What is wanted of a private server.
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
    /// Where its data is.
    pub data: DataDir,
    /// What the program's `--version` must say, where the data is of that version.
    pub version: Option<String>,
}

/// The data directory of a private server.
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

impl DataDir {
    fn elsewhere(&self) -> Option<PathBuf> {
        match self {
            DataDir::Own | DataDir::CopyOf(_) => None,
            DataDir::New(dir) | DataDir::Filled(dir) => Some(dir.clone()),
        }
    }
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

/// What every stage of a start works with.
struct Start<'a> {
    spec: &'a Spec,
    options: &'a [UserOption],
    layout: &'a Layout,
    keeper: &'a mut Keeper,
    wait: Wait<'a>,
    /// The soft limit of descriptors that the server starts with.
    descriptors: u64,
}

impl Sandbox {
    /// Initialises and starts a server, makes sure that it is the one that answers on its
    /// socket and its port, as root without a password, and that it has a database `sbtest`.
    ///
    /// It blocks for some seconds, `say`s what takes longer, and ends soon after `interrupted`
    /// turns true. Must not be called from inside an async runtime.
    ///
    /// # Errors
    ///
    /// Usage: a program that is no server, an option that a sandbox refuses. Server: it does
    /// not initialise or start; the message ends with its log's last lines. Interrupted.
    /// Whatever the error, nothing of the sandbox is left.
    pub fn start(
        spec: &Spec,
        say: &mut dyn FnMut(&str),
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Sandbox> {
        let began = Instant::now();
        let options = options::accept(&spec.options)?;
        let path = program::find(spec.program.as_deref())?;
        let layout = Layout::choose()?.with_data(spec.data.elsewhere());
        let mut keeper = Keeper::start(layout.dir().to_owned())?;
        layout.furnish()?;
        let mut start = Start {
            spec,
            options: &options,
            layout: &layout,
            keeper: &mut keeper,
            wait: Wait { say, interrupted },
            descriptors: descriptors(spec.max_connections),
        };
        (start.wait.say)(&format!("sandbox: {} in {}", path.display(), layout.dir().display()));
        let program = program::ask(path, &mut start)?;
        check_version(spec, &program)?;
        match &spec.data {
            DataDir::Filled(dir) => copy::forget(dir),
            DataDir::CopyOf(dir) => copy::copy(dir, &layout.data(), &mut start.wait)?,
            DataDir::Own | DataDir::New(_) => {
                (start.wait.say)(&format!("sandbox: initialising {}", program.version));
                initialise::initialise(&program, &mut start)?;
                copy::forget(&layout.data());
            }
        }
        (start.wait.say)("sandbox: starting the server");
        let served = serve::serve(&program, &mut start)?;
        (start.wait.say)(&format!(
            "sandbox: {} ready on port {} after {:.1} s",
            served.version,
            served.port,
            began.elapsed().as_secs_f64()
        ));
        Ok(Sandbox {
            keeper,
            socket: layout.socket(),
            port: served.port,
            pid: served.pid,
            version: served.version,
            program_version: program.version,
            stops_within: match spec.data {
                DataDir::Own | DataDir::CopyOf(_) => STOPS_WITHIN,
                DataDir::New(_) | DataDir::Filled(_) => ENDS_WELL_WITHIN,
            },
        })
    }

    /// The server's Unix socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The server's port on 127.0.0.1.
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

    /// The server's `@@version`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What the program's `--version` says.
    pub(crate) fn program_version(&self) -> &str {
        &self.program_version
    }

    /// Stops the server, well if it ends within ten seconds (half an hour where its data stays),
    /// and removes the sandbox's directory.
    ///
    /// # Errors
    ///
    /// The directory cannot be removed.
    pub fn stop(mut self) -> Result<()> {
        self.keeper.close(self.stops_within)
    }
}

/// Another version might refuse the data, or change it for good.
fn check_version(spec: &Spec, program: &program::Program) -> Result<()> {
    match &spec.version {
        Some(version) if *version != program.version => Err(Error::usage(format!(
            "sandbox: {} is {}, but the data directory is of {version}",
            program.path.display(),
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
    use super::*;

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
}
