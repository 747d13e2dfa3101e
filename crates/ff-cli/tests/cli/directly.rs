//! The same verbs on a store, without a server.

use ff_test::servers::{Server, ServerOptions};
use serde_json::json;

use crate::support::{Site, Told, ff};

/// Submits, reads, changes, cancels and replays by commands that each open the store.
fn one_life(store: &str) {
    let on = |arguments: &[&str]| -> Told { ff(&[&["--store", store], arguments].concat()) };
    let submit = ["submit", "--lane", "l", "--kind", "k", "--key", "k-1", "--json"];
    let first = on(&submit).json();
    assert_eq!(first["status"], "created");
    assert_eq!(on(&submit).json()["execution_id"], first["execution_id"]);
    let id = first["execution_id"].as_str().unwrap();
    assert_eq!(on(&["ls", "-q"]).ok(), format!("{id}\n"));
    assert_eq!(on(&["get", id, "--json"]).json()["public_state"], "waiting");
    on(&["hold", id]).ok();
    assert_eq!(on(&["explain", id, "--json"]).json()["cause"], "operator_hold");
    on(&["release", id]).ok();
    on(&["priority", id, "5"]).ok();
    on(&["tag", id, "a.b=c"]).ok();
    assert_eq!(on(&["watch", "none", "--json"]).problem(5), "invalid_input");
    assert_eq!(
        on(&["get", "{fp:1}:01890000-0000-7000-8000-000000000000", "--json"]).problem(3),
        "execution_not_found"
    );
    on(&["cancel", id]).ok();
    assert!(on(&["watch", id]).ok().contains("cancelled"));
    on(&["replay", id]).ok();
    on(&["cancel", id]).ok();
    on(&["delete", id]).ok();
    assert_eq!(on(&["ls", "-q"]).ok(), "");
    on(&["migrate"]).ok();
    assert!(on(&["doctor"]).ok().contains("no invariant is violated"));
}

#[test]
fn on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("ff.db").display());
    let check = ["--store", &store, "migrate", "--check"];
    assert_eq!(ff(&check).code, 4, "there is no store yet");
    let nobody = "{fp:1}:01890000-0000-7000-8000-000000000000";
    for look in [&["ls"][..], &["get", nobody], &["events"], &["watch"], &["doctor"]] {
        let told = ff(&[&["--store", &store, "--json"], look].concat());
        assert_eq!(told.problem(8), "unavailable", "{look:?}");
        assert!(!folder.path().join("ff.db").exists(), "{look:?} makes no store");
    }
    one_life(&store);
    assert_eq!(ff(&check).ok(), "the store is up to date\n");
}

/// Every kind of command, with what it looks for.
const LOOKS: [&[&str]; 4] = [&["ls"], &["doctor"], &["worker", "ls"], &["events"]];

#[test]
fn what_only_looks_makes_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("empty.db");
    std::fs::write(&file, "").unwrap();
    let store = format!("sqlite:{}", file.display());
    let server = Server::start(ServerOptions::default());
    for store in [store, format!("{}?prefix=look", server.url())] {
        for look in LOOKS {
            let told = ff(&[&["--store", &store, "--json"], look].concat());
            assert_eq!(told.problem(8), "unavailable", "{store} {look:?}");
        }
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"");
    assert_eq!(server.command(&["DBSIZE"]).unwrap().trim(), "0");
}

/// Functions are shared by all stores of a server: that they are there says nothing of a prefix.
#[test]
fn what_only_looks_makes_no_store_beside_another() {
    let server = Server::start(ServerOptions::default());
    let at = |prefix: &str| format!("{}?prefix={prefix}", server.url());
    ff(&["--store", &at("one"), "migrate"]).ok();
    let keys = || server.command(&["KEYS", "*"]).unwrap();
    let before = keys();
    for look in LOOKS {
        let told = ff(&[&["--store", &at("other"), "--json"], look].concat());
        assert_eq!(told.problem(8), "unavailable", "{look:?}");
        assert_eq!(keys(), before, "{look:?}");
    }
    let told = ff(&["--store", &at("other"), "ls"]);
    assert!(told.err.contains("prefix \"other\""), "{}", told.err);
    assert!(told.err.contains("ff migrate"), "{}", told.err);
    ff(&["--store", &at("other"), "migrate"]).ok();
    for prefix in ["one", "other"] {
        assert_eq!(ff(&["--store", &at(prefix), "ls", "-q"]).ok(), "");
    }
}

/// A look changes no functions that others use either.
#[test]
fn what_only_looks_leaves_other_functions_alone() {
    let server = Server::start(ServerOptions::default());
    let store = format!("{}?prefix=one", server.url());
    ff(&["--store", &store, "migrate"]).ok();
    let code = "#!lua name=flowfabric\n\
        local function version() return {1, 'of another build'} end\n\
        redis.register_function{function_name='ff_version', callback=version, flags={'no-writes'}}";
    server.command(&["FUNCTION", "LOAD", "REPLACE", code]).unwrap();
    let check = ["--store", &store, "migrate", "--check"];
    assert_eq!(ff(&check).code, 4);
    let other = format!("{}?prefix=other", server.url());
    assert_eq!(ff(&["--store", &other, "--json", "ls"]).problem(8), "unavailable");
    assert_eq!(ff(&check).code, 4, "the functions are those of the other build");
}

#[test]
fn a_database_of_another_application_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("songs.db");
    let songs = rusqlite::Connection::open(&file).unwrap();
    songs.execute_batch("CREATE TABLE song (title)").unwrap();
    drop(songs);
    let before = std::fs::read(&file).unwrap();
    let store = format!("sqlite:{}", file.display());
    let submit: &[&str] = &["submit", "--lane", "l", "--kind", "k"];
    let others = [submit, &["server"], &["dev"], &["migrate"], &["migrate", "--check"]];
    for command in LOOKS.into_iter().chain(others) {
        let told = ff(&[&["--store", &store], command].concat());
        assert_eq!(told.code, 2, "{command:?}: {told:?}");
        let names = told.err.contains("songs.db") && told.err.contains("another application");
        assert!(names, "{command:?}: {told:?}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn a_file_that_is_no_store_is_told_as_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ff.db");
    let store = format!("sqlite:{}", file.display());
    ff(&["--store", &store, "submit", "--lane", "l", "--kind", "k"]).ok();
    let newer = rusqlite::Connection::open(&file).unwrap();
    newer.pragma_update(None, "user_version", 1000).unwrap();
    drop(newer);
    for command in [&["ls"][..], &["migrate", "--check"], &["migrate"]] {
        let told = ff(&[&["--store", &store], command].concat());
        assert_eq!(told.code, 2, "{command:?}: {told:?}");
        assert!(told.err.contains("version 1000"), "{command:?}: {told:?}");
    }
    std::fs::write(&file, "no database at all, however long it may be ".repeat(50)).unwrap();
    let told = ff(&["--store", &store, "ls"]);
    assert!(told.code == 2 && told.err.contains("ff.db"), "{told:?}");
    assert_eq!(ff(&["--store", &store, "ls", "--json"]).problem(2), "corruption");
}

#[test]
fn on_valkey() {
    let server = Server::start(ServerOptions::default());
    let store = format!("{}?prefix=cli", server.url());
    let check = ["--store", &store, "migrate", "--check"];
    let told = ff(&check);
    assert_eq!(told.code, 4, "there is no library yet: {told:?}");
    let listed = server.command(&["FUNCTION", "LIST"]).unwrap();
    assert_eq!(listed.trim(), "", "and a look brings none");
    one_life(&store);
    assert_eq!(ff(&check).ok(), "the store is up to date\n");
    let json = ff(&[&check[..], &["--json"]].concat()).json();
    assert_eq!(json["version"], json["known"], "{json}");
    let code = "#!lua name=flowfabric\n\
        redis.register_function{function_name='ff_version', flags={'no-writes'}, \
        callback=function() return {1, 'another'} end}";
    server.command(&["FUNCTION", "LOAD", "REPLACE", code]).unwrap();
    let told = ff(&check);
    assert_eq!(told.code, 4, "{told:?}");
    assert!(told.err.contains("another content"), "{told:?}");
    ff(&["--store", &store, "migrate"]).ok();
    ff(&check).ok();
}

#[test]
fn what_a_server_left_is_there() {
    let mut site = Site::start();
    let id = site.submit(&[]);
    let task = site.claim();
    task.print("stdout", "hello");
    task.complete(&json!({ "a": 1 }));
    let waits = site.submit(&[]);
    site.claim().suspend(&["go"]);
    let busy = ff(&["--store", &site.store, "ls"]);
    assert_eq!(busy.code, 8, "the file has an owner");
    assert!(busy.err.contains("leave --store out"), "{}", busy.err);
    assert_eq!(ff(&["--store", &site.store, "ls", "--json"]).problem(8), "unavailable");
    assert_eq!(site.running.terminate(), 0);
    let on = |arguments: &[&str]| ff(&[&["--store", &site.store], arguments].concat());
    assert_eq!(on(&["result", &id]).ok(), r#"{"a":1}"#);
    assert_eq!(on(&["logs", &id]).ok(), "\"hello\"\n");
    assert_eq!(on(&["logs", &id, "--follow"]).ok(), "\"hello\"\n");
    assert!(on(&["approve", &waits]).ok().starts_with("accepted"));
    assert_eq!(on(&["worker", "ls", "-q"]).ok(), "w-1\n");
}

#[test]
fn a_server_on_valkey_and_a_store_opened_beside_it() {
    let server = Server::start(ServerOptions::default());
    let store = format!("{}?prefix=both", server.url());
    let site = Site::on(store.clone(), tempfile::tempdir().unwrap());
    let id = site.submit(&[]);
    assert_eq!(ff(&["--store", &store, "ls", "-q"]).ok(), format!("{id}\n"));
    site.claim().complete(&json!(1));
    assert_eq!(ff(&["--store", &store, "result", &id]).ok(), "1");
    assert!(site.ff(&["watch", &id]).ok().contains("completed"));
}
