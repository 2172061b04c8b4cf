//! The canned server in a process of its own: its CPU is not the client's.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::error::{Error, Result};

/// Connections besides the clients'.
const HEADROOM: u32 = 20;

/// `loadgen canned`, until it is dropped or this process is gone: it ends with its standard input.
pub(super) struct NullServer {
    child: Child,
    port: u16,
}

impl NullServer {
    /// Starts it and returns once it listens.
    pub(super) fn start(clients: u32) -> Result<NullServer> {
        let failed = |what: &str| Error::failed(format!("the canned server: {what}"));
        let program = std::env::current_exe().map_err(|e| failed(&e.to_string()))?;
        let connections = clients.saturating_add(HEADROOM).to_string();
        let mut child = Command::new(program)
            .args(["canned", "--until-eof", "--tables", "1", "--connections", &connections])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // What interrupts the measurement does not interrupt the server first.
            .process_group(0)
            .spawn()
            .map_err(|e| failed(&e.to_string()))?;
        let said = child.stdout.take();
        // From here on it is stopped whatever happens.
        let mut server = NullServer { child, port: 0 };
        let mut line = String::new();
        if let Some(said) = said {
            BufReader::new(said).read_line(&mut line).map_err(|e| failed(&e.to_string()))?;
        }
        server.port = line.trim().parse().map_err(|_| failed("it did not start"))?;
        Ok(server)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        // It has nothing to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
