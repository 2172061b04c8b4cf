//! Lists of numbers that make a step each: `64`, `1,2,4`, `8..256` (doubling; the end is always
//! a step), `8..64+8` (steps of eight); lists mix them, duplicates are dropped, the result
//! ascends.

/// Steps of one sweep at most.
const STEPS_MAX: usize = 10_000;

/// Reads a list; `number` reads one of its numbers, which is above 0.
pub(super) fn parse(
    text: &str,
    number: impl Fn(&str) -> Result<u64, String>,
) -> Result<Vec<u64>, String> {
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
    number: impl Fn(&str) -> Result<u64, String>,
    numbers: &mut Vec<u64>,
) -> Result<(), String> {
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
