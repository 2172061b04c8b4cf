//! What this process's control groups allow it (cgroups(7)): memory, and time on cores.
//!
//! A group's limit holds for all that is below it, too. In a container the groups above are not to be
//! seen, nor, with version 1 and no namespace for groups, the path to the own one: then the root of
//! what is mounted is the own group.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use procfs_core::{FromRead, ProcessCGroups};

use super::proc::after;

/// A limit of memory. What is above that ends in SIGKILL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limit {
    pub bytes: u64,
    /// The file that says so.
    pub file: PathBuf,
}

/// Finds the smallest limit of this process's groups; None without one.
pub(crate) fn memory_max(root: &Path) -> Option<Limit> {
    let files = files(root, "memory", "memory.max", "memory.limit_in_bytes");
    let limits = files.into_iter().filter_map(|file| {
        // "max" is none, as is a number near 2^63 in version 1.
        let bytes = fs::read_to_string(root.join(&file)).ok()?.trim().parse().ok()?;
        Some(Limit { bytes, file: Path::new("/").join(file) })
    });
    limits.min_by_key(|limit| limit.bytes)
}

/// Finds how long the CPU bandwidth of this process's groups has held its threads back so far, summed
/// over cores: `throttled_usec` of version 2, `throttled_time` (nanoseconds) of version 1 (the
/// kernel's cgroup-v2.rst and sched-bwc.rst). Of nested groups the one that did most.
pub(super) fn throttled(root: &Path) -> Option<Duration> {
    let stats = files(root, "cpu", "cpu.stat", "cpu.stat");
    let stats = stats.iter().filter_map(|file| fs::read_to_string(root.join(file)).ok());
    let held_back = |stat: String| {
        let new = after(&stat, "throttled_usec ").map(Duration::from_micros);
        new.or_else(|| after(&stat, "throttled_time ").map(Duration::from_nanos))
    };
    stats.filter_map(held_back).max()
}

/// Names a file of the own group of a controller and of those around it, wherever they are mounted.
fn files(root: &Path, controller: &str, name: &str, name_v1: &str) -> Vec<PathBuf> {
    let groups = ProcessCGroups::from_file(root.join("proc/self/cgroup"));
    // Nothing is known where they are not told.
    let Ok(groups) = groups else { return Vec::new() };
    let mut found = Vec::new();
    for group in groups {
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
            found.extend(path.ancestors().map(|dir| Path::new(&mount).join(dir).join(name)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

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
