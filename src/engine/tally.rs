//! Ops and errors of a step so far, held against `--max-errors`.

use crate::error::Error;
use crate::plan::policy::Policy;

/// Of all phases, as the threads report them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    ops: u64,
    errors: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, ops: u64, errors: u64) {
        self.ops += ops;
        self.errors += errors;
    }

    /// The error of a step with more errors than it may have; `last` where no more follow.
    pub(crate) fn judge(&self, policy: Policy, last: bool) -> Option<Error> {
        let Tally { ops, errors } = *self;
        let max = policy.errors_max.filter(|max| max.exceeded(errors, ops, last))?;
        let all = ops + errors;
        let text = format!("{errors} of {all} ops failed, and --max-errors is {max}");
        Some(Error::failed(text).hint("the summary's totals.errors has them by code"))
    }
}
