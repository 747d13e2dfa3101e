//! Servers over TLS: whom a command trusts, and what it says of others.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

use crate::support::{Site, Told};

/// A server whose certificate signs itself, in `cert.pem` of the folder.
fn site(folder: &Path, is_authority: bool) -> Site {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    fs::write(folder.join("cert.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    let set = |name: &str, file: &str| format!("server.{name}={}", folder.join(file).display());
    let (cert, key) = (set("tls_cert", "cert.pem"), set("tls_key", "key.pem"));
    let store = format!("sqlite:{}", folder.join("ff.db").display());
    Site::with(store, tempfile::tempdir().unwrap(), &["--set", &cert, "--set", &key])
}

#[test]
fn a_certificate_that_is_named_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(folder.path(), false);
    let cert = folder.path().join("cert.pem").display().to_string();
    let stranger = site.ff(&["ls"]);
    assert_eq!(stranger.code, 8, "{stranger:?}");
    assert!(stranger.err.contains("--ca"), "{stranger:?}");
    site.ff(&["ls", "--ca", &cert]).ok();
    Told::of(&site.command(&["ls"]).env("FF_CA", &cert).output().unwrap()).ok();
    let gone = site.ff(&["ls", "--ca", "/no/such/file"]);
    assert!(gone.code == 2 && gone.err.contains("/no/such/file"), "{gone:?}");
    let plain = site.url.replace("https://", "http://");
    let told = site.ff(&["--url", &plain, "ls"]);
    assert!(told.code == 8 && told.err.contains("https://"), "{told:?}");
}

#[test]
fn what_is_wrong_with_a_certificate_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let authority = site(folder.path(), true);
    let cert = folder.path().join("cert.pem").display().to_string();
    let told = authority.ff(&["ls", "--ca", &cert]);
    assert!(told.code == 8 && told.err.contains("CA:FALSE"), "{told:?}");
    let plain = Site::start();
    let tls = plain.url.replace("http://", "https://");
    let told = plain.ff(&["--url", &tls, "ls"]);
    assert!(told.code == 8 && told.err.contains("write http://"), "{told:?}");
}
