//! Who uses this host's cores: this process, a server beside it, others, the hypervisor; and
//! whether a control group holds this process back. What cannot be read is left out.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::probe::{HostClock, host_clock, process_cpu};
use super::process::{Cost, process_usage};

/// One reading.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cores {
    host: Option<HostClock>,
    own: Cost,
    /// Whether the server runs here.
    beside: bool,
    /// Its process: CPU seconds, and its start.
    server: Option<(f64, u64)>,
    throttled: Option<Duration>,
}

/// What happened between two readings; shares are of 1, of all cores.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Used {
    pub(crate) busy: Option<f64>,
    pub(crate) others: Option<f64>,
    pub(crate) steal: Option<f64>,
    pub(crate) server_s: Option<f64>,
    pub(crate) throttled_s: Option<f64>,
}

impl Cores {
    /// Reads below `root`; `beside` says that the server runs on this host, `server` is its process.
    pub(crate) fn read(root: &Path, beside: bool, server: Option<u32>) -> Cores {
        Cores {
            host: host_clock(root),
            own: process_usage(),
            beside,
            server: server.and_then(|pid| process_cpu(root, pid)),
            throttled: throttled(root),
        }
    }

    /// Since an earlier reading.
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

/// How long the CPU bandwidth of this process's control groups has held its threads back so far,
/// summed over cores: `throttled_usec` of version 2, `throttled_time` (nanoseconds) of version 1
/// (the kernel's cgroup-v2.rst and sched-bwc.rst). Of nested groups the one that did most.
fn throttled(root: &Path) -> Option<Duration> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let stats = groups.lines().filter_map(directories).flatten();
    let read = |dir: PathBuf| std::fs::read_to_string(root.join(dir).join("cpu.stat")).ok();
    stats.filter_map(|dir| held_back(&read(dir)?)).max()
}

/// Where the group of a line of `/proc/self/cgroup`, and those around it, may be.
fn directories(line: &str) -> Option<Vec<PathBuf>> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let mounts: Vec<String> = match (number, controllers) {
        ("0", "") => vec!["sys/fs/cgroup".to_owned(), "sys/fs/cgroup/unified".to_owned()],
        (_, names) if names.split(',').any(|name| name == "cpu") => {
            vec![format!("sys/fs/cgroup/{names}"), "sys/fs/cgroup/cpu".to_owned()]
        }
        _ => return None,
    };
    let path = Path::new(path.trim_start_matches('/'));
    let up = || path.ancestors();
    Some(mounts.iter().flat_map(|mount| up().map(|dir| Path::new(mount).join(dir))).collect())
}

fn held_back(stat: &str) -> Option<Duration> {
    let number = |key: &str| -> Option<u64> {
        stat.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
    };
    let new = number("throttled_usec ").map(Duration::from_micros);
    new.or_else(|| number("throttled_time ").map(Duration::from_nanos))
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
            ("proc/stat", "cpu  0 0 0 0 0 0 0 0\n"),
            ("proc/7/stat", "7 (mysqld) S 1 1 1 0 -1 0 0 0 0 0 100 100 0 0 20 0 3 0 55 0 0\n"),
        ]);
        let last = tree(&[
            ("proc/stat", "cpu  500 100 400 700 100 50 50 100\n"),
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
        let cores = |ticks| ("proc/stat", format!("cpu  {ticks} 0 0 {ticks} 0 0 0 0\n"));
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

    #[test]
    fn the_group_that_held_back_most_counts_in_both_versions() {
        let groups = "3:cpu,cpuacct:/docker/a\n1:name=systemd:/x\n0::/user.slice/run\n";
        let root = tree(&[
            ("proc/self/cgroup", groups),
            ("sys/fs/cgroup/user.slice/run/cpu.stat", "usage_usec 5\nthrottled_usec 1500000\n"),
            ("sys/fs/cgroup/user.slice/cpu.stat", "nr_throttled 3\nthrottled_usec 2500000\n"),
        ]);
        assert_eq!(throttled(root.path()), Some(Duration::from_millis(2500)));
        let root = tree(&[
            ("proc/self/cgroup", groups),
            ("sys/fs/cgroup/cpu/docker/a/cpu.stat", "nr_throttled 9\nthrottled_time 70000000\n"),
        ]);
        assert_eq!(throttled(root.path()), Some(Duration::from_millis(70)));
        assert_eq!(throttled(Path::new("/nonexistent")), None);
        let root = tree(&[("proc/self/cgroup", "nonsense\n9:memory:/a\n")]);
        assert_eq!(throttled(root.path()), None);
    }
}
