//! Parts of a step: its errors by code, the times of statements and transactions, its search, its addresses, and
//! what `loadgen verify` is to ask of a server.

use serde::{Deserialize, Serialize};

use crate::observe::times::Distribution;
use crate::terms::{ErrorClass, contract};

contract! {
    pub struct ErrorCount {
        /// The server's error number; null for the client's own classes.
        pub code: Option<u16>,
        /// SQLSTATE; null for the client's own classes.
        pub sqlstate: Option<String>,
        /// `session` (deadlocks and the like), `read_only`, `full` (too many connections),
        /// `interrupted` (a killed query), `ended` (a killed session, a shutdown), `idle` (the
        /// server hung up for silence), `commit` (an error while committing), `behind` (a proxy's
        /// servers), `server` (any other of its errors), `wrong` (an answer that fails its check),
        /// `lost` (the connection), `connect` (an attempt to reconnect; no op).
        #[cfg_attr(test, schemars(with = "String"))]
        pub class: ErrorClass,
        pub message: String,
        pub count: u64,
    }

    /// Latency of one statement of a transaction, of those that the server answered well.
    pub struct StatementLatency {
        /// Its position in `workload.statements`, from 0.
        pub statement: u32,
        pub service: Distribution,
    }

    /// Latency of a script's statements of one kind, of those that the server answered well.
    pub struct KindLatency {
        /// `read` (with a result set), `write` (without one, and it affected rows) or `other`.
        pub kind: String,
        /// From the request to its answer.
        pub service: Distribution,
    }

    /// A search for the highest rate that holds a service level.
    pub struct RateSearch {
        /// Its conditions, such as `p99<10ms`.
        pub level: Vec<String>,
        /// Number of the search at these clients, from 1.
        pub number: u32,
        /// The rate that it began at, ops a second.
        pub start: f64,
        /// It ends where the lowest rate that failed is above the highest that held by this part of
        /// it at most.
        pub resolution: f64,
    }

    /// The part of one address in a step.
    pub struct AddressCounts {
        /// Host and port.
        pub address: String,
        /// Clients that were dealt to it.
        pub clients: u32,
        /// Their ops in the window.
        pub ops: u64,
        /// Their errors of all phases, attempts to connect again and ops without an answer included.
        pub errors: u64,
    }

    /// A question about the data, and its answer.
    pub struct VerifyQuery {
        pub name: String,
        pub sql: String,
        /// The exact result, NULL as null; what is missing at the end of a row is NULL.
        pub rows: Vec<Vec<Option<String>>>,
    }

    /// The ops of one name.
    pub struct Transaction {
        pub name: String,
        /// Ops that succeeded in the window, as `totals.ops` counts them.
        pub ops: u64,
        /// Ops a second.
        pub tps: f64,
        /// Errors of all phases by code, as `totals.errors` has them.
        pub errors: Vec<ErrorCount>,
        /// Ignored errors of the window, as in `totals.retried`; null in a run by loadgen's own rules.
        pub retried: Option<u64>,
        pub latency: TransactionLatency,
    }

    /// Latency of a transaction, as the step's `latency` has it.
    pub struct TransactionLatency {
        /// Service time of the op.
        pub service: Distribution,
        /// Response time: from the intended instant; null unless paced.
        pub response: Option<Distribution>,
    }
}

impl ErrorCount {
    /// Returns whether ops failed with it, not attempts to reconnect.
    pub(crate) fn is_of_op(&self) -> bool {
        self.class != ErrorClass::Connect
    }
}

impl TransactionLatency {
    /// Returns the response times of an open loop, else the service times.
    pub(crate) fn own(&self) -> &Distribution {
        self.response.as_ref().unwrap_or(&self.service)
    }
}
