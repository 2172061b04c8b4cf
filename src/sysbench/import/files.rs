//! Imports files of sysbench outputs into a directory of summaries.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::{FoundRun, Unreadable, candidates, native, runs};
use crate::engine::program;
use crate::error::{Error, Result, VALUE_MAX, clip, ranked};
use crate::plan::value::label;
use crate::progress::say;
use crate::run::{directory, random, warn, write_with_hints};
use crate::summary::{IMPORTED, Imported, Store, TextSource, collect};
use crate::terms::{counted, finding, units};

/// Largest file, bytes: a day's interval lines take less than 16 MiB.
const FILE_MAX: u64 = 64 << 20;

/// Imports all whole runs, or nothing if a file has none or is there already: the command can be repeated.
pub(crate) fn import(files: &[PathBuf], told: Imported, out: &Path) -> Result<()> {
    let told = Imported {
        schema: IMPORTED.to_owned(),
        loadgen: program(),
        import_id: format!("{:016x}", random()?),
        source: TextSource { program: "sysbench".to_owned(), ..TextSource::default() },
        workload: native(&told.workload).unwrap_or(told.workload),
        ..told
    };
    let there = if out.is_dir() { collect(&[out.to_owned()])?.imported } else { Vec::new() };
    let mut known: HashMap<String, String> = HashMap::new();
    for (path, run) in there {
        let place = path.display().to_string();
        known.extend(hash_numbers(&run).map(|sum| (sum, place.clone())));
        known.insert(place_in_file(&run), place);
    }
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    for path in files {
        match import_file(path, &told, &mut known) {
            Ok(runs) => found.extend(runs),
            Err(error) => refused.push(error),
        }
    }
    let (worst, others) = ranked(refused);
    if let Some(worst) = worst {
        for other in &others {
            warn(&write_with_hints(other));
        }
        let alone = (files.len() > 1).then_some("nothing is imported: give the other files alone");
        return Err(worst.add_hints(alone));
    }
    let store = Store::open(out)?;
    let mut written: Vec<PathBuf> = Vec::new();
    for run in &found {
        let path = store.write_imported(run).map_err(|error| {
            // The same command would refuse them.
            for path in &written {
                drop(fs::remove_file(path));
            }
            error.context("nothing is imported")
        })?;
        written.push(path);
    }
    for run in &found {
        say(&one_line(run));
    }
    let (saved, dir) = (counted(found.len() as u64, "run"), directory(out));
    say(&format!("Imported {saved} into {dir}. Next: loadgen report {dir}"));
    Ok(())
}

/// Reads the new runs of a file, at least one; `known` has the files of runs by their places and checksums.
fn import_file(
    path: &Path,
    told: &Imported,
    known: &mut HashMap<String, String>,
) -> Result<Vec<Imported>> {
    let (bytes, told) = read(path, told)?;
    let file = &told.source.file;
    let (mut found, mut broken, mut repeated) = (Vec::new(), Vec::new(), None);
    for (number, run) in (1..).zip(runs(&bytes, &told)) {
        match run {
            Ok(run) => {
                let (line, run) = (run.line, name_run(run, number)?);
                let sums = [Some(place_in_file(&run)), hash_numbers(&run)];
                let sums: Vec<String> = sums.into_iter().flatten().collect();
                if let Some(other) = sums.iter().find_map(|sum| known.get(sum)) {
                    let what = format!("the same run is in {other}, and would count twice");
                    repeated.get_or_insert_with(|| what.clone());
                    broken.push(Unreadable { line, what });
                } else {
                    let place = format!("{file}, run {number}");
                    known.extend(sums.into_iter().map(|sum| (sum, place.clone())));
                    found.push(run);
                }
            }
            Err(what) => broken.push(what),
        }
    }
    if let (true, Some(what)) = (found.is_empty(), repeated) {
        return Err(Error::data(format!("{file}: {what}"))
            .hint("leave this file out, or remove the other one"));
    }
    let at = |Unreadable { line, what }: &Unreadable| format!("{file}: line {line}: {what}");
    if found.is_empty() {
        return Err(Error::data(at(&broken[0]))
            .hint("loadgen import takes what sysbench 0.4 to 1.1 prints of a database test"));
    }
    for of in &broken {
        warn(&format!("left out: {}", at(of)));
    }
    Ok(found)
}

/// Names a run by its file's text: an import that was killed is completed by the same command.
fn place_in_file(run: &Imported) -> String {
    format!("{} {}", run.source.sha256, run.source.run)
}

/// Makes a checksum of a run's numbers; none without intervals. No two runs measure the same to the last digit: equal
/// ones are one that was printed, or copied, twice.
fn hash_numbers(run: &Imported) -> Option<String> {
    // What all versions of loadgen read from a text.
    let Imported { clients, rate, measured_s, latency, timeline, .. } = run;
    let numbers = (clients, rate, measured_s, latency, timeline);
    let json = serde_json::to_vec(&numbers).expect("numbers, and names of fields");
    (!timeline.is_empty()).then(|| format!("{:x}", Sha256::digest(json)))
}

fn read(path: &Path, told: &Imported) -> Result<(Vec<u8>, Imported)> {
    let refused = |what: &str| Error::usage(format!("{}: {what}", path.display()));
    let failed = |error: std::io::Error| refused(&error.to_string());
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(refused("it is a directory").hint("name the files in it"));
    }
    let mut bytes = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(refused(&format!("it is larger than {} MiB", FILE_MAX >> 20)));
    }
    let mut told = told.clone();
    told.source.file = path.display().to_string();
    told.source.sha256 = format!("{:x}", Sha256::digest(&bytes));
    if told.label.is_empty() {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        told.label = label(&stem).unwrap_or_else(|_| clip(&stem, VALUE_MAX));
    }
    if told.started_at.is_empty() {
        let modified = metadata.modified().ok().and_then(|at| Timestamp::try_from(at).ok());
        told.started_at = modified.unwrap_or_else(Timestamp::now).to_string();
    }
    Ok((bytes, told))
}

/// Finds the workload that the file's name names in whole words, where the run may be one of it.
fn workload_in_file_name(run: &Imported, test: Option<&String>) -> Option<&'static str> {
    let file = Path::new(&run.source.file).file_name()?.to_string_lossy().to_lowercase();
    let words = format!("-{}-", file.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
    let is_named = |name: &&&str| words.contains(&format!("-{name}-"));
    let is_other = test.is_some() || words.contains("-bulk-insert-");
    candidates(&run.totals).iter().find(is_named).filter(|_| !is_other).copied()
}

/// Sets a run's number and workload. The user's facts win over the text.
fn name_run(found: FoundRun, number: u32) -> Result<Imported> {
    let FoundRun { line, test, script, alike, mut run } = found;
    run.source.run = number;
    // A custom script may have as many statements of another kind.
    let alike = alike.filter(|_| script.is_none()).map(str::to_owned);
    if run.workload.is_empty() {
        let by_file = workload_in_file_name(&run, script.as_ref());
        let by_file = by_file.filter(|_| test.is_none() && alike.is_none());
        let known = test.clone().or(script).or_else(|| alike.clone());
        let Some(workload) = known.or_else(|| by_file.map(str::to_owned)) else {
            let file = run.source.file;
            let what = format!("{file}: line {line}: the output does not name its workload");
            let names = match candidates(&run.totals) {
                [] => "loadgen workloads lists the names".to_owned(),
                names => format!("it may be {}", names.join(", ")),
            };
            return Err(Error::usage(what).hint(format!("--workload NAME names it: {names}")));
        };
        if by_file.is_some() {
            let file = &run.source.file;
            warn(&format!("{file}: line {line}: taken for {workload}, by the name of the file"));
        }
        run.workload = workload;
    }
    for (how, other) in [("a command line", test), ("the statements", alike)] {
        if let Some(other) = other.filter(|other| *other != run.workload) {
            let what = format!("{}, with {how} of {other}", run.workload);
            run.warnings.push(finding!(Contradiction, what).into());
        }
    }
    Ok(run)
}

fn one_line(run: &Imported) -> String {
    let Imported { label, workload, source: TextSource { file, run: number, .. }, .. } = run;
    let qps = units::rate(run.totals.qps);
    let at = format!("{workload} at {}: QPS {qps}", run.cell().told());
    let warned: String = run.warnings.iter().map(|of| format!("; {}", of.message)).collect();
    format!("{file} run {number} ({}): {label}: {at}{warned}", run.program())
}
