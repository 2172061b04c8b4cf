//! A workload's numbers relative to one label.

use super::super::compare::ASKED_FOR;
use super::super::pivot::{Cell, Table};
use super::super::{Options, baseline, caption, text};
use crate::error::Result;

/// The ratios of a workload, and what is to be said of those that it does not have.
pub(super) struct Ratios<'a> {
    /// The columns in which another label has a ratio; none where there is none.
    pub(super) table: Option<Table<'a>>,
    pub(super) remarks: Vec<String>,
}

impl<'a> Ratios<'a> {
    /// To the label that was asked for, else to the first one that was measured.
    pub(super) fn of(plain: &Table<'a>, all: &[Table], options: &Options) -> Result<Ratios<'a>> {
        let first = || plain.lines.iter().find(|line| !line.steps.is_empty()).map(|l| l.label);
        let nothing = Ratios { table: None, remarks: Vec::new() };
        let Some(base) = options.baseline.as_deref().or_else(first) else { return Ok(nothing) };
        if plain.lines.iter().all(|line| line.label == base) {
            return Ok(nothing);
        }
        let shown = text::label(base);
        let Some(mut table) = baseline::related(plain, all, base)? else {
            let remark = format!("No ratios: {shown} was not measured here.");
            return Ok(Ratios { table: None, remarks: vec![remark] });
        };
        let asked_for = (table.columns.len() < plain.columns.len()).then(|| ASKED_FOR.to_owned());
        if table.columns.is_empty() {
            return Ok(Ratios { table: None, remarks: asked_for.into_iter().collect() });
        }
        // Below ratios stands besides what stands below the plain numbers already.
        let known = caption::below(plain).len();
        let mut remarks: Vec<String> = caption::below(&table).into_iter().skip(known).collect();
        remarks.extend(asked_for);
        let alone = keep(&mut table, base);
        if table.columns.is_empty() {
            let remark = format!("No ratios: no other label has a number where {shown} has one.");
            remarks.push(remark);
            return Ok(Ratios { table: None, remarks });
        }
        if !alone.is_empty() {
            remarks.push(format!("no other label than {shown} has a cell at {}", alone.join(", ")));
        }
        Ok(Ratios { table: Some(table), remarks })
    }
}

/// Keeps the columns in which another label has a ratio, and names those in which only the
/// baseline has one.
fn keep(table: &mut Table, base: &str) -> Vec<String> {
    let related = |cell: &Option<Cell>| cell.as_ref().is_some_and(|c| c.relative.is_some());
    let has = |at: usize, of_base: bool| {
        let lines = table.lines.iter().filter(|line| (line.label == base) == of_base);
        lines.filter_map(|line| line.cells.get(at)).any(related)
    };
    let kept: Vec<bool> = (0..table.columns.len()).map(|at| has(at, false)).collect();
    let columns = table.columns.iter().enumerate();
    let alone = columns.filter(|(at, _)| !has(*at, false) && has(*at, true));
    let alone = alone.map(|(_, column)| column.to_string()).collect();
    table.keep(&kept);
    alone
}
