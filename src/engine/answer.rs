//! The check of an answer against what its statement expects.

use super::job::Check;
use crate::mysql::wire::Answer;
use crate::workload::rows;

pub(super) fn find_fault(
    expected: &Check,
    answer: Answer,
    value: Option<u64>,
    content: Option<(u32, u64, Option<&[u8]>)>,
) -> Option<String> {
    for (number, what, (min, max)) in [
        (answer.rows, "rows", expected.rows),
        (answer.affected, "rows affected", expected.affected),
    ] {
        if number < min || number > max {
            return Some(match max {
                u64::MAX => format!("{number} {what} instead of {min} or more"),
                max if min == max => format!("{number} {what} instead of {min}"),
                max => format!("{number} {what} instead of {min} to {max}"),
            });
        }
    }
    if expected.nulls && answer.nulls > 0 {
        return Some(format!("{} NULLs in columns that have none", answer.nulls));
    }
    if let Some(wanted) = expected.value
        && value != Some(wanted)
        && answer.rows > 0
    {
        let got = value.map_or_else(|| "no number".to_owned(), |n| n.to_string());
        return Some(format!("the value is {got} instead of {wanted}"));
    }
    let (table, id, c) = content.filter(|_| answer.rows > 0)?;
    // PAD_CHAR_TO_FULL_LENGTH pads what is returned.
    let c = c.unwrap_or(b"").trim_ascii_end();
    // One of no id in particular may be any row's: an UPDATE gave it to several.
    let proves = |id| rows::proves(table + 1, id, c);
    (!proves(id) && !proves(0))
        .then(|| format!("the content is not that of id {id}: '{}'", c.escape_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: (u64, u64) = (0, u64::MAX);
    const ANYTHING: Check =
        Check { rows: ALL, affected: ALL, content: false, value: None, nulls: false };

    fn answer(rows: u64, affected: u64) -> Answer {
        Answer { rows, affected, ..Answer::default() }
    }

    #[test]
    fn answers_are_held_against_bounds() {
        let wrong = |expected: &Check, answer| find_fault(expected, answer, None, None);
        let exactly = Check { rows: (1, 1), ..ANYTHING };
        assert_eq!(wrong(&exactly, answer(1, 0)), None);
        assert_eq!(wrong(&exactly, answer(0, 1)).as_deref(), Some("0 rows instead of 1"));
        let range = Check { rows: (1, 100), ..ANYTHING };
        assert_eq!(wrong(&range, answer(100, 0)), None);
        assert_eq!(wrong(&range, answer(101, 0)).as_deref(), Some("101 rows instead of 1 to 100"));
        let some = Check { affected: (1, u64::MAX), ..ANYTHING };
        let text = "0 rows affected instead of 1 or more";
        assert_eq!(wrong(&some, answer(9, 0)).as_deref(), Some(text));
        assert_eq!(wrong(&ANYTHING, answer(0, 0)), None);
        let value = Check { value: Some(101), ..exactly };
        let text = "the value is no number instead of 101";
        assert_eq!(wrong(&value, answer(1, 0)).as_deref(), Some(text));
        let null = Answer { nulls: 1, ..answer(1, 0) };
        assert_eq!(wrong(&exactly, null), None);
        assert!(wrong(&Check { nulls: true, ..exactly }, null).is_some());
    }

    #[test]
    fn a_content_is_that_of_its_row_or_of_no_row_in_particular() {
        let check = Check { content: true, ..ANYTHING };
        let fault = |of: u64| {
            let c = rows::proven(3, of, || 7);
            find_fault(&check, answer(1, 0), None, Some((2, 9, Some(&c[..]))))
        };
        assert_eq!([fault(9), fault(0)], [None, None]);
        assert!(fault(8).is_some());
    }
}
