//! Findings: what a reader of a step's numbers must know, as a code and values. All their sentences
//! are here, in the order of docs/user/notes.md.

use std::fmt;

use super::units;

/// A thing found about a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub code: Code,
    /// What fills the gaps of its sentence, in their order.
    pub values: Vec<String>,
}

/// A number in a sentence, with the digits that matter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A part of 1, shown as a percentage.
    Share(f64),
    /// Microseconds, shown as milliseconds with three digits that say something.
    Micros(f64),
    /// A number of so many decimals.
    Number(f64, usize),
    /// Ops, statements or the like a second, with three significant digits.
    Rate(f64),
    /// A number with a decimal, unless that is 0, or the number 100 or more.
    Short(f64),
}

/// How much a finding changes a conclusion, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Something failed, or there is no number.
    Failed,
    /// A number is not reliable.
    Doubt,
    /// Labels were not measured alike.
    Differs,
    /// Nothing changes: shown with `--notes` only.
    Aside,
}

/// Makes a finding of a code and values.
macro_rules! finding {
    ($code:ident $(, $value:expr)* $(,)?) => {
        $crate::terms::Finding {
            code: $crate::terms::Code::$code,
            values: vec![$($value.to_string()),*],
        }
    };
}
pub(crate) use finding;

macro_rules! codes {
    ($($code:ident $name:literal $rank:ident $brief:literal $sentence:literal;)*) => {
        /// The kinds of findings; several may share the name that files know.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code { $($code),* }

        impl Code {
            /// All of them.
            pub const ALL: &[Code] = &[$(Code::$code),*];

            /// Gives the stable name in files.
            pub fn name(self) -> &'static str {
                match self { $(Code::$code => $name),* }
            }

            /// Gives how much it changes a conclusion.
            pub fn rank(self) -> Rank {
                match self { $(Code::$code => Rank::$rank),* }
            }

            /// Gives what a report says of it in at most 88 characters; empty for an aside.
            pub fn brief(self) -> &'static str {
                match self { $(Code::$code => $brief),* }
            }

            /// Finds the first with a name, as files have it.
            pub fn named(name: &str) -> Option<Code> {
                Code::ALL.iter().find(|code| code.name() == name).copied()
            }

            /// Gives its sentence, with gaps for values.
            pub fn sentence(self) -> &'static str {
                match self { $(Code::$code => $sentence),* }
            }
        }
    };
}

codes! {
    ColdPool "cold_pool" Doubt "The buffer pool was cold, or shared: use --warm pool or a longer --warmup."
        "{} of data fit into the pool of {}, but pages were read: it was cold, or shared, or keeps many pages free (innodb_lru_scan_depth)";
    FillingPool "warming_pool" Doubt "The buffer pool was still filling: use --warm pool or a longer --warmup."
        "the buffer pool was still filling: {} of it was free when the window began, {} when it \
         ended";
    WarmingPool "warming_pool" Doubt "The buffer pool was still filling: use --warm pool or a longer --warmup."
        "the buffer pool was {}: {} misses an op in the window's first third, {} in its last";
    RestoredPool "restored_pool" Doubt "The server had just restored its buffer pool from a file."
        "when the step began, the server {} its buffer pool from a file: {}";
    UnexpectedClass "unexpected_class" Doubt "The data were not cached, or not read from storage, as the plan expects."
        "expected to be {}, and was {}: data {}, buffer pool {}";
    Debt "debt" Doubt "Earlier writes were not flushed yet when a step began: use --settle."
        "before the step began, {}: --settle waits";
    NotSettled "not_settled" Doubt "--settle gave up: earlier writes were not flushed when a step began."
        "--settle gave up after {} s: {}";
    SettleUnknown "settle_unknown" Aside ""
        "the server does not tell {}: whether it had settled is not known";
    QueryCache "query_cache" Doubt "The query cache was on: it answers without executing."
        "the query cache was on, with {} KiB{}";
    Instrumented "instrumented" Doubt "The server logged every statement."
        "{} wrote every statement down";
    WrongAnswers "wrong_answers" Failed "Some answers were wrong: the tables are not what the workload expects."
        "{} answers were wrong: {}";
    ServerReplaced "server_replaced" Failed "Another server answered than before."
        "another server answered {}: {}";
    SettingsChanged "settings_changed" Doubt "Settings of the server changed during the measurement."
        "settings changed {}: {}";
    ServerUnknown "server_unknown" Aside ""
        "whether the server was still the same after the step is not known";
    Restarted "restarted" Doubt "The server was restarted during a step."
        "the server was started anew {} s after the window's start: none of its counters is \
         shown by the op";
    PasswordExposed "password_exposed" Aside ""
        "the password goes to {} over plain TCP under a key that nobody verified: whoever sits \
         between could get it; --ssl-mode VERIFY_IDENTITY or a socket keeps it";
    UnknownServer "unknown_server" Aside ""
        "the server is {} '{}': loadgen is tested from MySQL 5.5 and MariaDB 10.1 on, nothing else";
    OldServer "old_server" Aside ""
        "{}: loadgen is tested from MySQL 5.5 and MariaDB 10.1 on";
    ServerDebugBuild "server_debug_build" Doubt "The server is a debug build: its numbers say nothing of a release."
        "{} is a debug build";
    ShortWaitTimeout "short_wait_timeout" Aside ""
        "wait_timeout is {} s, and a connection may be silent for {} s: the server may close it";
    SmallTableCache "small_table_cache" Doubt "table_open_cache is too small: statements waited for tables to be opened."
        "table_open_cache is {}, below {} + {} tables: statements will wait for tables to be \
         opened";
    FewServerFiles "few_server_files" Aside ""
        "open_files_limit is {}, fewer than the {} connections need";
    Unchecked "unchecked" Aside ""
        "{}";
    MixedDataSeeds "mixed_data_seeds" Aside ""
        "the tables differ in their --data-seed: none is recorded";
    MixedEngines "mixed_engines" Doubt "The tables have several storage engines."
        "storage engines differ: {}";
    KNotIndexed "k_not_indexed" Doubt "There is no index on k: its updates are cheap, its reads are scans."
        "{}: no index on k: updates of it are cheap, reads by it are scans";
    CountryNotIndexed "country_id_not_indexed" Doubt "There is no index on country_id: reads by it are scans."
        "{}: no index on country_id: reads by it are scans";
    Drift "drift" Doubt "The rate drifted within a window: the server was not in a steady state."
        "{} {} all the time, by {} from the first part to the last";
    LevelChange "level_change" Doubt "The rate changed its level within a window: look at the timeline."
        "{} {} by {}, {} s into the window, and stayed there";
    TooShort "too_short" Doubt "Runs too short to tell their noise. Use a longer --time."
        "the window of {} s is too short for its noise: {}";
    NothingCompleted "nothing_completed" Failed "No operation completed in a window: its rate says nothing."
        "no op was completed in the window of {} s: {}";
    Skew "skew" Aside ""
        "keys are skewed ({}): half of them fall on {} of the rows, the hottest row gets {} of \
         its table's, and {} of {} rows were touched";
    CpuGovernor "cpu_governor" Doubt "The CPU frequency governor is not performance: rates may vary."
        "the frequency governor of {} is {}";
    CpuThrottled "cpu_throttled" Doubt "Heat slowed the CPU down."
        "heat slowed cores of {} down, {} times from the warm-up on";
    CpuFrequency "cpu_frequency" Doubt "The clock of the CPU fell during a window."
        "the clock of {} fell from {} to {} MHz in the window";
    Swapping "swapping" Doubt "A host swapped memory during a step."
        "{} swapped {} pages";
    NumaUnbound "numa_unbound" Doubt "The server is not bound to a memory node: its rate may vary from start to start."
        "the server may use {} memory nodes and is neither bound nor interleaved: another start \
         may place its memory otherwise";
    NetworkFull "network_full" Doubt "The network was nearly full: it may be the limit, not the server."
        "{} of {} was {} used from the warm-up on ({} Mbit/s)";
    DebugBuild "debug_build" Doubt "Measured with a debug build of loadgen, whose own cost is higher."
        "measured with a debug build of loadgen, whose own cost is higher";
    RecordedHost "recorded_host" Aside ""
        "{} is set: the client's host was read below {}";
    Errors "errors" Failed "Some operations failed (not counted in QPS)."
        "{} ops failed; they are not in the rates";
    Retried "retried" Aside ""
        "{} attempts met an error that is to be ignored: their ops began again, and QPS counts the \
         statements of both";
    Abandoned "abandoned" Failed "Some operations got no answer in time."
        "{} ops got no answer {}by the end of the drain";
    Reconnects "reconnects" Failed "Connections were lost and opened again."
        "{} connections were lost and opened again";
    Outages "outages" Failed "There was an outage."
        "nobody was served {}, for up to {} s";
    NoStatus "no_status" Aside ""
        "the server's status counters could not be read";
    UnusedTables "unused_tables" Aside ""
        "some tables were not touched in the window";
    LateReading "late_reading" Aside ""
        "the server's host was first read {} s into the window: an op's cost there is of the rest";
    NotSustained "target_not_sustained" Failed "Rate not reached."
        "target not sustained: {} of {}/s; {} arrivals waited at the end{}";
    WarmupBacklog "warmup_backlog" Doubt "Requests of the warm-up were still queued when a window began."
        "{} arrivals of the warm-up still waited at the window's start";
    WarmupLate "warmup_late" Doubt "Requests of the warm-up were still queued when a window began."
        "{} arrivals of the warm-up still waited at the window's start, for up to {}: its first \
         response times have this in them";
    DataNotEqual "data_not_equal" Doubt "Labels or repeats may have started from different data."
        "continued or measured in part: the steps of this run at clients {}, which come before it \
         on the same data, did not write to it here";
    DataWritten "data_not_equal" Doubt "Labels or repeats may have started from different data."
        "{}: other labels and repeats may have started from other data";
    CarriedOn "carried_on" Aside ""
        "started from what the steps of this run before it had left";
    Perturbed "perturbed" Aside ""
        "{} ran beside it and took its time";
    ScaledClass "scaled_class" Aside ""
        "at this --scale {}, as the profile has it at its own size";
    ServerWarnings "server_warnings" Aside ""
        "the server gave {} warnings for the rows";
    Charset "charset" Aside ""
        "{} says SET NAMES {} itself: --charset {} was not what its rows were sent in";
    Unsent "unsent" Aside ""
        "statements of the dump were left out, which are about the server: {}";
    Partial "partial" Failed "Some steps did not complete: their numbers cover a part of the window."
        "did not complete: {}";
    LeftOut "left_out" Failed "Some steps did not complete and are left out (--partial shows them)."
        "left out, because it did not complete: {}";
    Clash "clash" Failed "One label was measured with different settings: its newest results are shown."
        "{} was measured with different settings in {}: the newest is shown (--strict tells)";
    SameHost "same_host" Aside ""
        "the client ran on the server's host and took a part of its CPUs";
    Queues "queues" Aside ""
        "arrivals in {}";
    Scarce "scarce" Doubt r#""-" is a percentile of too few operations: use a longer --time."#
        "{} is not shown: it takes {} values, for ten beyond it, and there were {}";
    CoresFull "cores_full" Aside ""
        "client and server shared this host's {}cores, {} busy";
    ThreadBusy "thread_busy" Aside ""
        "an engine thread was busy {} of the time (limit {})";
    TurnDelay "turn_delay" Aside ""
        "for {} % of the time a socket that was ready waited {} or longer for the client{} (limit \
         {}, {} of the median service time)";
    NearCeiling "near_ceiling" Aside ""
        "{} QPS are {} of the {} that this host can generate with these threads (limit {})";
    Throttled "throttled" Aside ""
        "a control group's quota held the client back {} of the time";
    OtherLoad "other_load" Aside ""
        "other programs used {} of {}'s cores";
    Steal "steal" Aside ""
        "the hypervisor gave {} of {}'s cores to others";
    Descheduled "descheduled" Aside ""
        "an engine thread waited {} of the time for a core";
    Imported "imported" Doubt "Imported from another program's output: what it does not tell is not known."
        "imported from the output of {}: {}";
    NotPrinted "not_printed" Doubt r#""-" is a number that an imported output does not have."#
        "{} is not shown: the imported output has {}";
    ImportedFatal "imported_fatal" Failed "An imported run met a fatal error, or was ended by force."
        "its output says FATAL: {}";
    Contradiction "contradiction" Doubt "The numbers of an imported output contradict each other."
        "the numbers of its output contradict each other: {}";
    ImportedRequests "imported_requests" Aside ""
        "QPS is that of its read/write requests: BEGIN and COMMIT are not in it";
    ImportedCut "imported_cut" Aside ""
        "its output is cut or damaged: {} could not be read";
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts = self.code.sentence().split("{}");
        f.write_str(texts.next().expect("a sentence"))?;
        let mut values = self.values.iter();
        for text in texts {
            let value = values.next().expect("a value for each gap");
            write!(f, "{value}{text}")?;
        }
        assert!(values.next().is_none(), "{:?} has more values than gaps", self.code);
        Ok(())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Share(part) => match part * 100.0 {
                percent if percent.abs() >= 10.0 => write!(f, "{percent:.0} %"),
                percent if percent.abs() >= 1.0 => write!(f, "{percent:.1} %"),
                percent => write!(f, "{percent:.2} %"),
            },
            Value::Micros(us) => match us / 1e3 {
                ms if ms < 10.0 => write!(f, "{ms:.3} ms"),
                ms if ms < 100.0 => write!(f, "{ms:.2} ms"),
                ms => write!(f, "{ms:.0} ms"),
            },
            Value::Rate(per_s) => f.write_str(&units::rate(*per_s)),
            Value::Number(number, decimals) => write!(f, "{number:.decimals$}"),
            Value::Short(number) if *number >= 100.0 => write!(f, "{number:.0}"),
            Value::Short(number) => {
                let text = format!("{number:.1}");
                f.write_str(text.strip_suffix(".0").unwrap_or(&text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_shows_its_values_in_their_units() {
        let found = finding!(Drift, "the rate", "rose", Value::Share(0.111));
        let text = "the rate rose all the time, by 11 % from the first part to the last";
        assert_eq!((found.code.name(), found.to_string().as_str()), ("drift", text));
        assert_eq!(Value::Micros(5_000.0).to_string(), "5.000 ms");
        assert_eq!(Value::Number(2.345, 2).to_string(), "2.35");
        let short = [0.5, 9.0, 99.5, 1234.6].map(|n| Value::Short(n).to_string());
        assert_eq!(short, ["0.5", "9", "99.5", "1235"]);
    }
}
