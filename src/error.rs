//! One error type. Each variant knows what to say, its hint, and the exit status.

use std::fmt;

/// What went wrong, seen from the person at the terminal: it decides the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A step failed (1).
    Failed,
    /// A flag, a value or a file of the command line is wrong (2).
    Usage,
    /// There is no server, or the preflight refused it (3).
    Server,
    /// Data is refused or inconsistent (4): report, compare, verify, a foreign table.
    Data,
    /// Too few repeats to decide (98).
    Undecided,
    /// A gate failed (99).
    Gate,
    /// Stopped by SIGINT (130).
    Interrupted,
    /// Stopped by SIGTERM or SIGHUP (143).
    Terminated,
}

impl Kind {
    /// The process's exit status.
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

/// An error as it is shown: what happened, then `hint:` what to do about it.
///
/// Messages never hold a password; texts of servers and files go through
/// [`plain`] so that no terminal escape gets through.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: Kind,
    message: String,
    hints: Vec<String>,
    may_pass: bool,
}

/// The result of everything that can fail here.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of a kind; the message names the input that caused it.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error { kind, message: indented(&message.into()), hints: Vec::new(), may_pass: false }
    }

    /// A wrong flag, value or file of the command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// No server, or one that cannot run the plan.
    pub(crate) fn server(message: impl Into<String>) -> Self {
        Self::new(Kind::Server, message)
    }

    /// Data that is refused.
    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self::new(Kind::Data, message)
    }

    /// A step or an operation that failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, message)
    }

    /// Adds what the reader can do about it.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(indented(&hint.into()));
        self
    }

    /// Says something else in the place of a hint that does not hold here.
    #[must_use]
    pub(crate) fn instead(mut self, hint: &str, other: &str) -> Self {
        for known in self.hints.iter_mut().filter(|known| *known == hint) {
            *known = indented(other);
        }
        self
    }

    /// Puts where it happened in front of the message.
    #[must_use]
    pub(crate) fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{}: {}", indented(&context.to_string()), self.message);
        self
    }

    /// Says whether the same may work a little later, without anybody's doing.
    #[must_use]
    pub(crate) fn passing(mut self, may_pass: bool) -> Self {
        self.may_pass = may_pass;
        self
    }

    /// Whether the same may work a little later: a server that starts, shuts down or is full.
    pub(crate) fn may_pass(&self) -> bool {
        self.may_pass
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What to do about it, most useful first.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// The text for standard error: `error: …`, then a blank line and the hints.
    pub fn render(&self) -> String {
        let mut text = format!("error: {}\n", self.message);
        for (i, hint) in self.hints.iter().enumerate() {
            text.push_str(if i == 0 { "\nhint: " } else { "hint: " });
            text.push_str(hint);
            text.push('\n');
        }
        text
    }
}

/// Text of foreign origin made safe for a terminal: control characters (but line
/// ends and tabs) and the bidirectional overrides become `\u{…}` escapes.
pub fn plain(text: &str) -> String {
    let hostile = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(hostile) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if hostile(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Text of foreign origin made safe for one line of a terminal: as [`plain`], and line ends, tabs
/// and what else breaks or reorders a line become escapes, too.
pub(crate) fn line(text: &str) -> String {
    let breaking = |c: char| {
        matches!(c, '\n' | '\t' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
    };
    let text = plain(text);
    if !text.contains(breaking) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if breaking(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// At most so many characters of one line of text.
pub(crate) fn clip(text: &str, chars_max: usize) -> String {
    let mut clipped: String = text.chars().take(chars_max).collect();
    if clipped.len() < text.len() {
        clipped.push('…');
    }
    line(&clipped)
}

/// Longest value that an error or a note shows, characters.
pub(crate) const VALUE_MAX: usize = 60;
/// Characters of a long value that stand before what differs in it.
const CONTEXT: usize = 12;

/// Two different values, shortened to what differs: never so that they look alike.
pub(crate) fn told_apart(one: &str, other: &str) -> (String, String) {
    let shown = |text: &str| match text {
        "" => "(empty)".to_owned(),
        text => clip(text, VALUE_MAX),
    };
    if one.chars().count().max(other.chars().count()) <= VALUE_MAX {
        return (shown(one), shown(other));
    }
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(CONTEXT);
    let cut = |text: &str| {
        let rest: String = text.chars().skip(from).collect();
        if from > 0 { format!("…{}", clip(&rest, VALUE_MAX)) } else { shown(&rest) }
    };
    (cut(one), cut(other))
}

/// As [`plain`], and what begins a new line is indented: no text that an error or a warning quotes
/// can look like another one.
pub(crate) fn indented(text: &str) -> String {
    let text = plain(text);
    if !text.contains('\n') {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            out.push('\n');
        }
        if at > 0 && !line.is_empty() && !line.starts_with("  ") {
            out.push_str("  ");
        }
        out.push_str(line);
    }
    out
}

/// Of several errors the one that is shown and decides the exit status: 130/143, 3, 1, 4,
/// 99, 98 in this order, of the same kind the first; a usage error never meets another, because nothing
/// has run.
pub(crate) fn worst(errors: impl IntoIterator<Item = Error>) -> Option<Error> {
    ranked(errors).0
}

/// The worst, and the others in their order.
pub(crate) fn ranked(errors: impl IntoIterator<Item = Error>) -> (Option<Error>, Vec<Error>) {
    const ORDER: [Kind; 8] = [
        Kind::Interrupted,
        Kind::Terminated,
        Kind::Usage,
        Kind::Server,
        Kind::Failed,
        Kind::Data,
        Kind::Gate,
        Kind::Undecided,
    ];
    let mut errors: Vec<Error> = errors.into_iter().collect();
    let rank = |error: &Error| ORDER.iter().position(|kind| *kind == error.kind);
    let first = (0..errors.len()).min_by_key(|at| errors.get(*at).map(rank));
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
    fn clipping_counts_characters() {
        assert_eq!(clip("größe", 5), "größe");
        assert_eq!(clip("größer", 5), "größe…");
    }

    #[test]
    fn the_worst_status_wins() {
        let code = |kinds: &[Kind]| {
            worst(kinds.iter().map(|kind| Error::new(*kind, "x"))).map(|e| e.kind().exit_code())
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
        assert_eq!(told_apart("a", "b"), ("a".to_owned(), "b".to_owned()));
    }
}
