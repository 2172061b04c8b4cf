//! What `loadgen verify` is to ask of a server.

use serde::{Deserialize, Serialize};

use crate::terms::contract;

contract! {
    /// A question about the data, and its answer.
    pub struct VerifyQuery {
        pub name: String,
        pub sql: String,
        /// The exact result, NULL as null; what is missing at the end of a row is NULL.
        pub rows: Vec<Vec<Option<String>>>,
    }
}
