//! Rules that all routes share.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use ff_test::http::{Site, Task, merged};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

ff_test::on_every_store! {
    reads_of_another_namespace_find_nothing
    acts_of_another_namespace_change_nothing
    the_ways_to_name_a_namespace_must_agree
    unknown_routes_and_methods_are_told
    bodies_are_bounded_plain_and_not_too_deep
    only_loopback_hosts_and_own_origins_are_served
    requests_have_names
    the_server_describes_itself
}

/// A request for an execution under another namespace than its own.
fn foreign(site: &Site, method: &str, id: &str, path: &str) -> RequestBuilder {
    site.request(method, &format!("/v1/namespaces/other/executions/{id}{path}"))
}

async fn reads_of_another_namespace_find_nothing(site: &Site) {
    let task = site.start(json!({})).await;
    for path in [
        "",
        "/state",
        "/result",
        "/payload",
        "/attempts",
        "/attempts/0",
        "/signals",
        "/events",
        "/explain",
        "/resume-signals",
        "/pending-waitpoints",
        "/attempts/0/stream",
        "/attempts/0/stream/tail",
        "/attempts/0/summary",
        "/stream",
        "/waitpoints/k/token",
    ] {
        let answer = site.send(foreign(site, "GET", &task.id, path)).await;
        answer.problem(404, "execution_not_found");
    }
    for path in ["executions", "workers", "waitpoints", "events?after=start"] {
        let listed = site.get(&format!("/v1/namespaces/other/{path}")).await.expect(200);
        assert_eq!(listed["items"], json!([]), "{path}");
    }
    site.get("/v1/namespaces/other/workers/w-1").await.problem(404, "worker_not_found");
}

/// Every act on an execution, each well formed.
fn acts(task: &Task) -> Vec<(&'static str, Value)> {
    let fenced = task.with(json!({}));
    let by_name = json!({ "worker_id": "w", "worker_instance_id": "w-1" });
    let reclaim = json!({ "worker_id": "w", "worker_instance_id": "w-1", "lane": "l" });
    let suspend = task.with(json!({ "bindings": [], "condition": "operator_only" }));
    vec![
        ("/cancel", json!({})),
        ("/replay", json!({})),
        ("/revoke-lease", json!({})),
        ("/hold", json!({})),
        ("/release", json!({})),
        ("/resume", json!({})),
        ("/renew", fenced.clone()),
        ("/progress", task.with(json!({ "pct": 1 }))),
        ("/frames", task.with(json!({ "frames": [{ "type": "x" }] }))),
        ("/complete", fenced.clone()),
        ("/complete", json!({ "source": "operator_override" })),
        ("/fail", merged(fenced.clone(), json!({ "reason": "no", "category": "permanent" }))),
        ("/delay", task.with(json!({ "delay_ms": 1 }))),
        ("/wait-children", fenced),
        ("/usage", json!({ "dimensions": { "a": 1 } })),
        ("/claim", by_name.clone()),
        ("/reclaim", reclaim),
        ("/grant-and-claim", by_name),
        ("/waitpoints", task.with(json!({ "key": "k" }))),
        ("/suspend", suspend),
        ("/signal", json!({ "waitpoint_key": "k", "name": "n", "token": "t" })),
        ("/waitpoints/k/approve", json!({})),
        ("/waitpoints/k/deny", json!({})),
        ("/waitpoints/k/close", json!({})),
        ("/waitpoints/k/token", json!({})),
    ]
}

async fn acts_of_another_namespace_change_nothing(site: &Site) {
    let task = site.start(json!({})).await;
    let posts = acts(&task).into_iter().map(|(path, body)| ("POST", path, body));
    let others = [
        ("PUT", "/priority", json!({ "new_priority": 1 })),
        ("PATCH", "/tags", json!({ "tags": { "a.b": "c" } })),
        ("DELETE", "", json!({})),
    ];
    for (method, path, body) in posts.chain(others) {
        let request = foreign(site, method, &task.id, path).body(body.to_string());
        let answer = site.send(request).await;
        assert_eq!(answer.status, 404, "{method} {path}");
        answer.problem(404, "execution_not_found");
    }
    let lease = json!({ "execution_id": task.id, "handle": task.handle });
    let renew = json!({ "namespace": "other", "items": [lease] });
    let renewed = site.post("/v1/leases/renew", renew).await.expect(200);
    assert_eq!(renewed["items"][0]["problem"]["code"], "execution_not_found");
    site.act(&task.id, "complete", task.with(json!({}))).await.expect(200);
}

async fn the_ways_to_name_a_namespace_must_agree(site: &Site) {
    let submit = |prefix: &str, header: Option<&str>, field: Option<&str>| {
        let mut body = json!({ "lane": "l", "kind": "k" });
        if let Some(field) = field {
            body["namespace"] = json!(field);
        }
        let mut request =
            site.request("POST", &format!("/v1{prefix}/executions")).body(body.to_string());
        if let Some(header) = header {
            request = request.header("ff-namespace", header);
        }
        site.send(request)
    };
    for (prefix, header, field) in [
        ("/namespaces/a", None, None),
        ("", Some("a"), None),
        ("", None, Some("a")),
        ("/namespaces/a", Some("a"), Some("a")),
    ] {
        let reply = submit(prefix, header, field).await.expect(201);
        let id = reply["execution_id"].as_str().unwrap();
        let record = site.get(&format!("/v1/namespaces/a/executions/{id}")).await.expect(200);
        assert_eq!(record["namespace"], "a");
        site.read(id, "").await.problem(404, "execution_not_found");
    }
    for (prefix, header, field) in
        [("/namespaces/a", Some("b"), None), ("", Some("a"), Some("b")), ("", None, Some("Bad"))]
    {
        submit(prefix, header, field).await.invalid("/namespace");
    }
}

async fn unknown_routes_and_methods_are_told(site: &Site) {
    for path in
        ["/", "/v1", "/v1/nothing", "/v1/executions/a/b/c/d", "/v1/namespaces/a/capabilities"]
    {
        site.get(path).await.problem(404, "route_not_found");
    }
    let answer = site.send(site.request("PUT", "/v1/executions")).await;
    answer.problem(405, "method_not_allowed");
    assert_eq!(answer.header("allow"), "POST, GET, HEAD");
    let head = site.send(site.request("HEAD", "/livez")).await;
    assert_eq!((head.status, head.bytes.len()), (200, 0));
    let id = "a".repeat(257);
    site.read(&id, "").await.problem(400, "invalid_input");
}

async fn bodies_are_bounded_plain_and_not_too_deep(site: &Site) {
    let send = |path: &str, body: String| site.send(site.request("POST", path).body(body));
    for (path, limit) in [
        ("/v1/executions", 3 << 19),
        ("/v1/executions/batch", 16 << 20),
        ("/v1/leases", 96 << 10),
        ("/v1/leases/renew", 1 << 20),
        ("/v1/executions/x/signal", 384 << 10),
    ] {
        let problem = send(path, " ".repeat(limit + 1)).await.problem(413, "payload_too_large");
        assert_eq!(problem["limit_bytes"], limit, "{path}");
        assert_eq!(problem["route"], path.replace("/x/", "/{execution_id}/"));
    }
    let deep = |depth: usize| {
        let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"lane":"l","kind":"k","payload_json":{value}}}"#)
    };
    send("/v1/executions", deep(63)).await.expect(201);
    send("/v1/executions", deep(64)).await.problem(400, "invalid_input");
    send("/v1/executions", deep(10_000)).await.problem(400, "invalid_input");
    send("/v1/executions", "{\"lane\":".to_owned()).await.problem(400, "invalid_input");
    let zipped =
        site.request("POST", "/v1/executions").header("content-encoding", "gzip").body("x");
    site.send(zipped).await.problem(415, "unsupported_encoding");
    let plain = site.request("POST", "/v1/executions").header("content-encoding", "identity");
    let plain = plain.header("content-type", "text/plain").body(r#"{"lane":"l","kind":"k"}"#);
    site.send(plain).await.expect(201);
}

async fn only_loopback_hosts_and_own_origins_are_served(site: &Site) {
    let with = |name: &'static str, value: &str| {
        site.send(site.request("GET", "/v1/executions").header(name, value))
    };
    for host in ["example.com", "10.0.0.1:7171"] {
        with("host", host).await.problem(403, "forbidden");
    }
    for host in ["localhost", "127.0.0.1:1", "[::1]:7171"] {
        with("host", host).await.expect(200);
    }
    for origin in ["http://example.com", "null", "https://localhost"] {
        with("origin", origin).await.problem(403, "forbidden");
    }
    with("origin", &format!("http://{}", site.addr)).await.expect(200);
    let unknown = site.request("GET", "/nothing").header("origin", "http://example.com");
    site.send(unknown).await.problem(403, "forbidden");
}

async fn requests_have_names(site: &Site) {
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let request = site.request("GET", "/v1/executions/x");
    let answer =
        site.send(request.header("traceparent", format!("00-{trace}-b7ad6b7169203331-01"))).await;
    assert_eq!(answer.problem(400, "invalid_input")["trace_id"], trace);
    assert_eq!(answer.header("x-request-id"), trace);
    let answer = site.get("/livez").await;
    assert_eq!(answer.header("x-request-id").len(), 32);
}

async fn the_server_describes_itself(site: &Site) {
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(site.get(path).await.expect(200)["status"], "ok", "{path}");
    }
    assert_eq!(site.get("/version").await.expect(200)["api"], "v1");
    let flags = site.get("/v1/capabilities").await.expect(200);
    assert_eq!(flags["backend"], site.backend.backend_label());
    assert_eq!(
        (&flags["partitions"]["flow"], &flags["supports"]["executions"]),
        (&json!(64), &json!(true))
    );
    let page = site.get("/problems/stale_lease").await;
    assert_eq!(page.status, 200);
    assert!(String::from_utf8_lossy(&page.bytes).contains("409"));
    site.get("/problems/odd").await.problem(404, "route_not_found");
    let document = site.get("/openapi.json").await.expect(200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"), "{}", document["openapi"]);
    for (method, path) in ff_server::served() {
        let operation = &document["paths"][path][method.to_lowercase()];
        assert!(operation["responses"]["default"].is_object(), "{method} {path}");
    }
    let missing = references(&document)
        .into_iter()
        .find(|name| document["components"]["schemas"][name].is_null());
    assert_eq!(missing, None, "every form that is named is described");
}

/// The forms that a description names.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("$ref").and_then(Value::as_str);
            let own = own.and_then(|text| text.strip_prefix("#/components/schemas/"));
            own.map(str::to_owned).into_iter().chain(fields.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}
