//! The rules of a run that differ between loadgen and sysbench, each named after its decision.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

/// The decisions of the engine that are not loadgen's alone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a decision of its own")]
pub struct Rules {
    pub after_error: AfterError,
    pub at_end: AtEnd,
    /// Number of ops over all clients that ends the run, unless the time does.
    pub shared_ops: Option<u64>,
    /// Upper limit on the waiting arrivals of an open loop; more end the run.
    pub queue_max: Option<u64>,
    /// The observer gets the server's refusals unchanged, and log-in errors have no hints.
    pub raw_refusals: bool,
    /// BEGIN, COMMIT and statements with a count of 0 are prepared, too.
    pub prepare_all: bool,
    /// Each op adds a row to a bulk statement, which is sent when full.
    pub row_an_op: bool,
    /// Inserted ids begin at 1, not after the table's largest.
    pub ids_from_one: bool,
    /// Unique ids are of all signed numbers of 32 bits, not of the positive ones alone.
    pub unique_below_zero: bool,
    /// Answers are counted by kind, and not checked against the workload.
    pub count_answers: bool,
    pub roll_back: bool,
    pub close_statements: bool,
    pub check_tables: bool,
    /// All clients log in again after the same number of ops, the first time, too.
    pub log_in_together: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AfterError {
    /// It failed, and the plan's policy decides on the step.
    Policy,
    /// It restarts after these errors; others end the step.
    Restart(Ignored),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtEnd {
    /// Ops count by their start. The drain finishes them, or gives them up with waiting arrivals.
    Drain,
    /// Ops are finished, within `grace` if set. Waiting arrivals are dropped. With `by_end` ops count by
    /// their end, and the time has what a script does after its last op.
    Finish { grace: Option<Duration>, by_end: bool },
}

/// Errors after which an op restarts (`--mysql-ignore-errors`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ignored {
    All,
    Codes(Vec<u16>),
}

impl Default for Ignored {
    fn default() -> Ignored {
        Ignored::Codes(Vec::new())
    }
}

impl Ignored {
    /// Client libraries' errors for a lost connection.
    const LOST: [u16; 4] = [2006, 2011, 2013, 2055];

    pub(crate) fn has(&self, code: u16) -> bool {
        match self {
            Ignored::All => true,
            Ignored::Codes(codes) => codes.contains(&code),
        }
    }

    pub(crate) fn has_lost(&self) -> bool {
        Ignored::LOST.iter().any(|code| self.has(*code))
    }

    #[cfg(feature = "lua")]
    pub(crate) fn is_lost(code: u16) -> bool {
        Ignored::LOST.contains(&code)
    }
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ignored::All => f.write_str("all"),
            Ignored::Codes(codes) => {
                let codes: Vec<String> = codes.iter().map(u16::to_string).collect();
                f.write_str(&codes.join(","))
            }
        }
    }
}

impl AfterError {
    pub(crate) fn ignored(&self) -> Option<&Ignored> {
        match self {
            AfterError::Policy => None,
            AfterError::Restart(ignored) => Some(ignored),
        }
    }
}

impl Rules {
    pub fn loadgen() -> Rules {
        Rules {
            after_error: AfterError::Policy,
            at_end: AtEnd::Drain,
            shared_ops: None,
            queue_max: None,
            raw_refusals: false,
            prepare_all: false,
            row_an_op: false,
            ids_from_one: false,
            unique_below_zero: false,
            count_answers: false,
            roll_back: true,
            close_statements: false,
            check_tables: true,
            log_in_together: false,
        }
    }

    pub fn sysbench(ignored: Ignored, events: Option<u64>, grace: Option<Duration>) -> Rules {
        Rules {
            after_error: AfterError::Restart(ignored),
            at_end: AtEnd::Finish { grace, by_end: true },
            shared_ops: events,
            queue_max: Some(131_072),
            raw_refusals: true,
            prepare_all: true,
            row_an_op: true,
            ids_from_one: true,
            unique_below_zero: true,
            count_answers: true,
            roll_back: false,
            close_statements: true,
            check_tables: false,
            log_in_together: true,
        }
    }

    pub(crate) fn is_loadgen(&self) -> bool {
        *self == Rules::loadgen()
    }

    pub(crate) fn ignored(&self) -> Option<&Ignored> {
        self.after_error.ignored()
    }

    pub(crate) fn counts_by_end(&self) -> bool {
        matches!(self.at_end, AtEnd::Finish { by_end: true, .. })
    }
}

/// Writes only what a sysbench command line decides: the other rules follow from it, and resume keys stay.
impl Serialize for Rules {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct AsSysbench<'a> {
            ignored: Option<&'a Ignored>,
            events: Option<u64>,
            grace: Option<Duration>,
            reconnect: u64,
        }
        let grace = match self.at_end {
            AtEnd::Drain => None,
            AtEnd::Finish { grace, .. } => grace,
        };
        // The plan has it; older keys have it here, too.
        let reconnect = 0;
        AsSysbench { ignored: self.ignored(), events: self.shared_ops, grace, reconnect }
            .serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_sysbench_have_the_resume_key_of_before() {
        let ignored = Ignored::Codes(vec![1213, 1020]);
        let rules = Rules::sysbench(ignored, Some(7), Some(Duration::from_secs(2)));
        assert_eq!(
            serde_json::to_string(&rules).expect("plain data"),
            r#"{"ignored":{"Codes":[1213,1020]},"events":7,"grace":{"secs":2,"nanos":0},"reconnect":0}"#
        );
        let rules = Rules::sysbench(Ignored::All, None, None);
        assert_eq!(
            serde_json::to_string(&rules).expect("plain data"),
            r#"{"ignored":"All","events":null,"grace":null,"reconnect":0}"#
        );
        assert!(Rules::loadgen().is_loadgen() && !rules.is_loadgen());
    }
}
