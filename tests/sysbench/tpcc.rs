//! The script of TPC-C: its load, its transactions, and the conditions that hold after them. The tables are
//! smaller than the standard's.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use loadgen::sandbox::Sandbox;

use super::programs::{Place, Program};
use super::summaries::Kept;
use crate::common::databases::{SANDBOXES, say_which};
use crate::common::{local, query, sandbox, try_query};

const SCRIPT: &str = include_str!("../../profiles/tpcc.lua");

/// Items, districts, customers and orders, as they are and as they are here; then delivered orders.
const SMALLER: [(&str, &str); 2] = [
    ("= 100000, 10, 3000, 3000\n", "= 1000, 10, 1000, 1000\n"),
    ("local DELIVERED = 2100\n", "local DELIVERED = 700\n"),
];

/// Statements that break conditions of a new database, those that mend them again, and the
/// conditions that are broken meanwhile; 0 is the population.
const BREAKS: [(&str, &str, &[u32]); 14] = [
    (
        "UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 1",
        "UPDATE warehouse SET w_ytd = w_ytd - 1 WHERE w_id = 1",
        &[1, 8],
    ),
    (
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 2 AND d_id = 10",
        "UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_w_id = 2 AND d_id = 10",
        &[2],
    ),
    (
        "UPDATE new_order SET no_o_id = 1 WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 701",
        "UPDATE new_order SET no_o_id = 701 WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 1",
        &[3, 5],
    ),
    (
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 1",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 1",
        &[4, 6],
    ),
    (
        "UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 700",
        "UPDATE orders SET o_carrier_id = 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 700",
        &[5, 7],
    ),
    (
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + IF(o_id = 1, 1, -1)
         WHERE o_w_id = 1 AND o_d_id = 1 AND o_id IN (1, 2)",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt - IF(o_id = 1, 1, -1)
         WHERE o_w_id = 1 AND o_d_id = 1 AND o_id IN (1, 2)",
        &[6],
    ),
    (
        "UPDATE order_line SET ol_delivery_d = NULL
         WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1",
        "UPDATE order_line SET ol_delivery_d = NOW()
         WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1",
        &[7],
    ),
    (
        "UPDATE history SET h_w_id = 2 WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 5",
        "UPDATE history SET h_w_id = 1 WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 5",
        &[8, 9],
    ),
    (
        "UPDATE history SET h_d_id = 2 WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 5",
        "UPDATE history SET h_d_id = 1 WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 5",
        &[9],
    ),
    (
        "UPDATE history SET h_c_id = 6 WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 5",
        "UPDATE history SET h_c_id = 5 WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 6 LIMIT 1",
        &[10],
    ),
    (
        "UPDATE customer SET c_balance = c_balance + 1 WHERE c_w_id = 2 AND c_d_id = 3 AND c_id = 4",
        "UPDATE customer SET c_balance = c_balance - 1 WHERE c_w_id = 2 AND c_d_id = 3 AND c_id = 4",
        &[10, 12],
    ),
    (
        "UPDATE customer SET c_delivery_cnt = 1 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1",
        "UPDATE customer SET c_delivery_cnt = 0 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1",
        &[11],
    ),
    (
        "UPDATE customer SET c_ytd_payment = 11 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1",
        "UPDATE customer SET c_ytd_payment = 10 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1",
        &[12],
    ),
    (
        "UPDATE stock SET s_w_id = 3 WHERE s_w_id = 2 AND s_i_id = 1",
        "UPDATE stock SET s_w_id = 2 WHERE s_w_id = 3 AND s_i_id = 1",
        &[0],
    ),
];

/// Columns of each table that do not depend on the time of a load, with a sum of their contents.
const CONTENTS: [(&str, &str); 9] = [
    ("warehouse", "w_id, w_name, w_street_1, w_city, w_state, w_zip, w_tax, w_ytd"),
    ("district", "d_w_id, d_id, d_name, d_street_2, d_tax, d_ytd, d_next_o_id"),
    ("customer", "c_w_id, c_d_id, c_id, c_first, c_last, c_phone, c_credit, c_discount, c_data"),
    ("history", "h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_amount, h_data"),
    ("orders", "o_w_id, o_d_id, o_id, o_c_id, IFNULL(o_carrier_id, 0), o_ol_cnt, o_all_local"),
    ("new_order", "no_w_id, no_d_id, no_o_id"),
    ("item", "i_id, i_im_id, i_name, i_price, i_data"),
    ("stock", "s_w_id, s_i_id, s_quantity, s_dist_01, s_dist_10, s_data"),
    ("order_line", "ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_amount, ol_dist_info"),
];

fn place(sandbox: &Sandbox) -> Place<'_> {
    let place = Place::new(Program::Ours, sandbox);
    let mut script = SCRIPT.to_owned();
    for (full, less) in SMALLER {
        assert!(script.contains(full), "the script no longer says {full}");
        script = script.replace(full, less);
    }
    fs::write(place.dir().join("tpcc.lua"), script).expect("written");
    place
}

/// Asks the place's database.
fn ask(place: &Place<'_>, sql: &str) -> Vec<Vec<String>> {
    let name = &place.db.name;
    let named = sql
        .replace("UPDATE ", &format!("UPDATE {name}."))
        .replace("FROM ", &format!("FROM {name}."))
        .replace("TABLE ", &format!("TABLE {name}."));
    query(place.db.sandbox, &named)
}

fn number(place: &Place<'_>, sql: &str) -> u64 {
    ask(place, sql)[0][0].parse().expect("a number")
}

fn contents(place: &Place<'_>) -> Vec<Vec<Vec<String>>> {
    let of = |(table, columns)| {
        let sql = format!("SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', {columns}))) FROM {table}");
        ask(place, &sql)
    };
    CONTENTS.into_iter().map(of).collect()
}

/// The numbers of the conditions that are broken; 0 is the population.
fn broken(place: &Place<'_>) -> Vec<u32> {
    let ended = place.run("tpcc.lua {at} check");
    let said = |line: &&str| line.contains(": holds") || line.contains(": BROKEN by ");
    let lines: Vec<&str> = ended.stdout.lines().filter(said).collect();
    assert_eq!(lines.len(), 13, "{}{}", ended.stdout, ended.stderr);
    let number = |line: &&str| {
        let words = line.strip_prefix("condition ").unwrap_or("0:");
        words.split(':').next().and_then(|number| number.parse().ok()).expect("a number")
    };
    let found: Vec<u32> =
        lines.iter().filter(|line| line.contains(": BROKEN by ")).map(number).collect();
    assert_eq!(ended.status, i32::from(!found.is_empty()), "{}", ended.stdout);
    found
}

/// Begins a command that the test kills. Its process is the program itself, without a `timeout` around it.
pub(super) fn begin(place: &Place<'_>, line: &str) -> Child {
    let words = place.filled(line);
    Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .arg("sysbench")
        .args(words.split_whitespace())
        .current_dir(place.dir())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs")
}

/// Kills a command as soon as something is seen.
pub(super) fn kill_when(mut child: Child, seen: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_mins(10);
    while !seen() {
        let ended = child.try_wait().expect("it is ours");
        if ended.is_some() || Instant::now() > limit {
            let _ = child.kill();
            panic!("nothing was seen: {ended:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    child.wait().expect("it is ours");
}

#[test]
fn broken_conditions_are_found_on_every_server() {
    for (server, sandbox) in SANDBOXES.iter() {
        say_which(server, sandbox);
        let place = place(sandbox);
        place.well("tpcc.lua {at} --warehouses=2 --threads=2 prepare");
        assert_eq!(broken(&place), [0; 0]);
        for (breaks, mends, conditions) in BREAKS {
            ask(&place, breaks);
            assert_eq!(broken(&place), conditions, "{breaks}");
            ask(&place, mends);
        }
        assert_eq!(broken(&place), [0; 0], "all is mended");
        place.well("tpcc.lua {at} --warehouses=2 --threads=2 --events=200 --time=0 run");
        assert_eq!(broken(&place), [0; 0], "after a run");
        place.well("tpcc.lua {at} cleanup");
        assert!(query(sandbox, &format!("SHOW TABLES FROM {}", place.db.name)).is_empty());
    }
}

#[test]
fn interrupted_load_is_completed_to_the_same_rows() {
    let (_, sandbox) = &SANDBOXES[0];
    let [whole, killed] = [place(sandbox), place(sandbox)];
    whole.well("tpcc.lua {at} --warehouses=2 --threads=2 prepare");
    let expected = contents(&whole);

    let prepare = "tpcc.lua {at} --warehouses=2 --threads=1 prepare";
    let sql = format!("SELECT 1 FROM {}.customer WHERE c_w_id = 2 LIMIT 1", killed.db.name);
    kill_when(begin(&killed, prepare), || {
        try_query(sandbox, &sql).is_ok_and(|rows| !rows.is_empty())
    });
    assert_eq!(
        number(&killed, "SELECT COUNT(*) FROM warehouse WHERE w_id = 2"),
        0,
        "no whole load"
    );
    killed.well(prepare);
    assert_eq!(contents(&killed), expected);

    // The warehouse's row comes last, in one transaction with the rows of history; those of districts come first.
    let [warehouse, history] = ["FROM warehouse WHERE w_id = 2", "FROM history WHERE h_w_id = 2"];
    for lost in [
        &[warehouse, history, "FROM order_line WHERE ol_w_id = 2 AND ol_o_id > 500"][..],
        &[
            warehouse,
            history,
            "FROM stock WHERE s_w_id = 2 AND s_i_id > 10",
            "FROM customer WHERE c_w_id = 2",
        ],
        &["FROM item"],
    ] {
        for rows in lost {
            ask(&killed, &format!("DELETE {rows}"));
        }
        let marker = if *lost == ["FROM item"] { "a load was interrupted" } else { "there are 1:" };
        is_refused(&killed, "--warehouses=2 --events=1 run", marker);
        killed.well(prepare);
        assert_eq!(contents(&killed), expected, "{lost:?}");
    }
    assert_eq!(broken(&killed), [0; 0]);
}

#[test]
fn conditions_hold_after_many_clients_and_a_kill() {
    for (isolation, keys) in [("REPEATABLE-READ", "off"), ("READ-COMMITTED", "on")] {
        let sandbox = sandbox(&local(), &[("transaction-isolation", isolation)]);
        let place = place(&sandbox);
        let line = |words: &str| format!("tpcc.lua {{at}} --foreign-keys={keys} {words}");
        place.well(&line("prepare"));
        place.well(&line("--threads=8 --events=1500 --time=0 run"));
        assert_eq!(broken(&place), [0; 0], "{isolation}");
        // Ten of the 23 cards of a client's deck; each may be within one.
        let payments = number(&place, "SELECT COUNT(*) FROM history") - 10_000;
        assert!((1500 * 10 / 23 - 80..=1500 * 10 / 23 + 80).contains(&payments), "{payments}");
        let delivered = "SELECT SUM(c_delivery_cnt) FROM customer";
        assert!((200..=730).contains(&number(&place, delivered)), "{delivered}");

        let rows = || number(&place, "SELECT COUNT(*) FROM history");
        let before = rows();
        kill_when(begin(&place, &line("--threads=8 --time=0 run")), || rows() > before + 50);
        assert!(rows() > before + 50, "what was committed is there");
        assert_eq!(broken(&place), [0; 0], "{isolation}, after a kill");
    }
}

#[test]
fn pauses_are_no_operations_and_hold_up_no_end() {
    let (_, sandbox) = &SANDBOXES[0];
    let place = place(sandbox);
    place.well("tpcc.lua {at} prepare");
    let rows = |table: &str| number(&place, &format!("SELECT COUNT(*) FROM {table}"));
    let line =
        "tpcc.lua {at} --threads=4 --think-time=0.01 --keying-time=0.01 --events=92 --time=300";
    let began = Instant::now();
    let kept = Kept::of(&place, line);
    assert!(began.elapsed() < Duration::from_mins(2), "{:?}", began.elapsed());
    let all = kept.summary["transactions"].as_array().expect("some");
    let ops = |name: &str| {
        let of = all.iter().find(|of| of["name"] == name);
        of.and_then(|of| of["ops"].as_u64()).unwrap_or(0)
    };
    assert_eq!(kept.totals("ops"), 92);
    assert_eq!(rows("history"), 10_000 + ops("payment"));
    // Some new orders roll back.
    let orders = rows("orders") - 10_000;
    assert!((1..=ops("new order")).contains(&orders), "{orders} of {}", ops("new order"));
    assert_eq!(broken(&place), [0; 0]);
}

/// Demands that a run is refused with a message of this kind, and that it changes no row.
fn is_refused(place: &Place<'_>, words: &str, marker: &str) {
    let before = contents(place);
    let ended = place.run(&format!("tpcc.lua {{at}} {words}"));
    assert_eq!(ended.status, 1, "{words}: {}", ended.stdout);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains(marker), "{words}: {said}");
    assert_eq!(contents(place), before, "{words}");
}

#[test]
fn tables_of_others_and_of_other_options_are_refused_and_kept() {
    let (_, sandbox) = &SANDBOXES[0];
    let place = place(sandbox);
    ask(&place, "CREATE TABLE customer (id INT)");
    let refused = place.run("tpcc.lua {at} prepare");
    assert_eq!(refused.status, 1, "{}", refused.stdout);
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(said.contains("another program"), "{said}");
    assert_eq!(query(sandbox, &format!("SHOW TABLES FROM {}", place.db.name)), [["customer"]]);
    place.well("tpcc.lua {at} cleanup");
    assert_eq!(number(&place, "SELECT COUNT(*) FROM customer"), 0);
    ask(&place, "DROP TABLE customer");
    place.well("tpcc.lua {at} prepare");
    for (option, marker) in
        [("--warehouses=2", "there are 1:"), ("--foreign-keys=on", "other options")]
    {
        is_refused(&place, &format!("{option} --events=1 run"), marker);
    }
}
