//! Flags and profiles become a Plan.

pub mod units;
