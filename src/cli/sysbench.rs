//! sysbench's words are answered with the whole command in loadgen's.

use std::collections::BTreeSet;

use clap::{Arg, Command};

use crate::workload::{Schema, Workload, builtin};

/// What becomes of a flag of sysbench's.
#[derive(Debug, Clone, Copy)]
enum Becomes {
    /// This flag with the value.
    Flag(&'static str),
    /// This flag with a number of seconds.
    Seconds(&'static str),
    /// These flags where the value is one of these words; where there are none, any word.
    Where(&'static [&'static str], &'static str),
    /// Nothing, and why.
    Nothing(&'static str),
}
use Becomes::{Flag, Nothing, Seconds, Where};

const OFF: &[&str] = &["off", "false", "0"];
const ON: &[&str] = &["", "on", "true", "1"];
const ANY: &[&str] = &[];

/// sysbench's flags of one meaning, written with `-`, and loadgen's.
const FLAGS: [(&str, Becomes); 46] = [
    ("threads num-threads", Flag("--clients")),
    ("table-size oltp-table-size", Flag("--rows")),
    ("oltp-tables-count", Flag("--tables")),
    ("time max-time", Seconds("--time")),
    ("warmup-time", Seconds("--warmup")),
    ("events max-requests", Flag("--ops")),
    ("rate tx-rate", Flag("--rate")),
    ("rand-seed", Flag("--seed")),
    ("report-interval", Seconds("--progress")),
    ("mysql-host", Flag("--host")),
    ("mysql-port", Flag("--port")),
    ("mysql-user", Flag("--user")),
    ("mysql-password", Where(ANY, "--password")),
    ("mysql-socket", Flag("--socket")),
    ("mysql-db", Flag("--database")),
    ("db", Flag("--database")),
    ("mysql-ssl", Where(ON, "--ssl-mode REQUIRED")),
    ("mysql-ssl-ca", Flag("--ssl-ca")),
    ("mysql-ssl-cert", Flag("--ssl-cert")),
    ("mysql-ssl-key", Flag("--ssl-key")),
    ("mysql-ignore-errors", Where(ANY, "--on-error continue")),
    ("db-ps-mode", Where(&["disable"], "--statements text")),
    ("rand-pareto-h", Nothing("it is H of --distribution pareto:H")),
    (
        "rand-spec-iter rand-spec-pct rand-spec-res",
        Nothing("they are I, P and R of --distribution special:I/P/R"),
    ),
    ("rand-zipfian-exp", Nothing("it is S of --distribution zipf-adjacent:S")),
    ("number-of-ranges", Flag("--random-ranges")),
    ("oltp-range-size", Flag("--range-size")),
    (
        "range-selects",
        Where(OFF, "--simple-ranges 0 --sum-ranges 0 --order-ranges 0 --distinct-ranges 0"),
    ),
    ("skip-trx oltp-skip-trx", Nothing("this workload has no transaction")),
    ("percentile", Nothing("all are kept: loadgen report --metric p99")),
    ("histogram", Nothing("the histogram is always kept")),
    ("report-checkpoints", Nothing("the timeline is always kept")),
    ("verbosity", Nothing("--quiet shows warnings and errors only")),
    ("debug", Nothing(NONE)),
    ("validate", Nothing("answers are always checked")),
    ("db-driver", Nothing("servers are MySQL and MariaDB")),
    ("db-debug", Nothing(NONE)),
    ("auto-inc", Nothing("tables always have it")),
    ("secondary", Nothing("id is always the primary key")),
    ("create-secondary", Nothing("the index on k is always made")),
    ("mysql-storage-engine", Nothing("tables are of InnoDB")),
    ("create-table-options mysql-table-options", Nothing(NONE)),
    ("thread-init-timeout", Seconds("--connect-timeout")),
    ("forced-shutdown", Nothing("--op-timeout gives up what does not end")),
    ("thread-stack-size luajit-cmd", Nothing(NONE)),
    ("mysql-compression", Nothing(NONE)),
];

const NONE: &str = "loadgen has no such thing";

/// Flags that are loadgen's, too, whose value has another form or meaning.
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
pub(super) struct Answer {
    /// Which words are sysbench's, and what becomes of those that have no counterpart.
    pub what: String,
    /// The whole command.
    pub command: String,
}

/// Says a command line in loadgen's words, unless none of it is sysbench's.
pub(super) fn answer(args: &[String], loadgen: &Command) -> Option<Answer> {
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
fn split(args: &[String], loadgen: &Command) -> (Vec<Given>, Vec<String>) {
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

fn takes_value(flag: &str, loadgen: &Command) -> bool {
    let is = |arg: &&Arg| named(arg, flag) && arg.get_action().takes_values();
    let takes = |arg: &Arg| !arg.is_require_equals_set();
    loadgen.get_subcommands().any(|verb| verb.get_arguments().find(is).is_some_and(takes))
}

fn named(arg: &Arg, flag: &str) -> bool {
    let long = |name: &str| arg.get_long_and_visible_aliases().unwrap_or_default().contains(&name);
    match flag.strip_prefix("--") {
        Some(name) => long(name) || long(&plain(name)),
        None => arg.get_short().is_some_and(|short| flag == format!("-{short}")),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_word(word: &str) -> bool {
    COMMANDS.contains(&word) || workload(word).is_some()
}

fn plain(name: &str) -> String {
    name.replace('_', "-")
}

fn find(name: &str) -> Option<Becomes> {
    let found = FLAGS.iter().find(|(names, _)| names.split(' ').any(|known| known == name));
    found.map(|(_, becomes)| *becomes)
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
    command: &'a Command,
    /// Words that are not loadgen's.
    theirs: Vec<String>,
    /// What its verb needs besides.
    added: Vec<String>,
}

impl<'a> Verb<'a> {
    fn of(words: &[String], loadgen: &'a Command) -> Option<Verb<'a>> {
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
            added.extend(words.iter().skip(1).map(|word| shown(word)));
        }
        Some(Verb { command: loadgen.find_subcommand(&name)?, name, theirs, added })
    }

    fn takes(&self, flag: &str) -> bool {
        self.command.get_arguments().any(|arg| named(arg, flag))
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
                Some(value) => vec![flag, shown(value)],
                None => vec![flag],
            };
        }
        let theirs = known.is_some() || name == "rand-type";
        if theirs && !self.takes(flag) {
            said.theirs.push(flag.to_owned());
        }
        let value = value.unwrap_or_default();
        let jobs = ["threads", "num-threads"].contains(&name.as_str()) && self.takes("--jobs");
        let becomes = match known {
            Some(Flag(_)) if jobs => Ok(vec!["--jobs".to_owned(), shown(value)]),
            _ => becomes(known, &name, value),
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
        let found = self.command.get_arguments().find(|arg| named(arg, flag));
        found.is_some_and(Arg::is_require_equals_set)
    }
}

/// Gives loadgen's words for a flag of sysbench's with this value, or why there are none.
fn becomes(known: Option<Becomes>, name: &str, value: &str) -> Result<Vec<String>, &'static str> {
    match known {
        None if name == "rand-type" => {
            let ours = RAND_TYPE.iter().find(|(theirs, _)| *theirs == value);
            ours.map(|(_, ours)| vec!["--distribution".to_owned(), (*ours).to_owned()])
                .ok_or("no --distribution is like it")
        }
        None => Err("is not known"),
        Some(Nothing(why)) => Err(why),
        Some(Where(of, ours)) => {
            let is = if of.is_empty() { !value.is_empty() } else { of.contains(&value) };
            Ok(if is { ours.split(' ').map(str::to_owned).collect() } else { Vec::new() })
        }
        // No limit is sysbench's 0, and loadgen's default but for times.
        Some(Flag(_) | Seconds(_)) if value == "0" && name != "warmup-time" => Ok(Vec::new()),
        Some(Flag(ours)) => Ok(vec![ours.to_owned(), shown(value)]),
        Some(Seconds(ours)) => {
            let unit = if is_digits(value) { "s" } else { "" };
            Ok(vec![ours.to_owned(), shown(value) + unit])
        }
    }
}

/// A word as a shell takes it.
fn shown(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:,=%@+".contains(&b);
    let bare = !word.is_empty() && word.bytes().all(plain);
    if bare { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Option<Answer> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        answer(&words, &crate::cli::command().0)
    }

    #[test]
    fn a_command_of_sysbench_becomes_a_whole_one_of_loadgen() {
        struct Case {
            theirs: &'static str,
            ours: &'static str,
            /// Part of what is said of it.
            what: &'static str,
        }
        for Case { theirs, ours, what } in [
            Case {
                theirs: "loadgen oltp_point_select --threads=8 --mysql-host=db1 \
                         --mysql-user=bench --mysql-password=x --time=60 --tables=8 \
                         --table-size=1000000 run",
                ours: "loadgen point-select --clients 8 --host db1 --user bench --password \
                       --time 60s --tables 8 --rows 1000000",
                what: "run, --threads, --mysql-host, --mysql-user, --mysql-password, \
                       --table-size are sysbench's\n  --mysql-password: --password asks for it, a script sets MYSQL_PWD",
            },
            Case {
                theirs: "loadgen --threads=4 --table_size=10 oltp_read_write prepare",
                ours: "loadgen prepare --jobs 4 --rows 10",
                what: "prepare, --threads, --table_size are",
            },
            Case {
                theirs: "loadgen /usr/share/sysbench/bulk_insert.lua --threads=4 prepare",
                ours: "loadgen prepare --schema bulk --jobs 4",
                what: "prepare, --threads are",
            },
            Case {
                theirs: "loadgen oltp_read_write --mysql-db=x --time=60 cleanup",
                ours: "loadgen cleanup --database x",
                what: "--time: loadgen cleanup has no use for it",
            },
            Case {
                theirs: "loadgen point-select run",
                ours: "loadgen point-select",
                what: "run is sysbench's",
            },
            Case {
                theirs: "loadgen oltp_read_write --mysql-ignore-errors=all --verbosity=3 \
                         --db-ps-mode=disable --rand-type=pareto --skip_trx=on --report-interval=1",
                ours: "loadgen read-write --on-error continue --statements text \
                       --distribution pareto:0.2 --skip-trx=on --progress 1s",
                what: "--verbosity: --quiet",
            },
            Case {
                theirs: "loadgen point-select --threads 8 --events=100 --time=60 --rate=0 \
                         --skip_trx --rand-type=gaussian --foo=1",
                ours: "loadgen point-select --clients 8 --ops 100 --distribution gaussian",
                what: "--foo: is not known",
            },
            Case {
                theirs: "loadgen report --percentile 99 results/",
                ours: "loadgen report results/",
                what: "--percentile: all are kept",
            },
            Case {
                theirs: "loadgen sysbench oltp_delete --threads=8 --mysql-host=a;b --mysql-ssl=off run",
                ours: "loadgen delete --clients 8 --host 'a;b'",
                what: "run, --threads",
            },
            Case {
                theirs: "loadgen read-write --threads=8 --password=... -u me -S /x --warmup 0",
                ours: "loadgen read-write --clients 8 --password -u me -S /x --warmup 0",
                what: "--threads is",
            },
        ] {
            let answer = said(theirs).expect(theirs);
            assert_eq!(answer.command, ours, "{theirs}");
            assert!(answer.what.contains(what), "{theirs}: {}", answer.what);
        }
    }

    #[test]
    fn a_command_of_loadgen_is_left_to_its_own_errors() {
        for line in [
            "loadgen point-select --nonsense",
            "loadgen report --clients 8",
            "loadgen",
            "loadgen nonsense --threads=8",
            "loadgen run profile.toml --only x",
            "loadgen --password x",
        ] {
            assert_eq!(said(line), None, "{line}");
        }
    }

    #[test]
    fn what_a_flag_becomes_is_a_flag_of_loadgen() {
        let loadgen = crate::cli::command().0;
        for (names, becomes) in FLAGS {
            let (Flag(ours) | Seconds(ours) | Where(_, ours)) = becomes else { continue };
            for flag in ours.split(' ').filter(|word| word.starts_with("--")) {
                let has = |verb: &Command| verb.get_arguments().any(|arg| named(arg, flag));
                assert!(loadgen.get_subcommands().any(has), "{names}: {flag}");
            }
        }
    }
}
