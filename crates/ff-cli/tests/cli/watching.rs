//! Streams on the command line.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Running, Site};

#[test]
fn one_execution_is_watched_to_its_end() {
    let site = Site::start();
    let id = site.submit(&[]);
    let mut watching = Running::start(site.command(&["watch", &id, "--json"]));
    let first: Value = serde_json::from_str(&watching.line_with("execution_id")).unwrap();
    assert_eq!(first["public_state"], "waiting", "the present state comes first");
    let task = site.claim();
    watching.line_with("execution.claimed");
    task.complete(&json!(1));
    let last: Value = serde_json::from_str(&watching.line_with("execution.completed")).unwrap();
    assert_eq!(last["outcome"], "success");
    assert_eq!(watching.ended(), 0);
    let over = site.ff(&["watch", &id]).ok();
    assert!(over.contains("completed") && over.lines().count() == 1, "{over}");
    let failed = site.submit(&[]);
    site.claim().fail();
    assert!(site.ff(&["watch", &failed]).ok().contains("no luck"), "its end is no failure");
}

#[test]
fn the_log_is_followed_from_a_place() {
    let site = Site::start();
    let id = site.submit(&[]);
    let from_start = Running::start(site.command(&["events", "--after", "start", "--json"]));
    let event: Value = serde_json::from_str(&from_start.line_with("execution.submitted")).unwrap();
    assert_eq!(event["subject"], *id);
    let watching = Running::start(site.command(&["watch", "--lane", "other", "--json"]));
    let only = ["events", "--after", "start", "--types", "execution.cancelled"];
    let cancels = Running::start(site.command(&only));
    let other = site.ff(&["submit", "--lane", "other", "--kind", "k", "-q"]).ok();
    site.ff(&["cancel", other.trim()]).ok();
    watching.line_with("execution.cancelled");
    assert!(cancels.line_with("execution.").contains("cancelled"));
    assert_eq!(site.ff(&["events", "--after", "nowhere", "--json"]).problem(5), "invalid_cursor");
}

#[test]
fn filters_that_only_a_record_answers_hold_for_followers_too() {
    let site = Site::start();
    let lost = site.submit(&[]);
    site.ff(&["cancel", &lost]).ok();
    let kept = site.submit(&[]);
    let all = ["events", "--after", "start", "--json"];
    let with = |filters: &[&str]| Running::start(site.command(&[&all[..], filters].concat()));
    let waiting = with(&["--state", "waiting", "--created-after", "2020-01-01T00:00:00Z"]);
    assert!(waiting.line_with("execution.").contains(&kept), "the other is not waiting");
    let cancelled = with(&["--state", "cancelled", "--types", "execution.cancelled"]);
    assert!(cancelled.line_with("execution.").contains(&lost));
    let watching =
        ["watch", "--json", "--state", "cancelled", "--created-before", "2999-01-01T00:00:00Z"];
    let watching = Running::start(site.command(&watching));
    assert!(watching.line_with("execution_id").contains(&lost), "what is there comes first");
    site.ff(&["cancel", &kept]).ok();
    assert!(watching.line_with("execution.cancelled").contains(&kept));
    for bad in [&["--state", "odd"][..], &["--created-after", "soon"]] {
        assert_eq!(site.ff(&[&all[..], bad].concat()).problem(5), "invalid_input", "{bad:?}");
        assert_eq!(site.ff(&[&["watch", "--json"], bad].concat()).problem(5), "invalid_input");
    }
}

#[test]
fn a_follower_outlives_a_restart_of_the_server() {
    let mut site = Site::start();
    let addr = site.url.strip_prefix("http://").unwrap().to_owned();
    let watching = Running::start(site.command(&["events", "--after", "start", "--json"]));
    site.submit(&[]);
    watching.line_with("execution.submitted");
    assert_eq!(site.running.terminate(), 0);
    let serve = ["server", "--store", &site.store, "--listen-addr", &addr];
    let again = Running::start(crate::support::command(&serve));
    again.line_with("listening on ");
    let id = site.submit(&[]);
    assert!(watching.line_with("execution.submitted").contains(&id), "nothing comes twice");
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let site = Site::start();
    for _ in 0..3 {
        site.submit(&[]);
    }
    for arguments in [&["ls"][..], &["events", "--after", "start"], &["completions", "bash"]] {
        let mut child =
            site.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?} {output:?}");
        assert!(output.stderr.is_empty(), "{arguments:?} {output:?}");
    }
}
