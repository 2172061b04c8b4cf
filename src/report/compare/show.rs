//! A comparison written out: tables, records, and a line for a gate.

use super::super::layout::{at_clients, below, codes, marked, record};
use super::super::number::number;
use super::super::page::{self, Body, Field, Grid, Page};
use super::super::pivot::{Column, Table};
use super::super::{Doubt, escape, text};
use super::{ASKED_FOR, Pair, Verdict, Without};
use crate::stats::Shift;

fn ratio_text(shift: &Shift) -> (String, String) {
    let interval = shift.interval.map_or_else(
        || "-".to_owned(),
        |(low, high)| format!("{} to {}", number(low.exp(), 3), number(high.exp(), 3)),
    );
    (number(shift.estimate.exp(), 3), interval)
}

/// Ratio, interval and p of a pair in words.
fn found(pair: &Pair) -> String {
    let (ratio, interval) = ratio_text(&pair.shift);
    format!("{ratio} ({interval}), p {}", p_text(pair.p))
}

/// Whether a change is more than chance, as far as that is known.
pub(in super::super) fn chance(what: &str, pair: &Pair) -> String {
    let (one, other) = pair.runs;
    match pair.verdict {
        Verdict::TooFew if one.max(other) == 1 => {
            format!("one run each: whether {what} changed by more than chance is not known")
        }
        Verdict::TooFew => {
            format!(
                "{one} and {other} runs: too few to know whether {what} changed by more than chance"
            )
        }
        _ => format!("{what} new/base as `loadgen compare` has it: {}", found(pair)),
    }
}

/// A pair in one line, for a gate.
pub(super) fn line(table: &Table, pair: &Pair) -> String {
    let why = match pair.verdict {
        Verdict::TooFew => format!("{} and {} repeats", pair.runs.0, pair.runs.1),
        _ => found(pair),
    };
    format!(
        "{} at {}: {} {why}",
        escape::line(table.workload),
        at_clients(&pair.column),
        table.metric.name()
    )
}

/// A cell of both labels that is not decided.
pub(super) fn doubt(table: &Table, pair: &Pair) -> Option<Doubt> {
    let why = match pair.verdict {
        Verdict::TooFew => format!("{}, {} and {}", pair.verdict, pair.runs.0, pair.runs.1),
        // More runs tell whether it matters, too.
        Verdict::NotShown
        | Verdict::Inconclusive
        | Verdict::SlightlyBetter
        | Verdict::SlightlyWorse => format!("{}, {}", pair.verdict, found(pair)),
        Verdict::Incomplete => pair.missing.clone()?,
        Verdict::Better | Verdict::Worse | Verdict::Same => return None,
    };
    let labels: Vec<String> = table.lines.iter().map(|line| line.label.to_owned()).collect();
    let shown: Vec<String> = labels.iter().rev().map(|label| text::label(label)).collect();
    Some(Doubt {
        workload: table.workload.to_owned(),
        cell: pair.column,
        why: format!("{} at {}: {why}", shown.join(" against "), at_clients(&pair.column)),
        labels,
    })
}

/// A cell that one of both labels has not measured.
pub(super) fn absence(table: &Table, cell: &Without, labels: [&str; 2]) -> Option<Doubt> {
    let not_measured = cell.base.is_none() || cell.new.is_none();
    not_measured.then(|| Doubt {
        workload: table.workload.to_owned(),
        labels: labels.map(str::to_owned).into(),
        cell: cell.column,
        why: cell.what.clone(),
    })
}

fn p_text(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { number(p, 3) }
}

/// A line of the table.
struct Row<'p> {
    column: Column,
    base: Option<f64>,
    new: Option<f64>,
    runs: (usize, usize),
    /// None for a cell without a ratio.
    pair: Option<&'p Pair>,
    verdict: String,
}

impl Row<'_> {
    fn of_pair(pair: &Pair) -> Row<'_> {
        Row {
            column: pair.column,
            base: Some(pair.base),
            new: Some(pair.new),
            runs: pair.runs,
            pair: Some(pair),
            verdict: pair.verdict.to_string(),
        }
    }

    fn without(cell: &Without) -> Row<'_> {
        Row {
            column: cell.column,
            base: cell.base,
            new: cell.new,
            runs: cell.runs,
            pair: None,
            verdict: cell.verdict().to_owned(),
        }
    }

    fn cells(&self, decimals: usize) -> Vec<String> {
        let nothing = || text::NOTHING.to_owned();
        let (ratio, interval) =
            self.pair.map_or_else(|| (nothing(), nothing()), |pair| ratio_text(&pair.shift));
        let runs = if self.runs.0 == self.runs.1 {
            self.runs.0.to_string()
        } else {
            format!("{}:{}", self.runs.0, self.runs.1)
        };
        vec![
            self.column.to_string(),
            self.base.map_or_else(nothing, |base| number(base, decimals)),
            self.new.map_or_else(nothing, |new| number(new, decimals)),
            runs,
            ratio,
            interval,
            self.pair.map_or_else(nothing, |pair| p_text(pair.p)),
            self.verdict.clone(),
        ]
    }
}

pub(super) fn page(table: &Table, pairs: &[Pair], without: &[Without]) -> Page {
    let label =
        |at: usize| table.lines.get(at).map_or_else(String::new, |line| text::label(line.label));
    let (base, new) = (label(0), label(1));
    let mut rows: Vec<Row> = pairs.iter().map(Row::of_pair).collect();
    rows.extend(without.iter().map(Row::without));
    rows.sort_by_key(|row| row.column);
    let values = rows.iter().flat_map(|row| [row.base, row.new]).flatten();
    let decimals = table.metric.decimals(values);
    let how = if table.metric.higher_is_better() { "new/base" } else { "base/new" };
    let mut head: Vec<String> =
        ["clients".to_owned(), marked(table, 0), marked(table, 1), "runs".to_owned()].to_vec();
    head.extend([how, "95 % interval", "p", "verdict"].map(str::to_owned));
    let mut lines = Vec::new();
    if pairs.iter().any(|pair| pair.asked_for) {
        lines.push(ASKED_FOR.to_owned());
    }
    lines.extend(without.iter().map(|cell| cell.what.clone()));
    lines.extend(pairs.iter().filter_map(|pair| pair.missing.clone()));
    lines.extend(below(table));
    Page {
        title: vec![format!(
            "{}: {} of {new} against {base}, medians; ratio {how}: above 1 is better",
            escape::line(table.workload),
            table.metric.name()
        )],
        body: Body::Grid(Grid {
            head,
            texts: vec![5, 7],
            rows: rows.iter().map(|row| row.cells(decimals)).collect(),
            ..Grid::default()
        }),
        below: lines,
        records: rows.iter().map(|row| fields(table, row)).collect(),
    }
}

/// What stands behind the numbers of all tables.
pub(super) fn method<'p>(pairs: impl Iterator<Item = &'p Pair>, floor: f64, looks: u32) -> String {
    let (in_blocks, alone): (Vec<&Pair>, Vec<&Pair>) = pairs.partition(|pair| pair.blocks);
    let blocks = match (in_blocks.is_empty(), alone.is_empty()) {
        (true, _) => "runs as independent samples (Mann-Whitney)",
        (false, true) => "interleaved runs in blocks (Wilcoxon signed ranks)",
        _ => "runs as samples (Mann-Whitney) or, where interleaved, in blocks (Wilcoxon)",
    };
    let looks = match looks {
        1 => String::new(),
        looks => format!(", times the {looks} looks of a comparison that goes on while undecided"),
    };
    format!(
        "ratio and interval: Hodges-Lehmann on logarithms; {blocks}; p corrected by Holm within the \
         workload and Benjamini-Hochberg over all{looks}; differences below {} % do not matter; intervals \
         are not corrected",
        number(floor * 100.0, usize::from(floor < 0.01))
    )
}

fn fields(table: &Table, row: &Row) -> page::Record {
    let label = |at: usize| table.lines.get(at).map_or("", |line| line.label).to_owned();
    let of = |of: fn(&Pair) -> Option<f64>| Field::Number(row.pair.and_then(of));
    let mut record = record(table, &row.column);
    record.extend([
        ("base", Field::Text(label(0))),
        ("new", Field::Text(label(1))),
        ("base_value", Field::Number(row.base)),
        ("new_value", Field::Number(row.new)),
        ("base_runs", Field::Count(row.runs.0 as u64)),
        ("new_runs", Field::Count(row.runs.1 as u64)),
        ("ratio", of(|pair| Some(pair.shift.estimate.exp()))),
        ("ratio_low", of(|pair| pair.shift.interval.map(|i| i.0.exp()))),
        ("ratio_high", of(|pair| pair.shift.interval.map(|i| i.1.exp()))),
        ("p", of(|pair| Some(pair.shift.p))),
        ("p_corrected", of(|pair| Some(pair.p))),
        ("in_blocks", Field::Bool(row.pair.is_some_and(|pair| pair.blocks))),
        ("verdict", Field::Text(row.verdict.clone())),
        codes(table, &[0, 1], &row.column),
    ]);
    record
}
