//! Answers words of sysbench and other load generators on a native command with the whole command in
//! loadgen's words.

use super::options::{self, Becomes, Entry, NAME, OFF, ON, OptionKind, with_dashes};
use super::others::{self, Program};
use crate::report::quoted;
use crate::terms::units::parse_duration;
use crate::workload::{Schema, named};
use Becomes::{Flags, Nothing, Same};

pub(crate) struct NativeVerb {
    /// The first is shown.
    pub names: Vec<String>,
    pub flags: Vec<NativeFlag>,
}

pub(crate) struct NativeFlag {
    /// With dashes in front.
    pub names: Vec<String>,
    /// True if the next word is its value; others take one after `=` only, if any.
    pub takes_value: bool,
}

impl NativeVerb {
    fn flag(&self, name: &str) -> Option<&NativeFlag> {
        let name = with_dashes(name);
        self.flags.iter().find(|flag| flag.names.contains(&name))
    }
}

const COMMANDS: [&str; 6] = ["run", "prepare", "cleanup", "prewarm", "warmup", "help"];
const ASKED: &str = "--password asks for it, a script sets MYSQL_PWD";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The foreign words by owner, and the ones without a counterpart.
    pub what: String,
    pub command: String,
}

/// Translates a command line, unless all of it is loadgen's.
pub(crate) fn translate(args: &[String], loadgen: &[NativeVerb]) -> Option<Answer> {
    let (mut flags, mut words) = (Vec::new(), Vec::new());
    // Words behind `--` are a script's own.
    let (args, own) = args.split_at(args.iter().position(|arg| arg == "--").unwrap_or(args.len()));
    let mut args = args.iter().skip(1).map(String::as_str).peekable();
    while let Some(arg) = args.next() {
        if !arg.starts_with('-') {
            words.push(arg);
        } else if let Some(given) = arg.split_once('=') {
            flags.push(given);
        } else if let Some(given) =
            others::split_glued(arg).filter(|(flag, _)| !is_valued(flag, loadgen))
        {
            flags.push(given);
        } else {
            // A password may begin with a dash.
            let password = options::may_be_password(arg);
            let value =
                args.next_if(|next| password && !is_verb(next) || takes_word(arg, next, loadgen));
            flags.push((arg, value.unwrap_or_default()));
        }
    }
    words.retain(|word| *word != "sysbench");
    let program = words.first().and_then(|word| others::program(word));
    if program.is_some() {
        // Any other word belongs to that program.
        let asks = flags.iter().any(|(flag, _)| matches!(*flag, "--query" | "-q"));
        words = vec![if asks { "sql" } else { "point-select" }];
    }
    let mut command_line = NativeCommand::from_words(&words, loadgen)?;
    let foreign: Vec<&str> =
        flags.iter().map(|(flag, _)| *flag).filter(|flag| !command_line.takes(flag)).collect();
    command_line.programs =
        program.map_or_else(|| others::programs_with(&foreign), |program| vec![program]);
    for (flag, value) in flags {
        command_line.add_flag(flag, value);
    }
    if let Some(program) = program.filter(|_| command_line.theirs.is_empty()) {
        command_line.theirs.push((program.name.to_owned(), format!("{}'s", program.name)));
    }
    // Output never holds a password: its name stands in front of it, or in the word before.
    let mut is_secret = false;
    let own = own.iter().map(|word| {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let hides = options::may_be_password(name);
        if std::mem::replace(&mut is_secret, hides && value.is_empty()) {
            return " ...".to_owned();
        }
        if hides && !value.is_empty() {
            format!(" {name}=...")
        } else {
            format!(" {}", quoted(word))
        }
    });
    let command: String = std::iter::once(command_line.command()).chain(own).collect();
    let mut what = vec![list_by_owner(&command_line.theirs)];
    what.append(&mut command_line.dropped);
    (!command_line.theirs.is_empty()).then(|| Answer { what: what.join("\n  "), command })
}

fn is_valued(flag: &str, loadgen: &[NativeVerb]) -> bool {
    loadgen.iter().any(|verb| verb.flag(flag).is_some_and(|flag| flag.takes_value))
}

fn is_verb(word: &str) -> bool {
    COMMANDS.contains(&word) || named(word).is_some()
}

/// `--threads 8` is not sysbench's grammar, but typed all the same.
fn takes_word(flag: &str, next: &str, loadgen: &[NativeVerb]) -> bool {
    let is_switch = ON.contains(&next) || OFF.contains(&next);
    match option(flag) {
        Some(Entry { kind: OptionKind::Bool | OptionKind::Ssl, .. }) => is_switch,
        Some(Entry { becomes: Nothing(_), .. }) => is_switch || next.parse::<f64>().is_ok(),
        Some(_) => !next.starts_with('-') && !is_verb(next),
        None => {
            let other = others::PROGRAMS.iter().find_map(|program| program.find(flag));
            let other = other.is_some_and(|entry| entry.kind != OptionKind::Bool);
            (is_valued(flag, loadgen) || other && !is_verb(next)) && !next.starts_with('-')
        }
    }
}

fn list_by_owner(theirs: &[(String, String)]) -> String {
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

fn option(flag: &str) -> Option<&'static Entry> {
    options::find(flag.strip_prefix("--")?)
}

pub(super) struct NativeCommand<'a> {
    verb: &'a NativeVerb,
    /// The verb and what follows: a flag is one word with its value.
    pub words: Vec<String>,
    theirs: Vec<(String, String)>,
    /// Programs other than sysbench that the words belong to.
    programs: Vec<&'static Program>,
    pub dropped: Vec<String>,
}

impl<'a> NativeCommand<'a> {
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
            // The other words are the verb's own.
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

    pub(super) fn add_flag(&mut self, flag: &str, value: &str) {
        // Output never holds a password.
        if flag.starts_with("-p") || flag == "--password" {
            return self.words.push("--password".to_owned());
        }
        // Other clients' -d is a time; without one it means -D.
        if flag == "-d" && !value.is_empty() && parse_duration(value).is_err() {
            self.theirs.push((flag.to_owned(), "no flag here; the database is -D".to_owned()));
            return self.words.push(format!("--database {}", quoted(value)));
        }
        let option = option(flag);
        // A number without a unit is sysbench's where both have the flag.
        let number = value.bytes().all(|b| b.is_ascii_digit());
        let theirs = option.filter(|option| number && matches!(option.becomes, Flags(_)));
        let mut word =
            option.map_or_else(|| with_dashes(flag), |option| format!("--{}", option.key()));
        if let Some(ours) = self.verb.flag(&word).filter(|_| theirs.is_none()) {
            let renamed =
                (word != with_dashes(flag)).then(|| (flag.to_owned(), format!("{NAME}'s")));
            self.theirs.extend(renamed);
            self.remove_flag(&word);
            if !value.is_empty() {
                word += if ours.takes_value { " " } else { "=" };
                word += &quoted(value);
            }
            return self.words.push(word);
        }
        let known = option.map_or_else(|| self.entries_of(flag), |option| vec![(option, NAME)]);
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
        let command_line = self.native_flags(option, value);
        if let Flags(ours) = option.becomes {
            ours.split(", ").for_each(|words| self.remove_flag(&format!("--{words}")));
        }
        self.words.extend(command_line.iter().flatten().cloned());
        let asked = command_line.as_ref().is_ok_and(|words| words == &["--password"]);
        let why = command_line.err().or_else(|| asked.then(|| ASKED.to_owned()));
        self.dropped.extend(why.map(|why| format!("{flag}: {why}")));
    }

    fn entries_of(&self, flag: &str) -> Vec<(&'static Entry, &'static str)> {
        let found = |program: &'static Program| Some((program.find(flag)?, program.name));
        let spoken: Vec<_> = self.programs.iter().filter_map(|program| found(program)).collect();
        if spoken.is_empty() { others::PROGRAMS.iter().filter_map(found).collect() } else { spoken }
    }

    /// Removes what a later flag replaces: sysbench takes the last one.
    fn remove_flag(&mut self, words: &str) {
        self.words.retain(|word| flag_of(word) != flag_of(words));
    }

    fn native_flags(&self, option: &Entry, value: &str) -> Result<Vec<String>, String> {
        let (key, usual) = (option.key(), option.is_default(value));
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
            // 0 means no limit, loadgen's default except for the warmup.
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

    pub(super) fn command(&mut self) -> String {
        // sysbench ends at the first of the two limits; loadgen has one.
        let at = |flag: &str| self.words.iter().position(|word| flag_of(word) == flag);
        if let (Some(_), Some(time)) = (at("--ops"), at("--time")) {
            self.words.remove(time);
            self.dropped.push("--time: a run ends after a time or after its ops".to_owned());
        }
        format!("loadgen {}", self.words.join(" "))
    }
}

fn flag_of(word: &str) -> &str {
    word.split([' ', '=']).next().unwrap_or(word)
}
