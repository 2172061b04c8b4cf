//! A command line of sysbench's, read: plain values, every default filled in.

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::time::Duration;

use super::options::OptionValues;
use crate::error::{Error, Result};
use crate::mysql::ConnectOptions;
pub(crate) use crate::plan::Ignored;
use crate::workload::Distribution;

/// The stock scripts.
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
    /// That of 0.4 and 0.5, which becomes one of these.
    Oltp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Prepare,
    /// `prewarm`, and `warmup` of 1.1.
    Prewarm,
    Run,
    Cleanup,
}

/// Whose output is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputVersion {
    V0_5,
    V1_0,
    V1_1,
}

/// One command line. Numbers are as sysbench reads them: a size of `1M` is 1.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub test: Test,
    pub command: Command,
    /// Clients, and the connections of prepare.
    pub threads: u32,
    /// 0 is no limit.
    pub events: u64,
    /// 0 is no limit.
    pub time: Duration,
    /// Events a second over all clients; 0 is a closed loop.
    pub rate: u64,
    /// After `time`, what still runs is given up so much later.
    pub forced_shutdown: Option<Duration>,
    /// 0 to 5.
    pub verbosity: u8,
    pub distribution: Distribution,
    /// 0 is another one each time.
    pub seed: u32,
    pub connect: ConnectOptions,
    /// The name of the server in messages.
    pub server: String,
    pub ignored: Ignored,
    /// Prepared statements (`--db-ps-mode`).
    pub prepared: bool,
    pub tables: u32,
    /// Rows of a table.
    pub table_size: u64,
    pub output: OutputVersion,
    /// Directory of loadgen's own summary (`--loadgen-out`, LOADGEN_OUT).
    pub out: Option<PathBuf>,
    /// All options, but for the password.
    pub values: OptionValues,
    /// Sentences for standard error: what was taken and does nothing.
    pub notes: Vec<String>,
    /// The fault of the driver that sysbench finds at the first connection.
    pub driver_fault: Option<String>,
    pub opening: Opening,
}

/// Whole lines that are written first, and the exit status where they are all: of `--help`, `--version`,
/// and of what is wrong with a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Opening {
    pub stdout: String,
    pub stderr: String,
    pub status: Ended,
}

impl Opening {
    /// Writes the lines; returns the exit status.
    pub(crate) fn write(&self) -> Result<Ended> {
        let _ = io::stderr().write_all(self.stderr.as_bytes());
        let mut out = io::stdout().lock();
        match out.write_all(self.stdout.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => Ok(self.status),
            // As a log that breaks, of which a shell says nothing.
            Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(141),
            Err(e) => Err(Error::failed(format!("standard output: {e}"))),
        }
    }
}

/// The exit status of a command.
pub(crate) type Ended = u8;
