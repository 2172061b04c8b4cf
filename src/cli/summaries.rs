//! Verbs of summaries: report (tables, one chart, or the page), compare (two labels, with statistics),
//! explain (where the time of an op went).

use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};
use crate::plan::units::parse_percent;
use crate::report::{
    self, Comparison, Format, Layout, Metric, Options, Picture, Question, page, picture, render,
};
use crate::run::{decided, gate_verdict, print_data, replace, terminal, unfinished, warn};
use crate::summary::{self, Loaded};
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

/// The summaries that are read.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReadArgs {
    /// Summaries, or directories of them
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Of each label and workload only the newest invocation
    #[arg(long)]
    pub latest: bool,
    /// Leave out damaged and foreign files, and name them
    #[arg(long)]
    pub skip_bad: bool,
}

impl ReadArgs {
    fn load(&self) -> Result<Loaded> {
        let loaded = summary::load(&self.paths, self.skip_bad)?;
        for (path, reason) in &loaded.skipped {
            warn(&format!("skipped {}: {reason}", path.display()));
        }
        Ok(loaded)
    }
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReportArgs {
    /// What the cells show: qps, tps, a percentile such as p50 or p99.9, mean, min, max, stddev
    /// (response time in an open loop, else service time), service-p99, errors, iops, miss, cpu …
    /// (all in docs/reference/metrics.md); natural is qps, or seconds of what ran to its end
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
    #[command(flatten)]
    pub read: ReadArgs,
}

/// Prints the report on standard output or into a file, and names skipped files on standard error.
pub(super) fn report(args: ReportArgs) -> Result<()> {
    args.check()?;
    let ReportArgs { read, gates, format, chart, output, .. } = args.clone();
    let options = args.options();
    let loaded = read.load()?;
    let steps = loaded.steps();
    let put = |text: &str| match &output {
        None => print_data(text),
        Some(path) => write(path, text),
    };
    let unfinished = unfinished(&read.paths, &steps, read.latest);
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
    // A pipe or a terminal cannot be replaced.
    let special = path.exists() && !path.is_file();
    let written = if special { std::fs::write(path, text) } else { replace(path, text) };
    written.map_err(|e| Error::failed(format!("{}: {e}", path.display())))
}

impl ReportArgs {
    /// Refuses flags that would be without effect.
    fn check(&self) -> Result<()> {
        let flags = [
            ("--layout", self.layout != Layout::Versions),
            ("--spread", self.spread),
            ("--gate", !self.gates.is_empty()),
        ];
        let given = flags.iter().find(|(_, given)| *given);
        if let Some((flag, _)) = given.filter(|_| self.format.tables().is_none()) {
            return Err(Error::usage(format!("{flag} has no effect on --format html or svg"))
                .hint("leave it out, or --format text, markdown, csv or json"));
        }
        if self.chart.is_some() && self.format != Output::Svg {
            return Err(Error::usage("--chart is of --format svg")
                .hint("--format svg draws one chart, --format html all of them"));
        }
        Ok(())
    }

    /// The part that [`render`] takes.
    pub(crate) fn options(self) -> Options {
        let ReportArgs { metric, layout, baseline, from, to, order, partial, spread, .. } = self;
        let format = self.format.tables().unwrap_or_default();
        let terminal = if self.output.is_none() { terminal() } else { None };
        let latest = self.read.latest;
        let of = Options { format, order, latest, partial, terminal, spread, ..Options::default() };
        Options { metric, layout, baseline, from, to, ..of }
    }
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CompareArgs {
    /// The label that is compared against
    #[arg(long, value_name = "LABEL")]
    pub base: String,
    /// The label that is compared
    #[arg(long, value_name = "LABEL")]
    pub new: String,
    /// What is compared, as for report
    #[arg(long, value_name = "METRIC", default_value_t)]
    pub metric: Metric,
    /// A smaller difference does not matter
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = parse_percent)]
    pub floor: f64,
    /// Exit with 99 where the new label is worse, with 98 where that cannot be known (too few repeats, runs
    /// or ops that did not complete, or not measured)
    #[arg(long)]
    pub fail_on_regression: bool,
    /// Exit with 98 where the interval is wider than the floor on both sides
    #[arg(long, value_name = "VERDICT", value_enum)]
    pub fail_on: Option<FailOn>,
    /// Compare also what was measured on other tables or by other statements
    #[arg(long)]
    pub force: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: Format,
    #[command(flatten)]
    pub read: ReadArgs,
}

/// A verdict that is no regression, and fails all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    /// Neither a difference nor the lack of one is shown
    Inconclusive,
}

/// Prints the comparison on standard output; with `--fail-on-regression` and `--fail-on`, what fails
/// is the error.
pub(super) fn compare(args: CompareArgs) -> Result<()> {
    let loaded = args.read.load()?;
    let steps = loaded.steps();
    let CompareArgs { base, new, metric, floor, force, format, .. } = args;
    let latest = args.read.latest;
    let of = Question { base, new, metric, floor, force, latest, format, ..Question::default() };
    let comparison = report::compare(&steps, &of)?;
    print_data(&comparison.text)?;
    let unfinished = unfinished(&args.read.paths, &steps, latest);
    comparison.unknown.iter().chain(&unfinished).for_each(|what| warn(what));
    if args.fail_on_regression {
        judge(&comparison, &of.base)?;
        decided(&unfinished)?;
    }
    let cells = args.fail_on.map_or(&[][..], |FailOn::Inconclusive| &comparison.inconclusive);
    undecided("inconclusive", cells, "more or longer runs make the interval narrow")
}

fn undecided(what: &str, cells: &[String], hint: &str) -> Result<()> {
    if cells.is_empty() {
        return Ok(());
    }
    Err(Error::new(Kind::Undecided, format!("{what}: {}", cells.join("; "))).hint(hint))
}

/// Refuses a comparison that shows a regression, or cannot rule one out.
fn judge(comparison: &Comparison, base: &str) -> Result<()> {
    if !comparison.worse.is_empty() {
        let text = format!("worse than {base}: {}", comparison.worse.join("; "));
        return Err(Error::new(Kind::Gate, text));
    }
    undecided("not known", &comparison.unknown, "loadgen report shows what there is")?;
    let wanted = comparison.repeats_needed;
    let hint = format!("so many cells want {wanted} of each label: --repeat {wanted}");
    undecided("too few repeats to know", &comparison.too_few, &hint)
}

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
At a number of clients in a closed loop, clients / ops a second is the time of an op. It is split into
the CPU of client and server, the reads of the disks, and the rest; docs/reference/explain.md says how.")]
pub(crate) struct ExplainArgs {
    /// The label that is compared against
    #[arg(value_name = "BASE")]
    pub base: String,
    /// The label that is compared
    #[arg(value_name = "NEW")]
    pub new: String,
    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// Explain also what was measured on other tables or by other statements
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

/// Prints the parts on standard output.
pub(super) fn explain(args: ExplainArgs) -> Result<()> {
    let loaded = args.read.load()?;
    let ExplainArgs { base, new, force, format, .. } = args;
    let latest = args.read.latest;
    let question = Question { base, new, force, latest, format, ..Question::default() };
    print_data(&report::explain(&loaded.steps(), &question)?)
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
        assert_eq!(args.read.paths.len(), 2);
        assert!(args.read.skip_bad);
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
            let flag = error.to_string().split(' ').next().map(str::to_owned);
            assert!(line.contains(&flag.expect("a flag")), "{line}: {error}");
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

    #[test]
    fn what_is_worse_counts_before_what_is_not_known() {
        let line = || vec!["w at 8 clients".to_owned()];
        let mut comparison = Comparison {
            text: String::new(),
            worse: line(),
            too_few: line(),
            repeats_needed: 7,
            unknown: Vec::new(),
            inconclusive: Vec::new(),
            open: Vec::new(),
        };
        let error = judge(&comparison, "old").expect_err("worse");
        assert_eq!(error.kind().exit_code(), 99);
        comparison.worse.clear();
        let error = judge(&comparison, "old").expect_err("too few");
        assert_eq!(error.kind().exit_code(), 98);
        assert!(error.hints()[0].ends_with("--repeat 7"), "{error}");
        comparison.too_few.clear();
        comparison.unknown = line();
        assert_eq!(judge(&comparison, "old").expect_err("unknown").kind().exit_code(), 98);
        comparison.unknown.clear();
        assert!(judge(&comparison, "old").is_ok());
        let error = undecided("inconclusive", &line(), "more runs").expect_err("inconclusive");
        assert_eq!(error.kind().exit_code(), 98);
        assert!(undecided("inconclusive", &[], "more runs").is_ok());
    }
}
