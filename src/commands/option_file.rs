//! The server and the password as an option file of the MySQL clients.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::error::{Error, Result};
use crate::mysql::options::{Address, ConnectOptions, SslMode};

/// A file that is in memory and in no directory: however this process ends, no password is left
/// anywhere. Only this user can read it.
pub(super) struct OptionFile(File);

impl OptionFile {
    /// By which the commands open it, as long as this is there.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }
}

/// Writes the file.
pub(super) fn write(target: &ConnectOptions) -> Result<OptionFile> {
    let text = text(target)?;
    let write = || -> io::Result<File> {
        let mut file = File::from(memfd_create("loadgen.cnf", MFdFlags::MFD_CLOEXEC)?);
        // The clients pass over a file that everybody may write, as this one's first mode says.
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(text.as_bytes())?;
        Ok(file)
    };
    let made = write().map(OptionFile);
    made.map_err(|e| Error::failed(format!("the option file of the suite: {e}")))
}

fn text(target: &ConnectOptions) -> Result<String> {
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
    let ssl = &target.ssl;
    for (key, path) in [("ssl-ca", &ssl.ca), ("ssl-cert", &ssl.cert), ("ssl-key", &ssl.key)] {
        if let Some(path) = path {
            line(key, &path.to_string_lossy())?;
        }
    }
    // The password must not go further than loadgen lets it.
    if ssl.mode != SslMode::Disabled {
        line("loose-ssl-mode", &ssl.mode.to_string())?;
        // MariaDB's have no modes, and verify the name, too, or nothing.
        text.push_str("[client-mariadb]\nssl\n");
        if ssl.mode.verifies() {
            text.push_str("ssl-verify-server-cert\n");
        }
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
    use std::time::Duration;

    use super::*;
    use crate::mysql::options::{Secret, Ssl};

    fn target(password: &str) -> ConnectOptions {
        ConnectOptions {
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
    fn nobody_else_reads_it_and_it_is_in_no_directory() {
        let file = write(&target("secret")).expect("written");
        let facts = std::fs::metadata(file.path()).expect("its facts");
        assert_eq!(facts.permissions().mode() & 0o777, 0o600);
        assert_eq!(std::os::unix::fs::MetadataExt::nlink(&facts), 0);
        // Each reader begins at its beginning.
        for _ in 0..2 {
            let read = std::fs::read_to_string(file.path()).expect("readable");
            assert!(read.starts_with("[client]") && read.contains("secret"), "{read}");
        }
        let path = file.path();
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn encryption_that_is_wanted_is_wanted_of_the_commands_too() {
        let with = |mode, ca: Option<&str>| {
            let ssl = Ssl { mode, ca: ca.map(Into::into), ..Ssl::default() };
            text(&ConnectOptions { ssl, ..target("x") }).expect("fine")
        };
        assert!(!with(SslMode::Disabled, None).contains("ssl"));
        let required = with(SslMode::Required, None);
        assert!(required.contains("loose-ssl-mode=\"REQUIRED\"\n"), "{required}");
        assert!(required.ends_with("[client-mariadb]\nssl\n"), "{required}");
        let verified = with(SslMode::VerifyCa, Some("/a b.pem"));
        assert!(verified.contains("ssl-ca=\"/a b.pem\"\n"), "{verified}");
        assert!(verified.ends_with("\nssl\nssl-verify-server-cert\n"), "{verified}");
    }
}
