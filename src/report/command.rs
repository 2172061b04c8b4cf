//! The command line that would ask for the same steps again.

use std::collections::BTreeSet;

use super::names::listed;
use crate::plan::knobs::{INSERT_BYTES, SLO_RESOLUTION};
use crate::summary::{Group, Load, RateSearch, Summary};
use crate::terms::{GroupName, Launcher, OnError, Rate, StatementMode, joined};
use crate::workload::builtin;

/// Makes the command as far as summaries know it: settings that differ from defaults, or that matter most.
pub(super) fn command(steps: &[&Summary]) -> String {
    let first = steps[0];
    if let Some(of) = &first.experiment {
        return format!("loadgen run of the profile {} at scale {}", of.profile, of.scale);
    }
    if let Some(load) = &first.load {
        return written(&write_load(first, load));
    }
    let (plan, workload) = (&first.plan, &first.workload);
    let clients: BTreeSet<u32> = steps.iter().map(|step| step.plan.clients).collect();
    let rates: BTreeSet<Rate> = steps.iter().filter_map(|step| step.cell().rate).collect();
    // A search has chosen its other rates, and each of its repeats is a search.
    let rate = plan.search.as_ref().map(|search| search.start.to_string());
    let searches = steps.iter().filter_map(|step| step.plan.search.as_ref());
    let repeats = searches.map(|search| search.number).max().unwrap_or(plan.repeats);
    let seconds = |s: f64| format!("{s}s");
    let usual = |step: &Summary| step.client.cores.clamp(1, step.clients_of_all().max(1));
    // Of each host.
    let each = |step: &Summary| step.plan.engine_threads / step.hosts.len().max(1) as u32;
    let unusual = steps.iter().filter(|step| step.plan.engine_threads != usual(step));
    let threads = unusual.map(|step| each(step).max(1));
    // No summary keeps how they were started: such a command may have a secret in it.
    let hosts = first.hosts.iter().map(|host| Some(host.name.clone()));
    // Only a launcher's ranks count from 0.
    let launched = first.hosts.iter().any(|host| host.rank == 0);
    let before = first.conditions.as_ref().and_then(|conditions| conditions.before.as_ref());
    let class = first.conditions.as_ref().and_then(|conditions| conditions.expected_class);
    let mut words = vec!["loadgen".to_owned()];
    // Old summaries do not say which are loadgen's own.
    if workload.built_in || builtin().iter().any(|one| one.name == workload.name) {
        words.push(workload.name.clone());
    } else if workload.script.is_some() {
        words.extend(["lua".to_owned(), workload.name.clone()]);
    } else {
        words.extend(["sql".to_owned(), "--file".to_owned(), format!("{}.sql", workload.name)]);
    }
    let mut flag = |name: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| write_flag(name, value)));
    };
    flag("tables", (plan.tables > 0).then(|| plan.tables.to_string()));
    flag("rows", (plan.rows > 0).then(|| plan.rows.to_string()));
    flag("clients", Some(listed(&clients, ",")));
    flag("warmup", Some(seconds(plan.warmup_s)));
    flag("time", plan.time_s.map(seconds));
    flag("ops", plan.ops.map(|ops| ops.to_string()));
    flag("rate", rate.or_else(|| (!rates.is_empty()).then(|| listed(&rates, ","))));
    let level = plan.search.iter().flat_map(|search| &search.level);
    level.for_each(|condition| flag("slo", Some(condition.clone())));
    flag("slo-resolution", plan.search.as_ref().and_then(unusual_resolution));
    flag("arrival", plan.arrival.map(|arrival| arrival.to_string()));
    flag("repeat", (repeats > 1).then(|| repeats.to_string()));
    flag("statements", (workload.mode == StatementMode::Text).then(|| "text".to_owned()));
    let is_script = workload.script.is_some();
    flag("distribution", Some(workload.distribution.clone()).filter(|_| !is_script));
    flag("spread", Some(workload.spread.to_string()).filter(|_| !is_script));
    flag("engine-threads", threads.map(|threads| threads.to_string()).next());
    flag("hosts", joined(hosts, ",").filter(|_| !launched));
    flag("ranks", launched.then(|| Launcher::Auto.to_string()));
    flag("charset", plan.charset.clone());
    flag("on-error", (plan.on_error != OnError::Abort).then(|| plan.on_error.to_string()));
    flag("max-errors", plan.max_errors.clone());
    flag("op-timeout", plan.op_timeout_s.map(seconds));
    flag("think", plan.think_s.map(seconds));
    flag("reconnect-every", plan.reconnect_every.map(|every| every.to_string()));
    first.groups.iter().for_each(|group| flag("beside", Some(beside(group))));
    flag("seed", Some(plan.seed.to_string()));
    flag("warm", before.map(|before| before.warm.clone()).filter(|warm| warm != "none"));
    flag("ahi", before.map(|before| before.ahi.clone()).filter(|ahi| ahi != "as-is"));
    flag("expect-class", class.map(|class| class.to_string()));
    let options = workload.options.iter();
    words.extend(options.map(|(name, value)| format!("--{}={value}", name.replace('_', "-"))));
    let settle = before.and_then(|before| before.settle.as_ref());
    words.extend(settle.map(|settle| format!("--settle={}s", settle.limit_s)));
    words.extend(write_flag("label", first.label.clone()));
    if let Some(script) = &workload.script {
        words.push("--".to_owned());
        let options = script.options.iter();
        words.extend(options.map(|(name, value)| format!("--{}={value}", name.replace('_', "-"))));
    }
    written(&words)
}

fn unusual_resolution(search: &RateSearch) -> Option<String> {
    let is_usual = (search.resolution - SLO_RESOLUTION).abs() < 1e-9;
    (!is_usual).then(|| format!("{}%", (search.resolution * 1e6).round() / 1e4))
}

fn write_load(step: &Summary, load: &Load) -> Vec<String> {
    let (plan, is_generated) = (&step.plan, load.file.is_none());
    let mut words = vec!["loadgen".to_owned(), "load".to_owned()];
    let mut flag = |name: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| write_flag(name, value)));
    };
    let unusual_bytes = load.insert_bytes.filter(|bytes| *bytes != INSERT_BYTES);
    flag("from-dump", load.file.clone());
    flag("tables", is_generated.then(|| plan.tables.to_string()));
    flag("rows", is_generated.then(|| plan.rows.to_string()));
    flag("data-seed", plan.data_seed.map(|seed| seed.to_string()));
    flag("mode", load.mode.clone());
    flag("insert-bytes", unusual_bytes.map(|bytes| bytes.to_string()));
    // A dump names its own. Nothing says whether the usual one was asked for.
    let is_unusual = |name: &String| is_generated && !["", "utf8mb4"].contains(&name.as_str());
    flag("charset", Some(load.charset.clone()).filter(is_unusual));
    flag("repeat", (plan.repeats > 1).then(|| plan.repeats.to_string()));
    flag("label", Some(step.label.clone()));
    words
}

/// Makes one word where the value alone would be taken for a flag.
fn write_flag(name: &str, value: String) -> Vec<String> {
    if value.starts_with('-') {
        vec![format!("--{name}={value}")]
    } else {
        vec![format!("--{name}"), value]
    }
}

fn written(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<String>>().join(" ")
}

/// Makes the word of a group beside.
fn beside(group: &Group) -> String {
    let workload = &group.workload;
    let script = workload.script.as_ref();
    // As a file of that name would have it.
    let stem = script.and(workload.name.strip_suffix(".lua")).unwrap_or(&workload.name);
    let usual = GroupName::from_text(stem);
    let mut words = vec![match script {
        Some(_) => format!("lua={}", workload.name),
        None if workload.built_in => workload.name.clone(),
        None => format!("sql={}.sql", workload.name),
    }];
    let mut key = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name}={value}")));
    };
    key("name", Some(group.name.clone()).filter(|name| name != usual.as_str()));
    key("clients", Some(group.clients.to_string()));
    key("rate", group.rate.map(|rate| rate.to_string()));
    key("arrival", group.arrival.map(|arrival| arrival.to_string()));
    key("think", group.think_s.map(|s| format!("{s}s")));
    key("reconnect-every", group.reconnect_every.map(|every| every.to_string()));
    let of_default = |name: &String| workload.option_defaults.as_ref()?.get(name);
    let options = workload.options.iter().filter(|(name, value)| of_default(name) != Some(value));
    options.for_each(|(name, value)| key(name, Some(value.to_string())));
    let options = script.into_iter().flat_map(|script| &script.options);
    options.for_each(|(name, value)| key(name, Some(value.to_string())));
    words.join(",")
}

pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    let is_plain = !word.is_empty() && word.chars().all(plain);
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::{beside, command, quoted};
    use crate::summary::{Group, Load, RateSearch, Script, Summary};

    #[test]
    fn load_is_asked_for_again_by_its_rows_or_its_dump() {
        let mut step = Summary::sound();
        (step.plan.tables, step.plan.rows, step.plan.repeats) = (2, 1000, 3);
        step.load = Some(Load {
            mode: Some("extended".to_owned()),
            insert_bytes: Some(65_536),
            charset: "latin1".to_owned(),
            ..Load::default()
        });
        assert_eq!(
            command(&[&step]),
            "loadgen load --tables 2 --rows 1000 --data-seed 1 --mode extended \
             --insert-bytes 65536 --charset latin1 --repeat 3 --label 8.0.33"
        );
        (step.plan.data_seed, step.plan.repeats) = (None, 1);
        let (file, charset) = (Some("a b.sql".to_owned()), "latin1".to_owned());
        step.load = Some(Load { file, charset, ..Load::default() });
        assert_eq!(command(&[&step]), "loadgen load --from-dump 'a b.sql' --label 8.0.33");
    }

    #[test]
    fn search_is_asked_for_again_by_its_level_and_its_first_rate() {
        let asked = |resolution| {
            let step = |number, rate| {
                let mut step = Summary::sound();
                let level = ["p99<10ms", "errors<1%"].map(str::to_owned).to_vec();
                step.plan.search = Some(RateSearch { level, number, start: 1000.0, resolution });
                step.plan.rate = Some(rate);
                step
            };
            command(&[&step(1, 1000.0), &step(2, 1414.0)])
        };
        let (usual, finer) = (asked(0.05), asked(0.07));
        let words = " --rate 1000 --slo 'p99<10ms' --slo 'errors<1%' --repeat 2 ";
        assert!(usual.contains(words), "{usual}");
        assert!(finer.contains(" --slo-resolution 7% --repeat 2 "), "{finer}");
    }

    #[test]
    fn group_of_a_script_is_asked_for_again_by_its_file_and_options() {
        let mut group = Group { name: "roles".to_owned(), clients: 2, ..Group::default() };
        let options = [("phase".to_owned(), 1.0), ("rows".to_owned(), 2.5)].into();
        group.workload.name = "roles.lua".to_owned();
        group.workload.script = Some(Script { options, ..Script::default() });
        assert_eq!(beside(&group), "lua=roles.lua,clients=2,phase=1,rows=2.5");
    }

    #[test]
    fn label_is_no_flag_when_it_begins_with_a_hyphen() {
        let mut step = Summary::sound();
        "-o x".clone_into(&mut step.label);
        assert!(command(&[&step]).ends_with(" '--label=-o x'"), "{}", command(&[&step]));
        step.load = Some(Load::default());
        assert!(command(&[&step]).ends_with(" '--label=-o x'"), "{}", command(&[&step]));
    }

    #[test]
    fn a_shell_reads_a_word_as_it_is() {
        assert_eq!(
            ["8.4.3", "it's", "a b", "", "$(x)"].map(quoted),
            ["8.4.3", r"'it'\''s'", "'a b'", "''", "'$(x)'"]
        );
    }
}
