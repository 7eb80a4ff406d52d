//! A server that presents the certificate of another server, without its private key.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection};

use crate::certificates::Identity;

/// Starts it for one connection; returns its port.
pub(crate) fn start(stolen_certificate: &str, own: &Identity) -> u16 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = CertificateDer::pem_slice_iter(stolen_certificate.as_bytes())
        .collect::<Result<_, _>>()
        .expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).expect("a key");
    let key = provider.key_provider.load_private_key(key).expect("a key that can sign");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the default versions")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Always(Arc::new(CertifiedKey::new(chain, key)))));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it has an address").port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client connects");
        stream.read_exact(&mut [0; 8]).expect("the caller asks for TLS");
        stream.write_all(b"S").expect("the caller listens");
        let mut connection = ServerConnection::new(Arc::new(config)).expect("a connection");
        // The handshake fails when the client checks the signature.
        drop(connection.complete_io(&mut stream));
    });
    port
}

#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}
