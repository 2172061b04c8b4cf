//! The numbers that decide a warning or a verdict. docs/user/notes.md and docs/reference/verdicts.md tell them.

/// Pages read from storage a statement from which on a step is IO-bound.
pub(crate) const MISSES_MIN: f64 = 0.01;
/// Part of the pool that may hold nothing while pages are read: above, it is still filling.
pub(crate) const FREE_PAGES_MAX: f64 = 0.01;
/// The same as a multiple of the pages that the server keeps free, innodb_lru_scan_depth of each instance.
pub(crate) const FREE_PAGES_KEPT: f64 = 1.5;
/// Difference of the misses an op between the first and the last third of the window.
pub(crate) const MISSES_CHANGE_MAX: f64 = 0.05;
/// A difference of two counts must be so many standard deviations to be more than chance.
pub(crate) const DEVIATIONS: f64 = 4.0;
/// A pool that was loaded from a file counts as restored for so long after the server's start.
pub(crate) const RESTORED_S: u64 = 900;

/// Part of the pool's pages that may be dirty before a step.
pub(crate) const DIRTY_MAX: f64 = 0.10;
/// Part of the most that the checkpoint's age may be before a step.
pub(crate) const CHECKPOINT_AGE_MAX: f64 = 0.5;
/// A redo log that is written full in less time is small: the server flushes pages to make room. Seconds.
pub(crate) const LOG_FILL_S: f64 = 10.0;
/// Times that it must have been written full for that.
pub(crate) const LOG_FILLS_MIN: f64 = 3.0;
/// Transactions that may wait for the purge before a step.
pub(crate) const HISTORY_MAX: u64 = 10_000;
/// Part of the pool's pages that may still be dirty when `--settle` is content.
pub(crate) const SETTLED_DIRTY: f64 = 0.01;
/// Transactions that may still wait for the purge then.
pub(crate) const SETTLED_HISTORY: u64 = 1_000;

/// A change of level or a drift is told from this part of the level on.
pub(crate) const CHANGE_MIN: f64 = 0.05;
/// The most often that chance may make one that is as clear.
pub(crate) const CHANGE_P_MAX: f64 = 0.01;
/// Half of the width of the mean rate's 95 % interval, as a part of the rate.
pub(crate) const ERROR_MAX: f64 = 0.05;
/// Whole intervals of a timeline that tell the noise of a window.
pub(crate) const INTERVALS_MIN: usize = 3;
/// An interval is whole with this part of the longest one's length: the ends may be cut.
pub(crate) const WHOLE_INTERVAL: f64 = 0.9;

/// The hottest row's share of its table's keys.
pub(crate) const HOTTEST_MAX: f64 = 0.01;
/// Part of the rows that half of the keys must spread over at least.
pub(crate) const HALF_ON_MIN: f64 = 0.10;

/// Loss of the fastest core's clock from the window's start to its end.
pub(crate) const CLOCK_LOSS_MAX: f64 = 0.03;
/// Pages swapped over the step.
pub(crate) const SWAPPED_MAX: u64 = 256;
/// Use of a network link in one direction.
pub(crate) const LINK_MAX: f64 = 0.80;

/// The stated error of a host's clock, as a part of the window.
pub(crate) const RANK_SKEW: f64 = 0.001;
/// The time after the start at which a host heard of it, as a part of the warm-up.
pub(crate) const RANK_LATE: f64 = 0.01;
/// A process was stopped where it is later than its tick by so many seconds.
pub(crate) const RANK_PAUSED_S: f64 = 1.0;
/// The part by which the ops of a client on one host are fewer than on another.
pub(crate) const RANK_UNEVEN: f64 = 0.10;

/// Turn delay that the latest hundredth of the time exceeds (or the smallest part that is known),
/// of the median service time.
pub(crate) const TURN_DELAY: f64 = 0.05;
/// Fewer probes than this have no percentile from 80 on that is known.
pub(crate) const PROBES_MIN: u64 = 50;
/// Busy part of the busiest engine thread up to which late turns are not its own doing.
pub(crate) const THREAD_IDLE: f64 = 0.20;
/// Median turn delay, microseconds, up to which that is the kernel's waking an idle thread; one that
/// is later has been stopped.
pub(crate) const WAKING_US: f64 = 1000.0;
/// Time, seconds, that no thread ran and none waited for a core: the process or its machine was stopped.
pub(crate) const STOPPED_S: f64 = 0.5;
/// The share of the host's cores, used by others, from which on late turns are theirs.
pub(crate) const OTHERS_MOST: f64 = 0.50;
/// Busy part of an engine thread.
pub(crate) const THREAD_BUSY: f64 = 0.80;
/// The share of the rate that this host can generate by its calibration.
pub(crate) const OF_CEILING: f64 = 0.60;
/// The share of the window in which a control group held threads back.
pub(crate) const THROTTLED: f64 = 0.01;
/// Used part of the cores that client and server share.
pub(crate) const CORES_FULL: f64 = 0.80;
/// The share of the host's cores used by neither client nor server.
pub(crate) const OTHER_LOAD: f64 = 0.10;
/// The share of the host's cores that the hypervisor gave to others.
pub(crate) const STEAL: f64 = 0.02;
/// The share of the window in which an engine thread waited for a core.
pub(crate) const DESCHEDULED: f64 = 0.05;
/// The share of all statements that were to change a row and found none.
pub(crate) const UNMATCHED_MAX: f64 = 0.01;
/// A calibration is used for so many days: kernels, firmware and neighbours change.
pub(crate) const CALIBRATION_DAYS: i64 = 30;

/// A finding may be false with this probability, after correction.
pub(crate) const ALPHA: f64 = 0.05;
/// Labels whose failed ops differ by more are not the same, whatever the times of the others are.
pub(crate) const FAILED_MAX: f64 = 0.01;
/// A service level does not hold where a larger part of the ops fails: what is refused at once is fast.
pub(crate) const LEVEL_FAILED_MAX: f64 = 0.01;

/// A rate is not sustained where more than this part of the window's arrivals waits at its end.
pub(crate) const BACKLOG_MAX: f64 = 0.01;
/// A backlog grows where every interval of the last third has a larger median response time than
/// any of the first third. Fewer intervals a third tell nothing.
pub(crate) const THIRD_MIN: usize = 2;
/// A share of the window from which on a reading inside it is worth a word.
pub(crate) const LATE_READING: f64 = 0.05;
