//! Guesses what an experiment takes: time and disk.

use std::collections::BTreeMap;
use std::mem::replace;
use std::path::Path;
use std::time::Duration;

use super::{CellGroup, Dataset, Experiment, RunSpec, What};
use crate::mysql::options::Secret;
use crate::plan::knobs::{InsertMode, LoadSource, LoadSpec};
use crate::plan::profile::{Data, Sandbox, Server};
use crate::plan::{StopAt, seconds_of, units};
use crate::terms::Warm;
use crate::workload::Schema;

/// Bytes of a row with its indexes, and rows a second of a fill: from 1M rows on a small machine.
const SBTEST: (u64, f64) = (240, 100_000.0);
const PHPTEST: (u64, f64) = (330, 50_000.0);
/// Smallest size of a table's file.
const TABLE_BYTES: u64 = 8_000_000;
/// Size of a server's system tables and logs.
const SERVER_BYTES: u64 = 200_000_000;
/// Rows a second of INSERTs of one row each.
const SINGLE_ROWS_A_SECOND: f64 = 8000.0;
/// Bytes a second of a copy of a data directory, or of a read of all its rows.
const COPY_BYTES_A_SECOND: f64 = 300_000_000.0;
const START: Duration = Duration::from_secs(8);
const AROUND_STEP: Duration = Duration::from_secs(1);
/// Ops a second of a small server.
const OPS_A_SECOND: f64 = 5000.0;
/// Assumed time of an external command.
const TEST: Duration = Duration::from_mins(1);

/// Part of a directory's guessed size from which on its data counts as filled: guesses of sizes are that good.
const FILLED_FROM: f64 = 0.9;

/// What the legs of an experiment take.
pub(crate) struct Estimate {
    pub legs: Vec<LegEstimate>,
    pub disk_bytes: u64,
}

pub(crate) struct LegEstimate {
    /// Start of the server, fill, copy.
    pub preparing: Duration,
    /// A read of all rows.
    pub warming: Duration,
    pub measuring: Duration,
}

impl Experiment {
    /// Estimates what the legs take. `stored` returns the bytes in a directory of kept data: a fill that is done takes
    /// no time.
    pub(crate) fn estimate(&self, legs: &[CellGroup], stored: impl Fn(&Path) -> u64) -> Estimate {
        // Bytes of kept data by place, and the peak of temporary data.
        let (mut kept, mut passing) = (BTreeMap::<String, u64>::new(), 0);
        let (mut copied_by, mut copies) = (None, 0);
        let estimate_leg = |leg: &CellGroup| {
            let subject = &self.subjects[leg.subject];
            let (bytes, fill, each) = guess(&self.parts[leg.part]);
            let whole = bytes + SERVER_BYTES;
            // Labels of one server may share its tables. A copy is removed with its label: its peak counts.
            let dir_text = |dir: &Path| dir.display().to_string();
            let (place, stays, passes, there) =
                match subject.server.sandbox.as_ref().map(Sandbox::data) {
                    None => (Some(name_server(&subject.server)), bytes, 0, 0),
                    Some(Data::ThrowAway) => (None, 0, whole, 0),
                    Some(Data::Keep(dir)) => (Some(dir_text(dir)), whole, 0, stored(dir)),
                    Some(Data::Copied) => {
                        // A copy goes away when another label makes one.
                        copies += u32::from(copied_by.replace(leg.subject) != Some(leg.subject));
                        (Some(format!("copy {copies}")), 1, 2 * whole, 0)
                    }
                    Some(Data::CopyOf(dir)) => (Some(dir_text(dir)), whole, whole, stored(dir)),
                };
            let copied = place.is_some() && passes > 0;
            let new = place.map_or(leg.fresh, |place| {
                let bytes_kept = kept.entry(place).or_insert(there);
                let before = replace(bytes_kept, stays.max(*bytes_kept));
                (before as f64) < stays as f64 * FILLED_FROM
            });
            // A warm pool takes a read of all rows.
            let once = seconds_of(bytes as f64 / COPY_BYTES_A_SECOND);
            let plan = self.parts[leg.part].plan();
            let warms = plan.is_some_and(|plan| plan.before.warm == Warm::Pool);
            let filling = fill + START * u32::from(copied);
            let times = [(leg.fresh, START), (new, filling), (leg.fresh && copied, once)];
            passing = passing.max(passes);
            LegEstimate {
                preparing: times.map(|(takes, time)| time * u32::from(takes)).iter().sum(),
                warming: once * u32::from(warms),
                measuring: each * leg.cells.len() as u32,
            }
        };
        let legs = legs.iter().map(estimate_leg).collect();
        let disk_bytes = kept.into_values().fold(passing, u64::saturating_add);
        Estimate { legs, disk_bytes }
    }
}

/// Names a server that is there, as far as the profile tells it from others.
fn name_server(server: &Server) -> String {
    let Server { url, defaults_file, host, port, socket, database, given, .. } = server;
    let url = url.as_ref().map(Secret::expose);
    let given = given.as_ref().map(|given| &given.address);
    format!("{:?}", (url, defaults_file, host, port, socket, database, given))
}

pub(super) fn describe(estimate: &Estimate, unknown: &str) -> String {
    let sum = |time: fn(&LegEstimate) -> Duration| about(estimate.legs.iter().map(time).sum());
    let (preparing, measuring) = (sum(|leg| leg.preparing + leg.warming), sum(|leg| leg.measuring));
    let (paces, copied) = ([SBTEST.1, PHPTEST.1], COPY_BYTES_A_SECOND / 1e6);
    let [sbtest, phptest] = paces.map(|pace| units::count(pace as u64));
    format!(
        "estimate   {preparing} to prepare and start, {measuring} to measure; {:.1} GB on disk{unknown}\n\
         assumed    {} ({}) bytes a row of sbtest (phptest), {sbtest} ({phptest}) rows/s filled, \
         {copied} MB/s copied or read\n",
        estimate.disk_bytes as f64 / 1e9,
        SBTEST.0,
        PHPTEST.0,
    )
}

/// Returns the mean over the steps, which are as many at each rate.
fn mean_seconds_of_op(rates: &[f64]) -> f64 {
    if rates.is_empty() {
        return 1.0 / OPS_A_SECOND;
    }
    rates.iter().map(|rate| 1.0 / rate).sum::<f64>() / rates.len() as f64
}

fn guess(part: &RunSpec) -> (u64, Duration, Duration) {
    let bytes = |tables: u32, rows: u64, row: u64| {
        let of_one = rows.saturating_mul(row).saturating_add(TABLE_BYTES);
        of_one.saturating_mul(tables.into())
    };
    let time = |n: u32, rows: u64, pace: f64| seconds_of(f64::from(n) * rows as f64 / pace);
    match &part.what {
        What::Sweep(plan, Dataset { schema, tables, rows, .. }) => {
            let (row, pace) = if *schema == Schema::Phptest { PHPTEST } else { SBTEST };
            let window = match plan.stop {
                StopAt::Time(time) => time,
                StopAt::Ops(ops) => seconds_of(ops as f64 * mean_seconds_of_op(&plan.rates)),
            };
            let each = plan.warmup + AROUND_STEP + window;
            (bytes(*tables, *rows, row), time(*tables, *rows, pace), each)
        }
        What::Load(LoadSpec {
            tables, source: LoadSource::Generated { rows, .. }, insert, ..
        }) => {
            let single = *insert == InsertMode::Single;
            let pace = if single { SINGLE_ROWS_A_SECOND } else { SBTEST.1 };
            (bytes(*tables, *rows, SBTEST.0), Duration::ZERO, time(*tables, *rows, pace))
        }
        What::Load(_) => (0, Duration::ZERO, TEST),
        What::Suite(suite) => (0, Duration::ZERO, TEST * suite.tests.len() as u32),
    }
}

fn about(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds.div_ceil(60)),
        _ => format!("{:.1}h", time.as_secs_f64() / 3600.0),
    }
}
