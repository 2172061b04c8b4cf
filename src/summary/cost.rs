//! What InnoDB tells elsewhere of what a window cost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// InnoDB's own account of what `SHOW GLOBAL STATUS` of this server has no name for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Innodb {
    /// `metrics` (`information_schema.INNODB_METRICS`) or `text` (`SHOW ENGINE INNODB STATUS`).
    pub source: String,
    /// Counters, last minus first. Of metrics: `hash_searches` (answered by the adaptive hash
    /// index) and `other_searches`. Of the text: `os_file_reads`, `os_file_writes`,
    /// `os_fsyncs`, `pages_read`, `pages_created`, `pages_written`, `log_ios`, `log_bytes`.
    pub deltas: BTreeMap<String, i64>,
    /// Levels at the second reading: `history_list_length`, `checkpoint_age_bytes`; of the text,
    /// as InnoDB averaged them over the last `averaged_s` seconds, also `hash_searches_per_s` and
    /// `other_searches_per_s`.
    pub last: BTreeMap<String, f64>,
}
