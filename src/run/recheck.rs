//! Measures again what is not decided.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::PathBuf;

use super::legs::Legs;
use super::profile::{read, together};
use super::{Invocation, conclude, existing, print_data, random, resume};
use crate::error::{Error, Kind, Result, line, worst};
use crate::plan::experiment::{Cell, Experiment, Overrides};
use crate::plan::profile::Profile;
use crate::plan::value::Scale;
use crate::report::{Doubt, Metric, Options, Question, compare, doubtful};
use crate::stats::next_look;
use crate::summary::Summary;
use crate::terms;

/// A part of the experiment, and a cell of its table.
type Place = (usize, terms::Cell);

/// Cells that want more repeats.
type Wanted = BTreeMap<(usize, Place), u32>;

/// What is asked for.
pub(crate) struct Recheck {
    /// Summaries, or directories of them; the first directory gets the new ones.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) profile: PathBuf,
    pub(crate) programs: Vec<(String, PathBuf)>,
    pub(crate) base: Option<String>,
    pub(crate) new: Option<String>,
    pub(crate) metric: Metric,
    pub(crate) floor: f64,
    pub(crate) spread_max: f64,
    pub(crate) max_repeats: u32,
    pub(crate) list: bool,
}

/// # Errors
///
/// Undecided (98): something is still open at the limit. Those of a profile and of `compare`.
pub(crate) fn run(args: &Recheck, mut invocation: Invocation<'_>) -> Result<()> {
    let profile = read(&args.profile)?;
    existing::check(&profile)?;
    let out = args.paths.iter().find(|path| path.is_dir()).cloned();
    let mut overrides = Overrides {
        programs: args.programs.clone(),
        scale: scale(args, &profile)?,
        seed: random()? >> 11,
        out: out.clone().unwrap_or_default(),
        ..Overrides::default()
    };
    let mut experiment = Experiment::new(&profile, &overrides)?;
    experiment.extend(args.max_repeats, overrides.seed);
    let earlier = resume::find(&args.paths, &experiment, false, &mut invocation.progress)?;
    let Some(run) = &earlier.run else {
        let of = args.profile.display();
        return Err(Error::data(format!("no summary here is of a cell of {of}"))
            .hint("the same --program as for loadgen run, and the profile as it was then"));
    };
    // The keys of one experiment have one seed.
    overrides.seed = run.seed;
    experiment = Experiment::new(&profile, &overrides)?;
    experiment.extend(args.max_repeats, run.seed);
    let (measured, fell) = (earlier.done, earlier.fell);
    let mut again = Again { args, experiment: &experiment, measured, fell };
    let (wanted, doubts) = again.wanted()?;
    if args.list || wanted.is_empty() {
        return again.report(&doubts, &wanted);
    }
    invocation.out =
        out.ok_or_else(|| Error::usage("no PATH is a directory: the new summaries go into one"))?;
    let done = again.measured.values();
    let mut legs = Legs::new(&experiment, &mut invocation, Some(run), done)?;
    let errors = again.measure(&mut legs, wanted)?;
    let mut progress = invocation.progress;
    progress.clear();
    let (wanted, doubts) = again.wanted()?;
    let reported = again.report(&doubts, &wanted);
    // Those of the legs are told already.
    conclude([worst(errors).map_or(Ok(()), Err), reported], &mut progress)
}

/// The scale at which the profile was run.
fn scale(args: &Recheck, profile: &Profile) -> Result<Scale> {
    let loaded = crate::summary::load(&args.paths, true)?;
    let name = &profile.name;
    let of_profile = loaded.summaries.iter().filter_map(|(_, summary)| {
        summary.experiment.as_ref().filter(|experiment| experiment.profile == *name)
    });
    let mut scales: Vec<f64> = of_profile.map(|experiment| experiment.scale).collect();
    scales.sort_unstable_by(f64::total_cmp);
    scales.dedup();
    match scales.as_slice() {
        [] => Err(Error::data(format!("no summary here is of the profile '{name}'"))
            .hint("summaries of `loadgen run` say which profile they are of")),
        [one] => one.to_string().parse().map_err(Error::data),
        _ => Err(Error::data(format!("these are runs of '{name}' at several scales"))
            .hint("name the directory of one of them")),
    }
}

/// What is measured, and what of it wants more.
struct Again<'a> {
    args: &'a Recheck,
    experiment: &'a Experiment,
    /// By the cells' keys.
    measured: HashMap<String, Summary>,
    /// Steps that did not complete.
    fell: Vec<Summary>,
}

impl Again<'_> {
    /// Rounds of more repeats, until nothing is wanted or nothing more comes of it.
    fn measure(&mut self, running: &mut Legs<'_>, first: Wanted) -> Result<Vec<Error>> {
        let mut errors = Vec::new();
        let mut wanted = first;
        while !wanted.is_empty() {
            let legs = self.experiment.legs(|cell| self.wants(&wanted, cell));
            let steps: usize = legs.iter().map(|leg| leg.cells.len()).sum();
            for line in self.lines(&wanted) {
                running.progress.note(&line);
            }
            running.progress.note(&format!("measuring again: {steps} steps"));
            let there = self.measured.len();
            let ended = running.run(&legs);
            let stopped =
                ended.iter().any(|e| matches!(e.kind(), Kind::Interrupted | Kind::Terminated));
            errors.extend(ended);
            let measured = std::mem::take(&mut running.summaries);
            self.measured = together(std::mem::take(&mut self.measured), measured);
            if stopped || self.measured.len() == there {
                break;
            }
            (wanted, _) = self.wanted()?;
        }
        Ok(errors)
    }

    /// Whether a cell is one of those that are wanted and not measured yet.
    fn wants(&self, wanted: &Wanted, cell: &Cell) -> bool {
        let repeats = wanted.get(&(cell.subject, place(cell))).copied().unwrap_or(0);
        cell.repeat <= repeats && !self.measured.contains_key(&cell.key)
    }

    /// What is in doubt, and the repeats that its cells shall have.
    fn wanted(&self) -> Result<(Wanted, Vec<Doubt>)> {
        let doubts = self.doubts()?;
        let mut wanted = Wanted::new();
        for doubt in &doubts {
            let cells = self.cells(doubt);
            let most = cells.iter().map(|at| self.repeats(*at)).max().unwrap_or(0);
            let next = next_look(most).min(self.args.max_repeats);
            for at in cells {
                // One that has fewer than its partner catches up.
                if self.repeats(at) < next {
                    let repeats = wanted.entry(at).or_insert(0);
                    *repeats = next.max(*repeats);
                }
            }
        }
        Ok((wanted, doubts))
    }

    fn doubts(&self) -> Result<Vec<Doubt>> {
        let mut steps: Vec<&Summary> = self.measured.values().collect();
        steps.sort_by(|a, b| a.started_at.cmp(&b.started_at));
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        let options = Options { metric: self.args.metric, ..Options::default() };
        let mut doubts = self.lost();
        for (base, new) in self.pairs(&steps)? {
            let question = Question {
                base,
                new,
                metric: self.args.metric,
                floor: self.args.floor,
                repeats_max: self.args.max_repeats,
                force: false,
                latest: false,
                format: crate::report::Format::Text,
            };
            // The profile may have a cell for one of both labels only.
            let open = compare(&steps, &question)?.open.into_iter();
            doubts.extend(open.filter(|doubt| self.cells(doubt).iter().all(|at| self.has(*at))));
        }
        doubts.extend(doubtful(&steps, &options, self.args.spread_max)?);
        Ok(doubts)
    }

    /// Cells of which no run completed.
    fn lost(&self) -> Vec<Doubt> {
        let cell = |s: &Summary| (s.workload.name.clone(), s.cell());
        let same = |a: &Summary, b: &Summary| a.label == b.label && cell(a) == cell(b);
        let mut doubts: Vec<Doubt> = Vec::new();
        for step in &self.fell {
            if self.measured.values().any(|other| same(step, other)) {
                continue;
            }
            let (workload, cell) = cell(step);
            let at = terms::clients(cell.clients);
            let why = format!("{} at {at}: none of its runs completed", line(&step.label));
            doubts.push(Doubt { workload, labels: vec![step.label.clone()], cell, why });
        }
        doubts.dedup();
        doubts
    }

    /// The labels that are compared, of those that have a workload in common.
    fn pairs(&self, steps: &[&Summary]) -> Result<Vec<(String, String)>> {
        let labels: Vec<&str> =
            self.experiment.subjects.iter().map(|subject| subject.label.as_str()).collect();
        let known = |flag: &str, label: &str| {
            if labels.contains(&label) {
                return Ok(label.to_owned());
            }
            Err(Error::usage(format!("{flag}: the profile has no label '{label}'"))
                .hint(format!("there are {}", labels.join(", "))))
        };
        let baseline = self.experiment.report.baseline.as_deref();
        let base = match (&self.args.base, baseline.or(labels.first().copied())) {
            (Some(label), _) => known("--base", label)?,
            (None, Some(label)) => label.to_owned(),
            (None, None) => return Ok(Vec::new()),
        };
        let new: Vec<String> = match &self.args.new {
            Some(label) => vec![known("--new", label)?],
            None => labels.iter().filter(|l| **l != base).map(|l| (*l).to_owned()).collect(),
        };
        let of_base = cells_of(steps, &base);
        let common =
            |label: &String| cells_of(steps, label).iter().any(|cell| of_base.contains(cell));
        Ok(new.into_iter().filter(common).map(|label| (base.clone(), label)).collect())
    }

    /// The cells of a doubt.
    fn cells(&self, doubt: &Doubt) -> Vec<(usize, Place)> {
        let subjects = self.experiment.subjects.iter().enumerate();
        let subjects = subjects.filter(|(_, subject)| doubt.labels.contains(&subject.label));
        let part = self.experiment.parts.iter().position(|part| part.title == doubt.workload);
        let Some(part) = part else { return Vec::new() };
        let place = (part, doubt.cell);
        subjects.map(|(subject, _)| (subject, place)).collect()
    }

    /// Whether the profile has such a cell.
    fn has(&self, at: (usize, Place)) -> bool {
        self.experiment.cells.iter().any(|cell| (cell.subject, place(cell)) == at)
    }

    /// How many repeats of a cell are measured.
    fn repeats(&self, at: (usize, Place)) -> u32 {
        let of = self.experiment.cells.iter().filter(|cell| (cell.subject, place(cell)) == at);
        of.filter(|cell| self.measured.contains_key(&cell.key)).count() as u32
    }

    /// A line for each cell that is wanted.
    fn lines(&self, wanted: &Wanted) -> Vec<String> {
        let line = |(at, repeats): (&(usize, Place), &u32)| {
            let (subject, (part, cell)) = *at;
            let label = self.experiment.subjects.get(subject).map_or("", |s| s.label.as_str());
            let title = self.experiment.parts.get(part).map_or("", |part| part.title.as_str());
            let rate = cell.rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
            let there = self.repeats(*at);
            let clients = terms::clients(cell.clients);
            format!("{title}  {clients}{rate}  {label}: {there} repeats, then {repeats}")
        };
        wanted.iter().map(line).collect()
    }

    /// Prints what is in doubt and what it gets; an error where something stays open.
    fn report(&self, doubts: &[Doubt], wanted: &Wanted) -> Result<()> {
        let mut text = String::new();
        for doubt in doubts {
            let _ = writeln!(text, "in doubt  {}: {}", doubt.workload, doubt.why);
        }
        for line in self.lines(wanted) {
            let _ = writeln!(text, "again     {line}");
        }
        if doubts.is_empty() {
            text.push_str("nothing is in doubt\n");
        }
        print_data(&crate::error::plain(&text))?;
        if self.args.list || doubts.is_empty() {
            return Ok(());
        }
        let cells: BTreeSet<_> = doubts
            .iter()
            .flat_map(|doubt| {
                doubt.labels.iter().map(move |label| (&doubt.workload, doubt.cell, label))
            })
            .collect();
        let text = format!("{} cells are still in doubt", cells.len());
        Err(Error::new(Kind::Undecided, text)
            .hint("a higher --max-repeats, a longer time in the profile, or a quieter machine"))
    }
}

/// The cells that a label has steps of.
fn cells_of<'a>(steps: &[&'a Summary], label: &str) -> Vec<(&'a str, terms::Cell)> {
    let of = steps.iter().filter(|step| step.label == label);
    of.map(|step| (step.workload.name.as_str(), step.cell())).collect()
}

fn place(cell: &Cell) -> Place {
    (cell.part, terms::Cell::new(cell.clients, cell.rate))
}
