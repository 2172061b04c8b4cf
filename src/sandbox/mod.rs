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

mod keeper;
mod program;
mod serve;

pub(crate) use program::find as find_program;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit};

use self::keeper::Keeper;
use self::program::Program;
use crate::error::{Error, Kind, Result};

/// How long a server may take to end well before it is killed. Its data is thrown away, so
/// there is nothing to wait for but files that it keeps elsewhere at the user's wish.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// And a server whose data stays: it writes out what it holds in memory.
const ENDS_WELL_WITHIN: Duration = Duration::from_mins(30);

/// How often the user hears that something still goes on.
const SAY_EVERY: Duration = Duration::from_secs(5);

const LOOK_EVERY: Duration = Duration::from_millis(25);

/// The longest path of a Unix socket in bytes, without its terminating zero.
const SOCKET_PATH_MAX: usize = 107;

/// What a start must not inherit: the list of pages that were cached (servers from MySQL 5.7 and
/// MariaDB 10.2 on would read them again, others would not), and the server's identity.
const LEFT_BEHIND: [&str; 2] = ["ib_buffer_pool", "auto.cnf"];

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
    /// The user's, as arguments.
    options: Vec<String>,
    program: Program,
    directory: Directory,
    keeper: Keeper,
    say: &'a mut dyn FnMut(&str),
    interrupted: &'a dyn Fn() -> bool,
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
            let found = look(self)?;
            if found.is_some() || began.elapsed() >= limit {
                return Ok(found);
            }
            if said.elapsed() >= SAY_EVERY {
                said = Instant::now();
                (self.say)(&format!("{what}, {} s so far", began.elapsed().as_secs()));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The arguments of a run: those of every run, its own, and those of the user's that it `takes`.
    fn arguments(&self, own: Vec<OsString>, takes: fn(&str) -> bool) -> Vec<OsString> {
        let users = self.options.iter().filter(|option| takes(option)).map(OsString::from);
        let needs = self.program.needs.iter().cloned();
        self.directory.arguments().into_iter().chain(needs).chain(own).chain(users).collect()
    }

    /// Runs the program to its end, or gives it up after `limit`; tells how it failed, if so.
    fn run(
        &mut self,
        arguments: &[OsString],
        input: Option<&Path>,
        what: &str,
        limit: Duration,
    ) -> Result<Option<String>> {
        self.keeper.launch(&self.path, arguments, input)?;
        let ended = self.until(what, limit, |start| start.keeper.ended())?;
        Ok(match ended {
            Some(status) => (!status.success()).then(|| status.to_string()),
            None => Some(format!("not within {} s", limit.as_secs())),
        })
    }

    /// Makes the error of a server that does not come up, with the end of its log.
    fn failure(&self, how: &str) -> Error {
        failure(&self.path, how, &self.keeper.tail(), &self.options)
    }
}

/// Makes the error of what the machine does not let a sandbox do.
fn cannot<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> Error {
    let what = format!("sandbox: cannot {what}");
    move |why| Error::server(format!("{what}: {why}"))
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
        let options = program::accept(&spec.options)?;
        let path = program::find(spec.program.as_deref())?;
        let (elsewhere, stops_within) = match &spec.data {
            DataDir::Own | DataDir::CopyOf(_) => (None, STOPS_WITHIN),
            DataDir::New(dir) | DataDir::Filled(dir) => (Some(dir.as_path()), ENDS_WELL_WITHIN),
        };
        let directory = Directory::choose(elsewhere)?;
        let keeper = Keeper::start(directory.path.clone(), descriptors(spec.max_connections))?;
        directory.furnish()?;
        say(&format!("sandbox: {} in {}", path.display(), directory.path.display()));
        let program = Program::default();
        let mut start = Start { spec, path, options, program, directory, keeper, say, interrupted };
        program::ask(&mut start)?;
        let program_version = start.program.version.clone();
        if let Some(version) = spec.version.as_ref().filter(|version| **version != program_version)
        {
            // Another version might refuse the data, or change it for good.
            return Err(Error::usage(format!(
                "sandbox: {} is {program_version}, but the data directory is of {version}",
                start.path.display()
            ))
            .hint("give each version a directory of its own"));
        }
        let data = start.directory.data.clone();
        match &spec.data {
            DataDir::Filled(_) => forget(&data),
            DataDir::CopyOf(from) => {
                (start.say)(&format!("sandbox: copying the data of {}", from.display()));
                copy(from, &data, &mut start)?;
            }
            DataDir::Own | DataDir::New(_) => {
                (start.say)(&format!("sandbox: initialising {program_version}"));
                serve::initialise(&mut start)?;
                forget(&data);
            }
        }
        (start.say)("sandbox: starting the server");
        let (port, pid, version) = serve::serve(&mut start)?;
        let seconds = began.elapsed().as_secs_f64();
        (start.say)(&format!("sandbox: {version} ready on port {port} after {seconds:.1} s"));
        let Start { keeper, directory: Directory { socket, .. }, .. } = start;
        Ok(Sandbox { keeper, socket, port, pid, version, program_version, stops_within })
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

/// What a server needs: by the servers' own reckoning five a connection, and some thousands
/// for tables. It raises its limit itself if the user's options ask for more.
fn descriptors(max_connections: u32) -> u64 {
    let wanted = (u64::from(max_connections) * 5 + 10_000).max(32_768);
    getrlimit(Resource::RLIMIT_NOFILE).map_or(wanted, |(_, hard)| wanted.min(hard))
}

/// The error of a server that does not come up: what happened, the end of its log, and what
/// the log suggests.
fn failure(program: &Path, how: &str, log: &str, options: &[String]) -> Error {
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

/// A sandbox's directory, and what lies in it; the data may lie elsewhere, and stays there then.
struct Directory {
    path: PathBuf,
    data: PathBuf,
    socket: PathBuf,
    pid_file: PathBuf,
    /// The server's temporary files, and what it may import.
    scratch: PathBuf,
}

impl Directory {
    fn new(path: PathBuf, data: Option<PathBuf>) -> Directory {
        Directory {
            data: data.unwrap_or_else(|| path.join("data")),
            socket: path.join("mysqld.sock"),
            pid_file: path.join("mysqld.pid"),
            scratch: path.join("tmp"),
            path,
        }
    }

    /// Chooses one that does not exist yet, below TMPDIR.
    fn choose(data: Option<&Path>) -> Result<Directory> {
        let wanted = env::temp_dir();
        let base = fs::canonicalize(&wanted).map_err(|e| {
            Error::usage(format!("TMPDIR={}: {e}", wanted.display()))
                .hint("name a directory that exists")
        })?;
        Directory::below(&base, data)
    }

    /// Names one below another, or below /tmp if the socket's path became too long.
    fn below(base: &Path, data: Option<&Path>) -> Result<Directory> {
        let number = getrandom::u64()
            .map_err(|e| Error::failed(format!("sandbox: no random number: {e}")))?;
        let name = format!("loadgen-{number:016x}");
        let of = |base: &Path| Directory::new(base.join(&name), data.map(Path::to_owned));
        Ok(match of(base) {
            fits if fits.socket.as_os_str().len() <= SOCKET_PATH_MAX => fits,
            _ => of(Path::new("/tmp")),
        })
    }

    /// Makes those in it, once the keeper has made the directory.
    fn furnish(&self) -> Result<()> {
        for dir in [&self.data, &self.scratch] {
            fs::create_dir_all(dir).map_err(cannot(&format!("make {}", dir.display())))?;
        }
        Ok(())
    }

    /// The options of every run: no option file of this machine, every file in the directory.
    /// Some builds insist on a directory for imports that only their package makes.
    fn arguments(&self) -> Vec<OsString> {
        let mut arguments = vec![
            "--no-defaults".into(),
            with("--datadir=", &self.data),
            with("--tmpdir=", &self.scratch),
            with("--secure-file-priv=", &self.scratch),
            with("--pid-file=", &self.pid_file),
        ];
        // The servers refuse to run as root by accident, and nobody else may change the user.
        if nix::unistd::geteuid().is_root() {
            arguments.push("--user=root".into());
        }
        arguments
    }
}

/// An option with a path.
fn with(name: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(name);
    argument.push(path);
    argument
}

/// Makes a start in a directory as cold as one in a copy of it. Initialising leaves a list, too.
fn forget(data: &Path) {
    // Most often there is none.
    let _ = fs::remove_file(data.join(LEFT_BEHIND[0]));
}

/// Copies a data directory that no server uses into another one, which is there. On a file system that
/// shares blocks the kernel copies none.
fn copy(from: &Path, to: &Path, start: &mut Start<'_>) -> Result<()> {
    let failed = |path: &Path, e: io::Error| {
        cannot(&format!("copy {} to {}", path.display(), to.display()))(e)
            .hint("TMPDIR names another place for sandboxes")
    };
    for entry in fs::read_dir(from).map_err(|e| failed(from, e))? {
        if (start.interrupted)() {
            return Err(Error::new(Kind::Interrupted, "interrupted: sandbox: copying its data"));
        }
        let entry = entry.map_err(|e| failed(from, e))?;
        let (path, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type().map_err(|e| failed(&path, e))?;
        let target = to.join(&name);
        if kind.is_dir() {
            fs::create_dir(&target).map_err(|e| failed(&path, e))?;
            copy(&path, &target, start)?;
        } else if kind.is_file() && !LEFT_BEHIND.iter().any(|left| name == *left) {
            fs::copy(&path, &target).map_err(|e| failed(&path, e))?;
        }
    }
    Ok(())
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
            let keeper = Keeper::start(directory.path.clone(), 64).unwrap();
            let (path, options, program) = ("/x/mysqld".into(), Vec::new(), Program::default());
            Start { spec: &SPEC, path, options, program, directory, keeper, say, interrupted }
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
        let options = program::accept(&[("sql_mode".into(), None)]).unwrap();
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

    #[test]
    fn no_two_directories_are_alike() {
        let (one, other) = (Directory::choose(None).unwrap(), Directory::choose(None).unwrap());
        assert_ne!(one.path, other.path);
        assert!(!one.path.exists());
    }

    #[test]
    fn the_path_of_the_socket_always_fits() {
        for length in [1, 60, 70, 71, 72, 200] {
            let base = PathBuf::from(format!("/{}", "x".repeat(length)));
            let directory = Directory::below(&base, None).unwrap();
            assert_eq!(directory.path.starts_with(&base), length <= 69, "{length}");
            assert!(directory.socket.as_os_str().len() <= SOCKET_PATH_MAX, "{length}");
        }
    }

    #[test]
    fn no_option_file_is_the_first_option() {
        let directory = Directory::new("/x".into(), None);
        assert_eq!(directory.arguments().first().unwrap(), "--no-defaults");
    }

    #[test]
    fn the_whole_tree_is_copied_but_for_what_a_start_must_not_inherit() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("sbtest")).unwrap();
        for name in ["ibdata1", "sbtest/sbtest1.ibd", "ib_buffer_pool", "auto.cnf"] {
            fs::write(from.path().join(name), name).unwrap();
        }
        let stop = std::cell::Cell::new(false);
        let (mut say, interrupted) = (|_: &str| {}, || stop.get());
        let mut start = Start::test(&mut say, &interrupted);
        copy(from.path(), to.path(), &mut start).unwrap();
        let text = |name: &str| fs::read_to_string(to.path().join(name)).unwrap_or_default();
        assert_eq!(text("sbtest/sbtest1.ibd"), "sbtest/sbtest1.ibd");
        assert_eq!((text("ibdata1").as_str(), text("ib_buffer_pool").as_str()), ("ibdata1", ""));
        stop.set(true);
        let error = copy(from.path(), to.path(), &mut start).unwrap_err();
        assert_eq!(error.kind(), Kind::Interrupted);
    }
}
