//! The most that a host can generate, as `loadgen calibrate` keeps it.

use serde::{Deserialize, Serialize};

use super::thresholds::CALIBRATION_DAYS;
use super::verdict::taken;
use crate::summary::{Ceiling, Program};
use crate::terms::Finding;

/// The `schema` value of a kept calibration.
pub(crate) const CALIBRATION: &str = "loadgen.calibration/1";

/// The most that a host can generate: the same engine against canned answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Calibration {
    pub schema: String,
    pub loadgen: Program,
    pub host: CalibratedHost,
    /// First instant, RFC 3339 in UTC.
    pub started_at: String,
    pub ended_at: String,
    pub steps: Vec<CalibrationStep>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CalibratedHost {
    /// A number made of its machine id, which itself is nobody's business; null without one.
    pub id: Option<String>,
    pub name: String,
    pub kernel: String,
    pub cpu: String,
    /// Cores that the program may use.
    pub cores: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CalibrationStep {
    pub clients: u32,
    pub engine_threads: u32,
    pub measured_s: f64,
    /// Statements a second that were measured.
    pub qps: f64,
    pub us_per_op: f64,
    pub busy: f64,
    /// The highest whole percentile of the turn delay that ten probes lie beyond, 99 at most.
    pub tail_percentile: Option<u32>,
    pub turn_delay_tail_us: Option<f64>,
    /// CPU time of this host that others used than client and canned server, of 1.
    pub other_load: Option<f64>,
    /// CPU time of this host that the hypervisor gave to others, of 1.
    pub steal: Option<f64>,
    /// Statements a second with all of these threads' time on a core spent: threads, or cores
    /// where these are fewer, by the CPU an op.
    pub ceiling_qps: f64,
}

impl CalibrationStep {
    /// Others that used the cores, so that it is no ceiling of this host; none where it is one.
    pub(crate) fn disturbed(&self) -> Option<Finding> {
        taken(self.other_load, self.steal, "this host").into_iter().next()
    }
}

impl Calibration {
    /// Why it says nothing about what this program does on this host now; None where it does.
    /// `age_days` is None for an instant that is none, or lies ahead.
    pub(crate) fn unfit(
        &self,
        program: &Program,
        host: &CalibratedHost,
        age_days: Option<i64>,
    ) -> Option<String> {
        let hardware = |host: &CalibratedHost| format!("{} × {}", host.cores, host.cpu);
        let (kept, name) = (&self.host, |host: &CalibratedHost| host.name.clone());
        // A clone has the same name and another id.
        let same = kept.id == host.id;
        let facts = [
            ("its schema is", self.schema.clone(), CALIBRATION.to_owned(), true),
            ("it is of host", name(kept), name(host), same),
            ("it is of", hardware(kept), hardware(host), true),
            ("it is of kernel", kept.kernel.clone(), host.kernel.clone(), true),
            ("it is of loadgen", version_in_words(&self.loadgen), version_in_words(program), true),
        ];
        let differing = facts.into_iter().find(|(_, kept, here, same)| kept != here || !same);
        if let Some((what, kept, here, _)) = differing {
            return Some(format!("{what} {kept}, not {here}"));
        }
        match age_days {
            Some(days) if days <= CALIBRATION_DAYS => self.disturbed(),
            Some(days) => Some(format!("it is {days} days old")),
            None => Some(format!("it is of {}, which is no time before now", self.ended_at)),
        }
    }

    fn disturbed(&self) -> Option<String> {
        let why: Option<Vec<Finding>> = self.steps.iter().map(CalibrationStep::disturbed).collect();
        let first = why?.into_iter().next()?;
        Some(format!("the host was not idle in any of its steps ({first})"))
    }

    /// Takes the undisturbed step whose threads, and clients a thread, are nearest.
    pub(crate) fn ceiling(&self, clients: u32, engine_threads: u32) -> Option<Ceiling> {
        let density = |clients: u32, threads: u32| (f64::from(clients) / f64::from(threads)).ln();
        let (threads, cores) = (engine_threads.max(1), self.host.cores.max(1));
        let here = density(clients.max(1), threads);
        let distance = |step: &CalibrationStep| {
            let there = density(step.clients.max(1), step.engine_threads.max(1));
            (step.engine_threads.abs_diff(threads), (there - here).abs())
        };
        let sound = |step: &&CalibrationStep| step.us_per_op > 0.0 && step.disturbed().is_none();
        let sound = self.steps.iter().filter(sound);
        let nearer = |a: &&CalibrationStep, b: &&CalibrationStep| {
            distance(a).partial_cmp(&distance(b)).expect("clients and threads are 1 at least")
        };
        let &CalibrationStep { us_per_op, clients, engine_threads, .. } = sound.min_by(nearer)?;
        let qps = f64::from(threads.min(cores)) * 1e6 / us_per_op;
        let calibrated_at = self.ended_at.clone();
        Some(Ceiling { qps, us_per_op, clients, engine_threads, calibrated_at })
    }
}

fn version_in_words(program: &Program) -> String {
    let revision = program.revision.as_deref().unwrap_or("of no revision");
    format!("{} {revision} ({})", program.version, program.profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::finding;

    fn program(revision: &str) -> Program {
        Program {
            version: "0.1.0".to_owned(),
            revision: Some(revision.to_owned()),
            profile: "release".to_owned(),
        }
    }

    fn host() -> CalibratedHost {
        CalibratedHost {
            id: Some("00ff".to_owned()),
            name: "c1".to_owned(),
            kernel: "6.18".to_owned(),
            cpu: "Xeon".to_owned(),
            cores: 4,
        }
    }

    fn step(clients: u32, engine_threads: u32, us_per_op: f64) -> CalibrationStep {
        CalibrationStep {
            clients,
            engine_threads,
            measured_s: 2.0,
            qps: 0.0,
            us_per_op,
            busy: 1.0,
            tail_percentile: None,
            turn_delay_tail_us: None,
            other_load: Some(0.02),
            steal: Some(0.0),
            ceiling_qps: 0.0,
        }
    }

    fn calibration(steps: Vec<CalibrationStep>) -> Calibration {
        Calibration {
            schema: CALIBRATION.to_owned(),
            loadgen: program("abc"),
            host: host(),
            started_at: String::new(),
            ended_at: "2026-11-21T00:00:00Z".to_owned(),
            steps,
        }
    }

    #[test]
    fn it_holds_for_its_host_its_program_and_a_month() {
        let kept = calibration(Vec::new());
        let unfit = |host: &CalibratedHost, revision, age| {
            kept.unfit(&program(revision), host, age).unwrap_or_default()
        };
        assert_eq!(unfit(&host(), "abc", Some(CALIBRATION_DAYS)), "");
        assert_eq!(unfit(&host(), "abc", Some(CALIBRATION_DAYS + 1)), "it is 31 days old");
        assert!(unfit(&host(), "abc", None).contains(&kept.ended_at));
        let other = unfit(&host(), "def", Some(0));
        assert!(other.contains("abc") && other.contains("def"), "{other}");
        let twin = CalibratedHost { id: Some("01".to_owned()), ..host() };
        assert!(unfit(&twin, "abc", Some(0)).contains("host"), "a clone of the same name");
        for other in [
            CalibratedHost { kernel: "6.19".to_owned(), ..host() },
            CalibratedHost { cpu: "EPYC".to_owned(), ..host() },
            CalibratedHost { cores: 2, ..host() },
        ] {
            assert_ne!(unfit(&other, "abc", Some(0)), "");
        }
        let newer = Calibration { schema: "loadgen.calibration/2".to_owned(), ..kept.clone() };
        assert!(newer.unfit(&program("abc"), &host(), Some(0)).is_some());
    }

    #[test]
    fn the_ceiling_is_threads_by_the_nearest_cpu_of_an_op() {
        let kept = calibration(vec![step(1, 1, 30.0), step(64, 1, 6.0), step(64, 2, 8.0)]);
        let of = |clients, threads| kept.ceiling(clients, threads).expect("there are steps");
        assert!((of(1, 1).us_per_op - 30.0).abs() < 1e-9);
        assert_eq!((of(40, 1).us_per_op, of(40, 1).clients), (6.0, 64));
        assert!((of(256, 2).qps - 250_000.0).abs() < 1e-6);
        assert!((of(256, 16).qps - 500_000.0).abs() < 1e-6, "four cores are no sixteen");
        assert!(calibration(vec![step(1, 1, 0.0)]).ceiling(1, 1).is_none());
        assert!(calibration(Vec::new()).ceiling(0, 0).is_none());
    }

    #[test]
    fn what_was_measured_on_a_busy_host_is_no_ceiling() {
        let busy = |clients| CalibrationStep { other_load: Some(0.36), ..step(clients, 1, 5.0) };
        let stolen = CalibrationStep { steal: Some(0.03), ..step(8, 1, 5.0) };
        let unfit = |steps: &[CalibrationStep]| {
            let kept = calibration(steps.to_vec());
            kept.unfit(&program("abc"), &host(), Some(0)).unwrap_or_default()
        };
        let some = [step(1, 1, 30.0), busy(8), stolen.clone(), busy(64)];
        assert_eq!(unfit(&some), "");
        let ceiling = calibration(some.to_vec()).ceiling(64, 1).expect("one is sound");
        assert_eq!((ceiling.clients, ceiling.us_per_op), (1, 30.0));
        let first = busy(8).disturbed().expect("a busy host");
        assert_eq!(first, finding!(OtherLoad, 0.36, "this host"));
        assert!(unfit(&[busy(8), stolen.clone()]).contains(&first.to_string()));
        assert_eq!(stolen.disturbed(), Some(finding!(Steal, 0.03, "this host")));
        assert!(calibration(vec![busy(8), stolen]).ceiling(8, 1).is_none());
    }
}
