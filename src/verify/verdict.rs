//! Judges whether a table holds what it must. Pure: a history and what was read, to a verdict.

use super::history::History;

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

const OTHER: &str = "something else wrote to it, or a summary is not here";

/// Judges a table into which prepare filled so many rows.
pub(super) fn judge(start: u64, history: &History, found: &Found) -> Verdict {
    let (by, torn) = match &found.finding {
        Some(Finding::Unsettled(why)) => return Verdict::Undecided(why.clone()),
        Some(Finding::Index(by, torn)) => (*by, torn),
        None => return of_rows(start, history, found),
    };
    match of_rows(start, history, found) {
        Verdict::Lost(n, what) => Verdict::Lost(n, format!("{what}; {torn}")),
        Verdict::Damaged(n, what) => Verdict::Damaged(n, format!("{what}; {torn}")),
        _ => Verdict::Index(by, torn.clone()),
    }
}

fn of_rows(start: u64, history: &History, found: &Found) -> Verdict {
    let wrong = found.first_wrong.map(|id| match found.wrong {
        1 => format!("the content of id {id} is not its own"),
        n => format!("the contents of {n} rows are not their own, the first is id {id}"),
    });
    // What no history explains, but for a workload of somebody's own, which writes what it likes.
    if let Some(what) = wrong.clone().filter(|_| !history.custom) {
        return Verdict::Damaged(found.wrong, what);
    }
    if let Some(why) = history.unknown.first() {
        let more = match history.unknown.len() {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        return Verdict::Undecided(format!("{why}{more}"));
    }
    let own = || {
        let or = "a workload of your own wrote to it, or they are damaged";
        wrong.map(|what| Verdict::Undecided(format!("{what}: {or}")))
    };
    rows(start, history, found)
        .or_else(|| strange(history, found))
        .or_else(|| k(history, found))
        .or_else(|| rewritten(history, found))
        .or_else(own)
        .or_else(|| balanced(history))
        .or_else(|| untraced(history))
        .unwrap_or(Verdict::Ok)
}

/// Rows that were inserted with a content that proves itself, and have another one. Rows that
/// another program inserted besides are none of them.
fn strange(history: &History, found: &Found) -> Option<Verdict> {
    let proven = found.rows.saturating_sub(found.filled).saturating_sub(found.strange);
    // Those of ids that were filled, as write-only inserts them, come after a delete of the same.
    let gone = history.deletes.saturating_add(history.doubt.rows_removed);
    let due = history.inserts.saturating_sub(gone);
    let n = due.saturating_sub(proven).min(found.strange);
    let what = || format!("the contents of {n} inserted rows are not their own");
    (n > 0).then(|| Verdict::Damaged(n, what()))
}

/// More rows with other contents than they were filled with than there were such writes.
fn rewritten(history: &History, found: &Found) -> Option<Verdict> {
    let writes = history.untraced.saturating_add(history.inserts).saturating_add(history.in_doubt);
    undecided(found.rewritten.saturating_sub(writes), |many| {
        format!("the contents of {many} rows more were changed than is accounted for: {OTHER}")
    })
}

/// Too few rows, or too many.
fn rows(start: u64, history: &History, found: &Found) -> Option<Verdict> {
    let doubt = &history.doubt;
    let any = |n| format!("{n} writes in doubt may have added or removed any number of rows");
    if doubt.rows_unknown > 0 {
        return undecided(doubt.rows_unknown, any);
    }
    let [start, deletes, inserts] = [start, history.deletes, history.inserts].map(i128::from);
    let [removed, added] = [doubt.rows_removed, doubt.rows_added].map(i128::from);
    // Of the filled ids alone: a row that somebody else inserts hides no row that is missing.
    let filled = i128::from(found.filled) - (start - deletes);
    let many = i128::from(found.rows) - (start + inserts - deletes);
    let few = -many - removed;
    let lost = if history.rewrites() { few } else { few.max(-filled - removed) };
    if lost > 0 {
        return Some(Verdict::Lost(clamp(lost), format!("{lost} rows are missing")));
    }
    if filled > 0 && inserts == 0 && added == 0 {
        return Some(Verdict::Lost(clamp(filled), format!("{filled} deleted rows are there")));
    }
    undecided(many - added, |many| format!("{many} rows more than are accounted for: {OTHER}"))
}

/// A sum of `k` that is too small, or too large.
fn k(history: &History, found: &Found) -> Option<Verdict> {
    let (sum, doubt) = (found.k?, &history.doubt);
    let unknown = history.k_unknown.saturating_add(doubt.k_unknown);
    // Rows that are gone took a k with them that is known if it never changed. A sum of 0 is
    // no sign of that: what was added to one row may have been taken from another.
    let unchanged = history.updates == history.untraced
        && !history.rewrites()
        && [history.inserts, doubt.rows_added, doubt.k_added, doubt.k_removed] == [0; 4];
    let base = match unknown {
        0 => found.k_start,
        _ if unchanged => found.k_filled,
        _ => {
            return undecided(unknown, |unknown| {
                format!(
                    "the sum of k cannot be told: {unknown} rows came or went with a k that \
                     nobody read; rows and contents are right"
                )
            });
        }
    };
    // A server may answer anything.
    let expected = base.saturating_add(history.k_added);
    let low = expected.saturating_sub(i128::from(doubt.k_removed));
    let high = expected.saturating_add(i128::from(doubt.k_added));
    if sum < low {
        let lost = low.saturating_sub(sum);
        let what = format!("the sum of k is {lost} below what was acknowledged");
        return Some(Verdict::Lost(clamp(lost), what));
    }
    undecided(sum.saturating_sub(high), |many| {
        format!("the sum of k is {many} above what is accounted for: {OTHER}")
    })
}

/// Of what was added to some rows and taken from others a loss may be of both, and change no sum.
fn balanced(history: &History) -> Option<Verdict> {
    let taken = history.k_taken;
    let given = history.k_added.saturating_add(i128::from(taken));
    undecided(given.min(i128::from(taken)), |_| {
        format!(
            "k was raised by {given} and lowered by {taken}, of which losses cancel out; rows, k \
             and contents are right"
        )
    })
}

fn untraced(history: &History) -> Option<Verdict> {
    undecided(history.untraced, |n| {
        format!("{n} updates leave nothing that could be counted; rows, k and contents are right")
    })
}

fn undecided<N: Copy + Default + PartialOrd>(n: N, why: impl Fn(N) -> String) -> Option<Verdict> {
    (n > N::default()).then(|| Verdict::Undecided(why(n)))
}

fn clamp(n: i128) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
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
        assert_eq!(undecided(&killed, &found(99, 99, 4950)), "one (and 1 more)");
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
        assert!(undecided(&moved, &whole()).contains("raised by 3 and lowered by 3"));
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
