//! The server of a label while its legs are measured: taken, its tables prepared, given back. Servers
//! that are there and may have commands, private ones, and data directories that outlive them.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::survey::ServerLink;
use super::{replace, runtime, start};
use crate::error::{Error, Result};
use crate::mysql::connect::nobody;
use crate::mysql::control::pairs;

use crate::mysql::options::resolve::{self, Resolved};
use crate::mysql::options::{ConnectOptions, ConnectionArgs, Env, Secret};
use crate::mysql::session::Session;
use crate::plan::experiment::{Dataset, Existing, Experiment, Private, Source, Subject, What};
use crate::plan::profile::{Data, Profile};
use crate::plan::timed::{LoadSource, LoadSpec};
use crate::plan::{limits, units};
use crate::progress::Progress;
use crate::sandbox::{self, DataDir, Sandbox, Spec};
use crate::stop::Stop;
use crate::{commands, load};

/// Connections besides the clients': control and preparing.
pub(super) const HEADROOM: u32 = 20;

/// Sizes a private server for so many clients, and the prepared statements that they hold.
pub(super) fn sized(clients: u32, statements: u64) -> Spec {
    Spec {
        max_connections: clients.saturating_add(HEADROOM),
        max_prepared_stmts: u32::try_from(statements).unwrap_or(u32::MAX),
        ..Spec::default()
    }
}

pub(super) struct Servers<'a> {
    experiment: &'a Experiment,
    stop: &'a Stop,
    /// Prepared data that goes away with loadgen: of the subject at hand.
    passing: Option<(usize, TempDir)>,
    targets: HashMap<usize, ConnectOptions>,
}

pub(super) struct Taken {
    pub(super) subject: usize,
    pub(super) target: ConnectOptions,
    sandbox: Option<Sandbox>,
    /// The commands of a server that they started.
    commands: Option<Existing>,
    kept: Option<KeptData>,
    /// Its tables are as they were prepared; None where nobody knows.
    pristine: Option<bool>,
    /// Tables that were looked at since it was taken.
    prepared: Vec<Dataset>,
}

impl<'a> Servers<'a> {
    /// Finds the servers that are there, and the programs of the others: what is missing is told, and
    /// a password asked for, before the first step and not in the middle of the night.
    pub(super) fn new(
        experiment: &'a Experiment,
        stop: &'a Stop,
        progress: &mut Progress,
    ) -> Result<Self> {
        let mut targets = HashMap::new();
        for cell in &experiment.cells {
            let part = &experiment.parts[cell.part];
            if let What::Load(LoadSpec { source: LoadSource::Dump { path }, .. }) = &part.what {
                let file = std::fs::File::open(path);
                file.map_err(|e| Error::usage(format!("load {}: {e}", path.display())))?;
            }
        }
        for (at, subject) in experiment.subjects.iter().enumerate() {
            if !experiment.cells.iter().any(|cell| cell.subject == at) {
                continue;
            }
            let found = match &subject.source {
                Source::Sandbox(private) => {
                    sandbox::find_program(private.program.as_deref()).map(|_| None)
                }
                Source::Existing(existing) => existing_target(existing, progress).map(Some),
            };
            let found = found.map_err(|e| e.context(format!("server {}", subject.label)))?;
            targets.extend(found.map(|target| (at, target)));
        }
        Ok(Servers { experiment, stop, passing: None, targets })
    }

    pub(super) fn take(
        &mut self,
        at: usize,
        tables: Option<&Dataset>,
        progress: &mut Progress,
    ) -> Result<Taken> {
        let subject = &self.experiment.subjects[at];
        let existing = match &subject.source {
            Source::Existing(existing) => existing,
            Source::Sandbox(private) => {
                return self.take_private(at, subject, private, tables, progress);
            }
        };
        let target = &self.targets[&at];
        Controlled { existing, target, stop: self.stop, progress }.renew()?;
        let target = runtime()?.block_on(ServerLink::new(target, self.stop))?.target;
        let pristine = (!existing.reset.is_empty()).then_some(true);
        let stops = !existing.start.is_empty() && !existing.stop.is_empty();
        let commands = stops.then(|| existing.clone());
        Ok(Taken { commands, pristine, ..Taken::new(at, target) })
    }

    fn take_private(
        &mut self,
        at: usize,
        subject: &Subject,
        private: &Private,
        tables: Option<&Dataset>,
        progress: &mut Progress,
    ) -> Result<Taken> {
        let (clients, statements) = self.experiment.most(at);
        let (program, options) = (private.program.clone(), private.options.clone());
        let spec = Spec { program, options, ..sized(clients, statements) };
        progress.note(&format!("label {}", subject.label));
        let copied = match &private.data {
            Data::ThrowAway => None,
            Data::Keep(dir) => {
                let (sandbox, kept) = self.start_in(spec, KeptData::open(dir)?, progress)?;
                let pristine = kept.mark.written_by.is_empty();
                return Ok(Taken { kept: Some(kept), ..Taken::private(at, sandbox, pristine) });
            }
            Data::Copied => {
                let dir = self.passing_dir(at)?;
                Some(self.prepared(&spec, &dir, tables, true, progress)?)
            }
            Data::CopyOf(dir) => Some(self.prepared(&spec, dir, tables, false, progress)?),
        };
        let spec = match copied {
            Some(kept) if kept.version().is_some() => {
                let version = kept.version().map(str::to_owned);
                Spec { data: DataDir::CopyOf(kept.data()), version, ..spec }
            }
            // No tables are wanted, and none were prepared.
            _ => spec,
        };
        Ok(Taken::private(at, start(&spec, self.stop, progress)?, true))
    }

    /// Names the directory of data that passes, beside the other things of this machine that do.
    fn passing_dir(&mut self, subject: usize) -> Result<PathBuf> {
        if self.passing.as_ref().is_none_or(|(of, _)| *of != subject) {
            let dir = tempfile::Builder::new().prefix("loadgen-data-").tempdir();
            let dir = dir.map_err(|e| Error::failed(format!("no directory for data: {e}")))?;
            self.passing = Some((subject, dir));
        }
        let (_, dir) = self.passing.as_ref().expect("it was just made");
        Ok(dir.path().to_owned())
    }

    /// Makes sure that these tables are in data that nobody measures in, and that may be `passing`.
    fn prepared(
        &self,
        spec: &Spec,
        dir: &Path,
        tables: Option<&Dataset>,
        passing: bool,
        progress: &mut Progress,
    ) -> Result<KeptData> {
        let kept = KeptData::open(dir)?;
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
        kept.change(|mark| sandbox.program_version().clone_into(&mut mark.version))?;
        Ok((sandbox, kept))
    }
}

impl Taken {
    fn new(subject: usize, target: ConnectOptions) -> Taken {
        let (sandbox, commands, kept, pristine) = (None, None, None, None);
        Taken { subject, target, sandbox, commands, kept, pristine, prepared: Vec::new() }
    }

    fn private(subject: usize, sandbox: Sandbox, pristine: bool) -> Taken {
        let target = ConnectOptions::private(sandbox.socket());
        let (sandbox, pristine) = (Some(sandbox), Some(pristine));
        Taken { sandbox, pristine, ..Taken::new(subject, target) }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.sandbox.as_ref().map(Sandbox::pid)
    }

    pub(super) fn is_pristine(&self) -> bool {
        self.pristine == Some(true)
    }

    /// Prepares the tables of a leg. Returns what wrote to them before; None where that is not
    /// known.
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
        let force = tables.refill && !(written_by.is_empty() && self.is_pristine());
        let filled = if self.prepared.contains(tables) && !force {
            0
        } else {
            let passing = self.sandbox.is_some() && self.kept.is_none();
            fill(&self.target, &load::Job { force, passing, ..job(tables) }, stop, progress)?
        };
        self.prepared.push(tables.clone());
        if let Some(kept) = &mut self.kept {
            kept.add(&describe(tables))?;
        }
        if filled < tables.tables {
            return Ok(before);
        }
        self.pristine = Some(true);
        self.kept.as_mut().map_or(Ok(()), |kept| kept.change(|mark| mark.written_by.clear()))?;
        Ok(Some(Vec::new()))
    }

    /// Lists what wrote to its data before, parts of this invocation among them; None where that is
    /// not known.
    pub(super) fn written_by(&self, here: &[String]) -> Option<Vec<String>> {
        let kept = self.kept.as_ref().map_or(&[][..], |kept| &kept.mark.written_by);
        match (self.pristine, here.is_empty()) {
            (None, true) => None,
            (Some(false), true) => Some(kept.to_vec()),
            _ => Some(here.to_vec()),
        }
    }

    pub(super) fn writes(&mut self, title: &str) -> Result<()> {
        self.pristine = Some(false);
        let Some(kept) = &mut self.kept else { return Ok(()) };
        kept.change(|mark| {
            if !mark.written_by.iter().any(|known| known == title) {
                mark.written_by.push(title.to_owned());
            }
        })
    }

    /// Gives it back: a sandbox ends, a server that `start` started is stopped, so that it does
    /// not disturb the next one, and what stays stays.
    pub(super) fn give_back(self, progress: &mut Progress) -> Result<()> {
        if let Some(existing) = &self.commands {
            // Also after a signal: whoever does not want to wait sends another.
            let (target, stop) = (&self.target, &Stop::default());
            Controlled { existing, target, stop, progress }.end()?;
        }
        self.sandbox.map_or(Ok(()), Sandbox::stop)
    }
}

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

const ASK_EVERY: Duration = Duration::from_millis(250);
/// A server that answers and lets nobody in is given so long to change its mind: some do while
/// they start.
const REFUSES_WITHIN: Duration = Duration::from_secs(20);
/// Counters that only grow while a server runs: one that has fallen is another server's.
const GROWING: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Uptime', 'Connections')";

#[derive(Debug)]
enum Seen {
    Nobody,
    Refuses(Error),
    Up(BTreeMap<String, u64>),
}

/// Refuses addresses of a profile that cannot be understood; connects nowhere.
pub(super) fn check_addresses(profile: &Profile) -> Result<()> {
    for (n, server) in profile.servers.iter().enumerate() {
        let key = match (&server.url, &server.defaults_file) {
            (Some(_), _) => "url",
            (None, Some(_)) => "defaults_file",
            (None, None) => continue,
        };
        if let Err(error) = resolved(server.url.as_ref(), server.defaults_file.as_ref()) {
            // What has a scheme in it is not shown: it may be a URL with a password.
            let what = error.to_string().replace("://", ":");
            return Err(profile.refuse(&format!("server/{n}/{key}"), what));
        }
    }
    Ok(())
}

fn existing_target(existing: &Existing, progress: &mut Progress) -> Result<ConnectOptions> {
    let Resolved { mut target, warnings, wants_prompt } =
        resolved(existing.url.as_ref(), existing.defaults_file.as_ref())?;
    if wants_prompt {
        target.password = resolve::prompt(&target)?;
    }
    for warning in &warnings {
        progress.warn(warning);
    }
    Ok(target)
}

fn resolved(url: Option<&Secret>, defaults_file: Option<&PathBuf>) -> Result<Resolved> {
    let args = ConnectionArgs {
        url: url.cloned(),
        defaults_file: defaults_file.cloned(),
        ..ConnectionArgs::default()
    };
    // The profile says which server it is: a URL in the environment is for the other verbs.
    let mut env = Env::real();
    env.vars.remove(OsStr::new("LOADGEN_URL"));
    resolve::resolve(&args, &env)
}

/// A server that is there, and whom its commands are run for.
struct Controlled<'a> {
    existing: &'a Existing,
    target: &'a ConnectOptions,
    stop: &'a Stop,
    progress: &'a mut Progress,
}

impl Controlled<'_> {
    /// Stops, resets and starts the server as far as the profile has commands for it, and waits for
    /// the new one.
    fn renew(&mut self) -> Result<()> {
        let Existing { start, stop: end, reset, within, .. } = self.existing;
        if start.is_empty() && end.is_empty() && reset.is_empty() {
            return Ok(());
        }
        let mut before = self.look()?;
        if !end.is_empty() && !matches!(before, Seen::Nobody) {
            self.end()?;
            before = Seen::Nobody;
        }
        if !reset.is_empty() {
            self.progress.note("bringing the data back");
            commands::run("reset", reset, *within, self.stop)?;
        }
        if start.is_empty() {
            return Ok(());
        }
        self.progress.note("starting the server");
        let started = commands::run("start", start, *within, self.stop);
        let started = started.and_then(|()| self.wait(&before));
        if started.is_err() && !end.is_empty() {
            // Half a start must not disturb the next label; the first error is the one to show.
            let _ = commands::run("stop", end, *within, &Stop::default());
        }
        started
    }

    /// Stops the server, and waits until nobody answers in its place.
    fn end(&mut self) -> Result<()> {
        let (target, within) = (self.target, self.existing.within);
        self.progress.note("stopping the server");
        commands::run("stop", &self.existing.stop, within, self.stop)?;
        let began = Instant::now();
        while !matches!(self.look()?, Seen::Nobody) {
            if began.elapsed() > within {
                let within = units::duration(within);
                return Err(Error::server(format!("{target} still answers {within} after `stop`"))
                    .hint("`stop` must end the server that answers there"));
            }
            self.pause(|| format!("waiting for the end of {target}"))?;
        }
        Ok(())
    }

    fn wait(&mut self, before: &Seen) -> Result<()> {
        let (target, began, mut refused) = (self.target, Instant::now(), None);
        let within = units::duration(self.existing.within);
        loop {
            let seen = self.look()?;
            let waited = began.elapsed();
            let error = match (seen, before) {
                (Seen::Up(now), Seen::Up(old)) if !has_fallen(old, &now) => Error::server(format!(
                    "{target} is still the old server {within} after the start: its uptime and \
                     its count of connections only grew"
                ))
                .hint("`start` must start it anew; give a `stop`, too"),
                (Seen::Up(_), _) => return Ok(()),
                (Seen::Refuses(error), _) => {
                    if refused.get_or_insert_with(Instant::now).elapsed() > REFUSES_WITHIN {
                        return Err(error);
                    }
                    error
                }
                (Seen::Nobody, _) => {
                    refused = None;
                    Error::server(format!("{target} does not answer {within} after its start"))
                }
            };
            if waited > self.existing.within {
                return Err(error);
            }
            self.pause(|| format!("waiting for {target}"))?;
        }
    }

    fn pause(&mut self, what: impl FnOnce() -> String) -> Result<()> {
        self.stop.check()?;
        self.progress.update(what);
        std::thread::sleep(ASK_EVERY);
        Ok(())
    }

    fn look(&self) -> Result<Seen> {
        let (target, opts) = (self.target, self.target.opts()?);
        let link = ServerLink { target: target.clone(), opts, stop: self.stop };
        let looking = async {
            let mut session = match Session::open(target, &link.opts, None).await {
                Ok(session) => session,
                Err(_) if nobody(target, &link.opts).await => return Ok(Seen::Nobody),
                Err(error) => return Ok(Seen::Refuses(error)),
            };
            let found = pairs(&mut session, GROWING).await;
            session.close(limits::COURTESY).await;
            // One that does not tell them is not known to be the old one.
            let found = found.unwrap_or_default().into_iter();
            let numbers = found.filter_map(|(name, text)| Some((name, text.parse().ok()?)));
            Ok(Seen::Up(numbers.collect()))
        };
        runtime()?.block_on(link.ask(looking))
    }
}

fn has_fallen(old: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> bool {
    now.iter().any(|(name, now)| old.get(name).is_some_and(|old| now < old))
}

/// The file with the mark; the data is beside it in `data`.
const MARK: &str = "loadgen-data.json";
const FORM: &str = "loadgen.data/1";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    form: String,
    /// `--version` of the program that made it; empty until a server ran in it.
    version: String,
    prepared: Vec<String>,
    written_by: Vec<String>,
}

#[derive(Debug)]
struct KeptData {
    dir: PathBuf,
    mark: Mark,
}

impl KeptData {
    /// Takes a directory: a new or empty one, or one that loadgen has made.
    fn open(dir: &Path) -> Result<KeptData> {
        let refused = |what: &str, hint: &str| {
            Err(Error::usage(format!("{}{what}", dir.display())).hint(hint))
        };
        let failed = |e: std::io::Error| Error::usage(format!("{}: {e}", dir.display()));
        fs::create_dir_all(dir).map_err(failed)?;
        let mark = match fs::read(dir.join(MARK)) {
            Ok(text) => match serde_json::from_slice::<Mark>(&text) {
                Ok(mark) if mark.form == FORM => mark,
                _ => {
                    let what = format!(": {MARK} is damaged or of another form");
                    return refused(&what, "remove the directory, or name another");
                }
            },
            Err(e) if e.kind() == ErrorKind::NotFound => {
                if fs::read_dir(dir).map_err(failed)?.next().is_some() {
                    let what = " is not empty, and loadgen did not make it";
                    return refused(what, "name a new directory for data");
                }
                Mark { form: FORM.to_owned(), ..Mark::default() }
            }
            Err(e) => return Err(failed(e)),
        };
        // The server is started elsewhere.
        let kept = KeptData { dir: fs::canonicalize(dir).map_err(failed)?, mark };
        kept.write()?;
        Ok(kept)
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The version whose data it is; none before the first start.
    fn version(&self) -> Option<&str> {
        (!self.mark.version.is_empty()).then_some(self.mark.version.as_str())
    }

    /// Clears the way for a first start: what an interrupted one left is no data.
    fn clear(&self) -> Result<()> {
        match fs::remove_dir_all(self.data()) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                Err(Error::failed(format!("{}: {e}", self.data().display())))
            }
            _ => Ok(()),
        }
    }

    fn holds(&self, tables: &str) -> bool {
        self.mark.prepared.iter().any(|prepared| prepared == tables)
    }

    /// These tables are in it now, and no others of their kind, which is the first word.
    fn add(&mut self, tables: &str) -> Result<()> {
        let kind = |text: &str| text.split(' ').next().map(str::to_owned);
        self.change(|mark| {
            mark.prepared.retain(|known| kind(known) != kind(tables));
            mark.prepared.push(tables.to_owned());
        })
    }

    /// Changes the mark, and writes it.
    fn change(&mut self, change: impl FnOnce(&mut Mark)) -> Result<()> {
        change(&mut self.mark);
        self.write()
    }

    fn write(&self) -> Result<()> {
        let mut text = serde_json::to_string_pretty(&self.mark).expect("plain fields have JSON");
        text.push('\n');
        let failed = |e: std::io::Error| Error::failed(format!("{}: {e}", self.dir.display()));
        replace(&self.dir.join(MARK), &text).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_fell_is_another_servers() {
        let counters = |uptime: u64, connections: u64| {
            let names = [("Uptime", uptime), ("Connections", connections)];
            names.map(|(name, n)| (name.to_owned(), n)).into()
        };
        let old: BTreeMap<String, u64> = counters(3, 40);
        assert!(!has_fallen(&old, &counters(3, 41)) && !has_fallen(&old, &counters(90, 42)));
        assert!(has_fallen(&old, &counters(1, 41)), "younger");
        assert!(has_fallen(&old, &counters(5, 2)), "older than it was, with fewer connections");
        assert!(!has_fallen(&old, &BTreeMap::new()));
    }

    #[test]
    fn a_directory_remembers_what_is_in_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("a/b");
        let mut kept = KeptData::open(&place).expect("new");
        assert_eq!(kept.version(), None);
        kept.change(|mark| mark.version = "8.0.33".to_owned()).expect("written");
        kept.add("sbtest 8 x 100").expect("written");
        kept.change(|mark| mark.written_by = vec!["update-index".to_owned()]).expect("written");
        let mut again = KeptData::open(&place).expect("loadgen's");
        assert_eq!(again.version(), Some("8.0.33"));
        assert!(again.holds("sbtest 8 x 100") && !again.holds("sbtest 8 x 200"));
        again.add("sbtest 8 x 200").expect("written");
        again.add("bulk 1 x 0").expect("written");
        assert!(again.holds("sbtest 8 x 200") && !again.holds("sbtest 8 x 100"));
        assert_eq!(again.mark.written_by, ["update-index"]);
        again.change(|mark| mark.written_by.clear()).expect("written");
        assert!(KeptData::open(&place).expect("loadgen's").mark.written_by.is_empty());
    }

    #[test]
    fn somebody_elses_directory_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("ibdata1"), "").expect("written");
        let error = KeptData::open(dir.path()).expect_err("not ours");
        assert!(error.to_string().contains("did not make it"), "{error}");
        fs::write(dir.path().join(MARK), "{}").expect("written");
        assert!(KeptData::open(dir.path()).is_err_and(|e| e.to_string().contains("damaged")));
    }
}
