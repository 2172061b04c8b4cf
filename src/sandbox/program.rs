//! The server's program: found, and asked what it is and where its parts are.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Start;
use super::directory::with;
use super::options::UserOption;
use crate::error::{Error, Result};

const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Where a server's program lies when it is not on the PATH.
const ELSEWHERE: [&str; 3] = ["/usr/sbin", "/usr/libexec", "/usr/local/sbin"];

#[derive(Debug)]
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
pub(super) fn ask(start: &mut Start) -> Result<Program> {
    let question = ["--no-defaults".into(), "--version".into()];
    let said = run(&question, "does not tell its version", start)?;
    let version = version(&said).ok_or_else(|| stranger(&start.path, &said))?;
    let told = start.options.iter().any(|option| option.is("basedir"));
    let basedir = if told { None } else { basedir(&start.path) };
    let mut needs: Vec<OsString> = basedir.iter().map(|dir| with("--basedir=", dir)).collect();
    let mut arguments = start.directory.arguments();
    arguments.extend(needs.clone());
    arguments.extend(start.options.iter().map(UserOption::argument));
    arguments.extend(["--verbose".into(), "--help".into()]);
    let help = run(&arguments, "refuses its options", start)?;
    if setting(&help, "datadir").is_none() {
        return Err(stranger(&start.path, &help));
    }
    // A second protocol on a well-known port, open to the network.
    if setting(&help, "mysqlx").is_some() {
        needs.push("--mysqlx=OFF".into());
    }
    let initialises = setting(&help, "initialize-insecure").is_some();
    Ok(Program { shares: shares(&help, basedir.as_deref()), initialises, needs, version })
}

/// What the program prints; an error if it fails (then it `refuses`), or does not end in time.
fn run(arguments: &[OsString], refuses: &str, start: &mut Start) -> Result<String> {
    const NAME: &str = "program";
    let what = format!("sandbox: asking {} about itself", start.path.display());
    let how = match start.run(NAME, arguments, None, &what, ANSWER_WITHIN)? {
        Some(status) if status.success() => return Ok(start.keeper.written(NAME, "out")),
        Some(status) => format!("{refuses} ({status})"),
        None => format!("does not say what it is within {} s", ANSWER_WITHIN.as_secs()),
    };
    let (path, tail) = (start.path.display(), start.keeper.tail(NAME));
    Err(Error::usage(format!("--sandbox={path}: {how}{tail}"))
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
}
