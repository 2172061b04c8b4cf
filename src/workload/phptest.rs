//! Rows of `phptestN`: a pure function of (data seed, table, id), balanced so that the number of
//! rows of every country, and of every country and state, is known without asking.
//!
//! Of each block of 10,000 ids every pair of one of 200 countries and one of 50 states is the
//! place of exactly one row; which id has which place is a permutation keyed by seed, table and
//! block. The last block may be shorter: its places are the first ones of a fixed order, in which
//! each run of 200 holds every country once. So of R rows a country has R/200, rounded down or
//! up, and a pair R/10,000, rounded down or up.

use super::permutation::Permutation;
use super::random::{mix, scale, seed_of};

/// Values of `country_id`, from 1.
pub(crate) const COUNTRIES: u64 = 200;
/// Values of `state_id`, from 1.
pub(crate) const STATES: u64 = 50;
/// Pairs of them.
const PLACES: u64 = COUNTRIES * STATES;
/// Goes round the states without meeting one twice, far from its neighbours.
const STATE_STEP: u64 = 31;
/// Bytes of the columns of text at most, and at least for those of random length.
const TEXT_MAX: usize = 64;
const TEXT_MIN: usize = 5;

/// Makes the rows of one table.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    seed: u64,
    count: u64,
}

/// One row. Texts are of lower-case letters and digits (`email` has a dot and an at sign too), so
/// that nothing needs escaping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Primary key, from 1.
    pub id: u64,
    /// 5 to 64 characters, as `password` and `city`.
    pub name: String,
    /// Unique: it holds the id.
    pub email: String,
    /// See `name`.
    pub password: String,
    /// Year, month, day.
    pub dob: (u32, u32, u32),
    /// 5 to 64 characters, of 128 that would fit.
    pub address: String,
    /// See `name`.
    pub city: String,
    /// 1 to 50.
    pub state_id: u64,
    /// 5 to 8 digits.
    pub zip: String,
    /// 1 to 200.
    pub country_id: u64,
}

impl Rows {
    /// The rows of table number `table` (from 1) with `rows` rows.
    pub fn new(data_seed: u32, table: u32, rows: u64) -> Self {
        Rows { seed: seed_of(&[u64::from(data_seed), u64::from(table)]), count: rows.max(1) }
    }

    /// The row with this id, from 1.
    pub fn row(&self, id: u64) -> Row {
        let (country_id, state_id) = self.place(id);
        let mut bits = Bits(mix(self.seed ^ mix(id)));
        let name = bits.text();
        let email = format!("{}.{id}@{}.com", bits.word(8), bits.word(12));
        let password = bits.text();
        let dob = (
            1940 + bits.below(60) as u32,
            1 + bits.below(12) as u32,
            // Every month has these.
            1 + bits.below(28) as u32,
        );
        let address = bits.text();
        let city = bits.text();
        let zip = bits.zip();
        Row { id, name, email, password, dob, address, city, state_id, zip, country_id }
    }

    /// Country and state of a row.
    fn place(&self, id: u64) -> (u64, u64) {
        let at = id.saturating_sub(1);
        let (block, offset) = (at / PLACES, at % PLACES);
        let places = self.count.saturating_sub(block * PLACES).clamp(1, PLACES);
        let permutation = Permutation::new(places, seed_of(&[self.seed, block]));
        let place = permutation.apply(offset.min(places - 1));
        let (country, turn) = (place % COUNTRIES, place / COUNTRIES);
        // Each country begins its round with another state.
        let state = (turn * STATE_STEP + country) % STATES;
        (country + 1, state + 1)
    }
}

/// A counter through `SplitMix64`.
struct Bits(u64);

impl Bits {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    fn below(&mut self, n: u64) -> u64 {
        scale(self.next(), n)
    }

    fn text(&mut self) -> String {
        let length = TEXT_MIN + self.below((TEXT_MAX - TEXT_MIN + 1) as u64) as usize;
        self.word(length)
    }

    fn word(&mut self, length: usize) -> String {
        const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
        // 64 bits hold twelve characters.
        const AT_ONCE: usize = 12;
        let mut word = String::with_capacity(length);
        while word.len() < length {
            let mut rest = self.next();
            for _ in 0..AT_ONCE.min(length - word.len()) {
                word.push(char::from(ALPHABET[(rest % 36) as usize]));
                rest /= 36;
            }
        }
        word
    }

    fn zip(&mut self) -> String {
        let length = 5 + self.below(4) as usize;
        let digits = self.below(100_000_000);
        let mut zip = format!("{digits:08}");
        zip.truncate(length);
        zip
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// Rows of each pair of country and state.
    fn places(rows: u64, table: u32) -> BTreeMap<(u64, u64), u64> {
        let source = Rows::new(1, table, rows);
        let mut places = BTreeMap::new();
        for id in 1..=rows {
            *places.entry(source.place(id)).or_default() += 1;
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
            let row = source.row(id);
            for text in [&row.name, &row.password, &row.address, &row.city] {
                assert!((5..=64).contains(&text.len()) && plain(text), "{text}");
            }
            assert!((5..=8).contains(&row.zip.len()));
            assert!(row.email.len() <= 64 && plain(&row.email.replace(['.', '@'], "")));
            assert!(emails.insert(row.email));
            assert_eq!(row.id, id);
        }
        let longest = Rows::new(1, 1, 10_000_000_000).row(10_000_000_000).email;
        assert!(longest.len() <= 64, "{longest}");
    }

    #[test]
    fn rows_are_pinned_and_differ_by_seed_and_table() {
        // Other values would make tables prepared by an earlier version something else.
        let row = Rows::new(1, 1, 1_000_000).row(1);
        assert_eq!((row.country_id, row.state_id, row.zip.as_str(), row.dob), PINNED);
        assert_ne!(row, Rows::new(2, 1, 1_000_000).row(1));
        assert_ne!(row, Rows::new(1, 2, 1_000_000).row(1));
    }

    const PINNED: (u64, u64, &str, (u32, u32, u32)) = (120, 42, "91357653", (1991, 3, 3));
}
