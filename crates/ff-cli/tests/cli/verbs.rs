//! Every verb against a server process.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Site, ff, ff_reading};

#[test]
fn an_execution_is_submitted_read_and_changed() {
    let site = Site::start();
    let id = site.submit(&["--payload", r#"{"to":"a@b.c"}"#, "--key", "m-1", "--tag", "a.b=c"]);
    let again = site.ff(&[
        "submit",
        "--lane",
        "l",
        "--kind",
        "k",
        "--payload",
        r#"{"to":"a@b.c"}"#,
        "--key",
        "m-1",
        "--tag",
        "a.b=c",
        "--json",
    ]);
    assert_eq!(again.json()["status"], "duplicate");
    let record = site.ff(&["get", &id, "--include", "payload", "--json"]).json();
    assert_eq!(record["content_type"], "application/json");
    assert_eq!(record["payload_b64"], "eyJ0byI6ImFAYi5jIn0=");
    let shown = site.ff(&["get", &id]).ok();
    assert!(shown.contains("public_state") && shown.contains("waiting"), "{shown}");
    assert!(site.ff(&["hold", &id, "--detail", "later"]).ok().contains("operator"));
    let why = site.ff(&["explain", &id]).ok();
    assert!(why.starts_with("operator_hold") && why.contains("ff release"), "{why}");
    assert_eq!(site.ff(&["explain", &id, "--json"]).json()["cause"], "operator_hold");
    assert_eq!(site.ff(&["release", &id]).ok(), "waiting (waiting_for_worker)\n");
    assert_eq!(site.ff(&["priority", &id, "7"]).ok(), "priority 7; it was 0\n");
    assert_eq!(site.ff(&["tag", &id, "x.y=z", "x.z="]).ok(), "3 tags\n");
    let listed = site.ff(&["ls", "--lane", "l", "--tag", "x.y:z", "--state", "waiting"]).ok();
    let mut lines = listed.lines();
    assert!(lines.next().unwrap().starts_with("ID"), "{listed}");
    assert!(lines.next().unwrap().starts_with(&id), "ids are whole: {listed}");
    assert_eq!(site.ff(&["ls", "-q"]).ok(), format!("{id}\n"));
    assert_eq!(site.ff(&["ls", "--lane", "other"]).ok(), "");
    assert_eq!(site.ff(&["cancel", &id, "--reason", "no"]).ok(), "cancelled; it was waiting\n");
    assert_eq!(site.ff(&["cancel", &id]).ok(), "cancelled already\n");
    let replayed = site.ff(&["replay", &id]).ok();
    assert_eq!(replayed, "replayed; it is waiting now, generation 1\n");
    assert_eq!(site.ff(&["delete", &id, "--json"]).problem(4), "execution_not_terminal");
    site.ff(&["cancel", &id, "-q"]).ok();
    assert_eq!(site.ff(&["delete", &id]).ok(), "deleted\n");
    assert_eq!(site.ff(&["get", &id, "--json"]).problem(3), "execution_not_found");
}

#[test]
fn a_submit_waits_for_its_outcome() {
    let site = Site::start();
    let wait = |more: &[&str]| {
        let all = [&["submit", "--lane", "l", "--kind", "k", "--wait"], more].concat();
        let command = site.command(&all);
        std::thread::spawn(move || {
            let mut command = command;
            crate::support::Told::of(&command.output().unwrap())
        })
    };
    let waiting = wait(&["--payload", "-"]);
    site.claim().complete(&json!({ "ok": true }));
    let told = waiting.join().unwrap();
    assert_eq!((told.code, told.out.as_str()), (0, r#"{"ok":true}"#), "{}", told.err);
    assert!(told.err.contains("completed"), "{}", told.err);
    let waiting = wait(&["--json"]);
    site.claim().complete(&json!(7));
    let record = waiting.join().unwrap().json();
    assert_eq!(
        (&record["public_state"], &record["result_b64"]),
        (&json!("completed"), &json!("Nw=="))
    );
    let waiting = wait(&[]);
    site.claim().fail();
    let told = waiting.join().unwrap();
    assert_eq!((told.code, told.out.as_str()), (9, ""));
    assert!(told.err.contains("failed no luck"), "{}", told.err);
    let waiting = wait(&["--json"]);
    site.claim().fail();
    let told = waiting.join().unwrap();
    let record: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((told.code, &record["public_state"]), (9, &json!("failed")));
    let told = wait(&["--timeout", "1ms", "--json"]).join().unwrap();
    assert_eq!((told.code, told.out.as_str()), (8, ""), "{told:?}");
    let problem: Value = serde_json::from_str(&told.err).unwrap();
    assert_eq!(problem["code"], "timeout");
    let id = problem["execution_id"].as_str().unwrap();
    assert_eq!(site.ff(&["get", id, "--json"]).json()["public_state"], "waiting");
}

#[test]
fn a_wait_outlives_a_restart_of_the_server() {
    let mut site = Site::start();
    let addr = site.url.strip_prefix("http://").unwrap().to_owned();
    let mut waits = site.command(&["submit", "--lane", "l", "--kind", "k", "--wait"]);
    waits.stdin(std::process::Stdio::null());
    let waiting = std::thread::spawn(move || crate::support::Told::of(&waits.output().unwrap()));
    let task = site.claim();
    let id = task.id.clone();
    assert_eq!(site.running.terminate(), 0);
    let serve = ["server", "--store", &site.store, "--listen-addr", &addr];
    site.running = crate::support::Running::start(crate::support::command(&serve));
    site.running.line_with("listening on ");
    site.post(
        &format!("/v1/executions/{id}/complete"),
        &json!({ "source": "operator_override", "result_json": 7 }),
    );
    let told = waiting.join().unwrap();
    assert_eq!((told.code, told.out.as_str()), (0, "7"), "{told:?}");
}

#[test]
fn payloads_come_from_texts_files_and_the_input() {
    let site = Site::start();
    let file = site.folder.path().join("payload");
    fs::write(&file, b"\x00\xff").unwrap();
    let from_file = format!("@{}", file.display());
    let payload = |id: &str| {
        let record = site.ff(&["get", id, "--include", "payload", "--json"]).json();
        (record["payload_b64"].clone(), record["content_type"].clone())
    };
    let id = site.submit(&["--payload", &from_file, "--priority", "3", "--delay", "1h"]);
    assert_eq!(payload(&id), (json!("AP8="), json!("application/octet-stream")));
    let record = site.ff(&["get", &id, "--json"]).json();
    assert_eq!((&record["public_state"], &record["priority"]), (&json!("delayed"), &json!(3)));
    let id = site.submit(&["--payload", "a text", "--content-type", "text/plain", "--held"]);
    assert_eq!(payload(&id), (json!("YSB0ZXh0"), json!("text/plain")));
    let told = ff_reading(
        &["--url", &site.url, "-q", "submit", "--lane", "l", "--kind", "k", "--payload", "-"],
        b"[1]",
    );
    assert_eq!(payload(told.ok().trim()), (json!("WzFd"), json!("application/json")));
    let policy = r#"{"max_replay_count":3}"#;
    let id = site.submit(&["--policy", policy]);
    let record = site.ff(&["get", &id, "--json"]).json();
    assert_eq!(record["policy"]["max_replay_count"], 3);
}

#[test]
fn a_file_of_submits_is_sent_whole() {
    let site = Site::start();
    let file = site.folder.path().join("jobs.ndjson");
    let mut lines: Vec<String> =
        (0..1500).map(|n| format!(r#"{{"lane":"l","kind":"k","priority":{n}}}"#)).collect();
    lines[1200] = r#"{"lane":"l"}"#.to_owned();
    lines[1300] = "no JSON".to_owned();
    lines.insert(3, String::new());
    fs::write(&file, lines.join("\n")).unwrap();
    let path = file.to_str().unwrap();
    let told = site.ff(&["submit", "--batch", path]);
    assert_eq!(told.code, 5, "the code of the first that was refused");
    assert_eq!(told.out.lines().count(), 1498);
    assert!(told.err.contains("line 1202:") && told.err.contains("line 1302:"), "{}", told.err);
    let quiet = site.ff(&["submit", "--batch", path, "--quiet"]);
    assert_eq!((quiet.code, quiet.err.lines().count()), (5, 2), "{}", quiet.err);
    assert!(quiet.err.contains("line 1202:") && quiet.err.contains("line 1302:"));
    let told = site.ff(&["submit", "--batch", path, "--json"]);
    let replies: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((told.code, replies["items"].as_array().unwrap().len()), (5, 1500));
    assert_eq!(replies["items"][1200]["problem"]["code"], "invalid_input");
    let page = site.ff(&["ls", "--limit", "500", "--json"]).json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = site.ff(&["ls", "--limit", "500", "--cursor", cursor, "--json"]).json();
    assert_ne!(page["items"][0], next["items"][0]);
    let shown = site.ff(&["ls"]);
    assert!(shown.err.contains("--cursor"), "{}", shown.err);
}

#[test]
fn output_and_results_are_printed_as_they_are() {
    let site = Site::start();
    let id = site.submit(&[]);
    let task = site.claim();
    task.print("stdout", "one");
    task.print("event", "two");
    let mut following = crate::support::Running::start(site.command(&["tail", &id, "--follow"]));
    following.line_with("[event] \"two\"");
    task.print("stdout", "three");
    task.complete(&json!("done"));
    following.line_with("\"three\"");
    assert_eq!(following.ended(), 0, "it ends with the execution");
    assert_eq!(site.ff(&["logs", &id]).ok(), "\"one\"\n[event] \"two\"\n\"three\"\n");
    let frames = site.ff(&["logs", &id, "--attempt", "0", "--json"]).ok();
    let frames: Vec<Value> = frames.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(frames.len(), 3);
    assert_eq!(frames[1]["type"], "event");
    let followed = site.ff(&["logs", &id, "--attempt", "0", "-f", "--json"]).ok();
    assert_eq!(followed.lines().count(), 3);
    assert_eq!(site.ff(&["result", &id]).ok(), "\"done\"");
    assert_eq!(site.ff(&["result", &id, "--json"]).json()["content_type"], "application/json");
    let other = site.submit(&[]);
    assert_eq!(site.ff(&["result", &other, "--json"]).problem(3), "result_not_found");
}

#[test]
fn people_decide_and_machines_signal() {
    let site = Site::start();
    let id = site.submit(&[]);
    site.claim().suspend(&["go"]);
    let waiting = site.ff(&["waitpoint", "ls", &id, "--json"]).json();
    let waitpoint = waiting["items"][0]["waitpoint_id"].as_str().unwrap().to_owned();
    assert!(site.ff(&["waitpoint", "ls", "--lane", "l"]).ok().contains("waiting_for_signal"));
    let token = site.ff(&["waitpoint", "token", &id, "go"]).ok();
    let file = site.folder.path().join("token");
    fs::write(&file, &token).unwrap();
    let file = file.to_str().unwrap();
    let signal = ["signal", &id, "--key", "go", "--token-file", file, "--name", "ok"];
    let told = site.ff(&[&signal[..], &["--payload", "1", "--dedup", "d"]].concat()).ok();
    assert_eq!(told, "accepted: resume_condition_satisfied\n");
    assert_eq!(site.ff(&[&signal[..], &["--json"]].concat()).problem(4), "target_not_signalable");
    site.claim().suspend(&["a"]);
    assert_eq!(site.ff(&["approve", &waitpoint, "--json"]).problem(3), "waitpoint_not_found");
    assert!(site.ff(&["approve", &id, "--comment", "fine"]).ok().starts_with("accepted"));
    site.claim().suspend(&["a", "b"]);
    let several = site.ff(&["approve", &id]);
    assert!(several.code == 5 && several.err.contains("a (") && several.err.contains("b ("));
    site.ff(&["approve", &id, "--waitpoint", "a", "--deny"]).ok();
    let open = site.ff(&["waitpoint", "ls", "-q"]).ok();
    let last = open.lines().last().unwrap();
    assert!(site.ff(&["approve", last]).ok().contains("resume_condition_satisfied"));
    site.claim().suspend(&["c"]);
    assert_eq!(site.ff(&["resume", &id, "--delay", "1h"]).ok().lines().count(), 1);
    assert_eq!(site.ff(&["approve", &id, "--json"]).problem(4), "target_not_signalable");
}

#[test]
fn a_new_token_replaces_the_old() {
    let site = Site::start();
    let id = site.submit(&[]);
    let old = site.claim().suspend(&["go"]).remove(0);
    let new = site.ff(&["waitpoint", "token", &id, "go", "--remint", "--ttl", "1h"]).ok();
    assert_ne!(new.trim_end(), old);
    let signal = ["--url", &site.url, "signal", &id, "--key", "go", "--token-file", "-"];
    let send = |token: &str, more: &[&str]| {
        ff_reading(&[&signal[..], &["--name", "ok"], more].concat(), token.as_bytes())
    };
    assert_eq!(send(&old, &["--json"]).problem(6), "invalid_token");
    send(&new, &[]).ok();
}

#[test]
fn workers_are_listed_drained_and_given_up() {
    let site = Site::start();
    let id = site.submit(&[]);
    let task = site.claim();
    assert_eq!(site.ff(&["worker", "ls", "-q"]).ok(), "w-1\n");
    assert_eq!(site.ff(&["worker", "show", "w-1", "--json"]).json()["running"], 1);
    let record = site.ff(&["get", &id, "--json"]).json();
    let lease = record["lease_id"].as_str().unwrap();
    let revoked = site.ff(&["revoke", &id, "--expected-lease-id", lease]).ok();
    assert_eq!(revoked, format!("revoked lease {lease}\n"));
    drop(task);
    let drain = ["worker", "drain", "w-1", "--reason", "new version"];
    assert_eq!(site.ff(&drain).ok(), "draining\n");
    let types = ["events", "--after", "start", "--types", "worker.draining", "--json"];
    let events = crate::support::Running::start(site.command(&types));
    assert!(events.line_with("worker.draining").contains(r#""reason":"new version""#));
    site.ff(&["worker", "dead", "w-1", "--reason", "gone"]).ok();
    assert_eq!(site.ff(&["worker", "show", "w-1", "--json"]).problem(3), "worker_not_found");
    assert_eq!(site.ff(&["worker", "show", "nobody", "--json"]).problem(3), "worker_not_found");
}

#[test]
fn namespaces_are_kept_apart() {
    let site = Site::start();
    let id = site.submit(&["--namespace", "team-a"]);
    assert_eq!(site.ff(&["get", &id, "--json"]).problem(3), "execution_not_found");
    assert_eq!(site.ff(&["--namespace", "team-a", "ls", "-q"]).ok(), format!("{id}\n"));
    assert_eq!(site.ff(&["ls", "--namespace", "NO", "--json"]).problem(5), "invalid_input");
}

#[test]
fn what_needs_no_server_is_told_without_one() {
    let document: Value = serde_json::from_str(&ff(&["openapi"]).ok()).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let compact = ff(&["openapi", "--json"]).json();
    assert_eq!(compact, document);
    assert_eq!(ff(&["version", "--json"]).json()["version"], env!("CARGO_PKG_VERSION"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(ff(&["completions", shell]).ok().contains("submit"), "{shell}");
    }
    let help = ff(&["submit", "--help"]).ok();
    assert!(help.contains("Examples:") && help.contains("--payload"), "{help}");
}
