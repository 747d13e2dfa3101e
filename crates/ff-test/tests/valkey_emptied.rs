//! A server that is emptied under processes that go on: what stood there is gone for everybody, nothing
//! is answered as if it were there, and all that comes afterwards works without a restart.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ff_backend_valkey::{ValkeyOptions, ValkeyStore};
use ff_core::backend::{Backend, BackendExt, EventsAfter, Upkeep as _};
use ff_core::error::{Code, EngineError};
use ff_core::event::EventKind;
use ff_core::id::{ExecutionId, Kind, LaneId};
use ff_core::operation::{Claim, Submit, Task};
use ff_core::partition::PartitionConfig;
use ff_core::read::{Describe, EventFilter, Follow, From, ListKids, Tail};
use ff_core::state::FrameId;
use ff_test::registered::registration_of;
use ff_test::sdk::eventually;
use ff_test::servers::{Cluster, ClusterOptions, Server, ServerOptions};
use ff_test::signalling::{pending, rotate, signal};
use ff_test::stages::InItsTime;
use ff_test::workload::{self, Workload, check};
use ff_test::world::{PATIENCE, World, complete};
use tokio::sync::mpsc;
use uuid::Uuid;

const SMALL: Workload = Workload { submitters: 8, submits_each: 40, workers: 8 };

/// Few partitions, so that each log holds several entries. They are not the default ones.
const PARTITIONS: PartitionConfig = PartitionConfig { flow: 2, budget: 1, quota: 1 };

async fn open(url: &str) -> Arc<dyn Backend> {
    let options: ValkeyOptions = url.parse().unwrap();
    let options = ValkeyOptions { partitions: Some(PARTITIONS).into(), ..options };
    Arc::new(ValkeyStore::open(options).await.unwrap())
}

fn work(backend: &dyn Backend) -> Submit {
    let id = ExecutionId::solo(Uuid::now_v7(), &backend.settings().partitions);
    Submit::new(id, LaneId::new("faults").unwrap(), Kind::new("fault").unwrap())
}

fn empty(servers: &[Server]) {
    for server in servers {
        server.command(&["FLUSHALL"]).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stood_there_is_gone_and_new_work_is_taken() {
    let server = Server::start(ServerOptions::default());
    let backends = [open(&server.url()).await];
    let backend = &*backends[0];
    let old = work(backend);
    let id = old.execution_id;
    backend.call(old).await.unwrap();
    let claim = || workload::claim(1);
    backend.call(registration_of(&claim())).await.unwrap();
    let task = backend.claim(claim(), Duration::ZERO).await.unwrap().pop().unwrap();
    empty(std::slice::from_ref(&server));
    let gone = backend.call(complete(&task)).await.unwrap_err();
    assert_eq!(gone.code(), Code::ExecutionNotFound, "{gone}");
    assert_eq!(backend.ask(Describe { execution_id: id }).await.unwrap(), None);
    backend.call(registration_of(&claim())).await.unwrap();
    assert_eq!(backend.claim(claim(), Duration::ZERO).await.unwrap(), []);
    let ledger = SMALL.run(&backends, std::future::ready(())).await;
    check(backend, &ledger).await;
}

/// One worker that goes through lives until it has completed so many, whatever is gone in between.
async fn live(backend: Arc<dyn Backend>, n: usize) {
    let claim = || workload::claim(n);
    let mut completed = 0;
    while completed < 100 {
        let life = async {
            backend.call(registration_of(&claim())).await?;
            backend.call(work(&*backend)).await?;
            for task in backend.claim(claim(), Duration::ZERO).await? {
                backend.call(complete(&task)).await?;
                completed += 1;
            }
            Ok::<_, EngineError>(())
        };
        if let Err(error) = life.await {
            let expected = [Code::ExecutionNotFound, Code::WorkerNotRegistered];
            assert!(expected.contains(&error.code()), "not what is gone: {error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_midst_of_work_nothing_is_answered_wrongly() {
    let server = Server::start(ServerOptions::default());
    let backends = [open(&server.url()).await, open(&server.url()).await];
    let mut lives = tokio::task::JoinSet::new();
    for n in 0..8 {
        lives.spawn(live(Arc::clone(&backends[n % 2]), n));
    }
    let mut pause = tokio::time::interval(Duration::from_millis(40));
    for _ in 0..8 {
        pause.tick().await;
        tokio::task::block_in_place(|| empty(std::slice::from_ref(&server)));
    }
    while let Some(ended) = lives.join_next().await {
        ended.unwrap();
    }
    empty(std::slice::from_ref(&server));
    let ledger = SMALL.run(&backends, std::future::ready(())).await;
    check(&*backends[0], &ledger).await;
}

/// Somebody who follows, and somebody who comes back with a cursor of before, hear that they missed
/// something, and then all that is new.
async fn followers_go_on(url: &str, servers: &[Server]) {
    let backend = open(url).await;
    for _ in 0..20 {
        backend.call(work(&*backend)).await.unwrap();
    }
    let filter =
        EventFilter { kinds_of_event: vec![EventKind::Submitted], ..EventFilter::default() };
    let follow = |from| Follow { filter: filter.clone(), from, limit: 100, each: false };
    let seen = backend.events(follow(From::Start), Duration::ZERO).await.unwrap();
    assert_eq!(seen.items.len(), 20);
    let cursor = From::Cursor(seen.cursor);
    let waiting = tokio::spawn({
        let (backend, follow) = (Arc::clone(&backend), follow(cursor.clone()));
        async move { backend.events(follow, PATIENCE).await.unwrap() }
    });
    tokio::task::block_in_place(|| empty(servers));
    let new = work(&*backend);
    let id = new.execution_id;
    backend.call(new).await.unwrap();
    let later = backend.events(follow(cursor), Duration::ZERO).await.unwrap();
    for heard in [waiting.await.unwrap(), later] {
        let heard_of: Vec<_> =
            heard.items.iter().filter_map(|it| it.event.subject.execution_id()).collect();
        assert_eq!((heard_of, heard.gap), (vec![id], true));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_follows_hears_of_what_comes_afterwards() {
    let server = Server::start(ServerOptions::default());
    followers_go_on(&server.url(), std::slice::from_ref(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_follows_hears_of_what_comes_afterwards_in_a_cluster() {
    let cluster = Cluster::start(&ClusterOptions::default());
    followers_go_on(&cluster.url(), cluster.nodes()).await;
}

/// A log that is emptied, and has grown beyond its old end before anybody looked at it, is not taken for the
/// one that was there.
#[tokio::test(flavor = "multi_thread")]
async fn who_follows_hears_all_of_a_log_that_has_outgrown_the_one_before() {
    let server = Server::start(ServerOptions::default());
    let backend = open(&server.url()).await;
    let submit = async || {
        let id = ExecutionId::solo_in(0, &PARTITIONS);
        backend.call(Submit { execution_id: id, ..work(&*backend) }).await.unwrap();
        id
    };
    let now = backend.events(submits(From::Now, false), Duration::ZERO).await.unwrap();
    let mut told = follow_on(Arc::clone(&backend), now.cursor);
    // Now it waits at the end of a log that has been read.
    let first = submit().await;
    let heard = told.recv().await.unwrap();
    assert_eq!((&heard.items[0].event.subject, heard.gap), (&first.into(), false));
    tokio::task::block_in_place(|| empty(std::slice::from_ref(&server)));
    let mut missing = BTreeSet::new();
    for _ in 0..8 {
        missing.insert(submit().await);
    }
    let mut gap = false;
    while !missing.is_empty() {
        let heard = tokio::time::timeout(PATIENCE, told.recv()).await.unwrap().unwrap();
        gap |= heard.gap;
        let ids = heard.items.iter().filter_map(|it| it.event.subject.execution_id());
        ids.for_each(|id| assert!(missing.remove(&id), "{id} comes twice"));
    }
    assert!(gap);
}

/// Follows from a cursor on, as long as somebody listens.
fn follow_on(backend: Arc<dyn Backend>, mut from: String) -> mpsc::UnboundedReceiver<EventsAfter> {
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok(heard) = backend.events(submits(From::Cursor(from), false), PATIENCE).await {
            from = heard.cursor.clone();
            if tell.send(heard).is_err() {
                return;
            }
        }
    });
    told
}

/// What a process keeps in memory for its followers goes with the log that it was read from.
#[tokio::test(flavor = "multi_thread")]
async fn who_follows_hears_nothing_again_of_a_log_that_is_gone() {
    let server = Server::start(ServerOptions::default());
    let (follower, submitting) = (open(&server.url()).await, open(&server.url()).await);
    let now = follower.events(submits(From::Now, false), Duration::ZERO).await.unwrap();
    let mut told = follow_on(follower, now.cursor);
    for _ in 0..5 {
        let mut missing = submit_each(&*submitting, 20).await;
        while !missing.is_empty() {
            let heard = tokio::time::timeout(PATIENCE, told.recv()).await.unwrap().unwrap();
            let ids = heard.items.iter().filter_map(|it| it.event.subject.execution_id());
            ids.for_each(|id| assert!(missing.remove(&id), "{id} is told of again"));
        }
        tokio::task::block_in_place(|| empty(std::slice::from_ref(&server)));
    }
}

/// Submits, however often a server that comes back lets it be sent.
async fn submit_each(backend: &dyn Backend, count: usize) -> BTreeSet<ExecutionId> {
    let mut ids = BTreeSet::new();
    for _ in 0..count {
        let work = work(backend);
        ids.insert(work.execution_id);
        let sent = async { while backend.call(work.clone()).await.is_err() {} };
        tokio::time::timeout(PATIENCE, sent).await.unwrap();
    }
    ids
}

fn submits(from: From, each: bool) -> Follow {
    let filter =
        EventFilter { kinds_of_event: vec![EventKind::Submitted], ..EventFilter::default() };
    Follow { filter, from, limit: 100, each }
}

/// All that is submitted behind a cursor, and whether something is missing before it.
async fn behind(backend: &dyn Backend, cursor: &str) -> (BTreeSet<ExecutionId>, bool) {
    let (mut ids, mut gap, mut cursor) = (BTreeSet::new(), false, cursor.to_owned());
    loop {
        let follow = submits(From::Cursor(cursor), false);
        let heard = backend.events(follow, Duration::ZERO).await.unwrap();
        gap |= heard.gap;
        if heard.items.is_empty() {
            return (ids, gap);
        }
        ids.extend(heard.items.iter().filter_map(|it| it.event.subject.execution_id()));
        cursor = heard.cursor;
    }
}

/// A server that comes back without its last writes gives the numbers of what it lost to others. Whoever had
/// seen what was lost, or its end, hears that something is missing and then all that there is.
#[tokio::test(flavor = "multi_thread")]
async fn who_follows_hears_of_what_stands_where_something_was_lost() {
    let server = Server::start(ServerOptions::default());
    let backend = open(&server.url()).await;
    let kept = submit_each(&*backend, 10).await;
    server.command(&["SAVE"]).unwrap();
    submit_each(&*backend, 10).await;
    let seen = backend.events(submits(From::Start, true), Duration::ZERO).await.unwrap();
    assert_eq!((seen.items.len(), seen.cursors.len()), (20, 20));
    let end = backend.events(submits(From::Now, false), Duration::ZERO).await.unwrap();
    let waiting = tokio::spawn({
        let (backend, from) = (Arc::clone(&backend), From::Cursor(seen.cursor.clone()));
        async move {
            // The server is away for a moment.
            loop {
                let heard = backend.events(submits(from.clone(), false), PATIENCE).await;
                if let Ok(heard) = heard {
                    return heard;
                }
            }
        }
    });
    tokio::task::block_in_place(|| server.restart());
    let all = &kept | &submit_each(&*backend, 40).await;
    for cursor in [&seen.cursor, &end.cursor] {
        assert_eq!(behind(&*backend, cursor).await, (all.clone(), true));
    }
    assert!(waiting.await.unwrap().gap);
    // What was seen before the loss is there as ever, and who stands there misses nothing.
    let (later, gap) = behind(&*backend, &seen.cursors[5]).await;
    assert_eq!((later.len(), gap), (all.len() - 6, false));
}

/// A claim is among the writes that a server has lost, and another claim takes its place, under the same
/// revision and epoch. Whoever made the first remembers a record that nobody has any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_lease_is_stale_for_the_process_that_had_it() {
    let server = Server::start(ServerOptions::default());
    let (ours, theirs) = (open(&server.url()).await, open(&server.url()).await);
    let claim = || Claim { lease_ttl_ms: 600_000, ..workload::claim(0) };
    ours.call(registration_of(&claim())).await.unwrap();
    ours.call(work(&*ours)).await.unwrap();
    server.command(&["SAVE"]).unwrap();
    let lost = ours.claim(claim(), Duration::ZERO).await.unwrap().remove(0);
    tokio::task::block_in_place(|| server.restart());
    let live = tokio::time::timeout(PATIENCE, async {
        loop {
            match theirs.claim(claim(), Duration::ZERO).await {
                Ok(mut tasks) if !tasks.is_empty() => return tasks.remove(0),
                _ => {}
            }
        }
    });
    let live = live.await.unwrap();
    assert_eq!((live.execution_id, live.lease_epoch), (lost.execution_id, lost.lease_epoch));
    let late = ours.call(complete(&lost)).await.unwrap_err();
    assert_eq!(late.code(), Code::StaleLease, "{late}");
    theirs.call(complete(&live)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_tails_hears_of_output_that_comes_afterwards() {
    let server = Server::start(ServerOptions::default());
    let world = World::new(InItsTime(open(&server.url()).await));
    let tail = |task: &Task| Tail::after(task.execution_id, task.attempt_index, FrameId::FIRST);
    // Its tail looks before it prints, so it has to be told.
    let hears = async |task: Task| {
        let heard = world.backend.tail(tail(&task), PATIENCE);
        let printed = world.print(&task, "new");
        let (heard, _) = tokio::join!(heard, printed);
        assert_eq!(heard.unwrap().frames.len(), 1);
    };
    for _ in 0..10 {
        hears(world.start(world.work()).await).await;
    }
    empty(std::slice::from_ref(&server));
    for _ in 0..5 {
        hears(world.start(world.work()).await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_boot_writes_is_put_back() {
    let server = Server::start(ServerOptions::default());
    let world = World::new(InItsTime(open(&server.url()).await));
    world.submit(world.work()).await;
    let kids = world.backend.ask(ListKids).await.unwrap();
    empty(std::slice::from_ref(&server));
    // As engines do every second.
    world.settle().await;
    // A process that is started now finds the counts and keys that the others use.
    let later = ValkeyStore::open(server.url().parse().unwrap()).await.unwrap();
    assert_eq!(later.settings().partitions, PARTITIONS);
    assert_eq!(later.ask(ListKids).await.unwrap(), kids);
    empty(std::slice::from_ref(&server));
    world.act(rotate("k2", 2, 600_000)).await;
    let task = world.start(world.work()).await;
    let issued = world.act(pending(&task, "k")).await;
    world.deliver(signal(task.execution_id, &issued, "heard")).await;
}

/// Nothing that works says that the store is empty, so the counts are looked at in their time.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_boot_writes_is_put_back_where_nothing_happens() {
    let server = Server::start(ServerOptions::default());
    let _idle = open(&server.url()).await;
    let counts = || server.command(&["HLEN", "ff:config:partitions"]).unwrap();
    assert_eq!(counts().trim(), "3");
    empty(std::slice::from_ref(&server));
    eventually("the counts", async || (counts().trim() == "3").then_some(())).await;
}

/// Whoever boots first in an emptied store says which partitions it has; ids of before have other places
/// there.
#[tokio::test(flavor = "multi_thread")]
async fn in_a_store_that_another_has_made_anew_nothing_is_answered() {
    let server = Server::start(ServerOptions::default());
    let before = open(&server.url()).await;
    before.call(work(&*before)).await.unwrap();
    empty(std::slice::from_ref(&server));
    let after = ValkeyStore::open(server.url().parse().unwrap()).await.unwrap();
    assert_ne!(after.settings().partitions, PARTITIONS);
    after.call(work(&after)).await.unwrap();
    let error = eventually("a refusal", async || before.call(work(&*before)).await.err()).await;
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.to_string().contains("num_flow_partitions is 2"), "{error}");
    assert_eq!(before.ping().await, Err(error));
    after.call(work(&after)).await.unwrap();
}
