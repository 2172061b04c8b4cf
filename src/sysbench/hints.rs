//! sysbench's words on a native command are answered with the whole command in loadgen's.

use std::collections::BTreeSet;

use super::explain::quoted;
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

/// The values of `--rand-type`, and of `--distribution`.
const RAND_TYPE: [(&str, &str); 5] = [
    ("uniform", "uniform"),
    ("special", "special"),
    ("gaussian", "gaussian"),
    ("pareto", "pareto:0.2"),
    ("zipfian", "zipf-adjacent:0.8"),
];

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
    let verb = Verb::of(&words, loadgen)?;
    let mut said = Said { theirs: verb.theirs.clone(), ..Said::default() };
    let mut line = vec!["loadgen".to_owned(), verb.name.clone()];
    line.extend(verb.added.clone());
    for (flag, value) in &flags {
        line.extend(verb.said(flag, value.as_deref(), &mut said));
    }
    // sysbench ends at the first of the two; loadgen has one.
    if line.iter().any(|word| word == "--ops")
        && let Some(at) = line.iter().position(|word| word == "--time")
    {
        line.drain(at..at + 2);
        said.dropped.push("--time: a run ends after a time or after its ops".to_owned());
    }
    if said.theirs.is_empty() {
        return None;
    }
    let verbs = if said.theirs.len() == 1 { "is" } else { "are" };
    let what = format!("{} {verbs} sysbench's", said.theirs.join(", "));
    let what = said.dropped.iter().fold(what, |all, one| format!("{all}\n  {one}"));
    Some(Answer { what, command: line.join(" ") })
}

#[derive(Default)]
struct Said {
    theirs: Vec<String>,
    dropped: Vec<String>,
    /// Flags that are there already.
    known: BTreeSet<String>,
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

/// The verb of loadgen's that does what is meant.
struct Verb<'a> {
    name: String,
    command: &'a NativeVerb,
    /// Words that are not loadgen's.
    theirs: Vec<String>,
    /// What its verb needs besides.
    added: Vec<String>,
}

impl<'a> Verb<'a> {
    fn of(words: &[String], loadgen: &'a [NativeVerb]) -> Option<Verb<'a>> {
        let words: Vec<&String> = words.iter().filter(|word| *word != "sysbench").collect();
        let workload = words.iter().find_map(|word| workload(word));
        let does = words.iter().find(|word| COMMANDS.contains(&word.as_str()));
        let (mut added, mut theirs) = (Vec::new(), Vec::new());
        let name = match (&workload, does.map(|word| word.as_str())) {
            (Some(workload), Some("prepare")) => {
                if workload.schema != Schema::default() {
                    added.extend(["--schema".to_owned(), workload.schema.to_string()]);
                }
                "prepare".to_owned()
            }
            (Some(_), Some("cleanup")) => "cleanup".to_owned(),
            (Some(workload), Some(_) | None) => workload.name.clone(),
            (None, _) => (*words.first()?).clone(),
        };
        if let (Some(_), Some(does)) = (&workload, does) {
            theirs.push((*does).clone());
            match does.as_str() {
                "prewarm" | "warmup" => added.extend(["--warm".to_owned(), "pool".to_owned()]),
                "help" => added.push("--help".to_owned()),
                _ => {}
            }
        } else if workload.is_none() {
            // What else stands there is the verb's own.
            added.extend(words.iter().skip(1).map(|word| quoted(word)));
        }
        Some(Verb {
            command: loadgen.iter().find(|verb| verb.names.contains(&name))?,
            name,
            theirs,
            added,
        })
    }

    fn takes(&self, flag: &str) -> bool {
        self.command.flag(flag).is_some()
    }

    /// Says a flag in loadgen's words, and notes what is sysbench's.
    fn said(&self, flag: &str, value: Option<&str>, said: &mut Said) -> Vec<String> {
        // A password is in no output.
        if flag.starts_with("-p") || flag == "--password" {
            return vec!["--password".to_owned()];
        }
        let name = plain(flag.trim_start_matches('-'));
        let known = find(&name).filter(|_| flag.starts_with("--"));
        if self.takes(flag) && !matches!(known, Some(Flag(_) | Seconds(_))) {
            let flag = if flag.starts_with("--") { format!("--{name}") } else { flag.to_owned() };
            // A switch of a workload takes its value after `=` only.
            return match value {
                Some(value) if self.switch(&flag) => vec![format!("{flag}={value}")],
                Some(value) => vec![flag, quoted(value)],
                None => vec![flag],
            };
        }
        if known.is_some() && !self.takes(flag) {
            said.theirs.push(flag.to_owned());
        }
        let value = value.unwrap_or_default();
        let jobs = ["threads", "num-threads"].contains(&name.as_str()) && self.takes("--jobs");
        let becomes = match known {
            Some(Flag(_)) if jobs => Ok(vec!["--jobs".to_owned(), quoted(value)]),
            _ => becomes(known, value),
        };
        if name == "mysql-password" && !value.is_empty() {
            said.dropped.push(format!("--{name}: --password asks for it, a script sets MYSQL_PWD"));
        }
        match becomes {
            Ok(words) if words.first().is_none_or(|word| self.takes(word)) => {
                let new = words.first().is_none_or(|word| said.known.insert(word.clone()));
                if new { words } else { Vec::new() }
            }
            Ok(_) => {
                said.dropped.push(format!("--{name}: loadgen {} has no use for it", self.name));
                Vec::new()
            }
            Err(why) => {
                said.dropped.push(format!("--{name}: {why}"));
                Vec::new()
            }
        }
    }

    fn switch(&self, flag: &str) -> bool {
        self.command.flag(flag).is_some_and(|found| found.needs_equals)
    }
}

/// Gives loadgen's words for a flag of sysbench's with this value, or why there are none.
fn becomes(known: Option<Becomes>, value: &str) -> Result<Vec<String>, &'static str> {
    match known {
        None | Some(Same) => Err("is not known"),
        Some(Distribution) => {
            let ours = RAND_TYPE.iter().find(|(theirs, _)| *theirs == value);
            ours.map(|(_, ours)| vec!["--distribution".to_owned(), (*ours).to_owned()])
                .ok_or("no --distribution is like it")
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

/// Lists the flags of loadgen that hints name.
#[cfg(test)]
pub(crate) fn native_flags() -> impl Iterator<Item = &'static str> {
    let ours = |option: &options::Entry| match option.becomes {
        Flag(ours) | Seconds(ours) | Where(_, ours) => ours,
        Distribution => "--distribution",
        Same | Nothing(_) => "",
    };
    options::OPTIONS
        .iter()
        .map(ours)
        .flat_map(|ours| ours.split(' '))
        .filter(|word| word.starts_with("--"))
}
