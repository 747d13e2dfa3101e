//! Suspends, waitpoints and signals over HTTP.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use ff_test::http::{Site, Task, base64_of, merged};
use serde_json::{Value, json};

ff_test::on_every_store! {
    a_signal_resumes_a_suspended_task
    conditions_have_the_forms_of_the_contract
    pending_waitpoints_keep_signals
    tokens_are_needed_and_never_listed
    tokens_are_signed_again_and_replaced
    operators_approve_deny_close_and_resume
    what_is_wrong_with_a_suspend_is_told
    every_waitpoint_has_an_approval_of_its_own
    a_key_may_look_like_an_id
    a_reserved_name_is_refused_first
}

async fn suspend(site: &Site, task: &Task, fields: Value) -> Value {
    let body = merged(
        json!({
            "bindings": [{ "fresh": { "key": "approval" } }],
            "condition": { "single": { "waitpoint_key": "approval", "name": "approved" } },
        }),
        fields,
    );
    let answer = site.act(&task.id, "suspend", task.with(body)).await;
    assert_eq!(answer.header("cache-control"), "no-store");
    answer.expect(200)
}

async fn a_signal_resumes_a_suspended_task(site: &Site) {
    let task = site.start(json!({})).await;
    let metadata = json!({ "metadata": "step 2", "reason_code": "waiting_for_approval" });
    let suspended = suspend(site, &task, metadata.clone()).await;
    assert_eq!(
        (&suspended["status"], &suspended["replayed"]),
        (&json!("suspended"), &json!(false))
    );
    assert!(suspended["suspension_id"].is_string() && suspended["handle"].is_string());
    let waitpoint = &suspended["waitpoints"][0];
    assert_eq!(waitpoint["key"], "approval");
    let again = suspend(site, &task, metadata).await;
    assert_eq!(
        (&again["replayed"], &again["waitpoints"]),
        (&json!(true), &suspended["waitpoints"])
    );
    let state = site.read(&task.id, "/state").await.expect(200);
    assert_eq!(state["state_vector"]["blocking_reason"], "waiting_for_approval");
    let signal = json!({
        "waitpoint_key": "approval", "token": waitpoint["token"], "name": "approved",
        "category": "review", "source_type": "person", "source_identity": "ann",
        "payload_json": { "yes": true }, "correlation_id": "c", "idempotency_key": "s1",
    });
    let reply = site.act(&task.id, "signal", signal.clone()).await.expect(200);
    assert_eq!(reply["status"], "accepted");
    assert_eq!(reply["effect"], "resume_condition_satisfied");
    let answer = site.act(&task.id, "signal", signal).await;
    let again = answer.expect(200);
    assert_eq!((&again["status"], &again["signal_id"]), (&json!("duplicate"), &reply["signal_id"]));
    assert_eq!(answer.header("idempotency-replayed"), "true");
    let resumed = site.claim().await;
    assert_eq!(
        (&resumed.json["attempt_index"], &resumed.json["lease_epoch"]),
        (&json!(0), &json!(2))
    );
    assert_eq!(resumed.json["metadata"], "step 2");
    let expected = json!({
        "signal_id": reply["signal_id"], "name": "approved", "category": "review",
        "source_type": "person", "source_identity": "ann", "correlation_id": "c",
        "accepted_at": "2027-01-15T08:00:00.000Z", "payload_b64": base64_of(r#"{"yes":true}"#),
        "payload_bytes": 12, "content_type": "application/json",
    });
    assert_eq!(resumed.json["resume_signals"], json!([expected]));
    let observed = site.read(&task.id, "/resume-signals").await.expect(200);
    assert_eq!(observed, json!({ "signals": [expected] }));
    // A fence tells of its attempt, and one that never was of nothing.
    let fence = |attempt: &Value| {
        let lease = resumed.json["lease_id"].as_str().unwrap();
        let attempt = attempt.as_str().unwrap();
        format!("/resume-signals?lease_id={lease}&lease_epoch=2&attempt_id={attempt}")
    };
    let own = site.read(&task.id, &fence(&resumed.json["attempt_id"])).await.expect(200);
    assert_eq!(own, observed);
    let other = site.read(&task.id, &fence(&reply["signal_id"])).await.expect(200);
    assert_eq!(other, json!({ "signals": [] }));
    let listed = site.read(&task.id, "/signals").await.expect(200);
    assert_eq!(listed["items"][0]["effect"], "resume_condition_satisfied");
    assert_eq!(listed["items"][0]["waitpoint_key"], "approval");
    site.act(&task.id, "complete", resumed.with(json!({}))).await.expect(200);
}

async fn conditions_have_the_forms_of_the_contract(site: &Site) {
    let fresh = |keys: &[&str]| -> Value {
        keys.iter()
            .map(|key| json!({ "fresh": { "key": key, "token_ttl_ms": 3_600_000 } }))
            .collect()
    };
    site.register().await;
    for (keys, condition) in [
        (&["k"][..], json!({ "single": { "waitpoint_key": "k" } })),
        (
            &["k"],
            json!({ "signal_set": { "waitpoint_key": "k", "names": ["a", "b"], "mode": "any" } }),
        ),
        (
            &["k"],
            json!({ "signal_set": { "waitpoint_key": "k", "names": ["a", "b"], "mode": "all" } }),
        ),
        (
            &["k"],
            json!({ "signal_set": { "waitpoint_key": "k", "names": ["a", "b"], "mode": { "count": 2 } } }),
        ),
        (&[], json!("operator_only")),
        (&[], json!("timeout_only")),
        (
            &["a", "b"],
            json!({ "all_of": [
            { "single": { "waitpoint_key": "a" } }, { "single": { "waitpoint_key": "b" } },
        ] }),
        ),
        (
            &["a", "b"],
            json!({ "count": { "n": 2, "kind": "distinct_sources", "name": "ok", "waitpoints": ["a", "b"] } }),
        ),
        (
            &["a", "b"],
            json!({ "count": { "n": 2, "kind": "distinct_waitpoints", "waitpoints": ["a", "b"] } }),
        ),
        (
            &["a", "b"],
            json!({ "count": { "n": 2, "kind": "distinct_signals", "waitpoints": ["a", "b"] } }),
        ),
    ] {
        site.submit(json!({})).await;
        let task = site.claim().await;
        let body = json!({
            "bindings": fresh(keys), "condition": condition, "timeout_ms": 60_000,
            "timeout_behavior": "auto_resume_with_timeout_signal",
            "resume_policy": { "close_waitpoint_on_resume": false, "resume_delay_ms": 5 },
        });
        let reply = suspend(site, &task, body).await;
        assert_eq!(reply["waitpoints"].as_array().unwrap().len(), keys.len(), "{condition}");
    }
}

async fn pending_waitpoints_keep_signals(site: &Site) {
    let task = site.start(json!({})).await;
    let create = task.with(json!({ "key": "k", "expires_at": "2027-01-15T09:00:00Z" }));
    let answer = site.act(&task.id, "waitpoints", create.clone()).await;
    assert_eq!(answer.header("cache-control"), "no-store");
    let waitpoint = answer.expect(201);
    site.act(&task.id, "waitpoints", create).await.problem(409, "waitpoint_already_exists");
    let signal = json!({ "waitpoint_id": waitpoint["waitpoint_id"], "name": "go" });
    let request = site.request("POST", &format!("/v1/executions/{}/signal", task.id));
    let request = request.header("ff-waitpoint-token", waitpoint["token"].as_str().unwrap());
    let reply = site.send(request.body(signal.to_string())).await.expect(200);
    assert_eq!(reply["effect"], "buffered_for_pending_waitpoint");
    let satisfied = suspend(
        site,
        &task,
        json!({
            "bindings": [{ "use_pending": { "waitpoint_id": waitpoint["waitpoint_id"] } }],
            "condition": { "single": { "waitpoint_key": "k" } },
        }),
    )
    .await;
    assert_eq!(satisfied["status"], "already_satisfied");
    assert_eq!(site.read(&task.id, "/state").await.expect(200)["public_state"], "active");
}

async fn tokens_are_needed_and_never_listed(site: &Site) {
    let task = site.start(json!({})).await;
    let suspended = suspend(site, &task, json!({})).await;
    let token = suspended["waitpoints"][0]["token"].as_str().unwrap();
    let signal = |fields: Value| {
        let body = merged(json!({ "waitpoint_key": "approval", "name": "approved" }), fields);
        site.act(&task.id, "signal", body)
    };
    signal(json!({})).await.problem(401, "missing_token");
    signal(json!({ "token": "nonsense" })).await.problem(401, "invalid_token");
    let forged =
        format!("{}{}", &token[..token.len() - 1], if token.ends_with('0') { '1' } else { '0' });
    signal(json!({ "token": forged })).await.problem(401, "invalid_token");
    signal(json!({ "token": token, "name": "__timeout__" })).await.invalid("/name");
    signal(json!({ "token": token, "name": "" })).await.invalid("/name");
    let large = base64_of(vec![0; (256 << 10) + 1]);
    signal(json!({ "token": token, "payload_b64": large })).await.problem(413, "payload_too_large");
    let two = json!({ "token": token, "waitpoint_id": suspended["waitpoints"][0]["waitpoint_id"] });
    signal(two).await.invalid("/waitpoint_key");
    let listed = site.read(&task.id, "/pending-waitpoints").await;
    let inbox = site.get("/v1/waitpoints?lane=l&reason=waiting_for_signal&age=0").await;
    assert_eq!(listed.expect(200)["items"], inbox.expect(200)["items"]);
    let item = &listed.json()["items"][0];
    assert_eq!((&item["execution_id"], &item["state"]), (&json!(task.id), &json!("open")));
    assert_eq!((&item["kid"], &item["reason"]), (&json!("k1"), &json!("waiting_for_signal")));
    let signature = token.rsplit(':').next().unwrap();
    assert!(!String::from_utf8_lossy(&listed.bytes).contains(signature));
    let other = site.get("/v1/waitpoints?lane=other").await.expect(200);
    assert_eq!(other["items"], json!([]));
}

async fn tokens_are_signed_again_and_replaced(site: &Site) {
    let task = site.start(json!({})).await;
    let suspended = suspend(site, &task, json!({})).await;
    let waitpoint = &suspended["waitpoints"][0];
    let path = format!("/v1/executions/{}/waitpoints/approval/token", task.id);
    let answer = site.get(&path).await;
    assert_eq!(answer.expect(200)["token"], waitpoint["token"]);
    assert_eq!(answer.header("cache-control"), "no-store");
    let new = site.post(&path, json!({ "token_ttl_ms": 1000 })).await.expect(201);
    assert_ne!(new["token"], waitpoint["token"]);
    let signal = json!({ "waitpoint_key": "approval", "name": "x", "token": waitpoint["token"] });
    site.act(&task.id, "signal", signal).await.problem(401, "invalid_token");
    site.pass(1001).await;
    let signal = json!({ "waitpoint_key": "approval", "name": "x", "token": new["token"] });
    site.act(&task.id, "signal", signal).await.problem(401, "token_expired");
    let gone = format!("/v1/executions/{}/waitpoints/none/token", task.id);
    site.get(&gone).await.problem(404, "waitpoint_not_found");
}

async fn operators_approve_deny_close_and_resume(site: &Site) {
    let task = site.start(json!({})).await;
    suspend(site, &task, json!({})).await;
    let at = |verb: &str| format!("/v1/executions/{}/waitpoints/approval/{verb}", task.id);
    let denied = site.post(&at("deny"), json!({ "comment": "no" })).await.expect(200);
    assert_eq!(denied["effect"], "signal_ignored_matcher_failed");
    let lane = site.post(&at("approve"), json!({ "lane": "other" })).await;
    lane.problem(409, "lane_mismatch");
    let approved = site.post(&at("approve"), json!({ "comment": "yes" })).await.expect(200);
    assert_eq!(approved["effect"], "resume_condition_satisfied");
    let task = site.claim().await;
    assert_eq!(task.json["resume_signals"][0]["name"], "approved");
    suspend(site, &task, json!({})).await;
    let closed = site.post(&at("close"), json!({ "reason": "late" })).await.expect(200);
    assert_eq!(closed, json!({ "status": "closed" }));
    let again = site.post(&at("close"), json!({ "reason": "late" })).await.expect(200);
    assert_eq!(again, json!({ "status": "already_closed", "replayed": true }));
    let none = format!("/v1/executions/{}/waitpoints/none/close", task.id);
    site.post(&none, json!({ "reason": "x" })).await.problem(404, "waitpoint_not_found");
    let record = site.act(&task.id, "resume", json!({ "detail": "by hand" })).await.expect(200);
    assert_eq!(record["public_state"], "resumable");
}

async fn what_is_wrong_with_a_suspend_is_told(site: &Site) {
    let task = site.start(json!({})).await;
    let suspend = |body: Value| site.act(&task.id, "suspend", task.with(body));
    let fresh = json!([{ "fresh": { "key": "k" } }]);
    let single = json!({ "single": { "waitpoint_key": "k" } });
    suspend(json!({ "bindings": fresh })).await.invalid("/condition");
    suspend(json!({ "bindings": [], "condition": single })).await.invalid("/bindings");
    let named = json!({ "single": { "waitpoint_key": "k", "name": "" } });
    suspend(json!({ "bindings": fresh, "condition": named })).await.problem(400, "invalid_input");
    suspend(json!({ "bindings": fresh, "condition": { "odd": 1 } }))
        .await
        .problem(400, "invalid_input");
    let both = json!({ "bindings": fresh, "condition": single, "timeout_ms": 1, "timeout_at": 1 });
    suspend(both).await.invalid("/timeout_ms");
    let odd = json!({ "bindings": fresh, "condition": single, "timeout_behavior": "odd" });
    suspend(odd).await.invalid("/timeout_behavior");
    let unknown =
        json!([{ "use_pending": { "waitpoint_id": "0199aabb-0000-7000-8000-000000000001" } }]);
    suspend(json!({ "bindings": unknown, "condition": single }))
        .await
        .problem(404, "waitpoint_not_found");
    let no_fence = json!({ "bindings": fresh, "condition": single });
    site.act(&task.id, "suspend", no_fence).await.problem(400, "fence_required");
}

/// Suspends on a waitpoint of this key, in the caller's words.
async fn waiting(site: &Site, task: &Task, key: &str) -> Value {
    let condition = json!({ "single": { "waitpoint_key": key } });
    let fields = json!({ "bindings": [{ "fresh": { "key": key } }], "condition": condition });
    suspend(site, task, fields).await["waitpoints"][0].clone()
}

async fn every_waitpoint_has_an_approval_of_its_own(site: &Site) {
    let task = site.start(json!({})).await;
    let at = |wp: &str, verb: &str| format!("/v1/executions/{}/waitpoints/{wp}/{verb}", task.id);
    let mut task_now = Task::from(task.json.clone());
    for key in ["first", "second"] {
        let waitpoint = waiting(site, &task_now, key).await;
        let approved = site.post(&at(key, "approve"), json!({})).await.expect(200);
        assert_eq!(approved["effect"], "resume_condition_satisfied", "{key}");
        for again in [key, waitpoint["waitpoint_id"].as_str().unwrap()] {
            let again = site.post(&at(again, "approve"), json!({})).await.expect(200);
            assert_eq!((&again["status"], &again["replayed"]), (&json!("duplicate"), &json!(true)));
        }
        task_now = site.claim().await;
    }
    let explicit = json!({ "suffix": "1" });
    waiting(site, &task_now, "third").await;
    site.post(&at("third", "approve"), explicit.clone()).await.expect(200);
    let task_now = site.claim().await;
    waiting(site, &task_now, "fourth").await;
    let same = site.post(&at("fourth", "approve"), explicit).await.expect(200);
    assert_eq!(same["status"], "duplicate", "a suffix that is given counts for the execution");
}

async fn a_key_may_look_like_an_id(site: &Site) {
    let task = site.start(json!({})).await;
    let key = uuid::Uuid::now_v7().to_string();
    let waitpoint = waiting(site, &task, &key).await;
    let at = |verb: &str| format!("/v1/executions/{}/waitpoints/{key}/{verb}", task.id);
    let token = site.get(&at("token")).await.expect(200);
    assert_eq!(token["token"], waitpoint["token"]);
    site.post(&at("approve"), json!({})).await.expect(200);
    assert_eq!(site.post(&at("close"), json!({})).await.expect(200)["status"], "already_closed");
}

async fn a_reserved_name_is_refused_first(site: &Site) {
    let task = site.start(json!({})).await;
    let unknown = task.id.replace(|c: char| matches!(c, 'a'..='e'), "0");
    let signal = json!({ "waitpoint_key": "k", "name": "__timeout__" });
    for id in [&task.id, &unknown] {
        site.act(id, "signal", signal.clone()).await.invalid("/name");
        let approve = json!({ "name": "__timeout__" });
        site.act(id, "waitpoints/k/approve", approve).await.invalid("/name");
    }
}
