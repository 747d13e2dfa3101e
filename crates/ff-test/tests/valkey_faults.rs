//! Work goes on through the faults of a server: nothing acknowledged is lost, nothing is done twice
//! under a valid lease, and everything recovers by itself.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_backend_valkey::{Durability, ValkeyOptions, ValkeyStore};
use ff_core::backend::{Backend, BackendExt};
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::id::{ExecutionId, Home, Kind, LaneId};
use ff_core::operation::{
    Attach, Claim, ClaimExecution, ClaimForWorker, SetLane, Submit, Tick, Trim,
};
use ff_core::read::{Describe, Filter, Search};
use ff_core::turns::Turn;
use ff_engine::{Engine, EngineOptions, Shutdown};
use ff_test::grants::{GRANT_MS, claim_granted};
use ff_test::limits::{budget, cap, quota, worked};
use ff_test::registered::registration_of;
use ff_test::servers::{
    self, Cluster, ClusterOptions, Persistence, Replicated, Server, ServerOptions, wait_until,
};
use ff_test::stages::ValkeyStage;
use ff_test::workload::{self, PATIENCE, Workload, check};
use ff_test::world::World;
use uuid::Uuid;

const SMALL: Workload = Workload { submitters: 8, submits_each: 60, workers: 8 };

async fn open(url: &str) -> Arc<dyn Backend> {
    open_with(url.parse().unwrap()).await
}

async fn open_with(options: ValkeyOptions) -> Arc<dyn Backend> {
    Arc::new(ValkeyStore::open(options).await.unwrap())
}

/// Carries out an act on a server a few times while work goes on, at moments that the work itself
/// decides.
async fn repeatedly(times: usize, mut act: impl FnMut()) {
    let mut pause = tokio::time::interval(Duration::from_millis(60));
    for _ in 0..times {
        pause.tick().await;
        tokio::task::block_in_place(&mut act);
    }
}

/// Sends a command to each of several servers.
fn tell(servers: &[Server], command: &[&str]) {
    for server in servers {
        server.command(command).unwrap();
    }
}

async fn connections_are_cut(url: &str, servers: &[Server]) {
    let backends = [open(url).await, open(url).await];
    let storm = repeatedly(15, || tell(servers, &["CLIENT", "KILL", "TYPE", "normal"]));
    let ledger = SMALL.run(&backends, storm).await;
    check(&*backends[0], &ledger).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut() {
    let server = Server::start(ServerOptions::default());
    connections_are_cut(&server.url(), std::slice::from_ref(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut_in_a_cluster() {
    let cluster = Cluster::start(&ClusterOptions::default());
    connections_are_cut(&cluster.url(), cluster.nodes()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_pauses_and_sleeps() {
    let server = Server::start(ServerOptions::default());
    let backends = [open(&server.url()).await];
    let pauses = repeatedly(4, || {
        server.command(&["CLIENT", "PAUSE", "150", "WRITE"]).unwrap();
        server.command(&["DEBUG", "SLEEP", "0.2"]).unwrap();
        server.pause();
        server.resume();
    });
    let ledger = SMALL.run(&backends, pauses).await;
    check(&*backends[0], &ledger).await;
    assert!(ledger.faults().is_empty(), "shorter than any patience: {:?}", ledger.faults());
}

async fn functions_are_flushed(url: &str, servers: &[Server]) {
    let backends = [open(url).await, open(url).await];
    let flushes = repeatedly(10, || tell(servers, &["FUNCTION", "FLUSH"]));
    let ledger = SMALL.run(&backends, flushes).await;
    check(&*backends[0], &ledger).await;
    assert!(ledger.faults().is_empty(), "they are loaded again: {:?}", ledger.faults());
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_that_are_flushed() {
    let server = Server::start(ServerOptions::default());
    functions_are_flushed(&server.url(), std::slice::from_ref(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_that_are_flushed_in_a_cluster() {
    let cluster = Cluster::start(&ClusterOptions::default());
    functions_are_flushed(&cluster.url(), cluster.nodes()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_keeps_what_was_acknowledged_after_the_sync() {
    let options = ServerOptions { persistence: Persistence::AppendAlways, ..Default::default() };
    let server = Server::start(options);
    let options: ValkeyOptions = server.url().parse().unwrap();
    let backends = [open_with(ValkeyOptions { durability: Durability::Fsync, ..options }).await];
    let kills = repeatedly(5, || {
        server.kill();
        server.restart();
    });
    let ledger = SMALL.run(&backends, kills).await;
    check(&*backends[0], &ledger).await;
    assert!(!ledger.faults().is_empty(), "nobody noticed that the server was killed");
}

/// Between three nodes that have the functions, and to one that comes later and has none.
#[tokio::test(flavor = "multi_thread")]
async fn slots_that_move() {
    let mut cluster = Cluster::start(&ClusterOptions::default());
    let backends = [open(&cluster.url()).await, open(&cluster.url()).await];
    tokio::task::block_in_place(|| cluster.join());
    let mut partition = 0;
    let moves = repeatedly(12, || {
        let slot = cluster.slot_of(&format!("x{{fp:{partition}}}"));
        let from = cluster.owner_of(slot);
        cluster.move_slot(slot, from, (from + 1 + partition % 3) % 4);
        partition += 5;
    });
    let ledger = SMALL.run(&backends, moves).await;
    check(&*backends[0], &ledger).await;
}

/// The node that the URL names is killed while work goes on. The replica takes over by itself, and
/// nothing acknowledged is lost, because a replica had it first. What the slots of the lost node
/// hold is acknowledged again once a replica is back behind the new one.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_loses_a_primary() {
    let options =
        ClusterOptions { replicas_each: 1, node_timeout_ms: 1_000, ..ClusterOptions::default() };
    let cluster = Cluster::start(&options);
    let options: ValkeyOptions = cluster.url().parse().unwrap();
    let options = ValkeyOptions { durability: Durability::Replica, ..options };
    let backends = [open_with(options.clone()).await, open_with(options).await];
    let (primary, replica) = (0, 3);
    let failover = repeatedly(1, || {
        cluster.nodes()[primary].kill();
        wait_until("the replica has taken over", PATIENCE, || {
            cluster.nodes()[replica]
                .command(&["INFO", "replication"])
                .unwrap()
                .contains("role:master")
        });
        cluster.nodes()[primary].restart();
    });
    let ledger = SMALL.run(&backends, failover).await;
    check(&*backends[0], &ledger).await;
    let owner = tokio::task::block_in_place(|| cluster.owner_of(0));
    assert_eq!(owner, replica, "the replica serves what the lost node served");
}

/// One primary hangs, and nobody takes its place: what the others have is claimed and their timers fire,
/// and nobody is told that there is nothing while some of it was not seen.
#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_hangs_stops_only_its_own() {
    let cluster = Cluster::start(&ClusterOptions::default());
    let store = open(&cluster.url()).await;
    let owner = |tag: &str| cluster.owner_of(cluster.slot_of(&format!("x{tag}")));
    // Workers are known by their namespace's home, which must answer.
    let near = owner("{w:default}");
    let hung = (0..3).find(|node| *node != near).unwrap();
    let (theirs, others): (Vec<u16>, Vec<u16>) =
        (0..64).partition(|partition| owner(&format!("{{fp:{partition}}}")) == hung);
    let submit_in = |partition: u16| {
        let id = ExecutionId::new(partition, Uuid::now_v7());
        Submit { execution_id: id, ..work(&*store) }
    };
    let (unseen, seen) = (submit_in(theirs[0]), submit_in(others[0]));
    let delayed = Submit {
        delay_until: Some(store.server_time_ms().await.unwrap().after(1_500)),
        ..submit_in(others[1])
    };
    for submit in [&unseen, &seen, &delayed] {
        store.call(submit.clone()).await.unwrap();
    }
    let claim = || Claim { max: 1, lease_ttl_ms: 600_000, ..workload::claim(0) };
    store.call(registration_of(&claim())).await.unwrap();
    let (stop, shutdown) = Shutdown::channel();
    let engine = Engine::new(Arc::clone(&store), EngineOptions::default());
    let engine = tokio::spawn(engine.run(shutdown));
    cluster.nodes()[hung].pause();
    for id in [seen.execution_id, delayed.execution_id] {
        let tasks = store.claim(claim(), Duration::from_secs(10)).await.unwrap();
        assert_eq!(tasks.iter().map(|task| task.execution_id).collect::<Vec<_>>(), [id]);
    }
    for wait in [Duration::ZERO, Duration::from_secs(1)] {
        let nothing = store.claim(claim(), wait).await.unwrap_err();
        assert_eq!(nothing.code(), Code::Unavailable, "{nothing}");
    }
    cluster.nodes()[hung].resume();
    let waiting = tokio::time::timeout(PATIENCE, async {
        loop {
            match store.claim(claim(), Duration::from_secs(1)).await {
                Ok(tasks) if !tasks.is_empty() => return tasks,
                _ => {}
            }
        }
    });
    assert_eq!(waiting.await.unwrap()[0].execution_id, unseen.execution_id);
    stop.send_replace(true);
    engine.await.unwrap();
}

/// Whoever asks has changed nothing, so nothing is unknown.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_without_an_answer_is_unavailable() {
    let server = Server::start(ServerOptions::default());
    let options: ValkeyOptions = server.url().parse().unwrap();
    let call_timeout = Duration::from_millis(300);
    let store = open_with(ValkeyOptions { call_timeout, ..options }).await;
    let submit = work(&*store);
    let describe = Describe { execution_id: submit.execution_id };
    store.call(submit).await.unwrap();
    server.pause();
    let asked = store.ask(describe).await.unwrap_err();
    let changed = store.call(work(&*store)).await.unwrap_err();
    server.resume();
    assert_eq!((asked.code(), changed.code()), (Code::Unavailable, Code::OutcomeUnknown));
}

/// Who asks for all there is needs every primary: without one it is told so, in the time of one call.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_without_a_primary_says_so_soon() {
    let cluster = Cluster::start(&ClusterOptions::default());
    let options: ValkeyOptions = cluster.url().parse().unwrap();
    let call_timeout = Duration::from_millis(500);
    let store = open_with(ValkeyOptions { call_timeout, ..options }).await;
    let search = || Search { filter: Filter::default(), cursor: None, limit: 5 };
    store.ask(search()).await.unwrap();
    cluster.nodes()[1].kill();
    let begun = Instant::now();
    let error = store.ask(search()).await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.to_string().contains("{fp:"), "{error}");
    assert!(begun.elapsed() < 5 * call_timeout, "{:?}", begun.elapsed());
    cluster.nodes()[1].restart();
    let again = async { while store.ask(search()).await.is_err() {} };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_takes_over_has_what_was_acknowledged() {
    let pair = Replicated::start(&ServerOptions::default());
    let options: ValkeyOptions = pair.primary().url().parse().unwrap();
    let store = ValkeyOptions { durability: Durability::Replica, ..options };
    let backend = open_with(store).await;
    let mut acknowledged = Vec::new();
    for _ in 0..200 {
        let submit = work(&*backend);
        let id = submit.execution_id;
        backend.call(submit).await.unwrap();
        acknowledged.push(id);
    }
    let promoted = tokio::task::block_in_place(|| pair.fail_over());
    let backend = open(&promoted.url()).await;
    for id in acknowledged {
        let record = backend.ask(Describe { execution_id: id }).await.unwrap();
        assert!(record.is_some(), "{id} was acknowledged and is gone");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_replica_has_is_not_acknowledged() {
    let pair = Replicated::start(&ServerOptions::default());
    let options: ValkeyOptions = pair.primary().url().parse().unwrap();
    let with = |durability| ValkeyOptions {
        durability,
        call_timeout: Duration::from_millis(500),
        ..options.clone()
    };
    // A replica that has just come acknowledges nothing for up to a second: this one waits for it.
    let patient = ValkeyOptions { durability: Durability::Replica, ..options.clone() };
    let patient = open_with(patient).await;
    patient.call(work(&*patient)).await.unwrap();
    let (lax, strict) =
        (open_with(with(Durability::Memory)).await, open_with(with(Durability::Replica)).await);
    strict.call(work(&*strict)).await.unwrap();
    pair.replica().pause();
    lax.call(work(&*lax)).await.unwrap();
    let submit = work(&*strict);
    let error = strict.call(submit.clone()).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    // It is there by now, which makes it a duplicate, and still on no replica.
    let record = lax.ask(Describe { execution_id: submit.execution_id }).await.unwrap();
    assert!(record.is_some());
    let error = strict.call(submit.clone()).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    pair.replica().resume();
    tokio::task::block_in_place(|| pair.catch_up());
    // Sent again it is acknowledged, whether or not the first was carried out.
    strict.call(submit).await.unwrap();
}

/// A call has its time once, however often it is tried in it.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_replica_a_write_fails_in_the_time_of_one_call() {
    let pair = Replicated::start(&ServerOptions::default());
    let options: ValkeyOptions = pair.primary().url().parse().unwrap();
    let call_timeout = Duration::from_secs(2);
    let strict = ValkeyOptions { durability: Durability::Replica, call_timeout, ..options };
    let strict = open_with(strict).await;
    pair.replica().kill();
    tokio::task::block_in_place(|| {
        wait_until("the primary has noticed it", PATIENCE, || {
            let info = pair.primary().command(&["INFO", "replication"]).unwrap();
            info.contains("connected_slaves:0")
        });
    });
    // The first learns of it while it waits for the replica that was there; the second is not sent.
    let expected =
        [(Code::OutcomeUnknown, "0 of 1 replicas"), (Code::Unavailable, "has no replica")];
    for (code, words) in expected {
        let begun = Instant::now();
        let error = strict.call(work(&*strict)).await.unwrap_err();
        let taken = begun.elapsed();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(taken < call_timeout + Duration::from_secs(1), "{taken:?}: {error}");
    }
}

fn work(backend: &dyn Backend) -> Submit {
    let id = ExecutionId::solo(Uuid::now_v7(), &backend.settings().partitions);
    Submit::new(id, LaneId::new("faults").unwrap(), Kind::new("fault").unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_refuses_new_work_and_lets_old_work_end() {
    let server = Server::start(ServerOptions::default());
    let backend = open(&server.url()).await;
    let ids: Vec<_> = (0..20).map(|_| work(&*backend)).collect();
    for submit in &ids {
        backend.call(submit.clone()).await.unwrap();
    }
    let mut claim = ff_test::workload::claim(1);
    claim.max = 20;
    backend.call(registration_of(&claim)).await.unwrap();
    let tasks = backend.claim(claim, Duration::ZERO).await.unwrap();
    assert_eq!(tasks.len(), 20);
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    let submit = Submit { payload: Content::new(vec![1; 1000]), ..work(&*backend) };
    let refused = backend.call(submit.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    assert!(refused.to_string().contains("memory"), "{refused}");
    for (n, task) in tasks.iter().enumerate() {
        let ended = match n % 3 {
            0 => backend.call(ff_test::world::complete(task)).await.map(|_| ()),
            1 => backend.call(ff_test::world::fail(task, "full")).await.map(|_| ()),
            _ => backend.call(ff_test::world::cancel(task.execution_id)).await.map(|_| ()),
        };
        ended.unwrap_or_else(|error| panic!("end {n}: {error}"));
    }
    server.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    backend.call(submit).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_lets_a_backlog_drain_and_retention_go_on() {
    let server = Server::start(ServerOptions::default());
    let backend = open(&server.url()).await;
    for _ in 0..20 {
        backend.call(work(&*backend)).await.unwrap();
    }
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    // It has not met the namespace yet.
    let newcomer = open(&server.url()).await;
    let mut claim = ff_test::workload::claim(1);
    claim.max = 20;
    newcomer.call(registration_of(&claim)).await.unwrap();
    let tasks = newcomer.claim(claim, Duration::ZERO).await.unwrap();
    assert_eq!(tasks.len(), 20);
    for task in &tasks {
        newcomer.call(ff_test::world::complete(task)).await.unwrap();
    }
    let turn = |by, ms| backend.take_turn(Turn { of: "round", by: Uuid::from_u128(by), ms });
    for (by, ms, is_theirs) in [(1, 60_000, true), (2, 60_000, false), (1, 60_000, true)] {
        assert_eq!(turn(by, ms).await, Ok(is_theirs), "{by}");
    }
    assert_eq!(turn(1, 0).await, Ok(true), "who stops says so");
    wait_until("the turn is over", PATIENCE, || {
        server.command(&["EXISTS", "ff:turn:round"]).unwrap().trim() == "0"
    });
    assert_eq!(turn(2, 60_000).await, Ok(true));
    let events_before = backend.server_time_ms().await.unwrap().after(1);
    let trim = Trim { events_before, event_bytes: u64::MAX, most: 500 };
    assert!(backend.trim(trim).await.unwrap().events >= 60);
}

/// Work under a budget and under a quota policy, of which two may run at a time: it is claimed, by queue and
/// by grant, waits in line and comes in turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_lets_work_under_limits_drain() {
    const TASKS: usize = 9;
    let server = Server::start(ServerOptions::default());
    let backend = open(&server.url()).await;
    let mut claim = ff_test::workload::claim(1);
    claim.max = 4;
    let (policy, costs) = (quota(cap(2)), budget(&[("a", 100, 0)]));
    let attach = SetLane {
        attach: Attach {
            budget_ids: Some(vec![costs.budget_id]),
            quota_policy_id: Some(Some(policy.quota_policy_id)),
        },
        ..SetLane::new(claim.namespace.clone(), claim.lanes[0].lane.clone())
    };
    let budget_id = costs.budget_id;
    backend.call(policy).await.unwrap();
    backend.call(costs).await.unwrap();
    backend.call(attach).await.unwrap();
    for _ in 0..TASKS {
        backend.call(work(&*backend)).await.unwrap();
    }
    backend.call(registration_of(&claim)).await.unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();

    let newcomer = open(&server.url()).await;
    let mut done = 0;
    let (worker_id, worker_instance_id) =
        (claim.worker_id.clone(), claim.worker_instance_id.clone());
    let for_worker = ClaimForWorker {
        namespace: claim.namespace.clone(),
        worker_id: worker_id.clone(),
        worker_instance_id: worker_instance_id.clone(),
        lane: claim.lanes[0].lane.clone(),
        capabilities: claim.capabilities.clone(),
        grant_ttl_ms: GRANT_MS,
    };
    let granted = newcomer.claim_for_worker(for_worker).await.unwrap().unwrap();
    let granted =
        ClaimExecution { worker_id, worker_instance_id, ..claim_granted(granted.execution_id) };
    let taken = newcomer.take_up(granted).await.unwrap();
    newcomer.call(ff_test::world::complete(&taken)).await.unwrap();
    done += 1;
    while done < TASKS {
        let tasks = newcomer.claim(claim.clone(), PATIENCE).await.unwrap();
        assert!((1..=2).contains(&tasks.len()), "{} at a time", tasks.len());
        for task in &tasks {
            newcomer.call(ff_test::world::complete(task)).await.unwrap();
        }
        done += tasks.len();
    }
    // What only grows is refused as ever.
    let refused = [
        newcomer.call(work(&*newcomer)).await.map(|_| ()),
        newcomer.call(quota(cap(1))).await.map(|_| ()),
        newcomer.call(worked(budget_id, taken.execution_id, &[("a", 1)])).await.map(|_| ()),
    ];
    for refused in refused {
        assert_eq!(refused.unwrap_err().code(), Code::Unavailable);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_takes_no_new_namespace() {
    let server = Server::start(ServerOptions::default());
    let backend = open(&server.url()).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    let refused = backend.call(work(&*backend)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    assert_eq!(server.command(&["SCARD", "ff:homes:{g}"]).unwrap().trim(), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_holds_up_no_lease_of_its_home() {
    const TASKS: u32 = 40;
    let stage = ValkeyStage::standalone(Default::default()).await;
    let prefix = stage.prefix().to_owned();
    let world = World::new(stage);
    let partitions = world.backend.settings().partitions;
    let mut ids = Vec::new();
    for _ in 0..TASKS {
        let execution_id = ExecutionId::solo_in(7, &partitions);
        ids.push(world.submit(Submit { execution_id, ..world.work() }).await);
    }
    assert_eq!(world.claim(TASKS).await.len(), TASKS as usize);
    // What is due together is carried out in the order of names: it is of the first part of all.
    let broken = ids.iter().min().unwrap();
    let key = format!("{prefix}:exec:{{fp:{}}}:{}:core", broken.partition(), broken.uuid());
    servers::standalone().command(&["SET", &key, "broken"]).unwrap();
    world.advance(3_600_000).await;
    let tick = || Tick { home: Some(Home::partition(broken.partition())), most: 256 };
    assert_eq!(world.act(tick()).await.total(), TASKS - 1);
    assert_eq!(world.act(tick()).await.total(), 0, "it stays due, and is no error of its home");
}
