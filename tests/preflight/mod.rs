//! Every refusal of the preflight, provoked on real servers.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::databases::run;
use crate::common::sessions::{execute, fill, on, open, own_table, root, socket, target, tcp};
use crate::common::{local, sandbox, servers};
use loadgen::canned::{Action, At, Canned, Fault, Listen, Script};
use loadgen::error::{Error, Kind};
use loadgen::mysql::preflight::{self, Needs, Ready, Writes};
use loadgen::mysql::session::Session;
use loadgen::workload::Schema;
use loadgen::workload::table::State;

const ROWS: u64 = 1500;

/// Eight clients that write and hold one statement a table.
fn needs() -> Needs<'static> {
    Needs {
        database: "sbtest",
        tables: None,
        rows: None,
        seed: 42,
        clients_max: 8,
        clients_here: 8,
        statements: &|tables| (1, tables),
        statements_beside: &|_| 0,
        clients_beside: 0,
        addresses: 1,
        schema: Schema::Sbtest,
        rows_there: true,
        writes: Writes::Update,
        begins: true,
        quiet_max: Duration::from_secs(20),
    }
}

async fn check(path: &Path, user: &str, needs: &Needs<'_>) -> Result<Ready, Error> {
    let mut session = open(&target(socket(path), user, "sbtest")).await;
    let ready = preflight::check(&mut session, needs).await;
    session.close(Duration::from_secs(1)).await;
    ready
}

/// The refusal as it is shown; it must be exit status 3.
async fn refused(what: &str, path: &Path, user: &str, needs: &Needs<'_>) -> String {
    match check(path, user, needs).await {
        Ok(ready) => panic!("{what}: not refused: {ready:?}"),
        Err(error) => {
            assert_eq!(error.kind(), Kind::Server, "{what}");
            assert!(!error.hints().is_empty(), "{what}: {error}");
            error.render()
        }
    }
}

fn has(shown: &str, parts: &[&str]) {
    for part in parts {
        assert!(shown.contains(part), "'{part}' is not in:\n{shown}");
    }
}

async fn warnings(path: &Path, needs: &Needs<'_>) -> Vec<String> {
    let ready = check(path, "root", needs).await.unwrap_or_else(|e| panic!("{}", e.render()));
    ready.warnings.into_iter().map(|w| w.name().to_owned()).collect()
}

/// An account that is no administrator, with these rights on the tables.
async fn account(admin: &mut Session, name: &str, rights: &str) {
    let create = format!("CREATE USER {name}@localhost");
    let grant = format!("GRANT {rights} ON sbtest.* TO {name}@localhost");
    execute(admin, &[&create, &grant]).await;
}

/// Does something to a server, runs the check, and undoes it.
macro_rules! with {
    ($admin:expr, $set:expr, $then:expr, $unset:expr) => {{
        execute(&mut $admin, $set).await;
        let found = $then;
        execute(&mut $admin, $unset).await;
        found
    }};
}

/// The sessions of former checks take the server a moment to end.
async fn only_us(admin: &mut Session) {
    let began = Instant::now();
    loop {
        let rows = admin.query("SHOW GLOBAL STATUS LIKE 'Threads_connected'").await.unwrap();
        if rows == [[Some("Threads_connected".to_owned()), Some("1".to_owned())]] {
            return;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "former sessions stay connected");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn limits(admin: &mut Session, path: &Path) {
    let ready = check(path, "root", &needs()).await.unwrap_or_else(|e| panic!("{}", e.render()));
    let dataset = &ready.dataset;
    assert_eq!((dataset.tables.count, dataset.tables.rows, dataset.data_seed), (2, ROWS, Some(1)));
    assert!(dataset.tables.own && dataset.data_bytes >= 2 * 16384, "{dataset:?}");
    assert_eq!(ready.warnings, [], "a fresh server is fine");
    assert!(dataset.tables.atomic);
    let level = |level| [format!("SET GLOBAL TRANSACTION ISOLATION LEVEL {level}")];
    let [dirty, usual] = ["READ UNCOMMITTED", "REPEATABLE READ"].map(level);
    let found = with!(
        *admin,
        &[dirty[0].as_str()],
        check(path, "root", &needs()).await,
        &[usual[0].as_str()]
    );
    assert!(found.is_ok_and(|ready| !ready.dataset.tables.atomic));

    only_us(admin).await;
    let connections = Needs { clients_max: 400, ..needs() };
    let shown = refused("max_connections", path, "root", &connections).await;
    has(&shown, &["400 clients + 2 connected now + 4 spare = 406", "--clients up to "]);

    let set = ["SET GLOBAL max_prepared_stmt_count = 15"];
    let unset = ["SET GLOBAL max_prepared_stmt_count = 16382"];
    let found = with!(*admin, &set, refused("statements", path, "root", &needs()).await, &unset);
    has(
        &found,
        &["max_prepared_stmt_count is 15", "1 statement × 2 tables × 8 clients + 0 prepared"],
    );
    let text = Needs { statements: &|_| (0, 1), ..needs() };
    let found = with!(*admin, &set, check(path, "root", &text).await, &unset);
    assert!(found.is_ok(), "text prepares nothing: {found:?}");

    let set = ["SET GLOBAL autocommit = 0"];
    let unset = ["SET GLOBAL autocommit = 1"];
    let found = with!(*admin, &set, refused("autocommit", path, "root", &needs()).await, &unset);
    has(&found, &["autocommit is off"]);

    let set = ["SET GLOBAL completion_type = CHAIN"];
    let unset = ["SET GLOBAL completion_type = NO_CHAIN"];
    let found = with!(*admin, &set, refused("completion", path, "root", &needs()).await, &unset);
    has(&found, &["completion_type is CHAIN"]);

    let set = ["SET GLOBAL wait_timeout = 25", "SET GLOBAL table_open_cache = 16"];
    let unset = ["SET GLOBAL wait_timeout = 28800", "SET GLOBAL table_open_cache = 400"];
    let many = Needs { clients_max: 64, ..needs() };
    let found = with!(*admin, &set, warnings(path, &many).await, &unset);
    assert_eq!(found, ["short_wait_timeout", "small_table_cache"]);
}

async fn rights(admin: &mut Session, path: &Path) {
    account(admin, "plain", "SELECT, UPDATE").await;
    account(admin, "reader", "SELECT").await;
    account(admin, "blind", "INSERT").await;
    account(admin, "inserter", "SELECT, INSERT").await;
    let reads = Needs { writes: Writes::None, ..needs() };
    assert!(check(path, "plain", &needs()).await.is_ok());
    assert!(check(path, "reader", &reads).await.is_ok(), "a reading plan needs no UPDATE");
    let shown = refused("no UPDATE", path, "reader", &needs()).await;
    has(&shown, &["sbtest1 cannot be written: error 1142", "UPDATE, DELETE ON `sbtest`.*"]);
    let inserts = Needs { writes: Writes::InsertOrDelete, ..needs() };
    assert!(check(path, "inserter", &inserts).await.is_ok(), "it needs no UPDATE");
    let shown = refused("no SELECT", path, "blind", &reads).await;
    has(&shown, &["sbtest1", "UPDATE, DELETE ON `sbtest`.*"]);

    let (set, unset) = (["SET GLOBAL read_only = 1"], ["SET GLOBAL read_only = 0"]);
    let found = with!(*admin, &set, refused("read_only", path, "plain", &needs()).await, &unset);
    has(&found, &["sbtest1 cannot be written: error 1290", "read-only"]);
    let found = with!(*admin, &set, check(path, "plain", &reads).await, &unset);
    assert!(found.is_ok(), "reads do not mind: {found:?}");

    for (set, unset) in [
        ("SET GLOBAL super_read_only = 1", "SET GLOBAL read_only = 0"),
        ("SET GLOBAL tx_read_only = 1", "SET GLOBAL tx_read_only = 0"),
        ("SET GLOBAL transaction_read_only = 1", "SET GLOBAL transaction_read_only = 0"),
    ] {
        // Not every version has each; those that it has bind the administrator too.
        if admin.execute(set).await.is_ok() {
            let shown = refused(set, path, "root", &needs()).await;
            has(&shown, &["sbtest1 cannot be written", "read-only"]);
            execute(admin, &[unset]).await;
        }
    }

    // init_connect holds for accounts without SUPER only.
    let (set, unset) =
        (["SET GLOBAL init_connect = 'SET autocommit=0'"], ["SET GLOBAL init_connect = ''"]);
    let found = with!(*admin, &set, refused("init_connect", path, "plain", &needs()).await, &unset);
    has(&found, &["autocommit is off", "init_connect"]);

    let limit = "WITH MAX_USER_CONNECTIONS 10";
    let alter = format!("ALTER USER plain@localhost {limit}");
    if admin.execute(&alter).await.is_err() {
        execute(admin, &[&format!("GRANT USAGE ON *.* TO plain@localhost {limit}")]).await;
    }
    let shown = refused("max_user_connections", path, "plain", &needs()).await;
    has(&shown, &["this account's max_user_connections is 10", "8 clients + 1"]);
}

async fn data(admin: &mut Session, path: &Path) {
    let shown = refused("rows", path, "root", &Needs { rows: Some(ROWS + 1), ..needs() }).await;
    has(&shown, &["--rows 1501, but sbtest1 has 1500"]);
    let part = Needs { rows: Some(100), tables: Some(1), ..needs() };
    let ready = check(path, "root", &part).await.expect("a part of the data");
    assert_eq!((ready.dataset.tables.count, ready.dataset.tables.rows), (1, 100));

    let shown = refused("tables", path, "root", &Needs { tables: Some(4), ..needs() }).await;
    has(&shown, &["`sbtest` lacks sbtest3, sbtest4", "loadgen prepare --tables 4"]);

    own_table(admin, 3, ROWS, State::Filling).await;
    let shown = refused("filling", path, "root", &needs()).await;
    has(&shown, &["the fill of sbtest3 was not finished", "loadgen prepare"]);
    assert!(check(path, "root", &Needs { tables: Some(2), ..needs() }).await.is_ok());
    execute(admin, &["RENAME TABLE sbtest3 TO sbtest5"]).await;
    let shown = refused("gap", path, "root", &needs()).await;
    has(&shown, &["lacks sbtest3, sbtest4", "--tables 2 uses those before"]);
    execute(admin, &["DROP TABLE sbtest5", "CREATE VIEW sbtest3 AS SELECT * FROM sbtest1"]).await;
    let shown = refused("view", path, "root", &needs()).await;
    has(&shown, &["sbtest3 is no table but a view", "--tables 2 uses those before"]);
    execute(admin, &["DROP VIEW sbtest3"]).await;

    foreign(admin, path).await;

    // 100 of 1,500 rows: a thousand random ids miss all of them once in 10^37 runs.
    execute(admin, &["DELETE FROM sbtest2 WHERE id BETWEEN 701 AND 800"]).await;
    let shown = refused("holes", path, "root", &needs()).await;
    has(&shown, &["sbtest2 has holes: ", "random ids from 1 to 1500", "prepare --force"]);
    assert!(check(path, "root", &Needs { rows: Some(700), ..needs() }).await.is_ok());
    assert!(check(path, "root", &Needs { rows_there: false, ..needs() }).await.is_ok());
    fill(admin, 2, 701..=800).await;
}

/// Tables that loadgen did not make.
async fn foreign(admin: &mut Session, path: &Path) {
    let create = "CREATE TABLE sbtest3 (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER NOT NULL, \
                  c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, PRIMARY KEY (id)) ENGINE=MyISAM";
    execute(admin, &[create]).await;
    let shown = refused("empty", path, "root", &needs()).await;
    has(&shown, &["sbtest3: no rows"]);
    fill(admin, 3, 1..=900).await;
    let shown = refused("fewer", path, "root", &needs()).await;
    has(&shown, &["sbtest3 has 900, sbtest1 has 1500", "--rows 900 uses what every table has"]);
    let part = Needs { rows: Some(900), ..needs() };
    let ready = check(path, "root", &part).await.expect("a foreign table is usable");
    assert_eq!((ready.dataset.tables.own, ready.dataset.data_seed), (false, None));
    let codes: Vec<_> = ready.warnings.iter().map(loadgen::terms::Finding::name).collect();
    assert_eq!(codes, ["mixed_engines", "k_not_indexed"]);
    // All ids are looked up where there are no more than a thousand.
    execute(admin, &["DELETE FROM sbtest3 WHERE id = 77"]).await;
    let shown = refused("a hole", path, "root", &part).await;
    has(&shown, &["sbtest3 has holes: 1 of 900 ids from 1 to 900", "make the tables anew"]);
    execute(admin, &["ALTER TABLE sbtest3 DROP pad"]).await;
    let shown = refused("no pad", path, "root", &part).await;
    has(&shown, &["sbtest3 has no column pad"]);
    execute(admin, &["DROP TABLE sbtest3"]).await;
}

/// Whatever is wrong is named in one go.
async fn all_at_once(admin: &mut Session, path: &Path) {
    let set = [
        "SET GLOBAL max_prepared_stmt_count = 5",
        "SET GLOBAL autocommit = 0",
        "RENAME TABLE sbtest1 TO sbtest_1",
    ];
    let unset = [
        "SET GLOBAL max_prepared_stmt_count = 16382",
        "SET GLOBAL autocommit = 1",
        "RENAME TABLE sbtest_1 TO sbtest1",
    ];
    let many =
        Needs { clients_max: 1_000_000, clients_here: 1_000_000, tables: Some(2), ..needs() };
    let found = with!(*admin, &set, refused("all", path, "root", &many).await, &unset);
    has(
        &found,
        &[
            "error: 5 problems prevent the run:\n  1. autocommit is off",
            "\n  2. --tables 2, but `sbtest` lacks sbtest1",
            "\n  3. max_connections is ",
            "\n  4. max_prepared_stmt_count is 5, but 1 statement × 2 tables × 1000000 clients",
            "\n  5. this process's limit of open files is ",
        ],
    );
    assert_eq!(found.matches("hint: ").count(), 5, "{found}");
}

#[test]
fn every_refusal_is_provoked_and_named() {
    for server in servers() {
        let sandbox = sandbox(&server, &[]);
        on(&server.name, &sandbox.version);
        let path = &sandbox.socket;
        run(async {
            let mut admin = root(path, "sbtest").await;
            for number in 1..=2 {
                own_table(&mut admin, number, ROWS, State::Ready).await;
            }
            limits(&mut admin, path).await;
            rights(&mut admin, path).await;
            data(&mut admin, path).await;
            all_at_once(&mut admin, path).await;
            let ready = check(path, "root", &needs()).await;
            assert!(ready.is_ok(), "all is undone: {ready:?}");
        });
    }
}

#[test]
fn a_locked_table_ends_the_preflight() {
    let sandbox = sandbox(&local(), &[]);
    let path = &sandbox.socket;
    run(async {
        let mut admin = root(path, "sbtest").await;
        own_table(&mut admin, 1, 100, State::Ready).await;
        execute(&mut admin, &["LOCK TABLES sbtest1 WRITE"]).await;
        let shown = refused("locked", path, "root", &needs()).await;
        has(&shown, &["sbtest1 cannot be read: error 1205", "SHOW PROCESSLIST"]);
    });
}

#[test]
fn a_server_that_hangs_up_is_one_clear_error() {
    let script =
        Script { faults: vec![Fault::new(At::Statement(4), Action::Close)], ..Script::default() };
    let server = Canned::start(script, Listen::Port(0)).unwrap();
    run(async {
        let mut session = open(&target(tcp(server.port()), "root", "sbtest")).await;
        let error = preflight::check(&mut session, &needs()).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Server);
        has(&error.to_string(), &["cannot ask the server what it can do: connection lost"]);
    });
}
