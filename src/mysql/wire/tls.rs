//! Encryption by rustls, as `--ssl-mode` says.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mysql_async::{ClientIdentity, SslOpts};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{self, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::error::{Error, Result};
use crate::mysql::options::{Address, ConnectOptions, SslMode};
use crate::stop::locked;

/// The host name that the driver asks for in VERIFY_CA. It recognises a failed name check by the text
/// `NotValidForName`, and rustls prints the name that was asked for.
const NAME_OF_VERIFY_CA: &str = "NotValidForName";

/// Largest file of certificates, bytes; all public authorities have a quarter of one MiB.
const PEM_MAX: u64 = 16 << 20;

/// The options of measured connections, and the server's name in them.
pub(crate) type Tls = (Arc<ClientConfig>, ServerName<'static>);

/// Makes the TLS of the driver's and of measured connections; None for plain text. An undecided
/// PREFERRED asks for encryption and does not fall back. Connections share session tickets.
pub(crate) fn options(target: &ConnectOptions) -> Result<Option<(SslOpts, Tls)>> {
    let (ssl, mode) = (&target.ssl, target.ssl.mode);
    let host = match &target.address {
        _ if mode == SslMode::Disabled => return Ok(None),
        Address::Tcp { host, .. } => host,
        // The driver would send the TLS request and then not encrypt.
        Address::Socket(_) => {
            let message = format!("ssl-mode {mode} over the socket {}", target.address);
            return Err(Error::usage(message).hint("TLS needs TCP: --protocol tcp"));
        }
    };
    let name = ServerName::try_from(host.clone())
        .map_err(|e| Error::usage(format!("TLS with the host {host}: {e}")))?;
    let other_name = (mode == SslMode::VerifyCa).then_some(NAME_OF_VERIFY_CA);
    let driver = SslOpts::default()
        .with_danger_skip_domain_validation(mode != SslMode::VerifyIdentity)
        .with_danger_tls_hostname_override(other_name);
    let (driver, roots) = if mode.verifies() {
        let ca = ssl.ca.as_deref().expect("a mode that verifies comes with authorities");
        let (pem, roots) = authorities(ca)?;
        let driver = driver.with_root_certs(vec![pem.into()]).with_disable_built_in_roots(true);
        (driver, Some(roots))
    } else {
        // Built-in roots stay on: the verifier, though unused, cannot be built on none.
        (driver.with_danger_accept_invalid_certs(true), None)
    };
    let builder = ClientConfig::builder();
    let builder = match roots {
        Some(roots) if mode == SslMode::VerifyIdentity => builder.with_root_certificates(roots),
        roots => {
            let algorithms = ring::default_provider().signature_verification_algorithms;
            let verifier = AnyName { roots, algorithms };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    let Some(cert) = &ssl.cert else {
        return Ok(Some((driver, (Arc::new(builder.with_no_client_auth()), name))));
    };
    let path = ssl.key.as_deref().expect("a certificate comes with its key");
    let ((cert, chain), pem) = (certificates("ssl-cert", cert)?, read("ssl-key", path)?);
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|e| {
        file_error("ssl-key", path, &format!("holds no private key in PEM, not encrypted: {e}"))
            .hint("openssl pkey -in KEY -out PLAIN takes the passphrase off")
    })?;
    let config =
        builder.with_client_auth_cert(chain, key).map_err(|e| file_error("ssl-key", path, &e))?;
    let identity = ClientIdentity::new(cert.into(), pem.into());
    Ok(Some((driver.with_client_identity(Some(identity)), (Arc::new(config), name))))
}

fn file_error(what: &str, path: &Path, why: &dyn fmt::Display) -> Error {
    Error::usage(format!("{what} {}: {why}", path.display()))
}

/// The content of pipes, which can be read once: each address of a list needs it.
static PIPES: Mutex<BTreeMap<PathBuf, Vec<u8>>> = Mutex::new(BTreeMap::new());

fn read(what: &str, path: &Path) -> Result<Vec<u8>> {
    let mut pipes = locked(&PIPES);
    if let Some(bytes) = pipes.get(path) {
        return Ok(bytes.clone());
    }
    let (mut bytes, mut is_pipe) = (Vec::new(), false);
    let file = std::fs::File::open(path);
    file.and_then(|file| {
        is_pipe = !file.metadata()?.is_file();
        file.take(PEM_MAX + 1).read_to_end(&mut bytes)
    })
    .map_err(|e| file_error(what, path, &e))?;
    if bytes.len() as u64 > PEM_MAX {
        return Err(file_error(what, path, &format!("is larger than {} MiB", PEM_MAX >> 20)));
    }
    if is_pipe {
        pipes.insert(path.to_owned(), bytes.clone());
    }
    Ok(bytes)
}

fn authorities(path: &Path) -> Result<(Vec<u8>, RootCertStore)> {
    let (pem, certificates) = certificates("ssl-ca", path)?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).map_err(|e| file_error("ssl-ca", path, &e))?;
    }
    Ok((pem, roots))
}

fn certificates(what: &str, path: &Path) -> Result<(Vec<u8>, Vec<CertificateDer<'static>>)> {
    let pem = read(what, path)?;
    match CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>() {
        Ok(certificates) if !certificates.is_empty() => Ok((pem, certificates)),
        _ => Err(file_error(what, path, &"holds no certificate in PEM, or a broken one")
            .hint("openssl x509 -inform der -in FILE -out PEM converts one")),
    }
}

/// Checks who signed a certificate (VERIFY_CA), or without roots nothing (REQUIRED). In all modes the
/// server proves that it holds the certificate's key.
#[derive(Debug)]
struct AnyName {
    roots: Option<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(certificate)?;
            let verify = verify_server_cert_signed_by_trust_anchor;
            verify(&certificate, roots, intermediates, now, self.algorithms.all)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
#[path = "../../../tests/common/certificates.rs"]
mod certificates;

#[cfg(test)]
mod tests {
    use super::certificates::Certificates;
    use super::*;
    use crate::mysql::options::Ssl;
    use rustls::server::WebPkiClientVerifier;
    use rustls::sign::{CertifiedKey, SingleCertAndKey};
    use rustls::version::{TLS12, TLS13};
    use rustls::{ClientConnection, ServerConfig, ServerConnection, SupportedProtocolVersion};
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    fn ssl(mode: SslMode, ca: PathBuf) -> Ssl {
        Ssl { mode, ca: Some(ca), ..Ssl::default() }
    }

    fn at(host: &str, ssl: &Ssl) -> ConnectOptions {
        let address = Address::Tcp { host: host.to_owned(), port: 3306 };
        ConnectOptions { address, ssl: ssl.clone(), ..ConnectOptions::canned(0) }
    }

    fn refusal(ssl: &Ssl) -> String {
        options(&at("localhost", ssl)).expect_err("refused").to_string()
    }

    /// A server with this certificate and key, which need not be of one pair.
    fn server(
        certificate: &Path,
        key: &Path,
        clients: Option<&Path>,
        version: &'static SupportedProtocolVersion,
    ) -> Arc<ServerConfig> {
        let provider = Arc::new(ring::default_provider());
        let (_, chain) = certificates("certificate", certificate).unwrap();
        let key = PrivateKeyDer::from_pem_file(key).unwrap();
        let key = provider.key_provider.load_private_key(key).unwrap();
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_protocol_versions(&[version]).unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let roots = Arc::new(authorities(ca).unwrap().1);
                let clients = WebPkiClientVerifier::builder_with_provider(roots, provider);
                builder.with_client_cert_verifier(clients.build().unwrap())
            }
        };
        let pair = SingleCertAndKey::from(CertifiedKey::new(chain, key));
        Arc::new(builder.with_cert_resolver(Arc::new(pair)))
    }

    /// Shakes hands in memory.
    fn handshake(ssl: &Ssl, server: &Arc<ServerConfig>) -> Result<(), String> {
        let (_, (config, name)) = options(&at("localhost", ssl)).unwrap().expect("encrypts");
        let mut client = ClientConnection::new(config, name).unwrap();
        let mut server = ServerConnection::new(server.clone()).unwrap();
        while client.is_handshaking() || server.is_handshaking() {
            let (mut sent, mut answered) = (Vec::new(), Vec::new());
            client.write_tls(&mut sent).unwrap();
            server.read_tls(&mut &sent[..]).unwrap();
            let refused = server.process_new_packets().err();
            server.write_tls(&mut answered).unwrap();
            client.read_tls(&mut &answered[..]).unwrap();
            client.process_new_packets().map_err(|e| e.to_string())?;
            if let Some(refused) = refused {
                return Err(refused.to_string());
            }
        }
        Ok(())
    }

    #[test]
    fn each_mode_refuses_what_it_says_when_the_certificate_is_of_that_kind() {
        struct Case {
            certificate: &'static str,
            by_authority: &'static str,
            by_identity: &'static str,
        }
        let made = Certificates::new();
        made.sign("good", "DNS:localhost", 2);
        made.sign("elsewhere", "DNS:elsewhere.example", 2);
        made.self_sign("own", "DNS:localhost");
        let (ca, other) = (made.path("ca.pem"), made.path("other-ca.pem"));
        for Case { certificate, by_authority, by_identity } in [
            Case { certificate: "good", by_authority: "", by_identity: "" },
            Case { certificate: "elsewhere", by_authority: "", by_identity: "not valid for name" },
            Case {
                certificate: "own",
                by_authority: "UnknownIssuer",
                by_identity: "UnknownIssuer",
            },
            Case {
                certificate: "ca",
                by_authority: "CaUsedAsEndEntity",
                by_identity: "CaUsedAsEndEntity",
            },
        ] {
            let path = |kind| made.path(&format!("{certificate}.{kind}"));
            for version in [&TLS12, &TLS13] {
                let server = server(&path("pem"), &path("key"), None, version);
                let stolen = self::server(&path("pem"), &made.path("other-ca.key"), None, version);
                for (mode, refusal) in [
                    (SslMode::Preferred, ""),
                    (SslMode::Required, ""),
                    (SslMode::VerifyCa, by_authority),
                    (SslMode::VerifyIdentity, by_identity),
                ] {
                    let name = format!("{certificate} {mode} {version:?}");
                    let trusting = ssl(mode, ca.clone());
                    match handshake(&trusting, &server) {
                        Ok(()) => assert_eq!(refusal, "", "{name}"),
                        Err(e) => {
                            assert!(!refusal.is_empty() && e.contains(refusal), "{name}: {e}");
                        }
                    }
                    assert!(handshake(&trusting, &stolen).is_err(), "{name}");
                    let by_other = handshake(&ssl(mode, other.clone()), &server);
                    assert_eq!(by_other.is_err(), mode.verifies(), "{name}");
                }
            }
        }
    }

    #[test]
    fn a_client_shows_its_certificate_when_it_has_one() {
        let made = Certificates::new();
        made.sign("good", "DNS:localhost", 2);
        made.sign("client", "", 2);
        let ca = made.path("ca.pem");
        let server = server(&made.path("good.pem"), &made.path("good.key"), Some(&ca), &TLS13);
        let without = ssl(SslMode::VerifyIdentity, ca.clone());
        assert!(handshake(&without, &server).is_err());
        let cert = Some(made.path("client.pem"));
        let with = Ssl { cert, key: Some(made.path("client.key")), ..without };
        assert_eq!(handshake(&with, &server), Ok(()));
        let of_another = Ssl { key: Some(made.path("ca.key")), ..with };
        let error = refusal(&of_another);
        assert!(error.contains("ssl-key") && error.contains("ca.key"), "{error}");
    }

    #[test]
    fn the_driver_verifies_what_the_mode_says() {
        let made = Certificates::new();
        for mode in
            [SslMode::Preferred, SslMode::Required, SslMode::VerifyCa, SslMode::VerifyIdentity]
        {
            let target = at("localhost", &ssl(mode, made.path("ca.pem")));
            let (driver, _) = options(&target).unwrap().expect("encrypts");
            let verifies = mode.verifies();
            assert_eq!(driver.accept_invalid_certs(), !verifies, "{mode}");
            assert_eq!(driver.skip_domain_validation(), mode != SslMode::VerifyIdentity, "{mode}");
            // Without roots the driver cannot connect.
            assert_eq!(driver.disable_built_in_roots(), verifies, "{mode}");
            assert_eq!(driver.root_certs().len(), usize::from(verifies), "{mode}");
            assert_eq!(driver.tls_hostname_override().is_some(), mode == SslMode::VerifyCa);
        }
    }

    #[test]
    fn pipe_of_authorities_serves_each_address_of_a_list() {
        let made = Certificates::new();
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&std::fs::read(made.path("ca.pem")).unwrap()).unwrap();
        drop(writer);
        let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
        let verifying = ssl(SslMode::VerifyCa, path);
        for host in ["db1", "db2"] {
            assert!(options(&at(host, &verifying)).unwrap().is_some(), "{host}");
        }
    }

    #[test]
    fn files_and_hosts_are_named_when_they_do_not_serve() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        let verifying = ssl(SslMode::VerifyCa, path.clone());
        let told = || {
            let error = refusal(&verifying);
            assert!(error.contains("ssl-ca") && error.contains("ca.pem"), "{error}");
        };
        told();
        for broken in [
            "-----BEGIN CERTIFICATE-----\n",
            "x",
            "",
            "\u{1}\u{2}",
            "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n",
        ] {
            std::fs::write(&path, broken).unwrap();
            told();
        }
        let made = Certificates::new();
        let key = dir.path().join("k.pem");
        std::fs::write(&key, "-----BEGIN ENCRYPTED PRIVATE KEY-----\n").unwrap();
        let (cert, key) = (Some(made.path("ca.pem")), Some(key));
        let error = refusal(&Ssl { mode: SslMode::Required, ca: None, cert, key });
        assert!(error.contains("k.pem") && error.contains("not encrypted"), "{error}");
        assert!(options(&at("no name", &Ssl::default())).unwrap().is_none(), "plain text");
        let required = Ssl { mode: SslMode::Required, ..Ssl::default() };
        for name in ["db1", "db_1.example.", "127.0.0.1", "::1"] {
            assert!(options(&at(name, &required)).is_ok(), "{name}");
        }
        let error = options(&at("no name", &required)).unwrap_err();
        assert!(error.to_string().contains("no name"));
        let address = Address::Socket("/run/x.sock".into());
        let error = options(&ConnectOptions { address, ..at("", &required) }).unwrap_err();
        assert_eq!(error.kind(), crate::error::Kind::Usage);
        let error = error.to_string();
        assert!(error.contains("REQUIRED") && error.contains("/run/x.sock"), "{error}");
    }
}
