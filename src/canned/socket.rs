//! A client's socket, TCP or Unix.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// One of the two kinds.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Reads once; 0 at the end. Less than asked for costs one system call only.
    pub(crate) async fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(room).await,
            Socket::Unix(stream) => stream.read(room).await,
        }
    }

    /// Writes all of it.
    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.write_all(bytes).await,
            Socket::Unix(stream) => stream.write_all(bytes).await,
        }
    }

    /// Makes the coming drop a reset instead of an orderly end, where there is such a thing.
    pub(crate) fn reset_on_drop(&self) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_zero_linger(),
            Socket::Unix(_) => Ok(()),
        }
    }

    /// Closes the direction to the client.
    pub(crate) async fn finish(&mut self) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.shutdown().await,
            Socket::Unix(stream) => stream.shutdown().await,
        }
    }

    /// Reads and forgets until the client goes.
    pub(crate) async fn drain(&mut self) -> io::Result<()> {
        let mut room = [0; 512];
        while self.read(&mut room).await? > 0 {}
        Ok(())
    }
}
