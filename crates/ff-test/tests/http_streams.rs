//! Output and events over HTTP: read, waited for and followed.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use ff_core::id::ExecutionId;
use ff_core::operation::Trim;
use ff_test::http::{Site, Task, base64_of, bytes_of};
use serde_json::{Value, json};
use uuid::Uuid;

ff_test::on_every_store! {
    frames_are_appended_and_read
    what_is_wrong_with_frames_is_told
    a_tail_waits_for_frames
    summaries_are_merged
    a_stream_is_followed_to_its_end
    a_follower_resumes_where_it_was
    all_attempts_are_followed
    events_are_read_and_waited_for
    events_are_followed
    the_events_of_an_execution_are_listed_and_followed
    events_that_are_all_gone_are_one_gap
}

async fn append(site: &Site, task: &Task, frames: Value) -> Value {
    site.act(&task.id, "frames", task.with(json!({ "frames": frames }))).await.expect(200)
}

fn frame(text: &str) -> Value {
    json!({ "type": "stdout", "payload_b64": base64_of(text), "content_type": "text/plain" })
}

async fn frames_are_appended_and_read(site: &Site) {
    let task = site.start(json!({})).await;
    let json = json!({ "type": "event", "payload_json": { "n": 1 }, "correlation_id": "c", "mode": "best_effort" });
    let appended = append(site, &task, json!([frame("one"), json])).await;
    assert_eq!(appended["frames"][1]["count"], 2);
    let raw =
        format!("/v1/executions/{}/frames?raw=true&type=blob&handle={}", task.id, task.handle);
    let raw = site.request("POST", &raw).header("content-type", "image/png").body(vec![0, 255]);
    site.send(raw).await.expect(200);
    let stream = site.read(&task.id, "/attempts/0/stream").await.expect(200);
    assert_eq!(stream["count"], 3);
    let frames = stream["frames"].as_array().unwrap();
    let types: Vec<_> = frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["stdout", "event", "blob"]);
    assert_eq!(
        (bytes_of(&frames[0]["payload_b64"]), &frames[0]["mode"]),
        (b"one".to_vec(), &json!("durable"))
    );
    assert_eq!(
        (&frames[1]["correlation_id"], &frames[1]["mode"]),
        (&json!("c"), &json!("best_effort"))
    );
    assert_eq!(
        (bytes_of(&frames[2]["payload_b64"]), &frames[2]["content_type"]),
        (vec![0, 255], &json!("image/png"))
    );
    let id = frames[1]["id"].as_str().unwrap();
    let part = site.read(&task.id, &format!("/attempts/0/stream?from={id}&to=end&limit=1")).await;
    assert_eq!(part.expect(200)["frames"], json!([frames[1]]));
    site.act(&task.id, "complete", task.with(json!({}))).await.expect(200);
    let closed = site.read(&task.id, "/attempts/0/stream").await.expect(200);
    assert_eq!(
        (&closed["closed_reason"], &closed["closed_at"]),
        (&json!("attempt_success"), &json!("2027-01-15T08:00:00.000Z"))
    );
    let late = site.act(&task.id, "frames", task.with(json!({ "frames": [frame("x")] }))).await;
    late.problem(409, "stream_closed");
}

async fn what_is_wrong_with_frames_is_told(site: &Site) {
    let task = site.start(json!({})).await;
    let frames =
        |frames: Value| site.act(&task.id, "frames", task.with(json!({ "frames": frames })));
    frames(json!([{ "type": "end" }])).await.problem(400, "invalid_frame_type");
    frames(json!([])).await.invalid("/frames");
    frames(json!([{ "type": "x", "mode": "odd" }])).await.invalid("/frames/0/mode");
    frames(json!([{ "payload_b64": "" }])).await.invalid("/frames/0/type");
    let large = base64_of(vec![0; 65_537]);
    frames(json!([{ "type": "x", "payload_b64": large }]))
        .await
        .problem(413, "retention_limit_exceeded");
    let mut stale = task.clone();
    stale.handle = String::new();
    let stale = json!({
        "frames": [frame("x")], "lease_id": task.json["lease_id"], "lease_epoch": 7,
        "attempt_id": task.json["attempt_id"],
    });
    site.act(&task.id, "frames", stale).await.problem(409, "stale_owner_cannot_append");
    site.read(&task.id, "/attempts/0/stream?limit=1001").await.invalid("limit");
    let cursor = site.read(&task.id, "/attempts/0/stream?from=odd").await;
    cursor.problem(400, "invalid_cursor");
    site.read(&task.id, "/attempts/9/stream").await.problem(404, "attempt_not_found");
    site.read(&task.id, "/attempts/0/stream/tail?after=start").await.problem(400, "invalid_cursor");
    site.read(&task.id, "/attempts/0/stream/tail?block_ms=30001").await.invalid("block_ms");
    site.read(&task.id, "/attempts/0/stream/tail?visibility=odd").await.invalid("visibility");
}

async fn a_tail_waits_for_frames(site: &Site) {
    let task = site.start(json!({})).await;
    let tail = format!("/v1/executions/{}/attempts/0/stream/tail?block_ms=20000", task.id);
    let (tailed, appended) =
        tokio::join!(site.get(&tail), append(site, &task, json!([frame("a")])));
    let tailed = tailed.expect(200);
    assert_eq!(tailed["frames"][0]["id"], appended["frames"][0]["id"]);
    let after = tailed["frames"][0]["id"].as_str().unwrap();
    let brief =
        site.read(&task.id, &format!("/attempts/0/stream/tail?after={after}&block_ms=20")).await;
    assert_eq!(brief.expect(200)["frames"], json!([]));
    append(site, &task, json!([{ "type": "x", "mode": "best_effort" }, frame("b")])).await;
    let without = format!("/attempts/0/stream/tail?after={after}&visibility=exclude_best_effort");
    let seen = site.read(&task.id, &without).await.expect(200);
    assert_eq!(seen["frames"].as_array().unwrap().len(), 1);
}

async fn summaries_are_merged(site: &Site) {
    let task = site.start(json!({})).await;
    let summary = site.read(&task.id, "/attempts/0/summary").await.expect(200);
    assert_eq!(summary, json!({ "document": {}, "version": 0 }));
    let patch =
        |value: Value| json!([{ "type": "p", "payload_json": value, "mode": "durable_summary" }]);
    append(site, &task, patch(json!({ "a": 1, "b": 2 }))).await;
    let reply = append(site, &task, patch(json!({ "b": null }))).await;
    assert_eq!(reply["frames"][0]["summary_version"], 2);
    let summary = site.read(&task.id, "/attempts/0/summary").await.expect(200);
    assert_eq!(summary, json!({ "document": { "a": 1 }, "version": 2 }));
}

async fn a_stream_is_followed_to_its_end(site: &Site) {
    let task = site.start(json!({})).await;
    append(site, &task, json!([frame("early")])).await;
    let path = format!("/v1/executions/{}/attempts/0/stream", task.id);
    let following = site.follow(site.request("GET", &path), |_| false);
    let working = async {
        append(site, &task, json!([frame("late")])).await;
        site.act(&task.id, "complete", task.with(json!({}))).await.expect(200);
    };
    let (events, ()) = tokio::join!(following, working);
    let names: Vec<_> = events.iter().map(|event| event.event.as_str()).collect();
    assert_eq!(names, ["stdout", "stdout", "end"]);
    assert_eq!(events[0].id.as_deref(), events[0].data["id"].as_str());
    assert_eq!(bytes_of(&events[1].data["payload_b64"]), b"late");
    assert_eq!(events[2].data["outcome"], "success");
    let missing = format!("/v1/executions/{}/attempts/5/stream", task.id);
    let missing = site.request("GET", &missing).header("accept", "text/event-stream");
    site.send(missing).await.problem(404, "attempt_not_found");
}

async fn a_follower_resumes_where_it_was(site: &Site) {
    let task = site.start(json!({})).await;
    append(site, &task, json!([frame("1"), frame("2"), frame("3")])).await;
    let path = format!("/v1/executions/{}/attempts/0/stream", task.id);
    let first = site.follow(site.request("GET", &path), |seen| !seen.is_empty()).await;
    site.act(&task.id, "complete", task.with(json!({}))).await.expect(200);
    let seen = first[0].id.clone().unwrap();
    let rest = site.request("GET", &path).header("last-event-id", &seen);
    let rest = site.follow(rest, |_| false).await;
    let after = site.request("GET", &format!("{path}?after={seen}"));
    assert_eq!(site.follow(after, |_| false).await, rest);
    let bodies = rest.iter().filter(|event| event.event == "stdout");
    let bodies: Vec<_> = bodies.map(|event| bytes_of(&event.data["payload_b64"])).collect();
    assert_eq!(bodies, [b"2", b"3"]);
}

async fn all_attempts_are_followed(site: &Site) {
    let id = site.submit(json!({})).await;
    let path = format!("/v1/executions/{id}/stream");
    let following = site.follow(site.request("GET", &path), |_| false);
    let working = async {
        site.register().await;
        let task = site.claim().await;
        append(site, &task, json!([frame("a")])).await;
        site.act(&id, "revoke-lease", json!({})).await.expect(200);
        let task = site.claim().await;
        append(site, &task, json!([frame("b")])).await;
        site.act(&id, "complete", task.with(json!({}))).await.expect(200);
    };
    let (events, ()) = tokio::join!(following, working);
    let names: Vec<_> = events.iter().map(|event| event.event.as_str()).collect();
    assert_eq!(names, ["stdout", "stdout", "end"]);
    let ids: Vec<_> = events[..2].iter().map(|event| event.id.clone().unwrap()).collect();
    assert!(ids[0].starts_with("0:") && ids[1].starts_with("1:"), "{ids:?}");
    assert_eq!(events[2].data["outcome"], "success");
    let rest = site.request("GET", &path).header("last-event-id", &ids[0]);
    let rest = site.follow(rest, |_| false).await;
    assert_eq!(rest.iter().filter(|event| event.event == "stdout").count(), 1);
    site.get(&format!("{path}?after=odd")).await.problem(400, "invalid_cursor");
}

async fn events_are_read_and_waited_for(site: &Site) {
    let now = site.get("/v1/events").await.expect(200);
    assert_eq!(now["items"], json!([]));
    let cursor = now["next_cursor"].as_str().unwrap();
    let path = format!("/v1/events?after={cursor}&wait_ms=20000");
    let (waited, id) = tokio::join!(site.get(&path), site.submit(json!({ "tags": { "a": "b" } })));
    let waited = waited.expect(200);
    let event = &waited["items"][0];
    assert_eq!((&event["type"], &event["subject"]), (&json!("execution.submitted"), &json!(id)));
    assert_eq!((&event["seq"], &event["tags"]), (&json!(1), &json!({ "a": "b" })));
    assert_eq!((&event["lane"], &event["kind"]), (&json!("l"), &json!("k")));
    assert!(waited["next_cursor"].is_string());
    site.act(&id, "cancel", json!({})).await.expect(200);
    for (filter, count) in [
        ("types=execution.cancelled", 1),
        ("types=execution.cancelled,execution.submitted", 2),
        ("lane=other", 0),
        ("kind=k&tag=a:b", 2),
        ("outcome=cancelled", 1),
        ("limit=1", 1),
    ] {
        let found = site.get(&format!("/v1/events?after=start&{filter}")).await.expect(200);
        assert_eq!(found["items"].as_array().unwrap().len(), count, "{filter}");
    }
    site.get("/v1/events?types=odd").await.invalid("types");
    site.get("/v1/events?outcome=odd").await.invalid("outcome");
    let bound = site.get(&format!("/v1/events?after={cursor}&lane=l")).await;
    bound.problem(400, "invalid_cursor");
}

/// The order across executions is not promised: each is awaited before the next is submitted.
async fn events_are_followed(site: &Site) {
    let path = "/v1/events?after=start&types=execution.submitted";
    let one = |after: Option<String>| {
        let request = site.request("GET", path);
        let request = match after {
            None => request,
            Some(cursor) => request.header("last-event-id", cursor),
        };
        site.follow(request, |seen| !seen.is_empty())
    };
    let first = site.submit(json!({})).await;
    let seen = one(None).await;
    assert_eq!(
        (&seen[0].data["subject"], seen[0].event.as_str()),
        (&json!(first), "execution.submitted")
    );
    let after_first = seen[0].id.clone();
    let (seen, second) = tokio::join!(one(after_first.clone()), site.submit(json!({})));
    assert_eq!(seen[0].data["subject"], second, "pushed while it is waited for");
    let again = one(after_first).await;
    assert_eq!(again[0].data["subject"], second, "every event has its place");
    let third = site.submit(json!({})).await;
    let rest = one(seen[0].id.clone()).await;
    assert_eq!(rest[0].data["subject"], third);
}

async fn the_events_of_an_execution_are_listed_and_followed(site: &Site) {
    let task = site.start(json!({})).await;
    site.submit(json!({})).await;
    let page = site.read(&task.id, "/events?limit=1").await.expect(200);
    assert_eq!(page["items"][0]["type"], "execution.submitted");
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = site.read(&task.id, &format!("/events?cursor={cursor}")).await.expect(200);
    assert_eq!(rest["items"][0]["type"], "execution.claimed");
    assert_eq!(rest["next_cursor"], Value::Null);
    let path = format!("/v1/executions/{}/events", task.id);
    let following = site.follow(site.request("GET", &path), |seen| seen.len() == 3);
    let completing = site.act(&task.id, "complete", task.with(json!({})));
    let (seen, done) = tokio::join!(following, completing);
    done.expect(200);
    let types: Vec<_> = seen.iter().map(|event| event.event.as_str()).collect();
    assert_eq!(types, ["execution.submitted", "execution.claimed", "execution.completed"]);
    let last = site.request("GET", &path).header("last-event-id", seen[1].id.clone().unwrap());
    let last = site.follow(last, |seen| !seen.is_empty()).await;
    assert_eq!(last[0].event, "execution.completed");
}

async fn events_that_are_all_gone_are_one_gap(site: &Site) {
    let id = site.submit(json!({})).await;
    site.advance(10).await;
    // In the same partition: a store may keep the newest event of a log.
    let partition = id.parse::<ExecutionId>().unwrap().partition();
    let beside = ExecutionId::new(partition, Uuid::now_v7()).to_string();
    site.submit(json!({ "execution_id": beside })).await;
    let events_before = site.backend.server_time_ms().await.unwrap();
    let trim = Trim { events_before, event_bytes: u64::MAX, most: 1_000 };
    site.backend.trim(trim).await.unwrap();
    let page = site.read(&id, "/events").await.expect(200);
    assert_eq!((&page["items"], &page["gap"]), (&json!([]), &json!(true)));
    let request = site.request("GET", &format!("/v1/executions/{id}/events"));
    let following = site.follow(request, |seen| seen.iter().any(|event| event.event != "gap"));
    let cancelling = async {
        // The follower has had time to look by then.
        for _ in 0..20 {
            site.read(&id, "/state").await.expect(200);
        }
        site.act(&id, "cancel", json!({})).await.expect(200);
    };
    let (seen, ()) = tokio::join!(following, cancelling);
    let types: Vec<_> = seen.iter().map(|event| event.event.as_str()).collect();
    assert_eq!(types, ["gap", "execution.cancelled"]);
}
