//! Whether the server runs on this host, and never a guess that it does.
//!
//! A loopback address proves nothing (an SSH tunnel, a container's forwarded port), nor does an
//! equal host name (cloned machines). So the server is asked where it sees this connection come
//! from. If it names a port that this host's own table of TCP connections has as the local end
//! of a connection to the server's port, nothing stands between, and both ends having one
//! address means one host. Over a Unix socket it suffices that the server sees a local
//! connection.
//!
//! A server in a container, or behind a proxy, has another connection than the client. Its end of
//! it is on this host if a process here that is as old as the server has it in its network
//! namespace.
//!
//! What stays undecided counts as another host: a client in a container, a server whose processes
//! are hidden. The one thing mistaken for this host is a Unix socket that is tunnelled to a Unix
//! socket elsewhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use crate::observe::probe::{self, FarEnd};

/// `seen_from` is the Host column of this connection in SHOW PROCESSLIST, `port` the TCP port
/// that it goes to (None for a Unix socket), `root` the root of the file systems.
pub(super) fn is_same_host(root: &Path, seen_from: &str, port: Option<u16>) -> bool {
    let seen_port = seen_from.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    match (port, seen_port) {
        (None, None) => seen_from == "localhost",
        (Some(server_port), Some(client_port)) => {
            ["proc/self/net/tcp", "proc/self/net/tcp6"].iter().any(|table| {
                let table = std::fs::read_to_string(root.join(table)).unwrap_or_default();
                table.lines().filter_map(connection).any(|(local, remote)| {
                    local.1 == client_port
                        && remote.1 == server_port
                        && (local.0 == remote.0 || remote.0.to_canonical().is_loopback())
                })
            })
        }
        _ => false,
    }
}

/// Where the server's end of the connection is that it sees come from `seen_from`. It listens on
/// one of `ports`: its own, or the one that the connection went to.
pub(super) fn far_end(
    root: &Path,
    seen_from: &str,
    ports: &[u16],
    uptime_s: Option<u64>,
) -> FarEnd {
    let seen =
        seen_from.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let (Some((host, seen_port)), Some(uptime_s)) = (seen, uptime_s) else {
        return FarEnd::Unknown;
    };
    // It may be a name.
    let address = host.parse::<IpAddr>().ok();
    probe::far_end(root, uptime_s, |line| {
        connection(line).is_some_and(|(local, remote): (End, End)| {
            ports.contains(&local.1)
                && remote.1 == seen_port
                && address.is_none_or(|address| address == remote.0.to_canonical())
        })
    })
}

type End = (IpAddr, u16);

/// Both ends of an established connection, local first.
fn connection(line: &str) -> Option<(End, End)> {
    const ESTABLISHED: &str = "01";
    let mut words = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (words.next()?, words.next()?);
    (words.next()? == ESTABLISHED).then_some((end(local)?, end(remote)?))
}

/// `0100007F:0CEA`: the address in 32-bit words of the machine's own byte order.
fn end(text: &str) -> Option<End> {
    let (address, port) = text.split_once(':')?;
    let word = |i: usize| {
        let digits = address.get(i * 8..(i + 1) * 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (i, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(i)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some((ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
   0: 00000000000000000000000001000000:9D90 00000000000000000000000001000000:0CEA 01 0
   1: 0000000000000000FFFF00000100007F:9D91 0000000000000000FFFF00000100007F:0CEA 01 0
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
    fn damaged_tables_mean_no() {
        assert!(!is_same_host(Path::new("/nonexistent"), "localhost:1", Some(2)));
        for line in ["", "0: x y 01", "0: 0100007F:9D86 01", "0: 01:1 01:1 01", "0: é:1 é:1 01"] {
            assert_eq!(connection(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn an_address_reads_back(ip in any::<std::net::Ipv4Addr>(), port in any::<u16>(), text in "[0-9A-Fa-f: ü]{0,80}") {
            let word = u32::from_ne_bytes(ip.octets());
            prop_assert_eq!(end(&format!("{word:08X}:{port:04X}")), Some((IpAddr::V4(ip), port)));
            let _ = (end(&text), connection(&format!("0: {text} {text} 01")));
        }
    }
}
