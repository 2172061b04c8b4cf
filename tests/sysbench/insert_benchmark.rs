//! The script of the insert benchmark, and its profile: how many rows there are after each phase.

use std::fs;
use std::process::Command;

use loadgen::sandbox::Sandbox;
use serde_json::Value;

use super::programs::{Place, Program};
use super::summaries::Kept;
use super::tpcc::{begin, kill_when};
use crate::common::databases::{SANDBOXES, say_which};
use crate::common::{local, query, sandbox, try_query};

const SCRIPT: &str = include_str!("../../profiles/insert-benchmark.lua");
const PHASES: [&str; 10] =
    ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000"];
const INDEXES: [[&str; 2]; 3] = [
    ["pi1_marketsegment", "productid,customerid,price"],
    ["pi1_pdc", "price,dateandtime,customerid"],
    ["pi1_registersegment", "cashregisterid,customerid,price"],
];

fn place(sandbox: &Sandbox) -> Place<'_> {
    let place = Place::new(Program::Ours, sandbox);
    fs::write(place.dir().join("insert-benchmark.lua"), SCRIPT).expect("written");
    place
}

/// Makes the command line of a phase with two clients, and 1,050 rows in each of their tables.
fn line(words: &str) -> String {
    format!("insert-benchmark.lua {{at}} --threads=2 --time=60 --rows=1050 --phase={words}")
}

fn run(place: &Place<'_>, words: &str) {
    place.well(&(line(words) + " run"));
}

/// Returns the number of rows of a table, its lowest and its highest id.
fn ids(place: &Place<'_>, table: u32) -> [u64; 3] {
    let sql = format!(
        "SELECT COUNT(*), MIN(transactionid), MAX(transactionid) FROM {}.pi{table}",
        place.db.name
    );
    let row = query(place.db.sandbox, &sql).remove(0);
    [0, 1, 2].map(|n| row[n].parse().unwrap_or(0))
}

/// Demands that a phase is refused with a message of this kind.
fn is_refused(place: &Place<'_>, words: &str, marker: &str) {
    let ended = place.run(&(line(words) + " run"));
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(ended.status == 1 && said.contains(marker), "{words}: {said}");
}

/// Asks `loadgen verify` about the summaries in the directory `out`: its status, and its words.
fn verify(place: &Place<'_>) -> (Option<i32>, String) {
    let ended = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["verify", "out", "-u", "root", "-D", &place.db.name, "-S"])
        .arg(&place.db.sandbox.socket)
        .current_dir(place.dir())
        .output()
        .expect("it runs");
    (ended.status.code(), String::from_utf8_lossy(&ended.stdout).into_owned())
}

#[test]
fn each_phase_leaves_an_exact_number_of_rows() {
    for (server, sandbox) in SANDBOXES.iter() {
        say_which(server, sandbox);
        let place = place(sandbox);
        for _ in 0..2 {
            run(&place, "load --rows_per_commit=100");
            assert_eq!([1, 2].map(|table| ids(&place, table)), [[1050, 1, 1050]; 2]);
        }
        is_refused(&place, "write", "secondary indexes");
        for _ in 0..2 {
            run(&place, "index");
            let sql = "SELECT index_name, GROUP_CONCAT(column_name ORDER BY seq_in_index) FROM \
                       information_schema.statistics WHERE table_schema = '{db}' AND table_name = 'pi1' \
                       AND index_name <> 'PRIMARY' GROUP BY index_name ORDER BY index_name";
            assert_eq!(query(sandbox, &place.filled(sql)), INDEXES);
        }
        // The oldest rows go.
        run(&place, "write --inserts=130");
        assert_eq!([1, 2].map(|table| ids(&place, table)), [[1050, 131, 1180]; 2]);
        run(&place, "write --rows_per_commit=5 --events=40");
        let [one, two] = [1, 2].map(|table| ids(&place, table));
        assert_eq!([one[0], two[0], one[1] + two[1]], [1050, 1050, 2 * 131 + 40 * 5]);
        assert!([one, two].iter().all(|[rows, first, last]| last - first + 1 == *rows));

        for (phase, names) in [("range", 3), ("point", 1)] {
            let kept = Kept::of(&place, &line(&format!("{phase} --events=300")));
            let rows = kept.totals("rows");
            // The script reads rows before its first event, too.
            assert!((2700..=3010).contains(&rows), "{phase}: {rows} rows");
            assert_eq!(kept.summary["transactions"].as_array().map(Vec::len), Some(names));
        }
        let (status, words) = verify(&place);
        assert_eq!(status, Some(0), "{words}");
        is_refused(&place, "load --tables=1", "--tables: 1");
        is_refused(&place, "point --rows=1051", "was loaded with 1050 rows");
        query(sandbox, &place.filled("DELETE FROM {db}.pi2 LIMIT 1"));
        assert_eq!(verify(&place).0, Some(4));

        run(&place, "write --deletes=off --inserts=70");
        assert_eq!(ids(&place, 1)[0], 1120);
        let (status, words) = verify(&place);
        assert_eq!(status, Some(0), "nobody knows their rows now: {words}");
        is_refused(&place, "write", "and more");
        query(sandbox, &place.filled("CREATE TABLE {db}.pi3 (id INT)"));
        is_refused(&place, "load --tables=3", "another program");
        place.well("insert-benchmark.lua {at} cleanup");
        let left = query(sandbox, &place.filled("SHOW TABLES FROM {db}"));
        assert_eq!(left, [["pi3"]]);
    }
}

#[test]
fn killed_client_leaves_whole_transactions() {
    let (_, sandbox) = &SANDBOXES[0];
    let place = place(sandbox);
    run(&place, "load");
    let larger = line("load").replace("1050", "10000000") + " run";
    // For a moment there is no table.
    let has_more = place.filled("SELECT 1 FROM {db}.pi1 WHERE transactionid > 2000 LIMIT 1");
    kill_when(begin(&place, &larger), || {
        try_query(sandbox, &has_more).is_ok_and(|rows| !rows.is_empty())
    });
    is_refused(&place, "index", "was interrupted");
    run(&place, "load");
    run(&place, "index");
    for rows_per_commit in [50, 5] {
        let [_, before, _] = ids(&place, 1);
        let writing = line(&format!("write --rows_per_commit={rows_per_commit} run"));
        kill_when(begin(&place, &writing), || ids(&place, 1)[1] > before + 200);
        assert_eq!([1, 2].map(|table| ids(&place, table)[0]), [1050, 1050]);
    }
    run(&place, "write --events=20");
    assert_eq!([1, 2].map(|table| ids(&place, table)[0]), [1050, 1050]);
}

#[test]
fn profile_measures_all_phases_on_the_same_tables() {
    let sandbox = sandbox(&local(), &[]);
    let place = place(&sandbox);
    let measure = |words: &str| {
        let ended = Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(["run", "insert-benchmark", "--scale", "0.0001", "--out", "out", "-u", "root"])
            .args(["-D", &place.db.name, "-S"])
            .arg(&sandbox.socket)
            .args(words.split_whitespace())
            .current_dir(place.dir())
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        (ended.status.code(), said)
    };
    let (status, said) = measure("--only workload=l.i1");
    assert!(status == Some(1) && said.contains("there is no table pi"), "{said}");
    let (status, said) = measure("");
    assert_eq!(status, Some(0), "{said}");
    for table in 1..=8 {
        // 1,000 rows at this scale, and as many inserted and deleted by l.i1 and l.i2.
        let [rows, first, last] = ids(&place, table);
        assert!(rows == 1000 && first > 1000 && last - first >= 999, "{rows}, {first} to {last}");
    }
    let files = fs::read_dir(place.dir().join("out")).expect("summaries");
    let files = files.map(|file| file.expect("a file").path());
    let texts = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let mut steps: Vec<Value> = texts
        .map(|path| serde_json::from_slice(&fs::read(path).expect("a text")).expect("JSON"))
        .collect();
    steps.retain(|step| step["outcome"] == "completed");
    steps.sort_by_key(|step| step["started_at"].as_str().map(str::to_owned));
    let names: Vec<&str> =
        steps.iter().filter_map(|step| step["workload"]["name"].as_str()).collect();
    assert_eq!(names, PHASES);
    let ops = |step: &Value| step["totals"]["ops"].as_u64();
    // Of 8 tables: commits of 100, 50 and 5 rows; an ALTER TABLE each.
    let bounded: Vec<Option<u64>> = steps[..4].iter().map(ops).collect();
    assert_eq!(bounded, [Some(80), Some(8), Some(8 * 16), Some(8 * 40)]);
    for step in &steps[4..] {
        let group = &step["groups"][0];
        assert_eq!(group["name"], "writer");
        assert!(group["ops"].as_u64() > Some(0) && ops(step) > Some(0), "{group}");
    }
    let (status, words) = verify(&place);
    assert_eq!(status, Some(0), "{words}");
}
