//! Judges whether a table holds what it must. Pure: a history and what was read, to a verdict.

use super::history::History;
use crate::terms::named;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    pub rows: u64,
    /// Those of the ids that prepare filled.
    pub filled: u64,
    /// The sum of `k` over all rows; None where there is no such column.
    pub k: Option<i128>,
    /// What the rows of the filled ids had when they were filled.
    pub k_filled: i128,
    /// The same of all that were filled up to the greatest id, whether they are there or not.
    pub k_start: i128,
    /// Rows whose content is wrong, and the first one's id.
    pub wrong: u64,
    pub first_wrong: Option<u64>,
    /// Rows of the filled ids with a right content that is not the one they were filled with.
    pub rewritten: u64,
    /// Rows of other ids, with a content that no built-in workload makes.
    pub strange: u64,
    /// What else there is to say of it.
    pub finding: Option<Finding>,
}

/// What the server's own counts told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It changes, or may still, in words.
    Unsettled(String),
    /// An index disagrees with the rows, by so many, in words.
    Index(u64, String),
    /// What it tells of the table is no number, in words.
    Damaged(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It holds exactly what it must.
    Ok,
    /// So much that was acknowledged is not there.
    Lost(u64, String),
    /// It holds what nobody wrote.
    Damaged(u64, String),
    /// Nothing is known against its rows, but an index holds so many more or fewer.
    Index(u64, String),
    /// Nobody can know, and why.
    Undecided(String),
}

type Made = fn(u64, String) -> Verdict;

const UNDECIDED: Made = |_, why| Verdict::Undecided(why);

/// What can be said against the rows, the surest first; `{n}` is how many, or by how much.
const CHECKS: [(Made, &str); 14] = [
    (Verdict::Damaged, "{wrong}"),
    (UNDECIDED, "{unknown}"),
    (UNDECIDED, "{n} writes in doubt may have added or removed any number of rows"),
    (Verdict::Lost, "{n} rows are missing"),
    (Verdict::Lost, "{n} deleted rows are there"),
    (UNDECIDED, "{n} rows more than are accounted for: {other}"),
    (Verdict::Damaged, "the contents of {n} inserted rows are not their own"),
    (
        UNDECIDED,
        "the sum of k cannot be told: {n} rows came or went with a k that nobody read; {rest}",
    ),
    (Verdict::Lost, "the sum of k is {n} below what was acknowledged"),
    (UNDECIDED, "the sum of k is {n} above what is accounted for: {other}"),
    (UNDECIDED, "the contents of {n} rows more were changed than is accounted for: {other}"),
    (UNDECIDED, "{wrong}: a workload of your own wrote to it, or they are damaged"),
    (UNDECIDED, "k was raised and lowered by {n} or more, of which losses cancel out; {rest}"),
    (UNDECIDED, "{n} updates leave nothing that could be counted; {rest}"),
];

/// Judges a table into which prepare filled so many rows.
pub(super) fn judge(start: u64, history: &History, found: &Found) -> Verdict {
    let rows = of_rows(start, history, found);
    match &found.finding {
        None => rows,
        Some(Finding::Unsettled(why)) => Verdict::Undecided(why.clone()),
        Some(Finding::Damaged(what)) => Verdict::Damaged(1, what.clone()),
        Some(Finding::Index(by, torn)) => match rows {
            Verdict::Lost(n, what) => Verdict::Lost(n, format!("{what}; {torn}")),
            Verdict::Damaged(n, what) => Verdict::Damaged(n, format!("{what}; {torn}")),
            _ => Verdict::Index(*by, torn.clone()),
        },
    }
}

fn of_rows(start: u64, history: &History, found: &Found) -> Verdict {
    let against = against(start, history, found);
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
    let what = text
        .replace("{n}", &against[at].to_string())
        .replace("{rest}", "all else is right")
        .replace("{other}", "something else wrote to it, or a summary is not here")
        .replace("{wrong}", &wrong)
        .replace("{unknown}", &unknown);
    verdict(against[at].try_into().unwrap_or(u64::MAX), what)
}

/// Tells by how much each of the checks holds.
fn against(start: u64, history: &History, found: &Found) -> [i128; CHECKS.len()] {
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
    // Of the filled ids alone: a row that somebody else inserts hides no row that is missing.
    let filled = i128::from(found.filled) - (start - deletes);
    let many = i128::from(found.rows) - (start + inserts - deletes);
    let few = if history.rewrites() { -many } else { (-many).max(-filled) };
    // Rows that another program inserted besides prove nothing. Those of ids that were filled, as
    // write-only inserts them, come after a delete of the same.
    let [strange, proven] =
        [found.strange, found.rows.saturating_sub(found.filled)].map(i128::from);
    let unproven = (inserts - deletes - removed).max(0) - (proven - strange).max(0);
    let [untraced, in_doubt] = [history.untraced, history.in_doubt].map(i128::from);
    let [k_unknown, k_low, k_high] = k(history, found);
    // Of what was added to some rows and taken from others a loss may be of both, and change no sum.
    let moved = history.k_added.saturating_add(taken).min(taken);
    // What no history explains, but for a workload of somebody's own, which writes what it likes.
    let [damaged, own] = if history.custom { [0, found.wrong] } else { [found.wrong, 0] };
    [
        damaged.into(),
        history.unknown.len() as i128,
        doubt.rows_unknown.into(),
        few - removed,
        if inserts == 0 && added == 0 { filled } else { 0 },
        many - added,
        unproven.min(strange),
        k_unknown,
        k_low,
        k_high,
        i128::from(found.rewritten) - untraced - inserts - in_doubt,
        own.into(),
        moved,
        untraced,
    ]
}

/// Tells by how much the sum of `k` cannot be told, is too small, or is too large.
fn k(history: &History, found: &Found) -> [i128; 3] {
    let (Some(sum), doubt) = (found.k, &history.doubt) else { return [0; 3] };
    let unknown = history.k_unknown.saturating_add(doubt.k_unknown);
    // Rows that are gone took a k with them that is known if it never changed. A sum of 0 is
    // no sign of that: what was added to one row may have been taken from another.
    let unchanged = history.updates == history.untraced
        && !history.rewrites()
        && [history.inserts, doubt.rows_added, doubt.k_added, doubt.k_removed] == [0; 4];
    let base = match unknown {
        0 => found.k_start,
        _ if unchanged => found.k_filled,
        _ => return [unknown.into(), 0, 0],
    };
    // A server may answer anything.
    let expected = base.saturating_add(history.k_added);
    let low = expected.saturating_sub(i128::from(doubt.k_removed));
    let high = expected.saturating_add(i128::from(doubt.k_added));
    [0, low.saturating_sub(sum), sum.saturating_sub(high)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Doubt;

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
        assert!(undecided(&bulk, &whole()).contains("any number of rows"));
    }

    #[test]
    fn deletes_are_counted_and_leave_the_other_rows_as_they_were() {
        let deleted = History { deletes: 3, k_unknown: 3, ..History::default() };
        assert_eq!(judge(100, &deleted, &found(97, 97, 4850)), Verdict::Ok);
        assert_eq!(lost(&deleted, &found(98, 98, 4900)), 1, "a deleted row is there");
        assert_eq!(lost(&deleted, &found(96, 96, 4800)), 1);
        // With increments, the deleted rows took some with them.
        let both = History { updates: 9, k_added: 9, ..deleted.clone() };
        assert!(undecided(&both, &found(97, 97, 4855)).contains("nobody read"));
        assert_eq!(lost(&both, &found(96, 96, 4800)), 1, "rows are decided all the same");
        // What one row gained another one lost, and then one of them was deleted.
        let moved = History { updates: 2, deletes: 1, k_unknown: 1, ..History::default() };
        assert!(undecided(&moved, &found(99, 99, 4943)).contains("nobody read"));
        // Updates of c alone leave every k as it was.
        let other = History { updates: 2, untraced: 2, ..deleted.clone() };
        assert_eq!(lost(&other, &found(97, 97, 4843)), 7);
        let replaced = History { inserts: 3, k_added: 150, ..deleted };
        assert!(undecided(&replaced, &whole()).contains("nobody read"));
    }

    #[test]
    fn a_table_is_undecided_where_nobody_can_know() {
        let c = History { updates: 5, untraced: 5, ..History::default() };
        assert!(undecided(&c, &whole()).contains("5 updates"));
        assert_eq!(lost(&c, &found(99, 99, 4950)), 1, "but what can be known is");
        let killed = History { unknown: vec!["one".into(), "two".into()], ..c };
        assert_eq!(undecided(&killed, &found(99, 99, 4950)), "one; and 1 more");
        let many = undecided(&History::default(), &found(101, 100, 5050));
        assert!(many.contains("1 rows more") && many.contains("something else"), "{many}");
    }

    #[test]
    fn contents_are_right_when_writes_explain_them() {
        let none = History::default();
        let changed = |n| Found { rewritten: n, ..whole() };
        assert!(undecided(&none, &changed(1)).contains("contents of 1 rows more"));
        let doubt = History { in_doubt: 2, ..none.clone() };
        assert_eq!(judge(100, &doubt, &changed(2)), Verdict::Ok);
        assert!(undecided(&doubt, &changed(3)).contains("contents of 1 rows more"));
        // An update of k alone explains none.
        let updated = History { updates: 9, k_added: 9, ..none.clone() };
        let all = Found { rewritten: 1, ..found(100, 100, 5009) };
        assert!(undecided(&updated, &all).contains("contents of 1 rows more"));
        assert_eq!(lost(&updated, &Found { rewritten: 1, ..found(100, 100, 5008) }), 1);

        let inserted = History { inserts: 3, k_added: 150, ..none };
        let strange = |rows, strange| Found { strange, ..found(rows, 100, 5150) };
        assert_eq!(judge(100, &inserted, &strange(103, 0)), Verdict::Ok);
        assert!(matches!(judge(100, &inserted, &strange(103, 2)), Verdict::Damaged(2, _)));
        assert!(undecided(&inserted, &strange(105, 2)).contains("2 rows more"), "another's");
    }

    #[test]
    fn damage_comes_before_all_histories() {
        let killed = History { unknown: vec!["one".into()], ..History::default() };
        let wrong = Found { wrong: 2, first_wrong: Some(7), ..whole() };
        assert!(matches!(judge(100, &killed, &wrong), Verdict::Damaged(2, _)));
        let moving = Found { finding: Some(Finding::Unsettled("it moves".into())), ..wrong };
        assert_eq!(undecided(&History::default(), &moving), "it moves");
    }

    #[test]
    fn a_workload_of_ones_own_may_write_contents_and_ids() {
        let own = History { custom: true, updates: 5, untraced: 5, ..History::default() };
        let wrong = Found { wrong: 2, first_wrong: Some(7), ..whole() };
        assert!(undecided(&own, &wrong).contains("2 rows are not their own, the first is id 7"));
        assert_eq!(lost(&own, &Found { rows: 99, ..wrong }), 1, "and hides nothing else");
        // Five rows have other ids now.
        let moved = Found { k_filled: 4750, filled: 95, ..whole() };
        assert!(undecided(&own, &moved).contains("5 updates"));
        let deleted = History { deletes: 1, k_unknown: 1, ..own.clone() };
        let moved = Found { rows: 99, k: Some(4950), ..moved };
        assert!(undecided(&deleted, &moved).contains("nobody read"));
        // What only adds to k, or deletes, leaves them.
        let added = History { custom: true, updates: 5, k_added: 5, ..History::default() };
        assert_eq!(lost(&added, &Found { k: Some(5005), ..found(100, 99, 0) }), 1);
        let deleted = History { deletes: 1, k_unknown: 1, custom: true, ..History::default() };
        assert_eq!(judge(100, &deleted, &found(99, 99, 4950)), Verdict::Ok);
    }

    #[test]
    fn losses_that_cancel_out_are_not_right_for_their_sum() {
        let moved = History { updates: 6, k_taken: 3, ..History::default() };
        assert!(undecided(&moved, &whole()).contains("raised and lowered by 3"));
        assert_eq!(lost(&moved, &found(100, 100, 4999)), 1);
        let down = History { updates: 3, k_added: -3, k_taken: 3, ..History::default() };
        assert_eq!(judge(100, &down, &found(100, 100, 4997)), Verdict::Ok);
    }

    #[test]
    fn an_index_that_disagrees_is_a_finding_of_its_own() {
        let none = History::default();
        let torn = |found: Found| Found {
            finding: Some(Finding::Index(3, "k_1 counts 103 rows".into())),
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
