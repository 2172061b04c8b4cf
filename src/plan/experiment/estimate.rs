//! The plan of an experiment as text, with a guess at what it takes before anything is connected to.

use std::collections::BTreeMap;
use std::mem::replace;
use std::path::Path;
use std::time::Duration;

use super::{Cell, Dataset, Experiment, Part, What};
use crate::error::line;
use crate::plan::profile::{Data, Sandbox, Server, Setting, Turns};
use crate::plan::timed::{InsertMode, LoadSource, LoadSpec};
use crate::plan::{StopAt, seconds_of, units};
use crate::terms;
use crate::workload::Schema;

/// Bytes of a row on disk, its indexes included, and rows that a fill puts in a second, indexes
/// built: measured with 1M rows on a small machine.
const SBTEST: (u64, f64) = (240, 100_000.0);
const PHPTEST: (u64, f64) = (330, 50_000.0);
/// What a table's file has at least.
const TABLE_BYTES: u64 = 8_000_000;
/// What a server has besides: system tables, logs.
const SERVER_BYTES: u64 = 200_000_000;
/// Rows a second of INSERTs of one row each.
const SINGLE_ROWS_A_SECOND: f64 = 8000.0;
/// Bytes that a copy of a data directory moves, a second.
const COPY_BYTES_A_SECOND: f64 = 300_000_000.0;
const START: Duration = Duration::from_secs(8);
const AROUND_STEP: Duration = Duration::from_secs(1);
/// Ops a second that a small server does.
const OPS_A_SECOND: f64 = 5000.0;
/// An external command, of which nothing is known.
const TEST: Duration = Duration::from_mins(1);

#[derive(Default)]
struct Estimate {
    preparing: Duration,
    measuring: Duration,
    /// Bytes that stay, by their place.
    kept: BTreeMap<String, u64>,
    /// The most that lies elsewhere at a time, bytes.
    passing: u64,
}

fn estimate(experiment: &Experiment, wanted: impl Fn(&Cell) -> bool) -> Estimate {
    let mut estimate = Estimate::default();
    for leg in experiment.legs(wanted) {
        let subject = &experiment.subjects[leg.subject];
        let (bytes, fill, each) = guess(&experiment.parts[leg.part]);
        let whole = bytes + SERVER_BYTES;
        // Labels of one server, for all that is known, share its tables. A copied one goes away with
        // its label: only that it is there counts.
        let shown = |dir: &Path| dir.display().to_string();
        let (place, stays, passes) = match subject.server.sandbox.as_ref().map(Sandbox::data) {
            None => (Some("a server that is there".to_owned()), bytes, 0),
            Some(Data::ThrowAway) => (None, 0, whole),
            Some(Data::Keep(dir)) => (Some(shown(dir)), whole, 0),
            Some(Data::Copied) => (Some(format!("label {}", subject.label)), 1, 2 * whole),
            Some(Data::CopyOf(dir)) => (Some(shown(dir)), whole, whole),
        };
        let copied = place.is_some() && passes > 0;
        let new = place.map_or(leg.fresh, |place| {
            let there = estimate.kept.entry(place).or_default();
            let before = replace(there, stays.max(*there));
            before < stays
        });
        let copy = seconds_of(bytes as f64 / COPY_BYTES_A_SECOND);
        let filling = fill + START * u32::from(copied);
        for (takes, time) in [(leg.fresh, START), (new, filling), (leg.fresh && copied, copy)] {
            estimate.preparing += time * u32::from(takes);
        }
        estimate.passing = estimate.passing.max(passes);
        estimate.measuring += each * leg.cells.len() as u32;
    }
    estimate
}

/// Guesses the bytes of a part's tables, how long `prepare` fills them, and how long a cell takes.
fn guess(part: &Part) -> (u64, Duration, Duration) {
    let bytes = |tables: u32, rows: u64, row: u64| {
        let of_one = rows.saturating_mul(row).saturating_add(TABLE_BYTES);
        of_one.saturating_mul(tables.into())
    };
    let time =
        |tables: u32, rows: u64, pace: f64| seconds_of(f64::from(tables) * rows as f64 / pace);
    match &part.what {
        What::Sweep(plan, Dataset { schema, tables, rows, .. }) => {
            let (row, pace) = if *schema == Schema::Phptest { PHPTEST } else { SBTEST };
            let window = match plan.stop {
                StopAt::Time(time) => time,
                StopAt::Ops(ops) => seconds_of(ops as f64 / OPS_A_SECOND),
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

pub(super) fn list(experiment: &Experiment, wanted: impl Fn(&Cell) -> bool + Copy) -> String {
    let mut text = String::new();
    let mut put = |name: &str, value: &str| text += &format!("{name:<10} {}\n", line(value));
    let profile = &experiment.profile;
    put("profile", &profile.name);
    profile.about.trim().lines().for_each(|about| put("", about.trim_end()));
    if !experiment.scale.is_full() {
        put("scale", &experiment.scale.factor().to_string());
    }
    let order = match profile.order {
        Turns::InTurn => "each label with its repeats in turn",
        Turns::Interleaved => "labels interleaved, every second repeat backwards",
        Turns::Shuffled => "labels shuffled by the seed in each repeat",
    };
    let restart = if profile.restart { "" } else { "; no restart between repeats" };
    put("order", &format!("{order}{restart}"));
    for subject in &experiment.subjects {
        put("label", &format!("{}  ({})", subject.label, source(&subject.server)));
    }
    for part in &experiment.parts {
        put("run", &format!("{}: {}", part.title, describe(part)));
        part.gates.iter().for_each(|gate| put("gate", &format!("{}: {gate}", part.title)));
    }
    let of = experiment.cells.len();
    for (at, cell) in (1..).zip(&experiment.cells) {
        let (subject, part) = (&experiment.subjects[cell.subject], &experiment.parts[cell.part]);
        let (label, title, repeats) = (line(&subject.label), line(&part.title), part.repeats);
        let rate = cell.rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
        let (clients, repeat) = (terms::clients(cell.clients), cell.repeat);
        let done = if wanted(cell) { "" } else { "  (measured already)" };
        text += &format!(
            "step {at:>4} of {of}  {label}  {title}  {clients}{rate}  repeat {repeat} of {repeats}{done}\n"
        );
    }
    let estimate = estimate(experiment, wanted);
    let disk = estimate.kept.values().copied().fold(estimate.passing, u64::saturating_add);
    let (preparing, measuring) = (about(estimate.preparing), about(estimate.measuring));
    let (paces, copied) = ([SBTEST.1, PHPTEST.1], COPY_BYTES_A_SECOND / 1e6);
    let [sbtest, phptest] = paces.map(|pace| units::count(pace as u64));
    text += &format!(
        "estimate   {preparing} to prepare and start, {measuring} to measure; {:.1} GB on disk\n\
         assumed    {} ({}) bytes a row of sbtest (phptest), {sbtest} ({phptest}) rows/s filled, \
         {copied} MB/s copied\n",
        disk as f64 / 1e9,
        SBTEST.0,
        PHPTEST.0,
    );
    text
}

fn source(server: &Server) -> String {
    let Some(sandbox) = &server.sandbox else {
        let how = if server.start.is_empty() { "is there" } else { "commands start" };
        return format!("a server that {how}");
    };
    let program = sandbox.program.as_ref().map(|path| path.display().to_string());
    let program = program.unwrap_or_else(|| "mariadbd or mysqld from PATH".to_owned());
    let data = match sandbox.data() {
        Data::ThrowAway => "thrown away".to_owned(),
        Data::Copied => "copied".to_owned(),
        Data::Keep(dir) => format!("kept in {}", dir.display()),
        Data::CopyOf(dir) => format!("copied from {}", dir.display()),
    };
    let option = |(name, value): (&String, &Setting)| {
        value.0.as_ref().map_or_else(|| format!(" {name}"), |value| format!(" {name}={value}"))
    };
    let options: String = sandbox.options.iter().map(option).collect();
    format!("sandbox of {program}, data {data}{options}")
}

fn describe(part: &Part) -> String {
    let (plan, dataset) = match &part.what {
        What::Sweep(plan, dataset) => (plan, dataset),
        What::Suite(suite) => return format!("{} commands", suite.tests.len()),
        What::Load(LoadSpec { tables, source, insert, .. }) => match source {
            LoadSource::Dump { path } => return path.display().to_string(),
            LoadSource::Generated { rows, .. } => {
                return format!("{tables} tables of {} rows, {insert}", units::count(*rows));
            }
        },
    };
    let clients: Vec<String> = plan.clients.iter().map(u32::to_string).collect();
    let (clients, warmup) = (clients.join(" "), units::duration(plan.warmup));
    let window = match plan.stop {
        StopAt::Time(time) => units::duration(time),
        StopAt::Ops(ops) => format!("{} ops", units::count(ops)),
    };
    let rows = units::count(dataset.rows);
    let tables = match dataset.tables {
        0 => format!("its own tables, keys to {rows}"),
        tables => format!("{tables} tables of {rows} rows"),
    };
    let (distribution, mode) = (plan.distribution, plan.statements);
    format!(
        "{tables}, clients {clients}, warm-up {warmup}, window {window}, {distribution}, {mode}"
    )
}

/// Shows a guess, which does not need its seconds.
fn about(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds.div_ceil(60)),
        _ => format!("{:.1}h", time.as_secs_f64() / 3600.0),
    }
}
