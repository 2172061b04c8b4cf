//! The texts of `/proc` (proc(5)): pure.

use std::collections::BTreeMap;

use super::Files;

/// Ticks a second in `/proc`: USER_HZ, which is 100 on every architecture that has MySQL.
const TICKS_PER_S: f64 = 100.0;
/// What `/proc/diskstats` calls a sector, whatever the disk does.
const SECTOR_BYTES: u64 = 512;

/// Ticks as seconds.
pub(super) fn seconds(ticks: u64) -> f64 {
    ticks as f64 / TICKS_PER_S
}

/// A process at one instant.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Stat {
    pub(super) user_ticks: u64,
    pub(super) sys_ticks: u64,
    /// Since the host's start.
    pub(super) started_ticks: u64,
    pub(super) threads: Option<u32>,
    /// Voluntary and involuntary context switches by thread.
    pub(super) switches: BTreeMap<u32, (u64, u64)>,
    pub(super) read_bytes: Option<u64>,
    pub(super) write_bytes: Option<u64>,
    pub(super) rss_bytes: Option<u64>,
}

/// A process from its files.
pub(super) fn process(files: &Files, pid: u32) -> Option<Stat> {
    let own = |name: &str| files.get(&format!("/proc/{pid}/{name}"));
    let mut found = stat(own("stat")?)?;
    let number = |text: Option<&String>, key: &str| field(text?, key);
    found.read_bytes = number(own("io"), "read_bytes");
    found.write_bytes = number(own("io"), "write_bytes");
    found.rss_bytes = number(own("status"), "VmRSS").map(|kib| kib.saturating_mul(1024));
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

/// `/proc/PID/stat`. The name may hold anything, parentheses included: the last one ends it.
pub(super) fn stat(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    // The first of these is field 3, the state.
    let number = |field: usize| fields.get(field.checked_sub(3)?)?.parse::<u64>().ok();
    Some(Stat {
        user_ticks: number(14)?,
        sys_ticks: number(15)?,
        threads: number(20).and_then(|n| u32::try_from(n).ok()),
        started_ticks: number(22)?,
        ..Stat::default()
    })
}

/// The number of a `name: number` line, its unit left out.
fn field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

/// Seconds since the host's start, from `/proc/uptime`.
pub(super) fn uptime_s(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// All cores of a host, ticks since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostClock {
    pub(crate) user: u64,
    pub(crate) sys: u64,
    pub(crate) idle: u64,
    pub(crate) iowait: u64,
    pub(crate) steal: u64,
    pub(super) switches: Option<u64>,
    /// Of `sys`, interrupts.
    pub(crate) irq: u64,
}

impl HostClock {
    /// All of it, since an earlier reading, seconds.
    pub(crate) fn all_since(&self, earlier: &HostClock) -> f64 {
        let all = |c: &HostClock| c.user + c.sys + c.idle + c.iowait + c.steal;
        seconds(all(self).saturating_sub(all(earlier)))
    }

    /// Of a part of it, likewise.
    pub(crate) fn since(&self, earlier: &HostClock, part: fn(&HostClock) -> u64) -> f64 {
        seconds(part(self).saturating_sub(part(earlier)))
    }
}

/// `/proc/stat`. Guests are in user already.
pub(super) fn host(text: &str) -> Option<HostClock> {
    let all = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = all.split_ascii_whitespace().map_while(|t| t.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal
    let at = |i: usize| ticks.get(i).copied().unwrap_or(0);
    let switches = text.lines().find_map(|line| line.strip_prefix("ctxt "));
    (ticks.len() >= 4).then(|| HostClock {
        user: at(0).saturating_add(at(1)),
        sys: at(2).saturating_add(at(5)).saturating_add(at(6)),
        idle: at(3),
        iowait: at(4),
        steal: at(7),
        switches: switches.and_then(|n| n.trim().parse().ok()),
        irq: at(5).saturating_add(at(6)),
    })
}

/// Disks of a host, since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Disk {
    pub(super) reads: u64,
    pub(super) read_ms: u64,
    pub(super) writes: u64,
    pub(super) read_bytes: u64,
    pub(super) write_bytes: u64,
}

/// What lies on top of disks, or is none: it would count twice.
const STACKED: [&str; 8] = ["loop", "ram", "zram", "dm-", "md", "sr", "fd", "drbd"];

/// `/proc/diskstats`, whole physical disks only. A partition is told by its disk's being there,
/// too: `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`.
pub(super) fn disks(text: &str) -> Disk {
    let rows: BTreeMap<&str, Vec<u64>> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace().skip(2);
            let name = words.next()?;
            Some((name, words.map_while(|word| word.parse().ok()).collect()))
        })
        .collect();
    let partition = |name: &str| {
        let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let of = |disk: &str| disk.len() < name.len() && rows.contains_key(disk);
        let numbered = disk.strip_suffix('p').filter(|d| d.ends_with(|c: char| c.is_ascii_digit()));
        of(disk) || numbered.is_some_and(of)
    };
    let mut sum = Disk::default();
    for (name, fields) in &rows {
        if STACKED.iter().any(|prefix| name.starts_with(prefix)) || partition(name) {
            continue;
        }
        let at = |i: usize| fields.get(i).copied().unwrap_or(0);
        sum.reads = sum.reads.saturating_add(at(0));
        sum.read_ms = sum.read_ms.saturating_add(at(3));
        sum.read_bytes = sum.read_bytes.saturating_add(at(2).saturating_mul(SECTOR_BYTES));
        sum.writes = sum.writes.saturating_add(at(4));
        sum.write_bytes = sum.write_bytes.saturating_add(at(6).saturating_mul(SECTOR_BYTES));
    }
    sum
}

/// Network interfaces of a host, since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Nic {
    pub(super) rx_bytes: u64,
    pub(super) tx_bytes: u64,
}

/// Interfaces that pass on what another one counts, or never leave the host.
const VIRTUAL: [&str; 9] = ["lo", "veth", "docker", "br-", "virbr", "bond", "team", "tun", "tap"];

/// `/proc/net/dev`: those that are real, all together.
pub(super) fn nics(text: &str) -> Nic {
    let real = interfaces(text)
        .into_iter()
        .filter(|(name, _)| !VIRTUAL.iter().any(|prefix| name.starts_with(prefix)));
    real.fold(Nic::default(), |sum, (_, nic)| Nic {
        rx_bytes: sum.rx_bytes.saturating_add(nic.rx_bytes),
        tx_bytes: sum.tx_bytes.saturating_add(nic.tx_bytes),
    })
}

/// `/proc/net/dev`, each by its name.
pub(super) fn interfaces(text: &str) -> BTreeMap<&str, Nic> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let counted = lines.map(|(name, counts)| {
        let counts: Vec<u64> =
            counts.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        let at = |i: usize| counts.get(i).copied().unwrap_or(0);
        (name.trim(), Nic { rx_bytes: at(0), tx_bytes: at(8) })
    });
    counted.collect()
}
