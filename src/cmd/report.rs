//! `loadgen report`: summaries → tables.

use std::path::PathBuf;

use super::{gate, print_data, warn};
use crate::error::Result;
use crate::plan::condition::Condition;
use crate::report::{Format, Layout, Metric, Options, gates, render};
use crate::summary;

/// Print the tables of summaries.
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
#[derive(Debug, Clone, clap::Args)]
pub struct ReportArgs {
    /// Summaries, or directories of them
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// What the cells show: qps, tps, a percentile such as p50 or p99.9, mean, min, max, stddev
    /// (service time), errors, iops, miss, cpu … (all in docs/report.md); natural is qps, or
    /// seconds of what ran to its end
    #[arg(long, value_name = "METRIC", default_value_t)]
    pub metric: Metric,
    /// How it is laid out
    #[arg(long, value_name = "LAYOUT", value_enum, default_value_t)]
    pub layout: Layout,
    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: Format,
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
    pub gates: Vec<Condition>,
    /// A second table: each cell's runs, their median, extremes and its 95 % interval
    #[arg(long)]
    pub spread: bool,
    /// Leave out damaged and foreign files, and name them
    #[arg(long)]
    pub skip_bad: bool,
}

/// Prints the report on standard output, and names skipped files on standard error.
///
/// # Errors
///
/// Those of [`summary::load`] and [`render`]; gates that fail (99) or are undecided (98); standard
/// output that cannot be written.
pub fn run(args: &ReportArgs) -> Result<()> {
    let loaded = summary::load(&args.paths, args.skip_bad)?;
    for (path, reason) in &loaded.skipped {
        warn(&format!("skipped {}: {reason}", path.display()));
    }
    if args.gates.is_empty() {
        return print_data(&render(&loaded.steps(), &args.options())?);
    }
    let gates = gates(&loaded.steps(), &gate::gates(&args.gates)?, &args.options())?;
    print_data(&gates.text)?;
    gate::verdict(&gates)
}

impl ReportArgs {
    /// The part that [`render`] takes.
    pub fn options(&self) -> Options {
        Options {
            metric: self.metric.clone(),
            layout: self.layout,
            format: self.format,
            baseline: self.baseline.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            order: self.order.clone(),
            latest: self.latest,
            partial: self.partial,
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
    fn wrong_values_name_what_there_is() {
        assert!(parse("").expect_err("no path").contains("PATH"));
        assert!(parse("a --format xml").expect_err("no format").contains("markdown"));
        assert!(parse("a --metric p100").expect_err("no metric").contains("p100"));
    }
}
