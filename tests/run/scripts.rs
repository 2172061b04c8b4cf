//! Runs of scripts in profiles, and the queries that they give to `loadgen verify`.

use std::fs;

use loadgen::sandbox::Sandbox;
use loadgen::summary::{Outcome, Summary};

use super::{Place, loadgen, of_server, two_labels};
use crate::common;

const STOCK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lua/stock.lua");
const LOADING: &str = "loading stock.lua";

/// Puts the script beside the profile.
fn with_script(place: Place) -> Place {
    fs::copy(STOCK, place.path("stock.lua")).expect("copied");
    place
}

/// Counts the summaries, of which there may be none.
fn count_saved(place: &Place) -> usize {
    let files = fs::read_dir(place.path("results")).into_iter().flatten();
    let names = files.map(|file| file.expect("a file").path());
    names.filter(|path| path.extension().is_some_and(|end| end == "json")).count()
}

fn change(place: &Place, from: &str, to: &str) {
    let text = fs::read_to_string(place.path("p.toml")).expect("the profile");
    assert!(text.contains(from), "{text}");
    fs::write(place.path("p.toml"), text.replace(from, to)).expect("written");
}

#[test]
fn script_is_prepared_measured_and_skipped_when_its_cells_are_there() {
    let run = "[[run]]\nname = 'stock'\nlua = 'stock.lua'\nscaled_options = { items = 1000 }\n\
               prepare = true\nclients = [1, 2]\nops = 20\n\
               [[run.group]]\nname = 'beside'\nsql = 'beside.sql'\nthink = '1ms'\n\
               [[run.group]]\nlua = 'stock.lua'\nscaled_options = { items = 500 }\nrate = 20\n\
               options = { note = 'a' }\n";
    let place = with_script(Place::new(&two_labels("data = 'copied'", run)));
    let group = |sql: &str| fs::write(place.path("beside.sql"), sql).expect("written");
    group("DO 1");
    let path = place.path("stock.lua").display().to_string();
    let list = place.run("--scale 0.01 --list");
    list.assert_code(0);
    assert!(list.stdout.contains("scripts make"), "{}", list.stdout);
    let is_beside = |line: &str| line.starts_with("beside ") && line.contains(&path);
    assert!(list.stdout.lines().any(is_beside), "{}", list.stdout);
    assert!(list.stdout.contains(&path) && list.stdout.matches("\nstep ").count() == 4);
    assert!(!list.stderr.contains(LOADING) && !place.path("results").exists(), "{}", list.stderr);

    let whole = place.run("--scale 0.01 --only workload=stock");
    whole.assert_code(0);
    let loaded = whole.stderr.find(LOADING).expect("it was loaded");
    assert!(whole.stderr[..loaded].contains(&path), "{}", whole.stderr);
    // Standard output is for tables.
    assert!(whole.stderr.contains("preparing") && !whole.stdout.contains("preparing"));
    let summaries = place.summaries();
    assert_eq!(summaries.len(), 4, "{}", whole.stderr);
    for step in &summaries {
        assert_eq!((step.outcome, step.totals.ops), (Outcome::Completed, 20));
        assert_eq!(step.workload.name, "stock");
        let script = step.workload.script.as_ref().expect("a script");
        assert_eq!(script.options.get("items"), Some(&10.0));
        // The group has fewer items, so that one query of it is another one.
        assert_eq!(step.verify.len(), 3);
        let groups: Vec<&str> = step.groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(groups, ["beside", "stock"]);
        let beside = step.groups[1].workload.script.as_ref().expect("a script");
        assert_eq!(beside.options.get("items"), Some(&5.0));
        let experiment = step.experiment.as_ref().expect("its part in the profile");
        let is_first = step.plan.clients == 1;
        assert_eq!(experiment.written_by, Some(Vec::new()), "each label has a copy");
        let carried = step.warnings.iter().any(|warning| warning.code == "carried_on");
        assert_eq!(carried, !is_first);
    }

    let again = place.run("--scale 0.01");
    again.assert_code(0);
    assert!(again.stderr.contains("4 of 4") && !again.stderr.contains(LOADING), "{}", again.stderr);
    assert_eq!(loadgen(&place, "recheck results --profile p.toml --list").code, 0);
    // A script whose cells are all there is not run beside one that is new.
    change(&place, "[tables]", "[[run]]\nlua = 'idle.lua'\nops = 1\n[tables]");
    fs::write(place.path("idle.lua"), "function event() end").expect("written");
    let beside = place.run("--scale 0.01");
    beside.assert_code(0);
    assert_eq!(place.summaries().len(), 6);
    assert!(!beside.stderr.contains(LOADING), "{}", beside.stderr);
    change(&place, "[[run]]\nlua = 'idle.lua'\nops = 1\n", "");
    // Other options, or another text, are other cells.
    let measured = |place: &Place| {
        place.run("--scale 0.01 --list").stdout.matches("(measured already)").count()
    };
    assert_eq!(measured(&place), 4);
    change(&place, "prepare = true", "prepare = true\noptions = { note = 'x' }");
    assert_eq!(measured(&place), 0);
    change(&place, "\noptions = { note = 'x' }", "");
    group("DO 2");
    assert_eq!(measured(&place), 0);
    group("DO 1");
    change(&place, "note = 'a'", "note = 'b'");
    assert_eq!(measured(&place), 0);
    change(&place, "note = 'b'", "note = 'a'");
    assert_eq!(measured(&place), 4);
    fs::write(place.path("stock.lua"), fs::read_to_string(STOCK).expect("read") + "\n")
        .expect("written");
    assert_eq!(measured(&place), 0);
}

#[test]
fn tables_of_groups_beside_are_filled_when_a_script_prepares_its_own() {
    let run = "[[run]]\nname = 'script'\nlua = 'stock.lua'\noptions = { items = 5 }\nprepare = true\n\
               clients = 2\nops = 20\n[[run.group]]\nworkload = 'update-index'\nthink = '1ms'\n\
               [[run]]\nname = 'reader'\nworkload = 'point-select'\nops = 300\n\
               [[run.group]]\nname = 'seller'\nlua = 'stock.lua'\noptions = { items = 5 }\nthink = '1ms'\n";
    for data in ["", "data = 'copied'"] {
        let place = with_script(Place::new(&two_labels(data, run)));
        if data.is_empty() {
            // Only the first run's start fills the items.
            place.run("--only label=plain --only workload=script").assert_code(0);
        } else {
            place.run("--only label=plain").assert_code(0);
        }
        let summaries = place.summaries();
        for step in &summaries {
            assert_eq!((step.outcome, step.plan.tables), (Outcome::Completed, 2));
            assert!(step.groups[0].totals.ops > 0, "{:?}", step.groups[0].totals);
        }
        assert_eq!(summaries.len(), if data.is_empty() { 1 } else { 2 });
    }
}

#[test]
fn writers_of_tables_stay_known_when_a_script_prepares_its_data_beside_them() {
    let run = "[[run]]\nworkload = 'update-index'\nops = 50\n\
               [[run]]\nname = 'script'\nlua = 'stock.lua'\noptions = { items = 5 }\nprepare = true\n\
               ops = 20\n[[run.group]]\nworkload = 'point-select'\nthink = '1ms'\n";
    let place = with_script(Place::new(&two_labels("data = { keep = 'kept' }", run)));
    place.run("--only label=plain").assert_code(0);
    let summaries = place.summaries();
    let step = summaries.iter().find(|step| step.workload.name == "script").expect("it ran");
    let written_by = step.experiment.as_ref().and_then(|of| of.written_by.clone());
    assert_eq!(written_by, Some(vec!["update-index".to_owned()]));
    assert!(step.warnings.iter().any(|warning| warning.code == "data_not_equal"));
}

#[test]
fn data_of_a_script_are_refused_when_its_prepare_did_not_end() {
    let run = "[[run]]\nlua = 'stock.lua'\noptions = { items = 5, note = 'a' }\n\
               prepare = ['items']\nclients = 1\nops = 20\n";
    let place = with_script(Place::new(&two_labels("data = { keep = 'kept' }", run)));
    fs::write(place.path("fail"), "").expect("written");
    place.run("--only label=plain").assert_code(1);
    fs::remove_file(place.path("fail")).expect("removed");
    place.run("--only label=plain").assert_code(4);
    assert_eq!(count_saved(&place), 0);
    change(&place, "[tables]", "[tables]\nrefill = true");
    place.run("--only label=plain").assert_code(0);
    // An option that does not decide on the data leaves them as they are.
    change(&place, "[tables]\nrefill = true", "[tables]");
    change(&place, "note = 'a'", "note = 'b'");
    place.run("--only label=plain").assert_code(0);
    let not_equal = |step: &Summary| step.warnings.iter().any(|w| w.code == "data_not_equal");
    assert_eq!(place.summaries().iter().filter(|step| not_equal(step)).count(), 1);
    change(&place, "items = 5", "items = 6");
    place.run("--only label=plain").assert_code(4);
    assert_eq!(count_saved(&place), 2);
}

#[test]
fn copied_data_are_filled_anew_when_the_next_run_has_other_options() {
    let run = |items: u32| {
        format!(
            "[[run]]\nname = 'of{items}'\nlua = 'stock.lua'\noptions = {{ items = {items} }}\n\
             prepare = true\nclients = 1\nops = 20\n"
        )
    };
    let runs = run(5) + &run(6);
    let place = with_script(Place::new(&two_labels("data = 'copied'", &runs)));
    place.run("--only label=plain").assert_code(0);
    assert_eq!(count_saved(&place), 2);
    // A directory that stays is somebody's: only `refill` may replace what it holds.
    let place = with_script(Place::new(&two_labels("data = { copy_of = 'kept' }", &runs)));
    place.run("--only label=plain").assert_code(4);
    assert_eq!(count_saved(&place), 1);
    fs::write(place.path("fail"), "").expect("written");
    change(&place, "[tables]", "[tables]\nrefill = true");
    place.run("--only label=plain").assert_code(1);
    fs::remove_file(place.path("fail")).expect("removed");
    place.run("--only label=plain").assert_code(0);
    // With `refill` the first run is another cell, too.
    assert_eq!(count_saved(&place), 3);
}

#[test]
fn script_that_is_wrong_is_refused_before_a_server_starts() {
    for (run, says) in [
        ("lua = 'nosuch.lua'", "nosuch.lua"),
        ("lua = '.'", "is no file"),
        ("lua = 'stock.lua'\nworkload = 'point-select'", "one of"),
        ("lua = 'stock.lua'\ntables = 2", "tables"),
        ("lua = 'stock.lua'\nwarm = 'pool'", "warm"),
        ("lua = 'stock.lua'\noptions = { nosuch = 1 }", "nosuch"),
        ("lua = 'stock.lua'\noptions = { threads = 1 }", "clients is a key"),
        ("lua = 'stock.lua'\nprepare = ['nosuch']", "nosuch"),
        ("lua = 'stock.lua'\noptions = { items = 1 }\nscaled_options = { items = 1 }", "one value"),
        ("lua = 'paced.lua'\nrate = 10", "thread_run"),
        ("workload = 'insert'\n[[run.group]]\nlua = 'paced.lua'\nrate = 10", "thread_run"),
        ("workload = 'insert'\n[[run.group]]\nlua = 'nosuch.lua'", "nosuch.lua"),
        (
            "workload = 'insert'\n[[run.group]]\nlua = 'stock.lua'\noptions = { nosuch = 1 }",
            "nosuch",
        ),
        (
            "workload = 'insert'\n[[run.group]]\nsql = 'a.sql'\nscaled_options = { a = 1 }",
            "scaled_options",
        ),
    ] {
        let place = with_script(Place::new(&format!(
            "name = 'x'\n[[server]]\nsandbox = {{ program = '/nonexistent' }}\n[[run]]\n{run}\n"
        )));
        let paced = "function event() end function thread_run() end";
        fs::write(place.path("paced.lua"), paced).expect("written");
        let ended = place.run("");
        ended.assert_code(2);
        assert!(ended.stderr.contains(says), "{run}: {}", ended.stderr);
    }
}

fn verify(place: &Place, server: &Sandbox) -> super::Ended {
    let socket = server.socket.display();
    loadgen(place, &format!("verify results --no-defaults -u root -S {socket}"))
}

#[test]
fn verify_asks_the_queries_of_scripts_and_profiles_when_it_reads_their_summaries() {
    let server = common::sandbox(&common::local(), &[]);
    let more = "[tables]\nrefill = true\n[[run]]\nlua = 'stock.lua'\nprepare = true\nclients = 2\n\
                ops = 30\nrepeat = 2\n[[verify]]\nname = 'sold'\nsql = 'SELECT SUM(sold) FROM item'\n\
                rows = [[30]]\n";
    let place = with_script(of_server(&server, more));
    // Before the second repeat its tables are dropped and filled again.
    place.run("").assert_code(0);
    let asked = place.summaries().iter().map(|step| step.verify.len()).collect::<Vec<_>>();
    assert_eq!(asked, [3, 3]);
    // A run of the drop-in keeps them, too; its server has them as they are.
    let socket = server.socket.display();
    let words = format!(
        "sysbench stock.lua --mysql-socket={socket} --mysql-user=root --events=5 \
         --loadgen-out=results run"
    );
    let (theirs, sold) = (loadgen(&place, &words), "SELECT SUM(sold) FROM sbtest.item");
    assert_eq!(theirs.code, 0, "{}{}", theirs.stdout, theirs.stderr);
    assert_eq!(common::query(&server, sold), [["35"]]);
    common::query(&server, "UPDATE sbtest.item SET stock = 97, sold = 3");
    assert_eq!(place.summaries().iter().filter(|step| step.verify.len() == 2).count(), 1);
    fs::remove_file(place.path("stock.lua")).expect("nobody runs it");
    let held = verify(&place, &server);
    assert_eq!(held.code, 0, "{}", held.stderr);
    assert!(held.stdout.contains("3 of 3"), "{}", held.stdout);
    // Beside tables of loadgen's own, whose history no script may have changed.
    let words = format!("prepare --rows 100 --no-defaults -u root -S {socket}");
    assert_eq!(loadgen(&place, &words).code, 0);
    let held = verify(&place, &server);
    assert_eq!(held.code, 0, "{}", held.stderr);
    common::query(&server, "DELETE FROM sbtest.sbtest1 WHERE id = 1");
    assert_eq!(verify(&place, &server).code, 98, "the script may have deleted it");
    // Queries that hold say nothing of tables with a ledger, none of which is left.
    let words = format!("prepare --force --rows 100 --no-defaults -u root -S {socket}");
    assert_eq!(loadgen(&place, &words).code, 0);
    let words = "write-only --rows 100 --ops 5 --clients 1 --out results";
    let words = format!("{words} --no-defaults -u root -S {socket}");
    assert_eq!(loadgen(&place, &words).code, 0);
    common::query(&server, "DROP TABLE sbtest.sbtest1");
    let dropped = verify(&place, &server);
    assert_eq!(dropped.code, 98, "{}", dropped.stderr);
    assert!(dropped.stdout.contains("sbtest1 ") && dropped.stdout.contains("3 of 3"));

    common::query(&server, "UPDATE sbtest.item SET stock = stock + 7 WHERE id = 1");
    let wrong = verify(&place, &server);
    assert_eq!(wrong.code, 4, "{}", wrong.stderr);
    let of_queries = |ended: &super::Ended| {
        ended.stdout.lines().filter(|line| line.contains("WRONG")).map(str::to_owned).collect()
    };
    let lines: Vec<String> = of_queries(&wrong);
    assert!(lines.len() == 1 && lines[0].starts_with("stock "), "{lines:?}");
    common::query(&server, "DROP TABLE sbtest.item");
    let gone = verify(&place, &server);
    assert_eq!(gone.code, 4, "{}", gone.stderr);
    let lines: Vec<String> = of_queries(&gone);
    assert!(lines.len() == 3 && lines.iter().all(|line| line.contains("1146")), "{lines:?}");
}

#[test]
fn verify_writes_nothing_when_a_query_would() {
    let server = common::sandbox(&common::local(), &[]);
    common::query(&server, "CREATE TABLE sbtest.mine (id INT)");
    let more = "[[run]]\nlua = 'idle.lua'\nops = 1\n[[verify]]\nname = 'a'\nsql = 'SELECT 4711'\n\
                [[verify]]\nname = 'b'\nsql = 'SELECT 4712'\n";
    let place = of_server(&server, more);
    let text = "function thread_init() con = sysbench.sql.driver():connect() end \
                function event() con:query('SELECT 1') end";
    fs::write(place.path("idle.lua"), text).expect("written");
    let writable = "SELECT 4711; SET SESSION TRANSACTION READ WRITE; DROP TABLE mine";
    let outfile = place.path("out").display().to_string();
    let written = format!("SELECT 1 INTO OUTFILE '{outfile}'");
    for refused in [writable, "DROP TABLE mine", &written] {
        change(&place, "'SELECT 4711'", &format!("\"{refused}\""));
        place.run("").assert_code(2);
        change(&place, &format!("\"{refused}\""), "'SELECT 4711'");
    }
    place.run("").assert_code(0);
    assert_eq!(verify(&place, &server).code, 4, "both have another answer");
    // What a stranger may have written into a summary.
    let insert = "INSERT INTO mine VALUES (1)";
    let update = "WITH a AS (SELECT 1 AS id) UPDATE mine, a SET mine.id = 2";
    for (first, second, code) in [
        (writable, insert, 98),
        ("SET SESSION TRANSACTION READ WRITE", "DROP TABLE mine", 98),
        (&written, &written, 98),
        ("SHUTDOWN", "SELECT 4712", 4),
        (update, update, 4),
    ] {
        let files = fs::read_dir(place.path("results")).expect("a directory");
        let paths = files.map(|file| file.expect("a file").path());
        let mut json = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
        let path = json.next().expect("a summary");
        let text = fs::read_to_string(&path).expect("read");
        let changed = text.replace("SELECT 4711", first).replace("SELECT 4712", second);
        fs::write(&path, changed).expect("written");
        let ended = verify(&place, &server);
        fs::write(&path, text).expect("written");
        assert_eq!(ended.code, code, "{first}: {}", ended.stderr);
        assert_eq!(ended.stdout.lines().count(), 2, "{}", ended.stdout);
        assert!(ended.stdout.contains(first) && ended.stdout.contains(second), "{}", ended.stdout);
        assert_eq!(common::query(&server, "SELECT COUNT(*) FROM sbtest.mine"), [["0"]]);
        assert!(!place.path("out").exists());
    }
}

#[test]
fn script_fails_before_its_first_step_when_its_queries_are_malformed() {
    let server = common::sandbox(&common::local(), &[]);
    for wrong in [
        "5",
        "{ { name = 'x' } }",
        "{ name = 'x', sql = 'SELECT 1' }",
        "{ { name = 'x', sql = 'SELECT 1', rows = { 'a' } } }",
        "{ { name = 'x', sql = 'SELECT 1', rows = { { true } } } }",
        "{ { name = 'x', sql = 'SELECT 1', rows = { { 1234567.123456789 } } } }",
        "{ { name = 'x', sql = 'SELECT 1', rows = { { 2 ^ 53 + 2 } } } }",
        "{ { name = 'x', sql = 'SELECT 1', rows = { { 1e-7 } } } }",
        "{ { name = 'x', sql = 'SELECT 1; SELECT 1' } }",
        "{ { name = 'x', sql = 'DO 1' } }",
        "function() error('no') end",
    ] {
        let place = of_server(&server, "[[run]]\nlua = 'wrong.lua'\nops = 1\n");
        let text = format!("loadgen.verify = {wrong}\nfunction event() end\n");
        fs::write(place.path("wrong.lua"), text).expect("written");
        place.run("").assert_code(1);
        assert_eq!(count_saved(&place), 0, "{wrong}");
    }
}
