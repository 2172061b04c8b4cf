//! The scripts of profiles: the files that runs name, the data that their `prepare` makes, and the steps between
//! `init` and `done`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

#[cfg(feature = "lua")]
use super::steps::Job;
use super::steps::Steps;
#[cfg(feature = "lua")]
use crate::engine::{begin_main, end_main};
use crate::error::{Error, Result, line};
use crate::load::default_jobs;
use crate::mysql::ServerLink;
#[cfg(feature = "lua")]
use crate::mysql::wire::Inbox;
use crate::plan::experiment::{CellGroup, Experiment};
use crate::plan::profile::script::{ScriptData, ScriptFile, ScriptPart, Verify};
use crate::plan::profile::shipped::script;
use crate::plan::profile::{Measured, Profile};
use crate::plan::{Plan, ScriptValue, Step};
use crate::progress::{Progress, say};
#[cfg(feature = "lua")]
use crate::stop::or_stop;
use crate::summary::{Summary, VerifyQuery};

/// Upper limit on the bytes of a script: protects from a dump given by mistake.
const SCRIPT_MAX: u64 = 4 << 20;

/// The reader of scripts: a room above this one has sysbench's options.
pub(crate) trait ReadScripts {
    /// Runs the file once, without a server, and makes a plan one of the script.
    fn plan(&self, script: &ScriptPart, plan: &Plan) -> Result<Plan>;

    /// Runs a command of a script, in so many threads where it runs in several.
    fn run_command(&self, script: &ScriptPart, of: (&str, u32), link: &ServerLink) -> Result<()>;
}

/// Finds the files that runs name in this directory: the SQL of groups beside, and scripts, which may be inside
/// the program instead.
pub(super) fn find_files(profile: &mut Profile, dir: Option<&Path>) -> Result<()> {
    for n in 0..profile.runs.len() {
        let groups = match &mut profile.runs[n].what {
            Measured::Script(run) => &mut run.knobs.groups[..],
            Measured::Sweep(knobs) => &mut knobs.groups,
            Measured::Load(_) | Measured::Suite(_) => &mut [],
        };
        for path in groups.iter_mut().filter_map(|group| group.sql.as_mut()) {
            *path = dir.map_or_else(|| path.clone(), |dir| dir.join(&*path));
        }
        let Measured::Script(run) = &profile.runs[n].what else { continue };
        let found = find_script(&run.keys.lua, dir);
        let found = found.map_err(|what| profile.refuse(&format!("run/{n}/lua"), what))?;
        let Measured::Script(run) = &mut profile.runs[n].what else { unreachable!("it is one") };
        run.file = Some(found);
    }
    Ok(())
}

fn find_script(name: &str, dir: Option<&Path>) -> std::result::Result<ScriptFile, String> {
    let hashed = |path: &str, text, bytes: &[u8]| {
        let sha256 = format!("{:x}", Sha256::digest(bytes));
        ScriptFile { path: path.to_owned(), text, sha256 }
    };
    let inside = || script(name).map(|text| hashed(name, Some(text), text.as_bytes()));
    let Some(dir) = dir else {
        return inside().ok_or_else(|| format!("the program carries no script '{name}'"));
    };
    let refused = |e: std::io::Error| format!("script '{name}': {e}");
    let path = std::path::absolute(dir.join(name)).map_err(refused)?;
    let shown = path.to_str().ok_or("the path of the script is no UTF-8")?;
    let found = match fs::metadata(&path) {
        Err(e) => return inside().ok_or_else(|| format!("{shown}: {e}")),
        Ok(found) => found,
    };
    if !found.is_file() {
        return Err(format!("{shown} is no file"));
    }
    if found.len() > SCRIPT_MAX {
        return Err(format!("{shown} is larger than {} MiB", SCRIPT_MAX >> 20));
    }
    let bytes = fs::read(&path).map_err(refused)?;
    Ok(hashed(shown, None, &bytes))
}

/// Names and reads the scripts of legs, by their parts: a script that is wrong costs no start of a server.
pub(super) fn read_scripts(
    experiment: &Experiment,
    legs: &[CellGroup],
    (reader, plans): (&dyn ReadScripts, &mut BTreeMap<usize, Plan>),
) -> Result<()> {
    let parts: BTreeSet<usize> = legs.iter().map(|leg| leg.part).collect();
    for at in parts.into_iter().filter(|at| !plans.contains_key(at)).collect::<Vec<_>>() {
        let part = &experiment.parts[at];
        let (Some(script), Some(plan)) = (&part.script, part.plan()) else { continue };
        say(&line(&format!("{} runs the script {}", part.title, script.file)));
        let read = reader.plan(script, plan);
        plans.insert(at, read.map_err(|e| e.context(format!("run {}", part.title)))?);
    }
    Ok(())
}

/// Makes the plan of a script that of a server, whose facts are among its options.
pub(super) fn plan_on(plan: &Plan, link: &ServerLink) -> Plan {
    let mut plan = plan.clone();
    if let Some(script) = &mut plan.script {
        let script = Arc::make_mut(script);
        script.server = link.target.address.to_string();
        script.set_option("mysql_db", ScriptValue::Text(link.target.database.clone()));
    }
    plan
}

/// A script whose `prepare` makes the data of a run.
#[derive(Clone, Copy)]
pub(super) struct Preparer<'a> {
    script: &'a ScriptPart,
    data: &'a ScriptData,
    reader: &'a dyn ReadScripts,
}

impl<'a> Preparer<'a> {
    /// Returns None for a script that fills nothing.
    pub(super) fn new(script: &'a ScriptPart, reader: &'a dyn ReadScripts) -> Option<Self> {
        script.data.as_ref().map(|data| Preparer { script, data, reader })
    }

    pub(super) fn may_refill(&self) -> bool {
        self.data.refill
    }

    /// Names its data in one word, whatever decides on them.
    fn kind(&self) -> String {
        format!("script:{}", self.script.file.name().replace(char::is_whitespace, "_"))
    }

    /// Describes its data, its kind first.
    pub(super) fn describe(&self) -> String {
        let identity = &self.data.identity;
        let numbers: String = identity.options.iter().map(|(k, n)| format!(" {k}={n}")).collect();
        let file: String = identity.files.iter().map(|(_, sha256)| &sha256[..16]).collect();
        format!("{}{numbers}, texts {}, file {file}", self.kind(), identity.texts)
    }

    pub(super) fn describe_unfinished(&self) -> String {
        format!("{} (unfinished)", self.kind())
    }

    /// Returns whether data of this script are held that are not those wanted here.
    pub(super) fn finds_other(&self, held: &[String]) -> bool {
        let (kind, wanted) = (self.kind(), self.describe());
        held.iter().any(|held| held.split(' ').next() == Some(&kind) && *held != wanted)
    }

    pub(super) fn other_data(&self) -> Error {
        let name = self.script.file.name();
        Error::data(format!(
            "the data that {name} prepared here are unfinished, or of other options or another text of it"
        ))
        .hint(
            "remove the data directory or name another; `prepare` names the options that decide on the data; \
             refill = true in [tables] runs cleanup and prepare again",
        )
    }

    pub(super) fn run(&self, name: &str, link: &ServerLink, progress: &mut Progress) -> Result<()> {
        progress.note(&format!("{}: {name}", self.script.file.name()));
        progress.clear();
        let threads = self.data.jobs.unwrap_or_else(default_jobs);
        self.reader.run_command(self.script, (name, threads), link)
    }
}

/// Takes the queries of a profile into the form of summaries.
pub(super) fn queries(all: &[Verify]) -> Vec<VerifyQuery> {
    let query = |of: &Verify| VerifyQuery {
        name: of.name.clone(),
        sql: of.sql.clone(),
        rows: of
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| Some(cell.0.clone())).collect())
            .collect(),
    };
    all.iter().map(query).collect()
}

/// Runs steps between `init` and `done` of their script, whose queries go into the summaries.
#[cfg(feature = "lua")]
pub(super) async fn run_steps(
    steps: &mut Steps<'_>,
    link: &ServerLink,
    next: impl FnMut(&[Summary]) -> Result<Option<Step>>,
) -> Result<()> {
    let Job::Sweep(plan) = steps.job else { return steps.run(link, next).await };
    let inbox = Inbox::default();
    let main = or_stop(&link.stop, begin_main(plan, (link, &inbox))).await?;
    if let Some(main) = &main {
        for query in main.state.verify_queries().map_err(Error::failed)? {
            if !steps.facts.verify.contains(&query) {
                steps.facts.verify.push(query);
            }
        }
    }
    steps.run(link, next).await?;
    or_stop(&link.stop, end_main(main)).await
}

#[cfg(not(feature = "lua"))]
pub(super) async fn run_steps(
    steps: &mut Steps<'_>,
    link: &ServerLink,
    next: impl FnMut(&[Summary]) -> Result<Option<Step>>,
) -> Result<()> {
    steps.run(link, next).await
}
