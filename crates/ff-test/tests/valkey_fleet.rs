//! Lanes, workers and leases on Valkey as a deployment has them: over all partitions, after a repair, and
//! with callers at once.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ff_backend_valkey::ValkeyStore;
use ff_core::backend::{BackendExt, Upkeep};
use ff_core::id::{ExecutionId, Kind, LaneId, Namespace};
use ff_core::limits;
use ff_core::operation::{Claim, Submit, Task};
use ff_core::read::{
    Audit, DescribeLane, LaneSnapshot, LeasesOf, ListExpiredLeases, ListLanes, ListedLease, Page,
};
use ff_core::state::PublicState;
use ff_test::registered::registration_of;
use ff_test::servers::{Cluster, ClusterOptions, Server, ServerOptions};
use ff_test::workload;
use ff_test::world::{PATIENCE, cancel, capabilities, complete, policy, renew, revoke};
use tokio::task::JoinSet;
use uuid::Uuid;

async fn open(url: &str) -> Arc<ValkeyStore> {
    let store = ValkeyStore::open(url.parse().unwrap()).await.unwrap();
    store.call(registration_of(&claim(1))).await.unwrap();
    Arc::new(store)
}

fn claim(max: u32) -> Claim {
    Claim { max, lease_ttl_ms: limits::LEASE_TTL_MAX_MS, ..workload::claim(0) }
}

fn lane() -> LaneId {
    claim(1).lanes[0].lane.clone()
}

async fn submit(store: &ValkeyStore, count: usize) {
    let work = || {
        let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
        Submit::new(id, lane(), Kind::new("work").unwrap())
    };
    store.submit_batch((0..count).map(|_| work()).collect()).await.unwrap();
}

async fn take(store: &ValkeyStore, count: u32) -> Vec<Task> {
    let tasks = store.claim(claim(count), Duration::ZERO).await.unwrap();
    assert_eq!(tasks.len(), count as usize);
    tasks
}

async fn describe(store: &ValkeyStore) -> LaneSnapshot {
    let question = DescribeLane { namespace: Namespace::default(), lane: lane() };
    *store.ask(question).await.unwrap()
}

/// How many wait and run.
async fn depth(store: &ValkeyStore) -> (u32, u32) {
    let found = describe(store).await;
    (found.depth.of(PublicState::Waiting), found.running)
}

async fn assert_sound(store: &ValkeyStore) {
    assert_eq!(store.ask(Audit).await.unwrap().violations, []);
}

async fn leases(store: &ValkeyStore, cursor: Option<String>, limit: u32) -> Page<ListedLease> {
    let (namespace, worker_instance_id) = (Namespace::default(), None);
    store.ask(LeasesOf { namespace, worker_instance_id, cursor, limit }).await.unwrap()
}

/// All leases, so many a page.
async fn walk(store: &ValkeyStore, limit: u32) -> Vec<ExecutionId> {
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = leases(store, cursor, limit).await;
        seen.extend(page.items.into_iter().map(|lease| lease.execution_id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return seen;
        }
    }
}

fn ids(tasks: &[Task]) -> Vec<ExecutionId> {
    let mut ids: Vec<_> = tasks.iter().map(|task| task.execution_id).collect();
    ids.sort_unstable();
    ids
}

async fn leases_of_all_partitions_come_once(store: &ValkeyStore) {
    const LEASES: u32 = 300;
    submit(store, LEASES as usize).await;
    let tasks = take(store, LEASES).await;
    let partitions: BTreeSet<_> = tasks.iter().map(|task| task.execution_id.partition()).collect();
    assert!(partitions.len() > 32, "{} partitions", partitions.len());
    for limit in [7, 100, 500] {
        let mut seen = walk(store, limit).await;
        seen.sort_unstable();
        assert_eq!(seen, ids(&tasks), "{limit} a page");
    }
    store.call(renew(&tasks[0])).await.unwrap();
    let question = ListExpiredLeases { namespace: Namespace::default(), cursor: None, limit: 10 };
    assert_eq!(store.ask(question).await.unwrap().items, []);
    assert_sound(store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_of_all_partitions_come_once_on_one_node() {
    let server = Server::start(ServerOptions::default());
    leases_of_all_partitions_come_once(&*open(&server.url()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_of_all_partitions_come_once_in_a_cluster() {
    let cluster = Cluster::start(&ClusterOptions::default());
    leases_of_all_partitions_come_once(&*open(&cluster.url()).await).await;
}

async fn counts_follow_callers_at_once(store: Arc<ValkeyStore>) {
    const WORK: u32 = 200;
    submit(&store, WORK as usize).await;
    assert_eq!(depth(&store).await, (WORK, 0));
    let mut calls = JoinSet::new();
    for _ in 0..8 {
        let store = Arc::clone(&store);
        calls.spawn(async move {
            let tasks = take(&store, WORK / 16).await;
            for task in &tasks[..tasks.len() / 2] {
                store.call(complete(task)).await.unwrap();
            }
            tasks.len() - tasks.len() / 2
        });
    }
    let running: usize = calls.join_all().await.into_iter().sum();
    let waiting = WORK - 8 * (WORK / 16);
    assert_eq!(depth(&store).await, (waiting, u32::try_from(running).unwrap()));
    assert_sound(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_follow_callers_at_once_on_one_node() {
    let server = Server::start(ServerOptions::default());
    counts_follow_callers_at_once(open(&server.url()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_follow_callers_at_once_in_a_cluster() {
    let cluster = Cluster::start(&ClusterOptions::default());
    counts_follow_callers_at_once(open(&cluster.url()).await).await;
}

/// The keys that count lanes.
fn counts(server: &Server) -> Vec<String> {
    let keys = server.command(&["KEYS", "*}:lanes:*"]).unwrap();
    keys.lines().filter(|key| !key.is_empty()).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_the_counts_of_an_empty_lane() {
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    submit(&store, 50).await;
    assert!(!counts(&server).is_empty());
    for task in take(&store, 50).await {
        store.call(complete(&task)).await.unwrap();
    }
    assert_eq!(counts(&server), [""; 0]);
    let question =
        ListLanes { namespace: Namespace::default(), within: None, cursor: None, limit: 10 };
    let lanes = store.ask(question).await.unwrap().items;
    assert_eq!(lanes.iter().map(|lane| lane.running).sum::<u32>(), 0);
    assert_sound(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_counts_lanes_anew() {
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    submit(&store, 100).await;
    take(&store, 20).await;
    let before = depth(&store).await;
    assert_eq!(before, (80, 20));
    let keys = counts(&server);
    server.command(&["DEL", &keys[0]]).unwrap();
    server.command(&["HINCRBY", &keys[1], &format!("0:{}", lane()), "1000"]).unwrap();
    server.command(&["HSET", &keys[2], "4:nothing runs here", "3", "what is this", "1"]).unwrap();
    assert_ne!(depth(&store).await, before);
    let repaired = store.repair().await.unwrap();
    assert!(repaired.found.violations.iter().all(|found| found.invariant == "I11"));
    assert!(repaired.found.violations.len() >= 4, "{:?}", repaired.found.violations);
    assert_eq!(repaired.left.violations, []);
    assert_eq!(depth(&store).await, before);
}

/// Queues whose required capabilities are noted.
fn required(server: &Server) -> Vec<String> {
    let keys = server.command(&["KEYS", "*}:required"]).unwrap();
    let keys = keys.lines().filter(|key| !key.is_empty());
    keys.flat_map(|key| {
        let queues = server.command(&["HKEYS", key]).unwrap();
        queues.lines().map(str::to_owned).collect::<Vec<_>>()
    })
    .collect()
}

/// Submits executions that require one capability each, all different.
async fn submit_requiring(store: &ValkeyStore, count: usize) -> Vec<ExecutionId> {
    let work = |n: usize| {
        let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
        let json = format!(r#"{{"routing_requirements":{{"required_capabilities":["can-{n}"]}}}}"#);
        let mut submit = Submit::new(id, lane(), Kind::new("work").unwrap());
        submit.policy = policy(&json);
        submit
    };
    let work: Vec<Submit> = (0..count).map(work).collect();
    let ids = work.iter().map(|submit| submit.execution_id).collect();
    store.submit_batch(work).await.unwrap();
    ids
}

/// Whether queues become empty by claims or by what else ends executions.
async fn nothing_is_left_of_an_empty_queue(store: Arc<ValkeyStore>, servers: &[Server]) {
    let known = || servers.iter().flat_map(required).count();
    let ids = submit_requiring(&store, 30).await;
    assert_eq!(known(), 30);
    for id in &ids[..10] {
        store.call(cancel(*id)).await.unwrap();
    }
    assert_eq!(known(), 20);
    let able: Vec<String> = (0..30).map(|n| format!("can-{n}")).collect();
    let able: Vec<&str> = able.iter().map(String::as_str).collect();
    let able = Claim { capabilities: capabilities(&able), ..claim(20) };
    store.call(registration_of(&able)).await.unwrap();
    let mut tasks = Vec::new();
    while tasks.len() < 20 {
        tasks.extend(store.claim(able.clone(), PATIENCE).await.unwrap());
    }
    assert_eq!(known(), 0);
    for task in &tasks {
        store.call(revoke(task.execution_id)).await.unwrap();
    }
    assert_eq!(known(), 20);
    assert_sound(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_what_an_empty_queue_requires() {
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    nothing_is_left_of_an_empty_queue(store, std::slice::from_ref(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_what_an_empty_queue_requires_in_a_cluster() {
    let cluster = Cluster::start(&ClusterOptions::default());
    nothing_is_left_of_an_empty_queue(open(&cluster.url()).await, cluster.nodes()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_says_again_what_queues_require() {
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    submit_requiring(&store, 5).await;
    let keys = server.command(&["KEYS", "*}:required"]).unwrap();
    for key in keys.lines().filter(|key| !key.is_empty()) {
        server.command(&["DEL", key]).unwrap();
    }
    let repaired = store.repair().await.unwrap();
    let found = repaired.found.violations;
    assert_eq!((found.len(), required(&server).len()), (5, 5), "{found:?}");
    assert_eq!(repaired.left.violations, []);
}
