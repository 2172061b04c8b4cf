//! What a profile expects of a server, against what the server says.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::plan::profile::{Expect, Setting};
use crate::plan::value::bytes;
use crate::terms::Class;

/// The least that a row of any of the tables takes, bytes.
const ROW_BYTES_MIN: u64 = 150;
/// The word for a variable that is not there.
const ABSENT: &str = "absent";

/// The size of the tables: what the server says, unless its statistics are older than the rows.
pub(super) fn data_bytes(said: u64, rows: u64) -> u64 {
    said.max(rows.saturating_mul(ROW_BYTES_MIN))
}

/// Holds a server's variables against all expectations, and its data, if it is known, against its
/// buffer pool.
///
/// # Errors
///
/// Server, with everything that does not hold.
pub(super) fn check(
    expect: &[Expect],
    variables: &BTreeMap<String, String>,
    data_bytes: Option<u64>,
) -> Result<()> {
    let mut broken = Vec::new();
    for (name, values) in expect.iter().flat_map(|expect| &expect.variables) {
        let name = name.replace('-', "_");
        let found = variables.get(&name).map(String::as_str);
        let wanted: Vec<&str> = values.0.iter().map(text).collect();
        if !wanted.iter().any(|wanted| holds(wanted, found)) {
            let found = found.unwrap_or("not there");
            broken.push(format!("{name} is {found}, not {}", wanted.join(" or ")));
        }
    }
    broken.extend(data_bytes.and_then(|data| database(expect, variables, data)));
    if broken.is_empty() {
        return Ok(());
    }
    Err(Error::server(format!("the server is not as the profile expects: {}", broken.join("; ")))
        .hint("change the server's settings, or [expect] in the profile"))
}

/// What is not as expected of the data and the buffer pool.
pub(super) fn database(
    expect: &[Expect],
    variables: &BTreeMap<String, String>,
    data: u64,
) -> Option<String> {
    let pool = variables.get("innodb_buffer_pool_size").and_then(|text| bytes(text))?;
    let mut wanted = expect.iter().filter_map(|expect| match expect.database? {
        Class::IoBound => (data <= pool).then_some("larger than"),
        Class::Cached => (data > pool).then_some("inside"),
    });
    let [data, pool] = [data, pool].map(|bytes| bytes.div_ceil(1 << 20));
    wanted.next().map(|wanted| {
        format!("the database has {data} MiB and the buffer pool {pool}: it is not {wanted} it")
    })
}

fn text(setting: &Setting) -> &str {
    setting.0.as_deref().unwrap_or("ON")
}

/// Values are the same as texts, as truth values, or as sizes.
fn holds(wanted: &str, found: Option<&str>) -> bool {
    let Some(found) = found else { return wanted.eq_ignore_ascii_case(ABSENT) };
    let truth = |text: &str| match text.to_ascii_uppercase().as_str() {
        "ON" | "YES" | "TRUE" | "1" => Some(true),
        "OFF" | "NO" | "FALSE" | "0" => Some(false),
        _ => None,
    };
    let number = |text: &str| text.parse::<f64>().ok();
    wanted.eq_ignore_ascii_case(found)
        || truth(wanted).is_some_and(|wanted| truth(found) == Some(wanted))
        || bytes(wanted).is_some_and(|wanted| bytes(found) == Some(wanted))
        || number(wanted).is_some_and(|wanted| number(found) == Some(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> BTreeMap<String, String> {
        [
            ("innodb_buffer_pool_size", "134217728"),
            ("performance_schema", "OFF"),
            ("innodb_io_capacity", "8192"),
            ("innodb_max_dirty_pages_pct", "75.000000"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    fn checked(toml: &str, data: u64) -> std::result::Result<(), String> {
        let expect: Expect = toml::from_str(toml).expect("sound");
        check(&[expect], &variables(), Some(data)).map_err(|e| e.to_string())
    }

    #[test]
    fn values_are_compared_as_servers_mean_them() {
        for value in [
            "performance_schema = false",
            "performance-schema = \"off\"",
            "performance_schema = 0",
            "innodb_buffer_pool_size = \"128M\"",
            "innodb_io_capacity = 8192",
            "innodb_max_dirty_pages_pct = 75",
            "query_cache_size = [0, \"absent\"]",
        ] {
            assert_eq!(checked(&format!("[variables]\n{value}"), 0), Ok(()), "{value}");
        }
        for (value, says) in [
            ("performance_schema = true", "performance_schema is OFF, not ON"),
            ("innodb_io_capacity = [1, 2]", "is 8192, not 1 or 2"),
            ("query_cache_size = 0", "query_cache_size is not there"),
        ] {
            let error = checked(&format!("[variables]\n{value}"), 0).expect_err(value);
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn the_database_is_held_against_the_pool() {
        let (larger, inside) =
            ("database = \"larger-than-buffer-pool\"", "database = \"inside-buffer-pool\"");
        assert_eq!(checked(larger, 1 << 30), Ok(()));
        assert_eq!(checked(inside, 1 << 20), Ok(()));
        assert!(checked(larger, 1 << 20).is_err_and(|e| e.contains("not larger than")));
        assert!(checked(inside, 1 << 30).is_err_and(|e| e.contains("1024 MiB")));
        assert_eq!(data_bytes(16_384, 100_000), 15_000_000);
    }
}
