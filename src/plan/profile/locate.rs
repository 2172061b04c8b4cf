//! Where in the file something is wrong.

use std::fmt;

use toml::de::{DeTable, DeValue};

use crate::error::Error;

/// Characters of a line that a message shows.
const SHOWN_MAX: usize = 100;

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
    /// The error at a byte of the text: `FILE:LINE:COLUMN: what`, then the line.
    pub(crate) fn error(&self, at: usize, what: &str) -> Error {
        let (line, column, shown) = place(&self.text, at);
        let excerpt = if may_hold_password(shown) {
            String::new()
        } else {
            let shown: String = shown.chars().take(SHOWN_MAX).collect();
            format!("\n  {line} | {}", shown.trim_end())
        };
        let what = if quotes_password(what) {
            "a text that may hold a password does not belong here"
        } else {
            what
        };
        Error::usage(format!("{}:{line}:{column}: {what}{excerpt}", self.origin))
            .hint("docs/profiles.md lists every key")
    }

    /// The error of what is no TOML, or has another form; `also` names keys that it does not know.
    pub(crate) fn wrong(&self, error: &toml::de::Error, also: &str) -> Error {
        let at = error.span().map_or(self.text.len(), |span| span.start);
        match error.message() {
            what if what.starts_with("unknown field") => self.error(at, &format!("{what}{also}")),
            what => self.error(at, what),
        }
    }

    /// Finds the value of a path, such as `run/0/spread`: where it begins, or what would hold it.
    pub(crate) fn place(&self, path: &str) -> usize {
        let doc = DeTable::parse(&self.text).expect("what was read is TOML");
        let mut found = doc.span().start;
        let doc = DeValue::Table(doc.into_inner());
        let mut value = &doc;
        for key in path.split('/') {
            let next = match value {
                DeValue::Table(table) => table.get(key),
                DeValue::Array(list) => key.parse().ok().and_then(|n: usize| list.get(n)),
                _ => None,
            };
            let Some(next) = next else { break };
            found = next.span().start;
            value = next.get_ref();
        }
        found
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
    fn paths_lead_to_values_or_to_what_would_hold_them() {
        let text = "name = \"x\"\n[[run]]\na = 1\n[[run]]\nlist = [\"b\", \"c\"]\n";
        let file = File { origin: "p.toml".to_owned(), text: text.to_owned() };
        for (path, at) in [
            ("name", "\"x\""),
            ("run/0/a", "1"),
            ("run/1/list/1", "\"c\""),
            ("run/1/a", "[[run]]\nlist"),
            ("name/0", "\"x\""),
        ] {
            assert_eq!(
                text.get(file.place(path)..).map(|t| t.starts_with(at)),
                Some(true),
                "{path}"
            );
        }
    }

    #[test]
    fn a_line_that_may_hold_a_password_is_not_shown() {
        let text = "url = \"mysql://u:marker@h\" x";
        let error = |text: &str, at: usize, what: &str| {
            File { origin: "p.toml".to_owned(), text: text.to_owned() }.error(at, what)
        };
        let shown = error(text, 27, "no such thing").render();
        assert!(shown.contains("p.toml:1:28: no such thing") && !shown.contains("marker"));
        for what in ["invalid type: string \"x -pmarker\", expected", "'mysql://u:marker@h' is no"]
        {
            let shown = error(text, 0, what).render();
            assert!(!shown.contains("marker") && shown.contains("does not belong"), "{shown}");
        }
        let shown = error("\nrows = x", 8, "what").render();
        assert!(shown.contains("p.toml:2:8: what\n  2 | rows = x"), "{shown}");
    }
}
