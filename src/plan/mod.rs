//! Flags and profiles become a Plan.
