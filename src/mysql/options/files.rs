//! The environment of the process: variables, and MySQL's option files (`my.cnf`), read as the MySQL
//! clients do.
//!
//! The grammar is MySQL's own: keys without a value; `-`, `_` and case alike in keys; `loose-`; comments by
//! `#` outside quotes, by `;` only at a line's start; quotes around the whole value; backslash escapes;
//! `!include` and `!includedir`. The last line of a key counts, across files and groups.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{ConnectionArgs, SECRET_MAX, Secret};
use crate::error::{Error, Result};

const MAX_DEPTH: usize = 10;

/// Limit on the bytes of all files together: it ends includes that multiply.
const MAX_BYTES: usize = 1 << 20;

pub(super) const SHORTEST: usize = 3;

/// The groups that all clients of MySQL's and MariaDB's share.
const SHARED: [&str; 3] = ["client", "client-server", "client-mariadb"];

const OWN: &str = "loadgen";

type OfPath<T> = Box<dyn Fn(&Path) -> T + Send>;

/// The environment that decides where the server is; a value, so that tests bring their own.
pub struct Env {
    pub vars: HashMap<OsString, OsString>,
    pub os_user: Option<String>,
    pub read: OfPath<io::Result<Text>>,
    pub list: OfPath<io::Result<Vec<PathBuf>>>,
    pub is_socket: OfPath<bool>,
    /// The password on an inherited descriptor (`--password-fd`).
    pub read_fd: Box<dyn Fn(u32) -> Result<Secret> + Send>,
}

pub struct Text {
    pub bytes: Vec<u8>,
    pub mode: u32,
    /// True for a regular file: only such a file is ignored for being world-writable.
    pub regular: bool,
}

impl Env {
    pub fn real() -> Self {
        let entries = |dir: &Path| std::fs::read_dir(dir)?.map(|e| Ok(e?.path())).collect();
        Env {
            vars: std::env::vars_os().collect(),
            os_user: os_user(),
            read: Box::new(read_file),
            list: Box::new(entries),
            is_socket: Box::new(|path| path.metadata().is_ok_and(|m| m.file_type().is_socket())),
            read_fd: Box::new(read_fd),
        }
    }

    /// Reads a variable unless it is unset or empty.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>> {
        let value = self.vars.get(OsStr::new(name)).filter(|value| !value.is_empty());
        let text = value.map(|value| value.clone().into_string()).transpose();
        text.map_err(|_| Error::usage(format!("{name} is no UTF-8")))
    }
}

/// Shows nothing: variables hold passwords.
impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").finish_non_exhaustive()
    }
}

/// Returns the effective user's name, else $USER, as the MySQL clients do.
fn os_user() -> Option<String> {
    match nix::unistd::User::from_uid(nix::unistd::geteuid()) {
        Ok(Some(user)) => Some(user.name),
        _ => std::env::var("USER").ok().filter(|name| !name.is_empty()),
    }
}

fn read_file(path: &Path) -> io::Result<Text> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let mode = meta.permissions().mode() & 0o7777;
    Ok(Text { bytes, mode, regular: meta.file_type().is_file() })
}

/// Without a line end. Closes the descriptor: no child inherits it.
pub(super) fn read_fd(fd: u32) -> Result<Secret> {
    let error = |why: &dyn fmt::Display| Error::usage(format!("--password-fd {fd}: {why}"));
    let path = PathBuf::from(format!("/proc/self/fd/{fd}"));
    let facts = path.metadata().map_err(|e| error(&e))?;
    // Reading through the writing end of a pipe would never end.
    if !is_readable(fd).map_err(|e| error(&e))? {
        return Err(error(&"it is not open for reading"));
    }
    let mut bytes = Vec::new();
    let most = SECRET_MAX + 3;
    let read = if facts.file_type().is_socket() {
        receive(fd.cast_signed(), most, &mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(most as u64).read_to_end(&mut bytes).map(drop))
    };
    read.map_err(|e| error(&e))?;
    if let Some(fd) = i32::try_from(fd).ok().filter(|fd| *fd > 2) {
        nix::unistd::close(fd).map_err(|e| error(&e))?;
    }
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    if line.len() > SECRET_MAX {
        return Err(error(&format!("holds more than a password ({SECRET_MAX} bytes)")));
    }
    let text = std::str::from_utf8(line).map_err(|_| error(&"holds no UTF-8"))?;
    Ok(Secret::new(text))
}

fn is_readable(fd: u32) -> io::Result<bool> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}"))?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    let flags =
        flags.ok_or_else(|| io::Error::other("the kernel does not tell how it was opened"))?;
    Ok(flags & O_ACCMODE != O_WRONLY)
}

/// proc(5) has open(2)'s flags; these are the two lowest bits on every Linux.
const O_ACCMODE: u32 = 3;
const O_WRONLY: u32 = 1;

/// Reads from a socket, which cannot be opened by its name, up to its end or `most` bytes.
fn receive(fd: i32, most: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut part = [0; 512];
    while bytes.len() < most {
        match nix::sys::socket::recv(fd, &mut part, nix::sys::socket::MsgFlags::empty()) {
            Ok(0) => break,
            Ok(got) => bytes.extend_from_slice(&part[..got]),
            Err(nix::errno::Errno::EINTR) => {}
            // The other side may have made it non-blocking.
            Err(nix::errno::Errno::EAGAIN) => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// One line `key` or `key = value` of a group for loadgen. No `Debug`: the value may be a password.
pub(super) struct Setting {
    /// The key in lower case, dashes for underscores, without `loose-`.
    pub(super) key: String,
    /// The value without quotes and escapes; `None` where there is no `=`.
    pub(super) value: Option<String>,
    pub(super) strength: Strength,
    /// True for `loose-`: an unknown key is no mistake.
    pub(super) loose: bool,
    pub(super) at: String,
}

/// The origin of a value, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    Environment,
    /// A group of all MySQL clients, with keys that loadgen does not know.
    Shared,
    /// `[loadgen]`. The later line of a key counts, in whichever of these groups.
    Own,
    Url,
    Flag,
}

#[derive(Default)]
pub(super) struct Read {
    /// In the order in which later ones count.
    pub(super) settings: Vec<Setting>,
    pub(super) warnings: Vec<String>,
}

/// Reads the files in MySQL's order: `/etc/my.cnf`, `/etc/mysql/my.cnf`, `$MYSQL_HOME/my.cnf`,
/// `--defaults-extra-file`, `~/.my.cnf`.
pub(super) fn read(flags: &ConnectionArgs, env: &Env) -> Result<Read> {
    let of_dir = |name: &'static str| move |dir: String| Path::new(&dir).join(name);
    let files = match &flags.defaults_file {
        None if flags.no_defaults => vec![],
        None => vec![
            ("", Some("/etc/my.cnf".into())),
            ("", Some("/etc/mysql/my.cnf".into())),
            ("", first_variable(env, ["MARIADB_HOME", "MYSQL_HOME"])?.map(of_dir("my.cnf"))),
            ("--defaults-extra-file", flags.defaults_extra_file.clone()),
            ("", env.text("HOME")?.map(of_dir(".my.cnf"))),
        ],
        only => vec![("--defaults-file", only.clone())],
    };
    let suffix = match &flags.defaults_group_suffix {
        None => first_variable(env, ["MARIADB_GROUP_SUFFIX", "MYSQL_GROUP_SUFFIX"])?,
        given => given.clone(),
    };
    let suffix = suffix.unwrap_or_default().to_ascii_lowercase();
    let mut reader = Reader { env, suffix, out: Read::default(), open: Vec::new(), bytes: 0 };
    for (flag, path) in files {
        let Some(path) = path else { continue };
        let named = if flag.is_empty() { "option file" } else { flag };
        reader.file(&path, &format!("{named} {}", path.display()), !flag.is_empty())?;
    }
    Ok(reader.out)
}

fn first_variable(env: &Env, names: [&str; 2]) -> Result<Option<String>> {
    Ok(env.text(names[0])?.or(env.text(names[1])?))
}

struct Reader<'a> {
    env: &'a Env,
    /// The suffix of further groups' names; empty for no such groups.
    suffix: String,
    out: Read,
    open: Vec<PathBuf>,
    bytes: usize,
}

impl Reader<'_> {
    fn warn_ignored(&mut self, what: &str, why: impl fmt::Display) {
        self.out.warnings.push(format!("{what} is ignored: {why}"));
    }

    /// Reads a file that messages call `what`. One that nobody names may be missing.
    fn file(&mut self, path: &Path, what: &str, needed: bool) -> Result<()> {
        match (self.env.read)(path) {
            Ok(text) => return self.text(path, &text),
            Err(e) if needed => return Err(Error::usage(format!("{what}: {e}"))),
            Err(e) if e.kind() == io::ErrorKind::NotFound && self.open.is_empty() => {}
            Err(e) => self.warn_ignored(what, e),
        }
        Ok(())
    }

    fn text(&mut self, path: &Path, text: &Text) -> Result<()> {
        let name = path.display();
        self.bytes += text.bytes.len();
        if self.bytes > MAX_BYTES {
            let mib = MAX_BYTES >> 20;
            return Err(Error::usage(format!("{name}: more than {mib} MiB of option files")));
        }
        // Anybody could have put a host and a password there.
        if text.regular && text.mode & 0o002 != 0 {
            self.warn_ignored(&format!("option file {name}"), "anybody may write it");
            return Ok(());
        }
        self.open.push(path.to_owned());
        let shown = text.mode & 0o004 != 0;
        let mut group = None;
        for (line, number) in String::from_utf8_lossy(&text.bytes).lines().zip(1..) {
            let at = format!("{name}:{number}");
            let refused = |why: &str| Error::usage(format!("{at}: {why}"));
            match parse(line).map_err(|why| refused(&why))? {
                Line::Nothing => {}
                Line::Group(name) => group = Some(self.group(name)),
                Line::Directive("include", file) => self.include(Path::new(file), &at)?,
                Line::Directive("includedir", dir) => self.include_dir(Path::new(dir), &at)?,
                // Not shown: a password may begin so.
                Line::Directive(..) => {
                    self.warn_ignored(&format!("{at}: a line with '!'"), "it is no directive");
                }
                Line::Option { key, value } => match group {
                    None => return Err(refused("an option before any [group]")),
                    Some(None) => {}
                    Some(Some(_)) if without_comment(line).contains('\u{fffd}') => {
                        return Err(refused("is no UTF-8"));
                    }
                    Some(Some(strength)) => self.add_setting((key, value), strength, at, shown),
                },
            }
        }
        self.open.pop();
        Ok(())
    }

    fn group(&self, name: &str) -> Option<Strength> {
        let name = name.to_ascii_lowercase();
        let names = [name.strip_suffix(&self.suffix), Some(&name)].into_iter().flatten();
        names.into_iter().find_map(|name| match name {
            OWN => Some(Strength::Own),
            name => SHARED.contains(&name).then_some(Strength::Shared),
        })
    }

    fn add_setting(
        &mut self,
        (key, value): (&str, Option<String>),
        strength: Strength,
        at: String,
        shown: bool,
    ) {
        let key = key.to_ascii_lowercase().replace('_', "-");
        let (key, loose) = match key.strip_prefix("loose-") {
            Some(rest) => (rest.to_owned(), true),
            None => (key, false),
        };
        if is_password(&key) && shown && value.as_deref().is_some_and(|v| !v.is_empty()) {
            self.out.warnings.push(format!("{at}: anybody may read the password (chmod o-r)"));
        }
        self.out.settings.push(Setting { key, value, strength, loose, at });
    }

    fn include(&mut self, file: &Path, at: &str) -> Result<()> {
        let what = format!("{at}: !include {}", file.display());
        if self.open.iter().any(|open| open == file) {
            self.warn_ignored(&what, "it is being read");
        } else if self.open.len() > MAX_DEPTH {
            self.warn_ignored(&what, format!("{MAX_DEPTH} files deep"));
        } else {
            self.file(file, &what, false)?;
        }
        Ok(())
    }

    fn include_dir(&mut self, dir: &Path, at: &str) -> Result<()> {
        let mut files = (self.env.list)(dir).map_err(|e| {
            Error::usage(format!("{at}: !includedir {}: {e}", dir.display()))
                .hint("--no-defaults reads no option file")
        })?;
        files.retain(|path| path.extension().is_some_and(|extension| extension == "cnf"));
        files.sort();
        files.iter().try_for_each(|file| self.include(file, at))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Nothing,
    Group(&'a str),
    Directive(&'a str, &'a str),
    Option { key: &'a str, value: Option<String> },
}

fn space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{b}'
}

fn parse(line: &str) -> std::result::Result<Line<'_>, String> {
    let line = line.trim_matches(space);
    if line.is_empty() || line.starts_with(['#', ';']) {
        return Ok(Line::Nothing);
    }
    if let Some(directive) = line.strip_prefix('!') {
        let directive = directive.trim_start_matches(space);
        let (name, path) = directive.split_once(space).unwrap_or((directive, ""));
        return match (name, path.trim_matches(space)) {
            ("include" | "includedir", "") => Err(format!("!{name} without a path")),
            (name, path) => Ok(Line::Directive(name, path)),
        };
    }
    if let Some(group) = line.strip_prefix('[') {
        let (name, _) = group.split_once(']').ok_or("a [group] without its ]")?;
        return Ok(Line::Group(name.trim_end_matches(space)));
    }
    let line = without_comment(line);
    let (key, value) = match line.split_once('=') {
        Some((key, value)) => (key, Some(unquoted(value.trim_matches(space)))),
        None => (line, None),
    };
    Ok(Line::Option { key: key.trim_end_matches(space), value })
}

/// Returns whether a key means the password, abbreviated or not.
fn is_password(key: &str) -> bool {
    key.len() >= SHORTEST && "password".starts_with(key)
}

/// Splits as MySQL does: a backslash escapes a quote only inside quotes.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut escaped) = (None, false);
    for (i, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return &line[..i],
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c && !escaped => quote = None,
            _ => {}
        }
        escaped = quote.is_some() && c == '\\' && !escaped;
    }
    line
}

/// Removes the quotes of a value and resolves its escapes. An unknown escape stays as it is.
fn unquoted(value: &str) -> String {
    let mut quotes = ['\'', '"'].into_iter();
    let inner = quotes.find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    let mut chars = inner.unwrap_or(value).chars();
    let mut out = String::new();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        match escaped {
            None => out.push(c),
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('s') => out.push(' '),
            Some(same @ ('"' | '\'' | '\\')) => out.push(same),
            Some(other) => out.extend(['\\', other]),
        }
    }
    out
}

#[cfg(test)]
pub(crate) mod fake {
    //! A world for tests: what is not put in is not there.

    use super::*;

    /// Files by path, mode and content. A path that ends in `/` is a directory, its content the entries.
    pub(crate) type Files = &'static [(&'static str, u32, &'static str)];

    pub(crate) fn env(
        vars: &[(&str, &str)],
        files: Files,
        sockets: &'static [&'static str],
    ) -> Env {
        let find = |path: &Path| {
            let found = files.iter().find(|(name, ..)| Path::new(name) == path);
            found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        };
        Env {
            vars: vars.iter().map(|(k, v)| (k.into(), v.into())).collect(),
            os_user: Some("me".into()),
            read: Box::new(move |path| {
                let (_, mode, text) = find(path)?;
                match mode {
                    0 => Err(io::ErrorKind::PermissionDenied.into()),
                    mode => {
                        Ok(Text { bytes: text.as_bytes().to_vec(), mode: *mode, regular: true })
                    }
                }
            }),
            list: Box::new(move |dir| {
                Ok(find(dir)?.2.split_whitespace().map(|name| dir.join(name)).collect())
            }),
            is_socket: Box::new(move |path| sockets.iter().any(|s| Path::new(s) == path)),
            read_fd: Box::new(|fd| Ok(Secret::new(format!("from-{fd}")))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fake::Files;
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use std::os::unix::ffi::OsStringExt;

    fn option(line: &str) -> (String, Option<String>) {
        match parse(line) {
            Ok(Line::Option { key, value }) => (key.to_owned(), value),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn value(line: &str) -> String {
        option(line).1.unwrap_or_else(|| panic!("{line} has no value"))
    }

    /// `key=value` of what is read, and the warnings.
    fn read_with(choice: &ConnectionArgs, files: Files) -> Result<(Vec<String>, Vec<String>)> {
        settings_of(choice, &[("HOME", "/home/me")], files)
    }

    fn settings_of(
        choice: &ConnectionArgs,
        vars: &[(&str, &str)],
        files: Files,
    ) -> Result<(Vec<String>, Vec<String>)> {
        let read = read(choice, &fake::env(vars, files, &[]))?;
        let shown = read.settings.into_iter().map(|s| {
            let strict = if s.strength == Strength::Own && !s.loose { "strict " } else { "" };
            let value = s.value.map(|v| format!("={v}")).unwrap_or_default();
            format!("{strict}{}{value}", s.key)
        });
        Ok((shown.collect(), read.warnings))
    }

    fn settings(files: Files) -> Vec<String> {
        read_with(&ConnectionArgs::default(), files).unwrap().0
    }

    fn error(choice: &ConnectionArgs, files: Files) -> String {
        read_with(choice, files).unwrap_err().to_string()
    }

    #[test]
    fn lines_are_what_mysql_takes_them_for() {
        for line in ["", "  ", "# x", " ;x = y", "\t#", "\u{b}"] {
            assert_eq!(parse(line), Ok(Line::Nothing), "{line:?}");
        }
        assert_eq!(parse("[client]"), Ok(Line::Group("client")));
        assert_eq!(parse(" [client ] trailing"), Ok(Line::Group("client")));
        assert!(parse("[client").is_err());
        assert_eq!(parse("!include /a b.cnf "), Ok(Line::Directive("include", "/a b.cnf")));
        assert_eq!(parse("! includedir\t/d"), Ok(Line::Directive("includedir", "/d")));
        assert!(parse("!include").is_err() && parse("!includedir  ").is_err());
        assert_eq!(parse("!includes /d"), Ok(Line::Directive("includes", "/d")));
        assert_eq!(option("ssl"), ("ssl".into(), None));
        assert_eq!(option("password ="), ("password".into(), Some(String::new())));
        assert_eq!(option(" user\t=  me  # note"), ("user".into(), Some("me".into())));
        assert_eq!(option("user=a=b"), ("user".into(), Some("a=b".into())));
    }

    #[test]
    fn comments_quotes_and_escapes() {
        for (line, wanted) in [
            ("k = a;b", "a;b"),
            ("k = a#b", "a"),
            ("k = 'a#b' # c", "a#b"),
            ("k = \"a'#b\"", "a'#b"),
            (r##"k = "a\"#b""##, "a\"#b"),
            ("k = it's # not a comment", "it's # not a comment"),
            (r"k = a\#b", r"a\"),
            ("k = 'a'b'", "a'b"),
            ("k = 'a\"", "'a\""),
            ("k = '", "'"),
            ("k = ''", ""),
            ("k = ' a '", " a "),
            (r"k = a\sb\tc\nd\re\bf\\g", "a b\tc\nd\re\u{8}f\\g"),
            (r"k = C:\dir\x", r"C:\dir\x"),
            (r"k = a\", r"a\"),
            (r"k = \'a\'", "'a'"),
            ("k = ü€", "ü€"),
        ] {
            assert_eq!(value(line), wanted, "{line}");
        }
    }

    #[test]
    fn groups_keys_and_prefixes() {
        let read = settings(&[(
            "/etc/my.cnf",
            0o600,
            "[Mysqld]\nport=1\n[CLIENT]\nport=2\nssl_ca=/x\r\nssl\n[client-server]\nPORT=3\n\
             [loadgen]\nloose_user=me\nLoose-Odd\n[Client-MariaDB]\nPort=4\n[client_server]\n\
             port=5\n[mysql]\nport=6\n[client-server_a]\nport=7\n[server]\nport=8",
        )]);
        let wanted = ["port=2", "ssl-ca=/x", "ssl", "port=3", "user=me", "odd", "port=4"];
        assert_eq!(read, wanted);
    }

    #[test]
    fn groups_of_the_suffix_are_read_in_their_place_when_there_is_one() {
        const SUFFIXED: Files = &[(
            "/etc/my.cnf",
            0o644,
            "[client_b]\nport=1\n[client]\nport=2\n[client-server_B]\nport=3\n[loadgen_b]\n\
             port=4\n[client_c]\nport=5\n[client-server]\nport=6",
        )];
        struct Case {
            flag: Option<&'static str>,
            vars: &'static [(&'static str, &'static str)],
            ports: &'static [&'static str],
        }
        const B: &[&str] = &["port=1", "port=2", "port=3", "strict port=4", "port=6"];
        for Case { flag, vars, ports } in [
            Case { flag: None, vars: &[], ports: &["port=2", "port=6"] },
            Case { flag: Some("_b"), vars: &[], ports: B },
            Case { flag: None, vars: &[("MYSQL_GROUP_SUFFIX", "_b")], ports: B },
            Case {
                flag: None,
                vars: &[("MYSQL_GROUP_SUFFIX", "_c"), ("MARIADB_GROUP_SUFFIX", "_B")],
                ports: B,
            },
            Case {
                flag: Some("_c"),
                vars: &[("MYSQL_GROUP_SUFFIX", "_b")],
                ports: &["port=2", "port=5", "port=6"],
            },
            // [client] with this suffix is a group of all clients, too.
            Case { flag: Some("-server"), vars: &[], ports: &["port=2", "port=6"] },
        ] {
            let flags = ConnectionArgs {
                defaults_group_suffix: flag.map(str::to_owned),
                ..ConnectionArgs::default()
            };
            assert_eq!(settings_of(&flags, vars, SUFFIXED).unwrap().0, ports, "{flag:?} {vars:?}");
        }
    }

    const USUAL: Files = &[
        ("/etc/my.cnf", 0o644, "[client]\nport=1"),
        ("/etc/mysql/my.cnf", 0o644, "[client]\nport=2"),
        ("/home/me/.my.cnf", 0o600, "[client]\nport=4"),
        ("/x.cnf", 0o600, "[loadgen]\nport=3"),
        ("/maria/my.cnf", 0o644, "[client]\nport=5"),
        ("/my/my.cnf", 0o644, "[client]\nport=6"),
    ];

    #[test]
    fn files_come_in_mysqls_order() {
        assert_eq!(settings(USUAL), ["port=1", "port=2", "port=4"]);
        let x = || Some(PathBuf::from("/x.cnf"));
        let extra = ConnectionArgs { defaults_extra_file: x(), ..ConnectionArgs::default() };
        let (read, _) = read_with(&extra, USUAL).unwrap();
        assert_eq!(read, ["port=1", "port=2", "strict port=3", "port=4"]);
        let only = ConnectionArgs { defaults_file: x(), ..ConnectionArgs::default() };
        assert_eq!(read_with(&only, USUAL).unwrap().0, ["strict port=3"]);
        let homes = [("HOME", "/home/me"), ("MYSQL_HOME", "/my"), ("MARIADB_HOME", "/maria")];
        let with = |homes: &[_], choice| settings_of(choice, homes, USUAL).unwrap().0;
        let wanted = ["port=1", "port=2", "port=6", "strict port=3", "port=4"];
        assert_eq!(with(&homes[..2], &extra), wanted);
        let default = ConnectionArgs::default();
        assert_eq!(with(&homes, &default), ["port=1", "port=2", "port=5", "port=4"]);
        assert_eq!(with(&homes, &only), ["strict port=3"]);
        let none = ConnectionArgs { no_defaults: true, ..ConnectionArgs::default() };
        assert!(read_with(&none, USUAL).unwrap().0.is_empty());
        assert!(settings(&[]).is_empty());
        let mut env = fake::env(&[], USUAL, &[]);
        env.vars.insert("HOME".into(), OsString::from_vec(vec![0xff]));
        let read = |choice| super::read(choice, &env);
        assert!(read(&none).is_ok() && read(&only).is_ok(), "nobody asks for it");
        assert!(read(&extra).is_err_and(|e| e.to_string() == "HOME is no UTF-8"));
    }

    #[test]
    fn files_that_were_asked_for_must_be_there() {
        let x = || Some(PathBuf::from("/none.cnf"));
        let error_of = |choice| error(&choice, USUAL);
        assert!(
            error_of(ConnectionArgs { defaults_file: x(), ..ConnectionArgs::default() })
                .contains("--defaults-file /none.cnf")
        );
        let extra =
            error_of(ConnectionArgs { defaults_extra_file: x(), ..ConnectionArgs::default() });
        assert!(extra.contains("--defaults-extra-file /none.cnf"), "{extra}");
    }

    #[test]
    fn errors_name_file_and_line() {
        let choice = ConnectionArgs::default();
        let of = |files| error(&choice, files);
        assert_eq!(
            of(&[("/etc/my.cnf", 0o644, "\nport=1")]),
            "/etc/my.cnf:2: an option before any [group]"
        );
        assert!(of(&[("/etc/my.cnf", 0o644, "[client]\n[x")]).starts_with("/etc/my.cnf:2:"));
        let missing = of(&[("/etc/my.cnf", 0o644, "!includedir /none")]);
        assert!(missing.starts_with("/etc/my.cnf:1: !includedir /none"), "{missing}");
        let bytes: Files = &[("/etc/my.cnf", 0o644, "[mysqld]\na=\u{fffd}\n[client]\na=\u{fffd}")];
        assert_eq!(of(bytes), "/etc/my.cnf:4: is no UTF-8");
        let comment: Files = &[("/etc/my.cnf", 0o644, "[client]\nport=1 # \u{fffd}")];
        assert_eq!(settings(comment), ["port=1"]);
    }

    #[test]
    fn includes_are_read_in_place() {
        let files: Files = &[
            (
                "/etc/my.cnf",
                0o644,
                "[client]\nport=1\n!includedir /d/\n!include /one.cnf\nport=9\n!include /none.cnf",
            ),
            ("/d/", 0o755, "b.cnf a.cnf c.cnf.bak"),
            ("/d/a.cnf", 0o644, "[client]\nport=2"),
            ("/d/b.cnf", 0o644, "[loadgen]\nport=3"),
            ("/d/c.cnf.bak", 0o644, "[client]\nport=4"),
            ("/one.cnf", 0o644, "[loadgen]\nport=5"),
        ];
        let (settings, warnings) = read_with(&ConnectionArgs::default(), files).unwrap();
        // The group of the including file goes on after the include.
        let wanted = ["port=1", "port=2", "strict port=3", "strict port=5", "port=9"];
        assert_eq!(settings, wanted);
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("/etc/my.cnf:6: !include /none.cnf is ignored"));
    }

    #[test]
    fn circles_and_depths_end() {
        let circle: Files = &[
            ("/etc/my.cnf", 0o644, "!include /a.cnf\n[client]\nport=1"),
            ("/a.cnf", 0o644, "!include /etc/my.cnf\n[client]\nport=2"),
        ];
        let (settings, warnings) = read_with(&ConnectionArgs::default(), circle).unwrap();
        assert_eq!(settings, ["port=2", "port=1"]);
        assert!(warnings[0].starts_with("/a.cnf:1:"), "{warnings:?}");

        // The same file under ever new names.
        let env = |text: &'static str| {
            let mut env = fake::env(&[], &[], &[]);
            env.read = Box::new(move |path| {
                let text = text.replace("SELF", &path.to_string_lossy());
                Ok(Text { bytes: text.into_bytes(), mode: 0o600, regular: true })
            });
            env
        };
        let warnings = read(&ConnectionArgs::default(), &env("!include SELFx")).unwrap().warnings;
        assert!(warnings.iter().all(|w| w.contains(" 10 ")), "{warnings:?}");
        let many = "!include SELFa\n!include SELFb\n!include SELFc";
        let error = read(&ConnectionArgs::default(), &env(many)).err().unwrap();
        assert!(error.to_string().contains("1 MiB"), "{error}");

        // A large one, several times.
        let mut env = fake::env(&[], &[], &[]);
        env.read = Box::new(|path| {
            let large = "[client]\n".to_owned() + &"a\n".repeat(400_000);
            let text =
                if path.ends_with("my.cnf") { "!include /x\n!include /y".into() } else { large };
            Ok(Text { bytes: text.into_bytes(), mode: 0o600, regular: true })
        });
        let error = read(&ConnectionArgs::default(), &env).err().unwrap();
        assert!(error.to_string().contains("/y: "), "{error}");
    }

    #[test]
    fn permissions_count() {
        let files: Files = &[
            ("/etc/my.cnf", 0o646, "[client]\nport=1"),
            ("/etc/mysql/my.cnf", 0o644, "[client]\npassword=marker\n[mysqld]\npassword=y"),
            ("/home/me/.my.cnf", 0, ""),
        ];
        let (settings, warnings) = read_with(&ConnectionArgs::default(), files).unwrap();
        assert_eq!(settings, ["password=marker"]);
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        for (warning, file) in
            warnings.iter().zip(["/etc/my.cnf ", "/etc/mysql/my.cnf:2:", "/home/me/.my.cnf "])
        {
            assert!(warning.contains(file), "{file}: {warning}");
        }
        assert!(!warnings.concat().contains("marker"));
        let short: Files = &[("/etc/my.cnf", 0o644, "[client-mariadb]\nPass=x\n")];
        assert_eq!(read_with(&ConnectionArgs::default(), short).unwrap().1.len(), 1);
        let closed: Files = &[("/etc/my.cnf", 0o640, "[client]\npassword=x\npassword=")];
        assert!(read_with(&ConnectionArgs::default(), closed).unwrap().1.is_empty());
    }

    fn quoted(value: &str) -> String {
        let mut out = String::from("\"");
        for c in value.chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '"' | '\\' => out.extend(['\\', c]),
                c => out.push(c),
            }
        }
        out + "\""
    }

    proptest! {
        #[test]
        fn what_is_quoted_reads_back(text in "[ -~\n\t\r\u{8}ü'\"#;\\\\=]{0,40}", comment in "( *#.*)?") {
            prop_assert_eq!(value(&format!("key = {}{comment}", quoted(&text))), text);
        }

        #[test]
        fn plain_values_read_back(text in "[A-Za-z0-9_./:@%+=-]{1,40}") {
            prop_assert_eq!(value(&format!("key={text}")), text);
        }

        #[test]
        fn no_line_panics(line in "\\PC{0,60}", dense in "[\\[\\]!#;'\"\\\\= a\u{b}]{0,30}") {
            let _ = (parse(&line), parse(&dense));
        }

        #[test]
        fn no_file_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut env = fake::env(&[], &[], &[]);
            env.read = Box::new(move |_| Ok(Text { bytes: bytes.clone(), mode: 0o600, regular: true }));
            let _ = read(&ConnectionArgs::default(), &env);
        }
    }

    fn through_pipe(bytes: &[u8]) -> Result<Secret> {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(bytes).unwrap();
        drop(writer);
        handed_over(reader)
    }

    /// The text behind a descriptor.
    fn handed_over(fd: impl Into<std::os::fd::OwnedFd>) -> Result<Secret> {
        let fd = std::os::fd::IntoRawFd::into_raw_fd(fd.into());
        read_fd(u32::try_from(fd).unwrap())
    }

    #[test]
    fn a_socket_is_read_to_its_end_as_a_pipe_is() {
        for waits in [true, false] {
            let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            theirs.set_nonblocking(!waits).unwrap();
            let writing = std::thread::spawn(move || {
                ours.write_all(b"pw").unwrap();
                ours.write_all(b"2\n").unwrap();
            });
            assert_eq!(handed_over(theirs).unwrap().expose(), "pw2");
            writing.join().unwrap();
        }
    }

    #[test]
    fn a_descriptor_that_is_only_written_to_is_refused() {
        let (reader, writer) = io::pipe().unwrap();
        assert_eq!(handed_over(writer).unwrap_err().kind().exit_code(), 2);
        drop(reader);
    }

    #[test]
    fn a_descriptor_is_read_to_its_end_without_one_line_end() {
        for (bytes, secret) in
            [("pw", "pw"), ("pw\n", "pw"), ("pw\n\n", "pw\n"), ("", ""), ("\n", "")]
        {
            assert_eq!(through_pipe(bytes.as_bytes()).unwrap().expose(), secret);
        }
        let longest = "s".repeat(SECRET_MAX);
        assert_eq!(through_pipe(format!("{longest}\n").as_bytes()).unwrap().expose(), longest);
        assert!(through_pipe(format!("{longest}s").as_bytes()).is_err());
        assert!(through_pipe(b"\xff").unwrap_err().to_string().contains("UTF-8"));
        assert!(
            read_fd(4_000_000_000).unwrap_err().to_string().contains("--password-fd 4000000000")
        );
    }
}
