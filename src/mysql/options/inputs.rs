//! Everything that was said about the server, each value with who said it: a later, stronger
//! source replaces an earlier one.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::Secret;
use super::env::Env;
use super::files::{Group, Setting};
use super::flags::{ConnectionArgs, Protocol};
use super::tls::SslMode;
use crate::error::{Error, Result};
use crate::terms::units;

/// Who said it, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Environment,
    File,
    Url,
    Flag,
}

/// A value and who said it.
#[derive(Clone)]
pub(crate) struct Given<T> {
    pub(crate) value: T,
    pub(crate) rank: Rank,
    /// As messages name it: `--host`, `/etc/my.cnf:3: host`, `the host of --url`.
    pub(crate) from: String,
}

/// How the password comes.
#[derive(Clone)]
pub(crate) enum Password {
    Text(Secret),
    Prompt,
}

/// The strongest word on each subject. No `Debug`: the password is behind a [`Secret`], but the
/// less is printed, the better.
#[derive(Default)]
pub(crate) struct Inputs {
    pub(crate) host: Option<Given<String>>,
    pub(crate) port: Option<Given<u16>>,
    pub(crate) socket: Option<Given<PathBuf>>,
    pub(crate) protocol: Option<Given<Protocol>>,
    pub(crate) user: Option<Given<String>>,
    pub(crate) password: Option<Given<Password>>,
    pub(crate) database: Option<Given<String>>,
    pub(crate) ssl_mode: Option<Given<SslMode>>,
    pub(crate) ssl_ca: Option<Given<PathBuf>>,
    pub(crate) ssl_cert: Option<Given<PathBuf>>,
    pub(crate) ssl_key: Option<Given<PathBuf>>,
    pub(crate) connect_timeout: Option<Given<Duration>>,
}

/// The keys of `[loadgen]`, and of a URL's options from `socket` on.
const KEYS: [&str; 14] = [
    "host",
    "port",
    "user",
    "password",
    "database",
    "ssl",
    "ssl-verify-server-cert",
    "socket",
    "protocol",
    "ssl-mode",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "connect-timeout",
];
const FIRST_OF_URL: usize = 7;

impl Inputs {
    pub(crate) fn environment(&mut self, env: &Env) -> Result<()> {
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

    pub(crate) fn option_files(&mut self, settings: &[Setting]) -> Result<()> {
        for setting in settings {
            // A line such as `password secret` is one key: it must not be shown whole.
            let word = |c: char| c.is_ascii_alphanumeric() || c == '-';
            let key = setting.key.split(|c| !word(c)).next().unwrap_or_default();
            let from = format!("{}: {key}", setting.at);
            let known = self
                .set(&setting.key, setting.value.as_deref(), Rank::File, &from)
                .map_err(|why| Error::usage(format!("{from}: {why}")))?;
            if !known && setting.group == Group::Loadgen && !setting.loose {
                return Err(Error::usage(format!("{from}: [loadgen] knows no such key"))
                    .hint(format!("it knows {}", KEYS.join(", ")))
                    .hint("loose- in front of the key makes it a wish"));
            }
        }
        Ok(())
    }

    /// `name` is `--url` or `LOADGEN_URL`.
    pub(crate) fn url(&mut self, text: &Secret, name: &str) -> Result<()> {
        let hint = "mysql://USER:PASSWORD@HOST:PORT/DATABASE?ssl-mode=REQUIRED&socket=/PATH, with \
                    %40 for an @ and so on";
        let error = |why: String| Error::usage(format!("{name} {why}")).hint(hint);
        let parts = parts(text).map_err(error)?;
        let given = |what: &str| format!("the {what} of {name}");
        let port = parts.port.map(|port| port.to_string());
        for (key, value) in [
            ("user", parts.user.as_deref()),
            ("host", parts.host.as_deref()),
            ("port", port.as_deref()),
            ("database", parts.database.as_deref()),
            ("password", parts.password.as_ref().map(Secret::expose)),
        ] {
            if value.is_some() {
                self.set(key, value, Rank::Url, &given(key)).map_err(error)?;
            }
        }
        for (key, value) in &parts.options {
            let key = key.replace('_', "-");
            if !KEYS[FIRST_OF_URL..].contains(&key.as_str()) {
                return Err(error(format!("has an unknown option '{key}'"))
                    .hint(format!("options are {}", KEYS[FIRST_OF_URL..].join(", "))));
            }
            self.set(&key, Some(value), Rank::Url, &given(&key))
                .map_err(|why| error(format!("has {key}: {why}")))?;
        }
        Ok(())
    }

    pub(crate) fn flags(&mut self, args: &ConnectionArgs, env: &Env) -> Result<()> {
        for (name, empty) in [
            ("--host", args.host.as_ref().is_some_and(String::is_empty)),
            ("--user", args.user.as_ref().is_some_and(String::is_empty)),
            ("--socket", args.socket.as_ref().is_some_and(|p| p.as_os_str().is_empty())),
            ("--database", args.database.as_ref().is_some_and(String::is_empty)),
        ] {
            if empty {
                return Err(Error::usage(format!("{name} is empty")));
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
        let password = match (&args.password, args.password_fd) {
            (Some(Some(text)), _) => Some(Password::Text(text.clone())),
            (Some(None), _) => Some(Password::Prompt),
            (None, Some(fd)) => Some(Password::Text((env.read_fd)(fd)?)),
            (None, None) => None,
        };
        flag(&mut self.password, password.as_ref(), "--password");
        Ok(())
    }

    /// Takes a key with its value as text; whether the key is known. An empty value is as good as
    /// none given, but for the password, where it means that there is none.
    fn set(
        &mut self,
        key: &str,
        value: Option<&str>,
        rank: Rank,
        from: &str,
    ) -> std::result::Result<bool, String> {
        if self.set_switch(key, value, rank, from)? {
            return Ok(true);
        }
        if key == "password" {
            let value = value.map_or(Password::Prompt, |v| Password::Text(Secret::new(v)));
            self.password = Some(Given { value, rank, from: from.to_owned() });
            return Ok(true);
        }
        if !KEYS.contains(&key) {
            return Ok(false);
        }
        let value = value.ok_or("needs a value")?;
        if value.is_empty() {
            return Ok(true);
        }
        let given = Put { rank, from };
        match key {
            "host" => given.put(&mut self.host, value.to_owned()),
            "user" => given.put(&mut self.user, value.to_owned()),
            "database" => given.put(&mut self.database, value.to_owned()),
            "socket" => given.put(&mut self.socket, PathBuf::from(value)),
            "ssl-ca" => given.put(&mut self.ssl_ca, PathBuf::from(value)),
            "ssl-cert" => given.put(&mut self.ssl_cert, PathBuf::from(value)),
            "ssl-key" => given.put(&mut self.ssl_key, PathBuf::from(value)),
            "ssl-mode" => given.put(&mut self.ssl_mode, SslMode::from_str(value)?),
            "connect-timeout" => {
                given.put(&mut self.connect_timeout, units::parse_duration(value)?);
            }
            "port" => match value.parse::<u16>() {
                // In option files it stands for "the usual one".
                Ok(0) => {}
                Ok(port) => given.put(&mut self.port, port),
                Err(_) => return Err(format!("'{value}' is no port")),
            },
            // All that is left of KEYS.
            _ => match value.to_ascii_lowercase().as_str() {
                "tcp" => given.put(&mut self.protocol, Protocol::Tcp),
                "socket" => given.put(&mut self.protocol, Protocol::Socket),
                "default" => {}
                _ => return Err(format!("'{value}' is no protocol: tcp or socket")),
            },
        }
        Ok(true)
    }

    /// The older switches of encryption: `ssl` (demands it, as MariaDB's and MySQL 5.7's) and
    /// `ssl-verify-server-cert`, with `skip-` and `disable-` for off and `enable-` for on. Each
    /// moves the mode that the lines before it made.
    fn set_switch(
        &mut self,
        key: &str,
        value: Option<&str>,
        rank: Rank,
        from: &str,
    ) -> std::result::Result<bool, String> {
        let off = key.strip_prefix("skip-").or_else(|| key.strip_prefix("disable-"));
        let (name, negated) = match off {
            Some(name) => (name, true),
            None => (key.strip_prefix("enable-").unwrap_or(key), false),
        };
        if !matches!(name, "ssl" | "ssl-verify-server-cert") {
            return Ok(false);
        }
        let on = match value.unwrap_or("1").to_ascii_lowercase().as_str() {
            "1" | "on" | "true" => !negated,
            "0" | "off" | "false" => negated,
            other => return Err(format!("'{other}' is neither on nor off")),
        };
        let mode = self.ssl_mode.as_ref().map(|given| given.value).unwrap_or_default();
        let mode = match (name, on) {
            ("ssl", true) => mode.max(SslMode::Required),
            ("ssl", false) => SslMode::Disabled,
            (_, true) => SslMode::VerifyIdentity,
            (_, false) if mode > SslMode::Required => SslMode::Required,
            (_, false) => return Ok(true),
        };
        Put { rank, from }.put(&mut self.ssl_mode, mode);
        Ok(true)
    }
}

struct Put<'a> {
    rank: Rank,
    from: &'a str,
}

impl Put<'_> {
    fn put<T>(&self, slot: &mut Option<Given<T>>, value: T) {
        *slot = Some(Given { value, rank: self.rank, from: self.from.to_owned() });
    }
}

fn flag<T: Clone>(slot: &mut Option<Given<T>>, value: Option<&T>, name: &str) {
    if let Some(value) = value {
        Put { rank: Rank::Flag, from: name }.put(slot, value.clone());
    }
}

impl<T: AsRef<Path>> Given<T> {
    /// The input as an error names it, with its value.
    pub(crate) fn shown(&self) -> String {
        format!("{} ({})", self.from, self.value.as_ref().display())
    }
}

/// The parts that are there, percent-encoding undone.
#[derive(Debug, Default)]
struct Parts {
    user: Option<String>,
    password: Option<Secret>,
    host: Option<String>,
    port: Option<u16>,
    database: Option<String>,
    options: Vec<(String, String)>,
}

/// Takes a URL apart; the error's text does not name the URL.
fn parts(text: &Secret) -> std::result::Result<Parts, String> {
    let url = read(text)?;
    let host = match url.host() {
        Some(Host::Domain(name)) => some(decoded("host", name)?),
        Some(Host::Ipv4(ip)) => Some(ip.to_string()),
        Some(Host::Ipv6(ip)) => Some(ip.to_string()),
        None => None,
    };
    let path = url.path().strip_prefix('/').unwrap_or_default();
    if path.contains('/') {
        return Err("has more than a database for its path".to_owned());
    }
    let mut options = Vec::new();
    for pair in url.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| "has an option without a value after its '?'".to_owned())?;
        options.push((decoded("option", key)?, decoded("option", value)?));
    }
    Ok(Parts {
        user: some(decoded("user", url.username())?),
        password: password(&url)?,
        host,
        port: url.port(),
        database: some(decoded("database", path)?),
        options,
    })
}

/// The password of a URL and the URL without it; `None` where it holds none, or is no URL.
pub(crate) fn without_password(text: &Secret) -> Option<(Secret, String)> {
    let mut url = read(text).ok()?;
    let password = password(&url).ok()??;
    url.set_password(None).ok()?;
    Some((password, url.to_string()))
}

fn read(text: &Secret) -> std::result::Result<Url, String> {
    let url = Url::parse(text.expose()).map_err(|e| format!("is no URL: {e}"))?;
    if url.scheme() != "mysql" || url.cannot_be_a_base() {
        return Err("does not start with mysql://".to_owned());
    }
    if url.fragment().is_some() {
        return Err("holds a '#': write %23".to_owned());
    }
    Ok(url)
}

fn password(url: &Url) -> std::result::Result<Option<Secret>, String> {
    url.password().map(|text| decoded("password", text).map(Secret::new)).transpose()
}

fn decoded(what: &str, text: &str) -> std::result::Result<String, String> {
    let text = percent_decode_str(text).decode_utf8();
    text.map(Into::into).map_err(|_| format!("holds a {what} that is no UTF-8"))
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(url: &str) -> Parts {
        parts(&Secret::new(url)).unwrap()
    }

    #[test]
    fn every_part_is_decoded() {
        let p = of(
            "mysql://a%40b:p%3A%2F%23%40%25%C3%BC@db.example:3307/my%2Ddb?socket=/tmp/a+b%20c&x=1",
        );
        assert_eq!(p.user.as_deref(), Some("a@b"));
        assert_eq!(p.password.as_ref().unwrap().expose(), "p:/#@%ü");
        assert_eq!((p.host.as_deref(), p.port), (Some("db.example"), Some(3307)));
        assert_eq!(p.database.as_deref(), Some("my-db"));
        let options = [("socket", "/tmp/a+b c"), ("x", "1")].map(|(k, v)| (k.into(), v.into()));
        assert_eq!(p.options, options);
    }

    #[test]
    fn what_is_not_there_stays_open() {
        let p = of("mysql://db1");
        assert!(p.user.is_none() && p.password.is_none() && p.port.is_none());
        assert!(p.database.is_none() && p.options.is_empty());
        let p = of("mysql:///db");
        assert_eq!((p.host, p.database.as_deref()), (None, Some("db")));
        assert_eq!(of("mysql://root@[::1]:3306/").host.as_deref(), Some("::1"));
        assert_eq!(of("mysql://root@[::1]/").database, None);
        assert!(of("mysql://root:@h/").password.is_none_or(|p| p.is_empty()));
    }

    #[test]
    fn errors_do_not_show_it() {
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
    fn the_password_comes_out_and_the_rest_stays() {
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
            prop_assert_eq!(parts(&url).unwrap().password, Some(Secret::new(password.clone())));
            prop_assert_eq!(without_password(&url).unwrap().0, Secret::new(password));
            let _ = parts(&Secret::new(format!("mysql://{text}")));
            let _ = parts(&Secret::new(text));
        }
    }
}
