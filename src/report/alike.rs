//! Several messages of one kind as one.

use std::collections::BTreeSet;

/// What follows a number that can be compared: others are codes, ports, rates that were asked.
const UNITS: [&str; 5] = ["%", "s", "ms", "us", "µs"];

/// One sentence with ranges where they differ in shares and times alone: the first of them would
/// read as a bound of all. Else the first, and how many others there are.
pub(crate) fn as_one(messages: &[&str]) -> String {
    let first = messages.first().copied().unwrap_or_default();
    let all: BTreeSet<&str> = messages.iter().copied().collect();
    match all.len() {
        0 | 1 => first.to_owned(),
        n => {
            ranged(&all).unwrap_or_else(|| format!("{first} (for one, and {} more like it)", n - 1))
        }
    }
}

/// `known to ±11 % only` and `known to ±21 % only`: `known to ±11..21 % only`.
fn ranged(messages: &BTreeSet<&str>) -> Option<String> {
    let messages: Vec<Vec<&str>> = messages.iter().map(|m| m.split(' ').collect()).collect();
    let first = messages.first()?;
    if messages.iter().any(|words| words.len() != first.len()) {
        return None;
    }
    let word = |at: usize| {
        let all: Vec<&str> = messages.iter().filter_map(|words| words.get(at).copied()).collect();
        let word = *all.first()?;
        if all.iter().all(|other| *other == word) {
            return Some(word.to_owned());
        }
        let unit = first.get(at + 1)?.trim_end_matches([',', ';', ':', '.', ')']);
        UNITS.contains(&unit).then(|| range(&all))?
    };
    let words: Option<Vec<String>> = (0..first.len()).map(word).collect();
    Some(words?.join(" "))
}

/// The smallest and the largest of some numbers, which have the same sign before them.
fn range(words: &[&str]) -> Option<String> {
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    let sign = words.first()?.trim_end_matches(digits);
    if sign.contains(|c: char| c.is_alphanumeric() || c == '-') {
        return None;
    }
    let number = |word: &&str| {
        let text = word.strip_prefix(sign)?.to_owned();
        Some((text.parse::<f64>().ok()?, text))
    };
    let numbers: Option<Vec<(f64, String)>> = words.iter().map(number).collect();
    let mut numbers = numbers?;
    numbers.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let ((_, least), (_, most)) = (numbers.first()?, numbers.last()?);
    Some(format!("{sign}{least}..{most}"))
}

#[cfg(test)]
mod tests {
    use super::as_one;

    #[test]
    fn shares_and_times_become_ranges() {
        let only = ["known to ±11 % only", "known to ±9 % only", "known to ±21 % only"];
        assert_eq!(as_one(&only), "known to ±9..21 % only");
        assert_eq!(as_one(&["2.5 s, 3 %", "2.5 s, 4 %", "0.5 s, 4 %"]), "0.5..2.5 s, 3..4 %");
        assert_eq!(as_one(&["busy 93 %", "busy 93 %"]), "busy 93 %");
    }

    #[test]
    fn what_cannot_be_compared_stands_for_one() {
        for (one, other) in [
            ("error 1213", "error 1205"),
            ("by 3 %", "by -3 %"),
            ("rose by 3 %", "fell by 3 %"),
            ("3 %", "3 % or so"),
            ("v3 %", "v4 %"),
        ] {
            assert_eq!(as_one(&[one, other]), format!("{one} (for one, and 1 more like it)"));
        }
    }
}
