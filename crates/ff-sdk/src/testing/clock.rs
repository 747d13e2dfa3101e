//! Moving the clock, one due time after another.

use std::collections::HashMap;
use std::time::Duration;

use ff_core::backend::BackendExt as _;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::Renew;
use ff_core::read::{Cause, Due, Record};
use ff_core::state::{Outcome, PublicState};
use ff_core::time::TimestampMs;
use ff_engine::acts;

use super::TestEngine;
use super::engine::must;
use super::quiet::{Held, LIVE, fence_of};
use crate::client::Finished;
use crate::presence::millis;

/// Due times that one call passes at the most: work that makes itself due for ever has no end.
const STEPS: usize = 100_000;

impl TestEngine {
    /// Moves the clock. All that is due by then happens in order, each at its own time, and workers
    /// that come for work by themselves do what it leads to before the clock goes on. Leases of
    /// tasks that the test holds are renewed meanwhile.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use ff_core::state::PublicState;
    /// # use ff_sdk::testing::TestEngine;
    /// # use ff_sdk::Submission;
    /// # #[tokio::main] async fn main() -> Result<(), ff_sdk::SdkError> {
    /// let engine = TestEngine::start().await;
    /// let hour = Duration::from_secs(3600);
    /// let later = engine.client().submit(Submission::new("greet").delay(hour)).await?;
    /// engine.advance(hour - Duration::from_millis(1)).await;
    /// engine.assert_state(later.id(), PublicState::Delayed).await;
    /// engine.advance(Duration::from_millis(1)).await;
    /// engine.assert_state(later.id(), PublicState::Waiting).await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When a task that began meanwhile runs for more than ten seconds of real time.
    pub async fn advance(&self, by: Duration) {
        let _moving = self.inner.moving.lock().await;
        let held = self.held().await;
        self.go_to(self.now().after(millis(by)), &held).await;
    }

    /// Runs on until nothing runs and nothing can happen to an execution any more without a word
    /// from outside: whenever all is quiet, the clock goes on to what is due next. A suspension
    /// without a timeout, a hold, and work that nobody serves do not keep it.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::state::PublicState;
    /// use std::time::Duration;
    ///
    /// let week = Duration::from_secs(7 * 86_400);
    /// let reminder = engine.client().submit(Submission::new("remind").delay(week)).await?;
    /// engine.run_until_idle().await;
    /// engine.assert_state(reminder.id(), PublicState::Waiting).await;
    /// assert_eq!(engine.elapsed(), week);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When a task runs for more than ten seconds of real time, or there is no end to what becomes
    /// due.
    pub async fn run_until_idle(&self) {
        let _moving = self.inner.moving.lock().await;
        let nobody = Held::default();
        for _ in 0..STEPS {
            self.go_to(self.now(), &nobody).await;
            match self.next_turn().await {
                Some(next) => self.go_to(next, &nobody).await,
                None => return,
            }
        }
        panic!("{STEPS} due times have passed and there is no end to them");
    }

    /// Runs on, as [`Self::run_until_idle`] does, until an execution has ended, which it must with
    /// this outcome.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::state::Outcome;
    /// use std::time::Duration;
    ///
    /// let code = Submission::new("one-time-code").deadline(Duration::from_secs(60));
    /// let code = engine.client().submit(code).await?;
    /// engine.run_until(code.id(), Outcome::Expired).await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When it ends in another way, or all is idle without its end: tells its history.
    pub async fn run_until(&self, execution_id: ExecutionId, outcome: Outcome) -> Finished {
        {
            let _moving = self.inner.moving.lock().await;
            let nobody = Held::default();
            for _ in 0..STEPS {
                self.go_to(self.now(), &nobody).await;
                if self.describe(execution_id).await.has_ended() {
                    break;
                }
                let Some(next) = self.next_turn().await else { break };
                self.go_to(next, &nobody).await;
            }
        }
        self.assert_outcome(execution_id, outcome).await
    }

    /// Lets the lease of a running task run out, as if its process had been killed: the clock moves
    /// to the lease's end, and nobody renews it. The execution is then there for another worker.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// let task = engine.claimed(Submission::new("work")).await;
    /// engine.lose_lease(task.execution_id()).await;
    /// let again = worker.claim_next().await?.expect("another worker takes it up");
    /// assert_eq!(again.attempt_index(), 1);
    /// assert!(task.complete(None).await.is_err());
    /// # again.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When the execution does not run.
    pub async fn lose_lease(&self, execution_id: ExecutionId) {
        let _moving = self.inner.moving.lock().await;
        let record = self.describe(execution_id).await;
        let Some(end) = record.lease_expires_at else {
            panic!("nobody runs {execution_id}: {}", self.story(&record).await);
        };
        let held = self.held().await;
        self.inner.bench.set_silent(execution_id, true);
        self.go_to(end, &held).await;
        self.inner.bench.set_silent(execution_id, false);
    }

    /// To an instant, with all that happens on the way. To the present: only what is due now.
    async fn go_to(&self, target: TimestampMs, held: &Held) {
        let mut ttls = HashMap::new();
        for _ in 0..STEPS {
            must("carry out what is due", acts::settle(&*self.inner.store).await);
            self.until_quiet(held).await;
            let now = self.now();
            if now >= target {
                return self.renew_leases(&ttls).await;
            }
            let lease_end = self.extend_leases(&mut ttls).await;
            let due = self.next_due(now).await.unwrap_or(target);
            // A lease is renewed in time: just before its end.
            let before_end = lease_end.map_or(target, |end| end.before(1));
            let next = due.min(before_end).min(target).max(now.after(1));
            self.inner.clock.advance(next.0 - now.0);
        }
        panic!("{STEPS} due times have passed before the clock came to {target}");
    }

    /// When the store has something to do next.
    async fn next_due(&self, now: TimestampMs) -> Option<TimestampMs> {
        let dues = must("ask what is due", self.inner.store.ask(Due).await);
        let due = dues.items.into_iter().map(|(_, at)| at).min()?;
        // What is due and stays so is looked at again a moment later, as an engine does.
        Some(if due > now { due } else { now.after(1_000) })
    }

    /// Renews the leases of all that runs, in the place of workers whose time does not pass, and
    /// for as long as a lease may last: that takes fewer steps. Notes for how long they were made,
    /// and tells when the first of them ends.
    async fn extend_leases(&self, ttls: &mut HashMap<ExecutionId, u64>) -> Option<TimestampMs> {
        let mut ends = Vec::new();
        for record in self.in_states(&[PublicState::Active]).await {
            let id = record.execution_id;
            if self.inner.bench.is_silent(id) {
                continue;
            }
            if let (Some(end), Some(renewed)) =
                (record.lease_expires_at, record.lease_last_renewed_at)
            {
                ttls.entry(id).or_insert_with(|| end.since(renewed));
            }
            ends.extend(self.renew(&record, limits::LEASE_TTL_MAX_MS).await);
        }
        ends.into_iter().min()
    }

    /// From now on leases last as long again as they were made for.
    async fn renew_leases(&self, ttls: &HashMap<ExecutionId, u64>) {
        for record in self.in_states(&[PublicState::Active]).await {
            if let Some(ttl_ms) = ttls.get(&record.execution_id) {
                self.renew(&record, *ttl_ms).await;
            }
        }
    }

    /// Renews a lease and tells its end; none when the task has ended meanwhile, which is as good.
    async fn renew(&self, record: &Record, ttl_ms: u64) -> Option<TimestampMs> {
        let (execution_id, fence) = (record.execution_id, fence_of(record)?);
        let renew = Renew { execution_id, fence, ttl_ms: Some(ttl_ms) };
        self.inner.store.call(renew).await.ok().map(|renewed| renewed.expires_at)
    }

    /// When something can happen to an execution by itself.
    async fn next_turn(&self) -> Option<TimestampMs> {
        let now = self.now();
        let mut turns = Vec::new();
        for record in self.in_states(&LIVE).await {
            turns.extend([record.delay_until, record.suspension_timeout_at, record.deadline_at]);
            turns.push(self.turn_of_limit(&record).await);
        }
        turns.into_iter().flatten().filter(|at| *at > now).min()
    }

    /// When a limit lets it in that keeps it back now.
    async fn turn_of_limit(&self, record: &Record) -> Option<TimestampMs> {
        let explained = self.inner.store.explain(record.execution_id).await;
        let explained = must("explain", explained)?;
        let is_limit = matches!(explained.cause, Cause::Budget | Cause::Quota);
        explained.earliest_start_at.filter(|_| is_limit)
    }
}
