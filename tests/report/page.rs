//! The page and its charts: what they hold, what they never hold, how large they are.

use loadgen::error::{Error, Kind};
use loadgen::report::{Format, Metric, Options, Picture, Question, compare, page, picture};
use loadgen::summary::{AddressCounts, Group, Outcome, Summary, Workload};
use loadgen::terms::{Arrival, Code, OnError, Spread};

use serde_json::Value;

use super::{again, repeat};
use crate::common::summaries::{histogram, step, worded};

const HOSTILE: &str =
    "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u{202e}\u{0}";

fn paged(steps: &[Summary], options: &Options) -> Result<String, Error> {
    page(&steps.iter().collect::<Vec<_>>(), options)
}

fn drawn(steps: &[Summary], what: Picture) -> Result<String, Error> {
    picture(&steps.iter().collect::<Vec<_>>(), &Options::default(), what)
}

const PICTURES: [Picture; 4] =
    [Picture::Qps, Picture::Relative, Picture::Latency, Picture::Timeline];

/// Two labels at three numbers of clients, twice each, with a warm-up.
fn sweep() -> Vec<Summary> {
    let mut steps = Vec::new();
    for (order, label) in ["8.4.3", "9.1.0"].into_iter().enumerate() {
        for clients in [8, 16, 32] {
            let qps = 1000.0 * f64::from(clients) * (1.0 + order as f64 / 10.0);
            let mut first = step(order as u32, label, clients, qps);
            let mut warmup = first.timeline[0].clone();
            warmup.phase = loadgen::summary::Phase::Warmup;
            warmup.start_s = 9.0;
            first.timeline.insert(0, warmup);
            let spread: Vec<u64> = (1..=1000).map(|us| us * 1000).collect();
            first.latency.service.histogram = histogram(&spread);
            steps.push(repeat(&first, 2, qps * 1.02));
            steps.push(first);
        }
    }
    steps
}

#[test]
fn the_page_holds_every_number_and_chart() {
    let html = paged(&sweep(), &Options::default()).expect("a page");
    for text in ["8.4.3", "9.1.0", ">8080<", "8000..8160", "1.10", "Behind it:", "--seed 42"] {
        assert!(html.contains(text), "no {text}");
    }
    // QPS, relative, p50, p99, the client's CPU; three by percentile; two timelines a cell.
    assert_eq!(html.matches("<svg class=\"chart\"").count(), 5 + 3 + 2 * 6);
    assert_eq!(html.matches("class=\"uncounted\"").count(), 2 * 6, "warm-ups are shaded");
    assert!(!html.contains("NaN"));
    assert_eq!(html, paged(&sweep(), &Options::default()).expect("a page"), "pure");
}

#[test]
fn the_page_begins_with_the_answer_of_a_comparison_when_it_has_several_labels() {
    struct Case {
        what: &'static str,
        labels: &'static [&'static str],
        factors: [f64; 6],
        metrics: &'static [&'static str],
        verdicts: &'static [&'static str],
    }
    let (faster, noisy) = ([1.2; 6], [0.6, 1.6, 0.9, 1.3, 0.7, 1.5]);
    for Case { what, labels, factors, metrics, verdicts } in [
        Case {
            what: "a difference",
            labels: &["old", "new"],
            factors: faster,
            metrics: &["qps"],
            verdicts: &["better"],
        },
        Case {
            what: "noise",
            labels: &["old", "new"],
            factors: noisy,
            metrics: &["qps"],
            verdicts: &["inconclusive"],
        },
        Case {
            what: "two metrics",
            labels: &["old", "new"],
            factors: faster,
            metrics: &["qps", "client-seconds"],
            verdicts: &["better", "not comparable"],
        },
        Case { what: "one", labels: &["old"], factors: noisy, metrics: &["qps"], verdicts: &[] },
        Case {
            what: "three",
            labels: &["old", "new", "newer"],
            factors: faster,
            metrics: &["qps"],
            verdicts: &["better", "better"],
        },
    ] {
        let mut steps = Vec::new();
        for (order, label) in (0..).zip(labels) {
            for (repeat, factor) in (1..).zip(factors) {
                let factor = if order == 0 { 1.0 } else { factor };
                let qps = (1000.0 + f64::from(repeat)) * factor;
                steps.push(super::repeat(&step(order, label, 8, qps), repeat, qps));
            }
        }
        let metrics: Vec<Metric> = metrics.iter().map(|of| of.parse().expect(of)).collect();
        let (metric, also) = (metrics[0], metrics[1..].to_vec());
        let mut wanted = Vec::new();
        if let [base, new, others @ ..] = labels {
            let (base, new) = ((*base).to_owned(), (*new).to_owned());
            let others = others.iter().map(|label| (*label).to_owned()).collect();
            let (also, floor) = (also.clone(), 0.02);
            let of = Question { base, new, others, metric, also, floor, ..Question::default() };
            let of = |format| {
                let asked = Question { format, ..of.clone() };
                compare(&steps.iter().collect::<Vec<_>>(), &asked).expect(what)
            };
            let json: Value = serde_json::from_str(&of(Format::Json).text).expect("JSON");
            for (at, verdict) in verdicts.iter().enumerate() {
                assert_eq!(json["rows"][at]["verdict"], *verdict, "{what}");
            }
            wanted.extend(of(Format::Text).answer);
        }
        let html = paged(&steps, &Options { metric, also, ..Options::default() }).expect("a page");
        let lines = html.split("<p class=\"result\">").skip(1);
        let lines: Vec<&str> = lines.map(|of| of.split("</p>").next().expect("its end")).collect();
        assert_eq!(lines, wanted, "{what}");
    }
}

#[test]
fn answers_and_ratios_of_a_page_have_one_base_when_the_labels_have_another_order() {
    let of = |order: u32, label: &str, workload: &str, factor: f64| -> Vec<Summary> {
        let of_repeat = |repeat: u32| {
            let qps = (1000.0 + f64::from(repeat)) * factor;
            let mut step = super::repeat(&step(order, label, 8, qps), repeat, qps);
            workload.clone_into(&mut step.workload.name);
            step.started_at = format!("2026-11-20T{order:02}:{repeat:02}:00Z");
            step
        };
        (1..7).map(of_repeat).collect()
    };
    // The second workload began with the other label.
    let steps = [
        of(0, "old", "one", 1.0),
        of(1, "new", "one", 1.2),
        of(2, "new", "two", 1.2),
        of(3, "old", "two", 1.0),
    ]
    .concat();
    for (order, base, other) in [("old", "old", "new"), ("new", "new", "old")] {
        let order = vec![order.to_owned()];
        let html = paged(&steps, &Options { order, ..Options::default() }).expect("a page");
        let answers = html.split("<p class=\"result\">").skip(1);
        let answers: Vec<&str> = answers.map(|of| of.split("</p>").next().expect("it")).collect();
        assert!(!answers.is_empty(), "{html}");
        let than = format!("than {base}");
        assert!(answers.iter().all(|line| line.contains(&than)), "{answers:?}");
        let related = format!("relative to {base}");
        assert!(html.contains(&related), "{html}");
        assert!(!html.contains(&format!("relative to {other}")), "{html}");
    }
    let bare = paged(&steps, &Options::default()).expect("a page");
    assert!(!bare.contains("relative to new"), "one base for all workloads: {bare}");
}

#[test]
fn a_panel_is_one_drawing_with_its_legend_in_it() {
    let html = paged(&sweep(), &Options::default()).expect("a page");
    for figure in html.split("<figure>").skip(1) {
        let figure = figure.split("</figure>").next().expect("its end");
        assert_eq!(figure.matches("<svg").count(), 1, "{figure}");
    }
    // QPS, p50, p99 and CPU over the clients and the curves have both labels.
    assert!(html.matches(">9.1.0</text>").count() > 4);
}

#[test]
fn page_has_the_course_of_each_group_beside() {
    let mut step = step(0, "a", 8, 1000.0);
    let timeline = step.timeline.clone();
    let group = Group { name: "writer".to_owned(), timeline, ..Group::default() };
    let mut page = |groups| {
        step.groups = groups;
        paged(&[step.clone()], &Options::default()).expect("a page")
    };
    let (alone, beside) = (page(Vec::new()), page(vec![group]));
    let courses = |page: &str| page.matches("<svg").count();
    assert_eq!(courses(&beside), courses(&alone) + 2, "the rate and a time");
    assert!(beside.contains("group writer, beside 8 clients") && !alone.contains("beside 8"));
}

#[test]
fn the_page_says_why_the_server_s_count_is_not_held_against_the_client_s() {
    let behind = |change: &dyn Fn(&mut Summary)| {
        let mut step = step(0, "a", 8, 1000.0);
        let status = step.server.status.as_mut().expect("status");
        status.first_s = -0.01;
        status.deltas.insert("Questions".to_owned().into(), 60_010);
        change(&mut step);
        paged(&[step], &Options::default()).expect("a page")
    };
    let status = |step: &mut Summary| step.server.status.clone().expect("status");
    assert!(behind(&|_| {}).contains("100.0%"));
    // The server counts the statements of all groups.
    let shared = behind(&|step| {
        let mut group = Group::default();
        (step.totals.qps, group.totals.qps) = (400.0, 600.0);
        step.groups = vec![group];
    });
    assert!(shared.contains("100.0%"), "{shared}");
    let early = behind(&|step| {
        step.server.status.as_mut().expect("status").first_s = -0.7;
    });
    assert!(early.contains("0.70 s"), "{early}");
    let flushed = behind(&|step| {
        let mut status = status(step);
        status.deltas.insert("Questions".to_owned().into(), -5);
        step.server.status = Some(status);
    });
    // Each has a reason of its own, and no share.
    let unread = behind(&|step| step.server.status = None);
    let several = behind(&|step| step.addresses = vec![AddressCounts::default(); 2]);
    let all = [&early, &flushed, &unread, &several];
    assert!(all.iter().all(|page| !page.contains("100.0%")));
    assert!(early != flushed && flushed != unread && early != unread);
}

#[test]
fn the_command_names_what_differs_from_the_defaults() {
    let command = |step: &Summary| {
        let html = paged(std::slice::from_ref(step), &Options::default()).expect("a page");
        let at = html.find(">loadgen point-select").or(html.find(">loadgen read-only"));
        let words = &html[at.expect("the command") + 1..];
        words.split("</td>").next().expect("its end").replace("&#39;", "'")
    };
    let mut step = step(0, "it's", 8, 1000.0);
    let usual = "loadgen point-select --tables 8 --rows 16000000 --clients 8 --warmup 10s --time 60s \
                 --distribution uniform --spread pinned --seed 42 --label 'it'\\''s'";
    assert_eq!(command(&step), usual);
    let mut beside = step.clone();
    let workload =
        Workload { name: "update-index".to_owned(), built_in: true, ..Workload::default() };
    let mut own = Workload { name: "mine".to_owned(), ..Workload::default() };
    own.options.insert("range_size".to_owned(), 7);
    let paced = Group {
        name: "writer".to_owned(),
        workload: workload.into(),
        clients: 4,
        rate: Some(200.0),
        arrival: Some(Arrival::Uniform),
        ..Group::default()
    };
    let closed = Group {
        name: "mine".to_owned(),
        workload: own.into(),
        clients: 1,
        think_s: Some(0.5),
        reconnect_every: Some(10),
        ..Group::default()
    };
    (beside.groups, beside.plan.clients) = (vec![paced, closed], 2);
    // Threads for the clients of all groups are the usual ones.
    beside.plan.engine_threads = beside.client.cores.min(7);
    let with = usual.replace("--clients 8", "--clients 2").replace(
        "--seed",
        "--beside update-index,name=writer,clients=4,rate=200,arrival=uniform \
         --beside sql=mine.sql,clients=1,think=0.5s,reconnect-every=10,range_size=7 --seed",
    );
    assert_eq!(command(&beside), with);
    step.plan.on_error = OnError::Continue;
    step.plan.max_errors = Some("1%".to_owned());
    step.plan.op_timeout_s = Some(2.5);
    step.plan.charset = Some("latin1".to_owned());
    step.plan.engine_threads = 2;
    step.workload.spread = Spread::Random;
    step.conditions = Some(loadgen::summary::Conditions {
        before: Some(loadgen::summary::Prepared {
            warm: "pool".to_owned(),
            ahi: "as-is".to_owned(),
            settle: Some(loadgen::summary::Settled { limit_s: 300.0, ..Default::default() }),
            ..Default::default()
        }),
        ..Default::default()
    });
    let others = "--distribution uniform --spread random --engine-threads 2 --charset latin1 \
                  --on-error continue --max-errors 1% --op-timeout 2.5s --seed 42 --warm pool \
                  --settle=300s --label";
    assert!(command(&step).contains(others), "{}", command(&step));
    step.workload.name = "read-only".to_owned();
    step.workload.options =
        [("range_size", 10), ("skip_trx", 0)].map(|(name, value)| (name.to_owned(), value)).into();
    assert!(
        command(&step).contains(" --range-size=10 --skip-trx=0 --settle"),
        "{}",
        command(&step)
    );
}

#[test]
fn steps_that_did_not_complete_have_their_timelines_and_rows() {
    let mut steps = sweep();
    steps[0].outcome = Outcome::Aborted;
    steps[0].reason = Some("too many errors".to_owned());
    let html = paged(&steps, &Options::default()).expect("a page");
    // One of the rate and one of the time, beside those of the other repeat.
    assert_eq!(html.matches("<figcaption>8 clients, did not complete<").count(), 2);
    assert_eq!(html.matches("<figcaption>8 clients<").count(), 4);
    assert!(html.contains("Steps: 12<"));
    let row =
        html.split(&format!("<td class=\"text\">{}<", steps[0].step_id)).nth(1).expect("its row");
    let row = row.split("</tr>").next().expect("its end");
    assert!(row.ends_with(">aborted, too many errors</td>"), "{row}");
    let svg = drawn(&steps, Picture::Timeline).expect("a picture");
    assert_eq!(svg.matches("8 clients, did not complete").count(), 2, "rate and time");

    for step in &mut steps {
        step.outcome = Outcome::Interrupted;
    }
    let error = paged(&steps, &Options::default()).expect_err("nothing completed");
    assert_eq!(error.kind(), Kind::Data);
    assert!(error.to_string().contains(" 12 "), "{error}");
}

#[test]
fn what_has_no_such_number_has_its_curves_and_timelines_all_the_same() {
    let mut steps = sweep();
    for step in &mut steps {
        step.latency.service.count = 1000;
    }
    let scarce = Options { metric: "p99.9".parse().expect("a metric"), ..Options::default() };
    let html = paged(&steps, &scarce).expect("a page");
    let sentence = Code::Scarce.sentence().replace("{percentile}", "p99.9");
    assert!(html.contains(sentence.split('{').next().expect("words")));
    let headings = html.matches("<h3>").count();
    // Two times and the CPU over the clients; three by percentile; two timelines a column and label.
    assert_eq!(html.matches("<svg class=\"chart\"").count(), 3 + 3 + 2 * 6);
    assert!(picture(&steps.iter().collect::<Vec<_>>(), &scarce, Picture::Latency).is_ok());

    // A step of the drain alone has nothing to draw, and then there is no heading.
    for interval in steps.iter_mut().flat_map(|step| &mut step.timeline) {
        interval.phase = loadgen::summary::Phase::Drain;
    }
    let html = paged(&steps, &scarce).expect("a page");
    assert_eq!(html.matches("<h3>").count(), headings - 1);
}

#[test]
fn one_client_and_one_core_are_no_plural() {
    let mut step = step(0, "a", 1, 100.0);
    (step.plan.rate, step.client.cores) = (Some(100.0), 1);
    let html = paged(&[step], &Options::default()).expect("a page");
    for text in ["open loop of 1 client<", "(1 core)", ", 1 core, "] {
        assert!(html.contains(text), "no {text}");
    }
}

#[test]
fn a_value_above_the_scale_is_said_to_be_larger_than_its_end() {
    let html = paged(&sweep(), &Options::default()).expect("a page");
    assert!(html.contains("(isCut && y <= top ? '≥ ' : '≈ ')"), "the script tells them apart");
}

#[test]
fn outages_and_errors_are_shaded() {
    let mut steps = sweep();
    steps[0].timeline[1].errors = 3;
    steps[0].outages = vec![
        serde_json::from_value(serde_json::json!({
            "first_error_s": 10.2, "last_error_s": 10.4, "gap_s": 0.3, "first_success_s": 10.5,
            "recovered_s": 10.8, "code": 1053, "errors": 3, "first_error": "a", "last_error": "b",
        }))
        .expect("an outage"),
    ];
    let html = paged(&steps, &Options::default()).expect("a page");
    // One of the rate and one of the time.
    assert_eq!(html.matches("class=\"errors\"").count(), 2);
    assert_eq!(html.matches("class=\"outage\"").count(), 2);
}

#[test]
fn a_lone_interval_is_a_dot_that_the_script_can_read() {
    let mut steps = sweep();
    let interval = steps[0].timeline[1].clone();
    // The p99 of intervals with so few ops is left out: what stands between them is alone.
    for (at, ops) in (1..).zip([900, 9000, 900, 9000, 9000]) {
        let mut next = interval.clone();
        (next.start_s, next.ops) = (interval.start_s + f64::from(at) * interval.length_s, ops);
        steps[0].timeline.push(next);
    }
    let html = paged(&steps, &Options::default()).expect("a page");
    let charts = html.split("<svg class=\"chart\"").skip(1);
    let charts = charts.map(|chart| chart.split("</svg>").next().expect("its end"));
    // The legend's samples are no lines of values.
    let charts = charts.map(|chart| chart.split("<g class=\"key").next().expect("its start"));
    let lines = charts.flat_map(|chart| chart.split("<path class=\"l\" d=\"M").skip(1));
    let lines: Vec<&str> = lines.map(|line| line.split('"').next().expect("its end")).collect();
    assert!(lines.iter().any(|line| line.ends_with("h0")), "{lines:?}");
    for line in lines {
        for vertex in line.strip_suffix("h0").unwrap_or(line).split(' ') {
            let numbers = vertex.split(',').map(str::parse::<f64>);
            assert_eq!(numbers.flatten().count(), 2, "{line}");
        }
    }
    assert!(html.contains("slice(1).replace(/h0$/, '')"), "the script takes the dot's end off");
}

#[test]
fn nothing_is_fetched_and_nothing_foreign_runs() {
    let mut steps = sweep();
    for step in &mut steps {
        HOSTILE.clone_into(&mut step.workload.name);
        HOSTILE.clone_into(&mut step.server.version);
        HOSTILE.clone_into(&mut step.client.host);
        step.warnings = vec![worded(HOSTILE, HOSTILE)];
        step.label.push_str(HOSTILE);
    }
    let html = paged(&steps, &Options::default()).expect("a page");
    assert_eq!(html.matches("<script").count(), 1);
    assert_eq!(html.matches("</title").count(), 1, "inline charts have none");
    assert!(html.contains("default-src 'none'") && html.contains("script-src 'sha256-"));
    for never in ["<img", "http:", "https:", "\u{202e}", "\u{0}", " style="] {
        assert!(!html.contains(never), "{never:?}");
    }
    for what in PICTURES {
        let svg = drawn(&steps, what).expect("a picture");
        assert_eq!(svg.matches("</title").count(), 1);
        assert!(!svg.contains("<script") && !svg.contains('\u{0}'));
    }
}

#[test]
fn picture_tells_labels_apart_when_they_begin_alike() {
    let labels = ["first", "second"].map(|end| format!("{} {end}", "x".repeat(70)));
    let steps = labels.each_ref().map(|label| step(1, label, 8, 1000.0));
    let svg = drawn(&steps, Picture::Qps).expect("a picture");
    for label in &labels {
        assert!(svg.contains(&format!(">{label}</text>")), "{svg}");
    }
}

#[test]
fn a_picture_names_its_labels() {
    for what in PICTURES {
        let svg = drawn(&sweep(), what).expect("a picture");
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
        assert!(svg.contains(">8.4.3</text>") && svg.contains(">9.1.0</text>"), "{what:?}");
        assert!(!svg.contains("NaN") && !svg.contains("var("));
    }
}

#[test]
fn two_hundred_labels_stay_below_five_megabytes() {
    let spread: Vec<u64> = (0..20_000).map(|i| 100_000 + i * i / 10).collect();
    let histogram = histogram(&spread);
    let mut steps = Vec::new();
    for label in 0..200_u32 {
        for clients in [1, 2, 4, 8, 16, 32, 64, 128] {
            let qps = f64::from(clients * 1000 + label * 17);
            let mut step = step(label, &format!("5.7.{label}+bp8+fastcs"), clients, qps);
            step.latency.service.histogram.clone_from(&histogram);
            let interval = step.timeline[0].clone();
            step.timeline = (0..600_u32)
                .map(|at| {
                    let mut interval = interval.clone();
                    interval.start_s = f64::from(at);
                    interval.ops = 9000 + u64::from(at * 7919 % 1000);
                    interval
                })
                .collect();
            steps.push(step);
        }
    }
    let html = paged(&steps, &Options::default()).expect("a page");
    assert!(html.len() < 5_000_000, "{} bytes", html.len());
}

#[test]
fn absurd_numbers_draw_something() {
    for absurd in [0.0, -1.0, f64::MAX, f64::MIN_POSITIVE] {
        let mut steps = sweep();
        for step in &mut steps {
            step.totals.qps = absurd;
            step.totals.tps = absurd;
            step.client.us_per_op = Some(absurd);
            step.latency.service.p99_us = Some(absurd);
            for interval in &mut step.timeline {
                interval.start_s = absurd;
                interval.length_s = absurd;
                interval.p99_us = Some(absurd);
            }
        }
        let html = paged(&steps, &Options::default()).expect("a page");
        assert!(!html.contains("NaN"), "{absurd}");
        let _ = drawn(&steps, Picture::Qps);
    }
}

#[test]
fn what_a_table_refuses_no_page_shows() {
    let first = step(0, "8.4.3", 8, 1000.0);
    let mut second = again(&first, 1);
    second.plan.rows += 1;
    let strict = Options { strict: true, ..Options::default() };
    let error = paged(&[first.clone(), second], &strict).expect_err("other rows");
    assert_eq!(error.kind().exit_code(), 4);
    let unknown = Options { baseline: Some("none".to_owned()), ..Options::default() };
    let error = paged(std::slice::from_ref(&first), &unknown).expect_err("no such label");
    assert_eq!(error.kind().exit_code(), 2);
    for what in PICTURES {
        let error = picture(&[&first], &unknown, what).expect_err("no such label");
        assert_eq!(error.kind().exit_code(), 2);
    }
    let mut lone = first;
    lone.timeline.clear();
    let error = drawn(&[lone], Picture::Timeline).expect_err("no timeline");
    assert_eq!(error.kind().exit_code(), 4);
}

#[test]
fn picture_of_ratios_skips_a_label_without_a_completed_step() {
    let mut steps = [step(0, "a", 8, 100.0), step(1, "b", 8, 90.0), step(2, "c", 8, 80.0)];
    steps[0].outcome = Outcome::Aborted;
    drawn(&steps, Picture::Relative).expect("a picture");
}

#[test]
fn a_picture_says_what_its_labels_do_not_share() {
    let alike = [step(0, "a", 8, 100.0), step(1, "b", 8, 90.0)];
    let same = drawn(&alike, Picture::Relative).expect("a picture");
    assert!(!same.contains("conditions"), "{same}");
    let mut other = alike;
    other[1].plan.max_errors = Some("1%<x>".to_owned());
    let svg = drawn(&other, Picture::Relative).expect("a picture");
    assert!(svg.contains("1%&lt;x&gt;"), "{svg}");
}
