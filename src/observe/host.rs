//! Facts of this host that a result depends on, read below a root directory, so that tests can use
//! recorded trees. Unreadable facts are "unknown" or 0: they must not end a measurement.
//!
//! procfs-core parses tables of `/proc`, but panics on damaged text of `/proc/PID/stat` and refuses a
//! whole `status` or `stat` for one missing line.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use procfs_core::net::{
    DeviceStatus, InterfaceDeviceStatus, TcpNetEntries, TcpNetEntry, TcpState, UnixNetEntries,
    UnixState,
};
use procfs_core::prelude::{FromBufRead, FromBufReadSI};
use procfs_core::{DiskStat, ExplicitSystemInfo};
use serde::{Deserialize, Serialize};

use crate::error::plain;

pub const ROOT: &str = "/";
/// Names a directory that is read instead of `/`, for tests.
pub(crate) const ROOT_VARIABLE: &str = "LOADGEN_HOST_ROOT";

pub(crate) fn recorded() -> Option<PathBuf> {
    std::env::var_os(ROOT_VARIABLE).map(PathBuf::from)
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    pub name: String,
    /// By this process's affinity; a control group's quota may allow less.
    pub cores_usable: u32,
    pub facts: HostFacts,
}

/// A host, as far as a result depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostFacts {
    /// Kernel release.
    pub kernel: String,
    /// CPU model.
    pub cpu: String,
    /// Online cores.
    pub cores: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// Reads the facts of the host with its file systems below `root` ([`ROOT`]).
pub fn facts(root: &Path) -> Host {
    facts_of(|path| std::fs::read_to_string(root.join(path)).unwrap_or_default())
}

/// Files of another host that [`facts_of`] reads, relative to the root.
pub(crate) const FILES: [&str; 5] = [
    "proc/sys/kernel/hostname",
    "proc/sys/kernel/osrelease",
    "proc/cpuinfo",
    "proc/meminfo",
    "sys/devices/system/cpu/online",
];

/// Reads a host's facts through `read`, which returns empty texts for missing files.
pub(crate) fn facts_of(read: impl Fn(&str) -> String) -> Host {
    let line = |path: &str| text_or_unknown(read(path).trim());
    let cpuinfo = read("proc/cpuinfo");
    let listed = fields(&cpuinfo, "processor").count() as u32;
    let online = cores_in(&read("sys/devices/system/cpu/online")).unwrap_or(listed);
    let status = read("proc/self/status");
    let usable = fields(&status, "Cpus_allowed_list").find_map(cores_in).unwrap_or(online);
    let facts = HostFacts {
        kernel: line("proc/sys/kernel/osrelease"),
        cpu: cpu_model(&cpuinfo, &read("sys/firmware/devicetree/base/model")),
        cores: online,
        memory_bytes: field(&read("proc/meminfo"), "MemTotal:").unwrap_or(0).saturating_mul(1024),
    };
    Host { name: line("proc/sys/kernel/hostname"), cores_usable: usable, facts }
}

fn text_or_unknown(text: &str) -> String {
    if text.is_empty() { "unknown".to_owned() } else { plain(text) }
}

pub(super) fn fields<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.filter(move |(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// Names the CPU: by x86's model; by ARM's numbers, or the board's name.
fn cpu_model(cpuinfo: &str, board: &str) -> String {
    let first = |key| fields(cpuinfo, key).find(|value| !value.is_empty());
    if let Some(model) = ["model name", "cpu model", "cpu"].into_iter().find_map(first) {
        return text_or_unknown(&model.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    let board = board.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    let numbers = first("CPU implementer").zip(first("CPU part"));
    match numbers.map(|(by, part)| format!("CPU implementer {by}, part {part}")) {
        Some(numbers) if board.is_empty() => text_or_unknown(&numbers),
        Some(numbers) => text_or_unknown(&format!("{board} ({numbers})")),
        None => text_or_unknown(board),
    }
}

/// Counts the cores of a list such as `0-3,8`.
pub(crate) fn cores_in(list: &str) -> Option<u32> {
    list.trim().split(',').try_fold(0, |cores: u32, range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        cores.checked_add(to.checked_sub(from)?.checked_add(1)?)
    })
}

pub(super) type Files = BTreeMap<String, String>;

/// Ticks a second in `/proc`: USER_HZ, 100 on every architecture that has MySQL.
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

/// Reads files below a root; `*` stands for any part of one name, as in a shell.
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

/// Finds a field by its place in proc(5). The name may hold parentheses: the last one ends it.
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

/// All cores: user, nice, system, idle, iowait, irq, softirq, steal. User includes guests.
pub(super) fn ticks(stat: &str) -> Option<[u64; 8]> {
    let mut ticks = [0_u64; 8];
    let told = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    for (tick, told) in ticks.iter_mut().zip(told.split_ascii_whitespace()) {
        *tick = told.parse().ok()?;
    }
    Some(ticks)
}

/// Returns whether a name begins with one of some words.
fn begins(name: &str, words: &str) -> bool {
    words.split_ascii_whitespace().any(|word| name.starts_with(word))
}

/// Devices on top of disks, or without one: they would count twice.
const STACKED: &str = "loop ram zram dm- md sr fd drbd bcache zd";

/// Reads the whole physical disks of `/proc/diskstats`; partitions are those whose disk is listed:
/// `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`.
pub(super) fn disks(text: &str) -> Vec<DiskStat> {
    let all: Vec<DiskStat> = text.lines().filter_map(|it| DiskStat::from_line(it).ok()).collect();
    let there = |name: &str| all.iter().any(|disk| disk.name == name);
    let partition = |name: &str| {
        let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let numbered = disk.strip_suffix('p').filter(|d| d.ends_with(|c: char| c.is_ascii_digit()));
        disk.len() < name.len() && (there(disk) || numbered.is_some_and(there))
    };
    // Older kernels count at the paths alone.
    let counts = |name: &String| all.iter().any(|disk| disk.name == *name && disk.reads > 0);
    let path = |name: &str| disk_behind(name).as_ref().is_some_and(counts);
    let physical = |name: &str| !begins(name, STACKED) && !partition(name) && !path(name);
    all.iter().filter(|disk| physical(&disk.name)).cloned().collect()
}

/// Names the disk that a path of NVMe's goes to: `nvme0n1` for `nvme0c1n1`. Several may go to one.
fn disk_behind(path: &str) -> Option<String> {
    let (subsystem, rest) = path.strip_prefix("nvme")?.split_once('c')?;
    let (_, disk) = rest.split_once('n')?;
    Some(format!("nvme{subsystem}n{disk}"))
}

/// Interfaces of containers, guests and tunnels: their traffic leaves through another one, too.
const INNER: &str = "lo veth docker podman nerdctl br- virbr lxc lxdbr incusbr vnet tun tap wg \
                     tailscale zt cni flannel cali cilium kube dummy ifb vxlan genev gre sit \
                     ip6tnl eni azv gke fwbr fwpr fwln";
const COMPOSED: &str = "bond team br vmbr vlan macvlan macvtap ipvlan ovs";

/// Received and sent bytes of `/proc/net/dev`: of the physical interfaces, else of the only composed one.
pub(super) fn traffic(text: &str) -> Option<[u64; 2]> {
    let all = interfaces(text)?;
    // Azure's `enP…`, on no bus or on bus 0, is below an `eth…`, which counts its traffic, too.
    let has_eth = all.keys().any(|name| name.starts_with("eth"));
    let is_below_eth = |name: &str| {
        let domain = name.strip_prefix("enP");
        let place = domain.map(|of| of.trim_start_matches(|c: char| c.is_ascii_digit()));
        place.is_some_and(|place| place.starts_with('s') || place.starts_with("p0s"))
    };
    let is_inner = |name: &str| begins(name, INNER) || has_eth && is_below_eth(name);
    let outer: Vec<_> = all.values().filter(|one| !is_inner(&one.name)).collect();
    // `eth0.100` is a VLAN of `eth0`.
    let is_vlan = |name: &str| name.split_once('.').is_some_and(|(of, _)| all.contains_key(of));
    let (composed, physical): (Vec<&DeviceStatus>, Vec<_>) =
        outer.into_iter().partition(|one| begins(&one.name, COMPOSED) || is_vlan(&one.name));
    let counted = match (physical.len(), composed.len()) {
        (0, 2..) => return None,
        (0, _) => composed,
        _ => physical,
    };
    let bytes = |of: fn(&DeviceStatus) -> u64| sum(counted.iter().map(|one| of(one)));
    Some([bytes(|one| one.recv_bytes), bytes(|one| one.sent_bytes)])
}

pub(super) fn interfaces(text: &str) -> Option<HashMap<String, DeviceStatus>> {
    // Old kernels leave no blank before eight digits.
    let text = text.replace(':', ": ");
    InterfaceDeviceStatus::from_buf_read(text.as_bytes()).ok().map(|all| all.0)
}

/// Reads the sockets of `/proc/net/tcp` in a state; none from a damaged file.
pub(crate) fn tcp(text: &str, state: &TcpState) -> Vec<TcpNetEntry> {
    let all = TcpNetEntries::from_buf_read(text.as_bytes(), &SYSTEM);
    let all = all.map_or_else(|_| Vec::new(), |entries| entries.0);
    all.into_iter().filter(|entry| entry.state == *state).collect()
}

/// Reads the inodes of sockets that listen at a path, from `/proc/net/unix`.
pub(super) fn unix_listeners(text: &str, path: &str) -> Vec<u64> {
    let all = UnixNetEntries::from_buf_read(text.as_bytes());
    let all = all.map_or_else(|_| Vec::new(), |entries| entries.0);
    // Listening sockets are unconnected; their connections have the path, too.
    let listens = all.iter().filter(|one| one.state == UnixState::UNCONNECTED);
    let there = listens.filter(|one| one.path.as_deref().is_some_and(|p| p.as_os_str() == path));
    there.map(|one| one.inode).collect()
}

pub(crate) fn connections(text: &str) -> Vec<TcpNetEntry> {
    tcp(text, &TcpState::Established)
}

/// Writes a file of a recorded host.
#[cfg(test)]
pub(super) fn write(root: &Path, path: &str, text: &str) {
    let path = below(root, path);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
    std::fs::write(path, text).expect("a file");
}

#[cfg(test)]
pub(super) fn record(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a directory");
    for (path, text) in files {
        write(root.path(), path, text);
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tree(files: &[(&str, &str)]) -> Host {
        facts(record(files).path())
    }

    #[test]
    fn a_recorded_x86_host() {
        let host = tree(&[
            ("proc/sys/kernel/hostname", "db7\n"),
            ("proc/sys/kernel/osrelease", "6.1.0-37-amd64\n"),
            (
                "proc/cpuinfo",
                "processor\t: 0\nmodel name\t: AMD EPYC  7702P 64-Core\ncpu MHz\t\t: 1996.2\n\n\
                 processor\t: 1\nmodel name\t: AMD EPYC  7702P 64-Core\n",
            ),
            ("proc/meminfo", "MemTotal:       16384 kB\nMemFree:           12 kB\n"),
            ("proc/self/status", "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-2,64,66-67\n"),
            ("sys/devices/system/cpu/online", "0-127\n"),
        ]);
        let expected = Host {
            name: "db7".to_owned(),
            cores_usable: 6,
            facts: HostFacts {
                kernel: "6.1.0-37-amd64".to_owned(),
                cpu: "AMD EPYC 7702P 64-Core".to_owned(),
                cores: 128,
                memory_bytes: 16 << 20,
            },
        };
        assert_eq!(host, expected);
    }

    #[test]
    fn arm_names_numbers_and_the_board() {
        let cpuinfo = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(
            tree(&[("proc/cpuinfo", cpuinfo)]).facts.cpu,
            "CPU implementer 0x41, part 0xd0c"
        );
        let host = tree(&[
            ("proc/cpuinfo", cpuinfo),
            ("sys/firmware/devicetree/base/model", "Raspberry Pi 4\0"),
        ]);
        assert_eq!(host.facts.cpu, "Raspberry Pi 4 (CPU implementer 0x41, part 0xd0c)");
        assert_eq!((host.facts.cores, host.cores_usable), (1, 1));
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let host = tree(&[("sys/devices/system/cpu/online", "7-3"), ("proc/meminfo", "MemTotal:")]);
        assert_eq!((host.name.as_str(), host.facts.cpu.as_str()), ("unknown", "unknown"));
        assert_eq!((host.cores_usable, host.facts.memory_bytes), (0, 0));
    }

    #[test]
    fn traffic_counts_once_when_interfaces_share_it() {
        for (names, expected) in [
            (&["lo", "eth0"][..], Some(1)),
            (&["eth0", "eth1"], Some(2)),
            (&["eth0", "eth1", "bond0", "bond0.7"], Some(2)),
            (&["enp3s0", "br0", "vnet0", "br-1f", "docker0"], Some(1)),
            (&["eth0", "eth0.100", "vlan7"], Some(1)),
            // An interface with a dot whose device is not seen.
            (&["eth0.100"], Some(1)),
            (&["eth0", "podman0", "lxdbr0", "lxcbr0", "lxc4f1a", "cilium_host"], Some(1)),
            (&["eth0", "tailscale0", "ztks5abcde"], Some(1)),
            (&["eth0", "nerdctl0", "incusbr0", "kube-bridge"], Some(1)),
            // Proxmox: the host's address is on the bridge; a firewall's bridges are inside.
            (&["enp1s0", "vmbr0", "tap100i0", "fwbr100i0", "fwpr100p0", "fwln100i0"], Some(1)),
            (&["eth0", "vxlan.calico", "genev_sys_6081", "gretap0", "sit0", "ip6tnl0"], Some(1)),
            (&["eth0", "enP53091s1np0", "eth1", "enP1s1"], Some(2)),
            (&["enP2p3s0f0", "enP2p3s0f1"], Some(2)),
            (&["eth0", "enP8p1s0"], Some(2)),
            (&["eth0", "enP30832p0s0"], Some(1)),
            // Veths of pods at Amazon, Azure and Google.
            (&["ens5", "eni6a1b2c3d4e5"], Some(1)),
            (&["eth0", "azv3f2a9c81d07", "gke52f6f6b1c60"], Some(1)),
            (&["lo", "bond0"], Some(1)),
            (&["bond0", "br0"], None),
            (&["lo"], Some(0)),
        ] {
            let line = |name: &&str| format!("{name}: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n");
            let text: String = names.iter().map(line).collect();
            let text = format!("Inter-|\n face |bytes\n{text}");
            assert_eq!(traffic(&text), expected.map(|n| [n, n]), "{names:?}");
        }
    }

    #[test]
    fn disk_with_several_paths_counts_once() {
        let line = |name: &str, n: u64| format!("259 0 {name} {n} 0 {n} 0 {n} 0 {n} 0 0 0 0\n");
        let names = |of_disk: u64| {
            let paths = line("nvme0c0n1", 4) + &line("nvme0c1n1", 3);
            let text = paths + &line("nvme0n1", of_disk);
            disks(&text).into_iter().map(|disk| disk.name).collect::<Vec<String>>()
        };
        assert_eq!(names(7), ["nvme0n1"]);
        assert_eq!(names(0), ["nvme0c0n1", "nvme0c1n1", "nvme0n1"]);
    }

    #[test]
    fn this_host_is_known() {
        let host = facts(Path::new(ROOT));
        assert_ne!(host.facts.kernel, "unknown");
        assert!(host.cores_usable >= 1 && host.cores_usable <= host.facts.cores);
        assert!(host.facts.memory_bytes > 1 << 20);
    }

    proptest! {
        #[test]
        fn cores_are_counted_and_nothing_panics(from in 0_u32..1000, more in 0_u32..1000, text in "[0-9,-]{0,30}", any in "\\PC{0,60}") {
            prop_assert_eq!(cores_in(&format!("{from}-{}", from + more)), Some(more + 1));
            let _ = (cores_in(&text), facts_of(|_| format!("MemTotal: {text} kB")), facts_of(|_| any.clone()));
        }
    }
}
