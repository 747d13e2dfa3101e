//! The layer that measures every call of a store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_core::act::{Act, Acted, Acts};
use ff_core::backend::{Backend, Pending};
use ff_core::error::EngineError;
use ff_core::layer::Layer;
use ff_core::operation::{Admission, Claim, Claimed, Command, Reclaimed, Reply};
use ff_core::read::{Answer, Query};

use crate::labels::{Because, Called, Ended, Lane};
use crate::metrics::{Measured, Metrics};

const CLAIM: &str = "claim_executions";

pub(crate) struct Metered {
    inner: Arc<dyn Backend>,
    metrics: Metrics,
}

impl Metered {
    pub(crate) fn new(inner: Arc<dyn Backend>, metrics: Metrics) -> Self {
        Self { inner, metrics }
    }
}

impl Layer for Metered {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        let mut names: BTreeMap<&'static str, u32> = BTreeMap::new();
        for command in &commands {
            *names.entry(command.name()).or_default() += 1;
        }
        Box::pin(async move {
            let begun = Instant::now();
            let renewals = names.get("renew_lease").copied().unwrap_or(0);
            let replies = self.inner.apply(commands).await;
            let (took, measured) = (begun.elapsed(), self.metrics.measured());
            for (operation, count) in names {
                let called = Called { operation };
                measured.batches.get_or_create(&called).observe(f64::from(count));
                measured.call(operation, took);
            }
            measured.replies(&replies, renewals, took);
            replies
        })
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        Box::pin(async move {
            let begun = Instant::now();
            let claimed = self.inner.take(claim, wait).await;
            let (took, measured) = (begun.elapsed(), self.metrics.measured());
            // With nothing found it is the wait that would be measured.
            if let Ok(claimed) = &claimed
                && let Some(task) = claimed.tasks.first()
            {
                measured.call(CLAIM, took);
                let lane = measured.lanes.label(task.lane.as_str());
                measured.claims.get_or_create(&Lane { lane }).observe(took.as_secs_f64());
            }
            claimed
        })
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        let name = query.name();
        Box::pin(async move {
            let begun = Instant::now();
            let answer = self.inner.query(query).await;
            self.metrics.measured().call(name, begun.elapsed());
            answer
        })
    }

    fn act<'a>(
        &'a self,
        behind: &'a dyn Acts,
        act: Act,
    ) -> Pending<'a, Result<Acted, EngineError>> {
        let name = act.name();
        Box::pin(async move {
            let begun = Instant::now();
            let acted = behind.act(act).await;
            self.metrics.measured().call(name, begun.elapsed());
            acted
        })
    }
}

impl Measured {
    fn call(&self, operation: &'static str, took: Duration) {
        let called = Called { operation };
        self.call_durations.get_or_create(&called).observe(took.as_secs_f64());
    }

    /// What replies tell that no step does.
    fn replies(&self, replies: &[Result<Reply, EngineError>], renewals: u32, took: Duration) {
        let mut renewed = 0;
        for reply in replies.iter().flatten() {
            match reply {
                Reply::Renew(_) => renewed += 1,
                Reply::CheckAdmission(Admission::RateExceeded { .. }) => self.quota_hit("rate"),
                Reply::CheckAdmission(Admission::ConcurrencyExceeded { .. }) => {
                    self.quota_hit("concurrency");
                }
                Reply::ClaimExecution(task)
                | Reply::ClaimResumedExecution(task)
                | Reply::ReclaimExecution(Reclaimed::Reclaimed(task)) => {
                    let lane = self.lanes.label(task.lane.as_str());
                    self.grant_claims.get_or_create(&Lane { lane }).observe(took.as_secs_f64());
                }
                _ => {}
            }
        }
        for (outcome, count) in [("ok", renewed), ("err", renewals - renewed)] {
            if count > 0 {
                self.renewals.get_or_create(&Ended { outcome }).inc_by(count.into());
            }
        }
    }

    fn quota_hit(&self, reason: &'static str) {
        self.quota_hits.get_or_create(&Because { reason }).inc();
    }
}
