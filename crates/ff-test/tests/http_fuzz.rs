//! A fuzzer that knows the description of the API: what it allows never breaks the server, and every
//! answer is one that the description announces.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use ff_test::http::Site;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

ff_test::on_every_store! { the_description_tells_the_truth }

/// Requests that it makes up for each operation, besides those at the edges of what is described.
const EXAMPLES: &str = "4";
/// What it must not find.
const CHECKS: [&str; 4] = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
];

/// Names of things that there are, so that requests come further than to "not found".
async fn names(site: &Site) -> Vec<(&'static str, String)> {
    let task = site.start(json!({})).await;
    let member = json!({ "name": "a", "lane": "l", "kind": "k" });
    let flow = site.post("/v1/flows", json!({ "kind": "k", "members": [member] })).await;
    let dimensions = json!({ "a": { "hard": 9 } });
    let budget = json!({ "scope_type": "custom", "scope_id": "s", "dimensions": dimensions });
    let budget = site.post("/v1/budgets", budget).await;
    let quota = json!({ "window_seconds": 1, "max_requests_per_window": 9, "max_concurrent": 9 });
    let quota = site.post("/v1/quotas", quota).await;
    let bulk = json!({ "action": "hold", "filter": { "lane": "l", "kind": "none" } });
    let bulk = site.post("/v1/bulk", bulk).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    vec![
        ("flow_id", text(&flow.expect(201)["flow_id"])),
        ("budget_id", text(&budget.expect(201)["budget_id"])),
        ("quota_policy_id", text(&quota.expect(201)["quota_policy_id"])),
        ("bulk_id", text(&bulk.expect(202)["bulk_id"])),
        ("lane", "l".to_owned()),
        ("namespace", "default".to_owned()),
        ("execution_id", task.id),
        ("attempt_index", "0".to_owned()),
        ("worker_instance_id", "w-1".to_owned()),
        ("worker_id", "w".to_owned()),
        ("code", "stale_lease".to_owned()),
    ]
}

async fn the_description_tells_the_truth(site: &Site) {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = String::new();
    for (name, value) in names(site).await {
        writeln!(settings, "[dictionaries.{name}]\nvalues = [{value:?}]").unwrap();
        writeln!(settings, "[parameters.\"path.{name}\"]").unwrap();
        writeln!(settings, "dictionary = {name:?}\nprobability = 0.8").unwrap();
    }
    let file = folder.path().join("schemathesis.toml");
    std::fs::write(&file, settings).unwrap();
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/schemathesis");
    assert!(installed.is_dir(), "scripts/install-test-tools puts schemathesis into .tools");
    let mut fuzzer = Command::new("python3");
    fuzzer.env("PYTHONPATH", installed.canonicalize().unwrap()).current_dir(folder.path());
    fuzzer.args(["-m", "schemathesis.cli", "--config-file"]).arg(file).arg("run");
    fuzzer.arg(format!("http://{}/openapi.json", site.addr));
    fuzzer.args(["--phases", "fuzzing", "--max-examples", EXAMPLES, "--workers", "2"]);
    // Longer than any wait that it may ask for.
    fuzzer.args(["--request-timeout", "90", "--no-color", "--seed", "1"]);
    fuzzer.args(["--generation-database", "none"]);
    fuzzer.args(CHECKS.iter().flat_map(|check| ["-c", check]));
    let ran = fuzzer.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = spawn_blocking(move || ran.wait_with_output()).await.unwrap().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let tail: Vec<&str> = told.lines().rev().take(200).collect();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    assert!(
        output.status.success(),
        "{}\n{}",
        tail.join("\n"),
        String::from_utf8_lossy(&output.stderr)
    );
    site.get("/healthz").await.expect(200);
}
