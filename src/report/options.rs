//! Options of a report.

use super::metric::Metric;
use crate::error::{Error, Result};
use crate::terms::{Format, Layout};

#[expect(clippy::struct_excessive_bools, reason = "each is a flag by itself")]
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub metric: Metric,
    /// Further ones: a table each, behind those of the first.
    pub also: Vec<Metric>,
    pub layout: Layout,
    pub format: Format,
    /// All labels are related to it; where two are compared, the new one is.
    pub baseline: Option<String>,
    pub new: Option<String>,
    /// Labels in the order of their lines; others follow by the time of their first step.
    pub order: Vec<String>,
    /// Use only the newest invocation of each label and workload.
    pub latest: bool,
    /// Refuse a label whose invocations clash: else the newest one is shown.
    pub strict: bool,
    pub partial: bool,
    /// Columns of the terminal that the text goes to, which then has small bars; none elsewhere.
    pub terminal: Option<usize>,
    pub notes: Notes,
    /// The paths of the summaries, as they were typed.
    pub source: String,
    pub spread: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Notes {
    #[default]
    Brief,
    /// Below the tables of this one.
    All,
    /// Below a later part of this one.
    Later,
}

impl Options {
    /// Refuses labels that the layout does nothing with.
    pub(super) fn check(&self) -> Result<()> {
        let layout = self.layout;
        let (wrong, hint) = if !layout.compares() && self.new.is_some() {
            let hint = "--layout delta and --layout overhead do; --baseline relates all labels";
            ("takes no --new", hint)
        } else if self.spread && layout != Layout::Versions {
            ("takes no --spread", "--layout versions, the default, does")
        } else if !layout.relates() && !layout.compares() && self.baseline.is_some() {
            let hint = match layout {
                Layout::Suite => "it relates all labels to the first one: --order LABEL chooses it",
                _ => "--layout versions, workloads, relative and per-op do",
            };
            ("takes no --baseline", hint)
        } else {
            return Ok(());
        };
        Err(Error::usage(format!("--layout {layout} {wrong}")).hint(hint))
    }

    /// Refuses metrics that the layout does not show. A page or a picture has no layout.
    pub(super) fn check_metrics(&self) -> Result<()> {
        let has_metrics = self.metric != Metric::default() || !self.also.is_empty();
        if self.layout.has_metric() || !has_metrics {
            return Ok(());
        }
        Err(Error::usage(format!("--layout {} takes no --metric", self.layout))
            .hint("it has its own columns: leave --metric out"))
    }
}
