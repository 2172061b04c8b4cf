//! What the server's process and its host cost, from `/proc` of that host: read here where the
//! server runs on this host, else through a command such as `ssh db1`, one round a reading:
//! `ssh db1 grep -s -H . FILE…`.
//!
//! What cannot be read is left out: a cost that is missing must not end a measurement. Context
//! switches are in a file a thread: a remote shell expands `*`, and where there is none (`docker
//! exec db`, `sudo`), the threads are listed first, by `PREFIX ls /proc/PID/task`.
//!
//! A reading through a command is worth what is known of its instant. The log-in may take longer
//! than the reading itself, so the other host's own clock, `/proc/uptime`, says when it was read:
//! see `instants`.

mod command;
mod find;
mod parse;
mod state;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) use self::parse::HostClock;
use self::parse::{Disk, Nic, Stat};
use super::{host, seconds_from};
use crate::error::{Error, Result};
use crate::summary::{HostCost, HostFacts, Probed, ProcessCost};

pub(crate) use self::state::State;

/// The text of files by their paths.
type Files = BTreeMap<String, String>;

/// Seconds of a reading through a command, at most.
const READING: Duration = Duration::from_secs(5);
/// What `/proc/uptime` may be off by, seconds.
const CLOCK_S: f64 = 0.05;
/// The first one may have to log in somewhere.
const FIRST: Duration = Duration::from_secs(20);
/// Files of a host that a reading needs.
const HOST: [&str; 4] = ["/proc/uptime", "/proc/stat", "/proc/diskstats", "/proc/net/dev"];

/// How to read `/proc` of the server's host, and which process is the server there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    root: PathBuf,
    /// What goes before `grep`; empty for this host.
    prefix: Vec<String>,
    pid: Option<u32>,
    /// Whether the server runs on this host, however it is read.
    is_here: bool,
    /// Its process, then.
    pid_here: Option<u32>,
    /// Whether nobody expands `*` behind the prefix.
    lists: bool,
    /// The other host.
    facts: Option<HostFacts>,
    /// How long a reading takes.
    took: Duration,
}

/// What the server says that tells its process from others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// `@@pid_file`, absolute.
    pub pid_file: Option<String>,
    /// The TCP port that it listens on.
    pub port: Option<u16>,
    /// The Unix socket that it listens on.
    pub socket: Option<String>,
    /// `Uptime` of its status: a process of another age is not the server. That catches a file
    /// of before, and a number that means something in the server's container only.
    pub uptime_s: Option<u64>,
    /// The other end of the connection that it was asked over.
    pub far_end: FarEnd,
}

/// Where the server's end of a connection is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FarEnd {
    /// Nothing tells.
    #[default]
    Unknown,
    /// On this host, as another network namespace's (a container's) or behind a local proxy; the
    /// process that has it open, where this user may know.
    Here(Option<u32>),
}

/// The server's end of a connection, on this host: see `find::far_end`.
pub(crate) fn far_end(root: &Path, uptime_s: u64, is_it: impl Fn(&str) -> bool) -> FarEnd {
    find::far_end(root, uptime_s, is_it)
}

/// One reading.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    /// Before it.
    began: Instant,
    /// After it.
    ended: Instant,
    /// The host's own clock meanwhile, seconds since its start.
    up_s: Option<f64>,
    process: Option<Stat>,
    host: Option<HostClock>,
    disks: Option<Disk>,
    nics: Option<Nic>,
}

impl Probe {
    /// This host. The process is looked for by the file of its id, then by who listens.
    pub(crate) fn local(server: &Whereabouts) -> Probe {
        Probe::below(Path::new(host::ROOT), server)
    }

    /// A host whose files hang below `root`.
    pub(crate) fn below(root: &Path, server: &Whereabouts) -> Probe {
        let pid = find::here(root, server);
        Probe {
            root: root.to_owned(),
            prefix: Vec::new(),
            pid,
            is_here: true,
            pid_here: pid,
            lists: false,
            facts: None,
            took: Duration::ZERO,
        }
    }

    /// Another host, through a command. The process is looked for by the file of its id.
    ///
    /// # Errors
    /// Server, if the command does not print that host's `/proc/stat`.
    pub(crate) fn through(prefix: &[String], server: &Whereabouts) -> Result<Probe> {
        let mut files = vec!["/proc/stat".to_owned(), "/proc/uptime".to_owned()];
        files.extend(host::FILES.map(|file| format!("/{file}")));
        let pid_file = server.pid_file.as_ref().filter(|file| command::is_one_word(file));
        files.extend(pid_file.cloned());
        let began = Instant::now();
        let read = command::grep(prefix, &files, FIRST).map_err(|why| refused(prefix, &why))?;
        if !read.contains_key("/proc/stat") {
            return Err(refused(prefix, "it printed no /proc/stat"));
        }
        let mut probe = Probe {
            root: PathBuf::from("/"),
            prefix: prefix.to_vec(),
            pid: None,
            is_here: false,
            pid_here: None,
            lists: false,
            facts: Some(facts(&read)),
            took: began.elapsed(),
        };
        let text = pid_file.and_then(|file| read.get(file));
        if let Some(pid) = text.and_then(|text| text.trim().parse::<u32>().ok()) {
            let files = [format!("/proc/{pid}/stat"), of_threads(pid, "*")];
            let again = command::grep(prefix, &files, READING).unwrap_or_default();
            let stat = files.first().and_then(|stat| parse::stat(again.get(stat)?));
            let up = read.get("/proc/uptime").and_then(|text| parse::uptime_s(text));
            let fits = |stat: &Stat| find::is_of_age(stat, up, server.uptime_s, probe.took);
            probe.pid = stat.filter(fits).map(|_| pid);
            probe.lists = again.len() < files.len();
        }
        Ok(probe)
    }

    /// Whether this host is read.
    pub(crate) fn is_local(&self) -> bool {
        self.prefix.is_empty()
    }

    /// Whether the server runs on this host.
    pub(crate) fn is_here(&self) -> bool {
        self.is_here
    }

    /// Its process id on this host, where it runs here.
    pub(crate) fn pid_here(&self) -> Option<u32> {
        self.pid_here
    }

    /// The same probe of a server that runs on this host: its process is looked for here, too.
    #[must_use]
    pub(crate) fn beside(self, server: &Whereabouts) -> Probe {
        Probe { is_here: true, pid_here: find::here(Path::new(host::ROOT), server), ..self }
    }

    /// The other host; None of this one, which is known without.
    pub(crate) fn facts(&self) -> Option<&HostFacts> {
        self.facts.as_ref()
    }

    /// How long before an instant a reading has to begin, to be over by then.
    pub(crate) fn lead(&self) -> Duration {
        self.took * 2
    }

    /// Reads; this blocks. None where nothing could be read in time.
    pub(crate) fn read(&self) -> Option<Reading> {
        let names = self.files();
        let began = Instant::now();
        let files = if self.prefix.is_empty() {
            self.read_here(&names)
        } else {
            command::grep(&self.prefix, &names, READING).ok()?
        };
        let up_s = files.get("/proc/uptime").and_then(|text| parse::uptime_s(text));
        let reading = Reading {
            began,
            ended: Instant::now(),
            up_s,
            process: self.pid.and_then(|pid| parse::process(&files, pid)),
            host: files.get("/proc/stat").and_then(|text| parse::host(text)),
            disks: files.get("/proc/diskstats").map(|text| parse::disks(text)),
            nics: files.get("/proc/net/dev").map(|text| parse::nics(text)),
        };
        (reading.process.is_some() || reading.host.is_some()).then_some(reading)
    }

    /// The files of a reading, as a shell expands them.
    fn files(&self) -> Vec<String> {
        let threads = |pid: u32| {
            if !self.lists {
                return vec![of_threads(pid, "*")];
            }
            let names = command::list(&self.prefix, &format!("/proc/{pid}/task"), READING);
            names.unwrap_or_default().iter().map(|name| of_threads(pid, name)).collect()
        };
        let mut files: Vec<String> = HOST.map(str::to_owned).to_vec();
        if let Some(pid) = self.pid {
            files.extend(["stat", "status", "io"].map(|name| format!("/proc/{pid}/{name}")));
            files.extend(threads(pid));
        }
        files
    }

    /// Files of this host; `*` stands for any part of one name.
    fn read_here(&self, names: &[String]) -> Files {
        let mut files = Files::new();
        let mut read = |path: String| {
            if let Ok(text) = std::fs::read_to_string(self.root.join(path.trim_start_matches('/')))
            {
                files.insert(path, text);
            }
        };
        for path in names {
            let Some((before, after)) = path.split_once('*') else {
                read(path.clone());
                continue;
            };
            let (dir, start) = before.rsplit_once('/').unwrap_or(("", before));
            let entries = std::fs::read_dir(self.root.join(dir.trim_start_matches('/')));
            for entry in entries.into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with(start) {
                    read(format!("{dir}/{name}{after}"));
                }
            }
        }
        files
    }

    /// What happened between two readings; their seconds count from `origin`.
    pub(crate) fn cost(&self, first: &Reading, last: &Reading, origin: Instant) -> Probed {
        let [first_s, last_s] = instants(first, last, origin);
        Probed {
            via: if self.prefix.is_empty() { "local" } else { "command" }.to_owned(),
            first_s,
            last_s,
            process: self.pid.and_then(|pid| process_cost(pid, first, last)),
            host: host_cost(first, last),
        }
    }
}

/// Where a thread counts its context switches.
fn of_threads(pid: u32, thread: &str) -> String {
    format!("/proc/{pid}/task/{thread}/status")
}

/// When two readings were taken, seconds from `origin`: each somewhere between its beginning and
/// its end, and as far from each other as the host's own clock says. So a slow log-in makes them
/// no less certain than the quicker of the two.
fn instants(first: &Reading, last: &Reading, origin: Instant) -> [f64; 2] {
    let s = |at: Instant| seconds_from(origin, at);
    let bounds = [first, last].map(|reading| [s(reading.began), s(reading.ended)]);
    let middles = bounds.map(|[began, ended]| f64::midpoint(began, ended));
    let (Some(one), Some(other)) = (first.up_s, last.up_s) else { return middles };
    // Where the host's start can lie, by both.
    let starts = [(one, bounds[0]), (other, bounds[1])].map(|(up, b)| b.map(|at| at - up));
    let (lowest, highest) = (starts[0][0].max(starts[1][0]), starts[0][1].min(starts[1][1]));
    // Clocks drift, and this one ticks in hundredths: then there is no such place.
    if lowest > highest + CLOCK_S {
        return middles;
    }
    let start = f64::midpoint(lowest, highest);
    [start + one, start + other]
}

fn facts(files: &Files) -> HostFacts {
    let host = host::facts_of(|path| files.get(&format!("/{path}")).cloned().unwrap_or_default());
    HostFacts {
        kernel: host.kernel,
        cpu: host.cpu,
        cores: host.cores_online,
        memory_bytes: host.memory_bytes,
    }
}

fn refused(prefix: &[String], why: &str) -> Error {
    // Of the command its name only: arguments may hold what is nobody's business.
    let name = prefix.first().map_or("", String::as_str);
    Error::server(format!("--probe: '{name} …' does not read the server's host: {why}")).hint(
        "it is put before `grep -s -H . /proc/stat …` and must do without a terminal: 'ssh -o \
         BatchMode=yes db1', for one",
    )
}

fn process_cost(pid: u32, first: &Reading, last: &Reading) -> Option<ProcessCost> {
    let (one, other) = (first.process.as_ref()?, last.process.as_ref()?);
    // Another process has got the number: the server was restarted.
    if one.started_ticks != other.started_ticks {
        return None;
    }
    let grown = |of: fn(&Stat) -> Option<u64>| Some(of(other)?.saturating_sub(of(one)?));
    let switches = |of: fn(&(u64, u64)) -> u64| {
        let threads = other.switches.iter().filter_map(|(thread, after)| {
            Some(of(after).saturating_sub(of(one.switches.get(thread)?)))
        });
        (!one.switches.is_empty()).then(|| threads.sum())
    };
    Some(ProcessCost {
        pid,
        user_s: parse::seconds(other.user_ticks.saturating_sub(one.user_ticks)),
        sys_s: parse::seconds(other.sys_ticks.saturating_sub(one.sys_ticks)),
        voluntary_switches: switches(|s| s.0),
        involuntary_switches: switches(|s| s.1),
        read_bytes: grown(|s| s.read_bytes),
        write_bytes: grown(|s| s.write_bytes),
        rss_bytes: other.rss_bytes,
        threads: other.threads,
    })
}

fn host_cost(first: &Reading, last: &Reading) -> Option<HostCost> {
    let (one, other) = (first.host.as_ref()?, last.host.as_ref()?);
    let s = |of: fn(&HostClock) -> u64| parse::seconds(of(other).saturating_sub(of(one)));
    let disk = |of: fn(&Disk) -> u64| {
        Some(of(last.disks.as_ref()?).saturating_sub(of(first.disks.as_ref()?)))
    };
    let nic = |of: fn(&Nic) -> u64| {
        Some(of(last.nics.as_ref()?).saturating_sub(of(first.nics.as_ref()?)))
    };
    Some(HostCost {
        user_s: s(|h| h.user),
        sys_s: s(|h| h.sys),
        irq_s: Some(s(|h| h.irq)),
        iowait_s: s(|h| h.iowait),
        idle_s: s(|h| h.idle),
        steal_s: s(|h| h.steal),
        context_switches: one.switches.zip(other.switches).map(|(a, b)| b.saturating_sub(a)),
        disk_reads: disk(|d| d.reads),
        disk_writes: disk(|d| d.writes),
        disk_read_s: disk(|d| d.read_ms).map(|ms| ms as f64 / 1e3),
        disk_read_bytes: disk(|d| d.read_bytes),
        disk_write_bytes: disk(|d| d.write_bytes),
        net_rx_bytes: nic(|n| n.rx_bytes),
        net_tx_bytes: nic(|n| n.tx_bytes),
    })
}

/// Bytes received and sent by this host's network interfaces so far; None where `/proc` is not
/// mounted.
pub(crate) fn own_traffic() -> Option<(u64, u64)> {
    let nics = parse::nics(&std::fs::read_to_string("/proc/net/dev").ok()?);
    Some((nics.rx_bytes, nics.tx_bytes))
}

/// The CPU time of all cores of the host below `root`.
pub(crate) fn host_clock(root: &Path) -> Option<HostClock> {
    parse::host(&std::fs::read_to_string(root.join("proc/stat")).ok()?)
}

/// The CPU time of a process so far, seconds, and what tells it from another one of its number.
pub(crate) fn process_cpu(root: &Path, pid: u32) -> Option<(f64, u64)> {
    let stat = parse::stat(&std::fs::read_to_string(root.join(format!("proc/{pid}/stat"))).ok()?)?;
    Some((parse::seconds(stat.user_ticks + stat.sys_ticks), stat.started_ticks))
}

#[cfg(test)]
mod tests;
