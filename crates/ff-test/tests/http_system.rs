//! Secrets, scanners and audits over HTTP.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;

use ff_core::backend::{Backend, Pending};
use ff_core::error::EngineError;
use ff_core::layer::{Layer, Layered};
use ff_core::operation::{Command, Reply};
use ff_core::partition::PartitionConfig;
use ff_core::read::{Answer, Query};
use ff_engine::{Engine, EngineOptions, Shutdown};
use ff_server::ServerOptions;
use ff_test::http::{Site, base64_of};
use ff_test::stages::{InItsTime, SqliteStage};
use ff_test::world::{PATIENCE, Stage as _};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

ff_test::on_every_store! {
    the_waitpoint_secret_is_rotated
    a_bad_rotation_is_refused
    a_store_is_audited
    without_an_engine_there_are_no_scanners
    these_routes_are_of_no_namespace
}

const ROTATE: &str = "/v1/admin/rotate-waitpoint-secret";
const KIDS: &str = "/v1/admin/waitpoint-kids";

fn secret(digit: &str) -> String {
    digit.repeat(64)
}

async fn the_waitpoint_secret_is_rotated(site: &Site) {
    let before = site.get(KIDS).await.expect(200);
    let current = before["current_kid"].clone();
    assert_eq!(before["kids"], json!([{ "kid": current, "accepted_until": null }]));
    let rotate = json!({ "new_kid": "k2", "new_secret_hex": secret("a"), "grace_ms": 60_000 });
    let rotated = site.post(ROTATE, rotate.clone()).await.expect(200);
    assert_eq!(rotated, json!({ "new_kid": "k2", "rotated": true, "failed": [] }));
    let again = site.post(ROTATE, rotate).await.expect(200);
    assert_eq!(again, json!({ "new_kid": "k2", "rotated": false, "failed": [] }));
    let kids = site.get(KIDS).await.expect(200);
    assert_eq!(kids["current_kid"], "k2");
    let retired = kids["kids"].as_array().unwrap().iter().find(|kid| kid["kid"] == current);
    assert_eq!(retired.unwrap()["accepted_until"], "2027-01-15T08:01:00.000Z");
    let text = kids.to_string();
    assert!(!text.contains("aaaa") && !text.contains("secret"), "{text}");
    let other = json!({ "new_kid": "k2", "new_secret_hex": secret("b") });
    site.post(ROTATE, other).await.problem(409, "rotation_conflict");
    // Without a word about it the key before is accepted for a day.
    let third = json!({ "new_kid": "k3", "new_secret_hex": secret("c") });
    site.post(ROTATE, third).await.expect(200);
    let kids = site.get(KIDS).await.expect(200);
    let retired = kids["kids"].as_array().unwrap().iter().find(|kid| kid["kid"] == "k2");
    assert_eq!(retired.unwrap()["accepted_until"], "2027-01-16T08:00:00.000Z");
}

async fn a_bad_rotation_is_refused(site: &Site) {
    let post = |kid: &str, secret: &str, grace: Value| {
        let body = json!({ "new_kid": kid, "new_secret_hex": secret, "grace_ms": grace });
        site.post(ROTATE, body)
    };
    let good = secret("a");
    for (answer, code, pointer) in [
        (post("k 2", &good, json!(1)).await, "invalid_kid", "/new_kid"),
        (post("k2", "abc", json!(1)).await, "invalid_secret_hex", "/new_secret_hex"),
        (post("k2", &good[..62], json!(1)).await, "invalid_secret_hex", "/new_secret_hex"),
        (post("k2", &good, json!(1_u64 << 54)).await, "invalid_grace_ms", "/grace_ms"),
        (post("k2", &good, json!(-1)).await, "invalid_grace_ms", "/grace_ms"),
    ] {
        let problem = answer.problem(400, code);
        assert_eq!(problem["errors"][0]["pointer"], pointer);
        assert!(!problem.to_string().contains(&good[..16]), "a secret is never told");
    }
    site.post(ROTATE, json!({ "new_kid": "k2" })).await.invalid("/new_secret_hex");
    assert_eq!(site.get(KIDS).await.expect(200)["kids"].as_array().unwrap().len(), 1);
}

async fn a_store_is_audited(site: &Site) {
    let none = site.get("/v1/system/invariants").await.expect(200);
    assert_eq!(none, json!({ "last_audit": null, "mended": null }));
    site.submit(json!({ "payload_b64": base64_of("x") })).await;
    for repair in [false, true] {
        let report = site.post("/v1/system/audit", json!({ "repair": repair })).await.expect(200);
        assert!(report["checked"].as_u64().unwrap() >= 1, "{report}");
        assert_eq!((&report["violations"], &report["repaired"]), (&json!([]), &json!(0)));
        assert_eq!(report["audited_at"], "2027-01-15T08:00:00.000Z");
        let backend = site.get("/v1/capabilities").await.expect(200)["backend"].clone();
        assert_eq!(report["store"]["backend"], backend);
        let last = site.get("/v1/system/invariants").await.expect(200);
        assert_eq!(last["last_audit"], report);
    }
    site.post("/v1/system/audit", json!({})).await.expect(200);
    site.post("/v1/system/audit", json!({ "x": 1 })).await.invalid("/x");
}

async fn without_an_engine_there_are_no_scanners(site: &Site) {
    let scanners = site.get("/v1/system/scanners").await.expect(200);
    assert_eq!(scanners, json!({ "engine": false, "items": [], "next_cursor": null }));
}

async fn these_routes_are_of_no_namespace(site: &Site) {
    for path in ["/system/scanners", "/system/invariants", "/admin/waitpoint-kids"] {
        let prefixed = format!("/v1/namespaces/default{path}");
        site.get(&prefixed).await.problem(404, "route_not_found");
        site.get(&format!("/v1{path}")).await.expect(200);
    }
    let audit = json!({ "namespace": "default" });
    site.post("/v1/system/audit", audit).await.invalid("/namespace");
}

/// Holds rotations and audits up until it is told to let them go.
struct Gate {
    inner: Arc<dyn Backend>,
    came: Semaphore,
    go: Semaphore,
}

impl Gate {
    async fn pass(&self) {
        self.came.add_permits(1);
        self.go.acquire().await.unwrap().forget();
    }
}

impl Layer for Gate {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        Box::pin(async move {
            if commands.iter().any(|command| matches!(command, Command::RotateSecret(_))) {
                self.pass().await;
            }
            self.inner.apply(commands).await
        })
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        Box::pin(async move {
            if matches!(query, Query::Audit(_)) {
                self.pass().await;
            }
            self.inner.query(query).await
        })
    }
}

#[tokio::test]
async fn rotations_and_audits_go_one_at_a_time() {
    let stage = SqliteStage::on_file(PartitionConfig::default());
    let (came, go) = (Semaphore::new(0), Semaphore::new(0));
    let gate = Arc::new(Layered(Gate { inner: stage.backend(), came, go }));
    let site = Site::on(InItsTime(Arc::clone(&gate) as Arc<dyn Backend>)).await;
    let rotate = json!({ "new_kid": "k2", "new_secret_hex": secret("a") });
    for (path, body) in [(ROTATE, rotate), ("/v1/system/audit", json!({}))] {
        let (first, second) = tokio::join!(site.post(path, body.clone()), async {
            gate.came.acquire().await.unwrap().forget();
            let second = site.post(path, body.clone()).await;
            gate.go.add_permits(1);
            second
        });
        second.problem(429, "rate_limited");
        first.expect(200);
    }
    site.stop().await;
}

#[tokio::test]
async fn with_an_engine_its_scanners_are_shown() {
    let stage = SqliteStage::on_file(PartitionConfig::default());
    let engine = Engine::new(stage.backend(), EngineOptions::default());
    let options = ServerOptions { engine: Some(engine.report()), ..ServerOptions::default() };
    let site = Site::with(stage, options).await;
    let (stop, shutdown) = Shutdown::channel();
    let engine = tokio::spawn(engine.run(shutdown));
    let has_run = async {
        loop {
            let reply = site.get("/v1/system/scanners").await.expect(200);
            assert_eq!(reply["engine"], true);
            let rows = reply["items"].as_array().unwrap().clone();
            let outbox = rows.iter().find(|row| row["scanner"] == "outbox").unwrap();
            if outbox["last_cycle_age_ms"].is_u64() {
                return rows;
            }
        }
    };
    let rows = tokio::time::timeout(PATIENCE, has_run).await.expect("a cycle in time");
    assert_eq!(rows.len(), ff_engine::SCANNERS.len());
    for field in ["cycles", "processed", "errors", "lag_ms", "last_duration_ms"] {
        assert!(rows.iter().all(|row| row[field].is_u64()), "{field}");
    }
    assert_eq!(site.get("/v1/system/invariants").await.expect(200)["mended"], 0);
    stop.send_replace(true);
    engine.await.unwrap();
    site.stop().await;
}
