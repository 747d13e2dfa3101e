//! TLS: certificates, their renewal, clients with certificates.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ff_core::partition::PartitionConfig;
use ff_server::{BindError, ServerOptions};
use ff_test::certificate::{Signed, signed};
use ff_test::http::Site;
use ff_test::stages::{SqliteStage, ValkeyStage};
use ff_test::world::PATIENCE;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use reqwest::{Certificate, Client, ClientBuilder, Identity};
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// Files for a server's settings.
struct Files(TempDir);

impl Files {
    fn of(signed: &Signed) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.write(signed);
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, signed: &Signed) {
        std::fs::write(self.path("cert.pem"), &signed.cert).unwrap();
        std::fs::write(self.path("key.pem"), &signed.key).unwrap();
    }

    fn options(&self) -> ServerOptions {
        ServerOptions {
            tls_cert: Some(self.path("cert.pem")),
            tls_key: Some(self.path("key.pem")),
            ..ServerOptions::default()
        }
    }
}

async fn site(options: ServerOptions) -> Site {
    Site::with(SqliteStage::in_memory(PartitionConfig::default()), options).await
}

fn trusting(cert: &str) -> ClientBuilder {
    let root = Certificate::from_pem(cert.as_bytes()).unwrap();
    Client::builder().tls_certs_only([root]).timeout(PATIENCE)
}

async fn status(client: &Client, site: &Site) -> Option<u16> {
    let answer = client.get(format!("https://{}/v1/executions", site.addr)).send().await.ok()?;
    Some(answer.status().as_u16())
}

/// Connects anew until it works, which must be soon.
async fn is_trusted_soon(cert: &str, site: &Site) {
    let begun = Instant::now();
    while status(&trusting(cert).build().unwrap(), site).await != Some(200) {
        assert!(begun.elapsed() < PATIENCE, "the new certificate is never shown");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_shown_and_no_connection_breaks() {
    let (old, files) = made();
    is_renewed(&old, &files, site(files.options()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_before_a_store_on_valkey() {
    let (old, files) = made();
    let stage = ValkeyStage::standalone(PartitionConfig::default()).await;
    is_renewed(&old, &files, Site::with(stage, files.options()).await).await;
}

fn made() -> (Signed, Files) {
    let signed = signed();
    let files = Files::of(&signed);
    (signed, files)
}

async fn is_renewed(old: &Signed, files: &Files, site: Site) {
    let new = signed();
    let client = trusting(&old.cert).build().unwrap();
    assert_eq!(status(&client, &site).await, Some(200));
    assert_eq!(status(&trusting(&new.cert).build().unwrap(), &site).await, None);
    let plain = site.client.get(format!("http://{}/livez", site.addr)).send().await;
    assert!(plain.is_err(), "what is not encrypted is not answered");
    files.write(&new);
    is_trusted_soon(&new.cert, &site).await;
    assert_eq!(status(&client, &site).await, Some(200), "its connection lives on");
    assert_eq!(status(&trusting(&old.cert).build().unwrap(), &site).await, None);
    drop(client);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_cannot_be_used_leave_the_old_ones_in_place() {
    let (old, new) = (signed(), signed());
    let files = Files::of(&old);
    let site = site(files.options()).await;
    // A certificate without its key: half of a renewal.
    std::fs::write(files.path("cert.pem"), &new.cert).unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1_500) {
        let status = status(&trusting(&old.cert).build().unwrap(), &site).await;
        assert_eq!(status, Some(200), "the old certificate stays");
    }
    std::fs::write(files.path("key.pem"), &new.key).unwrap();
    is_trusted_soon(&new.cert, &site).await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_show_a_certificate_where_one_is_asked_for() {
    let server = signed();
    let files = Files::of(&server);
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    std::fs::write(files.path("ca.pem"), authority.pem()).unwrap();
    let options = ServerOptions { client_ca: Some(files.path("ca.pem")), ..files.options() };
    let site = site(options).await;
    assert_eq!(status(&trusting(&server.cert).build().unwrap(), &site).await, None);
    let identity = |cert: String, key: &str| {
        let identity = Identity::from_pem(format!("{cert}{key}").as_bytes()).unwrap();
        trusting(&server.cert).identity(identity).build().unwrap()
    };
    let stranger = identity(server.cert.clone(), &server.key);
    assert_eq!(status(&stranger, &site).await, None);
    let client_key = KeyPair::generate().unwrap();
    let client = CertificateParams::new(vec!["client".to_owned()]).unwrap();
    let client = client.signed_by(&client_key, &issuer).unwrap();
    let known = identity(client.pem(), &client_key.serialize_pem());
    assert_eq!(status(&known, &site).await, Some(200));
    drop((stranger, known));
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_does_not_take_for_ever() {
    let files = Files::of(&signed());
    let options = ServerOptions { header_timeout: Duration::from_millis(200), ..files.options() };
    let site = site(options).await;
    let mut silent = TcpStream::connect(site.addr).await.unwrap();
    let mut byte = [0];
    let ended = tokio::time::timeout(PATIENCE, silent.read(&mut byte)).await;
    assert!(matches!(ended, Ok(Ok(0) | Err(_))), "{ended:?}");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_cannot_work_stop_the_start() {
    let files = Files::of(&signed());
    std::fs::write(files.path("empty.pem"), "").unwrap();
    let stage = SqliteStage::in_memory(PartitionConfig::default());
    let whole = files.options();
    for wrong in [
        ServerOptions { tls_key: None, ..whole.clone() },
        ServerOptions { tls_cert: None, ..whole.clone() },
        ServerOptions { client_ca: Some(files.path("empty.pem")), ..ServerOptions::default() },
        ServerOptions { tls_cert: Some(files.path("none.pem")), ..whole.clone() },
        ServerOptions { tls_cert: Some(files.path("empty.pem")), ..whole.clone() },
        ServerOptions { tls_key: Some(files.path("cert.pem")), ..whole.clone() },
        ServerOptions { client_ca: Some(files.path("empty.pem")), ..whole },
    ] {
        let (_stop, shutdown) = ff_engine::Shutdown::channel();
        let shown = format!("{wrong:?}");
        let bound = ff_server::Server::bind(stage.store.clone(), wrong, shutdown).await;
        assert!(matches!(bound.err(), Some(BindError::Tls(_))), "{shown}");
    }
}
