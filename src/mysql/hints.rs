//! Hints about errors of servers: one table by the error's code and by what was tried.

use crate::workload::quoted;

/// The request that a server answered with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tried {
    LogIn,
    LogInWithoutPassword,
    List,
    /// Reading or writing tables before a measurement.
    Inspect,
    Fill,
    Verify,
    Statement,
}
use Tried::{Fill, Inspect, List, LogIn, LogInWithoutPassword, Statement, Verify};

const ANY: &[Tried] = &[LogIn, LogInWithoutPassword, List, Inspect, Fill, Verify, Statement];
const LOG_IN: &[Tried] = &[LogIn, LogInWithoutPassword];

/// A hint about errors; `{database}` stands for the database's name.
struct Row {
    codes: &'static [u16],
    tried: &'static [Tried],
    hint: &'static str,
    /// True if a repeated statement gets the error each time.
    recurs: bool,
}

const fn row(codes: &'static [u16], tried: &'static [Tried], hint: &'static str) -> Row {
    Row { codes, tried, hint, recurs: true }
}

/// A row of errors that a later attempt may not get.
const fn passing(codes: &'static [u16], tried: &'static [Tried], hint: &'static str) -> Row {
    Row { codes, tried, hint, recurs: false }
}

const READ_ONLY: &str = "the server is read-only: SET GLOBAL read_only = 0 (super_read_only), start it without \
                         innodb_read_only or innodb_force_recovery, or take another server";
/// ER_OPTION_PREVENTS_STATEMENT: the text names the option.
const OPTION: u16 = 1290;

/// The first row with the code and the request counts.
#[rustfmt::skip]
static HINTS: &[Row] = &[
    row(&[1044], LOG_IN, "GRANT ALL ON {database}.* TO the account, or -D another database"),
    row(&[1049], LOG_IN, "CREATE DATABASE {database}, or -D another one"),
    row(&[1045, 1698], &[LogInWithoutPassword], "no password was given: -p asks for one; -u names the account"),
    row(&[1045, 1698], ANY, "is it the right account (-u) and password (-p asks for it)?"),
    row(&[1129, 1130], ANY, "the server does not let this host in"),
    row(&[1820, 1862], ANY, "ALTER USER … IDENTIFIED BY sets another password"),
    row(&[3118, 3955, 4151], LOG_IN, "ALTER USER … ACCOUNT UNLOCK opens the account, or -u names another one"),
    row(&[3159], ANY, "the server demands encryption: --ssl-mode REQUIRED"),
    passing(&[1040, 1203], ANY, "a limit on connections is reached: the server's max_connections, or the account's"),
    passing(&[1226], ANY, "a limit of the account is reached: ALTER USER … WITH sets it"),

    row(&[1044, 1142, 1143, 1227, 1370, 1410], &[Fill],
        "loadgen needs CREATE, DROP, ALTER, INDEX, SELECT, INSERT and DELETE on the database"),
    row(&[1044, 1142, 1143, 1227, 1370, 1410], &[Inspect], "GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.* TO the account"),
    row(&[1044, 1142, 1143, 1227, 1370, 1410], ANY, "the account lacks a right: GRANT it, or -u names another account"),

    row(&[1050], &[Fill], "something else made this table meanwhile"),
    row(&[1286], &[Fill], "the tables need InnoDB"),
    row(&[1064, 1149, 1193, 1235, 1630], ANY,
        "this server does not take the SQL: is it of another version, or its sql_mode another one?"),
    row(&[1305], ANY, "is the routine in this database (-D), and in this version of the server?"),
    row(&[1046], ANY, "-D names the database"),
    row(&[1051, 1054, 1091, 1109, 1136, 1146, 1176], ANY, "the tables are not those of the statement"),
    row(&[1048, 1264, 1265, 1292, 1364, 1366, 1406], ANY, "a value does not fit its column"),
    row(&[1104], ANY, "SET GLOBAL max_join_size, or sql_big_selects = 1: the statement reads more"),
    row(&[1153, 1162, 1301], ANY, "SET GLOBAL max_allowed_packet: the statement, or its answer, is larger"),
    row(&[1461], ANY, "SET GLOBAL max_prepared_stmt_count, or --statements text"),

    // ER_READ_ONLY_MODE and what old versions answer.
    passing(&[1015, 1036, 1836, 1874], ANY, READ_ONLY),
    passing(&[1792], ANY, "transactions are read-only by default: SET GLOBAL tx_read_only = 0, or transaction_read_only"),
    passing(&[1205, 1213, 3572], ANY, "another session holds a lock on it: SHOW PROCESSLIST says which"),
    passing(&[1317], ANY, "somebody ended it by KILL"),
    passing(&[1969, 3024], ANY,
        "the server's time limit for a statement ended it: max_statement_time, or max_execution_time"),
    passing(&[3, 1021, 1026, 1030, 1114], &[Fill],
        "is the server's disk full (data, redo log, tmpdir)? A row takes about 250 bytes"),
    passing(&[3, 1021, 1026, 1030, 1114], ANY, "is the server's disk full (data, redo log, tmpdir)?"),
    passing(&[1037, 1038, 1041, 1135], ANY, "the server has no memory, or no thread, left"),
    row(&[126, 127, 144, 145, 1033, 1034, 1035, 1194, 1195, 1712, 1877], ANY, "CHECK TABLE says what is damaged"),
];

static DEFAULTS: &[(Tried, &str)] = &[
    (List, "loadgen finds its tables there; does the account have rights on them?"),
    (Inspect, "the server's error log may say more"),
    (Verify, "verify needs SELECT on the tables, and a server that can read them"),
];

fn find(code: u16, tried: Tried) -> Option<&'static Row> {
    HINTS.iter().find(|row| row.codes.contains(&code) && row.tried.contains(&tried))
}

fn is_read_only(message: &str) -> bool {
    let text = message.to_ascii_lowercase().replace('_', "-");
    text.contains("read-only") || text.contains("read only")
}

pub(crate) fn hint(code: u16, message: &str, tried: Tried) -> Option<&'static str> {
    if code == OPTION {
        let option = "the server's option that the error names forbids the statement";
        return Some(if is_read_only(message) { READ_ONLY } else { option });
    }
    let default = || DEFAULTS.iter().find(|(request, _)| *request == tried).map(|(_, hint)| *hint);
    find(code, tried).map(|row| row.hint).or_else(default)
}

pub(crate) fn hint_in(code: u16, message: &str, tried: Tried, database: &str) -> Option<String> {
    hint(code, message, tried).map(|hint| hint.replace("{database}", &quoted(database)))
}

pub(crate) fn recurs(code: u16, message: &str) -> bool {
    match find(code, Statement) {
        _ if code == OPTION => !is_read_only(message),
        row => row.is_some_and(|row| row.recurs),
    }
}

pub(crate) fn is_passing(code: u16, message: &str) -> bool {
    (code == OPTION || find(code, Statement).is_some()) && !recurs(code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_hint_of_its_code_and_of_what_was_tried() {
        struct Case {
            code: u16,
            message: &'static str,
            same_as: Option<u16>,
            recurs: bool,
        }
        for Case { code, message, same_as, recurs } in [
            Case {
                code: OPTION,
                message: "… the --read-only …",
                same_as: Some(1836),
                recurs: false,
            },
            Case { code: OPTION, message: "--super-read-only", same_as: Some(1836), recurs: false },
            Case { code: OPTION, message: "innodb_read_only", same_as: Some(1836), recurs: false },
            Case { code: 1836, message: "", same_as: Some(1036), recurs: false },
            Case { code: 1153, message: "", same_as: Some(1162), recurs: true },
            Case { code: 1969, message: "", same_as: Some(3024), recurs: false },
            Case { code: 1213, message: "", same_as: Some(1205), recurs: false },
            Case { code: 9999, message: "", same_as: None, recurs: false },
        ] {
            let expected = same_as.map(|code| find(code, Statement).expect("a row").hint);
            assert_eq!(hint(code, message, Statement), expected, "{code} {message}");
            assert_eq!(super::recurs(code, message), recurs, "{code} {message}");
        }
        let option = "… running with the --secure-file-priv option so it cannot …";
        assert!(super::recurs(OPTION, option));
        assert_ne!(hint(OPTION, option, Statement), Some(READ_ONLY));
        let rights = [Fill, Inspect, Statement].map(|tried| hint(1142, "", tried));
        assert!(rights[0] != rights[1] && rights[1] != rights[2]);
        assert_ne!(hint(1045, "", LogIn), hint(1045, "", LogInWithoutPassword));
        assert!([1862, 3118, 3955, 4151].iter().all(|code| hint(*code, "", LogIn).is_some()));
        assert!(hint(1820, "", Fill).is_some() && hint(1820, "", Fill) == hint(1862, "", LogIn));
        assert_eq!(hint(9999, "", Verify), Some(DEFAULTS[2].1));
        assert_eq!(
            hint_in(1049, "", LogIn, "a`b"),
            Some("CREATE DATABASE `a``b`, or -D another one".to_owned())
        );
    }

    #[test]
    fn every_row_can_be_found() {
        for (at, row) in HINTS.iter().enumerate() {
            for code in row.codes {
                let found = row.tried.iter().any(|tried| {
                    find(*code, *tried)
                        .is_some_and(|found| std::ptr::eq(found, &raw const HINTS[at]))
                });
                assert!(found, "{code} of row {at} stands behind another row");
            }
        }
    }
}
