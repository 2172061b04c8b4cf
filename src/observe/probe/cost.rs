//! What a window cost the server's process and its host: the difference of two readings.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{HostReading, Probe};
use crate::observe::proc::{self, DiskUse, HostClock, ProcessStat, Traffic};
use crate::observe::seconds_from;

/// What `/proc/uptime` may be off by, seconds.
const CLOCK_S: f64 = 0.05;

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

/// Tells what happened between two readings; their seconds count from `origin`.
pub(super) fn between(
    probe: &Probe,
    first: &HostReading,
    last: &HostReading,
    origin: Instant,
) -> Probed {
    let [first_s, last_s] = instants(first, last, origin);
    Probed {
        via: if probe.is_local() { "local" } else { "command" }.to_owned(),
        first_s,
        last_s,
        process: probe.pid.and_then(|pid| process_cost(pid, first, last)),
        host: host_cost(first, last),
    }
}

/// Finds when two readings were taken, seconds from `origin`: each somewhere between its beginning and
/// its end, and as far from each other as the host's own clock says. So a slow log-in makes them
/// no less certain than the quicker of the two.
pub(super) fn instants(first: &HostReading, last: &HostReading, origin: Instant) -> [f64; 2] {
    let s = |at: Instant| seconds_from(origin, at);
    let bounds = [first, last].map(|reading| [s(reading.began), s(reading.ended)]);
    let middles = bounds.map(|[began, ended]| f64::midpoint(began, ended));
    let (Some(one), Some(other)) = (first.up_s, last.up_s) else { return middles };
    // Where the host's start can lie, by both.
    let starts = [(one, bounds[0]), (other, bounds[1])].map(|(up, b)| b.map(|at| at - up));
    let (lowest, highest) = (starts[0][0].max(starts[1][0]), starts[0][1].min(starts[1][1]));
    // Clocks drift, and this one ticks in hundredths: then there is no such place.
    if lowest > highest + CLOCK_S {
        return middles;
    }
    let start = f64::midpoint(lowest, highest);
    [start + one, start + other]
}

fn process_cost(pid: u32, first: &HostReading, last: &HostReading) -> Option<ProcessCost> {
    let (one, other) = (first.process.as_ref()?, last.process.as_ref()?);
    // Another process has got the number: the server was restarted.
    if one.started_ticks != other.started_ticks {
        return None;
    }
    let grown = |of: fn(&ProcessStat) -> Option<u64>| Some(of(other)?.saturating_sub(of(one)?));
    let switches = |of: fn(&(u64, u64)) -> u64| {
        let threads = other.switches.iter().filter_map(|(thread, after)| {
            Some(of(after).saturating_sub(of(one.switches.get(thread)?)))
        });
        (!one.switches.is_empty()).then(|| threads.sum())
    };
    Some(ProcessCost {
        pid,
        user_s: proc::seconds(other.user_ticks.saturating_sub(one.user_ticks)),
        sys_s: proc::seconds(other.sys_ticks.saturating_sub(one.sys_ticks)),
        voluntary_switches: switches(|s| s.0),
        involuntary_switches: switches(|s| s.1),
        read_bytes: grown(|s| s.read_bytes),
        write_bytes: grown(|s| s.write_bytes),
        rss_bytes: other.rss_bytes,
        threads: other.threads,
    })
}

fn host_cost(first: &HostReading, last: &HostReading) -> Option<HostCost> {
    let (one, other) = (first.host.as_ref()?, last.host.as_ref()?);
    let s = |of: fn(&HostClock) -> u64| proc::seconds(of(other).saturating_sub(of(one)));
    let disk = |of: fn(&DiskUse) -> u64| {
        Some(of(last.disks.as_ref()?).saturating_sub(of(first.disks.as_ref()?)))
    };
    let traffic = |of: fn(&Traffic) -> u64| {
        Some(of(last.traffic.as_ref()?).saturating_sub(of(first.traffic.as_ref()?)))
    };
    Some(HostCost {
        user_s: s(|h| h.user),
        sys_s: s(|h| h.sys),
        irq_s: Some(s(|h| h.irq)),
        iowait_s: s(|h| h.iowait),
        idle_s: s(|h| h.idle),
        steal_s: s(|h| h.steal),
        context_switches: Some(other.switches.saturating_sub(one.switches)),
        disk_reads: disk(|d| d.reads),
        disk_writes: disk(|d| d.writes),
        disk_read_s: disk(|d| d.read_ms).map(|ms| ms as f64 / 1e3),
        disk_read_bytes: disk(|d| d.read_bytes),
        disk_write_bytes: disk(|d| d.write_bytes),
        net_rx_bytes: traffic(|n| n.rx_bytes),
        net_tx_bytes: traffic(|n| n.tx_bytes),
    })
}
