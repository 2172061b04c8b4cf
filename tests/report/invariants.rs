//! What holds for any steps.

use std::collections::BTreeMap;

use super::{grid, json, plain, repeat, report};
use crate::common::summaries::{sound, step};
use loadgen::report::{Format, Options};
use loadgen::summary::Summary;
use proptest::prelude::*;

/// Steps of some labels, clients and repeats, in any order.
fn any_steps() -> impl Strategy<Value = Vec<Summary>> {
    let one = (0_u32..6, 0_u32..5, 1_u32..4, 0.0_f64..2e6);
    prop::collection::btree_map((0_u32..6, 0_u32..5, 1_u32..4), one, 1..40)
        .prop_map(|cells| {
            let steps = cells.into_iter().map(|((label, clients, index), (.., qps))| {
                repeat(&step(label, &format!("label{label}"), 1 << (3 * clients), qps), index, qps)
            });
            steps.collect::<Vec<_>>()
        })
        .prop_shuffle()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_cell_is_lost_and_none_is_made_up(steps in any_steps()) {
        let mut expected: BTreeMap<(String, u64), Vec<f64>> = BTreeMap::new();
        for step in &steps {
            let key = (step.label.clone(), u64::from(step.plan.clients));
            expected.entry(key).or_default().push(step.totals.qps);
        }
        let json = json(&steps, &Options::default());
        let table = &json["tables"][0];
        let mut found = 0;
        for line in table["lines"].as_array().expect("lines") {
            let columns = table["columns"].as_array().expect("columns");
            for (column, cell) in columns.iter().zip(line["cells"].as_array().expect("cells")) {
                let label = line["label"].as_str().expect("text").to_owned();
                let key = (label, column["clients"].as_u64().expect("a number"));
                prop_assert_eq!(cell.is_null(), !expected.contains_key(&key));
                let Some(values) = expected.get_mut(&key) else { continue };
                found += 1;
                values.sort_by(f64::total_cmp);
                let n = values.len();
                let median = f64::midpoint(values[(n - 1) / 2], values[n / 2]);
                let value = cell["value"].as_f64().expect("a number");
                prop_assert!((value - median).abs() <= 1e-9 * median.abs());
                prop_assert_eq!(cell["steps"].as_u64(), Some(n as u64));
            }
        }
        prop_assert_eq!(found, expected.len());
    }

    #[test]
    fn the_layout_keeps_its_rule(steps in any_steps()) {
        // What stands behind a number belongs to its column; as bytes, so that they can be counted.
        let text = plain(&steps).replace(" ±", "_~").replace(" [", "_~").replace('–', "-");
        let lines = grid(&text);
        // Labels by their first step: their number is their time.
        let labels: Vec<&str> = lines[1..].iter().map(|l| l.rsplit(' ').next().expect("one")).collect();
        prop_assert!(labels.is_sorted(), "{}", text);
        let rows: Vec<Vec<&str>> = lines.iter().map(|l| l.split_whitespace().collect()).collect();
        let columns = rows[0].len() - 2;
        let clients: Vec<u32> = rows[0][..columns].iter().map(|c| c.parse().expect("a number")).collect();
        prop_assert!(clients.is_sorted(), "{}", text);
        let mut start = 0;
        for column in 0..columns {
            let longest = |of: fn(&str) -> usize| {
                rows.iter().map(|row| of(row[column])).max().expect("a header")
            };
            let number = |cell: &str| cell.find('_').unwrap_or(cell.len());
            let digits = longest(|cell| cell.find('_').unwrap_or(cell.len()));
            let width = digits + longest(|cell| cell.find('_').map_or(0, |at| cell.len() - at));
            for (line, row) in lines.iter().zip(&rows) {
                let (cell, end) = (row[column], start + width);
                prop_assert!(line[..start + digits].ends_with(&cell[..number(cell)]), "{}", text);
                prop_assert_eq!(line[start..end].trim(), cell);
            }
            start += 8.max(width + 2);
        }
        for (line, label) in lines[1..].iter().zip(labels) {
            prop_assert_eq!(&line[start..], label);
        }
        prop_assert_eq!(&lines[0][start..], "concurrent clients");
    }

    #[test]
    fn the_order_of_files_says_nothing(steps in any_steps()) {
        let mut sorted = steps.clone();
        sorted.sort_by(|a, b| a.step_id.cmp(&b.step_id));
        for format in [Format::Text, Format::Markdown, Format::Csv, Format::Json] {
            let options = Options { format, ..Options::default() };
            prop_assert_eq!(report(&steps, &options), report(&sorted, &options));
        }
    }

    #[test]
    fn any_label_is_one_line(label in "\\PC*|[\u{0}-\u{2f}\u{80}-\u{9f}]*") {
        let mut step = sound();
        step.label = label;
        let text = plain(&[step.clone()]);
        prop_assert_eq!(grid(&text).len(), 2);
        let csv = report(&[step], &Options { format: Format::Csv, ..Options::default() });
        prop_assert_eq!(csv.lines().count(), 2);
    }
}
