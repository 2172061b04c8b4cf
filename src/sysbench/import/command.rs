//! Command lines of sysbench's, as shells and scripts show them above an output.

use std::collections::BTreeMap;

use super::super::arguments::{script_of, test_of};
use super::super::options::{self, Entry, Group, OPTIONS, OptionKind, OptionValues};
use super::super::plan;
use super::super::scripts::OLD;
use super::super::settings::Test;
use super::lines::Line;
use crate::error::{VALUE_MAX, clip};
use crate::plan::value::label;
use crate::workload::named;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Verb {
    Prepare,
    #[default]
    Run,
    Cleanup,
    Other,
}

const VERBS: [(&str, Verb); 6] = [
    ("prepare", Verb::Prepare),
    ("run", Verb::Run),
    ("cleanup", Verb::Cleanup),
    ("prewarm", Verb::Other),
    ("warmup", Verb::Other),
    ("help", Verb::Other),
];
const PROGRAM: &str = "sysbench";
const SCRIPT: &str = ".lua";
/// Longest command, bytes, over all its lines: systems take no longer word.
const BYTES_MAX: usize = 128 << 10;
const LINES_MAX: usize = 100;
/// Words of a line that may be the program: users, images and directories have its name, too.
const PROGRAMS_MAX: usize = 16;
/// Options that decide on an operation and its cost, beside those of the tests.
const OF_WORK: &str = "validate db-driver db-ps-mode mysql-ssl mysql-ssl-cipher mysql-compression \
                       mysql-compression-algorithms mysql-ignore-errors mysql-dry-run config-file";

#[derive(Debug, Clone, Default)]
pub(super) struct Command {
    pub end: usize,
    pub verb: Verb,
    test: Option<String>,
    values: OptionValues,
    /// Options of a script that sysbench does not have.
    others: BTreeMap<String, String>,
    /// Options with a value that a shell fills in.
    hidden: Vec<String>,
    /// True if a shell adds words.
    is_cut: bool,
}

pub(crate) fn native(test: &str) -> Option<String> {
    Some(named(if test == "select" { "point-select" } else { test })?.name)
}

pub(super) fn commands(lines: &[Line]) -> Vec<Command> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let command = programs(lines[at].1).find_map(|start| command(&lines[at..], start));
        let command = command.or_else(|| Some((unreadable_command(lines[at])?, 1)));
        at += command.as_ref().map_or(1, |(_, count)| *count);
        found.extend(command.map(|(command, _)| command));
    }
    found
}

fn programs(line: &str) -> impl Iterator<Item = usize> {
    let program = |(at, name): (usize, &str)| {
        let is_begin = line[..at].chars().next_back().is_none_or(may_precede_name);
        let version = |c: char| c.is_ascii_digit() || ".-_".contains(c);
        let rest = line[at + name.len()..].trim_start_matches(version);
        let is_end = rest.is_empty() || rest.starts_with(char::is_whitespace);
        (is_begin && is_end).then_some(line.len() - rest.len())
    };
    // Scripts may be programs, too.
    let script = |(at, _): (usize, &str)| {
        let start =
            line[..at].char_indices().rev().find(|(_, c)| may_precede_name(*c) && *c != '/');
        let start = start.map_or(0, |(at, c)| at + c.len_utf8());
        let is_end = line[at + SCRIPT.len()..].starts_with(char::is_whitespace);
        (is_end && !line[start..].starts_with('-')).then_some(start)
    };
    let programs = line.match_indices(PROGRAM).filter_map(program);
    let scripts = line.match_indices(SCRIPT).filter_map(script).take(1);
    let short = if line.len() < BYTES_MAX { PROGRAMS_MAX } else { 0 };
    programs.chain(scripts).take(short)
}

fn may_precede_name(c: char) -> bool {
    c.is_whitespace() || "/'\"`(".contains(c)
}

/// Reads a command whose words begin in the first line; also returns its number of lines.
fn command(lines: &[Line], start: usize) -> Option<(Command, usize)> {
    let first = lines[0].1;
    let mut text = first[start..].to_owned();
    let (mut count, mut found) = (1, None);
    while count <= LINES_MAX && text.len() < BYTES_MAX {
        let goes_on = text.ends_with('\\');
        if goes_on {
            text.pop();
        } else {
            found = read(&words(&text, quote(&first[..start])), lines[count - 1].0);
        }
        let (end, _) = lines[count - 1];
        let next = lines.get(count).filter(|(number, _)| *number == end + 1);
        let next = next.map(|(_, next)| next.strip_prefix("> ").unwrap_or(next).trim());
        // A line may be broken without a mark.
        let follows = |next: &str| next.starts_with("--") || VERBS.iter().any(|of| of.0 == next);
        match next {
            Some(next) if found.is_none() && (goes_on || follows(next)) => {
                text = text + " " + next;
                count += 1;
            }
            // Or within an option's name.
            Some(next) if found.is_none() && text.ends_with('-') => {
                text += next;
                count += 1;
            }
            _ => break,
        }
    }
    Some((found?, count))
}

/// Makes a command of an unreadable line with options: an older one must not describe the next run.
fn unreadable_command((number, line): Line) -> Option<Command> {
    let start = programs(line).next()?;
    let words = words(&line[start..], quote(&line[..start]));
    let options = words.iter().filter(|word| word.starts_with("--") && word.contains('='));
    (options.count() > 1).then(|| Command { end: number, is_cut: true, ..Command::default() })
}

fn quote(text: &str) -> Option<char> {
    text.chars().fold(None, |open, c| match (open, c) {
        (None, '\'' | '"' | '`') => Some(c),
        (Some(quote), c) if c == quote => None,
        _ => open,
    })
}

/// Splits a command line as a shell does, up to the command's end or the surrounding quote's.
fn words(text: &str, around: Option<char>) -> Vec<String> {
    let (mut words, mut word, mut open) = (Vec::new(), None::<String>, None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (open, c) {
            (_, c) if Some(c) == around => break,
            (Some(quote), c) if c == quote => open = None,
            (None, '\'' | '"') => {
                open = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '<' | '>') => {
                // Drops the number of a redirection.
                word.take_if(|word| word.chars().all(|c| c.is_ascii_digit()));
                break;
            }
            (None, ';' | '|' | '&' | ')' | '`') => break,
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn is_hidden(word: &str) -> bool {
    word.contains(['$', '`']) || word.contains("{{")
}

/// Reads the words after the program; None for no command line.
fn read(words: &[String], end: usize) -> Option<Command> {
    // An image may have the program's name.
    let again = |word: &&String| word.rsplit('/').next() == Some(PROGRAM);
    let words = words.iter().skip_while(again).map(String::as_str);
    let (given, plain): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with('-'));
    let is_verb = |word: &&str| VERBS.iter().find(|(known, _)| known == word);
    let (_, verb) = plain.last().and_then(is_verb)?;
    let mut command = Command { end, verb: *verb, ..Command::default() };
    let before = &plain[..plain.len() - 1];
    // Words without dashes are options, or the test if nothing else is.
    let tests: Vec<&str> = before.iter().copied().filter(|word| !is_hidden(word)).collect();
    command.is_cut = before.len() > tests.len();
    if tests.len() > 1 {
        return None;
    }
    command.test = tests.first().map(|test| (*test).to_owned());
    for word in &given {
        command.option(word.trim_start_matches('-'));
    }
    // Prose has no options.
    let is_sure = !given.is_empty() || command.is_cut || command.workload().is_some();
    is_sure.then_some(command)
}

impl Command {
    fn option(&mut self, text: &str) {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let name = options::with_dashes(name);
        let entry = options::find(&name);
        if is_hidden(value) {
            self.hidden.push(entry.map_or(name.clone(), |entry| entry.key().to_owned()));
        }
        match entry {
            _ if name == "test" => self.test = Some(value.to_owned()),
            Some(entry) => self.values.set(entry, value.to_owned()),
            None if is_hidden(&name) => self.is_cut = true,
            None if may_be_secret(&name, value) => {}
            None => drop(self.others.insert(name, value.to_owned())),
        }
    }

    /// Returns whether it may be that of a run with this many threads.
    pub(super) fn fits(&self, clients: u32) -> bool {
        let given =
            ["threads", "num-threads"].into_iter().filter(|name| self.values.is_given(name));
        let mut given = given.filter_map(|name| self.values.text(name).parse::<u32>().ok());
        // The old name wins over the new one.
        given.next_back().is_none_or(|threads| threads == clients)
    }

    fn stock(&self) -> Option<Test> {
        let test = test_of(self.test.as_deref()?)?;
        let mode = self.values.text("oltp-test-mode");
        Some(match test {
            Test::Oltp if mode == "simple" => Test::PointSelect,
            Test::Oltp if mode != "complex" => return None,
            Test::Oltp if self.values.on("oltp-read-only") => Test::ReadOnly,
            Test::Oltp if self.values.on("oltp-write-only") => Test::WriteOnly,
            Test::Oltp => Test::ReadWrite,
            test => test,
        })
    }

    pub(super) fn workload(&self) -> Option<String> {
        let stem = self.stem()?;
        match self.stock() {
            Some(test) => native(script_of(test)),
            None if stem == OLD => None,
            None => native(stem),
        }
    }

    /// Returns the name of a script that loadgen does not know.
    pub(super) fn script(&self) -> Option<String> {
        let stem = self.stem().filter(|_| self.workload().is_none())?;
        label(stem).ok()
    }

    fn stem(&self) -> Option<&str> {
        let name = self.test.as_deref()?.rsplit('/').next()?;
        Some(name.strip_suffix(SCRIPT).unwrap_or(name)).filter(|stem| !stem.is_empty())
    }

    /// Returns the number of tables or rows; sysbench's default for a stock test.
    pub(super) fn number(&self, option: &str) -> Option<u64> {
        let stock = self.stock().filter(|_| self.verb == Verb::Run);
        match stock {
            Some(Test::RandomPoints | Test::RandomRanges) if option == "tables" => return Some(1),
            _ if self.hidden.iter().any(|hidden| hidden == option) => return None,
            _ if self.values.is_given(option) => {}
            None | Some(Test::BulkInsert) => return None,
            _ if self.is_cut || self.values.is_given("config-file") => return None,
            Some(_) => {}
        }
        Some(self.values.count(option)).filter(|number| *number > 0)
    }

    pub(super) fn distribution(&self) -> Option<String> {
        let keys = OPTIONS.iter().filter(|entry| draws(entry)).map(Entry::key);
        let given: Vec<&str> = keys.filter(|key| self.values.is_given(key)).collect();
        if given.is_empty() || self.hidden.iter().any(|key| given.contains(&key.as_str())) {
            return None;
        }
        self.values.distribution().map(|known| known.to_string())
    }

    pub(super) fn is_text(&self) -> bool {
        self.values.text("db-ps-mode") == "disable"
    }

    pub(super) fn unreadable_options(&self) -> Vec<String> {
        let of_work = |name: &String| options::find(name).is_none_or(of_work);
        let names = self.hidden.iter().filter(|name| of_work(name)).map(|name| format!("--{name}"));
        names.chain(self.is_cut.then(|| "options".to_owned())).collect()
    }

    /// Lists options by loadgen's names where the workload has them, of others changed ones; None where some are hidden.
    pub(super) fn options(&self) -> Option<BTreeMap<String, String>> {
        if self.is_cut {
            return None;
        }
        let mut all = BTreeMap::new();
        // These have fields of their own, or follow.
        let mut known =
            vec!["range-selects", "oltp-read-only", "oltp-write-only", "oltp-test-mode"];
        let stock = self.stock().and_then(|test| Some((test, named(script_of(test))?)));
        if let Some((test, workload)) = &stock {
            known.extend(["tables", "table-size"]);
            let values = plan::options(workload, *test, &self.values);
            all.extend(values.into_iter().map(|(name, value)| (name, value.to_string())));
            // Each statement draws its own table.
            all.remove("table_each");
        }
        if self.distribution().is_some() {
            known.extend(OPTIONS.iter().filter(|entry| draws(entry)).map(Entry::key));
        }
        for entry in OPTIONS.iter().filter(|entry| of_work(entry)) {
            let (key, value) = (entry.key(), self.value(entry));
            let name = key.replace('-', "_");
            let is_told = all.contains_key(&name) || stock.is_some() && known.contains(&key);
            if is_hidden(&value) || !is_told && !entry.is_default(&value.to_ascii_lowercase()) {
                all.insert(name, clip(&value, VALUE_MAX));
            }
        }
        let others = self.others.iter();
        all.extend(others.map(|(name, value)| (name.replace('-', "_"), clip(value, VALUE_MAX))));
        Some(all)
    }

    fn value(&self, entry: &Entry) -> String {
        let text = self.values.text(entry.key());
        match entry.kind {
            _ if is_hidden(text) => text.to_owned(),
            OptionKind::Bool if self.values.on(entry.key()) => "on".to_owned(),
            OptionKind::Bool => "off".to_owned(),
            OptionKind::Double => self.values.number(entry.key()).to_string(),
            _ => text.to_owned(),
        }
    }
}

/// Returns true if an option of a script may be a password, or an address with one.
fn may_be_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let parts =
        ["pas", "pw", "secret", "token", "api_key", "api-key", "apikey", "auth", "credential"];
    // NAME:SECRET@HOST
    let in_address = value.rsplit_once('@').is_some_and(|(account, _)| account.contains(':'));
    in_address || parts.iter().any(|part| name.contains(part))
}

fn of_work(entry: &Entry) -> bool {
    entry.is_of_test() || draws(entry) || OF_WORK.split(' ').any(|known| known == entry.key())
}

fn draws(entry: &Entry) -> bool {
    entry.group == Group::Random && entry.key() != "rand-seed"
}
