//! libFuzzer over the target that LOADGEN_FUZZ_TARGET names: see `scripts/fuzz`.
#![no_main]

mod targets;

use std::sync::OnceLock;

use targets::TARGETS;

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
        let _ = CHOSEN.set(*target);
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
        if !file.contains("/registry/src/") {
            abort(info);
        }
    }));
}
