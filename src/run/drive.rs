//! Takes the servers in turn and measures what is not measured yet.

use std::collections::BTreeMap;

use super::expect;
use super::role::{Mark, Role, check_same};
use super::servers::{Host, Hosts};
use super::{conclude, keep, lines, load_once, runtime, suite};
use crate::error::{Error, Kind, Result};
use crate::load::reload::FORCE;
use crate::plan::experiment::{Dataset, Experiment, Leg, Part, Subject, What};
use crate::plan::{Plan, Step};
use crate::progress::Progress;
use crate::run::steps::Sweep;
use crate::run::timed::{Measured, Scene, Turn};
use crate::stop::Stop;
use crate::summary::{self, Calibration, Server, Store, Summary, Warning};

/// [`FORCE`], as a profile says it.
const REFILL: &str =
    "refill = true in [tables] drops also what prepare made; or name another database";

/// What all legs share.
pub(super) struct Drive<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) stop: &'a Stop,
    pub(super) store: &'a Store,
    pub(super) progress: &'a mut Progress,
    pub(super) run_id: String,
    /// Added to the steps' numbers, where a run is continued.
    pub(super) offset: u32,
    /// Of the legs at hand: steps of those before, and of all.
    pub(super) places: (u32, u32),
    /// What this host can generate, where that is known.
    pub(super) calibration: Option<Calibration>,
    /// What the labels' earlier steps were measured on.
    pub(super) servers: BTreeMap<String, Server>,
    /// What was measured.
    pub(super) summaries: Vec<Summary>,
}

/// The server of each label's newest step.
pub(super) fn servers<'a>(steps: impl Iterator<Item = &'a Summary>) -> BTreeMap<String, Server> {
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

impl Drive<'_> {
    /// Measures the legs in their order. What goes wrong with one is said, and the next is taken:
    /// a night's work does not end at one server that does not start.
    pub(super) fn run(&mut self, legs: &[Leg]) -> Vec<Error> {
        let mut errors = Vec::new();
        let mut hosts = match Hosts::new(self.experiment, self.stop, self.progress) {
            Ok(hosts) => hosts,
            Err(error) => return vec![error],
        };
        let mut host: Option<Host> = None;
        let steps = |leg: &Leg| leg.cells.len() as u32;
        let (mut before, of) = (0, legs.iter().map(steps).sum());
        for leg in legs {
            self.places = (before, of);
            before += steps(leg);
            let subject = &self.experiment.subjects[leg.subject];
            let part = &self.experiment.parts[leg.part];
            let here = Here { leg, subject, part };
            let ended = self.leg(&here, &mut hosts, &mut host);
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
                errors.extend(self.give_back(&mut host).err());
            }
        }
        errors.extend(self.give_back(&mut host).err());
        errors
    }

    fn give_back(&mut self, host: &mut Option<Host>) -> Result<()> {
        host.take().map_or(Ok(()), |host| host.give_back(self.progress))
    }

    fn leg(&mut self, here: &Here, hosts: &mut Hosts, host: &mut Option<Host>) -> Result<()> {
        self.stop.check()?;
        let Here { leg, part, .. } = here;
        let same = |host: &Host| host.subject == leg.subject && !leg.fresh;
        let mut taken = match host.take() {
            Some(host) if same(&host) => host,
            other => {
                *host = other;
                self.give_back(host)?;
                hosts.take(leg.subject, part.dataset(), self.progress)?
            }
        };
        // After an error the server may have been taken anew in the middle of a visit.
        let mut leg = (*leg).clone();
        if taken.is_pristine() {
            leg.written_by.clear();
        }
        let here = Here { leg: &leg, ..*here };
        let measured = self.measure(&here, &mut taken);
        *host = Some(taken);
        measured
    }

    fn measure(&mut self, here: &Here, host: &mut Host) -> Result<()> {
        match &here.part.what {
            What::Sweep(plan, tables) => self.sweep(here, plan, tables, host),
            What::Load(_) | What::Suite(_) => self.timed(here, host),
        }
    }

    /// A load or a suite.
    fn timed(&mut self, here: &Here, host: &mut Host) -> Result<()> {
        let Here { leg, subject, part } = here;
        let written_by = match &part.what {
            What::Suite(_) => host.written_by(&leg.written_by),
            // A load makes its table anew.
            What::Load(_) | What::Sweep(..) => Some(Vec::new()),
        };
        host.writes(&part.title)?;
        let step = self.experiment.step(leg.cells[0]);
        let number = step.number.saturating_add(self.offset);
        let turn = Turn {
            number,
            repeat: leg.repeat,
            repeats: part.repeats,
            title: Some(part.title.clone()),
        };
        // Nobody else's data is in a sandbox, and what is brought back is not lost.
        let force = host.pid().is_some() || subject.renews() || self.experiment.refill;
        let measured = runtime()?.block_on(async {
            let (label, notes) = (Some(subject.label.as_str()), notes(subject));
            let prefix = subject.probe.clone();
            let mut scene = Scene::look(&host.target, label, notes, prefix, self.stop).await?;
            let server = &scene.identity.server;
            check_same(&subject.label, self.servers.get(&subject.label), server)?;
            expect::check(&subject.expect, &server.variables, None)?;
            scene.identity.run_id.clone_from(&self.run_id);
            match &part.what {
                What::Load(load) => {
                    let taken = load_once::measure(&scene, load, force, &turn, self.progress).await;
                    taken.map(Some).map_err(|e| e.instead(FORCE, REFILL))
                }
                What::Suite(suite) => {
                    let dir = self.store.dir();
                    suite::measure(&scene, suite, &turn, dir, self.progress).await.map(Some)
                }
                What::Sweep(..) => Ok(None),
            }
        })?;
        let Some(Measured { mut summary, error }) = measured else { return Ok(()) };
        let steps: Vec<(usize, Step)> = leg.cells.iter().map(|at| (*at, step)).collect();
        let mut marks = self.marks(here, &steps, written_by.as_deref());
        if let Some(Mark { experiment, warnings }) = marks.remove(&number) {
            summary.warnings.extend(warnings);
            summary.experiment = Some(experiment);
        }
        self.progress.note(&match &part.what {
            What::Suite(_) => lines::suite(&summary),
            _ => lines::load(&summary),
        });
        let kept = keep(self.store, &summary, self.progress);
        self.servers.extend(servers(std::iter::once(&summary)));
        self.summaries.push(summary);
        let error = error.map(|e| e.instead(FORCE, REFILL));
        conclude([error.map_or(Ok(()), Err), kept], self.progress)
    }

    fn sweep(&mut self, here: &Here, plan: &Plan, tables: &Dataset, host: &mut Host) -> Result<()> {
        let Here { leg, subject, part } = here;
        let written_by = host.prepare(tables, &leg.written_by, self.stop, self.progress)?;
        if part.writes() {
            host.writes(&part.title)?;
        }
        let plan = Plan {
            label: Some(subject.label.clone()),
            notes: notes(subject).into_iter().collect(),
            ..plan.clone()
        };
        let steps: Vec<(usize, Step)> =
            leg.cells.iter().map(|at| (*at, self.experiment.step(*at))).collect();
        let (before, of) = self.places;
        let placed = |(place, step): (u32, Step)| Step {
            number: step.number.saturating_add(self.offset),
            place: before + place,
            of,
            ..step
        };
        let role = Role {
            marks: self.marks(here, &steps, written_by.as_deref()),
            expect: &subject.expect,
            commands: &part.commands,
            label: &subject.label,
            title: &part.title,
            pid: host.pid(),
            full_size: self.experiment.scale.is_full(),
            run_id: &self.run_id,
            earlier: self.servers.get(&subject.label).cloned(),
        };
        let mut sweep = Sweep {
            plan: &plan,
            stop: self.stop,
            store: self.store,
            progress: self.progress,
            prefix: subject.probe.clone(),
            run_id: self.run_id.clone(),
            role: Some(role),
            calibration: self.calibration.as_ref(),
            summaries: Vec::new(),
        };
        let steps = (1..).zip(steps.into_iter().map(|(_, step)| step));
        let steps: Vec<Step> = steps.map(placed).collect();
        let opts = host.target.opts()?;
        let ended = runtime()?.block_on(sweep.run(&host.target, &opts, &steps));
        let measured = sweep.summaries;
        self.servers.extend(servers(measured.iter()));
        self.summaries.extend(measured);
        ended
    }

    /// What the summaries say of their place, by the numbers of the steps.
    fn marks(
        &self,
        here: &Here,
        steps: &[(usize, Step)],
        written_by: Option<&[String]>,
    ) -> BTreeMap<u32, Mark> {
        let mark = |(nth, (at, step)): (usize, &(usize, Step))| {
            let cell = self.experiment.cells.get(*at)?;
            let experiment = summary::Experiment {
                profile: self.experiment.name.clone(),
                key: cell.key.clone(),
                scale: self.experiment.scale.factor(),
                base_label: here.subject.base.clone(),
                written_by: written_by.map(<[String]>::to_vec),
                commands: Vec::new(),
            };
            let mut warnings = data_not_equal(here, written_by);
            if here.part.writes() {
                warnings.extend(carried_on(nth));
                warnings.extend(self.without(here, *at));
            }
            let number = step.number.saturating_add(self.offset);
            Some((number, Mark { experiment, warnings }))
        };
        steps.iter().enumerate().filter_map(mark).collect()
    }

    /// A step of a writing run before which others should have written: they are measured
    /// already, or not wanted.
    fn without(&self, here: &Here, at: usize) -> Option<Warning> {
        let missing = self.experiment.before(at, &here.leg.cells);
        if missing.is_empty() {
            return None;
        }
        let clients: Vec<String> = missing.iter().map(u32::to_string).collect();
        Some(Warning {
            code: "data_not_equal".to_owned(),
            message: format!(
                "continued or measured in part: the steps of this run at clients {}, which come \
                 before it on the same data, did not write to it here",
                clients.join(", ")
            ),
        })
    }
}

fn notes(subject: &Subject) -> BTreeMap<String, String> {
    subject.note.iter().map(|note| ("note".to_owned(), note.clone())).collect()
}

/// Steps of a sweep share their data: the first one that writes is the only one that finds it as it
/// was prepared.
fn carried_on(nth: usize) -> Option<Warning> {
    (nth > 0).then(|| Warning {
        code: "carried_on".to_owned(),
        message: "started from what the steps of this run before it had left".to_owned(),
    })
}

/// A run that writes, or comes after one that wrote, must start from the data that the other
/// labels and repeats start from, or say that it did not.
fn data_not_equal(here: &Here, written_by: Option<&[String]>) -> Vec<Warning> {
    let warn = |message: String| vec![Warning { code: "data_not_equal".to_owned(), message }];
    match written_by {
        Some([]) => Vec::new(),
        Some(titles) => warn(format!(
            "the tables were written to before, by {}: other labels and repeats may have \
             started from other data",
            titles.join(", ")
        )),
        None if here.part.writes() => warn(
            "whether the tables were written to before is not known: other labels and repeats \
             may have started from other data"
                .to_owned(),
        ),
        None => Vec::new(),
    }
}
