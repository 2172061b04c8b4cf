//! What this host runs out of: an error, not a crash.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::common::program::{Ended, Results, canned, wait};

/// The program after a shell has set its limits.
fn limited(limits: &str, words: &str) -> Ended {
    let server = canned(Vec::new());
    let (results, started) = (Results::new(), Instant::now());
    let port = server.port().to_string();
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("{limits} && exec \"$0\" \"$@\""))
        .arg(env!("CARGO_BIN_EXE_loadgen"))
        .args(words.split_whitespace())
        .args(["-h", "127.0.0.1", "-P", &port, "-u", "x", "--no-defaults", "--out"])
        .arg(results.dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    wait(command.spawn().expect("a shell"), started, &results)
}

const WORDS: &str = "point-select --tables 8 --clients 64 --warmup 0 --time 1s";

#[test]
fn too_few_descriptors_are_refused_with_the_arithmetic() {
    let ended = limited("ulimit -n 80", WORDS);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    for of in [" 80,", " 64 ", "\nhint: "] {
        assert!(ended.stderr.contains(of), "{of}: {}", ended.stderr);
    }
    // So few that not even the runtime can be made, or that nothing can be opened.
    for few in 4..16 {
        let ended = limited(&format!("ulimit -n {few}"), WORDS);
        assert!(matches!(ended.code, 1..=3), "{few}: {} {}", ended.code, ended.stderr);
        assert!(ended.stderr.contains("error: "), "{few}: {}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{few}: {}", ended.stderr);
    }
}

#[test]
fn too_little_memory_is_refused_with_the_arithmetic() {
    let ended = limited("ulimit -v 200000", WORDS);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert!([" 196,", " 64 "].iter().all(|of| ended.stderr.contains(of)), "{}", ended.stderr);
    // What it asks for is enough.
    let hint = ended.stderr.rsplit("ulimit -v ").next().expect("a hint");
    let kib: u64 = hint.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number");
    let ended = limited(&format!("ulimit -v {kib}"), WORDS);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

/// As a host has it that gives the group above this process's own so much.
#[test]
fn too_little_memory_for_the_control_group_is_refused_with_the_arithmetic() {
    let root = tempfile::tempdir().expect("a directory");
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, text).expect("a file");
    };
    write("proc/self/cgroup", "0::/bench.slice/job.scope\n");
    write("sys/fs/cgroup/bench.slice/job.scope/memory.max", "max\n");
    let limits = format!("export LOADGEN_HOST_ROOT='{}'", root.path().display());
    for (mib, code) in [(67, 3), (68, 0)] {
        let max = format!("{}\n", mib << 20);
        write("sys/fs/cgroup/bench.slice/memory.max", &max);
        let ended = limited(&limits, WORDS);
        assert_eq!(ended.code, code, "{mib} MiB: {}", ended.stderr);
        let says = "control group (/sys/fs/cgroup/bench.slice/memory.max) is 67, \
                    but 64 clients of 64 KiB + 64 for itself = 68";
        assert_eq!(ended.stderr.contains(says), code == 3, "{mib} MiB: {}", ended.stderr);
    }
}

/// Threads are counted by account, and root's are not: so as nobody, where that can read us.
#[test]
fn too_few_threads_are_an_error() {
    let program = env!("CARGO_BIN_EXE_loadgen");
    let nobody = "exec setpriv --reuid=65534 --regid=65534 --clear-groups";
    let script = |what: &str| format!("{nobody} bash -c '{what}' \"$0\"");
    let can = Command::new("sh").args(["-c", &script("test -x \"$0\""), program]).status();
    if !nix::unistd::geteuid().is_root() || !can.is_ok_and(|status| status.success()) {
        let why = "sweep: SKIPPED too_few_threads_are_an_error: needs root, setpriv, and a path \
                   that nobody may read";
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{why}\n").as_bytes());
        return;
    }
    let server = canned(Vec::new());
    let results = Results::new();
    std::fs::set_permissions(results.dir(), std::fs::Permissions::from_mode(0o777)).expect("own");
    let mut failed = 0;
    for most in 1..8 {
        let what = format!(
            "ulimit -u {most}; exec \"$0\" point-select --clients 4 --engine-threads 4 --time 1s \
             --no-defaults -h 127.0.0.1 -P {} -u x --out {}",
            server.port(),
            results.dir().display()
        );
        let output = Command::new("sh").args(["-c", &script(&what), program]).output();
        let output = output.expect("a shell");
        let text = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        assert!(matches!(code, Some(0..=3)), "{most}: {:?} {text}", output.status);
        assert!(code == Some(0) || text.contains("error: "), "{most}: {text}");
        assert!(!text.contains("panicked"), "{most}: {text}");
        failed += u32::from(code != Some(0));
    }
    assert!(failed > 0, "one thread is too few");
}
