//! Measures again the cells that are undecided.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::profile::{
    Earlier, Legs, Source, check_label, check_parts, check_same_way, claim_out, read,
};
use super::servers::find_servers;
use super::{Invocation, finish, leave_out, print_data, tell_saved};
use crate::error::{Error, Kind, Result, line, ranked};
use crate::hosts::Ranks;
use crate::mysql::options::Address;
use crate::mysql::{Env, resolve};
use crate::plan::experiment::{self, Cell, CellGroup, Experiment, Overrides};
use crate::plan::profile::{Given, Profile};
use crate::plan::value::Scale;
use crate::report::{Doubt, Layout, Options, Question, compare, doubtful};
use crate::stats::next_look;
use crate::stop::unless_stopped;
use crate::summary::{self, Loaded, Server, Summary};
use crate::terms;

/// A cell of a table: its workload, clients and rate, and label.
type CellKey = (String, terms::Cell, String);

/// Cells with the number of repeats that they have and need.
type MissingRuns = BTreeMap<CellKey, (u32, u32)>;

/// Cells that need more repeats, and the doubts behind them.
type PendingChecks = (MissingRuns, Vec<Doubt>);

pub(crate) struct Recheck {
    /// Summaries, or directories of them; the first directory gets the new ones.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) source: Source,
    pub(crate) programs: Vec<(String, PathBuf)>,
    pub(crate) base: Option<String>,
    pub(crate) new: Option<String>,
    pub(crate) question: Question,
    pub(crate) spread_max: f64,
    pub(crate) list: bool,
}

pub(crate) fn run(args: &Recheck, mut invocation: Invocation<'_>) -> Result<()> {
    let profile = read(&args.source.profile, invocation.stop)?;
    let paths = args.paths.clone();
    let out = args.paths.iter().find(|path| path.is_dir()).cloned();
    let is_led = invocation.is_led_elsewhere();
    let measures = !args.list && !is_led;
    let claimed = out.as_deref().filter(|_| measures).map(claim_out);
    let hint = "all ranks read these summaries: name a directory that they share";
    let shared = |error: Error| if is_led { error.hint(hint) } else { error };
    let loaded = unless_stopped(invocation.stop, move || summary::load(&paths, true));
    let loaded = loaded.map_err(shared)?;
    let mut overrides = Overrides {
        programs: args.programs.clone(),
        scale: find_scale(&loaded, &profile.name).map_err(shared)?,
        out: out.clone().unwrap_or_default(),
        ..Overrides::default()
    };
    let own = replace_server(profile.clone(), args, &overrides, &loaded)?;
    let (own, stop) = (experiment::build(&own, &overrides)?, invocation.stop);
    if invocation.follow(own.plans().cloned().collect(), || find_servers(&own, stop))? {
        return Ok(());
    }
    let mut begun = None;
    if let Some(out) = out.as_ref().filter(|_| measures) {
        invocation.out.clone_from(out);
        begun = invocation.begin_before_hosts()?;
    }
    let ranks = invocation.start_ranks(own.plans())?;
    leave_out(loaded.imported.len(), "recheck");
    overrides.host_threads = ranks.as_ref().map(Ranks::threads);
    let profile = replace_server(profile, args, &overrides, &loaded)?;
    let extended = |overrides: &Overrides| {
        let mut experiment = experiment::build(&profile, overrides)?;
        experiment.extend(args.question.repeats_max, overrides.seed);
        Ok::<_, Error>(experiment)
    };
    let none = no_cell(args, &loaded, &profile.name, invocation.hosts.is_some());
    let found = Earlier::collect(loaded, &extended(&overrides)?, false, &mut invocation.progress)?;
    // All cells of an experiment share one seed.
    overrides.seed = found.run.as_ref().ok_or(none)?.seed.unwrap_or(overrides.seed);
    check_same_way(args.source.connection.as_ref(), &found)?;
    let mut again = RecheckRun { args, experiment: &extended(&overrides)?, found };
    let mut open = again.find_pending()?;
    if let Some(hosts) = &invocation.hosts {
        let is_open = |cell: &&Cell| open.0.contains_key(&again.cell_key(cell));
        check_parts(again.experiment, hosts.flag(), again.experiment.cells.iter().filter(is_open))?;
    }
    let (mut errors, mut saved) = (Vec::new(), 0);
    if !args.list && !open.0.is_empty() {
        let no_directory = || Error::usage("no PATH is a directory: the new summaries go into one");
        invocation.out = out.ok_or_else(no_directory)?;
        let _claimed = claimed.transpose()?;
        let store = begun.map_or_else(|| invocation.begin(), Ok)?;
        let store = (store, args.source.scripts);
        let first = again.legs(&open);
        let before = (first.as_slice(), &again.found);
        let mut legs = Legs::new(again.experiment, &mut invocation, store, before, ranks)?;
        errors = again.measure(&mut legs, &mut open)?;
        saved = legs.saved;
    }
    let out = invocation.out;
    let mut progress = invocation.progress;
    progress.clear();
    let reported = again.report(&open);
    tell_saved(saved, &out, Layout::Versions, &mut progress);
    if let Some(exporter) = &invocation.exporter {
        exporter.wait_for_last_scrape(stop, &mut progress);
    }
    finish([ranked(errors).0.map_or(Ok(()), Err), reported], &mut progress)
}

/// Makes the error of summaries of which none is of a cell, with the hosts that they were measured on.
fn no_cell(args: &Recheck, loaded: &Loaded, name: &str, has_hosts: bool) -> Error {
    let profile = args.source.profile.display();
    let error = Error::data(format!("none of these summaries belongs to a cell of {profile}"))
        .hint(
            "use the --program, --label and server of that loadgen run, and the same text of the \
         profile",
        );
    let is_of_profile =
        |step: &&Summary| step.experiment.as_ref().is_some_and(|of| of.profile == name);
    let steps = loaded.summaries.iter().map(|(_, step)| step).filter(is_of_profile);
    let fullest = steps.max_by_key(|step| step.plan.engine_threads);
    // A profile of one host that was changed has nothing to do with hosts.
    let is_of_hosts = |step: &&Summary| has_hosts || !step.hosts.is_empty();
    error.add_hints(fullest.filter(is_of_hosts).map(|step| {
        let names = terms::joined(step.hosts.iter().map(|host| Some(line(&host.name))), ",");
        let hosts = match (names, step.hosts.first()) {
            (Some(_), Some(first)) if first.rank == 0 => {
                format!("--ranks on {}", terms::counted(step.hosts.len() as u64, "rank"))
            }
            (Some(names), _) => format!("--hosts {names}"),
            (None, _) => "neither --hosts nor --ranks".to_owned(),
        };
        let threads = describe_threads(step);
        format!("they were measured with {hosts}, and {threads} in all: recheck with the same")
    }))
}

/// Describes the threads of all hosts by those of a step, which has no more of them than clients.
fn describe_threads(step: &Summary) -> String {
    let beside = step.groups.iter().map(|group| group.clients);
    let clients = beside.fold(step.plan.clients, u32::saturating_add);
    let threads = terms::counted(step.plan.engine_threads, "engine thread");
    if step.plan.engine_threads < clients { threads } else { format!("{threads} or more") }
}

/// Replaces the server by the one that flags name, under the label and address of its results.
fn replace_server(
    profile: Profile,
    args: &Recheck,
    overrides: &Overrides,
    loaded: &Loaded,
) -> Result<Profile> {
    let Some(connection) = &args.source.connection else {
        return check_label(args.source.label.as_deref()).map(|()| profile);
    };
    let address = resolve::resolve(connection, &Env::real())?.target.name_addresses();
    let steps = || loaded.summaries.iter().map(|(_, step)| step);
    let mut labels: Vec<&String> = steps().map(|step| &step.label).collect();
    labels.sort();
    labels.dedup();
    let only = labels.first().filter(|_| labels.len() == 1).map(|label| (*label).clone());
    let label = args.source.label.clone().or(only);
    let before = steps().flat_map(|step| {
        let Server { host, port, variables, .. } = &step.server;
        let tcp = port.map(|port| Address::Tcp { host: host.clone(), port }.to_string());
        [tcp, variables.get("socket").cloned()]
    });
    let known: BTreeSet<Option<String>> = before.chain([Some(address.clone()), None]).collect();
    let stand_in = |known_as: Option<String>| {
        let (mut profile, connection) = (profile.clone(), connection.clone());
        let given = Given { connection, address: address.clone(), known_as };
        profile.stand_in(label.clone(), given);
        profile
    };
    let has_results = |profile: &Profile| {
        let experiment = experiment::build(profile, overrides)?;
        let keys: BTreeSet<&str> = experiment.all.iter().map(|cell| cell.key.as_str()).collect();
        let mut known = steps().filter_map(|step| step.experiment.as_ref());
        Ok::<_, Error>(known.any(|cell| keys.contains(cell.key.as_str())))
    };
    for known_as in known {
        let profile = stand_in(known_as);
        if has_results(&profile)? {
            return Ok(profile);
        }
    }
    Ok(stand_in(Some(address.clone())))
}

fn find_scale(loaded: &Loaded, name: &str) -> Result<Scale> {
    let experiments = loaded.summaries.iter().filter_map(|(_, step)| step.experiment.as_ref());
    let of_profile = experiments.filter(|experiment| experiment.profile == name);
    let scales: BTreeSet<String> = of_profile.map(|step| step.scale.to_string()).collect();
    match Vec::from_iter(scales).as_slice() {
        [one] => one.parse().map_err(Error::data),
        [] => Err(Error::data(format!("no summary here is of the profile '{name}'"))
            .hint("summaries of `loadgen run` say which profile they are of")),
        _ => Err(Error::data(format!("these are runs of '{name}' at several scales"))
            .hint("name the directory of one of them")),
    }
}

fn summary_key(step: &Summary) -> CellKey {
    (step.workload.name.clone(), step.cell(), step.label.clone())
}

fn doubt_keys(doubt: &Doubt) -> impl Iterator<Item = CellKey> {
    doubt.labels.iter().map(|label| (doubt.workload.clone(), doubt.cell, label.clone()))
}

struct RecheckRun<'a> {
    args: &'a Recheck,
    experiment: &'a Experiment,
    found: Earlier,
}

impl RecheckRun<'_> {
    fn cell_key(&self, cell: &Cell) -> CellKey {
        let Experiment { subjects, parts, .. } = self.experiment;
        let (part, subject) = (&parts[cell.part], &subjects[cell.subject]);
        (part.title.clone(), terms::Cell::new(cell.clients, cell.rate), subject.label.clone())
    }

    fn legs(&self, open: &PendingChecks) -> Vec<CellGroup> {
        self.experiment.legs(|cell| {
            open.0.get(&self.cell_key(cell)).is_some_and(|(_, repeats)| cell.repeat <= *repeats)
                && !self.found.done.contains_key(&cell.key)
        })
    }

    /// Measures rounds of more repeats, until nothing is undecided or no round helps.
    fn measure(&mut self, running: &mut Legs<'_>, open: &mut PendingChecks) -> Result<Vec<Error>> {
        let mut errors = Vec::new();
        loop {
            let legs = self.legs(open);
            describe_runs(&open.0).for_each(|line| running.progress.note(&line));
            let steps: usize = legs.iter().map(|leg| leg.cells.len()).sum();
            let steps = terms::counted(steps as u64, "step");
            running.progress.note(&format!("measuring again: {steps}"));
            let done_before = self.found.done.len();
            let ended = running.run(&legs, &mut self.found);
            let stopped = running.is_over(&ended);
            errors.extend(ended);
            *open = self.find_pending()?;
            if stopped || self.found.done.len() == done_before || open.0.is_empty() {
                return Ok(errors);
            }
        }
    }

    fn find_pending(&self) -> Result<PendingChecks> {
        let cells = self.experiment.cells.iter().map(|cell| (self.cell_key(cell), 0));
        let mut repeats: BTreeMap<CellKey, u32> = cells.collect();
        for step in self.found.done.values() {
            *repeats.entry(summary_key(step)).or_default() += 1;
        }
        let mut doubts = self.find_doubts(&repeats)?;
        // The profile may have a cell for only one of both labels.
        doubts.retain(|doubt| doubt_keys(doubt).all(|at| repeats.contains_key(&at)));
        let mut wanted = MissingRuns::new();
        for doubt in &doubts {
            let most = doubt_keys(doubt).map(|at| repeats[&at]).max().unwrap_or(0);
            let next = next_look(most).min(self.args.question.repeats_max);
            // Cells with fewer repeats than their partner catch up.
            for at in doubt_keys(doubt).filter(|at| repeats[at] < next) {
                let repeats = repeats[&at];
                let (_, wanted) = wanted.entry(at).or_insert((repeats, next));
                *wanted = next.max(*wanted);
            }
        }
        Ok((wanted, doubts))
    }

    fn find_doubts(&self, repeats: &BTreeMap<CellKey, u32>) -> Result<Vec<Doubt>> {
        let lost: BTreeSet<CellKey> = self.found.fell.iter().map(summary_key).collect();
        let lost = lost.into_iter().filter(|at| repeats.get(at).is_none_or(|n| *n == 0));
        let lost = lost.map(|(workload, cell, label)| {
            let why = format!("{} at {}: none of its runs completed", line(&label), cell.told());
            Doubt { workload, labels: vec![label], cell, why }
        });
        let mut doubts: Vec<Doubt> = lost.collect();
        let mut steps: Vec<&Summary> = self.found.done.values().collect();
        steps.sort_by_key(|step| &step.started_at);
        if steps.is_empty() {
            return Ok(doubts);
        }
        let (base, others) = self.choose_labels(&steps)?;
        if let Some((new, others)) = others.split_first() {
            let (new, others) = (new.clone(), others.to_vec());
            let base = base.clone();
            let question = Question { base, new, others, ..self.args.question.clone() };
            doubts.extend(compare(&steps, &question)?.open);
        }
        let options = Options { metric: self.args.question.metric, ..Options::default() };
        doubts.extend(doubtful(&steps, &options, self.args.spread_max)?);
        if let Some(new) = &self.args.new {
            // Other labels were not asked about.
            doubts.retain(|doubt| doubt.labels.iter().all(|label| [&base, new].contains(&label)));
        }
        Ok(doubts)
    }

    /// Returns the baseline, and the labels to compare with it: those that share a workload.
    fn choose_labels(&self, steps: &[&Summary]) -> Result<(String, Vec<String>)> {
        let labels: Vec<&String> = self.experiment.subjects.iter().map(|s| &s.label).collect();
        let Recheck { base, new, .. } = self.args;
        for (flag, label) in [("--baseline", base), ("--new", new)] {
            if let Some(label) = label.as_ref().filter(|label| !labels.contains(label)) {
                let known: Vec<&str> = labels.iter().map(|label| label.as_str()).collect();
                return Err(Error::usage(format!("{flag}: the profile has no label '{label}'"))
                    .hint(format!("known labels: {}", known.join(", "))));
            }
        }
        let baseline = self.experiment.profile.report.baseline.as_ref();
        let base = base.as_ref().or(baseline).unwrap_or(labels[0]);
        if new.as_ref() == Some(base) {
            return Err(Error::usage(format!("'{base}' is compared with itself"))
                .hint("--baseline and --new name two labels"));
        }
        let cells_of = |label: &String| -> BTreeSet<(&str, terms::Cell)> {
            let steps = steps.iter().filter(|step| step.label == *label);
            steps.map(|step| (step.workload.name.as_str(), step.cell())).collect()
        };
        let of_base = cells_of(base);
        let wanted = |label: &&String| new.as_ref().map_or(*label != base, |new| new == *label);
        let common = labels.into_iter().filter(wanted);
        let common = common.filter(|label| !of_base.is_disjoint(&cells_of(label)));
        Ok((base.clone(), common.cloned().collect()))
    }

    /// Prints the doubts and the repeats to come; an error if some stay open.
    fn report(&self, (wanted, doubts): &PendingChecks) -> Result<()> {
        let open = |doubt: &Doubt| format!("in doubt  {}: {}", doubt.workload, doubt.why);
        let again = describe_runs(wanted).map(|text| format!("again     {text}"));
        let none = doubts.is_empty().then(|| "nothing is in doubt".to_owned());
        // Labels and workloads are those of files.
        let all = doubts.iter().map(open).chain(again).chain(none);
        print_data(&all.map(|text| line(&text) + "\n").collect::<String>())?;
        if self.args.list || doubts.is_empty() {
            return Ok(());
        }
        let cells = doubts.iter().flat_map(doubt_keys).collect::<BTreeSet<_>>().len() as u64;
        let text = format!("still in doubt: {}", terms::counted(cells, "cell"));
        Err(Error::new(Kind::Undecided, text)
            .hint("a higher --max-repeats, a longer time in the profile, or a quieter machine"))
    }
}

fn describe_runs(wanted: &MissingRuns) -> impl Iterator<Item = String> {
    wanted.iter().map(|((title, cell, label), (repeats, next))| {
        let cell = cell.told();
        format!("{title}  {cell}  {label}: {repeats} repeats, then {next}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_may_be_more_than_those_of_a_step_with_few_clients() {
        let threads = |clients, engine_threads| {
            let mut step = Summary::default();
            (step.plan.clients, step.plan.engine_threads) = (clients, engine_threads);
            describe_threads(&step)
        };
        assert_eq!(threads(64, 4), "4 engine threads");
        assert_eq!(threads(1, 1), "1 engine thread or more");
    }
}
