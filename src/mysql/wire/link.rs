//! The session of a measured client: one connection, one command at a time. The only file here with I/O.
//!
//! An answer is read to its end, or the session is over: a dropped future leaves
//! [`LeanSession::is_usable`] false.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mysql_common::constants::Command;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::decode::{Answer, AnswerForm, Decoder, Want};
use super::frame::{self, HEADER, Params};
use super::login::{Login, LoginAction, unexpected};
use crate::error::Result;
use crate::mysql::errors::{Asked, Failure, server_error};
use crate::mysql::options::{Address, KEEPALIVE};
use crate::mysql::target::{
    ServerLink, begin_request, charset_error, explain, set_names, within_connect,
};
use crate::stop::within;

/// Bytes of one read: enough for the longest answers of usual workloads.
const INBOX: usize = 64 << 10;
const LOGIN_MAX: usize = 8 << 10;

/// The read buffer of an engine thread, for all its sessions.
#[derive(Clone)]
pub struct Inbox(Rc<RefCell<Box<[u8]>>>);

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox(Rc::new(RefCell::new(vec![0; INBOX].into())))
    }
}

pub struct LeanSession {
    stream: Box<dyn Stream>,
    inbox: Inbox,
    /// The command with its header, and the bytes of it that are sent.
    out: Vec<u8>,
    sent: usize,
    decoder: Decoder,
    /// The beginning of a packet whose rest has not come yet, or unasked bytes.
    rest: Vec<u8>,
    /// An answer is due, or none can come any more.
    waiting: bool,
}

impl LeanSession {
    pub async fn open(link: &ServerLink, inbox: &Inbox, charset: Option<&str>) -> Result<Self> {
        let opened = connect(link, inbox).await;
        let opened = opened.map_err(|failure| explain(&failure, &link.target))?;
        let begun = opened.set_up_session(link, charset).await;
        begun.map_err(|failure| charset_error(charset, &failure))
    }

    /// Opens one at a server that accepted one before: failures have no hints.
    pub async fn open_again(
        link: &ServerLink,
        inbox: &Inbox,
        charset: Option<&str>,
    ) -> Asked<Self> {
        connect(link, inbox).await?.set_up_session(link, charset).await
    }

    /// Makes one without a server, for a client whose program has its own: every request fails.
    #[cfg(feature = "lua")]
    pub(crate) fn unconnected(inbox: &Inbox) -> LeanSession {
        let session = LeanSession::over(Box::new(tokio::io::empty()), inbox, false);
        LeanSession { waiting: true, ..session }
    }

    fn over(stream: Box<dyn Stream>, inbox: &Inbox, deprecate_eof: bool) -> LeanSession {
        LeanSession {
            stream,
            inbox: inbox.clone(),
            out: Vec::new(),
            sent: 0,
            decoder: Decoder::new(deprecate_eof),
            rest: Vec::new(),
            waiting: false,
        }
    }

    async fn set_up_session(mut self, link: &ServerLink, charset: Option<&str>) -> Asked<Self> {
        set_names(link, charset, async |sql| self.run_text(sql).await).await?;
        Ok(self)
    }

    pub fn capabilities(&self) -> Vec<String> {
        self.decoder.deprecate_eof.then(|| "deprecate_eof".to_owned()).into_iter().collect()
    }

    /// Returns the process that listens at the server's local socket, where this one sees it.
    pub(crate) fn listener(&self) -> Option<u32> {
        self.stream.listener()
    }

    pub fn is_usable(&self) -> bool {
        !self.waiting
    }

    /// Returns whether the last command left this program; no server runs a part of one.
    pub(crate) fn has_sent(&self) -> bool {
        self.sent == self.out.len()
    }

    pub async fn prepare(&mut self, sql: impl AsRef<[u8]>) -> Asked<u32> {
        frame::begin(&mut self.out, Command::COM_STMT_PREPARE as u8);
        self.out.extend_from_slice(sql.as_ref());
        let answer_starts = frame::end(&mut self.out, 0);
        self.round_trip(AnswerForm::Prepare, Want::Count, answer_starts).await?;
        Ok(self.decoder.statement)
    }

    #[inline]
    pub async fn execute(&mut self, id: u32, params: &Params, want: Want) -> Asked<Answer> {
        let answer_starts = frame::execute(&mut self.out, id, params);
        self.round_trip(AnswerForm::Binary, want, answer_starts).await
    }

    #[inline]
    pub fn text(&mut self) -> &mut Vec<u8> {
        frame::begin(&mut self.out, Command::COM_QUERY as u8);
        &mut self.out
    }

    #[inline]
    pub async fn query(&mut self, want: Want) -> Asked<Answer> {
        let answer_starts = frame::end(&mut self.out, 0);
        self.round_trip(AnswerForm::Text, want, answer_starts).await
    }

    pub async fn run_text(&mut self, sql: &str) -> Asked<Answer> {
        self.text().extend_from_slice(sql.as_bytes());
        self.query(Want::First).await
    }

    /// Returns the first cell of the last answer, where it was wanted.
    pub fn first(&self) -> Option<&[u8]> {
        self.decoder.first()
    }

    pub fn number(&self) -> Option<u64> {
        self.decoder.number()
    }

    /// The decoder of the last answer: its columns, and its rows where they were wanted.
    #[cfg(feature = "lua")]
    pub(crate) fn answer(&mut self) -> &mut Decoder {
        &mut self.decoder
    }

    pub(crate) fn sent_text(&self) -> String {
        let text = self.out.get(frame::HEADER + 1..).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    pub async fn close(self, limit: Duration) {
        self.close_with(Vec::new(), limit).await;
    }

    /// Closes these statements and says goodbye, for at most `limit`.
    pub(crate) async fn close_with(mut self, statements: Vec<u32>, limit: Duration) {
        let mut commands = Vec::new();
        for statement in statements {
            frame::close_statement(&mut self.out, statement);
            commands.append(&mut self.out);
        }
        frame::begin(&mut self.out, Command::COM_QUIT as u8);
        frame::end(&mut self.out, 0);
        commands.append(&mut self.out);
        self.out = commands;
        let goodbye = async {
            self.stream.write_all(&self.out).await?;
            self.stream.shutdown().await
        };
        let _ = within(limit, goodbye).await;
    }

    /// Closes a prepared statement; there is no answer.
    #[cfg(feature = "lua")]
    pub(crate) async fn close_statement(&mut self, id: u32) -> Asked<()> {
        begin_request(&mut self.waiting)?;
        frame::close_statement(&mut self.out, id);
        let written = async {
            self.stream.write_all(&self.out).await?;
            self.stream.flush().await
        };
        written.await.map_err(|error| Failure::lost(error.to_string()))?;
        self.sent = self.out.len();
        self.waiting = false;
        Ok(())
    }

    #[inline]
    async fn round_trip(
        &mut self,
        kind: AnswerForm,
        want: Want,
        answer_starts: u8,
    ) -> Asked<Answer> {
        self.sent = 0;
        begin_request(&mut self.waiting)?;
        self.decoder.expect(kind, want, answer_starts);
        let outcome = poll_fn(|context| self.poll_round_trip(context)).await;
        self.waiting = match &outcome {
            Ok(_) => false,
            // Nothing that follows an answer out of turn can be trusted.
            Err(Failure::Server { .. }) => self.decoder.out_of_turn || !self.has_sent(),
            Err(Failure::Lost(_)) => true,
        };
        outcome
    }

    fn poll_round_trip(&mut self, context: &mut Context<'_>) -> Poll<Asked<Answer>> {
        if self.sent == 0 && (!self.rest.is_empty() || self.stream.is_readable()) {
            self.read_unasked(context)?;
        }
        while self.sent < self.out.len() {
            match ready!(Pin::new(&mut self.stream).poll_write(context, &self.out[self.sent..])) {
                Ok(n) if n > 0 => self.sent += n,
                // The server may have said why before it hung up.
                _ => break,
            }
        }
        let _ = ready!(Pin::new(&mut self.stream).poll_flush(context));
        loop {
            ready!(self.poll_read(context))?;
            if let Some(outcome) = self.decoder.outcome() {
                return Poll::Ready(outcome);
            }
        }
    }

    /// The reason why a server ends the session, or something harmless such as a ticket of TLS.
    fn read_unasked(&mut self, context: &mut Context<'_>) -> Asked<()> {
        if !self.rest.is_empty() {
            self.decoder.take(&self.rest)?;
        } else if let Poll::Ready(read) = self.poll_read(context) {
            read?;
        } else {
            return Ok(());
        }
        match self.decoder.outcome() {
            Some(Err(error)) => Err(error),
            _ => Err(Failure::lost("the server sent an answer that nobody asked for")),
        }
    }

    #[inline]
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Asked<()>> {
        let mut inbox = self.inbox.0.borrow_mut();
        let mut buffer = ReadBuf::new(&mut inbox);
        // Shorter than the inbox: at most the head of a packet.
        buffer.put_slice(&self.rest);
        if let Err(e) = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer)) {
            return Poll::Ready(Err(Failure::lost(e.to_string())));
        }
        let bytes = buffer.filled();
        if bytes.len() == self.rest.len() {
            return Poll::Ready(Err(Failure::lost("the server closed the connection")));
        }
        let used = self.decoder.take(bytes)?;
        self.rest.clear();
        self.rest.extend_from_slice(&bytes[used..]);
        Poll::Ready(Ok(()))
    }
}

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {
    /// Returns whether bytes, or the end, have come already. No system call.
    fn is_readable(&self) -> bool;

    /// Returns the process that listens at a local socket.
    fn listener(&self) -> Option<u32>;
}

impl Stream for TcpStream {
    #[inline]
    fn is_readable(&self) -> bool {
        self.try_io(Interest::READABLE, || Ok(())).is_ok()
    }

    fn listener(&self) -> Option<u32> {
        let pid = getsockopt(self, PeerCredentials).ok()?.pid();
        // It is 0 over TCP, and where it is outside of this container.
        u32::try_from(pid).ok().filter(|pid| *pid > 0)
    }
}

impl Stream for TlsStream<TcpStream> {
    fn is_readable(&self) -> bool {
        self.get_ref().0.is_readable()
    }

    fn listener(&self) -> Option<u32> {
        self.get_ref().0.listener()
    }
}

#[cfg(feature = "lua")]
impl Stream for tokio::io::Empty {
    fn is_readable(&self) -> bool {
        false
    }

    fn listener(&self) -> Option<u32> {
        None
    }
}

async fn connect(link: &ServerLink, inbox: &Inbox) -> mysql_async::Result<LeanSession> {
    let (stream, login) = within_connect(&link.target, log_in_for(link, None)).await?;
    Ok(LeanSession::over(stream, inbox, login.deprecate_eof()))
}

/// A driver at the other end of a socket gets the greeting and the server's OK, and its response is sent.
pub(crate) async fn log_in_for<'a>(
    link: &'a ServerLink,
    mut driver: Option<&mut UnixStream>,
) -> mysql_async::Result<(Box<dyn Stream>, Login<'a>)> {
    let (mut tcp, mut next) = (dial(&link.target.address).await?, 0);
    let greeting = receive(&mut tcp, &mut next).await?;
    let mut login = Login::from_greeting(&link.target, &greeting)?;
    let mut drivers_next = 0;
    if let Some(driver) = &mut driver {
        send(driver, &mut drivers_next, &greeting).await?;
        login.respond_with(receive(driver, &mut drivers_next).await?)?;
    }
    let mut stream: Box<dyn Stream> = match &link.tls {
        None => Box::new(tcp),
        Some((config, name)) => {
            send(&mut tcp, &mut next, &login.tls_request()).await?;
            let connector = TlsConnector::from(Arc::clone(config));
            Box::new(connector.connect(name.clone(), tcp).await?)
        }
    };
    send(&mut stream, &mut next, &login.response()).await?;
    loop {
        let packet = receive(&mut stream, &mut next).await;
        let packet = packet.map_err(|failure| login.decline_reason().unwrap_or(failure))?;
        match login.take(&packet)? {
            LoginAction::Send(payload) => send(&mut stream, &mut next, &payload).await?,
            LoginAction::Read => {}
            LoginAction::Done => {
                if let Some(driver) = &mut driver {
                    send(driver, &mut drivers_next, &packet).await?;
                }
                return Ok((stream, login));
            }
        }
    }
}

async fn dial(address: &Address) -> io::Result<TcpStream> {
    match address {
        Address::Tcp { host, port } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            stream.set_nodelay(true)?;
            SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))?;
            Ok(stream)
        }
        // A session uses both kinds of stream alike.
        Address::Socket(path) => {
            let stream = UnixStream::connect(path).await?.into_std()?;
            TcpStream::from_std(OwnedFd::from(stream).into())
        }
    }
}

/// Reads one packet of a log-in and no byte behind it: TLS may follow.
async fn receive(
    stream: &mut (impl AsyncRead + Unpin),
    next: &mut u8,
) -> mysql_async::Result<Vec<u8>> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header).await?;
    let [a, b, c, sequence] = header;
    let length = u32::from_le_bytes([a, b, c, 0]) as usize;
    if length > LOGIN_MAX {
        return Err(unexpected());
    }
    let mut packet = vec![0; length];
    stream.read_exact(&mut packet).await?;
    match packet.first() {
        // A refusal may come with any number.
        Some(0xff) => Err(server_error(&packet).map_or_else(unexpected, Into::into)),
        _ if sequence != *next => Err(unexpected()),
        _ => {
            *next = sequence.wrapping_add(1);
            Ok(packet)
        }
    }
}

async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    next: &mut u8,
    payload: &[u8],
) -> io::Result<()> {
    let mut packet = [&[0; HEADER], payload].concat();
    *next = frame::end(&mut packet, *next);
    stream.write_all(&packet).await?;
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn listener_is_known_of_a_local_socket_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("server.sock");
        let _socket = UnixListener::bind(&path).expect("a socket");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = tcp.local_addr().expect("bound").port();
        let host = "127.0.0.1".to_owned();
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let addresses = [Address::Socket(path), Address::Tcp { host, port }];
        let found = addresses.map(|address| {
            runtime.block_on(async { dial(&address).await.expect("a connection").listener() })
        });
        assert_eq!(found, [Some(std::process::id()), None]);
    }
}
