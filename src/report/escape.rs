//! Foreign text made safe for where it goes: a line, markup, a Markdown cell, a spreadsheet.

use crate::error::is_hostile;
pub(crate) use crate::error::{clip, line};

/// One line, without the two characters that no XML may hold.
pub(crate) fn markup(text: &str) -> String {
    line(text).replace('\u{fffe}', "\\u{fffe}").replace('\u{ffff}', "\\u{ffff}")
}

/// Makes a large text safe for markup; does not copy one that is safe.
pub(crate) fn markup_owned(text: String) -> String {
    let safe = |c: char| !is_hostile(c) && !matches!(c, '\u{fffe}' | '\u{ffff}');
    if text.chars().all(safe) { text } else { markup(&text) }
}

/// No cell ends early, and nothing becomes markup. An underscore inside a word is none: labels are full of them.
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

/// Escapes a line that stands alone, so that it begins no list.
pub(crate) fn paragraph(text: &str) -> String {
    let text = markdown(text);
    let (number, sign) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    let signs: &[char] = if number.is_empty() { &['-', '+'] } else { &['.', ')'] };
    let rest = sign.strip_prefix(signs);
    let begins = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    if begins { format!("{number}\\{sign}") } else { text }
}

/// No spreadsheet takes it for a formula: an apostrophe precedes what starts like one, also full width or indented.
pub(crate) fn formula(text: &str) -> String {
    let text = line(text);
    let begins = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    if text.trim_start().starts_with(begins) { format!("'{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_does_not_leave_its_cell() {
        assert_eq!(markdown("a|b`c`"), "a\\|b\\`c\\`");
        assert_eq!(markdown("<img src=x>"), "\\<img src=x\\>");
        assert_eq!(markdown("my5651_rel_o2nofp"), "my5651_rel_o2nofp");
        assert_eq!(markdown("_x_ **y** [z](w)"), "\\_x\\_ \\*\\*y\\*\\* \\[z\\](w)");
        assert_eq!(markdown("a\\|b"), "a\\\\\\|b");
    }

    #[test]
    fn paragraph_begins_no_list_when_it_begins_like_an_item() {
        for (text, written) in [
            ("- among", "\\- among"),
            ("+ 1", "\\+ 1"),
            ("1. a", "1\\. a"),
            ("12) a", "12\\) a"),
            ("* a", "\\* a"),
            ("-", "\\-"),
            ("-5 %", "-5 %"),
            ("1.5 s", "1.5 s"),
            ("8 clients", "8 clients"),
            ("", ""),
        ] {
            assert_eq!(paragraph(text), written);
        }
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
