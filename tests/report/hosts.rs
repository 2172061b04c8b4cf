//! The hosts of the clients, as the report shows them.

use super::{json, report};
use crate::common::summaries::step;
use loadgen::report::{Layout, Options};
use loadgen::summary::{ClientHost, HostClock, Outcome, Summary, VerdictKind};

fn host(rank: u32, ops: u64) -> ClientHost {
    ClientHost {
        rank,
        name: format!("c{rank} \u{1b}[2J"),
        clients: 4,
        threads: 2,
        ops,
        us_per_op: Some(12.34),
        rtt_us: Some(80.6),
        verdict: Some(VerdictKind::ClientBound),
        clock: HostClock { error_us: 25.27, ..HostClock::default() },
        ..ClientHost::default()
    }
}

fn steps() -> Vec<Summary> {
    let mut steps = vec![step(1, "a", 8, 100.0), step(2, "b", 8, 100.0)];
    steps[0].measured_s = 10.0;
    steps[0].hosts = vec![host(1, 5000), host(2, 4000)];
    steps
}

#[test]
fn each_host_is_a_line_with_its_part() {
    let laid = Options { layout: Layout::Hosts, ..Options::default() };
    let text = report(&steps(), &laid);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "point-select: hosts, 2 in 2 steps");
    let words: Vec<&str> = lines[3].split_whitespace().collect();
    assert_eq!(
        words[3..11],
        ["4", "2", "400", "12.3", "-", "81", "25.3", "client-bound"],
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");
    let rows = &json(&steps(), &laid)["rows"];
    assert_eq!((&rows[0]["rank"], &rows[0]["ops_per_s"]), (&1.into(), &500.0.into()));
    assert_eq!((&rows[1]["verdict"], &rows[1]["label"]), (&"client-bound".into(), &"a".into()));
    let mut unknown = steps();
    unknown[0].hosts[0].verdict = None;
    assert_eq!(json(&unknown, &laid)["rows"][0]["verdict"], serde_json::Value::Null);
    let mut slow = steps();
    slow[0].hosts[1].ops = 4;
    let text = report(&slow, &laid);
    assert!(text.contains(" 0.400 "), "{text}");
    let none = report(&steps()[1..], &laid);
    assert_eq!(none, "point-select: hosts, 0 in 1 step\n");
    let mut lost = steps();
    lost.truncate(1);
    lost[0].outcome = Outcome::Aborted;
    assert!(report(&lost, &laid).starts_with("point-select: hosts, 2 in 1 step\n"));
    let mut gone = steps();
    gone[0].hosts[1].ops = 0;
    assert_eq!(json(&gone, &laid)["rows"][1]["ops_per_s"], serde_json::Value::Null);
}

#[test]
fn caption_tells_the_hosts_where_there_are_several() {
    let caption = |steps: &[Summary]| report(steps, &Options::default());
    assert!(caption(&steps()[..1]).contains("2 client hosts"));
    assert!(!caption(&steps()[1..]).contains("client host"));
}
