//! A server that is there, and one that commands start: then the one that answers must be the
//! new one.

use std::time::{Duration, Instant};

use crate::cli::connection::ConnectionArgs;
use crate::cmd::prepare::or_stop;
use crate::cmd::runtime;
use crate::error::{Error, Result};
use crate::mysql::ask::pairs;
use crate::mysql::resolve;
use crate::mysql::secret::Secret;
use crate::mysql::session::Session;
use crate::mysql::target::Target;
use crate::plan::experiment::Existing;
use crate::plan::units;
use crate::progress::Progress;
use crate::stop::Stop;

use super::order;

/// Between two attempts to reach a server that starts.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// A server counts its uptime in whole seconds.
const UPTIME_SLACK: u64 = 2;

/// The server of a label, as flags would name it.
///
/// # Errors
///
/// Those of [`resolve::find`].
pub(super) fn target(existing: &Existing, progress: &mut Progress) -> Result<Target> {
    let args = ConnectionArgs {
        url: existing.url.as_ref().map(|url| Secret::new(url.expose())),
        defaults_file: existing.defaults_file.clone(),
        ..ConnectionArgs::default()
    };
    let (target, warnings) = resolve::find(&args)?;
    for warning in &warnings {
        progress.warn(warning);
    }
    Ok(target)
}

/// Stops, resets and starts the server as far as the profile has commands for it, and waits for
/// the new one.
///
/// # Errors
///
/// Server: a command fails, or no new server answers in time. Interrupted.
pub(super) fn renew(
    existing: &Existing,
    target: &Target,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<()> {
    let within = existing.within;
    if !existing.stop.is_empty() && uptime(target, stop)?.is_some() {
        progress.note("stopping the server");
        order::run("stop", &existing.stop, within, stop)?;
    }
    if !existing.reset.is_empty() {
        progress.note("bringing the data back");
        order::run("reset", &existing.reset, within, stop)?;
    }
    if existing.start.is_empty() {
        return Ok(());
    }
    progress.note("starting the server");
    let began = Instant::now();
    order::run("start", &existing.start, within, stop)?;
    loop {
        let up = uptime(target, stop)?;
        if up.is_some_and(|up| up <= began.elapsed().as_secs() + UPTIME_SLACK) {
            return Ok(());
        }
        if began.elapsed() > within {
            let within = units::duration(within);
            return Err(match up {
                None => Error::server(format!("{target} does not answer {within} after its start")),
                Some(up) => Error::server(format!(
                    "{target} is still the old server, up for {up} s, {within} after the start"
                ))
                .hint("`stop` must end when the server has ended"),
            });
        }
        stop.check()?;
        std::thread::sleep(ASK_EVERY);
    }
}

/// Seconds since the server started; None where none answers.
fn uptime(target: &Target, stop: &Stop) -> Result<Option<u64>> {
    let opts = target.opts()?;
    let asking = async {
        let Ok(mut session) = Session::open(target, &opts, None).await else { return Ok(None) };
        let found = pairs(&mut session, "SHOW GLOBAL STATUS LIKE 'Uptime'").await;
        session.close(crate::plan::limits::COURTESY).await;
        Ok(found.ok().and_then(|found| found.get("Uptime")?.parse().ok()))
    };
    runtime()?.block_on(or_stop(stop, asking))
}
