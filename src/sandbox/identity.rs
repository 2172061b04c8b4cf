//! Who answers: the only file of the sandbox that talks to the server.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mysql_async::prelude::{FromValue, Queryable};
use mysql_async::{Conn, Opts, OptsBuilder, Row};

use super::layout::Layout;
use crate::error::{Error, Result};

/// The longest that one question may take; the caller asks again.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// A server's own account of itself.
#[derive(Debug)]
pub(super) struct Identity {
    datadir: PathBuf,
    pid_file: PathBuf,
    port: u16,
    /// `@@version`.
    pub(super) version: String,
}

/// How to reach the server.
#[derive(Debug, Clone, Copy)]
pub(super) enum Door<'a> {
    Socket(&'a Path),
    Port(u16),
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// Nobody listens, or not yet.
    Silent(String),
    /// Somebody answered with an error.
    Refused(String),
}

/// Asks the server behind a door who it is. Through the socket, which only this user reaches,
/// it first gets what its initialisation left out: the account for the loopback port and the
/// database `sbtest`.
pub(super) fn ask(door: Door) -> std::result::Result<Identity, NoAnswer> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| NoAnswer::Refused(format!("no runtime: {e}")))?;
    let asking = async {
        // The connection ends with the future, so nobody reads an answer that came too late.
        #[expect(clippy::disallowed_methods, reason = "the connection is dropped with the future")]
        let answer = tokio::time::timeout(ANSWER_WITHIN, converse(door)).await;
        match answer {
            Ok(Ok(identity)) => Ok(identity),
            Ok(Err(mysql_async::Error::Server(e))) => Err(NoAnswer::Refused(e.to_string())),
            Ok(Err(e)) => Err(NoAnswer::Silent(e.to_string())),
            Err(_) => Err(NoAnswer::Silent(format!("no answer within {ANSWER_WITHIN:?}"))),
        }
    };
    // The driver panics on some answers that no server gives: a stranger's, on our port.
    catch_unwind(AssertUnwindSafe(|| runtime.block_on(asking)))
        .unwrap_or_else(|_| Err(NoAnswer::Refused("its answer is no server's".into())))
}

async fn converse(door: Door<'_>) -> mysql_async::Result<Identity> {
    let mut conn = Conn::new(options(door)).await?;
    if let Door::Socket(_) = door {
        furnish(&mut conn).await?;
    }
    let row: Option<Row> =
        conn.query_first("SELECT @@datadir, @@pid_file, @@port, @@version").await?;
    conn.disconnect().await?;
    let mut row = row.ok_or_else(|| unexpected("no row"))?;
    Ok(Identity {
        datadir: path(column(&mut row, 0)?),
        pid_file: path(column(&mut row, 1)?),
        port: column(&mut row, 2)?,
        version: column(&mut row, 3)?,
    })
}

/// Every option that decides whom the driver talks to is explicit: by default it asks the
/// server behind the port for a socket and goes there instead.
fn options(door: Door) -> Opts {
    let builder = OptsBuilder::default()
        .user(Some("root"))
        .prefer_socket(false)
        .max_allowed_packet(Some(1024 * 1024))
        .wait_timeout(Some(60))
        .stmt_cache_size(Some(0));
    match door {
        Door::Socket(path) => builder.socket(Some(path.to_string_lossy())).into(),
        Door::Port(port) => builder.ip_or_hostname("127.0.0.1").tcp_port(port).into(),
    }
}

/// Idempotent: an answer that came too late is asked for again.
async fn furnish(conn: &mut Conn) -> mysql_async::Result<()> {
    const ACCOUNT: &str = "'root'@'127.0.0.1'";
    let accounts: Option<u64> = conn
        .query_first("SELECT COUNT(*) FROM mysql.user WHERE User = 'root' AND Host = '127.0.0.1'")
        .await?;
    if accounts == Some(0) {
        conn.query_drop(format!("CREATE USER {ACCOUNT}")).await?;
    }
    conn.query_drop(format!("GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT} WITH GRANT OPTION")).await?;
    conn.query_drop("CREATE DATABASE IF NOT EXISTS sbtest").await
}

fn column<T: FromValue>(row: &mut Row, index: usize) -> mysql_async::Result<T> {
    let value = row.take_opt(index).ok_or_else(|| unexpected("a column is missing"))?;
    value.map_err(|_| unexpected("a column of another type"))
}

fn unexpected(what: &'static str) -> mysql_async::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, what).into()
}

fn path(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}

impl Identity {
    /// Whether it is the server of this directory, on this port; an error that says who else.
    pub(super) fn check(&self, layout: &Layout, port: u16) -> Result<()> {
        let same = |theirs: &Path, ours: &Path| matches!((fs::canonicalize(theirs), fs::canonicalize(ours)), (Ok(a), Ok(b)) if a == b);
        if same(&self.datadir, &layout.data())
            && same(&self.pid_file, &layout.pid_file())
            && self.port == port
        {
            return Ok(());
        }
        Err(Error::server(format!(
            "sandbox: another server than the one started answers: data directory {}, pid file {}, port {}",
            self.datadir.display(),
            self.pid_file.display(),
            self.port
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn another_servers_answer_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path().to_owned());
        fs::create_dir(layout.data()).unwrap();
        fs::write(layout.pid_file(), "1\n").unwrap();
        let ours = |port| Identity {
            datadir: layout.data(),
            pid_file: layout.pid_file(),
            port,
            version: String::new(),
        };
        ours(3307).check(&layout, 3307).unwrap();
        assert!(ours(3306).check(&layout, 3307).is_err());
        let other = Identity { datadir: "/var/lib/mysql".into(), ..ours(3307) };
        let said = other.check(&layout, 3307).unwrap_err().to_string();
        assert!(said.contains("/var/lib/mysql"), "{said}");
    }

    #[test]
    fn a_silent_door_and_a_stranger_are_no_server() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // Hangs up on whoever connects.
        let stranger = std::thread::spawn(move || listener.accept().map(drop));
        assert!(matches!(ask(Door::Port(port)), Err(NoAnswer::Silent(_))));
        stranger.join().unwrap().unwrap();
        assert!(matches!(ask(Door::Socket(Path::new("/nonexistent/s"))), Err(NoAnswer::Silent(_))));
    }
}
