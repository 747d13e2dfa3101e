//! A worker in another language, over nothing but HTTP.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::path::Path;
use std::process::{Command, Stdio};

use ff_test::http::{Site, bytes_of};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

ff_test::on_every_store! { a_worker_in_python_does_its_work }

async fn a_worker_in_python_does_its_work(site: &Site) {
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/http-worker-python/worker.py");
    let worker = Command::new("python3")
        .arg(script)
        .arg("1")
        .env("FF_URL", format!("http://{}", site.addr))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = site.submit(json!({ "lane": "drafts", "payload_json": "a letter" })).await;
    let suspended = |types: &Value| types == "execution.suspended";
    let path = format!("/v1/executions/{id}/events");
    let events = site.request("GET", &path);
    let seen =
        site.follow(events, |seen| seen.iter().any(|event| suspended(&event.data["type"]))).await;
    assert!(!seen.is_empty());
    let frames = site.read(&id, "/attempts/0/stream").await.expect(200);
    assert_eq!(bytes_of(&frames["frames"][0]["payload_b64"]), br#""drafting a letter""#);
    site.act(&id, "waitpoints/approval/approve", json!({ "comment": "fine" })).await.expect(200);
    let record = site.read(&id, "?wait_ms=20000&include=result").await.expect(200);
    let result: Value = serde_json::from_slice(&bytes_of(&record["result_b64"])).unwrap();
    assert_eq!(result, json!({ "draft": "draft 1", "decision": "approved" }));
    assert_eq!(record["total_attempt_count"], 1);
    let output = spawn_blocking(move || worker.wait_with_output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
