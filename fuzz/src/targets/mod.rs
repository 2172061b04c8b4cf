//! What is fuzzed. Each target takes any bytes and comes back; what it finds wrong it panics
//! with. libFuzzer drives them (`scripts/fuzz`), and `tests/corpus` replays what it kept.

pub(crate) mod files;
pub(crate) mod ledger;
pub(crate) mod lines;
pub(crate) mod session;
pub(crate) mod values;
pub(crate) mod wire;

/// A target's name, which is its directory in `fuzz/corpus`, and what it does.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// All of them.
pub(crate) const TARGETS: [Target; 11] = [
    ("dump", files::dump),
    ("histogram", files::histogram),
    ("ledger", ledger::ledger),
    ("lines", lines::lines),
    ("option-file", files::option_file),
    ("profile", files::profile),
    ("record", ledger::record),
    ("session", |bytes| drop(session::session(bytes))),
    ("summary", files::summary),
    ("values", values::values),
    ("wire", wire::wire),
];

/// No message acts upon the terminal that shows it.
pub(crate) fn harmless(text: &str) {
    let acts = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(acts), "a terminal would act upon {text:?}");
}
