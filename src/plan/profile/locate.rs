//! Where in the file something is wrong.

use std::fmt;
use std::ops::Range;

use crate::error::Error;

/// Characters of a line that a message shows.
const SHOWN_MAX: usize = 100;

/// Something wrong at a place of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Bytes of the text.
    pub(crate) span: Range<usize>,
    /// What is wrong.
    pub(crate) what: String,
}

impl Fault {
    pub(crate) fn new(span: Range<usize>, what: impl Into<String>) -> Self {
        Fault { span, what: what.into() }
    }
}

/// The file, for errors about it.
#[derive(Clone, Default)]
pub(crate) struct File {
    pub(crate) origin: String,
    pub(crate) text: String,
}

/// The text may hold passwords.
impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}

impl File {
    /// The error of a fault: `FILE:LINE:COLUMN: what`, then the line.
    pub(crate) fn error(&self, fault: &Fault) -> Error {
        let (line, column, shown) = place(&self.text, fault.span.start);
        let excerpt = if may_hold_password(shown) {
            String::new()
        } else {
            let shown: String = shown.chars().take(SHOWN_MAX).collect();
            format!("\n  {line} | {}", shown.trim_end())
        };
        let what = if quotes_password(&fault.what) {
            "a text that may hold a password does not belong here"
        } else {
            &fault.what
        };
        Error::usage(format!("{}:{line}:{column}: {what}{excerpt}", self.origin))
            .hint("docs/profiles.md lists every key")
    }
}

/// Line and column from 1, the column in characters, and the line's text.
fn place(text: &str, at: usize) -> (usize, usize, &str) {
    let before = text.get(..at).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    let column = before.get(start..).unwrap_or_default().chars().count() + 1;
    let rest = text.get(start..).unwrap_or_default();
    (line, column, rest.lines().next().unwrap_or_default())
}

/// A URL, or words for a command, which may hold one.
fn may_hold_password(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["://", "pass", "pwd", "-p"].iter().any(|sign| line.contains(sign))
}

/// Messages that quote a value do so in one of these forms; a URL in one is never of use.
fn quotes_password(what: &str) -> bool {
    what.contains("://") || (what.contains("string \"") && may_hold_password(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_from_one_in_characters() {
        let text = "a = 1\nü = \"x\" y\n";
        assert_eq!(place(text, 0), (1, 1, "a = 1"));
        assert_eq!(place(text, text.find('y').unwrap_or(0)), (2, 9, "ü = \"x\" y"));
        assert_eq!(place(text, text.len()), (3, 1, ""));
        assert_eq!(place("", 7), (1, 1, ""));
    }

    #[test]
    fn a_line_that_may_hold_a_password_is_not_shown() {
        let text = "url = \"mysql://u:marker@h\" x";
        let fault = Fault::new(27..28, "no such thing");
        let error = |text: &str, fault: &Fault| {
            File { origin: "p.toml".to_owned(), text: text.to_owned() }.error(fault)
        };
        let shown = error(text, &fault).render();
        assert!(shown.contains("p.toml:1:28: no such thing") && !shown.contains("marker"));
        for what in ["invalid type: string \"x -pmarker\", expected", "'mysql://u:marker@h' is no"]
        {
            let shown = error(text, &Fault::new(0..1, what)).render();
            assert!(!shown.contains("marker") && shown.contains("does not belong"), "{shown}");
        }
        let shown = error("\nrows = x", &Fault::new(8..9, "what")).render();
        assert!(shown.contains("p.toml:2:8: what\n  2 | rows = x"), "{shown}");
    }
}
