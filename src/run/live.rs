//! Draws the table that fills up on a terminal while a sweep runs.

use std::collections::BTreeSet;

use crate::plan::{Plan, Step, units};
use crate::progress::Table;
use crate::stats::{self, is_scarce};
use crate::summary::{Distribution, Outcome, Summary};
use crate::terms::{Cell, millis};

/// Returns a percentile; None where too few operations support it.
pub(super) fn percentile(
    step: &Summary,
    p: f64,
    of: fn(&Distribution) -> Option<f64>,
) -> Option<f64> {
    let times = step.latency.own();
    of(times).filter(|_| !is_scarce(p, times.count))
}

/// Lists the plan's cells with medians over the repeats so far, a column each, below the label that runs.
pub(super) fn table(label: Option<&str>, plan: &Plan, current: &Step, done: &[Summary]) -> Table {
    // Several private servers have one list of steps.
    let is_of_label = |step: &&Summary| label.is_none_or(|label| step.label == label);
    let done: Vec<&Summary> = done.iter().filter(is_of_label).collect();
    let current_cell = current.cell();
    let planned = if current.search.is_some() { Vec::new() } else { plan.steps() };
    let mut cells: BTreeSet<Cell> = planned.iter().map(Step::cell).collect();
    cells.extend(done.iter().copied().map(Summary::cell).chain([current_cell]));
    let column = |cell: &Cell| {
        let runs = done.iter().copied().filter(|step| step.cell() == *cell);
        let runs = runs.filter(|step| step.outcome == Outcome::Completed);
        let mark = if *cell == current_cell { "▸" } else { "" };
        let mut texts = vec![format!("{mark}{cell}")];
        texts.extend(median_texts(&runs.collect::<Vec<&Summary>>()));
        texts
    };
    Table {
        title: label.map_or_else(String::new, |label| format!("label {label}")),
        heads: ["clients", "QPS", "p50 ms", "p99 ms", "errors"].map(str::to_owned).to_vec(),
        columns: cells.iter().map(column).collect(),
        current: cells.iter().position(|cell| *cell == current_cell).expect("it is among them"),
    }
}

fn median_texts(steps: &[&Summary]) -> [String; 4] {
    let median = |value: fn(&Summary) -> Option<f64>, text: fn(f64) -> String| {
        if steps.is_empty() {
            return "·".to_owned();
        }
        // A repeat without it is a slow one: the median of the others would be too good.
        let values: Option<Vec<f64>> = steps.iter().map(|step| value(step)).collect();
        values.and_then(|values| stats::median(&values)).map_or_else(|| "-".to_owned(), text)
    };
    let ms = |us: f64| millis(us).trim_end_matches(" ms").to_owned();
    [
        median(|step| Some(step.totals.qps), units::rate),
        median(|step| percentile(step, 50.0, |times| times.p50_us), ms),
        median(|step| percentile(step, 99.0, |times| times.p99_us), ms),
        median(|step| Some(step.failed_ops() as f64), |errors| format!("{errors:.0}")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::knobs::Knobs;
    use crate::workload::builtin;

    fn measured(label: &str, rate: Option<f64>) -> Summary {
        let text = include_str!("../../tests/fixtures/summary.json");
        let mut done: Summary = serde_json::from_str(text).expect("a summary");
        (done.plan.clients, done.plan.rate) = (4, rate);
        Summary { label: label.to_owned(), outcome: Outcome::Completed, ..done }
    }

    #[test]
    fn percentile_is_a_dash_when_a_repeat_has_too_few_ops() {
        let [full, mut short] = [measured("8.4", None), measured("8.4", None)];
        short.latency.service.count = 900;
        let p99 = |steps: &[&Summary]| median_texts(steps)[2].clone();
        assert_ne!(p99(&[&full]), "-");
        assert_eq!([p99(&[]), p99(&[&full, &short])], ["·", "-"].map(str::to_owned));
    }

    #[test]
    fn table_of_a_label_lacks_the_numbers_of_another_server() {
        let plan = Knobs::default().resolve(builtin().remove(0), 1).expect("a plan");
        let plan = Plan { clients: vec![4], ..plan };
        let (step, done) = (Step::new(2, 2, (4, None), 1), [measured("8.4", None)]);
        let qps = |label| table(Some(label), &plan, &step, &done).columns[0][1].clone();
        assert_eq!((qps("9.1").as_str(), qps("8.4") == "·"), ("·", false));
    }

    #[test]
    fn the_current_column_is_the_rate_at_hand_when_a_search_measures() {
        let plan = Knobs::default().resolve(builtin().remove(0), 1).expect("a plan");
        let plan = Plan { rates: vec![1000.0], clients: vec![4], ..plan };
        let step = Step { search: Some(1), ..Step::new(2, 30, (4, Some(2000.0)), 1) };
        let done = [measured("8.4", Some(1000.0))];
        let shown = table(Some("8.4"), &plan, &step, &done);
        let heads: Vec<&str> = shown.columns.iter().map(|column| column[0].as_str()).collect();
        assert_eq!(heads, ["clients 4, rate 1000/s", "▸clients 4, rate 2000/s"]);
        assert_eq!((shown.current, shown.title.as_str()), (1, "label 8.4"));
        let planned = table(None, &plan, &Step { search: None, rate: Some(1000.0), ..step }, &[]);
        assert_eq!((planned.columns.len(), planned.current), (1, 0));
    }
}
