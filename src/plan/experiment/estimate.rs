//! The plan of an experiment as text, with a guess at what it takes before anything is connected to.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Cell, Experiment, Leg, Part, Source, Subject, What};
use crate::error::line;
use crate::plan::profile::{Data, Turns};
use crate::plan::timed::{InsertMode, LoadSource, LoadSpec};
use crate::plan::{Plan, StopAt, seconds_of, units};
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

impl Estimate {
    fn count_data(&mut self, leg: &Leg, subject: &Subject, part: &Part) {
        let (bytes, fill) = data(part);
        let whole = bytes + SERVER_BYTES;
        // Labels of one server, for all that is known, share its tables. A copied one goes away with
        // its label: only that it is there counts.
        let (place, stays, passes) = match &subject.source {
            Source::Existing(_) => (Some("a server that is there".to_owned()), bytes, 0),
            Source::Sandbox(private) => match &private.data {
                Data::ThrowAway => (None, 0, whole),
                Data::Keep(dir) => (Some(dir.display().to_string()), whole, 0),
                Data::Copied => (Some(format!("label {}", subject.label)), 1, 2 * whole),
                Data::CopyOf(dir) => (Some(dir.display().to_string()), whole, whole),
            },
        };
        let copied = place.is_some() && passes > 0;
        let new = match place {
            None => leg.fresh,
            Some(place) => {
                let there = self.kept.entry(place).or_default();
                let new = *there < stays;
                *there = stays.max(*there);
                new
            }
        };
        self.preparing += START * u32::from(leg.fresh);
        if new {
            self.preparing += fill + START * u32::from(copied);
        }
        if leg.fresh && copied {
            self.preparing += seconds_of(bytes as f64 / COPY_BYTES_A_SECOND);
        }
        self.passing = self.passing.max(passes);
    }
}

fn estimate(experiment: &Experiment, wanted: impl Fn(&Cell) -> bool) -> Estimate {
    let mut estimate = Estimate::default();
    for leg in experiment.legs(wanted) {
        let (subject, part) = (&experiment.subjects[leg.subject], &experiment.parts[leg.part]);
        estimate.count_data(&leg, subject, part);
        let each = match &part.what {
            What::Sweep(plan, _) => step_time(plan) + AROUND_STEP,
            What::Load(load) => load_time(load),
            What::Suite(suite) => TEST * suite.tests.len() as u32,
        };
        estimate.measuring += each * leg.cells.len() as u32;
    }
    estimate
}

pub(super) fn list(experiment: &Experiment, wanted: impl Fn(&Cell) -> bool + Copy) -> String {
    let mut text = String::new();
    let mut put = |name: &str, value: &str| text += &format!("{name:<10} {}\n", line(value));
    put("profile", &experiment.name);
    experiment.about.trim().lines().for_each(|about| put("", about.trim_end()));
    if !experiment.scale.is_full() {
        put("scale", &experiment.scale.factor().to_string());
    }
    let order = match experiment.order {
        Turns::InTurn => "each label with its repeats in turn",
        Turns::Interleaved => "labels interleaved, every second repeat backwards",
        Turns::Shuffled => "labels shuffled by the seed in each repeat",
    };
    let restart = if experiment.restart { "" } else { "; no restart between repeats" };
    put("order", &format!("{order}{restart}"));
    for subject in &experiment.subjects {
        put("label", &format!("{}  ({})", subject.label, source(subject)));
    }
    for part in &experiment.parts {
        put("run", &format!("{}: {}", part.title, describe(part)));
        part.gates.iter().for_each(|gate| put("gate", &format!("{}: {gate}", part.title)));
    }
    for (at, cell) in experiment.cells.iter().enumerate() {
        let (subject, part) = (&experiment.subjects[cell.subject], &experiment.parts[cell.part]);
        let rate = cell.rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
        let done = if wanted(cell) { "" } else { "  (measured already)" };
        text += &format!(
            "step {:>4} of {}  {}  {}  {}{rate}  repeat {} of {}{done}\n",
            at + 1,
            experiment.cells.len(),
            line(&subject.label),
            line(&part.title),
            terms::clients(cell.clients),
            cell.repeat,
            part.repeats,
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

/// Guesses the bytes of a part's tables, and how long `prepare` fills them.
fn data(part: &Part) -> (u64, Duration) {
    let (schema, tables, rows) = match &part.what {
        What::Sweep(_, dataset) => (dataset.schema, dataset.tables, dataset.rows),
        What::Load(LoadSpec { tables, source: LoadSource::Generated { rows, .. }, .. }) => {
            (Schema::Sbtest, *tables, *rows)
        }
        What::Load(_) | What::Suite(_) => return (0, Duration::ZERO),
    };
    let (row, pace) = if schema == Schema::Phptest { PHPTEST } else { SBTEST };
    let bytes = rows.saturating_mul(row).saturating_add(TABLE_BYTES);
    let fill = part.dataset().map_or(0.0, |_| f64::from(tables) * rows as f64 / pace);
    (u64::from(tables).saturating_mul(bytes), seconds_of(fill))
}

/// Guesses how long a step of a plan lasts, connecting not counted.
fn step_time(plan: &Plan) -> Duration {
    let window = match plan.stop {
        StopAt::Time(time) => time,
        StopAt::Ops(ops) => seconds_of(ops as f64 / OPS_A_SECOND),
    };
    plan.warmup + window
}

fn load_time(load: &LoadSpec) -> Duration {
    let LoadSource::Generated { rows, .. } = &load.source else { return TEST };
    let single = load.insert == InsertMode::Single;
    let pace = if single { SINGLE_ROWS_A_SECOND } else { SBTEST.1 };
    seconds_of(f64::from(load.tables) * *rows as f64 / pace)
}

fn source(subject: &Subject) -> String {
    let private = match &subject.source {
        Source::Existing(existing) if existing.start.is_empty() => {
            return "a server that is there".to_owned();
        }
        Source::Existing(_) => return "a server that commands start".to_owned(),
        Source::Sandbox(private) => private,
    };
    let program = private.program.as_ref().map(|path| path.display().to_string());
    let program = program.unwrap_or_else(|| "mariadbd or mysqld from PATH".to_owned());
    let data = match &private.data {
        Data::ThrowAway => "thrown away".to_owned(),
        Data::Copied => "copied".to_owned(),
        Data::Keep(dir) => format!("kept in {}", dir.display()),
        Data::CopyOf(dir) => format!("copied from {}", dir.display()),
    };
    let option = |(name, value): &(String, Option<String>)| {
        value.as_ref().map_or_else(|| format!(" {name}"), |value| format!(" {name}={value}"))
    };
    let options: String = private.options.iter().map(option).collect();
    format!("sandbox of {program}, data {data}{options}")
}

fn describe(part: &Part) -> String {
    let (plan, dataset) = match &part.what {
        What::Sweep(plan, dataset) => (plan, dataset),
        What::Load(LoadSpec { tables, source, insert, .. }) => {
            return match source {
                LoadSource::Generated { rows, .. } => {
                    format!("{tables} tables of {} rows, {insert}", units::count(*rows))
                }
                LoadSource::Dump { path } => path.display().to_string(),
            };
        }
        What::Suite(suite) => return format!("{} commands", suite.tests.len()),
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
