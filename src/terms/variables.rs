//! Server variables that say who and where a server is, not how it is set up. They differ between two
//! starts of one configuration, such as two sandboxes.

/// Those that change by themselves while a server works: positions, and the session that asks.
const RESTLESS: &str = "\
    error_count gtid_binlog_pos gtid_binlog_state gtid_current_pos gtid_executed gtid_owned \
    gtid_purged gtid_seq_no gtid_slave_pos identity in_transaction innodb_thread_sleep_delay \
    insert_id last_gtid last_insert_id pseudo_thread_id rand_seed1 rand_seed2 statement_id \
    timestamp uptime warning_count wsrep_start_position";

/// Names, places and ports.
const PLACES: &str = "\
    admin_address admin_port aria_log_dir_path bind_address datadir extra_port general_log_file \
    hostname innodb_data_home_dir innodb_log_group_home_dir innodb_temp_tablespaces_dir \
    innodb_tmpdir innodb_undo_directory log_bin_basename log_bin_index log_error \
    mysqlx_bind_address mysqlx_port mysqlx_socket pid_file port relay_log relay_log_basename \
    relay_log_index relay_log_info_file replica_load_tmpdir report_host report_port \
    secure_file_priv server_id server_uid server_uuid slave_load_tmpdir slow_query_log_file \
    socket tmpdir wsrep_data_home_dir wsrep_node_address wsrep_node_incoming_address \
    wsrep_node_name wsrep_sst_receive_address";

/// Tells whether a variable changes by itself.
pub(crate) fn is_restless(name: &str) -> bool {
    RESTLESS.split(' ').any(|known| name.eq_ignore_ascii_case(known))
}

/// Tells whether a variable says who or where the server is.
pub(crate) fn is_identity(name: &str) -> bool {
    is_restless(name) || PLACES.split(' ').any(|known| name == known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_lists_what_does_not_count() {
        let text = include_str!("../../docs/report.md");
        for name in RESTLESS.split(' ').chain(PLACES.split(' ')) {
            assert!(text.contains(&format!("`{name}`")), "{name} is missing in docs/report.md");
        }
    }
}
