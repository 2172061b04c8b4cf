//! The server's life: start, listen, accept, end.

use std::future::Future;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tempfile::TempPath;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::oneshot;

use super::script::{Script, Service};
use super::session::{Counts, Session, Shared};
use crate::error::{Error, Result};
use crate::observe::raise_descriptor_limit;

/// A running server on a thread of its own; dropping it closes every connection and stops it.
#[derive(Debug)]
pub struct Canned {
    port: u16,
    counts: Arc<Mutex<Counts>>,
    /// The sender that stops it when dropped, and its thread.
    running: Option<(oneshot::Sender<()>, JoinHandle<Result<()>>)>,
}

impl Canned {
    pub fn start(script: Script, listen: Listen) -> Result<Canned> {
        let counts = Arc::default();
        let (stop, stopped) = oneshot::channel();
        let (ready, bound) = mpsc::channel();
        let shared = Arc::clone(&counts);
        let thread = std::thread::Builder::new().name("canned".to_owned()).spawn(move || {
            // A dropped sender stops the server, too.
            let stopped = async { _ = stopped.await };
            // Nobody waits only if `start` itself was unwound.
            serve(script, &listen, shared, stopped, |port| _ = ready.send(port))
        });
        let thread = thread
            .map_err(|e| Error::failed(format!("cannot start the canned server's thread: {e}")))?;
        let Ok(port) = bound.recv() else {
            let ended = thread.join().expect("a server does not panic");
            return Err(ended.expect_err("it did not listen"));
        };
        Ok(Canned { port, counts, running: Some((stop, thread)) })
    }

    /// Returns the port on 127.0.0.1; 0 for a socket.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the counts so far. Commands without an answer (closing a statement, quitting) count
    /// when the server reaches them: at `open` 0 all are counted.
    pub fn counts(&self) -> Counts {
        *self.counts.lock().expect("no count panics")
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            // Nobody reads this error any more.
            let _ = thread.join();
        }
    }
}

/// Thousands of clients may come at once.
const BACKLOG: u32 = 4096;
const OTHER_DESCRIPTORS: u64 = 64;

pub enum Listen {
    /// A port of 127.0.0.1; 0 takes a free one.
    Port(u16),
    /// A Unix socket that does not exist yet; removed at the end.
    Socket(PathBuf),
}

/// Runs a server in this thread until `stop` is done, which the server's runtime polls. Calls `ready`
/// with the port (0 for a socket) once clients can connect; others may read the counts.
pub fn serve(
    script: Script,
    listen: &Listen,
    counts: Arc<Mutex<Counts>>,
    stop: impl Future<Output = ()>,
    ready: impl FnOnce(u16),
) -> Result<()> {
    let (connections, allowed) = (script.connections_max, raise_descriptor_limit()?);
    // Service times need a timer, which is two descriptors.
    let each = if script.service == Service::Instant { 1 } else { 3 };
    let wanted = each * u64::from(connections) + OTHER_DESCRIPTORS;
    if allowed < wanted {
        let message = format!(
            "canned server: {connections} connections need {wanted} descriptors, and at most \
             {allowed} are allowed"
        );
        let hint = "raise the hard limit (ulimit -Hn), or lower --connections";
        return Err(Error::failed(message).hint(hint));
    }
    let failed = |e: io::Error| Error::failed(format!("canned server: {e}"));
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_all().build_local(LocalOptions::default()).map_err(failed)?;
    // The runtime's end drops every session and its connection.
    runtime.block_on(async {
        let listener = Listener::bind(listen)?;
        let shared = Rc::new(Shared::new(script, counts));
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
    Unix(UnixListener, #[expect(dead_code, reason = "removes the socket at the end")] TempPath),
}

impl Listener {
    fn bind(listen: &Listen) -> Result<Self> {
        let (bound, place, hint) = match listen {
            Listen::Port(port) => {
                (Self::tcp(*port), format!("127.0.0.1:{port}"), "port 0 takes a free one")
            }
            Listen::Socket(path) => {
                let listening = |it| Ok(Listener::Unix(it, TempPath::try_from_path(path)?));
                let bound = UnixListener::bind(path).and_then(listening);
                (bound, path.display().to_string(), "the socket must not exist yet")
            }
        };
        bound.map_err(|e| {
            let error = Error::failed(format!("canned server: cannot listen on {place}: {e}"));
            match listen {
                Listen::Socket(_) if e.kind() != io::ErrorKind::AddrInUse => error,
                _ => error.hint(hint),
            }
        })
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
            // A session uses both kinds of stream alike.
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
                tokio::task::spawn_local(serve_connection(Session::new(Rc::clone(shared), socket)));
            }
            // The client left, or descriptors ran out: try again, but do not spin.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Serves a connection to its end. Failures mean that the client has gone: nobody needs a report.
async fn serve_connection(mut session: Session) -> io::Result<()> {
    session.greet().await?;
    session.shared.count(|counts| counts.sessions += 1);
    session.serve().await
}
