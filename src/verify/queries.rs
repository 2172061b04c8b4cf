//! Queries that a script or a profile gave: each is asked once, and its result compared text by text.

use std::pin::pin;
use std::time::Duration;

use mysql_async::{Row, Value};

use crate::error::{VALUE_MAX, clip};
use crate::mysql::{Asked, Failure, Session};
use crate::progress::Progress;
use crate::summary::VerifyQuery;
use crate::terms::counted;
use crate::workload::check_query;

const EVERY: Duration = Duration::from_millis(500);
/// Rows of an answer, and values of a row, that are shown.
const ROWS_SHOWN: usize = 3;
const VALUES_SHOWN: usize = 8;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answered {
    pub query: VerifyQuery,
    pub found: Found,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    Expected,
    /// The difference, or the server's error.
    Wrong(String),
    /// The reason why it was not asked.
    Unasked(String),
}

type RowTexts = Vec<Option<String>>;

/// The part of an answer that is kept.
#[derive(Default)]
struct Answer {
    rows: usize,
    first: Vec<RowTexts>,
    /// The first row that is not the expected one, and its place.
    other: Option<(usize, RowTexts)>,
}

/// Asks each in a transaction that may write nothing; a query may take any time. Summaries may come from others.
pub(super) async fn ask(
    session: &mut Session,
    queries: &[VerifyQuery],
    progress: &mut Progress,
) -> Asked<Vec<Answered>> {
    let mut all = Vec::new();
    for (at, query) in (1..).zip(queries) {
        let mut tell = |found| all.push(Answered { query: query.clone(), found });
        if let Err(why) = check_query(&query.sql) {
            tell(Found::Unasked(why.to_owned()));
            continue;
        }
        match session.execute("START TRANSACTION READ ONLY").await {
            Ok(_) => {}
            // Servers before 5.6.5 have no such transactions.
            Err(refused @ Failure::Server { .. }) => {
                tell(Found::Unasked(format!("the server has no READ ONLY transaction: {refused}")));
                continue;
            }
            Err(lost) => return Err(lost),
        }
        let mut answer = Answer::default();
        let asked = {
            let mut asking =
                pin!(session.read(&query.sql, |row| answer.take(texts(&row), &query.rows)));
            loop {
                tokio::select! {
                    biased;
                    asked = &mut asking => break asked,
                    () = tokio::time::sleep(EVERY) => progress.update(|| {
                        format!("query {at} of {}: {}", queries.len(), query.name)
                    }),
                }
            }
        };
        tell(match asked {
            Ok(()) => answer.describe_difference(&query.rows).map_or(Found::Expected, Found::Wrong),
            Err(refused @ Failure::Server { .. }) => Found::Wrong(refused.to_string()),
            Err(lost) => return Err(lost),
        });
        session.execute("ROLLBACK").await?;
    }
    progress.clear();
    Ok(all)
}

impl Answer {
    fn take(&mut self, row: RowTexts, expected: &[RowTexts]) {
        let differs = expected.get(self.rows).is_none_or(|wanted| !is_row(wanted, &row));
        if differs && self.other.is_none() {
            self.other = Some((self.rows, row.clone()));
        }
        self.rows += 1;
        if self.first.len() < ROWS_SHOWN {
            self.first.push(row);
        }
    }

    fn describe_difference(&self, expected: &[RowTexts]) -> Option<String> {
        (self.other.is_some() || self.rows != expected.len()).then(|| {
            let (wanted, found) =
                (describe(expected.len(), expected), describe(self.rows, &self.first));
            let are = if self.rows > 1 { "are" } else { "is" };
            let hidden = self.describe_hidden(expected).unwrap_or_default();
            format!("expected {wanted}; there {are} {found}{hidden}")
        })
    }

    /// Describes the first other row, if it is behind those that are shown.
    fn describe_hidden(&self, expected: &[RowTexts]) -> Option<String> {
        let (at, row) = self.other.as_ref().filter(|(at, _)| *at >= ROWS_SHOWN)?;
        let wanted = describe_row(expected.get(*at)?);
        Some(format!("; row {} is {}, not {wanted}", at + 1, describe_row(row)))
    }
}

/// Compares a row with the expected one, whose NULLs at the end may be left out.
fn is_row(wanted: &RowTexts, row: &RowTexts) -> bool {
    let padded = wanted.iter().map(Option::as_ref).chain(std::iter::repeat(None));
    wanted.len() <= row.len()
        && row.iter().map(Option::as_ref).zip(padded).all(|(is, was)| is == was)
}

fn texts(row: &Row) -> RowTexts {
    let text = |at| match row.as_ref(at) {
        None | Some(Value::NULL) => None,
        Some(Value::Bytes(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Some(other) => Some(other.as_sql(true)),
    };
    (0..row.len()).map(text).collect()
}

fn describe_row(row: &RowTexts) -> String {
    let value = |value: &Option<String>| match value {
        Some(text) => format!("'{}'", clip(text, VALUE_MAX)),
        None => "NULL".to_owned(),
    };
    let more = if row.len() > VALUES_SHOWN { ", …" } else { "" };
    let values: Vec<String> = row.iter().take(VALUES_SHOWN).map(value).collect();
    format!("({}{more})", values.join(", "))
}

fn describe(count: usize, rows: &[RowTexts]) -> String {
    let shown: Vec<String> = rows.iter().take(ROWS_SHOWN).map(describe_row).collect();
    let more = if count > shown.len() && count > 0 { ", …" } else { "" };
    let rows = counted(count as u64, "row");
    if count == 0 { "no row".to_owned() } else { format!("{rows}: {}{more}", shown.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[Option<&str>]) -> RowTexts {
        values.iter().map(|value| value.map(str::to_owned)).collect()
    }

    #[test]
    fn answer_without_a_row_is_told_as_one_of_no_row() {
        let told = Answer::default().describe_difference(&[row(&[Some("1")])]);
        assert_eq!(told.as_deref(), Some("expected 1 row: ('1'); there is no row"));
    }

    #[test]
    fn answer_names_the_first_other_row_when_it_is_behind_those_shown() {
        let expected = ["1", "2", "3", "4", "5"].map(|value| row(&[Some(value)]));
        let mut answer = Answer::default();
        for value in ["1", "2", "3", "4x", "5x"] {
            answer.take(row(&[Some(value)]), &expected);
        }
        let told = answer.describe_difference(&expected).expect("it differs");
        assert!(told.ends_with("('3'), …; row 4 is ('4x'), not ('4')"), "{told}");
    }

    #[test]
    fn row_is_the_expected_one_when_all_its_texts_are() {
        let wanted = row(&[Some("1"), None]);
        assert!(is_row(&wanted, &row(&[Some("1"), None])));
        assert!(is_row(&row(&[Some("1")]), &row(&[Some("1"), None])), "NULLs at the end");
        for other in [&[Some("1")][..], &[Some("1"), Some("")], &[Some("1.0"), None]] {
            assert!(!is_row(&wanted, &row(other)), "{other:?}");
        }
    }
}
