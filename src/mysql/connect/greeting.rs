//! Servers before 4.1, whose protocol the driver does not speak: it fails somewhere in the log-in,
//! with an error that says nothing. So after such a failure the greeting is read once more, raw.

use std::time::Duration;

use mysql_async::{DriverError, IoError};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpStream, UnixStream};

use super::Failure;
use crate::error::{Error, line};
use crate::mysql::options::{Address, ConnectOptions};
use crate::stop::within;

/// How long the second look may take: a server greets at once.
const WITHIN: Duration = Duration::from_secs(2);
/// A greeting has some 80 bytes.
const GREETING_MAX: usize = 512;
/// CLIENT_PROTOCOL_41 among the capabilities.
const PROTOCOL_41: u16 = 512;
/// ER_HANDSHAKE_ERROR, ER_NOT_SUPPORTED_AUTH_MODE: what old servers say to a log-in of today.
const LOGIN_CODES: [u16; 2] = [1043, 1251];

/// The error for a server that speaks the protocol of before 4.1; None for others.
pub(super) async fn too_old(target: &ConnectOptions, failure: &Failure) -> Option<Error> {
    if !is_odd(failure) {
        return None;
    }
    let version = within(WITHIN, look(&target.address)).await??;
    let error = Error::server(format!(
        "{target} is MySQL {}: servers before 4.1 are not supported, they speak another protocol",
        line(&version)
    ));
    Some(error.hint("loadgen is tested from MySQL 5.5 and MariaDB 10.1 on"))
}

/// Whether a failure may come of another protocol.
fn is_odd(failure: &Failure) -> bool {
    match failure {
        Failure::Timeout => false,
        Failure::Driver(mysql_async::Error::Server(e)) => LOGIN_CODES.contains(&e.code),
        Failure::Driver(mysql_async::Error::Io(IoError::Io(e))) => !matches!(
            e.kind(),
            std::io::ErrorKind::ConnectionRefused
                | std::io::ErrorKind::NotFound
                | std::io::ErrorKind::PermissionDenied
        ),
        Failure::Driver(mysql_async::Error::Driver(e)) => {
            !matches!(e, DriverError::UnknownAuthPlugin { .. })
        }
        Failure::Panic | Failure::Driver(_) => true,
    }
}

/// The version of a server whose greeting is of before 4.1.
async fn look(address: &Address) -> Option<String> {
    match address {
        Address::Tcp { host, port } => {
            read(TcpStream::connect((host.as_str(), *port)).await.ok()?).await
        }
        Address::Socket(path) => read(UnixStream::connect(path).await.ok()?).await,
    }
}

async fn read(mut stream: impl AsyncRead + Unpin) -> Option<String> {
    let mut bytes = Vec::with_capacity(GREETING_MAX);
    loop {
        let mut part = [0; GREETING_MAX];
        let length = stream.read(&mut part).await.ok()?;
        bytes.extend_from_slice(part.get(..length)?);
        let whole = bytes.first().map(|length| usize::from(*length) + 4);
        if length == 0 || whole.is_some_and(|whole| bytes.len() >= whole) {
            return old_version(&bytes);
        }
    }
}

/// The version in a greeting without the capability of 4.1.
fn old_version(packet: &[u8]) -> Option<String> {
    let (protocol, rest) = packet.get(4..)?.split_first()?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    let version = String::from_utf8_lossy(rest.get(..end)?).into_owned();
    let newer = match protocol {
        9 => false,
        10 => {
            // Thread id, eight bytes of salt and a zero lie between.
            let at = end + 1 + 4 + 9;
            // 3.21 and 3.22 send none.
            match rest.get(at..at + 2) {
                Some([low, high]) => u16::from_le_bytes([*low, *high]) & PROTOCOL_41 != 0,
                _ => false,
            }
        }
        // An error packet, or no MySQL at all.
        _ => return None,
    };
    (!newer && version.starts_with(|c: char| c.is_ascii_digit())).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::super::{connect, fake};
    use super::*;
    use crate::mysql::options::{Secret, Ssl};
    use proptest::prelude::*;

    /// What MySQL 4.0.30 says first: no capability of 4.1.
    fn greeting_of_4_0() -> Vec<u8> {
        let mut packet = b"\x0a4.0.30-standard-log\0\x07\0\0\0abcdefgh\0".to_vec();
        // LONG_FLAG, CONNECT_WITH_DB, COMPRESS, TRANSACTIONS; latin1; autocommit.
        packet.extend_from_slice(&[0x2c, 0x20, 0x08, 0x02, 0]);
        packet.extend_from_slice(&[0; 13]);
        packet
    }

    fn packet(body: &[u8]) -> Vec<u8> {
        let mut packet = vec![u8::try_from(body.len()).expect("short"), 0, 0, 0];
        packet.extend_from_slice(body);
        packet
    }

    #[test]
    fn old_greetings_are_told_from_newer_ones() {
        let version = old_version(&packet(&greeting_of_4_0()));
        assert_eq!(version.as_deref(), Some("4.0.30-standard-log"));
        assert_eq!(
            old_version(&packet(b"\x093.20.32\0\x07\0\0\0abcdefgh\0")).as_deref(),
            Some("3.20.32")
        );
        assert_eq!(old_version(&packet(&fake::greeting(false))), None);
        assert_eq!(old_version(&packet(b"\xff\x10\x04Too many connections")), None);
        assert_eq!(old_version(b"HTTP/1.1 400 Bad Request\r\n\r\n"), None);
        assert_eq!(old_version(b""), None);
    }

    #[test]
    fn a_server_before_4_1_is_not_supported_and_named() {
        // What it answers to the log-in that it does not understand, without an SQL state.
        let refusal = b"\xff\x13\x04Bad handshake".to_vec();
        let packets = [vec![greeting_of_4_0(), refusal], vec![greeting_of_4_0()]];
        let (address, server) = fake::server_of(packets.into());
        let target = ConnectOptions {
            address,
            user: "root".into(),
            password: Secret::default(),
            database: "sbtest".into(),
            ssl: Ssl::default(),
            connect_timeout: Duration::from_mins(1),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let error = runtime.expect("a runtime").block_on(async {
            let opts = target.opts().expect("sound");
            connect(&target, &opts).await.map(|_| ()).expect_err("too old")
        });
        assert_eq!(error.kind(), crate::error::Kind::Server);
        let shown = error.render();
        assert!(
            shown.contains("4.0.30-standard-log") && shown.contains("not supported"),
            "{shown}"
        );
        server.join().expect("served");
    }

    proptest! {
        #[test]
        fn no_greeting_panics(bytes in prop::collection::vec(any::<u8>(), 0..120), version in "[0-9.]{1,10}") {
            let _ = old_version(&bytes);
            let greeting = [b"\x09", version.as_bytes(), b"\0"].concat();
            if version.starts_with(|c: char| c.is_ascii_digit()) {
                prop_assert_eq!(old_version(&packet(&greeting)), Some(version));
            }
        }
    }
}
