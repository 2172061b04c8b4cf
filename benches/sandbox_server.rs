//! A private server for as long as standard input is open, for scripts that run other programs
//! against it (`benches/versus-sysbench`, `scripts/kill-server`). Prints two lines, its port and
//! version, and its process:
//!
//! ```text
//! cargo run --example sandbox -- [PROGRAM] [--data=DIR] [--OPTION[=VALUE] …]
//! ```
//!
//! With `--data` its data stays there, and is used again.

use std::io::{Read, Write};
use std::path::PathBuf;

use loadgen::error::Result;
use loadgen::sandbox::{DataDir, Sandbox, Spec};

/// Connections and prepared statements: 256 clients with 8 tables each, and some more.
const MAX_CONNECTIONS: u32 = 300;
const MAX_PREPARED_STMTS: u32 = 16 * MAX_CONNECTIONS;

fn main() -> std::process::ExitCode {
    match serve() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            say(error.render().trim_end());
            std::process::ExitCode::from(error.kind().exit_code())
        }
    }
}

fn serve() -> Result<()> {
    let (options, programs): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    let (data, options): (Vec<String>, Vec<String>) =
        options.into_iter().partition(|option| option.starts_with("--data="));
    let spec = Spec {
        program: programs.into_iter().next().map(Into::into),
        options: options.iter().map(|option| key_and_value(option)).collect(),
        max_connections: MAX_CONNECTIONS,
        max_prepared_stmts: MAX_PREPARED_STMTS,
        data: data.first().map_or(DataDir::Own, |data| data_dir(data)),
        ..Spec::default()
    };
    // Nothing to do on a signal: the sandbox's keeper sees that this process is gone.
    let sandbox = Sandbox::start(&spec, &mut say, &|| false)?;
    let mut out = std::io::stdout();
    let (port, version, pid) = (sandbox.port, &sandbox.version, sandbox.pid);
    let announced = writeln!(out, "{port} {version}\n{pid}");
    if announced.and_then(|()| out.flush()).is_ok() {
        // Whatever ends the input ends the server.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    }
    sandbox.stop()
}

fn data_dir(option: &str) -> DataDir {
    let dir = PathBuf::from(option.trim_start_matches("--data="));
    if dir.exists() { DataDir::Filled(dir) } else { DataDir::New(dir) }
}

fn key_and_value(option: &str) -> (String, Option<String>) {
    match option.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (option.to_owned(), None),
    }
}

#[expect(clippy::print_stderr, reason = "an example may talk")]
fn say(text: &str) {
    eprintln!("{text}");
}
