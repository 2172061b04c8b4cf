//! The server and the password as an option file of the MySQL clients.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::error::{Error, Result};
use crate::mysql::{Address, ConnectOptions, SslMode};

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
    let ssl = &target.ssl;
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let mut lines = match &target.address {
        Address::Tcp { host, port } => vec![
            ("host", Some(host.clone())),
            ("port", Some(port.to_string())),
            ("protocol", Some("tcp".to_owned())),
        ],
        Address::Socket(socket) => vec![("socket", Some(socket.display().to_string()))],
    };
    let password = target.password.expose();
    // The password must not go further than loadgen lets it.
    let mode = Some(ssl.mode).filter(|mode| *mode != SslMode::Disabled);
    lines.extend([
        ("user", Some(target.user.clone())),
        ("password", (!password.is_empty()).then(|| password.to_owned())),
        ("ssl-ca", path(&ssl.ca)),
        ("ssl-cert", path(&ssl.cert)),
        ("ssl-key", path(&ssl.key)),
        ("loose-ssl-mode", mode.map(|mode| mode.to_string())),
    ]);
    let mut text = "[client]\n".to_owned();
    for (key, value) in lines.into_iter().filter_map(|(key, value)| Some((key, value?))) {
        let quoted = quoted(&value).ok_or_else(|| {
            // The value may be the password.
            Error::usage(format!("the {key} has both kinds of quotes: no option file can hold it"))
        })?;
        text.extend([key, "=", &quoted, "\n"]);
    }
    if let Some(mode) = mode {
        // MariaDB's have no modes, and verify the name, too, or nothing.
        text.push_str("[client-mariadb]\nssl\n");
        text.push_str(if mode.verifies() { "ssl-verify-server-cert\n" } else { "" });
    }
    Ok(text)
}

/// A value in quotes: a `#` would begin a comment. Quotes inside cannot be escaped, backslashes
/// must be.
fn quoted(value: &str) -> Option<String> {
    let quote = ['"', '\''].into_iter().find(|quote| !value.contains(*quote))?;
    let escapes = [("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")];
    let escaped =
        escapes.iter().fold(value.to_owned(), |value, (from, to)| value.replace(from, to));
    Some(format!("{quote}{escaped}{quote}"))
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
