//! Command lines above outputs.

use super::*;

struct Case {
    echoed: &'static str,
    test: Option<&'static str>,
    tables: Option<u64>,
    range_size: Option<&'static str>,
}
const USUAL: Case =
    Case { echoed: "", test: Some("read-only"), tables: Some(4), range_size: Some("7") };
/// A command line of which nothing is known.
const UNREAD: Case = Case { echoed: "", test: None, tables: None, range_size: None };

const ECHOED: &[Case] = &[
    Case { echoed: "sysbench oltp_read_only --tables=4 --range-size=7 run", ..USUAL },
    Case { echoed: "+ sysbench '--tables=4' '--range_size=7' oltp_read_only run", ..USUAL },
    Case {
        echoed: "++ PGPASSWORD=x sudo -u bench numactl --cpunodebind=0 /opt/bin/sysbench \
                    oltp_read_only --tables=4 --range-size=7 run",
        ..USUAL
    },
    Case {
        echoed: "[root@sysbench ~]# time ./sysbench-1.1 oltp_read_only --tables=4 \
                    --range-size=7 --threads=$t run 2>&1 | tee run.log",
        ..USUAL
    },
    Case {
        echoed: "docker run --rm -v /usr/share/sysbench:/s acme/sysbench sysbench oltp_read_only \
                    --tables=4 --range-size=7 run > out.txt",
        ..USUAL
    },
    Case {
        echoed: "ssh db1 \"sysbench oltp_read_only --tables=4 --range-size=7 run\" >> log",
        ..USUAL
    },
    Case { echoed: "out=$(sysbench oltp_read_only --tables=4 --range-size=7 run); done", ..USUAL },
    Case { echoed: "CMD='sysbench oltp_read_only --tables=4 --range-size=7 run'", ..USUAL },
    Case {
        echoed: "sysbench oltp_read_only --tables=4 --mysql-password='run; x' --range-size=7 run # now",
        ..USUAL
    },
    Case {
        echoed: "$ sysbench oltp_read_only \\\n>   --tables=4 \\\n>   --range-size=7 run",
        ..USUAL
    },
    Case {
        echoed: "$ sysbench \\\n  oltp_read_only --tables=4 \\\n  --range-size=7 \\\n  run",
        ..USUAL
    },
    Case { echoed: "sysbench oltp_read_only --tables=4\n--range-size=7\nrun", ..USUAL },
    Case {
        echoed: "sysbench --test=/usr/share/doc/sysbench/tests/db/oltp.lua --oltp-read-only=on \
                    --oltp-tables-count=4 --oltp-range-size=7 run",
        ..USUAL
    },
    Case {
        echoed: "sysbench --test=oltp --oltp-test-mode=simple --oltp-tables-count=4 run",
        test: Some("point-select"),
        range_size: None,
        ..USUAL
    },
    Case {
        echoed: "sysbench --test=oltp --oltp-tables-count=4 --oltp-range-size=7 run",
        test: Some("read-write"),
        ..USUAL
    },
    Case { echoed: "./tpcc.lua --tables=4 --range_size=7 --scale=10 run", test: None, ..USUAL },
    // The last one counts, also where less of it can be read.
    Case {
        echoed: "sysbench oltp_delete --tables=9 --range-size=9 run\n\
                    sysbench oltp_read_only --tables=4 --range-size=7 run",
        ..USUAL
    },
    Case { echoed: "sysbench oltp_delete --tables=9 run\n+ sysbench $TEST $OPTIONS run", ..UNREAD },
    Case {
        echoed: "sysbench oltp_read_only --tables=$T --range-size=7 run",
        tables: None,
        ..USUAL
    },
    Case {
        echoed: "sysbench oltp_read_only --config-file=x --range-size=7 run",
        tables: None,
        ..USUAL
    },
    Case {
        echoed: "sysbench --db-driver=mysql --tables=4 --range-size=7 --mysql-\nhost=db1 oltp_read_only run",
        ..USUAL
    },
    Case {
        echoed: "sysbench oltp_delete --tables=9 run\nsysbench --time=9 --tables=4 --mysql-ho\nst=db1 x run",
        ..UNREAD
    },
    // sysbench itself has one table.
    Case { echoed: "sysbench oltp_read_only --range-size=7 run", tables: Some(1), ..USUAL },
    // It is of another run.
    Case { echoed: "sysbench oltp_read_only --tables=4 --range-size=7 --threads=16 run", ..UNREAD },
    Case {
        echoed: "sysbench oltp_read_only --tables=4 --range-size=7 prepare",
        test: None,
        range_size: None,
        ..USUAL
    },
    Case {
        echoed: "sysbench oltp_read_only --tables=4 prepare\nsysbench oltp_common --tables=4 cleanup",
        ..UNREAD
    },
    // None is a command line.
    Case { echoed: "we let sysbench with --tables=4 once more on --range-size=7 run", ..UNREAD },
    Case { echoed: "sysbench --version", ..UNREAD },
];

#[test]
fn a_command_line_is_read_however_it_is_echoed() {
    for Case { echoed, test, tables, range_size } in ECHOED {
        let found = one(&format!("{echoed}\n{}", text_of("", "", "")));
        assert_eq!(found.test.as_deref(), *test, "{echoed}");
        assert_eq!(found.run.tables.map(u64::from), *tables, "{echoed}");
        let options = found.run.options.unwrap_or_default();
        assert_eq!(options.get("range_size").map(String::as_str), *range_size, "{echoed}");
    }
}

#[test]
fn options_are_kept_when_they_decide_on_the_work() {
    let options = |given: &str| {
        let command = format!("sysbench oltp_point_select {given} run\n");
        let found = one(&(command + &text_of("", "", "")));
        found.run.options.expect("a command line")
    };
    let usual = options("--threads=8");
    for given in [
        "--threads=8 --time=10 --events=0 --report-interval=1 --percentile=99 --histogram",
        "--tables=4 --table_size=1000 --rand-type=uniform --rand-seed=7",
        "--mysql-host=db1 --mysql-password=secret --mysql_user=x --my-password=secret",
        "--DB_PASS=secret --my-token=secret --my-dsn=mysql://me:secret@db1/sbtest",
        "--skip-trx=off --range-size=100 --range_size=100.0 --mysql-storage-engine=InnoDB",
    ] {
        assert_eq!(options(given), usual, "{given}");
    }
    for given in [
        "--skip-trx",
        "--skip_trx=on",
        "--point-selects=10 --range-size=10 --reconnect=5",
        "--db-ps-mode=disable",
        "--mysql-ssl=on",
        "--mysql-storage-engine=myisam",
        "--mysql-table-options=ROW_FORMAT=COMPRESSED",
        "--create_secondary=off",
        "--rand-type=of-my-own",
        "--reconnect=$n",
        "--trx-level=RR",
        "--config-file=x.cnf",
    ] {
        assert_ne!(options(given), usual, "{given}");
    }
    let on = options("--skip-trx");
    assert_eq!(on, options("--skip_trx=1"));
    assert_eq!(
        one(&("sysbench oltp_read_only $O run\n".to_owned() + &text_of("", "", ""))).run.options,
        None
    );
    let band = "sysbench oltp_read_only --rand-spec-pct=5 run\n".to_owned() + &text_of("", "", "");
    assert_eq!(one(&band).run.distribution.as_deref(), Some("special:12/5/75"));
}

#[test]
fn a_command_line_beside_prefixed_output_is_that_of_the_next_run_only() {
    let stamped = behind_prefix(&text_of("", "", ""), |n| format!("00:00:{:02} ", n % 60));
    let command =
        "Jan 02 03:04:05 db1 bench.sh[99]: + sysbench oltp_read_only --tables=3 run | ts -s\n";
    let found = runs(format!("{command}{stamped}{stamped}").as_bytes());
    let [Ok(first), Ok(second)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((first.run.tables, second.run.tables), (Some(3), None));
    let found = runs(format!("{command}{command}{stamped}").as_bytes());
    let [Ok(only)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(only.run.tables, None, "which of them is not known");
}
