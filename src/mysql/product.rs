//! What the server is: family, version, and the protocol features that follow from them.

use super::ask::{Asked, one, optional};
use super::session::Session;
use crate::error::clip;

/// Characters of a version or a comment; servers' own have some dozen.
const TEXT_MAX: usize = 200;

/// A server by what it says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    /// `@@version`.
    pub version: String,
    /// `@@version_comment`; empty where there is none.
    pub comment: String,
    /// Whose it is.
    pub family: Family,
    /// The version's numbers; 0.0.0 where they cannot be read.
    pub number: (u16, u16, u16),
}

/// Whose server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// MySQL, or what is built from its source.
    MySql,
    /// MariaDB.
    MariaDb,
    /// Something else that speaks the protocol.
    Other(&'static str),
}

/// What gives away a server, or a proxy in front of one, that is neither MySQL nor MariaDB.
const OTHERS: [(&str, &str); 13] = [
    ("tidb", "TiDB"),
    ("vitess", "Vitess"),
    ("proxysql", "ProxySQL"),
    ("maxscale", "MaxScale"),
    ("oceanbase", "OceanBase"),
    ("singlestore", "SingleStore"),
    ("memsql", "SingleStore"),
    ("starrocks", "StarRocks"),
    ("doris", "Doris"),
    ("dolt", "Dolt"),
    ("clickhouse", "ClickHouse"),
    ("matrixone", "MatrixOne"),
    ("readyset", "ReadySet"),
];

impl Product {
    /// Reads version and comment.
    pub async fn ask(session: &mut Session) -> Asked<Product> {
        let version = one(session, "SELECT VERSION()").await?.unwrap_or_default();
        // In just this form: proxies answer it themselves, and so give themselves away.
        let comment = optional(one(session, "select @@version_comment limit 1").await)?.flatten();
        Ok(Product::of(&version, &comment.unwrap_or_default()))
    }

    /// The product that calls itself so.
    pub fn of(version: &str, comment: &str) -> Product {
        let said = format!("{version} {comment}").to_ascii_lowercase();
        let family = match OTHERS.iter().find(|(needle, _)| said.contains(needle)) {
            Some((_, name)) => Family::Other(name),
            None if said.contains("mariadb") => Family::MariaDb,
            None => Family::MySql,
        };
        let number = numbers(version, family);
        let text = |said: &str| clip(said, TEXT_MAX);
        Product { version: text(version), comment: text(comment), family, number }
    }

    /// The features of the protocol that change the client's cost, as the driver negotiates
    /// them. It asks for both always and does not tell what it got, so this follows from the
    /// versions that offer them; `tests/driver_traps.rs` holds it against the driver.
    pub fn capabilities(&self) -> Vec<String> {
        let (eof, cache) = match self.family {
            Family::MySql => (self.number >= (5, 7, 5), false),
            Family::MariaDb => (self.number >= (10, 2, 0), self.number >= (10, 6, 0)),
            Family::Other(_) => (false, false),
        };
        [(eof, "deprecate_eof"), (cache, "mariadb_metadata_cache")]
            .into_iter()
            .filter(|(has, _)| *has)
            .map(|(_, name)| name.to_owned())
            .collect()
    }
}

impl std::fmt::Display for Product {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.family {
            Family::MySql => write!(f, "MySQL {}", self.version),
            Family::MariaDb => write!(f, "MariaDB {}", self.version),
            Family::Other(name) => write!(f, "{name} {}", self.version),
        }
    }
}

fn numbers(version: &str, family: Family) -> (u16, u16, u16) {
    // MariaDB puts 5.5.5- in front of itself for old replicas; some proxies pass it on.
    let version = match family {
        Family::MariaDb => version.strip_prefix("5.5.5-").unwrap_or(version),
        _ => version,
    };
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    let mut part = || parts.next().and_then(Result::ok);
    match (part(), part(), part()) {
        (Some(major), Some(minor), patch) => (major, minor, patch.unwrap_or(0)),
        _ => (0, 0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn servers_are_known_by_what_they_say() {
        for (version, comment, family, number) in [
            ("5.5.34", "MySQL Community Server (GPL)", Family::MySql, (5, 5, 34)),
            ("9.7.4-2", "(Debian)", Family::MySql, (9, 7, 4)),
            ("8.0.36-28", "Percona Server (GPL), Release 28", Family::MySql, (8, 0, 36)),
            ("10.11.18-MariaDB-0+deb12u1", "Debian 12", Family::MariaDb, (10, 11, 18)),
            ("5.5.5-10.1.23-MariaDB", "MariaDB Server", Family::MariaDb, (10, 1, 23)),
            ("5.5.5-m3", "Source distribution", Family::MySql, (5, 5, 5)),
            ("8.0.11-TiDB-v7.5.1", "TiDB Server", Family::Other("TiDB"), (8, 0, 11)),
            ("8.0.30-Vitess", "Version: 19.0", Family::Other("Vitess"), (8, 0, 30)),
            ("8.0.33", "(ProxySQL)", Family::Other("ProxySQL"), (8, 0, 33)),
            ("unknown", "", Family::MySql, (0, 0, 0)),
            ("70000.1.1", "", Family::MySql, (0, 0, 0)),
        ] {
            let product = Product::of(version, comment);
            assert_eq!((product.family, product.number), (family, number), "{version} {comment}");
        }
        assert_eq!(Product::of("8.4.0", "MySQL").to_string(), "MySQL 8.4.0");
    }

    #[test]
    fn capabilities_follow_the_version() {
        let of = |version| Product::of(version, "").capabilities().join(" ");
        assert_eq!(of("5.6.24"), "");
        assert_eq!(of("5.7.5"), "deprecate_eof");
        assert_eq!(of("10.1.23-MariaDB"), "");
        assert_eq!(of("10.5.29-MariaDB"), "deprecate_eof");
        assert_eq!(of("10.6.0-MariaDB"), "deprecate_eof mariadb_metadata_cache");
        assert_eq!(of("8.0.11-TiDB-v7.5.1"), "");
    }

    proptest! {
        #[test]
        fn a_version_is_read_whatever_stands_around_it(
            major in 0_u16..100, minor in 0_u16..100, patch in 0_u16..1000,
            lead in prop::sample::select(vec!["", "5.5.5-"]), tail in "(-\\PC{0,20})?",
        ) {
            let version = format!("{lead}{major}.{minor}.{patch}-MariaDB{tail}");
            let product = Product::of(&version, "");
            if product.family == Family::MariaDb {
                prop_assert_eq!(product.number, (major, minor, patch));
            }
        }

        #[test]
        fn no_text_panics_or_acts_upon_a_terminal(version in any::<String>(), comment in any::<String>()) {
            let product = Product::of(&version, &comment);
            prop_assert!(!product.to_string().contains(char::is_control));
            prop_assert!(!product.comment.contains(char::is_control));
        }
    }
}
