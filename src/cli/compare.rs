//! `loadgen compare`: two labels, with statistics.

use std::path::PathBuf;

use crate::error::{Error, Kind, Result};
use crate::plan::units::parse_percent;
use crate::report::{Comparison, Format, Metric, Question, compare};
use crate::run::{decided, print_data, unfinished, warn};

#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CompareArgs {
    /// Summaries, or directories of them
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
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
    /// Of each label and workload only the newest invocation
    #[arg(long)]
    pub latest: bool,
    /// Leave out damaged and foreign files, and name them
    #[arg(long)]
    pub skip_bad: bool,
}

/// A verdict that is no regression, and fails all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    /// Neither a difference nor the lack of one is shown
    Inconclusive,
}

/// Prints the comparison on standard output; with `--fail-on-regression` and `--fail-on`, what fails
/// is the error.
pub(super) fn run(args: CompareArgs) -> Result<()> {
    let loaded = super::load(&args.paths, args.skip_bad)?;
    let question = Question {
        base: args.base,
        new: args.new,
        metric: args.metric,
        floor: args.floor,
        force: args.force,
        latest: args.latest,
        format: args.format,
        ..Question::default()
    };
    let steps = loaded.steps();
    let comparison = compare(&steps, &question)?;
    print_data(&comparison.text)?;
    let unfinished = unfinished(&args.paths, &steps, args.latest);
    comparison.unknown.iter().chain(&unfinished).for_each(|what| warn(what));
    if args.fail_on_regression {
        judge(&comparison, &question.base)?;
        decided(&unfinished)?;
    }
    let inconclusive =
        args.fail_on.map_or(&[][..], |FailOn::Inconclusive| &comparison.inconclusive);
    undecided("inconclusive", inconclusive, "more or longer runs make the interval narrow")
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

#[cfg(test)]
mod tests {
    use super::*;

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
