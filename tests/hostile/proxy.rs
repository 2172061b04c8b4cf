//! A way to a server that is laid to another one while clients use it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Where it leads, and what has happened since it does.
struct Way {
    to: u16,
    /// Connections that were made.
    opened: AtomicU64,
    /// Bytes that clients sent on these.
    said: AtomicU64,
    streams: Mutex<Vec<TcpStream>>,
}

impl Way {
    fn to(port: u16) -> Arc<Way> {
        let (opened, said) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Way { to: port, opened, said, streams: Mutex::default() })
    }

    fn carry(self: &Arc<Way>, client: TcpStream) -> std::io::Result<()> {
        let server = TcpStream::connect(("127.0.0.1", self.to))?;
        self.opened.fetch_add(1, Ordering::SeqCst);
        let copies = [client.try_clone()?, server.try_clone()?];
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).extend(copies);
        let (from_server, to_client) = (server.try_clone()?, client.try_clone()?);
        let way = Arc::clone(self);
        std::thread::spawn(move || {
            let counted = |n| {
                way.said.fetch_add(n, Ordering::SeqCst);
            };
            copy(client, server, counted);
        });
        std::thread::spawn(move || copy(from_server, to_client, |_| {}));
        Ok(())
    }
}

/// Until either end goes.
fn copy(mut from: TcpStream, mut to: TcpStream, counted: impl Fn(u64)) {
    let mut buffer = [0; 16 << 10];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        counted(n as u64);
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Its threads end with the test's process.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    way: Arc<Mutex<Arc<Way>>>,
}

impl Proxy {
    pub(crate) fn to(port: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let own = listener.local_addr().expect("bound").port();
        let way = Arc::new(Mutex::new(Way::to(port)));
        let now = Arc::clone(&way);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let way = Arc::clone(&now.lock().unwrap_or_else(PoisonError::into_inner));
                // A server that is not there looks like one that hangs up.
                let _ = way.carry(client);
            }
        });
        Proxy { port: own, way }
    }

    fn way(&self) -> Arc<Way> {
        Arc::clone(&self.way.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Cuts all connections; the next ones lead there.
    pub(crate) fn lay(&self, port: u16) {
        let new = Way::to(port);
        let old =
            std::mem::replace(&mut *self.way.lock().unwrap_or_else(PoisonError::into_inner), new);
        for stream in old.streams.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Connections since it leads where it does, and bytes that clients sent on them.
    pub(crate) fn seen(&self) -> (u64, u64) {
        let way = self.way();
        (way.opened.load(Ordering::SeqCst), way.said.load(Ordering::SeqCst))
    }
}
