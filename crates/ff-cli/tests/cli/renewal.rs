//! SIGHUP: a server reads its certificate and key again.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use rcgen::{CertificateParams, KeyPair};
use reqwest::{Certificate, Client};

use crate::support::Site;

const PATIENCE: Duration = Duration::from_secs(60);

/// A certificate for the loopback address that signs itself, and its key.
fn signed() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// Puts a file in place whole, with this time of its last change.
fn put(folder: &Path, name: &str, text: &str, changed: SystemTime) {
    let beside = folder.join(format!("{name}.new"));
    fs::write(&beside, text).unwrap();
    File::options().write(true).open(&beside).unwrap().set_modified(changed).unwrap();
    fs::rename(&beside, folder.join(name)).unwrap();
}

/// Whether a new connection shows this certificate.
fn is_shown(runtime: &tokio::runtime::Runtime, certificate: &str, url: &str) -> bool {
    let root = Certificate::from_pem(certificate.as_bytes()).unwrap();
    let client = Client::builder().tls_certs_only([root]).timeout(PATIENCE).build().unwrap();
    let answer = runtime.block_on(async { client.get(format!("{url}/livez")).send().await });
    answer.is_ok_and(|answer| answer.status() == 200)
}

#[test]
fn a_hangup_makes_it_read_its_certificate_again() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let old = signed();
    // Without a hangup a server sees a change by the time and the length of its files. With both the
    // same only the hangup can be what tells it.
    let new = std::iter::repeat_with(signed);
    let new = new.take(1_000).find(|new| (new.0.len(), new.1.len()) == (old.0.len(), old.1.len()));
    let new = new.expect("two certificates of one length");
    let changed = SystemTime::now() - Duration::from_secs(60);
    let write = |(certificate, key): &(String, String)| {
        put(folder.path(), "key.pem", key, changed);
        put(folder.path(), "cert.pem", certificate, changed);
    };
    write(&old);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (certificate, key) = (path("cert.pem"), path("key.pem"));
    let store = format!("sqlite:{}", path("ff.db"));
    let settings = ["server.tls_cert=", "server.tls_key="];
    let settings = [format!("{}{certificate}", settings[0]), format!("{}{key}", settings[1])];
    let site = Site::with(
        store,
        tempfile::tempdir().unwrap(),
        &["--set", &settings[0], "--set", &settings[1]],
    );
    assert!(is_shown(&runtime, &old.0, &site.url));
    write(&new);
    assert!(!is_shown(&runtime, &new.0, &site.url));
    let pid = site.running.child.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    let asked = Instant::now();
    while !is_shown(&runtime, &new.0, &site.url) {
        assert!(asked.elapsed() < PATIENCE, "the new certificate is never shown");
    }
    assert!(!is_shown(&runtime, &old.0, &site.url));
}
