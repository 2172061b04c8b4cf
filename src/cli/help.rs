//! Help: commands in groups on one screen; for a command its examples and its usual flags, or all with
//! `--help-all`.

use clap::{Arg, ArgAction, Command};

use crate::workload::{Schema, builtin};

/// The commands of the first screen. Words after a command's name are part of an example.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Start here", &["point-select --sandbox", "prepare", "run"]),
    ("Measure", &["sql", "lua", "load", "sysbench"]),
    ("Look", &["report", "compare", "explain", "import"]),
    ("Check", &["verify", "calibrate", "recheck"]),
    ("Other", &["workloads", "profiles", "cleanup", "completions", "man", "help"]),
];

/// Texts for entries that are no command, or another one here.
const TEXTS: [(&str, &str); 2] = [
    ("point-select --sandbox", "Measure a private server at once: nothing to set up"),
    ("help", "Print this, or the help of a command: loadgen help report"),
];

const WIDTH: usize = 100;

/// Examples of each command; those of a workload have its name for `{verb}`.
const EXAMPLES: [(&str, [&str; 3]); 21] = [
    (
        "{verb}",
        [
            "{verb} --sandbox --clients 1..8 --warmup 1 --time 5",
            "{verb} --host db1 -u bench -p --clients 8..64 --label 8.4.3",
            "{verb} --clients 32 --time 60 --gate 'p99<10ms' --gate errors==0",
        ],
    ),
    (
        "prepare",
        [
            "prepare --tables 8 --rows 1M --socket /run/mysqld/mysqld.sock",
            "prepare --host db1 --user bench --password --tables 8 --rows 16M",
            "prepare --schema phptest --rows 1M",
        ],
    ),
    (
        "sql",
        [
            "sql --file tx.sql --host db1 --user bench --password --clients 8..64",
            "sql --query 'SELECT 1' --sandbox --clients 4 --time 5",
            "sql --query 'SELECT * FROM t WHERE id = {random 1..1000}' --database shop",
        ],
    ),
    (
        "lua",
        [
            "lua tpcc.lua --host db1 -u bench -p --command prepare -- --warehouses=10",
            "lua tpcc.lua --host db1 -u bench -p --clients 8..64 --time 60 -- --warehouses=10",
            "lua own.lua --sandbox --clients 4 --time 5",
        ],
    ),
    (
        "run",
        [
            "run smoke",
            "run sysbench-oltp --host db1 --user bench --password --label 8.4.3",
            "run ab.toml --scale 0.001 --program 11.8=/usr/sbin/mariadbd",
        ],
    ),
    ("profiles", ["profiles", "profiles version-cost", "profiles smoke --print"]),
    (
        "load",
        [
            "load --rows 16M --label 8.0.33",
            "load --rows 16M --mode single --charset latin1",
            "load --from-dump t1.sql --repeat 3",
        ],
    ),
    ("workloads", ["workloads", "workloads | less", "workloads | grep oltp"]),
    (
        "report",
        [
            "report results/",
            "report results/ --metric p99",
            "report results/ --label 8.4.3 -o report.html",
        ],
    ),
    (
        "compare",
        [
            "compare results/",
            "compare results/ --baseline 8.0.33 --new 8.4.3 --metric qps --metric p99",
            "compare results/ --baseline main --new branch --fail-on-regression",
        ],
    ),
    (
        "explain",
        [
            "explain results/",
            "explain results/ --baseline 8.0.33 --new 8.4.3",
            "explain results/ --format json",
        ],
    ),
    (
        "import",
        [
            "import sysbench old.txt",
            "import sysbench run1.txt run2.txt --label 5.1.36 --tables 8 --rows 1M",
            "import sysbench old.txt --workload read-only --note host=blue",
        ],
    ),
    (
        "verify",
        [
            "verify results/",
            "verify results/ --socket /run/mysqld/mysqld.sock",
            "verify results/ --host replica1 --elsewhere",
        ],
    ),
    ("calibrate", ["calibrate", "calibrate --clients 1,8,64 --time 5", "calibrate --format json"]),
    (
        "recheck",
        [
            "recheck results/ --profile version-cost --list",
            "recheck results/ --profile ab.toml",
            "recheck results/ --profile ab.toml --new 9.7.4 --max-repeats 24",
        ],
    ),
    (
        "cleanup",
        [
            "cleanup",
            "cleanup --socket /run/mysqld/mysqld.sock --yes",
            "cleanup --host db1 --user bench --password",
        ],
    ),
    (
        "sysbench",
        [
            "sysbench oltp_read_write --tables=8 --table-size=100000 --threads=8 prepare",
            "sysbench oltp_read_write --tables=8 --table-size=100000 --threads=64 --time=60 run",
            "sysbench --explain oltp_point_select --threads=8 --mysql-host=db1 run",
        ],
    ),
    ("man", ["man .", "man /usr/local/share/man/man1", "man target/man"]),
    ("completions", ["completions bash", "completions zsh", "completions fish"]),
    ("rank", ["rank", "rank | head -1", "rank | jq ."]),
    (
        "canned",
        ["canned --port 3307", "canned --socket /tmp/canned.sock", "canned --service const:1ms"],
    ),
];

/// Rare flags; a command with many flags shows them with `--help-all` only.
const RARE: &str = "spread ops order distribution statements seed engine-threads charset interval \
    interval-log arrival think reconnect-every beside slo-resolution on-error max-errors op-timeout warm ahi settle \
    expect-class calibration note progress quiet sandbox-option probe password-fd protocol ssl-ca \
    ssl-cert ssl-key defaults-file defaults-extra-file defaults-group-suffix no-defaults url connect-timeout data-seed \
    insert-bytes mode jobs fill openmetrics others-max hosts host-command host-program ranks ranks-wait rendezvous";

/// Flags above which a command hides the rare ones.
const MANY: usize = 16;

pub(super) fn screen(command: &Command) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!(
        "loadgen {version}: a load generator for MySQL-compatible servers\n\n\
         Usage: loadgen COMMAND [FLAGS]\n"
    );
    for (heading, names) in GROUPS {
        text += &format!("\n{heading}:\n");
        if heading == "Measure" {
            text += &workloads();
        }
        for name in names {
            let own = TEXTS.iter().find(|(command, _)| command == name);
            let own = own.map(|(_, text)| (*text).to_owned());
            let about = || command.find_subcommand(name)?.get_about().map(ToString::to_string);
            text += &format!("  {name:<24}{}\n", own.or_else(about).unwrap_or_default());
        }
    }
    text + "\n`loadgen COMMAND --help` shows examples and the usual flags, `--help-all` all flags.\n"
}

/// Lists the workloads, except those of 2007, in lines of full width.
fn workloads() -> String {
    let names = builtin().into_iter().filter(|workload| workload.schema != Schema::Phptest);
    let names: Vec<String> = names.map(|workload| workload.name).collect();
    let mut lines = vec![String::from("  a workload:")];
    for (n, name) in names.iter().enumerate() {
        let word = format!(" {name}{}", if n + 1 < names.len() { "," } else { "" });
        match lines.last_mut() {
            Some(line) if line.len() + word.len() <= WIDTH => line.push_str(&word),
            _ => lines.push(format!("             {word}")),
        }
    }
    lines.join("\n") + "\n"
}

/// Adds a command's examples, and hides its rare flags unless `all`.
pub(super) fn shaped(command: Command, all: bool) -> Command {
    let name = command.get_name().to_owned();
    let many = !all && command.get_arguments().count() > MANY;
    let is_rare = |long: &str| RARE.split_whitespace().any(|rare| rare == long);
    let hides = |arg: &Arg| many && arg.get_long().is_some_and(is_rare);
    let hidden = command.get_arguments().filter(|arg| hides(arg)).count();
    let more = (hidden > 0).then(|| format!("`--help-all` shows {hidden} more flags."));
    let after = command.get_after_help().map(|text| join_lines(&text.to_string()));
    let after = after.into_iter().chain(more).collect::<Vec<_>>().join("\n\n");
    let lines = examples(&name).expect("workloads have some");
    // Braces of an example would be read as part of the template.
    let examples =
        command.get_about().map(|about| format!("{about}\n\nExamples:\n{}", lines.concat()));
    let template = "{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";
    let command = command.help_template(template).before_help(examples.unwrap_or_default());
    command.after_help(after).mut_args(|arg| {
        let hide = hides(&arg);
        arg.hide_short_help(hide)
    })
}

/// Joins the lines of each paragraph, but not indented ones: clap breaks lines at the terminal's width.
fn join_lines(text: &str) -> String {
    let mut joined = String::new();
    let mut in_paragraph = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        if !joined.is_empty() {
            joined.push(if in_paragraph && is_prose { ' ' } else { '\n' });
        }
        joined += line;
        in_paragraph = is_prose;
    }
    joined
}

pub(super) fn examples(name: &str) -> Option<[String; 3]> {
    let own = |of: &str| EXAMPLES.iter().find(|(verb, _)| *verb == of);
    let (_, examples) = own(name).or_else(|| own("{verb}")).filter(|_| name != "loadgen")?;
    Some(examples.map(|line| format!("  loadgen {}\n", line.replace("{verb}", name))))
}

/// Adds `--help` to all commands, without `-h`, which is `--host`.
#[must_use]
pub fn help_without_h(command: Command) -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::HelpShort).help(help)
    };
    let flags = [flag("help", "Print help"), flag("help-all", "Print help with all flags")];
    let command = command.disable_help_flag(true).next_help_heading(None::<&str>).args(flags);
    command.mut_subcommands(help_without_h)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    /// Commands that other modules describe at length.
    const LONG: [&str; 3] = ["report", "compare", "explain"];

    fn help(words: &str) -> String {
        let words = words.split_whitespace();
        let shown = command().0.try_get_matches_from(["loadgen"].into_iter().chain(words));
        shown.expect_err("help is no match").to_string()
    }

    #[test]
    fn the_first_screen_fits_and_names_every_command() {
        let text = help("--help");
        assert!(text.lines().count() <= 40, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let of_2007 =
            |name: &str| builtin().iter().any(|w| w.schema == Schema::Phptest && w.name == name);
        for verb in command().0.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let name = verb.get_name();
            let named = text.split([' ', ',', '\n']).any(|word| word == name);
            assert_eq!(named, !of_2007(name), "{name}");
        }
        let lines = text.lines().filter(|line| line.starts_with("  ") && !line.contains(','));
        for line in lines {
            assert!(line.get(26..).is_some_and(|about| !about.is_empty()), "{line}");
        }
    }

    #[test]
    fn every_example_is_a_command_that_is_taken() {
        let (whole, _) = command();
        for verb in whole.get_subcommands() {
            let asked = ["loadgen", verb.get_name(), "--help"];
            let text = whole.clone().try_get_matches_from(asked).expect_err("help").to_string();
            let lines: Vec<&str> =
                text.lines().filter(|line| line.starts_with("  loadgen ")).collect();
            assert_eq!(lines.len(), 3, "{text}");
            for line in lines {
                let line = line.split(" | ").next().expect("a command");
                let (mut words, mut quoted) = (vec![String::new()], false);
                for c in line.trim().chars() {
                    match c {
                        '\'' => quoted = !quoted,
                        ' ' if !quoted => words.push(String::new()),
                        _ => words.last_mut().expect("one").push(c),
                    }
                }
                let taken = whole.clone().try_get_matches_from(words);
                assert!(taken.is_ok(), "{line}: {}", taken.expect_err("refused"));
            }
        }
    }

    #[test]
    fn help_hides_rare_flags_and_says_how_many() {
        // The continuation of a text may begin with a dash, too, further to the right.
        let is_flag =
            |line: &&str| line.find('-').is_some_and(|at| line[..at].trim().is_empty() && at <= 6);
        let flags = |text: &str| text.lines().filter(is_flag).count();
        for verb in ["point-select", "sql", "load", "prepare", "verify", "report"] {
            let text = help(&format!("{verb} --help"));
            let more = text.lines().last().and_then(|line| line.split(' ').nth(2));
            let more: usize = more.expect("a number").parse().expect("a number");
            let (all, _) = crate::cli::command_for(None, true);
            let all = all.try_get_matches_from(["loadgen", verb, "--help-all"]);
            let all = all.expect_err("help").to_string();
            assert!(!all.contains("more flags"), "{all}");
            let of = |text: &str| flags(text.split("Usage:").nth(1).expect("a usage"));
            assert_eq!(of(&text) + more, of(&all), "{verb}");
            assert!(of(&text) <= 24, "{text}");
        }
    }

    #[test]
    fn help_breaks_lines_once_when_the_terminal_has_80_columns() {
        let (all, _) = crate::cli::command_for(None, true);
        for verb in all.get_subcommands() {
            let name = verb.get_name();
            let (command, _) = crate::cli::command_for(None, true);
            let asked = ["loadgen", name, "--help-all"];
            let text = command.term_width(80).try_get_matches_from(asked).expect_err("help");
            let lines: Vec<String> = text.to_string().lines().map(str::to_owned).collect();
            for (line, next) in lines.iter().zip(&lines[1..]) {
                assert!(line.chars().count() <= 80, "{name}: {line}");
                // The next line's first word would have had room.
                let word = next.split(' ').next().filter(|word| !word.is_empty());
                let is_prose = !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
                let room = word.is_some_and(|word| line.len() + 1 + word.len() <= 80);
                assert!(!(is_prose && room), "{name}: {line}\n{next}");
            }
        }
    }

    #[test]
    fn options_of_a_script_are_shown_among_the_arguments() {
        let text = help("lua --help");
        let below = text.split("\nArguments:").nth(1).expect("it has arguments");
        let arguments = below.split("\nOptions:").next().expect("a text");
        assert!(arguments.contains("[OPTION]"), "{text}");
    }

    #[test]
    fn every_rare_flag_is_a_flag() {
        let (command, _) = command();
        for rare in RARE.split_whitespace() {
            let has = |verb: &Command| verb.get_arguments().any(|arg| arg.get_long() == Some(rare));
            assert!(command.get_subcommands().any(has), "{rare}");
        }
    }

    #[test]
    fn a_flag_is_told_in_two_lines() {
        let (all, _) = crate::cli::command_for(None, true);
        for verb in all.get_subcommands().filter(|verb| !LONG.contains(&verb.get_name())) {
            let asked = ["loadgen", verb.get_name(), "--help-all"];
            let text = all.clone().try_get_matches_from(asked).expect_err("help").to_string();
            let lines: Vec<&str> = text.lines().collect();
            for three in lines.windows(3) {
                let goes_on = |line: &&str| line.starts_with("              ");
                let begins = three[0].trim_start().starts_with('-');
                assert!(!(begins && three[1..].iter().all(goes_on)), "{}", three.join("\n"));
            }
        }
    }
}
