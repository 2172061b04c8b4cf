//! The flags of what is done before a step.

use std::time::Duration;

use crate::plan::before::{Ahi, Before, SETTLE, Warm, parse_class};
use crate::plan::profile::Database;
use crate::plan::units::parse_duration;

/// The state that a step starts from.
#[derive(clap::Args, Debug, Clone, Default)]
#[command(next_help_heading = "Before the steps")]
pub(crate) struct BeforeArgs {
    /// pool: read all rows and their index once, before the first step
    #[arg(long, value_enum, default_value = "none", value_name = "WHAT")]
    pub warm: Warm,

    /// The adaptive hash index before each step: emptied (cold), or filled by reads (warm)
    #[arg(long, value_enum, default_value = "as-is", value_name = "HOW")]
    pub ahi: Ahi,

    /// Before each step, wait until dirty pages and the history list have fallen, so long at most
    /// [without a value: 5m]
    #[arg(
        long, value_name = "DURATION", num_args = 0..=1, require_equals = true,
        default_missing_value = SETTLE, value_parser = parse_duration
    )]
    pub settle: Option<Duration>,

    /// Warn where the data turn out not to be cached, or not to be io-bound
    #[arg(long, value_name = "CLASS", value_parser = parse_class)]
    pub expect_class: Option<Database>,
}

impl BeforeArgs {
    /// As the plan has it.
    pub(crate) fn before(&self) -> Before {
        let BeforeArgs { warm, ahi, settle, expect_class } = *self;
        Before { warm, ahi, settle, expect: expect_class }
    }
}
