//! `loadgen workloads`: what is built in.

use std::fmt::Write as _;

use crate::cmd::print_data;
use crate::error::Result;
use crate::workload::builtin;

/// Prints each workload with its SQL and expected outcome.
pub fn run() -> Result<()> {
    print_data(&text())
}

fn text() -> String {
    let mut text = String::new();
    for (i, workload) in builtin().iter().enumerate() {
        let blank = if i == 0 { "" } else { "\n" };
        let _ = writeln!(text, "{blank}{}  ({})", workload.name, workload.aliases.join(", "));
        let _ = writeln!(text, "  {}", workload.about);
        for transaction in &workload.transactions {
            if workload.transactions.len() > 1 {
                let _ = writeln!(text, "  transaction, weight {}", transaction.weight);
            }
            if transaction.begin {
                text.push_str("  BEGIN\n");
            }
            for statement in &transaction.statements {
                let _ = writeln!(text, "  {}", statement.sql);
                let _ = writeln!(text, "    expects {}", statement.expect);
            }
            if transaction.begin {
                text.push_str("  COMMIT\n");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_is_there_with_sql_and_outcome() {
        assert_eq!(
            super::text().lines().take(4).collect::<Vec<_>>(),
            [
                "point-select  (oltp_point_select)",
                "  SELECT one row by primary key",
                "  SELECT c FROM {table} WHERE id = ?",
                "    expects 1 row, c proves itself",
            ]
        );
    }
}
