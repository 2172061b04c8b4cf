//! What a reader of a step's numbers must know, told from its summary alone: pure functions of
//! recorded facts. `docs/warnings.md` has every code with its meaning, threshold and source.
//!
//! | file | warns of |
//! |---|---|
//! | `thresholds` | all numbers that decide |
//! | `pool` | a cold, warming or restored buffer pool; data that fit where they should not; debt |
//! | `server` | a query cache; wrong answers |
//! | `timeline` | drift, a change of level, a window too short for its noise, or for any op |
//! | `keys` | skew |
//! | `host` | clocks, heat, memory nodes, swapping, a full link |

mod host;
mod keys;
mod pool;
mod server;
#[cfg(test)]
mod tests;
pub(crate) mod thresholds;
mod timeline;

pub(crate) use pool::{left, levels_in_words};

use crate::summary::{Summary, Warning};

/// The codes of this module, each in `docs/warnings.md`.
pub(crate) const CODES: [&str; 22] = [
    "cold_pool",
    "warming_pool",
    "restored_pool",
    "unexpected_class",
    "debt",
    "not_settled",
    "settle_unknown",
    "query_cache",
    "wrong_answers",
    "restarted",
    "drift",
    "level_change",
    "too_short",
    "nothing_completed",
    "skew",
    "cpu_governor",
    "cpu_throttled",
    "cpu_frequency",
    "swapping",
    "numa_unbound",
    "network_full",
    "instrumented",
];

/// All that is to be said of a step beside what its run said already.
pub(crate) fn of(step: &Summary) -> Vec<Warning> {
    let mut said = Said(Vec::new());
    pool::look(step, &mut said);
    server::look(step, &mut said);
    timeline::look(step, &mut said);
    keys::look(step, &mut said);
    host::look(step, &mut said);
    said.0
}

/// Warnings as they are found.
struct Said(Vec<Warning>);

impl Said {
    fn warn(&mut self, code: &str, message: String) {
        debug_assert!(CODES.contains(&code), "{code} is not among the codes");
        self.0.push(Warning { code: code.to_owned(), message });
    }
}

/// A part as a percentage, with a digit after the point where it is small.
fn percent(part: f64) -> String {
    let percent = part * 100.0;
    match percent.abs() {
        p if p >= 10.0 => format!("{percent:.0} %"),
        p if p >= 1.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.2} %"),
    }
}
