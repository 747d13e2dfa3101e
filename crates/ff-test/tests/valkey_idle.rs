//! What a store costs its servers when there is nothing to do: commands, as the servers count them.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_backend_valkey::ValkeyStore;
use ff_core::backend::{Backend, BackendExt};
use ff_core::limits;
use ff_core::operation::Claim;
use ff_engine::acts::{self, Beat, Heartbeat};
use ff_engine::{Engine, EngineOptions, Shutdown};
use ff_test::registered::registration_of;
use ff_test::servers::{Cluster, ClusterOptions, Server, ServerOptions};
use ff_test::workload;
use tokio::task::JoinSet;

const WORKERS: usize = 10;

/// A server with its engine and ten waiting workers sends no more in a second.
const FIRST_MOST: f64 = 100.0;

/// And each further server.
const FURTHER_MOST: f64 = 5.0;

/// How long is measured, and how often: what is done once in many seconds may fall into the time.
const MEASURED: Duration = Duration::from_secs(5);
const TIMES: usize = 4;

/// Until those who have just come wait.
const SETTLING: Duration = Duration::from_secs(2);

async fn open(url: &str) -> Arc<ValkeyStore> {
    Arc::new(ValkeyStore::open(url.parse().unwrap()).await.unwrap())
}

fn engine(store: &Arc<ValkeyStore>, running: &mut JoinSet<()>, shutdown: &Shutdown) {
    let backend = Arc::clone(store) as Arc<dyn Backend>;
    running.spawn(Engine::new(backend, EngineOptions::default()).run(shutdown.clone()));
}

/// Waits for work and for news at the same time, as every worker does.
async fn worker(store: Arc<ValkeyStore>, n: usize) {
    let claim = Claim { max: 1, ..workload::claim(n) };
    let registration = registration_of(&claim);
    let mut heartbeat = Heartbeat {
        namespace: registration.namespace.clone(),
        worker_instance_id: registration.worker_instance_id.clone(),
        boot_id: registration.boot_id.clone(),
        leases: Vec::new(),
        after: None,
    };
    store.call(registration).await.unwrap();
    // Nobody comes back while it is measured.
    let longest = Duration::from_millis(limits::HEARTBEAT_WAIT_MS);
    let beats = async {
        loop {
            match acts::heartbeat(&*store, &heartbeat, longest).await.unwrap() {
                Beat::Refreshed(news) => heartbeat.after = news.cursor,
                Beat::NotRegistered => panic!("nobody is lost here"),
            }
        }
    };
    let claims = async {
        loop {
            let tasks = store.claim(claim.clone(), longest).await.unwrap();
            assert!(tasks.is_empty(), "work came where none was submitted");
        }
    };
    let ((), ()) = tokio::join!(beats, claims);
}

async fn pass(time: Duration) {
    tokio::time::interval_at((Instant::now() + time).into(), time).tick().await;
}

/// Commands in a second, once everybody waits: the least of several times, of which no more are measured
/// once it is `enough`.
async fn rate(store: &ValkeyStore, enough: f64) -> f64 {
    pass(SETTLING).await;
    let mut least = f64::INFINITY;
    for _ in 0..TIMES {
        let (begun, before) = (Instant::now(), store.commands_sent().await.unwrap());
        pass(MEASURED).await;
        let sent = store.commands_sent().await.unwrap() - before;
        least = least.min(sent as f64 / begun.elapsed().as_secs_f64());
        if least <= enough {
            break;
        }
    }
    least
}

async fn idle(url: &str) {
    let (stop, shutdown) = Shutdown::channel();
    let (mut engines, mut workers) = (JoinSet::new(), JoinSet::new());
    let first = open(url).await;
    engine(&first, &mut engines, &shutdown);
    let alone = rate(&first, FIRST_MOST).await;
    let second = open(url).await;
    engine(&second, &mut engines, &shutdown);
    let added = rate(&first, alone + FURTHER_MOST).await - alone;
    assert!(added <= FURTHER_MOST, "{added:.1} commands a second more");
    for n in 0..WORKERS {
        workers.spawn(worker(Arc::clone(&first), n));
    }
    let most = FIRST_MOST + FURTHER_MOST;
    let all = rate(&first, most).await;
    assert!(all <= most, "{all:.1} commands a second");
    workers.shutdown().await;
    stop.send_replace(true);
    engines.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_is_left_alone() {
    let server = Server::start(ServerOptions::default());
    idle(&server.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_left_alone() {
    let cluster = Cluster::start(&ClusterOptions::default());
    idle(&cluster.url()).await;
}
