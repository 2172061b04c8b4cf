//! Brings a server into the state that a step is to start from: `--warm`, `--settle`, `--ahi`.

use std::time::{Duration, Instant};

use super::survey::{Patience, Surveyed, pause};
use crate::engine::Tables;
use crate::error::{Error, Result};
use crate::judge::{left, levels_in_words};
use crate::mysql::control::{one, optional};
use crate::mysql::session::{Failure, Session};
use crate::mysql::status;
use crate::plan::{Ahi, Plan, Warm, limits, units};
use crate::progress::Progress;
use crate::stop::within;
use crate::summary::{Levels, Prepared, Settled};
use crate::terms;
use crate::workload::random::{Stream, name_part, seed_of};
use crate::workload::table::quoted;

const PIECE: u64 = 100_000;
/// Between two looks at a server that settles.
const LOOK: Duration = Duration::from_millis(500);
const IDS: usize = 200;
/// `--ahi warm` compares the share of hits of periods so long.
const PERIOD: Duration = Duration::from_secs(1);
/// And is done when so many in turn differ by less than [`SETTLED_HITS`].
const PERIODS: u32 = 3;
const SETTLED_HITS: f64 = 0.01;
/// It ends in any case after so long.
const AHI_MOST: Duration = Duration::from_mins(2);
const AHI: &str = "innodb_adaptive_hash_index";

pub(super) struct Preparation<'a> {
    pub(super) plan: &'a Plan,
    pub(super) at: &'a Surveyed<'a>,
    pub(super) control: &'a mut Session,
    pub(super) progress: &'a mut Progress,
}

impl Preparation<'_> {
    /// Reads all rows of the tables, and the index of their second column, through the buffer pool.
    pub(super) async fn warm_pool(&mut self) -> Result<()> {
        let (tables, progress) = (self.at.tables, &mut *self.progress);
        let reading = async |control: &mut Session| read_all(tables, control, progress).await;
        self.at.link.patiently(self.control, reading).await
    }

    pub(super) async fn step(&mut self) -> Result<Option<Prepared>> {
        let before = self.plan.before;
        if before.warm == Warm::None && before.ahi == Ahi::AsIs && before.settle.is_none() {
            return Ok(None);
        }
        let settle = match before.settle {
            Some(limit) => Some(self.settle(limit).await?),
            None => None,
        };
        let ahi_hits = match before.ahi {
            Ahi::AsIs => None,
            Ahi::Cold => self.empty_ahi().await.map(|()| None)?,
            Ahi::Warm => self.fill_ahi().await?,
        };
        let warm = if before.warm == Warm::Pool { "pool" } else { "none" }.to_owned();
        Ok(Some(Prepared { warm, ahi: before.ahi.to_string(), ahi_hits, settle }))
    }

    /// Waits for so long at most until little of what was written before is left to flush and to
    /// purge. Where the account may, the server is told meanwhile to keep no dirty pages: some flush
    /// none while they are idle. An end that is asked for still puts that back.
    async fn settle(&mut self, limit: Duration) -> Result<Settled> {
        let began = Instant::now();
        let first = self.levels().await?;
        let (mut last, mut lowered) = (first.clone(), Vec::new());
        let waited = self.flushed(began + limit, &mut last, &mut lowered).await;
        let took_s = began.elapsed().as_secs_f64();
        let names: Vec<&str> = lowered.iter().map(|(name, _)| *name).collect();
        let orders = lowered.iter().map(|(name, value)| format!("SET GLOBAL {name} = {value}"));
        let done = format!("--settle lowered {}", names.join(" and "));
        self.put_back(&done, &orders.collect::<Vec<_>>(), waited).await?;
        self.progress.clear();
        let found = left(&last);
        if found.more {
            let (limit, levels) = (units::duration(limit), levels_in_words(&last));
            self.progress.warn(&format!("not settled within {limit}: {levels} left"));
        }
        Ok(Settled {
            limit_s: limit.as_secs_f64(),
            took_s,
            complete: !found.more && found.unknown.is_empty(),
            unknown: found.unknown.iter().map(|what| (*what).to_owned()).collect(),
            first,
            last,
        })
    }

    async fn flushed(
        &mut self,
        end: Instant,
        last: &mut Levels,
        lowered: &mut Vec<(&'static str, String)>,
    ) -> Result<()> {
        let began = Instant::now();
        if left(last).more {
            self.at.link.ask(lower(self.control, lowered)).await?;
        }
        while left(last).more && Instant::now() < end {
            self.progress
                .update(|| format!("settling: {}, {:.0?}", levels_in_words(last), began.elapsed()));
            pause(self.at.link.stop, LOOK).await?;
            *last = self.levels().await?;
        }
        Ok(())
    }

    async fn levels(&mut self) -> Result<Levels> {
        Ok(self.at.levels(self.control).await?.unwrap_or_default())
    }

    async fn ahi_is_on(&mut self) -> Result<bool> {
        let sql = format!("SELECT @@GLOBAL.{AHI}");
        match self.at.link.ask(async { Ok(one(self.control, &sql).await) }).await? {
            Ok(value) => Ok(matches!(value.as_deref(), Some("1" | "ON"))),
            Err(failure @ Failure::Server { .. }) => {
                Err(Error::server(format!("--ahi: this server has no {AHI}: {failure}"))
                    .hint("leave --ahi away"))
            }
            Err(lost) => Err(lost.into()),
        }
    }

    /// Empties the index by switching it off and on again; one that is off is empty. However that
    /// ends, it is on again, or the error says that it may not be.
    async fn empty_ahi(&mut self) -> Result<()> {
        if !self.ahi_is_on().await? {
            return Ok(());
        }
        let off = format!("SET GLOBAL {AHI} = OFF");
        let switching = async { Ok(self.control.execute(&off).await) };
        let switched = match self.at.link.ask(switching).await {
            Ok(Err(failure @ Failure::Server { .. })) => {
                return Err(Error::server(format!("--ahi cold cannot set {AHI}: {failure}")).hint(
                    "GRANT SUPER ON *.* TO the account (MySQL 8: SYSTEM_VARIABLES_ADMIN), or \
                     leave --ahi away",
                ));
            }
            Ok(answer) => answer.map(|_| ()).map_err(Error::from),
            Err(silent) => Err(silent),
        };
        let done = format!("--ahi cold switched {AHI} off");
        self.put_back(&done, &[format!("SET GLOBAL {AHI} = ON")], switched).await
    }

    /// Reads rows by their ids until the share of the searches that the index answers stays the
    /// same. Returns that share; None where the server does not count it.
    async fn fill_ahi(&mut self) -> Result<Option<f64>> {
        if !self.ahi_is_on().await? {
            return Err(Error::server(format!("--ahi warm: {AHI} is OFF"))
                .hint(format!("SET GLOBAL {AHI} = ON, or leave --ahi away")));
        }
        let mut stream = Stream::new(seed_of(&[self.plan.seed, name_part("adaptive hash index")]));
        let began = Instant::now();
        let mut counted = self.searches().await?;
        let (mut share, mut steady) = (None::<f64>, 0);
        while steady < PERIODS && began.elapsed() < AHI_MOST {
            self.read_rows(&mut stream).await?;
            let now = self.searches().await?;
            let here = now.zip(counted).and_then(|((hash, other), (hash_then, other_then))| {
                let hits = hash.saturating_sub(hash_then);
                let all = hits + other.saturating_sub(other_then);
                (all > 0).then(|| hits as f64 / all as f64)
            });
            // What is not counted can only be given some time.
            let same = match (share, here) {
                (Some(before), Some(now)) => (before - now).abs() < SETTLED_HITS,
                (None, Some(_)) => false,
                (_, None) => true,
            };
            steady = if same { steady + 1 } else { 0 };
            (share, counted) = (here, now);
            self.progress.update(|| {
                let hits = here.map_or_else(String::new, |s| format!(", {:.0} % hits", s * 100.0));
                format!("filling the adaptive hash index: {:.0?}{hits}", began.elapsed())
            });
        }
        self.progress.clear();
        Ok(share)
    }

    async fn read_rows(&mut self, stream: &mut Stream) -> Result<()> {
        let (tables, period) = (self.at.tables, Instant::now());
        while period.elapsed() < PERIOD {
            let table = quoted(&tables.schema.name(stream.below(tables.count.into()) as u32 + 1));
            let ids = (0..IDS).map(|_| (stream.below(tables.rows) + 1).to_string());
            let ids = ids.collect::<Vec<_>>().join(",");
            let sql = format!("SELECT COUNT(*) FROM {table} WHERE id IN ({ids})");
            self.at.link.ask(async { Ok(self.control.query(&sql).await?) }).await?;
        }
        Ok(())
    }

    async fn searches(&mut self) -> Result<Option<(u64, u64)>> {
        self.at.link.ask(async { Ok(status::searches(self.control).await?) }).await
    }

    /// Puts back by these orders what was done to the server, whatever became of what it was done
    /// for; a signal does not cut this short.
    async fn put_back(&mut self, done: &str, orders: &[String], waited: Result<()>) -> Result<()> {
        if orders.is_empty() {
            return waited;
        }
        if self.control.is_usable() && in_time(set(self.control, orders)).await.is_ok() {
            return waited;
        }
        let link = &self.at.link;
        // An answer that is not waited for any more is still to come on the old connection.
        let mut patience = Patience::new(self.plan.policy, link.stop);
        let why = loop {
            let again = in_time(async {
                let mut other = Session::open(&link.target, &link.opts, None).await?;
                set(&mut other, orders).await?;
                other.close(limits::COURTESY).await;
                Ok(())
            });
            let Err(why) = again.await else { return waited };
            // Of a server that is gone a signal ends the wait.
            if !matches!(patience.lasts(&why, self.progress).await, Ok(true)) {
                break why;
            }
        };
        let text = format!("{done} and cannot put it back: {why}");
        let error = match link.stop.check().and(waited) {
            Ok(()) => Error::server(text),
            // Another attempt would take for its own what is not put back.
            Err(error) => error.context(text).passing(false),
        };
        Err(error.hint(format!("{}: as it was", orders.join("; "))))
    }
}

async fn read_all(tables: Tables, control: &mut Session, progress: &mut Progress) -> Result<()> {
    let (began, rows) = (Instant::now(), tables.held.unwrap_or(tables.rows));
    let (count, shown) = (terms::counted(tables.count, "table"), units::count(rows));
    progress.note(&format!("reading all rows once: {count} of {shown} rows"));
    progress.restart();
    for number in 1..=tables.count {
        let reads = tables.schema.reads(number, rows, PIECE);
        for (done, sql) in reads.iter().enumerate() {
            progress.update(|| {
                let here = f64::from(number - 1) + done as f64 / reads.len() as f64;
                let (name, part) = (tables.schema.name(number), here / f64::from(tables.count));
                let (percent, time) = (part * 100.0, began.elapsed());
                format!("reading all rows: {name}, {percent:.0} % of all, {time:.0?}")
            });
            control.query(sql).await?;
        }
    }
    progress.clear();
    progress.note(&format!("all rows were read in {:.1} s", began.elapsed().as_secs_f64()));
    Ok(())
}

/// Lowers the limits of dirty pages, where the account has the right to.
async fn lower(control: &mut Session, lowered: &mut Vec<(&'static str, String)>) -> Result<()> {
    // The lower one must not be above the upper one.
    for name in ["innodb_max_dirty_pages_pct_lwm", "innodb_max_dirty_pages_pct"] {
        let value = optional(one(control, &format!("SELECT @@GLOBAL.{name}")).await)?.flatten();
        let Some(value) = value else { continue };
        // Known before it is done: what is cut short may have been done.
        lowered.insert(0, (name, value));
        if optional(control.execute(&format!("SET GLOBAL {name} = 0")).await)?.is_none() {
            lowered.remove(0);
        }
    }
    Ok(())
}

async fn in_time(setting: impl Future<Output = Result<()>>) -> Result<()> {
    within(limits::SILENCE, setting).await.unwrap_or_else(|| {
        let limit = units::duration(limits::SILENCE);
        Err(Error::server(format!("no answer within {limit}")).passing(true))
    })
}

async fn set(session: &mut Session, orders: &[String]) -> Result<()> {
    for order in orders {
        session.execute(order).await?;
    }
    Ok(())
}
