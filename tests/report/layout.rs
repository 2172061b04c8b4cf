//! The layout of the tables, down to the byte.

use super::{grid, plain};
use crate::common::summaries::{seed_table, step};
use loadgen::report::{Options, render};
use loadgen::summary::{Store, load};
use loadgen::terms::Arrival;

/// The ten mended lines of the first published table.
const GOLDEN: &str = include_str!("../fixtures/first-seed-table.txt");
/// The same lines as they were published: no-break spaces, two pairs of lines fused.
const PUBLISHED: &str = include_str!("../fixtures/first-seed-table.raw.txt");
const LABELS: [&str; 9] = [
    "orig5610+bp8+fastcs",
    "orig5610+bp8",
    "orig5610+bp1+fastcs",
    "orig5610+bp1",
    "orig5610+ps",
    "fb5163+ffl+fastcs",
    "fb5163+ffl",
    "fb5163",
    "orig5163",
];

/// Numbers and label of the published lines.
fn unfused() -> (Vec<u32>, Vec<(Vec<f64>, String)>) {
    let text = PUBLISHED.replace('\u{a0}', " ");
    let (header, body) = text.split_once('\n').expect("lines");
    let clients = header.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let mut lines = Vec::new();
    for line in body.lines() {
        let mut rest = line;
        while !rest.is_empty() {
            let mut values = Vec::new();
            for _ in 0..6 {
                let (number, after) = rest.trim_start().split_once(' ').expect("a number");
                values.push(number.parse().expect("a number"));
                rest = after.trim_start();
            }
            // Where two lines are fused, the shortest rest that is a line of its own decides.
            let label = LABELS
                .iter()
                .filter(|label| rest.starts_with(**label))
                .find(|label| {
                    let rest = &rest[label.len()..];
                    rest.is_empty()
                        || rest
                            .split_whitespace()
                            .next()
                            .is_some_and(|n| n.len() == 5 && n.parse::<u32>().is_ok())
                })
                .expect("a label");
            lines.push((values, (*label).to_owned()));
            rest = &rest[label.len()..];
        }
    }
    (clients, lines)
}

#[test]
fn the_published_table_comes_out_byte_for_byte() {
    let (clients, lines) = unfused();
    assert_eq!(clients, [8, 16, 32, 64, 128, 256]);
    assert_eq!(lines.len(), 9);
    let mut steps = seed_table(&lines, &clients);
    // The order of files says nothing.
    steps.reverse();
    let text = plain(&steps);
    let (table, below) = text.split_once("\n\n").expect("a caption below");
    assert_eq!(format!("{table}\n"), GOLDEN);
    assert_eq!(
        below,
        "point-select: QPS, statements a second\n\
         tables 8, rows 16000000, data seed 1, distribution uniform, spread pinned, \
         statements prepared, transport tcp, warm-up 10 s, window 60 s\n"
    );
}

#[test]
fn the_table_comes_out_of_a_directory_too() {
    let (clients, lines) = unfused();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(&dir.path().join("results")).expect("a new directory");
    for step in seed_table(&lines, &clients) {
        store.write(&step).expect("written");
    }
    let loaded = load(&[store.dir().to_owned()], false).expect("sound");
    let text = render(&loaded.steps(), &Options::default()).expect("a report");
    assert!(text.starts_with(GOLDEN), "{text}");
}

#[test]
fn columns_are_as_wide_as_their_widest_cell_needs() {
    let steps = vec![
        step(0, "a", 1, 5.4),
        step(0, "a", 2, 1_234_567.0),
        step(1, "b", 1, 12.0),
        step(1, "b", 100_000_000, 7.0),
    ];
    let text = plain(&steps);
    assert_eq!(
        grid(&text),
        [
            "    1            2  100000000  concurrent clients",
            " 5.40   1234567.00          -  a",
            "12.00            -       7.00  b",
        ]
    );
}

#[test]
fn labels_stand_by_the_time_of_their_first_step() {
    let mut late = step(0, "a", 8, 1.0);
    late.started_at = "2026-11-20T12:00:00.5+01:00".to_owned();
    let mut early = step(0, "b", 8, 1.0);
    early.started_at = "2026-11-20T11:00:00.25Z".to_owned();
    let mut never = step(0, "0", 8, 1.0);
    never.started_at = "yesterday".to_owned();
    let text = plain(&[never, late, early]);
    let labels: Vec<&str> =
        grid(&text)[1..].iter().map(|line| line.rsplit(' ').next().expect("a label")).collect();
    assert_eq!(labels, ["b", "a", "0"]);
}

#[test]
fn each_workload_has_a_table_of_its_own() {
    let mut update = step(0, "a", 8, 5000.0);
    update.workload.name = "update-index".to_owned();
    let text = plain(&[step(1, "a", 8, 9000.0), update]);
    let tables: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(
        tables[0].lines().collect::<Vec<_>>(),
        ["update-index: QPS, statements a second", "   8    concurrent clients", "5000    a"]
    );
    assert!(tables[1..].iter().any(|table| table.starts_with("point-select: ")), "{text}");
}

#[test]
fn paced_steps_have_columns_of_their_own() {
    let paced = |rate: f64, qps| {
        let mut step = step(0, "a", 8, qps);
        step.plan.rate = Some(rate);
        step.plan.arrival = Some(Arrival::Poisson);
        step.step_id = format!("{}-{rate}", step.step_id);
        step
    };
    let text = plain(&[paced(1000.0, 999.0), step(0, "a", 16, 500.0), paced(500.5, 500.0)]);
    assert_eq!(
        grid(&text),
        [
            " 16     clients 8, rate 500.5/s  clients 8, rate 1000/s  concurrent clients",
            "500                         500                     999  a"
        ]
    );
    let text = plain(&[paced(1000.0, 999.0), paced(500.5, 500.0)]);
    assert_eq!(
        grid(&text),
        ["rate 500.5/s  rate 1000/s  clients 8", "         500          999  a"]
    );
    assert_eq!(grid(&plain(&[paced(1000.0, 999.0)]))[0], "clients 8, rate 1000/s  label");
}
