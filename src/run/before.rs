//! Reaches a server and its tables before a step, and brings it into the state that the step starts from
//! (`--warm`, `--settle`, `--ahi`).

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::{FutureExt as _, TryFutureExt as _};

use crate::engine::run_on_thread;
use crate::error::{Error, Result};
use crate::judge::{self, left, levels_in_words};
use crate::mysql::{
    Asked, ConnectOptions, Dataset, Failure, Fingerprint, Liveness, Needs, Ready, ServerLink,
    Session, Tables, Writes, discover, explain, optional, preflight, query_single,
    server::Product,
    {server, status},
};
use crate::observe::{Host, Probe, ROOT, Whereabouts};
use crate::plan::{Ahi, Plan, Policy, Spread, Warm, limits, units};
use crate::progress::Progress;
use crate::stop::{Stop, or_stop, within};
use crate::summary::{Levels, Prepared, Server, Settled};
use crate::terms::{self, Finding};
use crate::workload::{
    Schema, Statement, StatementKind, Stream, Workload, name_part, quoted, seed_of,
};

pub(super) async fn open(link: &ServerLink, charset: Option<&str>) -> Result<Session> {
    // Boxed: a log-in of the driver's is large.
    or_stop(&link.stop, Box::pin(Session::open(link, charset))).await
}

pub(super) async fn close(session: Option<Session>) {
    if let Some(session) = session {
        session.close(limits::COURTESY).await;
    }
}

/// Waits until it is silent for too long, or a signal comes. Drop the session of a future that was dropped here.
pub(super) async fn ask<T, E: Into<Error>>(
    link: &ServerLink,
    asking: impl Future<Output = std::result::Result<T, E>>,
) -> Result<T> {
    let asking = or_stop(&link.stop, asking.map_err(Into::into));
    within(limits::SILENCE, asking).await.unwrap_or_else(|| {
        let limit = units::duration(limits::SILENCE);
        Err(Error::server(format!("{} has not answered within {limit}", link.target.address))
            .hint("it is stopped, out of reach or very busy")
            .passing(true))
    })
}

/// Does work of any length, as long as the server answers on another connection.
pub(super) async fn with_liveness<T>(
    link: &ServerLink,
    control: &mut Session,
    doing: impl AsyncFnOnce(&mut Session) -> Result<T>,
) -> Result<T> {
    let liveness = Liveness::new(link);
    let _waits = liveness.waits(control);
    liveness.during(doing(control)).await
}

/// A server and its tables as preflight found them: the same for all steps.
pub(super) struct PreparedServer<'a> {
    pub(super) link: &'a ServerLink,
    /// Open between the steps; None if it was lost.
    pub(super) control: Option<Session>,
    /// The server when it was last read, and facts that do not change.
    pub(super) found: Fingerprint,
    pub(super) host: Host,
    pub(super) probe: Option<Probe>,
    pub(super) warnings: Vec<Finding>,
    pub(super) spread: Spread,
    pub(super) dataset: Dataset,
}

impl PreparedServer<'_> {
    pub(super) async fn renew_server(&self, session: &mut Session) -> Result<Server> {
        let mut renewed = self.found.server.clone();
        let what = "read the server's version and variables";
        let reading = server::renew(session, &mut renewed);
        ask(self.link, reading.map_err(|failure| explain(&failure, what))).await?;
        Ok(renewed)
    }

    pub(super) async fn read_levels(&self, session: &mut Session) -> Result<Option<Levels>> {
        let table = self.dataset.tables.schema.name(1);
        let reading = async { optional(status::read_levels(session, &table).await) };
        let what = "read the server's levels";
        ask(self.link, reading.map_err(|failure| explain(&failure, what))).await
    }
}

fn writes(plan: &Plan) -> Writes {
    // An INSERT may update rows that are there.
    let updates = |one: &Statement| {
        one.kind() == StatementKind::Update
            || one.kind() == StatementKind::Other && one.may_write() && !one.inserts()
            || one.sql.to_ascii_uppercase().contains("ON DUPLICATE KEY")
    };
    // An account that only reads may run a script.
    match plan.workloads().flat_map(Workload::statements).any(updates) {
        _ if !plan.writes() => Writes::None,
        true => Writes::Update,
        false => Writes::InsertOrDelete,
    }
}

/// Refuses a server or tables that a sweep cannot run on, and spreads the clients over the tables.
pub(super) async fn preflight(
    plan: &Plan,
    target: &ConnectOptions,
    control: &mut Session,
) -> Result<(Spread, Ready)> {
    if !plan.rules.check_tables {
        let (spread, tables) = assume_tables(plan);
        // A ledger names the contents.
        let ids = discover(control, &target.database, tables.schema).await?.ids();
        let dataset = Dataset { tables, ids, ..Dataset::default() };
        return Ok((spread, Ready { dataset, warnings: Vec::new() }));
    }
    let spread = |tables| plan.spread_over(tables).unwrap_or(Spread::Random);
    let (schema, clients_max) = (plan.schema(), plan.clients_max());
    let clients = clients_max.saturating_add(plan.clients_beside());
    let addresses = target.addresses().count() as u32;
    let needs = Needs {
        database: &target.database,
        schema,
        tables: plan.tables,
        rows: plan.rows,
        seed: plan.seed,
        clients_max,
        clients_beside: plan.clients_beside_at_first(addresses),
        addresses,
        clients_here: if plan.host_threads.is_empty() { clients } else { 0 },
        statements: &|tables| plan.prepared_by_table(spread(tables), tables),
        rows_there: plan.workloads().any(|of| !of.statements().all(Statement::inserts)),
        statements_beside: &|tables| plan.count_prepared_beside(tables, addresses),
        writes: writes(plan),
        begins: plan.workloads().any(Workload::has_begin),
        // Opening so many takes as long, doubled for slow servers.
        quiet_max: Duration::from_secs(2) * clients / limits::CONNECTS_PER_S
            + limits::COURTESY
            + plan.longest_pause(),
    };
    let ready = preflight::check(control, &needs).await?;
    let Tables { count, rows, .. } = ready.dataset.tables;
    let spread = plan.spread_over(count)?;
    for group in &plan.groups {
        let spread = plan.of_group(group).spread_over(count);
        spread.map_err(|error| error.context(format!("group {}", group.name)))?;
    }
    if schema.filled() {
        plan.workloads().try_for_each(|workload| workload.fits(rows))?;
    }
    if count > 0 {
        check_charset(plan.charset.as_deref(), &ready.dataset.formats)?;
    }
    Ok((spread, ready))
}

/// Beginnings of the collations of character sets whose letters have two or four bytes.
const WIDE: [&str; 3] = ["ucs2", "utf16", "utf32"];

/// Refuses to send bytes as they are to tables that take several of them for one letter.
fn check_charset(charset: Option<&str>, formats: &[String]) -> Result<()> {
    let binary = charset.is_some_and(|name| name.eq_ignore_ascii_case("binary"));
    let is_wide = |format: &String| WIDE.iter().any(|name| format.contains(name));
    if binary && formats.iter().any(is_wide) {
        let text = "--charset binary: a letter of these tables has several bytes, and their texts \
                    would become others";
        return Err(Error::server(text).hint("--charset latin1 has a byte a letter, too"));
    }
    Ok(())
}

/// Refuses addresses whose servers have not the version of the first: no step has two.
pub(super) async fn check_versions(link: &ServerLink, first: &Server) -> Result<()> {
    let versions = |server: &Server| [server.version.clone(), server.version_comment.clone()];
    for other in &*link.others {
        let address = &other.target.address;
        let mut session = open(other, None).await?;
        let asking = Product::ask(&mut session)
            .map_err(|failure| explain(&failure, "read the server's version"));
        let asked = ask(other, asking).await.map_err(|e| e.context(address.to_string()))?;
        session.close(limits::COURTESY).await;
        let Product { version, comment, .. } = asked;
        let theirs = [version, comment];
        if theirs != versions(first) {
            let text = [versions(first), theirs].map(|of| of.join(" "));
            let [ours, theirs] = text.map(|of| of.trim_end().to_owned());
            let text = format!("{} has {ours}, and {address} has {theirs}", link.target.address);
            return Err(Error::server(text)
                .hint("a step has one version: measure each as a label of its own"));
        }
    }
    Ok(())
}

/// Takes the tables to be as the plan says, as sysbench does.
pub(crate) fn assume_tables(plan: &Plan) -> (Spread, Tables) {
    let spread = if plan.workload.table_a_client { Spread::Pinned } else { Spread::Random };
    let (count, rows) = (plan.tables.unwrap_or(1), plan.rows.unwrap_or(1));
    (spread, Tables { schema: Schema::Sbtest, count, rows, ..Tables::default() })
}

pub(super) async fn probe(
    prefix: Vec<String>,
    server: Whereabouts,
    same_host: bool,
) -> Result<Option<Probe>> {
    // Not on the thread that keeps time: it reads many files, or waits for a command.
    let looking = run_on_thread(move || match prefix.as_slice() {
        [] => Ok(same_host.then(|| Probe::below(Path::new(ROOT), &server))),
        prefix => {
            let probe = Probe::through(prefix, &server)?;
            Ok(Some(if same_host { probe.beside(&server) } else { probe }))
        }
    });
    let none = "cannot start a thread to read the server's host";
    let hint = "raise the limit on processes (ulimit -u)";
    looking.await.map_err(|_| Error::failed(none).hint(hint))?
}

const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Waits for a server that is gone, if the plan opens lost connections again.
pub(super) struct Patience<'a> {
    policy: Policy,
    stop: &'a Stop,
    began: Instant,
    said: String,
}

impl<'a> Patience<'a> {
    pub(super) fn new(policy: Policy, stop: &'a Stop) -> Patience<'a> {
        Patience { policy, stop, began: Instant::now(), said: String::new() }
    }

    /// Returns false at once if none helps against this error, or if no time is left.
    pub(super) async fn wait_again(
        &mut self,
        error: &Error,
        progress: &mut Progress,
    ) -> Result<bool> {
        let waits = self.policy.reconnects() && error.may_pass();
        if !waits || self.began.elapsed() >= self.policy.patience() {
            return Ok(false);
        }
        let text = error.to_string();
        if text != self.said {
            progress.note(&format!("waiting for the server: {text}"));
            self.said = text;
        }
        pause(self.stop, BETWEEN_LOOKS).await.map(|()| true)
    }
}

pub(super) async fn pause(stop: &Stop, time: Duration) -> Result<()> {
    or_stop(stop, tokio::time::sleep(time).map(Ok)).await
}

const PIECE: u64 = 100_000;
/// Interval between two readings of a server that settles.
const LOOK: Duration = Duration::from_millis(500);
/// Interval after a fill, when there usually is little to flush.
const FLUSH_LOOK: Duration = Duration::from_millis(100);
const FLUSH_WITHIN: Duration = Duration::from_mins(2);
/// Settings that make a server flush everything. Each limit precedes the setting that it bounds.
const FLUSHING: [(&str, u32); 4] = [
    ("innodb_max_dirty_pages_pct_lwm", 0),
    ("innodb_max_dirty_pages_pct", 0),
    // Some servers write 200 pages a second by default.
    ("innodb_io_capacity_max", 20_000),
    ("innodb_io_capacity", 20_000),
];
/// The first ones are for every server, the others for private ones.
const FLUSHING_ALL: usize = 2;
const IDS: usize = 200;
/// Length of the periods whose shares of hits `--ahi warm` compares.
const PERIOD: Duration = Duration::from_secs(1);
/// Periods in turn that must differ by less than [`SETTLED_HITS`].
const PERIODS: u32 = 3;
const SETTLED_HITS: f64 = 0.01;
const AHI_MOST: Duration = Duration::from_mins(2);
const AHI: &str = "innodb_adaptive_hash_index";

pub(super) struct Preparation<'a> {
    pub(super) plan: &'a Plan,
    pub(super) at: &'a PreparedServer<'a>,
    pub(super) control: &'a mut Session,
    pub(super) progress: &'a mut Progress,
}

/// A wait for the server to write out what it holds: its name, and that of what asks for it.
struct Wait {
    doing: &'static str,
    by: &'static str,
    settings: &'static [(&'static str, u32)],
    every: Duration,
    limit: Duration,
}

impl Preparation<'_> {
    pub(super) async fn step(&mut self) -> Result<Option<Prepared>> {
        let before = self.plan.before;
        if before.warm == Warm::None && before.ahi == Ahi::AsIs && before.settle.is_none() {
            return Ok(None);
        }
        let settle = match before.settle {
            Some(limit) => Some(self.settle(limit).await?),
            None => None,
        };
        let ahi_hits = match before.ahi {
            Ahi::AsIs => None,
            Ahi::Cold => self.empty_ahi().await.map(|()| None)?,
            Ahi::Warm => self.fill_ahi().await?,
        };
        let [warm, ahi] = [before.warm.to_string(), before.ahi.to_string()];
        Ok(Some(Prepared { warm, ahi, ahi_hits, settle }))
    }

    async fn settle(&mut self, limit: Duration) -> Result<Settled> {
        let settings = &FLUSHING[..FLUSHING_ALL];
        let wait = Wait { doing: "settling", by: "--settle", settings, every: LOOK, limit };
        self.wait(wait).await
    }

    /// Waits until the server has written the pages that the fill left dirty: no step pays for it.
    pub(super) async fn flush(&mut self) -> Result<Settled> {
        self.progress.restart();
        let wait = Wait {
            doing: "flushing what the fill left",
            by: "the flush after the fill",
            settings: &FLUSHING,
            every: FLUSH_LOOK,
            limit: FLUSH_WITHIN,
        };
        let settled = self.wait(wait).await?;
        self.progress.note(&format!("flushed what the fill left in {:.1} s", settled.took_s));
        Ok(settled)
    }

    /// Waits until little of earlier writes is left to flush and to purge. Servers that flush nothing while
    /// idle are set to keep no dirty pages meanwhile, and set back however the wait ends.
    async fn wait(&mut self, of: Wait) -> Result<Settled> {
        let Wait { doing, by, settings, every, limit } = of;
        let at = self.at;
        // A checkpoint may come later than the pages that it waits for.
        let more = |levels: &Levels| left(levels).more || judge::in_debt(&at.found.server, levels);
        let (began, link, mut orders) = (Instant::now(), self.at.link, Vec::new());
        let first = self.at.read_levels(self.control).await?.unwrap_or_default();
        let mut last = first.clone();
        let waiting = async {
            if more(&last) {
                ask(link, change(settings, self.control, &mut orders)).await?;
            }
            while more(&last) && began.elapsed() < limit {
                let levels = levels_in_words(&last);
                self.progress.update(|| {
                    format!("{doing}: {levels}, {:.0} s", began.elapsed().as_secs_f64())
                });
                pause(&link.stop, every).await?;
                last = self.at.read_levels(self.control).await?.unwrap_or_default();
            }
            Ok(())
        };
        let waited = waiting.await;
        let took_s = began.elapsed().as_secs_f64();
        let done = format!("{by} changed how the server flushes");
        self.put_back(&done, &orders, waited).await?;
        self.progress.clear();
        let unknown = left(&last).unknown;
        let more = more(&last);
        if more {
            let (limit, levels) = (units::duration(limit), levels_in_words(&last));
            self.progress.warn(&format!("{doing}: not done within {limit}, {levels} left"));
        }
        Ok(Settled {
            limit_s: limit.as_secs_f64(),
            took_s,
            complete: !more && unknown.is_empty(),
            unknown: unknown.iter().map(|what| (*what).to_owned()).collect(),
            first,
            last,
        })
    }

    async fn ahi_is_on(&mut self) -> Result<bool> {
        let sql = format!("SELECT @@GLOBAL.{AHI}");
        let reading = query_single(self.control, &sql).map_err(|failure| match failure {
            Failure::Server { .. } => {
                Error::server(format!("--ahi: this server has no {AHI}: {failure}"))
                    .hint("leave --ahi out")
            }
            lost @ Failure::Lost(_) => lost.into(),
        });
        let value = ask(self.at.link, reading).await?;
        Ok(matches!(value.as_deref(), Some("1" | "ON")))
    }

    /// One that is off is empty. However this ends, the index is on again, or the error says that it may be off.
    async fn empty_ahi(&mut self) -> Result<()> {
        if !self.ahi_is_on().await? {
            return Ok(());
        }
        let off = format!("SET GLOBAL {AHI} = OFF");
        let switching = async { Ok::<_, Error>(self.control.execute(&off).await) };
        let switched = match ask(self.at.link, switching).await {
            Ok(Err(failure @ Failure::Server { .. })) => {
                return Err(Error::server(format!("--ahi cold cannot set {AHI}: {failure}")).hint(
                    "GRANT SUPER ON *.* TO the account (MySQL 8: SYSTEM_VARIABLES_ADMIN), or \
                     leave --ahi out",
                ));
            }
            Ok(answer) => answer.map(|_| ()).map_err(Error::from),
            Err(silent) => Err(silent),
        };
        let done = format!("--ahi cold switched {AHI} off");
        self.put_back(&done, &[format!("SET GLOBAL {AHI} = ON")], switched).await
    }

    /// Reads until the share of searches that the index answers is stable; None if the server does not count it.
    async fn fill_ahi(&mut self) -> Result<Option<f64>> {
        if !self.ahi_is_on().await? {
            return Err(Error::server(format!("--ahi warm: {AHI} is OFF"))
                .hint(format!("SET GLOBAL {AHI} = ON, or leave --ahi out")));
        }
        let mut stream = Stream::new(seed_of(&[self.plan.seed, name_part("adaptive hash index")]));
        let (tables, began) = (self.at.dataset.tables, Instant::now());
        let (mut counted, mut share, mut steady) =
            (ask(self.at.link, status::read_searches(self.control)).await?, None::<f64>, 0);
        while steady < PERIODS && began.elapsed() < AHI_MOST {
            let period = Instant::now();
            while period.elapsed() < PERIOD {
                let number = stream.below(tables.count.into()) as u32 + 1;
                let ids = (0..IDS).map(|_| (stream.below(tables.rows) + 1).to_string());
                let ids = ids.collect::<Vec<_>>().join(",");
                let table = quoted(&tables.schema.name(number));
                let sql = format!("SELECT COUNT(*) FROM {table} WHERE id IN ({ids})");
                ask(self.at.link, self.control.query(&sql)).await?;
            }
            let now = ask(self.at.link, status::read_searches(self.control)).await?;
            let period_hits = now.zip(counted).and_then(|(now, then)| {
                let [hits, others] = [now.0.saturating_sub(then.0), now.1.saturating_sub(then.1)];
                (hits + others > 0).then(|| hits as f64 / (hits + others) as f64)
            });
            // Nothing counts the pages: only time helps.
            let as_before = |now: f64| share.is_some_and(|then| (then - now).abs() < SETTLED_HITS);
            steady = if period_hits.is_none_or(as_before) { steady + 1 } else { 0 };
            (share, counted) = (period_hits, now);
            self.progress.update(|| {
                let hits =
                    period_hits.map_or_else(String::new, |s| format!(", {:.0} % hits", s * 100.0));
                let s = began.elapsed().as_secs_f64();
                format!("filling the adaptive hash index: {s:.0} s{hits}")
            });
        }
        self.progress.clear();
        Ok(share)
    }

    /// Undoes a change of the server, also after an error; a signal does not cut this short.
    async fn put_back(&mut self, done: &str, orders: &[String], waited: Result<()>) -> Result<()> {
        let link = self.at.link;
        let still = ServerLink { stop: Stop::default(), ..link.clone() };
        let usable = self.control.is_usable();
        if orders.is_empty() || usable && ask(&still, set(self.control, orders)).await.is_ok() {
            return waited;
        }
        // The old connection may still have an unread answer.
        let mut patience = Patience::new(self.plan.policy, &link.stop);
        let why = loop {
            let again = ask(&still, async {
                let mut other = Box::pin(open(&still, None)).await?;
                set(&mut other, orders).await?;
                other.close(limits::COURTESY).await;
                Ok::<_, Error>(())
            });
            let Err(why) = again.await else { return waited };
            // A signal ends the wait for a server that is gone.
            if !matches!(patience.wait_again(&why, self.progress).await, Ok(true)) {
                break why;
            }
        };
        let text = format!("{done}, and loadgen cannot undo this: {why}");
        let error = match link.stop.check().and(waited) {
            Ok(()) => Error::server(text),
            // A further attempt would take the changed values for the server's own.
            Err(error) => error.context(text).passing(false),
        };
        Err(error.hint(format!("to undo: {}", orders.join("; "))))
    }
}

/// Reads all rows of the tables, and the index of their second column, through the buffer pool.
pub(super) async fn read_all(
    tables: Tables,
    control: &mut Session,
    progress: &mut Progress,
) -> Result<()> {
    let (began, rows) = (Instant::now(), tables.held.unwrap_or(tables.rows));
    let (count, shown) = (terms::counted(tables.count, "table"), units::count(rows));
    progress.note(&format!("reading all rows once: {count} of {shown} rows"));
    progress.restart();
    for number in 1..=tables.count {
        let reads = tables.schema.reads(number, rows, PIECE);
        for (done, sql) in reads.iter().enumerate() {
            progress.update(|| {
                let tables_done = f64::from(number - 1) + done as f64 / reads.len() as f64;
                let (name, part) =
                    (tables.schema.name(number), tables_done / f64::from(tables.count));
                let (percent, s) = (part * 100.0, began.elapsed().as_secs_f64());
                format!("reading all rows: {name}, {percent:.0} % of all, {s:.0} s")
            });
            control.query(sql).await?;
        }
    }
    progress.clear();
    progress.note(&format!("all rows were read in {:.1} s", began.elapsed().as_secs_f64()));
    Ok(())
}

/// Changes the settings that the account may change; adds the orders that undo it.
async fn change(
    settings: &[(&str, u32)],
    control: &mut Session,
    orders: &mut Vec<String>,
) -> Asked<()> {
    let mut values = Vec::new();
    for (name, wanted) in settings {
        let value =
            optional(query_single(control, &format!("SELECT @@GLOBAL.{name}")).await)?.flatten();
        values.extend(value.map(|value| (name, wanted, value)));
    }
    // Read all before the first is changed: a server may change one with another.
    for (name, wanted, value) in values {
        if name.contains("io_capacity")
            && value.parse().is_ok_and(|now: u64| now >= u64::from(*wanted))
        {
            continue;
        }
        // Noted before the change: an interrupted statement may have taken effect.
        orders.insert(0, format!("SET GLOBAL {name} = {value}"));
        if optional(control.execute(&format!("SET GLOBAL {name} = {wanted}")).await)?.is_none() {
            orders.remove(0);
        }
    }
    Ok(())
}

async fn set(session: &mut Session, orders: &[String]) -> Asked<()> {
    for order in orders {
        session.execute(order).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_sessions_are_refused_where_a_letter_has_several_bytes() {
        let refused = |charset: Option<&str>, collation: &str| {
            let format = format!("InnoDB Dynamic {collation}, PRIMARY BTREE (id)");
            check_charset(charset, &[format]).is_err()
        };
        assert!(refused(Some("BINARY"), "utf16le_general_ci"));
        assert!(refused(Some("binary"), "ucs2_general_ci"));
        assert!(!refused(Some("binary"), "utf8mb4_bin") && !refused(Some("latin1"), "utf32_bin"));
        assert!(!refused(None, "utf16_general_ci"));
    }

    #[test]
    fn tables_are_taken_for_the_plan_s_when_they_are_not_checked() {
        use crate::canned::{Canned, Listen, Script};
        use crate::plan::Rules;
        use crate::plan::knobs::Knobs;

        let server = Canned::start(Script::default(), Listen::Port(0)).expect("a server");
        let link = ServerLink::to(ConnectOptions::canned(server.port()), &Stop::default());
        let link = link.expect("options");
        let workload = crate::workload::named("point-select").expect("built in");
        let checked = Knobs::default().resolve(workload, 1).expect("a plan");
        let rules = Rules { check_tables: false, ..Rules::loadgen() };
        let unchecked = Plan { rules, tables: Some(3), rows: Some(7), ..checked.clone() };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut control = Session::open(&link, None).await.expect("a session");
            let found = preflight(&unchecked, &link.target, &mut control).await;
            let tables = found.expect("nothing is checked").1.dataset.tables;
            assert_eq!((tables.count, tables.rows), (3, 7));
            assert!(preflight(&checked, &link.target, &mut control).await.is_err());
        });
    }
}
