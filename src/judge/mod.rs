//! What two numbers must share to be of the same thing.

pub(crate) mod conditions;
mod free;

pub(crate) use conditions::{
    ABSENT, CONDITIONS, Condition, Difference, OVERHEADS, Of, Shown, Weight, by_knowledge,
    conditions, differences, fingerprint_differences, unknown,
};
pub use free::{FREE, is_free};
