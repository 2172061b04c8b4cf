//! The server's program: found, and asked what it is and where its parts are.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Start, with};
use crate::error::{Error, Result};

const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Where a server's program lies when it is not on the PATH.
const ELSEWHERE: [&str; 3] = ["/usr/sbin", "/usr/libexec", "/usr/local/sbin"];

/// What a program tells of itself.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// What it answers to `--version`, without its own name.
    pub(super) version: String,
    /// The options that this program needs at every run, besides the sandbox's.
    pub(super) needs: Vec<OsString>,
    /// Where the SQL that makes its system tables may be.
    pub(super) shares: Vec<PathBuf>,
    /// Whether it makes its system tables itself (`--initialize-insecure`).
    pub(super) initialises: bool,
}

/// The named program, or the first server of this machine.
pub(crate) fn find(named: Option<&Path>) -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> =
        env::split_paths(&path).chain(ELSEWHERE.iter().map(PathBuf::from)).collect();
    let search = |name: &Path| places.iter().map(|dir| dir.join(name)).find(|path| runs(path));
    let Some(named) = named else {
        return search(Path::new("mariadbd")).or_else(|| search(Path::new("mysqld"))).ok_or_else(|| {
            Error::server("--sandbox: neither mariadbd nor mysqld is on the PATH")
                .hint("install one (Debian: mariadb-server-core), or name its program: --sandbox=/path/to/mysqld")
        });
    };
    // As a shell does: a bare name is looked up, anything else is a path.
    let found = if named.components().count() == 1 && !named.has_root() {
        search(named)
    } else {
        std::path::absolute(named).ok().filter(|path| runs(path))
    };
    found.ok_or_else(|| {
        Error::usage(format!("--sandbox={}: no such program", named.display()))
            .hint("name a mysqld or mariadbd that can be executed")
    })
}

fn runs(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Asks the program for its version and its directories; the user's options go along, so that
/// most servers refuse a wrong one here, before they are initialised.
pub(super) fn ask(start: &mut Start) -> Result<()> {
    let question = ["--no-defaults".into(), "--version".into()];
    let said = run(&question, "does not tell its version", start)?;
    let version = version(&said).ok_or_else(|| stranger(&start.path, &said))?;
    let told = start.options.iter().any(|option| stem(option) == "basedir");
    let basedir = if told { None } else { basedir(&start.path) };
    let needs = basedir.iter().map(|dir| with("--basedir=", dir)).collect();
    start.program = Program { version, needs, ..Program::default() };
    let arguments = start.arguments(vec!["--verbose".into(), "--help".into()], |_| true);
    let help = run(&arguments, "refuses its options", start)?;
    if setting(&help, "datadir").is_none() {
        return Err(stranger(&start.path, &help));
    }
    // A second protocol on a well-known port, open to the network.
    let other_port = setting(&help, "mysqlx").is_some();
    start.program.needs.extend(other_port.then(|| "--mysqlx=OFF".into()));
    start.program.initialises = setting(&help, "initialize-insecure").is_some();
    start.program.shares = shares(&help, basedir.as_deref());
    Ok(())
}

/// What the program prints; an error if it fails (then it `refuses`), or does not end in time.
fn run(arguments: &[OsString], refuses: &str, start: &mut Start) -> Result<String> {
    let what = format!("sandbox: asking {} about itself", start.path.display());
    let Some(how) = start.run(arguments, None, &what, ANSWER_WITHIN)? else {
        return Ok(start.keeper.written("out"));
    };
    let (path, tail) = (start.path.display(), start.keeper.tail());
    Err(Error::usage(format!("--sandbox={path}: {refuses} ({how}){tail}"))
        .hint("it takes a mysqld or mariadbd, and --sandbox-option what that program knows"))
}

fn stranger(path: &Path, said: &str) -> Error {
    let line: String = said.lines().next().unwrap_or("nothing").chars().take(200).collect();
    Error::usage(format!("--sandbox={}: no mysqld or mariadbd; it says: {line}", path.display()))
        .hint("name the server's program, not a client's: --sandbox=/usr/sbin/mysqld")
}

/// What follows `Ver` in an answer like `/usr/sbin/mysqld  Ver 8.0.33 for Linux on x86_64 (…)`.
fn version(said: &str) -> Option<String> {
    let (_, rest) = said.lines().find_map(|line| line.split_once(" Ver "))?;
    Some(rest.split_whitespace().next()?.to_owned())
}

/// A setting's value in the table that ends `--verbose --help`; empty if it has none.
fn setting<'a>(help: &'a str, name: &str) -> Option<&'a str> {
    let (_, table) = help.split_once("\n-----")?;
    let value = table.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.trim();
    Some(if value == "(No default value)" { "" } else { value })
}

/// An unpacked archive's own directory: old servers would look for their messages where they
/// were built to be installed.
fn basedir(program: &Path) -> Option<PathBuf> {
    let base = fs::canonicalize(program).ok()?.parent()?.parent()?.to_owned();
    base.join("share/english/errmsg.sys").exists().then_some(base)
}

/// Where packages and archives put the SQL: beside the messages, or below the base directory.
fn shares(help: &str, basedir: Option<&Path>) -> Vec<PathBuf> {
    let told = |name| setting(help, name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = basedir.map(Path::to_owned).or_else(|| told("basedir"));
    let below = base.iter().flat_map(|base| {
        ["share", "share/mysql", "share/mariadb", "scripts"].iter().map(|dir| base.join(dir))
    });
    let charsets = told("character-sets-dir").and_then(|dir| dir.parent().map(Path::to_owned));
    told("lc-messages-dir").into_iter().chain(charsets).chain(below).collect()
}

/// Options that would let the server leave its directory or its loopback port, or make the
/// program do something else than serve. The server takes any unambiguous beginning of an
/// option's name too, hence the comparison by beginnings.
const REFUSED: [&str; 22] = [
    "admin-address",
    "bind-address",
    "bootstrap",
    "chroot",
    "daemonize",
    "datadir",
    "defaults-extra-file",
    "defaults-file",
    "defaults-group-suffix",
    "help",
    "initialize",
    "initialize-insecure",
    "mysqlx",
    "networking",
    "no-defaults",
    "pid-file",
    "port",
    "print-defaults",
    "socket",
    "user",
    "verbose",
    "version",
];

/// Prefixes that the server takes before any option's name.
const PREFIXES: [&str; 5] = ["loose-", "skip-", "disable-", "enable-", "maximum-"];

/// Beginnings of the options that decide how data files look, or where the server finds its
/// own parts: they hold while the data directory is initialised as well. The others do not,
/// because much that is fine for a server is not for its bootstrap (`init-file`, `read-only`).
const SHAPING: [&str; 11] = [
    "innodb",
    "aria",
    "character-set-server",
    "collation-server",
    "lower-case-table-names",
    "basedir",
    "lc-messages-dir",
    "character-sets-dir",
    "plugin",
    "early-plugin-load",
    "file-key-management",
];

/// Accepts the user's options in their order, as arguments with dashes; or names the one that cannot be.
pub(super) fn accept(raw: &[(String, Option<String>)]) -> Result<Vec<String>> {
    raw.iter().map(|(name, value)| accept_one(name, value.as_deref())).collect()
}

fn accept_one(raw: &str, value: Option<&str>) -> Result<String> {
    let name = raw.strip_prefix("--").unwrap_or(raw).replace('_', "-");
    let spelled = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if name.is_empty() || name.starts_with('-') || !name.chars().all(spelled) {
        return Err(Error::usage(format!("--sandbox-option '{raw}' names no server option"))
            .hint("write --sandbox-option performance_schema=ON"));
    }
    let argument = format!("--{name}{}", value.map_or(String::new(), |value| format!("={value}")));
    if REFUSED.iter().any(|refused| refused.starts_with(stem(&argument))) {
        return Err(Error::usage(format!(
            "--sandbox-option '{raw}' is not for a sandbox: directory, socket, port, account and \
             option files are its own"
        ))
        .hint(
            "to measure a server with settings of that kind, start it yourself and name it with \
             --host or --socket",
        ));
    }
    Ok(argument)
}

pub(super) fn shapes_data(argument: &str) -> bool {
    SHAPING.iter().any(|start| stem(argument).starts_with(start))
}

/// The option's name without the prefixes that every one may carry.
pub(super) fn stem(argument: &str) -> &str {
    let name = argument.trim_start_matches("--");
    let mut rest = name.split_once('=').map_or(name, |(name, _)| name);
    while let Some(shorter) = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
        rest = shorter;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use proptest::prelude::*;

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
        let shares = shares(HELP, None);
        assert_eq!(shares.first().unwrap(), Path::new("/opt/my sql/share"));
        assert!(shares.contains(&PathBuf::from("/opt/my sql/share/mysql")));
        let known = super::shares(HELP, Some(Path::new("/real")));
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
        assert_eq!(find(Some(Path::new("/bin/sh"))).unwrap(), Path::new("/bin/sh"));
        assert!(find(Some(Path::new("sh"))).unwrap().ends_with("sh"));
        for missing in ["/nonexistent/mysqld", "no-such-server", "/tmp", ""] {
            assert_eq!(
                find(Some(Path::new(missing))).unwrap_err().kind(),
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

    fn one(name: &str, value: Option<&str>) -> Result<String> {
        accept_one(name, value)
    }

    #[test]
    fn underscores_dashes_and_leading_dashes_are_alike() {
        for name in ["performance_schema", "performance-schema", "--performance_schema"] {
            assert_eq!(one(name, Some("ON")).unwrap(), "--performance-schema=ON");
        }
        assert_eq!(one("skip_name_resolve", None).unwrap(), "--skip-name-resolve");
        assert_eq!(one("sql-mode", Some("")).unwrap(), "--sql-mode=");
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
            let error = one(name, Some("x")).unwrap_err();
            assert_eq!(error.kind(), Kind::Usage, "{name}");
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
            assert!(one(name, Some("1")).is_ok(), "{name}");
        }
    }

    #[test]
    fn only_options_that_shape_the_data_hold_at_initialisation() {
        for name in
            ["innodb_page_size", "loose-innodb-log-file-size", "lower_case_table_names", "basedir"]
        {
            assert!(shapes_data(&one(name, Some("1")).unwrap()), "{name}");
        }
        for name in ["log-bin", "init_file", "performance_schema", "sql_mode"] {
            assert!(!shapes_data(&one(name, Some("1")).unwrap()), "{name}");
        }
    }
}
