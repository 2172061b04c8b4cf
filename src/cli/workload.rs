//! The flags of a workload.

use std::path::PathBuf;

use crate::mysql::options::ConnectionArgs;
use crate::plan::knobs::Knobs;
use crate::run::ServerOptions;

/// Runs a workload at each number of clients and prints the table.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct WorkloadArgs {
    #[command(flatten)]
    pub knobs: Knobs,

    /// Print the plan and connect nowhere
    #[arg(long)]
    pub list: bool,

    /// What this host can generate, as loadgen calibrate keeps it [default: where it keeps it]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,

    #[command(flatten)]
    pub display: super::DisplayArgs,

    #[command(flatten)]
    pub sandbox: SandboxArgs,

    #[command(flatten)]
    pub connection: ConnectionArgs,

    /// Command that goes before `grep -s -H . FILE…` to read /proc of the server's host, such as
    /// 'ssh db1' [default: read here, where the server runs on this host]
    #[arg(long, value_name = "COMMAND", help_heading = "Connection")]
    pub probe: Option<String>,
}

/// A private throw-away server instead of one that is there.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Sandbox")]
pub(super) struct SandboxArgs {
    /// Start a private server (this program, else mariadbd or mysqld from PATH), prepare the
    /// tables, run, and take everything away again
    #[arg(
        long, value_name = "MYSQLD", num_args = 0..=1, require_equals = true,
        default_missing_value = "", value_parser = program,
        conflicts_with_all = ["host", "port", "user", "password", "password_fd", "socket",
            "protocol", "database", "ssl_mode", "ssl_ca", "ssl_cert", "ssl_key",
            "defaults_file", "defaults_extra_file", "no_defaults", "url"]
    )]
    pub sandbox: Option<Program>,

    /// An option of the sandbox's server; may be given several times
    #[arg(long = "sandbox-option", value_name = "KEY[=VALUE]", requires = "sandbox", value_parser = option)]
    pub options: Vec<(String, Option<String>)>,
}

impl SandboxArgs {
    /// A private server's program, None in it for that of PATH, and its options.
    pub(super) fn server(self) -> Option<(Option<PathBuf>, ServerOptions)> {
        self.sandbox.map(|program| (program.0, self.options))
    }
}

/// The program of a sandbox: None is the first one of mariadbd and mysqld in PATH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program(pub Option<PathBuf>);

#[expect(clippy::unnecessary_wraps, reason = "clap wants a parser that can fail")]
fn program(text: &str) -> Result<Program, String> {
    Ok(Program((!text.is_empty()).then(|| PathBuf::from(text))))
}

fn option(text: &str) -> Result<(String, Option<String>), String> {
    let text = text.trim_start_matches("--");
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (text, None),
    };
    if key.is_empty() {
        Err("an option has a name".to_owned())
    } else {
        Ok((key.to_owned(), value))
    }
}
