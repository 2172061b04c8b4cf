//! `loadgen load`: reload a table and time it.

use std::path::PathBuf;

use super::workload::MeasureArgs;
use crate::error::{Error, Result};
use crate::plan::timed::{LoadKnobs, LoadSpec};
use crate::plan::{defaults, value};
use crate::run::measure::Asked;
use crate::run::steps::Job;

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
The rows are made on the fly, as mysqldump --opt would have written them, or read from a file that
mysqldump wrote, whose statements are sent as they are. One connection loads them. Tables that an
earlier load made are dropped, those of prepare with --force, others never.

Examples:
  loadgen load --rows 16M --label 8.0.33
  loadgen load --rows 16M --mode single --charset latin1
  mysqldump --opt db t1 | loadgen load --from-dump -")]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub knobs: LoadKnobs,

    /// Load so many times; the table shows the median
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    /// The row of the table [default: the server's version]
    #[arg(long, value_name = "NAME", value_parser = value::label)]
    pub label: Option<String>,

    /// Something to keep in the summaries; may be given several times
    #[arg(long = "note", value_name = "KEY=VALUE", value_parser = value::key_value)]
    pub notes: Vec<(String, String)>,

    /// Drop also tables that prepare made
    #[arg(long)]
    pub force: bool,

    /// Do not ask before that
    #[arg(long)]
    pub yes: bool,

    /// Directory of the summaries
    #[arg(long, value_name = "DIR", default_value = defaults::OUT)]
    pub out: PathBuf,

    #[command(flatten)]
    pub measure: MeasureArgs,
}

pub(super) fn run(args: LoadArgs) -> Result<()> {
    let spec = match &args.knobs {
        LoadKnobs { dump: Some(path), .. } if path.as_os_str() == "-" && args.repeat > 1 => {
            let text = "--from-dump -: standard input comes once, not --repeat times";
            return Err(Error::usage(text).hint("give it a file"));
        }
        // The others are defaults: none may be given with it.
        LoadKnobs { dump: dump @ Some(_), charset, .. } => {
            let (dump, charset) = (dump.clone(), charset.clone());
            LoadSpec::try_from(LoadKnobs { dump, charset, ..LoadKnobs::default() })
        }
        knobs => LoadSpec::try_from(knobs.clone()),
    };
    let asked = Asked {
        job: Job::Load { spec: &spec.map_err(Error::usage)?, force: args.force },
        label: args.label,
        notes: args.notes,
        repeats: args.repeat,
        gates: Vec::new(),
        slo: Vec::new(),
        slo_resolution: 0.0,
        yes: args.yes,
    };
    args.measure.run(&asked, args.out, None, false)
}
