//! How many connections a process has: one for its calls, and one for each thing that it waits for.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::Duration;

use ff_backend_valkey::ValkeyStore;
use ff_core::backend::{BackendExt, Upkeep as _};
use ff_core::id::{ExecutionId, Kind, Namespace};
use ff_core::operation::{Claim, Submit};
use ff_core::read::{EventFilter, Follow, From, ReadState, Tail};
use ff_core::state::FrameId;
use ff_test::registered::registration_of;
use ff_test::servers::{Cluster, ClusterOptions, Server, ServerOptions, wait_until};
use ff_test::stages::InItsTime;
use ff_test::workload;
use ff_test::world::{PATIENCE, World, namespace};
use tokio::task::JoinSet;
use uuid::Uuid;

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
    store.call(registration_of(&workload::claim(0))).await.unwrap();
    for _ in 0..30 {
        let from = From::Start;
        let follow = Follow { filter: EventFilter::default(), from, limit: 10, each: false };
        store.events(follow, moment).await.unwrap();
        store.sooner_timer(None, moment).await.unwrap();
        store.claim(workload::claim(0), moment).await.unwrap();
    }
    let found = connections(&server);
    assert!((1..=4).contains(&found), "{found} connections for calls, events, timers and claims");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_tails_of_a_process_share_one_connection() {
    let server = Server::start(ServerOptions::default());
    let open = || async { ValkeyStore::open(server.url().parse().unwrap()).await.unwrap() };
    let (writer, reader) = (open().await, Arc::new(open().await));
    let world = World::new(InItsTime(Arc::new(writer)));
    for _ in 0..50 {
        world.submit(world.work()).await;
    }
    let mut tails = JoinSet::new();
    let tasks = world.claim(50).await;
    for task in &tasks {
        let (reader, tail) =
            (Arc::clone(&reader), Tail::after(task.execution_id, 0, FrameId::FIRST));
        tails.spawn(async move { reader.tail(tail, Duration::from_secs(20)).await.unwrap() });
    }
    wait_until("the tails listen", PATIENCE, || connections(&server) >= 3);
    for task in &tasks {
        world.print(task, "from another process").await;
    }
    let pages = tokio::time::timeout(PATIENCE, tails.join_all()).await.unwrap();
    assert!(pages.iter().all(|page| page.frames.len() == 1));
    assert_eq!(connections(&server), 3, "each process has one, and the tails another");
}

/// A process that stops while calls wait for each other's turn must not wait for itself.
#[test]
fn a_runtime_that_shuts_down_under_load_ends() {
    let server = Server::start(ServerOptions::default());
    for _ in 0..20 {
        let url = server.url();
        let (tell, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let store = Arc::new(ValkeyStore::open(url.parse().unwrap()).await.unwrap());
                let register = registration_of(&workload::claim(0));
                let (begun, mut first) = tokio::sync::mpsc::unbounded_channel();
                for _ in 0..64 {
                    let (store, register, begun) =
                        (Arc::clone(&store), register.clone(), begun.clone());
                    tokio::spawn(async move {
                        loop {
                            store.call(register.clone()).await.ok();
                            begun.send(()).ok();
                        }
                    });
                }
                first.recv().await.unwrap();
            });
            drop(runtime);
            tell.send(()).unwrap();
        });
        ended.recv_timeout(PATIENCE).expect("the runtime ends");
    }
}

/// Claims that wait in many namespaces share one connection, and each is woken for its own work.
#[tokio::test(flavor = "multi_thread")]
async fn claims_that_wait_in_many_namespaces_share_one_connection() {
    const NAMESPACES: usize = 40;
    let server = Server::start(ServerOptions::default());
    let open = || async { ValkeyStore::open(server.url().parse().unwrap()).await.unwrap() };
    let (submitting, waiting) = (open().await, Arc::new(open().await));
    let claim = |name: &Namespace| Claim { namespace: name.clone(), ..workload::claim(0) };
    let names: Vec<_> = (0..NAMESPACES).map(|n| namespace(&format!("tenant-{n}"))).collect();
    let mut claims = JoinSet::new();
    for name in &names {
        waiting.call(registration_of(&claim(name))).await.unwrap();
        let (store, claim) = (Arc::clone(&waiting), claim(name));
        claims.spawn(async move { store.claim(claim, 2 * PATIENCE).await.unwrap() });
    }
    // One of each process for its calls, and the one that waits.
    wait_until("the process waits", PATIENCE, || connections(&server) == 3);
    for name in names.iter().rev() {
        let id = ExecutionId::solo(Uuid::now_v7(), &submitting.settings().partitions);
        let submit = Submit::new(id, claim(name).lanes[0].lane.clone(), Kind::new("x").unwrap());
        submitting.call(Submit { namespace: name.clone(), ..submit }).await.unwrap();
        let woken = tokio::time::timeout(PATIENCE, claims.join_next()).await.expect("woken");
        assert_eq!(woken.unwrap().unwrap()[0].execution_id, id, "in {name}");
    }
    assert_eq!(connections(&server), 3);
}

/// While a slot is on its way to a node that has none yet, calls are sent on to it over one connection.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_sent_on_share_one_connection() {
    const CALLS: usize = 200;
    let mut cluster = Cluster::start(&ClusterOptions::default());
    let store = ValkeyStore::open(cluster.url().parse().unwrap()).await.unwrap();
    let new = tokio::task::block_in_place(|| cluster.join());
    let slot = cluster.slot_of("x{fp:7}");
    cluster.begin_move(slot, cluster.owner_of(slot), new);
    let received = || {
        let info = cluster.nodes()[new].command(&["INFO", "stats"]).unwrap();
        let name = "total_connections_received:";
        let count = info.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        count.trim().parse::<usize>().unwrap()
    };
    let before = received();
    for _ in 0..CALLS {
        let execution_id = ExecutionId::solo_in(7, &store.settings().partitions);
        assert!(store.ask(ReadState { execution_id }).await.unwrap().is_none());
    }
    let made = received() - before;
    // Each count is a connection, too.
    assert!(made <= 10, "{made} connections for {CALLS} calls");
}
