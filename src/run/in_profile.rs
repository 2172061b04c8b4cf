//! What a profile adds to a job: what must hold, what runs beside, and what its summaries say
//! of their place in the experiment.

use std::collections::BTreeMap;
use std::time::Instant;

use tokio::sync::watch;

use super::beside::{self, Running};
use super::expect;
use crate::error::{Error, Result, line, told_apart};
use crate::judge::fingerprint_differences;
use crate::mysql::dataset::Dataset;
use crate::plan::Step;
use crate::plan::experiment::Beside;
use crate::plan::profile::Expect;
use crate::summary::{CommandRun, Experiment, Server, Store, Summary};
use crate::terms::{Finding, finding};
use crate::workload::random::{mix, name_part};

/// Differences that an error names.
const NAMED_MAX: usize = 6;

/// What one summary says of its place.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) experiment: Experiment,
    /// What a reader of it must know.
    pub(super) warnings: Vec<Finding>,
}

/// A job's place in a profile.
pub(crate) struct InProfile<'a> {
    /// What the summaries say, by the steps' numbers.
    pub(super) entries: BTreeMap<u32, Entry>,
    /// What must hold before the first step.
    pub(super) expect: &'a [Expect],
    /// What runs beside the windows.
    pub(super) commands: &'a [Beside],
    /// For their placeholders.
    pub(super) label: &'a str,
    /// Likewise.
    pub(super) title: &'a str,
    /// Likewise: the server's process, where it is known.
    pub(super) pid: Option<u32>,
    /// Whether the sizes are the profile's: scaled down far, pools end at what servers take.
    pub(super) full_size: bool,
    /// For the names of the commands' files.
    pub(super) run_id: String,
    /// What the label's earlier steps were measured on.
    pub(super) earlier: Option<Server>,
}

/// Refuses a server that is not the one of the label's earlier steps: no cell takes both.
///
/// # Errors
///
/// Data: the differences.
fn check_same(label: &str, earlier: Option<&Server>, server: &Server) -> Result<()> {
    let differences = earlier.map(|earlier| fingerprint_differences(earlier, server));
    let differences = differences.unwrap_or_default();
    if differences.is_empty() {
        return Ok(());
    }
    let mut named: Vec<String> = differences
        .iter()
        .take(NAMED_MAX)
        .map(|d| {
            let (was, is) = told_apart(&d.first, &d.second);
            format!("{} was {was} and is {is}", line(&d.name))
        })
        .collect();
    let more = differences.len() - named.len();
    if more > 0 {
        named.push(format!("{more} more differ"));
    }
    Err(Error::data(format!(
        "the server is not the one that '{}' was measured on before: {}",
        line(label),
        named.join("; ")
    ))
    .hint("another --out for the new server, or start the old one again"))
}

/// Of a command's instant and arguments, before the placeholders are filled, no more than tells them
/// from others: arguments may be nobody else's business.
fn asked(command: &Beside) -> String {
    let whole = mix(name_part(&format!("{:?} {:?}", command.at, command.run)));
    format!("{:04x}", whole >> 48)
}

impl InProfile<'_> {
    /// Refuses a server that is not as the profile expects it. Where the sizes are not the profile's,
    /// data of another size beside the buffer pool is no more than a warning.
    pub(super) fn check(&mut self, server: &Server, dataset: Option<&Dataset>) -> Result<()> {
        let bytes = dataset.map(|dataset| {
            let rows = u64::from(dataset.tables).saturating_mul(dataset.rows);
            expect::data_bytes(dataset.data_bytes, rows)
        });
        let mut words = self.commands.iter().flat_map(|command| &command.run);
        if self.pid.is_none() && words.any(|word| word.contains("{pid}")) {
            return Err(Error::usage(
                "a command of the profile asks for {pid}, and the server's process is not known",
            )
            .hint("it is known of sandboxes"));
        }
        check_same(self.label, self.earlier.as_ref(), server)?;
        expect::check(self.expect, &server.variables, bytes.filter(|_| self.full_size))?;
        let differs = bytes.and_then(|b| expect::database(self.expect, &server.variables, b));
        if let Some(what) = differs {
            for entry in self.entries.values_mut() {
                entry.warnings.push(finding!(ScaledClass, what.clone()));
            }
        }
        Ok(())
    }

    /// Starts what runs beside a step; its clock starts with the window.
    pub(super) fn beside(
        &self,
        store: &Store,
        step: &Step,
        window: &watch::Receiver<Option<Instant>>,
    ) -> Running {
        let here = self.commands.iter().filter(|command| {
            command.clients.as_ref().is_none_or(|clients| clients.contains(&step.clients))
        });
        let filled = (1..).zip(here).map(|(n, command)| beside::Command {
            at: command.at,
            words: command.run.iter().map(|word| self.fill(word, step)).collect(),
            asked: asked(command),
            output: format!("{}-{}_command{n}.txt", self.run_id, step.number),
        });
        beside::start(filled.collect(), store.dir(), window)
    }

    fn fill(&self, word: &str, step: &Step) -> String {
        let pid = self.pid.map_or_else(String::new, |pid| pid.to_string());
        word.replace("{pid}", &pid)
            .replace("{label}", self.label)
            .replace("{workload}", self.title)
            .replace("{clients}", &step.clients.to_string())
    }

    /// Writes the step's part in the experiment into its summary.
    pub(super) fn sign(&self, summary: &mut Summary, step: &Step, ran: Vec<CommandRun>) {
        if !ran.is_empty() {
            let names: Vec<String> = ran.iter().map(told).collect();
            summary.warn([finding!(Perturbed, names.join(", "))]);
        }
        let Entry { experiment, warnings } = self.entries[&step.number].clone();
        summary.warn(warnings);
        summary.experiment = Some(Experiment { commands: ran, ..experiment });
    }
}

/// A command that ran beside a step, and how it failed if it did.
fn told(command: &CommandRun) -> String {
    let program = line(&command.program);
    match command.exit {
        Some(0) => program,
        Some(status) => format!("{program} (exit status {status})"),
        None => format!("{program} (not started, or ended by a signal)"),
    }
}
