//! Outputs of sysbench beside what loadgen measured: imported, reported and compared through the command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::summaries::step;
use loadgen::summary::{Store, load};
use serde_json::Value;

struct Text<'a> {
    threads: u32,
    tps: f64,
    percentile: &'a str,
    /// Above the header.
    before: &'a str,
}

const USUAL: Text =
    Text { threads: 8, tps: 500.0, percentile: "95th percentile:  9.91", before: "" };

impl Text<'_> {
    /// What sysbench 1.0 prints of a second of oltp_read_only.
    fn printed(&self) -> String {
        let Text { threads, tps, percentile, before } = self;
        let ops = *tps as u64;
        let (reads, others, total) = (14 * ops, 2 * ops, 16 * ops);
        format!(
            "{before}sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\n\
             Running the test with following options:\nNumber of threads: {threads}\n\
             Initializing random number generator from current time\n\n\n\
             Initializing worker threads...\n\nThreads started!\n\n\
             SQL statistics:\n    queries performed:\n        \
             read:                            {reads}\n        write:                           0\n        \
             other:                           {others}\n        total:                           {total}\n    \
             transactions:                        {ops} ({tps:.2} per sec.)\n    \
             queries:                             {total} ({:.2} per sec.)\n    \
             ignored errors:                      0      (0.00 per sec.)\n    \
             reconnects:                          0      (0.00 per sec.)\n\n\
             General statistics:\n    total time:                          1.0000s\n    \
             total number of events:              {ops}\n\n\
             Latency (ms):\n         min:    1.00\n         avg:    2.00\n         max:   30.00\n        \
             {percentile}\n         sum:    1000.00\n\n\
             Threads fairness:\n    events (avg/stddev):           62.5000/1.00\n    \
             execution time (avg/stddev):   0.1250/0.00\n\n",
            16.0 * tps
        )
    }
}

struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).expect("written");
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
        command.args(args).current_dir(self.0.path()).output().expect("it runs")
    }

    /// The standard output of a command that does well.
    fn well(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {error}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// The exit status and the standard error of a command.
    fn ill(&self, args: &[&str]) -> (i32, String) {
        let output = self.run(args);
        let error = String::from_utf8(output.stderr).expect("UTF-8");
        (output.status.code().expect("it exits"), error)
    }

    /// Imports a text under a label.
    fn import(&self, label: &str, text: &Text) {
        let name = format!("{label}-{}-{}.txt", text.threads, text.tps);
        self.file(&name, text.printed());
        self.well(&["import", "sysbench", &name, "--label", label]);
    }

    /// Adds a step that loadgen measured.
    fn measure(&self, order: u32, label: &str, clients: u32, qps: f64) {
        let mut step = step(order, label, clients, qps);
        "read-only".clone_into(&mut step.workload.name);
        let store = Store::open(&self.path("results")).expect("a directory");
        store.write(&step).expect("written");
    }

    fn imported(&self) -> Vec<Value> {
        let mut found: Vec<(PathBuf, Value)> = fs::read_dir(self.path("results"))
            .expect("a directory")
            .map(|entry| entry.expect("an entry").path())
            .map(|path| {
                (
                    path.clone(),
                    serde_json::from_slice(&fs::read(path).expect("read")).expect("JSON"),
                )
            })
            .filter(|(_, json): &(_, Value)| json["schema"] == "loadgen.imported/1")
            .collect();
        found.sort_by(|one, other| one.0.cmp(&other.0));
        found.into_iter().map(|(_, json)| json).collect()
    }
}

fn schema() -> jsonschema::Validator {
    let text = include_str!("../../docs/imported.schema.json");
    jsonschema::validator_for(&serde_json::from_str(text).expect("JSON")).expect("a schema")
}

#[test]
fn flags_tell_what_a_text_does_not_and_the_file_follows_the_schema() {
    let desk = Desk::new();
    desk.file("old.txt", USUAL.printed());
    let output = desk.run(&[
        "import",
        "sysbench",
        "old.txt",
        "--label",
        "5.1",
        "--workload",
        "oltp_read_only",
        "--tables",
        "8",
        "--rows",
        "1M",
        "--distribution",
        "special",
        "--server-version",
        "5.1.36",
        "--started-at",
        "2009-07-14T12:00:00Z",
        "--note",
        "host=blue",
        "--out",
        "results",
    ]);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success() && output.stdout.is_empty(), "{said}");
    for word in [
        "old.txt run 1 (sysbench 1.0.20)",
        "read-only at 8 clients",
        "QPS 8000",
        "loadgen report results/",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let found = desk.imported();
    let [run] = found.as_slice() else { panic!("{found:?}") };
    assert!(schema().is_valid(run), "{:?}", schema().validate(run).err());
    assert_eq!((&run["tables"], &run["rows"]), (&8.into(), &1_000_000.into()));
    assert_eq!((&run["workload"], &run["server_version"]), (&"read-only".into(), &"5.1.36".into()));
    assert_eq!(
        (&run["started_at"], &run["notes"]["host"]),
        (&"2009-07-14T12:00:00Z".into(), &"blue".into())
    );
    assert_eq!(run["rate"], Value::Null);
    let checksum = run["source"]["sha256"].as_str().expect("a checksum");
    assert!(checksum.len() == 64 && checksum.bytes().all(|b| b.is_ascii_hexdigit()), "{checksum}");
}

#[test]
fn measured_and_imported_rows_stand_in_one_table() {
    let desk = Desk::new();
    desk.measure(1, "new", 8, 20_000.0);
    desk.measure(2, "new", 64, 90_000.0);
    desk.import("old", &USUAL);
    let text = desk.well(&["report", "results", "--notes"]);
    let row = |label: &str| text.lines().find(|line| line.ends_with(label)).map(str::to_owned);
    let old = row("old *").unwrap_or_else(|| panic!("{text}"));
    assert_eq!(old.split_whitespace().collect::<Vec<_>>(), ["8000", "-", "old", "*"], "{text}");
    assert!(row("new").is_some_and(|row| row.starts_with("20000   90000")), "{text}");
    assert!(text.contains("sysbench 1.0.20") && text.contains(": old-8-500.txt"), "{text}");

    let csv = desk.well(&["report", "results", "--format", "csv"]);
    let old = csv.lines().find(|line| line.contains(",old,")).expect("a row");
    assert!(
        old.starts_with("read-only,old,8,,qps,statements/s,8000,8000,8000,1,,,,,,,,,"),
        "{old}"
    );
    assert!(old.contains(",imported,"), "{old}");

    let json: Value =
        serde_json::from_str(&desk.well(&["report", "results", "--format", "json"])).expect("JSON");
    let lines = json["tables"][0]["lines"].as_array().expect("lines");
    let old = lines.iter().find(|line| line["label"] == "old").expect("a line");
    assert_eq!(old["cells"][0]["imported_from"][0], "old-8-500.txt");
    assert_eq!((&old["cells"][1], &old["conditions"]["tables"]), (&Value::Null, &Value::Null));

    for layout in ["list", "peak", "relative", "per-op", "delta", "overhead", "settings"] {
        desk.well(&["report", "results", "--layout", layout]);
    }
    for format in ["markdown", "html", "svg", "bencher", "gha"] {
        desk.well(&["report", "results", "--format", format]);
    }
    desk.well(&["report", "results", "--label", "old", "--spread"]);
    desk.well(&["report", "results", "--label", "old", "--format", "html"]);
}

#[test]
fn a_percentile_is_there_only_where_it_was_printed() {
    let desk = Desk::new();
    desk.import("old", &USUAL);
    desk.import("older", &Text { threads: 4, percentile: "percentile stats:  disabled", ..USUAL });
    let text = desk.well(&["report", "results", "--metric", "p95"]);
    assert!(text.contains("9.91"), "{text}");
    let (status, error) = desk.ill(&["report", "results", "--metric", "p99"]);
    assert!(status == 4 && error.contains("p99") && error.contains("p95"), "{error}");
    let (status, error) = desk.ill(&["report", "results", "--metric", "iops"]);
    assert!(status == 4 && error.contains("iops"), "{error}");
    for metric in ["mean", "min", "max", "tps", "errors", "seconds"] {
        desk.well(&["report", "results", "--metric", metric]);
    }
    desk.measure(1, "new", 8, 20_000.0);
    let told = desk.well(&["report", "results", "--metric", "p99", "--format", "json"]);
    assert!(told.contains("\"not_printed\""), "{told}");
    let text = desk.well(&["report", "results", "--metric", "p99"]);
    let (status, error) =
        desk.ill(&["compare", "results", "--baseline", "old", "--new", "new", "--metric", "p99"]);
    assert!(status == 4 && error.contains("p99"), "{error}");
    assert!(
        text.lines().any(|line| line.trim_start().starts_with('-') && line.contains("old")),
        "{text}"
    );
}

#[test]
fn a_comparison_decides_by_imported_repeats() {
    let desk = Desk::new();
    for repeat in 0..6_u32 {
        desk.import("old", &Text { tps: 500.0 + f64::from(repeat), ..USUAL });
        desk.measure(repeat, "new", 8, 20_000.0 + f64::from(repeat));
    }
    let text = desk.well(&["compare", "results", "--baseline", "old", "--new", "new"]);
    assert!(text.contains("better"), "{text}");
    assert!(desk.well(&["report", "results", "--format", "json"]).contains("\"imported\""));
    let one = Desk::new();
    one.import("old", &USUAL);
    one.measure(1, "new", 8, 20_000.0);
    let text = one.well(&["compare", "results", "--baseline", "old"]);
    assert!(text.contains("too few"), "{text}");
}

#[test]
fn known_conditions_of_imported_runs_count() {
    let desk = Desk::new();
    let before = "sysbench oltp_read_only --tables=3 --table-size=77 --threads=8 run\n";
    desk.import("old", &Text { before, ..USUAL });
    desk.measure(1, "new", 8, 20_000.0);
    let (status, error) = desk.ill(&["compare", "results"]);
    assert!(status == 4 && error.contains("rows") && error.contains("77"), "{error}");
    desk.well(&["compare", "results", "--force"]);
    let text = desk.well(&["report", "results"]);
    assert!(text.contains("Differs: ") && text.contains("rows"), "{text}");

    desk.import("old", &Text { tps: 501.0, before: &before.replace("77", "78"), ..USUAL });
    let (status, error) = desk.ill(&["report", "results"]);
    assert!(status == 4 && error.contains("77") && error.contains("78"), "{error}");
    let desk = Desk::new();
    desk.import("new", &USUAL);
    desk.measure(1, "new", 8, 20_000.0);
    let (status, error) = desk.ill(&["report", "results"]);
    assert!(status == 4 && error.contains("'new'"), "{error}");
}

#[test]
fn runs_are_repeats_of_each_other_only_when_they_did_the_same() {
    struct Case {
        commands: [&'static str; 2],
        /// What is named; none where they are repeats.
        differs: Option<&'static str>,
    }
    for Case { commands, differs } in [
        Case { commands: ["--range-size=10", "--range-size=10000"], differs: Some("range_size") },
        Case { commands: ["--range-size=10", "--tables=1"], differs: Some("range_size") },
        Case { commands: ["--point-selects=1", "--point-selects=10"], differs: Some("point_sele") },
        Case { commands: ["--skip-trx", "--skip-trx=off"], differs: Some("skip_trx") },
        Case { commands: ["--tables=4", "--time=10"], differs: Some("tables") },
        Case { commands: ["--db-ps-mode=disable", "--time=10"], differs: Some("ps_mode") },
        Case { commands: ["--mysql-ssl=on", "--mysql-ssl=off"], differs: Some("mysql_ssl") },
        Case { commands: ["--my-own=1", "--my-own=2"], differs: Some("my_own") },
        Case { commands: ["--range-size=100", "--time=10 --percentile=99"], differs: None },
    ] {
        let desk = Desk::new();
        let [one, other] = commands.map(|of| format!("$ sysbench oltp_read_only {of} run\n"));
        desk.import("old", &Text { before: &one, ..USUAL });
        desk.import("old", &Text { tps: 501.0, before: &other, ..USUAL });
        let (status, error) = desk.ill(&["report", "results"]);
        assert_eq!(status, if differs.is_some() { 4 } else { 0 }, "{commands:?}: {error}");
        assert!(error.contains(differs.unwrap_or_default()), "{commands:?}: {error}");
        for run in desk.imported() {
            assert!(schema().is_valid(&run), "{:?}", schema().validate(&run).err());
        }
    }
    let [one, other] =
        ["10", "10000"].map(|n| format!("sysbench oltp_read_only --range-size={n} run\n"));
    // Whose command line is not known may be one of them.
    let desk = Desk::new();
    for (tps, before) in [(500.0, ""), (501.0, &one), (502.0, ""), (503.0, &other)] {
        desk.import("old", &Text { tps, before, ..USUAL });
    }
    let (status, error) = desk.ill(&["report", "results"]);
    assert!(status == 4 && error.contains("range_size"), "{error}");
    // Under two labels they are not compared either.
    let desk = Desk::new();
    desk.import("old", &Text { before: &one, ..USUAL });
    desk.import("new", &Text { tps: 501.0, before: &other, ..USUAL });
    let (status, error) = desk.ill(&["compare", "results"]);
    assert!(status == 4 && error.contains("range_size"), "{error}");
    // Statements tell it, too.
    let desk = Desk::new();
    desk.import("old", &USUAL);
    let text = USUAL.printed().replace(" 1000\n", " 0\n").replace("8000", "7000");
    desk.file("other.txt", text);
    desk.well(&["import", "sysbench", "other.txt", "--label", "old"]);
    let (status, error) = desk.ill(&["report", "results"]);
    assert!(status == 4 && error.contains("14/0/2") && error.contains("14/0/0"), "{error}");
}

#[test]
fn a_measured_run_is_not_compared_with_an_import_that_did_other_work() {
    for (size, status) in [("10", 4), ("100", 0)] {
        let desk = Desk::new();
        let before = format!("$ sysbench oltp_read_only --range-size={size} run\n");
        let told = ["import", "sysbench", "old.txt", "--label", "old", "--tables", "8", "--rows"];
        let mut step = step(1, "new", 8, 20_000.0);
        "read-only".clone_into(&mut step.workload.name);
        step.workload.options = [("range_size".to_owned(), 100)].into();
        step.workload.distribution = "special".to_owned();
        (step.plan.tables, step.plan.rows) = (8, 1000);
        Store::open(&desk.path("results")).expect("a directory").write(&step).expect("written");
        desk.file("old.txt", Text { before: &before, ..USUAL }.printed());
        desk.well(&[&told[..], &["1000"]].concat());
        let (found, error) = desk.ill(&["compare", "results"]);
        assert_eq!((found, error.contains("option range_size")), (status, status == 4), "{error}");
    }
}

#[test]
fn a_file_of_a_collector_of_logs_is_imported_with_its_intervals() {
    let desk = Desk::new();
    let text = format!(
        "$ sysbench oltp_read_only --tables=4 --table-size=1000 prepare\n\
         $ sysbench oltp_read_only \\\n>   --tables=2 --table-size=77 \\\n>   --threads=8 run\n{}",
        USUAL.printed().replace(
            "SQL statistics:",
            "[ 1s ] thds: 8 tps: 500.00 qps: 8000.00 (r/w/o: 7000.00/0.00/1000.00) lat (ms,95%): 9.91 \
             err/s: 0.00 reconn/s: 0.00\nSQL statistics:"
        )
    );
    let kubectl: String =
        text.lines().map(|line| format!("2026-01-02T03:04:05.678901234Z {line}\r\n")).collect();
    desk.file("bench.log", kubectl);
    desk.well(&["import", "sysbench", "bench.log"]);
    let found = desk.imported();
    let [run] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((&run["tables"], &run["rows"]), (&2.into(), &77.into()));
    assert_eq!(run["timeline"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&run["options"]["range_size"], &run["workload"]),
        (&"100".into(), &"read-only".into())
    );
}

#[test]
fn what_cannot_be_imported_is_named_and_nothing_is_written() {
    let desk = Desk::new();
    let usual = USUAL.printed();
    desk.file("good.txt", &usual);
    desk.file("cut.txt", &usual[..usual.find("Latency").expect("there")]);
    desk.file("odd.txt", usual.replace("Number of threads: 8", "Number of threads: -8"));
    desk.file("unknown.txt", usual.replace("7000", "5000").replace("8000", "6000"));
    desk.file("garbage.bin", b"\x7fELF\0\xff\xfe\0\x01".repeat(100));
    desk.file("empty.txt", "");
    for (args, status, words) in [
        (&["cut.txt"][..], 4, &["cut.txt", "line ", "cut off"][..]),
        (&["odd.txt"], 4, &["odd.txt: line 4", "number of threads"]),
        (&["good.txt", "cut.txt"], 4, &["cut.txt"]),
        (&["unknown.txt"], 2, &["unknown.txt: line 4", "--workload"]),
        (&["cut.txt", "good.txt", "empty.txt"], 4, &["cut.txt", "empty.txt"]),
        (&["none.txt", "cut.txt"], 2, &["none.txt", "cut.txt"]),
        (&["garbage.bin"], 4, &["garbage.bin", "no text"]),
        (&["empty.txt"], 4, &["empty.txt", "it is empty"]),
        (&["."], 2, &["it is a directory"]),
        (&["none.txt"], 2, &["none.txt", "No such file"]),
        (&["good.txt", "good.txt"], 4, &["the same run", "count twice"]),
        (&["good.txt", "--rows", "0"], 2, &["--rows"]),
    ] {
        let (found, error) = desk.ill(&[&["import", "sysbench"], args].concat());
        assert_eq!(found, status, "{args:?}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{args:?}: {error}");
        assert!(!desk.path("results").exists(), "{args:?}");
    }
    // What is whole in a file is taken.
    desk.file("half.txt", usual.clone() + &usual[..usual.len() / 2]);
    let output = desk.run(&["import", "sysbench", "half.txt", "good.txt"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.contains("half.txt"), "{error}");
    assert_eq!(desk.imported().len(), 2);
    let (status, error) = desk.ill(&["import", "sysbench", "good.txt"]);
    assert!(status == 4 && error.contains(" results/"), "{error}");
}

/// A second of one read an operation, which several workloads have.
fn one_read() -> String {
    let reads = USUAL.printed().replace("7000", "500").replace("8000", "500");
    reads.replace("other:                           1000", "other:                           0")
}

#[test]
fn a_run_that_names_no_workload_is_that_of_its_file_s_name_when_its_statements_fit() {
    let desk = Desk::new();
    desk.file("oltp_point_select-1.txt", one_read());
    desk.file("oltp_update_index-1.txt", one_read().replace("1.0000s", "1.0001s"));
    let output = desk.run(&["import", "sysbench", "oltp_point_select-1.txt"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(desk.imported()[0]["workload"], "point-select");
    let (status, error) = desk.ill(&["import", "sysbench", "oltp_update_index-1.txt"]);
    assert_eq!(status, 2, "it has a read an operation, and no write: {error}");
    assert!(["point-select", "random-points", "random-ranges"].iter().all(|of| error.contains(of)));
}

#[test]
fn a_run_with_ignored_errors_is_a_read_write_one_when_each_attempt_read_14_rows() {
    let desk = Desk::new();
    // 500 transactions after 20 attempts that failed in a write.
    let text = USUAL.printed().replace("7000", "7280").replace("8000", "10300");
    let text =
        text.replace("write:                           0", "write:                           2010");
    let text = text
        .replace("other:                           1000", "other:                           1010");
    let text = text.replace(
        "ignored errors:                      0",
        "ignored errors:                      20",
    );
    desk.file("errors.txt", text.replace("8000.00 per", "10300.00 per"));
    let output = desk.run(&["import", "sysbench", "errors.txt"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(desk.imported()[0]["workload"], "read-write");
}

/// The usual text with so many intervals.
fn with_intervals(count: usize) -> String {
    let interval = "[ 1s ] thds: 8 tps: 500.00 qps: 8000.00 (r/w/o: 7000.00/0.00/1000.00) \
                    lat (ms,95%): 9.91 err/s: 0.00 reconn/s: 0.00\n";
    let started = "Threads started!\n\n";
    USUAL.printed().replace(started, &(started.to_owned() + &interval.repeat(count)))
}

#[test]
fn a_run_that_is_there_twice_counts_once_when_it_has_intervals() {
    let desk = Desk::new();
    let (text, other) = (with_intervals(1), with_intervals(2));
    desk.file("twice.txt", text.repeat(2));
    let output = desk.run(&["import", "sysbench", "twice.txt"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.contains("twice.txt: line"), "{error}");
    assert_eq!(desk.imported().len(), 1);
    // Also in a file with others, whatever the label, and in two files of one command.
    desk.file("all.txt", text + &other);
    let output = desk.run(&["import", "sysbench", "all.txt", "--label", "all"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.contains("all.txt: line 4: the same run"), "{error}");
    assert_eq!(desk.imported().len(), 2);
    desk.file("copy.txt", other + "\n");
    let (status, error) = desk.ill(&["import", "sysbench", "copy.txt"]);
    assert!(status == 4 && error.contains("copy.txt: the same run"), "{error}");
    desk.file("new.txt", with_intervals(3));
    desk.file("news.txt", with_intervals(3) + &with_intervals(4));
    desk.well(&["import", "sysbench", "new.txt", "news.txt"]);
    assert_eq!(desk.imported().len(), 4);
}

#[test]
fn import_that_fails_half_way_leaves_nothing_and_can_be_repeated() {
    let desk = Desk::new();
    desk.file("short.txt", USUAL.printed());
    desk.file("long.txt", with_intervals(3000));
    let words = ["import", "sysbench", "short.txt", "long.txt"];
    // No file may have more than 400 blocks: the summary of the long run has a MiB.
    let script = "trap '' XFSZ; ulimit -f 400; exec \"$0\" \"$@\"";
    let mut limited = Command::new("sh");
    limited.args(["-c", script, env!("CARGO_BIN_EXE_loadgen")]).args(words);
    let output = limited.current_dir(desk.0.path()).output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("nothing is imported") && error.contains("results"), "{error}");
    assert_eq!(desk.imported().len(), 0, "{error}");
    desk.well(&words);
    assert_eq!(desk.imported().len(), 2);
}

#[test]
fn tabs_and_utf_16_are_read_when_a_shell_or_an_editor_made_them() {
    let desk = Desk::new();
    let usual = USUAL.printed();
    let utf16 = |to_bytes: fn(u16) -> [u8; 2], text: &str| -> Vec<u8> {
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(to_bytes).collect()
    };
    let other = |time: &str| usual.replace("1.0000s", time);
    desk.file("tabs.txt", usual.replace("  ", "\t").replace(" (", "\t("));
    desk.file("little.txt", utf16(u16::to_le_bytes, &other("1.0001s")));
    desk.file("big.txt", utf16(u16::to_be_bytes, &other("1.0002s")));
    let output = desk.run(&["import", "sysbench", "tabs.txt", "little.txt", "big.txt"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(desk.imported().len(), 3);
}

#[test]
fn readers_of_measured_summaries_leave_imported_runs_out() {
    let desk = Desk::new();
    desk.import("old", &USUAL);
    for args in [&["explain", "results"][..], &["report", "results", "--gate", "qps>1"]] {
        let (status, error) = desk.ill(args);
        assert_eq!(status, 4, "{args:?}: {error}");
    }
    desk.measure(1, "new", 8, 20_000.0);
    desk.measure(2, "newer", 8, 21_000.0);
    for args in [&["explain", "results"][..], &["report", "results", "--gate", "qps>1"]] {
        let output = desk.run(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("1 imported"), "{args:?}: {error}");
        assert!(!error.contains("panicked"), "{args:?}: {error}");
    }
}

#[test]
fn a_damaged_import_is_named_like_a_damaged_summary() {
    let desk = Desk::new();
    desk.import("old", &USUAL);
    let path = fs::read_dir(desk.path("results")).expect("a directory").next().expect("a file");
    let path = path.expect("an entry").path();
    let text = fs::read_to_string(&path).expect("read");
    let told = |text: &str| -> String {
        fs::write(&path, text).expect("written");
        let loaded = load(std::slice::from_ref(&path), true).map(|loaded| loaded.imported.len());
        loaded.map_or_else(|error| error.to_string(), |count| count.to_string())
    };
    assert_eq!(told(&text), "1");
    assert!(told(&text.replace("imported/1", "imported/2")).contains("imported/2"));
    assert!(told(&text.replace("\"clients\": 8", "\"clients\": -8")).contains("line "));
    assert!(told(&text[..text.len() / 2]).contains("line "));
    let copy = Path::new(&path).with_extension("2.json");
    fs::write(&copy, &text).expect("written");
    told(&text);
    let error = load(&[desk.path("results")], false).expect_err("twice").to_string();
    assert!(error.contains("old-8-500.txt"), "{error}");
}
