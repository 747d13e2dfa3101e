//! The worker protocol over HTTP.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use ff_test::http::{Site, Task, bytes_of, merged};
use serde_json::{Value, json};

ff_test::on_every_store! {
    a_worker_registers_claims_and_completes
    a_claim_waits_for_work
    lanes_take_turns_by_weight
    completions_bring_the_next_task
    failures_are_retried_or_final
    repetitions_get_the_first_reply
    leases_are_renewed_one_by_one_and_together
    heartbeats_renew_and_tell
    workers_drain_and_leave
    grants_lead_to_tasks
    operators_act_without_a_fence
    tasks_are_put_aside
    fences_are_whole_and_match
    usage_is_reported
}

fn claim(fields: Value) -> Value {
    merged(json!({ "worker_id": "w", "worker_instance_id": "w-1" }), fields)
}

async fn a_worker_registers_claims_and_completes(site: &Site) {
    site.post("/v1/leases", claim(json!({}))).await.problem(409, "worker_not_registered");
    let explicit = claim(json!({ "lanes": ["l"], "capabilities": [] }));
    site.post("/v1/leases", explicit.clone()).await.problem(409, "worker_not_registered");
    let worker = json!({
        "worker_id": "w", "worker_instance_id": "w-1", "boot_id": "b1", "lanes": ["l", "m"],
        "capabilities": ["gpu"], "ttl_ms": 45_000, "max_concurrent": 4,
    });
    let registered = site.post("/v1/workers", worker.clone()).await.expect(201);
    assert_eq!(
        (&registered["status"], &registered["ttl_ms"]),
        (&json!("registered"), &json!(45_000))
    );
    assert_eq!(registered["next_expiry_at"], "2027-01-15T08:00:45.000Z");
    assert_eq!(site.post("/v1/workers", worker).await.expect(200)["status"], "refreshed");
    let other =
        json!({ "worker_id": "w", "worker_instance_id": "w-1", "boot_id": "b2", "lanes": ["l"] });
    site.post("/v1/workers", other).await.problem(409, "instance_in_use");
    let stranger = merged(explicit, json!({ "worker_id": "v" }));
    site.post("/v1/leases", stranger).await.problem(409, "worker_not_registered");
    let row = site.get("/v1/workers/w-1").await.expect(200);
    assert_eq!((&row["lanes"], &row["capabilities"]), (&json!(["l", "m"]), &json!(["gpu"])));
    assert_eq!(site.get("/v1/workers").await.expect(200)["items"], json!([row]));
    site.get("/v1/workers/w-2").await.problem(404, "worker_not_found");

    let id = site.submit(json!({ "payload_json": { "a": 1 }, "tags": { "t": "1" } })).await;
    let reply = site.post("/v1/leases", claim(json!({ "max": 4, "lease_ttl_ms": 5000 }))).await;
    let task = Task::from(reply.expect(200)["tasks"][0].clone());
    assert_eq!(task.id, id);
    for (field, value) in [
        ("namespace", json!("default")),
        ("lane", json!("l")),
        ("kind", json!("k")),
        ("attempt_index", json!(0)),
        ("attempt_type", json!("initial")),
        ("lease_epoch", json!(1)),
        ("ttl_ms", json!(5000)),
        ("expires_at", json!("2027-01-15T08:00:05.000Z")),
        ("tags", json!({ "t": "1" })),
        ("inputs", json!({})),
        ("resume_signals", json!([])),
        ("previous_failure", Value::Null),
    ] {
        assert_eq!(task.json[field], value, "{field}");
    }
    assert_eq!(bytes_of(&task.json["payload_b64"]), br#"{"a":1}"#);
    let progress = task.with(json!({ "pct": 40, "message": "half" }));
    assert_eq!(site.act(&id, "progress", progress).await.status, 204);
    assert_eq!(site.read(&id, "").await.expect(200)["progress_pct"], 40);
    site.act(&id, "progress", task.with(json!({ "pct": 101 }))).await.invalid("/pct");
    site.act(&id, "progress", task.with(json!({ "pct": 300 }))).await.invalid("/pct");
    let done = site.act(&id, "complete", task.with(json!({ "result_json": { "ok": true } }))).await;
    assert_eq!(done.expect(200), json!({ "status": "completed", "tasks": [], "replayed": false }));
    assert_eq!(site.post("/v1/leases", claim(json!({}))).await.expect(200), json!({ "tasks": [] }));
}

async fn a_claim_waits_for_work(site: &Site) {
    site.register().await;
    let wait = claim(json!({ "wait_ms": 20_000 }));
    let (reply, id) = tokio::join!(site.post("/v1/leases", wait), site.submit(json!({})));
    assert_eq!(reply.expect(200)["tasks"][0]["execution_id"], id);
    let brief = site.post("/v1/leases?wait_ms=20", claim(json!({}))).await.expect(200);
    assert_eq!(brief["tasks"], json!([]));
    site.post("/v1/leases?wait_ms=20", claim(json!({ "wait_ms": 30 }))).await.invalid("/wait_ms");
    site.post("/v1/leases", claim(json!({ "wait_ms": 60_001 }))).await.invalid("/wait_ms");
    site.post("/v1/leases", claim(json!({ "max": 0 }))).await.invalid("/max");
    site.post("/v1/leases", claim(json!({ "order": "odd" }))).await.invalid("/order");
    site.post("/v1/leases", claim(json!({ "lanes": [] }))).await.invalid("/lanes");
    let odd = site.post("/v1/leases", claim(json!({ "capabilities": ["a,b"] }))).await;
    odd.problem(400, "invalid_capabilities");
}

async fn lanes_take_turns_by_weight(site: &Site) {
    site.register().await;
    for lane in ["a", "b"] {
        for _ in 0..4 {
            site.submit(json!({ "lane": lane })).await;
        }
    }
    let lanes = json!([{ "lane": "a", "weight": 3 }, { "lane": "b" }]);
    let mut seen = Vec::new();
    for _ in 0..4 {
        let reply = site.post("/v1/leases", claim(json!({ "lanes": lanes }))).await.expect(200);
        seen.push(reply["tasks"][0]["lane"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen.iter().filter(|lane| *lane == "b").count(), 1, "{seen:?}");
    let ordered = claim(json!({ "lanes": ["b", "a"], "order": "ordered", "max": 3 }));
    let reply = site.post("/v1/leases", ordered).await.expect(200);
    let lanes: Vec<_> = (0..3).map(|n| reply["tasks"][n]["lane"].as_str().unwrap()).collect();
    assert_eq!(lanes, ["b", "b", "b"]);
}

async fn completions_bring_the_next_task(site: &Site) {
    let task = site.start(json!({})).await;
    // The next task is looked for beside the first.
    let partition = task.id.split('}').next().unwrap();
    let beside = format!("{partition}}}:0199aabb-0000-7000-8000-000000000001");
    site.submit(json!({ "execution_id": beside })).await;
    let next = json!({ "max": 1, "lanes": ["l"], "capabilities": [], "lease_ttl_ms": 30_000 });
    let done = site.act(&task.id, "complete", task.with(json!({ "next": next }))).await.expect(200);
    let next = Task::from(done["tasks"][0].clone());
    assert_eq!(next.id, beside);
    // What it leaves out is as the worker registered it.
    let third = format!("{partition}}}:0199aabb-0000-7000-8000-000000000002");
    site.submit(json!({ "execution_id": third })).await;
    let done = site.act(&next.id, "complete", next.with(json!({ "next": {} }))).await.expect(200);
    site.read(&next.id, "/result").await.problem(404, "result_not_found");
    let last = Task::from(done["tasks"][0].clone());
    assert_eq!(last.id, third);
    let none = last.with(json!({ "next": { "lanes": [] } }));
    site.act(&last.id, "complete", none).await.invalid("/next/lanes");
    let odd = last.with(json!({ "next": { "order": "odd" } }));
    site.act(&last.id, "complete", odd).await.invalid("/next/order");
    let null = last.with(json!({ "result_json": null, "next": {} }));
    site.act(&last.id, "complete", null).await.expect(200);
    assert_eq!(bytes_of(&site.read(&last.id, "/result").await.expect(200)["result_b64"]), b"null");
}

/// The event of an execution with this name.
async fn event(site: &Site, id: &str, name: &str) -> Value {
    let events = site.read(id, "/events").await.expect(200);
    let events = events["items"].as_array().unwrap();
    events.iter().find(|event| event["type"] == name).unwrap().clone()
}

async fn failures_are_retried_or_final(site: &Site) {
    let task = site.start(json!({ "policy": { "retry_policy": { "max_retries": 1 } } })).await;
    let failed = task.with(json!({ "reason": "boom", "category": "transient" }));
    let retried = site.act(&task.id, "fail", failed).await.expect(200);
    let expected = json!({
        "status": "retry_scheduled", "delay_until": "2027-01-15T08:00:01.000Z", "retry_count": 1,
        "replayed": false,
    });
    assert_eq!(retried, expected);
    let told = event(site, &task.id, "execution.retry_scheduled").await;
    assert_eq!(told["data"]["delay_until"], "2027-01-15T08:00:01.000Z", "{told}");
    site.pass(1000).await;
    let second = site.claim().await;
    let previous = json!({ "reason": "boom", "category": "transient" });
    assert_eq!(
        (&second.json["previous_failure"], &second.json["retry_count"]),
        (&previous, &json!(1))
    );
    let last = second.with(json!({ "reason": "no", "category": "x", "class": "permanent" }));
    let last = site.act(&task.id, "fail", last).await.expect(200);
    assert_eq!(last, json!({ "status": "terminal_failed", "replayed": false }));
    let record = site.read(&task.id, "").await.expect(200);
    assert_eq!(
        (&record["failure_reason"], &record["failure_category"]),
        (&json!("no"), &json!("x"))
    );
    assert_eq!(record["failure_class"], "permanent");
    let fields = json!({ "reason": "no", "category": "x", "class": "odd" });
    site.act(&task.id, "fail", second.with(fields)).await.invalid("/class");
    let fields = json!({ "category": "x" });
    site.act(&task.id, "fail", second.with(fields)).await.invalid("/reason");
    let fields = json!({ "reason": "no" });
    site.act(&task.id, "fail", second.with(fields)).await.invalid("/category");
}

async fn repetitions_get_the_first_reply(site: &Site) {
    let task = site.start(json!({})).await;
    let complete = |fields: Value| site.act(&task.id, "complete", task.with(fields));
    complete(json!({ "result_json": 1 })).await.expect(200);
    let again = complete(json!({ "result_json": 2 })).await.expect(200);
    assert_eq!(again, json!({ "status": "completed", "tasks": [], "replayed": true }));
    assert_eq!(bytes_of(&site.read(&task.id, "/result").await.expect(200)["result_b64"]), b"1");
    let problem = site.act(&task.id, "renew", task.with(json!({}))).await;
    let problem = problem.problem(409, "execution_not_active");
    assert_eq!(problem["current"]["terminal_outcome"], "success");
    assert_eq!((&problem["class"], &problem["retryable"]), (&json!("terminal"), &json!(false)));
}

async fn leases_are_renewed_one_by_one_and_together(site: &Site) {
    let task = site.start(json!({})).await;
    site.pass(1000).await;
    let renewed =
        site.act(&task.id, "renew", task.with(json!({ "ttl_ms": 5000 }))).await.expect(200);
    assert_eq!(renewed, json!({ "expires_at": "2027-01-15T08:00:06.000Z" }));
    let items = json!([
        { "execution_id": task.id, "handle": task.handle, "ttl_ms": 60_000 },
        { "execution_id": task.id, "lease_id": task.json["lease_id"], "lease_epoch": 9,
          "attempt_id": task.json["attempt_id"] },
        { "execution_id": task.id },
        { "execution_id": "{fp:1}:0199aabb-0000-7000-8000-000000000001", "lease_id": task.json["lease_id"],
          "lease_epoch": 1, "attempt_id": task.json["attempt_id"] },
    ]);
    let reply = site.post("/v1/leases/renew", json!({ "items": items })).await.expect(200);
    let items = reply["items"].as_array().unwrap();
    assert_eq!(items[0]["expires_at"], "2027-01-15T08:01:01.000Z");
    let codes: Vec<_> =
        items[1..].iter().map(|item| item["problem"]["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["stale_lease", "fence_required", "execution_not_found"]);
    site.post("/v1/leases/renew", json!({ "items": [] })).await.invalid("/items");
    site.pass(61_000).await;
    let late = site.act(&task.id, "renew", task.with(json!({}))).await;
    late.problem(409, "lease_expired");
}

async fn heartbeats_renew_and_tell(site: &Site) {
    let task = site.start(json!({})).await;
    let beat = |fields: Value| {
        let body = merged(json!({ "boot_id": "b1" }), fields);
        site.post("/v1/workers/w-1/heartbeat", body)
    };
    let leases = json!([{ "execution_id": task.id, "handle": task.handle }]);
    site.pass(1000).await;
    let news = beat(json!({ "leases": leases })).await.expect(200);
    assert_eq!(news["next_expiry_at"], "2027-01-15T08:01:01.000Z");
    assert_eq!(news["leases"][0]["expires_at"], "2027-01-15T08:00:31.000Z");
    assert_eq!((&news["drain"], &news["cancellations"]), (&json!(false), &json!([])));
    assert_eq!(news["paused_lanes"], json!([]));
    let waiting = beat(json!({ "leases": leases, "wait_ms": 20_000 }));
    let cancel = site.act(&task.id, "cancel", json!({ "reason": "enough" }));
    let (news, cancelled) = tokio::join!(waiting, cancel);
    cancelled.expect(200);
    let news = news.expect(200);
    let told =
        json!([{ "execution_id": task.id, "lease_id": task.json["lease_id"], "reason": "enough" }]);
    assert_eq!(news["cancellations"], told);
    assert_eq!(news["leases"][0]["problem"]["code"], "execution_not_active");
    assert_eq!(beat(json!({})).await.expect(200)["cancellations"], told, "listed or not");
    beat(json!({ "wait_ms": 30_001 })).await.invalid("/wait_ms");
    let other = site.post("/v1/workers/w-1/heartbeat", json!({ "boot_id": "b9" })).await;
    other.problem(404, "worker_not_found");
    let unknown = site.post("/v1/workers/w-9/heartbeat", json!({ "boot_id": "b1" })).await;
    unknown.problem(404, "worker_not_found");
    let differs = json!({ "boot_id": "b1", "worker_instance_id": "w-2" });
    let differs = site.post("/v1/workers/w-1/heartbeat", differs).await;
    differs.invalid("/worker_instance_id");
}

async fn workers_drain_and_leave(site: &Site) {
    let task = site.start(json!({})).await;
    let drained = site.post("/v1/workers/w-1/drain", json!({})).await.expect(200);
    assert_eq!((&drained["draining"], &drained["status"]), (&json!(true), &json!("draining")));
    site.submit(json!({})).await;
    assert_eq!(site.post("/v1/leases", claim(json!({}))).await.expect(200)["tasks"], json!([]));
    site.post("/v1/workers/w-9/drain", json!({})).await.problem(404, "worker_not_found");
    let dead =
        site.post("/v1/workers/w-1/mark-dead", json!({ "reason": "fire" })).await.expect(200);
    assert_eq!(dead["status"], "dead");
    let late = site.act(&task.id, "complete", task.with(json!({}))).await;
    late.problem(409, "lease_revoked");
    site.post("/v1/workers/w-1/mark-dead", json!({})).await.problem(404, "worker_not_found");
    site.register().await;
    let delete = site.send(site.request("DELETE", "/v1/workers/w-1")).await;
    assert_eq!(delete.status, 204);
    site.get("/v1/workers/w-1").await.problem(404, "worker_not_found");
}

async fn grants_lead_to_tasks(site: &Site) {
    let id = site.submit(json!({})).await;
    site.register().await;
    let ask = json!({ "lane": "l", "worker_instance_id": "w-1", "capabilities": [], "grant_ttl_ms": 5000 });
    let grant = site.post("/v1/workers/w/claim", ask.clone()).await.expect(200);
    assert_eq!(grant["execution_id"], id);
    assert!(grant["partition_key"].as_str().unwrap().starts_with("{fp:"), "{grant}");
    assert!(grant["grant_key"].is_string() && grant["expires_at_ms"].is_i64(), "{grant}");
    assert_eq!(site.post("/v1/workers/w/claim", ask).await.status, 204);
    let by_name = json!({ "worker_id": "w", "worker_instance_id": "w-1", "lease_ttl_ms": 30_000 });
    let other = json!({ "worker_id": "v", "worker_instance_id": "v-1" });
    site.act(&id, "claim", other).await.problem(409, "invalid_claim_grant");
    let task = Task::from(site.act(&id, "claim", by_name.clone()).await.expect(200));
    assert_eq!(task.id, id);
    let reclaim =
        json!({ "worker_id": "w", "worker_instance_id": "w-1", "lane": "l", "grant_ttl_ms": 5000 });
    let early = site.act(&id, "reclaim", reclaim.clone()).await.expect(200);
    assert_eq!(early["status"], "not_reclaimable");
    site.act(&id, "revoke-lease", json!({})).await.expect(200);
    let granted = site.act(&id, "reclaim", reclaim.clone()).await.expect(200);
    assert_eq!((&granted["status"], &granted["execution_id"]), (&json!("granted"), &json!(id)));
    site.act(&id, "reclaim", reclaim).await.problem(409, "grant_already_exists");
    let task = Task::from(site.act(&id, "claim", by_name.clone()).await.expect(200));
    assert_eq!(task.json["attempt_type"], "reclaim");
    let delayed = site.act(&id, "delay", task.with(json!({ "delay_ms": 0 }))).await.expect(200);
    assert_eq!(delayed["public_state"], "resumable");
    let taken = Task::from(site.act(&id, "grant-and-claim", by_name.clone()).await.expect(200));
    assert_eq!(taken.json["attempt_index"], task.json["attempt_index"]);
    let again = site.act(&id, "grant-and-claim", by_name).await.expect(200);
    assert_eq!(again["lease_id"], taken.json["lease_id"], "the same task again");
    let other = json!({ "worker_id": "v", "worker_instance_id": "v-1" });
    site.act(&id, "grant-and-claim", other).await.problem(409, "lease_conflict");
}

async fn operators_act_without_a_fence(site: &Site) {
    let task = site.start(json!({})).await;
    site.act(&task.id, "complete", json!({})).await.problem(400, "fence_required");
    let odd = site.act(&task.id, "complete", json!({ "source": "odd" })).await;
    odd.invalid("/source");
    let done = json!({ "source": "operator_override", "result_json": 1 });
    site.act(&task.id, "complete", done.clone()).await.expect(200);
    site.act(&task.id, "complete", done).await.problem(409, "execution_not_active");
}

async fn tasks_are_put_aside(site: &Site) {
    let task = site.start(json!({})).await;
    let until = task.with(json!({ "delay_until": "2027-01-15T08:00:10Z" }));
    let delayed = site.act(&task.id, "delay", until.clone()).await.expect(200);
    assert_eq!(
        (&delayed["public_state"], &delayed["replayed"]),
        (&json!("delayed"), &json!(false))
    );
    assert_eq!(delayed["delay_until"], "2027-01-15T08:00:10.000Z");
    let told = event(site, &task.id, "execution.delayed").await;
    assert_eq!(told["data"]["delay_until"], "2027-01-15T08:00:10.000Z", "{told}");
    assert_eq!(delayed["state_vector"]["blocking_reason"], "waiting_for_delay");
    assert_eq!(site.act(&task.id, "delay", until).await.expect(200)["replayed"], true);
    site.pass(10_000).await;
    let task = site.claim().await;
    assert_eq!(task.json["attempt_index"], 0);
    site.act(&task.id, "delay", task.with(json!({}))).await.invalid("/delay_ms");
    let both = task.with(json!({ "delay_ms": 1, "delay_until": 5 }));
    site.act(&task.id, "delay", both).await.invalid("/delay_until");
    let children = site.act(&task.id, "wait-children", task.with(json!({}))).await;
    children.problem(409, "execution_not_in_flow");
    // What is told again is what was told, whatever has happened since.
    let delay = task.with(json!({ "delay_ms": 60_000 }));
    let first = site.act(&task.id, "delay", delay.clone()).await.expect(200);
    assert_eq!(
        first["state_vector"],
        site.read(&task.id, "/state").await.expect(200)["state_vector"]
    );
    site.act(&task.id, "cancel", json!({ "reason": "enough" })).await.expect(200);
    let mut again = site.act(&task.id, "delay", delay).await.expect(200);
    assert_eq!(again["replayed"].take(), true);
    again["replayed"] = json!(false);
    assert_eq!(again, first);
}

async fn fences_are_whole_and_match(site: &Site) {
    let task = site.start(json!({})).await;
    let other = site.submit(json!({})).await;
    let partial = json!({ "lease_id": task.json["lease_id"] });
    site.act(&task.id, "renew", partial).await.problem(400, "partial_fence_triple");
    site.act(&task.id, "renew", json!({ "handle": "nonsense" }))
        .await
        .problem(400, "invalid_input");
    site.act(&other, "renew", task.with(json!({}))).await.invalid("/handle");
    let foreign = if site.backend.backend_label() == "sqlite" { "valkey" } else { "sqlite" };
    let mut handle =
        ff_core::id::Handle::decode(&task.handle, site.backend.settings().store).unwrap();
    handle.store = foreign.to_owned();
    let foreign = json!({ "handle": handle.encode() });
    site.act(&task.id, "renew", foreign).await.problem(400, "handle_from_other_backend");
    let both = task.with(json!({
        "lease_id": task.json["lease_id"], "lease_epoch": 1, "attempt_id": task.json["attempt_id"],
    }));
    site.act(&task.id, "renew", both).await.invalid("/handle");
    let same = task.with(json!({ "execution_id": task.id }));
    site.act(&task.id, "renew", same).await.expect(200);
    let differs = task.with(json!({ "execution_id": other }));
    site.act(&task.id, "renew", differs).await.invalid("/execution_id");
    site.act("nonsense", "renew", json!({})).await.invalid("execution_id");
    let beyond = "{fp:4000}:0199aabb-0000-7000-8000-000000000001";
    site.read(beyond, "").await.problem(400, "invalid_input");
}

async fn usage_is_reported(site: &Site) {
    use ff_core::backend::BackendExt as _;
    use ff_test::limits::budget;
    let create = budget(&[("tokens", 100, 0)]);
    let budget_id = create.budget_id;
    site.backend.call(create).await.unwrap();
    let task = site.start(json!({ "budget_ids": [budget_id.to_string()] })).await;
    let report = |fields: Value| site.act(&task.id, "usage", task.with(fields));
    let first = json!({ "dimensions": { "tokens": 60 }, "dedup_key": "r1" });
    let reply = report(first.clone()).await.expect(200);
    assert_eq!(reply["results"][0]["status"], "ok");
    assert_eq!(reply["results"][0]["budget_id"], budget_id.to_string());
    let answer = report(first).await;
    assert_eq!(answer.expect(200)["results"][0]["status"], "already_applied");
    assert_eq!(answer.header("idempotency-replayed"), "true");
    let more = json!({ "dimensions": { "tokens": 60 }, "budget_id": budget_id.to_string() });
    let breach = report(more).await.expect(200)["results"][0].clone();
    assert_eq!((&breach["status"], &breach["current"]), (&json!("hard_breach"), &json!(120)));
    assert_eq!((&breach["dimension"], &breach["limit"]), (&json!("tokens"), &json!(100)));
    let unknown = json!({ "dimensions": { "tokens": 1 }, "budget_id": "0199aabb-0000-7000-8000-000000000001" });
    report(unknown).await.problem(404, "budget_not_found");
    report(json!({ "dimensions": { "Bad": 1 } })).await.problem(400, "invalid_input");
    // What no budget would take is refused, whether any applies or not.
    let free = site.submit(json!({})).await;
    let many: serde_json::Map<String, Value> =
        (0..33).map(|n| (format!("d{n}"), json!(1))).collect();
    for bad in [json!({}), json!({ "tokens": 1_u64 << 53 }), Value::Object(many)] {
        site.act(&free, "usage", json!({ "dimensions": bad })).await.invalid("/dimensions");
    }
    let used = site.act(&free, "usage", json!({ "dimensions": { "tokens": 1 } })).await;
    assert_eq!(used.expect(200)["results"], json!([]));
}
