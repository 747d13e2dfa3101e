//! What can be seen of a server process: metrics at an address of their own, traces at a collector.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use ff_test::collector;
use ff_test::servers::{Server, ServerOptions};
use tempfile::TempDir;

use crate::support::{Running, Site, Told, command, ff};

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
fn who_serves_nothing_else_still_shows_metrics_where_it_is_told_to() {
    let metrics = "server.metrics_addr=127.0.0.1:0";
    let arguments = ["server", "--store", "sqlite::memory:", "--engine-only", "--set", metrics];
    let mut running = Running::start(command(&arguments));
    let line = running.line_with("metrics on ");
    let addr = line.strip_prefix("metrics on http://").unwrap().strip_suffix("/metrics").unwrap();
    running.line_with("background work on ");
    let shown = get(addr, "/metrics");
    assert!(shown.contains("ff_scanner_cycle_total{scanner=\"lease_expiry\"}"), "{shown}");
    for (path, status) in [("/livez", "200"), ("/readyz", "200"), ("/v1/executions", "404")] {
        let answer = get(addr, path);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
    }
    assert_eq!(running.terminate(), 0);
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
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("ff.db").display());
    traces_of_a_server_reach_a_collector(store, folder);
}

#[test]
fn traces_of_a_server_on_valkey_reach_a_collector() {
    let server = Server::start(ServerOptions::default());
    let store = format!("{}?prefix=traced", server.url());
    traces_of_a_server_reach_a_collector(store, tempfile::tempdir().unwrap());
}

fn traces_of_a_server_reach_a_collector(store: String, folder: TempDir) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("otlp.endpoint=http://{}", listener.local_addr().unwrap());
    let parts = ["flowfabric", "POST /v1/executions", "ff.submit_execution"];
    let collector = thread::spawn(move || collected(&listener, &parts));
    let mut site = Site::with(store, folder, &["--set", &endpoint]);
    let id = site.submit(&[]);
    let record = site.ff(&["get", &id, "--json"]).json();
    assert_eq!(record["trace_context"].as_str().unwrap().len(), 55, "what is submitted keeps it");
    assert_eq!(site.running.terminate(), 0, "the last spans go out before it ends");
    assert!(!collector.join().unwrap().is_empty());
}

#[test]
fn a_bad_address_for_reports_stops_the_start_and_a_good_one_is_not_shown() {
    let dsn = "https://5ecr37@sentry.example/7";
    let print = |dsn: &str| {
        let mut print = command(&["server", "--print-config"]);
        Told::of(&print.env("FF_SENTRY_DSN", dsn).output().unwrap())
    };
    let shown = print(dsn).ok();
    assert!(shown.contains("dsn is set and not shown") && !shown.contains("5ecr37"), "{shown}");
    let bad = print("https://5ecr37@sentry.example/");
    assert_eq!(bad.code, 2, "{bad:?}");
    assert!(bad.err.contains("sentry.dsn") && bad.err.contains("project"), "{bad:?}");
    assert!(!bad.err.contains("5ecr37"), "{bad:?}");
}

#[test]
fn an_error_of_a_server_is_reported_before_it_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let dsn = format!("http://5ecr37@{}/7", listener.local_addr().unwrap());
    let taken = thread::spawn(move || collector::take(&listener));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ff.db");
    let store = format!("sqlite:{}", path.display());
    ff(&["--store", &store, "submit", "--lane", "l", "--kind", "k"]).ok();
    // What the reconcilers look for is an error that a real server tells of.
    let spoil = "DELETE FROM ready; DELETE FROM timer;";
    rusqlite::Connection::open(&path).unwrap().execute_batch(spoil).unwrap();
    let often = "engine.index_reconciler_interval_ms=100";
    let serve = ["server", "--store", &store, "--listen-addr", "127.0.0.1:0", "--set", often];
    let mut serve = command(&serve);
    let mut running = Running::start(serve.env("FF_SENTRY_DSN", &dsn));
    let (line, body) = taken.join().unwrap();
    assert!(line.starts_with("POST /api/7/envelope/ "), "{line}");
    let body = String::from_utf8(body).unwrap();
    assert!(body.contains("ff_engine") && body.contains("index_reconciler"), "{body}");
    assert!(!body.contains("5ecr37"), "{body}");
    assert_eq!(running.terminate(), 0);
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
