//! Names that people give, on the command line and in profiles.

/// Characters of a label: it is one cell of a table.
const LABEL_MAX: usize = 200;
/// Of a character set's name.
const CHARSET_MAX: usize = 32;

/// A label: the row of a table.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn label(text: &str) -> Result<String, String> {
    match text.chars().count() {
        0 => Err("a label has at least one character".to_owned()),
        n if n > LABEL_MAX => Err(format!("a label of {n} characters: at most {LABEL_MAX}")),
        _ if text.contains(char::is_control) => {
            Err("a label is one line: it has no control characters".to_owned())
        }
        _ => Ok(text.to_owned()),
    }
}

/// A character set's name: it reaches SQL.
///
/// # Errors
///
/// It is none.
pub(crate) fn charset(text: &str) -> Result<String, String> {
    let fits = !text.is_empty()
        && text.len() <= CHARSET_MAX
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if fits { Ok(text.to_owned()) } else { Err(format!("'{text}' is no character set's name")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lines_of_bounded_length() {
        assert!(label("8.0.33+ps").is_ok() && label(&"x".repeat(200)).is_ok());
        for text in ["", "a\nb", "\u{1b}[2J", &"x".repeat(201)] {
            assert!(label(text).is_err(), "{text:?}");
        }
        assert!(charset("utf8mb4").is_ok());
        for text in ["", "x'y", "latin 1", &"x".repeat(33)] {
            assert!(charset(text).is_err(), "{text:?}");
        }
    }
}
