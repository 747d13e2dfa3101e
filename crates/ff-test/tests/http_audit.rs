//! The audit log: who did what to which thing, and never a secret.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::io;
use std::sync::{LazyLock, Mutex};

use ff_test::http::{Answer, Site};
use serde_json::{Value, json};
use tracing_subscriber::EnvFilter;

ff_test::on_every_store! {
    what_operators_do_is_noted
}

/// All that the process has logged.
static LOG: LazyLock<Mutex<Vec<u8>>> = LazyLock::new(|| {
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_env_filter(EnvFilter::new("trace"))
        .with_writer(|| Log)
        .init();
    Mutex::new(Vec::new())
});

struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The entry about a request.
fn entry(answer: &Answer) -> Option<String> {
    let log = String::from_utf8(LOG.lock().unwrap().clone()).unwrap();
    let trace = answer.header("x-request-id");
    let mut entries = log.lines().filter(|line| line.contains(" audit: ") && line.contains(trace));
    let entry = entries.next().map(str::to_owned);
    assert_eq!(entries.next(), None, "one entry a request");
    entry
}

#[track_caller]
fn noted(answer: &Answer, key: &str, action: &str, thing: &str, outcome: &str) {
    let entry = entry(answer).expect("an entry");
    for (field, value) in [
        ("key", format!("{key:?}")),
        ("action", action.to_owned()),
        ("thing", format!("{thing:?}")),
        ("outcome", format!("{outcome:?}")),
    ] {
        assert!(entry.contains(&format!(" {field}={value}")), "{field}={value} in {entry}");
    }
}

async fn what_operators_do_is_noted(site: &Site) {
    LazyLock::force(&LOG);
    let first = site.post("/v1/keys", json!({ "name": "owner" })).await;
    let made = first.expect(201);
    let (id, key) = (made["key_id"].as_str().unwrap(), made["key"].as_str().unwrap());
    noted(&first, "nobody", "POST /v1/keys", id, "ok");
    let send = async |method: &str, path: &str, body: Value| {
        let request = site.request(method, path).bearer_auth(key).body(body.to_string());
        site.send(request).await
    };
    let submitted = send("POST", "/v1/executions", json!({ "lane": "l", "kind": "k" })).await;
    let execution = submitted.expect(201)["execution_id"].as_str().unwrap().to_owned();
    assert_eq!(entry(&submitted), None, "work is not audited");
    let path = format!("/v1/executions/{execution}");
    let delete = "DELETE /v1/executions/{execution_id}";
    let deleted = send("DELETE", &path, json!({})).await;
    noted(&deleted, id, delete, &execution, "execution_not_terminal");
    let refused = site.send(site.request("DELETE", &path)).await;
    noted(&refused, "none", delete, &execution, "unauthenticated");
    let token = send("POST", &format!("{path}/waitpoints/k/token"), json!({})).await;
    let action = "POST /v1/executions/{execution_id}/waitpoints/{waitpoint}/token";
    noted(&token, id, action, &format!("{execution} k"), "waitpoint_not_found");
    let reader = json!({ "name": "reader", "scopes": ["executions:read"] });
    let reader = send("POST", "/v1/keys", reader).await;
    let reader_id = reader.expect(201)["key_id"].as_str().unwrap().to_owned();
    noted(&reader, id, "POST /v1/keys", &reader_id, "ok");
    let lacking = site.request("DELETE", &path).bearer_auth(reader.json()["key"].as_str().unwrap());
    noted(&site.send(lacking).await, &reader_id, delete, &execution, "forbidden");
    let gone = send("DELETE", &format!("/v1/keys/{reader_id}"), json!({})).await;
    gone.expect(204);
    noted(&gone, id, "DELETE /v1/keys/{key_id}", &reader_id, "ok");
    let log = String::from_utf8(LOG.lock().unwrap().clone()).unwrap();
    for key in [key.to_owned(), reader.json()["key"].as_str().unwrap().to_owned()] {
        let secret = key.rsplit_once('_').unwrap().1;
        assert!(!log.contains(secret), "no secret in the log");
    }
}
