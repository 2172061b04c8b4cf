//! The texts of `/proc` (proc(5)), of this host or another one.
//!
//! The crate procfs-core reads tables; it panics on damaged text of `/proc/PID/stat`, and refuses a whole
//! `status` or `stat` where one of its lines is missing.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use procfs_core::net::{
    DeviceStatus, InterfaceDeviceStatus, TcpNetEntries, TcpNetEntry, TcpState, UnixNetEntries,
    UnixState,
};
use procfs_core::prelude::{FromBufRead, FromBufReadSI};
use procfs_core::{DiskStat, ExplicitSystemInfo};

pub(super) type Files = BTreeMap<String, String>;

/// Ticks a second in `/proc`: USER_HZ, which is 100 on every architecture that has MySQL.
const TICKS_PER_S: u64 = 100;
const SYSTEM: ExplicitSystemInfo = ExplicitSystemInfo {
    boot_time_secs: 0,
    ticks_per_second: TICKS_PER_S,
    page_size: 4096,
    is_little_endian: cfg!(target_endian = "little"),
};

pub(super) fn seconds<const N: usize>(ticks: [u64; N]) -> f64 {
    sum(ticks) as f64 / TICKS_PER_S as f64
}

pub(super) fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// Reads files below a root, as a shell expands them: `*` stands for any part of one name.
pub(super) fn files(root: &Path, names: &[String]) -> Files {
    let mut files = Files::new();
    let mut read = |path: String| {
        if let Ok(text) = std::fs::read_to_string(below(root, &path)) {
            files.insert(path, text);
        }
    };
    for path in names {
        let Some((before, after)) = path.split_once('*') else {
            read(path.clone());
            continue;
        };
        let (dir, start) = before.rsplit_once('/').unwrap_or(("", before));
        for entry in std::fs::read_dir(below(root, dir)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(start) {
                read(format!("{dir}/{name}{after}"));
            }
        }
    }
    files
}

pub(super) fn below(root: &Path, path: &str) -> std::path::PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// Reads a number of `/proc/PID/stat` by its place in proc(5). The name may hold anything, parentheses
/// included: the last one ends it.
pub(super) fn stat(text: &str, place: usize) -> Option<u64> {
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(place - 3)?.parse().ok()
}

pub(super) fn field(text: &str, prefix: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(prefix))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

pub(super) fn uptime_s(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next()?.parse().ok().filter(|up: &f64| up.is_finite())
}

/// Reads what all cores did so far, ticks: user, nice, system, idle, waiting for storage, interrupts,
/// soft interrupts, stolen. Guests are in user already.
pub(super) fn ticks(stat: &str) -> Option<[u64; 8]> {
    let mut ticks = [0_u64; 8];
    let told = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    for (tick, told) in ticks.iter_mut().zip(told.split_ascii_whitespace()) {
        *tick = told.parse().ok()?;
    }
    Some(ticks)
}

/// What lies on top of disks, or is none: it would count twice.
const STACKED: [&str; 8] = ["loop", "ram", "zram", "dm-", "md", "sr", "fd", "drbd"];

/// Reads the whole physical disks of `/proc/diskstats`. A partition is told by its disk's being there,
/// too: `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`.
pub(super) fn disks(text: &str) -> Vec<DiskStat> {
    let all: Vec<DiskStat> =
        text.lines().filter_map(|line| DiskStat::from_line(line).ok()).collect();
    let there = |name: &str| all.iter().any(|disk| disk.name == name);
    let partition = |name: &str| {
        let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let numbered = disk.strip_suffix('p').filter(|d| d.ends_with(|c: char| c.is_ascii_digit()));
        disk.len() < name.len() && (there(disk) || numbered.is_some_and(there))
    };
    let physical = |name: &str| !STACKED.iter().any(|p| name.starts_with(p)) && !partition(name);
    all.iter().filter(|disk| physical(&disk.name)).cloned().collect()
}

/// Interfaces that pass on what another one counts, or never leave the host.
const VIRTUAL: [&str; 9] = ["lo", "veth", "docker", "br-", "virbr", "bond", "team", "tun", "tap"];

/// Reads `/proc/net/dev`: bytes that the real interfaces received and sent, all together.
pub(super) fn traffic(text: &str) -> Option<[u64; 2]> {
    let all = interfaces(text)?;
    let real = || all.values().filter(|one| !VIRTUAL.iter().any(|p| one.name.starts_with(p)));
    Some([sum(real().map(|one| one.recv_bytes)), sum(real().map(|one| one.sent_bytes))])
}

pub(super) fn interfaces(text: &str) -> Option<HashMap<String, DeviceStatus>> {
    // Old kernels leave no blank before a number of eight digits.
    let text = text.replace(':', ": ");
    InterfaceDeviceStatus::from_buf_read(text.as_bytes()).ok().map(|all| all.0)
}

/// Reads the sockets of a `/proc/net/tcp` that are in a state; none of a damaged one.
pub(crate) fn tcp(text: &str, state: &TcpState) -> Vec<TcpNetEntry> {
    let all = TcpNetEntries::from_buf_read(text.as_bytes(), &SYSTEM);
    let all = all.map_or_else(|_| Vec::new(), |entries| entries.0);
    all.into_iter().filter(|entry| entry.state == *state).collect()
}

/// Reads the inodes of the sockets that listen at a path, from `/proc/net/unix`.
pub(super) fn unix_listeners(text: &str, path: &str) -> Vec<u64> {
    let all = UnixNetEntries::from_buf_read(text.as_bytes());
    let all = all.map_or_else(|_| Vec::new(), |entries| entries.0);
    // A listening one is unconnected; its connections have the path, too.
    let listens = all.iter().filter(|one| one.state == UnixState::UNCONNECTED);
    let there = listens.filter(|one| one.path.as_deref().is_some_and(|p| p.as_os_str() == path));
    there.map(|one| one.inode).collect()
}

pub(crate) fn connections(text: &str) -> Vec<TcpNetEntry> {
    tcp(text, &TcpState::Established)
}
