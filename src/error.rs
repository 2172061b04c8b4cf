//! The one error type: a message, hints and an exit status.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The cause of an error: it decides the exit status. The worst come first: of several errors that one is
/// shown. Usage never meets another, because nothing has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// Stopped by SIGINT (130). What was measured is saved.
    Interrupted,
    /// Stopped by SIGTERM or SIGHUP (143). What was measured is saved.
    Terminated,
    /// A flag, a value or a file of the command line is wrong, a PATH has no summaries, or the server cannot parse the SQL (2).
    Usage,
    /// There is no server, or the preflight refused it (3).
    Server,
    /// A step failed (1). What it had measured is saved.
    Failed,
    /// Data is refused (4): `verify` finds something lost or damaged, or an index that disagrees; `report` and
    /// `compare` get what does not fit together; `import` gets what is broken, or no output of a test;
    /// `prepare` and `load` meet tables that are not their own.
    Data,
    /// A gate failed (99): `--gate`; no rate holds `--slo`; with `compare --fail-on-regression` a new label is
    /// worse.
    Gate,
    /// Undecided (98): a gate or a rate that is not known, too few repeats, what `verify` or `recheck` cannot
    /// decide, `compare --fail-on inconclusive`.
    Undecided,
}

impl Kind {
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::Server => 3,
            Kind::Data => 4,
            Kind::Undecided => 98,
            Kind::Gate => 99,
            Kind::Interrupted => 130,
            Kind::Terminated => 143,
        }
    }
}

/// An error as it is shown, with hints. Holds no password; texts of servers and files lose their terminal
/// escapes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Error {
    kind: Kind,
    message: String,
    hints: Vec<String>,
    may_pass: bool,
    #[serde(skip_serializing)]
    may_force: bool,
}

/// An error of another process, whose texts may have escapes.
#[derive(Deserialize)]
struct Written {
    kind: Kind,
    message: String,
    hints: Vec<String>,
    may_pass: bool,
}

impl From<Written> for Error {
    fn from(written: Written) -> Error {
        let Written { kind, message, hints, may_pass } = written;
        let hints = hints.iter().map(|hint| indented(hint)).collect();
        // Gates and signals decide here.
        let kind = if kind == Kind::Server { kind } else { Kind::Failed };
        Error { kind, message: indented(&message), hints, may_pass, may_force: false }
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// Makes an error; the message names the input that caused it.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        let message = indented(&message.into());
        Error { kind, message, hints: Vec::new(), may_pass: false, may_force: false }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub(crate) fn server(message: impl Into<String>) -> Self {
        Self::new(Kind::Server, message)
    }

    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self::new(Kind::Data, message)
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, message)
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(indented(&hint.into()));
        self
    }

    #[must_use]
    pub(crate) fn add_hints(self, hints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        hints.into_iter().fold(self, Self::hint)
    }

    /// Replaces a hint that is wrong here.
    #[must_use]
    pub(crate) fn instead(mut self, hint: &str, other: &str) -> Self {
        for known in self.hints.iter_mut().filter(|known| *known == hint) {
            *known = indented(other);
        }
        self
    }

    #[must_use]
    pub(crate) fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{}: {}", indented(&context.to_string()), self.message);
        self
    }

    /// Marks an error that may go away by itself: the server starts, shuts down or is full.
    #[must_use]
    pub(crate) fn passing(mut self, may_pass: bool) -> Self {
        self.may_pass = may_pass;
        self
    }

    pub(crate) fn may_pass(&self) -> bool {
        self.may_pass
    }

    /// Marks a refusal of tables that loadgen made.
    #[must_use]
    pub(crate) fn allow_force(mut self) -> Self {
        self.may_force = true;
        self
    }

    /// Returns whether `--force` would drop what is in the way.
    pub(crate) fn may_force(&self) -> bool {
        self.may_force
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the hints, the most useful first.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Renders the text for standard error: `error: …`, then a blank line and the hints.
    pub fn render(&self) -> String {
        let hints: String = self.hints.iter().map(|hint| format!("hint: {hint}\n")).collect();
        let blank = if hints.is_empty() { "" } else { "\n" };
        format!("error: {}\n{blank}{hints}", self.message)
    }
}

fn escaped(text: &str, hostile: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if !hostile(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c => out.extend(c.escape_unicode()),
        }
    }
    out
}

pub(crate) fn drives_terminal(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes control characters (except line ends and tabs) and bidirectional overrides as `\u{…}`.
pub fn plain(text: &str) -> String {
    escaped(text, |c| drives_terminal(c) && !matches!(c, '\n' | '\t'))
}

/// Makes a text safe for one line of a terminal: escapes whatever else breaks or reorders a line.
pub(crate) fn line(text: &str) -> String {
    escaped(text, is_hostile)
}

/// Returns whether a character drives a terminal, breaks a line or reorders it.
pub(crate) fn is_hostile(c: char) -> bool {
    let breaks = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}');
    drives_terminal(c) || breaks
}

pub(crate) fn clip(text: &str, chars_max: usize) -> String {
    let mut clipped: String = text.chars().take(chars_max).collect();
    if clipped.len() < text.len() {
        clipped.push('…');
    }
    line(&clipped)
}

/// Longest value that an error or a note shows, characters.
pub(crate) const VALUE_MAX: usize = 60;
/// Characters of a long value before its first difference.
const CONTEXT: usize = 12;
const SEPARATORS: [&str; 4] = [" and ", "; ", ", ", ","];

/// Shortens two different values to their difference: the results always differ.
pub(crate) fn told_apart(one: &str, other: &str) -> (String, String) {
    if one.chars().count().max(other.chars().count()) <= VALUE_MAX {
        let shown = |text: &str| match text {
            "" => "(empty)".to_owned(),
            text => clip(text, VALUE_MAX),
        };
        return (shown(one), shown(other));
    }
    lists_apart(one, other).unwrap_or_else(|| texts_apart(one, other))
}

/// Returns the items that only one of two lists has; None if the lists have the same items.
fn lists_apart(one: &str, other: &str) -> Option<(String, String)> {
    let most =
        |separator: &str| one.matches(separator).count().max(other.matches(separator).count());
    let separator = SEPARATORS.into_iter().find(|separator| most(separator) > 1)?;
    let [ones, others] = [one, other].map(|text| text.split(separator).collect::<BTreeSet<_>>());
    let only = |text: &str, there: &BTreeSet<&str>| {
        let items: Vec<&str> = text.split(separator).filter(|item| !there.contains(item)).collect();
        match items.as_slice() {
            [] => "(absent)".to_owned(),
            items => format!("…{}", clip(&items.join(separator), VALUE_MAX)),
        }
    };
    let (one, other) = (only(one, &others), only(other, &ones));
    (one != other).then_some((one, other))
}

fn texts_apart(one: &str, other: &str) -> (String, String) {
    let [ones, others] = [one, other].map(|text| text.chars().collect::<Vec<char>>());
    let same = ones.iter().zip(&others).take_while(|(a, b)| a == b).count();
    let left = ones.len().min(others.len()) - same;
    let both = ones.iter().rev().zip(others.iter().rev());
    let behind = both.take(left).take_while(|(a, b)| a == b).count();
    let (from, cut) = (same.saturating_sub(CONTEXT), behind.saturating_sub(CONTEXT));
    let shown = |text: &[char]| {
        let part: String = text[from..text.len() - cut].iter().collect();
        let (before, behind) = (if from > 0 { "…" } else { "" }, if cut > 0 { "…" } else { "" });
        match clip(&part, VALUE_MAX) {
            part if part.is_empty() => "(empty)".to_owned(),
            part if part.ends_with('…') => format!("{before}{part}"),
            part => format!("{before}{part}{behind}"),
        }
    };
    (shown(&ones), shown(&others))
}

/// Longest line of an error or a note, characters: it fits a screen.
const LINE_MAX: usize = 1000;

fn cut(text: &str) -> String {
    let lines = text.split('\n').map(|line| match line.char_indices().nth(LINE_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Indents all lines but the first of a [`plain`] text: a quoted text cannot look like another error.
pub(crate) fn indented(text: &str) -> String {
    let indent = |line: &str| match line {
        "" => "\n".to_owned(),
        line if line.starts_with("  ") => format!("\n{line}"),
        line => format!("\n  {line}"),
    };
    let text = plain(&cut(text));
    let (first, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
    rest.split('\n').skip(1).fold(first.to_owned(), |text, line| text + &indent(line))
}

/// Returns the worst error, of one kind the first, and the others in order.
pub(crate) fn ranked(errors: impl IntoIterator<Item = Error>) -> (Option<Error>, Vec<Error>) {
    let mut errors: Vec<Error> = errors.into_iter().collect();
    let first = (0..errors.len()).min_by_key(|at| errors[*at].kind);
    (first.map(|at| errors.remove(at)), errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_the_message_then_the_hints() {
        let error = Error::usage("--clients 'x' is no number").hint("8..256 doubles");
        assert_eq!(error.render(), "error: --clients 'x' is no number\n\nhint: 8..256 doubles\n");
        assert_eq!(error.kind().exit_code(), 2);
    }

    #[test]
    fn escapes_of_a_hostile_server_stay_text() {
        let error = Error::server("server says \u{1b}[2J\u{202e}x");
        assert_eq!(error.to_string(), "server says \\u{1b}[2J\\u{202e}x");
    }

    #[test]
    fn a_line_stays_one_line() {
        assert_eq!(
            line("a\nb\tc\r\u{1b}[2J\u{2028}\u{202e}"),
            "a\\nb\\tc\\u{d}\\u{1b}[2J\\u{2028}\\u{202e}"
        );
        assert_eq!(line("größe+bp8"), "größe+bp8");
    }

    #[test]
    fn a_message_is_cut_whatever_it_quotes() {
        let error = Error::usage(format!("a\n'{}'", "ö".repeat(10_000))).hint("x".repeat(10_000));
        let error = error.context("y".repeat(10_000));
        let longest = error.render().lines().map(|line| line.chars().count()).max();
        assert!(longest.is_some_and(|longest| longest < 2 * LINE_MAX + 100), "{longest:?}");
    }

    #[test]
    fn clipping_counts_characters() {
        assert_eq!(clip("größe", 5), "größe");
        assert_eq!(clip("größer", 5), "größe…");
    }

    #[test]
    fn the_worst_status_wins() {
        let code = |kinds: &[Kind]| {
            let (worst, _) = ranked(kinds.iter().map(|kind| Error::new(*kind, "x")));
            worst.map(|e| e.kind().exit_code())
        };
        assert_eq!(code(&[Kind::Data, Kind::Failed]), Some(1));
        assert_eq!(code(&[Kind::Undecided, Kind::Gate]), Some(99));
        assert_eq!(code(&[Kind::Gate, Kind::Data]), Some(4));
        assert_eq!(code(&[Kind::Failed, Kind::Server, Kind::Terminated]), Some(143));
        assert_eq!(code(&[]), None);
        let all = [Error::failed("a"), Error::server("b"), Error::server("c"), Error::data("d")];
        let (worst, others) = ranked(all);
        assert_eq!(worst.map(|e| e.to_string()).as_deref(), Some("b"), "of a kind the first");
        let others: Vec<String> = others.iter().map(Error::to_string).collect();
        assert_eq!(others, ["a", "c", "d"]);
    }

    #[test]
    fn long_values_are_cut_to_what_differs() {
        let long = "x".repeat(100);
        let (one, other) = told_apart(&format!("{long} one"), &format!("{long} two"));
        assert_ne!(one, other);
        assert!(one.ends_with(" one") && one.chars().count() <= VALUE_MAX, "{one}");
        let (one, other) = told_apart(&long, &format!("{long} more"));
        assert_ne!(one, other);
        let (one, other) = told_apart(&format!("{long}1{long}"), &format!("{long}22{long}"));
        let x = "x".repeat(CONTEXT);
        assert_eq!((one, other), (format!("…{x}1{x}…"), format!("…{x}22{x}…")));
        assert_eq!(told_apart("a", "b"), ("a".to_owned(), "b".to_owned()));
    }

    #[test]
    fn long_lists_are_cut_to_the_items_that_one_of_them_has() {
        struct Case {
            separator: &'static str,
            without: &'static [usize],
            shown: &'static str,
        }
        let cases = [
            Case { separator: " and ", without: &[3], shown: "…item 3" },
            Case { separator: ",", without: &[0, 11], shown: "…item 0,item 11" },
            Case { separator: "; ", without: &[11], shown: "…item 11" },
        ];
        for Case { separator, without, shown } in cases {
            let list = |without: &[usize]| {
                let items = (0..12).filter(|at| !without.contains(at));
                items.map(|at| format!("item {at}")).collect::<Vec<_>>().join(separator)
            };
            let whole = list(&[]);
            let apart = (shown.to_owned(), "(absent)".to_owned());
            assert_eq!(told_apart(&whole, &list(without)), apart);
            let (other, one) = told_apart(&list(without), &whole);
            assert_eq!((one, other), apart);
        }
        let [one, other] = ["a, b, c", "c, b, a"].map(|text| text.replace('a', &"a".repeat(70)));
        let (one, other) = told_apart(&one, &other);
        assert_ne!(one, other, "the same items in another order");
    }
}
