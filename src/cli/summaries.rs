//! Verbs of summaries: report (tables, a chart, or the page), compare (labels with a baseline), explain (the
//! time of an op).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::shared::summary_paths;
use crate::error::{Error, Kind, Result, line, ranked};
use crate::plan::units::parse_percent;
use crate::plan::value::Clients;
use crate::progress::say;
use crate::report::{
    self, Comparison, Format, Histograms, Layout, Metric, Notes, Options, Parts, Picture, Question,
    Run, Runs, page, picture, render,
};
use crate::run::{
    decided, gate_verdict, leave_out, print_data, replace, terminal, unfinished, warn,
    write_with_hints,
};
use crate::summary::{self, Loaded, Record, Summary};
use crate::terms::{Gate, counted, named};

const NAMED_MAX: usize = 20;

/// Parts that gates may need, whatever the layout.
const ALL_TIMES: Parts = Parts { timelines: false, histograms: Histograms::All };

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
    /// JUnit's XML: a case for each --gate
    Junit,
    /// Bencher's JSON (BMF), with intervals
    Bencher,
    /// JSON for github-action-benchmark: bigger is better, or smaller (--metric p99)
    Gha,
}

/// Endings of a file's name, and the format of each.
const ENDINGS: [(&str, Output); 9] = [
    ("txt", Output::Text),
    ("md", Output::Markdown),
    ("markdown", Output::Markdown),
    ("csv", Output::Csv),
    ("json", Output::Json),
    ("html", Output::Html),
    ("htm", Output::Html),
    ("svg", Output::Svg),
    ("xml", Output::Junit),
];

impl Output {
    /// Returns the format by a file's ending, text without one; refuses an unknown ending.
    fn chosen(asked: Option<Output>, file: Option<&Path>) -> Result<Output> {
        let ending = file.and_then(Path::extension).filter(|_| asked.is_none());
        let Some(ending) = ending else { return Ok(asked.unwrap_or_default()) };
        let ending = ending.to_string_lossy();
        let known = ENDINGS.iter().find(|(known, _)| ending.eq_ignore_ascii_case(known));
        known.map(|(_, format)| *format).ok_or_else(|| {
            let file = file.map(|file| line(&file.display().to_string())).unwrap_or_default();
            let known: Vec<String> = ENDINGS.iter().map(|(known, _)| format!(".{known}")).collect();
            Error::usage(format!("--output {file}: there is no format '.{}'", line(&ending)))
                .hint(format!("{}, or --format FORMAT with any name", known.join(" ")))
        })
    }

    fn tables(self) -> Option<Format> {
        Some(match self {
            Output::Text => Format::Text,
            Output::Markdown => Format::Markdown,
            Output::Csv => Format::Csv,
            Output::Json => Format::Json,
            Output::Junit => Format::Junit,
            Output::Bencher => Format::Bencher,
            Output::Gha => Format::Gha,
            Output::Html | Output::Svg => return None,
        })
    }
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReadArgs {
    /// Summaries, or directories of them [default: results, where it is there]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Use only the newest invocation of each label and workload; if its steps have different
    /// settings, only the newest settings
    #[arg(long)]
    pub latest: bool,
    /// Show all notes, and the conditions in full
    #[arg(long)]
    pub notes: bool,
    /// Leave out damaged and foreign files, and name them
    #[arg(long)]
    pub skip_bad: bool,
}

impl ReadArgs {
    fn notes(&self) -> Notes {
        if self.notes { Notes::All } else { Notes::Brief }
    }

    /// Replaces missing paths by the default directory.
    fn settle(&mut self) -> Result<()> {
        self.paths = summary_paths(std::mem::take(&mut self.paths))?;
        Ok(())
    }

    /// Returns the paths as a shell takes them.
    fn source(&self) -> String {
        let word = |path: &PathBuf| report::quoted(&line(&path.display().to_string()));
        self.paths.iter().map(word).collect::<Vec<String>>().join(" ")
    }

    /// Returns the runs among which a missing `--baseline` is looked for.
    fn keep_asked<'a>(&self, runs: impl Into<Runs<'a>>) -> Runs<'a> {
        let runs = runs.into();
        if self.latest { runs.newest() } else { runs }
    }

    fn load(&self, parts: Parts) -> Result<Loaded> {
        let loaded = summary::load_each(&self.paths, self.skip_bad, |summary| parts.keep(summary))?;
        for (path, reason) in &loaded.skipped {
            warn(&format!("skipped {}: {reason}", path.display()));
        }
        Ok(loaded)
    }
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReportArgs {
    /// Number in the cells: qps, tps, a percentile such as p50 or p99.9, mean, min, max, stddev
    /// (response time in an open loop, else service time), service-p99, errors, iops, miss, cpu …
    /// (all in docs/reference/metrics.md); natural is qps, or seconds of what ran to its end. Several
    /// times: a table each [default: natural]
    #[arg(long = "metric", value_name = "METRIC", value_delimiter = ',')]
    pub metrics: Vec<Metric>,
    /// Arrangement of the tables
    #[arg(long, value_name = "LAYOUT", value_enum, default_value_t)]
    pub layout: Layout,
    /// Output format [default: that of the file's name, else text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub format: Option<Output>,
    /// The chart of --format svg [default: qps]
    #[arg(long, value_name = "CHART", value_enum)]
    pub chart: Option<Picture>,
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Relate every label to this one; higher is better, except for costs in --layout workloads and
    /// per-op
    #[arg(long, alias = "from", value_name = "LABEL")]
    pub baseline: Option<String>,
    /// The label that --layout delta and overhead hold against the baseline
    #[arg(long, alias = "to", value_name = "LABEL")]
    pub new: Option<String>,
    #[command(flatten)]
    pub only: OnlyArgs,
    /// Labels in the order of their lines; may be given several times [default: by their time]
    #[arg(long, value_name = "LABEL")]
    pub order: Vec<String>,
    /// Count steps that did not complete, and mark them
    #[arg(long)]
    pub partial: bool,
    /// Refuse a label that was measured with different settings [default: its newest invocation]
    #[arg(long)]
    pub strict: bool,
    /// Print whether this holds instead, such as p99<5ms, qps>=10k, errors==0 or errors<0.1%, and
    /// exit with 99 where it does not, 98 where it is not known; may be given several times
    #[arg(long = "gate", value_name = "CONDITION", conflicts_with_all = ["metrics", "layout", "baseline", "new", "spread"])]
    pub gates: Vec<Gate>,
    /// A second table: each cell's runs, their median, extremes and its 95 % interval
    #[arg(long)]
    pub spread: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

pub(super) fn report(mut args: ReportArgs) -> Result<()> {
    let format = args.check()?;
    args.read.settle()?;
    let parts = args.parts(format);
    let ReportArgs { read, only, gates, chart, output, .. } = args.clone();
    let options = args.options(format);
    let loaded = read.load(parts)?;
    let unfinished =
        unfinished(&read.paths, &loaded.steps(), read.latest, |record| only.may_show(record));
    let runs = only.pick(&Runs::from(&loaded))?;
    let put = |text: &str| print_or_write(output.as_deref(), text);
    if !gates.is_empty() {
        let measured = measured_only(&runs, "a gate")?;
        let judged = report::gates(&measured, &gates, &options)?;
        put(&judged.text)?;
        let wrong = [gate_verdict(&judged), decided(&unfinished)].into_iter();
        let (worst, others) = ranked(wrong.filter_map(Result::err));
        for other in &others {
            warn(&write_with_hints(other));
        }
        return worst.map_or(Ok(()), Err);
    }
    for what in &unfinished {
        warn(what);
    }
    let searched =
        runs.iter().filter_map(|run| run.measured()).any(|step| step.plan.search.is_some());
    if options.layout == Layout::Versions && searched {
        say(&format!(
            "Some steps are of a search for the highest rate: loadgen report {} --layout slo",
            options.source
        ));
    }
    put(&match format {
        Output::Html => page(runs, &options)?,
        Output::Svg => picture(runs, &options, chart.unwrap_or_default())?,
        _ => render(runs, &options)?,
    })
}

/// Returns the measured steps for what imported runs lack, and says that these are left out.
fn measured_only<'a>(runs: &Runs<'a>, what: &str) -> Result<Vec<&'a Summary>> {
    let steps: Vec<&Summary> = runs.iter().filter_map(|run| run.measured()).collect();
    let imported = runs.len() - steps.len();
    if steps.is_empty() {
        let imported = counted(imported as u64, "run");
        let text = format!(
            "{what} needs steps that loadgen measured, but all summaries are imported: {imported}"
        );
        return Err(Error::data(text).hint("loadgen report and compare read imported runs, too"));
    }
    leave_out(imported, what);
    Ok(steps)
}

/// Names of standard output, which may be a file that others write to as well.
const STDOUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

fn print_or_write(file: Option<&Path>, text: &str) -> Result<()> {
    let file = file.filter(|path| !STDOUT.iter().any(|name| path == &Path::new(name)));
    file.map_or_else(
        || print_data(text),
        |path| write(path, text).map(|()| say(&describe_written(path, text.len()))),
    )
}

fn write(path: &Path, text: &str) -> Result<()> {
    // The link is not ours: its file is replaced. A pipe or a terminal cannot be.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let special = std::fs::symlink_metadata(&target).is_ok_and(|found| !found.is_file());
    let put = || {
        if special {
            return std::fs::write(path, text);
        }
        // The error of `replace` would name a temporary file.
        let dir = target.parent().unwrap_or(Path::new("")).join(".");
        access(&dir, AccessFlags::W_OK)?;
        replace(&target, text)
    };
    put().map_err(|e| Error::failed(format!("{}: {e}", path.display())))
}

fn describe_written(path: &Path, bytes: usize) -> String {
    let size = match bytes {
        0..1024 => format!("{bytes} bytes"),
        _ => format!("{} KiB", bytes.div_ceil(1024)),
    };
    line(&format!("Wrote {} ({size})", path.display()))
}

/// The steps that are shown.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct OnlyArgs {
    /// Only this label; may be given several times
    #[arg(long = "label", value_name = "LABEL")]
    pub labels: Vec<String>,
    /// Only this workload; may be given several times
    #[arg(long = "workload", value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// Only these numbers of clients: 64 or 1,2,4 or 8..64 (doubling)
    #[arg(long, value_name = "LIST")]
    pub clients: Option<Clients>,
}

/// Returns whether a value is one of those that were asked for. Where none was, each is. An unknown value may be one.
fn is_among<T: PartialEq<U>, U: ?Sized>(asked: &[T], value: Option<&U>) -> bool {
    asked.is_empty() || value.is_none_or(|value| asked.iter().any(|one| one == value))
}

impl OnlyArgs {
    /// Returns whether a step that left only its record may be one of those that are shown.
    fn may_show(&self, record: &Record) -> bool {
        let clients = self.clients.as_ref().map_or(&[][..], |clients| &clients.0);
        is_among(&self.labels, record.label.as_ref())
            && is_among(&self.workloads, record.workload.as_ref())
            && is_among(clients, record.clients.as_ref())
    }

    /// Picks the runs; what picks none is refused with what there is.
    fn pick<'a>(&self, all: &Runs<'a>) -> Result<Runs<'a>> {
        let quoted = |known: BTreeSet<&str>| -> Vec<String> {
            known.into_iter().map(|text| format!("'{}'", line(text))).collect()
        };
        let none = |what: &str, kind: &str, known: Vec<String>| {
            let known = named(known, NAMED_MAX, ", ");
            Err(Error::usage(format!("{what} in these summaries"))
                .hint(format!("known {kind}: {known}")))
        };
        for (kind, of, wanted) in [
            ("label", Run::label as fn(Run<'a>) -> &'a str, &self.labels),
            ("workload", Run::workload as fn(Run<'a>) -> &'a str, &self.workloads),
        ] {
            let known: BTreeSet<&str> = all.iter().map(|run| of(*run)).collect();
            if let Some(other) = wanted.iter().find(|text| !known.contains(text.as_str())) {
                let what = format!("--{kind}: no {kind} '{}'", line(other));
                return none(&what, &format!("{kind}s"), quoted(known));
            }
        }
        let is_of_labels = |run: &Run| is_among(&self.labels, Some(run.label()));
        let is_named =
            |run: &Run| is_of_labels(run) && is_among(&self.workloads, Some(run.workload()));
        let clients_of = |run: &Run| run.cell().clients;
        let named: Vec<Run> = all.iter().copied().filter(is_named).collect();
        if named.is_empty() {
            let what = "no label of --label measured a workload of --workload";
            let of_labels = all.iter().copied().filter(is_of_labels);
            let known = quoted(of_labels.map(Run::workload).collect());
            return none(what, "workloads of these labels", known);
        }
        let is_asked =
            |run: &Run| self.clients.as_ref().is_none_or(|of| of.0.contains(&clients_of(run)));
        let picked: Runs = named.iter().copied().filter(is_asked).collect();
        if picked.is_empty() {
            let known: BTreeSet<u32> = named.iter().map(clients_of).collect();
            let known = known.iter().map(u32::to_string).collect();
            let what = "--clients: no step with one of these numbers of clients";
            return none(what, "numbers of clients", known);
        }
        Ok(picked)
    }
}

impl ReportArgs {
    fn parts(&self, format: Output) -> Parts {
        match format {
            _ if !self.gates.is_empty() => ALL_TIMES,
            Output::Html | Output::Svg => Parts::of_charts(&self.metrics),
            _ => Parts::of_tables(&self.metrics, self.layout),
        }
    }

    /// Returns the format; refuses flags that would have no effect on it.
    fn check(&self) -> Result<Output> {
        let format = Output::chosen(self.format, self.output.as_deref())?;
        let flags = [
            ("--layout", self.layout != Layout::Versions),
            ("--spread", self.spread),
            ("--gate", !self.gates.is_empty()),
            ("--metric, given twice,", self.metrics.len() > 1),
        ];
        let given = flags.iter().find(|(_, given)| *given);
        if let Some((flag, _)) = given.filter(|_| format.tables().is_none()) {
            return Err(Error::usage(format!("{flag} has no effect on --format html or svg"))
                .hint("leave it out, or --format text, markdown, csv or json"));
        }
        if format == Output::Junit && self.gates.is_empty() {
            return Err(Error::usage("--format junit has a case for each gate, and there is none")
                .hint(
                    "--gate 'p99<5ms'; loadgen compare --format junit has a case for each cell",
                ));
        }
        let related = [("--baseline", self.baseline.is_some())];
        let given = flags[..3].iter().chain(&related).find(|(_, given)| *given);
        let series = [Output::Bencher, Output::Gha].contains(&format);
        if let Some((flag, _)) = given.filter(|_| series) {
            return Err(Error::usage(format!("{flag} has no effect on --format bencher or gha"))
                .hint("leave it out: these have the median of each cell and its interval"));
        }
        if self.chart.is_some() && format != Output::Svg {
            return Err(Error::usage("--chart is of --format svg")
                .hint("--format svg draws one chart, --format html all of them"));
        }
        Ok(format)
    }

    pub(crate) fn options(self, format: Output) -> Options {
        let format = format.tables().unwrap_or_default();
        let terminal = if self.output.is_none() { terminal() } else { None };
        let latest = self.read.latest;
        let notes = self.read.notes();
        let source = self.read.source();
        let (metric, also) = split_metrics(&self.metrics);
        let ReportArgs { layout, baseline, new, order, partial, strict, spread, .. } = self;
        let options = Options { notes, source, ..Options::default() };
        let options = Options { format, order, latest, strict, partial, terminal, ..options };
        Options { metric, also, layout, baseline, new, spread, ..options }
    }
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PairArgs {
    /// The label that is compared against [default: of two labels the first]
    #[arg(long, alias = "base", value_name = "LABEL")]
    pub baseline: Option<String>,
    /// The label that is compared [default: of two labels the other]
    #[arg(long, value_name = "LABEL")]
    pub new: Option<String>,
}

impl PairArgs {
    fn labels<'a>(&self, runs: impl Into<Runs<'a>>) -> Result<[String; 2]> {
        let given = [&self.baseline, &self.new].map(Option::as_deref);
        report::pair(runs, given)
    }
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CompareArgs {
    /// The label that the others are compared with [default: the first by time]
    #[arg(long, alias = "base", value_name = "LABEL")]
    pub baseline: Option<String>,
    /// A label that is compared; may be given several times [default: all others]
    #[arg(long, value_name = "LABEL")]
    pub new: Vec<String>,
    /// Metric to compare, as for report. Several times: tables of each [default: natural]
    #[arg(long = "metric", value_name = "METRIC", value_delimiter = ',')]
    pub metrics: Vec<Metric>,
    /// Ignore smaller differences
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = parse_percent)]
    pub floor: f64,
    /// Exit with 99 where a new label is worse, with 98 where that cannot be known (too few repeats, runs
    /// or ops that did not complete, or not measured)
    #[arg(long)]
    pub fail_on_regression: bool,
    /// Exit with 98 where the interval is wider than the floor on both sides
    #[arg(long, value_name = "VERDICT", value_enum)]
    pub fail_on: Option<FailOn>,
    /// Compare also what was measured on other tables or by other statements
    #[arg(long)]
    pub force: bool,
    /// Output format: text, markdown, csv, json or junit [default: that of the file's name, else text]
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true)]
    pub format: Option<Output>,
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub read: ReadArgs,
}

/// A verdict besides a regression that fails the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    /// Neither a difference nor the lack of one is shown
    Inconclusive,
}

pub(super) fn compare(mut args: CompareArgs) -> Result<()> {
    let chosen = Output::chosen(args.format, args.output.as_deref())?;
    let format = chosen.tables().filter(|format| !matches!(format, Format::Bencher | Format::Gha));
    let Some(format) = format else {
        return Err(Error::usage("compare does not write this format")
            .hint("use text, markdown, csv, json or junit; report --baseline LABEL writes html"));
    };
    args.read.settle()?;
    let loaded = args.read.load(Parts::of_tables(&args.metrics, Layout::Versions))?;
    let steps = loaded.steps();
    let question = args.question(&loaded, format)?;
    let CompareArgs { read, fail_on, output, new: mut asked, .. } = args;
    let (latest, failing) = (read.latest, args.fail_on_regression);
    let comparison = report::compare(&loaded, &question)?;
    print_or_write(output.as_deref(), &comparison.text)?;
    // Without --new all labels are compared.
    if !asked.is_empty() {
        asked.push(question.base.clone());
    }
    let unfinished =
        unfinished(&read.paths, &steps, latest, |record| is_among(&asked, record.label.as_ref()));
    // Texts for people list unknown cells below their tables, and an error names them.
    let is_told = failing && comparison.worse.is_empty();
    let unknown = if is_told || matches!(format, Format::Text | Format::Markdown) {
        &[][..]
    } else {
        &comparison.unknown
    };
    unknown.iter().chain(&unfinished).for_each(|what| warn(what));
    if failing {
        judge(&comparison, &question)?;
        decided(&unfinished)?;
    }
    let cells = fail_on.map_or(&[][..], |FailOn::Inconclusive| &comparison.inconclusive);
    undecided("inconclusive", cells, "more or longer runs make the interval narrow")
}

impl CompareArgs {
    fn question(&self, loaded: &Loaded, format: Format) -> Result<Question> {
        let runs = self.read.keep_asked(loaded);
        let (base, new) = report::base_and_new(runs, self.baseline.as_deref(), &self.new)?;
        let (mut new, (metric, also)) = (new.into_iter(), split_metrics(&self.metrics));
        let question = Question {
            base,
            new: new.next().expect("there is one at least"),
            others: new.collect(),
            metric,
            also,
            ..Question::default()
        };
        let (floor, force, latest) = (self.floor, self.force, self.read.latest);
        let (source, notes) = (self.read.source(), self.read.notes());
        Ok(Question { floor, force, latest, format, source, notes, ..question })
    }
}

/// Returns the first metric and the others; two names of one number count once.
fn split_metrics(given: &[Metric]) -> (Metric, Vec<Metric>) {
    let mut metrics = Vec::<Metric>::new();
    for metric in given {
        if !metrics.contains(metric) {
            metrics.push(*metric);
        }
    }
    let mut metrics = metrics.into_iter();
    (metrics.next().unwrap_or_default(), metrics.collect())
}

fn undecided(what: &str, cells: &[String], hint: &str) -> Result<()> {
    if cells.is_empty() {
        return Ok(());
    }
    Err(Error::new(Kind::Undecided, format!("{what}: {}", cells.join("; "))).hint(hint))
}

/// Refuses a comparison that shows a regression, or cannot rule one out.
fn judge(comparison: &Comparison, question: &Question) -> Result<()> {
    let [base, new] = [&question.base, &question.new].map(|label| line(label));
    // With several labels each line has its own.
    let new = if question.others.is_empty() { new + " is " } else { String::new() };
    let worse = format!("{new}worse than {base}:");
    let error = |found: String| Err(Error::new(Kind::Gate, worse.clone() + &found));
    match comparison.worse.as_slice() {
        [] => {}
        [one] => return error(format!(" {one}")),
        all => return error(format!("\n  {}", all.join("\n  "))),
    }
    let look = "loadgen report shows what there is";
    let wanted = comparison.repeats_needed;
    let repeat = format!("--repeat {wanted} is enough for so many cells");
    let unknown = undecided("not known", &comparison.unknown, look);
    let few = undecided("too few repeats to know", &comparison.too_few, &repeat);
    match (unknown, few) {
        (Err(unknown), Err(few)) => {
            let both = Error::new(Kind::Undecided, format!("{unknown}; {few}"));
            Err(both.hint(look).hint(repeat))
        }
        (unknown, few) => unknown.and(few),
    }
}

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
At a number of clients in a closed loop, clients / ops a second is the time of an op. It is split into
the CPU of client and server, the reads of the disks, and the rest; docs/reference/explain.md says how.")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub pair: PairArgs,
    /// Output format: text, markdown, csv or json
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, hide_possible_values = true)]
    pub format: Format,
    /// Explain also what was measured on other tables or by other statements
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub read: ReadArgs,
}

pub(super) fn explain(mut args: ExplainArgs) -> Result<()> {
    for_tables(args.format)?;
    args.take_labels();
    args.read.settle()?;
    let loaded = args.read.load(ALL_TIMES)?;
    let runs = Runs::from(&loaded);
    let steps = measured_only(&runs, "explain")?;
    let [base, new] = args.pair.labels(args.read.keep_asked(&steps))?;
    let ExplainArgs { force, format, .. } = args;
    let latest = args.read.latest;
    let source = args.read.source();
    let notes = args.read.notes();
    let question =
        Question { base, new, force, latest, format, source, notes, ..Question::default() };
    print_data(&report::explain(&steps, &question)?)
}

/// Refuses formats that only report and compare have.
pub(super) fn for_tables(format: Format) -> Result<()> {
    if matches!(format, Format::Junit | Format::Bencher | Format::Gha) {
        let is_junit = format == Format::Junit;
        let writers = if is_junit { "report and compare write" } else { "report writes" };
        return Err(Error::usage(format!("--format {format}: only {writers} it"))
            .hint("use text, markdown, csv or json"));
    }
    Ok(())
}

impl ExplainArgs {
    /// Takes the labels that stand before the paths, as in versions without flags for them.
    fn take_labels(&mut self) {
        let PairArgs { baseline, new } = &mut self.pair;
        let bare = baseline.is_none() && new.is_none() && self.read.paths.len() > 2;
        if !bare || self.read.paths[..2].iter().all(|path| path.exists()) {
            return;
        }
        let mut words = self.read.paths.drain(..2).map(|word| word.to_string_lossy().into_owned());
        (*baseline, *new) = (words.next(), words.next());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
    fn the_error_of_a_file_names_no_temporary_file_when_its_directory_is_missing() {
        let dir = tempfile::tempdir().expect("a directory");
        let refused = write(&dir.path().join("none/table.csv"), "").expect_err("no directory");
        assert!(refused.to_string().ends_with("table.csv: No such file or directory (os error 2)"));
        std::fs::write(dir.path().join("file"), "").expect("written");
        let refused = write(&dir.path().join("file/table.csv"), "").expect_err("no directory");
        assert!(refused.to_string().ends_with("table.csv: Not a directory (os error 20)"));
    }

    #[test]
    fn killed_step_counts_when_it_may_be_one_of_those_that_are_shown() {
        let args = parse("d --label a --workload w --clients 8,16").expect("flags").only;
        let record = |workload: Option<&str>, clients| {
            let place = summary::Location::default();
            let mut record = Record::new("1".into(), "w".into(), true, place, BTreeMap::new());
            record.label = Some("a".to_owned());
            (record.workload, record.clients) = (workload.map(str::to_owned), clients);
            record
        };
        // Old versions wrote neither.
        for (workload, clients) in [(Some("w"), Some(16)), (None, None)] {
            assert!(args.may_show(&record(workload, clients)), "{workload:?} {clients:?}");
        }
        for (workload, clients) in [(Some("v"), Some(16)), (Some("w"), Some(4))] {
            assert!(!args.may_show(&record(workload, clients)), "{workload:?} {clients:?}");
        }
        let mut other = record(None, None);
        other.label = Some("b".to_owned());
        assert!(!args.may_show(&other) && OnlyArgs::default().may_show(&other));
        other.label = None;
        assert!(args.may_show(&other));
    }

    #[test]
    fn defaults_are_the_plain_table_of_qps() {
        let options = parse("results").expect("a path is enough").options(Output::Text);
        assert_eq!(options.metric, Metric::Natural);
        assert_eq!(options.layout, Layout::Versions);
        assert_eq!(options.format, Format::Text);
        assert_eq!(options.baseline, None);
        assert!(!options.latest && !options.partial);
    }

    #[test]
    fn every_flag_arrives() {
        let args = parse(
            "a b --metric p99.9 --format markdown --latest --partial --skip-bad --strict \
             --layout delta --baseline y --new z --metric p50",
        )
        .expect("all flags");
        assert_eq!(args.read.paths.len(), 2);
        assert!(args.read.skip_bad);
        let format = args.check().expect("they go together");
        let options = args.options(format);
        assert_eq!(options.metric.to_string(), "p99.9");
        assert_eq!(options.format, Format::Markdown);
        assert_eq!((options.baseline.as_deref(), options.new.as_deref()), (Some("y"), Some("z")));
        assert_eq!(options.layout, Layout::Delta);
        assert!(options.latest && options.partial && options.strict);
        let also: Vec<String> = options.also.iter().map(Metric::to_string).collect();
        assert_eq!(also, ["p50"]);
    }

    #[test]
    fn report_has_a_metric_once_when_it_is_named_twice() {
        let args = parse("a --metric p50,qps --metric median,qps").expect("metrics");
        let options = args.options(Output::Csv);
        let also: Vec<String> = options.also.iter().map(Metric::to_string).collect();
        assert_eq!((options.metric.to_string().as_str(), also), ("p50", vec!["qps".to_owned()]));
    }

    #[test]
    fn paths_with_blanks_are_quoted_in_the_commands_that_reports_advise() {
        let mut read = parse("a").expect("a path is enough").read;
        read.paths = vec!["my runs".into(), "results/".into()];
        assert_eq!(read.source(), "'my runs' results/");
    }

    #[test]
    fn a_file_decides_the_format_unless_the_flag_does() {
        for (line, format) in [
            ("a -o x.md", Output::Markdown),
            ("a -o x.csv", Output::Csv),
            ("a -o x.json", Output::Json),
            ("a -o dir.md/x.html", Output::Html),
            ("a -o x.svg", Output::Svg),
            ("a -o X.SVG", Output::Svg),
            ("a -o x.txt", Output::Text),
            ("a -o x", Output::Text),
            ("a -o dir.png/x", Output::Text),
            ("a -o x.html --format csv", Output::Csv),
        ] {
            assert_eq!(parse(line).expect(line).check().expect(line), format, "{line}");
        }
    }

    #[test]
    fn output_refuses_a_file_when_its_ending_is_of_no_format() {
        for line in ["a -o chart.png", "a -o x.md.gz", "a -o dir/8.4.3", "a -o x.", "a -o x.text"] {
            let error = parse(line).expect(line).check().expect_err(line);
            assert_eq!(error.kind().exit_code(), 2, "{line}");
            let listed = |(ending, _): &(&str, Output)| error.hints()[0].contains(ending);
            assert!(ENDINGS.iter().all(listed), "{line}: {:?}", error.hints());
            parse(&format!("{line} --format text")).expect(line).check().expect(line);
        }
    }

    #[test]
    fn old_names_of_the_two_labels_are_read_alike() {
        let of = |line: &str| parse(line).expect(line);
        let (old, new) = (of("a --from x --to y"), of("a --baseline x --new y"));
        assert_eq!((old.baseline, old.new), (new.baseline, new.new));
    }

    #[test]
    fn what_would_be_without_effect_is_refused() {
        for line in [
            "a --chart qps",
            "a --format html --chart qps",
            "a --format html --layout list",
            "a --format svg --spread",
            "a --format html --gate p99<5ms",
            "a -o x.html --gate p99<5ms",
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
    fn a_link_stays_one_and_its_file_is_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let [file, link] = ["report.html", "latest.html"].map(|name| dir.path().join(name));
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        for text in ["longer than the next", "short"] {
            write(&link, text).expect("written");
            assert_eq!(std::fs::read_to_string(&file).expect("there"), text);
        }
        assert!(link.is_symlink(), "as /dev/stdout must stay one");
    }

    #[test]
    fn wrong_values_name_what_there_is() {
        assert!(parse("a --format xml").expect_err("no format").contains("markdown"));
        assert!(parse("a --metric p100").expect_err("no metric").contains("p100"));
    }

    /// Labels a and b of two workloads at 8 and 16 clients; b has no `update`.
    fn measured() -> Vec<Summary> {
        let text = include_str!("../../tests/fixtures/summary.json");
        let sound: Summary = serde_json::from_str(text).expect("a summary");
        let all = [("a", "point-select"), ("a", "update"), ("b", "point-select")];
        let of = |(label, workload): (&str, &str)| {
            [8, 16].map(|clients| {
                let mut step = sound.clone();
                (step.label, step.workload.name) = (label.to_owned(), workload.to_owned());
                step.plan.clients = clients;
                step
            })
        };
        all.into_iter().flat_map(of).collect()
    }

    #[test]
    fn steps_are_picked_by_label_workload_and_clients() {
        let steps = measured();
        let picked = |line: &str| {
            let only = parse(line).expect(line).only;
            only.pick(&Runs::from(&steps.iter().collect::<Vec<_>>())).map(|runs| runs.len())
        };
        for (line, count) in [
            ("x", 6),
            ("x --label a", 4),
            ("x --label a --label b", 6),
            ("x --label a --workload update --clients 8", 1),
            ("x --clients 8..64", 6),
            ("x --clients 16,32", 3),
        ] {
            assert_eq!(picked(line).expect(line), count, "{line}");
        }
        for (line, says, there) in [
            ("x --label c", "--label: no label 'c'", "'a', 'b'"),
            ("x --workload insert", "--workload: no workload 'insert'", "'point-select', 'update'"),
            ("x --label a --clients 3", "--clients", "8, 16"),
            ("x --label b --workload update", "no label of --label", "labels: 'point-select'"),
        ] {
            let error = picked(line).expect_err(line);
            assert_eq!(error.kind().exit_code(), 2, "{line}");
            let text = error.render();
            assert!(text.contains(says) && text.contains(there), "{line}: {text}");
        }
    }

    #[test]
    fn labels_before_the_paths_of_explain_are_taken_when_they_are_no_paths() {
        #[derive(Debug, Parser)]
        struct Line {
            #[command(flatten)]
            args: ExplainArgs,
        }
        let taken = |words: &str| {
            let words = std::iter::once("explain").chain(words.split_whitespace());
            let mut args = Line::try_parse_from(words).expect("explain").args;
            args.take_labels();
            (args.pair.baseline, args.pair.new, args.read.paths.len())
        };
        let named = |a: &str, b: &str| (Some(a.to_owned()), Some(b.to_owned()), 1);
        assert_eq!(taken("8.0 9.7 results"), named("8.0", "9.7"));
        assert_eq!(taken("--baseline 8.0 --new 9.7 results"), named("8.0", "9.7"));
        assert_eq!(taken("--base 8.0 --new 9.7 results"), named("8.0", "9.7"));
        assert_eq!(taken("results"), (None, None, 1));
        assert_eq!(taken("src tests docs"), (None, None, 3), "all of them are there");
    }

    #[test]
    fn a_file_that_was_written_is_told_with_its_size() {
        let told = |bytes| describe_written(Path::new("report.html"), bytes);
        assert_eq!(told(812), "Wrote report.html (812 bytes)");
        assert_eq!(told(12_000), "Wrote report.html (12 KiB)");
    }

    #[test]
    fn what_is_worse_counts_before_what_is_not_known() {
        let line = || vec!["w at 8 clients".to_owned()];
        let mut comparison = Comparison {
            answer: Vec::new(),
            text: String::new(),
            worse: line(),
            too_few: line(),
            repeats_needed: 7,
            unknown: Vec::new(),
            inconclusive: Vec::new(),
            open: Vec::new(),
        };
        let (base, new) = ("old".to_owned(), "new".to_owned());
        let of = Question { base, new, ..Question::default() };
        let error = judge(&comparison, &of).expect_err("worse");
        assert_eq!(error.kind().exit_code(), 99);
        let several = Question { others: vec!["newer".to_owned()], ..of.clone() };
        let error = judge(&comparison, &several).expect_err("worse");
        assert_eq!(error.kind().exit_code(), 99);
        assert!(!error.to_string().contains("new is"), "each line names its label: {error}");
        comparison.worse.clear();
        let error = judge(&comparison, &of).expect_err("too few");
        assert_eq!(error.kind().exit_code(), 98);
        assert!(error.hints()[0].starts_with("--repeat 7 "), "{error}");
        comparison.too_few.clear();
        comparison.unknown = line();
        assert_eq!(judge(&comparison, &of).expect_err("unknown").kind().exit_code(), 98);
        comparison.too_few = line();
        assert_eq!(judge(&comparison, &of).expect_err("both").hints().len(), 2);
        comparison.too_few.clear();
        comparison.unknown.clear();
        assert!(judge(&comparison, &of).is_ok());
        let error = undecided("inconclusive", &line(), "more runs").expect_err("inconclusive");
        assert_eq!(error.kind().exit_code(), 98);
        assert!(undecided("inconclusive", &[], "more runs").is_ok());
    }
}
