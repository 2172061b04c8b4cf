//! What the page says about its numbers: intervals, the best, ratios, errors, which time.

use loadgen::report::{Layout, Picture, Question, compare, page, picture};
use loadgen::summary::{ErrorClass, ErrorCount, Outcome};
use loadgen::terms::Arrival;

use super::*;

fn paged(steps: &[Summary]) -> String {
    page(&steps.iter().collect::<Vec<_>>(), &Options::default()).expect("a page")
}

/// The interval of the ratio of b to a in the first row of a comparison, as the page has it.
fn small_ratio(steps: &[Summary]) -> String {
    let question = Question {
        base: "a".to_owned(),
        new: "b".to_owned(),
        metric: Metric::QPS,
        floor: 0.02,
        format: Format::Json,
        ..Question::default()
    };
    let compared = compare(&steps.iter().collect::<Vec<_>>(), &question).expect("comparable");
    let compared: Value = serde_json::from_str(&compared.text).expect("JSON");
    let bound = |name: &str| compared["rows"][0][name].as_f64().expect(name);
    format!("<small>[{:.3}, {:.3}]</small>", bound("ratio_low"), bound("ratio_high"))
}

/// The runs of a label at a number of clients.
fn runs(order: u32, label: &str, clients: u32, qps: &[f64]) -> Vec<Summary> {
    let first = step(order, label, clients, qps[0]);
    (1..).zip(qps).map(|(at, qps)| repeat(&first, at, *qps)).collect()
}

/// Six runs around a number.
fn around(order: u32, label: &str, clients: u32, qps: f64) -> Vec<Summary> {
    let near = [0.0, 5.0, -5.0, 11.0, -10.0, 2.0].map(|off| qps + off);
    runs(order, label, clients, &near)
}

/// The texts of the row of a label in the nth of the page's main tables.
fn row<'a>(html: &'a str, nth: usize, label: &str) -> Vec<&'a str> {
    let table = html.split("<table class=\"main\"").nth(nth + 1).expect("a table");
    let body = table.split("</table>").next().expect("its end");
    let row = body.split("<tr").find(|row| row.contains(&format!("scope=\"row\">{label}<")));
    let cells = row.expect("the label").split("<td").skip(1);
    cells.map(|cell| cell.split("</td>").next().expect("its end")).collect()
}

#[test]
fn cells_and_points_carry_their_intervals() {
    let steps = [around(0, "a", 8, 1000.0), around(1, "b", 8, 1100.0)].concat();
    let html = paged(&steps);
    assert_eq!(row(&html, 0, "a"), [">1001<small title=\"6 runs: 990..1011\">[990, 1011]</small>"]);
    assert!(html.contains("Small: ["), "the marks are explained");
    let charts = html.split("<figure>").skip(1).take(2);
    let bars: Vec<usize> = charts.map(|c| c.matches("<path class=\"i\"").count()).collect();
    assert_eq!(bars, [2, 1], "QPS of both labels, and the ratio of the one that is not the base");
    assert!(html.contains("data-v=\"1001 [990, 1011] (990..1011 of 6)\""));

    // The interval of the ratio is that of a comparison.
    let small = small_ratio(&steps);
    assert!(row(&html, 1, "b")[0].contains(&small), "{small} {:?}", row(&html, 1, "b"));
    assert!(!row(&html, 1, "a")[0].contains("<small>"), "the base has none to itself");
    let svg = picture(&steps.iter().collect::<Vec<_>>(), &Options::default(), Picture::Qps);
    let svg = svg.expect("a picture");
    assert_eq!(svg.matches("<path class=\"i\"").count(), 2);
}

#[test]
fn too_few_runs_have_a_range_and_single_ones_nothing() {
    let steps = [runs(0, "a", 8, &[990.0, 1000.0, 1010.0]), runs(0, "a", 16, &[700.0])].concat();
    let html = paged(&steps);
    assert_eq!(
        row(&html, 0, "a"),
        [">1000<small>990..1010</small>", ">700"],
        "no column has a choice, so none a best"
    );
    assert!(html.contains(" a..b "), "the mark is explained");
    assert!(!html.contains("class=\"best\"") && !html.contains("<path class=\"i\""));
}

#[test]
fn client_columns_have_their_head() {
    let html = paged(&[step(0, "a", 8, 1.0), step(0, "a", 16, 2.0), step(1, "b", 8, 3.0)]);
    let head = "<th class=\"over\" scope=\"colgroup\" colspan=\"2\">concurrent clients</th>";
    assert_eq!(html.matches(head).count(), 2, "above the ratios, too");
}

#[test]
fn what_the_runs_do_not_tell_from_the_best_is_marked_like_it() {
    let best = |html: &str, label: &str| -> Vec<bool> {
        row(html, 0, label).iter().map(|cell| cell.starts_with(" class=\"best\"")).collect()
    };
    let told =
        [around(0, "slow", 8, 900.0), around(1, "fast", 8, 1000.0), around(2, "level", 8, 1001.0)];
    let html = paged(&told.concat());
    let marked = ["slow", "fast", "level"].map(|label| best(&html, label)[0]);
    assert_eq!(marked, [false, true, true]);

    // A single run tells nothing: the best median alone.
    let mut some = told.concat();
    some.extend([step(0, "slow", 16, 10.0), step(1, "fast", 16, 11.0)]);
    let html = paged(&some);
    assert_eq!([best(&html, "slow"), best(&html, "fast")], [[false, false], [true, true]]);
    // What an open loop is told is no merit.
    let mut asked = told.concat();
    for step in &mut asked {
        step.plan.rate = Some(1000.0);
    }
    assert!(!paged(&asked).contains("class=\"best\""));
    let html = paged(&[step(0, "slow", 8, 10.0), step(1, "fast", 8, 11.0)]);
    assert_eq!([best(&html, "slow"), best(&html, "fast")], [[false], [true]]);
}

#[test]
fn ratios_of_the_base_alone_are_no_table_and_it_is_said() {
    let apart = [step(0, "a", 8, 1000.0), step(1, "b", 16, 1000.0)];
    let html = paged(&apart);
    assert_eq!(html.matches("<table class=\"main\"").count(), 1);
    let drawn = picture(&apart.iter().collect::<Vec<_>>(), &Options::default(), Picture::Relative);
    assert_eq!(drawn.expect_err("nothing to relate").kind().exit_code(), 4);

    let mut some = apart.to_vec();
    some.extend([step(0, "a", 4, 1000.0), step(1, "b", 4, 1100.0)]);
    let html = paged(&some);
    assert_eq!(row(&html, 1, "b"), [" class=\"best\">1.10", ">-", ">-"]);
    assert!(html.contains(" 16: "), "the column without a base is named");
    assert!(!paged(&[step(0, "a", 8, 1000.0)]).contains("ratio to"), "nothing is expected");
    let asked = Options { baseline: Some("c".to_owned()), ..Options::default() };
    let mut elsewhere = step(2, "c", 8, 1000.0);
    "update-index".clone_into(&mut elsewhere.workload.name);
    some.push(elsewhere);
    let html = page(&some.iter().collect::<Vec<_>>(), &asked).expect("a page");
    assert_eq!(html.matches("<table class=\"main\"").count(), 2, "a table a workload, no ratios");
}

#[test]
fn intervals_of_ratios_are_those_of_a_comparison_over_all_workloads() {
    let mut steps = Vec::new();
    // Seven runs beside each other: blocks decide of two cells, and are too few for four.
    for (order, label) in ["a", "b"].into_iter().enumerate() {
        for clients in [8, 16] {
            let drift = [0.0, 40.0, -35.0, 61.0, -80.0, 22.0, 13.0];
            let near = drift.map(|off| 1000.0 + off * (1.0 + order as f64) + 30.0 * order as f64);
            for mut run in runs(order as u32, label, clients, &near) {
                let second = clients * 2 + order as u32;
                run.started_at = format!("2026-11-20T00:{:02}:{second:02}Z", run.plan.repeat_index);
                steps.push(run);
            }
        }
    }
    let two = steps.clone();
    for mut step in two.clone() {
        "update-index".clone_into(&mut step.workload.name);
        step.step_id.push('u');
        steps.push(step);
    }
    assert_ne!(small_ratio(&two), small_ratio(&steps), "blocks, and two samples");
    for steps in [&two, &steps] {
        let (html, small) = (paged(steps), small_ratio(steps));
        assert!(row(&html, 1, "b")[0].contains(&small), "{small} {:?}", row(&html, 1, "b"));
        assert!(html.contains("loadgen compare"), "what decides is named");
    }
}

#[test]
fn a_rate_that_was_asked_for_has_no_ratio() {
    const ASKED_FOR: &str = "at a given rate QPS is what was asked for, not what was found";
    let mut steps = Vec::new();
    for (order, label) in [(0, "a"), (1, "b")] {
        let mut paced = step(order, label, 8, 500.0);
        paced.plan.rate = Some(500.0);
        paced.step_id.push('p');
        steps.extend([step(order, label, 8, 1000.0), paced]);
    }
    let html = paged(&steps);
    assert_eq!((row(&html, 0, "b").len(), row(&html, 1, "b").len()), (2, 1));
    assert_eq!(html.matches(ASKED_FOR).count(), 1);
    assert_eq!(html.matches("<table class=\"main\"").count(), 2);

    steps.retain(|step| step.plan.rate.is_some());
    let html = paged(&steps);
    assert_eq!(html.matches("<table class=\"main\"").count(), 1);
    assert_eq!(html.matches(ASKED_FOR).count(), 1);
    let drawn = picture(&steps.iter().collect::<Vec<_>>(), &Options::default(), Picture::Relative);
    let error = drawn.expect_err("nothing was found");
    assert!(error.hints().iter().any(|hint| hint.starts_with(ASKED_FOR)), "{error:?}");
}

#[test]
fn steps_at_as_many_clients_share_their_scale() {
    let mut steps = [8, 16].map(|clients| [step(0, "a", clients, 1.0), step(1, "b", clients, 1.0)]);
    let ops = [[9_000, 900], [70_000, 700]];
    for (steps, ops) in steps.iter_mut().zip(ops) {
        for (step, ops) in steps.iter_mut().zip(ops) {
            step.timeline[0].ops = ops;
        }
    }
    let html = paged(&steps.concat());
    let rates = html.split("<svg class=\"chart\"").filter(|chart| chart.contains(">ops/s</text>"));
    let tops = rates.map(|chart| {
        let ticks = chart.split("<text class=\"end\"").skip(1).map(|tick| tick.split(['>', '<']));
        ticks.filter_map(|mut tick| tick.nth(1).map(str::to_owned)).last().expect("ticks")
    });
    assert_eq!(tops.collect::<Vec<_>>(), ["10k", "80k", "10k", "80k"]);
}

fn error(code: Option<u16>, message: &str, count: u64) -> ErrorCount {
    ErrorCount { code, sqlstate: None, class: ErrorClass::Lost, message: message.to_owned(), count }
}

#[test]
fn errors_are_merged_by_label_and_code() {
    let mut steps = [runs(0, "a", 8, &[1.0, 2.0, 3.0]), runs(0, "a", 16, &[4.0])].concat();
    for (at, step) in steps.iter_mut().enumerate().skip(1) {
        step.totals.errors = vec![error(Some(1213), &format!("message {at}"), 10)];
    }
    steps[3].totals.errors.push(error(None, "gone", u64::MAX));
    let mut ended = step(1, "b", 8, 5.0);
    ended.outcome = Outcome::Aborted;
    ended.reason = Some("too many errors".to_owned());
    ended.totals.errors = vec![error(Some(1213), "of another label", 7)];
    steps.push(ended);
    let html = paged(&steps);
    let table = html.split("Errors, and steps that did not complete").nth(1).expect("the table");
    let table = table.split("</table>").next().expect("its end");
    let rows: Vec<Vec<String>> = table
        .split("<tr class")
        .skip(1)
        .map(|row| {
            let texts = row.split('<').filter_map(|part| Some(part.split_once('>')?.1.to_owned()));
            texts.filter(|text| !text.is_empty()).collect()
        })
        .collect();
    assert_eq!(
        rows,
        [
            vec!["a", "1213", "30", "8 (2 steps), 16", "message 1"],
            vec!["a", "lost", "18446744073709551615", "16", "gone"],
            vec!["b", "1213", "7", "8", "of another label"],
            vec!["b", "did not complete", "1", "8", "aborted, too many errors"],
        ]
    );
}

#[test]
fn everything_but_folded_charts_is_open_in_print() {
    let mut steps = [around(0, "a", 8, 1000.0), around(1, "b", 8, 1100.0)].concat();
    steps[0].totals.errors = vec![error(Some(1213), "deadlock", 1)];
    let html = paged(&steps);
    // A timeline's fold has the class of its label instead.
    let folds: Vec<&str> = html.split("<details").skip(1).collect();
    assert!(folds.len() > 4, "{}", folds.len());
    for fold in folds {
        let tag = fold.split('>').next().expect("a tag");
        let course = tag.contains(" class=\"s");
        assert!(tag.contains(" class=\"print\"") || course && tag.contains(" open"), "{tag}");
    }
    assert!(html.contains("details.print::details-content{"));
}

#[test]
fn closed_and_open_loops_beside_each_other_say_which_time_is_which() {
    let mut paced = step(0, "a", 8, 1000.0);
    paced.plan.rate = Some(1000.0);
    paced.step_id.push('p');
    paced.latency.response = Some(paced.latency.service.clone());
    let mut mixed = vec![step(0, "a", 8, 1000.0), paced.clone()];
    let metrics = |steps: &[Summary], name: &str| -> Vec<String> {
        let table = json(steps, &metric(name))["tables"][0].clone();
        let columns = table["columns"].as_array().expect("columns").iter();
        columns.map(|column| column["metric"].as_str().expect("a name").to_owned()).collect()
    };
    // A line below the table says the same of both columns.
    let below = |steps: &[Summary], name: &str| report(steps, &metric(name)).lines().count();
    assert_eq!(metrics(&mixed, "p99"), ["p99", "response-p99"]);
    for name in ["service-p99", "response-p99"] {
        assert_eq!(metrics(&mixed, name), [name, name]);
    }
    for name in ["p99", "service-p99", "response-p99"] {
        assert_eq!(below(&mixed, name), below(&mixed, "qps") + 1, "{name}");
    }
    for alone in [&mixed[..1], &mixed[1..]] {
        assert_eq!(below(alone, "p99"), below(alone, "qps"));
    }
    // Conditions are held against those of the same columns.
    for step in &mut mixed {
        let open = step.plan.rate.is_some();
        step.plan.arrival = open.then_some(Arrival::Poisson);
    }
    let steps = [mixed.clone(), vec![step(1, "b", 8, 900.0)]].concat();
    let arrivals = &json(&steps, &in_full())["tables"][0]["lines"][0]["conditions"]["arrival"];
    assert_eq!(*arrivals, Value::from(vec!["closed loop", "poisson"]));
    assert!(lines_of(&steps, "conditions").is_empty());
    let mut other = step(1, "b", 8, 900.0);
    other.plan.warmup_s = 1.0;
    assert_eq!(lines_of(&[mixed.clone(), vec![other]].concat(), "conditions"), [1]);
    let explained = |steps: &[Summary]| paged(steps).contains("intended");
    assert!(explained(&mixed) && !explained(&mixed[..1]));
}

#[test]
fn places_are_told_once_whatever_the_round_trips() {
    let mut steps = runs(0, "a", 8, &[1.0, 2.0, 3.0]);
    for (step, rtt) in steps.iter_mut().zip([120.4, 80.0, 100.0]) {
        step.client.rtt_us = Some(rtt);
    }
    let html = paged(&steps);
    for of in ["load1", "24 ", "db1;", " 0.080 ", " 0.120 "] {
        assert!(html.contains(of), "{of}");
    }
    steps[2].server.host = "db2".to_owned();
    steps[2].run_id.push('2');
    steps[2].label = "b".to_owned();
    let html = paged(&steps);
    for of in ["db1,", "db2;", " 0.080 ", " 0.120 "] {
        assert_eq!(html.matches(of).count(), 1, "{of}");
    }
}

#[test]
fn a_list_keeps_labels_whose_percentile_is_scarce() {
    let mut few = step(0, "few", 8, 1000.0);
    few.latency.service.count = 999;
    let steps = [few, step(1, "many", 8, 1000.0)];
    let listed = |name: &str| Options { layout: Layout::List, ..metric(name) };
    let text = report(&steps, &listed("p99"));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["  • 1.20 ms - many", "  • - ms - few *"]);
    let rows = &json(&steps, &listed("p99"))["rows"];
    assert_eq!((&rows[1]["label"], &rows[1]["value"]), (&"few".into(), &Value::Null));
    assert_eq!((&rows[1]["rank"], &rows[1]["notes"]), (&Value::Null, &"scarce".into()));
    // Related to it there is nothing, and the first label that has a number is the base.
    let relative = Options { layout: Layout::Relative, ..metric("p99") };
    let text = report(&steps, &relative);
    assert!(text.contains("p99-for-many"), "{text}");
}
