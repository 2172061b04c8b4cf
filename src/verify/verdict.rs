//! Judges whether a table holds what it must. Pure: the history since prepare and the rows read → a verdict.

use std::collections::BTreeMap;

use crate::error::{VALUE_MAX, clip};
use crate::summary::{Doubt, LedgerEntry, Location, Record, Summary, VerifyQuery};
use crate::terms::{add, named};
use crate::workload::{Mark, State, may_write_beside, writes_elsewhere};

pub struct Evidence<'a> {
    pub summaries: &'a [&'a Summary],
    /// Records of steps without a summary, with their names.
    pub records: &'a [(String, Record)],
    /// True if writes on another server count, too: this one is its replica, or has its data.
    pub elsewhere: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// Steps that wrote to it, or may have.
    pub(crate) steps: u64,
    pub(crate) updates: u64,
    pub(crate) inserts: u64,
    pub(crate) deletes: u64,
    pub(crate) in_doubt: u64,
    pub(crate) k_added: i128,
    pub(crate) k_taken: u64,
    pub(crate) k_unknown: u64,
    pub(crate) untraced: u64,
    pub(crate) doubt: Doubt,
    /// True if a user's own workload wrote to it: its contents may be anything.
    pub(crate) custom: bool,
    pub(crate) unknown: Vec<String>,
    /// Steps of scripts that gave queries: these speak for what such a script wrote.
    pub(crate) scripts: Vec<String>,
    /// True if no summary and no record names any of the tables: another run may have changed them.
    pub(crate) unseen: bool,
}

/// A table's name, and the identity of its content.
pub(super) type Known = (String, String);

impl Evidence<'_> {
    pub fn find_history(&self, here: &Location, table: &str, mark: &Mark) -> History {
        if mark.state == State::Filling {
            return History::unknown("its fill was not finished");
        }
        let Some(id) = mark.id.map(|id| format!("{id:x}")) else {
            let why =
                "an older loadgen prepared it without an id, so no ledger can be matched to it";
            return History::unknown(why);
        };
        let mut history = History::default();
        for summary in self.summaries {
            let unfollowed = summary.workload.unfollowed.as_deref();
            let its = |entry: &&LedgerEntry| {
                let its = entry.table == table && entry.table_id.as_ref() == Some(&id);
                its && (changes(entry) || unfollowed.is_some())
            };
            let (step, place) = (&summary.step_id, read_location(summary));
            let untold = unfollowed.map(|why| {
                let name = &summary.workload.name;
                format!("step {step} ({name}) wrote what its ledger does not tell: {why}")
            });
            // An older ledger does not name the tables that SQL names itself: any there may be changed.
            let is_older = summary.totals.unmatched.is_none() && summary.ledger.is_empty();
            let is_script = summary.workloads().any(|workload| workload.script.is_some());
            if let Some(untold) =
                untold.clone().filter(|_| (is_older || is_script) && !self.is_another(&place, here))
            {
                if is_script && !summary.verify.is_empty() {
                    history.scripts.push(untold);
                } else {
                    history.custom |= !summary.is_built_in();
                    history.unknown.push(untold);
                }
            }
            if let Some(sql) = self.find_write_beside(summary, here, table) {
                history.custom = true;
                history.unknown.push(format!("step {step} may have written to it by '{sql}'"));
            }
            for entry in summary.ledger.iter().filter(its) {
                history.unknown.extend(untold.clone());
                if self.is_another(&place, here) {
                    history.unknown.push(format!(
                        "step {step} wrote to a copy of it at {place}, this one is at {here}"
                    ));
                }
                history.custom |= !summary.is_built_in();
                history.add(entry);
            }
        }
        for (name, record) in self.records {
            let is_recorded = |summary: &&Summary| summary.record.as_ref() == Some(name);
            let any_table = record.tables.is_empty() && !record.built_in;
            let may_write = record.tables.get(table) == Some(&id)
                || any_table && !self.is_another(&record.place, here);
            if may_write && !self.summaries.iter().any(is_recorded) {
                history.custom |= !record.built_in;
                history.unknown.push(format!(
                    "step {} ({}) of {} left no summary",
                    record.step_id, record.what, record.begun_at
                ));
            }
        }
        history
    }

    /// Finds SQL here that may have written to a table of another kind than those of its ledger.
    fn find_write_beside(&self, summary: &Summary, here: &Location, table: &str) -> Option<String> {
        let sql = summary.workloads().find_map(|of| {
            let mut all = of.statements.iter().map(|statement| statement.sql.as_str());
            all.find(|sql| may_write_beside(sql, &of.schema, of.unfollowed.is_none(), table))
        })?;
        (!self.is_another(&read_location(summary), here)).then(|| clip(sql, VALUE_MAX))
    }

    /// Lists the queries of steps here, each once, and counts the steps elsewhere that have some.
    pub(super) fn find_queries(&self, here: &Location) -> (Vec<VerifyQuery>, usize) {
        let (mut queries, mut elsewhere) = (Vec::new(), 0);
        for summary in self.summaries.iter().filter(|summary| !summary.verify.is_empty()) {
            if self.is_another(&read_location(summary), here) {
                elsewhere += 1;
                continue;
            }
            for query in &summary.verify {
                if !queries.contains(query) {
                    queries.push(query.clone());
                }
            }
        }
        (queries, elsewhere)
    }

    pub(super) fn count_other_steps(&self, tables: &[Known]) -> usize {
        let other = |summary: &&&Summary| wrote(summary).iter().any(|it| !tables.contains(it));
        self.summaries.iter().filter(other).count()
    }

    /// Names statements that wrote to tables which are not loadgen's, one a step.
    pub(super) fn name_unjudged(&self) -> Vec<String> {
        let unjudged = |summary: &&Summary| {
            let Summary { step_id, workload, .. } = summary;
            let all = summary.workloads().flat_map(|workload| &workload.statements);
            let mut all = all.map(|statement| statement.sql.as_str());
            let sql = all.find(|sql| writes_elsewhere(sql))?;
            Some(format!("step {step_id} ({}) by '{}'", workload.name, clip(sql, VALUE_MAX)))
        };
        self.summaries.iter().filter_map(unjudged).collect()
    }

    pub(super) fn names_any(&self, tables: &[Known]) -> bool {
        let is_known = |table: &str, id: &str| tables.iter().any(|(t, i)| t == table && i == id);
        let mut entries = self.summaries.iter().flat_map(|summary| &summary.ledger);
        let mut recorded = self.records.iter().flat_map(|(_, record)| &record.tables);
        entries.any(|entry| is_known(&entry.table, entry.table_id.as_deref().unwrap_or_default()))
            || recorded.any(|(table, id)| is_known(table, id))
    }

    fn is_another(&self, place: &Location, here: &Location) -> bool {
        place.differs(here) && !self.elsewhere
    }

    /// Finds unlisted tables that steps here wrote to beside a listed one, if any is; each with one such step.
    pub(super) fn missing(&self, here: &Location, tables: &[Known]) -> BTreeMap<String, String> {
        let summaries = self.summaries.iter().map(|s| (&s.step_id, read_location(s), wrote(s)));
        let records = self.records.iter().map(|(_, record)| {
            let wrote = record.tables.clone().into_iter().collect();
            (&record.step_id, record.place.clone(), wrote)
        });
        let mut missing = BTreeMap::new();
        for (step, place, wrote) in summaries.chain(records) {
            let beside = tables.is_empty() || wrote.iter().any(|it| tables.contains(it));
            if self.is_another(&place, here) || !beside {
                continue;
            }
            let gone = |(name, id): &Known| {
                !id.is_empty() && !tables.iter().any(|(known, _)| known == name)
            };
            missing.extend(wrote.into_iter().filter(gone).map(|(name, _)| (name, step.clone())));
        }
        missing
    }
}

fn read_location(summary: &Summary) -> Location {
    Location::from_variables(&summary.server.variables, summary.server.database.as_deref())
}

/// Lists the tables that a step wrote to; files of old versions have no identity.
fn wrote(summary: &Summary) -> Vec<Known> {
    let known = |of: &LedgerEntry| (of.table.clone(), of.table_id.clone().unwrap_or_default());
    summary.ledger.iter().filter(|entry| changes(entry)).map(known).collect()
}

fn changes(entry: &LedgerEntry) -> bool {
    [entry.updates, entry.inserts, entry.deletes, entry.in_doubt].iter().any(|n| *n > 0)
}

impl History {
    pub(super) fn unknown(why: &str) -> History {
        History { unknown: vec![why.to_owned()], ..History::default() }
    }

    /// Adds a step's writes. A file may hold anything.
    fn add(&mut self, entry: &LedgerEntry) {
        self.steps += 1;
        add!(self, entry; updates, inserts, deletes, in_doubt, k_taken, k_unknown, untraced);
        self.k_added += i128::from(entry.k_added);
        self.doubt.add(&entry.doubt.unwrap_or_default());
    }

    /// Returns whether a user's own workload may have changed ids, or more of a row than `k`.
    pub(super) fn rewrites(&self) -> bool {
        self.custom && (self.untraced > 0 || self.in_doubt > 0)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    pub rows: u64,
    pub filled: u64,
    /// The sum of `k` over all rows; None if there is no such column.
    pub k: Option<i128>,
    /// The original `k` of the filled rows that are there.
    pub k_filled: i128,
    /// The original `k` of all rows up to the greatest filled id.
    pub k_start: i128,
    /// Rows whose content is wrong, and the first one's id.
    pub wrong: u64,
    pub first_wrong: Option<u64>,
    /// Filled rows with a valid content that differs from the original.
    pub rewritten: u64,
    /// Other rows with a content that no built-in workload makes.
    pub strange: u64,
    /// The result of the server's own counts: undecided if it changes, or may still.
    pub finding: Option<Verdict>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Ok,
    /// All that can be judged is right: what that is, and what cannot be checked.
    Partly(String),
    Lost(u64, String),
    /// It holds what nobody wrote.
    Damaged(u64, String),
    /// Its rows are right, but an index holds so many more or fewer.
    Index(u64, String),
    Undecided(String),
}

type Made = fn(u64, String) -> Verdict;

const UNDECIDED: Made = |_, why| Verdict::Undecided(why);

const PARTLY: Made = |_, what| Verdict::Partly(what);

/// Faults of the rows, the most certain first; `{n}` is the number or the amount.
const CHECKS: [(Made, &str); 14] = [
    (Verdict::Damaged, "{wrong}"),
    (UNDECIDED, "{unknown}"),
    (UNDECIDED, "{n} writes in doubt may have added or removed any number of rows"),
    (Verdict::Lost, "{n} rows are missing"),
    (Verdict::Lost, "{n} deleted rows are there"),
    (UNDECIDED, "{n} rows more than are accounted for: {other}"),
    (Verdict::Damaged, "the contents of {n} inserted rows are not their own"),
    (Verdict::Lost, "the sum of k is {n} below what was acknowledged"),
    (UNDECIDED, "the sum of k is {n} above what is accounted for: {other}"),
    (UNDECIDED, "the contents of {n} rows more were changed than is accounted for: {other}"),
    (UNDECIDED, "{wrong}: a workload of your own wrote to it, or they are damaged"),
    // Only if nothing speaks against the rest.
    (
        PARTLY,
        "{judged}; the sum of k cannot be checked: rows with an unknown k were inserted, deleted or changed",
    ),
    (PARTLY, "{judged}; losses of k that cancel out cannot be checked"),
    (PARTLY, "{judged}; {n} updates cannot be checked: they leave nothing to count"),
];

const OTHER: &str = "another program wrote to it, or SQL of your own, or a summary is not here";

const BESIDE: &str = "judged without the writes of scripts; only the queries check these";

/// Judges a table that scripts may have written to: without them, as far as queries speak for what they wrote.
pub(super) fn judge_beside_scripts(
    start: u64,
    history: &History,
    found: &Found,
    queries_hold: bool,
) -> Verdict {
    let verdict = judge(start, history, found);
    if history.scripts.is_empty() {
        return verdict;
    }
    match verdict {
        Verdict::Ok if queries_hold => Verdict::Partly(BESIDE.to_owned()),
        Verdict::Partly(what) if queries_hold => Verdict::Partly(format!("{what}; {BESIDE}")),
        _ => {
            let unknown = [&history.unknown[..], &history.scripts].concat();
            judge(start, &History { unknown, custom: true, ..history.clone() }, found)
        }
    }
}

/// Judges a table into which prepare filled `start` rows.
pub fn judge(start: u64, history: &History, found: &Found) -> Verdict {
    let rows = judge_rows(start, history, found);
    match (&found.finding, rows) {
        (Some(Verdict::Index(_, torn)), Verdict::Lost(n, what)) => {
            Verdict::Lost(n, format!("{what}; {torn}"))
        }
        (Some(Verdict::Index(_, torn)), Verdict::Damaged(n, what)) => {
            Verdict::Damaged(n, format!("{what}; {torn}"))
        }
        (Some(finding), _) => finding.clone(),
        (None, rows) => rows,
    }
}

fn judge_rows(start: u64, history: &History, found: &Found) -> Verdict {
    let against = size_faults(start, history, found);
    let Some(at) = against.iter().position(|n| *n > 0) else { return Verdict::Ok };
    let (verdict, text) = CHECKS[at];
    let wrong = match (found.first_wrong, found.wrong) {
        (None, _) => String::new(),
        (Some(id), 1) => format!("the content of id {id} is not its own"),
        (Some(id), n) => {
            format!("the contents of {n} rows are not their own, the first is id {id}")
        }
    };
    let unknown = named(history.unknown.clone(), 1, "; and ");
    let judged = name_content(history, found);
    let what = text
        .replace("{n}", &against[at].to_string())
        .replace("{judged}", judged)
        .replace("{other}", OTHER)
        .replace("{wrong}", &wrong)
        .replace("{unknown}", &unknown);
    let n = against[at].try_into().unwrap_or(u64::MAX);
    match verdict(n, what) {
        Verdict::Lost(_, what) if history.unseen => Verdict::Undecided(format!(
            "{what}, and no summary here is of a run on these tables: such a run may have done it"
        )),
        verdict => verdict,
    }
}

fn name_content(history: &History, found: &Found) -> &'static str {
    let sum = found.k.is_some() && check_k(history, found)[0] == 0;
    match (history.custom, sum) {
        (false, true) => "rows, contents and the sum of k",
        (false, false) => "rows and contents",
        (true, true) => "rows and the sum of k",
        (true, false) => "rows",
    }
}

fn size_faults(start: u64, history: &History, found: &Found) -> [i128; CHECKS.len()] {
    let doubt = &history.doubt;
    let [start, deletes, inserts, added, removed, taken] = [
        start,
        history.deletes,
        history.inserts,
        doubt.rows_added,
        doubt.rows_removed,
        history.k_taken,
    ]
    .map(i128::from);
    // Only filled ids count: a row that somebody else inserts hides no missing row.
    let filled = i128::from(found.filled) - (start - deletes);
    let many = i128::from(found.rows) - (start + inserts - deletes);
    let few = if history.rewrites() { -many } else { (-many).max(-filled) };
    // Other programs' rows prove nothing. Rows of filled ids by write-only follow a delete of the id.
    let [strange, proven] =
        [found.strange, found.rows.saturating_sub(found.filled)].map(i128::from);
    let unproven = (inserts - deletes - removed).max(0) - (proven - strange).max(0);
    let [untraced, in_doubt] = [history.untraced, history.in_doubt].map(i128::from);
    let [k_unknown, k_low, k_high] = check_k(history, found);
    // An added and a subtracted amount can hide a loss in the sum.
    let moved = history.k_added.saturating_add(taken).min(taken);
    // Contents without an explanation; a user's own workload may write any.
    let [damaged, own] = if history.custom { [0, found.wrong] } else { [found.wrong, 0] };
    [
        damaged.into(),
        history.unknown.len() as i128,
        doubt.rows_unknown.into(),
        few - removed,
        if inserts == 0 && added == 0 { filled } else { 0 },
        many - added,
        unproven.min(strange),
        k_low,
        k_high,
        i128::from(found.rewritten) - untraced - inserts - in_doubt,
        own.into(),
        k_unknown,
        moved,
        untraced,
    ]
}

/// Computes by how much the sum of `k` is unknown, too small, and too large.
fn check_k(history: &History, found: &Found) -> [i128; 3] {
    let (Some(sum), doubt) = (found.k, &history.doubt) else { return [0; 3] };
    let unknown = history.k_unknown.saturating_add(doubt.k_unknown);
    // Deleted rows took a known k with them if it never changed. A sum of 0 does not prove that: one row may
    // have gained what another one lost.
    let unchanged = history.updates == history.untraced
        && !history.rewrites()
        && [history.inserts, doubt.rows_added, doubt.k_added, doubt.k_removed] == [0; 4];
    let base = match unknown {
        0 => found.k_start,
        _ if unchanged => found.k_filled,
        _ => return [unknown.into(), 0, 0],
    };
    // A server may answer anything: saturate.
    let expected = base.saturating_add(history.k_added);
    let low = expected.saturating_sub(i128::from(doubt.k_removed));
    let high = expected.saturating_add(i128::from(doubt.k_added));
    [0, low.saturating_sub(sum), sum.saturating_sub(high)]
}

#[cfg(test)]
mod history_tests {
    use super::*;

    /// A step that updated two tables.
    fn step(number: u32, hostname: &str) -> Summary {
        let text = include_str!("../../tests/fixtures/summary.json");
        let mut summary: Summary = serde_json::from_str(text).expect("a summary");
        summary.step_id = format!("aa-{number}");
        summary.workload.built_in = true;
        summary.record = Some(format!("aa-{number}-00000000"));
        summary.server.variables.insert("hostname".to_owned(), hostname.to_owned());
        let entry = |table: &str, id: &str| {
            let text = format!(
                "{{\"table\": \"{table}\", \"table_id\": \"{id}\", \"updates\": 5, \"inserts\": 0, \
                 \"deletes\": 0, \"in_doubt\": 0, \"k_added\": 5}}"
            );
            serde_json::from_str::<LedgerEntry>(&text).expect("an entry")
        };
        summary.ledger = vec![entry("sbtest1", "5f"), entry("sbtest2", "60")];
        summary
    }

    fn evidence<'a>(summaries: &'a [&'a Summary], records: &'a [(String, Record)]) -> Evidence<'a> {
        Evidence { summaries, records, elsewhere: false }
    }

    fn mark(id: u32) -> Mark {
        Mark::ready(1, 1, Some(id))
    }

    fn here() -> Location {
        Location { hostname: Some("db1".to_owned()), ..Location::default() }
    }

    fn names(list: &[(&str, &str)]) -> Vec<Known> {
        list.iter().map(|(n, i)| ((*n).to_owned(), (*i).to_owned())).collect()
    }

    #[test]
    fn ledgers_of_other_contents_say_nothing_of_a_table() {
        let mut steps = [step(1, "db1"), step(2, "db1")];
        steps[1].workload.built_in = false;
        let summaries: Vec<&Summary> = steps.iter().collect();
        let here = here();
        let all = evidence(&summaries, &[]);
        let history = all.find_history(&here, "sbtest1", &mark(0x5f));
        assert_eq!((history.steps, history.k_added, history.updates), (2, 10, 10));
        assert!(history.custom);
        let own = Evidence { summaries: &summaries[..1], ..all };
        assert!(!own.find_history(&here, "sbtest1", &mark(0x5f)).custom, "whatever its title");
        assert!(history.unknown.is_empty());
        assert_eq!(
            all.find_history(&here, "sbtest1", &mark(0x60)),
            History::default(),
            "filled again"
        );
        assert_eq!(all.find_history(&here, "sbtest2", &mark(0x5f)), History::default());
        assert_eq!(all.count_other_steps(&names(&[("sbtest1", "5f"), ("sbtest2", "60")])), 0);
        assert_eq!(all.count_other_steps(&names(&[("sbtest1", "5f"), ("sbtest2", "61")])), 2);
    }

    #[test]
    fn what_a_ledger_does_not_tell_is_not_judged_by_it() {
        let mut told = step(1, "db1");
        told.workload.unfollowed = Some("'UPDATE' gives no effect".to_owned());
        // The ledger counts nothing of it.
        for entry in &mut told.ledger {
            (entry.updates, entry.k_added) = (0, 0);
        }
        let here = here();
        let history = evidence(&[&told], &[]).find_history(&here, "sbtest1", &mark(0x5f));
        let says = "step aa-1 (point-select) wrote what its ledger does not tell: 'UPDATE' gives";
        assert!(history.unknown[0].starts_with(says), "{:?}", history.unknown);
        told.workload.unfollowed = None;
        assert_eq!(
            evidence(&[&told], &[]).find_history(&here, "sbtest1", &mark(0x5f)),
            History::default()
        );
    }

    #[test]
    fn every_table_there_is_undecided_when_a_step_s_sql_named_tables_itself() {
        let mut named = step(1, "db1");
        named.workload.unfollowed = Some("gives no effect".into());
        named.workload.built_in = false;
        for entry in &mut named.ledger {
            (entry.updates, entry.k_added) = (0, 0);
        }
        let history = |steps: &[&Summary], place: &Location| {
            evidence(steps, &[]).find_history(place, "sbtest1", &mark(0x5f))
        };
        let there = history(&[&named], &here());
        assert!(there.custom && there.unknown.len() == 1, "{there:?}");
        let filled_again = evidence(&[&named], &[]).find_history(&here(), "sbtest1", &mark(0x61));
        assert_eq!(filled_again, History::default());
        let mut older = Summary { ledger: Vec::new(), ..named.clone() };
        assert_eq!(history(&[&older], &here()).unknown.len(), 1, "it does not name them");
        older.totals.unmatched = Some(0);
        assert_eq!(history(&[&older], &here()), History::default(), "there was none");
        let sql = |sql: &str| {
            let mut own = named.clone();
            own.workload.statements[0].sql = sql.to_owned();
            evidence(&[&own], &[]).name_unjudged().len()
        };
        assert_eq!(sql("INSERT INTO log (n) VALUES (1)"), 1);
        assert_eq!(sql("INSERT INTO {table} (k) VALUES (1)") + sql("SELECT 1 FROM log"), 0);
        named.workload.unfollowed = None;
        assert_eq!(history(&[&named], &here()), History::default(), "it wrote nothing");
        let tables = [("sbtest1".to_owned(), "5f".to_owned())].into();
        let killed = Record::new("aa-9".into(), "own SQL".into(), false, here(), tables);
        let records = [("a-record".to_owned(), killed)];
        let left = evidence(&[], &records).find_history(&here(), "sbtest1", &mark(0x5f));
        assert!(left.custom && left.unknown.len() == 1, "{left:?}");
    }

    #[test]
    fn table_of_another_kind_is_undecided_when_a_step_s_sql_may_have_written_to_it() {
        let mut own = step(1, "db1");
        let mut history = |sql: &str, table: &str| {
            own.workload.statements[0].sql = sql.to_owned();
            evidence(&[&own], &[]).find_history(&here(), table, &mark(0x70))
        };
        for sql in ["DELETE FROM phptest1 LIMIT 1", "CALL p()", "CALL p({table}, 'phptest1')"] {
            let there = history(sql, "phptest1");
            assert!(there.custom && there.unknown.len() == 1, "{sql}: {there:?}");
            assert_eq!(history(sql, "sbtest1"), History::default(), "its ledger names it");
        }
        for sql in ["SELECT 1 FROM phptest1", "CALL p({table})"] {
            assert_eq!(history(sql, "phptest1"), History::default(), "{sql}");
        }
    }

    #[test]
    fn a_table_that_is_gone_is_missed_where_others_of_its_step_are_left() {
        let step = step(1, "db1");
        let here = here();
        let steps = [&step];
        let all = evidence(&steps, &[]);
        let missing = all.missing(&here, &names(&[("sbtest1", "5f")]));
        assert_eq!(missing.into_iter().collect::<Vec<_>>(), names(&[("sbtest2", "aa-1")]));
        assert!(all.missing(&here, &[]).contains_key("sbtest1"), "none is left");
        for known in [&[("sbtest1", "5f"), ("sbtest2", "61")][..], &[("sbtest1", "77")]] {
            assert!(all.missing(&here, &names(known)).is_empty(), "prepared again: {known:?}");
        }
        let copy = Location { hostname: Some("db2".to_owned()), ..Location::default() };
        assert!(all.missing(&copy, &names(&[("sbtest1", "5f")])).is_empty(), "of a part alone");
        let tables = names(&[("sbtest1", "5f"), ("sbtest3", "62")]).into_iter().collect();
        let record = Record::new("aa-2".into(), "update-index".into(), true, here.clone(), tables);
        let records = [("aa-2-00000000".to_owned(), record)];
        let killed = Evidence { records: &records, ..all };
        assert!(killed.missing(&here, &names(&[("sbtest1", "5f")])).contains_key("sbtest3"));
    }

    #[test]
    fn a_copy_of_the_data_has_another_history() {
        let steps = [step(1, "db1"), step(2, "db2")];
        let summaries: Vec<&Summary> = steps.iter().collect();
        let here = here();
        let all = evidence(&summaries, &[]);
        assert!(all.find_history(&here, "sbtest1", &mark(0x5f)).unknown[0].contains("aa-2"));
        let moved = Evidence { elsewhere: true, ..all };
        assert!(moved.find_history(&here, "sbtest1", &mark(0x5f)).unknown.is_empty());
    }

    #[test]
    fn a_record_without_its_summary_is_a_step_that_nobody_knows() {
        let steps = [step(1, "db1")];
        let tables = [("sbtest1".to_owned(), "5f".to_owned())];
        let record = Record::new("aa-1".into(), "update".into(), false, here(), tables.into());
        // The same step was killed once, and then ran to its end.
        let records = ["aa-1-00000000", "aa-1-11111111"].map(|n| (n.to_owned(), record.clone()));
        let nowhere = Location::default();
        let summaries: Vec<&Summary> = steps.iter().collect();
        let known = evidence(&summaries, &records[..1]);
        assert!(known.find_history(&nowhere, "sbtest1", &mark(0x5f)).unknown.is_empty());
        let killed = evidence(&summaries, &records);
        let history = killed.find_history(&nowhere, "sbtest1", &mark(0x5f));
        assert_eq!((history.unknown.len(), history.custom), (1, true));
        assert!(
            killed.find_history(&nowhere, "sbtest2", &mark(0x60)).unknown.is_empty(),
            "it did not write to that"
        );
        assert!(
            killed.find_history(&nowhere, "sbtest1", &mark(0x77)).unknown.is_empty(),
            "nor since it was filled again"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of a hundred rows with a sum of `k` of 5000.
    fn whole() -> Found {
        found(100, 100, 5000)
    }

    fn found(rows: u64, filled: u64, k: i128) -> Found {
        let k_filled = 5000 - 50 * i128::from(100 - filled);
        Found { rows, filled, k: Some(k), k_filled, k_start: 5000, ..Found::default() }
    }

    fn lost(history: &History, found: &Found) -> u64 {
        match judge(100, history, found) {
            Verdict::Lost(n, _) => n,
            other => panic!("{other:?}"),
        }
    }

    fn undecided(history: &History, found: &Found) -> String {
        match judge(100, history, found) {
            Verdict::Undecided(why) => why,
            other => panic!("{other:?}"),
        }
    }

    /// Positions in [`CHECKS`] of what leaves a table undecided.
    const ANY_ROWS: usize = 2;
    const MORE_ROWS: usize = 5;
    const MORE_CHANGED: usize = 9;

    /// Returns the check that leaves a table undecided, with its number.
    fn undecided_by(history: &History, found: &Found) -> (usize, i128) {
        undecided(history, found);
        let faults = size_faults(100, history, found);
        let at = faults.iter().position(|n| *n > 0).expect("a fault");
        (at, faults[at])
    }

    fn partly(history: &History, found: &Found) -> String {
        match judge(100, history, found) {
            Verdict::Partly(what) => what,
            other => panic!("{other:?}"),
        }
    }

    const NO_SUM: &str = "rows and contents; the sum of k cannot be checked: rows with an unknown k were inserted, deleted or changed";

    #[test]
    fn a_table_lacks_nothing_that_was_acknowledged() {
        let none = History::default();
        assert_eq!(judge(100, &none, &whole()), Verdict::Ok);
        assert_eq!(lost(&none, &found(99, 99, 4950)), 1);
        let updated = History { updates: 7, k_added: 7, ..none.clone() };
        assert_eq!(judge(100, &updated, &found(100, 100, 5007)), Verdict::Ok);
        assert_eq!(lost(&updated, &found(100, 100, 5004)), 3);
        let inserted = History { inserts: 2, k_added: 60, ..none.clone() };
        assert_eq!(judge(100, &inserted, &found(102, 100, 5060)), Verdict::Ok);
        assert_eq!(lost(&inserted, &found(101, 100, 5030)), 1);
        assert_eq!(lost(&inserted, &found(102, 99, 5060)), 1, "another one's row hides nothing");
    }

    #[test]
    fn a_doubt_widens_what_is_right() {
        let doubt = Doubt { k_added: 2, ..Doubt::default() };
        let history = History { k_added: 10, in_doubt: 2, doubt, ..History::default() };
        for k in 5010..=5012 {
            assert_eq!(judge(100, &history, &found(100, 100, k)), Verdict::Ok);
        }
        assert_eq!(lost(&history, &found(100, 100, 5009)), 1);
        assert!(undecided(&history, &found(100, 100, 5013)).contains("1 above"));
        let doubt = Doubt { rows_unknown: 1, k_unknown: 1, ..Doubt::default() };
        let bulk = History { inserts: 5, doubt, ..History::default() };
        assert_eq!(undecided_by(&bulk, &whole()).0, ANY_ROWS);
    }

    #[test]
    fn deletes_are_counted_and_leave_the_other_rows_as_they_were() {
        let deleted = History { deletes: 3, k_unknown: 3, ..History::default() };
        assert_eq!(judge(100, &deleted, &found(97, 97, 4850)), Verdict::Ok);
        assert_eq!(lost(&deleted, &found(98, 98, 4900)), 1, "a deleted row is there");
        assert_eq!(lost(&deleted, &found(96, 96, 4800)), 1);
        // With increments, the deleted rows took some with them.
        let both = History { updates: 9, k_added: 9, ..deleted.clone() };
        assert_eq!(partly(&both, &found(97, 97, 4855)), NO_SUM);
        assert_eq!(lost(&both, &found(96, 96, 4800)), 1, "rows are decided all the same");
        // One row gained as much as another one lost, and then one of them was deleted.
        let moved = History { updates: 2, deletes: 1, k_unknown: 1, ..History::default() };
        assert_eq!(partly(&moved, &found(99, 99, 4943)), NO_SUM);
        // Updates of c alone leave every k as it was.
        let other = History { updates: 2, untraced: 2, ..deleted.clone() };
        assert_eq!(lost(&other, &found(97, 97, 4843)), 7);
        let replaced = History { inserts: 3, k_added: 150, ..deleted };
        assert_eq!(partly(&replaced, &whole()), NO_SUM);
    }

    #[test]
    fn a_sum_that_cannot_be_checked_hides_nothing_else() {
        let replaced = History {
            deletes: 3,
            inserts: 3,
            k_added: 150,
            k_unknown: 3,
            untraced: 1,
            ..History::default()
        };
        assert_eq!(partly(&replaced, &whole()), NO_SUM);
        let without = Found { k: None, ..whole() };
        let says = "rows and contents; 1 updates cannot be checked: they leave nothing to count";
        assert_eq!(partly(&replaced, &without), says);
        let rewritten = Found { rewritten: 5, ..whole() };
        assert_eq!(undecided_by(&replaced, &rewritten), (MORE_CHANGED, 1));
        assert_eq!(lost(&replaced, &found(99, 99, 4950)), 1);
        let wrong = Found { wrong: 1, first_wrong: Some(7), ..whole() };
        assert!(matches!(judge(100, &replaced, &wrong), Verdict::Damaged(1, _)));
        let own = History { custom: true, ..replaced };
        assert!(undecided(&own, &wrong).contains("id 7"));
    }

    #[test]
    fn a_table_is_undecided_where_nobody_can_know() {
        let c = History { updates: 5, untraced: 5, ..History::default() };
        assert!(partly(&c, &whole()).contains("5 updates"));
        let strange = Found { rewritten: 6, ..whole() };
        assert_eq!(undecided_by(&c, &strange), (MORE_CHANGED, 1));
        assert_eq!(lost(&c, &found(99, 99, 4950)), 1, "but what can be known is");
        let killed = History { unknown: vec!["one".into(), "two".into()], ..c };
        assert_eq!(undecided(&killed, &found(99, 99, 4950)), "one; and 1 more");
        let many = undecided_by(&History::default(), &found(101, 100, 5050));
        assert_eq!(many, (MORE_ROWS, 1));
    }

    #[test]
    fn contents_are_right_when_writes_explain_them() {
        let none = History::default();
        let changed = |n| Found { rewritten: n, ..whole() };
        assert_eq!(undecided_by(&none, &changed(1)), (MORE_CHANGED, 1));
        let doubt = History { in_doubt: 2, ..none.clone() };
        assert_eq!(judge(100, &doubt, &changed(2)), Verdict::Ok);
        assert_eq!(undecided_by(&doubt, &changed(3)), (MORE_CHANGED, 1));
        // An update of k alone explains none.
        let updated = History { updates: 9, k_added: 9, ..none.clone() };
        let all = Found { rewritten: 1, ..found(100, 100, 5009) };
        assert_eq!(undecided_by(&updated, &all), (MORE_CHANGED, 1));
        assert_eq!(lost(&updated, &Found { rewritten: 1, ..found(100, 100, 5008) }), 1);

        let inserted = History { inserts: 3, k_added: 150, ..none };
        let strange = |rows, strange| Found { strange, ..found(rows, 100, 5150) };
        assert_eq!(judge(100, &inserted, &strange(103, 0)), Verdict::Ok);
        assert!(matches!(judge(100, &inserted, &strange(103, 2)), Verdict::Damaged(2, _)));
        assert_eq!(undecided_by(&inserted, &strange(105, 2)), (MORE_ROWS, 2), "another's");
    }

    #[test]
    fn damage_comes_before_all_histories() {
        let killed = History { unknown: vec!["one".into()], ..History::default() };
        let wrong = Found { wrong: 2, first_wrong: Some(7), ..whole() };
        assert!(matches!(judge(100, &killed, &wrong), Verdict::Damaged(2, _)));
        let moving = Found { finding: Some(Verdict::Undecided("it moves".into())), ..wrong };
        assert_eq!(undecided(&History::default(), &moving), "it moves");
    }

    #[test]
    fn a_workload_of_ones_own_may_write_contents_and_ids() {
        let own = History { custom: true, updates: 5, untraced: 5, ..History::default() };
        let wrong = Found { wrong: 2, first_wrong: Some(7), ..whole() };
        assert!(undecided(&own, &wrong).contains("id 7"));
        assert_eq!(lost(&own, &Found { rows: 99, ..wrong }), 1, "and hides nothing else");
        // Five rows have other ids now.
        let moved = Found { k_filled: 4750, filled: 95, ..whole() };
        assert!(partly(&own, &moved).contains("5 updates"));
        let deleted = History { deletes: 1, k_unknown: 1, ..own.clone() };
        let moved = Found { rows: 99, k: Some(4950), ..moved };
        assert_eq!(
            partly(&deleted, &moved),
            "rows; the sum of k cannot be checked: rows with an unknown k were inserted, deleted or changed"
        );
        // Updates that only add to k, and deletes, leave them.
        let added = History { custom: true, updates: 5, k_added: 5, ..History::default() };
        assert_eq!(lost(&added, &Found { k: Some(5005), ..found(100, 99, 0) }), 1);
        let deleted = History { deletes: 1, k_unknown: 1, custom: true, ..History::default() };
        assert_eq!(judge(100, &deleted, &found(99, 99, 4950)), Verdict::Ok);
    }

    #[test]
    fn losses_that_cancel_out_are_not_right_for_their_sum() {
        let moved = History { updates: 6, k_taken: 3, ..History::default() };
        assert!(partly(&moved, &whole()).contains("cancel out"));
        assert_eq!(lost(&moved, &found(100, 100, 4999)), 1);
        let down = History { updates: 3, k_added: -3, k_taken: 3, ..History::default() };
        assert_eq!(judge(100, &down, &found(100, 100, 4997)), Verdict::Ok);
    }

    #[test]
    fn an_index_that_disagrees_is_a_finding_of_its_own() {
        let none = History::default();
        let torn = |found: Found| Found {
            finding: Some(Verdict::Index(3, "k_1 counts 103 rows".into())),
            ..found
        };
        let index = Verdict::Index(3, "k_1 counts 103 rows".to_owned());
        assert_eq!(judge(100, &none, &torn(whole())), index);
        let undecided = History { untraced: 5, ..none.clone() };
        assert_eq!(judge(100, &undecided, &torn(whole())), index);
        // It hides no loss.
        match judge(100, &none, &torn(found(99, 99, 4950))) {
            Verdict::Lost(1, what) => assert!(what.ends_with("; k_1 counts 103 rows"), "{what}"),
            other => panic!("{other:?}"),
        }
    }
}
