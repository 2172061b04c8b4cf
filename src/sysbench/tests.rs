use std::ffi::OsString;
use std::process::{Command as Program, Stdio};
use std::sync::Arc;

use super::settings::{Ignored, OutputVersion, Preamble, Test};
use super::*;
use crate::stop::locked;
use crate::workload::Distribution;

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
    answered("--max-time=3 --threads=0 a", "FATAL: Invalid value for --threads: 0.\n\n", ""),
    answered("--tx-rate=5 --rand-seed=x a", "", "Invalid value for the 'rand_seed' option: 'x'\n"),
    answered(
        "--time=-1 --forced-shutdown=x a",
        "FATAL: Invalid value for --forced-shutdown: 'x'\n",
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

/// A command line that is taken, and what becomes of it.
struct Taken {
    line: &'static str,
    shown: fn(&Settings) -> String,
    expected: &'static str,
}

const RUN: &str = "oltp_read_write run";

#[test]
fn a_value_is_what_sysbench_reads_when_it_is_well_formed() {
    fn limits(s: &Settings) -> String {
        format!("{} {} {:?} {}", s.threads, s.events, s.time, s.rate)
    }
    fn tables(s: &Settings) -> String {
        format!("{} {} {}", s.tables, s.table_size, s.auto_inc)
    }
    fn keys(s: &Settings) -> String {
        format!("{} {}", s.distribution, s.seed)
    }
    fn shutdown(s: &Settings) -> String {
        format!("{:?}", s.forced_shutdown)
    }
    fn address(s: &Settings) -> String {
        format!(
            "{:?} {} {}",
            s.socket.as_deref().map(|path| path.display().to_string()),
            s.host,
            s.port
        )
    }
    fn ignored(s: &Settings) -> String {
        format!("{:?}", s.ignored)
    }
    fn reports(s: &Settings) -> String {
        format!(
            "{} {:?} {} {} {}",
            s.report_interval, s.checkpoints, s.percentile, s.histogram, s.verbosity
        )
    }
    fn what(s: &Settings) -> String {
        format!("{:?} {:?} {:?}", s.test, s.command, s.output)
    }
    let taken = |line, shown, expected| Taken { line, shown, expected };
    for Taken { line, shown, expected } in [
        taken("", limits, "1 0 10s 0"),
        taken("--threads=4 --threads=8 --events=5 --time=0 --rate=7", limits, "8 5 0ns 7"),
        taken(
            "--num-threads=2 --threads=0 --max-requests=3 --max-time=4 --tx-rate=5",
            limits,
            "2 3 4s 5",
        ),
        taken("--threads=3 --num-threads=1 --events=+5", limits, "3 5 10s 0"),
        taken("--time=-1 --events=-1", limits, "1 0 0ns 0"),
        taken("", tables, "1 10000 true"),
        taken("--table-size=1M --tables=2.7", tables, "2 1 true"),
        taken("--table_size=10K --auto_inc=off", tables, "1 10 false"),
        taken("--table-size=1e6 --auto-inc=0", tables, "1 1000000 false"),
        taken("--table-size=abc --auto-inc", tables, "1 0 true"),
        taken("--table-size=.5e1x --auto-inc=true", tables, "1 5 true"),
        taken("--table-size=0x10 --auto-inc=false", tables, "1 16 false"),
        taken("--table-size=-5 --auto_inc=1", tables, "1 0 true"),
        taken("", keys, "special 0"),
        taken("--rand-type=uniform --rand-seed=42", keys, "uniform 42"),
        taken("--rand-type=gaussian --rand-spec-iter=5", keys, "gaussian:5 0"),
        taken("--rand-type=pareto --rand-pareto-h=0.3x", keys, "pareto:0.3 0"),
        taken("--rand-type=zipfian --rand-zipfian-exp=1.1", keys, "zipf-adjacent:1.1 0"),
        taken("--rand-spec-iter=3 --rand-spec-pct=2 --rand-spec-res=50", keys, "special:3/2/50 0"),
        taken("--forced-shutdown=off", shutdown, "None"),
        taken("--forced-shutdown --time=50", shutdown, "Some(2s)"),
        taken("--forced-shutdown=50% --time=59", shutdown, "Some(29s)"),
        taken("--forced-shutdown=7", shutdown, "Some(7s)"),
        taken("--forced-shutdown=7 --time=0 --events=1", shutdown, "None"),
        taken("", address, "Some(\"/run/mysqld/mysqld.sock\") localhost 3306"),
        taken(
            "--mysql-host=localhost --mysql-port=3307",
            address,
            "Some(\"/run/mysqld/mysqld.sock\") localhost 3307",
        ),
        taken("--mysql-host=db1 --mysql-port=3307", address, "None db1 3307"),
        taken("--mysql-host=db1, --mysql-socket=/x", address, "Some(\"/x\") db1 3306"),
        taken("", ignored, "Codes([1213, 1020, 1205])"),
        taken("--mysql-ignore-errors=1062,1213", ignored, "Codes([1062, 1213])"),
        taken("--mysql-ignore-errors=all", ignored, "All"),
        taken("--mysql_ignore_errors=", ignored, "Codes([])"),
        taken("", reports, "0 [] 95 false 3"),
        taken(
            "--report-interval=1 --report-checkpoints=5,1,0 --percentile=0",
            reports,
            "1 [0, 1, 5] 0 false 3",
        ),
        taken("--histogram --percentile=99 --verbosity=1 --debug", reports, "0 [] 99 true 5"),
        taken("--output-version 1.1", what, "ReadWrite Run V1_1"),
        taken("--output-version=0.5", what, "ReadWrite Run V0_5"),
    ] {
        for line in [
            format!("{line} {RUN}"),
            format!("oltp_read_write {line} run"),
            format!("{RUN} {line}"),
        ] {
            assert_eq!(shown(&settings(&line)), expected, "{line}");
        }
    }
}

#[test]
fn a_test_is_found_by_name_by_path_and_by_its_name_in_older_versions() {
    let shown = |line: &str| {
        let s = settings(line);
        format!("{:?} {:?} {} {:?} {}", s.test, s.command, s.events, s.time, s.prepared)
    };
    for (line, expected) in [
        ("oltp_read_only run", "ReadOnly Run 0 10s true"),
        (
            "/usr/share/sysbench/oltp_update_non_index.lua cleanup",
            "UpdateNonIndex Cleanup 0 10s true",
        ),
        ("./bulk_insert.lua prepare", "BulkInsert Prepare 0 10s true"),
        ("oltp_common prewarm", "Common Prewarm 0 10s true"),
        ("oltp_insert warmup", "Insert Prewarm 0 10s true"),
        ("x --test=select_random_points run", "RandomPoints Run 0 10s true"),
        ("select_random_ranges --delta=3 --number-of-ranges=2 run", "RandomRanges Run 0 10s true"),
        ("--test=oltp prepare", "ReadWrite Prepare 10000 0ns true"),
        ("--test=oltp --oltp-read-only=on --num-threads=8 run", "ReadOnly Run 10000 0ns true"),
        ("--test=oltp --oltp-read-only --max-time=60 run", "ReadOnly Run 10000 60s true"),
        ("--test=oltp --max-requests=0 --max-time=60 run", "ReadWrite Run 0 60s true"),
        ("--test=oltp --oltp-test-mode=simple run", "PointSelect Run 10000 0ns true"),
        (
            "--test=oltp --oltp-test-mode=nontrx --oltp-nontrx-mode=update_key run",
            "UpdateIndex Run 10000 0ns true",
        ),
        ("--test=tests/db/oltp.lua --oltp-write-only=on run", "WriteOnly Run 0 10s false"),
        ("--test=/x/select.lua run", "PointSelect Run 0 10s false"),
        (
            "--test=/x/update_non_index.lua --output-version 0.5 run",
            "UpdateNonIndex Run 10000 0ns false",
        ),
        ("--test=/x/delete.lua --db-ps-mode=auto run", "Delete Run 0 10s false"),
    ] {
        assert_eq!(shown(line), expected, "{line}");
    }
}

#[test]
fn the_options_of_older_versions_are_those_of_today() {
    let s = settings(
        "--test=/x/oltp.lua --oltp-tables-count=8 --oltp-table-size=1000000 --oltp-range-size=10 \
         --oltp-point-selects=5 --oltp-simple-ranges=0 --oltp-skip-trx=on --oltp-auto-inc=off \
         --mysql-table-engine=myisam --oltp-dist-type=uniform --myisam-max-rows=5 --rand-init=on \
         --mysql-user=root run",
    );
    let numbers = (s.tables, s.table_size, s.counts["range_size"], s.counts["point_selects"]);
    assert_eq!(numbers, (8, 1_000_000, 10, 5));
    assert_eq!((s.counts["simple_ranges"], s.skip_trx, s.auto_inc), (0, true, false));
    assert_eq!((s.storage_engine.as_str(), s.distribution), ("myisam", Distribution::Uniform));
}

/// Command lines as the consumers of sysbench's output have them, their variables filled in.
const CONSUMERS: &[(&str, &str)] = &[
    (
        // PerfKitBenchmarker
        "oltp_read_write --db-driver=mysql --db-ps-mode=disable --mysql-host=10.0.0.5 --mysql-user=perfkit \
         --mysql-password=hush --mysql-db=sbtest --tables=4 --table_size=100000 --threads=16 --percentile=95 \
         --report-interval=1 --time=300 --rand-type=uniform run --thread-init-timeout=120",
        "ReadWrite Run 16 4 100000",
    ),
    (
        // kubebench
        "oltp_read_only --mysql-host=10.0.0.5 --mysql-port=3306 --mysql-user=root --mysql-password=hush \
         --mysql-db=sbtest --tables=10 --table_size=25000 --threads=4 --time=60 --percentile=99 \
         --report-interval=10 --mysql-ignore-errors=1041,2002,2003,1062,1205,1213,1290,2013,8018,8028 run",
        "ReadOnly Run 4 10 25000",
    ),
    (
        // dolt
        "--db-driver=mysql --mysql-host=127.0.0.1 --mysql-port=3306 --mysql-user=sysbench --mysql-password=hush \
         --db-ps-mode=disable --time=120 --percentile=50 --rand-seed=1 --table-size=10000 oltp_point_select run",
        "PointSelect Run 1 1 10000",
    ),
    (
        // cockroach
        "--db-driver=mysql --mysql-host=127.0.0.1 --mysql-port=3306 --mysql-user=root --mysql-password=hush \
         --mysql-db=sysbench --report-interval=1 --time=600 --threads=96 --tables=10 --table_size=10000000 \
         --auto_inc=false oltp_update_index run",
        "UpdateIndex Run 96 10 10000000",
    ),
    (
        // lkp-tests
        "oltp_read_write --db-driver=mysql --mysql-user=root --mysql-socket=/tmp/mysql.sock --threads=32 \
         --time=100 --events=0 --report-interval=10 --table-size=1000000 --tables=10 run",
        "ReadWrite Run 32 10 1000000",
    ),
    (
        // mmtests
        "--test=oltp --mysql-table-engine=innodb --mysql-socket=/tmp/mysql.sock --mysql-user=root --mysql-db=sbtest \
         --oltp-table-size=100000 --oltp-read-only=on --max-requests=0 --max-time=60 --num-threads=8 run",
        "ReadOnly Run 8 1 100000",
    ),
    (
        // mytools
        "--db-driver=mysql --mysql-user=root --mysql-password=hush --mysql-host=127.0.0.1 --mysql-db=ib \
         --mysql-storage-engine=innodb --range-size=100 --table-size=10000000 --tables=8 --threads=16 --events=0 \
         --time=300 --mysql-ignore-errors=all oltp_write_only.lua run",
        "WriteOnly Run 16 8 10000000",
    ),
    (
        // dbreport
        "oltp_read_write --mysql-host=127.0.0.1 --mysql-user=sbtest --mysql-password=hush --mysql-db=sbtest \
         --threads=64 --time=60 --report-interval=10 --histogram=off run",
        "ReadWrite Run 64 1 10000",
    ),
    (
        // VirtualClient
        "oltp_read_write --threads=8 --tables=10 --table-size=100000 --mysql-db=sbtest --mysql-host=127.0.0.1 \
         --time=300 run",
        "ReadWrite Run 8 10 100000",
    ),
    (
        // sysbench-operator
        "oltp_read_write --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port=3306 --mysql-db=continuous-writes \
         --mysql-user=operator --mysql-password=hush --threads=4 --time=0 --report-interval=1 --tables=4 \
         --table-size=100000 prepare",
        "ReadWrite Prepare 4 4 100000",
    ),
    (
        // phoronix-test-suite
        "oltp_common --threads=8 --rand-type=uniform --db-driver=mysql --mysql-db=sbtest --mysql-host=localhost \
         --mysql-port=3306 --mysql-user=sbtest --mysql-password=hush prepare --tables=16 --table-size=100000",
        "Common Prepare 8 16 100000",
    ),
    (
        "oltp_update_non_index --db-driver=mysql --mysql-db=sbtest --mysql-user=sbtest --mysql-password=hush run \
         --tables=16 --table-size=100000 --threads=32 --time=300 --rand-type=uniform",
        "UpdateNonIndex Run 32 16 100000",
    ),
    (
        // sysbench-scripts
        "--test=/usr/share/doc/sysbench/tests/db/oltp.lua --oltp-table-size=1000000 --oltp-tables-count=16 \
         --mysql-user=root --mysql-db=sbtest --num-threads=16 --max-time=3600 --max-requests=0 \
         --report-interval=10 --rand-init=on --rand-type=pareto run",
        "ReadWrite Run 16 16 1000000",
    ),
];

#[test]
fn a_command_line_of_a_consumer_is_taken_when_it_is_unchanged() {
    for (line, expected) in CONSUMERS {
        let s = settings(line);
        let shown =
            format!("{:?} {:?} {} {} {}", s.test, s.command, s.threads, s.tables, s.table_size);
        assert_eq!(shown, *expected, "{line}");
        let all = format!("{s:?} {}", native(&s));
        assert!(!all.contains("hush"), "{all}");
        for note in s.notes {
            harmless(&note);
        }
    }
}

/// Nothing on standard error looks like a figure of sysbench's to a parser.
fn harmless(text: &str) {
    let labels =
        "min avg max sum read write other total transactions queries percentile".split(' ');
    let labels = labels.map(|label| format!("{label}:"));
    for word in labels.chain(["FATAL", "per sec"].map(str::to_owned)) {
        assert!(!text.contains(&word), "{text}");
    }
    assert!(text.lines().all(|line| !line.starts_with('[')), "{text}");
}

/// A command line that loadgen does not do.
struct Undone {
    line: &'static str,
    stdout: &'static str,
    /// Part of the line on standard error.
    hint: &'static str,
}

#[test]
fn a_command_line_is_refused_with_a_hint_when_loadgen_cannot_do_it() {
    const NO_TEST: &str = "no such built-in test, file or module\n";
    let undone = |line, stdout, hint| Undone { line, stdout, hint };
    for Undone { line, stdout, hint } in [
        undone("cpu run", NO_TEST, "--sysbench-binary=PATH"),
        undone("fileio --file-test-mode=rndrw prepare", NO_TEST, "measures no database"),
        undone(
            "tpcc.lua --scale=10 run",
            "@FATAL: Cannot find benchmark 'tpcc.lua': no such",
            "--sysbench-binary",
        ),
        undone("run", "@FATAL: Cannot find benchmark 'run': no such", "none of oltp_*"),
        undone("-", "@", "standard input is Lua"),
        undone("--threads=2", "@", "standard input is Lua"),
        undone(
            "oltp_insert --db-driver=pgsql run",
            "@FATAL: invalid database driver name: 'pgsql'\n",
            "--sysbench",
        ),
        undone(
            "oltp_insert --db-driver=foo run",
            "@FATAL: invalid database driver name: 'foo'\n",
            "MariaDB",
        ),
        undone(
            "oltp_insert --db-ps-mode=foo run",
            "@FATAL: Invalid value for db-ps-mode: foo\n",
            "",
        ),
        undone("oltp_insert --db-ps-mode= run", "@FATAL: Invalid value for db-ps-mode: \n", ""),
        undone(
            "oltp_insert --rand-type= run",
            "FATAL: Invalid random numbers distribution: .\n",
            "",
        ),
        undone("oltp_insert --mysql-host= run", "@FATAL: No MySQL hosts specified, aborting\n", ""),
        undone("oltp_insert --mysql-port= run", "@FATAL: No MySQL ports specified, aborting\n", ""),
        undone("oltp_insert --mysql-host=a,b run", "@", "run it once for each"),
        undone("oltp_insert --mysql-port=1,2 run", "@", "run it once for each"),
        undone("oltp_insert --mysql-socket=/a,/b run", "@", "run it once for each"),
        undone("oltp_insert --mysql-port=x run", "@", "no port"),
        undone("oltp_insert --mysql-compression run", "@", "other bytes"),
        undone("oltp_insert --mysql-ssl-cipher=AES run", "@", "no such thing"),
        undone("oltp_insert --mysql-ssl=on run", "@", "over a socket"),
        undone("oltp_insert --mysql-host=a --mysql-ssl=verify_ca run", "@", "--mysql-ssl-ca"),
        undone(
            "oltp_insert --mysql-host=a --mysql-ssl=on --mysql-ssl-key=k run",
            "@",
            "go together",
        ),
        undone("oltp_insert --mysql-user= run", "@", "name the account"),
        undone("oltp_insert --rand-spec-res=101 run", "", "0 to 100"),
        undone("oltp_insert --rand-type=gaussian --rand-spec-iter=0 run", "", "1 to 1000"),
        undone("oltp_insert --rand-type=pareto --rand-pareto-h=abc run", "", "between 0 and 1"),
        undone("oltp_insert --rate=-1 run", "", "below 0"),
        undone("oltp_insert --tables=0 run", "@", "no table"),
        undone("oltp_insert --output-version=2 run", "", "0.5, 1.0 and 1.1"),
        undone("oltp_insert run --loadgen-out", "", "needs a value"),
        undone("--test=oltp --oltp-test-mode=sp run", "@", "no workload"),
        undone("--test=oltp --oltp-user-delay-max=5 run", "@", "no such thing"),
        undone("--test=oltp --oltp-table-name=x run", "@", "sbtest1"),
        undone("--test=oltp --oltp-reconnect-mode=query run", "@", "--oltp-reconnect-mode"),
    ] {
        let got = refused(line);
        let header = resolve::header(OutputVersion::V1_0);
        let expected = stdout.replace('@', &header);
        assert!(got.stdout.contains(&expected), "{line}: {got:?}");
        assert!(
            stdout.starts_with('@') == got.stdout.starts_with(&header) || stdout == NO_TEST,
            "{line}: {got:?}"
        );
        let lines = usize::from(!hint.is_empty()) + usize::from(line.contains("--test="));
        assert!(
            got.stderr.contains(hint) && got.stderr.lines().count() == lines,
            "{line}: {got:?}"
        );
        assert_eq!(got.status, 1, "{line}");
        harmless(&got.stderr);
    }
}

#[test]
fn the_real_sysbench_gets_the_command_line_when_it_is_named_and_needed() {
    for (line, theirs) in [
        ("--sysbench-binary=/x cpu --threads=x run", "cpu --threads=x run"),
        ("cpu --sysbench-binary /x run --output-version 1.1 --explain", "cpu run"),
        (
            "--test=tpcc.lua --loadgen-out=r --sysbench-binary=/x --mysql-host=a,b",
            "--test=tpcc.lua --mysql-host=a,b",
        ),
        (
            "oltp_insert --db-driver=pgsql --sysbench-binary=/x run",
            "oltp_insert --db-driver=pgsql run",
        ),
        ("--sysbench-binary=/x", ""),
    ] {
        let Ok(Parsed::HandOver { program, args }) = parse(&words(line), &nothing) else {
            panic!("{line} is not handed over")
        };
        assert_eq!((program.to_str(), args), (Some("/x"), words(theirs)), "{line}");
    }
    assert_eq!(settings("--sysbench-binary=/x oltp_insert run").test, Test::Insert);
    assert_eq!(refused("--sysbench-binary=/x --version").stdout, "sysbench 1.0.20\n");
}

#[test]
fn a_note_says_so_when_an_option_has_no_effect_or_another_one() {
    for (line, expected) in [
        ("--validate", "--validate has no effect"),
        ("--validate=off --debug=0 --threads=2", ""),
        (
            "--thread_stack_size=1M --luajit-cmd=off",
            "--thread_stack_size has no effect; --luajit-cmd has no effect",
        ),
        ("--db-debug --mysql-debug=on", "--db-debug has no effect; --mysql-debug has no effect"),
        ("--pgsql-host=x", "--pgsql-host has no effect"),
        ("--pgsql_variant=redshift", "--pgsql_variant has no effect"),
        ("--debug", "there are no debug messages: level 5 shows what level 4 does"),
        (
            "--time=-1 --mysql-ignore-errors=x",
            "--time below 0 is no limit; --mysql-ignore-errors: 'x' is no error's number",
        ),
        (
            "--mysql-host=a --mysql-ssl=on",
            "--mysql-ssl encrypts every connection, where sysbench may fall back to plain text",
        ),
    ] {
        let notes = settings(&format!("{line} {RUN}")).notes;
        assert_eq!(notes.join("; "), expected, "{line}");
        for note in notes {
            harmless(&note);
        }
    }
    let notes = settings("bulk_insert --tables=4 --table-size=5 --nonsense run").notes;
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes[2].contains("--nonsense is no option of this test"), "{notes:?}");
    assert!(settings("./oltp_insert.lua run").notes[0].contains("is not looked at"));
    assert!(settings("--test=oltp run").notes[0].contains("UNSIGNED"));
}

#[test]
fn lines_that_sysbench_writes_itself_are_kept_when_it_would_go_on() {
    let preamble = settings(&format!("--num-threads=2 --max-time=0 {RUN}")).preamble;
    assert_eq!(
        preamble.before_header,
        "WARNING: --num-threads is deprecated, use --threads instead\n"
    );
    let preamble = settings("--test=oltp_insert --time=0 --config-file=/nonexistent run").preamble;
    assert_eq!(preamble.stderr, format!("{DEPRECATED}/nonexistent: No such file or directory\n"));
    let endless = "WARNING: Both event and time limits are disabled, running an endless test\n";
    assert_eq!(preamble.before_header, endless);
}

#[test]
fn a_config_file_is_read_as_by_sysbench() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("config");
    let read = |text: &str, line: &str| {
        std::fs::write(&path, text).expect("written");
        settings(&line.replace('@', &format!("--config-file={}", path.display())))
    };
    // As the manual of TiDB has it.
    let s = read(
        "mysql-host=172.16.30.33\nmysql-port=4000\nmysql-user=root\nmysql-password=hush\nmysql-db=sbtest\n\
         time=600\nthreads=16\nreport-interval=10\ndb-driver=mysql\n",
        "@ oltp_point_select --tables=32 --table-size=10000000 run",
    );
    assert_eq!(
        (s.host.as_str(), s.port, s.user.as_str(), s.threads),
        ("172.16.30.33", 4000, "root", 16)
    );
    assert_eq!((s.password.expose(), s.report_interval, s.tables), ("hush", 10, 32));
    assert!(s.notes.is_empty() && s.preamble == Preamble::default(), "{s:?}");

    let text = "threads=3\n# a=b\n# only a comment\nmysql-host = h1\nevents=2 # two\ntable_size=5\nfoo=bar\n\
                debug=off\nhistogram\nmysql-user=\"a b\"\nmysql-db='q#'\nmysql-password=x#y,z\n\
                mysql-ignore-errors=1,2, 3\nreport-interval= 7\r\n--rate=4\nnonsense\n";
    let s = read(text, "--threads=1 @ oltp_insert run");
    assert_eq!((s.threads, s.events, s.table_size, s.rate), (3, 2, 10_000, 0));
    assert_eq!((s.user.as_str(), s.database.as_str(), s.password.expose()), ("a b", "q#", "x#y"));
    assert_eq!((s.debug, s.histogram, s.report_interval), (true, false, 7));
    assert_eq!(s.ignored, Ignored::Codes(vec![1, 2, 3]));
    let unknown = ["# a", "mysql_host ", "foo", "__rate"].map(|name| {
        format!(
            "WARNING: Global option '{name}' will not be exported, because the type is unknown\n"
        )
    });
    assert_eq!(s.preamble.after_header, unknown.concat());
    assert!(s.notes.iter().any(|note| note.contains("table_size in a config file has no effect")));
    assert!(s.notes.iter().any(|note| note.contains("debug=off in a config file is on")));
    assert_eq!(
        read(text, "@ --threads=2 --verbosity=1 --debug=0 oltp_insert run").preamble.after_header,
        ""
    );

    let s = read("mysql-user=a\nmysql-db=\"x\nthreads=7\n", "@ oltp_insert run");
    assert_eq!((s.user.as_str(), s.database.as_str(), s.threads), ("a", "", 1));
    assert_eq!(s.preamble.stderr, "unexpected EOL on line 2\n");
}

#[test]
fn the_environment_says_where_the_socket_the_password_and_the_summary_are() {
    let env = |name: &str| match name {
        "MYSQL_UNIX_PORT" => Some("/run/other.sock".into()),
        "MYSQL_PWD" => Some("hush".into()),
        "LOADGEN_OUT" => Some("left".into()),
        _ => None,
    };
    let read = |line: &str| match parse(&words(line), &env) {
        Ok(Parsed::Settings(settings)) => *settings,
        _ => panic!("{line}"),
    };
    let s = read("oltp_insert run");
    assert_eq!(s.socket.as_deref().and_then(|path| path.to_str()), Some("/run/other.sock"));
    assert_eq!(
        (s.password.expose(), s.out.as_deref().and_then(|path| path.to_str())),
        ("hush", Some("left"))
    );
    let s = read("oltp_insert --mysql-password=x --loadgen-out r --mysql-host=h run");
    assert_eq!((s.password.expose(), s.socket), ("x", None));
    assert_eq!(s.out.as_deref().and_then(|path| path.to_str()), Some("r"));
}

#[test]
fn a_password_is_in_no_answer_when_it_is_mistyped() {
    for line in [
        "oltp_insert --mysql-pass=hush run",
        "--mysql-password hush run",
        "--mysql-password hush oltp_insert run",
        "oltp_insert --mysql-password hush run",
        "oltp_insert --mysql-password hush",
    ] {
        let got = refused(line);
        assert!(!format!("{got:?}").contains("hush"), "{line}: {got:?}");
    }
}

#[test]
fn a_native_command_does_the_same_when_it_is_explained() {
    for (line, expected, differs) in [
        (
            "oltp_read_only --tables=4 --table-size=1000 --threads=8 --time=60 --mysql-host=db1 --mysql-password=hush \
             --range_selects=off --skip-trx --report-interval=1 run",
            "loadgen read-only --tables 4 --rows 1000 --clients 8 --time 60s --warmup 0s --distribution special \
             --statements prepared --table-each --distinct-ranges 0 --order-ranges 0 --simple-ranges 0 --skip-trx \
             --sum-ranges 0 --progress 1s --no-defaults --host db1 --port 3306 --user sbtest --password \
             --database sbtest",
            "not begun again",
        ),
        (
            "oltp_point_select --events=100 --time=0 --rate=50 --rand-type=uniform --db-ps-mode=disable \
             --mysql-socket=/x --mysql-ignore-errors=all --rand-seed=3 --loadgen-out=r run",
            "loadgen point-select --tables 1 --rows 10000 --clients 1 --ops 100 --warmup 0s --rate 50 \
             --distribution uniform --statements text --seed 3 --out r --on-error continue --no-defaults --socket /x \
             --user sbtest --database sbtest",
            "counted",
        ),
        (
            "oltp_update_index --index_updates=3 --events=5 --mysql-host=h run",
            "loadgen update-index --tables 1 --rows 10000 --clients 1 --ops 5 --warmup 0s --distribution special \
             --statements prepared --no-defaults --host h --port 3306 --user sbtest --database sbtest",
            "an event has 3 updates",
        ),
        (
            "select_random_ranges --number-of-ranges=2 --delta=9 --tables=4 --mysql-host=h run",
            "loadgen random-ranges --tables 1 --rows 10000 --clients 1 --time 10s --warmup 0s --distribution special \
             --statements prepared --delta 9 --random-ranges 2 --no-defaults --host h --port 3306 --user sbtest \
             --database sbtest",
            "uniformly",
        ),
        (
            "bulk_insert --threads=2 --mysql-host=h run",
            "loadgen bulk-insert --tables 2 --clients 2 --time 10s --warmup 0s --statements prepared --no-defaults \
             --host h --port 3306 --user sbtest --database sbtest",
            "an event is a row",
        ),
        (
            "oltp_common --threads=2 --tables=4 --secondary --mysql-host=h prepare",
            "loadgen prepare --tables 4 --rows 10000 --jobs 2 --no-defaults --host h --port 3306 --user sbtest \
             --database sbtest",
            "id is the primary key",
        ),
        (
            "oltp_insert --mysql-host=h prewarm",
            "loadgen point-select --warm pool --ops 1 --tables 1 --rows 10000 --no-defaults --host h --port 3306 \
             --user sbtest --database sbtest",
            "besides",
        ),
        (
            "oltp_insert --mysql-host=h --mysql-ssl=required cleanup",
            "loadgen cleanup --yes --no-defaults --host h --port 3306 --user sbtest --database sbtest \
             --ssl-mode REQUIRED",
            "no others",
        ),
    ] {
        let said = native(&settings(line));
        let (command, rest) = said.split_once('\n').expect("two lines");
        assert_eq!(command, expected, "{line}");
        assert!(
            rest.lines().all(|line| line.starts_with("# ")) && rest.contains(differs),
            "{said}"
        );
        let native = command.split(' ').filter(|word| *word != "--table-each");
        let read = crate::cli::command().0.try_get_matches_from(native);
        assert!(read.is_ok(), "{command}: {:?}", read.err());
    }
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
