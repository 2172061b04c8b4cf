//! The scripts of profiles: the files that runs name, the data that their `prepare` makes, and the steps between
//! `init` and `done`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::history::is_of;
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
use crate::plan::profile::script::Verify;
use crate::plan::profile::shipped::script;
use crate::plan::profile::{Measured, Profile};
use crate::plan::script::{ScriptData, ScriptFile, ScriptPart};
use crate::plan::{Plan, ReadScript, Script, ScriptIdentity, ScriptValue, Step};
use crate::progress::{Progress, say};
#[cfg(feature = "lua")]
use crate::stop::or_stop;
use crate::summary::{Summary, VerifyQuery};

/// Upper limit on the bytes of a script: protects from a dump given by mistake.
const SCRIPT_MAX: u64 = 4 << 20;

/// The reader of scripts: a room above this one has sysbench's options.
pub(crate) trait ReadScripts {
    /// Runs the file once, without a server, for the clients of a plan.
    fn read(&self, script: &ScriptPart, plan: &Plan) -> Result<ReadScript>;

    /// Runs a command of a script, in so many threads where it runs in several.
    fn run_command(&self, script: &ScriptPart, of: (&str, u32), link: &ServerLink) -> Result<()>;
}

/// Finds the files that runs name in this directory: the SQL of groups beside, and scripts, which may be inside
/// the program instead.
pub(super) fn find_files(profile: &mut Profile, dir: Option<&Path>) -> Result<()> {
    for n in 0..profile.runs.len() {
        let found = find_files_of(&mut profile.runs[n].what, dir);
        found.map_err(|(key, what)| profile.refuse(&format!("run/{n}/{key}"), what))?;
    }
    Ok(())
}

/// Finds the files of a run; an error names its key.
fn find_files_of(
    what: &mut Measured,
    dir: Option<&Path>,
) -> std::result::Result<(), (String, String)> {
    let groups = match what {
        Measured::Script(run) => {
            let found = find_script(&run.keys.lua, dir);
            run.file = Some(found.map_err(|what| ("lua".to_owned(), what))?);
            &mut run.knobs.groups[..]
        }
        Measured::Sweep(knobs) => &mut knobs.groups,
        Measured::Load(_) | Measured::Suite(_) => &mut [],
    };
    for (n, group) in groups.iter_mut().enumerate() {
        if let Some((path, dir)) = group.sql.as_mut().zip(dir) {
            *path = dir.join(&*path);
        }
        let found = group.lua.as_ref().map(|name| find_script(name, dir)).transpose();
        group.file = found.map_err(|what| (format!("group/{n}/lua"), what))?;
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
        let Some(mut plan) = part.plan().cloned() else { continue };
        if let Some(script) = &part.script {
            say(&line(&format!("{} runs the script {}", part.title, script.file)));
            let read = reader.read(script, &plan);
            plan = plan.run_script(read.map_err(|e| e.context(format!("run {}", part.title)))?);
        }
        let beside =
            plan.groups.iter().filter_map(|group| Some((group.name, &group.script.as_ref()?.file)));
        for (group, file) in beside {
            say(&line(&format!("{}: group {group} runs the script {file}", part.title)));
        }
        let read = read_beside(reader, &mut plan);
        read.map_err(|e| e.context(format!("run {}", part.title)))?;
        if plan.scripts().next().is_some() {
            plans.insert(at, plan);
        }
    }
    Ok(())
}

/// Reads the scripts of groups beside.
pub(crate) fn read_beside(reader: &dyn ReadScripts, plan: &mut Plan) -> Result<()> {
    for at in 0..plan.groups.len() {
        let group = &plan.groups[at];
        let Some(script) = &group.script else { continue };
        let read = reader.read(script, &plan.of_group(group));
        let read = read.map_err(|error| error.context(format!("group {}", group.name)))?;
        plan.groups[at].read = Some(read);
    }
    Ok(())
}

/// Makes the plan of a script that of a server, whose facts are among its options.
pub(super) fn plan_on(plan: &Plan, link: &ServerLink) -> Plan {
    let mut plan = plan.clone();
    let beside = plan.groups.iter_mut().filter_map(|group| Some(&mut group.read.as_mut()?.script));
    for script in plan.script.iter_mut().chain(beside) {
        let script: &mut Script = Arc::make_mut(script);
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
        describe(&self.kind(), &self.data.identity)
    }

    pub(super) fn describe_unfinished(&self) -> String {
        format!("{} (unfinished)", self.kind())
    }

    /// Returns whether data of this script are held that are not those wanted here.
    pub(super) fn finds_other(&self, held: &[String]) -> bool {
        let wanted = self.describe();
        held.iter().any(|held| is_of(held, &wanted) && *held != wanted)
    }

    pub(super) fn other_data(&self) -> Error {
        let name = self.script.file.name();
        Error::data(format!(
            "the data of {name} in the data directory are unfinished, or the options or the text \
             of the script differ"
        ))
        .hint(
            "remove the data directory or name another; list in `prepare` the options that change \
             the data; refill = true in [tables] runs cleanup and prepare again",
        )
    }

    pub(super) fn run(&self, name: &str, link: &ServerLink, progress: &mut Progress) -> Result<()> {
        progress.note(&format!("{}: {name}", self.script.file.name()));
        progress.clear();
        let threads = self.data.jobs.unwrap_or_else(default_jobs);
        self.reader.run_command(self.script, (name, threads), link)
    }
}

/// Describes the data of a script; its kind is a word of its own.
fn describe(kind: &str, identity: &ScriptIdentity) -> String {
    let numbers: String = identity.options.iter().map(|(k, n)| format!(" {k}={n}")).collect();
    let numbers = if numbers.is_empty() { " no numbers" } else { &numbers };
    let file: String = identity.files.iter().map(|(_, sha256)| &sha256[..16]).collect();
    format!("{kind}{numbers}, texts {}, file {file}", identity.texts)
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
) -> Result<Option<u32>> {
    let Job::Sweep(plan) = steps.job else { return steps.run(link, next).await };
    let inbox = Inbox::default();
    let main = or_stop(&link.stop, begin_main(plan, (link, &inbox))).await?;
    for main in &main {
        for query in main.state.verify_queries().map_err(Error::failed)? {
            if !steps.facts.verify.contains(&query) {
                steps.facts.verify.push(query);
            }
        }
    }
    let postponed = steps.run(link, next).await?;
    or_stop(&link.stop, end_main(main)).await.map(|()| postponed)
}

#[cfg(not(feature = "lua"))]
pub(super) async fn run_steps(
    steps: &mut Steps<'_>,
    link: &ServerLink,
    next: impl FnMut(&[Summary]) -> Result<Option<Step>>,
) -> Result<Option<u32>> {
    steps.run(link, next).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_a_script_have_its_kind_as_first_word_when_it_has_no_options() {
        let numbers = [("scale".to_owned(), ScriptValue::Number(2.0))];
        for options in [&numbers[..], &[]] {
            let file = ("a.lua".to_owned(), "0123456789abcdef".to_owned());
            let described = describe("script:a.lua", &ScriptIdentity::new(vec![file], options));
            assert_eq!(described.split(' ').next(), Some("script:a.lua"), "{described}");
        }
    }
}
