//! The answer that a comparison begins with: a line for all cells of one verdict, the weightiest first.

use std::collections::BTreeSet;

use super::compared_cell::{ComparedCell, repeats_needed};
use super::escape;
use super::metric::Metric;
use super::names::{at_clients, label};
use super::question::Question;
use super::ratio::{Ratio, p_text};
use super::value::{ratio_decimals, signed, small_number};
use crate::terms::{self, Compared, Format};

/// Lines of an answer; the table below has every cell.
const LINES_MAX: usize = 6;
/// More repeats than these are not advised: longer runs narrow an interval sooner.
const REPEATS_MAX: usize = 24;
/// Ends what may be a drift of the host.
const APART: &str = "; not measured in turn: the host may be the reason";
const ORDER: [Compared; 12] = [
    Compared::Worse,
    Compared::NoRatio,
    Compared::SlightlyWorse,
    Compared::Better,
    Compared::SlightlyBetter,
    Compared::Incomplete,
    Compared::Inconclusive,
    Compared::NotShown,
    Compared::TooFew,
    Compared::Same,
    Compared::NotComparable,
    Compared::NotMeasured,
];

/// Kinds of names that a line needs, because there are several of the kind.
#[derive(Clone, Copy, Default)]
pub(super) struct Several {
    workloads: bool,
    labels: bool,
    metrics: bool,
}

impl Several {
    pub(super) fn among(tables: &[Vec<ComparedCell>], of: &Question) -> Several {
        let workloads: BTreeSet<&str> =
            tables.iter().flatten().map(|row| row.table.workload).collect();
        let (labels, metrics) = (!of.others.is_empty(), !of.also.is_empty());
        Several { workloads: workloads.len() > 1, labels, metrics }
    }

    fn metric_and_label(self, row: &ComparedCell) -> String {
        beginning([self.metrics.then(|| name(row)), self.new_label(row)])
    }

    fn workload_and_label(self, row: &ComparedCell) -> String {
        let workload = self.workloads.then(|| escape::line(row.table.workload));
        beginning([workload, self.new_label(row)])
    }

    fn new_label(self, row: &ComparedCell) -> Option<String> {
        self.labels.then(|| label(row.labels[1]))
    }
}

/// Returns `read-write, p99, 9.7.4: `; nothing where nothing is named.
fn beginning(named: impl IntoIterator<Item = Option<String>>) -> String {
    terms::joined(named, ", ").map_or_else(String::new, |named| named + ": ")
}

/// Cells of one verdict, label and metric: of one workload, or of all where these are not told apart.
type Group<'r, 't, 's> = Vec<&'r ComparedCell<'t, 's>>;

pub(super) fn answer(tables: &[Vec<ComparedCell>], several: Several, of: &Question) -> Vec<String> {
    let groups = groups(tables, several);
    let line = |group: &Group| answer_sentence(group, of.floor, several);
    let mut lines: Vec<String> = groups.iter().map(line).collect();
    let apart = |group: &Group| is_difference(group[0]) && group.iter().any(|row| row.is_apart());
    for new in of.new_labels() {
        let first = groups.iter().position(|group| group[0].labels[1] == new && apart(group));
        if let Some(at) = first {
            lines[at] += APART;
        }
    }
    let [base, new] = of.base_and_new().map(label);
    if let Some(first) = lines.first_mut().filter(|line| !line.contains(&format!("than {base}"))) {
        let new = if several.labels { String::new() } else { new + " " };
        *first += &format!(" ({new}against {base})");
    }
    let more = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    lines.extend((more > 0).then(|| format!("and {more} more below")));
    lines
}

fn groups<'r, 't, 's>(
    tables: &'r [Vec<ComparedCell<'t, 's>>],
    several: Several,
) -> Vec<Group<'r, 't, 's>> {
    // Cells that one label lacks are listed below the tables.
    let all = || tables.iter().flatten().filter(|row| row.lacking_label().is_none());
    let is_found = |row: &&ComparedCell| {
        let counts = [Compared::Worse, Compared::Better, Compared::NoRatio, Compared::Incomplete];
        !row.is_asked_for() || counts.contains(&row.verdict)
    };
    // A rate that was asked for is a finding only if there is nothing else.
    let none = !all().any(|row| is_found(&row));
    let rows = || all().filter(|row| none || is_found(row));
    let mut groups: Vec<Group> = Vec::new();
    for verdict in ORDER {
        for row in rows().filter(|row| row.verdict == verdict) {
            match groups.iter_mut().find(|group| belongs(group[0], row, several)) {
                Some(group) => group.push(row),
                None => groups.push(vec![row]),
            }
        }
    }
    groups
}

/// Puts an answer above what people read; files have the verdicts in their rows.
pub(super) fn above(lines: &[String], text: String, format: Format) -> String {
    let item = |line: &String| format!("- {}\n", escape::markdown(line));
    match format {
        Format::Text => format!("{}\n\n{text}", lines.join("\n")),
        Format::Markdown => format!("{}\n{text}", lines.iter().map(item).collect::<String>()),
        _ => text,
    }
}

fn is_difference(row: &ComparedCell) -> bool {
    use Compared::{Better, SlightlyBetter, SlightlyWorse, Worse};
    [Better, Worse, SlightlyBetter, SlightlyWorse].contains(&row.verdict)
}

fn belongs(first: &ComparedCell, row: &ComparedCell, several: Several) -> bool {
    use Compared::{
        Incomplete, Inconclusive, NoRatio, NotComparable, NotMeasured, NotShown, Same, TooFew,
    };
    let of_any_workload = [Same, TooFew, Inconclusive, NotShown].contains(&row.verdict);
    let lacks = [Incomplete, NoRatio, NotComparable, NotMeasured].contains(&row.verdict);
    first.verdict == row.verdict
        && first.has_stopped() == row.has_stopped()
        // One metric may be another number in another workload: natural.
        && (!several.metrics || first.table.metric == row.table.metric)
        && first.labels == row.labels
        && (of_any_workload || first.table.workload == row.table.workload)
        && (!lacks || first.lack == row.lack)
}

fn answer_sentence(group: &Group, floor: f64, several: Several) -> String {
    let first = group[0];
    let ([base, new], at) = (first.labels.map(label), cells_in_words(group));
    let why = || first.lack.clone().unwrap_or_default();
    let line = match first.verdict {
        Compared::NoRatio if first.has_stopped() => {
            format!("{new} is worse than {base} {at}: {}", why())
        }
        Compared::NotMeasured => format!("{} {at}", why()),
        Compared::Incomplete | Compared::NoRatio | Compared::NotComparable => {
            format!("{} {at}: {}", first.verdict, why())
        }
        Compared::Same => {
            // Rounded: 0.07 times 100 is not 7.
            let percent = (floor * 1e8).round() / 1e6;
            format!("no difference above {percent} % {at}")
        }
        Compared::TooFew => {
            let times = group.iter().filter_map(|row| Some(row.ratio.as_ref()?.times));
            let wanted = repeats_needed(times.fold(1.0, f64::max));
            format!("too few repeats {at}: at least {wanted} of each label are needed")
        }
        Compared::NotShown | Compared::Inconclusive => {
            let range = range(group).map_or_else(String::new, |range| format!(": {range}"));
            format!("inconclusive {at}{range}; {}", advice(group, floor))
        }
        verdict => {
            format!("{new} is {} than {base} {at}: {}", word(verdict, first), size(group, several))
        }
    };
    let names_both = is_difference(first) || first.has_stopped();
    let workloads = workloads(group);
    let workload = workloads.first().filter(|_| several.workloads && workloads.len() == 1).cloned();
    let metric = (several.metrics && !names_both).then(|| name(first));
    let label = several.new_label(first).filter(|_| !names_both);
    beginning([workload, metric, label]) + &line
}

/// Words the verdict of one cell, for a file in which its row may stand alone.
pub(super) fn cell_sentence(row: &ComparedCell, floor: f64) -> String {
    let sentence = answer_sentence(&vec![row], floor, Several::default());
    if row.is_apart() && is_difference(row) { sentence + APART } else { sentence }
}

fn workloads(group: &Group) -> Vec<String> {
    let mut names: Vec<String> = group.iter().map(|row| escape::line(row.table.workload)).collect();
    names.dedup();
    names
}

pub(super) fn cells_in_words(group: &Group) -> String {
    let workloads = workloads(group).len();
    if workloads > 1 {
        return format!("in {} cells of {workloads} workloads", group.len());
    }
    let is_open = group.iter().any(|row| row.column.is_open());
    let name = |row: &&ComparedCell| {
        if is_open { row.column.told() } else { row.column.clients.to_string() }
    };
    let columns = group.iter().map(name);
    let named = terms::named(columns.collect(), 12, ", ");
    let one = group.len() == 1 && group[0].column.clients == 1;
    let noun = match (is_open, one) {
        (true, _) => "",
        (false, true) => " client",
        (false, false) => " clients",
    };
    format!("at {named}{noun}")
}

fn is_time(metric: Metric) -> bool {
    matches!(metric, Metric::Time(..) | Metric::GroupTime(..)) || metric == Metric::SECONDS
}

/// Returns the word that fits what is compared: a server is slow, its misses are not.
fn word(verdict: Compared, row: &ComparedCell) -> &'static str {
    let metric = row.table.metric;
    match verdict {
        _ if !metric.is_rate() && !is_time(metric) => verdict.name(),
        Compared::Better => "faster",
        Compared::SlightlyBetter => "slightly faster",
        Compared::SlightlyWorse => "slightly slower",
        _ => "slower",
    }
}

/// Returns how large a difference is: `0.17x (0.13 to 0.20), p 0.002`; of several cells the extremes.
fn size(group: &Group, several: Several) -> String {
    let metric = group[0].table.metric;
    let ratios = || group.iter().filter_map(|row| row.ratio.as_ref());
    let p = p_text(ratios().map(|ratio| ratio.p).fold(0.0, f64::max));
    let mut estimates: Vec<f64> = ratios().map(Ratio::estimate).collect();
    estimates.sort_by(f64::total_cmp);
    let (least, most) = (estimates[0], estimates[estimates.len() - 1]);
    if !metric.is_rate() {
        let found = match group.as_slice() {
            [one] => change(one),
            _ => range(group).map(|range| format!("{} {range}", name(group[0]))),
        };
        return found.map_or_else(|| format!("p {p}"), |found| format!("{found}, p {p}"));
    }
    let is_named = several.metrics || metric != Metric::QPS;
    let of = if is_named { metric.name() + " " } else { String::new() };
    let bounds = ratios().next().and_then(Ratio::bounds);
    let shown = bounds.into_iter().flat_map(|(low, high)| [low, high]);
    let near = |value: &f64| (value - 1.0).abs() < 0.1;
    let least_decimals = if estimates.iter().any(near) { 3 } else { 2 };
    let decimals = ratio_decimals(shown.chain(estimates.iter().copied())).max(least_decimals);
    let text = |value: f64| small_number(value, decimals);
    if group.len() > 1 {
        return format!("{of}{}x to {}x, p {p} at most", text(least), text(most));
    }
    let bounds = bounds.map(|(low, high)| format!(" ({} to {})", text(low), text(high)));
    format!("{of}{}x{}, p {p}", text(least), bounds.unwrap_or_default())
}

fn name(row: &ComparedCell) -> String {
    row.table.metric_at(&row.column).name()
}

/// The change of the number itself, percent, and its bounds.
fn percent(row: &ComparedCell) -> Option<(f64, Option<(f64, f64)>)> {
    let ratio = row.ratio.as_ref()?;
    let higher = row.table.metric.higher_is_better();
    // Ratios are turned so that more is better.
    let of = |ratio: f64| 100.0 * (if higher { ratio } else { 1.0 / ratio } - 1.0);
    let bounds = ratio.bounds().map(|(low, high)| (of(low), of(high)));
    let in_order = |(a, b): (f64, f64)| if a <= b { (a, b) } else { (b, a) };
    Some((of(ratio.known_estimate()?), bounds.map(in_order)))
}

fn change(row: &ComparedCell) -> Option<String> {
    let Some((estimate, bounds)) = percent(row) else { return row.medians_in_words() };
    let decimals = usize::from(estimate.abs() < 10.0);
    let bounds = bounds.map_or_else(String::new, |(low, high)| {
        format!(" ({} to {} %)", signed(low, decimals), signed(high, decimals))
    });
    Some(format!("{} {} %{bounds}", name(row), signed(estimate, decimals)))
}

/// Returns what the intervals of some cells cover together: `-64 % to +63 %`.
fn range(group: &Group) -> Option<String> {
    let bounds = || group.iter().filter_map(|row| percent(row)?.1);
    let low = bounds().map(|(low, _)| low).reduce(f64::min)?;
    let high = bounds().map(|(_, high)| high).reduce(f64::max)?;
    let decimals = usize::from(low.abs().max(high.abs()) < 10.0);
    Some(format!("{} % to {} %", signed(low, decimals), signed(high, decimals)))
}

fn advice(group: &Group, floor: f64) -> String {
    let wanted = group.iter().map(|row| repeats_to_tell(row, floor));
    match wanted.collect::<Option<Vec<usize>>>().and_then(|all| all.into_iter().max()) {
        Some(repeats) if repeats <= REPEATS_MAX => format!("about {repeats} repeats would tell"),
        _ => "longer or quieter runs would tell".to_owned(),
    }
}

/// The width of an interval falls with the root of the number of repeats.
fn repeats_to_tell(row: &ComparedCell, floor: f64) -> Option<usize> {
    let ratio = row.ratio.as_ref()?;
    let runs = row.runs().into_iter().max()?;
    let least = repeats_needed(ratio.times).max(runs + 1);
    let Some((low, high)) = ratio.log_interval() else { return Some(least) };
    let off = ratio.shift.estimate.abs();
    let wanted = off.max((1.0 + floor).ln() - off);
    let repeats = runs as f64 * ((high - low) / 2.0 / wanted).powi(2);
    (repeats.ceil() < 1e6).then(|| (repeats.ceil() as usize).max(least))
}

pub(super) fn lacking_line(row: &ComparedCell, several: Several) -> Option<String> {
    let is_named = row.verdict != Compared::NotComparable;
    let lack = row.lack_in_words()?;
    Some(if is_named { lack } else { several.metric_and_label(row) + &lack })
}

pub(super) fn change_line(row: &ComparedCell, several: Several) -> Option<String> {
    if row.verdict == Compared::TooFew {
        return Some(several.metric_and_label(row) + &row.at(&row.found()?));
    }
    let (named, change) = (several.workload_and_label(row), change(row)?);
    Some(format!("{named}{change} at {}", at_clients(&row.column)))
}
