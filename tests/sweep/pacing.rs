//! The open loop: rates, response times, backlogs.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use loadgen::canned::{Action, At, Canned, Fault, Listen, Script, Service, tables};
use loadgen::summary::{Distribution, Outcome, Phase, Summary};
use loadgen::terms::Arrival;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::program::{Ended, Results, canned, command, run_canned, wait};
use crate::common::restarting::until;

/// Calls above this are a stall's.
const STALLED_US: f64 = 400_000.0;

fn slow(service: Service) -> Canned {
    let script = Script { answers: tables::answers(8), service, ..Script::default() };
    Canned::start(script, Listen::Port(0)).expect("a free port")
}

fn histogram(of: &Distribution) -> Histogram<u64> {
    let bytes = STANDARD.decode(&of.histogram).expect("base64");
    Deserializer::new().deserialize(&mut bytes.as_slice()).expect("a histogram")
}

fn response(summary: &Summary) -> &Distribution {
    summary.latency.response.as_ref().expect("an open loop has response times")
}

fn warning_value(summary: &Summary, code: &str, name: &str) -> Option<f64> {
    let warning = summary.warnings.iter().find(|w| w.code == code)?;
    warning.values.as_ref()?.get(name)?.as_f64()
}

fn warned<'a>(summary: &'a Summary, code: &str) -> Option<&'a str> {
    summary.warnings.iter().find(|w| w.code == code).map(|w| w.message.as_str())
}

/// What differs from the arithmetic of a second without answers in four, at 100 evenly spaced
/// arrivals a second: of four hundred, a hundred wait, for 1 s, 990 ms … 10 ms, and all of them for
/// longer where a busy host lets the second last longer.
fn differences(summary: &Summary) -> Vec<String> {
    let times = response(summary);
    let mut found = Vec::new();
    if summary.totals.backlog != Some(0) {
        found.push(format!("{:?} arrivals are left to the drain", summary.totals.backlog));
    }
    if times.count != 400 {
        found.push(format!("{} instead of 400 arrivals", times.count));
    }
    let largest = times.max_us.expect("counted") / 1e3;
    if !(990.0..1500.0).contains(&largest) {
        found.push(format!("the largest is {largest} ms instead of 1000"));
    }
    let histogram = histogram(times);
    // By nearest rank; those above wait for 10 ms less each than the largest.
    for above in [1.0, 10.0, 30.0, 50.0] {
        let ms = largest - 10.0 * above;
        // A rank that is whole must not become the next one by rounding.
        let quantile = 1.0 - above / 400.0 - 1e-9;
        let measured = histogram.value_at_quantile(quantile) as f64 / 1e6;
        if (measured - ms).abs() > 10.0 {
            found.push(format!("{above} before the largest are {measured} ms instead of {ms}"));
        }
    }
    // The eight that were in a call stood still: once a client. A few others are a busy host's.
    let service = self::histogram(&summary.latency.service);
    let stalled = service.count_between((STALLED_US * 1e3) as u64, u64::MAX);
    if stalled != 8 {
        found.push(format!("{stalled} calls instead of 8 took as long as the stall"));
    }
    let p95 = service.value_at_quantile(0.95) as f64 / 1e3;
    if p95 > STALLED_US / 4.0 {
        found.push(format!("the p95 of the service time is {p95} us"));
    }
    found
}

#[test]
fn a_stall_is_in_the_response_times_as_arithmetic_has_it_and_in_a_call_a_client() {
    let words = "point-select --tables 1 --clients 8 --engine-threads 1 --rate 100 \
                 --arrival uniform --warmup 0 --time 4s";
    let mut found = Vec::new();
    // A busy host adds stalls of its own: not each time.
    for _ in 0..24 {
        let stall = Action::StallAll(Duration::from_secs(1));
        let server = canned(vec![Fault::new(At::Statement(100), stall).only("WHERE id=")]);
        let ended = run_canned(words, &server);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let summary = ended.only();
        assert_eq!(summary.totals.intended, Some(400));
        found = differences(summary);
        if found.is_empty() {
            return;
        }
    }
    panic!("{}", found.join("\n"));
}

#[test]
fn rates_are_columns_and_every_arrival_is_answered() {
    let server = canned(Vec::new());
    let words = "point-select --tables 8 --clients 8,16 --rate 200,400 --warmup 500ms --time 1s";
    let ended = run_canned(words, &server);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let header = ended.stdout.lines().next().expect("a table");
    let columns: Vec<&str> = header.split("  ").map(str::trim).collect();
    let heads = [(8, 200), (8, 400), (16, 200), (16, 400)];
    let heads = heads.map(|(clients, rate)| format!("clients {clients}, rate {rate}/s"));
    assert_eq!(columns[..4], heads, "{}", ended.stdout);
    assert!(ended.stderr.contains(" 200/s:") && ended.stderr.contains("response"));
    for summary in &ended.summaries {
        let (plan, totals) = (&summary.plan, &summary.totals);
        assert_eq!(plan.arrival, Some(Arrival::Poisson));
        assert!((summary.measured_s - 1.0).abs() < 1e-9);
        // Whatever the host's cores: each client has a table of its own, or shares one.
        assert!(plan.clients != 8 || plan.queues == Some(8), "{:?}", plan.queues);
        let arrivals = totals.intended.expect("arrivals");
        let intended = arrivals as f64;
        let rate = plan.rate.expect("a rate");
        assert!((intended - rate).abs() < 6.0 * rate.sqrt(), "{intended} at {rate}");
        // Each one is answered, be it in the drain.
        assert_eq!(response(summary).count, arrivals);
        assert_eq!(summary.latency.service.count, arrivals);
        let wait = summary.latency.wait.as_ref().expect("the part before the call");
        let mean = |d: &Distribution| d.mean_us.expect("counted");
        let sum = mean(wait) + mean(&summary.latency.service);
        assert!((mean(response(summary)) - sum).abs() < 1.0, "response is wait and service");
        let in_window = summary.timeline.iter().filter(|i| i.phase == Phase::Measure);
        assert!(in_window.clone().any(|i| i.response_p99_us >= i.p99_us && i.p99_us.is_some()));
    }
}

#[test]
fn one_queue_is_to_be_had_and_needs_no_word() {
    let server = canned(Vec::new());
    let words = "point-select --tables 8 --clients 8 --rate 400 --warmup 200ms --time 500ms \
                 --engine-threads 1 --spread random";
    let ended = run_canned(words, &server);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.only().plan.queues, Some(1));
    assert!(!ended.stderr.contains("queues"), "{}", ended.stderr);
}

#[test]
fn a_closed_loop_has_no_response_time() {
    let server = canned(Vec::new());
    let ended = run_canned("point-select --tables 8 --clients 8 --warmup 0 --time 1s", &server);
    let summary = ended.only();
    assert!(summary.latency.response.is_none() && summary.latency.wait.is_none());
    assert_eq!((summary.totals.backlog, summary.totals.intended), (None, None));
    assert_eq!((summary.plan.queues, summary.totals.warmup_left), (None, None));
    assert!(ended.stderr.contains("service") && !ended.stderr.contains("response"));
}

#[test]
fn a_pause_follows_each_op_and_is_in_no_latency() {
    let server = canned(Vec::new());
    let words = "point-select --tables 8 --clients 8 --think 50ms --warmup 0 --time 1s";
    // 20 a client at most. A busy host does fewer, and has slow calls: not each time.
    let paced = (0..5).any(|_| {
        let ended = run_canned(words, &server);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(ended.stdout.contains("0.05 s"), "{}", ended.stdout);
        let summary = ended.only();
        assert_eq!(summary.plan.think_s, Some(0.05));
        let ops = summary.totals.ops;
        assert!(ops <= 160, "{ops} ops");
        ops >= 40 && summary.latency.service.p50_us.is_some_and(|p50| p50 < 25_000.0)
    });
    assert!(paced, "too few ops, or a pause is in their times");
}

#[test]
fn the_last_op_of_a_client_is_followed_by_no_pause_and_the_window_ends_one() {
    let server = canned(Vec::new());
    let began = Instant::now();
    let ended = run_canned("point-select --tables 8 --clients 8 --think 1h --ops 8", &server);
    assert_eq!((ended.code, ended.only().totals.ops), (0, 8), "{}", ended.stderr);
    // Where the host stands still for the window there are fewer: not each time.
    let words = "point-select --tables 8 --clients 8 --think 1h --warmup 0 --time 1s";
    let one_each = (0..5).any(|_| {
        let ended = run_canned(words, &server);
        let ops = ended.only().totals.ops;
        assert!(ended.code == 0 && ops <= 8, "{ops}: {}", ended.stderr);
        ops == 8
    });
    assert!(one_each, "a client had no op");
    assert!(began.elapsed() < Duration::from_mins(1), "{:?}", began.elapsed());
}

#[test]
fn a_rate_that_is_too_high_is_said_and_its_backlog_served_in_the_drain() {
    // Two clients at 20 ms a call: 100 a second at most.
    let server = slow(Service::Constant(Duration::from_millis(20)));
    let words = "point-select --tables 8 --clients 2 --rate 150 --arrival uniform --warmup 3s \
                 --time 2s";
    // A host that stands still leaves a backlog of the warm-up, too: not each time.
    let drained = |ended: &Ended| warned(ended.only(), "warmup_backlog").is_none();
    let ended = (0..4).map(|_| run_canned(words, &server)).find(drained).expect("it was drained");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let summary = ended.only();
    let totals = &summary.totals;
    assert_eq!(totals.intended, Some(300));
    // The warm-up's 150 were drained, which took half of the time that it may; 100 more than can be
    // served, and on a busy host fewer can be.
    let backlog = totals.backlog.expect("a backlog");
    assert!((95..300).contains(&backlog), "{backlog}");
    assert_eq!((totals.abandoned, response(summary).count), (0, 300));
    let said = warned(summary, "target_not_sustained").expect("a warning");
    assert_eq!(warning_value(summary, "target_not_sustained", "rate"), Some(150.0));
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    let begin = summary.timeline.iter().find(|i| i.phase == Phase::Measure).expect("a window");
    assert!(begin.start_s > 4.0, "after the drain of the warm-up: {}", begin.start_s);
}

#[test]
fn a_warm_up_that_cannot_be_drained_is_said() {
    let server = slow(Service::Constant(Duration::from_millis(20)));
    let words = "point-select --tables 8 --clients 1 --rate 500 --warmup 1s --time 1s";
    let ended = run_canned(words, &server);
    let summary = ended.only();
    let queued = warning_value(summary, "warmup_backlog", "queued").expect("a warning");
    assert!(queued > 300.0, "{queued}");
    // 500 came in, and 100 were issued in the two seconds before the window.
    let left = summary.totals.warmup_left.expect("an open loop");
    assert!(left > 300 && summary.totals.warmup_late_us > Some(1e6), "{:?}", summary.totals);
    // The drain ends, too: what it leaves has an age, and is counted.
    let intended = summary.totals.intended.expect("arrivals");
    assert!(summary.totals.abandoned > 0, "{:?}", summary.totals);
    assert_eq!(response(summary).count, intended);
    let oldest = response(summary).max_us.expect("counted");
    assert!(oldest > 9e6, "as old as the drain is long: {oldest}");
}

#[test]
fn ops_are_exact_at_a_rate_too() {
    let server = canned(Vec::new());
    let words = "update-index --tables 8 --clients 16 --rate 2k --ops 501 --warmup 200ms";
    let ended = run_canned(words, &server);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let totals = &ended.only().totals;
    assert_eq!((totals.ops, totals.intended), (501, Some(501)));
}

#[test]
fn a_signal_ends_an_open_loop_without_its_backlog() {
    let server = slow(Service::Constant(Duration::from_millis(10)));
    for warmup in ["0", "60s"] {
        let port = server.port().to_string();
        let results = Results::new();
        let start = Instant::now();
        let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x"];
        let words =
            format!("point-select --tables 8 --clients 2 --rate 2k --time 60s --warmup {warmup}");
        let child = command(&words, &connection, &results).spawn().expect("runs");
        let served = || server.counts().executes;
        let before = served();
        // 200 a second at most: by then some 3,600 wait.
        until("a backlog", || served() > before + 400);
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it runs");
        let asked = served();
        let ended = wait(child, start, &results);
        assert_eq!(ended.code, 130, "{}", ended.stderr);
        // Ten seconds of a drain would have 2,000.
        let more = served() - asked;
        assert!(more < 1500, "{more} after the signal, {:?}", ended.took);
        let summary = ended.only();
        assert_eq!(summary.outcome, Outcome::Interrupted);
        assert_eq!(summary.measured_s > 0.0, warmup == "0", "{}", summary.measured_s);
    }
}
