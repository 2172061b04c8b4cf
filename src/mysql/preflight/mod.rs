//! Whether this server can run the plan, asked before the first step: everything that is wrong
//! is named at once.

mod limits;

use std::time::Duration;

use super::ask::{Asked, explain, one, optional, pairs};
use super::dataset::{self, Dataset, Discovered};
use super::findings::Findings;
use super::probe::read_hint;
use super::product::{Family, Product};
use super::session::Session;
use super::settle::{self, Wanted};
use super::variables;
use crate::error::Result;
use crate::observe::{cgroup, host, process};
use crate::summary::Warning;
use crate::workload::Schema;
use limits::{Load, Own, Seen};

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
    pub warnings: Vec<Warning>,
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
///
/// # Errors
/// Server (exit status 3), with every problem and a hint for each.
pub async fn check(session: &mut Session, needs: &Needs<'_>) -> Result<Ready> {
    let mut findings = Findings::default();
    let (product, dataset) = examine(session, needs, &mut findings)
        .await
        .map_err(|failure| explain(&failure, "ask the server what it can do"))?;
    let warnings = findings.conclude()?;
    // Without a dataset there was a problem.
    let dataset = dataset.ok_or_else(|| crate::error::Error::server("no usable table"))?;
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
    let dataset = settle::examine(session, &found, &wanted, findings).await?;
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
    limits::judge(&seen, &load, findings);
    match process::raise_descriptor_limit() {
        Ok(limit) => {
            let own = Own {
                descriptors_max: limit,
                descriptors_open: process::descriptors_open(),
                address_space_max: process::address_space_max(),
                group_max: cgroup::memory_max(&host::recorded().unwrap_or(host::ROOT.into())),
            };
            limits::judge_own(&own, &load, findings);
        }
        Err(error) => findings.warn("unchecked", error.to_string()),
    }
    Ok((product, dataset))
}

fn check_product(product: &Product, findings: &mut Findings) {
    let oldest = "loadgen is tested from MySQL 5.5 and MariaDB 10.1 on";
    match (product.family, product.number) {
        (Family::Other(name), _) => findings.warn(
            "unknown_server",
            format!("the server is {name} ({}): {oldest}, nothing else", product.version),
        ),
        (_, (0, 0, 0)) => findings.warn(
            "unknown_server",
            format!("the server's version '{}' says nothing: {oldest}", product.version),
        ),
        (_, number) if number < (5, 1, 0) => {
            findings.problem(format!("{product} is too old"), format!("{oldest}; 5.1 may work"));
        }
        (_, number) if number < (5, 5, 0) => {
            findings.warn("old_server", format!("{product}: {oldest}"));
        }
        _ => {}
    }
    if product.version.contains("-debug") {
        findings.warn("server_debug_build", format!("{product} is a debug build"));
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
    let global = optional(variables::read(session).await)?.unwrap_or_default();
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
    let number = |map: &variables::Variables, name: &str| {
        map.get(name).and_then(|text| text.parse::<u64>().ok())
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn concluded(version: &str, comment: &str) -> std::result::Result<Vec<String>, String> {
        let mut findings = Findings::default();
        check_product(&Product::of(version, comment), &mut findings);
        findings
            .conclude()
            .map(|warnings| warnings.into_iter().map(|w| w.code).collect())
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
