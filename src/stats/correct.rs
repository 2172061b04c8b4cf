//! Many tests at once: probabilities corrected, and looks after more runs counted, so that a table of
//! cells does not find by number what is not there.

/// Corrects by Holm: the chance of one false finding among all stays below what is asked ("A simple
/// sequentially rejective multiple test procedure", Scand. J. Statist. 6, 1979).
pub(crate) fn holm(p: &[f64]) -> Vec<f64> {
    let mut corrected = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, at) in ascending(p).into_iter().enumerate() {
        let factor = (p.len() - rank) as f64;
        largest = largest.max((p[at] * factor).min(1.0));
        corrected[at] = largest;
    }
    corrected
}

/// Corrects by Benjamini and Hochberg: of what is found, the expected share of false findings stays
/// below what is asked ("Controlling the false discovery rate", J. R. Statist. Soc. B 57, 1995).
pub(crate) fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut corrected = vec![1.0; p.len()];
    let mut smallest = 1.0_f64;
    for (rank, at) in ascending(p).into_iter().enumerate().rev() {
        let factor = p.len() as f64 / (rank + 1) as f64;
        smallest = smallest.min(p[at] * factor);
        corrected[at] = smallest;
    }
    corrected
}

fn ascending(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    order
}

/// Fewer repeats decide next to nothing.
const REPEATS_LEAST: u32 = 6;
/// Fewer than these cannot find anything: three against three have p 0.1 at least.
const FINDING_LEAST: u32 = 4;

/// Returns the repeats of the next look: twice as many, so that the looks stay few.
pub(crate) fn next_look(repeats: u32) -> u32 {
    repeats.saturating_mul(2).max(REPEATS_LEAST)
}

/// Counts the looks from the first number of repeats up to the last, both included: with p times
/// their number (Bonferroni) they find what is not there no more often than a single one.
pub(crate) fn looks(first: u32, last: u32) -> u32 {
    let (mut at, mut looks) = (first, 0);
    loop {
        looks += u32::from(at >= FINDING_LEAST);
        if at >= last {
            return looks.max(1);
        }
        at = next_look(at).min(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: &[f64], other: &[f64]) {
        let same = one.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(one.len() == other.len() && same, "{one:?} {other:?}");
    }

    // p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") and "BH" of R.
    #[test]
    fn corrections_are_those_of_r() {
        let p = [0.01, 0.04, 0.03, 0.005];
        close(&holm(&p), &[0.03, 0.06, 0.06, 0.02]);
        close(&benjamini_hochberg(&p), &[0.02, 0.04, 0.04, 0.02]);
    }

    #[test]
    fn one_test_and_none_need_no_correction() {
        close(&holm(&[0.04]), &[0.04]);
        close(&benjamini_hochberg(&[0.04]), &[0.04]);
        assert!(holm(&[]).is_empty() && benjamini_hochberg(&[]).is_empty());
    }

    #[test]
    fn doublings_are_counted_up_to_the_last() {
        let counted = |first: u32, last: u32, count: u32| {
            assert_eq!(looks(first, last), count, "{first} to {last}");
        };
        // 6 12 24, then 4 8 16 24, and 2 6 12 24, of which the first finds nothing.
        counted(6, 24, 3);
        counted(4, 24, 4);
        counted(2, 24, 3);
        counted(0, 24, 3);
        counted(24, 24, 1);
        counted(30, 24, 1);
        counted(1, 1, 1);
        counted(6, 7, 2);
        counted(6, u32::MAX, 31);
    }
}
