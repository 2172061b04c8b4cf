//! The server's product, host and settings, and the exposure of the password on the way to it.

use std::net::IpAddr;
use std::path::Path;

use super::control::{
    self, Asked, Variables, database, explain, optional, pairs, processes, query_single,
};
use super::errors::Failure;
use super::facts::{Driver, Server, SettingChange, durability, without_advertisement};
use super::options::{Address, ConnectOptions, SslMode};
use super::session::Session;
use super::target::ServerLink;
use super::wire::{Inbox, LeanSession};
use crate::error::{Result, clip};
use crate::observe::{FarEnd, ROOT, Whereabouts, connections, host, probe};
use crate::stop::{COURTESY, SILENCE, within};
use crate::terms::{Finding, finding};

/// Longest version or comment kept, characters.
const TEXT_MAX: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    pub version: String,
    /// `@@version_comment`; empty where there is none.
    pub comment: String,
    pub family: Family,
    /// The version's numbers; 0.0.0 where they cannot be read.
    pub number: (u16, u16, u16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    MySql,
    MariaDb,
    Other(&'static str),
}

/// Names of servers and proxies that are neither MySQL nor MariaDB.
const OTHERS: &str = "TiDB Vitess ProxySQL MaxScale OceanBase SingleStore MemSQL StarRocks Doris Dolt \
                      ClickHouse MatrixOne ReadySet";

impl Product {
    pub async fn ask(session: &mut Session) -> Asked<Product> {
        let version = query_single(session, "SELECT VERSION()").await?.unwrap_or_default();
        // In just this form: proxies answer it themselves, and so give themselves away.
        let comment =
            optional(query_single(session, "select @@version_comment limit 1").await)?.flatten();
        Ok(Product::from_version(&version, without_advertisement(&comment.unwrap_or_default())))
    }

    pub fn from_version(version: &str, comment: &str) -> Product {
        let text = format!("{version} {comment}").to_ascii_lowercase();
        let is_in = |name: &&str| text.contains(&name.to_ascii_lowercase());
        let family = match OTHERS.split(' ').find(is_in) {
            Some(name) => Family::Other(name),
            None if text.contains("mariadb") => Family::MariaDb,
            None => Family::MySql,
        };
        let number = numbers(version, family);
        let text = |text: &str| clip(text, TEXT_MAX);
        Product { version: text(version), comment: text(comment), family, number }
    }
}

impl std::fmt::Display for Product {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.family {
            Family::MySql => "MySQL",
            Family::MariaDb => "MariaDB",
            Family::Other(name) => name,
        };
        write!(f, "{name} {}", self.version)
    }
}

fn numbers(version: &str, family: Family) -> (u16, u16, u16) {
    // MariaDB prefixes 5.5.5- for old replicas; some proxies pass it on.
    let version = match family {
        Family::MariaDb => version.strip_prefix("5.5.5-").unwrap_or(version),
        _ => version,
    };
    let mut parts = version.split(|c: char| !c.is_ascii_digit());
    let mut part = || parts.next()?.parse::<u16>().ok();
    match (part(), part(), part()) {
        (Some(major), Some(minor), patch) => (major, minor, patch.unwrap_or(0)),
        _ => (0, 0, 0),
    }
}

/// The driver of all but measured sessions; a test compares it with Cargo.lock.
const DRIVER: (&str, &str) = ("mysql_async", "0.37.1");

/// Describes the driver of all but measured connections. It asks MariaDB for its cache, too.
pub(crate) fn describe_driver(version: &str, mut capabilities: Vec<String>) -> Driver {
    let Product { family, number, .. } = Product::from_version(version, "");
    let caches = family == Family::MariaDb && number >= (10, 6, 0);
    capabilities.extend(caches.then(|| "mariadb_metadata_cache".to_owned()));
    Driver { name: DRIVER.0.to_owned(), version: DRIVER.1.to_owned(), capabilities }
}

pub struct Fingerprint {
    /// Facts for the summary; `settings_changed` and `status` are still empty.
    pub server: Server,
    pub driver: Driver,
    /// True if the server runs on this host; false where that is unknown.
    pub same_host: bool,
    pub whereabouts: Whereabouts,
    /// Median round trip of `DO 1`, microseconds; None where the server refuses it.
    pub rtt_us: Option<f64>,
}

/// Reads the fingerprint, the round trip over a measured kind of session. Unknown facts stay empty.
pub async fn fingerprint(
    session: &mut Session,
    link: &ServerLink,
    data_bytes: Option<u64>,
) -> Result<Fingerprint> {
    let target = &link.target;
    let (host, port) = match &target.address {
        Address::Tcp { host, port } => (host.clone(), Some(*port)),
        Address::Socket(_) => ("localhost".to_owned(), None),
    };
    let transport = target.transport().to_owned();
    let server = Server { host, port, transport, data_bytes, ..Server::default() };
    let mut measured = LeanSession::open(link, &Inbox::default(), None).await?;
    let asked = ask(session, &mut measured, server, &target.address).await;
    measured.close(COURTESY).await;
    asked.map_err(|failure| explain(&failure, "read the server's version and variables"))
}

async fn ask(
    session: &mut Session,
    measured: &mut LeanSession,
    mut server: Server,
    address: &Address,
) -> Asked<Fingerprint> {
    server.database = database(session).await?;
    renew(session, &mut server).await?;
    let (root, port) = (Path::new(ROOT), server.port);
    let (id, listed) = (session.id(), optional(processes(session, 3).await)?);
    let own = listed.into_iter().flatten().find(|process| process.id as u32 == id);
    let seen_from = own.map_or(String::new(), |process| process.from);
    let mut whereabouts = whereabouts(session, &server.variables, port).await?;
    // A proxy listens elsewhere.
    let socket = whereabouts.socket.as_ref().and_then(|path| Path::new(path).canonicalize().ok());
    let is_own = matches!(address, Address::Socket(path)
        if socket.is_some() && path.canonicalize().ok() == socket);
    whereabouts.listener = measured.listener().filter(|_| is_own);
    let forwarded = is_forwarded(root, measured.listener());
    let direct = is_same_host(root, &seen_from, port) && !forwarded;
    if !direct {
        let own = server.variables.get("port").and_then(|port| port.parse().ok());
        let ports: Vec<u16> = own.into_iter().chain(port).collect();
        whereabouts.far_end = far_end(root, &seen_from, &ports, whereabouts.uptime_s);
    }
    let same_host = direct || whereabouts.far_end != FarEnd::Unknown;
    let (name, version) = (env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let driver = Driver { name, version, capabilities: measured.capabilities() };
    server.host_facts = same_host.then(|| host::facts(root).facts);
    let late = || Err(Failure::lost("DO 1 on a connection of its own was not answered"));
    let rtt_us = within(SILENCE, control::median_us(measured)).await.unwrap_or_else(late)?;
    Ok(Fingerprint { server, driver, same_host, whereabouts, rtt_us })
}

pub(crate) async fn renew(session: &mut Session, server: &mut Server) -> Asked<()> {
    let product = Product::ask(session).await?;
    let variables = optional(control::variables(session).await)?.unwrap_or_default();
    let cipher = pairs(session, "SHOW SESSION STATUS LIKE 'Ssl_cipher'").await;
    let cipher = optional(cipher)?.and_then(|pairs| pairs.into_values().next());
    server.tls_cipher = cipher.filter(|cipher| !cipher.is_empty());
    server.version.clone_from(&product.version);
    server.version_comment.clone_from(&product.comment);
    server.buffer_pool_bytes =
        variables.get("innodb_buffer_pool_size").and_then(|value| value.parse().ok());
    server.durability = durability(&variables);
    server.variables = variables.into();
    Ok(())
}

pub(crate) fn changes(before: &Server, after: &Server) -> Vec<SettingChange> {
    let mut changed = control::changed(&before.variables, &after.variables);
    // A proxy, or a server without these variables, shows them only in its own answers.
    for (name, before, after) in [
        ("version", &before.version, &after.version),
        ("version_comment", &before.version_comment, &after.version_comment),
    ] {
        // An empty one is unknown.
        let differ = before != after && !after.is_empty();
        if differ && changed.iter().all(|change| change.name != name) {
            let (before, after) = (Some(before.clone()), Some(after.clone()));
            changed.push(SettingChange { name: name.to_owned(), before, after });
        }
    }
    changed
}

async fn whereabouts(
    session: &mut Session,
    variables: &Variables,
    port: Option<u16>,
) -> Asked<Whereabouts> {
    let uptime = optional(pairs(session, "SHOW GLOBAL STATUS LIKE 'Uptime'").await)?;
    let get = |name: &str| variables.get(name).filter(|value| !value.is_empty()).cloned();
    // Some versions show the path as given: relative to the data directory.
    let pid_file = get("pid_file").map(|file| match get("datadir") {
        Some(datadir) => Path::new(&datadir).join(file).to_string_lossy().into_owned(),
        None => file,
    });
    Ok(Whereabouts {
        pid_file: pid_file.filter(|file| file.starts_with('/')),
        port: port.or_else(|| get("port")?.parse().ok()),
        socket: get("socket"),
        listener: None,
        uptime_s: uptime.and_then(|found| found.get("Uptime")?.parse().ok()),
        far_end: FarEnd::Unknown,
    })
}

fn host_and_port(seen_from: &str) -> Option<(&str, u16)> {
    let (host, port) = seen_from.rsplit_once(':')?;
    Some((host, port.parse().ok()?))
}

/// Returns whether a connection goes to this host. `seen_from` is its Host in SHOW PROCESSLIST, `port`
/// its TCP port (None for a socket), `root` the root of the file systems.
fn is_same_host(root: &Path, seen_from: &str, port: Option<u16>) -> bool {
    let (server_port, client_port) = match (port, host_and_port(seen_from)) {
        (None, None) => return seen_from == "localhost",
        (Some(server_port), Some((_, client_port))) => (server_port, client_port),
        _ => return false,
    };
    ["proc/self/net/tcp", "proc/self/net/tcp6"].iter().any(|table| {
        let table = std::fs::read_to_string(root.join(table)).unwrap_or_default();
        connections(&table).iter().any(|one| {
            let (local, remote) = (one.local_address, one.remote_address);
            (local.port(), remote.port()) == (client_port, server_port)
                && (local.ip() == remote.ip() || remote.ip().to_canonical().is_loopback())
        })
    })
}

/// Returns whether it is ssh that listens at the socket: the server is behind it, on another host.
fn is_forwarded(root: &Path, listener: Option<u32>) -> bool {
    let read = |pid: u32| std::fs::read_to_string(root.join(format!("proc/{pid}/comm"))).ok();
    // With -R it is sshd, or sshd-session.
    listener.and_then(read).is_some_and(|name| name.starts_with("ssh"))
}

/// Finds the server's end of the connection that it sees come from `seen_from`. It listens on one of `ports`.
fn far_end(root: &Path, seen_from: &str, ports: &[u16], uptime_s: Option<u64>) -> FarEnd {
    let Some(((host, seen_port), uptime_s)) = host_and_port(seen_from).zip(uptime_s) else {
        return FarEnd::Unknown;
    };
    // The host may be a name.
    let address = host.parse::<IpAddr>().ok();
    probe::far_end(root, uptime_s, |one| {
        ports.contains(&one.local_address.port())
            && one.remote_address.port() == seen_port
            && address.is_none_or(|address| address == one.remote_address.ip().to_canonical())
    })
}

/// The log-in methods that send the password itself, under a key of the server's.
const BY_KEY: [&str; 2] = ["caching_sha2_password", "sha256_password"];

/// Returns whether nothing leaves this host on the way to a server, as far as its address says.
pub(crate) fn is_local(address: &Address) -> bool {
    match address {
        Address::Tcp { host, .. } => is_loopback(host),
        Address::Socket(_) => true,
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>().map(|address| address.to_canonical().is_loopback());
    address.unwrap_or_else(|_| bare.trim_end_matches('.').eq_ignore_ascii_case("localhost"))
}

/// Warns of a log-in over plain TCP that sends the password under a key that came over the same wire:
/// `sha256_password` always, `caching_sha2_password` with a cold cache.
pub async fn exposure(session: &mut Session, target: &ConnectOptions) -> Result<Option<Finding>> {
    // Nobody else reads what stays on this host.
    let Some(remote) = target.addresses().find(|address| !is_local(address)) else {
        return Ok(None);
    };
    if target.ssl.mode != SslMode::Disabled || target.password.is_empty() {
        return Ok(None);
    }
    // Servers before 5.7 and 10.2 do not know the question, though 5.6 has `sha256_password`.
    let asked = optional(session.query("SHOW CREATE USER CURRENT_USER()").await);
    let rows = asked.map_err(|failure| explain(&failure, "ask how the account logs in"))?;
    let is_by_key = |text: String| BY_KEY.iter().any(|method| text.contains(*method));
    let by_key = rows.into_iter().flatten().flatten().flatten().any(is_by_key);
    Ok(by_key.then(|| finding!(PasswordExposed, remote.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_address_is_loopback_when_nothing_leaves_the_host() {
        for host in ["127.0.0.1", "127.9.0.3", "::1", "[::1]", "::ffff:127.0.0.1", "LocalHost"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["128.0.0.1", "::2", "localhost.example.com", "db1", "0.0.0.0", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn servers_are_known_by_what_they_say() {
        use Family::{MariaDb, MySql, Other};
        for (version, comment, family, number) in [
            ("5.5.34", "MySQL Community Server (GPL)", MySql, (5, 5, 34)),
            ("9.7.4-2", "(Debian)", MySql, (9, 7, 4)),
            ("8.0.36-28", "Percona Server (GPL), Release 28", MySql, (8, 0, 36)),
            ("10.11.18-MariaDB-0+deb12u1", "Debian 12", MariaDb, (10, 11, 18)),
            ("5.5.5-10.1.23-MariaDB", "MariaDB Server", MariaDb, (10, 1, 23)),
            ("5.5.5-m3", "Source distribution", MySql, (5, 5, 5)),
            ("8.0.11-TiDB-v7.5.1", "TiDB Server", Other("TiDB"), (8, 0, 11)),
            ("8.0.30-Vitess", "Version: 19.0", Other("Vitess"), (8, 0, 30)),
            ("8.0.33", "(ProxySQL)", Other("ProxySQL"), (8, 0, 33)),
            ("unknown", "", MySql, (0, 0, 0)),
            ("70000.1.1", "", MySql, (0, 0, 0)),
        ] {
            let product = Product::from_version(version, comment);
            assert_eq!((product.family, product.number), (family, number), "{version} {comment}");
        }
        assert_eq!(Product::from_version("8.4.0", "MySQL").to_string(), "MySQL 8.4.0");
    }

    proptest! {
        #[test]
        fn a_version_is_read_whatever_stands_around_it(
            major in 0_u16..100, minor in 0_u16..100, patch in 0_u16..1000,
            lead in prop::sample::select(vec!["", "5.5.5-"]), tail in "(-\\PC{0,20})?",
        ) {
            let version = format!("{lead}{major}.{minor}.{patch}-MariaDB{tail}");
            let product = Product::from_version(&version, "");
            if product.family == Family::MariaDb {
                prop_assert_eq!(product.number, (major, minor, patch));
            }
        }

        #[test]
        fn no_text_panics_or_acts_upon_a_terminal(version in any::<String>(), comment in any::<String>()) {
            let product = Product::from_version(&version, &comment);
            prop_assert!(!product.to_string().contains(char::is_control));
            prop_assert!(!product.comment.contains(char::is_control));
        }
    }

    #[test]
    fn the_drivers_version_is_the_one_that_is_linked() {
        let pinned = format!("name = \"{}\"\nversion = \"{}\"\n", DRIVER.0, DRIVER.1);
        assert!(include_str!("../../Cargo.lock").contains(&pinned), "{pinned}");
    }

    /// Recorded on a little-endian host.
    const TCP: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0100007F:9D86 0100007F:0CEA 01 00000000:00000000 00:00000000 00000000     0        0 1 1
   2: 0500A8C0:9D87 0900A8C0:0CEA 01 00000000:00000000 00:00000000 00000000     0        0 1 1
   3: 0500A8C0:9D88 0500A8C0:0CEA 01 00000000:00000000 00:00000000 00000000     0        0 1 1
   4: 0100007F:9D89 0100007F:0CEA 06 00000000:00000000 00:00000000 00000000     0        0 1 1
";
    const TCP6: &str = "\
  sl  local_address                         remote_address                        st
   0: 00000000000000000000000001000000:9D90 00000000000000000000000001000000:0CEA 01 0:0 00:0 0 0 0 1 1 0
   1: 0000000000000000FFFF00000100007F:9D91 0000000000000000FFFF00000100007F:0CEA 01 0:0 00:0 0 0 0 1 1 0
";

    #[cfg(target_endian = "little")]
    #[test]
    fn only_a_direct_connection_to_oneself_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let net = root.path().join("proc/self/net");
        std::fs::create_dir_all(&net).expect("directories");
        std::fs::write(net.join("tcp"), TCP).expect("a file");
        std::fs::write(net.join("tcp6"), TCP6).expect("a file");
        let same = |seen: &str, port| is_same_host(root.path(), seen, port);
        let server = Some(0x0CEA);
        assert!(same("localhost:40326", server), "loopback");
        assert!(same("192.168.0.5:40328", server), "an address of this host's own");
        assert!(same("::1:40336", server), "IPv6");
        assert!(same("localhost:40337", server), "IPv4 in IPv6");
        assert!(!same("192.168.0.5:40327", server), "another host");
        assert!(!same("172.17.0.1:40329", server), "a closed connection of that number");
        assert!(!same("172.17.0.1:51000", server), "a forwarder's own connection");
        assert!(!same("localhost:40326", Some(3307)), "a connection to another port");
        assert!(!same("localhost", server), "a proxy that goes on over a socket");
        assert!(same("localhost", None), "a socket");
        assert!(!same("10.0.0.7:40326", None), "a socket whose other end goes on over TCP");
        assert!(!same("", None), "an unknown connection");
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn a_server_in_another_network_namespace_is_known_by_its_end_of_the_connection() {
        let root = tempfile::tempdir().expect("a directory");
        let process = |pid: u32, started_ticks: u32, table: &str| {
            let net = root.path().join(format!("proc/{pid}/net"));
            std::fs::create_dir_all(&net).expect("directories");
            std::fs::write(net.join("tcp"), table).expect("a file");
            let stat =
                format!("{pid} (x) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 3 0 {started_ticks} 0");
            std::fs::write(net.with_file_name("stat"), stat).expect("a file");
            std::fs::write(net.with_file_name("cmdline"), "mysqld\0").expect("a file");
        };
        // 172.17.0.2:3306 has a connection from 172.17.0.1:51000.
        let table = "  sl\n   0: 020011AC:0CEA 010011AC:C738 01 0:0 00:0 0 999 0 4711 1 0\n";
        std::fs::create_dir_all(root.path().join("proc")).expect("a directory");
        std::fs::write(root.path().join("proc/uptime"), "1000.00 1\n").expect("a file");
        // The forwarder: as old, but the client's end. Then a program as old as the server.
        process(6, 90_000, "  sl\n   0: 010011AC:C738 020011AC:0CEA 01 0:0 00:0 0 0 0 4710 1 0\n");
        process(7, 90_000, table);
        let find = |seen: &str, uptime| far_end(root.path(), seen, &[3306], uptime);
        let gateway = "172.17.0.1:51000";
        assert_eq!(find(gateway, Some(100)), FarEnd::Here(None), "whose, is not known");
        assert_eq!(find("gateway:51000", Some(100)), FarEnd::Here(None), "a name");
        let fd = root.path().join("proc/7/fd");
        std::fs::create_dir_all(&fd).expect("a directory");
        std::os::unix::fs::symlink("socket:[4711]", fd.join("19")).expect("a link");
        assert_eq!(find(gateway, Some(100)), FarEnd::Here(Some(7)));
        assert_eq!(find(gateway, Some(700)), FarEnd::Unknown, "it is older than that process");
        assert_eq!(find(gateway, None), FarEnd::Unknown, "its age is not known");
        assert_eq!(find("172.17.0.1:51001", Some(100)), FarEnd::Unknown, "another connection");
        assert_eq!(find("172.18.0.1:51000", Some(100)), FarEnd::Unknown, "another network");
        assert_eq!(far_end(root.path(), gateway, &[3307], Some(100)), FarEnd::Unknown);
        assert_eq!(find("localhost", Some(100)), FarEnd::Unknown, "a socket");
    }

    #[test]
    fn socket_that_ssh_forwards_leads_to_another_host() {
        let root = tempfile::tempdir().expect("a directory");
        for (pid, name) in [(7, "ssh"), (8, "sshd-session"), (9, "mariadbd")] {
            let dir = root.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(&dir).expect("directories");
            std::fs::write(dir.join("comm"), format!("{name}\n")).expect("a file");
        }
        let pids = [Some(7), Some(8), Some(9), Some(10), None];
        let forwarded = pids.map(|pid| is_forwarded(root.path(), pid));
        assert_eq!(forwarded, [true, true, false, false, false]);
    }

    #[test]
    fn damaged_tables_mean_no() {
        assert!(!is_same_host(Path::new("/nonexistent"), "localhost:1", Some(2)));
        for line in ["", "0: x y 01", "0: 0100007F:9D86 01", "0: 01:1 01:1 01", "0: é:1 é:1 01"] {
            assert!(connections(&format!("sl\n{line}\n")).is_empty(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_table_panics(text in "[0-9A-Fa-f: ü]{0,80}") {
            let _ = connections(&format!("sl\n0: {text} {text} 01 0:0 00:0 0 0 0 1\n{text}"));
        }
    }
}
