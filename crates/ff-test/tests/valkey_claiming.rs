//! Claiming as a deployment does it: by what a process remembers of queues, with other processes
//! beside it.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::Duration;

use ff_backend_valkey::{LibraryClock, ValkeyOptions, ValkeyStore};
use ff_core::backend::{BackendExt, Upkeep};
use ff_core::error::Code;
use ff_core::id::{ExecutionId, Kind};
use ff_core::operation::{Claim, RegisterWorker, Submit, Task};
use ff_test::fleet::set_ageing;
use ff_test::registered::registration_of;
use ff_test::servers::{Cluster, ClusterOptions, Server, ServerOptions};
use ff_test::world::{PATIENCE, cancel, capabilities, complete, policy};
use ff_test::{stages, workload};
use tokio::task::JoinSet;
use uuid::Uuid;

async fn open(url: &str) -> Arc<ValkeyStore> {
    let store = ValkeyStore::open(url.parse().unwrap()).await.unwrap();
    store.call(registration_of(&claim(1))).await.unwrap();
    Arc::new(store)
}

fn work(store: &ValkeyStore, priority: i64) -> Submit {
    let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
    let lane = claim(1).lanes[0].lane.clone();
    Submit { priority, ..Submit::new(id, lane, Kind::new("claim").unwrap()) }
}

fn claim(max: u32) -> Claim {
    Claim { max, ..workload::claim(0) }
}

async fn claim_now(store: &ValkeyStore) -> Option<Task> {
    store.claim(claim(1), Duration::ZERO).await.unwrap().pop()
}

/// How often a command was called, as the server counts it.
fn calls(server: &Server, command: &str) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]).unwrap();
    let name = format!("cmdstat_{command}:calls=");
    let line = stats.lines().find_map(|line| line.strip_prefix(&name));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lifecycle_is_three_calls() {
    const LIVES: u64 = 300;
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    server.command(&["CONFIG", "RESETSTAT"]).unwrap();
    for _ in 0..LIVES {
        store.call(work(&store, 0)).await.unwrap();
        let task = claim_now(&store).await.unwrap();
        store.call(complete(&task)).await.unwrap();
    }
    // The first submit learns the time; the view is looked at anew every 50 ms.
    let (functions, reads) = (calls(&server, "fcall"), calls(&server, "fcall_ro"));
    assert!((3 * LIVES..3 * LIVES + 10).contains(&functions), "{functions} for {LIVES}");
    assert!(reads < LIVES, "{reads} looks for {LIVES}");
}

/// Submits of many callers at once, then claims of many workers at once: a few calls each, and every
/// worker has a task of its own.
async fn callers_share_calls(url: &str, nodes: &[Server]) {
    const CALLERS: u64 = 200;
    let store = open(url).await;
    let restart =
        || nodes.iter().for_each(|it| drop(it.command(&["CONFIG", "RESETSTAT"]).unwrap()));
    let sent = || nodes.iter().map(|node| calls(node, "fcall")).sum::<u64>();
    let mut ids = Vec::new();
    let partitions = store.settings().partitions;
    ids.resize_with(CALLERS as usize, || ExecutionId::solo_in(7, &partitions));
    restart();
    let mut submits = JoinSet::new();
    for execution_id in ids.clone() {
        let store = Arc::clone(&store);
        let submit = Submit { execution_id, ..work(&store, 0) };
        submits.spawn(async move { store.call(submit).await.unwrap() });
    }
    submits.join_all().await;
    assert!(sent() < CALLERS / 2, "{} calls for {CALLERS} submits at once", sent());
    restart();
    let mut claims = JoinSet::new();
    for _ in 0..CALLERS {
        let store = Arc::clone(&store);
        claims.spawn(async move { claim_now(&store).await.unwrap().execution_id });
    }
    let mut claimed = claims.join_all().await;
    assert!(sent() < CALLERS / 2, "{} calls for {CALLERS} claims at once", sent());
    claimed.sort();
    ids.sort();
    assert_eq!(claimed, ids);
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_at_once_share_calls() {
    let server = Server::start(ServerOptions::default());
    callers_share_calls(&server.url(), std::slice::from_ref(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_at_once_share_calls_in_a_cluster() {
    let cluster = Cluster::start(&ClusterOptions::default());
    callers_share_calls(&cluster.url(), cluster.nodes()).await;
}

/// Looks at a counter between which nothing happened: nobody is on the way any more.
const QUIET: u32 = 30;

#[tokio::test(flavor = "multi_thread")]
async fn one_submit_does_not_stampede_a_thousand_waiting_claims() {
    let server = Server::start(ServerOptions::default());
    let (waiting, submitting) = (open(&server.url()).await, open(&server.url()).await);
    let mut waiters = JoinSet::new();
    for _ in 0..1_000 {
        let store = Arc::clone(&waiting);
        waiters.spawn(async move { store.claim(claim(1), 2 * PATIENCE).await.unwrap() });
    }
    // They wait when the process blocks on the list of their queue.
    ff_test::servers::wait_until("the process waits", PATIENCE, || {
        server.command(&["INFO", "clients"]).unwrap().contains("blocked_clients:1")
    });
    // The last of them have looked for themselves when no more looks come for a while.
    let (mut looks, mut quiet) = (u64::MAX, 0);
    ff_test::servers::wait_until("all of them wait", PATIENCE, || {
        let before = std::mem::replace(&mut looks, calls(&server, "fcall_ro"));
        quiet = if looks == before { quiet + 1 } else { 0 };
        quiet >= QUIET
    });
    server.command(&["CONFIG", "RESETSTAT"]).unwrap();
    for _ in 0..5 {
        let submit = work(&submitting, 0);
        let id = submit.execution_id;
        submitting.call(submit).await.unwrap();
        let woken = tokio::time::timeout(PATIENCE, waiters.join_next()).await.unwrap();
        let tasks = woken.unwrap().unwrap();
        assert_eq!(tasks.iter().map(|task| task.execution_id).collect::<Vec<_>>(), [id]);
    }
    let functions = calls(&server, "fcall") + calls(&server, "fcall_ro");
    assert!(functions < 50, "{functions} calls for five submits");
    waiters.abort_all();
}

#[tokio::test(flavor = "multi_thread")]
async fn none_means_that_it_looked_everywhere() {
    let server = Server::start(ServerOptions::default());
    let (claiming, submitting) = (open(&server.url()).await, open(&server.url()).await);
    for _ in 0..50 {
        assert_eq!(claim_now(&claiming).await, None);
        // What it just saw to be empty is not so any more, and nobody told it.
        let submit = work(&submitting, 0);
        let id = submit.execution_id;
        submitting.call(submit).await.unwrap();
        let task = claim_now(&claiming).await.expect("a task");
        assert_eq!(task.execution_id, id);
        claiming.call(complete(&task)).await.unwrap();
    }
}

/// An execution that has been eligible for 100 ms is not passed over by one of a lower priority.
async fn priority_is_found_in_time(url: &str) {
    let (claiming, submitting) = (open(url).await, open(url).await);
    let low = (0..500).map(|_| work(&submitting, 0)).collect();
    submitting.submit_batch(low).await.unwrap();
    let mut moment = tokio::time::interval(Duration::from_millis(100));
    moment.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for round in 1..=5 {
        // Its memory is full of work of the lower priority.
        for _ in 0..20 {
            let task = claim_now(&claiming).await.unwrap();
            assert_eq!(task.priority, 0);
        }
        submitting.call(work(&submitting, round)).await.unwrap();
        moment.reset();
        moment.tick().await;
        let task = claim_now(&claiming).await.unwrap();
        assert_eq!(i64::from(task.priority), round, "passed over");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_higher_priority_in_another_partition_is_found_in_time() {
    let server = Server::start(ServerOptions::default());
    priority_is_found_in_time(&server.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_higher_priority_on_another_node_is_found_in_time() {
    let cluster = Cluster::start(&ClusterOptions::default());
    priority_is_found_in_time(&cluster.url()).await;
}

/// Priorities of what one claim gets, in its order.
async fn priorities(store: &ValkeyStore, max: u32) -> Vec<u16> {
    let tasks = store.claim(claim(max), Duration::ZERO).await.unwrap();
    tasks.iter().map(|task| task.priority).collect()
}

/// The best entry of a queue is gone, which only that queue's next claim notices.
async fn what_is_gone_hides_nobody(url: &str) {
    let (submitting, claiming) = (open(url).await, open(url).await);
    let submit = async |priority, partition| {
        let execution_id = ExecutionId::new(partition, Uuid::now_v7());
        submitting.call(Submit { execution_id, ..work(&submitting, priority) }).await.unwrap();
        execution_id
    };
    let best = submit(9, 5).await;
    submit(2, 5).await;
    submit(4, 6).await;
    submit(3, 7).await;
    submitting.call(cancel(best)).await.unwrap();
    for expected in [4, 3, 2] {
        assert_eq!(priorities(&claiming, 1).await, [expected]);
    }
    assert!(priorities(&claiming, 1).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_best_and_is_gone_hides_nobody() {
    let server = Server::start(ServerOptions::default());
    what_is_gone_hides_nobody(&server.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_best_and_is_gone_hides_nobody_in_a_cluster() {
    let cluster = Cluster::start(&ClusterOptions::default());
    what_is_gone_hides_nobody(&cluster.url()).await;
}

async fn claims_take_the_best(url: &str) {
    let (submitting, claiming) = (open(url).await, open(url).await);
    for number in 0..60 {
        submitting.call(work(&submitting, number % 7)).await.unwrap();
    }
    let mut expected: Vec<u16> = (0..60).map(|number| number % 7).collect();
    expected.sort_unstable_by(|a, b| b.cmp(a));
    for max in [1, 8, 13, 100] {
        let now: Vec<u16> = expected.drain(..expected.len().min(max as usize)).collect();
        assert_eq!(priorities(&claiming, max).await, now, "of {max}");
    }
}

/// Runs of better ones stand in one queue and then in the other, so that none tells what the next of it
/// is: every claim gets the best of all that is left.
async fn claims_pass_nobody_over(url: &str) {
    const EACH: u16 = 20;
    let store = open(url).await;
    let mut left: Vec<u16> = Vec::new();
    for number in 0..2 * EACH {
        // All numbers once, in an order that is not even.
        let priority = number * 17 % (2 * EACH);
        let execution_id = ExecutionId::new(number / 3 % 2, Uuid::now_v7());
        store.call(Submit { execution_id, ..work(&store, priority.into()) }).await.unwrap();
        left.push(priority);
    }
    left.sort_unstable_by(|a, b| b.cmp(a));
    let mut sizes = [2, 3, 2, 5, 1, 2, 9].into_iter().cycle();
    while !left.is_empty() {
        let max = sizes.next().unwrap();
        let best: Vec<u16> = left.drain(..left.len().min(max as usize)).collect();
        assert_eq!(priorities(&store, max).await, best, "of {max}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_several_pass_nobody_over() {
    let server = Server::start(ServerOptions::default());
    claims_pass_nobody_over(&server.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_several_pass_nobody_over_in_a_cluster() {
    let cluster = Cluster::start(&ClusterOptions::default());
    claims_pass_nobody_over(&cluster.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_of_many_takes_the_best_and_in_order() {
    let server = Server::start(ServerOptions::default());
    claims_take_the_best(&server.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_of_many_takes_the_best_and_in_order_in_a_cluster() {
    let cluster = Cluster::start(&ClusterOptions::default());
    claims_take_the_best(&cluster.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_that_is_new_to_a_waiting_process_wakes_it() {
    let server = Server::start(ServerOptions::default());
    let (waiting, submitting) = (open(&server.url()).await, open(&server.url()).await);
    let able = Claim { capabilities: capabilities(&["gpu", "eu"]), ..claim(1) };
    let waiter = tokio::spawn(async move { waiting.claim(able, PATIENCE).await.unwrap() });
    ff_test::servers::wait_until("the process waits", PATIENCE, || {
        server.command(&["INFO", "clients"]).unwrap().contains("blocked_clients:1")
    });
    let json = r#"{"routing_requirements":{"required_capabilities":["gpu"]}}"#;
    let submit = Submit { policy: policy(json), ..work(&submitting, 0) };
    let id = submit.execution_id;
    submitting.call(submit).await.unwrap();
    let tasks = tokio::time::timeout(PATIENCE / 4, waiter).await.expect("woken").unwrap();
    assert_eq!(tasks.iter().map(|task| task.execution_id).collect::<Vec<_>>(), [id]);
}

/// Work of one lane and partition that requires a capability which nothing else requires.
fn special(store: &ValkeyStore, number: usize) -> Submit {
    let json =
        format!(r#"{{"routing_requirements":{{"required_capabilities":["only-{number}"]}}}}"#);
    let execution_id = ExecutionId::new((number % 2) as u16, Uuid::now_v7());
    Submit { execution_id, policy: policy(&json), ..work(store, 0) }
}

/// More classes than one call tells of: a worker finds the one that it can run, whichever that is, and what
/// classes require is read once, many at a time.
async fn many_classes_are_read_together(url: &str, nodes: &[Server]) {
    const CLASSES: usize = 3_000;
    let (submitting, claiming) = (open(url).await, open(url).await);
    let mut ids = Vec::new();
    for numbers in (0..CLASSES).collect::<Vec<_>>().chunks(1000) {
        let submits: Vec<_> = numbers.iter().map(|n| special(&submitting, *n)).collect();
        ids.extend(submits.iter().map(|submit| submit.execution_id));
        for submitted in submitting.submit_batch(submits).await.unwrap() {
            submitted.unwrap();
        }
    }
    nodes.iter().for_each(|node| drop(node.command(&["CONFIG", "RESETSTAT"]).unwrap()));
    let sent = |command| nodes.iter().map(|node| calls(node, command)).sum::<u64>();
    for (max, number) in [(1, CLASSES - 1), (3, 0), (2, CLASSES / 2), (1, CLASSES / 3)] {
        let able = Claim { capabilities: capabilities(&[&format!("only-{number}")]), ..claim(max) };
        let tasks = claiming.claim(able, Duration::ZERO).await.unwrap();
        let found: Vec<_> = tasks.iter().map(|task| task.execution_id).collect();
        assert_eq!(found, [ids[number]], "{number}");
    }
    assert_eq!(sent("hget"), 0);
    assert!(sent("hmget") < 20, "{} reads of {CLASSES} classes", sent("hmget"));
    let stranger = Claim { capabilities: capabilities(&["other"]), ..claim(1) };
    assert_eq!(claiming.claim(stranger, Duration::ZERO).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_finds_its_class_among_thousands() {
    let server = Server::start(ServerOptions::default());
    many_classes_are_read_together(&server.url(), std::slice::from_ref(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_finds_its_class_among_thousands_in_a_cluster() {
    let cluster = Cluster::start(&ClusterOptions::default());
    many_classes_are_read_together(&cluster.url(), cluster.nodes()).await;
}

/// By the clock of one node a registration is over, by that of another it is not.
#[tokio::test(flavor = "multi_thread")]
async fn clocks_that_are_far_apart_are_told_of() {
    const TTL_MS: u64 = 10_000;
    let cluster = Cluster::start(&ClusterOptions::default());
    let options: ValkeyOptions = cluster.url().parse().unwrap();
    let options = ValkeyOptions { clock: LibraryClock::Settable, ..options };
    let store = ValkeyStore::open(options).await.unwrap();
    store.set_clock(stages::BEGINNING).await.unwrap();
    store.call(RegisterWorker::for_claim(&claim(1), "test", TTL_MS)).await.unwrap();
    let owner = |tag: &str| cluster.owner_of(cluster.slot_of(&format!("x{{{tag}}}")));
    let near = owner("w:default");
    let partition = (0..64).find(|n| owner(&format!("fp:{n}")) != near).unwrap();
    let execution_id = ExecutionId::new(partition, Uuid::now_v7());
    store.call(Submit { execution_id, ..work(&store, 0) }).await.unwrap();
    let later = stages::BEGINNING.after(TTL_MS).0.to_string();
    let ahead = &cluster.nodes()[owner(&format!("fp:{partition}"))];
    ahead.command(&["FCALL", "ff_set_clock", "0", "ff", &later]).unwrap();
    let claimed = tokio::time::timeout(PATIENCE, store.claim(claim(1), Duration::ZERO)).await;
    let refused = claimed.expect("an answer").unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    assert!(refused.to_string().contains("clock"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_priorities_age_nothing_lower_passes_what_is_older() {
    let world = stages::valkey_by_memory().await;
    world.act(set_ageing(50)).await;
    let partitions = world.backend.settings().partitions;
    let submit = async |partition, priority| {
        let execution_id = ExecutionId::solo_in(partition, &partitions);
        world.submit(Submit { execution_id, priority, ..world.work() }).await
    };
    let first = submit(7, 0).await;
    world.advance(170).await;
    let above = submit(8, 1).await;
    world.advance(30).await;
    // By its score 80 ms behind the one above it: less than what may be taken along in other lanes.
    let below = submit(7, 0).await;
    assert_eq!(world.claim_ids(2).await, [first, above]);
    assert_eq!(world.claim_ids(2).await, [below]);
}
