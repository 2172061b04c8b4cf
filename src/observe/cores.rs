//! Who uses this host's cores: this process, a server beside it, others, the hypervisor; and
//! whether a control group holds this process back. What cannot be read is left out.

use std::path::Path;
use std::time::Duration;

use super::cgroup::throttled;
use super::proc::{self, HostClock};
use super::process::{Cost, process_usage};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cores {
    host: Option<HostClock>,
    own: Cost,
    /// The server runs here.
    beside: bool,
    /// Its process: CPU seconds, and its start.
    server: Option<(f64, u64)>,
    throttled: Option<Duration>,
}

/// What happened between two readings; shares are of 1, of all cores.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Used {
    pub busy: Option<f64>,
    pub others: Option<f64>,
    pub steal: Option<f64>,
    pub server_s: Option<f64>,
    pub throttled_s: Option<f64>,
}

impl Cores {
    /// Reads below `root`; `beside` says that the server runs on this host, `server` is its process.
    pub(crate) fn read(root: &Path, beside: bool, server: Option<u32>) -> Cores {
        Cores {
            host: read(root, "proc/stat").and_then(|text| proc::host(&text)),
            own: process_usage(),
            beside,
            server: server.and_then(|pid| process_cpu(root, pid)),
            throttled: throttled(root),
        }
    }

    pub(crate) fn since(&self, earlier: &Cores) -> Used {
        let server = self.server.zip(earlier.server);
        // Another process has got the number.
        let server = server.filter(|(now, then)| now.1 == then.1);
        let server_s = server.map(|(now, then)| (now.0 - then.0).max(0.0));
        let throttled = self.throttled.zip(earlier.throttled);
        let throttled_s = throttled.map(|(now, then)| now.saturating_sub(then).as_secs_f64());
        let known = Used { server_s, throttled_s, ..Used::default() };
        let Some((now, then)) = self.host.as_ref().zip(earlier.host.as_ref()) else { return known };
        let all = now.all_since(then);
        if all <= 0.0 {
            return known;
        }
        let part = |seconds: f64| Some((seconds / all).clamp(0.0, 1.0));
        let idle = now.since(then, |c| c.idle + c.iowait + c.steal);
        let own = self.own.cpu_since(&earlier.own).as_secs_f64();
        let programs = now.since(then, |c| c.user + c.sys - c.irq);
        Used {
            busy: part(all - idle),
            // What a server used whose process is gone, or another one now, or may not be looked at,
            // is not known.
            others: if self.beside && server_s.is_none() {
                None
            } else {
                part(programs - own - server_s.unwrap_or(0.0))
            },
            steal: part(now.since(then, |c| c.steal)),
            ..known
        }
    }
}

/// Reads the CPU time of a process so far, seconds, and what tells it from another one of its number.
fn process_cpu(root: &Path, pid: u32) -> Option<(f64, u64)> {
    let stat = proc::stat(&read(root, &format!("proc/{pid}/stat"))?)?;
    Some((proc::seconds(stat.user_ticks + stat.sys_ticks), stat.started_ticks))
}

fn read(root: &Path, path: &str) -> Option<String> {
    std::fs::read_to_string(root.join(path)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            std::fs::write(path, text).expect("a file");
        }
        root
    }

    #[test]
    fn what_is_nobody_else_s_is_others() {
        // Two cores for ten seconds: user nice system idle iowait irq softirq steal.
        let first = tree(&[
            ("proc/stat", "cpu  0 0 0 0 0 0 0 0\nctxt 1\nbtime 1\nprocesses 1\n"),
            ("proc/7/stat", "7 (mysqld) S 1 1 1 0 -1 0 0 0 0 0 100 100 0 0 20 0 3 0 55 0 0\n"),
        ]);
        let last = tree(&[
            ("proc/stat", "cpu  500 100 400 700 100 50 50 100\nctxt 1\nbtime 1\nprocesses 1\n"),
            ("proc/7/stat", "7 (mysqld) S 1 1 1 0 -1 0 0 0 0 0 400 200 0 0 20 0 3 0 55 0 0\n"),
        ]);
        let own = |s| Cost { user: Duration::from_secs(s), sys: Duration::ZERO };
        let read = |root: &tempfile::TempDir, s, beside, pid| Cores {
            own: own(s),
            ..Cores::read(root.path(), beside, pid)
        };
        let used = read(&last, 3, true, Some(7)).since(&read(&first, 1, true, Some(7)));
        assert_eq!(used.server_s, Some(4.0));
        assert_eq!(used.steal, Some(0.05));
        assert_eq!(used.busy, Some(0.55), "neither idle nor stolen");
        // 10 s of programs, 2 of them the client's, 4 the server's.
        assert!((used.others.expect("known") - 0.2).abs() < 1e-9);
        let alone = read(&last, 3, false, None).since(&read(&first, 1, false, None));
        assert!((alone.others.expect("known") - 0.4).abs() < 1e-9);
        let hidden = read(&last, 3, true, None).since(&read(&first, 1, true, None));
        assert_eq!(hidden.others, None, "the server's would be in it");
        let nothing = read(&last, 3, false, None).since(&read(&last, 3, false, None));
        assert_eq!((nothing.busy, nothing.throttled_s), (None, None));
    }

    #[test]
    fn a_server_that_was_restarted_is_not_subtracted() {
        let stat = |ticks: u32, start: u32| {
            format!("7 (mysqld) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 3 0 {start} 0 0\n")
        };
        let cores = |ticks| {
            ("proc/stat", format!("cpu  {ticks} 0 0 {ticks}\nctxt 1\nbtime 1\nprocesses 1\n"))
        };
        let (before, (_, now)) = (cores(0), cores(1000));
        let first = tree(&[("proc/7/stat", &stat(900, 55)), (before.0, &before.1)]);
        let read = |root: &tempfile::TempDir| Cores::read(root.path(), true, Some(7));
        let gone = tree(&[("proc/stat", &now)]);
        let another = tree(&[("proc/7/stat", &stat(1000, 66)), ("proc/stat", &now)]);
        for last in [gone, another] {
            let used = read(&last).since(&read(&first));
            assert_eq!((used.server_s, used.busy), (None, Some(0.5)));
            assert_eq!(used.others, None, "the server's would be in it");
        }
    }
}
