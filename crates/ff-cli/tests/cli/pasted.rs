//! What `ff explain` offers is pasted into a shell, and does what it says.

use serde_json::json;

use crate::support::Site;

const TEAM: [&str; 2] = ["--namespace", "teama"];

fn first_way(site: &Site, explain: &[&str]) -> String {
    let told = site.ff(&[explain, &["--json"]].concat()).json();
    told["unblock"][0]["cli"].as_str().unwrap().to_owned()
}

#[test]
fn a_lane_is_resumed_in_its_own_namespace_whatever_its_name() {
    let site = Site::start();
    for lane in ["it's", "a b; exit 3", "$(exit 3)", "-x"] {
        let ff = |arguments: &[&str]| site.ff(&[&TEAM, arguments].concat());
        ff(&["lane", "pause", "--", lane]).ok();
        let id = ff(&["submit", "--kind", "k", &format!("--lane={lane}")]).ok();
        let explain = ["explain", id.trim_end(), "--namespace", "teama"];
        assert!(site.ff(&explain).ok().starts_with("lane_paused"), "{lane}");
        let line = first_way(&site, &explain);
        site.paste(&line).ok();
        let why = site.ff(&explain).ok();
        assert!(why.starts_with("waiting_for_worker"), "{line}: {why}");
    }
}

#[test]
fn what_a_suspended_execution_is_offered_lets_it_go_on() {
    let site = Site::start();
    for name in [None, Some("approved"), Some("it's on")] {
        let id = site.submit(&[]);
        let bindings = json!([{ "fresh": { "key": "d" } }]);
        let condition = json!({ "single": { "waitpoint_key": "d", "name": name } });
        let body = json!({ "bindings": bindings, "condition": condition });
        site.claim().act("suspend", body);
        let line = first_way(&site, &["explain", &id]);
        assert_eq!(site.paste(&line).ok(), "accepted: resume_condition_satisfied\n", "{line}");
        site.claim().complete(&json!(1));
    }
}

#[test]
fn times_are_told_as_people_read_them() {
    let site = Site::start();
    let id = site.submit(&[]);
    site.claim();
    let why = site.ff(&["explain", &id]).ok();
    let year = why.split("runs it since ").nth(1).and_then(|rest| rest.split('-').next());
    assert!(year.is_some_and(|year| year.len() == 4), "{why}");
    assert!(why.contains("lease_expires_at: 2"), "{why}");
}
