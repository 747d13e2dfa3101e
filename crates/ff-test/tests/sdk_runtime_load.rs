//! The runtime under load: slots, kinds, layers, and what it sends.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ff_core::act::{Act, Acted, Acts};
use ff_core::backend::{Backend, Pending};
use ff_core::error::EngineError;
use ff_core::layer::{Layer, Layered};
use ff_core::operation::{Claim, Claimed, Command, Reply};
use ff_core::state::PublicState;
use ff_sdk::layers::{CircuitBreaker, Metrics, RateLimit};
use ff_sdk::runtime::{Data, Failure, HandlerOptions, TaskCall, TaskService, WorkerRuntime};
use ff_sdk::{FlowFabricWorker, WorkerConfig};
use ff_test::sdk::{Running, Workshop, eventually};
use ff_test::world::PATIENCE;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use tower::{Service as _, ServiceExt as _};

ff_test::on_every_way! {
    a_backlog_is_worked_off
    no_more_run_than_there_are_slots
    a_kind_at_its_limit_holds_nobody_up
    layers_stand_around_handlers_in_order
    a_kind_that_fails_again_and_again_rests
    handlers_start_no_faster_than_their_rate
    capacity_and_handlers_are_measured
    a_thousand_leases_are_renewed_in_a_handful_of_calls
    an_idle_runtime_sends_nothing_but_heartbeats
}

/// How many of something go on at the same time, now and at most.
#[derive(Default)]
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Gauge {
    async fn hold<T>(&self, work: impl Future<Output = T>) -> T {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let done = work.await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        done
    }
}

async fn a_backlog_is_worked_off(workshop: &Workshop) {
    let mut ids = Vec::new();
    for _ in 0..300 {
        ids.push(workshop.submit_kind("k").await);
    }
    let running = Running::start(workshop.runtime().await.on("k", || async { "done" }));
    for id in ids {
        assert_eq!(workshop.result(id).await.as_deref(), Some(r#""done""#));
    }
    running.stop().await;
}

async fn no_more_run_than_there_are_slots(workshop: &Workshop) {
    let gauge = Arc::new(Gauge::default());
    let work = |gauge: Data<Arc<Gauge>>| async move {
        gauge.hold(tokio::task::yield_now()).await;
    };
    let mut ids = Vec::new();
    for _ in 0..60 {
        ids.push(workshop.submit_kind("k").await);
    }
    let runtime = workshop.runtime().await.data(Arc::clone(&gauge)).max_concurrent(3);
    let running = Running::start(runtime.on("k", work));
    for id in ids {
        workshop.until(id, PublicState::Completed).await;
    }
    let most = gauge.most.load(Ordering::SeqCst);
    assert!((1..=3).contains(&most), "{most}");
    running.stop().await;
}

/// Eight slots, one of them for `slow`, whose backlog comes first.
async fn a_kind_at_its_limit_holds_nobody_up(workshop: &Workshop) {
    let (gauge, gate) = (Arc::new(Gauge::default()), Arc::new(Semaphore::new(0)));
    let slow = |gauge: Data<Arc<Gauge>>, gate: Data<Arc<Semaphore>>| async move {
        gauge.hold(async { gate.acquire().await.unwrap().forget() }).await;
    };
    let mut backlog = Vec::new();
    for _ in 0..20 {
        backlog.push(workshop.submit_kind("slow").await);
    }
    let quick = workshop.submit_kind("quick").await;
    let runtime = workshop.runtime().await.data(Arc::clone(&gauge)).data(Arc::clone(&gate));
    let runtime = runtime.on_with("slow", slow, HandlerOptions::new().concurrency(1));
    let running = Running::start(runtime.on("quick", || async {}));
    workshop.until(quick, PublicState::Completed).await;
    gate.add_permits(backlog.len());
    let is_done = || async {
        workshop.pass(1_000).await;
        for id in &backlog {
            if workshop.describe(*id).await.state.public_state != PublicState::Completed {
                return None;
            }
        }
        Some(())
    };
    eventually("the backlog is done", is_done).await;
    assert_eq!(gauge.most.load(Ordering::SeqCst), 1);
    for id in backlog {
        assert_eq!(workshop.describe(id).await.total_attempt_count, 1, "it stays one attempt");
    }
    running.stop().await;
}

type Said = Arc<Mutex<Vec<String>>>;

/// Says when a call comes and goes.
fn says(
    name: &'static str,
    said: &Said,
) -> impl tower::Layer<TaskService, Service = TaskService> + use<> + Send + Sync + 'static {
    let said = Arc::clone(said);
    tower::layer::layer_fn(move |inner: TaskService| {
        let said = Arc::clone(&said);
        TaskService::new(tower::service_fn(move |call: TaskCall| {
            let (mut inner, said) = (inner.clone(), Arc::clone(&said));
            async move {
                said.lock().unwrap().push(format!("{name} sees {}", call.info().kind()));
                let answer = inner.ready().await?.call(call).await;
                let shown = match &answer {
                    Ok(outcome) => outcome.name(),
                    Err(failure) => failure.category_name(),
                };
                said.lock().unwrap().push(format!("{name} hears {shown}"));
                answer
            }
        }))
    })
}

async fn layers_stand_around_handlers_in_order(workshop: &Workshop) {
    let said = Said::default();
    let runtime = workshop.runtime().await.layer(says("outer", &said));
    let runtime = runtime.on_with(
        "k",
        || async { panic!("caught inside") as () },
        HandlerOptions::new().layer(says("own", &said)),
    );
    let running = Running::start(runtime.layer(says("inner", &said)));
    let id = workshop.submit_kind("k").await;
    workshop.until(id, PublicState::Failed).await;
    running.stop().await;
    let heard = ["own", "inner", "outer"].map(|name| format!("{name} hears handler_panic"));
    let seen = ["outer", "inner", "own"].map(|name| format!("{name} sees k"));
    assert_eq!(*said.lock().unwrap(), [seen, heard].concat());
}

async fn a_kind_that_fails_again_and_again_rests(workshop: &Workshop) {
    let broken = || async { Err::<(), _>(Failure::transient("the service is down")) };
    let runtime = workshop.runtime().await.layer(CircuitBreaker::new());
    let running = Running::start(runtime.on("broken", broken).on("other", || async {}));
    for _ in 0..5 {
        let id = workshop.submit_kind("broken").await;
        workshop.until(id, PublicState::Failed).await;
    }
    let rests = workshop.submit_kind("broken").await;
    let record = workshop.until(rests, PublicState::Delayed).await;
    let rest = record.delay_until.unwrap().since(record.last_transition_at);
    assert!((25_000..=30_000).contains(&rest), "{rest} ms");
    let other = workshop.submit_kind("other").await;
    workshop.until(other, PublicState::Completed).await;
    running.stop().await;
}

/// Eleven starts at a hundred a second: the last is a tenth of a second behind the first.
async fn handlers_start_no_faster_than_their_rate(workshop: &Workshop) {
    let (started, mut starts) = mpsc::unbounded_channel::<Instant>();
    let start = |started: Data<mpsc::UnboundedSender<Instant>>| async move {
        let _ = started.send(Instant::now());
    };
    let limited = HandlerOptions::new().layer(RateLimit::per_second(100.0));
    let runtime = workshop.runtime().await.data(started).on_with("k", start, limited);
    let running = Running::start(runtime);
    for _ in 0..11 {
        workshop.submit_kind("k").await;
    }
    let mut times = Vec::new();
    for _ in 0..11 {
        times.push(timeout(PATIENCE, starts.recv()).await.unwrap().unwrap());
    }
    let took = *times.iter().max().unwrap() - *times.iter().min().unwrap();
    assert!(took >= Duration::from_millis(95), "{took:?}");
    running.stop().await;
}

async fn capacity_and_handlers_are_measured(workshop: &Workshop) {
    let metrics = Metrics::default();
    let gate = Arc::new(Semaphore::new(0));
    let wait = |gate: Data<Arc<Semaphore>>| async move { gate.acquire().await.unwrap().forget() };
    let runtime = workshop.runtime().await.max_concurrent(1).data(Arc::clone(&gate));
    let running = Running::start(runtime.metrics(&metrics).on("k", wait));
    let id = workshop.submit_kind("k").await;
    let shows = |line: &str| metrics.text().unwrap().contains(line);
    eventually("the worker is at capacity", || async {
        shows("ff_worker_at_capacity_total 1\n").then_some(())
    })
    .await;
    gate.add_permits(1);
    workshop.until(id, PublicState::Completed).await;
    running.stop().await;
    let counted = r#"ff_handler_duration_seconds_count{kind="k",outcome="completed"} 1"#;
    assert!(shows(counted), "{}", metrics.text().unwrap());
}

/// Counts what is sent.
struct Counting {
    inner: Arc<dyn Backend>,
    calls: Arc<Mutex<BTreeMap<String, (usize, usize)>>>,
}

impl Counting {
    fn note(&self, name: &str, items: usize) {
        let mut calls = self.calls.lock().unwrap();
        let (called, held) = calls.entry(name.to_owned()).or_default();
        (*called, *held) = (*called + 1, *held + items);
    }
}

impl Layer for Counting {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        self.note(commands.first().map_or("nothing", Command::name), commands.len());
        self.inner.apply(commands)
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        self.note("claim", claim.max as usize);
        self.inner.take(claim, wait)
    }

    fn query(
        &self,
        query: ff_core::read::Query,
    ) -> Pending<'_, Result<ff_core::read::Answer, EngineError>> {
        self.note(query.name(), 1);
        self.inner.query(query)
    }

    fn act<'a>(
        &'a self,
        behind: &'a dyn Acts,
        act: Act,
    ) -> Pending<'a, Result<Acted, EngineError>> {
        let name = match &act {
            Act::HearNews(_) => "heartbeat_worker",
            other => other.name(),
        };
        self.note(name, 1);
        behind.act(act)
    }
}

type Calls = Arc<Mutex<BTreeMap<String, (usize, usize)>>>;

async fn counted(workshop: &Workshop, config: WorkerConfig) -> (WorkerRuntime, Calls) {
    let calls = Calls::default();
    let counting = Counting { inner: Arc::clone(&workshop.backend), calls: Arc::clone(&calls) };
    let backend: Arc<dyn Backend> = Arc::new(Layered(counting));
    let worker = FlowFabricWorker::connect_with(config, backend, None).await.unwrap();
    (WorkerRuntime::new(worker).max_concurrent(1_000), calls)
}

async fn a_thousand_leases_are_renewed_in_a_handful_of_calls(workshop: &Workshop) {
    const TASKS: usize = 1_000;
    let config = workshop.config().max_concurrent_tasks(TASKS).lease_ttl_ms(6_000);
    let (runtime, calls) = counted(workshop, config).await;
    let (begun, mut heard) = mpsc::unbounded_channel::<()>();
    let wait = |begun: Data<mpsc::UnboundedSender<()>>| async move {
        let _ = begun.send(());
        std::future::pending::<()>().await;
    };
    let runtime = runtime.data(begun).grace(Duration::ZERO).stop_grace(Duration::ZERO);
    let running = Running::start(runtime.on("k", wait));
    for _ in 0..TASKS {
        workshop.submit_kind("k").await;
    }
    for _ in 0..TASKS {
        timeout(PATIENCE, heard.recv()).await.unwrap().unwrap();
    }
    let renewals = || calls.lock().unwrap().get("renew_lease").copied().unwrap_or_default();
    let (calls_before, held_before) = renewals();
    // Two rounds: what is due then is due within an interval of two seconds each.
    let (sent, held) = eventually("all leases are renewed twice", || async {
        let (sent, held) = renewals();
        let (sent, held) = (sent - calls_before, held - held_before);
        (held >= 2 * TASKS).then_some((sent, held))
    })
    .await;
    assert!(sent <= 20, "{sent} calls for {held} renewals");
    running.stop().await;
}

async fn an_idle_runtime_sends_nothing_but_heartbeats(workshop: &Workshop) {
    let config = workshop.config().claim_wait_ms(60_000).lease_ttl_ms(1_000);
    let (runtime, calls) = counted(workshop, config).await;
    let running = Running::start(runtime.on("k", || async {}));
    let id = workshop.submit_kind("k").await;
    workshop.until(id, PublicState::Completed).await;
    let polls = || calls.lock().unwrap().get("claim").map_or(0, |(called, _)| *called);
    eventually("it waits for work again", || async { (polls() >= 2).then_some(()) }).await;
    let before = calls.lock().unwrap().clone();
    let beats = |calls: &BTreeMap<String, (usize, usize)>| {
        calls.get("heartbeat_worker").map_or(0, |(called, _)| *called)
    };
    let mut after = eventually("it says that it lives", || async {
        let now = calls.lock().unwrap().clone();
        (beats(&now) >= beats(&before) + 3).then_some(now)
    })
    .await;
    after.retain(|name, count| before.get(name) != Some(count));
    after.remove("heartbeat_worker");
    assert!(after.is_empty(), "{after:?}");
    running.stop().await;
}
