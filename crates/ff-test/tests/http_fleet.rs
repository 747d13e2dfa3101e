//! Lanes and namespaces over HTTP.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use ff_test::http::{Answer, Site};
use serde_json::{Value, json};

ff_test::on_every_store! {
    a_lane_is_there_as_soon_as_it_is_named
    a_lane_is_paused_drained_and_resumed
    a_lane_changes_on_condition
    of_many_changes_on_one_condition_one_is_made
    lanes_are_listed_by_name
    workers_and_waitpoints_are_counted
    a_namespace_is_read_and_changed
    a_namespace_has_its_own_lanes
}

async fn patch(site: &Site, path: &str, expected: Option<&str>, body: Value) -> Answer {
    let mut request = site.request("PATCH", path).body(body.to_string());
    if let Some(expected) = expected {
        request = request.header("if-match", expected);
    }
    site.send(request).await
}

async fn tasks(site: &Site) -> usize {
    let claim = json!({ "worker_id": "w", "worker_instance_id": "w-1" });
    let reply = site.post("/v1/leases", claim).await.expect(200);
    reply["tasks"].as_array().unwrap().len()
}

async fn a_lane_is_there_as_soon_as_it_is_named(site: &Site) {
    let answer = site.get("/v1/lanes/l").await;
    assert_eq!(answer.header("etag"), "\"0\"");
    let quiet = answer.expect(200);
    for (field, value) in [
        ("lane", json!("l")),
        ("state", json!("active")),
        ("depth", json!({})),
        ("oldest_age_ms", Value::Null),
        ("running", json!(0)),
        ("live_workers", json!(0)),
        ("revision", json!(0)),
        ("priority_ageing_ms", json!(0)),
    ] {
        assert_eq!(quiet[field], value, "{field}");
    }
    for _ in 0..2 {
        site.submit(json!({})).await;
    }
    site.register().await;
    site.claim().await;
    site.pass(1500).await;
    let lane = site.get("/v1/lanes/l").await.expect(200);
    assert_eq!(lane["depth"], json!({ "active": 1, "waiting": 1 }));
    assert_eq!((&lane["running"], &lane["live_workers"]), (&json!(1), &json!(1)));
    assert_eq!(lane["oldest_age_ms"], 1500);
    let odd = site.get("/v1/lanes/%C3%A9").await;
    odd.invalid("lane");
}

async fn a_lane_is_paused_drained_and_resumed(site: &Site) {
    let id = site.submit(json!({})).await;
    site.register().await;
    let paused = site.post("/v1/lanes/l/pause", json!({ "reason": "deploy" })).await;
    assert_eq!(paused.header("etag"), "\"1\"");
    let paused = paused.expect(200);
    assert_eq!((&paused["state"], &paused["reason"]), (&json!("paused"), &json!("deploy")));
    let listed = site.get("/v1/lanes").await.expect(200);
    assert_eq!(listed["items"][0]["reason"], "deploy");
    let told = site.read(&id, "/explain").await.expect(200);
    assert_eq!(told["evidence"]["lane_reason"], "deploy");
    assert_eq!(tasks(site).await, 0);
    let state = site.read(&id, "/state").await.expect(200)["state_vector"].clone();
    assert_eq!(state["eligibility_state"], "blocked_by_lane_state");
    let told = site.get("/v1/events?types=lane.changed&after=start").await.expect(200);
    assert_eq!(told["items"][0]["data"]["reason"], "deploy");
    let again = site.post("/v1/lanes/l/pause", json!({})).await.expect(200);
    assert_eq!(
        (&again["revision"], &again["reason"]),
        (&json!(1), &json!("deploy")),
        "it is so already"
    );
    let drained = site.post("/v1/lanes/l/drain", json!({})).await.expect(200);
    assert_eq!(drained["state"], "draining");
    assert_eq!(drained.get("reason"), None, "none was given with this");
    let late = json!({ "lane": "l", "kind": "k" });
    site.post("/v1/executions", late.clone()).await.problem(409, "lane_not_accepting");
    assert_eq!(tasks(site).await, 1, "what is there is claimed");
    let resumed = site.post("/v1/lanes/l/resume", json!({})).await.expect(200);
    assert_eq!(resumed["state"], "active");
    site.post("/v1/executions", late).await.expect(201);
    site.post("/v1/lanes/l/pause", json!({ "x": 1 })).await.invalid("/x");
    let long = json!({ "reason": "r".repeat(4097) });
    site.post("/v1/lanes/l/pause", long).await.invalid("/reason");
}

async fn a_lane_changes_on_condition(site: &Site) {
    let change = json!({ "state": "disabled", "priority_ageing_ms": 60_000 });
    let changed = patch(site, "/v1/lanes/l", Some("\"0\""), change.clone()).await;
    assert_eq!(changed.header("etag"), "\"1\"");
    let changed = changed.expect(200);
    assert_eq!(
        (&changed["state"], &changed["priority_ageing_ms"]),
        (&json!("disabled"), &json!(60_000))
    );
    patch(site, "/v1/lanes/l", Some("\"0\""), change).await.problem(412, "precondition_failed");
    let quota = site.post("/v1/quotas", json!({ "max_concurrent": 1 })).await.expect(201);
    let attach = json!({ "quota_policy_id": quota["quota_policy_id"] });
    let attached = patch(site, "/v1/lanes/l", Some("1"), attach).await.expect(200);
    assert_eq!(attached["quota_policy_id"], quota["quota_policy_id"]);
    assert_eq!(attached["state"], "disabled", "what is absent stays");
    let detached = patch(site, "/v1/lanes/l", None, json!({ "quota_policy_id": null })).await;
    assert_eq!(detached.expect(200)["quota_policy_id"], Value::Null);
    let unknown = json!({ "budget_ids": [uuid::Uuid::now_v7()] });
    patch(site, "/v1/lanes/l", None, unknown).await.problem(404, "budget_not_found");
    patch(site, "/v1/lanes/l", None, json!({ "state": "odd" })).await.invalid("/state");
    patch(site, "/v1/lanes/l", None, json!({ "colour": 1 })).await.invalid("/colour");
    patch(site, "/v1/lanes/l", None, json!({ "lane": "other" })).await.invalid("/lane");
}

async fn of_many_changes_on_one_condition_one_is_made(site: &Site) {
    let id = site.submit(json!({})).await;
    let seen = site.read(&id, "").await.header("etag").to_owned();
    let tags = format!("/v1/executions/{id}/tags");
    for (path, expected) in [("/v1/lanes/l", "\"0\""), (tags.as_str(), seen.as_str())] {
        let change = |n: u64| match path == tags {
            true => json!({ "tags": { "a.b": n.to_string() } }),
            false => json!({ "priority_ageing_ms": 1000 + n }),
        };
        let all = |n| patch(site, path, Some(expected), change(n));
        let (a, b, c, d) = tokio::join!(all(0), all(1), all(2), all(3));
        let answers = [a, b, c, d];
        let made = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!(made, 1, "{path}");
        for answer in answers.iter().filter(|answer| answer.status != 200) {
            answer.problem(412, "precondition_failed");
        }
    }
}

async fn workers_and_waitpoints_are_counted(site: &Site) {
    let task = site.start(json!({})).await;
    let counted = site.get("/v1/workers?count=estimate").await.expect(200);
    assert_eq!(counted["count"], 1);
    for key in ["a", "b"] {
        let waitpoint = task.with(json!({ "key": key }));
        site.act(&task.id, "waitpoints", waitpoint).await.expect(201);
    }
    let counted = site.get("/v1/waitpoints?limit=1&count=estimate").await.expect(200);
    assert_eq!((&counted["count"], counted["items"].as_array().unwrap().len()), (&json!(2), 1));
    site.get("/v1/workers?count=all").await.invalid("count");
}

async fn lanes_are_listed_by_name(site: &Site) {
    for lane in ["c", "a", "b/d"] {
        site.submit(json!({ "lane": lane })).await;
    }
    let page = site.get("/v1/lanes?limit=2&count=estimate").await;
    let link = page.header("link").to_owned();
    let page = page.expect(200);
    assert_eq!(
        (&page["items"][0]["lane"], &page["items"][1]["lane"]),
        (&json!("a"), &json!("b/d"))
    );
    assert_eq!(page["count"], 3);
    assert_eq!(page["items"][0]["depth"], json!({ "waiting": 1 }));
    let next = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap();
    assert_eq!(site.get(next).await.expect(200)["items"][0]["lane"], "c");
    assert_eq!(site.get("/v1/lanes/b%2Fd").await.expect(200)["depth"], json!({ "waiting": 1 }));
    site.get("/v1/lanes?x=1").await.invalid("x");
}

async fn a_namespace_is_read_and_changed(site: &Site) {
    let path = "/v1/namespaces/team-a";
    let answer = site.get(path).await;
    assert_eq!(answer.header("etag"), "\"0\"");
    let row = answer.expect(200);
    assert_eq!((&row["namespace"], &row["budget_ids"]), (&json!("team-a"), &json!([])));
    assert_eq!(row["retention"]["success_ms"], Value::Null);
    let scope = json!({ "scope_type": "custom", "scope_id": "x", "namespace": "team-a" });
    let budget = site.post("/v1/budgets", scope).await.expect(201);
    let change = json!({
        "budget_ids": [budget["budget_id"]], "retention": { "success_ms": 1000 },
    });
    let changed = patch(site, path, Some("\"0\""), change.clone()).await;
    assert_eq!(changed.header("etag"), "\"1\"");
    let changed = changed.expect(200);
    assert_eq!(changed["budget_ids"], json!([budget["budget_id"]]));
    assert_eq!(changed["retention"]["success_ms"], 1000);
    patch(site, path, Some("\"0\""), change.clone()).await.problem(412, "precondition_failed");
    assert_eq!(site.get(path).await.expect(200), changed);
    let kept = patch(site, path, None, json!({ "quota_policy_id": null })).await.expect(200);
    assert_eq!(kept["retention"]["success_ms"], 1000, "what is absent stays");
    // A budget of one namespace is not there in another.
    patch(site, "/v1/namespaces/team-b", None, change).await.problem(404, "budget_not_found");
    patch(site, path, None, json!({ "x": 1 })).await.invalid("/x");
    let odd = json!({ "retention": { "x": 1 } });
    patch(site, path, None, odd).await.invalid("/retention/x");
    patch(site, path, None, json!({ "namespace": "other" })).await.invalid("/namespace");
    let request = site.request("GET", path).header("ff-namespace", "other");
    site.send(request).await.problem(400, "invalid_input");
    site.get("/v1/namespaces/Team").await.problem(400, "invalid_input");
    site.with_body("DELETE", path, json!({})).await.problem(405, "method_not_allowed");
}

async fn a_namespace_has_its_own_lanes(site: &Site) {
    site.submit(json!({})).await;
    let theirs = site.get("/v1/namespaces/other/lanes").await.expect(200);
    assert_eq!(theirs["items"], json!([]));
    site.post("/v1/namespaces/other/lanes/l/pause", json!({})).await.expect(200);
    assert_eq!(site.get("/v1/lanes/l").await.expect(200)["state"], "active");
    assert_eq!(site.get("/v1/namespaces/other/lanes/l").await.expect(200)["state"], "paused");
}
