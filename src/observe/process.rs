//! Cost and limits of this process and its threads, and who else uses the cores of its host.
//!
//! A control group's limits hold for everything below it (cgroups(7)). A container sees no groups above its
//! own, nor, with version 1 without a namespace, the path to it: then the mounted root is the own group.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use nix::sys::resource::{RLIM_INFINITY, Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::{TimeVal, TimeValLike};
use procfs_core::{FromRead, ProcessCGroups};
use serde::{Deserialize, Serialize};

use super::host::{self, Files, field};
use super::probe::{HostCost, Probe, host_cost, process_cost};
use crate::error::{Error, Result};

const DESCRIPTORS_MIN: u64 = 32;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub user: Duration,
    pub sys: Duration,
}

impl Cost {
    #[must_use]
    pub(crate) fn since(&self, earlier: &Cost) -> Cost {
        Cost {
            user: self.user.saturating_sub(earlier.user),
            sys: self.sys.saturating_sub(earlier.sys),
        }
    }

    pub(crate) fn cpu(&self) -> Duration {
        self.user + self.sys
    }
}

pub(crate) fn process_usage() -> Cost {
    usage(UsageWho::RUSAGE_SELF)
}

/// Reads the cost of the processes that this one waited for, with their own.
pub(crate) fn children_usage() -> Cost {
    usage(UsageWho::RUSAGE_CHILDREN)
}

fn usage(who: UsageWho) -> Cost {
    let usage = getrusage(who).expect("a process that there is");
    let time = |t: TimeVal| Duration::from_micros(t.num_microseconds().max(0) as u64);
    Cost { user: time(usage.user_time()), sys: time(usage.system_time()) }
}

/// Bytes; 0 without `/proc`. `getrusage` would keep that of the program before an exec.
pub(crate) fn peak_resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status");
    let peak = status.ok().and_then(|status| field(&status, "VmHWM:"));
    peak.map_or(0, |kib| kib.saturating_mul(1024))
}

pub(crate) fn raise_descriptor_limit() -> Result<u64> {
    let failed = |e: nix::Error| Error::failed(format!("the limit of open files: {e}"));
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(failed)?;
    }
    Ok(hard)
}

/// Fewer than runtimes, signals and one connection take: some of these panic.
pub(crate) fn require_descriptors() -> Result<()> {
    let limit = raise_descriptor_limit()?;
    if limit < DESCRIPTORS_MIN {
        let text = format!("this process may open {limit} files, and needs {DESCRIPTORS_MIN}");
        return Err(Error::usage(text).hint("raise the hard limit: ulimit -Hn 1024"));
    }
    Ok(())
}

pub(crate) fn descriptors_open() -> u64 {
    fs::read_dir("/proc/self/fd").map_or(0, |dir| dir.count() as u64)
}

/// Reads the limit of the address space (`ulimit -v`), bytes; None without one.
pub(crate) fn address_space_max() -> Option<u64> {
    let (limit, _) = getrlimit(Resource::RLIMIT_AS).ok()?;
    (limit != RLIM_INFINITY).then_some(limit)
}

/// A limit of memory: SIGKILL follows above it.
pub(crate) struct Limit {
    pub bytes: u64,
    pub file: PathBuf,
}

/// Finds the smallest memory limit of this process's groups; None without one.
pub(crate) fn memory_max(root: &Path) -> Option<Limit> {
    let texts = group_files(root, "memory", "memory.max", "memory.limit_in_bytes").into_iter();
    // "max" is no limit, nor is a number near 2^63 in version 1.
    let limit = |(file, text): (PathBuf, String)| {
        Some(Limit { bytes: text.trim().parse().ok()?, file: Path::new("/").join(file) })
    };
    texts.filter_map(limit).min_by_key(|limit| limit.bytes)
}

/// Returns the time lost to CPU quotas, summed over cores (cgroup-v2.rst, sched-bwc.rst), by the file of each group.
fn throttled(root: &Path) -> BTreeMap<PathBuf, Duration> {
    let held_back = |(file, stat): (PathBuf, String)| {
        let new = field(&stat, "throttled_usec ").map(Duration::from_micros);
        let time = new.or_else(|| field(&stat, "throttled_time ").map(Duration::from_nanos));
        Some((file, time?))
    };
    group_files(root, "cpu", "cpu.stat", "cpu.stat").into_iter().filter_map(held_back).collect()
}

/// Reads a file of a controller's own group and of those around it, wherever mounted.
fn group_files(root: &Path, controller: &str, name: &str, name_v1: &str) -> Vec<(PathBuf, String)> {
    let groups = ProcessCGroups::from_file(root.join("proc/self/cgroup"));
    let mut found = Vec::new();
    for group in groups.into_iter().flatten() {
        let (mounts, name) = if group.controllers.is_empty() {
            (["sys/fs/cgroup".to_owned(), "sys/fs/cgroup/unified".to_owned()], name)
        } else if group.controllers.iter().any(|one| one == controller) {
            let all = group.controllers.join(",");
            ([format!("sys/fs/cgroup/{all}"), format!("sys/fs/cgroup/{controller}")], name_v1)
        } else {
            continue;
        };
        // Outside of the own namespace it begins with "..".
        let named = |part: &Component| matches!(part, Component::Normal(_));
        let path: PathBuf = Path::new(&group.pathname).components().filter(named).collect();
        for mount in mounts {
            let files = path.ancestors().map(|dir| Path::new(&mount).join(dir).join(name));
            let read = |file: PathBuf| fs::read_to_string(root.join(&file)).ok().map(|t| (file, t));
            found.extend(files.filter_map(read));
        }
    }
    found
}

/// Readings of this process, its host, and the server's process if it runs here.
pub(crate) struct ClientReading {
    cost: Cost,
    files: Files,
    beside: bool,
    server: Option<u32>,
    throttled: BTreeMap<PathBuf, Duration>,
}

/// Use between two readings; shares are of all cores of the host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClientUse {
    pub cost: Cost,
    pub traffic: Option<[u64; 2]>,
    pub busy: Option<f64>,
    pub others: Option<f64>,
    pub steal: Option<f64>,
    pub server_s: Option<f64>,
    pub throttled_s: Option<f64>,
}

impl ClientReading {
    pub(crate) fn now(probe: Option<&Probe>) -> ClientReading {
        let root = host::recorded().unwrap_or(host::ROOT.into());
        let (beside, server) = probe.map_or((false, None), |it| (it.is_here, it.pid_here));
        ClientReading::below(&root, beside, server)
    }

    fn below(root: &Path, beside: bool, server: Option<u32>) -> ClientReading {
        let mut names = ["/proc/stat", "/proc/net/dev"].map(str::to_owned).to_vec();
        names.extend(server.map(|pid| format!("/proc/{pid}/stat")));
        let (cost, files) = (process_usage(), host::files(root, &names));
        ClientReading { cost, files, beside, server, throttled: throttled(root) }
    }

    pub(crate) fn since(&self, earlier: &ClientReading) -> ClientUse {
        let (cost, files) = (self.cost.since(&earlier.cost), [&earlier.files, &self.files]);
        let server = self.server.and_then(|pid| process_cost(pid, files));
        let server_s = server.map(|server| server.user_s + server.sys_s);
        // The nested group that held back most meanwhile counts.
        let held_back = |(file, now): (&PathBuf, &Duration)| {
            Some(now.saturating_sub(*earlier.throttled.get(file)?))
        };
        let throttled = self.throttled.iter().filter_map(held_back).max();
        let host = host_cost(files);
        let [before, after] = files.map(|files| host::traffic(files.get("/proc/net/dev")?));
        let traffic = before.zip(after);
        let part = |of: fn(&HostCost) -> f64, own_s: f64| {
            let host = host.as_ref()?;
            let idle_s = host.idle_s + host.iowait_s + host.steal_s;
            let all_s = host.user_s + host.sys_s + idle_s;
            (all_s > 0.0).then(|| ((of(host) - own_s) / all_s).clamp(0.0, 1.0))
        };
        let programs = |host: &HostCost| host.user_s + host.sys_s - host.irq_s.unwrap_or(0.0);
        let others = part(programs, cost.cpu().as_secs_f64() + server_s.unwrap_or(0.0));
        ClientUse {
            cost,
            traffic: traffic.map(|(then, now)| [0, 1].map(|at| now[at].saturating_sub(then[at]))),
            busy: part(|host| host.user_s + host.sys_s, 0.0),
            // Unknown if the server's process is gone, replaced or unreadable.
            others: others.filter(|_| !self.beside || server_s.is_some()),
            steal: part(|host| host.steal_s, 0.0),
            server_s,
            throttled_s: throttled.map(|time| time.as_secs_f64()),
        }
    }
}

/// The scheduler's account of one thread, `/proc/thread-self/schedstat` (sched-stats.rst), kept open.
pub(crate) struct ThreadClock(File);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Scheduled {
    pub ran: Duration,
    /// Time runnable while another thread had the core.
    pub waited: Duration,
}

impl Scheduled {
    pub(crate) fn since(&self, earlier: &Scheduled) -> Scheduled {
        Scheduled {
            ran: self.ran.saturating_sub(earlier.ran),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }
}

impl ThreadClock {
    pub(crate) fn own() -> Option<ThreadClock> {
        let clock = ThreadClock(File::open("/proc/thread-self/schedstat").ok()?);
        clock.read().map(|_| clock)
    }

    pub(crate) fn read(&self) -> Option<Scheduled> {
        let mut text = [0; 96];
        let read = self.0.read_at(&mut text, 0).ok()?;
        scheduled(&text[..read])
    }
}

/// Parses `schedstat` without allocating. A kernel without accounts says zeros.
fn scheduled(text: &[u8]) -> Option<Scheduled> {
    let mut numbers = str::from_utf8(text).ok()?.split_ascii_whitespace().map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    let (ran, waited, slices) = (next()?, next()?, next()?);
    (slices > 0 || ran > 0)
        .then(|| Scheduled { ran: Duration::from_nanos(ran), waited: Duration::from_nanos(waited) })
}

#[cfg(test)]
mod tests {
    use super::host::record as tree;
    use super::*;

    #[test]
    fn the_peak_is_this_process_s_own() {
        let before = peak_resident_bytes();
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(peak_resident_bytes() >= before.max(64 << 20));
        drop(block);
    }

    #[test]
    fn burnt_time_is_seen_by_thread_and_process() {
        let burn = || {
            let before = usage(UsageWho::RUSAGE_THREAD);
            let mut x = 1_u64;
            while usage(UsageWho::RUSAGE_THREAD).since(&before).cpu() < Duration::from_millis(20) {
                x = std::hint::black_box(x.wrapping_mul(3));
            }
            usage(UsageWho::RUSAGE_THREAD).since(&before).cpu()
        };
        let before = process_usage();
        let elsewhere = std::thread::spawn(burn).join().expect("the thread ends");
        let after = process_usage();
        assert!(elsewhere >= Duration::from_millis(20));
        assert!(after.since(&before).cpu() >= elsewhere);
    }

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let limit = raise_descriptor_limit().expect("raised");
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("read");
        assert_eq!((soft, limit), (hard, hard));
        assert!(descriptors_open() >= 3, "the standard streams at least");
    }

    #[test]
    fn the_kernel_s_three_numbers() {
        let known = scheduled(b"396500 250138 1\n").expect("counted");
        assert_eq!(known.ran, Duration::from_nanos(396_500));
        assert_eq!(known.waited, Duration::from_nanos(250_138));
        for nothing in ["", "0 0 0\n", "1 2\n", "x 2 3\n"] {
            assert_eq!(scheduled(nothing.as_bytes()), None, "{nothing}");
        }
    }

    #[test]
    fn a_thread_sees_itself_run() {
        let Some(clock) = ThreadClock::own() else { return };
        let before = clock.read().expect("readable");
        let mut x = 1_u64;
        while clock.read().expect("readable").ran < before.ran + Duration::from_millis(5) {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
    }

    /// The limit on a host with these files.
    fn limit(files: &[(&str, &str)]) -> Option<(u64, String)> {
        memory_max(tree(files).path()).map(|limit| (limit.bytes, limit.file.display().to_string()))
    }

    #[test]
    fn the_smallest_limit_of_the_own_group_and_those_above_counts() {
        let own = ("proc/self/cgroup", "0::/user.slice/job.scope\n");
        let at = |group: &str| format!("sys/fs/cgroup/{group}memory.max");
        let (job, slice) = (at("user.slice/job.scope/"), at("user.slice/"));
        let of = |job_max, slice_max| limit(&[own, (&job, job_max), (&slice, slice_max)]);
        assert_eq!(of("max\n", "max\n"), None);
        assert_eq!(of("1048576\n", "max\n"), Some((1 << 20, format!("/{job}"))));
        assert_eq!(of("max\n", "4096\n"), Some((4096, format!("/{slice}"))));
        assert_eq!(of("8192\n", "4096\n"), Some((4096, format!("/{slice}"))));
        assert_eq!(limit(&[own]), None, "groups without a memory controller");
        assert_eq!(limit(&[]), None, "no groups");
    }

    #[test]
    fn a_container_sees_its_own_group_as_the_root() {
        let mounted = ("sys/fs/cgroup/memory.max", "123\n");
        for path in ["0::/\n", "0::/../other\n", "0::/system.slice/docker-1.scope\n"] {
            let found = limit(&[("proc/self/cgroup", path), mounted]);
            assert_eq!(found, Some((123, "/sys/fs/cgroup/memory.max".to_owned())), "{path}");
        }
    }

    #[test]
    fn version_1_has_its_own_files() {
        let groups = "12:cpu,cpuacct:/docker/1\n7:memory:/docker/1\n0::/docker/1\n";
        let at = |group: &str| format!("sys/fs/cgroup/memory/{group}memory.limit_in_bytes");
        let (own, root) = (at("docker/1/"), at(""));
        let of = |path: &str, text| limit(&[("proc/self/cgroup", groups), (path, text)]);
        assert_eq!(of(&own, "536870912\n"), Some((512 << 20, format!("/{own}"))));
        assert_eq!(of(&root, "536870912\n"), Some((512 << 20, format!("/{root}"))));
        assert_eq!(of(&at("docker/2/"), "1\n"), None, "another group");
    }

    /// The times of a host's groups, shortest first.
    fn held_back(root: &Path) -> Vec<Duration> {
        let mut times: Vec<Duration> = throttled(root).into_values().collect();
        times.sort_unstable();
        times
    }

    #[test]
    fn groups_that_held_back_are_read_in_both_versions() {
        let groups = "3:cpu,cpuacct:/docker/a\n1:name=systemd:/x\n0::/user.slice/run\n";
        let root = tree(&[
            ("proc/self/cgroup", groups),
            ("sys/fs/cgroup/user.slice/run/cpu.stat", "usage_usec 5\nthrottled_usec 1500000\n"),
            ("sys/fs/cgroup/user.slice/cpu.stat", "nr_throttled 3\nthrottled_usec 2500000\n"),
        ]);
        assert_eq!(held_back(root.path()), [1500, 2500].map(Duration::from_millis));
        let root = tree(&[
            ("proc/self/cgroup", groups),
            ("sys/fs/cgroup/cpu/docker/a/cpu.stat", "nr_throttled 9\nthrottled_time 70000000\n"),
        ]);
        assert_eq!(held_back(root.path()), [Duration::from_millis(70)]);
        assert!(held_back(Path::new("/nonexistent")).is_empty());
        let root = tree(&[("proc/self/cgroup", "nonsense\n9:memory:/a\n")]);
        assert!(held_back(root.path()).is_empty());
    }

    #[test]
    fn group_that_held_back_most_since_counts_when_another_one_did_before() {
        let read = |outer: u32, inner: Option<u32>| {
            let stat = |usec: u32| format!("throttled_usec {usec}\n");
            let (outer, inner) = (stat(outer), inner.map(stat));
            let mut files = vec![
                ("proc/self/cgroup", "0::/user.slice/run\n"),
                ("sys/fs/cgroup/user.slice/cpu.stat", outer.as_str()),
            ];
            files.extend(inner.as_deref().map(|of| ("sys/fs/cgroup/user.slice/run/cpu.stat", of)));
            ClientReading::below(tree(&files).path(), false, None)
        };
        let first = read(9_000_000, Some(1_000_000));
        assert_eq!(read(9_500_000, Some(3_000_000)).since(&first).throttled_s, Some(2.0));
        assert_eq!(read(9_500_000, None).since(&first).throttled_s, Some(0.5));
        let later = read(9_000_000, Some(3_000_000)).since(&read(9_000_000, None));
        assert_eq!(later.throttled_s, Some(0.0), "the inner one's time of before is unknown");
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
        let read = |root: &tempfile::TempDir, s, beside, pid| ClientReading {
            cost: own(s),
            ..ClientReading::below(root.path(), beside, pid)
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
    fn traffic_is_told_where_cores_are_not() {
        let read = |bytes: u32| {
            let lines = "Inter-| Receive\n face |bytes\n";
            let dev = format!("{lines} eth0: {bytes} 1 0 0 0 0 0 0 {bytes} 1 0 0 0 0 0 0\n");
            ClientReading::below(tree(&[("proc/net/dev", &dev)]).path(), false, None)
        };
        let used = read(50).since(&read(20));
        assert_eq!((used.traffic, used.busy), (Some([30, 30]), None));
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
        let read = |root: &tempfile::TempDir| ClientReading::below(root.path(), true, Some(7));
        let gone = tree(&[("proc/stat", &now)]);
        let another = tree(&[("proc/7/stat", &stat(1000, 66)), ("proc/stat", &now)]);
        for last in [gone, another] {
            let used = read(&last).since(&read(&first));
            assert_eq!((used.server_s, used.busy), (None, Some(0.5)));
            assert_eq!(used.others, None, "the server's would be in it");
        }
    }
}
