//! What stands around a table: its title, the conditions below it, footnotes, and the settings by
//! which labels differ; and the refusal to pool steps that are not the same measurement.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::escape::line as shown_line;
use super::table::{Column, Line, NO_RATIO, Table, among};
use crate::error::{Error, Result, VALUE_MAX, clip, told_apart};
use crate::judge::{self, ABSENT, CONDITIONS, Condition, Difference, OVERHEADS, Of, Shown, Weight};
use crate::stats::enough;
use crate::summary::{Outcome, Summary, VerdictKind, Warning, in_queues};
use crate::terms::{self, Code, Value, finding};

/// Longest foreign text in a note, characters.
const TEXT_MAX: usize = 300;
/// Lines, and settings, that one note names.
const NAMED_MAX: usize = 6;
/// What follows a number that can be compared: others are codes, ports, rates that were asked.
const UNITS: [&str; 5] = ["%", "s", "ms", "us", "µs"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    /// A stable short name, such as `same_host`.
    pub(crate) code: String,
    pub(crate) text: String,
    /// Positions of the marked lines, and the columns in which it holds there.
    pub(crate) places: BTreeMap<usize, BTreeSet<Column>>,
}

/// Fills in the footnotes of a table, in the order in which its lines need them.
pub(crate) fn noted(mut table: Table) -> Table {
    let reference = table.lines.iter().find(|line| !line.steps.is_empty());
    let all: BTreeSet<Column> = table.columns.iter().copied().collect();
    // Lines of which the same is true share a note, and so do findings of one code.
    let mut of_lines: BTreeMap<(&str, String), BTreeMap<_, _>> = BTreeMap::new();
    let mut by_code: BTreeMap<String, (Vec<String>, BTreeMap<_, BTreeSet<_>>)> = BTreeMap::new();
    for (at, line) in table.lines.iter().enumerate() {
        for (code, text) in reference.iter().flat_map(|reference| of_line(line, reference)) {
            of_lines.entry((code, text)).or_default().insert(at, all.clone());
        }
        for (column, said) in findings(&table, line) {
            let (messages, places) = by_code.entry(clip(&said.code, VALUE_MAX)).or_default();
            messages.push(said.message);
            places.entry(at).or_default().insert(column);
        }
    }
    let of_lines = of_lines.into_iter();
    let of_lines =
        of_lines.map(|((code, text), places)| Note { code: code.to_owned(), text, places });
    let found = by_code.into_iter().map(|(code, (messages, places))| {
        let text = as_one(&messages) + &place(&table, &places);
        Note { code, text, places }
    });
    let mut notes: Vec<Note> = of_lines.chain(found).collect();
    // Stable: of the notes of one line, those about all of it come first.
    notes.sort_by_key(|note| note.places.keys().next().copied());
    table.notes = notes;
    table
}

fn of_line(line: &Line, reference: &Line) -> Vec<(&'static str, String)> {
    let mut found = other_than(line, reference);
    found.extend(queues(line, reference).map(|text| ("other_queues", text)));
    found.extend(unknown(line, reference).map(|text| ("unknown_conditions", text)));
    found.extend(mixed(line, std::ptr::eq(line, reference)).map(|text| ("invocations", text)));
    found
}

/// Returns the sign of a note by its position: † ‡ § ¶ †† ‡‡ …
pub(crate) fn mark(at: usize) -> String {
    ["†", "‡", "§", "¶"][at % 4].repeat(at / 4 + 1)
}

pub(crate) fn signs(positions: impl IntoIterator<Item = usize>) -> String {
    positions.into_iter().flat_map(|at| [" ".to_owned(), mark(at)]).collect()
}

pub(crate) fn marks(table: &Table, line: usize) -> String {
    let marked = table.notes.iter().enumerate().filter(|(_, note)| note.places.contains_key(&line));
    signs(marked.map(|(at, _)| at))
}

fn findings(table: &Table, line: &Line) -> Vec<(Column, Warning)> {
    let of_step = |step: &Summary| {
        let few = table.metric.scarce(step).map(|(percentile, count)| {
            let needs = Value::Number(enough(percentile.0), 0);
            finding!(Scarce, percentile.to_string(), needs, count).into()
        });
        let said = remarks(step).into_iter().chain(few);
        said.map(|said| (step.cell(), said)).collect::<Vec<_>>()
    };
    let left_out = |step: &&Summary| (step.cell(), finding!(LeftOut, ending(step)).into());
    let steps = line.steps.iter().flat_map(|step| of_step(step));
    steps.chain(line.left_out.iter().map(left_out)).collect()
}

/// Returns what a reader of any number of a step must know.
pub fn remarks(step: &Summary) -> Vec<Warning> {
    let mut said: Vec<Warning> = Vec::new();
    if step.outcome != Outcome::Completed {
        said.push(finding!(Partial, ending(step)).into());
    }
    let verdict = step.verdict.as_ref().filter(|verdict| verdict.kind != VerdictKind::Ok);
    said.extend(verdict.map(|verdict| Warning {
        code: verdict.kind.name().replace('-', "_"),
        message: clip(&verdict.sentence(), TEXT_MAX),
    }));
    let shared = verdict.is_some_and(|verdict| verdict.kind == VerdictKind::SharedHost);
    if step.client.same_host && !shared && !step.is_warned(Code::SameHost) {
        said.push(finding!(SameHost).into());
    }
    let queues = step.plan.queues.filter(|queues| *queues > 1);
    let queues = queues.map(|queues| in_queues(queues, step.workload.spread));
    said.extend(queues.map(|queues| finding!(Queues, queues).into()));
    if step.loadgen.profile != "release" && !step.is_warned(Code::DebugBuild) {
        said.push(finding!(DebugBuildNoted).into());
    }
    said.extend(step.warnings.iter().map(|warning| Warning {
        code: warning.code.clone(),
        message: clip(&warning.message, TEXT_MAX),
    }));
    said
}

pub(crate) fn ending(step: &Summary) -> String {
    let reason = step.reason.iter().map(|reason| format!(", {}", clip(reason, TEXT_MAX)));
    step.outcome.name().to_owned() + &reason.collect::<String>()
}

/// Returns one sentence with ranges where messages differ in shares and times alone: the first of
/// them would read as a bound of all. Else the first, and how many others there are.
pub(crate) fn as_one(messages: &[String]) -> String {
    let all: BTreeSet<&String> = messages.iter().collect();
    if all.len() == 1 {
        return messages[0].clone();
    }
    let all: Vec<Vec<&str>> = all.iter().map(|message| message.split(' ').collect()).collect();
    let word = |at: usize| -> Option<String> {
        let words: BTreeSet<&str> = all.iter().map(|words| words[at]).collect();
        let mut words: Vec<&str> = words.into_iter().collect();
        let unit = all[0].get(at + 1).map(|unit| unit.trim_end_matches([',', ';', ':', '.', ')']));
        if words.len() > 1 {
            let sign = words[0].trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            let number = |word: &&str| {
                word.strip_prefix(sign)?.parse::<f64>().ok().filter(|n| n.is_finite())
            };
            let numbers = words.iter().all(|word| number(word).is_some());
            let other = sign.contains(|c: char| c.is_alphanumeric() || c == '-');
            if !numbers || other || !unit.is_some_and(|unit| UNITS.contains(&unit)) {
                return None;
            }
            words.sort_by(|a, b| number(a).partial_cmp(&number(b)).expect("finite"));
            return Some(format!("{}..{}", words[0], &words[words.len() - 1][sign.len()..]));
        }
        Some(words[0].to_owned())
    };
    let alike = all.iter().all(|words| words.len() == all[0].len());
    let words = if alike { (0..all[0].len()).map(word).collect() } else { None };
    let words: Option<Vec<String>> = words;
    words.map_or_else(
        || format!("{} (for one, and {} more like it)", messages[0], all.len() - 1),
        |words| words.join(" "),
    )
}

fn place(table: &Table, places: &BTreeMap<usize, BTreeSet<Column>>) -> String {
    let mut whole = true;
    let named = places.iter().map(|(at, columns)| {
        let line = &table.lines[*at];
        let mut shown = table.columns.iter().zip(&line.cells).filter(|(_, cell)| cell.is_some());
        let label = clip(line.label, VALUE_MAX);
        if shown.all(|(column, _)| columns.contains(column)) {
            return label;
        }
        whole = false;
        let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
        format!("{label} at {}", columns.join(", "))
    });
    let named = some(named.collect(), "; ");
    if whole { String::new() } else { format!(" ({named})") }
}

/// Returns the conditions of steps: of each name the values that they have, in their order.
pub(crate) fn conditions(steps: &[&Summary]) -> Vec<(Cow<'static, str>, Vec<String>)> {
    let mut all: Vec<(Cow<'static, str>, Vec<String>)> = Vec::new();
    for (name, value, _) in steps.iter().copied().flat_map(judge::conditions) {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => push_new(values, value),
            None => all.push((name, vec![value])),
        }
    }
    all
}

pub(crate) fn push_new<T: PartialEq>(all: &mut Vec<T>, new: T) {
    if !all.contains(&new) {
        all.push(new);
    }
}

pub(crate) fn some(texts: Vec<String>, joined: &str) -> String {
    terms::named(texts, NAMED_MAX, joined)
}

/// Joins the values of one condition of a line, with the columns in which each value holds, where
/// there are several of both.
pub(crate) fn by_column(line: &Line, name: &str, values: &[String]) -> String {
    let columns_of = |steps: &mut dyn Iterator<Item = &&Summary>| -> BTreeSet<Column> {
        steps.map(|step| step.cell()).collect()
    };
    let alone = values.len() < 2 || columns_of(&mut line.steps.iter()).len() < 2;
    let held = values.iter().map(|value| {
        let shown = clip(value, VALUE_MAX);
        if alone {
            return shown;
        }
        let has = |step: &&&Summary| {
            judge::conditions(step).iter().any(|(known, held, _)| known == name && held == value)
        };
        let columns = columns_of(&mut line.steps.iter().filter(has));
        let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
        format!("{shown} ({})", columns.join(", "))
    });
    some(held.collect(), " and ")
}

/// Returns what a line does not share with the one that the caption describes, a note each.
fn other_than(line: &Line, reference: &Line) -> Vec<(&'static str, String)> {
    let (mut conditions, mut overheads, mut settings) = (Vec::new(), Vec::new(), Vec::new());
    for Difference { name, first, second, weight } in against(line, reference) {
        let (one, other) = told_apart(&first, &second);
        let text = |name: &str| format!("{} {other} instead of {one}", clip(name, VALUE_MAX));
        let overhead = OVERHEADS.iter().find(|(variable, _)| *variable == name);
        let one_sided = first == ABSENT || second == ABSENT;
        match overhead.filter(|_| !one_sided) {
            Some((_, words)) => overheads.push(text(words)),
            None if weight == Weight::Server => {
                let follows = name.starts_with("performance_schema_");
                settings.push((one_sided || follows || BUILD.contains(&&*name), text(&name)));
            }
            None if name == "SQL" => conditions.push("other SQL".to_owned()),
            None => conditions.push(text(&name)),
        }
    }
    // What both have, and what follows from nothing else, comes first.
    settings.sort_by_key(|(last, _)| *last);
    let settings = settings.into_iter().map(|(_, text)| text).collect();
    [("conditions", conditions), ("overheads", overheads), ("settings", settings)]
        .into_iter()
        .filter(|(_, found)| !found.is_empty())
        .map(|(code, found)| (code, format!("other {code}: {}", some(found, ", "))))
        .collect()
}

fn condition(difference: &Difference) -> Option<&'static Condition> {
    CONDITIONS.iter().find(|condition| condition.name == difference.name)
}

/// Returns the differences of a line from another one, each once. Steps are held against those of the
/// same column, else against the first one of the other line that is of the same kind of loop.
fn against(line: &Line, reference: &Line) -> Vec<Difference> {
    let mut found: Vec<Difference> = Vec::new();
    let mut columns: BTreeMap<Column, (Vec<&Summary>, Vec<&Summary>)> = BTreeMap::new();
    for step in &line.steps {
        let column = step.cell();
        let (there, others) = columns.entry(column).or_insert_with(|| {
            let there = among(&column, &reference.steps);
            let same = |other: &&&Summary| other.cell().is_open() == column.is_open();
            let alike = reference.steps.iter().find(same).or(reference.steps.first());
            let alike = alike.filter(|_| there.is_empty()).copied();
            let firsts = judge::by_knowledge(&there).into_iter().map(|(first, _)| first);
            let others = firsts.chain(alike).collect();
            (there, others)
        });
        for difference in others.iter().flat_map(|other| judge::differences(other, step)) {
            let condition = condition(&difference);
            let named = match condition.map(|c| c.shown) {
                Some(Shown::Apart) => false,
                Some(Shown::ByClients) => !there.is_empty(),
                // The columns tell closed loops from open ones.
                _ => difference.name != "arrival" || !there.is_empty(),
            };
            // What is only noted may differ from repeat to repeat.
            let elsewhere = condition.filter(|c| c.weight == Weight::Noted).is_some_and(|c| {
                there.iter().any(|other| (c.value)(other).as_ref() == Some(&difference.second))
            });
            if named && !elsewhere {
                push_new(&mut found, difference);
            }
        }
    }
    found
}

/// Tells in what the steps of one line differ, but for what the caption tells.
fn mixed(line: &Line, captioned: bool) -> Option<String> {
    let mut found: Vec<Difference> = Vec::new();
    for (first, _) in judge::by_knowledge(&line.steps) {
        for step in &line.steps {
            for difference in judge::differences(first, step) {
                let told = match condition(&difference).map_or(Shown::Differing, |c| c.shown) {
                    Shown::Always | Shown::Unless(_) | Shown::Apart => true,
                    Shown::ByClients => step.cell() != first.cell(),
                    Shown::Differing => false,
                };
                if !told {
                    push_new(&mut found, difference);
                }
            }
        }
    }
    // Of other lines the caption does not tell what one cell has of both.
    let mut columns: BTreeMap<Column, &Summary> = BTreeMap::new();
    for step in line.steps.iter().filter(|_| !captioned) {
        let first = *columns.entry(step.cell()).or_insert(step);
        for condition in CONDITIONS.iter().filter(|c| c.weight == Weight::Noted) {
            let values = (condition.value)(first).zip((condition.value)(step));
            let known = found.iter().any(|known| known.name == condition.name);
            found.extend(values.filter(|(one, other)| one != other && !known).map(
                |(first, second)| {
                    let (name, weight) = (condition.name.to_owned(), condition.weight);
                    Difference { name, first, second, weight }
                },
            ));
        }
    }
    let named = found.iter().map(both_values);
    let text = format!("its runs differ in: {}", some(named.collect(), ", "));
    (!found.is_empty()).then_some(text)
}

pub(crate) fn both_values(difference: &Difference) -> String {
    let (one, other) = told_apart(&difference.first, &difference.second);
    format!("{} {one} and {other}", clip(&difference.name, VALUE_MAX))
}

/// Names the conditions that some of the steps know, and others of the same table do not.
fn unknown(line: &Line, reference: &Line) -> Option<String> {
    // What was cut short may lack more.
    let completed = |step: &&Summary| step.outcome == Outcome::Completed;
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for step in line.steps.iter().copied().filter(completed) {
        let others = || reference.steps.iter().copied().filter(completed);
        let same_loop = |other: &&Summary| other.cell().is_open() == step.cell().is_open();
        let here = others().find(|other| other.cell() == step.cell());
        let first = here.or_else(|| others().find(same_loop));
        names.extend(first.into_iter().flat_map(|first| judge::unknown(first, step)));
    }
    let named = some(names.iter().map(|name| (*name).to_owned()).collect(), ", ");
    (!names.is_empty()).then(|| format!("unknown whether these are the same: {named}"))
}

/// Tells the numbers of arrival queues in which a line differs from another one at the same columns:
/// what one of them does not know is no difference.
fn queues(line: &Line, reference: &Line) -> Option<String> {
    let of = |line: &Line, column: Column| -> BTreeSet<u32> {
        among(&column, &line.steps).iter().filter_map(|step| step.plan.queues).collect()
    };
    let words = |queues: BTreeSet<u32>| {
        queues.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
    };
    let columns: BTreeSet<Column> = line.steps.iter().map(|step| step.cell()).collect();
    columns.into_iter().find_map(|column| {
        let (here, usual) = (of(line, column), of(reference, column));
        (!here.is_empty() && !usual.is_empty() && here != usual).then(|| {
            let (here, usual) = (words(here), words(usual));
            format!(
                "arrivals in {here} instead of {usual} queues at {column}: its response times are \
                 of another kind of waiting"
            )
        })
    })
}

const DIFFERENCES_MAX: usize = 10;

/// Paths of a build's own files: two builds of one version differ in nothing else.
pub(crate) const BUILD: &[&str] =
    &["basedir", "character_sets_dir", "lc_messages_dir", "plugin_dir", "tmpdir"];

pub(crate) fn title(table: &Table) -> String {
    let unit = match &table.baseline {
        None => format!(", {}", table.metric.unit_in_words()),
        Some(label) => {
            let how = if table.metric.higher_is_better() { "value/base" } else { "base/value" };
            format!(" relative to {}, {how}: higher is better", shown_line(label))
        }
    };
    let runs = || table.cells().map(|cell| cell.spread.n);
    let medians = match (runs().min(), runs().max()) {
        (_, None | Some(0 | 1)) => String::new(),
        (Some(least), Some(most)) if least < most => {
            format!("; medians of {least} to {most} repeats")
        }
        (_, Some(most)) => format!("; medians of {most} repeats"),
    };
    format!("{}: {}{unit}{medians}", shown_line(table.workload), table.metric.name())
}

/// Returns the lines below a table: conditions of its first line, and what its columns need explained.
pub(crate) fn below(table: &Table) -> Vec<String> {
    let mut below = Vec::new();
    if let Some(line) = table.lines.iter().find(|line| !line.steps.is_empty()) {
        let said = conditions(&line.steps).into_iter().filter_map(|(name, values)| {
            let known = CONDITIONS.iter().find(|condition| condition.name == name);
            let (shown, of) = known.map_or((Shown::Differing, Of::All), |c| (c.shown, c.of));
            let option = name.strip_prefix("option ");
            let usual = match shown {
                Shown::Always => false,
                Shown::Unless(usual) => values == [usual],
                Shown::Differing | Shown::ByClients | Shown::Apart => option.is_none(),
            };
            let name_shown = clip(option.unwrap_or(&name), VALUE_MAX);
            (!usual && measures(line, of))
                .then(|| format!("{name_shown} {}", by_column(line, &name, &values)))
        });
        below.push(said.collect::<Vec<String>>().join(", "));
    }
    let paced = table.columns.iter().find_map(|column| Some((column, column.rate?)));
    if let Some((column, rate)) = paced {
        let clients = terms::clients(column.clients);
        below.push(format!("{column}: {clients}, {rate} ops a second asked of all together"));
        // Which time the columns have where some are closed loops and some open ones.
        let mixed = table.columns.iter().any(|column| !column.is_open());
        let which = table.metric.of_closed_loops().filter(|_| mixed);
        below.extend(which.map(str::to_owned));
    }
    below.extend(unrelated(table));
    below.retain(|line| !line.is_empty());
    below
}

fn measures(line: &Line, of: Of) -> bool {
    let is = |there: fn(&Summary) -> bool| line.steps.iter().all(|step| there(step));
    match of {
        Of::All => true,
        Of::Tables => !is(|step| step.suite.is_some()),
        Of::Sweeps => !is(|step| step.suite.is_some()) && !is(|step| step.load.is_some()),
    }
}

/// Names the columns that have cells, but none of the baseline; and tells of a cell beside one of the
/// baseline that has no ratio to it.
pub(crate) fn unrelated(table: &Table) -> Vec<String> {
    let Some(label) = &table.baseline else { return Vec::new() };
    let base = table.line(label);
    let (mut lacking, mut by_zero) = (Vec::new(), false);
    for (at, column) in table.columns.iter().enumerate() {
        let mut cells = table.lines.iter().filter_map(|line| line.cells[at].as_ref());
        if base.is_some_and(|line| line.cells[at].is_some()) {
            by_zero |= cells.any(|cell| cell.relative.is_none());
        } else if cells.next().is_some() {
            lacking.push(column.to_string());
        }
    }
    let label = shown_line(label);
    let lacking = (!lacking.is_empty()).then(|| {
        format!("{label} has no cell at {}: nothing to relate to there", lacking.join(", "))
    });
    lacking.into_iter().chain(by_zero.then(|| NO_RATIO.to_owned())).collect()
}

pub(crate) fn at_clients(column: &Column) -> String {
    let rate = column.rate.map(|rate| format!(" asking {rate} ops a second of all together"));
    terms::clients(column.clients) + &rate.unwrap_or_default()
}

pub(crate) fn label(label: &str) -> String {
    if label.trim().is_empty() { "(no label)".to_owned() } else { shown_line(label) }
}

pub(crate) fn footnotes(table: &Table) -> Vec<String> {
    let notes = table.notes.iter().enumerate();
    notes.map(|(at, note)| format!("{} {}", mark(at), note.text)).collect()
}

pub(crate) fn footing(table: &Table) -> Vec<String> {
    [footnotes(table), below(table)].concat()
}

pub(crate) fn marked(table: &Table, at: usize) -> String {
    label(table.lines[at].label) + &marks(table, at)
}

/// Returns the codes of the footnotes that hold for a column, in any of these lines.
pub(crate) fn codes(table: &Table, lines: &[usize], column: &Column) -> String {
    let notes = table.notes.iter().filter(|note| {
        let mut of_lines = lines.iter().filter_map(|line| note.places.get(line));
        of_lines.any(|columns| columns.contains(column))
    });
    notes.map(|note| note.code.as_str()).collect::<Vec<&str>>().join(" ")
}

/// Returns the settings of the second step that the first has not, for a legend: its variables but for
/// those that follow from others, and how it was spoken to.
pub(crate) fn legend(first: &Summary, second: &Summary) -> Vec<Difference> {
    let mut differences = judge::differences(first, second);
    let variables = [first, second].map(|step| &step.server.variables);
    // Without the schema, the sizes that it would have are others, or not there.
    let schema = differences.iter().any(|d| d.name == "performance_schema");
    differences.retain(|difference| {
        let name = difference.name.as_str();
        let known = variables.iter().any(|variables| variables.contains_key(name));
        let follows = schema && name.starts_with("performance_schema_") || BUILD.contains(&name);
        ["statements", "transport", "TLS"].contains(&name) || (known && !follows)
    });
    differences
}

pub(crate) fn agree(steps: &[&Summary]) -> Result<()> {
    let groups = judge::by_knowledge(steps);
    let within = groups.iter().flat_map(|(first, all)| all.iter().map(move |step| (*first, *step)));
    let between = groups.iter().enumerate().flat_map(|(at, (one, _))| {
        groups.iter().skip(at + 1).map(move |(other, _)| (*one, *other))
    });
    for (first, other) in between.chain(within) {
        let mut differences = judge::differences(first, other);
        differences.retain(|d| d.weight > Weight::Noted);
        if !differences.is_empty() {
            return Err(refusal(first, other, &differences));
        }
    }
    Ok(())
}

fn refusal(first: &Summary, second: &Summary, differences: &[Difference]) -> Error {
    let named = differences.iter().map(|d| {
        let (one, other) = told_apart(&d.first, &d.second);
        format!("{}: {one} / {other}", clip(&d.name, VALUE_MAX))
    });
    let step = |step: &Summary| {
        let (id, at) = (clip(&step.step_id, VALUE_MAX), clip(&step.started_at, VALUE_MAX));
        format!("{id} ({at})")
    };
    let same_run = first.run_id == second.run_id;
    let error = Error::data(format!(
        "'{}' of {} at {} was measured {} with different settings, in steps {} and {}:\n  {}",
        clip(&first.label, VALUE_MAX),
        clip(&first.workload.name, VALUE_MAX),
        terms::clients(first.plan.clients),
        if same_run { "in one invocation" } else { "by several invocations" },
        step(first),
        step(second),
        terms::named(named.collect(), DIFFERENCES_MAX, "\n  "),
    ));
    if same_run {
        error.hint("name the files of one of them only, or give them labels of their own (--label)")
    } else {
        error
            .hint("--latest takes the newest invocation of each label only")
            .hint("or give each configuration a label of its own (--label)")
    }
}

#[cfg(test)]
mod tests {
    use super::as_one;
    use super::*;

    fn one_of(messages: &[&str]) -> String {
        as_one(&messages.iter().map(|message| (*message).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn shares_and_times_become_ranges() {
        let only = ["known to ±11 % only", "known to ±9 % only", "known to ±21 % only"];
        assert_eq!(one_of(&only), "known to ±9..21 % only");
        assert_eq!(one_of(&["2.5 s, 3 %", "2.5 s, 4 %", "0.5 s, 4 %"]), "0.5..2.5 s, 3..4 %");
        assert_eq!(one_of(&["busy 93 %", "busy 93 %"]), "busy 93 %");
    }

    #[test]
    fn the_first_message_stands_for_all_when_they_cannot_be_compared() {
        for (one, other) in [
            ("error 1213", "error 1205"),
            ("by 3 %", "by -3 %"),
            ("rose by 3 %", "fell by 3 %"),
            ("3 %", "3 % or so"),
            ("v3 %", "v4 %"),
            ("5 %", "NaN %"),
        ] {
            assert_eq!(one_of(&[one, other]), format!("{one} (for one, and 1 more like it)"));
        }
    }

    #[test]
    fn the_reference_lists_what_does_not_count() {
        let text = include_str!("../../docs/report.md");
        let all =
            judge::FREE.iter().flat_map(|(why, paths)| paths.split(' ').map(move |p| (p, why)));
        for (path, why) in all {
            let row = format!("| `{path}` | {why} |");
            assert!(text.contains(&row), "docs/report.md lacks the row {row}");
        }
    }
}
