//! How the runs of a cell spread.

use loadgen::report::{Layout, doubtful};

use super::*;
use crate::common::summaries::worded;

fn runs(qps: &[f64]) -> Vec<Summary> {
    let first = step(0, "a", 8, qps[0]);
    (1..).zip(qps).map(|(at, qps)| repeat(&first, at, *qps)).collect()
}

#[test]
fn each_cell_has_its_runs_extremes_and_interval_below_the_plain_table() {
    let steps = [runs(&[10.0, 40.0, 20.0, 30.0, 60.0, 50.0]), vec![step(1, "b", 8, 7.0)]].concat();
    let spread = Options { spread: true, ..in_full() };
    let text = report(&steps, &spread);
    let (plain_table, second) = text.split_at(plain(&steps).len());
    assert_eq!(plain_table, plain(&steps));
    let lines: Vec<&str> = second.lines().skip(1).take(4).collect();
    assert_eq!(
        lines,
        [
            "point-select: QPS, statements a second; the runs of each cell",
            "clients  runs  median    min    max  range %  95 % interval   label",
            "      8     6   35.00  10.00  60.00    142.9  10.00 to 60.00  a",
            "      8     1    7.00   7.00   7.00        -  -               b",
        ]
    );
    let markdown = report(&steps, &Options { format: Format::Markdown, ..spread.clone() });
    let row = "| 8 | 6 | 35.00 | 10.00 | 60.00 | 142.9 | 10.00 to 60.00 | a |";
    assert!(markdown.lines().any(|line| line == row), "{markdown}");
    let csv = report(&steps, &Options { format: Format::Csv, ..spread.clone() });
    assert_eq!(csv.lines().nth(1), Some("point-select,8,,qps,statements/s,a,6,35,10,60,10,60"));
    let rows = json(&steps, &spread);
    assert_eq!(rows["rows"][0]["interval_low"], 10.0);
    let listed = Options { layout: Layout::List, ..spread };
    assert_eq!(try_report(&steps, &listed).expect_err("no such table").kind().exit_code(), 2);
}

#[test]
fn cells_that_spread_or_were_disturbed_are_in_doubt() {
    let doubts = |steps: &[Summary]| -> Vec<String> {
        let steps: Vec<&Summary> = steps.iter().collect();
        let found = doubtful(&steps, &Options::default(), 0.1).expect("cells");
        found.into_iter().map(|doubt| doubt.why).collect()
    };
    assert_eq!(doubts(&runs(&[100.0, 101.0, 102.0])), [""; 0]);
    assert_eq!(
        doubts(&runs(&[100.0, 101.0, 120.0])),
        ["a at 8 clients: the range of the runs is 19.8 % of the median, over 3 runs"]
    );
    // An outlier among many does not move the median.
    let many = [120.0, 100.0, 101.0, 100.0, 101.0, 100.0, 101.0, 100.0, 101.0];
    assert_eq!(doubts(&runs(&many)), [""; 0]);
    let mut disturbed = runs(&[100.0, 101.0]);
    let warning = worded("perturbed", "");
    disturbed[1].warnings = vec![warning];
    assert_eq!(doubts(&disturbed), ["a at 8 clients: 1 of 2 runs were disturbed (perturbed)"]);
}
