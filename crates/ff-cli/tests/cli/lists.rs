//! Lists that are longer than a page, and searches that find little among much.

use std::fs;

use serde_json::json;

use crate::support::{Running, Site, Told};

/// More than a search looks ahead for one page.
const AHEAD: usize = 10_000;

/// Submits so many in one command: how many were taken.
fn submit(site: &Site, lane: &str, namespace: &str, count: usize) -> usize {
    let line = format!("{}\n", json!({ "lane": lane, "kind": "k", "tags": { "a.b": lane } }));
    let file = site.folder.path().join("batch.ndjson");
    fs::write(&file, line.repeat(count)).unwrap();
    let batch = ["--namespace", namespace, "submit", "--batch", file.to_str().unwrap()];
    site.ff(&batch).ok().lines().count()
}

fn rows(told: &Told) -> usize {
    told.out.lines().filter(|line| line.starts_with('{')).count()
}

#[test]
fn what_is_behind_many_newer_ones_is_found() {
    let site = Site::start();
    assert_eq!(submit(&site, "first", "default", 3), 3);
    assert_eq!(submit(&site, "other", "team", 2), 2);
    assert_eq!(submit(&site, "many", "default", AHEAD + 1), AHEAD + 1);
    for filter in [["--lane", "first"], ["--tag", "a.b:first"]] {
        let told = site.ff(&[&["ls"], &filter[..]].concat());
        assert_eq!((rows(&told), told.err.as_str()), (3, ""), "{filter:?}: {told:?}");
    }
    let all = site.ff(&["ls", "--lane", "first", "--json"]).json();
    assert_eq!((all["items"].as_array().unwrap().len(), &all["next_cursor"]), (3, &json!(null)));
    let quiet = site.ff(&["ls", "--lane", "first", "--quiet"]);
    assert_eq!(rows(&quiet), 3, "{quiet:?}");
    let some = site.ff(&["ls", "--lane", "first", "--limit", "2"]);
    assert!(rows(&some) == 2 && some.err.contains("there is more"), "{some:?}");
    let exact = site.ff(&["ls", "--lane", "first", "--limit", "3"]);
    assert_eq!((rows(&exact), exact.err.as_str()), (3, ""), "{exact:?}");
    let none = site.ff(&["ls", "--state", "failed"]);
    assert!(none.out.is_empty() && none.err.contains("filters"), "{none:?}");
    let team = site.ff(&["ls", "--namespace", "team"]);
    assert_eq!((rows(&team), team.err.as_str()), (2, ""), "{team:?}");
    let watching = Running::start(site.command(&["watch", "--lane", "first", "--json"]));
    watching.line_with("\"lane\":\"first\"");
}

#[test]
fn a_pipe_gets_every_row() {
    let site = Site::start();
    assert_eq!(submit(&site, "l", "default", 620), 620);
    assert_eq!(rows(&site.ff(&["ls", "--state", "waiting", "--quiet"])), 620);
    assert_eq!(rows(&site.ff(&["ls", "--quiet", "--limit", "7"])), 7);
    let shown = site.ff(&["ls"]);
    assert!(rows(&shown) == 50 && shown.err.contains("there is more"), "{shown:?}");
    for n in 0..60 {
        site.ff(&[
            "budget",
            "create",
            "--scope-type",
            "lane",
            "--scope-id",
            &format!("l{n}"),
            "--hard",
            "t=1",
        ])
        .ok();
    }
    assert_eq!(site.ff(&["budget", "ls", "-q"]).ok().lines().count(), 60);
}
