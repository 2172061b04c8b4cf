//! A private throw-away server from a mysqld or mariadbd program.
//!
//! ```text
//! program ─▶ ask it for its version and directories ─▶ initialise ─▶ serve ─▶ who answers? ─▶ Sandbox
//! ```
//!
//! Everything is in one directory that only this user reads. A keeper process removes it however loadgen ends.
//! The settings are the server's defaults, except limits of connections and statements, and the user's options.

mod copying;
mod directory;
mod keeper;

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid};
use socket2::{Domain, SockAddr, Socket, Type};

pub(crate) use self::copying::count_bytes;
use self::copying::{LEFT_BEHIND, copy};
use self::directory::Directory;
pub(crate) use self::directory::PassingDir;
use self::keeper::{Keeper, cannot};
use crate::error::{Error, Kind, Result};
use crate::mysql::{Address, Asked, ConnectOptions, Failure, ServerLink, Session, rows};
use crate::stop::{COURTESY, Stop, within};

/// Time in which a server may end well. Only files matter that the user keeps elsewhere.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// The same for a server whose data stays: it writes out its memory.
const ENDS_WELL_WITHIN: Duration = Duration::from_mins(30);

/// Time in which a server that answers no more has written its last words.
const DIES_WITHIN: Duration = Duration::from_secs(2);

const SAY_EVERY: Duration = Duration::from_secs(5);

const LOOK_EVERY: Duration = Duration::from_millis(25);

#[derive(Debug, Clone, Default)]
pub struct Spec {
    /// The server's program or a wrapper of it; None for mariadbd, else mysqld, from the PATH.
    pub program: Option<PathBuf>,
    /// The user's options, `-` and `_` alike. They win over the sandbox's; those that break its isolation are
    /// refused. Relative paths are the server's.
    pub options: Vec<(String, Option<String>)>,
    pub max_connections: u32,
    pub max_prepared_stmts: u32,
    pub data: DataDir,
    /// The version that made the data: the program must have it.
    pub version: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DataDir {
    /// In the sandbox's own directory, gone with it.
    #[default]
    Own,
    /// A new absolute path whose parent exists: initialised by the start, and kept.
    New(PathBuf),
    /// The data of an earlier start at this path; kept.
    Filled(PathBuf),
    /// A copy of this directory, which no server uses, in the sandbox's own.
    CopyOf(PathBuf),
}

impl DataDir {
    /// Returns the directory of data that stay.
    fn kept(&self) -> Option<&Path> {
        match self {
            DataDir::Own | DataDir::CopyOf(_) => None,
            DataDir::New(dir) | DataDir::Filled(dir) => Some(dir.as_path()),
        }
    }
}

/// A private server that runs. Dropping it kills the server and removes its directory.
#[derive(Debug)]
pub struct Sandbox {
    keeper: Keeper,
    pub socket: PathBuf,
    pub port: u16,
    /// The server's own process, also if the program is a wrapper.
    pub pid: u32,
    pub version: String,
    pub(crate) program_version: String,
    stops_within: Duration,
}

struct Start<'a> {
    spec: &'a Spec,
    path: PathBuf,
    options: Vec<String>,
    program: Program,
    directory: Directory,
    keeper: Keeper,
    say: &'a mut dyn FnMut(&str),
    interrupted: &'a dyn Fn() -> bool,
}

impl<'a> Start<'a> {
    fn new(
        spec: &'a Spec,
        say: &'a mut dyn FnMut(&str),
        interrupted: &'a dyn Fn() -> bool,
    ) -> Result<Start<'a>> {
        let options = spec.options.iter().map(|(name, value)| accept(name, value.as_deref()));
        let options = options.collect::<Result<_>>()?;
        let path = find_program(spec.program.as_deref())?;
        let directory = Directory::choose(spec.data.kept())?;
        let keeper = Keeper::start(directory.path.clone(), descriptors(spec.max_connections))?;
        for dir in [&directory.data, &directory.scratch] {
            fs::create_dir_all(dir).map_err(cannot(&format!("make {}", dir.display())))?;
        }
        say(&format!("sandbox: {} in {}", path.display(), directory.path.display()));
        if let Some(note) = note_place(&directory.path) {
            say(note);
        }
        let program = Program::default();
        let mut start = Start { spec, path, options, program, directory, keeper, say, interrupted };
        ask_program(&mut start)?;
        Ok(start)
    }
}

impl Start<'_> {
    fn until<T>(
        &mut self,
        what: &str,
        limit: Duration,
        mut poll: impl FnMut(&mut Self) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let began = Instant::now();
        let mut last_note = began;
        loop {
            if (self.interrupted)() {
                return Err(Error::new(Kind::Interrupted, format!("interrupted: {what}")));
            }
            let found = poll(self)?;
            if found.is_some() || began.elapsed() >= limit {
                return Ok(found);
            }
            if last_note.elapsed() >= SAY_EVERY {
                last_note = Instant::now();
                (self.say)(&format!("{what}, {} s so far", began.elapsed().as_secs()));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// No option file of this machine, every file in the directory, its own options, and the user's that it `takes`.
    fn arguments(&self, own: Vec<OsString>, takes: fn(&str) -> bool) -> Vec<OsString> {
        let directory = &self.directory;
        let mut arguments = vec![
            "--no-defaults".into(),
            path_option("--datadir=", &directory.data),
            path_option("--tmpdir=", &directory.scratch),
            // Some builds need a directory for imports that only their package makes.
            path_option("--secure-file-priv=", &directory.scratch),
            path_option("--pid-file=", &directory.pid_file),
        ];
        // The servers refuse to run as root without it, and only root may change the user.
        arguments.extend(nix::unistd::geteuid().is_root().then(|| "--user=root".into()));
        arguments.extend(self.program.needs.iter().cloned().chain(own));
        arguments.extend(self.options.iter().filter(|option| takes(option)).map(OsString::from));
        arguments
    }

    /// Runs the program to its end, or ends it after `limit`. Returns how it failed.
    fn run(
        &mut self,
        arguments: &[OsString],
        input: Option<&Path>,
        what: &str,
        limit: Duration,
    ) -> Result<Option<String>> {
        self.keeper.launch(&self.path, arguments, input)?;
        let ended = self.until(what, limit, |start| start.keeper.take_status())?;
        Ok(match ended {
            Some(status) => (!status.success()).then(|| status.to_string()),
            None => Some(format!("not within {} s", limit.as_secs())),
        })
    }

    fn failure(&self, how: &str) -> Error {
        let (program, log) = (self.path.display(), self.keeper.tail());
        let mut error = Error::server(format!("sandbox: {program} {how}; {}", quote_log(&log)));
        let log = log.to_lowercase();
        if ["permission denied", "errcode: 13", "errno: 13"].iter().any(|text| log.contains(text)) {
            error = error.hint(CONFINED);
        }
        if FULL_DISK.iter().any(|text| log.contains(text)) {
            error = error.hint("TMPDIR, or `data` of a profile, names a place with more room");
        }
        if !self.options.is_empty() {
            error = error.hint(format!(
                "check the --sandbox-option: '{program} --no-defaults --verbose --help' lists what \
                 it knows"
            ));
        }
        error
    }
}

const CONFINED: &str = "AppArmor or SELinux may confine this program: TMPDIR, or `data` of a profile, names \
                        another place";

/// The words of a log where the disk is full: servers also name the number alone.
const FULL_DISK: [&str; 4] = ["no space left", "out of disk space", "error 28", "errcode: 28"];

fn quote_log(log: &str) -> String {
    if log.is_empty() { "it logged nothing".to_owned() } else { format!("its log ends:{log}") }
}

pub(crate) fn program_version(spec: &Spec, interrupted: &dyn Fn() -> bool) -> Result<String> {
    Ok(Start::new(spec, &mut |_| {}, interrupted)?.program.version)
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
        let stops_within = spec.data.kept().map_or(STOPS_WITHIN, |_| ENDS_WELL_WITHIN);
        let mut start = Start::new(spec, say, interrupted)?;
        let program_version = start.program.version.clone();
        if let Some(version) = spec.version.as_ref().filter(|version| **version != program_version)
        {
            // Another version might refuse the data, or upgrade it.
            return Err(Error::usage(format!(
                "sandbox: {} is {program_version}, but the data directory is of {version}",
                start.path.display()
            ))
            .hint("give each version a directory of its own"));
        }
        let data = start.directory.data.clone();
        match &spec.data {
            DataDir::Filled(_) => {}
            DataDir::CopyOf(from) => {
                (start.say)(&format!("sandbox: copying the data of {}", from.display()));
                copy(from, &data, start.say, start.interrupted)?;
            }
            DataDir::Own | DataDir::New(_) => {
                (start.say)(&format!("sandbox: initialising {program_version}"));
                initialise(&mut start)?;
            }
        }
        // Initialising leaves a list, too. Usually there is none.
        let _ = fs::remove_file(data.join(LEFT_BEHIND[0]));
        (start.say)("sandbox: starting the server");
        let (port, pid, version) = serve(&mut start)?;
        let seconds = began.elapsed().as_secs_f64();
        (start.say)(&format!("sandbox: {version} ready on port {port} after {seconds:.1} s"));
        let Start { keeper, directory: Directory { socket, .. }, .. } = start;
        Ok(Sandbox { keeper, socket, port, pid, version, program_version, stops_within })
    }

    pub fn dir(&self) -> &Path {
        &self.keeper.dir
    }

    /// Returns what to say where the directory is not below TMPDIR: it may be on another disk.
    pub(crate) fn note_place(&self) -> Option<&'static str> {
        note_place(self.dir())
    }

    /// Returns how the server died, if it did, with the end of its log.
    pub fn death(&mut self) -> Option<String> {
        // One that dies still exists for a moment.
        let limit = if self.is_gone() { DIES_WITHIN } else { Duration::ZERO };
        let status = self.keeper.own_end(limit).filter(|status| !status.success())?;
        Some(format!("sandbox: the server died ({status}); {}", quote_log(&self.keeper.tail())))
    }

    /// Returns whether nobody listens. A server that is stopped lets others wait, this must not.
    fn is_gone(&self) -> bool {
        let connect = || {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            socket.set_nonblocking(true)?;
            socket.connect(&SockAddr::unix(&self.socket)?)
        };
        connect().is_err_and(|e: io::Error| e.kind() != io::ErrorKind::WouldBlock)
    }

    /// Stops the server and removes the directory, after ten seconds, or half an hour if its data stays.
    pub fn stop(mut self) -> Result<()> {
        self.keeper.close(self.stops_within)
    }
}

fn note_place(dir: &Path) -> Option<&'static str> {
    let wanted = fs::canonicalize(env::temp_dir()).ok()?;
    let note = "sandbox: the path of TMPDIR is too long for a socket: it is below /tmp instead";
    (!dir.starts_with(wanted)).then_some(note)
}

/// Computes a server's need as the servers do: five a connection, and thousands for tables. A server raises
/// its limit itself if the user's options ask for more.
fn descriptors(max_connections: u32) -> u64 {
    let wanted = (u64::from(max_connections) * 5 + 10_000).max(32_768);
    getrlimit(Resource::RLIMIT_NOFILE).map_or(wanted, |(_, hard)| wanted.min(hard))
}

fn path_option(name: &str, path: &Path) -> OsString {
    [name.as_ref(), path.as_os_str()].into_iter().collect()
}

const TELLS_WITHIN: Duration = Duration::from_secs(30);

/// Directories of server programs that may be missing in PATH.
const ELSEWHERE: [&str; 3] = ["/usr/sbin", "/usr/libexec", "/usr/local/sbin"];

#[derive(Debug, Default)]
struct Program {
    version: String,
    /// Options that this program needs at every run, besides the sandbox's.
    needs: Vec<OsString>,
    /// Directories of the SQL that makes its system tables.
    shares: Vec<PathBuf>,
    /// True if it makes its system tables itself (`--initialize-insecure`).
    initialises: bool,
}

pub(crate) fn find_program(named: Option<&Path>) -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> =
        env::split_paths(&path).chain(ELSEWHERE.iter().map(PathBuf::from)).collect();
    let search =
        |name: &Path| dirs.iter().map(|dir| dir.join(name)).find(|path| is_executable(path));
    let found = match named {
        None => ["mariadbd", "mysqld"].iter().find_map(|name| search(name.as_ref())),
        // As in a shell: a bare name is looked up, anything else is a path.
        Some(name) if name.components().count() == 1 && !name.has_root() => search(name),
        Some(path) => std::path::absolute(path).ok().filter(|path| is_executable(path)),
    };
    found.ok_or_else(|| match named {
        None => Error::server("--sandbox: neither mariadbd nor mysqld is on the PATH").hint(
            "install one (Debian: mariadb-server-core), or name its program: \
             --sandbox=/path/to/mysqld",
        ),
        Some(named) => Error::usage(format!("--sandbox={}: no such program", named.display()))
            .hint("name a mysqld or mariadbd that can be executed"),
    })
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Asks the program for its version and its directories; most refuse a wrong user's option here.
fn ask_program(start: &mut Start) -> Result<()> {
    let question = ["--no-defaults".into(), "--version".into()];
    let answer = run(&question, "does not tell its version", start)?;
    let version = version(&answer).ok_or_else(|| foreign_program(&start.path, &answer))?;
    let has_basedir = start.options.iter().any(|option| stem(option) == "basedir");
    let basedir = if has_basedir { None } else { basedir(&start.path) };
    let needs = basedir.iter().map(|dir| path_option("--basedir=", dir)).collect();
    start.program = Program { version, needs, ..Program::default() };
    let arguments = start.arguments(vec!["--verbose".into(), "--help".into()], |_| true);
    let help = run(&arguments, "refuses its options", start)?;
    if setting(&help, "datadir").is_none() {
        return Err(foreign_program(&start.path, &help));
    }
    // MySQL's X protocol would listen on a well-known port.
    let other_port = setting(&help, "mysqlx").is_some();
    start.program.needs.extend(other_port.then(|| "--mysqlx=OFF".into()));
    start.program.initialises = setting(&help, "initialize-insecure").is_some();
    start.program.shares = shares(&help, basedir.as_deref());
    Ok(())
}

/// Returns the program's output; an error if it fails (it `refuses` then) or takes too long.
fn run(arguments: &[OsString], refuses: &str, start: &mut Start) -> Result<String> {
    let what = format!("sandbox: asking {} about itself", start.path.display());
    let Some(how) = start.run(arguments, None, &what, TELLS_WITHIN)? else {
        return Ok(start.keeper.read_output("out"));
    };
    let (path, tail) = (start.path.display(), start.keeper.tail());
    Err(Error::usage(format!("--sandbox={path}: {refuses} ({how}){tail}"))
        .hint("it takes a mysqld or mariadbd, and --sandbox-option what that program knows"))
}

fn foreign_program(path: &Path, said: &str) -> Error {
    let line: String = said.lines().next().unwrap_or("nothing").chars().take(200).collect();
    let text = format!("--sandbox={}: no mysqld or mariadbd; it says: {line}", path.display());
    // A confined program has no output in a directory that it may not write to.
    Error::usage(text)
        .add_hints(said.is_empty().then_some(CONFINED))
        .hint("name the server's program, not a client's: --sandbox=/usr/sbin/mysqld")
}

/// Reads the version after `Ver` in `/usr/sbin/mysqld  Ver 8.0.33 for Linux on x86_64 (…)`.
fn version(said: &str) -> Option<String> {
    let (_, rest) = said.lines().find_map(|line| line.split_once(" Ver "))?;
    Some(rest.split_whitespace().next()?.to_owned())
}

/// Returns a setting's value from the table at the end of `--verbose --help`; empty if it has none.
fn setting<'a>(help: &'a str, name: &str) -> Option<&'a str> {
    let (_, table) = help.split_once("\n-----")?;
    let value = table.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.trim();
    Some(if value == "(No default value)" { "" } else { value })
}

/// Returns an unpacked archive's own directory: old servers look for their messages where they were built.
fn basedir(program: &Path) -> Option<PathBuf> {
    let base = fs::canonicalize(program).ok()?.parent()?.parent()?.to_owned();
    base.join("share/english/errmsg.sys").exists().then_some(base)
}

/// Lists directories of the SQL in packages and archives: beside the messages, or below the base directory.
fn shares(help: &str, basedir: Option<&Path>) -> Vec<PathBuf> {
    let path_setting =
        |name| setting(help, name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = basedir.map(Path::to_owned).or_else(|| path_setting("basedir"));
    let below = base.iter().flat_map(|base| {
        ["share", "share/mysql", "share/mariadb", "scripts"].iter().map(|dir| base.join(dir))
    });
    let charsets =
        path_setting("character-sets-dir").and_then(|dir| dir.parent().map(Path::to_owned));
    path_setting("lc-messages-dir").into_iter().chain(charsets).chain(below).collect()
}

/// Options by which the server would leave its directory or its loopback port, or the program would not
/// serve. The server takes any unambiguous beginning, hence the comparison by beginnings.
const REFUSED: &str = "admin-address bind-address bootstrap chroot daemonize datadir \
    defaults-extra-file defaults-file defaults-group-suffix help initialize initialize-insecure mysqlx \
    networking no-defaults pid-file port print-defaults socket user verbose version";

/// Options of directories for parts of the data: elsewhere they would outlive a sandbox, and copies would share them.
const PLACES: &str = "aria-log-dir-path innodb-data-home-dir innodb-doublewrite-dir \
    innodb-log-group-home-dir innodb-undo-directory log-bin rocksdb-datadir rocksdb-wal-dir";

const PREFIXES: [&str; 5] = ["loose-", "skip-", "disable-", "enable-", "maximum-"];

/// Beginnings of options that shape data files, or locate the server's parts: they hold for the
/// initialisation, too. Others may not suit it (`init-file`, `read-only`).
const SHAPING: &str = "innodb aria character-set-server collation-server lower-case-table-names \
    basedir lc-messages-dir character-sets-dir plugin early-plugin-load file-key-management";

/// Turns a user's option into an argument; refuses what breaks the isolation.
fn accept(raw: &str, value: Option<&str>) -> Result<String> {
    let name = raw.strip_prefix("--").unwrap_or(raw).replace('_', "-");
    let spelled = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if name.is_empty() || name.starts_with('-') || !name.chars().all(spelled) {
        return Err(Error::usage(format!("--sandbox-option '{raw}' names no server option"))
            .hint("write --sandbox-option performance_schema=ON"));
    }
    let argument = format!("--{name}{}", value.map_or(String::new(), |value| format!("={value}")));
    let is_one_of = |names: &str| names.split(' ').any(|name| name.starts_with(stem(&argument)));
    let why = if is_one_of(REFUSED) {
        "directory, socket, port, account and option files are its own"
    // `log` is the general log of MySQL 5.5, and no beginning of `log-bin`.
    } else if value.is_some_and(leads_away) && is_one_of(PLACES) && stem(&argument) != "log" {
        "all of its data is in its directory; a relative path is below that"
    } else {
        return Ok(argument);
    };
    Err(Error::usage(format!("--sandbox-option '{raw}' is not for a sandbox: {why}")).hint(
        "to measure a server with settings of that kind, start it yourself and name it with \
         --host or --socket",
    ))
}

/// Returns whether a path may lead out of the directory that it is relative to.
fn leads_away(path: &str) -> bool {
    let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    !Path::new(path).components().all(is_plain)
}

fn is_shaping(argument: &str) -> bool {
    SHAPING.split(' ').any(|start| stem(argument).starts_with(start))
}

fn stem(argument: &str) -> &str {
    let name = argument.trim_start_matches("--");
    let mut rest = name.split_once('=').map_or(name, |(name, _)| name);
    while let Some(shorter) = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
        rest = shorter;
    }
    rest
}

const INITIALISED_WITHIN: Duration = Duration::from_mins(2);

const ANSWERS_WITHIN: Duration = Duration::from_mins(1);

/// Returns the time in which a server must answer. It may have to recover data that is there.
fn answers_within(data: &DataDir) -> Duration {
    match data {
        DataDir::Own | DataDir::New(_) => ANSWERS_WITHIN,
        DataDir::Filled(_) | DataDir::CopyOf(_) => ENDS_WELL_WITHIN,
    }
}

/// Time limit of one question; it is asked again.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

const PORTS: usize = 5;

/// The server's log line for a port in use, in all versions.
const PORT_WAS_TAKEN: &str = "Bind on TCP/IP port";

/// The default of every server.
const DEFAULT_CONNECTIONS: u32 = 151;
const DEFAULT_STATEMENTS: u32 = 16_382;

const COLD_POOL: [&str; 2] = [
    "--loose-innodb-buffer-pool-load-at-startup=OFF",
    "--loose-innodb-buffer-pool-dump-at-shutdown=OFF",
];

/// Makes the system tables; root has no password. Older servers need the SQL that they ship.
fn initialise(start: &mut Start) -> Result<()> {
    let sql = start.directory.path.join("system.sql");
    let (input, how) = if start.program.initialises {
        (None, "--initialize-insecure")
    } else {
        fs::write(&sql, system_tables(&start.path, &start.program.shares)?)
            .map_err(cannot(&format!("write {}", sql.display())))?;
        (Some(&*sql), "--bootstrap")
    };
    let arguments = start.arguments(vec![how.into()], is_shaping);
    let failed = start.run(&arguments, input, "sandbox: initialising", INITIALISED_WITHIN)?;
    let Some(how) = failed else { return Ok(()) };
    Err(start.failure(&format!("could not initialise a data directory ({how})")))
}

/// Joins the SQL that makes the system tables, one statement a line as the old servers want it.
fn system_tables(path: &Path, shares: &[PathBuf]) -> Result<String> {
    let found = shares.iter().find_map(|share| Some((share, part(share, "system_tables")?)));
    let (share, tables) = found.ok_or_else(|| {
        let looked = shares.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>();
        Error::server(format!(
            "sandbox: {} ships no mysql_system_tables.sql; looked in {}",
            path.display(),
            looked.join(", ")
        ))
        .hint("--sandbox-option basedir=DIR names the directory above the server's share")
    })?;
    let mut sql = String::from(
        // MariaDB's own switches: root logs in by the socket with its name only, and there is no anonymous
        // account, which would take other accounts' logins.
        "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\nSET @skip_auth_anonymous=1;\n",
    );
    let others = ["performance_tables", "system_tables_data"].iter().filter_map(|n| part(share, n));
    for file in std::iter::once(tables).chain(others) {
        let text = fs::read_to_string(&file);
        sql += &text.map_err(cannot(&format!("read {}", file.display())))?;
        sql.push('\n');
    }
    // MySQL has no such switch. In servers with global_priv, user is a view.
    if !sql.contains("global_priv") {
        sql.push_str("DELETE FROM user WHERE User='';\n");
    }
    Ok(sql)
}

fn part(share: &Path, name: &str) -> Option<PathBuf> {
    let paths = ["mariadb", "mysql"].map(|prefix| share.join(format!("{prefix}_{name}.sql")));
    paths.into_iter().find(|path| path.is_file())
}

/// Starts the server on a free port; tries others if one is taken. Returns port, process, `@@version`.
fn serve(start: &mut Start) -> Result<(u16, u32, String)> {
    let mut tried = 0;
    loop {
        let port = free_port()?;
        let arguments = arguments(start, port);
        start.keeper.launch(&start.path, &arguments, None)?;
        let how = match answer(start, port)? {
            Ok(version) => return Ok((port, own_pid(start)?, version)),
            Err(how) => how,
        };
        tried += 1;
        if tried == PORTS || !start.keeper.read_output("log").contains(PORT_WAS_TAKEN) {
            return Err(start.failure(&how));
        }
    }
}

/// Asks the system for a free port. Nothing reserves it for the server, hence the attempts.
fn free_port() -> Result<u16> {
    let address =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    Ok(address.map_err(cannot("get a free port on 127.0.0.1"))?.port())
}

fn arguments(start: &Start, port: u16) -> Vec<OsString> {
    let connections = start.spec.max_connections.max(DEFAULT_CONNECTIONS);
    let statements = start.spec.max_prepared_stmts.max(DEFAULT_STATEMENTS);
    let own = vec![
        path_option("--socket=", &start.directory.socket),
        format!("--port={port}").into(),
        "--bind-address=127.0.0.1".into(),
        // A slow resolver must not delay connections.
        "--skip-name-resolve".into(),
        "--local-infile=ON".into(),
        format!("--max-connections={connections}").into(),
        format!("--loose-max-prepared-stmt-count={statements}").into(),
    ];
    // Pages of an earlier run would be a warmer start than one without the file.
    let own = own.into_iter().chain(COLD_POOL.iter().map(OsString::from)).collect();
    start.arguments(own, |_| true)
}

/// Returns the version, or how the server ended: the port may be taken. One that runs and does not serve is an error.
fn answer(start: &mut Start, port: u16) -> Result<Result<String, String>> {
    // First by the socket, which only this user reaches, to create the account.
    let socket = ConnectOptions {
        connect_timeout: ANSWER_WITHIN,
        ..ConnectOptions::private(&start.directory.socket).with_database("")
    };
    let address = Address::Tcp { host: "127.0.0.1".to_owned(), port };
    let tcp = ConnectOptions { address, ..socket.clone() };
    let mut last = String::from("no socket yet");
    let limit = answers_within(&start.spec.data);
    let answered = start.until("sandbox: starting the server", limit, |start| {
        if let Some(status) = start.keeper.take_status()? {
            return Ok(Some(Err(format!("ended while it started ({status})"))));
        }
        if !start.directory.socket.exists() {
            return Ok(None);
        }
        match ask(&socket, &tcp)? {
            Ok(identity) => check(identity, start, port).map(|version| Some(Ok(version))),
            Err(Failure::Lost(loss)) => {
                last = loss.why;
                Ok(None)
            }
            Err(refused) => Err(start.failure(&format!("refuses its own root account: {refused}"))),
        }
    })?;
    let late = || format!("does not answer within {} s ({last})", limit.as_secs());
    answered.ok_or_else(|| start.failure(&late()))
}

/// A server's identity: data directory, pid file, port, version.
type Identity = [String; 4];

/// Creates account and database by the socket, then asks by the port.
fn ask(socket: &ConnectOptions, tcp: &ConnectOptions) -> Result<Asked<Identity>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(cannot("make a runtime"))?;
    let by = |target: &ConnectOptions| ServerLink::to(target.clone(), &Stop::default());
    let (by_socket, by_tcp) = (by(socket)?, by(tcp)?);
    let asking = async {
        let mut session = Session::open_again(&by_socket, None).await?;
        create_account(&mut session).await?;
        session.close(COURTESY).await;
        let mut session = Session::open_again(&by_tcp, None).await?;
        let sql = "SELECT @@datadir, @@pid_file, @@port, @@version";
        let row = rows::<4>(&mut session, sql).await?.pop();
        session.close(COURTESY).await;
        let row = row.ok_or_else(|| Failure::lost("an answer without a row"))?;
        Ok(row.map(Option::unwrap_or_default))
    };
    // The connection ends with the future: nobody reads a late answer.
    let late = || Err(Failure::lost(format!("no answer within {ANSWER_WITHIN:?}")));
    Ok(runtime.block_on(within(ANSWER_WITHIN, asking)).unwrap_or_else(late))
}

/// Makes the account for the loopback port, and the database. May repeat what a late answer hid.
async fn create_account(session: &mut Session) -> Asked<()> {
    const ACCOUNT: &str = "'root'@'127.0.0.1'";
    const CANNOT_USER: u16 = 1396;
    match session.execute(&format!("CREATE USER {ACCOUNT}")).await {
        // It exists: the server made it, or an attempt that the server was still at a moment ago.
        Err(Failure::Server { code: CANNOT_USER, .. }) => {}
        created => drop(created?),
    }
    let grant = format!("GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT} WITH GRANT OPTION");
    session.execute(&grant).await?;
    session.execute("CREATE DATABASE IF NOT EXISTS sbtest").await.map(drop)
}

/// Checks that it is the server of this directory and port; returns its version.
fn check(found: Identity, start: &Start, port: u16) -> Result<String> {
    let [data, pid_file, its_port, version] = found;
    let same = |theirs: &str, ours: &Path| {
        let real = [Path::new(theirs), ours].map(fs::canonicalize);
        matches!(real, [Ok(theirs), Ok(ours)] if theirs == ours)
    };
    let ours = same(&data, &start.directory.data) && same(&pid_file, &start.directory.pid_file);
    if ours && its_port == port.to_string() {
        return Ok(version);
    }
    Err(Error::server(format!(
        "sandbox: another server than the one started answers: data directory {data}, pid file \
         {pid_file}, port {its_port}"
    )))
}

/// Reads the server's process id, which must be in the group that the keeper ends.
fn own_pid(start: &Start) -> Result<u32> {
    let text = fs::read_to_string(&start.directory.pid_file);
    let number = text.ok().and_then(|text| text.trim().parse::<u32>().ok());
    if let Some(number) = number {
        let pid = Pid::from_raw(number.cast_signed());
        if getpgid(Some(pid)).ok() == start.keeper.group() {
            return Ok(number);
        }
        // A wrapper may start a session, or a container with other process ids.
        let cmdline = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let data = path_option("--datadir=", &start.directory.data);
        if cmdline.split(|byte| *byte == 0).any(|argument| argument == data.as_encoded_bytes()) {
            let _ = kill(pid, Signal::SIGKILL);
        }
    }
    Err(Error::server("sandbox: its wrapper takes the server to another session or container")
        .hint("end the wrapper with: exec mysqld … \"$@\""))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::canned::{Answer, Canned, Listen, Script};

    impl<'a> Start<'a> {
        /// One of nothing that runs, but for its keeper.
        fn test(say: &'a mut dyn FnMut(&str), interrupted: &'a dyn Fn() -> bool) -> Start<'a> {
            static SPEC: LazyLock<Spec> = LazyLock::new(Spec::default);
            let directory = Directory::choose(None).unwrap();
            let keeper = Keeper::start(directory.path.clone(), 64).unwrap();
            let (path, options, program) = ("/x/mysqld".into(), Vec::new(), Program::default());
            Start { spec: &SPEC, path, options, program, directory, keeper, say, interrupted }
        }
    }

    #[test]
    fn a_failure_shows_the_log_and_suggests_what_it_says() {
        let (mut say, interrupted) = (|_: &str| {}, || false);
        let mut start = Start::test(&mut say, &interrupted);
        let silent = start.failure("ended");
        assert!(silent.to_string().ends_with("it logged nothing"));
        assert!(silent.hints().is_empty());
        for line in ["No space left on device", "preallocating 9 bytes failed with error 28"] {
            fs::write(start.keeper.dir.join("job.log"), line).unwrap();
            let full = start.failure("ended");
            assert!(full.to_string().ends_with(&format!("its log ends:\n  {line}")));
            assert!(full.hints()[0].contains("TMPDIR"));
        }
        start.options.push(accept("sql_mode", None).unwrap());
        assert!(start.failure("ended").hints()[1].contains("--help"));
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
    fn no_option_file_is_the_first_option() {
        let (mut say, interrupted) = (|_: &str| {}, || false);
        let start = Start::test(&mut say, &interrupted);
        assert_eq!(start.arguments(Vec::new(), |_| true)[0], "--no-defaults");
    }

    const HELP: &str = "\
mysqld  Ver 5.6.24 for linux on x86_64
  -h, --datadir=name  Path to the database root directory
datadir  of the prose is none

Variables (--variable-name=value)
and boolean options {FALSE|TRUE}  Value (after reading options)
--------------------------------- ----------------------------
basedir                           /opt/my sql/
character-sets-dir                /opt/my sql/share/charsets/
datadir                           /data/
initialize-insecure               FALSE
lc-messages                       en_US
lc-messages-dir                   (No default value)
";

    #[test]
    fn directories_are_read_from_the_help() {
        assert_eq!(setting(HELP, "datadir"), Some("/data/"));
        assert_eq!(setting(HELP, "lc-messages-dir"), Some(""));
        assert_eq!(setting(HELP, "initialize"), None);
        let found = shares(HELP, None);
        assert_eq!(found.first().unwrap(), Path::new("/opt/my sql/share"));
        assert!(found.contains(&PathBuf::from("/opt/my sql/share/mysql")));
        let known = shares(HELP, Some(Path::new("/real")));
        assert!(known.contains(&PathBuf::from("/real/share")));
    }

    #[test]
    fn the_version_is_what_follows_ver() {
        let said = "/usr/sbin/mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)\n";
        assert_eq!(version(said).as_deref(), Some("10.11.19-MariaDB-0+deb12u1"));
        assert_eq!(version("bash: --no-defaults: invalid option\n"), None);
    }

    #[test]
    fn a_program_is_found_by_path_and_by_name() {
        assert_eq!(find_program(Some(Path::new("/bin/sh"))).unwrap(), Path::new("/bin/sh"));
        assert!(find_program(Some(Path::new("sh"))).unwrap().ends_with("sh"));
        for missing in ["/nonexistent/mysqld", "no-such-server", "/tmp", ""] {
            assert_eq!(
                find_program(Some(Path::new(missing))).unwrap_err().kind(),
                Kind::Usage,
                "{missing}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_answer_of_a_program_is_borne(name in "[a-z0-9.-]{1,20}", text in "\\PC{0,60}", value in "[a-z/]{0,20}") {
            prop_assert_eq!(version(&format!("{text}\n/x  Ver {name} for")), version(&text).or(Some(name)));
            let help = format!("{text}\n-----\nbasedir {value}\n{text}");
            let _ = (setting(&help, "basedir"), shares(&help, None), version(&text));
        }
    }

    #[test]
    fn underscores_dashes_and_leading_dashes_are_alike() {
        for name in ["performance_schema", "performance-schema", "--performance_schema"] {
            assert_eq!(accept(name, Some("ON")).unwrap(), "--performance-schema=ON");
        }
        assert_eq!(accept("skip_name_resolve", None).unwrap(), "--skip-name-resolve");
        assert_eq!(accept("sql-mode", Some("")).unwrap(), "--sql-mode=");
    }

    #[test]
    fn what_breaks_the_isolation_is_a_usage_error() {
        for name in [
            "datadir",
            "data",
            "socket",
            "sock",
            "port",
            "pid_file",
            "bind-address",
            "bind",
            "loose-datadir",
            "loose_skip_networking",
            "skip-networking",
            "user",
            "defaults-file",
            "daemonize",
            "initialize-insecure",
            "mysqlx",
            "",
            "-P",
            "a b",
            "x\n",
        ] {
            let error = accept(name, Some("x")).unwrap_err();
            assert_eq!(error.kind(), Kind::Usage, "{name}");
        }
    }

    #[test]
    fn directory_of_a_part_of_the_data_is_refused_when_its_path_is_absolute() {
        for name in [
            "innodb_log_group_home_dir",
            "loose-innodb-data-home",
            "innodb_undo_directory",
            "innodb_doublewrite_dir",
            "aria_log_dir_path",
            "log_bin",
            "rocksdb_datadir",
            "rocksdb_wal_dir",
        ] {
            let error = accept(name, Some("/nvme/x")).unwrap_err();
            assert!(error.to_string().contains("relative path"), "{name}: {error}");
            assert!(accept(name, Some("x/../../y")).is_err(), "{name}");
            assert!(accept(name, Some("x")).is_ok(), "{name}");
            assert!(accept(name, None).is_ok(), "{name}");
        }
        for name in ["log_error", "log"] {
            assert!(accept(name, Some("/nvme/x")).is_ok(), "{name} is no data");
        }
    }

    #[test]
    fn start_may_take_long_when_there_is_data_to_recover() {
        let at = || PathBuf::from("/x");
        for new in [DataDir::Own, DataDir::New(at())] {
            assert_eq!(answers_within(&new), ANSWERS_WITHIN, "{new:?}");
        }
        for filled in [DataDir::Filled(at()), DataDir::CopyOf(at())] {
            assert_eq!(answers_within(&filled), ENDS_WELL_WITHIN, "{filled:?}");
        }
    }

    #[test]
    fn names_that_only_begin_alike_are_accepted() {
        for name in [
            "port-open-timeout",
            "basedir",
            "user-stat",
            "socket-instrument",
            "init-file",
            "userstat",
        ] {
            assert!(accept(name, Some("1")).is_ok(), "{name}");
        }
    }

    #[test]
    fn only_options_that_shape_the_data_hold_at_initialisation() {
        for name in
            ["innodb_page_size", "loose-innodb-log-file-size", "lower_case_table_names", "basedir"]
        {
            assert!(is_shaping(&accept(name, Some("1")).unwrap()), "{name}");
        }
        for name in ["log-bin", "init_file", "performance_schema", "sql_mode"] {
            assert!(!is_shaping(&accept(name, Some("1")).unwrap()), "{name}");
        }
    }

    #[test]
    fn ports_are_free_and_differ_while_held() {
        // Another test may take it first.
        let held = loop {
            let port = free_port().unwrap();
            if let Ok(held) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                break held;
            }
        };
        assert_ne!(free_port().unwrap(), held.local_addr().unwrap().port());
    }

    fn shipped(share: &Path) -> [PathBuf; 2] {
        ["/nonexistent".into(), share.to_owned()]
    }

    #[test]
    fn the_parts_that_are_shipped_follow_each_other() {
        let share = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(share.path().join(name), text).unwrap();
        write("mariadb_system_tables.sql", "CREATE TABLE global_priv (x int);");
        write("mysql_system_tables_data.sql", "INSERT INTO global_priv VALUES (1);");
        let sql = system_tables(Path::new("/opt/bin/mysqld"), &shipped(share.path())).unwrap();
        assert!(sql.ends_with("(x int);\nINSERT INTO global_priv VALUES (1);\n"), "{sql}");
        write("mariadb_system_tables.sql", "CREATE TABLE user (x int);");
        write("mysql_system_tables_data.sql", "");
        let sql = system_tables(Path::new("/opt/bin/mysqld"), &shipped(share.path())).unwrap();
        assert!(sql.ends_with("DELETE FROM user WHERE User='';\n"), "{sql}");
    }

    #[test]
    fn a_server_without_its_sql_is_an_error_that_says_where_it_looked() {
        let share = tempfile::tempdir().unwrap();
        let error =
            system_tables(Path::new("/opt/bin/mysqld"), &shipped(share.path())).unwrap_err();
        assert!(error.to_string().contains("/nonexistent"), "{error}");
        assert!(error.hints()[0].contains("basedir"));
    }

    #[test]
    fn another_servers_answer_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let (mut say, interrupted) = (|_: &str| {}, || false);
        let directory = Directory::new(dir.path().to_owned(), None);
        fs::create_dir(&directory.data).unwrap();
        fs::write(&directory.pid_file, "1\n").unwrap();
        let ours = || -> Identity {
            let text = |path: &Path| path.display().to_string();
            [text(&directory.data), text(&directory.pid_file), "3307".into(), "8".into()]
        };
        let identity = ours();
        let other = ["/var/lib/mysql".into(), identity[1].clone(), "3307".into(), "8".into()];
        let start = Start {
            directory: Directory::new(dir.path().to_owned(), None),
            ..Start::test(&mut say, &interrupted)
        };
        assert_eq!(check(identity, &start, 3307).unwrap(), "8");
        assert!(check(ours(), &start, 3306).is_err());
        let said = check(other, &start, 3307).unwrap_err().to_string();
        assert!(said.contains("/var/lib/mysql"), "{said}");
    }

    #[test]
    fn account_that_an_attempt_with_a_late_answer_made_is_no_error() {
        let text = "Operation CREATE USER failed for 'root'@'127.0.0.1'";
        let answers = vec![
            Answer::error("CREATE USER", 1396, "HY000", text),
            Answer::rows("@@datadir", &["a", "b", "c", "d"], &[&[Some("1"); 4]]),
        ];
        let server = Canned::start(Script { answers, ..Script::default() }, Listen::Port(0));
        let server = server.unwrap();
        let target = ConnectOptions::canned(server.port());
        assert!(matches!(ask(&target, &target), Ok(Ok(_))));
    }

    #[test]
    fn program_without_output_may_be_confined() {
        let hints = |said: &str| foreign_program(Path::new("/x/mysqld"), said).hints().to_vec();
        assert!(hints("")[0].contains("AppArmor"));
        assert_eq!(hints("mysql  Ver 15.1 Distrib 10.11").len(), 1);
    }

    #[test]
    fn somebody_who_hangs_up_is_no_server_yet() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stranger = std::thread::spawn(move || listener.accept().map(drop));
        let target = ConnectOptions::canned(port);
        assert!(matches!(ask(&target, &target), Ok(Err(Failure::Lost(_)))));
        stranger.join().unwrap().unwrap();
        let nobody = ConnectOptions::private(Path::new("/nonexistent/s"));
        assert!(matches!(ask(&nobody, &nobody), Ok(Err(Failure::Lost(_)))));
    }
}
