//! What this process and its threads cost, and how many descriptors it may open.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use procfs_core::FromRead;
use procfs_core::process::Schedstat;

use super::proc::field;
use crate::error::{Error, Result};

/// Fewer descriptors than this are not worth a try.
const DESCRIPTORS_MIN: u64 = 32;

/// CPU time since the start of a process or thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

    pub(crate) fn cpu_since(&self, earlier: &Cost) -> Duration {
        (self.user + self.sys).saturating_sub(earlier.user + earlier.sys)
    }
}

/// The cost of this process, all its threads, ended ones included.
pub(crate) fn process_usage() -> Cost {
    usage(UsageWho::RUSAGE_SELF)
}

/// The cost of the processes that this one waited for, and that these waited for.
pub(crate) fn children_usage() -> Cost {
    usage(UsageWho::RUSAGE_CHILDREN)
}

fn usage(who: UsageWho) -> Cost {
    let usage = getrusage(who).expect("a process that there is");
    let time = |t: nix::sys::time::TimeVal| {
        Duration::from_secs(t.tv_sec().max(0) as u64)
            + Duration::from_micros(t.tv_usec().max(0) as u64)
    };
    Cost { user: time(usage.user_time()), sys: time(usage.system_time()) }
}

/// Peak resident size of this process so far, bytes; 0 where `/proc` is not mounted.
///
/// Not from `getrusage`: its `ru_maxrss` outlives an exec, and would be that of whoever started us.
pub(crate) fn peak_resident_bytes() -> u64 {
    std::fs::read_to_string("/proc/self/status").map_or(0, |status| peak_of(&status))
}

/// Reads `VmHWM` of the text of `/proc/PID/status` (proc_pid_status(5)), in bytes; 0 if it is not there.
fn peak_of(status: &str) -> u64 {
    field(status, "VmHWM").map_or(0, |kib| kib.saturating_mul(1024))
}

/// Raises the soft limit of descriptors to the hard one and returns it.
pub(crate) fn raise_descriptor_limit() -> Result<u64> {
    let failed = |e: nix::Error| Error::failed(format!("the limit of open files: {e}"));
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(failed)?;
    }
    Ok(hard)
}

/// The limit of this process's address space (`ulimit -v`), bytes; None without one.
pub(crate) fn address_space_max() -> Option<u64> {
    let (limit, _) = getrlimit(Resource::RLIMIT_AS).ok()?;
    (limit != nix::sys::resource::RLIM_INFINITY).then_some(limit)
}

/// Refuses to begin with fewer descriptors than the runtimes, the signals and one connection take:
/// some of these do not bear it.
pub(crate) fn require_descriptors() -> Result<()> {
    let limit = raise_descriptor_limit()?;
    if limit < DESCRIPTORS_MIN {
        let text = format!("this process may open {limit} files, and needs {DESCRIPTORS_MIN}");
        return Err(Error::usage(text).hint("raise the hard limit: ulimit -Hn 1024"));
    }
    Ok(())
}

/// Descriptors that are open now; 0 where `/proc` is not mounted.
pub(crate) fn descriptors_open() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, |dir| dir.count() as u64)
}

/// The scheduler's account of one thread, `/proc/thread-self/schedstat` (the kernel's
/// sched-stats.rst), open.
#[derive(Debug)]
pub(crate) struct ThreadClock(File);

/// A thread's time so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Scheduled {
    /// On a core.
    pub ran: Duration,
    /// Runnable, and another thread had the core.
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
    /// Opens that of the calling thread; None where the kernel does not tell.
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

/// Reads `schedstat`. A kernel that keeps no account says zeros.
fn scheduled(text: &[u8]) -> Option<Scheduled> {
    let stat = Schedstat::from_read(text).ok()?;
    (stat.pcount > 0 || stat.sum_exec_runtime > 0).then(|| Scheduled {
        ran: Duration::from_nanos(stat.sum_exec_runtime),
        waited: Duration::from_nanos(stat.run_delay),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_peak_is_this_process_s_own() {
        assert_eq!(peak_of("Name:\tx\nVmHWM:\t   17408 kB\nVmRSS:\t 1 kB\n"), 17_408 << 10);
        assert_eq!(peak_of("VmHWM:\t x kB\n"), 0);
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
            while usage(UsageWho::RUSAGE_THREAD).cpu_since(&before) < Duration::from_millis(20) {
                x = std::hint::black_box(x.wrapping_mul(3));
            }
            usage(UsageWho::RUSAGE_THREAD).cpu_since(&before)
        };
        let before = process_usage();
        let elsewhere = std::thread::spawn(burn).join().expect("the thread ends");
        let after = process_usage();
        assert!(elsewhere >= Duration::from_millis(20));
        assert!(after.cpu_since(&before) >= elsewhere);
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
        // What has no such file has nothing to see.
        let Some(clock) = ThreadClock::own() else { return };
        let before = clock.read().expect("readable");
        let mut x = 1_u64;
        while clock.read().expect("readable").ran < before.ran + Duration::from_millis(5) {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
    }

    proptest! {
        #[test]
        fn the_peak_reads_back(kib in any::<u64>(), text in "\\PC{0,40}") {
            prop_assert_eq!(peak_of(&format!("Name: {text}\nVmHWM:\t{kib} kB\n")), kib.saturating_mul(1024));
            let _ = peak_of(&text);
        }
    }
}
