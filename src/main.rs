//! Parse, dispatch, and turn an error into standard error and an exit status.

use std::process::ExitCode;

use loadgen::error::Error;

const UNWOUND: &str = "loadgen crashed: a bug in loadgen or its MySQL driver";

fn main() -> ExitCode {
    quiet_driver_panics();
    let ended = std::panic::catch_unwind(|| loadgen::cli::main(std::env::args_os().collect()));
    // After a signal a thread may still wait for its command.
    loadgen::stop::kill_all();
    // The hook has shown a panic of ours, unless it came from `raw_vec`; it shows none of the driver's.
    match ended.unwrap_or_else(|_| Err(Error::failed(UNWOUND))) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            loadgen::progress::say(error.render().trim_end());
            ExitCode::from(error.kind().exit_code())
        }
    }
}

/// A driver panic in a hostile answer is caught and becomes an error of that connection
/// (`loadgen::mysql`): the hook must not print it as if the program had failed. A list of too many columns
/// panics in `raw_vec`.
fn quiet_driver_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let file = info.location().map_or("", |location| location.file());
        let quiet = ["mysql_async", "mysql_common", "alloc/src/raw_vec"];
        if !quiet.iter().any(|name| file.contains(name)) {
            usual(info);
        }
    }));
}
