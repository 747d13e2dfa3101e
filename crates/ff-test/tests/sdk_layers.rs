//! Layers of the SDK around a backend: a rate, and a breaker.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt as _, Pending};
use ff_core::error::{Code, EngineError};
use ff_core::id::{WorkerId, WorkerInstanceId};
use ff_core::layer::{Layer, Layered};
use ff_core::operation::{Claim, Claimed, Command, Reply};
use ff_core::read::{Answer, Describe, EventFilter, Follow, Followed, From, Query, Topic};
use ff_sdk::layers::{CircuitBreaker, RateLimit};
use ff_test::sdk::Workshop;
use ff_test::world::lane;

ff_test::on_every_way! {
    a_rate_is_kept_for_every_operation
    faults_open_the_breaker_for_every_operation
    refusals_never_open_the_breaker
    a_trial_closes_the_breaker
}

/// The codes of a call of each kind; none: it went well.
async fn each(workshop: &Workshop, backend: &dyn Backend) -> [Option<Code>; 4] {
    let submit = workshop.work();
    let id = submit.execution_id;
    let applied = backend.call(submit).await;
    let instance = WorkerInstanceId::new("nobody-1").unwrap();
    let claim = Claim::new(WorkerId::new("nobody").unwrap(), instance, [lane("none")]);
    let taken = backend.take(claim, Duration::ZERO).await;
    let asked = backend.ask(Describe { execution_id: id }).await;
    let follow =
        Follow { filter: EventFilter::default(), from: From::Start, limit: 1, each: false };
    let followed = backend.events(follow, Duration::ZERO).await;
    [
        applied.err().map(|error| error.code()),
        taken.err().map(|error| error.code()),
        asked.err().map(|error| error.code()),
        followed.err().map(|error| error.code()),
    ]
}

/// A claim of a worker that never registered is refused: that is an answer.
const WELL: [Option<Code>; 4] = [None, Some(Code::WorkerNotRegistered), None, None];

async fn a_rate_is_kept_for_every_operation(workshop: &Workshop) {
    let limited = RateLimit::per_second(0.001).burst(4).around(Arc::clone(&workshop.backend));
    assert_eq!(each(workshop, &*limited).await, WELL);
    assert_eq!(each(workshop, &*limited).await, [Some(Code::RateLimited); 4]);
    let refused = limited.call(workshop.work()).await.unwrap_err();
    assert!(matches!(refused, EngineError::ResourceExhausted(_)), "{refused}");
    assert!(refused.is_retryable());
}

/// A store that does not answer while it is said to be down.
struct Shaky {
    inner: Arc<dyn Backend>,
    down: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
}

impl Shaky {
    fn answer(&self) -> Result<(), EngineError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match self.down.load(Ordering::SeqCst) {
            true => Err(EngineError::unavailable("down")),
            false => Ok(()),
        }
    }
}

impl Layer for Shaky {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        match self.answer() {
            Ok(()) => self.inner.apply(commands),
            Err(error) => Box::pin(async move { vec![Err(error); commands.len()] }),
        }
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        match self.answer() {
            Ok(()) => self.inner.take(claim, wait),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        match self.answer() {
            Ok(()) => self.inner.query(query),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn follow(&self, topic: Topic, wait: Duration) -> Pending<'_, Result<Followed, EngineError>> {
        match self.answer() {
            Ok(()) => self.inner.follow(topic, wait),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }
}

fn shaky(workshop: &Workshop) -> (Arc<dyn Backend>, Arc<AtomicBool>, Arc<AtomicUsize>) {
    let (down, calls) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let inner = Arc::clone(&workshop.backend);
    let shaky = Shaky { inner, down: Arc::clone(&down), calls: Arc::clone(&calls) };
    (Arc::new(Layered(shaky)), down, calls)
}

async fn faults_open_the_breaker_for_every_operation(workshop: &Workshop) {
    let (backend, down, calls) = shaky(workshop);
    let guarded = CircuitBreaker::new().around(backend);
    assert_eq!(each(workshop, &*guarded).await, WELL);
    down.store(true, Ordering::SeqCst);
    for _ in 0..5 {
        guarded.call(workshop.work()).await.unwrap_err();
    }
    let before = calls.load(Ordering::SeqCst);
    down.store(false, Ordering::SeqCst);
    assert_eq!(each(workshop, &*guarded).await, [Some(Code::Unavailable); 4]);
    assert_eq!(calls.load(Ordering::SeqCst), before, "nothing was sent");
}

async fn refusals_never_open_the_breaker(workshop: &Workshop) {
    let guarded = CircuitBreaker::new().around(Arc::clone(&workshop.backend));
    for _ in 0..10 {
        assert_eq!(each(workshop, &*guarded).await, WELL);
    }
}

async fn a_trial_closes_the_breaker(workshop: &Workshop) {
    let (backend, down, _) = shaky(workshop);
    let rule = CircuitBreaker::new().failures(1).rest(Duration::ZERO);
    let guarded = rule.around(backend);
    down.store(true, Ordering::SeqCst);
    guarded.call(workshop.work()).await.unwrap_err();
    down.store(false, Ordering::SeqCst);
    assert_eq!(each(workshop, &*guarded).await, WELL);
}
