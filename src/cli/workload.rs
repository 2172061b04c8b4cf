//! Verbs that measure on one server: workloads, with their options as flags, and load; the list of workloads.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, ArgMatches, Command};

use super::scripts::ScriptReader;
use super::shared::{ClientArgs, DisplayArgs, listen};
use crate::error::{Error, Result};
use crate::hosts::ClientHosts;
use crate::mysql::ConnectionArgs;
use crate::plan::knobs::{Knobs, LoadKnobs, LoadSpec, SLO_RESOLUTION};
use crate::plan::units::parse_count;
use crate::plan::value::RowsOrAuto;
use crate::plan::{ReadScript, defaults, value};
use crate::run::measure::{self, MeasureRequest};
use crate::run::scripts::read_beside;
use crate::run::steps::Job;
use crate::run::{Place, print_data, random};
use crate::sandbox::Spec;
use crate::workload::{OPTION_MAX, Schema, Workload, builtin};

#[derive(clap::Args, Debug, Clone)]
pub(crate) struct WorkloadArgs {
    #[command(flatten)]
    pub knobs: Knobs,

    #[command(flatten)]
    pub clients: ClientArgs,

    #[command(flatten)]
    pub measure: MeasureArgs,
}

#[derive(clap::Args, Debug, Clone)]
pub(crate) struct MeasureArgs {
    /// The row of the table [default: the server's version]
    #[arg(long, value_name = "NAME", value_parser = value::label)]
    pub label: Option<String>,

    /// Something to keep in the summaries; may be given several times
    #[arg(long = "note", value_name = "KEY=VALUE", value_parser = value::key_value)]
    pub notes: Vec<(String, String)>,

    /// Directory of the summaries
    #[arg(long, value_name = "DIR", default_value = defaults::OUT)]
    pub out: PathBuf,

    /// Print the plan and connect nowhere
    #[arg(long)]
    pub list: bool,

    #[command(flatten)]
    pub display: DisplayArgs,

    /// Measure a private server (this program, else mariadbd or mysqld from PATH); several take turns
    #[arg(
        long, value_name = "MYSQLD", num_args = 0..=1, require_equals = true,
        default_missing_value = "", value_parser = OsStringValueParser::new(),
        conflicts_with_all = ["host", "port", "user", "password", "password_fd", "socket",
            "protocol", "database", "ssl_mode", "ssl_ca", "ssl_cert", "ssl_key",
            "defaults_file", "defaults_extra_file", "defaults_group_suffix", "no_defaults", "url"],
        help_heading = "Sandbox"
    )]
    pub sandbox: Vec<OsString>,

    /// An option of the sandbox's server; may be given several times
    #[arg(
        long, value_name = "KEY[=VALUE]", requires = "sandbox", value_parser = option,
        help_heading = "Sandbox"
    )]
    pub sandbox_option: Vec<(String, Option<String>)>,

    #[command(flatten)]
    pub connection: ConnectionArgs,

    /// Command before `grep -s -H . FILE…` that reads /proc of the server's host: 'ssh db1'
    #[arg(long, value_name = "COMMAND", help_heading = "Connection")]
    pub probe: Option<String>,
}

fn option(text: &str) -> Result<(String, Option<String>), String> {
    let text = text.trim_start_matches("--");
    let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
    if key.is_empty() {
        return Err("an option has a name".to_owned());
    }
    Ok((key.to_owned(), value.map(str::to_owned)))
}

/// Beginnings of the options that a server takes several times.
const LISTS: &str = "binlog-do-db binlog-ignore-db early-plugin-load loose-plugin-load-add \
    performance-schema-instrument plugin-load-add replicate-";

/// Refuses a note with two values: the summaries keep one of each name.
pub(super) fn check_notes(notes: &[(String, String)]) -> Result<()> {
    let mut known = BTreeMap::new();
    for (key, value) in notes {
        let other = known.insert(key, value).filter(|other| *other != value);
        if let Some(other) = other {
            let text = format!("--note {key} is given twice, with '{other}' and '{value}'");
            return Err(Error::usage(text).hint("give the other value another name"));
        }
    }
    Ok(())
}

impl MeasureArgs {
    /// Refuses flags that need a single server, and an option with two values: a server takes the last.
    fn check_sandboxes(&self, asked: &MeasureRequest<'_>) -> Result<()> {
        let names: Vec<String> =
            self.sandbox_option.iter().map(|(name, _)| name.replace('_', "-")).collect();
        let is_list = |name: &str| LISTS.split(' ').any(|list| name.starts_with(list));
        let value = |at: usize| &self.sandbox_option[at].1;
        let double = |(at, name): &(usize, &String)| {
            let is_other = |other: usize| names[other] == **name && value(other) != value(*at);
            (0..*at).any(is_other) && !is_list(name)
        };
        if let Some((_, name)) = names.iter().enumerate().find(double) {
            return Err(Error::usage(format!("--sandbox-option {name} is given twice"))
                .hint("a command for each value, with the same --out, compares them"));
        }
        let servers = self.sandbox.len();
        if servers < 2 {
            return Ok(());
        }
        if self.label.is_some() {
            return Err(Error::usage(format!(
                "--label names one row, and there are {servers} servers"
            ))
            .hint("leave it out: the versions, else the programs, name the rows"));
        }
        if asked.slo.is_empty() {
            return Ok(());
        }
        Err(Error::usage("--slo searches the highest rate of one server")
            .hint("a command for each --sandbox, with the same --out"))
    }

    /// Measures the job on its server, or lists it.
    fn run(self, asked: &MeasureRequest<'_>, clients: ClientArgs, random_seed: bool) -> Result<()> {
        self.check_sandboxes(asked)?;
        check_notes(&asked.notes)?;
        let stop = &listen()?;
        let invocation = clients.invocation(&self.display, stop, self.out)?;
        let hosts = invocation.hosts.as_ref();
        if hosts.is_some() && !self.sandbox.is_empty() {
            return Err(Error::usage("--sandbox: other hosts do not reach a private server")
                .hint("--host names a server that all of --hosts or --ranks reach"));
        }
        // An empty word means the program of PATH.
        let sandbox = |word: OsString| Spec {
            program: (!word.is_empty()).then(|| PathBuf::from(word)),
            options: self.sandbox_option.clone(),
            ..Spec::default()
        };
        let sandboxes = self.sandbox.into_iter().map(sandbox).collect();
        let place = Place { connection: self.connection, sandboxes, probe: self.probe };
        if self.list && hosts.is_some_and(ClientHosts::are_led_elsewhere) {
            return Ok(());
        }
        if self.list {
            let out = &invocation.out;
            return print_data(&measure::list(asked, &place, out, hosts, random_seed)?);
        }
        measure::run(asked, &place, invocation)
    }
}

/// Measures a workload, or a script instead; with `--list`, no script is run.
pub(super) fn sweep(
    workload: Workload,
    args: WorkloadArgs,
    script: Option<ReadScript>,
) -> Result<()> {
    let mut knobs = args.knobs.clone();
    let own = !args.measure.sandbox.is_empty();
    if own && workload.schema.filled() {
        let rows = knobs.rows.and_then(|rows| rows.0).unwrap_or(defaults::ROWS);
        knobs.rows = Some(RowsOrAuto(Some(rows)));
    }
    if let Some(log) = knobs.interval_log.as_ref().filter(|log| log.exists()) {
        return Err(Error::usage(format!("--interval-log: {} is there already", log.display()))
            .hint("another name: nothing is written over"));
    }
    // 53 bits: every reader of JSON reads the same number.
    let plan = knobs.resolve(workload, random()? >> 11)?;
    let mut plan = match script {
        Some(script) => plan.run_script(script),
        None => plan,
    };
    if !args.measure.list {
        let database = args.measure.connection.database.as_deref();
        read_beside(&ScriptReader { database }, &mut plan)?;
    }
    if own {
        plan.tables = Some(plan.tables_or_default());
    }
    let Knobs { gates, slo, slo_resolution, seed, .. } = args.knobs;
    let (job, repeats) = (Job::Sweep(&plan), plan.repeats);
    let (slo_resolution, yes) = (slo_resolution.unwrap_or(SLO_RESOLUTION), false);
    let (label, notes) = (args.measure.label.clone(), args.measure.notes.clone());
    let request = MeasureRequest { job, label, notes, repeats, gates, slo, slo_resolution, yes };
    args.measure.run(&request, args.clients, seed.is_none())
}

const HEADING: &str = "Options of this workload";

/// Makes flags such as `--range-size N`, `--skip-trx`; sysbench's underscores are accepted, too.
pub(super) fn add_options(mut command: Command, workload: &Workload) -> Command {
    for (name, setting) in &workload.options {
        let default = setting.display_value();
        let help = match setting.about.as_str() {
            "" => format!("[default: {default}]"),
            about => format!("{about} [default: {default}]"),
        };
        let arg = Arg::new(id(name)).long(name.replace('_', "-")).help(help).help_heading(HEADING);
        let arg = if name.contains('_') { arg.alias(name.clone()) } else { arg };
        command = command.arg(if setting.switch {
            arg.num_args(0..=1)
                .require_equals(true)
                .value_name("on|off")
                .hide_possible_values(true)
                .default_missing_value("on")
                .value_parser(
                    PossibleValuesParser::new(["on", "true", "1", "off", "false", "0"])
                        .map(|word| u64::from(["on", "true", "1"].contains(&word.as_str()))),
                )
        } else {
            arg.value_name("N").value_parser(number)
        });
    }
    command
}

pub(crate) fn given(workload: &Workload, matches: &ArgMatches) -> BTreeMap<String, u64> {
    let given = |name: &String| Some((name.clone(), *matches.get_one::<u64>(&id(name))?));
    workload.options.keys().filter_map(given).collect()
}

/// A prefix keeps it different from all other ids.
fn id(name: &str) -> String {
    format!("option {name}")
}

fn number(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        n if n > OPTION_MAX => Err(format!("{n} is more than {OPTION_MAX}")),
        n => Ok(n),
    }
}

pub(super) fn workloads((): ()) -> Result<()> {
    print_data(&(builtin().iter().map(describe).collect::<Vec<_>>().join("\n")))
}

fn describe(workload: &Workload) -> String {
    let (options, transactions) = (&workload.options, &workload.transactions);
    let mut lines = vec![
        format!("{}  ({})", workload.name, workload.aliases.join(", ")),
        format!("  {}", workload.about),
    ];
    if workload.schema != Schema::default() {
        lines.push(format!("  tables of --schema {}", workload.schema));
    }
    lines.extend(options.iter().map(|(name, setting)| {
        format!("  --{} {}: {}", name.replace('_', "-"), setting.display_value(), setting.about)
    }));
    for transaction in transactions {
        if transactions.len() > 1 {
            lines.push(format!("  transaction, weight {}", transaction.weight));
        }
        let begins = workload.begins(transaction);
        lines.extend(begins.then(|| "  BEGIN".to_owned()));
        for (statement, repeat) in workload.running(transaction) {
            let times = if repeat == 1 { String::new() } else { format!("  × {repeat}") };
            lines.push(format!("  {}{times}", statement.brief_sql(options)));
            lines.push(format!("    expects {}", statement.expect));
        }
        lines.extend(begins.then(|| "  COMMIT".to_owned()));
    }
    lines.join("\n") + "\n"
}

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
The rows are made on the fly, as mysqldump --opt would have written them, or read from a file that
mysqldump wrote, whose statements are sent as they are. One connection loads them. Tables that an
earlier load made are dropped, those of prepare with --force, others never.")]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub knobs: LoadKnobs,

    /// Load N times; the table shows the median
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    /// Drop also tables that prepare made
    #[arg(long)]
    pub force: bool,

    /// Do not ask before that
    #[arg(long)]
    pub yes: bool,

    #[command(flatten)]
    pub measure: MeasureArgs,
}

pub(super) fn load(args: LoadArgs) -> Result<()> {
    if args.knobs.dump.as_ref().is_some_and(|path| path.as_os_str() == "-") {
        let servers = args.measure.sandbox.len();
        let again = [(args.repeat > 1, "--repeat times"), (servers > 1, "for each --sandbox")];
        if let Some((_, times)) = again.into_iter().find(|(is_given, _)| *is_given) {
            let text = format!("--from-dump -: standard input comes once, not {times}");
            return Err(Error::usage(text).hint("name a file"));
        }
    }
    let LoadArgs { knobs, repeat: repeats, force, yes, measure } = args;
    let spec = LoadSpec::try_from(knobs).map_err(Error::usage)?;
    let (label, notes) = (measure.label.clone(), measure.notes.clone());
    let (job, gates, slo) = (Job::Load { spec: &spec, force }, Vec::new(), Vec::new());
    let request =
        MeasureRequest { job, label, notes, repeats, gates, slo, slo_resolution: 0.0, yes };
    measure.run(&request, ClientArgs::default(), false)
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    fn parsed(words: &str) -> Result<BTreeMap<String, u64>, String> {
        let words = words.split_whitespace();
        let matches =
            crate::cli::command().0.try_get_matches_from(["loadgen"].into_iter().chain(words));
        let matches = matches.map_err(|e| e.to_string())?;
        let (verb, matches) = matches.subcommand().ok_or("no verb")?;
        let workload = builtin().into_iter().find(|w| w.name == verb).ok_or("no workload")?;
        Ok(given(&workload, matches))
    }

    #[test]
    fn load_of_standard_input_is_refused_when_it_would_be_read_again() {
        for (more, named) in
            [("--repeat 2", "--repeat"), ("--sandbox=/a --sandbox=/b", "--sandbox")]
        {
            let words = format!("loadgen load --from-dump - {more}");
            let matches = crate::cli::command().0.try_get_matches_from(words.split_whitespace());
            let matches = matches.expect("its form");
            let (_, matches) = matches.subcommand().expect("a verb");
            let args = LoadArgs::from_arg_matches(matches).expect("its flags");
            let refused = load(args).expect_err("it comes once").to_string();
            assert!(refused.contains(named), "{refused}");
        }
    }

    #[test]
    fn note_is_refused_when_it_has_two_values() {
        let checked = |notes: &[(&str, &str)]| {
            let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            check_notes(&notes.iter().map(owned).collect::<Vec<_>>()).map_err(|e| e.to_string())
        };
        assert_eq!(checked(&[("disk", "a"), ("build", "b"), ("disk", "a")]), Ok(()));
        let refused = checked(&[("disk", "a"), ("disk", "b")]).expect_err("one is lost");
        assert!(refused.contains("disk") && refused.contains("'b'"), "{refused}");
    }

    #[test]
    fn options_are_flags_in_both_spellings() {
        let given = parsed("oltp_read_write --range-size 10 --point_selects=1k --skip-trx");
        let expected = [("point_selects", 1000), ("range_size", 10), ("skip_trx", 1)]
            .map(|(n, v)| (n.to_owned(), v));
        assert_eq!(given, Ok(expected.into()));
        assert_eq!(parsed("read-write --skip_trx=off"), Ok([("skip_trx".to_owned(), 0)].into()));
        assert_eq!(parsed("read-write"), Ok(BTreeMap::new()), "defaults stay the workload's");
        for wrong in
            ["read-write --range-size x", "read-write --skip-trx=yes", "read-write --delta 1"]
        {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
