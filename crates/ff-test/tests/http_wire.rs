//! Bad and slow clients: each is told or cut off, and everybody else is still answered.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::time::Duration;

use ff_core::partition::PartitionConfig;
use ff_server::ServerOptions;
use ff_test::http::Site;
use ff_test::stages::SqliteStage;
use ff_test::world::PATIENCE;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

async fn site(options: ServerOptions) -> Site {
    Site::with(SqliteStage::in_memory(PartitionConfig::default()), options).await
}

async fn connect(site: &Site, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(site.addr).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// All that a connection says to its end.
async fn rest(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    // A connection that is cut while we still write ends with an error; what was said counts.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut text)).await.expect("it ends");
    String::from_utf8_lossy(&text).into_owned()
}

async fn still_answers(site: &Site) {
    let answer = timeout(PATIENCE, site.get("/v1/executions")).await.expect("an answer in time");
    answer.expect(200);
}

#[tokio::test]
async fn a_header_that_does_not_come_ends_the_connection() {
    let header_timeout = Duration::from_millis(200);
    let site = site(ServerOptions { header_timeout, ..ServerOptions::default() }).await;
    let slow = connect(&site, "GET /livez HTTP/1.1\r\nhost: loc").await;
    let silent = connect(&site, "").await;
    still_answers(&site).await;
    assert_eq!(rest(slow).await, "");
    assert_eq!(rest(silent).await, "");
    site.stop().await;
}

#[tokio::test]
async fn large_headers_and_nonsense_are_told() {
    let site = site(ServerOptions::default()).await;
    for bytes in [17 << 10, 60 << 10, 300 << 10] {
        let header = "x".repeat(bytes);
        let text = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\nx-large: {header}\r\n\r\n");
        let mut stream = TcpStream::connect(site.addr).await.unwrap();
        let _ = stream.write_all(text.as_bytes()).await;
        let told = rest(stream).await;
        assert!(told.starts_with("HTTP/1.1 431"), "{bytes}: {told}");
        assert!(told.contains("application/problem+json"), "{told}");
        assert!(told.contains(r#""code":"headers_too_large""#), "{told}");
        assert!(told.contains(r#""trace_id":""#), "{told}");
    }
    let told = rest(connect(&site, "NONSENSE\r\n\r\n").await).await;
    assert!(told.starts_with("HTTP/1.1 400") && told.contains(r#""errors":["#), "{told}");
    let raw = "GET /v1/executions/{fp:1}:0199aabb-0000-7000-8000-000000000001 HTTP/1.1\r\n\
               host: localhost\r\nconnection: close\r\n\r\n";
    let told = rest(connect(&site, raw).await).await;
    assert!(
        told.contains(r#""code":"execution_not_found""#),
        "ids stand in paths as they are: {told}"
    );
    still_answers(&site).await;
    site.stop().await;
}

#[tokio::test]
async fn large_bodies_are_told_and_cost_little() {
    let site = site(ServerOptions::default()).await;
    let body = vec![b' '; 50 << 20];
    let large = site.send(site.request("POST", "/v1/executions").body(body));
    let (large, ()) = tokio::join!(large, still_answers(&site));
    large.problem(413, "payload_too_large");
    let head =
        "POST /v1/executions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n";
    let told = rest(connect(&site, head).await).await;
    assert!(told.starts_with("HTTP/1.1 413"), "{told}");
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep = format!(r#"{{"lane":"l","kind":"k","payload_json":{deep}}}"#);
    let deep = site.send(site.request("POST", "/v1/executions").body(deep)).await;
    deep.problem(400, "invalid_input");
    site.stop().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let request_timeout = Duration::from_millis(200);
    let site = site(ServerOptions { request_timeout, ..ServerOptions::default() }).await;
    let head = "POST /v1/executions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{";
    let slow = connect(&site, head).await;
    still_answers(&site).await;
    let told = rest(slow).await;
    assert!(told.starts_with("HTTP/1.1 504") && told.contains(r#""code":"timeout""#), "{told}");
    site.stop().await;
}

#[tokio::test]
async fn crowds_are_told_to_come_back() {
    let site = site(ServerOptions { max_connections: 2, ..ServerOptions::default() }).await;
    let kept = "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut seen = [0; 12];
    let mut first = connect(&site, kept).await;
    first.read_exact(&mut seen).await.unwrap();
    let mut second = connect(&site, kept).await;
    second.read_exact(&mut seen).await.unwrap();
    let told = rest(TcpStream::connect(site.addr).await.unwrap()).await;
    assert!(told.starts_with("HTTP/1.1 503") && told.contains("retry-after: 1"), "{told}");
    drop((first, second));
    site.stop().await;
}

#[tokio::test]
async fn requests_beyond_what_it_can_do_are_told_to_come_back() {
    let site = site(ServerOptions { max_requests: 0, ..ServerOptions::default() }).await;
    site.get("/v1/executions").await.problem(503, "unavailable");
    site.get("/v1/events").await.expect(200);
    site.stop().await;
}

#[tokio::test]
async fn followers_are_bounded_and_end_with_the_server() {
    let site = site(ServerOptions { max_stream_tails: 1, ..ServerOptions::default() }).await;
    let follow = "GET /v1/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    let mut half_open = connect(&site, follow).await;
    let mut seen = [0; 15];
    half_open.read_exact(&mut seen).await.unwrap();
    assert_eq!(&seen, b"HTTP/1.1 200 OK");
    let second = site.request("GET", "/v1/events").header("accept", "text/event-stream");
    site.send(second).await.problem(429, "resource_exhausted");
    still_answers(&site).await;
    site.begin_to_stop();
    assert!(rest(half_open).await.contains("retry: 2000"));
    site.stop().await;
}

#[tokio::test]
async fn those_who_wait_are_answered_when_it_stops() {
    let site = site(ServerOptions::default()).await;
    let task = site.start(json!({})).await;
    let claim = json!({ "worker_id": "w", "worker_instance_id": "w-1", "wait_ms": 60_000 });
    let leases = json!([{ "execution_id": task.id, "handle": task.handle }]);
    let beat = json!({ "boot_id": "b1", "leases": leases, "wait_ms": 30_000 });
    let tail = format!("/v1/executions/{}/attempts/0/stream/tail?block_ms=30000", task.id);
    let get = format!("/v1/executions/{}?wait_ms=60000", task.id);
    let stopping = async {
        // All of them wait once the server has answered somebody who came after them.
        for _ in 0..20 {
            still_answers(&site).await;
        }
        site.begin_to_stop();
    };
    let all = async {
        tokio::join!(
            site.post("/v1/leases", claim),
            site.post("/v1/workers/w-1/heartbeat", beat),
            site.get(&tail),
            site.get(&get),
            site.get("/v1/events?wait_ms=60000"),
            stopping,
        )
    };
    let (claimed, beat, tailed, got, events, ()) = timeout(PATIENCE, all).await.expect("at once");
    assert_eq!(claimed.expect(200), json!({ "tasks": [] }));
    assert!(beat.expect(200)["leases"][0]["expires_at"].is_string());
    assert_eq!(tailed.expect(200)["frames"], json!([]));
    assert_eq!(got.expect(200)["public_state"], "active");
    assert!(events.expect(200)["next_cursor"].is_string());
    site.stop().await;
}
