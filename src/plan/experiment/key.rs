//! The key of a cell: what makes two measurements the same, in every invocation.

use serde::Serialize;

use super::{Beside, Dataset, Part, Source, Subject, What};
use crate::plan::Plan;
use crate::plan::timed::{LoadSpec, SuiteSpec};
use crate::workload::random::{mix, name_part};

/// Goes up where [`ResumeKey`] changes its meaning.
const VERSION: u32 = 2;

/// Repeats and numbers of clients may be added later: each is in the key of its own cells only.
#[derive(Serialize)]
struct ResumeKey<'a> {
    version: u32,
    profile: &'a str,
    label: &'a str,
    server: Option<ServerKey<'a>>,
    run: RunKey<'a>,
    clients: u32,
    rate: Option<f64>,
    repeat: u32,
}

/// A private server as loadgen sets it up; of one that is there only its owner knows.
#[derive(Serialize)]
struct ServerKey<'a> {
    program: Option<String>,
    options: &'a [(String, Option<String>)],
}

#[derive(Serialize)]
enum RunKey<'a> {
    Sweep { plan: &'a Plan, dataset: &'a Dataset, commands: &'a [Beside] },
    Load { title: &'a str, load: &'a LoadSpec },
    Suite { title: &'a str, suite: &'a SuiteSpec },
}

/// Makes the key of a cell.
pub(super) fn key(
    profile: &str,
    subject: &Subject,
    part: &Part,
    (clients, rate, repeat): (u32, Option<f64>, u32),
) -> String {
    let server = match &subject.source {
        Source::Existing(_) => None,
        Source::Sandbox(private) => Some(ServerKey {
            program: private.program.as_ref().map(|path| path.display().to_string()),
            options: &private.options,
        }),
    };
    let title = part.title.as_str();
    let run = match &part.what {
        What::Sweep(plan, dataset) => RunKey::Sweep { plan, dataset, commands: &part.commands },
        What::Load(load) => RunKey::Load { title, load },
        What::Suite(suite) => RunKey::Suite { title, suite },
    };
    let label = subject.label.as_str();
    let key = ResumeKey { version: VERSION, profile, label, server, run, clients, rate, repeat };
    let text = serde_json::to_string(&key).expect("its texts and numbers are JSON");
    format!("{VERSION}-{:016x}", mix(name_part(&text)))
}

/// Tells a key that this version makes from an earlier one's.
pub(crate) fn is_current(key: &str) -> bool {
    key.split_once('-').is_some_and(|(version, _)| version == VERSION.to_string())
}
