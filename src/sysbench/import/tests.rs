mod commands;

use super::*;

/// Finds runs where the user says nothing.
fn runs(bytes: &[u8]) -> Vec<Result<FoundRun, Unreadable>> {
    super::runs(bytes, &Imported::default())
}

/// Makes the output of 1.0 of a run of oltp_read_only with these further lines in their places.
fn text_of(header: &str, intervals: &str, histogram: &str) -> String {
    format!(
        "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\n\
         Running the test with following options:\nNumber of threads: 8\n{header}\
         Initializing random number generator from current time\n\n\n\
         Initializing worker threads...\n\nThreads started!\n\n{intervals}{histogram}{REPORT}"
    )
}

const REPORT: &str = "\
SQL statistics:
    queries performed:
        read:                            140000
        write:                           0
        other:                           20000
        total:                           160000
    transactions:                        10000  (999.66 per sec.)
    queries:                             160000 (15994.52 per sec.)
    ignored errors:                      3      (0.30 per sec.)
    reconnects:                          1      (0.10 per sec.)

General statistics:
    total time:                          10.0030s
    total number of events:              10000

Latency (ms):
         min:                                    2.12
         avg:                                    8.00
         max:                                   41.37
         95th percentile:                       10.27
         sum:                                80012.34

Threads fairness:
    events (avg/stddev):           1250.0000/12.55
    execution time (avg/stddev):   10.0015/0.00

";

const OF_0_5: &str = "\
sysbench 0.5:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: 4
Report intermediate results every 1 second(s)
Initializing random number generator from seed (42).


Threads started!

[   1s] threads: 4, tps: 50.00, reads: 700.00, writes: 200.00, response time: 95.12ms (99%), errors: 1.00, reconnects:  0.00
[   2s] threads: 4, tps: 51.00, reads/s: 714.00, writes/s: 204.00 response time: 90.00ms (99%)
OLTP test statistics:
    queries performed:
        read:                            1414
        write:                           404
        other:                           202
        total:                           2020
    transactions:                        101    (50.40 per sec.)
    read/write requests:                 1818   (907.20 per sec.)
    other operations:                    202    (100.80 per sec.)
    ignored errors:                      2      (1.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          2.0040s
    total number of events:              101
    total time taken by event execution: 8.0011s
    response time:
         min:                                 20.10ms
         avg:                                 79.22ms
         max:                                120.55ms
         approx.  99 percentile:              95.61ms

Threads fairness:
    events (avg/stddev):           25.2500/0.43
    execution time (avg/stddev):   2.0003/0.00
";

const OF_0_4: &str = "\
sysbench 0.4.12:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: 2

Doing OLTP test.
Doing read-only test
Using Special distribution (12 iterations,  1 pct of values are returned in 75 pct cases)
Skipping BEGIN/COMMIT
Threads started!
Done.

OLTP test statistics:
    queries performed:
        read:                            1000
        write:                           0
        other:                           1000
        total:                           2000
    transactions:                        1000   (500.00 per sec.)
    deadlocks:                           4      (2.00 per sec.)
    read/write requests:                 1000   (500.00 per sec.)
    other operations:                    1000   (500.00 per sec.)

Test execution summary:
    total time:                          2.0000s
    total number of events:              1000
    total time taken by event execution: 3.9900
    per-request statistics:
         min:                                  1.51ms
         avg:                                  3.99ms
         max:                                 92.71ms
         approx.  95 percentile:               8.04ms

Threads fairness:
    events (avg/stddev):           500.0000/2.00
    execution time (avg/stddev):   1.9950/0.00
";

/// The only run of a text.
fn one(text: &str) -> FoundRun {
    let mut found = runs(text.as_bytes());
    assert_eq!(found.len(), 1, "{text}");
    found.remove(0).unwrap_or_else(|broken| panic!("{broken:?} in {text}"))
}

/// Returns the error of the only run of a text.
fn wrong(text: &str) -> Unreadable {
    let mut found = runs(text.as_bytes());
    assert_eq!(found.len(), 1, "{text}");
    found.remove(0).expect_err(text)
}

fn codes(run: &FoundRun) -> Vec<&str> {
    run.run.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

#[test]
fn a_text_of_1_0_is_read_whole() {
    let found = one(&text_of("", "", ""));
    let run = &found.run;
    assert_eq!((found.line, run.clients, run.measured_s), (4, 8, 10.003));
    assert_eq!(run.source.version.as_deref(), Some("1.0.20"));
    assert_eq!(found.alike, Some("read-only"), "by 14/0/2");
    let totals = &run.totals;
    assert_eq!((totals.ops, totals.statements), (10_000, 160_000));
    assert_eq!((totals.tps, totals.qps), (999.66, 15994.52));
    assert_eq!((totals.reads, totals.writes, totals.others), (140_000, 0, 20_000));
    assert_eq!((totals.errors, totals.retried, totals.reconnects), (0, Some(3), Some(1)));
    let latency = &run.latency;
    assert_eq!((latency.min_us, latency.max_us), (Some(2120.0), Some(41_370.0)));
    let mean = latency.mean_us.expect("there were events");
    assert!((mean - 8001.234).abs() < 1e-6, "the sum by the events: {mean}");
    let wanted = ImportedPercentile { percentile: 95, value_us: 10_270.0 };
    assert_eq!(latency.percentile, Some(wanted));
    assert_eq!(run.fairness.map(|of| of.ops_stddev), Some(12.55));
    assert!(run.timeline.is_empty() && run.warnings.is_empty(), "{:?}", run.warnings);
    assert_eq!((run.rate, run.seed, run.tables, run.rows), (None, None, None, None));
}

#[test]
fn a_text_of_0_5_adds_its_two_rates_up() {
    let found = one(OF_0_5);
    let run = &found.run;
    assert_eq!(run.source.version.as_deref(), Some("0.5"));
    assert_eq!((run.totals.statements, run.totals.qps), (2020, 1008.0));
    assert_eq!((run.totals.retried, run.seed), (Some(2), Some(42)));
    assert_eq!(run.latency.percentile.map(|of| of.value_us), Some(95_610.0));
    assert_eq!(Some(run.latency.sum_s), Some(8.0011));
    assert_eq!(found.alike, Some("read-write"));
    let [first, second] = run.timeline.as_slice() else { panic!("{:?}", run.timeline) };
    assert_eq!((first.end_s, first.tps, first.reads_per_s), (1.0, 50.0, Some(700.0)));
    assert_eq!((first.errors_per_s, first.qps), (Some(1.0), None));
    assert_eq!(first.percentile.expect("there").percentile, 99);
    assert_eq!((second.writes_per_s, second.errors_per_s), (Some(204.0), None));
    assert_eq!(second.percentile.map(|of| of.value_us), Some(90_000.0));
}

#[test]
fn the_others_of_0_4_are_no_statements() {
    let found = one(OF_0_4);
    let run = &found.run;
    assert_eq!((run.totals.statements, run.totals.qps, run.totals.others), (1000, 500.0, 1000));
    assert_eq!((run.totals.retried, run.totals.reconnects), (Some(4), None), "deadlocks");
    assert_eq!(run.distribution.as_deref(), Some("special"));
    assert_eq!((run.latency.sum_s, found.alike), (3.99, None));
    assert_eq!(codes(&found), ["imported_requests"]);
}

#[test]
fn a_text_of_1_1_is_read_with_its_own_blocks() {
    let (start, end) = REPORT.split_once("General statistics:").expect("there");
    let (_, end) = end.split_once("\n\n").expect("a block");
    let throughput = "Throughput:\n    events/s (eps):                      999.6601\n    \
                      time elapsed:                        10.0034s\n    \
                      total number of events:              10000";
    let report = format!("{start}{throughput}\n\n{end}");
    let text = text_of("Warmup time: 5s\n", "Warming up for 5 seconds...\n\n", "");
    let text = text.replace("1.0.20", "1.1.0-3ceba0b").replace(REPORT, &report);
    let found = one(&text);
    assert_eq!((found.run.measured_s, found.run.warmup_s), (10.0034, Some(5.0)));
    assert_eq!(found.run.source.version.as_deref(), Some("1.1.0-3ceba0b"));
}

#[test]
fn intervals_are_read_in_all_their_forms() {
    let lines = "\
[ 1s ] thds: 8 tps: 990.10 qps: 15841.60 (r/w/o: 13861.40/0.00/1980.20) lat (ms,95%): 9.91 err/s: 0.00 reconn/s: 0.00
[ 1s ] queue length: 12, concurrency: 7
[ 2.0s ] thds: 8 tps: 995.00 qps: 15920.00 (r/w/o: 13930.00/0.00/1990.00) lat (ms,95%): 0.00 err/s 1.50 reconn/s: 0.00
[ 3s ] something else
";
    let rate = "Target transaction rate: 1000/sec\nReport intermediate results every 1 second(s)\n";
    let found = one(&text_of(rate, lines, ""));
    let [first, second] = found.run.timeline.as_slice() else { panic!("two lines are whole") };
    assert_eq!((first.qps, first.others_per_s), (Some(15841.6), Some(1980.2)));
    assert_eq!((first.queued, first.running), (Some(12), Some(7)));
    assert_eq!((second.end_s, second.errors_per_s), (2.0, Some(1.5)), "tpcc has no colon");
    assert_eq!(second.percentile, None, "0.00 is none");
    assert_eq!((found.run.rate, codes(&found)), (Some(1000.0), vec!["imported_cut"]));
}

#[test]
fn a_histogram_keeps_its_order_when_values_print_alike() {
    let histogram = "\
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.055 |**                                       500
       0.055 |****************************************  9000
       1.234 |                                         1

";
    let found = one(&text_of("", "", histogram));
    let buckets = &found.run.latency.histogram;
    let counts: Vec<u64> = buckets.iter().map(|bucket| bucket.count).collect();
    assert_eq!((counts, buckets[2].value_us), (vec![500, 9000, 1], 1234.0));
}

#[test]
fn what_stands_before_a_run_tells_of_it() {
    let command = "+ sysbench /usr/share/sysbench/oltp_update_index.lua --tables=4 \
                   --table_size=100000 --rand-type=pareto --db-ps-mode=disable \
                   --mysql-password=secret --threads=8 run\n";
    let found = one(&(command.to_owned() + &text_of("", "", "")));
    let run = &found.run;
    assert_eq!(found.test.as_deref(), Some("update-index"));
    assert_eq!((run.tables, run.rows), (Some(4), Some(100_000)));
    assert_eq!(run.distribution.as_deref(), Some("pareto:0.2"));
    assert_eq!(run.statements, Some(StatementMode::Text));
    assert!(!format!("{found:?}").contains("secret"));

    let prepared = "Creating table 'sbtest1'...\nInserting 5000 records into 'sbtest1'\n\
                    Creating a secondary index on 'sbtest1'...\n\
                    Creating table 'sbtest2'...\nInserting 5000 records into 'sbtest2'\n";
    let found = one(&(prepared.to_owned() + &text_of("", "", "")));
    assert_eq!((found.run.tables, found.run.rows), (Some(2), Some(5000)));
    let told = "sysbench oltp_delete --tables=$T --table-size=7 prepare\nsysbench --version\n\
                # sysbench results -- of host x\nwaiting for sysbench --- still running\n";
    let found = one(&(told.to_owned() + prepared + &text_of("", "", "")));
    assert_eq!(
        (found.test.as_deref(), found.run.tables),
        (None, Some(2)),
        "a prepare runs nothing"
    );
    assert_eq!(found.run.rows, Some(5000), "the lines of prepare come later");
    let dropped = prepared.to_owned() + "Dropping table 'sbtest1'...\n";
    assert_eq!(one(&(dropped + &text_of("", "", ""))).run.tables, None);
}

#[test]
fn each_run_of_a_file_is_one_when_some_are_broken() {
    let whole = text_of("", "", "");
    let cut = text_of("", "", "").replace(REPORT, "");
    let found = runs((whole.clone() + &cut + "sysbench x --tables=3 run\n" + &whole).as_bytes());
    let [Ok(first), Err(second), Ok(third)] = found.as_slice() else { panic!("{found:?}") };
    let lines = whole.lines().count();
    assert_eq!((first.line, first.run.tables), (4, None));
    assert!(second.line > lines && second.what.contains("no report"), "{second:?}");
    assert_eq!(third.run.tables, Some(3));
}

#[test]
fn line_ends_and_what_follows_the_report_change_nothing() {
    let text = text_of("", "", "");
    let wanted = one(&text);
    assert_eq!(one(&text.replace('\n', "\r\n")), wanted);
    assert_eq!(one(&format!("\u{feff}{text}")), wanted);
    assert_eq!(
        one(&(text.clone() + "real: 0m10s\nmax: 7\ntotal: 5\ntime elapsed:  99.00s\n")),
        wanted
    );
    assert_eq!(one(text.trim_end()), wanted);
}

#[test]
fn a_text_that_is_cut_anywhere_is_refused_or_equal() {
    for text in [text_of("", "", ""), OF_0_5.to_owned(), OF_0_4.to_owned()] {
        let wanted = one(&text);
        let start = text.find("transactions:").expect("a report");
        for end in (0..start).step_by(40).chain(start..text.len()) {
            for found in runs(&text.as_bytes()[..end]) {
                let Ok(mut found) = found else { continue };
                // Lines that are missing behind the sum are said.
                if found.run.fairness.is_none() {
                    assert!(codes(&found).contains(&"imported_cut"), "{end}");
                    found.run.warnings.retain(|warning| warning.code != "imported_cut");
                    found.run.fairness = wanted.run.fairness;
                }
                if found.run.latency.percentile.is_none() {
                    found.run.latency.percentile = wanted.run.latency.percentile;
                }
                assert_eq!(found, wanted, "cut at {end}");
            }
        }
    }
}

#[test]
fn a_run_without_events_has_no_times() {
    let text = text_of("", "", "")
        .replace("140000", "0")
        .replace("20000 ", "0 ")
        .replace("other:                           20000", "other:                           0")
        .replace("160000", "0")
        .replace("10000 ", "0 ")
        .replace("events:              10000", "events:              0")
        .replace("999.66", "0.00");
    let found = one(&text);
    let latency = &found.run.latency;
    assert_eq!((latency.mean_us, latency.min_us, latency.percentile), (None, None, None));
    assert_eq!((found.run.totals.ops, found.alike), (0, None));
}

#[test]
fn a_percentile_that_was_not_asked_for_is_none() {
    let text = text_of("", "", "")
        .replace("95th percentile:                       10.27", "percentile stats:   disabled");
    assert_eq!(one(&text).run.latency.percentile, None);
    let text = text_of("", "", "").replace(" 95th", "100th");
    assert_eq!(one(&text).run.latency.percentile.expect("there").percentile, 100);
}

#[test]
fn numbers_that_contradict_each_other_are_noted() {
    for (of, by) in [
        ("events:              10000", "events:              10500"),
        ("events:              10000", "events:              10004"),
        ("999.66", "900.00"),
        ("15994.52", "1994.52"),
        ("80012.34", "98012.34"),
    ] {
        let found = one(&text_of("", "", "").replace(of, by));
        assert!(codes(&found).contains(&"contradiction"), "{by}: {found:?}");
    }
    let forced = text_of("", "", "").replace(
        "General statistics:",
        "Number of unfinished transactions on forced shutdown: 5\n\nGeneral statistics:",
    );
    let forced = forced.replace("SQL stat", "FATAL: The --max-time limit has expired\n\nSQL stat");
    let found = one(&forced);
    assert_eq!(codes(&found), ["imported_fatal"]);
    let values = found.run.warnings[0].values.as_ref().expect("values");
    assert_eq!(values["unfinished"], 5.0);
}

#[test]
fn rates_of_a_short_run_contradict_nothing_when_they_cover_milliseconds_more() {
    let short = [
        ("999.66", "1612903.23"),
        ("15994.52", "25806451.61"),
        ("10.0030s", "0.0047s"),
        ("80012.34", "20.00"),
    ];
    let text = short.iter().fold(text_of("", "", ""), |text, (of, by)| text.replace(of, by));
    let found = one(&text);
    assert!(codes(&found).is_empty(), "{found:?}");
}

#[test]
fn what_is_no_run_is_refused_with_its_line() {
    let whole = || text_of("", "", "");
    let checkpoint = format!("[ 5s ] Checkpoint report:\n{REPORT}");
    let cpu = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nNumber of threads: 1\n\
               CPU speed:\n    events per second:  900.00\n\nGeneral statistics:\n    \
               total time:                          10.0009s\n";
    let fatal = "FATAL: unable to connect to MySQL server on socket '/tmp/x', aborting...\n";
    let failed = whole().replace(REPORT, fatal);
    let most = u64::MAX.to_string();
    let old = OF_0_4.replace("read:                            1000", &format!("read: {most}"));
    let old = old.replace("write:                           0", &format!("write: {most}"));
    for (text, line, what) in [
        (old, 18, "add up"),
        (String::new(), 1, "empty"),
        ("  \n\n".to_owned(), 1, "empty"),
        ("\0\u{1}\u{2}".to_owned(), 1, "no text"),
        ("[\n  {\"time\": 1}\n]".to_owned(), 1, "JSON"),
        ("{\"schema\": 1}".to_owned(), 1, "JSON"),
        ("hello\nworld\n".to_owned(), 2, "Number of threads"),
        (cpu.to_owned(), 8, "no SQL statistics"),
        (text_of("", &checkpoint, ""), 12, "checkpoints"),
        (failed, 12, "unable to connect"),
        (whole().replace("threads: 8", "threads: 0"), 4, "number of threads"),
        (whole().replace("threads: 8", "threads: -8"), 4, "number of threads"),
        (whole().replace("140000", "-140000"), 14, "'read:'"),
        (whole().replace("140000", "99999999999999999999999"), 14, "'read:'"),
        (whole().replace("140000", "18446744073709551615"), 17, "add up"),
        (whole().replace("140000", "139999"), 17, "add up"),
        (whole().replace("999.66", "1e999"), 18, "'transactions:'"),
        (whole().replace("10.0030s", "NaNs"), 24, "'total time:'"),
        (whole().replace("10.27", "10,27"), 31, "'percentile:'"),
    ] {
        let found = wrong(&text);
        assert!(found.what.contains(what), "{found:?} in {text}");
        assert_eq!(found.line, line, "{found:?} in {text}");
    }
}

#[test]
fn a_line_of_brackets_is_passed_over_however_long_it_is() {
    let intervals = "[ 1s ] thds: 8 tps: 999.00 qps: 15984.00 (r/w/o: 13986.00/0.00/1998.00) \
                     lat (ms,95%): 10.27 err/s: 0.00 reconn/s: 0.00\n";
    let brackets = "[".repeat(1_000_000);
    for line in [brackets.clone(), format!("{brackets} thds:"), "[1s".repeat(100_000)] {
        let run = one(&text_of("", &format!("{line}\n{intervals}"), "")).run;
        assert_eq!(run.timeline.len(), 1);
    }
}

#[test]
fn damaged_bytes_never_panic() {
    for text in [text_of("", "", ""), OF_0_5.to_owned(), OF_0_4.to_owned()] {
        for (at, by) in (0..text.len()).zip("9-[]():/.%s\u{0}\n|'=".bytes().cycle()) {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = by;
            assert!(!runs(&bytes).is_empty());
            bytes[at] = 0xff;
            assert!(!runs(&bytes).is_empty());
        }
    }
}

/// The intervals of 0.5 whose times are in microseconds.
#[test]
fn a_time_is_read_in_the_unit_that_stands_behind_it() {
    struct Case {
        printed: &'static str,
        micros: f64,
    }
    for Case { printed, micros } in [
        Case { printed: "95120.50us", micros: 95_120.5 },
        Case { printed: "95.12ms", micros: 95_120.0 },
        Case { printed: "0.09s", micros: 90_000.0 },
        Case { printed: "95.12", micros: 95_120.0 },
    ] {
        let interval = OF_0_5.replace("95.12ms", printed);
        let first = one(&interval).run.timeline[0].percentile.expect(printed);
        assert_eq!((first.percentile, first.value_us), (99, micros), "{printed}");
        let report = OF_0_5.replace("95.61ms", printed).replace("120.55ms", printed);
        let latency = one(&report).run.latency;
        let percentile = latency.percentile.map(|of| of.value_us);
        assert_eq!((percentile, latency.max_us), (Some(micros), Some(micros)), "{printed}");
    }
    let unknown = OF_0_5.replace("95.12ms", "95.12ns").replace("  95.61ms", "  95.61ns");
    assert!(wrong(&unknown).what.contains("'percentile:'"));
    let line = "[ 1s ] thds: 8 tps: 9.00 qps: 9.00 (r/w/o: 9.00/0.00/0.00) lat (us,95%): 9.91 err/s: 0.00\n";
    let first = one(&text_of("", line, "")).run.timeline[0].percentile;
    assert_eq!(first.map(|of| of.value_us), Some(9.91));
}

const INTERVALS: &str = "\
[ 1s ] thds: 8 tps: 990.10 qps: 15841.60 (r/w/o: 13861.40/0.00/1980.20) lat (ms,95%): 9.91 err/s: 0.00 reconn/s: 0.00
[ 2s ] thds: 8 tps: 995.00 qps: 15920.00 (r/w/o: 13930.00/0.00/1990.00) lat (ms,95%): 9.73 err/s: 0.00 reconn/s: 0.00
";
const HISTOGRAM: &str = "       value  ------------- distribution ------------- count\n       \
                         0.055 |**                                       500\n";

/// The lines of a text behind what a collector of logs puts before the one of this number.
fn behind_prefix(text: &str, prefix: fn(usize) -> String) -> String {
    (1..).zip(text.lines()).map(|(n, line)| format!("{}{line}\n", prefix(n))).collect()
}

#[test]
fn a_text_is_read_the_same_when_something_stands_before_each_line() {
    struct Case {
        name: &'static str,
        prefix: fn(usize) -> String,
    }
    let second = |n: usize| format!("{:02}:{:02}:{:02}", 3 + n / 3600, n / 60 % 60, n % 60);
    assert_eq!(second(61), "03:01:01");
    let cases = [
        Case { name: "kubectl", prefix: |n| format!("2026-01-02T03:04:05.{:0>9}Z ", 7 * n) },
        Case { name: "kubectl, short", prefix: |n| format!("2026-01-02T03:04:05.{}Z ", 7 * n) },
        Case { name: "kubectl --prefix", prefix: |_| "[pod/bench-7d9f8-x2x/sysbench] ".to_owned() },
        Case { name: "stern", prefix: |_| "bench-7d9f8-x2x sysbench ".to_owned() },
        Case { name: "compose", prefix: |_| "sysbench-1  | ".to_owned() },
        Case { name: "compose 1", prefix: |_| "\u{1b}[36mbench_1   |\u{1b}[0m ".to_owned() },
        Case {
            name: "compose --timestamps",
            prefix: |n| format!("bench-1  | 2026-01-02T03:04:{:02}.000000001Z ", n % 60),
        },
        Case {
            name: "journal",
            prefix: |n| format!("Jan {:>2} 03:04:{:02} db1 sysbench[4711]: ", 1 + n / 20, n % 60),
        },
        Case {
            name: "journal, short-iso",
            prefix: |n| format!("2026-01-02T03:04:{:02}+0000 db1 bench.sh[99]: ", n % 60),
        },
        Case { name: "ts", prefix: |n| format!("Jan 02 03:04:{:02} ", n % 60) },
        Case { name: "ts -i", prefix: |n| format!("00:00:{:02} ", n % 60) },
        Case { name: "ts %.s", prefix: |n| format!("17673230{n:02}.123456 ") },
        Case { name: "GitHub", prefix: |n| format!("2026-01-02T03:04:05.{:0>7}Z ", 7 * n) },
        Case {
            name: "gh run view",
            prefix: |n| format!("bench\tRun sysbench\t\u{feff}2026-01-02T03:04:05.{n}Z "),
        },
        Case { name: "Jenkins", prefix: |n| format!("[2026-01-02T03:04:05.{:0>3}Z] ", 7 * n) },
        Case { name: "Jenkins, branch", prefix: |_| "[mysql-8.4] ".to_owned() },
        Case {
            name: "log4j",
            prefix: |n| format!("2026-01-02 03:04:05,{:0>3} INFO  bench - ", 7 * n),
        },
        Case { name: "date", prefix: |n| format!("Fri Jan  2 03:04:{:02} UTC 2026: ", n % 60) },
        Case { name: "12 hours", prefix: |n| format!("01/02/2026 03:04:{:02} PM ", n % 60) },
        Case { name: "dmesg", prefix: |n| format!("[{:>5}.123456] ", 98 + n) },
        Case { name: "a quote", prefix: |_| "> ".to_owned() },
        Case { name: "a quote of a quote", prefix: |_| ">> ".to_owned() },
        Case { name: "pdsh", prefix: |_| "10.0.0.17: ".to_owned() },
        Case { name: "cat -n", prefix: |n| format!("{n:>6}\t") },
        Case { name: "grep -n", prefix: |n| format!("{n}:") },
        Case { name: "colours", prefix: |_| "\u{1b}[0;32m".to_owned() },
        Case { name: "a title", prefix: |_| "\u{1b}]0;bench\u{7}\u{1b}(B".to_owned() },
    ];
    let command = "+ sysbench oltp_read_only --tables=3 --table-size=77 --threads=8 run\n";
    let plain = command.to_owned() + &text_of("", INTERVALS, HISTOGRAM);
    let wanted = one(&plain);
    assert_eq!((wanted.run.timeline.len(), wanted.run.latency.histogram.len()), (2, 1));
    for Case { name, prefix } in cases {
        let text = behind_prefix(&plain, prefix);
        assert_eq!(one(&text), wanted, "{name}");
        assert_eq!(one(&text.replace('\n', "\r\n")), wanted, "{name}");
        let trimmed: String = text.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
        assert_eq!(one(&trimmed), wanted, "{name}");
        // Several runs, and one that is cut off.
        let cut = behind_prefix(&text_of("", "", "").replace(REPORT, ""), prefix);
        let found = runs(format!("{text}{text}{cut}").as_bytes());
        assert_eq!(found.len(), 3, "{name}");
        assert!(found[0].is_ok() && found[1].is_ok() && found[2].is_err(), "{name}");
    }
}

#[test]
fn outputs_are_told_apart_when_their_lines_are_mixed() {
    let [one_of, other] = ["oltp_read_only", "oltp_point_select"].map(|test| {
        format!("$ sysbench {test} --range-size=7 --threads=8 run\n{}", text_of("", INTERVALS, ""))
    });
    let server = "2026-01-02T03:04:05Z 0 [Note] mysqld: ready for connections. max: 7\n";
    let mixed: String = one_of
        .lines()
        .zip(other.lines())
        .map(|(one, other)| format!("load-1  | {one}\ndb-1    | {server}load-2  | {other}\n"))
        .collect();
    let found = runs(mixed.as_bytes());
    let [Ok(first), Ok(second)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((first.line, second.line), (3 * 4 + 1, 3 * 4 + 3));
    assert_eq!(first.test.as_deref(), Some("read-only"));
    assert_eq!(second.test.as_deref(), Some("point-select"));
    assert_eq!((first.run.timeline.len(), second.run.timeline.len()), (2, 2));
}

#[test]
fn an_interval_is_read_when_a_time_stands_before_it_alone() {
    let stamped: String = INTERVALS.lines().map(|line| format!("[03:04:05] {line}\n")).collect();
    let found = one(&text_of("", &stamped, ""));
    assert_eq!((found.run.timeline.len(), codes(&found)), (2, Vec::new()));
}
