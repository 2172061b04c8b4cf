//! What a report says of its notes by default: the few lines that change a conclusion.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash, Hasher};

use super::notes::{Distinct, Note, entry};
use super::table::Table;
use crate::error::clip;
use crate::judge::known_to;
use crate::judge::thresholds::OTHER_LOAD;
use crate::summary::{Summary, VerdictKind};
use crate::terms::Value::Share;
use crate::terms::{Choice, Code, Rank, counted, units};

/// Lines below a report, and characters of each.
const LINES_MAX: usize = 3;
const LINE_MAX: usize = 90;
/// Characters of a value that a line names.
const VALUE_MAX: usize = 24;
/// Characters of the paths that the last line names.
const SOURCE_MAX: usize = 50;
/// A rate that is known no better than this is not known.
const UNKNOWN: f64 = 1.0;

/// Stands at the numbers and labels that a note makes doubtful.
pub(crate) const MARK: &str = "*";

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
/// Differences that follow from those of versions.
const FOLLOWING: [&str; 4] = ["driver", "character sets", "table formats", "version_comment"];
/// What has sizes of its own, which go with it.
const SCHEMA: &str = "performance_schema";
/// The settings of commits in one word: what differs in it is named as a setting, too.
const DURABILITY: &str = "durability";

/// Where the reader finds all notes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Notes {
    /// In a report of these paths.
    #[default]
    Brief,
    /// Below the tables of this one.
    All,
    /// Below a later part of this one.
    Later,
}

/// Returns how much a note changes a conclusion.
pub(crate) fn rank(code: &str) -> Rank {
    match code {
        _ if is_verdict(code) => Rank::Doubt,
        "conditions" | "overheads" | "settings" | "other_queues" | "invocations" => Rank::Differs,
        code => Code::named(code).map_or(Rank::Aside, Code::rank),
    }
}

fn is_verdict(code: &str) -> bool {
    VerdictKind::ALL.iter().any(|kind| kind.name().replace('-', "_") == code)
}

/// Tells whether a difference is there because of another one, given whether versions differ.
pub(crate) fn follows(name: &str, other_version: bool) -> bool {
    name == DURABILITY || other_version && FOLLOWING.contains(&name)
}

/// Returns the lines below a report, unless its pages have all notes or a later part has them.
pub(crate) fn below(tables: &[Table], notes: &Notes, source: &str) -> Vec<String> {
    if *notes == Notes::Brief { lines(tables, source) } else { Vec::new() }
}

/// Returns the lines below a report, with the one that tells of all other notes.
pub(crate) fn lines(tables: &[Table], source: &str) -> Vec<String> {
    let mut found: BTreeMap<(Rank, usize, &str), Distinct<ByAddress>> = BTreeMap::new();
    let (mut differences, mut mark) = (Vec::<(&str, Distinct<&str>)>::new(), "");
    for table in tables {
        let by_schema = table.notes.iter().flat_map(|note| &note.differs).any(|of| of.0 == SCHEMA);
        for note in table.notes.iter() {
            let code = note.code.as_str();
            // A step is in the tables of several metrics.
            let of_code = found.entry((rank(code), order(code), code)).or_default();
            steps(table, note).for_each(|step| of_code.push(ByAddress(step)));
            for (name, one, other) in &note.differs {
                if is_said(table, note, name, by_schema) {
                    continue;
                }
                let values = entry(&mut differences, name.as_str());
                values.push(one.as_str());
                values.push(other.as_str());
                mark = if note.doubtful { "* " } else { mark };
            }
        }
    }
    let found = found.into_iter().map(|(code, steps)| (code, steps.into_iter().map(|of| of.0)));
    let found: BTreeMap<(Rank, usize, &str), Vec<&Summary>> =
        found.map(|(code, steps)| (code, steps.collect())).collect();
    let differences =
        differences.into_iter().map(|(name, values)| (name, values.into_iter().collect()));
    let mut differences: Vec<(&str, Vec<&str>)> = differences.collect();
    if differences.len() > 1 {
        differences.retain(|(name, _)| *name != DURABILITY);
    }
    let of =
        |wanted| found.keys().filter(move |(rank, ..)| *rank == wanted).map(|(.., code)| *code);
    let logs = tables.iter().flat_map(Table::all).any(has_binary_log);
    let differs = (!differences.is_empty()).then(|| differing_line(mark, differences, logs));
    // What labels differ in has a line, unless too much failed.
    let is_kept = differs.is_some() && of(Rank::Failed).count() < LINES_MAX;
    let room = LINES_MAX - usize::from(is_kept);
    // What a full host makes too short for its noise is said with the host.
    let shared = found.iter().find(|((.., code), _)| *code == "shared_host");
    let joint = shared.filter(|(_, steps)| good_to(steps).is_some());
    let shared: HashSet<ByAddress> =
        joint.into_iter().flat_map(|(_, steps)| steps).map(|step| ByAddress(step)).collect();
    let is_shared = |step: &&Summary| shared.contains(&ByAddress(step));
    let (mut said, mut told) = (Vec::new(), BTreeSet::new());
    for ((_, _, code), steps) in found.iter().filter(|((rank, ..), _)| *rank < Rank::Differs) {
        let text = match joint {
            Some((_, of)) if *code == "too_short" && steps.iter().all(is_shared) => {
                sentence("shared_host", of)
            }
            _ => sentence(code, steps),
        };
        let text = clip(&format!("{MARK} {text}"), LINE_MAX - 1);
        let is_new = !said.contains(&text);
        if is_new && said.len() == room {
            continue;
        }
        told.insert(*code);
        said.extend(is_new.then_some(text));
    }
    let mut whole = differs.is_none();
    if let Some((line, fits)) = differs.filter(|_| said.len() < LINES_MAX) {
        said.push(line);
        whole = fits;
    }
    told.extend(of(Rank::Differs).filter(|_| whole));
    // The conditions have it.
    told.extend(of(Rank::Aside).filter(|code| *code == "same_host"));
    let more = found.len() - told.len();
    let notes = if said.is_empty() { "note" } else { "more note" };
    let source = if source.chars().count() > SOURCE_MAX { "…" } else { source };
    let all = || format!("{}: loadgen report {source} --notes", counted(more as u64, notes));
    said.extend((more > 0).then(all));
    said
}

/// Tells whether the labels name a difference themselves: `8.0.33 innodb_doublewrite=0`; sizes of
/// performance_schema go with it.
fn is_said(table: &Table, note: &Note, name: &str, by_schema: bool) -> bool {
    let in_label = |name: &str| {
        let names = format!("{name}=");
        let is_there = |label: &str| label.split(' ').any(|word| word.starts_with(&names));
        note.places.keys().all(|line| is_there(table.lines[*line].label))
    };
    in_label(name) || by_schema && name != SCHEMA && name.starts_with(SCHEMA)
}

/// Returns the place of a code among those of its rank: as they are declared, verdicts first.
fn order(code: &str) -> usize {
    let first = ["clash", "partial", "left_out", "debug_build", "too_short"].contains(&code);
    let known = Code::ALL.iter().position(|known| known.name() == code).filter(|_| !first);
    known.map_or(0, |at| at + 1)
}

/// Returns the steps that a note is about.
fn steps<'t, 'a>(table: &'t Table<'a>, note: &'t Note) -> impl Iterator<Item = &'a Summary> {
    let is_left_out = note.code == Code::LeftOut.name();
    note.places.iter().flat_map(move |(line, columns)| {
        let line = &table.lines[*line];
        let steps = if is_left_out { &line.left_out } else { &line.steps };
        steps.iter().copied().filter(move |step| columns.contains(&step.cell()))
    })
}

/// A step that equals no other one, whatever it holds.
#[derive(Clone, Copy)]
struct ByAddress<'a>(&'a Summary);

impl PartialEq for ByAddress<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for ByAddress<'_> {}

impl Hash for ByAddress<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.0, state);
    }
}

/// Tells whether a server wrote a binary log; where that is not known, it may have.
fn has_binary_log(step: &Summary) -> bool {
    let value = step.server.variables.get("log_bin");
    value.is_none_or(|value| !["OFF", "0"].contains(&value.as_str()))
}

/// Returns `Differs: NAME ONE and OTHER, …` and whether it has all differences. Settings of the binary log
/// come last where no server `logs`: they have no effect.
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
        rest => format!(", and {rest} more: --notes"),
    };
    let mut line = format!("{mark}Differs: ");
    for (at, (name, values)) in differences.iter().enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        let next = format!("{line}{comma}{}", with_values(name, values));
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
fn with_values(name: &str, values: &[&str]) -> String {
    let shown: Vec<String> = values.iter().map(|value| value_shown(name, value)).collect();
    let distinct: BTreeSet<&String> = shown.iter().collect();
    let name_shown = clip(name, VALUE_MAX * 2);
    match shown.split_last() {
        Some((last, first)) if name != "SQL" && distinct.len() == shown.len() => {
            format!("{name_shown} {} and {last}", first.join(", "))
        }
        _ => name_shown,
    }
}

/// Shows sizes as servers are told them: `128M`.
fn value_shown(name: &str, value: &str) -> String {
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

/// Tells how well the worst of some steps is known that are too short; none where other programs were at
/// work, too.
fn good_to(steps: &[&Summary]) -> Option<f64> {
    let load = |step: &&Summary| step.client.share.as_ref()?.other_load;
    if steps.iter().filter_map(load).any(|load| load > OTHER_LOAD) {
        return None;
    }
    let short = steps.iter().filter(|step| step.is_warned(Code::TooShort));
    // Where one is not known at all, there is no number.
    let known: Option<Vec<f64>> = short.map(|step| known_to(step)).collect();
    known?.into_iter().reduce(f64::max).filter(|error| *error < UNKNOWN)
}

/// Returns what is said of a code's steps, in at most two characters less than a line.
fn sentence(code: &str, steps: &[&Summary]) -> String {
    let most = |of: &dyn Fn(&Summary) -> Option<f64>| {
        let values = steps.iter().filter_map(|step| of(step)).filter(|value| value.is_finite());
        values.reduce(f64::max)
    };
    let sum = |of: &dyn Fn(&Summary) -> u64| -> u64 {
        steps.iter().map(|step| of(step)).fold(0, u64::saturating_add)
    };
    let share = |of| most(of).map(Share);
    match code {
        "shared_host" => {
            let busy = share(&|step| step.client.share.as_ref()?.host_busy);
            let busy = busy.map_or_else(String::new, |busy| format!(" ({busy} CPU)"));
            match share(&|step| step.client.share.as_ref()?.other_load) {
                Some(Share(load)) if load > OTHER_LOAD => {
                    let load = Share(load);
                    format!(
                        "The host was full{busy}, other programs used up to {load}: use a quiet one."
                    )
                }
                _ => match good_to(steps) {
                    Some(error) => format!(
                        "Client and server shared a full host{busy}: good to ±{}, for A/B only.",
                        Share(error)
                    ),
                    None => format!(
                        "Client and server shared a full host{busy}: fine for A/B, not for publishing."
                    ),
                },
            }
        }
        "client_bound" => {
            "The client was the limit, not the server: use more --engine-threads or hosts."
                .to_owned()
        }
        "noisy" => match share(&|step| step.client.share.as_ref()?.other_load) {
            Some(Share(load)) if load > 0.01 => {
                let load = Share(load);
                format!("Noisy: other programs used up to {load} of the cores. Use a quiet host.")
            }
            _ => "Noisy: something else slowed client or server down. Use a quiet host.".to_owned(),
        },
        "too_short" => match most(&known_to) {
            Some(error) if error < UNKNOWN => {
                format!("Runs too short: good to ±{} only. Use a longer --time.", Share(error))
            }
            _ => Code::TooShort.brief().to_owned(),
        },
        "errors" => match sum(&Summary::failed_ops) {
            0 => Code::Errors.brief().to_owned(),
            failed => {
                let all = steps.iter().flat_map(|step| &step.totals.errors);
                let mut by_code: BTreeMap<u16, u64> = BTreeMap::new();
                for error in all.filter(|error| error.is_of_op()) {
                    error
                        .code
                        .iter()
                        .for_each(|of| *by_code.entry(*of).or_default() += error.count);
                }
                let most = by_code.into_iter().find(|(_, count)| count * 2 > failed);
                let code = most.map(|(code, _)| code);
                let code = code.map_or_else(String::new, |of| format!(", most with error {of}"));
                let failed = counted(failed, "operation");
                format!("{failed} failed{code} (not counted in QPS).")
            }
        },
        "abandoned" => {
            let lost = sum(&|step| step.totals.abandoned);
            format!("{} got no answer in time.", counted(lost, "operation"))
        }
        "reconnects" => {
            let lost = sum(&|step| step.totals.reconnects);
            let verb = if lost == 1 { "was" } else { "were" };
            format!("{} {verb} opened again.", counted(lost, "lost connection"))
        }
        "outages" => {
            let gap = |step: &Summary| step.outages.iter().map(|of| of.gap_s).reduce(f64::max);
            let gap = most(&gap).unwrap_or(0.0);
            format!("Outage: no successful operation for {gap:.1} s.")
        }
        "target_not_sustained" => not_reached(steps),
        "left_out" => {
            let steps = counted(steps.len() as u64, "step");
            format!("{steps} did not complete: left out (--partial shows what was measured).")
        }
        code => Code::named(code).map_or("", Code::brief).to_owned(),
    }
}

/// Says what became of the rate that was missed most.
fn not_reached(steps: &[&Summary]) -> String {
    let part = |step: &&&Summary| step.totals.tps / step.plan.rate.unwrap_or(f64::INFINITY);
    let worst = steps.iter().min_by(|one, other| part(one).total_cmp(&part(other)));
    let Some((step, rate)) = worst.and_then(|step| Some((step, step.plan.rate?))) else {
        return Code::NotSustained.brief().to_owned();
    };
    let queued = counted(step.totals.backlog.unwrap_or(0), "request");
    let done = units::rate(step.totals.tps);
    format!("Rate not reached: {done} of {rate}/s; {queued} still queued.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_fits_its_line() {
        for code in Code::ALL {
            let brief = code.brief();
            assert!(brief.chars().count() + 2 <= LINE_MAX, "{brief}");
            assert_eq!(brief.is_empty(), code.rank() == Rank::Aside, "{}", code.name());
        }
    }

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
        let said = differing_line("", differences(), true);
        let line = "Differs: innodb_buffer_pool_size 128M and 1G, and 3 more: --notes";
        assert_eq!(said, (line.to_owned(), false));
        let said = differing_line("* ", differences()[2..3].to_vec(), true);
        let line = "* Differs: innodb_buffer_pool_size 128M and 1G.";
        assert_eq!(said, (line.to_owned(), true));
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
            assert_eq!(line.contains("more: --notes"), many > 1, "{line}");
        }
    }

    #[test]
    fn values_that_look_alike_are_not_shown() {
        let long = "x".repeat(100);
        let values = [format!("{long}one"), format!("{long}two")];
        let said = with_values("optimizer_switch", &[&values[0], &values[1]]);
        assert_eq!(said, "optimizer_switch");
        assert_eq!(with_values("init_connect", &["", "a"]), "init_connect (empty) and a");
    }
}
