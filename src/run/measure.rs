//! The verbs of one server. Those that measure have one pipeline: plan, progress, store, sandbox, connection,
//! steps, gates, table. The others make, drop and verify prepare's tables.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::before::{close, open, preflight, with_liveness};
use super::forecast::{Forecast, PlannedStep};
use super::scripts::run_steps;
use super::servers::size_sandbox;
use super::slo::{Slo, check_window, describe_search};
use super::steps::{Job, Steps};
use super::summarise::server_label;
use super::{
    Invocation, Place, calibration, check_gates, directory, finish, latency_for_person, leave_out,
    print_data, runtime, start, stop_private, tell_saved, tell_signal, terminal, to_step_summary,
    warn,
};
use crate::engine::run_on_thread;
use crate::error::{Error, Kind, Result, clip, line, ranked};
use crate::hosts::{ClientHosts, Ranks};
use crate::load::{self, Numbers};
use crate::mysql::{ConnectOptions, ConnectionArgs, Env, ServerLink, Session, reach, resolve};
use crate::plan::experiment::Dataset;
use crate::plan::knobs::{InsertMode, LoadSource, LoadSpec};
use crate::plan::search::STEPS_MAX;
use crate::plan::{Plan, Step, defaults, units};
use crate::progress::Progress;
use crate::report::{self, Format, Layout};
use crate::sandbox::{self, Spec};
use crate::stop::{Stop, or_stop, unless_stopped};
use crate::summary::{self, Outcome, Summary};
use crate::terms::{Gate, counted};
use crate::verify::{AnswerFound, Answered, Checked, Evidence, Verdict};
use crate::workload::Schema;

/// Limit on a private server's options in a label: a label has at most 200 characters, with the version.
const OPTIONS_MAX: usize = 150;

pub(crate) struct MeasureRequest<'a> {
    pub(crate) job: Job<'a>,
    pub(crate) label: Option<String>,
    pub(crate) notes: Vec<(String, String)>,
    pub(crate) repeats: u32,
    pub(crate) gates: Vec<Gate>,
    pub(crate) slo: Vec<Gate>,
    pub(crate) slo_resolution: f64,
    pub(crate) yes: bool,
}

impl MeasureRequest<'_> {
    fn search(&self) -> Result<Option<Slo>> {
        let Job::Sweep(plan) = self.job else { return Ok(None) };
        if self.slo.is_empty() {
            return Ok(None);
        }
        let [start] = plan.rates.as_slice() else {
            return Err(Error::usage("--slo begins its search at one rate")
                .hint("--rate 1k, or leave it out"));
        };
        Ok(Some(Slo::new(plan, &self.slo, *start, self.slo_resolution)))
    }

    /// Warns of a search whose window is too short for some rates; refuses one that is too short for all.
    fn check_window(&self, tell: impl FnOnce(&str)) -> Result<()> {
        if let Job::Sweep(plan) = self.job
            && let Some(few) = check_window(&self.slo, plan)?
        {
            tell(&few);
        }
        Ok(())
    }

    fn forecast(&self, servers: usize) -> Forecast {
        let Job::Sweep(plan) = self.job else { return Forecast::default() };
        let steps = plan.count_steps() as usize * servers * usize::from(self.slo.is_empty());
        let planned = PlannedStep { step: plan.step_time(), ..PlannedStep::default() };
        Forecast::new(std::iter::repeat_n(planned, steps))
    }

    fn steps(&self) -> Vec<Step> {
        if let Job::Sweep(plan) = self.job {
            return plan.steps();
        }
        let of = self.repeats;
        (1..=of).map(|n| Step::new(n, of, (1, None), n)).collect()
    }

    fn sandbox(&self) -> Result<Spec> {
        // A load has two connections, and some more for readings.
        let Job::Sweep(plan) = self.job else { return Ok(size_sandbox(0, 0)) };
        let tables = plan.tables_or_default();
        let statements = plan.prepared_in_all(plan.spread_over(tables)?, tables);
        Ok(size_sandbox(plan.clients_max().saturating_add(plan.clients_beside()), statements))
    }

    /// Fills the tables of a private server, or asks for consent to drop those that a load replaces.
    async fn make_ready(&self, link: &ServerLink, own: bool, steps: &mut Steps<'_>) -> Result<()> {
        match self.job {
            Job::Sweep(plan) if own && plan.tables != Some(0) => {
                let tables = Dataset {
                    schema: plan.schema(),
                    tables: plan.tables_or_default(),
                    rows: plan.rows.filter(|_| plan.schema().filled()).unwrap_or(0),
                    data_seed: defaults::DATA_SEED,
                    charset: plan.charset.clone(),
                    ..Dataset::default()
                };
                steps.flush = load::prepare(link, &tables, steps.progress).await?.filled > 0;
                Ok(())
            }
            Job::Load { spec, force: true } if !own => {
                let named = |made: &Numbers| list_dropped(spec, made);
                Box::pin(agree_to_drop(link, consent(self.yes, true), false, named)).await
            }
            Job::Sweep(_) | Job::Load { .. } | Job::Suite(_) => Ok(()),
        }
    }
}

pub(crate) fn run(
    args: &MeasureRequest<'_>,
    place: &Place,
    mut invocation: Invocation<'_>,
) -> Result<()> {
    // First, before any rank waits for another one: all ranks find these errors alike.
    let (mut slo, is_led) = (args.search()?, invocation.is_led_elsewhere());
    args.check_window(|text| {
        if !is_led {
            invocation.progress.warn(text);
        }
    })?;
    let prefix = split_probe(place)?;
    if let Job::Sweep(plan) = args.job {
        let stop = invocation.stop;
        let find = || {
            let mut quiet = Progress::new(true, None);
            let target = resolve::find(&place.connection, Env::real(), stop, &mut quiet);
            target.map(|target| vec![(None, target)])
        };
        if invocation.follow(vec![plan.clone()], find)? {
            return Ok(());
        }
    }
    let turns = plan_turns(args, place, invocation.stop)?;
    // Rank 0 of a launcher listens first: if it fails before, all other ranks wait for it.
    let begun = if invocation.is_launched() { None } else { Some(invocation.begin()?) };
    let (mut ranks, mut target) = (None, None);
    if let Job::Sweep(plan) = args.job {
        if begun.is_some() && invocation.hosts.is_some() {
            target = Some(look_first(plan, place, &mut invocation)?);
        }
        ranks = invocation.start_ranks(std::iter::once(plan))?;
    }
    let store = begun.map_or_else(|| invocation.begin(), Ok)?;
    let (mut own_plan, mut ceiling, mut search) = (None, None, None);
    // A load has no engine: it records no client cost.
    if let Job::Sweep(plan) = args.job {
        let plan = own_plan.insert(plan.clone());
        // A search does not repeat rates by plan.
        plan.repeats = if slo.is_some() { 1 } else { plan.repeats };
        if let Some(ranks) = &ranks {
            plan.add_up_threads(&ranks.threads());
        }
        let start = plan.rates.first().filter(|_| slo.is_some());
        search = start.map(|start| describe_search(&args.slo, *start, args.slo_resolution));
        ceiling = calibration::find(&mut invocation)?;
    }
    let Invocation { mut progress, stop, out, exporter, others_max, .. } = invocation;
    let mut steps = Steps {
        prefix,
        level: &args.slo,
        forecast: args.forecast(place.sandboxes.len().max(1)),
        ranks: ranks.as_mut(),
        exporter: exporter.clone(),
        others_max,
        ..Steps::new(own_plan.as_ref().map_or(args.job, Job::Sweep), &store, &mut progress)?
    };
    steps.facts.notes = args.notes.iter().cloned().collect();
    (steps.facts.repeats, steps.facts.search) = (args.repeats, search);
    steps.facts.calibration = ceiling.as_ref();
    let mut ended = Ok(());
    for turn in turns {
        ended = turn.measure(args, (place, target.as_ref()), &mut slo, &mut steps, stop);
        if ended.is_err() {
            break;
        }
    }
    steps.progress.clear();
    let printed = match slo {
        Some(slo) => slo.print_result(&steps.summaries),
        None => print_table(&steps.summaries, &out, steps.progress.is_quiet()),
    };
    let all = steps.summaries.iter().collect();
    let gated = check_gates(std::iter::once((all, args.gates.as_slice())), steps.progress);
    tell_end(args, place, ended.is_ok(), &mut steps, &out);
    if let Some(exporter) = exporter {
        exporter.wait_for_last_scrape(stop, steps.progress);
    }
    finish([ended, printed, gated], steps.progress)
}

/// Finds the server; refuses one that cannot run the plan, or its tables, before other hosts are started.
fn look_first(
    plan: &Plan,
    place: &Place,
    invocation: &mut Invocation<'_>,
) -> Result<ConnectOptions> {
    let stop = invocation.stop;
    let target = resolve::find(&place.connection, Env::real(), stop, &mut invocation.progress)?;
    // None of the clients are here.
    let plan = Plan { host_threads: vec![1], ..plan.clone() };
    runtime()?.block_on(async {
        let link = reach(&target, stop).await?;
        Ranks::check_link(&link)?;
        let mut control = open(&link, plan.charset.as_deref()).await?;
        let looking = async |control: &mut Session| {
            Box::pin(preflight(&plan, &link.target, control)).await.map(drop)
        };
        with_liveness(&link, &mut control, looking).await?;
        close(Some(control)).await;
        Ok::<_, Error>(())
    })?;
    Ok(target)
}

/// Splits the command that reads the server's host; refuses one without words.
fn split_probe(place: &Place) -> Result<Vec<String>> {
    let words = place.probe.as_deref().unwrap_or_default().split_whitespace().map(str::to_owned);
    let prefix: Vec<String> = words.collect();
    if place.probe.is_some() && prefix.is_empty() {
        return Err(Error::usage("--probe is empty").hint("--probe 'ssh db1'"));
    }
    Ok(prefix)
}

/// Steps that follow each other on one server, which is private if there is a sandbox.
struct ServerTurn<'a> {
    sandbox: Option<&'a Spec>,
    label: Option<String>,
    steps: Vec<Step>,
}

/// Plans one turn a repeat and server, so that a drift of the host affects all servers.
fn plan_turns<'a>(
    args: &MeasureRequest<'_>,
    place: &'a Place,
    stop: &Stop,
) -> Result<Vec<ServerTurn<'a>>> {
    let (steps, label) = (args.steps(), args.label.clone());
    if place.sandboxes.len() < 2 {
        return Ok(vec![ServerTurn { sandbox: place.sandboxes.first(), label, steps }]);
    }
    let labels = label_sandboxes(&place.sandboxes, stop)?;
    let of = u32::try_from(steps.len() * labels.len()).unwrap_or(u32::MAX);
    let (mut turns, mut number) = (Vec::new(), 0);
    let repeats: BTreeSet<u32> = steps.iter().map(|step| step.repeat).collect();
    for repeat in repeats {
        for (sandbox, label) in place.sandboxes.iter().zip(&labels) {
            let steps = steps.iter().filter(|step| step.repeat == repeat).map(|step| {
                number += 1;
                Step { number, place: number, of, ..*step }
            });
            let steps = steps.collect();
            turns.push(ServerTurn { sandbox: Some(sandbox), label: Some(label.clone()), steps });
        }
    }
    Ok(turns)
}

/// Labels several private servers: by their versions if these differ, else by their programs.
fn label_sandboxes(sandboxes: &[Spec], stop: &Stop) -> Result<Vec<String>> {
    let by_version = |spec: &Spec| {
        let version = sandbox::program_version(spec, &|| stop.asked().is_some());
        let version = version.map_err(|error| tell_signal(error, stop))?;
        Ok(server_label(&version, &options_text(spec)))
    };
    let by_program = |spec: &Spec| {
        let path = sandbox::find_program(spec.program.as_deref())?;
        Ok(format!("{}{}", path.display(), options_text(spec)))
    };
    let are_distinct =
        |labels: &[String]| labels.iter().collect::<BTreeSet<_>>().len() == labels.len();
    let labels = sandboxes.iter().map(by_version).collect::<Result<Vec<String>>>()?;
    if are_distinct(&labels) {
        return Ok(labels);
    }
    let labels = sandboxes.iter().map(by_program).collect::<Result<Vec<String>>>()?;
    if are_distinct(&labels) {
        return Ok(labels);
    }
    Err(Error::usage("several --sandbox name the same program: their rows would have one name")
        .hint("--sandbox=/path/to/ONE --sandbox=/path/to/OTHER; two settings of one: loadgen run --help"))
}

impl ServerTurn<'_> {
    /// Measures its steps; `known` is the server where it was found before.
    fn measure(
        self,
        args: &MeasureRequest<'_>,
        (place, known): (&Place, Option<&ConnectOptions>),
        slo: &mut Option<Slo>,
        steps: &mut Steps<'_>,
        stop: &Stop,
    ) -> Result<()> {
        steps.facts.label = self.label;
        steps.facts.options = self.sandbox.map_or_else(String::new, options_text);
        let mut sandbox = None;
        let target = if let Some(Spec { program, options, .. }) = self.sandbox.cloned() {
            let spec = Spec { program, options, ..args.sandbox()? };
            ConnectOptions::private(&sandbox.insert(start(&spec, stop, steps.progress)?).socket)
        } else if let Some(known) = known {
            known.clone()
        } else {
            resolve::find(&place.connection, Env::real(), stop, steps.progress)?
        };
        let outcome = runtime()?.block_on(async {
            let link = reach(&target, stop).await?;
            args.make_ready(&link, sandbox.is_some(), steps).await?;
            let mut planned = self.steps.into_iter();
            let next = |measured: &[Summary]| match slo {
                Some(slo) => slo.next(measured),
                None => Ok(planned.next()),
            };
            run_steps(steps, &link, next).await.map(drop)
        });
        let stopped = sandbox.map_or(Ok(()), |sandbox| stop_private(sandbox, steps.progress));
        finish([outcome, stopped], steps.progress)
    }
}

fn options_text(spec: &Spec) -> String {
    let describe = |(name, value): &(String, Option<String>)| {
        let value = value.as_ref().map_or_else(String::new, |value| format!("={value}"));
        format!(" {name}{value}")
    };
    let text: String = spec.options.iter().map(describe).collect();
    text.chars().filter(|c| !c.is_control()).take(OPTIONS_MAX).collect()
}

fn tell_end(
    args: &MeasureRequest<'_>,
    place: &Place,
    complete: bool,
    steps: &mut Steps<'_>,
    out: &Path,
) {
    if complete {
        let layout = if args.slo.is_empty() { Layout::Versions } else { Layout::Slo };
        return tell_saved(steps.saved, out, layout, steps.progress);
    }
    if steps.summaries.is_empty() {
        return;
    }
    let done = steps.summaries.iter().filter(|step| step.outcome == Outcome::Completed).count();
    // Steps that could not be saved went to standard output.
    let done = done.min(steps.saved);
    let planned = args.steps().len() * place.sandboxes.len().max(1);
    let total = if args.slo.is_empty() { planned } else { steps.summaries.len() };
    let dir = directory(out);
    let next = if done > 0 { format!(" Next: loadgen report {dir}") } else { String::new() };
    steps.progress.note(&format!("{done} of {total} steps completed; saved in {dir}.{next}"));
}

/// Lists those of prepare's tables that a load drops; does not read a dump for that.
fn list_dropped(spec: &LoadSpec, prepared: &Numbers) -> String {
    match &spec.source {
        LoadSource::Dump { .. } if prepared.is_empty() => String::new(),
        LoadSource::Dump { path } => {
            format!("those of {} that {} names", load::named(prepared), path.display())
        }
        LoadSource::Generated { .. } => list_first(prepared, Schema::Sbtest, spec.tables),
    }
}

fn print_table(summaries: &[Summary], out: &Path, quiet: bool) -> Result<()> {
    let done: Vec<&Summary> =
        summaries.iter().filter(|s| s.outcome == Outcome::Completed).collect();
    if done.is_empty() {
        return Ok(());
    }
    let source = report::quoted(&line(&out.display().to_string()));
    let options = report::Options { terminal: terminal(), source, ..report::Options::default() };
    let table = report::render(&done, &options)?;
    print_data(&(table + &latency_for_person(&done, quiet)?))?;
    let options = report::Options { format: Format::Markdown, terminal: None, ..options };
    to_step_summary(|| report::render(&done, &options));
    Ok(())
}

pub(crate) fn list(
    args: &MeasureRequest<'_>,
    place: &Place,
    out: &Path,
    hosts: Option<&ClientHosts>,
    random_seed: bool,
) -> Result<String> {
    let (mut lines, steps) = match args.job {
        Job::Sweep(plan) => {
            args.search()?;
            args.check_window(warn)?;
            let each = if args.slo.is_empty() { 1 } else { STEPS_MAX as u32 };
            (plan.list(random_seed, each), plan.list_steps())
        }
        Job::Load { spec, .. } => (list_load(spec), String::new()),
        Job::Suite(_) => unreachable!("no verb runs a suite"),
    };
    let options = place.sandboxes.first().map(options_text).unwrap_or_default();
    let programs = place.sandboxes.iter().map(|spec| {
        let path = spec.program.as_ref().map(|path| path.display().to_string());
        path.unwrap_or_else(|| "of the PATH".to_owned()) + &options
    });
    let programs = programs.collect::<Vec<String>>().join(", ");
    match place.sandboxes.len() {
        0 => {}
        1 => lines.push(("sandbox", programs)),
        _ => {
            let turns = "each does these steps, in turns by repeat";
            lines.push(("sandboxes", format!("{programs}: {turns}")));
        }
    }
    let usual = || format!("the server's version{options}");
    lines.push(("label", args.label.clone().unwrap_or_else(usual)));
    lines.extend(args.notes.iter().map(|(key, value)| ("note", format!("{key}={value}"))));
    lines.push(("repeats", args.repeats.to_string()));
    lines.extend(hosts.map(|hosts| match hosts {
        ClientHosts::Started(wanted) => ("hosts", wanted.hosts.join(", ")),
        ClientHosts::Launched(of) => ("ranks", format!("{} of {}", of.of.size, of.of.launcher)),
    }));
    lines.push(("out", out.display().to_string()));
    lines.extend(args.gates.iter().map(|gate| ("gate", gate.to_string())));
    let each = format!("these steps begin a search each, of {STEPS_MAX} steps at most");
    lines.extend(args.slo.iter().map(|level| ("slo", format!("{level}: {each}"))));
    let lines = lines.iter().map(|(name, value)| format!("{name:<14} {}\n", line(value)));
    Ok(lines.chain([steps]).collect())
}

fn list_load(spec: &LoadSpec) -> Vec<(&'static str, String)> {
    let mut lines = vec![("workload", spec.name())];
    match &spec.source {
        LoadSource::Generated { rows, data_seed } => {
            lines.push(("tables", spec.tables.to_string()));
            lines.push(("rows", units::count(*rows)));
            lines.push(("data seed", data_seed.to_string()));
            lines.push(("mode", spec.insert.to_string()));
            if let InsertMode::Extended { bytes } = spec.insert {
                lines.push(("insert bytes", units::count(bytes)));
            }
        }
        LoadSource::Dump { path } => lines.push(("dump", path.display().to_string())),
    }
    let usual = || "utf8mb4 (utf8 before 5.5.3)".to_owned();
    lines.push(("charset", spec.charset.clone().unwrap_or_else(usual)));
    lines
}

/// Fills missing tables; asks before it drops any, unless `yes`.
pub(crate) fn prepare(tables: &Dataset, yes: bool, server: OnServer<'_>) -> Result<()> {
    on_server(server, async |link, progress| {
        let named = |made: &Numbers| list_first(made, tables.schema, tables.tables);
        agree_to_drop(link, consent(yes || !tables.force, true), true, named).await?;
        let done = load::prepare(link, tables, progress).await?;
        if done.filled == 0 && tables.schema.filled() {
            progress.note("hint: --force fills them again");
        }
        Ok(())
    })
}

/// Drops all tables that prepare made; asks before, unless `yes`, and refuses if it cannot ask.
pub(crate) fn cleanup(yes: bool, server: OnServer<'_>) -> Result<()> {
    on_server(server, async |link, progress| {
        agree_to_drop(link, consent(yes, false), true, load::named).await?;
        load::cleanup(link, progress).await.map(|_| ())
    })
}

pub(crate) fn verify(paths: &[PathBuf], elsewhere: bool, server: OnServer<'_>) -> Result<()> {
    // Records first: a step that ends meanwhile is then in both, or only in the summaries.
    let found = paths.to_vec();
    let (records, loaded) = unless_stopped(server.2, move || {
        Ok((summary::records(&found)?, summary::collect(&found)?))
    })?;
    if let Some((path, reason)) = loaded.skipped.first() {
        let text = format!("{}: {reason}: its runs are not known", path.display());
        return Err(Error::new(Kind::Undecided, text)
            .hint("move it away if loadgen did not write it, or if it is a copy"));
    }
    leave_out(loaded.imported.len(), "verify");
    let steps = loaded.steps();
    let evidence = Evidence { summaries: &steps, records: &records, elsewhere };
    let (checked, answers) = on_server(server, async |link, progress| {
        crate::verify::verify(link, &evidence, progress).await
    })?;
    print_data(&(check_lines(&checked) + &answer_lines(&answers)))?;
    let ended = [conclude(&checked), conclude_answers(&answers)];
    let (worst, others) = ranked(ended.into_iter().filter_map(Result::err));
    for other in others {
        warn(&other.to_string());
    }
    worst.map_or(Ok(()), Err)
}

pub(crate) type OnServer<'a> = (&'a ConnectionArgs, Progress, &'a Stop);

fn on_server<T>(
    (connection, mut progress, stop): OnServer<'_>,
    doing: impl AsyncFnOnce(&ServerLink, &mut Progress) -> Result<T>,
) -> Result<T> {
    let target = resolve::find(connection, Env::real(), stop, &mut progress)?;
    let done = runtime()?.block_on(async {
        let link = reach(&target, stop).await?;
        Box::pin(doing(&link, &mut progress)).await
    });
    progress.clear();
    done
}

fn list_first(made: &Numbers, schema: Schema, tables: u32) -> String {
    let made = made.get(&schema).into_iter().flatten().copied();
    load::named(&[(schema, made.filter(|table| *table <= tables).collect())].into())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Consent {
    Given,
    Asked,
    Missing,
}

/// Decides who may consent: `--yes`, else the person at the terminal, else a flag such as `--force`.
fn consent(yes: bool, forced: bool) -> Consent {
    match (io::stdin().is_terminal() && io::stderr().is_terminal(), forced) {
        _ if yes => Consent::Given,
        (true, _) => Consent::Asked,
        (false, true) => Consent::Given,
        (false, false) => Consent::Missing,
    }
}

/// Asks for the marked tables that are `named`, with load's own if `loaded`; any answer but yes is an error.
async fn agree_to_drop(
    link: &ServerLink,
    consent: Consent,
    loaded: bool,
    named: impl FnOnce(&Numbers) -> String,
) -> Result<()> {
    if consent == Consent::Given {
        return Ok(());
    }
    let tables = named(&load::marked(link, loaded).await?);
    if tables.is_empty() {
        return Ok(());
    }
    if consent == Consent::Missing {
        let text = format!(
            "cancelled: this would drop {tables} at {}, and no terminal can confirm",
            link.target
        );
        return Err(Error::usage(text).hint("--yes drops them without asking"));
    }
    let question = line(&format!("Drop {tables} at {}? [y/N] ", link.target));
    let mut err = io::stderr();
    let _ = err.write_all(question.as_bytes()).and_then(|()| err.flush());
    // On its own thread, so that a signal ends the wait; the thread ends with the process.
    let reading = run_on_thread(|| io::stdin().lines().next());
    match or_stop(&link.stop, async { Ok(reading.await) }).await? {
        Ok(Some(Ok(yes))) if ["y", "yes"].contains(&yes.trim().to_ascii_lowercase().as_str()) => {
            Ok(())
        }
        _ => Err(Error::failed("cancelled: nothing was dropped").hint("--yes skips the question")),
    }
}

fn check_lines(checked: &[Checked]) -> String {
    // Summaries name the tables that are not here, and a file may hold anything.
    let names: Vec<String> = checked.iter().map(|one| clip(&one.table, NAME_MAX)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let text = |(name, one): (&String, &Checked)| {
        format!("{name:width$}  {}\n", line(&describe_check(one).0))
    };
    names.iter().zip(checked).map(text).collect()
}

/// Longest name of a table that is shown, characters: no server takes longer ones.
const NAME_MAX: usize = 64;

/// Lists the queries that fail or are not asked, and counts those that hold.
fn answer_lines(answers: &[Answered]) -> String {
    let failing = answers.iter().filter_map(|Answered { query, found }| {
        let what = match found {
            AnswerFound::Expected => return None,
            AnswerFound::Wrong(what) => format!("WRONG: {what}"),
            AnswerFound::Unasked(why) => format!("undecided, not asked: {why}"),
        };
        let sql = clip(&query.sql, SQL_MAX);
        Some(line(&format!("{}  {what}; the query: {sql}", query.name)) + "\n")
    });
    let (failing, all) = (failing.collect::<Vec<String>>(), answers.len());
    let held = all - failing.len();
    let held = (held > 0).then(|| format!("queries  ok: {held} of {all}\n"));
    failing.into_iter().chain(held).collect()
}

/// Bytes of a query that are shown.
const SQL_MAX: usize = 1000;

fn conclude_answers(answers: &[Answered]) -> Result<()> {
    let count = |is: fn(&AnswerFound) -> bool| answers.iter().filter(|one| is(&one.found)).count();
    let wrong = count(|found| matches!(found, AnswerFound::Wrong(_)));
    let unasked = count(|found| matches!(found, AnswerFound::Unasked(_)));
    let all = answers.len();
    if wrong == 0 && unasked > 0 {
        let text = format!("{unasked} of {all} queries were not asked");
        return Err(Error::new(Kind::Undecided, text)
            .hint("verify asks what can only read, in READ ONLY transactions"));
    }
    if wrong == 0 {
        return Ok(());
    }
    Err(Error::data(format!("{wrong} of {all} queries have another answer than expected"))
        .hint("did something else write to these tables, or a run that did not end well?"))
}

/// Describes the check of a table; returns the index in [`WRONG`], too.
fn describe_check(one: &Checked) -> (String, Option<usize>) {
    match &one.verdict {
        Verdict::Ok => (format!("ok: {}", describe_rows(one)), None),
        Verdict::Partly(what) => (format!("ok: {what}; {}", describe_rows(one)), None),
        Verdict::Damaged(n, what) => (format!("DAMAGED {n}: {what}"), Some(0)),
        Verdict::Lost(n, what) => (format!("LOST {n}: {what}; {}", describe_rows(one)), Some(1)),
        Verdict::Index(n, what) => (format!("INDEX {n}: {what}; {}", describe_rows(one)), Some(2)),
        Verdict::Undecided(why) => (format!("undecided: {why}"), Some(3)),
    }
}

fn describe_rows(one: &Checked) -> String {
    let k = one.found.k.map_or_else(String::new, |k| format!(", sum of k {k}"));
    let n = one.history.in_doubt;
    let doubt = if n == 0 { String::new() } else { format!(", {} in doubt", counted(n, "write")) };
    format!("{} rows{k} after {}{doubt}", one.found.rows, counted(one.history.steps, "step"))
}

/// Faults of tables, in words and with hints; the worst first.
const WRONG: [(Kind, &str, &str); 4] = [
    (Kind::Data, "hold wrong content", "CHECK TABLE, and the server's error log"),
    (
        Kind::Data,
        "lost acknowledged writes",
        "durable: innodb_flush_log_at_trx_commit=1 and a disk that honours fsync; did something \
         else write to them, or a run whose --out is not named here?",
    ),
    (
        Kind::Data,
        "have an index that disagrees with their rows",
        "keep the data directory as evidence; ALTER TABLE … FORCE builds the indexes anew",
    ),
    (Kind::Undecided, "cannot be judged", "loadgen prepare --force begins a new history"),
];

fn conclude(checked: &[Checked]) -> Result<()> {
    let is_undecided = |one: &Checked| matches!(one.verdict, Verdict::Undecided(_));
    let is_unseen = |one: &Checked| one.history.unseen && is_undecided(one);
    let mut counts = [0; WRONG.len()];
    checked.iter().filter_map(|one| describe_check(one).1).for_each(|wrong| counts[wrong] += 1);
    let found = || counts.iter().zip(WRONG).filter(|(n, _)| **n > 0);
    let Some((_, (kind, _, mut hint))) = found().next() else { return Ok(()) };
    if kind == Kind::Undecided && checked.iter().any(is_unseen) {
        hint = "name the directories of all runs since prepare, those that --out named";
    }
    let faults: Vec<String> = found().map(|(n, (_, what, _))| format!("{n} {what}")).collect();
    let total = format!(" of {} tables ", checked.len());
    let text = faults.join(", ").replacen(' ', &total, 1);
    Err(Error::new(kind, text).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{Found, History};

    fn checked(table: &str, verdict: Verdict) -> Checked {
        let found = Found { rows: 10, k: Some(55), ..Found::default() };
        let history = History { steps: 1, in_doubt: 2, ..History::default() };
        Checked { table: table.to_owned(), verdict, found, history }
    }

    #[test]
    fn a_line_a_table_and_the_worst_decides() {
        let all = [
            checked("sbtest9", Verdict::Ok),
            checked("sbtest10", Verdict::Lost(3, "3 rows are missing".to_owned())),
            checked("bulk1", Verdict::Undecided("why \u{1b}[2J".to_owned())),
            checked("bulk2", Verdict::Index(2, "k_1 has 12 rows".to_owned())),
            checked("sbtest11", Verdict::Partly("rows; no sum".to_owned())),
        ];
        let text = check_lines(&all);
        let lines: Vec<&str> = text.lines().collect();
        let inside = "10 rows, sum of k 55 after 1 step, 2 writes in doubt";
        assert_eq!(lines[0], format!("sbtest9   ok: {inside}"));
        assert_eq!(lines[1], format!("sbtest10  LOST 3: 3 rows are missing; {inside}"));
        assert_eq!(lines[2], "bulk1     undecided: why \\u{1b}[2J");
        let code = |all: &[Checked]| conclude(all).err().map(|e| e.kind().exit_code());
        assert_eq!(code(&all), Some(4));
        assert_eq!(lines[3], format!("bulk2     INDEX 2: k_1 has 12 rows; {inside}"));
        assert_eq!(lines[4], format!("sbtest11  ok: rows; no sum; {inside}"));
        assert_eq!(code(&all[2..]), Some(4));
        assert_eq!(code(&[all[4].clone(), all[2].clone()]), Some(98));
        assert_eq!(code(&all[4..]), None);
        assert_eq!(code(&[all[0].clone(), all[2].clone()]), Some(98));
        assert_eq!(code(&all[..1]), None);
    }

    #[test]
    fn a_table_that_a_file_names_has_one_line_whatever_its_name() {
        for name in ["x\nsbtest1  ok: 10 rows".to_owned(), "x".repeat(70_000)] {
            let text = check_lines(&[checked(&name, Verdict::Undecided("gone".to_owned()))]);
            assert!(text.lines().count() == 1 && text.len() < 200, "{}", text.len());
        }
    }
}
