//! Makes a data directory: newer servers do it themselves, the others are fed with the
//! SQL that they ship.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Start;
use super::keeper::Task;
use super::options::UserOption;
use super::program::Program;
use crate::error::{Error, Result};

/// The longest that it may take.
const DONE_WITHIN: Duration = Duration::from_mins(2);

const NAME: &str = "initialise";

/// Fills the data directory with system tables; root has no password.
pub(super) fn initialise(program: &Program, start: &mut Start) -> Result<()> {
    let mut arguments = start.layout.arguments();
    arguments.extend(program.needs.clone());
    let shaping = start.options.iter().filter(|option| option.shapes_data());
    arguments.extend(shaping.map(UserOption::argument));
    let sql = start.layout.dir().join("system.sql");
    let input = if program.initialises {
        arguments.push("--initialize-insecure".into());
        None
    } else {
        arguments.push("--bootstrap".into());
        fs::write(&sql, system_tables(program)?)
            .map_err(|e| Error::server(format!("sandbox: cannot write {}: {e}", sql.display())))?;
        Some(sql.as_path())
    };
    let (path, descriptors) = (&program.path, start.descriptors);
    start.keeper.launch(&Task { name: NAME, program: path, arguments, input, descriptors })?;
    let ended = start.wait.until("sandbox: initialising", DONE_WITHIN, || start.keeper.ended())?;
    let how = match ended {
        Some(status) if status.success() => return Ok(()),
        Some(status) => format!("could not initialise a data directory ({status})"),
        None => format!("did not initialise a data directory within {} s", DONE_WITHIN.as_secs()),
    };
    Err(super::failure(path, &how, &start.keeper.tail(NAME), start.options))
}

/// The SQL that makes the system tables, one statement a line as the old servers want it.
fn system_tables(program: &Program) -> Result<String> {
    let found = program
        .shares
        .iter()
        .find_map(|share| part(share, "system_tables").map(|tables| (share, tables)));
    let Some((share, tables)) = found else {
        let looked = program.shares.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>();
        return Err(Error::server(format!(
            "sandbox: {} ships no mysql_system_tables.sql; looked in {}",
            program.path.display(),
            looked.join(", ")
        ))
        .hint("--sandbox-option basedir=DIR names the directory above the server's share"));
    };
    let mut sql = String::from(
        // MariaDB's own switches: root logs in by the socket with no more than its name, and
        // there is no account without a name, which would take other accounts' logins.
        "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\nSET @skip_auth_anonymous=1;\n",
    );
    let others =
        ["performance_tables", "system_tables_data"].iter().filter_map(|name| part(share, name));
    for file in std::iter::once(tables).chain(others) {
        let text = fs::read_to_string(&file)
            .map_err(|e| Error::server(format!("sandbox: cannot read {}: {e}", file.display())))?;
        sql.push_str(&text);
        sql.push('\n');
    }
    // MySQL knows no such switch. Where accounts are in global_priv, user is a view.
    if !sql.contains("global_priv") {
        sql.push_str("DELETE FROM user WHERE User='';\n");
    }
    Ok(sql)
}

/// A shipped file, under its newer or its older name.
fn part(share: &Path, name: &str) -> Option<PathBuf> {
    ["mariadb", "mysql"]
        .iter()
        .map(|prefix| share.join(format!("{prefix}_{name}.sql")))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(share: &Path) -> Program {
        Program {
            path: "/opt/bin/mysqld".into(),
            version: String::new(),
            needs: Vec::new(),
            shares: vec!["/nonexistent".into(), share.to_owned()],
            initialises: false,
        }
    }

    #[test]
    fn the_parts_that_are_shipped_follow_each_other() {
        let share = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(share.path().join(name), text).unwrap();
        write("mariadb_system_tables.sql", "CREATE TABLE global_priv (x int);");
        write("mysql_system_tables_data.sql", "INSERT INTO global_priv VALUES (1);");
        let sql = system_tables(&program(share.path())).unwrap();
        assert!(sql.ends_with("(x int);\nINSERT INTO global_priv VALUES (1);\n"), "{sql}");
        write("mariadb_system_tables.sql", "CREATE TABLE user (x int);");
        write("mysql_system_tables_data.sql", "");
        let sql = system_tables(&program(share.path())).unwrap();
        assert!(sql.ends_with("DELETE FROM user WHERE User='';\n"), "{sql}");
    }

    #[test]
    fn a_server_without_its_sql_is_an_error_that_says_where_it_looked() {
        let share = tempfile::tempdir().unwrap();
        let error = system_tables(&program(share.path())).unwrap_err();
        assert!(error.to_string().contains("/nonexistent"), "{error}");
        assert!(error.hints()[0].contains("basedir"));
    }
}
