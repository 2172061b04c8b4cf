//! What a step was measured under: provoked, recorded and told; and brought about on request.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use loadgen::sandbox::{DataDir, Sandbox, Spec};
use loadgen::summary::{Outcome, Phase, Summary};

use crate::common::program::{Ended, Results, canned, command, run, run_canned, wait};
use crate::common::{local, query, spec};

fn warned(step: &Summary, code: &str) -> bool {
    step.warnings.iter().any(|warning| warning.code == code)
}

fn codes(step: &Summary) -> Vec<&str> {
    step.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

/// A server on data that stays from start to start. The pool holds it, and it is more than the
/// preflight reads.
fn start(data: DataDir, options: &[(&str, &str)]) -> Sandbox {
    let always = [
        ("innodb-buffer-pool-size", "128M"),
        ("innodb-flush-log-at-trx-commit", "0"),
        ("innodb-adaptive-hash-index", "ON"),
    ];
    let options = [&always, options].concat();
    let spec = Spec { data, ..spec(&local().program, &options) };
    Sandbox::start(&spec, &mut |_| {}, &|| false).unwrap_or_else(|e| panic!("{}", e.render()))
}

fn run_as(user: &str, sandbox: &Sandbox, words: &str) -> Ended {
    let socket = sandbox.socket.to_str().expect("a path");
    run(words, &["-S", socket, "-u", user])
}

fn step(sandbox: &Sandbox, words: &str) -> Summary {
    let mut ended = run_as("root", sandbox, words);
    assert_eq!((ended.code, ended.summaries.len()), (0, 1), "{words}: {}", ended.stderr);
    ended.summaries.remove(0)
}

/// A query cache, the debt of what ran before, and a wait for it.
fn debt(sandbox: &Sandbox) {
    let cached = step(sandbox, "point-select --clients 2 --warmup 0 --time 3s --settle=5m");
    assert!(warned(&cached, "query_cache"), "{:?}", codes(&cached));
    let seen = cached.conditions.as_ref().expect("recorded");
    // A host that stands still may take the window's last instants with it.
    assert!((1..=4).contains(&seen.window.len()), "{:?}", seen.window);
    assert!(seen.window.windows(2).all(|pair| pair[0].at_s < pair[1].at_s));
    assert!(seen.window.iter().all(|sample| sample.pool_reads.is_some()), "{:?}", seen.window);
    let keys = seen.keys.as_ref().expect("it has keys");
    assert!((keys.half_on_share - 0.5).abs() < 1e-9 && keys.distinct > 100.0, "{keys:?}");
    assert!(seen.client_host.is_some() && seen.server_host.is_none(), "one host");
    let settled =
        seen.before.as_ref().and_then(|before| before.settle.as_ref()).expect("asked for");
    assert!(settled.complete && !warned(&cached, "not_settled"), "{settled:?}");

    // Whoever reads an old version keeps the history from being purged.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut old = runtime
        .block_on(async { mysql_async::Conn::new(crate::common::target(sandbox)).await })
        .expect("a connection");
    let mut say = |sql: &str| {
        use mysql_async::prelude::Queryable;
        runtime.block_on(old.query_drop(sql)).expect(sql);
    };
    say("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    step(sandbox, "update-index --clients 8 --ops 12000");
    let owing = step(sandbox, "point-select --ops 500 --settle=1s");
    assert!(warned(&owing, "debt") && warned(&owing, "not_settled"), "{:?}", codes(&owing));
    say("ROLLBACK");
    let free = step(sandbox, "point-select --ops 500 --settle=5m");
    assert!(!warned(&free, "debt") && !warned(&free, "not_settled"), "{:?}", free.conditions);
    // What pushed the pages out is as it was.
    let limit = query(sandbox, "SELECT @@GLOBAL.innodb_max_dirty_pages_pct");
    assert!((limit[0][0].parse::<f64>().expect("a number") - 90.0).abs() < 1e-9);
}

/// A probe that read the host before the steps alone.
fn lost_probe(sandbox: &Sandbox, dir: &Path) {
    let once = dir.join("once");
    let script = "[ -e \"$0.used\" ] && exit 1\n: > \"$0.used\"\nexec \"$@\"\n";
    fs::write(&once, script).expect("written");
    let probe = format!("sh {}", once.display());
    let socket = sandbox.socket.to_str().expect("a path");
    let connection = ["-S", socket, "-u", "root", "--probe", &probe];
    let ended = run("point-select --ops 100", &connection);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.only().server.probed.is_none());
    assert!(ended.stderr.contains("the probe "), "{}", ended.stderr);
}

/// A setting that somebody changes under way makes the step no result. A step may be over before that on a busy host: not each
/// time.
fn meddled_with(sandbox: &Sandbox) {
    assert!((0..3).any(|number| meddled(sandbox, 321 + number)), "nobody noticed");
}

/// Whether it came in time.
fn meddled(sandbox: &Sandbox, capacity: u32) -> bool {
    let socket = sandbox.socket.to_str().expect("a path").to_owned();
    let results = Results::new();
    let words = "point-select --clients 1 --warmup 0 --ops 20000";
    let child = command(words, &["-S", &socket, "-u", "root"], &results).spawn().expect("it runs");
    let executed = || {
        let found = query(sandbox, "SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'");
        found[0][1].parse::<u64>().expect("a count")
    };
    let before = executed();
    // The settings before the step are read by then.
    while executed() < before + 10 {
        sleep(Duration::from_millis(1));
    }
    query(sandbox, &format!("SET GLOBAL innodb_io_capacity = {capacity}"));
    let ended = wait(child, Instant::now(), &results);
    let step = ended.only();
    if step.outcome == Outcome::Completed {
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        return false;
    }
    assert_eq!((ended.code, step.outcome), (1, Outcome::ServerChanged), "{}", ended.stderr);
    assert!(warned(step, "settings_changed"), "{:?}", codes(step));
    let reason = step.reason.as_deref().expect("a reason");
    let capacity = capacity.to_string();
    assert!(reason.contains("innodb_io_capacity") && reason.contains(&capacity), "{reason}");
    true
}

/// The pool of a server that has just been started.
fn cold(sandbox: &Sandbox) {
    let first = step(sandbox, "point-select --ops 2000");
    assert!(warned(&first, "cold_pool"), "{:?}", codes(&first));
    let words = "point-select --ops 2000 --warm pool --expect-class io-bound";
    let mut ended = run_as("root", sandbox, words);
    for told in ["reading all rows once: ", "all rows were read in "] {
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
    }
    let warm = ended.summaries.remove(0);
    assert!(!warned(&warm, "cold_pool"), "{:?}", codes(&warm));
    assert!(warned(&warm, "unexpected_class"), "{:?}", codes(&warm));
    assert_eq!(warm.conditions.and_then(|c| c.before).expect("asked for").warm, "pool");
}

fn adaptive_hash_index(sandbox: &Sandbox) {
    let hashed = step(sandbox, "point-select --ops 500 --ahi warm");
    let before = hashed.conditions.and_then(|c| c.before).expect("asked for");
    assert!(before.ahi_hits.is_some_and(|hits| hits > 0.0 && hits <= 1.0), "{before:?}");
    step(sandbox, "point-select --ops 500 --ahi cold");
    let on = || query(sandbox, "SELECT @@GLOBAL.innodb_adaptive_hash_index")[0][0].clone();
    assert_eq!(on(), "1", "it is on again");
    query(sandbox, "CREATE USER reader");
    query(sandbox, "GRANT SELECT ON sbtest.* TO reader");
    let refused = run_as("reader", sandbox, "point-select --ops 500 --ahi cold");
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: GRANT"), "{}", refused.stderr);
    query(sandbox, "SET GLOBAL innodb_adaptive_hash_index = OFF");
    let off = run_as("root", sandbox, "point-select --ops 500 --ahi warm");
    assert_eq!(off.code, 3, "{}", off.stderr);
    assert!(off.stderr.contains("hint: SET GLOBAL"), "{}", off.stderr);
}

#[test]
fn the_state_of_a_server_is_told_and_brought_about() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let cache = [("query-cache-type", "1"), ("query-cache-size", "1M")];
    let sandbox = start(DataDir::New(data.clone()), &cache);
    let socket = sandbox.socket.to_str().expect("a path");
    let prepared = std::process::Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["prepare", "--rows", "200k", "-u", "root", "--no-defaults", "-S"])
        .arg(socket)
        .output()
        .expect("the program runs");
    assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stderr));
    debt(&sandbox);
    meddled_with(&sandbox);
    lost_probe(&sandbox, dir.path());
    sandbox.stop().expect("it stops");
    let sandbox = start(DataDir::Filled(data), &[("innodb-buffer-pool-load-at-startup", "OFF")]);
    cold(&sandbox);
    adaptive_hash_index(&sandbox);
    // A sandbox leaves the file of its pool behind: what a start would do is asked for.
    for (order, status) in [("dump_now", "dump_status"), ("load_now", "load_status")] {
        query(&sandbox, &format!("SET GLOBAL innodb_buffer_pool_{order} = ON"));
        let asked = format!("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_{status}'");
        let patience = Instant::now() + Duration::from_mins(1);
        while !query(&sandbox, &asked)[0][1].contains("completed") {
            assert!(Instant::now() < patience, "{order} is not completed");
            sleep(Duration::from_millis(50));
        }
    }
    let restored = step(&sandbox, "point-select --ops 500");
    assert!(warned(&restored, "restored_pool"), "{:?}", restored.conditions);
}

/// Files below a root, as a host has them.
fn host(root: &Path) {
    let cpu = "sys/devices/system/cpu";
    for (path, text) in [
        ("proc/vmstat".to_owned(), "pswpin 1\npswpout 1\n"),
        ("proc/cpuinfo".to_owned(), "processor\t: 0\ncpu MHz\t\t: 2600.0\n"),
        (format!("{cpu}/cpufreq/policy0/scaling_governor"), "powersave\n"),
        (format!("{cpu}/cpufreq/policy1/scaling_governor"), "powersave\n"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
    }
}

#[test]
fn a_server_that_does_not_tell_its_levels_is_not_called_settled() {
    let server = canned(Vec::new());
    let ended = run_canned("point-select --tables 8 --ops 100 --settle=10m", &server);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let step = ended.only();
    let before = step.conditions.as_ref().and_then(|c| c.before.as_ref()).expect("recorded");
    let settle = before.settle.as_ref().expect("asked for");
    assert_eq!(settle.unknown, ["dirty pages", "history list"]);
    assert!(!settle.complete && warned(step, "settle_unknown"), "{:?}", codes(step));
    assert!(!warned(step, "not_settled"), "{:?}", codes(step));
}

#[test]
fn the_host_s_state_and_skew_are_told() {
    let root = tempfile::tempdir().expect("a directory");
    host(root.path());
    let server = canned(Vec::new());
    let port = server.port().to_string();
    let results = Results::new();
    let words = "point-select --tables 8 --clients 2 --warmup 0 --time 3s --distribution special";
    let output = command(words, &["-h", "127.0.0.1", "-P", &port, "-u", "x"], &results)
        .env("LOADGEN_HOST_ROOT", root.path())
        .output()
        .expect("the program runs");
    let (text, errors) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(output.status.success(), "{errors}");
    let step = &results.summaries()[0];
    for code in ["cpu_governor", "skew", "recorded_host"] {
        assert!(warned(step, code), "{code}: {:?}", codes(step));
    }
    assert!(text.contains(" --notes\n"), "the others are counted: {text}");
    let seen = step.conditions.as_ref().expect("recorded");
    let clocks: Vec<_> = seen.window.iter().filter_map(|sample| sample.client_mhz).collect();
    assert!((1..=4).contains(&clocks.len()), "{clocks:?}");
    assert!(clocks.iter().all(|mhz| (mhz - 2600.0).abs() < 1e-9), "{clocks:?}");
}

#[test]
fn the_interval_log_adds_up_to_the_histograms() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("x.hlog");
    let server = canned(Vec::new());
    let words = format!(
        "point-select --tables 8 --clients 1,4 --rate 2k --warmup 300ms --time 1s \
         --interval 100ms --interval-log {}",
        path.display()
    );
    let ended = run_canned(&words, &server);
    assert_eq!((ended.code, ended.summaries.len()), (0, 2), "{}", ended.stderr);
    let text = fs::read_to_string(&path).expect("written");
    let text: String =
        text.lines().filter(|line| !line.starts_with('"')).flat_map(|line| [line, "\n"]).collect();
    for (number, step) in (1..).zip(&ended.summaries) {
        let measured = step.timeline.iter().filter(|entry| entry.phase == Phase::Measure);
        let entries: Vec<_> = measured.collect();
        assert_eq!(entries.len(), 10, "{:?}", step.timeline);
        for entry in &entries {
            assert!((entry.length_s - 0.1).abs() < 1e-6, "{entry:?}");
            // An interval may have ops and no times: those that the warm-up issued.
            assert!(entry.p99_us >= entry.p50_us, "{entry:?}");
        }
        let response = step.latency.response.as_ref().expect("an open loop");
        for (name, times) in [("service", &step.latency.service), ("response", response)] {
            let wanted = format!("step{number}.{name}");
            let mut sum = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
            for entry in IntervalLogIterator::new(text.as_bytes()) {
                let LogEntry::Interval(entry) = entry.expect("well formed") else { continue };
                if entry.tag().is_some_and(|tag| tag.as_str() == wanted) {
                    sum.add(decoded(entry.encoded_histogram())).expect("one range");
                }
            }
            assert_eq!(sum.len(), times.count, "{wanted}");
            let p50 = sum.value_at_quantile(0.5) as f64 / 1e3;
            assert!((p50 / times.p50_us.expect("counted") - 1.0).abs() < 2e-3, "{wanted}");
        }
    }
    let again = run_canned(&words, &server);
    assert_eq!(again.code, 2, "nothing is written over: {}", again.stderr);
}

fn decoded(text: &str) -> Histogram<u64> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
    Deserializer::new().deserialize(&mut bytes.as_slice()).expect("V2")
}
