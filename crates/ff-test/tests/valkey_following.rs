//! What following the log costs a server: short calls, and few while nothing happens.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::Duration;

use ff_backend_valkey::{ValkeyOptions, ValkeyStore};
use ff_core::backend::{Backend, BackendExt};
use ff_core::id::{ExecutionId, Kind, LaneId};
use ff_core::operation::Submit;
use ff_core::partition::PartitionConfig;
use ff_core::read::{EventFilter, Follow, From};
use ff_test::servers::{Cluster, ClusterOptions, Server, ServerOptions};

const PARTITIONS: PartitionConfig = PartitionConfig { flow: 64, budget: 1, quota: 1 };

async fn open(url: &str) -> Arc<dyn Backend> {
    let options: ValkeyOptions = url.parse().unwrap();
    let options = ValkeyOptions { partitions: Some(PARTITIONS).into(), ..options };
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
    // Each second two followers look at three nodes, and four times at the other homes.
    let expected = SECONDS * (2 * 3 + 4 * 3);
    assert!(made <= expected + 30, "{made} looks, {expected} expected");
}
