//! Faults of servers and networks, and input that means harm.

mod canned;
mod common;
mod hostile;
