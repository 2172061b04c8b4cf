//! Which server was measured: what makes it another one during a step, and what makes a step no
//! result.

use super::{SettingChange, Warning};
use crate::error::{Error, VALUE_MAX, clip, told_apart};

/// Characters of the changes that an error or a warning names: a note shows as many.
const NAMED_MAX: usize = 240;

/// Variables whose change shows another server, such as the replica that took over.
const ANOTHER: [&str; 9] = [
    "version",
    "version_comment",
    "server_uuid",
    "server_uid",
    "hostname",
    "port",
    "datadir",
    "pid_file",
    "socket",
];

/// Server variables that say who and where a server is, not how it is set up. They differ
/// between two starts of one configuration, such as two sandboxes.
pub(crate) const IDENTITY: &[&str] = &[
    "admin_address",
    "admin_port",
    "aria_log_dir_path",
    "bind_address",
    "datadir",
    "error_count",
    "extra_port",
    "general_log_file",
    "gtid_binlog_pos",
    "gtid_binlog_state",
    "gtid_current_pos",
    "gtid_executed",
    "gtid_owned",
    "gtid_purged",
    "gtid_seq_no",
    "gtid_slave_pos",
    "hostname",
    "identity",
    "in_transaction",
    "innodb_data_home_dir",
    "innodb_log_group_home_dir",
    "innodb_temp_tablespaces_dir",
    "innodb_thread_sleep_delay",
    "innodb_tmpdir",
    "innodb_undo_directory",
    "insert_id",
    "last_gtid",
    "last_insert_id",
    "log_bin_basename",
    "log_bin_index",
    "log_error",
    "mysqlx_bind_address",
    "mysqlx_port",
    "mysqlx_socket",
    "pid_file",
    "port",
    "pseudo_thread_id",
    "rand_seed1",
    "rand_seed2",
    "relay_log",
    "relay_log_basename",
    "relay_log_index",
    "relay_log_info_file",
    "replica_load_tmpdir",
    "report_host",
    "report_port",
    "secure_file_priv",
    "server_id",
    "server_uid",
    "server_uuid",
    "slave_load_tmpdir",
    "slow_query_log_file",
    "socket",
    "statement_id",
    "timestamp",
    "tmpdir",
    "uptime",
    "warning_count",
    "wsrep_data_home_dir",
    "wsrep_node_address",
    "wsrep_node_incoming_address",
    "wsrep_node_name",
    "wsrep_sst_receive_address",
    "wsrep_start_position",
];

/// Whether it is another server than before.
pub(crate) fn is_another(changed: &[SettingChange]) -> bool {
    changed.iter().any(shows_another)
}

fn shows_another(change: &SettingChange) -> bool {
    ANOTHER.contains(&change.name.as_str())
}

/// Why a step during which this changed is no result.
pub(crate) fn no_result(changed: &[SettingChange]) -> Option<Error> {
    let counts = |change: &&SettingChange| !IDENTITY.contains(&change.name.as_str());
    let mut conditions: Vec<&SettingChange> = changed.iter().filter(counts).collect();
    if conditions.is_empty() {
        return None;
    }
    // The version first.
    conditions.sort_by_key(|change| !shows_another(change));
    let error = Error::failed(format!("the server changed: {}", named(&conditions)));
    Some(if is_another(changed) {
        error.hint("another server answers at this address: give each a label of its own")
    } else {
        error.hint("leave the server's variables alone while it is measured, and measure again")
    })
}

/// What a reader must know of a step after which this was found to have changed; None where the
/// server did not tell.
pub(crate) fn after(changed: Option<&[SettingChange]>) -> Vec<Warning> {
    match changed {
        Some(changed) => warnings(changed, "during the step"),
        None => vec![Warning {
            code: "server_unknown".to_owned(),
            message: "whether the server was still the same after the step is not known".to_owned(),
        }],
    }
}

/// What a reader must know of what changed, and when.
pub(crate) fn warnings(changed: &[SettingChange], when: &str) -> Vec<Warning> {
    let (another, settings): (Vec<_>, Vec<_>) = changed.iter().partition(|c| shows_another(c));
    let both = [
        ("server_replaced", "another server answered", another),
        ("settings_changed", "settings changed", settings),
    ];
    let said = both.into_iter().filter(|(.., changed)| !changed.is_empty());
    said.map(|(code, what, changed)| Warning {
        code: code.to_owned(),
        message: format!("{what} {when}: {}", named(&changed)),
    })
    .collect()
}

/// `name: before / after`, and how many more.
fn named(changed: &[&SettingChange]) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
    let mut named = String::new();
    for (at, change) in changed.iter().enumerate() {
        let (before, after) = told_apart(&value(&change.before), &value(&change.after));
        let comma = if at > 0 { ", " } else { "" };
        let text = format!("{comma}{}: {before} / {after}", clip(&change.name, VALUE_MAX));
        if at > 0 && named.chars().count() + text.chars().count() > NAMED_MAX {
            return format!("{named}, and {} more", changed.len() - at);
        }
        named.push_str(&text);
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_apart_or_counted() {
        let long = |end: &str| Some("x".repeat(900) + end);
        let change = |n: u32| SettingChange {
            name: format!("name{n}"),
            before: long("a"),
            after: long("b"),
        };
        let changed: Vec<SettingChange> = (0..30).map(change).collect();
        let message = &warnings(&changed, "during the step")[0].message;
        assert!(message.contains("xa / …") && message.contains("xb"), "{message}");
        let shown = message.matches("name").count();
        assert!(message.ends_with(&format!("and {} more", 30 - shown)), "{message}");
        assert!(message.chars().count() <= 300, "a note cuts it otherwise: {message}");
    }

    #[test]
    fn the_reference_lists_what_does_not_count() {
        let text = include_str!("../../docs/report.md");
        for name in IDENTITY {
            assert!(text.contains(&format!("`{name}`")), "{name} is missing in docs/report.md");
        }
        assert!(IDENTITY.is_sorted());
    }
}
