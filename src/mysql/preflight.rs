//! Asks before the first step whether this server can run the plan: everything that is wrong is named
//! at once.

use std::time::Duration;

use super::control::{self, Asked, Variables, explain, one, optional, pairs};
use super::dataset::{self, Dataset, Discovered, Wanted, read_hint};
use super::errors::Findings;
use super::server::{Family, Product};
use super::session::Session;
use crate::error::Result;
use crate::observe::process::Limit;
use crate::observe::{host, process};
use crate::terms::{self, Finding, finding};
use crate::workload::Schema;

/// What the plan needs of the server.
pub struct Needs<'a> {
    /// The database.
    pub database: &'a str,
    /// The tables' kind.
    pub schema: Schema,
    /// `--tables`; None for those that are there.
    pub tables: Option<u32>,
    /// `--rows`; None for as many as there are.
    pub rows: Option<u64>,
    /// Decides which ids are probed.
    pub seed: u64,
    /// Clients of the largest step.
    pub clients_max: u32,
    /// Prepared statements that one client holds for a table, and for how many of so many tables:
    /// it depends on the spread, which depends on the tables. 0 for text.
    pub statements: &'a (dyn Fn(u32) -> (u32, u32) + Sync),
    /// Whether rows are changed.
    pub writes: bool,
    /// The longest that an open connection may have to say nothing, such as while the others
    /// are opened.
    pub quiet_max: Duration,
}

/// A server that can run the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Ready {
    /// What it is.
    pub product: Product,
    /// The tables and rows used.
    pub dataset: Dataset,
    /// What a reader of the numbers must know.
    pub warnings: Vec<Finding>,
}

/// Checks everything that can be checked before the first step.
///
/// `session` is a new one, of the account and the kind that the clients use, in which nothing
/// was set: what it finds in itself (autocommit, timeouts) they will find too. Its own
/// `lock_wait_timeout` is set to ten seconds and its `wait_timeout` to a week, so that it can
/// be kept as the control session. The soft limit of descriptors is raised to the hard one.
///
/// Nothing here is bounded in time but waits for locks: a caller that must not hang drops the
/// future and the session with it.
pub async fn check(session: &mut Session, needs: &Needs<'_>) -> Result<Ready> {
    let mut findings = Findings::default();
    let (product, dataset) = examine(session, needs, &mut findings)
        .await
        .map_err(|failure| explain(&failure, "ask the server what it can do"))?;
    let warnings = findings.conclude()?;
    let dataset = dataset.expect("without a dataset there is a problem");
    Ok(Ready { product, dataset, warnings })
}

async fn examine(
    session: &mut Session,
    needs: &Needs<'_>,
    findings: &mut Findings,
) -> Asked<(Product, Option<Dataset>)> {
    let product = Product::ask(session).await?;
    check_product(&product, findings);
    check_autocommit(session, findings).await?;
    let seen = look(session).await?;
    // Another session's lock must not hold up the preflight for a day (MySQL: a year).
    optional(session.execute("SET SESSION lock_wait_timeout = 10").await)?;
    optional(session.execute("SET SESSION wait_timeout = 604800").await)?;

    let found = match dataset::list(session, needs.database, needs.schema).await {
        Ok(found) => found,
        Err(failure) => {
            findings.refused(failure, "information_schema cannot be read", |_| {
                "loadgen finds its tables there; does the account have rights on them?".to_owned()
            })?;
            return Ok((product, None));
        }
    };
    let wanted = Wanted { tables: needs.tables, rows: needs.rows, seed: needs.seed };
    let dataset = dataset::examine(session, &found, &wanted, findings).await?;
    if let (true, Some(dataset)) = (needs.writes, &dataset) {
        check_writable(session, &found, dataset.tables, findings).await?;
    }

    // Also for tables that are not there yet, so that all is named at once.
    let tables = needs.tables.unwrap_or_else(|| found.contiguous()).max(1);
    let (statements, tables_a_client) = (needs.statements)(tables);
    let load = Load {
        clients: needs.clients_max.into(),
        statements: statements.into(),
        tables_a_client: tables_a_client.into(),
        tables: tables.into(),
        quiet_max: needs.quiet_max,
    };
    judge(&seen, &load, findings);
    match process::raise_descriptor_limit() {
        Ok(limit) => {
            let own = Own {
                descriptors_max: limit,
                descriptors_open: process::descriptors_open(),
                address_space_max: process::address_space_max(),
                group_max: process::memory_max(&host::recorded().unwrap_or(host::ROOT.into())),
            };
            judge_own(&own, &load, findings);
        }
        Err(error) => findings.warn(finding!(Unchecked, error.to_string())),
    }
    Ok((product, dataset))
}

fn check_product(product: &Product, findings: &mut Findings) {
    let oldest = "loadgen is tested from MySQL 5.5 and MariaDB 10.1 on";
    match (product.family, product.number) {
        (Family::Other(name), _) => {
            findings.warn(finding!(UnknownServer, name.to_string(), product.version.as_str()));
        }
        (_, (0, 0, 0)) => findings.warn(finding!(UnknownVersion, product.version.as_str())),
        (_, number) if number < (5, 1, 0) => {
            findings.problem(format!("{product} is too old"), format!("{oldest}; 5.1 may work"));
        }
        (_, number) if number < (5, 5, 0) => {
            findings.warn(finding!(OldServer, product.to_string()));
        }
        _ => {}
    }
    if product.version.contains("-debug") {
        findings.warn(finding!(ServerDebugBuild, product.to_string()));
    }
}

async fn check_autocommit(session: &mut Session, findings: &mut Findings) -> Asked<()> {
    let value = one(session, "SELECT @@session.autocommit").await;
    match optional(value)?.flatten().as_deref() {
        Some("1") => {}
        Some(_) => findings.problem(
            "autocommit is off in a new session, so that nothing would be committed",
            "SET GLOBAL autocommit = 1, and look at init_connect",
        ),
        None => findings.problem(
            "the server does not say whether autocommit is on (@@session.autocommit)",
            "is a proxy in between?",
        ),
    }
    Ok(())
}

/// The numbers that limit connections and statements; what cannot be read stays unknown.
async fn look(session: &mut Session) -> Asked<Seen> {
    let global = optional(control::variables(session).await)?.unwrap_or_default();
    let own = pairs(
        session,
        "SHOW SESSION VARIABLES WHERE Variable_name IN ('max_user_connections', 'wait_timeout')",
    )
    .await;
    let own = optional(own)?.unwrap_or_default();
    let status = pairs(
        session,
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Prepared_stmt_count')",
    )
    .await;
    let status = optional(status)?.unwrap_or_default();
    let number =
        |map: &Variables, name: &str| map.get(name).and_then(|text| text.parse::<u64>().ok());
    Ok(Seen {
        max_connections: number(&global, "max_connections"),
        connected: number(&status, "Threads_connected"),
        max_user_connections: number(&own, "max_user_connections"),
        max_prepared: number(&global, "max_prepared_stmt_count"),
        prepared: number(&status, "Prepared_stmt_count"),
        wait_timeout_s: number(&own, "wait_timeout"),
        table_open_cache: number(&global, "table_open_cache"),
        open_files_limit: number(&global, "open_files_limit"),
    })
}

/// Tries an update that changes nothing: no variable tells as surely whether this account may
/// write on this server (`read_only` and who is exempt, `super_read_only`,
/// `innodb_read_only`, `transaction_read_only`, privileges).
async fn check_writable(
    session: &mut Session,
    found: &Discovered,
    tables: u32,
    findings: &mut Findings,
) -> Asked<()> {
    for number in 1..=tables {
        // Ids start at 1.
        let (table, column) = (found.sql_name(number), found.schema.writable());
        let sql = format!("UPDATE {table} SET {column} = {column} WHERE id = 0");
        let Err(failure) = session.execute(&sql).await else { continue };
        findings.refused(
            failure,
            &format!("{} cannot be written", found.schema.name(number)),
            |code| write_hint(code, &found.database),
        )?;
        // What holds for one table mostly holds for all.
        break;
    }
    Ok(())
}

fn write_hint(code: u16, database: &str) -> String {
    match code {
        // ER_OPTION_PREVENTS_STATEMENT, ER_READ_ONLY_MODE and what old versions say.
        1290 | 1836 | 1036 | 1015 | 1874 => {
            "the server is read-only: SET GLOBAL read_only = 0 (super_read_only), start it without \
             innodb_read_only or innodb_force_recovery, or take another server"
                .to_owned()
        }
        1792 => "transactions are read-only by default: SET GLOBAL tx_read_only = 0, or \
                 transaction_read_only"
            .to_owned(),
        _ => read_hint(code, database),
    }
}

/// Connections beyond the clients: reconnects while the server still works for the lost
/// session, and somebody who looks.
const SPARE_CONNECTIONS: u64 = 4;
/// Descriptors beyond the connections: results, timers, the resolver.
const SPARE_DESCRIPTORS: u64 = 32;
/// Memory of a client: its connection, task and statements, with room to spare.
const CLIENT_BYTES: u64 = 64 << 10;
/// Address space of the program, of engine threads with stacks and histograms, and of a summary as
/// it is written.
const OWN_BYTES: u64 = 256 << 20;
/// What of that is resident, where the cores are few: twice what was seen.
const OWN_RESIDENT: u64 = 64 << 20;
/// Seconds by which `wait_timeout` must exceed the longest silence.
const SPARE_SECONDS: u64 = 10;

/// What the server says of its limits and of what is used of them; None where it does not say.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    max_connections: Option<u64>,
    connected: Option<u64>,
    max_user_connections: Option<u64>,
    max_prepared: Option<u64>,
    prepared: Option<u64>,
    wait_timeout_s: Option<u64>,
    table_open_cache: Option<u64>,
    open_files_limit: Option<u64>,
}

/// What the largest step puts on it.
#[derive(Debug, Clone, Copy)]
struct Load {
    clients: u64,
    /// Prepared statements of a client for a table.
    statements: u64,
    /// Tables that a client works on.
    tables_a_client: u64,
    tables: u64,
    quiet_max: Duration,
}

/// The limits of this process.
#[derive(Debug, Clone)]
struct Own {
    descriptors_max: u64,
    descriptors_open: u64,
    /// None without a limit.
    address_space_max: Option<u64>,
    /// Of its control groups; likewise.
    group_max: Option<Limit>,
}

/// Compares the server's limits with the load.
fn judge(seen: &Seen, load: &Load, findings: &mut Findings) {
    connections(seen, load, findings);
    statements(seen, load, findings);
    let clients = load.clients;
    if let Some(timeout) = seen.wait_timeout_s {
        let quiet = load.quiet_max.as_secs();
        if timeout < quiet.saturating_add(SPARE_SECONDS) {
            findings.warn(finding!(ShortWaitTimeout, timeout, quiet));
        }
    }
    // A statement holds one table open; the cache must at least hold those in flight.
    let tables_open = clients + load.tables;
    if let Some(cache) = seen.table_open_cache.filter(|cache| *cache < tables_open) {
        findings.warn(finding!(SmallTableCache, cache, terms::clients(clients), load.tables));
    }
    // 0 is said by servers that do not know.
    let files = seen.open_files_limit.filter(|limit| *limit != 0 && *limit < tables_open);
    if let Some(limit) = files {
        findings.warn(finding!(FewServerFiles, limit, clients));
    }
}

fn connections(seen: &Seen, load: &Load, findings: &mut Findings) {
    let clients = load.clients;
    match (seen.max_connections, seen.connected) {
        (Some(max), Some(connected)) => {
            let need = clients + connected + SPARE_CONNECTIONS;
            if need > max {
                let fit = max.saturating_sub(connected + SPARE_CONNECTIONS);
                findings.problem(
                    format!(
                        "max_connections is {max}, but {} + {connected} connected now + \
                         {SPARE_CONNECTIONS} spare = {need}",
                        terms::clients(clients)
                    ),
                    format!(
                        "SET GLOBAL max_connections = {need} or more (the server may need more \
                         open files for that), or --clients up to {fit}"
                    ),
                );
            }
        }
        _ => findings.warn(finding!(UnknownLimit, "max_connections")),
    }
    // 0 is no limit; MariaDB says -1 for "nobody", which is no u64.
    if let Some(max) = seen.max_user_connections.filter(|max| *max != 0) {
        let need = clients + 1 + SPARE_CONNECTIONS;
        if need > max {
            findings.problem(
                format!(
                    "max_user_connections is {max} for this account, but {} + 1 to control + \
                     {SPARE_CONNECTIONS} spare = {need}",
                    terms::clients(clients)
                ),
                "raise it: SET GLOBAL max_user_connections, or the account's \
                 MAX_USER_CONNECTIONS; or use fewer --clients",
            );
        }
    }
}

fn statements(seen: &Seen, load: &Load, findings: &mut Findings) {
    let Load { clients, statements, tables_a_client: tables, .. } = *load;
    if statements.saturating_mul(tables) == 0 {
        return;
    }
    let Some(max) = seen.max_prepared else {
        findings.warn(finding!(UnknownLimit, "max_prepared_stmt_count"));
        return;
    };
    let now = seen.prepared.unwrap_or(0);
    let need = clients.saturating_mul(statements).saturating_mul(tables).saturating_add(now);
    if need > max {
        let pinned = match tables {
            1 => "",
            _ => ", or --spread pinned (one table a client)",
        };
        findings.problem(
            format!(
                "max_prepared_stmt_count is {max}, but {statements} statement{} × {tables} table{} \
                 × {} + {now} prepared now = {need}",
                if statements == 1 { "" } else { "s" },
                if tables == 1 { "" } else { "s" },
                terms::clients(clients),
            ),
            format!(
                "SET GLOBAL max_prepared_stmt_count = {need} or more, or --statements text{pinned}"
            ),
        );
    }
}

/// Compares this process's limits with the load.
fn judge_own(own: &Own, load: &Load, findings: &mut Findings) {
    let (open, clients, max) = (own.descriptors_open, load.clients, own.descriptors_max);
    let need = clients + open + SPARE_DESCRIPTORS;
    if need > max {
        findings.problem(
            format!(
                "this process may open {max} files, but {} + {open} open now + \
                 {SPARE_DESCRIPTORS} spare = {need}",
                terms::clients(clients)
            ),
            format!("raise the hard limit of the shell that starts loadgen: ulimit -Hn {need}"),
        );
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    // The kernel ends what takes more: nothing can be saved then, either.
    let need = clients * CLIENT_BYTES + OWN_RESIDENT;
    if let Some(limit) = own.group_max.as_ref().filter(|limit| limit.bytes < need) {
        findings.problem(
            format!(
                "this process's control group may take {} MiB of memory ({}), but {} and \
                 itself need {}",
                mib(limit.bytes),
                limit.file.display(),
                terms::clients(clients),
                mib(need)
            ),
            format!(
                "raise that limit: MemoryMax={0}M of its unit, --memory {0}m of its container",
                mib(need)
            ),
        );
    }
    // An allocation that fails ends the process: nothing can be saved then.
    let need = clients * CLIENT_BYTES + OWN_BYTES;
    if let Some(max) = own.address_space_max.filter(|max| *max < need) {
        findings.problem(
            format!(
                "this process may take {} MiB of memory, but {} and itself need {}",
                mib(max),
                terms::clients(clients),
                mib(need)
            ),
            format!("raise the limit of the shell that starts loadgen: ulimit -v {}", need >> 10),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concluded(version: &str, comment: &str) -> std::result::Result<Vec<String>, String> {
        let mut findings = Findings::default();
        check_product(&Product::of(version, comment), &mut findings);
        findings
            .conclude()
            .map(|warnings| warnings.into_iter().map(|w| w.code.name().to_owned()).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn versions_are_refused_warned_about_or_fine() {
        assert_eq!(concluded("8.4.0", "MySQL Community Server - GPL"), Ok(vec![]));
        assert_eq!(concluded("10.1.23-MariaDB", ""), Ok(vec![]));
        assert_eq!(concluded("5.1.73", ""), Ok(vec!["old_server".to_owned()]));
        assert_eq!(concluded("8.0.11-TiDB-v7.5.1", ""), Ok(vec!["unknown_server".to_owned()]));
        assert_eq!(concluded("who knows", ""), Ok(vec!["unknown_server".to_owned()]));
        assert_eq!(concluded("9.7.0-debug", ""), Ok(vec!["server_debug_build".to_owned()]));
        assert!(concluded("5.0.96", "").is_err_and(|e| e.contains("too old")));
    }
}

#[cfg(test)]
mod limits_tests {
    use super::*;

    const ENOUGH: Seen = Seen {
        max_connections: Some(261),
        connected: Some(1),
        max_user_connections: Some(0),
        max_prepared: Some(2051),
        prepared: Some(3),
        wait_timeout_s: Some(28800),
        table_open_cache: Some(2000),
        open_files_limit: Some(0),
    };
    const LOAD: Load = Load {
        clients: 256,
        statements: 4,
        tables_a_client: 2,
        tables: 8,
        quiet_max: Duration::from_mins(1),
    };

    /// Codes of the warnings, or the message and hints.
    fn judged(seen: Seen) -> std::result::Result<Vec<String>, String> {
        let mut findings = Findings::default();
        judge(&seen, &LOAD, &mut findings);
        findings
            .conclude()
            .map(|warnings| warnings.into_iter().map(|w| w.code.name().to_owned()).collect())
            .map_err(|error| error.render())
    }

    #[test]
    fn what_just_suffices_is_fine() {
        assert_eq!(judged(ENOUGH), Ok(vec![]));
    }

    #[test]
    fn one_less_is_refused_with_the_arithmetic() {
        let shown = judged(Seen { max_connections: Some(260), ..ENOUGH }).expect_err("refused");
        assert!(
            shown.contains("is 260, but 256 clients + 1 connected now + 4 spare = 261"),
            "{shown}"
        );
        assert!(shown.contains("max_connections = 261") && shown.contains("up to 255"), "{shown}");
        let shown = judged(Seen { max_prepared: Some(2050), ..ENOUGH }).expect_err("refused");
        let sum = "4 statements × 2 tables × 256 clients + 3 prepared now = 2051";
        assert!(shown.contains(sum) && shown.contains("--spread pinned"), "{shown}");
        let shown =
            judged(Seen { max_user_connections: Some(260), ..ENOUGH }).expect_err("refused");
        assert!(shown.contains("max_user_connections is 260"), "{shown}");
    }

    #[test]
    fn all_that_is_wrong_is_named_at_once() {
        let little = Seen {
            max_connections: Some(100),
            max_user_connections: Some(10),
            max_prepared: Some(0),
            ..ENOUGH
        };
        let shown = judged(little).expect_err("refused");
        assert!(shown.starts_with("error: 3 things"), "{shown}");
        assert_eq!(shown.matches("hint: ").count(), 3, "{shown}");
    }

    #[test]
    fn what_is_only_odd_or_unknown_is_a_warning() {
        let odd = Seen {
            wait_timeout_s: Some(60),
            table_open_cache: Some(263),
            open_files_limit: Some(200),
            ..ENOUGH
        };
        let codes = judged(odd).expect("warnings");
        assert_eq!(codes, ["short_wait_timeout", "small_table_cache", "few_server_files"]);
        assert_eq!(judged(Seen::default()).expect("warnings"), ["unchecked", "unchecked"]);
    }

    const UNLIMITED: Own = Own {
        descriptors_max: 1 << 20,
        descriptors_open: 12,
        address_space_max: None,
        group_max: None,
    };

    #[test]
    fn descriptors_of_this_process_count() {
        let judged = |max| {
            let mut findings = Findings::default();
            let own = Own { descriptors_max: max, ..UNLIMITED };
            judge_own(&own, &LOAD, &mut findings);
            findings.conclude().map_err(|error| error.render())
        };
        assert!(judged(300).is_ok());
        assert!(judged(299).is_err_and(|e| e.contains("ulimit -Hn 300")));
    }

    #[test]
    fn memory_of_this_process_counts_where_it_is_limited() {
        let judged = |mib: u64| {
            let mut findings = Findings::default();
            let own = Own { address_space_max: Some(mib << 20), ..UNLIMITED };
            judge_own(&own, &LOAD, &mut findings);
            findings.conclude().map_err(|error| error.render())
        };
        assert!(judged(272).is_ok());
        assert!(judged(271).is_err_and(|e| e.contains("256 clients and itself need 272")));
        let judged = |mib: u64| {
            let mut findings = Findings::default();
            let group_max = Some(Limit { bytes: mib << 20, file: "/x/memory.max".into() });
            judge_own(&Own { group_max, ..UNLIMITED }, &LOAD, &mut findings);
            findings.conclude().map_err(|error| error.render())
        };
        assert!(judged(80).is_ok());
        let shown = judged(79).expect_err("refused");
        assert!(shown.contains("may take 79 MiB of memory (/x/memory.max)"), "{shown}");
        assert!(shown.contains("itself need 80") && shown.contains("--memory 80m"), "{shown}");
    }
}
