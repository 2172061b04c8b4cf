//! sysbench's flags are answered with loadgen's spelling.

/// sysbench's flags of one meaning, loadgen's.
const FLAGS: [(&str, &str); 28] = [
    ("--threads --num-threads", "--clients N"),
    ("--table-size --oltp-table-size", "--rows N"),
    ("--oltp-tables-count", "--tables N"),
    ("--events --max-requests", "--ops N"),
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
pub(crate) fn explain(given: &str) -> Option<String> {
    let flag = given.split('=').next()?.replace('_', "-");
    let mut all = FLAGS.iter().flat_map(|(names, ours)| names.split(' ').map(move |of| (of, ours)));
    let (name, ours) = all.find(|(name, _)| name.replace('_', "-") == flag)?;
    Some(format!("{name} is sysbench's; in loadgen it is {ours}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysbenchs_flags_are_answered_with_ours() {
        let command = crate::cli::command().0;
        let verb = command.find_subcommand("point-select").expect("a verb");
        let known = |flag: &str| verb.get_arguments().any(|arg| arg.get_long() == Some(&flag[2..]));
        let flags =
            FLAGS.iter().flat_map(|(flags, ours)| flags.split(' ').map(move |of| (of, ours)));
        for (flag, ours) in flags {
            assert!(!known(flag), "{flag} is loadgen's, too");
            let hint = explain(&format!("{flag}=8")).unwrap_or_else(|| panic!("{flag}"));
            assert!(hint.contains(ours), "{hint}");
        }
        assert_eq!(explain("--nonsense"), None);
    }
}
