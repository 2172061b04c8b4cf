//! The clock of another host, by round trips of messages with instants. Each end counts nanoseconds from
//! an instant of its own.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::observe::Ns;

/// Round trips before a step, and after it.
pub(super) const ROUND_TRIPS: usize = 64;
/// Two clocks go apart by one in so many at most: NTP lets none run faster or slower.
const DRIFT: u64 = 2000;

static ZERO: LazyLock<Instant> = LazyLock::new(Instant::now);

pub(super) fn now() -> Ns {
    ZERO.elapsed().as_nanos() as Ns
}

/// Returns an instant of this process; one before its start is its start.
pub(super) fn instant(at: Ns) -> Instant {
    *ZERO + Duration::from_nanos(at)
}

pub(super) fn from_instant(at: Instant) -> Ns {
    at.saturating_duration_since(*ZERO).as_nanos() as Ns
}

/// A message and its answer: sent and heard by the own clock, received and answered by the other one.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoundTrip {
    pub sent: Ns,
    pub received: Ns,
    pub answered: Ns,
    pub heard: Ns,
}

/// The other clock less the own one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Offset {
    pub ns: i64,
    /// Bound of its error.
    pub error: Ns,
    pub shortest: Ns,
    pub longest: Ns,
}

fn less(one: Ns, other: Ns) -> i64 {
    (i128::from(one) - i128::from(other)).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

impl Offset {
    /// Takes the middle of what all round trips allow, whatever each way took; None without any.
    pub(super) fn measure(trips: &[RoundTrip]) -> Option<Offset> {
        let least = trips.iter().map(|trip| less(trip.answered, trip.heard)).max()?;
        let most = trips.iter().map(|trip| less(trip.received, trip.sent)).min()?;
        let took = || trips.iter().map(|trip| trip.heard.saturating_sub(trip.sent));
        let began = trips.iter().map(|trip| trip.sent).min()?;
        let lasted = trips.iter().map(|trip| trip.heard).max()?.saturating_sub(began);
        Some(Offset {
            ns: least.midpoint(most),
            error: most.abs_diff(least).div_ceil(2) + lasted.div_ceil(DRIFT),
            shortest: took().min()?,
            longest: took().max()?,
        })
    }

    /// Returns an own instant by the other clock.
    pub(super) fn apply(&self, at: Ns) -> Ns {
        at.saturating_add_signed(self.ns)
    }

    /// Returns the change until a later measurement, and the bound of the error of this offset until
    /// then: the clock was between both.
    pub(super) fn until(&self, later: &Offset) -> (i64, Ns) {
        let moved = later.ns.saturating_sub(self.ns);
        (moved, self.error.max(later.error).saturating_add(moved.unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Stream;

    const MS: Ns = 1_000_000;

    /// Another clock, `ahead` at the own instant 0, that runs faster by parts in a million.
    #[derive(Clone, Copy)]
    struct Other {
        ahead: i64,
        ppm: i64,
    }

    impl Other {
        fn at(self, own: Ns) -> Ns {
            let drift = own.cast_signed() / 1_000_000 * self.ppm;
            own.saturating_add_signed(self.ahead + drift)
        }
    }

    /// Round trips from an instant on, each way with a delay of its own and a part that varies.
    fn trips(other: Other, from: Ns, [there, back]: [Ns; 2], jitter: Ns) -> Vec<RoundTrip> {
        let (mut stream, mut sent, mut trips) = (Stream::new(from), from, Vec::new());
        for _ in 0..ROUND_TRIPS {
            let arrives = sent + there + 1 + stream.below(jitter + 1);
            let heard = arrives + back + 1 + stream.below(jitter + 1);
            let at = other.at(arrives);
            trips.push(RoundTrip { sent, received: at, answered: at, heard });
            sent = heard;
        }
        trips
    }

    #[test]
    fn error_is_below_the_stated_one_when_ways_differ_and_clocks_run_apart() {
        let start = 10_000 * MS;
        for ahead in [-7_000, 0, 7_000].map(|ms| ms * MS.cast_signed()) {
            for ppm in [-200, 0, 200] {
                for ways in [[20, 0], [0, 20], [10, 0], [0, 0]].map(|ways| ways.map(|ms| ms * MS)) {
                    for jitter in [0, MS / 10, 5 * MS] {
                        let other = Other { ahead, ppm };
                        let measure = |from| Offset::measure(&trips(other, from, ways, jitter));
                        let before = measure(start).expect("there are trips");
                        let end = start + 60_000 * MS;
                        let after = measure(end).expect("there are trips");
                        let (_, error) = before.until(&after);
                        for at in (start + 4_000 * MS..end).step_by(1_000 * MS as usize) {
                            let off = before.apply(at).abs_diff(other.at(at));
                            assert!(off <= error, "{off} > {error}: {ahead} {ppm} {ways:?}");
                        }
                    }
                }
            }
        }
    }
}
