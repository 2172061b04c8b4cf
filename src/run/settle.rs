//! `--settle`: waits until little of what was written before is left to flush and to purge.

use std::time::{Duration, Instant};

use super::before::Preparation;
use super::conditions;
use super::reach::Patience;
use super::steps::answer;
use crate::error::{Error, Result};
use crate::judge::{left, levels_in_words};
use crate::mysql::control::{one, optional};
use crate::mysql::session::Session;
use crate::plan::{limits, units};
use crate::progress::Progress;
use crate::stop::{or_stop, within};
use crate::summary::{Levels, Settled};

/// Between two looks at a server that settles.
const LOOK: Duration = Duration::from_millis(500);

/// Variables that were lowered, and what they were.
type Lowered = Vec<(&'static str, String)>;

/// Waits for so long at most. Where the account may, the server is told meanwhile to keep no dirty
/// pages: some flush none while they are idle. An end that is asked for still puts that back.
pub(super) async fn settle(
    preparation: &Preparation<'_>,
    limit: Duration,
    control: &mut Session,
    progress: &mut Progress,
) -> Result<Settled> {
    let began = Instant::now();
    let first = look(preparation, control).await?;
    let (mut last, mut lowered) = (first.clone(), Lowered::new());
    let waited: Result<()> = async {
        if left(&last).more {
            let lowering = lower(control, &mut lowered);
            answer(preparation.stop, &preparation.target.address, lowering).await?;
        }
        while left(&last).more && began.elapsed() < limit {
            progress.update(|| {
                format!("settling: {}, {:.0?}", levels_in_words(&last), began.elapsed())
            });
            let pause = async {
                tokio::time::sleep(LOOK).await;
                Ok(())
            };
            or_stop(preparation.stop, pause).await?;
            last = look(preparation, control).await?;
        }
        Ok(())
    }
    .await;
    let took_s = began.elapsed().as_secs_f64();
    let names: Vec<&str> = lowered.iter().map(|(name, _)| *name).collect();
    let done = format!("--settle lowered {}", names.join(" and "));
    let orders: Vec<String> =
        lowered.iter().map(|(name, value)| format!("SET GLOBAL {name} = {value}")).collect();
    put_back(preparation, control, &done, &orders, waited, progress).await?;
    progress.clear();
    let found = left(&last);
    if found.more {
        let limit = units::duration(limit);
        progress.warn(&format!("not settled within {limit}: {} left", levels_in_words(&last)));
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

/// The levels now; nothing of a server that does not tell.
async fn look(preparation: &Preparation<'_>, control: &mut Session) -> Result<Levels> {
    let reading = conditions::levels(control, preparation.tables);
    let read = answer(preparation.stop, &preparation.target.address, reading).await?;
    Ok(read.unwrap_or_default())
}

/// Lowers the limits of dirty pages, where the account has the right to.
async fn lower(control: &mut Session, lowered: &mut Lowered) -> Result<()> {
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

/// Puts back by these orders what was done to the server, whatever became of what it was done
/// for; a signal does not cut this short.
pub(super) async fn put_back(
    preparation: &Preparation<'_>,
    control: &mut Session,
    done: &str,
    orders: &[String],
    waited: Result<()>,
    progress: &mut Progress,
) -> Result<()> {
    if orders.is_empty() {
        return waited;
    }
    if control.is_usable() && in_time(set(control, orders)).await.is_ok() {
        return waited;
    }
    // An answer that is not waited for any more is still to come on the old connection.
    let mut patience = Patience::new(preparation.plan.policy, preparation.stop);
    let why = loop {
        let again = in_time(async {
            let mut other = Session::open(preparation.target, preparation.opts, None).await?;
            set(&mut other, orders).await?;
            other.close(limits::COURTESY).await;
            Ok(())
        });
        let Err(why) = again.await else { return waited };
        // Of a server that is gone a signal ends the wait.
        if !matches!(patience.lasts(&why, progress).await, Ok(true)) {
            break why;
        }
    };
    let text = format!("{done} and cannot put it back: {why}");
    let error = match preparation.stop.check().and(waited) {
        Ok(()) => Error::server(text),
        // Another attempt would take for its own what is not put back.
        Err(error) => error.context(text).passing(false),
    };
    Err(error.hint(format!("{}: as it was", orders.join("; "))))
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
