//! Brings a server into the state that a step is to start from: `--warm`, `--settle`, `--ahi`.

use std::time::{Duration, Instant};

use mysql_async::Opts;

use super::steps::answer;
use crate::engine::Tables;
use crate::error::{Error, Result};
use crate::mysql::control::one;
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::mysql::session::{Failure, Session};
use crate::mysql::status;
use crate::plan::{Ahi, Warm};
use crate::plan::{Plan, units};
use crate::progress::Progress;
use crate::run::settle::{put_back, settle};
use crate::stop::Stop;
use crate::summary::Prepared;
use crate::workload::random::{Stream, name_part, seed_of};
use crate::workload::table::quoted;

/// Rows of one statement of `--warm pool`.
const PIECE: u64 = 100_000;
/// Ids of one statement of `--ahi warm`.
const IDS: usize = 200;
/// `--ahi warm` compares the share of hits of periods so long.
const PERIOD: Duration = Duration::from_secs(1);
/// And is done when so many in turn differ by less than [`SETTLED_HITS`].
const PERIODS: u32 = 3;
/// See [`PERIODS`].
const SETTLED_HITS: f64 = 0.01;
/// It ends in any case after so long.
const AHI_MOST: Duration = Duration::from_mins(2);

/// Where a step is to run.
pub(super) struct Preparation<'a> {
    pub(super) plan: &'a Plan,
    pub(super) target: &'a ConnectOptions,
    /// [`ConnectOptions::opts`] of it.
    pub(super) opts: &'a Opts,
    pub(super) tables: Tables,
    pub(super) stop: &'a Stop,
}

impl Preparation<'_> {
    /// What is answered soon, if at all.
    async fn ask<T>(&self, asking: impl Future<Output = Result<T>>) -> Result<T> {
        answer(self.stop, &self.target.address, asking).await
    }
}

/// Reads all rows of the tables, and the index of their second column, through the buffer pool, and
/// says how far it is.
pub(super) async fn warm(
    preparation: &Preparation<'_>,
    control: &mut Session,
    progress: &mut Progress,
) -> Result<()> {
    // A statement takes as long as its pages do: whether the server is there, is asked beside it.
    let liveness = Liveness::new(preparation.target, preparation.opts);
    let _waits = liveness.waits(control);
    liveness.during(preparation.stop, read_all(preparation.tables, control, progress)).await
}

async fn read_all(tables: Tables, control: &mut Session, progress: &mut Progress) -> Result<()> {
    let (began, rows) = (Instant::now(), tables.held.unwrap_or(tables.rows));
    let shown = units::count(rows);
    let noun = if tables.count == 1 { "table" } else { "tables" };
    progress.note(&format!("reading all rows once: {} {noun} of {shown} rows", tables.count));
    progress.restart();
    for number in 1..=tables.count {
        let reads = tables.schema.reads(number, rows, PIECE);
        for (done, sql) in reads.iter().enumerate() {
            progress.update(|| {
                let here = done as f64 / reads.len() as f64;
                let part = (f64::from(number - 1) + here) / f64::from(tables.count);
                let name = tables.schema.name(number);
                format!(
                    "reading all rows: {name}, {:.0} % of all, {:.0?}",
                    part * 100.0,
                    began.elapsed()
                )
            });
            control.query(sql).await?;
        }
    }
    progress.clear();
    progress.note(&format!("all rows were read in {:.1} s", began.elapsed().as_secs_f64()));
    Ok(())
}

/// What is done before each step; None where nothing was asked for.
///
/// # Errors
///
/// Server, with a hint: it may not be done, or not on this server.
pub(super) async fn step(
    preparation: &Preparation<'_>,
    control: &mut Session,
    progress: &mut Progress,
) -> Result<Option<Prepared>> {
    let before = &preparation.plan.before;
    if before.warm == Warm::None && before.ahi == Ahi::AsIs && before.settle.is_none() {
        return Ok(None);
    }
    let settle = match before.settle {
        Some(limit) => Some(settle(preparation, limit, control, progress).await?),
        None => None,
    };
    let ahi_hits = match before.ahi {
        Ahi::AsIs => None,
        Ahi::Cold => {
            empty_ahi(preparation, control, progress).await?;
            None
        }
        Ahi::Warm => fill_ahi(preparation, control, progress).await?,
    };
    let warm = if before.warm == Warm::Pool { "pool" } else { "none" }.to_owned();
    Ok(Some(Prepared { warm, ahi: before.ahi.to_string(), ahi_hits, settle }))
}

/// The variable of the adaptive hash index.
const AHI: &str = "innodb_adaptive_hash_index";

/// Whether there is an adaptive hash index, and it is on.
async fn ahi_is_on(preparation: &Preparation<'_>, control: &mut Session) -> Result<bool> {
    let sql = format!("SELECT @@GLOBAL.{AHI}");
    match preparation.ask(async { Ok(one(control, &sql).await) }).await? {
        Ok(value) => Ok(matches!(value.as_deref(), Some("1" | "ON"))),
        Err(failure @ Failure::Server { .. }) => {
            Err(Error::server(format!("--ahi: this server has no {AHI}: {failure}"))
                .hint("leave --ahi away"))
        }
        Err(lost) => Err(lost.into()),
    }
}

/// Empties the index by switching it off and on again; one that is off is empty. However that ends,
/// it is on again, or the error says that it may not be.
async fn empty_ahi(
    preparation: &Preparation<'_>,
    control: &mut Session,
    progress: &mut Progress,
) -> Result<()> {
    if !ahi_is_on(preparation, control).await? {
        return Ok(());
    }
    let off = format!("SET GLOBAL {AHI} = OFF");
    let switched = match preparation.ask(async { Ok(control.execute(&off).await) }).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(failure @ Failure::Server { .. })) => {
            return Err(Error::server(format!("--ahi cold cannot set {AHI}: {failure}")).hint(
                "GRANT SUPER ON *.* TO the account (MySQL 8: SYSTEM_VARIABLES_ADMIN), or leave \
                 --ahi away",
            ));
        }
        Ok(Err(lost)) => Err(lost.into()),
        Err(silent) => Err(silent),
    };
    let done = format!("--ahi cold switched {AHI} off");
    let on = [format!("SET GLOBAL {AHI} = ON")];
    put_back(preparation, control, &done, &on, switched, progress).await
}

/// Reads rows by their ids until the share of the searches that the index answers stays the same.
/// Returns that share; None where the server does not count it.
async fn fill_ahi(
    preparation: &Preparation<'_>,
    control: &mut Session,
    progress: &mut Progress,
) -> Result<Option<f64>> {
    let Preparation { plan, tables, .. } = *preparation;
    if !ahi_is_on(preparation, control).await? {
        return Err(Error::server(format!("--ahi warm: {AHI} is OFF"))
            .hint(format!("SET GLOBAL {AHI} = ON, or leave --ahi away")));
    }
    let mut stream = Stream::new(seed_of(&[plan.seed, name_part("adaptive hash index")]));
    let began = Instant::now();
    let mut counted = searches(preparation, control).await?;
    let (mut share, mut steady) = (None::<f64>, 0);
    while steady < PERIODS && began.elapsed() < AHI_MOST {
        let period = Instant::now();
        while period.elapsed() < PERIOD {
            let table = quoted(&tables.schema.name(stream.below(tables.count.into()) as u32 + 1));
            let ids: Vec<String> =
                (0..IDS).map(|_| (stream.below(tables.rows) + 1).to_string()).collect();
            let sql = format!("SELECT COUNT(*) FROM {table} WHERE id IN ({})", ids.join(","));
            preparation.ask(async { Ok(control.query(&sql).await?) }).await?;
        }
        let now = searches(preparation, control).await?;
        let grown = now.zip(counted).map(|((hash, other), (hash_before, other_before))| {
            (hash.saturating_sub(hash_before), other.saturating_sub(other_before))
        });
        let here = grown
            .filter(|(hash, other)| hash + other > 0)
            .map(|(hash, other)| hash as f64 / (hash + other) as f64);
        // What is not counted can only be given some time.
        let same = match (share, here) {
            (Some(before), Some(now)) => (before - now).abs() < SETTLED_HITS,
            (None, Some(_)) => false,
            (_, None) => true,
        };
        steady = if same { steady + 1 } else { 0 };
        (share, counted) = (here, now);
        progress.update(|| {
            let hits =
                here.map_or_else(String::new, |share| format!(", {:.0} % hits", share * 100.0));
            format!("filling the adaptive hash index: {:.0?}{hits}", began.elapsed())
        });
    }
    progress.clear();
    Ok(share)
}

/// See [`status::searches`].
async fn searches(
    preparation: &Preparation<'_>,
    control: &mut Session,
) -> Result<Option<(u64, u64)>> {
    preparation.ask(async { Ok(status::searches(control).await?) }).await
}
