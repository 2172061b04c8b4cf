//! Certificates for servers and clients, made by `openssl` for one test.
#![allow(dead_code, reason = "every test program uses its own part of this")]

use std::path::PathBuf;
use std::process::Command;

/// Certificates made for one test: an authority, and what it and another one signed.
pub(crate) struct Certificates {
    dir: tempfile::TempDir,
    /// The files that the server is given.
    server: [String; 3],
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = ["ca.pem", "server.pem", "server.key"]
            .map(|name| dir.path().join(name).into_os_string().into_string().unwrap());
        let certificates = Certificates { dir, server };
        for authority in ["ca", "other-ca"] {
            certificates.openssl(&format!(
                "req -x509 -nodes -newkey rsa:2048 -days 2 -subj /CN={authority} \
                 -keyout {authority}.key -out {authority}.pem"
            ));
        }
        certificates
    }

    fn openssl(&self, line: &str) {
        let output = Command::new("openssl")
            .args(line.split_whitespace())
            .current_dir(&self.dir)
            .output()
            .expect("the tests need openssl: apt-get install openssl");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A key and a certificate that `ca` signed, X.509 v3, for these alternative names.
    pub(crate) fn sign(&self, name: &str, alternatives: &str, days: u32) {
        let alternatives = match alternatives {
            "" => String::new(),
            names => format!("subjectAltName={names}\n"),
        };
        let extensions = format!("basicConstraints=CA:FALSE\n{alternatives}");
        std::fs::write(self.path("ext"), extensions).unwrap();
        self.openssl(&format!(
            "req -nodes -newkey rsa:2048 -subj /CN=localhost -keyout {name}.key -out {name}.csr"
        ));
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days {days} \
             -extfile ext -out {name}.pem"
        ));
    }

    /// A key and a certificate that it signed itself.
    pub(crate) fn self_sign(&self, name: &str, alternatives: &str) {
        self.openssl(&format!(
            "req -x509 -nodes -newkey rsa:2048 -days 2 -subj /CN=localhost \
             -addext basicConstraints=critical,CA:FALSE -addext subjectAltName={alternatives} \
             -keyout {name}.key -out {name}.pem"
        ));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What makes a server use `server.pem` and `server.key`, which [`Self::install`] puts there.
    pub(crate) fn options(&self) -> [(&'static str, &str); 3] {
        [("ssl-ca", &self.server[0]), ("ssl-cert", &self.server[1]), ("ssl-key", &self.server[2])]
    }

    pub(crate) fn install(&self, name: &str) {
        for kind in ["pem", "key"] {
            std::fs::copy(
                self.path(&format!("{name}.{kind}")),
                self.path(&format!("server.{kind}")),
            )
            .unwrap();
        }
    }
}
