//! Metrics, on every store.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use ff_test::http::Site;
use ff_test::on_every_store;
use serde_json::json;

on_every_store! {
    the_trace_of_a_submit_reaches_the_worker
    what_was_done_is_counted
    lanes_are_measured
    requests_are_counted_by_their_route
}

/// The value of a line that begins so; 0 when there is none.
fn value(text: &str, line: &str) -> f64 {
    let mut values = text.lines().filter_map(|found| found.strip_prefix(line)?.strip_prefix(' '));
    values.next().map_or(0.0, |value| value.parse().unwrap())
}

async fn text(site: &Site) -> String {
    let answer = site.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").starts_with("application/openmetrics-text"));
    let text = String::from_utf8(answer.bytes).unwrap();
    assert!(text.ends_with("# EOF\n"));
    text
}

async fn what_was_done_is_counted(site: &Site) {
    let task = site.start(json!({})).await;
    site.act(&task.id, "renew", json!({ "handle": task.handle })).await.expect(200);
    site.act(&task.id, "complete", json!({ "handle": task.handle })).await.expect(200);
    let stale = site.act(&task.id, "renew", json!({ "handle": task.handle })).await;
    assert_eq!(stale.status, 409);
    let task = site.start(json!({})).await;
    let fail =
        json!({ "handle": task.handle, "reason": "no", "category": "c", "class": "permanent" });
    site.act(&task.id, "fail", fail).await.expect(200);
    let lost = site.start(json!({})).await;
    site.pass(120_000).await;
    let text = text(site).await;
    for (line, count) in [
        (r#"ff_attempt_outcome_total{lane="l",outcome="ok"}"#, 1.0),
        (r#"ff_attempt_outcome_total{lane="l",outcome="error"}"#, 1.0),
        (r#"ff_lease_expired_total{lane="l"}"#, 1.0),
        (r#"ff_lease_renewal_total{outcome="ok"}"#, 1.0),
        (r#"ff_lease_renewal_total{outcome="err"}"#, 1.0),
        (r#"ff_start_latency_seconds_count{lane="l"}"#, 3.0),
        (r#"ff_execution_events_total{type="execution.claimed"}"#, 3.0),
        (r#"ff_store_call_duration_seconds_count{operation="complete_execution"}"#, 1.0),
        (r#"ff_store_batch_size_count{operation="complete_execution"}"#, 1.0),
        (r#"ff_claim_duration_seconds_count{lane="l"}"#, 3.0),
    ] {
        assert_eq!(value(&text, line), count, "{line} of {}", lost.id);
    }
}

async fn the_trace_of_a_submit_reaches_the_worker(site: &Site) {
    site.register().await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let body = json!({ "lane": "l", "kind": "k" }).to_string();
    let submit = site.request("POST", "/v1/executions").header("traceparent", parent).body(body);
    site.send(submit).await.expect(201);
    assert_eq!(site.claim().await.json["trace_context"], parent);
    let own = site.start(json!({ "trace_context": "mine" })).await;
    assert_eq!(own.json["trace_context"], "mine", "what the submit says itself counts");
}

async fn lanes_are_measured(site: &Site) {
    site.start(json!({})).await;
    site.submit(json!({})).await;
    site.submit(json!({ "delay_until": "2999-01-01T00:00:00.000Z" })).await;
    site.submit(json!({ "namespace": "other", "lane": "m" })).await;
    site.pass(2_000).await;
    let text = text(site).await;
    for (line, count) in [
        (r#"ff_lane_depth{lane="l",state="waiting"}"#, 1.0),
        (r#"ff_lane_depth{lane="l",state="delayed"}"#, 1.0),
        (r#"ff_lane_depth{lane="l",state="active"}"#, 1.0),
        (r#"ff_lane_depth{lane="m",state="waiting"}"#, 1.0),
    ] {
        assert_eq!(value(&text, line), count, "{line}");
    }
    let oldest = value(&text, r#"ff_lane_oldest_age_seconds{lane="l"}"#);
    assert!((2.0..60.0).contains(&oldest), "{oldest}");
}

async fn requests_are_counted_by_their_route(site: &Site) {
    let id = site.submit(json!({})).await;
    site.read(&id, "").await.expect(200);
    site.read(&id, "").await.expect(200);
    site.get("/v1/executions/odd").await.problem(400, "invalid_input");
    site.send(site.request("PUT", "/v1/executions")).await.problem(405, "method_not_allowed");
    let text = text(site).await;
    let path = "/v1/executions/{execution_id}";
    for (line, count) in [
        (format!(r#"ff_http_requests_total{{method="GET",path="{path}",status="200"}}"#), 2.0),
        (format!(r#"ff_http_requests_total{{method="GET",path="{path}",status="400"}}"#), 1.0),
        (format!(r#"ff_http_request_duration_seconds_count{{method="GET",path="{path}"}}"#), 3.0),
        (
            r#"ff_http_requests_total{method="other",path="/v1/executions",status="405"}"#.into(),
            1.0,
        ),
    ] {
        assert_eq!(value(&text, &line), count, "{line}");
    }
}
