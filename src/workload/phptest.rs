//! Rows of `phptestN`: a pure function of (data seed, table, id), balanced so that the number of
//! rows of every country, and of every country and state, is known without asking.
//!
//! Of each block of 10,000 ids every pair of one of 200 countries and one of 50 states is the
//! place of exactly one row; which id has which place is a permutation keyed by seed, table and
//! block. The last block may be shorter: its places are the first ones of a fixed order, in which
//! each run of 200 holds every country once. So of R rows a country has R/200, rounded down or
//! up, and a pair R/10,000, rounded down or up.

use super::random::{Permutation, bits, scale, seed_of};

/// Values of `country_id` and of `state_id`, from 1; and their pairs.
const COUNTRIES: u64 = 200;
const STATES: u64 = 50;
const PLACES: u64 = COUNTRIES * STATES;
/// Goes round the states without meeting one twice, far from its neighbours.
const STATE_STEP: u64 = 31;
/// Bytes of the columns of text at most, and at least for those of random length.
const TEXT_MAX: u64 = 64;
const TEXT_MIN: u64 = 5;

/// The values of a row: id, name, email, password, dob, address, city, state_id, zip, country_id.
/// Texts are of lower-case letters and digits (`email` has a dot and an at sign too), so that nothing
/// needs escaping.
pub type Row = [String; 10];
/// The columns that are numbers.
pub(super) const NUMBERS: [bool; 10] =
    [true, false, false, false, false, false, false, true, false, true];

/// Makes the row with this id, from 1, of so many; `seed` is that of the table.
pub(super) fn row(seed: u64, count: u64, id: u64) -> Row {
    let (country, state) = place(seed, count, id);
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

/// Gives country and state of a row.
fn place(seed: u64, count: u64, id: u64) -> (u64, u64) {
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
    use super::super::rows::Rows;
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// Rows of each pair of country and state.
    fn places(rows: u64, table: u32) -> BTreeMap<(u64, u64), u64> {
        let seed = seed_of(&[1, u64::from(table)]);
        let mut places = BTreeMap::new();
        for id in 1..=rows {
            *places.entry(place(seed, rows, id)).or_default() += 1;
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
