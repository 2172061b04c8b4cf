//! Facts about a server, as summaries keep them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::observe::{HostFacts, Probed};
use crate::terms::{Class, Shared};

/// The server's fingerprint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Server {
    /// Host as given, `localhost` for a socket.
    pub host: String,
    /// TCP port; null for a socket.
    pub port: Option<u16>,
    /// `tcp` or `socket`.
    pub transport: String,
    /// The database; null from old versions.
    pub database: Option<String>,
    /// Cipher of the session, null without TLS.
    pub tls_cipher: Option<String>,
    /// `@@version` before the step.
    pub version: String,
    /// `@@version_comment`.
    pub version_comment: String,
    /// Global variables before the step.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    pub variables: Shared<BTreeMap<String, String>>,
    /// Global variables with another value after the step, also those that identify a server, such as
    /// `server_uuid`.
    pub settings_changed: Vec<SettingChange>,
    /// Status counters over the window; null where they could not be read.
    pub status: Option<Status>,
    /// Data and index size of the tables used, from `information_schema`.
    pub data_bytes: Option<u64>,
    /// Storage engine, row format, collation, options and indexes of the tables used, each
    /// combination once; null from old versions, and where they are not known.
    pub table_formats: Option<Vec<String>>,
    /// `innodb_buffer_pool_size`.
    pub buffer_pool_bytes: Option<u64>,
    /// Source of the pages, buffer pool or storage: by misses, else by size; null where neither is
    /// known.
    pub class: Option<Class>,
    /// Durability settings of a commit, such as `bl0/dw0/trx2/O_DIRECT`: see [`durability`].
    pub durability: Option<String>,
    /// Counters of the server's process and its host over the window; null where they cannot be read.
    pub probed: Option<Probed>,
    /// Facts of the server's host, if it is this one or can be read.
    pub host_facts: Option<HostFacts>,
}

/// A global variable that changed during a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SettingChange {
    /// The variable.
    pub name: String,
    /// Its value before, null when it appeared.
    pub before: Option<String>,
    /// Its value after, null when it went away.
    pub after: Option<String>,
}

/// `SHOW GLOBAL STATUS` at both edges of the window, as differences.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Status {
    /// First reading, seconds from the window's start (the middle of the query).
    pub first_s: f64,
    /// Second reading, seconds from the window's start.
    pub last_s: f64,
    /// Restart of the server between the readings, seconds from the window's start, by its uptime;
    /// null without one.
    pub restarted_s: Option<f64>,
    /// Counters whose value changed: last minus first; after a restart, since that.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, i64>"))]
    pub deltas: BTreeMap<Shared<String>, i64>,
    /// Levels, not counters, at the second reading: pages of the buffer pool by state, the history's
    /// length, connections.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, i64>"))]
    pub gauges: BTreeMap<Shared<String>, i64>,
    /// InnoDB's values from elsewhere, where the status lacks them.
    pub innodb: Option<Innodb>,
}

/// InnoDB's values that `SHOW GLOBAL STATUS` of this server lacks.
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

/// Levels of a server at one instant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Levels {
    /// `Uptime`, seconds.
    pub uptime_s: Option<u64>,
    /// Pages of InnoDB's buffer pool.
    pub pool_pages: Option<u64>,
    /// Free pages of the pool.
    pub pool_free_pages: Option<u64>,
    /// Dirty pages of the pool.
    pub pool_dirty_pages: Option<u64>,
    /// Transactions whose old versions are not purged yet.
    pub history_list_length: Option<u64>,
    /// Log since the last checkpoint.
    pub checkpoint_age_bytes: Option<u64>,
    /// The largest checkpoint age that the server allows.
    pub checkpoint_age_max_bytes: Option<u64>,
    /// Seconds since the first table was made or altered; read only where a pool was restored.
    pub tables_age_s: Option<u64>,
    /// `Innodb_buffer_pool_load_status`: result of the load at the server's start.
    pub pool_load: Option<String>,
}

/// The client library of measured connections, or of those of a timed load or a suite.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Driver {
    /// `loadgen`; `mysql_async` of loads and suites, and in older summaries.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Protocol features of measured sessions that change the client's cost: `deprecate_eof`; in
    /// summaries of mysql_async `mariadb_metadata_cache`, too.
    pub capabilities: Vec<String>,
}

/// The status variable with the seconds since FLUSH STATUS, or since the start without one.
pub(crate) const SINCE_FLUSH: &str = "Uptime_since_flush_status";

/// MariaDB's builds have one, as in `Debian 13 -- Please help get to 10k stars at …`.
pub(crate) fn without_advertisement(comment: &str) -> &str {
    comment.split("-- ").next().unwrap_or(comment).trim_end()
}

/// Describes what a commit waits for: binary log (`bl0`, `bl1s0` by `sync_binlog`), doublewrite buffer
/// (`dw1`), log at commit (`trx2`), flush method. `?` is a missing variable; None if all are missing.
pub fn durability(variables: &BTreeMap<String, String>) -> Option<String> {
    let get = |name: &str| variables.get(name).map(String::as_str);
    let known = ["log_bin", "innodb_doublewrite", "innodb_flush_log_at_trx_commit"];
    if known.iter().all(|name| get(name).is_none()) {
        return None;
    }
    let binlog = match get("log_bin") {
        None => "bl?".to_owned(),
        Some("OFF" | "0") => "bl0".to_owned(),
        Some(_) => format!("bl1s{}", get("sync_binlog").unwrap_or("?")),
    };
    let doublewrite = match get("innodb_doublewrite") {
        None => "?".to_owned(),
        Some("OFF" | "0") => "0".to_owned(),
        Some("ON" | "1" | "DETECT_AND_RECOVER") => "1".to_owned(),
        // DETECT_ONLY of MySQL 8.0.30 and fast of MariaDB 11 do half of it.
        Some(mode) => format!("-{}", mode.to_ascii_lowercase()),
    };
    let commit = get("innodb_flush_log_at_trx_commit").unwrap_or("?");
    let flush = match (get("innodb_flush_method"), get("innodb_data_file_buffering")) {
        // Before 5.6.7 the default has no name; it is fsync.
        (Some(""), _) => "fsync",
        (Some(method), _) => method,
        // MariaDB 11 has switches instead.
        (None, Some("OFF")) => "O_DIRECT",
        (None, Some(_)) => "fsync",
        (None, None) => "?",
    };
    Some(format!("{binlog}/dw{doublewrite}/trx{commit}/{flush}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Option<String> {
        durability(&pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn a_version_comment_keeps_all_but_an_advertisement() {
        for (comment, kept) in [
            ("Debian n/a -- Please help get to 10k stars at https://x", "Debian n/a"),
            ("-- Please help get to 10k stars at https://x", ""),
            ("MySQL Community Server - GPL", "MySQL Community Server - GPL"),
            ("", ""),
        ] {
            assert_eq!(without_advertisement(comment), kept);
        }
    }

    #[test]
    fn durability_of_every_generation() {
        let five_five = [
            ("log_bin", "OFF"),
            ("sync_binlog", "0"),
            ("innodb_doublewrite", "OFF"),
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_flush_method", ""),
        ];
        assert_eq!(of(&five_five).as_deref(), Some("bl0/dw0/trx2/fsync"));
        let nine = [
            ("log_bin", "ON"),
            ("sync_binlog", "1"),
            ("innodb_doublewrite", "DETECT_AND_RECOVER"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("innodb_flush_method", "O_DIRECT"),
        ];
        assert_eq!(of(&nine).as_deref(), Some("bl1s1/dw1/trx1/O_DIRECT"));
        let half = [("innodb_doublewrite", "DETECT_ONLY"), ("log_bin", "1")];
        assert_eq!(of(&half).as_deref(), Some("bl1s?/dw-detect_only/trx?/?"));
        let maria = [
            ("log_bin", "OFF"),
            ("innodb_doublewrite", "fast"),
            ("innodb_flush_log_at_trx_commit", "3"),
            ("innodb_data_file_buffering", "OFF"),
        ];
        assert_eq!(of(&maria).as_deref(), Some("bl0/dw-fast/trx3/O_DIRECT"));
        assert_eq!(of(&[("port", "3306")]), None);
    }
}
