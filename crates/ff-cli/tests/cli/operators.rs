//! Verbs of operators, against a server process: flows, limits, lanes, keys, secrets, many at once.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Site, Told};

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Does with `ff` what every word of the list says, and gives the replies.
fn replies(site: &Site, words: &str) -> Value {
    let arguments: Vec<&str> = words.split(' ').chain(["--json"]).collect();
    site.ff(&arguments).json()
}

#[test]
fn a_flow_is_submitted_drawn_cancelled_and_replayed() {
    let site = Site::start();
    let file = site.folder.path().join("graph.json");
    let member = |name: &str| json!({ "name": name, "lane": "l", "kind": "k" });
    let graph = json!({
        "kind": "etl",
        "members": [member("a"), member("b")],
        "edges": [{ "from": "a", "to": "b" }],
    });
    fs::write(&file, graph.to_string()).unwrap();
    let path = file.to_str().unwrap();
    let id = site.ff(&["flow", "submit", path, "-q"]).ok();
    let id = id.trim_end();
    let drawn = site.ff(&["flow", "show", id]).ok();
    assert_eq!(drawn.lines().next().unwrap(), format!("{id}  open  etl"));
    assert!(
        drawn.contains("a     waiting") && drawn.contains("   b  waiting_children  <- a"),
        "{drawn}"
    );
    assert_eq!(replies(&site, &format!("flow show {id}"))["edges"][0]["state"], "pending");
    assert!(site.ff(&["flow", "ls", "--state", "open"]).ok().contains(id));
    assert_eq!(site.ff(&["flow", "ls", "--state", "failed"]).ok(), "");
    let wait = ["flow", "submit", path, "--wait"];
    let waiting = site.command(&wait);
    let waiting = std::thread::spawn(move || {
        let mut waiting = waiting;
        Told::of(&waiting.output().unwrap())
    });
    for _ in 0..3 {
        site.claim().complete(&json!(1));
    }
    site.claim().complete(&json!(1));
    assert_eq!(waiting.join().unwrap().ok(), "completed\n");
    let other = site.ff(&["flow", "submit", path, "-q"]).ok();
    let other = other.trim_end();
    let cancelled = replies(&site, &format!("flow cancel {other} --reason r --wait"));
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(site.ff(&["flow", "submit", path, "--wait", "--timeout", "1ms"]).code, 8);
    let late = site.ff(&["flow", "submit", path, "--wait", "--timeout", "1ms", "--json"]);
    let problem: Value = serde_json::from_str(&late.err).unwrap();
    let late = text(&problem["flow_id"]);
    assert_eq!(problem["code"], "timeout");
    assert_eq!(replies(&site, &format!("flow show {late}"))["flow_id"], late);
    replies(&site, &format!("flow cancel {late} --wait"));
    let refused = site.ff(&["flow", "replay", other, "--json"]);
    assert_eq!(refused.problem(4), "replay_not_allowed", "a cancel is for ever");
    site.claim().fail();
    let failed = site.ff(&["flow", "ls", "--state", "failed", "-q"]).ok();
    let replayed = replies(&site, &format!("flow replay {}", failed.trim_end()));
    assert!(!replayed["replayed"].as_array().unwrap().is_empty(), "{replayed}");
    site.claim().fail();
    let again = replies(&site, &format!("flow replay {} --member a", failed.trim_end()));
    assert_eq!(again["replayed"].as_array().map(Vec::len), Some(1), "{again}");
    let unknown = ["flow", "replay", failed.trim_end(), "--member", "nobody", "--json"];
    assert_eq!(site.ff(&unknown).problem(4), "execution_not_in_flow");
    fs::write(&file, "{").unwrap();
    assert_eq!(site.ff(&["flow", "submit", path, "--json"]).problem(5), "invalid_input");
    let none = "00000000-0000-7000-8000-000000000000";
    assert_eq!(site.ff(&["flow", "show", none, "--json"]).problem(3), "flow_not_found");
}

#[test]
fn budgets_are_made_spent_and_removed() {
    let site = Site::start();
    let made = "budget create --scope-type lane --scope-id m --hard t=20 --soft t=8 --hard c=1";
    let id = text(&replies(&site, made)["budget_id"]).to_owned();
    assert!(site.ff(&["budget", "ls"]).ok().contains(&id));
    let other =
        ["budget", "create", "--scope-type", "lane", "--scope-id", "o", "--hard", "t=1", "--quiet"];
    let other = site.ff(&other).ok();
    assert!(site.ff(&["budget", "show", other.trim_end()]).ok().contains("o"));
    let usage = |arguments: &str| replies(&site, &format!("budget usage {id} {arguments}"));
    assert_eq!(usage("t=5 --dedup k")["status"], "ok");
    assert_eq!(usage("t=5 --dedup k")["status"], "already_applied");
    assert_eq!(usage("t=4")["status"], "soft_breach");
    assert_eq!(usage("t=20")["status"], "hard_breach");
    let shown = replies(&site, &format!("budget show {id}"));
    assert_eq!(shown["dimensions"]["t"], json!({ "hard": 20, "soft": 8 }));
    let set = replies(&site, &format!("budget set {id} --hard t=100 --reset-interval-ms 1h"));
    assert_eq!(set["dimensions"]["t"]["hard"], 100);
    assert!(set["next_reset_at"].is_string(), "{set}");
    let execution = site.submit(&[]);
    assert_eq!(replies(&site, &format!("budget release {id} {execution}"))["status"], "ok");
    replies(&site, &format!("budget reset {id}"));
    assert_eq!(replies(&site, &format!("budget show {id}"))["usage"]["t"], 0);
    site.ff(&["budget", "rm", &id]).ok();
    assert_eq!(site.ff(&["budget", "show", &id, "--json"]).problem(3), "budget_not_found");
    let bad =
        ["budget", "create", "--scope-type", "odd", "--scope-id", "m", "--hard", "t=1", "--json"];
    assert_eq!(site.ff(&bad).problem(5), "invalid_budget_scope");
}

#[test]
fn quotas_and_lanes_are_changed() {
    let site = Site::start();
    let made = "quota create --window-seconds 60 --max-requests 100 --max-concurrent 8";
    let id = text(&replies(&site, made)["quota_policy_id"]).to_owned();
    assert!(site.ff(&["quota", "ls"]).ok().contains(&id));
    assert_eq!(replies(&site, &format!("quota set {id} --max-concurrent 2"))["max_concurrent"], 2);
    assert_eq!(replies(&site, &format!("quota show {id}"))["max_requests_per_window"], 100);
    site.ff(&["quota", "rm", &id]).ok();
    assert_eq!(site.ff(&["quota", "show", &id, "--json"]).problem(3), "quota_policy_not_found");
    site.submit(&[]);
    assert_eq!(replies(&site, "lane pause l --reason r")["state"], "paused");
    let listed = site.ff(&["lane", "ls"]).ok();
    assert!(listed.contains("paused") && listed.contains("REASON"), "{listed}");
    assert_eq!(replies(&site, "lane show l")["reason"], "r");
    assert_eq!(replies(&site, "lane show l")["depth"], json!({ "waiting": 1 }));
    assert_eq!(replies(&site, "lane resume l")["state"], "active");
    assert_eq!(replies(&site, "lane drain l")["state"], "draining");
    assert_eq!(replies(&site, "lane set l --state disabled")["state"], "disabled");
    let refused = site.ff(&["submit", "--lane", "l", "--kind", "k", "--json"]);
    assert_eq!(refused.problem(4), "lane_not_accepting");
}

#[test]
fn keys_and_secrets_are_made_and_taken_away() {
    let site = Site::start();
    let secret = site.folder.path().join("secret");
    fs::write(&secret, "ab".repeat(32) + "\n").unwrap();
    let secret = secret.to_str().unwrap();
    let rotate = ["secret", "rotate", "--kid", "k2", "--secret-file", secret, "--grace-ms", "5s"];
    site.ff(&rotate).ok();
    assert_eq!(replies(&site, "secret ls")["current_kid"], "k2");
    let made = replies(&site, "key create --name owner --scope admin --scope executions:read");
    let owner = text(&made["key"]).to_owned();
    assert_eq!(site.ff(&["ls", "--json"]).problem(6), "unauthenticated", "the first key closes it");
    let file = site.folder.path().join("key");
    fs::write(&file, format!("{owner}\n")).unwrap();
    let file = file.to_str().unwrap();
    for (name, value) in [("FF_API_TOKEN", owner.as_str()), ("FF_API_TOKEN_FILE", file)] {
        let mut listed = site.command(&["key", "ls"]);
        let listed = Told::of(&listed.env(name, value).output().unwrap()).ok();
        assert!(listed.contains("owner") && !listed.contains(&owner), "{listed}");
    }
    let by_owner = |arguments: &[&str]| {
        let mut command = site.command(arguments);
        Told::of(&command.env("FF_API_TOKEN", &owner).output().unwrap())
    };
    let submit = ["submit", "--lane", "l", "--kind", "k", "--json"];
    assert_eq!(by_owner(&submit).problem(6), "forbidden", "it has no scope for that");
    by_owner(&["key", "rm", text(&made["key_id"])]).ok();
}

#[test]
fn the_first_key_shuts_nobody_out_by_mistake() {
    let mut site = Site::start();
    let worker = ["key", "create", "--name", "w", "--scope", "workers:claim"];
    let refused = site.ff(&worker);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("ff key create --name owner --all-scopes"), "{refused:?}");
    let over = ["--name", "o", "--all-scopes", "--expires-at", "2020-01-01T00:00:00Z", "--json"];
    assert_eq!(site.ff(&[&["key", "create"], &over[..]].concat()).problem(5), "invalid_input");
    site.ff(&["ls"]).ok();
    let owner = replies(&site, "key create --name owner --all-scopes");
    assert_eq!(owner["scopes"].as_array().map(Vec::len), Some(12), "{owner}");
    let mut by_owner = site.command(&worker);
    Told::of(&by_owner.env("FF_API_TOKEN", text(&owner["key"])).output().unwrap()).ok();
    assert_eq!(site.running.terminate(), 0);
    let on =
        |arguments: &[&str]| crate::support::ff(&[&["--store", &site.store], arguments].concat());
    let keys = on(&["key", "ls", "-q"]).ok();
    assert_eq!(keys.lines().count(), 2);
    for key in keys.lines() {
        on(&["key", "rm", key]).ok();
    }
    assert_eq!(on(&worker).code, 2, "a store that is opened directly has no key either");
    on(&[&worker[..], &["--yes"]].concat()).ok();
}

#[test]
fn many_are_acted_on_by_a_filter() {
    let site = Site::start();
    for _ in 0..3 {
        site.submit(&[]);
    }
    let cancel = ["cancel", "--filter", "--lane", "l", "--state", "waiting", "--reason", "r"];
    let told = site.ff(&cancel);
    assert_eq!(told.code, 2, "nobody is there to ask: {told:?}");
    assert!(told.err.contains("would take 3") && told.err.contains("--yes"), "{told:?}");
    assert_eq!(site.ff(&[&cancel[..], &["--json"]].concat()).problem(2), "invalid_input");
    assert_eq!(site.ff(&["ls", "--state", "waiting", "-q"]).ok().lines().count(), 3);
    assert_eq!(site.ff(&[&cancel[..], &["--yes"]].concat()).ok(), "done: 3 of them\n");
    assert_eq!(site.ff(&["ls", "--state", "cancelled", "-q"]).ok().lines().count(), 3);
    let json = site.ff(&["replay", "--filter", "--kind", "k", "--yes", "--json"]).json();
    assert_eq!((&json["state"], &json["done"]), (&json!("done"), &json!(3)));
}

#[test]
fn the_server_is_asked_whether_its_store_is_sound() {
    let site = Site::start();
    site.submit(&[]);
    let report = replies(&site, "doctor --repair");
    assert_eq!((&report["checked"], &report["violations"]), (&json!(1), &json!([])));
    assert!(site.ff(&["doctor"]).ok().contains("checked    1 records"));
}
