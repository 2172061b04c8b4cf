//! Makes an engine plan from sysbench's settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::arguments::script_of;
use super::options::OptionValues;
use super::settings::{Settings, Test};
use crate::error::Result;
use crate::plan::knobs::Knobs;
use crate::plan::script::workload_of;
use crate::plan::{Plan, Rules, Script, StatementMode, StopAt, limits};
use crate::workload::{Workload, named};

/// `oltp_insert` with ids from the client.
const INSERT_UNIQUE: &str = include_str!("../../profiles/workloads/insert-unique.toml");
/// The counts of the statements that `--range_selects=off` leaves out.
const RANGES: [&str; 4] = ["simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges"];

pub(super) fn plan(settings: &Settings, script: Option<&Arc<Script>>, seed: u64) -> Result<Plan> {
    let text = matches!(settings.test, Test::Insert | Test::BulkInsert) || !settings.prepared;
    let stop = match (settings.time.is_zero(), settings.events) {
        (false, _) => StopAt::Time(settings.time),
        (true, 0) => StopAt::Time(limits::PHASE_MAX),
        (true, events) => StopAt::Ops(events),
    };
    let open = settings.rate > 0;
    // bulk_insert has a table a client; these cases know of one only.
    let tables = match settings.test {
        Test::BulkInsert => settings.threads,
        Test::RandomPoints | Test::RandomRanges | Test::Script => 1,
        _ => settings.tables,
    };
    Ok(Plan {
        tables: Some(tables),
        rows: Some(settings.table_size),
        clients: vec![settings.threads],
        warmup: settings.values.seconds("warmup-time"),
        stop,
        rates: if open { vec![settings.rate as f64] } else { Vec::new() },
        distribution: settings.distribution,
        statements: if text { StatementMode::Text } else { StatementMode::Prepared },
        // One thread has one queue, as in sysbench.
        engine_threads: open.then_some(1),
        reconnect_every: Some(settings.values.count("reconnect"))
            .filter(|n| *n > 0 && script.is_none()),
        rules: Rules::sysbench(
            settings.ignored.clone(),
            (settings.events > 0).then_some(settings.events),
            settings.forced_shutdown,
        ),
        script: script.cloned(),
        ..Knobs::default().resolve(workload(settings)?, seed)?
    })
}

fn workload(settings: &Settings) -> Result<Workload> {
    let values = &settings.values;
    if let Some(call) = &settings.script {
        return Ok(workload_of(&call.path));
    }
    if settings.test == Test::Insert && !values.on("auto-inc") {
        return Workload::parse(INSERT_UNIQUE, "oltp_insert");
    }
    let mut workload = named(script_of(settings.test)).expect("the common script is not run");
    match settings.test {
        Test::UpdateIndex => workload.repeat(values.count("index-updates")),
        Test::UpdateNonIndex => workload.repeat(values.count("non-index-updates")),
        _ => {}
    }
    if !values.on("range-selects") {
        workload.leave_out(&RANGES);
    }
    let options = options(&workload, settings.test, values);
    workload.with_options(&options)
}

pub(super) fn options(
    workload: &Workload,
    test: Test,
    values: &OptionValues,
) -> BTreeMap<String, u64> {
    let ranges = values.on("range-selects");
    let mut options = BTreeMap::new();
    for name in workload.options.keys() {
        let value = match name.as_str() {
            "table_each" => 1,
            // sysbench has no such option.
            "bulk_bytes" => continue,
            "skip_trx" => values.on(name).into(),
            "random_ranges" => values.count("number-of-ranges"),
            // The script fixes it.
            "point_selects" if test == Test::PointSelect => 1,
            name if RANGES.contains(&name) && !ranges => 0,
            name => values.count(name),
        };
        options.insert(name.clone(), value);
    }
    options
}
