//! Log-ins that the driver cannot do, as for accounts with several methods: we log in, and copy the
//! driver's bytes through a socket of this process.

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

const ROOM: usize = 64 << 10;

/// The task that copies the bytes until either end hangs up.
pub(super) struct Relay {
    task: JoinHandle<()>,
    /// True if the driver could not have logged in.
    pub(super) is_needed: bool,
}

impl Relay {
    /// Waits until the server has the driver's last bytes.
    pub(super) async fn end(self) {
        let _ = self.task.await;
    }
}

pub(super) async fn connect(link: &ServerLink) -> mysql_async::Result<(Conn, Relay)> {
    let (listener, name) = listen()?;
    let opts = OptsBuilder::from_opts(link.opts.clone()).socket(Some(name)).ssl_opts(None);
    let relay = async {
        let mut driver = accept(&listener).await?;
        let (mut server, login) = log_in_for(link, Some(&mut driver)).await?;
        let task = tokio::spawn(async move {
            // The driver notices the end of a connection.
            let _ = copy_bidirectional_with_sizes(&mut driver, &mut server, ROOM, ROOM).await;
        });
        Ok(Relay { task, is_needed: login.beyond_driver })
    };
    try_join(Conn::new(opts), relay).await
}

fn listen() -> io::Result<(UnixListener, String)> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let name = format!("loadgen-{:032x}", u128::from_ne_bytes(random));
    let listener = StdListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    listener.set_nonblocking(true)?;
    // The kernel's form of such a name.
    Ok((UnixListener::from_std(listener)?, format!("\0{name}")))
}

/// Accepts a connection of this process only.
async fn accept(listener: &UnixListener) -> io::Result<UnixStream> {
    loop {
        let (stream, _) = listener.accept().await?;
        if stream.peer_cred()?.pid() == i32::try_from(std::process::id()).ok() {
            return Ok(stream);
        }
    }
}
