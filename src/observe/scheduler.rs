//! What the kernel's scheduler knows of a thread: `/proc/thread-self/schedstat`
//! (the kernel's sched-stats.rst).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// The file of one thread, open.
#[derive(Debug)]
pub(crate) struct ThreadClock(File);

/// A thread so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Scheduled {
    /// On a core.
    pub(crate) ran: Duration,
    /// Runnable, and another thread had the core.
    pub(crate) waited: Duration,
}

impl Scheduled {
    /// Since an earlier reading.
    pub(crate) fn since(&self, earlier: &Scheduled) -> Scheduled {
        Scheduled {
            ran: self.ran.saturating_sub(earlier.ran),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }
}

impl ThreadClock {
    /// Of the calling thread; None where the kernel does not tell.
    pub(crate) fn own() -> Option<ThreadClock> {
        let clock = ThreadClock(File::open("/proc/thread-self/schedstat").ok()?);
        clock.read().map(|_| clock)
    }

    /// Reads.
    pub(crate) fn read(&self) -> Option<Scheduled> {
        let mut text = [0; 96];
        let read = self.0.read_at(&mut text, 0).ok()?;
        parse(std::str::from_utf8(text.get(..read)?).ok()?)
    }
}

/// Nanoseconds run, nanoseconds waited, time slices. A kernel that keeps no account says zeros.
fn parse(text: &str) -> Option<Scheduled> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let slices = numbers.next()?.ok()?;
    let counted = slices > 0 || ran > 0;
    counted
        .then(|| Scheduled { ran: Duration::from_nanos(ran), waited: Duration::from_nanos(waited) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_three_numbers() {
        let scheduled = parse("396500 250138 1\n").expect("counted");
        assert_eq!(scheduled.ran, Duration::from_nanos(396_500));
        assert_eq!(scheduled.waited, Duration::from_nanos(250_138));
        for nothing in ["", "0 0 0\n", "1 2\n", "x 2 3\n"] {
            assert_eq!(parse(nothing), None, "{nothing}");
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
}
