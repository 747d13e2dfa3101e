//! TLS: certificates from files, read again when they change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use ff_engine::Shutdown;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

use crate::options::ServerOptions;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Why there is no TLS with these files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("tls_cert and tls_key come together, and client_ca only with them")]
    Incomplete,
    #[error("{path}: {detail}")]
    File { path: PathBuf, detail: String },
    #[error("{0}")]
    Config(#[from] rustls::Error),
}

/// The files as the configuration names them.
#[derive(Debug, Clone)]
struct Files {
    cert: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
}

/// What is shown to whoever connects next. Connections keep what they began with.
#[derive(Clone)]
pub(crate) struct Tls {
    files: Files,
    current: Arc<Mutex<TlsAcceptor>>,
}

/// By which a file is told from what it was: when it changed, and how long it is.
type Stamp = Vec<Option<(SystemTime, u64)>>;

impl Tls {
    /// None when the configuration names no files.
    pub(crate) fn of(options: &ServerOptions) -> Result<Option<Self>, TlsError> {
        let files = match (&options.tls_cert, &options.tls_key, &options.client_ca) {
            (None, None, None) => return Ok(None),
            (Some(cert), Some(key), client_ca) => {
                Files { cert: cert.clone(), key: key.clone(), client_ca: client_ca.clone() }
            }
            _ => return Err(TlsError::Incomplete),
        };
        let current = Arc::new(Mutex::new(files.acceptor()?));
        Ok(Some(Self { files, current }))
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks after the files until the wish to stop. What cannot be used leaves the old in place: a
    /// certificate and its key are seldom written in one step.
    ///
    /// SIGHUP is heard from the call on: before that it would end the process.
    pub(crate) fn keep_current(self, mut shutdown: Shutdown) -> impl Future<Output = ()> + Send {
        let mut hangups = Hangups::new();
        let mut tried = self.files.stamp();
        async move {
            loop {
                let told = tokio::select! {
                    () = shutdown.requested() => return,
                    () = hangups.next() => true,
                    () = tokio::time::sleep(LOOK) => false,
                };
                let stamp = self.files.stamp();
                if told || stamp != tried {
                    tried = stamp;
                    self.read_again();
                }
            }
        }
    }

    fn read_again(&self) {
        match self.files.acceptor() {
            Ok(acceptor) => {
                *self.current.lock().unwrap_or_else(PoisonError::into_inner) = acceptor;
                tracing::info!("the certificate was read again");
            }
            Err(error) => tracing::warn!(%error, "the old certificate stays"),
        }
    }
}

impl Files {
    fn stamp(&self) -> Stamp {
        let paths = [Some(&self.cert), Some(&self.key), self.client_ca.as_ref()];
        let stamp = |path: &PathBuf| {
            let found = std::fs::metadata(path).ok()?;
            Some((found.modified().ok()?, found.len()))
        };
        paths.into_iter().flatten().map(stamp).collect()
    }

    fn acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate)?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = verifier.build().map_err(|error| wrong(path, error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key =
            PrivateKeyDer::from_pem_file(&self.key).map_err(|error| wrong(&self.key, error))?;
        let mut config = builder.with_single_cert(certificates(&self.cert)?, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn wrong(path: &Path, error: impl std::fmt::Display) -> TlsError {
    TlsError::File { path: path.to_owned(), detail: error.to_string() }
}

/// All certificates of a file; a file without any is refused.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_file_iter(path).map_err(|error| wrong(path, error))?;
    let found: Result<Vec<_>, _> = found.collect();
    let found = found.map_err(|error| wrong(path, error))?;
    if found.is_empty() {
        return Err(wrong(path, "there is no certificate in it"));
    }
    Ok(found)
}

/// Tells of SIGHUP, by which operators ask to read files again.
#[cfg(unix)]
struct Hangups(Option<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Hangups {
    fn new() -> Self {
        let hangups = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup());
        Self(hangups.inspect_err(|error| tracing::warn!(%error, "SIGHUP is not heard")).ok())
    }

    async fn next(&mut self) {
        match &mut self.0 {
            Some(hangups) => {
                hangups.recv().await;
            }
            None => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
struct Hangups;

#[cfg(not(unix))]
impl Hangups {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) {
        std::future::pending().await
    }
}
