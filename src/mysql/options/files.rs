//! MySQL's option files (`my.cnf`), read as the MySQL clients read them.
//!
//! The grammar is MySQL's own and no INI dialect: keys without a value, `-` and `_` alike in
//! keys, `loose-`, a `#` that starts a comment anywhere outside quotes but a `;` only at the
//! start of a line, quotes around the whole value, backslash escapes with or without them,
//! `!include` and `!includedir`. Of a key that comes twice the later one counts, across files
//! and groups.

use std::path::{Path, PathBuf};

use super::env::{Env, Text};
use super::flags::ConnectionArgs;
use crate::error::{Error, Result};

#[cfg(test)]
mod tests;

/// As deep as MySQL follows includes.
const MAX_DEPTH: usize = 10;

/// Bytes of all files together, more than anybody has: includes that multiply end here.
const MAX_BYTES: usize = 1 << 20;

/// The groups that loadgen reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// `[client]`: shared with all MySQL clients, so what loadgen does not know is none of its
    /// business.
    Client,
    /// `[loadgen]`: its own, so what it does not know is a mistake.
    Loadgen,
}

/// One line `key` or `key = value` of a group that loadgen reads. No `Debug`: the value may be a
/// password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Its group.
    pub group: Group,
    /// The key, dashes for underscores, without `loose-`.
    pub key: String,
    /// The value without quotes and escapes; `None` where there is no `=`.
    pub value: Option<String>,
    /// Whether it was written `loose-…`: an unknown one is then fine.
    pub loose: bool,
    /// `FILE:LINE`.
    pub at: String,
}

/// What the option files say.
#[derive(Default)]
pub(crate) struct Read {
    /// In the order in which later ones count.
    pub settings: Vec<Setting>,
    /// What was ignored, and why.
    pub warnings: Vec<String>,
}

/// Reads the files in MySQL's order: `/etc/my.cnf`, `/etc/mysql/my.cnf`,
/// `--defaults-extra-file`, `~/.my.cnf`.
pub(crate) fn read(flags: &ConnectionArgs, env: &Env) -> Result<Read> {
    let mut reader = Reader { env, out: Read::default(), open: Vec::new(), bytes: 0 };
    if flags.no_defaults {
        return Ok(reader.out);
    }
    if let Some(only) = &flags.defaults_file {
        reader.required("--defaults-file", only)?;
        return Ok(reader.out);
    }
    reader.usual(Path::new("/etc/my.cnf"))?;
    reader.usual(Path::new("/etc/mysql/my.cnf"))?;
    if let Some(extra) = &flags.defaults_extra_file {
        reader.required("--defaults-extra-file", extra)?;
    }
    if let Some(home) = env.text("HOME")? {
        reader.usual(&Path::new(&home).join(".my.cnf"))?;
    }
    Ok(reader.out)
}

struct Reader<'a> {
    env: &'a Env,
    out: Read,
    /// The file being read and those that included it.
    open: Vec<PathBuf>,
    /// Read so far.
    bytes: usize,
}

impl Reader<'_> {
    fn required(&mut self, flag: &str, path: &Path) -> Result<()> {
        match (self.env.read)(path) {
            Ok(text) => self.text(path, &text),
            Err(e) => Err(Error::usage(format!("{flag} {}: {e}", path.display()))),
        }
    }

    fn usual(&mut self, path: &Path) -> Result<()> {
        match (self.env.read)(path) {
            Ok(text) => self.text(path, &text),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) => {
                self.out.warnings.push(format!("option file {} is ignored: {e}", path.display()));
                Ok(())
            }
        }
    }

    fn text(&mut self, path: &Path, text: &Text) -> Result<()> {
        self.bytes += text.bytes.len();
        if self.bytes > MAX_BYTES {
            return Err(Error::usage(format!(
                "{}: more than {} MiB of option files",
                path.display(),
                MAX_BYTES >> 20
            )));
        }
        // Anybody could have put a host and a password there.
        if text.regular && text.mode & 0o002 != 0 {
            let warning =
                format!("option file {} is ignored: anybody may write it", path.display());
            self.out.warnings.push(warning);
            return Ok(());
        }
        self.open.push(path.to_owned());
        let shown = text.mode & 0o004 != 0;
        let mut group = None;
        for (number, line) in String::from_utf8_lossy(&text.bytes).lines().enumerate() {
            let at = format!("{}:{}", path.display(), number + 1);
            match parse(line).map_err(|why| Error::usage(format!("{at}: {why}")))? {
                Line::Nothing => {}
                Line::Group(name) => group = Some(known_group(&name)),
                Line::Include(file) => self.include(Path::new(&file), &at)?,
                Line::IncludeDir(dir) => self.include_dir(Path::new(&dir), &at)?,
                Line::Directive(text) => {
                    self.out.warnings.push(format!("{at}: !{text} is ignored: it is no directive"));
                }
                Line::Option { key, value } => match group {
                    None => {
                        return Err(Error::usage(format!("{at}: an option before any [group]")));
                    }
                    Some(None) => {}
                    Some(Some(group)) => self.setting(group, &key, value, at, shown)?,
                },
            }
        }
        self.open.pop();
        Ok(())
    }

    fn setting(
        &mut self,
        group: Group,
        key: &str,
        value: Option<String>,
        at: String,
        shown: bool,
    ) -> Result<()> {
        if [Some(key), value.as_deref()].into_iter().flatten().any(|t| t.contains('\u{fffd}')) {
            return Err(Error::usage(format!("{at}: is no UTF-8")));
        }
        let key = key.replace('_', "-");
        let (key, loose) = match key.strip_prefix("loose-") {
            Some(rest) => (rest.to_owned(), true),
            None => (key, false),
        };
        if key == "password" && shown && value.as_deref().is_some_and(|v| !v.is_empty()) {
            self.out.warnings.push(format!("{at}: anybody may read the password (chmod o-r)"));
        }
        self.out.settings.push(Setting { group, key, value, loose, at });
        Ok(())
    }

    fn include(&mut self, file: &Path, at: &str) -> Result<()> {
        let name = file.display();
        if self.open.iter().any(|open| open == file) {
            self.out.warnings.push(format!("{at}: !include {name} is ignored: it is being read"));
        } else if self.open.len() > MAX_DEPTH {
            let warning = format!("{at}: !include {name} is ignored: {MAX_DEPTH} files deep");
            self.out.warnings.push(warning);
        } else {
            match (self.env.read)(file) {
                Ok(text) => self.text(file, &text)?,
                Err(e) => self.out.warnings.push(format!("{at}: !include {name} is ignored: {e}")),
            }
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

fn known_group(name: &str) -> Option<Group> {
    match name.to_ascii_lowercase().as_str() {
        "client" => Some(Group::Client),
        "loadgen" => Some(Group::Loadgen),
        _ => None,
    }
}

/// What one line is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    Nothing,
    Group(String),
    Include(String),
    IncludeDir(String),
    Directive(String),
    Option { key: String, value: Option<String> },
}

fn space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{b}'
}

fn parse(line: &str) -> std::result::Result<Line, String> {
    let line = line.trim_matches(space);
    if line.is_empty() || line.starts_with(['#', ';']) {
        return Ok(Line::Nothing);
    }
    if let Some(directive) = line.strip_prefix('!') {
        let directive = directive.trim_start_matches(space);
        return match directive.split_once(space) {
            Some(("include", file)) => Ok(Line::Include(file.trim_matches(space).to_owned())),
            Some(("includedir", dir)) => Ok(Line::IncludeDir(dir.trim_matches(space).to_owned())),
            None if matches!(directive, "include" | "includedir") => {
                Err(format!("!{directive} without a path"))
            }
            _ => Ok(Line::Directive(directive.to_owned())),
        };
    }
    if let Some(group) = line.strip_prefix('[') {
        let (name, _) = group.split_once(']').ok_or("a [group] without its ]")?;
        return Ok(Line::Group(name.trim_end_matches(space).to_owned()));
    }
    let line = without_comment(line);
    let (key, value) = match line.split_once('=') {
        Some((key, value)) => (key, Some(unquoted(value.trim_matches(space)))),
        None => (line, None),
    };
    Ok(Line::Option { key: key.trim_end_matches(space).to_owned(), value })
}

/// The line up to the first `#` outside quotes. As in MySQL, a quote is escaped by a backslash
/// only inside quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut escaped = false;
    for (i, c) in line.char_indices() {
        if matches!(c, '\'' | '"') && !escaped {
            match quote {
                None => quote = Some(c),
                Some(open) if open == c => quote = None,
                Some(_) => {}
            }
        }
        if c == '#' && quote.is_none() {
            return &line[..i];
        }
        escaped = quote.is_some() && c == '\\' && !escaped;
    }
    line
}

/// The value without the quotes around it, its escapes resolved. An unknown escape stays as it is.
fn unquoted(value: &str) -> String {
    let inner = ['\'', '"']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(value);
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('s') => out.push(' '),
            Some(same @ ('"' | '\'' | '\\')) => out.push(same),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}
