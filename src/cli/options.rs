//! The options of a workload as flags of its verb.

use std::collections::BTreeMap;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, ArgMatches, Command};

use crate::plan::units::parse_count;
use crate::workload::Workload;
use crate::workload::options::OPTION_MAX;

const HEADING: &str = "Options of this workload";

/// Adds a flag for each option of the workload: `--range-size N`, `--skip-trx`. sysbench's
/// spelling, with underscores, is taken too.
pub(super) fn add(mut command: Command, workload: &Workload) -> Command {
    for (name, setting) in &workload.options {
        let shown = setting.shown();
        let help = match setting.about.as_str() {
            "" => format!("[default: {shown}]"),
            about => format!("{about} [default: {shown}]"),
        };
        let arg = Arg::new(id(name)).long(name.replace('_', "-")).help(help).help_heading(HEADING);
        let arg = if name.contains('_') { arg.alias(name.clone()) } else { arg };
        command = command.arg(if setting.switch {
            arg.num_args(0..=1)
                .require_equals(true)
                .value_name("on|off")
                .hide_possible_values(true)
                .default_missing_value("on")
                .value_parser(
                    PossibleValuesParser::new(["on", "true", "1", "off", "false", "0"])
                        .map(|word| u64::from(["on", "true", "1"].contains(&word.as_str()))),
                )
        } else {
            arg.value_name("N").value_parser(number)
        });
    }
    command
}

pub(crate) fn given(workload: &Workload, matches: &ArgMatches) -> BTreeMap<String, u64> {
    let given = |name: &String| Some((name.clone(), *matches.get_one::<u64>(&id(name))?));
    workload.options.keys().filter_map(given).collect()
}

/// No other argument has such an id.
fn id(name: &str) -> String {
    format!("option {name}")
}

fn number(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        n if n > OPTION_MAX => Err(format!("{n} is more than {OPTION_MAX}")),
        n => Ok(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::builtin;

    fn parsed(words: &str) -> Result<BTreeMap<String, u64>, String> {
        let words = words.split_whitespace();
        let matches =
            crate::cli::command().try_get_matches_from(["loadgen"].into_iter().chain(words));
        let matches = matches.map_err(|e| e.to_string())?;
        let (verb, matches) = matches.subcommand().ok_or("no verb")?;
        let workload = builtin().into_iter().find(|w| w.name == verb).ok_or("no workload")?;
        Ok(given(&workload, matches))
    }

    #[test]
    fn options_are_flags_in_both_spellings() {
        let given = parsed("oltp_read_write --range-size 10 --point_selects=1k --skip-trx");
        let expected = [("point_selects", 1000), ("range_size", 10), ("skip_trx", 1)]
            .map(|(n, v)| (n.to_owned(), v));
        assert_eq!(given, Ok(expected.into()));
        assert_eq!(parsed("read-write --skip_trx=off"), Ok([("skip_trx".to_owned(), 0)].into()));
        assert_eq!(parsed("read-write"), Ok(BTreeMap::new()), "defaults stay the workload's");
        for wrong in
            ["read-write --range-size x", "read-write --skip-trx=yes", "read-write --delta 1"]
        {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
