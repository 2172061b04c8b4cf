//! `--rate`: `10k`, `1k,2k`, `1k..16k` (doubling), `1k..4k+500`, as `--clients` has them.

use super::list;
use super::units::parse_thousandths;

/// Ops a second at most: a limit on nonsense.
pub(super) const RATE_MAX: u64 = 10_000_000;
/// Rates are read in thousandths.
const FINE: u64 = 1_000;

/// Reads the value of `--rate`: ops a second, down to one in a thousand seconds.
///
/// # Errors
///
/// The text says what is wrong with the value; the caller adds the flag's name.
pub fn parse(text: &str) -> Result<Vec<f64>, String> {
    let rates = list::parse(text, number)?;
    Ok(rates.into_iter().map(|thousandths| thousandths as f64 / FINE as f64).collect())
}

fn number(text: &str) -> Result<u64, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("a rate is missing; 10k, 1k,2k, 1k..16k or 1k..4k+500".to_owned());
    }
    match parse_thousandths(text)? {
        0 => Err("0 ops a second do nothing".to_owned()),
        n if n > RATE_MAX * FINE => Err(format!("'{text}' is more than {RATE_MAX} ops a second")),
        n => Ok(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_are_read_as_clients_are() {
        for (text, expected) in [
            ("10k", vec![10_000.0]),
            ("1k,2k", vec![1000.0, 2000.0]),
            ("1k..16k", vec![1000.0, 2000.0, 4000.0, 8000.0, 16_000.0]),
            ("1k..2.5k+500", vec![1000.0, 1500.0, 2000.0, 2500.0]),
            ("0.5..2", vec![0.5, 1.0, 2.0]),
            ("0.001", vec![0.001]),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "0", "-1", "x", "1k..", "2k..1k", "1e3", "0.0001", "11M", "NaN", "1..2+0"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(thousandths in prop::collection::btree_set(1_u64..=RATE_MAX * FINE, 1..20)) {
            let rates: Vec<f64> = thousandths.iter().map(|n| *n as f64 / FINE as f64).collect();
            let text: Vec<String> = rates.iter().map(f64::to_string).collect();
            prop_assert_eq!(parse(&text.join(",")), Ok(rates));
        }

        #[test]
        fn any_text_makes_a_bounded_ascending_list(text in "[0-9.,+kMGi ]{0,40}|\\PC{0,30}") {
            if let Ok(rates) = parse(&text) {
                prop_assert!(!rates.is_empty() && rates.len() <= 20_001);
                prop_assert!(rates.windows(2).all(|pair| pair[0] < pair[1]));
                prop_assert!(rates.iter().all(|rate| *rate > 0.0 && *rate <= RATE_MAX as f64));
            }
        }
    }
}
