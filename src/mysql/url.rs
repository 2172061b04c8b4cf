//! `mysql://USER:PASSWORD@HOST:PORT/DATABASE?option=value`. The driver has a parser of its own,
//! which sets more than it says; this one only takes the URL apart.
//!
//! No error here shows the URL: it may hold a password.

use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::secret::Secret;

/// The parts that are there, percent-encoding undone.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) host: Option<String>,
    pub(crate) port: Option<u16>,
    pub(crate) database: Option<String>,
    pub(crate) options: Vec<(String, String)>,
}

/// Takes a URL apart; the error's text does not name the URL.
pub(crate) fn parse(text: &Secret) -> Result<Parts, String> {
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

fn read(text: &Secret) -> Result<Url, String> {
    let url = Url::parse(text.expose()).map_err(|e| format!("is no URL: {e}"))?;
    if url.scheme() != "mysql" || url.cannot_be_a_base() {
        return Err("does not start with mysql://".to_owned());
    }
    if url.fragment().is_some() {
        return Err("holds a '#': write %23".to_owned());
    }
    Ok(url)
}

fn password(url: &Url) -> Result<Option<Secret>, String> {
    url.password().map(|text| decoded("password", text).map(Secret::new)).transpose()
}

fn decoded(what: &str, text: &str) -> Result<String, String> {
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

    fn parts(url: &str) -> Parts {
        parse(&Secret::new(url)).unwrap()
    }

    #[test]
    fn every_part_is_decoded() {
        let p = parts(
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
        let p = parts("mysql://db1");
        assert!(p.user.is_none() && p.password.is_none() && p.port.is_none());
        assert!(p.database.is_none() && p.options.is_empty());
        let p = parts("mysql:///db");
        assert_eq!((p.host, p.database.as_deref()), (None, Some("db")));
        assert_eq!(parts("mysql://root@[::1]:3306/").host.as_deref(), Some("::1"));
        assert_eq!(parts("mysql://root@[::1]/").database, None);
        assert!(parts("mysql://root:@h/").password.is_none_or(|p| p.is_empty()));
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
            let error = parse(&Secret::new(url)).unwrap_err();
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
            prop_assert_eq!(parse(&url).unwrap().password, Some(Secret::new(password.clone())));
            prop_assert_eq!(without_password(&url).unwrap().0, Secret::new(password));
            let _ = parse(&Secret::new(format!("mysql://{text}")));
            let _ = parse(&Secret::new(text));
        }
    }
}
