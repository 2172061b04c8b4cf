//! Findings: what a reader of a step's numbers must know, as a code and values. All their sentences
//! are here, in the order of docs/user/notes.md.

use std::fmt;

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
    /// A number with a decimal, unless that is 0, or the number 100 or more.
    Short(f64),
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
    ($($code:ident $name:literal $sentence:literal;)*) => {
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

            /// Gives its sentence, with gaps for values.
            pub fn sentence(self) -> &'static str {
                match self { $(Code::$code => $sentence),* }
            }
        }
    };
}

codes! {
    ColdPool "cold_pool"
        "{} MiB of data fit into the pool of {} MiB, but pages were read: it was cold, or shared";
    FillingPool "warming_pool"
        "the buffer pool was still filling: {} of it was free when the window began, {} when it \
         ended";
    WarmingPool "warming_pool"
        "the buffer pool was {}: {} misses an op in the window's first third, {} in its last";
    RestoredPool "restored_pool"
        "when the step began, the server {} its buffer pool from a file: {}";
    UnexpectedClass "unexpected_class" "expected to be {}, and was {}: data {}, buffer pool {}";
    Debt "debt" "before the step began, {}: --settle waits";
    NotSettled "not_settled" "--settle gave up after {} s: {}";
    SettleUnknown "settle_unknown"
        "the server does not tell {}: whether it had settled is not known";
    QueryCache "query_cache" "the query cache was on, with {} KiB{}";
    Instrumented "instrumented" "{} wrote every statement down";
    WrongAnswers "wrong_answers" "{} answers were wrong: {}";
    ServerReplaced "server_replaced" "another server answered {}: {}";
    SettingsChanged "settings_changed" "settings changed {}: {}";
    ServerUnknown "server_unknown"
        "whether the server was still the same after the step is not known";
    Restarted "restarted"
        "the server was started anew {} s after the window's start: none of its counters is \
         shown by the op";
    PasswordExposed "password_exposed"
        "the password goes to {} over plain TCP under a key that nobody verified: whoever sits \
         between could get it; --ssl-mode VERIFY_IDENTITY or a socket keeps it";
    UnknownServer "unknown_server"
        "the server is {} '{}': loadgen is tested from MySQL 5.5 and MariaDB 10.1 on, nothing else";
    OldServer "old_server" "{}: loadgen is tested from MySQL 5.5 and MariaDB 10.1 on";
    ServerDebugBuild "server_debug_build" "{} is a debug build";
    ShortWaitTimeout "short_wait_timeout"
        "wait_timeout is {} s, and a connection may be silent for {} s: the server may close it";
    SmallTableCache "small_table_cache"
        "table_open_cache is {}, below {} + {} tables: statements will wait for tables to be \
         opened";
    FewServerFiles "few_server_files" "open_files_limit is {}, fewer than the {} connections need";
    Unchecked "unchecked" "{}";
    MixedDataSeeds "mixed_data_seeds" "the tables differ in their --data-seed: none is recorded";
    MixedEngines "mixed_engines" "storage engines differ: {}";
    KNotIndexed "k_not_indexed" "{}: no index on k: updates of it are cheap, reads by it are scans";
    CountryNotIndexed "country_id_not_indexed" "{}: no index on country_id: reads by it are scans";
    Drift "drift" "{} {} all the time, by {} from the first part to the last";
    LevelChange "level_change" "{} {} by {}, {} s into the window, and stayed there";
    TooShort "too_short" "the window of {} s is too short for its noise: {}";
    NothingCompleted "nothing_completed" "no op was completed in the window of {} s: {}";
    Skew "skew"
        "keys are skewed ({}): half of them fall on {} of the rows, the hottest row gets {} of \
         its table's, and {} of {} rows were touched";
    CpuGovernor "cpu_governor" "the frequency governor of {} is {}";
    CpuThrottled "cpu_throttled" "heat slowed cores of {} down, {} times from the warm-up on";
    CpuFrequency "cpu_frequency" "the clock of {} fell from {} to {} MHz in the window";
    Swapping "swapping" "{} swapped {} pages";
    NumaUnbound "numa_unbound"
        "the server may use {} memory nodes and is neither bound nor interleaved: another start \
         may place its memory otherwise";
    NetworkFull "network_full" "{} of {} was {} used from the warm-up on ({} Mbit/s)";
    DebugBuild "debug_build" "measured with a debug build of loadgen, whose own cost is higher";
    RecordedHost "recorded_host" "{} is set: the client's host was read below {}";
    Errors "errors" "{} ops failed; they are not in the rates";
    Abandoned "abandoned" "{} ops got no answer {}by the end of the drain";
    Reconnects "reconnects" "{} connections were lost and opened again";
    Outages "outages" "nobody was served {}, for up to {} s";
    NoStatus "no_status" "the server's status counters could not be read";
    UnusedTables "unused_tables" "some tables were not touched in the window";
    LateReading "late_reading"
        "the server's host was first read {} s into the window: an op's cost there is of the rest";
    NotSustained "target_not_sustained"
        "target not sustained: {} of {}/s; {} arrivals waited at the end{}";
    WarmupBacklog "warmup_backlog" "{} arrivals of the warm-up still waited at the window's start";
    WarmupLate "warmup_late"
        "{} arrivals of the warm-up still waited at the window's start, for up to {}: its first \
         response times have this in them";
    DataNotEqual "data_not_equal"
        "continued or measured in part: the steps of this run at clients {}, which come before it \
         on the same data, did not write to it here";
    DataWritten "data_not_equal" "{}: other labels and repeats may have started from other data";
    CarriedOn "carried_on" "started from what the steps of this run before it had left";
    Perturbed "perturbed" "{} ran beside it and took its time";
    ScaledClass "scaled_class" "at this --scale {}, as the profile has it at its own size";
    ServerWarnings "server_warnings" "the server gave {} warnings for the rows";
    Charset "charset"
        "{} says SET NAMES {} itself: --charset {} was not what its rows were sent in";
    Partial "partial" "did not complete: {}";
    LeftOut "left_out" "left out, because it did not complete: {}";
    SameHost "same_host" "the client ran on the server's host and took a part of its CPUs";
    Queues "queues" "arrivals in {}";
    Scarce "scarce" "{} is not shown: it takes {} values, for ten beyond it, and there were {}";
    CoresFull "cores_full" "client and server shared this host's {}cores, {} busy";
    ThreadBusy "thread_busy" "an engine thread was busy {} of the time (limit {})";
    TurnDelay "turn_delay"
        "for {} % of the time a socket that was ready waited {} or longer for the client{} (limit \
         {}, {} of the median service time)";
    NearCeiling "near_ceiling"
        "{} QPS are {} of the {} that this host can generate with these threads (limit {})";
    Throttled "throttled" "a control group's quota held the client back {} of the time";
    OtherLoad "other_load" "other programs used {} of {}'s cores";
    Steal "steal" "the hypervisor gave {} of {}'s cores to others";
    Descheduled "descheduled" "an engine thread waited {} of the time for a core";
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
