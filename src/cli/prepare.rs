//! `loadgen prepare`: create and fill tables.

use super::{ServerArgs, listen};
use crate::error::{Error, Result};
use crate::plan::defaults;
use crate::plan::experiment::{Dataset, Method};
use crate::plan::value::{self, RowCount, TableCount};
use crate::run::measure;
use crate::workload::Schema;

/// How rows get into the tables (`--fill`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Fill {
    /// LOAD DATA LOCAL where the server allows it and INSERT is not faster
    #[default]
    Auto,
    LoadData,
    Insert,
}

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
Rows are made from the data seed, the table and the id alone. An interrupted fill is completed by
the same command; on finished tables it ends at once. Tables that prepare did not make are never
touched.

Examples:
  loadgen prepare --tables 8 --rows 16M
  loadgen prepare --tables 8 --rows 16M --data-seed 2 --force
  loadgen prepare --schema phptest --rows 1M")]
pub(crate) struct PrepareArgs {
    /// Which tables: sbtest (sysbench's), phptest (the suite of 2007) or bulk (of bulk-insert)
    #[arg(long, value_name = "NAME", hide_possible_values = true, default_value_t, value_enum)]
    pub schema: Schema,

    /// Tables: sbtest1 to sbtestN, for one
    #[arg(long, value_name = "N", default_value = "1")]
    pub tables: TableCount,

    /// Rows of each table, up to 10G [default: 10k; bulk has none]
    #[arg(long, value_name = "N")]
    pub rows: Option<RowCount>,

    /// Seed of the rows' content
    #[arg(long, value_name = "N", default_value_t = defaults::DATA_SEED)]
    pub data_seed: u32,

    /// How the rows get there: auto, load-data (LOAD DATA LOCAL) or insert
    #[arg(long, value_name = "METHOD", hide_possible_values = true, default_value_t, value_enum)]
    pub fill: Fill,

    /// Connections that fill [default: two a core of this machine, 2 to 16]
    #[arg(long, value_name = "N")]
    pub jobs: Option<u32>,

    /// Character set of the tables [default: the server's]
    #[arg(long, value_name = "NAME", value_parser = value::charset)]
    pub charset: Option<String>,

    /// Drop the tables that prepare made, whatever they hold, and fill them again
    #[arg(long)]
    pub force: bool,

    /// Do not ask before dropping
    #[arg(long)]
    pub yes: bool,

    #[command(flatten)]
    pub server: ServerArgs,
}

impl clap::ValueEnum for Schema {
    fn value_variants<'a>() -> &'a [Schema] {
        &Schema::ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(self.prefix().into())
    }
}

pub(super) fn run(args: PrepareArgs) -> Result<()> {
    let rows = match args.rows {
        Some(rows) => rows.0,
        None if args.schema.filled() => defaults::ROWS.parse::<RowCount>().map_err(Error::usage)?.0,
        None => 0,
    };
    let tables = Dataset {
        schema: args.schema,
        tables: args.tables.small(),
        rows,
        data_seed: args.data_seed,
        fill: match args.fill {
            Fill::Auto => None,
            Fill::LoadData => Some(Method::LoadData),
            Fill::Insert => Some(Method::Insert),
        },
        jobs: args.jobs,
        charset: args.charset,
        force: args.force,
        passing: false,
    };
    let progress = args.server.display.progress();
    measure::prepare(&tables, args.yes, &args.server.connection, progress, &listen()?)
}
