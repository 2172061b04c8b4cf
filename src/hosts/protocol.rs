//! The messages between the measuring process (rank 0) and the processes with clients: one JSON object a
//! line. Events are the engine's own values.

use serde::{Deserialize, Serialize, Serializer};

use crate::engine::{PartOrder, StepWindow, ThreadEvent};
use crate::error::{Error, Kind};
use crate::mysql::ConnectOptions;
use crate::mysql::options::Secret;
use crate::observe::{ClientUse, Host, Ns};
use crate::summary::{HostState, Program, Server, Share};

/// The version of these messages.
pub(super) const PROTOCOL: u32 = 2;

/// A message to a rank. Instants are by the rank's clock.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum ToRank {
    Beat,
    Ping {
        sent: Ns,
    },
    /// The server of all steps from here on; the options have no password.
    Server {
        target: ConnectOptions,
        #[serde(serialize_with = "expose")]
        password: Secret,
        /// The most clients that the rank has.
        clients: u32,
    },
    /// The server of this label in the rank's own words.
    Find {
        label: Option<String>,
        clients: u32,
    },
    /// Open the connections of a step's clients, the first one at this instant.
    Open {
        at: Ns,
        order: PartOrder,
    },
    Go {
        start: Ns,
    },
    Window(StepWindow),
    Close,
    End,
}

/// A message of a rank.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum FromRank {
    Beat,
    Hello(Box<Hello>),
    Pong {
        sent: Ns,
        received: Ns,
        answered: Ns,
    },
    Server(Box<Result<SeenServer, Error>>),
    /// An event of a group on all its threads together.
    Event(u8, ThreadEvent),
    Edges(Box<Edges>),
    /// A signal came.
    Asked(Kind),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub protocol: u32,
    pub program: Program,
    pub host: Host,
    /// Hash of the executable, where the revision does not tell what it was built from.
    pub executable: Option<String>,
    pub boot_id: Option<String>,
    /// Its network namespace, among those of one boot: a container may have its own interfaces.
    pub net: Option<String>,
    /// Engine threads that it takes by itself.
    pub threads: u32,
    /// It runs scripts.
    pub lua: bool,
}

/// Writes a secret that is sent: by itself it is never written down.
fn expose<S: Serializer>(secret: &Secret, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(secret.expose())
}

/// The server as a rank sees it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SeenServer {
    pub server: Server,
    pub same_host: bool,
    pub rtt_us: Option<f64>,
}

/// Readings of a rank from the window's start to its end.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Edges {
    pub client: ClientUse,
    pub max_rss_bytes: u64,
    pub share: Share,
    pub state: Option<HostState>,
    /// Of the measured clients.
    pub ops: u64,
    /// The longest time for which the process was stopped.
    pub paused: Ns,
    /// The time after the start at which the rank heard of it.
    pub late: Ns,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_no_password_when_they_are_written_down() {
        let password = || Secret::new("marker-pw");
        let target = ConnectOptions { password: password(), ..ConnectOptions::canned(3306) };
        let text = serde_json::to_string(&target).expect("plain data");
        assert!(!text.contains("marker-pw"), "{text}");
        let read: ConnectOptions = serde_json::from_str(&text).expect("options");
        assert_eq!(read, ConnectOptions::canned(3306));
        // A message has it, and shows it to nobody else.
        let message = ToRank::Server { target: read, password: password(), clients: 1 };
        let text = serde_json::to_string(&message).expect("plain data");
        assert_eq!(serde_json::from_str::<ToRank>(&text).expect("a message"), message);
        assert!(text.contains("marker-pw") && !format!("{message:?}").contains("marker-pw"));
    }
}
