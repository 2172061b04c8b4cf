//! The server of a label while its legs are measured: taken, its tables prepared, given back. It is a running
//! one, with commands perhaps, or a private one, whose data directory may stay.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::before::ask;
use super::history::{History, add, has, has_other};
use super::scripts::Preparer;
use super::{replace, runtime, start, stop_private};
use crate::error::{Error, Result};
use crate::mysql::{
    ConnectOptions, ConnectionArgs, Env, Numbers, ServerLink, Session, is_nobody_listening, number,
    numeric, pairs, reach, resolve,
};
use crate::plan::experiment::{Dataset, Experiment, RunSpec, ServerSetup, What};
use crate::plan::knobs::{LoadSource, LoadSpec};
use crate::plan::profile::{self, Data, Profile};
use crate::plan::{limits, units};
use crate::progress::Progress;
use crate::sandbox::{self, DataDir, PassingDir, Sandbox, Spec};
use crate::stop::{Stop, unless_stopped};
use crate::summary::{Claim, Summary, claim};
use crate::workload::Schema;
use crate::{commands, load};

/// Connections besides the clients': control and preparing.
pub(super) const HEADROOM: u32 = 20;

pub(super) fn size_sandbox(clients: u32, statements: u64) -> Spec {
    Spec {
        max_connections: clients.saturating_add(HEADROOM),
        max_prepared_stmts: u32::try_from(statements).unwrap_or(u32::MAX),
        ..Spec::default()
    }
}

pub(super) struct Servers<'a> {
    experiment: &'a Experiment,
    pub(super) stop: &'a Stop,
    /// Prepared data of the current subject that is removed at loadgen's end.
    passing: Option<(usize, PassingDir)>,
    targets: HashMap<usize, ConnectOptions>,
    /// By subject: steps that wrote to the data of a server that was given back.
    written_by: HashMap<usize, Vec<String>>,
}

pub(super) struct AcquiredServer<'a> {
    pub(super) subject: usize,
    pub(super) link: ServerLink,
    sandbox: Option<Sandbox>,
    server: &'a profile::Server,
    kept: Option<KeptData>,
    pub(super) history: History,
    /// Descriptions of the tables that were filled, or found to be filled, since it was taken.
    prepared: Vec<String>,
}

/// Data that a run needs: tables of loadgen's, and those that a script prepares.
type Needs<'a> = (Option<&'a Dataset>, Option<Preparer<'a>>);

impl<'a> Servers<'a> {
    /// Checks servers and programs, and asks for passwords: before the first step, not at night.
    pub(super) fn new(of: &'a Experiment, stop: &'a Stop, progress: &mut Progress) -> Result<Self> {
        for cell in &of.cells {
            let what = &of.parts[cell.part].what;
            check_commands(&of.subjects[cell.subject], &of.parts[cell.part])?;
            if let What::Load(LoadSpec { source: LoadSource::Dump { path }, .. }) = what {
                let refused = |path: &Path| {
                    let path = path.display().to_string();
                    move |e: io::Error| Error::usage(format!("load {path}: {e}"))
                };
                let path = path.clone();
                unless_stopped(stop, move || {
                    // Opening a pipe would wait, and disturb its writer.
                    let file = path.metadata().map_err(refused(&path))?.is_file();
                    if file { File::open(&path).map(drop).map_err(refused(&path)) } else { Ok(()) }
                })?;
            }
        }
        let mut targets = HashMap::new();
        let wanted: BTreeSet<usize> = of.cells.iter().map(|cell| cell.subject).collect();
        for at in wanted {
            let subject = &of.subjects[at];
            let found = if let Some(private) = &subject.server.sandbox {
                sandbox::find_program(private.program.as_deref()).map(|_| None)
            } else {
                let (args, env) = address(&subject.server);
                resolve::find(&args, env, stop, progress).map(Some)
            };
            let found = found.map_err(|e| e.context(format!("server {}", subject.label)))?;
            targets.extend(found.map(|target| (at, target)));
        }
        Ok(Servers { experiment: of, stop, passing: None, targets, written_by: HashMap::new() })
    }

    /// Notes the steps of earlier invocations that wrote to servers that are there.
    /// Nobody knows whether somebody restored the data since.
    pub(super) fn recall_writers(&mut self, earlier: &[&Summary]) {
        let Experiment { subjects, parts, .. } = self.experiment;
        for (at, ServerSetup { label, .. }) in subjects.iter().enumerate() {
            let has_run = |title: &str| {
                earlier.iter().any(|step| step.label == *label && step.workload.name == title)
            };
            let wrote = parts.iter().filter(|part| part.writes() && has_run(&part.title));
            let titles: Vec<String> = wrote.map(|part| part.title.clone()).collect();
            if !titles.is_empty() {
                self.written_by.insert(at, titles);
            }
        }
    }

    pub(super) fn take(
        &mut self,
        at: usize,
        needs: Needs<'_>,
        progress: &mut Progress,
    ) -> Result<AcquiredServer<'a>> {
        let server = &self.experiment.subjects[at].server;
        let (mut sandbox, mut kept, mut held) = (None, None, Vec::new());
        let (target, written_by) = match &server.sandbox {
            None => {
                let link = ServerLink::to(self.targets[&at].clone(), self.stop)?;
                Controlled { server, link: &link, progress }.renew()?;
                let reset = (!server.reset.is_empty()).then(Vec::new);
                (link.target, reset.or_else(|| self.written_by.get(&at).cloned()))
            }
            Some(private) => {
                let (started, data, prepared) = self.start_private(at, private, needs, progress)?;
                held = prepared;
                let written =
                    data.as_ref().map_or_else(Vec::new, |data| data.mark.written_by.clone());
                let target = ConnectOptions::private(&started.socket);
                (sandbox, kept) = (Some(started), data);
                (target, Some(written))
            }
        };
        let link = runtime()?.block_on(reach(&target, self.stop))?;
        let history = History::new(written_by, held);
        Ok(AcquiredServer { sandbox, kept, history, ..AcquiredServer::new(at, server, link) })
    }

    /// Gives a server back; its data stay written, if nothing restores them.
    pub(super) fn give_back(
        &mut self,
        taken: AcquiredServer<'_>,
        progress: &mut Progress,
    ) -> Result<()> {
        if let Some(by) = taken.history.written_by().filter(|by| !by.is_empty()) {
            self.written_by.insert(taken.subject, by.to_vec());
        }
        taken.give_back(progress)
    }

    /// Returns its data directory if that stays, and descriptions of the data in it. A server that works on a copy
    /// has these already.
    fn start_private(
        &mut self,
        at: usize,
        private: &profile::Sandbox,
        needs: Needs<'_>,
        progress: &mut Progress,
    ) -> Result<(Sandbox, Option<KeptData>, Vec<String>)> {
        let (clients, statements) = self.experiment.most(at);
        let options = private.options.iter().map(|(name, value)| (name.clone(), value.0.clone()));
        let (program, options) = (private.program.clone(), options.collect());
        let mut spec = Spec { program, options, ..size_sandbox(clients, statements) };
        progress.note(&format!("label {}", self.experiment.subjects[at].label));
        let dir = match private.data() {
            Data::ThrowAway => return Ok((start(&spec, self.stop, progress)?, None, Vec::new())),
            Data::Keep(dir) => {
                let mut kept = KeptData::open(dir)?;
                let (sandbox, held) =
                    (kept.start(spec, self.stop, progress)?, kept.mark.prepared.clone());
                return Ok((sandbox, Some(kept), held));
            }
            Data::Copied => self.temporary_dir(at)?,
            Data::CopyOf(dir) => dir.clone(),
        };
        let mut kept = KeptData::open(&dir)?;
        let (tables, preparer) = needs;
        let known = &kept.mark.prepared;
        let others = preparer.is_some_and(|preparer| preparer.finds_other(known))
            || tables.is_some_and(|tables| has_other(known, &describe(tables)));
        if others && *private.data() == Data::Copied {
            // Nobody asked for these data: others are filled in a directory of their own.
            self.passing = None;
            kept = KeptData::open(&self.temporary_dir(at)?)?;
        }
        let tables = tables.filter(|tables| !kept.holds(&describe(tables)));
        let preparer = preparer.filter(|preparer| !kept.holds(&preparer.describe()));
        preparer.map_or(Ok(()), |preparer| check_other(preparer, &kept.mark.prepared))?;
        if tables.is_some() || preparer.is_some() {
            let sandbox = kept.start(spec.clone(), self.stop, progress)?;
            let link = ServerLink::to(ConnectOptions::private(&sandbox.socket), self.stop)?;
            let Mark { written_by, prepared, .. } = kept.mark.clone();
            let mut filling = AcquiredServer {
                sandbox: Some(sandbox),
                kept: Some(kept),
                history: History::new(Some(written_by), prepared),
                ..AcquiredServer::new(at, &self.experiment.subjects[at].server, link)
            };
            let prepared = filling.prepare((tables, preparer), progress);
            kept = filling.kept.take().expect("its data stay");
            // A clean stop in any case keeps what was filled so far.
            let stopped = filling.give_back(progress);
            prepared?;
            stopped?;
        }
        // Without a version no tables were prepared.
        if let Some(version) = kept.version() {
            spec = Spec { data: DataDir::CopyOf(kept.data()), version: Some(version), ..spec };
        }
        Ok((start(&spec, self.stop, progress)?, None, kept.mark.prepared))
    }

    fn temporary_dir(&mut self, subject: usize) -> Result<PathBuf> {
        let passing = match self.passing.take() {
            Some(passing) if passing.0 == subject => passing,
            _ => (subject, PassingDir::make()?),
        };
        Ok(self.passing.insert(passing).1.path().to_owned())
    }
}

impl<'a> AcquiredServer<'a> {
    /// Makes one that is there, and of whose data nothing is known.
    fn new(subject: usize, server: &'a profile::Server, link: ServerLink) -> Self {
        let (history, prepared) = (History::new(None, Vec::new()), Vec::new());
        AcquiredServer { subject, link, sandbox: None, server, kept: None, history, prepared }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.sandbox.as_ref().map(|sandbox| sandbox.pid)
    }

    /// Returns whether it is a private server that died.
    pub(super) fn has_died(&mut self) -> bool {
        self.sandbox.as_mut().is_some_and(|sandbox| sandbox.death().is_some())
    }

    /// Fills what is missing, or was written to and may be filled again; returns whether it did.
    pub(super) fn prepare(&mut self, needs: Needs<'_>, progress: &mut Progress) -> Result<bool> {
        let (tables, preparer) = needs;
        let is_stale =
            |wanted: String| self.history.has_other(&wanted) || !self.history.is_clean(&wanted);
        let force = tables.is_some_and(|tables| tables.force && is_stale(describe(tables)));
        let by_script = match preparer {
            Some(preparer) => self.prepare_by(preparer, progress)?,
            None => false,
        };
        let Some(tables) = tables else { return Ok(by_script) };
        let (wanted, mut filled) = (describe(tables), 0);
        if force || !has(&self.prepared, &wanted) {
            if force && self.history.has_other(&wanted) {
                // If it fails on the way, there are tables of both: the next run fills again.
                let unfinished = describe_unfinished(tables);
                add(&mut self.prepared, unfinished.clone());
                self.hold(unfinished)?;
            }
            filled = match fill(&self.link, &Dataset { force, ..tables.clone() }, progress) {
                // What `reset` brings back may have other rows.
                Err(error) if tables.force && !force && error.may_force() => {
                    self.hold(describe_unfinished(tables))?;
                    fill(&self.link, tables, progress)?
                }
                filled => filled?,
            };
        }
        add(&mut self.prepared, wanted.clone());
        self.hold(wanted.clone())?;
        if filled == tables.tables {
            self.renew(wanted)?;
        }
        Ok(by_script || filled > 0)
    }

    /// Has a script prepare its data, unless they are there. Those of a server that is there are somebody's: only
    /// `refill` may replace them.
    fn prepare_by(&mut self, preparer: Preparer<'_>, progress: &mut Progress) -> Result<bool> {
        let (wanted, held) = (preparer.describe(), self.history.held());
        let has_other = preparer.finds_other(held);
        let renews = preparer.may_refill() && (has_other || !self.history.is_clean(&wanted));
        if !renews && (self.sandbox.is_none() || held.contains(&wanted)) {
            return Ok(false);
        }
        if !renews {
            check_other(preparer, held)?;
        }
        let may_hold = has_other || self.sandbox.is_none() || held.contains(&wanted);
        // Before `cleanup`: a part of its work is no data, either.
        self.hold(preparer.describe_unfinished())?;
        if renews && may_hold && has_tables(&self.link)? {
            preparer.run("cleanup", &self.link, progress)?;
        }
        preparer.run("prepare", &self.link, progress)?;
        self.hold(wanted.clone())?;
        self.renew(wanted)?;
        Ok(true)
    }

    /// Returns whether its data go away with it and are not those of this run: another start has them.
    pub(super) fn is_passing_without(&self, (tables, preparer): Needs<'_>) -> bool {
        let held = self.history.held();
        let lacks = |preparer: Preparer<'_>| !held.contains(&preparer.describe());
        let others = tables.is_some_and(|tables| has_other(held, &describe(tables)));
        self.sandbox.is_some() && self.kept.is_none() && (others || preparer.is_some_and(lacks))
    }

    /// Returns the steps that wrote to the data of a run; `are_all` if it uses these alone.
    pub(super) fn writers(&self, needs: Needs<'_>, are_all: bool) -> Option<Vec<String>> {
        let (tables, preparer) = needs;
        let by_script = preparer.map(|preparer| preparer.describe());
        let used: Vec<String> = tables.map(describe).into_iter().chain(by_script).collect();
        self.history.writers(&used, are_all)
    }

    /// Notes data, in place of others of their kind.
    fn hold(&mut self, held: String) -> Result<()> {
        let kept = self.kept.as_mut().map_or(Ok(()), |kept| kept.add(&held));
        self.history.hold(held);
        kept
    }

    /// Notes data that were filled anew. Somebody else's server may have others.
    fn renew(&mut self, filled: String) -> Result<()> {
        self.history.renew(filled, self.sandbox.is_some());
        self.save_writers()
    }

    /// Notes a step that wrote: to tables of one schema, if that is known, or to any data.
    pub(super) fn add_writer(&mut self, title: &str, only: Option<Schema>) -> Result<()> {
        self.history.add_writer(title, only);
        self.save_writers()
    }

    fn save_writers(&mut self) -> Result<()> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        let written_by = self.history.written_by().unwrap_or_default().to_vec();
        if kept.mark.written_by == written_by {
            return Ok(());
        }
        kept.change(|mark| mark.written_by = written_by)
    }

    /// Ends a sandbox, and a server that `start` started, so that it does not disturb the next one.
    fn give_back(self, progress: &mut Progress) -> Result<()> {
        let profile::Server { start, stop, .. } = self.server;
        if self.sandbox.is_none() && !start.is_empty() && !stop.is_empty() {
            // Also after a signal; a second signal ends this.
            let link = &ServerLink { stop: Stop::default(), ..self.link };
            Controlled { server: self.server, link, progress }.end()?;
        }
        self.sandbox.map_or(Ok(()), |sandbox| stop_private(sandbox, progress))
    }
}

/// Refuses commands beside a sweep that name a process that nobody knows.
fn check_commands(subject: &ServerSetup, part: &RunSpec) -> Result<()> {
    let mut words = part.commands.iter().flat_map(|command| &command.run);
    let is_known = subject.server.sandbox.is_some() || part.plan().is_none();
    if is_known || !words.any(|word| word.contains("{pid}")) {
        return Ok(());
    }
    let text = "a command of the profile asks for {pid}, and the server's process is not known";
    Err(Error::usage(format!("server {}: {text}", subject.label)).hint("it is known of sandboxes"))
}

fn fill(link: &ServerLink, tables: &Dataset, progress: &mut Progress) -> Result<u32> {
    Ok(runtime()?.block_on(load::prepare(link, tables, progress))?.filled)
}

/// Refuses data that a script prepared by other options, or not to the end, unless they may be filled again.
fn check_other(preparer: Preparer<'_>, held: &[String]) -> Result<()> {
    let is_refused = preparer.finds_other(held) && !preparer.may_refill();
    if is_refused { Err(preparer.other_data()) } else { Ok(()) }
}

fn has_tables(link: &ServerLink) -> Result<bool> {
    let sql = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()";
    let reading = async {
        let mut session = Session::open(link, None).await?;
        let count = number(&mut session, sql).await?;
        session.close(limits::COURTESY).await;
        Ok::<_, Error>(count > 0)
    };
    runtime()?.block_on(ask(link, reading))
}

fn describe(tables: &Dataset) -> String {
    let Dataset { schema, tables: count, rows, data_seed, .. } = tables;
    let charset = tables.charset.as_deref().unwrap_or("-");
    format!("{schema} {count} x {rows} rows, seed {data_seed}, {charset}")
}

fn describe_unfinished(tables: &Dataset) -> String {
    format!("{} (unfinished)", tables.schema)
}

/// Refuses bad addresses in a profile; connects nowhere.
pub(super) fn check_addresses(profile: &Profile) -> Result<()> {
    for (n, server) in profile.servers.iter().enumerate() {
        let Some(key) = server.address() else { continue };
        let (args, env) = address(server);
        if let Err(error) = resolve::resolve(&args, &env) {
            // Hide a text with a scheme: it may be a URL with a password.
            let what = error.to_string().replace("://", ":");
            return Err(profile.refuse(&format!("server/{n}/{key}"), what));
        }
    }
    Ok(())
}

/// Resolves the servers of a profile; asks for passwords.
pub(super) fn find_servers(
    of: &Experiment,
    stop: &Stop,
) -> Result<Vec<(Option<String>, ConnectOptions)>> {
    let find = |subject: &ServerSetup| {
        let (args, env) = address(&subject.server);
        let found = resolve::find(&args, env, stop, &mut Progress::new(true, None));
        found.map(|target| (Some(subject.label.clone()), target))
    };
    of.subjects.iter().map(find).collect()
}

/// Returns the server's address as flags would give it. Other verbs read a URL from the environment.
fn address(server: &profile::Server) -> (ConnectionArgs, Env) {
    if let Some(given) = &server.given {
        return (given.connection.clone(), Env::real());
    }
    let profile::Server { url, defaults_file, host, port, socket, user, database, .. } =
        server.clone();
    let mut env = Env::real();
    env.vars.remove(OsStr::new("LOADGEN_URL"));
    let port = port.map(std::num::NonZeroU16::get);
    let args = ConnectionArgs { host, port, user, socket, database, ..ConnectionArgs::default() };
    (ConnectionArgs { defaults_file, url, ..args }, env)
}

const ASK_EVERY: Duration = Duration::from_millis(250);
/// Wait for a server that refuses connections: some do while they start.
const REFUSES_WITHIN: Duration = Duration::from_secs(20);
/// Counters that only grow while a server runs: a smaller value means a restart.
const GROWING: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Uptime', 'Connections')";

/// State of the server's port: nobody listens, connections refused, or counters read.
type ServerState = Option<Result<Numbers>>;
/// A reason to wait longer, if there is one.
type Wrong = Result<Option<Error>>;

struct Controlled<'a> {
    server: &'a profile::Server,
    link: &'a ServerLink,
    progress: &'a mut Progress,
}

impl Controlled<'_> {
    fn renew(&mut self) -> Result<()> {
        let profile::Server { start, stop: end, reset, .. } = self.server;
        let within = self.server.within();
        let stop = &self.link.stop;
        if start.is_empty() && end.is_empty() && reset.is_empty() {
            return Ok(());
        }
        let mut before = self.read_state()?;
        if !end.is_empty() && before.is_some() {
            self.end()?;
            before = None;
        }
        if !reset.is_empty() {
            self.progress.note("bringing the data back");
            commands::run("reset", reset, within, stop)?;
        }
        if start.is_empty() {
            return Ok(());
        }
        self.progress.note("starting the server");
        let started = commands::run("start", start, within, stop);
        let started = started.and_then(|()| self.wait(before.and_then(Result::ok).as_ref()));
        if started.is_err() && !end.is_empty() {
            // Half a start must not disturb the next label; the first error is reported.
            if let Err(error) = commands::run("stop", end, within, &Stop::default()) {
                self.progress.warn(&format!("{error}: what `start` began may still run"));
            }
        }
        started
    }

    /// Stops the server, and waits until nobody answers at its address.
    fn end(&mut self) -> Result<()> {
        let (target, within) = (&self.link.target, self.server.within());
        self.progress.note("stopping the server");
        commands::run("stop", &self.server.stop, within, &self.link.stop)?;
        let within = units::duration(within);
        self.wait_until("the end of ", |state| {
            Ok(state.map(|_| {
                Error::server(format!("{target} still answers {within} after `stop`"))
                    .hint("`stop` must end the server that answers there")
            }))
        })
    }

    fn wait(&mut self, before: Option<&Numbers>) -> Result<()> {
        let (target, mut refused) = (&self.link.target, None);
        let within = units::duration(self.server.within());
        self.wait_until("", |state| match state {
            Some(Ok(now)) if before.is_some_and(|old| !has_fallen(old, &now)) => {
                let text = format!(
                    "{target} is still the old server {within} after the start: its uptime and \
                     its count of connections only grew"
                );
                Ok(Some(Error::server(text).hint("`start` must start it anew; give a `stop`, too")))
            }
            Some(Ok(_)) => Ok(None),
            Some(Err(error)) => {
                let since = *refused.get_or_insert_with(Instant::now);
                if since.elapsed() > REFUSES_WITHIN { Err(error) } else { Ok(Some(error)) }
            }
            None => {
                refused = None;
                let text = format!("{target} does not answer {within} after its start");
                Ok(Some(Error::server(text)))
            }
        })
    }

    fn wait_until(
        &mut self,
        what: &str,
        mut wrong: impl FnMut(ServerState) -> Wrong,
    ) -> Result<()> {
        let began = Instant::now();
        while let Some(error) = wrong(self.read_state()?)? {
            if began.elapsed() > self.server.within() {
                return Err(error);
            }
            self.link.stop.check()?;
            self.progress.update(|| format!("waiting for {what}{}", self.link.target));
            std::thread::sleep(ASK_EVERY);
        }
        Ok(())
    }

    fn read_state(&self) -> Result<ServerState> {
        let reading = async {
            // Where TLS is preferred, the server decides.
            let opening = async {
                let link = reach(&self.link.target, &self.link.stop).await?;
                Session::open(&link, None).await
            };
            let mut session = match opening.await {
                Ok(session) => session,
                Err(_) if is_nobody_listening(self.link).await => return Ok::<_, Error>(None),
                Err(error) => return Ok(Some(Err(error))),
            };
            let found = pairs(&mut session, GROWING).await;
            session.close(limits::COURTESY).await;
            // A server without these counters is not known to be the old one.
            Ok(Some(Ok(numeric(&found.unwrap_or_default()))))
        };
        runtime()?.block_on(ask(self.link, reading))
    }
}

fn has_fallen(old: &Numbers, now: &Numbers) -> bool {
    now.iter().any(|(name, now)| old.get(name).is_some_and(|old| now < old))
}

/// The file with the mark; the data is in `data` beside it.
const MARK: &str = "loadgen-data.json";
const FORM: &str = "loadgen.data/1";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    form: String,
    /// `--version` of its program; empty before the first start.
    version: String,
    prepared: Vec<String>,
    written_by: Vec<String>,
}

#[derive(Debug)]
struct KeptData {
    dir: PathBuf,
    mark: Mark,
    /// Two runs would start servers on the same files, or remove what the other one makes.
    _claimed: Option<Claim>,
}

impl KeptData {
    /// Opens a directory that is new or empty, or that loadgen made.
    fn open(dir: &Path) -> Result<KeptData> {
        let refused = |what: &str| Error::usage(format!("{}{what}", dir.display()));
        let failed = |e: io::Error| refused(&format!(": {e}"));
        fs::create_dir_all(dir).map_err(failed)?;
        let claimed = claim(dir, |dir| {
            Error::failed(format!("another loadgen run uses the data in {dir}"))
                .hint("wait for its end, or name another directory for data")
        })?;
        let mark = match fs::read(dir.join(MARK)) {
            Ok(text) => {
                let mark = serde_json::from_slice::<Mark>(&text).ok();
                mark.filter(|mark| mark.form == FORM).ok_or_else(|| {
                    refused(&format!(": {MARK} is damaged or of another form"))
                        .hint("remove the directory, or name another")
                })?
            }
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(failed(e)),
            Err(_) if fs::read_dir(dir).map_err(failed)?.next().is_some() => {
                return Err(refused(" is not empty, and loadgen did not make it")
                    .hint("name a new directory for data"));
            }
            Err(_) => Mark { form: FORM.to_owned(), ..Mark::default() },
        };
        // The server has another working directory.
        let dir = fs::canonicalize(dir).map_err(failed)?;
        let mut kept = KeptData { dir, mark, _claimed: claimed };
        kept.change(|_| ())?;
        Ok(kept)
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Returns the version of the server that made the data; None before the first start.
    fn version(&self) -> Option<String> {
        Some(self.mark.version.clone()).filter(|version| !version.is_empty())
    }

    /// Starts a server in it. Removes what an interrupted first start left.
    fn start(&mut self, spec: Spec, stop: &Stop, progress: &mut Progress) -> Result<Sandbox> {
        let (version, dir) = (self.version(), self.data());
        let data = if version.is_some() {
            DataDir::Filled(dir)
        } else {
            match fs::remove_dir_all(&dir) {
                Err(e) if e.kind() != ErrorKind::NotFound => {
                    return Err(Error::failed(format!("{}: {e}", dir.display())));
                }
                _ => DataDir::New(dir),
            }
        };
        let sandbox = start(&Spec { data, version, ..spec }, stop, progress)?;
        self.change(|mark| sandbox.program_version.clone_into(&mut mark.version))?;
        Ok(sandbox)
    }

    fn holds(&self, tables: &str) -> bool {
        has(&self.mark.prepared, tables)
    }

    /// Notes that these tables are in it; they replace others of their kind, which is the first word.
    fn add(&mut self, tables: &str) -> Result<()> {
        self.change(|mark| add(&mut mark.prepared, tables.to_owned()))
    }

    fn change(&mut self, change: impl FnOnce(&mut Mark)) -> Result<()> {
        change(&mut self.mark);
        let text = serde_json::to_string_pretty(&self.mark).expect("plain fields have JSON");
        let failed = |e: io::Error| Error::failed(format!("{}: {e}", self.dir.display()));
        replace(&self.dir.join(MARK), &(text + "\n")).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canned::{Canned, Listen, Script};
    use crate::mysql::SslMode;
    use crate::mysql::options::Ssl;
    use crate::plan::experiment::{self, Overrides};

    #[test]
    fn server_without_tls_answers_where_tls_is_preferred() {
        let canned = Canned::start(Script::default(), Listen::Port(0)).expect("a server");
        let ssl = Ssl { mode: SslMode::Preferred, ..Ssl::default() };
        let target = ConnectOptions { ssl, ..ConnectOptions::canned(canned.port()) };
        let link = ServerLink::to(target, &Stop::default()).expect("options");
        let (server, mut progress) = (profile::Server::default(), Progress::new(true, None));
        let controlled = Controlled { server: &server, link: &link, progress: &mut progress };
        assert!(matches!(controlled.read_state(), Ok(Some(Ok(_)))));
    }

    #[test]
    fn tables_that_a_failed_fill_was_to_replace_are_not_known_to_be_there() {
        let link = ServerLink::to(ConnectOptions::canned(1), &Stop::default()).expect("options");
        let tables = |rows| Dataset { tables: 1, rows, force: true, ..Dataset::default() };
        let (known, server) = (describe(&tables(100)), profile::Server::default());
        let mut taken = AcquiredServer {
            history: History::new(Some(Vec::new()), vec![known.clone()]),
            prepared: vec![known.clone()],
            ..AcquiredServer::new(0, &server, link)
        };
        let (other, mut progress) = (tables(200), Progress::new(true, None));
        let filled = taken.prepare((Some(&other), None), &mut progress);
        assert!(filled.is_err(), "nobody listens there");
        assert!(taken.history.has_other(&known) && !has(&taken.prepared, &known));
    }

    fn make_servers<'a>(experiment: &'a Experiment, stop: &'a Stop) -> Servers<'a> {
        let targets = HashMap::from([(0, ConnectOptions::canned(1))]);
        Servers { experiment, stop, passing: None, targets, written_by: HashMap::new() }
    }

    #[test]
    fn writers_stay_known_when_a_server_is_taken_again_that_nothing_restores() {
        let text = "name = 'x'\n[[server]]\nhost = 'h'\n\
                    [[run]]\nworkload = 'point-select'\nclients = 1\n";
        let profile = Profile::parse(text, "p").expect("sound");
        let experiment = experiment::build(&profile, &Overrides::default()).expect("sound");
        let (stop, mut progress) = (Stop::default(), Progress::new(true, None));
        let mut servers = make_servers(&experiment, &stop);
        let mut taken = servers.take(0, (None, None), &mut progress).expect("nobody asks it");
        assert_eq!(taken.history.written_by(), None);
        taken.add_writer("insert", None).expect("nothing is kept");
        servers.give_back(taken, &mut progress).expect("it goes on");
        let again = servers.take(0, (None, None), &mut progress).expect("nobody asks it");
        assert_eq!(again.history.written_by(), Some(&["insert".to_owned()][..]));
    }

    #[test]
    fn writers_of_an_earlier_invocation_are_known_when_nothing_restored_the_data() {
        let text = "name = 'x'\n[[server]]\nlabel = 'a'\nhost = 'h'\n[[server]]\nlabel = 'b'\nbase = 'a'\n\
                    [[run]]\nworkload = ['point-select', 'update-index', 'insert']\nclients = 1\n";
        let profile = Profile::parse(text, "p").expect("sound");
        let experiment = experiment::build(&profile, &Overrides::default()).expect("sound");
        let stop = Stop::default();
        let mut servers = make_servers(&experiment, &stop);
        let step = |workload: &str| {
            let mut step = Summary { label: "a".to_owned(), ..Summary::default() };
            workload.clone_into(&mut step.workload.name);
            step
        };
        let (read, wrote) = (step("point-select"), step("update-index"));
        servers.recall_writers(&[&read]);
        assert!(servers.written_by.is_empty());
        servers.recall_writers(&[&read, &wrote]);
        assert_eq!(servers.written_by, HashMap::from([(0, vec!["update-index".to_owned()])]));
    }

    #[test]
    fn command_that_asks_for_an_unknown_process_is_refused_where_it_would_run() {
        let refused = |server: &str, run: &str| {
            let text = format!(
                "name = 'x'\n[[server]]\n{server}\n[[run]]\n{run}\n[[run]]\nworkload = 'insert'\n\
                 [[command]]\nat = 0\nrun = ['perf', '{{pid}}']\n"
            );
            let profile = Profile::parse(&text, "p").expect("sound");
            let only = vec!["workload=r".parse().expect("a condition")];
            let overrides = Overrides { only, ..Overrides::default() };
            let experiment = experiment::build(&profile, &overrides).expect("sound");
            let cell = &experiment.cells[0];
            check_commands(&experiment.subjects[cell.subject], &experiment.parts[cell.part])
                .is_err()
        };
        let (sweep, load) =
            ("name = 'r'\nworkload = 'update-index'", "name = 'r'\nload = { rows = 1 }");
        assert!(refused("host = 'h'", sweep));
        assert!(!refused("host = 'h'", load), "no command runs beside a load");
        assert!(!refused("sandbox = {}", sweep));
    }

    #[test]
    fn a_counter_that_fell_is_another_servers() {
        let counters = |uptime: i64, connections: i64| -> Numbers {
            let names = [("Uptime", uptime), ("Connections", connections)];
            names.map(|(name, n)| (name.to_owned(), n)).into()
        };
        let old = counters(3, 40);
        assert!(!has_fallen(&old, &counters(3, 41)) && !has_fallen(&old, &counters(90, 42)));
        assert!(has_fallen(&old, &counters(1, 41)), "younger");
        assert!(has_fallen(&old, &counters(5, 2)), "older than it was, with fewer connections");
        assert!(!has_fallen(&old, &Numbers::new()));
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
        let taken = KeptData::open(&place).map(drop).expect_err("it is in use").to_string();
        assert!(taken.contains("another loadgen run uses the data in"), "{taken}");
        drop(kept);
        let mut again = KeptData::open(&place).expect("loadgen's");
        assert_eq!(again.version().as_deref(), Some("8.0.33"));
        assert!(again.holds("sbtest 8 x 100") && !again.holds("sbtest 8 x 200"));
        again.add("sbtest 8 x 200").expect("written");
        again.add("bulk 1 x 0").expect("written");
        assert!(again.holds("sbtest 8 x 200") && !again.holds("sbtest 8 x 100"));
        again.add("sbtest 4 x 200").expect("written");
        assert!(again.holds("sbtest 4 x 200") && again.holds("sbtest 8 x 200"));
        assert_eq!(again.mark.written_by, ["update-index"]);
        again.change(|mark| mark.written_by.clear()).expect("written");
        drop(again);
        assert!(KeptData::open(&place).expect("loadgen's").mark.written_by.is_empty());
    }

    #[test]
    fn somebody_elses_directory_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("ibdata1"), "").expect("written");
        let error = KeptData::open(dir.path()).expect_err("not ours");
        assert_eq!(error.kind(), crate::error::Kind::Usage, "{error}");
        fs::write(dir.path().join(MARK), "{}").expect("written");
        assert!(KeptData::open(dir.path()).is_err_and(|e| e.to_string().contains("damaged")));
    }
}
