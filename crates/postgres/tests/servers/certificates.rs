//! Certificates, made for a test.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

/// A certificate authority.
pub(crate) struct Authority {
    pub(crate) certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM format.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = new_key();
        let mut certificate = params(name, &[]);
        certificate.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let signed = certificate.self_signed(&key).expect("it is signed");
        Self { certificate: signed.pem(), issuer: Issuer::new(certificate, key) }
    }

    /// A certificate for a server with these names.
    pub(crate) fn server(&self, names: &[&str]) -> Identity {
        self.sign(params("server", names), ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate for a user of the database.
    pub(crate) fn user(&self, name: &str) -> Identity {
        self.sign(params(name, &[]), ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(&self, mut certificate: CertificateParams, purpose: ExtendedKeyUsagePurpose) -> Identity {
        let key = new_key();
        certificate.extended_key_usages.push(purpose);
        let signed = certificate.signed_by(&key, &self.issuer).expect("it is signed");
        Identity { certificate: signed.pem(), key: key.serialize_pem() }
    }
}

/// A self-signed certificate as `openssl req -x509` makes it, which is also a CA certificate.
pub(crate) fn self_signed(names: &[&str], last_year: i32) -> Identity {
    let key = new_key();
    let mut certificate = params("server", names);
    certificate.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    certificate.not_after = date_time_ymd(last_year, 1, 1);
    let signed = certificate.self_signed(&key).expect("it is signed");
    Identity { certificate: signed.pem(), key: key.serialize_pem() }
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("a key is made")
}

fn params(name: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("the names are valid");
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(2020, 1, 1);
    params
}
