use super::*;
use crate::plan::experiment::{self, Experiment, Overrides};

const SMALL: &str = r#"
name = "x"
[[server]]
label = "a"
[server.sandbox]
options = { performance_schema = "OFF" }
scaled_options = { innodb_buffer_pool_size = "4G" }
[[server]]
label = "b"
base = "a"
sandbox = { options = { performance_schema = true }, data = { copy_of = "dir" } }
[tables]
count = 8
rows = "16M"
[[workload]]
name = "mine"
about = "two reads in a transaction"
[[workload.transaction]]
begin = true
[[workload.transaction.statement]]
kind = "select"
sql = "SELECT c FROM {table} WHERE id = ?"
params = [{ key = "zipf:0.9" }]
expect = { rows = 1, content = "c" }
[[run]]
workload = ["point-select", "mine"]
clients = "8..256"
time = "60s"
[[command]]
at = "10s"
run = ["perf", "record", "-p", "{pid}"]
[expect]
variables = { performance_schema = ["OFF", "absent"] }
database = "larger-than-buffer-pool"
[report]
layout = ["versions", "relative"]
baseline = "first"
"#;

fn checked(text: &str) -> Result<Experiment, Error> {
    experiment::build(&Profile::parse(text, "p.toml")?, &Overrides::default())
}

fn error(text: &str) -> String {
    checked(text).expect_err("refused").to_string()
}

/// The message for the small profile with one thing in it changed.
fn changed(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    error(&SMALL.replacen(from, to, 1))
}

/// Line and column of the first place of a text.
fn place(of: &str, in_text: &str) -> String {
    let at = in_text.find(of).expect("there");
    let before = &in_text[..at];
    let column = at - before.rfind('\n').map_or(0, |n| n + 1) + 1;
    format!("p.toml:{}:{column}: ", before.matches('\n').count() + 1)
}

#[test]
fn a_profile_is_read() {
    let profile = Profile::parse(SMALL, "p.toml").expect("sound");
    assert_eq!(profile.servers.len(), 2);
    let b = profile.servers[1].sandbox.as_ref().expect("a sandbox");
    assert_eq!(b.data, Some(Data::CopyOf("dir".into())));
    let Measured::Sweep(knobs) = &profile.runs[0].what else { panic!("a sweep") };
    assert_eq!(knobs.clients(), [8, 16, 32, 64, 128, 256]);
    assert_eq!(profile.expect.database, Some(Class::IoBound));
    assert!(profile.workload("mine").is_some() && profile.workload("update").is_some());
}

#[test]
fn errors_of_the_form_point_at_line_and_column() {
    for (from, to, word) in [
        ("count = 8", "cont = 8", "cont"),
        ("rows = \"16M\"", "rows = \"16Q\"", "16Q"),
        ("clients = \"8..256\"", "clients = \"256..8\"", "backwards"),
        ("kind = \"select\"", "kind = \"slect\"", "slect"),
        ("key = \"zipf:0.9\"", "key = \"zipf:x\"", "zipf"),
        ("database = \"larger-than-buffer-pool\"", "database = \"larger\"", "larger"),
        ("copy_of", "copyof", "copyof"),
        ("time = \"60s\"", "time = 60d", ""),
    ] {
        let text = SMALL.replacen(from, to, 1);
        let line = place(to, &text);
        let line = line.split(':').nth(1).expect("a line");
        let error = error(&text);
        assert!(error.starts_with(&format!("p.toml:{line}:")), "{to}: {error}");
        assert!(error.contains(word), "{to}: {error}");
    }
}

#[test]
fn table_with_the_wrong_brackets_is_shown_the_right_ones() {
    for (from, to) in [
        ("[[workload]]", "[workload]"),
        ("[[command]]", "[command]"),
        ("[tables]", "[[tables]]"),
        ("[report]", "[[report]]"),
    ] {
        let error = changed(from, to);
        let line = place(to, &SMALL.replacen(from, to, 1));
        let line = line.rsplit_once(':').and_then(|(line, _)| line.rsplit_once(':'));
        assert!(error.starts_with(line.expect("a line").0), "{error}");
        assert!(error.contains(&format!(": {from}, not {to}")), "{error}");
    }
}

#[test]
fn errors_of_the_form_have_no_words_of_the_program_that_reads_it() {
    let params = "params = [{ key = \"zipf:0.9\" }]";
    for (from, to) in [
        ("run = [\"perf\", \"record\", \"-p\", \"{pid}\"]", "run = \"perf\""),
        (params, "params = [\"key\"]"),
        (params, "params = [\"range_start\"]"),
        (params, "params = [{ range_start = 5 }]"),
        (params, "params = [3]"),
        (params, "params = [{}]"),
        (params, "params = [{ between = { min = -1, max = 9 } }]"),
        ("kind = \"select\"", "kind = \"slect\""),
        (params, "params = [{ key = \"uniform\", slice = \"uniform\" }]"),
        ("label = \"a\"", "port = 70000"),
        ("count = 8", "data_seed = -1"),
    ] {
        let error = changed(from, to);
        for word in ["sequence", "variant", "struct", "element", "string or", "u16", "u32", "u64"] {
            assert!(!error.contains(word), "{error}");
        }
    }
}

struct Change {
    from: &'static str,
    to: &'static str,
    at: &'static str,
    says: &'static str,
}

#[test]
fn what_contradicts_itself_points_there_too() {
    for Change { from, to, at, says } in [
        Change { from: "base = \"a\"", to: "base = \"c\"", at: "\"c\"", says: "no label" },
        Change { from: "label = \"b\"", to: "label = \"a\"", at: "\"a\"\nbase", says: "twice" },
        Change {
            from: "\"point-select\", \"mine\"",
            to: "\"point-selct\"",
            at: "\"point-selct\"",
            says: "update-index",
        },
        Change {
            from: "at = \"10s\"",
            to: "at = \"2m\"",
            at: "\"2m\"",
            says: "not within the window",
        },
        Change {
            from: "time = \"60s\"",
            to: "time = \"60s\"\nops = 5",
            at: "5\n[[command]]",
            says: "not both",
        },
        Change { from: "time = \"60s\"", to: "time = 0", at: "0\n[[command]]", says: "too short" },
        Change { from: "rows = \"16M\"", to: "rows = 0", at: "0\n[[workload]]", says: "from 1" },
        Change { from: "\"4G\"", to: "\"4 gigs\"", at: "\"4 gigs\"", says: "no size" },
        Change {
            from: "[\"perf\", \"record\", \"-p\", \"{pid}\"]",
            to: "[]",
            at: "[]",
            says: "program",
        },
        Change { from: "name = \"x\"", to: "name = \"\"", at: "\"\"", says: "at least one" },
    ] {
        let text = SMALL.replacen(from, to, 1);
        let error = error(&text);
        assert!(error.starts_with(&place(at, &text)), "{to}: {error}");
        assert!(error.contains(says), "{to}: {error}");
    }
    assert!(changed("params = [{ key = \"zipf:0.9\" }]", "params = []").contains("`?`"));
    assert!(changed("name = \"mine\"", "name = \"point-select\"").contains("already"));
    assert!(changed("workload = [\"point-select\", \"mine\"]", "").contains("workload"));
    assert!(
        changed("clients = \"8..256\"", "suite = { name = \"s\", tests = [] }").contains("one")
    );
    let both = "[server.sandbox]\n";
    assert!(changed(both, "url = \"mysql://u:marker@h\"\n[server.sandbox]\n").contains("not both"));
}

#[test]
fn no_error_shows_a_password() {
    for text in [
        "url = \"mysql://u:marker@h\"\nstart = 3",
        "url = \"mysql://u:marker@h\" start",
        "url = [\"mysql://u:marker@h\"]",
        "start = [\"x\", \"-pmarker\"] y",
    ] {
        let shown = error(&format!("name = \"x\"\n[[server]]\n{text}"));
        assert!(!shown.contains("marker"), "{shown}");
    }
    let text =
        "name = \"x\"\n[[server]]\nurl = \"mysql://u:marker@h\"\n[[run]]\nworkload = \"update\"";
    let profile = Profile::parse(text, "p").expect("sound");
    assert!(!format!("{profile:?}").contains("marker"));
}

#[test]
fn every_value_is_held_against_what_it_may_be() {
    let sandbox = "options = { performance_schema = \"OFF\" }\nscaled_options = { innodb_buffer_pool_size = \"4G\" }\n";
    let run = "time = \"60s\"";
    for Change { from, to, at, says } in [
        Change {
            from: "label = \"a\"",
            to: "label = \"a\\tb\"",
            at: "\"a\\tb\"",
            says: "one line",
        },
        Change { from: "label = \"a\"", to: "label = \"\"", at: "\"\"", says: "at least one" },
        Change {
            from: "label = \"a\"",
            to: "label = \"a\"\nwithin = 0",
            at: "0\n[server.s",
            says: "too short",
        },
        Change {
            from: "label = \"a\"",
            to: "label = \"a\"\nwithin = \"9000h\"",
            at: "\"9000h\"",
            says: "a year",
        },
        Change {
            from: "{ copy_of = \"dir\" }",
            to: "{ copy_of = \"\" }",
            at: "{ copy_of",
            says: "has a name",
        },
        Change {
            from: sandbox,
            to: "options = { a-b = 1 }\nscaled_options = { a_b = \"4G\" }\n",
            at: "\"4G\"",
            says: "among options",
        },
        Change { from: sandbox, to: "options = { a-b = 1, a_b = 2 }\n", at: "2 }", says: "twice" },
        Change {
            from: "[\"point-select\", \"mine\"]",
            to: "[]",
            at: "[]\nclients",
            says: "measures nothing",
        },
        Change { from: "[\"OFF\", \"absent\"]", to: "[]", at: "[]", says: "is empty" },
        Change {
            from: "count = 8",
            to: "count = 8\njobs = 0",
            at: "0\nrows",
            says: "from 1 to 1024",
        },
        Change {
            from: "count = 8",
            to: "count = 8\ncharset = \"x y\"",
            at: "\"x y\"",
            says: "character set",
        },
        Change { from: run, to: "charset = \"x'\"", at: "\"x'\"", says: "character set" },
        Change { from: run, to: "engine_threads = 0", at: "0\n[[command", says: "from 1 to 1024" },
        Change { from: run, to: "warmup = \"9000h\"", at: "\"9000h\"", says: "a year" },
        Change { from: run, to: "servers = []", at: "[]", says: "measures nothing" },
        Change { from: run, to: "servers = [10.10]", at: "[10.10]", says: "a name" },
        Change {
            from: run,
            to: "options = { range_size = 1 }",
            at: "1 }",
            says: "the workload has none",
        },
        Change {
            from: "at = \"10s\"",
            to: "at = \"10s\"\nclients = [8, 9]",
            at: "[8, 9]",
            says: "no step has 9 clients",
        },
    ] {
        let text = SMALL.replacen(from, to, 1);
        let error = error(&text);
        assert!(error.starts_with(&place(at, &text)), "{to}: {error}");
        assert!(error.contains(says), "{to}: {error}");
    }
    let suites = [
        ("name = \"\", tests = []", 18, "at least one"),
        ("name = \"s\", tests = []", 9, "no tests"),
        ("name = \"s\", tests = [{ name = \"\", run = [\"x\"] }]", 41, "at least one"),
        ("name = \"s\", tests = [{ name = \"a\", run = [] }]", 52, "is a program"),
        (
            "name = \"s\", tests = [{ name = \"a\", run = [\"x\"] }, { name = \"a\", run = [\"x\"] }]",
            9,
            "given twice",
        ),
    ];
    let head = "name = \"x\"\n[[server]]\nsandbox = {}\n[[run]]\n";
    for (suite, column, says) in suites {
        let error = error(&format!("{head}suite = {{ {suite} }}"));
        let place = format!("p.toml:5:{column}: ");
        assert!(error.starts_with(&place) && error.contains(says), "{suite}: {error}");
    }
    let error = error(&format!("{head}load = {{ rows = 1, charset = \"x'\" }}"));
    assert!(error.starts_with("p.toml:5:30: ") && error.contains("character set"), "{error}");
}

#[test]
fn command_is_held_to_the_windows_beside_it_alone() {
    let checked = |run: &str, at: &str| {
        let command = format!("[[command]]\nworkload = \"r\"\nat = \"{at}\"");
        let new = format!("[[run]]\nname = \"r\"\n{run}\n{command}");
        let text = SMALL.replacen("[[command]]\nat = \"10s\"", &new, 1);
        checked(&text).map(drop).map_err(|error| error.to_string())
    };
    let sweep = |end: &str| format!("workload = \"point-select\"\nclients = 1\n{end}");
    for (run, at, says) in [
        (sweep("time = \"5s\""), "10s", "not within the window"),
        ("load = { rows = 1 }".to_owned(), "10s", "no run beside it has a window"),
    ] {
        let error = checked(&run, at).expect_err(says);
        assert!(error.starts_with("p.toml:") && error.contains(says), "{run}: {error}");
    }
    // The other runs take a minute.
    for end in ["time = \"2m\"", "ops = 1000"] {
        assert_eq!(checked(&sweep(end), "90s"), Ok(()), "{end}");
    }
}

#[test]
fn paths_lead_to_values_or_to_what_would_hold_them() {
    let text = "name = \"x\"\n[[run]]\na = 1\n[[run]]\nlist = [\"b\", \"c\"]\n";
    let file = File { origin: "p.toml".to_owned(), text: Secret::new(text) };
    for (path, at) in [
        ("name", "\"x\""),
        ("run/0/a", "1"),
        ("run/1/list/1", "\"c\""),
        ("run/1/a", "[[run]]\nlist"),
        ("name/0", "\"x\""),
    ] {
        assert_eq!(
            text.get(file.find_value(path)..).map(|t| t.starts_with(at)),
            Some(true),
            "{path}"
        );
    }
}

#[test]
fn a_line_that_may_hold_a_password_is_not_shown() {
    let text = "url = \"mysql://u:marker@h\" x";
    let error = |text: &str, at: usize, what: &str| {
        File { origin: "p.toml".to_owned(), text: Secret::new(text) }.error(at, what)
    };
    let shown = error(text, 27, "no such thing").render();
    assert!(shown.contains("p.toml:1:28: no such thing") && !shown.contains("marker"));
    for what in ["invalid type: string \"x -pmarker\", expected", "'mysql://u:marker@h' is no"] {
        let shown = error(text, 0, what).render();
        assert!(!shown.contains("marker") && shown.contains("p.toml:1:1: "), "{shown}");
    }
    let shown = error("\nrows = x", 8, "what").render();
    assert!(shown.contains("p.toml:2:8: what\n  2 | rows = x"), "{shown}");
}

proptest::proptest! {
    #[test]
    fn no_damage_panics(
        at in proptest::prelude::any::<proptest::sample::Index>(),
        length in 0_usize..40,
        put in "[\\[\\]{}=\"'.,#0-9a-z\n -]{0,20}|\\PC{0,10}",
    ) {
        let places: Vec<usize> = SMALL.char_indices().map(|(at, _)| at).collect();
        let from = *at.get(&places);
        let to = places.iter().copied().find(|to| *to >= from + length).unwrap_or(SMALL.len());
        let text = format!("{}{put}{}", &SMALL[..from], &SMALL[to..]);
        if let Err(error) = checked(&text) {
            let said = error.to_string();
            proptest::prop_assert!(said.starts_with("p.toml:"), "{}", said);
        }
    }
}

#[test]
fn a_small_profile_is_enough() {
    let text = "name = 'x'\n[[server]]\nhost = 'db1'\nport = 3307\nuser = 'me'\n\
                database = 'shop'\n[[workload]]\nname = 'mine'\n[[workload.transaction]]\n\
                statement = [{ sql = 'SELECT 1' }, { sql = 'update t set a = 1' }]\n\
                [[run]]\nworkload = 'mine'\n";
    let experiment = checked(text).expect("defaults for the rest");
    let server = &experiment.subjects[0].server;
    assert_eq!(server.address(), Some("host"));
    assert_eq!(server.port.map(NonZeroU16::get), Some(3307));
    let kinds: Vec<&str> =
        experiment.profile.workloads[0].statements().map(|s| s.kind().name()).collect();
    assert_eq!(kinds, ["select", "update"]);
}

#[test]
fn all_that_is_missing_is_named_at_once() {
    let text = "[[workload]]\n[[workload.transaction]]\n[[workload.transaction.statement]]\n\
                kind = 'select'\n[[workload]]\nname = 'y'\n";
    let says = "p.toml:1:1: missing: name, [[server]], [[run]], name of [[workload]] 1, sql of \
                statement 1 of transaction 1 of [[workload]] 1, [[transaction]] of [[workload]] 2";
    assert!(error(text).starts_with(says), "{}", error(text));
    let no_runs = "name = 'x'\nrun = []\n[[server]]\nhost = 'a'\n";
    assert!(error(no_runs).contains("missing: [[run]]"), "{}", error(no_runs));
}

#[test]
fn a_variant_of_a_server_that_is_there_has_what_it_does_not_say() {
    let with = |servers: &str| {
        let text = format!("name = 'x'\n{servers}[[run]]\nworkload = 'point-select'\n");
        let mut subjects = checked(&text).expect(servers).subjects;
        subjects.pop().expect("a server").server
    };
    let base = "[[server]]\nlabel = 'a'\nhost = 'db1'\nuser = 'me'\n";
    let other = with(&format!("{base}[[server]]\nlabel = 'b'\nbase = 'a'\nhost = 'db2'\n"));
    assert_eq!((other.host.as_deref(), other.user.as_deref()), (Some("db2"), Some("me")));
    let other = with(&format!("{base}[[server]]\nlabel = 'b'\nbase = 'a'\nurl = 'mysql://c/d'\n"));
    assert_eq!((other.host, other.user, other.url.is_some()), (None, None, true));
    let private = with(&format!("{base}[[server]]\nlabel = 'b'\nbase = 'a'\nsandbox = {{}}\n"));
    assert_eq!(private.address(), None);
    for wrong in ["host = ''", "port = 0", "port = 70000", "host = 'x'\nsandbox = {}", ""] {
        let text = format!("name = 'x'\n[[server]]\n{wrong}\n[[run]]\nworkload = 'read-only'\n");
        assert!(checked(&text).is_err(), "{wrong}");
    }
}

#[test]
fn row_of_verify_is_refused_when_its_number_may_be_spelled_otherwise() {
    let read = |cell: &str| {
        let text = format!("name = 'n'\nsql = 'SELECT 1'\nrows = [[{cell}]]");
        toml::from_str::<Verify>(&text).map(|verify| verify.rows[0][0].0.clone())
    };
    for cell in ["1.0", "-0.0", "1e3", "inf", "nan"] {
        assert!(read(cell).is_err(), "{cell}");
    }
    for (cell, text) in [("1.5", "1.5"), ("-7", "-7"), ("'1.0'", "1.0")] {
        assert_eq!(read(cell).expect(cell), text);
    }
}
