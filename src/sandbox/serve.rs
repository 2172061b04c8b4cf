//! Makes a data directory, starts the server, and makes sure that what answers is what was started.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid};

use super::program::shapes_data;
use super::{Start, cannot, with};
use crate::error::{Error, Result};
use crate::mysql::{Address, Asked, ConnectOptions, Failure, Session, rows};
use crate::stop::{COURTESY, within};

const INITIALISED_WITHIN: Duration = Duration::from_mins(2);

const ANSWERS_WITHIN: Duration = Duration::from_mins(1);

/// The longest that one question may take; it is asked again.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// How many ports are tried when other processes take them first.
const PORTS: usize = 5;

/// What a server's log says, in all versions, when its port is another process's.
const PORT_WAS_TAKEN: &str = "Bind on TCP/IP port";

/// What every server takes if it is not told; a sandbox has no reason to take less.
const DEFAULT_CONNECTIONS: u32 = 151;
const DEFAULT_STATEMENTS: u32 = 16_382;

/// Fills the data directory with system tables; root has no password. Newer servers do it themselves,
/// the others are fed with the SQL that they ship.
pub(super) fn initialise(start: &mut Start) -> Result<()> {
    let sql = start.directory.path.join("system.sql");
    let (input, how) = if start.program.initialises {
        (None, "--initialize-insecure")
    } else {
        fs::write(&sql, system_tables(&start.path, &start.program.shares)?)
            .map_err(cannot(&format!("write {}", sql.display())))?;
        (Some(&*sql), "--bootstrap")
    };
    let arguments = start.arguments(vec![how.into()], shapes_data);
    let what = "sandbox: initialising";
    let failed = start.run(&arguments, input, what, INITIALISED_WITHIN)?;
    failed.map_or(Ok(()), |how| {
        Err(start.failure(&format!("could not initialise a data directory ({how})")))
    })
}

/// Joins the SQL that makes the system tables, one statement a line as the old servers want it.
fn system_tables(path: &Path, shares: &[PathBuf]) -> Result<String> {
    let found = shares.iter().find_map(|share| Some((share, part(share, "system_tables")?)));
    let (share, tables) = found.ok_or_else(|| {
        let looked = shares.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>();
        Error::server(format!(
            "sandbox: {} ships no mysql_system_tables.sql; looked in {}",
            path.display(),
            looked.join(", ")
        ))
        .hint("--sandbox-option basedir=DIR names the directory above the server's share")
    })?;
    let mut sql = String::from(
        // MariaDB's own switches: root logs in by the socket with no more than its name, and
        // there is no account without a name, which would take other accounts' logins.
        "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\nSET @skip_auth_anonymous=1;\n",
    );
    let others =
        ["performance_tables", "system_tables_data"].iter().filter_map(|name| part(share, name));
    for file in std::iter::once(tables).chain(others) {
        let text = fs::read_to_string(&file);
        sql += &text.map_err(cannot(&format!("read {}", file.display())))?;
        sql.push('\n');
    }
    // MySQL knows no such switch. Where accounts are in global_priv, user is a view.
    if !sql.contains("global_priv") {
        sql.push_str("DELETE FROM user WHERE User='';\n");
    }
    Ok(sql)
}

fn part(share: &Path, name: &str) -> Option<PathBuf> {
    ["mariadb", "mysql"]
        .iter()
        .map(|prefix| share.join(format!("{prefix}_{name}.sql")))
        .find(|path| path.is_file())
}

/// Starts the server on a free port, and on another one if that was taken meanwhile; tells the port, its
/// process and its `@@version`.
pub(super) fn serve(start: &mut Start) -> Result<(u16, u32, String)> {
    for tried in 1.. {
        let port = free_port()?;
        let arguments = arguments(start, port);
        start.keeper.launch(&start.path, &arguments, None)?;
        let how = match answer(start, port)? {
            Ok(version) => return Ok((port, own_pid(start)?, version)),
            Err(how) => how,
        };
        if tried == PORTS || !start.keeper.written("log").contains(PORT_WAS_TAKEN) {
            return Err(start.failure(&how));
        }
    }
    unreachable!("the last port that is tried returns")
}

/// Takes the system's choice. Nothing holds it until the server does, hence the attempts.
fn free_port() -> Result<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(cannot("get a free port on 127.0.0.1"))
}

fn arguments(start: &Start, port: u16) -> Vec<OsString> {
    let connections = start.spec.max_connections.max(DEFAULT_CONNECTIONS);
    let statements = start.spec.max_prepared_stmts.max(DEFAULT_STATEMENTS);
    let own = vec![
        with("--socket=", &start.directory.socket),
        format!("--port={port}").into(),
        "--bind-address=127.0.0.1".into(),
        // A machine whose resolver hangs must not delay the connections.
        "--skip-name-resolve".into(),
        "--local-infile=ON".into(),
        format!("--max-connections={connections}").into(),
        format!("--loose-max-prepared-stmt-count={statements}").into(),
    ];
    start.arguments(own, |_| true)
}

/// Waits until the server answers on its socket and on its port; tells its version, or how it ended.
fn answer(start: &mut Start, port: u16) -> Result<Result<String, String>> {
    // By the socket, which only this user reaches, it gets what its initialisation left out.
    let socket = ConnectOptions {
        connect_timeout: ANSWER_WITHIN,
        ..ConnectOptions::private(&start.directory.socket).with_database("")
    };
    let address = Address::Tcp { host: "127.0.0.1".to_owned(), port };
    let tcp = ConnectOptions { address, ..socket.clone() };
    let mut last = String::from("no socket yet");
    let answered = start.until("sandbox: starting the server", ANSWERS_WITHIN, |start| {
        if let Some(status) = start.keeper.ended()? {
            return Ok(Some(Err(format!("ended while it started ({status})"))));
        }
        if !start.directory.socket.exists() {
            return Ok(None);
        }
        match ask(&socket, &tcp)? {
            Ok(identity) => check(identity, start, port).map(|version| Some(Ok(version))),
            Err(Failure::Lost(why)) => {
                last = why;
                Ok(None)
            }
            Err(refused @ Failure::Server { .. }) => {
                Err(start.failure(&format!("refuses its own root account: {refused}")))
            }
        }
    })?;
    answered.ok_or_else(|| {
        let limit = ANSWERS_WITHIN.as_secs();
        start.failure(&format!("does not answer within {limit} s ({last})"))
    })
}

/// A server's own account of itself: data directory, pid file, port, version.
type Identity = [String; 4];

/// Gives a server by its socket what a sandbox needs, and asks who it is by its port.
fn ask(socket: &ConnectOptions, tcp: &ConnectOptions) -> Result<Asked<Identity>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(cannot("make a runtime"))?;
    let (by_socket, by_tcp) = (socket.opts()?, tcp.opts()?);
    let asking = async {
        let mut session = Session::open_again(socket, &by_socket, None).await?;
        furnish(&mut session).await?;
        session.close(COURTESY).await;
        let mut session = Session::open_again(tcp, &by_tcp, None).await?;
        let sql = "SELECT @@datadir, @@pid_file, @@port, @@version";
        let row = rows::<4>(&mut session, sql).await?.pop();
        session.close(COURTESY).await;
        let row = row.ok_or_else(|| Failure::Lost("an answer without a row".to_owned()))?;
        Ok(row.map(Option::unwrap_or_default))
    };
    // The connection ends with the future, so nobody reads an answer that came too late.
    let late = || Err(Failure::Lost(format!("no answer within {ANSWER_WITHIN:?}")));
    Ok(runtime.block_on(within(ANSWER_WITHIN, asking)).unwrap_or_else(late))
}

/// Makes the account for the loopback port and the database. It may have done so: an answer that came
/// too late is asked for again.
async fn furnish(session: &mut Session) -> Asked<()> {
    const ACCOUNT: &str = "'root'@'127.0.0.1'";
    let known = "SELECT 1 FROM mysql.user WHERE User = 'root' AND Host = '127.0.0.1'";
    if session.query(known).await?.is_empty() {
        session.execute(&format!("CREATE USER {ACCOUNT}")).await?;
    }
    let grant = format!("GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT} WITH GRANT OPTION");
    session.execute(&grant).await?;
    session.execute("CREATE DATABASE IF NOT EXISTS sbtest").await.map(drop)
}

/// Makes sure that it is the server of this directory, on this port; tells its version.
fn check(
    [data, pid_file, its_port, version]: Identity,
    start: &Start,
    port: u16,
) -> Result<String> {
    let same = |theirs: &str, ours: &Path| {
        let real = [Path::new(theirs), ours].map(fs::canonicalize);
        matches!(real, [Ok(theirs), Ok(ours)] if theirs == ours)
    };
    let ours = same(&data, &start.directory.data) && same(&pid_file, &start.directory.pid_file);
    if ours && its_port == port.to_string() {
        return Ok(version);
    }
    Err(Error::server(format!(
        "sandbox: another server than the one started answers: data directory {data}, pid file \
         {pid_file}, port {its_port}"
    )))
}

/// Reads the number of the server's own process, which must be in the group that the keeper ends.
fn own_pid(start: &Start) -> Result<u32> {
    let text = fs::read_to_string(&start.directory.pid_file);
    let number = text.ok().and_then(|text| text.trim().parse::<u32>().ok());
    if let Some(number) = number {
        let pid = Pid::from_raw(number.cast_signed());
        if getpgid(Some(pid)).ok() == start.keeper.group() {
            return Ok(number);
        }
        // A wrapper that makes a session, or a container where the number means another process.
        let cmdline = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let data = with("--datadir=", &start.directory.data);
        if cmdline.split(|byte| *byte == 0).any(|argument| argument == data.as_encoded_bytes()) {
            let _ = kill(pid, Signal::SIGKILL);
        }
    }
    Err(Error::server("sandbox: its wrapper takes the server to another session or container")
        .hint("end the wrapper with: exec mysqld … \"$@\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Directory;

    #[test]
    fn ports_are_free_and_differ_while_held() {
        // Another test may take it first.
        let held = loop {
            let port = free_port().unwrap();
            if let Ok(held) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                break held;
            }
        };
        assert_ne!(free_port().unwrap(), held.local_addr().unwrap().port());
    }

    fn shares(share: &Path) -> [PathBuf; 2] {
        ["/nonexistent".into(), share.to_owned()]
    }

    #[test]
    fn the_parts_that_are_shipped_follow_each_other() {
        let share = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(share.path().join(name), text).unwrap();
        write("mariadb_system_tables.sql", "CREATE TABLE global_priv (x int);");
        write("mysql_system_tables_data.sql", "INSERT INTO global_priv VALUES (1);");
        let sql = system_tables(Path::new("/opt/bin/mysqld"), &shares(share.path())).unwrap();
        assert!(sql.ends_with("(x int);\nINSERT INTO global_priv VALUES (1);\n"), "{sql}");
        write("mariadb_system_tables.sql", "CREATE TABLE user (x int);");
        write("mysql_system_tables_data.sql", "");
        let sql = system_tables(Path::new("/opt/bin/mysqld"), &shares(share.path())).unwrap();
        assert!(sql.ends_with("DELETE FROM user WHERE User='';\n"), "{sql}");
    }

    #[test]
    fn a_server_without_its_sql_is_an_error_that_says_where_it_looked() {
        let share = tempfile::tempdir().unwrap();
        let error = system_tables(Path::new("/opt/bin/mysqld"), &shares(share.path())).unwrap_err();
        assert!(error.to_string().contains("/nonexistent"), "{error}");
        assert!(error.hints()[0].contains("basedir"));
    }

    #[test]
    fn another_servers_answer_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let (mut say, interrupted) = (|_: &str| {}, || false);
        let directory = Directory::new(dir.path().to_owned(), None);
        fs::create_dir(&directory.data).unwrap();
        fs::write(&directory.pid_file, "1\n").unwrap();
        let ours = || -> Identity {
            let text = |path: &Path| path.display().to_string();
            [text(&directory.data), text(&directory.pid_file), "3307".into(), "8".into()]
        };
        let identity = ours();
        let other = ["/var/lib/mysql".into(), identity[1].clone(), "3307".into(), "8".into()];
        let start = Start {
            directory: Directory::new(dir.path().to_owned(), None),
            ..Start::test(&mut say, &interrupted)
        };
        assert_eq!(check(identity, &start, 3307).unwrap(), "8");
        assert!(check(ours(), &start, 3306).is_err());
        let said = check(other, &start, 3307).unwrap_err().to_string();
        assert!(said.contains("/var/lib/mysql"), "{said}");
    }

    #[test]
    fn somebody_who_hangs_up_is_no_server_yet() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stranger = std::thread::spawn(move || listener.accept().map(drop));
        let target = ConnectOptions::canned(port);
        assert!(matches!(ask(&target, &target), Ok(Err(Failure::Lost(_)))));
        stranger.join().unwrap().unwrap();
        let nobody = ConnectOptions::private(Path::new("/nonexistent/s"));
        assert!(matches!(ask(&nobody, &nobody), Ok(Err(Failure::Lost(_)))));
    }
}
