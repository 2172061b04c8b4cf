//! Costs of the server's process and its host, and the host's state, from `/proc` and `/sys`: read
//! directly if the server runs here, else by one command a reading: `ssh db1 grep -s -H . FILE…`.
//!
//! Unreadable files are left out: a missing cost must not end a measurement. Each thread has a file of
//! context switches: a remote shell expands `*`; without one (`docker exec db`, `sudo`) `PREFIX ls
//! /proc/PID/task` lists the threads first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use procfs_core::DiskStat;
use procfs_core::net::{TcpNetEntry, TcpState};
use serde::{Deserialize, Serialize};

use super::host::{self, Files, HostFacts, cores_in, field, seconds};
use super::seconds_from;
use crate::error::{Error, Result, clip, plain};
use crate::stop::Group;
use crate::terms::contract;

const READING: Duration = Duration::from_secs(5);
const FIRST: Duration = Duration::from_secs(20);
/// The error of `/proc/uptime`, seconds.
const CLOCK_S: f64 = 0.05;
/// The sector of `/proc/diskstats`, whatever the disk's is.
const SECTOR_BYTES: u64 = 512;
const COST: [&str; 4] = ["/proc/uptime", "/proc/stat", "/proc/diskstats", "/proc/net/dev"];
const STATE: [&str; 9] = [
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

/// The way to `/proc` of the server's host, and the server's process there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Probe {
    root: PathBuf,
    /// The command before `grep`; empty for this host.
    prefix: Vec<String>,
    pid: Option<u32>,
    /// True if the server runs on this host, however it is read.
    pub(crate) is_here: bool,
    pub(crate) pid_here: Option<u32>,
    /// True if nobody expands `*` behind the prefix.
    lists: bool,
    pub(crate) facts: Option<HostFacts>,
    took: Duration,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whereabouts {
    pub pid_file: Option<String>,
    pub port: Option<u16>,
    pub socket: Option<String>,
    /// The process that listens at this socket, where the connection goes there: any user may know it.
    pub listener: Option<u32>,
    /// `Uptime` of the server: a process of another age is not the server, as with an old file or a
    /// number of the server's container.
    pub uptime_s: Option<u64>,
    pub far_end: FarEnd,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FarEnd {
    #[default]
    Unknown,
    /// On this host, in another network namespace or behind a local proxy; with the process that has
    /// it open, where this user may know.
    Here(Option<u32>),
}

contract! {
    /// Two readings of `/proc` of the server's host, one at each edge of the window.
    pub struct Probed {
        /// `local`, or `command` for a host that was read through `--probe`.
        pub via: String,
        /// First reading, seconds from the window's start (its middle).
        pub first_s: f64,
        /// Second reading, seconds from the window's start.
        pub last_s: f64,
        /// The server's process; null where it was not found.
        pub process: Option<ProcessCost>,
        /// Its host, other processes included.
        pub host: Option<HostCost>,
    }

    /// The server's process between the readings.
    pub struct ProcessCost {
        /// Its process id on its host.
        pub pid: u32,
        /// User CPU, seconds.
        pub user_s: f64,
        /// System CPU, seconds.
        pub sys_s: f64,
        /// Voluntary context switches (waits) of the threads that live at both readings.
        pub voluntary_switches: Option<u64>,
        /// Involuntary ones (preemptions) of the same threads.
        pub involuntary_switches: Option<u64>,
        /// Bytes that it caused to be read from storage; null without the right to know.
        pub read_bytes: Option<u64>,
        /// Bytes that it caused to be written to storage.
        pub write_bytes: Option<u64>,
        /// Resident size at the second reading, bytes.
        pub rss_bytes: Option<u64>,
        /// Threads at the second reading.
        pub threads: Option<u32>,
    }

    /// The server's host between the readings. CPU seconds are summed over its cores.
    pub struct HostCost {
        /// User CPU, nice included.
        pub user_s: f64,
        /// System CPU, interrupts included.
        pub sys_s: f64,
        /// Interrupts among these; they belong to no process.
        pub irq_s: Option<f64>,
        /// Idle while waiting for storage.
        pub iowait_s: f64,
        /// Idle.
        pub idle_s: f64,
        /// Taken by the hypervisor.
        pub steal_s: f64,
        /// Context switches.
        pub context_switches: Option<u64>,
        /// Reads completed by the physical disks: no partitions, no device-mapper, no RAID on top.
        pub disk_reads: Option<u64>,
        /// Writes completed by them.
        pub disk_writes: Option<u64>,
        /// Seconds that the reads took, added up.
        pub disk_read_s: Option<f64>,
        /// Bytes read from them.
        pub disk_read_bytes: Option<u64>,
        /// Bytes written to them.
        pub disk_write_bytes: Option<u64>,
        /// Bytes received by network interfaces, without loopback and bridges.
        pub net_rx_bytes: Option<u64>,
        /// Bytes sent by them.
        pub net_tx_bytes: Option<u64>,
    }

    /// A host between two readings, one before the step and one after it.
    #[serde(default)]
    pub struct HostState {
        /// Between the readings, seconds.
        pub covered_s: f64,
        /// Frequency governors and how many policies (cores, or groups of them) have each.
        pub governors: BTreeMap<String, u32>,
        /// True if cores may run above their nominal clock.
        pub turbo: Option<bool>,
        /// Slow-downs of cores by heat.
        pub throttled: Option<u64>,
        /// NUMA nodes that have memory.
        pub numa_nodes: Option<u32>,
        /// Nodes among these that the server's process may use; null of other hosts.
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
}

/// The files of a host, read between two instants.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HostReading {
    began: Instant,
    ended: Instant,
    files: Files,
}

impl Probe {
    /// Finds the process on the host below a root, as far as the server's whereabouts tell it.
    pub(crate) fn below(root: &Path, server: &Whereabouts) -> Probe {
        let pid = find_process(root, server);
        Probe { root: root.to_owned(), pid, is_here: true, pid_here: pid, ..Probe::default() }
    }

    /// Reads another host through a command; finds the process by its pid file.
    pub(crate) fn through(prefix: &[String], server: &Whereabouts) -> Result<Probe> {
        let mut files = vec!["/proc/stat".to_owned(), "/proc/uptime".to_owned()];
        files.extend(host::FILES.map(|file| format!("/{file}")));
        let pid_file = server.pid_file.as_ref().filter(|file| is_one_word(file));
        files.extend(pid_file.cloned());
        let began = Instant::now();
        let read = grep(prefix, &files, FIRST).map_err(|why| command_error(prefix, &why))?;
        if !read.contains_key("/proc/stat") {
            return Err(command_error(prefix, "it printed no /proc/stat"));
        }
        let text = |path: &str| read.get(path).map_or("", String::as_str);
        let facts = host::facts_of(|path| text(&format!("/{path}")).to_owned()).facts;
        let (facts, took) = (Some(facts), began.elapsed());
        let (root, prefix) = (host::ROOT.into(), prefix.to_vec());
        let mut probe = Probe { root, prefix, facts, took, ..Probe::default() };
        if let Some(pid) = pid_file.and_then(|file| text(file).trim().parse::<u32>().ok()) {
            let files = [format!("/proc/{pid}/stat"), of_threads(pid, "*")];
            let again = grep(&probe.prefix, &files, READING).unwrap_or_default();
            let is_server = again.get(&files[0]).is_some_and(|stat| {
                is_of_age(stat, text("/proc/uptime"), server.uptime_s, probe.took)
            });
            probe.pid = is_server.then_some(pid);
            probe.lists = again.len() < files.len();
        }
        Ok(probe)
    }

    pub(crate) fn is_local(&self) -> bool {
        self.prefix.is_empty()
    }

    /// Returns the same probe for a server on this host: its process is also looked for here.
    #[must_use]
    pub(crate) fn beside(self, server: &Whereabouts) -> Probe {
        Probe { is_here: true, pid_here: find_process(Path::new(host::ROOT), server), ..self }
    }

    /// A reading must begin so long before its instant.
    pub(crate) fn lead(&self) -> Duration {
        self.took * 2
    }

    /// Reads the files of the cost; blocks. None where nothing was read in time.
    pub(crate) fn read(&self) -> Option<HostReading> {
        let mut names: Vec<String> = COST.map(str::to_owned).to_vec();
        if let Some(pid) = self.pid {
            names.extend(["stat", "status", "io"].map(|name| format!("/proc/{pid}/{name}")));
            let threads = if self.lists {
                // Without the list the switches are unknown.
                list(&self.prefix, &format!("/proc/{pid}/task"), READING)
            } else {
                vec!["*".to_owned()]
            };
            names.extend(threads.iter().map(|thread| of_threads(pid, thread)));
        }
        self.reading(&names)
    }

    pub(crate) fn state(&self) -> Option<HostReading> {
        let mut names: Vec<String> = STATE.map(str::to_owned).to_vec();
        names.extend(self.pid.map(|pid| format!("/proc/{pid}/status")));
        self.reading(&names)
    }

    fn reading(&self, names: &[String]) -> Option<HostReading> {
        let began = Instant::now();
        let files = if self.is_local() {
            host::files(&self.root, names)
        } else {
            grep(&self.prefix, names, READING).ok()?
        };
        (!files.is_empty()).then(|| HostReading { began, ended: Instant::now(), files })
    }

    /// Reads the fastest core's clock, MHz; None where it is unknown.
    pub(crate) fn fastest_mhz(&self) -> Option<f64> {
        fastest_mhz(&std::fs::read_to_string(self.root.join("proc/cpuinfo")).ok()?)
    }

    /// Seconds count from `origin`; None where neither the process nor its host can be measured.
    pub(crate) fn cost(&self, readings: [&HostReading; 2], origin: Instant) -> Option<Probed> {
        let [first_s, last_s] = reading_instants(readings, origin);
        let files = readings.map(|reading| &reading.files);
        let via = if self.is_local() { "local" } else { "command" }.to_owned();
        let (process, host) = (self.pid.and_then(|pid| process_cost(pid, files)), host_cost(files));
        let told = process.is_some() || host.is_some();
        told.then_some(Probed { via, first_s, last_s, process, host })
    }
}

pub(super) type Pair<'a> = [&'a Files; 2];

impl HostReading {
    pub(crate) fn state_since(&self, earlier: &HostReading) -> HostState {
        let text = |path: &str| self.files.get(path).map(|text| text.trim());
        let mut governors = BTreeMap::new();
        for (_, name) in like(&self.files, "/sys/devices/system/cpu/cpufreq/policy*_governor") {
            *governors.entry(plain(name)).or_default() += 1;
        }
        let turbo = text("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|off| off == "0");
        let boost = || text("/sys/devices/system/cpu/cpufreq/boost").map(|on| on == "1");
        let server = like(&self.files, "/proc/*/status").next().map_or("", |(_, text)| text);
        let allowed = |name| host::fields(server, name).find_map(cores_in);
        let numa_nodes = text("/sys/devices/system/node/has_memory").and_then(cores_in);
        let pair = [&earlier.files, &self.files];
        let throttled = pair.map(|files| {
            let counts = like(files, "/sys/devices/system/cpu/cpu*_throttle_count");
            let counts: Vec<u64> = counts.filter_map(|(_, n)| n.parse().ok()).collect();
            (!counts.is_empty()).then(|| host::sum(counts))
        });
        HostState {
            covered_s: self.began.saturating_duration_since(earlier.began).as_secs_f64(),
            governors,
            turbo: turbo.or_else(boost),
            throttled: since(throttled),
            numa_nodes,
            // A process's list may name absent nodes.
            server_numa_nodes: allowed("Mems_allowed_list")
                .map(|nodes| nodes.min(numa_nodes.unwrap_or(u32::MAX))),
            server_cores: allowed("Cpus_allowed_list"),
            swapped_pages: growth(pair, "/proc/vmstat", |text| {
                Some(field(text, "pswpin ")?.saturating_add(field(text, "pswpout ")?))
            }),
            links: links(pair).unwrap_or_default(),
        }
    }
}

fn like<'a>(files: &'a Files, path: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let (start, end) = path.split_once('*').expect("our own patterns have one");
    let (start, end) = (start.to_owned(), end.to_owned());
    files.iter().filter_map(move |(path, text)| {
        Some((path.strip_prefix(&start)?.strip_suffix(&end)?, text.trim()))
    })
}

fn since([first, last]: [Option<u64>; 2]) -> Option<u64> {
    Some(last?.saturating_sub(first?))
}

fn growth(files: Pair, path: &str, of: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    since(files.map(|files| of(files.get(path)?)))
}

/// Finds the interfaces with a speed: virtual ones say -1, or nothing.
fn links(files: Pair) -> Option<Vec<Link>> {
    let [first, now] = files.map(|files| host::interfaces(files.get("/proc/net/dev")?));
    let (first, now) = first.zip(now)?;
    let links = like(files[1], "/sys/class/net/*/speed").filter_map(|(name, speed)| {
        let mbit_per_s = speed.parse::<u64>().ok().filter(|speed| *speed > 0)?;
        let (then, now) = (first.get(name)?, now.get(name)?);
        Some(Link {
            name: plain(name),
            mbit_per_s,
            rx_bytes: now.recv_bytes.saturating_sub(then.recv_bytes),
            tx_bytes: now.sent_bytes.saturating_sub(then.sent_bytes),
        })
    });
    Some(links.collect())
}

/// Between begin and end of each, at the distance of the host's own clock: a slow log-in costs no precision.
fn reading_instants(readings: [&HostReading; 2], origin: Instant) -> [f64; 2] {
    let s = |at: Instant| seconds_from(origin, at);
    let bounds = readings.map(|reading| [s(reading.began), s(reading.ended)]);
    let middles = bounds.map(|[began, ended]| f64::midpoint(began, ended));
    let up = readings.map(|reading| host::uptime_s(reading.files.get("/proc/uptime")?));
    let [Some(one), Some(other)] = up else { return middles };
    let starts = [(one, bounds[0]), (other, bounds[1])].map(|(up, b)| b.map(|at| at - up));
    let (lowest, highest) = (starts[0][0].max(starts[1][0]), starts[0][1].min(starts[1][1]));
    // Clocks drift, and this one ticks in hundredths: no such instant may exist.
    if lowest > highest + CLOCK_S {
        return middles;
    }
    let start = f64::midpoint(lowest, highest);
    [start + one, start + other]
}

pub(super) fn process_cost(pid: u32, files: Pair) -> Option<ProcessCost> {
    let file = |name: &str| format!("/proc/{pid}/{name}");
    let stat = |place| files.map(|files| host::stat(files.get(&file("stat"))?, place));
    // Another process has the number: the server was restarted.
    if !matches!(stat(22), [Some(then), Some(now)] if then == now) {
        return None;
    }
    let cpu_s = |place| Some(seconds([since(stat(place))?]));
    let moved = |key: &str| growth(files, &file("io"), |text| field(text, key));
    let switches = |key: &str| {
        let threads = file("task/*/status");
        let [before, after] = files.map(|files| {
            let counts = like(files, &threads);
            let counts = counts.map(|(thread, text)| (thread, field(text, key)));
            counts.collect::<BTreeMap<_, _>>()
        });
        let both = after.iter().filter_map(|(thread, now)| since([*before.get(thread)?, *now]));
        both.reduce(u64::saturating_add)
    };
    let resident = files[1].get(&file("status")).and_then(|status| field(status, "VmRSS:"));
    Some(ProcessCost {
        pid,
        user_s: cpu_s(14)?,
        sys_s: cpu_s(15)?,
        voluntary_switches: switches("voluntary_ctxt_switches:"),
        involuntary_switches: switches("nonvoluntary_ctxt_switches:"),
        read_bytes: moved("read_bytes:"),
        write_bytes: moved("write_bytes:"),
        rss_bytes: resident.map(|kib| kib.saturating_mul(1024)),
        threads: stat(20)[1].and_then(|threads| u32::try_from(threads).ok()),
    })
}

pub(super) fn host_cost(files: Pair) -> Option<HostCost> {
    let [first, last] = files.map(|files| host::ticks(files.get("/proc/stat")?));
    let (first, last) = first.zip(last)?;
    let [user, nice, sys, idle, iowait, irq, softirq, steal] =
        std::array::from_fn(|at| last[at].saturating_sub(first[at]));
    let disk = |of: fn(&DiskStat) -> u64| {
        growth(files, "/proc/diskstats", |text| Some(host::sum(host::disks(text).iter().map(of))))
    };
    let bytes = |sectors: u64| sectors.saturating_mul(SECTOR_BYTES);
    let net = |way: usize| growth(files, "/proc/net/dev", |text| Some(host::traffic(text)?[way]));
    Some(HostCost {
        user_s: seconds([user, nice]),
        sys_s: seconds([sys, irq, softirq]),
        irq_s: Some(seconds([irq, softirq])),
        iowait_s: seconds([iowait]),
        idle_s: seconds([idle]),
        steal_s: seconds([steal]),
        context_switches: growth(files, "/proc/stat", |text| field(text, "ctxt ")),
        disk_reads: disk(|d| d.reads),
        disk_writes: disk(|d| d.writes),
        disk_read_s: read_ms(files).map(|ms| ms as f64 / 1e3),
        disk_read_bytes: disk(|d| d.sectors_read).map(bytes),
        disk_write_bytes: disk(|d| d.sectors_written).map(bytes),
        net_rx_bytes: net(0),
        net_tx_bytes: net(1),
    })
}

/// Adds up the milliseconds that the reads of each disk took. A counter has 32 bits: that of a busy disk begins again
/// at 0 within a day.
fn read_ms(files: Pair) -> Option<u64> {
    let [first, last] = files.map(|files| Some(host::disks(files.get("/proc/diskstats")?)));
    let (first, last) = first.zip(last)?;
    let took = |now: &DiskStat| {
        let then = first.iter().find(|disk| disk.name == now.name)?;
        Some(u64::from((now.time_reading as u32).wrapping_sub(then.time_reading as u32)))
    };
    Some(host::sum(last.iter().filter_map(took)))
}

/// Finds the fastest core in `/proc/cpuinfo`; ARM's has no clocks.
fn fastest_mhz(cpuinfo: &str) -> Option<f64> {
    // On s390x the key goes on: `cpu MHz dynamic`.
    let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let clocks = lines.filter(|(key, _)| key.starts_with("cpu MHz"));
    let clocks = clocks.filter_map(|(_, mhz)| mhz.trim().parse::<f64>().ok());
    clocks.filter(|mhz| *mhz > 0.0).reduce(f64::max)
}

fn of_threads(pid: u32, thread: &str) -> String {
    format!("/proc/{pid}/task/{thread}/status")
}

fn command_error(prefix: &[String], why: &str) -> Error {
    // Only the command's name: its arguments may be private.
    let name = prefix.first().map_or("", String::as_str);
    Error::server(format!("--probe: '{name} …' does not read the server's host: {why}")).hint(
        "it is put before `grep -s -H . /proc/stat …` and must do without a terminal, such as \
         'ssh -o BatchMode=yes db1'",
    )
}

/// Precision of the server's age, which counts whole seconds from somewhere in its start.
const AGE_SLACK_S: f64 = 5.0;
const PID_FILE_MAX: u64 = 64;

/// Finds the process at the connection's far end, else the one that listens at its socket, else by its pid file, else by
/// who listens at its port or path. In another network namespace only the first is its own; a pid file may be another's.
fn find_process(root: &Path, server: &Whereabouts) -> Option<u32> {
    let is_server = |pid: &u32| is_as_old(root, *pid, server.uptime_s);
    if let FarEnd::Here(pid) = server.far_end {
        return pid.filter(is_server);
    }
    let by_file = || filed(root, server.pid_file.as_ref()?).filter(is_server);
    let found = server.listener.filter(is_server).or_else(by_file);
    found.or_else(|| listener(root, server).filter(is_server))
}

fn is_as_old(root: &Path, pid: u32, uptime_s: Option<u64>) -> bool {
    let stat = read(root, &format!("proc/{pid}/stat"));
    is_of_age(&stat, &read(root, "proc/uptime"), uptime_s, Duration::ZERO)
}

/// True where the server's age is unknown. `took` is the time since the server was asked.
fn is_of_age(stat: &str, uptime: &str, age: Option<u64>, took: Duration) -> bool {
    let Some(started) = host::stat(stat, 22) else { return false };
    let Some((host, server)) = host::uptime_s(uptime).zip(age) else { return true };
    let off = host - host::seconds([started]) - server as f64;
    off.abs() <= AGE_SLACK_S + took.as_secs_f64()
}

/// Looks at the connections of each process as old as the server, in its network namespace.
pub(crate) fn far_end(root: &Path, uptime_s: u64, is_it: impl Fn(&TcpNetEntry) -> bool) -> FarEnd {
    let mut found = FarEnd::Unknown;
    // The kernel's own threads, many of one age, have no command line.
    let programs = processes(root).filter(|p| !read(root, &format!("proc/{p}/cmdline")).is_empty());
    for pid in programs.filter(|pid| is_as_old(root, *pid, Some(uptime_s))) {
        let tables = ["tcp", "tcp6"].map(|name| read(root, &format!("proc/{pid}/net/{name}")));
        let mut sockets = tables.iter().flat_map(|table| host::connections(table));
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

/// Returns whether a process has one of these sockets open: known as the same user, or as root.
fn holds(root: &Path, pid: u32, sockets: &BTreeSet<String>) -> bool {
    let open = std::fs::read_dir(root.join(format!("proc/{pid}/fd")));
    let mut targets = open.into_iter().flatten().flatten().map(|fd| std::fs::read_link(fd.path()));
    targets.any(|target| target.is_ok_and(|t| t.to_str().is_some_and(|t| sockets.contains(t))))
}

/// The file, which the server names, may be anything: a pipe would be waited for, a device has no end.
fn filed(root: &Path, file: &str) -> Option<u32> {
    let path = host::below(root, file);
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
            let sockets = host::tcp(&read(root, table), &TcpState::Listen).into_iter();
            let there = sockets.filter(|one| one.local_address.port() == port);
            inodes.extend(there.map(|one| one.inode));
        }
    }
    if let Some(path) = &server.socket {
        inodes.extend(host::unix_listeners(&read(root, "proc/net/unix"), path));
    }
    let sockets: BTreeSet<_> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let mut looked_at = processes(root).filter(|_| !sockets.is_empty());
    looked_at.find(|pid| holds(root, *pid, &sockets))
}

/// Most bytes of a reading: 4,000 threads of 60 lines.
const OUTPUT_MAX: u64 = 64 << 20;
const SAID_MAX: usize = 200;
/// Longest wait for a failed command's text and end: a process that it left may keep the pipe open.
const WORDS: Duration = Duration::from_secs(1);

/// `.` and not `''`: ssh would lose an empty argument. Errors hold no arguments of the command.
fn grep(prefix: &[String], files: &[String], limit: Duration) -> Result<Files, String> {
    let words = ["grep", "-s", "-H", "."].map(str::to_owned);
    let (out, said) = run(prefix, words.iter().chain(files), limit)?;
    let mut read = Files::new();
    // Skips a greeting of the log-in: grep's lines begin with an absolute path.
    let lines = out.lines().filter(|line| line.starts_with('/'));
    for (path, line) in lines.filter_map(|line| line.split_once(':')) {
        let text = read.entry(path.to_owned()).or_default();
        text.push_str(line);
        text.push('\n');
    }
    // Missing files fail grep, too: its status says nothing.
    if !read.is_empty() {
        return Ok(read);
    }
    let said = said.recv_timeout(WORDS).unwrap_or_default();
    let said = clip(said.trim(), SAID_MAX);
    Err(if said.is_empty() { "it printed nothing".to_owned() } else { said })
}

fn list(prefix: &[String], dir: &str, limit: Duration) -> Vec<String> {
    let printed = run(prefix, &["ls".to_owned(), dir.to_owned()], limit);
    let names = printed.map_or_else(|_| String::new(), |(out, _)| out);
    let numbers = names.split_ascii_whitespace().filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
    numbers.map(str::to_owned).collect()
}

/// A server's path must not become a command on the other host.
fn is_one_word(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+=@:,%".contains(&b) || !b.is_ascii();
    text.starts_with('/') && text.bytes().all(plain)
}

fn run<'a>(
    prefix: &[String],
    words: impl IntoIterator<Item = &'a String>,
    limit: Duration,
) -> Result<(String, mpsc::Receiver<String>), String> {
    let (program, arguments) = prefix.split_first().ok_or("it is empty")?;
    let mut command = Command::new(program);
    command.args(arguments).args(words).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut group = Group::spawn(&mut command).map_err(|e| format!("it cannot be started: {e}"))?;
    let (out, err) = (drain(group.stdout.take()), drain(group.stderr.take()));
    let late = |_| format!("no answer within {} s", limit.as_secs());
    let out = out.recv_timeout(limit).map_err(late)?;
    // The command ends with its output, or is killed when dropped.
    let end = Instant::now() + WORDS;
    while !group.has_ended() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok((out, err))
}

/// Reads a pipe in a thread of its own: a child that fills one while the other is read stops.
fn drain(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let pipe = pipe.expect("it was asked for");
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Text before an error is good, too.
        let _ = pipe.take(OUTPUT_MAX).read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A recorded `/proc`: process 7 is the server, started 90 s after its host.
    fn tree(tick: u64) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: String| host::write(root.path(), path, &text);
        let stat = format!(
            "7 (my)sql d) S 1 7 7 0 -1 4194560 1 0 2 0 {} {} 0 0 20 0 31 0 9000 1 2 3\n",
            1000 + 200 * tick,
            500 + 100 * tick
        );
        write("proc/7/stat", stat);
        write("proc/7/status", "Name:\tx\nVmRSS:\t   2048 kB\nThreads:\t31\n".to_owned());
        write("proc/7/io", format!("rchar: 9\nread_bytes: {}\nwrite_bytes: 5\n", 4096 * tick));
        for thread in [7, 8] {
            let text = format!(
                "Name:\tx\nvoluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{tick}\n",
                10 * tick
            );
            write(&format!("proc/7/task/{thread}/status"), text);
        }
        if tick > 0 {
            // A thread that was not there before.
            let text = "voluntary_ctxt_switches:\t999\nnonvoluntary_ctxt_switches:\t999\n";
            write("proc/7/task/9/status", text.to_owned());
        }
        let cpu = format!(
            "cpu  {} 1 20 4000 5 6 7 8 0 0\ncpu0 1 1 1 1\nctxt {}\nbtime 1\nprocesses 9\n",
            100 + tick,
            77 * tick
        );
        write("proc/stat", cpu);
        let disk =
            |name: &str| format!("  8 0 {name} {tick} 0 {} 0 {tick} 0 2 0 0 0 0\n", 8 * tick);
        let names = "sda sda1 nvme0n1 nvme0n1p2 xvda1 dm-0 md127 loop3 bcache0 zd16";
        write("proc/diskstats", names.split(' ').map(disk).collect());
        let net = "Inter-| Receive\n face |bytes\n    lo: 9 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0\n  eth0:100 1 0 0 0 0 0 0 50 1 0 0 0 \
                   0 0 0\nveth1: 100 1 0 0 0 0 0 0 50 1 0 0 0 0 0 0\n";
        write("proc/net/dev", net.to_owned());
        write("proc/uptime", "1090.50 99.0\n".to_owned());
        write("run/mysqld.pid", "7\n".to_owned());
        root
    }

    fn local(server: &Whereabouts) -> Probe {
        Probe::below(Path::new(host::ROOT), server)
    }

    fn server() -> Whereabouts {
        Whereabouts {
            pid_file: Some("/run/mysqld.pid".to_owned()),
            uptime_s: Some(1000),
            ..Whereabouts::default()
        }
    }

    #[test]
    fn two_readings_of_a_recorded_host() {
        let (before, after) = (tree(0), tree(3));
        let probe = Probe::below(before.path(), &server());
        assert_eq!(probe.pid, Some(7));
        let first = probe.read().expect("a reading");
        let later = Probe { root: after.path().to_owned(), ..probe.clone() };
        let last = later.read().expect("a reading");
        let probed = probe.cost([&first, &last], Instant::now()).expect("a cost");
        assert_eq!(probed.via, "local");
        assert!(probed.first_s <= probed.last_s && probed.last_s <= 0.0);
        let process = probed.process.expect("found");
        let expected = ProcessCost {
            pid: 7,
            user_s: 6.0,
            sys_s: 3.0,
            voluntary_switches: Some(60),
            involuntary_switches: Some(6),
            read_bytes: Some(3 * 4096),
            write_bytes: Some(0),
            rss_bytes: Some(2 << 20),
            threads: Some(31),
        };
        assert_eq!(process, expected);
        let host = probed.host.expect("read");
        assert!((host.user_s - 0.03).abs() < 1e-9 && host.sys_s == 0.0, "{host:?}");
        assert_eq!(host.context_switches, Some(231));
        // sda, nvme0n1, and xvda1 that has no disk.
        assert_eq!((host.disk_reads, host.disk_writes), (Some(9), Some(9)));
        assert_eq!((host.disk_read_bytes, host.disk_write_bytes), (Some(9 * 8 * 512), Some(0)));
        assert_eq!((host.net_rx_bytes, host.net_tx_bytes), (Some(0), Some(0)));
    }

    #[test]
    fn times_of_reads_add_up_when_one_of_them_goes_over() {
        let files = |ms: [u64; 2]| {
            let line = |(name, ms): (&str, u64)| format!("8 0 {name} 1 0 8 {ms} 0 0 0 0 0 0 0\n");
            let text: String = ["sda", "sdb"].into_iter().zip(ms).map(line).collect();
            Files::from([("/proc/diskstats".to_owned(), text)])
        };
        let (before, after) = (files([u64::from(u32::MAX) - 1, 5]), files([3, 9]));
        assert_eq!(read_ms([&before, &after]), Some(5 + 4));
        assert_eq!(read_ms([&before, &Files::new()]), None);
    }

    #[test]
    fn another_process_of_that_number_is_not_the_server() {
        let root = tree(0);
        let old = Whereabouts { uptime_s: Some(20), ..server() };
        assert_eq!(Probe::below(root.path(), &old).pid, None, "its file is of before");
        let unknown = Whereabouts { uptime_s: None, ..server() };
        assert_eq!(Probe::below(root.path(), &unknown).pid, Some(7));
        assert_eq!(Probe::below(root.path(), &Whereabouts::default()).pid, None);
        // A restart in between: the number is the same, the process is not.
        let probe = Probe::below(root.path(), &server());
        let first = probe.read().expect("a reading");
        let stat = fs::read_to_string(root.path().join("proc/7/stat")).expect("there");
        for start in [" 9500 ", " 8500 "] {
            fs::write(root.path().join("proc/7/stat"), stat.replace(" 9000 ", start))
                .expect("written");
            let last = probe.read().expect("a reading");
            let probed = probe.cost([&first, &last], Instant::now()).expect("a cost");
            assert!(probed.process.is_none() && probed.host.is_some());
        }
    }

    #[test]
    fn server_of_a_socket_is_its_listener_when_another_one_has_the_pid_file() {
        let root = tree(0);
        let stat = fs::read_to_string(root.path().join("proc/7/stat")).expect("there");
        host::write(root.path(), "proc/8/stat", &stat);
        host::write(root.path(), "proc/9/stat", &stat.replace(" 9000 ", " 500 "));
        // Whoever opened the socket for the server, as systemd does, is older.
        for (listener, found) in [(8, 8), (9, 7), (10, 7)] {
            let server = Whereabouts { listener: Some(listener), ..server() };
            assert_eq!(Probe::below(root.path(), &server).pid, Some(found));
        }
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let root = tree(0);
        let probe = Probe::below(root.path(), &server());
        let whole = probe.read().expect("a reading");
        for path in ["proc/7/io", "proc/7/status", "proc/diskstats", "proc/net/dev"] {
            fs::remove_file(root.path().join(path)).expect("there");
        }
        fs::remove_dir_all(root.path().join("proc/7/task")).expect("there");
        let reading = probe.read().expect("a reading");
        for first in [&whole, &reading] {
            let probed = probe.cost([first, &reading], Instant::now()).expect("a cost");
            let process = probed.process.expect("its stat is there");
            assert_eq!(
                (process.read_bytes, process.voluntary_switches, process.rss_bytes),
                (None, None, None)
            );
            let host = probed.host.expect("its stat is there");
            assert_eq!((host.disk_reads, host.net_rx_bytes), (None, None));
        }
        fs::remove_file(root.path().join("proc/7/stat")).expect("there");
        fs::remove_file(root.path().join("proc/stat")).expect("there");
        let clock = probe.read().expect("its uptime is there");
        assert_eq!(
            probe.cost([&clock, &clock], Instant::now()),
            None,
            "there is nothing to measure"
        );
        let nothing = tempfile::tempdir().expect("a directory");
        assert_eq!(Probe::below(nothing.path(), &server()).read(), None);
    }

    #[test]
    fn a_listener_is_found_by_its_socket() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x.sock");
        let _unix = std::os::unix::net::UnixListener::bind(&path).expect("bound");
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
        let own = Some(std::process::id());
        let socket = path.to_str().map(str::to_owned);
        let by_path = Whereabouts { socket, ..Whereabouts::default() };
        assert_eq!(local(&by_path).pid, own);
        let port = tcp.local_addr().ok().map(|address| address.port());
        let by_port = Whereabouts { port, ..Whereabouts::default() };
        assert_eq!(local(&by_port).pid, own);
        let nobody = Whereabouts { socket: Some("/no/such.sock".to_owned()), ..by_path };
        assert_eq!(local(&nobody).pid, None);
        // Looked at through a command, it is still a process of this host.
        let through = || Probe::through(&["env".to_owned()], &by_port).expect("this host");
        assert_eq!((through().pid, through().pid_here), (None, None), "it may be another host");
        assert_eq!(through().beside(&by_port).pid_here, own);
    }

    /// A server says where its file is, and it may say anything.
    #[test]
    fn a_pid_file_that_is_none_is_neither_waited_for_nor_run() {
        let dir = tempfile::tempdir().expect("a directory");
        let mode = nix::sys::stat::Mode::S_IRWXU;
        nix::unistd::mkfifo(&dir.path().join("pipe"), mode).expect("made");
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("endless")).expect("made");
        std::os::unix::fs::symlink("/proc/self/stat", dir.path().join("kernels")).expect("made");
        std::fs::write(dir.path().join("long"), "1".repeat(1 << 16)).expect("written");
        for name in ["pipe", "endless", "kernels", "long"] {
            let (root, pid_file) = (dir.path().to_owned(), Some(format!("/{name}")));
            let (sender, found) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let server = Whereabouts { pid_file, ..Whereabouts::default() };
                let _ = sender.send(Probe::below(&root, &server).pid);
            });
            assert_eq!(found.recv_timeout(Duration::from_secs(20)), Ok(None), "{name}");
        }
        // As ssh does it: a shell reads the words.
        let shell = ["sh", "-c", "eval \"$*\"", "sh"].map(str::to_owned);
        let made = dir.path().join("made");
        for path in ["/x; touch {}", "/x\ntouch {}", "/x|touch {}", "/$(touch {})", "/x`touch {}`"]
        {
            let pid_file = Some(path.replace("{}", made.to_str().expect("plain")));
            let server = Whereabouts { pid_file, ..Whereabouts::default() };
            let probe = Probe::through(&shell, &server).expect("this host");
            assert!(probe.pid.is_none() && !made.exists(), "{path} was run");
        }
        assert!(is_one_word("/var/lib/mysql-8.0/größe@1.pid"));
    }

    #[test]
    fn a_command_reads_the_same() {
        let probe = local(&Whereabouts::default());
        let own = Probe { pid: Some(std::process::id()), ..probe };
        let shell = ["sh", "-c", "eval \"$*\"", "sh"].map(str::to_owned);
        let through = Probe { prefix: shell.to_vec(), ..own.clone() };
        let (first, last) = (own.read().expect("here"), through.read().expect("there"));
        let probed = through.cost([&first, &last], Instant::now()).expect("a cost");
        assert_eq!(probed.via, "command");
        let process = probed.process.expect("this process");
        assert!(process.voluntary_switches.is_some() && process.rss_bytes > Some(1 << 20));
        assert!(probed.host.expect("read").idle_s >= 0.0);
        // Nobody expands `*` behind this one.
        let listing = Probe { prefix: vec!["env".to_owned()], lists: true, ..own };
        let listed = listing.read().expect("here");
        assert!(like(&listed.files, "/proc/*/status").count() > 1, "its threads");

        let error =
            Probe::through(&["false".to_owned()], &server()).expect_err("it prints nothing");
        assert_eq!(error.kind().exit_code(), 3);
        assert!(error.render().contains("hint:"), "{}", error.render());
        let found =
            Probe::through(&["env".to_owned()], &Whereabouts::default()).expect("this host");
        assert_eq!(found.pid, None);
        let here = host::facts(Path::new("/"));
        let facts = found.facts.as_ref().expect("of a host");
        assert_eq!(facts, &here.facts);
    }

    #[test]
    fn the_hosts_own_clock_says_when_it_was_read() {
        let origin = Instant::now();
        let reading = |began: f64, ended: f64, up_s: Option<f64>| HostReading {
            began: origin + Duration::from_secs_f64(began),
            ended: origin + Duration::from_secs_f64(ended),
            files: up_s
                .map(|up| ("/proc/uptime".to_owned(), format!("{up} 9.0\n")))
                .into_iter()
                .collect(),
        };
        let near = |found: [f64; 2], expected: [f64; 2]| {
            for (found, expected) in found.into_iter().zip(expected) {
                assert!((found - expected).abs() < 0.02, "{found} instead of {expected}");
            }
        };
        // A log-in of two seconds, then a quick one: the second one knows, and the first follows.
        let (slow, quick) = (reading(1.0, 3.0, Some(502.8)), reading(12.0, 12.02, Some(512.01)));
        near(reading_instants([&slow, &quick], origin), [2.8, 12.01]);
        // A clock that was set, or none.
        near(reading_instants([&slow, &reading(12.0, 12.02, Some(9.0))], origin), [2.0, 12.01]);
        near(reading_instants([&reading(1.0, 3.0, None), &quick], origin), [2.0, 12.01]);
    }

    proptest::proptest! {
        #[test]
        fn no_text_of_proc_panics(
            name in "\\PC{0,20}", numbers in proptest::collection::vec(proptest::prelude::any::<u64>(), 22..30),
            text in "\\PC{0,80}",
        ) {
            let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
            let words = words.join(" ");
            let stat = format!("1 ({name}) S {words}");
            // Field 14 is the eleventh after the state.
            let read = (host::stat(&stat, 14), host::stat(&stat, 15));
            proptest::prop_assert_eq!(read, (Some(numbers[10]), Some(numbers[11])));
            let hosts = [
                format!("cpu  {words}\nctxt {words}"),
                format!("8 0 sda {words}\n8 0 sdb {words}\n8 1 {name} {words}"),
                format!("eth0: {words}\neth1: {words}\n{name}: {words}"),
                text,
            ];
            for text in &hosts {
                let _ = (host::stat(text, 22), host::uptime_s(text), field(text, "ctxt "));
                let _ = (host::ticks(text), host::traffic(text), host::disks(text));
                let all = COST.iter().chain(&STATE).map(|path| (path.replace('*', "1"), text.clone()));
                let own = ["stat", "io", "status"].map(|name| (format!("/proc/1/{name}"), text.clone()));
                let now = Instant::now();
                let reading = HostReading { began: now, ended: now, files: all.chain(own).collect() };
                let _ = (reading.state_since(&reading), process_cost(1, [&reading.files; 2]));
                let _ = (host_cost([&reading.files; 2]), reading_instants([&reading, &reading], now));
            }
        }
    }

    fn host_tree(root: &Path, tick: u64) {
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
            host::write(root, &path, &text);
        }
    }

    #[test]
    fn a_recorded_host_over_a_step() {
        let root = tempfile::tempdir().expect("a directory");
        host_tree(root.path(), 10);
        let server = Whereabouts {
            pid_file: Some("/run/mysqld.pid".to_owned()),
            uptime_s: Some(100),
            ..Whereabouts::default()
        };
        let probe = Probe::below(root.path(), &server);
        let first = probe.state().expect("a reading");
        host_tree(root.path(), 13);
        let state = probe.state().expect("a reading").state_since(&first);
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
        let here = local(&Whereabouts::default()).state().expect("this host");
        assert_eq!(here.state_since(&here).swapped_pages, Some(0));
    }

    #[test]
    fn the_fastest_core_counts() {
        let text = "processor\t: 0\ncpu MHz\t\t: 1996.249\nprocessor\t: 1\ncpu MHz\t\t: 3100.5\n";
        assert_eq!(fastest_mhz(text), Some(3100.5));
        assert_eq!(fastest_mhz("cpu MHz dynamic : 5200\ncpu MHz static : 5100\n"), Some(5200.0));
        assert_eq!(fastest_mhz("CPU part\t: 0xd0c\n"), None);
    }
}

#[cfg(test)]
mod command_tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_prefix_stands_before_grep() {
        let files = words("/proc/self/stat /proc/uptime /proc/no_such_file");
        let minute = Duration::from_mins(1);
        let read = grep(&words("env LC_ALL=C"), &files, minute).expect("two files");
        assert_eq!(read.len(), 2);
        let uptime = read.get("/proc/uptime").expect("it is there");
        assert!(uptime.ends_with('\n') && uptime.split_whitespace().count() == 2, "{uptime}");
    }

    #[test]
    fn what_fails_says_why_and_ends_in_time() {
        let files = words("/proc/uptime");
        let minute = Duration::from_mins(1);
        let why = |prefix: &str| grep(&words(prefix), &files, minute).expect_err(prefix);
        assert!(why("/no/such/program").contains("No such file"));
        assert!(why("true").contains("printed nothing"));
        assert!(why("ls /no/such/directory").contains("/no/such"), "ls's own words");
        assert!(why("").contains("empty"));
        let began = Instant::now();
        let slow = ["sh", "-c", "exec sleep 300"].map(str::to_owned);
        let second = Duration::from_secs(1);
        assert!(grep(&slow, &files, second).expect_err("too slow").contains("1 s"));
        assert!(began.elapsed() < minute);
    }
}
