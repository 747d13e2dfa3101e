//! What following the log costs a server: short calls, and few while nothing happens. What its cursors
//! hold: what their reader may know of, in few bytes.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ff_backend_valkey::{ValkeyOptions, ValkeyStore};
use ff_core::backend::{Backend, BackendExt};
use ff_core::event::{Envelope, EventKind};
use ff_core::id::{ExecutionId, Home, Kind, LaneId, Namespace};
use ff_core::limits;
use ff_core::operation::{Claim, Command, Submit};
use ff_core::partition::PartitionConfig;
use ff_core::read::{EventFilter, Follow, From};
use ff_test::registered::registration_of;
use ff_test::servers::{Cluster, ClusterOptions, Server, ServerOptions, wait_until};
use ff_test::workload;
use ff_test::world::PATIENCE;
use tokio::task::JoinSet;

const PARTITIONS: PartitionConfig = PartitionConfig { flow: 64, budget: 1, quota: 1 };

async fn open(url: &str) -> Arc<dyn Backend> {
    open_with(url, PARTITIONS).await
}

async fn open_with(url: &str, partitions: PartitionConfig) -> Arc<dyn Backend> {
    let options: ValkeyOptions = url.parse().unwrap();
    let options = ValkeyOptions { partitions: Some(partitions).into(), ..options };
    Arc::new(ValkeyStore::open(options).await.unwrap())
}

fn work(partition: u16) -> Submit {
    let id = ExecutionId::solo_in(partition, &PARTITIONS);
    Submit::new(id, LaneId::new("log").unwrap(), Kind::new("log").unwrap())
}

fn follow(from: From) -> Follow {
    Follow { filter: EventFilter::default(), from, limit: 100, each: false }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_many_events_are_read_in_portions() {
    const EVENTS: usize = 300;
    let server = Server::start(ServerOptions::default());
    let backend = open(&server.url()).await;
    let submits = std::iter::repeat_with(|| work(7).into()).take(EVENTS).collect();
    assert!(backend.apply(submits).await.iter().all(Result::is_ok));
    for setting in [["slowlog-log-slower-than", "0"], ["slowlog-max-len", "10000"]] {
        server.command(&["CONFIG", "SET", setting[0], setting[1]]).unwrap();
    }
    server.command(&["SLOWLOG", "RESET"]).unwrap();
    let found = backend.events(follow(From::Start), Duration::ZERO).await.unwrap();
    assert_eq!(found.items.len(), 100);
    let log = server.command(&["SLOWLOG", "GET", "-1"]).unwrap();
    // The number of keys follows the name of the function.
    let words: Vec<_> = log.split_whitespace().collect();
    let reads = words.windows(2).filter(|pair| pair[0] == "ff_read");
    let keys: Vec<usize> = reads.map(|pair| pair[1].parse().unwrap()).collect();
    assert_eq!(keys.iter().sum::<usize>(), EVENTS, "{keys:?}");
    assert!(keys.iter().all(|keys| *keys <= 128), "{keys:?}");
}

/// Functions that look, as the servers count them.
fn looks(servers: &[Server]) -> u64 {
    let of = |server: &Server| -> u64 {
        let stats = server.command(&["INFO", "commandstats"]).unwrap();
        let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_fcall_ro:calls="));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    };
    servers.iter().map(of).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_follows_an_idle_cluster_looks_once_a_second() {
    const SECONDS: u64 = 4;
    let cluster = Cluster::start(&ClusterOptions::default());
    let backend = open(&cluster.url()).await;
    let other = Arc::clone(&backend);
    // As long as one follows, what waits for growth stays connected.
    let present = tokio::spawn(async move {
        while other.events(follow(From::Now), Duration::from_secs(60)).await.is_ok() {}
    });
    // Each partition ends its turns at another moment of a second.
    let mut moments = tokio::time::interval(Duration::from_secs(1) / u32::from(PARTITIONS.flow));
    for partition in 0..PARTITIONS.flow {
        moments.tick().await;
        backend.call(work(partition)).await.unwrap();
    }
    let before = looks(cluster.nodes());
    backend.events(follow(From::Now), Duration::from_secs(SECONDS)).await.unwrap();
    let made = looks(cluster.nodes()) - before;
    present.abort();
    // Each second three nodes are looked at, once for both followers, and four times for the other homes.
    let expected = SECONDS * (3 + 4 * 3);
    assert!(made <= expected + 30, "{made} looks, {expected} expected");
}

fn of_namespace(name: &str) -> EventFilter {
    EventFilter { namespace: Namespace::new(name).ok(), ..EventFilter::default() }
}

/// Follows to the end of the log: what it found, and where it stands.
async fn read_on(
    backend: &dyn Backend,
    filter: &EventFilter,
    mut from: From,
) -> (Vec<Envelope>, String) {
    let mut found = Vec::new();
    loop {
        let follow = Follow { filter: filter.clone(), from, limit: 500, each: false };
        let page = backend.events(follow, Duration::ZERO).await.unwrap();
        assert!(!page.gap);
        if page.items.is_empty() {
            return (found, page.cursor);
        }
        found.extend(page.items);
        from = From::Cursor(page.cursor);
    }
}

/// The only event behind a cursor.
async fn next_behind(backend: &dyn Backend, filter: &EventFilter, cursor: &str) -> Envelope {
    let (mut found, _) = read_on(backend, filter, From::Cursor(cursor.to_owned())).await;
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Lets a worker come for the first time.
async fn join(backend: &dyn Backend, namespace: &str) {
    let claim = Claim { namespace: Namespace::new(namespace).unwrap(), ..workload::claim(0) };
    backend.call(registration_of(&claim)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_knows_nothing_of_other_namespaces() {
    const TENANTS: usize = 150;
    let server = Server::start(ServerOptions::default());
    let backend = open(&server.url()).await;
    for n in 0..TENANTS {
        join(&*backend, &format!("tenant-with-a-name-{n}")).await;
    }
    join(&*backend, "default").await;
    for partition in 0..PARTITIONS.flow {
        backend.call(work(partition)).await.unwrap();
    }
    let ours = of_namespace("default");
    let (found, cursor) = read_on(&*backend, &ours, From::Start).await;
    assert_eq!(found.len(), usize::from(PARTITIONS.flow) + 1);
    let now = backend.events(Follow { filter: ours.clone(), ..follow(From::Now) }, Duration::ZERO);
    assert_eq!(now.await.unwrap().cursor, cursor, "both stand at the end");
    assert!(cursor.len() < 400, "{}", cursor.len());
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor.trim_start_matches("ffc1.")).unwrap();
    assert!(!bytes.windows(6).any(|part| part == b"tenant"), "{cursor}");
    // What others do changes nothing about it, and what comes is heard in every home.
    join(&*backend, "tenant-that-is-new").await;
    assert_eq!(
        read_on(&*backend, &ours, From::Cursor(cursor.clone())).await,
        (vec![], cursor.clone())
    );
    let submitted = work(9);
    backend.call(submitted.clone()).await.unwrap();
    let heard = next_behind(&*backend, &ours, &cursor).await;
    assert_eq!(heard.event.subject, submitted.execution_id);
    // Whoever may see all namespaces gets a cursor that the store takes as well.
    let all = EventFilter::default();
    let (found, cursor) = read_on(&*backend, &all, From::Start).await;
    assert_eq!(found.len(), TENANTS + usize::from(PARTITIONS.flow) + 3);
    assert!(cursor.len() <= limits::CURSOR_BYTES, "{}", cursor.len());
    join(&*backend, "tenant-that-comes-last").await;
    assert_eq!(next_behind(&*backend, &all, &cursor).await.event.kind, EventKind::WorkerJoined);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_goes_on_in_as_many_partitions_as_there_may_be() {
    let partitions = PartitionConfig { flow: PartitionConfig::MAX, ..PARTITIONS };
    let server = Server::start(ServerOptions::default());
    let backend = open_with(&server.url(), partitions).await;
    let work = |partition| {
        let id = ExecutionId::solo_in(partition, &partitions);
        Submit::new(id, LaneId::new("log").unwrap(), Kind::new("log").unwrap())
    };
    let submits: Vec<Command> = (0..partitions.flow).map(|n| work(n).into()).collect();
    for batch in submits.chunks(limits::BATCH_ITEMS) {
        assert!(backend.apply(batch.to_vec()).await.iter().all(Result::is_ok));
    }
    let filter = of_namespace("default");
    let (found, cursor) = read_on(&*backend, &filter, From::Start).await;
    assert_eq!(found.len(), usize::from(partitions.flow));
    assert!(cursor.len() < 11 << 10, "{}", cursor.len());
    for partition in [0, 2_047, partitions.flow - 1] {
        let later = work(partition);
        let (_, before) = read_on(&*backend, &filter, From::Cursor(cursor.clone())).await;
        backend.call(later.clone()).await.unwrap();
        let heard = next_behind(&*backend, &filter, &before).await;
        assert_eq!(heard.event.subject, later.execution_id);
    }
}

/// Follows until so many events have come: each once, in the order of its log, and nothing between missed.
async fn hear_all(backend: Arc<dyn Backend>, mut from: From, count: usize) {
    let (mut heard, mut last) = (0, BTreeMap::<Home, u64>::new());
    while heard < count {
        let follow = Follow { limit: 7, ..follow(from) };
        let page = backend.events(follow, PATIENCE).await.unwrap();
        assert!(!page.gap && !page.items.is_empty());
        for Envelope { event, .. } in page.items {
            let id = event.id();
            let before = last.insert(id.home.clone(), id.number);
            assert!(before.is_none_or(|before| before < id.number), "{id} comes late");
            heard += 1;
        }
        from = From::Cursor(page.cursor);
    }
    assert_eq!(heard, count);
    let rest = backend.events(follow(from), Duration::ZERO).await.unwrap();
    assert_eq!(rest.items, []);
}

/// Followers of two processes hear what both write.
async fn crowd_of_followers(url: &str) {
    const SUBMITS: u16 = 400;
    let backends = [open(url).await, open(url).await];
    let now = backends[0].events(follow(From::Now), Duration::ZERO).await.unwrap().cursor;
    let mut all = JoinSet::new();
    for n in 0..6 {
        let from = From::Cursor(now.clone());
        all.spawn(hear_all(Arc::clone(&backends[n % 2]), from, usize::from(SUBMITS)));
    }
    for n in 0..4 {
        let backend = Arc::clone(&backends[usize::from(n) % 2]);
        all.spawn(async move {
            for submit in (n..SUBMITS).step_by(4) {
                backend.call(work(submit * 7 % 16)).await.unwrap();
            }
        });
    }
    tokio::time::timeout(2 * PATIENCE, all.join_all()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_followers_misses_nothing() {
    let server = Server::start(ServerOptions::default());
    crowd_of_followers(&server.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_followers_misses_nothing_in_a_cluster() {
    let cluster = Cluster::start(&ClusterOptions::default());
    crowd_of_followers(&cluster.url()).await;
}

/// Calls end early where entries are large: what they leave out is read by the next. The last look, which
/// finds nothing, comes to an end however large the entries are that it stands at.
#[tokio::test(flavor = "multi_thread")]
async fn logs_of_large_entries_are_read_whole() {
    const EACH: usize = 64;
    let server = Server::start(ServerOptions::default());
    let backend = open(&server.url()).await;
    let lane = LaneId::new("l".repeat(limits::LANE_BYTES)).unwrap();
    for partition in 0..PARTITIONS.flow {
        let submit = || Submit { lane: lane.clone(), ..work(partition) }.into();
        let submits = std::iter::repeat_with(submit).take(EACH).collect();
        assert!(backend.apply(submits).await.iter().all(Result::is_ok));
    }
    let filter = EventFilter::default();
    let reading = read_on(&*backend, &filter, From::Start);
    let (found, _) = tokio::time::timeout(PATIENCE, reading).await.unwrap();
    let subjects: BTreeSet<_> = found.iter().map(|item| &item.event.subject).collect();
    let all = EACH * usize::from(PARTITIONS.flow);
    assert_eq!((found.len(), subjects.len()), (all, all));
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_cost_a_busy_server_as_little_as_an_idle_one() {
    const FOLLOWERS: u64 = 10;
    let server = Server::start(ServerOptions::default());
    let (writer, reader) = (open(&server.url()).await, open(&server.url()).await);
    let nothing =
        EventFilter { lanes: vec![LaneId::new("nothing").unwrap()], ..EventFilter::default() };
    let mut followers = JoinSet::new();
    for _ in 0..FOLLOWERS {
        let follow = Follow { filter: nothing.clone(), ..follow(From::Now) };
        let reader = Arc::clone(&reader);
        followers.spawn(async move { reader.events(follow, Duration::from_secs(600)).await });
    }
    let servers = std::slice::from_ref(&server);
    // All have begun: each has asked where the logs end, and then for what came since.
    wait_until("they follow", PATIENCE, || looks(servers) >= FOLLOWERS * 6);
    let (before, began) = (looks(servers), Instant::now());
    for n in 0..3_000 {
        writer.call(work(n % PARTITIONS.flow)).await.unwrap();
    }
    let (made, lasted) = (looks(servers) - before, began.elapsed());
    followers.abort_all();
    // In each second each of them asks once, three calls for 64 partitions, in case something was lost.
    // What comes is read for all of them, every 5 ms at the most.
    let turns = lasted.as_secs() + 2;
    let expected = FOLLOWERS * turns * 3 + turns * 200;
    assert!(made <= expected, "{made} looks in {lasted:?}, {expected} expected");
}
