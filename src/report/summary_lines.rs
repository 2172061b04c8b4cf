//! The few lines of notes below a report by default: those that change a conclusion.

use std::collections::{BTreeMap, BTreeSet};

use super::distinct::{Distinct, entry};
use super::note::{MARK, Note};
use super::notes::{DURABILITY, FOLLOWING, SCHEMA, SCHEMA_SIZE};
use super::options::Notes;
use super::table::WorkloadTable;
use crate::error::clip;
use crate::judge::Difference;
use crate::summary::Summary;
use crate::terms::{Code, Finding, Rank, counted, merge, units};

const LINES_MAX: usize = 3;
const LINE_MAX: usize = 90;
/// Characters of a value that a line names.
const VALUE_MAX: usize = 24;
/// Characters of the paths that the last line names.
const SOURCE_MAX: usize = 50;

/// Settings by which most differences are explained, the most important first.
const IMPORTANT: [&str; 12] = [
    "tables",
    "rows",
    "distribution",
    "SQL",
    "innodb_flush_log_at_trx_commit",
    "sync_binlog",
    "log_bin",
    "innodb_doublewrite",
    "innodb_flush_method",
    "innodb_buffer_pool_size",
    "performance_schema",
    "version",
];

pub(crate) struct Short {
    pub(crate) lines: Vec<String>,
    /// Codes that these lines do not tell, or not in full.
    more: usize,
}

/// Returns the lines below a report, unless its pages have all notes or a later part has them.
pub(crate) fn below(tables: &[WorkloadTable], notes: &Notes, source: &str) -> Vec<String> {
    if *notes != Notes::Brief {
        return Vec::new();
    }
    let Short { mut lines, more } = short(tables);
    let notes = if lines.is_empty() { "note" } else { "more note" };
    let source = if source.chars().count() > SOURCE_MAX { "…" } else { source };
    let all = || format!("{}: loadgen report {source} --notes", counted(more as u64, notes));
    lines.extend((more > 0).then(all));
    lines
}

pub(crate) fn short(tables: &[WorkloadTable]) -> Short {
    // By its name and its group.
    type Kind<'f> = (&'f str, Option<&'f str>);
    let mut found: BTreeMap<(Rank, Option<Code>, Kind), Vec<&Finding>> = BTreeMap::new();
    for Note { finding, .. } in tables.iter().flat_map(|table| table.notes.iter()) {
        let code = finding.code();
        let rank = code.map_or(Rank::Aside, Code::rank);
        found.entry((rank, code, finding.kind())).or_default().push(finding);
    }
    let of =
        |wanted| found.keys().filter(move |(rank, ..)| *rank == wanted).map(|(.., kind)| *kind);
    let differs = differences(tables);
    // The differences of labels have a line, unless too much failed.
    let is_kept = differs.is_some() && of(Rank::Failed).count() < LINES_MAX;
    let room = LINES_MAX - usize::from(is_kept);
    let (mut lines, mut in_lines) = (Vec::new(), BTreeSet::new());
    let weighty = found.iter().filter(|((rank, ..), _)| *rank < Rank::Differs);
    for ((.., kind), all) in weighty.take(room) {
        let (line, fits) = line(&merge(all.iter().copied())[0]);
        lines.push(line);
        in_lines.extend(fits.then_some(*kind));
    }
    let mut whole = differs.is_none();
    if let Some((line, fits)) = differs.filter(|_| lines.len() < LINES_MAX) {
        lines.push(line);
        whole = fits;
    }
    in_lines.extend(of(Rank::Differs).filter(|_| whole));
    // The conditions have it.
    in_lines.extend(of(Rank::Aside).filter(|(name, _)| *name == Code::SameHost.name()));
    Short { more: found.len() - in_lines.len(), lines }
}

/// Returns the line of what labels differ in, and whether it has all of it.
fn differences(tables: &[WorkloadTable]) -> Option<(String, bool)> {
    let (mut all, mut mark) = (Vec::<(&str, Distinct<&str>)>::new(), "");
    for table in tables {
        let by_schema =
            table.notes.iter().flat_map(|note| &note.differs).any(|of| of.name == SCHEMA);
        for note in table.notes.iter() {
            for Difference { name, first, second, .. } in &note.differs {
                if is_in_labels(table, note, name, by_schema) {
                    continue;
                }
                let values = entry(&mut all, name.as_str());
                values.push(first.as_str());
                values.push(second.as_str());
                mark = if note.doubtful { "* " } else { mark };
            }
        }
    }
    let several = all.len() > 1;
    let all = all.into_iter().filter(|(name, _)| !several || *name != DURABILITY);
    let all: Vec<_> = all.map(|(name, values)| (name, values.into_iter().collect())).collect();
    let logs = tables.iter().flat_map(WorkloadTable::all_steps).any(has_binary_log);
    (!all.is_empty()).then(|| differing_line(mark, all, logs))
}

/// Returns a line of a finding, with its advice where there is room; and whether its sentence fits.
fn line(finding: &Finding) -> (String, bool) {
    let sentence = format!("{MARK} {finding:#}");
    let with_advice = format!("{sentence}; {}", finding.advice());
    let fits = |text: &str| text.chars().count() <= LINE_MAX;
    if !finding.advice().is_empty() && fits(&with_advice) {
        return (with_advice, true);
    }
    (clip(&sentence, LINE_MAX - 1), fits(&sentence))
}

/// Returns true if the labels name a difference: `8.0.33 innodb_doublewrite=0`; sizes of performance_schema go with it.
fn is_in_labels(table: &WorkloadTable, note: &Note, name: &str, by_schema: bool) -> bool {
    let in_label = |name: &str| {
        let names = format!("{name}=");
        let is_there = |label: &str| label.split(' ').any(|word| word.starts_with(&names));
        note.places.keys().all(|line| is_there(table.lines[*line].label))
    };
    in_label(name) || by_schema && name.starts_with(SCHEMA_SIZE)
}

fn has_binary_log(step: &Summary) -> bool {
    let value = step.server.variables.get("log_bin");
    value.is_none_or(|value| !["OFF", "0"].contains(&value.as_str()))
}

/// Settings of the binary log come last where no server `logs`: they have no effect. True if it has all.
fn differing_line(
    mark: &str,
    mut differences: Vec<(&str, Vec<&str>)>,
    logs: bool,
) -> (String, bool) {
    let is_idle = |name: &str| !logs && (name == "sync_binlog" || name.starts_with("binlog_"));
    let place = |name: &str| match IMPORTANT.iter().position(|known| *known == name) {
        _ if is_idle(name) => IMPORTANT.len() + 2,
        Some(at) => at,
        None if FOLLOWING.contains(&name) => IMPORTANT.len() + 1,
        None => IMPORTANT.len(),
    };
    differences.sort_by_key(|(name, _)| place(name));
    let all = differences.len();
    let end = |shown: usize| match all - shown {
        0 => ".".to_owned(),
        rest => format!(", and {rest} more"),
    };
    let mut line = format!("{mark}Differs: ");
    for (at, (name, values)) in differences.iter().enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        let next = format!("{line}{comma}{}", difference_in_words(name, values));
        let room = LINE_MAX - end(at + 1).chars().count();
        let fits = next.chars().count() <= room;
        if !fits {
            let rest = if at == 0 { clip(&next, room - 1) + &end(1) } else { line + &end(at) };
            return (rest, false);
        }
        line = next;
    }
    (line + ".", true)
}

/// Returns `tables 8 and 1`; the name alone where values are too long to be told apart.
fn difference_in_words(name: &str, values: &[&str]) -> String {
    let shown: Vec<String> = values.iter().map(|value| value_in_words(name, value)).collect();
    let distinct: BTreeSet<&String> = shown.iter().collect();
    let name_shown = clip(name, VALUE_MAX * 2);
    match shown.split_last() {
        Some((last, first)) if name != "SQL" && distinct.len() == shown.len() => {
            format!("{name_shown} {} and {last}", first.join(", "))
        }
        _ => name_shown,
    }
}

/// Shows sizes as servers take them: `128M`.
fn value_in_words(name: &str, value: &str) -> String {
    let bytes = value.parse::<u64>().ok().filter(|_| name.ends_with("_size"));
    let of = |(unit, shift): &(&str, u32)| {
        let bytes = bytes.filter(|bytes| *bytes > 0 && bytes.trailing_zeros() >= *shift)?;
        Some(format!("{}{unit}", bytes >> shift))
    };
    if name == "rows" {
        return value.parse().map_or_else(|_| clip(value, VALUE_MAX), units::count);
    }
    let short = [("G", 30), ("M", 20), ("K", 10)].iter().find_map(of);
    let other = || if value.is_empty() { "(empty)".to_owned() } else { clip(value, VALUE_MAX) };
    short.unwrap_or_else(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_important_difference_is_named_whole() {
        let differences = || {
            vec![
                ("driver", vec!["a", "b"]),
                ("innodb_io_capacity", vec!["100", "200"]),
                ("innodb_buffer_pool_size", vec!["134217728", "1073741824"]),
                ("version_that_has_a_long_name_and_a_long_value", vec!["one of them", "another"]),
            ]
        };
        let line_and_whole = differing_line("", differences(), true);
        let line = "Differs: innodb_buffer_pool_size 128M and 1G, innodb_io_capacity 100 and 200, and 2 more";
        assert_eq!(line_and_whole, (line.to_owned(), false));
        let line_and_whole = differing_line("* ", differences()[2..3].to_vec(), true);
        let line = "* Differs: innodb_buffer_pool_size 128M and 1G.";
        assert_eq!(line_and_whole, (line.to_owned(), true));
    }

    #[test]
    fn settings_of_the_binary_log_come_last_when_no_server_writes_one() {
        let differences =
            || vec![("sync_binlog", vec!["0", "1"]), ("innodb_io_capacity", vec!["1", "2"])];
        let first = |logs: bool| {
            let (line, _) = differing_line("", differences(), logs);
            line.split(' ').nth(1).expect("a name").to_owned()
        };
        assert_eq!([true, false].map(first), ["sync_binlog", "innodb_io_capacity"]);
    }

    #[test]
    fn a_difference_of_any_length_fits_its_line() {
        let values: Vec<String> = (0..20).map(|at| format!("{at}{}", "x".repeat(200))).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        for many in 1..4 {
            let (line, whole) = differing_line("* ", vec![("tables", values.clone()); many], true);
            assert!(line.chars().count() <= LINE_MAX && !whole, "{line}");
            assert_eq!(line.ends_with(" more"), many > 1, "{line}");
        }
    }

    #[test]
    fn values_that_look_alike_are_not_shown() {
        let long = "x".repeat(100);
        let values = [format!("{long}one"), format!("{long}two")];
        let text = difference_in_words("optimizer_switch", &[&values[0], &values[1]]);
        assert_eq!(text, "optimizer_switch");
        assert_eq!(difference_in_words("init_connect", &["", "a"]), "init_connect (empty) and a");
    }
}
