//! Foreign text made safe for where it goes: a line, markup, a Markdown cell, a spreadsheet.

use crate::error::plain;

/// Text on one line of a terminal: line ends, tabs, control characters and what reorders or
/// breaks a line become escapes.
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

/// Text for markup, which escapes what would be a tag: one line, without the two characters that
/// no XML may hold.
pub(crate) fn markup(text: &str) -> String {
    line(text).replace('\u{fffe}', "\\u{fffe}").replace('\u{ffff}', "\\u{ffff}")
}

/// At most so many characters of one line of text.
pub(crate) fn clip(text: &str, chars_max: usize) -> String {
    let mut clipped: String = text.chars().take(chars_max).collect();
    if clipped.len() < text.len() {
        clipped.push('…');
    }
    line(&clipped)
}

/// Text in a Markdown table: no cell ends early, and nothing becomes markup. An underscore
/// inside a word is none, and labels are full of them.
pub(crate) fn markdown(text: &str) -> String {
    let text = line(text);
    let chars: Vec<char> = text.chars().collect();
    let word = |at: Option<usize>| {
        at.and_then(|at| chars.get(at)).is_some_and(|c: &char| c.is_alphanumeric() || *c == '_')
    };
    let mut out = String::with_capacity(text.len() + 8);
    for (at, c) in chars.iter().enumerate() {
        let inside_word = word(at.checked_sub(1)) && word(Some(at + 1));
        if "\\`*[]<>|~#&!$".contains(*c) || (*c == '_' && !inside_word) {
            out.push('\\');
        }
        out.push(*c);
    }
    out
}

/// Text of a CSV cell that no spreadsheet takes for a formula: an apostrophe goes in front of
/// what starts like one, also behind blanks and in full width.
pub(crate) fn formula(text: &str) -> String {
    let text = line(text);
    if text.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) {
        format!("'{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn markdown_does_not_leave_its_cell() {
        assert_eq!(markdown("a|b`c`"), "a\\|b\\`c\\`");
        assert_eq!(markdown("<img src=x>"), "\\<img src=x\\>");
        assert_eq!(markdown("my5651_rel_o2nofp"), "my5651_rel_o2nofp");
        assert_eq!(markdown("_x_ **y** [z](w)"), "\\_x\\_ \\*\\*y\\*\\* \\[z\\](w)");
        assert_eq!(markdown("a\\|b"), "a\\\\\\|b");
    }

    #[test]
    fn formulas_become_text() {
        for text in ["=cmd()", "+1", "-1", "@x", " =1", "＝1"] {
            assert_eq!(formula(text), format!("'{text}"));
        }
        assert_eq!(formula("\t=1"), "\\t=1");
        assert_eq!(formula("a=b"), "a=b");
    }
}
