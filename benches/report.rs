//! `loadgen report` over ten thousand summaries: reading them, and making the table.

#[path = "../tests/common/summaries.rs"]
mod summaries;

use std::fs;
use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use loadgen::report::{Format, Options, render};
use loadgen::summary::{Summary, load, to_json};

/// 125 labels × 16 numbers of clients × 5 repeats. A debug build only shows that it works.
const LABELS: u32 = if cfg!(debug_assertions) { 5 } else { 125 };
const CLIENTS: u32 = 16;
const REPEATS: u32 = 5;
/// Global variables of a server: MySQL 8.0 has 600.
const VARIABLES: u32 = 600;
/// Intervals of a timeline: a minute by the second.
const INTERVALS: u32 = 60;

/// A step as large as a real one.
fn real(label: u32, clients: u32, repeat: u32) -> Summary {
    let qps = 10_000.0 + f64::from(label * 10 + clients * 100 + repeat);
    let mut step = summaries::step(label, &format!("label{label}"), clients, qps);
    step.step_id = format!("{}-n{repeat}", step.step_id);
    step.plan.repeat_index = repeat;
    for i in 0..VARIABLES {
        step.server.variables.insert(format!("some_variable_of_a_server_{i}"), i.to_string());
    }
    let interval = step.timeline.first().cloned().expect("the fixture has one");
    step.timeline = (0..INTERVALS).map(|_| interval.clone()).collect();
    let spread: Vec<u64> = (0..2000).map(|i| 100_000 + i * i).collect();
    step.latency.service.histogram = summaries::histogram(&spread);
    step
}

fn benches(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for label in 0..LABELS {
        for clients in 1..=CLIENTS {
            for repeat in 1..=REPEATS {
                let name = format!("{label}-{clients}-{repeat}.json");
                // Without a Store: ten thousand of its syncs take a minute.
                fs::write(dir.path().join(name), to_json(&real(label, clients, repeat)))
                    .expect("written");
            }
        }
    }
    let paths = [dir.path().to_owned()];
    let mut group = criterion.benchmark_group("report_10000");
    group.sample_size(10).warm_up_time(Duration::from_millis(100));
    group.measurement_time(Duration::from_secs(10));
    let qps = Options::default();
    group.bench_function("load_and_render", |bencher| {
        bencher.iter(|| {
            let loaded = load(black_box(&paths), false).expect("sound");
            render(&loaded.steps(), &qps).expect("a table")
        });
    });
    let loaded = load(&paths, false).expect("sound");
    let steps = loaded.steps();
    for (name, metric, format) in [
        ("render_qps_text", "qps", Format::Text),
        ("render_p99_csv", "p99", Format::Csv),
        ("render_p42_text", "p42", Format::Text),
    ] {
        let options = Options { metric: metric.parse().expect(name), format, ..Options::default() };
        group.bench_function(name, |bencher| {
            bencher.iter(|| render(black_box(&steps), &options).expect("a table"));
        });
    }
    group.finish();
}

criterion_group!(report, benches);
criterion_main!(report);
