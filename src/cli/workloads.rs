//! `loadgen workloads`: what is built in.

use std::fmt::Write as _;

use crate::error::Result;
use crate::run::print_data;
use crate::workload::{Schema, builtin};

pub(super) fn run() -> Result<()> {
    print_data(&text())
}

fn text() -> String {
    let mut text = String::new();
    for (i, workload) in builtin().iter().enumerate() {
        let blank = if i == 0 { "" } else { "\n" };
        let _ = writeln!(text, "{blank}{}  ({})", workload.name, workload.aliases.join(", "));
        let _ = writeln!(text, "  {}", workload.about);
        if workload.schema != Schema::default() {
            let _ = writeln!(text, "  tables of --schema {}", workload.schema);
        }
        for (name, setting) in &workload.options {
            let flag = name.replace('_', "-");
            let _ = writeln!(text, "  --{flag} {}: {}", setting.shown(), setting.about);
        }
        for transaction in &workload.transactions {
            if workload.transactions.len() > 1 {
                let _ = writeln!(text, "  transaction, weight {}", transaction.weight);
            }
            let begin = workload.begins(transaction);
            if begin {
                text.push_str("  BEGIN\n");
            }
            for (statement, repeat) in workload.running(transaction) {
                let sql = statement.told(&workload.options);
                let times = if repeat == 1 { String::new() } else { format!("  × {repeat}") };
                let _ = writeln!(text, "  {sql}{times}");
                let _ = writeln!(text, "    expects {}", statement.expect);
            }
            if begin {
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
                "  SELECT c FROM {table} WHERE id=?",
                "    expects 1 row, c proves itself",
            ]
        );
    }
}
