//! The verb for SQL without a profile.

use std::path::PathBuf;

use super::workload::{WorkloadArgs, sweep};
use crate::error::{Error, Result};
use crate::plan::group::{find_builtin, schemas};
use crate::plan::value::{RowsOrAuto, Whole};
use crate::plan::{Ahi, Warm};
use crate::progress::say;
use crate::workload::{script, script_of_file};

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

pub(super) fn sql(args: SqlArgs) -> Result<()> {
    let SqlArgs { file, queries, workload: mut args } = args;
    let workload = match &file {
        Some(path) => script_of_file(path, "--file ")?,
        None => script("sql", join_queries(&queries).as_bytes(), "--query")?,
    };
    // Check loadgen's tables only if the SQL has {table}, or a flag asks for them.
    let knobs = &mut args.knobs;
    let rows = knobs.rows.as_ref().and_then(|rows| rows.0);
    // A private server has only the tables that are made for it.
    let makes = !args.measure.sandbox.is_empty() && workload.names_tables();
    let beside = !schemas(&knobs.groups, &find_builtin).is_empty();
    if knobs.tables.is_none() && rows.is_none() && !workload.has_table() && !makes && !beside {
        (knobs.tables, knobs.rows) = (Some(Whole(0)), Some(RowsOrAuto(Some(0))));
        if knobs.warm == Some(Warm::Pool) || knobs.ahi == Some(Ahi::Warm) {
            return Err(Error::usage("--warm and --ahi read tables that loadgen prepare made")
                .hint("--tables N says how many of them there are"));
        }
    }
    let is_quiet = args.measure.display.quiet;
    if args.knobs.statements.is_none() && workload.defines() && !is_quiet {
        say("Statements are sent as text: some make or choose what others use.");
    }
    sweep(workload, args, None)
}

/// Joins statements, of which one may end with a comment: that lasts to the end of its line.
fn join_queries(queries: &[String]) -> String {
    queries.join("\n;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_a_statement_of_its_own_when_the_one_before_it_ends_with_a_comment() {
        for first in ["SELECT 1 -- one", "SELECT 1 # one", "SELECT 1;", "SELECT 1"] {
            let text = join_queries(&[first.to_owned(), "SELECT 2".to_owned()]);
            let workload = script("sql", text.as_bytes(), "--query").expect(first);
            assert_eq!(workload.transactions[0].statements.len(), 2, "{first}");
        }
    }
}
