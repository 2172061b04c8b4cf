//! The tables hold what prepare and the runs since left there.

use std::path::PathBuf;

use super::tables::reach;
use super::{print_data, runtime};
use crate::error::{Error, Kind, Result, line as one_line};
use crate::mysql::options::ConnectionArgs;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::summary;
use crate::verify::{Checked, Evidence, Verdict, verify};

pub(crate) fn run(
    paths: &[PathBuf],
    elsewhere: bool,
    connection: &ConnectionArgs,
    mut progress: Progress,
    stop: &Stop,
) -> Result<()> {
    // Records first: a step that ends meanwhile is then in both, or in the summaries alone.
    let records = summary::records(paths)?;
    let loaded = summary::collect(paths)?;
    if let Some((path, reason)) = loaded.skipped.first() {
        return Err(Error::new(
            Kind::Undecided,
            format!("{}: {reason}: what it stands for is not known", path.display()),
        )
        .hint("move it away if loadgen did not write it, or if it is a copy"));
    }
    let steps = loaded.steps();
    let evidence = Evidence { summaries: &steps, records: &records, elsewhere };
    let (target, opts) = reach(connection, &mut progress, stop)?;
    let verifying = verify(&target, &opts, &evidence, stop, &mut progress);
    let checked = runtime()?.block_on(verifying);
    progress.clear();
    let checked = checked?;
    print_data(&lines(&checked))?;
    conclusion(&checked)
}

/// A line a table.
fn lines(checked: &[Checked]) -> String {
    let width = checked.iter().map(|one| one.table.len()).max().unwrap_or(0);
    let line = |one: &Checked| {
        let said = match &one.verdict {
            Verdict::Ok => format!("ok: {}", inside(one)),
            Verdict::Lost(n, what) => format!("LOST {n}: {what}; {}", inside(one)),
            Verdict::Damaged(n, what) => format!("DAMAGED {n}: {what}"),
            Verdict::Index(n, what) => format!("INDEX {n}: {what}; {}", inside(one)),
            Verdict::Undecided(why) => format!("undecided: {why}"),
        };
        format!("{:width$}  {}\n", one.table, one_line(&said))
    };
    checked.iter().map(line).collect()
}

fn inside(one: &Checked) -> String {
    let k = one.k.map_or_else(String::new, |k| format!(", sum of k {k}"));
    let doubt = match one.in_doubt {
        0 => String::new(),
        n => format!(", {n} writes in doubt"),
    };
    let (rows, steps) = (one.rows.unwrap_or(0), one.steps);
    let s = if steps == 1 { "" } else { "s" };
    format!("{rows} rows{k} after {steps} step{s}{doubt}")
}

/// The exit status, and what it means.
fn conclusion(checked: &[Checked]) -> Result<()> {
    let count = |is: fn(&Verdict) -> bool| checked.iter().filter(|one| is(&one.verdict)).count();
    let lost = count(|verdict| matches!(verdict, Verdict::Lost(..)));
    let damaged = count(|verdict| matches!(verdict, Verdict::Damaged(..)));
    let torn = count(|verdict| matches!(verdict, Verdict::Index(..)));
    let undecided = count(|verdict| matches!(verdict, Verdict::Undecided(_)));
    let of = checked.len();
    if damaged > 0 {
        return Err(Error::data(format!("{damaged} of {of} tables hold what nobody wrote"))
            .hint("CHECK TABLE, and the server's error log"));
    }
    if lost > 0 {
        return Err(Error::data(format!("{lost} of {of} tables lost what was acknowledged"))
            .hint("durable is innodb_flush_log_at_trx_commit=1, on a disk that keeps its word")
            .hint("did something else write to them, or a run whose --out is not named here?"));
    }
    if torn > 0 {
        return Err(Error::data(format!(
            "{torn} of {of} tables have an index that disagrees with their rows"
        ))
        .hint("keep the data directory as evidence; ALTER TABLE … FORCE builds the indexes anew"));
    }
    if undecided > 0 {
        let text = format!("{undecided} of {of} tables cannot be judged");
        return Err(
            Error::new(Kind::Undecided, text).hint("loadgen prepare --force begins a new history")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(table: &str, verdict: Verdict) -> Checked {
        let (rows, k) = (Some(10), Some(55));
        Checked { table: table.to_owned(), verdict, rows, k, steps: 1, in_doubt: 2 }
    }

    #[test]
    fn a_line_a_table_and_the_worst_decides() {
        let all = [
            checked("sbtest9", Verdict::Ok),
            checked("sbtest10", Verdict::Lost(3, "3 rows are missing".to_owned())),
            checked("bulk1", Verdict::Undecided("why \u{1b}[2J".to_owned())),
            checked("bulk2", Verdict::Index(2, "k_1 has 12 rows".to_owned())),
        ];
        let text = lines(&all);
        let lines: Vec<&str> = text.lines().collect();
        let inside = "10 rows, sum of k 55 after 1 step, 2 writes in doubt";
        assert_eq!(lines[0], format!("sbtest9   ok: {inside}"));
        assert_eq!(lines[1], format!("sbtest10  LOST 3: 3 rows are missing; {inside}"));
        assert_eq!(lines[2], "bulk1     undecided: why \\u{1b}[2J");
        let code = |all: &[Checked]| conclusion(all).err().map(|e| e.kind().exit_code());
        assert_eq!(code(&all), Some(4));
        assert_eq!(lines[3], format!("bulk2     INDEX 2: k_1 has 12 rows; {inside}"));
        assert_eq!(code(&all[2..]), Some(4));
        assert_eq!(code(&[all[0].clone(), all[2].clone()]), Some(98));
        assert_eq!(code(&all[..1]), None);
    }
}
