//! A server that is there, and one that commands start: then the one that answers must be the
//! new one.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::runtime;
use super::steps::answer;
use crate::error::{Error, Result};
use crate::mysql::connect::nobody;
use crate::mysql::control::pairs;
use crate::mysql::options::Env;
use crate::mysql::options::{ConnectOptions, ConnectionArgs, Secret, resolve};
use crate::mysql::session::Session;
use crate::plan::experiment::Existing;
use crate::plan::profile::Profile;
use crate::plan::{limits, units};
use crate::progress::Progress;
use crate::stop::Stop;

use super::order;

/// Between two attempts to reach a server that starts or ends.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// A server that answers and lets nobody in is given so long to change its mind: some do while
/// they start.
const REFUSES_WITHIN: Duration = Duration::from_secs(20);
/// Counters that only grow while a server runs: one that has fallen is another server's.
const GROWING: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Uptime', 'Connections')";

/// What answers at an address.
#[derive(Debug)]
enum Seen {
    Nobody,
    /// It lets nobody in; why.
    Refuses(Error),
    /// What [`GROWING`] says.
    Up(BTreeMap<String, u64>),
}

/// Whether the addresses in a profile can be understood; connects nowhere.
///
/// # Errors
///
/// Usage, with line and column.
pub(super) fn check(profile: &Profile) -> Result<()> {
    for (n, server) in profile.servers.iter().enumerate() {
        let key = match (&server.url, &server.defaults_file) {
            (Some(_), _) => "url",
            (None, Some(_)) => "defaults_file",
            (None, None) => continue,
        };
        let args = args(server.url.as_ref(), server.defaults_file.as_ref());
        if let Err(error) = resolve::resolve(&args, &world()) {
            // What has a scheme in it is not shown: it may be a URL with a password.
            let what = error.to_string().replace("://", ":");
            return Err(profile.refuse(&format!("server/{n}/{key}"), what));
        }
    }
    Ok(())
}

/// The server of a label, as flags would name it.
///
/// # Errors
///
/// Those of [`resolve::resolve`] and [`resolve::prompt`].
pub(super) fn target(existing: &Existing, progress: &mut Progress) -> Result<ConnectOptions> {
    let args = args(existing.url.as_ref(), existing.defaults_file.as_ref());
    let resolve::Resolved { mut target, warnings, wants_prompt } =
        resolve::resolve(&args, &world())?;
    if wants_prompt {
        target.password = resolve::prompt(&target)?;
    }
    for warning in &warnings {
        progress.warn(warning);
    }
    Ok(target)
}

fn args(url: Option<&Secret>, defaults_file: Option<&PathBuf>) -> ConnectionArgs {
    ConnectionArgs {
        url: url.cloned(),
        defaults_file: defaults_file.cloned(),
        ..ConnectionArgs::default()
    }
}

/// The profile says which server it is: a URL in the environment is for the other verbs.
fn world() -> Env {
    let mut env = Env::real();
    env.vars.remove(OsStr::new("LOADGEN_URL"));
    env
}

/// Stops, resets and starts the server as far as the profile has commands for it, and waits for
/// the new one.
///
/// # Errors
///
/// Server: a command fails, or no new server answers in time. Interrupted.
pub(super) fn renew(
    existing: &Existing,
    target: &ConnectOptions,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<()> {
    if existing.start.is_empty() && existing.stop.is_empty() && existing.reset.is_empty() {
        return Ok(());
    }
    let mut before = look(target, stop)?;
    if !existing.stop.is_empty() && !matches!(before, Seen::Nobody) {
        end(existing, target, stop, progress)?;
        before = Seen::Nobody;
    }
    if !existing.reset.is_empty() {
        progress.note("bringing the data back");
        order::run("reset", &existing.reset, existing.within, stop)?;
    }
    if existing.start.is_empty() {
        return Ok(());
    }
    progress.note("starting the server");
    let started = order::run("start", &existing.start, existing.within, stop)
        .and_then(|()| wait(existing.within, target, &before, stop, progress));
    if started.is_err() && !existing.stop.is_empty() {
        // Half a start must not disturb the next label; the first error is the one to show.
        let _ = order::run("stop", &existing.stop, existing.within, &Stop::default());
    }
    started
}

/// Stops the server, and waits until nobody answers in its place.
///
/// # Errors
///
/// Server: the command fails, or somebody still answers. Interrupted.
pub(super) fn end(
    existing: &Existing,
    target: &ConnectOptions,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<()> {
    progress.note("stopping the server");
    order::run("stop", &existing.stop, existing.within, stop)?;
    let began = Instant::now();
    while !matches!(look(target, stop)?, Seen::Nobody) {
        if began.elapsed() > existing.within {
            let within = units::duration(existing.within);
            return Err(Error::server(format!("{target} still answers {within} after `stop`"))
                .hint("`stop` must end the server that answers there"));
        }
        pause(stop, progress, || format!("waiting for the end of {target}"))?;
    }
    Ok(())
}

/// Waits for a server that is not the one of before.
fn wait(
    within: Duration,
    target: &ConnectOptions,
    before: &Seen,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<()> {
    let began = Instant::now();
    let mut refused = None;
    loop {
        let seen = look(target, stop)?;
        let waited = began.elapsed();
        match (&seen, before) {
            (Seen::Up(now), Seen::Up(old)) if !has_fallen(old, now) => {}
            (Seen::Up(_), _) => return Ok(()),
            (Seen::Refuses(error), _) => {
                let since = *refused.get_or_insert(waited);
                if waited.saturating_sub(since) > REFUSES_WITHIN {
                    return Err(error.clone());
                }
            }
            (Seen::Nobody, _) => refused = None,
        }
        if waited > within {
            let within = units::duration(within);
            return Err(match seen {
                Seen::Nobody => {
                    Error::server(format!("{target} does not answer {within} after its start"))
                }
                Seen::Refuses(error) => error,
                Seen::Up(_) => Error::server(format!(
                    "{target} is still the old server {within} after the start: its uptime and \
                     its count of connections only grew"
                ))
                .hint("`start` must start it anew; give a `stop`, too"),
            });
        }
        pause(stop, progress, || format!("waiting for {target}"))?;
    }
}

fn pause(stop: &Stop, progress: &mut Progress, what: impl FnOnce() -> String) -> Result<()> {
    stop.check()?;
    progress.update(what);
    std::thread::sleep(ASK_EVERY);
    Ok(())
}

/// Whether a counter that only grows is less than it was.
fn has_fallen(old: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> bool {
    now.iter().any(|(name, now)| old.get(name).is_some_and(|old| now < old))
}

fn look(target: &ConnectOptions, stop: &Stop) -> Result<Seen> {
    let opts = target.opts()?;
    let looking = async {
        let mut session = match Session::open(target, &opts, None).await {
            Ok(session) => session,
            Err(_) if nobody(target, &opts).await => return Ok(Seen::Nobody),
            Err(error) => return Ok(Seen::Refuses(error)),
        };
        let found = pairs(&mut session, GROWING).await;
        session.close(limits::COURTESY).await;
        let found = found.unwrap_or_default().into_iter();
        Ok(Seen::Up(found.filter_map(|(name, text)| Some((name, text.parse().ok()?))).collect()))
    };
    runtime()?.block_on(answer(stop, &target.address, looking))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_fell_is_another_servers() {
        let counters = |uptime: u64, connections: u64| {
            let names = [("Uptime", uptime), ("Connections", connections)];
            names.map(|(name, n)| (name.to_owned(), n)).into()
        };
        let old: BTreeMap<String, u64> = counters(3, 40);
        assert!(!has_fallen(&old, &counters(3, 41)) && !has_fallen(&old, &counters(90, 42)));
        assert!(has_fallen(&old, &counters(1, 41)), "younger");
        assert!(has_fallen(&old, &counters(5, 2)), "older than it was, with fewer connections");
        assert!(!has_fallen(&old, &BTreeMap::new()));
    }
}
