//! Many workers on flows with joins that stand under a budget and a quota policy, while an operator
//! cancels, replays and resets: every flow ends, and the invariants hold.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ff_core::backend::BackendExt as _;
use ff_core::error::{Code, EngineError};
use ff_core::event::Event;
use ff_core::id::{BudgetId, DocumentKind, FlowId, QuotaPolicyId, Subject};
use ff_core::operation::{
    CancelFlow, Claim, Replay, ReplayFlow, ReportUsage, ResetBudget, Spender, Task,
};
use ff_core::policy::Policy;
use ff_core::state::{Attached, CancelPolicy, FlowState, QuotaSpec};
use ff_test::graphs::{Drawn, any_of, let_run, quorum};
use ff_test::limits::{budget, worked};
use ff_test::world::{World, complete, fail, policy};
use ff_test::{history, stages};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

const FLOWS: usize = 12;
const WORKERS: u64 = 8;
const STEPS: usize = 40;

/// Rounds in which all that is left must come to its end.
const ROUNDS: usize = 400;

/// Retries and leases that are short beside the steps of the clock.
const HASTY: &str = r#"{"retry_policy":{"max_retries":2,"backoff":{"type":"fixed","delay_ms":20}},
    "timeout_policy":{"max_reclaim_count":3}}"#;

struct Scene {
    world: World,
    flows: Vec<Drawn>,
    budget_id: BudgetId,
    quota_policy_id: QuotaPolicyId,
    /// Tasks that ended in some way.
    worked: AtomicU32,
}

async fn scene(world: World) -> Arc<Scene> {
    let budget_id = world.budget(budget(&[("tokens", 25, 10)])).await;
    let spec = QuotaSpec {
        window_seconds: 1,
        max_requests_per_window: 12,
        max_concurrent: 4,
        ..QuotaSpec::default()
    };
    let quota_policy_id = world.quota(spec).await;
    let attached = Attached::new([budget_id], Some(quota_policy_id));
    let limited = Arc::new(Policy { attached, ..Policy::clone(&policy(HASTY)) });
    let names = ["a", "b", "c", "d", "e"];
    let edges = ["a>b", "a>c", "b>d", "c>d", "d>e"];
    let mut flows = Vec::new();
    for n in 0..FLOWS {
        let mut drawing = world.draw(&names, &edges);
        if let Some(join) = [None, Some(any_of()), Some(let_run(1)), Some(quorum(2))][n % 4] {
            drawing = drawing.join("d", join);
        }
        for name in names {
            drawing = drawing.with(name, |submit| submit.policy = Arc::clone(&limited));
        }
        flows.push(world.submit_flow(drawing).await);
    }
    let worked = AtomicU32::new(0);
    Arc::new(Scene { world, flows, budget_id, quota_policy_id, worked })
}

/// A holder's call succeeds, or finds its lease gone.
fn lost_or_done<T>(result: Result<T, EngineError>) {
    if let Err(error) = result {
        let expected =
            [Code::LeaseExpired, Code::LeaseRevoked, Code::StaleLease, Code::ExecutionNotActive];
        assert!(expected.contains(&error.code()), "{error}");
    }
}

/// An operator's call succeeds, or finds another state.
fn refused_or_done<T>(result: Result<T, EngineError>) {
    if let Err(error) = result {
        assert_eq!(error.code().http_status(), 409, "{error}");
    }
}

impl Scene {
    fn claim(&self, max: u32) -> Claim {
        Claim { lease_ttl_ms: 300, ..self.world.claim_request(max) }
    }

    /// A task tells what it used, and ends in one way or another.
    async fn work(&self, dice: &mut StdRng, task: &Task) {
        let spender =
            Spender { execution_id: task.execution_id, attempt_index: task.attempt_index };
        let tokens = [("tokens", dice.random_range(0..4))];
        let report = ReportUsage { spender, ..worked(self.budget_id, task.execution_id, &tokens) };
        self.world.backend.call(report).await.unwrap();
        match dice.random_range(0..10) {
            0..7 => lost_or_done(self.world.backend.call(complete(task)).await),
            7..9 => lost_or_done(self.world.backend.call(fail(task, "flaky")).await),
            // Dropped: the lease runs out.
            _ => {}
        }
        self.worked.fetch_add(1, Ordering::Relaxed);
    }

    async fn run_worker(self: Arc<Self>, mut dice: StdRng) {
        for _ in 0..STEPS {
            let wait = Duration::from_millis(dice.random_range(0..3));
            let claim = self.claim(dice.random_range(1..4));
            for task in self.world.backend.claim(claim, wait).await.unwrap() {
                self.work(&mut dice, &task).await;
            }
        }
    }

    /// Cancels, replays, resets, and lets time pass.
    async fn run_operator(self: Arc<Self>, mut dice: StdRng) {
        for _ in 0..STEPS {
            let backend = &self.world.backend;
            let flow = &self.flows[dice.random_range(0..FLOWS)];
            let flow_id = flow.flow_id;
            match dice.random_range(0..12) {
                0 => {
                    let cancels = [CancelPolicy::CancelAll, CancelPolicy::CancelPending];
                    let cancel: CancelFlow = flow.cancel(cancels[dice.random_range(0..2)]);
                    refused_or_done(backend.call(cancel).await);
                }
                1..3 => {
                    let replay = ReplayFlow { flow_id, members: None };
                    refused_or_done(backend.call(replay).await);
                }
                3..5 => {
                    let execution_id = flow.id(["a", "b", "d"][dice.random_range(0..3)]);
                    let descendants = dice.random_range(0..2) == 0;
                    refused_or_done(backend.call(Replay { execution_id, descendants }).await);
                }
                5 => drop(self.world.act(ResetBudget { budget_id: self.budget_id }).await),
                _ => self.world.pass(dice.random_range(0..120)).await,
            }
        }
    }

    async fn has_ended(&self, id: FlowId) -> bool {
        let ended = [FlowState::Completed, FlowState::Failed, FlowState::Cancelled];
        ended.contains(&self.world.flow_state(id).await)
    }

    /// All that is left comes to its end: whatever is let in completes.
    async fn finish(&self) {
        for round in 0..ROUNDS {
            self.world.act(ResetBudget { budget_id: self.budget_id }).await;
            self.world.pass(1_100).await;
            for task in self.world.claim_as(self.claim(50)).await {
                lost_or_done(self.world.backend.call(complete(&task)).await);
            }
            self.world.settle().await;
            let mut left = 0;
            for flow in &self.flows {
                left += u32::from(!self.has_ended(flow.flow_id).await);
            }
            if left == 0 {
                return;
            }
            assert!(round + 1 < ROUNDS, "{left} flows have not ended");
        }
    }
}

fn is_of_budget(event: &Event) -> bool {
    matches!(&event.subject, Subject::Document(id) if id.kind == DocumentKind::Budget)
}

async fn check(world: World, seed: u64) {
    let scene = scene(world).await;
    let dice = |n| StdRng::seed_from_u64(seed * 1_000 + n);
    let mut callers: Vec<_> =
        (0..WORKERS).map(|n| tokio::spawn(Arc::clone(&scene).run_worker(dice(n)))).collect();
    callers.push(tokio::spawn(Arc::clone(&scene).run_operator(dice(WORKERS))));
    for caller in callers {
        caller.await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    // Until it was full, so that some were kept back for it.
    let full = ff_test::limits::usage(scene.budget_id, &[("tokens", 100)]);
    scene.world.act(full).await;
    assert!(scene.world.claim_as(scene.claim(50)).await.is_empty(), "the budget is used up");
    scene.finish().await;
    assert!(scene.worked.load(Ordering::Relaxed) > 0);
    let status = scene.world.status(scene.budget_id).await.unwrap();
    assert!(status.breach_count > 0 && status.reset_count > 0, "seed {seed}: {status:?}");
    scene.world.pass(10_000).await;
    let held = scene.world.describe_quota(scene.quota_policy_id).await.holders;
    assert!(held.is_empty(), "seed {seed}: {held:?}");
    scene.world.audit().await;
    // A budget has no event of its beginning.
    let mut events = history::read_all(&*scene.world.backend).await;
    events.retain(|event| !is_of_budget(event));
    let violations = history::violations(&events);
    assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite() {
    for seed in 0..3 {
        check(stages::sqlite_file().await, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_valkey() {
    for seed in 0..2 {
        check(stages::valkey_standalone().await, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_valkey_cluster() {
    check(stages::valkey_cluster().await, 7).await;
}
