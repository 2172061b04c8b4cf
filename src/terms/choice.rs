//! The choices of a run: the words of flags, profiles and summaries.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A closed set of words.
pub trait Choice: Copy + 'static {
    const ALL: &'static [Self];

    /// Returns its word, and its line in the help.
    fn told(self) -> (&'static str, &'static str);

    /// Finds the choice of a word.
    fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|choice| choice.told().0 == word)
    }
}

/// Declares choices, each with its line in the help; `=` names the default.
macro_rules! choices {
    ($($(#[$meta:meta])* $name:ident $(= $usual:ident)? {
        $(#[doc = $help:literal] $(#[$of:meta])* $choice:ident $word:literal;)+
    })+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name { $(#[doc = $help] $(#[$of])* #[serde(rename = $word)] $choice),+ }
        $(impl Default for $name { fn default() -> Self { Self::$usual } })?
        impl $name { pub fn name(self) -> &'static str { self.told().0 } }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.told().0) }
        }
        impl Choice for $name {
            const ALL: &'static [Self] = &[$(Self::$choice),+];
            fn told(self) -> (&'static str, &'static str) {
                match self { $(Self::$choice => ($word, $help.trim_ascii())),+ }
            }
        }
    )+};
}

choices! {
    /// The spacing of an open loop's arrivals (`--arrival`).
    Arrival = Poisson {
        /// Independent of each other, as of many users
        Poisson "poisson";
        /// Evenly spaced
        Uniform "uniform";
    }

    /// The assignment of clients to tables (`--spread`).
    SpreadChoice = Auto {
        /// Pinned where every client count is a multiple of the tables, else random
        Auto "auto";
        /// Client i works on table i mod tables
        Pinned "pinned";
        /// Each op draws its table
        Random "random";
    }

    /// The assignment of clients to tables, decided.
    Spread = Pinned {
        /// Client i works on table i mod tables, as one sysbench process a table would
        Pinned "pinned";
        /// Each op draws its table
        Random "random";
    }

    /// The order of a sweep's clients (`--order`).
    Order = Ascending {
        /// Fewest clients first
        Ascending "ascending";
        /// Shuffled by the seed, differently in each repeat
        Shuffled "shuffled";
    }

    /// The form in which statements reach the server.
    #[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Mode"))]
    StatementMode = Prepared {
        /// Server-side prepared statements
        Prepared "prepared";
        /// SQL text
        Text "text";
    }

    /// An error's effect on its client and the step (`--on-error`); each does more than the last.
    OnError = Abort {
        /// End the step, but for deadlocks, lock wait timeouts and the like: these are counted
        Abort "abort";
        /// Count what the server answers and go on; a lost connection ends the step
        Continue "continue";
        /// The same, and open lost connections again
        Reconnect "reconnect";
    }

    /// The statements of a load (`--mode`).
    InsertWord = Extended {
        /// Many rows a statement
        Extended "extended";
        /// One row a statement
        Single "single";
        /// LOAD DATA LOCAL
        LoadData "load-data";
    }

    /// The launcher that started this process as one of several ranks (`--ranks`).
    Launcher = Auto {
        /// The first of the others that has left its variables
        Auto "auto";
        /// Open MPI, MPICH or Intel MPI
        Mpi "mpi";
        /// A step of Slurm: srun
        Slurm "slurm";
        /// An Indexed Job
        Kubernetes "kubernetes";
        /// LOADGEN_RANK and LOADGEN_SIZE, or RANK and WORLD_SIZE as of torchrun
        Env "env";
    }

    /// The data that is read before the first step (`--warm`).
    Warm = None {
        /// Nothing is read
        None "none";
        /// All rows and the index of their second column are read once, before the first step
        Pool "pool";
    }

    /// The adaptive hash index before each step (`--ahi`).
    Ahi = AsIs {
        /// Left alone
        AsIs "as-is";
        /// Switched off and on again before each step: it starts empty
        Cold "cold";
        /// Before each step rows are read until it answers as many searches as it will
        Warm "warm";
    }

    /// The source of a step's pages.
    #[cfg_attr(test, derive(schemars::JsonSchema))]
    Class {
        /// From the buffer pool
        #[serde(alias = "inside-buffer-pool")]
        Cached "cached";
        /// From storage, one in a hundred statements at least, though the data fit into the pool
        Cold "cold";
        /// Likewise, as the data do not fit
        #[serde(alias = "larger-than-buffer-pool")]
        IoBound "io-bound";
    }

    /// The worth of a number. Later ones outweigh earlier ones.
    #[derive(PartialOrd, Ord)]
    #[cfg_attr(test, derive(schemars::JsonSchema))]
    VerdictKind = Ok {
        /// Nothing speaks against its being the server's.
        Ok "ok";
        /// Something else on the client's host, or an unsteady level, is in it.
        Noisy "noisy";
        /// The client is in it.
        ClientBound "client-bound";
        /// Client and server shared cores that were full.
        SharedHost "shared-host";
    }

    /// A comparison's verdict on a cell.
    Compared {
        /// Not by chance, and by the floor or more
        Better "better";
        /// Likewise, to the other side
        Worse "worse";
        /// Not by chance, but perhaps by less than the floor: the interval reaches beyond it
        SlightlyBetter "slightly better";
        /// Likewise, to the other side
        SlightlyWorse "slightly worse";
        /// The interval lies within the floor: whatever differs does not matter
        Same "same";
        /// Nothing that chance does not do; one side stays within the floor
        NotShown "no difference shown";
        /// Likewise, and the interval is wider than the floor on both sides: anything may be
        Inconclusive "inconclusive";
        /// Nothing is shown, and so few runs could show nothing where no other cell differs
        TooFew "too few repeats";
        /// Runs did not complete: what is left of them shows nothing, unless it is worse
        Incomplete "incomplete";
        /// A run has no number above 0, or the ratio is no number
        NoRatio "no ratio";
        /// A total of work that was not the same
        NotComparable "not comparable";
        /// One label has not measured it
        NotMeasured "not measured";
    }

    /// The form of a table (`--format`).
    Format = Text {
        /// Aligned columns for a terminal or a mail
        Text "text";
        /// Tables of GitHub's Markdown
        Markdown "markdown";
        /// One row a cell, for spreadsheets and scripts
        Csv "csv";
        /// One object, loadgen.report/1
        Json "json";
        /// JUnit's XML: a case for each gate, or for each cell of a comparison
        Junit "junit";
        /// Bencher's JSON (BMF), with intervals
        Bencher "bencher";
        /// JSON for github-action-benchmark: bigger is better, or smaller (--metric p99)
        Gha "gha";
    }

    /// The arrangement of a report's numbers (`--layout`).
    Layout = Versions {
        /// Clients across, one label a line
        Versions "versions";
        /// One table for each metric: a row a workload, a column a label, relative and absolute
        Workloads "workloads";
        /// A list for each number of clients, best first
        List "list";
        /// Absolute and relative to one label (--baseline, else the first)
        Relative "relative";
        /// Range of the change from --baseline to --new in each workload, percent
        Delta "delta";
        /// Cost of what --new has and --baseline has not, for each number of clients, percent
        Overhead "overhead";
        /// Cost of an op to the server and the client, absolute and relative
        PerOp "per-op";
        /// The best number of each label, and the clients it was reached at
        Peak "peak";
        /// Times without service: gaps, first success, back to 95 % of the earlier rate
        Outages "outages";
        /// The hosts of --hosts or --ranks: what each did, its CPU, delay, verdict and clock
        Hosts "hosts";
        /// The transactions that a script has named: rate, latency and errors of each
        Transactions "transactions";
        /// The searches of --slo: the highest rate that held, and the steps that led to it
        Slo "slo";
        /// Suites of commands, test by test: wall, user and system seconds
        Suite "suite";
        /// Differences between the labels' servers, by variable
        Settings "settings";
    }

    /// The subject of a picture (`--chart`).
    Picture = Qps {
        /// The numbers over the clients, with the spread of the repeats
        Qps "qps";
        /// The same relative to one label (--baseline, else the first)
        Relative "relative";
        /// Latency by percentile
        Latency "latency";
        /// Ops a second in the course of each step
        Timeline "timeline";
    }
}

impl Layout {
    pub(crate) fn compares(self) -> bool {
        matches!(self, Layout::Delta | Layout::Overhead)
    }

    /// Returns whether it shows a metric: others have their own columns.
    pub(crate) fn has_metric(self) -> bool {
        use Layout::{Hosts, Outages, PerOp, Settings, Slo, Suite, Transactions};
        !matches!(self, Hosts | Outages | PerOp | Settings | Slo | Suite | Transactions)
    }

    /// Returns whether it relates all labels to one.
    pub(crate) fn relates(self) -> bool {
        matches!(self, Layout::Versions | Layout::Workloads | Layout::Relative | Layout::PerOp)
    }
}
