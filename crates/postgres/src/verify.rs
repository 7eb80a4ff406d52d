//! Checking a server's certificate, as strictly as `sslmode` demands.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use sessile_session::SessionError;

use crate::failure::unusable;

/// How strictly a certificate is checked.
pub(crate) enum Check {
    /// Only that the server has the certificate's private key.
    Nothing,
    /// That one of these signed it.
    Signature(Vec<CertificateDer<'static>>),
    /// That one of these signed it, for this host.
    SignatureAndName(Vec<CertificateDer<'static>>),
}

#[derive(Debug)]
pub(crate) struct Verifier {
    /// `None` if any certificate will do.
    trust: Option<Trust>,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
struct Trust {
    verifier: Arc<WebPkiServerVerifier>,
    roots: Vec<CertificateDer<'static>>,
    check_name: bool,
}

impl Verifier {
    pub(crate) fn new(check: Check, provider: &Arc<CryptoProvider>) -> Result<Self, SessionError> {
        let (roots, check_name) = match check {
            Check::Nothing => {
                return Ok(Self { trust: None, algorithms: provider.signature_verification_algorithms });
            }
            Check::Signature(roots) => (roots, false),
            Check::SignatureAndName(roots) => (roots, true),
        };
        let mut store = RootCertStore::empty();
        let (usable, _) = store.add_parsable_certificates(roots.iter().cloned());
        if usable == 0 {
            return Err(unusable("sslrootcert holds no certificate that can be used as a root".to_owned()));
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone())
            .build()
            .map_err(|error| unusable(format!("sslrootcert cannot be used: {error}")))?;
        let trust = Trust { verifier, roots, check_name };
        Ok(Self { trust: Some(trust), algorithms: provider.signature_verification_algorithms })
    }
}

impl Trust {
    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<(), Error> {
        let verified = self.verifier.verify_server_cert(certificate, intermediates, name, ocsp, now);
        match verified {
            // The name is checked last, so everything else is valid.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.check_name => Ok(()),
            Err(error) if is_authority(&error) && self.roots.contains(certificate) => match self.check_name {
                true => rustls::client::verify_server_name(&ParsedCertificate::try_from(certificate)?, name),
                false => Ok(()),
            },
            verified => verified.map(drop),
        }
    }
}

/// Whether a certificate was rejected only because it is a CA certificate. Self-signed server
/// certificates often are; one that is itself a trusted root is accepted. Its dates were checked
/// before.
fn is_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(trust) = &self.trust {
            trust.verify(certificate, intermediates, name, ocsp, now)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
