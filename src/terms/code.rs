//! The codes of all findings, by topic: for each its values with their units, one sentence, and one
//! advice. Notes, pages, summaries and docs/user/notes.md are made of them.

use Unit::{Bytes, Count, Group, Micros, Number, Reasons, Seconds, Share, Text};

/// The effect of a finding on a conclusion, the strongest first.
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

/// The place where a finding is raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raised {
    /// A step or an import: its file stores it.
    Stored,
    /// A report, of a step.
    OfStep,
    /// A report, of the steps of a label.
    OfLabel,
}
use Raised::{OfLabel, OfStep, Stored};

/// The unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Text,
    /// The group beside that it is of; unknown, and not written, where it is of the measured clients.
    Group,
    /// A number of things, which have this name.
    Count(&'static str),
    /// A part of 1, shown as a percentage.
    Share,
    /// Microseconds, shown as milliseconds.
    Micros,
    Seconds,
    Bytes,
    /// A number with three significant digits.
    Number,
    /// The findings that a verdict follows from.
    Reasons,
}

macro_rules! codes {
    ($($topic:literal {$(
        $code:ident $name:literal $rank:ident $raised:ident { $($field:ident: $unit:expr),* }
        $sentence:literal $advice:literal;
    )+})+) => {
        /// The kinds of findings. Of one rank, those that stand first are told first.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code { $($($code),+),+ }

        impl Code {
            /// All of them.
            pub const ALL: &[Code] = &[$($(Code::$code),+),+];

            /// Returns the stable name in files.
            pub fn name(self) -> &'static str {
                match self { $($(Code::$code => $name),+),+ }
            }

            /// Returns how much it changes a conclusion.
            pub fn rank(self) -> Rank {
                match self { $($(Code::$code => Rank::$rank),+),+ }
            }

            /// Returns where it is raised.
            pub fn raised(self) -> Raised {
                match self { $($(Code::$code => $raised),+),+ }
            }

            /// Returns the names and units of its values.
            pub const fn fields(self) -> &'static [(&'static str, Unit)] {
                match self { $($(Code::$code => &[$((stringify!($field), $unit)),*]),+),+ }
            }

            /// Returns its sentence, with the names of values in braces.
            pub fn sentence(self) -> &'static str {
                match self { $($(Code::$code => $sentence),+),+ }
            }

            /// Returns what to do; empty where there is nothing.
            pub fn advice(self) -> &'static str {
                match self { $($(Code::$code => $advice),+),+ }
            }

            /// Returns the heading that it stands below in docs/user/notes.md.
            pub fn topic(self) -> &'static str {
                match self { $($(Code::$code)|+ => $topic),+ }
            }

            /// Finds the code with a name, as files have it.
            pub fn named(name: &str) -> Option<Code> {
                Code::ALL.iter().find(|code| code.name() == name).copied()
            }
        }
    };
}

codes! {
"The client was in the way" {
    SharedHost "shared_host" Doubt OfStep { reasons: Reasons }
        "client and server shared a full host: {reasons}" "for A/B only";
    ClientBound "client_bound" Doubt OfStep { reasons: Reasons }
        "the client was the limit, not the server: {reasons}" "use more --engine-threads, or --hosts";
    Noisy "noisy" Doubt OfStep { reasons: Reasons } "it was noisy: {reasons}"
        "use a quiet host";
    DebugBuild "debug_build" Doubt Stored {}
        "measured with a debug build of loadgen, whose own cost is higher" "cargo build --release";
    SameHost "same_host" Aside OfStep {}
        "the client ran on the server's host and took a part of its CPUs"
        "use another host for numbers to publish";
    CoresFull "cores_full" Aside Stored { busy: Share } "{busy} of its cores were busy" "";
    ThreadBusy "thread_busy" Aside Stored { busy: Share, limit: Share }
        "an engine thread was busy {busy} of the time (limit {limit})" "";
    TurnDelay "turn_delay" Aside Stored { part: Share, late: Micros, limit: Micros, of: Share, why: Text }
        "for {part} of the time a ready socket waited {late} or longer for the client: {why} \
         (limit {limit}, {of} of the median service time)" "";
    NearCeiling "near_ceiling" Aside Stored { qps: Number, part: Share, most: Number, limit: Share }
        "{qps} QPS are {part} of the {most} that this host can generate with these threads (limit \
         {limit})" "";
    Throttled "throttled" Aside Stored { part: Share }
        "a control group's quota held the client back {part} of the time" "";
    OtherLoad "other_load" Aside Stored { part: Share, host: Text }
        "other programs used {part} of the cores of {host}" "";
    Steal "steal" Aside Stored { part: Share, host: Text }
        "the hypervisor gave {part} of the cores of {host} to others" "";
    WorstHost "worst_host" Aside Stored { host: Text } "the worst of the client hosts was {host}" "";
    RankSkew "rank_skew" Doubt Stored { host: Text, error: Micros, part: Share }
        "the clock of {host} may be off by {error}, {part} of the window"
        "use a longer window, or a network with shorter round trips";
    RankLate "rank_late" Doubt Stored { host: Text, late: Micros }
        "{host} began {late} after the others" "look at the network to it";
    RankPaused "rank_paused" Doubt Stored { host: Text, time: Seconds }
        "loadgen on {host} stood still for {time}" "use a quiet host";
    RanksShareHost "ranks_share_host" Doubt Stored { hosts: Text }
        "these hosts of the clients are one: {hosts}" "name each host once";
    RankUneven "rank_uneven" Doubt Stored { host: Text, other: Text, by: Share }
        "a client on {host} did {by} fewer operations than one on {other}"
        "compare the hosts, their load and their way to the server (--layout hosts)";
    Descheduled "descheduled" Aside Stored { part: Share }
        "an engine thread waited {part} of the time for a core" "";
}
"Too little was measured" {
    LeftOut "left_out" Failed OfLabel { ending: Text }
        "steps that did not complete are left out: {ending}" "run them again; --partial shows them";
    MeasuredAgain "measured_again" Aside OfStep { part: Share }
        "steps were measured again: others had used {part} of the cores of a host" "";
    Partial "partial" Failed OfStep { ending: Text }
        "steps that did not complete count with what they measured: {ending}" "run them again";
    NothingCompleted "nothing_completed" Failed Stored { length: Seconds, became: Text, group: Group }
        "no operation{group} completed in the window of {length}: {became}" "measure longer (--time or --ops)";
    TooShort "too_short" Doubt Stored { length: Seconds, intervals: Count("interval"), series: Text, error: Share }
        "the error of {series} is {error}: {intervals} in {length}" "measure longer (--time or --ops)";
    Scarce "scarce" Doubt OfStep { percentile: Text, found: Count(""), needed: Count("operation") }
        "{percentile} is not shown: it takes {needed}, and there were {found}"
        "measure longer (--time or --ops)";
    Drift "drift" Doubt Stored { series: Text, direction: Text, by: Share }
        "{series} {direction} by {by} from the window's first part to its last"
        "use a longer --warmup";
    LevelChange "level_change" Doubt Stored { series: Text, direction: Text, by: Share, at: Seconds }
        "{series} {direction} by {by} at {at} of the window, and stayed there"
        "look at the timeline";
    UnusedTables "unused_tables" Aside Stored {} "some tables were not touched in the window"
        "measure longer (--time or --ops)";
}
"Labels differ" {
    Clash "clash" Failed OfLabel { label: Text, invocations: Count("invocation"), differences: Text }
        "{label} was measured with different settings in {invocations}, the newest are shown: \
         {differences}" "give each configuration a --label";
    Conditions "conditions" Differs OfLabel { differences: Text } "other conditions: {differences}"
        "measure both alike";
    Overheads "overheads" Differs OfLabel { differences: Text } "other overheads: {differences}"
        "set them to equal values, unless they are what you compare";
    Settings "settings" Differs OfLabel { differences: Text } "other settings: {differences}"
        "set them to equal values, unless they are what you compare";
    OtherQueues "other_queues" Differs OfLabel { differences: Text }
        "{differences}: its operations wait in other queues, which changes response times"
        "use the same --engine-threads and --spread";
    Invocations "invocations" Differs OfLabel { differences: Text }
        "its runs differ in: {differences}" "give each configuration a --label";
    SeveralServers "several_servers" Differs OfLabel { differences: Text }
        "its runs may be of several servers: {differences}" "give each server a --label";
    UnknownConditions "unknown_conditions" Aside OfLabel { names: Text }
        "unknown whether these are the same: {names}" "measure again with this version";
    Queues "queues" Aside OfStep { queues: Text } "arrivals in {queues}" "";
    CostsBeside "costs_beside" Aside OfStep { groups: Text }
        "costs of an operation are the server's whole cost, with the work of {groups}, divided by the measured \
         operations"
        "compare steps with the same groups beside";
}
"The data and the buffer pool" {
    ColdPool "cold_pool" Doubt Stored { data: Bytes, pool: Bytes }
        "pages were read though {data} of data fit into the buffer pool of {pool}"
        "use --warm pool or a longer --warmup; innodb_lru_scan_depth keeps pages free";
    WarmingPool "warming_pool" Doubt Stored { state: Text, free: Share, left: Share, early: Number, late: Number }
        "the buffer pool was {state}: {free} to {left} of it free, {early} to {late} misses an \
         operation" "use --warm pool and a longer --warmup";
    RestoredPool "restored_pool" Doubt Stored { state: Text, status: Text }
        "the server {state} its buffer pool from a file when the step began: {status}"
        "set innodb_buffer_pool_load_at_startup=OFF for all";
    UnexpectedClass "unexpected_class" Doubt Stored { wanted: Text, found: Text, data: Bytes, pool: Bytes }
        "expected to be {wanted}, and was {found}: {data} of data, a buffer pool of {pool}"
        "use other --rows or another innodb_buffer_pool_size";
    SmallLog "small_log" Doubt Stored { capacity: Bytes, time: Seconds, times: Count("time") }
        "the redo log of {capacity} was written full {times}, every {time}: the server had to flush pages for room"
        "set a larger innodb_log_file_size, or innodb_redo_log_capacity, for all";
    Debt "debt" Doubt Stored { debts: Text }
        "earlier writes were not flushed when the step began: {debts}" "use --settle";
    NotSettled "not_settled" Doubt Stored { time: Seconds, levels: Text }
        "--settle gave up after {time}: {levels}" "use a longer --settle=10m";
    DataNotEqual "data_not_equal" Doubt Stored { why: Text }
        "other labels and repeats may have started from other data: {why}"
        "use refill, reset or a sandbox";
    KNotIndexed "k_not_indexed" Doubt Stored { tables: Text }
        "{tables}: no index on k: updates of it are cheap, reads by it are scans"
        "loadgen prepare --force";
    CountryNotIndexed "country_id_not_indexed" Doubt Stored { tables: Text }
        "{tables}: no index on country_id: reads by it are scans" "loadgen prepare --force";
    MixedEngines "mixed_engines" Doubt Stored { engines: Text } "storage engines differ: {engines}"
        "loadgen prepare --force";
    MixedDataSeeds "mixed_data_seeds" Aside Stored {}
        "the tables differ in their --data-seed: none is recorded" "loadgen prepare --force";
    SettleUnknown "settle_unknown" Aside Stored { unknown: Text }
        "the server does not tell {unknown}: whether it had settled is not known"
        "give the account the right PROCESS";
    Skew "skew" Aside Stored { distribution: Text, half: Share, hottest: Share, touched: Count(""), rows: Count("") }
        "keys are skewed ({distribution}): half of them fall on {half} of the rows, {hottest} of a \
         table's on its hottest row, and {touched} of {rows} rows were touched"
        "use --distribution uniform if this is not intended";
    CarriedOn "carried_on" Aside Stored {}
        "began with the data that earlier steps of this run had changed"
        "use one number of clients a run";
}
"The server" {
    Errors "errors" Failed Stored { count: Count("operation"), error: Text, group: Group }
        "{count}{group} failed with {error} (not counted in QPS)" "--metric errors shows where";
    WrongAnswers "wrong_answers" Failed Stored { count: Count("answer"), first: Text }
        "{count} had other rows or contents than the workload expects: {first}"
        "look whether the tables were changed";
    Unmatched "unmatched" Doubt Stored { count: Count("statement"), part: Share }
        "{count} ({part} of all) found no row to change, which costs less"
        "use more --rows, or a shorter run";
    ServerReplaced "server_replaced" Failed Stored { when: Text, changes: Text }
        "another server answered {when}: {changes}" "give each server a --label";
    Abandoned "abandoned" Failed Stored { count: Count("operation"), group: Group }
        "{count}{group} got no answer in time"
        "look at the server's log; in an open loop, use a lower --rate";
    Outages "outages" Failed Stored { count: Count("outage"), longest: Seconds, group: Group }
        "{count}{group}: no operation succeeded for up to {longest}" "--layout outages shows when";
    SeveralAddresses "several_addresses" Doubt Stored { all: Text }
        "clients connected to {all}: variables and counters of the server are only those of the \
         first address"
        "if these are several servers, do not use the server's counters, settings and costs";
    Reconnects "reconnects" Failed Stored { count: Count("lost connection"), group: Group }
        "{count}{group} opened again" "look at the server's log";
    QueryCache "query_cache" Doubt Stored { size: Bytes, hits: Count("") }
        "the query cache of {size} was on, and answered statements: {hits}"
        "set query_cache_type=OFF";
    Instrumented "instrumented" Doubt Stored { logs: Text } "{logs} had every statement"
        "switch it off";
    SettingsChanged "settings_changed" Doubt Stored { when: Text, changes: Text }
        "settings changed {when}: {changes}" "leave the server alone";
    Restarted "restarted" Doubt Stored { at: Seconds }
        "the server was restarted {at} into the window: its counters are not shown"
        "look at the server's log";
    ServerDebugBuild "server_debug_build" Doubt Stored { server: Text } "{server} is a debug build"
        "measure a release build";
    SmallTableCache "small_table_cache" Doubt Stored { cache: Count(""), clients: Count("client"), tables: Count("table") }
        "table_open_cache is {cache}, below {clients} + {tables}: statements wait for tables to be \
         opened" "set a larger table_open_cache";
    Retried "retried" Aside Stored { count: Count("attempt") }
        "{count} met an error that is ignored, and the operation began again: QPS counts the \
         statements of both" "--metric retried shows where";
    ServerUnknown "server_unknown" Aside Stored {}
        "whether the server was still the same after the step is not known"
        "look at the server's log";
    NoStatus "no_status" Aside Stored {} "the server's status counters could not be read"
        "look at the server's log";
    UnknownServer "unknown_server" Aside Stored { name: Text, version: Text }
        "the server is {name} '{version}': loadgen is tested from MySQL 5.5 and MariaDB 10.1 on, \
         nothing else" "";
    OldServer "old_server" Aside Stored { server: Text }
        "{server}: loadgen is tested from MySQL 5.5 and MariaDB 10.1 on" "";
    ShortWaitTimeout "short_wait_timeout" Aside Stored { timeout: Seconds, silence: Seconds }
        "wait_timeout is {timeout}, and a connection may be silent for {silence}: the server may \
         close it" "set a longer wait_timeout";
    FewServerFiles "few_server_files" Aside Stored { files: Count(""), clients: Count("") }
        "open_files_limit is {files}, fewer than the {clients} connections need"
        "set a larger open_files_limit";
    Unchecked "unchecked" Aside Stored { variable: Text }
        "the server does not say what {variable} is" "give the account the rights";
    PasswordExposed "password_exposed" Aside Stored { address: Text }
        "loadgen sends the password to {address} over plain TCP, encrypted under a key that nobody \
         verified: an attacker on the network could read it"
        "use --ssl-mode VERIFY_IDENTITY or a socket";
    ServerWarnings "server_warnings" Aside Stored { count: Count("warning") }
        "the server gave {count} for the rows" "look at the dump";
    Charset "charset" Aside Stored { file: Text, charset: Text, asked: Text }
        "{file} contains SET NAMES {charset}: its rows were sent in this character set, not in \
         --charset {asked}" "look at the dump";
    Unsent "unsent" Aside Stored { statements: Text }
        "statements of the dump were left out, which are about the server: {statements}" "";
}
"An open loop" {
    NotSustained "target_not_sustained" Failed Stored { done: Number, rate: Number, queued: Count("operation"), group: Group }
        "rate{group} not reached: {done} of {rate}/s, {queued} still queued" "use a lower --rate";
    WarmupBacklog "warmup_backlog" Doubt Stored { queued: Count("operation"), group: Group }
        "{queued}{group} of the warm-up still queued when the window began" "use a lower --rate";
    WarmupLate "warmup_late" Doubt Stored { queued: Count("operation"), late: Micros, group: Group }
        "{queued}{group} of the warm-up still queued for up to {late} when the window began"
        "use a longer --warmup";
}
"The hosts" {
    CpuGovernor "cpu_governor" Doubt Stored { host: Text, governors: Text }
        "the frequency governor of {host} is {governors}" "cpupower frequency-set -g performance";
    CpuThrottled "cpu_throttled" Doubt Stored { host: Text, times: Count("time") }
        "heat slowed cores of {host} down, {times} from the warm-up on"
        "cool it, or wait between steps";
    CpuFrequency "cpu_frequency" Doubt Stored { host: Text, first: Number, last: Number }
        "the clock of {host} fell from {first} to {last} MHz in the window"
        "switch turbo off, or wait between steps";
    Swapping "swapping" Doubt Stored { host: Text, pages: Count("page") } "{host} swapped {pages}"
        "use a smaller buffer pool";
    NumaUnbound "numa_unbound" Doubt Stored { nodes: Count("memory node") }
        "the server may use {nodes} unbound: its rate may vary from start to start"
        "numactl --interleave=all";
    NetworkFull "network_full" Doubt Stored { link: Text, host: Text, used: Share, speed: Number }
        "{link} of {host} was {used} used ({speed} Mbit/s): it may be the limit"
        "use a faster link";
    LateReading "late_reading" Aside Stored { at: Seconds }
        "the first reading of the server's host came {at} after the window's start: costs of an \
         operation cover only the time after it" "use a longer --warmup";
    RecordedHost "recorded_host" Aside Stored { variable: Text, path: Text }
        "{variable} is set: the client's host was read below {path}" "unset it: it is for tests";
}
"Profiles" {
    Perturbed "perturbed" Aside Stored { commands: Text }
        "{commands} ran during the step and may have slowed it" "do not compare it with others";
    ScaledClass "scaled_class" Aside Stored { what: Text }
        "at this --scale {what}; without --scale they should be" "use a larger --scale";
}
"Imported runs" {
    ImportedFatal "imported_fatal" Failed Stored { error: Text, unfinished: Count("transaction") }
        "its output says FATAL, with {unfinished} unfinished: {error}" "leave it out";
    Imported "imported" Doubt OfLabel { program: Text, file: Text }
        "imported from the output of {program}, which does not tell all: {file}"
        "loadgen import takes flags that tell more";
    NotPrinted "not_printed" Doubt OfStep { metric: Text, instead: Text }
        "{metric} is not shown: the imported output has {instead}" "use another --metric";
    Contradiction "contradiction" Doubt Stored { what: Text }
        "the numbers of its output contradict each other: {what}"
        "look at its output; --workload names its own";
    ImportedRequests "imported_requests" Aside Stored {}
        "QPS is that of its read/write requests: BEGIN and COMMIT are not in it"
        "compare --metric tps";
    ImportedCut "imported_cut" Aside Stored { what: Text }
        "its output is cut or damaged: {what} could not be read" "look at its output";
}
}
