//! TLS: whom to trust.

use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::error::OpenError;
use crate::options::ValkeyOptions;

/// Trusts what the file `ca` holds, or else what the system trusts.
pub(super) fn connector(options: &ValkeyOptions) -> Result<TlsConnector, OpenError> {
    let unusable = |detail: String| OpenError::Url { url: options.to_string(), detail };
    let roots = match &options.ca {
        Some(file) => {
            let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
            read.map_err(|error| unusable(format!("its ca cannot be read: {error}")))?
        }
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut trusted = RootCertStore::empty();
    // The system may hold certificates of kinds that are not known here; the rest will do.
    let (added, _) = trusted.add_parsable_certificates(roots);
    if added == 0 {
        return Err(unusable(match options.ca {
            Some(_) => "its ca holds no certificate".to_owned(),
            None => {
                "the system trusts nobody; name the server's root certificate with ca".to_owned()
            }
        }));
    }
    // The provider is named here and not installed for the process: that is the application's.
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(format!("TLS cannot be used: {error}")))?
        .with_root_certificates(trusted)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
