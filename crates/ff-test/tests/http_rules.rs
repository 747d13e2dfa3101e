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
    refusals_point_at_their_place
    refusals_of_workers_point_at_their_place
    refusals_of_items_point_into_the_list
    repetitions_say_so
    capabilities_of_a_wrong_type_are_told_as_such
    places_are_told_with_the_namespace_of_the_path
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
        ("/fail", task.with(json!({ "reason": "r", "category": "c" }))),
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

async fn refusals_point_at_their_place(site: &Site) {
    let submit = |fields: Value| merged(json!({ "lane": "l", "kind": "k" }), fields);
    let policy = |policy: Value| submit(json!({ "policy": policy }));
    for (body, pointer) in [
        (
            policy(json!({ "retry_policy": { "max_retries": 1_000_001 } })),
            "retry_policy/max_retries",
        ),
        (policy(json!({ "retry_policy": { "max_retries": -1 } })), "retry_policy/max_retries"),
        (
            policy(json!({ "retry_policy": { "backoff": { "type": "fixed", "delay_ms": -1 } } })),
            "retry_policy/backoff/delay_ms",
        ),
        (
            policy(json!({ "timeout_policy": { "attempt_timeout_ms": 0 } })),
            "timeout_policy/attempt_timeout_ms",
        ),
        (
            policy(json!({ "stream_policy": { "retention_maxlen": 0 } })),
            "stream_policy/retention_maxlen",
        ),
        (policy(json!({ "retention": { "failed_ms": -1 } })), "retention/failed_ms"),
        (policy(json!({ "dedup_window_ms": 999 })), "dedup_window_ms"),
        (policy(json!({ "budget_ids": ["x"] })), "budget_ids"),
    ] {
        site.post("/v1/executions", body).await.invalid(&format!("/policy/{pointer}"));
    }
    let capabilities =
        policy(json!({ "routing_requirements": { "required_capabilities": ["a b"] } }));
    let problem =
        site.post("/v1/executions", capabilities).await.problem(400, "invalid_capabilities");
    let place = "/policy/routing_requirements/required_capabilities";
    assert_eq!(problem["errors"][0]["pointer"], place);
    let ids: Vec<uuid::Uuid> = (0..100).map(|_| uuid::Uuid::now_v7()).collect();
    site.post("/v1/executions", submit(json!({ "budget_ids": ids }))).await.invalid("/budget_ids");

    let limits = json!({ "a.b": { "hard": 1_u64 << 60 } });
    let budget = json!({ "scope_type": "custom", "scope_id": "x", "dimensions": limits });
    site.post("/v1/budgets", budget).await.invalid("/dimensions/a.b/hard");
}

async fn refusals_of_workers_point_at_their_place(site: &Site) {
    let task = site.start(json!({})).await;
    let worker = json!({ "worker_id": "w", "worker_instance_id": "w-1" });
    let lanes = merged(worker, json!({ "lanes": [{ "lane": "a", "weight": 0 }] }));
    site.post("/v1/leases", lanes).await.invalid("/lanes/0/weight");
    let act = |verb: &'static str, fields: Value| site.act(&task.id, verb, task.with(fields));
    act("renew", json!({ "ttl_ms": 1 })).await.invalid("/ttl_ms");
    site.act(&task.id, "renew", json!({ "handle": "nonsense" })).await.invalid("/handle");
    let next = |next: Value| json!({ "next": next });
    act("complete", next(json!({ "lease_ttl_ms": 1 }))).await.invalid("/next/lease_ttl_ms");
    act("complete", next(json!({ "max": 0 }))).await.invalid("/next/max");
    let heavy = next(json!({ "lanes": ["a", { "lane": "b", "weight": 0 }] }));
    act("complete", heavy).await.invalid("/next/lanes/1/weight");
    let frame = |fields: Value| {
        let good = json!({ "type": "stdout", "payload_json": 1 });
        json!({ "frames": [good, merged(good.clone(), fields)] })
    };
    let long = "x".repeat(10_000);
    act("frames", frame(json!({ "mode": "odd" }))).await.invalid("/frames/1/mode");
    act("frames", frame(json!({ "correlation_id": long })))
        .await
        .invalid("/frames/1/correlation_id");
    let typed = act("frames", frame(json!({ "type": "end" }))).await;
    let problem = typed.problem(400, "invalid_frame_type");
    assert_eq!(problem["errors"][0]["pointer"], "/frames/1/type");
    let patch = json!({ "type": "x", "mode": "durable_summary", "payload_b64": "eA==" });
    let patch = json!({ "frames": [{ "type": "x" }, patch] });
    act("frames", patch).await.invalid("/frames/1/payload");
    let raw = format!("/v1/executions/{}/frames?raw=true&handle={}&type=end", task.id, task.handle);
    let problem = site.send(site.request("POST", &raw).body("x")).await;
    assert_eq!(problem.problem(400, "invalid_frame_type")["errors"][0]["pointer"], "type");
    let bindings =
        json!([{ "fresh": { "key": "a" } }, { "fresh": { "key": "b", "token_ttl_ms": 0 } }]);
    let condition = |n: u32| {
        json!({ "all_of": [
        { "single": { "waitpoint_key": "a" } },
        { "count": { "n": n, "kind": "distinct_signals", "waitpoints": ["b"] } },
    ] })
    };
    let short = json!({ "bindings": bindings, "condition": condition(1) });
    act("suspend", short).await.invalid("/bindings/1/fresh/token_ttl_ms");
    let bindings = json!([{ "fresh": { "key": "a" } }, { "fresh": { "key": "b" } }]);
    let never = json!({ "bindings": bindings, "condition": condition(0) });
    act("suspend", never).await.invalid("/condition/all_of/1/count/n");
}

async fn refusals_of_items_point_into_the_list(site: &Site) {
    let task = site.start(json!({})).await;
    let member = |name: &str, fields: Value| {
        merged(json!({ "name": name, "lane": "l", "kind": "k" }), fields)
    };
    let graph = |fields: Value| {
        let members = [member("a", json!({})), member("b", json!({}))];
        merged(json!({ "kind": "etl", "members": members }), fields)
    };
    let late = json!({ "delay_until": -1 });
    let no_window = json!({ "policy": { "dedup_window_ms": 1 } });
    for (fields, pointer) in [
        (json!({ "groups": [{ "member": "b", "policy": "quorum", "k": 0 }] }), "/groups/0/k"),
        (json!({ "members": [member("a", json!({})), member("a", json!({}))] }), "/members/1/name"),
        (json!({ "members": [member("a", late.clone())] }), "/members/0/delay_until"),
        (json!({ "members": [member("a", no_window)] }), "/members/0/policy/dedup_window_ms"),
        (json!({ "edges": [{ "from": "a", "to": "b", "name": "" }] }), "/edges/0/name"),
    ] {
        site.post("/v1/flows", graph(fields)).await.invalid(pointer);
    }
    let items =
        [json!({ "lane": "l", "kind": "k" }), member("a", json!({})), json!({ "lane": "l" })];
    let late = merged(items[0].clone(), late);
    let batch = json!({ "items": [items[0], items[1], items[2], late] });
    let told = site.post("/v1/executions/batch", batch).await.expect(200);
    assert_eq!(told["items"][0]["status"], "created");
    for (number, field) in [(1, "name"), (2, "kind"), (3, "delay_until")] {
        let pointer = &told["items"][number]["problem"]["errors"][0]["pointer"];
        assert_eq!(*pointer, format!("/items/{number}/{field}"));
    }
    let line = r#"{"lane":"l"}"#;
    let lines = site.request("POST", "/v1/executions/batch").body(line);
    let told = site.send(lines.header("content-type", "application/x-ndjson")).await.expect(200);
    assert_eq!(told["items"][0]["problem"]["errors"][0]["pointer"], "/kind", "of its line");
    let item = |fields: Value| merged(json!({ "execution_id": task.id }), fields);
    let leases =
        [item(json!({ "handle": task.handle, "ttl_ms": 1 })), item(json!({ "handle": "x" }))];
    let renewed = site.post("/v1/leases/renew", json!({ "items": leases })).await.expect(200);
    let beat = json!({ "boot_id": "b1", "leases": leases });
    let beat = site.post("/v1/workers/w-1/heartbeat", beat).await.expect(200);
    for (told, list) in [(&renewed["items"], "items"), (&beat["leases"], "leases")] {
        let at = |n: usize| &told[n]["problem"]["errors"][0]["pointer"];
        assert_eq!(*at(0), format!("/{list}/0/ttl_ms"));
        assert_eq!(*at(1), format!("/{list}/1/handle"));
    }
}

/// The second answer is the first, and says that it is.
async fn told_twice(site: &Site, (method, path): (&str, &str), body: Value, fields: &[&str]) {
    let first = site.with_body(method, path, body.clone()).await.json();
    assert_eq!(first["replayed"], Value::Null, "{path}: {first}");
    let again = site.with_body(method, path, body).await.expect(200);
    assert_eq!(again["replayed"], true, "{path}: {again}");
    for field in fields {
        assert_eq!(again[field], first[field], "{field} of {path}");
    }
}

async fn repetitions_say_so(site: &Site) {
    let task = site.start(json!({})).await;
    let of = |id: &str, verb: &str| format!("/v1/executions/{id}/{verb}");
    let waitpoint_id = uuid::Uuid::now_v7();
    let waitpoint = task.with(json!({ "key": "k", "waitpoint_id": waitpoint_id }));
    let fields = ["waitpoint_id", "key", "token"];
    told_twice(site, ("POST", &of(&task.id, "waitpoints")), waitpoint.clone(), &fields).await;
    told_twice(site, ("POST", &of(&task.id, "waitpoints/k/close")), json!({}), &[]).await;
    let suspend = task.with(json!({ "condition": "operator_only", "idempotency_key": "s" }));
    assert_eq!(
        site.act(&task.id, "suspend", suspend.clone()).await.header("idempotency-replayed"),
        ""
    );
    let again = site.act(&task.id, "suspend", suspend).await;
    assert_eq!(again.header("idempotency-replayed"), "true");

    let id = site.submit(json!({})).await;
    told_twice(site, ("POST", &of(&id, "hold")), json!({}), &["execution_id", "public_state"])
        .await;
    told_twice(site, ("POST", &of(&id, "release")), json!({}), &["execution_id"]).await;
    let grant = json!({ "lane": "l", "worker_instance_id": "w-1", "capabilities": [] });
    site.post("/v1/workers/w/claim", grant).await.expect(200);
    let by_name = json!({ "worker_id": "w", "worker_instance_id": "w-1" });
    let lease = ["lease_id", "lease_epoch", "attempt_id"];
    told_twice(site, ("POST", &of(&id, "claim")), by_name.clone(), &lease).await;
    let id = site.submit(json!({})).await;
    told_twice(site, ("POST", &of(&id, "grant-and-claim")), by_name, &lease).await;

    let new_id = uuid::Uuid::now_v7();
    let budget =
        json!({ "budget_id": new_id, "scope_type": "custom", "scope_id": "x", "dimensions": {} });
    told_twice(site, ("POST", "/v1/budgets"), budget, &["budget_id"]).await;
    let quota = json!({ "quota_policy_id": new_id, "max_concurrent": 1 });
    told_twice(site, ("POST", "/v1/quotas"), quota, &["quota_policy_id"]).await;

    let flow = json!({ "flow_id": new_id, "kind": "etl" });
    told_twice(site, ("POST", "/v1/flows"), flow, &["flow_id", "graph_revision"]).await;
    let path = format!("/v1/flows/{new_id}");
    let add = async |name: &str| {
        let member = json!({ "name": name, "lane": "m", "kind": "k" });
        site.post(&format!("{path}/members"), member).await.expect(201)["execution_id"].clone()
    };
    let (a, b) = (add("a").await, add("b").await);
    let known = json!({ "execution_id": a });
    let known = site.post(&format!("{path}/members"), known).await.expect(200);
    assert_eq!(known["replayed"], true);
    let edge = json!({ "upstream": a, "downstream": b, "apply": false });
    let edge = site.post(&format!("{path}/edges"), edge).await.expect(201);
    let apply = json!({ "edge_id": edge["edge_id"] });
    told_twice(site, ("POST", &format!("{path}/edges/apply")), apply, &["unresolved"]).await;
    let group = format!("{path}/groups/{}", b.as_str().unwrap());
    told_twice(site, ("PUT", &group), json!({ "policy": "any_of" }), &[]).await;
}

async fn capabilities_of_a_wrong_type_are_told_as_such(site: &Site) {
    let task = site.start(json!({})).await;
    let worker = json!({ "worker_id": "w", "worker_instance_id": "w-1" });
    let with = |fields: Value| merged(worker.clone(), fields);
    let register = with(json!({ "boot_id": "b1", "lanes": ["l"] }));
    for (capabilities, detail) in [
        (json!("x"), "required:not_array"),
        (json!({}), "required:not_array"),
        (json!([1]), "non_string_token"),
        (json!(["a", null]), "non_string_token"),
        (json!([""]), "empty_token"),
    ] {
        let bad = json!({ "capabilities": capabilities });
        let grant = json!({ "lane": "l", "worker_instance_id": "w-1" });
        let reclaim = format!("/v1/executions/{}/reclaim", task.id);
        for (path, body) in [
            ("/v1/leases", worker.clone()),
            ("/v1/workers", register.clone()),
            ("/v1/workers/w/claim", grant),
            (&reclaim, with(json!({ "lane": "l" }))),
        ] {
            let problem = site.post(path, merged(body, bad.clone())).await;
            let problem = problem.problem(400, "invalid_capabilities");
            assert!(problem["detail"].as_str().unwrap().contains(detail), "{path}: {problem}");
            assert_eq!(problem["errors"][0]["pointer"], "/capabilities", "{path}");
        }
        let complete = task.with(json!({ "next": bad }));
        let problem = site.act(&task.id, "complete", complete).await;
        let problem = problem.problem(400, "invalid_capabilities");
        assert_eq!(problem["errors"][0]["pointer"], "/next/capabilities");
    }
}

async fn places_are_told_with_the_namespace_of_the_path(site: &Site) {
    let submit = json!({ "lane": "l", "kind": "k" });
    for (prefix, path, id, body) in [
        ("/v1/namespaces/other", "executions", "execution_id", submit.clone()),
        ("/v1/namespaces/other", "flows", "flow_id", json!({ "kind": "etl" })),
        ("/v1/namespaces/other", "quotas", "quota_policy_id", json!({ "max_concurrent": 1 })),
        ("/v1", "executions", "execution_id", submit),
    ] {
        let answer = site.post(&format!("{prefix}/{path}"), body).await;
        let id = answer.expect(201)[id].clone();
        let location = answer.header("location");
        let id = id.as_str().unwrap().replace('{', "%7B").replace('}', "%7D");
        assert_eq!(location, format!("{prefix}/{path}/{id}"));
        assert_eq!(site.get(location).await.status, 200, "{location}");
    }
}
