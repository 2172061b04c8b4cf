//! The field's words as types: those of flags, profiles, summaries and reports alike. No I/O. Above its
//! figure: it has the sentences of all findings, from which docs/user/notes.md is made.

mod choice;
mod code;
mod error_class;
mod finding;
mod gate;
mod group;
mod shared;
pub mod units;

use std::cmp::Ordering;
use std::fmt;

pub use choice::{
    Ahi, Arrival, Choice, Class, Compared, Format, InsertWord, Launcher, Layout, OnError, Order,
    Picture, Spread, SpreadChoice, StatementMode, VerdictKind, Warm,
};
pub use code::{Code, Raised, Rank, Unit};
pub use error_class::ErrorClass;
pub use finding::{Finding, Value, merge};
pub(crate) use finding::{finding, millis};
pub use gate::{Gate, Percentile, Property, Quantity};
pub(crate) use gate::{LOG_INS, parse_level};
pub use group::GroupName;
pub use shared::Shared;
pub(crate) use shared::share_names;

/// Adds the fields of a struct to those of another one.
macro_rules! add {
    ($sum:expr, $more:expr; $($field:ident),+) => {
        $($sum.$field = $sum.$field.saturating_add($more.$field);)+
    };
}
pub(crate) use add;

/// Declares types of the JSON contract with their shared derives.
macro_rules! contract {
    ($($of:item)+) => {$(
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        $of
    )+};
}
pub(crate) use contract;

pub(crate) fn clients(count: impl Into<u64>) -> String {
    counted(count, "client")
}

/// Formats a number of things: `1 step`, `2 steps`.
pub(crate) fn counted(count: impl Into<u64>, noun: &str) -> String {
    let count: u64 = count.into();
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

pub(crate) fn joined(all: impl IntoIterator<Item = Option<String>>, by: &str) -> Option<String> {
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(by))
}

/// Lists the first `max` items, and counts the others: `a, b, 3 more`.
pub(crate) fn named(mut items: Vec<String>, max: usize, separator: &str) -> String {
    let more = items.len().saturating_sub(max);
    items.truncate(max);
    items.extend((more > 0).then(|| format!("{more} more")));
    items.join(separator)
}

/// Ops a second over all clients, above 0. Kept as bits, which have the order of such numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    pub(crate) fn new(per_s: f64) -> Rate {
        Rate(per_s.to_bits())
    }

    pub(crate) fn per_s(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// The clients and the rate of a step, within one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cell {
    pub clients: u32,
    /// None in a closed loop.
    pub rate: Option<Rate>,
}

impl Cell {
    pub(crate) fn new(clients: u32, rate: Option<f64>) -> Cell {
        Cell { clients, rate: rate.map(Rate::new) }
    }

    pub(crate) fn per_s(&self) -> Option<f64> {
        self.rate.map(Rate::per_s)
    }

    pub(crate) fn told(&self) -> String {
        let rate = self.rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
        clients(self.clients) + &rate
    }

    pub(crate) fn is_open(&self) -> bool {
        self.rate.is_some()
    }
}

impl Ord for Cell {
    /// Closed loops come first, then fewer clients, then lower rates.
    fn cmp(&self, other: &Cell) -> Ordering {
        let key = |cell: &Cell| (cell.is_open(), cell.clients, cell.rate);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Cell {
    fn partial_cmp(&self, other: &Cell) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            None => write!(f, "{}", self.clients),
            Some(rate) => write!(f, "clients {}, rate {rate}/s", self.clients),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.per_s().fmt(f)
    }
}

/// Variables that change without anyone setting them: log positions, session ids.
pub const RESTLESS: &str = "\
    error_count gtid_binlog_pos gtid_binlog_state gtid_current_pos gtid_executed gtid_owned \
    gtid_purged gtid_seq_no gtid_slave_pos identity in_transaction innodb_thread_sleep_delay \
    insert_id last_gtid last_insert_id pseudo_thread_id rand_seed1 rand_seed2 statement_id \
    timestamp uptime warning_count wsrep_start_position";

/// Names, places and ports.
pub const PLACES: &str = "\
    admin_address admin_port aria_log_dir_path bind_address datadir extra_port general_log_file \
    hostname innodb_data_home_dir innodb_log_group_home_dir innodb_temp_tablespaces_dir \
    innodb_tmpdir innodb_undo_directory log_bin_basename log_bin_index log_error \
    mysqlx_bind_address mysqlx_port mysqlx_socket pid_file port relay_log relay_log_basename \
    relay_log_index relay_log_info_file replica_load_tmpdir report_host report_port \
    secure_file_priv server_id server_uid server_uuid slave_load_tmpdir slow_query_log_file \
    socket system_time_zone tmpdir wsrep_data_home_dir wsrep_node_address wsrep_node_incoming_address \
    wsrep_node_name wsrep_sst_receive_address";

pub(crate) fn is_restless(name: &str) -> bool {
    RESTLESS.split(' ').any(|known| name.eq_ignore_ascii_case(known))
}

/// Returns whether a variable says who or where the server is.
pub(crate) fn is_identity(name: &str) -> bool {
    is_restless(name) || PLACES.split(' ').any(|known| name == known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_one_or_many() {
        assert_eq!(
            [clients(1_u32), clients(2_u32), clients(21_u64)],
            ["1 client", "2 clients", "21 clients"]
        );
    }

    #[test]
    fn names_beyond_the_limit_are_counted() {
        let names = || ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(named(names(), 3, ", "), "a, b, c");
        assert_eq!(named(names(), 1, "; "), "a; 2 more");
    }

    #[test]
    fn closed_loops_come_first_then_clients_then_rates() {
        let cells = [(8, None), (16, None), (2, Some(10.0)), (2, Some(100.5)), (4, Some(1.0))];
        let cells = cells.map(|(clients, rate)| Cell::new(clients, rate));
        assert!(cells.is_sorted());
        assert_eq!(
            cells.map(|cell| cell.to_string()),
            ["8", "16", "clients 2, rate 10/s", "clients 2, rate 100.5/s", "clients 4, rate 1/s"]
        );
    }
}
