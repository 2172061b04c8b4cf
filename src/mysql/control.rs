//! Questions to the server off the hot path, and the errors made of their failures.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::errors::Failure;
pub(crate) use super::errors::{Asked, optional};
use super::facts::SettingChange;
use super::hints::{Tried, hint};
use super::session::Session;
use super::wire::LeanSession;
use crate::error::Error;
use crate::stop::SILENCE;
use crate::terms::is_restless;
use crate::workload::{mix, name_part};

pub(crate) async fn rows<const N: usize>(
    session: &mut Session,
    sql: &str,
) -> Asked<Vec<[Option<String>; N]>> {
    let other = |_| Failure::lost(format!("an answer of other than {N} columns"));
    session.query(sql).await?.into_iter().map(|row| row.try_into().map_err(other)).collect()
}

/// Reads rows of names and values into a map, without the NULL values.
pub(crate) async fn pairs(session: &mut Session, sql: &str) -> Asked<BTreeMap<String, String>> {
    let pairs = rows(session, sql).await?.into_iter();
    Ok(pairs.filter_map(|[name, value]| name.zip(value)).collect())
}

/// Numbers by the server's own names, which differ between families and versions.
pub(crate) type Numbers = BTreeMap<String, i64>;

pub(crate) fn numeric(texts: &BTreeMap<String, String>) -> Numbers {
    texts.iter().filter_map(|(name, text)| Some((name.clone(), text.parse().ok()?))).collect()
}

pub(super) fn amount(numbers: &Numbers, name: &str) -> Option<u64> {
    numbers.get(name).and_then(|number| u64::try_from(*number).ok())
}

pub(crate) async fn query_single(session: &mut Session, sql: &str) -> Asked<Option<String>> {
    let rows = session.query(sql).await?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
}

/// Reads one number; a server that returns something else cannot be trusted.
pub(crate) async fn number(session: &mut Session, sql: &str) -> Asked<u64> {
    let number = query_single(session, sql).await?.and_then(|text| text.parse().ok());
    number.ok_or_else(|| Failure::lost("an answer that is no number"))
}

/// Reads the session's database, as the server writes its name.
pub(crate) async fn database(session: &mut Session) -> Asked<Option<String>> {
    optional(query_single(session, "SELECT DATABASE()").await).map(Option::flatten)
}

#[derive(Debug, Clone)]
pub(super) struct Process {
    /// `Session::id` holds the low 32 bits of it.
    pub(super) id: u64,
    pub(super) user: String,
    pub(super) from: String,
    pub(super) database: String,
    pub(super) command: String,
    pub(super) time_s: u64,
}

impl Process {
    fn from_row(row: Vec<Option<String>>) -> Option<Process> {
        let mut texts = row.into_iter().map(Option::unwrap_or_default);
        let mut text = || texts.next().unwrap_or_default();
        Some(Process {
            id: text().parse().ok()?,
            user: text(),
            from: text(),
            database: text(),
            command: text(),
            time_s: text().parse().unwrap_or(0),
        })
    }
}

/// NULL as an empty text; skips rows with fewer columns. Every version has SHOW PROCESSLIST.
pub(super) async fn processes(session: &mut Session, columns: usize) -> Asked<Vec<Process>> {
    let rows = session.query("SHOW PROCESSLIST").await?.into_iter();
    Ok(rows.filter(|row| row.len() >= columns).filter_map(Process::from_row).collect())
}

/// Limits the wait for locks of tables, which is a year by default.
pub(crate) async fn limit_lock_wait(session: &mut Session) -> Asked<()> {
    let sql = format!("SET SESSION lock_wait_timeout = {}", SILENCE.as_secs());
    // Servers without the variable have no such wait.
    optional(session.execute(&sql).await).map(|_| ())
}

pub(crate) fn explain(failure: &Failure, doing: &str) -> Error {
    let error = failure.explain(&format!("cannot {doing}"));
    let Failure::Server { code, message, .. } = failure else { return error };
    error.add_hints(hint(*code, message, Tried::Statement))
}

/// Round trips that count, after as many for warm-up.
const ROUNDS: usize = 51;
/// Time limit of the rounds: a distant server gets fewer.
const LIMIT: Duration = Duration::from_secs(2);

/// Microseconds, over an idle session; None where the server refuses `DO 1`.
pub(crate) async fn median_us(session: &mut LeanSession) -> Asked<Option<f64>> {
    let began = Instant::now();
    let mut rounds = Vec::with_capacity(2 * ROUNDS);
    while rounds.len() < 2 * ROUNDS && (rounds.len() < 3 || began.elapsed() < LIMIT) {
        let start = Instant::now();
        if optional(session.run_text("DO 1").await)?.is_none() {
            return Ok(None);
        }
        rounds.push(start.elapsed().as_secs_f64() * 1e6);
    }
    // The first half warms caches and the CPU's clock.
    let counted = rounds.split_off(rounds.len() / 2);
    // No clock is more precise than a nanosecond.
    Ok(crate::stats::median(&counted).map(|us| (us * 1e3).round() / 1e3))
}

pub(crate) type Variables = BTreeMap<String, String>;

/// Longest value kept, characters: `optimizer_switch` has 900, `gtid_executed` may have millions.
const VALUE_MAX: usize = 4096;

const WITHHELD: &str = "(withheld)";

/// Ends of the names of variables that may hold a password, a key or a token, such as
/// `report_password`, `wsrep_sst_auth`, `s3_secret_key`, `file_key_management_filekey`.
const SECRET_ENDS: &str = "_password _passwd _pwd _pass _passphrase _secret _secret_key _secret_id \
                           _access_key _token _filekey _sst_auth _auth_string _credentials _headers";

/// Values longer than 4,096 characters end in a hash of the whole; secrets are withheld.
pub async fn variables(session: &mut Session) -> Asked<Variables> {
    let mut variables = pairs(session, "SHOW GLOBAL VARIABLES").await?;
    for (name, value) in &mut variables {
        *value = redact_and_cut(name, std::mem::take(value));
    }
    Ok(variables)
}

fn redact_and_cut(name: &str, value: String) -> String {
    let lower = name.to_ascii_lowercase();
    if SECRET_ENDS.split(' ').any(|end| lower.ends_with(end)) && !is_switch(&value) {
        return WITHHELD.to_owned();
    }
    let Some((end, _)) = value.char_indices().nth(VALUE_MAX) else { return value };
    let (more, whole) = (value.chars().count() - VALUE_MAX, mix(name_part(&value)));
    format!("{}… and {more} more characters, {whole:016x} in all", &value[..end])
}

/// Recognises switches such as `disconnect_on_expired_password`, which are no secrets.
fn is_switch(value: &str) -> bool {
    matches!(value, "" | "ON" | "OFF" | "YES" | "NO")
}

/// Lists the variables that changed, by name, without those that change by themselves (`gtid_executed` …).
pub fn changed(before: &Variables, after: &Variables) -> Vec<SettingChange> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let change = |name: &String| {
        let (before, after) = (before.get(name).cloned(), after.get(name).cloned());
        let differs = before != after && !is_restless(name);
        differs.then(|| SettingChange { name: name.clone(), before, after })
    };
    names.into_iter().filter_map(change).collect()
}

#[cfg(test)]
mod variables_tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn refusal_has_the_hint_of_its_code() {
        let refused = |code| {
            let (sqlstate, message) = ("HY000".to_owned(), "no".to_owned());
            explain(&Failure::Server { code, sqlstate, message }, "ask")
        };
        assert_eq!(refused(1820).hints().len(), 1, "a password that must be changed");
        assert!(refused(9999).hints().is_empty());
    }

    #[test]
    fn secrets_are_withheld_and_settings_are_not() {
        let value = |name: &str, value: &str| redact_and_cut(name, value.to_owned());
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
        let value = redact_and_cut("gtid_executed", "ü".repeat(VALUE_MAX + 1));
        let start = format!("{}… and 1 more characters, ", "ü".repeat(VALUE_MAX));
        assert!(value.starts_with(&start), "{value}");
        let ends = |end: &str| redact_and_cut("init_connect", "x".repeat(VALUE_MAX) + end);
        assert_ne!(ends("a"), ends("b"), "what is cut off still counts");
        let whole = "x".repeat(VALUE_MAX);
        assert_eq!(redact_and_cut("a", whole.clone()), whole);
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
    }
}
