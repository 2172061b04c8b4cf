//! The lines of a text, without the additions of terminals, shells and log collectors: colours, time
//! stamps, names of hosts and containers, `> `.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

pub(super) const BEGIN: &str = "Number of threads:";

/// A trimmed, non-empty line with its number, from 1.
pub(super) type Line<'a> = (usize, &'a str);

/// Lines that each run has alone on a line. Two of them with one prefix make it that of an output.
const FIXED: [&str; 8] = [
    "Running the test with following options:",
    BEGIN,
    "Threads started!",
    "queries performed:",
    "General statistics:",
    "Test execution summary:",
    "total time:",
    "Threads fairness:",
];
/// Longest prefix, in words, stamps and blanks; a collector's has nine.
const PARTS_MAX: usize = 24;
const NAMES: [&str; 21] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Mon",
    "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "AM", "PM",
];

/// Splits a text into outputs, each with the lines of one prefix; those of the first one have none.
pub(super) fn split_outputs(text: &str) -> Vec<Vec<Line<'_>>> {
    let pieces = (1..).zip(text.lines()).flat_map(|(number, line)| {
        // Text overwritten after a carriage return is another line.
        line.split('\r').map(move |piece| (number, piece))
    });
    let lines: Vec<Line> = pieces
        .map(|(number, piece)| (number, piece.trim_start_matches('\u{feff}').trim()))
        .filter(|(_, piece)| !piece.is_empty())
        .collect();
    let prefixes = prefixes(&lines);
    let mut outputs = vec![Vec::new()];
    let mut places: HashMap<String, usize> = HashMap::new();
    for (number, line) in lines {
        match longest(line, &prefixes) {
            None => outputs[0].push((number, line)),
            Some((_, "")) => {}
            Some((prefix, rest)) => {
                let at = *places.entry(prefix).or_insert(outputs.len());
                if at == outputs.len() {
                    outputs.push(Vec::new());
                }
                outputs[at].push((number, rest));
            }
        }
    }
    outputs
}

fn prefixes(lines: &[Line]) -> HashSet<String> {
    let mut found: HashMap<String, HashSet<&str>> = HashMap::new();
    for (_, line) in lines {
        let fixed = FIXED.iter().find_map(|fixed| Some((*fixed, line.find(fixed)?)));
        let Some((fixed, at)) = fixed.filter(|(_, at)| *at > 0) else { continue };
        let mut parts = Parts::new(&line[..at]);
        parts.by_ref().for_each(drop);
        if parts.rest.is_empty() {
            found.entry(parts.key).or_default().insert(fixed);
        }
    }
    let is_one = |seen: &HashSet<&str>| seen.len() > 1 && seen.contains(BEGIN);
    found.into_iter().filter(|(_, seen)| is_one(seen)).map(|(prefix, _)| prefix).collect()
}

/// Finds a line's longest prefix among these; also returns the rest.
fn longest<'a>(line: &'a str, prefixes: &HashSet<String>) -> Option<(String, &'a str)> {
    if prefixes.is_empty() {
        return None;
    }
    let (mut parts, mut found) = (Parts::new(line), None);
    while parts.next().is_some() {
        if prefixes.contains(&parts.key) {
            found = Some((parts.key.clone(), parts.rest.trim_start()));
        }
    }
    found
}

/// The parts of a prefix. Their key is the same in all lines of an output.
struct Parts<'a> {
    rest: &'a str,
    key: String,
    count: usize,
}

impl<'a> Parts<'a> {
    fn new(text: &'a str) -> Parts<'a> {
        Parts { rest: text.trim(), key: String::new(), count: 0 }
    }
}

impl Iterator for Parts<'_> {
    type Item = ();

    fn next(&mut self) -> Option<()> {
        let text = self.rest.trim_start();
        if text.is_empty() || self.count == PARTS_MAX {
            return None;
        }
        if text.len() < self.rest.len() {
            self.key.push(' ');
        }
        let end = word(text);
        let (length, key) = stamp(text).unwrap_or((end, &text[..end]));
        self.key.push_str(key);
        self.rest = &text[length..];
        self.count += 1;
        Some(())
    }
}

/// Counts the bytes of a word, which ends at a blank or a separating mark.
fn word(text: &str) -> usize {
    let mark = |c: char| ":|]>)│".contains(c);
    let mut chars = text.char_indices();
    let end = chars.find(|(at, c)| c.is_whitespace() && *at > 0 || mark(*c));
    end.map_or(text.len(), |(at, c)| if mark(c) { at + c.len_utf8() } else { at })
}

/// Reads a part of a time stamp, or a number; returns its length and the key for its kind.
fn stamp(text: &str) -> Option<(usize, &'static str)> {
    let letters = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    if NAMES.contains(&&text[..letters]) {
        return Some((letters, "\u{1}"));
    }
    let inner = text.strip_prefix(['[', '(']).map(str::trim_start);
    let from = inner.map_or(0, |inner| text.len() - inner.len());
    let digits = &text[from..];
    let mut end = 0;
    for (at, byte) in digits.bytes().enumerate() {
        let after = digits.as_bytes().get(at + 1);
        let between = at > 0 && after.is_some_and(u8::is_ascii_digit);
        match byte {
            b'0'..=b'9' => {}
            b':' | b'-' | b'/' | b'.' | b',' | b'+' | b'T' if between => {}
            b'Z' if at > 0 && !after.is_some_and(u8::is_ascii_alphanumeric) => {}
            _ => break,
        }
        end = at + 1;
    }
    let number = &digits[..end];
    let is_time = number.contains([':', '-', '/']);
    // An address is a name.
    if number.is_empty() || !is_time && number.matches('.').count() > 1 {
        return None;
    }
    let behind = &digits[end..];
    let closed = behind.trim_start().strip_prefix([']', ')']).filter(|_| inner.is_some());
    let length = match closed {
        Some(rest) => text.len() - rest.len(),
        None if inner.is_some() || behind.starts_with(|c: char| c.is_alphanumeric()) => {
            return None;
        }
        None => from + end,
    };
    Some((length, if is_time { "\u{2}" } else { "\u{3}" }))
}

/// Removes escapes for a terminal: colours, titles.
pub(super) fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return text.into();
    }
    let (plain, escaped) = text.split_once('\u{1b}').expect("there is one");
    let mut left = plain.to_owned();
    for part in escaped.split('\u{1b}') {
        left.push_str(skip_escape(part));
    }
    left.into()
}

/// Returns the text after an escape sequence; `text` begins behind its ESC.
fn skip_escape(text: &str) -> &str {
    let Some(first) = text.chars().next() else { return text };
    let inner = &text[first.len_utf8()..];
    match first {
        // Parameters, and a letter or `@` and the like.
        '[' => {
            let rest = inner.trim_start_matches(|c| (' '..='?').contains(&c));
            rest.strip_prefix(|c| ('@'..='~').contains(&c)).unwrap_or(rest)
        }
        // A title, up to BEL, or to the next ESC with its backslash.
        ']' => {
            let end = inner.find(['\u{7}', '\n']).unwrap_or(inner.len());
            inner[end..].trim_start_matches('\u{7}')
        }
        // A character set.
        '(' | ')' => inner.strip_prefix(|c: char| c.is_ascii_alphanumeric()).unwrap_or(inner),
        '\n' => text,
        _ => inner,
    }
}
