//! Rows as a pure function of (data seed, table, id), in sysbench's format or in that of the suite of
//! 2007, and their two forms that fill a table.
//!
//! `c` is ten groups of eleven digits (119 bytes); the last group is a checksum of table, id and the
//! other nine. `pad` is five groups (59 bytes); `k` is uniform in 1…rows.
//!
//! Rows of `phptestN` are balanced, so that the rows of each country, and of each country and state,
//! are known: of each 10,000 ids every pair of 200 countries and 50 states is the place of one row, by
//! a permutation keyed by seed, table and block. A shorter last block has the first places of a fixed
//! order, in which each run of 200 holds every country once. So of R rows a country has R/200 and a
//! pair R/10,000, rounded down or up.

use super::random::{Permutation, bits, mix, scale, seed_of};
use super::table::Schema;

pub(crate) const C_LEN: usize = 119;
pub(crate) const PAD_LEN: usize = 59;
/// One more than the largest group of digits.
const GROUP: u64 = 100_000_000_000;
const GROUP_LEN: usize = 11;
const DIGITS: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub id: u64,
    pub k: u64,
    pub c: [u8; C_LEN],
    pub pad: [u8; PAD_LEN],
}

#[derive(Debug, Clone, Copy)]
pub struct Rows {
    seed: u64,
    table: u32,
    count: u64,
}

impl Rows {
    pub fn new(data_seed: u32, table: u32, rows: u64) -> Self {
        Rows { seed: seed_of(&[u64::from(data_seed), u64::from(table)]), table, count: rows }
    }

    /// Computes the `k` of a row at a twentieth of the cost of the row.
    pub fn k(&self, id: u64) -> u64 {
        1 + scale(bits(self.seed, id)(), self.count)
    }

    pub fn phptest(&self, id: u64) -> PhptestRow {
        phptest_row(self.seed, self.count, id)
    }

    pub fn row(&self, id: u64) -> Row {
        let mut bits = bits(self.seed, id);
        let k = 1 + scale(bits(), self.count);
        let c = proven(self.table, id, &mut bits);
        Row { id, k, c, pad: pad(bits) }
    }
}

/// Makes a `c` with the checksum of this table and id from random bits.
pub fn proven(table: u32, id: u64, mut bits: impl FnMut() -> u64) -> [u8; C_LEN] {
    let mut c = [b'-'; C_LEN];
    fill_groups(&mut c[..C_LEN - GROUP_LEN - 1], &mut bits);
    let sum = checksum(table, id, &c[..C_LEN - GROUP_LEN - 1]);
    write_digits(&mut c[C_LEN - GROUP_LEN..], sum);
    c
}

pub(crate) fn pad(bits: impl FnMut() -> u64) -> [u8; PAD_LEN] {
    let mut pad = [b'-'; PAD_LEN];
    fill_groups(&mut pad, bits);
    pad
}

pub fn proves(table: u32, id: u64, c: &[u8]) -> bool {
    if c.len() != C_LEN || c[C_LEN - GROUP_LEN - 1] != b'-' {
        return false;
    }
    let mut expected = [0; GROUP_LEN];
    write_digits(&mut expected, checksum(table, id, &c[..C_LEN - GROUP_LEN - 1]));
    c[C_LEN - GROUP_LEN..] == expected
}

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

/// The rows of one table in the two forms that fill it, LOAD DATA lines and INSERT values. Nothing in
/// them needs escaping, whatever the server's sql_mode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filler {
    pub(crate) schema: Schema,
    pub(crate) rows: Rows,
}

impl Filler {
    /// Makes the filler of a table, from 1; None for a schema without rows.
    pub(crate) fn new(schema: Schema, data_seed: u32, table: u32, rows: u64) -> Option<Filler> {
        schema.filled().then(|| Filler { schema, rows: Rows::new(data_seed, table, rows) })
    }

    pub(crate) fn sbtest(rows: Rows) -> Filler {
        Filler { schema: Schema::Sbtest, rows }
    }

    /// Returns an upper bound on a row's bytes in either form.
    pub(crate) fn row_max(&self) -> usize {
        // Two numbers of twenty digits, and separators.
        let sbtest = C_LEN + PAD_LEN + 2 * DIGITS + 10;
        // Five texts of 64, zip, date, three numbers, and separators.
        let phptest = 5 * 64 + 8 + 10 + DIGITS + 3 + 3 + 40;
        if self.schema == Schema::Phptest { phptest } else { sbtest }
    }

    /// Writes a LOAD DATA line: the schema's columns between tabs.
    pub(crate) fn line(&self, out: &mut Vec<u8>, id: u64) {
        self.put(out, id, [b"", b"\t", b"", b"\n"]);
    }

    pub(crate) fn tuple(&self, out: &mut Vec<u8>, id: u64) {
        self.put(out, id, [b"(", b",", b"'", b")"]);
    }

    /// Writes a row with signs before it, between columns, around texts and after it.
    fn put(&self, out: &mut Vec<u8>, id: u64, [before, between, quote, after]: [&[u8]; 4]) {
        let mut sign = before;
        let mut value = |value: &[u8], quote: &[u8]| {
            for part in [std::mem::replace(&mut sign, between), quote, value, quote] {
                out.extend_from_slice(part);
            }
        };
        if self.schema == Schema::Phptest {
            for (text, is_number) in self.rows.phptest(id).iter().zip(NUMBERS) {
                value(text.as_bytes(), if is_number { b"" } else { quote });
            }
        } else {
            let row = self.rows.row(id);
            value(digits(&mut [0; DIGITS], row.id), b"");
            value(digits(&mut [0; DIGITS], row.k), b"");
            value(&row.c, quote);
            value(&row.pad, quote);
        }
        out.extend_from_slice(after);
    }
}

fn digits(room: &mut [u8; DIGITS], value: u64) -> &[u8] {
    let count = value.checked_ilog10().map_or(1, |log| log as usize + 1);
    write_digits(&mut room[..count], value);
    &room[..count]
}

/// Values of `country_id` and `state_id`, from 1, and their pairs.
const COUNTRIES: u64 = 200;
const STATES: u64 = 50;
const PLACES: u64 = COUNTRIES * STATES;
/// Visits all states without repeating one, far from its neighbours.
const STATE_STEP: u64 = 31;
/// Longest text column, bytes; and the shortest of random length.
const TEXT_MAX: u64 = 64;
const TEXT_MIN: u64 = 5;

/// The values of a row: id, name, email, password, dob, address, city, state_id, zip, country_id.
/// Texts are lower-case letters and digits, so nothing needs escaping.
pub type PhptestRow = [String; 10];
const NUMBERS: [bool; 10] = [true, false, false, false, false, false, false, true, false, true];

/// Makes a row of `count`; `seed` is the table's.
fn phptest_row(seed: u64, count: u64, id: u64) -> PhptestRow {
    let (country, state) = locate(seed, count, id);
    let bits = &mut bits(seed, id);
    let name = text(bits);
    let email = format!("{}.{id}@{}.com", word(bits, 8), word(bits, 12));
    let password = text(bits);
    let (year, month) = (1940 + scale(bits(), 60), 1 + scale(bits(), 12));
    // Every month has these days.
    let dob = format!("{year:04}-{month:02}-{:02}", 1 + scale(bits(), 28));
    let (address, city) = (text(bits), text(bits));
    let digits = 5 + scale(bits(), 4) as usize;
    let mut zip = format!("{:08}", scale(bits(), 100_000_000));
    zip.truncate(digits);
    let [id, state, country] = [id, state, country].map(|number| number.to_string());
    [id, name, email, password, dob, address, city, state, zip, country]
}

fn locate(seed: u64, count: u64, id: u64) -> (u64, u64) {
    assert!((1..=count).contains(&id), "row {id} of {count}");
    let (block, offset) = ((id - 1) / PLACES, (id - 1) % PLACES);
    let places = (count - block * PLACES).min(PLACES);
    let place = Permutation::new(places, seed_of(&[seed, block])).apply(offset);
    let (country, turn) = (place % COUNTRIES, place / COUNTRIES);
    // Each country begins its round with another state.
    let state = (turn * STATE_STEP + country) % STATES;
    (country + 1, state + 1)
}

fn text(bits: &mut impl FnMut() -> u64) -> String {
    let length = TEXT_MIN + scale(bits(), TEXT_MAX - TEXT_MIN + 1);
    word(bits, length as usize)
}

fn word(bits: &mut impl FnMut() -> u64, length: usize) -> String {
    const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    // 64 bits hold twelve characters.
    const AT_ONCE: usize = 12;
    let mut word = String::with_capacity(length);
    while word.len() < length {
        let mut rest = bits();
        for _ in 0..AT_ONCE.min(length - word.len()) {
            word.push(char::from(ALPHABET[(rest % 36) as usize]));
            rest /= 36;
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

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

    #[test]
    fn numbers_are_decimal() {
        for value in [0, 1, 9, 10, 12_345, 10_000_000_000, u64::MAX] {
            assert_eq!(text(digits(&mut [0; DIGITS], value)), value.to_string());
        }
    }

    #[test]
    fn both_forms_hold_every_column_and_no_row_is_longer_than_said() {
        for schema in [Schema::Sbtest, Schema::Phptest] {
            let filler = Filler::new(schema, 1, 1, 10_000_000_000).expect("rows");
            assert_eq!(filler.schema, schema);
            for id in [1, 77, 10_000_000_000] {
                let (mut line, mut tuple) = (Vec::new(), Vec::new());
                filler.line(&mut line, id);
                filler.tuple(&mut tuple, id);
                assert!(line.len() <= filler.row_max() && tuple.len() <= filler.row_max());
                let columns: Vec<&str> = text(&line).trim_end().split('\t').collect();
                assert_eq!(columns.len(), schema.columns().len());
                let values = text(&tuple).trim_matches(['(', ')']).replace('\'', "");
                assert_eq!(values.split(',').collect::<Vec<_>>(), columns);
                assert_eq!(columns[0], id.to_string());
            }
        }
        assert!(Filler::new(Schema::Bulk, 1, 1, 0).is_none());
    }

    /// Rows of each pair of country and state.
    fn places(rows: u64, table: u32) -> BTreeMap<(u64, u64), u64> {
        let seed = seed_of(&[1, u64::from(table)]);
        let mut places = BTreeMap::new();
        for id in 1..=rows {
            *places.entry(locate(seed, rows, id)).or_default() += 1;
        }
        places
    }

    #[test]
    fn countries_and_pairs_are_balanced_for_any_number_of_rows() {
        for rows in [1, 7, 199, 200, 201, 1000, 9_999, 10_000, 10_001, 25_437, 40_000] {
            let places = places(rows, 3);
            assert!(places.keys().all(|(c, s)| (1..=200).contains(c) && (1..=50).contains(s)));
            for country in 1..=COUNTRIES {
                let of: u64 =
                    places.iter().filter(|((c, _), _)| *c == country).map(|(_, n)| n).sum();
                assert!((rows / 200..=rows.div_ceil(200)).contains(&of), "{rows}: {of}");
            }
            let pair = rows / PLACES..=rows.div_ceil(PLACES);
            assert!(places.values().all(|n| pair.contains(n)), "{rows}");
            if rows >= PLACES {
                assert_eq!(places.len() as u64, PLACES, "{rows}");
            }
        }
    }

    #[test]
    fn rows_fit_their_columns_and_emails_are_unique() {
        let source = Rows::new(1, 1, 5000);
        let mut emails = BTreeSet::new();
        let plain = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        for id in 1..=5000 {
            let [own, name, email, password, _, address, city, _, zip, _] = source.phptest(id);
            for text in [name, password, address, city] {
                assert!((5..=64).contains(&text.len()) && plain(&text), "{text}");
            }
            assert!((5..=8).contains(&zip.len()));
            assert!(email.len() <= 64 && plain(&email.replace(['.', '@'], "")));
            assert!(emails.insert(email));
            assert_eq!(own, id.to_string());
        }
        let [_, _, longest, ..] = Rows::new(1, 1, 10_000_000_000).phptest(10_000_000_000);
        assert!(longest.len() <= 64, "{longest}");
    }

    #[test]
    fn rows_are_pinned_and_differ_by_seed_and_table() {
        // Other values would make tables prepared by an earlier version something else.
        let row = Rows::new(1, 1, 1_000_000).phptest(1);
        assert_eq!([&row[9], &row[7], &row[8], &row[4]], ["120", "42", "91357653", "1991-03-03"]);
        assert_ne!(row, Rows::new(2, 1, 1_000_000).phptest(1));
        assert_ne!(row, Rows::new(1, 2, 1_000_000).phptest(1));
    }
}
