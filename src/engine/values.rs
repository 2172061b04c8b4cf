//! The values of parameters, and SQL with them in it.

use std::fmt::Write as _;

use mysql_async::Value;

use super::job::{Bulk, Derived, Pick, Serial, Source, Values};
use crate::workload::random::Stream;
use crate::workload::rows;

#[derive(Debug)]
pub(crate) struct Generator {
    pub stream: Stream,
    pub slices: Vec<Pick>,
    /// By table of the client's; empty where no statement numbers rows.
    pub serials: Vec<Serial>,
    /// Values of the statement before, if the next one refers to them.
    pub previous: Vec<Value>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct TableDraws<'a> {
    pub table: u32,
    /// Its place among the client's tables.
    pub slot: usize,
    pub picks: &'a [Pick],
}

impl Generator {
    #[inline]
    pub(crate) fn draw(&mut self, values: &Values, from: TableDraws<'_>) -> Vec<Value> {
        let mut drawn = Vec::with_capacity(values.sources.len());
        self.draw_into(&mut drawn, values, from);
        drawn
    }

    #[inline]
    fn draw_into(&mut self, drawn: &mut Vec<Value>, values: &Values, from: TableDraws<'_>) {
        for source in &values.sources {
            drawn.push(self.one(source, from));
        }
        for (at, derived) in &values.derived {
            drawn[*at] = self.derive(*derived, drawn, from.table);
        }
    }

    #[inline]
    fn one(&mut self, source: &Source, from: TableDraws<'_>) -> Value {
        match source {
            Source::Draw(i) => pick(&from.picks[*i], &mut self.stream),
            Source::Slice(i) => pick(&self.slices[*i], &mut self.stream),
            Source::Serial => {
                let serial = &mut self.serials[from.slot];
                let next = serial.next;
                serial.next += serial.step;
                Value::UInt(next)
            }
            Source::C => {
                Value::Bytes(rows::proven(from.table + 1, 0, || self.stream.bits()).to_vec())
            }
            Source::Pad => Value::Bytes(rows::pad(|| self.stream.bits()).to_vec()),
            Source::Digits(n) => {
                Value::Bytes((0..*n).map(|_| b'0' + self.stream.below(10) as u8).collect())
            }
            Source::Const(value) => value.clone(),
            Source::Derived(_) => Value::NULL,
        }
    }

    fn derive(&mut self, derived: Derived, drawn: &[Value], table: u32) -> Value {
        match derived {
            Derived::Sum(of, add) => Value::UInt(number(&drawn[of]).saturating_add(add)),
            Derived::C(of) => {
                let id = number(&drawn[of]);
                Value::Bytes(rows::proven(table + 1, id, || self.stream.bits()).to_vec())
            }
            // The values of a bulk statement are not kept.
            Derived::Previous(of) => self.previous.get(of).cloned().unwrap_or(Value::NULL),
        }
    }

    /// Writes a statement of as many rows as fit, one at least, into `sql`; `head` and the bulk's
    /// tail stand around them. Returns the sum of the column at the position `summed`.
    pub(crate) fn bulk_into(
        &mut self,
        sql: &mut String,
        bulk: &Bulk,
        head: &str,
        summed: Option<usize>,
        from: TableDraws<'_>,
    ) -> i64 {
        sql.push_str(head);
        let (mut rows, mut sum) = (0, 0_i64);
        let mut row = Vec::with_capacity(bulk.values.sources.len());
        loop {
            // There are none where the statement does not number rows.
            let (end, serial) = (sql.len(), self.serials.get(from.slot).copied());
            if rows > 0 {
                sql.push_str(&bulk.join);
            }
            row.clear();
            self.draw_into(&mut row, &bulk.values, from);
            literals_into(sql, &bulk.pieces, &row);
            if rows > 0 && sql.len() + bulk.tail.len() > bulk.bytes_max {
                // The row is the next statement's first: its number is given again.
                sql.truncate(end);
                if let Some(before) = serial {
                    self.serials[from.slot] = before;
                }
                break;
            }
            rows += 1;
            sum = sum.saturating_add(summed.map_or(0, |i| signed(&row[i])));
        }
        sql.push_str(&bulk.tail);
        sum
    }
}

#[inline]
fn pick(pick: &Pick, stream: &mut Stream) -> Value {
    Value::UInt(pick.base.wrapping_add(pick.sampler.draw(stream)))
}

/// Takes a value as an id; a workload's own text may stand in for one, and counts as 0.
#[inline]
pub(crate) fn number(value: &Value) -> u64 {
    match value {
        Value::UInt(id) => *id,
        Value::Int(n) => u64::try_from(*n).unwrap_or(0),
        _ => 0,
    }
}

pub(crate) fn signed(value: &Value) -> i64 {
    match value {
        Value::UInt(n) => i64::try_from(*n).unwrap_or(i64::MAX),
        Value::Int(n) => *n,
        _ => 0,
    }
}

pub(crate) fn literals_into(sql: &mut String, pieces: &[String], values: &[Value]) {
    for (i, piece) in pieces.iter().enumerate() {
        sql.push_str(piece);
        match values.get(i) {
            Some(Value::UInt(id)) => write!(sql, "{id}").expect("a String takes everything"),
            Some(other) => sql.push_str(&other.as_sql(true)),
            // The last piece stands behind the last value.
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::job::Compiled;
    use crate::engine::job::tests::TABLES;
    use crate::workload::distribution::Distribution;
    use crate::workload::{Workload, builtin};
    use proptest::prelude::*;

    fn generator(seed: u64) -> Generator {
        Generator {
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
        let picks: Vec<Pick> = compiled.draws.iter().map(|d| d.pick(1)).collect();
        let from = TableDraws { table: 0, slot: 0, picks: &picks };
        generator(seed).draw(&compiled.statements[0].values, from)
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
            let n: Vec<u64> = values.iter().map(number).collect();
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
            prop_assert!(rows::proves(1, number(&values[1]), &bytes(0)));
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
        let mut generator = generator(1);
        let from = TableDraws { table: 0, slot: 0, picks: &[] };
        let mut next = |bytes_max: usize| {
            let mut sql = String::new();
            let bulk = Bulk { bytes_max, ..copy(bulk) };
            let written =
                generator.bulk_into(&mut sql, &bulk, "INSERT INTO t VALUES", Some(1), from);
            (sql, written)
        };
        let (sql, written) = next(36);
        assert_eq!(sql, "INSERT INTO t VALUES(1,1),(2,2),(3,3)".get(..31).unwrap_or_default());
        assert_eq!(written, 3);
        let (sql, written) = next(43);
        assert_eq!(sql, "INSERT INTO t VALUES(3,3),(4,4),(5,5),(6,6)");
        assert_eq!((sql.len(), written), (43, 18));
        assert_eq!(next(0).0, "INSERT INTO t VALUES(7,7)", "one row at least");
    }

    fn copy(bulk: &Bulk) -> Bulk {
        Bulk {
            head: bulk.head.clone(),
            tail: bulk.tail.clone(),
            pieces: bulk.pieces.clone(),
            values: Values {
                sources: vec![Source::Serial, Source::Derived(Derived::Sum(0, 0))],
                derived: bulk.values.derived.clone(),
            },
            join: bulk.join.clone(),
            bytes_max: bulk.bytes_max,
        }
    }
}
