//! Records of steps, and what verify says of ledgers and of what it found in a table.

use loadgen::error::plain;
use loadgen::summary::{Doubt, LedgerEntry, Location, Record, Summary, from_json};
use loadgen::verify::{Evidence, Found, Verdict, judge};
use loadgen::workload::table::Mark;

use super::harmless;

const TABLE: &str = "sbtest1";
const ID: u32 = 0x5f;
const NOWHERE: Location = Location { hostname: None, datadir: None, database: None };

/// A record of a step that left no summary: nothing is said of the tables that it names.
pub(crate) fn record(bytes: &[u8]) {
    let record = match Record::parse(bytes) {
        Ok(record) => record,
        Err(why) => return harmless(why),
    };
    let tables = record.tables.clone();
    let records = [("x-1".to_owned(), record)];
    let evidence = Evidence { summaries: &[], records: &records, elsewhere: false };
    for (name, id) in &tables {
        let Ok(number) = u32::from_str_radix(id, 16) else { continue };
        let mark = Mark::ready(1, 0, Some(number));
        let verdict = judge(0, &evidence.find_history(&NOWHERE, name, &mark), &Found::default());
        // Leading zeros, or a sign: it is not how an identity is written.
        if format!("{number:x}") == *id {
            match verdict {
                Verdict::Undecided(why) => harmless(&plain(&why)),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Numbers, small ones as a byte of their own.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn next(&mut self) -> u64 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        if *first < 0xf0 {
            return u64::from(*first);
        }
        let Some((eight, rest)) = self.0.split_first_chunk() else { return u64::MAX };
        self.0 = rest;
        u64::from_le_bytes(*eight)
    }

    fn signed(&mut self) -> i64 {
        self.next().cast_signed()
    }

    fn sum(&mut self) -> i128 {
        match self.next() {
            0xef => i128::MAX,
            0xee => i128::MIN,
            n => i128::from(n.cast_signed()),
        }
    }
}

/// A ledger and what was found, to a verdict: what is in doubt makes nothing a loss.
pub(crate) fn ledger(bytes: &[u8]) {
    let mut numbers = Numbers(bytes);
    let mark = Mark::ready(1, numbers.next(), Some(ID));
    let found = found(&mut numbers);
    let entries: Vec<LedgerEntry> = (0..numbers.next() % 4).map(|_| entry(&mut numbers)).collect();
    let sure = said(&mark, &found, entries.iter().cloned().map(without_doubt).collect());
    let doubtful = said(&mark, &found, entries);
    let bad = |verdict: &Verdict| matches!(verdict, Verdict::Lost(..) | Verdict::Damaged(..));
    // What is undecided without doubts may be bad with them, which explain a number of rows so that
    // the contents speak; what is right stays right.
    let right = matches!(sure, Verdict::Ok);
    assert!(!right || !bad(&doubtful), "{sure:?}, and with doubts {doubtful:?}");
    match (&found.finding, found.first_wrong) {
        (Some(Verdict::Undecided(_)), _) => assert!(matches!(sure, Verdict::Undecided(_))),
        (_, Some(_)) => assert!(matches!(sure, Verdict::Damaged(..))),
        (Some(_), None) => assert!(bad(&sure) || matches!(sure, Verdict::Index(..))),
        (None, None) => assert!(!matches!(sure, Verdict::Index(..))),
    }
}

fn found(numbers: &mut Numbers) -> Found {
    let wrong = numbers.next();
    let finding = numbers.next();
    let mut found = Found {
        rows: numbers.next(),
        filled: numbers.next(),
        k: (numbers.next() != 0).then(|| numbers.sum()),
        k_filled: numbers.sum(),
        k_start: numbers.sum(),
        wrong,
        first_wrong: (wrong > 0).then_some(1),
        rewritten: numbers.next(),
        strange: numbers.next(),
        finding: match finding {
            1 => Some(Verdict::Undecided("it changed".to_owned())),
            2 => Some(Verdict::Index(3, "k_1 has 3 rows more".to_owned())),
            _ => None,
        },
    };
    // Some of what all had: no `k` that a row is filled with is below 0.
    found.k_filled = found.k_filled.min(found.k_start);
    found
}

fn entry(numbers: &mut Numbers) -> LedgerEntry {
    LedgerEntry {
        table: TABLE.to_owned(),
        table_id: Some(format!("{ID:x}")),
        // Else it would be no step that wrote.
        updates: numbers.next().max(1),
        inserts: numbers.next(),
        deletes: numbers.next(),
        in_doubt: numbers.next(),
        k_added: numbers.signed(),
        k_unknown: numbers.next(),
        untraced: numbers.next(),
        doubt: (numbers.next() != 0).then(|| Doubt {
            rows_added: numbers.next(),
            rows_removed: numbers.next(),
            k_added: numbers.next(),
            k_removed: numbers.next(),
            rows_unknown: numbers.next(),
            k_unknown: numbers.next(),
        }),
        k_taken: numbers.next(),
    }
}

fn without_doubt(entry: LedgerEntry) -> LedgerEntry {
    LedgerEntry { in_doubt: 0, doubt: None, ..entry }
}

fn said(mark: &Mark, found: &Found, ledger: Vec<LedgerEntry>) -> Verdict {
    let mut summary: Summary = from_json(include_bytes!("../../../tests/fixtures/summary.json"))
        .expect("the fixture is sound");
    summary.ledger = ledger;
    let evidence = Evidence { summaries: &[&summary], records: &[], elsewhere: true };
    let verdict = judge(mark.rows, &evidence.find_history(&NOWHERE, TABLE, mark), found);
    match &verdict {
        Verdict::Ok => {}
        Verdict::Lost(n, what) | Verdict::Damaged(n, what) | Verdict::Index(n, what) => {
            assert!(*n > 0, "{what}");
            harmless(what);
        }
        Verdict::Partly(what) | Verdict::Undecided(what) => harmless(what),
    }
    verdict
}
