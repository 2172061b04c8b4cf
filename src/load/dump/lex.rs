//! The tokens of one statement, as servers of every version read them. Comments with a version are SQL to
//! some: a quote or comment inside that could move the end is refused.

use std::ops::Range;

use memchr::{memchr, memchr2, memmem};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Word,
    Number,
    /// A text or a name, in these quotes.
    Quoted(u8),
    Sign(u8),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) shape: Shape,
    pub(super) range: Range<usize>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) list: Vec<Token>,
    pub(super) versioned: Vec<Range<usize>>,
    pub(super) end: usize,
}

pub(super) const AMBIGUOUS: &str =
    "a comment with a version that servers of other versions read otherwise";

/// Up to and including the first that `is_last`, or all. With `ansi` double quotes may enclose names.
pub(super) fn tokens(
    sql: &[u8],
    ansi: bool,
    mut is_last: impl FnMut(&Token) -> bool,
) -> Result<Tokens, String> {
    let (mut found, mut at, mut opened) = (Tokens::default(), 0, None);
    while let Some((&byte, rest)) = sql[at..].split_first() {
        let inside = opened.is_some();
        if let Some(length) = comment(&sql[at..])? {
            if inside {
                return Err(AMBIGUOUS.to_owned());
            }
            at += length;
            continue;
        }
        let (shape, length) = match byte {
            _ if is_blank(byte) => {
                at += 1;
                continue;
            }
            b'/' if rest.starts_with(b"*") => {
                if inside {
                    return Err(AMBIGUOUS.to_owned());
                }
                opened = Some(found.list.len());
                at += opening(&sql[at..])?;
                continue;
            }
            b'*' if inside && rest.starts_with(b"/") => {
                found.versioned.extend(opened.take().map(|from| from..found.list.len()));
                at += 2;
                continue;
            }
            b'\'' | b'"' | b'`' => {
                (Shape::Quoted(byte), quoted_in_comment(&sql[at..], ansi, inside)?)
            }
            b'0'..=b'9' => (Shape::Number, number(&sql[at..])),
            _ if in_word(byte) => (Shape::Word, word(&sql[at..])),
            b'(' | b')' | b',' | b'.' | b'=' | b'@' | b':' | b'+' | b'-' | b'*' | b'/' | b'<'
            | b'>' | b'!' | b'%' | b'&' | b'|' | b'^' | b'~' | b'[' | b']' | b'{' | b'}' => {
                (Shape::Sign(byte), 1)
            }
            _ => return Err(format!("a byte {byte:#04x} outside of quotes")),
        };
        let token = Token { shape, range: at..at + length };
        at += length;
        let last = is_last(&token);
        found.list.push(token);
        if last {
            break;
        }
    }
    if opened.is_some() {
        return Err("a comment without end".to_owned());
    }
    found.end = at;
    Ok(found)
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')
}

/// Returns whether a byte may be part of a word; letters of other alphabets may.
pub(super) fn in_word(byte: u8) -> bool {
    WORD[usize::from(byte)]
}

/// A table for speed: dumps have hundreds of megabytes of hexadecimal digits.
static WORD: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], 0);
    while byte < 256 {
        let ascii = byte as u8;
        table[byte] = ascii.is_ascii_alphanumeric() || matches!(ascii, b'_' | b'$') || byte > 127;
        byte += 1;
    }
    table
};

pub(super) fn word(text: &[u8]) -> usize {
    text.iter().position(|byte| !in_word(*byte)).unwrap_or(text.len())
}

pub(super) fn number(text: &[u8]) -> usize {
    text.iter().position(|byte| !in_word(*byte) && *byte != b'.').unwrap_or(text.len())
}

/// Counts the bytes of a comment without a version that begins here; None if there is none.
pub(super) fn comment(text: &[u8]) -> Result<Option<usize>, String> {
    let line = || Some(memchr(b'\n', text).map_or(text.len(), |at| at + 1));
    Ok(match text {
        [b'#', ..] | [b'-', b'-'] => line(),
        [b'-', b'-', after, ..] if is_blank(*after) => line(),
        [b'-', b'-', ..] => return Err("'--' that is no comment".to_owned()),
        [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] => None,
        [b'/', b'*', b'+', ..] => return Err("a hint of the optimizer".to_owned()),
        [b'/', b'*', inner @ ..] => match memmem::find(inner, b"*/") {
            Some(at) => Some(at + 4),
            None => return Err("a comment without end".to_owned()),
        },
        _ => None,
    })
}

/// Counts the bytes that begin a comment with a version.
fn opening(text: &[u8]) -> Result<usize, String> {
    let sql = text.iter().position(|b| *b == b'!').expect("it is one") + 1;
    match text[sql..].iter().take_while(|b| b.is_ascii_digit()).count() {
        digits @ (0 | 5 | 6) => Ok(sql + digits),
        _ => Err(AMBIGUOUS.to_owned()),
    }
}

/// Counts the bytes of a quoted text; in a comment it must not hold the marks of one.
fn quoted_in_comment(text: &[u8], ansi: bool, in_comment: bool) -> Result<usize, String> {
    let length = quoted(text, ansi)?;
    let has = |mark: &[u8]| memmem::find(&text[..length], mark).is_some();
    if in_comment && (has(b"*/") || has(b"/*")) {
        return Err(AMBIGUOUS.to_owned());
    }
    Ok(length)
}

pub(super) fn quoted(text: &[u8], ansi: bool) -> Result<usize, String> {
    let quote = text[0];
    let escape = if quote == b'`' { quote } else { b'\\' };
    let mut at = 1;
    loop {
        let Some(found) = text.get(at..).and_then(|rest| memchr2(quote, escape, rest)) else {
            return Err("a quote without end".to_owned());
        };
        at += found;
        if text[at] != quote {
            if quote == b'"' && ansi {
                return Err("a backslash in a name, in an sql_mode of ANSI".to_owned());
            }
            at += 2;
        } else if text.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return Ok(at + 1);
        }
    }
}
