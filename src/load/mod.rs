//! Create, fill, index, verify and drop the tables.
//!
//! ```text
//! survey ─▶ decide ─▶ create (state=filling) ─▶ fill in chunks ─▶ index ─▶ check ─▶ state=ready
//! ```
//!
//! The mark in a table's COMMENT is the whole state: the next fill reads there what was meant, counts the rows
//! and completes them. `docs/reference/tables.md` has the measurements behind the choices.

mod connect;
pub mod dump;
mod fill;
pub(crate) mod reload;
mod source;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use self::connect::{AGAIN, Doing, control, drop_table, explain, open};
pub use self::fill::Filled;
use self::fill::{Choice, Chunks, Filling, chunk_rows, fill, load_data, ready_mark};
use crate::error::{Error, Kind, Result};
use crate::mysql::{
    Discovered, Failure, Liveness, ServerLink, Session, Table, discover, exposure, names, pairs,
};
use crate::plan::experiment::{Dataset, Method};
use crate::plan::value::JOBS_MAX;
use crate::progress::Progress;
use crate::stop::COURTESY;
use crate::terms::{counted, named as listed, units};
use crate::workload::{Mark, ROWS_MAX, Schema, State, TABLES_MAX};

/// Makes and fills the tables, or completes an interrupted fill. Needs a `current_thread` runtime.
pub async fn prepare(to: &ServerLink, job: &Dataset, progress: &mut Progress) -> Result<Filled> {
    check(job)?;
    let server = Arc::new(Liveness::new(to));
    let ready = server.during(set_up(job, &server, progress)).await;
    let (control, made, filling) = ready.map_err(|e| match e.kind() {
        Kind::Interrupted | Kind::Terminated => e.hint(AGAIN),
        _ => e,
    })?;
    if let Some(filling) = filling {
        return fill(filling, control, progress).await.map_err(|e| name_completion(e, job.force));
    }
    progress.note(&if job.schema.filled() {
        "nothing to do: the tables are filled".to_owned()
    } else {
        format!("{}, empty: the workload fills them", counted(job.tables, "table"))
    });
    control.close(COURTESY).await;
    Ok(Filled { tables: job.tables, filled: made, ..Filled::default() })
}

/// The hint to a fill that was interrupted after it had dropped the tables.
pub(crate) const UNFORCED: &str = "the same command without --force completes the fill";

/// Replaces the hint to the same command, which by `--force` would drop the rows that are there.
fn name_completion(error: Error, force: bool) -> Error {
    if force { error.instead(AGAIN, UNFORCED) } else { error }
}

fn check(job: &Dataset) -> Result<()> {
    let filled = job.schema.filled();
    if !filled && job.rows > 0 {
        let text = format!("--rows, but tables of the schema {} stay empty", job.schema);
        return Err(Error::usage(text).hint("leave --rows out"));
    }
    for (flag, n, max) in [
        ("--tables", u64::from(job.tables), u64::from(TABLES_MAX)),
        ("--rows", job.rows.max(u64::from(!filled)), ROWS_MAX),
        ("--jobs", u64::from(job.jobs.unwrap_or(1)), u64::from(JOBS_MAX)),
    ] {
        if !(1..=max).contains(&n) {
            let max = units::count(max);
            return Err(Error::usage(format!("{flag} {n} is not within 1 to {max}")));
        }
    }
    job.charset.as_ref().map_or(Ok(()), |charset| refuse_binary(job.schema, charset, "--charset"))
}

const DATABASE_CHARSET: &str = "the database's character set";

/// Refuses the character set whose CHAR is BINARY: no text would be read as it was written.
fn refuse_binary(schema: Schema, charset: &str, named_by: &str) -> Result<()> {
    if schema != Schema::Sbtest || !charset.eq_ignore_ascii_case("binary") {
        return Ok(());
    }
    let text = format!("{named_by} binary would pad the texts of tables with zero bytes");
    Err(Error::usage(text).hint("latin1 has a byte a character, too"))
}

/// Refuses to make tables in the character set of their database, if that changes texts.
fn check_database(charset: &str, steps: &Steps, job: &Dataset) -> Result<()> {
    let makes = |step: &Step| !matches!(step, Step::Keep | Step::Complete);
    if job.charset.is_some() || !steps.values().any(makes) {
        return Ok(());
    }
    let refused = refuse_binary(job.schema, charset, DATABASE_CHARSET);
    refused.map_err(|error| error.hint("--charset names another for these tables"))
}

const OFF: &str = "local_infile is OFF";

fn refuse_load_data(why: &str) -> Error {
    Error::server(format!("--fill load-data: {why}"))
        .hint("SET GLOBAL local_infile = 1, or leave --fill out: INSERT does it too")
}

/// Refuses a method that the server's setting forbids, before a table is dropped for it.
fn check_method(off: bool, steps: &Steps, job: &Dataset) -> Result<()> {
    let fills = job.schema.filled() && steps.values().any(|step| *step != Step::Keep);
    if off && fills && job.fill == Some(Method::LoadData) {
        return Err(refuse_load_data(OFF));
    }
    Ok(())
}

/// Connections a table from which parallel INSERTs are faster than LOAD DATA in turn: an INSERT costs the
/// server up to twice the CPU, and the default is two connections a core.
const INSERT_PAYS: u64 = 8;

/// Connections a table if the server allows one LOAD DATA at a time: one more is always ready.
const IN_TURN: u32 = 2;

/// Chooses the method. `refusal` is the server's reason against LOAD DATA LOCAL. With an innodb_autoinc_lock_mode
/// below 2 LOAD DATA locks the table's AUTO_INCREMENT to its end; INSERTs of given ids do not.
fn choose(
    wanted: Option<Method>,
    refusal: Option<&str>,
    autoinc_mode: u64,
    tables: u64,
    jobs: u64,
) -> Result<Choice> {
    let in_turn = autoinc_mode < 2;
    let insert = |why| Ok(Choice { method: Method::Insert, crowd: u32::MAX, why });
    match (wanted, refusal) {
        (Some(Method::Insert), _) => insert(None),
        (Some(Method::LoadData), Some(refusal)) => Err(refuse_load_data(refusal)),
        (None, Some(OFF)) => insert(Some(format!(
            "{OFF}; SET GLOBAL local_infile = 1 allows LOAD DATA LOCAL, which is faster"
        ))),
        (None, Some(refusal)) => insert(Some(refusal.to_owned())),
        (None, None) if in_turn && jobs >= tables * INSERT_PAYS => insert(Some(format!(
            "innodb_autoinc_lock_mode = {autoinc_mode} lets LOAD DATA into a table over one \
             connection at a time"
        ))),
        (_, None) => {
            let crowd = if in_turn { IN_TURN } else { u32::MAX };
            Ok(Choice { method: Method::LoadData, crowd, why: None })
        }
    }
}

/// Makes the missing tables. Returns the session that keeps a second prepare out, the number of tables that were not
/// finished before, and those to fill.
async fn set_up(
    job: &Dataset,
    server: &Arc<Liveness>,
    progress: &mut Progress,
) -> Result<(Session, u32, Option<Filling>)> {
    let mut control = control(server, progress).await?;
    let waits = server.waits(&control);
    if let Some(warning) = exposure(&mut control, &server.link.target).await? {
        progress.warn_once(&warning.to_string());
    }
    let job = Dataset { charset: charset(&mut control, job).await?, ..job.clone() };
    let found = discover(&mut control, &server.link.target.database, job.schema).await?;
    let steps = decide(&found, &job)?;
    let sql = "SHOW VARIABLES WHERE Variable_name IN ('character_set_database', \
               'max_allowed_packet', 'local_infile', 'innodb_autoinc_lock_mode')";
    let variables = pairs(&mut control, sql).await.doing("reading variables")?;
    let value = |name: &str| variables.get(name).map_or("", String::as_str);
    check_database(value("character_set_database"), &steps, &job)?;
    let off = !matches!(value("local_infile"), "ON" | "1");
    check_method(off, &steps, &job)?;
    for note in notes(&found, value("character_set_database"), &steps, &job) {
        progress.note(&note);
    }
    let (mut tables, mut made) = (Vec::new(), 0);
    for (number, step) in steps {
        progress.update(|| format!("creating {} of {}", job.schema.name(number), job.tables));
        create(&mut control, number, step, &job).await?;
        made += u32::from(step != Step::Keep);
        if step != Step::Keep && job.schema.filled() {
            tables.push((number, step == Step::Complete));
        }
    }
    drop(waits);
    let Some((first, _)) = tables.first() else { return Ok((control, made, None)) };
    let refusal = if job.fill == Some(Method::Insert) {
        None
    } else if off {
        Some(OFF.to_owned())
    } else {
        refusal(server, job.schema, *first).await?
    };
    let (jobs, count) = (job.jobs.unwrap_or_else(default_jobs), tables.len() as u64);
    // Without an answer: the most careful mode, and the smallest default packet of all servers.
    let autoinc_mode = value("innodb_autoinc_lock_mode").parse().unwrap_or(1);
    let packet = value("max_allowed_packet").parse().unwrap_or(1 << 20);
    let packet = packet.min(server.link.opts.max_allowed_packet().unwrap_or(usize::MAX));
    let choice = choose(job.fill, refusal.as_deref(), autoinc_mode, count, u64::from(jobs))?;
    let jobs = u64::from(jobs).min(count.saturating_mul(u64::from(choice.crowd)));
    let chunk_rows = chunk_rows(count, job.rows, jobs);
    let chunks = Mutex::new(Chunks::new(tables.len(), job.rows, chunk_rows, choice.crowd));
    let (server, jobs, so_far) = (Arc::clone(server), jobs as u32, Mutex::default());
    let filling = Filling { server, job, tables, choice, jobs, packet, chunks, so_far };
    Ok((control, made, Some(filling)))
}

/// Two a core keep the server busy while one makes rows; more than sixteen compete for its locks.
pub(crate) fn default_jobs() -> u32 {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    (2 * cores as u32).clamp(2, 16)
}

async fn charset(session: &mut Session, job: &Dataset) -> Result<Option<String>> {
    let Some(wanted) = &job.charset else { return Ok(None) };
    let sql = "SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS ORDER BY 1";
    let rows = session.query(sql).await.doing("listing character sets")?;
    let known: Vec<String> = rows.into_iter().flatten().flatten().collect();
    let is_name = |name: &&String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match known.iter().filter(is_name).find(|name| same_charset(name, wanted)) {
        Some(name) => Ok(Some(name.clone())),
        None => Err(Error::usage(format!("--charset '{wanted}' is none of this server's"))
            .hint(format!("it has {}", known.join(", ")))),
    }
}

/// Drops tables to begin again, and creates missing ones, marked as unfinished.
async fn create(session: &mut Session, number: u32, step: Step, job: &Dataset) -> Result<()> {
    let name = job.schema.name(number);
    match step {
        Step::Keep | Step::Complete => return Ok(()),
        Step::Restart | Step::Refill => drop_table(session, &name).await?,
        Step::Create => {}
    }
    let mark = if job.schema.filled() { Mark::filling } else { ready_mark };
    let mark = mark(job.data_seed, job.rows);
    let sql = job.schema.create(number, job.rows, &mark, job.charset.as_deref());
    session.execute(&sql).await.doing(&format!("creating {name}")).map(drop)
}

/// Tries a LOAD DATA LOCAL without a row; returns the server's reason against it.
async fn refusal(server: &Liveness, schema: Schema, table: u32) -> Result<Option<String>> {
    // Its own session: if the server does not ask for the stream, the driver keeps it for a later statement.
    let session = open(server).await?;
    let _waits = server.waits(&session);
    let nothing = Box::pin(futures_util::stream::empty());
    match session.load_data(&load_data(schema, table, "latin1"), nothing).await {
        Ok((session, _)) => {
            session.close(COURTESY).await;
            Ok(None)
        }
        Err(refused @ Failure::Server { .. }) => Ok(Some(refused.to_string())),
        Err(lost) => Err(explain(&lost).context("trying LOAD DATA LOCAL")),
    }
}

const NAMED: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Create,
    Complete,
    /// Drop it and begin again, after an interrupted fill with other parameters.
    Restart,
    Refill,
    Keep,
}

type Steps = BTreeMap<u32, Step>;

#[derive(Default)]
struct Refused {
    by_reason: BTreeMap<String, Vec<String>>,
    foreign: bool,
    ours: bool,
}

impl Refused {
    /// Adds a table; `ours` if `--force` drops it.
    fn add(&mut self, name: String, why: String, ours: bool) {
        self.by_reason.entry(why).or_default().push(name);
        (self.foreign, self.ours) = (self.foreign || !ours, self.ours || ours);
    }

    /// Returns an error that names them all. `made_by` made the tables that `force` would drop.
    fn conclude(self, what: &str, made_by: &str, force: &str) -> Result<()> {
        if self.by_reason.is_empty() {
            return Ok(());
        }
        let lines = self.by_reason.into_iter();
        let lines = lines.map(|(why, names)| format!("\n  {}: {why}", listed(names, NAMED, ", ")));
        let mut error = Error::data(format!("{what}:{}", lines.collect::<String>()));
        if self.foreign {
            error = error.hint(format!(
                "tables that {made_by} did not make are never touched: DROP them yourself, or take \
                 another --database"
            ));
        }
        Err(if self.ours { error.hint(force).allow_force() } else { error })
    }
}

/// The hint to tables of prepare's that are not those wanted.
pub(crate) const FILL_AGAIN: &str = "--force drops the tables that prepare made and fills them \
                                     again; or take another --database";

fn decide(found: &Discovered, job: &Dataset) -> Result<Steps> {
    let (mut steps, mut refused) = (Steps::new(), Refused::default());
    for number in 1..=job.tables {
        let table = found.tables.get(&number);
        match step(table, job) {
            Ok(step) => drop(steps.insert(number, step)),
            Err(why) => {
                let ours = table.is_some_and(|table| table.mark.is_some());
                refused.add(job.schema.name(number), why, ours);
            }
        }
    }
    let what = format!("prepare would overwrite what is in `{}`", found.database);
    refused.conclude(&what, "prepare", FILL_AGAIN).map(|()| steps)
}

/// Decides what to do with one table, or returns why not to touch it.
fn step(table: Option<&Table>, job: &Dataset) -> Result<Step, String> {
    let Some(table) = table else { return Ok(Step::Create) };
    let Some(mark) = table.mark else {
        let view = "no table, but a view or the like";
        return Err(if table.is_table() { "not made by loadgen prepare" } else { view }.to_owned());
    };
    let charset = table.charset.as_deref().unwrap_or("unknown");
    let other_charset = job.charset.as_ref().filter(|wanted| !same_charset(wanted, charset));
    let same = mark.rows == job.rows && mark.seed == job.data_seed && other_charset.is_none();
    match (mark.state, same, job.force) {
        (_, _, true) => Ok(Step::Refill),
        (State::Ready, true, false) => Ok(Step::Keep),
        (State::Filling, true, false) => Ok(Step::Complete),
        (State::Filling, false, false) => Ok(Step::Restart),
        (State::Ready, false, false) => {
            let described = |rows, seed, charset: &str| {
                let set = other_charset.map(|_| format!(", character set {charset}"));
                let rows = units::count(rows);
                format!("{rows} rows with data seed {seed}{}", set.unwrap_or_default())
            };
            let is = described(mark.rows, mark.seed, charset);
            let wanted = other_charset.map_or("", String::as_str);
            Err(format!("{is}, asked for {}", described(job.rows, job.data_seed, wanted)))
        }
    }
}

/// Lists notes on the steps. New tables get the database's character set, which finished ones may not have.
fn notes(found: &Discovered, database_charset: &str, steps: &Steps, job: &Dataset) -> Vec<String> {
    let mut notes = Vec::new();
    for (wanted, what) in [
        (Step::Keep, "finished before"),
        (Step::Complete, "completing an interrupted fill"),
        (Step::Restart, "an interrupted fill with other parameters is begun again"),
        (Step::Refill, "dropping and filling again (--force)"),
    ] {
        let steps_alike = steps.iter().filter(|(_, step)| **step == wanted);
        let tables: Vec<u32> = steps_alike.map(|(table, _)| *table).collect();
        let Some(first) = tables.first().map(|first| &found.tables[first]) else { continue };
        let mut note = format!("{what}: {}", names(job.schema, tables));
        if wanted == Step::Keep {
            note += &format!(" ({} rows, data seed {})", units::count(job.rows), job.data_seed);
        }
        notes.push(note);
        if let (Step::Keep, None, Some(charset)) = (wanted, &job.charset, &first.charset)
            && !same_charset(charset, database_charset)
        {
            notes.push(format!(
                "their character set is {charset}; new tables of this database get \
                 {database_charset}"
            ));
        }
    }
    notes
}

/// Returns whether two names mean the same character set: `utf8` is `utf8mb3`.
fn same_charset(one: &str, other: &str) -> bool {
    let utf8 = |name: &str| ["utf8", "utf8mb3"].iter().any(|utf8| name.eq_ignore_ascii_case(utf8));
    one.eq_ignore_ascii_case(other) || (utf8(one) && utf8(other))
}

/// Table numbers by kind, without empty kinds.
pub type Numbers = BTreeMap<Schema, Vec<u32>>;

pub fn named(tables: &Numbers) -> String {
    let some = tables.iter().map(|(schema, numbers)| names(*schema, numbers.iter().copied()));
    some.collect::<Vec<_>>().join(", ")
}

/// Lists the tables with loadgen's mark, finished or not; load's own only if `loaded`.
pub async fn marked(link: &ServerLink, loaded: bool) -> Result<Numbers> {
    let server = Liveness::new(link);
    let looking = async {
        let mut session = Session::open(link, None).await?;
        let _waits = server.waits(&session);
        let (ours, _) = list_tables(&mut session, &link.target.database, loaded).await?;
        session.close(COURTESY).await;
        Ok(ours)
    };
    server.during(looking).await
}

/// Lists tables with a mark, those of a load only if it is complete, and tables without one.
async fn list_tables(
    session: &mut Session,
    database: &str,
    loaded: bool,
) -> Result<(Numbers, Numbers)> {
    let (mut ours, mut foreign) = (Numbers::new(), Numbers::new());
    for schema in Schema::ALL {
        for (n, table) in discover(session, database, schema).await?.tables {
            match table.mark {
                Some(mark) if loaded || !mark.loaded => ours.entry(schema).or_default().push(n),
                Some(_) => {}
                None => foreign.entry(schema).or_default().push(n),
            }
        }
    }
    Ok((ours, foreign))
}

fn name_rest(error: Error) -> Error {
    error.instead(AGAIN, "the same command again drops what is left")
}

/// Drops the tables with loadgen's mark, and nothing else. Lists dropped and remaining ones.
pub async fn cleanup(link: &ServerLink, progress: &mut Progress) -> Result<(Numbers, Numbers)> {
    let server = Liveness::new(link);
    let cleaning = async {
        let mut session = control(&server, progress).await?;
        let _waits = server.waits(&session);
        if let Some(warning) = exposure(&mut session, &link.target).await? {
            progress.warn_once(&warning.to_string());
        }
        let (dropped, left) = list_tables(&mut session, &link.target.database, true).await?;
        let names_of = |(schema, numbers): (&Schema, &Vec<u32>)| -> Vec<String> {
            numbers.iter().map(|number| schema.name(*number)).collect()
        };
        let all: Vec<String> = dropped.iter().flat_map(names_of).collect();
        for (done, name) in all.iter().enumerate() {
            progress.update(|| format!("dropping: {done} of {} tables", all.len()));
            drop_table(&mut session, name).await?;
        }
        session.close(COURTESY).await;
        Ok((dropped, left))
    };
    let (dropped, left) = server.during(cleaning).await.map_err(name_rest)?;
    progress.clear();
    progress.note(&match dropped.len() {
        0 => format!("no table of prepare's in {}", link.target.database),
        _ => format!("dropped {}", named(&dropped)),
    });
    if !left.is_empty() {
        progress.note(&format!("left alone, not made by prepare: {}", named(&left)));
    }
    Ok((dropped, left))
}

#[cfg(test)]
mod tests {
    use super::Method::{Insert, LoadData};
    use super::*;

    const OFF: Option<&str> = Some(super::OFF);

    fn method(
        fill: Option<Method>,
        refusal: Option<&str>,
        mode: u64,
        tables: u64,
        jobs: u64,
    ) -> Method {
        choose(fill, refusal, mode, tables, jobs).expect("a choice").method
    }

    #[test]
    fn load_data_is_taken_where_it_is_allowed_and_fast() {
        assert_eq!(method(None, None, 2, 1, 16), LoadData);
        assert_eq!(method(None, None, 1, 8, 16), LoadData);
        assert_eq!(method(None, None, 1, 1, 4), LoadData);
        assert_eq!(method(None, None, 1, 1, 8), Insert);
        assert_eq!(method(None, OFF, 2, 8, 8), Insert);
        assert_eq!(method(Some(Insert), None, 2, 8, 8), Insert);
        assert_eq!(method(Some(LoadData), None, 1, 1, 64), LoadData);
    }

    #[test]
    fn a_choice_says_why_and_how_to_get_the_faster_one() {
        let why = choose(None, OFF, 2, 8, 8).expect("a choice").why.expect("a reason");
        assert!(why.contains("SET GLOBAL local_infile"), "{why}");
        let denied = choose(None, Some("INSERT command denied"), 2, 8, 8).expect("a choice").why;
        assert_eq!(denied.as_deref(), Some("INSERT command denied"));
        let error = choose(Some(LoadData), OFF, 2, 8, 8).expect_err("refused");
        assert_eq!(error.kind(), Kind::Server);
        assert!(error.render().contains("SET GLOBAL local_infile"));
        assert_eq!(choose(None, None, 2, 8, 8).expect("a choice").why, None);
    }

    #[test]
    fn load_data_takes_turns_in_a_table_below_mode_2() {
        let crowd = |mode| choose(Some(LoadData), None, mode, 1, 4).expect("a choice").crowd;
        assert_eq!((crowd(0), crowd(1), crowd(2)), (2, 2, u32::MAX));
    }
}

#[cfg(test)]
mod table_tests {
    use super::*;

    fn job() -> Dataset {
        Dataset { tables: 1, rows: 1000, data_seed: 1, ..Dataset::default() }
    }

    fn found(tables: &[(u32, Option<Mark>)]) -> Discovered {
        let (kind, charset) = ("BASE TABLE".to_owned(), Some("utf8mb4".to_owned()));
        let table =
            |mark| Table { kind: kind.clone(), charset: charset.clone(), mark, ..Table::default() };
        let (database, schema) = ("sbtest".to_owned(), Schema::Sbtest);
        let tables = tables.iter().map(|(n, mark)| (*n, table(*mark))).collect();
        Discovered { database, schema, tables }
    }

    #[test]
    fn charset_that_changes_texts_is_refused() {
        let of = |schema, charset: &str| {
            let charset = Some(charset.to_owned());
            check(&Dataset { schema, charset, ..job() }).map_err(|error| error.kind())
        };
        assert_eq!(of(Schema::Sbtest, "Binary"), Err(Kind::Usage));
        assert_eq!([of(Schema::Sbtest, "ucs2"), of(Schema::Phptest, "binary")], [Ok(()), Ok(())]);
        let latin = Dataset { charset: Some("latin1".to_owned()), ..job() };
        let by_database = |step, job: &Dataset| {
            let steps = Steps::from([(1, Step::Keep), (2, step)]);
            check_database("binary", &steps, job).map_err(|error| error.kind())
        };
        assert_eq!(by_database(Step::Create, &job()), Err(Kind::Usage));
        let fine = [by_database(Step::Complete, &job()), by_database(Step::Create, &latin)];
        assert_eq!(fine, [Ok(()), Ok(())]);
    }

    #[test]
    fn forbidden_method_is_refused_before_a_table_is_dropped() {
        let refused = |off, step, fill| {
            let steps = Steps::from([(1, Step::Keep), (2, step)]);
            check_method(off, &steps, &Dataset { fill, ..job() }).is_err()
        };
        let load_data = Some(Method::LoadData);
        assert!(refused(true, Step::Refill, load_data));
        assert!(!refused(true, Step::Keep, load_data) && !refused(false, Step::Refill, load_data));
        assert!(!refused(true, Step::Refill, None));
    }

    #[test]
    fn interrupted_fill_is_completed_without_force() {
        let hints = |force| name_completion(Error::failed("lost").hint(AGAIN), force);
        assert_eq!(hints(false).hints(), [AGAIN]);
        assert_eq!(hints(true).hints(), [UNFORCED]);
        let rest = name_rest(Error::failed("lost").hint(AGAIN));
        assert!(rest.hints()[0].ends_with("drops what is left"));
    }

    fn step(mark: Option<Mark>, job: &Dataset) -> Result<Step, String> {
        super::step(Some(&found(&[(1, mark)]).tables[&1]), job)
    }

    struct Kept {
        seed: u32,
        rows: u64,
        state: State,
        job: Dataset,
        expected: Step,
    }

    #[test]
    fn each_table_gets_the_right_step() {
        use State::{Filling, Ready};
        let force = Dataset { force: true, ..job() };
        let latin = Dataset { charset: Some("latin1".to_owned()), ..job() };
        for Kept { seed, rows, state, job, expected } in [
            Kept { seed: 1, rows: 1000, state: Ready, job: job(), expected: Step::Keep },
            Kept { seed: 1, rows: 1000, state: Filling, job: job(), expected: Step::Complete },
            Kept { seed: 2, rows: 1000, state: Filling, job: job(), expected: Step::Restart },
            Kept { seed: 1, rows: 999, state: Filling, job: job(), expected: Step::Restart },
            Kept { seed: 1, rows: 1000, state: Filling, job: latin, expected: Step::Restart },
            Kept { seed: 1, rows: 1000, state: Ready, job: force.clone(), expected: Step::Refill },
            Kept { seed: 2, rows: 7, state: Ready, job: force.clone(), expected: Step::Refill },
            Kept { seed: 2, rows: 7, state: Filling, job: force, expected: Step::Refill },
        ] {
            let mark = Mark { seed, rows, state, id: None, loaded: false };
            assert_eq!(step(Some(mark), &job), Ok(expected), "{mark:?} {job:?}");
        }
        assert_eq!(super::step(None, &job()), Ok(Step::Create));
    }

    #[test]
    fn what_is_refused_names_both_sides() {
        let ready = |rows| Some(Mark::ready(1, rows, None));
        let why = step(ready(16_000_000), &job()).expect_err("refused");
        assert_eq!(why, "16M rows with data seed 1, asked for 1k rows with data seed 1");
        let latin = Dataset { charset: Some("latin1".to_owned()), ..job() };
        let why = step(ready(1000), &latin).expect_err("refused");
        assert!(why.contains("utf8mb4") && why.contains("latin1"), "{why}");
        let force = Dataset { force: true, ..job() };
        assert!(step(None, &force).is_err(), "never, whatever the flags");
    }

    #[test]
    fn all_conflicts_are_named_at_once() {
        let ready = |rows| Some(Mark::ready(1, rows, None));
        let seen = found(&[(1, None), (2, ready(5)), (3, ready(5)), (4, ready(7)), (9, None)]);
        let job = Dataset { tables: 8, ..job() };
        let error = decide(&seen, &job).expect_err("refused");
        assert_eq!(error.kind(), Kind::Data);
        let text = error.render();
        for part in ["sbtest1: not made", "sbtest2, sbtest3: 5", "sbtest4: 7", "--force"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("sbtest9"), "outside --tables: {text}");
        assert!(error.may_force());

        let many: Vec<(u32, Option<Mark>)> = (1..=7).map(|number| (number, None)).collect();
        let foreign = decide(&found(&many), &job).expect_err("refused");
        assert!(!foreign.may_force());
        let foreign = foreign.render();
        assert!(!foreign.contains("--force"), "it would not help: {foreign}");
        assert!(foreign.contains("sbtest5, 2"), "{foreign}");
    }

    #[test]
    fn notes_say_what_is_done() {
        let ready = Some(Mark::ready(1, 1000, None));
        let filling = Some(Mark::filling(1, 1000));
        let seen = found(&[(1, ready), (2, ready), (3, filling)]);
        let job = Dataset { tables: 4, ..job() };
        let steps = decide(&seen, &job).expect("fine");
        assert_eq!(
            notes(&seen, "utf8mb4", &steps, &job),
            [
                "finished before: sbtest1, sbtest2 (1k rows, data seed 1)",
                "completing an interrupted fill: sbtest3",
            ]
        );
        assert!(notes(&seen, "latin1", &steps, &job)[1].contains("latin1"));
    }

    #[test]
    fn utf8_is_utf8mb3() {
        assert!(same_charset("utf8", "UTF8MB3") && !same_charset("utf8", "utf8mb4"));
    }
}
