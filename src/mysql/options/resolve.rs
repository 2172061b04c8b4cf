//! Resolves flags, URL, option files and environment to one [`ConnectOptions`].
//!
//! The strongest value of each key counts: flag, URL, option file, environment, default. `protocol`,
//! `host`, `socket` and `port` together decide for TCP or the socket. Equally strong ones that
//! contradict each other are an error in flags and a URL, and settled as in the MySQL clients
//! elsewhere: option files usually hold a port *and* a socket.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use percent_encoding::percent_decode_str;
use url::Url;

use super::files::{self, Env, SHORTEST, Setting, Strength};
use super::{
    Address, CONNECT_TIMEOUT, ConnectOptions, ConnectionArgs, DEFAULT_PORT, Protocol, Secret, Ssl,
    SslMode,
};
use crate::error::{Error, Kind, Result};
use crate::progress::Progress;
use crate::stop::{Stop, unless_stopped};
use crate::terms::units;

const DEFAULT_DATABASE: &str = "sbtest";

const USUAL_SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/tmp/mysql.sock",
    "/var/lib/mysql/mysql.sock",
];

#[derive(Debug)]
pub struct Resolved {
    /// The server; its password is empty if `wants_prompt`.
    pub target: ConnectOptions,
    /// Notes for the user: ignored files, encryption that an option file switched on.
    pub warnings: Vec<String>,
    pub wants_prompt: bool,
}

/// Resolves the flags, and asks for the password on the terminal, without echo, if need be.
pub fn find(
    args: &ConnectionArgs,
    env: Env,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<ConnectOptions> {
    let args = args.clone();
    // Reading an option file may block: it may be a pipe.
    let resolved = unless_stopped(stop, move || resolve(&args, &env))?;
    let Resolved { mut target, warnings, wants_prompt } = resolved;
    if wants_prompt {
        let question =
            crate::error::line(&format!("Password for {}@{}: ", target.user, target.address));
        let asked = rpassword::prompt_password(question).map_err(|e| match e.kind() {
            // Ctrl-C is no signal while the terminal does not echo.
            ErrorKind::Interrupted => Error::new(Kind::Interrupted, "interrupted"),
            _ => Error::usage(format!("cannot ask for the password: {e}"))
                .hint("without a terminal: MYSQL_PWD, an option file, or --password-fd"),
        });
        target.password = asked.map(Secret::new)?;
    }
    for warning in &warnings {
        progress.warn(warning);
    }
    Ok(target)
}

/// Resolves the flags in an environment. Opens no connection and asks nothing.
pub fn resolve(args: &ConnectionArgs, env: &Env) -> Result<Resolved> {
    let files::Read { settings, mut warnings } = files::read(args, env)?;
    let mut inputs = Inputs::from_flags(args, env)?;
    for (name, key) in VARIABLES {
        if let Some(value) = env.text(name)? {
            inputs.set_text(key, Some(&value), Strength::Environment, name)?;
        }
    }
    for Setting { key, value, strength, loose, at } in settings {
        // A line may be `password secret`, or a password alone: only known keys are shown.
        let word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let first = key.split(|c| !word(c)).next().unwrap_or_default();
        let from = if is_known(complete_key(first)) { format!("{at}: {first}") } else { at };
        let known = inputs.set_text(&key, value.as_deref(), strength, &from)?;
        if strength == Strength::Own && !loose && !known {
            return Err(Error::usage(format!("{from}: group [loadgen] has an unknown key"))
                .hint(format!("it knows {KEYS}, {URL_KEYS}"))
                .hint("write loose-KEY: loadgen ignores it if unknown"));
        }
    }
    let variable = env.text("LOADGEN_URL")?.map(Secret::new);
    let variable = variable.as_ref().map(|url| (url, "LOADGEN_URL"));
    if let Some((url, name)) = args.url.as_ref().map(|url| (url, "--url")).or(variable) {
        let wrong = |why| Error::usage(format!("{name} {why}")).hint(URL_FORM);
        for (key, value) in split_url(url).map_err(wrong)? {
            // Missing parts of a URL stay open; without a password there is none.
            if value.is_empty() && key != "password" {
                continue;
            }
            let from = format!("the {key} of {name}");
            let taken = inputs.set_text(&key, Some(&value), Strength::Url, &from);
            taken.map_err(|error| error.hint(URL_FORM))?;
        }
    }
    let (address, others) = address(&inputs, env)?;
    let ssl = ssl(&inputs, &address, &mut warnings)?;
    let values = inputs.values;
    let connect_timeout = values.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
    if connect_timeout.is_zero() {
        let (_, from) = &inputs.by["connect-timeout"];
        return Err(Error::usage(format!("{from} is 0: no server is that fast")));
    }
    let user = values.user.or_else(|| env.os_user.clone()).ok_or_else(|| {
        Error::usage("this account of the operating system has no name").hint("-u names one")
    })?;
    let wants_prompt = values.password == Some(None);
    let password = values.password.flatten().unwrap_or_default();
    let database = values.database.unwrap_or_else(|| DEFAULT_DATABASE.to_owned());
    let target = ConnectOptions { address, others, user, password, database, ssl, connect_timeout };
    Ok(Resolved { target, warnings, wants_prompt })
}

impl ConnectionArgs {
    /// Reads the password of a descriptor, which comes once, for those who resolve the flags again.
    pub(crate) fn with_password(mut self, env: &Env) -> Result<ConnectionArgs> {
        if let Some(fd) = self.password_fd.take() {
            self.password = Some(Some((env.read_fd)(fd)?));
        }
        Ok(self)
    }

    /// Returns whether these name a server: the two flags left out leave open which one.
    pub(crate) fn name_server(&self, env: &Env) -> Result<bool> {
        let ConnectionArgs { no_defaults, connect_timeout, .. } = *self;
        let nameless = ConnectionArgs { no_defaults, connect_timeout, ..Default::default() };
        Ok(*self != nameless || env.text("LOADGEN_URL")?.is_some())
    }
}

struct Inputs {
    values: ConnectionArgs,
    /// The strength of each key, and its origin in messages: `--host`, `/etc/my.cnf:3: host`, `the host of
    /// --url`.
    by: BTreeMap<String, (Strength, String)>,
}

const VARIABLES: [(&str, &str); 4] = [
    ("MYSQL_HOST", "host"),
    ("MYSQL_TCP_PORT", "port"),
    ("MYSQL_UNIX_PORT", "socket"),
    ("MYSQL_PWD", "password"),
];
/// The keys of `[loadgen]` beside those of a URL's options.
const KEYS: &str = "host, port, user, password, database, ssl, ssl-verify-server-cert";
const URL_KEYS: &str = "socket, protocol, ssl-mode, ssl-ca, ssl-cert, ssl-key, connect-timeout";
const URL_FORM: &str = "mysql://USER:PASSWORD@HOST:PORT/DATABASE?ssl-mode=REQUIRED&socket=/PATH, \
                        with %40 for an @ and so on";

fn is_known(key: &str) -> bool {
    keys().any(|known| known == key)
}

impl Inputs {
    fn from_flags(args: &ConnectionArgs, env: &Env) -> Result<Inputs> {
        let values = args.clone().with_password(env)?;
        let given = [
            ("host", values.host.is_some()),
            ("port", values.port.is_some()),
            ("user", values.user.is_some()),
            ("password", values.password.is_some()),
            ("database", values.database.is_some()),
            ("socket", values.socket.is_some()),
            ("protocol", values.protocol.is_some()),
            ("ssl-mode", values.ssl_mode.is_some()),
            ("ssl-ca", values.ssl_ca.is_some()),
            ("ssl-cert", values.ssl_cert.is_some()),
            ("ssl-key", values.ssl_key.is_some()),
            ("connect-timeout", values.connect_timeout.is_some()),
        ];
        let given = given.into_iter().filter(|(_, given)| *given);
        let by = given.map(|(key, _)| (key.to_owned(), (Strength::Flag, format!("--{key}"))));
        Ok(Inputs { values, by: by.collect() })
    }

    /// Sets a key from a text unless a flag sets it; returns whether the key is known.
    fn set_text(
        &mut self,
        key: &str,
        value: Option<&str>,
        strength: Strength,
        from: &str,
    ) -> Result<bool> {
        let wrong = |why| Error::usage(format!("{from}: {why}"));
        let (key, mode) = (complete_key(key), self.values.ssl_mode.unwrap_or_default());
        let switched = read_switch(mode, key, value).map_err(wrong)?;
        let (key, value) = match key {
            _ if switched.is_some() => ("ssl-mode", value),
            "skip-password" | "disable-password" => ("password", Some("")),
            key => (key, value),
        };
        if !is_known(key) {
            return Ok(false);
        }
        let by = self.by.get(key).map(|(strength, _)| *strength);
        if switched.is_none() && means_default(key, value, strength) {
            if matches!(by, Some(Strength::Shared | Strength::Own)) {
                set_value(&mut self.values, key, None).expect("no text to parse");
                self.by.remove(key);
            }
            return Ok(true);
        }
        let (mut overruled, by_flag) = (ConnectionArgs::default(), by == Some(Strength::Flag));
        let values = if by_flag { &mut overruled } else { &mut self.values };
        match switched {
            Some(_) => values.ssl_mode = switched,
            None if key == "password" => values.password = Some(value.map(Secret::new)),
            None if value.is_none() => return Err(wrong("needs a value".to_owned())),
            None => set_value(values, key, value).map_err(wrong)?,
        }
        if !by_flag {
            self.by.insert(key.to_owned(), (strength, from.to_owned()));
        }
        Ok(true)
    }

    fn display_value(&self, key: &str, file: &Path) -> String {
        format!("{} ({})", self.by[key].1, file.display())
    }
}

fn keys() -> impl Iterator<Item = &'static str> {
    KEYS.split(", ").chain(URL_KEYS.split(", "))
}

/// Completes an abbreviated key as the clients do (`pass`, `sock`); any other stays as it is.
fn complete_key(key: &str) -> &str {
    let mut longer = keys().filter(|known| key.len() >= SHORTEST && known.starts_with(key));
    match (longer.next(), longer.next()) {
        (Some(known), None) => known,
        _ => key,
    }
}

/// Returns whether a value stands for the default. An empty password means that there is none.
fn means_default(key: &str, value: Option<&str>, strength: Strength) -> bool {
    value.is_some_and(|value| match key {
        "password" => false,
        "port" if value.parse() == Ok(0) => true,
        // The clients take 0 as their default; in `[loadgen]` it is an error.
        "connect-timeout" if strength == Strength::Shared && value.parse() == Ok(0) => true,
        "protocol" if value.eq_ignore_ascii_case("default") => true,
        _ => value.is_empty(),
    })
}

/// Sets a key but the password, or unsets it. Errors do not show the text: it may be a misplaced password.
fn set_value(
    values: &mut ConnectionArgs,
    key: &str,
    text: Option<&str>,
) -> std::result::Result<(), String> {
    let path = || text.map(PathBuf::from);
    match key {
        "host" => values.host = text.map(str::to_owned),
        "user" => values.user = text.map(str::to_owned),
        "database" => values.database = text.map(str::to_owned),
        "socket" => values.socket = path(),
        "ssl-ca" => values.ssl_ca = path(),
        "ssl-cert" => values.ssl_cert = path(),
        "ssl-key" => values.ssl_key = path(),
        "ssl-mode" => {
            let modes = |_| format!("it takes {}", SslMode::list());
            values.ssl_mode = text.map(SslMode::parse).transpose().map_err(modes)?;
        }
        "connect-timeout" => {
            let time = text.map(units::parse_duration).transpose();
            values.connect_timeout = time.map_err(|_| "it takes a time such as 10s")?;
        }
        "port" => {
            let port = text.map(str::parse).transpose();
            values.port = port.map_err(|_| "it takes a number up to 65535")?;
        }
        "protocol" => values.protocol = text.map(protocol).transpose()?,
        _ => unreachable!("'{key}' is one of KEYS"),
    }
    Ok(())
}

/// Reads a protocol, abbreviated or not, as the clients do.
fn protocol(value: &str) -> std::result::Result<Protocol, String> {
    let lower = value.to_ascii_lowercase();
    let means = |name: &str| name.starts_with(&lower);
    let named =
        |protocol: &&Protocol| protocol.to_possible_value().is_some_and(|v| means(v.get_name()));
    let found = Protocol::value_variants().iter().find(named);
    found.copied().ok_or_else(|| "it takes tcp or socket".to_owned())
}

/// Reads the older switches `ssl` and `ssl-verify-server-cert`, with `skip-`, `disable-` and
/// `enable-`. Each moves the mode of the lines before; None for another key.
fn read_switch(
    mode: SslMode,
    key: &str,
    value: Option<&str>,
) -> std::result::Result<Option<SslMode>, String> {
    let off = key.strip_prefix("skip-").or_else(|| key.strip_prefix("disable-"));
    let name = off.or_else(|| key.strip_prefix("enable-")).unwrap_or(key);
    if !matches!(name, "ssl" | "ssl-verify-server-cert") {
        return Ok(None);
    }
    let is_on = match value.unwrap_or("1").to_ascii_lowercase().as_str() {
        "1" | "on" | "true" => true,
        "0" | "off" | "false" => false,
        _ => return Err("it takes on or off".to_owned()),
    };
    Ok(Some(match (name, is_on != off.is_some()) {
        ("ssl", true) => mode.max(SslMode::Required),
        ("ssl", false) => SslMode::Disabled,
        (_, true) => SslMode::VerifyIdentity,
        (_, false) => mode.min(SslMode::Required),
    }))
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

fn decode(what: &str, text: &str) -> std::result::Result<String, String> {
    let text = percent_decode_str(text).decode_utf8();
    text.map(Into::into).map_err(|_| format!("holds a {what} that is no UTF-8"))
}

/// Splits a URL into decoded keys and values; errors do not show it.
fn split_url(text: &Secret) -> std::result::Result<Vec<(String, String)>, String> {
    let url = read_url(text)?;
    let database = url.path().strip_prefix('/').unwrap_or_default();
    if database.contains('/') {
        return Err("has more than a database for its path".to_owned());
    }
    // An IPv6 zone has a % of its own.
    let is_list = |host: &str| host.contains(',') || host.to_ascii_lowercase().contains("%2c");
    if url.host_str().is_some_and(is_list) {
        return Err("names one host; --host takes several".to_owned());
    }
    let mut parts = Vec::new();
    for (key, value) in [
        ("user", Some(url.username())),
        ("password", url.password()),
        ("host", url.host_str()),
        ("database", Some(database)),
    ] {
        if let Some(value) = value {
            parts.push((key.to_owned(), decode(key, value)?));
        }
    }
    parts.extend(url.port().map(|port| ("port".to_owned(), port.to_string())));
    for pair in url.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) =
            pair.split_once('=').ok_or("has an option without a value after its '?'")?;
        let key = decode("option", key)?.replace('_', "-");
        if !URL_KEYS.split(", ").any(|known| known == key) {
            return Err(format!("has an unknown option '{key}'; there are {URL_KEYS}"));
        }
        parts.push((key, decode("option", value)?));
    }
    Ok(parts)
}

/// Removes the password from a URL, even from one that is then refused; None where it holds none, or is no URL.
pub(super) fn without_password(text: &Secret) -> Option<(Secret, String)> {
    let mut url = Url::parse(text.expose()).ok()?;
    let password = decode("password", url.password()?).ok()?;
    url.set_password(None).ok()?;
    Some((Secret::new(password), url.to_string()))
}

/// Returns the address, and others if the host is a list of several.
fn address(Inputs { values, by }: &Inputs, env: &Env) -> Result<(Address, Vec<Address>)> {
    let remote = values.host.as_ref().filter(|host| !host.eq_ignore_ascii_case("localhost"));
    // The first of equally strong ones counts, as in MariaDB's client.
    let votes = [
        ("host", remote.map(|_| Protocol::Tcp)),
        ("protocol", values.protocol),
        ("socket", values.socket.as_ref().map(|_| Protocol::Socket)),
        ("port", values.port.map(|_| Protocol::Tcp)),
    ];
    let votes = votes.into_iter().filter_map(|(key, means)| by.get(key).zip(means));
    let votes: Vec<_> = votes.collect();
    for ((strength, tcp), _) in votes.iter().filter(|(_, means)| *means == Protocol::Tcp) {
        let against = |((other, _), means): &&(&(Strength, _), _)| {
            other == strength && *strength >= Strength::Url && *means == Protocol::Socket
        };
        if let Some(((_, socket), _)) = votes.iter().find(against) {
            let message = format!("{tcp} means TCP, {socket} the Unix socket: give one of them");
            return Err(Error::usage(message));
        }
    }
    let list = values.host.iter().flat_map(|list| list.split(','));
    let hosts = list.map(|host| host_and_port(host.trim(), &by["host"].1));
    let hosts = hosts.collect::<Result<Vec<_>>>()?;
    // Option files and environment are equally strong: MYSQL_HOST must not lose to a [client] socket.
    let strongest =
        votes.iter().rev().max_by_key(|((strength, _), _)| (*strength).max(Strength::Shared));
    let usual = || USUAL_SOCKETS.map(PathBuf::from).into_iter().find(|path| (env.is_socket)(path));
    let socket = || values.socket.clone().or_else(usual);
    let port = values.port.unwrap_or(DEFAULT_PORT);
    let of_host = |(host, own): (String, Option<u16>)| {
        let port = own.unwrap_or(port);
        Address::Tcp { host, port }
    };
    let tcp = || {
        let mut all = hosts.into_iter().map(of_host);
        let first = all.next().unwrap_or_else(|| of_host(("127.0.0.1".to_owned(), None)));
        (first, all.collect())
    };
    let one = |path| (Address::Socket(path), Vec::new());
    match strongest {
        Some((_, Protocol::Tcp)) => Ok(tcp()),
        Some(((_, from), Protocol::Socket)) => socket().map(one).ok_or_else(|| {
            Error::usage(format!("{from}: there is no socket at {}", USUAL_SOCKETS.join(", ")))
                .hint("-S names it")
        }),
        None => Ok(socket().map_or_else(tcp, one)),
    }
}

/// Splits the port off a host of a list: `db1:3307`, `[::1]:3308`.
fn host_and_port(host: &str, from: &str) -> Result<(String, Option<u16>)> {
    let ends = |at: &usize| host.find(':') == Some(*at) || host[..*at].ends_with(']');
    let colon = host.rfind(':').filter(|at| ends(at) && !host.contains('@'));
    let (name, port) = colon.map_or((host, None), |at| (&host[..at], Some(&host[at + 1..])));
    let name = host_name(name, from)?;
    // Not shown: it may be a part of a password.
    let wrong = |what| Err(Error::usage(format!("{from} {what}")).hint("a,b:3307,[::1]:3308"));
    match port.map(str::parse) {
        _ if name.is_empty() => wrong("has a host without a name"),
        Some(Err(_) | Ok(0)) => wrong("has no port from 1 to 65535 behind its ':'"),
        port => Ok((name, port.map(|port| port.expect("a number")))),
    }
}

fn host_name(host: &str, from: &str) -> Result<String> {
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    // A zone may follow the address.
    let ipv6 = bare.split('%').next().is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok());
    let odd = [
        // Not shown: it may hold a password.
        (host.contains('@'), "no host: it holds '@'", "--url takes a URL with user and password"),
        (host.starts_with('/'), "a path", "-S names a socket"),
        (bare.contains(':') && !ipv6, "no host: it holds ':'", "-P names the port"),
    ];
    match odd.into_iter().find(|(is_odd, ..)| *is_odd) {
        Some((_, what, hint)) => Err(Error::usage(format!("{from} is {what}")).hint(hint)),
        None => Ok(bare.to_owned()),
    }
}

fn ssl(inputs: &Inputs, address: &Address, warnings: &mut Vec<String>) -> Result<Ssl> {
    let given = inputs.by.get("ssl-mode");
    let from = given.map_or("--ssl-mode", |(_, from)| from);
    let ConnectionArgs { ssl_mode, ssl_ca, ssl_cert, ssl_key, socket, .. } = &inputs.values;
    let mode = ssl_mode.unwrap_or_default();
    let files = [("ssl-ca", ssl_ca), ("ssl-cert", ssl_cert), ("ssl-key", ssl_key)];
    let files =
        files.map(|(key, file)| file.as_ref().map(|file| (key, inputs.display_value(key, file))));
    if mode == SslMode::Disabled {
        for (key, shown) in files.into_iter().flatten() {
            let unset = if given.is_none() { " where it is not given" } else { "" };
            let why = format!("{from} is DISABLED{unset}");
            // A user who names them for loadgen expects encryption.
            if inputs.by[key].0 >= Strength::Url {
                return Err(Error::usage(format!("{shown} is of no use: {why}"))
                    .hint("--ssl-mode VERIFY_IDENTITY, VERIFY_CA or REQUIRED encrypts"));
            }
            warnings.push(format!("{shown} is not used: {why}"));
        }
        return Ok(Ssl::default());
    }
    if given.is_some_and(|(strength, _)| matches!(strength, Strength::Shared | Strength::Own)) {
        warnings.push(format!("{from} makes ssl-mode {mode}: connections are encrypted"));
    }
    if let Address::Socket(_) = address {
        if mode == SslMode::Preferred {
            warnings.push(format!("{from} PREFERRED has no effect over the socket {address}"));
            return Ok(Ssl::default());
        }
        let socket = socket
            .as_ref()
            .map_or_else(|| address.to_string(), |path| inputs.display_value("socket", path));
        let message = format!("{from} ({mode}) and the socket {socket}: no TLS goes over a socket");
        return Err(Error::usage(message).hint("--protocol tcp, or --ssl-mode DISABLED"));
    }
    match &files[0] {
        None if mode.verifies() => {
            return Err(Error::usage(format!("{from}: ssl-mode {mode} needs --ssl-ca"))
                .hint("--ssl-ca /etc/ssl/certs/ca-certificates.crt trusts the public authorities")
                .hint("--ssl-mode REQUIRED encrypts and verifies nothing"));
        }
        Some((_, ca)) if !mode.verifies() => {
            warnings.push(format!("{ca} is not used: ssl-mode {mode} verifies nothing"));
        }
        _ => {}
    }
    match &files[1..] {
        [Some((_, one)), None] => return Err(Error::usage(format!("{one} needs --ssl-key"))),
        [None, Some((_, one))] => return Err(Error::usage(format!("{one} needs --ssl-cert"))),
        _ => {}
    }
    let ca = ssl_ca.clone().filter(|_| mode.verifies());
    Ok(Ssl { mode, ca, cert: ssl_cert.clone(), key: ssl_key.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::help_without_h;
    use crate::mysql::options::files::fake::{self, Files};
    use clap::{Args, Command, FromArgMatches};
    use proptest::prelude::*;
    use std::time::Duration;

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

    /// A world of one option file.
    fn with_file(text: &str) -> Env {
        let text: &'static str = text.to_owned().leak();
        let files: Files = Box::leak(Box::new([("/etc/my.cnf", 0o600, text)]));
        world(&[], files, &[])
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

    #[test]
    fn server_is_named_by_more_than_what_to_leave_out_and_how_long_to_wait() {
        let connect_timeout = Some(Duration::from_secs(3));
        let nameless =
            ConnectionArgs { no_defaults: true, connect_timeout, ..ConnectionArgs::default() };
        let named = ConnectionArgs { port: Some(3307), ..nameless.clone() };
        let (nothing, url) = (world(&[], &[], &[]), world(&["LOADGEN_URL=mysql://h/"], &[], &[]));
        let cases = [(&nameless, &nothing), (&nameless, &url), (&named, &nothing)];
        let found = cases.map(|(args, env)| args.name_server(env).expect("text"));
        assert_eq!(found, [false, true, true]);
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
    fn list_of_hosts_has_an_address_each() {
        let files: Files = &[("/etc/my.cnf", 0o600, "[client]\nhost=a, b:3307\nport=4\nsocket=/x")];
        let all = |line: &str, env: &Env| ok(line, env).target.name_addresses();
        assert_eq!(all("", &world(&[], files, SOCKET)), "a:4,b:3307");
        let none = world(&[], &[], SOCKET);
        let line = "-h a,b:3307,[::1]:3308,::1,[fe80::1%eth0] -P 3309";
        let wanted = "a:3309,b:3307,[::1]:3308,[::1]:3309,[fe80::1%eth0]:3309";
        assert_eq!(all(line, &none), wanted);
        assert_eq!(all("-h localhost:3307", &none), "localhost:3307");
        assert_eq!(all("-h localhost", &none), "/tmp/mysql.sock");
    }

    #[test]
    fn the_group_of_loadgen_counts_like_the_clients() {
        let text = "[client]\nhost=a\nuser=client\n[loadgen]\nuser=loadgen\nport=0\ndatabase=\n[other]\nuser=other";
        assert_eq!(all("", &with_file(text)), "a:3306 loadgen  sbtest 10");
    }

    const BOTH: Files = &[("/etc/my.cnf", 0o600, "[client]\nport=3306\nsocket=/file.sock")];
    const PORT: Files = &[("/etc/my.cnf", 0o600, "[client]\nport=3307")];
    const TCP: Files = &[("/etc/my.cnf", 0o600, "[client]\nprotocol=TCP\nsocket=/file.sock")];
    const REMOTE: Files = &[("/etc/my.cnf", 0o600, "[client]\nhost=db1\nsocket=/file.sock")];

    /// As Debian has it, and what a user adds.
    const DEBIAN_PORT: Files = &[
        ("/etc/my.cnf", 0o644, "[client-server]\nsocket=/run/mysqld/mysqld.sock"),
        ("/etc/mysql/my.cnf", 0o600, "[client]\nport=3307"),
    ];
    const DEBIAN_OWN_PORT: Files = &[
        ("/etc/my.cnf", 0o644, "[client-mariadb]\nsocket=/run/mysqld/mysqld.sock"),
        ("/etc/mysql/my.cnf", 0o600, "[loadgen]\nport=3307"),
    ];
    const SERVER_TCP: Files =
        &[("/etc/my.cnf", 0o644, "[client-server]\nhost=127.0.0.1\nport=3307\nuser=root")];
    const SOCKET_TO_DB1: Files =
        &[("/etc/my.cnf", 0o600, "[client]\nprotocol=SOCKET\nhost=db1\nsocket=/file.sock")];
    const SHORT_TCP: Files = &[("/etc/my.cnf", 0o600, "[client]\nProt=T\nSock=/file.sock")];
    const SHORT_SOCKET: Files = &[("/etc/my.cnf", 0o600, "[client]\nprotocol=s\nport=3307")];

    struct Way {
        line: &'static str,
        vars: &'static [&'static str],
        files: Files,
        sockets: &'static [&'static str],
        wanted: &'static str,
    }

    /// The base of the ways: nothing is said, and there is a socket.
    const LOCAL: Way = Way { line: "", vars: &[], files: &[], sockets: SOCKET, wanted: "" };

    const WAYS: [Way; 43] = [
        // No host, or localhost, without a port: the socket where there is one.
        Way { line: "-h localhost", wanted: "socket /tmp/mysql.sock", ..LOCAL },
        Way { line: "-h LOCALHOST", sockets: &[], wanted: "tcp LOCALHOST:3306", ..LOCAL },
        Way { line: "-h localhost -P 3307", wanted: "tcp localhost:3307", ..LOCAL },
        Way { line: "-P 3307", wanted: "tcp 127.0.0.1:3307", ..LOCAL },
        Way { line: "-h 127.0.0.1", wanted: "tcp 127.0.0.1:3306", ..LOCAL },
        Way { line: "-h [::1]", wanted: "tcp [::1]:3306", ..LOCAL },
        Way { line: "-h fe80::1%eth0", wanted: "tcp [fe80::1%eth0]:3306", ..LOCAL },
        Way { line: "-S /x.sock", wanted: "socket /x.sock", ..LOCAL },
        Way { line: "-S /x.sock -h localhost", wanted: "socket /x.sock", ..LOCAL },
        Way { line: "--protocol tcp", wanted: "tcp 127.0.0.1:3306", ..LOCAL },
        Way { line: "--protocol tcp -h localhost", wanted: "tcp localhost:3306", ..LOCAL },
        Way { line: "--protocol socket", wanted: "socket /tmp/mysql.sock", ..LOCAL },
        // Option files name a port and a socket side by side.
        Way { files: BOTH, sockets: &[], wanted: "socket /file.sock", ..LOCAL },
        Way { line: "-h localhost", files: BOTH, wanted: "socket /file.sock", ..LOCAL },
        Way { line: "-h db2", files: BOTH, wanted: "tcp db2:3306", ..LOCAL },
        Way { line: "-P 3307", files: BOTH, wanted: "tcp 127.0.0.1:3307", ..LOCAL },
        Way { line: "--protocol tcp", files: BOTH, wanted: "tcp 127.0.0.1:3306", ..LOCAL },
        Way { line: "--url mysql://db2/", files: BOTH, wanted: "tcp db2:3306", ..LOCAL },
        Way { line: "--url mysql://localhost/", files: BOTH, wanted: "socket /file.sock", ..LOCAL },
        Way { files: PORT, wanted: "tcp 127.0.0.1:3307", ..LOCAL },
        Way { line: "--protocol socket", files: PORT, wanted: "socket /tmp/mysql.sock", ..LOCAL },
        Way { line: "-S /x.sock", files: REMOTE, sockets: &[], wanted: "socket /x.sock", ..LOCAL },
        Way { files: REMOTE, sockets: &[], wanted: "tcp db1:3306", ..LOCAL },
        Way {
            line: "-h localhost",
            files: REMOTE,
            sockets: &[],
            wanted: "socket /file.sock",
            ..LOCAL
        },
        Way { files: TCP, wanted: "tcp 127.0.0.1:3306", ..LOCAL },
        Way { line: "-S /x.sock", files: TCP, wanted: "socket /x.sock", ..LOCAL },
        Way { files: DEBIAN_PORT, sockets: &[], wanted: "socket /run/mysqld/mysqld.sock", ..LOCAL },
        Way { files: DEBIAN_OWN_PORT, sockets: &[], wanted: "tcp 127.0.0.1:3307", ..LOCAL },
        Way { files: SERVER_TCP, wanted: "tcp 127.0.0.1:3307", ..LOCAL },
        Way { files: SOCKET_TO_DB1, wanted: "tcp db1:3306", ..LOCAL },
        Way {
            line: "--protocol socket",
            files: SOCKET_TO_DB1,
            wanted: "socket /file.sock",
            ..LOCAL
        },
        Way { files: SHORT_TCP, wanted: "tcp 127.0.0.1:3306", ..LOCAL },
        Way { files: SHORT_SOCKET, wanted: "socket /tmp/mysql.sock", ..LOCAL },
        // The environment.
        Way { vars: &["MYSQL_UNIX_PORT=/env.sock"], wanted: "socket /env.sock", ..LOCAL },
        Way {
            vars: &["MYSQL_UNIX_PORT=/env.sock", "MYSQL_TCP_PORT=5"],
            wanted: "socket /env.sock",
            ..LOCAL
        },
        Way { vars: &["MYSQL_TCP_PORT=5"], wanted: "tcp 127.0.0.1:5", ..LOCAL },
        Way {
            vars: &["MYSQL_UNIX_PORT=/env.sock"],
            files: PORT,
            wanted: "socket /env.sock",
            ..LOCAL
        },
        Way { vars: &["MYSQL_HOST=env"], files: BOTH, wanted: "tcp env:3306", ..LOCAL },
        Way { vars: &["MYSQL_TCP_PORT=5"], files: BOTH, wanted: "socket /file.sock", ..LOCAL },
        // A URL.
        Way { line: "--url mysql://localhost:3306/", wanted: "tcp localhost:3306", ..LOCAL },
        Way {
            line: "--url mysql://localhost/?socket=/u.sock",
            files: PORT,
            wanted: "socket /u.sock",
            ..LOCAL
        },
        Way { line: "--url mysql://db1:1/ -S /x.sock", wanted: "socket /x.sock", ..LOCAL },
        Way {
            line: "--url mysql:///?socket=/u.sock -P 3307",
            wanted: "tcp 127.0.0.1:3307",
            ..LOCAL
        },
    ];

    #[test]
    fn tcp_or_socket() {
        for Way { line, vars, files, sockets, wanted } in WAYS {
            assert_eq!(
                address_of(line, &world(vars, files, sockets)),
                wanted,
                "{line} {vars:?} {files:?}"
            );
        }
    }

    #[test]
    fn a_key_counts_as_for_the_clients_when_written_in_their_ways() {
        struct Keys {
            text: &'static str,
            wanted: &'static str,
        }
        for Keys { text, wanted } in [
            Keys {
                text: "HOST=a\nPort=4\nUSER=b\nPassWord=C\nDATABASE=D\nConnect_Timeout=5",
                wanted: "a:4 b C D 5",
            },
            Keys { text: "host=a\npass=b\ndata=c\nconnect=7", wanted: "a:3306 me b c 7" },
            Keys { text: "host=a\npas=b\nloose-pass=c", wanted: "a:3306 me c sbtest 10" },
            Keys { text: "host=a\npassword=b\nskip-password", wanted: "a:3306 me  sbtest 10" },
            Keys { text: "host=a\npassword=b\nSKIP_PASSWORD=1", wanted: "a:3306 me  sbtest 10" },
            Keys {
                text: "host=a\npassword=b\nloose-disable-password",
                wanted: "a:3306 me  sbtest 10",
            },
            Keys { text: "host=a\nskip-password\npassword=b", wanted: "a:3306 me b sbtest 10" },
            Keys {
                text: "host=a\nuser=b\nport=4\ndatabase=c\nuser=\nport=0\ndatabase=",
                wanted: "a:3306 me  sbtest 10",
            },
            Keys {
                text: "host=a\nconnect-timeout=5\nconnect_timeout=0",
                wanted: "a:3306 me  sbtest 10",
            },
            // Too short, and not the beginning of one key alone.
            Keys { text: "host=a\npa=b\nssl-c=c\np=d", wanted: "a:3306 me  sbtest 10" },
        ] {
            assert_eq!(all("", &with_file(&format!("[client]\n{text}"))), wanted, "{text}");
        }
    }

    #[test]
    fn an_empty_value_leaves_what_is_said_elsewhere_when_a_file_has_it() {
        let files: Files = &[("/etc/my.cnf", 0o600, "[client]\nhost=\nuser=\nport=0")];
        assert_eq!(all("-u flag", &world(VARS, files, &[])), "env:5 flag env sbtest 10");
        assert_eq!(all("", &world(&[URL], files, &[])), "url:3 url url url 3");
    }

    #[test]
    fn a_password_is_not_asked_for_when_a_file_skips_it() {
        let files: Files = &[("/etc/my.cnf", 0o600, "[client]\npassword\nskip-password")];
        let resolved = ok("", &world(&["MYSQL_PWD=env"], files, &[]));
        assert!(!resolved.wants_prompt && resolved.target.password.is_empty());
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
        for (text, a) in [
            ("[client]\nport=x", "/etc/my.cnf:2: port: it takes"),
            ("[client]\nhost", "/etc/my.cnf:2: host: needs a value"),
            ("[client]\nprotocol=pipe", "/etc/my.cnf:2: protocol: it takes"),
            ("[client]\nPROTOCOL", "/etc/my.cnf:2: protocol: needs a value"),
            ("[client-server]\nport=x", "/etc/my.cnf:2: port: it takes"),
            ("[client]\nssl-mode=on", "/etc/my.cnf:2: ssl-mode: it takes"),
            ("[client]\nssl=maybe", "/etc/my.cnf:2: ssl: it takes"),
            ("[loadgen]\nsokcet=/x", "/etc/my.cnf:2: group [loadgen] has"),
            ("[loadgen]\nconnect-timeout=0", "/etc/my.cnf:2: connect-timeout is 0"),
            ("[client]\nhost=db1:x", "/etc/my.cnf:2: host has no port"),
            ("[client]\nhost=a,db1:1:2", "/etc/my.cnf:2: host is no host"),
        ] {
            let error = error("", &with_file(text));
            assert!(error.to_string().starts_with(a), "{error}");
        }
        let unknown = error("", &with_file("[loadgen]\nsokcet=/x"));
        assert!(unknown.hints()[0].contains("socket, protocol"), "{unknown:?}");
        ok("", &with_file("[client]\nsokcet=/x\nssl-cipher=y\n[loadgen]\nloose-sokcet=/x"));

        let env = world(&["MYSQL_TCP_PORT=http"], &[], &[]);
        assert!(error("", &env).to_string().contains("MYSQL_TCP_PORT: "));
        let env = world(&[], &[], &[]);
        for (line, a) in [
            ("-h /tmp/x.sock", "--host is a path"),
            ("-h u:marker@h", "--host is no host: it holds '@'"),
            ("-h a,u:marker@h", "--host is no host: it holds '@'"),
            ("-h a,,b", "--host has a host without a name"),
            ("-h a:0,b", "--host has no port"),
            ("-h a,b -S /x.sock", "--host means TCP"),
            ("--url mysql://a,b/", "--url names one host"),
            ("--url mysql://a%2cb/", "--url names one host"),
            ("--connect-timeout 0", "--connect-timeout is 0"),
            ("--url mysql://h/?sokcet=/x", "unknown option 'sokcet'"),
            ("--url mysql://h/?user=x", "unknown option 'user'"),
            ("--url mysql://h/?ssl-mode=x", "the ssl-mode of --url: it takes"),
            ("--url pg://u:marker@h/", "--url does not start"),
        ] {
            let error = error(line, &env);
            assert!(error.to_string().contains(a) && !error.render().contains("marker"), "{error}");
        }
        let env = world(&["LOADGEN_URL=mysql://u:marker@h:x/"], &[], &[]);
        let error = error("", &env);
        assert!(error.to_string().starts_with("LOADGEN_URL") && !error.render().contains("marker"));
    }

    /// A line that ended too early, a value behind the wrong key, a password alone on its line.
    #[test]
    fn errors_and_warnings_of_option_files_show_no_password_in_the_wrong_place() {
        for text in [
            "[loadgen]\nmarker",
            "[loadgen]\nmarker==",
            "[loadgen]\nmarker = x",
            "[loadgen]\npassword marker",
            "[loadgen]\npass word=marker",
            "[client]\nport=marker",
            "[client]\nprotocol=marker",
            "[client]\nssl-mode=marker",
            "[client]\nssl=marker",
            "[client]\nskip-ssl=marker",
            "[client]\nssl-verify-server-cert=marker",
            "[client]\nconnect-timeout=marker",
            "[client]\nhost=u:marker",
            "[client]\nhost=u:marker@h",
            "[client]\nhost=/marker",
            "[client]\n!marker",
            "[client]\n!marker word",
            "marker",
            "marker=x",
            "[client\nmarker",
        ] {
            let said = match resolve(&args(""), &with_file(text)) {
                Ok(resolved) => resolved.warnings.join("\n"),
                Err(error) => error.render(),
            };
            assert!(!said.is_empty() && !said.contains("marker"), "{text:?}: {said}");
        }
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
        let once = args("--password-fd 7").with_password(&env()).expect("a password");
        let gone = Env { read_fd: Box::new(|_| Err(Error::usage("it came before"))), ..env() };
        let again = resolve(&once, &gone).expect("it is known").target.password;
        assert_eq!(again.expose(), "from-7");
        assert_eq!(password("--url mysql://u:a%40b@h/ -p", &env()), (String::new(), true));
        assert_eq!(password("--url mysql://u:a%40b@h/", &env()), ("a@b".into(), false));
        assert_eq!(password("", &world(&[], ASKS, &[])), (String::new(), true));
        assert_eq!(password("", &world(&[URL], ASKS, &[])), ("url".into(), false));
    }

    fn mode(line: &str, text: &str) -> (SslMode, usize) {
        let r = ok(&format!("-h db1 {line}"), &with_file(text));
        (r.target.ssl.mode, r.warnings.len())
    }

    struct Encryption {
        line: &'static str,
        text: &'static str,
        wanted: SslMode,
        warnings: usize,
    }

    #[test]
    fn encryption_is_off_until_somebody_switches_it_on() {
        use SslMode::{Disabled, Preferred, Required, VerifyCa, VerifyIdentity};
        const PLAIN: Encryption = Encryption { line: "", text: "", wanted: Disabled, warnings: 0 };
        for Encryption { line, text, wanted, warnings } in [
            PLAIN,
            Encryption { line: "--ssl-mode preferred", wanted: Preferred, ..PLAIN },
            Encryption { line: "--ssl-mode VERIFY_CA --ssl-ca /c", wanted: VerifyCa, ..PLAIN },
            Encryption { line: "--url mysql://h/?ssl_mode=REQUIRED", wanted: Required, ..PLAIN },
            // An option file that changes it is reported.
            Encryption {
                text: "[client]\nssl-mode=REQUIRED",
                wanted: Required,
                warnings: 1,
                ..PLAIN
            },
            Encryption { text: "[client]\nssl", wanted: Required, warnings: 1, ..PLAIN },
            Encryption { text: "[client]\nssl=0", wanted: Disabled, ..PLAIN },
            Encryption { text: "[client]\nssl\nskip-ssl", wanted: Disabled, ..PLAIN },
            Encryption {
                text: "[client]\nssl-mode=VERIFY_IDENTITY\nssl\nssl-ca=/c",
                wanted: VerifyIdentity,
                warnings: 1,
                ..PLAIN
            },
            Encryption {
                text: "[client]\nssl_ca=/c\nssl-verify-server-cert",
                wanted: VerifyIdentity,
                warnings: 1,
                ..PLAIN
            },
            Encryption {
                text: "[client]\nssl-ca=/c\nssl\nssl-verify-server-cert=on\ndisable-ssl-verify-server-cert",
                wanted: Required,
                warnings: 2,
                ..PLAIN
            },
            Encryption { text: "[client]\nssl-verify-server-cert=OFF", wanted: Disabled, ..PLAIN },
            Encryption {
                text: "[client]\nenable-ssl=TRUE",
                wanted: Required,
                warnings: 1,
                ..PLAIN
            },
            Encryption {
                line: "--ssl-mode DISABLED",
                text: "[client]\nssl-mode=REQUIRED",
                wanted: Disabled,
                ..PLAIN
            },
            Encryption {
                line: "--ssl-mode REQUIRED",
                text: "[client]\nssl-mode=DISABLED",
                wanted: Required,
                ..PLAIN
            },
            Encryption {
                text: "[client-mariadb]\nSSL-CA=/c\nssl-verify",
                wanted: VerifyIdentity,
                warnings: 1,
                ..PLAIN
            },
            // Files that are of no use.
            Encryption {
                text: "[client]\nssl-ca=/c\nssl-cert=/d\nssl-key=/e",
                wanted: Disabled,
                warnings: 3,
                ..PLAIN
            },
            Encryption {
                line: "--ssl-mode REQUIRED --ssl-ca /c",
                wanted: Required,
                warnings: 1,
                ..PLAIN
            },
        ] {
            assert_eq!(mode(line, text), (wanted, warnings), "{line} {text}");
        }
        let r = ok("--ssl-mode PREFERRED -S /x", &world(&[], &[], &[]));
        assert_eq!(r.target.ssl, Ssl::default());
        assert!(r.warnings[0].contains("PREFERRED") && r.warnings[0].contains("/x"));
        let error = error("-h db1", &with_file("[client]\nssl-verify-server-cert")).to_string();
        assert!(error.contains("/etc/my.cnf:2") && error.contains("--ssl-ca"), "{error}");
    }

    #[test]
    fn nothing_that_can_be_printed_shows_a_password() {
        let env = world(&["MYSQL_PWD=marker", "LOADGEN_URL=mysql://u:marker@h/"], &[], &[]);
        let a = ConnectionArgs { password: Some(Some(Secret::new("marker"))), ..args("") };
        let r = resolve(&a, &env).unwrap();
        let opts_are_for_the_driver_alone = r.target.opts(None).unwrap();
        assert_eq!(opts_are_for_the_driver_alone.pass(), Some("marker"));
        let shown = format!("{a:?}{r:?}{:#?}{env:?}{}{:?}", r.target, r.target, r.target.password);
        assert!(!shown.contains("marker"), "{shown}");
    }

    /// The parts of a URL in order, but for the port.
    fn of(url: &str) -> Vec<(String, String)> {
        split_url(&Secret::new(url)).unwrap()
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
            let error = split_url(&Secret::new(url)).unwrap_err();
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

    #[test]
    fn no_beginning_of_a_key_panics() {
        let ends = keys().flat_map(|key| (1..=key.len()).map(move |end| &key[..end]));
        for key in ends {
            for line in
                [key.to_owned(), format!("{key}="), format!("{key}=1"), format!("skip-{key}")]
            {
                let _ = resolve(&args(""), &with_file(&format!("[client]\n{line}")));
            }
        }
    }

    proptest! {
        #[test]
        fn any_password_survives_encoding(password in "\\PC{1,30}", text in "\\PC{0,40}") {
            let encoded = percent_encoding::utf8_percent_encode(
                &password, percent_encoding::NON_ALPHANUMERIC);
            let url = Secret::new(format!("mysql://u:{encoded}@h:3306/db"));
            let known = ("password".to_owned(), password.clone());
            prop_assert!(split_url(&url).unwrap().contains(&known));
            prop_assert_eq!(without_password(&url).unwrap().0, Secret::new(password));
            let _ = split_url(&Secret::new(format!("mysql://{text}")));
            let _ = split_url(&Secret::new(text));
        }
    }
}
