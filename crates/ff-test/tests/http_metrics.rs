//! Metrics, on every store.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::time::Duration;

use ff_engine::{Engine, EngineOptions, Intervals, Shutdown};
use ff_server::ServerOptions;
use ff_test::http::{Site, Task};
use ff_test::on_every_store;
use ff_test::world::PATIENCE;
use serde_json::{Value, json};

on_every_store! {
    the_trace_of_a_submit_reaches_the_worker
    what_was_done_is_counted
    lanes_are_measured
    lanes_of_namespaces_that_others_have_changed_are_measured
    what_becomes_of_siblings_is_counted
    cancels_that_are_under_way_are_measured
    everything_that_is_described_is_shown
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

async fn lanes_of_namespaces_that_others_have_changed_are_measured(site: &Site) {
    for n in 0..70 {
        site.submit(json!({ "namespace": format!("n{n:02}"), "lane": format!("l{n:02}") })).await;
    }
    let other = site.beside(ServerOptions::default()).await;
    let first = text(&other).await;
    assert_eq!(value(&first, r#"ff_lane_depth{lane="l00",state="waiting"}"#), 1.0);
    assert_eq!(
        value(&first, r#"ff_lane_depth{lane="l69",state="waiting"}"#),
        0.0,
        "one look is small"
    );
    let second = text(&other).await;
    for n in 0..70 {
        let line = format!(r#"ff_lane_depth{{lane="l{n:02}",state="waiting"}}"#);
        assert_eq!(value(&second, &line), 1.0, "{line}: with the next one all were looked at");
    }
    other.stop().await;
}

/// A flow whose member `join` waits for one of `a`, `b` and `c`, which all run.
async fn race(site: &Site) -> Vec<Task> {
    let member = |name: &str| json!({ "name": name, "lane": "l", "kind": "k" });
    let edge = |from: &str| json!({ "from": from, "to": "join" });
    let graph = json!({
        "kind": "race",
        "members": [member("a"), member("b"), member("c"), member("join")],
        "edges": [edge("a"), edge("b"), edge("c")],
        "groups": [{ "member": "join", "policy": "any_of" }],
    });
    site.post("/v1/flows", graph).await.expect(201);
    site.register().await;
    vec![site.claim().await, site.claim().await, site.claim().await]
}

async fn done(site: &Site, task: &Task) {
    site.act(&task.id, "complete", json!({ "handle": task.handle })).await.expect(200);
}

async fn what_becomes_of_siblings_is_counted(site: &Site) {
    let tasks = race(site).await;
    done(site, &tasks[0]).await;
    site.advance(1).await;
    done(site, &tasks[1]).await;
    site.pass(1).await;
    let text = text(site).await;
    for (line, count) in [
        (r#"ff_edge_group_policy_total{policy="any_of"}"#, 1.0),
        (r#"ff_sibling_cancel_dispatched_total{reason="satisfied"}"#, 2.0),
        (r#"ff_sibling_cancel_disposition_total{disposition="cancelled"}"#, 1.0),
        (r#"ff_sibling_cancel_disposition_total{disposition="already_terminal"}"#, 1.0),
        (r#"ff_sibling_cancel_disposition_total{disposition="not_found"}"#, 0.0),
    ] {
        assert_eq!(value(&text, line), count, "{line} of:\n{text}");
    }
    assert!(text.contains("disposition=\"not_found\""), "what was not met is shown as 0");
}

async fn cancels_that_are_under_way_are_measured(site: &Site) {
    let member = |n: usize| json!({ "name": format!("m{n}"), "lane": "l", "kind": "k" });
    let members: Vec<Value> = (0..200).map(member).collect();
    let flow = site.post("/v1/flows", json!({ "kind": "f", "members": members })).await.expect(201);
    assert_eq!(value(&text(site).await, "ff_cancel_backlog_depth"), 0.0);
    let path = format!("/v1/flows/{}/cancel", flow["flow_id"].as_str().unwrap());
    let reply = site.post(&path, json!({ "reason": "r" })).await.expect(200);
    assert_eq!(reply["status"], "cancellation_scheduled");
    let left = reply["member_count"].as_u64().unwrap();
    assert_eq!((left, value(&text(site).await, "ff_cancel_backlog_depth")), (136, 136.0));
    site.pass(1).await;
    assert_eq!(value(&text(site).await, "ff_cancel_backlog_depth"), 0.0);
}

/// A little of all that is measured; the engine is to do its part.
async fn a_bit_of_everything(site: &Site) {
    what_becomes_of_siblings_is_counted(site).await;
    let task = site.claim().await;
    site.act(&task.id, "renew", json!({ "handle": task.handle })).await.expect(200);
    site.pass(120_000).await;
    site.register().await;
    let grant = json!({ "lane": "l", "worker_instance_id": "w-1", "grant_ttl_ms": 5000 });
    let grant = site.post("/v1/workers/w/claim", grant).await.expect(200);
    assert_eq!(grant["execution_id"], task.id, "its lease was lost");
    let claim = json!({ "worker_id": "w", "worker_instance_id": "w-1" });
    site.act(&task.id, "claim", claim.clone()).await.expect(200);
    let budget =
        json!({ "scope_type": "custom", "scope_id": "c", "dimensions": { "t": { "hard": 1 } } });
    let budget = site.post("/v1/budgets", budget).await.expect(201);
    let usage = format!("/v1/budgets/{}/usage", budget["budget_id"].as_str().unwrap());
    site.post(&usage, json!({ "dimensions": { "t": 2 } })).await.expect(200);
    let quota = json!({ "window_seconds": 60, "max_requests_per_window": 1 });
    let quota = site.post("/v1/quotas", quota).await.expect(201)["quota_policy_id"].clone();
    for _ in 0..2 {
        site.submit(json!({ "quota_policy_id": quota })).await;
        site.post("/v1/leases", claim.clone()).await.expect(200);
    }
}

/// Name, type and labels of every row of the reference.
fn described() -> Vec<(String, String, Vec<String>)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
    let page = std::fs::read_to_string(path).unwrap();
    let bare = |text: &str| text.trim().trim_matches('`').to_owned();
    let rows = page.lines().filter(|line| line.starts_with("| `ff_"));
    let rows = rows.map(|row| {
        let cells: Vec<&str> = row.split('|').collect();
        let labels = cells[3].split(',').map(bare).filter(|label| !label.is_empty());
        (bare(cells[1]), bare(cells[2]), labels.collect())
    });
    rows.collect()
}

/// Rows of the reference that a text does not show as they say.
fn missing(text: &str) -> Vec<String> {
    // Of workers, and what nothing has gone wrong for.
    let without = [
        "ff_handler_duration_seconds",
        "ff_invariant_violations_total",
        "ff_worker_at_capacity_total",
    ];
    let is_shown = |(name, kind, labels): &(String, String, Vec<String>)| {
        let (family, sample) = match kind.as_str() {
            "counter" => (name.strip_suffix("_total").unwrap(), name.clone()),
            "histogram" => (name.as_str(), format!("{name}_count")),
            _ => (name.as_str(), name.clone()),
        };
        let typed = text.lines().any(|line| line == format!("# TYPE {family} {kind}"));
        let samples = text.lines().filter_map(|line| line.strip_prefix(sample.as_str()));
        let mut samples = samples.filter(|rest| rest.starts_with(['{', ' ']));
        let fits = |rest: &str| {
            let within = rest.strip_prefix('{').and_then(|rest| rest.rsplit_once('}'));
            let found = within.map_or("", |(within, _)| within).matches("=\"").count();
            let has = |label: &String| rest.contains(&format!("{label}=\""));
            found == labels.len() && labels.iter().all(has)
        };
        let is_whole = kind != "histogram" || {
            let bucket = format!("{name}_bucket{{");
            text.lines().any(|line| line.starts_with(&bucket) && line.contains(r#"le="+Inf""#))
        };
        without.contains(&name.as_str()) || (typed && is_whole && samples.any(fits))
    };
    described().into_iter().filter(|row| !is_shown(row)).map(|row| format!("{row:?}")).collect()
}

async fn everything_that_is_described_is_shown(site: &Site) {
    a_bit_of_everything(site).await;
    let intervals = Intervals::all(Duration::from_millis(100));
    let options = EngineOptions { intervals, ..EngineOptions::default() };
    let engine = Engine::new(site.backend.clone(), options);
    site.metrics.watch(engine.report());
    let (stop, shutdown) = Shutdown::channel();
    let engine = tokio::spawn(engine.run(shutdown));
    let no_op = r#"ff_sibling_cancel_reconcile_total{action="no_op"}"#;
    let looked = async {
        while value(&text(site).await, no_op) == 0.0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, looked).await.expect("the reconciler looks at flows");
    let text = text(site).await;
    let missing = missing(&text);
    assert!(missing.is_empty(), "{missing:#?} in:\n{text}");
    stop.send_replace(true);
    engine.await.unwrap();
}
