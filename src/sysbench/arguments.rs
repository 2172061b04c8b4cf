//! A command line by sysbench's grammar: words become values of options. What the values mean is in
//! `resolve.rs`.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use super::options::{self, Entry, Group, Kind, NO_EFFECT, OFF, ON, Values};
use super::resolve::resolve;
use super::settings::{Preamble, Refusal, Settings};
use crate::mysql::options::SslMode;

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
    resolve(Arguments::read(args)?, env)
}

/// Bytes of a line of a config file; the rest of a longer one is a line of its own.
const LINE_MAX: usize = 255;

#[derive(Default)]
pub(super) struct Arguments {
    pub test: Option<String>,
    pub command: Option<String>,
    pub values: Values,
    /// Words that only the test can know, and switches with a wrong value.
    pub left: Vec<String>,
    pub preamble: Preamble,
    pub notes: Vec<String>,
    /// The words but for those of loadgen.
    pub theirs: Vec<OsString>,
    /// A word that may be a password: it is in no output.
    hidden: Option<String>,
}

impl Arguments {
    fn read(args: &[OsString]) -> Result<Arguments, Refusal> {
        let mut read = Arguments::default();
        let mut words = args.iter();
        let mut before = "";
        while let Some(word) = words.next() {
            let Some(text) = word.to_str() else {
                return Err(read.cannot("", "a word of the command line is no UTF-8"));
            };
            let follows = std::mem::replace(&mut before, text);
            let Some(option) = text.strip_prefix("--") else {
                if options::plain(follows) == "--mysql-password" {
                    read.hidden = Some(text.to_owned());
                }
                read.positional(text)?;
                read.theirs.push(word.clone());
                continue;
            };
            let own = options::find(split(option).0).filter(|entry| entry.group == Group::Own);
            let mut option = option.to_owned();
            match own {
                Some(entry) if entry.kind != Kind::Bool && !option.contains('=') => {
                    let Some(value) = words.next().and_then(|value| value.to_str()) else {
                        return Err(read.cannot("", &format!("--{option} needs a value")));
                    };
                    option = format!("{option}={value}");
                }
                Some(_) => {}
                None => read.theirs.push(word.clone()),
            }
            if let Some(test) = option.strip_prefix("test=") {
                read.old_form(test);
            } else if !read.take(&option, |entry| !entry.of_test()) {
                read.left.push(option);
            }
        }
        Ok(read)
    }

    fn positional(&mut self, word: &str) -> Result<(), Refusal> {
        match (&self.test, &self.command) {
            (None, _) => self.test = Some(word.to_owned()),
            (_, None) => self.command = Some(word.to_owned()),
            _ => {
                let text = format!("Unrecognized command line argument: {}\n", self.shown(word));
                return Err(self.refuse("", &text));
            }
        }
        Ok(())
    }

    fn old_form(&mut self, test: &str) {
        self.test = Some(test).filter(|test| !test.is_empty()).map(str::to_owned);
        self.preamble.stderr.push_str(
            "WARNING: the --test option is deprecated. You can pass a script name or path on \
             the command line without any options.\n",
        );
    }

    /// Takes an option `name=value` of a group that counts now; false where there is no such option, or
    /// its value is none of a switch.
    pub(super) fn take(&mut self, option: &str, counts: impl Fn(&Entry) -> bool) -> bool {
        let (name, value) = split(option);
        let Some(entry) = options::find(name).filter(|entry| counts(entry)) else {
            return false;
        };
        let text = value.unwrap_or_default();
        let text = match entry.kind {
            Kind::Bool | Kind::Ssl if text.is_empty() && value.is_some() => return false,
            Kind::Bool if !ON.contains(&text) && !OFF.contains(&text) => return false,
            Kind::Ssl if !is_switch(text) && SslMode::parse(text).is_err() => return false,
            Kind::File => {
                self.config_file(text);
                return true;
            }
            _ => text.to_owned(),
        };
        self.set(entry, name, text);
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
        // With its end, no line is empty.
        let lines =
            bytes.split_inclusive(|byte| *byte == b'\n').flat_map(|line| line.chunks(LINE_MAX));
        for (number, line) in (1..).zip(lines) {
            let line = String::from_utf8_lossy(line);
            let Some((name, text)) = line.split_once('=') else { continue };
            let items = items(text);
            let open = items.is_none();
            self.setting(name, items.as_deref().unwrap_or_default());
            if open {
                self.preamble.stderr.push_str(&format!("unexpected EOL on line {number}\n"));
                return;
            }
        }
    }

    /// Takes one line of a config file.
    fn setting(&mut self, name: &str, items: &[String]) {
        let known = options::find(name).filter(|entry| entry.group != Group::Own);
        let Some(entry) = known else {
            self.preamble.after_header.push_str(&format!(
                "WARNING: Global option '{}' will not be exported, because the type is unknown\n",
                name.replace('-', "_")
            ));
            return;
        };
        if entry.of_test() || entry.kind == Kind::File {
            let note = format!("{name} in a config file has no effect, as in sysbench");
            self.notes.push(note);
            return;
        }
        let word = items.first().map(String::as_str).unwrap_or_default();
        let text = match entry.kind {
            Kind::Bool | Kind::Ssl if OFF.contains(&word) => {
                self.notes.push(format!("{name}={word} in a config file is on, as in sysbench"));
                "on".to_owned()
            }
            Kind::Bool => "on".to_owned(),
            Kind::List => items.join(","),
            _ => word.to_owned(),
        };
        self.set(entry, name, text);
    }

    /// Shows a word, unless it may be a password.
    pub(super) fn shown<'a>(&self, word: &'a str) -> &'a str {
        if self.hidden.as_deref() == Some(word) { "***" } else { word }
    }

    /// Refuses in sysbench's words.
    pub(super) fn refuse(&self, stdout: &str, stderr: &str) -> Refusal {
        let Preamble { before_header, stderr: said, .. } = &self.preamble;
        let stdout = format!("{before_header}{stdout}");
        Refusal { stdout, stderr: format!("{said}{stderr}"), status: 1 }
    }

    /// Refuses what loadgen cannot do.
    pub(super) fn cannot(&self, stdout: &str, why: &str) -> Refusal {
        self.refuse(stdout, &format!("loadgen: {why}\n"))
    }
}

/// Splits an option into its name and its value.
pub(super) fn split(option: &str) -> (&str, Option<&str>) {
    option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)))
}

fn is_switch(word: &str) -> bool {
    ON.contains(&word) || OFF.contains(&word)
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
