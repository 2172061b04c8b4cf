//! Where summaries cannot be written: found before the first step where it can be, and printed
//! rather than lost otherwise.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use loadgen::canned::{Action, At, Fault};
use loadgen::summary::{ErrorClass, Outcome, Summary};

use crate::common::program::{Ended, Results, canned, command, wait};
use crate::common::restarting::until;
use crate::common::skipped;

const WORDS: &str = "point-select --tables 8 --clients 2 --warmup 0 --time 300ms";

/// With files of so many bytes at most, summaries into `out`.
fn within(bytes: u64, port: u16, more: &[&str], out: &Path) -> Output {
    let mut command = Command::new("prlimit");
    command
        .arg(format!("--fsize={bytes}"))
        .arg(env!("CARGO_BIN_EXE_loadgen"))
        .args(WORDS.split_whitespace())
        .args(["-h", "127.0.0.1", "-u", "x", "--no-defaults", "-P", &port.to_string()])
        .args(more)
        .arg("--out")
        .arg(out)
        .stdin(Stdio::null());
    command.output().expect("prlimit, of util-linux")
}

/// The summary that standard output begins with.
fn printed(stdout: &[u8]) -> Summary {
    let mut values = serde_json::Deserializer::from_slice(stdout).into_iter::<Summary>();
    let text = String::from_utf8_lossy(stdout);
    values
        .next()
        .unwrap_or_else(|| panic!("nothing: {text}"))
        .unwrap_or_else(|e| panic!("{e}: {text}"))
}

struct InTheWay {
    bytes: u64,
    out: std::path::PathBuf,
    code: i32,
    says: &'static str,
}

#[test]
fn what_is_in_the_way_is_found_before_anything_is_connected() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    fs::write(&file, "").expect("writable");
    // Nobody listens on this port: whoever connects ends with 3.
    for InTheWay { bytes, out, code, says } in [
        InTheWay {
            bytes: 1 << 30,
            out: dir.path().join("none").join("results"),
            code: 2,
            says: "parent directory does not exist",
        },
        InTheWay { bytes: 1 << 30, out: file.clone(), code: 2, says: "is a file and no directory" },
        InTheWay {
            bytes: 1 << 30,
            out: file.join("results"),
            code: 2,
            says: "is a file and no directory",
        },
        InTheWay { bytes: 4096, out: dir.path().join("results"), code: 1, says: "File too large" },
    ] {
        let output = within(bytes, 1, &[], &out);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{says}: {text}");
        assert!(text.contains(says) && text.contains("hint: "), "{says}: {text}");
    }
    let left: Vec<_> = fs::read_dir(dir.path().join("results")).expect("made").collect();
    assert!(left.is_empty(), "the trial leaves nothing: {left:?}");
}

/// A name is durable only with its directory, and one that may not be read cannot be synced. Root
/// may read all of them.
#[test]
fn a_directory_that_cannot_be_synced_is_found_before_anything_is_connected() {
    let program = env!("CARGO_BIN_EXE_loadgen");
    let nobody = |what: &str, more: &[&str]| {
        let account = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        Command::new("setpriv").args(account).arg(what).args(more).output()
    };
    if !nobody("test", &["-x", program]).is_ok_and(|output| output.status.success()) {
        skipped("needs root, setpriv, and a path that nobody may read");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    mode(dir.path(), 0o755).expect("own");
    // The results, and what a new directory of results is in.
    for (name, results) in [("there", "there"), ("parent", "parent/results")] {
        let closed = dir.path().join(name);
        fs::create_dir(&closed).expect("writable");
        mode(&closed, 0o333).expect("own");
        let out = dir.path().join(results);
        let words = "point-select --no-defaults -h 127.0.0.1 -P 1 -u x --out";
        let words: Vec<&str> = words.split(' ').chain(out.to_str()).collect();
        // Nobody listens on this port: whoever connects ends with 3.
        let output = nobody(program, &words).expect("setpriv runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("permission denied") && text.contains("hint: "), "{text}");
    }
}

#[test]
fn a_summary_that_cannot_be_written_goes_to_standard_output() {
    let server = canned(Vec::new());
    let results = Results::new();
    // The trial fits, the summary does not.
    let note = format!("large={}", "x".repeat(70_000));
    let output = within(65_536, server.port(), &["--note", &note], results.dir());
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let summary = printed(&output.stdout);
    assert!(summary.totals.ops > 0 && summary.notes["large"].len() == 70_000);
    assert_eq!(fs::read_dir(results.dir()).expect("a directory").count(), 0, "nothing half");
}

#[test]
fn a_directory_that_goes_away_costs_no_step() {
    let server = canned(Vec::new());
    let port = server.port().to_string();
    let results = Results::new();
    let start = Instant::now();
    let words = "point-select --tables 8 --clients 1,2,4,8 --warmup 0 --time 1s";
    let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x"];
    let child = command(words, &connection, &results).spawn().expect("runs");
    until("a step's end", || !results.summaries().is_empty());
    fs::remove_dir_all(results.dir()).expect("removed");
    fs::create_dir(results.dir()).expect("for the harness");
    fs::remove_dir(results.dir()).expect("gone");
    let output = child.wait_with_output().expect("it ends");
    assert!(start.elapsed().as_secs() < 120);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    // A busy host may be late to take the directory away.
    assert!(printed(&output.stdout).plan.clients > 1, "a later step's: {text}");
    fs::create_dir(results.dir()).expect("for its end");
}

/// Whether this account may mount a tmpfs of its own; what does not run is told.
fn may_mount() -> bool {
    let can = Command::new("unshare").args(["-m", "true"]).output();
    let can = can.is_ok_and(|output| output.status.success());
    if !can {
        skipped("needs root, to mount a tmpfs");
    }
    can
}

/// Runs the program with a disk of its own at `disk`; `meanwhile` is what a shell does beside it.
/// Then the files on that disk are listed on standard error.
fn with_disk(
    mount: &str,
    disk: &Path,
    meanwhile: &str,
    words: &str,
    port: u16,
    results: &Results,
) -> Ended {
    let start = Instant::now();
    let script = format!(
        "mount -t tmpfs -o {mount} none '{disk}' || exit 77; {meanwhile} '{}' {words} -h 127.0.0.1 \
         -P {port} -u x --no-defaults --out '{}'; code=$?; ls -A '{disk}' >&2; exit $code",
        env!("CARGO_BIN_EXE_loadgen"),
        results.dir().display(),
        disk = disk.display()
    );
    let mut shell = Command::new("unshare");
    shell.args(["-m", "sh", "-c", &script]).stdin(Stdio::null());
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    wait(shell.spawn().expect("unshare"), start, results)
}

/// The names that end so, of what `ls` listed; errors name files, too.
fn listed(ended: &Ended, end: &str) -> usize {
    let is = |line: &&str| line.ends_with(end) && !line.contains([' ', '/']);
    ended.stderr.lines().filter(is).count()
}

struct Disk<'a> {
    mount: &'a str,
    more: &'a str,
    code: i32,
    says: &'a str,
}

/// A disk of a hundred KiB, and one that may not be written, where this account may mount one.
#[test]
fn a_full_disk_and_a_read_only_one() {
    if !may_mount() {
        return;
    }
    let server = canned(Vec::new());
    // A few of them fill the disk.
    let large = format!("--clients 1,2,3,4,5,6 --note large={}", "x".repeat(20_000));
    for Disk { mount, more, code, says } in [
        Disk { mount: "size=100k", more: large.as_str(), code: 1, says: "no space left" },
        Disk { mount: "size=4k", more: "", code: 1, says: "no space left" },
        Disk { mount: "ro", more: "", code: 2, says: "read-only" },
    ] {
        let results = Results::new();
        let words =
            WORDS.replace("--clients 2 ", if more.is_empty() { "--clients 2 " } else { "" });
        let words = format!("{words} {more}");
        let ended = with_disk(mount, results.dir(), "", &words, server.port(), &results);
        assert_eq!(ended.code, code, "{mount}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "{mount}: {}", ended.stderr);
        if !more.is_empty() {
            let saved = listed(&ended, ".json");
            let printed = printed(ended.stdout.as_bytes());
            assert_eq!(printed.plan.clients as usize, saved + 1, "each step is somewhere");
            assert!(saved > 0 && listed(&ended, ".tmp") == 0, "{}", ended.stderr);
        }
    }
}

/// The trial fits, there are megabytes when the step begins, and 16 KiB when its summary is written:
/// less than the timeline of 10 s takes.
#[test]
fn a_disk_that_fills_in_the_middle_of_a_long_summary() {
    if !may_mount() {
        return;
    }
    let server = canned(Vec::new());
    let results = Results::new();
    let fill = format!(
        "(sleep 4; cd '{}' && head -c 16384 /dev/zero >spare && cat /dev/zero >filler; rm spare) \
         2>/dev/null &",
        results.dir().display()
    );
    let words = "point-select --tables 8 --clients 4,8 --rate 2k --warmup 0 --time 10s \
                 --interval 100ms";
    let ended = with_disk("size=4m", results.dir(), &fill, words, server.port(), &results);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert_eq!(listed(&ended, "filler"), 1, "the disk was filled: {}", ended.stderr);
    let left = (listed(&ended, ".json"), listed(&ended, ".tmp"));
    assert_eq!(left, (0, 0), "nothing half: {}", ended.stderr);
    let printed = printed(ended.stdout.as_bytes());
    let timeline: usize = serde_json::to_string(&printed.timeline).expect("JSON").len();
    assert!(timeline > 16_384, "{timeline} bytes of {} intervals", printed.timeline.len());
    let counted: u64 = printed.timeline.iter().map(|entry| entry.ops).sum();
    assert!(printed.totals.ops > 0 && counted >= printed.totals.ops, "it is whole");
}

/// The log is beside the results: what cannot be logged costs no measurement, and is an error.
#[test]
fn an_interval_log_whose_disk_fills_costs_no_summary() {
    if !may_mount() {
        return;
    }
    let server = canned(Vec::new());
    let (results, disk) = (Results::new(), tempfile::tempdir().expect("a directory"));
    let words = format!(
        "point-select --tables 8 --clients 1,2 --rate 2k --warmup 0 --time 4s --interval 100ms \
         --interval-log '{}'",
        disk.path().join("x.hlog").display()
    );
    let ended = with_disk("size=16k", disk.path(), "", &words, server.port(), &results);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let says = ended.stderr.contains("--interval-log") && ended.stderr.contains("No space left");
    assert!(says, "{}", ended.stderr);
    assert_eq!(listed(&ended, ".hlog"), 1, "{}", ended.stderr);
    let summary = ended.only();
    assert_eq!(summary.outcome, Outcome::Completed);
    assert!(summary.totals.ops > 0 && summary.timeline.len() >= 40, "{:?}", summary.totals);

    // What ends the step is told, too.
    let lost = Fault::new(At::Statement(6000), Action::Close).only("WHERE id=");
    let server = canned(vec![lost]);
    let (results, disk) = (Results::new(), tempfile::tempdir().expect("a directory"));
    let log = disk.path().join("x.hlog");
    let words = words.split("--interval-log").next().expect("words").to_owned();
    let words = format!("{words} --interval-log '{}'", log.display());
    let ended = with_disk("size=16k", disk.path(), "", &words, server.port(), &results);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let lost = ended.only().totals.errors.iter().any(|error| error.class == ErrorClass::Lost);
    assert!(lost && ended.stderr.contains("error: client"), "{}", ended.stderr);
    assert!(ended.stderr.contains("warning: --interval-log"), "{}", ended.stderr);
    assert_eq!(ended.only().outcome, Outcome::Aborted);
}

#[test]
fn canned_server_ends_when_its_port_cannot_be_printed() {
    let full = fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let words = ["20", env!("CARGO_BIN_EXE_loadgen"), "canned", "--connections", "10"];
    let output = Command::new("timeout").args(words).stdout(full).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1), "124 is that of timeout");
}
