//! Which process of this host is the server.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use procfs_core::net::{TcpNetEntry, TcpState};

use super::{FarEnd, Whereabouts};
use crate::observe::proc;

/// The server counts its age from some moment of its start, in whole seconds.
const AGE_SLACK_S: f64 = 5.0;
const PID_FILE_MAX: u64 = 64;

/// Finds the process at the far end of the connection, else the one whose id its file holds, else the one
/// that holds the listening socket. In another network namespace only the first is its own.
pub(super) fn here(root: &Path, server: &Whereabouts) -> Option<u32> {
    let is_server = |pid: &u32| is_as_old(root, *pid, server.uptime_s);
    if let FarEnd::Here(pid) = server.far_end {
        return pid.filter(is_server);
    }
    let filed = server.pid_file.as_ref().and_then(|file| filed(root, file));
    filed.filter(is_server).or_else(|| listener(root, server).filter(is_server))
}

fn is_as_old(root: &Path, pid: u32, uptime_s: Option<u64>) -> bool {
    let stat = read(root, &format!("proc/{pid}/stat"));
    is_of_age(&stat, &read(root, "proc/uptime"), uptime_s, Duration::ZERO)
}

/// Says whether there is such a process, as old as the server says; yes where that is unknown. The host
/// was read so long after the server was asked.
pub(super) fn is_of_age(stat: &str, uptime: &str, age: Option<u64>, took: Duration) -> bool {
    let Some(started) = proc::stat(stat, 22) else { return false };
    let Some((host, server)) = proc::uptime_s(uptime).zip(age) else { return true };
    let off = host - proc::seconds([started]) - server as f64;
    off.abs() <= AGE_SLACK_S + took.as_secs_f64()
}

/// Looks for the server's end of a connection: among the connections of every process that is as
/// old as the server, which see those of their network namespace.
pub(crate) fn far_end(root: &Path, uptime_s: u64, is_it: impl Fn(&TcpNetEntry) -> bool) -> FarEnd {
    let mut found = FarEnd::Unknown;
    // The kernel's own threads, many of one age, have no command line.
    let programs =
        processes(root).filter(|pid| !read(root, &format!("proc/{pid}/cmdline")).is_empty());
    for pid in programs.filter(|pid| is_as_old(root, *pid, Some(uptime_s))) {
        let tables = ["tcp", "tcp6"].map(|name| read(root, &format!("proc/{pid}/net/{name}")));
        let mut sockets = tables.iter().flat_map(|table| proc::connections(table));
        let Some(socket) = sockets.find(&is_it) else { continue };
        // Others of the same namespace see it, too.
        if holds(root, pid, &[format!("socket:[{}]", socket.inode)].into()) {
            return FarEnd::Here(Some(pid));
        }
        found = FarEnd::Here(None);
    }
    found
}

fn processes(root: &Path) -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir(root.join("proc")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Says whether a process has one of these sockets open: known as the same user, or as root.
fn holds(root: &Path, pid: u32, sockets: &BTreeSet<String>) -> bool {
    let open = std::fs::read_dir(root.join(format!("proc/{pid}/fd")));
    let mut targets = open.into_iter().flatten().flatten().map(|fd| std::fs::read_link(fd.path()));
    targets.any(|target| target.is_ok_and(|t| t.to_str().is_some_and(|t| sockets.contains(t))))
}

/// Reads the number in a file that the server names, which may be anything: a pipe would be waited for, a
/// device or a file of the kernel's have no end.
fn filed(root: &Path, file: &str) -> Option<u32> {
    let path = proc::below(root, file);
    let known = std::fs::metadata(&path).ok()?;
    if !known.is_file() || !(1..=PID_FILE_MAX).contains(&known.len()) {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(PID_FILE_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn read(root: &Path, path: &str) -> String {
    std::fs::read_to_string(root.join(path)).unwrap_or_default()
}

fn listener(root: &Path, server: &Whereabouts) -> Option<u32> {
    let mut inodes = Vec::new();
    if let Some(port) = server.port {
        for table in ["proc/net/tcp", "proc/net/tcp6"] {
            let sockets = proc::tcp(&read(root, table), &TcpState::Listen).into_iter();
            let there = sockets.filter(|one| one.local_address.port() == port);
            inodes.extend(there.map(|one| one.inode));
        }
    }
    if let Some(path) = &server.socket {
        inodes.extend(proc::unix_listeners(&read(root, "proc/net/unix"), path));
    }
    let sockets: BTreeSet<_> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let mut looked_at = processes(root).filter(|_| !sockets.is_empty());
    looked_at.find(|pid| holds(root, *pid, &sockets))
}
