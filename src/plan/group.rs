//! Groups of clients beside the measured ones: each with a workload and a rate of its own, constant through a
//! sweep.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::script::{ReadScript, ScriptFile, ScriptOptions, ScriptPart, ScriptValue, workload_of};
use super::value::{
    CLIENTS_MAX, Length, OpCount, OptionValue, Rates, RowCount, Scale, Whole, serialize_display,
};
use crate::error::{Error, Result};
use crate::terms::units::duration;
use crate::terms::{Arrival, Choice as _, GroupName, LOG_INS, StatementMode, clients, joined};
use crate::workload::{Distribution, Schema, Workload, builtin, named, script_of_file};

/// The most groups beside the measured one: each costs every engine thread a little.
const GROUPS_MAX: usize = 8;
const KEYS: &str = "name, clients, rate, arrival, think, reconnect-every, sql, lua and the options of its workload or script";
const EXAMPLE: &str = "--beside update-index,clients=4,rate=200";

/// Finds a workload by its name; the error lists those that there are.
pub(crate) type Find<'f> = dyn Fn(&str) -> Result<Workload> + 'f;

/// A group of clients beside the measured ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    pub name: GroupName,
    #[serde(deserialize_with = "Workload::read_written")]
    pub workload: Workload,
    pub clients: u32,
    /// Ops a second over its clients; None: a closed loop.
    pub rate: Option<f64>,
    pub arrival: Arrival,
    pub think: Option<Duration>,
    #[serde(serialize_with = "serialize_display")]
    pub distribution: Distribution,
    /// Skipped if unset: older resume keys stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnect_every: Option<u64>,
    pub statements: StatementMode,
    /// Its clients run it instead of the workload.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptPart>,
    #[serde(skip)]
    pub read: Option<ReadScript>,
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        match &self.script {
            Some(script) => write!(f, "script {}", script.file)?,
            None => f.write_str(&self.workload.name)?,
        }
        write!(f, ", {}", clients(self.clients))?;
        if let Some(rate) = self.rate {
            write!(f, " at {rate}/s, {}", self.arrival)?;
        }
        if let Some(think) = self.think {
            write!(f, ", think {}", duration(think))?;
        }
        self.reconnect_every.map_or(Ok(()), |every| write!(f, ", reconnect every {every}"))
    }
}

/// The settings of a group beside: the words of `--beside`, and the keys of `[[run.group]]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GroupKnobs {
    /// Its workload, built in or of this file
    pub workload: Option<String>,
    /// A file of SQL statements, beside the profile's, instead of a workload: they are one operation
    pub sql: Option<PathBuf>,
    /// A Lua script of sysbench's instead of a workload, as the run's
    pub lua: Option<String>,
    #[serde(skip)]
    pub file: Option<ScriptFile>,
    /// Its name in the summary, in gates and in metrics: `writer.p99<50ms` [default: that of the workload or the file]
    pub name: Option<GroupName>,
    /// Concurrent clients in all steps [default: 1]
    pub clients: Option<Whole<1, { CLIENTS_MAX as u64 }>>,
    /// Ops a second over its clients [default: a closed loop]
    pub rate: Option<Rates>,
    /// As the run's, with `rate` [default: poisson]
    pub arrival: Option<Arrival>,
    /// As the run's, without `rate`
    pub think: Option<Length<1>>,
    /// As the run's
    pub reconnect_every: Option<OpCount>,
    /// The options of its workload or script: `{ range_size = 10 }`
    pub options: ScriptOptions,
    /// Those of a script's options that `--scale` makes smaller, down to 1
    pub scaled_options: BTreeMap<String, RowCount>,
}

impl FromStr for GroupKnobs {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<GroupKnobs, String> {
        let mut knobs = GroupKnobs::default();
        let mut known = BTreeSet::new();
        for (at, word) in text.split(',').map(str::trim).enumerate() {
            let Some((key, value)) = word.split_once('=') else {
                if at > 0 || word.is_empty() {
                    let what = format!("'{word}' is no KEY=VALUE: {KEYS}; for example {EXAMPLE}");
                    return Err(format!("'{text}': {what}"));
                }
                knobs.workload = Some(word.to_owned());
                continue;
            };
            let (key, value) = (key.trim(), value.trim());
            if !known.insert(key.replace('-', "_")) {
                return Err(format!("'{text}': {key} is given twice"));
            }
            knobs.set(key, value).map_err(|what| format!("'{text}': {key}: {what}"))?;
        }
        Ok(knobs)
    }
}

impl GroupKnobs {
    fn set(&mut self, key: &str, value: &str) -> std::result::Result<(), String> {
        match key {
            "sql" => self.sql = Some(PathBuf::from(value)),
            "lua" => self.lua = Some(value.to_owned()),
            "name" => self.name = Some(value.parse()?),
            "clients" => self.clients = Some(value.parse()?),
            "rate" => self.rate = Some(value.parse()?),
            "arrival" => {
                let words = Arrival::ALL.iter().map(|choice| Some(choice.to_string()));
                let words = joined(words, " and ").unwrap_or_default();
                let none = || format!("known values: {words}");
                self.arrival = Some(Arrival::of(value).ok_or_else(none)?);
            }
            "think" => self.think = Some(value.parse()?),
            "reconnect-every" | "reconnect_every" => self.reconnect_every = Some(value.parse()?),
            option => {
                self.options.0.push((option.to_owned(), ScriptValue::Text(value.to_owned())));
            }
        }
        Ok(())
    }

    /// Adds the options of a script that are smaller at this scale.
    pub(super) fn scale(&mut self, scale: Scale) -> std::result::Result<(), String> {
        let scaled = std::mem::take(&mut self.scaled_options);
        if self.lua.is_none() && !scaled.is_empty() {
            return Err("scaled_options are those of a script".to_owned());
        }
        self.options.add(&scaled, scale)
    }

    fn resolve(&self, find: &Find<'_>, (distribution, statements): Usual) -> Result<Group> {
        let (workload, script) = match (&self.workload, &self.sql, &self.lua) {
            (Some(name), None, None) => (self.with_options(find(name)?)?, None),
            (None, Some(path), None) if path.as_os_str() != "-" => {
                (self.with_options(script_of_file(path, "sql=")?)?, None)
            }
            (None, None, Some(path)) if path != "-" => {
                if self.reconnect_every.is_some() {
                    return Err(Error::usage("reconnect-every is not for a script")
                        .hint("the script opens its connections"));
                }
                let file = self.file.clone().unwrap_or_else(|| ScriptFile::of_path(path));
                (workload_of(path), Some(ScriptPart::new(file, self.options.clone())))
            }
            _ => {
                let text = "a group has a workload, sql=FILE or lua=FILE";
                return Err(Error::usage(text).hint(EXAMPLE));
            }
        };
        let rate = match self.rate.as_ref().map(|rates| rates.0.as_slice()) {
            None => None,
            Some([one]) => Some(*one),
            Some(_) => {
                return Err(Error::usage(
                    "rate: a group beside takes one rate, which all steps use",
                ));
            }
        };
        if self.arrival.is_some() && rate.is_none() {
            return Err(Error::usage("arrival is for a group with a rate")
                .hint("rate=N makes it an open loop"));
        }
        if self.think.is_some() && rate.is_some() {
            return Err(Error::usage("think is for a closed loop, and a rate makes an open one")
                .hint("either think, or rate"));
        }
        let name = workload.name.strip_suffix(".lua").unwrap_or(&workload.name);
        let usual = if workload.defines() { StatementMode::Text } else { StatementMode::Prepared };
        Ok(Group {
            name: self.name.unwrap_or_else(|| GroupName::from_text(name)),
            clients: self.clients.map_or(1, Whole::small),
            rate,
            arrival: self.arrival.unwrap_or_default(),
            think: self.think.map(|think| think.0),
            distribution,
            reconnect_every: self.reconnect_every.map(|every| every.0),
            statements: statements.unwrap_or(usual),
            script,
            read: None,
            workload,
        })
    }

    fn with_options(&self, workload: Workload) -> Result<Workload> {
        let known = joined(workload.options.keys().map(|known| Some(known.clone())), ", ");
        let refused = |what: String| {
            let own = known.as_ref().map(|own| format!("its options: {own}"));
            let own = own.unwrap_or_else(|| "it has no options".to_owned());
            Error::usage(what).hint(format!("known keys: {KEYS}; {own}"))
        };
        let mut options = BTreeMap::new();
        for (name, value) in &self.options.0 {
            let plain = name.replace('-', "_");
            if !workload.options.contains_key(&plain) {
                return Err(refused(format!("{} has no option '{name}'", workload.name)));
            }
            let value = value.to_word().parse::<OptionValue>();
            options.insert(plain, value.map_err(|what| refused(format!("{name}: {what}")))?.0);
        }
        workload.with_options(&options)
    }
}

/// Lists the schemas of the tables that groups name; what is wrong with them is said when they are resolved.
pub(crate) fn schemas(all: &[GroupKnobs], find: &Find<'_>) -> Vec<Schema> {
    let usual = (Distribution::Uniform, None);
    let groups = all.iter().filter_map(|knobs| knobs.resolve(find, usual).ok());
    let named = groups.filter(|group| group.workload.names_tables());
    named.map(|group| group.workload.schema).collect()
}

/// The distribution of keys, and how all statements are sent if a flag says so.
type Usual = (Distribution, Option<StatementMode>);

/// Makes the groups of a plan; errors name the part.
pub(super) fn resolve(all: &[GroupKnobs], find: &Find<'_>, usual: Usual) -> Result<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    if all.len() > GROUPS_MAX {
        return Err(Error::usage(format!(
            "{} groups beside are more than {GROUPS_MAX}",
            all.len()
        )));
    }
    for (number, knobs) in (1..).zip(all) {
        let group = knobs.resolve(find, usual);
        let group = group.map_err(|error| error.context(format!("group {number} beside")))?;
        if group.name.as_str() == LOG_INS {
            return Err(Error::usage(format!(
                "{LOG_INS}.p99 and so on are of log-ins, not of a group"
            ))
            .hint("name=… names the group"));
        }
        if groups.iter().any(|known| known.name == group.name) {
            return Err(Error::usage(format!("two groups beside have the name '{}'", group.name))
                .hint("name=… tells them apart"));
        }
        groups.push(group);
    }
    Ok(groups)
}

/// Finds a workload of loadgen's own.
pub(crate) fn find_builtin(name: &str) -> Result<Workload> {
    named(name).ok_or_else(|| {
        let known = builtin().into_iter().map(|workload| Some(workload.name));
        let known = joined(known, ", ").unwrap_or_default();
        Error::usage(format!("no workload '{name}'"))
            .hint(format!("known workloads: {known}; sql=FILE or lua=FILE is one of your own"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(all: &[&str]) -> Result<Vec<Group>> {
        let knobs: std::result::Result<Vec<GroupKnobs>, String> =
            all.iter().map(|text| text.parse()).collect();
        resolve(&knobs.map_err(Error::usage)?, &find_builtin, (Distribution::Uniform, None))
    }

    #[test]
    fn words_of_a_flag_and_keys_of_a_file_are_one_group() {
        let text = "read-write, name=writer, clients=4, rate=1k, arrival=uniform, range-size=7";
        let of_flag: GroupKnobs = text.parse().expect("a group");
        let file = "workload = 'read-write'\nname = 'writer'\nclients = 4\nrate = '1k'\n\
                    arrival = 'uniform'\noptions = { range_size = 7 }";
        let of_file: GroupKnobs = toml::from_str(file).expect("a group");
        let usual = (Distribution::Uniform, None);
        let all =
            [of_flag, of_file].map(|knobs| knobs.resolve(&find_builtin, usual).expect("a group"));
        assert_eq!(all[0], all[1]);
        let group = groups(&[text]).expect("a plan").remove(0);
        assert_eq!((group.name.as_str(), group.clients, group.rate), ("writer", 4, Some(1000.0)));
        assert_eq!(
            (group.arrival, group.workload.options["range_size"].value),
            (Arrival::Uniform, 7)
        );
        let plain = groups(&["oltp_update_index"]).expect("a plan").remove(0);
        assert_eq!((plain.name.as_str(), plain.clients, plain.rate), ("update-index", 1, None));
    }

    #[test]
    fn group_is_refused_by_its_part_when_it_is_not_whole() {
        for (text, part) in [
            ("", "KEY=VALUE"),
            ("update-index,4", "'4' is no KEY=VALUE"),
            ("update-index,clients=0", "clients"),
            ("update-index,clients=1,clients=2", "twice"),
            ("read-only,range-size=5,range_size=6", "twice"),
            ("update-index,rate=1k..4k", "one rate"),
            ("update-index,arrival=uniform", "rate"),
            ("update-index,arrival=even,rate=1", "uniform"),
            ("update-index,rate=5,think=1s", "think"),
            ("update-index,name=Writer", "'Writer'"),
            ("update-index,speed=4", "no option 'speed'"),
            ("update-index,speed=fast", "name, clients, rate"),
            ("update-indx", "update-index"),
            ("read-only,range_size=x", "range_size: "),
            ("clients=4", "sql=FILE or lua"),
            ("update-index,sql=a.sql", "sql=FILE or lua"),
            ("lua=a.lua,reconnect-every=2", "reconnect-every"),
            ("sql=a.sql,lua=a.lua", "sql=FILE or lua"),
            ("lua=-", "sql=FILE or lua"),
            ("sql=/nonexistent/a.sql", "/nonexistent/a.sql"),
        ] {
            let error = groups(&[text]).expect_err(text).render();
            assert!(error.contains(part), "{text}: {error}");
        }
        let twice =
            groups(&["update-index", "update-index,rate=5"]).expect_err("one name").render();
        assert!(twice.contains("name="), "{twice}");
        let file = "workload = 'read-only'\noptions = { range-size = 5, range_size = 6 }";
        let twice = toml::from_str::<GroupKnobs>(file).expect_err("one option").to_string();
        assert!(twice.contains("range_size is given twice"), "{twice}");
        assert!(groups(&["update-index", "update-index,name=b"]).is_ok());
    }
}
