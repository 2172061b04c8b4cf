//! `--clients`: `64`, `1,2,4`, `8..256` (doubling; the end is always a step), `8..64+8` (steps
//! of eight); lists mix them, duplicates are dropped, the result ascends.

use super::units::parse_count;

/// Clients at most: a limit on nonsense, far above what a server takes.
pub const CLIENTS_MAX: u32 = 1_000_000;
/// Steps of one sweep at most.
const STEPS_MAX: usize = 10_000;

/// Reads the value of `--clients`.
pub fn parse(text: &str) -> Result<Vec<u32>, String> {
    let mut clients = Vec::new();
    for part in text.split(',') {
        let part = part.trim();
        match part.split_once("..") {
            Some((from, to)) => range(part, from, to, &mut clients)?,
            None => clients.push(number(part)?),
        }
        if clients.len() > STEPS_MAX {
            return Err(format!("'{text}' makes more than {STEPS_MAX} steps"));
        }
    }
    clients.sort_unstable();
    clients.dedup();
    Ok(clients)
}

fn range(part: &str, from: &str, to: &str, clients: &mut Vec<u32>) -> Result<(), String> {
    let (to, step) = match to.split_once('+') {
        Some((to, step)) => (to, Some(number(step)?)),
        None => (to, None),
    };
    let (from, to) = (number(from)?, number(to)?);
    if from > to {
        return Err(format!("'{part}' runs backwards; {to}..{from}?"));
    }
    if step.is_some_and(|step| (to - from) / step > STEPS_MAX as u32) {
        return Err(format!("'{part}' makes more than {STEPS_MAX} steps"));
    }
    let mut at = from;
    while at < to {
        clients.push(at);
        at = match step {
            Some(step) => at.saturating_add(step),
            None => at.saturating_mul(2),
        };
    }
    clients.push(to);
    Ok(())
}

fn number(text: &str) -> Result<u32, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("a number of clients is missing; 64, 1,2,4, 8..256 or 8..64+8".to_owned());
    }
    let n = parse_count(text)?;
    match u32::try_from(n) {
        Ok(0) => Err("0 clients do nothing".to_owned()),
        Ok(n) if n <= CLIENTS_MAX => Ok(n),
        _ => Err(format!("{n} clients are more than {CLIENTS_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_forms_of_the_contract() {
        for (text, expected) in [
            ("64", vec![64]),
            ("1,2,4", vec![1, 2, 4]),
            ("8..256", vec![8, 16, 32, 64, 128, 256]),
            ("8..200", vec![8, 16, 32, 64, 128, 200]),
            ("8..64+8", vec![8, 16, 24, 32, 40, 48, 56, 64]),
            ("8..20+8", vec![8, 16, 20]),
            ("8..8", vec![8]),
            ("4,1..4,2", vec![1, 2, 4]),
            ("1, 1k", vec![1, 1000]),
            ("1..3", vec![1, 2, 3]),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            ",",
            "0",
            "-1",
            "x",
            "8..",
            "..8",
            "256..8",
            "1..8+0",
            "8+8",
            "1..2..3",
            "1.5",
            "99999999999",
            "1..1000000+1",
            "1e3",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(text in ".{0,30}") {
            let _ = parse(&text);
        }

        #[test]
        fn both_ends_of_a_range_are_steps(from in 1_u32..1000, more in 0_u32..100_000) {
            let steps = parse(&format!("{from}..{}", from + more)).expect("a range");
            prop_assert_eq!(steps.first(), Some(&from));
            prop_assert_eq!(steps.last(), Some(&(from + more)));
            prop_assert!(steps.windows(2).all(|w| w[0] < w[1]));
        }
    }
}
