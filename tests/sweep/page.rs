//! The page of summaries that the program itself wrote: what their steps met is on it.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use loadgen::canned::{Action, At, Fault};
use loadgen::summary::{Summary, VerdictKind};
use serde_json::{Value, json};

use crate::common::program::{Results, canned, command};

fn loadgen(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loadgen")).args(words).output().expect("the program runs")
}

fn run_into(results: &Results, port: u16, words: &str) {
    let port = port.to_string();
    let ended = command(words, &["-h", "127.0.0.1", "-P", &port, "-u", "x"], results).output();
    let ended = ended.expect("the program runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{words}: {said}");
}

/// A calibration of this host whose ceiling any run comes near.
fn low_ceiling(file: &Path) {
    let path = file.to_str().expect("UTF-8");
    let words = ["--clients", "4", "--engine-threads", "1", "--time", "200ms"];
    let ended = loadgen(&[&["calibrate", "--calibration", path], &words[..]].concat());
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let text = std::fs::read_to_string(file).expect("kept");
    let mut kept: Value = serde_json::from_str(&text).expect("JSON");
    let step = &mut kept["steps"][0];
    // What others did meanwhile is not to be in the way.
    (step["other_load"], step["steal"]) = (json!(0.0), json!(0.0));
    step["us_per_op"] = json!(10_000.0);
    std::fs::write(file, kept.to_string()).expect("written");
}

/// Six repeats near the ceiling, and one step with an outage.
fn measured(results: &Results) -> Vec<Summary> {
    let calibration = results.dir().join("calibration");
    low_ceiling(&calibration);
    let server = canned(Vec::new());
    let words = format!(
        "point-select --tables 8 --clients 1,4 --warmup 0 --time 300ms --repeat 6 --label steady \
         --calibration {}",
        calibration.display()
    );
    run_into(results, server.port(), &words);
    let stall = Action::StallAll(Duration::from_millis(1200));
    let deadlock = Action::error(1213, "40001", "Deadlock found");
    let faults = [(At::Statement(2000), stall), (At::EachStatement(900), deadlock)];
    let server = canned(faults.map(|(at, what)| Fault::new(at, what).only("WHERE id=")).to_vec());
    let words = "point-select --tables 8 --clients 4 --warmup 0 --time 4s --interval 100ms --label \
                 dented --on-error reconnect --op-timeout 300ms";
    run_into(results, server.port(), words);
    results.summaries()
}

#[test]
fn verdicts_ceilings_intervals_and_outages_of_real_steps_are_on_the_page() {
    let results = Results::new();
    let summaries = measured(&results);
    let (steady, dented): (Vec<&Summary>, Vec<&Summary>) =
        summaries.iter().partition(|summary| summary.label == "steady");
    assert_eq!((steady.len(), dented.len()), (12, 1));

    let page = results.dir().join("page");
    let (from, to) = (results.dir().to_str().expect("UTF-8"), page.to_str().expect("UTF-8"));
    let ended = loadgen(&["report", from, "--format", "html", "-o", to]);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(ended.stdout.is_empty(), "the page goes into the file alone");
    let html = std::fs::read_to_string(&page).expect("written");
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));

    for summary in &steady {
        let verdict = summary.verdict.as_ref().expect("it looked at itself");
        // On cores that other tests keep full it is the second reason.
        assert!(verdict.kind >= VerdictKind::ClientBound, "{verdict:?}");
        assert!(verdict.reasons.iter().any(|reason| reason.code == "near_ceiling"), "{verdict:?}");
        assert!(html.contains(verdict.kind.name()), "{verdict:?}");
    }
    assert!(html.matches("<u>").count() >= 2, "doubtful cells are underlined");

    assert_eq!(html.matches("<small title=\"6 runs: ").count(), 2, "both cells have intervals");
    assert!(html.contains("<path class=\"i\""), "so have their points");

    // On a busy machine there may be short ones besides.
    let outages = &dented[0].outages;
    assert!(outages.iter().any(|outage| outage.gap_s > 0.5), "{outages:?}");
    assert!(html.contains(&format!("point-select: outages, {} in 13 steps", outages.len())));
    for outage in outages {
        assert!(html.contains(&format!("<td>{:.2}</td>", outage.gap_s)), "{outage:?}");
    }
    let shaded = html.matches("<rect class=\"outage\"").count();
    assert_eq!(shaded, 2 * outages.len(), "each in the chart of the rate and in that of p99");
    let deadlocks = dented[0].totals.errors.iter().find(|error| error.code == Some(1213));
    let deadlocks = deadlocks.expect("some");
    let row = format!(
        "<td class=\"text\">1213</td><td>{}</td><td class=\"text\">4</td>",
        deadlocks.count
    );
    assert!(html.contains(&row), "{row}");
}

#[test]
fn a_file_has_what_standard_output_would_have() {
    let results = Results::new();
    let server = canned(Vec::new());
    let words = "point-select --tables 8 --clients 1,2 --warmup 0 --time 200ms";
    run_into(&results, server.port(), words);
    let from = results.dir().to_str().expect("UTF-8");
    for format in ["text", "markdown", "csv", "json", "html", "svg"] {
        let shown = loadgen(&["report", from, "--format", format]);
        assert!(shown.status.success() && !shown.stdout.is_empty(), "{format}");
        let file = results.dir().join(format);
        // What was there before is replaced.
        std::fs::write(&file, "before".repeat(1 << 16)).expect("written");
        let to = file.to_str().expect("UTF-8");
        let written = loadgen(&["report", from, "--format", format, "--output", to]);
        assert!(written.status.success() && written.stdout.is_empty(), "{format}");
        assert!(std::fs::read(&file).expect("there") == shown.stdout, "{format}");
    }
    let nowhere = results.dir().join("none/page.html");
    let refused = loadgen(&["report", from, "-o", nowhere.to_str().expect("UTF-8")]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("none/page.html"), "{said}");
}
