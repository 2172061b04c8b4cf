//! Arrival queues of an open loop: a response time is that of so many of them.

use std::collections::BTreeSet;

use super::table::{Column, Line};
use crate::summary::{Summary, in_queues};

/// What a reader of a step's response time must know, where its arrivals came in several queues.
pub(crate) fn told(step: &Summary) -> Option<String> {
    let queues = step.plan.queues.filter(|queues| *queues > 1)?;
    Some(in_queues(queues, step.workload.spread))
}

/// Returns the numbers of queues in which a line differs from another one at the same columns.
pub(crate) fn differ(line: &Line, reference: &Line) -> Option<String> {
    let of = |line: &Line, column: Column| -> BTreeSet<u32> {
        let steps = line.steps.iter().filter(|step| step.cell() == column);
        steps.filter_map(|step| step.plan.queues).collect()
    };
    let columns: BTreeSet<Column> = line.steps.iter().map(|step| step.cell()).collect();
    let different = columns.into_iter().find_map(|column| {
        let (here, usual) = (of(line, column), of(reference, column));
        // What one of them does not know is no difference.
        let differ = !here.is_empty() && !usual.is_empty() && here != usual;
        differ.then_some((column, here, usual))
    });
    let words = |queues: BTreeSet<u32>| {
        queues.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
    };
    different.map(|(column, here, usual)| {
        format!(
            "arrivals in {} instead of {} queues at {column}: its response times are of another \
             kind of waiting",
            words(here),
            words(usual)
        )
    })
}
