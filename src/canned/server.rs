//! Listening, accepting, ending.

use std::future::Future;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixSocket};
use tokio::runtime::{Builder, LocalOptions};

use super::Counts;
use super::greet::greet;
use super::script::{Script, Service};
use super::session::Session;
use super::shared::Shared;
use crate::error::{Error, Result};
use crate::observe::process::raise_descriptor_limit;

/// Thousands of clients may come at once.
const BACKLOG: u32 = 4096;
/// Descriptors beside those of the connections.
const OTHER_DESCRIPTORS: u64 = 64;

/// Where a server listens.
pub enum Listen {
    /// A port of 127.0.0.1; 0 takes a free one.
    Port(u16),
    /// A Unix socket that does not exist yet; it is removed at the end.
    Socket(PathBuf),
}

/// Runs a server in this thread until `stop` is done, and says what it did. `ready` is called
/// with the port (0 for a socket) once clients can connect.
/// `stop` is polled within the server's runtime, so that it may wait for tokio's signals.
pub fn serve(
    script: Script,
    listen: &Listen,
    stop: impl Future<Output = ()>,
    ready: impl FnOnce(u16),
) -> Result<Counts> {
    let counts = Arc::default();
    run(script, listen, Arc::clone(&counts), stop, ready)?;
    let counts = *counts.lock().expect("no count panics");
    Ok(counts)
}

/// Does the same, with counts that another thread may read meanwhile.
pub(crate) fn run(
    script: Script,
    listen: &Listen,
    counts: Arc<Mutex<Counts>>,
    stop: impl Future<Output = ()>,
    ready: impl FnOnce(u16),
) -> Result<()> {
    script.check()?;
    let (connections, allowed) = (script.connections_max, raise_descriptor_limit()?);
    let wanted = u64::from(connections) + OTHER_DESCRIPTORS;
    if allowed < wanted {
        let message = format!(
            "canned server: {connections} connections need {wanted} descriptors, and at most \
             {allowed} are allowed"
        );
        let hint = "raise the hard limit (ulimit -Hn), or lower connections_max";
        return Err(Error::failed(message).hint(hint));
    }
    let failed = |e: io::Error| Error::failed(format!("canned server: {e}"));
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_all().build_local(LocalOptions::default()).map_err(failed)?;
    // The runtime's end drops every session and with it every connection.
    runtime.block_on(async {
        let listener = Listener::bind(listen)?;
        let shared = Rc::new(Shared::new(script, counts).map_err(failed)?);
        if shared.script.service != Service::Instant {
            let shared = Rc::clone(&shared);
            tokio::task::spawn_local(async move { shared.clock.run().await });
        }
        ready(listener.port());
        tokio::select! {
            biased;
            () = stop => {}
            () = accept(&listener, &shared) => {}
        }
        Ok(())
    })
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            // Somebody else may have removed it before.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Listener {
    fn bind(listen: &Listen) -> Result<Self> {
        let cannot = |e, place: &dyn std::fmt::Display| {
            Error::failed(format!("canned server: cannot listen on {place}: {e}"))
        };
        match listen {
            Listen::Port(port) => Self::tcp(*port).map_err(|e| {
                cannot(e, &format!("127.0.0.1:{port}")).hint("port 0 takes a free one")
            }),
            Listen::Socket(path) => {
                let bound = UnixSocket::new_stream().and_then(|socket| {
                    socket.bind(path)?;
                    Ok(Listener::Unix(socket.listen(BACKLOG)?, path.clone()))
                });
                bound.map_err(|e| cannot(e, &path.display()))
            }
        }
    }

    fn tcp(port: u16) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
        Ok(Listener::Tcp(socket.listen(BACKLOG)?))
    }

    fn port(&self) -> u16 {
        match self {
            Listener::Tcp(listener) => listener.local_addr().expect("it is bound").port(),
            Listener::Unix(..) => 0,
        }
    }

    async fn accept(&self) -> io::Result<TcpStream> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(stream)
            }
            // What a session does with its stream, the kernel does with either kind.
            Listener::Unix(listener, _) => {
                let stream = listener.accept().await?.0.into_std()?;
                TcpStream::from_std(OwnedFd::from(stream).into())
            }
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
async fn talk(mut session: Session) -> io::Result<()> {
    greet(&mut session).await?;
    session.shared.count(|counts| counts.sessions += 1);
    session.serve().await
}
