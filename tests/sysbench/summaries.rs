//! The summary that a run leaves beside its text, and an import of the text: one run, one truth.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use super::programs::{Place, Program, replaced};
use crate::common::databases::SANDBOXES;
use crate::common::{query, skipped};

/// A place of loadgen's; none where sysbench itself is in its place.
pub(crate) fn place() -> Option<Place<'static>> {
    if replaced() {
        skipped("sysbench leaves no summary");
        return None;
    }
    Some(Place::new(Program::Ours, &SANDBOXES[0].1))
}

/// A place of loadgen's on every server.
pub(crate) fn places() -> Vec<Place<'static>> {
    let first = place().into_iter();
    let others = SANDBOXES.iter().skip(1).filter(|_| !replaced());
    first.chain(others.map(|(_, sandbox)| Place::new(Program::Ours, sandbox))).collect()
}

/// What a run printed, and left.
pub(crate) struct Kept {
    pub(crate) text: String,
    pub(crate) summary: Value,
}

impl Kept {
    /// Runs a line to its end, with a summary in the directory `out`.
    pub(crate) fn of(place: &Place, line: &str) -> Kept {
        let before = summaries(place).len();
        let text = place.well(&format!("{line} --loadgen-out={{dir}}/out run")).stdout;
        let mut all = summaries(place);
        assert_eq!(all.len(), before + 1, "{line} leaves a summary");
        Kept { text, summary: all.pop().expect("there") }
    }

    pub(crate) fn totals(&self, name: &str) -> u64 {
        self.summary["totals"][name].as_u64().unwrap_or_else(|| panic!("no count {name}"))
    }

    fn float(&self, path: &str) -> f64 {
        self.summary.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path}"))
    }

    /// The words behind a key of the report.
    fn words(&self, key: &str) -> Vec<&str> {
        let mut lines = self.text.lines().rev().map(str::trim);
        let line = lines.find_map(|line| line.strip_prefix(key));
        let line = line.unwrap_or_else(|| panic!("no {key} in {}", self.text));
        line.split_whitespace().collect()
    }

    fn count(&self, key: &str) -> u64 {
        self.words(key)[0].parse().expect("a count")
    }

    /// The rate of a line of the report, or its only number.
    fn printed(&self, key: &str) -> f64 {
        let words = self.words(key);
        let word = words.get(1).filter(|word| word.starts_with('(')).unwrap_or(&words[0]);
        word.trim_matches(['(', ')']).parse().expect("a number")
    }

    fn is_warned(&self, code: &str) -> bool {
        let all = self.summary["warnings"].as_array().expect("a list");
        all.iter().any(|warning| warning["code"] == code)
    }

    /// Asserts that the text and the summary are of one run.
    pub(crate) fn agrees(&self) {
        let pairs = [
            ("transactions:", "ops"),
            ("total:", "statements"),
            ("ignored errors:", "retried"),
            ("reconnects:", "reconnects"),
        ];
        for (key, name) in pairs {
            assert_eq!(self.count(key), self.totals(name), "{name} of {}", self.text);
        }
        let numbers = [
            ("transactions:", self.float("/totals/tps")),
            ("queries:", self.float("/totals/qps")),
            ("avg:", self.float("/latency/service/mean_us") / 1e3),
            ("min:", self.float("/latency/service/min_us") / 1e3),
            ("max:", self.float("/latency/service/max_us") / 1e3),
        ];
        for (key, exact) in numbers {
            let printed = self.printed(key);
            assert!((printed - exact).abs() <= 0.01, "{key} {printed}, and {exact}");
        }
        let intervals = self.summary["timeline"].as_array().expect("a list");
        let measured = intervals.iter().filter(|interval| interval["phase"] == "measure");
        let retried: u64 = measured.map(|of| of["retried"].as_u64().expect("a count")).sum();
        assert_eq!(retried, self.totals("retried"));
    }
}

/// The summaries of a place, the oldest first.
pub(crate) fn summaries(place: &Place) -> Vec<Value> {
    let files = std::fs::read_dir(place.dir().join("out")).into_iter().flatten();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(path).expect("readable");
        serde_json::from_str::<Value>(&text).expect("JSON")
    };
    let all = files.map(|file| file.expect("there").path());
    let json = all.filter(|path| path.extension().is_some_and(|kind| kind == "json")).map(read);
    let mut all: Vec<Value> = json.filter(|of| of["schema"] == "loadgen.summary/1").collect();
    all.sort_by_key(|of| of["started_at"].as_str().map(str::to_owned));
    all
}

/// Runs loadgen's own command in a place.
pub(crate) fn loadgen(place: &Place, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    let words = place.filled(words);
    command.args(words.split_whitespace()).current_dir(place.dir());
    command.output().expect("it runs")
}

pub(crate) fn status(output: &Output) -> i32 {
    output.status.code().expect("it ended")
}

#[test]
fn summary_tells_a_rate_that_is_not_kept_when_events_wait_at_the_end() {
    let Some(place) = place() else { return };
    place.well("oltp_read_write {at} {t} prepare");
    // 100,000 statements a second over one connection.
    let kept = Kept::of(&place, "oltp_read_write {at} {t} --rate=5000 --time=2");
    assert_eq!(kept.count("transactions:"), kept.totals("ops"));
    let waited = kept.totals("intended") - kept.totals("ops");
    assert!(waited > 0);
    assert_eq!((kept.totals("backlog"), kept.totals("abandoned")), (waited, 0));
    assert!(kept.is_warned("target_not_sustained"));
    // Those that waited are among the times at their age.
    let response = kept.summary["latency"]["response"]["count"].as_u64();
    assert_eq!(response, Some(kept.totals("intended")));
    let gate = |gate: &str| status(&loadgen(&place, &format!("report {{dir}}/out --gate {gate}")));
    assert_eq!([gate("p99<20ms"), gate("errors==0")], [99, 0]);
}

#[test]
fn summary_is_warned_of_empty_answers_when_the_table_size_is_not_prepare_s() {
    let Some(place) = place() else { return };
    place.well("oltp_point_select {at} --table-size=100 prepare");
    let right = Kept::of(&place, "oltp_point_select {at} --table-size=100 --events=50");
    assert!(!right.is_warned("wrong_answers"));
    let wrong = Kept::of(&place, "oltp_point_select {at} --table-size=100000 --events=50");
    assert!(wrong.is_warned("wrong_answers"), "{}", wrong.summary["warnings"]);
    wrong.agrees();
}

#[test]
fn text_summary_and_import_agree_when_events_begin_again() {
    for place in places() {
        agrees_with_its_import(&place);
    }
}

fn agrees_with_its_import(place: &Place) {
    place.well("oltp_read_write {at} --tables=1 --table-size=20 prepare");
    let kept = Kept::of(
        place,
        "oltp_read_write {at} --tables=1 --table-size=20 --threads=8 --events=600 --time=0 \
         --mysql-ignore-errors=1213,1205,1020,1062",
    );
    kept.agrees();
    assert!(kept.totals("retried") > 0, "no deadlock: {}", kept.text);
    assert_eq!(kept.summary["totals"]["errors"], Value::Array(Vec::new()), "all were done");
    assert_eq!(kept.summary["latency"]["failed"]["count"], 0);
    assert!(kept.is_warned("retried") && !kept.is_warned("errors"));
    assert_eq!(status(&loadgen(place, "report {dir}/out --gate errors==0")), 0);

    std::fs::write(place.dir().join("text.txt"), &kept.text).expect("written");
    let words = "import sysbench {dir}/text.txt --workload read-write --label text --out {dir}/out";
    let imported = loadgen(place, words);
    assert_eq!(status(&imported), 0, "{}", String::from_utf8_lossy(&imported.stderr));
    for metric in ["qps", "tps", "errors", "retried"] {
        let words = format!("report {{dir}}/out --format json --metric {metric}");
        let report = loadgen(place, &words);
        let json: Value = serde_json::from_slice(&report.stdout).expect("JSON");
        let cells = cells(&json);
        assert_eq!(cells.len(), 2, "{metric}: {json}");
        assert!((cells[0] - cells[1]).abs() <= 0.01, "{metric}: {cells:?}");
    }
}

/// The numbers of a report's only column, a label each.
fn cells(report: &Value) -> Vec<f64> {
    let lines = report["tables"][0]["lines"].as_array().expect("a list");
    let value = |line: &Value| line["cells"][0]["value"].as_f64().expect("a number");
    lines.iter().map(value).collect()
}

/// Makes `sbtest1` answer each point select after so long.
fn slow_tables(place: &Place, ms: u32) {
    place.well("oltp_common {at} --tables=1 --table-size=100 prepare");
    for sql in [
        "RENAME TABLE {db}.sbtest1 TO {db}.rows1",
        "CREATE VIEW {db}.sbtest1 AS SELECT * FROM {db}.rows1 WHERE SLEEP({s}) = 0",
    ] {
        let sql = sql.replace("{s}", &(f64::from(ms) / 1e3).to_string());
        query(place.db.sandbox, &place.filled(&sql));
    }
}

/// An event of twenty point selects.
const TWENTY: &str = "oltp_read_only {at} --tables=1 --table-size=100 --skip_trx \
                      --range_selects=off --point_selects=20";

#[test]
fn interval_and_checkpoint_lines_count_statements_when_their_event_goes_on() {
    let Some(place) = place() else { return };
    slow_tables(&place, 200);
    let line = format!("{TWENTY} --time=2 --report-interval=1 --report-checkpoints=1 run");
    let text = place.well(&line).stdout;
    let first = text.lines().find(|line| line.starts_with("[ 1s ] thds")).expect("an interval");
    let number = |line: &str, key: &str| -> f64 {
        let rest = line.split_once(key).expect("there").1;
        rest.split_whitespace().next().expect("a number").parse().expect("a number")
    };
    // An event takes 4 s at least.
    assert!(number(first, " tps: ") < 0.005, "{first}");
    assert!(number(first, " qps: ") > 0.0, "{first}");
    let checkpoint = text.split_once("Checkpoint report:").expect("one").1;
    assert!(number(checkpoint, "read:") > 0.0, "{checkpoint}");
    assert!(number(checkpoint, "transactions:") < 0.5, "{checkpoint}");
}

#[test]
fn text_and_summary_agree_when_events_outlast_the_warm_up() {
    let Some(place) = place() else { return };
    slow_tables(&place, 30);
    let line = format!("{TWENTY} --threads=3 --warmup-time=1 --time=2");
    let kept = Kept::of(&place, &line);
    kept.agrees();
    assert_eq!(kept.count("transactions:"), kept.float("/latency/service/count") as u64);
}
