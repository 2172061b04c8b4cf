//! sysbench's flags are answered with loadgen's spelling.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// sysbench's flag, loadgen's.
const FLAGS: [(&str, &str); 32] = [
    ("--threads", "--clients N"),
    ("--num-threads", "--clients N"),
    ("--table-size", "--rows N"),
    ("--oltp-table-size", "--rows N"),
    ("--table_size", "--rows N"),
    ("--oltp-tables-count", "--tables N"),
    ("--events", "--ops N"),
    ("--max-requests", "--ops N"),
    ("--max-time", "--time DURATION"),
    ("--warmup-time", "--warmup DURATION"),
    ("--report-interval", "--progress DURATION, and --interval for the timeline"),
    ("--rand-type", "--distribution uniform|zipf:S|pareto:H|special"),
    ("--rand-pareto-h", "--distribution pareto:H"),
    ("--rand-seed", "--seed N"),
    ("--rand-zipfian-exp", "--distribution zipf:S"),
    ("--db-ps-mode", "--statements prepared|text"),
    ("--percentile", "loadgen report --metric p95: summaries keep them all"),
    ("--histogram", "nothing: summaries always keep the histogram"),
    ("--mysql-host", "--host NAME"),
    ("--mysql-port", "--port N"),
    ("--mysql-user", "--user NAME"),
    ("--mysql-password", "--password, which asks for it"),
    ("--mysql-socket", "--socket PATH"),
    ("--mysql-db", "--database NAME"),
    ("--mysql-ssl", "--ssl-mode REQUIRED"),
    ("--mysql-ssl-ca", "--ssl-ca FILE"),
    ("--db-driver", "nothing: MySQL and MariaDB are all it knows"),
    ("--number-of-ranges", "--random-ranges N"),
    ("--range_selects", "--simple-ranges 0 --sum-ranges 0 --order-ranges 0 --distinct-ranges 0"),
    ("--skip-trx", "nothing: this workload has no transaction"),
    ("--auto_inc", "nothing: tables always have it"),
    ("--create_secondary", "nothing: the index on k is always made, after the fill"),
];

/// Says in loadgen's words what a flag of sysbench is.
pub(crate) fn explain(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let ContextValue::String(given) = error.get(ContextKind::InvalidArg)? else { return None };
    let flag = given.split('=').next()?.replace('_', "-");
    let (name, ours) = FLAGS.iter().find(|(name, _)| name.replace('_', "-") == flag)?;
    Some(format!("{name} is sysbench's; in loadgen it is {ours}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysbenchs_flags_are_answered_with_ours() {
        for (flag, ours) in FLAGS {
            let error = crate::cli::command()
                .try_get_matches_from(["loadgen", "point-select", &format!("{flag}=8")])
                .expect_err(flag);
            let hint = explain(&error).unwrap_or_else(|| panic!("{flag}: {error}"));
            assert!(hint.contains(ours), "{hint}");
        }
        let error = crate::cli::command()
            .try_get_matches_from(["loadgen", "point-select", "--nonsense"])
            .expect_err("no flag");
        assert_eq!(explain(&error), None);
    }
}
