//! Bulk operations over HTTP.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use ff_test::http::{Site, merged};
use serde_json::{Value, json};

ff_test::on_every_store! {
    a_dry_run_tells_and_changes_nothing
    what_a_filter_finds_is_cancelled
    listed_executions_are_acted_on
    a_key_makes_a_bulk_operation_once
    it_is_paused_resumed_and_aborted
    they_are_listed
    a_bad_one_is_refused
    one_of_another_namespace_is_not_there
}

fn cancel(fields: Value) -> Value {
    merged(json!({ "action": "cancel", "filter": { "lane": "l" } }), fields)
}

async fn some(site: &Site, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(site.submit(json!({})).await);
        site.pass(1).await;
    }
    ids
}

/// Makes one: its path.
async fn made(site: &Site, body: Value) -> String {
    let answer = site.post("/v1/bulk", body).await;
    let reply = answer.expect(202);
    let path = format!("/v1/bulk/{}", reply["bulk_id"].as_str().unwrap());
    assert_eq!(answer.header("location"), path);
    path
}

async fn a_dry_run_tells_and_changes_nothing(site: &Site) {
    let mut ids = some(site, 22).await;
    let dry = site.post("/v1/bulk", cancel(json!({ "dry_run": true }))).await.expect(200);
    ids.reverse();
    ids.truncate(20);
    assert_eq!(dry, json!({ "matched": 22, "sample": ids }));
    let listed = json!({ "action": "delete", "ids": [ids[3]], "dry_run": true });
    let listed = site.post("/v1/bulk", listed).await.expect(200);
    assert_eq!(listed, json!({ "matched": 1, "sample": [ids[3]] }));
    assert_eq!(site.get("/v1/bulk").await.expect(200)["items"], json!([]));
    assert_eq!(
        site.get("/v1/executions?state=waiting").await.expect(200)["items"]
            .as_array()
            .unwrap()
            .len(),
        22
    );
}

async fn what_a_filter_finds_is_cancelled(site: &Site) {
    let ids = some(site, 3).await;
    let other = site.submit(json!({ "lane": "other" })).await;
    let path = made(site, cancel(json!({ "reason": "cleanup" }))).await;
    let begun = site.get(&path).await.expect(200);
    assert_eq!((&begun["state"], &begun["matched"]), (&json!("running"), &json!(3)));
    site.pass(0).await;
    let done = site.get(&path).await.expect(200);
    assert_eq!(
        (&done["state"], &done["done"], &done["failed"]),
        (&json!("done"), &json!(3), &json!(0))
    );
    assert_eq!((&done["action"], &done["reason"]), (&json!("cancel"), &json!("cleanup")));
    for id in &ids {
        let record = site.read(id, "").await.expect(200);
        assert_eq!(record["public_state"], "cancelled");
        assert_eq!(record["cancellation_reason"], "cleanup");
    }
    assert_eq!(site.read(&other, "").await.expect(200)["public_state"], "waiting");
    site.post(&format!("{path}/abort"), json!({})).await.problem(409, "terminal");
}

async fn listed_executions_are_acted_on(site: &Site) {
    let ids = some(site, 2).await;
    for (action, state) in [("hold", "blocked_by_operator"), ("release", "eligible_now")] {
        let path = made(site, json!({ "action": action, "ids": ids })).await;
        site.pass(0).await;
        let bulk = site.get(&path).await.expect(200);
        assert_eq!((&bulk["state"], &bulk["done"]), (&json!("done"), &json!(2)), "{action}");
        let found = site.read(&ids[0], "/state").await.expect(200);
        assert_eq!(found["state_vector"]["eligibility_state"], state);
    }
    let path = made(site, json!({ "action": "delete", "ids": ids })).await;
    site.pass(0).await;
    let bulk = site.get(&path).await.expect(200);
    assert_eq!((&bulk["done"], &bulk["failed"]), (&json!(0), &json!(2)), "they have not ended");
}

async fn a_key_makes_a_bulk_operation_once(site: &Site) {
    some(site, 1).await;
    let with_key = |body: Value| {
        let request = site.request("POST", "/v1/bulk").header("idempotency-key", "b");
        site.send(request.body(body.to_string()))
    };
    let first = with_key(cancel(json!({}))).await.expect(202);
    let again = with_key(cancel(json!({}))).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    let again = again.expect(200);
    assert_eq!((&again["bulk_id"], &again["status"]), (&first["bulk_id"], &json!("duplicate")));
    with_key(cancel(json!({ "action": "hold" }))).await.problem(422, "idempotency_mismatch");
}

async fn it_is_paused_resumed_and_aborted(site: &Site) {
    let ids = some(site, 2).await;
    let path = made(site, cancel(json!({}))).await;
    let paused = site.post(&format!("{path}/pause"), json!({})).await.expect(200);
    assert_eq!(paused["state"], "paused");
    site.pass(5000).await;
    assert_eq!(site.read(&ids[0], "").await.expect(200)["public_state"], "waiting");
    let resumed = site.post(&format!("{path}/resume"), json!({})).await.expect(200);
    assert_eq!(resumed["state"], "running");
    let aborted = site.post(&format!("{path}/abort"), json!({})).await.expect(200);
    assert_eq!(aborted["state"], "aborted");
    assert_eq!(
        site.post(&format!("{path}/abort"), json!({})).await.expect(200)["state"],
        "aborted"
    );
    site.pass(5000).await;
    assert_eq!(site.read(&ids[0], "").await.expect(200)["public_state"], "waiting");
    site.post(&format!("{path}/resume"), json!({})).await.problem(409, "terminal");
    site.post(&format!("{path}/pause"), json!({ "x": 1 })).await.invalid("/x");
}

async fn they_are_listed(site: &Site) {
    some(site, 1).await;
    for _ in 0..3 {
        made(site, cancel(json!({}))).await;
        site.pass(1).await;
    }
    let page = site.get("/v1/bulk?limit=2&count=estimate").await;
    let link = page.header("link").to_owned();
    let page = page.expect(200);
    assert_eq!((&page["count"], page["items"].as_array().unwrap().len()), (&json!(3), 2));
    let next = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap();
    assert_eq!(site.get(next).await.expect(200)["items"].as_array().unwrap().len(), 1);
}

async fn a_bad_one_is_refused(site: &Site) {
    let post = |body: Value| site.post("/v1/bulk", body);
    post(json!({})).await.invalid("/action");
    post(json!({ "action": "explode", "ids": [] })).await.invalid("/action");
    post(json!({ "action": "cancel" })).await.invalid("/filter");
    post(json!({ "action": "cancel", "filter": {} })).await.invalid("/filter");
    post(json!({ "action": "cancel", "filter": {}, "dry_run": true })).await.invalid("/filter");
    post(json!({ "action": "cancel", "ids": [] })).await.invalid("/ids");
    post(json!({ "action": "cancel", "ids": ["odd"] })).await.invalid("/ids/0");
    post(cancel(json!({ "ids": [] }))).await.invalid("/ids");
    post(cancel(json!({ "filter": { "lane": "l", "limit": 1 } }))).await.invalid("/filter/limit");
    post(cancel(json!({ "filter": { "colour": "l" } }))).await.invalid("/filter/colour");
    post(cancel(json!({ "x": 1 }))).await.invalid("/x");
}

async fn one_of_another_namespace_is_not_there(site: &Site) {
    let ids = some(site, 1).await;
    let path = made(site, cancel(json!({}))).await;
    let foreign =
        |part: &str| format!("/v1/namespaces/other{}{part}", path.strip_prefix("/v1").unwrap());
    site.get(&foreign("")).await.problem(404, "bulk_not_found");
    for part in ["/pause", "/resume", "/abort"] {
        site.post(&foreign(part), json!({})).await.problem(404, "bulk_not_found");
    }
    assert_eq!(site.get("/v1/namespaces/other/bulk").await.expect(200)["items"], json!([]));
    let theirs = json!({ "action": "cancel", "ids": ids, "dry_run": true });
    let theirs = site.post("/v1/namespaces/other/bulk", theirs).await.expect(200);
    assert_eq!(theirs["matched"], 0, "executions of another namespace are not found");
}
