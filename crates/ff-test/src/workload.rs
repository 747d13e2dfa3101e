//! Submitters and workers that go on through faults, and a ledger of what was acknowledged to them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt};
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, Kind, LaneId, Namespace, WorkerId, WorkerInstanceId};
use ff_core::operation::{Claim, LaneOrder, LaneShare, Submit, Task};
use ff_core::read::Describe;
use ff_core::state::PublicState;
use ff_engine::{Engine, EngineOptions, Shutdown};
use tokio::sync::watch;
use uuid::Uuid;

use crate::history;
use crate::registered::registration_of;
use crate::sound;
use crate::world::complete;

/// Longer than any fault of a test and what it takes to recover from it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Short, so that what a lost reply leaves behind is taken up again within a test.
const LEASE_TTL_MS: u64 = 2_000;

/// How long a caller rests before it sends again what failed.
const REST: Duration = Duration::from_millis(20);

/// How much to do.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    pub submitters: usize,
    pub submits_each: usize,
    pub workers: usize,
}

/// What was acknowledged.
#[derive(Debug, Default)]
pub struct Ledger {
    submitted: Mutex<BTreeSet<ExecutionId>>,
    completed: Mutex<BTreeSet<ExecutionId>>,
    done: watch::Sender<usize>,
    /// Faults that callers met and got over.
    faults: Mutex<Vec<EngineError>>,
    stop: AtomicBool,
}

impl Ledger {
    fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn submitted(&self) -> usize {
        Self::lock(&self.submitted).len()
    }

    pub fn completed(&self) -> usize {
        Self::lock(&self.completed).len()
    }

    pub fn faults(&self) -> Vec<EngineError> {
        Self::lock(&self.faults).clone()
    }

    /// A fault is got over by sending the same again; anything else is a defect.
    async fn get_over(&self, error: EngineError) {
        assert!(error.is_retryable(), "not to be got over: {error}");
        Self::lock(&self.faults).push(error);
        tokio::time::sleep(REST).await;
    }
}

impl Workload {
    pub fn total(&self) -> usize {
        self.submitters * self.submits_each
    }

    /// Runs on `backends`, callers taking turns among them, with an engine on the first, until all
    /// is done; `faults` runs beside it. Panics when it does not come to an end.
    pub async fn run(
        self,
        backends: &[Arc<dyn Backend>],
        faults: impl Future<Output = ()>,
    ) -> Arc<Ledger> {
        let ledger = Arc::new(Ledger::default());
        let (stop, shutdown) = Shutdown::channel();
        let engine = Engine::new(Arc::clone(&backends[0]), EngineOptions::default());
        let engine = tokio::spawn(engine.run(shutdown));
        let backend = |n: usize| Arc::clone(&backends[n % backends.len()]);
        let mut callers = tokio::task::JoinSet::new();
        for n in 0..self.submitters {
            callers.spawn(submit(backend(n), Arc::clone(&ledger), self.submits_each));
        }
        for n in 0..self.workers {
            callers.spawn(work(backend(n), Arc::clone(&ledger), n));
        }
        let finished = async {
            let mut done = ledger.done.subscribe();
            let all = done.wait_for(|done| *done >= self.total());
            let ended = tokio::time::timeout(PATIENCE, all).await.is_ok();
            assert!(
                ended,
                "{} of {} submitted, {} completed; last fault: {:?}",
                ledger.submitted(),
                self.total(),
                ledger.completed(),
                ledger.faults().last()
            );
            ledger.stop.store(true, Ordering::Relaxed);
        };
        tokio::join!(finished, faults);
        while let Some(caller) = callers.join_next().await {
            caller.expect("a caller");
        }
        stop.send_replace(true);
        engine.await.expect("the engine");
        ledger
    }
}

async fn submit(backend: Arc<dyn Backend>, ledger: Arc<Ledger>, count: usize) {
    for n in 0..count {
        let id = ExecutionId::solo(Uuid::now_v7(), &backend.settings().partitions);
        let submit = Submit {
            payload: Content::new(vec![7; n % 3 * 200]),
            ..Submit::new(id, lane(), Kind::new("fault").expect("a kind"))
        };
        loop {
            // The same id: a repetition finds the first.
            match backend.call(submit.clone()).await {
                Ok(_) => break,
                Err(error) => ledger.get_over(error).await,
            }
        }
        Ledger::lock(&ledger.submitted).insert(id);
    }
}

async fn work(backend: Arc<dyn Backend>, ledger: Arc<Ledger>, n: usize) {
    while let Err(error) = backend.call(registration_of(&claim(n))).await {
        ledger.get_over(error).await;
    }
    while !ledger.stop.load(Ordering::Relaxed) {
        match backend.claim(claim(n), Duration::from_millis(200)).await {
            Ok(tasks) => {
                for task in tasks {
                    finish(&*backend, &ledger, &task).await;
                }
            }
            Err(error) => ledger.get_over(error).await,
        }
    }
}

/// Completes a task, again after a lost reply; one whose lease was lost is left to others.
async fn finish(backend: &dyn Backend, ledger: &Ledger, task: &Task) {
    loop {
        match backend.call(complete(task)).await {
            Ok(_) => {
                let mut completed = Ledger::lock(&ledger.completed);
                completed.insert(task.execution_id);
                ledger.done.send_replace(completed.len());
                return;
            }
            Err(error) if error.refusal().is_some() => return,
            Err(error) => ledger.get_over(error).await,
        }
    }
}

fn lane() -> LaneId {
    LaneId::new("faults").expect("a lane")
}

/// A claim of the `n`-th worker.
pub fn claim(n: usize) -> Claim {
    Claim {
        namespace: Namespace::default(),
        worker_id: WorkerId::new("fault").expect("a worker"),
        worker_instance_id: WorkerInstanceId::new(format!("fault-{n}")).expect("an instance"),
        lanes: vec![LaneShare::new(lane())],
        order: LaneOrder::default(),
        capabilities: Default::default(),
        max: 4,
        lease_ttl_ms: LEASE_TTL_MS,
        seed: Uuid::now_v7(),
        sets_aside: false,
    }
}

/// Everything acknowledged is there and done, and the store is sound.
pub async fn check(backend: &dyn Backend, ledger: &Ledger) {
    let submitted = Ledger::lock(&ledger.submitted).clone();
    for id in submitted {
        let record = backend.ask(Describe { execution_id: id }).await.expect("an answer");
        let record = record.unwrap_or_else(|| panic!("I1: {id} was acknowledged and is gone"));
        assert_eq!(record.state.public_state, PublicState::Completed, "{id}");
    }
    let violations = sound::violations(backend).await.expect("an audit");
    assert!(violations.is_empty(), "{violations:#?}");
    let events = history::read_all(backend).await;
    let violations = history::violations(&events);
    assert!(violations.is_empty(), "{violations:#?}");
}
