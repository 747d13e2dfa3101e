//! What can be seen of a server process: metrics at an address of their own, traces at a collector.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use ff_test::collector;

use crate::support::{Running, Site, command, ff};

fn get(addr: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: any\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn metrics_have_an_address_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("ff.db").display());
    let metrics = "server.metrics_addr=127.0.0.1:0";
    let serve = ["server", "--store", &store, "--listen-addr", "127.0.0.1:0", "--set", metrics];
    let mut token = command(&serve);
    token.env("FF_API_TOKEN", "0123456789abcdef");
    let running = Running::start(token);
    let line = running.line_with("listening on ");
    let server = line.strip_prefix("listening on http://").unwrap().to_owned();
    let line = running.line_with("metrics on ");
    let addr = line.strip_prefix("metrics on http://").unwrap().strip_suffix("/metrics").unwrap();
    assert!(get(&server, "/metrics").starts_with("HTTP/1.1 401"));
    let shown = get(addr, "/metrics");
    assert!(shown.starts_with("HTTP/1.1 200"), "{shown}");
    assert!(shown.contains("ff_scanner_cycle_total{scanner=\"lease_expiry\"}"), "{shown}");
    let other = get(addr, "/v1/executions");
    assert!(other.starts_with("HTTP/1.1 404"), "and nothing else: {other}");
}

#[test]
fn who_serves_nothing_refuses_an_address_for_metrics() {
    let metrics = "server.metrics_addr=127.0.0.1:0";
    let told = ff(&["server", "--store", "sqlite::memory:", "--engine-only", "--set", metrics]);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.err.contains("server.metrics_addr"), "{told:?}");
}

/// Takes requests until all parts have come.
fn collected(listener: &TcpListener, parts: &[&str]) -> Vec<u8> {
    let mut all = Vec::new();
    while !parts.iter().all(|part| collector::holds(&all, part.as_bytes())) {
        all.extend(collector::take(listener).1);
    }
    all
}

#[test]
fn traces_reach_a_collector() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("otlp.endpoint=http://{}", listener.local_addr().unwrap());
    let parts = ["flowfabric", "POST /v1/executions", "ff.submit_execution"];
    let collector = thread::spawn(move || collected(&listener, &parts));
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("ff.db").display());
    let mut site = Site::with(store, folder, &["--set", &endpoint]);
    let id = site.submit(&[]);
    let record = site.ff(&["get", &id, "--json"]).json();
    assert_eq!(record["trace_context"].as_str().unwrap().len(), 55, "what is submitted keeps it");
    assert_eq!(site.running.terminate(), 0, "the last spans go out before it ends");
    assert!(!collector.join().unwrap().is_empty());
}

#[test]
fn the_files_of_deployments_name_settings_that_there_are() {
    let known = ff(&["server", "--print-config"]).ok();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let mut named = 0;
    for path in [
        "docker/Dockerfile",
        "docker/compose.yaml",
        "kubernetes/server.yaml",
        "systemd/flowfabric.service",
    ] {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        let words = text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
        for name in words.filter(|word| word.starts_with("FF_") && word.len() > 3) {
            let mut told = command(&["server", "--print-config"]);
            let told = told.env(name.trim_end_matches("_FILE"), "?").output().unwrap();
            let told = String::from_utf8_lossy(&told.stderr).into_owned();
            assert!(!told.contains("mean nothing here"), "{path} names {name}: {told}");
            named += 1;
        }
    }
    assert!(named > 10 && !known.is_empty());
}
