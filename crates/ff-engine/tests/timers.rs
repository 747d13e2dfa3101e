//! The engine on a real store with the real clock: what is due happens by itself.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_backend_sqlite::{Clock, ManualClock, SqliteOptions, SqliteStore};
use ff_core::backend::{Backend, BackendExt, Upkeep};
use ff_core::id::{ExecutionId, Kind, LaneId, Namespace, WorkerId, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{Claim, LaneOrder, LaneShare, RegisterWorker, Submit, Task};
use ff_core::partition::PartitionConfig;
use ff_core::time::TimestampMs;
use ff_engine::{Engine, EngineOptions, Intervals, Report, Shutdown};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(20);

struct Running {
    store: Arc<SqliteStore>,
    report: Arc<Report>,
    stop: tokio::sync::watch::Sender<bool>,
    engine: tokio::task::JoinHandle<()>,
}

fn start() -> Running {
    start_on(SqliteOptions::memory())
}

fn start_on(options: SqliteOptions) -> Running {
    let store = Arc::new(SqliteStore::open(options).unwrap());
    let backend = Arc::clone(&store) as Arc<dyn Backend>;
    // Nothing may depend on the safety interval: it is longer than the patience of the test.
    let intervals = Intervals::all(PATIENCE * 2);
    let options = EngineOptions { intervals, ..EngineOptions::default() };
    let engine = Engine::new(backend, options);
    let report = engine.report();
    let (stop, shutdown) = Shutdown::channel();
    Running { store, report, stop, engine: tokio::spawn(engine.run(shutdown)) }
}

fn lane() -> LaneId {
    LaneId::new("work").unwrap()
}

impl Running {
    fn submit(&self) -> Submit {
        let id = ExecutionId::solo(Uuid::now_v7(), &self.store.settings().partitions);
        Submit::new(id, lane(), Kind::new("test").unwrap())
    }

    async fn claim(&self, lease_ttl_ms: u64, wait: Duration) -> Option<Task> {
        self.claims(1, lease_ttl_ms, wait).await.pop()
    }

    async fn claims(&self, max: u32, lease_ttl_ms: u64, wait: Duration) -> Vec<Task> {
        let claim = Claim {
            namespace: Namespace::default(),
            worker_id: WorkerId::new("w").unwrap(),
            worker_instance_id: WorkerInstanceId::new("w-1").unwrap(),
            lanes: vec![LaneShare::new(lane())],
            order: LaneOrder::Weighted,
            capabilities: Default::default(),
            max,
            lease_ttl_ms,
            seed: Uuid::now_v7(),
            sets_aside: false,
        };
        let registration = RegisterWorker::for_claim(&claim, "test", 86_400_000);
        self.store.call(registration).await.unwrap();
        self.store.claim(claim, wait).await.unwrap()
    }

    /// The engine counts right after the step that woke us.
    async fn counted(&self, scanner: &str) {
        assert_eq!(self.counted_at_least(scanner, 1).await, 1);
    }

    /// The first count that is not less.
    async fn counted_at_least(&self, scanner: &str, least: u64) -> u64 {
        let counted = async {
            loop {
                let count = self.report.processed().get(scanner).copied().unwrap_or(0);
                if count >= least {
                    return count;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, counted).await.expect("it is counted")
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        tokio::time::timeout(PATIENCE, self.engine).await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delay_ends_when_it_is_due() {
    let running = start();
    let now = running.store.server_time_ms().await.unwrap();
    let submit = Submit { delay_until: Some(now.after(150)), ..running.submit() };
    running.store.call(submit).await.unwrap();
    let begun = Instant::now();
    let task = running.claim(30_000, PATIENCE).await;
    assert!(task.is_some());
    assert!(begun.elapsed() >= Duration::from_millis(100), "not before it is due");
    assert!(begun.elapsed() < Duration::from_secs(5), "pushed, not found by the safety interval");
    running.counted("delayed_promoter").await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_lease_is_claimable_again() {
    let running = start();
    running.store.call(running.submit()).await.unwrap();
    let first = running.claim(200, PATIENCE).await.unwrap();
    let second = running.claim(30_000, PATIENCE).await.unwrap();
    assert_eq!(first.execution_id, second.execution_id);
    assert_eq!((second.lease_epoch, second.reclaim_count), (2, 1));
    running.counted("lease_expiry").await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_ends_a_thousand_leases_a_second() {
    let clock = ManualClock::at(TimestampMs(1_800_000_000_000));
    let partitions = PartitionConfig { flow: 1, budget: 1, quota: 1 };
    let running = start_on(SqliteOptions {
        clock: Clock::Manual(clock.clone()),
        partitions: Some(partitions).into(),
        ..SqliteOptions::memory()
    });
    let most = u64::from(limits::LEASE_EXPIRIES_A_SECOND);
    for _ in 0..3 {
        let submits = (0..500).map(|_| running.submit()).collect();
        running.store.submit_batch(submits).await.unwrap();
        assert_eq!(running.claims(500, 30_000, PATIENCE).await.len(), 500);
    }
    // With a timer this near the engine looks all the time.
    let delay_until = Some(running.store.server_time_ms().await.unwrap().after(1));
    running.store.call(Submit { delay_until, ..running.submit() }).await.unwrap();
    clock.advance(3_600_000);
    let begun = Instant::now();
    assert_eq!(running.counted_at_least("lease_expiry", most).await, most);
    assert_eq!(running.counted_at_least("lease_expiry", most + 1).await, 1_500);
    assert!(begun.elapsed() > Duration::from_millis(500), "the rest waits for its second");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_stops_when_it_is_told() {
    let running = start();
    running.stop().await;
}
