//! Growing, jittered pauses between attempts to reach a server that is gone: so that those who
//! lost it together do not come back together.

use std::time::Duration;

use crate::workload::random::{Stream, seed_of};

/// The first pause is at most so long.
const FIRST: Duration = Duration::from_millis(20);
/// And no pause is longer: the time to the first success is measured with it.
const LONGEST: Duration = Duration::from_secs(1);

/// The pauses of one client in one outage.
#[derive(Debug)]
pub(crate) struct Pauses {
    most: Duration,
    jitter: Stream,
}

impl Pauses {
    pub(crate) fn new(client: u32, reconnects: u64) -> Pauses {
        let jitter = Stream::new(seed_of(&[u64::from(client), reconnects]));
        Pauses { most: FIRST, jitter }
    }

    /// Between a half and the whole of twice the one before.
    pub(crate) fn next(&mut self) -> Duration {
        let half = self.most / 2;
        self.most = (self.most * 2).min(LONGEST);
        half + Duration::from_nanos(self.jitter.below(half.as_nanos() as u64 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_differ_between_clients() {
        let of = |client| {
            let mut pauses = Pauses::new(client, 0);
            (0..12).map(|_| pauses.next()).collect::<Vec<_>>()
        };
        let (one, other) = (of(0), of(1));
        assert_ne!(one, other);
        let mut most = FIRST;
        for pause in one {
            assert!(pause >= most / 2 && pause <= most, "{pause:?} of {most:?}");
            most = (most * 2).min(LONGEST);
        }
        assert_eq!(most, LONGEST);
    }
}
