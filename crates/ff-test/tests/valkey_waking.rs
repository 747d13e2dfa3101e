//! Claims that wait: whoever can run what comes is woken, also for a burst, after a lost token, and
//! when something else fails.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_backend_valkey::ValkeyStore;
use ff_core::backend::{BackendExt, Upkeep};
use ff_core::id::{ExecutionId, Kind};
use ff_core::operation::{Claim, LaneOrder, LaneShare, Submit, Task};
use ff_core::state::LaneState;
use ff_core::turns::Turn;
use ff_test::fleet::set_lane;
use ff_test::registered::registration_of;
use ff_test::servers::{Cluster, ClusterOptions, Replicated, Server, ServerOptions, wait_until};
use ff_test::waits::{named, signal, suspend};
use ff_test::workload;
use ff_test::world::{PATIENCE, capabilities, lane, policy};
use tokio::task::JoinSet;
use uuid::Uuid;

/// Far longer than a wake takes on a busy machine, and far shorter than one execution a second.
const SOON: Duration = Duration::from_secs(5);

const LANES: [&str; 3] = ["faults", "qa", "qb"];

/// A process with a worker that is registered for all lanes.
async fn open(url: &str) -> Arc<ValkeyStore> {
    let store = ValkeyStore::open(url.parse().unwrap()).await.unwrap();
    store.call(registration_of(&claim(&LANES, 1))).await.unwrap();
    Arc::new(store)
}

fn claim(lanes: &[&str], max: u32) -> Claim {
    let lanes = lanes.iter().map(|name| LaneShare::new(lane(name))).collect();
    Claim { max, lanes, order: LaneOrder::Ordered, ..workload::claim(0) }
}

fn work(store: &ValkeyStore, name: &str) -> Submit {
    let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
    Submit::new(id, lane(name), Kind::new("wake").unwrap())
}

/// Claims that wait in a process.
fn wait_in(store: &Arc<ValkeyStore>, claims: usize, waiting: &mut JoinSet<Vec<Task>>) {
    for _ in 0..claims {
        let store = Arc::clone(store);
        let request = claim(&["faults"], 1);
        waiting.spawn(async move { store.claim(request, 2 * PATIENCE).await.unwrap() });
    }
}

/// How many processes wait for work: each blocks one connection.
fn blocked(servers: &[Server]) -> usize {
    let of = |server: &Server| {
        let clients = server.command(&["INFO", "clients"]).unwrap();
        let count = clients.lines().find_map(|line| line.strip_prefix("blocked_clients:"));
        count.unwrap().trim().parse::<usize>().unwrap()
    };
    servers.iter().map(of).sum()
}

/// How often commands were called, as the servers count it.
fn calls(servers: &[Server], command: &str) -> u64 {
    let name = format!("cmdstat_{command}:calls=");
    let of = |server: &Server| {
        let stats = server.command(&["INFO", "commandstats"]).unwrap();
        let line = stats.lines().find_map(|line| line.strip_prefix(&name).map(str::to_owned));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    };
    servers.iter().map(of).sum()
}

/// Waits until so many processes wait, and all of their claims have looked.
fn until_all_wait(servers: &[Server], processes: usize) {
    wait_until("the processes wait", PATIENCE, || blocked(servers) == processes);
    let (mut looks, mut quiet) = (u64::MAX, 0);
    wait_until("all of them wait", PATIENCE, || {
        let before = std::mem::replace(&mut looks, calls(servers, "fcall_ro"));
        quiet = if looks == before { quiet + 1 } else { 0 };
        quiet >= 20
    });
}

/// Submits one execution for each claim that waits, all at once: every claim has one soon.
async fn burst(submitting: &Arc<ValkeyStore>, mut waiting: JoinSet<Vec<Task>>) {
    let mut submits = JoinSet::new();
    for _ in 0..waiting.len() {
        let store = Arc::clone(submitting);
        submits.spawn(async move { store.call(work(&store, "faults")).await.unwrap() });
    }
    submits.join_all().await;
    let begun = Instant::now();
    while let Some(tasks) = waiting.join_next().await {
        assert_eq!(tasks.unwrap().len(), 1);
        let (left, waited) = (waiting.len(), begun.elapsed());
        assert!(waited < SOON, "{left} claims wait after {waited:?}");
    }
}

async fn a_burst_in_one_process(url: &str, servers: &[Server]) {
    let store = open(url).await;
    let mut waiting = JoinSet::new();
    wait_in(&store, 100, &mut waiting);
    until_all_wait(servers, 1);
    burst(&store, waiting).await;
}

async fn a_burst_from_elsewhere(url: &str, servers: &[Server], processes: usize, each: usize) {
    let submitting = open(url).await;
    let mut waiting = JoinSet::new();
    let mut stores = Vec::new();
    for _ in 0..processes {
        let store = open(url).await;
        wait_in(&store, each, &mut waiting);
        stores.push(store);
    }
    until_all_wait(servers, processes);
    burst(&submitting, waiting).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_reaches_every_waiting_claim() {
    let server = Server::start(ServerOptions::default());
    a_burst_in_one_process(&server.url(), std::slice::from_ref(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_another_process_reaches_every_waiting_claim() {
    let server = Server::start(ServerOptions::default());
    a_burst_from_elsewhere(&server.url(), std::slice::from_ref(&server), 1, 100).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_reaches_every_waiting_process() {
    let server = Server::start(ServerOptions::default());
    a_burst_from_elsewhere(&server.url(), std::slice::from_ref(&server), 20, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_reaches_every_waiting_claim_in_a_cluster() {
    let cluster = Cluster::start(&ClusterOptions::default());
    a_burst_in_one_process(&cluster.url(), cluster.nodes()).await;
    a_burst_from_elsewhere(&cluster.url(), cluster.nodes(), 1, 100).await;
}

/// A claim of another lane that waits for longer; then this one.
async fn wait_behind(
    server: &Server,
    store: &Arc<ValkeyStore>,
    request: Claim,
) -> JoinSet<Vec<Task>> {
    let mut waiting = JoinSet::new();
    for request in [claim(&["qa"], 1), request] {
        let store = Arc::clone(store);
        waiting.spawn(async move { store.claim(request, 2 * PATIENCE).await.unwrap() });
        until_all_wait(std::slice::from_ref(server), 1);
    }
    waiting
}

async fn first_of(mut waiting: JoinSet<Vec<Task>>) -> ExecutionId {
    let first = tokio::time::timeout(SOON, waiting.join_next()).await.expect("woken");
    first.unwrap().unwrap()[0].execution_id
}

/// Something stands in a lane that is paused; another process resumes it, and says no more.
async fn a_lane_is_resumed(
    server: &Server,
) -> (ExecutionId, JoinSet<Vec<Task>>, [Arc<ValkeyStore>; 2]) {
    let (store, other) = (open(&server.url()).await, open(&server.url()).await);
    other.call(set_lane("qb", LaneState::Paused)).await.unwrap();
    let waiting = wait_behind(server, &store, claim(&["qb"], 1)).await;
    let submit = work(&other, "qb");
    let id = submit.execution_id;
    other.call(submit).await.unwrap();
    // Its token has come and gone.
    until_all_wait(std::slice::from_ref(server), 1);
    other.call(set_lane("qb", LaneState::Active)).await.unwrap();
    (id, waiting, [store, other])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_that_another_process_resumes_is_noticed_behind_older_claims() {
    let server = Server::start(ServerOptions::default());
    let (id, waiting, _stores) = a_lane_is_resumed(&server).await;
    assert_eq!(first_of(waiting).await, id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_that_another_process_resumes_is_noticed_while_tokens_come() {
    let server = Server::start(ServerOptions::default());
    let (id, waiting, _stores) = a_lane_is_resumed(&server).await;
    let mut moments = tokio::time::interval(Duration::from_millis(100));
    let noise = async {
        loop {
            moments.tick().await;
            server.command(&["LPUSH", "ff:wake:{w:default}:default/qa:-", "3"]).unwrap();
        }
    };
    tokio::select! {
        found = first_of(waiting) => assert_eq!(found, id),
        () = noise => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_class_is_noticed_behind_older_claims() {
    let server = Server::start(ServerOptions::default());
    let (store, other) = (open(&server.url()).await, open(&server.url()).await);
    let able = Claim { capabilities: capabilities(&["gpu", "eu"]), ..claim(&["qb"], 1) };
    let waiting = wait_behind(&server, &store, able).await;
    let json = r#"{"routing_requirements":{"required_capabilities":["gpu"]}}"#;
    let submit = Submit { policy: policy(json), ..work(&other, "qb") };
    let id = submit.execution_id;
    other.call(submit).await.unwrap();
    assert_eq!(first_of(waiting).await, id);
}

/// Commands that a process may send while it waits.
fn commands(server: &Server) -> u64 {
    let of = |name| calls(std::slice::from_ref(server), name);
    ["brpop", "fcall", "fcall_ro", "lpush", "hget"].into_iter().map(of).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_claims_that_wait_cost_a_few_commands_a_second() {
    const SECONDS: u64 = 3;
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    let mut waiting = JoinSet::new();
    wait_in(&store, 10, &mut waiting);
    until_all_wait(std::slice::from_ref(&server), 1);
    let mut moments = tokio::time::interval(Duration::from_secs(SECONDS));
    moments.tick().await;
    let before = commands(&server);
    moments.tick().await;
    let sent = commands(&server) - before;
    assert!(sent <= 4 * (SECONDS + 1), "{sent} commands in {SECONDS} s");
    waiting.abort_all();
}

/// The queue's list of tokens, and a partition that another node has.
fn far_from_its_token(cluster: &Cluster) -> (&'static str, usize, u16, usize) {
    let list = "ff:wake:{w:default}:default/faults:-";
    let near = cluster.owner_of(cluster.slot_of(list));
    let owner = |partition: u16| cluster.owner_of(cluster.slot_of(&format!("x{{fp:{partition}}}")));
    let partition = (0..64).find(|partition| owner(*partition) != near).unwrap();
    (list, near, partition, owner(partition))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_a_claim_that_is_given_up_goes_to_others() {
    let cluster = Cluster::start(&ClusterOptions::default());
    let store = open(&cluster.url()).await;
    let (list, near, partition, far) = far_from_its_token(&cluster);
    let (near, far) = (&cluster.nodes()[near], &cluster.nodes()[far]);
    let mut waiting = JoinSet::new();
    wait_in(&store, 1, &mut waiting);
    until_all_wait(cluster.nodes(), 1);
    // Where the token points to, nobody answers.
    far.pause();
    near.command(&["LPUSH", list, &partition.to_string()]).unwrap();
    let length = || near.command(&["LLEN", list]).unwrap_or_default();
    wait_until("the token is taken", PATIENCE, || length() == "0");
    let mut moments = tokio::time::interval(Duration::from_millis(100));
    moments.tick().await;
    moments.tick().await;
    waiting.abort_all();
    wait_until("the token is back", SOON, || length() == "1");
    far.resume();
}

fn core(id: ExecutionId) -> String {
    format!("ff:exec:{id}:core")
}

/// Calls that go at once, and one after the other: of two lanes, the second cannot be read.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_leased_is_returned_when_another_call_fails() {
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    for max in [2, 100] {
        let (sound, broken) = (work(&store, "qa"), work(&store, "qb"));
        let (id, broken_id) = (sound.execution_id, broken.execution_id);
        store.call(sound).await.unwrap();
        store.call(broken).await.unwrap();
        server.command(&["SET", &core(broken_id), "broken"]).unwrap();
        let tasks = store.claim(claim(&["qa", "qb"], max), Duration::ZERO).await.unwrap();
        assert_eq!(tasks.iter().map(|task| task.execution_id).collect::<Vec<_>>(), [id], "{max}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_leased_is_returned_when_another_record_is_broken() {
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    let ids = [(); 3].map(|()| ExecutionId::new(5, Uuid::now_v7()));
    for execution_id in ids {
        store.call(Submit { execution_id, ..work(&store, "qa") }).await.unwrap();
    }
    let key = core(ids[1]);
    let mut record = server.pieces(&[b"GET", key.as_bytes()]).unwrap().remove(0);
    record.truncate(record.len() - 4);
    server.pieces(&[b"SET", key.as_bytes(), &record]).unwrap();
    let tasks = store.claim(claim(&["qa"], 3), Duration::ZERO).await.unwrap();
    let found: Vec<_> = tasks.iter().map(|task| task.execution_id).collect();
    assert_eq!(found, [ids[0], ids[2]]);
}

/// An execution that goes on after a signal, which another process cannot read.
async fn resumed_by_a_broken_signal(server: &Server, store: &ValkeyStore) -> ExecutionId {
    let execution_id = ExecutionId::new(5, Uuid::now_v7());
    store.call(Submit { execution_id, ..work(store, "qa") }).await.unwrap();
    let task = store.claim(claim(&["qa"], 1), Duration::ZERO).await.unwrap().remove(0);
    let suspended = store.call(suspend(&task, named("wait", "go"))).await.unwrap();
    store.call(signal(execution_id, &suspended.waitpoints[0], "go")).await.unwrap();
    let key = format!("ff:exec:{execution_id}:beside");
    for row in server.pieces(&[b"HKEYS", key.as_bytes()]).unwrap() {
        server.pieces(&[b"HSET", key.as_bytes(), &row, b""]).unwrap();
    }
    execution_id
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_leased_is_returned_when_another_lacks_what_goes_along() {
    let server = Server::start(ServerOptions::default());
    let (store, other) = (open(&server.url()).await, open(&server.url()).await);
    resumed_by_a_broken_signal(&server, &store).await;
    let sound = Submit { execution_id: ExecutionId::new(5, Uuid::now_v7()), ..work(&store, "qa") };
    let id = sound.execution_id;
    store.call(sound).await.unwrap();
    let tasks = other.claim(claim(&["qa"], 2), Duration::ZERO).await.unwrap();
    assert_eq!(tasks.iter().map(|task| task.execution_id).collect::<Vec<_>>(), [id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_lost_waits_for_no_replica() {
    let servers = Replicated::start(&ServerOptions::default());
    let store = open(&format!("{}?durability=replica", servers.primary().url())).await;
    servers.replica().pause();
    let turn = Turn { of: "test", by: Uuid::now_v7(), ms: 60_000 };
    assert_eq!(store.take_turn(turn).await, Ok(true));
    servers.replica().resume();
}

/// Lists of tokens, and whether each goes by itself.
fn lists(servers: &[Server]) -> Vec<(String, bool)> {
    let of = |server: &Server| {
        let keys = server.command(&["KEYS", "ff:wake:*"]).unwrap();
        let goes = |key: &str| server.command(&["PTTL", key]).unwrap().trim() != "-1";
        keys.lines().map(|key| (key.to_owned(), goes(key))).collect::<Vec<_>>()
    };
    servers.iter().flat_map(of).collect()
}

/// A process that only submits, to lanes and for capabilities that nobody waits for.
async fn what_nobody_waits_for_goes(url: &str, servers: &[Server]) {
    let store = open(url).await;
    for (lane, needs) in LANES.into_iter().zip(["", r#""gpu""#, r#""eu""#]) {
        let json = format!(r#"{{"routing_requirements":{{"required_capabilities":[{needs}]}}}}"#);
        for _ in 0..10 {
            store.call(Submit { policy: policy(&json), ..work(&store, lane) }).await.unwrap();
        }
    }
    wait_until("the lists go by themselves", PATIENCE, || {
        let lists = lists(servers);
        lists.len() == LANES.len() && lists.iter().all(|(_, goes)| *goes)
    });
    let is_inbox = |(key, _): &(String, bool)| key.contains("}:i:");
    assert!(!lists(servers).iter().any(is_inbox), "nobody waits in this process");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_nobody_takes_from_go_by_themselves() {
    let server = Server::start(ServerOptions::default());
    what_nobody_waits_for_goes(&server.url(), std::slice::from_ref(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_nobody_takes_from_go_by_themselves_in_a_cluster() {
    let cluster = Cluster::start(&ClusterOptions::default());
    what_nobody_waits_for_goes(&cluster.url(), cluster.nodes()).await;
}
