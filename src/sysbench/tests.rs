use std::ffi::OsString;
use std::process::{Command as Program, Stdio};
use std::sync::Arc;

use super::settings::OutputVersion;
use super::*;
use crate::stop::locked;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn nothing(_: &str) -> Option<OsString> {
    None
}

fn settings(line: &str) -> Settings {
    match parse(&words(line), &nothing) {
        Ok(Parsed::Settings(settings)) => *settings,
        Ok(Parsed::HandOver { .. }) => panic!("{line}: handed over"),
        Err(refusal) => panic!("{line}: {refusal:?}"),
    }
}

fn refused(line: &str) -> Refusal {
    parse(&words(line), &nothing).err().unwrap_or_else(|| panic!("{line} is taken"))
}

/// A command line that is answered at once.
struct Answered {
    line: &'static str,
    /// `@` stands for the header.
    stdout: &'static str,
    stderr: &'static str,
    status: u8,
}

const fn answered(line: &'static str, stdout: &'static str, stderr: &'static str) -> Answered {
    Answered { line, stdout, stderr, status: 1 }
}

const DEPRECATED: &str = "WARNING: the --test option is deprecated. You can pass a script name or path on \
                          the command line without any options.\n";

/// All that sysbench says itself of a command line.
const ANSWERED: &[Answered] = &[
    Answered { line: "--version", stdout: "sysbench 1.0.20\n", stderr: "", status: 0 },
    Answered {
        line: "--threads=x --foo --version=on a b",
        stdout: "sysbench 1.0.20\n",
        stderr: "",
        status: 0,
    },
    Answered { line: "bulk_insert", stdout: "@", stderr: "", status: 0 },
    answered("a b c", "", "Unrecognized command line argument: c\n"),
    answered("--threads=x a b c", "", "Unrecognized command line argument: c\n"),
    answered("--version a b c", "", "Unrecognized command line argument: c\n"),
    answered("--threads 4 oltp_point_select run", "", "Unrecognized command line argument: run\n"),
    answered("--threads=abc", "", "Invalid value for the 'threads' option: 'abc'\n"),
    answered("--threads=1m a", "", "Invalid value for the 'threads' option: '1m'\n"),
    answered("--time=99999999999 a", "", "Invalid value for the 'time' option: '99999999999'\n"),
    answered("--percentile=99.9 a", "", "Invalid value for the 'percentile' option: '99.9'\n"),
    answered("--report_interval=x a", "", "Invalid value for the 'report_interval' option: 'x'\n"),
    answered(
        "--rand-seed=5000000000 a",
        "",
        "Invalid value for the 'rand_seed' option: '5000000000'\n",
    ),
    answered("--time=x --threads=y a", "", "Invalid value for the 'threads' option: 'y'\n"),
    answered("--rate=x --max-time=y a", "", "Invalid value for the 'max_time' option: 'y'\n"),
    answered("--threads=0 a", "FATAL: Invalid value for --threads: 0.\n\n", ""),
    answered("--threads= a", "FATAL: Invalid value for --threads: 0.\n\n", ""),
    answered("--threads --percentile=101 a", "FATAL: Invalid value for --threads: 0.\n\n", ""),
    answered("--percentile=101 a", "FATAL: Invalid value for --percentile: 101\n", ""),
    answered("--percentile=-1 a", "FATAL: Invalid value for --percentile: -1\n", ""),
    answered("--forced-shutdown=abc a", "FATAL: Invalid value for --forced-shutdown: 'abc'\n", ""),
    answered("--forced-shutdown=50x a", "FATAL: Invalid value for --forced-shutdown: '50x'\n", ""),
    answered("--forced-shutdown=1.5 a", "FATAL: Invalid value for --forced-shutdown: '1.5'\n", ""),
    answered(
        "--report-checkpoints=1,x a",
        "FATAL: Invalid value for --report-checkpoints: 'x'\n",
        "",
    ),
    answered(
        "--report-checkpoints=-1 a",
        "FATAL: Invalid value for --report-checkpoints: '-1'\n",
        "",
    ),
    answered("--rand-type=Uniform a", "FATAL: Invalid random numbers distribution: Uniform.\n", ""),
    answered(
        "--percentile=0 --histogram a",
        "FATAL: --histogram cannot be used with --percentile=0\n",
        "",
    ),
    answered("--thread-stack-size=64Q a", "FATAL: Invalid value for thread-stack-size: 0.\n\n", ""),
    answered("--verbosity=6 a", "Invalid value for verbosity: 6\n", ""),
    answered("--verbosity=7777 a", "Invalid value for verbosity: 97\n", ""),
    answered(
        "--verbosity=9 --rand-type=z a",
        "FATAL: Invalid random numbers distribution: z.\n",
        "",
    ),
    answered("--rate=x --rand-type=z a", "FATAL: Invalid random numbers distribution: z.\n", ""),
    answered(
        "--num-threads=2 --percentile=101 a",
        "WARNING: --num-threads is deprecated, use --threads instead\n\
         FATAL: Invalid value for --percentile: 101\n",
        "",
    ),
    answered(
        "--time=0 --verbosity=9 a",
        "WARNING: Both event and time limits are disabled, running an endless test\n\
         Invalid value for verbosity: 9\n",
        "",
    ),
    answered("--foo=1 oltp_point_select run", "@", "invalid option: --foo=1\n"),
    answered("oltp_point_select --foo_bar= bar", "@", "invalid option: --foo_bar=\n"),
    answered("-- oltp_point_select run", "@", "invalid option: --\n"),
    answered("--no-debug oltp_point_select run", "@", "invalid option: --no-debug\n"),
    answered("--debug=TRUE oltp_point_select run", "@", "invalid option: --debug=TRUE\n"),
    answered("--histogram= oltp_point_select run", "@", "invalid option: --histogram=\n"),
    answered("--skip-trx=maybe oltp_point_select run", "@", "invalid option: --skip-trx=maybe\n"),
    answered(
        "oltp_read_only --number_of_ranges=2 run",
        "@",
        "invalid option: --number_of_ranges=2\n",
    ),
    answered("--test oltp_point_select run", "@", "invalid option: --test\n"),
    answered("bulk_insert --debug=maybe run", "@", "invalid option: --debug=maybe\n"),
    answered("oltp_point_select foo", "@", "Unknown command: foo\n"),
    answered("oltp_point_select --verbosity=2 foo", "", "Unknown command: foo\n"),
    answered("bulk_insert prewarm", "@", "Unknown command: prewarm\n"),
    answered(
        "bulk_insert help",
        "@",
        "'bulk_insert' test does not implement the 'help' command.\n",
    ),
    answered(
        "--foo oltp_common",
        "@FATAL: /usr/share/sysbench/oltp_common.lua:28: Command is required. Supported commands: \
         prepare, prewarm, run, cleanup, help\n",
        "",
    ),
    answered(
        "oltp_common run",
        "@FATAL: `init' function failed: /usr/share/sysbench/oltp_common.lua:22: this script is meant to be \
         included by other OLTP scripts and should not be called directly.\n",
        "",
    ),
    answered(
        "--foo cpu",
        "@",
        "The 'cpu' test requires a command argument. See 'sysbench cpu help'\n",
    ),
    Answered {
        line: "run --test=oltp_point_select",
        stdout: "@FATAL: /usr/share/sysbench/oltp_common.lua:28: Command is required. Supported commands: \
                 prepare, prewarm, run, cleanup, help\n",
        stderr: DEPRECATED,
        status: 1,
    },
];

#[test]
fn a_command_line_is_answered_as_by_sysbench_when_nothing_is_run() {
    for Answered { line, stdout, stderr, status } in ANSWERED {
        let got = refused(line);
        let expected = stdout.replace('@', &resolve::header(OutputVersion::V1_0));
        let expected = (expected.as_str(), *stderr, *status);
        assert_eq!((got.stdout.as_str(), got.stderr.as_str(), got.status), expected, "{line}");
        let Some((stdout, stderr, status)) = theirs(line) else { continue };
        assert_eq!((stdout.as_str(), stderr.as_str(), status), expected, "sysbench {line}");
    }
}

/// What the installed sysbench 1.0.20 says, its header replaced by loadgen's; None without one.
fn theirs(line: &str) -> Option<(String, String, u8)> {
    let output = Program::new("sysbench").args(words(line)).stdin(Stdio::null()).output().ok()?;
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    let ours = resolve::header(OutputVersion::V1_0);
    let stdout = match stdout.find("sysbench 1.0.20 (using ").zip(stdout.find("\n\n")) {
        Some((from, to)) => format!("{}{ours}{}", &stdout[..from], &stdout[to + 2..]),
        None => stdout,
    };
    Some((stdout, stderr, output.status.code().expect("it ends") as u8))
}

/// What tests of several files start from.
pub(in crate::sysbench) fn usual() -> Settings {
    let line = "oltp_read_write --threads=2 --rand-type=uniform --thread-init-timeout=10 run";
    Settings { socket: None, ..settings(line) }
}

/// Keeps what is written.
#[derive(Clone, Default)]
pub(in crate::sysbench) struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    pub(in crate::sysbench) fn text(&self) -> String {
        String::from_utf8(locked(&self.0).clone()).expect("ASCII")
    }

    pub(in crate::sysbench) fn log(&self, verbosity: u8) -> Log {
        Log::new(Box::new(self.clone()), verbosity)
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        locked(&self.0).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
