//! The arithmetic of limits: what the largest step needs against what there is.

use std::time::Duration;

use super::super::findings::Findings;
use crate::observe::cgroup::Limit;
use crate::terms;

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
pub(super) struct Seen {
    pub(super) max_connections: Option<u64>,
    pub(super) connected: Option<u64>,
    pub(super) max_user_connections: Option<u64>,
    pub(super) max_prepared: Option<u64>,
    pub(super) prepared: Option<u64>,
    pub(super) wait_timeout_s: Option<u64>,
    pub(super) table_open_cache: Option<u64>,
    pub(super) open_files_limit: Option<u64>,
}

/// What the largest step puts on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) clients: u64,
    /// Prepared statements of a client for a table.
    pub(super) statements: u64,
    /// Tables that a client works on.
    pub(super) tables_a_client: u64,
    pub(super) tables: u64,
    pub(super) quiet_max: Duration,
}

/// The limits of this process.
#[derive(Debug, Clone)]
pub(super) struct Own {
    pub(super) descriptors_max: u64,
    pub(super) descriptors_open: u64,
    /// None without a limit.
    pub(super) address_space_max: Option<u64>,
    /// Of its control groups; likewise.
    pub(super) group_max: Option<Limit>,
}

/// Compares the server's limits with the load.
pub(super) fn judge(seen: &Seen, load: &Load, findings: &mut Findings) {
    connections(seen, load, findings);
    statements(seen, load, findings);
    let clients = load.clients;
    if let Some(timeout) = seen.wait_timeout_s {
        let quiet = load.quiet_max.as_secs();
        if timeout < quiet.saturating_add(SPARE_SECONDS) {
            findings.warn(
                "short_wait_timeout",
                format!(
                    "wait_timeout is {timeout} s, and a connection may be silent for {quiet} s: \
                     the server may close it"
                ),
            );
        }
    }
    // A statement holds one table open; the cache must at least hold those in flight.
    let tables_open = clients + load.tables;
    if let Some(cache) = seen.table_open_cache.filter(|cache| *cache < tables_open) {
        findings.warn(
            "small_table_cache",
            format!(
                "table_open_cache is {cache}, below {} + {} tables: statements \
                 will wait for tables to be opened",
                terms::clients(clients),
                load.tables
            ),
        );
    }
    // 0 is said by servers that do not know.
    let files = seen.open_files_limit.filter(|limit| *limit != 0 && *limit < tables_open);
    if let Some(limit) = files {
        findings.warn(
            "few_server_files",
            format!("open_files_limit is {limit}, fewer than the {clients} connections need"),
        );
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
        _ => findings.warn("unchecked", "the server does not say what max_connections is"),
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
        findings.warn("unchecked", "the server does not say what max_prepared_stmt_count is");
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
pub(super) fn judge_own(own: &Own, load: &Load, findings: &mut Findings) {
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
            .map(|warnings| warnings.into_iter().map(|w| w.code).collect())
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
