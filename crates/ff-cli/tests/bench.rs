//! Every scenario of `ff bench`, small, through the built binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where it stopped")]

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use ff_test::servers::{Cluster, ClusterOptions, Server, ServerOptions, wait_until};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

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

/// Runs a scenario on a fresh store of each kind and checks what all reports have in common.
fn reports(arguments: &[&str]) -> [Value; 2] {
    [on_sqlite(arguments), on_valkey(arguments)]
}

fn on_sqlite(arguments: &[&str]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let report = report(arguments, &store_in(&directory), directory.path());
    assert_eq!(report["durability"], "off");
    report
}

/// Counters and memory are the server's: each run has one of its own.
fn on_valkey(arguments: &[&str]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(ServerOptions::default());
    let report = report(arguments, &server.url(), directory.path());
    assert_eq!(report["durability"], "memory");
    nothing_is_left(&server);
    report
}

/// The library of the store stays, as another deployment may use it.
#[track_caller]
fn nothing_is_left(server: &Server) {
    assert_eq!(server.command(&["DBSIZE"]).unwrap(), "0");
    let libraries = server.command(&["FUNCTION", "LIST"]).unwrap();
    assert!(libraries.contains("flowfabric") && !libraries.contains("floor"), "{libraries}");
}

fn report(arguments: &[&str], store: &str, temporary: &Path) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    let output = ff(&arguments, store, temporary);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {told}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "one object on one line: {text}");
    let report: Value = serde_json::from_str(&text).unwrap();
    for field in FIELDS {
        assert!(report.get(field).is_some(), "{field} is missing: {report}");
    }
    assert_eq!(report["scenario"], arguments[0]);
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
    for report in reports(&["lifecycle", "--tasks", "200", "--payload-bytes", "100"]) {
        is_positive(&report, &["throughput_per_s", "p50_ms", "max_ms", "floor_per_s"]);
        is_positive(&report, &["floor_ratio", "commands_per_execution"]);
        assert_eq!(report["invariants_ok"], true);
        let parameters = &report["parameters"];
        assert_eq!((&parameters["tasks"], &parameters["workers"]), (&200.into(), &16.into()));
    }
}

#[test]
fn connections_that_wait_are_counted_in_bytes() {
    for report in reports(&["connections", "--connections", "40", "--samples", "5"]) {
        is_positive(&report, &["resident_mb", "p50_ms"]);
        assert!(report["connections_mb"].is_number(), "{report}");
    }
    let directory = tempfile::tempdir().unwrap();
    let most = ["connections", "--connections", "100000"];
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 256 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_ff"), "bench"])
        .args(most)
        .args(["--store", &store_in(&directory)])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("ulimit -n 200100"), "{told}");
}

#[test]
fn lifecycle_runs_in_batches() {
    let arguments = ["lifecycle", "--tasks", "205", "--batch", "10", "--concurrency", "4"];
    for report in reports(&arguments) {
        is_positive(&report, &["throughput_per_s", "p99_ms", "floor_ratio", "steps_per_batch"]);
        assert_eq!(report["invariants_ok"], true);
    }
}

#[test]
fn suspend_resume_times_every_sample() {
    for report in reports(&["suspend_resume", "--samples", "20", "--workers", "3"]) {
        is_positive(&report, &["p50_ms", "p99_ms", "throughput_per_s", "commands_per_execution"]);
        assert_eq!(report["invariants_ok"], true);
    }
}

#[test]
fn flows_are_timed_from_submit_to_join_and_cancel() {
    for arguments in [
        &["chain", "--flows", "5", "--steps", "4", "--workers", "3"][..],
        &["fanout", "--n", "80", "--samples", "2", "--workers", "3"],
        &["quorum_cancel", "--n", "80", "--samples", "2"],
    ] {
        for report in reports(arguments) {
            is_positive(&report, &["p50_ms", "p99_ms", "throughput_per_s"]);
            assert_eq!(report["invariants_ok"], true, "{arguments:?}");
        }
    }
}

#[test]
fn capability_starts_everything_however_few_can() {
    for mode in ["happy", "partial", "scarce"] {
        let arguments =
            ["capability", "--mode", mode, "--tasks", "60", "--workers", "10", "--classes", "7"];
        for report in reports(&arguments) {
            is_positive(&report, &["p50_ms", "p99_ms", "throughput_per_s"]);
            assert_eq!(report["invariants_ok"], true, "{mode}");
            assert_eq!(report["parameters"]["mode"], mode);
        }
    }
}

#[test]
fn unblock_lets_everybody_go_while_others_work() {
    for report in reports(&["unblock", "--tasks", "3000"]) {
        is_positive(&report, &["p50_ms", "p99_ms", "throughput_per_s"]);
        assert_eq!(report["invariants_ok"], true);
        assert_eq!(report["errors"], 0);
    }
}

#[test]
fn stream_times_every_sample_for_every_tail() {
    let small = ["--frames", "500", "--producers", "3", "--batch", "50", "--samples", "20"];
    let arguments = [&["stream", "--tails", "3"][..], &small].concat();
    for report in reports(&arguments) {
        is_positive(&report, &["p50_ms", "p99_ms", "throughput_per_s", "commands_per_frame"]);
        assert_eq!(report["invariants_ok"], true);
    }
}

#[test]
fn start_latency_times_every_sample() {
    for report in reports(&["start_latency", "--samples", "20", "--rate", "200"]) {
        is_positive(&report, &["p50_ms", "p95_ms", "p99_ms", "max_ms", "commands_per_execution"]);
        assert_eq!(report["floor_per_s"], Value::Null);
    }
}

#[test]
fn http_counts_submits_and_times_claims_that_wait() {
    let arguments =
        ["http", "--submits", "200", "--connections", "4", "--batch", "10", "--samples", "5"];
    for report in reports(&arguments) {
        is_positive(&report, &["p50_ms", "throughput_per_s", "batched_submits_per_s"]);
    }
}

#[test]
fn idle_counts_commands_and_processor_time() {
    for report in reports(&["idle", "--seconds", "1", "--workers", "3"]) {
        assert!(report["commands_per_s"].as_f64() < Some(100.0), "{report}");
        assert!(report.get("cpu_percent").is_some(), "{report}");
        assert_eq!(report["p50_ms"], Value::Null);
    }
}

#[test]
fn the_runtime_is_measured_beside_bare_calls() {
    for report in reports(&["runtime", "--tasks", "300", "--slots", "8", "--samples", "20"]) {
        is_positive(&report, &["throughput_per_s", "p50_ms", "together_per_s", "bare_per_s"]);
        for field in ["together_cpu_us", "bare_cpu_us", "runtime_cpu_us", "added_cpu_us"] {
            assert!(report.get(field).is_some(), "{field} is missing: {report}");
        }
    }
}

#[test]
fn memory_is_told_for_each_state() {
    let arguments = ["memory", "--tasks", "2000", "--payload-bytes", "50", "--result-bytes", "500"];
    for report in reports(&arguments) {
        is_positive(&report, &["queued_bytes", "running_bytes", "commands_per_execution"]);
        let bytes = |state: &str| report[format!("{state}_bytes")].as_f64().unwrap();
        let least = bytes("queued") + 500.0;
        assert!(bytes("terminal") > least, "results take their place: {report}");
    }
}

#[test]
fn backlog_compares_a_long_queue_with_a_short_one() {
    for report in reports(&["backlog", "--queued", "2000", "--samples", "50"]) {
        is_positive(&report, &["p50_ms", "p99_ms", "small_p99_ms", "p99_ratio"]);
        assert_eq!(report["invariants_ok"], true);
    }
}

#[test]
fn steady_compares_the_end_with_the_beginning() {
    for report in reports(&["steady", "--rate", "100", "--seconds", "2", "--deadline-ms", "20000"])
    {
        is_positive(&report, &["p50_ms", "first_p50_ms", "last_p50_ms", "first_p99_ms", "drift"]);
        assert_eq!((&report["missed_deadlines"], &report["errors"]), (&0.0.into(), &0.into()));
        assert_eq!(report["invariants_ok"], true);
    }
}

#[test]
fn steady_counts_what_comes_too_late() {
    // No store submits, claims and completes in the time that a millisecond leaves.
    for report in reports(&["steady", "--rate", "2000", "--seconds", "1", "--deadline-ms", "1"]) {
        is_positive(&report, &["missed_deadlines"]);
        assert_eq!((&report["errors"], &report["invariants_ok"]), (&0.into(), &true.into()));
    }
}

#[test]
fn floor_leaves_the_store_alone() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["floor", "--seconds", "1", "--batch", "9"];
    let on_sqlite = report(&arguments, &store_in(&directory), directory.path());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing stays behind");
    for report in [on_sqlite, on_valkey(&arguments)] {
        is_positive(&report, &["throughput_per_s", "floor_per_s", "p50_ms"]);
        assert_eq!(report["invariants_ok"], Value::Null);
        assert_eq!(report["parameters"]["batch"], 9);
    }
}

#[test]
fn a_cluster_is_measured_like_a_server() {
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(&ClusterOptions::default());
    for arguments in [
        &["lifecycle", "--tasks", "100", "--batch", "10"][..],
        &["memory", "--tasks", "1000"][..],
        &["backlog", "--queued", "100", "--samples", "10"][..],
    ] {
        let report = report(arguments, &cluster.url(), directory.path());
        is_positive(&report, &["commands_per_execution"]);
        assert_eq!(report["invariants_ok"], true);
        cluster.nodes().iter().for_each(nothing_is_left);
    }
}

#[test]
fn a_prefix_that_the_url_names_keeps_its_keys() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(ServerOptions::default());
    let store = format!("{}?prefix=mine", server.url());
    report(&["lifecycle", "--tasks", "10"], &store, directory.path());
    let keys = server.command(&["KEYS", "*"]).unwrap();
    assert!(keys.lines().count() > 10, "{keys}");
    assert!(keys.lines().all(|key| key.starts_with("mine:")), "{keys}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_takes_its_keys_along() {
    let server = Server::start(ServerOptions::default());
    let mut run = Command::new(env!("CARGO_BIN_EXE_ff"))
        .args(["bench", "floor", "--seconds", "60", "--store", &server.url()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let count = || server.command(&["DBSIZE"]).unwrap().parse::<u64>().unwrap();
    wait_until("the floor writes", PATIENCE, || count() > 100);
    Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(1));
    nothing_is_left(&server);
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
    let cases: [(&[&str], &str, i32, &str); 9] = [
        (&["lifecycle", "--payload-bytes", "2000000"], "sqlite::memory:", 5, "payload"),
        (&["lifecycle", "--batch", "1001"], "sqlite::memory:", 5, "max"),
        (&["memory", "--result-bytes", "2000000"], "sqlite::memory:", 5, "result"),
        (&["floor", "--callers", "2"], "sqlite::memory:", 5, "callers"),
        (&["lifecycle"], "nonsense:", 2, "sqlite:"),
        (&["lifecycle"], "postgres://h/db", 2, "valkey://"),
        (&["lifecycle"], "valkey://h?prefix=NO", 2, "prefix"),
        (&["lifecycle"], "valkey://127.0.0.1:1", 8, "cannot be reached"),
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
