//! Timed loads.

use std::fmt::Write as _;

use super::load_once::measure;
use super::timed::{Scene, Turn};
use super::{
    Invocation, conclude, keep, lines, print_data, runtime, sweep, tables, warn_of_debug_build,
};
use crate::error::{self, Result};
use crate::load::{Numbers, marked, named};
use crate::mysql::target::Target;
use crate::plan::timed::{InsertMode, LoadSource, LoadSpec};
use crate::plan::units;
use crate::progress::Progress;
use crate::report;
use crate::sandbox::{Sandbox, Spec};
use crate::stop::Stop;
use crate::summary::{Outcome, Store, Summary};
use crate::workload::Schema;

/// Connections of the sandbox: a load has two, and readings some more.
const CONNECTIONS: u32 = 20;

/// Loads of one kind, one after the other.
pub(crate) struct Loads {
    pub(crate) spec: LoadSpec,
    pub(crate) label: Option<String>,
    pub(crate) notes: Vec<(String, String)>,
    pub(crate) repeats: u32,
    pub(crate) force: bool,
    pub(crate) yes: bool,
    pub(crate) summaries: Vec<Summary>,
}

impl Loads {
    pub(crate) fn run(mut self, mut invocation: Invocation<'_>) -> Result<()> {
        warn_of_debug_build(&mut invocation.progress);
        let prefix = sweep::probe_prefix(invocation.probe.as_deref())?;
        let store = Store::open(&invocation.out)?;
        let spec = Spec { max_connections: CONNECTIONS, ..Spec::default() };
        let (sandbox, target) = invocation.server(spec)?;
        let Invocation { mut progress, stop, .. } = invocation;
        let private = sandbox.is_some();
        let all = self.all(&target, private, prefix, &store, stop, &mut progress);
        let outcome = runtime()?.block_on(all);
        let stopped = sandbox.map_or(Ok(()), Sandbox::stop);
        progress.clear();
        let shown = self.print_table();
        conclude([outcome, shown, stopped], &mut progress)
    }

    pub(crate) fn list(&self, invocation: &Invocation<'_>) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<14} {}", error::line(&value));
        };
        line("workload", self.spec.name());
        match &self.spec.source {
            LoadSource::Generated { rows, data_seed } => {
                line("tables", self.spec.tables.to_string());
                line("rows", units::count(*rows));
                line("data seed", data_seed.to_string());
                line("mode", self.spec.insert.to_string());
                if let InsertMode::Extended { bytes } = self.spec.insert {
                    line("insert bytes", units::count(bytes));
                }
            }
            LoadSource::Dump { path } => line("dump", path.display().to_string()),
        }
        line("label", self.label.clone().unwrap_or_else(|| "the server's version".to_owned()));
        let handshake = || "utf8mb4 (utf8 before 5.5.3)".to_owned();
        line("charset", self.spec.charset.clone().unwrap_or_else(handshake));
        for (key, value) in &self.notes {
            line("note", format!("{key}={value}"));
        }
        line("repeats", self.repeats.to_string());
        line("out", invocation.out.display().to_string());
        text
    }

    async fn all(
        &mut self,
        target: &Target,
        private: bool,
        prefix: Vec<String>,
        store: &Store,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<()> {
        let (label, notes) = (self.label.as_deref(), self.notes.iter().cloned());
        let scene = Scene::look(target, label, notes.collect(), prefix, stop).await?;
        let server = &scene.identity.server;
        progress.note(&format!(
            "{} {} at {}: {}",
            server.version,
            server.version_comment,
            scene.target.address,
            self.spec.name()
        ));
        if self.force && !self.yes && !private && tables::on_terminal() {
            let prepared = marked(&scene.target, &scene.opts, false, stop).await?;
            tables::agree_to_drop(&self.names_of(&prepared), &scene.target, stop)?;
        }
        let repeats = self.repeats;
        for repeat in 1..=repeats {
            stop.check()?;
            let turn = Turn { number: repeat, repeat, repeats, title: None };
            let measured = measure(&scene, &self.spec, self.force, &turn, progress).await?;
            let kept = self.keep(measured.summary, store, progress);
            conclude([measured.error.map_or(Ok(()), Err), kept], progress)?;
        }
        Ok(())
    }

    /// Those of prepare's tables that it will drop; a dump is not read for that.
    fn names_of(&self, prepared: &Numbers) -> String {
        match &self.spec.source {
            LoadSource::Dump { .. } if prepared.is_empty() => String::new(),
            LoadSource::Dump { path } => {
                format!("those of {} that {} names", named(prepared), path.display())
            }
            LoadSource::Generated { .. } => {
                let sbtest = prepared.get(&Schema::Sbtest).into_iter().flatten().copied();
                let ours: Vec<u32> = sbtest.filter(|table| *table <= self.spec.tables).collect();
                if ours.is_empty() {
                    String::new()
                } else {
                    named(&[(Schema::Sbtest, ours)].into())
                }
            }
        }
    }

    /// Keeps a summary, and says what it came to.
    fn keep(&mut self, summary: Summary, store: &Store, progress: &mut Progress) -> Result<()> {
        let kept = keep(store, &summary, progress);
        progress.note(&lines::load(&summary));
        self.summaries.push(summary);
        kept
    }

    fn print_table(&self) -> Result<()> {
        let completed: Vec<&Summary> =
            self.summaries.iter().filter(|s| s.outcome == Outcome::Completed).collect();
        if completed.is_empty() {
            return Ok(());
        }
        print_data(&report::render(&completed, &report::Options::default())?)
    }
}
