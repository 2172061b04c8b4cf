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

mod run;
mod statements;
mod tables;

use std::collections::BTreeMap;

use mysql_async::{Opts, OptsBuilder};

use self::statements::Dump;
use super::connect::{Doing, claim, control};
use super::set_up::Facts;
use crate::error::{Error, Result};
use crate::mysql::control::{impatient, pairs};
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::mysql::session::Session;
use crate::plan::timed::{InsertMode, LoadSource, LoadSpec};
use crate::progress::Progress;
use crate::stop::{COURTESY, Stop};
use crate::terms::units;
use crate::workload::table;

pub(crate) use self::run::Reloaded;
pub(crate) use self::tables::{FORCE, LoadedTable};

/// What the same command does when it is given again.
const AGAIN: &str = "the same command again drops the tables that it made and begins anew";

/// The driver's largest packet, bytes.
const PACKET_MAX: usize = 1 << 30;

/// Connected and ready to load; then what is left to do after it.
pub(crate) struct Reload {
    spec: LoadSpec,
    /// Whether tables that prepare made are dropped, too.
    force: bool,
    /// For what is not part of the load; it holds the lock against a second loadgen.
    control: Session,
    /// The one that loads; None once it is lost. MySQL 5.6 counts a session twice while it ends: it
    /// stays until the counters are read.
    session: Option<Session>,
    dump: Option<Dump>,
    /// The largest packet that both ends take, bytes.
    packet: usize,
    /// The loading session's character_set_… and collation_… variables at its start.
    character_sets: BTreeMap<String, String>,
    liveness: Liveness,
}

impl Reload {
    /// Opens the dump and two connections. `opts` are those of `target`; with `force` tables that
    /// prepare made are dropped, too.
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
        let dump = match &spec.source {
            LoadSource::Generated { .. } => None,
            LoadSource::Dump { path } => Some(Dump::open(path)?),
        };
        let liveness = Liveness::new(target, opts);
        let connecting = async {
            let mut control = control(target, opts, progress).await?;
            let _control_waits = liveness.waits(&control);
            let facts = Facts::read(&mut control).await?;
            let packet = facts.packet.min(PACKET_MAX);
            check(spec, &facts)?;
            if dump.is_none() {
                tables::may_take(&mut control, (1..=spec.tables).map(table::name), force).await?;
            }
            // The driver's own limit is below what some dumps hold.
            let opts = OptsBuilder::from_opts(opts.clone()).max_allowed_packet(Some(packet));
            let opts: Opts = opts.into();
            let mut session = Session::open(target, &opts, spec.charset.as_deref()).await?;
            let _session_waits = liveness.waits(&session);
            impatient(&mut session).await.doing("setting up a connection")?;
            claim(&mut session, &target.database, 0).await?;
            // LIKE's underscore is any character: right for both families of names.
            let sql = "SHOW SESSION VARIABLES WHERE Variable_name LIKE 'character_set_%' \
                       OR Variable_name LIKE 'collation_%'";
            let mut character_sets = pairs(&mut session, sql).await.doing("reading variables")?;
            character_sets.remove("character_sets_dir");
            Ok((control, session, packet, character_sets))
        };
        let (control, session, packet, character_sets) = liveness.during(stop, connecting).await?;
        let (spec, session) = (spec.clone(), Some(session));
        Ok(Reload { spec, force, control, session, dump, packet, character_sets, liveness })
    }

    /// Counts the rows, looks at a sample of generated ones, marks the tables as whole, and says
    /// goodbye. Interrupted, the tables stay as they are, without the mark.
    ///
    /// # Errors
    ///
    /// Data: a table does not hold what was sent. Server: silence.
    pub(crate) async fn verify(self, loaded: &Reloaded, stop: &Stop) -> Result<()> {
        let Reload { spec, mut control, session, liveness, .. } = self;
        if let Some(session) = session {
            session.close(COURTESY).await;
        }
        let _waits = liveness.waits(&control);
        liveness.during(stop, tables::verify(&mut control, &loaded.tables, &spec)).await?;
        control.close(COURTESY).await;
        Ok(())
    }
}

/// Checks that the server takes the statements that this load makes.
fn check(spec: &LoadSpec, facts: &Facts) -> Result<()> {
    match (&spec.source, spec.insert) {
        (LoadSource::Generated { .. }, InsertMode::Extended { bytes })
            if bytes > facts.packet as u64 =>
        {
            Err(Error::server(format!(
                "--insert-bytes {}: the server's max_allowed_packet is {}",
                units::count(bytes),
                facts.packet
            ))
            .hint("SET GLOBAL max_allowed_packet, or fewer --insert-bytes"))
        }
        (_, InsertMode::LoadData) if !facts.local_infile => {
            Err(Error::server("--mode load-data: local_infile is OFF")
                .hint("SET GLOBAL local_infile = 1"))
        }
        _ => Ok(()),
    }
}
