//! The engine's scanners: all are there and reported, none stops for what fails, a broken one comes
//! back, and several engines share the work.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ff_backend_sqlite::{SqliteOptions, SqliteStore};
use ff_backend_valkey::ValkeyStore;
use ff_core::backend::{Backend, BackendExt, Upkeep};
use ff_core::capability::Capabilities;
use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, Home, Kind, LaneId, Namespace, WorkerInstanceId};
use ff_core::operation::{
    BlockForAdmission, Claim, Command, RegisterWorker, ScannerFilter, Submit,
};
use ff_core::policy::Policy;
use ff_core::read::{Query, ReadState};
use ff_core::state::{BlockingReason, EligibilityState, PublicState};
use ff_engine::{
    Checked, Engine, EngineOptions, Intervals, Report, RouteCheck, ScannerStatus, Shutdown,
};
use ff_test::servers::{Server, ServerOptions};
use ff_test::spoiled::{Asked, spoiled};
use ff_test::workload;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(60);

/// Whatever a dashboard may ask for.
const NAMES: [&str; 21] = [
    "lease_expiry",
    "delayed_promoter",
    "attempt_timeout",
    "execution_deadline",
    "suspension_timeout",
    "pending_wp_expiry",
    "retention_trimmer",
    "budget_reset",
    "unblock",
    "route_check",
    "worker_ttl",
    "budget_reconciler",
    "quota_reconciler",
    "dependency_reconciler",
    "edge_cancel_dispatcher",
    "edge_cancel_reconciler",
    "cancel_reconciler",
    "flow_projector",
    "index_reconciler",
    "outbox",
    "bulk_runner",
];

struct Running {
    report: Arc<Report>,
    stop: watch::Sender<bool>,
    engine: JoinHandle<()>,
}

/// An engine whose scanners rest so long at most.
fn start(backend: Arc<dyn Backend>, interval: Duration) -> Running {
    let options = EngineOptions { intervals: Intervals::all(interval), ..EngineOptions::default() };
    let engine = Engine::new(backend, options);
    let (stop, shutdown) = Shutdown::channel();
    Running { report: engine.report(), stop, engine: tokio::spawn(engine.run(shutdown)) }
}

impl Running {
    fn status(&self, name: &str) -> ScannerStatus {
        self.report.status().into_iter().find(|status| status.name == name).unwrap()
    }

    /// Waits until a scanner has come so far.
    async fn until(&self, name: &str, is_far: impl Fn(&ScannerStatus) -> bool) -> ScannerStatus {
        let reached = async {
            loop {
                let status = self.status(name);
                if is_far(&status) {
                    return status;
                }
                tokio::task::yield_now().await;
            }
        };
        let reached = tokio::time::timeout(PATIENCE, reached).await;
        reached.unwrap_or_else(|_| panic!("{:#?}", self.status(name)))
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        tokio::time::timeout(PATIENCE, self.engine).await.unwrap().unwrap();
    }
}

fn sqlite() -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(SqliteOptions::memory()).unwrap())
}

fn submit(backend: &dyn Backend) -> Submit {
    let id = ExecutionId::solo(Uuid::now_v7(), &backend.settings().partitions);
    Submit::new(id, lane(), Kind::new("test").unwrap())
}

fn lane() -> LaneId {
    workload::claim(0).lanes[0].lane.clone()
}

async fn state(backend: &dyn Backend, execution_id: ExecutionId) -> PublicState {
    backend.ask(ReadState { execution_id }).await.unwrap().unwrap().public_state
}

#[tokio::test]
async fn every_scanner_is_reported_under_its_name() {
    let engine = Engine::new(sqlite(), EngineOptions::default());
    let names: Vec<_> = engine.status().into_iter().map(|status| status.name).collect();
    let different: BTreeSet<_> = names.iter().copied().collect();
    assert_eq!(names.len(), different.len(), "each once");
    // The loop of the tick itself, and what only this engine has.
    let beside: BTreeSet<_> = ["timers", "grant_expiry", "flow_builder"].into();
    assert_eq!(&different - &beside, NAMES.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scanner_runs() {
    let running = start(sqlite(), Duration::from_millis(100));
    for name in NAMES {
        let status = running.until(name, |status| status.cycles > 1).await;
        assert_eq!((status.errors, status.restarts, status.violations), (0, 0, 0), "{name}");
        assert_eq!(status.durations.iter().sum::<u64>(), status.cycles, "{name}");
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scanner_that_breaks_begins_again_and_the_others_go_on() {
    let is_broken = AtomicBool::new(true);
    let backend = spoiled(sqlite(), move |asked| {
        let is_route = matches!(asked, Asked::Query(Query::ListRoutes(_)));
        assert!(!is_route || !is_broken.swap(false, Ordering::SeqCst), "broken on purpose");
        Ok(())
    });
    let running = start(backend, Duration::from_millis(100));
    running.until("route_check", |status| status.restarts == 1).await;
    let timers = running.status("timers").cycles;
    running.until("timers", |status| status.cycles > timers + 2).await;
    let back = running.until("route_check", |status| status.cycles > 0).await;
    assert_eq!((back.restarts, back.errors), (1, 0));
    assert_eq!(running.status("timers").restarts, 0);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_fails_holds_up_no_other() {
    let server = Server::start(ServerOptions::default());
    let store = Arc::new(ValkeyStore::open(server.url().parse().unwrap()).await.unwrap());
    let soon = Some(store.server_time_ms().await.unwrap().after(200));
    let bad = Submit { delay_until: soon, ..submit(&*store) };
    let poisoned = Home::partition(bad.execution_id.partition());
    let backend = spoiled(Arc::clone(&store) as Arc<dyn Backend>, {
        let poisoned = poisoned.clone();
        move |asked| match asked {
            Asked::Command(Command::Tick(tick)) if tick.home.as_ref() == Some(&poisoned) => {
                Err(EngineError::bug("poisoned on purpose"))
            }
            _ => Ok(()),
        }
    });
    let mut good = Vec::new();
    while good.len() < 20 {
        let submit = Submit { delay_until: soon, ..submit(&*store) };
        if Home::partition(submit.execution_id.partition()) != poisoned {
            good.push(submit.execution_id);
            store.call(submit).await.unwrap();
        }
    }
    let id = bad.execution_id;
    store.call(bad).await.unwrap();
    let running = start(backend, Duration::from_millis(100));
    running.until("delayed_promoter", |status| status.processed == 20).await;
    for id in good {
        assert_eq!(state(&*store, id).await, PublicState::Waiting);
    }
    let timers = running.until("timers", |status| status.skipped > 0).await;
    assert!(timers.errors >= 3, "three times in a row: {timers:?}");
    assert_eq!(state(&*store, id).await, PublicState::Delayed);
    running.stop().await;
}

/// Two workers fall silent; what one of them held cannot be taken away.
#[tokio::test(flavor = "multi_thread")]
async fn an_errand_that_fails_holds_up_no_other() {
    let store = sqlite();
    let is_bad = |query: &Query| match query {
        Query::LeasesOf(query) => {
            query.worker_instance_id.as_ref().is_some_and(|id| id.as_str() == "bad")
        }
        _ => false,
    };
    let backend = spoiled(Arc::clone(&store) as Arc<dyn Backend>, move |asked| match asked {
        Asked::Query(query) if is_bad(query) => Err(EngineError::bug("poisoned on purpose")),
        _ => Ok(()),
    });
    let mut held = Vec::new();
    for instance in ["bad", "good"] {
        let worker_instance_id = WorkerInstanceId::new(instance).unwrap();
        let claim = Claim { max: 1, worker_instance_id, ..workload::claim(0) };
        store.call(RegisterWorker::for_claim(&claim, "boot", 1_000)).await.unwrap();
        store.call(submit(&*store)).await.unwrap();
        let claim = Claim { lease_ttl_ms: 600_000, ..claim };
        held.extend(store.claim(claim, Duration::ZERO).await.unwrap());
    }
    // It is told every second, so it must be skipped for longer than that.
    let running = start(backend, Duration::from_millis(300));
    let outbox = running.until("outbox", |status| status.processed == 1).await;
    assert_eq!(outbox.skipped, 0, "{outbox:?}");
    assert_eq!(state(&*store, held[1].execution_id).await, PublicState::Waiting);
    let outbox = running.until("outbox", |status| status.skipped > 0).await;
    assert!(outbox.errors >= 3, "three times in a row: {outbox:?}");
    assert_eq!(state(&*store, held[0].execution_id).await, PublicState::Active);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_fails_holds_up_no_other() {
    let store = sqlite();
    let backend = spoiled(Arc::clone(&store) as Arc<dyn Backend>, |asked| match asked {
        Asked::Query(Query::ListOffers(query)) if query.namespace.as_str() == "bad" => {
            Err(EngineError::bug("poisoned on purpose"))
        }
        _ => Ok(()),
    });
    for namespace in ["bad", "default"] {
        let namespace = Namespace::new(namespace).unwrap();
        store.call(Submit { namespace, ..gpu(&*store) }).await.unwrap();
    }
    let mut check = RouteCheck::new(Duration::ZERO, ScannerFilter::default());
    for round in 0..3 {
        let checked = check.round(&*backend).await.unwrap();
        assert_eq!((checked.errors, checked.skipped), (1, 0), "round {round}");
        assert!(checked.next_in_ms.is_some(), "the other is on its way");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_leaves_other_namespaces_alone() {
    let store = sqlite();
    store.call(gpu(&*store)).await.unwrap();
    let elsewhere = Namespace::new("elsewhere").unwrap();
    let filter = ScannerFilter { namespace: Some(elsewhere), tag: None };
    let checked = RouteCheck::new(PATIENCE, filter).round(&*store).await.unwrap();
    assert_eq!(checked, Checked::default());
    let checked = RouteCheck::default().round(&*store).await.unwrap();
    assert!(checked.next_in_ms.is_some());
}

/// Something that requires a gpu.
fn gpu(backend: &dyn Backend) -> Submit {
    let required_capabilities = Capabilities::new(["gpu"]).unwrap();
    let policy = Policy { required_capabilities, ..Policy::default() };
    Submit { policy: Arc::new(policy), ..submit(backend) }
}

/// Workers that cannot be read block nothing, and keep nothing blocked.
#[tokio::test]
async fn without_a_look_at_the_workers_everything_is_let_through() {
    let store = sqlite();
    let blind = spoiled(Arc::clone(&store) as Arc<dyn Backend>, |asked| match asked {
        Asked::Query(Query::ListOffers(_)) => Err(EngineError::bug("it is blind")),
        _ => Ok(()),
    });
    let unable = RegisterWorker::for_claim(&workload::claim(0), "boot", 60_000);
    store.call(RegisterWorker { capabilities: Capabilities::default(), ..unable }).await.unwrap();
    let (eligible, blocked) = (gpu(&*store), gpu(&*store));
    let ids = [eligible.execution_id, blocked.execution_id];
    store.call(eligible).await.unwrap();
    store.call(blocked).await.unwrap();
    let reason = BlockingReason::WaitingForCapableWorker;
    let block = BlockForAdmission { execution_id: ids[1], reason, detail: String::new(), by: None };
    store.call(block).await.unwrap();
    let seeing = RouteCheck::default().round(&*store).await.unwrap();
    assert_eq!((seeing.let_go, seeing.errors), (0, 0));
    let checked = RouteCheck::default().round(&*blind).await.unwrap();
    assert_eq!(checked, Checked { let_go: 1, errors: 2, ..Checked::default() });
    for execution_id in ids {
        let state = store.ask(ReadState { execution_id }).await.unwrap().unwrap();
        assert_eq!(state.eligibility_state, EligibilityState::EligibleNow);
    }
}

/// What one engine is enough for is done by one, and by the other when that stops.
async fn two_engines_share_rounds(first: Arc<dyn Backend>, second: Arc<dyn Backend>) {
    let spread = ["route_check", "retention_trimmer", "flow_projector", "index_reconciler"];
    let a = start(first, Duration::from_millis(100));
    for name in spread {
        a.until(name, |status| status.cycles > 0).await;
    }
    let b = start(second, Duration::from_millis(100));
    for name in spread {
        b.until(name, |status| status.left_to_others > 2).await;
        assert_eq!(b.status(name).cycles, 0, "{name}");
        assert_eq!(a.status(name).left_to_others, 0, "{name}");
    }
    a.stop().await;
    for name in spread {
        b.until(name, |status| status.cycles > 0).await;
    }
    b.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_engines_share_rounds_on_sqlite() {
    let store = sqlite();
    two_engines_share_rounds(Arc::clone(&store) as Arc<dyn Backend>, store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_engines_share_rounds_on_valkey() {
    let server = Server::start(ServerOptions::default());
    let open = || async { ValkeyStore::open(server.url().parse().unwrap()).await.unwrap() };
    two_engines_share_rounds(Arc::new(open().await), Arc::new(open().await)).await;
}
