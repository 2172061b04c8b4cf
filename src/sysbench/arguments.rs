//! A command line by sysbench's grammar: words become values of options. What the values mean is in
//! `resolve.rs`.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use super::options::{self, Entry, Group, Kind, NO_EFFECT, OFF, ON, Values};
use super::settings::{Preamble, Refusal, Settings};
use crate::mysql::options::SslMode;

const OLD_FORM: &str = "WARNING: the --test option is deprecated. You can pass a script name or path on \
                        the command line without any options.\n";

/// A variable of the environment.
pub(crate) type Env<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

/// What a command line asks for.
pub(crate) enum Parsed {
    Settings(Box<Settings>),
    /// The program of `--sysbench-binary` does it; its words may hold a password.
    HandOver {
        program: PathBuf,
        args: Vec<OsString>,
    },
}

/// Reads a command line without the program's name.
pub(crate) fn parse(args: &[OsString], env: &Env<'_>) -> Result<Parsed, Refusal> {
    let mut read = Arguments::default();
    read.words(args)?;
    read.resolve(env)
}

#[derive(Default)]
pub(super) struct Arguments {
    pub test: Option<String>,
    pub command: Option<String>,
    pub values: Values,
    /// Words that only the test can know, and switches with a wrong value.
    pub left: Vec<String>,
    pub preamble: Preamble,
    /// With its empty line; empty while it is not shown.
    pub header: String,
    pub notes: Vec<String>,
    /// The words but for those of loadgen.
    pub theirs: Vec<OsString>,
    /// A word that may be a password: it is in no output.
    hidden: Option<String>,
}

impl Arguments {
    fn words(&mut self, args: &[OsString]) -> Result<(), Refusal> {
        let mut words = args.iter();
        let mut before = "";
        while let Some(word) = words.next() {
            let Some(text) = word.to_str() else {
                return self.cannot("a word of the command line is no UTF-8");
            };
            let follows = std::mem::replace(&mut before, text);
            let Some(option) = text.strip_prefix("--") else {
                if options::plain(follows) == "--mysql-password" {
                    self.hidden = Some(text.to_owned());
                }
                self.positional(text)?;
                self.theirs.push(word.clone());
                continue;
            };
            let own = options::find(split(option).0).filter(|entry| entry.group == Group::Own);
            let mut option = option.to_owned();
            if own.is_none() {
                self.theirs.push(word.clone());
            } else if own.is_some_and(|entry| entry.kind != Kind::Bool) && !option.contains('=') {
                let Some(value) = words.next().and_then(|value| value.to_str()) else {
                    return self.cannot(&format!("--{option} needs a value"));
                };
                option = format!("{option}={value}");
            }
            if let Some(test) = option.strip_prefix("test=") {
                self.test = Some(test).filter(|test| !test.is_empty()).map(str::to_owned);
                self.preamble.stderr.push_str(OLD_FORM);
            } else if !self.take(&option, |entry| !entry.of_test()) {
                self.left.push(option);
            }
        }
        Ok(())
    }

    fn positional(&mut self, word: &str) -> Result<(), Refusal> {
        match (&self.test, &self.command) {
            (None, _) => self.test = Some(word.to_owned()),
            (_, None) => self.command = Some(word.to_owned()),
            _ => {
                let shown = self.shown(word);
                return self.usage(&format!("Unrecognized command line argument: {shown}"));
            }
        }
        Ok(())
    }

    /// Takes an option `name=value` of a group that counts now; false where there is no such option, or
    /// its value is none of a switch.
    pub(super) fn take(&mut self, option: &str, counts: impl Fn(&Entry) -> bool) -> bool {
        let (name, value) = split(option);
        let Some(entry) = options::find(name).filter(|entry| counts(entry)) else {
            return false;
        };
        let text = value.unwrap_or_default();
        let is_switch = ON.contains(&text) || OFF.contains(&text);
        let is_known = is_switch || entry.kind == Kind::Ssl && SslMode::parse(text).is_ok();
        match entry.kind {
            Kind::Bool | Kind::Ssl if value == Some("") || !is_known => return false,
            Kind::File => self.config_file(text),
            _ => self.set(entry, name, text.to_owned()),
        }
        true
    }

    fn set(&mut self, entry: &'static Entry, name: &str, text: String) {
        if entry.about == NO_EFFECT && !entry.is_usual(&text) {
            self.notes.push(format!("--{name} has no effect"));
        }
        self.values.set(entry, text);
    }

    /// Takes the options of a config file, as far as it can be read.
    fn config_file(&mut self, path: &str) {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                let text = error.to_string();
                let text = text.split(" (os error").next().unwrap_or_default();
                self.preamble.stderr.push_str(&format!("{path}: {text}\n"));
                return;
            }
        };
        for (number, line) in (1..).zip(String::from_utf8_lossy(&bytes).lines()) {
            let Some((name, text)) = line.split_once('=') else { continue };
            let items = items(text);
            self.setting(name, items.as_deref().unwrap_or_default());
            if items.is_none() {
                self.preamble.stderr.push_str(&format!("unexpected EOL on line {number}\n"));
                return;
            }
        }
    }

    /// Takes one line of a config file.
    fn setting(&mut self, name: &str, items: &[String]) {
        let known =
            options::find(name).filter(|entry| !matches!(entry.group, Group::Own | Group::Hint));
        let Some(entry) = known else {
            self.preamble.after_header.push_str(&format!(
                "WARNING: Global option '{}' will not be exported, because the type is unknown\n",
                name.replace('-', "_")
            ));
            return;
        };
        let word = items.first().cloned().unwrap_or_default();
        let is_switch = matches!(entry.kind, Kind::Bool | Kind::Ssl);
        if entry.of_test() || entry.kind == Kind::File {
            self.notes.push(format!("{name} in a config file has no effect, as in sysbench"));
        } else if is_switch && OFF.contains(&word.as_str()) {
            self.notes.push(format!("{name}={word} in a config file is on, as in sysbench"));
            self.set(entry, name, "on".to_owned());
        } else {
            let text = match entry.kind {
                Kind::Bool => "on".to_owned(),
                Kind::List => items.join(","),
                _ => word,
            };
            self.set(entry, name, text);
        }
    }

    /// Shows a word, unless it may be a password.
    pub(super) fn shown<'a>(&self, word: &'a str) -> &'a str {
        if self.hidden.as_deref() == Some(word) { "***" } else { word }
    }

    /// Answers at once: all is well.
    pub(super) fn answer<T>(&self, text: &str) -> Result<T, Refusal> {
        self.ended(0, text, "")
    }

    /// Refuses what loadgen does not do.
    pub(super) fn cannot<T>(&self, why: &str) -> Result<T, Refusal> {
        self.ended(1, "", &format!("loadgen: {why}\n"))
    }

    /// Refuses on standard error in sysbench's words.
    pub(super) fn usage<T>(&self, text: &str) -> Result<T, Refusal> {
        self.ended(1, "", &format!("{text}\n"))
    }

    /// Refuses on standard output in sysbench's words.
    pub(super) fn fatal<T>(&self, text: &str) -> Result<T, Refusal> {
        self.ended(1, &format!("FATAL: {text}\n"), "")
    }

    /// Likewise, and says more on standard error in loadgen's.
    pub(super) fn fatal_with<T>(&self, text: &str, why: &str) -> Result<T, Refusal> {
        self.ended(1, &format!("FATAL: {text}\n"), &format!("loadgen: {why}\n"))
    }

    /// Ends behind what sysbench has written by then.
    pub(super) fn ended<T>(&self, status: u8, stdout: &str, stderr: &str) -> Result<T, Refusal> {
        let Preamble { before_header, stderr: said, .. } = &self.preamble;
        let stdout = format!("{before_header}{}{stdout}", self.header);
        Err(Refusal { stdout, stderr: format!("{said}{stderr}"), status })
    }
}

/// Splits an option into its name and its value.
pub(super) fn split(option: &str) -> (&str, Option<&str>) {
    option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)))
}

/// Splits a value of a config file: blanks and commas part, quotes hold together, `#` begins a comment.
/// None where a quote has no end.
fn items(text: &str) -> Option<Vec<String>> {
    let (mut items, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next().filter(|first| *first != '#') {
        let (item, after) = match first {
            '"' | '\'' => rest[1..].split_once(first)?,
            _ => {
                let end = rest.find(|c: char| c.is_whitespace() || c == ',');
                rest.split_at(end.unwrap_or(rest.len()))
            }
        };
        items.push(item.to_owned());
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
    }
    Some(items)
}
