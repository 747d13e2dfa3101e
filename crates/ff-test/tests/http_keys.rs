//! API keys: who is let in, where, how often and for how long.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::time::{Duration, Instant};

use ff_server::{ApiToken, ServerOptions};
use ff_test::http::{Answer, Site, Task, merged};
use ff_test::world::PATIENCE;
use serde_json::{Value, json};

ff_test::on_every_store! {
    a_key_is_shown_once
    the_first_key_closes_every_server
    a_deleted_key_is_refused_on_every_server
    an_expired_key_is_refused
    a_key_that_is_over_already_is_not_made
    a_key_is_rotated_without_a_gap
    what_is_no_key_is_refused
    nobody_gives_more_than_they_have
    a_key_has_its_namespaces
    the_token_of_the_configuration_may_do_everything
    keys_are_slowed_down_one_by_one
    streams_and_waits_end_with_their_key
    submits_and_approvals_bear_the_name_of_the_key
    malformed_keys_are_pointed_at
}

/// The second that a server has to hear of a key that came or went, and what it may take to be told.
const IN_TIME: Duration = Duration::from_millis(1_000);

/// Asks until the status is another one, which must be in time.
async fn turns(ask: impl AsyncFn() -> Answer, from: u16, to: u16) {
    let begun = Instant::now();
    loop {
        let asked = begun.elapsed();
        let status = ask().await.status;
        if status == to {
            return;
        }
        assert_eq!(status, from);
        assert!(asked < IN_TIME, "still {status} after {asked:?}");
    }
}

async fn a_key_is_shown_once(site: &Site) {
    let fields = json!({
        "name": "reports", "scopes": ["executions:read", "admin"], "namespaces": ["default", "b"],
        "lanes": ["mail"], "expires_at": "2030-01-01T00:00:00.000Z",
    });
    let answer = site.post("/v1/keys", fields.clone()).await;
    let made = answer.expect(201);
    assert_eq!(answer.header("cache-control"), "no-store");
    let (id, key) = (made["key_id"].as_str().unwrap(), made["key"].as_str().unwrap());
    let (prefix, secret) = key.rsplit_once('_').unwrap();
    assert_eq!(prefix, format!("ffk_{id}"));
    assert!((8..=32).contains(&id.len()) && secret.len() == 64, "{key}");
    for field in ["name", "namespaces", "lanes", "expires_at", "scopes"] {
        assert_eq!(made[field], fields[field], "{field}");
    }
    let request = site.request("GET", "/v1/keys").bearer_auth(key);
    let listed = site.send(request).await;
    let item = &listed.expect(200)["items"][0];
    assert_eq!((&item["key_id"], &item["key"]), (&made["key_id"], &Value::Null));
    assert!(item["created_at"].is_string(), "{item}");
    assert!(!String::from_utf8_lossy(&listed.bytes).contains(secret), "no list shows a secret");
}

async fn the_first_key_closes_every_server(site: &Site) {
    let other = site.beside(ServerOptions::default()).await;
    site.get("/v1/executions").await.expect(200);
    other.get("/v1/executions").await.expect(200);
    let owner = site.owner().await;
    let answer = site.get("/v1/executions").await;
    answer.problem(401, "unauthenticated");
    assert_eq!(answer.header("www-authenticate"), "Bearer");
    turns(async || other.get("/v1/executions").await, 200, 401).await;
    owner.get("/v1/executions").await.expect(200);
    owner.at(&other).get("/v1/executions").await.expect(200);
    for open in
        ["/healthz", "/livez", "/readyz", "/version", "/openapi.json", "/problems/forbidden"]
    {
        assert_eq!(site.get(open).await.status, 200, "{open}");
    }
    // With keys it does not matter by which name the server is called.
    let by_name = owner.request("GET", "/v1/executions").header("host", "ff.example");
    site.send(by_name).await.expect(200);
    other.stop().await;
}

async fn a_deleted_key_is_refused_on_every_server(site: &Site) {
    let other = site.beside(ServerOptions::default()).await;
    let owner = site.owner().await;
    let key = owner.makes(json!({})).await;
    let there = key.at(&other);
    key.get("/v1/executions").await.expect(200);
    there.get("/v1/executions").await.expect(200);
    owner.delete(&format!("/v1/keys/{}", key.key_id)).await.expect(204);
    key.get("/v1/executions").await.problem(401, "unauthenticated");
    turns(async || there.get("/v1/executions").await, 200, 401).await;
    owner.delete(&format!("/v1/keys/{}", key.key_id)).await.problem(404, "key_not_found");
    // The last one opens a server on loopback again, and is none of its keys all the same.
    owner.delete(&format!("/v1/keys/{}", owner.key_id)).await.expect(204);
    owner.get("/v1/executions").await.problem(401, "unauthenticated");
    turns(async || site.get("/v1/executions").await, 401, 200).await;
    other.stop().await;
}

async fn an_expired_key_is_refused(site: &Site) {
    let owner = site.owner().await;
    let now = site.backend.server_time_ms().await.unwrap().0;
    let key = owner.makes(json!({ "expires_at": now + 60_000 })).await;
    key.get("/v1/executions").await.expect(200);
    site.pass(59_000).await;
    key.get("/v1/executions").await.expect(200);
    site.pass(1_000).await;
    turns(async || key.get("/v1/executions").await, 200, 401).await;
}

/// Nobody could ever show it, and as the first key it would shut everybody out.
async fn a_key_that_is_over_already_is_not_made(site: &Site) {
    let now = site.backend.server_time_ms().await.unwrap().0;
    for past in [0, now - 60_000, now] {
        let refused = site.post("/v1/keys", json!({ "name": "k", "expires_at": past })).await;
        refused.problem(400, "invalid_input");
        assert_eq!(refused.json()["errors"][0]["pointer"], "/expires_at");
    }
    site.get("/v1/executions").await.expect(200);
}

async fn a_key_is_rotated_without_a_gap(site: &Site) {
    let old = site.owner().await;
    let new = old.makes(json!({ "name": "owner" })).await;
    old.get("/v1/executions").await.expect(200);
    new.get("/v1/executions").await.expect(200);
    new.delete(&format!("/v1/keys/{}", old.key_id)).await.expect(204);
    old.get("/v1/executions").await.problem(401, "unauthenticated");
    new.get("/v1/executions").await.expect(200);
}

async fn what_is_no_key_is_refused(site: &Site) {
    let owner = site.owner().await;
    let (prefix, secret) = owner.key.rsplit_once('_').unwrap();
    let other = format!("{prefix}_{}", secret.chars().rev().collect::<String>());
    let unknown = format!("ffk_{}_{secret}", "a".repeat(20));
    for header in [
        format!("Bearer {other}"),
        format!("Bearer {unknown}"),
        format!("Bearer {secret}"),
        "Bearer ".to_owned(),
        "Bearer".to_owned(),
        format!("Basic {}", owner.key),
        owner.key.clone(),
        format!("Bearer {} x", owner.key),
    ] {
        let request = site.request("GET", "/v1/executions").header("authorization", &header);
        site.send(request).await.problem(401, "unauthenticated");
    }
    let lower = format!("bearer {}", owner.key);
    let request = site.request("GET", "/v1/executions").header("authorization", lower);
    site.send(request).await.expect(200);
    let twice = owner.request("GET", "/v1/executions").header("authorization", "Bearer x");
    site.send(twice).await.problem(401, "unauthenticated");
}

async fn nobody_gives_more_than_they_have(site: &Site) {
    let owner = site.owner().await;
    let limited = owner
        .makes(json!({
            "scopes": ["admin", "executions:read"], "namespaces": ["a", "b"], "lanes": ["x", "y"],
        }))
        .await;
    let heir = limited.makes(json!({})).await;
    let listed = limited.get("/v1/keys").await.expect(200);
    let ids: Vec<&Value> =
        listed["items"].as_array().unwrap().iter().map(|key| &key["key_id"]).collect();
    assert_eq!(ids.len(), 2, "the owner's is more than that: {listed}");
    assert!(ids.contains(&&json!(heir.key_id)) && ids.contains(&&json!(limited.key_id)));
    let item = listed["items"].as_array().unwrap().iter().find(|key| key["key_id"] == heir.key_id);
    let item = item.unwrap();
    assert_eq!(item["scopes"], json!(["executions:read", "admin"]), "as its maker's");
    assert_eq!((&item["namespaces"], &item["lanes"]), (&json!(["a", "b"]), &json!(["x", "y"])));
    limited.makes(json!({ "namespaces": ["b"], "lanes": ["x"], "scopes": ["admin"] })).await;
    for more in [
        json!({ "scopes": ["executions:write"] }),
        json!({ "namespaces": ["a", "c"] }),
        json!({ "lanes": ["z"] }),
    ] {
        let body = merged(json!({ "name": "more" }), more);
        limited.post("/v1/keys", body).await.problem(403, "forbidden");
    }
    limited.delete(&format!("/v1/keys/{}", owner.key_id)).await.problem(403, "forbidden");
    limited.delete(&format!("/v1/keys/{}", heir.key_id)).await.expect(204);
    let reader = owner.makes(json!({ "scopes": ["executions:read"] })).await;
    reader.get("/v1/keys").await.problem(403, "forbidden");
    let page = owner.get("/v1/keys?limit=2").await.expect(200);
    let cursor = page["next_cursor"].as_str().unwrap();
    owner.get(&format!("/v1/keys?limit=2&cursor={cursor}")).await.expect(200);
    limited.get(&format!("/v1/keys?limit=2&cursor={cursor}")).await.problem(400, "invalid_cursor");
}

async fn a_key_has_its_namespaces(site: &Site) {
    let owner = site.owner().await;
    let one = owner.makes(json!({ "namespaces": ["a"] })).await;
    let id = one.submit("l").await;
    let record = owner.get(&format!("/v1/namespaces/a/executions/{id}")).await.expect(200);
    assert_eq!(record["namespace"], "a", "the key's only one is where it goes");
    for (path, header) in [("/v1/namespaces/b/executions", None), ("/v1/executions", Some("b"))] {
        let mut request = one.request("GET", path);
        if let Some(header) = header {
            request = request.header("ff-namespace", header);
        }
        site.send(request).await.problem(403, "forbidden");
    }
    let body = json!({ "lane": "l", "kind": "k", "namespace": "default" });
    one.post("/v1/executions", body).await.problem(403, "forbidden");
    let some = owner.makes(json!({ "namespaces": ["a", "b"] })).await;
    some.get("/v1/executions").await.problem(403, "forbidden");
    some.get("/v1/namespaces/b/executions").await.expect(200);
    some.get("/v1/capabilities").await.expect(200);
    some.get("/v1/keys").await.expect(200);
    let with_default = owner.makes(json!({ "namespaces": ["a", "default"] })).await;
    assert_eq!(with_default.get("/v1/executions").await.expect(200)["items"], json!([]));
    owner.get("/v1/namespaces/a/keys").await.problem(404, "route_not_found");
}

async fn the_token_of_the_configuration_may_do_everything(site: &Site) {
    let token = "0123456789abcdef";
    let options = ServerOptions {
        api_token: Some(ApiToken::new(token).unwrap()),
        ..ServerOptions::default()
    };
    let closed = site.beside(options).await;
    closed.get("/v1/executions").await.problem(401, "unauthenticated");
    let ask = |token: &str| closed.request("GET", "/v1/keys").bearer_auth(token);
    closed.send(ask(token)).await.expect(200);
    closed.send(ask("0123456789abcdeg")).await.problem(401, "unauthenticated");
    let made = closed.request("POST", "/v1/keys").bearer_auth(token).body(r#"{"name":"k"}"#);
    let made = closed.send(made).await.expect(201);
    assert_eq!((&made["namespaces"], &made["lanes"]), (&Value::Null, &Value::Null));
    assert_eq!(made["scopes"].as_array().unwrap().len(), 12);
    closed.stop().await;
}

async fn keys_are_slowed_down_one_by_one(site: &Site) {
    let slow = ServerOptions { requests_per_second_per_key: Some(2), ..ServerOptions::default() };
    let slow = site.beside(slow).await;
    let owner = site.owner().await;
    let (first, second) = (owner.makes(json!({})).await, owner.makes(json!({})).await);
    let (first, second) = (first.at(&slow), second.at(&slow));
    let begun = Instant::now();
    let refused = loop {
        let answer = first.get("/v1/capabilities").await;
        if answer.status != 200 {
            break answer;
        }
        assert!(begun.elapsed() < PATIENCE, "never slowed down");
    };
    let problem = refused.problem(429, "rate_limited");
    assert!((1..=500).contains(&problem["retry_after_ms"].as_u64().unwrap()), "{problem}");
    assert_eq!(refused.header("retry-after"), "1");
    second.get("/v1/capabilities").await.expect(200);
    slow.get("/livez").await.expect(200);
    slow.stop().await;
}

async fn streams_and_waits_end_with_their_key(site: &Site) {
    let owner = site.owner().await;
    let key = owner.makes(json!({})).await;
    let request = key.request("GET", "/v1/events").header("accept", "text/event-stream");
    let mut stream = request.send().await.unwrap();
    assert_eq!(stream.status(), 200);
    assert!(stream.chunk().await.unwrap().is_some(), "it has begun");
    let id = owner.submit("l").await;
    let mut told = String::new();
    while !told.contains("execution.submitted") {
        let chunk = tokio::time::timeout(PATIENCE, stream.chunk()).await.unwrap();
        told += std::str::from_utf8(&chunk.unwrap().unwrap()).unwrap();
    }
    let waiting = key.request("GET", &format!("/v1/executions/{id}?wait_ms=30000"));
    let waiting = tokio::spawn(waiting.send());
    owner.delete(&format!("/v1/keys/{}", key.key_id)).await.expect(204);
    turns(async || key.get("/v1/executions").await, 200, 401).await;
    owner.post(&format!("/v1/executions/{id}/cancel"), json!({})).await.expect(200);
    let end = tokio::time::timeout(PATIENCE, stream.chunk()).await.unwrap();
    assert!(!matches!(end, Ok(Some(_))), "nothing is told to a key that is gone");
    assert_eq!(waiting.await.unwrap().unwrap().status(), 401);
}

async fn submits_and_approvals_bear_the_name_of_the_key(site: &Site) {
    let owner = site.owner().await;
    let key = owner.makes(json!({ "name": "billing" })).await;
    let id = key.submit("l").await;
    let record = key.get(&format!("/v1/executions/{id}")).await.expect(200);
    assert_eq!(record["creator_identity"], "billing");
    let own = json!({ "lane": "l", "kind": "k", "creator_identity": "me" });
    let batch = json!({ "items": [own, { "lane": "l", "kind": "k" }] });
    let items = key.post("/v1/executions/batch", batch).await.expect(200);
    for (n, name) in [(0, "me"), (1, "billing")] {
        let id = items["items"][n]["execution_id"].as_str().unwrap();
        let record = key.get(&format!("/v1/executions/{id}")).await.expect(200);
        assert_eq!(record["creator_identity"], name);
    }
    let worker = json!({ "worker_id": "w", "worker_instance_id": "w-1" });
    let register = merged(worker.clone(), json!({ "boot_id": "b", "lanes": ["l"] }));
    key.post("/v1/workers", register).await.expect(201);
    let claimed = key.post("/v1/leases", worker).await.expect(200);
    let task = Task::from(claimed["tasks"][0].clone());
    let path = format!("/v1/executions/{}", task.id);
    let waitpoint = task.with(json!({ "key": "k" }));
    key.post(&format!("{path}/waitpoints"), waitpoint).await.expect(201);
    key.post(&format!("{path}/waitpoints/k/approve"), json!({})).await.expect(200);
    let signals = key.get(&format!("{path}/signals")).await.expect(200);
    assert_eq!(signals["items"][0]["source_identity"], "billing", "{signals}");
}

async fn malformed_keys_are_pointed_at(site: &Site) {
    for (body, pointer) in [
        (json!({}), "/name"),
        (json!({ "name": "" }), "/name"),
        (json!({ "name": "k", "scopes": ["admin", "root"] }), "/scopes/1"),
        (json!({ "name": "k", "scopes": [] }), "/scopes"),
        (json!({ "name": "k", "namespaces": ["Bad"] }), "/namespaces/0"),
        (json!({ "name": "k", "lanes": [] }), "/lanes"),
        (json!({ "name": "k", "namespace": "a" }), "/namespace"),
    ] {
        site.post("/v1/keys", body).await.invalid(pointer);
    }
    let answer = site.send(site.request("DELETE", "/v1/keys/no_key")).await;
    answer.problem(400, "invalid_input");
    site.get("/v1/executions").await.expect(200);
}
