//! Questions to the server off the hot path, and what to make of no answer.

use std::collections::BTreeMap;

use super::session::{Failure, LOST, Session};
use crate::error::Error;
use crate::plan::limits;

/// A question that only the server can fail: the connection is fine, the answer is missing.
pub(crate) type Asked<T> = std::result::Result<T, Failure>;

/// `Variable_name`, `Value` rows as a map; rows without a value are left out.
pub(crate) async fn pairs(session: &mut Session, sql: &str) -> Asked<BTreeMap<String, String>> {
    let rows = session.query(sql).await?;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let mut columns = row.into_iter();
            Some((columns.next()??, columns.next()??))
        })
        .collect())
}

/// The first column of the first row.
pub(crate) async fn one(session: &mut Session, sql: &str) -> Asked<Option<String>> {
    let rows = session.query(sql).await?;
    Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
}

/// The database that a session is in, as the server writes its name.
pub(crate) async fn database(session: &mut Session) -> Asked<Option<String>> {
    optional(one(session, "SELECT DATABASE()").await).map(Option::flatten)
}

/// None where this server has no such thing; an error where the connection is lost.
pub(crate) fn optional<T>(asked: Asked<T>) -> Asked<Option<T>> {
    match asked {
        Ok(answer) => Ok(Some(answer)),
        Err(Failure::Server { .. }) => Ok(None),
        Err(lost @ Failure::Lost(_)) => Err(lost),
    }
}

/// A statement that finds others busy with its table waits for a year by default.
pub(crate) async fn impatient(session: &mut Session) -> Asked<()> {
    let sql = format!("SET SESSION lock_wait_timeout = {}", limits::SILENCE.as_secs());
    // Servers without it do not wait like that.
    optional(session.execute(&sql).await).map(|_| ())
}

/// The error to show: what could not be done, and what the server or the driver said.
pub(crate) fn explain(failure: &Failure, doing: &str) -> Error {
    let error = Error::server(format!("cannot {doing}: {failure}")).passing(failure.may_pass());
    match failure {
        Failure::Lost(_) => error.hint(LOST),
        Failure::Server { .. } => error,
    }
}
