//! How much memory this process's control groups allow it (cgroups(7)).
//!
//! What is above that ends in SIGKILL. A group's limit holds for all that is below it, too: the
//! smallest counts. In a container the groups above are not to be seen, nor, with version 1 and no
//! namespace for groups, the path to the own one: then the root of what is mounted is the own group.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// A limit of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) bytes: u64,
    /// The file that says so.
    pub(crate) file: PathBuf,
}

/// The smallest limit of this process's groups; None without one.
pub(crate) fn memory_max(root: &Path) -> Option<Limit> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let limits = groups.lines().filter_map(group).flat_map(|(mount, name, path)| {
        let ancestors: Vec<PathBuf> = path.ancestors().map(Path::to_owned).collect();
        ancestors.into_iter().filter_map(move |dir| {
            let file = Path::new(mount).join(dir).join(name);
            let text = fs::read_to_string(root.join(&file)).ok()?;
            // "max" is none, as is a number near 2^63 in version 1.
            let bytes = text.trim().parse().ok()?;
            Some(Limit { bytes, file: Path::new("/").join(file) })
        })
    });
    limits.min_by_key(|limit| limit.bytes)
}

/// Of a line of `/proc/self/cgroup` about memory: where groups are mounted, the file of a limit, and
/// the own group.
fn group(line: &str) -> Option<(&'static str, &'static str, PathBuf)> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let (mount, name) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        v1 if v1.split(',').any(|one| one == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return None,
    };
    // Outside of the own namespace it begins with "..".
    let named = |part: &Component| matches!(part, Component::Normal(_));
    Some((mount, name, Path::new(path).components().filter(named).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit on a host with these files.
    fn limit(files: &[(&str, &str)]) -> Option<(u64, String)> {
        let root = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
        }
        memory_max(root.path()).map(|limit| (limit.bytes, limit.file.display().to_string()))
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
}
