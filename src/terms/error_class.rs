//! The classes of failed operations, as the policy and the files know them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The class of an error: of a server's by its code, or one of the client's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// Clients that meet on a row: counted under every policy, the session goes on.
    Session,
    /// The server takes no writes.
    ReadOnly,
    /// It takes no more connections, or no more of this account.
    Full,
    /// The statement was killed, or was too slow for the server's own limit.
    Interrupted,
    /// The server ends the session: it shuts down, or somebody killed it.
    Ended,
    /// The server has ended the session for its long silence: it never read the statement.
    Idle,
    /// It failed while it committed, and does not say how much of it lasts.
    Commit,
    /// A proxy, or a layer above the storage, lost the answer of the server behind it.
    Behind,
    /// Any other error of the server.
    #[default]
    Server,
    /// An answer that fails its check.
    Wrong,
    Lost,
    Timeout,
    /// An attempt to open a lost connection again; no op.
    Connect,
    /// A class of another version's file.
    #[serde(untagged)]
    Other(String),
}

impl ErrorClass {
    pub(crate) fn keeps_session(&self) -> bool {
        use ErrorClass::{Ended, Idle, Lost, Timeout};
        !matches!(self, Ended | Idle | Lost | Timeout)
    }

    /// Returns whether a write that ended so may have been done: a kill after the commit replaces the answer,
    /// and a wrong answer proves nothing about a write.
    pub(crate) fn leaves_doubt(&self) -> bool {
        use ErrorClass::{Behind, Commit, Ended, Interrupted, Lost, Timeout, Wrong};
        matches!(self, Interrupted | Ended | Commit | Behind | Lost | Timeout | Wrong)
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_has_its_name_in_files_when_another_version_made_it_up() {
        for (class, name) in [
            (ErrorClass::ReadOnly, "read_only"),
            (ErrorClass::Connect, "connect"),
            (ErrorClass::Other("made_up".to_owned()), "made_up"),
        ] {
            assert_eq!(class.to_string(), name);
            let json = format!("\"{name}\"");
            assert_eq!(serde_json::to_string(&class).ok(), Some(json.clone()));
            assert_eq!(serde_json::from_str::<ErrorClass>(&json).ok(), Some(class));
        }
    }
}
