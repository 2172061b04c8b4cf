//! A job's place in a profile: its server and tables, the commands beside it, its part of the summary.

use std::collections::BTreeMap;

use crate::commands::beside;
use crate::error::{Error, Result, line, told_apart};
use crate::judge::fingerprint_differences;
use crate::mysql::Dataset;
use crate::plan::Step;
use crate::plan::experiment::{CellGroup, Experiment, RunSpec, ServerSetup};
use crate::plan::profile::{Command, Expect};
use crate::plan::value::bytes;
use crate::summary::{self, CommandRun, Server};
use crate::terms::{self, Class, Finding, finding, joined};
use crate::workload::{mix, name_part};

const NAMED_MAX: usize = 6;
/// Smallest size of a row of any of the tables, bytes.
const ROW_BYTES_MIN: u64 = 150;
const ABSENT: &str = "absent";

pub(crate) struct InProfile<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) leg: &'a CellGroup,
    /// Steps that wrote to its data before; None if unknown.
    pub(super) written_by: Option<Vec<String>>,
    /// The number of a step minus that of its cell.
    pub(super) offset: u32,
    pub(super) subject: &'a ServerSetup,
    pub(super) part: &'a RunSpec,
    pub(super) pid: Option<u32>,
    pub(super) scaled: Option<Finding>,
    pub(super) last: Option<Server>,
}

/// Made before the placeholders are filled: a summary does not show arguments.
fn command_key(command: &Command) -> String {
    let whole = mix(name_part(&format!("{:?} {:?}", command.at.0, command.run)));
    format!("{:04x}", whole >> 48)
}

/// Refuses a server that differs from that of the label's earlier steps: a cell holds one server only.
fn check_same(label: &str, earlier: &Server, server: &Server) -> Result<()> {
    let differences = fingerprint_differences(earlier, server);
    if differences.is_empty() {
        return Ok(());
    }
    let named = differences.iter().map(|d| {
        let (was, is) = told_apart(&d.first, &d.second);
        format!("{} was {was} and is {is}", line(&d.name))
    });
    Err(Error::data(format!(
        "the server is not the one that '{}' was measured on before: {}",
        line(label),
        terms::named(named.collect(), NAMED_MAX, "; ")
    ))
    .hint("another --out for the new server, or start the old one again"))
}

impl InProfile<'_> {
    /// Refuses a server that is not as the profile expects it. At another scale, data of another size relative to the
    /// buffer pool only raises a warning.
    pub(super) fn check(&mut self, server: &Server, dataset: Option<&Dataset>) -> Result<()> {
        // The server's own size of the tables, unless its statistics are older than the rows.
        let bytes = dataset.map(|data| {
            let rows = u64::from(data.tables.count).saturating_mul(data.tables.rows);
            data.data_bytes.max(rows.saturating_mul(ROW_BYTES_MIN))
        });
        if let Some(last) = &self.last {
            check_same(&self.subject.label, last, server)?;
        }
        let (expect, variables) = (&self.subject.expect, &server.variables);
        // Only at full scale: servers have a smallest buffer pool.
        check(expect, variables, bytes.filter(|_| self.experiment.scale.is_full()))?;
        let scaled = bytes.and_then(|bytes| database(expect, variables, bytes));
        self.scaled = scaled.map(|what| finding!(ScaledClass, what));
        Ok(())
    }

    pub(super) fn commands(&self, run_id: &str, step: &Step) -> Vec<beside::Command> {
        let commands = self.part.commands.iter().filter(|command| {
            command.clients.as_ref().is_none_or(|clients| clients.0.contains(&step.clients))
        });
        let filled = (1..).zip(commands).map(|(n, command)| beside::Command {
            at: command.at.0,
            words: command.run.iter().map(|word| self.fill(word, step)).collect(),
            asked: command_key(command),
            output: format!("{run_id}-{}_command{n}.txt", step.name()),
        });
        filled.collect()
    }

    fn fill(&self, word: &str, step: &Step) -> String {
        let pid = self.pid.map_or_else(String::new, |pid| pid.to_string());
        word.replace("{pid}", &pid)
            .replace("{label}", &self.subject.label)
            .replace("{workload}", &self.part.title)
            .replace("{clients}", &step.clients.to_string())
    }

    pub(super) fn describe(
        &self,
        step: &Step,
        commands: Vec<CommandRun>,
    ) -> (summary::Experiment, Vec<Finding>) {
        let names: Vec<String> = commands.iter().map(describe_command).collect();
        let perturbed = (!names.is_empty()).then(|| finding!(Perturbed, names.join(", ")));
        let mut found = Vec::from_iter(perturbed);
        let (writes, at) = (self.part.writes(), step.number.wrapping_sub(self.offset) as usize - 1);
        // Steps that write, or follow one that wrote, must start from the same data in all labels and
        // repeats, or have a warning.
        let written = match self.written_by.as_deref() {
            Some([]) => None,
            Some(titles) => Some(format!("{} wrote to the tables before", titles.join(", "))),
            None => writes.then(|| "whether the tables were written to is not known".into()),
        };
        found.extend(written.map(|written| finding!(DataNotEqual, written)));
        if writes {
            // Only the first step of a sweep finds its data as it was prepared. A later try of it does so if the data
            // is restored.
            let is_first =
                self.leg.cells[0] == at && (step.attempt == 1 || self.subject.server.can_restore());
            found.extend((!is_first).then(|| finding!(CarriedOn)));
            // Steps that should have written before were measured earlier, or are not wanted.
            let missing = self.experiment.before(at, &self.leg.cells);
            let missing = joined(missing.iter().map(|clients| Some(clients.to_string())), ", ");
            let missing = missing.map(|clients| format!("steps at clients {clients} did not run"));
            found.extend(missing.map(|why| finding!(DataNotEqual, why)));
        }
        found.extend(self.scaled.clone());
        let experiment = summary::Experiment {
            profile: self.experiment.profile.name.clone(),
            key: self.experiment.cells[at].key.clone(),
            scale: self.experiment.scale.factor(),
            base_label: self.subject.base.clone(),
            written_by: self.written_by.clone(),
            commands,
        };
        (experiment, found)
    }
}

fn describe_command(command: &CommandRun) -> String {
    let program = line(&command.program);
    match command.exit {
        Some(0) => program,
        Some(status) => format!("{program} (exit status {status})"),
        None => format!("{program} (not started, or ended by a signal)"),
    }
}

fn check(expect: &[Expect], variables: &BTreeMap<String, String>, data: Option<u64>) -> Result<()> {
    let mut broken = Vec::new();
    for (name, values) in expect.iter().flat_map(|expect| &expect.variables) {
        let name = name.replace('-', "_");
        let found = variables.get(&name).map(String::as_str);
        let wanted: Vec<&str> =
            values.0.iter().map(|one| one.0.as_deref().unwrap_or("ON")).collect();
        if !wanted.iter().any(|wanted| holds(wanted, found)) {
            let found = found.unwrap_or("not there");
            broken.push(format!("{name} is {found}, not {}", wanted.join(" or ")));
        }
    }
    broken.extend(data.and_then(|data| database(expect, variables, data)));
    if broken.is_empty() {
        return Ok(());
    }
    Err(Error::server(format!("the server is not as the profile expects: {}", broken.join("; ")))
        .hint("change the server's settings, or [expect] in the profile"))
}

fn database(expect: &[Expect], variables: &BTreeMap<String, String>, data: u64) -> Option<String> {
    let pool = variables.get("innodb_buffer_pool_size").and_then(|text| bytes(text))?;
    let mut wanted = expect.iter().filter_map(|expect| match expect.database? {
        Class::IoBound => (data <= pool).then_some("larger than"),
        Class::Cached | Class::Cold => (data > pool).then_some("inside"),
    });
    let [data, pool] = [data, pool].map(|bytes| bytes.div_ceil(1 << 20));
    wanted.next().map(|wanted| {
        format!(
            "the database has {data} MiB and the buffer pool {pool} MiB: the data are not {wanted} \
             the pool"
        )
    })
}

/// Compares values as texts, as truth values, or as sizes and other numbers.
fn holds(wanted: &str, found: Option<&str>) -> bool {
    let Some(found) = found else { return wanted.eq_ignore_ascii_case(ABSENT) };
    let number = |text: &str| match text.to_ascii_uppercase().as_str() {
        "ON" | "YES" | "TRUE" => Some(1.0),
        "OFF" | "NO" | "FALSE" => Some(0.0),
        _ => bytes(text).map(|bytes| bytes as f64).or_else(|| text.parse().ok()),
    };
    let same = number(wanted).zip(number(found)).is_some_and(|(a, b)| a.total_cmp(&b).is_eq());
    same || wanted.eq_ignore_ascii_case(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> BTreeMap<String, String> {
        [
            ("innodb_buffer_pool_size", "134217728"),
            ("performance_schema", "OFF"),
            ("innodb_io_capacity", "8192"),
            ("innodb_max_dirty_pages_pct", "75.000000"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    fn checked(toml: &str, data: u64) -> std::result::Result<(), String> {
        let expect: Expect = toml::from_str(toml).expect("sound");
        check(&[expect], &variables(), Some(data)).map_err(|e| e.to_string())
    }

    #[test]
    fn values_are_compared_as_servers_mean_them() {
        for value in [
            "performance_schema = false",
            "performance-schema = \"off\"",
            "performance_schema = 0",
            "innodb_buffer_pool_size = \"128M\"",
            "innodb_io_capacity = 8192",
            "innodb_max_dirty_pages_pct = 75",
            "query_cache_size = [0, \"absent\"]",
        ] {
            assert_eq!(checked(&format!("[variables]\n{value}"), 0), Ok(()), "{value}");
        }
        for (value, says) in [
            ("performance_schema = true", "performance_schema"),
            ("innodb_io_capacity = [1, 2]", "8192"),
            ("query_cache_size = 0", "query_cache_size"),
        ] {
            let error = checked(&format!("[variables]\n{value}"), 0).expect_err(value);
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn the_database_is_held_against_the_pool() {
        let (larger, inside) =
            ("database = \"larger-than-buffer-pool\"", "database = \"inside-buffer-pool\"");
        assert_eq!(checked(larger, 1 << 30), Ok(()));
        assert_eq!(checked(inside, 1 << 20), Ok(()));
        assert!(checked(larger, 1 << 20).is_err_and(|e| e.contains(" 1 MiB ")));
        assert!(checked(inside, 1 << 30).is_err_and(|e| e.contains("1024 MiB")));
    }
}
