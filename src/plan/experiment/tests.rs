use std::path::Path;
use std::time::Duration;

use super::estimate::{Estimate, LegEstimate};
use super::*;
use crate::plan::StopAt;
use crate::plan::profile::{Data, Measured, Profile, Sandbox, shipped};
use crate::plan::script::ScriptFile;
use crate::plan::value::Names;

const TEXT: &str = r#"
name = "x"
[[server]]
label = "a"
[server.sandbox]
data = "copied"
options = { innodb_doublewrite = 0, skip-log-bin = true }
scaled_options = { innodb_buffer_pool_size = "4G" }
[[server]]
label = "b"
base = "a"
sandbox = { options = { innodb-doublewrite = 1 }, data = { keep = "kept" } }
[[server]]
label = "there"
url = "mysql://db1/sbtest"
[tables]
count = 4
rows = "1M"
[[run]]
workload = "update-index"
clients = [4, 8]
repeat = 2
[[run]]
workload = "read-only"
options = { range_size = 10 }
clients = 1
ops = 100000
servers = ["a", "b"]
[report]
baseline = "b"
order = ["b", "a"]
"#;

fn overrides() -> Overrides {
    Overrides { out: "results".into(), seed: 1, ..Overrides::default() }
}

fn experiment(text: &str, overrides: &Overrides) -> Experiment {
    build(&Profile::parse(text, "p").expect("sound"), overrides).expect("an experiment")
}

fn keys(experiment: &Experiment) -> Vec<String> {
    experiment.all.iter().map(|cell| cell.key.clone()).collect()
}

fn labels(experiment: &Experiment) -> Vec<&str> {
    experiment.subjects.iter().map(|subject| subject.label.as_str()).collect()
}

fn option<'a>(subject: &'a ServerSetup, name: &str) -> Option<&'a str> {
    let found = subject.server.sandbox.as_ref()?.options.get(name)?;
    Some(found.0.as_deref().unwrap_or(""))
}

#[test]
fn a_base_is_inherited_and_programs_multiply_what_names_none() {
    let plain = experiment(TEXT, &overrides());
    assert_eq!(labels(&plain), ["a", "b", "there"]);
    let b = &plain.subjects[1];
    assert_eq!(
        (option(b, "innodb_doublewrite"), option(b, "innodb-doublewrite")),
        (None, Some("1"))
    );
    assert_eq!(option(b, "skip-log-bin"), Some(""));
    assert_eq!(option(b, "innodb_buffer_pool_size"), Some("4294967296"));
    assert_eq!(b.base.as_deref(), Some("a"));

    let programs = ["5.6", "8.0"].map(|name| (name.to_owned(), format!("/{name}").into()));
    let two = experiment(TEXT, &Overrides { programs: programs.into(), ..overrides() });
    assert_eq!(labels(&two), ["there", "5.6+a", "5.6+b", "8.0+a", "8.0+b"]);
    let kept = |subject: &ServerSetup| match subject.server.sandbox.as_ref().map(Sandbox::data) {
        Some(Data::Keep(dir)) => dir.display().to_string(),
        _ => String::new(),
    };
    assert_eq!(kept(&two.subjects[4]), "kept/8.0");
    let report = &two.profile.report;
    assert_eq!(report.baseline.as_deref(), Some("5.6+b"));
    let order: Vec<&str> = report.order.iter().flat_map(Names::texts).collect();
    assert_eq!(order, ["5.6+b", "8.0+b", "5.6+a", "8.0+a"]);
}

#[test]
fn changes_are_told_of_each_program() {
    let programs = ["5.6", "8.0"].map(|name| (name.to_owned(), format!("/{name}").into()));
    let two = Overrides { programs: programs.into(), ..overrides() };
    let changes = |from: &str, to: &str, overrides: &Overrides| {
        let text = format!("{TEXT}layout = 'delta'\nfrom = '{from}'\nto = '{to}'\n");
        let changes = experiment(&text, overrides).changes;
        changes.iter().map(|(from, to)| format!("{from} {to}")).collect::<Vec<String>>()
    };
    assert_eq!(changes("a", "b", &overrides()), ["a b"]);
    assert_eq!(changes("a", "b", &two), ["5.6+a 5.6+b", "8.0+a 8.0+b"]);
    assert_eq!(changes("8.0+a", "b", &two), ["8.0+a 8.0+b"]);
    assert_eq!(changes("there", "b", &two), ["there 5.6+b", "there 8.0+b"]);
    assert_eq!(changes("first", "last", &two), ["there 8.0+b"]);
    let programs = ["5.6", "5.6+"].map(|name| (name.to_owned(), format!("/{name}").into()));
    let alike = Overrides { programs: programs.into(), ..overrides() };
    assert_eq!(changes("a", "b", &alike), ["5.6+a 5.6+b", "5.6++a 5.6++b"]);
    assert!(experiment(TEXT, &two).changes.is_empty());
    // Without `from` a change begins at the baseline.
    let changes = experiment(&format!("{TEXT}layout = 'delta'\nnew = 'a'\n"), &two).changes;
    let both = [("5.6+b", "5.6+a"), ("8.0+b", "8.0+a")];
    assert_eq!(changes, both.map(|(from, to)| (from.to_owned(), to.to_owned())));
}

#[test]
fn repeats_are_outermost_then_servers_there_and_back_then_runs() {
    let experiment = experiment(TEXT, &overrides());
    let shown: Vec<String> = experiment
        .cells
        .iter()
        .map(|cell| format!("{}{}{}c{}", cell.repeat, cell.subject, cell.part, cell.clients))
        .collect();
    let expected =
        "100c4 100c8 101c1 110c4 110c8 111c1 120c4 120c8 220c4 220c8 210c4 210c8 200c4 200c8";
    assert_eq!(shown.join(" "), expected);
}

#[test]
fn rates_are_steps_of_their_own_beside_the_clients() {
    let closed = experiment(TEXT, &overrides());
    let text = TEXT.replace("clients = [4, 8]", "clients = [4, 8]\nrate = \"1k,2k\"");
    let open = experiment(&text, &overrides());
    let rates: Vec<_> = open.cells.iter().take(5).map(|c| (c.clients, c.rate)).collect();
    let (slow, fast) = (Some(1000.0), Some(2000.0));
    assert_eq!(rates, [(4, slow), (4, fast), (8, slow), (8, fast), (1, None)]);
    assert_eq!(open.step(1).rate, fast);
    let mut all = [keys(&open), keys(&closed)].concat();
    all.sort_unstable();
    all.dedup();
    // The five cells without a rate are the same.
    assert_eq!(all.len(), open.cells.len() + closed.cells.len() - 2);
}

#[test]
fn what_comes_after_a_write_is_taken_anew_where_that_can_be() {
    let experiment = experiment(TEXT, &overrides());
    let legs = experiment.legs(|_| true);
    let shown: Vec<(usize, usize, bool)> =
        legs.iter().map(|leg| (leg.subject, leg.part, leg.fresh)).collect();
    let expected = [
        (0, 0, true),
        // A copy is thrown away and made again.
        (0, 1, true),
        (1, 0, true),
        // A directory that is kept is not.
        (1, 1, false),
        (2, 0, true),
        // The next repeat, backwards.
        (2, 0, true),
        (1, 0, true),
        (0, 0, true),
    ];
    assert_eq!(shown, expected);
    let rest = experiment.legs(|cell| cell.clients == 8);
    assert!(rest.iter().all(|leg| leg.cells.len() == 1 && leg.fresh));
}

fn visits(experiment: &Experiment) -> Vec<(u32, usize)> {
    let mut visits: Vec<(u32, usize)> =
        experiment.cells.iter().map(|cell| (cell.repeat, cell.subject)).collect();
    visits.dedup();
    visits
}

#[test]
fn labels_are_taken_in_turn_or_shuffled_and_keep_their_cells() {
    let ordered = |order: &str, seed: u64| {
        let text = TEXT.replace("name = \"x\"", &format!("name = \"x\"\norder = \"{order}\""));
        experiment(&text, &Overrides { seed, ..overrides() })
    };
    let in_turn = ordered("in-turn", 1);
    assert_eq!(visits(&in_turn), [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (2, 2)]);
    let sorted = |of: &Experiment| {
        let mut keys = keys(of);
        keys.sort_unstable();
        keys
    };
    let shuffled: Vec<Experiment> = (0..20).map(|seed| ordered("shuffled", seed)).collect();
    for one in &shuffled {
        assert_eq!(sorted(one), sorted(&in_turn), "the order makes no other measurement");
        assert!(visits(one).is_sorted_by_key(|(repeat, _)| *repeat));
    }
    let mut orders: Vec<_> = shuffled.iter().map(visits).collect();
    orders.sort_unstable();
    orders.dedup();
    assert!(orders.len() > 5, "20 seeds, 36 orders: {orders:?}");
    assert_eq!(visits(&ordered("shuffled", 3)), visits(&shuffled[3]));
}

#[test]
fn a_server_may_be_left_running_between_its_repeats() {
    let fresh = |head: &str| -> Vec<bool> {
        let text = TEXT.replace("name = \"x\"", &format!("name = \"x\"\n{head}"));
        let reads = text.replace("update-index", "point-select");
        experiment(&reads, &overrides()).legs(|_| true).iter().map(|leg| leg.fresh).collect()
    };
    // Two labels have two runs in their first repeat and one in the second, the third one each.
    assert_eq!(
        fresh("order = \"in-turn\"\nrestart = false"),
        [true, false, false, true, false, false, true, false]
    );
    assert_eq!(fresh("order = \"in-turn\""), [true, false, true, true, false, true, true, true]);
    // Only the last label of a repeat is the first of the next.
    assert_eq!(fresh("restart = false"), [true, false, true, false, true, false, true, true]);
}

#[test]
fn more_repeats_are_more_of_the_same_cells() {
    let plain = experiment(TEXT, &overrides());
    let mut more = plain.clone();
    more.extend(5, 1);
    let more_keys = keys(&more);
    assert!(keys(&plain).iter().all(|key| more_keys.contains(key)));
    assert_eq!(more.cells.len(), 5 * 8);
    assert!(more.cells.iter().all(|cell| cell.repeat <= 5));
}

#[test]
fn gates_are_those_of_the_profile_and_of_the_run() {
    let text = TEXT
        .replace("name = \"x\"", "name = \"x\"\ngates = [\"errors==0\"]")
        .replace("repeat = 2", "repeat = 2\ngates = [\"p99<5ms\"]");
    let gated = experiment(&text, &overrides());
    let gates = |part: usize| -> Vec<String> {
        gated.parts[part].gates.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        (gates(0), gates(1)),
        (vec!["errors==0".to_owned(), "p99<5ms".to_owned()], vec!["errors==0".to_owned()])
    );
    assert_eq!(keys(&gated), keys(&experiment(TEXT, &overrides())), "a gate measures nothing else");
    // A group's gate is of the runs that have it.
    let beside = TEXT
        .replace("name = \"x\"", "name = \"x\"\ngates = [\"w.errors==0\"]")
        .replace("ops = 100000", "ops = 100000\ngroup = [{ workload = \"insert\", name = \"w\" }]");
    let of_group = experiment(&beside, &overrides());
    assert_eq!((of_group.parts[0].gates.len(), of_group.parts[1].gates.len()), (0, 1));
    let nobody = Profile::parse(&beside.replace("w.errors", "v.errors"), "p").expect("its form");
    assert!(
        build(&nobody, &overrides()).is_err_and(|error| error.to_string().contains("v.errors"))
    );
    let wrong = text.replace("p99<5ms", "p99<5");
    let error = Profile::parse(&wrong, "p").expect_err("no unit").to_string();
    assert!(error.starts_with("p:24:") && error.contains("5ms"), "{error}");
}

#[test]
fn a_cell_keeps_its_key_while_it_is_the_same_measurement() {
    let all = keys(&experiment(TEXT, &overrides()));
    let more = TEXT.replace("clients = [4, 8]\nrepeat = 2", "clients = [2, 4, 8]\nrepeat = 3");
    let elsewhere = Overrides { seed: 7, out: "elsewhere".into(), ..overrides() };
    let more = keys(&experiment(&more, &elsewhere));
    assert!(all.iter().all(|key| more.contains(key)), "more of the same changes nothing");
    assert!(all.iter().all(|key| is_current(key)) && !is_current("0123456789abcdef"));
    let mut unique = all.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), all.len());
    for (from, to, same) in [
        ("rows = \"1M\"", "rows = \"2M\"", 0),
        // The same rows, by other connections.
        ("count = 4", "count = 4\njobs = 2", 14),
        ("range_size = 10", "range_size = 20", 12),
        (
            "[[run]]\nworkload = \"read-only\"",
            "[[run]]\nname = \"r\"\nworkload = \"read-only\"",
            12,
        ),
        ("ops = 100000", "ops = 100000\ngroup = [{ workload = \"update-index\", rate = 5 }]", 12),
        // Those of the label itself, and those of the one that inherits it.
        ("skip-log-bin = true", "skip-log-bin = false", 4),
    ] {
        let other = keys(&experiment(&TEXT.replace(from, to), &overrides()));
        assert_eq!(all.iter().filter(|key| other.contains(key)).count(), same, "{to}");
    }
}

#[test]
fn key_is_the_same_in_whatever_order_the_hosts_are_named() {
    let of = |threads: &[u32]| {
        let host_threads = Some(threads.to_vec());
        keys(&experiment(TEXT, &Overrides { host_threads, ..overrides() }))
    };
    assert_eq!(of(&[8, 4]), of(&[4, 8]));
    assert_ne!(of(&[6, 6]), of(&[4, 8]), "as many threads on other hosts");
}

#[test]
fn key_is_another_when_the_scale_is_another() {
    let suite = "[[run]]\nsuite = { name = \"s\", tests = [{ name = \"a\", run = [\"x\"] }] }\n";
    let text = TEXT.replace("[report]", &format!("{suite}[report]"));
    let scaled = |scale: &str| {
        let scale = scale.parse().expect("a scale");
        keys(&experiment(&text, &Overrides { scale, ..overrides() }))
    };
    let (full, half, less) = (scaled("1"), scaled("0.5"), scaled("0.001"));
    let mut unique = [full.clone(), half, less].concat();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), 3 * full.len(), "what a suite runs is in no plan");
}

#[test]
fn key_of_a_script_has_the_tables_of_its_groups_when_there_are_some() {
    let of = |group: &str, data_seed: u32| {
        let text = format!(
            "name = \"x\"\n[[server]]\nsandbox = {{}}\n\
             [tables]\ncount = 4\ndata_seed = {data_seed}\n\
             [[run]]\nlua = \"s.lua\"\nclients = 1\n{group}"
        );
        let mut profile = Profile::parse(&text, "p").expect("sound");
        let Measured::Script(run) = &mut profile.runs[0].what else { panic!("a script") };
        let path = "s.lua".to_owned();
        run.file = Some(ScriptFile { path, text: None, sha256: String::new() });
        keys(&build(&profile, &overrides()).expect("an experiment"))
    };
    let writer = "group = [{ workload = \"update-index\" }]\n";
    assert_ne!(of(writer, 1), of(writer, 2));
    assert_eq!(of("", 1), of("", 2), "its own data are no tables of loadgen's");
}

#[test]
fn private_server_takes_as_many_connections_as_fill_its_tables() {
    let most = |jobs: u32| {
        let text = TEXT.replace("count = 4", &format!("count = 4\njobs = {jobs}"));
        experiment(&text, &overrides()).most(0).0
    };
    assert_eq!((most(2), most(200)), (8, 200));
}

#[test]
fn jobs_are_refused_before_a_server_starts_when_no_fill_has_so_many() {
    let built = |jobs: u32| {
        let text = TEXT.replace("count = 4", &format!("count = 4\njobs = {jobs}"));
        build(&Profile::parse(&text, "p").expect("its form"), &overrides())
    };
    assert!(built(256).is_ok());
    let error = built(257).expect_err("too many").to_string();
    assert!(error.starts_with("p:18:8: "), "{error}");
}

#[test]
fn label_with_a_base_is_refused_when_it_has_a_stop_alone_or_commands_of_no_use() {
    let built = |base: &str, own: &str| {
        let text = format!(
            "name = \"x\"\n[[server]]\nlabel = \"a\"\n{base}\n\
             [[server]]\nlabel = \"b\"\nbase = \"a\"\n{own}\n\
             [[run]]\nworkload = \"point-select\"\nclients = 1\n"
        );
        build(&Profile::parse(&text, "p").expect("its form"), &overrides())
    };
    let (there, private) = ("url = \"mysql://db1/sbtest\"", "sandbox = {}");
    let (start, both) = ("start = [\"x\"]", "start = [\"x\"]\nstop = [\"y\"]");
    for (base, own) in [(there, "stop = [\"y\"]"), (private, both)] {
        let error = built(base, own).expect_err(own).to_string();
        assert!(error.starts_with("p:6:9: "), "{error}");
    }
    for (base, own) in [(there, start), (there, both), (&*format!("{there}\n{both}"), start)] {
        assert!(built(base, own).is_ok(), "{base}, {own}");
    }
}

#[test]
fn program_is_refused_for_its_own_reason_when_all_servers_are_there() {
    let names_programs = |server: &str| {
        let text = format!(
            "name = \"x\"\n[[server]]\n{server}\n\
             [[run]]\nworkload = \"point-select\"\nclients = 1\n"
        );
        let profile = Profile::parse(&text, "p").expect("its form");
        let programs = vec![("new".to_owned(), "/new/mysqld".into())];
        let error = build(&profile, &Overrides { programs, ..overrides() }).expect_err(server);
        error.hints()[0].contains("take `program` out")
    };
    assert!(names_programs("sandbox = { program = \"/old/mysqld\" }"));
    assert!(!names_programs("url = \"mysql://db1/sbtest\""));
}

#[test]
fn private_server_has_no_probe_of_a_base_that_may_be_elsewhere() {
    let there = "label = \"there\"\nurl = \"mysql://db1/sbtest\"\n";
    let here = "[[server]]\nlabel = \"here\"\nbase = \"there\"\n";
    let probes = |own: &str| -> Vec<usize> {
        let text = format!("{there}probe = [\"ssh\", \"db1\"]\n{here}{own}\n");
        let all = experiment(&TEXT.replace(there, &text), &overrides());
        all.subjects.iter().map(|subject| subject.server.probe.len()).collect()
    };
    assert_eq!(probes("sandbox = {}"), [0, 0, 2, 0]);
    assert_eq!(probes("port = 3307"), [0, 0, 2, 2]);
    assert_eq!(probes("sandbox = {}\nprobe = [\"sudo\"]"), [0, 0, 2, 1]);
}

#[test]
fn groups_of_a_run_have_workloads_of_the_file_and_are_refused_at_their_place() {
    let own = "[[workload]]\nname = \"mine\"\n[[workload.transaction]]\n\
               [[workload.transaction.statement]]\nsql = \"DELETE FROM {table} WHERE id = 7\"\n\
               [[workload]]\nname = \"wide\"\n[[workload.transaction]]\n\
               [[workload.transaction.statement]]\nsql = \"SELECT c FROM {table} WHERE id > ?\"\n\
               params = [{ range_start = { len = 2000000 } }]\n";
    let with = |group: &str| {
        let text = TEXT.replace("ops = 100000", &format!("ops = 100000\ngroup = [{group}]"));
        build(&Profile::parse(&(text + own), "p")?, &overrides())
    };
    let experiment = with("{ workload = \"mine\", name = \"w\", clients = 3 }").expect("sound");
    let What::Sweep(plan, _) = &experiment.parts[1].what else { panic!("a sweep") };
    assert_eq!((plan.groups.len(), plan.clients_beside()), (1, 3));
    assert!(experiment.parts[1].writes(), "the readers' run writes now");
    let only: Vec<Option<Schema>> = experiment.parts.iter().map(RunSpec::only_schema).collect();
    assert_eq!(only, [Some(Schema::Sbtest), None], "nobody knows the tables of somebody's SQL");
    for (group, part) in [
        ("{ workload = \"mine\", rates = 5 }", "rates"),
        ("{ workload = \"yours\" }", "mine"),
        ("{ rate = 5 }", "group 1"),
        ("{ workload = \"wide\" }", "ranges of 2000000 rows"),
    ] {
        let error = with(group).expect_err(group).to_string();
        assert!(error.starts_with("p:") && error.contains(part), "{error}");
    }
}

#[test]
fn a_scale_shrinks_rows_times_ops_and_sizes() {
    let scale = "0.01".parse().expect("a scale");
    let small = experiment(TEXT, &Overrides { scale, ..overrides() });
    assert_eq!(option(&small.subjects[0], "innodb_buffer_pool_size"), Some("41943040"));
    let What::Sweep(plan, tables) = &small.parts[1].what else { panic!("a sweep") };
    assert_eq!((plan.stop, tables.tables, tables.rows), (StopAt::Ops(1000), 4, 10_000));
    let What::Sweep(plan, _) = &small.parts[0].what else { panic!("a sweep") };
    assert_eq!(plan.stop, StopAt::Time(Duration::from_secs(1)));
}

#[test]
fn options_that_no_workload_has_are_refused_and_only_picks() {
    let wrong = TEXT.replace("range_size", "rangesize");
    let profile = Profile::parse(&wrong, "p").expect("its form is sound");
    let error = build(&profile, &overrides()).expect_err("no such option").to_string();
    assert!(error.starts_with("p:25:") && error.contains("range_size"), "{error}");
    let only = ["label=a", "clients=4"].map(|text| text.parse().expect("a condition"));
    let some = experiment(TEXT, &Overrides { only: only.into(), ..overrides() });
    assert_eq!((some.cells.len(), some.all.len()), (2, 14));

    let list = some.list(|_| true, |_| 0);
    let count = |head: &str| list.lines().filter(|line| line.starts_with(head)).count();
    assert_eq!((count("label "), count("run "), count("step ")), (1, 1, 2), "{list}");
    assert!(list.contains("update-index: 4 tables of 1M rows, clients 4, warm-up"), "{list}");
}

#[test]
fn title_of_a_run_may_have_spaces_when_it_has_options() {
    let text = "name = 'x'\n[[server]]\nsandbox = {}\n[[run]]\nname = 'short ranges'\n\
                workload = 'read-only'\noptions = { range_size = 5 }\n";
    let experiment = experiment(text, &overrides());
    let plan = experiment.parts[0].plan().expect("a sweep");
    assert_eq!(plan.workload.name, "short ranges");
    assert_eq!(plan.workload.options["range_size"].value, 5);
}

#[test]
fn only_takes_each_repeat_of_a_range_and_doubles_clients() {
    let list = |text: &str| text.parse::<Only>().map(|only| only.values);
    let numbers = |all: &[u32]| Ok(all.iter().map(u32::to_string).collect::<Vec<_>>());
    assert_eq!(list("repeat=2..6"), numbers(&[2, 3, 4, 5, 6]));
    assert_eq!(list("repeat=1..3,9,5..9+2"), numbers(&[1, 2, 3, 5, 7, 9]));
    assert_eq!(list("clients=1..6"), numbers(&[1, 2, 4, 6]));
    assert!(list("repeat=3..1").is_err_and(|why| !why.contains('+')), "as it was given");
}

#[test]
fn only_takes_a_workload_as_the_profile_spells_it() {
    let text = TEXT.replacen("\"update-index\"", "[\"READ_PK_POINT\", \"update-index\"]", 1);
    let pick = |name: &str| {
        let only = vec![format!("workload={name}").parse().expect("a condition")];
        let overrides = Overrides { only, ..overrides() };
        build(&Profile::parse(&text, "p").expect("sound"), &overrides)
    };
    let count = |name: &str| pick(name).expect("an experiment").cells.len();
    assert_eq!(
        [count("READ_PK_POINT"), count("read-pk-point"), count("oltp_update_index")],
        [12; 3]
    );
    assert_eq!([count("READ_*"), count("update*"), count("*")], [12, 12, 26]);
    for name in ["READ_KEY_POINT", "READ_KEY_*"] {
        let error = pick(name).expect_err("not in it").to_string();
        assert!(error.contains(&format!("workload={name}")), "{error}");
    }
}

#[test]
fn estimate_is_bounded_when_a_run_has_more_ops_than_anybody_waits_for() {
    let ops = "rate = 1\nops = \"10000000000000000000\"";
    let text = TEXT.replace("clients = 1\n", "clients = [1, 2]\n").replace("ops = 100000", ops);
    let list = experiment(&text, &overrides()).list(|_| true, |_| 0);
    assert!(list.contains(" to measure"), "{list}");
}

#[test]
fn an_estimate_has_the_time_that_reads_all_rows() {
    let estimate = |text: &str| {
        let experiment = experiment(text, &overrides());
        experiment.estimate(&experiment.legs(|_| true), |_| 0)
    };
    let (cold, warm) =
        (estimate(TEXT), estimate(&TEXT.replace("clients = 1\n", "clients = 1\nscan = true\n")));
    let sum = |estimate: &Estimate, time: fn(&LegEstimate) -> Duration| -> Duration {
        estimate.legs.iter().map(time).sum()
    };
    // Two labels read 4 tables of 1M rows, of 240 bytes each, at 300 MB/s.
    let [reads_cold, reads_warm] = [&cold, &warm].map(|of| sum(of, |leg| leg.warming).as_millis());
    assert_eq!(reads_warm - reads_cold, 6613);
    for time in [|leg: &LegEstimate| leg.preparing, |leg: &LegEstimate| leg.measuring] {
        assert_eq!(sum(&cold, time), sum(&warm, time));
    }
    assert_eq!(cold.disk_bytes, warm.disk_bytes);
}

#[test]
fn steps_of_ops_take_the_time_of_their_rate() {
    let measuring = |rate: &str| {
        let text = format!(
            "name = 'x'\n[[server]]\nlabel = 'a'\nhost = 'db1'\n\
             [[run]]\nworkload = 'point-select'\nclients = 1\nops = 10000\nwarmup = 0\n{rate}\n"
        );
        let experiment = experiment(&text, &overrides());
        let of = experiment.estimate(&experiment.legs(|_| true), |_| 0);
        of.legs.iter().map(|leg| leg.measuring.as_secs()).sum::<u64>()
    };
    // A second around each step.
    assert_eq!(measuring(""), 3);
    assert_eq!(measuring("rate = 100"), 101);
    assert_eq!(measuring("rate = [100, 1000]"), 101 + 11);
}

#[test]
fn each_server_that_is_there_has_the_time_of_its_fill() {
    let preparing = |other: &str| -> Vec<u64> {
        let text = format!(
            "name = 'x'\n[[server]]\nlabel = 'a'\nhost = 'db1'\n\
             [[server]]\nlabel = 'b'\n{other}\n[tables]\nrows = '10M'\n\
             [[run]]\nworkload = 'point-select'\n"
        );
        let experiment = experiment(&text, &overrides());
        let of = experiment.estimate(&experiment.legs(|_| true), |_| 0);
        of.legs.iter().map(|leg| leg.preparing.as_secs()).collect()
    };
    // 10M rows at 100,000 a second, and a start.
    assert_eq!(preparing("host = 'db2'"), [108, 108]);
    assert_eq!(preparing("base = 'a'\nnote = 'again'"), [108, 8], "they share the tables");
}

#[test]
fn data_that_is_there_is_not_filled_again() {
    let text = include_str!("../../../profiles/io-bound-point-select.toml");
    let experiment = experiment(text, &overrides());
    let legs = experiment.legs(|_| true);
    let preparing = |stored: fn(&Path) -> u64| -> Vec<u64> {
        let of = experiment.estimate(&legs, stored);
        of.legs.iter().map(|leg| leg.preparing.as_secs()).collect()
    };
    // 128M rows at 100,000 a second, once for each kind of checksum.
    assert_eq!(preparing(|_| 0), [1288, 1288, 8, 8, 8]);
    assert_eq!(preparing(|_| 20_000_000_000), [1288, 1288, 8, 8, 8], "half of it is there");
    assert_eq!(preparing(|_| 30_000_000_000), [8; 5]);
}

#[test]
fn copied_data_is_filled_again_when_another_label_was_between() {
    let text = "name = 'x'\n[[server]]\nlabel = 'a'\nsandbox = { data = 'copied' }\n\
                [[server]]\nlabel = 'b'\nbase = 'a'\nnote = 'again'\n[tables]\nrows = '10M'\n\
                [[run]]\nworkload = 'point-select'\nrepeat = 3\n";
    let experiment = experiment(text, &overrides());
    let of = experiment.estimate(&experiment.legs(|_| true), |_| 0);
    let filled: Vec<bool> = of.legs.iter().map(|leg| leg.preparing.as_secs() > 60).collect();
    assert_eq!(filled, [true, true, false, true, false, true]);
}

#[test]
fn the_profiles_that_are_shipped_are_sound() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles");
    let mut seen = 0;
    for entry in std::fs::read_dir(dir).expect("profiles") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        seen += 1;
        let text = std::fs::read_to_string(&path).expect("readable");
        let mut profile = Profile::parse(&text, &path.display().to_string()).expect("sound");
        for run in &mut profile.runs {
            let Measured::Script(of_script) = &mut run.what else { continue };
            let name = of_script.keys.lua.clone();
            let text = Some(shipped::script(&name).expect("the program carries it"));
            of_script.file = Some(ScriptFile { path: name, text, sha256: String::new() });
        }
        assert_eq!(path.file_stem().and_then(|s| s.to_str()), Some(profile.name.as_str()));
        assert!(text.starts_with("# ") && text.contains("\n# Needs: "), "{}", path.display());
        let experiment = build(&profile, &overrides()).expect("an experiment");
        assert!(experiment.list(|_| true, |_| 0).contains("\nestimate "));
    }
    assert_eq!(seen, 10);
}
