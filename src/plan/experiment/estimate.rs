//! What an experiment takes, guessed before anything is connected to.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::{Cell, Dataset, Experiment, Leg, Part, Source, Subject, What, step_time};
use crate::error::line;
use crate::plan::profile::{Data, Turns};
use crate::plan::timed::{InsertMode, LoadSource, LoadSpec};
use crate::plan::{StatementMode, seconds_of, units};
use crate::terms;
use crate::workload::Schema;

/// Bytes of a row on disk, its indexes included, and rows that a fill puts in a second, indexes
/// built: measured with 1M rows on a small machine.
const SBTEST: (u64, f64) = (240, 100_000.0);
/// The same of the table with more and longer columns and two indexes.
const PHPTEST: (u64, f64) = (330, 50_000.0);
/// What a table's file has at least.
const TABLE_BYTES: u64 = 8_000_000;
/// What a server has besides: system tables, logs.
const SERVER_BYTES: u64 = 200_000_000;
/// Rows a second of INSERTs of one row each.
const SINGLE_ROWS_A_SECOND: f64 = 8000.0;
/// Bytes that a copy of a data directory moves, a second.
const COPY_BYTES_A_SECOND: f64 = 300_000_000.0;
/// Starting a server and looking into it.
const START: Duration = Duration::from_secs(8);
/// Opening connections, reading counters, closing.
const AROUND_STEP: Duration = Duration::from_secs(1);
/// An external command, of which nothing is known.
const TEST: Duration = Duration::from_mins(1);

/// A guess at time and disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Estimate {
    /// Making tables, copying them, starting servers.
    preparing: Duration,
    /// Warm-ups and windows.
    measuring: Duration,
    /// The most that lies on disk at a time, bytes.
    disk_bytes: u64,
}

/// Guesses for the cells that are wanted.
fn estimate(experiment: &Experiment, wanted: impl Fn(&Cell) -> bool) -> Estimate {
    let mut estimate = Estimate::default();
    let mut kept: BTreeMap<String, u64> = BTreeMap::new();
    let mut passing = 0;
    for leg in experiment.legs(wanted) {
        let (subject, part) = (&experiment.subjects[leg.subject], &experiment.parts[leg.part]);
        count_data(&leg, subject, part, &mut estimate, &mut kept, &mut passing);
        let each = match &part.what {
            What::Sweep(plan, _) => step_time(plan) + AROUND_STEP,
            What::Load(load) => load_time(load),
            What::Suite(suite) => TEST * suite.tests.len() as u32,
        };
        estimate.measuring += each * leg.cells.len() as u32;
    }
    estimate.disk_bytes = kept.values().copied().fold(passing, u64::saturating_add);
    estimate
}

/// The whole plan as text, for `--list`.
pub(super) fn list(experiment: &Experiment, wanted: impl Fn(&Cell) -> bool + Copy) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{:<10} {}", "profile", line(&experiment.name));
    for about in experiment.about.trim().lines() {
        let _ = writeln!(text, "{:<10} {}", "", line(about.trim_end()));
    }
    if !experiment.scale.is_full() {
        let _ = writeln!(text, "{:<10} {}", "scale", experiment.scale.factor());
    }
    let order = match experiment.order {
        Turns::InTurn => "each label with its repeats in turn",
        Turns::Interleaved => "labels interleaved, every second repeat backwards",
        Turns::Shuffled => "labels shuffled by the seed in each repeat",
    };
    let restart = if experiment.restart { "" } else { "; no restart between repeats" };
    let _ = writeln!(text, "{:<10} {order}{restart}", "order");
    for subject in &experiment.subjects {
        let _ = writeln!(
            text,
            "{:<10} {}  ({})",
            "label",
            line(&subject.label),
            line(&source(subject))
        );
    }
    for part in &experiment.parts {
        let _ = writeln!(text, "{:<10} {}", "run", line(&describe(part)));
        for gate in &part.gates {
            let _ = writeln!(text, "{:<10} {}: {gate}", "gate", line(&part.title));
        }
    }
    for (at, cell) in experiment.cells.iter().enumerate() {
        let (subject, part) = (&experiment.subjects[cell.subject], &experiment.parts[cell.part]);
        let done = if wanted(cell) { "" } else { "  (measured already)" };
        let _ = writeln!(
            text,
            "step {:>4} of {}  {}  {}  {}{}  repeat {} of {}{done}",
            at + 1,
            experiment.cells.len(),
            line(&subject.label),
            line(&part.title),
            terms::clients(cell.clients),
            cell.rate.map_or_else(String::new, |rate| format!(" at {rate}/s")),
            cell.repeat,
            part.repeats,
        );
    }
    let estimate = estimate(experiment, wanted);
    let _ = writeln!(
        text,
        "estimate   {} to prepare and start, {} to measure; {} on disk",
        about(estimate.preparing),
        about(estimate.measuring),
        gigabytes(estimate.disk_bytes),
    );
    let _ = writeln!(
        text,
        "assumed    {} ({}) bytes a row of sbtest (phptest), {} ({}) rows/s filled, {} MB/s copied",
        SBTEST.0,
        PHPTEST.0,
        units::count(SBTEST.1 as u64),
        units::count(PHPTEST.1 as u64),
        COPY_BYTES_A_SECOND / 1e6,
    );
    text
}

/// Adds what the data of a leg takes.
fn count_data(
    leg: &Leg,
    subject: &Subject,
    part: &Part,
    estimate: &mut Estimate,
    kept: &mut BTreeMap<String, u64>,
    passing: &mut u64,
) {
    let bytes = data_bytes(part);
    let fill = part.dataset().map_or(Duration::ZERO, fill_time);
    let copy = seconds_of(bytes as f64 / COPY_BYTES_A_SECOND);
    if leg.fresh {
        estimate.preparing += START;
    }
    let mut keep = |place: String, most: u64| {
        let there = kept.entry(place).or_default();
        let new = *there < most;
        *there = most.max(*there);
        new
    };
    match &subject.source {
        Source::Existing(_) => {
            // Labels of one server, for all that is known, share its tables.
            if keep("a server that is there".to_owned(), bytes) {
                estimate.preparing += fill;
            }
        }
        Source::Sandbox(private) => match &private.data {
            Data::ThrowAway => {
                if leg.fresh {
                    estimate.preparing += fill;
                }
                *passing = (*passing).max(bytes + SERVER_BYTES);
            }
            Data::Keep(dir) => {
                if keep(dir.display().to_string(), bytes + SERVER_BYTES) {
                    estimate.preparing += fill;
                }
            }
            Data::Copied | Data::CopyOf(_) => {
                let (place, most) = match &private.data {
                    Data::CopyOf(dir) => (dir.display().to_string(), bytes + SERVER_BYTES),
                    _ => (format!("label {}", subject.label), 0),
                };
                // A copied one goes away with its label: only that it is there counts.
                if keep(place, most.max(1)) {
                    estimate.preparing += fill + START;
                }
                if leg.fresh {
                    estimate.preparing += copy;
                }
                let copies = if most == 0 { 2 } else { 1 };
                *passing = (*passing).max(copies * (bytes + SERVER_BYTES));
            }
        },
    }
}

fn data_bytes(part: &Part) -> u64 {
    let (schema, tables, rows) = match &part.what {
        What::Sweep(_, dataset) => (dataset.schema, dataset.tables, dataset.rows),
        What::Load(LoadSpec { tables, source: LoadSource::Generated { rows, .. }, .. }) => {
            (Schema::Sbtest, *tables, *rows)
        }
        What::Load(_) | What::Suite(_) => return 0,
    };
    let (row, _) = of_schema(schema);
    u64::from(tables).saturating_mul(rows.saturating_mul(row).saturating_add(TABLE_BYTES))
}

fn fill_time(dataset: &Dataset) -> Duration {
    let (_, pace) = of_schema(dataset.schema);
    seconds_of(f64::from(dataset.tables) * dataset.rows as f64 / pace)
}

fn of_schema(schema: Schema) -> (u64, f64) {
    match schema {
        Schema::Phptest => PHPTEST,
        Schema::Sbtest | Schema::Bulk => SBTEST,
    }
}

fn load_time(load: &LoadSpec) -> Duration {
    match &load.source {
        LoadSource::Generated { rows, .. } => {
            let pace = match load.insert {
                InsertMode::Single => SINGLE_ROWS_A_SECOND,
                InsertMode::Extended { .. } | InsertMode::LoadData => SBTEST.1,
            };
            seconds_of(f64::from(load.tables) * *rows as f64 / pace)
        }
        LoadSource::Dump { .. } => TEST,
    }
}

fn source(subject: &Subject) -> String {
    match &subject.source {
        Source::Existing(existing) if existing.start.is_empty() => "a server that is there".into(),
        Source::Existing(_) => "a server that commands start".into(),
        Source::Sandbox(private) => {
            let program = private.program.as_ref().map_or_else(
                || "mariadbd or mysqld from PATH".to_owned(),
                |path| path.display().to_string(),
            );
            let option = |(name, value): &(String, Option<String>)| match value {
                Some(value) => format!(" {name}={value}"),
                None => format!(" {name}"),
            };
            let options: String = private.options.iter().map(option).collect();
            let data = match &private.data {
                Data::ThrowAway => "data thrown away".to_owned(),
                Data::Copied => "data copied".to_owned(),
                Data::Keep(dir) => format!("data kept in {}", dir.display()),
                Data::CopyOf(dir) => format!("data copied from {}", dir.display()),
            };
            format!("sandbox of {program}, {data}{options}")
        }
    }
}

fn describe(part: &Part) -> String {
    match &part.what {
        What::Sweep(plan, dataset) => {
            let clients: Vec<String> = plan.clients.iter().map(u32::to_string).collect();
            let window = match plan.stop {
                super::StopAt::Time(time) => units::duration(time),
                super::StopAt::Ops(ops) => format!("{} ops", units::count(ops)),
            };
            let mode = match plan.statements {
                StatementMode::Prepared => "prepared",
                StatementMode::Text => "text",
            };
            let rows = units::count(dataset.rows);
            let tables = match dataset.tables {
                0 => format!("its own tables, keys to {rows}"),
                tables => format!("{tables} tables of {rows} rows"),
            };
            format!(
                "{}: {tables}, clients {}, warm-up {}, window {window}, {}, {mode}",
                part.title,
                clients.join(" "),
                units::duration(plan.warmup),
                plan.distribution,
            )
        }
        What::Load(load) => match &load.source {
            LoadSource::Generated { rows, .. } => format!(
                "{}: {} tables of {} rows, {}",
                part.title,
                load.tables,
                units::count(*rows),
                load.insert
            ),
            LoadSource::Dump { path } => format!("{}: {}", part.title, path.display()),
        },
        What::Suite(suite) => format!("{}: {} commands", part.title, suite.tests.len()),
    }
}

/// A guess does not need its seconds.
fn about(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds.div_ceil(60)),
        _ => format!("{:.1}h", time.as_secs_f64() / 3600.0),
    }
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}
