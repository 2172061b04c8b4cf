//! `loadgen load`: reload a table and time it.

mod measure;

use std::path::PathBuf;

use crate::cli::DisplayArgs;
use crate::cli::connection::ConnectionArgs;
use crate::cli::workload::{self, SandboxArgs};
use crate::cmd::sweep::probe_prefix;
use crate::cmd::timed::{Scene, Turn};
use crate::cmd::{conclude, keep, prepare, print_data, runtime};
use crate::error::{self, Error, Result};
use crate::load::{Numbers, marked, named};
use crate::mysql::target::Target;
use crate::plan::timed::{InsertMode, LoadSource, LoadSpec, insert_mode};
use crate::plan::units::{self, parse_count};
use crate::plan::{defaults, names};
use crate::progress::Progress;
use crate::report;
use crate::sandbox::{Sandbox, Spec};
use crate::stop::Stop;
use crate::summary::{Outcome, Store, Summary};
use crate::workload::Schema;

pub use measure::{line, measure};

/// Connections of the sandbox: a load has two, and readings some more.
const CONNECTIONS: u32 = 20;

/// Reload a table and time it.
#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
The rows are made on the fly, as mysqldump --opt would have written them, or read from a file that
mysqldump wrote, whose statements are sent as they are. One connection loads them. Tables that an
earlier load made are dropped, those of prepare with --force, others never.

Examples:
  loadgen load --rows 16M --label 8.0.33
  loadgen load --rows 16M --mode single --charset latin1
  mysqldump --opt db t1 | loadgen load --from-dump -")]
pub struct LoadArgs {
    /// Tables sbtest1 to sbtestN, one after the other
    #[arg(long, value_name = "N", default_value_t = defaults::TABLES, value_parser = workload::tables)]
    pub tables: u32,

    /// Rows of each table, up to 10G
    #[arg(long, value_name = "N", default_value = defaults::ROWS, value_parser = workload::row_count)]
    pub rows: u64,

    /// Seed of the rows' content
    #[arg(long, value_name = "N", default_value_t = defaults::DATA_SEED)]
    pub data_seed: u32,

    /// Load this file of mysqldump's instead, statement by statement as it is; - is standard input
    #[arg(
        long, value_name = "FILE",
        conflicts_with_all = ["tables", "rows", "data_seed", "mode", "insert_bytes"]
    )]
    pub from_dump: Option<PathBuf>,

    /// extended (many rows a statement), single (one row) or load-data (LOAD DATA LOCAL)
    /// [default: extended]
    #[arg(long, value_name = "MODE", value_parser = ["extended", "single", "load-data"], hide_possible_values = true)]
    pub mode: Option<String>,

    /// Bytes that an extended INSERT stays below [default: 1046528, as mysqldump]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub insert_bytes: Option<u64>,

    /// Character set of the statements (SET NAMES), such as latin1, utf8 or utf8mb4
    #[arg(long, value_name = "NAME", value_parser = names::charset)]
    pub charset: Option<String>,

    /// Load so many times; the table shows the median
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    /// The row of the table [default: the server's version]
    #[arg(long, value_name = "NAME", value_parser = names::label)]
    pub label: Option<String>,

    /// Something to keep in the summaries; may be given several times
    #[arg(long = "note", value_name = "KEY=VALUE", value_parser = workload::key_value)]
    pub notes: Vec<(String, String)>,

    /// Drop also tables that prepare made
    #[arg(long)]
    pub force: bool,

    /// Do not ask before that
    #[arg(long)]
    pub yes: bool,

    /// Directory of the summaries
    #[arg(long, value_name = "DIR", default_value = defaults::OUT)]
    pub out: PathBuf,

    /// Print the plan and connect nowhere
    #[arg(long)]
    pub list: bool,

    #[command(flatten)]
    pub display: DisplayArgs,

    #[command(flatten)]
    pub sandbox: SandboxArgs,

    #[command(flatten)]
    pub connection: ConnectionArgs,

    /// Command that goes before `grep -s -H . FILE…` to read /proc of the server's host, such as
    /// 'ssh db1' [default: read here, where the server runs on this host]
    #[arg(long, value_name = "COMMAND", help_heading = "Connection")]
    pub probe: Option<String>,
}

/// Runs the verb.
pub fn run(args: &LoadArgs, stop: &Stop) -> Result<()> {
    let spec = spec(args)?;
    if args.list {
        return print_data(&list(&spec, args));
    }
    let mut progress = Progress::new(args.display.quiet, args.display.progress);
    if cfg!(debug_assertions) {
        progress.warn("this is a debug build; its numbers are not for comparing");
    }
    let prefix = probe_prefix(args.probe.as_deref())?;
    let store = Store::open(&args.out)?;
    let sandbox = sandbox(args, stop, &mut progress)?;
    let target = match &sandbox {
        Some(sandbox) => Target::private(sandbox.socket()),
        None => prepare::find(&args.connection, &mut progress)?,
    };
    let mut loads = Loads { spec, args, store, progress, stop, summaries: Vec::new() };
    let outcome = runtime()?.block_on(loads.run(&target, prefix));
    let stopped = sandbox.map_or(Ok(()), Sandbox::stop);
    loads.progress.clear();
    let shown = loads.print_table();
    conclude([outcome, shown, stopped], &mut loads.progress)
}

/// Flags → what is loaded.
fn spec(args: &LoadArgs) -> Result<LoadSpec> {
    let wrong = |what: String| Error::usage(what.replace("insert_bytes", "--insert-bytes"));
    let source = match &args.from_dump {
        Some(path) if path.as_os_str() == "-" && args.repeat > 1 => {
            return Err(Error::usage(
                "--from-dump -: standard input comes once, not --repeat times",
            )
            .hint("give it a file"));
        }
        Some(path) => LoadSource::Dump { path: path.clone() },
        None => LoadSource::Generated { rows: args.rows, data_seed: args.data_seed },
    };
    let insert = insert_mode(args.mode.as_deref(), args.insert_bytes).map_err(wrong)?;
    let spec = LoadSpec { tables: args.tables, source, insert, charset: args.charset.clone() };
    spec.check().map_err(wrong)?;
    Ok(spec)
}

fn list(spec: &LoadSpec, args: &LoadArgs) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<14} {}", error::line(&value));
    };
    line("workload", spec.name());
    match &spec.source {
        LoadSource::Generated { rows, data_seed } => {
            line("tables", spec.tables.to_string());
            line("rows", units::count(*rows));
            line("data seed", data_seed.to_string());
            line("mode", spec.insert.to_string());
            if let InsertMode::Extended { bytes } = spec.insert {
                line("insert bytes", units::count(bytes));
            }
        }
        LoadSource::Dump { path } => line("dump", path.display().to_string()),
    }
    line("label", args.label.clone().unwrap_or_else(|| "the server's version".to_owned()));
    let handshake = || "utf8mb4 (utf8 before 5.5.3)".to_owned();
    line("charset", spec.charset.clone().unwrap_or_else(handshake));
    for (key, value) in &args.notes {
        line("note", format!("{key}={value}"));
    }
    line("repeats", args.repeat.to_string());
    line("out", args.out.display().to_string());
    text
}

fn sandbox(args: &LoadArgs, stop: &Stop, progress: &mut Progress) -> Result<Option<Sandbox>> {
    let Some(program) = &args.sandbox.sandbox else { return Ok(None) };
    let spec = Spec {
        program: program.0.clone(),
        options: args.sandbox.options.clone(),
        max_connections: CONNECTIONS,
        ..Spec::default()
    };
    let interrupted = || stop.asked().is_some();
    Sandbox::start(&spec, &mut |text| progress.note(text), &interrupted).map(Some)
}

struct Loads<'a> {
    spec: LoadSpec,
    args: &'a LoadArgs,
    store: Store,
    progress: Progress,
    stop: &'a Stop,
    summaries: Vec<Summary>,
}

impl Loads<'_> {
    async fn run(&mut self, target: &Target, prefix: Vec<String>) -> Result<()> {
        let (label, notes) = (self.args.label.as_deref(), self.args.notes.iter().cloned());
        let scene = Scene::look(target, label, notes.collect(), prefix, self.stop).await?;
        let server = &scene.identity.server;
        self.progress.note(&format!(
            "{} {} at {}: {}",
            server.version,
            server.version_comment,
            scene.target.address,
            self.spec.name()
        ));
        let private = self.args.sandbox.sandbox.is_some();
        if self.args.force && !self.args.yes && !private && prepare::on_terminal() {
            let prepared = marked(&scene.target, &scene.opts, false, self.stop).await?;
            prepare::agree_to_drop(&self.names_of(&prepared), &scene.target, self.stop)?;
        }
        let repeats = self.args.repeat;
        for repeat in 1..=repeats {
            self.stop.check()?;
            let turn = Turn { number: repeat, repeat, repeats, title: None };
            let measured =
                measure(&scene, &self.spec, self.args.force, &turn, &mut self.progress).await?;
            let kept = self.keep(measured.summary);
            conclude([measured.error.map_or(Ok(()), Err), kept], &mut self.progress)?;
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
    fn keep(&mut self, summary: Summary) -> Result<()> {
        let kept = keep(&self.store, &summary, &mut self.progress);
        self.progress.note(&line(&summary));
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
