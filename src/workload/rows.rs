//! Rows are a pure function of (data seed, table, id), in sysbench's format.
//!
//! `c` is ten groups of eleven digits (119 bytes) and proves itself: its last group is a
//! checksum of table, id and the other nine. `pad` is five such groups (59 bytes), `k` is
//! uniform in 1…rows.

use super::random::{mix, scale, seed_of};

/// Bytes of `c`.
pub(crate) const C_LEN: usize = 119;
/// Bytes of `pad`.
pub(crate) const PAD_LEN: usize = 59;
/// One more than the largest group of digits.
const GROUP: u64 = 100_000_000_000;
const GROUP_LEN: usize = 11;

/// One row of `sbtestN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Primary key, from 1.
    pub id: u64,
    /// The indexed column.
    pub k: u64,
    /// The self-proving column, ASCII.
    pub c: [u8; C_LEN],
    /// ASCII.
    pub pad: [u8; PAD_LEN],
}

/// Makes the rows of one table.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    seed: u64,
    table: u32,
    count: u64,
}

impl Rows {
    /// The rows of table number `table` (from 1) with `rows` rows.
    pub fn new(data_seed: u32, table: u32, rows: u64) -> Self {
        Rows { seed: seed_of(&[u64::from(data_seed), u64::from(table)]), table, count: rows.max(1) }
    }

    /// The `k` of the row with this id: a twentieth of making the row.
    pub fn k(&self, id: u64) -> u64 {
        self.k_of(&mut self.bits(id))
    }

    fn bits(&self, id: u64) -> Bits {
        Bits(mix(self.seed ^ mix(id)))
    }

    fn k_of(&self, bits: &mut Bits) -> u64 {
        1 + scale(bits.next(), self.count)
    }

    /// The row with this id.
    pub fn row(&self, id: u64) -> Row {
        let mut bits = self.bits(id);
        let k = self.k_of(&mut bits);
        let c = proven(self.table, id, || bits.next());
        let pad = pad(|| bits.next());
        Row { id, k, c, pad }
    }
}

/// A value of `c` that proves to belong to this table and id, from random bits.
pub fn proven(table: u32, id: u64, mut bits: impl FnMut() -> u64) -> [u8; C_LEN] {
    let mut c = [b'-'; C_LEN];
    fill_groups(&mut c[..C_LEN - GROUP_LEN - 1], &mut bits);
    let sum = checksum(table, id, &c[..C_LEN - GROUP_LEN - 1]);
    write_digits(&mut c[C_LEN - GROUP_LEN..], sum);
    c
}

/// A value of `pad`, from random bits.
pub(crate) fn pad(bits: impl FnMut() -> u64) -> [u8; PAD_LEN] {
    let mut pad = [b'-'; PAD_LEN];
    fill_groups(&mut pad, bits);
    pad
}

/// Whether a `c` proves to belong to this table and id.
pub fn proves(table: u32, id: u64, c: &[u8]) -> bool {
    if c.len() != C_LEN || c[C_LEN - GROUP_LEN - 1] != b'-' {
        return false;
    }
    let mut expected = [0; GROUP_LEN];
    write_digits(&mut expected, checksum(table, id, &c[..C_LEN - GROUP_LEN - 1]));
    c[C_LEN - GROUP_LEN..] == expected
}

/// Whether a value is made of digits alone.
pub(crate) fn is_digits(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(u8::is_ascii_digit)
}

fn checksum(table: u32, id: u64, groups: &[u8]) -> u64 {
    let mut sum = mix(mix(u64::from(table)) ^ id);
    for chunk in groups.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum = mix(sum ^ u64::from_le_bytes(word));
    }
    scale(sum, GROUP)
}

fn fill_groups(out: &mut [u8], mut bits: impl FnMut() -> u64) {
    for group in out.chunks_mut(GROUP_LEN + 1) {
        let len = group.len().min(GROUP_LEN);
        write_digits(&mut group[..len], scale(bits(), GROUP));
    }
}

fn write_digits(out: &mut [u8], mut value: u64) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// A counter through `SplitMix64`: cheaper to start than a generator, one is needed a row.
struct Bits(u64);

impl Bits {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).expect("ASCII")
    }

    fn is_sysbench_format(value: &str, groups: usize) -> bool {
        let parts: Vec<&str> = value.split('-').collect();
        parts.len() == groups
            && parts.iter().all(|p| p.len() == 11 && p.bytes().all(|b| b.is_ascii_digit()))
    }

    #[test]
    fn rows_have_sysbench_format_and_prove_themselves() {
        let rows = Rows::new(1, 3, 1000);
        for id in [1, 2, 999, 1000] {
            let row = rows.row(id);
            assert!(is_sysbench_format(text(&row.c), 10), "{}", text(&row.c));
            assert!(is_sysbench_format(text(&row.pad), 5), "{}", text(&row.pad));
            assert!((1..=1000).contains(&row.k));
            assert_eq!(rows.k(id), row.k);
            assert!(proves(3, id, &row.c));
            assert!(!proves(3, id + 1, &row.c), "another id's content must fail");
            assert!(!proves(2, id, &row.c), "another table's content must fail");
            let mut broken = row.c;
            broken[5] ^= 1;
            assert!(!proves(3, id, &broken));
            assert!(!proves(3, id, &row.c[..118]));
        }
    }

    #[test]
    fn rows_are_pinned() {
        // Other values would make tables prepared by an earlier version fail verify.
        let row = Rows::new(1, 1, 16_000_000).row(1);
        assert_eq!((row.k, text(&row.c), text(&row.pad)), PINNED);
    }

    const PINNED: (u64, &str, &str) = (
        14_191_443,
        "48903127962-22860201930-15335345214-15860426317-57830689772-72550948560-44690344295-\
         18603627334-89317491013-48202399146",
        "94890799262-85324830957-23949056763-10158904824-02739180483",
    );

    #[test]
    fn seeds_tables_and_ids_give_other_rows() {
        let base = Rows::new(1, 1, 1000).row(1);
        assert_ne!(base.c, Rows::new(2, 1, 1000).row(1).c);
        assert_ne!(base.c, Rows::new(1, 2, 1000).row(1).c);
        assert_ne!(base.c, Rows::new(1, 1, 1000).row(2).c);
        assert_eq!(base, Rows::new(1, 1, 1000).row(1));
    }

    #[test]
    fn k_is_uniform() {
        let rows = Rows::new(5, 1, 10);
        let mut seen = [0_u32; 10];
        for id in 1..=20_000 {
            seen[rows.row(id).k as usize - 1] += 1;
        }
        let chi: f64 = seen.iter().map(|n| (f64::from(*n) - 2000.0).powi(2) / 2000.0).sum();
        assert!(chi < 27.9, "{seen:?}: {chi}");
    }
}
