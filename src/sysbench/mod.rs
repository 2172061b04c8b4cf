//! The drop-in for sysbench: its command lines and outputs, and imports of its old outputs.
//!
//! sysbench's rules make [`Settings`] of a command line; loadgen's engine runs it, and what is printed is
//! sysbench's text. docs/user/from-sysbench.md lists what differs.

mod arguments;
mod explain;
mod failure;
mod hints;
mod import;
#[cfg(feature = "lua")]
mod native_script;
mod options;
mod others;
mod output;
mod plan;
mod run;
#[cfg(feature = "lua")]
mod script;
mod scripts;
mod settings;
mod tables;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::mysql::ServerLink;
use crate::mysql::options::handover::take_off;
use crate::progress::say;
use crate::stop::{Stop, locked};
use arguments::{Parsed, parse};
use explain::native;
#[cfg(test)]
pub(crate) use hints::Answer;
pub(crate) use hints::{NativeFlag, NativeVerb, translate};
pub(crate) use import::import;
#[cfg(feature = "lua")]
pub(crate) use native_script::{Asked, NativeScript, Output};
use options::NAME;
pub(crate) use others::command;
#[cfg(test)]
pub(crate) use others::native_flags as flags_of_others;
use output::Log;
#[cfg(not(feature = "lua"))]
use settings::ScriptCall;
use settings::{Command, Ended, Settings, exit_status};
#[cfg(test)]
pub(crate) use tests::native_flags;

/// The variable that holds the password where no option does.
const PASSWORD: &str = "MYSQL_PWD";

/// Counts the words before sysbench's own command line; None if this is none. The program has its
/// name, or `sysbench` is the first word.
pub(crate) fn begins_at(args: &[OsString]) -> Option<usize> {
    let named = args.first().and_then(|program| Path::new(program).file_name());
    let asked = args.get(1).is_some_and(|word| word == NAME);
    if named == Some(OsStr::new(NAME)) { Some(1) } else { asked.then_some(2) }
}

/// Runs a sysbench command line; returns the exit status. `listen` starts the signal handling, without
/// SIGINT where that is ignored, as behind a script's `&`.
pub(crate) fn main(
    args: Vec<OsString>,
    loadgen: impl FnOnce() -> Vec<NativeVerb>,
    listen: impl FnOnce(bool) -> Result<Stop>,
) -> Result<u8> {
    let begin = begins_at(&args).expect("the caller has looked");
    let (args, password) = take_off(args, "--mysql-password")?;
    if begin == 1 {
        // Executing without the password renamed the process; scripts look for sysbench.
        let _ = nix::sys::prctl::set_name(c"sysbench");
    }
    let env = |name: &str| match &password {
        Some(password) if name == PASSWORD => Some(password.expose().into()),
        _ => std::env::var_os(name),
    };
    let mut settings = match parse(&args[begin..], &env) {
        Ok(Parsed::Settings(settings)) => settings,
        Ok(Parsed::HandOver { program, args }) => {
            let mut real = std::process::Command::new(&program);
            // The command line no longer has it.
            real.envs(password.iter().map(|password| (PASSWORD, password.expose())));
            let failed = real.args(args).exec();
            return Err(Error::usage(format!("{}: {failed}", program.display())));
        }
        Err(opening) => return opening.write(),
    };
    if let Some(call) = &mut settings.script {
        call.argv.insert(0, args[0].to_string_lossy().into_owned());
    }
    if settings.values.on("explain") {
        return crate::run::print_data(&native(&settings, &loadgen())).map(|()| 0);
    }
    settings.opening.write()?;
    settings.notes.iter().for_each(|note| say(&format!("loadgen: {note}")));
    let log = Arc::new(Mutex::new(Log::new(Box::new(io::stdout()), settings.verbosity)));
    let ended = done(&settings, &log, &listen(true)?);
    let mut log = locked(&log);
    if let Some(warning) = log.warning.take() {
        say(&format!("warning: {warning}"));
    }
    exit_status(ended?, log.broken.as_ref())
}

fn done(settings: &Settings, log: &Arc<Mutex<Log>>, stop: &Stop) -> Result<Ended> {
    let work = async {
        // A script finds out by itself, if it connects at all.
        if let (Some(fault), None) = (&settings.driver_fault, &settings.script) {
            let mut log = locked(log);
            if settings.command == Command::Run {
                log.notice(&output::options(settings));
            }
            if settings.command == Command::Run || tables::count_workers(settings) > 1 {
                log.notice(output::INITIALIZING);
            }
            log.fatal(&failure::driver_lines(settings, fault));
            return Ok(1);
        }
        if let Some(call) = &settings.script {
            return run_script(settings, call, log, stop).await;
        }
        if settings.command == Command::Run {
            return run::run(settings, None, log, stop).await;
        }
        let link = ServerLink::to(settings.connect.clone(), stop)?;
        tables::run(settings, &link, log).await
    };
    crate::run::runtime()?.block_on(work)
}

#[cfg(feature = "lua")]
use script::run as run_script;

#[cfg(not(feature = "lua"))]
async fn run_script(_: &Settings, call: &ScriptCall, log: &Mutex<Log>, _: &Stop) -> Result<Ended> {
    let words = format!("{} is a script, and this loadgen was built without Lua", call.path);
    locked(log).fatal(&[words]);
    Ok(1)
}
