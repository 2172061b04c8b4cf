//! The verb for SQL without a profile.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::workload::{WorkloadArgs, run};
use crate::error::{Error, Result};
use crate::plan::value::{RowsOrAuto, Whole};
use crate::plan::{Ahi, Warm};
use crate::progress::say;
use crate::workload::{Workload, script};

#[derive(clap::Args, Debug, Clone)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["file", "queries"]))]
#[command(after_help = "\
All statements are one operation, in their order. It is a transaction where the first statement is
BEGIN and the last one COMMIT. Any number of rows is right. In a statement, {random A..B} is a
number as --distribution says, {digits N} are random digits, and {table} is a table that prepare
made. For the same number twice: SET @id = {random A..B} behind BEGIN, then @id. With CREATE, ALTER,
RENAME or USE among several statements they are sent as text, unless --statements says otherwise.")]
pub(crate) struct SqlArgs {
    /// File of SQL statements, separated by semicolons; - is standard input
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// An SQL statement; may be given several times
    #[arg(long = "query", value_name = "SQL", conflicts_with = "file")]
    pub queries: Vec<String>,

    #[command(flatten)]
    pub workload: WorkloadArgs,
}

/// Upper limit on a file's bytes: it is sent again and again.
const FILE_MAX: u64 = 64 << 20;

pub(super) fn sql(args: SqlArgs) -> Result<()> {
    let SqlArgs { file, queries, workload: mut args } = args;
    let workload = match &file {
        Some(path) => of_file(path)?,
        None => script("sql", queries.join(";\n").as_bytes(), "--query")?,
    };
    // Check loadgen's tables only if the SQL has {table}, or a flag asks for them.
    let knobs = &mut args.knobs;
    let rows = knobs.rows.as_ref().and_then(|rows| rows.0);
    // A private server has only the tables that are made for it.
    let makes = !args.measure.sandbox.is_empty() && workload.names_tables();
    if knobs.tables.is_none() && rows.is_none() && !workload.has_table() && !makes {
        (knobs.tables, knobs.rows) = (Some(Whole(0)), Some(RowsOrAuto(Some(0))));
        if knobs.warm == Some(Warm::Pool) || knobs.ahi == Some(Ahi::Warm) {
            return Err(Error::usage("--warm and --ahi read tables that loadgen prepare made")
                .hint("--tables N says how many of them there are"));
        }
    }
    if args.knobs.statements.is_none() && workload.defines() {
        say("Statements are sent as text: some of them make what others name.");
    }
    run(workload, args)
}

fn of_file(path: &Path) -> Result<Workload> {
    let refused = |what: &dyn std::fmt::Display| {
        Error::usage(format!("--file {}: {what}", path.display()))
            .hint("a file of SQL statements, or --query 'SELECT 1'")
    };
    let mut text = Vec::new();
    let stdin = path.as_os_str() == "-";
    let read = if stdin {
        std::io::stdin().take(FILE_MAX + 1).read_to_end(&mut text)
    } else {
        let file = std::fs::File::open(path).map_err(|e| refused(&e))?;
        file.take(FILE_MAX + 1).read_to_end(&mut text)
    };
    read.map_err(|e| refused(&e))?;
    if text.len() as u64 > FILE_MAX {
        return Err(refused(&"more than 64 MiB of SQL"));
    }
    let stem = path.file_stem().filter(|_| !stdin).unwrap_or_default().to_string_lossy();
    script(&stem, &text, &path.display().to_string())
}
