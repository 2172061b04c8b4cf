//! `loadgen run`: profiles against private servers, from nothing to the tables.

mod scripts;

use crate::common;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use loadgen::summary::{self, Summary};
use tempfile::TempDir;

/// A directory of its own: the profile, the results, kept data.
struct Place(TempDir);

impl Place {
    fn new(profile: &str) -> Place {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::write(dir.path().join("p.toml"), profile).expect("written");
        Place(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, words: &str) -> Ended {
        let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(["run", "p.toml"])
            .args(words.split_whitespace())
            .current_dir(self.0.path())
            .env_remove("MYSQL_PWD")
            .env_remove("LOADGEN_URL")
            .output()
            .expect("the program runs");
        Ended::of(&output)
    }

    fn summaries(&self) -> Vec<Summary> {
        let out = self.path("results");
        if !out.exists() {
            return Vec::new();
        }
        let loaded = summary::load(&[out], false).expect("whole summaries");
        loaded.summaries.into_iter().map(|(_, summary)| summary).collect()
    }
}

struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ended {
    fn of(output: &Output) -> Ended {
        Ended {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        self
    }
}

/// Two labels of this machine's mariadbd; `more` follows.
fn two_labels(data: &str, more: &str) -> String {
    let program = common::local().program;
    format!(
        "name = 'two'\n\
         [[server]]\nlabel = 'plain'\n[server.sandbox]\nprogram = '{}'\n{data}\n\
         [[server]]\nlabel = 'ps'\nbase = 'plain'\n\
         sandbox = {{ options = {{ performance_schema = true }} }}\n\
         [tables]\ncount = 2\nrows = 500\n{more}",
        program.display()
    )
}

const READS: &str = "[[run]]\nworkload = 'point-select'\nclients = [1, 2]\nops = 300\n";

#[test]
fn two_labels_from_nothing_to_the_table_and_once_only() {
    let report = "[report]\norder = ['ps', 'plain']\nlayout = ['versions', 'overhead']\n\
                  from = 'plain'\nto = 'ps'\n[[command]]\nat = 0\nclients = 2\n\
                  run = ['sh', '-c', 'echo {label} {clients} {pid}; sleep 0.1; exit 3']\n";
    let place = Place::new(&two_labels("", &format!("{READS}{report}")));
    let part = place.run("--only label=plain --only clients=1");
    part.assert_code(0);
    assert_eq!(place.summaries().len(), 1);
    assert!(part.stdout.contains("concurrent clients\n"), "{}", part.stdout);
    assert!(["overhead", "'ps'"].iter().all(|of| part.stderr.contains(of)), "{}", part.stderr);

    let whole = place.run("");
    whole.assert_code(0);
    assert!(whole.stderr.contains("1 of 4"), "{}", whole.stderr);
    let labels: Vec<&str> =
        whole.stdout.lines().take(3).filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!(labels, ["concurrent", "ps", "plain"], "{}", whole.stdout);

    let summaries = place.summaries();
    let warned = |step: &Summary| step.warnings.iter().any(|warning| warning.code == "perturbed");
    assert!(summaries.iter().any(warned), "{}", whole.stdout);
    assert_eq!(summaries.len(), 4);
    let one = |of: fn(&Summary) -> String| {
        let mut values: Vec<String> = summaries.iter().map(of).collect();
        values.sort();
        values.dedup();
        values.len()
    };
    assert_eq!(one(|s| s.run_id.clone()), 1, "a run that is continued is one run");
    assert_eq!(one(|s| s.plan.seed.to_string()), 1);
    assert_eq!(one(|s| s.step_id.clone()), 4);
    for summary in &summaries {
        assert_eq!((summary.totals.ops, summary.plan.tables, summary.plan.rows), (300, 2, 500));
        let experiment = summary.experiment.as_ref().expect("its part in the profile");
        assert_eq!(experiment.commands.len(), usize::from(summary.plan.clients == 2));
        for command in &experiment.commands {
            assert_eq!((command.program.as_str(), command.exit), ("sh", Some(3)));
            let file = place.path("results").join(&command.output);
            let text = fs::read_to_string(file).expect("the command's output");
            let words: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(words[..2], [summary.label.as_str(), "2"]);
            assert!(words[2].parse::<u32>().is_ok_and(|pid| pid > 1), "{text}");
        }
        let performance_schema = summary.server.variables["performance_schema"].as_str();
        assert_eq!(performance_schema, if summary.label == "ps" { "ON" } else { "OFF" });
    }

    let again = place.run("");
    again.assert_code(0);
    assert!(again.stderr.contains("4 of 4"), "{}", again.stderr);
    assert_eq!(again.stdout, whole.stdout);
    assert_eq!(place.summaries().len(), 4);
}

#[test]
fn a_profile_shows_its_table_when_its_host_changed_in_the_night() {
    let place = Place::new(&two_labels("", &format!("{READS}repeat = 2\n")));
    place.run("--only clients=1").assert_code(0);
    let files = fs::read_dir(place.path("results")).expect("results");
    let newest_first = |of: &Summary| std::cmp::Reverse(of.started_at.clone());
    let mut loaded: Vec<(PathBuf, Summary)> = files
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .map(|path| {
            (path.clone(), summary::load(&[path], false).expect("whole").summaries.remove(0).1)
        })
        .collect();
    loaded.sort_by_key(|(_, step)| newest_first(step));
    assert_eq!(loaded.len(), 4);
    for (path, step) in &mut loaded[..2] {
        // The second repeats came after an update, with another link and fewer cores.
        "6.99.0".clone_into(&mut step.client.kernel);
        step.client.cores += 3;
        step.server.host_facts.as_mut().expect("a sandbox").kernel = "6.99.0".to_owned();
        fs::write(path, summary::to_json(step)).expect("written");
    }
    let again = place.run("--only clients=1");
    again.assert_code(0);
    let loadgen = |words: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(words.split_whitespace())
            .current_dir(place.path("."))
            .output();
        Ended::of(&output.expect("the program runs"))
    };
    for words in [
        "report results",
        "report results --strict",
        "report results --latest",
        "report results --format csv",
        "report results --format html",
        "report results --gate qps>0",
        "compare results",
        "explain results",
    ] {
        let ended = loadgen(words);
        assert_eq!(ended.code, 0, "{words}: {}", ended.stderr);
    }
    let csv = loadgen("report results --format csv").stdout;
    assert!(csv.lines().skip(1).all(|row| row.contains("invocations")), "{csv}");
}

#[test]
fn a_continued_run_counts_the_steps_that_are_to_be_done() {
    let steps =
        "[[run]]\nworkload = 'point-select'\nclients = [1, 2, 3]\nwarmup = 0\ntime = '1s'\n";
    let place = Place::new(&two_labels("", steps));
    let shown = |words: &str| {
        let ended = place.run(&format!("--only label=plain --progress 100ms {words}"));
        ended.assert_code(0);
        let heads = ended.stderr.lines().filter_map(|line| {
            let (head, _) = line.strip_prefix('[')?.split_once("] point-select ")?;
            Some(head.to_owned())
        });
        let mut heads: Vec<String> = heads.collect();
        heads.dedup();
        heads
    };
    assert_eq!(shown("--only clients=1"), ["1/1"]);
    assert_eq!(shown(""), ["1/2", "2/2"]);
    let ids: Vec<Summary> = place.summaries();
    assert!(ids.iter().all(|one| ids.iter().filter(|s| s.step_id == one.step_id).count() == 1));
}

#[test]
fn commands_have_a_status_where_the_starter_ignores_the_end_of_children() {
    let suite = "[[run]]\nsuite = { name = 's', tests = [{ name = 'a', run = ['true'] }] }\n";
    let place = Place::new(&two_labels("", suite));
    let output = Command::new("sh")
        .args(["-c", "trap '' CHLD; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_loadgen")])
        .args(["run", "p.toml", "--only", "label=plain"])
        .current_dir(place.0.path())
        .output();
    Ended::of(&output.expect("sh runs")).assert_code(0);
}

#[test]
fn run_after_the_death_of_a_private_server_is_measured_on_a_new_one() {
    let runs = "[[run]]\nworkload = 'point-select'\nclients = 2\nwarmup = '0s'\ntime = '1m'\n\
                [[run]]\nworkload = 'update-index'\nclients = 1\nops = 50\n\
                [[command]]\nat = 0\nclients = 2\nrun = ['sh', '-c', 'kill -9 {pid}']\n";
    let place = Place::new(&two_labels("", runs));
    let ended = place.run("--only label=plain");
    ended.assert_code(1);
    let completed = |step: &Summary| step.outcome == summary::Outcome::Completed;
    let done = place.summaries().into_iter().filter(completed);
    let done = done.map(|step| step.workload.name.clone());
    assert_eq!(done.collect::<Vec<_>>(), ["update-index"], "{}", ended.stderr);
}

/// The sum of k of all tables in a server's own words, left by a command.
const WRITES: &str = "[[run]]\nworkload = 'update-index'\nclients = 2\nops = 200\nrepeat = 2\n\
                      [[run]]\nname = 'again'\nworkload = 'update-index'\nclients = 2\nops = 100\n";

#[test]
fn writing_runs_start_from_equal_data_or_say_that_they_did_not() {
    for (data, equal) in [("data = 'copied'", true), ("data = { keep = 'stock' }", false)] {
        let place = Place::new(&two_labels(data, WRITES));
        place.run("--only label=plain").assert_code(0);
        let mut summaries = place.summaries();
        summaries.sort_by(|a, b| a.started_at.cmp(&b.started_at));
        assert_eq!(summaries.len(), 3);
        for (at, summary) in summaries.iter().enumerate() {
            let written_by = summary.experiment.as_ref().and_then(|e| e.written_by.clone());
            let clean = written_by.as_ref().is_some_and(Vec::is_empty);
            let warned = summary.warnings.iter().any(|w| w.code == "data_not_equal");
            // The very first one found what was made for it.
            assert_eq!(clean, equal || at == 0, "{data}: {written_by:?}");
            assert_eq!(warned, !clean, "{data}");
        }
        assert_eq!(place.path("stock").exists(), data.contains("stock"));
    }
}

#[test]
fn step_that_writes_has_restored_data_in_each_try() {
    let busy = "[[command]]\nat = 0\nrun = ['timeout', '0.4', 'sh', '-c', 'while :; do :; done']\n";
    let run =
        "[[run]]\nworkload = 'update-index'\nclients = [1, 2]\ntime = '600ms'\nwarmup = '0s'\n";
    for (data, restores) in [("data = 'copied'", true), ("data = { keep = 'stock' }", false)] {
        let place = Place::new(&two_labels(data, &format!("{run}{busy}")));
        place.run("--only label=plain --others-max 0.1%").assert_code(0);
        let of_tries = |clients: u32, tries: bool| {
            let all =
                place.summaries().into_iter().filter(move |step| step.plan.clients == clients);
            all.filter(move |step| (step.outcome == summary::Outcome::MeasuredAgain) == tries)
        };
        let carried_on = |step: Summary| step.warnings.iter().any(|w| w.code == "carried_on");
        let carried = |clients| of_tries(clients, false).map(carried_on).collect::<Vec<_>>();
        assert_eq!([1, 2].map(|clients| of_tries(clients, true).count()), [3, 3], "{data}");
        assert_eq!([carried(1), carried(2)], [vec![!restores], vec![true]], "{data}");
    }
}

#[test]
fn runs_of_one_sandbox_have_tables_of_their_own_rows_unless_it_keeps_them() {
    let run = |name: &str, rows: u32| {
        let more = format!("name = '{name}'\nrows = {rows}\nclients = 1\nops = 50\n");
        format!("[[run]]\nworkload = 'point-select'\n{more}")
    };
    let runs = run("few", 200) + &run("many", 300);
    for data in ["", "data = 'copied'", "data = { keep = 'stock' }"] {
        let place = Place::new(&two_labels(data, &runs));
        if data.contains("keep") {
            let refused = place.run("--only label=plain");
            refused.assert_code(4);
            assert!(refused.stderr.contains("refill = true"), "{}", refused.stderr);
            let text = fs::read_to_string(place.path("p.toml")).expect("the profile");
            let text = text.replace("[tables]", "[tables]\nrefill = true");
            fs::write(place.path("p.toml"), text).expect("written");
        }
        place.run("--only label=plain").assert_code(0);
        let mut rows: Vec<u64> = place.summaries().iter().map(|step| step.plan.rows).collect();
        rows.sort_unstable();
        rows.dedup();
        assert_eq!(rows, [200, 300], "{data}");
    }
}

#[test]
fn copies_are_equal_and_the_stock_stays_as_it_was() {
    let place = Place::new(&two_labels(
        "data = { copy_of = 'stock' }",
        "[[run]]\nworkload = 'update-index'\nclients = 1\nops = 50\n",
    ));
    place.run("").assert_code(0);
    // The same keys from the same data: each label's tables end with the same sum of k, which
    // its ledger tells.
    let summaries = place.summaries();
    let added: Vec<i64> =
        summaries.iter().map(|s| s.ledger.iter().map(|l| l.k_added).sum()).collect();
    assert_eq!(added, [50, 50]);
    let mark = fs::read_to_string(place.path("stock/server/loadgen-data.json")).expect("a mark");
    assert!(mark.contains("sbtest 2 x 500 rows") && mark.contains("\"written_by\": []"), "{mark}");
    // Somebody else's directory is nobody's stock.
    fs::remove_file(place.path("stock/server/loadgen-data.json")).expect("removed");
    let refused = place.run("--out other");
    refused.assert_code(2);
    assert!(refused.stderr.contains("stock/server"), "{}", refused.stderr);
}

#[test]
fn what_a_profile_expects_is_checked_before_the_run() {
    let expect = "[expect]\nvariables = { performance_schema = 'OFF' }\n";
    let place = Place::new(&two_labels("", &format!("{READS}{expect}")));
    let ended = place.run("");
    ended.assert_code(3);
    assert!(ended.stderr.contains("performance_schema"), "{}", ended.stderr);
    // The other label is as expected, and is measured.
    let labels: Vec<String> = place.summaries().into_iter().map(|s| s.label).collect();
    assert_eq!(labels, ["plain", "plain"]);
    assert!(ended.stdout.contains("plain"), "{}", ended.stdout);
}

#[test]
fn a_workload_of_the_users_own_with_two_statements_and_a_transaction() {
    let own = "[[workload]]\nname = 'mine'\nabout = 'reads and counts'\n\
        [[workload.transaction]]\nweight = 1\nbegin = true\n\
        [[workload.transaction.statement]]\nkind = 'select'\n\
        sql = 'SELECT c FROM {table} WHERE id = ?'\nparams = [{ key = 'zipf:0.9' }]\n\
        expect = { rows = 1, content = 'c' }\n\
        [[workload.transaction.statement]]\nkind = 'update'\n\
        sql = 'UPDATE {table} SET k = k + 1 WHERE id = ?'\nparams = [{ key = 'uniform' }]\n\
        expect = { affected = 1 }\neffect = { add_k = 1 }\n\
        [[run]]\nworkload = 'mine'\nclients = 2\nops = 200\n";
    let place = Place::new(&two_labels("", own));
    place.run("--only label=plain").assert_code(0);
    let summaries = place.summaries();
    let summary = summaries.first().expect("a summary");
    assert_eq!((summary.workload.name.as_str(), summary.totals.ops), ("mine", 200));
    let status = summary.server.status.as_ref().expect("counters");
    let count = |name: &str| status.deltas.get(name).copied().unwrap_or(0);
    assert_eq!((count("Com_update"), count("Com_commit")), (200, 200));
    assert_eq!(summary.ledger.iter().map(|l| l.k_added).sum::<i64>(), 200);
}

/// A profile of a server that runs already.
fn of_server(server: &loadgen::sandbox::Sandbox, more: &str) -> Place {
    let socket = server.socket.display();
    Place::new(&format!(
        "name = 'x'\n[[server]]\nlabel = 'a'\nurl = 'mysql://root@localhost/sbtest?socket={socket}'\n\
         {more}"
    ))
}

#[test]
fn tables_of_other_rows_after_a_reset_are_filled_again_when_they_may_be() {
    let server = common::sandbox(&common::local(), &[]);
    let run = |rows: u32, more: &str| {
        let run = "[[run]]\nworkload = 'point-select'\nclients = 1\nops = 20\n";
        of_server(&server, &format!("reset = ['true']\n[tables]\nrows = {rows}\n{more}\n{run}"))
            .run("")
    };
    run(100, "").assert_code(0);
    run(200, "").assert_code(4);
    run(200, "refill = true").assert_code(0);
}

#[test]
fn hosts_are_not_started_when_results_cannot_be_kept() {
    let server = "[[server]]\nurl = 'mysql://root@127.0.0.1:1/x'\n";
    let place =
        Place::new(&format!("name = 'x'\n{server}[[run]]\nworkload = 'point-select'\nops = 1\n"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command.args(["run", "p.toml", "--out", "p.toml/x", "--hosts", "h1"]);
    command.args(["--host-command", "touch {host}"]);
    let ended = command.current_dir(place.0.path()).output().expect("the program runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("summaries cannot be written"), "{said}");
    assert_eq!((ended.status.code(), place.path("h1").exists()), (Some(2), false));
}

fn tables(server: &loadgen::sandbox::Sandbox) -> Vec<String> {
    common::query(server, "SHOW TABLES FROM sbtest").into_iter().flatten().collect()
}

#[test]
fn a_workload_that_names_its_own_tables_only_needs_and_makes_no_others() {
    let own = |statements: &str| {
        format!(
            "[[workload]]\nname = 'mine'\nabout = 'visits'\n[[workload.transaction]]\n\
             [[workload.transaction.statement]]\nkind = 'update'\nexpect = {{ affected = 1 }}\n\
             sql = 'UPDATE sbtest.visits SET n = n + 1 WHERE id = ?'\nparams = [{{ key = 'default' }}]\n\
             [[workload.transaction.statement]]\nkind = 'insert'\nexpect = {{ affected = 1 }}\n\
             sql = 'INSERT INTO log (id) VALUES (?)'\nparams = ['serial']\n{statements}\
             [[run]]\nworkload = 'mine'\nclients = [1, 3]\nops = 60\n"
        )
    };
    let server = common::sandbox(&common::local(), &[]);
    for sql in [
        "CREATE TABLE sbtest.visits (id INT PRIMARY KEY, n INT NOT NULL)",
        "INSERT INTO sbtest.visits VALUES (1, 0), (2, 0), (3, 0)",
        "CREATE TABLE sbtest.log (id BIGINT, at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)",
    ] {
        common::query(&server, sql);
    }
    for spread in ["", "spread = 'random'\n", "statements = 'text'\n"] {
        common::query(&server, "UPDATE sbtest.visits SET n = 0");
        let place =
            of_server(&server, &format!("[tables]\ncount = 2\nrows = 3\n{}{spread}", own("")));
        place.run("").assert_code(0);
        assert_eq!(tables(&server), ["log", "visits"]);
        assert_eq!(common::query(&server, "SELECT SUM(n) FROM sbtest.visits"), [["120"]]);
        for summary in place.summaries() {
            assert_eq!((summary.totals.ops, summary.plan.tables, summary.plan.rows), (60, 0, 3));
            assert!(summary.totals.per_table.is_empty() && summary.ledger.is_empty());
            assert!(summary.server.data_bytes.is_some_and(|bytes| bytes > 0));
        }
    }
    // Nobody can warm what nobody knows.
    let warm = of_server(&server, &format!("{}warm = 'pool'\n", own(""))).run("");
    warm.assert_code(2);
    // One statement is enough.
    let some = "[[workload.transaction.statement]]\nkind = 'select'\nexpect = { rows = 1 }\n\
                sql = 'SELECT c FROM {table} WHERE id = ?'\nparams = [{ key = 'default' }]\n";
    let place = of_server(&server, &format!("[tables]\ncount = 2\nrows = 3\n{}", own(some)));
    place.run("").assert_code(0);
    assert_eq!(tables(&server), ["log", "sbtest1", "sbtest2", "visits"]);
}

#[test]
fn a_load_in_a_profile_refuses_what_prepare_made_unless_it_may_be_refilled() {
    let server = common::sandbox(&common::local(), &[]);
    let prepare = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["prepare", "--rows", "100", "--no-defaults", "-u", "root", "-S"])
        .arg(&server.socket)
        .output()
        .expect("the program runs");
    assert!(prepare.status.success());
    let count = || common::query(&server, "SELECT COUNT(*) FROM sbtest.sbtest1")[0][0].clone();
    let load = "[[run]]\nload = { rows = 50 }\nrepeat = 2\n";
    let refused = of_server(&server, load).run("");
    refused.assert_code(4);
    assert!(refused.stderr.contains("`sbtest1`"), "{}", refused.stderr);
    assert_eq!(count(), "100");
    of_server(&server, &format!("[tables]\nrefill = true\n{load}")).run("").assert_code(0);
    assert_eq!(count(), "50");
    of_server(&server, load).run("").assert_code(0);
}

#[test]
fn the_list_needs_no_server_and_guesses_time_and_disk() {
    let place = Place::new(
        "name = 'x'\n[[server]]\nsandbox = { program = '/nonexistent' }\n\
         [tables]\ncount = 8\nrows = '16M'\n\
         [[run]]\nworkload = 'point-select'\nclients = '8..256'\nrepeat = 2\n",
    );
    let list = place.run("--list");
    list.assert_code(0);
    assert_eq!(list.stdout.matches("\nstep ").count(), 12, "{}", list.stdout);
    let estimate = list.stdout.lines().find(|line| line.starts_with("estimate")).expect("one");
    // Eight tables of 16M rows have 30 GB, thrown away and filled again for the second repeat.
    assert!(estimate.contains("31.0 GB") && estimate.contains("43m"), "{estimate}");
    assert!(!place.path("results").exists());
    let scaled = place.run("--list --scale 0.001 --only clients=8,16 --only repeat=2");
    assert_eq!(scaled.stdout.matches("\nstep ").count(), 2, "{}", scaled.stdout);
    assert!(scaled.stdout.contains(" 16k "), "{}", scaled.stdout);
}

struct Fault {
    more: &'static str,
    words: &'static str,
    says: &'static str,
}

#[test]
fn wrong_files_and_flags_are_told_with_their_place() {
    let place = Place::new("name = 'x'\n[[server]]\nsandbox = {}\n[[run]]\nworkload = 'nope'\n");
    let ended = place.run("");
    ended.assert_code(2);
    assert!(
        ["p.toml:5:12: ", "'nope'"].iter().all(|of| ended.stderr.contains(of)),
        "{}",
        ended.stderr
    );
    let text = "name = 'x'\n[[server]]\nsandbox = {}\n[[run]]\nworkload = 'update'\n";
    for Fault { more, words, says } in [
        Fault { more: "[report]\nlayout = 'nice'\n", words: "", says: "p.toml:7:10: " },
        Fault { more: "[report]\nmetric = ['qps', 'p1000']\n", words: "", says: "p.toml:7:18: " },
        Fault {
            more: "[report]\nlayout = 'delta'\n",
            words: "",
            says: "p.toml:7:10: delta compares",
        },
        Fault {
            more: "[report]\nbaseline = 'other'\n",
            words: "",
            says: "p.toml:7:12: there is no label 'other'",
        },
        Fault {
            more: "spread = 'pinned'\ntables = 3\nclients = 2\n",
            words: "",
            says: "p.toml:6:10: run update-index",
        },
        Fault {
            more: "[[server]]\nlabel = 'u'\nurl = 'http://h'\n",
            words: "",
            says: "p.toml:8:7: --url does not start",
        },
        Fault {
            more: "[[server]]\nlabel = 'f'\ndefaults_file = '/nonexistent'\n",
            words: "",
            says: "p.toml:8:17: ",
        },
        Fault { more: "", words: "--only label=other", says: "no such label" },
        Fault { more: "", words: "--only size=3", says: "label=" },
        Fault { more: "", words: "--scale 2", says: "no scale" },
        Fault { more: "", words: "--program x", says: "NAME=PATH" },
        Fault { more: "", words: "--program a=/nonexistent", says: "no such program" },
    ] {
        let place = Place::new(&format!("{text}{more}"));
        let ended = place.run(words);
        ended.assert_code(2);
        assert!(ended.stderr.contains(says), "{more}{words}: {}", ended.stderr);
    }
}

/// Programs that are run in the place of commands on another host.
fn script(dir: &Path, name: &str, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    path.display().to_string()
}

#[test]
fn commands_start_stop_and_reset_a_server_that_is_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path();
    // What an operator would have: a data directory, and commands around a server in it.
    let program = common::local().program.display().to_string();
    let (data, socket, pid) = (at.join("data"), at.join("s"), at.join("pid"));
    let (d, s, p) = (data.display(), socket.display(), pid.display());
    let user = if nix::unistd::geteuid().is_root() { "--user=root" } else { "" };
    let base = at.display();
    let server = format!(
        "{program} --no-defaults --datadir={d} {user} --skip-networking --socket={s} --pid-file={p}"
    );
    let install = format!(
        "mariadb-install-db --no-defaults --datadir={d} {user} --auth-root-authentication-method=normal"
    );
    let made = Command::new("sh").args(["-c", &install]).output().expect("the shell runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let start = script(
        at,
        "start",
        &format!("echo start >>{base}/log; {server} >{base}/err 2>&1 </dev/null &"),
    );
    let stop = script(
        at,
        "stop",
        &format!("echo stop >>{base}/log; kill $(cat {p}); while [ -e {p} ]; do sleep 0.1; done"),
    );
    let reset = script(
        at,
        "reset",
        &format!(
            "echo reset >>{base}/log; rm -rf {d}; {install} >/dev/null && mkdir -p {d}/sbtest"
        ),
    );
    let place = Place::new(&format!(
        "name = 'x'\n[[server]]\nlabel = 'a'\nurl = 'mysql://root@localhost/sbtest?socket={s}'\n\
         start = ['{start}']\nstop = ['{stop}']\nreset = ['{reset}']\nwithin = '1m'\n\
         [tables]\nrows = 300\n\
         [[run]]\nworkload = 'update-index'\nops = 50\nrepeat = 2\n"
    ));
    let ended = place.run("");
    let summaries = place.summaries();
    // Whatever happened, no server is left.
    let _ = Command::new(&stop).output();
    ended.assert_code(0);
    assert_eq!(summaries.len(), 2);
    assert!(summaries.iter().all(|s| !s.warnings.iter().any(|w| w.code == "data_not_equal")));
    let log = fs::read_to_string(at.join("log")).expect("a log");
    let words: Vec<&str> = log.split_whitespace().collect();
    // What loadgen started it stops, the last one too; nobody is stopped twice.
    let expected = ["reset", "start", "stop", "reset", "start", "stop", "stop"];
    assert_eq!(words, expected, "{log}");
}

#[test]
fn an_interrupted_run_says_how_to_go_on() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    let place = Place::new(&two_labels(
        "",
        "[[run]]\nworkload = 'point-select'\nops = 300\n[[run]]\nname = 'long'\n\
         workload = 'point-select'\nwarmup = 0\ntime = '10m'\n",
    ));
    let mut child = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["run", "p.toml", "--only", "label=plain"])
        .current_dir(place.0.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program runs");
    let saved = || {
        let entries = fs::read_dir(place.path("results")).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().extension().is_some_and(|of| of == "json")).count()
    };
    while saved() == 0 {
        assert!(child.try_wait().expect("its status").is_none(), "it runs");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it runs");
    let ended = child.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("1 of 2"), "{said}");
}

#[test]
fn server_that_cannot_be_given_back_is_told_when_another_error_weighs_as_much() {
    let (sandbox, dir) = (common::sandbox(&common::local(), &[]), tempfile::tempdir());
    let dir = dir.expect("a directory");
    let (at, socket) = (dir.path().display(), sandbox.socket.display());
    // Nobody answers while its socket has another name. The second stop fails.
    let stop = format!("[ -e {at}/once ] && exit 7; touch {at}/once; mv {socket} {socket}.away");
    let stop = script(dir.path(), "stop", &stop);
    let start = script(dir.path(), "start", &format!("mv {socket}.away {socket}"));
    let place = Place::new(&format!(
        "name = 'x'\n\
         [[server]]\nlabel = 'gone'\nurl = 'mysql://root@localhost/sbtest?socket={at}/none'\n\
         [[server]]\nlabel = 'kept'\nurl = 'mysql://root@localhost/sbtest?socket={socket}'\n\
         start = ['{start}']\nstop = ['{stop}']\nwithin = '1m'\n\
         [tables]\nrows = 300\n[[run]]\nworkload = 'point-select'\nops = 50\n"
    ));
    let ended = place.run("");
    ended.assert_code(3);
    assert_eq!(place.summaries().len(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("warning: kept: stop ("), "{}", ended.stderr);
}

#[test]
fn a_second_signal_ends_the_commands_too() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    let place = Place::new(&two_labels(
        "data = 'copied'",
        "[[run]]\nsuite = { name = 's', tests = [{ name = 'deaf', run = \
         ['sh', '-c', 'trap \"\" INT TERM; echo $$ >pid.new; mv pid.new pid; while :; do sleep 1; \
         done'] }] }\n",
    ));
    fs::create_dir(place.path("tmp")).expect("made");
    let mut child = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["run", "p.toml", "--only", "label=plain"])
        .current_dir(place.0.path())
        .env("TMPDIR", place.path("tmp"))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the program runs");
    let pause = || std::thread::sleep(std::time::Duration::from_millis(50));
    let deaf = loop {
        match fs::read_to_string(place.path("pid")) {
            Ok(text) => break text.trim().parse::<i32>().expect("a pid"),
            Err(_) => assert!(child.try_wait().expect("its status").is_none(), "it runs"),
        }
        pause();
    };
    // Two signals that come at once are one.
    let status = loop {
        let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT);
        pause();
        if let Some(status) = child.try_wait().expect("its status") {
            break status;
        }
    };
    assert_eq!(status.code(), Some(130));
    let alive = || {
        let stat = fs::read_to_string(format!("/proc/{deaf}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.contains('Z'))
    };
    let until = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while alive() {
        assert!(std::time::Instant::now() < until, "{deaf} is still there");
        pause();
    }
    let is_left = || fs::read_dir(place.path("tmp")).expect("there").next().is_some();
    while is_left() {
        assert!(std::time::Instant::now() < until, "its data are still there");
        pause();
    }
}

#[test]
fn each_step_of_a_writing_run_says_what_wrote_before_it() {
    let writes = "[[run]]\nworkload = 'update-index'\nclients = [1, 2, 4]\nops = 60\n";
    let place = Place::new(&two_labels("data = 'copied'", writes));
    let codes = |place: &Place, label: &str| {
        let mut steps: Vec<(u32, Vec<String>)> = Vec::new();
        for summary in place.summaries().into_iter().filter(|s| s.label == label) {
            let own = summary.warnings.into_iter().map(|w| w.code);
            let own = own.filter(|c| c == "carried_on" || c == "data_not_equal").collect();
            steps.push((summary.plan.clients, own));
        }
        steps.sort();
        steps
    };
    let text = |codes: &[&str]| codes.iter().map(|c| (*c).to_owned()).collect::<Vec<String>>();
    let (carried, without) = (text(&["carried_on"]), text(&["data_not_equal"]));
    place.run("--only label=plain").assert_code(0);
    let usual = [(1, text(&[])), (2, carried.clone()), (4, carried.clone())];
    assert_eq!(codes(&place, "plain"), usual);
    // Continued in the middle: the second step finds tables that nobody wrote to.
    place.run("--only label=ps --only clients=1").assert_code(0);
    let ended = place.run("");
    ended.assert_code(0);
    let both = [carried, without.clone()].concat();
    assert_eq!(codes(&place, "ps"), [(1, text(&[])), (2, without), (4, both)]);
}

#[test]
fn what_is_expected_of_the_data_is_a_warning_below_full_size() {
    let profile = two_labels(
        "scaled_options = { innodb_buffer_pool_size = '64M' }",
        &format!("{READS}[expect]\ndatabase = 'larger-than-buffer-pool'\n"),
    );
    let place = Place::new(&profile);
    place.run("--only label=plain").assert_code(3);
    let ended = place.run("--only label=plain --scale 0.1");
    ended.assert_code(0);
    assert!(place.summaries().iter().all(|s| s.warnings.iter().any(|w| w.code == "scaled_class")));
}

struct Start {
    start: &'static str,
    within: &'static str,
    says: &'static str,
}

#[test]
fn a_server_that_lets_nobody_in_or_does_not_start_says_so_in_time() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("s");
    let profile = |start: &str, within: &str| {
        format!(
            "name = 'x'\n[[server]]\nlabel = 'a'\nurl = 'mysql://root@localhost/x?socket={}'\n\
             start = {start}\nstop = ['true']\nwithin = '{within}'\n\
             [[run]]\nworkload = 'point-select'\nops = 50\n",
            socket.display()
        )
    };
    // What ends by itself has time for that on a busy machine, too.
    for Start { start, within, says } in [
        Start { start: "['sh', '-c', 'echo no disk; exit 5']", within: "1m", says: "no disk" },
        Start { start: "['sleep', '1000']", within: "1s", says: "has not ended within" },
        Start { start: "['/nonexistent/start']", within: "1m", says: "cannot be started" },
        Start { start: "['true']", within: "6s", says: "does not answer 6s after its start" },
    ] {
        let ended = Place::new(&profile(start, within)).run("");
        ended.assert_code(3);
        assert!(ended.stderr.contains(says), "{start}: {}", ended.stderr);
    }
}

#[test]
fn a_run_that_goes_on_refuses_another_server() {
    let sandbox = common::sandbox(&common::local(), &[]);
    let place = Place::new(&format!(
        "name = 'x'\n[[server]]\nlabel = 'a'\nurl = 'mysql://root@localhost/sbtest?socket={}'\n\
         [tables]\nrows = 300\n[[run]]\nworkload = 'point-select'\nops = 50\nrepeat = 2\n",
        sandbox.socket.display()
    ));
    place.run("--only repeat=1").assert_code(0);
    common::query(&sandbox, "SET GLOBAL innodb_io_capacity = 333");
    let other = place.run("");
    other.assert_code(4);
    for of in ["innodb_io_capacity", "200", "333"] {
        assert!(other.stderr.contains(of), "{of}: {}", other.stderr);
    }
    assert_eq!(place.summaries().len(), 1, "nothing is measured on it");
    common::query(&sandbox, "SET GLOBAL innodb_io_capacity = 200");
    place.run("").assert_code(0);
    let summaries = place.summaries();
    assert_eq!(summaries.len(), 2);
    let server = &summaries[0].server;
    let formats = server.table_formats.as_deref().expect("known");
    assert!(formats[0].starts_with("InnoDB Dynamic "), "{formats:?}");
    let statement = &summaries[0].workload.transactions.as_ref().expect("known")[0]["statement"][0];
    assert_eq!(statement["params"][0]["key"], "default", "{statement}");
}

/// A profile of two labels on one server, whose labels are different databases.
fn two_databases(server: &loadgen::sandbox::Sandbox) -> Place {
    for name in ["one", "two"] {
        common::query(server, &format!("CREATE DATABASE IF NOT EXISTS {name}"));
    }
    let label = |label: &str, database: &str| {
        let socket = server.socket.display();
        format!(
            "[[server]]\nlabel='{label}'\nurl='mysql://root@localhost/{database}?socket={socket}'\n"
        )
    };
    let servers = [label("a", "one"), label("b", "two")].concat();
    Place::new(&format!(
        "name = 'ab'\ngates = ['errors==0']\n{servers}[tables]\nrows = 300\n\
         [[run]]\nworkload = 'update-index'\nops = 200\n"
    ))
}

/// The repeats that a list of `recheck` has of a label, before and after.
fn repeats(listed: &Ended, label: &str) -> Vec<u32> {
    let label = format!("{label}: ");
    let line = listed.stdout.lines().find_map(|line| Some(line.split_once(&label)?.1));
    let numbers = line.expect("its line").split(|c: char| !c.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// What a trigger does to label b's updates.
const REFUSE: &str = "CREATE TRIGGER two.refuse BEFORE UPDATE ON two.sbtest1 FOR EACH ROW \
                      SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = 'made up'";

#[test]
fn gates_and_recheck_know_of_steps_when_these_did_not_complete() {
    let server = common::sandbox(&common::local(), &[]);
    let place = two_databases(&server);
    place.run("").assert_code(0);
    fs::remove_dir_all(place.path("results")).expect("removed");
    common::query(&server, REFUSE);
    let failed = place.run("");
    failed.assert_code(1);
    let fails = |ended: &Ended| {
        ended.stderr.lines().any(|line| line.contains("b: errors==0") && line.contains("FAILS"))
    };
    assert!(fails(&failed), "{}", failed.stderr);

    // What is not there is in doubt, and is to be measured.
    let recheck = |words: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(["recheck", "results", "--profile", "p.toml", "--floor", "99%"])
            .args(words.split_whitespace())
            .current_dir(place.0.path())
            .output()
            .expect("the program runs");
        Ended::of(&output)
    };
    let listed = recheck("--list --spread-max 99%");
    listed.assert_code(0);
    assert_eq!(repeats(&listed, "b"), [0, 6], "{}", listed.stdout);
    recheck("--max-repeats 1 --spread-max 99%").assert_code(1);

    // Measured again it has a result, and the errors of before are none the less.
    common::query(&server, "DROP TRIGGER two.refuse");
    let whole = place.run("");
    whole.assert_code(99);
    assert!(fails(&whole), "{}", whole.stderr);
}

#[test]
fn recheck_of_two_labels_leaves_a_third_alone() {
    let server = common::sandbox(&common::local(), &[]);
    common::query(&server, "CREATE DATABASE IF NOT EXISTS sbtest");
    let url = format!("mysql://root@localhost/sbtest?socket={}", server.socket.display());
    let labels: String =
        ["a", "b", "c"].map(|name| format!("[[server]]\nlabel='{name}'\nurl='{url}'\n")).concat();
    let place = Place::new(&format!(
        "name = 'abc'\n{labels}[tables]\nrows = 1000\n\
         [[run]]\nworkload = 'point-select'\nclients = 1\nops = 200\nrepeat = 2\n"
    ));
    place.run("").assert_code(0);
    let recheck = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(["recheck", "results", "--profile", "p.toml", "--list"])
            // No two runs are this near.
            .args(["--spread-max", "0.0001%"])
            .args(words)
            .current_dir(place.0.path())
            .output()
            .expect("the program runs");
        Ended::of(&output)
    };
    let listed = |words: &[&str]| {
        let listed = recheck(words);
        listed.assert_code(0);
        ["a", "b", "c"].map(|label| listed.stdout.contains(&format!("  {label}: 2 repeats")))
    };
    assert_eq!(listed(&[]), [true; 3]);
    assert_eq!(listed(&["--new", "b"]), [true, true, false]);
    // The first label is the baseline.
    recheck(&["--new", "a"]).assert_code(2);
}

/// Two labels of one server that runs all the time: only the order tells them apart.
#[test]
fn labels_are_interleaved_gated_and_measured_again_where_they_are_in_doubt() {
    let server = common::sandbox(&common::local(), &[]);
    common::query(&server, "CREATE DATABASE IF NOT EXISTS sbtest");
    let dir = server.socket.parent().expect("a directory").join("client.cnf");
    let options = format!("[client]\nuser=root\nsocket={}\n", server.socket.display());
    fs::write(&dir, options).expect("written");
    let labels =
        |name: &str| format!("[[server]]\nlabel='{name}'\ndefaults_file='{}'\n", dir.display());
    let profile = format!(
        "name = 'ab'\ngates = ['errors==0']\n{}{}[tables]\nrows = 1000\n\
         [[run]]\nworkload = 'point-select'\nclients = 2\nops = 2000\nrepeat = 2\n",
        labels("a"),
        labels("b")
    );
    let place = Place::new(&profile);
    let whole = place.run("");
    whole.assert_code(0);
    assert!(whole.stderr.contains("2 of 2"), "{}", whole.stderr);
    let order = || -> Vec<(String, u32)> {
        let mut all = place.summaries();
        all.sort_by(|a, b| a.started_at.cmp(&b.started_at));
        all.into_iter().map(|s| (s.label, s.plan.repeat_index)).collect()
    };
    let expected = |wanted: &[(&str, u32)]| -> Vec<(String, u32)> {
        wanted.iter().map(|(label, repeat)| ((*label).to_owned(), *repeat)).collect()
    };
    let there_and_back = [("a", 1), ("b", 1), ("b", 2), ("a", 2)];
    assert_eq!(order(), expected(&there_and_back));

    // Two against two are too few for any verdict.
    let recheck = |words: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(["recheck", "results", "--profile", "p.toml"])
            .args(words.split_whitespace())
            .current_dir(place.0.path())
            .output()
            .expect("the program runs");
        Ended::of(&output)
    };
    let listed = recheck("--list --max-repeats 3");
    listed.assert_code(0);
    assert_eq!(repeats(&listed, "a"), [2, 3], "{}", listed.stdout);
    assert_eq!(place.summaries().len(), 4, "a list measures nothing");

    let again = recheck("--max-repeats 3 --calibration none.json");
    again.assert_code(98);
    assert!(again.stderr.contains("none.json"), "{}", again.stderr);
    let more = [there_and_back.as_slice(), &[("a", 3), ("b", 3)]].concat();
    assert_eq!(order(), expected(&more));
    let mut runs: Vec<String> = place.summaries().into_iter().map(|s| s.run_id).collect();
    runs.dedup();
    assert_eq!(runs.len(), 1, "it continues the run");
    let (shown, reported) = (place.run(""), loadgen(&place, "report results"));
    let rows = |of: &Ended| of.stdout.lines().take(3).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rows(&shown), rows(&reported), "run shows the runs of the recheck, too");

    let other = Place::new(&profile.replace("'ab'", "'other'"));
    fs::rename(place.path("results"), other.path("results")).expect("moved");
    let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["recheck", "results", "--profile", "p.toml"])
        .current_dir(other.0.path())
        .output()
        .expect("the program runs");
    Ended::of(&output).assert_code(4);
}

/// The program with these words, in a directory.
fn loadgen(place: &Place, words: &str) -> Ended {
    let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(words.split_whitespace())
        .current_dir(place.0.path())
        .env_remove("MYSQL_PWD")
        .env_remove("MYSQL_HOST")
        .env_remove("LOADGEN_URL")
        .output()
        .expect("the program runs");
    Ended::of(&output)
}

#[test]
fn run_takes_a_profile_by_its_name_when_no_file_has_it() {
    let place = Place::new("");
    let shipped = fs::read_to_string("profiles/smoke.toml").expect("the profile");
    let listed = loadgen(&place, "profiles");
    let names: Vec<&str> =
        listed.assert_code(0).stdout.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() >= 7 && names.contains(&"smoke"), "{names:?}");
    for name in &names {
        loadgen(&place, &format!("run {name} --list")).assert_code(0);
        assert!(!loadgen(&place, &format!("profiles {name}")).assert_code(0).stdout.is_empty());
    }
    assert_eq!(loadgen(&place, "profiles smoke --print").assert_code(0).stdout, shipped);
    for refused in ["profiles smok", "profiles --print", "run smok --list"] {
        loadgen(&place, refused).assert_code(2);
    }

    let by_name = loadgen(&place, "run smoke --list --seed 1").stdout;
    // What --out makes is no file.
    fs::create_dir(place.path("smoke")).expect("made");
    assert_eq!(loadgen(&place, "run smoke --list --seed 1").assert_code(0).stdout, by_name);
    fs::remove_dir(place.path("smoke")).expect("removed");
    fs::write(place.path("smoke"), shipped.replace("\"smoke\"", "\"mine\"")).expect("written");
    let own = loadgen(&place, "run smoke --list --seed 1");
    assert!(own.assert_code(0).stdout.starts_with("profile    mine\n"), "{}", own.stdout);
}

#[test]
fn run_measures_the_server_of_the_flags_when_the_profile_has_others() {
    let server = common::sandbox(&common::local(), &[]);
    common::query(&server, "CREATE DATABASE IF NOT EXISTS sbtest");
    let place = Place::new("");
    let flags = format!("--no-defaults -u root --socket {}", server.socket.display());
    let part = "run smoke --scale 0.1 --only workload=point-select";
    loadgen(&place, &format!("{part} {flags}")).assert_code(0);
    let summaries = place.summaries();
    assert_eq!(summaries.len(), 2);
    for step in &summaries {
        assert_eq!((step.label.as_str(), step.plan.tables), ("smoke", 2));
        let socket = step.server.variables.get("socket").map(Path::new);
        assert_eq!(socket, Some(server.socket.as_path()), "it is no server of its own");
    }
    // Results of one server are not those of another, nor of a label that has none.
    let measured = |words: &str| {
        let listed = loadgen(&place, &format!("{part} --list {words}"));
        listed.assert_code(0).stdout.matches("(measured already)").count()
    };
    assert_eq!(measured(&flags), 2);
    for other in ["-h 127.0.0.1 -P 1", "", &format!("{flags} --label x")] {
        assert_eq!(measured(other), 0, "{other}");
    }
    let elsewhere = loadgen(&place, &format!("{part} --list {flags} --database other"));
    assert!(elsewhere.assert_code(2).stderr.contains("database sbtest"), "{}", elsewhere.stderr);
    // One label is left of several, in every run and table.
    let all = loadgen(&place, "run update-one-client --list -h 127.0.0.1 -P 1 --label mine");
    let lines = all.assert_code(0).stdout.lines();
    let steps: Vec<&str> = lines.filter(|line| line.starts_with("step ")).collect();
    assert_eq!(steps.len(), 4, "{}", all.stdout);
    assert!(
        steps.iter().all(|line| line.split_whitespace().any(|word| word == "mine")),
        "{steps:?}"
    );
    loadgen(&place, "run io-bound-point-select --list -h 127.0.0.1").assert_code(0);
    loadgen(&place, "run smoke --list --label x").assert_code(2);
    // The server may have moved since; what changes the measurement is refused.
    std::os::unix::fs::symlink(&server.socket, place.path("moved.sock")).expect("a link");
    let recheck = |words: &str| loadgen(&place, &format!("recheck --profile smoke --list {words}"));
    let moved = "--no-defaults -u root --socket moved.sock";
    for words in [flags.as_str(), moved] {
        assert!([0, 98].contains(&recheck(words).code), "{words}: {}", recheck(words).stderr);
    }
    recheck("").assert_code(4);
    recheck(&format!("{moved} --label x")).assert_code(4);
    recheck(&format!("{moved} --database other")).assert_code(2);
    recheck("--no-defaults -u root -h 127.0.0.1").assert_code(2);
    loadgen(&place, "run smoke --list -h 127.0.0.1 --program a=/b").assert_code(2);
}

#[test]
fn password_of_the_command_line_is_known_when_the_server_is_looked_for_again() {
    let server = common::sandbox(&common::local(), &[]);
    common::query(&server, "CREATE DATABASE IF NOT EXISTS sbtest");
    common::query(&server, "CREATE USER p@localhost IDENTIFIED BY 'secret'");
    common::query(&server, "GRANT ALL ON *.* TO p@localhost");
    let place = Place::new("");
    let flags = format!("--no-defaults -u p -psecret --socket {}", server.socket.display());
    let part = "--scale 0.1 --only workload=point-select --only repeat=1";
    loadgen(&place, &format!("run smoke {part} {flags}")).assert_code(0);
    assert_eq!(place.summaries().len(), 2);
}

#[test]
fn workloads_follow_each_other_on_the_tables_of_a_server_that_is_there() {
    let server = common::sandbox(&common::local(), &[]);
    common::query(&server, "CREATE DATABASE IF NOT EXISTS sbtest");
    let place = Place::new("");
    let flags = format!("--no-defaults -u root --socket {}", server.socket.display());
    // The second reads texts of no row in particular, the last one comes when rows are gone.
    let titles = ["update-inlist", "point-query", "hot-points", "delete", "insert"];
    let part = format!("--scale 0.0001 --only workload={}", titles.join(","));
    loadgen(&place, &format!("run callaghan-sysbench {part} {flags}")).assert_code(0);
    assert_eq!(place.summaries().len(), titles.len());
}

#[test]
fn verbs_of_summaries_read_results_when_no_path_is_given() {
    struct Case {
        words: &'static str,
        /// The exit status where there are results of two labels.
        code: i32,
    }
    let cases = [
        Case { words: "report", code: 0 },
        Case { words: "report --gate errors==0", code: 98 },
        Case { words: "compare --baseline 5.6.24 --new 10.11", code: 0 },
        Case { words: "explain --baseline 5.6.24 --new 10.11", code: 0 },
        Case { words: "recheck --profile smoke --list", code: 4 },
        Case { words: "verify --url mysql://root@127.0.0.1:1/x --no-defaults", code: 3 },
    ];
    let place = Place::new("");
    for Case { words, .. } in &cases {
        loadgen(&place, words).assert_code(2);
    }
    fs::create_dir(place.path("results")).expect("made");
    for entry in fs::read_dir("tests/golden/summaries/closed").expect("summaries") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), place.path("results").join(entry.file_name())).expect("copied");
    }
    for Case { words, code } in &cases {
        loadgen(&place, words).assert_code(*code);
    }
}

#[test]
fn steps_whose_summaries_were_not_saved_do_not_count_as_saved() {
    let runs = "[[run]]\nworkload = 'point-select'\nclients = 1\nops = 20\n\
                [[run]]\nworkload = 'update-index'\nclients = [1, 2]\nops = 20\n\
                [[command]]\nat = 0\nworkload = 'update-index'\nclients = 1\n\
                run = ['mv', 'results', 'away']\n";
    let ended = Place::new(&two_labels("", runs)).run("--only label=plain");
    ended.assert_code(1);
    assert!(ended.stderr.contains("1 of 3 "), "{}", ended.stderr);
}

#[test]
fn stop_that_fails_after_half_a_start_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let place = Place::new(&format!(
        "name = 'x'\n[[server]]\nlabel = 'a'\nurl = 'mysql://root@localhost/x?socket={}'\n\
         start = ['false']\nstop = ['sh', '-c', 'exit 7']\n\
         [[run]]\nworkload = 'point-select'\nops = 50\n",
        dir.path().join("s").display()
    ));
    let ended = place.run("");
    ended.assert_code(3);
    let told = ended.stderr.lines().filter(|line| line.starts_with("warning: stop "));
    assert_eq!(told.count(), 1, "{}", ended.stderr);
}
