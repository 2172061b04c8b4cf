//! The ops that all clients share (sysbench's `--events`): the step hands them out to its threads in
//! blocks, so that no operation takes one of them from memory that threads share.

use std::cell::Cell;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::setup::OpGrant;

/// The most ops of a block: so many are granted in one message.
const BLOCK_MAX: u64 = 1024;
/// The time that a block should last: a thread whose ops are slow keeps few of them from the others.
const BLOCK_TIME: Duration = Duration::from_millis(100);

pub(super) struct SharedOps {
    left: u64,
    threads: Vec<SharingThread>,
}

struct SharingThread {
    sender: watch::Sender<OpGrant>,
    /// Ops of its last block, and the instant at which they were granted.
    block: u64,
    since: Instant,
}

impl SharedOps {
    /// Begins with an op for each thread; without a number of ops there is nothing to grant.
    pub(super) fn new(ops: Option<u64>, threads: usize) -> SharedOps {
        let since = Instant::now();
        let make = |_| SharingThread { sender: watch::Sender::default(), block: 0, since };
        let threads = ops.map(|_| (0..threads).map(make).collect()).unwrap_or_default();
        let mut shared = SharedOps { left: ops.unwrap_or(0), threads };
        (0..shared.threads.len()).for_each(|thread| shared.grant(thread));
        shared
    }

    pub(super) fn receivers(&self) -> Vec<watch::Receiver<OpGrant>> {
        self.threads.iter().map(|thread| thread.sender.subscribe()).collect()
    }

    /// Grants a thread another block: smaller ones towards the end, so that the threads end together.
    pub(super) fn grant(&mut self, thread: usize) {
        let even = self.left.div_ceil(self.threads.len() as u64);
        let to = &mut self.threads[thread];
        let block = size_block(to.block, to.since.elapsed()).min(even);
        (to.block, to.since) = (block, Instant::now());
        self.left -= block;
        let last = self.left == 0;
        to.sender.send_modify(|grant| *grant = OpGrant { ops: grant.ops + block, last });
    }

    pub(super) fn end(&mut self) {
        self.left = 0;
    }
}

/// Returns the ops of a thread's next block; its last one has lasted so long.
fn size_block(last: u64, lasted: Duration) -> u64 {
    let fitting = last as f64 * BLOCK_TIME.as_secs_f64() / lasted.as_secs_f64();
    (fitting as u64).clamp(1, (last * 4).clamp(1, BLOCK_MAX))
}

pub(super) struct OpShare {
    grants: watch::Receiver<OpGrant>,
    granted: Cell<OpGrant>,
    begun: Cell<u64>,
    asked: Cell<bool>,
    /// More are asked for when only so many are left, so that no client waits.
    few: Cell<u64>,
    /// An open loop asks when one is left: a wait for more would be in its response times.
    least: u64,
}

impl OpShare {
    pub(super) fn new(grants: &watch::Receiver<OpGrant>, least: u64) -> OpShare {
        let granted = Cell::new(*grants.borrow());
        let (begun, asked, few) = (Cell::default(), Cell::default(), Cell::new(least));
        OpShare { grants: grants.clone(), granted, begun, asked, few, least }
    }

    /// Takes an op, once there is one; false after the last one. `ask` asks for more of them.
    #[inline]
    pub(super) async fn take(&self, ask: impl Fn()) -> bool {
        loop {
            let granted = self.granted.get();
            let left = granted.ops - self.begun.get();
            if left <= self.few.get() && !granted.last && !self.asked.replace(true) {
                ask();
            }
            if left > 0 {
                self.begun.set(self.begun.get() + 1);
                return true;
            }
            if granted.last || !self.receive(granted).await {
                return false;
            }
        }
    }

    /// Waits for more; false when the step is over.
    async fn receive(&self, granted: OpGrant) -> bool {
        let mut grants = self.grants.clone();
        let Ok(more) = grants.wait_for(|grant| *grant != granted).await.map(|grant| *grant) else {
            return false;
        };
        // Another client may have received it before.
        let before = self.granted.replace(more);
        if before != more {
            self.asked.set(false);
            self.few.set(((more.ops - before.ops) / 2).max(self.least));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(shared: &SharedOps) -> Vec<u64> {
        shared.receivers().iter().map(|grant| grant.borrow().ops).collect()
    }

    #[test]
    fn blocks_shrink_and_add_up_to_the_number_of_ops() {
        for (ops, threads) in [(1, 3), (10, 3), (10_000, 2), (1_000_000, 7)] {
            let mut shared = SharedOps::new(Some(ops), threads);
            assert!(granted(&shared).iter().all(|ops| *ops <= BLOCK_MAX));
            let mut turns = 0;
            while !shared.receivers().iter().all(|grant| grant.borrow().last) {
                shared.grant(turns % threads);
                turns += 1;
            }
            assert_eq!(granted(&shared).iter().sum::<u64>(), ops);
        }
    }

    #[test]
    fn block_is_small_when_the_ops_of_its_thread_are_slow() {
        for (last, ms, next) in [
            (0, 0, 1),
            (1, 0, 4),
            (1024, 0, 1024),
            (1000, 100, 1000),
            (1000, 1000, 100),
            (1, 500, 1),
            (4, 1000, 1),
        ] {
            assert_eq!(size_block(last, Duration::from_millis(ms)), next, "{last} in {ms} ms");
        }
    }

    #[test]
    fn thread_that_asks_is_told_the_end_when_no_more_are_to_begin() {
        let mut shared = SharedOps::new(Some(1_000_000), 1);
        shared.end();
        shared.grant(0);
        let told = shared.receivers()[0].borrow().to_owned();
        assert_eq!(told, OpGrant { ops: 1, last: true });
    }

    #[test]
    fn open_loop_asks_before_its_last_op_and_a_closed_one_does_not() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let shared = SharedOps::new(Some(10), 1);
        for (least, early) in [(0, false), (1, true)] {
            let (share, asked) = (OpShare::new(&shared.receivers()[0], least), Cell::new(false));
            assert!(runtime.block_on(share.take(|| asked.set(true))));
            assert_eq!(asked.get(), early);
        }
    }

    #[test]
    fn thread_takes_what_it_is_granted_and_asks_before_it_is_without() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let shared = std::cell::RefCell::new(SharedOps::new(Some(5000), 2));
        let shares: Vec<OpShare> =
            shared.borrow().receivers().iter().map(|grant| OpShare::new(grant, 0)).collect();
        let mut taken = 0;
        runtime.block_on(async {
            for (thread, share) in shares.iter().enumerate() {
                while share.take(|| shared.borrow_mut().grant(thread)).await {
                    taken += 1;
                }
            }
        });
        assert_eq!(taken, 5000);
        // The first one took all but the op that the other one had at once.
        assert_eq!(granted(&shared.borrow()), [4999, 1]);
    }
}
