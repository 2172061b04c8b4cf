//! A keyed permutation of 0…n−1, computed, not stored.
//!
//! A Zipf rank is a position in it, so that every id can be drawn and the hot rows do not
//! share pages. A balanced Feistel network over the next even power of two, with cycle
//! walking (Black and Rogaway 2002): values outside 0…n−1 are permuted again.

use super::random::{mix, seed_of};

const ROUNDS: u64 = 4;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; ROUNDS as usize],
}

impl Permutation {
    /// The permutation of `0..n` that belongs to a key.
    pub(crate) fn new(n: u64, key: u64) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        let keys = std::array::from_fn(|round| seed_of(&[key, round as u64]));
        Permutation { n, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// Where `i` goes. `i` must be below n; the walk ends because a permutation's cycle
    /// through a value inside the range comes back inside it.
    pub(crate) fn apply(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        let mut x = i;
        loop {
            x = self.round_trip(x);
            if x < self.n {
                return x;
            }
        }
    }

    fn round_trip(&self, x: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (mut left, mut right) = (x >> self.half_bits, x & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_permutation(n in 1_u64..3000, key: u64) {
            let permutation = Permutation::new(n, key);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let x = permutation.apply(i);
                prop_assert!(x < n);
                prop_assert!(!seen[x as usize], "{x} twice");
                seen[x as usize] = true;
            }
        }

        #[test]
        fn it_stays_inside_large_ranges(i in 0_u64..10_000_000_000, key: u64) {
            prop_assert!(Permutation::new(10_000_000_000, key).apply(i) < 10_000_000_000);
        }
    }

    #[test]
    fn keys_differ_and_neighbours_part() {
        let a = Permutation::new(16_000_000, 1);
        let b = Permutation::new(16_000_000, 2);
        assert_ne!((a.apply(0), a.apply(1)), (b.apply(0), b.apply(1)));
        // A 16 KiB page holds about 70 rows of sbtest: hot ranks must not be page neighbours.
        let near = (0..1000).filter(|i| a.apply(*i).abs_diff(a.apply(i + 1)) < 70).count();
        assert!(near < 5, "{near} of 1000 neighbours share a page");
    }
}
