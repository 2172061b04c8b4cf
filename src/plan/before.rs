//! What is done to a server before a step, so that it starts from a known state.

use std::fmt;
use std::time::Duration;

use super::profile::Database;
use super::units;
pub use crate::terms::Warm;

/// What is done, and what is expected to be found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Before {
    pub warm: Warm,
    pub ahi: Ahi,
    /// Before each step: wait for so long at most until what was written before is flushed and
    /// purged.
    pub settle: Option<Duration>,
    /// The data are to fit into the buffer pool, or not to.
    pub expect: Option<Database>,
}

/// `--ahi`
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    clap::ValueEnum,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Ahi {
    /// Left alone
    #[default]
    AsIs,
    /// Switched off and on again before each step: it starts empty
    Cold,
    /// Before each step rows are read until it answers as many searches as it will
    Warm,
}

impl fmt::Display for Ahi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ahi::AsIs => "as-is",
            Ahi::Cold => "cold",
            Ahi::Warm => "warm",
        })
    }
}

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.warm == Warm::Pool {
            parts.push("warm pool".to_owned());
        }
        if self.ahi != Ahi::AsIs {
            parts.push(format!("ahi {}", self.ahi));
        }
        if let Some(limit) = self.settle {
            parts.push(format!("settle {}", units::duration(limit)));
        }
        f.write_str(if parts.is_empty() { "nothing" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

/// `--expect-class`: the classes of the summaries.
pub fn parse_class(text: &str) -> Result<Database, String> {
    match text {
        "cached" => Ok(Database::InsideBufferPool),
        "io-bound" => Ok(Database::LargerThanBufferPool),
        _ => Err(format!("'{text}' is neither cached nor io-bound")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_done() {
        assert_eq!(Before::default().to_string(), "nothing");
        let all = Before {
            warm: Warm::Pool,
            ahi: Ahi::Cold,
            settle: units::parse_duration("5m").ok(),
            expect: None,
        };
        assert_eq!(all.to_string(), "warm pool, ahi cold, settle 5m");
        assert_eq!(parse_class("cached"), Ok(Database::InsideBufferPool));
        assert!(parse_class("warm").is_err());
    }
}
