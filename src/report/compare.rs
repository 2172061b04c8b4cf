//! Labels compared with a baseline by statistics instead of eyes: the unit is the run, never the op; and cells that
//! more runs would tell more about.

use std::collections::BTreeSet;

use super::answer::{self, Several, answer};
use super::columns::{Rows, Sheet};
use super::compared_cell::{ComparedCell, repeats_needed, rows};
use super::distinct::{entry, push_new};
use super::doubt::Doubt;
use super::names::label;
use super::notes::{codes, marked};
use super::options::Options;
use super::page::Page;
use super::question::{ComparedTables, Question, base_and_new, crashed};
use super::ratio::{explain_asked_for, p_text};
use super::run::Runs;
use super::table::{TableCell, WorkloadTable};
use super::value::small_number;
use super::writers::write;
use super::{escape, summary_lines};
use crate::error::{Error, Result};
use crate::terms::{self, Compared, Format};

const FLOOR: f64 = 0.02;

/// Workloads that a line names with the cells that a label lacks.
const WORKLOADS_MAX: usize = 6;

/// Advice where the runs of two labels are not interleaved.
const APART: &str = "The labels were not measured in turn. Run both commands again and again, in turn, \
                     with the same --out.";

/// Advice where one of two such labels was imported: nobody measures it again.
const IMPORTED_APART: &str = "An imported label was not measured in turn with the other: host and \
                              settings may be the reason of a difference.";

#[derive(Debug, Clone)]
pub struct Comparison {
    pub text: String,
    pub answer: Vec<String>,
    pub worse: Vec<String>,
    pub too_few: Vec<String>,
    pub repeats_needed: usize,
    /// Cells that no number of runs decides: one label has not measured them, runs did not complete,
    /// or there is no ratio.
    pub unknown: Vec<String>,
    /// Cells that may be better or worse by more than the floor.
    pub inconclusive: Vec<String>,
    pub open: Vec<Doubt>,
}

pub fn compare<'a>(runs: impl Into<Runs<'a>>, question: &Question) -> Result<Comparison> {
    let contrasts = question.all_contrasts(&runs.into())?.noted();
    let rows = complete_rows(&contrasts, question);
    let (related, without): (Vec<&ComparedCell>, Vec<&ComparedCell>) =
        rows.iter().flatten().partition(|row| row.ratio.is_some());
    let (one_sided, without): (Vec<_>, Vec<_>) =
        without.into_iter().partition(|row| row.lacking_label().is_some());
    let (stopped, lacking): (Vec<_>, Vec<_>) = without.into_iter().partition(|of| of.has_stopped());
    let several = Several::among(&rows, question);
    let what = |rows: &[&ComparedCell]| {
        rows.iter().filter_map(|row| answer::lacking_line(row, several)).collect::<Vec<String>>()
    };
    let one_sided_lines = not_measured(&one_sided);
    let pages = pages(&rows, &one_sided_lines, question);
    let lines = summary_lines::below(&contrasts.tables, &question.notes, &question.source);
    if pages.is_empty() {
        let why = [what(&stopped), what(&lacking), one_sided_lines].concat().swap_remove(0);
        return Err(Error::data(why).hint("another --metric"));
    }
    // A rate that was asked for counts only if there is nothing else.
    let all_asked_for = related.iter().all(|row| row.is_asked_for());
    let found_out = || related.iter().filter(|row| all_asked_for || !row.is_asked_for());
    let asked_for = related.first().filter(|_| all_asked_for);
    let asked_for = asked_for.map(|row| explain_asked_for(row.table.metric)).into_iter().collect();
    let is = |verdict| move |row: &&&ComparedCell| row.verdict == verdict;
    let line = |row: &&ComparedCell| answer::change_line(row, several);
    let times = |row: &&ComparedCell| Some(row.ratio.as_ref()?.times);
    let too_few = || found_out().filter(is(Compared::TooFew));
    let worse = related.iter().filter(is(Compared::Worse)).filter_map(line);
    let answer = answer(&rows, several, question);
    Ok(Comparison {
        worse: once(worse.chain(what(&stopped))),
        unknown: once(
            [what(&lacking), what(&related), one_sided_lines, asked_for].into_iter().flatten(),
        ),
        inconclusive: found_out().filter(is(Compared::Inconclusive)).filter_map(line).collect(),
        too_few: too_few().filter_map(line).collect(),
        repeats_needed: repeats_needed(too_few().filter_map(times).fold(1.0, f64::max)),
        open: found_out().chain(&lacking).chain(&one_sided).filter_map(|row| row.doubt()).collect(),
        text: answer::above(
            &answer,
            write(&pages, "compare", question.format, None, (&question.notes, &lines)),
            question.format,
        ),
        answer,
    })
}

/// Returns the rows with the verdict `incomplete` where runs lack and the others are not worse.
fn complete_rows<'t, 's>(
    contrasts: &'t ComparedTables<'_, 's>,
    of: &Question,
) -> Vec<Vec<ComparedCell<'t, 's>>> {
    let mut rows = rows(contrasts, of);
    let lacks = |row: &&mut ComparedCell| row.lack.is_some() && row.verdict != Compared::Worse;
    let lacking = rows.iter_mut().flatten().filter(|row| row.ratio.is_some()).filter(lacks);
    lacking.for_each(|row| row.verdict = Compared::Incomplete);
    rows
}

fn not_measured(rows: &[&ComparedCell]) -> Vec<String> {
    let mut labels: Vec<&str> = Vec::new();
    rows.iter().filter_map(|row| row.lacking_label()).for_each(|of| push_new(&mut labels, of));
    let line = |lacking: &&str| {
        let mut workloads: Vec<(&str, Vec<&ComparedCell>)> = Vec::new();
        for row in rows.iter().filter(|row| row.lacking_label() == Some(*lacking)) {
            let cells = entry(&mut workloads, row.table.workload);
            if cells.iter().all(|other| other.column != row.column) {
                cells.push(row);
            }
        }
        let cells = |(workload, cells): &(&str, Vec<&ComparedCell>)| {
            format!("{} {}", escape::line(workload), answer::cells_in_words(cells))
        };
        let cells = terms::named(workloads.iter().map(cells).collect(), WORKLOADS_MAX, "; ");
        format!("not measured by {}: {cells}", label(lacking))
    };
    labels.iter().map(line).collect()
}

/// Leaves out lines that were there before: a run that did not complete is in the tables of all metrics.
fn once(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    lines.filter(|line| seen.insert(line.clone())).collect()
}

/// Returns what a comparison of all labels with the base begins with; nothing where there is none.
pub(crate) fn answers(runs: &Runs, options: &Options, base: Option<&str>) -> Vec<String> {
    let compared = || {
        let (base, new) = base_and_new(runs.clone(), base, &[]).ok()?;
        let (new, others) = new.split_first()?;
        let (new, others) = (new.clone(), others.to_vec());
        let (metric, also, latest) = (options.metric, options.also.clone(), options.latest);
        let floor = FLOOR;
        let of = Question { base, new, others, metric, also, floor, latest, ..Question::default() };
        let contrasts = of.all_contrasts(runs).ok()?;
        let rows = complete_rows(&contrasts, &of);
        rows.iter()
            .any(|rows| has_table(rows))
            .then(|| answer(&rows, Several::among(&rows, &of), &of))
    };
    compared().unwrap_or_default()
}

fn has_table(rows: &[ComparedCell]) -> bool {
    let is_told =
        |row: &ComparedCell| row.ratio.is_some() || row.verdict == Compared::NotComparable;
    rows.iter().any(is_told) || crashed(rows[0].table)
}

fn pages(rows: &[Vec<ComparedCell>], one_sided: &[String], of: &Question) -> Vec<Page> {
    let (found, bare): (Vec<&Vec<ComparedCell>>, Vec<&Vec<ComparedCell>>) =
        rows.iter().partition(|rows| has_table(rows));
    let mut pages: Vec<Page> = found.iter().map(|rows| page(rows[0].table, rows, of)).collect();
    let Some(last) = pages.last_mut() else { return pages };
    // Workloads without a table of their own.
    let is_listed = |row: &&ComparedCell| is_for_people(of.format) && row.lacking_label().is_none();
    let without = bare.iter().copied().flatten().filter(is_listed);
    let without = without.filter_map(ComparedCell::lack_in_words);
    last.below.extend(once(without.chain(one_sided.to_vec())));
    if !is_for_people(of.format) {
        pages.extend(bare.iter().map(|rows| page(rows[0].table, rows, of)));
    }
    pages
}

/// Files have a row of every cell; people get a list of those that one label lacks.
fn is_for_people(format: Format) -> bool {
    matches!(format, Format::Text | Format::Markdown)
}

fn page(table: &WorkloadTable, rows: &[ComparedCell], of: &Question) -> Page {
    let how = if table.metric.higher_is_better() { "new/base" } else { "base/new" };
    let labels = rows[0].labels;
    let shown = |row: &&ComparedCell| !is_for_people(of.format) || row.lacking_label().is_none();
    let rows: Vec<&ComparedCell> = rows.iter().filter(shown).collect();
    let (related, without): (Vec<&ComparedCell>, Vec<&ComparedCell>) =
        rows.iter().partition(|row| row.ratio.is_some());
    let asked_for = related.iter().any(|row| row.is_asked_for());
    let asked_for = asked_for.then(|| explain_asked_for(table.metric));
    let opposite = related.iter().filter_map(|row| row.explain_opposite());
    let whats = without.iter().chain(&related).filter_map(|row| row.lack_in_words());
    let imported = rows.iter().flat_map(|row| row.cells).flatten().any(TableCell::is_imported);
    let apart = if imported { IMPORTED_APART } else { APART };
    let apart = rows.iter().any(|row| row.is_apart()).then(|| apart.to_owned());
    let lines = asked_for.into_iter().chain(whats).chain(opposite).chain(apart).collect();
    let title = format!(
        "{}: {} of {} against {}, medians; ratio {how} over all pairs of runs: above 1 is better",
        escape::line(table.workload),
        table.metric.name(),
        label(labels[1]),
        label(labels[0]),
    );
    Page::new(title, sheet(table, labels, rows, (how, of.floor)), lines).footed(table)
}

fn sheet(
    table: &WorkloadTable,
    labels: [&str; 2],
    rows: Vec<&ComparedCell>,
    (how, floor): (&str, f64),
) -> Sheet {
    // A table has no line of a label that has not measured its workload.
    let head = |of: &str| {
        let at = table.lines.iter().position(|line| line.label == of);
        at.map_or_else(|| label(of), |at| marked(table, at))
    };
    let values = rows.iter().flat_map(|row| [row.median(0), row.median(1)]).flatten();
    let decimals = table.metric.decimals(values);
    let bounds = |row: &ComparedCell| row.ratio.as_ref()?.bounds();
    let shown = |value| table.metric.page_value(value, decimals);
    Rows::new(rows)
        .shown("clients", |row| row.column.to_string())
        .place_and_metric(table.workload, table.metric, |row| row.column)
        .filed("base", |_| labels[0])
        .filed("new", |_| labels[1])
        .both(&head(labels[0]), "base_value", |row| row.median(0).map(shown))
        .both(&head(labels[1]), "new_value", |row| row.median(1).map(shown))
        .shown("runs", |row| match row.runs() {
            [one, other] if one == other => one.to_string(),
            [one, other] => format!("{one}:{other}"),
        })
        .filed("base_runs", |row| row.runs()[0])
        .filed("new_runs", |row| row.runs()[1])
        .both(how, "ratio", |row| {
            let ratio = row.ratio.as_ref()?.known_estimate()?;
            Some((ratio, small_number(ratio, 3)))
        })
        .text("95 % interval", |row| row.ratio.as_ref()?.interval())
        .filed("ratio_low", |row| bounds(row).map(|(low, _)| low))
        .filed("ratio_high", |row| bounds(row).map(|(_, high)| high))
        .filed("p", |row| row.ratio.as_ref().map(|ratio| ratio.shift.p))
        .shown("p", |row| row.ratio.as_ref().map(|ratio| p_text(ratio.p)))
        .filed("p_corrected", |row| row.ratio.as_ref().map(|ratio| ratio.p))
        .filed("in_blocks", |row| row.ratio.as_ref().is_some_and(|ratio| ratio.blocks))
        .both("verdict", "verdict", |row| row.verdict.to_string())
        .filed("notes", |row| codes(table, &[0, 1], &row.column))
        .filed("sentence", |row| answer::cell_sentence(row, floor))
        .sheet()
}

#[cfg(test)]
mod tests {
    use super::super::metric::Metric;
    use super::*;
    use crate::summary::Summary;

    #[test]
    fn files_have_a_row_of_every_cell_when_a_workload_has_no_ratio() {
        let step = |workload: &str, label: &str, qps: f64| {
            let mut step = Summary::sound();
            workload.clone_into(&mut step.workload.name);
            label.clone_into(&mut step.label);
            step.totals.qps = qps;
            step
        };
        let cells = [
            ("both", "old", 1.0),
            ("both", "new", 1.0),
            ("stopped", "old", 1.0),
            ("stopped", "new", 0.0),
            ("alone", "old", 1.0),
            ("unmeasured", "new", 1.0),
        ];
        let steps: Vec<Summary> =
            cells.into_iter().map(|(workload, label, qps)| step(workload, label, qps)).collect();
        let steps: Vec<&Summary> = steps.iter().collect();
        let [base, new] = ["old", "new"].map(str::to_owned);
        let of = Question { base, new, format: Format::Junit, ..Question::default() };
        let text = compare(&steps, &of).expect("a comparison").text;
        assert_eq!(text.matches("<testcase").count(), 4, "{text}");
        assert_eq!(text.matches("of new against old").count(), 4, "{text}");
    }

    #[test]
    fn answer_names_the_metric_when_a_median_is_0() {
        let step = |label: &str, repeat_index: u32, failed: u64| {
            let mut step = Summary::sound();
            label.clone_into(&mut step.label);
            (step.plan.repeats, step.plan.repeat_index) = (6, repeat_index);
            step.latency.failed.count = failed;
            step
        };
        let both = |at| [step("old", at, 0), step("new", at, 5000)];
        let steps: Vec<Summary> = (1..=6).flat_map(both).collect();
        let steps: Vec<&Summary> = steps.iter().collect();
        let ([base, new], metric) = (["old", "new"].map(str::to_owned), Metric::ERROR_SHARE);
        let of = Question { base, new, metric, ..Question::default() };
        let worse = compare(&steps, &of).expect("a comparison").worse;
        assert!(worse[0].starts_with("failed ops 0"), "{worse:?}");
    }

    #[test]
    fn answer_has_all_digits_of_the_floor_when_it_is_no_whole_percent() {
        let step = |label: &str, repeat_index: u32| {
            let mut step = Summary::sound();
            label.clone_into(&mut step.label);
            (step.plan.repeats, step.plan.repeat_index) = (6, repeat_index);
            step
        };
        let both = |at| [step("old", at), step("new", at)];
        let steps: Vec<Summary> = (1..=6).flat_map(both).collect();
        let steps: Vec<&Summary> = steps.iter().collect();
        for (floor, shown) in [(0.02, "2 %"), (0.025, "2.5 %"), (0.07, "7 %")] {
            let [base, new] = ["old", "new"].map(str::to_owned);
            let of = Question { base, new, floor, ..Question::default() };
            let answer = compare(&steps, &of).expect("a comparison").answer;
            assert!(answer[0].starts_with(&format!("no difference above {shown}")), "{answer:?}");
        }
    }

    #[test]
    fn cell_is_not_known_when_both_labels_are_too_short_for_a_percentile() {
        let step = |label: &str, clients: u32, count: u64| {
            let mut step = Summary::sound();
            label.clone_into(&mut step.label);
            step.plan.clients = clients;
            step.latency.service.count = count;
            step
        };
        let cells = [("old", 1, 600_000), ("new", 1, 600_000), ("old", 8, 500), ("new", 8, 100)];
        let steps: Vec<Summary> =
            cells.into_iter().map(|(label, clients, count)| step(label, clients, count)).collect();
        let steps: Vec<&Summary> = steps.iter().collect();
        let [base, new] = ["old", "new"].map(str::to_owned);
        let metric: Metric = "p99".parse().expect("a metric");
        let of = Question { base, new, metric, ..Question::default() };
        let found = compare(&steps, &of).expect("a comparison");
        assert_eq!(found.unknown.len(), 1, "{found:?}");
        assert!(found.unknown[0].contains(" 8 clients"), "{found:?}");
    }
}
