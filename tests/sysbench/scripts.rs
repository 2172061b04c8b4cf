//! Scripts of sysbench's, run from Lua: fixtures of our own call each function of its API.

use std::fs;
use std::path::Path;

use super::programs::{Ended, Place, Program, replaced};
use super::summaries::summaries;
use crate::common::databases::{SANDBOXES, everywhere};
use crate::common::skipped;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lua");

/// A place with the fixtures in its directory.
fn with_scripts(program: Program) -> Place<'static> {
    let (_, sandbox) = &SANDBOXES[0];
    let place = Place::new(program, sandbox);
    for file in fs::read_dir(FIXTURES).expect("fixtures") {
        let file = file.expect("a file");
        fs::copy(file.path(), place.dir().join(file.file_name())).expect("copied");
    }
    place
}

/// A place with the fixtures; none where sysbench itself is in loadgen's place.
fn ours() -> Option<Place<'static>> {
    if replaced() {
        skipped("sysbench crashes where these scripts go on");
        return None;
    }
    Some(with_scripts(Program::Ours))
}

/// The lines of a report that count something, without rates.
fn counts(ended: &Ended) -> Vec<String> {
    let keys = ["read:", "write:", "other:", "transactions:", "ignored errors:", "reconnects:"];
    let lines = ended.stdout.lines().map(str::trim);
    let counted = lines.filter(|line| keys.iter().any(|key| line.starts_with(key)));
    counted.map(|line| line.split('(').next().expect("one").trim_end().to_owned()).collect()
}

/// The lines that the API fixture prints.
const SHOWN: &str = "\
options | 9 | other | true | x+y+z | 5 | 1024 | true
global | 1 | mysql | special | 95 | 1213
version | 1.0.20 | prepare | 0
program | sysbench | api.lua
names | <sql_connection> | mysql
none | <sql_result>
row | 9 | 1 | nil | x
no row | nil
result | <sql_result> | 3 | 2
fetched | 1 | odd
fetched | 2 | even
fetched | 3 | odd
end | nil
closed | 0
stored | it's | 1.5
stored | back\\slash | 2.5
stored | longer tha | 3.5
stored |  | 4.5
stored | nil | 4.5
selected | 7 | 1
statements | <sql_statement> | <sql_param>
error | false | SQL error, errno = 1146, state = '42S02': Table 'nowhere_at_all' doesn't exist
fields | 1146 | 42S02
object | 7
refused | false | true
refused | false | true
refused | false | true
refused | false | true
refused | false | true
refused | false | true
failed | true | true
checked | true | nil
inserted | true | true | true
numbers | cdata | 5
coroutine | 2 | 42
loadstring | 0
libraries | table | table | table | number | true
luajit | 0 | function | table | table
no file | nil | cannot open nowhere_at_all.lua: No such file or directory
made | 1 | 0 | nil | true
again | false | whole
output | written
drawn | true | 999
bounds | 5 | 7 | true
old | nil | old
module | 42 | true
old | api.lua | 0 | innodb | 0 | 1 | 2
old numbers | 5 | 5 | 5 | 5 | 2
old query | 0
old rows | it's2,-2
old result | true
old tables | false | table is empty
old types | false | Unsupported variable type: boolean
old doubles | true
old bulk | true
old failure | false | db_query() failed
first | 2 | 1 | true
second | 1 | 2 | x | nil | nil | true
call | <sql_result> | false | nil
executed | 2 | 2 | <sql_result>
no text | false | false | false
inner | 42
reconnected | true | 1
disconnected | true";

#[test]
fn api_gives_what_scripts_expect_when_statements_are_prepared_and_when_they_are_text() {
    let Some(place) = ours() else { return };
    for mode in ["auto", "disable"] {
        let options = "--rows=9 --word=other --switch=on --items=x,y,z --whole=5 --further=on";
        let ended = place.well(&format!("api.lua {{at}} {options} --db-ps-mode={mode} prepare"));
        let shown = ended.stdout.lines().filter(|line| line.contains(" | "));
        assert_eq!(shown.collect::<Vec<_>>(), SHOWN.lines().collect::<Vec<_>>(), "{mode}");
    }
    place.well("api.lua {at} cleanup");
}

#[test]
fn commands_and_options_of_a_script_have_their_statuses() {
    let Some(place) = ours() else { return };
    for (line, status) in [
        ("api.lua {at} own", 0),
        ("api.lua {at} refuse", 1),
        ("api.lua {at} --threads=3 parallel", 0),
        ("api.lua help", 0),
        ("api.lua {at}", 0),
        ("api.lua {at} nosuch", 1),
        ("api.lua {at} --nosuch=1 run", 1),
        ("api.lua {at} --whole=x run", 1),
        ("helper.lua run", 1),
        ("nosuch.lua run", 1),
    ] {
        let ended = place.run(line);
        assert_eq!(ended.status, status, "{line}: {}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn events_count_as_in_sysbench() {
    if replaced() {
        return skipped("it is compared with itself");
    }
    let places = [Program::Ours, Program::Theirs].map(with_scripts);
    let modes = [
        "plain", "hook", "repeats", "old", "ends", "idle", "replaced", "counted", "errors",
        "caught", "sql", "lua",
    ];
    let lines = modes.map(|mode| format!("events.lua {{at}} --mode={mode}"));
    let more = ["loop.lua {at}", "named.lua {at}", "named.lua {at} --mode=again"];
    for mode in lines.iter().map(String::as_str).chain(more) {
        let ignored = if mode.ends_with("=old") || mode.ends_with("=again") { 1146 } else { 1062 };
        let options = "--threads=1 --events=40 --time=60";
        let line = format!("{mode} {options} --mysql-ignore-errors={ignored} run");
        // The table is there from the first run on, and then counts the same.
        let [ours, theirs] = places.each_ref().map(|place| {
            place.run(&line);
            place.run(&line)
        });
        assert_eq!(ours.status, theirs.status, "{mode}: {}{}", ours.stdout, ours.stderr);
        assert_eq!(counts(&ours), counts(&theirs), "{mode}: {}", ours.stdout);
        let failed = |ended: &Ended| {
            let of_script = |line: &&str| line.contains("' function failed: events.lua:");
            ended.stdout.lines().find(of_script).map(str::to_owned)
        };
        let named = theirs.stdout.clone();
        assert_eq!(failed(&ours), failed(&theirs), "{mode}: {named}");
        let said = |place: &Place<'_>, ended: &Ended| -> Vec<String> {
            let is_said =
                |line: &&str| line.contains("mysql_drv_query()") || line.starts_with("(last ");
            place.emptied(&ended.stdout).lines().filter(is_said).map(str::to_owned).collect()
        };
        assert_eq!(said(&places[0], &ours), said(&places[1], &theirs), "{mode}: {named}");
    }
}

#[test]
fn lost_connection_is_opened_again_and_the_event_begins_again() {
    let Some(place) = ours() else { return };
    let line = "events.lua {at} --mode=lost --threads=3 --events=30 --time=60";
    let ended = place.well(&format!("{line} --mysql-ignore-errors=all run"));
    assert!(counts(&ended).contains(&"reconnects:                          3".to_owned()));
    assert!(counts(&ended).contains(&"transactions:                        30".to_owned()));
    assert_eq!(place.run(&format!("{line} run")).status, 1);
}

#[test]
fn run_ends_as_aborted_with_what_was_measured_when_an_event_never_returns() {
    let Some(place) = ours() else { return };
    let ended =
        place.run("events.lua {at} --mode=loops --threads=2 --time=2 --loadgen-out={dir}/out run");
    assert_eq!(ended.status, 1, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("\ndone\n"), "{}", ended.stdout);
    let summary = &summaries(&place)[0];
    assert_eq!(summary["outcome"], "aborted");
    assert_eq!(summary["measured_s"], 2.0);
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) {
        // The other client has a thread of its own.
        assert!(summary["totals"]["ops"].as_u64() > Some(0), "{summary}");
    }
}

#[test]
fn reports_are_the_scripts_own_where_it_has_hooks() {
    let Some(place) = ours() else { return };
    let line = "reports.lua {at} --threads=3 --time=3 --report-interval=1 --report-checkpoints=1";
    let ended = place.well(&format!("{line} run"));
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines.contains(&"part 3 42 true"), "{}", ended.stdout);
    // The report at the end is the main state's, that of a checkpoint another one's.
    assert!(lines.contains(&"all 3 42 nil true"), "{}", ended.stdout);
    assert!(lines.contains(&"all 0 42 true true"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("SQL statistics:"), "{}", ended.stdout);
    // A hook that fails ends nothing.
    let ended = place.well(&format!("{line} --fail run"));
    for name in ["report_intermediate", "report_cumulative"] {
        let fatal = format!("FATAL: `{name}' function failed: reports.lua:");
        assert!(ended.stdout.contains(&fatal), "{}", ended.stdout);
    }
}

#[test]
fn old_interface_does_as_in_sysbench() {
    if replaced() {
        return skipped("it is compared with itself");
    }
    let places = [Program::Ours, Program::Theirs].map(with_scripts);
    for line in [
        "--rows=30 prepare",
        "--threads=1 --events=20 --time=60 run",
        "cleanup",
        "--time=9 cleanup",
    ] {
        let [ours, theirs] =
            places.each_ref().map(|place| place.run(&format!("old.lua {{at}} {line}")));
        let shown = |ended: &Ended| {
            let mut lines: Vec<String> = ended.stdout.lines().map(str::to_owned).collect();
            lines.retain(|line| line.contains(" | ") || line.contains("function failed:"));
            lines
        };
        assert_eq!(ours.status, theirs.status, "{line}: {}{}", ours.stdout, ours.stderr);
        assert_eq!(shown(&ours), shown(&theirs), "{line}");
        assert_eq!(counts(&ours), counts(&theirs), "{line}: {}", ours.stdout);
    }
}

/// Scripts, each with command lines whose statuses and errors are sysbench's.
const COMPARED: [(&str, &[&str]); 11] = [
    ("foo\n", &["run"]),
    (
        "function prepare() return false end function help() return false end return false",
        &["prepare", "help", "cleanup", "", "--histogram=maybe prepare", "--histogram=maybe"],
    ),
    ("function init() print('init') return false end", &["run", "nosuch"]),
    ("sysbench.cmdline.options = 'x'", &["", "run"]),
    ("sysbench.cmdline.options = { a = { 'd' }, b = 1 }", &["help"]),
    ("sysbench.cmdline.options = { a = { 'd', 'x' } }", &["help", "--a run", "--b=1 help"]),
    (
        "function thread_init() error({}) end function event() end function done() print('done') end",
        &["--time=9 run", "--histogram=maybe run"],
    ),
    (
        "print('chunk') function prepare() print('well') end function cleanup() sysbench.sql.driver() end",
        &[
            "--mysql-host= prepare",
            "--db-driver=foo prepare",
            "--mysql-host= cleanup",
            "--db-driver=foo cleanup",
            "--db-ps-mode=foo cleanup",
        ],
    ),
    (
        "sysbench.cmdline.commands = { own = { function() error({}) end } } function prepare() error(7) end",
        &["own", "prepare"],
    ),
    (
        "sysbench.cmdline.options = { a_b = { 'd', false } }",
        &["--a-b=5 prepare", "--a_b=5 prepare", "--a-b= prepare", "--a-b prepare"],
    ),
    // What is printed, and the lines of failures, in their order.
    (
        "function event() local c = sysbench.sql.driver():connect() local none = c:query('SET @x = 1') \
         print(none, none == nil, not none, type(none)) print(pcall(sysbench.sql.driver, 'foo')) \
         print(pcall(c.prepare, c, 'SELEC 1') == sysbench.opt.threads) \
         print(pcall(c.bulk_insert_next, c, '(1)')) local rs = c:query('SELECT 1') \
         print((pcall(rs.free, rs))) print(pcall(rs.free, rs)) print(pcall(rs.free, rs)) \
         c:disconnect() print(pcall(c.query, c, 'SELECT 1')) c:disconnect() print('end') end",
        &["{at} --events=1 --time=60 --verbosity=1 run"],
    ),
];

#[test]
fn report_has_no_sql_statistics_until_a_driver_is_asked_for() {
    if replaced() {
        return skipped("it is compared with itself");
    }
    let places = [Program::Ours, Program::Theirs].map(with_scripts);
    let sleeps = "ffi.cdef 'int usleep(unsigned int);' function event() ffi.C.usleep(600000) end ";
    for (rest, has_driver) in [
        ("", false),
        ("function init() sysbench.sql.driver() end", true),
        ("function thread_done() sysbench.sql.driver() end", true),
    ] {
        let [ours, theirs] = places.each_ref().map(|place| {
            fs::write(place.dir().join("case.lua"), format!("{sleeps}{rest}")).expect("written");
            place.well("./case.lua --events=3 --time=60 --report-interval=1 run")
        });
        let masked = |ended: &Ended| {
            let number = |c: char| c.is_ascii_digit() || c == '.';
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            let lines = ended.stdout.lines().filter(|line| !line.starts_with("sysbench 1.0.20"));
            let mut lines: Vec<_> = lines.map(|line| words(line).replace(number, "")).collect();
            // A busy host has more intervals.
            lines.dedup();
            lines
        };
        assert_eq!(masked(&ours), masked(&theirs), "{rest}");
        assert_eq!(ours.stdout.contains("SQL statistics:"), has_driver, "{rest}");
        // No server was asked, and none was the limit.
        assert_eq!(ours.stderr, "", "{rest}");
    }
}

#[test]
fn line_of_the_queue_has_a_comma_where_a_driver_is_asked_for() {
    let sleeps = "ffi.cdef 'int usleep(unsigned int);' function event() ffi.C.usleep(1000) end ";
    for place in [Program::Ours, Program::Theirs].map(with_scripts) {
        for (rest, comma) in [("", ""), ("function init() sysbench.sql.driver() end", ",")] {
            fs::write(place.dir().join("case.lua"), format!("{sleeps}{rest}")).expect("written");
            let ended = place.well("./case.lua --time=2 --rate=10 --report-interval=1 run");
            let line =
                ended.stdout.lines().find_map(|line| Some(line.split_once("queue length: ")?.1));
            let behind = line.expect("a line").trim_start_matches(|c: char| c.is_ascii_digit());
            assert!(behind.starts_with(&format!("{comma} concurrency: ")), "{rest}: {behind}");
        }
    }
}

#[test]
fn unique_numbers_are_not_those_of_an_earlier_run() {
    let text = "function prepare() print(sysbench.rand.unique(), sysbench.rand.unique()) end";
    let Some(place) = ours() else { return };
    fs::write(place.dir().join("case.lua"), text).expect("written");
    let [one, other] = [(); 2].map(|()| place.well("./case.lua --rand-seed=1 prepare"));
    assert_ne!(one.stdout, other.stdout);
}

#[test]
fn numbers_of_a_command_are_those_of_the_seed() {
    let Some(place) = ours() else { return };
    let text = "function prepare() print(sysbench.rand.uniform(1, 1000000000)) end";
    fs::write(place.dir().join("case.lua"), text).expect("written");
    let drawn = |seed: &str| place.well(&format!("./case.lua {seed} prepare")).stdout;
    assert_eq!(drawn("--rand-seed=5"), drawn("--rand-seed=5"));
    assert_ne!(drawn("--rand-seed=5"), drawn("--rand-seed=6"));
    assert_eq!(drawn(""), drawn(""));
}

#[test]
fn options_of_a_script_are_not_set_by_a_config_file() {
    if replaced() {
        return skipped("it is compared with itself");
    }
    let text = "sysbench.cmdline.options = { rows = { 'Rows', 5 } }
        function prepare() print(sysbench.opt.rows, sysbench.opt.threads) end";
    let places = [Program::Ours, Program::Theirs].map(with_scripts);
    let [ours, theirs] = places.each_ref().map(|place| {
        fs::write(place.dir().join("case.lua"), text).expect("written");
        fs::write(place.dir().join("case.cnf"), "rows=7\nthreads=3\ntables=2\n").expect("written");
        place.well("--config-file=case.cnf ./case.lua prepare")
    });
    let lines = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&ours.stdout), lines(&theirs.stdout));
    assert!(ours.stdout.contains("\nWARNING: Global option 'tables' "), "{}", ours.stdout);
    assert_eq!(ours.stderr, "loadgen: rows has no effect in a config file, as in sysbench\n");
}

#[test]
fn failing_end_counts_as_in_sysbench() {
    if replaced() {
        return skipped("it is compared with itself");
    }
    let text = "function thread_init() con = sysbench.sql.driver():connect() end \
                function event() con:query('SELECT 1') end \
                function thread_done() con:query('SELECT 2') con:query('DO 1') error('late') end";
    let places = [Program::Ours, Program::Theirs].map(with_scripts);
    let [ours, theirs] = places.each_ref().map(|place| {
        fs::write(place.dir().join("case.lua"), text).expect("written");
        let script = counts(&place.run("./case.lua {at} --events=5 --time=60 run"));
        place.well("bulk_insert {at} prepare");
        place.well("bulk_insert {at} --events=5 run");
        // The same keys again.
        let again = "bulk_insert {at} --events=5 --mysql-ignore-errors=1062 run";
        let rows = counts(&place.run(again));
        place.well("bulk_insert {at} cleanup");
        (script, rows)
    });
    assert_eq!(ours, theirs);
}

#[test]
fn checkpoint_is_written_when_it_is_at_the_end_of_the_time() {
    let text = "ffi.cdef 'int usleep(unsigned int);' function event() ffi.C.usleep(700000) end";
    for place in [Program::Ours, Program::Theirs].map(with_scripts) {
        fs::write(place.dir().join("case.lua"), text).expect("written");
        let ended = place.well("./case.lua --time=1 --report-checkpoints=1 run");
        assert!(ended.stdout.contains("[ 1s ] Checkpoint report:"), "{}", ended.stdout);
    }
}

#[test]
fn slow_thread_keeps_no_events_from_the_others() {
    let Some(place) = ours() else { return };
    let text = "ffi.cdef 'int usleep(unsigned int);' local n = 0 \
                function event(tid) n = n + 1 if tid == 0 then ffi.C.usleep(200000) end end \
                function thread_done(tid) print(tid == 0 and 'slow' or 'fast', n) end";
    fs::write(place.dir().join("case.lua"), text).expect("written");
    let ended = place.well("./case.lua --threads=2 --events=400 --time=60 run");
    let slow = ended.stdout.lines().find_map(|line| line.strip_prefix("slow\t"));
    let slow: u32 = slow.expect("it ends").parse().expect("a number");
    assert!(slow < 100, "{}", ended.stdout);
}

#[test]
fn done_is_not_called_after_a_forced_shutdown() {
    let text = "ffi.cdef 'int usleep(unsigned int);' function event() ffi.C.usleep(9000000) end \
                function done() print('done') end";
    for place in [Program::Ours, Program::Theirs].map(with_scripts) {
        fs::write(place.dir().join("case.lua"), text).expect("written");
        let ended = place.run("./case.lua --time=1 --forced-shutdown=1 run");
        assert_eq!(ended.status, 2, "{}{}", ended.stdout, ended.stderr);
        assert!(!ended.stdout.lines().any(|line| line == "done"), "{}", ended.stdout);
    }
}

#[test]
fn run_ends_when_thread_init_never_returns() {
    let Some(place) = ours() else { return };
    let text = "function thread_init() while true do n = (n or 0) + 1 end end function event() end";
    fs::write(place.dir().join("case.lua"), text).expect("written");
    let ended = place.run("./case.lua --thread-init-timeout=1 --time=60 run");
    assert_eq!(ended.status, 1, "{}{}", ended.stdout, ended.stderr);
    let fatal = "FATAL: Worker threads failed to initialize within 1 seconds!";
    assert!(ended.stdout.lines().any(|line| line == fatal), "{}", ended.stdout);
}

#[test]
fn script_fails_in_sysbenchs_words() {
    if replaced() {
        return skipped("it is compared with itself");
    }
    let places = [Program::Ours, Program::Theirs].map(with_scripts);
    for (text, lines) in COMPARED {
        for line in lines {
            let [ours, theirs] = places.each_ref().map(|place| {
                fs::write(place.dir().join("case.lua"), text).expect("written");
                place.run(&format!("./case.lua {line}"))
            });
            let words = |ended: &Ended| {
                let told = ended.stdout.lines().chain(ended.stderr.lines());
                let own = ["sysbench 1.0.20", "warning: "];
                let told = told.filter(|line| !own.iter().any(|own| line.starts_with(own)));
                let mut told: Vec<String> = told.map(str::to_owned).collect();
                // The line of sysbench's own Lua file is not ours.
                for line in &mut told {
                    if let Some((function, why)) =
                        line.split_once(": [string \"sysbench.cmdline.lua\"]:")
                    {
                        *line = format!("{function}: {}", why.split_once(": ").expect("a line").1);
                    }
                }
                told.retain(|line| !line.is_empty());
                told
            };
            assert_eq!(words(&ours), words(&theirs), "{text} {line}");
            assert_eq!(ours.status, theirs.status, "{text} {line}");
        }
    }
}

#[test]
fn refused_value_is_masked_when_the_option_may_be_a_password() {
    let Some(place) = ours() else { return };
    let text = "local c = sysbench.cmdline \
                c.options = { my_password = { 'd', 1, c.ARG_INT }, pw = { 'd', false }, \
                    pass = { 'd', 'x', nil, function(_, value) return value ~= 'hush' end } }";
    fs::write(place.dir().join("hush.lua"), text).expect("written");
    for option in ["my_password", "pw", "pass"] {
        let ended = place.run(&format!("hush.lua --{option}=hush run"));
        assert_eq!(ended.status, 1, "{option}");
        assert!(!(ended.stdout + &ended.stderr).contains("hush"), "{option}");
    }
}

#[test]
fn script_under_a_stock_name_runs_as_itself_unless_its_text_is_the_stock_one() {
    let Some(place) = ours() else { return };
    let write = |name: &str, text: &str| {
        fs::write(place.dir().join(name), text).expect("written");
    };
    write("oltp_read_only.lua", "function event() end function help() print('changed') end");
    for word in ["oltp_read_only", "oltp_read_only.lua", "./oltp_read_only.lua"] {
        assert!(place.well(&format!("{word} help")).stdout.contains("changed"), "{word}");
    }
    // The built-in module has sysbench's functions; one of the user's own comes first.
    let text = "require('oltp_common') function prepare_statements() prepare_point_selects() end \
                function event() execute_point_selects() end";
    write("points.lua", text);
    place.well("points.lua {at} {t} --threads=2 prepare");
    let ended = place.well("points.lua {at} {t} --threads=2 --events=20 --time=60 run");
    assert_eq!(counts(&ended)[0], "read:                            200");
    place.well("points.lua {at} {t} cleanup");
    write("oltp_common.lua", "function help() print('own') end");
    assert!(place.well("points.lua help").stdout.contains("own"));
    let stock = Path::new("/usr/share/sysbench/oltp_point_select.lua");
    if stock.exists() {
        // It would load the module of this directory.
        assert!(place.well("oltp_point_select help").stdout.contains("own"));
        // An installed sysbench, wherever it is, has a changed module beside its scripts.
        let installed = place.dir().join("share/sysbench");
        fs::create_dir_all(&installed).expect("made");
        fs::copy(stock, installed.join("oltp_point_select.lua")).expect("copied");
        fs::rename(place.dir().join("oltp_common.lua"), installed.join("oltp_common.lua"))
            .expect("moved");
        assert!(place.well("oltp_point_select help").stdout.contains("point_selects"));
        let by_path = "share/sysbench/oltp_point_select.lua help";
        assert!(place.well(by_path).stdout.contains("own"));
        // A stock text under another stock name is that of the text.
        fs::copy(stock, place.dir().join("oltp_read_only.lua")).expect("copied");
        let line = "oltp_read_only.lua {at} {t} --threads=1 --time=60";
        place.well(&format!("{line} prepare"));
        let ended = place.well(&format!("{line} --events=20 run"));
        assert_eq!(counts(&ended)[0], "read:                            20");
        place.well(&format!("{line} cleanup"));
    }
}

#[test]
fn summary_tells_scripts_apart_whose_files_or_options_differ() {
    let Some(place) = ours() else { return };
    let text = "local helper = require('helper') \
                sysbench.cmdline.options = { n = { 'n', 1 }, word = { 'word', 'usual' } } \
                function event() end";
    fs::write(place.dir().join("own.lua"), text).expect("written");
    let run = |options: &str| {
        fs::remove_dir_all(place.dir().join("out")).ok();
        place.well(&format!(
            "own.lua {options} --events=5 --time=60 {{at}} --loadgen-out={{dir}}/out run"
        ));
        summaries(&place).remove(0)["workload"]["script"].clone()
    };
    let usual = run("");
    let names = usual["files"].as_array().expect("files").iter().map(|file| &file["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["helper.lua", "own.lua"]);
    assert_eq!(usual, run("--n=1 --word=usual"));
    assert_eq!(run("--n=2")["options"]["n"], 2.0);
    let other = run("--word=hunter2");
    assert_ne!(usual["texts"], other["texts"]);
    assert!(!other.to_string().contains("hunter2"));
    fs::write(place.dir().join("helper.lua"), "return { changed = true }").expect("written");
    let changed = run("");
    assert_ne!(usual["files"][0], changed["files"][0]);
    assert_eq!(usual["files"][1], changed["files"][1]);
}

#[test]
fn summary_has_the_transactions_that_a_script_names_and_the_text_has_none() {
    let Some(place) = ours() else { return };
    let run = |mode: &str| {
        fs::remove_dir_all(place.dir().join("out")).ok();
        let ended = place.well(&format!(
            "named.lua --mode={mode} --mysql-ignore-errors=1146 --events=40 --time=60 {{at}} \
             --loadgen-out={{dir}}/out run"
        ));
        let summary = summaries(&place).remove(0);
        let of = |one: &serde_json::Value| {
            let name = one["name"].as_str().expect("a name").to_owned();
            (name, one["ops"].as_u64(), one["retried"].as_u64())
        };
        let all: Vec<_> =
            summary["transactions"].as_array().expect("some").iter().map(of).collect();
        assert!(all.iter().all(|(name, ..)| !ended.stdout.contains(name.as_str())));
        all
    };
    let one = |name: &str, ops, retried| (name.to_owned(), Some(ops), Some(retried));
    assert_eq!(run("plain"), [one("new order", 10, 0), one("payment", 20, 0)]);
    assert_eq!(run("again"), [one("done", 40, 0), one("tried", 0, 40)]);
}

#[test]
fn module_of_oltp_scripts_does_every_statement_on_every_server() {
    if replaced() {
        return skipped("it is loadgen's module");
    }
    everywhere(|db| {
        let place = Place::new(Program::Ours, db.sandbox);
        let kinds = "point_selects simple_ranges sum_ranges order_ranges distinct_ranges \
                     index_updates non_index_updates delete_inserts";
        let all = |verb: &str| -> String {
            kinds.split_whitespace().map(|kind| format!("{verb}_{kind}() ")).collect()
        };
        let text = format!(
            "require('oltp_common') function prepare_statements() prepare_begin() prepare_commit() {}end \
             function event() begin() {}commit() end",
            all("prepare"),
            all("execute")
        );
        fs::write(place.dir().join("all.lua"), text).expect("written");
        place.well("all.lua {at} {t} prepare");
        let ended = place.well("all.lua {at} {t} --threads=1 --events=10 --time=60 run");
        let expected =
            ["read:                            140", "write:                           40"];
        assert_eq!(counts(&ended)[..2], expected, "{}", ended.stdout);
        place.well("all.lua {at} {t} cleanup");
    });
}
