//! Verbs of the tables: prepare, cleanup, verify.

use std::path::PathBuf;

use super::shared::{ServerArgs, listen, summary_paths};
use crate::error::Result;
use crate::plan::defaults;
use crate::plan::experiment::{Dataset, Method};
use crate::plan::value::{self, RowCount, TableCount};
use crate::run::measure;
use crate::workload::Schema;

/// Method of filling tables (`--fill`).
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
touched.")]
pub(crate) struct PrepareArgs {
    /// Kind of tables: sbtest (sysbench's), phptest (the suite of 2007) or bulk (of bulk-insert)
    #[arg(long, value_name = "NAME", hide_possible_values = true, default_value_t, value_enum)]
    pub schema: Schema,

    /// Tables, for example sbtest1 to sbtestN
    #[arg(long, value_name = "N", default_value = "1")]
    pub tables: TableCount,

    /// Rows of each table, up to 10G [default: 10k; bulk has none]
    #[arg(long, value_name = "N")]
    pub rows: Option<RowCount>,

    /// Seed of the rows' content
    #[arg(long, value_name = "N", default_value_t = defaults::DATA_SEED)]
    pub data_seed: u32,

    /// Method of filling: auto, load-data (LOAD DATA LOCAL) or insert
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

pub(super) fn prepare(args: PrepareArgs) -> Result<()> {
    let usual = if args.schema.filled() { defaults::ROWS } else { 0 };
    let (tables, rows) = (args.tables.small(), args.rows.map_or(usual, |rows| rows.0));
    let fill = match args.fill {
        Fill::Auto => None,
        Fill::LoadData => Some(Method::LoadData),
        Fill::Insert => Some(Method::Insert),
    };
    let PrepareArgs { schema, data_seed, jobs, charset, force, yes, server, .. } = args;
    let dataset = Dataset { schema, tables, rows, data_seed, charset, jobs, force, fill };
    let ServerArgs { display, connection } = server;
    measure::prepare(&dataset, yes, (&connection, display.progress(), &listen()?))
}

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
The tables are known by the mark that prepare leaves in their COMMENT; others of the same names,
such as sysbench's, stay.")]
pub(crate) struct CleanupArgs {
    /// Do not ask before dropping; needed where there is no terminal to ask at
    #[arg(long)]
    pub yes: bool,

    #[command(flatten)]
    pub server: ServerArgs,
}

pub(super) fn cleanup(args: CleanupArgs) -> Result<()> {
    let CleanupArgs { yes, server: ServerArgs { display, connection } } = args;
    measure::cleanup(yes, (&connection, display.progress(), &listen()?))
}

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
Reads every row of the tables that prepare made. Name all directories that runs since then wrote
to: verify blames another program for a write that no summary has. Exit status: 0 all there,
4 something is lost or damaged or an index disagrees, 98 something cannot be judged
(docs/reference/verify.md says what and why).")]
pub(crate) struct VerifyArgs {
    /// Summaries, or directories of them [default: results, where it is there]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Count also what was written on another server: this one is its replica or has its data
    #[arg(long)]
    pub elsewhere: bool,

    #[command(flatten)]
    pub server: ServerArgs,
}

pub(super) fn verify(args: VerifyArgs) -> Result<()> {
    let VerifyArgs { paths, elsewhere, server: ServerArgs { display, connection } } = args;
    let paths = summary_paths(paths)?;
    measure::verify(&paths, elsewhere, (&connection, display.progress(), &listen()?))
}
