//! What is in the database already, what prepare does about each table, and what cleanup drops.

use std::collections::BTreeMap;

use super::connect::{control, drop_table};
use crate::error::{Error, Result};
use crate::mysql::{Discovered, Liveness, ServerLink, Session, Table, discover, exposure, names};
use crate::plan::experiment::Dataset;
use crate::progress::Progress;
use crate::stop::COURTESY;
use crate::terms::{named as listed, units};
use crate::workload::{Mark, Schema, State};

const NAMED: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Create,
    Complete,
    /// Drop it and begin again: an interrupted fill with other parameters.
    Restart,
    /// Drop it and begin again, because of `--force`.
    Refill,
    Keep,
}

pub(super) type Steps = BTreeMap<u32, Step>;

/// Tables that stand in the way, by the reason.
#[derive(Default)]
pub(super) struct Refused {
    by_reason: BTreeMap<String, Vec<String>>,
    foreign: bool,
    ours: bool,
}

impl Refused {
    /// Adds a table; `ours` is one that `--force` drops.
    pub(super) fn add(&mut self, name: String, why: String, ours: bool) {
        self.by_reason.entry(why).or_default().push(name);
        (self.foreign, self.ours) = (self.foreign || !ours, self.ours || ours);
    }

    /// Names them all. `made_by` is whose tables may go, `force` what makes them go.
    pub(super) fn conclude(self, what: &str, made_by: &str, force: &str) -> Result<()> {
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
        Err(if self.ours { error.hint(force) } else { error })
    }
}

/// Decides about each table, or names all that stands in the way.
pub(super) fn decide(found: &Discovered, job: &Dataset) -> Result<Steps> {
    const FORCE: &str = "--force drops the tables that prepare made and fills them again; or take \
                         another --database";
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
    refused.conclude(&what, "prepare", FORCE).map(|()| steps)
}

/// Decides about one table, or says why not to touch it.
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

/// Says what the user should know of the steps, a line each. New tables get the database's character
/// set, which finished ones may not have.
pub(super) fn notes(
    found: &Discovered,
    database_charset: &str,
    steps: &Steps,
    job: &Dataset,
) -> Vec<String> {
    let mut notes = Vec::new();
    for (wanted, what) in [
        (Step::Keep, "finished before"),
        (Step::Complete, "completing an interrupted fill"),
        (Step::Restart, "an interrupted fill with other parameters is begun again"),
        (Step::Refill, "dropping and filling again (--force)"),
    ] {
        let of = steps.iter().filter(|(_, step)| **step == wanted);
        let tables: Vec<u32> = of.map(|(table, _)| *table).collect();
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

/// Tells whether two names mean the same character set: `utf8` is `utf8mb3`.
pub(super) fn same_charset(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|name| match name.to_ascii_lowercase() {
        name if name == "utf8" => "utf8mb3".to_owned(),
        name => name,
    });
    one == other
}

/// Tables by kind and number; no kind without a table.
pub type Numbers = BTreeMap<Schema, Vec<u32>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    pub dropped: Numbers,
    /// Tables of such names that are not prepare's: they stay.
    pub left: Numbers,
}

pub fn named(tables: &Numbers) -> String {
    let some = tables.iter().map(|(schema, numbers)| names(*schema, numbers.iter().copied()));
    some.collect::<Vec<_>>().join(", ")
}

/// Lists the tables that carry loadgen's mark, finished or not; `load`'s own only where `loaded`
/// wants them.
pub async fn marked(link: &ServerLink, loaded: bool) -> Result<Numbers> {
    let server = Liveness::new(link);
    let looking = async {
        let mut session = Session::open(link, None).await?;
        let _waits = server.waits(&session);
        let wanted = |mark: Mark| loaded || !mark.loaded;
        let (ours, _) = look(&mut session, &link.target.database, wanted).await?;
        session.close(COURTESY).await;
        Ok(ours)
    };
    server.during(looking).await
}

/// Lists the tables whose marks are wanted, and those that have none, of every kind.
async fn look(
    session: &mut Session,
    database: &str,
    wanted: impl Fn(Mark) -> bool,
) -> Result<(Numbers, Numbers)> {
    let (mut ours, mut foreign) = (Numbers::new(), Numbers::new());
    for schema in Schema::ALL {
        for (number, table) in discover(session, database, schema).await?.tables {
            match table.mark {
                Some(mark) if wanted(mark) => ours.entry(schema).or_default().push(number),
                Some(_) => {}
                None => foreign.entry(schema).or_default().push(number),
            }
        }
    }
    Ok((ours, foreign))
}

/// Drops the tables that carry loadgen's mark, and nothing else.
pub async fn cleanup(link: &ServerLink, progress: &mut Progress) -> Result<Cleaned> {
    let server = Liveness::new(link);
    let cleaning = async {
        let mut session = control(&server, progress).await?;
        let _waits = server.waits(&session);
        if let Some(warning) = exposure(&mut session, &link.target).await? {
            progress.warn(&warning.to_string());
        }
        let (dropped, left) = look(&mut session, &link.target.database, |_| true).await?;
        let of = |(schema, numbers): (&Schema, &Vec<u32>)| -> Vec<String> {
            numbers.iter().map(|number| schema.name(*number)).collect()
        };
        let all: Vec<String> = dropped.iter().flat_map(of).collect();
        for (done, name) in all.iter().enumerate() {
            progress.update(|| format!("dropping: {done} of {} tables", all.len()));
            drop_table(&mut session, name).await?;
        }
        session.close(COURTESY).await;
        Ok(Cleaned { dropped, left })
    };
    let cleaned = server.during(cleaning).await?;
    progress.clear();
    progress.note(&match cleaned.dropped.len() {
        0 => format!("no table of prepare's in {}", link.target.database),
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

        let many: Vec<(u32, Option<Mark>)> = (1..=7).map(|number| (number, None)).collect();
        let foreign = decide(&found(&many), &job).expect_err("refused").render();
        assert!(!foreign.contains("--force"), "it would not help: {foreign}");
        assert!(foreign.contains("sbtest5, 2 more: not made"), "{foreign}");
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
