//! The commands and flags of loadgen, for hints to users of sysbench and other load generators.

use clap::{Arg, Command};

use crate::sysbench::{NativeFlag, NativeVerb};

pub(super) fn native_verbs(loadgen: &Command) -> Vec<NativeVerb> {
    let verb = |verb: &Command| NativeVerb {
        names: std::iter::once(verb.get_name())
            .chain(verb.get_all_aliases())
            .map(str::to_owned)
            .collect(),
        flags: verb.get_arguments().map(flag).collect(),
    };
    loadgen.get_subcommands().map(verb).collect()
}

fn flag(arg: &Arg) -> NativeFlag {
    let long = arg.get_long_and_visible_aliases().unwrap_or_default();
    let short = arg.get_short().map(|short| format!("-{short}"));
    NativeFlag {
        names: long.into_iter().map(|name| format!("--{name}")).chain(short).collect(),
        takes_value: arg.get_action().takes_values() && !arg.is_require_equals_set(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysbench::{self, Answer};

    fn said(line: &str) -> Option<Answer> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        sysbench::translate(&words, &crate::cli::native_verbs())
    }

    #[test]
    fn a_command_of_sysbench_becomes_a_whole_one_of_loadgen() {
        struct Case {
            theirs: &'static str,
            ours: &'static str,
            /// Part of what is said of it.
            what: &'static str,
        }
        for Case { theirs, ours, what } in [
            Case {
                theirs: "loadgen oltp_point_select --threads=8 --mysql-host=db1 \
                         --mysql-user=bench --mysql-password=x --time=60 --tables=8 \
                         --table-size=1000000 run",
                ours: "loadgen point-select --clients 8 --host db1 --user bench --password \
                       --time 60s --tables 8 --rows 1000000",
                what: "run, --threads, --mysql-host, --mysql-user, --mysql-password, \
                       --table-size are sysbench's\n  --mysql-password: --password asks for it, a script sets MYSQL_PWD",
            },
            Case {
                theirs: "loadgen --threads=4 --table_size=10 oltp_read_write prepare",
                ours: "loadgen prepare --jobs 4 --rows 10",
                what: "prepare, --threads, --table_size are",
            },
            Case {
                theirs: "loadgen /usr/share/sysbench/bulk_insert.lua --threads=4 prepare",
                ours: "loadgen prepare --schema bulk --jobs 4",
                what: "prepare, --threads are",
            },
            Case {
                theirs: "loadgen oltp_read_write --mysql-db=x --time=60 cleanup",
                ours: "loadgen cleanup --database x",
                what: "--time: loadgen cleanup has no use for it",
            },
            Case {
                theirs: "loadgen point-select run",
                ours: "loadgen point-select",
                what: "run is sysbench's",
            },
            Case {
                theirs: "loadgen oltp_read_write --mysql-ignore-errors=all --verbosity=3 \
                         --db-ps-mode=disable --rand-type=pareto --skip_trx=on --report-interval=1",
                ours: "loadgen read-write --on-error continue --statements text \
                       --distribution pareto:0.2 --skip-trx=on --progress 1s",
                what: "--verbosity: --quiet",
            },
            Case {
                theirs: "loadgen point-select --threads 8 --events=100 --time=60 --rate=0 \
                         --skip_trx --rand-type=gaussian --foo=1",
                ours: "loadgen point-select --clients 8 --ops 100 --distribution gaussian",
                what: "--foo: is not known",
            },
            Case {
                theirs: "loadgen report --percentile 99 results/",
                ours: "loadgen report results/",
                what: "--percentile: all are kept",
            },
            Case {
                theirs: "loadgen report --percentile results/read-only",
                ours: "loadgen report results/read-only",
                what: "--percentile: all are kept",
            },
            Case {
                theirs: "loadgen read-only --mysql-ssl off --range_selects off --threads run",
                ours: "loadgen read-only --simple-ranges 0 --sum-ranges 0 --order-ranges 0 \
                       --distinct-ranges 0",
                what: "run, --mysql-ssl, --range_selects, --threads are",
            },
            Case {
                theirs: "loadgen read-only --mysql-pasword HUNTER --mysql-ignore-errors= --threads 4",
                ours: "loadgen read-only --clients 4",
                what: "--mysql-pasword: is not known",
            },
            Case {
                theirs: "loadgen oltp_read_only --mysql-ssl=on --mysql-ssl=off --tables=4 --tables=8 \
                         --events=5 --events=0 --range_selects=off --range_selects=on run",
                ours: "loadgen read-only --tables 8",
                what: "run, --mysql-ssl",
            },
            Case {
                theirs: "loadgen oltp_read_write --oltp-skip-trx=on --threads=2 run",
                ours: "loadgen read-write --skip-trx=on --clients 2",
                what: "run, --oltp-skip-trx, --threads are",
            },
            Case {
                theirs: "loadgen oltp_read_write prewarm",
                ours: "loadgen point-select --warm pool",
                what: "prewarm is",
            },
            Case {
                theirs: "loadgen sysbench oltp_delete --threads=8 --mysql-host=a;b --mysql-ssl=off run",
                ours: "loadgen delete --clients 8 --host 'a;b'",
                what: "run, --threads",
            },
            Case {
                theirs: "loadgen read-write --threads=8 --password=... -u me -S /x --warmup 0",
                ours: "loadgen read-write --clients 8 --password -u me -S /x --warmup 0",
                what: "--threads is",
            },
        ] {
            let answer = said(theirs).expect(theirs);
            assert_eq!(answer.command, ours, "{theirs}");
            assert!(answer.what.contains(what), "{theirs}: {}", answer.what);
        }
    }

    #[test]
    fn options_of_a_script_stay_behind_two_dashes() {
        let theirs = "loadgen lua a.lua --threads=8 -- --rows=9 --a-password=x --b-password x";
        let ours = "loadgen lua a.lua --clients 8 -- --rows=9 --a-password=... --b-password ...";
        let answer = said(theirs).expect("a command");
        assert_eq!(answer.command, ours);
        assert!(answer.what.starts_with("--threads is sysbench's"), "{}", answer.what);
    }

    #[test]
    fn words_of_other_load_generators_become_a_whole_command_of_loadgen() {
        struct Case {
            theirs: &'static str,
            ours: &'static str,
            /// Part of what is said of it.
            what: &'static str,
        }
        for Case { theirs, ours, what } in [
            Case {
                theirs: "loadgen point-select --duration 60s --connections 64",
                ours: "loadgen point-select --time 60s --clients 64",
                what: "--duration, --connections are oha's and wrk's",
            },
            Case {
                theirs: "loadgen read-write --duration=30s",
                ours: "loadgen read-write --time 30s",
                what: "--duration is oha's and k6's and wrk's",
            },
            Case {
                theirs: "loadgen point-select -t4 -c64 -d30s --latency -h db1",
                ours: "loadgen point-select --engine-threads 4 --clients 64 --time 30s -h db1",
                what: "-t, -c, -d, --latency are wrk's",
            },
            Case {
                theirs: "loadgen point-select -d sbtest -h db1",
                ours: "loadgen point-select --database sbtest -h db1",
                what: "-D",
            },
            Case {
                theirs: "loadgen point-select -n 10000 -c 8 -q 500 --no-tui",
                ours: "loadgen point-select --ops 10000 --clients 8 --rate 500 --quiet",
                what: "-n, -c, -q, --no-tui are oha's",
            },
            Case {
                theirs: "loadgen read-only --vus 10 --iterations 1000 --stage 10s:20",
                ours: "loadgen read-only --clients 10 --ops 1000",
                what: "--stage: --clients",
            },
            Case {
                theirs: "loadgen read-only --concurrency=10,50 --iterations=5 --number-of-queries 1k",
                ours: "loadgen read-only --clients 10,50 --repeat 5 --ops 1k",
                what: "are mysqlslap's",
            },
            Case {
                theirs: "loadgen read-only --iterations=5",
                ours: "loadgen read-only --ops 5",
                what: "--iterations: mysqlslap's is --repeat",
            },
            Case {
                theirs: "loadgen mysqlslap --concurrency=50 --query=SELECT --create-schema=db1 --silent",
                ours: "loadgen sql --clients 50 --query SELECT --database db1 --quiet",
                what: "--concurrency, --create-schema, --silent are mysqlslap's",
            },
            Case {
                theirs: "loadgen mysqlslap --auto-generate-sql --concurrency 8 --engine innodb",
                ours: "loadgen point-select --clients 8",
                what: "--engine: the tables",
            },
            Case {
                theirs: "loadgen wrk -t2 -c100 -d10s http://db1/",
                ours: "loadgen point-select --engine-threads 2 --clients 100 --time 10s",
                what: "-t, -c, -d are wrk's",
            },
            Case {
                theirs: "loadgen k6 run script.js",
                ours: "loadgen point-select",
                what: "k6 is k6's",
            },
            Case {
                theirs: "loadgen read-write --vu 8 --rampup 2 --mysql-duration 5 --warehouses 100",
                ours: "loadgen read-write --clients 8 --warmup 2m --time 5m",
                what: "are hammerdb's",
            },
            Case {
                theirs: "loadgen read-write --mysql_num_vu=8 --mysql_pass=x",
                ours: "loadgen read-write --clients 8 --password",
                what: "--mysql_pass: --password asks",
            },
            Case {
                theirs: "loadgen read-only --threads=8 --duration 60s --foo",
                ours: "loadgen read-only --clients 8 --time 60s",
                what: "--threads is sysbench's; --duration is oha's",
            },
            Case {
                theirs: "loadgen cleanup --vus 8",
                ours: "loadgen cleanup",
                what: "--vus: loadgen cleanup has no use for it",
            },
        ] {
            let answer = said(theirs).expect(theirs);
            assert_eq!(answer.command, ours, "{theirs}");
            assert!(answer.what.contains(what), "{theirs}: {}", answer.what);
        }
    }

    #[test]
    fn a_command_of_loadgen_is_left_to_its_own_errors() {
        for line in [
            "loadgen point-select --nonsense",
            "loadgen report --clients 8",
            "loadgen",
            "loadgen nonsense --threads=8",
            "loadgen run profile.toml --only x",
            "loadgen --password x",
        ] {
            assert_eq!(said(line), None, "{line}");
        }
    }

    #[test]
    fn what_a_flag_becomes_is_a_flag_of_loadgen() {
        let loadgen = crate::cli::native_verbs();
        let others = sysbench::flags_of_others();
        let ours: Vec<String> = sysbench::native_flags().chain(others).collect();
        assert!(ours.len() > 30, "{ours:?}");
        for flag in ours {
            let has =
                |verb: &NativeVerb| verb.flags.iter().any(|known| known.names.contains(&flag));
            assert!(loadgen.iter().any(has), "{flag}");
        }
    }
}
