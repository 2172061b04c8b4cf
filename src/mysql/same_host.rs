//! Whether the server runs on this host, and never a guess that it does.
//!
//! A loopback address proves nothing (an SSH tunnel, a container's forwarded port), nor does an
//! equal host name (cloned machines). So the server is asked where it sees this connection come
//! from. If it names a port that this host's own table of TCP connections has as the local end
//! of a connection to the server's port, nothing stands between, and both ends having one
//! address means one host. Over a Unix socket it suffices that the server sees a local
//! connection.
//!
//! What stays undecided counts as another host: a server in a container behind a forwarded port,
//! a client in one, a local proxy. The one thing mistaken for this host is a Unix socket that
//! is tunnelled to a Unix socket elsewhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

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
