//! Numbers of a step beside its rates and times: what the server, its host and the client did
//! for each op.

use crate::summary::{HostCost, ProcessCost, Summary, counter};

/// One such number.
#[derive(Debug)]
pub struct Figure {
    /// As `--metric` takes it.
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) unit: &'static str,
    pub(crate) heading: &'static str,
    pub(crate) unit_in_words: &'static str,
    pub(crate) higher_is_better: bool,
    pub(crate) value: fn(&Summary) -> Option<f64>,
}

impl PartialEq for Figure {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Microseconds in a second.
const US: f64 = 1e6;
/// Bytes in what the tables call KB.
const KB: f64 = 1024.0;

macro_rules! figures {
    ($($name:literal $aliases:tt, $unit:literal, $heading:literal, $words:literal, $higher:literal, $value:expr;)*) => {
        &[$(Figure {
            name: $name,
            aliases: &$aliases,
            unit: $unit,
            heading: $heading,
            unit_in_words: $words,
            higher_is_better: $higher,
            value: $value,
        }),*]
    };
}

/// All of them, in the order in which errors and the help name them.
pub(crate) const FIGURES: &[Figure] = figures! {
    "qps" [], "statements/s", "QPS", "statements a second", true, |s| Some(s.totals.qps);
    "tps" [], "ops/s", "TPS", "ops a second", true, |s| Some(s.totals.tps);
    "errors" [], "errors", "errors", "a step, all phases", false, |s| Some(errors(s) as f64);
    "seconds" [], "s", "seconds", "from the start to the end", false, |s| Some(s.measured_s);
    "rows" ["rows/s"], "rows/s", "rows", "rows a second", true,
        |s| Some(s.totals.rows as f64 / s.measured_s);
    "iops" [], "reads/s", "IOPS", "InnoDB's reads a second", true,
        |s| s.counter_per_s(&["Innodb_data_reads"]);
    "innodb-reads" [], "reads/op", "InnoDB's reads an op", "reads", false,
        |s| s.counter_per_op(&["Innodb_data_reads"]);
    "miss" [], "pages/op", "misses an op", "pages read from storage", false,
        |s| s.counter_per_op(&["Innodb_buffer_pool_reads"]);
    "miss%" ["misspct"], "%", "misses", "percent of the pages asked of the buffer pool", false,
        miss_percent;
    "pages-written" [], "pages/op", "pages written an op", "pages", false,
        |s| s.counter_per_op(&["Innodb_buffer_pool_pages_flushed"]);
    "log-writes" [], "writes/op", "log writes an op", "writes to InnoDB's log", false,
        |s| s.counter_per_op(&["Innodb_log_writes"]);
    "log-bytes" [], "bytes/op", "log bytes an op", "bytes written to InnoDB's log", false,
        |s| s.counter_per_op(&["Innodb_os_log_written"]);
    "handlers" [], "calls/op", "handler calls an op", "calls of the storage engine", false, handlers;
    "ahi" [], "%", "adaptive hash index", "percent of the searches that it answered", true, ahi;
    "server-cpu" [], "us/op", "server CPU an op", "microseconds", false, server_cpu_us;
    "cs" [], "switches/op", "context switches an op", "of the server's process", false, switches;
    "reads" [], "reads/op", "disk reads an op", "of the server's host", false,
        |s| host_per_op(s, |h| h.disk_reads);
    "read-time" [], "us/op", "disk read time an op", "microseconds, of the server's host", false,
        read_us;
    "rkb" [], "KB/op", "KB read an op", "by the server's process, from storage", false,
        |s| process_per_op(s, |p| p.read_bytes).map(|bytes| bytes / KB);
    "wkb" [], "KB/op", "KB written an op", "by the server's process, to storage", false,
        |s| process_per_op(s, |p| p.write_bytes).map(|bytes| bytes / KB);
    "cpu" ["client-cpu"], "us/op", "client CPU an op", "microseconds", false,
        |s| s.client.us_per_op;
    "client-seconds" [], "s", "client CPU", "seconds, user and system", false,
        |s| Some(s.client.user_s + s.client.sys_s);
    "rtt" [], "us", "round trip of an empty query", "microseconds", false, |s| s.client.rtt_us;
};

fn miss_percent(step: &Summary) -> Option<f64> {
    let status = step.status()?;
    let reads = counter(status, &["Innodb_buffer_pool_reads"])?;
    let requests = counter(status, &["Innodb_buffer_pool_read_requests"])?;
    (requests > 0.0).then(|| 100.0 * reads / requests)
}

fn handlers(step: &Summary) -> Option<f64> {
    let status = step.status()?;
    let mut names = status.deltas.keys().filter(|name| name.starts_with("Handler_")).peekable();
    names.peek()?;
    let calls: Option<f64> = names.map(|name| counter(status, &[name])).sum();
    step.per_op(calls?, status.first_s)
}

/// From the status, the metrics or the text, whichever the server has.
fn ahi(step: &Summary) -> Option<f64> {
    let status = step.status()?;
    let inside = status.innodb.as_ref();
    let own = |name: &str| status.deltas.get(name).map(|delta| *delta as f64);
    let counted = |name: &str| inside?.deltas.get(name).map(|delta| *delta as f64);
    let averaged = |name: &str| inside?.last.get(name).copied();
    let pairs = [
        ["Innodb_adaptive_hash_hash_searches", "Innodb_adaptive_hash_non_hash_searches"].map(own),
        ["hash_searches", "other_searches"].map(counted),
        ["hash_searches_per_s", "other_searches_per_s"].map(averaged),
    ];
    let found = pairs.into_iter().find(|pair| pair.iter().any(Option::is_some))?;
    let [hash, other] = found.map(|searches| searches.unwrap_or(0.0));
    (hash >= 0.0 && other >= 0.0 && hash + other > 0.0).then(|| 100.0 * hash / (hash + other))
}

/// Errors and ops without an answer, all phases.
pub(super) fn errors(step: &Summary) -> u64 {
    let errors: u64 = step.totals.errors.iter().map(|e| e.count).sum();
    // What is given up has no error of its own.
    errors + step.totals.abandoned
}

fn process(step: &Summary) -> Option<(&ProcessCost, f64)> {
    let probed = step.server.probed.as_ref()?;
    Some((probed.process.as_ref()?, probed.first_s))
}

pub(super) fn server_cpu_us(step: &Summary) -> Option<f64> {
    let (process, first_s) = process(step)?;
    step.per_op((process.user_s + process.sys_s) * US, first_s)
}

fn switches(step: &Summary) -> Option<f64> {
    let (process, first_s) = process(step)?;
    let both = process.voluntary_switches?.saturating_add(process.involuntary_switches?);
    step.per_op(both as f64, first_s)
}

fn process_per_op(step: &Summary, of: fn(&ProcessCost) -> Option<u64>) -> Option<f64> {
    let (process, first_s) = process(step)?;
    step.per_op(of(process)? as f64, first_s)
}

fn host_per_op(step: &Summary, of: fn(&HostCost) -> Option<u64>) -> Option<f64> {
    let probed = step.server.probed.as_ref()?;
    step.per_op(of(probed.host.as_ref()?)? as f64, probed.first_s)
}

/// Time that reads of the disks took, whoever for.
pub(super) fn read_us(step: &Summary) -> Option<f64> {
    let probed = step.server.probed.as_ref()?;
    step.per_op(probed.host.as_ref()?.disk_read_s? * US, probed.first_s)
}

/// Its part that is the server's own, by bytes: what its process read, else InnoDB. None where
/// neither is known, for others read from the same disks.
pub(super) fn own_read_us(step: &Summary) -> Option<f64> {
    let own = process_per_op(step, |p| p.read_bytes);
    let own = own.or_else(|| step.counter_per_op(&["Innodb_data_read"]))?;
    let all = host_per_op(step, |h| h.disk_read_bytes)?;
    let part = if own < all { own / all } else { 1.0 };
    Some(read_us(step)? * part)
}

/// Returns the figure of a name, lower case.
pub(crate) fn named(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name || figure.aliases.contains(&name))
}
