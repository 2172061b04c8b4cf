//! What a window cost the server: its process, its host, and what InnoDB tells elsewhere.

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

/// Two readings of `/proc` of the server's host, one at each edge of the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Probed {
    /// `local`, or `command` for a host that was read through `--probe`.
    pub via: String,
    /// First reading, seconds from the window's start (its middle).
    pub first_s: f64,
    /// Second reading, seconds from the window's start.
    pub last_s: f64,
    /// The server's process; null where it was not found.
    pub process: Option<ProcessCost>,
    /// Its host, other processes included.
    pub host: Option<HostCost>,
}

/// The server's process between the readings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProcessCost {
    /// Its process id on its host.
    pub pid: u32,
    /// User CPU, seconds.
    pub user_s: f64,
    /// System CPU, seconds.
    pub sys_s: f64,
    /// Voluntary context switches (waits) of the threads that live at both readings.
    pub voluntary_switches: Option<u64>,
    /// Involuntary ones (preemptions) of the same threads.
    pub involuntary_switches: Option<u64>,
    /// Bytes that it caused to be read from storage; null without the right to know.
    pub read_bytes: Option<u64>,
    /// Bytes that it caused to be written to storage.
    pub write_bytes: Option<u64>,
    /// Resident size at the second reading, bytes.
    pub rss_bytes: Option<u64>,
    /// Threads at the second reading.
    pub threads: Option<u32>,
}

/// The server's host between the readings. CPU seconds are summed over its cores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostCost {
    /// User CPU, nice included.
    pub user_s: f64,
    /// System CPU, interrupts included.
    pub sys_s: f64,
    /// Of these, interrupts, which are nobody's.
    #[serde(default)]
    pub irq_s: Option<f64>,
    /// Idle while waiting for storage.
    pub iowait_s: f64,
    /// Idle.
    pub idle_s: f64,
    /// Taken by the hypervisor.
    pub steal_s: f64,
    /// Context switches.
    pub context_switches: Option<u64>,
    /// Reads completed by the physical disks: no partitions, no device-mapper, no RAID on top.
    pub disk_reads: Option<u64>,
    /// Writes completed by them.
    pub disk_writes: Option<u64>,
    /// Seconds that the reads took, added up.
    #[serde(default)]
    pub disk_read_s: Option<f64>,
    /// Bytes read from them.
    pub disk_read_bytes: Option<u64>,
    /// Bytes written to them.
    pub disk_write_bytes: Option<u64>,
    /// Bytes received by network interfaces, without loopback and bridges.
    pub net_rx_bytes: Option<u64>,
    /// Bytes sent by them.
    pub net_tx_bytes: Option<u64>,
}
