//! Transitions that several rules share. Leaving a phase closes what belongs to it in one place.

use super::draft::Draft;
use super::facts::Settings;
use crate::event::{EventData, EventKind};
use crate::id::LeaseFence;
use crate::state::{
    AttemptState, Cancellation, Causes, CloseReason, Delay, DelayReason, Failure, FailureClass,
    LastEnd, Lease, LeaseEndReply, LeaseLoss, LostBy, Next, Outcome, Phase, PublicState, Runnable,
    StreamEnd, Terminal,
};
use crate::time::TimestampMs;

/// Why an execution failed whose leases were lost too often.
pub(super) const MAX_RECLAIMS_EXCEEDED: &str = "max_reclaims_exceeded";

impl Draft {
    /// Ends the live lease, if there is one, and books its time to the attempt.
    pub(super) fn end_lease(&mut self) -> Option<(Lease, LeaseFence)> {
        let fence = self.execution.live_fence()?;
        let lease = self.execution.phase.lease()?.clone();
        let held_until = self.now.min(lease.expires_at);
        if let Some(attempt) = &mut self.execution.attempt {
            attempt.active_ms += held_until.since(lease.acquired_at);
        }
        Some((lease, fence))
    }

    /// Enters the one outcome. The caller notes the event.
    fn end(&mut self, outcome: Outcome, cancellation: Option<Cancellation>, settings: &Settings) {
        self.end_lease();
        let kept_ms = settings.retention_ms(&self.execution, outcome);
        self.execution.phase = Phase::Terminal(Terminal {
            outcome,
            at: self.now,
            cancellation,
            kept_until: self.now.after(kept_ms),
            underneath: None,
        });
    }

    /// What belongs to the attempt ends with it.
    fn end_attempt(
        &mut self,
        state: AttemptState,
        stream: StreamEnd,
        failure: Option<(&str, &str)>,
    ) {
        let now = self.now;
        self.close_stream(stream);
        self.close_waitpoints(|_| true, CloseReason::AttemptEnded.as_str());
        if let Some(attempt) = &mut self.execution.attempt {
            attempt.end(state, failure, now);
        }
    }

    fn end_failed(&mut self, failure: &Failure) {
        let failure = Some((failure.reason.as_str(), failure.category.as_str()));
        self.end_attempt(AttemptState::EndedFailure, StreamEnd::AttemptFailure, failure);
    }

    /// Keeps what answers a repetition. Operators leave no such memory.
    pub(super) fn remember(&mut self, fence: Option<LeaseFence>, reply: LeaseEndReply) {
        if let Some(fence) = fence {
            self.execution.last_end = Some(LastEnd { fence, reply });
        }
    }

    pub(super) fn succeed(&mut self, settings: &Settings) {
        self.end(Outcome::Success, None, settings);
        self.end_attempt(AttemptState::EndedSuccess, StreamEnd::AttemptSuccess, None);
        self.execution.failure = None;
        self.event(EventKind::Completed);
    }

    /// It can never run.
    pub(super) fn skip(&mut self, settings: &Settings) {
        let going_on = match &self.execution.phase {
            Phase::Runnable(Runnable { causes: Causes { delay, hold, .. }, .. }) => {
                Causes { delay: *delay, hold: hold.clone(), ..Causes::default() }
            }
            _ => Causes::default(),
        };
        self.end(Outcome::Skipped, None, settings);
        if let Phase::Terminal(Terminal { underneath, .. }) = &mut self.execution.phase {
            *underneath = (going_on != Causes::default()).then(|| Box::new(going_on));
        }
        self.event(EventKind::Skipped);
    }

    pub(super) fn cancel(&mut self, cancellation: Cancellation, settings: &Settings) {
        let mut data = EventData::from([
            ("reason".to_owned(), cancellation.reason.as_str().into()),
            ("source".to_owned(), cancellation.source.as_str().into()),
            ("from".to_owned(), cancellation.from.as_str().into()),
        ]);
        // Who runs it finds its task by this.
        let lease_id = self.execution.phase.lease().map(|lease| lease.id.to_string());
        data.extend(lease_id.map(|id| ("lease_id".to_owned(), id.as_str().into())));
        self.end(Outcome::Cancelled, Some(cancellation), settings);
        self.end_attempt(AttemptState::EndedCancelled, StreamEnd::AttemptCancelled, None);
        self.event_with(EventKind::Cancelled, data);
    }

    /// The execution deadline has passed.
    pub(super) fn expire(&mut self, settings: &Settings) {
        self.expire_because("execution_deadline", settings);
    }

    pub(super) fn expire_because(&mut self, reason: &str, settings: &Settings) {
        self.end(Outcome::Expired, None, settings);
        let failure = Some((reason, "timeout"));
        self.end_attempt(AttemptState::EndedFailure, StreamEnd::Expired, failure);
        self.execution.failure = Some(Failure {
            reason: reason.to_owned(),
            category: "timeout".to_owned(),
            class: FailureClass::Timeout,
        });
        let data = EventData::from([("reason".to_owned(), reason.into())]);
        self.event_with(EventKind::Expired, data);
    }

    /// Another attempt after `delay_ms` if the policy allows one; else the end.
    pub(super) fn fail(
        &mut self,
        failure: Failure,
        retry_after_ms: u64,
        settings: &Settings,
    ) -> LeaseEndReply {
        match self.retry_delay(&failure) {
            Some(delay_ms) => self.retry(failure, delay_ms.max(retry_after_ms)),
            None => {
                self.fail_for_good(failure, settings);
                LeaseEndReply::TerminalFailed
            }
        }
    }

    /// The attempt has used up its time: a failure of class timeout, or the end as expired.
    pub(super) fn time_out_attempt(&mut self, settings: &Settings) {
        let failure = Failure {
            reason: "attempt_timeout".to_owned(),
            category: "timeout".to_owned(),
            class: FailureClass::Timeout,
        };
        match self.retry_delay(&failure) {
            Some(delay_ms) => {
                self.retry(failure, delay_ms);
            }
            None => self.expire_because("attempt_timeout", settings),
        }
    }

    fn retry_delay(&self, failure: &Failure) -> Option<u64> {
        let policy = &self.execution.policy().retry;
        let listed = policy.retryable_categories.is_empty()
            || policy.retryable_categories.contains(&failure.category);
        let retries = self.execution.counts.retries;
        (failure.class.may_retry() && listed && retries < policy.max_retries)
            .then(|| policy.backoff.delay_ms(self.execution.id, retries))
    }

    fn retry(&mut self, failure: Failure, delay_ms: u64) -> LeaseEndReply {
        self.end_lease();
        self.end_failed(&failure);
        let delay_until = self.now.after(delay_ms);
        let data = EventData::from([
            ("reason".to_owned(), failure.reason.as_str().into()),
            ("category".to_owned(), failure.category.as_str().into()),
            ("delay_until".to_owned(), delay_until.into()),
            ("retry_count".to_owned(), (self.execution.counts.retries + 1).into()),
        ]);
        self.execution.counts.retries += 1;
        self.execution.failure = Some(failure);
        self.wait_until(delay_until, DelayReason::RetryBackoff, Next::Retry);
        self.event_with(EventKind::RetryScheduled, data);
        LeaseEndReply::RetryScheduled { delay_until, retry_count: self.execution.counts.retries }
    }

    pub(super) fn fail_for_good(&mut self, failure: Failure, settings: &Settings) {
        self.end(Outcome::Failed, None, settings);
        self.end_failed(&failure);
        let data = EventData::from([
            ("reason".to_owned(), failure.reason.as_str().into()),
            ("category".to_owned(), failure.category.as_str().into()),
        ]);
        self.execution.failure = Some(failure);
        self.event_with(EventKind::Failed, data);
    }

    /// The worker puts the task aside; the attempt stays open.
    pub(super) fn put_aside(&mut self, until: TimestampMs) -> PublicState {
        self.end_lease();
        self.wait_until(until, DelayReason::Requested, Next::Resume);
        let data = EventData::from([("delay_until".to_owned(), until.into())]);
        self.event_with(EventKind::Delayed, data);
        self.execution.public_state()
    }

    /// Runnable, behind a delay unless `until` is not in the future.
    pub(super) fn wait_until(&mut self, until: TimestampMs, reason: DelayReason, next: Next) {
        let delay = (until > self.now).then_some(Delay { until, reason });
        let causes = Causes { delay, ..Causes::default() };
        self.execution.phase = Phase::Runnable(Runnable::new(causes, next, self.now));
    }

    /// The lease is lost: claimable again as a reclaim, or failed at the cap.
    pub(super) fn lose_lease(&mut self, by: LostBy, reason: Option<&str>, settings: &Settings) {
        let Some((_, fence)) = self.end_lease() else { return };
        let stream = match by {
            LostBy::Time => StreamEnd::LeaseExpired,
            LostBy::Revocation => StreamEnd::Reclaimed,
        };
        self.end_attempt(AttemptState::InterruptedReclaimed, stream, None);
        self.execution.last_loss = Some(LeaseLoss { fence, by });
        // The lease has been booked above; what `end` would book again is gone with the phase.
        self.execution.phase = Phase::eligible(Next::Reclaim(by), self.now);
        if self.execution.counts.reclaims >= self.execution.policy().timeout.max_reclaim_count {
            self.exceed_reclaims(settings);
            return;
        }
        self.execution.counts.reclaims += 1;
        let kind = match by {
            LostBy::Time => EventKind::LeaseExpired,
            LostBy::Revocation => EventKind::LeaseRevoked,
        };
        let data = reason.map(|reason| ("reason".to_owned(), reason.into())).into_iter().collect();
        self.event_with(kind, data);
    }
    /// Takes a lease away that has run out.
    pub(super) fn lose_lease_if_over(&mut self, settings: &Settings) -> bool {
        let over = self.execution.phase.lease().is_some_and(|lease| lease.is_over(self.now));
        if over {
            self.lose_lease(LostBy::Time, None, settings);
        }
        over
    }

    /// It was lost too often: the end.
    pub(super) fn exceed_reclaims(&mut self, settings: &Settings) {
        let failure = Failure {
            reason: MAX_RECLAIMS_EXCEEDED.to_owned(),
            category: "infra_crash".to_owned(),
            class: FailureClass::InfraCrash,
        };
        self.fail_for_good(failure, settings);
    }

    /// Carries out a deadline that has passed.
    pub(super) fn expire_if_due(&mut self, settings: &Settings) -> bool {
        let due = self.execution.deadline_at.is_some_and(|deadline| deadline <= self.now);
        if due {
            self.expire(settings);
        }
        due
    }
}
