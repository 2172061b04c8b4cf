//! A way to a server that keeps what clients say, and is laid to another one while they use it.
#![allow(dead_code, reason = "every test program uses its own part of this")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of answers that are kept.
const KEPT_MAX: usize = 1 << 20;

/// Where it leads, and what has happened since it does.
struct Way {
    to: u16,
    /// What clients sent, by connection.
    said: Mutex<Vec<Vec<u8>>>,
    /// What the server answered to all, up to a limit.
    answered: Mutex<Vec<u8>>,
    /// Connections that the server ended, or whose client went.
    ended: AtomicU64,
    streams: Mutex<Vec<TcpStream>>,
    delays: Arc<Delays>,
}

/// Milliseconds by which it holds back what clients say, and what the server answers.
type Delays = [AtomicU64; 2];

impl Way {
    fn to(port: u16, delays: Arc<Delays>) -> Arc<Way> {
        let (said, answered, ended, streams) = Default::default();
        Arc::new(Way { to: port, said, answered, ended, streams, delays })
    }

    fn hold_back(&self, direction: usize) {
        let ms = self.delays[direction].load(Ordering::Relaxed);
        if ms > 0 {
            std::thread::sleep(Duration::from_millis(ms));
        }
    }

    fn carry(self: &Arc<Way>, client: TcpStream) -> std::io::Result<()> {
        let server = TcpStream::connect(("127.0.0.1", self.to))?;
        // A delay of its own would look like the server's.
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let copies = [client.try_clone()?, server.try_clone()?];
        locked(&self.streams).extend(copies);
        let place = {
            let mut said = locked(&self.said);
            said.push(Vec::new());
            said.len() - 1
        };
        let (from_server, to_client) = (server.try_clone()?, client.try_clone()?);
        let (way, same) = (Arc::clone(self), Arc::clone(self));
        std::thread::spawn(move || {
            copy(client, server, |bytes| {
                way.hold_back(0);
                locked(&way.said)[place].extend_from_slice(bytes);
            });
        });
        std::thread::spawn(move || {
            copy(from_server, to_client, |bytes| {
                same.hold_back(1);
                let mut answered = locked(&same.answered);
                let left = KEPT_MAX.saturating_sub(answered.len());
                answered.extend_from_slice(&bytes[..bytes.len().min(left)]);
            });
            same.ended.fetch_add(1, Ordering::SeqCst);
        });
        Ok(())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Until either end goes.
fn copy(mut from: TcpStream, mut to: TcpStream, heard: impl Fn(&[u8])) {
    let mut buffer = [0; 16 << 10];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        heard(&buffer[..n]);
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
    delays: Arc<Delays>,
}

impl Proxy {
    pub(crate) fn to(port: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let own = listener.local_addr().expect("bound").port();
        let delays = Arc::<Delays>::default();
        let way = Arc::new(Mutex::new(Way::to(port, Arc::clone(&delays))));
        let now = Arc::clone(&way);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let way = Arc::clone(&locked(&now));
                // A server that is not there looks like one that hangs up.
                let _ = way.carry(client);
            }
        });
        Proxy { port: own, way, delays }
    }

    fn way(&self) -> Arc<Way> {
        Arc::clone(&locked(&self.way))
    }

    /// Cuts all connections; the next ones lead there.
    pub(crate) fn lay(&self, port: u16) {
        let new = Way::to(port, Arc::clone(&self.delays));
        let old = std::mem::replace(&mut *locked(&self.way), new);
        for stream in locked(&old.streams).iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Holds back what clients say and what the server answers by so many milliseconds each.
    pub(crate) fn delay(&self, ms: [u64; 2]) {
        self.delays.iter().zip(ms).for_each(|(delay, ms)| delay.store(ms, Ordering::Relaxed));
    }

    /// Connections since it leads where it does, and bytes that clients sent on them.
    pub(crate) fn seen(&self) -> (u64, u64) {
        let said = self.said();
        (said.len() as u64, said.iter().map(|bytes| bytes.len() as u64).sum())
    }

    pub(crate) fn answered(&self) -> Vec<u8> {
        locked(&locked(&self.way).answered).clone()
    }

    /// What clients sent since it leads where it does, by connection.
    pub(crate) fn said(&self) -> Vec<Vec<u8>> {
        locked(&self.way().said).clone()
    }

    /// How many of these have come to their end.
    pub(crate) fn ended(&self) -> u64 {
        self.way().ended.load(Ordering::SeqCst)
    }
}
