//! Sweeps through the program itself.

mod common;
mod sweep;
