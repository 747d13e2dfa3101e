//! Two builds on one server: a library serves its own call version and the one before, and only a
//! newer one takes its place.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::Duration;

use ff_backend_valkey::{OpenError, ValkeyOptions, ValkeyStore};
use ff_core::backend::{Backend, Upkeep};
use ff_core::error::Code;
use ff_test::servers::{Server, ServerOptions};
use ff_test::workload::{Workload, check};

const SMALL: Workload = Workload { submitters: 4, submits_each: 50, workers: 4 };

/// Goes on while libraries take each other's place.
const LONGER: Workload = Workload { submits_each: 200, ..SMALL };

fn options(server: &Server) -> ValkeyOptions {
    let options: ValkeyOptions = server.url().parse().unwrap();
    ValkeyOptions { call_timeout: Duration::from_secs(1), ..options }
}

/// The library on the server: its text.
fn library(server: &Server) -> String {
    let listed = server.command(&["FUNCTION", "LIST", "LIBRARYNAME", "flowfabric", "WITHCODE"]);
    let listed = listed.unwrap();
    let begin = listed.find("#!lua").expect("the code");
    listed[begin..].to_owned()
}

/// The call version of the library on the server.
fn version(server: &Server) -> u32 {
    let answer = server.command(&["FCALL_RO", "ff_version", "0"]).unwrap();
    answer.lines().next().unwrap().parse().unwrap()
}

/// Puts a library of another call version in its place, as another build would. A process at work may have
/// its own back there at once.
fn load_as(server: &Server, call_version: u32) {
    let now = format!("local CALL_VERSION = {}\n", version(server));
    let code = library(server);
    assert!(code.contains(&now), "the version stands in the code");
    let code = code.replace(&now, &format!("local CALL_VERSION = {call_version}\n"));
    server.command(&["FUNCTION", "LOAD", "REPLACE", &code]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn builds_that_are_one_version_apart_work_side_by_side() {
    let server = Server::start(ServerOptions::default());
    let old = ValkeyStore::open(options(&server)).await.unwrap();
    let ours = version(&server);
    let backends = [Arc::new(old) as Arc<dyn Backend>];
    // In mid-run a newer build comes and loads its library.
    let upgrade = async { load_as(&server, ours + 1) };
    let ledger = SMALL.run(&backends, upgrade).await;
    check(&*backends[0], &ledger).await;
    assert!(ledger.faults().is_empty(), "{:?}", ledger.faults());
    let another = ValkeyStore::open(options(&server)).await.unwrap();
    another.ping().await.unwrap();
    assert_eq!(version(&server), ours + 1, "an older build leaves the newer library alone");
}

/// A process of a build that is so many call versions ahead of ours.
async fn ahead(server: &Server, versions_ahead: u32) -> Result<Arc<dyn Backend>, OpenError> {
    let options = ValkeyOptions { versions_ahead, ..options(server) };
    ValkeyStore::open(options).await.map(|store| Arc::new(store) as Arc<dyn Backend>)
}

/// Returns when functions have been called so often to write.
async fn calls(server: &Server, most: u64) {
    let mut pause = tokio::time::interval(Duration::from_millis(5));
    let name = "cmdstat_fcall:calls=";
    loop {
        pause.tick().await;
        let stats = server.command(&["INFO", "commandstats"]).unwrap();
        let line = stats.lines().find_map(|line| line.strip_prefix(name));
        let calls = line.and_then(|line| line.split(',').next()).map(str::parse::<u64>);
        if calls.is_some_and(|calls| calls.unwrap() >= most) {
            return;
        }
    }
}

/// Returns when the library of that call version is in its place.
async fn until_version(server: &Server, wanted: u32) {
    let mut pause = tokio::time::interval(Duration::from_millis(5));
    // While there is none it has no version.
    while server.command(&["FCALL_RO", "ff_version", "0"]).is_err() || version(server) != wanted {
        pause.tick().await;
    }
}

/// A rolling upgrade: a process of the later build comes while one of the earlier build works; both submit,
/// claim and complete side by side, and libraries of both take each other's place; then the earlier one goes.
#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_upgrade_needs_no_stop() {
    let server = Server::start(ServerOptions::default());
    let old = ahead(&server, 0).await.unwrap();
    let ours = version(&server);
    let mut later = None;
    let upgrade = async {
        calls(&server, 50).await;
        later = Some(ahead(&server, 1).await.unwrap());
        assert_eq!(version(&server), ours + 1, "the later library is in its place");
    };
    let mut ledgers = vec![SMALL.run(std::slice::from_ref(&old), upgrade).await];
    let new = later.unwrap();
    let exchanges = async {
        for n in 0..6 {
            match n % 2 {
                0 => load_as(&server, ours),
                _ => drop(server.command(&["FUNCTION", "FLUSH"]).unwrap()),
            }
            until_version(&server, ours + 1).await;
        }
    };
    ledgers.push(LONGER.run(&[Arc::clone(&new), Arc::clone(&old)], exchanges).await);
    let another = ahead(&server, 0).await.unwrap();
    another.ping().await.unwrap();
    assert_eq!(version(&server), ours + 1, "an earlier build that comes leaves it alone");
    old.shutdown_prepare(Duration::from_secs(5)).await.unwrap();
    ledgers.push(SMALL.run(std::slice::from_ref(&new), std::future::ready(())).await);
    for ledger in ledgers {
        check(&*new, &ledger).await;
        check(&*another, &ledger).await;
        assert_eq!(ledger.faults(), []);
    }
    assert_eq!(version(&server), ours + 1);
}

/// Who is two versions behind a library is told so, whether it is at work or begins.
#[tokio::test(flavor = "multi_thread")]
async fn builds_that_are_two_versions_apart_do_not_mix() {
    let server = Server::start(ServerOptions::default());
    let old = ahead(&server, 0).await.unwrap();
    let ours = version(&server);
    old.server_time_ms().await.unwrap();
    let newest = ahead(&server, 2).await.unwrap();
    assert_eq!(version(&server), ours + 2);
    let words = format!("call version {}, this build works with up to {}", ours + 2, ours + 1);
    let refused = old.server_time_ms().await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    assert!(refused.to_string().contains(&words), "{refused}");
    let Err(refused) = ahead(&server, 0).await else { panic!("it was opened") };
    assert!(refused.to_string().contains(&words), "{refused}");
    ahead(&server, 1).await.unwrap().ping().await.unwrap();
    newest.server_time_ms().await.unwrap();
    assert_eq!(version(&server), ours + 2, "it stays in its place");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_one_version_is_refused() {
    let server = Server::start(ServerOptions::default());
    ValkeyStore::open(options(&server)).await.unwrap();
    let ours = version(&server);
    load_as(&server, ours + 2);
    match ValkeyStore::open(options(&server)).await {
        Err(error @ OpenError::LibraryTooNew { .. }) => {
            assert!(error.to_string().contains(&(ours + 2).to_string()), "{error}");
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("a library two versions ahead was used"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_build_replaces_an_older_library_and_serves_it() {
    let server = Server::start(ServerOptions::default());
    ValkeyStore::open(options(&server)).await.unwrap();
    let ours = version(&server);
    load_as(&server, ours - 1);
    ValkeyStore::open(options(&server)).await.unwrap();
    assert_eq!(version(&server), ours);
    // What a process of the build before still sends.
    let key = "ff:exec:{fp:0}:none:core";
    let call = |version: u32| {
        server.command(&["FCALL_RO", "ff_read", "1", key, &version.to_string(), "ff", "1"])
    };
    call(ours).unwrap();
    call(ours - 1).unwrap();
    let refused = call(ours + 1).unwrap_err();
    assert!(refused.contains("FFCALLVERSION"), "{refused}");
}
