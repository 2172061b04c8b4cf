//! The server and the password as an option file of the MySQL clients.

use std::io::Write;

use tempfile::{Builder, NamedTempFile};

use crate::error::{Error, Result};
use crate::mysql::target::{Address, Target};

/// Writes the file, which goes away with the answer. Only this user can read it.
pub(super) fn write(target: &Target) -> Result<NamedTempFile> {
    let text = text(target)?;
    // The mode of these files is 0600 from their first moment.
    let made = Builder::new().prefix("loadgen-").suffix(".cnf").tempfile().and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.flush()?;
        Ok(file)
    });
    made.map_err(|e| Error::failed(format!("the option file of the suite: {e}")))
}

fn text(target: &Target) -> Result<String> {
    let mut text = "[client]\n".to_owned();
    let mut line = |key: &str, value: &str| -> Result<()> {
        let quoted = quoted(value).ok_or_else(|| {
            // The value may be the password.
            Error::usage(format!("the {key} has both kinds of quotes: no option file can hold it"))
        })?;
        text.extend([key, "=", &quoted, "\n"]);
        Ok(())
    };
    match &target.address {
        Address::Tcp { host, port } => {
            line("host", host)?;
            line("port", &port.to_string())?;
            line("protocol", "tcp")?;
        }
        Address::Socket(path) => line("socket", &path.to_string_lossy())?,
    }
    line("user", &target.user)?;
    if !target.password.is_empty() {
        line("password", target.password.expose())?;
    }
    Ok(text)
}

/// A value in quotes: a `#` would begin a comment. Quotes inside cannot be escaped, backslashes
/// must be.
fn quoted(value: &str) -> Option<String> {
    let quote = ['"', '\''].into_iter().find(|quote| !value.contains(*quote))?;
    let mut out = String::from(quote);
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push(quote);
    Some(out)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;
    use crate::mysql::secret::Secret;
    use crate::mysql::tls::Ssl;

    fn target(password: &str) -> Target {
        Target {
            address: Address::Tcp { host: "db1".to_owned(), port: 3307 },
            user: "me".to_owned(),
            password: Secret::new(password),
            database: "sbtest".to_owned(),
            ssl: Ssl::default(),
            connect_timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn values_survive_the_grammar() {
        let written = text(&target("a#b\\c\"d e")).expect("fine");
        assert!(written.contains("password='a#b\\\\c\"d e'\n"), "{written}");
        assert!(written.starts_with("[client]\nhost=\"db1\"\nport=\"3307\"\n"), "{written}");
        let error = text(&target("mark\"er'")).expect_err("not to be written");
        assert!(!error.render().contains("mark"), "{}", error.render());
        assert!(!text(&target("")).expect("fine").contains("password"));
    }

    #[test]
    fn nobody_else_reads_it() {
        let file = write(&target("secret")).expect("written");
        let mode = file.as_file().metadata().expect("its facts").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
