//! Certificates for tests of TLS.

use rcgen::{CertificateParams, KeyPair};

/// A certificate that signs itself, for the loopback address, and its key; both as PEM.
pub struct Signed {
    pub cert: String,
    pub key: String,
}

/// Each is another one.
pub fn signed() -> Signed {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let cert = params.self_signed(&key).unwrap();
    Signed { cert: cert.pem(), key: key.serialize_pem() }
}
