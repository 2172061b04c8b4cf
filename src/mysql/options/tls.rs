//! Encryption: what each `ssl-mode` means, and what the driver is told for it.
//!
//! | mode | encrypts | verifies |
//! |---|---|---|
//! | DISABLED | no | |
//! | PREFERRED | where the server offers it, decided once | nothing |
//! | REQUIRED | yes | nothing |
//! | VERIFY_CA | yes | that `ssl-ca` signed the certificate |
//! | VERIFY_IDENTITY | yes | that, and that the certificate names the host |

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use mysql_async::{ClientIdentity, SslOpts};

use crate::error::{Error, Result};

/// Modes, weakest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
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
    /// Tells whether the server's certificate is verified.
    pub(crate) fn verifies(self) -> bool {
        self >= SslMode::VerifyCa
    }

    pub fn parse(text: &str) -> std::result::Result<SslMode, String> {
        SslMode::from_str(&text.replace('-', "_"), true).map_err(|_| {
            let names = SslMode::value_variants().iter().map(ToString::to_string);
            format!("'{text}' is no ssl-mode: {}", names.collect::<Vec<_>>().join(", "))
        })
    }
}

impl fmt::Display for SslMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().expect("no variant is skipped").get_name())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ssl {
    pub mode: SslMode,
    pub ca: Option<PathBuf>,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

/// The host name that is asked for in VERIFY_CA.
///
/// The driver recognises a failed name check, which it is to skip, by the text `NotValidForName`.
/// rustls prints the name that was asked for, so that carries the text. It checks the chain first.
const NAME_OF_VERIFY_CA: &str = "NotValidForName";

/// Bytes of a file of certificates at most; those of all public authorities have a quarter of one MiB.
const PEM_MAX: u64 = 16 << 20;

impl Ssl {
    /// Makes the driver's TLS options; `None` for plain text. PREFERRED that was not decided asks for
    /// encryption and does not fall back.
    pub(crate) fn options(&self) -> Result<Option<SslOpts>> {
        if self.mode == SslMode::Disabled {
            return Ok(None);
        }
        let mut options = SslOpts::default();
        if self.mode.verifies() {
            let ca = self.ca.as_deref().expect("a mode that verifies comes with authorities");
            let roots = read_pem("ssl-ca", ca)?;
            options = options.with_root_certs(vec![roots.into()]).with_disable_built_in_roots(true);
        } else {
            // Built-in roots stay on: the verifier, though unused, cannot be built on none.
            options = options
                .with_danger_accept_invalid_certs(true)
                .with_danger_skip_domain_validation(true);
        }
        if self.mode == SslMode::VerifyCa {
            options = options
                .with_danger_skip_domain_validation(true)
                .with_danger_tls_hostname_override(Some(NAME_OF_VERIFY_CA));
        }
        if let Some(cert) = &self.cert {
            let key = self.key.as_deref().expect("a certificate comes with its key");
            let (cert, key) = (read_pem("ssl-cert", cert)?, read_pem("ssl-key", key)?);
            let identity = ClientIdentity::new(cert.into(), key.into());
            options = options.with_client_identity(Some(identity));
        }
        Ok(Some(options))
    }
}

fn read_pem(what: &str, path: &Path) -> Result<Vec<u8>> {
    let named = |why: &dyn fmt::Display| Error::usage(format!("{what} {}: {why}", path.display()));
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|e| named(&e))?;
    file.take(PEM_MAX + 1).read_to_end(&mut bytes).map_err(|e| named(&e))?;
    if bytes.len() as u64 > PEM_MAX {
        return Err(named(&format!("is larger than {} MiB", PEM_MAX >> 20)));
    }
    let text = String::from_utf8_lossy(&bytes);
    let (holds, wanted, hint) = if what == "ssl-key" {
        (
            text.contains("PRIVATE KEY-----") && !text.contains("ENCRYPTED"),
            "private key in PEM, not encrypted",
            "openssl pkey -in KEY -out PLAIN takes the passphrase off",
        )
    } else {
        (
            text.contains("-----BEGIN CERTIFICATE-----"),
            "certificate in PEM",
            "openssl x509 -inform der -in FILE -out PEM converts one",
        )
    };
    if holds { Ok(bytes) } else { Err(named(&format!("holds no {wanted}")).hint(hint)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssl(mode: SslMode) -> Ssl {
        Ssl { mode, ..Ssl::default() }
    }

    fn file(dir: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
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

    #[test]
    fn unverified_modes_verify_nothing_and_say_so_to_the_driver() {
        assert!(ssl(SslMode::Disabled).options().unwrap().is_none());
        for mode in [SslMode::Preferred, SslMode::Required] {
            let options = ssl(mode).options().unwrap().unwrap();
            assert!(options.accept_invalid_certs() && options.skip_domain_validation());
            assert!(!options.disable_built_in_roots(), "without roots the driver cannot connect");
            assert_eq!(options.tls_hostname_override(), None);
        }
    }

    #[test]
    fn verifying_modes_trust_the_given_file_alone() {
        let dir = tempfile::tempdir().unwrap();
        let ca = file(&dir, "ca.pem", "-----BEGIN CERTIFICATE-----\n");
        for mode in [SslMode::VerifyCa, SslMode::VerifyIdentity] {
            let options = Ssl { ca: Some(ca.clone()), ..ssl(mode) }.options().unwrap().unwrap();
            assert!(options.disable_built_in_roots() && !options.accept_invalid_certs());
            assert_eq!(options.root_certs().len(), 1);
            assert_eq!(options.skip_domain_validation(), mode == SslMode::VerifyCa);
        }
    }

    #[test]
    fn files_that_do_not_serve_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing.pem");
        let with_ca = |ca: PathBuf| Ssl { ca: Some(ca), ..ssl(SslMode::VerifyCa) };
        let error = with_ca(missing).options().unwrap_err().to_string();
        assert!(error.contains("ssl-ca") && error.contains("missing.pem"), "{error}");
        let error = with_ca(file(&dir, "x.der", "\u{1}\u{2}")).options().unwrap_err();
        assert!(error.to_string().contains("x.der"), "{error}");

        let cert = file(&dir, "c.pem", "-----BEGIN CERTIFICATE-----\n");
        let key = file(&dir, "k.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n");
        let (cert, key) = (Some(cert), Some(key));
        let ssl = Ssl { cert, key, ..ssl(SslMode::Required) };
        let error = ssl.options().unwrap_err().to_string();
        assert!(error.contains("k.pem") && error.contains("not encrypted"), "{error}");
    }
}
