//! What `loadgen run` says of a step: its place in an experiment, the data that it started from,
//! and what ran beside it.

use serde::{Deserialize, Serialize};

/// A step's part in a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Experiment {
    /// The profile's name.
    pub profile: String,
    /// The same for the same cell of the same experiment in every invocation: what is measured
    /// already is found by it.
    pub key: String,
    /// `--scale`: 1 is the profile's own size.
    pub scale: f64,
    /// The label that this one is a variant of.
    pub base_label: Option<String>,
    /// Runs that wrote to the data since it was prepared or brought back, by the titles of their
    /// tables, this one's own earlier steps left out; null where that is not known.
    pub written_by: Option<Vec<String>>,
    /// Commands that ran beside the window.
    pub commands: Vec<CommandRun>,
}

/// A command that ran beside a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CommandRun {
    /// Its program; arguments may be nobody else's business.
    pub program: String,
    /// Four hexadecimal digits of its instant and its arguments as the profile has them: too few to
    /// guess an argument by, enough to tell other ones; null from old versions.
    #[serde(default)]
    pub asked: Option<String>,
    /// When it was started, seconds from the window's start.
    pub at_s: f64,
    /// Exit status; null where it was ended by a signal, or not started.
    pub exit: Option<i32>,
    /// The file beside the summary that holds what it wrote.
    pub output: String,
}
