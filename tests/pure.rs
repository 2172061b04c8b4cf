//! What needs no server: reports, summaries, imports, and the tree itself.

mod common;
mod corpus;
mod golden;
mod growth;
mod import;
mod reference;
mod report;
mod summary;
mod tree;
