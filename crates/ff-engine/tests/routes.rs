//! The engine on a real store with the real clock: what nobody can run is told, and let go at once
//! when somebody can.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_backend_sqlite::{SqliteOptions, SqliteStore};
use ff_core::backend::{Backend, BackendExt, Identity, Pending, Upkeep};
use ff_core::capability::Capabilities;
use ff_core::errand::Errands;
use ff_core::error::EngineError;
use ff_core::event::EventKind;
use ff_core::id::{ExecutionId, Kind, LaneId, Namespace, WorkerId, WorkerInstanceId};
use ff_core::limits;
use ff_core::machine::Settings;
use ff_core::operation::{
    BlockForAdmission, Claim, Claimed, Command, LaneOrder, LaneShare, RegisterWorker, Reply,
    Submit, Trim, Trimmed,
};
use ff_core::policy::Policy;
use ff_core::read::{
    Answer, EventFilter, Follow, Followed, From, Query, ReadState, Repaired, Topic,
};
use ff_core::state::{BlockingReason, EligibilityState};
use ff_core::time::TimestampMs;
use ff_engine::{Checked, Engine, EngineOptions, RouteCheck, Shutdown};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(30);

fn gpu() -> Capabilities {
    Capabilities::new(["gpu"]).unwrap()
}

fn lane() -> LaneId {
    LaneId::new("work").unwrap()
}

fn claim() -> Claim {
    Claim {
        namespace: Namespace::default(),
        worker_id: WorkerId::new("w").unwrap(),
        worker_instance_id: WorkerInstanceId::new("w-1").unwrap(),
        lanes: vec![LaneShare::new(lane())],
        order: LaneOrder::Weighted,
        capabilities: gpu(),
        max: 1,
        lease_ttl_ms: 60_000,
        seed: Uuid::now_v7(),
        sets_aside: false,
    }
}

/// Something that requires a gpu.
async fn submit(store: &SqliteStore) -> ExecutionId {
    let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
    let policy = Policy { required_capabilities: gpu(), ..Policy::default() };
    let submit = Submit::new(id, lane(), Kind::new("test").unwrap());
    store.call(Submit { policy: Arc::new(policy), ..submit }).await.unwrap();
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_run_is_told_and_let_go() {
    let store = Arc::new(SqliteStore::open(SqliteOptions::memory()).unwrap());
    let backend = Arc::clone(&store) as Arc<dyn Backend>;
    let begun = Instant::now();
    let id = submit(&store).await;
    let (stop, shutdown) = Shutdown::channel();
    let engine = Engine::new(backend, EngineOptions::default());
    let report = engine.report();
    let engine = tokio::spawn(engine.run(shutdown));
    let kinds_of_event = vec![EventKind::Blocked];
    let filter = EventFilter { kinds_of_event, ..EventFilter::default() };
    let follow = Follow { filter, from: From::Start, limit: 1 };
    let blocked = store.events(follow, PATIENCE).await.unwrap().items;
    assert_eq!(blocked[0].event.subject, id);
    assert!(begun.elapsed() >= Duration::from_millis(limits::ROUTE_PATIENCE_MS));
    store.call(RegisterWorker::for_claim(&claim(), "boot", 60_000)).await.unwrap();
    let tasks = store.claim(claim(), Duration::ZERO).await.unwrap();
    assert_eq!(tasks[0].execution_id, id, "at once, not with the engine's next look");
    let counted = async {
        while report.processed()["route_check"] != 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.expect("the round counts what it blocked");
    stop.send_replace(true);
    tokio::time::timeout(PATIENCE, engine).await.unwrap().unwrap();
}

/// Workers that cannot be read block nothing, and keep nothing blocked.
#[tokio::test]
async fn without_a_look_at_the_workers_everything_is_let_through() {
    let blind = Blind(SqliteStore::open(SqliteOptions::memory()).unwrap());
    let store = &blind.0;
    let unable = RegisterWorker::for_claim(&claim(), "boot", 60_000);
    store.call(RegisterWorker { capabilities: Capabilities::default(), ..unable }).await.unwrap();
    let (eligible, blocked) = (submit(store).await, submit(store).await);
    let reason = BlockingReason::WaitingForCapableWorker;
    let detail = String::new();
    let block = BlockForAdmission { execution_id: blocked, reason, detail, by: None };
    store.call(block).await.unwrap();
    let seeing = RouteCheck::default().round(store).await.unwrap();
    assert_eq!((seeing.let_go, seeing.errors), (0, 0));
    let checked = RouteCheck::default().round(&blind).await.unwrap();
    assert_eq!(checked, Checked { let_go: 1, errors: 2, ..Checked::default() });
    for execution_id in [eligible, blocked] {
        let state = store.ask(ReadState { execution_id }).await.unwrap().unwrap();
        assert_eq!(state.eligibility_state, EligibilityState::EligibleNow);
    }
}

/// A store whose workers cannot be read.
struct Blind(SqliteStore);

impl Backend for Blind {
    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        self.0.apply(commands)
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        self.0.take(claim, wait)
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        match query {
            Query::ListOffers(_) => Box::pin(async { Err(EngineError::bug("it is blind")) }),
            query => self.0.query(query),
        }
    }

    fn follow(&self, topic: Topic, wait: Duration) -> Pending<'_, Result<Followed, EngineError>> {
        self.0.follow(topic, wait)
    }
}

impl Upkeep for Blind {
    fn backend_label(&self) -> &'static str {
        self.0.backend_label()
    }

    fn identity(&self) -> Identity {
        self.0.identity()
    }

    fn settings(&self) -> &Settings {
        self.0.settings()
    }

    fn errands(&self) -> &Errands {
        self.0.errands()
    }

    fn ping(&self) -> Pending<'_, Result<(), EngineError>> {
        self.0.ping()
    }

    fn server_time_ms(&self) -> Pending<'_, Result<TimestampMs, EngineError>> {
        self.0.server_time_ms()
    }

    fn trim(&self, trim: Trim) -> Pending<'_, Result<Trimmed, EngineError>> {
        self.0.trim(trim)
    }

    fn repair(&self) -> Pending<'_, Result<Repaired, EngineError>> {
        self.0.repair()
    }

    fn shutdown_prepare(&self, grace: Duration) -> Pending<'_, Result<(), EngineError>> {
        self.0.shutdown_prepare(grace)
    }
}
