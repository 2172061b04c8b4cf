//! Which answer a statement gets, from its text alone.

/// Statements are matched by this much of their beginning: a bulk INSERT of 1 MiB must not be
/// searched once an answer.
const LOOKED_AT: usize = 4096;

/// Which of the prebuilt answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// The canned row.
    Canned,
    /// One value, for a SELECT of no table.
    Value,
    /// No rows.
    Empty,
    /// OK, one row affected.
    Changed,
    /// OK.
    Done,
    /// LOAD DATA is not allowed.
    NoLocal,
    /// The n-th answer of the script.
    Answer(usize),
}

/// The part of a statement that is matched.
pub(crate) fn looked_at(sql: &[u8]) -> &[u8] {
    sql.get(..LOOKED_AT).unwrap_or(sql)
}

/// Whether a text contains a lower-case word, without regard to ASCII case.
pub(crate) fn contains(text: &[u8], lower: &[u8]) -> bool {
    let Some((&first, rest)) = lower.split_first() else { return true };
    let upper = first.to_ascii_uppercase();
    text.iter().enumerate().any(|(i, &byte)| {
        (byte == first || byte == upper)
            && text
                .get(i + 1..i + 1 + rest.len())
                .is_some_and(|after| after.eq_ignore_ascii_case(rest))
    })
}

/// The answer for a statement; `answers` are the script's texts in lower case.
pub(crate) fn plan(sql: &[u8], answers: &[Vec<u8>]) -> AnswerKind {
    let text = looked_at(sql);
    if let Some(i) = answers.iter().position(|answer| contains(text, answer)) {
        return AnswerKind::Answer(i);
    }
    let text = without_lead(text);
    let end = text.iter().position(|b| !b.is_ascii_alphabetic()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let is = |words: &[&str]| words.iter().any(|w| word.eq_ignore_ascii_case(w.as_bytes()));
    if is(&["select", "with"]) {
        select(rest)
    } else if is(&["update", "insert", "delete", "replace"]) {
        AnswerKind::Changed
    } else if is(&["show", "describe", "desc", "explain"]) {
        AnswerKind::Empty
    } else if is(&["load"]) {
        AnswerKind::NoLocal
    } else {
        AnswerKind::Done
    }
}

fn select(text: &[u8]) -> AnswerKind {
    const SYSTEM: [&[u8]; 4] = [b"information_schema", b"performance_schema", b"mysql.", b"sys."];
    let from = text.split(u8::is_ascii_whitespace).any(|w| w.eq_ignore_ascii_case(b"from"));
    if !from {
        AnswerKind::Value
    } else if SYSTEM.iter().any(|schema| contains(text, schema)) {
        AnswerKind::Empty
    } else {
        AnswerKind::Canned
    }
}

/// A statement from its first word on: white space, brackets and comments may come before.
fn without_lead(mut text: &[u8]) -> &[u8] {
    loop {
        let start =
            text.iter().position(|&b| !b.is_ascii_whitespace() && b != b'(').unwrap_or(text.len());
        text = text.get(start..).unwrap_or_default();
        if !text.starts_with(b"/*") {
            return text;
        }
        let end = text.windows(2).position(|pair| pair == b"*/").map_or(text.len(), |i| i + 2);
        text = text.get(end..).unwrap_or_default();
    }
}

/// The number of `?` outside quotes; `None` above the protocol's 65,535.
pub(crate) fn parameters(sql: &[u8]) -> Option<u16> {
    let mut count = 0_u32;
    let mut quote = None;
    let mut bytes = sql.iter();
    while let Some(&byte) = bytes.next() {
        match (quote, byte) {
            (Some(b'"' | b'\''), b'\\') => {
                bytes.next();
            }
            (Some(open), _) if byte == open => quote = None,
            (None, b'"' | b'\'' | b'`') => quote = Some(byte),
            (None, b'?') => count += 1,
            _ => {}
        }
    }
    u16::try_from(count).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn planned(sql: &str) -> AnswerKind {
        plan(sql.as_bytes(), &[b"@@version".to_vec(), b"c=?".to_vec()])
    }

    #[test]
    fn the_first_word_decides_unless_an_answer_matches() {
        assert_eq!(planned("SELECT c FROM sbtest1 WHERE id=?"), AnswerKind::Canned);
        assert_eq!(planned(" /* x */ (select c\nfrom t)"), AnswerKind::Canned);
        assert_eq!(planned("SELECT 1"), AnswerKind::Value);
        assert_eq!(planned("SELECT 'fromage'"), AnswerKind::Value);
        assert_eq!(planned("SELECT x FROM information_schema.tables"), AnswerKind::Empty);
        assert_eq!(planned("show status"), AnswerKind::Empty);
        assert_eq!(planned("UPDATE t SET k=k+1 WHERE id=?"), AnswerKind::Changed);
        assert_eq!(planned("LOAD DATA LOCAL INFILE 'x' INTO TABLE t"), AnswerKind::NoLocal);
        assert_eq!(planned("BEGIN"), AnswerKind::Done);
        assert_eq!(planned(""), AnswerKind::Done);
        assert_eq!(planned("/*"), AnswerKind::Done);
        assert_eq!(planned("select @@VERSION"), AnswerKind::Answer(0));
        assert_eq!(planned("UPDATE t SET C=? WHERE id=?"), AnswerKind::Answer(1));
    }

    #[test]
    fn only_the_beginning_is_matched() {
        let far = format!("INSERT {} @@version", "x".repeat(LOOKED_AT));
        assert_eq!(planned(&far), AnswerKind::Changed);
    }

    #[test]
    fn parameters_are_counted_outside_quotes() {
        assert_eq!(parameters(b"a=? AND b='?' AND c=\"\\\"?\" AND `?`=? "), Some(2));
        assert_eq!(parameters(b"'it''s ?' ?"), Some(1));
        assert_eq!(parameters(b"'open ?"), Some(0));
        assert_eq!(parameters(&vec![b'?'; 65_535]), Some(65_535));
        assert_eq!(parameters(&vec![b'?'; 65_536]), None);
    }

    #[test]
    fn contains_needs_the_whole_word() {
        assert!(contains(b"aab", b"ab"));
        assert!(contains(b"xAB", b"ab"));
        assert!(!contains(b"xa", b"ab"));
        assert!(contains(b"", b""));
    }

    proptest! {
        #[test]
        fn no_statement_panics(sql in prop::collection::vec(any::<u8>(), 0..200), marks in 0_usize..50) {
            let _ = (plan(&sql, &[b"x".to_vec(), Vec::new()]), parameters(&sql), looked_at(&sql));
            let text = format!("SELECT '?' + \"?\" {}", "?,".repeat(marks));
            prop_assert_eq!(parameters(text.as_bytes()), u16::try_from(marks).ok());
        }
    }
}
