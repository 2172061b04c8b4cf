//! Where the keys fell.

use super::thresholds::{HALF_ON_MIN, HOTTEST_MAX};
use super::{Said, percent};
use crate::summary::Summary;

pub(super) fn look(step: &Summary, said: &mut Said) {
    let Some(keys) = step.conditions.as_ref().and_then(|conditions| conditions.keys.as_ref())
    else {
        return;
    };
    if keys.hottest_share > HOTTEST_MAX || keys.half_on_share < HALF_ON_MIN {
        said.warn(
            "skew",
            format!(
                "keys are skewed ({}): half of them fall on {} of the rows, the hottest row gets \
                 {} of its table's, and {:.0} of {:.0} rows were touched",
                keys.distribution,
                percent(keys.half_on_share),
                percent(keys.hottest_share),
                keys.distinct,
                keys.rows
            ),
        );
    }
}
