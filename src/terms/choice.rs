//! What a run chooses among: the words of flags, profiles and summaries.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The spacing of an open loop's arrivals (`--arrival`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// Independent of each other, as of many users
    #[default]
    Poisson,
    /// Evenly spaced
    Uniform,
}

/// How clients meet tables (`--spread`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpreadChoice {
    /// Pinned where every client count is a multiple of the tables, else random
    Auto,
    /// Client i works on table i mod tables
    Pinned,
    /// Each op draws its table
    Random,
}

/// How clients meet tables, decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Client i works on table i mod tables, as one sysbench process a table would.
    #[default]
    Pinned,
    /// Each op draws its table.
    Random,
}

/// The order of a sweep's clients (`--order`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Fewest clients first
    Ascending,
    /// Shuffled by the seed, differently in each repeat
    Shuffled,
}

/// How statements reach the server (`--statements`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Mode", description = "How statements reach the server."))]
#[serde(rename_all = "snake_case")]
pub enum StatementMode {
    /// `COM_STMT_EXECUTE` of statements prepared before the window.
    #[value(help = "Server-side prepared statements")]
    #[default]
    Prepared,
    /// `COM_QUERY` with the values as literals.
    #[value(help = "SQL text")]
    Text,
}

/// What an error does to its client and to the step (`--on-error`); each does more than the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnError {
    /// End the step, but for deadlocks, lock wait timeouts and the like: these are counted
    #[default]
    Abort,
    /// Count what the server answers and go on; a lost connection ends the step
    Continue,
    /// The same, and open lost connections again
    Reconnect,
}

/// What is read before the first step (`--warm`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Warm {
    /// Nothing is read
    #[default]
    None,
    /// All rows and the index of their second column are read once, before the first step
    Pool,
}

/// The adaptive hash index before each step (`--ahi`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ahi {
    /// Left alone
    #[default]
    AsIs,
    /// Switched off and on again before each step: it starts empty
    Cold,
    /// Before each step rows are read until it answers as many searches as it will
    Warm,
}

/// Where the pages of a step came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// From the buffer pool.
    #[serde(alias = "inside-buffer-pool")]
    Cached,
    /// From storage, one in a hundred statements at least.
    #[serde(alias = "larger-than-buffer-pool")]
    IoBound,
}

/// The form of a table (`--format`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns for a terminal or a mail
    #[default]
    Text,
    /// Tables of GitHub's Markdown
    Markdown,
    /// One row a cell, for spreadsheets and scripts
    Csv,
    /// One object, loadgen.report/1
    Json,
}

/// The arrangement of a report's numbers (`--layout`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// Clients across, one label a line
    #[default]
    Versions,
    /// A list for each number of clients, best first
    List,
    /// Absolute and relative to one label (--baseline, else the first)
    Relative,
    /// Range of the change between two labels (--from, --to) in each workload, percent
    Delta,
    /// Cost of what --to has and --from has not, for each number of clients, percent
    Overhead,
    /// What an op costs the server and the client, absolute and relative
    PerOp,
    /// The best number of each label, and the clients it was reached at
    Peak,
    /// Times without service: gaps, first success, back to 95 % of the earlier rate
    Outages,
    /// Suites of commands, test by test: wall, user and system seconds
    Suite,
    /// What tells the labels from each other, by the server's variables
    Settings,
}

impl Layout {
    /// Tells whether it holds two labels against each other.
    pub(crate) fn compares(self) -> bool {
        matches!(self, Layout::Delta | Layout::Overhead)
    }

    /// Tells whether it relates all labels to one.
    pub(crate) fn relates(self) -> bool {
        matches!(self, Layout::Versions | Layout::Relative | Layout::PerOp)
    }
}

/// The subject of a picture (`--chart`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Picture {
    /// The numbers over the clients, with the spread of the repeats
    #[default]
    Qps,
    /// The same relative to one label (--baseline, else the first)
    Relative,
    /// Latency by percentile
    Latency,
    /// Ops a second in the course of each step
    Timeline,
}

macro_rules! shown_as_flags {
    ($($name:ty),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let word = self.to_possible_value().expect("no variant is skipped");
                f.write_str(word.get_name())
            }
        }
    )*};
}
shown_as_flags!(Arrival, Spread, StatementMode, OnError, Warm, Ahi, Class, Layout);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_in_flags_and_in_json() {
        fn check<T: ValueEnum + Serialize + fmt::Display>() {
            for word in T::value_variants() {
                assert_eq!(serde_json::to_value(word).expect("JSON"), word.to_string());
            }
        }
        check::<Arrival>();
        check::<Spread>();
        check::<StatementMode>();
        check::<OnError>();
        check::<Warm>();
        check::<Ahi>();
        check::<Class>();
    }
}
