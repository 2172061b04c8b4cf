//! `loadgen run FILE`: an experiment from its servers to its tables.
//!
//! ```text
//! FILE ─▶ Profile ─▶ Experiment ─▶ legs: server taken, tables prepared, one sweep ─▶ report
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use clap::ValueEnum as _;

use super::in_profile::{Entry, InProfile};
use super::servers::{Servers, Taken, check_addresses};
use super::steps::{Job, Steps};
use super::{Invocation, calibration, conclude, gate, print_data, random, runtime, terminal};
use crate::error::{Error, Kind, Result, line, worst};
use crate::judge::Calibration;
use crate::plan::Step;
use crate::plan::experiment::{Cell, Experiment, Leg, Overrides, Part, What, is_current};
use crate::plan::profile::{Names, Profile};
use crate::progress::{Progress, say};
use crate::report::{self, Layout, Metric, Options};
use crate::stop::Stop;
use crate::summary::{self, Loaded, Outcome, Server, Store, Summary};
use crate::terms::{Finding, finding};

/// Bytes of a profile at most: a dump that is given by mistake is not read to its end.
const PROFILE_MAX: u64 = 4 << 20;

/// Measures what a profile asks for and is not measured yet; without a seed with a random one.
pub(crate) fn run(
    file: &Path,
    mut overrides: Overrides,
    seed: Option<u64>,
    list: bool,
    mut invocation: Invocation<'_>,
) -> Result<()> {
    let profile = read(file)?;
    // Before hours of measuring, not after.
    let tables = PrintedTables::of(&profile)?;
    // 53 bits, so that every reader of JSON sees the same number.
    overrides.seed = seed.map_or_else(|| random().map(|seed| seed >> 11), Ok)?;
    let mut experiment = Experiment::new(&profile, &overrides)?;
    let (out, force) = (&overrides.out, overrides.force);
    let mut earlier = Earlier::below(out, &experiment, force, &mut invocation.progress)?;
    if let (Some(run), None) = (&earlier.run, seed) {
        // One seed for all labels, also for those that are measured later.
        overrides.seed = run.seed;
        experiment = Experiment::new(&profile, &overrides)?;
    }
    let wanted = |cell: &Cell| !earlier.done.contains_key(&cell.key);
    if list {
        return print_data(&experiment.list(wanted));
    }
    let (todo, of) = (experiment.legs(wanted), experiment.cells.len());
    match of - experiment.cells.iter().filter(|cell| wanted(cell)).count() {
        0 => {}
        done if done == of => {
            invocation.progress.note(&format!("all {of} steps are measured already"));
        }
        done => {
            let text = format!("{done} of {of} steps are measured already and skipped");
            invocation.progress.note(&text);
        }
    }
    let mut errors = Vec::new();
    if !todo.is_empty() {
        let done = earlier.done.values();
        let mut legs = Legs::new(&experiment, &mut invocation, earlier.run.as_ref(), done)?;
        errors = legs.run(&todo);
        for step in legs.summaries {
            earlier.take(step);
        }
    }
    let mut progress = invocation.progress;
    progress.clear();
    let Earlier { done, fell, .. } = earlier;
    let all: Vec<Summary> = done.into_values().collect();
    let printed = tables.print(&experiment, &all);
    // What did not complete hides no errors.
    let all: Vec<&Summary> = all.iter().chain(&fell).collect();
    let of = |part: &Part| all.iter().copied().filter(|s| s.workload.name == part.title).collect();
    let judged = experiment.parts.iter().map(|part| (of(part), part.gates.as_slice()));
    let judged = gate::check(judged, &mut progress);
    conclude([worst(errors).map_or(Ok(()), Err), printed, judged], &mut progress)
}

/// Reads a profile, and refuses addresses in it that cannot be understood.
pub(super) fn read(path: &Path) -> Result<Profile> {
    let origin = path.display().to_string();
    let refused =
        |why: &dyn Display| Error::usage(format!("{origin}: {why}")).hint("name a profile");
    let mut text = String::new();
    let file = File::open(path).map_err(|e| refused(&e))?;
    file.take(PROFILE_MAX + 1).read_to_string(&mut text).map_err(|e| refused(&e))?;
    if text.len() as u64 > PROFILE_MAX {
        return Err(refused(&format!("it is larger than {} MiB", PROFILE_MAX >> 20)));
    }
    let profile = Profile::parse(&text, &origin)?;
    check_addresses(&profile)?;
    Ok(profile)
}

/// What is measured already, by invocations of the same experiment.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// The newest completed summary of each cell, by its key.
    pub(super) done: HashMap<String, Summary>,
    pub(super) fell: Vec<Summary>,
    pub(super) run: Option<Continued>,
}

#[derive(Debug, Clone)]
pub(super) struct Continued {
    id: String,
    pub(super) seed: u64,
    last_step: u32,
}

impl Earlier {
    /// Looks through a directory, which may not be there before the first step.
    fn below(
        out: &Path,
        experiment: &Experiment,
        force: bool,
        progress: &mut Progress,
    ) -> Result<Earlier> {
        if !out.is_dir() {
            return Ok(Earlier::default());
        }
        match summary::load(&[out.to_owned()], true) {
            // No summaries are no error here.
            Err(error) if error.kind() == Kind::Data => Ok(Earlier::default()),
            loaded => Earlier::of(loaded?, experiment, force, progress),
        }
    }

    /// Looks through summaries; what is none is named and left out. Keys of an earlier version are
    /// refused, unless `force`.
    pub(super) fn of(
        loaded: Loaded,
        experiment: &Experiment,
        force: bool,
        progress: &mut Progress,
    ) -> Result<Earlier> {
        for (path, reason) in &loaded.skipped {
            progress.warn(&format!("skipped {}: {reason}", path.display()));
        }
        let mut all: Vec<Summary> = loaded.summaries.into_iter().map(|(_, step)| step).collect();
        let name = &experiment.name;
        let of = all.iter().filter_map(|step| step.experiment.as_ref());
        let older = of.filter(|of| of.profile == *name && !is_current(&of.key)).count();
        if older > 0 && !force {
            return Err(Error::data(format!(
                "'{name}' was measured here by an earlier version of loadgen, which gave cells \
                 other keys (summaries: {older})"
            ))
            .hint("another directory (--out), or loadgen run --force to measure them again"));
        }
        all.sort_by(|one, other| one.started_at.cmp(&other.started_at));
        let keys: HashSet<&str> = experiment.all.iter().map(|cell| cell.key.as_str()).collect();
        let wanted = |step: &Summary| {
            step.experiment.as_ref().is_some_and(|of| keys.contains(of.key.as_str()))
        };
        let number = |step: &Summary| step.step_id.rsplit('-').next()?.parse::<u32>().ok();
        let run = all.iter().rfind(|step| wanted(step)).map(|newest| {
            let of_run = all.iter().filter(|step| step.run_id == newest.run_id);
            let last_step = of_run.filter_map(number).max().unwrap_or(0);
            Continued { id: newest.run_id.clone(), seed: newest.plan.seed, last_step }
        });
        let mut earlier = Earlier { run, ..Earlier::default() };
        for step in all.into_iter().filter(wanted) {
            earlier.take(step);
        }
        Ok(earlier)
    }

    /// Adds a step that is newer than the others.
    pub(super) fn take(&mut self, step: Summary) {
        let of = step.experiment.as_ref().expect("a step of an experiment");
        match step.outcome {
            Outcome::Completed => drop(self.done.insert(of.key.clone(), step)),
            _ => self.fell.push(step),
        }
    }
}

/// The legs of an experiment: takes the servers in turn and measures what is not measured yet.
pub(super) struct Legs<'a> {
    experiment: &'a Experiment,
    stop: &'a Stop,
    store: Store,
    pub(super) progress: &'a mut Progress,
    run_id: String,
    /// Added to the steps' numbers, where a run is continued.
    offset: u32,
    /// Of the legs at hand: steps of those before, and of all.
    places: (u32, u32),
    calibration: Option<Calibration>,
    servers: BTreeMap<String, Server>,
    pub(super) summaries: Vec<Summary>,
}

fn servers<'a>(steps: impl Iterator<Item = &'a Summary>) -> BTreeMap<String, Server> {
    let mut steps: Vec<&Summary> = steps.collect();
    steps.sort_by_key(|step| &step.started_at);
    steps.into_iter().map(|step| (step.label.clone(), step.server.clone())).collect()
}

impl<'a> Legs<'a> {
    /// Opens the store. A run that is continued keeps its id and numbers its steps further.
    pub(super) fn new<'s>(
        experiment: &'a Experiment,
        invocation: &'a mut Invocation<'_>,
        continued: Option<&Continued>,
        done: impl Iterator<Item = &'s Summary>,
    ) -> Result<Legs<'a>> {
        let store = invocation.begin()?;
        let Invocation { progress, stop, calibration, .. } = invocation;
        let calibration = calibration::find(calibration.as_deref(), progress);
        let (run_id, offset) = match continued {
            Some(run) => (run.id.clone(), run.last_step),
            None => (format!("{:016x}", random()?), 0),
        };
        Ok(Legs {
            experiment,
            stop,
            store,
            progress,
            run_id,
            offset,
            places: (0, 0),
            calibration,
            servers: servers(done),
            summaries: Vec::new(),
        })
    }

    /// Measures the legs in their order. What goes wrong with one is said, and the next is taken:
    /// a night's work does not end at one server that does not start.
    pub(super) fn run(&mut self, legs: &[Leg]) -> Vec<Error> {
        let mut errors = Vec::new();
        let mut servers = match Servers::new(self.experiment, self.stop, self.progress) {
            Ok(servers) => servers,
            Err(error) => return vec![error],
        };
        let mut taken: Option<Taken> = None;
        let steps = |leg: &Leg| leg.cells.len() as u32;
        let (mut before, of) = (0, legs.iter().map(steps).sum());
        for leg in legs {
            self.places = (before, of);
            before += steps(leg);
            let Err(error) = self.leg(leg, &mut servers, &mut taken) else { continue };
            let kind = error.kind();
            self.progress.clear();
            let label = &self.experiment.subjects[leg.subject].label;
            let title = &self.experiment.parts[leg.part].title;
            self.progress.warn(&format!("{label}, {title}: {error}"));
            errors.push(error);
            if matches!(kind, Kind::Interrupted | Kind::Terminated) {
                break;
            }
            if kind == Kind::Server {
                // It may be gone, or not what it should be: the next leg takes it anew.
                errors.extend(self.give_back(&mut taken).err());
            }
        }
        errors.extend(self.give_back(&mut taken).err());
        errors
    }

    fn give_back(&mut self, taken: &mut Option<Taken>) -> Result<()> {
        taken.take().map_or(Ok(()), |taken| taken.give_back(self.progress))
    }

    fn leg(&mut self, leg: &Leg, servers: &mut Servers, taken: &mut Option<Taken>) -> Result<()> {
        self.stop.check()?;
        let experiment = self.experiment;
        let (subject, part) = (&experiment.subjects[leg.subject], &experiment.parts[leg.part]);
        if !taken.as_ref().is_some_and(|taken| taken.subject == leg.subject && !leg.fresh) {
            self.give_back(taken)?;
            *taken = Some(servers.take(leg.subject, part.dataset(), self.progress)?);
        }
        let server = taken.as_mut().expect("a server was just taken");
        // After an error the server may have been taken anew in the middle of a visit.
        let here = if server.is_pristine() { &[][..] } else { &leg.written_by };
        let (job, written_by) = match &part.what {
            What::Sweep(plan, tables) => {
                let written = server.prepare(tables, here, self.stop, self.progress)?;
                (Job::Sweep(plan), written)
            }
            What::Load(spec) => {
                // Nobody else's data is in a sandbox, and what is brought back is not lost.
                let force = server.pid().is_some() || subject.renews() || experiment.refill;
                (Job::Load { spec, force }, Some(Vec::new()))
            }
            What::Suite(spec) => (Job::Suite(spec), server.written_by(here)),
        };
        if part.writes() {
            server.writes(&part.title)?;
        }
        let steps = self.steps(leg);
        let in_profile = InProfile {
            entries: self.entries(leg, &steps, written_by.as_deref()),
            subject,
            part,
            pid: server.pid(),
            full_size: experiment.scale.is_full(),
            run_id: self.run_id.clone(),
            earlier: self.servers.get(&subject.label).cloned(),
        };
        let mut measuring = Steps {
            label: Some(subject.label.clone()),
            notes: subject.note.iter().map(|note| ("note".to_owned(), note.clone())).collect(),
            repeats: part.repeats,
            prefix: subject.probe.clone(),
            run_id: self.run_id.clone(),
            in_profile: Some(in_profile),
            calibration: self.calibration.as_ref(),
            ..Steps::new(job, self.stop, &self.store, self.progress)?
        };
        let opts = server.target.opts()?;
        let ended = runtime()?.block_on(measuring.run(&server.target, &opts, &steps));
        let measured = measuring.summaries;
        self.servers.extend(self::servers(measured.iter()));
        self.summaries.extend(measured);
        ended
    }

    fn steps(&self, leg: &Leg) -> Vec<Step> {
        let (before, of) = self.places;
        let placed = |(nth, at): (u32, &usize)| {
            let step = self.experiment.step(*at);
            let number = step.number.saturating_add(self.offset);
            Step { number, place: before + nth, of, ..step }
        };
        (1..).zip(&leg.cells).map(placed).collect()
    }

    /// Says what each step is in the experiment, and in what its data may differ from that of others.
    fn entries(
        &self,
        leg: &Leg,
        steps: &[Step],
        written_by: Option<&[String]>,
    ) -> BTreeMap<u32, Entry> {
        let Experiment { subjects, parts, cells, name, scale, .. } = self.experiment;
        let writes = parts[leg.part].writes();
        // A run that writes, or comes after one that wrote, must start from the data that the other
        // labels and repeats start from, or say that it did not.
        let data: Option<Finding> = match written_by {
            Some([]) => None,
            Some(titles) => Some(finding!(DataWritten, titles.join(", "))),
            None => writes.then(|| finding!(DataUnknown)),
        };
        let entry = |(nth, (at, step)): (usize, (&usize, &Step))| {
            let mut warnings: Vec<Finding> = data.iter().cloned().collect();
            if writes {
                // Only the first step of a sweep finds its data as it was prepared.
                warnings.extend((nth > 0).then(|| finding!(CarriedOn)));
                // Others should have written before: they are measured already, or not wanted.
                let missing = self.experiment.before(*at, &leg.cells);
                let missing = missing.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
                warnings.extend((!missing.is_empty()).then(|| finding!(DataNotEqual, missing)));
            }
            let experiment = summary::Experiment {
                profile: name.clone(),
                key: cells[*at].key.clone(),
                scale: scale.factor(),
                base_label: subjects[leg.subject].base.clone(),
                written_by: written_by.map(<[String]>::to_vec),
                commands: Vec::new(),
            };
            (step.number, Entry { experiment, warnings })
        };
        leg.cells.iter().zip(steps).enumerate().map(entry).collect()
    }
}

struct PrintedTables {
    layouts: Vec<Layout>,
    metrics: Vec<Metric>,
}

impl PrintedTables {
    /// Reads the names of a profile, and refuses those that are not known.
    fn of(profile: &Profile) -> Result<PrintedTables> {
        let report = &profile.report;
        let (mut layouts, mut metrics) = (Vec::new(), Vec::new());
        for (n, name) in report.metric.iter().flat_map(Names::texts).enumerate() {
            let metric = name.parse::<Metric>();
            let refused = |e: Error| profile.refuse(&format!("report/metric/{n}"), e.to_string());
            metrics.push(metric.map_err(refused)?);
        }
        for (n, name) in report.layout.iter().flat_map(Names::texts).enumerate() {
            let refused = |what: String| profile.refuse(&format!("report/layout/{n}"), what);
            let layout = Layout::from_str(name, false).map_err(|_| {
                let known = Layout::value_variants().iter().map(Layout::to_string);
                let known = known.collect::<Vec<_>>().join(", ");
                refused(format!("there is no layout '{name}', but {known}"))
            })?;
            if layout.compares() && (report.from.is_none() || report.to.is_none()) {
                return Err(refused(format!("{name} compares two labels: from and to")));
            }
            layouts.push(layout);
        }
        if layouts.is_empty() {
            layouts.push(Layout::default());
        }
        if metrics.is_empty() {
            metrics.push(Metric::default());
        }
        Ok(PrintedTables { layouts, metrics })
    }

    /// Prints what can be shown, whatever else cannot.
    fn print(&self, experiment: &Experiment, summaries: &[Summary]) -> Result<()> {
        if summaries.is_empty() {
            return Ok(());
        }
        let mut printed = String::new();
        let rendered = self.render(experiment, &summaries.iter().collect::<Vec<_>>(), &mut printed);
        print_data(&printed)?;
        rendered
    }

    fn render(
        &self,
        experiment: &Experiment,
        steps: &[&Summary],
        printed: &mut String,
    ) -> Result<()> {
        let usual = [Metric::default()];
        for layout in self.layouts.iter().copied() {
            let metrics = match layout {
                // These have columns of their own.
                Layout::PerOp | Layout::Suite | Layout::Settings => &usual[..],
                _ => &self.metrics,
            };
            for change in changes(experiment, layout, steps) {
                for metric in metrics {
                    let options = options(experiment, layout, metric, change, steps);
                    let table = report::render(steps, &options)?;
                    if !printed.is_empty() {
                        printed.push('\n');
                    }
                    printed.push_str(&table);
                }
            }
        }
        Ok(())
    }
}

/// Lists the pairs of labels that a layout is printed for, or none once.
fn changes<'a>(
    experiment: &'a Experiment,
    layout: Layout,
    steps: &[&Summary],
) -> Vec<Option<&'a (String, String)>> {
    if !layout.compares() {
        return vec![None];
    }
    let there = |(from, to): &&(String, String)| {
        let absent = [from, to].into_iter().find(|label| !is_there(steps, label));
        if let Some(absent) = absent {
            say(&line(&format!("layout {layout} is left out: '{absent}' was not measured")));
        }
        absent.is_none()
    };
    // With one program the first label is the last one, too.
    let changes = experiment.changes.iter().filter(|(from, to)| from != to);
    changes.filter(there).map(Some).collect()
}

/// With `--only`, or after an interruption, not every label is.
fn is_there(steps: &[&Summary], label: &str) -> bool {
    steps.iter().any(|step| step.label == label)
}

fn options(
    experiment: &Experiment,
    layout: Layout,
    metric: &Metric,
    change: Option<&(String, String)>,
    steps: &[&Summary],
) -> Options {
    let report = &experiment.report;
    let there = |label: &&str| is_there(steps, label);
    let related = layout.relates();
    let baseline = report.baseline.as_deref().filter(|label| related && there(label));
    let order = report.order.iter().flat_map(Names::texts).filter(there);
    Options {
        metric: *metric,
        layout,
        baseline: baseline.map(str::to_owned),
        from: change.map(|(from, _)| from.clone()),
        to: change.map(|(_, to)| to.clone()),
        order: order.map(str::to_owned).collect(),
        terminal: terminal(),
        ..Options::default()
    }
}
