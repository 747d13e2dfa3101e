//! Executions over HTTP: submitted, found, read and managed.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use ff_test::http::{Site, base64_of, bytes_of, merged};
use serde_json::{Value, json};

ff_test::on_every_store! {
    a_submit_is_answered_and_read
    a_repeated_submit_is_a_duplicate
    payloads_come_out_as_they_went_in
    a_batch_answers_each_item
    a_search_pages_through_all
    records_come_with_what_is_asked_for
    a_wait_ends_with_the_execution
    operators_manage_executions
    a_replay_opens_another_generation
    executions_explain_themselves
    what_is_wrong_with_a_submit_is_pointed_at
}

async fn a_submit_is_answered_and_read(site: &Site) {
    let body = json!({
        "lane": "mail", "kind": "send", "payload_json": { "to": "a@b.c" }, "priority": 10_000,
        "tags": { "team": "x" }, "creator_identity": "me", "held": false,
    });
    let answer = site.post("/v1/executions", body).await;
    let reply = answer.expect(201);
    assert_eq!((&reply["status"], &reply["public_state"]), (&json!("created"), &json!("waiting")));
    assert_eq!(reply["priority"], 9000);
    assert!(reply["event_id"].as_str().unwrap().contains('-'), "{reply}");
    let id = reply["execution_id"].as_str().unwrap();
    let encoded = id.replace('{', "%7B").replace('}', "%7D");
    assert_eq!(answer.header("location"), format!("/v1/executions/{encoded}"));
    let answer = site.read(id, "").await;
    let record = answer.expect(200);
    assert_eq!(record["execution_id"], id);
    for (field, value) in [
        ("lane", json!("mail")),
        ("kind", json!("send")),
        ("namespace", json!("default")),
        ("tags", json!({ "team": "x" })),
        ("content_type", json!("application/json")),
        ("creator_identity", json!("me")),
        ("lease_epoch", json!(0)),
        ("worker_id", Value::Null),
        ("public_state", json!("waiting")),
    ] {
        assert_eq!(record[field], value, "{field}");
    }
    assert_eq!(record["state_vector"]["terminal_outcome"], "none");
    assert_eq!(record["state_vector"]["attempt_state"], "pending_first_attempt");
    assert_eq!(answer.header("etag"), format!("\"{}\"", record["revision"]));
    assert_eq!(record["created_at"], "2027-01-15T08:00:00.000Z");
    let state = site.read(id, "/state").await.expect(200);
    assert_eq!(state["public_state"], "waiting");
    assert_eq!(state["state_vector"], record["state_vector"]);
}

async fn a_repeated_submit_is_a_duplicate(site: &Site) {
    let submit = json!({ "lane": "l", "kind": "k", "idempotency_key": "m-1" });
    let first = site.post("/v1/executions", submit.clone()).await.expect(201);
    let answer = site.post("/v1/executions", submit.clone()).await;
    let again = answer.expect(200);
    assert_eq!(again["status"], "duplicate");
    assert_eq!(again["execution_id"], first["execution_id"]);
    assert_eq!(answer.header("idempotency-replayed"), "true");
    let header = |key: &str, body: &Value| {
        site.send(
            site.request("POST", "/v1/executions")
                .header("idempotency-key", key)
                .body(body.to_string()),
        )
    };
    let plain = json!({ "lane": "l", "kind": "k" });
    for key in ["m-1", "\"m-1\""] {
        assert_eq!(header(key, &plain).await.expect(200)["execution_id"], first["execution_id"]);
    }
    header("m-2", &submit).await.invalid("/idempotency_key");
    let other = json!({ "lane": "l", "kind": "other", "idempotency_key": "m-1" });
    site.post("/v1/executions", other).await.problem(422, "idempotency_mismatch");
    let given =
        json!({ "lane": "l", "kind": "k", "execution_id": "0199aabb-0000-7000-8000-000000000001" });
    site.post("/v1/executions", given.clone()).await.expect(201);
    assert_eq!(site.post("/v1/executions", given).await.expect(200)["status"], "duplicate");
}

async fn payloads_come_out_as_they_went_in(site: &Site) {
    let text = r#"{ "b" : 1.50,  "a":[ ] }"#;
    let body = format!(r#"{{"lane":"l","kind":"k","payload_json":{text}}}"#);
    let reply = site.send(site.request("POST", "/v1/executions").body(body)).await.expect(201);
    let id = reply["execution_id"].as_str().unwrap();
    let payload = site.read(id, "/payload").await.expect(200);
    assert_eq!(bytes_of(&payload["payload_b64"]), text.as_bytes());
    assert_eq!(payload["content_type"], "application/json");
    let id = site.submit(json!({ "payload_json": null })).await;
    let payload = site.read(&id, "/payload").await.expect(200);
    assert_eq!(bytes_of(&payload["payload_b64"]), b"null", "null is a value");
    let octets = [0_u8, 255, 10, 13, 0];
    let id = site.submit(json!({ "payload_b64": base64_of(octets), "content_type": "x/y" })).await;
    let raw = site.request("GET", &format!("/v1/executions/{id}/payload"));
    let raw = site.send(raw.header("accept", "application/octet-stream")).await;
    assert_eq!(
        (raw.status, raw.bytes.as_slice(), raw.header("content-type")),
        (200, &octets[..], "x/y")
    );
    let raw = site.request("POST", "/v1/executions?raw=true&lane_id=l&execution_kind=7&priority=3");
    let raw = raw.header("content-type", "image/png").body(octets.to_vec());
    let id = site.send(raw).await.expect(201)["execution_id"].as_str().unwrap().to_owned();
    let record = site.read(&id, "?include=payload").await.expect(200);
    assert_eq!((&record["kind"], &record["priority"]), (&json!("7"), &json!(3)));
    assert_eq!(record["content_type"], "image/png");
    assert_eq!(bytes_of(&record["payload_b64"]), octets);
}

async fn a_batch_answers_each_item(site: &Site) {
    let items = json!([
        { "lane": "l", "kind": "k", "idempotency_key": "a" },
        { "lane": "l" },
        { "lane": "l", "kind": "k", "policy": { "no_such": 1 } },
        { "lane": "l", "kind": "k", "idempotency_key": "a" },
    ]);
    let reply = site.post("/v1/executions/batch", json!({ "items": items })).await.expect(200);
    let status: Vec<_> = (0..4).map(|n| reply["items"][n]["status"].as_str().unwrap()).collect();
    assert_eq!(status, ["created", "refused", "refused", "duplicate"]);
    assert_eq!(reply["items"][1]["problem"]["errors"][0]["pointer"], "/items/1/kind");
    assert_eq!(reply["items"][2]["problem"]["code"], "invalid_policy_json");
    for refused in [1, 2] {
        assert!(reply["items"][refused]["problem"]["trace_id"].is_string(), "{reply}");
    }
    assert_eq!(reply["items"][3]["execution_id"], reply["items"][0]["execution_id"]);
    let lines = "{\"lane\":\"l\",\"kind\":\"k\"}\n\n{\"lane\":\"l\",\"kind\":\"k\"}\n";
    let request = site.request("POST", "/v1/executions/batch");
    let request = request.header("content-type", "application/x-ndjson").body(lines);
    let reply = site.send(request).await.expect(200);
    assert_eq!(reply["items"].as_array().unwrap().len(), 2);
    site.post("/v1/executions/batch", json!({ "items": [] })).await.invalid("/items");
    let many = vec![json!({ "lane": "l", "kind": "k" }); 1001];
    site.post("/v1/executions/batch", json!({ "items": many })).await.invalid("/items");
}

async fn a_search_pages_through_all(site: &Site) {
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(site.submit(json!({ "tags": { "n": (n % 2).to_string() } })).await);
        site.pass(1).await;
    }
    site.submit(json!({ "lane": "other" })).await;
    ids.reverse();
    let (mut path, mut found) = ("/v1/executions?lane=l&limit=2".to_owned(), Vec::new());
    loop {
        let answer = site.get(&path).await;
        let page = answer.expect(200);
        let items = page["items"].as_array().unwrap();
        found.extend(items.iter().map(|item| item["execution_id"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/executions?lane=l&limit=2&cursor={cursor}");
        assert_eq!(answer.header("link"), format!("<{path}>; rel=\"next\""));
    }
    assert_eq!(found, ids);
    let tagged = site.get("/v1/executions?tag=n:1&state=waiting&kind=k").await.expect(200);
    assert_eq!(tagged["items"].as_array().unwrap().len(), 2);
    let body = json!({ "lane": ["l", "other"], "state": ["waiting", "active"], "limit": 500 });
    let searched = site.post("/v1/executions/search", body).await.expect(200);
    assert_eq!(searched["items"].as_array().unwrap().len(), 6);
    let later = site.get("/v1/executions?created_after=2027-01-15T08:00:00.004Z").await.expect(200);
    assert_eq!(later["items"].as_array().unwrap().len(), 2);
    let counted = site.get("/v1/executions?lane=l&limit=1&count=estimate").await.expect(200);
    assert_eq!((&counted["count"], counted["items"].as_array().unwrap().len()), (&json!(5), 1));
    site.get("/v1/executions?count=exact").await.invalid("count");
    site.get("/v1/executions?limit=501").await.invalid("limit");
    site.get("/v1/executions?limit=0").await.invalid("limit");
    site.get("/v1/executions?state=odd").await.invalid("state");
    site.get("/v1/executions?tag=odd").await.invalid("tag");
    site.get("/v1/executions?nonsense=1").await.invalid("nonsense");
    site.get("/v1/executions?cursor=abc").await.problem(400, "invalid_cursor");
    let cursor = site.get("/v1/executions?lane=l&limit=1").await.expect(200);
    let other =
        format!("/v1/executions?limit=1&cursor={}", cursor["next_cursor"].as_str().unwrap());
    site.get(&other).await.problem(400, "invalid_cursor");
}

async fn records_come_with_what_is_asked_for(site: &Site) {
    let task = site.start(json!({ "payload_json": 7 })).await;
    site.read(&task.id, "/result").await.problem(404, "result_not_found");
    site.act(&task.id, "complete", task.with(json!({ "result_json": [1] }))).await.expect(200);
    let record = site.read(&task.id, "?include=payload,result,attempts").await.expect(200);
    assert_eq!(bytes_of(&record["payload_b64"]), b"7");
    assert_eq!(bytes_of(&record["result_b64"]), b"[1]");
    assert_eq!(record["result_content_type"], "application/json");
    assert_eq!(record["attempts"][0]["state"], "ended_success");
    let result = site.read(&task.id, "/result").await.expect(200);
    assert_eq!(
        result,
        json!({ "result_b64": base64_of("[1]"), "content_type": "application/json" })
    );
    site.read(&task.id, "/result?attempt=0").await.expect(200);
    site.read(&task.id, "/result?attempt=9").await.problem(404, "result_not_found");
    let attempts = site.read(&task.id, "/attempts").await.expect(200);
    let attempt = &attempts["items"][0];
    assert_eq!(
        (&attempt["attempt_index"], &attempt["attempt_type"]),
        (&json!(0), &json!("initial"))
    );
    assert_eq!(attempt["worker_instance_id"], "w-1");
    assert_eq!(attempts["next_cursor"], Value::Null);
    assert_eq!(site.read(&task.id, "/attempts/0").await.expect(200), *attempt);
    site.read(&task.id, "/attempts/1").await.problem(404, "attempt_not_found");
    site.read(&task.id, "/attempts/x").await.invalid("attempt_index");
    site.read(&task.id, "?include=secrets").await.invalid("include");
    assert_eq!(site.read(&task.id, "/signals").await.expect(200)["items"], json!([]));
    let listed = site.get("/v1/executions?include=result").await.expect(200);
    assert_eq!(bytes_of(&listed["items"][0]["result_b64"]), b"[1]");
}

async fn a_wait_ends_with_the_execution(site: &Site) {
    let task = site.start(json!({})).await;
    let path = format!("/v1/executions/{}?wait_ms=20000", task.id);
    let state = format!("/v1/executions/{}/state?wait_ms=20000", task.id);
    let completing = async {
        let now = site.read(&task.id, "?wait_ms=1").await.expect(200);
        assert_eq!(now["public_state"], "active");
        site.act(&task.id, "complete", task.with(json!({}))).await.expect(200);
    };
    let (waited, stated, ()) = tokio::join!(site.get(&path), site.get(&state), completing);
    assert_eq!(waited.expect(200)["public_state"], "completed");
    assert_eq!(stated.expect(200)["public_state"], "completed");
    let submit = site.post("/v1/executions?wait_ms=30", json!({ "lane": "l", "kind": "k" })).await;
    assert_eq!(submit.expect(201)["public_state"], "waiting");
    let preferring = site.request("GET", &format!("/v1/executions/{}", task.id));
    site.send(preferring.header("prefer", "wait=1")).await.expect(200);
    site.get(&format!("/v1/executions/{}?wait_ms=60001", task.id)).await.invalid("wait_ms");
}

async fn operators_manage_executions(site: &Site) {
    let id = site.submit(json!({})).await;
    let priority = format!("/v1/executions/{id}/priority");
    let put = |body| site.with_body("PUT", &priority, body);
    let changed = put(json!({ "new_priority": 70 })).await.expect(200);
    assert_eq!(changed, json!({ "old": 0, "new": 70 }));
    put(json!({})).await.invalid("/new_priority");
    let held = site.act(&id, "hold", json!({ "detail": "stop" })).await.expect(200);
    assert_eq!(held["state_vector"]["blocking_detail"], "stop");
    assert_eq!(site.act(&id, "release", json!({})).await.expect(200)["public_state"], "waiting");
    site.act(&id, "resume", json!({})).await.problem(409, "execution_not_suspended");
    let tags = format!("/v1/executions/{id}/tags");
    let set = site.with_body("PATCH", &tags, json!({ "tags": { "me.a": "1" } })).await;
    assert_eq!(set.expect(200)["count"], 1);
    assert_eq!(set.header("etag"), format!("\"{}\"", set.json()["revision"]));
    let matching = |revision: &str| {
        let request = site.request("PATCH", &tags).header("if-match", revision);
        site.send(request.body(json!({ "tags": { "me.b": "1" } }).to_string()))
    };
    matching("\"0\"").await.problem(412, "precondition_failed");
    assert_eq!(matching(set.header("etag")).await.expect(200)["count"], 2);
    let bad = site.with_body("PATCH", &tags, json!({ "tags": { "Bad": "1" } })).await;
    bad.problem(400, "invalid_tag_key");
    site.act(&id, "replay", json!({})).await.problem(409, "execution_not_terminal");
    let delete = || site.send(site.request("DELETE", &format!("/v1/executions/{id}")));
    delete().await.problem(409, "execution_not_terminal");
    let cancelled = site.act(&id, "cancel", json!({ "reason": "enough" })).await.expect(200);
    assert_eq!(cancelled, json!({ "status": "cancelled", "from": "waiting", "replayed": false }));
    let again = site.act(&id, "cancel", json!({})).await.expect(200);
    assert_eq!(again, json!({ "status": "cancelled", "from": "waiting", "replayed": true }));
    let record = site.read(&id, "").await.expect(200);
    assert_eq!(record["cancellation_reason"], "enough");
    assert_eq!(record["cancelled_by"], "operator_override");
    assert_eq!(delete().await.status, 204);
    site.read(&id, "").await.problem(404, "execution_not_found");
    delete().await.problem(404, "execution_not_found");
}

async fn a_replay_opens_another_generation(site: &Site) {
    let task = site.start(json!({})).await;
    let revoked = site.act(&task.id, "revoke-lease", json!({ "reason": "move" })).await.expect(200);
    let expected = json!({
        "status": "revoked", "lease_id": task.json["lease_id"], "lease_epoch": 1, "replayed": false,
    });
    assert_eq!(revoked, expected);
    let again = site.act(&task.id, "revoke-lease", json!({})).await.expect(200);
    assert_eq!((&again["lease_id"], &again["replayed"]), (&task.json["lease_id"], &json!(true)));
    let late = site.act(&task.id, "complete", task.with(json!({}))).await;
    late.problem(409, "lease_revoked");
    let second = site.claim().await;
    assert_eq!(second.json["attempt_type"], "reclaim");
    site.act(&task.id, "complete", second.with(json!({}))).await.expect(200);
    let replayed = site.act(&task.id, "replay", json!({})).await.expect(200);
    let expected = json!({ "replay_count": 1, "unresolved_edges": 0, "public_state": "waiting" });
    assert_eq!(replayed, expected);
    assert_eq!(site.claim().await.json["attempt_type"], "replay");
    let stale = site.act(&task.id, "complete", task.with(json!({}))).await;
    let problem = stale.problem(409, "stale_lease");
    assert!(problem["current"]["lease_epoch"].is_u64(), "{problem}");
}

async fn executions_explain_themselves(site: &Site) {
    let id = site.submit(json!({})).await;
    let explained = site.read(&id, "/explain").await.expect(200);
    assert_eq!(explained["cause"], "waiting_for_worker");
    assert!(explained["summary"].is_string() && explained["evidence"].is_object(), "{explained}");
    assert!(explained["unblock"][0]["route"].is_string(), "{explained}");
    let since = explained["evidence"]["eligible_since"].as_str();
    assert!(since.is_some_and(|at| at.len() == 24 && at.ends_with('Z')), "{explained}");
}

async fn what_is_wrong_with_a_submit_is_pointed_at(site: &Site) {
    for (body, pointer) in [
        (json!({ "kind": "k" }), "/lane"),
        (json!({ "lane": "l", "kind": "k", "colour": 1 }), "/colour"),
        (json!({ "lane": "", "kind": "k" }), "/lane"),
        (json!({ "lane": "l", "lane_id": "l", "kind": "k" }), "/lane_id"),
        (
            json!({ "lane": "l", "kind": "k", "payload_b64": "", "payload_json": 1 }),
            "/payload_json",
        ),
        (json!({ "lane": "l", "kind": "k", "payload_b64": "%" }), "/payload_b64"),
        (json!({ "lane": "l", "kind": "k", "execution_id": "7" }), "/execution_id"),
        (json!({ "lane": "l", "kind": "k", "delay_until": "soon" }), "/delay_until"),
        (json!({ "lane": "l", "kind": "k", "tags": { "a": 1 } }), "/tags/a"),
        (json!([]), ""),
    ] {
        site.post("/v1/executions", body).await.invalid(pointer);
    }
    let submit = |extra: Value| {
        let body = merged(json!({ "lane": "l", "kind": "k" }), extra);
        site.post("/v1/executions", body)
    };
    submit(json!({ "policy": { "x": 1 } })).await.problem(400, "invalid_policy_json");
    let required =
        json!({ "policy": { "routing_requirements": { "required_capabilities": ["a b"] } } });
    submit(required).await.problem(400, "invalid_capabilities");
    let large = "x".repeat((1 << 20) + 1);
    submit(json!({ "payload_json": large })).await.problem(413, "payload_too_large");
    let budget = json!({ "budget_ids": ["0199aabb-0000-7000-8000-000000000001"] });
    submit(budget).await.problem(404, "budget_not_found");
    let flow = json!({ "flow_id": "0199aabb-0000-7000-8000-000000000001" });
    submit(flow).await.problem(404, "flow_not_found");
}
