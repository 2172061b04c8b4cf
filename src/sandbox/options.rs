//! What the user asked of the private server with `--sandbox-option`.

use std::ffi::OsString;

use crate::error::{Error, Result};

/// Options that would let the server leave its directory or its loopback port, or make the
/// program do something else than serve. The server takes any unambiguous beginning of an
/// option's name too, hence the comparison by beginnings.
const REFUSED: [&str; 22] = [
    "admin-address",
    "bind-address",
    "bootstrap",
    "chroot",
    "daemonize",
    "datadir",
    "defaults-extra-file",
    "defaults-file",
    "defaults-group-suffix",
    "help",
    "initialize",
    "initialize-insecure",
    "mysqlx",
    "networking",
    "no-defaults",
    "pid-file",
    "port",
    "print-defaults",
    "socket",
    "user",
    "verbose",
    "version",
];

/// Prefixes that the server takes before any option's name.
const PREFIXES: [&str; 5] = ["loose-", "skip-", "disable-", "enable-", "maximum-"];

/// Beginnings of the options that decide how data files look, or where the server finds its
/// own parts: they hold while the data directory is initialised as well. The others do not,
/// because much that is fine for a server is not for its bootstrap (`init-file`, `read-only`).
const SHAPING: [&str; 11] = [
    "innodb",
    "aria",
    "character-set-server",
    "collation-server",
    "lower-case-table-names",
    "basedir",
    "lc-messages-dir",
    "character-sets-dir",
    "plugin",
    "early-plugin-load",
    "file-key-management",
];

/// One accepted option, its name spelled with dashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UserOption {
    name: String,
    value: Option<String>,
}

impl UserOption {
    pub(super) fn argument(&self) -> OsString {
        match &self.value {
            Some(value) => format!("--{}={value}", self.name).into(),
            None => format!("--{}", self.name).into(),
        }
    }

    pub(super) fn shapes_data(&self) -> bool {
        SHAPING.iter().any(|start| stem(&self.name).starts_with(start))
    }

    pub(super) fn is(&self, name: &str) -> bool {
        stem(&self.name) == name
    }
}

/// Accepts the user's options in their order, or names the one that cannot be.
pub(super) fn accept(raw: &[(String, Option<String>)]) -> Result<Vec<UserOption>> {
    raw.iter().map(|(name, value)| accept_one(name, value.as_deref())).collect()
}

fn accept_one(raw: &str, value: Option<&str>) -> Result<UserOption> {
    let name = raw.strip_prefix("--").unwrap_or(raw).replace('_', "-");
    let spelled = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if name.is_empty() || name.starts_with('-') || !name.chars().all(spelled) {
        return Err(Error::usage(format!("--sandbox-option '{raw}' names no server option"))
            .hint("write --sandbox-option performance_schema=ON"));
    }
    if REFUSED.iter().any(|refused| refused.starts_with(stem(&name))) {
        return Err(Error::usage(format!(
            "--sandbox-option '{raw}' is not for a sandbox: directory, socket, port, account and \
             option files are its own"
        ))
        .hint(
            "to measure a server with settings of that kind, start it yourself and name it with \
             --host or --socket",
        ));
    }
    Ok(UserOption { name, value: value.map(str::to_owned) })
}

/// The name without the prefixes that every option may carry.
fn stem(name: &str) -> &str {
    let mut rest = name;
    while let Some(shorter) = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
        rest = shorter;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn one(name: &str, value: Option<&str>) -> Result<UserOption> {
        accept_one(name, value)
    }

    #[test]
    fn underscores_dashes_and_leading_dashes_are_alike() {
        for name in ["performance_schema", "performance-schema", "--performance_schema"] {
            assert_eq!(one(name, Some("ON")).unwrap().argument(), "--performance-schema=ON");
        }
        assert_eq!(one("skip_name_resolve", None).unwrap().argument(), "--skip-name-resolve");
        assert_eq!(one("sql-mode", Some("")).unwrap().argument(), "--sql-mode=");
    }

    #[test]
    fn what_breaks_the_isolation_is_a_usage_error() {
        for name in [
            "datadir",
            "data",
            "socket",
            "sock",
            "port",
            "pid_file",
            "bind-address",
            "bind",
            "loose-datadir",
            "loose_skip_networking",
            "skip-networking",
            "user",
            "defaults-file",
            "daemonize",
            "initialize-insecure",
            "mysqlx",
            "",
            "-P",
            "a b",
            "x\n",
        ] {
            let error = one(name, Some("x")).unwrap_err();
            assert_eq!(error.kind(), Kind::Usage, "{name}");
        }
    }

    #[test]
    fn names_that_only_begin_alike_are_accepted() {
        for name in [
            "port-open-timeout",
            "basedir",
            "user-stat",
            "socket-instrument",
            "init-file",
            "userstat",
        ] {
            assert!(one(name, Some("1")).is_ok(), "{name}");
        }
    }

    #[test]
    fn only_options_that_shape_the_data_hold_at_initialisation() {
        for name in
            ["innodb_page_size", "loose-innodb-log-file-size", "lower_case_table_names", "basedir"]
        {
            assert!(one(name, Some("1")).unwrap().shapes_data(), "{name}");
        }
        for name in ["log-bin", "init_file", "performance_schema", "sql_mode"] {
            assert!(!one(name, Some("1")).unwrap().shapes_data(), "{name}");
        }
    }
}
