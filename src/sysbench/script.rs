//! A script of sysbench's, from its first line to its end: options, commands, reports.

use std::cell::{Cell, RefCell};
use std::io::Read as _;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures_util::future::{Either, LocalBoxFuture, join_all, select};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::arguments::{invalid_option, invalid_value, unexported, unset};
use super::options::{OFF, ON, OPTIONS, OptionKind, OptionValues, int, leading_number};
use super::output::{Counted, INITIALIZING, Level, Log};
use super::run::{self, ReportHooks};
use super::settings::{Ended, ScriptCall, Settings};
use crate::engine::{QueueLength, Runner};
use crate::error::Result;
use crate::lua::{Declared, Entry, State, Vm};
use crate::mysql::ServerLink;
use crate::mysql::wire::Inbox;
use crate::observe::seconds;
use crate::plan::{Script, ScriptIdentity, ScriptRandom, ScriptValue};
use crate::progress::say;
use crate::stop::{COURTESY, Stop, locked, or_stop, within};
use crate::summary::VerifyQuery;

/// `sysbench.cmdline.ARG_*`.
const BOOL: u8 = 1;
const INT: u8 = 2;
const SIZE: u8 = 3;
const DOUBLE: u8 = 4;
const LIST: u8 = 6;
const FILE: u8 = 7;
/// Without a seed the random numbers of commands are the same in every run.
pub(super) const SEED: u64 = 1;

pub(super) async fn run(
    settings: &Settings,
    call: &ScriptCall,
    log: &Arc<Mutex<Log>>,
    stop: &Stop,
) -> Result<Ended> {
    let link = ServerLink::to(settings.connect.clone(), stop)?;
    let command = Box::pin(run_command(settings, call, log, &link, stop));
    or_stop(&link.stop, command).await
}

/// The parts of a run that all states of a script share.
struct Program<'a> {
    settings: &'a Settings,
    call: &'a ScriptCall,
    log: &'a Arc<Mutex<Log>>,
    link: &'a ServerLink,
    inbox: Inbox,
}

impl Program<'_> {
    fn vm(&self, script: &Arc<Script>) -> Result<Vm> {
        let log = Arc::clone(self.log);
        // A run with the same seed draws other numbers.
        let seed = u64::from(self.settings.seed) << 32 | SEED;
        Vm::new(script, seed, Box::new(move |line| locked(&log).take(line)))
    }

    fn runner(&self, vm: &Vm, tid: u32) -> Result<Runner<'_>> {
        let server = (self.link, &self.inbox);
        let text = !self.settings.prepared;
        Ok(Runner::new(vm.state(tid)?, server, &self.settings.ignored, text))
    }

    fn fatal(&self, words: String) -> Ended {
        locked(self.log).fatal(&[words]);
        1
    }

    /// Runs something; writes why it failed. Returns the exit status.
    async fn run(&self, runner: &mut Runner<'_>, entry: Entry<'_>) -> Ended {
        match runner.run(entry).await {
            Ok(went_well) => Ended::from(!went_well),
            Err(words) => self.fatal(words),
        }
    }

    /// Runs a command in a state of its own for each thread, whose results do not count.
    async fn run_in_all(&self, vm: &Vm, name: &str) -> Result<Ended> {
        locked(self.log).notice(INITIALIZING);
        let threads: Result<Vec<Runner<'_>>> =
            (0..self.settings.threads).map(|tid| self.runner(vm, tid)).collect();
        let ended = join_all(threads?.into_iter().map(async |mut runner| {
            let mut status = self.run(&mut runner, Entry::Chunk).await;
            if status == 0 {
                let ran = runner.run(Entry::Command(name)).await;
                status = ran.err().map_or(0, |words| self.fatal(words));
            }
            runner.close().await;
            status
        }));
        Ok(ended.await.into_iter().max().unwrap_or(0))
    }
}

async fn run_command(
    settings: &Settings,
    call: &ScriptCall,
    log: &Arc<Mutex<Log>>,
    link: &ServerLink,
    stop: &Stop,
) -> Result<Ended> {
    locked(log).has_driver = false;
    let program = Program { settings, call, log, link, inbox: Inbox::default() };
    let mut script = Arc::new(read_script(settings, call)?);
    let vm = program.vm(&script)?;
    let mut main = program.runner(&vm, 0)?;
    let status = program.run(&mut main, Entry::Chunk).await;
    if status != 0 {
        return Ok(status);
    }
    let declared = match main.state.declared() {
        Ok(declared) => declared,
        Err(words) => {
            let function = "`sysbench.cmdline.read_cmdline_options' function failed";
            return Ok(program.fatal(format!("{function}: {words}")));
        }
    };
    let Some(command) = call.command.as_deref() else { return Ok(0) };
    let own = match script_options(declared.as_deref(), call, &main.state) {
        Ok(options) => options,
        Err(words) => return Ok(refuse(&words)),
    };
    Arc::make_mut(&mut script).options.extend(own.iter().cloned());
    vm.set_options(&script)?;
    main.state.take_options()?;
    for name in &call.configured {
        if declared.iter().flatten().any(|option| option.name.replace('-', "_") == *name) {
            say(&format!("loadgen: {}", unset(name)));
        } else {
            locked(log).say(Level::Warning, &unexported(name));
        }
    }
    let is_defined = main.state.has(command)?;
    let status = match (command, main.state.own_command(command)?) {
        (_, Some(true)) if settings.threads > 1 => program.run_in_all(&vm, command).await?,
        (_, Some(_)) => program.run(&mut main, Entry::Command(command)).await,
        ("run", None) => {
            Arc::make_mut(&mut script).identity = ScriptIdentity::new(main.state.files(), &own);
            run_events(&program, &mut main, &script, stop).await?
        }
        ("help" | "prepare" | "cleanup", None) if is_defined => {
            program.run(&mut main, Entry::Call(command)).await
        }
        ("help", None) if declared.is_some() => {
            locked(log).script_line(&format!("{} options:", display_name(call)));
            main.state.print_options()?;
            0
        }
        ("help" | "prepare" | "cleanup", None) => {
            let test = display_name(call);
            refuse(&format!("'{test}' test does not implement the '{command}' command."))
        }
        _ => refuse(&format!("Unknown command: {command}")),
    };
    main.state.close()?;
    main.close().await;
    Ok(status)
}

/// Says on standard error why nothing is run.
fn refuse(words: &str) -> Ended {
    say(words);
    1
}

/// Returns the name of a script in messages.
fn display_name(call: &ScriptCall) -> &str {
    if call.path == "-" {
        return "<stdin>";
    }
    Path::new(&call.path).file_name().and_then(|name| name.to_str()).unwrap_or(&call.path)
}

async fn run_events(
    program: &Program<'_>,
    main: &mut Runner<'_>,
    script: &Arc<Script>,
    stop: &Stop,
) -> Result<Ended> {
    let Program { settings, call, log, .. } = *program;
    if main.state.has("init")? {
        let status = program.run(main, Entry::Call("init")).await;
        if status != 0 {
            return Ok(status);
        }
    }
    if !main.state.has("event")? {
        let name = display_name(call);
        return Ok(program.fatal(format!("cannot find the event() function in {name}")));
    }
    let values = &settings.values;
    let queries = match main.state.verify_queries() {
        Ok(queries) => queries,
        Err(words) => return Ok(program.fatal(words)),
    };
    let (mut hooks, mut reports) = (Hooks::new(settings, queries), Vec::new());
    let mut report = |name, is_due: bool| {
        let (sender, due) = unbounded_channel();
        reports.extend(is_due.then(|| write_reports(program, script, name, due)));
        Some(Due(RefCell::new(Some(sender))))
    };
    if main.state.has_hook(INTERMEDIATE)? {
        hooks.intermediate = report(INTERMEDIATE, values.int("report-interval") > 0);
    }
    if main.state.has_hook(CUMULATIVE)? {
        hooks.cumulative = report(CUMULATIVE, !values.checkpoints().is_empty());
    }
    let run = pin!(Box::pin(run::run(settings, Some((script, &hooks)), log, stop)));
    let status = match select(run, join_all(reports)).await {
        Either::Left((status, _)) => status?,
        Either::Right((ended, run)) => {
            hooks.written.notify_one();
            let status = run.await?;
            ended.into_iter().collect::<Result<()>>()?;
            status
        }
    };
    if let Some(last) = hooks.last.take() {
        program.run(main, Entry::Hook(CUMULATIVE, &last)).await;
    }
    // sysbench ends at once after a forced shutdown.
    if status != run::FORCED && hooks.has_started.get() && main.state.has("done")? {
        return Ok(status.max(program.run(main, Entry::Call("done")).await));
    }
    Ok(status)
}

const INTERMEDIATE: &str = "report_intermediate";
const CUMULATIVE: &str = "report_cumulative";

/// The numbers of a report by name.
type Stat = Vec<(&'static str, f64)>;

/// Reports that are due, until no more follow.
struct Due(RefCell<Option<UnboundedSender<Stat>>>);

impl Due {
    fn add(&self, stat: Stat) {
        if let Some(sender) = &*self.0.borrow() {
            // A state that has failed has said so, and reads none.
            let _ = sender.send(stat);
        }
    }
}

/// Writes the reports of one kind in a state of their own, as in sysbench, until no more follow.
async fn write_reports(
    program: &Program<'_>,
    script: &Arc<Script>,
    name: &'static str,
    mut due: UnboundedReceiver<Stat>,
) -> Result<()> {
    let vm = program.vm(script)?;
    let mut runner = program.runner(&vm, program.settings.threads)?;
    if program.run(&mut runner, Entry::Chunk).await == 0 {
        while let Some(stat) = due.recv().await {
            program.run(&mut runner, Entry::Hook(name, &stat)).await;
        }
    }
    runner.state.close()?;
    runner.close().await;
    Ok(())
}

struct Hooks<'a> {
    settings: &'a Settings,
    queries: Vec<VerifyQuery>,
    /// None where the script has no hook of the kind.
    intermediate: Option<Due>,
    cumulative: Option<Due>,
    /// The threads have begun: only then does sysbench call `done`.
    has_started: Cell<bool>,
    /// The report at the end, which is the main state's.
    last: Cell<Option<Stat>>,
    /// All reports but the last one are written.
    written: Notify,
}

impl<'a> Hooks<'a> {
    fn new(settings: &'a Settings, queries: Vec<VerifyQuery>) -> Hooks<'a> {
        Hooks {
            settings,
            queries,
            intermediate: None,
            cumulative: None,
            has_started: Cell::new(false),
            last: Cell::default(),
            written: Notify::new(),
        }
    }
}

impl ReportHooks for Hooks<'_> {
    fn start(&self) {
        self.has_started.set(true);
    }

    fn intermediate(&self, part: &Counted, at_s: u64, queue: QueueLength) -> bool {
        let Some(due) = &self.intermediate else { return false };
        let mut stat = part.stat(self.settings, self.settings.threads, at_s as f64);
        stat.push(("queue_length", queue.waiting as f64));
        stat.push(("concurrency", queue.busy as f64));
        due.add(stat);
        true
    }

    fn checkpoint(&self, part: &Counted) -> bool {
        let Some(due) = &self.cumulative else { return false };
        due.add(part.stat(self.settings, self.settings.threads, seconds(part.to)));
        true
    }

    fn last(&self, part: &Counted) -> bool {
        let is_own = self.cumulative.is_some();
        self.last.set(is_own.then(|| part.stat(self.settings, 0, seconds(part.to))));
        is_own
    }

    fn queries(&self) -> &[VerifyQuery] {
        &self.queries
    }

    fn finish(&self) -> LocalBoxFuture<'_, ()> {
        for due in [&self.intermediate, &self.cumulative].into_iter().flatten() {
            due.0.take();
        }
        // sysbench does not wait at all for a hook that is at work.
        Box::pin(async { within(COURTESY, self.written.notified()).await.unwrap_or(()) })
    }
}

pub(super) fn read_script(settings: &Settings, call: &ScriptCall) -> Result<Script> {
    let mut text = call.text.map(str::to_owned);
    if call.path == "-" {
        let mut read = String::new();
        let outcome = std::io::stdin().read_to_string(&mut read);
        outcome.map_err(|error| crate::error::Error::usage(format!("standard input: {error}")))?;
        text = Some(read);
    }
    let values = &settings.values;
    let number = |name: &str| values.int(name).clamp(0, 1_000) as u32;
    Ok(Script {
        path: call.path.clone(),
        text,
        command: call.command.clone(),
        argv: call.argv.clone(),
        options: own_options(values),
        package_path: call.package_path.clone(),
        stock_path: call.stock_path.clone(),
        server: settings.server.clone(),
        // The driver's name is the script's matter.
        fault: settings.driver_fault.clone().filter(|_| values.text("db-driver") == "mysql"),
        random: ScriptRandom {
            rand_type: values.rand_type().expect("the command line was checked"),
            iterations: number("rand-spec-iter"),
            percent: number("rand-spec-pct"),
            within: number("rand-spec-res"),
            pareto_h: values.number("rand-pareto-h"),
            zipfian_exp: values.number("rand-zipfian-exp"),
        },
        text_statements: !settings.prepared,
        is_native: call.to_stderr,
        files: Vec::new(),
        is_away: false,
        identity: ScriptIdentity::default(),
    })
}

/// Lists sysbench's own options as scripts see them. The password is not among them.
fn own_options(values: &OptionValues) -> Vec<(String, ScriptValue)> {
    let shown = OPTIONS.iter().filter(|option| !option.is_of_test() && !option.is_own());
    let mut options = Vec::new();
    for option in shown {
        let text = values.text(option.key());
        let value = match option.kind {
            OptionKind::Bool | OptionKind::Ssl => ScriptValue::Switch(ON.contains(&text)),
            OptionKind::Int | OptionKind::Count | OptionKind::Double => {
                ScriptValue::Number(values.number(option.key()))
            }
            OptionKind::Size => ScriptValue::Number(size(text)),
            OptionKind::List => ScriptValue::List(split_list(text)),
            OptionKind::Text => ScriptValue::Text(text.to_owned()),
            OptionKind::File => continue,
        };
        options.push((option.key().replace('-', "_"), value));
    }
    options
}

/// Reads the options that a script declares; an error has sysbench's words. A script that declares none takes all,
/// as texts.
pub(super) fn script_options(
    declared: Option<&[Declared]>,
    call: &ScriptCall,
    state: &State,
) -> std::result::Result<Vec<(String, ScriptValue)>, String> {
    if let Some(wrong) = &call.wrong {
        return Err(wrong.clone());
    }
    let mut options = Vec::new();
    let Some(declared) = declared else {
        for (name, value) in &call.given {
            let text = value.clone().unwrap_or_default();
            options.push((name.replace('-', "_"), ScriptValue::Text(text)));
        }
        return Ok(options);
    };
    let is =
        |option: &Declared, name: &str| option.name.replace('-', "_") == name.replace('-', "_");
    for (name, value) in &call.given {
        let wrong = || invalid_option(name, value.as_deref());
        let option = declared.iter().find(|option| is(option, name)).ok_or_else(wrong)?;
        // Without a value a switch is on; an empty one is none.
        let is_empty = option.kind == BOOL && value.as_deref() == Some("");
        if is_empty || !state.validates(&option.name, value.as_deref().unwrap_or_default())? {
            return Err(wrong());
        }
    }
    for option in declared {
        let given = call.given.iter().rev().find(|(name, _)| is(option, name));
        let (name, text) =
            given.map_or((&option.name, &option.default), |(name, text)| (name, text));
        if let Some(value) = read_value(option, name, text.as_deref().unwrap_or_default())? {
            options.push((option.name.replace('-', "_"), value));
        }
    }
    Ok(options)
}

fn read_value(
    option: &Declared,
    name: &str,
    text: &str,
) -> std::result::Result<Option<ScriptValue>, String> {
    let value = match option.kind {
        FILE => return Ok(None),
        // Without a value it is on, as in sysbench.
        BOOL if ON.contains(&text) => ScriptValue::Switch(true),
        BOOL if OFF.contains(&text) => ScriptValue::Switch(false),
        BOOL => return Err(invalid_option(name, Some(text))),
        INT => {
            let wrong = || invalid_value(&option.name.replace('-', "_"), text);
            ScriptValue::Number(int(text).ok_or_else(wrong)?.into())
        }
        SIZE => ScriptValue::Number(size(text)),
        DOUBLE => ScriptValue::Number(leading_number(text)),
        LIST => ScriptValue::List(split_list(text)),
        _ => ScriptValue::Text(text.to_owned()),
    };
    Ok(Some(value))
}

fn split_list(text: &str) -> Vec<String> {
    text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// Parses digits, and K, M, G or T behind them; as in sysbench, all else is 0.
fn size(text: &str) -> f64 {
    let (digits, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    let power = match unit.bytes().next() {
        None => 0,
        Some(b'k' | b'K') => 10,
        Some(b'm' | b'M') => 20,
        Some(b'g' | b'G') => 30,
        Some(b't' | b'T') => 40,
        Some(_) => return 0.0,
    };
    leading_number(digits) * f64::from(power).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_scripts_options_are_read_as_sysbench_reads_them() {
        for (text, expected) in [
            ("8", 8),
            ("5k", 5120),
            ("5KB", 5120),
            ("1T", 1 << 40),
            ("", 0),
            ("K", 0),
            ("1.5G", 0),
            ("-3", 0),
            (" 8", 0),
            ("8b", 0),
        ] {
            assert_eq!(size(text) as u64, expected, "{text}");
        }
        assert_eq!(split_list(",a, b,,"), ["a", " b"]);
        let whole = Declared { name: "a-b".to_owned(), default: None, kind: INT };
        let wrong = read_value(&whole, "a-b", "x");
        assert_eq!(wrong, Err("Invalid value for the 'a_b' option: 'x'".to_owned()));
    }
}
