//! `loadgen report`: summaries → tables, one chart, or the page.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::report::{self, Format, Layout, Metric, Options, Picture, page, picture, render};
use crate::run::{decided, gate_verdict, print_data, replace, terminal, unfinished, warn};
use crate::terms::Gate;

/// Formats of a report, pictures included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// Aligned columns for a terminal or a mail
    #[default]
    Text,
    /// Tables of GitHub's Markdown
    Markdown,
    /// One row a cell, for spreadsheets and scripts
    Csv,
    /// One object, loadgen.report/1
    Json,
    /// One self-contained page with every table and chart
    Html,
    /// One chart (--chart) as a file for a write-up
    Svg,
}

impl Output {
    /// The format of the tables; none for pictures.
    fn tables(self) -> Option<Format> {
        Some(match self {
            Output::Text => Format::Text,
            Output::Markdown => Format::Markdown,
            Output::Csv => Format::Csv,
            Output::Json => Format::Json,
            Output::Html | Output::Svg => return None,
        })
    }
}

#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReportArgs {
    /// Summaries, or directories of them
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// What the cells show: qps, tps, a percentile such as p50 or p99.9, mean, min, max, stddev
    /// (response time in an open loop, else service time), service-p99, errors, iops, miss, cpu …
    /// (all in docs/report.md); natural is qps, or seconds of what ran to its end
    #[arg(long, value_name = "METRIC", default_value_t)]
    pub metric: Metric,
    /// How it is laid out
    #[arg(long, value_name = "LAYOUT", value_enum, default_value_t)]
    pub layout: Layout,
    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: Output,
    /// The chart of --format svg [default: qps]
    #[arg(long, value_name = "CHART", value_enum)]
    pub chart: Option<Picture>,
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Relate every label to this one; higher is always better
    #[arg(long, value_name = "LABEL")]
    pub baseline: Option<String>,
    /// The label without something, for --layout delta and overhead
    #[arg(long, value_name = "LABEL")]
    pub from: Option<String>,
    /// The label with it
    #[arg(long, value_name = "LABEL")]
    pub to: Option<String>,
    /// Labels in the order of their lines; may be given several times [default: by their time]
    #[arg(long, value_name = "LABEL")]
    pub order: Vec<String>,
    /// Of each label and workload only the newest invocation
    #[arg(long)]
    pub latest: bool,
    /// Count steps that did not complete, and mark them
    #[arg(long)]
    pub partial: bool,
    /// Print whether this holds instead, such as p99<5ms, qps>=10k, errors==0 or errors<0.1%, and
    /// exit with 99 where it does not, 98 where it is not known; may be given several times
    #[arg(long = "gate", value_name = "CONDITION", conflicts_with_all = ["metric", "layout", "baseline", "from", "to", "spread"])]
    pub gates: Vec<Gate>,
    /// A second table: each cell's runs, their median, extremes and its 95 % interval
    #[arg(long)]
    pub spread: bool,
    /// Leave out damaged and foreign files, and name them
    #[arg(long)]
    pub skip_bad: bool,
}

/// Prints the report on standard output or into a file, and names skipped files on standard error.
pub(super) fn run(args: ReportArgs) -> Result<()> {
    args.check()?;
    let options = args.options();
    let ReportArgs { paths, gates, format, chart, output, latest, skip_bad, .. } = args;
    let loaded = super::load(&paths, skip_bad)?;
    let steps = loaded.steps();
    let put = |text: &str| match &output {
        None => print_data(text),
        Some(path) => write(path, text),
    };
    let unfinished = unfinished(&paths, &steps, latest);
    if !gates.is_empty() {
        let judged = report::gates(&steps, &gates, &options)?;
        put(&judged.text)?;
        return gate_verdict(&judged).and_then(|()| decided(&unfinished));
    }
    for what in &unfinished {
        warn(what);
    }
    put(&match format {
        Output::Html => page(&steps, &options)?,
        Output::Svg => picture(&steps, &options, chart.unwrap_or_default())?,
        _ => render(&steps, &options)?,
    })
}

/// A file appears whole or not at all; one that is there is replaced.
fn write(path: &Path, text: &str) -> Result<()> {
    let failed = |e: &std::io::Error| Error::failed(format!("{}: {e}", path.display()));
    // A pipe or a terminal cannot be replaced.
    if path.exists() && !path.is_file() {
        return std::fs::write(path, text).map_err(|e| failed(&e));
    }
    replace(path, text).map_err(|e| failed(&e))
}

impl ReportArgs {
    /// Refuses flags that would be without effect.
    fn check(&self) -> Result<()> {
        let drawn = self.format.tables().is_none();
        if drawn && self.layout != Layout::Versions {
            return Err(Error::usage("--layout is of tables; a page has all of them")
                .hint("leave --layout out, or choose --format text, markdown, csv or json"));
        }
        if drawn && (self.spread || !self.gates.is_empty()) {
            return Err(Error::usage("--spread and --gate are of tables; a page has the spreads")
                .hint("--format text, markdown, csv or json"));
        }
        if self.chart.is_some() && self.format != Output::Svg {
            return Err(Error::usage("--chart is of --format svg")
                .hint("--format svg draws one chart, --format html all of them"));
        }
        Ok(())
    }

    /// The part that [`render`] takes.
    pub(crate) fn options(&self) -> Options {
        Options {
            metric: self.metric,
            layout: self.layout,
            format: self.format.tables().unwrap_or_default(),
            baseline: self.baseline.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            order: self.order.clone(),
            latest: self.latest,
            partial: self.partial,
            terminal: if self.output.is_none() { terminal() } else { None },
            spread: self.spread,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: ReportArgs,
    }

    fn parse(line: &str) -> std::result::Result<ReportArgs, String> {
        let words = std::iter::once("report").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.args).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_are_the_plain_table_of_qps() {
        let options = parse("results").expect("a path is enough").options();
        assert_eq!(options.metric, Metric::Natural);
        assert_eq!(options.layout, Layout::Versions);
        assert_eq!(options.format, Format::Text);
        assert_eq!(options.baseline, None);
        assert!(!options.latest && !options.partial);
    }

    #[test]
    fn every_flag_arrives() {
        let args = parse(
            "a b --metric p99.9 --format markdown --baseline x --latest --partial --skip-bad \
             --layout delta --from y --to z",
        )
        .expect("all flags");
        assert_eq!(args.paths.len(), 2);
        assert!(args.skip_bad);
        let options = args.options();
        assert_eq!(options.metric.to_string(), "p99.9");
        assert_eq!(options.format, Format::Markdown);
        assert_eq!(options.baseline.as_deref(), Some("x"));
        assert_eq!((options.from.as_deref(), options.to.as_deref()), (Some("y"), Some("z")));
        assert_eq!(options.layout, Layout::Delta);
        assert!(options.latest && options.partial);
    }

    #[test]
    fn what_would_be_without_effect_is_refused() {
        for line in [
            "a --chart qps",
            "a --format html --chart qps",
            "a --format html --layout list",
            "a --format svg --spread",
            "a --format html --gate p99<5ms",
        ] {
            let error = parse(line).expect(line).check().expect_err(line);
            assert_eq!(error.kind().exit_code(), 2);
            assert!(!error.hints().is_empty(), "{line}");
        }
        for line in ["a", "a --format svg", "a --format svg --chart latency", "a --format html"] {
            parse(line).expect(line).check().expect(line);
        }
    }

    #[test]
    fn a_file_appears_whole_and_replaces_the_one_before() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("report.html");
        write(&path, "one").expect("written");
        write(&path, "two").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "two");
        assert_eq!(std::fs::read_dir(dir.path()).expect("a directory").count(), 1);
        let nowhere = dir.path().join("none/report.html");
        let error = write(&nowhere, "x").expect_err("no such directory");
        assert!(error.to_string().contains("report.html"), "{error}");
        write(Path::new("/dev/null"), "x").expect("no file to replace");
    }

    #[test]
    fn wrong_values_name_what_there_is() {
        assert!(parse("").expect_err("no path").contains("PATH"));
        assert!(parse("a --format xml").expect_err("no format").contains("markdown"));
        assert!(parse("a --metric p100").expect_err("no metric").contains("p100"));
    }
}
