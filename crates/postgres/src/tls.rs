//! Encrypted connections: which certificates to trust, and which one to present.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sessile_session::{SessionError, doing};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::failure::unusable;
use crate::verify::{Check, Verifier};

/// How a connection is encrypted. The default is libpq's: encrypt if the server supports it, and
/// accept any certificate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsOptions {
    /// Whether to encrypt, and how to check the server's certificate (`sslmode`).
    pub mode: TlsMode,
    /// The root certificates that are trusted (`sslrootcert`).
    pub roots: TlsRoots,
    /// The client certificate, for a server that asks for one (`sslcert` and `sslkey`).
    pub identity: Option<TlsIdentity>,
}

/// Whether to encrypt, and how to check the server's certificate: libpq's `sslmode`.
///
/// Only [`VerifyFull`](Self::VerifyFull) protects against an attacker in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TlsMode {
    /// Never encrypt.
    Disable,
    /// Encrypt only if the server refuses otherwise.
    Allow,
    /// Encrypt if the server supports it; connect without encryption if it does not, or if that
    /// fails.
    #[default]
    Prefer,
    /// Encrypt. With [`TlsRoots::File`] the signature of the certificate is checked too.
    Require,
    /// Encrypt, and check that the certificate is signed by a trusted root.
    VerifyCa,
    /// Encrypt, and check that the certificate is signed by a trusted root and issued for this
    /// host.
    VerifyFull,
}

/// The root certificates that may sign the server's certificate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TlsRoots {
    /// None, so signatures are not checked.
    #[default]
    None,
    /// Those that the operating system trusts; only with [`TlsMode::VerifyFull`].
    System,
    /// The certificates in a PEM file.
    File(PathBuf),
}

/// A certificate and its key, both in PEM files; the key is not encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsIdentity {
    /// The certificate, followed by its intermediate certificates.
    pub certificate: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
}

/// The values of `sslmode`, from weak to strong.
const MODES: [(&str, TlsMode); 6] = [
    ("disable", TlsMode::Disable),
    ("allow", TlsMode::Allow),
    ("prefer", TlsMode::Prefer),
    ("require", TlsMode::Require),
    ("verify-ca", TlsMode::VerifyCa),
    ("verify-full", TlsMode::VerifyFull),
];

impl FromStr for TlsMode {
    type Err = SessionError;

    fn from_str(word: &str) -> Result<Self, SessionError> {
        let found = MODES.iter().find(|(name, _)| *name == word);
        found.map(|(_, mode)| *mode).ok_or_else(|| {
            unusable(format!(
                "sslmode={word} is unknown; it is one of {}",
                MODES.map(|(name, _)| name).join(", ")
            ))
        })
    }
}

impl TlsOptions {
    /// The TLS connector; `None` if connections are never encrypted.
    pub(crate) fn connector(&self) -> Result<Option<MakeRustlsConnect>, SessionError> {
        if self.mode == TlsMode::Disable {
            return Ok(None);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new(self.check()?, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(doing("prepare TLS"))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain = certificates("sslcert", &identity.certificate)?;
                let key = private_key(&identity.key)?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    unusable(format!("sslcert and sslkey do not belong together, or cannot be used: {error}"))
                })?
            }
        };
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Some(MakeRustlsConnect::new(config)))
    }

    /// How the server's certificate is checked.
    fn check(&self) -> Result<Check, SessionError> {
        let name = match self.mode {
            TlsMode::VerifyFull => true,
            _ if self.roots == TlsRoots::System => {
                return Err(unusable(
                    "sslrootcert=system trusts every public certificate authority, so the host name must be checked too; \
                     use it with sslmode=verify-full"
                        .to_owned(),
                ));
            }
            _ => false,
        };
        let roots = match &self.roots {
            TlsRoots::None if self.mode >= TlsMode::VerifyCa => {
                return Err(unusable(
                    "sslmode=verify-ca and verify-full need sslrootcert: a file with the certificates to trust, \
                     or sslrootcert=system with verify-full"
                        .to_owned(),
                ));
            }
            TlsRoots::None => return Ok(Check::Nothing),
            TlsRoots::File(path) => certificates("sslrootcert", path)?,
            TlsRoots::System => system_roots()?,
        };
        Ok(if name { Check::SignatureAndName(roots) } else { Check::Signature(roots) })
    }
}

fn system_roots() -> Result<Vec<CertificateDer<'static>>, SessionError> {
    let found = rustls_native_certs::load_native_certs();
    match (found.certs.is_empty(), found.errors.first()) {
        (false, _) => Ok(found.certs),
        (true, first) => Err(unusable(format!(
            "sslrootcert=system finds no certificates on this machine{}; install them (Debian: ca-certificates), \
             or name a file",
            first.map(|error| format!(" ({error})")).unwrap_or_default()
        ))),
    }
}

fn certificates(parameter: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, SessionError> {
    let text = read(parameter, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(unusable(format!("{parameter}={} holds no certificate in PEM format", path.display()))),
        Err(error) => Err(unusable(format!("{parameter}={} cannot be read: {error}", path.display()))),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, SessionError> {
    PrivateKeyDer::from_pem_slice(&read("sslkey", path)?).map_err(|error| {
        unusable(format!(
            "sslkey={} holds no private key in PEM format without a password: {error}",
            path.display()
        ))
    })
}

fn read(parameter: &str, path: &Path) -> Result<Vec<u8>, SessionError> {
    std::fs::read(path).map_err(|error| {
        unusable(format!(
            "{parameter}={} cannot be read: {error}; name a file that is there and that this user may read",
            path.display()
        ))
    })
}
