//! `--clients`: `64`, `1,2,4`, `8..256` (doubling; the end is always a step), `8..64+8` (steps
//! of eight); lists mix them, duplicates are dropped, the result ascends.

use super::list;
use super::units::parse_count;

/// Clients at most: a limit on nonsense, far above what a server takes.
pub const CLIENTS_MAX: u32 = 1_000_000;

/// Reads the value of `--clients`.
pub fn parse(text: &str) -> Result<Vec<u32>, String> {
    // The numbers fit: each was checked.
    let numbers = list::parse(text, number)?.into_iter();
    Ok(numbers.filter_map(|n| u32::try_from(n).ok()).collect())
}

fn number(text: &str) -> Result<u64, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("a number of clients is missing; 64, 1,2,4, 8..256 or 8..64+8".to_owned());
    }
    match parse_count(text)? {
        0 => Err("0 clients do nothing".to_owned()),
        n if n <= u64::from(CLIENTS_MAX) => Ok(n),
        n => Err(format!("{n} clients are more than {CLIENTS_MAX}")),
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
