//! Scripts in a step on a canned server: turns, counts, times, and what becomes of connections.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::canned::{Action, Answer, At, Fault, Script as Canned};
use crate::engine::tests::{Ran, measure, plan_of};
use crate::observe::EventCounts;
use crate::plan::{AfterError, Ignored, Plan, Rules, Script, StopAt};
use crate::summary::Outcome;

/// The functions of all scripts here.
const BEGIN: &str = "
    local ffi = require('ffi')
    ffi.cdef('void sb_counter_inc(int, sb_counter_type); int usleep(unsigned int);')
    local drv = sysbench.sql.driver()
";

/// Runs events of a script with these errors ignored.
fn run(text: &str, (clients, events): (u32, u64), codes: &[u16], canned: Canned) -> Ran {
    let rules = Rules::sysbench(Ignored::Codes(codes.to_vec()), Some(events), None);
    run_by(rules, StopAt::Time(Duration::from_mins(5)), clients, text, canned)
}

fn run_by(rules: Rules, stop: StopAt, clients: u32, text: &str, canned: Canned) -> Ran {
    let script = Some(Arc::new(Script::of_text(&format!("{BEGIN}{text}"))));
    measure(&Plan { rules, script, ..plan_of("point-select", clients, stop) }, canned)
}

fn counts(ran: &Ran) -> &EventCounts {
    assert_eq!(ran.step().outcome, Outcome::Completed);
    ran.step().counted.timeline.window.events.as_deref().expect("counts")
}

fn fault(at: At, action: Action, only: &str) -> Canned {
    Canned { faults: vec![Fault::new(at, action).only(only)], ..Canned::default() }
}

/// Clients of a thread share the metatable of texts; each goes on only when the other has come so far.
#[test]
fn clients_get_their_turn_while_another_waits_for_nothing() {
    let closes = || fault(At::EachStatement(1), Action::Close, "LOST");
    for vain in [
        "pcall(con.query, con, 'SELECT LOST')",
        "con:disconnect() pcall(con.query, con, 'SELECT 1')",
        "ffi.C.sb_counter_inc(tid, ffi.C.SB_CNT_OTHER)",
    ] {
        let text = format!(
            "local shared, con = getmetatable(''), drv:connect()
            function event(tid)
                if tid == 0 then
                    while (shared.events or 0) < 3 do {vain} end
                    return true
                end
                shared.events = (shared.events or 0) + 1
                con:query('SELECT 1')
            end"
        );
        assert!(counts(&run(&text, (2, 20), &[], closes())).events >= 18, "{vain}");
    }
    let text = "function event(tid) ffi.C.sb_counter_inc(tid, ffi.C.SB_CNT_READ) end";
    let ran = run(text, (8, 800), &[], Canned::default());
    let by_client: Vec<u64> = counts(&ran).by_client.iter().map(|of| of.events).collect();
    assert_eq!(counts(&ran).reads, 800);
    assert!(by_client.iter().all(|events| *events > 50), "{by_client:?}");
}

#[test]
fn time_of_an_event_has_no_turn_of_another_client() {
    let text = "function event(tid)
        local ends = os.clock() + 0.02
        while tid == 0 and os.clock() < ends do end
    end";
    let ran = run(text, (2, 40), &[], Canned::default());
    let [busy, idle] = counts(&ran).by_client[..] else { panic!("two clients") };
    let [busy, idle] = [busy, idle].map(|of| of.busy_ns / of.events);
    assert!(idle < busy / 2, "{idle} {busy}");
}

/// More clients than may log in at once.
#[test]
fn clients_wait_for_each_other_in_thread_init() {
    let text = "local shared = getmetatable('')
    function thread_init()
        con = drv:connect()
        shared.here = (shared.here or 0) + 1
        while shared.here < 40 do ffi.C.usleep(1000) end
    end
    function event() con:query('SELECT 1') end";
    let ran = run(text, (40, 40), &[], Canned::default());
    assert_eq!((counts(&ran).reads, ran.counts.connections), (40, 40));
}

#[test]
fn failure_of_thread_done_leaves_the_counts() {
    let text = "function event() end function thread_done() error('late') end";
    let ran = run(text, (1, 5), &[], Canned::default());
    let events = ran.step().counted.timeline.window.events.as_deref().expect("counts");
    assert_eq!((events.events, ran.seen.late.get()), (5, 1));
}

#[test]
fn window_ends_with_the_last_event_of_a_script_that_ends_all_clients() {
    let text = "local con, n = drv:connect(), 0
    function event()
        n = n + 1
        if n > 5 then return true end
        con:query('SELECT 1')
    end";
    let script = Some(Arc::new(Script::of_text(&format!("{BEGIN}{text}"))));
    let plan = plan_of("point-select", 2, StopAt::Time(Duration::from_mins(5)));
    for rates in [Vec::new(), vec![100.0]] {
        let plan = Plan { rules: Rules::loadgen(), script: script.clone(), rates, ..plan.clone() };
        let ran = measure(&plan, Canned::default());
        let step = ran.step();
        assert_eq!((step.outcome, step.counted.timeline.window.ops), (Outcome::Completed, 10));
        assert!((0.0..150.0).contains(&step.counted.measured_s), "{}", step.counted.measured_s);
    }
}

#[test]
fn window_ends_before_thread_done_when_ops_or_scripts_end_it() {
    let text = "local con, n = drv:connect(), 0
    function event()
        n = n + 1
        if n > 2 then return true end
        con:query('SELECT 1')
    end
    function thread_done() ffi.C.usleep(1500000) end";
    for stop in [StopAt::Ops(4), StopAt::Time(Duration::from_mins(5))] {
        let began = Instant::now();
        let ran = run_by(Rules::loadgen(), stop, 2, text, Canned::default());
        let (counted, whole_s) = (&ran.step().counted, began.elapsed().as_secs_f64());
        assert_eq!(counted.timeline.window.ops, 4);
        let measured_s = counted.measured_s;
        assert!(measured_s + 1.5 <= whole_s, "{stop:?}: {measured_s} of {whole_s}");
        let ends_s = counted.timeline.entries.iter().map(|of| of.start_s + of.length_s);
        assert!(ends_s.fold(0.0, f64::max) <= measured_s + 1e-6, "{stop:?}");
        // One each 10.3 ms.
        let probes = ran.step().counts.usage[0].share.turns.probes;
        assert!(probes as f64 <= measured_s / 0.0103 + 1.0, "{stop:?}: {probes}");
    }
}

#[test]
fn counters_are_those_of_sysbench() {
    let text = "function event(tid)
        for _, kind in ipairs({ 'TRX', 'ERROR', 'ERROR', 'RECONNECT' }) do
            ffi.C.sb_counter_inc(tid, ffi.C['SB_CNT_' .. kind])
        end
    end";
    let ran = run(text, (1, 10), &[], Canned::default());
    let seen = counts(&ran);
    assert_eq!((seen.events, seen.ignored, seen.reconnects), (20, 20, 10));
}

#[test]
fn errors_count_whether_or_not_the_event_begins_again() {
    let twice = || fault(At::EachStatement(1), Action::error(1062, "23000", "Duplicate"), "TWICE");
    let text = "local con, n = drv:connect(), 0
    function event()
        local ok, e = pcall(con.query, con, 'INSERT TWICE')
        assert(not ok and e.errcode == 1 and e.sql_errno == 1062)
        n = n + 1
        if n % 2 == 0 then error({ errcode = 1 }) end
        con:query('SELECT 1')
    end";
    let ran = run(text, (1, 10), &[1062], twice());
    let seen = counts(&ran);
    assert_eq!((seen.events, seen.ignored, seen.reads, seen.reconnects), (10, 19, 10, 0));
}

#[test]
fn statements_of_an_attempt_that_begins_again_count_by_loadgens_rules() {
    let text = "local con, n = drv:connect(), 0
    function event()
        n = n + 1
        con:query('SELECT 1')
        if n % 2 == 1 then con:query('INSERT TWICE') end
    end";
    let twice = fault(At::EachStatement(1), Action::error(1213, "40001", "Deadlock"), "TWICE");
    let after_error = AfterError::Restart(Ignored::Codes(vec![1213]));
    let ran = run_by(Rules { after_error, ..Rules::loadgen() }, StopAt::Ops(10), 1, text, twice);
    let window = &ran.step().counted.timeline.window;
    assert_eq!((window.ops, window.statements), (10, 20));
}

#[test]
fn event_lasts_from_its_start_to_its_stop_in_a_loop_of_the_scripts_own() {
    let text = "function event() end
    function thread_run(tid)
        while ffi.C.sb_more_events(tid) do
            ffi.C.sb_event_start(tid)
            event(tid)
            ffi.C.sb_event_stop(tid)
            ffi.C.usleep(200000)
        end
        ended = true
    end
    function thread_done() assert(ended) end";
    let ran = run(text, (1, 8), &[], Canned::default());
    let busy: u64 = counts(&ran).by_client.iter().map(|of| of.busy_ns).sum();
    assert_eq!(counts(&ran).events, 8);
    assert!(busy < 800_000_000, "{busy}");
    let wraps = "function event() end
    local loop = thread_run
    function thread_run(tid) began = true return loop(tid) end
    function thread_done() assert(began) end";
    assert_eq!(counts(&run(wraps, (2, 8), &[], Canned::default())).events, 8);
}

#[test]
fn lost_connection_is_open_again_before_the_error_is_raised() {
    let closes = || fault(At::EachStatement(3), Action::Close, "SELECT");
    let text = "local con
    function sysbench.hooks.before_restart_event(e)
        assert(e.sql_errno == 2013 and e.connection == con)
        con:query('ROLLBACK')
    end
    function event()
        con = con or drv:connect()
        con:query('SELECT 1')
    end";
    let ran = run(text, (1, 10), &[2013], closes());
    let seen = counts(&ran);
    assert_eq!((seen.events, seen.reads, seen.others), (10, 10, 4));
    assert_eq!((seen.reconnects, seen.ignored), (4, 0));
    assert!(ran.counts.connections == 5 && ran.counts.open_max <= 2, "{:?}", ran.counts);
    let lost = run(text, (1, 10), &[1213], closes());
    assert_eq!((lost.step().outcome, lost.seen.ends.get()), (Outcome::Aborted, 1));
}

#[test]
fn sleep_between_events_ends_with_the_window_and_none_follows_the_last_event() {
    let text = "local con = drv:connect()
    function event(tid)
        con:query('SELECT 1')
        ffi.C.sb_event_stop(tid)
        ffi.C.usleep(30000000)
    end
    function thread_done() con:query('SELECT 1') end";
    for (stop, least) in [(StopAt::Ops(2), 0.0), (StopAt::Time(Duration::from_secs(1)), 1.0)] {
        let began = Instant::now();
        let ran = run_by(Rules::loadgen(), stop, 2, text, Canned::default());
        let step = ran.step();
        assert_eq!((step.outcome, step.counted.timeline.window.ops), (Outcome::Completed, 2));
        let measured_s = step.counted.measured_s;
        assert!((least..5.0).contains(&measured_s), "{stop:?}: {measured_s}");
        assert!(began.elapsed() < Duration::from_secs(8), "{stop:?}: it waits for no pause");
        // They come to their ends.
        assert_eq!((ran.counts.quits, ran.seen.late.get()), (2, 0), "{stop:?}");
    }
}

#[test]
fn event_begins_again_when_what_is_behind_its_end_fails() {
    let text = "local con = drv:connect()
    function event(tid)
        con:query('SELECT 1')
        ffi.C.sb_event_stop(tid)
        con:query('SELECT TWICE')
    end";
    let twice = fault(At::EachStatement(2), Action::error(1213, "40001", "Deadlock"), "TWICE");
    let after_error = AfterError::Restart(Ignored::Codes(vec![1213]));
    let ran = run_by(Rules { after_error, ..Rules::loadgen() }, StopAt::Ops(10), 1, text, twice);
    assert_eq!(ran.step().counted.timeline.window.ops, 10);
}

#[test]
fn event_that_tries_again_without_end_ends_with_the_time() {
    let text = "local con = drv:connect()
    function event(tid)
        if tid == 0 then con:query('SELECT 1') end
        con:disconnect()
        while not pcall(con.query, con, 'SELECT 1') do ffi.C.usleep(100000) end
    end
    function thread_done() error('it came to its end') end";
    let rules = Rules::sysbench(Ignored::Codes(vec![1213]), None, Some(Duration::from_mins(1)));
    let deadlocks = fault(At::EachStatement(1), Action::error(1213, "40001", "Deadlock"), "SELECT");
    let ran = run_by(rules, StopAt::Time(Duration::from_secs(1)), 2, text, deadlocks);
    assert_eq!((counts(&ran).events, ran.seen.ends.get()), (0, 0));
    assert!(counts(&ran).ignored > 0);
}

#[test]
fn run_ends_with_its_time_when_no_connection_comes_back() {
    let mut canned = fault(At::EachStatement(1), Action::Close, "SELECT");
    canned.faults.extend((2..3_000).map(|n| Fault::new(At::Connect(n), Action::Close)));
    let text = "local con = drv:connect()
    function event() con:query('SELECT 1') end
    function thread_done() error('it came to its end') end";
    let rules = Rules::sysbench(Ignored::Codes(vec![2013]), None, None);
    let ran = run_by(rules, StopAt::Time(Duration::from_secs(1)), 1, text, canned);
    assert_eq!((counts(&ran).events, counts(&ran).ignored, ran.seen.ends.get()), (0, 0, 0));
    assert!(ran.errors() > 1, "the attempts are among them");
}

#[test]
fn numbers_and_connections_are_given_back() {
    let text = "function event()
        local con = drv:connect()
        local kept, closed = con:prepare('SELECT 1'), con:prepare('SELECT 2')
        closed:close()
        kept:execute()
        con, kept, closed = nil, nil, nil
        collectgarbage()
        collectgarbage()
    end";
    let ran = run(text, (1, 50), &[], Canned::default());
    assert_eq!(counts(&ran).reads, 50);
    assert!(ran.counts.open_max <= 3, "{:?}", ran.counts);
    let text = "local con = drv:connect()
    function event()
        con:prepare('SELECT 1')
        collectgarbage()
    end";
    let ran = run(text, (1, 50), &[], Canned::default());
    assert!((45..=50).contains(&ran.counts.closes), "{:?}", ran.counts);
}

#[test]
fn values_reach_the_server_as_they_were_bound() {
    let mut text = "local con, T = drv:connect(), sysbench.sql.type
    local types = { T.INT, T.DOUBLE, T.VARCHAR }
    local texts = { 'SELECT ? FROM t', 'SELECT ?, ? FROM t' }
    local stmt, pair = con:prepare(texts[1]), con:prepare(texts[2])
    function event()
        local params = {}
        for i, type in ipairs(types) do params[i] = stmt:bind_create(type, 10) end
        params[1]:set(7)
        stmt:bind_param(params[1])
        assert(stmt:execute().nrows == 1)
        pair:bind_param(params[1])
        local ok, message = pcall(pair.execute, pair)
        assert(not ok and message:find('errno = 2031'), message)
        pair:bind_param(params[2], params[3])
        params[2]:set(7)
        params[3]:set('x')
        assert(pair:execute().nrows == 1)
    "
    .to_owned();
    // More values than Rust may hold of a VM at once.
    write!(
        text,
        "local many = {{}} for i = 1, 9000 do many[i] = '?' end
        local all = con:prepare('SELECT ' .. table.concat(many, ','))
        for i = 1, 9000 do many[i] = all:bind_create(T.VARCHAR, 9) many[i]:set(tostring(i)) end
        all.params, all.kinds = many, ('s'):rep(9000)
        all:execute()
    end"
    )
    .expect("a text");
    let ran = run(&text, (1, 2), &[], Canned::default());
    assert_eq!((counts(&ran).events, counts(&ran).ignored, ran.counts.executes), (2, 2, 6));
}

#[test]
fn integer_keeps_all_bits_when_it_is_cdata() {
    let text = "local con, T = drv:connect(), sysbench.sql.type
    local stmt, params = con:prepare('SELECT ?, ?, ?'), {}
    for i = 1, 3 do params[i] = stmt:bind_create(T.BIGINT) end
    stmt:bind_param(unpack(params))
    function event()
        params[1]:set(9007199254740993LL)
        params[2]:set(18446744073709551615ULL)
        params[3]:set(ffi.new('double', 2.9))
        assert(stmt:execute().nrows == 2)
    end";
    let script = Script { text_statements: true, ..Script::of_text(&format!("{BEGIN}{text}")) };
    let rules = Rules::sysbench(Ignored::Codes(Vec::new()), Some(3), None);
    let stop = StopAt::Time(Duration::from_mins(5));
    let plan = Plan { rules, script: Some(Arc::new(script)), ..plan_of("point-select", 1, stop) };
    let rows: &[&[Option<&str>]] = &[&[Some("a")], &[Some("b")]];
    let answers = vec![Answer::rows("SELECT 9007199254740993, -1, 2", &["c"], rows)];
    let ran = measure(&plan, Canned { answers, ..Canned::default() });
    assert_eq!(counts(&ran).events, 3);
}

#[test]
fn connection_has_the_error_of_its_last_statement_alone() {
    let text = "local con = drv:connect()
    local function check(errno)
        assert(con.sql_errno == errno)
        assert((con.sql_state == nil) == (errno == 0))
        assert((con.sql_errmsg == nil) == (errno == 0))
    end
    check(0)
    function event()
        assert(not pcall(con.query, con, 'SELECT WRONG'))
        check(1146)
        con:query('SELECT 1')
        check(0)
        assert(not pcall(con.query, con, 'SELECT WRONG'))
        con:bulk_insert_init('INSERT INTO t VALUES')
        con:bulk_insert_next('(1)')
        con:bulk_insert_done()
        check(0)
    end";
    let missing = Action::error(1146, "42S02", "Table 'wrong' doesn't exist");
    let ran = run(text, (1, 3), &[], fault(At::EachStatement(1), missing, "WRONG"));
    assert_eq!(counts(&ran).events, 3);
}

#[test]
fn rows_are_there_until_the_next_statement_runs() {
    let rows: &[&[Option<&str>]] = &[&[Some("a")], &[None], &[Some("c")]];
    let answers = vec![Answer::rows("three", &["c"], rows)];
    let text = "local con = drv:connect()
    function event()
        local rs = con:query('SELECT three')
        assert(rs:fetch_row()[1] == 'a')
        con:prepare('SELECT \\255\\254 FROM t'):close()
        assert(rs:fetch_row()[1] == nil and rs:fetch_row()[1] == 'c' and rs:fetch_row() == nil)
        rs = con:query('SELECT three')
        assert(rs:free() and not pcall(rs.free, rs) and rs:fetch_row() == nil)
        con:disconnect()
        assert(con:prepare('SELECT 1') == nil and con:disconnect() and con:reconnect())
        local ok, message = pcall(con.query, con, 'SELECT 1')
        assert(not ok and message:find('SQL API error'))
        con = drv:connect()
    end";
    let ran = run(text, (1, 3), &[], Canned { answers, ..Canned::default() });
    assert_eq!((counts(&ran).events, counts(&ran).reads), (3, 6));
    assert_eq!((ran.counts.connections, ran.counts.quits), (4, 4));
}
