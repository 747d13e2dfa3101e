//! Opening a store on Valkey: what is checked, and what a person is told.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_backend_valkey::{Durability, OpenError, ValkeyOptions, ValkeyStore};
use ff_core::backend::{Backend, BackendExt, Upkeep};
use ff_core::id::{ExecutionId, Kind, LaneId};
use ff_core::operation::Submit;
use ff_core::partition::{GivenPartitions, PartitionConfig};
use ff_core::read::Describe;
use ff_test::servers::{Cluster, ClusterOptions, Persistence, Server, ServerOptions, TlsFront};
use ff_test::workload::{Workload, check};
use uuid::Uuid;

const SMALL: Workload = Workload { submitters: 4, submits_each: 40, workers: 4 };

fn options(server: &Server) -> ValkeyOptions {
    let options: ValkeyOptions = server.url().parse().unwrap();
    ValkeyOptions { connect_patience: Duration::from_millis(300), ..options }
}

/// The error of an open that must fail, with words that it must say.
async fn refused(options: ValkeyOptions, words: &[&str]) -> OpenError {
    let shown = options.to_string();
    let Err(error) = ValkeyStore::open(options).await else { panic!("{shown} was opened") };
    for word in words {
        assert!(error.to_string().contains(word), "{word:?} is missing in: {error}");
    }
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_submitted_is_there_for_the_next_process() {
    let server = Server::start(ServerOptions::default());
    let first = ValkeyStore::open(options(&server)).await.unwrap();
    let id = ExecutionId::solo(Uuid::now_v7(), &first.settings().partitions);
    let submit = Submit::new(id, LaneId::new("lane").unwrap(), Kind::new("kind").unwrap());
    first.call(submit).await.unwrap();
    first.shutdown_prepare(Duration::from_secs(5)).await.unwrap();
    assert!(first.ask(Describe { execution_id: id }).await.is_err(), "a closed store answers");
    let second = ValkeyStore::open(options(&server)).await.unwrap();
    assert!(second.ask(Describe { execution_id: id }).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn partition_counts_are_fixed_by_the_first_boot() {
    let server = Server::start(ServerOptions::default());
    let counts = PartitionConfig { flow: 8, budget: 2, quota: 3 };
    let given = |partitions: Option<PartitionConfig>| ValkeyOptions {
        partitions: partitions.into(),
        ..options(&server)
    };
    ValkeyStore::open(given(Some(counts))).await.unwrap();
    let second = ValkeyStore::open(given(None)).await.unwrap();
    assert_eq!(second.settings().partitions, counts, "the stored ones hold");
    let other = PartitionConfig { budget: 4, ..counts };
    let words = ["partition_mismatch", "num_budget_partitions", "4", "2"];
    refused(given(Some(other)), &words).await;
    let none = PartitionConfig { flow: 0, ..counts };
    refused(given(Some(none)), &["num_flow_partitions"]).await;
    let beside = ValkeyOptions { prefix: "other".to_owned(), ..given(None) };
    let beside = ValkeyStore::open(beside).await.unwrap();
    assert_eq!(beside.settings().partitions, PartitionConfig::default(), "a prefix is a store");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_partition_count_is_given_by_itself() {
    let server = Server::start(ServerOptions::default());
    let with = |partitions| ValkeyOptions { partitions, ..options(&server) };
    let none = GivenPartitions::default();
    let flow = GivenPartitions { flow: Some(32), ..none };
    let counts = PartitionConfig { flow: 32, ..PartitionConfig::default() };
    let fresh = ValkeyStore::open(with(flow)).await.unwrap();
    assert_eq!(fresh.settings().partitions, counts, "defaults for the others");
    let budget = GivenPartitions { budget: Some(16), ..none };
    assert_eq!(ValkeyStore::open(with(budget)).await.unwrap().settings().partitions, counts);
    let quota = GivenPartitions { quota: Some(8), ..none };
    refused(with(quota), &["partition_mismatch", "num_quota_partitions is 8"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_might_drop_keys_is_refused() {
    let server = Server::start(ServerOptions::default());
    server.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).unwrap();
    refused(options(&server), &["allkeys-lru", "noeviction"]).await;
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).unwrap();
    ValkeyStore::open(options(&server)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn durability_that_the_server_does_not_give_is_refused() {
    let lax = ServerOptions { persistence: Persistence::AppendEverySecond, ..Default::default() };
    let server = Server::start(lax);
    let with = |durability| ValkeyOptions { durability, ..options(&server) };
    refused(with(Durability::Fsync), &["appendfsync", "always"]).await;
    refused(with(Durability::Replica), &["replica"]).await;
    server.command(&["CONFIG", "SET", "appendfsync", "always"]).unwrap();
    let store = ValkeyStore::open(with(Durability::Fsync)).await.unwrap();
    assert_eq!(store.identity().durability, "fsync");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_fails_at_once_and_is_not_told() {
    let secret = "correct-horse".to_owned();
    let server = Server::start(ServerOptions { password: Some(secret), ..Default::default() });
    ValkeyStore::open(options(&server)).await.unwrap();
    let wrong = format!("valkey://:battery-staple@127.0.0.1:{}", server.port());
    let error = refused(wrong.parse().unwrap(), &["password"]).await;
    assert!(!error.to_string().contains("battery-staple"), "{error}");
    let none = format!("valkey://127.0.0.1:{}", server.port());
    refused(none.parse().unwrap(), &["password"]).await;
}

/// The line that the guide gives to operators.
fn least_rights() -> Vec<String> {
    let guide = include_str!("../../../docs/guides/valkey.md");
    let line = guide.lines().find(|line| line.starts_with("ACL SETUSER")).expect("a line");
    line.split_whitespace().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_no_more_rights_than_the_guide_gives_is_enough() {
    let cluster = Cluster::start(&ClusterOptions::default());
    let server = Server::start(ServerOptions {
        persistence: Persistence::AppendAlways,
        ..ServerOptions::default()
    });
    for node in cluster.nodes().iter().chain([&server]) {
        let words = least_rights();
        node.command(&words.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    }
    let as_user = |url: String| url.replace("valkey://", "valkey://flowfabric:SECRET@");
    let alone: ValkeyOptions = as_user(server.url()).parse().unwrap();
    let many: ValkeyOptions = as_user(cluster.url()).parse().unwrap();
    for options in [ValkeyOptions { durability: Durability::Fsync, ..alone }, many] {
        let store = ValkeyStore::open(options).await.unwrap();
        let backends: [Arc<dyn Backend>; 1] = [Arc::new(store)];
        let ledger = SMALL.run(&backends, std::future::ready(())).await;
        check(&*backends[0], &ledger).await;
        assert_eq!(ledger.faults(), []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_only_who_is_trusted_is_talked_to() {
    let server = Server::start(ServerOptions::default());
    let front = TlsFront::start(&server).await;
    let url = format!("valkeys://127.0.0.1:{}", front.port());
    let trusting = format!("{url}?ca={}", front.ca().display());
    let backends: [Arc<dyn Backend>; 1] =
        [Arc::new(ValkeyStore::open(trusting.parse().unwrap()).await.unwrap())];
    let ledger = SMALL.run(&backends, std::future::ready(())).await;
    check(&*backends[0], &ledger).await;
    assert_eq!(ledger.faults(), []);
    let impatient = |url: &str| {
        let options: ValkeyOptions = url.parse().unwrap();
        let (connect_patience, call_timeout) = (Duration::ZERO, Duration::from_millis(500));
        ValkeyOptions { connect_patience, call_timeout, ..options }
    };
    let stranger = TlsFront::start(&server).await;
    let other_ca = format!("{url}?ca={}", stranger.ca().display());
    refused(impatient(&other_ca), &["certificate"]).await;
    let in_clear = format!("valkeys://127.0.0.1:{}?ca={}", server.port(), front.ca().display());
    refused(impatient(&in_clear), &["TLS"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_there_is_said_with_the_address() {
    let server = Server::start(ServerOptions::default());
    let gone = options(&server);
    server.stop();
    refused(gone, &["127.0.0.1", &server.port().to_string()]).await;
}

/// Processes that are at work go on without a primary that hangs; one that begins has to look at each.
#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_hangs_is_named_and_waited_for() {
    let cluster = Cluster::start(&ClusterOptions::default());
    let hung = &cluster.nodes()[1];
    let address = format!("127.0.0.1:{}", hung.port());
    let options: ValkeyOptions = cluster.url().parse().unwrap();
    let patience = Duration::from_secs(3);
    let options = ValkeyOptions { connect_patience: patience, ..options };
    hung.pause();
    let begun = Instant::now();
    refused(options.clone(), &[&format!("valkey at {address} cannot be reached")]).await;
    let taken = begun.elapsed();
    assert!(taken < patience + options.call_timeout, "{taken:?}");
    let opening = tokio::spawn(ValkeyStore::open(ValkeyOptions {
        connect_patience: Duration::from_secs(60),
        ..options
    }));
    hung.resume();
    opening.await.unwrap().unwrap();
}

/// Reads are answered, so that all checks are passed; what a boot writes is held up.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_holds_up_writes_is_waited_for() {
    let server = Server::start(ServerOptions::default());
    ValkeyStore::open(options(&server)).await.unwrap();
    let with = |connect_patience| ValkeyOptions {
        connect_patience,
        call_timeout: Duration::from_millis(300),
        ..options(&server)
    };
    server.command(&["CLIENT", "PAUSE", "2000", "WRITE"]).unwrap();
    let address = format!("127.0.0.1:{}", server.port());
    refused(with(Duration::ZERO), &[&format!("valkey at {address} cannot be reached")]).await;
    ValkeyStore::open(with(Duration::from_secs(60))).await.unwrap();
}

/// Nobody gives rights while we wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_rights_to_the_keys_is_refused_at_once() {
    let server = Server::start(ServerOptions::default());
    let words = ["ACL", "SETUSER", "stranger", "on", ">SECRET", "~theirs:*", "+@all"];
    server.command(&words).unwrap();
    let url = server.url().replace("valkey://", "valkey://stranger:SECRET@");
    let connect_patience = Duration::from_secs(60);
    let options = ValkeyOptions { connect_patience, ..url.parse().unwrap() };
    let begun = Instant::now();
    let error = refused(options, &["does not allow this user", "ACL SETUSER"]).await;
    assert!(matches!(error, OpenError::Server(_)), "{error}");
    assert!(begun.elapsed() < connect_patience / 4, "{:?}", begun.elapsed());
}

/// As after a failover, or while memory is full: what helps comes without a word to us.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_writes_is_waited_for() {
    let server = Server::start(ServerOptions::default());
    let set = |name, value| server.command(&["CONFIG", "SET", name, value]).unwrap();
    for (name, hinders, helps) in [("min-replicas-to-write", "1", "0"), ("maxmemory", "1", "0")] {
        set(name, hinders);
        let error = refused(options(&server), &[name]).await;
        assert!(matches!(error, OpenError::Unreachable { .. }), "{error}");
        let patience = Duration::from_secs(60);
        let patient = ValkeyOptions { connect_patience: patience, ..options(&server) };
        let opening = tokio::spawn(ValkeyStore::open(patient));
        set(name, helps);
        opening.await.unwrap().unwrap();
        server.command(&["FUNCTION", "FLUSH"]).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_and_one_node_are_not_mixed_up() {
    let server = Server::start(ServerOptions::default());
    refused(ValkeyOptions { cluster: true, ..options(&server) }, &["cluster"]).await;
    let cluster = Cluster::start(&ClusterOptions::default());
    let alone: ValkeyOptions = cluster.url().parse().unwrap();
    refused(ValkeyOptions { cluster: false, ..alone }, &["cluster=1"]).await;
}
