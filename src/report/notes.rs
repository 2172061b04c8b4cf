//! The texts around a table: its title, the conditions below it, footnotes, and the settings by
//! which labels differ.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value as Json};

use super::distinct::{Distinct, entry, push_new};
use super::names::{NAMED_MAX, both_values, label, list_some, listed, value_instead};
use super::note::{Footnotes, MARK, Note, grouped};
use super::run::{Run, ending, imported_conditions, options_in_words};
use super::table::{LabelRow, NO_RATIO, TableCell, WorkloadTable, is_comparable, not_comparable};
use super::{escape, imported};
use crate::error::{VALUE_MAX, clip, told_apart};
use crate::judge::{
    self, ABSENT, CONDITIONS, Condition, Difference, HeldBy, OVERHEADS, ShownIn, Weight,
};
use crate::summary::{Outcome, Summary};
use crate::terms::{self, Cell, Code, Finding, Warm, counted, finding, joined, units};

/// Refers to the rest where more settings differ than are named.
const SETTINGS: &str = " (all of them: --layout settings --format csv)";
const UNTOLD: [&str; 3] = ["data seed", "spread", "durability"];

/// Fills in the footnotes of a table, in the order in which its lines need them.
pub(crate) fn noted(table: WorkloadTable) -> WorkloadTable {
    let costs = table.metric.is_cost();
    noted_with(table, costs)
}

/// The same; `costs` where the page shows what an op costs, whatever the table's metric is.
pub(crate) fn noted_with(table: WorkloadTable, costs: bool) -> WorkloadTable {
    let reference = table.reference_line(has_steps).map(Reference::new);
    let first = table.reference_line(|line| line.cell().is_some());
    let mut alike: BTreeMap<(String, String), Note> = BTreeMap::new();
    let mut found = Vec::new();
    for (at, line) in table.lines.iter().enumerate() {
        let own = reference.iter().flat_map(|reference| differing_line(line, reference));
        let imported = first.and_then(|first| imported::differing_line(line, first));
        for note in own.chain(imported).chain(clash(line)) {
            let columns = table.columns.iter().copied().collect();
            let key = (note.finding.name().to_owned(), note.text.clone());
            alike.entry(key).or_insert(note).places.insert(at, columns);
        }
        let findings = findings(&table, line, costs).into_iter();
        found.extend(findings.map(|(column, finding)| (at, column, finding)));
    }
    let mut notes: Vec<Note> = alike.into_values().collect();
    notes.extend(grouped(found));
    notes.sort_by_key(|note| note.places.keys().next().copied());
    for note in &mut notes {
        note.text += &places_in_words(&table, &note.places);
    }
    WorkloadTable { notes: Footnotes::new(notes), ..table }
}

fn has_steps(line: &LabelRow) -> bool {
    line.steps().next().is_some()
}

fn clash(line: &LabelRow) -> Option<Note> {
    let differences = list_some(line.clashes.iter().map(both_values).collect(), "; ");
    let differences = Some(differences).filter(|differences| !differences.is_empty());
    let clash = || finding!(Clash, label(line.label), line.clashing, differences);
    (line.clashing > 0).then(|| Note::new(clash(), line.clashes.iter()))
}

/// Returns true if a note makes a number doubtful; without a column, any number of the line.
pub(crate) fn is_marked(table: &WorkloadTable, line: usize, column: Option<&Cell>) -> bool {
    table.notes.of_line(line).any(|(_, note)| note.marks(line, column))
}

/// Returns true if all numbers of a line are marked: then its label is.
pub(crate) fn is_all_marked(table: &WorkloadTable, line: usize) -> bool {
    let mut cells = table.lines[line].cells.iter().map(|(column, _)| column).peekable();
    let any = cells.peek().is_some();
    let all = cells.all(|column| is_marked(table, line, Some(column)));
    if any { all } else { is_marked(table, line, None) }
}

fn findings(table: &WorkloadTable, line: &LabelRow, costs: bool) -> Vec<(Cell, Finding)> {
    let findings = |run: &Run| {
        let cell = run.cell();
        let beside = run.costs_beside().filter(|_| costs);
        let own = run.findings().into_iter().chain(table.metric_at(&cell).finding(*run));
        own.chain(beside).map(move |finding| (cell, finding)).collect::<Vec<_>>()
    };
    let left_out = |step: &&Summary| (step.cell(), finding!(LeftOut, ending(step)));
    let replaced = |step: &&Summary| {
        Some((step.cell(), finding!(MeasuredAgain, judge::used_by_others(step)?)))
    };
    let of_runs = line.runs.iter().flat_map(findings).chain(line.left_out.iter().map(left_out));
    of_runs.chain(line.replaced.iter().filter_map(replaced)).collect()
}

fn places_in_words(table: &WorkloadTable, places: &BTreeMap<usize, BTreeSet<Cell>>) -> String {
    let mut whole = places.len() == table.lines.len();
    let named = places.iter().map(|(at, columns)| {
        let (line, label) = (&table.lines[*at], clip(table.lines[*at].label, VALUE_MAX));
        if line.cells.iter().all(|(column, _)| columns.contains(column)) {
            return label;
        }
        whole = false;
        format!("{label} at {}", listed(columns, ", "))
    });
    let named = list_some(named.collect(), "; ");
    if whole { String::new() } else { format!(" ({named})") }
}

type ConditionValues = Vec<(String, BTreeSet<Cell>)>;

fn conditions(steps: &[&Summary]) -> Vec<(Cow<'static, str>, ConditionValues)> {
    let mut all: Vec<(Cow<'static, str>, ConditionValues)> = Vec::new();
    for step in steps {
        for (name, value, _) in judge::conditions(step) {
            entry(entry(&mut all, name), value).insert(step.cell());
        }
    }
    all
}

/// Has all options of its workload in one text, too: the others are those that are not as usual.
pub(crate) fn conditions_in_json(line: &LabelRow) -> Map<String, Json> {
    let mut texts: Vec<String> = Vec::new();
    let steps: Vec<&Summary> = line.steps().collect();
    for step in &steps {
        push_new(&mut texts, options_in_words(&step.workload.options));
    }
    let options = (!texts.is_empty()).then(|| ("options".to_owned(), texts.into()));
    let named = conditions(&steps)
        .into_iter()
        .map(|(name, values)| (name, values.into_iter().map(|(value, _)| value).collect()))
        .map(|(name, values)| (name.to_lowercase().replace([' ', '-'], "_"), values));
    let imported = imported_conditions(&line.runs);
    let imported = imported.map(|(name, value)| (name, vec![Json::from(value)].into()));
    imported.chain(named).chain(options).collect()
}

/// The line that the caption describes, ready to have many others held against it.
struct Reference<'t, 'a> {
    line: &'t LabelRow<'a>,
    steps: Vec<&'a Summary>,
    columns: BTreeMap<Cell, Known<'a>>,
}

struct Known<'a> {
    /// The first of each kind of knowledge.
    firsts: Vec<&'a Summary>,
    completed: Option<&'a Summary>,
    /// The values of conditions that may differ from repeat to repeat.
    values: HashMap<&'static str, HashSet<String>>,
}

impl<'t, 'a> Reference<'t, 'a> {
    fn new(line: &'t LabelRow<'a>) -> Reference<'t, 'a> {
        let known = |(column, steps): (Cell, Vec<&'a Summary>)| (column, Known::new(&steps));
        let columns = line.steps_by_column().into_iter().map(known).collect();
        Reference { line, steps: line.steps().collect(), columns }
    }
}

impl<'a> Known<'a> {
    fn new(steps: &[&'a Summary]) -> Known<'a> {
        let mut values: HashMap<&str, HashSet<String>> = HashMap::new();
        // Conditions that are only noted, and hosts, may differ from repeat to repeat.
        for condition in CONDITIONS.iter().filter(|condition| condition.weight <= Weight::Host) {
            let held = steps.iter().filter_map(|step| (condition.value)(step));
            values.insert(condition.name, held.collect());
        }
        let completed = steps.iter().find(|step| step.outcome == Outcome::Completed).copied();
        Known { firsts: judge::by_knowledge(steps), completed, values }
    }

    fn has(&self, name: &str, value: &str) -> bool {
        self.values.get(name).is_some_and(|values| values.contains(value))
    }
}

/// Lists conditions that a line does not share with the one that the caption describes; those that its own runs do not
/// share are notes without places.
fn differing_line(line: &LabelRow, reference: &Reference) -> Vec<Note> {
    let (mut differences, unknown) = against(line, reference);
    let is_other_schema = differences.iter().any(|(d, _)| d.name == SCHEMA);
    differences.retain(|(d, _)| !(is_other_schema && d.name.starts_with(SCHEMA_SIZE)));
    let one_sided = |d: &Difference| d.first == ABSENT || d.second == ABSENT;
    let last = |name: &str| name.starts_with(SCHEMA_SIZE) || BUILD.contains(&name);
    // Settings that both have, and that follow from no other, come first.
    differences.sort_by_key(|(d, _)| d.weight == Weight::Server && (one_sided(d) || last(&d.name)));
    let other_version = differences.iter().any(|(d, _)| d.name == "version");
    let mut others: BTreeMap<Code, (Vec<String>, Vec<&Difference>)> = BTreeMap::new();
    for (d, columns) in &differences {
        let (one, other) = told_apart(&d.first, &d.second);
        let overhead = OVERHEADS.iter().find(|(name, _)| *name == d.name && !one_sided(d));
        let (code, name) = match (overhead, d.weight) {
            (Some((_, words)), _) => (Code::Overheads, *words),
            (_, Weight::Server) => (Code::Settings, &*d.name),
            _ if d.name == "queues" => (Code::OtherQueues, "queues"),
            _ => (Code::Conditions, &*d.name),
        };
        let (texts, differs) = others.entry(code).or_default();
        texts.push(match name {
            "SQL" => "other SQL".to_owned(),
            _ if code == Code::OtherQueues => {
                format!("queues {other} instead of {one} at {}", listed(columns, ", "))
            }
            words if code == Code::Overheads => format!("{words} {other} instead of {one}"),
            _ => value_instead(d),
        });
        differs.push(d);
    }
    let others = others.into_iter().map(|(code, (found, differs))| {
        let own = |d: &&Difference| !follows(&d.name, other_version);
        let doubtful = code == Code::Conditions && differs.iter().any(own);
        let all = if code == Code::Settings && found.len() > NAMED_MAX { SETTINGS } else { "" };
        let differences = terms::Value::One((list_some(found, ", ") + all).into());
        let finding = Finding::Known(code, vec![differences]);
        Note { doubtful, ..Note::new(finding, differs) }
    });
    let unknown = (!unknown.is_empty()).then(|| {
        let named = list_some(unknown.into_iter().map(str::to_owned).collect(), ", ");
        Note::new(finding!(UnknownConditions, named), [])
    });
    let servers = several_servers(line);
    let captioned = std::ptr::eq(line, reference.line);
    let several = (!servers.is_empty()).then(|| {
        let named = list_some(servers.iter().map(both_values).collect(), ", ");
        Note::new(finding!(SeveralServers, named), &servers)
    });
    others.chain(unknown).chain(several).chain(mixed(line, captioned, &servers)).collect()
}

type Differences = Vec<(Difference, BTreeSet<Cell>)>;

/// Finds a condition of the table, which has no options, parameters or variables.
fn condition(name: &str) -> Option<&'static Condition> {
    CONDITIONS.iter().find(|condition| condition.name == name)
}

/// Returns the differences of a line from another one with the columns that have them, and the
/// conditions that only one of them knows. Steps are held against those of the same column, else
/// against the first one of the other line that is of the same kind of loop.
fn against(line: &LabelRow, reference: &Reference) -> (Differences, BTreeSet<&'static str>) {
    let (mut found, mut unknown) = (HashMap::new(), BTreeSet::new());
    // A step that was cut short may know less.
    let completed = |step: &&&Summary| step.outcome == Outcome::Completed;
    for (column, steps) in line.steps_by_column() {
        let there = reference.columns.get(&column);
        let same = |other: &&&Summary| other.cell().is_open() == column.is_open();
        let same = || reference.steps.iter().filter(same);
        let of_column = there.and_then(|known| known.completed);
        let known = of_column.or_else(|| same().find(completed).copied());
        let alike = || same().next().or(reference.steps.first()).copied();
        let others: Vec<&Summary> = match there {
            Some(known) => known.firsts.clone(),
            None => alike().into_iter().collect(),
        };
        for step in steps {
            let known = known.filter(|_| completed(&&step));
            unknown.extend(known.into_iter().flat_map(|known| judge::unknown(known, step)));
            for difference in others.iter().flat_map(|other| judge::differences(other, step)) {
                let named = match condition(&difference.name).map(|c| c.shown) {
                    Some(ShownIn::Apart) => false,
                    Some(ShownIn::ByClients) => there.is_some(),
                    // The columns tell closed loops from open ones.
                    _ => difference.name != "arrival" || there.is_some(),
                };
                let has = |known: &Known| known.has(&difference.name, &difference.second);
                if named && !there.is_some_and(has) {
                    let place = found.len();
                    let of = found.entry(difference).or_insert((place, BTreeSet::new()));
                    of.1.insert(column);
                }
            }
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, (place, _))| *place);
    (found.into_iter().map(|(difference, (_, columns))| (difference, columns)).collect(), unknown)
}

/// Lists the conditions in which the steps of one line differ, without those in the caption; of a line that the
/// caption does not describe, without those that differ within one cell. Another note has those of several servers.
fn mixed(line: &LabelRow, captioned: bool, servers: &[Difference]) -> Option<Note> {
    let cells = line.cells().filter(|_| !captioned);
    let of_cells = cells.flat_map(|cell| pairs(cell.steps().collect())).map(|pair| (true, pair));
    let pairs = pairs(line.steps().collect()).map(|pair| (false, pair)).chain(of_cells);
    let (mut found, mut names) = (Distinct::default(), HashSet::new());
    for (in_cell, (first, step)) in pairs {
        for difference in judge::differences(first, step) {
            let is_new = match condition(&difference.name).map_or(ShownIn::Differing, |c| c.shown) {
                ShownIn::Differing => !in_cell,
                ShownIn::ByClients => !in_cell && step.cell() == first.cell(),
                ShownIn::Always | ShownIn::Unless(_) => {
                    in_cell && difference.weight == Weight::Noted
                }
                ShownIn::Apart => false,
            };
            let is_identity = |name: &String| servers.iter().any(|server| server.name == *name);
            let is_told =
                in_cell && names.contains(&difference.name) || is_identity(&difference.name);
            if is_new && !is_told {
                names.insert(difference.name.clone());
                found.push(difference);
            }
        }
    }
    let found: Vec<Difference> = found.into_iter().collect();
    let named = list_some(found.iter().map(both_values).collect(), ", ");
    (!found.is_empty()).then(|| Note::new(finding!(Invocations, named), &found))
}

/// Variables that tell servers of one version and one configuration from each other, and their names.
const IDENTITY: [(&str, &str); 5] = [
    ("server_uuid", "server_uuid"),
    ("server_uid", "server_uid"),
    ("hostname", "server hostname"),
    ("datadir", "datadir"),
    ("port", "port"),
];

/// Finds several servers under one label, of which no setting tells: two containers of one version. A profile
/// starts its servers itself, and a sandbox has another port and place at each start.
fn several_servers(line: &LabelRow) -> Vec<Difference> {
    let steps = line.steps().filter(|step| step.experiment.is_none() && !judge::is_private(step));
    let differing = |(variable, name): (&str, &str)| {
        let mut values = steps.clone().filter_map(|step| step.variable(variable));
        let first = values.next()?;
        let second = values.find(|value| *value != first)?;
        let [name, first, second] = [name, first, second].map(str::to_owned);
        Some(Difference { name, first, second, weight: Weight::Noted })
    };
    IDENTITY.into_iter().filter_map(differing).collect()
}

fn pairs(steps: Vec<&Summary>) -> impl Iterator<Item = (&Summary, &Summary)> {
    judge::by_knowledge(&steps).into_iter().flat_map(move |first| {
        let others = steps.clone().into_iter().filter(move |step| !std::ptr::eq(first, *step));
        others.map(move |step| (first, step))
    })
}

/// Paths of a build's own files: two builds of one version differ in nothing else.
pub(crate) const BUILD: &[&str] =
    &["basedir", "character_sets_dir", "lc_messages_dir", "plugin_dir", "tmpdir"];

pub(crate) fn title(table: &WorkloadTable) -> String {
    let unit = table.metric.unit().2;
    let ratios =
        table.baseline.iter().map(|label| format!("; in brackets {}", related(table, label)));
    format!("{}, {unit}{}{}", number_of(table), medians(table.cells()), ratios.collect::<String>())
}

pub(crate) fn title_of_ratios(table: &WorkloadTable, label: &str) -> String {
    format!("{} {}{}", number_of(table), related(table, label), medians(table.cells()))
}

fn number_of(table: &WorkloadTable) -> String {
    format!("{}: {}", escape::line(table.workload), table.metric.name())
}

fn related(table: &WorkloadTable, label: &str) -> String {
    let how = if table.metric.higher_is_better() { "value/base" } else { "base/value" };
    format!("relative to {}, {how}: higher is better", escape::line(label))
}

pub(crate) fn medians<'t>(cells: impl Iterator<Item = &'t TableCell<'t>>) -> String {
    let runs: BTreeSet<usize> = cells.map(|cell| cell.spread.n).collect();
    let ends: BTreeSet<usize> = runs.first().into_iter().chain(runs.last()).copied().collect();
    if runs.last() > Some(&1) {
        format!("; medians of {} repeats", listed(&ends, " to "))
    } else {
        String::new()
    }
}

pub(crate) fn explain_uncertainty<'t, I: Iterator<Item = &'t TableCell<'t>>>(
    of: impl Fn() -> I,
) -> String {
    let cells = || of().filter(|cell| cell.spread.n > 1);
    let (some, all) = (cells().next().is_some(), cells().all(|cell| cell.interval.is_some()));
    let of = match (some, all, cells().any(|cell| cell.interval.is_some())) {
        (false, ..) => return String::new(),
        (_, true, _) => "the 95 % interval",
        (.., false) => "the range",
        _ => "the 95 % interval, of less than six runs of the range",
    };
    let is_whole = cells().any(|cell| cell.uncertainty().is_none());
    let whole = if is_whole { "; in [] all of it, where half is more than the number" } else { "" };
    format!(", ± half of {of}{whole}")
}

pub(crate) fn conditions_in_full(table: &WorkloadTable) -> Option<String> {
    let line = table.reference_line(has_steps)?;
    let columns: BTreeSet<Cell> = line.steps().map(Summary::cell).collect();
    let items = shown_conditions(line).filter_map(|(name, values)| {
        let alike = values.len() == 1 || columns.len() == 1;
        let held = values.iter().map(|(value, of)| match clip(value, VALUE_MAX) {
            value if alike => value,
            value => format!("{value} ({})", listed(of, "; ")),
        });
        let held = list_some(held.collect(), " and ");
        let name = clip(name.strip_prefix("option ").unwrap_or(&name), VALUE_MAX);
        (!held.is_empty()).then(|| format!("{name} {held}"))
    });
    joined(items.map(Some), ", ")
}

fn shown_conditions(line: &LabelRow) -> impl Iterator<Item = (Cow<'static, str>, ConditionValues)> {
    let suite = line.steps().all(|step| step.suite.is_some());
    let load = line.steps().all(|step| step.load.is_some());
    let steps: Vec<&Summary> = line.steps().collect();
    conditions(&steps).into_iter().filter(move |(name, values)| {
        let (shown, of) =
            condition(name).map_or((ShownIn::Always, HeldBy::All), |c| (c.shown, c.of));
        let is_shown = match shown {
            ShownIn::Unless(usual) => values.iter().any(|(value, _)| value != usual),
            shown => shown == ShownIn::Always,
        };
        is_shown && (of == HeldBy::All || !suite && (of == HeldBy::Tables || !load))
    })
}

/// Words them for people: `8 tables x 20k rows, uniform keys, socket, 1 s warm-up + 6 s, in memory`.
pub(crate) fn conditions_in_short(table: &WorkloadTable) -> Option<String> {
    joined(short_conditions(table).into_iter().map(Some), ", ")
}

/// Returns the parts of that text.
pub(super) fn short_conditions(table: &WorkloadTable) -> Vec<String> {
    let Some(line) = table.reference_line(has_steps) else { return Vec::new() };
    let shown = shown_conditions(line).filter_map(|(name, values)| {
        let values = values.iter().map(|(value, _)| match name.as_ref() {
            "rows" => value.parse().map_or_else(|_| clip(value, VALUE_MAX), units::count),
            _ => clip(value, VALUE_MAX),
        });
        let values = list_some(values.filter(|value| !value.is_empty()).collect(), " and ");
        (!values.is_empty() && !UNTOLD.contains(&name.as_ref())).then_some((name, values))
    });
    let mut held: Vec<(Cow<str>, String)> = shown.collect();
    let mut take = |name: &str| {
        let at = held.iter().position(|(known, _)| known == name)?;
        Some(held.remove(at).1)
    };
    let held_class = take("class");
    // Own SQL may need no tables of loadgen, and no keys.
    let tables = take("tables").zip(take("rows")).filter(|(tables, _)| tables != "0");
    let tables = tables.map(|(tables, rows)| {
        let noun = if tables == "1" { "table" } else { "tables" };
        format!("{tables} {noun} x {rows} rows")
    });
    let draws = line.steps().all(|step| step.workload.script.is_none());
    let keys = take("distribution").filter(|_| draws).map(|keys| format!("{keys} keys"));
    let statements = take("statements").filter(|how| how != "prepared");
    let statements = statements.map(|how| format!("{how} statements"));
    let beside = line.steps().all(|step| step.client.same_host);
    let transport = take("transport").map(|transport| match transport.as_str() {
        "tcp" if beside => "tcp on one host".to_owned(),
        _ => transport,
    });
    let window = take("window").filter(|window| window != "to its end");
    let times = match take("warm-up") {
        Some(warmup) if warmup != "0 s" => {
            window.map(|window| format!("{warmup} warm-up + {window}"))
        }
        _ => window,
    };
    let arrival = take("arrival").map(|arrival| format!("{arrival} arrivals"));
    let were_read = line.steps().any(|step| {
        let before = step.conditions.as_ref().and_then(|conditions| conditions.before.as_ref());
        before.is_some_and(|before| before.warm == Warm::Pool.name())
    });
    let class = held_class.map(|class| match class.as_str() {
        "cached" => "in memory".to_owned(),
        "io-bound" => "IO-bound".to_owned(),
        // The pool had the rows: it was not cold when the step began.
        "cold" if were_read => "pages read though the data fit".to_owned(),
        "cold" => "cold buffer pool".to_owned(),
        both => both.to_owned(),
    });
    let others = held.iter().map(|(name, values)| {
        let name = name.strip_prefix("option ").unwrap_or(name);
        // Work before the steps reads as a sentence: `rows read before`.
        let name = clip(name, VALUE_MAX);
        Some(if name == "before" { format!("{values} before") } else { format!("{name} {values}") })
    });
    let hosts = line.steps().map(|step| step.hosts.len()).max().filter(|hosts| *hosts > 0);
    let hosts = hosts.map(|hosts| counted(hosts as u64, "client host"));
    let usual = [tables, keys, statements, transport, hosts, times, arrival, class];
    usual.into_iter().chain(others).flatten().collect()
}

pub(crate) fn below(table: &WorkloadTable) -> Vec<String> {
    // Which time the columns have where some are closed loops and some open ones.
    let [open, closed] = [true, false].map(|is| table.columns.iter().any(|c| c.is_open() == is));
    let which = table.metric.of_closed_loops().filter(|_| open && closed);
    which.map(str::to_owned).into_iter().chain(unrelated(table)).collect()
}

/// Columns with cells, but none of the baseline; and a cell beside one of the baseline that has no ratio to it.
pub(crate) fn unrelated(table: &WorkloadTable) -> Vec<String> {
    let Some(label) = &table.baseline else { return Vec::new() };
    let (mut lacking, mut by_zero, mut unequal) = (Vec::new(), false, false);
    for column in &table.columns {
        let mut cells = table.lines.iter().filter_map(|line| line.at(column));
        if let Some(base) = table.line(label).and_then(|line| line.at(column)) {
            for cell in cells.filter(|cell| cell.relative.is_none()) {
                let is_comparable = is_comparable(table.metric, [base, cell]);
                by_zero |= is_comparable;
                unequal |= !is_comparable;
            }
        } else if cells.next().is_some() {
            lacking.push(column.to_string());
        }
    }
    let (label, columns) = (escape::line(label), lacking.join(", "));
    let text = || format!("{label} has no cell at {columns}: nothing to relate to there");
    let lacking = (!lacking.is_empty()).then(text);
    let unequal = table.metric.by_work().filter(|_| unequal).map(not_comparable);
    lacking.into_iter().chain(by_zero.then(|| NO_RATIO.to_owned())).chain(unequal).collect()
}

pub(crate) fn mark(table: &WorkloadTable, at: usize) -> &'static str {
    if is_marked(table, at, None) { MARK } else { "" }
}

pub(crate) fn marked(table: &WorkloadTable, at: usize) -> String {
    let mark = if is_marked(table, at, None) { " *" } else { "" };
    label(table.lines[at].label) + mark
}

pub(crate) fn codes(table: &WorkloadTable, lines: &[usize], column: &Cell) -> String {
    let of_lines =
        lines.iter().flat_map(|line| table.notes.of_line(*line).map(move |of| (line, of)));
    let here = of_lines.filter(|(line, (_, note))| note.places[line].contains(column));
    let notes: BTreeMap<usize, &Note> = here.map(|(_, note)| note).collect();
    notes.values().map(|note| note.finding.name()).collect::<Vec<&str>>().join(" ")
}

const SPOKEN: [&str; 3] = ["statements", "transport", "TLS"];

/// Without the schema, the sizes that it would have are others, or not there.
pub(super) const SCHEMA: &str = "performance_schema";
pub(super) const SCHEMA_SIZE: &str = "performance_schema_";

/// Settings that the first has not, but for those that follow from others; and how the second was spoken to.
pub(crate) fn legend(first: &Summary, second: &Summary) -> Vec<Difference> {
    let is_spoken = |condition: &Condition| SPOKEN.contains(&condition.name);
    let mut differences = judge::differences_in(first, second, is_spoken);
    differences.extend(judge::fingerprint_differences(&first.server, &second.server));
    let is_other_schema = differences.iter().any(|d| d.name == SCHEMA);
    differences.retain(|d| {
        let name = d.name.as_str();
        !(is_other_schema && name.starts_with(SCHEMA_SIZE) || BUILD.contains(&name))
    });
    differences
}

pub(crate) fn follows(name: &str, other_version: bool) -> bool {
    name == DURABILITY || other_version && FOLLOWING.contains(&name)
}

/// Differences that follow from those of versions.
pub(super) const FOLLOWING: [&str; 4] =
    ["driver", "character sets", "table formats", "version_comment"];

/// The settings of commits in one word: what differs in it is named as a setting, too.
pub(super) const DURABILITY: &str = "durability";
