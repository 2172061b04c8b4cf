//! The command line: clap structs and thin verbs, those of one kind in a file.

mod help;
mod host;
mod import;
mod man;
mod profile;
mod shared;
mod sql;
mod summaries;
mod sysbench;
mod tables;
mod workload;

use std::ffi::OsString;
use std::io::{self, Write as _};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::error::{Error, Result, VALUE_MAX, clip, line, plain};
use crate::mysql::options::handover::{hand_over, mask_password};
use crate::progress::say;
use crate::run::{print_data, warn};
use crate::sysbench::NativeVerb;
use crate::workload::{Workload, builtin};
pub use help::help_without_h;
use shared::listen_as;
use workload::{WorkloadArgs, workloads};

/// The work of a verb, with its part of the command line.
type Run = Box<dyn FnOnce(&ArgMatches) -> Result<()>>;

/// Makes a verb of its flags. The text comes last: a struct's rustdoc would become the help.
fn verb<A: Args + 'static>(name: &str, about: &str, run: fn(A) -> Result<()>) -> (Command, Run) {
    let command = A::augment_args(Command::new(name.to_owned())).about(about.to_owned());
    let run = move |matches: &ArgMatches| run(read(matches)?);
    (command.long_about(None), Box::new(run))
}

fn read<A: FromArgMatches>(matches: &ArgMatches) -> Result<A> {
    A::from_arg_matches(matches).map_err(|e| Error::usage(e.to_string()))
}

/// Lists the verbs in the order of the help. Every built-in workload is one.
fn verbs() -> Vec<(Command, Run)> {
    let workload = |workload: Workload| -> (Command, Run) {
        let (command, _) = verb::<WorkloadArgs>(&workload.name, &workload.about, |_| Ok(()));
        let command = command.visible_aliases(workload.aliases.clone());
        let command = workload::add_options(command, &workload);
        let run = move |matches: &ArgMatches| {
            let options = workload::given(&workload, matches);
            workload::run(workload.with_options(&options)?, read(matches)?)
        };
        (command, Box::new(run))
    };
    let others = [
        verb("workloads", "List the workloads with their SQL and expected outcome", workloads),
        verb("sql", "Measure your own SQL, from a file or the command line", sql::sql),
        verb("run", "Run an experiment from its profile", profile::run),
        verb(
            "profiles",
            "List the profiles that are in the program, or print one",
            profile::profiles,
        ),
        verb("load", "Reload a table and time it", workload::load),
        verb("report", "Turn summaries into tables", summaries::report),
        verb("compare", "Compare labels with a baseline by statistics", summaries::compare),
        verb("calibrate", "Measure what this host can generate at most", host::calibrate),
        verb("recheck", "Run again what is not decided", profile::recheck),
        verb("import", "Take results of other programs into the tables", import::import),
        verb("explain", "Split a difference of two labels into its parts", summaries::explain),
        verb("verify", "Check that the tables hold what was written", tables::verify),
        verb("cleanup", "Drop the tables that prepare made", tables::cleanup),
        verb("sysbench", "Run a command line of sysbench's as it is", its_own),
        verb("completions", "Print completions for a shell", completions),
        verb("man", "Write the manual pages", man),
        verb("canned", "Serve canned answers, for benches", host::canned),
    ];
    let prepare = verb("prepare", "Create and fill tables", tables::prepare);
    let workloads = builtin().into_iter().map(workload);
    std::iter::once(prepare).chain(workloads).chain(others).collect()
}

/// The words of a command line of sysbench's: [`main`] hands them over before clap sees them.
#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
Options, output and exit statuses are sysbench's. Under the name sysbench, loadgen does the same
without that word. LOADGEN_OUT, or --loadgen-out=DIR, leaves a summary too; --explain prints
loadgen's own command.")]
struct SysbenchArgs {
    /// Options, a test and a command, such as --threads=8 oltp_read_only run
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<OsString>,
}

fn its_own(_: SysbenchArgs) -> Result<()> {
    Err(Error::usage("sysbench's command line begins with the word sysbench")
        .hint("loadgen sysbench --threads=8 oltp_read_only run"))
}

#[derive(clap::Args, Debug, Clone)]
struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

fn completions(CompletionsArgs { shell }: CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command().0, "loadgen", &mut script);
    print_data(&String::from_utf8_lossy(&script))
}

/// Lists the commands and flags of loadgen.
pub(crate) fn native_verbs() -> Vec<NativeVerb> {
    sysbench::native_verbs(&command().0)
}

fn man(args: man::ManArgs) -> Result<()> {
    args.write(command_with(true).0)
}

/// The whole command line, and what its commands do.
pub fn command() -> (Command, Vec<Run>) {
    command_with(false)
}

/// The same; its help shows all flags, or the usual ones.
fn command_with(all_flags: bool) -> (Command, Vec<Run>) {
    let (verbs, runs): (Vec<Command>, _) = verbs().into_iter().unzip();
    let command = Command::new("loadgen")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A load generator for MySQL-compatible servers")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .max_term_width(100);
    let verbs = verbs.into_iter().enumerate();
    let verbs = verbs.map(|(order, verb)| help::shaped(verb.display_order(order), all_flags));
    let command = help_without_h(command.subcommands(verbs));
    let screen = help::screen(&command);
    (command.override_help(screen), runs)
}

/// Reads the command line and does what it says.
pub fn main(args: Vec<OsString>) -> Result<u8> {
    if crate::sysbench::begins_at(&args).is_some() {
        return crate::sysbench::main(args, native_verbs, listen_as);
    }
    let args = asked_help(args);
    let (mut command, mut runs) = command_with(args.iter().any(|word| word == "--help-all"));
    // What is wrong is told before the hand-over, which puts other words into the place of some.
    if let Some(typed) = mask_password(args.clone(), &command)?
        && let Err(code) = parsed(&mut command, &typed)
    {
        return Ok(code);
    }
    let args = hand_over(args, &command, warn)?;
    parsed(&mut command, &args).map_or_else(Ok, |matches| {
        let (verb, matches) = matches.subcommand().expect("clap wants a command");
        let place = command.get_subcommands().position(|command| command.get_name() == verb);
        let run = runs.swap_remove(place.expect("clap knows the commands"));
        // The run can use that megabyte.
        drop(command);
        run(matches).map(|()| 0)
    })
}

/// Takes `loadgen help VERB` for `loadgen VERB --help`.
fn asked_help(mut args: Vec<OsString>) -> Vec<OsString> {
    if args.get(1).is_some_and(|word| word == "help") {
        args.remove(1);
        args.push("--help".into());
    }
    args
}

/// The command line, or the exit status once what clap has to say is said.
fn parsed(command: &mut Command, args: &[OsString]) -> Result<ArgMatches, u8> {
    let found = command.try_get_matches_from_mut(args);
    found.map_err(|error| told(error, args, command))
}

/// Gives a text of an error's context, which is empty without one.
fn context(error: &clap::Error, kind: ContextKind) -> &str {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text,
        _ => "",
    }
}

/// Takes the value out of an error of a flag for which a password is easily typed: -P for -p.
fn unsay_password(error: &mut clap::Error) {
    let flag = context(error, ContextKind::InvalidArg);
    let asked = ["--port ", "--password-fd "].iter().any(|asked| flag.starts_with(asked));
    let value = context(error, ContextKind::InvalidValue);
    if asked && !value.bytes().all(|byte| byte.is_ascii_digit()) {
        error.insert(ContextKind::InvalidValue, ContextValue::String("…".to_owned()));
    }
}

/// Help and version are data; a wrong flag is an error with a hint where there is one.
fn told(mut error: clap::Error, args: &[OsString], command: &Command) -> u8 {
    if !error.use_stderr() {
        let printed = error.print().and_then(|()| io::stdout().flush());
        // `loadgen --help | head` has what it wanted.
        let failed = printed.err().filter(|e| e.kind() != io::ErrorKind::BrokenPipe);
        return failed.map_or(0, |e| {
            let error = Error::failed(format!("standard output: {e}"));
            say(error.render().trim_end());
            error.kind().exit_code()
        });
    }
    unsay_password(&mut error);
    // What is wrong with one of these is told on one line, so that none can look like our own.
    let breaks = args.iter().any(|arg| arg.as_encoded_bytes().contains(&b'\n'));
    let (text, hint) = explained(&mut error, args, command);
    let (text, hint) = (shortened(text, args), hint.map(|hint| shortened(hint, args)));
    say(&if breaks { line(text.trim_end()) } else { plain(text.trim_end()) });
    if let Some(hint) = hint {
        say(&format!("\nhint: {}", line(&hint)));
    }
    2
}

/// Cuts the words of the command line that a text quotes, and values in them, to what an error shows.
fn shortened(mut text: String, args: &[OsString]) -> String {
    for word in args.iter().map(|arg| arg.to_string_lossy()) {
        for part in std::iter::once(&*word).chain(word.split(['=', ','])) {
            if part.chars().count() > VALUE_MAX {
                text = text.replace(part, &clip(part, VALUE_MAX));
            }
        }
    }
    text
}

/// Gives an error's text, and its hint: then clap's own tips are left out.
fn explained(
    error: &mut clap::Error,
    args: &[OsString],
    command: &Command,
) -> (String, Option<String>) {
    let words: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    if let Some(answer) = sysbench::answer(&words, command) {
        return (format!("error: {}", answer.what), Some(answer.command));
    }
    if error.kind() == ErrorKind::InvalidSubcommand {
        let text = format!(
            "error: there is no command '{}'",
            context(error, ContextKind::InvalidSubcommand)
        );
        return (text, Some(nearest(error, command)));
    }
    let mut hint = None;
    if error.kind() == ErrorKind::UnknownArgument {
        // How to pass it as a value is not what anybody wants.
        error.remove(ContextKind::Suggested);
        let verb = words.get(1).and_then(|verb| command.find_subcommand(verb));
        let given = context(error, ContextKind::InvalidArg).to_owned();
        if let Some(ContextValue::String(near)) = error.get(ContextKind::SuggestedArg)
            && !is_near(near, &given)
        {
            error.remove(ContextKind::SuggestedArg);
        }
        let before = words.iter().position(|word| *word == given).and_then(|at| at.checked_sub(1));
        let behind = before.and_then(|at| equals_hint(&words[at], &given, verb?));
        hint = behind.or_else(|| unknown_hint(&given, verb));
    }
    (error.render().to_string(), hint)
}

/// Says how a flag takes a value that is optional, if `flag` is one.
fn equals_hint(flag: &str, value: &str, verb: &Command) -> Option<String> {
    let long = flag.strip_prefix("--")?;
    let mut flags = verb.get_arguments().filter(|arg| arg.is_require_equals_set());
    flags.find(|arg| arg.get_long() == Some(long))?;
    Some(format!("{flag} takes its value behind =: {flag}={value}"))
}

/// Says what to do about a word that is no flag of its command.
fn unknown_hint(given: &str, verb: Option<&Command>) -> Option<String> {
    let takes =
        |id: &str| verb.is_some_and(|verb| verb.get_arguments().any(|arg| arg.get_id() == id));
    let format = given.trim_start_matches('-');
    match given {
        "--password" | "--password-fd" | "--url" => Some(format!(
            "{given} goes after a command that connects: loadgen point-select {given}"
        )),
        "--text" | "--markdown" | "--csv" | "--json" | "--html" | "--svg" | "--junit" => {
            let verb = verb.filter(|_| takes("format") && format != "html" && format != "svg");
            let verb = verb.map_or("report", Command::get_name);
            Some(format!("loadgen {verb} DIR --format {format}"))
        }
        _ if given.starts_with('-') && verb.is_none() => {
            Some("the command goes first: loadgen point-select --host db1".to_owned())
        }
        _ if given.starts_with('-') || given.is_empty() => None,
        _ if takes("queries") => {
            Some("--file FILE or --query SQL, and -D for a database".to_owned())
        }
        _ => takes("database").then(|| format!("-D {given}, if it is a database")),
    }
}

/// Tells whether a word may be another one, misspelt.
fn is_near(word: &str, typed: &str) -> bool {
    let length = typed.trim_start_matches('-').len();
    strsim::damerau_levenshtein(word, typed) <= 1 + length / 5
}

/// Commands at most that a word of their names may mean.
const MEANT_MAX: usize = 4;

/// Names the command whose name is nearest to the one that there is not.
fn nearest(error: &clap::Error, command: &Command) -> String {
    let all = "loadgen --help lists the commands".to_owned();
    let typed = context(error, ContextKind::InvalidSubcommand);
    let names = || command.get_subcommands().map(Command::get_name);
    // Of `select` point-select is meant, and not delete.
    let mut meant: Vec<&str> =
        names().filter(|name| name.split('-').any(|part| part == typed)).take(MEANT_MAX).collect();
    meant.extend(crate::sysbench::command(typed));
    if let (true, Some(ContextValue::Strings(near))) =
        (meant.is_empty(), error.get(ContextKind::SuggestedSubcommand))
    {
        let near = near.last().filter(|near| is_near(near, typed));
        meant.extend(near.and_then(|name| command.find_subcommand(name)).map(Command::get_name));
    }
    if meant.is_empty() { all } else { format!("loadgen {}? {all}", meant.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().0.debug_assert();
    }

    /// The hint, and the flag that clap suggests, of a command line with a mistake.
    fn hints(line: &str) -> (Option<String>, Option<String>) {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (mut command, _) = command();
        let mut error = command.try_get_matches_from_mut(args.clone()).expect_err(line);
        let (_, hint) = explained(&mut error, &args, &command);
        let near = match error.get(ContextKind::SuggestedArg) {
            Some(ContextValue::String(near)) => Some(near.clone()),
            _ => None,
        };
        (hint, near)
    }

    #[test]
    fn a_command_is_suggested_when_its_name_is_near_or_has_the_word() {
        struct Case {
            line: &'static str,
            meant: Option<&'static str>,
        }
        for Case { line, meant } in [
            Case { line: "loadgen select", meant: Some("loadgen point-select?") },
            Case { line: "loadgen dlete", meant: Some("loadgen delete?") },
            Case { line: "loadgen raed-only", meant: Some("loadgen read-only?") },
            Case { line: "loadgen reprot", meant: Some("loadgen report?") },
            Case { line: "loadgen buildschema", meant: Some("loadgen prepare?") },
            Case { line: "loadgen nonsense", meant: None },
            Case { line: "loadgen selects", meant: None },
        ] {
            let hint = hints(line).0.expect(line);
            match meant {
                Some(meant) => assert!(hint.starts_with(meant), "{line}: {hint}"),
                None => assert!(!hint.contains('?'), "{line}: {hint}"),
            }
        }
    }

    #[test]
    fn a_flag_is_suggested_when_it_is_a_misspelling_and_no_other_word() {
        struct Case {
            line: &'static str,
            near: Option<&'static str>,
        }
        for Case { line, near } in [
            Case { line: "loadgen point-select --cliens 8", near: Some("--clients") },
            Case { line: "loadgen point-select --warmpu 8", near: Some("--warmup") },
            Case { line: "loadgen point-select --databse x", near: Some("--database") },
            Case { line: "loadgen point-select --duratoin 8", near: None },
            Case { line: "loadgen point-select --connectoins 8", near: None },
            Case { line: "loadgen point-select --length 8", near: None },
        ] {
            assert_eq!(hints(line).1.as_deref(), near, "{line}");
        }
    }

    #[test]
    fn a_value_behind_a_blank_is_shown_behind_an_equals_sign_when_the_flag_needs_it() {
        struct Case {
            line: &'static str,
            shown: &'static str,
        }
        for Case { line, shown } in [
            Case { line: "loadgen point-select --settle 5m", shown: "--settle=5m" },
            Case { line: "loadgen point-select --sandbox mysqld", shown: "--sandbox=mysqld" },
            Case { line: "loadgen point-select sbtest --settle", shown: "-D sbtest" },
            Case { line: "loadgen point-select --quiet sbtest", shown: "-D sbtest" },
        ] {
            let hint = hints(line).0.expect(line);
            assert!(hint.contains(shown), "{line}: {hint}");
        }
    }

    #[test]
    fn every_name_of_a_workload_is_a_verb() {
        for workload in builtin() {
            for verb in workload.aliases.iter().chain([&workload.name]) {
                let matches = command().0.try_get_matches_from(["loadgen", verb.as_str()]);
                let matches = matches.expect(verb);
                assert_eq!(matches.subcommand_name(), Some(workload.name.as_str()));
            }
        }
    }
}
