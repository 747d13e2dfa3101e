//! `ff doctor` on stores that are sound and on one that is not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where it stopped")]

use std::process::{Command, Output};

use ff_backend_valkey::ValkeyStore;
use ff_core::backend::{BackendExt as _, Upkeep as _};
use ff_core::id::{ExecutionId, Kind, LaneId};
use ff_core::operation::Submit;
use ff_test::servers::{Server, ServerOptions};
use serde_json::Value;
use uuid::Uuid;

fn doctor(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ff")).arg("doctor").args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_new_store_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("ff.db").display());
    assert_eq!(doctor(&["--store", &url]).status.code(), Some(8), "a look makes no store");
    assert!(!folder.path().join("ff.db").exists());
    ff_backend_sqlite::SqliteStore::open(url.parse().unwrap()).unwrap();
    let output = doctor(&["--store", &url]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output).contains("no invariant is violated"), "{}", text(&output));
    let report: Value =
        serde_json::from_str(&text(&doctor(&["--store", &url, "--json", "--repair"]))).unwrap();
    assert_eq!((&report["violations"], &report["repaired"]), (&Value::Array(vec![]), &0.into()));
    assert!(report["audited_at"].is_string(), "{report}");
}

#[test]
fn a_store_that_is_not_there_is_told_with_its_code() {
    assert_eq!(doctor(&["--store", "valkey://127.0.0.1:1"]).status.code(), Some(8));
    assert_eq!(doctor(&["--store", "oracle:x"]).status.code(), Some(2));
}

/// Breaks each kind of index and leaves something behind, then repairs it.
#[tokio::test(flavor = "multi_thread")]
async fn what_records_decide_is_repaired() {
    let server = Server::start(ServerOptions::default());
    let url = format!("{}?prefix=doc", server.url());
    let store = ValkeyStore::open(url.parse().unwrap()).await.unwrap();
    let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
    let submit = Submit::new(id, LaneId::new("work").unwrap(), Kind::new("test").unwrap());
    store.call(submit).await.unwrap();
    let partition = id.partition();
    let index = |name: &str| format!("doc:idx:{{fp:{partition}}}:{name}");
    let left = format!("doc:exec:{{fp:{partition}}}:{}:payload", Uuid::now_v7());
    for words in [
        ["DEL", &index("lane:default/work:-:eligible"), "", ""],
        ["ZADD", &index("timers"), "5", "sixteen bytes ok"],
        ["SET", &left, "a payload of nobody", ""],
    ] {
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        server.command(&words).unwrap();
    }
    let output = doctor(&["--store", &url]);
    assert_eq!(output.status.code(), Some(10), "{}", text(&output));
    for told in ["I9", "I10", "I33", "ff doctor --repair"] {
        assert!(text(&output).contains(told), "{told}: {}", text(&output));
    }
    let output = doctor(&["--store", &url, "--repair"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("repaired   3 violations"), "{}", text(&output));
    assert_eq!(doctor(&["--store", &url]).status.code(), Some(0));
}
