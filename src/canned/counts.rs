//! What the server has done, readable from other threads while it runs.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a server has done since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted, refused ones included.
    pub connections: u64,
    /// Connections open now.
    pub open: u64,
    /// The most connections that were open at once.
    pub open_max: u64,
    /// Connections that got through the handshake.
    pub sessions: u64,
    /// `COM_QUERY`.
    pub queries: u64,
    /// `COM_STMT_PREPARE`.
    pub prepares: u64,
    /// `COM_STMT_EXECUTE` of a statement that exists.
    pub executes: u64,
    /// `COM_STMT_CLOSE`.
    pub closes: u64,
    /// `COM_PING`.
    pub pings: u64,
    /// `COM_RESET_CONNECTION` and `COM_CHANGE_USER`.
    pub resets: u64,
    /// `COM_QUIT`.
    pub quits: u64,
    /// Statements (of `queries` and `executes`) that ask for the canned row.
    pub selects: u64,
    /// Statements (of `queries` and `executes`) that change one row.
    pub changes: u64,
    /// Commands answered with an error that no script asked for.
    pub refused: u64,
    /// Faults that fired.
    pub faults: u64,
    /// Bytes that clients streamed for LOAD DATA LOCAL.
    pub local_bytes: u64,
}

macro_rules! counters {
    ($($name:ident),+) => {
        /// The same as [`Counts`], shared between the server's thread and its readers.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)+
        }

        impl Counters {
            /// The counts now; each is right, but they are not read at one instant.
            pub(crate) fn read(&self) -> Counts {
                Counts { $($name: self.$name.get(),)+ }
            }
        }
    };
}

counters!(
    connections,
    open,
    open_max,
    sessions,
    queries,
    prepares,
    executes,
    closes,
    pings,
    resets,
    quits,
    selects,
    changes,
    refused,
    faults,
    local_bytes
);

/// One count with a single writer: a load and a store cost a tenth of a locked addition.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Its value.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it; from the server's thread only.
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds; from the server's thread only.
    pub(crate) fn add(&self, n: u64) {
        self.set(self.get().wrapping_add(n));
    }
}
