//! The command that would ask for the same as some steps, as far as their summaries know it.

use crate::summary::Summary;
use crate::terms::{OnError, Spread, StatementMode};

/// Of the steps of one invocation; where to connect is left to the reader.
pub(super) fn command(steps: &[&Summary]) -> String {
    let Some(first) = steps.first() else { return String::new() };
    if let Some(experiment) = &first.experiment {
        return format!(
            "loadgen run of the profile {} at scale {}",
            experiment.profile, experiment.scale
        );
    }
    let mut words = vec!["loadgen".to_owned(), first.workload.name.clone()];
    for (name, value) in plan(steps).into_iter().chain(before(first)) {
        words.extend([format!("--{name}"), value]);
    }
    words.extend(options(first));
    words.extend(["--label".to_owned(), first.label.clone()]);
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

type Flags = Vec<(&'static str, String)>;

/// What differs from its default, and what the numbers depend on most.
fn plan(steps: &[&Summary]) -> Flags {
    let Some(first) = steps.first() else { return Flags::new() };
    let (plan, workload) = (&first.plan, &first.workload);
    let mut clients: Vec<u32> = steps.iter().map(|step| step.plan.clients).collect();
    clients.sort_unstable();
    clients.dedup();
    let mut rates: Vec<f64> = steps.iter().filter_map(|step| step.plan.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let listed = |numbers: Vec<String>| numbers.join(",");
    let seconds = |s: f64| format!("{s}s");
    // Without --spread, clients are pinned where the tables divide them all.
    let divided = clients.iter().all(|clients| clients % plan.tables.max(1) == 0);
    let spread = if divided { Spread::Pinned } else { Spread::Random };
    let usual = |step: &Summary| step.client.cores.clamp(1, step.plan.clients.max(1));
    let threads = steps.iter().find(|step| step.plan.engine_threads != usual(step));
    let some = |name: &'static str, value: Option<String>| value.map(|value| (name, value));
    [
        Some(("tables", plan.tables.to_string())),
        Some(("rows", plan.rows.to_string())),
        Some(("clients", listed(clients.iter().map(u32::to_string).collect()))),
        Some(("warmup", seconds(plan.warmup_s))),
        some("time", plan.time_s.map(seconds)),
        some("ops", plan.ops.map(|ops| ops.to_string())),
        (!rates.is_empty()).then(|| ("rate", listed(rates.iter().map(f64::to_string).collect()))),
        some("arrival", plan.arrival.map(|arrival| arrival.to_string())),
        (plan.repeats > 1).then(|| ("repeat", plan.repeats.to_string())),
        (workload.mode == StatementMode::Text).then(|| ("statements", "text".to_owned())),
        Some(("distribution", workload.distribution.clone())),
        (workload.spread != spread).then(|| ("spread", workload.spread.to_string())),
        some("engine-threads", threads.map(|step| step.plan.engine_threads.to_string())),
        some("charset", plan.charset.clone()),
        (plan.on_error != OnError::Abort).then(|| ("on-error", plan.on_error.to_string())),
        some("max-errors", plan.max_errors.clone()),
        some("op-timeout", plan.op_timeout_s.map(seconds)),
        Some(("seed", plan.seed.to_string())),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What was done before each step, and what was expected of the data.
fn before(step: &Summary) -> Flags {
    let Some(conditions) = &step.conditions else { return Flags::new() };
    let mut flags = Flags::new();
    if let Some(before) = &conditions.before {
        let usual = [("warm", &before.warm, "none"), ("ahi", &before.ahi, "as-is")];
        let other = usual.into_iter().filter(|(_, value, usual)| value.as_str() != *usual);
        flags.extend(other.map(|(name, value, _)| (name, value.clone())));
    }
    flags.extend(conditions.expected_class.map(|class| ("expect-class", class.to_string())));
    flags
}

/// Those whose values must stand behind `=`.
fn options(step: &Summary) -> Vec<String> {
    let words = step
        .workload
        .options
        .iter()
        .map(|(name, value)| format!("--{}={value}", name.replace('_', "-")));
    let settle = step.conditions.as_ref().and_then(|of| of.before.as_ref()?.settle.as_ref());
    words.chain(settle.map(|settle| format!("--settle={}s", settle.limit_s))).collect()
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_shell_reads_a_word_as_it_is() {
        assert_eq!(
            ["8.4.3", "it's", "a b", "", "$(x)"].map(quoted),
            ["8.4.3", r"'it'\''s'", "'a b'", "''", "'$(x)'"]
        );
    }
}
