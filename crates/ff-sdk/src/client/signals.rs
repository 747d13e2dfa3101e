//! Saying what executions wait for.

use std::time::Duration;

use ff_core::id::{ExecutionId, LaneId, SignalId};
use ff_core::limits;
use ff_core::operation::{
    CloseWaitpoint, Decision, DeliverApproval, IssueToken, Remint, Settled, WaitpointRef,
};
use ff_core::read::{ListPendingWaitpoints, ListWaitpoints, ListedWaitpoint, Page, WaitingFilter};

use super::Client;
use crate::error::SdkError;
use crate::presence::millis;
use crate::task::{Signal, SignalOutcome, WaitpointTicket};

impl Client {
    /// Says something to a waitpoint, of an execution of any lane. A signal with an idempotency key
    /// is sent again when the reply is lost; without one that might count it twice.
    pub async fn deliver_signal(
        &self,
        execution_id: ExecutionId,
        waitpoint: impl Into<WaitpointRef>,
        signal: Signal,
    ) -> Result<SignalOutcome, SdkError> {
        let has_key = signal.idempotency_key.is_some();
        let deliver = signal.deliver(execution_id, waitpoint.into())?;
        let delivered = if has_key { self.insist(deliver).await } else { self.call(deliver).await };
        Ok(delivered?.into())
    }

    /// An operator's yes, as `ff approve` says it: no token is needed.
    pub async fn approve(
        &self,
        execution_id: ExecutionId,
        waitpoint: impl Into<WaitpointRef>,
        operator: &str,
        comment: Option<&str>,
    ) -> Result<SignalOutcome, SdkError> {
        let waitpoint = waitpoint.into();
        self.decide(execution_id, waitpoint, Decision::Approve, (operator, comment)).await
    }

    /// An operator's no.
    pub async fn deny(
        &self,
        execution_id: ExecutionId,
        waitpoint: impl Into<WaitpointRef>,
        operator: &str,
        comment: Option<&str>,
    ) -> Result<SignalOutcome, SdkError> {
        let waitpoint = waitpoint.into();
        self.decide(execution_id, waitpoint, Decision::Deny, (operator, comment)).await
    }

    async fn decide(
        &self,
        execution_id: ExecutionId,
        waitpoint: WaitpointRef,
        decision: Decision,
        (operator, comment): (&str, Option<&str>),
    ) -> Result<SignalOutcome, SdkError> {
        let approval = DeliverApproval {
            execution_id,
            waitpoint,
            lane: None,
            signal_id: SignalId::mint(),
            decision,
            name: None,
            suffix: None,
            comment: comment.map(str::to_owned),
            operator: operator.to_owned(),
        };
        Ok(self.insist(approval).await?.into())
    }

    /// Waitpoints of one execution that are not closed, oldest first. Tells no tokens.
    pub async fn list_waitpoints(
        &self,
        execution_id: ExecutionId,
    ) -> Result<Vec<ListedWaitpoint>, SdkError> {
        self.ask(ListWaitpoints { execution_id }).await
    }

    /// All that waits for somebody in the client's namespace, oldest first: an inbox. Lanes: only
    /// these, or all.
    pub async fn list_pending_waitpoints(
        &self,
        lanes: Vec<LaneId>,
        cursor: Option<String>,
    ) -> Result<Page<ListedWaitpoint>, SdkError> {
        let namespace = self.namespace.clone();
        let filter = WaitingFilter { namespace, lanes, ..WaitingFilter::default() };
        self.ask(ListPendingWaitpoints { filter, cursor, limit: limits::PAGE }).await
    }

    /// The token of a waitpoint, for whoever may answer.
    pub async fn read_waitpoint_token(
        &self,
        execution_id: ExecutionId,
        waitpoint: impl Into<WaitpointRef>,
    ) -> Result<WaitpointTicket, SdkError> {
        self.issue(execution_id, waitpoint.into(), None).await
    }

    /// A new token: the one before is refused from now on. It lasts as long as its waitpoint, or
    /// `ttl`.
    pub async fn remint_waitpoint_token(
        &self,
        execution_id: ExecutionId,
        waitpoint: impl Into<WaitpointRef>,
        ttl: Option<Duration>,
    ) -> Result<WaitpointTicket, SdkError> {
        let remint = Remint { token_ttl_ms: ttl.map(millis) };
        self.issue(execution_id, waitpoint.into(), Some(remint)).await
    }

    async fn issue(
        &self,
        execution_id: ExecutionId,
        waitpoint: WaitpointRef,
        remint: Option<Remint>,
    ) -> Result<WaitpointTicket, SdkError> {
        Ok(self.call(IssueToken { execution_id, waitpoint, remint }).await?.into())
    }

    /// Closes a waitpoint: no signal is accepted any more.
    pub async fn close_waitpoint(
        &self,
        execution_id: ExecutionId,
        waitpoint: impl Into<WaitpointRef>,
        reason: &str,
    ) -> Result<Settled, SdkError> {
        let (waitpoint, reason) = (waitpoint.into(), reason.to_owned());
        self.insist(CloseWaitpoint { execution_id, waitpoint, reason }).await
    }
}
