//! Budgets and quota policies over HTTP.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use ff_test::http::{Answer, Site, merged};
use serde_json::{Value, json};

ff_test::on_every_store! {
    a_budget_is_made_read_and_removed
    a_key_names_a_new_budget
    usage_is_reported_and_given_back
    a_budget_of_a_lane_keeps_claims_away_until_it_is_raised
    a_budget_changes_on_condition
    budgets_are_listed
    a_quota_policy_is_made_read_and_removed
    slots_are_shown_and_raised
    a_quota_policy_changes_on_condition
    limits_of_another_namespace_are_not_there
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn custom(fields: Value) -> Value {
    merged(json!({ "scope_type": "custom", "scope_id": "tests" }), fields)
}

async fn budget(site: &Site, fields: Value) -> String {
    let reply = site.post("/v1/budgets", custom(fields)).await.expect(201);
    format!("/v1/budgets/{}", text(&reply["budget_id"]))
}

async fn quota(site: &Site, fields: Value) -> (String, Value) {
    let reply = site.post("/v1/quotas", fields).await.expect(201);
    (format!("/v1/quotas/{}", text(&reply["quota_policy_id"])), reply)
}

async fn patch(site: &Site, path: &str, expected: Option<&str>, body: Value) -> Answer {
    let mut request = site.request("PATCH", path).body(body.to_string());
    if let Some(expected) = expected {
        request = request.header("if-match", expected);
    }
    site.send(request).await
}

async fn remove(site: &Site, path: &str) -> Answer {
    site.with_body("DELETE", path, json!({})).await
}

async fn tasks(site: &Site) -> usize {
    let claim = json!({ "worker_id": "w", "worker_instance_id": "w-1" });
    let reply = site.post("/v1/leases", claim).await.expect(200);
    reply["tasks"].as_array().unwrap().len()
}

async fn a_budget_is_made_read_and_removed(site: &Site) {
    let body = json!({
        "scope_type": "lane", "scope_id": "mail", "enforcement_mode": "refuse",
        "on_hard_limit": "fail", "on_soft_limit": "ignore", "reset_interval_ms": 60_000,
        "dimensions": { "output_tokens": { "hard": 100, "soft": 80 }, "calls": {} },
    });
    let answer = site.post("/v1/budgets", body.clone()).await;
    let made = answer.expect(201);
    let path = format!("/v1/budgets/{}", text(&made["budget_id"]));
    assert_eq!(answer.header("location"), path);
    let answer = site.get(&path).await;
    let read = answer.expect(200);
    assert_eq!(answer.header("etag"), format!("\"{}\"", read["revision"]));
    for (field, value) in [
        ("budget_id", made["budget_id"].clone()),
        ("scope_type", json!("lane")),
        ("scope_id", json!("mail")),
        ("enforcement_mode", json!("refuse")),
        ("on_hard_limit", json!("fail")),
        ("on_soft_limit", json!("ignore")),
        ("reset_interval_ms", json!(60_000)),
        ("usage", json!({ "calls": 0, "output_tokens": 0 })),
        ("breach_count", json!(0)),
        ("soft_breach_count", json!(0)),
        ("reset_count", json!(0)),
        ("next_reset_at", json!("2027-01-15T08:01:00.000Z")),
        ("blocked_by", Value::Null),
    ] {
        assert_eq!(read[field], value, "{field}");
    }
    assert_eq!(read["dimensions"]["output_tokens"], json!({ "hard": 100, "soft": 80 }));
    let lane = site.get("/v1/lanes/mail").await.expect(200);
    assert_eq!(lane["budget_ids"], json!([made["budget_id"]]), "its scope attaches it");

    let given = merged(body.clone(), json!({ "budget_id": made["budget_id"] }));
    let known = site.post("/v1/budgets", given.clone()).await;
    assert_eq!(known.header("idempotency-replayed"), "");
    assert_eq!(known.expect(200)["status"], "duplicate");
    let other = merged(given, json!({ "reset_interval_ms": 1 }));
    site.post("/v1/budgets", other).await.problem(409, "budget_attach_conflict");
    for (fields, code, pointer) in [
        (json!({ "scope_type": "planet" }), "invalid_budget_scope", None),
        (json!({ "enforcement_mode": "odd" }), "invalid_input", Some("/enforcement_mode")),
        (json!({ "x": 1 }), "invalid_input", Some("/x")),
        (json!({ "dimensions": { "a": { "x": 1 } } }), "invalid_input", Some("/dimensions/a/x")),
        (json!({ "dimensions": { "A": {} } }), "invalid_input", None),
    ] {
        let problem =
            site.post("/v1/budgets", merged(body.clone(), fields)).await.problem(400, code);
        if let Some(pointer) = pointer {
            assert_eq!(problem["errors"][0]["pointer"], pointer);
        }
    }
    assert_eq!(remove(site, &path).await.status, 204);
    site.get(&path).await.problem(404, "budget_not_found");
    remove(site, &path).await.problem(404, "budget_not_found");
    site.get("/v1/budgets/odd").await.invalid("budget_id");
}

async fn a_key_names_a_new_budget(site: &Site) {
    for (path, id, body, other) in [
        ("/v1/budgets", "budget_id", custom(json!({})), custom(json!({ "reset_interval_ms": 5 }))),
        (
            "/v1/quotas",
            "quota_policy_id",
            json!({ "max_concurrent": 1 }),
            json!({ "max_concurrent": 2 }),
        ),
    ] {
        let with_key = |body: &Value| {
            let request = site.request("POST", path).header("idempotency-key", "b-1");
            site.send(request.body(body.to_string()))
        };
        let first = with_key(&body).await.expect(201);
        let again = with_key(&body).await;
        assert_eq!(again.header("idempotency-replayed"), "true");
        let again = again.expect(200);
        assert_eq!((&again[id], &again["status"]), (&first[id], &json!("duplicate")));
        with_key(&other).await.problem(422, "idempotency_mismatch");
        let elsewhere = site
            .request("POST", &format!("/v1/namespaces/other{}", path.strip_prefix("/v1").unwrap()))
            .header("idempotency-key", "b-1")
            .body(body.to_string());
        let elsewhere = site.send(elsewhere).await.expect(201);
        assert_ne!(elsewhere[id], first[id]);
        let given = merged(body, json!({ id: uuid::Uuid::now_v7() }));
        with_key(&given).await.invalid(&format!("/{id}"));
    }
}

async fn usage_is_reported_and_given_back(site: &Site) {
    let path = budget(site, json!({ "dimensions": { "tokens": { "hard": 10, "soft": 5 } } })).await;
    let report = |fields: Value| {
        let path = format!("{path}/usage");
        async move { site.post(&path, fields).await }
    };
    let used = |amount: u64| json!({ "dimensions": { "tokens": amount } });
    assert_eq!(report(used(3)).await.expect(200), json!({ "status": "ok" }));
    let soft = report(merged(used(3), json!({ "dedup_key": "r1" }))).await.expect(200);
    let breach =
        json!({ "status": "soft_breach", "dimension": "tokens", "current": 6, "limit": 5 });
    assert_eq!(soft, breach);
    let again = report(merged(used(3), json!({ "dedup_key": "r1" }))).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.expect(200), json!({ "status": "already_applied", "replayed": true }));
    let request = site.request("POST", &format!("{path}/usage")).header("idempotency-key", "r1");
    let by_header = site.send(request.body(used(3).to_string())).await.expect(200);
    assert_eq!(by_header["status"], "already_applied");
    let refused = report(merged(used(9), json!({ "mode": "refuse" }))).await.expect(200);
    assert_eq!((&refused["status"], &refused["current"]), (&json!("hard_breach"), &json!(6)));
    let id = site.submit(json!({})).await;
    let hard = report(merged(used(9), json!({ "execution_id": id }))).await.expect(200);
    assert_eq!((&hard["status"], &hard["current"]), (&json!("hard_breach"), &json!(15)));
    let status = site.get(&path).await.expect(200);
    assert_eq!(status["usage"], json!({ "tokens": 15 }));
    assert_eq!(status["blocked_by"], json!({ "dimension": "tokens", "current": 15, "limit": 10 }));
    assert_eq!(status["last_breach"]["kind"], "hard");
    let ledger = site.get(&format!("{path}/ledgers/{id}")).await.expect(200);
    let nine = json!({ "tokens": 9 });
    assert_eq!((&ledger["usage"], &ledger["other"]), (&nine, &nine), "no attempt was named");
    assert_eq!((&ledger["execution_id"], &ledger["attempts"]), (&json!(id), &json!([])));
    let task = json!({ "budget_id": status["budget_id"], "dimensions": { "calls": 1 } });
    let of_task = merged(task, json!({ "attempt_index": 2 }));
    site.post(&format!("/v1/executions/{id}/usage"), of_task).await.expect(200);
    let ledger = site.get(&format!("{path}/ledgers/{id}")).await.expect(200);
    let expected = json!([{ "attempt_index": 2, "usage": { "calls": 1 } }]);
    assert_eq!((&ledger["attempts"], &ledger["other"]), (&expected, &nine));
    site.get(&format!("{path}/ledgers/odd")).await.invalid("execution_id");
    let release = json!({ "execution_id": id });
    let released = site.post(&format!("{path}/release"), release.clone()).await.expect(200);
    assert_eq!(released, json!({ "status": "ok" }));
    let left = json!({ "calls": 0, "tokens": 6 });
    assert_eq!(site.get(&path).await.expect(200)["usage"], left);
    site.post(&format!("{path}/release"), release).await.expect(200);
    let reset = site.post(&format!("{path}/reset"), json!({})).await.expect(200);
    assert_eq!(reset, json!({ "status": "ok", "reset_count": 1, "next_reset_at": null }));
    let none = json!({ "calls": 0, "tokens": 0 });
    assert_eq!(site.get(&path).await.expect(200)["usage"], none);
    report(json!({ "dimensions": {} })).await.invalid("/dimensions");
    report(json!({ "dimensions": { "tokens": -1 } })).await.invalid("/dimensions/tokens");
    report(merged(used(1), json!({ "fence": 1 }))).await.invalid("/fence");
    site.post(&format!("{path}/reset"), json!({ "x": 1 })).await.invalid("/x");
    site.post(&format!("{path}/release"), json!({})).await.invalid("/execution_id");
}

async fn a_budget_of_a_lane_keeps_claims_away_until_it_is_raised(site: &Site) {
    let scope =
        json!({ "scope_type": "lane", "scope_id": "l", "dimensions": { "t": { "hard": 1 } } });
    let made = site.post("/v1/budgets", scope).await.expect(201);
    let path = format!("/v1/budgets/{}", text(&made["budget_id"]));
    site.post(&format!("{path}/usage"), json!({ "dimensions": { "t": 1 } })).await.expect(200);
    site.submit(json!({})).await;
    site.register().await;
    assert_eq!(tasks(site).await, 0, "the budget is used up");
    assert_eq!(site.get(&path).await.expect(200)["blocked_count"], 1);
    patch(site, &path, None, json!({ "dimensions": { "t": { "hard": 9 } } })).await.expect(200);
    site.pass(0).await;
    assert_eq!(site.get(&path).await.expect(200)["blocked_count"], 0);
    assert_eq!(tasks(site).await, 1);
}

async fn a_budget_changes_on_condition(site: &Site) {
    let path =
        budget(site, json!({ "dimensions": { "a": { "hard": 1 }, "b": { "hard": 2 } } })).await;
    let seen = site.get(&path).await.header("etag").to_owned();
    let change = json!({ "dimensions": { "a": { "hard": 9 } }, "on_hard_limit": "cancel" });
    let changed = patch(site, &path, Some(&seen), change.clone()).await;
    assert_eq!(changed.header("etag"), format!("\"{}\"", changed.json()["revision"]));
    let changed = changed.expect(200);
    assert_eq!(changed["dimensions"]["a"]["hard"], 9);
    assert_eq!(changed["dimensions"]["b"]["hard"], 2, "what is not named stays");
    assert_eq!(changed["on_hard_limit"], "cancel");
    patch(site, &path, Some(&seen), change.clone()).await.problem(412, "precondition_failed");
    patch(site, &path, Some("*"), change).await.expect(200);
    patch(site, &path, None, json!({ "enforcement_mode": "refuse" }))
        .await
        .invalid("/enforcement_mode");
    let every = patch(site, &path, None, json!({ "reset_interval_ms": 1000 })).await.expect(200);
    assert_eq!(every["next_reset_at"], "2027-01-15T08:00:01.000Z");
}

async fn budgets_are_listed(site: &Site) {
    for n in 0..3 {
        let scope = json!({ "scope_type": "lane", "scope_id": format!("l{n}") });
        site.post("/v1/budgets", scope).await.expect(201);
        site.pass(1).await;
    }
    let page = site.get("/v1/budgets?limit=2&count=estimate").await;
    let next = page.header("link").to_owned();
    let page = page.expect(200);
    assert_eq!((&page["count"], &page["items"][0]["scope_id"]), (&json!(3), &json!("l2")));
    let next = next.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap();
    let rest = site.get(next).await.expect(200);
    assert_eq!(rest["items"].as_array().unwrap().len(), 1);
    let one = site.get("/v1/budgets?scope_type=lane&scope_id=l1").await.expect(200);
    assert_eq!(one["items"].as_array().unwrap().len(), 1);
    site.get("/v1/budgets?scope_type=lane").await.invalid("scope_id");
    site.get("/v1/budgets?x=1").await.invalid("x");
}

async fn a_quota_policy_is_made_read_and_removed(site: &Site) {
    let spec = json!({
        "window_seconds": 60, "max_requests_per_window": 10, "max_concurrent": 2, "jitter_ms": 5,
    });
    let (path, made) = quota(site, spec.clone()).await;
    let answer = site.get(&path).await;
    let read = answer.expect(200);
    assert_eq!(answer.header("etag"), format!("\"{}\"", read["revision"]));
    for (field, value) in spec.as_object().unwrap() {
        assert_eq!(read[field], *value, "{field}");
    }
    assert_eq!((&read["slots"], &read["waiting"]), (&json!(0), &json!(0)));
    let given = merged(spec, json!({ "quota_policy_id": made["quota_policy_id"] }));
    assert_eq!(site.post("/v1/quotas", given.clone()).await.expect(200)["status"], "duplicate");
    let other = merged(given, json!({ "max_concurrent": 3 }));
    site.post("/v1/quotas", other).await.problem(409, "quota_attach_conflict");
    let no_window = json!({ "max_requests_per_window": 1 });
    site.post("/v1/quotas", no_window).await.problem(400, "invalid_quota_spec");
    site.post("/v1/quotas", json!({ "x": 1 })).await.invalid("/x");
    let listed = site.get("/v1/quotas?count=estimate").await.expect(200);
    assert_eq!(
        (&listed["count"], &listed["items"][0]["quota_policy_id"]),
        (&json!(1), &made["quota_policy_id"])
    );
    assert_eq!(remove(site, &path).await.status, 204);
    site.get(&path).await.problem(404, "quota_policy_not_found");
    site.get(&format!("{path}/holders")).await.problem(404, "quota_policy_not_found");
}

async fn slots_are_shown_and_raised(site: &Site) {
    let (path, made) = quota(site, json!({ "max_concurrent": 1 })).await;
    for _ in 0..2 {
        site.submit(json!({ "quota_policy_id": made["quota_policy_id"] })).await;
    }
    site.register().await;
    let task = site.claim().await;
    assert_eq!(tasks(site).await, 0, "one at a time");
    let holders = site.get(&format!("{path}/holders")).await.expect(200);
    let holder = &holders["items"][0];
    assert_eq!((&holder["execution_id"], &holder["lease_epoch"]), (&json!(task.id), &json!(1)));
    assert_eq!(holders["next_cursor"], Value::Null);
    let read = site.get(&path).await.expect(200);
    assert_eq!((&read["slots"], &read["waiting"]), (&json!(1), &json!(1)));
    patch(site, &path, None, json!({ "max_concurrent": 2 })).await.expect(200);
    site.pass(0).await;
    assert_eq!(tasks(site).await, 1, "a raise lets the next in");
    let first = site.get(&format!("{path}/holders?limit=1")).await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = site.get(&format!("{path}/holders?limit=1&cursor={cursor}")).await.expect(200);
    assert_eq!(rest["items"].as_array().unwrap().len(), 1);
    site.get(&format!("{path}/holders?cursor=odd")).await.problem(400, "invalid_cursor");
}

async fn a_quota_policy_changes_on_condition(site: &Site) {
    let (path, _) = quota(site, json!({ "window_seconds": 1, "max_requests_per_window": 1 })).await;
    let seen = site.get(&path).await.header("etag").to_owned();
    let change = json!({ "max_concurrent": 7 });
    let changed = patch(site, &path, Some(&seen), change.clone()).await;
    assert_eq!(changed.header("etag"), format!("\"{}\"", changed.json()["revision"]));
    let changed = changed.expect(200);
    assert_eq!(changed["max_concurrent"], 7);
    assert_eq!(changed["max_requests_per_window"], 1, "what is absent stays");
    patch(site, &path, Some(&seen), json!({ "max_concurrent": 8 }))
        .await
        .problem(412, "precondition_failed");
    patch(site, &path, None, json!({ "window_seconds": 0 }))
        .await
        .problem(400, "invalid_quota_spec");
    patch(site, &path, None, json!({ "x": 1 })).await.invalid("/x");
}

async fn limits_of_another_namespace_are_not_there(site: &Site) {
    let budget = budget(site, json!({})).await;
    let (quota, _) = quota(site, json!({ "max_concurrent": 1 })).await;
    let id = site.submit(json!({})).await;
    let usage = json!({ "dimensions": { "a": 1 } });
    let cases = [
        ("GET", budget.clone(), Value::Null),
        ("PATCH", budget.clone(), json!({})),
        ("DELETE", budget.clone(), json!({})),
        ("POST", format!("{budget}/usage"), usage),
        ("POST", format!("{budget}/reset"), json!({})),
        ("POST", format!("{budget}/release"), json!({ "execution_id": id })),
        ("GET", quota.clone(), Value::Null),
        ("GET", format!("{quota}/holders"), Value::Null),
        ("PATCH", quota.clone(), json!({})),
        ("DELETE", quota.clone(), json!({})),
    ];
    for (method, path, body) in cases {
        let foreign = format!("/v1/namespaces/other{}", path.strip_prefix("/v1").unwrap());
        let request = site.request(method, &foreign);
        let request = if method == "GET" { request } else { request.body(body.to_string()) };
        let code =
            if path.starts_with(&budget) { "budget_not_found" } else { "quota_policy_not_found" };
        site.send(request).await.problem(404, code);
    }
    for list in ["budgets", "quotas"] {
        let items = site.get(&format!("/v1/namespaces/other/{list}")).await.expect(200);
        assert_eq!(items["items"], json!([]));
    }
    site.get(&budget).await.expect(200);
    site.get(&quota).await.expect(200);
}
