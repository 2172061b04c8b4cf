//! The numbers that decide what is worth a warning. `docs/warnings.md` tells them, too.

/// Part of the pool that may hold nothing while pages are read: above, it is still filling.
pub(crate) const FREE_PAGES_MAX: f64 = 0.01;
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
/// Transactions that may wait for the purge before a step.
pub(crate) const HISTORY_MAX: u64 = 10_000;

/// Part of the pool's pages that may still be dirty when `--settle` is content.
pub(crate) const SETTLED_DIRTY: f64 = 0.01;
/// Transactions that may still wait for the purge then.
pub(crate) const SETTLED_HISTORY: u64 = 1_000;

/// A change of level or a drift is told from this part of the level on.
pub(crate) const CHANGE_MIN: f64 = 0.05;
/// And if chance makes one that is as clear this often at most.
pub(crate) const CHANGE_P_MAX: f64 = 0.01;
/// Half of the width of the mean rate's 95 % interval, as a part of the rate.
pub(crate) const ERROR_MAX: f64 = 0.05;
/// Whole intervals of a timeline that tell the noise of a window.
pub(crate) const INTERVALS_MIN: usize = 3;

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
