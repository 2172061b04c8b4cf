//! One timed load → one summary.

use crate::error::{Error, Result};
use crate::load::reload::{Reload, Reloaded};
use crate::plan::timed::{InsertMode, LoadSource, LoadSpec};
use crate::progress::Progress;
use crate::run::timed::{Measured, Scene, Turn, count};
use crate::summary::{self, Summary};

/// Loads once, and counts afterwards what is there; with `force` over tables that prepare made, too.
///
/// # Errors
///
/// Before the first statement: a file that is not there, a server that does not take such
/// statements. What ends the load later is in [`Measured::error`].
pub async fn measure(
    scene: &Scene<'_>,
    spec: &LoadSpec,
    force: bool,
    turn: &Turn,
    progress: &mut Progress,
) -> Result<Measured> {
    let Scene { target, opts, stop, .. } = scene;
    let reload = Reload::open(target, opts, spec, force, stop, progress).await?;
    let start = scene.start().await?;
    let (mut loaded, rest) = reload.run(scene.stop, progress).await?;
    let finish = scene.finish(&start, loaded.began).await;
    let mut error = loaded.error.take();
    let verified = error.is_none();
    if verified {
        progress.update(|| "counting the rows".to_owned());
        error = rest.verify(&loaded, scene.stop).await.err();
        progress.clear();
    }
    if error.is_none() && loaded.tables.is_empty() {
        // What feeds a pipe may have failed.
        let text = format!("{}: no table was loaded", spec.name());
        error = Some(
            Error::data(text).hint("is the dump whole? mysqldump writes nothing where it fails"),
        );
    }
    let verified = verified && error.is_none();
    let title = Some(turn.title.clone().unwrap_or_else(|| spec.name()));
    let mut summary = scene.frame(&Turn { title, ..turn.clone() }, start, finish, &mut error)?;
    let names: Vec<String> = loaded.tables.iter().map(|table| table.name.clone()).collect();
    (summary.server.data_bytes, summary.server.table_formats) =
        scene.table_facts(&names).await.unzip();
    let (data, pool) = (summary.server.data_bytes, summary.server.buffer_pool_bytes);
    summary.server.class = summary::class_by_size(data, pool);
    fill(&mut summary, spec, &loaded, verified)?;
    Ok(Measured { summary, error })
}

/// What the run was, into its frame.
fn fill(summary: &mut Summary, spec: &LoadSpec, loaded: &Reloaded, verified: bool) -> Result<()> {
    summary.started_at = loaded.started_at.to_string();
    summary.measured_s = loaded.measured_s;
    let cost = loaded.cost;
    count(summary, loaded.statements, loaded.rows, cost.user.as_secs_f64(), cost.sys.as_secs_f64());
    summary.workload.statements = vec![summary::StatementText {
        kind: "insert".to_owned(),
        sql: statement(spec).to_owned(),
        repeat: 1,
    }];
    summary.plan.tables = loaded.tables.len() as u32;
    summary.plan.rows = loaded.tables.iter().map(|table| table.rows).max().unwrap_or(0);
    if let LoadSource::Generated { rows, data_seed } = spec.source {
        (summary.plan.tables, summary.plan.rows) = (spec.tables, rows);
        summary.plan.data_seed = Some(u64::from(data_seed));
    }
    summary.totals.errors.clone_from(&loaded.errors);
    let ops = |table: &crate::load::reload::LoadedTable| summary::TableOps {
        table: table.name.clone(),
        ops: table.inserts,
    };
    summary.totals.per_table = loaded.tables.iter().map(ops).collect();
    summary.latency.service = loaded.timeline.service.distribution()?;
    summary.latency.failed = loaded.timeline.failed.distribution()?;
    summary.timeline.clone_from(&loaded.timeline.entries);
    summary.load = Some(load(spec, loaded, verified));
    if loaded.warnings > 0 {
        let message = format!("the server gave {} warnings for the rows", loaded.warnings);
        summary.warnings.push(summary::Warning { code: "server_warnings".to_owned(), message });
    }
    if let (LoadSource::Dump { path }, Some(asked)) = (&spec.source, &spec.charset)
        && !asked.eq_ignore_ascii_case(&loaded.charset)
    {
        let message = format!(
            "{} says SET NAMES {} itself: --charset {asked} was not what its rows were sent in",
            path.display(),
            loaded.charset
        );
        summary.warnings.push(summary::Warning { code: "charset".to_owned(), message });
    }
    Ok(())
}

fn load(spec: &LoadSpec, loaded: &Reloaded, verified: bool) -> summary::Load {
    let rows = |table: &crate::load::reload::LoadedTable| summary::TableRows {
        table: table.name.clone(),
        rows: table.rows,
    };
    let (file, generated) = match &spec.source {
        LoadSource::Generated { .. } => (None, true),
        LoadSource::Dump { path } => (Some(path.display().to_string()), false),
    };
    let per_s = loaded.rows as f64 / loaded.measured_s;
    summary::Load {
        source: if generated { "generated" } else { "dump" }.to_owned(),
        file,
        mode: generated.then(|| spec.insert.to_string()),
        insert_bytes: match spec.insert {
            InsertMode::Extended { bytes } if generated => Some(bytes),
            _ => None,
        },
        rows: loaded.rows,
        rows_per_s: if loaded.measured_s > 0.0 { per_s } else { 0.0 },
        statements: loaded.statements,
        bytes: loaded.bytes,
        charset: loaded.charset.clone(),
        character_sets: loaded.character_sets.clone(),
        tables: loaded.tables.iter().map(rows).collect(),
        verified,
    }
}

fn statement(spec: &LoadSpec) -> &'static str {
    match (&spec.source, spec.insert) {
        (LoadSource::Dump { .. }, _) => "the dump's own",
        (_, InsertMode::Extended { .. }) => "INSERT INTO {table} VALUES (…),(…),…",
        (_, InsertMode::Single) => "INSERT INTO {table} VALUES (…)",
        (_, InsertMode::LoadData) => "LOAD DATA LOCAL INFILE … INTO TABLE {table}",
    }
}
