//! libFuzzer over the target that LOADGEN_FUZZ_TARGET names: see `scripts/fuzz`.
#![no_main]

mod targets;

use std::backtrace::Backtrace;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use targets::TARGETS;
use targets::session::{State, session};

static CHOSEN: OnceLock<fn(&[u8])> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        let wanted = std::env::var("LOADGEN_FUZZ_TARGET").unwrap_or_default();
        let found = TARGETS.iter().find(|(name, _)| *name == wanted);
        let Some((_, target)) = found else {
            let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
            eprintln!("LOADGEN_FUZZ_TARGET is one of {}", names.join(", "));
            std::process::exit(2);
        };
        let _ = CHOSEN.set(if wanted == "session" { counted } else { *target });
        spare_the_driver();
    },
    |bytes: &[u8]| {
        if let Some(target) = CHOSEN.get() {
            target(bytes);
        }
    }
);

/// libfuzzer-sys aborts at every panic. Those of the driver are none of ours where they are
/// caught; one that is not comes out of the target, and aborts all the same.
fn spare_the_driver() {
    let abort = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let file = info.location().map_or("", |location| location.file());
        let culprit = if file.starts_with(STD) { caller() } else { file.to_owned() };
        if !culprit.contains("/registry/src/") {
            abort(info);
        }
    }));
}

/// Where the standard library's own sources say they are.
const STD: &str = "/rustc/";

/// The file that called the standard library into the panic under way: for a capacity that
/// overflows, say, it names itself and not its caller.
fn caller() -> String {
    let frames = Backtrace::force_capture().to_string();
    let mut files = frames.lines().filter_map(|line| line.trim_start().strip_prefix("at "));
    // Past the hook, which is called by the standard library, too.
    let raised = files.by_ref().skip_while(|file| !file.starts_with(STD));
    raised.skip_while(|file| file.starts_with(STD)).next().unwrap_or_default().to_owned()
}

/// Sessions between two lines that say what was reached.
const EVERY: u64 = 1 << 14;

/// A session, and now and then how many reached which state of the protocol.
fn counted(bytes: &[u8]) {
    static REACHED: [AtomicU64; State::ALL.len()] = [const { AtomicU64::new(0) }; State::ALL.len()];
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let seen = session(bytes);
    for (state, reached) in State::ALL.into_iter().zip(&REACHED) {
        reached.fetch_add(u64::from(seen.has(state)), Ordering::Relaxed);
    }
    let runs = RUNS.fetch_add(1, Ordering::Relaxed) + 1;
    if runs.is_multiple_of(EVERY) {
        let counts: Vec<String> = State::ALL
            .into_iter()
            .zip(&REACHED)
            .map(|(state, reached)| format!("{state:?} {}", reached.load(Ordering::Relaxed)))
            .collect();
        eprintln!("states of {runs} sessions: {}", counts.join(", "));
    }
}
