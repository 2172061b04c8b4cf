//! `loadgen workloads`: what is built in.

use crate::error::Result;
use crate::run::print_data;
use crate::workload::{Schema, Workload, builtin};

pub(super) fn run((): ()) -> Result<()> {
    print_data(&(builtin().iter().map(told).collect::<Vec<_>>().join("\n")))
}

fn told(workload: &Workload) -> String {
    let (options, transactions) = (&workload.options, &workload.transactions);
    let mut lines = vec![
        format!("{}  ({})", workload.name, workload.aliases.join(", ")),
        format!("  {}", workload.about),
    ];
    if workload.schema != Schema::default() {
        lines.push(format!("  tables of --schema {}", workload.schema));
    }
    lines.extend(options.iter().map(|(name, setting)| {
        format!("  --{} {}: {}", name.replace('_', "-"), setting.shown(), setting.about)
    }));
    for transaction in transactions {
        if transactions.len() > 1 {
            lines.push(format!("  transaction, weight {}", transaction.weight));
        }
        let begins = workload.begins(transaction);
        lines.extend(begins.then(|| "  BEGIN".to_owned()));
        for (statement, repeat) in workload.running(transaction) {
            let times = if repeat == 1 { String::new() } else { format!("  × {repeat}") };
            lines.push(format!("  {}{times}", statement.told(options)));
            lines.push(format!("    expects {}", statement.expect));
        }
        lines.extend(begins.then(|| "  COMMIT".to_owned()));
    }
    lines.join("\n") + "\n"
}
