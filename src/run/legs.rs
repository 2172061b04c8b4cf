//! The legs of an experiment: takes the servers in turn and measures what is not measured yet.

use std::collections::BTreeMap;

use super::in_profile::{Entry, InProfile};
use super::resume::Continued;
use super::servers::{Servers, Taken};
use super::steps::{Job, Steps};
use super::{Invocation, kept, random, runtime, warn_of_debug_build};
use crate::error::{Error, Kind, Result};
use crate::judge::Calibration;
use crate::observe::process::raise_descriptor_limit;
use crate::plan::Step;
use crate::plan::experiment::{Experiment, Leg, Part, Subject, What};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::summary::{self, Server, Store, Summary};
use crate::terms::{Finding, finding};

/// What all legs share.
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
    /// What the labels' earlier steps were measured on.
    servers: BTreeMap<String, Server>,
    /// What was measured.
    pub(super) summaries: Vec<Summary>,
}

/// The server of each label's newest step.
fn servers<'a>(steps: impl Iterator<Item = &'a Summary>) -> BTreeMap<String, Server> {
    let mut steps: Vec<&Summary> = steps.collect();
    steps.sort_by_key(|step| &step.started_at);
    steps.into_iter().map(|step| (step.label.clone(), step.server.clone())).collect()
}

/// A leg with what its positions stand for.
#[derive(Clone, Copy)]
struct Here<'a> {
    leg: &'a Leg,
    subject: &'a Subject,
    part: &'a Part,
}

impl<'a> Legs<'a> {
    /// Opens the store. A run that is continued keeps its id and numbers its steps further.
    pub(super) fn new<'s>(
        experiment: &'a Experiment,
        invocation: &'a mut Invocation<'_>,
        continued: Option<&Continued>,
        done: impl Iterator<Item = &'s Summary>,
    ) -> Result<Legs<'a>> {
        let Invocation { progress, stop, out, calibration } = invocation;
        let store = Store::open(out)?;
        raise_descriptor_limit()?;
        warn_of_debug_build(progress);
        let calibration = kept::find(calibration.as_deref(), progress);
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
            let subject = &self.experiment.subjects[leg.subject];
            let part = &self.experiment.parts[leg.part];
            let here = Here { leg, subject, part };
            let ended = self.leg(&here, &mut servers, &mut taken);
            let Err(error) = ended else { continue };
            let kind = error.kind();
            self.progress.clear();
            self.progress.warn(&format!("{}, {}: {error}", subject.label, part.title));
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

    fn leg(&mut self, here: &Here, servers: &mut Servers, taken: &mut Option<Taken>) -> Result<()> {
        self.stop.check()?;
        let Here { leg, part, .. } = here;
        let same = |taken: &Taken| taken.subject == leg.subject && !leg.fresh;
        if !taken.as_ref().is_some_and(same) {
            self.give_back(taken)?;
            *taken = Some(servers.take(leg.subject, part.dataset(), self.progress)?);
        }
        let server = taken.as_mut().expect("a server was just taken");
        // After an error the server may have been taken anew in the middle of a visit.
        let mut leg = (*leg).clone();
        if server.is_pristine() {
            leg.written_by.clear();
        }
        self.measure(&Here { leg: &leg, ..*here }, server)
    }

    fn measure(&mut self, here: &Here, server: &mut Taken) -> Result<()> {
        let Here { leg, subject, part } = *here;
        let (job, written_by) = match &part.what {
            What::Sweep(plan, tables) => {
                let written = server.prepare(tables, &leg.written_by, self.stop, self.progress)?;
                (Job::Sweep(plan), written)
            }
            What::Load(spec) => {
                // Nobody else's data is in a sandbox, and what is brought back is not lost.
                let force = server.pid().is_some() || subject.renews() || self.experiment.refill;
                // It makes its table anew.
                (Job::Load { spec, force }, Some(Vec::new()))
            }
            What::Suite(spec) => (Job::Suite(spec), server.written_by(&leg.written_by)),
        };
        if part.writes() {
            server.writes(&part.title)?;
        }
        let (before, of) = self.places;
        let placed = |(nth, at): (u32, &usize)| {
            let step = self.experiment.step(*at);
            let number = step.number.saturating_add(self.offset);
            Step { number, place: before + nth, of, ..step }
        };
        let steps: Vec<Step> = (1..).zip(&leg.cells).map(placed).collect();
        let in_profile = InProfile {
            entries: self.entries(here, &steps, written_by.as_deref()),
            expect: &subject.expect,
            commands: &part.commands,
            label: &subject.label,
            title: &part.title,
            pid: server.pid(),
            full_size: self.experiment.scale.is_full(),
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
        self.servers.extend(servers(measured.iter()));
        self.summaries.extend(measured);
        ended
    }

    /// What the summaries say of their place, by the numbers of the steps.
    fn entries(
        &self,
        here: &Here,
        steps: &[Step],
        written_by: Option<&[String]>,
    ) -> BTreeMap<u32, Entry> {
        let entry = |(nth, (at, step)): (usize, (&usize, &Step))| {
            let experiment = summary::Experiment {
                profile: self.experiment.name.clone(),
                key: self.experiment.cells[*at].key.clone(),
                scale: self.experiment.scale.factor(),
                base_label: here.subject.base.clone(),
                written_by: written_by.map(<[String]>::to_vec),
                commands: Vec::new(),
            };
            let mut warnings: Vec<Finding> = data_not_equal(here, written_by).into_iter().collect();
            if here.part.writes() {
                warnings.extend(carried_on(nth));
                warnings.extend(self.without(here, *at));
            }
            (step.number, Entry { experiment, warnings })
        };
        here.leg.cells.iter().zip(steps).enumerate().map(entry).collect()
    }

    /// A step of a writing run before which others should have written: they are measured
    /// already, or not wanted.
    fn without(&self, here: &Here, at: usize) -> Option<Finding> {
        let missing = self.experiment.before(at, &here.leg.cells);
        if missing.is_empty() {
            return None;
        }
        let clients: Vec<String> = missing.iter().map(u32::to_string).collect();
        Some(finding!(DataNotEqual, clients.join(", ")))
    }
}

/// Steps of a sweep share their data: the first one that writes is the only one that finds it as it
/// was prepared.
fn carried_on(nth: usize) -> Option<Finding> {
    (nth > 0).then(|| finding!(CarriedOn))
}

/// A run that writes, or comes after one that wrote, must start from the data that the other
/// labels and repeats start from, or say that it did not.
fn data_not_equal(here: &Here, written_by: Option<&[String]>) -> Option<Finding> {
    match written_by {
        Some([]) => None,
        Some(titles) => Some(finding!(DataWritten, titles.join(", "))),
        None => here.part.writes().then(|| finding!(DataUnknown)),
    }
}
