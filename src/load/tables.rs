//! What is in the database already, what prepare does about each table, and what cleanup drops.

use std::collections::BTreeMap;

use mysql_async::Opts;

use super::Job;
use super::connect::{Doing, control, drop_table};
use crate::error::{Error, Result};
use crate::mysql::control::rows;
use crate::mysql::dataset::{Discovered, discover, names};
use crate::mysql::liveness::Liveness;
use crate::mysql::options::ConnectOptions;
use crate::mysql::server::exposure;
use crate::mysql::session::Session;
use crate::progress::Progress;
use crate::stop::{COURTESY, Stop};
use crate::terms::units;
use crate::workload::Schema;
use crate::workload::table::{Mark, State};

/// Tables that an error names for each reason.
const NAMED: usize = 5;

/// What to do about a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Create and fill it.
    Create,
    /// Fill what is missing.
    Complete,
    /// Drop it and begin again: an interrupted fill with other parameters.
    Restart,
    /// Drop it and begin again, because of `--force`.
    Refill,
    /// It is finished.
    Keep,
}

/// What to do about every table, by number.
pub(super) type Steps = BTreeMap<u32, Step>;

/// Everything named as the tables of a schema in the database.
pub(super) struct Survey {
    found: Discovered,
    charsets: BTreeMap<u32, String>,
    /// The database's own; empty where there is no table.
    database_charset: String,
}

impl Survey {
    /// Asks the server.
    pub(super) async fn take(
        session: &mut Session,
        database: &str,
        schema: Schema,
    ) -> Result<Survey> {
        let found = discover(session, database, schema).await?;
        let sql = format!(
            "SELECT TABLE_NAME, TABLE_COLLATION, @@character_set_database \
             FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE '{}%'",
            schema.prefix()
        );
        let (mut charsets, mut database_charset) = (BTreeMap::new(), String::new());
        let described = rows::<3>(session, &sql).await;
        for row in described.doing("listing the tables' character sets")? {
            // Views have no collation.
            let [Some(name), Some(collation), Some(of_database)] = row else { continue };
            database_charset = of_database;
            if let Some(number) = schema.number(&name) {
                charsets.insert(number, charset_of(&collation).to_owned());
            }
        }
        Ok(Survey { found, charsets, database_charset })
    }

    /// Decides about each table, or names all that stands in the way.
    pub(super) fn decide(&self, job: &Job) -> Result<Steps> {
        let mut steps = Steps::new();
        let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let (mut foreign, mut ours) = (false, false);
        for table in 1..=job.tables {
            match self.step(table, job) {
                Ok(step) => {
                    steps.insert(table, step);
                }
                Err(why) => {
                    let marked = self.found.tables.get(&table).is_some_and(|t| t.mark.is_some());
                    (foreign, ours) = (foreign || !marked, ours || marked);
                    refused.entry(why).or_default().push(job.schema.name(table));
                }
            }
        }
        if refused.is_empty() {
            return Ok(steps);
        }
        let what = format!("prepare would overwrite what is in `{}`", self.found.database);
        let mut error = in_the_way(&what, &refused);
        if foreign {
            error = error.hint(
                "tables that prepare did not make are never touched: DROP them yourself, or take \
                 another --database",
            );
        }
        if ours {
            error = error.hint(
                "--force drops the tables that prepare made and fills them again; or take another \
                 --database",
            );
        }
        Err(error)
    }

    /// Decides about one table, or says why not to touch it.
    fn step(&self, table: u32, job: &Job) -> std::result::Result<Step, String> {
        let Some(seen) = self.found.tables.get(&table) else { return Ok(Step::Create) };
        let Some(mark) = seen.mark else {
            let view = "no table, but a view or the like";
            return Err(if seen.is_table { "not made by loadgen prepare" } else { view }.to_owned());
        };
        let charset = self.charset(table);
        let other_charset = job.charset.as_ref().filter(|wanted| !same_charset(wanted, charset));
        let same = mark.rows == job.rows && mark.seed == job.data_seed && other_charset.is_none();
        match (mark.state, same, job.force) {
            (_, _, true) => Ok(Step::Refill),
            (State::Ready, true, false) => Ok(Step::Keep),
            (State::Filling, true, false) => Ok(Step::Complete),
            (State::Filling, false, false) => Ok(Step::Restart),
            (State::Ready, false, false) => {
                let described = |rows, seed, charset: &str| {
                    let text = format!("{} rows with data seed {seed}", units::count(rows));
                    let text_in = |_| format!("{text}, character set {charset}");
                    other_charset.map_or(text.clone(), text_in)
                };
                let wanted = other_charset.map_or("", String::as_str);
                Err(format!(
                    "{}, asked for {}",
                    described(mark.rows, mark.seed, charset),
                    described(job.rows, job.data_seed, wanted)
                ))
            }
        }
    }

    /// Reads a table's character set; empty if it came after the other tables were listed.
    fn charset(&self, table: u32) -> &str {
        self.charsets.get(&table).map_or("", String::as_str)
    }

    /// Says what the user should know of the steps, a line each.
    pub(super) fn notes(&self, steps: &Steps, job: &Job) -> Vec<String> {
        let mut notes = Vec::new();
        for (wanted, what) in [
            (Step::Keep, "finished before"),
            (Step::Complete, "completing an interrupted fill"),
            (Step::Restart, "an interrupted fill with other parameters is begun again"),
            (Step::Refill, "dropping and filling again (--force)"),
        ] {
            let of = steps.iter().filter(|(_, step)| **step == wanted);
            let tables: Vec<u32> = of.map(|(table, _)| *table).collect();
            let Some(first) = tables.first() else { continue };
            let charset = self.charset(*first);
            let mut note = format!("{what}: {}", names(job.schema, tables));
            if wanted == Step::Keep {
                let (rows, seed) = (units::count(job.rows), job.data_seed);
                note += &format!(" ({rows} rows, data seed {seed})");
            }
            notes.push(note);
            let own = &self.database_charset;
            if wanted == Step::Keep && job.charset.is_none() && !same_charset(charset, own) {
                notes.push(format!(
                    "their character set is {charset}; new tables of this database get {own}"
                ));
            }
        }
        notes
    }
}

/// Makes the error of tables that would be overwritten, by the reason not to.
pub(super) fn in_the_way(what: &str, refused: &BTreeMap<String, Vec<String>>) -> Error {
    let line = |(why, names): (&String, &Vec<String>)| {
        let shown = names[..names.len().min(NAMED)].join(", ");
        match names.len() {
            ..=NAMED => format!("\n  {shown}: {why}"),
            more => format!("\n  {shown} and {} more: {why}", more - NAMED),
        }
    };
    Error::data(format!("{what}:{}", refused.iter().map(line).collect::<String>()))
}

/// Cuts a collation's name to its character set's, with which it begins for all there are.
fn charset_of(collation: &str) -> &str {
    collation.split_once('_').map_or(collation, |(set, _)| set)
}

/// Whether two names mean the same character set: `utf8` is `utf8mb3`.
pub(super) fn same_charset(one: &str, other: &str) -> bool {
    let usual = |name: &str| match name.to_ascii_lowercase().as_str() {
        "utf8" => "utf8mb3".to_owned(),
        name => name.to_owned(),
    };
    usual(one) == usual(other)
}

/// Tables by kind and number; no kind without a table.
pub type Numbers = BTreeMap<Schema, Vec<u32>>;

/// What cleanup did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// Tables that were dropped.
    pub dropped: Numbers,
    /// Tables of such names that are not prepare's: they stay.
    pub left: Numbers,
}

/// The tables' names, in few words.
pub fn named(tables: &Numbers) -> String {
    let some = tables.iter().map(|(schema, numbers)| names(*schema, numbers.iter().copied()));
    some.collect::<Vec<_>>().join(", ")
}

/// Lists the tables that carry loadgen's mark, finished or not; `load`'s own only where `loaded`
/// wants them.
///
/// # Errors
///
/// Usage: no database. Server: none, or silence. Interrupted.
pub async fn marked(
    target: &ConnectOptions,
    opts: &Opts,
    loaded: bool,
    stop: &Stop,
) -> Result<Numbers> {
    let liveness = Liveness::new(target, opts);
    let looking = async {
        let mut session = Session::open(target, opts, None).await?;
        let _waits = liveness.waits(&session);
        let wanted = |mark: Option<Mark>| mark.is_some_and(|mark| loaded || !mark.loaded);
        let [ours] = look(&mut session, target, [&wanted]).await?;
        session.close(COURTESY).await;
        Ok(ours)
    };
    liveness.during(stop, looking).await
}

/// Lists the tables whose marks are wanted, of every kind, for each of some wishes.
async fn look<const N: usize>(
    session: &mut Session,
    target: &ConnectOptions,
    wishes: [&dyn Fn(Option<Mark>) -> bool; N],
) -> Result<[Numbers; N]> {
    let mut lists = [const { Numbers::new() }; N];
    for schema in Schema::ALL {
        for (number, table) in discover(session, &target.database, schema).await?.tables {
            for (list, wanted) in lists.iter_mut().zip(wishes) {
                if wanted(table.mark) {
                    list.entry(schema).or_default().push(number);
                }
            }
        }
    }
    Ok(lists)
}

/// Drops the tables that carry loadgen's mark, and nothing else. `opts` are those of `target`.
///
/// # Errors
///
/// Usage: no database. Server: none, or silence. Failed: a table cannot be dropped. Interrupted: the tables
/// dropped so far are gone.
pub async fn cleanup(
    target: &ConnectOptions,
    opts: &Opts,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Cleaned> {
    let liveness = Liveness::new(target, opts);
    let cleaning = async {
        let mut session = control(target, opts, progress).await?;
        let _waits = liveness.waits(&session);
        if let Some(warning) = exposure(&mut session, target).await? {
            progress.warn(&warning.to_string());
        }
        let wishes: [&dyn Fn(Option<Mark>) -> bool; 2] =
            [&|mark| mark.is_some(), &|mark| mark.is_none()];
        let [dropped, left] = look(&mut session, target, wishes).await?;
        let of = |(schema, numbers): (&Schema, &Vec<u32>)| {
            numbers.iter().map(|number| schema.name(*number)).collect::<Vec<_>>()
        };
        let all: Vec<String> = dropped.iter().flat_map(of).collect();
        for (done, name) in all.iter().enumerate() {
            progress.update(|| format!("dropping: {done} of {} tables", all.len()));
            drop_table(&mut session, name).await?;
        }
        session.close(COURTESY).await;
        Ok(Cleaned { dropped, left })
    };
    let cleaned = liveness.during(stop, cleaning).await?;
    progress.clear();
    progress.note(&match cleaned.dropped.len() {
        0 => format!("no table of prepare's in {}", target.database),
        _ => format!("dropped {}", named(&cleaned.dropped)),
    });
    if !cleaned.left.is_empty() {
        progress.note(&format!("left alone, not made by prepare: {}", named(&cleaned.left)));
    }
    Ok(cleaned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::mysql::dataset::Table;

    fn job() -> Job {
        Job { rows: 1000, ..Job::default() }
    }

    fn survey(tables: &[(u32, Option<Mark>)]) -> Survey {
        let table = |mark: Option<Mark>| Table {
            is_table: true,
            engine: Some("InnoDB".to_owned()),
            format: "InnoDB Dynamic".to_owned(),
            mark,
            bytes: 0,
            unusable: None,
            indexed: true,
        };
        Survey {
            found: Discovered {
                database: "sbtest".to_owned(),
                schema: Schema::Sbtest,
                tables: tables.iter().map(|(n, mark)| (*n, table(*mark))).collect(),
            },
            charsets: tables.iter().map(|(n, _)| (*n, "utf8mb4".to_owned())).collect(),
            database_charset: "utf8mb4".to_owned(),
        }
    }

    fn step(mark: Option<Mark>, job: &Job) -> std::result::Result<Step, String> {
        survey(&[(1, mark)]).step(1, job)
    }

    #[test]
    fn each_table_gets_the_right_step() {
        use State::{Filling, Ready};
        let force = Job { force: true, ..job() };
        let latin = Job { charset: Some("latin1".to_owned()), ..job() };
        for (seed, rows, state, job, expected) in [
            (1, 1000, Ready, job(), Step::Keep),
            (1, 1000, Filling, job(), Step::Complete),
            (2, 1000, Filling, job(), Step::Restart),
            (1, 999, Filling, job(), Step::Restart),
            (1, 1000, Filling, latin, Step::Restart),
            (1, 1000, Ready, force.clone(), Step::Refill),
            (2, 7, Ready, force.clone(), Step::Refill),
            (2, 7, Filling, force, Step::Refill),
        ] {
            let mark = Mark { seed, rows, state, id: None, loaded: false };
            assert_eq!(step(Some(mark), &job), Ok(expected), "{mark:?} {job:?}");
        }
        assert_eq!(survey(&[]).step(1, &job()), Ok(Step::Create));
    }

    #[test]
    fn what_is_refused_names_both_sides() {
        let ready = |rows| Some(Mark::ready(1, rows, None));
        let why = step(ready(16_000_000), &job()).expect_err("refused");
        assert_eq!(why, "16M rows with data seed 1, asked for 1k rows with data seed 1");
        let latin = Job { charset: Some("latin1".to_owned()), ..job() };
        let why = step(ready(1000), &latin).expect_err("refused");
        assert!(why.contains("utf8mb4") && why.contains("latin1"), "{why}");
        let force = Job { force: true, ..job() };
        assert!(step(None, &force).is_err(), "never, whatever the flags");
    }

    #[test]
    fn all_conflicts_are_named_at_once() {
        let ready = |rows| Some(Mark::ready(1, rows, None));
        let seen = survey(&[(1, None), (2, ready(5)), (3, ready(5)), (4, ready(7)), (9, None)]);
        let job = Job { tables: 8, ..job() };
        let error = seen.decide(&job).expect_err("refused");
        assert_eq!(error.kind(), Kind::Data);
        let text = error.render();
        for part in ["sbtest1: not made", "sbtest2, sbtest3: 5", "sbtest4: 7", "--force"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("sbtest9"), "outside --tables: {text}");

        let many: Vec<(u32, Option<Mark>)> = (1..=7).map(|number| (number, None)).collect();
        let foreign = survey(&many).decide(&job).expect_err("refused").render();
        assert!(!foreign.contains("--force"), "it would not help: {foreign}");
        assert!(foreign.contains("sbtest5 and 2 more: not made"), "{foreign}");
    }

    #[test]
    fn notes_say_what_is_done() {
        let ready = Some(Mark::ready(1, 1000, None));
        let filling = Some(Mark::filling(1, 1000));
        let seen = survey(&[(1, ready), (2, ready), (3, filling)]);
        let job = Job { tables: 4, ..job() };
        let steps = seen.decide(&job).expect("fine");
        assert_eq!(
            seen.notes(&steps, &job),
            [
                "finished before: sbtest1, sbtest2 (1k rows, data seed 1)",
                "completing an interrupted fill: sbtest3",
            ]
        );
        let other = Survey { database_charset: "latin1".to_owned(), ..seen };
        assert!(other.notes(&steps, &job)[1].contains("latin1"));
    }

    #[test]
    fn names_of_character_sets() {
        assert_eq!(charset_of("utf8mb4_uca1400_ai_ci"), "utf8mb4");
        assert_eq!(charset_of("binary"), "binary");
        assert!(same_charset("utf8", "UTF8MB3") && !same_charset("utf8", "utf8mb4"));
    }
}
