//! Which variables of a server are no condition of a measurement.

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
    "wsrep_start_position",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_lists_what_does_not_count() {
        let text = include_str!("../../docs/report.md");
        for name in IDENTITY {
            assert!(text.contains(&format!("`{name}`")), "{name} is missing in docs/report.md");
        }
        assert!(IDENTITY.is_sorted());
    }
}
