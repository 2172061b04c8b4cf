//! `loadgen run FILE`: an experiment from its servers to its tables.
//!
//! ```text
//! FILE ─▶ Profile ─▶ Experiment ─▶ legs: server taken, tables prepared, one sweep ─▶ report
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::forecast::{Forecast, PlannedStep};
use super::in_profile::InProfile;
use super::openmetrics::Exporter;
use super::scripts::{
    Preparer, ReadScripts, find_files, plan_on, queries, read_scripts, run_steps,
};
use super::servers::{AcquiredServer, Servers, check_addresses, find_servers};
use super::steps::{Job, Steps};
use super::summarise::JobFacts;
use super::{
    Invocation, calibration, check_gates, finish, latency_for_person, print_data, random, runtime,
    tell_saved, terminal, to_step_summary,
};
use crate::error::{Error, Kind, Result, line, ranked};
use crate::hosts::Ranks;
use crate::judge::Calibration;
use crate::load::reload::FORCE;
use crate::load::{FILL_AGAIN, UNFORCED};
use crate::mysql::{ConnectionArgs, Env, resolve};
use crate::plan::experiment::{
    self, Cell, CellGroup, Experiment, Overrides, RunSpec, What, is_current,
};
use crate::plan::knobs::{LoadSource, LoadSpec};
use crate::plan::profile::shipped::Shipped;
use crate::plan::profile::{self, Given, Profile};
use crate::plan::value::{Names, REPEATS_MAX};
use crate::plan::{Plan, Step};
use crate::progress::{Progress, say};
use crate::report::{self, Format, Layout, Metric, Notes, Options};
use crate::sandbox::count_bytes;
use crate::stop::{Stop, unless_stopped};
use crate::summary::{self, Claim, Loaded, Outcome, Store, Summary, claim};
use crate::terms::{self, Choice as _};

/// Upper limit on the bytes of a profile: protects from a dump given by mistake.
const PROFILE_MAX: u64 = 4 << 20;
const NO_PROFILE: &str = "loadgen run --help shows how a profile is written, loadgen profiles lists those in the \
                          program; a workload is a command: loadgen point-select";
const OPTIONS_MAX: usize = 4;
const REFILL: &str =
    "refill = true in [tables] drops also what prepare made; or name another database";

/// A profile, by file or name, and the server that replaces those in it, if flags name one.
pub(crate) struct Source {
    pub(crate) profile: PathBuf,
    pub(crate) connection: Option<ConnectionArgs>,
    pub(crate) label: Option<String>,
    pub(crate) scripts: &'static dyn ReadScripts,
}

/// Measures the steps of a profile that are not measured yet; takes a random seed if there is none.
pub(crate) fn run(
    source: Source,
    mut overrides: Overrides,
    seed: Option<u64>,
    list: bool,
    mut invocation: Invocation<'_>,
) -> Result<()> {
    let mut profile = read(&source.profile, invocation.stop)?;
    let (scripts, connection) = (source.scripts, source.connection.clone());
    stand_in(&mut profile, source, &mut invocation.progress)?;
    // 53 bits: every reader of JSON reads the same number.
    overrides.seed = seed.map_or_else(|| random().map(|seed| seed >> 11), Ok)?;
    let mut experiment = experiment::build(&profile, &overrides)?;
    if let Some(hosts) = &invocation.hosts {
        check_parts(&experiment, hosts.flag(), &experiment.cells)?;
    }
    // Before hours of measurement, and before any rank waits for another one.
    let (tables, stop) = (tables(&profile, &experiment)?, invocation.stop);
    let find = || find_servers(&experiment, stop);
    if invocation.follow(experiment.plans().cloned().collect(), find)? {
        return Ok(());
    }
    let begun = if list { None } else { invocation.begin_before_hosts()? };
    let ranks = invocation.start_ranks(experiment.plans())?;
    if let Some(ranks) = &ranks {
        // Their cores are part of the plan, and of the keys of its cells.
        overrides.host_threads = Some(ranks.threads());
        experiment = experiment::build(&profile, &overrides)?;
    }
    let mut loaded = Loaded::default();
    let mut claimed = None;
    // It may not be there before the first step.
    if overrides.out.is_dir() {
        claimed = if list { None } else { Some(claim_out(&overrides.out)) };
        loaded = summary::collect(std::slice::from_ref(&overrides.out))?;
    }
    let progress = &mut invocation.progress;
    let mut earlier = Earlier::collect(loaded, &experiment, overrides.force, progress)?;
    for path in find_newer_dumps(&experiment, &earlier) {
        let path = line(&path.display().to_string());
        progress.warn(&format!("{path} is newer than its load: another --out loads it again"));
    }
    check_same_way(connection.as_ref(), &earlier)?;
    let known_seed = earlier.run.as_ref().and_then(|run| run.seed);
    if let (Some(known), None) = (known_seed, seed) {
        // All labels share one seed, also those that are measured later.
        overrides.seed = known;
        experiment = experiment::build(&profile, &overrides)?;
    }
    let wanted = |cell: &Cell| !earlier.done.contains_key(&cell.key);
    if list {
        return print_data(&experiment.list(wanted, count_bytes));
    }
    let (todo, total) = (experiment.legs(wanted), experiment.cells.len());
    let left = experiment.cells.iter().filter(|cell| wanted(cell)).count();
    if left < total {
        invocation
            .progress
            .note(&format!("{} of {total} steps are measured already", total - left));
    }
    let (mut errors, mut saved, mut unsaved) = (Vec::new(), 0, 0);
    if left > 0 {
        let store = begun.map_or_else(|| invocation.begin(), Ok)?;
        // A complete directory is only read, unless hosts were started: another run may hold it.
        let _claimed = claimed.unwrap_or_else(|| claim_out(store.dir()))?;
        let store = (store, scripts);
        match Legs::new(&experiment, &mut invocation, store, (&todo, &earlier), ranks) {
            Ok(mut legs) => {
                errors = legs.run(&todo, &mut earlier);
                (saved, unsaved) = (legs.saved, legs.unsaved);
            }
            Err(error) => errors.push(error),
        }
    }
    let out = &invocation.out;
    let mut progress = invocation.progress;
    progress.clear();
    let done: Vec<&Summary> = earlier.done.values().collect();
    let printed = print(tables, &done, &invocation.out, progress.is_quiet());
    let judged = judge_parts(&experiment, &earlier, &mut progress);
    tell_end((saved, unsaved), &experiment, &earlier, out, &mut progress);
    if let Some(exporter) = &invocation.exporter {
        exporter.wait_for_last_scrape(stop, &mut progress);
    }
    finish([ranked(errors).0.map_or(Ok(()), Err), printed, judged], &mut progress)
}

/// Refuses cells that the clients of other hosts cannot run; `flag` names these.
pub(super) fn check_parts<'a>(
    experiment: &Experiment,
    flag: &str,
    cells: impl IntoIterator<Item = &'a Cell>,
) -> Result<()> {
    for cell in cells {
        let (part, subject) = (&experiment.parts[cell.part], &experiment.subjects[cell.subject]);
        let groups = part.plan().map_or(&[][..], |plan| &plan.groups);
        let is_script = part.script.is_some() || groups.iter().any(|group| group.script.is_some());
        if is_script && flag == "--ranks" {
            let title = line(&part.title);
            let text = format!("{flag}: {title} runs a script, which goes to --hosts alone");
            return Err(Error::usage(text).hint("loadgen lua FILE.lua --ranks measures a script"));
        }
        if !matches!(part.what, What::Sweep(..)) {
            let title = line(&part.title);
            let text = format!("{flag}: {title} is a load or a suite, which one process runs");
            return Err(Error::usage(text).hint("--only workload=NAME leaves it out"));
        }
        if subject.server.sandbox.is_some() {
            let label = line(&subject.label);
            let text = format!("{flag}: other hosts do not reach the private server of {label}");
            let hint = format!("--host names a server that all of {flag} reach");
            return Err(Error::usage(text).hint(hint));
        }
    }
    Ok(())
}

fn judge_parts(experiment: &Experiment, earlier: &Earlier, progress: &mut Progress) -> Result<()> {
    // Steps that did not complete count for gates.
    let all: Vec<&Summary> = earlier.done.values().chain(&earlier.fell).collect();
    let steps_of =
        |part: &RunSpec| all.iter().copied().filter(|s| s.workload.name == part.title).collect();
    let parts = experiment.parts.iter().map(|part| (steps_of(part), part.gates.as_slice()));
    check_gates(parts, progress)
}

fn tell_end(
    (saved, unsaved): (usize, usize),
    experiment: &Experiment,
    earlier: &Earlier,
    out: &Path,
    progress: &mut Progress,
) {
    let is_done = |cell: &&Cell| earlier.done.contains_key(&cell.key);
    let done = experiment.cells.iter().filter(is_done).count().saturating_sub(unsaved);
    let of = experiment.cells.len();
    if saved > 0 && done < of {
        progress.note(&format!("{done} of {of} steps saved; the same command continues."));
    } else {
        tell_saved(saved, out, Layout::Versions, progress);
    }
}

/// Replaces the profile's server by the one that flags name; warns of the options that it may lack.
fn stand_in(profile: &mut Profile, source: Source, progress: &mut Progress) -> Result<()> {
    let Source { connection, label, .. } = source;
    let Some(connection) = connection else { return check_label(label.as_deref()) };
    let address = resolve::resolve(&connection, &Env::real())?.target.name_addresses();
    let known_as = Some(address.clone());
    let options = profile.stand_in(label, Given { connection, address: address.clone(), known_as });
    if !options.is_empty() {
        let names = terms::named(options.into_iter().collect(), OPTIONS_MAX, ", ");
        progress.warn(&format!(
            "the server at {address} keeps its own settings; the profile's servers set {names}"
        ));
    }
    Ok(())
}

pub(super) fn check_label(label: Option<&str>) -> Result<()> {
    match label {
        None => Ok(()),
        Some(_) => Err(Error::usage("--label is of the server that the connection's flags name")
            .hint("--host, --socket or --url; the profile's servers have labels of their own")),
    }
}

/// Ends if asked to stop; refuses bad addresses. A file wins over a shipped profile of that name.
pub(super) fn read(path: &Path, stop: &Stop) -> Result<Profile> {
    let is_file = path.exists() && !path.is_dir();
    if let Some(shipped) = path.to_str().and_then(Shipped::find).filter(|_| !is_file) {
        let mut profile = shipped.profile()?;
        return find_files(&mut profile, None).map(|()| profile);
    }
    let path = path.to_owned();
    unless_stopped(stop, move || read_now(&path))
}

fn read_now(path: &Path) -> Result<Profile> {
    let origin = path.display().to_string();
    let refused = |e: &dyn Display| Error::usage(format!("{origin}: {e}")).hint(NO_PROFILE);
    let mut text = String::new();
    let file = File::open(path).map_err(|e| refused(&e))?;
    file.take(PROFILE_MAX + 1).read_to_string(&mut text).map_err(|e| refused(&e))?;
    if text.len() as u64 > PROFILE_MAX {
        return Err(refused(&format!("it is larger than {} MiB", PROFILE_MAX >> 20)));
    }
    let mut profile = Profile::parse(&text, &origin)?;
    find_files(&mut profile, Some(path.parent().unwrap_or(Path::new(""))))?;
    check_addresses(&profile)?;
    Ok(profile)
}

/// Refuses flags that change how the server is measured, or its database.
pub(super) fn check_same_way(connection: Option<&ConnectionArgs>, found: &Earlier) -> Result<()> {
    let Some(connection) = connection.filter(|_| !found.done.is_empty()) else { return Ok(()) };
    let target = resolve::resolve(connection, &Env::real())?.target;
    let servers = found.done.values().map(|step| &step.server);
    for summary::Server { transport, database, .. } in servers {
        let database = database.as_ref().unwrap_or(&target.database);
        for (name, was, is) in [
            ("transport", transport.as_str(), target.transport()),
            ("database", database.as_str(), target.database.as_str()),
        ] {
            // A server may write names in lower case.
            if !was.eq_ignore_ascii_case(is) {
                let (was, is) = (line(was), line(is));
                let text = format!("the summaries are of {name} {was}, and the flags say {is}");
                return Err(Error::usage(text).hint(
                    "--protocol, --ssl-mode and --database as before, or another directory",
                ));
            }
        }
    }
    Ok(())
}

/// Finds dumps that were changed after their load: the keys of cells have their paths alone.
fn find_newer_dumps<'e>(experiment: &'e Experiment, earlier: &Earlier) -> BTreeSet<&'e Path> {
    let newer = experiment.cells.iter().filter_map(|cell| {
        let What::Load(LoadSpec { source: LoadSource::Dump { path }, .. }) =
            &experiment.parts[cell.part].what
        else {
            return None;
        };
        let loaded = earlier.done.get(&cell.key)?.started_at.parse::<Timestamp>().ok()?;
        // The time of a pipe is that of its last writer.
        let file = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let changed = Timestamp::try_from(file.modified().ok()?).ok()?;
        (changed > loaded).then_some(path.as_path())
    });
    newer.collect()
}

#[derive(Default)]
pub(super) struct Earlier {
    /// The newest completed summary of each cell, by its key.
    pub(super) done: HashMap<String, Summary>,
    pub(super) fell: Vec<Summary>,
    pub(super) run: Option<Continued>,
}

pub(super) struct Continued {
    id: String,
    /// The seed of its sweeps: a load or a suite has none.
    pub(super) seed: Option<u64>,
    last_step: u32,
}

impl Earlier {
    /// Warns of other files. Refuses keys of an earlier version, unless `force`.
    pub(super) fn collect(
        loaded: Loaded,
        experiment: &Experiment,
        force: bool,
        progress: &mut Progress,
    ) -> Result<Earlier> {
        // A directory without any may belong to something else.
        for (path, reason) in loaded.skipped.iter().filter(|_| !loaded.summaries.is_empty()) {
            progress.warn(&format!("skipped {}: {reason}", path.display()));
        }
        let mut all: Vec<Summary> = loaded.summaries.into_iter().map(|(_, step)| step).collect();
        let name = &experiment.profile.name;
        let cells = all.iter().filter_map(|step| step.experiment.as_ref());
        let older = cells.filter(|cell| cell.profile == *name && !is_current(&cell.key)).count();
        if older > 0 && !force {
            return Err(Error::data(format!(
                "'{name}' was measured here by an earlier version of loadgen, which gave cells \
                 other keys (summaries: {older})"
            ))
            .hint("another directory (--out), or loadgen run --force to measure them again"));
        }
        all.sort_by(|one, other| one.started_at.cmp(&other.started_at));
        // A recheck gives more repeats than the profile plans. The order of cells does not count here.
        let given = all.iter().filter(|step| step.experiment.is_some());
        let repeats = given.map(|step| step.plan.repeat_index).max().unwrap_or(0);
        let mut every = experiment.clone();
        every.extend(repeats.min(REPEATS_MAX), 0);
        let keys: HashSet<&str> = every.all.iter().map(|cell| cell.key.as_str()).collect();
        let wanted = |step: &Summary| {
            step.experiment.as_ref().is_some_and(|cell| keys.contains(cell.key.as_str()))
        };
        let number = |step: &Summary| {
            let of_run = step.step_id.rsplit('-').next()?;
            of_run.split('.').next()?.parse::<u32>().ok()
        };
        let run = all.iter().rfind(|step| wanted(step)).map(|newest| {
            let of_run = all.iter().filter(|step| step.run_id == newest.run_id);
            let last_step = of_run.filter_map(number).max().unwrap_or(0);
            let is_sweep = |step: &Summary| step.load.is_none() && step.suite.is_none();
            let seed = all.iter().rfind(|step| wanted(step) && is_sweep(step));
            let seed = seed.map(|step| step.plan.seed);
            // It begins the names of files, none of them hidden, and a summary may hold any text.
            let id = summary::part(&newest.run_id).replace('.', "_");
            Continued { id, seed, last_step }
        });
        let mut earlier = Earlier { run, ..Earlier::default() };
        for step in all.into_iter().filter(wanted) {
            earlier.take(step);
        }
        Ok(earlier)
    }

    pub(super) fn take(&mut self, step: Summary) {
        let cell = step.experiment.as_ref().expect("a step of an experiment");
        match step.outcome {
            Outcome::Completed => drop(self.done.insert(cell.key.clone(), step)),
            Outcome::MeasuredAgain => {}
            _ => self.fell.push(step),
        }
    }
}

pub(super) struct Legs<'a> {
    experiment: &'a Experiment,
    /// The plans of scripts, by their parts.
    scripts: BTreeMap<usize, Plan>,
    reader: &'static dyn ReadScripts,
    store: Store,
    pub(super) progress: &'a mut Progress,
    run_id: String,
    /// Added to the steps' numbers of a run that is continued.
    offset: u32,
    calibration: Option<Calibration>,
    servers: Servers<'a>,
    taken: Option<AcquiredServer<'a>>,
    /// Steps that fell before this invocation: their server may be another one.
    fell: usize,
    forecast: Forecast,
    ranks: Option<Ranks>,
    exporter: Option<Arc<Exporter>>,
    others_max: Option<f64>,
    pub(super) saved: usize,
    unsaved: usize,
}

impl<'a> Legs<'a> {
    pub(super) fn new(
        experiment: &'a Experiment,
        invocation: &'a mut Invocation<'_>,
        (store, reader): (Store, &'static dyn ReadScripts),
        (legs, earlier): (&[CellGroup], &Earlier),
        ranks: Option<Ranks>,
    ) -> Result<Legs<'a>> {
        let mut scripts = BTreeMap::new();
        read_scripts(experiment, legs, (reader, &mut scripts))?;
        check_ranks(ranks.as_ref(), &scripts)?;
        let calibration = calibration::find(invocation)?;
        let Invocation { progress, stop, exporter, others_max, .. } = invocation;
        let mut servers = Servers::new(experiment, stop, progress)?;
        let earlier_steps: Vec<&Summary> = earlier.done.values().chain(&earlier.fell).collect();
        servers.recall_writers(&earlier_steps);
        let (taken, fell) = (None, earlier.fell.len());
        let (run_id, offset) = match &earlier.run {
            Some(run) => (run.id.clone(), run.last_step),
            None => (format!("{:016x}", random()?), 0),
        };
        Ok(Legs {
            experiment,
            scripts,
            reader,
            store,
            progress,
            run_id,
            offset,
            calibration,
            servers,
            taken,
            fell,
            forecast: Forecast::default(),
            ranks,
            exporter: exporter.clone(),
            others_max: *others_max,
            saved: 0,
            unsaved: 0,
        })
    }

    /// Goes on with the next leg after an error: one server that does not start must not end a night's work.
    pub(super) fn run(&mut self, legs: &[CellGroup], earlier: &mut Earlier) -> Vec<Error> {
        // A round of a recheck may have parts that no round before it had.
        let read = read_scripts(self.experiment, legs, (self.reader, &mut self.scripts));
        if let Err(error) = read.and_then(|()| check_ranks(self.ranks.as_ref(), &self.scripts)) {
            return vec![error];
        }
        let mut errors = Vec::new();
        let of = legs.iter().map(|leg| leg.cells.len() as u32).sum();
        self.forecast = forecast(self.experiment, legs);
        let mut place = 0;
        for leg in legs {
            let placed = |at: &usize| {
                place += 1;
                let step = self.experiment.step(*at);
                Step { number: step.number.wrapping_add(self.offset), place, of, ..step }
            };
            let steps: Vec<Step> = leg.cells.iter().map(placed).collect();
            let Err(error) = self.run_leg(leg, &steps, earlier) else { continue };
            let kind = error.kind();
            self.progress.clear();
            let label = &self.experiment.subjects[leg.subject].label;
            let title = &self.experiment.parts[leg.part].title;
            self.progress.warn(&format!("{label}, {title}: {error}"));
            errors.push(error);
            if self.is_over(&errors) {
                break;
            }
            let has_died = self.taken.as_mut().is_some_and(AcquiredServer::has_died);
            if kind == Kind::Server || has_died {
                // The server may be gone, or a wrong one: the next leg takes it again.
                errors.extend(self.give_back_or_warn());
            }
        }
        errors.extend(self.give_back_or_warn());
        errors
    }

    /// Returns whether no further leg can be measured: after a signal, or without a host of the clients.
    pub(super) fn is_over(&self, errors: &[Error]) -> bool {
        let is_signal = |e: &Error| matches!(e.kind(), Kind::Interrupted | Kind::Terminated);
        errors.iter().any(is_signal) || self.ranks.as_ref().is_some_and(|all| all.check().is_err())
    }

    /// Warns of the error that it returns, with its label: the end shows only the worst of several errors.
    fn give_back_or_warn(&mut self) -> Option<Error> {
        let subject = self.taken.as_ref()?.subject;
        let error = self.give_back().err()?;
        self.progress.clear();
        let label = &self.experiment.subjects[subject].label;
        self.progress.warn(&format!("{label}: {error}"));
        Some(error)
    }

    fn give_back(&mut self) -> Result<()> {
        let taken = self.taken.take();
        taken.map_or(Ok(()), |taken| self.servers.give_back(taken, self.progress))
    }

    /// Each try of a first step that writes has a server of its own, if the data can be restored.
    fn run_leg(&mut self, leg: &CellGroup, steps: &[Step], earlier: &mut Earlier) -> Result<()> {
        let mut attempt = 1;
        while let Some(next) = self.try_leg(leg, steps, attempt, earlier)? {
            attempt = next;
        }
        Ok(())
    }

    /// Measures the steps. Returns the next try of the first one, if it needs restored data.
    fn try_leg(
        &mut self,
        leg: &CellGroup,
        steps: &[Step],
        attempt: u32,
        earlier: &mut Earlier,
    ) -> Result<Option<u32>> {
        self.servers.stop.check()?;
        let fresh = leg.fresh || attempt > 1;
        let (began, experiment) = (Instant::now(), self.experiment);
        let (subject, part) = (&experiment.subjects[leg.subject], &experiment.parts[leg.part]);
        let own = &subject.server;
        let preparer = part.script.as_ref().and_then(|script| Preparer::new(script, self.reader));
        let needs = (part.dataset(), preparer);
        let fits = |taken: &AcquiredServer<'_>| {
            taken.subject == leg.subject && !taken.is_passing_without(needs)
        };
        if fresh || !self.taken.as_ref().is_some_and(fits) {
            self.give_back()?;
            let taken = self.servers.take(leg.subject, needs, self.progress);
            self.taken = Some(taken.map_err(name_refill)?);
        }
        let server = self.taken.as_mut().expect("a server was just taken");
        let mut flush = false;
        let only = part.only_schema();
        let script = self.scripts.get(&leg.part).map(|plan| plan_on(plan, &server.link));
        let (job, written_by) = match &part.what {
            What::Sweep(plan, _) => {
                let filled = server.prepare(needs, self.progress).map_err(name_refill)?;
                let wanted = experiment.profile.tables.flush.unwrap_or(true);
                flush = filled && wanted && server.pid().is_some();
                let written_by = server.writers(needs, only.is_some());
                (Job::Sweep(script.as_ref().unwrap_or(plan)), written_by)
            }
            What::Load(spec) => {
                // A sandbox has nobody else's data, and restored data is not lost.
                let force =
                    server.pid().is_some() || own.can_restore() || experiment.profile.tables.refill;
                (Job::Load { spec, force }, Some(Vec::new()))
            }
            What::Suite(spec) => (Job::Suite(spec), server.writers((None, None), false)),
        };
        if part.writes() {
            server.add_writer(&part.title, only)?;
        }
        let measured = earlier.done.values().chain(&earlier.fell[self.fell..]);
        let of_label = measured.filter(|step| step.label == subject.label);
        let last = of_label.max_by_key(|step| &step.started_at).map(|step| step.server.clone());
        let (offset, pid, scaled) = (self.offset, server.pid(), None);
        let in_profile =
            InProfile { experiment, leg, written_by, offset, subject, part, pid, scaled, last };
        if let Some(first) = steps.first() {
            self.forecast.learn_preparing(first.place, began.elapsed());
        }
        let mut measuring = Steps {
            facts: JobFacts {
                label: Some(subject.label.clone()),
                run_id: self.run_id.clone(),
                notes: own.note.iter().map(|note| ("note".to_owned(), note.clone())).collect(),
                repeats: part.repeats,
                in_profile: Some(in_profile),
                verify: queries(&experiment.profile.verify),
                calibration: self.calibration.as_ref(),
                ..JobFacts::default()
            },
            prefix: own.probe.clone(),
            flush,
            forecast: std::mem::take(&mut self.forecast),
            ranks: self.ranks.as_mut(),
            exporter: self.exporter.clone(),
            others_max: self.others_max,
            restores: part.writes() && own.can_restore(),
            ..Steps::new(job, &self.store, self.progress)?
        };
        let mut steps = steps.iter().copied();
        let first = steps.next().map(|step| Step { attempt, ..step });
        let mut steps = first.into_iter().chain(steps);
        let next = |_: &[Summary]| Ok(steps.next());
        let ended = runtime()?.block_on(run_steps(&mut measuring, &server.link, next));
        self.saved += measuring.saved;
        self.unsaved += measuring.unsaved;
        self.forecast = measuring.forecast;
        measuring.summaries.into_iter().for_each(|step| earlier.take(step));
        ended.map_err(name_refill)
    }
}

/// Replaces the hints to flags of other verbs.
fn name_refill(error: Error) -> Error {
    let error = error.instead(FORCE, REFILL).instead(FILL_AGAIN, REFILL);
    error.instead(UNFORCED, "the same command again begins the fill anew")
}

pub(super) fn claim_out(dir: &Path) -> Result<Option<Claim>> {
    claim(dir, |dir| {
        Error::failed(format!("another loadgen run measures into {dir}"))
            .hint("wait for its end, or use another --out")
    })
}

fn forecast(experiment: &Experiment, legs: &[CellGroup]) -> Forecast {
    let estimate = experiment.estimate(legs, count_bytes);
    let planned = legs.iter().zip(&estimate.legs).flat_map(|(leg, estimated)| {
        leg.cells.iter().enumerate().map(|(n, at)| PlannedStep {
            preparing: if n == 0 { estimated.preparing } else { Duration::ZERO },
            step: experiment.step_time(*at),
        })
    });
    Forecast::new(planned)
}

/// Refuses scripts that the other hosts of the clients cannot run.
fn check_ranks(ranks: Option<&Ranks>, scripts: &BTreeMap<usize, Plan>) -> Result<()> {
    let Some(ranks) = ranks.filter(|_| !scripts.is_empty()) else { return Ok(()) };
    scripts.values().try_for_each(Plan::check_away)?;
    ranks.require_lua()
}

fn tables(profile: &Profile, experiment: &Experiment) -> Result<Vec<Options>> {
    let report = &experiment.profile.report;
    let metric = |name: &str| name.parse::<Metric>().map_err(|e| e.to_string());
    let metrics = parse_names(profile, "metric", report.metric.as_ref(), metric)?;
    let layout = |name: &str| parse_layout(report, name);
    // With one program the first label is the last one, too.
    let changes = experiment.changes.iter().filter(|(from, to)| from != to).cloned();
    let changes: Vec<_> = changes.map(|(from, to)| (Some(from), Some(to))).collect();
    let order = report.order.as_ref().map_or_else(Vec::new, |Names(order)| order.clone());
    let (usual, mut tables) = (vec![Metric::default()], Vec::new());
    for layout in parse_names(profile, "layout", report.layout.as_ref(), layout)? {
        let metrics = if layout.has_metric() { &metrics } else { &usual };
        let Some((metric, also)) = metrics.split_first() else { continue };
        for (from, to) in if layout.compares() { changes.clone() } else { vec![(None, None)] } {
            tables.push(Options {
                metric: *metric,
                also: also.to_vec(),
                layout,
                baseline: from.or_else(|| report.baseline.clone().filter(|_| layout.relates())),
                new: to,
                order: order.clone(),
                terminal: terminal(),
                notes: Notes::Later,
                ..Options::default()
            });
        }
    }
    Ok(tables)
}

fn parse_layout(report: &profile::Report, name: &str) -> std::result::Result<Layout, String> {
    let layout = Layout::of(name).ok_or_else(|| {
        let known: Vec<String> = Layout::ALL.iter().map(Layout::to_string).collect();
        format!("there is no layout '{name}', but {}", known.join(", "))
    })?;
    if layout == Layout::Slo {
        return Err("the layout slo is of --slo, which no profile has".to_owned());
    }
    let from = report.from.as_ref().or(report.baseline.as_ref());
    if layout.compares() && (from.is_none() || report.to.is_none()) {
        return Err(format!("{name} compares two labels: baseline and new"));
    }
    Ok(layout)
}

fn parse_names<T: Default>(
    profile: &Profile,
    key: &str,
    names: Option<&Names>,
    read: impl Fn(&str) -> std::result::Result<T, String>,
) -> Result<Vec<T>> {
    let Some(names) = names else { return Ok(vec![T::default()]) };
    if names.0.is_empty() {
        return Err(profile.refuse(&format!("report/{key}"), "an empty list makes no table"));
    }
    let refused = |n, what| profile.refuse(&format!("report/{key}/{n}"), what);
    let read = |(n, name)| read(name).map_err(|what: String| refused(n, what));
    names.texts().enumerate().map(read).collect()
}

/// Prints all tables that can be made: with `--only`, or after an interruption, labels may be missing.
fn print(tables: Vec<Options>, steps: &[&Summary], out: &Path, quiet: bool) -> Result<()> {
    let is_measured = |label: &String| steps.iter().any(|step| step.label == *label);
    let (mut printed, mut rendered, mut reported) = (Vec::new(), Ok(()), BTreeSet::new());
    let source = report::quoted(&line(&out.display().to_string()));
    let mut baseline = None;
    for mut options in tables.into_iter().filter(|_| !steps.is_empty()) {
        let compared = options.baseline.iter().chain(&options.new);
        let mut compared = compared.filter(|_| options.layout.compares());
        let missing = compared.find(|label| !is_measured(label));
        let missing = missing.map(|label| format!("'{label}' was not measured"));
        let lacks_suite =
            options.layout == Layout::Suite && steps.iter().all(|step| step.suite.is_none());
        if let Some(what) =
            missing.or_else(|| lacks_suite.then(|| "no suite was measured".to_owned()))
        {
            let text = format!("layout {} is left out: {what}", options.layout);
            if reported.insert(text.clone()) {
                say(&line(&text));
            }
            continue;
        }
        options.baseline = options.baseline.filter(is_measured);
        options.order.retain(is_measured);
        baseline = baseline.or_else(|| options.baseline.clone());
        match report::render(steps, &options) {
            Ok(table) => {
                printed.push(table);
                let options = Options { format: Format::Markdown, terminal: None, ..options };
                to_step_summary(|| report::render(steps, &options));
            }
            Err(error) => {
                let newest = format!("loadgen report {source} --latest takes the newest of them");
                rendered = Err(error.instead(report::NEWEST_SETTINGS, &newest));
                break;
            }
        }
    }
    if printed.is_empty() {
        return rendered;
    }
    let mut notes = Options { baseline, source, ..Options::default() };
    let closing = report::closing(steps, &notes)?;
    print_data(&(printed.join("\n") + &closing + &latency_for_person(steps, quiet)?))?;
    notes.format = Format::Markdown;
    to_step_summary(|| report::closing(steps, &notes));
    rendered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Load;

    #[test]
    fn report_is_refused_when_an_empty_list_makes_no_table() {
        for key in ["layout", "metric"] {
            let text = format!(
                "name = 'x'\n[[server]]\nsandbox = {{}}\n\
                 [[run]]\nworkload = 'point-select'\n[report]\n{key} = []\n"
            );
            let profile = Profile::parse(&text, "p").expect("its form");
            let experiment = experiment::build(&profile, &Overrides::default()).expect("sound");
            let refused = tables(&profile, &experiment).map(drop);
            assert!(refused.is_err_and(|error| error.to_string().starts_with("p:7:")), "{key}");
        }
    }

    #[test]
    fn layout_of_suites_is_left_out_when_none_was_measured() {
        let tables = vec![Options { layout: Layout::Suite, ..Options::default() }];
        assert!(print(tables, &[&Summary::default()], Path::new("results"), true).is_ok());
    }

    #[test]
    fn seed_is_that_of_the_newest_sweep_when_a_load_is_newer() {
        let text = "name = 'x'\n[[server]]\nsandbox = {}\n\
                    [[run]]\nworkload = 'point-select'\nclients = 1\n\
                    [[run]]\nname = 'fill'\nload = { rows = 1 }\n";
        let profile = Profile::parse(text, "p").expect("sound");
        let experiment = experiment::build(&profile, &Overrides::default()).expect("an experiment");
        let step = |minute: u32, seed: u64, load: Option<Load>| {
            // The sweep is the first part.
            let key = experiment.cells[usize::from(load.is_some())].key.clone();
            let started_at = format!("2026-11-20T10:{minute}:00Z");
            let cell = Some(summary::Experiment { key, ..summary::Experiment::default() });
            let mut step = Summary { started_at, load, experiment: cell, ..Summary::default() };
            step.plan.seed = seed;
            step
        };
        let (first, second) = (step(10, 7, None), step(11, 8, None));
        let load = step(12, 0, Some(Load::default()));
        let seed = |steps: &[&Summary]| {
            let summaries = steps.iter().map(|step| (PathBuf::new(), (*step).clone())).collect();
            let loaded = Loaded { summaries, ..Loaded::default() };
            let mut progress = Progress::new(true, None);
            let earlier = Earlier::collect(loaded, &experiment, false, &mut progress);
            earlier.expect("of this version").run.expect("it goes on").seed
        };
        assert_eq!(seed(&[&load, &first]), Some(7));
        assert_eq!(seed(&[&second, &load, &first]), Some(8));
        assert_eq!(seed(&[&load]), None, "the caller has one");
    }

    #[test]
    fn dump_that_was_changed_after_its_load_is_newer_and_standard_input_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let dump = dir.path().join("x.sql");
        std::fs::write(&dump, "").expect("written");
        let newer = |dump: &Path, started_at: &str| {
            let text = format!(
                "name = 'x'\n[[server]]\nsandbox = {{}}\n[[run]]\nload = {{ dump = '{}' }}\n",
                dump.display()
            );
            let profile = Profile::parse(&text, "p").expect("sound");
            let experiment =
                experiment::build(&profile, &Overrides::default()).expect("an experiment");
            let step = Summary { started_at: started_at.to_owned(), ..Summary::default() };
            let done = HashMap::from([(experiment.cells[0].key.clone(), step)]);
            find_newer_dumps(&experiment, &Earlier { done, ..Earlier::default() }).len()
        };
        assert_eq!(newer(&dump, "2001-01-01T00:00:00Z"), 1);
        assert_eq!(newer(&dump, "2999-01-01T00:00:00Z"), 0);
        assert_eq!(newer(Path::new("-"), "2001-01-01T00:00:00Z"), 0);
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        assert_eq!(newer(&pipe, "2001-01-01T00:00:00Z"), 0);
    }

    #[test]
    fn run_that_goes_on_names_files_of_its_own_directory_whatever_its_id() {
        let text = "name = 'x'\n[[server]]\nsandbox = {}\n\
                    [[run]]\nworkload = 'point-select'\nclients = 1\n";
        let profile = Profile::parse(text, "p").expect("sound");
        let experiment = experiment::build(&profile, &Overrides::default()).expect("an experiment");
        for (run_id, name) in [("00ff00ff00ff00ff", "00ff00ff00ff00ff"), ("../../x", "______x")] {
            let key = experiment.cells[0].key.clone();
            let experiment_of = summary::Experiment { key, ..summary::Experiment::default() };
            let (run_id, step_id) = (run_id.to_owned(), format!("{run_id}-7"));
            let step =
                Summary { run_id, step_id, experiment: Some(experiment_of), ..Summary::default() };
            let loaded = Loaded { summaries: vec![(PathBuf::new(), step)], ..Loaded::default() };
            let mut progress = Progress::new(true, None);
            let earlier = Earlier::collect(loaded, &experiment, false, &mut progress);
            let run = earlier.expect("of this version").run.expect("it goes on");
            assert_eq!((run.id.as_str(), run.last_step), (name, 7));
        }
    }
}
