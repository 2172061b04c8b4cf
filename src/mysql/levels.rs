//! Levels of a server at one instant: how full and how dirty its buffer pool is, what is left to
//! purge and to write.

use std::collections::BTreeMap;

use super::ask::{Asked, one, optional, pairs};
use super::innodb::{self, Inside};
use super::session::{Session, quoted_text};
use crate::summary::Levels;

/// Reads the levels. Not within a window: it asks for everything that there is. `table` is the
/// first of the tables used.
pub(crate) async fn read(session: &mut Session, table: &str) -> Asked<Levels> {
    let texts = pairs(session, "SHOW GLOBAL STATUS").await?;
    let numbers: BTreeMap<String, i64> =
        texts.iter().filter_map(|(name, text)| Some((name.clone(), text.parse().ok()?))).collect();
    let number = |name: &str| numbers.get(name).and_then(|n| u64::try_from(*n).ok());
    let metrics = innodb::read(session, &numbers).await?;
    // Many servers have the history among their metrics, but the checkpoint in the text only.
    let known =
        |inside: &Option<Inside>| inside.as_ref().and_then(|i| i.level("checkpoint_age_bytes"));
    let text = if number("Innodb_checkpoint_age").is_none() && known(&metrics).is_none() {
        innodb::monitor(session).await?
    } else {
        None
    };
    let level = |name: &str, inner: &str| {
        let inside = [&metrics, &text].into_iter().flatten().find_map(|i| i.level(inner));
        number(name).or(inside.map(|level| level.max(0.0) as u64))
    };
    let pool_load =
        texts.get("Innodb_buffer_pool_load_status").filter(|text| !text.is_empty()).cloned();
    let tables_age_s = match &pool_load {
        Some(load) if load.contains("ompleted") => age(session, table).await?,
        _ => None,
    };
    Ok(Levels {
        uptime_s: number("Uptime"),
        pool_pages: number("Innodb_buffer_pool_pages_total"),
        pool_free_pages: number("Innodb_buffer_pool_pages_free"),
        pool_dirty_pages: number("Innodb_buffer_pool_pages_dirty"),
        history_list_length: level("Innodb_history_list_length", "history_list_length"),
        checkpoint_age_bytes: level("Innodb_checkpoint_age", "checkpoint_age_bytes"),
        checkpoint_age_max_bytes: number("Innodb_checkpoint_max_age"),
        tables_age_s,
        pool_load,
    })
}

/// Seconds since a table was made or altered, by the server's clock.
async fn age(session: &mut Session, table: &str) -> Asked<Option<u64>> {
    let sql = format!(
        "SELECT TIMESTAMPDIFF(SECOND, CREATE_TIME, NOW()) FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {}",
        quoted_text(table)
    );
    let age = optional(one(session, &sql).await)?.flatten();
    Ok(age.and_then(|text| text.parse().ok()))
}

/// Counters and levels that are cheap enough to ask for within a window: pages that the buffer
/// pool read from storage, and those that hold nothing.
pub(crate) async fn pool(session: &mut Session) -> Asked<(Option<u64>, Option<u64>)> {
    let found = pairs(session, "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool\\_%'").await?;
    let number = |name: &str| found.get(name).and_then(|text| text.parse().ok());
    Ok((number("Innodb_buffer_pool_reads"), number("Innodb_buffer_pool_pages_free")))
}

/// Searches that the adaptive hash index answered, and those that it did not, since the server's
/// start; None where that is not counted.
pub(crate) async fn searches(session: &mut Session) -> Asked<Option<(u64, u64)>> {
    let found = pairs(session, "SHOW GLOBAL STATUS LIKE 'Innodb\\_adaptive\\_hash\\_%'").await?;
    let numbers: BTreeMap<String, i64> =
        found.iter().filter_map(|(name, text)| Some((name.clone(), text.parse().ok()?))).collect();
    let inside = innodb::read(session, &numbers).await?;
    let count = |name: &str, inner: &str| {
        let own = numbers.get(name).copied();
        let count = own.or_else(|| inside.as_ref()?.counter(inner));
        count.and_then(|n| u64::try_from(n).ok())
    };
    Ok(count("Innodb_adaptive_hash_hash_searches", "hash_searches")
        .zip(count("Innodb_adaptive_hash_non_hash_searches", "other_searches")))
}
