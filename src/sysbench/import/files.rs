//! Files of sysbench's outputs become imported runs in a directory of summaries.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::{FoundRun, Unreadable, native, runs};
use crate::engine::program;
use crate::error::{Error, Result, VALUE_MAX, clip};
use crate::plan::value::label;
use crate::progress::say;
use crate::run::{directory, random, warn};
use crate::summary::{self, IMPORTED, Imported, Store, TextSource};
use crate::terms::{counted, finding};
use crate::workload::Distribution;

/// Largest file that is read, bytes: a day's interval lines take less than 16 MiB.
const FILE_MAX: u64 = 64 << 20;

/// What is imported, and what the user says of it.
#[derive(Debug, Clone)]
pub(crate) struct ToImport {
    pub files: Vec<PathBuf>,
    pub label: Option<String>,
    /// A workload's name, or sysbench's name of it.
    pub workload: Option<String>,
    pub server_version: Option<String>,
    pub tables: Option<u32>,
    pub rows: Option<u64>,
    pub distribution: Option<Distribution>,
    pub started_at: Option<Timestamp>,
    pub notes: BTreeMap<String, String>,
    pub out: PathBuf,
}

/// A file that was read.
struct TextFile {
    path: PathBuf,
    sha256: String,
    modified: Timestamp,
    runs: Vec<(u32, FoundRun)>,
    broken: Vec<Unreadable>,
}

/// Imports all whole runs of the files: nothing where one of these has none.
pub(crate) fn import(asked: &ToImport) -> Result<()> {
    let files = asked.files.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
    let import_id = format!("{:016x}", random()?);
    let mut found = Vec::new();
    for file in &files {
        for (number, run) in &file.runs {
            found.push(asked.filled(file, *number, run, &import_id)?);
        }
    }
    is_new(&found, &asked.out)?;
    for file in &files {
        let told = |of: &Unreadable| warn(&format!("left out: {}", at(&file.path, of)));
        file.broken.iter().for_each(told);
    }
    let store = Store::open(&asked.out)?;
    for run in &found {
        store.write_imported(run)?;
        say(&told(run));
    }
    let (saved, dir) = (counted(found.len() as u64, "run"), directory(&asked.out));
    say(&format!("Imported {saved} into {dir}. Next: loadgen report {dir}"));
    Ok(())
}

fn read(path: &Path) -> Result<TextFile> {
    let refused = |what: &str| Error::usage(format!("{}: {what}", path.display()));
    let failed = |error: &std::io::Error| refused(&error.to_string());
    let metadata = fs::metadata(path).map_err(|error| failed(&error))?;
    if metadata.is_dir() {
        return Err(refused("it is a directory").hint("name the files in it"));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| failed(&error))?;
    file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(refused(&format!("it is larger than {} MiB", FILE_MAX >> 20)));
    }
    let modified = metadata.modified().ok().and_then(|at| Timestamp::try_from(at).ok());
    let (mut whole, mut broken) = (Vec::new(), Vec::new());
    for (number, found) in (1..).zip(runs(&bytes)) {
        match found {
            Ok(run) => whole.push((number, run)),
            Err(what) => broken.push(what),
        }
    }
    if whole.is_empty() {
        return Err(Error::data(at(path, &broken[0]))
            .hint("loadgen import takes what sysbench 0.4 to 1.1 prints of a database test"));
    }
    Ok(TextFile {
        path: path.to_owned(),
        sha256: format!("{:x}", Sha256::digest(&bytes)),
        modified: modified.unwrap_or_else(Timestamp::now),
        runs: whole,
        broken,
    })
}

fn at(path: &Path, found: &Unreadable) -> String {
    format!("{}: line {}: {}", path.display(), found.line, found.what)
}

/// Refuses what was imported before, or is given twice.
fn is_new(found: &[Imported], out: &Path) -> Result<()> {
    let identity = |run: &Imported| (run.source.sha256.clone(), run.source.run);
    let there =
        if out.is_dir() { summary::collect(&[out.to_owned()])?.imported } else { Vec::new() };
    let there = there.iter().map(|(path, run)| (identity(run), path.display().to_string()));
    let mut known: HashMap<_, String> = there.collect();
    for run in found {
        let file = &run.source.file;
        if let Some(other) = known.insert(identity(run), file.clone()) {
            return Err(Error::data(format!(
                "{file}: the same run is in {other}, and would count twice"
            ))
            .hint("leave one of them out; what is imported already goes with its file"));
        }
    }
    Ok(())
}

impl ToImport {
    /// Fills in what a text does not tell. The user knows better than it.
    fn filled(
        &self,
        file: &TextFile,
        number: u32,
        found: &FoundRun,
        import_id: &str,
    ) -> Result<Imported> {
        let run = found.run.clone();
        let asked = self.workload.as_ref().map(|name| native(name).unwrap_or_else(|| name.clone()));
        let Some(workload) = asked.or(found.test.clone()).or(found.alike.map(str::to_owned)) else {
            let at = format!("{}: line {}", file.path.display(), found.line);
            return Err(Error::usage(format!("{at}: which workload it is of is not told"))
                .hint("--workload NAME says it: loadgen workloads lists the names"));
        };
        let mut warnings = run.warnings.clone();
        let named = found.test.as_deref().map(|test| ("a command line", test));
        let alike = found.alike.map(|alike| ("the statements", alike));
        let other = named.into_iter().chain(alike).find(|(_, other)| *other != workload);
        if let Some((how, other)) = other {
            let what = format!("{workload}, with {how} of {other}");
            warnings.push(finding!(Contradiction, what).into());
        }
        let source = TextSource {
            program: "sysbench".to_owned(),
            file: file.path.display().to_string(),
            sha256: file.sha256.clone(),
            run: number,
            ..run.source
        };
        Ok(Imported {
            schema: IMPORTED.to_owned(),
            loadgen: program(),
            import_id: import_id.to_owned(),
            source,
            label: self.label(&file.path),
            notes: self.notes.clone(),
            workload,
            tables: self.tables.or(run.tables),
            rows: self.rows.or(run.rows),
            distribution: self.distribution.map(|of| of.to_string()).or(run.distribution),
            server_version: self.server_version.clone(),
            started_at: self.started_at.unwrap_or(file.modified).to_string(),
            warnings,
            ..run
        })
    }

    fn label(&self, path: &Path) -> String {
        let stem = || path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let given = self.label.clone().or(self.server_version.clone()).or_else(stem);
        let given = given.unwrap_or_default();
        label(&given).unwrap_or_else(|_| format!("sysbench {}", clip(&given, VALUE_MAX)))
    }
}

/// Says what was imported, on one line.
fn told(run: &Imported) -> String {
    let Imported { label, workload, source, totals, .. } = run;
    let at = format!("{label}: {workload} at {}", run.cell().told());
    let rates = format!("QPS {:.0}, tps {:.0}", totals.qps, totals.tps);
    let warned: String = run.warnings.iter().map(|of| format!("; {}", of.message)).collect();
    format!("{} run {} ({}): {at}: {rates}{warned}", source.file, source.run, run.program())
}
