//! Command lines that are taken: their values, and the native command.

use super::*;
use crate::workload::Distribution;

/// A command line that is taken, and what becomes of it.
struct Taken {
    line: &'static str,
    shown: fn(&Settings) -> String,
    expected: &'static str,
}

#[test]
fn a_value_is_what_sysbench_reads_when_it_is_well_formed() {
    fn limits(s: &Settings) -> String {
        format!("{} {} {:?} {}", s.threads, s.events, s.time, s.rate)
    }
    fn tables(s: &Settings) -> String {
        format!("{} {} {}", s.tables, s.table_size, s.values.on("auto-inc"))
    }
    fn keys(s: &Settings) -> String {
        format!("{} {}", s.distribution, s.seed)
    }
    fn shutdown(s: &Settings) -> String {
        format!("{:?}", s.forced_shutdown)
    }
    fn init(s: &Settings) -> String {
        format!("{:?}", s.connect.connect_timeout)
    }
    fn address(s: &Settings) -> String {
        match &s.connect.address {
            Address::Tcp { host, port } => format!("{host} {port}: {}", s.server),
            Address::Socket(path) => format!("{}: {}", path.display(), s.server),
        }
    }
    fn ignored(s: &Settings) -> String {
        format!("{:?}", s.ignored)
    }
    fn reports(s: &Settings) -> String {
        format!(
            "{} {:?} {} {} {}",
            s.values.int("report-interval"),
            s.values.checkpoints(),
            s.values.int("percentile"),
            s.values.on("histogram"),
            s.verbosity
        )
    }
    fn what(s: &Settings) -> String {
        format!("{:?} {:?} {:?}", s.test, s.command, s.output)
    }
    let taken = |line, shown, expected| Taken { line, shown, expected };
    for Taken { line, shown, expected } in [
        taken("", limits, "1 0 10s 0"),
        taken("--threads=4 --threads=8 --events=5 --time=0 --rate=7", limits, "8 5 0ns 7"),
        taken(
            "--num-threads=2 --threads=0 --max-requests=3 --max-time=4 --tx-rate=5",
            limits,
            "2 3 4s 5",
        ),
        taken("--threads=3 --num-threads=1 --events=+5", limits, "3 5 10s 0"),
        taken("", tables, "1 10000 true"),
        taken("--table-size=1M --tables=2.7", tables, "2 1 true"),
        taken("--table_size=10K --auto_inc=off", tables, "1 10 false"),
        taken("--table-size=1e6 --auto-inc=0", tables, "1 1000000 false"),
        taken("--table-size=abc --auto-inc", tables, "1 0 true"),
        taken("--table-size=0x10", tables, "1 16 true"),
        taken("--table-size=.5e1x --auto-inc=true", tables, "1 5 true"),
        taken("--table-size=16 --auto-inc=false", tables, "1 16 false"),
        taken("--table-size=-5 --auto_inc=1", tables, "1 0 true"),
        taken("", keys, "special 0"),
        taken("--rand-type=uniform --rand-seed=42", keys, "uniform 42"),
        taken("--rand-type=gaussian --rand-spec-iter=5", keys, "gaussian:5 0"),
        taken("--rand-type=pareto --rand-pareto-h=0.3x", keys, "pareto:0.3 0"),
        taken("--rand-type=zipfian --rand-zipfian-exp=1.1", keys, "zipf-adjacent:1.1 0"),
        taken("--rand-spec-iter=3 --rand-spec-pct=2 --rand-spec-res=50", keys, "special:3/2/50 0"),
        taken("--forced-shutdown=off", shutdown, "None"),
        taken("--forced-shutdown=OFF", shutdown, "None"),
        taken("--forced-shutdown --time=50", shutdown, "Some(2s)"),
        taken("--forced-shutdown=50% --time=59", shutdown, "Some(29s)"),
        taken("--forced-shutdown=7", shutdown, "Some(7s)"),
        taken("--forced-shutdown=7 --time=0 --events=1", shutdown, "None"),
        taken("", init, "30s"),
        taken("--thread-init-timeout=0", init, "31622400s"),
        taken("", address, "/run/mysqld/mysqld.sock: on host 'localhost', port 3306"),
        taken(
            "--mysql-host=localhost --mysql-port=3307",
            address,
            "/run/mysqld/mysqld.sock: on host 'localhost', port 3307",
        ),
        taken("--mysql-host=db1 --mysql-port=3307", address, "db1 3307: on host 'db1', port 3307"),
        taken("--mysql-host=db1, --mysql-socket=/x", address, "/x: on socket '/x'"),
        taken("", ignored, "Codes([1213, 1020, 1205])"),
        taken("--mysql-ignore-errors=1062,1213", ignored, "Codes([1062, 1213])"),
        taken("--mysql-ignore-errors=all", ignored, "All"),
        taken("--mysql_ignore_errors=", ignored, "Codes([])"),
        taken("", reports, "0 [] 95 false 3"),
        taken(
            "--report-interval=1 --report-checkpoints=5,1,0 --percentile=0",
            reports,
            "1 [0, 1, 5] 0 false 3",
        ),
        taken("--histogram --percentile=99 --verbosity=1 --debug", reports, "0 [] 99 true 5"),
        taken("--output-version 1.1", what, "ReadWrite Run V1_1"),
        taken("--output-version=0.5", what, "ReadWrite Run V0_5"),
    ] {
        for line in [
            format!("{line} {RUN}"),
            format!("oltp_read_write {line} run"),
            format!("{RUN} {line}"),
        ] {
            assert_eq!(shown(&settings(&line)), expected, "{line}");
        }
    }
}

#[test]
fn a_test_is_found_by_name_by_path_and_by_its_name_in_older_versions() {
    let shown = |line: &str| {
        let s = settings(line);
        format!("{:?} {:?} {} {:?} {}", s.test, s.command, s.events, s.time, s.prepared)
    };
    for (line, expected) in [
        ("oltp_read_only run", "ReadOnly Run 0 10s true"),
        (
            "/usr/share/sysbench/oltp_update_non_index.lua cleanup",
            "UpdateNonIndex Cleanup 0 10s true",
        ),
        ("./bulk_insert.lua prepare", "BulkInsert Prepare 0 10s true"),
        ("oltp_common prewarm", "Common Prewarm 0 10s true"),
        ("oltp_insert warmup", "Insert Prewarm 0 10s true"),
        ("x --test=select_random_points run", "RandomPoints Run 0 10s true"),
        ("select_random_ranges --delta=3 --number-of-ranges=2 run", "RandomRanges Run 0 10s true"),
        ("--test=oltp prepare", "ReadWrite Prepare 10000 0ns true"),
        ("--test=oltp --oltp-read-only=on --num-threads=8 run", "ReadOnly Run 10000 0ns true"),
        ("--test=oltp --oltp-read-only --max-time=60 run", "ReadOnly Run 10000 60s true"),
        ("--test=oltp --max-requests=0 --max-time=60 run", "ReadWrite Run 0 60s true"),
        ("--test=oltp --oltp-test-mode=complex run", "ReadWrite Run 10000 0ns true"),
        ("--test=tests/db/oltp.lua --oltp-write-only=on run", "WriteOnly Run 0 10s false"),
        ("--test=/x/oltp.lua --db-ps-mode=auto run", "ReadWrite Run 0 10s false"),
    ] {
        assert_eq!(shown(line), expected, "{line}");
    }
}

#[test]
fn the_options_of_older_versions_are_those_of_today() {
    let s = settings(
        "--test=/x/oltp.lua --oltp-tables-count=8 --oltp-table-size=1000000 --oltp-range-size=10 \
         --oltp-point-selects=5 --oltp-simple-ranges=0 --oltp-skip-trx=on --oltp-auto-inc=off \
         --mysql-table-engine=myisam --oltp-dist-type=uniform --myisam-max-rows=5 --rand-init=on \
         --mysql-user=root run",
    );
    let numbers =
        (s.tables, s.table_size, s.values.count("range-size"), s.values.count("point-selects"));
    assert_eq!(numbers, (8, 1_000_000, 10, 5));
    assert_eq!((s.values.count("simple-ranges"), s.values.on("skip-trx")), (0, true));
    let engine = s.values.text("mysql-storage-engine");
    assert_eq!((engine, s.values.on("auto-inc")), ("myisam", false));
    assert_eq!(s.distribution, Distribution::Uniform);
}

/// Command lines as the consumers of sysbench's output have them, their variables filled in.
const CONSUMERS: &[(&str, &str)] = &[
    (
        // PerfKitBenchmarker
        "oltp_read_write --db-driver=mysql --db-ps-mode=disable --mysql-host=10.0.0.5 --mysql-user=perfkit \
         --mysql-password=hush --mysql-db=sbtest --tables=4 --table_size=100000 --threads=16 --percentile=95 \
         --report-interval=1 --time=300 --rand-type=uniform run --thread-init-timeout=120",
        "ReadWrite Run 16 4 100000",
    ),
    (
        // kubebench
        "oltp_read_only --mysql-host=10.0.0.5 --mysql-port=3306 --mysql-user=root --mysql-password=hush \
         --mysql-db=sbtest --tables=10 --table_size=25000 --threads=4 --time=60 --percentile=99 \
         --report-interval=10 --mysql-ignore-errors=1041,2002,2003,1062,1205,1213,1290,2013,8018,8028 run",
        "ReadOnly Run 4 10 25000",
    ),
    (
        // dolt
        "--db-driver=mysql --mysql-host=127.0.0.1 --mysql-port=3306 --mysql-user=sysbench --mysql-password=hush \
         --db-ps-mode=disable --time=120 --percentile=50 --rand-seed=1 --table-size=10000 oltp_point_select run",
        "PointSelect Run 1 1 10000",
    ),
    (
        // cockroach
        "--db-driver=mysql --mysql-host=127.0.0.1 --mysql-port=3306 --mysql-user=root --mysql-password=hush \
         --mysql-db=sysbench --report-interval=1 --time=600 --threads=96 --tables=10 --table_size=10000000 \
         --auto_inc=false oltp_update_index run",
        "UpdateIndex Run 96 10 10000000",
    ),
    (
        // lkp-tests
        "oltp_read_write --db-driver=mysql --mysql-user=root --mysql-socket=/tmp/mysql.sock --threads=32 \
         --time=100 --events=0 --report-interval=10 --table-size=1000000 --tables=10 run",
        "ReadWrite Run 32 10 1000000",
    ),
    (
        // mmtests
        "--test=oltp --mysql-table-engine=innodb --mysql-socket=/tmp/mysql.sock --mysql-user=root --mysql-db=sbtest \
         --oltp-table-size=100000 --oltp-read-only=on --max-requests=0 --max-time=60 --num-threads=8 run",
        "ReadOnly Run 8 1 100000",
    ),
    (
        // mytools
        "--db-driver=mysql --mysql-user=root --mysql-password=hush --mysql-host=127.0.0.1 --mysql-db=ib \
         --mysql-storage-engine=innodb --range-size=100 --table-size=10000000 --tables=8 --threads=16 --events=0 \
         --time=300 --mysql-ignore-errors=all oltp_write_only.lua run",
        "WriteOnly Run 16 8 10000000",
    ),
    (
        // dbreport
        "oltp_read_write --mysql-host=127.0.0.1 --mysql-user=sbtest --mysql-password=hush --mysql-db=sbtest \
         --threads=64 --time=60 --report-interval=10 --histogram=off run",
        "ReadWrite Run 64 1 10000",
    ),
    (
        // VirtualClient
        "oltp_read_write --threads=8 --tables=10 --table-size=100000 --mysql-db=sbtest --mysql-host=127.0.0.1 \
         --time=300 run",
        "ReadWrite Run 8 10 100000",
    ),
    (
        // sysbench-operator
        "oltp_read_write --db-driver=mysql --mysql-host=127.0.0.1 --mysql-port=3306 --mysql-db=continuous-writes \
         --mysql-user=operator --mysql-password=hush --threads=4 --time=0 --report-interval=1 --tables=4 \
         --table-size=100000 prepare",
        "ReadWrite Prepare 4 4 100000",
    ),
    (
        // phoronix-test-suite
        "oltp_common --threads=8 --rand-type=uniform --db-driver=mysql --mysql-db=sbtest --mysql-host=localhost \
         --mysql-port=3306 --mysql-user=sbtest --mysql-password=hush prepare --tables=16 --table-size=100000",
        "Common Prepare 8 16 100000",
    ),
    (
        "oltp_update_non_index --db-driver=mysql --mysql-db=sbtest --mysql-user=sbtest --mysql-password=hush run \
         --tables=16 --table-size=100000 --threads=32 --time=300 --rand-type=uniform",
        "UpdateNonIndex Run 32 16 100000",
    ),
    (
        // sysbench-scripts
        "--test=/usr/share/doc/sysbench/tests/db/oltp.lua --oltp-table-size=1000000 --oltp-tables-count=16 \
         --mysql-user=root --mysql-db=sbtest --num-threads=16 --max-time=3600 --max-requests=0 \
         --report-interval=10 --rand-init=on --rand-type=pareto run",
        "ReadWrite Run 16 16 1000000",
    ),
];

/// Asserts that a native command is one.
fn parses(command: &str) {
    let read = crate::cli::command().0.try_get_matches_from(command.split(' '));
    assert!(read.is_ok(), "{command}: {:?}", read.err());
}

#[test]
fn a_command_line_of_a_consumer_is_taken_when_it_is_unchanged() {
    for (line, expected) in CONSUMERS {
        let s = settings(&format!("--explain {line}"));
        let shown =
            format!("{:?} {:?} {} {} {}", s.test, s.command, s.threads, s.tables, s.table_size);
        assert_eq!(shown, *expected, "{line}");
        parses(native(&s, &crate::cli::native_verbs()).lines().next().expect("a command"));
        let all = format!("{s:?} {}", native(&s, &crate::cli::native_verbs()));
        assert!(!all.contains("hush"), "{all}");
        for note in s.notes {
            harmless(&note);
        }
    }
}

#[test]
fn a_native_command_does_the_same_when_it_is_explained() {
    for (line, expected, differs) in [
        (
            "oltp_read_only --tables=4 --table-size=1000 --threads=8 --time=60 --mysql-host=db1 --mysql-password=hush \
             --range_selects=off --skip-trx --report-interval=1 run",
            "loadgen read-only --clients 8 --time 60s --warmup 0s --progress 1s --distribution special \
             --statements prepared --host db1 --port 3306 --user sbtest --database sbtest --skip-trx \
             --simple-ranges 0 --sum-ranges 0 --order-ranges 0 --distinct-ranges 0 --rows 1000 --tables 4 \
             --password --no-defaults --table-each",
            "not begun again",
        ),
        (
            "oltp_point_select --events=100 --time=0 --rate=50 --rand-type=uniform --db-ps-mode=disable \
             --mysql-socket=/x --mysql-ignore-errors=all --rand-seed=3 --loadgen-out=r run",
            "loadgen point-select --clients 1 --ops 100 --warmup 0s --rate 50 --distribution uniform --seed 3 \
             --statements text --socket /x --user sbtest --database sbtest --on-error continue --rows 10000 \
             --tables 1 --out r --engine-threads 1 --no-defaults --spread random",
            "counted",
        ),
        (
            "oltp_update_index --index_updates=3 --events=5 --mysql-host=h run",
            "loadgen update-index --clients 1 --ops 5 --warmup 0s --distribution special --statements prepared \
             --host h --port 3306 --user sbtest --database sbtest --rows 10000 --tables 1 --no-defaults \
             --spread random",
            "--index-updates: loadgen update-index has no use for it",
        ),
        (
            "select_random_ranges --number-of-ranges=2 --delta=9 --tables=4 --mysql-host=h run",
            "loadgen random-ranges --clients 1 --time 10s --warmup 0s --distribution special --statements prepared \
             --host h --port 3306 --user sbtest --database sbtest --delta 9 --random-ranges 2 --rows 10000 \
             --tables 1 --no-defaults --spread random",
            "uniformly",
        ),
        (
            "bulk_insert --threads=2 --mysql-host=h run",
            "loadgen bulk-insert --clients 2 --time 10s --warmup 0s --distribution special \
             --statements prepared --host h --port 3306 --user sbtest --database sbtest --tables 2 --no-defaults",
            "an event is a row",
        ),
        (
            "oltp_common --threads=2 --tables=4 --secondary --mysql-host=h prepare",
            "loadgen prepare --jobs 2 --host h --port 3306 --user sbtest --database sbtest --rows 10000 \
             --tables 4 --no-defaults",
            "id is always the primary key",
        ),
        (
            "oltp_insert --mysql-host=h prewarm",
            "loadgen point-select --warm pool --clients 1 --ops 1 --warmup 0s --distribution special \
             --statements prepared --host h --port 3306 --user sbtest --database sbtest --rows 10000 --tables 1 \
             --no-defaults",
            "",
        ),
        (
            "oltp_insert --mysql-host=h --mysql-ssl=required cleanup",
            "loadgen cleanup --host h --port 3306 --user sbtest --database sbtest --ssl-mode REQUIRED --yes \
             --no-defaults",
            "only what",
        ),
    ] {
        let said = native(&settings(&format!("--explain {line}")), &crate::cli::native_verbs());
        let (command, rest) = said.split_once('\n').expect("two lines");
        assert_eq!(command, expected, "{line}");
        assert!(
            rest.lines().all(|line| line.starts_with("# ")) && rest.contains(differs),
            "{said}"
        );
        parses(command);
    }
}
