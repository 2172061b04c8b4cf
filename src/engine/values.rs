//! The values of parameters, and SQL with them in it.

use std::fmt::Write as _;

use mysql_async::Value;

use super::job::{CompiledStatement, Serial, Source, Sources};
use crate::workload::distribution::Sampler;
use crate::workload::random::Stream;
use crate::workload::rows;

pub(crate) struct Generator {
    pub stream: Stream,
    pub slices: Vec<Sampler>,
    /// By table of the client's; empty where no statement numbers rows.
    pub serials: Vec<Serial>,
    /// Values of the statement before, if the next one refers to them.
    pub previous: Vec<Value>,
}

#[derive(Clone, Copy)]
pub(crate) struct TableDraws<'a> {
    pub table: u32,
    /// Its place among the client's tables.
    pub slot: usize,
    pub picks: &'a [Sampler],
}

impl Generator {
    #[inline]
    pub(crate) fn draw(&mut self, sources: &Sources, from: TableDraws<'_>) -> Vec<Value> {
        let mut drawn = Vec::with_capacity(sources.len());
        self.draw_into(&mut drawn, sources, from);
        drawn
    }

    #[inline]
    fn draw_into(&mut self, drawn: &mut Vec<Value>, sources: &Sources, from: TableDraws<'_>) {
        drawn.clear();
        drawn.resize(sources.len(), Value::NULL);
        for (at, source) in sources {
            drawn[*at] = self.one(source, drawn, from);
        }
    }

    #[inline]
    fn one(&mut self, source: &Source, drawn: &[Value], from: TableDraws<'_>) -> Value {
        match source {
            Source::Draw(i) => Value::UInt(from.picks[*i].draw(&mut self.stream)),
            Source::Slice(i) => Value::UInt(self.slices[*i].draw(&mut self.stream)),
            Source::Serial => Value::UInt(self.serials[from.slot].next().expect("they never end")),
            Source::C => self.proven(0, from),
            Source::COf(of) => self.proven(number(&drawn[*of]), from),
            Source::Pad => Value::Bytes(rows::pad(|| self.stream.bits()).to_vec()),
            Source::Digits(n) => {
                Value::Bytes((0..*n).map(|_| b'0' + self.stream.below(10) as u8).collect())
            }
            Source::Const(value) => value.clone(),
            Source::Previous(of) => self.previous[*of].clone(),
            Source::Sum(of, add) => Value::UInt(number(&drawn[*of]).saturating_add(*add)),
        }
    }

    fn proven(&mut self, id: u64, from: TableDraws<'_>) -> Value {
        Value::Bytes(rows::proven(from.table + 1, id, || self.stream.bits()).to_vec())
    }

    /// Writes a bulk statement of as many rows as fit, one at least, into `sql`; `head` stands before
    /// them. Returns the sum of the `k` that it inserts.
    pub(crate) fn bulk_into(
        &mut self,
        sql: &mut String,
        statement: &CompiledStatement,
        head: &str,
        from: TableDraws<'_>,
    ) -> i64 {
        let bulk = statement.bulk.as_ref().expect("one of so many bytes");
        sql.push_str(head);
        let (mut rows, mut sum) = (0, 0_i64);
        let mut row = Vec::with_capacity(statement.sources.len());
        loop {
            // There are none where the statement does not number rows.
            let (end, serial) = (sql.len(), self.serials.get(from.slot).cloned());
            if rows > 0 {
                sql.push_str(&bulk.join);
            }
            self.draw_into(&mut row, &statement.sources, from);
            literals_into(sql, &statement.pieces, &row);
            if rows > 0 && sql.len() + bulk.tail.len() > bulk.bytes_max {
                // The row is the next statement's first: its number is given again.
                sql.truncate(end);
                if let Some(before) = serial {
                    self.serials[from.slot] = before;
                }
                break;
            }
            rows += 1;
            sum = sum.saturating_add(statement.k_of(&row));
        }
        sql.push_str(&bulk.tail);
        sum
    }
}

impl CompiledStatement {
    /// Adds up the `k` of the rows that these values insert.
    #[inline]
    pub(crate) fn k_of(&self, values: &[Value]) -> i64 {
        let k = |at: &usize| signed(&values[*at]);
        self.inserted_k.iter().map(k).fold(0, i64::saturating_add)
    }
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

fn signed(value: &Value) -> i64 {
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
    use crate::engine::job::Job;
    use crate::engine::job::tests::{TABLES, a_plan, job_of};
    use crate::plan::{Plan, Spread, StopAt};
    use crate::workload::{Workload, builtin};
    use proptest::prelude::*;

    fn generator(seed: u64) -> Generator {
        Generator {
            stream: Stream::new(seed),
            slices: Vec::new(),
            serials: vec![(1..).step_by(1)],
            previous: Vec::new(),
        }
    }

    fn compiled(workload: Workload) -> Job {
        let plan = Plan { workload, ..a_plan(0, 1, StopAt::Ops(1)) };
        job_of(&plan, Spread::Random, TABLES, None)
    }

    fn of(params: &str) -> Job {
        let table: toml::Table = toml::from_str(&format!("p = {params}")).expect("TOML");
        let count = table["p"].as_array().map(Vec::len).expect("a list");
        let text = format!(
            "name = 'x'\nabout = 'y'\n[options]\nlen = 7\n[[transaction]]\n\
             [[transaction.statement]]\nkind = 'select'\nsql = 'SELECT {}'\nparams = {params}\n\
             expect = 'any'\n",
            vec!["?"; count].join(", ")
        );
        let workload = Workload::parse(&text, "w").unwrap_or_else(|e| panic!("{}", e.render()));
        compiled(workload)
    }

    fn drawn(params: &str, seed: u64) -> Vec<Value> {
        let job = of(params);
        let from = TableDraws { table: 0, slot: 0, picks: &job.picks(0) };
        generator(seed).draw(&job.statements[0].sources, from)
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
        let mut job = compiled(workload);
        assert!(job.serial && job.prepared.is_empty());
        let mut statement = job.statements.remove(0);
        let mut generator = generator(1);
        let from = TableDraws { table: 0, slot: 0, picks: &[] };
        let mut next = |bytes_max: usize| {
            let mut sql = String::new();
            statement.bulk.as_mut().expect("a list of bytes").bytes_max = bytes_max;
            let written = generator.bulk_into(&mut sql, &statement, "INSERT INTO t VALUES", from);
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
}
