//! The server's fingerprint, as summaries carry it.

use std::path::Path;

use super::ask::{Asked, database, explain, optional, pairs};
use super::product::Product;
use super::rtt;
use super::same_host::{far_end, is_same_host};
use super::session::Session;
use super::variables::{self, Variables};
use crate::error::Result;
use crate::observe::host::{self, ROOT};
use crate::observe::probe::{FarEnd, Whereabouts};
use crate::summary::{Driver, HostFacts, Server, SettingChange, durability};

/// The driver, as Cargo.lock pins it (a test compares).
const DRIVER: (&str, &str) = ("mysql_async", "0.37.1");

/// What was measured, as far as the server tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Fingerprint {
    /// For the summary; `settings_changed` is empty and `status` is None yet.
    pub server: Server,
    /// The client library and what it negotiated with this server.
    pub driver: Driver,
    /// Whether the server runs on this host; no where that is unknown.
    pub same_host: bool,
    /// What tells its process from others.
    pub whereabouts: Whereabouts,
    /// Median round trip of an empty query, microseconds; None where it has none.
    pub rtt_us: Option<f64>,
}

/// Reads the fingerprint over a session of the kind that is measured.
///
/// `host` is the host as given (any for a socket), `port` None for a socket, `data_bytes` the
/// size of the tables used ([`super::dataset`]).
///
/// # Errors
/// Server, if it does not answer; what it merely does not know is left empty.
pub async fn server(
    session: &mut Session,
    host: &str,
    port: Option<u16>,
    data_bytes: Option<u64>,
) -> Result<Fingerprint> {
    ask(session, host, port, data_bytes)
        .await
        .map_err(|failure| explain(&failure, "read the server's version and variables"))
}

async fn ask(
    session: &mut Session,
    host: &str,
    port: Option<u16>,
    data_bytes: Option<u64>,
) -> Asked<Fingerprint> {
    let mut server = Server {
        host: if port.is_some() { host.to_owned() } else { "localhost".to_owned() },
        port,
        transport: if port.is_some() { "tcp" } else { "socket" }.to_owned(),
        database: database(session).await?,
        tls_cipher: None,
        version: String::new(),
        version_comment: String::new(),
        buffer_pool_bytes: None,
        class: None,
        durability: None,
        probed: None,
        variables: Variables::new(),
        settings_changed: Vec::new(),
        status: None,
        data_bytes,
        table_formats: None,
        host_facts: None,
    };
    let product = renew(session, &mut server).await?;
    let root = Path::new(ROOT);
    let seen_from = seen_from(session).await?;
    let mut whereabouts = whereabouts(session, &server.variables, port).await?;
    let direct = is_same_host(root, &seen_from, port);
    if !direct {
        let own = server.variables.get("port").and_then(|port| port.parse().ok());
        let ports: Vec<u16> = own.into_iter().chain(port).collect();
        whereabouts.far_end = far_end(root, &seen_from, &ports, whereabouts.uptime_s);
    }
    let same_host = direct || whereabouts.far_end != FarEnd::Unknown;
    let driver = Driver {
        name: DRIVER.0.to_owned(),
        version: DRIVER.1.to_owned(),
        capabilities: product.capabilities(),
    };
    server.host_facts = same_host.then(|| host_facts(root));
    let rtt_us = rtt::median_us(session).await?;
    Ok(Fingerprint { server, driver, same_host, whereabouts, rtt_us })
}

/// Reads anew which server answers and how it is set up.
pub(crate) async fn renew(session: &mut Session, server: &mut Server) -> Asked<Product> {
    let product = Product::ask(session).await?;
    let variables = optional(variables::read(session).await)?.unwrap_or_default();
    let cipher = pairs(session, "SHOW SESSION STATUS LIKE 'Ssl_cipher'").await;
    let cipher = optional(cipher)?.and_then(|pairs| pairs.into_values().next());
    server.tls_cipher = cipher.filter(|cipher| !cipher.is_empty());
    server.version.clone_from(&product.version);
    server.version_comment.clone_from(&product.comment);
    server.buffer_pool_bytes =
        variables.get("innodb_buffer_pool_size").and_then(|value| value.parse().ok());
    server.durability = durability(&variables);
    server.variables = variables;
    Ok(product)
}

/// What of a server is another's, or another, in a later look at it.
pub(crate) fn changes(before: &Server, after: &Server) -> Vec<SettingChange> {
    let mut changed = variables::changed(&before.variables, &after.variables);
    // A proxy, or a server without such variables, may tell them in its own answers only.
    for (name, before, after) in [
        ("version", &before.version, &after.version),
        ("version_comment", &before.version_comment, &after.version_comment),
    ] {
        // One that is not told is unknown.
        let differ = before != after && !after.is_empty();
        if differ && changed.iter().all(|change| change.name != name) {
            let (before, after) = (Some(before.clone()), Some(after.clone()));
            changed.push(SettingChange { name: name.to_owned(), before, after });
        }
    }
    changed
}

/// The server's own account of where it is.
async fn whereabouts(
    session: &mut Session,
    variables: &Variables,
    port: Option<u16>,
) -> Asked<Whereabouts> {
    let uptime = optional(pairs(session, "SHOW GLOBAL STATUS LIKE 'Uptime'").await)?;
    let get = |name: &str| variables.get(name).filter(|value| !value.is_empty()).cloned();
    // Some versions show it as it was given: relative to the data directory.
    let pid_file = get("pid_file").map(|file| match get("datadir") {
        Some(datadir) => Path::new(&datadir).join(file).to_string_lossy().into_owned(),
        None => file,
    });
    Ok(Whereabouts {
        pid_file: pid_file.filter(|file| file.starts_with('/')),
        port: port.or_else(|| get("port")?.parse().ok()),
        socket: get("socket"),
        uptime_s: uptime.and_then(|found| found.get("Uptime")?.parse().ok()),
        far_end: FarEnd::Unknown,
    })
}

/// Where the server sees this connection come from: `host:port`, or `localhost` for a socket.
async fn seen_from(session: &mut Session) -> Asked<String> {
    // SHOW is the one form that every version has.
    let rows = optional(session.query("SHOW PROCESSLIST").await)?.unwrap_or_default();
    let id = session.id();
    let own = rows.into_iter().find_map(|row| {
        let mut columns = row.into_iter();
        let found: u64 = columns.next()??.parse().ok()?;
        // The greeting carries the low 32 bits.
        (found as u32 == id).then(|| columns.nth(1)).flatten()?
    });
    Ok(own.unwrap_or_default())
}

fn host_facts(root: &Path) -> HostFacts {
    let host = host::facts(root);
    HostFacts {
        kernel: host.kernel,
        cpu: host.cpu,
        cores: host.cores_online,
        memory_bytes: host.memory_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_version_is_the_one_that_is_linked() {
        let pinned = format!("name = \"{}\"\nversion = \"{}\"\n", DRIVER.0, DRIVER.1);
        assert!(include_str!("../../Cargo.lock").contains(&pinned), "{pinned}");
    }
}
