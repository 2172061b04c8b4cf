//! Checks before the first step that this server can run the plan, and names all problems at once.

use std::collections::BTreeSet;
use std::time::Duration;

use super::control::{
    self, Asked, Numbers, amount, explain, numeric, optional, pairs, query_single,
};
use super::dataset::{self, Dataset, Discovered, Table, names, sample, totals};
use super::errors::Failure;
use super::hints::{Tried, hint_in};
use super::server::{Family, Product};
use super::session::Session;
use super::target::quoted_text;
use crate::error::{Error, Result};
use crate::observe::{Limit, host, process};
use crate::terms::{self, Finding, counted, finding};
use crate::workload::{Mark, Schema, State, Stream, TABLES_MAX};

/// The writes of the statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    None,
    /// The rights are not tried: foreign columns without a default would refuse a trial.
    InsertOrDelete,
    /// Some update, or may: the account needs this right.
    Update,
}

pub struct Needs<'a> {
    pub database: &'a str,
    pub schema: Schema,
    /// `--tables`; None for all that exist, 0 where no statement names one.
    pub tables: Option<u32>,
    pub rows: Option<u64>,
    pub seed: u64,
    pub clients_max: u32,
    /// Clients of groups beside these, at the first address.
    pub clients_beside: u32,
    /// Addresses that the clients are dealt out to: the server is the first of them.
    pub addresses: u32,
    /// Those of them that this process has.
    pub clients_here: u32,
    /// Statements that a client prepares for a table, and for how many tables, by the number of all; 0
    /// for text.
    pub statements: &'a (dyn Fn(u32) -> (u32, u32) + Sync),
    /// Statements work on rows that must be there: not all of them insert.
    pub rows_there: bool,
    /// Statements that the clients of groups beside prepare at the first address, by the number of tables.
    pub statements_beside: &'a (dyn Fn(u32) -> u64 + Sync),
    pub writes: Writes,
    pub begins: bool,
    /// The longest time that an open connection may be idle.
    pub quiet_max: Duration,
}

impl Needs<'_> {
    /// Returns the most of the measured clients that one address is dealt.
    fn clients_of_first(&self) -> u32 {
        self.clients_max.div_ceil(self.addresses)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Ready {
    pub dataset: Dataset,
    pub warnings: Vec<Finding>,
}

/// Checks everything that can be checked before the first step. `session` is a new one, to see the
/// defaults that clients get; afterwards it is set up as the control session.
pub async fn check(session: &mut Session, needs: &Needs<'_>) -> Result<Ready> {
    let mut findings = PreflightReport::default();
    let dataset = examine(session, needs, &mut findings)
        .await
        .map_err(|failure| explain(&failure, "ask the server what it can do"))?;
    let warnings = findings.conclude()?;
    let dataset = dataset.expect("without a dataset there is a problem");
    Ok(Ready { dataset, warnings })
}

async fn examine(
    session: &mut Session,
    needs: &Needs<'_>,
    findings: &mut PreflightReport,
) -> Asked<Option<Dataset>> {
    let product = Product::ask(session).await?;
    check_product(&product, findings);
    let autocommit =
        optional(query_single(session, "SELECT @@session.autocommit").await)?.flatten();
    match autocommit.as_deref() {
        Some("1") => {}
        Some(value) => findings.problem(
            format!(
                "autocommit is off in a new session, so nothing would be committed \
                 (@@session.autocommit = {value})"
            ),
            "SET GLOBAL autocommit = 1, and look at init_connect",
        ),
        None => findings.problem(
            "the server does not say whether autocommit is on (@@session.autocommit)",
            "is a proxy in between?",
        ),
    }
    let texts = inspect_server(session).await?;
    let seen = numeric(&texts);
    if needs.begins {
        check_begin(&product, &texts, findings);
    }
    // Another session's lock must not block the preflight for a day (MySQL: a year).
    for setting in ["lock_wait_timeout = 10", "wait_timeout = 604800"] {
        optional(session.execute(&format!("SET SESSION {setting}")).await)?;
    }
    let listed = dataset::list_tables(session, needs.database, needs.schema).await;
    let refused = ("information_schema cannot be read", Tried::List);
    let Some(found) = findings.note_refusal(listed, refused, needs.database)? else {
        return Ok(None);
    };
    let mut tables = Tables { session, found: &found, needs, findings };
    let mut dataset = tables.choose_dataset().await?;
    let level = ["transaction_isolation", "tx_isolation"].iter().find_map(|name| texts.get(*name));
    if let Some(dataset) = &mut dataset {
        dataset.ids = found.ids();
        dataset.tables.atomic &= level.is_none_or(|level| level != "READ-UNCOMMITTED");
        if needs.writes != Writes::None {
            tables.try_writes(dataset.tables.count).await?;
        }
    }

    // Also for missing tables, so that all problems are named at once.
    judge(&seen, needs, needs.tables.unwrap_or_else(|| found.contiguous()).max(1), findings);
    judge_own(&Own::read(), needs.clients_here.into(), findings);
    Ok(dataset)
}

fn check_product(product: &Product, findings: &mut PreflightReport) {
    let version = product.version.as_str();
    match (product.family, product.number) {
        (Family::Other(name), _) => {
            findings.warn(finding!(UnknownServer, name.to_string(), version));
        }
        (_, (0, 0, 0)) => {
            findings.warn(finding!(UnknownServer, "of an unreadable version", version));
        }
        (_, (..5, ..) | (5, 0, _)) => {
            let oldest = "loadgen is tested from MySQL 5.5 and MariaDB 10.1 on; 5.1 may work";
            findings.problem(format!("{product} is too old"), oldest);
        }
        (_, (5, ..5, _)) => findings.warn(finding!(OldServer, product.to_string())),
        _ => {}
    }
    if version.contains("-debug") {
        findings.warn(finding!(ServerDebugBuild, product.to_string()));
    }
}

/// Refuses a server that reads BEGIN as the start of a block, or does more than COMMIT says.
fn check_begin(product: &Product, texts: &control::Variables, findings: &mut PreflightReport) {
    let without = "or a workload without transactions (--skip-trx where it has that)";
    let completion = texts.get("completion_type").map_or("NO_CHAIN", String::as_str);
    if !matches!(completion, "NO_CHAIN" | "0") {
        findings.problem(
            format!(
                "completion_type is {completion}: a COMMIT also begins a transaction, or closes the \
                 connection, and this workload commits"
            ),
            format!("SET GLOBAL completion_type = NO_CHAIN, {without}"),
        );
    }
    let mode = texts.get("sql_mode").map_or("", String::as_str);
    let oracle = mode.split(',').any(|one| one.eq_ignore_ascii_case("ORACLE"));
    // MySQL's mode of that name, up to 5.7, does not change BEGIN.
    if oracle && product.family == Family::MariaDb && product.number >= (10, 3, 0) {
        findings.problem(
            "sql_mode is ORACLE: BEGIN begins a block there, and this workload begins transactions \
             with it",
            format!("SET GLOBAL sql_mode without ORACLE, {without}"),
        );
    }
}

/// Reads the variables, some as a new session has them; leaves out what cannot be read.
async fn inspect_server(session: &mut Session) -> Asked<control::Variables> {
    let mut texts = optional(control::variables(session).await)?.unwrap_or_default();
    for sql in [
        "SHOW SESSION VARIABLES WHERE Variable_name IN ('max_user_connections', 'wait_timeout')",
        "SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Prepared_stmt_count')",
    ] {
        texts.extend(optional(pairs(session, sql).await)?.unwrap_or_default());
    }
    Ok(texts)
}

const PROBES: u64 = 1000;
/// Ids looked up in all tables together, at least ten a table.
const PROBES_TOTAL: u64 = 1_000_000;
/// Ids in one statement: MariaDB turns a list of a thousand into a join.
const PROBES_A_STATEMENT: usize = 250;
/// How often ids that lack are asked for again, and after what time: a row that is replaced is back by then.
const ASK_AGAIN: usize = 3;
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(100);

struct Tables<'a> {
    session: &'a mut Session,
    found: &'a Discovered,
    needs: &'a Needs<'a>,
    findings: &'a mut PreflightReport,
}

impl Tables<'_> {
    /// Chooses the tables and ids of a run; None if a problem leaves them open. A gap is refused. Without
    /// `--rows` the tables must agree on the rows: by COMMENT where `prepare` made them, else by `MAX(id)`.
    async fn choose_dataset(&mut self) -> Asked<Option<Dataset>> {
        let (found, needs) = (self.found, self.needs);
        if needs.tables == Some(0) {
            // For all that is known, the statements' own tables are in this database.
            let which = format!("TABLE_SCHEMA = {}", quoted_text(&found.database));
            let (data_bytes, formats) = dataset::size_and_formats(self.session, &which).await?;
            let rows = needs.rows.unwrap_or(0);
            let tables = dataset::Tables { schema: needs.schema, rows, ..Default::default() };
            return Ok(Some(Dataset { tables, data_bytes, formats, ..Dataset::default() }));
        }
        let Some(tables) = choose_tables(found, needs, self.findings) else { return Ok(None) };
        let used: Vec<(u32, &Table)> =
            found.tables.range(1..=tables).map(|(n, t)| (*n, t)).collect();
        if !are_usable(found, &used, self.findings) {
            return Ok(None);
        }
        let mut held = Vec::with_capacity(used.len());
        for (number, table) in &used {
            let rows = match table.mark {
                Some(mark) => Some(mark.rows),
                None => self.number(*number, "MAX(id)", &found.sql_name(*number)).await?,
            };
            let Some(rows) = rows else { return Ok(None) };
            held.push((*number, rows));
        }
        if !found.schema.filled() {
            return Ok(Some(dataset(found.schema, &used, 0, self.findings)));
        }
        let Some(rows) = choose_rows(found.schema, &held, needs.rows, self.findings) else {
            return Ok(None);
        };
        let readable = if needs.rows_there { self.probe(&used, rows).await? } else { Some(()) };
        Ok(readable.map(|()| dataset(found.schema, &used, rows, self.findings)))
    }

    async fn number(&mut self, table: u32, which: &str, from: &str) -> Asked<Option<u64>> {
        let asked = query_single(self.session, &format!("SELECT {which} FROM {from}")).await;
        let Some(text) = self.note_refusal(asked, table, "read")? else { return Ok(None) };
        // An empty table has no largest id.
        let number = text.map_or(Some(0), |text| text.parse::<i128>().ok());
        let odd = || Failure::lost(format!("{which} that is no number"));
        number.map(|number| Some(u64::try_from(number).unwrap_or(0))).ok_or_else(odd)
    }

    /// A missing row makes an operation cheaper. Stops at an unreadable table: the others might wait for a lock, too.
    async fn probe(&mut self, used: &[(u32, &Table)], rows: u64) -> Asked<Option<()>> {
        let mut stream = Stream::new(self.needs.seed);
        let probes = (PROBES_TOTAL / used.len() as u64).clamp(10, PROBES);
        let mut ask_again = ASK_AGAIN;
        for (number, table) in used {
            let ids = sample(&mut stream, rows, probes);
            let (mut present, asked) = (0, ids.len() as u64);
            for attempt in 0..=ask_again {
                // Another process may delete rows and put them back, as an operation of ours does.
                if attempt > 0 {
                    tokio::time::sleep(ASK_AGAIN_AFTER).await;
                }
                let Some(counted) = self.count_present(*number, &ids).await? else {
                    return Ok(None);
                };
                present = present.max(counted);
                if present >= asked {
                    break;
                }
            }
            if present >= asked {
                continue;
            }
            ask_again = 0;
            let (missing, what) = (asked - present, if asked == rows { "" } else { " random" });
            let has = format!("{missing} of {asked}{what} ids from 1 to {rows} are not there");
            let hint = match table.mark {
                Some(_) => "rows were deleted since: `loadgen prepare --force` makes it anew",
                None => {
                    "an operation on an id that is not there measures something else: make the \
                     tables anew, ids from 1 without gaps"
                }
            };
            self.findings.problem(format!("{} has holes: {has}", self.found.name(*number)), hint);
        }
        Ok(Some(()))
    }

    async fn count_present(&mut self, table: u32, ids: &[u64]) -> Asked<Option<u64>> {
        let mut present = 0_u64;
        for chunk in ids.chunks(PROBES_A_STATEMENT) {
            let list = chunk.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            let from = format!("{} WHERE id IN ({list})", self.found.sql_name(table));
            let Some(counted) = self.number(table, "COUNT(*)", &from).await? else {
                return Ok(None);
            };
            present = present.saturating_add(counted);
        }
        Ok(Some(present))
    }

    /// Tries an update that changes nothing: no variable shows as surely whether this account may write.
    async fn try_writes(&mut self, tables: u32) -> Asked<()> {
        for number in 1..=tables {
            // Ids start at 1.
            let (table, column) = (self.found.sql_name(number), self.found.schema.facts().writable);
            let sql = format!("UPDATE {table} SET {column} = {column} WHERE id = 0");
            let tried = self.session.execute(&sql).await;
            // A server that is read-only says so first.
            let denied = matches!(&tried, Err(Failure::Server { code: 1142 | 1143, .. }));
            if denied && self.needs.writes != Writes::Update {
                break;
            }
            // A problem of one table is mostly one of all.
            if self.note_refusal(tried, number, "written")?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn note_refusal<T>(&mut self, asked: Asked<T>, table: u32, done: &str) -> Asked<Option<T>> {
        let what = format!("{} cannot be {done}", self.found.name(table));
        self.findings.note_refusal(asked, (&what, Tried::Inspect), self.needs.database)
    }
}

fn choose_tables(
    found: &Discovered,
    needs: &Needs<'_>,
    findings: &mut PreflightReport,
) -> Option<u32> {
    let (present, database, schema) = (found.contiguous(), &found.database, found.schema);
    // A higher number is no table of a set but a copy, such as sbtest20260101.
    let last = found.tables.range(..=TABLES_MAX).next_back().map_or(0, |(number, _)| *number);
    let wanted = needs.tables.unwrap_or(last.max(1));
    let missing = (1..=wanted).filter(|number| !found.tables.contains_key(number));
    let missing = names(schema, missing);
    if missing.is_empty() {
        return Some(wanted);
    }
    let of = if schema == Schema::Sbtest { "" } else { &format!(" --schema {schema}") };
    let rows = needs.rows.map_or("N".to_owned(), |rows| rows.to_string());
    let rows = if schema.filled() { &format!(" --rows {rows}") } else { "" };
    let before = match needs.tables {
        None if present > 0 => format!("--tables {present} uses those before the gap; "),
        _ => String::new(),
    };
    let has = match needs.tables {
        Some(tables) => format!("--tables {tables}, but `{database}` lacks {missing}"),
        None if last == 0 => format!("`{database}` lacks {missing}"),
        None => format!("`{database}` has tables up to {}, but lacks {missing}", found.name(last)),
    };
    findings.refuse(
        has,
        format!("{before}`loadgen prepare{of} --tables {wanted}{rows}` creates what is missing"),
    )
}

fn are_usable(found: &Discovered, used: &[(u32, &Table)], findings: &mut PreflightReport) -> bool {
    let before = findings.problems.len();
    for (number, table) in used {
        let Some(why) = table.unusable(found.schema) else { continue };
        let hint = match number {
            1 => format!(
                "loadgen uses {}, {} …: drop or rename it, or take another database with --database",
                found.name(1),
                found.name(2)
            ),
            _ => format!("--tables {} uses those before it", number - 1),
        };
        findings.problem(format!("{} {why}", found.name(*number)), hint);
    }
    let filling = |table: &Table| table.mark.is_some_and(|mark| mark.state == State::Filling);
    let filling = names_where(found.schema, used, filling);
    if !filling.is_empty() {
        findings.problem(
            format!("the fill of {filling} was not finished"),
            "run the same `loadgen prepare` again: it completes or redoes the fill",
        );
    }
    findings.problems.len() == before
}

fn names_where(schema: Schema, used: &[(u32, &Table)], are: impl Fn(&Table) -> bool) -> String {
    names(schema, used.iter().filter(|(_, table)| are(table)).map(|(number, _)| *number))
}

fn choose_rows(
    schema: Schema,
    held: &[(u32, u64)],
    wanted: Option<u64>,
    findings: &mut PreflightReport,
) -> Option<u64> {
    let (least_in, least) = held.iter().copied().min_by_key(|(_, rows)| *rows)?;
    let (most_in, most) = held.iter().rev().copied().max_by_key(|(_, rows)| *rows)?;
    if least == 0 {
        let empty = names(schema, held.iter().filter(|(_, rows)| *rows == 0).map(|(n, _)| *n));
        return findings.refuse(
            format!("{empty}: no rows"),
            "drop it, then `loadgen prepare` makes and fills it; or fill it as it was made",
        );
    }
    let (least_in, most_in) = (schema.name(least_in), schema.name(most_in));
    let message = match wanted {
        Some(rows) if rows <= least => return Some(rows),
        None if least == most => return Some(least),
        Some(rows) => format!("--rows {rows}, but {least_in} has {least}"),
        None => {
            let differ = format!("{least_in} has {least}, {most_in} has {most}");
            format!("the tables differ in their rows: {differ}")
        }
    };
    let hint = format!("--rows {least} uses what every table has; prepare makes larger tables");
    findings.refuse(message, hint)
}

fn dataset(
    schema: Schema,
    used: &[(u32, &Table)],
    rows: u64,
    findings: &mut PreflightReport,
) -> Dataset {
    fn common<T: PartialEq>(marks: &[Option<Mark>], of: fn(&Mark) -> T) -> Option<T> {
        let mut all = marks.iter().map(|mark| mark.as_ref().map(of));
        let first = all.next()??;
        all.all(|other| other.as_ref() == Some(&first)).then_some(first)
    }
    let marks: Vec<_> = used.iter().map(|(_, table)| table.mark).collect();
    let (own, data_seed) = (marks.iter().all(Option::is_some), common(&marks, |mark| mark.seed));
    if own && data_seed.is_none() {
        findings.warn(finding!(MixedDataSeeds));
    }
    let engine = |table: &Table| table.engine.clone().unwrap_or_default().to_ascii_lowercase();
    let engines: BTreeSet<String> = used.iter().map(|(_, table)| engine(table)).collect();
    if engines.len() > 1 {
        let engines: Vec<String> = engines.into_iter().collect();
        findings.warn(finding!(MixedEngines, engines.join(", ")));
    }
    let plain = names_where(schema, used, |table| !table.is_indexed(schema));
    if !plain.is_empty() {
        findings.warn(if schema == Schema::Sbtest {
            finding!(KNotIndexed, plain)
        } else {
            finding!(CountryNotIndexed, plain)
        });
    }
    let format = |table: &Table| match schema.facts().indexed.filter(|_| !table.is_indexed(schema))
    {
        Some(column) => format!("{} without an index on {column}", table.format),
        None => table.format.clone(),
    };
    let (data_bytes, formats) = totals(used.iter().map(|(_, table)| (table.bytes, format(table))));
    let (count, held) = (used.len() as u32, common(&marks, |mark| mark.rows));
    let atomic = used.iter().all(|(_, table)| table.engine_without_rollback().is_none());
    Dataset {
        tables: dataset::Tables { schema, count, rows, held, own, atomic },
        data_seed,
        data_bytes,
        formats,
        ..Dataset::default()
    }
}

/// Connections beside the clients: reconnects, and somebody who looks.
const SPARE_CONNECTIONS: u64 = 4;
/// Descriptors beyond the connections: results, timers, the resolver.
const SPARE_DESCRIPTORS: u64 = 32;
/// Memory of a client: its connection, task and statements, with room to spare.
const CLIENT_BYTES: u64 = 64 << 10;
/// Address space of the program, its threads and a summary being written.
const OWN_BYTES: u64 = 256 << 20;
/// The resident part of that on few cores: twice what was measured.
const OWN_RESIDENT: u64 = 64 << 20;
/// Seconds by which `wait_timeout` must exceed the longest silence.
const SPARE_SECONDS: u64 = 10;

struct Own {
    descriptors_max: u64,
    descriptors_open: u64,
    address_space_max: Option<u64>,
    group_max: Option<Limit>,
}

impl Own {
    fn read() -> Own {
        Own {
            descriptors_max: process::raise_descriptor_limit().expect("the program began with it"),
            descriptors_open: process::descriptors_open(),
            address_space_max: process::address_space_max(),
            group_max: process::memory_max(&host::recorded().unwrap_or(host::ROOT.into())),
        }
    }
}

/// Refuses limits of this process that so many clients exceed.
pub(crate) fn check_own(clients: u32) -> Result<()> {
    let mut findings = PreflightReport::default();
    judge_own(&Own::read(), clients.into(), &mut findings);
    findings.conclude().map(drop)
}

fn check_limit(
    findings: &mut PreflightReport,
    (name, max): (&str, u64),
    (sum, need): (&str, u64),
    hint: &str,
) {
    if need > max {
        findings.problem(format!("{name} is {max}, but {sum} = {need}"), hint);
    }
}

fn judge(seen: &Numbers, needs: &Needs<'_>, tables: u32, findings: &mut PreflightReport) {
    let number = |name: &str| amount(seen, name);
    // Servers without a limit say 0; MariaDB says -1 for "nobody".
    let limit = |name: &str| number(name).filter(|limit| *limit != 0);
    let (own, beside) = (needs.clients_of_first(), u64::from(needs.clients_beside));
    let (clients, spare) = (u64::from(own) + beside, SPARE_CONNECTIONS);
    let parts = if beside > 0 { format!(" + {beside} beside") } else { String::new() };
    let shown = terms::clients(own) + &parts;
    if let Some((max, connected)) = number("max_connections").zip(number("Threads_connected")) {
        let need = clients + connected + spare;
        let fit = max.saturating_sub(connected + spare + beside);
        let fit = fit.saturating_mul(needs.addresses.into());
        let sum = format!("{shown} + {connected} connected now + {spare} spare");
        let fewer = if fit > 0 { &format!(", or --clients up to {fit}") } else { "" };
        let hint = format!(
            "SET GLOBAL max_connections = {need} or more (the server may need more open files for \
             that){fewer}"
        );
        check_limit(findings, ("max_connections", max), (&sum, need), &hint);
    } else {
        findings.warn(finding!(Unchecked, "max_connections"));
    }
    if let Some(max) = limit("max_user_connections") {
        let sum = format!("{shown} + 1 to control + {spare} spare");
        let hint = "raise it: SET GLOBAL max_user_connections, or the account's \
                    MAX_USER_CONNECTIONS; or use fewer --clients";
        let name = "this account's max_user_connections";
        check_limit(findings, (name, max), (&sum, clients + 1 + spare), hint);
    }
    judge_statements(seen, needs, tables, findings);
    let quiet = needs.quiet_max.as_secs();
    let short = |s: &u64| *s < quiet.saturating_add(SPARE_SECONDS);
    if let Some(timeout) = number("wait_timeout").filter(short) {
        findings.warn(finding!(ShortWaitTimeout, timeout, quiet));
    }
    // A statement opens one table; the cache must hold those in flight.
    let too_few = |open: &u64| *open < clients + u64::from(tables);
    if let Some(cache) = number("table_open_cache").filter(too_few) {
        findings.warn(finding!(SmallTableCache, cache, clients, tables));
    }
    if let Some(files) = limit("open_files_limit").filter(too_few) {
        findings.warn(finding!(FewServerFiles, files, clients));
    }
}

fn judge_statements(
    seen: &Numbers,
    needs: &Needs<'_>,
    tables: u32,
    findings: &mut PreflightReport,
) {
    let beside = (needs.statements_beside)(tables);
    let (statements, tables) = (needs.statements)(tables);
    let each = u64::from(statements) * u64::from(tables);
    if each == 0 && beside == 0 {
        return;
    }
    let Some(max) = amount(seen, "max_prepared_stmt_count") else {
        return findings.warn(finding!(Unchecked, "max_prepared_stmt_count"));
    };
    let now = amount(seen, "Prepared_stmt_count").unwrap_or(0);
    let own = needs.clients_of_first();
    let need = u64::from(own).saturating_mul(each).saturating_add(now);
    let need = need.saturating_add(beside);
    let pinned = if tables == 1 { "" } else { ", or --spread pinned (one table a client)" };
    let (held, of) = (counted(statements, "statement"), counted(tables, "table"));
    let clients = terms::clients(own);
    let beside = if beside > 0 { format!(" + {beside} beside") } else { String::new() };
    let sum = format!("{held} × {of} × {clients}{beside} + {now} prepared now");
    let hint = format!(
        "SET GLOBAL max_prepared_stmt_count = {need} or more, or --statements text{pinned}"
    );
    check_limit(findings, ("max_prepared_stmt_count", max), (&sum, need), &hint);
}

fn judge_own(own: &Own, clients: u64, findings: &mut PreflightReport) {
    let (open, shown) = (own.descriptors_open, terms::clients(clients));
    let need = clients + open + SPARE_DESCRIPTORS;
    let sum = format!("{shown} + {open} open now + {SPARE_DESCRIPTORS} spare");
    let hint = format!("raise the hard limit of the shell that starts loadgen: ulimit -Hn {need}");
    let name = "this process's limit of open files";
    check_limit(findings, (name, own.descriptors_max), (&sum, need), &hint);
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let memory = |own: u64| {
        let sum = format!("{shown} of {} KiB + {} for itself", CLIENT_BYTES >> 10, mib(own));
        (sum, mib(clients * CLIENT_BYTES + own))
    };
    // The kernel kills a process above it: nothing can be saved then.
    if let Some(Limit { bytes, file }) = &own.group_max {
        let (sum, need) = memory(OWN_RESIDENT);
        let hint = format!(
            "raise that limit: MemoryMax={need}M of its unit, --memory {need}m of its container"
        );
        let name =
            format!("the memory limit in MiB of this process's control group ({})", file.display());
        check_limit(findings, (&name, mib(*bytes)), (&sum, need), &hint);
    }
    // An allocation that fails ends the process: nothing can be saved then.
    if let Some(max) = own.address_space_max {
        let (sum, need) = memory(OWN_BYTES);
        let kib = need << 10;
        let hint = format!("raise the limit of the shell that starts loadgen: ulimit -v {kib}");
        let name = "this process's memory limit in MiB";
        check_limit(findings, (name, mib(max)), (&sum, need), &hint);
    }
}

/// Problems and warnings, collected instead of stopping at the first.
#[derive(Debug, Default)]
struct PreflightReport {
    problems: Vec<(String, String)>,
    warnings: Vec<Finding>,
}

impl PreflightReport {
    fn problem(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.push((message.into(), hint.into()));
    }

    fn refuse<T>(&mut self, message: String, hint: impl Into<String>) -> Option<T> {
        self.problem(message, hint);
        None
    }

    fn warn(&mut self, found: Finding) {
        self.warnings.push(found);
    }

    fn note_refusal<T>(
        &mut self,
        asked: Asked<T>,
        (refused, tried): (&str, Tried),
        database: &str,
    ) -> Asked<Option<T>> {
        if let Err(failure @ Failure::Server { code, message, .. }) = &asked {
            let hint = hint_in(*code, message, tried, database).unwrap_or_default();
            self.problem(format!("{refused}: {failure}"), hint);
        }
        optional(asked)
    }

    fn conclude(self) -> Result<Vec<Finding>> {
        let message = match self.problems.as_slice() {
            [] => return Ok(self.warnings),
            [(only, _)] => only.clone(),
            several => {
                let listed = (1..).zip(several).map(|(i, (what, _))| format!("\n  {i}. {what}"));
                let listed = listed.collect::<String>();
                format!("{} problems prevent the run:{listed}", several.len())
            }
        };
        let mut error = Error::server(message);
        for (_, hint) in self.problems {
            if !error.hints().contains(&hint) {
                error = error.hint(hint);
            }
        }
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::error::Kind;

    /// Codes of the warnings, or the message and hints.
    fn concluded(judge: impl FnOnce(&mut PreflightReport)) -> Result<String, String> {
        let mut findings = PreflightReport::default();
        judge(&mut findings);
        let warnings = findings.conclude().map_err(|error| error.render())?;
        Ok(warnings.iter().map(Finding::name).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn versions_are_refused_warned_about_or_fine() {
        let judged = |version: &str| {
            concluded(|findings| check_product(&Product::from_version(version, ""), findings))
        };
        for (version, codes) in [
            ("8.4.0", ""),
            ("10.1.23-MariaDB", ""),
            ("5.1.73", "old_server"),
            ("8.0.11-TiDB-v7.5.1", "unknown_server"),
            ("who knows", "unknown_server"),
            ("9.7.0-debug", "server_debug_build"),
        ] {
            assert_eq!(judged(version).as_deref(), Ok(codes), "{version}");
        }
        assert!(judged("5.0.96").is_err_and(|e| e.contains("too old")));
    }

    fn needs() -> Needs<'static> {
        Needs {
            database: "sbtest",
            schema: Schema::Sbtest,
            tables: None,
            rows: None,
            seed: 1,
            clients_max: 256,
            clients_here: 8,
            statements: &|_| (4, 2),
            rows_there: true,
            statements_beside: &|_| 0,
            clients_beside: 0,
            addresses: 1,
            writes: Writes::Update,
            begins: true,
            quiet_max: Duration::from_mins(1),
        }
    }

    #[test]
    fn server_that_does_more_than_a_commit_says_is_refused() {
        let judged = |value: &str| {
            let set = ("completion_type".to_owned(), value.to_owned());
            let texts = control::Variables::from([set]);
            let product = Product::from_version("9.7.0", "");
            concluded(|findings| check_begin(&product, &texts, findings))
        };
        assert_eq!(judged("NO_CHAIN").as_deref(), Ok(""));
        for value in ["CHAIN", "RELEASE"] {
            assert!(judged(value).is_err_and(|shown| shown.contains(value)), "{value}");
        }
    }

    #[test]
    fn clients_beside_take_connections_from_the_measured_ones() {
        let shown = judged_by(&Needs { clients_beside: 6, ..needs() }, &[]).expect_err("refused");
        for part in ["256 clients + 6 beside + 1", " = 267", "--clients up to 250"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }

    #[test]
    fn clients_are_suggested_only_when_some_fit() {
        let shown = judged(&[("max_connections", 5)]).expect_err("refused");
        assert!(shown.contains("SET GLOBAL max_connections") && !shown.contains("--clients"));
    }

    #[test]
    fn first_address_has_a_part_of_the_clients_when_there_are_several() {
        let judged = |clients_max| judged_by(&Needs { clients_max, addresses: 2, ..needs() }, &[]);
        assert_eq!(judged(512).as_deref(), Ok(""));
        let shown = judged(513).expect_err("refused");
        assert!(
            shown.contains("257 clients + 1") && shown.contains("--clients up to 512"),
            "{shown}"
        );
    }

    #[test]
    fn limit_is_kept_when_it_is_beyond_all_numbers_with_several_addresses() {
        let most = [("max_connections", i64::MAX)];
        assert_eq!(judged_by(&Needs { addresses: 3, ..needs() }, &most).as_deref(), Ok(""));
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

    /// Judges numbers that suffice, but for some.
    fn judged_by(needs: &Needs<'_>, others: &[(&str, i64)]) -> Result<String, String> {
        let seen = ENOUGH.iter().chain(others).map(|(name, n)| ((*name).to_owned(), *n)).collect();
        concluded(|findings| judge(&seen, needs, 8, findings))
    }

    fn judged(others: &[(&str, i64)]) -> Result<String, String> {
        judged_by(&needs(), others)
    }

    #[test]
    fn what_just_suffices_is_fine() {
        assert_eq!(judged(&[]).as_deref(), Ok(""));
    }

    #[test]
    fn one_less_is_refused_with_the_arithmetic() {
        let shown = judged(&[("max_connections", 260)]).expect_err("refused");
        for part in [" 260,", "256 clients", " 4 spare = 261", "max_connections = 261", " 255"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let shown = judged(&[("max_prepared_stmt_count", 2050)]).expect_err("refused");
        let sum = "4 statements × 2 tables × 256 clients + 3 prepared now = 2051";
        assert!(shown.contains(sum) && shown.contains("--spread pinned"), "{shown}");
        let shown = judged(&[("max_user_connections", 260)]).expect_err("refused");
        assert!(shown.contains("max_user_connections") && shown.contains(" 260"), "{shown}");
    }

    #[test]
    fn all_that_is_wrong_is_named_at_once() {
        let little = [
            ("max_connections", 100),
            ("max_user_connections", 10),
            ("max_prepared_stmt_count", 0),
        ];
        let shown = judged(&little).expect_err("refused");
        assert!(shown.starts_with("error: 3 problems"), "{shown}");
        assert_eq!(shown.matches("hint: ").count(), 3, "{shown}");
    }

    #[test]
    fn what_is_only_odd_or_unknown_is_a_warning() {
        let odd = [("wait_timeout", 60), ("table_open_cache", 263), ("open_files_limit", 200)];
        let codes = judged(&odd).expect("warnings");
        assert_eq!(codes, "short_wait_timeout small_table_cache few_server_files");
        let unknown = concluded(|findings| judge(&Numbers::new(), &needs(), 8, findings));
        assert_eq!(unknown.expect("warnings"), "unchecked unchecked");
    }

    const UNLIMITED: Own = Own {
        descriptors_max: 1 << 20,
        descriptors_open: 12,
        address_space_max: None,
        group_max: None,
    };

    #[test]
    fn descriptors_of_this_process_count() {
        let judged = |descriptors_max| {
            let own = Own { descriptors_max, ..UNLIMITED };
            concluded(|findings| judge_own(&own, 256, findings))
        };
        assert!(judged(300).is_ok());
        assert!(judged(299).is_err_and(|e| e.contains("ulimit -Hn 300")));
    }

    #[test]
    fn memory_of_this_process_counts_where_it_is_limited() {
        let judged = |mib: u64| {
            let own = Own { address_space_max: Some(mib << 20), ..UNLIMITED };
            concluded(|findings| judge_own(&own, 256, findings))
        };
        assert!(judged(272).is_ok());
        assert!(judged(271).is_err_and(|e| e.contains("= 272")));
        let judged = |mib: u64| {
            let group_max = Some(Limit { bytes: mib << 20, file: "/x/memory.max".into() });
            concluded(|findings| judge_own(&Own { group_max, ..UNLIMITED }, 256, findings))
        };
        assert!(judged(80).is_ok());
        let shown = judged(79).expect_err("refused");
        assert!(shown.contains("(/x/memory.max)") && shown.contains(" 79,"), "{shown}");
        assert!(shown.contains("= 80") && shown.contains("--memory 80m"), "{shown}");
    }

    fn table(mark: Option<(u32, u64)>) -> Table {
        Table {
            kind: "BASE TABLE".to_owned(),
            engine: Some("InnoDB".to_owned()),
            format: "InnoDB Dynamic".to_owned(),
            mark: mark.map(|(seed, rows)| Mark::ready(seed, rows, None)),
            bytes: 1000,
            columns: [("k".to_owned(), true)].into(),
            ..Table::default()
        }
    }

    fn found(numbers: &[u32]) -> Discovered {
        Discovered {
            database: "sbtest".to_owned(),
            schema: Schema::Sbtest,
            tables: numbers.iter().map(|n| (*n, table(Some((1, 100))))).collect(),
        }
    }

    fn chosen(numbers: &[u32], tables: Option<u32>) -> Result<u32> {
        let mut findings = PreflightReport::default();
        let needs = Needs { tables, rows: Some(100), ..needs() };
        let chosen = choose_tables(&found(numbers), &needs, &mut findings);
        findings.conclude()?;
        Ok(chosen.expect("a choice without a problem"))
    }

    #[test]
    fn tables_are_those_that_are_there() {
        assert_eq!(chosen(&[1, 2, 3], None).expect("all"), 3);
        assert_eq!(chosen(&[1, 2, 3], Some(2)).expect("a part"), 2);
        assert_eq!(chosen(&[1, 2, 5], Some(2)).expect("the gap is not used"), 2);
        assert_eq!(chosen(&[1, 2, u32::MAX], None).expect("prepare makes no such table"), 2);
    }

    #[test]
    fn missing_tables_and_gaps_are_named() {
        let error = |numbers, tables| chosen(numbers, tables).expect_err("refused");
        let missing = error(&[1, 4], Some(6));
        let lacks = "--tables 6, but `sbtest` lacks sbtest2, sbtest3, sbtest5, sbtest6";
        assert_eq!(missing.to_string(), lacks);
        assert!(missing.hints()[0].contains("prepare --tables 6 --rows 100"));
        let gap = error(&[1, 2, 5], None);
        assert_eq!(
            gap.to_string(),
            "`sbtest` has tables up to sbtest5, but lacks sbtest3, sbtest4"
        );
        assert!(gap.hints()[0].starts_with("--tables 2 "), "{:?}", gap.hints());
        assert!(error(&[3], None).hints()[0].contains("prepare --tables 3"));
        assert!(error(&[], None).to_string().contains("lacks sbtest1"));
    }

    #[test]
    fn rows_must_agree_or_be_chosen() {
        let choose = |held: &[(u32, u64)], wanted| {
            let mut findings = PreflightReport::default();
            let rows = choose_rows(Schema::Sbtest, held, wanted, &mut findings);
            findings.conclude().map(|_| rows).map_err(|e| e.render())
        };
        let even = [(1, 100), (2, 100)];
        let uneven = [(1, 100), (2, 90), (3, 110)];
        assert_eq!(choose(&even, None), Ok(Some(100)));
        assert_eq!(choose(&uneven, Some(90)), Ok(Some(90)));
        let differ = choose(&uneven, None).expect_err("refused");
        for part in ["sbtest2", "90", "sbtest3", "110", "hint: --rows 90"] {
            assert!(differ.contains(part), "{part}: {differ}");
        }
        let wrong = choose(&even, Some(101)).expect_err("refused");
        assert!(wrong.contains("sbtest1") && wrong.contains("100"), "{wrong}");
        assert!(choose(&[(1, 5), (2, 0)], Some(5)).is_err_and(|e| e.contains("sbtest2")));
    }

    #[test]
    fn one_seed_for_all_or_none() {
        let of = |tables: &[Table]| {
            let used: Vec<_> = (1..).zip(tables).collect();
            let mut findings = PreflightReport::default();
            let dataset = dataset(Schema::Sbtest, &used, 100, &mut findings);
            let warnings = findings.conclude().expect("no problem");
            let codes = warnings.iter().map(|found| found.name().to_owned());
            (dataset, codes.collect::<Vec<_>>())
        };
        let (ours, warnings) = of(&[table(Some((7, 100))), table(Some((7, 100)))]);
        assert_eq!((ours.tables.own, ours.data_seed, ours.data_bytes), (true, Some(7), 2000));
        assert_eq!(warnings, [""; 0]);
        let (mixed, warnings) = of(&[table(Some((7, 100))), table(Some((8, 100)))]);
        assert_eq!((mixed.tables.own, mixed.data_seed), (true, None));
        assert_eq!(warnings, ["mixed_data_seeds"]);
        let engine = Some("MyISAM".to_owned());
        let myisam = Table { engine, columns: BTreeMap::new(), ..table(None) };
        let (foreign, warnings) = of(&[table(Some((7, 100))), myisam]);
        assert_eq!((foreign.tables.own, foreign.data_seed), (false, None));
        assert_eq!(warnings, ["mixed_engines", "k_not_indexed"]);
    }

    #[test]
    fn samples_hold_both_ends_and_no_id_twice() {
        let mut stream = Stream::new(7);
        assert_eq!(sample(&mut stream, 3, 1000), [1, 2, 3]);
        for rows in [1001, 1500, 16_000_000, crate::workload::table::ROWS_MAX] {
            let ids = sample(&mut stream, rows, 1000);
            assert_eq!((ids[0], ids[ids.len() - 1]), (1, rows));
            assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(ids.len() > 600 && ids.len() <= 1000, "{}", ids.len());
        }
    }

    #[test]
    fn one_problem_is_the_message() {
        let mut findings = PreflightReport::default();
        findings.warn(crate::terms::finding!(MixedDataSeeds));
        findings.problem("too few", "more");
        let error = findings.conclude().expect_err("a problem");
        assert_eq!(error.kind(), Kind::Server);
        assert_eq!(error.render(), "error: too few\n\nhint: more\n");
    }

    #[test]
    fn several_are_counted_and_hints_given_once() {
        let mut findings = PreflightReport::default();
        findings.problem("a is missing", "prepare");
        findings.problem("b is missing", "prepare");
        findings.problem("c is small", "raise c");
        let error = findings.conclude().expect_err("problems");
        assert_eq!(
            error.render(),
            "error: 3 problems prevent the run:\n  1. a is missing\n  2. b is missing\n  \
             3. c is small\n\nhint: prepare\nhint: raise c\n"
        );
    }

    #[test]
    fn only_a_lost_connection_ends_the_examination() {
        let mut findings = PreflightReport::default();
        let said = Failure::Server { code: 1142, sqlstate: "42000".into(), message: "no".into() };
        let refused = ("sbtest1", Tried::Inspect);
        assert!(findings.note_refusal::<()>(Err(said), refused, "db").is_ok());
        let lost = Failure::lost("gone");
        assert_eq!(findings.note_refusal::<()>(Err(lost.clone()), refused, "db"), Err(lost));
        let error = findings.conclude().expect_err("a problem");
        assert_eq!(error.to_string(), "sbtest1: error 1142 (42000): no");
        assert_eq!(error.hints(), [hint_in(1142, "", Tried::Inspect, "db").expect("a hint")]);
    }
}
