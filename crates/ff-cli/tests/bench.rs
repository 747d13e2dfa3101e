//! Every scenario of `ff bench`, small, through the built binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where it stopped")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// The fields that every report has.
const FIELDS: &[&str] = &[
    "scenario",
    "store",
    "version",
    "host",
    "durability",
    "parameters",
    "duration_s",
    "throughput_per_s",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "max_ms",
    "commands_per_execution",
    "floor_per_s",
    "floor_ratio",
    "errors",
    "invariants_ok",
];

fn ff(arguments: &[&str], store: &str, temporary: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ff"))
        .arg("bench")
        .args(arguments)
        .args(["--store", store])
        .env("TMPDIR", temporary)
        .output()
        .unwrap()
}

fn store_in(directory: &TempDir) -> String {
    format!("sqlite:{}?durability=off", directory.path().join("ff.db").display())
}

/// Runs a scenario on a fresh store and checks what all reports have in common.
fn report(arguments: &[&str]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let arguments = [arguments, &["--json"]].concat();
    let output = ff(&arguments, &store_in(&directory), directory.path());
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {told}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "one object on one line: {text}");
    let report: Value = serde_json::from_str(&text).unwrap();
    for field in FIELDS {
        assert!(report.get(field).is_some(), "{field} is missing: {report}");
    }
    assert_eq!(report["scenario"], arguments[0]);
    assert_eq!(report["durability"], "off");
    assert_eq!(report["errors"], 0, "{report}");
    assert!(report["host"]["cpus"].as_u64() >= Some(1), "{report}");
    report
}

#[track_caller]
fn is_positive(report: &Value, fields: &[&str]) {
    for field in fields {
        assert!(report[field].as_f64() > Some(0.0), "{field} is not above 0: {report}");
    }
}

#[test]
fn lifecycle_is_measured_beside_its_floor() {
    let report = report(&["lifecycle", "--tasks", "200", "--payload-bytes", "100"]);
    is_positive(&report, &["throughput_per_s", "p50_ms", "max_ms", "floor_per_s", "floor_ratio"]);
    assert!(report["commands_per_execution"].as_f64() >= Some(3.0), "{report}");
    assert_eq!(report["invariants_ok"], true);
    let parameters = &report["parameters"];
    assert_eq!((&parameters["tasks"], &parameters["workers"]), (&200.into(), &16.into()));
}

#[test]
fn lifecycle_runs_in_batches() {
    let report = report(&["lifecycle", "--tasks", "205", "--batch", "10", "--concurrency", "4"]);
    is_positive(&report, &["throughput_per_s", "p99_ms", "floor_ratio"]);
    assert_eq!(report["invariants_ok"], true);
}

#[test]
fn start_latency_times_every_sample() {
    let report = report(&["start_latency", "--samples", "20", "--rate", "200"]);
    is_positive(&report, &["p50_ms", "p95_ms", "p99_ms", "max_ms"]);
    assert_eq!(report["floor_per_s"], Value::Null);
}

#[test]
fn idle_counts_commands_and_processor_time() {
    let report = report(&["idle", "--seconds", "1", "--workers", "3"]);
    assert!(report["commands_per_s"].as_f64() < Some(100.0), "{report}");
    assert!(report.get("cpu_percent").is_some(), "{report}");
    assert_eq!(report["p50_ms"], Value::Null);
}

#[test]
fn memory_is_told_for_each_state() {
    let report = report(&["memory", "--tasks", "2000"]);
    is_positive(&report, &["queued_bytes", "running_bytes", "terminal_bytes"]);
    assert!(report["terminal_bytes"].as_f64() >= report["queued_bytes"].as_f64(), "{report}");
}

#[test]
fn backlog_compares_a_long_queue_with_a_short_one() {
    let report = report(&["backlog", "--queued", "2000", "--samples", "50"]);
    is_positive(&report, &["p50_ms", "p99_ms", "small_p99_ms", "p99_ratio"]);
    assert_eq!(report["invariants_ok"], true);
}

#[test]
fn floor_leaves_the_store_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_in(&directory);
    let arguments = ["floor", "--seconds", "1", "--batch", "9", "--json"];
    let output = ff(&arguments, &store, directory.path());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    is_positive(&report, &["throughput_per_s", "floor_per_s", "p50_ms"]);
    assert_eq!(report["invariants_ok"], Value::Null);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing stays behind");
}

#[test]
fn without_json_a_table_follows_the_object() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["lifecycle", "--tasks", "50", "--payload-bytes", "0"];
    let output = ff(&arguments, "sqlite::memory:", directory.path());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (object, table) = text.split_once("\n\n").unwrap();
    let report: Value = serde_json::from_str(object).unwrap();
    assert_eq!(report["durability"], "memory");
    assert!(table.contains("throughput_per_s"), "{table}");
}

#[test]
fn wrong_input_has_its_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str, i32, &str); 4] = [
        (&["lifecycle", "--payload-bytes", "2000000"], "sqlite::memory:", 5, "payload"),
        (&["lifecycle", "--batch", "1001"], "sqlite::memory:", 5, "max"),
        (&["lifecycle"], "nonsense:", 2, "sqlite:"),
        (&["no_such_scenario"], "sqlite::memory:", 2, "no_such_scenario"),
    ];
    for (arguments, store, code, told) in cases {
        let output = ff(arguments, store, directory.path());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(told), "{arguments:?}: {text}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
