//! Where the server is and how to get in: flags, URL, option files and environment become one
//! [`ConnectOptions`].
//!
//! The strongest word on each subject counts: flag, URL, option file, environment, default.
//! Whether that means TCP or the socket is decided among `protocol`, `host`, `socket` and
//! `port` together, again by the strongest; two that are equally strong and contradict each
//! other are an error when they were meant for loadgen (flags, a URL), and settled as the MySQL
//! clients do where they were not (option files usually hold a port *and* a socket).

use std::io::ErrorKind;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use percent_encoding::percent_decode_str;
use url::Url;

use super::files::{self, Env, Setting};
use super::tls::{Ssl, SslMode};
use super::{
    Address, CONNECT_TIMEOUT, ConnectOptions, ConnectionArgs, DEFAULT_PORT, Protocol, Secret,
};
use crate::error::{Error, Kind, Result};
use crate::terms::units;

const DEFAULT_DATABASE: &str = "sbtest";

/// Where servers put their socket, if nobody says.
const USUAL_SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/tmp/mysql.sock",
    "/var/lib/mysql/mysql.sock",
];

#[derive(Debug)]
pub struct Resolved {
    /// The server. Its password is empty if `wants_prompt`.
    pub target: ConnectOptions,
    /// What the reader should know: ignored files, encryption that an option file switched on.
    pub warnings: Vec<String>,
    pub wants_prompt: bool,
}

/// Resolves with this process's environment, and asks for the password if need be.
pub fn find(args: &ConnectionArgs) -> Result<(ConnectOptions, Vec<String>)> {
    let Resolved { mut target, warnings, wants_prompt } = resolve(args, &Env::real())?;
    if wants_prompt {
        target.password = prompt(&target)?;
    }
    Ok((target, warnings))
}

/// Asks for the password on the terminal, without echo.
pub(crate) fn prompt(target: &ConnectOptions) -> Result<Secret> {
    let question =
        crate::error::line(&format!("Password for {}@{}: ", target.user, target.address));
    rpassword::prompt_password(question).map(Secret::new).map_err(|e| match e.kind() {
        // Ctrl-C, which is no signal as long as the terminal shows nothing.
        ErrorKind::Interrupted => Error::new(Kind::Interrupted, "interrupted"),
        _ => Error::usage(format!("cannot ask for the password: {e}"))
            .hint("without a terminal: MYSQL_PWD, an option file, or --password-fd"),
    })
}

/// Resolves the flags in a given world. Opens no connection and asks nothing.
pub fn resolve(args: &ConnectionArgs, env: &Env) -> Result<Resolved> {
    let files::Read { settings, mut warnings } = files::read(args, env)?;
    let mut inputs = Inputs::default();
    inputs.environment(env)?;
    inputs.option_files(&settings)?;
    match (&args.url, env.text("LOADGEN_URL")?) {
        (Some(url), _) => inputs.url(url, "--url")?,
        (None, Some(url)) => inputs.url(&Secret::new(url), "LOADGEN_URL")?,
        (None, None) => {}
    }
    inputs.flags(args, env)?;

    let address = address(&inputs, env)?;
    let ssl = ssl(&inputs, &address, &mut warnings)?;
    let connect_timeout = match &inputs.connect_timeout {
        Some(given) if given.value.is_zero() => {
            return Err(Error::usage(format!("{} is 0: no server is that fast", given.from)));
        }
        given => given.as_ref().map_or(CONNECT_TIMEOUT, |given| given.value),
    };
    let nameless =
        || Error::usage("this account of the operating system has no name").hint("-u names one");
    let user = inputs.user.map(|given| given.value).or_else(|| env.os_user.clone());
    let password = inputs.password.map_or_else(|| Some(Secret::default()), |given| given.value);
    let target = ConnectOptions {
        address,
        user: user.ok_or_else(nameless)?,
        database: inputs.database.map_or_else(|| DEFAULT_DATABASE.to_owned(), |given| given.value),
        ssl,
        connect_timeout,
        password: password.clone().unwrap_or_default(),
    };
    Ok(Resolved { target, warnings, wants_prompt: password.is_none() })
}

/// Who said it, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Environment,
    File,
    Url,
    Flag,
}

/// A value and who said it.
#[derive(Clone)]
struct Given<T> {
    value: T,
    rank: Rank,
    /// As messages name it: `--host`, `/etc/my.cnf:3: host`, `the host of --url`.
    from: String,
}

impl Given<PathBuf> {
    fn shown(&self) -> String {
        format!("{} ({})", self.from, self.value.display())
    }
}

/// The strongest word on each subject so far; sources come weakest first. No `Debug`: the password is
/// behind a [`Secret`], but the less is printed, the better.
#[derive(Default)]
struct Inputs {
    host: Option<Given<String>>,
    port: Option<Given<u16>>,
    socket: Option<Given<PathBuf>>,
    protocol: Option<Given<Protocol>>,
    user: Option<Given<String>>,
    /// None inside: to be asked for.
    password: Option<Given<Option<Secret>>>,
    database: Option<Given<String>>,
    ssl_mode: Option<Given<SslMode>>,
    ssl_ca: Option<Given<PathBuf>>,
    ssl_cert: Option<Given<PathBuf>>,
    ssl_key: Option<Given<PathBuf>>,
    connect_timeout: Option<Given<Duration>>,
}

/// The keys of `[loadgen]` beside those of a URL's options.
const KEYS: &str = "host, port, user, password, database, ssl, ssl-verify-server-cert";
const URL_KEYS: &str = "socket, protocol, ssl-mode, ssl-ca, ssl-cert, ssl-key, connect-timeout";

impl Inputs {
    fn environment(&mut self, env: &Env) -> Result<()> {
        for (name, key) in [
            ("MYSQL_HOST", "host"),
            ("MYSQL_TCP_PORT", "port"),
            ("MYSQL_UNIX_PORT", "socket"),
            ("MYSQL_PWD", "password"),
        ] {
            if let Some(value) = env.text(name)? {
                self.set(key, Some(&value), Rank::Environment, name)
                    .map_err(|why| Error::usage(format!("{name}: {why}")))?;
            }
        }
        Ok(())
    }

    fn option_files(&mut self, settings: &[Setting]) -> Result<()> {
        for Setting { key, value, strict, at } in settings {
            // A line such as `password secret` is one key: it must not be shown whole.
            let word = |c: char| c.is_ascii_alphanumeric() || c == '-';
            let from = format!("{at}: {}", key.split(|c| !word(c)).next().unwrap_or_default());
            let known = self
                .set(key, value.as_deref(), Rank::File, &from)
                .map_err(|why| Error::usage(format!("{from}: {why}")))?;
            if *strict && !known {
                return Err(Error::usage(format!("{from}: [loadgen] knows no such key"))
                    .hint(format!("it knows {KEYS}, {URL_KEYS}"))
                    .hint("loose- in front of the key makes it a wish"));
            }
        }
        Ok(())
    }

    fn url(&mut self, text: &Secret, name: &str) -> Result<()> {
        let error = |why: String| {
            Error::usage(format!("{name} {why}")).hint(
                "mysql://USER:PASSWORD@HOST:PORT/DATABASE?ssl-mode=REQUIRED&socket=/PATH, with \
                 %40 for an @ and so on",
            )
        };
        for (key, value) in parts(text).map_err(error)? {
            self.set(&key, Some(&value), Rank::Url, &format!("the {key} of {name}"))
                .map_err(|why| error(format!("has {key}: {why}")))?;
        }
        Ok(())
    }

    fn flags(&mut self, args: &ConnectionArgs, env: &Env) -> Result<()> {
        fn flag<T: Clone>(slot: &mut Option<Given<T>>, value: Option<&T>, name: &str) {
            if let Some(value) = value {
                put(slot, value.clone(), Rank::Flag, name);
            }
        }
        flag(&mut self.host, args.host.as_ref(), "--host");
        flag(&mut self.port, args.port.as_ref(), "--port");
        flag(&mut self.socket, args.socket.as_ref(), "--socket");
        flag(&mut self.protocol, args.protocol.as_ref(), "--protocol");
        flag(&mut self.user, args.user.as_ref(), "--user");
        flag(&mut self.database, args.database.as_ref(), "--database");
        flag(&mut self.ssl_mode, args.ssl_mode.as_ref(), "--ssl-mode");
        flag(&mut self.ssl_ca, args.ssl_ca.as_ref(), "--ssl-ca");
        flag(&mut self.ssl_cert, args.ssl_cert.as_ref(), "--ssl-cert");
        flag(&mut self.ssl_key, args.ssl_key.as_ref(), "--ssl-key");
        flag(&mut self.connect_timeout, args.connect_timeout.as_ref(), "--connect-timeout");
        flag(&mut self.password, args.password.as_ref(), "--password");
        if let Some(fd) = args.password_fd {
            put(&mut self.password, Some((env.read_fd)(fd)?), Rank::Flag, "--password-fd");
        }
        Ok(())
    }

    /// Takes a key with its value as text, and tells whether the key is known. An empty value is as
    /// good as none given, but for the password, where it means that there is none.
    fn set(
        &mut self,
        key: &str,
        value: Option<&str>,
        rank: Rank,
        from: &str,
    ) -> std::result::Result<bool, String> {
        if let Some(mode) = self.switched(key, value)? {
            put(&mut self.ssl_mode, mode, rank, from);
            return Ok(true);
        }
        if key == "password" {
            put(&mut self.password, value.map(Secret::new), rank, from);
            return Ok(true);
        }
        if !KEYS.split(", ").chain(URL_KEYS.split(", ")).any(|known| known == key) {
            return Ok(false);
        }
        let value = value.ok_or("needs a value")?;
        if value.is_empty() {
            return Ok(true);
        }
        match key {
            "host" => put(&mut self.host, value.to_owned(), rank, from),
            "user" => put(&mut self.user, value.to_owned(), rank, from),
            "database" => put(&mut self.database, value.to_owned(), rank, from),
            "socket" => put(&mut self.socket, value.into(), rank, from),
            "ssl-ca" => put(&mut self.ssl_ca, value.into(), rank, from),
            "ssl-cert" => put(&mut self.ssl_cert, value.into(), rank, from),
            "ssl-key" => put(&mut self.ssl_key, value.into(), rank, from),
            "ssl-mode" => put(&mut self.ssl_mode, SslMode::from_str(value)?, rank, from),
            "connect-timeout" => {
                put(&mut self.connect_timeout, units::parse_duration(value)?, rank, from);
            }
            "port" => match value.parse() {
                // In option files it stands for "the usual one".
                Ok(0) => {}
                Ok(port) => put(&mut self.port, port, rank, from),
                Err(_) => return Err(format!("'{value}' is no port")),
            },
            "protocol" if value.eq_ignore_ascii_case("default") => {}
            "protocol" => {
                let protocol = <Protocol as ValueEnum>::from_str(value, true);
                let wrong = |_| format!("'{value}' is no protocol: tcp or socket");
                put(&mut self.protocol, protocol.map_err(wrong)?, rank, from);
            }
            _ => unreachable!("'{key}' is one of KEYS"),
        }
        Ok(true)
    }

    /// Reads the older switches of encryption: `ssl` (demands it, as MariaDB's and MySQL 5.7's) and
    /// `ssl-verify-server-cert`, with `skip-` and `disable-` for off and `enable-` for on. Each
    /// moves the mode that the lines before it made; None for another key.
    fn switched(
        &self,
        key: &str,
        value: Option<&str>,
    ) -> std::result::Result<Option<SslMode>, String> {
        let off = key.strip_prefix("skip-").or_else(|| key.strip_prefix("disable-"));
        let name = off.or_else(|| key.strip_prefix("enable-")).unwrap_or(key);
        if !matches!(name, "ssl" | "ssl-verify-server-cert") {
            return Ok(None);
        }
        let said = match value.unwrap_or("1").to_ascii_lowercase().as_str() {
            "1" | "on" | "true" => true,
            "0" | "off" | "false" => false,
            other => return Err(format!("'{other}' is neither on nor off")),
        };
        let mode = self.ssl_mode.as_ref().map(|given| given.value).unwrap_or_default();
        Ok(Some(match (name, said != off.is_some()) {
            ("ssl", true) => mode.max(SslMode::Required),
            ("ssl", false) => SslMode::Disabled,
            (_, true) => SslMode::VerifyIdentity,
            (_, false) => mode.min(SslMode::Required),
        }))
    }
}

fn put<T>(slot: &mut Option<Given<T>>, value: T, rank: Rank, from: &str) {
    *slot = Some(Given { value, rank, from: from.to_owned() });
}

fn read_url(text: &Secret) -> std::result::Result<Url, String> {
    let url = Url::parse(text.expose()).map_err(|e| format!("is no URL: {e}"))?;
    if url.scheme() != "mysql" || url.cannot_be_a_base() {
        return Err("does not start with mysql://".to_owned());
    }
    if url.fragment().is_some() {
        return Err("holds a '#': write %23".to_owned());
    }
    Ok(url)
}

fn decoded(what: &str, text: &str) -> std::result::Result<String, String> {
    let text = percent_decode_str(text).decode_utf8();
    text.map(Into::into).map_err(|_| format!("holds a {what} that is no UTF-8"))
}

/// Takes a URL apart into keys and values, percent-encoding undone; the error's text does not show
/// it.
fn parts(text: &Secret) -> std::result::Result<Vec<(String, String)>, String> {
    let url = read_url(text)?;
    let database = url.path().strip_prefix('/').unwrap_or_default();
    if database.contains('/') {
        return Err("has more than a database for its path".to_owned());
    }
    let mut parts = Vec::new();
    for (key, value) in [
        ("user", Some(url.username())),
        ("password", url.password()),
        ("host", url.host_str()),
        ("database", Some(database)),
    ] {
        if let Some(value) = value {
            parts.push((key.to_owned(), decoded(key, value)?));
        }
    }
    parts.extend(url.port().map(|port| ("port".to_owned(), port.to_string())));
    for pair in url.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) =
            pair.split_once('=').ok_or("has an option without a value after its '?'")?;
        let key = decoded("option", key)?.replace('_', "-");
        if !URL_KEYS.split(", ").any(|known| known == key) {
            return Err(format!("has an unknown option '{key}'; there are {URL_KEYS}"));
        }
        parts.push((key, decoded("option", value)?));
    }
    Ok(parts)
}

/// Takes the password out of a URL; `None` where it holds none, or is no URL.
pub(super) fn without_password(text: &Secret) -> Option<(Secret, String)> {
    let mut url = read_url(text).ok()?;
    let password = decoded("password", url.password()?).ok()?;
    url.set_password(None).ok()?;
    Some((Secret::new(password), url.to_string()))
}

fn address(inputs: &Inputs, env: &Env) -> Result<Address> {
    fn vote<T>(
        given: Option<&Given<T>>,
        means: impl Fn(&T) -> Protocol,
    ) -> Option<(Rank, &str, Protocol)> {
        given.map(|given| (given.rank, given.from.as_str(), means(&given.value)))
    }
    let remote =
        inputs.host.as_ref().filter(|given| !given.value.eq_ignore_ascii_case("localhost"));
    // Equally strong ones count in this order, which is the MySQL clients'.
    let votes = [
        vote(inputs.protocol.as_ref(), |protocol| *protocol),
        vote(remote, |_| Protocol::Tcp),
        vote(inputs.socket.as_ref(), |_| Protocol::Socket),
        vote(inputs.port.as_ref(), |_| Protocol::Tcp),
    ];
    let votes: Vec<_> = votes.into_iter().flatten().collect();
    for (rank, tcp, _) in votes.iter().filter(|(_, _, means)| *means == Protocol::Tcp) {
        let socket =
            votes.iter().find(|(other, _, means)| other == rank && *means == Protocol::Socket);
        if let Some((_, socket, _)) = socket.filter(|_| *rank >= Rank::Url) {
            let message = format!("{tcp} means TCP, {socket} the Unix socket: give one of them");
            return Err(Error::usage(message));
        }
    }
    let host = inputs.host.as_ref().map(host_name).transpose()?;
    // What option files and environment say was not said together: MYSQL_HOST must not lose to a
    // [client] socket.
    let strongest = votes.iter().rev().max_by_key(|(rank, ..)| (*rank).max(Rank::File));
    let usual = || USUAL_SOCKETS.map(PathBuf::from).into_iter().find(|path| (env.is_socket)(path));
    let socket = || inputs.socket.as_ref().map(|given| given.value.clone()).or_else(usual);
    let tcp = || Address::Tcp {
        host: host.unwrap_or_else(|| "127.0.0.1".to_owned()),
        port: inputs.port.as_ref().map_or(DEFAULT_PORT, |given| given.value),
    };
    match strongest {
        Some((_, _, Protocol::Tcp)) => Ok(tcp()),
        Some((_, from, Protocol::Socket)) => socket().map(Address::Socket).ok_or_else(|| {
            Error::usage(format!("{from}: there is no socket at {}", USUAL_SOCKETS.join(", ")))
                .hint("-S names it")
        }),
        None => Ok(socket().map_or_else(tcp, Address::Socket)),
    }
}

fn host_name(given: &Given<String>) -> Result<String> {
    let (host, from) = (&given.value, &given.from);
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    // A zone may follow the address.
    let ipv6 = bare.split('%').next().is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok());
    let (message, hint) = if host.starts_with('/') {
        (format!("{from} is a path: '{host}'"), "-S names a socket")
    } else if bare.contains('@') {
        // There may be a password in it.
        let message = format!("{from} is no host: it holds an @");
        (message, "--url takes a URL with user and password")
    } else if bare.contains(':') && !ipv6 {
        (format!("{from} is no host: '{host}'"), "-P names the port")
    } else {
        return Ok(bare.to_owned());
    };
    Err(Error::usage(message).hint(hint))
}

fn ssl(inputs: &Inputs, address: &Address, warnings: &mut Vec<String>) -> Result<Ssl> {
    let given = inputs.ssl_mode.as_ref();
    let mode = given.map(|given| given.value).unwrap_or_default();
    let from = given.map_or("--ssl-mode", |given| &given.from);
    let Inputs { ssl_ca, ssl_cert, ssl_key, .. } = inputs;
    if mode == SslMode::Disabled {
        for file in [ssl_ca, ssl_cert, ssl_key].into_iter().flatten() {
            let unset = if given.is_none() { " where it is not given" } else { "" };
            let why = format!("{from} is DISABLED{unset}");
            // Who names them for loadgen expects encryption.
            if file.rank >= Rank::Url {
                return Err(Error::usage(format!("{} is of no use: {why}", file.shown()))
                    .hint("--ssl-mode VERIFY_IDENTITY, VERIFY_CA or REQUIRED encrypts"));
            }
            warnings.push(format!("{} is not used: {why}", file.shown()));
        }
        return Ok(Ssl::default());
    }
    if given.is_some_and(|given| given.rank == Rank::File) {
        warnings.push(format!("{from} makes ssl-mode {mode}: connections are encrypted"));
    }
    if let Address::Socket(_) = address {
        if mode == SslMode::Preferred {
            warnings.push(format!("{from} PREFERRED has no effect over the socket {address}"));
            return Ok(Ssl::default());
        }
        let socket = inputs.socket.as_ref().map_or_else(|| address.to_string(), Given::shown);
        let message = format!("{from} ({mode}) and the socket {socket}: no TLS goes over a socket");
        return Err(Error::usage(message).hint("--protocol tcp, or --ssl-mode DISABLED"));
    }
    match ssl_ca {
        None if mode.verifies() => {
            return Err(Error::usage(format!("{from}: ssl-mode {mode} needs --ssl-ca"))
                .hint("--ssl-ca /etc/ssl/certs/ca-certificates.crt trusts the public authorities")
                .hint("--ssl-mode REQUIRED encrypts and verifies nothing"));
        }
        Some(ca) if !mode.verifies() => {
            warnings.push(format!("{} is not used: ssl-mode {mode} verifies nothing", ca.shown()));
        }
        _ => {}
    }
    for (one, other, name) in [(ssl_cert, ssl_key, "--ssl-key"), (ssl_key, ssl_cert, "--ssl-cert")]
    {
        if let (Some(one), None) = (one, other) {
            return Err(Error::usage(format!("{} needs {name}", one.shown())));
        }
    }
    let file = |given: &Option<Given<PathBuf>>| given.as_ref().map(|given| given.value.clone());
    let ca = file(ssl_ca).filter(|_| mode.verifies());
    Ok(Ssl { mode, ca, cert: file(ssl_cert), key: file(ssl_key) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::help_without_h;
    use crate::mysql::options::files::fake::{self, Files};
    use clap::{Args, Command, FromArgMatches};
    use proptest::prelude::*;

    const SOCKET: &[&str] = &["/tmp/mysql.sock"];

    fn args(line: &str) -> ConnectionArgs {
        let command = help_without_h(ConnectionArgs::augment_args(Command::new("x")));
        let words = ["x"].into_iter().chain(line.split_whitespace());
        ConnectionArgs::from_arg_matches(&command.get_matches_from(words)).unwrap()
    }

    /// A world: variables `K=V`, files, sockets.
    fn world(vars: &[&str], files: Files, sockets: &'static [&'static str]) -> Env {
        let vars: Vec<_> = vars.iter().map(|v| v.split_once('=').unwrap()).collect();
        fake::env(&vars, files, sockets)
    }

    fn ok(line: &str, env: &Env) -> Resolved {
        resolve(&args(line), env).unwrap_or_else(|e| panic!("{line}: {e}"))
    }

    fn error(line: &str, env: &Env) -> Error {
        let error = resolve(&args(line), env).expect_err(line);
        assert_eq!(error.kind(), crate::error::Kind::Usage);
        error
    }

    fn address_of(line: &str, env: &Env) -> String {
        let target = ok(line, env).target;
        format!("{} {}", target.transport(), target.address)
    }

    #[test]
    fn nothing_said_is_the_local_server() {
        let r = ok("", &world(&[], &[], &[]));
        assert_eq!(r.target.to_string(), "me@127.0.0.1:3306, database sbtest");
        assert!(r.target.password.is_empty() && !r.wants_prompt && r.warnings.is_empty());
        assert_eq!(r.target.ssl, Ssl::default());
        assert_eq!(r.target.connect_timeout, Duration::from_secs(10));
        assert_eq!(address_of("", &world(&[], &[], SOCKET)), "socket /tmp/mysql.sock");
        let mut nameless = world(&[], &[], &[]);
        nameless.os_user = None;
        assert!(error("", &nameless).hints()[0].contains("-u"));
    }

    const FILE: Files = &[(
        "/etc/my.cnf",
        0o600,
        "[client]\nhost=file\nport=4\nuser=file\npassword=file\ndatabase=file\nconnect-timeout=4",
    )];
    const VARS: &[&str] = &["MYSQL_HOST=env", "MYSQL_TCP_PORT=5", "MYSQL_PWD=env"];
    const URL: &str = "LOADGEN_URL=mysql://url:url@url:3/url?connect-timeout=3";

    fn all(line: &str, env: &Env) -> String {
        let t = ok(line, env).target;
        let timeout = t.connect_timeout.as_secs();
        format!("{} {} {} {} {timeout}", t.address, t.user, t.password.expose(), t.database)
    }

    #[test]
    fn flag_then_url_then_file_then_environment() {
        let with_url = [VARS, &[URL]].concat();
        let flags = "-h flag -P 2 -u flag --password=flag -D flag --connect-timeout 2";
        assert_eq!(all(flags, &world(&with_url, FILE, &[])), "flag:2 flag flag flag 2");
        assert_eq!(all("", &world(&with_url, FILE, &[])), "url:3 url url url 3");
        assert_eq!(all("", &world(VARS, FILE, &[])), "file:4 file file file 4");
        assert_eq!(all("", &world(VARS, &[], &[])), "env:5 me env sbtest 10");
        assert_eq!(all("--no-defaults", &world(VARS, FILE, &[])), "env:5 me env sbtest 10");
        assert_eq!(
            all("", &world(&["MYSQL_HOST=", "MYSQL_TCP_PORT="], &[], &[])),
            "127.0.0.1:3306 me  sbtest 10"
        );
        // Subject by subject, and --url before LOADGEN_URL.
        assert_eq!(
            all("--url mysql://other/", &world(&with_url, FILE, &[])),
            "other:4 file file file 4"
        );
        assert_eq!(all("-u flag", &world(&with_url, FILE, &[])), "url:3 flag url url 3");
    }

    #[test]
    fn the_group_of_loadgen_counts_like_the_clients() {
        let files: Files = &[(
            "/etc/my.cnf",
            0o600,
            "[client]\nhost=a\nuser=client\n[loadgen]\nuser=loadgen\nport=0\ndatabase=\n[other]\nuser=other",
        )];
        assert_eq!(all("", &world(&[], files, &[])), "a:3306 loadgen  sbtest 10");
    }

    const BOTH: Files = &[("/etc/my.cnf", 0o600, "[client]\nport=3306\nsocket=/file.sock")];
    const PORT: Files = &[("/etc/my.cnf", 0o600, "[client]\nport=3307")];
    const TCP: Files = &[("/etc/my.cnf", 0o600, "[client]\nprotocol=TCP\nsocket=/file.sock")];
    const REMOTE: Files = &[("/etc/my.cnf", 0o600, "[client]\nhost=db1\nsocket=/file.sock")];

    #[test]
    fn tcp_or_socket() {
        for (line, vars, files, sockets, wanted) in [
            // No host, or localhost, without a port: the socket where there is one.
            ("-h localhost", &[][..], &[][..], SOCKET, "socket /tmp/mysql.sock"),
            ("-h LOCALHOST", &[], &[], &[][..], "tcp LOCALHOST:3306"),
            ("-h localhost -P 3307", &[], &[], SOCKET, "tcp localhost:3307"),
            ("-P 3307", &[], &[], SOCKET, "tcp 127.0.0.1:3307"),
            ("-h 127.0.0.1", &[], &[], SOCKET, "tcp 127.0.0.1:3306"),
            ("-h [::1]", &[], &[], SOCKET, "tcp [::1]:3306"),
            ("-h fe80::1%eth0", &[], &[], SOCKET, "tcp [fe80::1%eth0]:3306"),
            ("-S /x.sock", &[], &[], SOCKET, "socket /x.sock"),
            ("-S /x.sock -h localhost", &[], &[], SOCKET, "socket /x.sock"),
            ("--protocol tcp", &[], &[], SOCKET, "tcp 127.0.0.1:3306"),
            ("--protocol tcp -h localhost", &[], &[], SOCKET, "tcp localhost:3306"),
            ("--protocol socket", &[], &[], SOCKET, "socket /tmp/mysql.sock"),
            // Option files name a port and a socket side by side.
            ("", &[], BOTH, &[], "socket /file.sock"),
            ("-h localhost", &[], BOTH, SOCKET, "socket /file.sock"),
            ("-h db2", &[], BOTH, SOCKET, "tcp db2:3306"),
            ("-P 3307", &[], BOTH, SOCKET, "tcp 127.0.0.1:3307"),
            ("--protocol tcp", &[], BOTH, SOCKET, "tcp 127.0.0.1:3306"),
            ("--url mysql://db2/", &[], BOTH, SOCKET, "tcp db2:3306"),
            ("--url mysql://localhost/", &[], BOTH, SOCKET, "socket /file.sock"),
            ("", &[], PORT, SOCKET, "tcp 127.0.0.1:3307"),
            ("--protocol socket", &[], PORT, SOCKET, "socket /tmp/mysql.sock"),
            ("-S /x.sock", &[], REMOTE, &[], "socket /x.sock"),
            ("", &[], REMOTE, &[], "tcp db1:3306"),
            ("-h localhost", &[], REMOTE, &[], "socket /file.sock"),
            ("", &[], TCP, SOCKET, "tcp 127.0.0.1:3306"),
            ("-S /x.sock", &[], TCP, SOCKET, "socket /x.sock"),
            // The environment.
            ("", &["MYSQL_UNIX_PORT=/env.sock"], &[], SOCKET, "socket /env.sock"),
            (
                "",
                &["MYSQL_UNIX_PORT=/env.sock", "MYSQL_TCP_PORT=5"],
                &[],
                SOCKET,
                "socket /env.sock",
            ),
            ("", &["MYSQL_TCP_PORT=5"], &[], SOCKET, "tcp 127.0.0.1:5"),
            ("", &["MYSQL_UNIX_PORT=/env.sock"], PORT, SOCKET, "socket /env.sock"),
            ("", &["MYSQL_HOST=env"], BOTH, SOCKET, "tcp env:3306"),
            ("", &["MYSQL_TCP_PORT=5"], BOTH, SOCKET, "socket /file.sock"),
            // A URL.
            ("--url mysql://localhost:3306/", &[], &[], SOCKET, "tcp localhost:3306"),
            ("--url mysql://localhost/?socket=/u.sock", &[], PORT, SOCKET, "socket /u.sock"),
            ("--url mysql://db1:1/ -S /x.sock", &[], &[], SOCKET, "socket /x.sock"),
            ("--url mysql:///?socket=/u.sock -P 3307", &[], &[], SOCKET, "tcp 127.0.0.1:3307"),
        ] {
            assert_eq!(
                address_of(line, &world(vars, files, sockets)),
                wanted,
                "{line} {vars:?} {files:?}"
            );
        }
    }

    #[test]
    fn contradictions_name_both_inputs() {
        let env = world(&[], &[], SOCKET);
        for (line, a, b) in [
            ("-S /x -h db1", "--host", "--socket"),
            ("-S /x -P 3306", "--port", "--socket"),
            ("-S /x --protocol tcp", "--protocol", "--socket"),
            ("--protocol socket -h db1", "--host", "--protocol"),
            ("--protocol socket -P 1", "--port", "--protocol"),
            ("--url mysql://db1/?socket=/x", "the host of --url", "the socket of --url"),
            ("--url mysql://localhost:1/?socket=/x", "the port of --url", "the socket of --url"),
            ("--ssl-mode REQUIRED -S /x", "--ssl-mode", "--socket (/x)"),
            ("--ssl-mode REQUIRED", "--ssl-mode", "/tmp/mysql.sock"),
            ("--ssl-mode DISABLED --ssl-ca /c", "--ssl-mode is DISABLED", "--ssl-ca (/c)"),
            ("--ssl-cert /c -h db1", "--ssl-mode", "--ssl-cert"),
            ("-h db1 --ssl-mode VERIFY_CA", "VERIFY_CA", "--ssl-ca"),
            ("-h db1 --ssl-mode REQUIRED --ssl-cert /c", "--ssl-cert (/c)", "--ssl-key"),
            ("-h db1 --ssl-mode REQUIRED --ssl-key /k", "--ssl-key (/k)", "--ssl-cert"),
        ] {
            let error = error(line, &env);
            let text = error.to_string();
            assert!(text.contains(a) && text.contains(b), "{line}: {text}");
        }
        assert!(error("--protocol socket", &world(&[], &[], &[])).hints()[0].contains("-S"));
    }

    #[test]
    fn wrong_values_name_their_source() {
        let file = |text: &'static str| -> Env {
            let files: Files = Box::leak(Box::new([("/etc/my.cnf", 0o600, text)]));
            world(&[], files, &[])
        };
        for (text, a) in [
            ("[client]\nport=x", "/etc/my.cnf:2: port: 'x'"),
            ("[client]\nhost", "/etc/my.cnf:2: host: needs a value"),
            ("[client]\nprotocol=pipe", "/etc/my.cnf:2: protocol: 'pipe'"),
            ("[client]\nssl-mode=on", "/etc/my.cnf:2: ssl-mode: 'on'"),
            ("[client]\nssl=maybe", "/etc/my.cnf:2: ssl: 'maybe'"),
            ("[loadgen]\nsokcet=/x", "/etc/my.cnf:2: sokcet"),
            ("[loadgen]\nconnect-timeout=0", "/etc/my.cnf:2: connect-timeout is 0"),
            ("[client]\nhost=db1:3306", "/etc/my.cnf:2: host is no host: 'db1:3306'"),
        ] {
            let error = error("", &file(text));
            assert!(error.to_string().starts_with(a), "{error}");
        }
        let unknown = error("", &file("[loadgen]\nsokcet=/x"));
        assert!(unknown.hints()[0].contains("socket, protocol"), "{unknown:?}");
        ok("", &file("[client]\nsokcet=/x\nssl-cipher=y\n[loadgen]\nloose-sokcet=/x"));

        let env = world(&["MYSQL_TCP_PORT=http"], &[], &[]);
        assert!(error("", &env).to_string().contains("MYSQL_TCP_PORT: 'http'"));
        let env = world(&[], &[], &[]);
        for (line, a) in [
            ("-h /tmp/x.sock", "--host is a path"),
            ("--connect-timeout 0", "--connect-timeout is 0"),
            ("--url mysql://h/?sokcet=/x", "unknown option 'sokcet'"),
            ("--url mysql://h/?user=x", "unknown option 'user'"),
            ("--url mysql://h/?ssl-mode=x", "--url has ssl-mode: 'x'"),
            ("--url pg://u:marker@h/", "--url does not start"),
        ] {
            let error = error(line, &env);
            assert!(error.to_string().contains(a) && !error.render().contains("marker"), "{error}");
        }
        let env = world(&["LOADGEN_URL=mysql://u:marker@h:x/"], &[], &[]);
        let error = error("", &env);
        assert!(error.to_string().starts_with("LOADGEN_URL") && !error.render().contains("marker"));
    }

    #[test]
    fn the_password_and_its_prompt() {
        const ASKS: Files = &[("/etc/my.cnf", 0o600, "[client]\npassword")];
        let env = || world(&["MYSQL_PWD=env"], FILE, &[]);
        let password = |line: &str, env: &Env| {
            let r = ok(line, env);
            (r.target.password.expose().to_owned(), r.wants_prompt)
        };
        assert_eq!(password("--password", &env()), (String::new(), true));
        assert_eq!(password("-p", &env()), (String::new(), true));
        assert_eq!(password("--password=", &env()), (String::new(), false));
        assert_eq!(password("--password-fd 7", &env()), ("from-7".into(), false));
        assert_eq!(password("--url mysql://u:a%40b@h/ -p", &env()), (String::new(), true));
        assert_eq!(password("--url mysql://u:a%40b@h/", &env()), ("a@b".into(), false));
        assert_eq!(password("", &world(&[], ASKS, &[])), (String::new(), true));
        assert_eq!(password("", &world(&[URL], ASKS, &[])), ("url".into(), false));
    }

    fn mode(line: &str, text: &'static str) -> (SslMode, usize) {
        let files: Files = Box::leak(Box::new([("/etc/my.cnf", 0o600, text)]));
        let r = ok(&format!("-h db1 {line}"), &world(&[], files, &[]));
        (r.target.ssl.mode, r.warnings.len())
    }

    #[test]
    fn encryption_is_off_until_somebody_switches_it_on() {
        use SslMode::{Disabled, Preferred, Required, VerifyCa, VerifyIdentity};
        for (line, text, wanted, warnings) in [
            ("", "", Disabled, 0),
            ("--ssl-mode preferred", "", Preferred, 0),
            ("--ssl-mode VERIFY_CA --ssl-ca /c", "", VerifyCa, 0),
            ("--url mysql://h/?ssl_mode=REQUIRED", "", Required, 0),
            // An option file that changes it is reported.
            ("", "[client]\nssl-mode=REQUIRED", Required, 1),
            ("", "[client]\nssl", Required, 1),
            ("", "[client]\nssl=0", Disabled, 0),
            ("", "[client]\nssl\nskip-ssl", Disabled, 0),
            ("", "[client]\nssl-mode=VERIFY_IDENTITY\nssl\nssl-ca=/c", VerifyIdentity, 1),
            ("", "[client]\nssl_ca=/c\nssl-verify-server-cert", VerifyIdentity, 1),
            (
                "",
                "[client]\nssl-ca=/c\nssl\nssl-verify-server-cert=on\ndisable-ssl-verify-server-cert",
                Required,
                2,
            ),
            ("", "[client]\nssl-verify-server-cert=OFF", Disabled, 0),
            ("", "[client]\nenable-ssl=TRUE", Required, 1),
            ("--ssl-mode DISABLED", "[client]\nssl-mode=REQUIRED", Disabled, 0),
            ("--ssl-mode REQUIRED", "[client]\nssl-mode=DISABLED", Required, 0),
            // Files that are of no use.
            ("", "[client]\nssl-ca=/c\nssl-cert=/d\nssl-key=/e", Disabled, 3),
            ("--ssl-mode REQUIRED --ssl-ca /c", "", Required, 1),
        ] {
            assert_eq!(mode(line, text), (wanted, warnings), "{line} {text}");
        }
        let r = ok("--ssl-mode PREFERRED -S /x", &world(&[], &[], &[]));
        assert_eq!(r.target.ssl, Ssl::default());
        assert!(r.warnings[0].contains("PREFERRED") && r.warnings[0].contains("/x"));
        let files: Files = &[("/etc/my.cnf", 0o600, "[client]\nssl-verify-server-cert")];
        let error = error("-h db1", &world(&[], files, &[]));
        assert!(
            error.to_string().contains("/etc/my.cnf:2") && error.to_string().contains("--ssl-ca")
        );
    }

    #[test]
    fn nothing_that_can_be_printed_shows_a_password() {
        let env = world(&["MYSQL_PWD=marker", "LOADGEN_URL=mysql://u:marker@h/"], &[], &[]);
        let a = ConnectionArgs { password: Some(Some(Secret::new("marker"))), ..args("") };
        let r = resolve(&a, &env).unwrap();
        let opts_are_for_the_driver_alone = r.target.opts().unwrap();
        assert_eq!(opts_are_for_the_driver_alone.pass(), Some("marker"));
        let shown = format!("{a:?}{r:?}{:#?}{env:?}{}{:?}", r.target, r.target, r.target.password);
        assert!(!shown.contains("marker"), "{shown}");
    }

    /// The parts of a URL in order, but for the port.
    fn of(url: &str) -> Vec<(String, String)> {
        parts(&Secret::new(url)).unwrap()
    }

    fn texts(parts: &[(&str, &str)]) -> Vec<(String, String)> {
        parts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn every_part_of_a_url_is_decoded() {
        let url = "mysql://a%40b:p%3A%2F%23%40%25%C3%BC@db.example:3307/my%2Ddb?socket=/tmp/a+b%20c&ssl_ca=1";
        let wanted = [
            ("user", "a@b"),
            ("password", "p:/#@%ü"),
            ("host", "db.example"),
            ("database", "my-db"),
            ("port", "3307"),
            ("socket", "/tmp/a+b c"),
            ("ssl-ca", "1"),
        ];
        assert_eq!(of(url), texts(&wanted));
    }

    #[test]
    fn what_a_url_does_not_say_stays_open() {
        let said = |url| -> Vec<_> {
            of(url).into_iter().filter(|(_, value)| !value.is_empty()).collect()
        };
        assert_eq!(said("mysql://db1"), texts(&[("host", "db1")]));
        assert_eq!(said("mysql:///db"), texts(&[("database", "db")]));
        let local = [("user", "root"), ("host", "[::1]"), ("port", "3306")];
        assert_eq!(said("mysql://root@[::1]:3306/"), texts(&local));
        assert_eq!(said("mysql://root:@h/"), texts(&[("user", "root"), ("host", "h")]));
    }

    #[test]
    fn errors_about_a_url_do_not_show_it() {
        for url in [
            "mysql://u:marker#x@h/db",
            "mysql://u:marker@h:99999/db",
            "postgres://u:marker@h/db",
            "u:marker@h",
            "mysql:u:marker@h",
            "mysql://u:marker@h/a/b",
            "mysql://u:marker%FF@h/db",
            "mysql://u:marker@h/db?socket",
            "mysql://u:marker@h/db#x",
        ] {
            let error = parts(&Secret::new(url)).unwrap_err();
            assert!(!error.contains("marker"), "{error}");
        }
    }

    #[test]
    fn the_password_comes_out_of_a_url_and_the_rest_stays() {
        let (password, rest) =
            without_password(&Secret::new("mysql://u:p%40w@h:1/db?ssl-mode=REQUIRED")).unwrap();
        assert_eq!(password.expose(), "p@w");
        assert_eq!(rest, "mysql://u@h:1/db?ssl-mode=REQUIRED");
        assert!(without_password(&Secret::new("mysql://u@h/db")).is_none());
        assert!(without_password(&Secret::new("nonsense")).is_none());
    }

    proptest! {
        #[test]
        fn any_password_survives_encoding(password in "\\PC{1,30}", text in "\\PC{0,40}") {
            let encoded = percent_encoding::utf8_percent_encode(
                &password, percent_encoding::NON_ALPHANUMERIC);
            let url = Secret::new(format!("mysql://u:{encoded}@h:3306/db"));
            let known = ("password".to_owned(), password.clone());
            prop_assert!(parts(&url).unwrap().contains(&known));
            prop_assert_eq!(without_password(&url).unwrap().0, Secret::new(password));
            let _ = parts(&Secret::new(format!("mysql://{text}")));
            let _ = parts(&Secret::new(text));
        }
    }
}
