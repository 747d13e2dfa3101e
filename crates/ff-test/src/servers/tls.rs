//! TLS before a server.

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use tempfile::NamedTempFile;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::server::Server;
use crate::certificate::{Signed, signed};

/// Takes TLS connections and passes on in clear what they say, as a proxy before a server does. So
/// TLS is tested whether or not the server was built with it. Ends when it is dropped.
pub struct TlsFront {
    port: u16,
    ca: NamedTempFile,
    accepting: AbortHandle,
}

impl TlsFront {
    pub async fn start(server: &Server) -> Self {
        let signed = signed();
        let acceptor = acceptor(&signed);
        let ca = NamedTempFile::new().unwrap();
        std::fs::write(ca.path(), &signed.cert).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepting = tokio::spawn(accept(listener, acceptor, server.port())).abort_handle();
        Self { port, ca, accepting }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// A file with the certificate to trust.
    pub fn ca(&self) -> &Path {
        self.ca.path()
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn acceptor(signed: &Signed) -> TlsAcceptor {
    let cert = CertificateDer::from_pem_slice(signed.cert.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, port: u16) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(pass_on(client, acceptor.clone(), port));
        while connections.try_join_next().is_some() {}
    }
}

async fn pass_on(client: TcpStream, acceptor: TlsAcceptor, port: u16) -> io::Result<()> {
    let mut client = acceptor.accept(client).await?;
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
