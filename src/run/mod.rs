//! The one pipeline for all measurements: the servers of a profile, searches and rechecks are stages of it.

pub(crate) mod before;
pub(crate) mod calibration;
mod conditions;
mod forecast;
mod history;
mod in_profile;
mod live;
pub(crate) mod measure;
mod openmetrics;
pub(crate) mod profile;
pub(crate) mod recheck;
mod scrape;
pub(crate) mod scripts;
mod servers;
mod slo;
pub mod steps;
mod summarise;

use std::fs::Permissions;
use std::io::{self, ErrorKind, IsTerminal as _, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use console::Style;
use jiff::Timestamp;

use self::openmetrics::Exporter;
use crate::error::{Error, Kind, Result, indented, line, plain, ranked};
use crate::hosts::{self, ClientHosts, Ranks, Words};
use crate::mysql::{ConnectOptions, ConnectionArgs};
use crate::observe::raise_descriptor_limit;
use crate::plan::{Plan, defaults};
use crate::progress::{Progress, has_colours, say};
use crate::report::{self, Format, Gates, Layout, Notes, Options};
use crate::sandbox::{Sandbox, Spec};
use crate::stop::Stop;
use crate::summary::{self, Record, Store, Summary, to_json};
use crate::terms::{Gate, counted};

pub(crate) struct Invocation<'a> {
    pub(crate) progress: Progress,
    pub(crate) stop: &'a Stop,
    pub(crate) out: PathBuf,
    pub(crate) calibration: Option<PathBuf>,
    /// None where the clients are of this process.
    pub(crate) hosts: Option<ClientHosts>,
    /// Where the running step is to be served.
    pub(crate) openmetrics: Option<SocketAddr>,
    pub(crate) exporter: Option<Arc<Exporter>>,
    /// Limit on the part of a host's CPU that others use. A step above it is measured again.
    pub(crate) others_max: Option<f64>,
}

impl Invocation<'_> {
    fn begin(&mut self) -> Result<Store> {
        warn_of_debug_build(&mut self.progress);
        raise_descriptor_limit()?;
        if let Some(at) = self.openmetrics {
            let exporter = Exporter::start(at)?;
            self.progress.note(&format!("metrics at http://{}/metrics", exporter.address));
            self.exporter = Some(Arc::new(exporter));
        }
        Store::open(&self.out)
    }

    /// Begins where it is to start other hosts: they must not start for an error of this one.
    fn begin_before_hosts(&mut self) -> Result<Option<Store>> {
        let starts = matches!(self.hosts, Some(ClientHosts::Started(_)));
        starts.then(|| self.begin()).transpose()
    }

    /// Returns whether another process measures and prints.
    fn is_led_elsewhere(&self) -> bool {
        self.hosts.as_ref().is_some_and(ClientHosts::are_led_elsewhere)
    }

    /// Returns whether a launcher started this process, and others.
    fn is_launched(&self) -> bool {
        matches!(self.hosts, Some(ClientHosts::Launched(_)))
    }

    /// Starts those of the hosts with the clients, or takes those that a launcher started for these plans.
    fn start_ranks<'p>(&mut self, plans: impl Iterator<Item = &'p Plan>) -> Result<Option<Ranks>> {
        let plans: Vec<&Plan> = plans.collect();
        let has_scripts = plans.iter().any(|plan| plan.scripts().next().is_some());
        let (runtime, progress) = (runtime()?, &mut self.progress);
        let ranks = match &self.hosts {
            None => return Ok(None),
            Some(ClientHosts::Started(wanted)) => {
                runtime.block_on(Ranks::start(wanted, self.stop, progress))
            }
            Some(ClientHosts::Launched(of)) => runtime.block_on(Ranks::gather(
                of,
                hosts::hash(plans.into_iter()),
                self.stop,
                progress,
            )),
        };
        let ranks = ranks?;
        if has_scripts {
            ranks.require_lua()?;
        }
        Ok(Some(ranks))
    }

    /// Serves a rank 0 that is another process; returns false where this one measures.
    fn follow(
        &mut self,
        plans: Vec<Plan>,
        find: impl FnOnce() -> Result<Vec<(Option<String>, ConnectOptions)>>,
    ) -> Result<bool> {
        if self.hosts.is_some() {
            // Before any rank waits for another one: all ranks find this alike.
            plans.iter().try_for_each(Plan::check_away)?;
        }
        match &self.hosts {
            Some(ClientHosts::Launched(launched)) if launched.of.rank > 0 => {
                let words = Words { plans, servers: find()? };
                let followed = hosts::follow(launched, words, &mut self.progress, self.stop);
                followed.map(|()| true)
            }
            _ => Ok(false),
        }
    }
}

pub(crate) struct Place {
    pub(crate) connection: ConnectionArgs,
    /// Private servers, measured in turn. Without any the server of `connection` is measured.
    pub(crate) sandboxes: Vec<Spec>,
    /// Words before a command that reads the server's host.
    pub(crate) probe: Option<String>,
}

fn start(spec: &Spec, stop: &Stop, progress: &mut Progress) -> Result<Sandbox> {
    let started = Sandbox::start(spec, &mut |text| progress.note(text), &|| stop.asked().is_some());
    let sandbox = started.map_err(|error| tell_signal(error, stop))?;
    if progress.is_quiet()
        && let Some(note) = sandbox.note_place()
    {
        progress.warn_once(note);
    }
    Ok(sandbox)
}

/// Gives an interruption the kind of its signal, which a sandbox does not know.
fn tell_signal(error: Error, stop: &Stop) -> Error {
    match stop.asked() {
        Some(kind) if error.kind() == Kind::Interrupted => Error::new(kind, error.to_string()),
        _ => error,
    }
}

/// Stops a private server. A warning has the end of its log if it died, because the log goes with it.
fn stop_private(mut sandbox: Sandbox, progress: &mut Progress) -> Result<()> {
    if let Some(how) = sandbox.death() {
        progress.warn(&how);
    }
    sandbox.stop()
}

fn warn_of_debug_build(progress: &mut Progress) {
    if cfg!(debug_assertions) {
        progress.warn("this is a debug build; its numbers are not for comparing");
    }
}

pub(crate) fn warn(text: &str) {
    say(&indented(&format!("warning: {text}")));
}

pub(crate) fn leave_out(imported: usize, what: &str) {
    if imported > 0 {
        let imported = counted(imported as u64, "imported run");
        warn(&format!("{imported} left out: {what} takes what loadgen measured"));
    }
}

/// Prints data to standard output, where nothing else goes. Escapes control characters for terminals.
pub(crate) fn print_data(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let text = plain(text);
    // A file or pipe gets no colours, whatever is forced.
    let in_colour = out.is_terminal() && has_colours(true);
    let text = if in_colour { with_coloured_bars(&text) } else { text };
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    // `loadgen … | head` closes the pipe early.
    let failed = written.err().filter(|e| e.kind() != ErrorKind::BrokenPipe);
    failed.map_or(Ok(()), |e| Err(Error::failed(format!("standard output: {e}"))))
}

fn with_coloured_bars(text: &str) -> String {
    let style = Style::new().cyan().force_styling(true);
    let is_drawn = |c: char| ('\u{2580}'..='\u{259f}').contains(&c);
    let mut coloured = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(from) = rest.find(is_drawn) {
        let (before, drawn) = rest.split_at(from);
        let (bar, after) = drawn.split_at(drawn.find(|c| !is_drawn(c)).unwrap_or(drawn.len()));
        coloured += before;
        coloured += &style.apply_to(bar).to_string();
        rest = after;
    }
    coloured + rest
}

/// Appends Markdown to the step summary of GitHub Actions, if this runs there.
fn to_step_summary(text: impl FnOnce() -> Result<String>) {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else {
        return;
    };
    let written = text().and_then(|text| {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(&path);
        let put = |mut file: std::fs::File| file.write_all((plain(&text) + "\n").as_bytes());
        file.and_then(put).map_err(|e| Error::failed(e.to_string()))
    });
    if let Err(error) = written {
        warn(&format!("GITHUB_STEP_SUMMARY {}: {error}", path.display()));
    }
}

/// Writes a file atomically; replaces an existing one.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = Permissions::from_mode(0o644);
    let mut file = tempfile::Builder::new().permissions(mode).tempfile_in(dir)?;
    // The error of `file` itself would name a temporary file.
    file.as_file_mut().write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map(|_| ()).map_err(|e| e.error)
}

/// Writes a summary; prints it if it cannot be written, so that no measurement is lost.
fn keep(store: &Store, summary: &Summary, progress: &mut Progress) -> Result<()> {
    let kept = store.write(summary).map(drop);
    kept.or_else(|error| finish([Err(error), print_data(&to_json(summary))], progress))
}

/// Reports where the results are, and what to do next.
fn tell_saved(saved: usize, out: &Path, layout: Layout, progress: &mut Progress) {
    if saved > 0 {
        let (saved, dir) = (counted(saved as u64, "result"), directory(out));
        let layout = match layout {
            Layout::Versions => String::new(),
            layout => format!(" --layout {layout}"),
        };
        progress.note(&format!("Saved {saved} in {dir}. Next: loadgen report {dir}{layout}"));
    }
}

pub(crate) fn directory(path: &Path) -> String {
    let text = path.display().to_string();
    let text = if text == defaults::OUT { text + "/" } else { text };
    // Else it would be a flag.
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%~".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Returns the worst error. Warns of the others, so that none hides another.
fn finish(all: impl IntoIterator<Item = Result<()>>, progress: &mut Progress) -> Result<()> {
    let (worst, others) = ranked(all.into_iter().filter_map(Result::err));
    for other in &others {
        progress.warn(&write_with_hints(other));
    }
    worst.map_or(Ok(()), Err)
}

/// Writes an error that is not the worst one.
pub(crate) fn write_with_hints(error: &Error) -> String {
    let hints = error.hints().iter().map(|hint| format!("\nhint: {hint}"));
    format!("{error}{}", hints.collect::<String>())
}

pub(crate) fn terminal() -> Option<usize> {
    let term = console::Term::stdout();
    term.is_term().then(|| usize::from(term.size().1))
}

/// Renders the percentiles of each cell for a terminal; a load or a suite has none.
pub(crate) fn latency_for_person(steps: &[&Summary], quiet: bool) -> Result<String> {
    let term = console::Term::stdout();
    if quiet || !term.is_term() {
        return Ok(String::new());
    }
    let (rows, columns) = term.size();
    let timed = |step: &&Summary| step.load.is_none() && step.suite.is_none();
    let timed: Vec<&Summary> = steps.iter().copied().filter(timed).collect();
    let text = report::render_latency(&timed, (rows.into(), columns.into()))?;
    Ok(if text.is_empty() { text } else { format!("\n{text}") })
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::failed(format!("cannot make a runtime: {e}")))
}

pub(crate) fn random() -> Result<u64> {
    getrandom::u64().map_err(|e| Error::failed(format!("no random number to be had: {e}")))
}

pub(crate) fn check_gates<'a>(
    measured: impl Iterator<Item = (Vec<&'a Summary>, &'a [Gate])>,
    progress: &mut Progress,
) -> Result<()> {
    let mut all = Gates::default();
    for (summaries, gates) in measured.filter(|(_, gates)| !gates.is_empty()) {
        let (format, notes) = (Format::Markdown, Notes::Later);
        let options = Options { format, notes, ..Options::default() };
        let judged = report::gates(&summaries, gates, &options)?;
        to_step_summary(|| Ok(judged.text));
        all.gates.extend(judged.gates);
        all.held.extend(judged.held);
        all.failed.extend(judged.failed);
        all.undecided.extend(judged.undecided);
        all.scarce |= judged.scarce;
    }
    if let Some(text) = list_checks(&all, &all.held, "hold") {
        progress.note(&text);
    }
    gate_verdict(&all)
}

fn list_checks(gates: &Gates, sentences: &[String], verdict: &str) -> Option<String> {
    let checks = gates.held.len() + gates.failed.len() + gates.undecided.len();
    let (n, count) = (sentences.len(), gates.gates.len());
    let head = if count == checks {
        format!("{n} of {count} gates {verdict}")
    } else {
        let gates = counted(count as u64, "gate");
        format!("{n} of {checks} checks {verdict} ({gates}, one check a cell)")
    };
    (n > 0).then(|| format!("{head}:\n  {}", sentences.join("\n  ")))
}

pub(crate) fn gate_verdict(gates: &Gates) -> Result<()> {
    let Gates { failed, undecided, scarce, .. } = gates;
    if failed.is_empty() && undecided.is_empty() {
        return Ok(());
    }
    let parts = [(failed, "failed"), (undecided, "are undecided")];
    let lists = parts.into_iter().filter_map(|(of, verdict)| list_checks(gates, of, verdict));
    let text = lists.collect::<Vec<_>>().join("\n");
    let hint = match scarce {
        _ if !failed.is_empty() => return Err(Error::new(Kind::Gate, text)),
        true => "a longer --time gives more answers to judge by",
        false => "loadgen report has a footnote for each run that did not complete",
    };
    Err(Error::new(Kind::Undecided, text).hint(hint))
}

/// Finds steps that began and left no summary; with `latest` only those after the last of their label.
/// `is_asked` chooses among their records.
pub(crate) fn unfinished(
    paths: &[PathBuf],
    steps: &[&Summary],
    latest: bool,
    is_asked: impl Fn(&Record) -> bool,
) -> Vec<String> {
    let dirs: Vec<PathBuf> = paths.iter().filter(|path| path.is_dir()).cloned().collect();
    let records = match summary::records(&dirs) {
        Ok(records) => records,
        Err(error) => return vec![error.to_string()],
    };
    let at = |text: &str| text.parse::<Timestamp>().ok();
    let counts = |(name, record): &(String, Record)| {
        let of_label = |step: &&&Summary| record.label.as_ref().is_none_or(|l| *l == step.label);
        let newest = steps.iter().filter(of_label).filter_map(|step| at(&step.started_at)).max();
        let later = at(&record.begun_at).is_none_or(|begun| Some(begun) > newest);
        // A step that is begun again after a kill may have the number of the killed one.
        let is_left = !steps.iter().any(|step| step.record.as_ref() == Some(name));
        is_asked(record) && (!latest || later) && is_left
    };
    let describe = |record: &Record| {
        let label = record.label.as_ref().map_or_else(String::new, |label| format!(", {label}"));
        let what = line(&format!("{}{label}", record.what));
        format!("{what}: a step began at {} and left no summary", line(&record.begun_at))
    };
    records.iter().filter(|of| counts(of)).map(|(_, record)| describe(record)).collect()
}

pub(crate) fn decided(unfinished: &[String]) -> Result<()> {
    if unfinished.is_empty() {
        return Ok(());
    }
    Err(Error::new(Kind::Undecided, unfinished.join("; "))
        .hint("its loadgen was killed, or is at work; without its .begun file it does not count"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::hosts::{Launched, Token, find};
    use crate::plan::knobs::Knobs;
    use crate::plan::{Script, limits};
    use crate::summary::Location;
    use crate::terms::Launcher;
    use crate::workload::builtin;

    #[test]
    fn rank_does_not_wait_for_rank_0_when_its_script_is_too_large() {
        let env = |name: &str| match name {
            "LOADGEN_RANK" => Ok(Some("1".to_owned())),
            "LOADGEN_SIZE" => Ok(Some("2".to_owned())),
            _ => Ok(None),
        };
        let (of, meeting) = find(Launcher::Env, Some("127.0.0.1:1"), &env).expect("a rank");
        let token = Token::new(None).expect("none is needed");
        let launched = Launched { of, meeting, token, wait: Duration::ZERO };
        let stop = Stop::default();
        let mut invocation = Invocation {
            progress: Progress::new(true, None),
            stop: &stop,
            out: PathBuf::new(),
            calibration: None,
            hosts: Some(ClientHosts::Launched(Box::new(launched))),
            openmetrics: None,
            exporter: None,
            others_max: None,
        };
        let files = vec![("data.lua".to_owned(), vec![b' '; limits::AWAY_MAX + 1])];
        let script = Script { files, ..Script::of_text("") };
        let plan = Knobs::default().resolve(builtin().remove(0), 1).expect("a plan");
        let plan = Plan { script: Some(Arc::new(script)), ..plan };
        let refused = invocation.follow(vec![plan], || panic!("it looks for rank 0"));
        assert_eq!(refused.expect_err("too large").kind(), Kind::Usage);
    }

    #[test]
    fn killed_step_stays_unfinished_when_its_number_is_used_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(dir.path()).expect("there");
        let begin = || {
            let (id, what) = ("aa-1".to_owned(), "update-index".to_owned());
            let record = Record::new(id, what, true, Location::default(), BTreeMap::new());
            store.begin_record(&record).expect("written")
        };
        let paths = [dir.path().to_owned()];
        let count = |steps: &[&Summary]| unfinished(&paths, steps, false, |_| true).len();
        let step = || {
            let (step_id, record) = ("aa-1".to_owned(), Some(begin()));
            Summary { step_id, record, ..Summary::default() }
        };
        let (killed, again) = (step(), step());
        assert_eq!([count(&[]), count(&[&again]), count(&[&again, &killed])], [2, 1, 0]);
        assert!(unfinished(&paths, &[], false, |_| false).is_empty());
    }

    #[test]
    fn interruption_has_the_status_of_its_signal() {
        let stop = Stop::default();
        stop.ask(Kind::Terminated);
        let told = tell_signal(Error::new(Kind::Interrupted, "interrupted: x"), &stop);
        assert_eq!((told.kind(), told.to_string().as_str()), (Kind::Terminated, "interrupted: x"));
        assert_eq!(tell_signal(Error::server("y"), &stop).kind(), Kind::Server);
    }

    #[test]
    fn bars_alone_have_a_colour() {
        let text = with_coloured_bars("a █▌ 5\n▁▂\nb");
        assert_eq!(console::strip_ansi_codes(&text), "a █▌ 5\n▁▂\nb");
        assert_eq!(text.matches("\u{1b}[0m").count(), 2, "{text:?}");
    }

    #[test]
    fn a_directory_is_what_a_shell_takes_for_it() {
        for (path, text) in [
            ("results", "results/"),
            ("results/", "results/"),
            ("/tmp/a-b", "/tmp/a-b"),
            ("my runs", "'my runs'"),
            ("it's", r"'it'\''s'"),
            ("-x", "./-x"),
        ] {
            assert_eq!(directory(Path::new(path)), text);
        }
    }
}
