//! Ratios to one label, turned so that higher is always better.

use std::collections::BTreeSet;

use super::escape::clip;
use super::metric::Metric;
use super::table::Table;
use crate::error::{Error, Result};

/// Labels that an error lists.
const NAMED_MAX: usize = 20;
/// Longest label in an error, characters.
const LABEL_MAX: usize = 60;
/// Said below a table in which a number has no ratio.
pub(crate) const NO_RATIO: &str = "- among the ratios: it would be a division by 0";

/// Fills the cells' ratios: value/base for rates, base/value for times and costs. Cells of
/// columns that the baseline lacks get none, nor do those that would be divided by 0.
pub(crate) fn relate(tables: &mut [Table], label: &str) -> Result<()> {
    known(tables, "--baseline", label)?;
    for table in tables {
        let base = table.line(label).map_or(&[][..], |line| &line.cells);
        let base: Vec<Option<f64>> =
            base.iter().map(|cell| Some(cell.as_ref()?.spread.median)).collect();
        for line in &mut table.lines {
            for (cell, base) in line.cells.iter_mut().zip(&base) {
                if let (Some(cell), Some(base)) = (cell, base) {
                    cell.relative = speed(&table.metric, *base, cell.spread.median);
                }
            }
        }
        table.baseline = Some(label.to_owned());
    }
    Ok(())
}

/// Returns the ratio of a value to its base, turned so that higher is better.
pub(crate) fn speed(metric: &Metric, base: f64, value: f64) -> Option<f64> {
    if metric.higher_is_better() { ratio(value, base) } else { ratio(base, value) }
}

/// A ratio; two zeros (no errors here, none there) are equal. There is none of a division by 0.
pub(crate) fn ratio(over: f64, under: f64) -> Option<f64> {
    let ratio = if over == 0.0 && under == 0.0 { 1.0 } else { over / under };
    ratio.is_finite().then_some(ratio)
}

/// Refuses a label that is not there.
pub(crate) fn known(tables: &[Table], flag: &str, label: &str) -> Result<()> {
    if tables.iter().any(|table| table.line(label).is_some()) {
        return Ok(());
    }
    Err(unknown(tables, flag, label))
}

fn unknown(tables: &[Table], flag: &str, label: &str) -> Error {
    let labels: BTreeSet<&str> =
        tables.iter().flat_map(|table| &table.lines).map(|line| line.label).collect();
    let shown = |label: &str| format!("'{}'", clip(label, LABEL_MAX));
    let mut error = Error::usage(format!("{flag}: no label {} in these summaries", shown(label)));
    let distance = |one: &str, other: &str| {
        strsim::levenshtein(&clip(one, LABEL_MAX), &clip(other, LABEL_MAX))
    };
    let nearest = labels.iter().map(|known| (distance(label, known), known)).min();
    if let Some((distance, known)) = nearest
        && distance <= 1 + label.chars().count() / 3
    {
        error = error.hint(format!("did you mean {}?", shown(known)));
    }
    let more = if labels.len() > NAMED_MAX { ", …" } else { "" };
    let named: Vec<String> = labels.iter().take(NAMED_MAX).map(|label| shown(label)).collect();
    error.hint(format!("there are {}{more}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_equal_even_when_both_are_zero() {
        let ratios = [ratio(0.0, 0.0), ratio(3.0, 2.0), ratio(3.0, 0.0), ratio(f64::NAN, 1.0)];
        let shown = |ratio: Option<f64>| ratio.map_or_else(|| "none".to_owned(), |r| r.to_string());
        assert_eq!(ratios.map(shown), ["1", "1.5", "none", "none"]);
    }
}
