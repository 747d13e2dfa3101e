//! Many callers at once. Replies cannot be compared then; what must always hold can.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::error::{Code, EngineError};
use ff_core::id::ExecutionId;
use ff_core::operation::{
    Cancel, ChangePriority, Delay, DelayUntil, Hold, IssueClaimGrant, LaneShare, Reclaimed,
    Release, Renew, Replay, Revoke, Task,
};
use ff_core::state::CancelSource;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::grants::{claim_granted, grant_and_claim, issue_grant, issue_reclaim, reclaim};
use crate::world::{World, complete, fail, lane, policy};

/// Runs `callers` at once, each with `steps` random steps.
pub async fn crowd(world: Arc<World>, seed: u64, callers: u64, steps: usize) {
    let known: Arc<Mutex<Vec<ExecutionId>>> = Arc::default();
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let caller = Caller {
                world: Arc::clone(&world),
                known: Arc::clone(&known),
                dice: StdRng::seed_from_u64(seed.wrapping_mul(1000) + caller),
                tasks: Vec::new(),
            };
            tokio::spawn(caller.run(steps))
        })
        .collect();
    for task in tasks {
        task.await.expect("a caller");
    }
}

struct Caller {
    world: Arc<World>,
    known: Arc<Mutex<Vec<ExecutionId>>>,
    dice: StdRng,
    tasks: Vec<Task>,
}

impl Caller {
    async fn run(mut self, steps: usize) {
        for _ in 0..steps {
            match self.dice.random_range(0..10) {
                0..3 => self.submit().await,
                3 => self.claim().await,
                4 => self.claim_by_name().await,
                5..8 => self.work().await,
                8 => self.meddle().await,
                _ => self.pass_time().await,
            }
        }
    }

    async fn submit(&mut self) {
        let json = r#"{"retry_policy":{"max_retries":2,"backoff":{"type":"fixed","delay_ms":20}},
            "timeout_policy":{"max_reclaim_count":2,"attempt_timeout_ms":400}}"#;
        let mut submit = self.world.work_on(["a", "b"][self.dice.random_range(0..2)]);
        submit.policy = policy(json);
        submit.priority = self.dice.random_range(0..3);
        let id = self.world.submit(submit).await;
        self.known.lock().expect("the list").push(id);
    }

    async fn claim(&mut self) {
        let mut claim = self.world.claim_request(self.dice.random_range(1..5));
        claim.lanes = vec![LaneShare::new(lane("a")), LaneShare::new(lane("b"))];
        claim.lease_ttl_ms = 200;
        let wait = Duration::from_millis(self.dice.random_range(0..3));
        let tasks = self.world.backend.claim(claim, wait).await.expect("a claim");
        self.tasks.extend(tasks);
    }

    /// Sets one execution aside and claims it, or a part of that: others come between.
    async fn claim_by_name(&mut self) {
        let Some(id) = self.any_known() else { return };
        let backend = &self.world.backend;
        let act = self.dice.random_range(0..6);
        if act < 4 {
            let lane = lane(["a", "b"][self.dice.random_range(0..2)]);
            let grant_ttl_ms = self.dice.random_range(1..100);
            let issue = IssueClaimGrant { lane, grant_ttl_ms, ..issue_grant(id) };
            refused_or_done(backend.call(issue).await);
        }
        let claimed = match act {
            0..3 => backend.call(claim_granted(id)).await.ok(),
            3 => None,
            4 => backend.call(grant_and_claim(id)).await.ok(),
            _ => {
                refused_or_done(backend.call(issue_reclaim(id)).await);
                match backend.call(reclaim(id)).await {
                    Ok(Reclaimed::Reclaimed(task)) => Some(task),
                    other => {
                        refused_or_done(other);
                        None
                    }
                }
            }
        };
        self.tasks.extend(claimed.map(|task| *task));
    }

    fn any_known(&mut self) -> Option<ExecutionId> {
        let known = self.known.lock().expect("the list").clone();
        let newest = known.len().checked_sub(1)?;
        // Old ones have mostly ended.
        Some(known[newest - self.dice.random_range(0..=newest.min(15))])
    }

    async fn work(&mut self) {
        let Some(task) = self.tasks.pop() else { return };
        let backend = &self.world.backend;
        match self.dice.random_range(0..10) {
            0..5 => lost_or_done(backend.call(complete(&task)).await),
            5..7 => lost_or_done(backend.call(fail(&task, "flaky")).await),
            7 => {
                let renew =
                    Renew { execution_id: task.execution_id, fence: task.fence(), ttl_ms: None };
                lost_or_done(backend.call(renew).await);
                self.tasks.push(task);
            }
            8 => {
                let delay = Delay {
                    execution_id: task.execution_id,
                    authority: complete(&task).authority,
                    until: DelayUntil::For(30),
                };
                lost_or_done(backend.call(delay).await);
            }
            // Dropped: the lease runs out.
            _ => {}
        }
    }

    async fn meddle(&mut self) {
        let known = self.known.lock().expect("the list").clone();
        if known.is_empty() {
            return;
        }
        let execution_id = known[self.dice.random_range(0..known.len())];
        let backend = &self.world.backend;
        let text = "meddling".to_owned();
        match self.dice.random_range(0..6) {
            0 => {
                let source = CancelSource::default();
                refused_or_done(
                    backend.call(Cancel { execution_id, reason: text, source, fence: None }).await,
                );
            }
            1 => refused_or_done(
                backend.call(Revoke { execution_id, reason: text, expected_lease_id: None }).await,
            ),
            2 => refused_or_done(backend.call(Hold { execution_id, detail: text }).await),
            3 => refused_or_done(backend.call(Release { execution_id }).await),
            4 => refused_or_done(backend.call(Replay { execution_id, descendants: false }).await),
            _ => {
                let priority = self.dice.random_range(0..9);
                refused_or_done(backend.call(ChangePriority { execution_id, priority }).await);
            }
        }
    }

    async fn pass_time(&mut self) {
        self.world.pass(self.dice.random_range(0..60)).await;
    }
}

/// A holder's call succeeds, or finds its lease gone.
fn lost_or_done<T: std::fmt::Debug>(result: Result<T, EngineError>) {
    if let Err(error) = result {
        let expected =
            [Code::LeaseExpired, Code::LeaseRevoked, Code::StaleLease, Code::ExecutionNotActive];
        assert!(expected.contains(&error.code()), "{error}");
    }
}

/// An operator's call succeeds, or finds another state; never a fault or a bug.
fn refused_or_done<T: std::fmt::Debug>(result: Result<T, EngineError>) {
    if let Err(error) = result {
        assert_eq!(error.code().http_status(), 409, "{error}");
    }
}
