//! Operations of whole runs allocate nothing: a run of more of them allocates as often.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use common::certificates::Certificates;
use common::{local, sandbox};

struct Counting;

static ALLOCATED: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[allow(unsafe_code, reason = "the trait is unsafe; all is left to the system's allocator")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Returns how often a run allocates, and for how many milliseconds it takes.
fn run(words: &str) -> (u64, u64) {
    let (before, began) = (ALLOCATED.load(Ordering::Relaxed), Instant::now());
    let args = words.split_whitespace().map(Into::into).collect();
    assert_eq!(loadgen::cli::main(args).map_err(|error| error.render()), Ok(0), "{words}");
    (ALLOCATED.load(Ordering::Relaxed) - before, began.elapsed().as_millis() as u64)
}

#[test]
fn operations_and_events_of_scripts_allocate_nothing_and_two_records_over_tls() {
    let certificates = Certificates::new();
    certificates.sign("good", "DNS:localhost", 2);
    certificates.install("good");
    let server = sandbox(&local(), &certificates.options());
    let results = tempfile::tempdir().expect("a directory");
    let (out, port) = (results.path().display(), server.port);
    let login = format!("-h 127.0.0.1 -P {port} -u root --no-defaults --quiet");
    let at = format!("{login} --tables 2");
    run(&format!("loadgen prepare --rows 1000 {at}"));
    let plain = "--ssl-mode disabled";
    for (words, ops, most) in [
        (format!("point-select {plain}"), 10_000, 0),
        (format!("point-select {plain} --statements text"), 10_000, 0),
        (format!("point-select {plain} --rate 1000000"), 10_000, 0),
        (format!("update-index {plain}"), 10_000, 0),
        (format!("update-non-index {plain}"), 10_000, 0),
        (format!("read-only {plain}"), 1000, 0),
        (format!("read-write {plain}"), 1000, 0),
        ("point-select --ssl-mode required".to_owned(), 10_000, 2),
    ] {
        let of = |ops: u64| {
            let how = "--clients 4 --engine-threads 1 --warmup 0";
            run(&format!("loadgen {words} {how} --ops {ops} --out {out} {at}"))
        };
        let ((few, _), (many, ms)) = (of(100), of(100 + ops));
        // Log-ins differ a little. A tick every 20 ms allocates once or twice, ten times on a full machine.
        let most = few + ops * most + 300 + ms;
        assert!(many < most, "{words}: {few}, then {many} in {ms} ms");
    }
    let path = results.path().join("event.lua");
    for event in ["", "loadgen.transaction('new order')", "param:set(7) st:execute()"] {
        std::fs::write(&path, format!("{THREAD_INIT} function event() {event} end"))
            .expect("written");
        let of = |ops: u64| {
            let (path, how) = (path.display(), "--clients 4 --engine-threads 1 --warmup 0");
            run(&format!("loadgen lua {path} {how} --ops {ops} --out {out} {login} {plain}"))
        };
        let ((few, _), (many, ms)) = (of(100), of(10_100));
        assert!(many < few + 300 + ms, "{event}: {few}, then {many} in {ms} ms");
    }
}

/// Prepares a statement with one parameter.
const THREAD_INIT: &str = "function thread_init()
    st = sysbench.sql.driver():connect():prepare('SELECT c FROM sbtest1 WHERE id = ?')
    param = st:bind_create(sysbench.sql.type.INT)
    st:bind_param(param)
end";
