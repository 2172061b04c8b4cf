//! Log-ins that the driver cannot do, such as those of accounts with several methods: we log in, and the driver
//! speaks through a socket of this process, whose bytes are handed on.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener as StdListener};

use futures_util::future::try_join;
use mysql_async::{Conn, OptsBuilder};
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use super::target::ServerLink;
use super::wire::log_in_for;

/// Bytes that are handed on at once.
const ROOM: usize = 64 << 10;

/// The task that hands the bytes on, until either end hangs up.
pub(super) struct Relay {
    task: JoinHandle<()>,
    /// True if the driver could not have logged in.
    pub(super) is_needed: bool,
}

impl Relay {
    /// Waits until the server has what the driver said last.
    pub(super) async fn end(self) {
        let _ = self.task.await;
    }
}

/// Opens a connection of the driver's that we log in.
pub(super) async fn connect(link: &ServerLink) -> mysql_async::Result<(Conn, Relay)> {
    let (listener, name) = listen()?;
    let opts = OptsBuilder::from_opts(link.opts.clone()).socket(Some(name)).ssl_opts(None);
    let relay = async {
        let mut driver = accept(&listener).await?;
        let (mut server, login) = log_in_for(link, Some(&mut driver)).await?;
        let task = tokio::spawn(async move {
            // Whoever notices the end of a connection is the driver.
            let _ = copy_bidirectional_with_sizes(&mut driver, &mut server, ROOM, ROOM).await;
        });
        Ok(Relay { task, is_needed: login.is_beyond_driver() })
    };
    try_join(Conn::new(opts), relay).await
}

/// Listens on a socket without a file, by a name that nobody has.
fn listen() -> io::Result<(UnixListener, String)> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let name = format!("loadgen-{:032x}", u128::from_ne_bytes(random));
    let listener = StdListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    listener.set_nonblocking(true)?;
    // The kernel's form of such a name.
    Ok((UnixListener::from_std(listener)?, format!("\0{name}")))
}

/// Takes the connection of this process, and of no other.
async fn accept(listener: &UnixListener) -> io::Result<UnixStream> {
    loop {
        let (stream, _) = listener.accept().await?;
        if stream.peer_cred()?.pid() == i32::try_from(std::process::id()).ok() {
            return Ok(stream);
        }
    }
}
