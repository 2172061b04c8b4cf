//! What is in the database already, and what prepare does about each table.

use std::collections::BTreeMap;

use super::Job;
use crate::error::{Error, Result};
use crate::mysql::control::{explain, one};
use crate::mysql::dataset::{self, Discovered, names};
use crate::mysql::session::Session;
use crate::plan::units;
use crate::workload::Schema;
use crate::workload::table::{Mark, State};

/// A table of this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// There is none.
    Nothing,
    /// Not made by prepare; what it is.
    Foreign(&'static str),
    /// Made by prepare, with its character set.
    Ours(Mark, String),
}

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
    database_charset: String,
}

impl Survey {
    /// Asks the server.
    pub(super) async fn take(
        session: &mut Session,
        database: &str,
        schema: Schema,
    ) -> Result<Survey> {
        let found = dataset::discover(session, database, schema).await?;
        let failed = |failure| explain(&failure, "list the tables' character sets");
        let sql = format!(
            "SELECT TABLE_NAME, TABLE_COLLATION FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE '{}%'",
            schema.prefix()
        );
        let rows = session.query(&sql).await.map_err(failed)?;
        let charsets = rows
            .into_iter()
            .filter_map(|row| {
                let mut fields = row.into_iter().flatten();
                Some((schema.number(&fields.next()?)?, charset_of(&fields.next()?)))
            })
            .collect();
        let sql = "SELECT @@character_set_database";
        let database_charset = one(session, sql).await.map_err(failed)?.unwrap_or_default();
        Ok(Survey { found, charsets, database_charset })
    }

    /// The tables that carry loadgen's mark, `prepare`'s or `load`'s.
    pub(super) fn ours(&self) -> Vec<u32> {
        self.by_mark(|mark| mark.is_some())
    }

    /// Those of them that `load` did not make.
    pub(super) fn prepared(&self) -> Vec<u32> {
        self.by_mark(|mark| mark.is_some_and(|mark| !mark.loaded))
    }

    /// The others.
    pub(super) fn foreign(&self) -> Vec<u32> {
        self.by_mark(|mark| mark.is_none())
    }

    fn by_mark(&self, wanted: impl Fn(Option<Mark>) -> bool) -> Vec<u32> {
        let tables = self.found.tables.iter();
        tables.filter(|(_, table)| wanted(table.mark)).map(|(n, _)| *n).collect()
    }

    fn found(&self, table: u32) -> Found {
        let Some(seen) = self.found.tables.get(&table) else { return Found::Nothing };
        match seen.mark {
            Some(mark) => Found::Ours(mark, self.charsets.get(&table).cloned().unwrap_or_default()),
            None if !seen.is_table => Found::Foreign("no table, but a view or the like"),
            None => Found::Foreign("not made by loadgen prepare"),
        }
    }

    /// What to do about each table, or all that stands in the way.
    pub(super) fn decide(&self, job: &Job) -> Result<Steps> {
        let mut steps = Steps::new();
        let mut refused: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        let mut foreign = false;
        for table in 1..=job.tables {
            let found = self.found(table);
            match step(&found, job) {
                Ok(step) => {
                    steps.insert(table, step);
                }
                Err(why) => {
                    foreign |= matches!(found, Found::Foreign(_));
                    refused.entry(why).or_default().push(table);
                }
            }
        }
        if refused.is_empty() {
            return Ok(steps);
        }
        let lines: Vec<String> = refused
            .iter()
            .map(|(why, tables)| format!("{}: {why}", names(job.schema, tables.clone())))
            .collect();
        let mut error = Error::data(format!(
            "prepare would overwrite what is in `{}`:\n  {}",
            self.found.database,
            lines.join("\n  ")
        ));
        if foreign {
            error = error.hint("tables that prepare did not make are never touched: DROP them yourself, or take another --database");
        }
        if refused.values().map(Vec::len).sum::<usize>() > self.foreign_of(job) {
            error = error.hint("--force drops the tables that prepare made and fills them again; or take another --database");
        }
        Err(error)
    }

    fn foreign_of(&self, job: &Job) -> usize {
        self.foreign().into_iter().filter(|table| *table <= job.tables).count()
    }

    /// What the user should know of the steps, a line each.
    pub(super) fn notes(&self, steps: &Steps, job: &Job) -> Vec<String> {
        let of = |wanted: Step| -> Vec<u32> {
            steps.iter().filter(|(_, step)| **step == wanted).map(|(table, _)| *table).collect()
        };
        let mut notes = Vec::new();
        let kept = of(Step::Keep);
        if let Some(first) = kept.first() {
            notes.push(format!(
                "finished before: {} ({} rows, data seed {})",
                names(job.schema, kept.clone()),
                units::count(job.rows),
                job.data_seed
            ));
            let charset = self.charsets.get(first).map_or("", String::as_str);
            if job.charset.is_none() && !same_charset(charset, &self.database_charset) {
                notes.push(format!(
                    "their character set is {charset}; new tables of this database get {}",
                    self.database_charset
                ));
            }
        }
        for (step, what) in [
            (Step::Complete, "completing an interrupted fill"),
            (Step::Restart, "an interrupted fill with other parameters is begun again"),
            (Step::Refill, "dropping and filling again (--force)"),
        ] {
            let tables = of(step);
            if !tables.is_empty() {
                notes.push(format!("{what}: {}", names(job.schema, tables)));
            }
        }
        notes
    }
}

/// What to do about one table, or why not to touch it.
fn step(found: &Found, job: &Job) -> std::result::Result<Step, String> {
    let (mark, charset) = match found {
        Found::Nothing => return Ok(Step::Create),
        Found::Foreign(what) => return Err((*what).to_owned()),
        Found::Ours(mark, charset) => (mark, charset),
    };
    let other_charset = job.charset.as_ref().filter(|wanted| !same_charset(wanted, charset));
    let same = mark.rows == job.rows && mark.seed == job.data_seed && other_charset.is_none();
    match (mark.state, same, job.force) {
        (_, _, true) => Ok(Step::Refill),
        (State::Ready, true, false) => Ok(Step::Keep),
        (State::Filling, true, false) => Ok(Step::Complete),
        (State::Filling, false, false) => Ok(Step::Restart),
        (State::Ready, false, false) => {
            let in_charset = |name: &str| match other_charset {
                Some(_) => format!(", character set {name}"),
                None => String::new(),
            };
            Err(format!(
                "{}{}, asked for {}{}",
                parameters(mark.rows, mark.seed),
                in_charset(charset),
                parameters(job.rows, job.data_seed),
                in_charset(other_charset.map_or("", String::as_str))
            ))
        }
    }
}

fn parameters(rows: u64, seed: u32) -> String {
    format!("{} rows with data seed {seed}", units::count(rows))
}

/// The character set of a collation: its name begins with it, for all there are.
fn charset_of(collation: &str) -> String {
    collation.split('_').next().unwrap_or_default().to_owned()
}

/// Whether two names mean the same character set: `utf8` is `utf8mb3`.
pub(super) fn same_charset(one: &str, other: &str) -> bool {
    let usual = |name: &str| match name.to_ascii_lowercase().as_str() {
        "utf8" => "utf8mb3".to_owned(),
        name => name.to_owned(),
    };
    usual(one) == usual(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::load::Fill;
    use crate::mysql::dataset::Table;

    fn job() -> Job {
        Job { rows: 1000, ..Job::default() }
    }

    fn ours(seed: u32, rows: u64, state: State) -> Found {
        Found::Ours(Mark { seed, rows, state, id: None, loaded: false }, "utf8mb4".to_owned())
    }

    #[test]
    fn each_table_gets_the_right_step() {
        use State::{Filling, Ready};
        let force = Job { force: true, ..job() };
        let latin = Job { charset: Some("latin1".to_owned()), ..job() };
        for (found, job, expected) in [
            (Found::Nothing, job(), Step::Create),
            (ours(1, 1000, Ready), job(), Step::Keep),
            (ours(1, 1000, Filling), job(), Step::Complete),
            (ours(2, 1000, Filling), job(), Step::Restart),
            (ours(1, 999, Filling), job(), Step::Restart),
            (ours(1, 1000, Filling), latin, Step::Restart),
            (ours(1, 1000, Ready), force.clone(), Step::Refill),
            (ours(2, 7, Ready), force.clone(), Step::Refill),
            (ours(2, 7, Filling), force, Step::Refill),
        ] {
            assert_eq!(step(&found, &job), Ok(expected), "{found:?} {job:?}");
        }
    }

    #[test]
    fn what_is_refused_names_both_sides() {
        let why = step(&ours(1, 16_000_000, State::Ready), &job()).expect_err("refused");
        assert_eq!(why, "16M rows with data seed 1, asked for 1k rows with data seed 1");
        let latin = Job { charset: Some("latin1".to_owned()), ..job() };
        let why = step(&ours(1, 1000, State::Ready), &latin).expect_err("refused");
        assert!(why.contains("utf8mb4") && why.contains("latin1"), "{why}");
        let force = Job { force: true, ..job() };
        assert!(step(&Found::Foreign("a view"), &force).is_err(), "never, whatever the flags");
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

    #[test]
    fn all_conflicts_are_named_at_once() {
        let ready = |rows| Some(Mark::ready(1, rows, None));
        let seen = survey(&[(1, None), (2, ready(5)), (3, ready(5)), (4, ready(7)), (9, None)]);
        let job = Job { tables: 8, fill: Fill::Auto, ..job() };
        let error = seen.decide(&job).expect_err("refused");
        assert_eq!(error.kind(), Kind::Data);
        let text = error.render();
        for part in ["sbtest1: not made", "sbtest2, sbtest3: 5", "sbtest4: 7", "--force"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("sbtest9"), "outside --tables: {text}");
        assert_eq!((seen.ours(), seen.foreign()), (vec![2, 3, 4], vec![1, 9]));

        let only_foreign = survey(&[(1, None)]).decide(&job).expect_err("refused").render();
        assert!(!only_foreign.contains("--force"), "it would not help: {only_foreign}");
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
