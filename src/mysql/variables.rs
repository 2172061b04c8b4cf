//! `SHOW GLOBAL VARIABLES`, without secrets, and what changed between two readings.

use std::collections::BTreeMap;

use super::ask::{Asked, pairs};
use super::session::Session;
use crate::summary::SettingChange;
use crate::workload::random::{mix, name_part};

/// Global variables by name.
pub(crate) type Variables = BTreeMap<String, String>;

/// Longest value kept, characters: `optimizer_switch` has 900, `gtid_executed` may have millions.
const VALUE_MAX: usize = 4096;

/// What stands for a value that may be a secret.
const WITHHELD: &str = "(withheld)";

/// Ends of the names of variables that may hold a password, a key or a token, such as
/// `report_password`, `wsrep_sst_auth`, `authentication_ldap_simple_bind_root_pwd`,
/// `s3_secret_key`, `file_key_management_filekey`, `keyring_hashicorp_secret_id`.
const SECRET_ENDS: [&str; 15] = [
    "_password",
    "_passwd",
    "_pwd",
    "_pass",
    "_passphrase",
    "_secret",
    "_secret_key",
    "_secret_id",
    "_access_key",
    "_token",
    "_filekey",
    "_sst_auth",
    "_auth_string",
    "_credentials",
    "_headers",
];

/// Variables that change by themselves while a server works: positions, and the state of the
/// session that asks.
const RESTLESS: [&str; 23] = [
    "error_count",
    "gtid_binlog_pos",
    "gtid_binlog_state",
    "gtid_current_pos",
    "gtid_executed",
    "gtid_owned",
    "gtid_purged",
    "gtid_seq_no",
    "gtid_slave_pos",
    "identity",
    "in_transaction",
    "innodb_thread_sleep_delay",
    "insert_id",
    "last_gtid",
    "last_insert_id",
    "pseudo_thread_id",
    "rand_seed1",
    "rand_seed2",
    "statement_id",
    "timestamp",
    "uptime",
    "warning_count",
    "wsrep_start_position",
];

/// Reads the global variables: values cut after 4,096 characters, but never so that two look alike;
/// secrets withheld.
pub async fn read(session: &mut Session) -> Asked<Variables> {
    let raw = pairs(session, "SHOW GLOBAL VARIABLES").await?;
    Ok(raw.into_iter().map(|(name, value)| kept(name, value)).collect())
}

fn kept(name: String, value: String) -> (String, String) {
    let lower = name.to_ascii_lowercase();
    if SECRET_ENDS.iter().any(|end| lower.ends_with(end)) && !is_switch(&value) {
        return (name, WITHHELD.to_owned());
    }
    match value.char_indices().nth(VALUE_MAX) {
        None => (name, value),
        Some((end, _)) => {
            let (more, whole) = (value.chars().count() - VALUE_MAX, mix(name_part(&value)));
            let kept = value.get(..end).unwrap_or_default();
            (name, format!("{kept}… and {more} more characters, {whole:016x} in all"))
        }
    }
}

/// Settings such as `disconnect_on_expired_password` are no secrets.
fn is_switch(value: &str) -> bool {
    matches!(value, "" | "ON" | "OFF" | "YES" | "NO")
}

/// The variables whose value is another one after than before, by name; those that change by
/// themselves (`gtid_executed`, `timestamp` …) are left out.
pub fn changed(before: &Variables, after: &Variables) -> Vec<SettingChange> {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    names
        .into_iter()
        .filter(|name| !RESTLESS.contains(&name.to_ascii_lowercase().as_str()))
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| SettingChange {
            name: name.clone(),
            before: before.get(name).cloned(),
            after: after.get(name).cloned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn secrets_are_withheld_and_settings_are_not() {
        let value = |name: &str, value: &str| kept(name.to_owned(), value.to_owned()).1;
        for name in [
            "report_password",
            "wsrep_sst_auth",
            "authentication_ldap_simple_bind_root_pwd",
            "s3_secret_key",
            "s3_access_key",
            "file_key_management_filekey",
            "keyring_hashicorp_secret_id",
            "hashicorp_key_management_token",
        ] {
            assert_eq!(value(name, "hunter2"), WITHHELD, "{name}");
            assert_eq!(value(name, ""), "", "{name}");
        }
        for (name, kept) in [
            ("disconnect_on_expired_password", "ON"),
            ("default_password_lifetime", "360"),
            ("key_buffer_size", "8388608"),
            ("validate_password.policy", "MEDIUM"),
            ("init_connect", "SET autocommit=0"),
        ] {
            assert_eq!(value(name, kept), kept, "{name}");
        }
        // A number may well be a password.
        assert_eq!(value("report_password", "1234"), WITHHELD);
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let (_, value) = kept("gtid_executed".to_owned(), "ü".repeat(VALUE_MAX + 1));
        let start = format!("{}… and 1 more characters, ", "ü".repeat(VALUE_MAX));
        assert!(value.starts_with(&start), "{value}");
        let ends = |end: &str| kept("init_connect".to_owned(), "x".repeat(VALUE_MAX) + end).1;
        assert_ne!(ends("a"), ends("b"), "what is cut off still counts");
        let whole = "x".repeat(VALUE_MAX);
        assert_eq!(kept("a".to_owned(), whole.clone()).1, whole);
    }

    #[test]
    fn changes_are_named_but_for_the_restless() {
        let before = map(&[("a", "1"), ("b", "2"), ("gone", "x"), ("gtid_executed", "1-5")]);
        let after = map(&[("a", "1"), ("b", "3"), ("new", "y"), ("gtid_executed", "1-9")]);
        let shown: Vec<_> =
            changed(&before, &after).into_iter().map(|c| (c.name, c.before, c.after)).collect();
        let text = |t: &str| Some(t.to_owned());
        assert_eq!(
            shown,
            [
                ("b".to_owned(), text("2"), text("3")),
                ("gone".to_owned(), text("x"), None),
                ("new".to_owned(), None, text("y")),
            ]
        );
        assert!(RESTLESS.is_sorted());
    }
}
