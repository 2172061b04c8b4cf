//! The command line: clap structs and thin verbs, grouped by file.

mod help;
mod host;
mod import;
mod lua;
mod man;
mod profile;
mod scripts;
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
use crate::plan::profile::shipped::Shipped;
use crate::progress::say;
use crate::run::{print_data, warn};
use crate::sysbench::NativeVerb;
use crate::workload::{Workload, builtin};
pub use help::help_without_h;
use shared::listen_as;
use workload::{WorkloadArgs, workloads};

/// A verb's work on its arguments.
type Run = Box<dyn FnOnce(&ArgMatches) -> Result<()>>;

struct Verb {
    /// Without flags: those of all verbs take some megabytes.
    command: Command,
    add_flags: Box<dyn FnOnce(Command) -> Command>,
    run: Run,
}

impl Verb {
    fn has_name(&self, name: &str) -> bool {
        self.command.get_name() == name || self.command.get_all_aliases().any(|of| of == name)
    }
}

/// Makes a verb from its flags. The text comes last: a struct's rustdoc would replace it.
fn verb<A: Args + 'static>(name: &str, about: &str, run: fn(A) -> Result<()>) -> Verb {
    let command = Command::new(name.to_owned()).about(about.to_owned());
    let about = about.to_owned();
    let add_flags = |command| A::augment_args(command).about(about).long_about(None);
    let run = move |matches: &ArgMatches| run(read(matches)?);
    Verb { command, add_flags: Box::new(add_flags), run: Box::new(run) }
}

fn read<A: FromArgMatches>(matches: &ArgMatches) -> Result<A> {
    A::from_arg_matches(matches).map_err(|e| Error::usage(e.to_string()))
}

/// Lists the verbs in the order of the help. Every built-in workload is a verb.
fn verbs() -> Vec<Verb> {
    let workload = |workload: Workload| -> Verb {
        let verb = verb::<WorkloadArgs>(&workload.name, &workload.about, |_| Ok(()));
        let command = verb.command.visible_aliases(workload.aliases.clone());
        let of = workload.clone();
        let add_flags = move |command| workload::add_options((verb.add_flags)(command), &of);
        let run = move |matches: &ArgMatches| {
            let options = workload::given(&workload, matches);
            workload::sweep(workload.with_options(&options)?, read(matches)?, None)
        };
        Verb { command, add_flags: Box::new(add_flags), run: Box::new(run) }
    };
    let others = [
        verb("workloads", "List the workloads with their SQL and expected outcome", workloads),
        verb("sql", "Measure your own SQL, from a file or the command line", sql::sql),
        verb("lua", "Measure a script that is written for sysbench", lua::lua),
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
        verb("recheck", "Measure undecided cells again", profile::recheck),
        verb("import", "Take results of other programs into the tables", import::import),
        verb("explain", "Split a difference of two labels into its parts", summaries::explain),
        verb("verify", "Check that the tables hold what was written", tables::verify),
        verb("cleanup", "Drop the tables that prepare made", tables::cleanup),
        verb("sysbench", "Run a command line of sysbench's as it is", its_own),
        verb("completions", "Print completions for a shell", completions),
        verb("man", "Write the manual pages", man),
        verb("canned", "Serve canned answers, for benches", host::canned),
        verb("rank", "Run clients for a loadgen on another host", host::rank),
    ];
    let prepare = verb("prepare", "Create and fill tables", tables::prepare);
    let workloads = builtin().into_iter().map(workload);
    std::iter::once(prepare).chain(workloads).chain(others).collect()
}

/// The words of a sysbench command line: [`main`] takes them before clap.
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

pub(crate) fn native_verbs() -> Vec<NativeVerb> {
    sysbench::native_verbs(&command().0)
}

fn man(args: man::ManArgs) -> Result<()> {
    args.write(command_for(None, true).0)
}

pub fn command() -> (Command, Vec<Run>) {
    command_for(None, false)
}

/// Returns the same, but the other verbs have no flags where a verb is typed. The help shows all flags if `all_flags`.
fn command_for(typed: Option<&str>, all_flags: bool) -> (Command, Vec<Run>) {
    let verbs = verbs();
    let typed = typed.filter(|typed| verbs.iter().any(|verb| verb.has_name(typed)));
    let take = |verb: Verb| {
        let has_flags = typed.is_none_or(|typed| verb.has_name(typed));
        let Verb { command, add_flags, run } = verb;
        (if has_flags { add_flags(command) } else { command }, run)
    };
    let (verbs, runs): (Vec<Command>, _) = verbs.into_iter().map(take).unzip();
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

pub fn main(args: Vec<OsString>) -> Result<u8> {
    if crate::sysbench::begins_at(&args).is_some() {
        return crate::sysbench::main(args, native_verbs, listen_as);
    }
    let args = replace_help_verb(args);
    let all_flags = args.iter().any(|word| word == "--help-all");
    let typed = args.get(1).and_then(|word| word.to_str());
    let (mut command, mut runs) = command_for(typed, all_flags);
    // Report usage errors before the hand-over, which replaces some words.
    if let Some(typed) = mask_password(args.clone(), &command)?
        && let Err(code) = parse_args(&mut command, &typed)
    {
        return Ok(code);
    }
    let args = hand_over(args, &command, warn)?;
    parse_args(&mut command, &args).map_or_else(Ok, |matches| {
        let (verb, matches) = matches.subcommand().expect("clap wants a command");
        let place = command.get_subcommands().position(|command| command.get_name() == verb);
        let run = runs.swap_remove(place.expect("clap knows the commands"));
        // Its memory is free for the run.
        drop(command);
        run(matches).map(|()| 0)
    })
}

/// Turns `loadgen help VERB` into `loadgen VERB --help`.
fn replace_help_verb(mut args: Vec<OsString>) -> Vec<OsString> {
    while args.get(1).is_some_and(|word| word == "help") {
        args.remove(1);
        args.push("--help".into());
    }
    args
}

/// Parses the command line; prints clap's help or error, and returns the exit status then.
fn parse_args(command: &mut Command, args: &[OsString]) -> Result<ArgMatches, u8> {
    let found = command.try_get_matches_from_mut(args);
    found.map_err(|error| {
        if error.use_stderr() {
            // Hints name flags of other verbs.
            report_error(error, args, &self::command().0)
        } else {
            print_help(&error)
        }
    })
}

fn context(error: &clap::Error, kind: ContextKind) -> &str {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text,
        _ => "",
    }
}

/// Removes the value from an error of a flag that is easily confused with the password's: -P for -p.
fn hide_password(error: &mut clap::Error) {
    let flag = context(error, ContextKind::InvalidArg);
    let is_alike = ["--port ", "--password-fd "].iter().any(|name| flag.starts_with(name));
    let value = context(error, ContextKind::InvalidValue);
    if is_alike && !value.bytes().all(|byte| byte.is_ascii_digit()) {
        error.insert(ContextKind::InvalidValue, ContextValue::String("…".to_owned()));
    }
}

/// Prints help or version as data.
fn print_help(help: &clap::Error) -> u8 {
    let printed = help.print().and_then(|()| io::stdout().flush());
    // `loadgen --help | head` closes the pipe early.
    let failed = printed.err().filter(|e| e.kind() != io::ErrorKind::BrokenPipe);
    failed.map_or(0, |e| {
        let error = Error::failed(format!("standard output: {e}"));
        say(error.render().trim_end());
        error.kind().exit_code()
    })
}

/// Turns clap's error into ours, with a hint if there is one.
fn report_error(mut error: clap::Error, args: &[OsString], command: &Command) -> u8 {
    hide_password(&mut error);
    // An error that quotes a line break is shown on one line, so that it cannot look like another error.
    let breaks = args.iter().any(|arg| arg.as_encoded_bytes().contains(&b'\n'));
    let (text, hint) = explain(&mut error, args, command);
    let (text, hint) = (shorten(text, args), hint.map(|hint| shorten(hint, args)));
    say(&if breaks { line(text.trim_end()) } else { plain(text.trim_end()) });
    if let Some(hint) = hint {
        say(&format!("\nhint: {}", line(&hint)));
    }
    2
}

/// Shortens the quoted words of the command line, and values in them.
fn shorten(mut text: String, args: &[OsString]) -> String {
    for word in args.iter().map(|arg| arg.to_string_lossy()) {
        for part in std::iter::once(&*word).chain(word.split(['=', ','])) {
            if part.chars().count() > VALUE_MAX {
                text = text.replace(part, &clip(part, VALUE_MAX));
            }
        }
    }
    text
}

/// Returns an error's text and its hint, without clap's own tips.
fn explain(
    error: &mut clap::Error,
    args: &[OsString],
    command: &Command,
) -> (String, Option<String>) {
    let words: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    if let Some(answer) = crate::sysbench::translate(&words, &sysbench::native_verbs(command)) {
        return (format!("error: {}", answer.what), Some(answer.command));
    }
    if error.kind() == ErrorKind::InvalidSubcommand {
        let text = format!(
            "error: there is no command '{}'",
            context(error, ContextKind::InvalidSubcommand)
        );
        return (text, Some(suggest_verb(error, command)));
    }
    let mut hint = None;
    if error.kind() == ErrorKind::UnknownArgument {
        // Passing the word as a value is not what the user wants.
        error.remove(ContextKind::Suggested);
        let verb = words.get(1).and_then(|verb| command.find_subcommand(verb));
        let given = context(error, ContextKind::InvalidArg).to_owned();
        if let Some(ContextValue::String(near)) = error.get(ContextKind::SuggestedArg)
            && !is_near(near, &given)
        {
            error.remove(ContextKind::SuggestedArg);
            // It names the flag, too.
            error.remove(ContextKind::Usage);
        }
        let mut behind = words.windows(2).filter(|pair| pair[1] == given);
        let behind = behind.find_map(|pair| equals_hint(&pair[0], &given, verb?));
        let has_near = error.get(ContextKind::SuggestedArg).is_some();
        hint = behind.or_else(|| unknown_hint(&given, verb, has_near));
    }
    (error.render().to_string(), hint)
}

fn equals_hint(flag: &str, value: &str, verb: &Command) -> Option<String> {
    // A password is not to be on a command line.
    let long = flag.strip_prefix("--").filter(|long| *long != "password")?;
    let mut flags = verb.get_arguments().filter(|arg| arg.is_require_equals_set());
    flags.find(|arg| arg.get_long() == Some(long))?;
    Some(format!("{flag} takes its value behind =: {flag}={value}"))
}

/// Explains a word that is no flag of its command.
fn unknown_hint(given: &str, verb: Option<&Command>, has_near: bool) -> Option<String> {
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
        _ if given.starts_with("--")
            && !has_near
            && verb.is_some_and(|verb| verb.get_name() == "lua") =>
        {
            let form = format!("loadgen lua FILE -- {given}=VALUE");
            Some(format!("an option of the script goes behind --: {form}"))
        }
        _ if given.starts_with('-') || given.is_empty() => None,
        _ if takes("queries") => {
            Some("--file FILE or --query SQL, and -D for a database".to_owned())
        }
        _ => takes("database").then(|| format!("-D {given}, if it is a database")),
    }
}

/// Returns whether a word may be a misspelling of another one.
fn is_near(word: &str, typed: &str) -> bool {
    let length = typed.trim_start_matches('-').len();
    strsim::damerau_levenshtein(word, typed) <= 1 + length / 5
}

/// Upper limit on commands that are suggested for a word of their names.
const MEANT_MAX: usize = 4;

fn suggest_verb(error: &clap::Error, command: &Command) -> String {
    let all = "loadgen --help lists the commands".to_owned();
    let typed = context(error, ContextKind::InvalidSubcommand);
    if Shipped::find(typed).is_some() {
        return format!("loadgen run {typed}? {all}");
    }
    let names = || command.get_subcommands().map(Command::get_name);
    // `select` means point-select, not delete.
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

    #[test]
    fn other_commands_have_no_flags_when_one_is_typed() {
        let has_flags = |typed| {
            let (command, _) = command_for(typed, false);
            // --help and --help-all are there.
            let count = |verb| command.find_subcommand(verb).expect(verb).get_arguments().count();
            ["point-select", "report"].map(|verb| count(verb) > 2)
        };
        assert_eq!(has_flags(Some("oltp_point_select")), [true, false]);
        assert_eq!([has_flags(Some("pointselect")), has_flags(None)], [[true; 2]; 2]);
    }

    /// The hint, and the flag that clap suggests, of a command line with a mistake.
    fn hints(line: &str) -> (Option<String>, Option<String>) {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (mut command, _) = command();
        let mut error = command.try_get_matches_from_mut(args.clone()).expect_err(line);
        let (_, hint) = explain(&mut error, &args, &command);
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
            Case { line: "loadgen tpcc", meant: Some("loadgen run tpcc?") },
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
    fn usage_of_an_unknown_flag_names_no_other_flag_when_none_is_near() {
        let args = ["loadgen", "point-select", "--range-size", "10"].map(OsString::from);
        let (mut command, _) = command();
        let mut error = command.try_get_matches_from_mut(args.clone()).expect_err("unknown");
        let (text, _) = explain(&mut error, &args, &command);
        assert!(text.contains("--range-size") && !text.contains("--ranks"), "{text}");
    }

    #[test]
    fn an_option_of_a_script_is_shown_behind_two_dashes_when_they_are_missing() {
        let hint = hints("loadgen lua own.lua --accounts=5").0.expect("a hint");
        assert!(hint.contains(" -- --accounts="), "{hint}");
        assert_eq!(hints("loadgen lua own.lua --cliens=5").0, None, "--clients is near");
    }

    #[test]
    fn help_is_shown_when_it_is_asked_for_help() {
        let args = replace_help_verb(["loadgen", "help", "help"].map(OsString::from).to_vec());
        let shown = command().0.try_get_matches_from(args).expect_err("help is no match");
        assert_eq!(shown.kind(), ErrorKind::DisplayHelp);
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
