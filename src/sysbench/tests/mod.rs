use std::ffi::OsString;
use std::io::Write;
use std::process::{Command as Program, Stdio};
use std::sync::Arc;

use super::options::Becomes;
use super::settings::{Ignored, Opening, OutputVersion, Test};
use super::*;
use crate::mysql::options::{Address, SslMode};
use crate::stop::locked;

mod taken;

const RUN: &str = "oltp_read_write run";

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

/// The first lines of an output.
fn header() -> String {
    output::header(OutputVersion::V1_0) + "\n"
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

fn refused(line: &str) -> Opening {
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
    answered("--verbosity=6 a", "Invalid value for verbosity: 6\n", ""),
    answered("--verbosity=7777 a", "Invalid value for verbosity: 97\n", ""),
    answered(
        "--verbosity=9 --rand-type=z a",
        "FATAL: Invalid random numbers distribution: z.\n",
        "",
    ),
    answered("--rate=x --rand-type=z a", "FATAL: Invalid random numbers distribution: z.\n", ""),
    answered("--threads=0 --verbosity=abc a", "FATAL: Invalid value for --threads: 0.\n\n", ""),
    answered(
        "--num-threads=2 --percentile=99.9 a",
        "WARNING: --num-threads is deprecated, use --threads instead\n",
        "Invalid value for the 'percentile' option: '99.9'\n",
    ),
    answered(
        "--num-threads=4 --threads=abc --percentile=101 a",
        "WARNING: --num-threads is deprecated, use --threads instead\n\
         FATAL: Invalid value for --percentile: 101\n",
        "",
    ),
    answered(
        "--threads=abc --num-threads=xyz a",
        "",
        "Invalid value for the 'num_threads' option: 'xyz'\n",
    ),
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
        let expected = stdout.replace('@', &header());
        let expected = (expected.as_str(), *stderr, *status);
        let told = got.early + &got.stderr;
        assert_eq!((got.stdout.as_str(), told.as_str(), got.status), expected, "{line}");
        let Some((stdout, stderr, status)) = theirs(line) else { continue };
        assert_eq!((stdout.as_str(), stderr.as_str(), status), expected, "sysbench {line}");
    }
}

/// Runs the installed sysbench 1.0.20, and replaces its header by loadgen's; None without one.
fn theirs(line: &str) -> Option<(String, String, u8)> {
    let output = Program::new("sysbench").args(words(line)).stdin(Stdio::null()).output().ok()?;
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    let ours = header();
    let stdout = match stdout.find("sysbench 1.0.20 (using ").zip(stdout.find("\n\n")) {
        Some((from, to)) => format!("{}{ours}{}", &stdout[..from], &stdout[to + 2..]),
        None => stdout,
    };
    Some((stdout, stderr, output.status.code().expect("it ends") as u8))
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
        undone("fileio --file-test-mode=rndrw prepare", NO_TEST, "none of oltp_*"),
        undone(
            "tpcc.lua --scale=10 run",
            "@FATAL: Cannot find benchmark 'tpcc.lua': no such",
            "--sysbench-binary",
        ),
        undone("run", "@FATAL: Cannot find benchmark 'run': no such", "none of oltp_*"),
        undone(
            "oltp_insert --db-driver=pgsql run",
            "@FATAL: invalid database driver name: 'pgsql'\n",
            "--sysbench",
        ),
        undone(
            "oltp_insert --rand-type= run",
            "FATAL: Invalid random numbers distribution: .\n",
            "",
        ),
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
        undone("oltp_insert --time=-1 run", "", "below 0"),
        undone("oltp_insert --max-requests=-3 run", "", "below 0"),
        undone("oltp_insert --tables=0 run", "@", "no table"),
        undone("oltp_insert --threads=1000001 prepare", "@", "1000000 threads are the most"),
        undone("oltp_insert --output-version=2 run", "", "0.5, 1.0 and 1.1"),
        undone("oltp_insert run --loadgen-out", "", "needs a value"),
        undone("oltp_insert --loadgen-out --time=1 run", "", "needs a value"),
        undone("--test=oltp --oltp-test-mode=simple run", "@", "each mode is a workload"),
        undone("--test=oltp --oltp-user-delay-max=5 run", "@", "invalid option: --oltp"),
        undone("--test=oltp --oltp-table-name=x run", "@", "sbtest1"),
    ] {
        let got = refused(line);
        let header = header();
        let expected = stdout.replace('@', &header);
        assert!(got.stdout.contains(&expected), "{line}: {got:?}");
        assert!(
            stdout.starts_with('@') == got.stdout.starts_with(&header) || stdout == NO_TEST,
            "{line}: {got:?}"
        );
        // The hint stands behind sysbench's own lines.
        let lines = usize::from(!hint.is_empty());
        assert!(
            got.stderr.contains(hint) && got.stderr.lines().count() == lines,
            "{line}: {got:?}"
        );
        assert_eq!(got.early.is_empty(), !line.contains("--test="), "{line}");
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
        (
            "--mysql-ignore-errors=x",
            "--mysql-ignore-errors: 'x' is not an error number, and has no effect",
        ),
        (
            "--mysql-host=a --mysql-ssl=on",
            "--mysql-ssl encrypts every connection; sysbench may fall back to plain text",
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
    assert!(notes[2].contains("--nonsense "), "{notes:?}");
    let dir = tempfile::tempdir().expect("a directory");
    let name = dir.path().join("oltp_insert.lua");
    std::fs::write(&name, "#!/usr/bin/sysbench\nprint(1)\n").expect("a file");
    let line = format!("{} run", name.display());
    assert_eq!(settings(&line).test, Test::Script, "its text is not the stock one");
    assert!(settings("--test=oltp run").notes[0].contains("sbtest1"));
}

#[test]
fn checkpoints_are_refused_when_there_are_more_than_sysbench_takes() {
    let line = |seconds: &str| format!("--report-checkpoints={seconds} {RUN}");
    let most = ["1"; 256].join(",");
    assert_eq!(settings(&line(&most)).values.checkpoints().len(), 256);
    let words = "FATAL: Too many checkpoints in --report-checkpoints (up to 256 can be defined)\n";
    assert_eq!(refused(&line(&format!("{most},1,x"))).stdout, words);
}

#[test]
fn numbers_of_a_list_are_read_when_blanks_precede_them() {
    let lists = ["--mysql-ignore-errors=1213, 1020", "--report-checkpoints=1, 2"];
    let args: Vec<OsString> =
        lists.into_iter().chain(RUN.split_whitespace()).map(OsString::from).collect();
    let Ok(Parsed::Settings(settings)) = parse(&args, &nothing) else { panic!("it is taken") };
    assert!(settings.notes.is_empty(), "{:?}", settings.notes);
    assert_eq!(format!("{:?}", settings.ignored), "Codes([1213, 1020])");
    assert_eq!(settings.values.checkpoints(), [1, 2]);
}

#[test]
fn lines_that_sysbench_writes_itself_are_kept_when_it_would_go_on() {
    let opening = settings(&format!("--num-threads=2 --max-time=0 {RUN}")).opening;
    let warning = "WARNING: --num-threads is deprecated, use --threads instead\n";
    assert_eq!(opening.stdout, warning.to_owned() + &header());
    let opening = settings("--test=oltp_insert --time=0 --config-file=/nonexistent run").opening;
    assert_eq!(opening.early, format!("{DEPRECATED}/nonexistent: No such file or directory\n"));
    assert_eq!(settings("--config-file= oltp_insert run").opening.early, "");
    let endless = "WARNING: Both event and time limits are disabled, running an endless test\n";
    assert_eq!(opening.stdout, endless.to_owned() + &header());
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
        (s.server.as_str(), s.connect.user.as_str(), s.threads),
        ("on host '172.16.30.33', port 4000", "root", 16)
    );
    assert_eq!(
        (s.connect.password.expose(), s.values.int("report-interval"), s.tables),
        ("hush", 10, 32)
    );
    assert!(
        s.notes.is_empty() && s.opening.stdout == header() && s.opening.early.is_empty(),
        "{s:?}"
    );

    let text = "threads=3\n# a=b\n# only a comment\nmysql-host = h1\nevents=2 # two\ntable_size=5\nfoo=bar\n\
                debug=off\nhistogram\nmysql-user=\"a b\"\nmysql-db='q#'\nmysql-password=x#y,z\n\
                mysql-ignore-errors=1,2, 3\nreport-interval= 7\r\n--rate=4\nnonsense\n";
    let s = read(text, "--threads=1 @ oltp_insert run");
    assert_eq!((s.threads, s.events, s.table_size, s.rate), (3, 2, 10_000, 0));
    assert_eq!(
        (s.connect.user.as_str(), s.connect.database.as_str(), s.connect.password.expose()),
        ("a b", "q#", "x#y")
    );
    assert_eq!(
        (s.values.on("debug"), s.values.on("histogram"), s.values.int("report-interval")),
        (true, false, 7)
    );
    assert_eq!(s.ignored, Ignored::Codes(vec![1, 2, 3]));
    let unknown = ["# a", "mysql_host ", "foo", "__rate"].map(|name| {
        format!(
            "WARNING: Global option '{name}' will not be exported, because the type is unknown\n"
        )
    });
    assert_eq!(s.opening.stdout, header() + &unknown.concat());
    assert!(s.notes.iter().any(|note| note.starts_with("table_size ")));
    assert!(s.notes.iter().any(|note| note.starts_with("debug=off ")));
    assert_eq!(
        read(text, "@ --threads=2 --verbosity=1 --debug=0 oltp_insert run").opening.stdout,
        ""
    );

    let s = read("mysql-host=h\nmysql-ssl=banana\n", "@ oltp_insert run");
    assert_eq!(s.connect.ssl.mode, SslMode::Required);
    let s = read("mysql-user=a\nmysql-db=\"x\nthreads=7\n", "@ oltp_insert run");
    assert_eq!((s.connect.user.as_str(), s.connect.database.as_str(), s.threads), ("a", "", 1));
    assert_eq!(s.opening.early, "unexpected EOL on line 2\n");
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
    assert_eq!(s.connect.address, Address::Socket("/run/other.sock".into()));
    assert_eq!(
        (s.connect.password.expose(), s.out.as_deref().and_then(|path| path.to_str())),
        ("hush", Some("left"))
    );
    assert_eq!(s.out_named_by, "LOADGEN_OUT=DIR");
    let s = read("oltp_insert --mysql-password=x --loadgen-out r --mysql-host=h run");
    let tcp = Address::Tcp { host: "h".to_owned(), port: 3306 };
    assert_eq!((s.connect.password.expose(), s.connect.address), ("x", tcp));
    assert_eq!(s.out.as_deref().and_then(|path| path.to_str()), Some("r"));
    assert_eq!(s.out_named_by, "--loadgen-out=DIR");
}

#[test]
fn a_password_is_in_no_answer_when_it_is_mistyped() {
    for line in [
        "oltp_insert --mysql-pass=hush run",
        "oltp_insert --DB_PASS=hush run",
        "oltp_insert run --MYSQL-PASSWORD hush",
        "oltp_insert run --mysql_pasword hush",
        "--mysql-password hush run",
        "--mysql-password hush --mysql-pass run",
        "--mysql-password hush oltp_insert run",
        "oltp_insert --mysql-password hush run",
        "oltp_insert --mysql-password hush",
    ] {
        let got = refused(line);
        assert!(!format!("{got:?}").contains("hush"), "{line}: {got:?}");
    }
}

#[test]
fn a_driver_fails_at_the_first_connection_when_its_options_are_wrong() {
    for (option, fault) in [
        ("--db-driver=foo", "invalid database driver name: 'foo'"),
        ("--db-ps-mode=foo", "Invalid value for db-ps-mode: foo"),
        ("--db-ps-mode=", "Invalid value for db-ps-mode: "),
        ("--mysql-host=", "No MySQL hosts specified, aborting"),
        ("--mysql-port=", "No MySQL ports specified, aborting"),
    ] {
        let found = settings(&format!("oltp_insert {option} run")).driver_fault;
        assert_eq!(found.as_deref(), Some(fault));
    }
    assert_eq!(settings("oltp_insert run").driver_fault, None);
}

/// Lists the flags of loadgen that hints name.
pub(crate) fn native_flags() -> impl Iterator<Item = String> {
    let ours = |option: &options::Entry| match option.becomes {
        Becomes::Flags(ours) => ours,
        Becomes::Same => option.key(),
        Becomes::Nothing(_) => "",
    };
    let flag = |words: &str| words.split(' ').next().map(|flag| format!("--{flag}"));
    let all = options::OPTIONS.iter().map(ours).filter(|ours| !ours.is_empty());
    all.flat_map(|ours| ours.split(", ")).filter_map(flag)
}

/// Settings that tests of several files start from.
pub(in crate::sysbench) fn usual() -> Settings {
    usual_with("")
}

/// Likewise, with further options.
pub(in crate::sysbench) fn usual_with(options: &str) -> Settings {
    settings(&format!(
        "oltp_read_write --threads=2 --rand-type=uniform --thread-init-timeout=10 \
         --mysql-host=127.0.0.1 {options} run"
    ))
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
