//! Timed reloads: tables dropped, created and loaded again over one connection, as
//! `mysql < dump.sql` would.
//!
//! ```text
//! a thread makes or reads statements ─▶ batches ─▶ one connection ─▶ counted, sampled, marked
//! ```
//!
//! What belongs to the load is on the clock: every statement of the dump, from the first to the
//! answer of the last. What loadgen does for itself is not: looking whose a table is, dropping its
//! own one of before, marking, counting.

mod batch;
mod generate;
mod run;
mod tables;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use mysql_async::{Opts, OptsBuilder};

use self::batch::Halt;
use self::generate::Recipe;
use super::dump::Splitter;
use super::fault::explain;
use super::set_up;
use crate::error::{Error, Kind, Result};
use crate::mysql::control::{impatient, one, pairs};
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::mysql::session::Session;
use crate::observe::process::Cost;
use crate::observe::timeline::Timeline;
use crate::plan::timed::{InsertMode, LoadSource, LoadSpec};
use crate::plan::{limits, units};
use crate::progress::Progress;
use crate::stop::Stop;
use crate::summary::ErrorCount;
use crate::workload::table;

pub(crate) use self::tables::{FORCE, LoadedTable};

/// What the same command does when it is given again.
const AGAIN: &str = "the same command again drops the tables that it made and begins anew";

/// Connected and ready to load.
pub(crate) struct Reload {
    spec: LoadSpec,
    /// Whether tables that prepare made are dropped, too.
    force: bool,
    /// For what is not part of the load; it holds the lock against a second loadgen.
    control: Session,
    /// The one that loads.
    session: Session,
    source: Source,
    /// The largest packet that both ends take, bytes.
    packet: usize,
    character_sets: BTreeMap<String, String>,
    liveness: Liveness,
}

/// Where the statements come from.
enum Source {
    Generated(Recipe),
    Dump {
        file: Box<dyn Read + Send>,
        name: String,
        /// Its length, bytes, where that is known.
        length: Option<u64>,
    },
}

/// What a load came to.
#[derive(Debug)]
pub(crate) struct Reloaded {
    /// What ended it early.
    pub error: Option<Error>,
    /// The first statement.
    pub started_at: jiff::Timestamp,
    /// The same instant, for readings beside it.
    pub began: std::time::Instant,
    /// From the first statement to the last answer, loadgen's own doings left out, seconds.
    pub measured_s: f64,
    /// Statements that were answered well.
    pub statements: u64,
    /// Bytes of these, and of the lines of LOAD DATA.
    pub bytes: u64,
    /// Rows that the server says it took.
    pub rows: u64,
    /// Warnings of the INSERTs and LOAD DATAs.
    pub warnings: u64,
    /// The tables, in the order in which they came.
    pub tables: Vec<LoadedTable>,
    /// Character set of the statements: the dump's own SET NAMES, else the session's.
    pub charset: String,
    /// The loading session's character_set_… and collation_… variables at its start.
    pub character_sets: BTreeMap<String, String>,
    /// The statement that failed.
    pub errors: Vec<ErrorCount>,
    /// Statements a second, and their times.
    pub timeline: Timeline,
    /// CPU time of this process meanwhile.
    pub cost: Cost,
}

impl Reload {
    /// Opens the dump and two connections. `opts` are [`ConnectOptions::opts`] of `target`; with `force`
    /// tables that prepare made are dropped, too.
    ///
    /// # Errors
    ///
    /// Usage: a file that cannot be opened, an unknown character set, no database. Server: none,
    /// or one that does not take such statements. Data: tables in the way, all named; those of a
    /// dump are known when it comes to them.
    pub(crate) async fn open(
        target: &ConnectOptions,
        opts: &Opts,
        spec: &LoadSpec,
        force: bool,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<Reload> {
        let source = source(spec)?;
        let liveness = Liveness::new(target, opts);
        let connecting = Self::connect(target, opts, spec, force, &liveness, progress);
        let Connected { control, session, packet, character_sets } =
            liveness.during(stop, connecting).await?;
        Ok(Reload {
            spec: spec.clone(),
            force,
            control,
            session,
            source,
            packet,
            character_sets,
            liveness,
        })
    }

    async fn connect(
        target: &ConnectOptions,
        opts: &Opts,
        spec: &LoadSpec,
        force: bool,
        liveness: &Liveness,
        progress: &mut Progress,
    ) -> Result<Connected> {
        let mut control = set_up::control(target, opts, progress).await?;
        let _control_waits = liveness.waits(&control);
        let failed = |f| explain(&f, "reading variables");
        let packet = one(&mut control, "SELECT @@max_allowed_packet").await.map_err(failed)?;
        // Without an answer the smallest default that any of the servers has.
        let packet = packet.and_then(|n| n.parse::<usize>().ok()).unwrap_or(1 << 20).min(1 << 30);
        if let InsertMode::Extended { bytes } = spec.insert
            && matches!(spec.source, LoadSource::Generated { .. })
            && bytes > packet as u64
        {
            return Err(Error::server(format!(
                "--insert-bytes {}: the server's max_allowed_packet is {packet}",
                units::count(bytes)
            ))
            .hint("SET GLOBAL max_allowed_packet, or fewer --insert-bytes"));
        }
        if spec.insert == InsertMode::LoadData {
            let allowed = one(&mut control, "SELECT @@local_infile").await.map_err(failed)?;
            if allowed.as_deref() == Some("0") {
                return Err(Error::server("--mode load-data: local_infile is OFF")
                    .hint("SET GLOBAL local_infile = 1"));
            }
        }
        if let LoadSource::Generated { .. } = spec.source {
            tables::may_take(&mut control, (1..=spec.tables).map(table::name), force).await?;
        }
        // The driver's own limit is below what some dumps hold.
        let opts = OptsBuilder::from_opts(opts.clone()).max_allowed_packet(Some(packet));
        let opts: Opts = opts.into();
        let mut session = Session::open(target, &opts, spec.charset.as_deref()).await?;
        let _session_waits = liveness.waits(&session);
        impatient(&mut session).await.map_err(failed)?;
        set_up::claim(&mut session, &target.database, 0).await.map_err(failed)?;
        // LIKE's underscore is any character: right for both families of names.
        let sql = "SHOW SESSION VARIABLES WHERE Variable_name LIKE 'character_set_%' \
                   OR Variable_name LIKE 'collation_%'";
        let mut character_sets = pairs(&mut session, sql).await.map_err(failed)?;
        character_sets.remove("character_sets_dir");
        Ok(Connected { control, session, packet, character_sets })
    }

    /// Loads, until all is loaded, something fails, the server is silent, or `stop` is asked. On a `current_thread`
    /// runtime. The other half of the answer counts what is there: see [`Loaded::verify`].
    pub(crate) async fn run(
        self,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<(Reloaded, Loaded)> {
        run::run(self, stop, progress).await
    }
}

/// What is left to do after a load.
pub(crate) struct Loaded {
    spec: LoadSpec,
    control: Session,
    /// MySQL 5.6 counts a session twice while it ends: it stays until the counters are read.
    session: Option<Session>,
    liveness: Liveness,
}

/// The connections of a load, and what the server says of itself.
struct Connected {
    control: Session,
    session: Session,
    packet: usize,
    character_sets: BTreeMap<String, String>,
}

impl Loaded {
    /// Counts the rows, looks at a sample of generated ones, marks the tables as whole, and says
    /// goodbye. Interrupted, the tables stay as they are, without the mark.
    ///
    /// # Errors
    ///
    /// Data: a table does not hold what was sent. Server: silence.
    pub(crate) async fn verify(self, loaded: &Reloaded, stop: &Stop) -> Result<()> {
        let Loaded { spec, mut control, session, liveness } = self;
        if let Some(session) = session {
            session.close(limits::COURTESY).await;
        }
        let _waits = liveness.waits(&control);
        liveness.during(stop, tables::verify(&mut control, &loaded.tables, &spec)).await?;
        control.close(limits::COURTESY).await;
        Ok(())
    }
}

fn source(spec: &LoadSpec) -> Result<Source> {
    match &spec.source {
        LoadSource::Generated { rows, data_seed } => Ok(Source::Generated(Recipe {
            tables: spec.tables,
            rows: *rows,
            data_seed: *data_seed,
            insert: spec.insert,
        })),
        LoadSource::Dump { path } if path == Path::new("-") => Ok(Source::Dump {
            file: Box::new(std::io::stdin()),
            name: "standard input".to_owned(),
            length: None,
        }),
        LoadSource::Dump { path } => {
            let name = path.display().to_string();
            let failed =
                |what: &str| Error::new(Kind::Usage, format!("--from-dump {name}: {what}"));
            let file = File::open(path).map_err(|e| failed(&e.to_string()))?;
            let facts = file.metadata().map_err(|e| failed(&e.to_string()))?;
            if facts.is_dir() {
                return Err(failed("it is a directory"));
            }
            let length = facts.is_file().then_some(facts.len());
            Ok(Source::Dump { file: Box::new(file), name, length })
        }
    }
}

/// The thread's work.
fn produce(
    source: Source,
    limit: usize,
) -> impl FnOnce(&mut batch::Feed) -> std::result::Result<(), Halt> {
    move |feed| match source {
        Source::Generated(recipe) => generate::generate(feed, &recipe),
        Source::Dump { file, name, .. } => batch::read(feed, Splitter::new(file, &name, limit)),
    }
}
