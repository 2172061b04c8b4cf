//! The verb import: results of other programs beside loadgen's own.

use std::path::PathBuf;

use jiff::Timestamp;

use super::workload::check_notes;
use crate::error::Result;
use crate::plan::defaults;
use crate::plan::value::{self, RowCount, TableCount};
use crate::summary::Imported;
use crate::sysbench::import as import_sysbench;
use crate::workload::Distribution;

/// The program whose output it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Printed {
    Sysbench,
}

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
Reads what sysbench 0.4, 0.5, 1.0 and 1.1 print. Each whole run becomes a file that report and compare
read beside what loadgen measured; docs/user/from-sysbench.md says what is known of it.")]
pub(crate) struct ImportArgs {
    /// The program that printed it: sysbench
    #[arg(value_name = "PROGRAM", value_enum, hide_possible_values = true)]
    pub program: Printed,

    /// Its outputs; several runs may be in one
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// The row of the table [default: --server-version, else the file's name]
    #[arg(long, value_name = "NAME", value_parser = value::label)]
    pub label: Option<String>,

    /// The workload, where the file does not tell, such as read-only or oltp_read_only
    #[arg(long, value_name = "NAME", value_parser = value::label)]
    pub workload: Option<String>,

    /// The server's version
    #[arg(long, value_name = "VERSION", value_parser = value::label)]
    pub server_version: Option<String>,

    /// Tables [default: as the file tells]
    #[arg(long, value_name = "N")]
    pub tables: Option<TableCount>,

    /// Rows of each table [default: as the file tells]
    #[arg(long, value_name = "N")]
    pub rows: Option<RowCount>,

    /// Distribution of the keys [default: as the file tells]
    #[arg(long, value_name = "NAME")]
    pub distribution: Option<Distribution>,

    /// The start of the runs, such as 2009-07-14T12:00:00Z [default: the file's time]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub started_at: Option<Timestamp>,

    /// Something to keep with the runs; may be given several times
    #[arg(long = "note", value_name = "KEY=VALUE", value_parser = value::key_value)]
    pub notes: Vec<(String, String)>,

    /// Directory of the summaries
    #[arg(long, value_name = "DIR", default_value = defaults::OUT)]
    pub out: PathBuf,
}

fn time(text: &str) -> Result<Timestamp, String> {
    let wanted = "a time with its zone: 2009-07-14T12:00:00Z or 2009-07-14T14:00:00+02:00";
    text.parse().map_err(|_: jiff::Error| wanted.to_owned())
}

pub(super) fn import(args: ImportArgs) -> Result<()> {
    let Printed::Sysbench = args.program;
    check_notes(&args.notes)?;
    let options = Imported {
        label: args.label.or_else(|| args.server_version.clone()).unwrap_or_default(),
        workload: args.workload.unwrap_or_default(),
        server_version: args.server_version,
        tables: args.tables.map(TableCount::small),
        rows: args.rows.map(|rows| rows.0),
        distribution: args.distribution.map(|of| of.to_string()),
        started_at: args.started_at.map_or_else(String::new, |at| at.to_string()),
        notes: args.notes.into_iter().collect(),
        ..Imported::default()
    };
    import_sysbench(&args.files, options, &args.out)
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn time_without_a_zone_is_refused_with_examples_that_are_taken() {
        let refused = time("2009-07-14T12:00:00").expect_err("no zone");
        let examples: Vec<&str> = refused.split(' ').filter(|word| word.contains('T')).collect();
        assert!(examples.len() == 2 && examples.iter().all(|text| time(text).is_ok()), "{refused}");
    }
}
