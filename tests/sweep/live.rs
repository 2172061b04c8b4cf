//! The live display on a terminal: what is drawn, that it fits, and that nothing of it stays.

use std::process::{Command, Stdio};
use std::time::Duration;

use loadgen::canned::{Action, At, Canned, Fault};
use loadgen::summary::Outcome;

use crate::common::program::{Results, canned, run_canned};
use crate::common::restarting::until;

/// Rows of every terminal here.
const ROWS: usize = 24;

/// What a line of the shell wrote on a terminal of its own, by util-linux's `script`.
fn on_a_terminal(columns: usize, line: &str) -> String {
    let output = Command::new("script")
        .args(["-qec", &format!("stty rows {ROWS} cols {columns}; {line}"), "/dev/null"])
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .env("LOADGEN_CALIBRATION", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .expect("script is there: it belongs to util-linux");
    let written = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{written}");
    written
}

/// A sweep as a line of the shell; its table goes into a file.
fn sweep(words: &str, server: &Canned, results: &Results) -> String {
    let program = env!("CARGO_BIN_EXE_loadgen");
    let (port, dir) = (server.port(), results.dir().display());
    format!(
        "exec '{program}' point-select --tables 8 --warmup 0 {words} -h 127.0.0.1 -P {port} -u x \
         --no-defaults --out '{dir}' >'{dir}/table'"
    )
}

/// A screen that knows what the display uses: lines that wrap, going up, clearing what is below.
struct Screen {
    columns: usize,
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Screen {
    /// What is on it in the end.
    fn after(written: &str, columns: usize) -> Vec<String> {
        let mut screen = Screen { columns, rows: vec![Vec::new()], row: 0, column: 0 };
        let mut rest = written;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '\u{1b}' => {
                    let end = rest.find(|c: char| c.is_ascii_alphabetic()).expect("a sequence");
                    screen.control(&rest[..=end]);
                    rest = &rest[end + 1..];
                }
                '\r' => screen.column = 0,
                '\n' => screen.down(),
                c => screen.put(c),
            }
        }
        screen.rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned()).collect()
    }

    fn control(&mut self, sequence: &str) {
        if sequence == "[J" {
            self.rows.truncate(self.row + 1);
            self.rows[self.row].truncate(self.column);
            return;
        }
        let up = sequence.strip_prefix('[').and_then(|s| s.strip_suffix('A'));
        let up: usize = up.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{sequence:?}"));
        self.row = self.row.checked_sub(up).expect("it stays on the screen");
    }

    fn down(&mut self) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push(Vec::new());
        }
    }

    fn put(&mut self, c: char) {
        if self.column == self.columns {
            self.column = 0;
            self.down();
        }
        let row = &mut self.rows[self.row];
        row.resize(row.len().max(self.column + 1), ' ');
        row[self.column] = c;
        self.column += 1;
    }
}

/// Every drawing of the table: its lines, with the line that changes below them.
fn drawings(written: &str) -> Vec<Vec<&str>> {
    let frames = written.split("\u{1b}[J").skip(1);
    let frames = frames.map(|frame| {
        let until = frame.find('\u{1b}').unwrap_or(frame.len());
        frame[..until].split('\n').map(|line| line.trim_matches('\r')).collect::<Vec<_>>()
    });
    frames.filter(|lines| lines.iter().any(|line| line.starts_with("clients"))).collect()
}

#[test]
fn the_table_fills_up_and_nothing_of_it_stays() {
    let server = canned(Vec::new());
    let results = Results::new();
    let words = "--clients 1,2,4 --time 1s --progress 200ms --label x";
    let written = on_a_terminal(50, &sweep(words, &server, &results));
    assert_eq!(results.summaries().len(), 3, "{written}");

    let drawings = drawings(&written);
    assert_eq!(drawings[0][0], "label x");
    let cells = |lines: &[&str], row: usize| -> Vec<String> {
        let line = lines.iter().find(|line| line.starts_with(["clients", "QPS"][row]));
        line.unwrap_or(&"").split_whitespace().skip(1).map(str::to_owned).collect()
    };
    assert_eq!(cells(&drawings[0], 0), ["▸1", "2", "4"]);
    assert_eq!(cells(&drawings[0], 1), ["·", "·", "·"]);
    let last = drawings.last().expect("there are some");
    assert_eq!(cells(last, 0), ["1", "2", "▸4"]);
    let filled = |lines: &[&str]| -> Vec<bool> {
        cells(lines, 1).iter().map(|cell| cell.parse::<f64>().is_ok()).collect()
    };
    assert_eq!(filled(last)[..2], [true, true], "{last:?}");
    // The numbers of the current column come while it is measured.
    let measuring = drawings.iter().filter(|lines| lines.iter().any(|l| l.contains("measuring, ")));
    let measuring: Vec<_> = measuring.collect();
    assert!(!measuring.is_empty(), "the line that changes: {written}");
    for lines in measuring {
        let current = cells(lines, 0).iter().position(|cell| cell.starts_with('▸'));
        assert!(filled(lines)[current.expect("one is current")], "{lines:?}");
        assert_eq!(lines.concat().contains("all steps"), current < Some(2), "{lines:?}");
    }
    for lines in &drawings {
        assert!(lines.iter().all(|line| line.chars().count() < 50), "{lines:?}");
    }

    // The lines that stay are those that a pipe has, wrapped, and no others.
    let screen = Screen::after(&written, 50);
    let text = screen.concat();
    assert!(
        !text.contains('▸') && !screen.iter().any(|line| line.starts_with("clients")),
        "{text}"
    );
    for clients in [1, 2, 4] {
        let step = format!("point-select {clients} client");
        assert_eq!(text.matches(&step).count(), 1, "{screen:#?}");
    }
}

#[test]
fn a_terminal_that_becomes_narrower_gets_narrower_lines() {
    let server = canned(Vec::new());
    let results = Results::new();
    let words = "--clients 1,2,4,8,16,32 --time 1s --progress 100ms";
    let sweep = sweep(words, &server, &results);
    // Once a step is over.
    let narrower = format!(
        "(until ls '{}' | grep -q json; do sleep 0.1; done; stty cols 24 </dev/tty) & ",
        results.dir().display()
    );
    let written = on_a_terminal(100, &format!("{narrower}{sweep}"));
    assert_eq!(results.summaries().len(), 6, "{written}");
    let drawings = drawings(&written);
    let widest = |lines: &Vec<&str>| lines.iter().map(|line| line.chars().count()).max();
    assert!(drawings.first().and_then(widest) > Some(24), "{written}");
    let last = drawings.last().expect("there are some");
    assert!(widest(last) < Some(24), "{last:?}");
    assert!(last[0].contains("▸32"), "the current column is in sight: {last:?}");
}

#[test]
fn a_pipe_gets_lines_and_no_movement() {
    let server = canned(Vec::new());
    let words = "point-select --tables 8 --clients 1,2 --warmup 0 --time 2s --progress 100ms";
    let ended = run_canned(words, &server);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("measuring, "), "{}", ended.stderr);
    assert!(!ended.stderr.contains(['\u{1b}', '\r', '▸']), "{}", ended.stderr);
}

#[test]
fn nothing_of_the_display_stays_when_the_second_signal_ends_it() {
    let server = canned(Vec::new());
    let results = Results::new();
    let sweep = sweep("--clients 1,2 --time 5s --progress 100ms", &server, &results);
    let (sweep, dir) = (sweep.replace("exec ", ""), results.dir().display());
    // Once a step is over, and the next one is measured.
    let line = format!(
        "{sweep} & pid=$!; until ls '{dir}' | grep -q json; do sleep 0.1; done; \
         kill -INT $pid; kill -TERM $pid; wait $pid; test $? -ge 130"
    );
    let written = on_a_terminal(80, &line);
    let screen = Screen::after(&written, 80);
    assert!(!drawings(&written).is_empty(), "{written}");
    assert!(!screen.iter().any(|line| line.starts_with("clients")), "{screen:#?}");
    assert!(!screen.concat().contains('▸'), "{screen:#?}");
}

#[test]
fn a_person_is_told_what_a_signal_waits_for() {
    let stall = Fault::new(At::Statement(200), Action::StallAll(Duration::from_mins(1)));
    let server = canned(vec![stall.only("WHERE id=")]);
    let results = Results::new();
    let sweep = sweep("--clients 2 --time 60s", &server, &results).replace("exec ", "");
    let go = results.dir().join("go");
    let line = format!(
        "{sweep} & pid=$!; until test -e '{}'; do sleep 0.1; done; kill -TERM $pid; wait $pid; \
         test $? -eq 143",
        go.display()
    );
    let written = std::thread::scope(|scope| {
        let written = scope.spawn(|| on_a_terminal(80, &line));
        until("the server's silence", || server.counts().faults == 1);
        std::fs::write(&go, "").expect("written");
        written.join().expect("it ends")
    });
    let screen = Screen::after(&written, 80);
    assert_eq!(screen.iter().filter(|line| line.contains("15 s")).count(), 1, "{screen:#?}");
    let outcomes: Vec<Outcome> = results.summaries().iter().map(|step| step.outcome).collect();
    assert_eq!(outcomes, [Outcome::Interrupted]);
}

#[test]
fn a_person_sees_percentiles_and_a_histogram_below_the_table() {
    let server = canned(Vec::new());
    let results = Results::new();
    let to_file = sweep("--clients 1,2 --time 1s", &server, &results);
    let (to_terminal, _) = to_file.split_once(" >").expect("it is redirected");
    let shown = on_a_terminal(80, to_terminal);
    let heads = ["p50", "p90", "p95", "p99", "p99.9", "p99.99", "max", "done", "failed"];
    let is_head = |line: &&str| line.split_whitespace().skip(1).eq(heads);
    let mut lines = shown.lines().map(str::trim_end).skip_while(|line| !is_head(line));
    assert!(lines.next().is_some(), "{shown}");
    let steps = results.summaries();
    for (row, clients) in lines.zip([1, 2]) {
        let step = steps.iter().find(|step| step.plan.clients == clients).expect("measured");
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells[0], clients.to_string(), "{row}");
        assert_eq!(cells[8..], [step.totals.ops.to_string(), "0".to_owned()], "{row}");
        assert!(row.chars().count() < 80, "{row}");
    }
    assert!(shown.contains('█'), "{shown}");
    for line in [format!("{to_terminal} --quiet"), format!("{to_terminal} | cat")] {
        let shown = on_a_terminal(80, &line.replace("exec ", ""));
        assert!(!shown.lines().any(|line| is_head(&line.trim_end())), "{shown}");
    }
}

#[test]
fn a_report_has_bars_on_a_terminal_only() {
    let server = canned(Vec::new());
    let results = Results::new();
    on_a_terminal(100, &sweep("--clients 1,2 --time 1s", &server, &results));
    let (program, dir) = (env!("CARGO_BIN_EXE_loadgen"), results.dir().display());
    let report = format!("'{program}' report '{dir}'");
    let on_it = on_a_terminal(100, &report);
    assert!(on_it.contains('█'), "{on_it}");
    let file = results.dir().join("report");
    let on_it = on_a_terminal(100, &format!("{report} -o '{}'", file.display()));
    assert!(on_it.starts_with("Wrote ") && on_it.lines().count() == 1, "{on_it}");
    let text = std::fs::read_to_string(&file).expect("written");
    assert!(text.contains("concurrent clients") && !text.contains('█'), "{text}");
}
