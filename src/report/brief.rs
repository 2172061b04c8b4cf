//! What a report says of its notes by default: the few lines that change a conclusion.

use std::collections::{BTreeMap, BTreeSet};

use super::notes::{Note, entry, push_new};
use super::table::Table;
use crate::error::clip;
use crate::judge::known_to;
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

/// The class of attempts to open a lost connection again.
const CONNECT: &str = "connect";

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

/// Returns the lines below a report, with the one that tells of all other notes.
pub(crate) fn lines(tables: &[Table], source: &str) -> Vec<String> {
    let mut found: BTreeMap<(Rank, usize, &str), Vec<&Summary>> = BTreeMap::new();
    let mut differences: Vec<(&str, Vec<&str>)> = Vec::new();
    for (table, note) in tables.iter().flat_map(|of| of.notes.iter().map(move |n| (of, n))) {
        let key = (rank(&note.code), order(&note.code), note.code.as_str());
        found.entry(key).or_default().extend(steps(table, note));
        for (name, one, other) in &note.differs {
            if is_said(table, note, name) {
                continue;
            }
            let values = entry(&mut differences, name.as_str());
            [one, other].into_iter().for_each(|value| push_new(values, value.as_str()));
        }
    }
    let all: BTreeSet<&str> = found.keys().map(|(.., code)| *code).collect();
    let (differing, others): (Vec<_>, Vec<_>) =
        found.iter().partition(|((rank, ..), _)| *rank == Rank::Differs);
    let differs = (!differences.is_empty()).then(|| differing_line(differences));
    let failed = others.iter().filter(|((rank, ..), _)| *rank == Rank::Failed).count();
    // What labels differ in has a line, unless too much failed.
    let room = LINES_MAX - usize::from(differs.is_some() && failed < LINES_MAX);
    let mut said: Vec<String> = Vec::new();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for ((rank, _, code), steps) in others.into_iter().filter(|((rank, ..), _)| *rank < Rank::Aside)
    {
        let text = clip(&format!("{MARK} {}", sentence(code, steps)), LINE_MAX);
        let is_new = !said.contains(&text);
        if is_new && said.len() >= room {
            continue;
        }
        debug_assert!(*rank != Rank::Differs);
        told.insert(code);
        said.extend(is_new.then_some(text));
    }
    let mut whole = differs.is_none();
    if let Some((line, fits)) = differs.filter(|_| said.len() < LINES_MAX) {
        said.push(line);
        whole = fits;
    }
    told.extend(differing.iter().filter(|_| whole).map(|((.., code), _)| *code));
    // The conditions have it.
    told.extend(all.get("same_host"));
    let more = all.len() - told.len();
    said.extend((more > 0).then(|| {
        let notes = if said.is_empty() { "note" } else { "more note" };
        let source = if source.chars().count() > SOURCE_MAX { "…" } else { source };
        format!("{}: loadgen report {source} --notes", counted(more as u64, notes))
    }));
    said
}

/// Tells whether the labels name a difference themselves: `8.0.33 innodb_doublewrite=0`; sizes of
/// performance_schema go with it.
fn is_said(table: &Table, note: &Note, name: &str) -> bool {
    let schema = "performance_schema";
    let in_label = |name: &str| {
        let names = format!("{name}=");
        note.places.keys().all(|line| table.lines[*line].label.contains(&names))
    };
    let differs = || table.notes.iter().flat_map(|note| &note.differs).any(|of| of.0 == schema);
    in_label(name) || name != schema && name.starts_with(schema) && differs()
}

/// Returns the place of a code among those of its rank: as they are declared, verdicts first.
fn order(code: &str) -> usize {
    let first = ["partial", "left_out", "debug_build", "too_short"].contains(&code);
    let known = Code::ALL.iter().position(|known| known.name() == code).filter(|_| !first);
    known.map_or(0, |at| at + 1)
}

fn steps<'a>(table: &Table<'a>, note: &Note) -> Vec<&'a Summary> {
    let of_line = |(line, columns): (&usize, &BTreeSet<_>)| {
        let steps: Vec<&Summary> = table.lines[*line].all().collect();
        steps.into_iter().filter(|step| columns.contains(&step.cell())).collect::<Vec<_>>()
    };
    note.places.iter().flat_map(of_line).collect()
}

/// Returns `Differs: NAME ONE and OTHER, …` and whether all differences fit.
fn differing_line(mut differences: Vec<(&str, Vec<&str>)>) -> (String, bool) {
    let place = |name: &str| match IMPORTANT.iter().position(|known| *known == name) {
        Some(at) => at,
        None if FOLLOWING.contains(&name) => IMPORTANT.len() + 1,
        None => IMPORTANT.len(),
    };
    differences.sort_by_key(|(name, _)| place(name));
    let all = differences.len();
    let more = |shown: usize| match all - shown {
        0 => ".".to_owned(),
        rest => format!(", and {rest} more: --notes"),
    };
    let mut line = "Differs: ".to_owned();
    for (at, (name, values)) in differences.iter().enumerate() {
        let values: Vec<String> = values.iter().map(|value| value_shown(name, value)).collect();
        let (last, first) = values.split_last().expect("two values");
        let comma = if at > 0 { ", " } else { "" };
        let values = if *name == "SQL" {
            String::new()
        } else {
            format!(" {} and {last}", first.join(", "))
        };
        let next = format!("{line}{comma}{}{values}", clip(name, VALUE_MAX * 2));
        if at > 0 && next.chars().count() + more(at + 1).chars().count() > LINE_MAX {
            return (line + &more(at), false);
        }
        line = next;
    }
    (clip(&(line + "."), LINE_MAX), true)
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
            format!("Client and server shared a full host{busy}: fine for A/B, not for publishing.")
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
        "errors" => {
            // Attempts to connect are no operations.
            let ops = |step: &Summary| {
                let errors = step.totals.errors.iter().filter(|error| error.class != CONNECT);
                errors.map(|error| error.count).sum()
            };
            let failed = sum(&ops);
            format!("{} failed (not counted in QPS).", counted(failed, "operation"))
        }
        "abandoned" => {
            let lost = sum(&|step| step.totals.abandoned);
            format!("{} got no answer in time.", counted(lost, "operation"))
        }
        "reconnects" => {
            let lost = sum(&|step| step.totals.reconnects);
            let connections = counted(lost, "lost connection");
            format!("{connections} opened again.")
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
    format!("Rate not reached: {:.0} of {rate:.0}/s; {queued} still queued.", step.totals.tps)
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
        let (line, whole) = differing_line(differences());
        assert_eq!(
            (line.as_str(), whole),
            ("Differs: innodb_buffer_pool_size 128M and 1G, and 3 more: --notes", false)
        );
        let (line, whole) = differing_line(differences().split_off(1)[1..2].to_vec());
        assert_eq!((line.as_str(), whole), ("Differs: innodb_buffer_pool_size 128M and 1G.", true));
    }
}
