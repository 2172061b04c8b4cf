//! Many tests at once: probabilities corrected so that a table of cells does not find by number
//! what is not there.

/// Holm's step-down correction: the chance of one false finding among all stays below what is
/// asked (S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist.
/// 6, 1979). In the order given.
pub(crate) fn holm(p: &[f64]) -> Vec<f64> {
    let mut corrected = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, at) in ascending(p).into_iter().enumerate() {
        let factor = (p.len() - rank) as f64;
        largest = largest.max(p.get(at).map_or(1.0, |p| (p * factor).min(1.0)));
        corrected[at] = largest;
    }
    corrected
}

/// Benjamini and Hochberg's correction: of what is found, the expected share of false findings
/// stays below what is asked ("Controlling the false discovery rate", J. R. Statist. Soc. B 57,
/// 1995). In the order given.
pub(crate) fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut corrected = vec![1.0; p.len()];
    let mut smallest = 1.0_f64;
    for (rank, at) in ascending(p).into_iter().enumerate().rev() {
        let factor = p.len() as f64 / (rank + 1) as f64;
        smallest = smallest.min(p.get(at).map_or(1.0, |p| p * factor));
        corrected[at] = smallest;
    }
    corrected
}

/// Positions by value.
fn ascending(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    order
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
}
