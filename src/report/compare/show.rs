//! A comparison written out: tables, records, and a line for a gate.

use super::super::layout::{at_clients, below, codes, marked, record};
use super::super::number::number;
use super::super::page::{self, Body, Field, Grid, Page};
use super::super::pivot::Table;
use super::super::{Doubt, escape, text};
use super::{ASKED_FOR, Pair, Question, Verdict, absent};
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
        Verdict::NotShown | Verdict::SlightlyBetter | Verdict::SlightlyWorse => {
            format!("{}, {}", pair.verdict, found(pair))
        }
        Verdict::Better | Verdict::Worse | Verdict::Same => return None,
    };
    let labels: Vec<String> = table.lines.iter().map(|line| line.label.to_owned()).collect();
    let shown: Vec<String> = labels.iter().rev().map(|label| text::label(label)).collect();
    Some(Doubt {
        workload: table.workload.to_owned(),
        clients: pair.column.clients,
        rate: pair.column.rate,
        why: format!("{} at {}: {why}", shown.join(" against "), at_clients(&pair.column)),
        labels,
    })
}

fn p_text(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { number(p, 3) }
}

pub(super) fn page(table: &Table, pairs: &[Pair], question: &Question, looks: u32) -> Page {
    let label =
        |at: usize| table.lines.get(at).map_or_else(String::new, |line| text::label(line.label));
    let (base, new) = (label(0), label(1));
    let decimals = table.metric.decimals(pairs.iter().flat_map(|pair| [pair.base, pair.new]));
    let rows = pairs.iter().map(|pair| {
        let (ratio, interval) = ratio_text(&pair.shift);
        let runs = if pair.runs.0 == pair.runs.1 {
            pair.runs.0.to_string()
        } else {
            format!("{}:{}", pair.runs.0, pair.runs.1)
        };
        vec![
            pair.column.to_string(),
            number(pair.base, decimals),
            number(pair.new, decimals),
            runs,
            ratio,
            interval,
            p_text(pair.p),
            pair.verdict.to_string(),
        ]
    });
    let how = if table.metric.higher_is_better() { "new/base" } else { "base/new" };
    let mut head: Vec<String> =
        ["clients".to_owned(), marked(table, 0), marked(table, 1), "runs".to_owned()].to_vec();
    head.extend([how, "95 % interval", "p", "verdict"].map(str::to_owned));
    let mut lines = vec![method(pairs, question.floor, looks)];
    if pairs.iter().any(|pair| pair.asked_for) {
        lines.push(ASKED_FOR.to_owned());
    }
    lines.extend(absent(table, question));
    lines.extend(below(table));
    Page {
        title: vec![format!(
            "{}: {} of {new} against {base}, medians; ratio {how}: above 1 is better",
            escape::line(table.workload),
            table.metric.name()
        )],
        body: Body::Grid(Grid { head, texts: vec![5, 7], rows: rows.collect(), ..Grid::default() }),
        below: lines,
        records: pairs.iter().map(|pair| fields(table, pair)).collect(),
    }
}

/// What stands behind the numbers.
fn method(pairs: &[Pair], floor: f64, looks: u32) -> String {
    let blocks = match pairs.iter().filter(|pair| pair.blocks).count() {
        0 => "runs as independent samples (Mann-Whitney)",
        n if n == pairs.len() => "interleaved runs in blocks (Wilcoxon signed ranks)",
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

fn fields(table: &Table, pair: &Pair) -> page::Record {
    let label = |at: usize| table.lines.get(at).map_or("", |line| line.label).to_owned();
    let bound = |of: fn(&(f64, f64)) -> f64| pair.shift.interval.as_ref().map(|i| of(i).exp());
    let mut record = record(table, &pair.column);
    record.extend([
        ("base", Field::Text(label(0))),
        ("new", Field::Text(label(1))),
        ("base_value", Field::Number(Some(pair.base))),
        ("new_value", Field::Number(Some(pair.new))),
        ("base_runs", Field::Count(pair.runs.0 as u64)),
        ("new_runs", Field::Count(pair.runs.1 as u64)),
        ("ratio", Field::Number(Some(pair.shift.estimate.exp()))),
        ("ratio_low", Field::Number(bound(|i| i.0))),
        ("ratio_high", Field::Number(bound(|i| i.1))),
        ("p", Field::Number(Some(pair.shift.p))),
        ("p_corrected", Field::Number(Some(pair.p))),
        ("in_blocks", Field::Text(pair.blocks.to_string())),
        ("verdict", Field::Text(pair.verdict.to_string())),
        codes(table, &[0, 1], &pair.column),
    ]);
    record
}
