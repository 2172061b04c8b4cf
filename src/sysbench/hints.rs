//! sysbench's words on a native command are answered with the whole command in loadgen's.

use std::collections::BTreeSet;

use super::options::{self, Becomes, Group, OFF, ON, plain};
use crate::workload::{Schema, Workload, builtin};
use Becomes::{Distribution, Flag, Nothing, Same, Seconds, Where};

/// A command of loadgen's, as hints need it.
pub(crate) struct NativeVerb {
    /// The first is shown.
    pub names: Vec<String>,
    pub flags: Vec<NativeFlag>,
}

pub(crate) struct NativeFlag {
    /// With dashes in front.
    pub names: Vec<String>,
    pub takes_value: bool,
    /// A value follows `=` only.
    pub needs_equals: bool,
}

impl NativeVerb {
    fn flag(&self, name: &str) -> Option<&NativeFlag> {
        let other = plain(name);
        self.flags
            .iter()
            .find(|flag| flag.names.iter().any(|known| known == name || *known == other))
    }
}

/// The commands of sysbench's scripts.
const COMMANDS: [&str; 6] = ["run", "prepare", "cleanup", "prewarm", "warmup", "help"];

/// A command line of sysbench's in loadgen's words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Which words are sysbench's, and what becomes of those that have no counterpart.
    pub what: String,
    /// The whole command.
    pub command: String,
}

/// Says a command line in loadgen's words, unless none of it is sysbench's.
pub(crate) fn answer(args: &[String], loadgen: &[NativeVerb]) -> Option<Answer> {
    let (flags, words) = split(args, loadgen);
    let mut said = Said::of(&words, loadgen)?;
    for (flag, value) in &flags {
        said.say(flag, value.as_deref());
    }
    let command = said.command();
    if said.theirs.is_empty() {
        return None;
    }
    let verbs = if said.theirs.len() == 1 { "is" } else { "are" };
    let what = format!("{} {verbs} sysbench's", said.theirs.join(", "));
    let what = said.dropped.iter().fold(what, |all, one| format!("{all}\n  {one}"));
    Some(Answer { what, command })
}

type Given = (String, Option<String>);

/// Splits the words into flags with their values, and what stands alone.
fn split(args: &[String], loadgen: &[NativeVerb]) -> (Vec<Given>, Vec<String>) {
    let (mut flags, mut words) = (Vec::new(), Vec::new());
    let mut args = args.iter().skip(1).peekable();
    while let Some(arg) = args.next() {
        if !arg.starts_with('-') || arg == "-" {
            words.push(arg.clone());
            continue;
        }
        if let Some((flag, value)) = arg.split_once('=') {
            flags.push((flag.to_owned(), Some(value.to_owned())));
            continue;
        }
        // `--threads 8` is not sysbench's grammar, and typed all the same.
        let theirs = arg.strip_prefix("--").and_then(|name| find(&plain(name)));
        let short = |next: &str| ON.contains(&next) || OFF.contains(&next) || is_digits(next);
        let follows = |next: &str| match theirs {
            Some(Nothing(_)) => short(next),
            // A password may begin with a dash: it is in no output.
            Some(_) if plain(arg.trim_start_matches('-')) == "mysql-password" => true,
            Some(_) => !next.starts_with('-') && !is_word(next),
            None => takes_value(arg, loadgen) && !next.starts_with('-'),
        };
        let value = args.next_if(|next| follows(next)).cloned();
        flags.push((arg.clone(), value));
    }
    (flags, words)
}

fn takes_value(flag: &str, loadgen: &[NativeVerb]) -> bool {
    loadgen
        .iter()
        .any(|verb| verb.flag(flag).is_some_and(|found| found.takes_value && !found.needs_equals))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_word(word: &str) -> bool {
    COMMANDS.contains(&word) || workload(word).is_some()
}

/// Finds what becomes of an option; None for those that loadgen has, too.
fn find(name: &str) -> Option<Becomes> {
    let option = options::find(name).filter(|option| option.group != Group::Own)?;
    match option.becomes {
        Same => None,
        Flag(ours) if option.of_test() && ours[2..] == plain(name) => None,
        becomes => Some(becomes),
    }
}

/// Finds the workload of a name, or of a script's path.
fn workload(word: &str) -> Option<Workload> {
    let name = word.rsplit('/').next()?.trim_end_matches(".lua");
    let is = |w: &Workload| w.name == name || w.aliases.iter().any(|alias| alias == name);
    builtin().into_iter().find(is)
}

/// A command in loadgen's words.
pub(super) struct Said<'a> {
    verb: &'a NativeVerb,
    /// Its name, and what follows.
    pub words: Vec<String>,
    /// Words that are sysbench's.
    theirs: Vec<String>,
    /// What has no counterpart, and why.
    pub dropped: Vec<String>,
    /// Flags that are there already.
    known: BTreeSet<String>,
}

impl<'a> Said<'a> {
    /// Finds the verb that does what is meant.
    pub(super) fn of(words: &[String], loadgen: &'a [NativeVerb]) -> Option<Said<'a>> {
        let words: Vec<&String> = words.iter().filter(|word| *word != "sysbench").collect();
        let workload = words.iter().find_map(|word| workload(word));
        let does = words.iter().map(|word| word.as_str()).find(|word| COMMANDS.contains(word));
        let (mut added, mut theirs) = (Vec::new(), Vec::new());
        let name = match (&workload, does) {
            (Some(_), Some(verb @ ("prepare" | "cleanup"))) => verb,
            (Some(workload), _) => &workload.name,
            (None, _) => words.first()?,
        };
        match (&workload, does) {
            (Some(workload), Some("prepare")) if workload.schema != Schema::default() => {
                added.extend(["--schema".to_owned(), workload.schema.to_string()]);
            }
            (Some(_), Some("prewarm" | "warmup")) => {
                added.extend(["--warm", "pool"].map(str::to_owned));
            }
            (Some(_), Some("help")) => added.push("--help".to_owned()),
            // What else stands there is the verb's own.
            (None, _) => added.extend(words.iter().skip(1).map(|word| quoted(word))),
            _ => {}
        }
        theirs.extend(does.filter(|_| workload.is_some()).map(str::to_owned));
        let verb = loadgen.iter().find(|verb| verb.names.iter().any(|known| known == name))?;
        added.insert(0, name.to_owned());
        Some(Said { verb, words: added, theirs, dropped: Vec::new(), known: BTreeSet::new() })
    }

    pub(super) fn takes(&self, flag: &str) -> bool {
        self.verb.flag(flag).is_some()
    }

    /// Says a flag of loadgen's if the verb takes it and there is a value; no other value follows.
    pub(super) fn exact(&mut self, flag: &str, value: &str) {
        if !value.is_empty() && self.takes(flag) {
            self.words.extend([flag.to_owned(), quoted(value)]);
        }
        self.known.insert(flag.to_owned());
    }

    /// Says a flag in loadgen's words, and notes what is sysbench's.
    pub(super) fn say(&mut self, flag: &str, value: Option<&str>) {
        // A password is in no output.
        if flag.starts_with("-p") || flag == "--password" {
            self.words.push("--password".to_owned());
            return;
        }
        let name = plain(flag.trim_start_matches('-'));
        let known = find(&name).filter(|_| flag.starts_with("--"));
        if self.takes(flag) && !matches!(known, Some(Flag(_) | Seconds(_))) {
            let flag = if flag.starts_with("--") { format!("--{name}") } else { flag.to_owned() };
            match value {
                _ if self.known.contains(&flag) => {}
                // A switch of a workload takes its value after `=` only.
                Some(value) if self.verb.flag(&flag).is_some_and(|found| found.needs_equals) => {
                    self.words.push(format!("{flag}={value}"));
                }
                _ => self.words.extend([flag].into_iter().chain(value.map(quoted))),
            }
            return;
        }
        if known.is_some() && !self.takes(flag) {
            self.theirs.push(flag.to_owned());
        }
        let value = value.unwrap_or_default();
        if name == "mysql-password" && !value.is_empty() {
            self.dropped.push(format!("--{name}: --password asks for it, a script sets MYSQL_PWD"));
        }
        let jobs = ["threads", "num-threads"].contains(&name.as_str()) && self.takes("--jobs");
        let becomes = match known {
            Some(Flag(_)) if jobs => Ok(vec!["--jobs".to_owned(), quoted(value)]),
            None if options::find(&name).is_some() => Ok(vec![format!("--{name}")]),
            _ => becomes(known, value),
        };
        match becomes {
            Ok(words) if words.first().is_none_or(|word| self.known.contains(word)) => {}
            Ok(words) if self.takes(&words[0]) => {
                self.known.insert(words[0].clone());
                self.words.extend(words);
            }
            Ok(_) => {
                let verb = &self.words[0];
                self.dropped.push(format!("--{name}: loadgen {verb} has no use for it"));
            }
            Err(why) => self.dropped.push(format!("--{name}: {why}")),
        }
    }

    /// Gives the whole command.
    pub(super) fn command(&mut self) -> String {
        // sysbench ends at the first of the two; loadgen has one.
        if self.words.iter().any(|word| word == "--ops")
            && let Some(at) = self.words.iter().position(|word| word == "--time")
        {
            self.words.drain(at..at + 2);
            self.dropped.push("--time: a run ends after a time or after its ops".to_owned());
        }
        format!("loadgen {}", self.words.join(" "))
    }
}

/// Writes a word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:,=%@+".contains(&b);
    let bare = !word.is_empty() && word.bytes().all(plain);
    if bare { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Gives loadgen's words for a flag of sysbench's with this value, or why there are none.
fn becomes(known: Option<Becomes>, value: &str) -> Result<Vec<String>, &'static str> {
    match known {
        None | Some(Same) => Err("is not known"),
        Some(Distribution) => {
            let ours = match value {
                "uniform" | "special" | "gaussian" => value,
                "pareto" => "pareto:0.2",
                "zipfian" => "zipf-adjacent:0.8",
                _ => return Err("no --distribution is like it"),
            };
            Ok(["--distribution", ours].map(str::to_owned).to_vec())
        }
        Some(Nothing(why)) => Err(why),
        Some(Where(of, ours)) => {
            let is = if of.is_empty() { !value.is_empty() } else { of.contains(&value) };
            Ok(if is { ours.split(' ').map(str::to_owned).collect() } else { Vec::new() })
        }
        // No limit is sysbench's 0, and loadgen's default but for times.
        Some(Flag(_) | Seconds(_))
            if value == "0" && !matches!(known, Some(Seconds("--warmup"))) =>
        {
            Ok(Vec::new())
        }
        Some(Flag(ours)) => Ok(vec![ours.to_owned(), quoted(value)]),
        Some(Seconds(ours)) => {
            let unit = if is_digits(value) { "s" } else { "" };
            Ok(vec![ours.to_owned(), quoted(value) + unit])
        }
    }
}
