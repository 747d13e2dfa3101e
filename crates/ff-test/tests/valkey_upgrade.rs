//! Two builds on one server: a library serves its own call version and the one before, and only a
//! newer one takes its place.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::Duration;

use ff_backend_valkey::{OpenError, ValkeyOptions, ValkeyStore};
use ff_core::backend::{Backend, Upkeep};
use ff_test::servers::{Server, ServerOptions};
use ff_test::workload::{Workload, check};

const SMALL: Workload = Workload { submitters: 4, submits_each: 50, workers: 4 };

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

/// Puts a library of another call version in its place, as another build would.
fn load_as(server: &Server, call_version: u32) {
    let now = format!("local CALL_VERSION = {}\n", version(server));
    let code = library(server);
    assert!(code.contains(&now), "the version stands in the code");
    let code = code.replace(&now, &format!("local CALL_VERSION = {call_version}\n"));
    server.command(&["FUNCTION", "LOAD", "REPLACE", &code]).unwrap();
    assert_eq!(version(server), call_version);
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
