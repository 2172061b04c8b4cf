//! What two numbers must share to be of the same thing.

pub(crate) mod conditions;
mod free;

pub(crate) use conditions::{
    ABSENT, CONDITIONS, Condition, Difference, OVERHEADS, Of, Shown, Weight, conditions,
    differences, fingerprint_differences, spokesmen, unknown,
};
pub use free::{FREE, is_free};
