//! The settings of a sysbench command line, with every default filled in.

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::time::Duration;

use super::options::OptionValues;
use crate::error::{Error, Result};
use crate::mysql::ConnectOptions;
pub(crate) use crate::plan::Ignored;
use crate::workload::Distribution;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Test {
    /// Makes and drops tables, and cannot be run.
    Common,
    PointSelect,
    ReadOnly,
    ReadWrite,
    WriteOnly,
    UpdateIndex,
    UpdateNonIndex,
    Insert,
    Delete,
    RandomPoints,
    RandomRanges,
    BulkInsert,
    /// The test of 0.4 and 0.5, which becomes one of these.
    Oltp,
    /// A script that is run from Lua.
    Script,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Prepare,
    /// `prewarm`, and `warmup` of 1.1.
    Prewarm,
    Run,
    Cleanup,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputVersion {
    V0_5,
    V1_0,
    V1_1,
}

/// The part of a command line that a script decides on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScriptCall {
    /// A path, or the name of a module; `-` for standard input.
    pub path: String,
    pub command: Option<String>,
    /// The text of a script that the program carries.
    pub text: Option<&'static str>,
    /// It prints to standard error: standard output is for data.
    pub to_stderr: bool,
    /// Options that sysbench itself has not.
    pub given: Vec<(String, Option<String>)>,
    /// Names in config files that sysbench itself has not, with `_`.
    pub configured: Vec<String>,
    /// The words for the first option of sysbench's own whose value is wrong.
    pub wrong: Option<String>,
    pub argv: Vec<String>,
    pub package_path: String,
    pub stock_path: String,
}

/// One command line. Numbers are as sysbench reads them: a size of `1M` is 1.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub test: Test,
    pub command: Command,
    pub script: Option<ScriptCall>,
    /// Clients, and the connections of prepare.
    pub threads: u32,
    /// 0 for no limit.
    pub events: u64,
    /// 0 for no limit.
    pub time: Duration,
    /// Events a second over all clients; 0 for a closed loop.
    pub rate: u64,
    /// Time after `time` at which running events are given up.
    pub forced_shutdown: Option<Duration>,
    pub verbosity: u8,
    pub distribution: Distribution,
    /// 0 for another one each time.
    pub seed: u32,
    pub connect: ConnectOptions,
    pub server: String,
    pub ignored: Ignored,
    pub prepared: bool,
    pub tables: u32,
    pub table_size: u64,
    pub output: OutputVersion,
    /// The flag or the variable that named `out`.
    pub(super) out_named_by: &'static str,
    /// Directory of loadgen's own summary (`--loadgen-out`, LOADGEN_OUT).
    pub out: Option<PathBuf>,
    pub values: OptionValues,
    /// Sentences for standard error about options that are accepted and ignored.
    pub notes: Vec<String>,
    /// The driver fault that sysbench reports at the first connection.
    pub driver_fault: Option<String>,
    pub opening: Opening,
}

/// Lines written first, and the exit status if nothing follows, as after `--help` and usage errors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Opening {
    /// Standard error before standard output, and behind it.
    pub early: String,
    pub stdout: String,
    pub stderr: String,
    pub status: Ended,
}

impl Opening {
    pub(crate) fn write(&self) -> Result<Ended> {
        let _ = io::stderr().write_all(self.early.as_bytes());
        let mut out = io::stdout().lock();
        let written = out.write_all(self.stdout.as_bytes()).and_then(|()| out.flush());
        let _ = io::stderr().write_all(self.stderr.as_bytes());
        exit_status(self.status, written.err().as_ref())
    }
}

/// Returns the status, also where standard output broke. After a closed pipe it is that of the signal, of which a
/// shell says nothing.
pub(super) fn exit_status(status: Ended, broken: Option<&io::Error>) -> Result<Ended> {
    match broken {
        None => Ok(status),
        Some(e) if e.kind() == ErrorKind::BrokenPipe => Ok(141),
        Some(e) => Err(Error::failed(format!("standard output: {e}"))),
    }
}

pub(crate) type Ended = u8;
