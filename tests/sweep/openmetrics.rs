//! `--openmetrics`: what a scraper sees, and what it costs.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loadgen::canned::{Action, At, Canned, Fault};
use loadgen::summary::{Outcome, Totals};

use crate::common::program::{Ended, Results, canned, command, wait};

/// Begins a measurement, and reads the address of its metrics.
fn begin(words: &str, server: &Canned, results: &Results) -> (Child, String) {
    let port = server.port().to_string();
    let words = format!("{words} --tables 8 --warmup 0 --openmetrics 0");
    let mut child = command(&words, &["-h", "127.0.0.1", "-P", &port, "-u", "x"], results)
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let address = lines.find_map(|line| {
        let line = line.expect("text");
        let (_, rest) = line.split_once("http://")?;
        Some(rest.strip_suffix("/metrics").expect("the path of the metrics").to_owned())
    });
    // Nobody else reads what follows.
    std::thread::spawn(move || lines.for_each(drop));
    (child, address.expect("the address of the metrics"))
}

fn ask(address: &str, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a time limit");
    write!(stream, "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// The samples of a page by name and labels; None if nobody listens any more.
fn scrape(address: &str) -> Option<BTreeMap<String, f64>> {
    let answer = ask(address, "GET /metrics")?;
    // It is cut off where the program ends.
    let (head, page) = answer.split_once("\r\n\r\n")?;
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(page.ends_with("# EOF\n"), "{page}");
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        (name.to_owned(), value.parse().expect("a number"))
    };
    Some(samples.map(sample).collect())
}

/// Scrapes until the program ends; returns its end and all that was seen.
fn follow(child: Child, address: &str, results: &Results) -> (Ended, Vec<BTreeMap<String, f64>>) {
    let mut seen = Vec::new();
    while let Some(samples) = scrape(address) {
        seen.push(samples);
        std::thread::sleep(Duration::from_millis(100));
    }
    (wait(child, Instant::now(), results), seen)
}

fn sum(samples: &BTreeMap<String, f64>, name: &str) -> f64 {
    let of_name = |key: &str| key.split('{').next() == Some(name);
    samples.iter().filter(|(key, _)| of_name(key)).map(|(_, value)| value).sum()
}

#[test]
fn counters_of_the_last_scrape_are_the_summary_when_a_step_has_errors() {
    let deadlock = Action::error(1213, "40001", "Deadlock found");
    let server = canned(vec![Fault::new(At::EachStatement(50), deadlock).only("WHERE id=")]);
    let results = Results::new();
    let words = "point-select --clients 2,3 --time 2s --interval 200ms --label ten";
    let (child, address) = begin(words, &server, &results);
    let (ended, seen) = follow(child, &address, &results);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let last = seen.last().expect("it was scraped");
    let step = ended.summaries.iter().find(|step| step.plan.clients == 3).expect("its summary");
    let errors: u64 = step.totals.errors.iter().map(|error| error.count).sum();
    assert!(errors > 0 && step.totals.ops > 0, "{:?}", step.totals);
    let labels = r#"label="ten",workload="point-select""#;
    let counted = BTreeMap::from([
        (format!(r#"loadgen_operations_total{{{labels},step="2"}}"#), step.totals.ops),
        (format!(r#"loadgen_statements_total{{{labels},step="2"}}"#), step.totals.statements),
        (format!(r#"loadgen_errors_total{{{labels},step="2",class="session"}}"#), errors),
        (format!(r#"loadgen_errors_total{{{labels},step="2",class="lost"}}"#), 0),
        (format!(r#"loadgen_phase{{{labels},phase="done"}}"#), 1),
        (format!("loadgen_clients{{{labels}}}"), 3),
        (format!("loadgen_step{{{labels}}}"), 2),
        (format!("loadgen_steps{{{labels}}}"), 2),
    ]);
    for (name, value) in counted {
        assert_eq!(last.get(&name), Some(&(value as f64)), "{name} of {last:#?}");
    }
    let while_it_ran = seen.iter().filter(|one| sum(one, "loadgen_operations_per_second") > 0.0);
    let latencies = while_it_ran.map(|one| sum(one, "loadgen_latency_seconds"));
    assert!(latencies.clone().count() > 0 && latencies.clone().all(|s| s > 0.0), "{seen:#?}");
    // A counter only grows within a step.
    let of_last_step = seen.iter().filter(|one| sum(one, "loadgen_step") > 1.0);
    let ops: Vec<f64> = of_last_step.map(|one| sum(one, "loadgen_operations_total")).collect();
    assert!(ops.is_sorted(), "{ops:?}");
}

#[test]
fn groups_beside_have_counters_with_their_name() {
    let deadlock = Action::error(1213, "40001", "Deadlock found");
    let server = canned(vec![Fault::new(At::EachStatement(4), deadlock).only("SET k=k+1")]);
    let results = Results::new();
    let words = "point-select --clients 2 --time 2s --interval 200ms --label ten \
                 --beside update-index,name=writer,clients=3,rate=200";
    let (child, address) = begin(words, &server, &results);
    let (ended, seen) = follow(child, &address, &results);
    let step = ended.only();
    let (own, writer) = (&step.totals, &step.groups[0].totals);
    let errors = |totals: &Totals| totals.errors.iter().map(|error| error.count).sum::<u64>();
    assert!(own.ops > 0 && writer.ops > 0 && errors(own) == 0 && errors(writer) > 0);
    let labels = r#"label="ten",workload="point-select""#;
    let of = format!(r#"{labels},group="writer""#);
    let counter = format!(r#"{labels},step="1",group="writer""#);
    let last = seen.last().expect("it was scraped");
    for (name, value) in [
        (format!(r#"loadgen_operations_total{{{labels},step="1"}}"#), own.ops),
        (format!("loadgen_operations_total{{{counter}}}"), writer.ops),
        (format!("loadgen_statements_total{{{counter}}}"), writer.statements),
        (format!(r#"loadgen_errors_total{{{counter},class="session"}}"#), errors(writer)),
        (format!(r#"loadgen_errors_total{{{labels},step="1",class="session"}}"#), 0),
        (format!("loadgen_clients{{{labels}}}"), 2),
        (format!("loadgen_clients{{{of}}}"), 3),
        (format!("loadgen_target_operations_per_second{{{of}}}"), 200),
    ] {
        assert_eq!(last.get(&name), Some(&(value as f64)), "{name} of {last:#?}");
    }
    let rate = format!("loadgen_operations_per_second{{{of}}}");
    assert!(seen.iter().any(|one| one.get(&rate).is_some_and(|rate| *rate > 0.0)), "{seen:#?}");
}

#[test]
fn operations_of_a_host_are_those_of_each_group() {
    let (server, results) = (canned(Vec::new()), Results::new());
    let words = "point-select --clients 2 --time 2s --interval 200ms --label ten --hosts localhost \
                 --beside update-index,name=writer,clients=3,think=5ms";
    let (child, address) = begin(words, &server, &results);
    let (ended, seen) = follow(child, &address, &results);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let step = ended.only();
    let (own, writer) = (step.totals.ops, step.groups[0].totals.ops);
    assert!(own > 0 && writer > 0, "{:?}", step.groups);
    let labels = r#"label="ten",workload="point-select",step="1""#;
    let last = seen.last().expect("it was scraped");
    for (own_labels, ops) in [("", own), (r#",group="writer""#, writer)] {
        let name =
            format!(r#"loadgen_host_operations_total{{{labels}{own_labels},host="localhost"}}"#);
        assert_eq!(last.get(&name), Some(&(ops as f64)), "{name} of {last:#?}");
    }
}

#[test]
fn step_goes_on_when_scrapers_hang_and_flood() {
    let server = canned(Vec::new());
    let results = Results::new();
    let words = "point-select --clients 2 --rate 200 --time 3s";
    let (child, address) = begin(words, &server, &results);
    let silent: Vec<Option<TcpStream>> =
        (0..30).map(|_| TcpStream::connect(&address).ok()).collect();
    let over = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    if let Ok(mut stream) = TcpStream::connect(&address) {
                        let _ = stream.write_all(b"\x16\x03\x01nonsense\r\n\r\n");
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
        }
        let ended = wait(child, Instant::now(), &results);
        over.store(true, Ordering::Relaxed);
        ended
    });
    drop(silent);
    let step = ended.only();
    assert_eq!((ended.code, &step.outcome), (0, &Outcome::Completed), "{}", ended.stderr);
    // All that was asked for, but for what a full host gives up.
    assert!(step.totals.ops > 400, "{:?}", step.totals);
}

#[test]
fn other_requests_and_addresses_are_refused() {
    let server = canned(Vec::new());
    let results = Results::new();
    let (child, address) = begin("point-select --clients 1 --time 2s", &server, &results);
    let status = |request: &str| {
        let answer = ask(&address, request).expect("an answer");
        answer.split(' ').nth(1).expect("a status").to_owned()
    };
    assert_eq!(["GET /", "POST /metrics", "HEAD /metrics"].map(status), ["404", "405", "200"]);
    let port = server.port().to_string();
    for taken in [address.as_str(), "nonsense", "70000", "256.1.1.1:9"] {
        let words = format!("point-select --clients 1 --openmetrics {taken}");
        let results = Results::new();
        let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x"];
        let output = command(&words, &connection, &results).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{taken}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(taken), "{taken}");
    }
    assert_eq!(wait(child, Instant::now(), &results).code, 0);
}
