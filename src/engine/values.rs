//! The values of parameters, and SQL with them in it.

use mysql_async::Value;

use super::compile::{Bulk, Derived, Pick, Source, Values};
use crate::workload::random::Stream;
use crate::workload::rows;

/// The ids of rows that come after all there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Serial {
    pub(crate) next: u64,
    pub(crate) step: u64,
}

/// What a client draws from.
#[derive(Debug)]
pub(crate) struct Drawer {
    pub(crate) stream: Stream,
    /// Of the client's own share of the rows.
    pub(crate) slices: Vec<Pick>,
    /// By table of the client's; empty where no statement numbers rows.
    pub(crate) serials: Vec<Serial>,
    /// Values of the statement before, if the next one refers to them.
    pub(crate) previous: Vec<Value>,
}

/// A table, as a client draws from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// From 0.
    pub(crate) table: u32,
    /// Its place among the client's tables.
    pub(crate) slot: usize,
    pub(crate) picks: &'a [Pick],
}

/// The rows of a bulk statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) rows: u64,
    /// The sum of one of their columns.
    pub(crate) sum: i64,
}

impl Drawer {
    /// The values of one execution.
    #[inline]
    pub(crate) fn draw(&mut self, values: &Values, place: Place<'_>) -> Vec<Value> {
        let mut drawn = Vec::with_capacity(values.sources.len());
        self.draw_into(&mut drawn, values, place);
        drawn
    }

    #[inline]
    fn draw_into(&mut self, drawn: &mut Vec<Value>, values: &Values, place: Place<'_>) {
        for source in &values.sources {
            drawn.push(self.one(source, place));
        }
        for (at, derived) in &values.derived {
            let value = self.derive(*derived, drawn, place.table);
            if let Some(slot) = drawn.get_mut(*at) {
                *slot = value;
            }
        }
    }

    #[inline]
    fn one(&mut self, source: &Source, place: Place<'_>) -> Value {
        match source {
            Source::Draw(i) => pick(place.picks.get(*i), &mut self.stream),
            Source::Slice(i) => pick(self.slices.get(*i), &mut self.stream),
            Source::Serial => match self.serials.get_mut(place.slot) {
                Some(serial) => {
                    let next = serial.next;
                    serial.next += serial.step;
                    Value::UInt(next)
                }
                None => Value::NULL,
            },
            Source::C => {
                Value::Bytes(rows::proven(place.table + 1, 0, || self.stream.bits()).to_vec())
            }
            Source::Pad => Value::Bytes(rows::pad(|| self.stream.bits()).to_vec()),
            Source::Digits(n) => {
                Value::Bytes((0..*n).map(|_| b'0' + self.stream.below(10) as u8).collect())
            }
            Source::Const(value) => value.clone(),
            Source::Derived => Value::NULL,
        }
    }

    fn derive(&mut self, derived: Derived, drawn: &[Value], table: u32) -> Value {
        match derived {
            Derived::Sum(of, add) => Value::UInt(number(drawn.get(of)).saturating_add(add)),
            Derived::C(of) => {
                let id = number(drawn.get(of));
                Value::Bytes(rows::proven(table + 1, id, || self.stream.bits()).to_vec())
            }
            Derived::Previous(of) => self.previous.get(of).cloned().unwrap_or(Value::NULL),
        }
    }

    /// A statement of as many rows as fit, one at least, into `sql`; `head` and `tail` stand
    /// around them. `summed` is the position of the column whose sum is wanted.
    pub(crate) fn bulk_into(
        &mut self,
        sql: &mut String,
        bulk: &Bulk,
        head: &str,
        summed: Option<usize>,
        place: Place<'_>,
    ) -> Written {
        sql.push_str(head);
        let mut written = Written::default();
        let mut row = Vec::with_capacity(bulk.values.sources.len());
        loop {
            let (end, serial) = (sql.len(), self.serials.get(place.slot).copied());
            if written.rows > 0 {
                sql.push_str(&bulk.join);
            }
            row.clear();
            self.draw_into(&mut row, &bulk.values, place);
            literals_into(sql, &bulk.pieces, &row);
            if written.rows > 0 && sql.len() + bulk.tail.len() > bulk.bytes_max {
                // The row is the next statement's first: its number is given again.
                sql.truncate(end);
                if let (Some(mine), Some(before)) = (self.serials.get_mut(place.slot), serial) {
                    *mine = before;
                }
                break;
            }
            written.rows += 1;
            written.sum = written.sum.saturating_add(signed(summed.and_then(|i| row.get(i))));
        }
        sql.push_str(&bulk.tail);
        written
    }
}

#[inline]
fn pick(pick: Option<&Pick>, stream: &mut Stream) -> Value {
    match pick {
        Some(pick) => Value::UInt(pick.base.wrapping_add(pick.sampler.draw(stream))),
        None => Value::NULL,
    }
}

/// A value as an id; 0 if it is none.
#[inline]
pub(crate) fn number(value: Option<&Value>) -> u64 {
    match value {
        Some(Value::UInt(id)) => *id,
        Some(Value::Int(n)) => u64::try_from(*n).unwrap_or(0),
        _ => 0,
    }
}

/// A value as a number of the ledger; 0 if it is none.
pub(crate) fn signed(value: Option<&Value>) -> i64 {
    match value {
        Some(Value::UInt(n)) => i64::try_from(*n).unwrap_or(i64::MAX),
        Some(Value::Int(n)) => *n,
        _ => 0,
    }
}

/// SQL with literals in place of the parameters.
pub(crate) fn literals_into(sql: &mut String, pieces: &[String], values: &[Value]) {
    use std::fmt::Write as _;
    for (i, piece) in pieces.iter().enumerate() {
        sql.push_str(piece);
        match values.get(i) {
            Some(Value::UInt(id)) => {
                // Writing into a String cannot fail.
                let _ = write!(sql, "{id}");
            }
            Some(other) => sql.push_str(&other.as_sql(true)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::compile::Compiled;
    use crate::engine::job::tests::TABLES;
    use crate::workload::distribution::Distribution;
    use crate::workload::{Workload, builtin};
    use proptest::prelude::*;

    fn drawer(seed: u64) -> Drawer {
        Drawer {
            stream: Stream::new(seed),
            slices: Vec::new(),
            serials: vec![Serial { next: 1, step: 1 }],
            previous: Vec::new(),
        }
    }

    fn of(params: &str) -> Compiled {
        let marks = vec!["?"; params.matches('{').count() + params.matches('"').count() / 2];
        let count = toml::from_str::<toml::Table>(&format!("p = {params}"))
            .ok()
            .and_then(|t| t["p"].as_array().map(Vec::len))
            .unwrap_or(marks.len());
        let text = format!(
            "name = 'x'\nabout = 'y'\n[options]\nlen = 7\n[[transaction]]\n\
             [[transaction.statement]]\nkind = 'select'\nsql = 'SELECT {}'\nparams = {params}\n\
             expect = 'any'\n",
            vec!["?"; count].join(", ")
        );
        let workload = Workload::parse(&text, "w").unwrap_or_else(|e| panic!("{}", e.render()));
        Compiled::new(&workload, Distribution::Uniform, TABLES, false)
    }

    fn drawn(params: &str, seed: u64) -> Vec<Value> {
        let compiled = of(params);
        let picks: Vec<Pick> = compiled.draws.iter().map(|d| d.pick(1000, 1)).collect();
        let place = Place { table: 0, slot: 0, picks: &picks };
        drawer(seed).draw(&compiled.statements[0].values, place)
    }

    proptest! {
        #[test]
        fn ranges_stay_where_they_are_said_to(seed: u64) {
            let values = drawn(
                "[{ range_start = { len = 101 } }, { range_end = { of = 1, len = 101 } }, \
                 { between = { min = 3, max = 9 } }, { range_end = { of = 3, delta = 'len' } }, \
                 { same_as = 4 }, 'k']",
                seed,
            );
            let n: Vec<u64> = values.iter().map(|v| number(Some(v))).collect();
            prop_assert!((1..=900).contains(&n[0]));
            prop_assert_eq!(n[1], n[0] + 100);
            prop_assert!((3..=9).contains(&n[2]));
            prop_assert_eq!(n[3], n[2] + 7);
            prop_assert_eq!(n[4], n[3]);
            prop_assert!((1..=1000).contains(&n[5]));
        }

        #[test]
        fn contents_prove_themselves(seed: u64) {
            let values = drawn("[{ c_of = 2 }, { key = 'default' }, 'c', 'pad', { digits = 9 }]", seed);
            let bytes = |i: usize| match &values[i] {
                Value::Bytes(bytes) => bytes.clone(),
                other => panic!("{other:?}"),
            };
            prop_assert!(rows::proves(1, number(values.get(1)), &bytes(0)));
            prop_assert!(rows::proves(1, 0, &bytes(2)));
            prop_assert_eq!(bytes(3).len(), rows::PAD_LEN);
            prop_assert_eq!(bytes(4).len(), 9);
        }
    }

    #[test]
    fn literals_stand_where_the_parameters_were() {
        let mut sql = String::new();
        let pieces = ["UPDATE t SET c=".to_owned(), " WHERE id=".to_owned(), String::new()];
        literals_into(&mut sql, &pieces, &[Value::Bytes(b"1-2".to_vec()), Value::UInt(7)]);
        assert_eq!(sql, "UPDATE t SET c='1-2' WHERE id=7");
    }

    #[test]
    fn bulk_statements_hold_what_fits_and_leave_no_gap() {
        let workload = builtin().into_iter().find(|w| w.name == "bulk-insert").expect("built in");
        let small = [("bulk_bytes".to_owned(), 60)].into();
        let workload = workload.with_options(&small).expect("an option of it");
        let compiled = Compiled::new(&workload, Distribution::Uniform, TABLES, false);
        assert!(compiled.serial && compiled.prepared.is_empty());
        let bulk = compiled.statements[0].bulk.as_ref().expect("a list of bytes");
        let mut drawer = drawer(1);
        let place = Place { table: 0, slot: 0, picks: &[] };
        let mut next = |bytes_max: usize| {
            let mut sql = String::new();
            let bulk = Bulk { bytes_max, ..copy(bulk) };
            let written = drawer.bulk_into(&mut sql, &bulk, "INSERT INTO t VALUES", Some(1), place);
            (sql, written)
        };
        let (sql, written) = next(36);
        assert_eq!(sql, "INSERT INTO t VALUES(1,1),(2,2),(3,3)".get(..31).unwrap_or_default());
        assert_eq!(written, Written { rows: 2, sum: 3 });
        let (sql, written) = next(43);
        assert_eq!(sql, "INSERT INTO t VALUES(3,3),(4,4),(5,5),(6,6)");
        assert_eq!((sql.len(), written), (43, Written { rows: 4, sum: 18 }));
        assert_eq!(next(0).0, "INSERT INTO t VALUES(7,7)", "one row at least");
    }

    fn copy(bulk: &Bulk) -> Bulk {
        Bulk {
            head: bulk.head.clone(),
            tail: bulk.tail.clone(),
            pieces: bulk.pieces.clone(),
            values: Values {
                sources: vec![Source::Serial, Source::Derived],
                derived: bulk.values.derived.clone(),
            },
            join: bulk.join.clone(),
            bytes_max: bulk.bytes_max,
        }
    }
}
