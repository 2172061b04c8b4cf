//! Options of the connection: flags, option files, environment and URL become one plain
//! [`ConnectOptions`].
//!
//! The ssl-modes:
//!
//! | mode | encrypts | verifies |
//! |---|---|---|
//! | DISABLED | no | |
//! | PREFERRED | where the server offers it, decided once | nothing |
//! | REQUIRED | yes | nothing |
//! | VERIFY_CA | yes | that `ssl-ca` signed the certificate |
//! | VERIFY_IDENTITY | yes | that, and that the certificate names the host |

mod files;
pub mod handover;
pub mod resolve;

use std::fmt;
use std::iter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use mysql_async::{Opts, OptsBuilder, SslOpts};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::terms::units;
pub use files::{Env, Text};

/// The way to the server. A missing value comes from `--url` or LOADGEN_URL, then from the
/// groups `[client]`, `[client-server]`, `[client-mariadb]` and `[loadgen]` of the option files, then from MYSQL_HOST, MYSQL_TCP_PORT,
/// MYSQL_UNIX_PORT and MYSQL_PWD.
#[derive(clap::Args, Debug, Clone, Default, PartialEq)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArgs {
    /// Host, or several: a,b:3307; localhost or no host, without a port, uses the Unix socket if
    /// one exists
    #[arg(short = 'h', long, value_name = "HOST", value_parser = NonEmptyStringValueParser::new())]
    pub host: Option<String>,

    /// TCP port; in a list, for each host without a port [default: 3306]
    #[arg(short = 'P', long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,

    /// Account [default: the name of the operating system's account]
    #[arg(short = 'u', long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub user: Option<String>,

    /// Password; without a value loadgen asks for it [-pPASSWORD is taken too]
    #[arg(short = 'p', long, value_name = "PASSWORD", num_args = 0..=1, require_equals = true)]
    pub password: Option<Option<Secret>>,

    /// Read the password from this inherited file descriptor, up to its end
    #[arg(long, value_name = "FD", conflicts_with = "password")]
    pub password_fd: Option<u32>,

    /// Unix socket of the server
    #[arg(short = 'S', long, value_name = "PATH")]
    pub socket: Option<PathBuf>,

    /// Transport, where it is not plain from the other flags
    #[arg(long, value_name = "NAME", ignore_case = true)]
    pub protocol: Option<Protocol>,

    /// Database of the tables [default: sbtest]
    #[arg(short = 'D', long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub database: Option<String>,

    /// DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY [default: DISABLED]
    #[arg(long, value_name = "MODE", value_parser = SslMode::parse)]
    pub ssl_mode: Option<SslMode>,

    /// Certificates (PEM) of the authorities that VERIFY_CA and VERIFY_IDENTITY trust
    #[arg(long, value_name = "FILE")]
    pub ssl_ca: Option<PathBuf>,

    /// Certificate (PEM) of this client
    #[arg(long, value_name = "FILE")]
    pub ssl_cert: Option<PathBuf>,

    /// Private key (PEM) of this client
    #[arg(long, value_name = "FILE")]
    pub ssl_key: Option<PathBuf>,

    /// Read this option file alone
    #[arg(long, value_name = "FILE", conflicts_with_all = ["defaults_extra_file", "no_defaults"])]
    pub defaults_file: Option<PathBuf>,

    /// Read this option file too, before ~/.my.cnf
    #[arg(long, value_name = "FILE", conflicts_with = "no_defaults")]
    pub defaults_extra_file: Option<PathBuf>,

    /// Read the groups whose names end in this, too: client_staging for _staging
    #[arg(long, value_name = "SUFFIX", conflicts_with = "no_defaults",
        value_parser = NonEmptyStringValueParser::new())]
    pub defaults_group_suffix: Option<String>,

    /// Read no option file
    #[arg(long)]
    pub no_defaults: bool,

    /// mysql://USER:PASSWORD@HOST:PORT/DATABASE?ssl-mode=…&socket=… (also LOADGEN_URL)
    #[arg(long, value_name = "URL")]
    pub url: Option<Secret>,

    /// The longest that opening one connection may take [default: 10s]
    #[arg(long, value_name = "DURATION", value_parser = units::parse_duration)]
    pub connect_timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// TCP
    Tcp,
    /// A Unix socket
    Socket,
}

pub(crate) const DEFAULT_PORT: u16 = 3306;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest password, bytes: no server takes more, and an empty pipe holds it without blocking.
const SECRET_MAX: usize = 2048;

/// Largest packet, bytes; no statement of loadgen's is longer. Stated, because the driver otherwise asks the server.
const MAX_ALLOWED_PACKET: usize = 16 << 20;

/// Stated for the same reason, seconds; only a pool would use it.
const WAIT_TIMEOUT_S: usize = 28_800;

/// Idle seconds after which the kernel checks that the server's host still lives.
pub(crate) const KEEPALIVE: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectOptions {
    pub address: Address,
    /// More addresses of the same server or cluster: clients are dealt out to all in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Address>,
    pub user: String,
    /// Never written with the others.
    #[serde(skip)]
    pub password: Secret,
    /// The database that connections start in; empty for none.
    pub database: String,
    pub ssl: Ssl,
    /// The longest that opening one connection may take, log-in included.
    pub connect_timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Address {
    Tcp {
        /// A name or an IP address, without brackets.
        host: String,
        port: u16,
    },
    Socket(PathBuf),
}

impl ConnectOptions {
    /// Connects to loadgen's own private server behind this socket.
    pub(crate) fn private(socket: &Path) -> ConnectOptions {
        ConnectOptions {
            address: Address::Socket(socket.to_owned()),
            others: Vec::new(),
            user: "root".to_owned(),
            password: Secret::default(),
            database: "sbtest".to_owned(),
            ssl: Ssl::default(),
            connect_timeout: CONNECT_TIMEOUT,
        }
    }

    pub(crate) fn canned(port: u16) -> ConnectOptions {
        let address = Address::Tcp { host: "127.0.0.1".to_owned(), port };
        ConnectOptions { address, ..ConnectOptions::private(Path::new("")) }
    }

    /// Makes the driver's options. Their `Debug` shows the password: never print it.
    ///
    /// * `prefer_socket(false)`: else TCP silently moves to a server that owns the same socket path.
    /// * `client_found_rows(true)`: an UPDATE counts matched rows; a repeated `--seed` may change none.
    pub fn opts(&self, ssl: Option<SslOpts>) -> Result<Opts> {
        let builder = OptsBuilder::default()
            .user(Some(self.user.as_str()))
            .pass((!self.password.is_empty()).then(|| self.password.expose()))
            .db_name((!self.database.is_empty()).then_some(self.database.as_str()))
            .prefer_socket(false)
            .max_allowed_packet(Some(MAX_ALLOWED_PACKET))
            .wait_timeout(Some(WAIT_TIMEOUT_S))
            .tcp_keepalive(Some(KEEPALIVE))
            .stmt_cache_size(0)
            .client_found_rows(true)
            .ssl_opts(ssl);
        let builder = match &self.address {
            Address::Tcp { host, port } => {
                builder.ip_or_hostname(host).tcp_port(*port).socket(None::<String>)
            }
            Address::Socket(path) => {
                let text = path.to_str().ok_or_else(|| {
                    Error::usage(format!("the socket's path {} is no UTF-8", path.display()))
                })?;
                builder.socket(Some(text))
            }
        };
        Ok(builder.into())
    }

    pub(crate) fn addresses(&self) -> impl Iterator<Item = &Address> {
        iter::once(&self.address).chain(&self.others)
    }

    /// Names all addresses, as `--host` may.
    pub(crate) fn name_addresses(&self) -> String {
        self.addresses().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    /// Changes the database; `""` for none.
    #[must_use]
    pub fn with_database(&self, database: impl Into<String>) -> Self {
        ConnectOptions { database: database.into(), ..self.clone() }
    }

    pub fn transport(&self) -> &'static str {
        match self.address {
            Address::Tcp { .. } => "tcp",
            Address::Socket(_) => "socket",
        }
    }
}

impl fmt::Display for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.user, self.address)?;
        if self.database.is_empty() { Ok(()) } else { write!(f, ", database {}", self.database) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
            Address::Socket(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A password, or a text that may hold one (`--url`). `Debug` shows `***`, or nothing if it is empty.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text: for the driver, the URL parser and the hand-over, never for output.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Secret::new(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "" } else { "***" })
    }
}

/// Modes, weakest first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize,
)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SslMode {
    // A comparison must not switch encryption on by itself.
    #[default]
    Disabled,
    Preferred,
    Required,
    VerifyCa,
    VerifyIdentity,
}

impl SslMode {
    pub(crate) fn verifies(self) -> bool {
        self >= SslMode::VerifyCa
    }

    pub fn parse(text: &str) -> std::result::Result<SslMode, String> {
        SslMode::from_str(&text.replace('-', "_"), true)
            .map_err(|_| format!("'{text}' is no ssl-mode: {}", SslMode::list()))
    }

    fn list() -> String {
        let names = SslMode::value_variants().iter().map(ToString::to_string);
        names.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for SslMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().expect("no variant is skipped").get_name())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ssl {
    pub mode: SslMode,
    pub ca: Option<PathBuf>,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    fn target(address: Address) -> ConnectOptions {
        let password = Secret::new("marker-pw");
        ConnectOptions { address, password, ..ConnectOptions::canned(0) }
    }

    fn tcp() -> ConnectOptions {
        target(Address::Tcp { host: "db1".into(), port: 3307 })
    }

    fn socket(path: &str) -> ConnectOptions {
        target(Address::Socket(path.into()))
    }

    #[test]
    fn nothing_shows_a_secret() {
        let secret = Secret::new("marker");
        let pretty = format!("{secret:?} {:#?}", Some(&secret));
        assert_eq!(pretty, "*** Some(\n    ***,\n)");
        assert_eq!(format!("[{:?}]", Secret::default()), "[]");
        assert_eq!(secret.expose(), "marker");
    }

    #[test]
    fn every_driver_option_is_stated() {
        let opts = tcp().opts(None).unwrap();
        assert_eq!((opts.ip_or_hostname(), opts.tcp_port(), opts.socket()), ("db1", 3307, None));
        assert_eq!(
            (opts.user(), opts.pass(), opts.db_name()),
            (Some("root"), Some("marker-pw"), Some("sbtest"))
        );
        assert!(!opts.prefer_socket(), "else another server may answer");
        assert_eq!(opts.max_allowed_packet(), Some(16 << 20));
        assert_eq!(opts.wait_timeout(), Some(28_800));
        assert!(opts.tcp_nodelay());
        assert_eq!(opts.tcp_keepalive(), Some(KEEPALIVE));
        assert_eq!(opts.stmt_cache_size(), 0);
        assert!(opts.compression().is_none() && opts.ssl_opts().is_none());
        assert!(opts.client_found_rows() && opts.secure_auth() && !opts.enable_cleartext_plugin());
        assert!(opts.init().is_empty() && opts.setup().is_empty());
        assert!(opts.after_connect().is_none() && opts.local_infile_handler().is_none());
        assert!(opts.connect_attributes().is_none());
    }

    #[test]
    fn a_socket_is_the_only_address_then() {
        let opts = socket("/run/x.sock").opts(None).unwrap();
        assert_eq!(opts.socket(), Some("/run/x.sock"));
        assert!(!opts.prefer_socket());
    }

    #[test]
    fn no_password_and_no_database_are_none() {
        let bare = ConnectOptions { password: Secret::default(), ..tcp().with_database("") };
        let opts = bare.opts(None).unwrap();
        assert_eq!((opts.pass(), opts.db_name()), (None, None));
        assert_eq!(bare.to_string(), "root@db1:3307");
    }

    #[test]
    fn a_socket_path_outside_utf8_is_refused() {
        let path = PathBuf::from(OsStr::from_bytes(b"/tmp/\xff.sock"));
        assert!(
            target(Address::Socket(path)).opts(None).unwrap_err().to_string().contains("UTF-8")
        );
    }

    #[test]
    fn shows_the_server_and_never_the_password() {
        assert_eq!(tcp().to_string(), "root@db1:3307, database sbtest");
        assert_eq!(socket("/run/x.sock").to_string(), "root@/run/x.sock, database sbtest");
        let v6 = target(Address::Tcp { host: "::1".into(), port: 3306 });
        assert_eq!(v6.address.to_string(), "[::1]:3306");
        assert_eq!((v6.transport(), socket("/x").transport()), ("tcp", "socket"));
        assert!(!format!("{v6:?} {v6:#?} {v6}").contains("marker-pw"));
    }

    #[test]
    fn spelling_is_mysqls_in_any_case() {
        for mode in SslMode::value_variants() {
            assert_eq!(SslMode::parse(&mode.to_string()), Ok(*mode));
            let lower = mode.to_string().to_lowercase().replace('_', "-");
            assert_eq!(SslMode::parse(&lower), Ok(*mode));
        }
        let error = SslMode::parse("on").unwrap_err();
        assert!(error.contains("'on'") && error.contains("VERIFY_IDENTITY"), "{error}");
    }
}
