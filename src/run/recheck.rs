//! Measures again what is not decided.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::profile::{Earlier, Legs, read};
use super::{Invocation, conclude, print_data, random};
use crate::error::{Error, Kind, Result, line, plain, worst};
use crate::plan::experiment::{Cell, Experiment, Overrides};
use crate::plan::value::Scale;
use crate::report::{Doubt, Options, Question, compare, doubtful};
use crate::stats::next_look;
use crate::summary::{self, Loaded, Summary};
use crate::terms;

/// A subject and a part of the experiment, and a cell of its table.
type Spot = (usize, usize, terms::Cell);

type Wanted = BTreeMap<Spot, u32>;

pub(crate) struct Recheck {
    /// Summaries, or directories of them; the first directory gets the new ones.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) profile: PathBuf,
    pub(crate) programs: Vec<(String, PathBuf)>,
    pub(crate) base: Option<String>,
    pub(crate) new: Option<String>,
    /// What is compared, of which labels whatever it says.
    pub(crate) question: Question,
    pub(crate) spread_max: f64,
    pub(crate) list: bool,
}

pub(crate) fn run(args: &Recheck, mut invocation: Invocation<'_>) -> Result<()> {
    let profile = read(&args.profile)?;
    let loaded = summary::load(&args.paths, true)?;
    let out = args.paths.iter().find(|path| path.is_dir()).cloned();
    let mut overrides = Overrides {
        programs: args.programs.clone(),
        scale: scale(&loaded, &profile.name)?,
        seed: random()? >> 11,
        out: out.clone().unwrap_or_default(),
        ..Overrides::default()
    };
    let extended = |overrides: &Overrides| {
        let mut experiment = Experiment::new(&profile, overrides)?;
        experiment.extend(args.question.repeats_max, overrides.seed);
        Ok::<_, Error>(experiment)
    };
    let found = Earlier::of(loaded, &extended(&overrides)?, false, &mut invocation.progress)?;
    let Some(run) = found.run.clone() else {
        let of = args.profile.display();
        return Err(Error::data(format!("no summary here is of a cell of {of}"))
            .hint("the same --program as for loadgen run, and the profile as it was then"));
    };
    // The keys of one experiment have one seed.
    overrides.seed = run.seed;
    let experiment = extended(&overrides)?;
    let mut spots: BTreeMap<Spot, Vec<&Cell>> = BTreeMap::new();
    for cell in &experiment.cells {
        spots.entry(spot(cell)).or_default().push(cell);
    }
    let mut again = Again { args, experiment: &experiment, spots, found };
    let (wanted, doubts) = again.wanted()?;
    if args.list || wanted.is_empty() {
        return again.report(&doubts, &wanted);
    }
    invocation.out =
        out.ok_or_else(|| Error::usage("no PATH is a directory: the new summaries go into one"))?;
    let done = again.found.done.values();
    let mut legs = Legs::new(&experiment, &mut invocation, Some(&run), done)?;
    let errors = again.measure(&mut legs, wanted)?;
    let mut progress = invocation.progress;
    progress.clear();
    let (wanted, doubts) = again.wanted()?;
    let reported = again.report(&doubts, &wanted);
    conclude([worst(errors).map_or(Ok(()), Err), reported], &mut progress)
}

fn scale(loaded: &Loaded, name: &str) -> Result<Scale> {
    let experiments = loaded.summaries.iter().filter_map(|(_, step)| step.experiment.as_ref());
    let of_profile = experiments.filter(|experiment| experiment.profile == name);
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

fn spot(cell: &Cell) -> Spot {
    (cell.subject, cell.part, terms::Cell::new(cell.clients, cell.rate))
}

struct Again<'a> {
    args: &'a Recheck,
    experiment: &'a Experiment,
    spots: BTreeMap<Spot, Vec<&'a Cell>>,
    found: Earlier,
}

impl Again<'_> {
    /// Rounds of more repeats, until nothing is wanted or nothing more comes of it.
    fn measure(&mut self, running: &mut Legs<'_>, mut wanted: Wanted) -> Result<Vec<Error>> {
        let mut errors = Vec::new();
        while !wanted.is_empty() {
            let wants = |cell: &Cell| {
                wanted.get(&spot(cell)).is_some_and(|repeats| cell.repeat <= *repeats)
                    && !self.found.done.contains_key(&cell.key)
            };
            let legs = self.experiment.legs(wants);
            for line in self.lines(&wanted) {
                running.progress.note(&line);
            }
            let steps: usize = legs.iter().map(|leg| leg.cells.len()).sum();
            running
                .progress
                .note(&format!("measuring again: {}", terms::counted(steps as u64, "step")));
            let there = self.found.done.len();
            let ended = running.run(&legs);
            let stopped =
                ended.iter().any(|e| matches!(e.kind(), Kind::Interrupted | Kind::Terminated));
            errors.extend(ended);
            for step in running.summaries.drain(..) {
                self.found.take(step);
            }
            if stopped || self.found.done.len() == there {
                break;
            }
            (wanted, _) = self.wanted()?;
        }
        Ok(errors)
    }

    /// Finds what is in doubt, and the repeats that its cells shall have.
    fn wanted(&self) -> Result<(Wanted, Vec<Doubt>)> {
        let doubts = self.doubts()?;
        let mut wanted = Wanted::new();
        for doubt in &doubts {
            let spots = self.spots_of(doubt);
            let most = spots.iter().map(|at| self.repeats(at)).max().unwrap_or(0);
            let next = next_look(most).min(self.args.question.repeats_max);
            // One that has fewer than its partner catches up.
            for at in spots.into_iter().filter(|at| self.repeats(at) < next) {
                let repeats = wanted.entry(at).or_insert(0);
                *repeats = next.max(*repeats);
            }
        }
        Ok((wanted, doubts))
    }

    fn doubts(&self) -> Result<Vec<Doubt>> {
        let mut steps: Vec<&Summary> = self.found.done.values().collect();
        steps.sort_by_key(|step| &step.started_at);
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        let metric = self.args.question.metric;
        let options = Options { metric, ..Options::default() };
        let mut doubts = self.lost();
        for (base, new) in self.pairs(&steps)? {
            let question = Question { base, new, ..self.args.question.clone() };
            // The profile may have a cell for one of both labels only.
            let there =
                |doubt: &Doubt| self.spots_of(doubt).iter().all(|at| self.spots.contains_key(at));
            doubts.extend(compare(&steps, &question)?.open.into_iter().filter(there));
        }
        doubts.extend(doubtful(&steps, &options, self.args.spread_max)?);
        Ok(doubts)
    }

    fn lost(&self) -> Vec<Doubt> {
        let of = |s: &Summary| (s.label.clone(), s.workload.name.clone(), s.cell());
        let done: BTreeSet<_> = self.found.done.values().map(of).collect();
        let fell = self.found.fell.iter().map(of).filter(|fell| !done.contains(fell));
        let doubt = |(label, workload, cell): (String, String, terms::Cell)| {
            let at = terms::clients(cell.clients);
            let why = format!("{} at {at}: none of its runs completed", line(&label));
            Doubt { workload, labels: vec![label], cell, why }
        };
        fell.collect::<BTreeSet<_>>().into_iter().map(doubt).collect()
    }

    /// Lists the labels that are compared, of those that have a workload in common.
    fn pairs(&self, steps: &[&Summary]) -> Result<Vec<(String, String)>> {
        let labels: Vec<&str> =
            self.experiment.subjects.iter().map(|subject| subject.label.as_str()).collect();
        for (flag, label) in [("--base", &self.args.base), ("--new", &self.args.new)] {
            if let Some(label) = label.as_ref().filter(|label| !labels.contains(&label.as_str())) {
                return Err(Error::usage(format!("{flag}: the profile has no label '{label}'"))
                    .hint(format!("there are {}", labels.join(", "))));
            }
        }
        let baseline = self.experiment.report.baseline.as_deref();
        let base = self.args.base.as_deref().or(baseline).unwrap_or(labels[0]);
        let new = match &self.args.new {
            Some(label) => vec![label.as_str()],
            None => labels.iter().copied().filter(|label| *label != base).collect(),
        };
        let cells_of = |label: &str| -> BTreeSet<(&str, terms::Cell)> {
            let of = steps.iter().filter(|step| step.label == label);
            of.map(|step| (step.workload.name.as_str(), step.cell())).collect()
        };
        let of_base = cells_of(base);
        let common = new.into_iter().filter(|label| !of_base.is_disjoint(&cells_of(label)));
        Ok(common.map(|label| (base.to_owned(), label.to_owned())).collect())
    }

    fn spots_of(&self, doubt: &Doubt) -> Vec<Spot> {
        let Experiment { subjects, parts, .. } = self.experiment;
        let part = parts.iter().position(|part| part.title == doubt.workload);
        let of = |part: usize| {
            let subjects = subjects.iter().enumerate();
            let subjects = subjects.filter(|(_, subject)| doubt.labels.contains(&subject.label));
            subjects.map(move |(subject, _)| (subject, part, doubt.cell))
        };
        part.into_iter().flat_map(of).collect()
    }

    fn repeats(&self, at: &Spot) -> u32 {
        let of = self.spots.get(at).into_iter().flatten();
        of.filter(|cell| self.found.done.contains_key(&cell.key)).count() as u32
    }

    fn lines(&self, wanted: &Wanted) -> Vec<String> {
        let line = |(at, repeats): (&Spot, &u32)| {
            let (subject, part, cell) = *at;
            let label = &self.experiment.subjects[subject].label;
            let title = &self.experiment.parts[part].title;
            let rate = cell.rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
            let (there, clients) = (self.repeats(at), terms::clients(cell.clients));
            format!("{title}  {clients}{rate}  {label}: {there} repeats, then {repeats}")
        };
        wanted.iter().map(line).collect()
    }

    /// Prints what is in doubt and what it gets; an error where something stays open.
    fn report(&self, doubts: &[Doubt], wanted: &Wanted) -> Result<()> {
        let told =
            doubts.iter().map(|doubt| format!("in doubt  {}: {}\n", doubt.workload, doubt.why));
        let again = self.lines(wanted).into_iter().map(|line| format!("again     {line}\n"));
        let none = doubts.is_empty().then(|| "nothing is in doubt\n".to_owned());
        print_data(&plain(&told.chain(again).chain(none).collect::<String>()))?;
        if self.args.list || doubts.is_empty() {
            return Ok(());
        }
        let cells = doubts.iter().flat_map(|doubt| {
            doubt.labels.iter().map(move |label| (&doubt.workload, doubt.cell, label))
        });
        let cells = cells.collect::<BTreeSet<_>>().len() as u64;
        let text = format!("still in doubt: {}", terms::counted(cells, "cell"));
        Err(Error::new(Kind::Undecided, text)
            .hint("a higher --max-repeats, a longer time in the profile, or a quieter machine"))
    }
}
