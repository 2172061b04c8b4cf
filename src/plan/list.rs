//! Lists of numbers that make a step each: `64`, `1,2,4`, `8..256` (doubling; the end is always
//! a step), `8..64+8` (steps of eight); lists mix them, duplicates are dropped, the result
//! ascends.

use crate::error::{Error, Result};

/// Steps of one list at most.
const STEPS_MAX: usize = 10_000;

/// Steps of one invocation at most: two weeks of them.
const TOTAL_MAX: u64 = 20_000;

/// Refuses more steps than anybody waits for: lists multiply.
pub(super) fn check_total(steps: u64) -> Result<()> {
    if steps <= TOTAL_MAX {
        return Ok(());
    }
    Err(Error::usage(format!("{steps} steps are more than {TOTAL_MAX}"))
        .hint("fewer numbers of clients, rates or repeats"))
}

/// Reads a list; `number` reads one of its numbers, which is above 0.
pub(super) fn parse(
    text: &str,
    number: impl Fn(&str) -> std::result::Result<u64, String>,
) -> std::result::Result<Vec<u64>, String> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let part = part.trim();
        match part.split_once("..") {
            Some((from, to)) => range(part, (from, to), &number, &mut numbers)?,
            None => numbers.push(number(part)?),
        }
        if numbers.len() > STEPS_MAX {
            return Err(format!("'{text}' makes more than {STEPS_MAX} steps"));
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

fn range(
    part: &str,
    (from, to): (&str, &str),
    number: impl Fn(&str) -> std::result::Result<u64, String>,
    numbers: &mut Vec<u64>,
) -> std::result::Result<(), String> {
    let (end, step) = match to.split_once('+') {
        Some((to, step)) => (to, Some(number(step)?)),
        None => (to, None),
    };
    let (first, last) = (number(from)?, number(end)?);
    if first > last {
        return Err(format!("'{part}' runs backwards; {}..{}?", end.trim(), from.trim()));
    }
    if step.is_some_and(|step| (last - first) / step > STEPS_MAX as u64) {
        return Err(format!("'{part}' makes more than {STEPS_MAX} steps"));
    }
    let mut at = first;
    while at < last {
        numbers.push(at);
        at = match step {
            Some(step) => at.saturating_add(step),
            None => at.saturating_mul(2),
        };
    }
    numbers.push(last);
    Ok(())
}
