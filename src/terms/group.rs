//! The name of a group of clients beside the measured ones.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const NAME_MAX: usize = 24;

/// A name of a-z, 0-9 and -; small enough to be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupName {
    /// Zeros fill it up.
    bytes: [u8; NAME_MAX],
}

impl GroupName {
    /// Makes a name of a workload's or a file's, without the characters that it cannot have.
    pub(crate) fn from_text(text: &str) -> GroupName {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let plain =
            text.chars().map(|c| c.to_ascii_lowercase()).map(|c| if fits(c) { c } else { '-' });
        let name: String = plain.take(NAME_MAX).collect();
        name.parse().unwrap_or_else(|_| GroupName::from_text("sql"))
    }

    pub(crate) fn as_str(&self) -> &str {
        let length = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(NAME_MAX);
        str::from_utf8(&self.bytes[..length]).expect("ASCII")
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for GroupName {
    type Err = String;

    fn from_str(text: &str) -> Result<GroupName, String> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if text.is_empty() || text.len() > NAME_MAX || !text.bytes().all(fits) {
            return Err(format!(
                "'{text}' is no name of a group: 1 to {NAME_MAX} of a-z, 0-9 and -"
            ));
        }
        let mut bytes = [0; NAME_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(GroupName { bytes })
    }
}

impl Serialize for GroupName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for GroupName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_read_when_it_is_short_and_plain() {
        for text in ["writer", "a", "insert-2", "abcdefghijklmnopqrstuvwx"] {
            assert_eq!(text.parse::<GroupName>().expect(text).as_str(), text);
        }
        for text in ["", "Writer", "a.b", "a b", "é", "abcdefghijklmnopqrstuvwxy"] {
            assert!(text.parse::<GroupName>().is_err(), "{text}");
        }
        assert_eq!(GroupName::from_text("My tx.v2").as_str(), "my-tx-v2");
        assert_eq!(GroupName::from_text("").as_str(), "sql");
    }
}
