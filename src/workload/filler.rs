//! Rows of any schema in the two forms that fill a table: lines of LOAD DATA, and the values of
//! an INSERT.
//!
//! Values are digits, lower-case letters and a few signs, so nothing needs escaping in either,
//! whatever the server's sql_mode says.

use std::io::Write as _;

use super::schema::Schema;
use super::{phptest, rows};

/// The rows of one table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Filler {
    /// Of sysbench's.
    Sbtest(rows::Rows),
    /// Of the suite of 2007.
    Phptest(phptest::Rows),
}

impl From<rows::Rows> for Filler {
    fn from(rows: rows::Rows) -> Self {
        Filler::Sbtest(rows)
    }
}

impl Filler {
    /// The rows of table number `table` (from 1) with `rows` rows; None where a schema's tables
    /// stay empty.
    pub(crate) fn new(schema: Schema, data_seed: u32, table: u32, rows: u64) -> Option<Filler> {
        match schema {
            Schema::Sbtest => Some(Filler::Sbtest(rows::Rows::new(data_seed, table, rows))),
            Schema::Phptest => Some(Filler::Phptest(phptest::Rows::new(data_seed, table, rows))),
            Schema::Bulk => None,
        }
    }

    /// The tables' kind.
    pub(crate) fn schema(&self) -> Schema {
        match self {
            Filler::Sbtest(_) => Schema::Sbtest,
            Filler::Phptest(_) => Schema::Phptest,
        }
    }

    /// Bytes of a row at most in either form.
    pub(crate) fn row_max(&self) -> usize {
        match self {
            // Two numbers of twenty digits and what separates.
            Filler::Sbtest(_) => rows::C_LEN + rows::PAD_LEN + 2 * 20 + 10,
            // Five texts of 64, zip, date, three numbers and what separates.
            Filler::Phptest(_) => 5 * 64 + 8 + 10 + 20 + 3 + 3 + 40,
        }
    }

    /// A line of LOAD DATA: the columns in the schema's order, between tabs.
    pub(crate) fn line(&self, out: &mut Vec<u8>, id: u64) {
        self.put(out, id, [b"", b"\t", b"", b"\n"]);
    }

    /// A row of INSERT's VALUES, in brackets.
    pub(crate) fn tuple(&self, out: &mut Vec<u8>, id: u64) {
        self.put(out, id, [b"(", b",", b"'", b")"]);
    }

    /// Before a row, between columns, around texts, after a row.
    fn put(&self, out: &mut Vec<u8>, id: u64, [before, between, quote, after]: [&[u8]; 4]) {
        let mut columns = Columns { out, between, quote, first: true };
        columns.out.extend_from_slice(before);
        match self {
            Filler::Sbtest(source) => {
                let row = source.row(id);
                columns.number(row.id);
                columns.number(row.k);
                columns.text(&row.c);
                columns.text(&row.pad);
            }
            Filler::Phptest(source) => {
                let row = source.row(id);
                columns.number(row.id);
                columns.text(row.name.as_bytes());
                columns.text(row.email.as_bytes());
                columns.text(row.password.as_bytes());
                columns.date(row.dob);
                columns.text(row.address.as_bytes());
                columns.text(row.city.as_bytes());
                columns.number(row.state_id);
                columns.text(row.zip.as_bytes());
                columns.number(row.country_id);
            }
        }
        columns.out.extend_from_slice(after);
    }
}

struct Columns<'a> {
    out: &'a mut Vec<u8>,
    between: &'a [u8],
    quote: &'a [u8],
    first: bool,
}

impl Columns<'_> {
    fn next(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.out.extend_from_slice(self.between);
        }
    }

    fn number(&mut self, value: u64) {
        self.next();
        number(self.out, value);
    }

    fn text(&mut self, text: &[u8]) {
        self.next();
        self.out.extend_from_slice(self.quote);
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(self.quote);
    }

    fn date(&mut self, (year, month, day): (u32, u32, u32)) {
        self.next();
        self.out.extend_from_slice(self.quote);
        // Writing into a Vec cannot fail.
        let _ = write!(self.out, "{year:04}-{month:02}-{day:02}");
        self.out.extend_from_slice(self.quote);
    }
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    let start = out.len();
    loop {
        out.push(b'0' + (value % 10) as u8);
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out[start..].reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).expect("ASCII")
    }

    #[test]
    fn numbers_are_decimal() {
        for value in [0, 1, 9, 10, 12_345, 10_000_000_000, u64::MAX] {
            let mut out = b"x".to_vec();
            number(&mut out, value);
            assert_eq!(text(&out), format!("x{value}"));
        }
    }

    #[test]
    fn both_forms_hold_every_column_and_no_row_is_longer_than_said() {
        for schema in [Schema::Sbtest, Schema::Phptest] {
            let filler = Filler::new(schema, 1, 1, 10_000_000_000).expect("rows");
            assert_eq!(filler.schema(), schema);
            for id in [1, 77, 10_000_000_000] {
                let (mut line, mut tuple) = (Vec::new(), Vec::new());
                filler.line(&mut line, id);
                filler.tuple(&mut tuple, id);
                assert!(line.len() <= filler.row_max() && tuple.len() <= filler.row_max());
                let columns: Vec<&str> = text(&line).trim_end().split('\t').collect();
                assert_eq!(columns.len(), schema.columns().len());
                let values = text(&tuple).trim_matches(['(', ')']).replace('\'', "");
                assert_eq!(values.split(',').collect::<Vec<_>>(), columns);
                assert_eq!(columns[0], id.to_string());
            }
        }
        assert!(Filler::new(Schema::Bulk, 1, 1, 0).is_none());
    }
}
