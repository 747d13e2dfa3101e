//! How many connections a process has: one for its calls, and one for each thing that it waits for.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::time::Duration;

use ff_backend_valkey::ValkeyStore;
use ff_core::backend::{Backend, BackendExt};
use ff_core::read::{EventFilter, Follow, From};
use ff_test::servers::{Server, ServerOptions};
use ff_test::workload;

/// Connections to the server, without the one that asks.
fn connections(server: &Server) -> u64 {
    let info = server.command(&["INFO", "clients"]).unwrap();
    let count = info.lines().find_map(|line| line.strip_prefix("connected_clients:")).unwrap();
    count.trim().parse::<u64>().unwrap() - 1
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_again_and_again_takes_no_further_connection() {
    let server = Server::start(ServerOptions::default());
    let store = ValkeyStore::open(server.url().parse().unwrap()).await.unwrap();
    assert_eq!(connections(&server), 1);
    let moment = Duration::from_millis(5);
    for _ in 0..30 {
        let from = From::Start;
        let follow = Follow { filter: EventFilter::default(), from, limit: 10 };
        store.events(follow, moment).await.unwrap();
        store.sooner_timer(None, moment).await.unwrap();
        store.claim(workload::claim(0), moment).await.unwrap();
    }
    let found = connections(&server);
    assert!((1..=4).contains(&found), "{found} connections for calls, events, timers and claims");
}
