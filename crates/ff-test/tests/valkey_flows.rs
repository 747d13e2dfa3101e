//! Flows on Valkey as a deployment has them: callers at once, other processes beside them, callers
//! that go away.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::Duration;

use ff_backend_valkey::ValkeyStore;
use ff_core::backend::{Backend, BackendExt, Upkeep};
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, FlowId, Kind};
use ff_core::operation::{
    ChangePriority, Claim, ClaimNext, Complete, FlowReplayed, GraphMember, Replay, ReplayFlow,
    Submit, SubmitFlow, Task, Tick,
};
use ff_core::read::{Audit, DescribeFlow, FlowSnapshot};
use ff_core::state::{FlowState, PublicState};
use ff_test::graphs::{create_flow, edge_of, name};
use ff_test::registered::registration_of;
use ff_test::servers::{Cluster, ClusterOptions, Server, ServerOptions};
use ff_test::workload;
use ff_test::world::{complete, fail};
use tokio::task::{JoinHandle, JoinSet};
use uuid::Uuid;

async fn open(url: &str) -> Arc<ValkeyStore> {
    let store = ValkeyStore::open(url.parse().unwrap()).await.unwrap();
    store.call(registration_of(&claim(1))).await.unwrap();
    Arc::new(store)
}

fn claim(max: u32) -> Claim {
    Claim { max, ..workload::claim(0) }
}

fn graph(store: &ValkeyStore, names: &[String], edges: &[String]) -> SubmitFlow {
    let flow = create_flow();
    let lane = claim(1).lanes[0].lane.clone();
    let submit = || {
        let partitions = &store.settings().partitions;
        let id = ExecutionId::for_flow(Uuid::now_v7(), flow.flow_id, partitions);
        Submit::new(id, lane.clone(), Kind::new("member").unwrap())
    };
    SubmitFlow {
        members: names.iter().map(|n| GraphMember { name: name(n), submit: submit() }).collect(),
        edges: edges.iter().map(|edge| edge_of(edge)).collect(),
        groups: Vec::new(),
        edge_seed: Uuid::now_v7(),
        flow,
    }
}

/// So many members, and one that waits for all of them.
fn fan_in(store: &ValkeyStore, members: usize) -> SubmitFlow {
    let mut names: Vec<String> = (0..members).map(|n| format!("m{n}")).collect();
    let edges: Vec<String> = names.iter().map(|name| format!("{name}>last")).collect();
    names.push("last".to_owned());
    graph(store, &names, &edges)
}

/// So many members, one after the other.
fn chain(store: &ValkeyStore, members: usize) -> SubmitFlow {
    let names: Vec<String> = (0..members).map(|n| format!("m{n}")).collect();
    let edges: Vec<String> = (1..members).map(|n| format!("m{}>m{n}", n - 1)).collect();
    graph(store, &names, &edges)
}

/// Completes with a result.
fn bring(task: &Task, result: &str) -> Complete {
    Complete { result: Some(Content::new(result.to_owned())), ..complete(task) }
}

/// Completes with a result and takes the next.
fn go_on(task: &Task, result: &str) -> Complete {
    let Claim { max, lanes, order, capabilities, lease_ttl_ms, seed, .. } = claim(1);
    let next = ClaimNext { max, lanes, order, capabilities, lease_ttl_ms, seed };
    Complete { next: Some(next), ..bring(task, result) }
}

/// What the results say that came along with a task.
fn inputs(task: &Task) -> Vec<String> {
    let results = task.extras.inputs.values().filter_map(|input| input.result.as_ref());
    results.map(|result| String::from_utf8(result.bytes.to_vec()).unwrap()).collect()
}

/// How often a command was called since the counts were reset.
fn calls(server: &Server, command: &str) -> usize {
    let stats = server.command(&["INFO", "commandstats"]).unwrap();
    let begin = format!("cmdstat_{command}:calls=");
    let line = stats.lines().find_map(|line| line.strip_prefix(&begin));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

async fn submit(store: &ValkeyStore, members: usize) -> FlowId {
    let flow = fan_in(store, members);
    let id = flow.flow.flow_id;
    store.call(flow).await.unwrap();
    settle(store).await;
    id
}

/// Carries out all that is due.
async fn settle(store: &ValkeyStore) {
    while store.call(Tick { home: None, most: 64 }).await.unwrap().more {}
}

async fn describe(store: &ValkeyStore, id: FlowId) -> FlowSnapshot {
    *store.ask(DescribeFlow { flow_id: id }).await.unwrap().unwrap()
}

async fn assert_sound(store: &ValkeyStore) {
    let audited = store.ask(Audit).await.unwrap();
    assert_eq!(audited.violations, []);
}

/// Completes tasks at the same time, each on the store that comes next.
async fn complete_all(stores: &[Arc<ValkeyStore>], tasks: Vec<Task>) {
    let mut calls = JoinSet::new();
    for (task, store) in tasks.into_iter().zip(stores.iter().cycle()) {
        let store = Arc::clone(store);
        calls.spawn(async move { store.call(complete(&task)).await });
    }
    for outcome in calls.join_all().await {
        outcome.unwrap();
    }
}

async fn take(store: &ValkeyStore, max: u32) -> Vec<Task> {
    store.claim(claim(max), Duration::ZERO).await.unwrap()
}

async fn fan_in_ends(stores: &[Arc<ValkeyStore>]) {
    const MEMBERS: usize = 50;
    let first = &stores[0];
    let id = submit(first, MEMBERS).await;
    let tasks = take(first, 100).await;
    assert_eq!(tasks.len(), MEMBERS);
    complete_all(stores, tasks).await;
    settle(first).await;
    let last = take(first, 100).await;
    assert_eq!(last.len(), 1);
    assert_eq!(last[0].extras.inputs.len(), MEMBERS);
    complete_all(stores, last).await;
    let flow = describe(first, id).await;
    assert_eq!(flow.state, FlowState::Completed);
    assert_eq!(flow.counts.of(PublicState::Completed) as usize, MEMBERS + 1);
    assert_sound(first).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_beside_each_other_share_a_flow() {
    let server = Server::start(ServerOptions::default());
    let stores = [open(&server.url()).await, open(&server.url()).await, open(&server.url()).await];
    fan_in_ends(&stores).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_beside_each_other_share_a_flow_in_a_cluster() {
    let cluster = Cluster::start(&ClusterOptions::default());
    let stores = [open(&cluster.url()).await, open(&cluster.url()).await];
    fan_in_ends(&stores).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_at_once_go_together() {
    const MEMBERS: usize = 60;
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    submit(&store, MEMBERS).await;
    let tasks = take(&store, 100).await;
    server.command(&["CONFIG", "RESETSTAT"]).unwrap();
    complete_all(&[Arc::clone(&store)], tasks).await;
    let calls = calls(&server, "fcall");
    assert!(calls < MEMBERS / 2, "{calls} calls for {MEMBERS} members of one flow");
    assert_sound(&store).await;
}

/// A process remembers small rows of a flow, and must not remember what a row was before it grew.
#[tokio::test(flavor = "multi_thread")]
async fn failures_at_once_are_all_noted() {
    const MEMBERS: usize = 60;
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    let id = submit(&store, MEMBERS).await;
    let tasks = take(&store, 100).await;
    let fail = |task: &Task| fail(task, "permanent");
    for crowd in [0..20, 20..45, 45..MEMBERS] {
        let replies =
            store.apply(tasks[crowd].iter().map(|task| fail(task).into()).collect()).await;
        replies.into_iter().for_each(|reply| drop(reply.unwrap()));
    }
    settle(&store).await;
    let flow = describe(&store, id).await;
    assert_eq!(flow.state, FlowState::Failed);
    let replay = ReplayFlow { flow_id: id, members: None };
    let FlowReplayed::Replayed { members, .. } = store.call(replay).await.unwrap() else {
        panic!("nothing was replayed");
    };
    assert_eq!(members.len(), MEMBERS);
    assert_sound(&store).await;
}

/// What cannot be sent yet is not decided yet, so nobody decides in vain however many come at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_graphs_is_decided_once() {
    const FLOWS: usize = 3_000;
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    server.command(&["CONFIG", "RESETSTAT"]).unwrap();
    let mut submits = JoinSet::new();
    for _ in 0..FLOWS {
        let (store, graph) = (Arc::clone(&store), chain(&store, 10));
        submits.spawn(async move { store.call(graph).await });
    }
    while let Some(submitted) = submits.join_next().await {
        submitted.unwrap().unwrap();
    }
    let calls = calls(&server, "fcall");
    assert!(calls < 2 * FLOWS, "{calls} calls for {FLOWS} graphs");
    assert_sound(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_a_chain_is_a_commit_and_a_claim() {
    const STEPS: usize = 8;
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    store.call(chain(&store, STEPS)).await.unwrap();
    let mut task = take(&store, 1).await.remove(0);
    server.command(&["CONFIG", "RESETSTAT"]).unwrap();
    for step in 1..STEPS {
        let result = format!("result {step}");
        let mut next = store.call(go_on(&task, &result)).await.unwrap().tasks;
        task = next.remove(0);
        assert_eq!(inputs(&task), [result]);
    }
    let (written, read) = (calls(&server, "fcall"), calls(&server, "fcall_ro"));
    assert_eq!(written, 2 * (STEPS - 1));
    // On a slow machine every claim may find its view of the queues too old, and look.
    assert!(read < STEPS, "{read} reads");
    assert_sound(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_many_members_need_is_read_at_once() {
    const MEMBERS: usize = 640;
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    store.call(fan_in(&store, MEMBERS)).await.unwrap();
    // What another process has written is not remembered here.
    let other = open(&server.url()).await;
    server.command(&["CONFIG", "RESETSTAT"]).unwrap();
    settle(&other).await;
    let reads = calls(&server, "fcall_ro");
    assert!(reads < MEMBERS / 8, "{reads} reads to unfold {MEMBERS} members");
    assert_sound(&store).await;
}

/// How many arguments the longest call had since the log of calls was opened, and with which words
/// rows were laid ready: their key, the call version, the prefix, and for how many milliseconds.
fn longest_call(server: &Server) -> (usize, Vec<String>) {
    let log = server.pieces(&[b"SLOWLOG", b"GET", b"-1"]).unwrap();
    let log: Vec<_> = log.iter().map(|piece| String::from_utf8_lossy(piece)).collect();
    let left_out = |piece: &str| {
        let count = piece.strip_prefix("... (")?.strip_suffix(" more arguments)")?;
        count.parse::<usize>().ok()
    };
    let longest = log.iter().filter_map(|piece| left_out(piece)).max().unwrap_or_default();
    let behind = log.iter().skip_while(|piece| *piece != "ff_stage").skip(2);
    (longest, behind.take(4).map(ToString::to_string).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_graph_is_laid_ready_in_portions() {
    const MEMBERS: usize = 1_000;
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    for setting in [["slowlog-max-len", "100000"], ["slowlog-log-slower-than", "0"]] {
        server.command(&["CONFIG", "SET", setting[0], setting[1]]).unwrap();
    }
    let id = submit(&store, MEMBERS).await;
    let tasks = take(&store, 200).await;
    complete_all(&[Arc::clone(&store)], tasks).await;
    let (longest, staged) = longest_call(&server);
    assert!(longest < 2_500, "a call of {longest} arguments holds others up");
    assert_eq!(describe(&store, id).await.node_count as usize, MEMBERS + 1);
    let left = server.command(&["KEYS", "*:staged:*"]).unwrap();
    assert_eq!(left, "", "what was laid ready has not moved");
    // Who is gone before the commit leaves rows that go by themselves: nobody has to mend that.
    let [key, version, prefix, ms] = &staged[..] else { panic!("the graph went in one call") };
    let stage = ["FCALL", "ff_stage", "1", key, version, prefix, ms, "row", "bytes"];
    server.command(&stage).unwrap();
    let left: u64 = server.command(&["PTTL", key]).unwrap().parse().unwrap();
    assert!((1..=ms.parse().unwrap()).contains(&left), "they stay for {left} ms");
    assert_sound(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_are_those_that_another_process_left() {
    let server = Server::start(ServerOptions::default());
    let (here, there) = (open(&server.url()).await, open(&server.url()).await);
    let flow = chain(&here, 2);
    let ids: Vec<_> = flow.members.iter().map(|member| member.submit.execution_id).collect();
    here.call(flow).await.unwrap();
    here.call(bring(&take(&here, 1).await[0], "first")).await.unwrap();
    there.call(Replay { execution_id: ids[0], descendants: false }).await.unwrap();
    there.call(bring(&take(&there, 1).await[0], "second")).await.unwrap();
    here.call(ChangePriority { execution_id: ids[1], priority: 7 }).await.unwrap();
    let tasks = take(&here, 1).await;
    assert_eq!(tasks[0].execution_id, ids[1]);
    assert_eq!(inputs(&tasks[0]), ["second"]);
    assert_sound(&here).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_go_away_leave_nothing_behind() {
    const MEMBERS: usize = 40;
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    let id = submit(&store, MEMBERS).await;
    let tasks = take(&store, 100).await;
    let calls: Vec<_> = tasks
        .iter()
        .map(|task| {
            let (store, complete) = (Arc::clone(&store), complete(task));
            tokio::spawn(async move { store.call(complete).await })
        })
        .collect();
    tokio::task::yield_now().await;
    calls.iter().step_by(2).for_each(JoinHandle::abort);
    for call in calls {
        if let Ok(outcome) = call.await {
            outcome.unwrap();
        }
    }
    // Whatever became of those that were given up: sent again, they are done.
    complete_all(&[Arc::clone(&store)], tasks).await;
    settle(&store).await;
    complete_all(&[Arc::clone(&store)], take(&store, 100).await).await;
    assert_eq!(describe(&store, id).await.state, FlowState::Completed);
    assert_sound(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_lists_and_counts_flows_anew() -> Result<(), EngineError> {
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    let id = submit(&store, 3).await;
    complete_all(&[Arc::clone(&store)], take(&store, 2).await).await;
    let before = describe(&store, id).await;
    let keys = server.command(&["KEYS", &format!("*:{id}:tally")]).unwrap();
    let tally = keys.lines().next().unwrap();
    server.command(&["HSET", tally, "0", "7", "64", "9"]).unwrap();
    let lists = server.command(&["KEYS", "*:list:3:*"]).unwrap();
    server.command(&["DEL", lists.lines().next().unwrap()]).unwrap();
    assert_ne!(describe(&store, id).await.counts, before.counts);
    let repaired = store.repair().await?;
    assert!(repaired.found.violations.iter().any(|found| found.invariant == "I11"));
    assert!(repaired.found.violations.iter().any(|found| found.invariant == "I9"));
    assert_eq!(repaired.left.violations, []);
    assert_eq!(describe(&store, id).await, before);
    Ok(())
}
