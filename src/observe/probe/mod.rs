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
mod cost;
mod find;
mod state;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::host::{self, HostFacts};
use super::proc::{self, DiskUse, Files, HostClock, ProcessStat, Traffic};
use crate::error::{Error, Result};

pub use self::cost::{HostCost, Probed, ProcessCost};
pub(crate) use self::find::far_end;
pub(crate) use self::state::State;
pub use self::state::{HostState, Link};

/// Seconds of a reading through a command, at most.
const READING: Duration = Duration::from_secs(5);
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
    /// The server runs on this host, however it is read.
    is_here: bool,
    pid_here: Option<u32>,
    /// Nobody expands `*` behind the prefix.
    lists: bool,
    facts: Option<HostFacts>,
    took: Duration,
}

/// What the server says that tells its process from others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// `@@pid_file`, absolute.
    pub pid_file: Option<String>,
    pub port: Option<u16>,
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

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HostReading {
    began: Instant,
    ended: Instant,
    /// The host's own clock meanwhile, seconds since its start.
    up_s: Option<f64>,
    process: Option<ProcessStat>,
    host: Option<HostClock>,
    disks: Option<DiskUse>,
    traffic: Option<Traffic>,
}

impl Probe {
    /// This host. The process is looked for by the file of its id, then by who listens.
    pub(crate) fn local(server: &Whereabouts) -> Probe {
        Probe::below(Path::new(host::ROOT), server)
    }

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
        let text = |path: &str| read.get(&format!("/{path}")).cloned().unwrap_or_default();
        let facts = host::facts_of(text);
        let mut probe = Probe {
            root: PathBuf::from("/"),
            prefix: prefix.to_vec(),
            pid: None,
            is_here: false,
            pid_here: None,
            lists: false,
            facts: Some(facts.into_facts()),
            took: began.elapsed(),
        };
        let text = pid_file.and_then(|file| read.get(file));
        if let Some(pid) = text.and_then(|text| text.trim().parse::<u32>().ok()) {
            let files = [format!("/proc/{pid}/stat"), of_threads(pid, "*")];
            let again = command::grep(prefix, &files, READING).unwrap_or_default();
            let stat = again.get(&files[0]).and_then(|text| proc::stat(text));
            let up = read.get("/proc/uptime").and_then(|text| proc::uptime_s(text));
            let fits = |stat: &ProcessStat| find::is_of_age(stat, up, server.uptime_s, probe.took);
            probe.pid = stat.filter(fits).map(|_| pid);
            probe.lists = again.len() < files.len();
        }
        Ok(probe)
    }

    pub(crate) fn is_local(&self) -> bool {
        self.prefix.is_empty()
    }

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
    pub(crate) fn read(&self) -> Option<HostReading> {
        let names = self.files();
        let began = Instant::now();
        let files = if self.prefix.is_empty() {
            self.read_here(&names)
        } else {
            command::grep(&self.prefix, &names, READING).ok()?
        };
        let up_s = files.get("/proc/uptime").and_then(|text| proc::uptime_s(text));
        let reading = HostReading {
            began,
            ended: Instant::now(),
            up_s,
            process: self.pid.and_then(|pid| proc::process(&files, pid)),
            host: files.get("/proc/stat").and_then(|text| proc::host(text)),
            disks: files.get("/proc/diskstats").map(|text| proc::disks(text)),
            traffic: files.get("/proc/net/dev").and_then(|text| proc::traffic(text)),
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
            // Without them their switches are unknown.
            names.unwrap_or_default().iter().map(|name| of_threads(pid, name)).collect()
        };
        let mut files: Vec<String> = HOST.map(str::to_owned).to_vec();
        if let Some(pid) = self.pid {
            files.extend(["stat", "status", "io"].map(|name| format!("/proc/{pid}/{name}")));
            files.extend(threads(pid));
        }
        files
    }

    /// Tells what happened between two readings; their seconds count from `origin`.
    pub(crate) fn cost(&self, first: &HostReading, last: &HostReading, origin: Instant) -> Probed {
        cost::between(self, first, last, origin)
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
}

/// Where a thread counts its context switches.
fn of_threads(pid: u32, thread: &str) -> String {
    format!("/proc/{pid}/task/{thread}/status")
}

fn refused(prefix: &[String], why: &str) -> Error {
    // Of the command its name only: arguments may hold what is nobody's business.
    let name = prefix.first().map_or("", String::as_str);
    Error::server(format!("--probe: '{name} …' does not read the server's host: {why}")).hint(
        "it is put before `grep -s -H . /proc/stat …` and must do without a terminal: 'ssh -o \
         BatchMode=yes db1', for one",
    )
}

/// Bytes received and sent by this host's network interfaces so far; None where `/proc` is not
/// mounted.
pub(crate) fn own_traffic() -> Option<(u64, u64)> {
    let all = proc::traffic(&std::fs::read_to_string("/proc/net/dev").ok()?)?;
    Some((all.rx_bytes, all.tx_bytes))
}

#[cfg(test)]
mod tests;
