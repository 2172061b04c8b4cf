//! Looking again after more runs: how many come next, and how many looks that makes.

/// Fewer repeats decide next to nothing.
const REPEATS_LEAST: u32 = 6;
/// Fewer than these cannot find anything: three against three have p 0.1 at least.
const FINDING_LEAST: u32 = 4;

/// Returns the repeats of the next look: twice as many, so that the looks stay few.
pub(crate) fn next_look(repeats: u32) -> u32 {
    repeats.saturating_mul(2).max(REPEATS_LEAST)
}

/// The looks from the first number of repeats up to the last that is planned, both included. Each
/// gives chance an opportunity; with p times their number (Bonferroni) all of them together find
/// what is not there no more often than a single one.
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

    #[test]
    fn doublings_are_counted_up_to_the_last() {
        // 6 12 24, then 4 8 16 24, and 2 6 12 24, of which the first finds nothing.
        for (first, last, count) in [
            (6, 24, 3),
            (4, 24, 4),
            (2, 24, 3),
            (0, 24, 3),
            (24, 24, 1),
            (30, 24, 1),
            (1, 1, 1),
            (6, 7, 2),
            (6, u32::MAX, 31),
        ] {
            assert_eq!(looks(first, last), count, "{first} to {last}");
        }
    }
}
