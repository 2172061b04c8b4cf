//! The server of a label while its legs are measured: taken, its tables prepared, given back.

use std::collections::HashMap;
use std::path::PathBuf;

use tempfile::TempDir;

use super::existing;
use super::kept_data::KeptData;
use super::measure::HEADROOM;
use super::{runtime, start};
use crate::error::{Error, Result};
use crate::load;
use crate::mysql::connect;
use crate::mysql::options::ConnectOptions;
use crate::plan::experiment::{Dataset, Existing, Experiment, Private, Source, Subject, What};
use crate::plan::profile::Data;
use crate::plan::timed::{LoadSource, LoadSpec};
use crate::progress::Progress;
use crate::sandbox::{self, DataDir, Sandbox, Spec};
use crate::stop::Stop;
use crate::stop::or_stop;

/// Where servers come from.
pub(super) struct Servers<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) stop: &'a Stop,
    /// Prepared data that goes away with loadgen, by the subject.
    passing: HashMap<usize, TempDir>,
    /// The servers that are there, by the subject.
    targets: HashMap<usize, ConnectOptions>,
}

/// A server that was taken.
pub(super) struct Taken {
    pub(super) subject: usize,
    pub(super) target: ConnectOptions,
    sandbox: Option<Sandbox>,
    /// The commands of a server that they started.
    commands: Option<Existing>,
    /// Data that stays.
    kept: Option<KeptData>,
    /// Whether its tables are as they were prepared; None where nobody knows.
    pristine: Option<bool>,
    /// Tables that were looked at since it was taken.
    prepared: Vec<Dataset>,
}

impl<'a> Servers<'a> {
    /// Finds the servers that are there, and the programs of the others: what is missing is told, and
    /// a password asked for, before the first step and not in the middle of the night.
    ///
    /// # Errors
    ///
    /// Those of resolving a target; usage: a program or a dump that is not there.
    pub(super) fn new(
        experiment: &'a Experiment,
        stop: &'a Stop,
        progress: &mut Progress,
    ) -> Result<Self> {
        let mut targets = HashMap::new();
        for (at, part) in experiment.parts.iter().enumerate() {
            let wanted = experiment.cells.iter().any(|cell| cell.part == at);
            if let (What::Load(LoadSpec { source: LoadSource::Dump { path }, .. }), true) =
                (&part.what, wanted)
            {
                let file = std::fs::File::open(path);
                file.map_err(|e| Error::usage(format!("load {}: {e}", path.display())))?;
            }
        }
        for (at, subject) in experiment.subjects.iter().enumerate() {
            let wanted = experiment.cells.iter().any(|cell| cell.subject == at);
            if let (Source::Sandbox(private), true) = (&subject.source, wanted) {
                let found = sandbox::find_program(private.program.as_deref());
                found.map_err(|e| e.context(format!("server {}", subject.label)))?;
            }
            if let (Source::Existing(existing), true) = (&subject.source, wanted) {
                let target = existing::target(existing, progress);
                let target = target.map_err(|e| e.context(format!("server {}", subject.label)))?;
                targets.insert(at, target);
            }
        }
        Ok(Servers { experiment, stop, passing: HashMap::new(), targets })
    }

    /// Takes the server of a subject anew.
    ///
    /// # Errors
    ///
    /// It does not start or answer, or its data directory is not for it.
    pub(super) fn take(
        &mut self,
        at: usize,
        tables: Option<&Dataset>,
        progress: &mut Progress,
    ) -> Result<Taken> {
        let experiment = self.experiment;
        let subject = &experiment.subjects[at];
        match &subject.source {
            Source::Existing(existing) => self.take_existing(at, existing, progress),
            Source::Sandbox(private) => self.take_private(at, subject, private, tables, progress),
        }
    }

    fn take_existing(
        &mut self,
        subject: usize,
        existing: &Existing,
        progress: &mut Progress,
    ) -> Result<Taken> {
        let target = &self.targets[&subject];
        existing::renew(existing, target, self.stop, progress)?;
        let target = runtime()?.block_on(or_stop(self.stop, connect::settle_tls(target)))?;
        let pristine = (!existing.reset.is_empty()).then_some(true);
        let stops = !existing.start.is_empty() && !existing.stop.is_empty();
        let commands = stops.then(|| existing.clone());
        Ok(Taken {
            subject,
            target,
            sandbox: None,
            commands,
            kept: None,
            pristine,
            prepared: Vec::new(),
        })
    }

    fn take_private(
        &mut self,
        at: usize,
        subject: &Subject,
        private: &Private,
        tables: Option<&Dataset>,
        progress: &mut Progress,
    ) -> Result<Taken> {
        let spec = self.spec(at, private);
        progress.note(&format!("label {}", subject.label));
        match &private.data {
            Data::ThrowAway => {
                let sandbox = start(&spec, self.stop, progress)?;
                Ok(sandboxed(at, sandbox, None, Some(true)))
            }
            Data::Keep(dir) => {
                let kept = KeptData::open(dir)?;
                let (sandbox, kept) = self.start_in(spec, kept, progress)?;
                let pristine = kept.written_by().is_empty();
                Ok(sandboxed(at, sandbox, Some(kept), Some(pristine)))
            }
            Data::Copied | Data::CopyOf(_) => {
                let dir = match &private.data {
                    Data::CopyOf(dir) => dir.clone(),
                    _ => self.passing_dir(at)?,
                };
                let passing = matches!(private.data, Data::Copied);
                let kept =
                    self.prepared(&spec, KeptData::open(&dir)?, tables, passing, progress)?;
                let version = kept.version().map(str::to_owned);
                let spec = match version {
                    Some(_) => Spec { data: DataDir::CopyOf(kept.data()), version, ..spec },
                    // No tables are wanted, and none were prepared.
                    None => spec,
                };
                let sandbox = start(&spec, self.stop, progress)?;
                Ok(sandboxed(at, sandbox, None, Some(true)))
            }
        }
    }

    /// Beside the other things of this machine that pass.
    fn passing_dir(&mut self, subject: usize) -> Result<PathBuf> {
        // Only the label at hand needs one.
        self.passing.retain(|owner, _| *owner == subject);
        if let Some(dir) = self.passing.get(&subject) {
            return Ok(dir.path().to_owned());
        }
        let dir = tempfile::Builder::new().prefix("loadgen-data-").tempdir();
        let dir = dir.map_err(|e| Error::failed(format!("no directory for data: {e}")))?;
        let path = dir.path().to_owned();
        self.passing.insert(subject, dir);
        Ok(path)
    }

    /// Makes sure that these tables are in data that nobody measures in, and that may be `passing`.
    fn prepared(
        &self,
        spec: &Spec,
        kept: KeptData,
        tables: Option<&Dataset>,
        passing: bool,
        progress: &mut Progress,
    ) -> Result<KeptData> {
        let Some(tables) = tables.filter(|tables| !kept.holds(&describe(tables))) else {
            return Ok(kept);
        };
        let (sandbox, mut kept) = self.start_in(spec.clone(), kept, progress)?;
        let target = ConnectOptions::private(sandbox.socket());
        let job = load::Job { passing, ..job(tables) };
        let prepared = fill(&target, &job, self.stop, progress);
        // Ended well in any case: what was filled so far is not lost.
        let stopped = sandbox.stop();
        prepared?;
        stopped?;
        kept.add(&describe(tables))?;
        Ok(kept)
    }

    fn start_in(
        &self,
        spec: Spec,
        mut kept: KeptData,
        progress: &mut Progress,
    ) -> Result<(Sandbox, KeptData)> {
        let version = kept.version().map(str::to_owned);
        let data = if version.is_some() {
            DataDir::Filled(kept.data())
        } else {
            kept.clear()?;
            DataDir::New(kept.data())
        };
        let sandbox = start(&Spec { data, version, ..spec }, self.stop, progress)?;
        kept.used_by(sandbox.program_version())?;
        Ok((sandbox, kept))
    }

    fn spec(&self, subject: usize, private: &Private) -> Spec {
        let (clients, statements) = self.experiment.most(subject);
        Spec {
            program: private.program.clone(),
            options: private.options.clone(),
            max_connections: clients.saturating_add(HEADROOM),
            max_prepared_stmts: u32::try_from(statements).unwrap_or(u32::MAX),
            ..Spec::default()
        }
    }
}

fn sandboxed(
    subject: usize,
    sandbox: Sandbox,
    kept: Option<KeptData>,
    pristine: Option<bool>,
) -> Taken {
    let target = ConnectOptions::private(sandbox.socket());
    Taken {
        subject,
        target,
        sandbox: Some(sandbox),
        commands: None,
        kept,
        pristine,
        prepared: Vec::new(),
    }
}

impl Taken {
    /// The process of a sandbox's server.
    pub(super) fn pid(&self) -> Option<u32> {
        self.sandbox.as_ref().map(Sandbox::pid)
    }

    /// Whether nothing wrote to its tables since they were made or brought back.
    pub(super) fn is_pristine(&self) -> bool {
        self.pristine == Some(true)
    }

    /// Prepares the tables of a leg. Returns what wrote to them before; None where that is not
    /// known.
    ///
    /// # Errors
    ///
    /// Those of [`load::prepare`].
    pub(super) fn prepare(
        &mut self,
        tables: &Dataset,
        written_by: &[String],
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<Option<Vec<String>>> {
        let before = self.written_by(written_by);
        if tables.tables == 0 {
            return Ok(before);
        }
        let written = !written_by.is_empty() || self.pristine != Some(true);
        let force = tables.refill && written;
        let filled = if self.prepared.contains(tables) && !force {
            0
        } else {
            let passing = self.sandbox.is_some() && self.kept.is_none();
            let job = load::Job { force, passing, ..job(tables) };
            fill(&self.target, &job, stop, progress)?
        };
        self.prepared.push(tables.clone());
        if let Some(kept) = &mut self.kept {
            kept.add(&describe(tables))?;
        }
        if filled == tables.tables {
            self.pristine = Some(true);
            if let Some(kept) = &mut self.kept {
                kept.renewed()?;
            }
            return Ok(Some(Vec::new()));
        }
        Ok(before)
    }

    /// What wrote to its data before, these parts of this invocation among them; None where that is
    /// not known.
    pub(super) fn written_by(&self, here: &[String]) -> Option<Vec<String>> {
        let kept = self.kept.as_ref().map_or(&[][..], KeptData::written_by);
        match (self.pristine, here.is_empty()) {
            (None, true) => None,
            (Some(false), true) => Some(kept.to_vec()),
            _ => Some(here.to_vec()),
        }
    }

    /// A part is about to write.
    pub(super) fn writes(&mut self, title: &str) -> Result<()> {
        self.pristine = Some(false);
        self.kept.as_mut().map_or(Ok(()), |kept| kept.writes(title))
    }

    /// Gives it back: a sandbox ends, a server that `start` started is stopped, so that it does
    /// not disturb the next one, and what stays stays.
    ///
    /// # Errors
    ///
    /// A directory that cannot be removed, a `stop` that fails.
    pub(super) fn give_back(self, progress: &mut Progress) -> Result<()> {
        if let Some(existing) = &self.commands {
            // Also after a signal: whoever does not want to wait sends another.
            existing::end(existing, &self.target, &Stop::default(), progress)?;
        }
        self.sandbox.map_or(Ok(()), Sandbox::stop)
    }
}

/// Fills what is missing; how many tables that were.
fn fill(
    target: &ConnectOptions,
    job: &load::Job,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<u32> {
    let opts = target.opts()?;
    let prepared = runtime()?.block_on(load::prepare(target, &opts, job, stop, progress))?;
    Ok(prepared.filled)
}

/// What makes these tables.
fn job(tables: &Dataset) -> load::Job {
    load::Job {
        schema: tables.schema,
        tables: tables.tables,
        rows: tables.rows,
        data_seed: tables.data_seed,
        jobs: tables.jobs,
        charset: tables.charset.clone(),
        ..load::Job::default()
    }
}

fn describe(tables: &Dataset) -> String {
    let charset = tables.charset.as_deref().unwrap_or("-");
    format!(
        "{} {} x {} rows, seed {}, {charset}",
        tables.schema, tables.tables, tables.rows, tables.data_seed
    )
}
