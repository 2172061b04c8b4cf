//! Words of sysbench and of other load generators on a native command are answered with the whole command in
//! loadgen's.

use super::options::{self, Becomes, Entry, NAME, OFF, ON, OptionKind, plain};
use super::others::{self, Program};
use crate::report::quoted;
use crate::terms::units::parse_duration;
use crate::workload::{Schema, named};
use Becomes::{Flags, Nothing, Same};

/// A command of loadgen's, as hints need it.
pub(crate) struct NativeVerb {
    /// The first is shown.
    pub names: Vec<String>,
    pub flags: Vec<NativeFlag>,
}

pub(crate) struct NativeFlag {
    /// With dashes in front.
    pub names: Vec<String>,
    /// Its value is the next word; others take one after `=` only, if any.
    pub takes_value: bool,
}

impl NativeVerb {
    fn flag(&self, name: &str) -> Option<&NativeFlag> {
        let name = plain(name);
        self.flags.iter().find(|flag| flag.names.contains(&name))
    }
}

/// The commands of sysbench's scripts.
const COMMANDS: [&str; 6] = ["run", "prepare", "cleanup", "prewarm", "warmup", "help"];
const ASKED: &str = "--password asks for it, a script sets MYSQL_PWD";

/// A command line of another program's in loadgen's words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Which words are whose, and what becomes of those that have no counterpart.
    pub what: String,
    /// The whole command.
    pub command: String,
}

/// Says a command line in loadgen's words, unless all of it is loadgen's.
pub(crate) fn answer(args: &[String], loadgen: &[NativeVerb]) -> Option<Answer> {
    let (mut flags, mut words) = (Vec::new(), Vec::new());
    let mut args = args.iter().skip(1).map(String::as_str).peekable();
    let native = |flag| loadgen.iter().any(|verb| verb.flag(flag).is_some_and(|f| f.takes_value));
    while let Some(arg) = args.next() {
        if !arg.starts_with('-') {
            words.push(arg);
        } else if let Some(given) = arg.split_once('=') {
            flags.push(given);
        } else if let Some(given) = others::glued(arg).filter(|(flag, _)| !native(flag)) {
            flags.push(given);
        } else {
            // `--threads 8` is not sysbench's grammar, and typed all the same.
            let is_switch = |next: &str| ON.contains(&next) || OFF.contains(&next);
            let is_word = |next: &str| COMMANDS.contains(&next) || named(next).is_some();
            let takes = |next: &str| match option(arg) {
                Some(Entry { kind: OptionKind::Bool | OptionKind::Ssl, .. }) => is_switch(next),
                Some(Entry { becomes: Nothing(_), .. }) => {
                    is_switch(next) || next.parse::<f64>().is_ok()
                }
                Some(_) => !next.starts_with('-') && !is_word(next),
                None => {
                    let other = others::PROGRAMS.iter().find_map(|program| program.find(arg));
                    let other = other.is_some_and(|entry| entry.kind != OptionKind::Bool);
                    (native(arg) || other && !is_word(next)) && !next.starts_with('-')
                }
            };
            // A password may begin with a dash, or follow a misspelt flag: it is in no output.
            let password = arg.contains("pas") || arg.contains("pw");
            let value = args.next_if(|next| password && !is_word(next) || takes(next));
            flags.push((arg, value.unwrap_or_default()));
        }
    }
    words.retain(|word| *word != "sysbench");
    let program = words.first().and_then(|word| others::program(word));
    if program.is_some() {
        // What else stands there is that program's own.
        let asks = flags.iter().any(|(flag, _)| matches!(*flag, "--query" | "-q"));
        words = vec![if asks { "sql" } else { "point-select" }];
    }
    let mut said = NativeCommand::from_words(&words, loadgen)?;
    let foreign: Vec<&str> =
        flags.iter().map(|(flag, _)| *flag).filter(|flag| !said.takes(flag)).collect();
    said.programs = program.map_or_else(|| others::speakers(&foreign), |program| vec![program]);
    for (flag, value) in flags {
        said.say(flag, value);
    }
    if let Some(program) = program.filter(|_| said.theirs.is_empty()) {
        said.theirs.push((program.name.to_owned(), format!("{}'s", program.name)));
    }
    let command = said.command();
    let mut what = vec![whose(&said.theirs)];
    what.append(&mut said.dropped);
    (!said.theirs.is_empty()).then(|| Answer { what: what.join("\n  "), command })
}

/// Says whose the words are, those of one owner together.
fn whose(theirs: &[(String, String)]) -> String {
    let mut owners: Vec<&str> = theirs.iter().map(|(_, owner)| owner.as_str()).collect();
    let mut seen = std::collections::BTreeSet::new();
    owners.retain(|owner| seen.insert(*owner));
    let part = |owner: &str| {
        let words = theirs.iter().filter(|(_, of)| of == owner).map(|(word, _)| word.as_str());
        let words: Vec<&str> = words.collect();
        format!("{} {} {owner}", words.join(", "), if words.len() == 1 { "is" } else { "are" })
    };
    owners.into_iter().map(part).collect::<Vec<_>>().join("; ")
}

/// Finds sysbench's option of a flag.
fn option(flag: &str) -> Option<&'static Entry> {
    options::find(flag.strip_prefix("--")?)
}

/// A command in loadgen's words.
pub(super) struct NativeCommand<'a> {
    verb: &'a NativeVerb,
    /// Its name, and what follows: a flag is one with its value.
    pub words: Vec<String>,
    /// Words that are not loadgen's, each with its owner.
    theirs: Vec<(String, String)>,
    /// Whose words these are, beside sysbench's.
    programs: Vec<&'static Program>,
    /// Words without a counterpart, and the reasons.
    pub dropped: Vec<String>,
}

impl<'a> NativeCommand<'a> {
    /// Finds the verb that does what is meant.
    pub(super) fn from_words(
        words: &[&str],
        loadgen: &'a [NativeVerb],
    ) -> Option<NativeCommand<'a>> {
        let workload = words.iter().find_map(|word| named(word));
        let does = words.iter().copied().find(|word| COMMANDS.contains(word));
        let does = does.filter(|_| workload.is_some());
        let name = match (&workload, does) {
            (Some(_), Some(verb @ ("prepare" | "cleanup"))) => verb,
            (Some(_), Some("prewarm" | "warmup")) => "point-select",
            (Some(workload), _) => &*workload.name,
            (None, _) => words.first()?,
        };
        let verb = loadgen.iter().find(|verb| verb.names.iter().any(|known| known == name))?;
        let mut ours = vec![name.to_owned()];
        match (&workload, does) {
            // What else stands there is the verb's own.
            (None, _) => ours.extend(words[1..].iter().map(|word| quoted(word))),
            (Some(workload), Some("prepare")) if workload.schema != Schema::default() => {
                ours.push(format!("--schema {}", workload.schema));
            }
            (_, Some("prewarm" | "warmup")) => ours.push("--warm pool".to_owned()),
            (_, Some("help")) => ours.push("--help".to_owned()),
            _ => {}
        }
        let theirs = does.map(|word| (word.to_owned(), format!("{NAME}'s"))).into_iter().collect();
        Some(NativeCommand { verb, words: ours, theirs, programs: Vec::new(), dropped: Vec::new() })
    }

    pub(super) fn takes(&self, flag: &str) -> bool {
        self.verb.flag(flag_of(flag)).is_some()
    }

    /// Says a flag in loadgen's words, and notes what is another program's.
    pub(super) fn say(&mut self, flag: &str, value: &str) {
        // A password is in no output.
        if flag.starts_with("-p") || flag == "--password" {
            return self.words.push("--password".to_owned());
        }
        // Other clients' -d is a time; what is none is meant for -D.
        if flag == "-d" && !value.is_empty() && parse_duration(value).is_err() {
            self.theirs.push((flag.to_owned(), "no flag here; the database is -D".to_owned()));
            return self.words.push(format!("--database {}", quoted(value)));
        }
        let option = option(flag);
        // A number without a unit is sysbench's, where both have a flag of this name.
        let number = value.bytes().all(|b| b.is_ascii_digit());
        let theirs = option.filter(|option| number && matches!(option.becomes, Flags(_)));
        let mut word = option.map_or_else(|| plain(flag), |option| format!("--{}", option.key()));
        if let Some(ours) = self.verb.flag(&word).filter(|_| theirs.is_none()) {
            let renamed = (word != plain(flag)).then(|| (flag.to_owned(), format!("{NAME}'s")));
            self.theirs.extend(renamed);
            self.unsay(&word);
            if !value.is_empty() {
                word += if ours.takes_value { " " } else { "=" };
                word += &quoted(value);
            }
            return self.words.push(word);
        }
        let known = option.map_or_else(|| self.others(flag), |option| vec![(option, NAME)]);
        let Some((option, _)) = known.first().copied() else {
            return self.dropped.push(format!("{flag}: is not known"));
        };
        if !self.takes(flag) && !matches!(option.becomes, Same) {
            let owners = known.iter().map(|(_, name)| format!("{name}'s"));
            self.theirs.push((flag.to_owned(), owners.collect::<Vec<_>>().join(" and ")));
        }
        let another =
            known.iter().find_map(|(other, name)| match (other.becomes, option.becomes) {
                (Flags(ours), Flags(first)) if ours != first => {
                    Some(format!("{flag}: {name}'s is --{}", flag_of(ours)))
                }
                _ => None,
            });
        self.dropped.extend(another);
        let said = self.becomes(option, value);
        if let Flags(ours) = option.becomes {
            ours.split(", ").for_each(|words| self.unsay(&format!("--{words}")));
        }
        self.words.extend(said.iter().flatten().cloned());
        let asked = said.as_ref().is_ok_and(|words| words == &["--password"]);
        let why = said.err().or_else(|| asked.then(|| ASKED.to_owned()));
        self.dropped.extend(why.map(|why| format!("{flag}: {why}")));
    }

    /// Finds what a flag means to other programs: those that are spoken, else any.
    fn others(&self, flag: &str) -> Vec<(&'static Entry, &'static str)> {
        let found = |program: &'static Program| Some((program.find(flag)?, program.name));
        let spoken: Vec<_> = self.programs.iter().filter_map(|program| found(program)).collect();
        if spoken.is_empty() { others::PROGRAMS.iter().filter_map(found).collect() } else { spoken }
    }

    /// Takes back what is said again: sysbench takes what is said last.
    fn unsay(&mut self, words: &str) {
        self.words.retain(|word| flag_of(word) != flag_of(words));
    }

    /// Gives the flags that an option with this value becomes, or why there are none.
    fn becomes(&self, option: &Entry, value: &str) -> Result<Vec<String>, String> {
        let (key, usual) = (option.key(), option.is_usual(value));
        let own = format!("{key} @");
        let ours = match option.becomes {
            Nothing(why) => return Err(why.to_owned()),
            Same => &own,
            Flags("clients @") if self.takes("--jobs") => "jobs @",
            Flags(ours) => ours,
        };
        let value = match (key, value) {
            ("rand-type", "pareto") => "pareto:0.2",
            ("rand-type", "zipfian") => "zipf-adjacent:0.8",
            ("db-ps-mode", "auto") => "prepared",
            ("db-ps-mode", "disable") => "text",
            ("mysql-ssl", word) if ON.contains(&word) => "REQUIRED",
            ("mysql-ssl", "DISABLED") => "",
            ("mysql-ssl", word) if OFF.contains(&word) => "",
            // No limit is sysbench's 0, and loadgen's default but for the warmup.
            (_, "0")
                if matches!(option.kind, OptionKind::Int | OptionKind::Count)
                    && key != "warmup-time" =>
            {
                ""
            }
            _ => value,
        };
        let flags =
            ours.split(", ").map(|words| format!("--{}", words.replace('@', &quoted(value))));
        let flags: Vec<String> = flags.collect();
        let empty = value.is_empty() && option.kind != OptionKind::Bool;
        let none = empty || usual && !ours.contains('@');
        match self.takes(flag_of(&flags[0])) {
            true if !none => Ok(flags),
            false if !none && !usual => Err(format!("loadgen {} has no use for it", self.words[0])),
            _ => Ok(Vec::new()),
        }
    }

    /// Gives the whole command.
    pub(super) fn command(&mut self) -> String {
        // sysbench ends at the first of the two; loadgen has one.
        let at = |flag: &str| self.words.iter().position(|word| flag_of(word) == flag);
        if let (Some(_), Some(time)) = (at("--ops"), at("--time")) {
            self.words.remove(time);
            self.dropped.push("--time: a run ends after a time or after its ops".to_owned());
        }
        format!("loadgen {}", self.words.join(" "))
    }
}

/// Gives a flag without its value.
fn flag_of(word: &str) -> &str {
    word.split([' ', '=']).next().unwrap_or(word)
}
