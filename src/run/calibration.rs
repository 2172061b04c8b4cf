//! Measures the most that this host can generate, against the canned server in another process; keeps it for
//! later runs.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::servers::HEADROOM;
use super::steps::{Job, Steps};
use super::{Invocation, print_data, random, replace, runtime, warn_of_debug_build};
use crate::engine;
use crate::error::{Error, Result};
use crate::judge::{CALIBRATION, CalibratedHost, Calibration, CalibrationStep};
use crate::mysql::{ConnectOptions, reach};
use crate::observe::{host, raise_descriptor_limit};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::report::{self, Format};
use crate::stop::{Group, Stop, unless_stopped};
use crate::summary::{Store, Summary};
use crate::workload::{mix, name_part};

const VARIABLE: &str = "LOADGEN_CALIBRATION";
const FILE: &str = "loadgen/calibration.json";
/// Upper limit on the bytes that are read: the file may be a device.
const BYTES_MAX: u64 = 1 << 20;

pub(crate) fn run(
    plan: &Plan,
    threads: Option<&[u32]>,
    kept: Option<&Path>,
    format: Format,
    mut progress: Progress,
    stop: &Stop,
) -> Result<()> {
    warn_of_debug_build(&mut progress);
    // Before the measurement: it must not end at a directory that cannot be written.
    let path = prepare(kept)?;
    raise_descriptor_limit()?;
    let (_server, port) = start_canned(plan.clients_max())?;
    let started_at = jiff::Timestamp::now();
    let mut measured: Vec<CalibrationStep> = Vec::new();
    for threads in threads.unwrap_or(&[1, count_usable_cores()]) {
        // Fewer clients than threads were measured with fewer threads already.
        let is_measured = |clients: &u32| {
            let step = (*clients, *threads.min(clients));
            measured.iter().any(|one| (one.clients, one.engine_threads) == step)
        };
        let mut clients = plan.clients.clone();
        clients.retain(|clients| !is_measured(clients));
        if clients.is_empty() {
            continue;
        }
        let (seed, engine_threads) = (random()? >> 11, Some(*threads));
        let plan = Plan { clients, seed, engine_threads, ..plan.clone() };
        let summaries = runtime()?.block_on(measure(&plan, port, stop, &mut progress))?;
        measured.extend(summaries.iter().map(describe_step));
    }
    if measured.iter().any(|step| step.qps <= 0.0) {
        return Err(Error::failed("the canned server has answered nothing"));
    }
    progress.clear();
    let total = measured.len();
    let noisy = measured.iter().filter(|step| step.disturbed().is_some()).count();
    if noisy > 0 {
        progress.warn(&format!(
            "this host was busy in {noisy} of {total} steps, which later runs will not use: \
             calibrate again when it is idle"
        ));
    }
    let calibration = Calibration {
        schema: CALIBRATION.to_owned(),
        loadgen: engine::program(),
        host: this_host(Path::new(host::ROOT)),
        started_at: started_at.to_string(),
        ended_at: jiff::Timestamp::now().to_string(),
        steps: measured,
    };
    print_data(&report::calibration(&calibration, format))?;
    let is_fit = |kept: Calibration| unfit(&kept).is_none();
    if noisy == total && read(&path).ok().flatten().is_some_and(is_fit) {
        progress.warn(&format!("the earlier calibration in {} stays", path.display()));
        return Ok(());
    }
    keep(&path, &calibration)?;
    progress.note(&format!("kept in {}", path.display()));
    Ok(())
}

async fn measure(
    plan: &Plan,
    port: u16,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Vec<Summary>> {
    let dir = tempfile::tempdir().map_err(|e| Error::failed(format!("no directory: {e}")))?;
    let link = reach(&ConnectOptions::canned(port), stop).await?;
    let store = Store::open(dir.path())?;
    let (mut steps, mut planned) =
        (Steps::new(Job::Sweep(plan), &store, progress)?, plan.steps().into_iter());
    steps.run(&link, |_| Ok(planned.next())).await?;
    Ok(steps.summaries)
}

fn describe_step(step: &Summary) -> CalibrationStep {
    let (client, engine_threads) = (&step.client, step.plan.engine_threads);
    let share = client.share.as_ref().expect("each sweep has one");
    let at_most = f64::from(engine_threads.min(count_usable_cores())) * 1e6;
    CalibrationStep {
        clients: step.plan.clients,
        engine_threads,
        measured_s: step.measured_s,
        qps: step.totals.qps,
        us_per_op: client.us_per_op.unwrap_or(0.0),
        busy: client.threads.iter().map(|thread| thread.busy).fold(0.0, f64::max),
        tail_percentile: share.turns.tail_percentile,
        turn_delay_tail_us: share.turns.turn_delay_tail_us,
        other_load: share.other_load,
        steal: share.steal,
        ceiling_qps: client.us_per_op.map_or(0.0, |us| at_most / us),
    }
}

fn count_usable_cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// Ends with its standard input: when the group is dropped, or this process is gone.
fn start_canned(clients: u32) -> Result<(Group, u16)> {
    let failed = |what: &dyn std::fmt::Display| Error::failed(format!("the canned server: {what}"));
    let program = std::env::current_exe().map_err(|e| failed(&e))?;
    let connections = clients.saturating_add(HEADROOM).to_string();
    let mut command = Command::new(program);
    command.args(["canned", "--until-eof", "--tables", "1", "--connections", &connections]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut group = Group::spawn(&mut command).map_err(|e| failed(&e))?;
    let (said, mut line) = (group.stdout.take().expect("it is a pipe"), String::new());
    BufReader::new(said).read_line(&mut line).map_err(|e| failed(&e))?;
    let port = line.trim().parse().map_err(|_| failed(&"it did not start"))?;
    Ok((group, port))
}

/// Chooses the file: by the flag, the variable, or the XDG base directories.
fn find_path(flag: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let variable_path =
        |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The specification says: ignore relative paths.
    let absolute = |path: &PathBuf| path.is_absolute();
    flag.map(Path::to_owned)
        .or_else(|| variable_path(VARIABLE))
        .or_else(|| Some(variable_path("XDG_STATE_HOME").filter(absolute)?.join(FILE)))
        .or_else(|| Some(variable_path("HOME").filter(absolute)?.join(".local/state").join(FILE)))
}

/// Warns of one that does not fit or cannot be read; of a missing one, and with other hosts, only if a flag names it.
pub(super) fn find(invocation: &mut Invocation<'_>) -> Result<Option<Calibration>> {
    let Invocation { progress, stop, calibration: flag, hosts, .. } = invocation;
    let flag = flag.as_deref();
    if hosts.is_some() && flag.is_none() {
        return Ok(None);
    }
    let Some(path) = find_path(flag, |name| std::env::var_os(name)) else { return Ok(None) };
    let kept = path.clone();
    let unused = match unless_stopped(stop, move || Ok(read(&kept)))? {
        _ if hosts.is_some() => "it is of one host".to_owned(),
        Ok(None) if flag.is_none() => return Ok(None),
        Ok(None) => "there is none".to_owned(),
        Err(why) => why,
        Ok(Some(calibration)) => match unfit(&calibration) {
            None => return Ok(Some(calibration)),
            Some(why) => why,
        },
    };
    progress.warn(&format!(
        "the calibration {} is not used: {unused}; loadgen calibrate makes a new one",
        path.display()
    ));
    Ok(None)
}

/// Returns why a calibration does not fit this program and host, if it does not.
fn unfit(kept: &Calibration) -> Option<String> {
    let age = kept.ended_at.parse().ok().and_then(age_days);
    kept.unfit(&engine::program(), &this_host(Path::new(host::ROOT)), age)
}

fn age_days(at: jiff::Timestamp) -> Option<i64> {
    let seconds = jiff::Timestamp::now().as_second() - at.as_second();
    // Clocks may be corrected by minutes.
    (seconds >= -3600).then_some(seconds / 86_400)
}

fn read(path: &Path) -> std::result::Result<Option<Calibration>, String> {
    let mut text = String::new();
    match File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text)) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|e| e.to_string())?,
    };
    serde_json::from_str(&text).map(Some).map_err(|e| format!("it is none ({e})"))
}

fn prepare(flag: Option<&Path>) -> Result<PathBuf> {
    let path = find_path(flag, |name| std::env::var_os(name)).ok_or_else(|| {
        Error::usage("there is no place to keep the calibration: HOME is not set")
            .hint("--calibration FILE, or LOADGEN_CALIBRATION")
    })?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let trial = || -> std::io::Result<()> {
        fs::create_dir_all(dir)?;
        drop(tempfile::tempfile_in(dir)?);
        if path.metadata().is_ok_and(|there| !there.is_file()) {
            // It would be replaced.
            return Err(std::io::Error::other("it is no regular file"));
        }
        Ok(())
    };
    trial().map_err(|e| keep_error(&path, &e))?;
    Ok(path)
}

fn keep(path: &Path, calibration: &Calibration) -> Result<()> {
    let json = serde_json::to_string_pretty(calibration).expect("plain fields have JSON");
    replace(path, &(json + "\n")).map_err(|e| keep_error(path, &e))
}

fn keep_error(path: &Path, error: &std::io::Error) -> Error {
    Error::failed(format!("cannot keep the calibration in {}: {error}", path.display()))
        .hint("--calibration FILE, or LOADGEN_CALIBRATION, keeps it elsewhere")
}

fn this_host(root: &Path) -> CalibratedHost {
    let host = host::facts(root);
    let id = fs::read_to_string(root.join("etc/machine-id")).unwrap_or_default();
    let id = id.trim();
    CalibratedHost {
        // machine-id(5) asks for a hash.
        id: (!id.is_empty()).then(|| format!("{:016x}", mix(name_part(id)))),
        name: host.name,
        cores: host.cores_usable,
        kernel: host.facts.kernel,
        cpu: host.facts.cpu,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_goes_before_the_variable_and_that_before_the_usual_place() {
        let path_for = |flag: Option<&str>, set: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            let path = find_path(flag.map(Path::new), variable);
            path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let home = ("HOME", "/h");
        let (state, own) = (("XDG_STATE_HOME", "/s"), ("LOADGEN_CALIBRATION", "own.json"));
        assert_eq!(path_for(Some("f.json"), &[home, state, own]), "f.json");
        assert_eq!(path_for(None, &[home, state, own]), "own.json");
        assert_eq!(path_for(None, &[home, state]), "/s/loadgen/calibration.json");
        assert_eq!(path_for(None, &[home]), "/h/.local/state/loadgen/calibration.json");
        assert_eq!(path_for(None, &[home, ("XDG_STATE_HOME", "s")]), path_for(None, &[home]));
        assert_eq!(path_for(None, &[home, ("LOADGEN_CALIBRATION", "")]), path_for(None, &[home]));
        assert_eq!(path_for(None, &[]), "");
    }

    #[test]
    fn what_is_kept_is_found_again_and_damage_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a.json");
        assert_eq!(read(&path), Ok(None));
        let calibration = Calibration {
            schema: crate::judge::CALIBRATION.to_owned(),
            loadgen: engine::program(),
            host: this_host(dir.path()),
            started_at: String::new(),
            ended_at: jiff::Timestamp::now().to_string(),
            steps: Vec::new(),
        };
        keep(&path, &calibration).expect("kept");
        keep(&path, &calibration).expect("kept once more");
        assert_eq!(read(&path), Ok(Some(calibration)));
        fs::write(&path, "{}").expect("written");
        assert!(read(&path).is_err_and(|why| why.starts_with("it is none")));
        assert!(read(dir.path()).is_err(), "a directory");
        assert!(read(Path::new("/dev/zero")).is_err(), "without an end");
    }

    #[test]
    fn place_that_keeps_no_calibration_is_refused_before_the_measurement() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(prepare(Some(&dir.path().join("a/b.json"))).is_ok());
        for path in [dir.path(), Path::new("/proc/b.json"), Path::new("/dev/null")] {
            assert!(prepare(Some(path)).is_err(), "{}", path.display());
        }
    }

    #[test]
    fn the_machine_id_is_not_told() {
        let root = tempfile::tempdir().expect("a directory");
        assert_eq!(this_host(root.path()).id, None);
        fs::create_dir(root.path().join("etc")).expect("a directory");
        let id = "4e4e7ebc6a1d4b0c9d0b5f6a7c8d9e0f";
        fs::write(root.path().join("etc/machine-id"), format!("{id}\n")).expect("a file");
        let shown = this_host(root.path()).id.expect("there is one");
        assert!(shown.len() == 16 && !id.contains(&shown), "{shown}");
    }
}
