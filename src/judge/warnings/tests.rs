//! Each warning, provoked by facts.

use std::collections::BTreeMap;

use super::*;
use crate::summary::{
    ClientHost, Conditions, ErrorCount, Group, HostState, Interval, Keys, Levels, Link, Phase,
    Prepared, Sample, Settled, Share, Warning,
};
use serde_json::Value as Json;

fn of(step: &Summary) -> Vec<Warning> {
    let conditions = step.conditions.clone().unwrap_or_default();
    let found = warnings(step, step.server.class, &conditions);
    found.into_iter().map(Warning::from).collect()
}

/// Returns a value of a warning.
fn value(warning: &Warning, name: &str) -> Json {
    warning.values.as_ref().expect("values")[name].clone()
}

fn sound() -> Summary {
    let mut step: Summary =
        serde_json::from_str(include_str!("../../../tests/fixtures/summary.json"))
            .expect("a summary");
    // A minute at 10,000 ops a second, give or take.
    step.timeline = (0..60).map(|i| interval(i, 10_000 + 20 * (u64::from(i) % 7))).collect();
    step.conditions = Some(Conditions {
        before: None,
        flushed: None,
        at_start: Some(Levels {
            uptime_s: Some(86_400),
            tables_age_s: Some(90_000),
            pool_pages: Some(262_144),
            pool_free_pages: Some(0),
            pool_dirty_pages: Some(100),
            history_list_length: Some(12),
            checkpoint_age_bytes: Some(1 << 20),
            checkpoint_age_max_bytes: Some(1 << 30),
            pool_load: Some("Buffer pool(s) load completed at 261120 10:40:00".to_owned()),
        }),
        window: (0..4).map(|i| sample(20.0 * f64::from(i), 180_000 * i)).collect(),
        client_host: Some(HostState {
            covered_s: 72.0,
            governors: [("performance".to_owned(), 24)].into(),
            throttled: Some(0),
            numa_nodes: Some(2),
            swapped_pages: Some(0),
            links: vec![link(1000, 10 << 20)],
            ..HostState::default()
        }),
        server_host: None,
        keys: Some(keys("uniform", 1e-7, 0.5)),
        expected_class: Some(Class::IoBound),
    });
    step.server.class = Some(Class::IoBound);
    step
}

fn interval(second: u32, ops: u64) -> Interval {
    Interval {
        phase: Phase::Measure,
        start_s: 10.0 + f64::from(second),
        length_s: 1.0,
        ops,
        errors: 0,
        retried: None,
        p50_us: Some(790.0),
        p99_us: None,
        max_us: None,
        response_p50_us: None,
        response_p99_us: None,
        response_max_us: None,
    }
}

fn sample(at_s: f64, pool_reads: u32) -> Sample {
    let pool_reads = Some(pool_reads.into());
    Sample { at_s, pool_reads, pool_free_pages: Some(0), client_mhz: Some(3000.0) }
}

fn link(mbit_per_s: u64, bytes: u64) -> Link {
    Link { name: "eth0".to_owned(), mbit_per_s, rx_bytes: bytes, tx_bytes: 1 }
}

fn keys(distribution: &str, hottest_share: f64, half_on_share: f64) -> Keys {
    let distribution = distribution.to_owned();
    Keys { distribution, drawn: 6e5, hottest_share, half_on_share, distinct: 5.9e5, rows: 1.28e8 }
}

/// The codes of what is said once a sound step is changed.
fn codes(change: impl FnOnce(&mut Summary, &mut Conditions)) -> Vec<String> {
    let mut step = sound();
    let mut conditions = step.conditions.take().unwrap_or_default();
    change(&mut step, &mut conditions);
    step.conditions = Some(conditions);
    of(&step).into_iter().map(|warning| warning.code).collect()
}

fn levels(change: impl FnOnce(&mut Levels)) -> Vec<String> {
    codes(|_, conditions| change(conditions.at_start.as_mut().expect("there")))
}

fn host(change: impl FnOnce(&mut HostState)) -> Vec<String> {
    codes(|_, conditions| change(conditions.client_host.as_mut().expect("there")))
}

#[test]
fn a_sound_step_is_left_alone() {
    assert_eq!(codes(|_, _| {}), [""; 0]);
    let mut bare = sound();
    bare.conditions = None;
    assert_eq!(of(&bare), [], "nothing is known, nothing is said");
}

#[test]
fn a_pool_that_could_hold_the_data_and_did_not_was_cold() {
    let cold = |s: &mut Summary| {
        (s.server.class, s.server.buffer_pool_bytes) = (Some(Class::Cold), Some(64 << 30));
    };
    // It is not what was expected, either.
    assert_eq!(codes(|s, _| cold(s)), ["cold_pool", "unexpected_class"]);
    // Statistics of empty tables say nothing.
    let empty = codes(|s, _| {
        s.server.buffer_pool_bytes = Some(64 << 30);
        s.server.data_bytes = Some(32 << 10);
    });
    assert_eq!(empty, [""; 0]);
}

#[test]
fn a_pool_that_fills_or_misses_less_and_less_is_warming() {
    let filling = codes(|_, c| c.window[0].pool_free_pages = Some(40_000));
    assert_eq!(filling, ["warming_pool"]);
    // The page cleaner keeps 1536 free of each of 8 instances.
    let kept = |free: u64| {
        codes(|s, c| {
            for (name, value) in [("lru_scan_depth", "1536"), ("buffer_pool_instances", "8")] {
                s.server.variables.insert(format!("innodb_{name}"), value.to_owned());
            }
            c.window[0].pool_free_pages = Some(free);
        })
    };
    assert_eq!([kept(12_288), kept(18_000), kept(19_000)].map(|codes| codes.len()), [0, 0, 1]);
    // If the pages are free, misses need not be known.
    let unknown = codes(|_, c| {
        c.window.truncate(1);
        c.window[0].pool_free_pages = Some(40_000);
    });
    assert_eq!(unknown, ["warming_pool"]);
    // 0.9 misses an op in the first third, 0.8 in the last.
    assert_eq!(codes(|_, c| c.window[3].pool_reads = Some(520_000)), ["warming_pool"]);
    // 0.9 and 0.88: less than a twentieth.
    assert_eq!(codes(|_, c| c.window[3].pool_reads = Some(536_000)), [""; 0]);
    // Few misses differ by chance.
    let few = codes(|_, c| {
        for (sample, reads) in c.window.iter_mut().zip([0, 10, 20, 28]) {
            sample.pool_reads = Some(reads);
        }
    });
    assert_eq!(few, [""; 0]);
    let cached = codes(|s, c| {
        s.server.class = Some(Class::Cached);
        c.expected_class = None;
        c.window[0].pool_free_pages = Some(40_000);
    });
    assert_eq!(cached, [""; 0], "free pages do no harm where nothing is read");
}

#[test]
fn a_pool_from_a_file_is_told_for_a_while() {
    for text in ["Loaded 1200/262144 pages", "Loading buffer pool(s) from /var/lib/mysql/x"] {
        assert_eq!(levels(|l| l.pool_load = Some(text.to_owned())), ["restored_pool"]);
    }
    assert_eq!(levels(|l| l.uptime_s = Some(60)), ["restored_pool"]);
    for age_s in [40, 60, 61] {
        let since = levels(|l| (l.uptime_s, l.tables_age_s) = (Some(60), Some(age_s)));
        assert_eq!(since, [""; 0], "tables that are younger than the server");
    }
    let nothing = "Cannot open '/x/ib_buffer_pool' for reading: No such file or directory";
    let without = levels(|l| {
        l.uptime_s = Some(60);
        l.pool_load = Some(nothing.to_owned());
    });
    assert_eq!(without, [""; 0]);
}

#[test]
fn data_that_fit_where_they_should_not() {
    assert_eq!(codes(|s, _| s.server.class = Some(Class::Cached)), ["unexpected_class"]);
    assert_eq!(codes(|_, c| c.expected_class = Some(Class::Cached)), ["unexpected_class"]);
}

#[test]
fn debt_of_the_test_before() {
    assert_eq!(levels(|l| l.pool_dirty_pages = Some(30_000)), ["debt"]);
    assert_eq!(levels(|l| l.checkpoint_age_bytes = Some(600 << 20)), ["debt"]);
    assert_eq!(levels(|l| l.history_list_length = Some(10_001)), ["debt"]);
    assert_eq!(levels(|l| l.checkpoint_age_max_bytes = Some(0)), [""; 0]);
    // If the server does not tell the maximum, the log's size does.
    let by_size = codes(|s, c| {
        let set = &mut s.server.variables;
        set.insert("innodb_log_file_size".to_owned(), (50 << 20).to_string());
        set.insert("innodb_log_files_in_group".to_owned(), "2".to_owned());
        let levels = c.at_start.as_mut().expect("there");
        levels.checkpoint_age_max_bytes = None;
        levels.checkpoint_age_bytes = Some(60 << 20);
    });
    assert_eq!(by_size, ["debt"]);
}

#[test]
fn a_redo_log_that_is_written_full_again_and_again() {
    let written = |bytes: i64, capacity: Option<u64>| {
        codes(|s, _| {
            let set = &mut s.server.variables;
            set.insert("innodb_log_file_size".to_owned(), (5 << 20).to_string());
            set.insert("innodb_log_files_in_group".to_owned(), "2".to_owned());
            let capacity = capacity.map(|bytes| bytes.to_string());
            set.extend(capacity.map(|bytes| ("innodb_redo_log_capacity".to_owned(), bytes)));
            let status = s.server.status.as_mut().expect("there");
            status.deltas.insert("Innodb_os_log_written".to_owned().into(), bytes);
        })
    };
    // 10 MB in a minute and its lead: seven times, six times.
    assert_eq!(written(75 << 20, None), ["small_log"]);
    assert_eq!(written(50 << 20, None), [""; 0]);
    assert_eq!(written(75 << 20, Some(2 << 30)), [""; 0]);
    // The capacity that nobody set is not that of the files that somebody did.
    let files = |size: u64| {
        let set =
            [("log_file_size", size), ("log_files_in_group", 2), ("redo_log_capacity", 100 << 20)];
        let set = set.map(|(name, value)| (format!("innodb_{name}"), value.to_string()));
        let variables = BTreeMap::from(set).into();
        log_bytes(&Server { variables, ..Server::default() })
    };
    assert_eq!([files(2 << 30), files(48 << 20)], [Some(4 << 30), Some(100 << 20)]);
}

#[test]
fn a_wait_that_was_given_up() {
    let settled = |last: Levels| {
        let found = left(&last);
        let complete = !found.more && found.unknown.is_empty();
        let unknown = found.unknown.into_iter().map(str::to_owned).collect();
        codes(|_, c| {
            let settle = Some(Settled { complete, unknown, last, ..Settled::default() });
            c.before = Some(Prepared { settle, ..Prepared::default() });
        })
    };
    let levels = |dirty, history_list_length| Levels {
        pool_pages: Some(8192),
        pool_dirty_pages: dirty,
        history_list_length,
        ..Levels::default()
    };
    assert_eq!(settled(levels(Some(80), Some(1000))), [""; 0]);
    assert_eq!(settled(levels(Some(82), Some(0))), ["not_settled"]);
    assert_eq!(settled(levels(Some(0), Some(1001))), ["not_settled"]);
    assert_eq!(settled(levels(Some(0), None)), ["settle_unknown"]);
    assert_eq!(settled(levels(None, Some(1001))), ["not_settled", "settle_unknown"]);
    assert_eq!(settled(Levels::default()), ["settle_unknown"]);
}

#[test]
fn a_query_cache_and_logs_of_everything() {
    let set = |pairs: &[(&str, &str)]| {
        codes(|s, _| {
            for (name, value) in pairs {
                s.server.variables.insert((*name).to_owned(), (*value).to_owned());
            }
        })
    };
    let on = [("query_cache_type", "ON"), ("query_cache_size", "1048576")];
    assert_eq!(set(&on), ["query_cache"]);
    assert_eq!(set(&[("query_cache_type", "ON"), ("query_cache_size", "0")]), [""; 0]);
    assert_eq!(set(&[("query_cache_type", "OFF"), ("query_cache_size", "9999")]), [""; 0]);
    assert_eq!(set(&[("general_log", "ON")]), ["instrumented"]);
    let slow = [("slow_query_log", "ON"), ("long_query_time", "0.000000")];
    assert_eq!(set(&slow), ["instrumented"]);
    assert_eq!(set(&[("slow_query_log", "ON"), ("long_query_time", "10.0")]), [""; 0]);
    // A log that is on and is written nowhere.
    assert_eq!(set(&[("general_log", "ON"), ("log_output", "FILE,NONE")]), [""; 0]);
    assert_eq!(set(&[("general_log", "ON"), ("log_output", "FILE,TABLE")]), ["instrumented"]);
}

#[test]
fn statements_that_find_no_row_are_told() {
    let of = |count| codes(|s, _| (s.totals.statements, s.totals.unmatched) = (1000, count));
    assert!(of(None).is_empty() && of(Some(10)).is_empty());
    assert_eq!(of(Some(11)), ["unmatched"]);
}

#[test]
fn a_server_that_was_started_anew() {
    let restarted = |s: &mut Summary| {
        s.server.status.as_mut().expect("there").restarted_s = Some(17.6);
    };
    assert_eq!(codes(|s, _| restarted(s)), ["restarted"]);
    let mut step = sound();
    restarted(&mut step);
    assert_eq!(value(&of(&step)[0], "at"), Json::from(17.6));
}

#[test]
fn wrong_answers_are_named() {
    let error = ErrorCount {
        code: None,
        sqlstate: None,
        class: ErrorClass::Wrong,
        message: "0 rows, expected 1".to_owned(),
        count: 3,
    };
    let mut step = sound();
    step.totals.errors = vec![error];
    let said = of(&step);
    assert_eq!(said[0].code, "wrong_answers");
    assert_eq!(value(&said[0], "count"), Json::from(3_u64));
    assert_eq!(value(&said[0], "first"), Json::from("0 rows, expected 1"));
}

#[test]
fn a_window_that_does_not_keep_its_level() {
    let timeline = |of: &dyn Fn(u32) -> u64| {
        codes(|s, c| {
            s.timeline = (0..60).map(|i| interval(i, of(i))).collect();
            // Misses an op would change, too.
            c.window.clear();
        })
    };
    assert_eq!(timeline(&|i| 10_000 + u64::from(i) * 30 + u64::from(i % 3)), ["drift"]);
    let step = |i| if i < 40 { 10_000 + u64::from(i % 5) } else { 8_000 + u64::from(i % 7) };
    assert_eq!(timeline(&step), ["level_change"]);
    // Two percent are no change that matters.
    let small = |i| if i < 40 { 10_000 + u64::from(i % 5) } else { 9_800 + u64::from(i % 7) };
    assert_eq!(timeline(&small), [""; 0]);
    // An open loop keeps its rate: what it cost tells.
    let paced = codes(|s, _| {
        s.plan.rate = Some(10_000.0);
        for (i, entry) in (0_u32..).zip(&mut s.timeline) {
            entry.p50_us = Some(if i < 30 { 790.0 } else { 990.0 } + f64::from(i % 5));
        }
    });
    assert_eq!(paced, ["level_change"]);
}

#[test]
fn a_rate_that_rises_from_nothing_has_a_size() {
    let mut step = sound();
    step.measured_s = 60.0;
    step.timeline = (0..60).map(|i| interval(i, if i < 30 { 0 } else { 2 })).collect();
    let said = of(&step);
    let change = said.iter().find(|warning| warning.code == "level_change").expect("it is");
    let by = value(change, "by").as_f64().expect("a share");
    assert!((by - 119.0).abs() < 1e-6, "{by}");
}

/// Returns the findings of an open loop of a minute with other times.
fn paced(change: impl Fn(u32, &mut Interval)) -> Vec<Warning> {
    let mut step = sound();
    step.plan.rate = Some(10_000.0);
    for (i, entry) in (0_u32..).zip(&mut step.timeline) {
        entry.response_p50_us = Some(900.0);
        change(i, entry);
    }
    of(&step)
}

#[test]
fn an_open_loop_s_response_time_is_looked_at_too() {
    let said = paced(|i, entry| {
        entry.response_p50_us = Some(if i < 30 { 900.0 } else { 9_000.0 } + f64::from(i % 5));
    });
    let codes: Vec<&str> = said.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(codes, ["level_change"]);
    assert_eq!(value(&said[0], "series"), Json::from("the median response time"));
    assert_eq!(value(&said[0], "direction"), Json::from("rose"));
    assert_eq!(value(&said[0], "at"), Json::from(30.0));
    let by = value(&said[0], "by").as_f64().expect("a share");
    assert!((by - 8.98).abs() < 0.01, "{by}");
    // A rate that was too high is told as such.
    let mut step = sound();
    step.plan.rate = Some(10_000.0);
    step.warnings.push(finding!(NotSustained, 1.0, 10_000.0, 7.0, None::<String>).into());
    for (i, entry) in (0_u32..).zip(&mut step.timeline) {
        entry.response_p50_us = Some(f64::from(i + 1));
    }
    assert_eq!(of(&step), []);
}

#[test]
fn intervals_without_an_answer_do_not_move_a_change() {
    // None in the first 20 s; the level changes 40 s into the window.
    let said = paced(|i, entry| {
        let level = if i < 40 { 790.0 } else { 990.0 } + f64::from(i % 5);
        entry.p50_us = Some(level).filter(|_| i >= 20);
    });
    assert_eq!(value(&said[0], "at"), Json::from(40.0));
    let said = paced(|i, entry| entry.p50_us = Some(790.0).filter(|_| i % 30 == 7));
    assert_eq!(value(&said[0], "intervals"), Json::from(2_u64));
}

#[test]
fn a_window_that_is_too_short() {
    assert_eq!(codes(|s, _| s.timeline.truncate(2)), ["too_short"]);
    let mut step = sound();
    step.timeline.truncate(1);
    let said = of(&step);
    let short = said.iter().find(|warning| warning.code == "too_short").expect("it is");
    assert_eq!(value(short, "intervals"), Json::from(1_u64));
    assert_eq!(value(short, "error"), Json::Null);
    let noisy = codes(|s, _| {
        s.timeline = (0..6).map(|i| interval(i, [9_000, 11_000][i as usize % 2])).collect();
    });
    assert_eq!(noisy, ["too_short"]);
    // Two intervals of 60 with answers: nothing bounds the rate.
    let mut step = sound();
    step.timeline = (0..60).map(|i| interval(i, if i < 2 { 9_000 } else { 0 })).collect();
    let said = of(&step);
    let short = said.iter().find(|warning| warning.code == "too_short").expect("it is");
    assert_eq!(value(short, "error"), Json::from(1.0));
    // Noise of this size, in the long run.
    let long = codes(|s, _| {
        s.timeline = (0..60).map(|i| interval(i, [9_000, 11_000][i as usize % 2])).collect();
    });
    assert_eq!(long, [""; 0]);
    let said = paced(|i, entry| {
        entry.response_p50_us = Some([500.0, 900.0, 2_500.0][i as usize % 7 % 3]);
    });
    assert_eq!(said[0].code, "too_short");
    assert_eq!(value(&said[0], "series"), Json::from("the median response time"));
}

#[test]
fn a_window_in_which_nothing_was_completed_says_so_and_no_more() {
    let said = |issued, failed, abandoned| {
        let mut step = sound();
        (step.measured_s, step.totals.ops) = (2.0, 0);
        step.timeline.truncate(2);
        step.latency.service.count = issued;
        step.latency.failed.count = failed;
        step.totals.abandoned = abandoned;
        of(&step)
    };
    let nothing =
        |became: &str| vec![Warning::from(finding!(NothingCompleted, 2.0, became, None::<&str>))];
    assert_eq!(said(4, 0, 1), nothing("3 ended after it, 1 got no answer"));
    assert_eq!(said(0, 7, 0), nothing("7 failed"));
    assert_eq!(said(0, 0, 0), nothing("none began"), "all waited for what the warm-up had begun");
    let mut late = sound();
    (late.measured_s, late.totals.ops, late.latency.service.count) = (2.0, 0, 8);
    // Those that got no answer were issued in the warm-up.
    (late.totals.abandoned, late.latency.abandoned) = (3, Some(0));
    assert_eq!(of(&late), nothing("8 ended after it, 3 got no answer"));
    let mut undue = sound();
    (undue.measured_s, undue.totals.ops, undue.latency.service.count) = (2.0, 0, 0);
    undue.totals.intended = Some(0);
    assert_eq!(of(&undue), nothing("none arrived"));
    let beside = |ops, intended| {
        let mut group = Group { name: "writer".to_owned(), measured_s: 2.0, ..Group::default() };
        (group.totals.ops, group.totals.intended) = (ops, intended);
        of(&Summary { groups: vec![group], ..sound() })
    };
    let idle =
        |became: &str| vec![Warning::from(finding!(NothingCompleted, 2.0, became, "writer"))];
    assert_eq!([beside(0, None), beside(0, Some(3))], [idle("none began"), idle("none began")]);
    assert_eq!([beside(1, None), beside(0, Some(0))], [vec![], idle("none arrived")]);
    let early = Group { name: "writer".to_owned(), ..Group::default() };
    let none = finding!(NothingCompleted, sound().measured_s, "none began", "writer");
    assert_eq!(of(&Summary { groups: vec![early], ..sound() }), [Warning::from(none)]);
}

#[test]
fn skewed_keys() {
    assert_eq!(codes(|_, c| c.keys = Some(keys("special", 1e-5, 0.005))), ["skew"]);
    assert_eq!(codes(|_, c| c.keys = Some(keys("uniform", 0.02, 0.5))), ["skew"]);
}

#[test]
fn hosts_that_are_slow_or_full() {
    let powersave = |state: &mut HostState| state.governors = [("powersave".to_owned(), 8)].into();
    assert_eq!(host(powersave), ["cpu_governor"]);
    assert_eq!(host(|state| state.throttled = Some(2)), ["cpu_throttled"]);
    assert_eq!(host(|state| state.swapped_pages = Some(1000)), ["swapping"]);
    // 72 s at 110 MB/s of 125.
    assert_eq!(host(|state| state.links = vec![link(1000, 7_920_000_000)]), ["network_full"]);
    assert_eq!(host(|state| state.covered_s = 0.0), [""; 0]);
    assert_eq!(host(|state| state.server_numa_nodes = Some(2)), ["numa_unbound"]);
    let interleaved = codes(|s, c| {
        s.server.variables.insert("innodb_numa_interleave".to_owned(), "ON".to_owned());
        c.client_host.as_mut().expect("there").server_numa_nodes = Some(2);
    });
    assert_eq!(interleaved, [""; 0]);
    assert_eq!(codes(|_, c| c.window[3].client_mhz = Some(2500.0)), ["cpu_frequency"]);
    let other = codes(|_, c| {
        c.server_host = c.client_host.clone();
        powersave(c.server_host.as_mut().expect("there"));
    });
    assert_eq!(other, ["cpu_governor"]);
}

#[test]
fn changes_are_told_apart_or_counted() {
    let long = |end: &str| Some("x".repeat(900) + end);
    let change =
        |n: u32| SettingChange { name: format!("name{n}"), before: long("a"), after: long("b") };
    let changed: Vec<SettingChange> = (0..30).map(change).collect();
    let message = changed_when(&changed, "during the step")[0].to_string();
    assert!(message.contains("xa ") && message.contains("xb"), "{message}");
    let shown = message.matches("name").count();
    assert!(message.ends_with(&format!("and {} more", 30 - shown)), "{message}");
    assert!(message.chars().count() <= 300, "a note cuts it otherwise: {message}");
}

#[test]
fn hosts_of_which_something_is_wrong_are_told() {
    let host = |rank: u32, change: fn(&mut ClientHost)| {
        let mut host = ClientHost {
            rank,
            name: format!("c{rank}"),
            boot_id: Some(rank.to_string()),
            clients: 4,
            threads: 1,
            ops: 40_000,
            share: Some(Share::default()),
            ..ClientHost::default()
        };
        change(&mut host);
        host
    };
    let found = |change: fn(&mut ClientHost)| {
        codes(|step, _| {
            (step.plan.warmup_s, step.measured_s) = (10.0, 60.0);
            step.hosts = vec![host(1, |_| {}), host(2, change)];
        })
    };
    assert_eq!(found(|_| {}), [""; 0]);
    assert_eq!(found(|host| host.clock.error_us = 59_000.0), [""; 0]);
    assert_eq!(found(|host| host.clock.error_us = 61_000.0), ["rank_skew"]);
    assert_eq!(found(|host| (host.threads, host.clock.error_us) = (0, 61_000.0)), [""; 0]);
    assert_eq!(found(|host| host.late_us = 200_000.0), ["rank_late"]);
    assert_eq!(found(|host| host.paused_s = 1.5), ["rank_paused"]);
    assert_eq!(found(|host| host.boot_id = Some("1".to_owned())), ["ranks_share_host"]);
    assert_eq!(found(|host| host.ops = 30_000), ["rank_uneven"]);
    assert_eq!(found(|host| host.clients = 0), [""; 0], "it had none");
}

#[test]
fn host_is_uneven_when_it_did_hardly_anything_and_chance_does_not_explain_it() {
    let found = |one: u64, other: u64| {
        let host = |ops| {
            let share = Some(Share::default());
            ClientHost { clients: 4, ops, share, ..ClientHost::default() }
        };
        uneven(&[host(one), host(other)]).is_some()
    };
    for few in [0, 3, 16] {
        assert!(found(few, 4_000_000) && found(4_000_000, few), "{few}");
    }
    for (few, many) in [(0, 0), (0, 12), (3, 9), (900, 1_000)] {
        assert!(!found(few, many) && !found(many, few), "{few} and {many}");
    }
    assert!(found(9_000, 10_500), "a seventh, and ten deviations");
}
