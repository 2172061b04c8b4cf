//! The ops that all clients share (sysbench's `--events`): the step hands them out to its threads in
//! blocks, so that no operation takes one of them from memory that threads share.

use std::cell::Cell;

use tokio::sync::watch;

use super::setup::OpGrant;

/// The most ops of a block: so many are granted in one message.
const BLOCK_MAX: u64 = 1024;

pub(super) struct SharedOps {
    left: u64,
    threads: Vec<watch::Sender<OpGrant>>,
}

impl SharedOps {
    /// Begins with a block for each thread; without a number of ops there is nothing to grant.
    pub(super) fn new(ops: Option<u64>, threads: usize) -> SharedOps {
        let senders = (0..threads).map(|_| watch::Sender::default());
        let threads = ops.map(|_| senders.collect()).unwrap_or_default();
        let mut shared = SharedOps { left: ops.unwrap_or(0), threads };
        (0..shared.threads.len()).for_each(|thread| shared.grant(thread));
        shared
    }

    pub(super) fn receivers(&self) -> Vec<watch::Receiver<OpGrant>> {
        self.threads.iter().map(watch::Sender::subscribe).collect()
    }

    /// Grants a thread another block: smaller ones towards the end, so that the threads end together.
    pub(super) fn grant(&mut self, thread: usize) {
        let block = self.left.div_ceil(self.threads.len() as u64).min(BLOCK_MAX);
        self.left -= block;
        let last = self.left == 0;
        self.threads[thread].send_modify(|grant| *grant = OpGrant { ops: grant.ops + block, last });
    }

    pub(super) fn end(&mut self) {
        self.left = 0;
    }
}

pub(super) struct OpShare {
    grants: watch::Receiver<OpGrant>,
    granted: Cell<OpGrant>,
    begun: Cell<u64>,
    asked: Cell<bool>,
    /// More are asked for when only so many are left, so that no client waits.
    few: u64,
}

impl OpShare {
    pub(super) fn new(grants: &watch::Receiver<OpGrant>, clients: usize) -> OpShare {
        let granted = Cell::new(*grants.borrow());
        let (begun, asked) = (Cell::default(), Cell::default());
        let few = (clients as u64).max(BLOCK_MAX / 2);
        OpShare { grants: grants.clone(), granted, begun, asked, few }
    }

    /// Takes an op, once there is one; false after the last one. `ask` asks for more of them.
    #[inline]
    pub(super) async fn take(&self, ask: impl Fn()) -> bool {
        loop {
            let granted = self.granted.get();
            let left = granted.ops - self.begun.get();
            if left <= self.few && !granted.last && !self.asked.replace(true) {
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
        if self.granted.replace(more) != more {
            self.asked.set(false);
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
    fn thread_that_asks_is_told_the_end_when_no_more_are_to_begin() {
        let mut shared = SharedOps::new(Some(1_000_000), 1);
        shared.end();
        shared.grant(0);
        let told = shared.receivers()[0].borrow().to_owned();
        assert_eq!(told, OpGrant { ops: BLOCK_MAX, last: true });
    }

    #[test]
    fn thread_takes_what_it_is_granted_and_asks_before_it_is_without() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let shared = std::cell::RefCell::new(SharedOps::new(Some(5000), 2));
        let shares: Vec<OpShare> =
            shared.borrow().receivers().iter().map(|grant| OpShare::new(grant, 4)).collect();
        let mut taken = 0;
        runtime.block_on(async {
            for (thread, share) in shares.iter().enumerate() {
                while share.take(|| shared.borrow_mut().grant(thread)).await {
                    taken += 1;
                }
            }
        });
        assert_eq!(taken, 5000);
        // The first one took all but the block that the other one had at once.
        assert_eq!(granted(&shared.borrow()), [5000 - BLOCK_MAX, BLOCK_MAX]);
    }
}
