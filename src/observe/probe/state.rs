//! The state of a host that a result depends on beside its load: frequency governors, throttling,
//! memory nodes, swapping, the speed of its network interfaces.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{Probe, READING, command};
use crate::observe::host::cores_in;
use crate::observe::proc::{self, Files, after};

/// Files of a reading, as a shell expands them.
const FILES: [&str; 9] = [
    "/proc/vmstat",
    "/proc/net/dev",
    "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count",
    "/sys/devices/system/cpu/cpu*/thermal_throttle/package_throttle_count",
    "/sys/devices/system/node/has_memory",
    "/sys/class/net/*/speed",
];

/// A host between two readings, one before the step and one after it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HostState {
    /// Between the readings, seconds.
    pub covered_s: f64,
    /// Frequency governors and how many policies (cores, or groups of them) have each.
    pub governors: BTreeMap<String, u32>,
    /// Whether cores may run above their nominal clock.
    pub turbo: Option<bool>,
    /// How often cores were slowed down by heat.
    pub throttled: Option<u64>,
    /// NUMA nodes that have memory.
    pub numa_nodes: Option<u32>,
    /// Of these, the nodes that the server's process may use; null of other hosts.
    pub server_numa_nodes: Option<u32>,
    /// Cores that the server's process may use, those that are offline among them; null of other
    /// hosts.
    pub server_cores: Option<u32>,
    /// Pages read from and written to swap space.
    pub swapped_pages: Option<u64>,
    /// Network interfaces that say how fast they are.
    pub links: Vec<Link>,
}

/// A network interface over the step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Its speed, megabits a second in each direction.
    pub mbit_per_s: u64,
    /// Received.
    pub rx_bytes: u64,
    /// Sent.
    pub tx_bytes: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    at: Instant,
    governors: BTreeMap<String, u32>,
    turbo: Option<bool>,
    throttled: Option<u64>,
    numa_nodes: Option<u32>,
    server_numa_nodes: Option<u32>,
    server_cores: Option<u32>,
    swapped_pages: Option<u64>,
    links: BTreeMap<String, Link>,
}

impl Probe {
    /// Reads the host's state; this blocks. None where nothing could be read in time.
    pub(crate) fn state(&self) -> Option<State> {
        let at = Instant::now();
        let status = self.pid.map(|pid| format!("/proc/{pid}/status"));
        let names: Vec<String> =
            FILES.into_iter().map(str::to_owned).chain(status.clone()).collect();
        let files = if self.prefix.is_empty() {
            self.read_here(&names)
        } else {
            command::grep(&self.prefix, &names, READING).ok()?
        };
        (!files.is_empty()).then(|| {
            let status = status.and_then(|path| files.get(&path));
            State::of(&files, status.map_or("", String::as_str), at)
        })
    }

    /// The clock of the fastest core of this host, MHz; None where it does not tell.
    pub(crate) fn fastest_mhz(&self) -> Option<f64> {
        let path = "/proc/cpuinfo".to_owned();
        fastest_mhz(self.read_here(std::slice::from_ref(&path)).get(&path)?)
    }
}

impl State {
    fn of(files: &Files, server_status: &str, at: Instant) -> State {
        let one = |path: &str| files.get(path).map(|text| text.trim());
        let like = |start: &str, end: &str| -> Vec<&str> {
            let fits = |path: &str| path.starts_with(start) && path.ends_with(end);
            files.iter().filter(|(path, _)| fits(path)).map(|(_, text)| text.trim()).collect()
        };
        let mut governors = BTreeMap::new();
        for name in like("/sys/devices/system/cpu/cpufreq/policy", "/scaling_governor") {
            *governors.entry(crate::error::plain(name)).or_default() += 1;
        }
        let counts = like("/sys/devices/system/cpu/cpu", "_throttle_count");
        let counts: Vec<u64> = counts.iter().filter_map(|text| text.parse().ok()).collect();
        let turbo = match one("/sys/devices/system/cpu/intel_pstate/no_turbo") {
            Some(off) => Some(off == "0"),
            None => one("/sys/devices/system/cpu/cpufreq/boost").map(|on| on == "1"),
        };
        let allowed = |name: &str| {
            server_status.lines().find_map(|line| line.strip_prefix(name)).and_then(cores_in)
        };
        State {
            at,
            governors,
            turbo,
            throttled: (!counts.is_empty()).then(|| counts.iter().sum()),
            numa_nodes: one("/sys/devices/system/node/has_memory").and_then(cores_in),
            server_numa_nodes: allowed("Mems_allowed_list:"),
            server_cores: allowed("Cpus_allowed_list:"),
            swapped_pages: one("/proc/vmstat").and_then(swapped),
            links: links(files),
        }
    }

    /// The host between an earlier reading and this one.
    pub(crate) fn since(&self, earlier: &State) -> HostState {
        let grown = |of: fn(&State) -> Option<u64>| Some(of(self)?.saturating_sub(of(earlier)?));
        let links = self.links.iter().filter_map(|(name, last)| {
            let first = earlier.links.get(name)?;
            Some(Link {
                name: last.name.clone(),
                mbit_per_s: last.mbit_per_s,
                rx_bytes: last.rx_bytes.saturating_sub(first.rx_bytes),
                tx_bytes: last.tx_bytes.saturating_sub(first.tx_bytes),
            })
        });
        let nodes = |state: &State| state.numa_nodes.unwrap_or(u32::MAX);
        HostState {
            covered_s: self.at.saturating_duration_since(earlier.at).as_secs_f64(),
            governors: self.governors.clone(),
            turbo: self.turbo,
            throttled: grown(|state| state.throttled),
            numa_nodes: self.numa_nodes,
            // The list of a process may name nodes that are not there.
            server_numa_nodes: self.server_numa_nodes.map(|n| n.min(nodes(self))),
            server_cores: self.server_cores,
            swapped_pages: grown(|state| state.swapped_pages),
            links: links.collect(),
        }
    }
}

/// Pages in and out of swap space since the host's start, from `/proc/vmstat`.
fn swapped(vmstat: &str) -> Option<u64> {
    Some(after(vmstat, "pswpin ")?.saturating_add(after(vmstat, "pswpout ")?))
}

/// The interfaces that have a speed: virtual ones say -1, or nothing.
fn links(files: &Files) -> BTreeMap<String, Link> {
    let Some(counts) = files.get("/proc/net/dev").and_then(|text| proc::interfaces(text)) else {
        return BTreeMap::new();
    };
    let speeds = files.iter().filter_map(|(path, text)| {
        let name = path.strip_prefix("/sys/class/net/")?.strip_suffix("/speed")?;
        let mbit_per_s = text.trim().parse::<u64>().ok().filter(|speed| *speed > 0)?;
        let nic = counts.get(name)?;
        let name = crate::error::plain(name);
        let (rx_bytes, tx_bytes) = (nic.rx_bytes, nic.tx_bytes);
        Some((name.clone(), Link { name, mbit_per_s, rx_bytes, tx_bytes }))
    });
    speeds.collect()
}

/// From the text of `/proc/cpuinfo`; that of ARM does not tell.
fn fastest_mhz(cpuinfo: &str) -> Option<f64> {
    let clocks = cpuinfo
        .lines()
        .filter(|line| line.starts_with("cpu MHz"))
        .filter_map(|line| line.split_once(':')?.1.trim().parse::<f64>().ok());
    clocks.filter(|mhz| *mhz > 0.0).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::observe::probe::Whereabouts;

    fn tree(root: &Path, tick: u64) {
        let cpu = "sys/devices/system/cpu";
        let files = [
            ("proc/vmstat".to_owned(), format!("nr_free 1\npswpin {tick}\npswpout {}\n", 2 * tick)),
            (
                "proc/net/dev".to_owned(),
                format!(
                    "Inter-|\n face |bytes\n  eth0: {} 1 0 0 0 0 0 0 {} 1 0 0 0 0 0 0\n  eth1: 5 1 0 0 0 0 0 0 5 1 0 0 \
                     0 0 0 0\n    lo: 9 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0\n",
                    1000 * tick,
                    500 * tick
                ),
            ),
            ("sys/class/net/eth0/speed".to_owned(), "1000\n".to_owned()),
            ("sys/class/net/eth1/speed".to_owned(), "-1\n".to_owned()),
            (format!("{cpu}/cpufreq/policy0/scaling_governor"), "powersave\n".to_owned()),
            (format!("{cpu}/cpufreq/policy1/scaling_governor"), "performance\n".to_owned()),
            (format!("{cpu}/cpufreq/policy2/scaling_governor"), "powersave\n".to_owned()),
            (format!("{cpu}/intel_pstate/no_turbo"), "1\n".to_owned()),
            (format!("{cpu}/cpu0/thermal_throttle/core_throttle_count"), format!("{tick}\n")),
            (format!("{cpu}/cpu1/thermal_throttle/core_throttle_count"), "7\n".to_owned()),
            (format!("{cpu}/cpu1/thermal_throttle/package_throttle_count"), format!("{tick}\n")),
            ("sys/devices/system/node/has_memory".to_owned(), "0-1\n".to_owned()),
            (
                "proc/7/stat".to_owned(),
                "7 (mysqld) S 1 7 7 0 -1 0 1 0 2 0 1 1 0 0 20 0 31 0 9000 1 2 3\n".to_owned(),
            ),
            (
                "proc/7/status".to_owned(),
                "Name:\tx\nCpus_allowed_list:\t0-2\nMems_allowed_list:\t0-3\n".to_owned(),
            ),
            ("proc/uptime".to_owned(), "190.50 99.0\n".to_owned()),
            ("run/mysqld.pid".to_owned(), "7\n".to_owned()),
        ];
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            std::fs::write(path, text).expect("a file");
        }
    }

    #[test]
    fn a_recorded_host_over_a_step() {
        let root = tempfile::tempdir().expect("a directory");
        tree(root.path(), 10);
        let server = Whereabouts {
            pid_file: Some("/run/mysqld.pid".to_owned()),
            uptime_s: Some(100),
            ..Whereabouts::default()
        };
        let probe = Probe::below(root.path(), &server);
        let first = probe.state().expect("a reading");
        tree(root.path(), 13);
        let state = probe.state().expect("a reading").since(&first);
        let governors: Vec<_> = state.governors.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        assert_eq!(governors, [("performance", 1), ("powersave", 2)]);
        assert_eq!((state.turbo, state.throttled), (Some(false), Some(6)));
        assert_eq!((state.numa_nodes, state.server_numa_nodes), (Some(2), Some(2)));
        assert_eq!((state.server_cores, state.swapped_pages), (Some(3), Some(9)));
        let link = Link { name: "eth0".into(), mbit_per_s: 1000, rx_bytes: 3000, tx_bytes: 1500 };
        assert_eq!(state.links, [link]);
    }

    #[test]
    fn nothing_is_known_of_an_empty_tree() {
        let root = tempfile::tempdir().expect("a directory");
        assert_eq!(Probe::below(root.path(), &Whereabouts::default()).state(), None);
        let here = Probe::local(&Whereabouts::default()).state().expect("this host");
        assert!(here.swapped_pages.is_some(), "{here:?}");
    }

    #[test]
    fn the_fastest_core_counts() {
        let text = "processor\t: 0\ncpu MHz\t\t: 1996.249\nprocessor\t: 1\ncpu MHz\t\t: 3100.5\n";
        assert_eq!(fastest_mhz(text), Some(3100.5));
        assert_eq!(fastest_mhz("CPU part\t: 0xd0c\n"), None);
    }
}
