//! Listening, accepting, ending.

use std::future::Future;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixSocket};
use tokio::runtime::{Builder, LocalOptions};

use super::counts::{Counters, Counts};
use super::greet;
use super::input::Socket;
use super::script::{Script, Service};
use super::session::{Flow, Session};
use super::shared::Shared;
use crate::error::{Error, Result};

/// Thousands of clients may come at once.
const BACKLOG: u32 = 4096;
/// Descriptors beside those of the connections.
const OTHER_DESCRIPTORS: u64 = 64;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A port of 127.0.0.1; 0 takes a free one.
    Port(u16),
    /// A Unix socket that does not exist yet; it is removed at the end.
    Socket(PathBuf),
}

/// Runs a server in this thread until `stop` is done, and says what it did. `ready` is called
/// with the port (0 for a socket) once clients can connect.
///
/// `stop` is polled within the server's runtime, so that it may wait for tokio's signals.
///
/// # Errors
/// A script that contradicts itself, an address that is taken, too few descriptors.
pub fn serve(
    script: Script,
    listen: &Listen,
    stop: impl Future<Output = ()>,
    ready: impl FnOnce(u16),
) -> Result<Counts> {
    let counters = Arc::new(Counters::default());
    run(script, listen, Arc::clone(&counters), stop, ready)?;
    Ok(counters.read())
}

/// The same, with counters that another thread may read meanwhile.
pub(crate) fn run(
    script: Script,
    listen: &Listen,
    counters: Arc<Counters>,
    stop: impl Future<Output = ()>,
    ready: impl FnOnce(u16),
) -> Result<()> {
    script.check()?;
    raise_descriptors(script.connections_max)?;
    let failed = |e: io::Error| Error::failed(format!("canned server: {e}"));
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(failed)?;
    runtime.block_on(async {
        let listener = Listener::bind(listen)?;
        let shared = Rc::new(Shared::new(script, counters).map_err(failed)?);
        if shared.script.service != Service::Instant {
            let shared = Rc::clone(&shared);
            tokio::task::spawn_local(async move { shared.clock.run().await });
        }
        ready(listener.port);
        let mut stop = pin!(stop);
        tokio::select! {
            biased;
            () = &mut stop => {}
            () = accept(&listener, &shared) => {}
        }
        Ok(())
    })
    // The runtime's end drops every session and with it every connection.
}

enum Kind {
    Tcp(TcpListener),
    Unix(UnixListener),
}

struct Listener {
    kind: Kind,
    port: u16,
    /// Held for its drop.
    _file: Option<Remove>,
}

/// Removes the socket's file.
struct Remove(PathBuf);

impl Drop for Remove {
    fn drop(&mut self) {
        // Somebody else may have removed it before.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listener {
    fn bind(listen: &Listen) -> Result<Self> {
        match listen {
            Listen::Port(port) => Self::tcp(*port).map_err(|e| {
                Error::failed(format!("canned server: cannot listen on 127.0.0.1:{port}: {e}"))
                    .hint("port 0 takes a free one")
            }),
            Listen::Socket(path) => Self::unix(path).map_err(|e| {
                Error::failed(format!("canned server: cannot listen on {}: {e}", path.display()))
            }),
        }
    }

    fn tcp(port: u16) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
        let listener = socket.listen(BACKLOG)?;
        let port = listener.local_addr()?.port();
        Ok(Listener { kind: Kind::Tcp(listener), port, _file: None })
    }

    fn unix(path: &Path) -> io::Result<Self> {
        let socket = UnixSocket::new_stream()?;
        socket.bind(path)?;
        let file = Some(Remove(path.to_owned()));
        Ok(Listener { kind: Kind::Unix(socket.listen(BACKLOG)?), port: 0, _file: file })
    }

    async fn accept(&self) -> io::Result<Socket> {
        match &self.kind {
            Kind::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            Kind::Unix(listener) => Ok(Socket::Unix(listener.accept().await?.0)),
        }
    }
}

async fn accept(listener: &Listener, shared: &Rc<Shared>) {
    loop {
        match listener.accept().await {
            Ok(socket) => {
                tokio::task::spawn_local(talk(Session::new(Rc::clone(shared), socket)));
            }
            // A client that left at once, or no descriptor for it: try again, but do not spin.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Serves a connection to its end. Every failure is the client's going away: it needs no report.
async fn talk(mut session: Session) {
    if let Ok(Flow::Continue) = greet::greet(&mut session).await {
        session.shared.counters.sessions.add(1);
        let _ = session.serve().await;
    }
}

/// Raises the soft limit as far as it goes, and refuses if that is not far enough.
fn raise_descriptors(connections_max: u32) -> Result<()> {
    let failed =
        |e| Error::failed(format!("canned server: the limit of descriptors is unknown: {e}"));
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    let wanted = u64::from(connections_max) + OTHER_DESCRIPTORS;
    if hard < wanted {
        return Err(Error::failed(format!(
            "canned server: {connections_max} connections need {wanted} descriptors, and at most \
             {hard} are allowed"
        ))
        .hint("raise the hard limit (ulimit -Hn), or lower connections_max"));
    }
    // Clients in the same process need theirs, too.
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
            .map_err(|e| Error::failed(format!("canned server: cannot raise descriptors: {e}")))?;
    }
    Ok(())
}
