//! The flags that name the server, as the MySQL clients have them.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::{Secret, SslMode};
use crate::terms::units;

/// How to reach the server. What is not given comes from `--url` or LOADGEN_URL, then from the
/// groups `[client]` and `[loadgen]` of the option files, then from MYSQL_HOST, MYSQL_TCP_PORT,
/// MYSQL_UNIX_PORT and MYSQL_PWD.
#[derive(clap::Args, Debug, Clone, Default)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArgs {
    /// Host of the server; localhost, or none, without a port means the socket where there is one
    #[arg(short = 'h', long, value_name = "HOST")]
    pub host: Option<String>,

    /// TCP port [default: 3306]
    #[arg(short = 'P', long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,

    /// Account [default: the name of the operating system's account]
    #[arg(short = 'u', long, value_name = "NAME")]
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
    #[arg(short = 'D', long, value_name = "NAME")]
    pub database: Option<String>,

    /// DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY [default: DISABLED]
    #[arg(long, value_name = "MODE")]
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

/// How the bytes travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// A Unix socket.
    Socket,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Tcp => "tcp",
            Protocol::Socket => "socket",
        })
    }
}
