//! The JSON contract: write, read, merge.
