//! The texts of `/proc` (proc(5)), of this host or another one: pure.
//!
//! The crate procfs-core reads them, but for `/proc/PID/stat` and `status`: it panics on damaged text
//! of the first, and refuses the second whole where one of sixty lines is missing.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use procfs_core::net::{InterfaceDeviceStatus, TcpNetEntries, TcpState, UnixNetEntries, UnixState};
use procfs_core::prelude::{FromBufRead, FromBufReadSI, FromRead};
use procfs_core::{DiskStat, ExplicitSystemInfo, KernelStats, Uptime};

/// The text of files by their paths.
pub(super) type Files = BTreeMap<String, String>;

/// Ticks a second in `/proc`: USER_HZ, which is 100 on every architecture that has MySQL.
const TICKS_PER_S: u64 = 100;
/// What `/proc/diskstats` calls a sector, whatever the disk does.
const SECTOR_BYTES: u64 = 512;
const SYSTEM: ExplicitSystemInfo = ExplicitSystemInfo {
    boot_time_secs: 0,
    ticks_per_second: TICKS_PER_S,
    page_size: 4096,
    is_little_endian: cfg!(target_endian = "little"),
};

/// Ticks as seconds.
pub(super) fn seconds(ticks: u64) -> f64 {
    ticks as f64 / TICKS_PER_S as f64
}

/// A process at one instant.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ProcessStat {
    pub user_ticks: u64,
    pub sys_ticks: u64,
    /// Since the host's start.
    pub started_ticks: u64,
    pub threads: Option<u32>,
    /// Voluntary and involuntary context switches by thread.
    pub switches: BTreeMap<u32, (u64, u64)>,
    pub read_bytes: Option<u64>,
    pub write_bytes: Option<u64>,
    pub rss_bytes: Option<u64>,
}

/// Reads a process from its files.
pub(super) fn process(files: &Files, pid: u32) -> Option<ProcessStat> {
    let own = |name: &str| files.get(&format!("/proc/{pid}/{name}"));
    let number = |name: &str, key: &str| field(own(name)?, key);
    let mut found = stat(own("stat")?)?;
    found.read_bytes = number("io", "read_bytes");
    found.write_bytes = number("io", "write_bytes");
    found.rss_bytes = number("status", "VmRSS").map(|kib| kib.saturating_mul(1024));
    let tasks = format!("/proc/{pid}/task/");
    for (path, text) in files.range(tasks.clone()..).take_while(|(p, _)| p.starts_with(&tasks)) {
        let thread = path.strip_prefix(&tasks).and_then(|rest| rest.strip_suffix("/status"));
        let switches =
            field(text, "voluntary_ctxt_switches").zip(field(text, "nonvoluntary_ctxt_switches"));
        if let Some((thread, switches)) = thread.and_then(|t| t.parse().ok()).zip(switches) {
            found.switches.insert(thread, switches);
        }
    }
    Some(found)
}

/// Reads `/proc/PID/stat`. The name may hold anything, parentheses included: the last one ends it.
pub(super) fn stat(text: &str) -> Option<ProcessStat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    // The first of these is field 3, the state.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(ProcessStat {
        user_ticks: number(14)?,
        sys_ticks: number(15)?,
        threads: number(20).and_then(|n| u32::try_from(n).ok()),
        started_ticks: number(22)?,
        ..ProcessStat::default()
    })
}

/// Finds the number of a `name: number` line, its unit left out.
pub(super) fn field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

/// Finds the number behind a prefix that a line begins with.
pub(super) fn after(text: &str, prefix: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(prefix)?.trim().parse().ok())
}

/// Reads the seconds since the host's start, from `/proc/uptime`.
pub(super) fn uptime_s(text: &str) -> Option<f64> {
    Uptime::from_read(text.as_bytes()).ok().map(|up| up.uptime)
}

/// All cores of a host, ticks since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostClock {
    pub user: u64,
    pub sys: u64,
    pub idle: u64,
    pub iowait: u64,
    pub steal: u64,
    /// Of `sys`, interrupts.
    pub irq: u64,
    /// Context switches, no ticks.
    pub switches: u64,
}

impl HostClock {
    /// All of it, since an earlier reading, seconds.
    pub(super) fn all_since(&self, earlier: &HostClock) -> f64 {
        let all = |c: &HostClock| c.user + c.sys + c.idle + c.iowait + c.steal;
        seconds(all(self).saturating_sub(all(earlier)))
    }

    /// A part of it, likewise.
    pub(super) fn since(&self, earlier: &HostClock, part: fn(&HostClock) -> u64) -> f64 {
        seconds(part(self).saturating_sub(part(earlier)))
    }
}

/// Reads `/proc/stat`. Guests are in user already.
pub(super) fn host(text: &str) -> Option<HostClock> {
    let stats = KernelStats::from_buf_read(text.as_bytes(), &SYSTEM).ok()?;
    let all = stats.total;
    let irq = all.irq.unwrap_or(0).saturating_add(all.softirq.unwrap_or(0));
    Some(HostClock {
        user: all.user.saturating_add(all.nice),
        sys: all.system.saturating_add(irq),
        idle: all.idle,
        iowait: all.iowait.unwrap_or(0),
        steal: all.steal.unwrap_or(0),
        irq,
        switches: stats.ctxt,
    })
}

/// Disks of a host, since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DiskUse {
    pub reads: u64,
    pub read_ms: u64,
    pub writes: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
}

/// What lies on top of disks, or is none: it would count twice.
const STACKED: [&str; 8] = ["loop", "ram", "zram", "dm-", "md", "sr", "fd", "drbd"];

/// Reads `/proc/diskstats`, whole physical disks only. A partition is told by its disk's being there,
/// too: `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`.
pub(super) fn disks(text: &str) -> DiskUse {
    let rows: BTreeMap<String, DiskStat> = text
        .lines()
        .filter_map(|line| DiskStat::from_line(line).ok())
        .map(|disk| (disk.name.clone(), disk))
        .collect();
    let partition = |name: &str| {
        let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let of = |disk: &str| disk.len() < name.len() && rows.contains_key(disk);
        let numbered = disk.strip_suffix('p').filter(|d| d.ends_with(|c: char| c.is_ascii_digit()));
        of(disk) || numbered.is_some_and(of)
    };
    let physical = |name: &str| !STACKED.iter().any(|p| name.starts_with(p)) && !partition(name);
    let bytes = |sum: u64, sectors: u64| sum.saturating_add(sectors.saturating_mul(SECTOR_BYTES));
    let disks = rows.values().filter(|disk| physical(&disk.name));
    disks.fold(DiskUse::default(), |sum, disk| DiskUse {
        reads: sum.reads.saturating_add(disk.reads),
        read_ms: sum.read_ms.saturating_add(disk.time_reading),
        read_bytes: bytes(sum.read_bytes, disk.sectors_read),
        writes: sum.writes.saturating_add(disk.writes),
        write_bytes: bytes(sum.write_bytes, disk.sectors_written),
    })
}

/// Bytes of network interfaces, since the host's start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub rx_bytes: u64,
    pub tx_bytes: u64,
}

/// Interfaces that pass on what another one counts, or never leave the host.
const VIRTUAL: [&str; 9] = ["lo", "veth", "docker", "br-", "virbr", "bond", "team", "tun", "tap"];

/// Reads `/proc/net/dev`: the interfaces that are real, all together.
pub(super) fn traffic(text: &str) -> Option<Traffic> {
    let all = interfaces(text)?;
    let real = all.iter().filter(|(name, _)| !VIRTUAL.iter().any(|p| name.starts_with(p)));
    Some(real.fold(Traffic::default(), |sum, (_, one)| Traffic {
        rx_bytes: sum.rx_bytes.saturating_add(one.rx_bytes),
        tx_bytes: sum.tx_bytes.saturating_add(one.tx_bytes),
    }))
}

/// Reads `/proc/net/dev`, each interface by its name.
pub(super) fn interfaces(text: &str) -> Option<BTreeMap<String, Traffic>> {
    // Old kernels leave no blank before a number of eight digits.
    let text = text.replace(':', ": ");
    let all = InterfaceDeviceStatus::from_buf_read(text.as_bytes()).ok()?;
    let bytes = all
        .0
        .into_iter()
        .map(|(name, one)| (name, Traffic { rx_bytes: one.recv_bytes, tx_bytes: one.sent_bytes }));
    Some(bytes.collect())
}

/// A TCP socket of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TcpSocket {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub inode: u64,
}

/// Reads the established connections of a `/proc/net/tcp`; none of a damaged one.
pub(crate) fn connections(text: &str) -> Vec<TcpSocket> {
    tcp(text, &TcpState::Established)
}

/// Reads its listening sockets, likewise.
pub(super) fn listeners(text: &str) -> Vec<TcpSocket> {
    tcp(text, &TcpState::Listen)
}

fn tcp(text: &str, state: &TcpState) -> Vec<TcpSocket> {
    let all = TcpNetEntries::from_buf_read(text.as_bytes(), &SYSTEM);
    let all = all.map_or_else(|_| Vec::new(), |entries| entries.0);
    let in_state = all.into_iter().filter(|entry| entry.state == *state);
    in_state
        .map(|entry| TcpSocket {
            local: entry.local_address,
            remote: entry.remote_address,
            inode: entry.inode,
        })
        .collect()
}

/// Reads the inodes of the sockets that listen at a path, from `/proc/net/unix`.
pub(super) fn unix_listeners(text: &str, path: &str) -> Vec<u64> {
    let all = UnixNetEntries::from_buf_read(text.as_bytes());
    let all = all.map_or_else(|_| Vec::new(), |entries| entries.0);
    // A listening one is unconnected; its connections have the path, too.
    let listens = |state: &UnixState| *state == UnixState::UNCONNECTED;
    let at_path =
        all.iter().filter(|one| one.path.as_deref().is_some_and(|p| p.as_os_str() == path));
    at_path.filter(|one| listens(&one.state)).map(|one| one.inode).collect()
}
