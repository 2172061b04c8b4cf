//! What the server's process and its host cost, from `/proc` of that host: read here where the
//! server runs on this host, else through a command such as `ssh db1`, one round a reading:
//! `ssh db1 grep -s . FILE…`.
//!
//! What cannot be read is left out: a cost that is missing must not end a measurement. Context
//! switches are in a file a thread, so a command has to expand `*`, as a remote shell does.

mod command;
mod find;
mod parse;
mod state;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) use self::parse::HostClock;
use self::parse::{Disk, Nic, Stat};
use super::host;
use crate::error::{Error, Result};
use crate::summary::{HostCost, HostFacts, Probed, ProcessCost};

pub use self::state::State;

/// The text of files by their paths.
type Files = BTreeMap<String, String>;

/// Seconds of a reading through a command, at most.
const READING: Duration = Duration::from_secs(5);
/// The first one may have to log in somewhere.
const FIRST: Duration = Duration::from_secs(20);
/// Files of a host that a reading needs.
const HOST: [&str; 3] = ["/proc/stat", "/proc/diskstats", "/proc/net/dev"];

/// How to read `/proc` of the server's host, and which process is the server there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    root: PathBuf,
    /// What goes before `grep`; empty for this host.
    prefix: Vec<String>,
    pid: Option<u32>,
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
}

/// One reading.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Its middle.
    pub at: Instant,
    process: Option<Stat>,
    host: Option<HostClock>,
    disks: Option<Disk>,
    nics: Option<Nic>,
}

impl Probe {
    /// This host. The process is looked for by the file of its id, then by who listens.
    pub fn local(server: &Whereabouts) -> Probe {
        Probe::below(Path::new(host::ROOT), server)
    }

    /// A host whose files hang below `root`.
    pub(crate) fn below(root: &Path, server: &Whereabouts) -> Probe {
        Probe {
            root: root.to_owned(),
            prefix: Vec::new(),
            pid: find::here(root, server),
            facts: None,
            took: Duration::ZERO,
        }
    }

    /// Another host, through a command. The process is looked for by the file of its id.
    ///
    /// # Errors
    /// Server, if the command does not print that host's `/proc/stat`.
    pub fn through(prefix: &[String], server: &Whereabouts) -> Result<Probe> {
        let mut files = vec!["/proc/stat".to_owned(), "/proc/uptime".to_owned()];
        files.extend(host::FILES.map(|file| format!("/{file}")));
        files.extend(server.pid_file.clone());
        let began = Instant::now();
        let read = command::grep(prefix, &files, FIRST).map_err(|why| refused(prefix, &why))?;
        if !read.contains_key("/proc/stat") {
            return Err(refused(prefix, "it printed no /proc/stat"));
        }
        let mut probe = Probe {
            root: PathBuf::from("/"),
            prefix: prefix.to_vec(),
            pid: None,
            facts: Some(facts(&read)),
            took: began.elapsed(),
        };
        let text = server.pid_file.as_ref().and_then(|file| read.get(file));
        if let Some(pid) = text.and_then(|text| text.trim().parse::<u32>().ok()) {
            let stat = format!("/proc/{pid}/stat");
            let again = command::grep(prefix, std::slice::from_ref(&stat), READING);
            let stat = again.ok().and_then(|files| parse::stat(files.get(&stat)?));
            let up = read.get("/proc/uptime").and_then(|text| parse::uptime_s(text));
            probe.pid = stat.filter(|stat| find::is_of_age(stat, up, server.uptime_s)).map(|_| pid);
        }
        Ok(probe)
    }

    /// The server's process id on its host, where it is known.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Whether this host is read.
    pub fn is_local(&self) -> bool {
        self.prefix.is_empty()
    }

    /// The other host; None of this one, which is known without.
    pub fn facts(&self) -> Option<&HostFacts> {
        self.facts.as_ref()
    }

    /// How long before an instant a reading has to begin, to be over by then.
    pub fn lead(&self) -> Duration {
        self.took * 2
    }

    /// Reads; this blocks. None where nothing could be read in time.
    pub fn read(&self) -> Option<Reading> {
        let began = Instant::now();
        let files = if self.prefix.is_empty() {
            self.read_here(&self.files())
        } else {
            command::grep(&self.prefix, &self.files(), READING).ok()?
        };
        let at = began + began.elapsed() / 2;
        let reading = Reading {
            at,
            process: self.pid.and_then(|pid| parse::process(&files, pid)),
            host: files.get("/proc/stat").and_then(|text| parse::host(text)),
            disks: files.get("/proc/diskstats").map(|text| parse::disks(text)),
            nics: files.get("/proc/net/dev").map(|text| parse::nics(text)),
        };
        (reading.process.is_some() || reading.host.is_some()).then_some(reading)
    }

    /// The files of a reading, as a shell expands them.
    fn files(&self) -> Vec<String> {
        let mut files: Vec<String> = HOST.map(str::to_owned).to_vec();
        if let Some(pid) = self.pid {
            files.extend(["stat", "status", "io"].map(|name| format!("/proc/{pid}/{name}")));
            files.push(format!("/proc/{pid}/task/*/status"));
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

    /// What happened between two readings, which are so many seconds from the window's start.
    pub fn cost(&self, first: &Reading, last: &Reading, first_s: f64, last_s: f64) -> Probed {
        Probed {
            via: if self.prefix.is_empty() { "local" } else { "command" }.to_owned(),
            first_s,
            last_s,
            process: self.pid.and_then(|pid| process_cost(pid, first, last)),
            host: host_cost(first, last),
        }
    }
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
        "it is put before `grep -s . /proc/stat …` and must do without a terminal: 'ssh -o \
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
