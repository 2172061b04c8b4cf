//! Asks before the first step whether this server can run the plan: everything that is wrong is named
//! at once.

use std::time::Duration;

use super::control::{self, Asked, Numbers, explain, numeric, one, optional, pairs};
use super::dataset::{self, Dataset, Discovered, Wanted, read_hint};
use super::errors::Findings;
use super::server::{Family, Product};
use super::session::Session;
use crate::error::Result;
use crate::observe::process::Limit;
use crate::observe::{host, process};
use crate::terms::{self, Finding, finding};
use crate::workload::Schema;

pub struct Needs<'a> {
    pub database: &'a str,
    pub schema: Schema,
    pub tables: Option<u32>,
    pub rows: Option<u64>,
    pub seed: u64,
    pub clients_max: u32,
    /// Prepared statements that one client holds for a table, and for how many of so many tables:
    /// it depends on the spread, which depends on the tables. 0 for text.
    pub statements: &'a (dyn Fn(u32) -> (u32, u32) + Sync),
    pub writes: bool,
    /// The longest that an open connection may have to say nothing.
    pub quiet_max: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Ready {
    pub product: Product,
    pub dataset: Dataset,
    pub warnings: Vec<Finding>,
}

/// Checks everything that can be checked before the first step.
///
/// `session` is a new one of the kind that the clients use: what it finds in itself (autocommit,
/// timeouts) they will find too. Then it is set up to be kept as the control session.
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

    let listed = dataset::list(session, needs.database, needs.schema).await;
    let hint =
        |_| "loadgen finds its tables there; does the account have rights on them?".to_owned();
    let Some(found) = findings.asked(listed, "information_schema cannot be read", hint)? else {
        return Ok((product, None));
    };
    let wanted = Wanted { tables: needs.tables, rows: needs.rows, seed: needs.seed };
    let dataset = dataset::examine(session, &found, &wanted, findings).await?;
    if let (true, Some(dataset)) = (needs.writes, &dataset) {
        check_writable(session, &found, dataset.tables, findings).await?;
    }

    // Also for tables that are not there yet, so that all is named at once.
    let tables = needs.tables.unwrap_or_else(|| found.contiguous()).max(1);
    judge(&seen, needs, tables, findings);
    match process::raise_descriptor_limit() {
        Ok(limit) => {
            let own = Own {
                descriptors_max: limit,
                descriptors_open: process::descriptors_open(),
                address_space_max: process::address_space_max(),
                group_max: process::memory_max(&host::recorded().unwrap_or(host::ROOT.into())),
            };
            judge_own(&own, needs.clients_max.into(), findings);
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

/// Reads the numbers that limit connections and statements; what cannot be read is not there.
async fn look(session: &mut Session) -> Asked<Numbers> {
    let mut texts = optional(control::variables(session).await)?.unwrap_or_default();
    for sql in [
        "SHOW SESSION VARIABLES WHERE Variable_name IN ('max_user_connections', 'wait_timeout')",
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Prepared_stmt_count')",
    ] {
        texts.extend(optional(pairs(session, sql).await)?.unwrap_or_default());
    }
    Ok(numeric(&texts))
}

/// Tries an update that changes nothing: no variable tells as surely whether this account may
/// write on this server.
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
        let what = format!("{} cannot be written", found.name(number));
        let tried = session.execute(&sql).await;
        // What holds for one table mostly holds for all.
        if findings.asked(tried, &what, |code| write_hint(code, &found.database))?.is_none() {
            break;
        }
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

/// Connections beyond the clients: for reconnects, and for somebody who looks.
const SPARE_CONNECTIONS: u64 = 4;
/// Descriptors beyond the connections: results, timers, the resolver.
const SPARE_DESCRIPTORS: u64 = 32;
/// Memory of a client: its connection, task and statements, with room to spare.
const CLIENT_BYTES: u64 = 64 << 10;
/// Address space of the program, its threads and a summary as it is written.
const OWN_BYTES: u64 = 256 << 20;
/// What of that is resident, where the cores are few: twice what was seen.
const OWN_RESIDENT: u64 = 64 << 20;
/// Seconds by which `wait_timeout` must exceed the longest silence.
const SPARE_SECONDS: u64 = 10;

#[derive(Debug, Clone)]
struct Own {
    descriptors_max: u64,
    descriptors_open: u64,
    address_space_max: Option<u64>,
    group_max: Option<Limit>,
}

/// Refuses where a sum is more than there may be.
fn bound(findings: &mut Findings, (name, max): (&str, u64), (sum, need): (&str, u64), hint: &str) {
    if need > max {
        findings.problem(format!("{name} is {max}, but {sum} = {need}"), hint);
    }
}

fn judge(seen: &Numbers, needs: &Needs<'_>, tables: u32, findings: &mut Findings) {
    let number = |name: &str| seen.get(name).and_then(|number| u64::try_from(*number).ok());
    // Servers that know none say 0; MariaDB says -1 for "nobody".
    let limit = |name: &str| number(name).filter(|limit| *limit != 0);
    let (clients, tables_used) = (u64::from(needs.clients_max), u64::from(tables));
    let shown = terms::clients(clients);
    let spare = SPARE_CONNECTIONS;
    if let Some((max, connected)) = number("max_connections").zip(number("Threads_connected")) {
        let (need, fit) = (clients + connected + spare, max.saturating_sub(connected + spare));
        let sum = format!("{shown} + {connected} connected now + {spare} spare");
        let hint = format!(
            "SET GLOBAL max_connections = {need} or more (the server may need more open files for \
             that), or --clients up to {fit}"
        );
        bound(findings, ("max_connections", max), (&sum, need), &hint);
    } else {
        findings.warn(finding!(UnknownLimit, "max_connections"));
    }
    if let Some(max) = limit("max_user_connections") {
        let sum = format!("{shown} + 1 to control + {spare} spare");
        let hint = "raise it: SET GLOBAL max_user_connections, or the account's \
                    MAX_USER_CONNECTIONS; or use fewer --clients";
        let name = "this account's max_user_connections";
        bound(findings, (name, max), (&sum, clients + 1 + spare), hint);
    }
    statements(
        number("max_prepared_stmt_count"),
        number("Prepared_stmt_count"),
        needs,
        tables,
        findings,
    );
    let quiet = needs.quiet_max.as_secs();
    if let Some(timeout) =
        number("wait_timeout").filter(|s| *s < quiet.saturating_add(SPARE_SECONDS))
    {
        findings.warn(finding!(ShortWaitTimeout, timeout, quiet));
    }
    // A statement holds one table open; the cache must at least hold those in flight.
    let tables_open = clients + tables_used;
    if let Some(cache) = number("table_open_cache").filter(|cache| *cache < tables_open) {
        findings.warn(finding!(SmallTableCache, cache, shown, tables_used));
    }
    if let Some(files) = limit("open_files_limit").filter(|limit| *limit < tables_open) {
        findings.warn(finding!(FewServerFiles, files, clients));
    }
}

fn statements(
    max: Option<u64>,
    now: Option<u64>,
    needs: &Needs<'_>,
    tables: u32,
    findings: &mut Findings,
) {
    let (statements, tables) = (needs.statements)(tables);
    let each = u64::from(statements) * u64::from(tables);
    if each == 0 {
        return;
    }
    let Some(max) = max else {
        return findings.warn(finding!(UnknownLimit, "max_prepared_stmt_count"));
    };
    let now = now.unwrap_or(0);
    let need = u64::from(needs.clients_max).saturating_mul(each).saturating_add(now);
    let pinned = if tables == 1 { "" } else { ", or --spread pinned (one table a client)" };
    let sum = format!(
        "{statements} statement{} × {tables} table{} × {} + {now} prepared now",
        if statements == 1 { "" } else { "s" },
        if tables == 1 { "" } else { "s" },
        terms::clients(needs.clients_max),
    );
    let hint = format!(
        "SET GLOBAL max_prepared_stmt_count = {need} or more, or --statements text{pinned}"
    );
    bound(findings, ("max_prepared_stmt_count", max), (&sum, need), &hint);
}

fn judge_own(own: &Own, clients: u64, findings: &mut Findings) {
    let (open, shown) = (own.descriptors_open, terms::clients(clients));
    let need = clients + open + SPARE_DESCRIPTORS;
    let sum = format!("{shown} + {open} open now + {SPARE_DESCRIPTORS} spare");
    let hint = format!("raise the hard limit of the shell that starts loadgen: ulimit -Hn {need}");
    let name = "this process's limit of open files";
    bound(findings, (name, own.descriptors_max), (&sum, need), &hint);
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let memory = |own: u64| {
        let sum = format!("{shown} of {} KiB + {} for itself", CLIENT_BYTES >> 10, mib(own));
        (sum, mib(clients * CLIENT_BYTES + own))
    };
    // The kernel ends what takes more: nothing can be saved then, either.
    if let Some(Limit { bytes, file }) = &own.group_max {
        let (sum, need) = memory(OWN_RESIDENT);
        let hint = format!(
            "raise that limit: MemoryMax={need}M of its unit, --memory {need}m of its container"
        );
        let name =
            format!("the memory limit in MiB of this process's control group ({})", file.display());
        bound(findings, (&name, mib(*bytes)), (&sum, need), &hint);
    }
    // An allocation that fails ends the process: nothing can be saved then.
    if let Some(max) = own.address_space_max {
        let (sum, need) = memory(OWN_BYTES);
        let kib = need << 10;
        let hint = format!("raise the limit of the shell that starts loadgen: ulimit -v {kib}");
        bound(findings, ("this process's memory limit in MiB", mib(max)), (&sum, need), &hint);
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

    fn needs() -> Needs<'static> {
        Needs {
            database: "sbtest",
            schema: Schema::Sbtest,
            tables: None,
            rows: None,
            seed: 1,
            clients_max: 256,
            statements: &|_| (4, 2),
            writes: true,
            quiet_max: Duration::from_mins(1),
        }
    }

    const ENOUGH: [(&str, i64); 8] = [
        ("max_connections", 261),
        ("Threads_connected", 1),
        ("max_user_connections", 0),
        ("max_prepared_stmt_count", 2051),
        ("Prepared_stmt_count", 3),
        ("wait_timeout", 28800),
        ("table_open_cache", 2000),
        ("open_files_limit", 0),
    ];

    /// Codes of the warnings, or the message and hints, where some numbers are others.
    fn judged(others: &[(&str, i64)]) -> std::result::Result<Vec<String>, String> {
        let seen = ENOUGH.iter().chain(others).map(|(name, n)| ((*name).to_owned(), *n));
        judged_alone(&seen.collect())
    }

    fn judged_alone(seen: &Numbers) -> std::result::Result<Vec<String>, String> {
        let mut findings = Findings::default();
        judge(seen, &needs(), 8, &mut findings);
        findings
            .conclude()
            .map(|warnings| warnings.into_iter().map(|w| w.code.name().to_owned()).collect())
            .map_err(|error| error.render())
    }

    #[test]
    fn what_just_suffices_is_fine() {
        assert_eq!(judged(&[]), Ok(vec![]));
    }

    #[test]
    fn one_less_is_refused_with_the_arithmetic() {
        let shown = judged(&[("max_connections", 260)]).expect_err("refused");
        assert!(
            shown.contains("is 260, but 256 clients + 1 connected now + 4 spare = 261"),
            "{shown}"
        );
        assert!(shown.contains("max_connections = 261") && shown.contains("up to 255"), "{shown}");
        let shown = judged(&[("max_prepared_stmt_count", 2050)]).expect_err("refused");
        let sum = "4 statements × 2 tables × 256 clients + 3 prepared now = 2051";
        assert!(shown.contains(sum) && shown.contains("--spread pinned"), "{shown}");
        let shown = judged(&[("max_user_connections", 260)]).expect_err("refused");
        assert!(shown.contains("max_user_connections is 260"), "{shown}");
    }

    #[test]
    fn all_that_is_wrong_is_named_at_once() {
        let little = [
            ("max_connections", 100),
            ("max_user_connections", 10),
            ("max_prepared_stmt_count", 0),
        ];
        let shown = judged(&little).expect_err("refused");
        assert!(shown.starts_with("error: 3 things"), "{shown}");
        assert_eq!(shown.matches("hint: ").count(), 3, "{shown}");
    }

    #[test]
    fn what_is_only_odd_or_unknown_is_a_warning() {
        let odd = [("wait_timeout", 60), ("table_open_cache", 263), ("open_files_limit", 200)];
        let codes = judged(&odd).expect("warnings");
        assert_eq!(codes, ["short_wait_timeout", "small_table_cache", "few_server_files"]);
        assert_eq!(judged_alone(&Numbers::new()).expect("warnings"), ["unchecked", "unchecked"]);
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
            judge_own(&own, 256, &mut findings);
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
            judge_own(&own, 256, &mut findings);
            findings.conclude().map_err(|error| error.render())
        };
        assert!(judged(272).is_ok());
        assert!(
            judged(271).is_err_and(|e| e.contains("256 clients of 64 KiB + 256 for itself = 272"))
        );
        let judged = |mib: u64| {
            let mut findings = Findings::default();
            let group_max = Some(Limit { bytes: mib << 20, file: "/x/memory.max".into() });
            judge_own(&Own { group_max, ..UNLIMITED }, 256, &mut findings);
            findings.conclude().map_err(|error| error.render())
        };
        assert!(judged(80).is_ok());
        let shown = judged(79).expect_err("refused");
        assert!(shown.contains("control group (/x/memory.max) is 79, but"), "{shown}");
        assert!(shown.contains("= 80") && shown.contains("--memory 80m"), "{shown}");
    }
}
