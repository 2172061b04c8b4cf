//! A password that no message, log or debug output shows.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// A password, or a text that may hold one (the URL of `--url`). `Debug` and `Display` show
/// `***`, or nothing where there is nothing to hide.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// Whether there is no text: to a server, no password.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text itself: for the driver, the parser of URLs and the hand-over, for nothing that
    /// prints.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Secret::new(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "" } else { "***" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_shows_the_text() {
        let secret = Secret::new("marker");
        assert_eq!(
            format!("{secret} {secret:?} {:#?}", Some(&secret)),
            "*** *** Some(\n    ***,\n)"
        );
        assert_eq!(format!("[{}]", Secret::default()), "[]");
        assert_eq!(secret.expose(), "marker");
    }
}
