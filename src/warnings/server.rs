//! The server's answers.

use super::Said;
use crate::summary::{Summary, counter};

pub(super) fn look(step: &Summary, said: &mut Said) {
    query_cache(step, said);
    instrumented(step, said);
    wrong_answers(step, said);
    restarted(step, said);
}

/// Another process than the one that the step began with.
fn restarted(step: &Summary, said: &mut Said) {
    let Some(at_s) = step.server.status.as_ref().and_then(|status| status.restarted_s) else {
        return;
    };
    said.warn(
        "restarted",
        format!(
            "the server was started anew {:.0} s after the window's start: its counters are \
             those since then, and none is shown by the op",
            at_s.max(0.0)
        ),
    );
}

/// A cache of answers: what it answers, nobody computed.
fn query_cache(step: &Summary, said: &mut Said) {
    let variable = |name: &str| step.server.variables.get(name).map(String::as_str);
    let on = variable("query_cache_type").is_some_and(|v| !matches!(v, "OFF" | "0"));
    let size = variable("query_cache_size").and_then(|v| v.parse::<u64>().ok()).unwrap_or(0);
    if !on || size == 0 {
        return;
    }
    let status = step.status();
    let hits = status.and_then(|status| counter(status, &["Qcache_hits"]));
    let hits = hits.map_or_else(String::new, |hits| format!(", and answered {hits:.0} queries"));
    said.warn("query_cache", format!("the query cache was on, {} KiB{hits}", size >> 10));
}

/// Logs of every statement: they cost more than some differences that are measured.
fn instrumented(step: &Summary, said: &mut Said) {
    let variable = |name: &str| step.server.variables.get(name).map(String::as_str);
    let on = |name: &str| matches!(variable(name), Some("ON" | "1"));
    let mut what = Vec::new();
    if on("general_log") {
        what.push("the general log");
    }
    let every = variable("long_query_time").and_then(|v| v.parse::<f64>().ok()) == Some(0.0);
    if on("slow_query_log") && every {
        what.push("the slow query log (long_query_time 0)");
    }
    if !what.is_empty() {
        said.warn("instrumented", format!("{} wrote every statement down", what.join(" and ")));
    }
}

/// Answers with other rows or another effect than the workload says.
fn wrong_answers(step: &Summary, said: &mut Said) {
    let wrong = || step.totals.errors.iter().filter(|error| error.class == "wrong");
    let count: u64 = wrong().map(|error| error.count).sum();
    if let Some(first) = wrong().next() {
        let message: String = first.message.chars().take(120).collect();
        said.warn("wrong_answers", format!("{count} answers were wrong: {message}"));
    }
}
