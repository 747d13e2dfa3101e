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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_sdk::{Signal, SignalOutcome, SuspendOutcome, Suspension};
    ///
    /// let id = task.execution_id();
    /// let payment = Suspension::signal("payment", "paid")?;
    /// let SuspendOutcome::Suspended(at) = task.suspend_on(payment).await? else { panic!() };
    /// let ticket = at.waitpoint().expect("a waitpoint").clone();
    /// let paid = Signal::new("paid", ticket.token).idempotency_key("event-991");
    /// let outcome = engine.client().deliver_signal(id, ticket.key, paid).await?;
    /// assert!(matches!(outcome, SignalOutcome::TriggeredResume { .. }));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid_token` and `token_expired` for a token that does not open it;
    /// `waitpoint_not_found`, `waitpoint_closed`, `target_not_signalable` of an execution that has
    /// ended, `signal_limit_exceeded` and `execution_not_found`.
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

    /// An operator's yes, as `ff approve` says it: no token is needed. Each call is one decision,
    /// sent again when the reply is lost. Over a server the operator is who the server knows the
    /// caller as, whatever is said here.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// # use ff_sdk::Suspension;
    /// use ff_core::id::WaitpointKey;
    ///
    /// # let id = task.execution_id();
    /// # task.suspend_on(Suspension::approval("review")?).await?;
    /// let review: WaitpointKey = "review".parse()?;
    /// engine.client().approve(id, review, "ada", Some("ship it")).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `waitpoint_not_found`, `waitpoint_closed` and `execution_not_found`.
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
    ///
    /// The task goes on as after a yes, and finds the signal `denied`.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # use ff_sdk::Suspension;
    /// # let task = engine.claimed(Submission::new("deploy")).await;
    /// # let id = task.execution_id();
    /// # task.suspend_on(Suspension::approval("review")?).await?;
    /// use ff_core::id::WaitpointKey;
    ///
    /// let review: WaitpointKey = "review".parse()?;
    /// engine.client().deny(id, review, "ada", Some("not on a Friday")).await?;
    /// let task = worker.claim_next().await?.expect("it goes on");
    /// assert_eq!(task.resume_signals().await?[0].name.as_str(), "denied");
    /// # task.cancel("denied").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::approve`].
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
        let signal_id = SignalId::mint();
        let approval = DeliverApproval {
            execution_id,
            waitpoint,
            lane: None,
            signal_id,
            decision,
            name: None,
            // Without one the same word of another operator, or in a later wait, counts as said.
            suffix: signal_id.to_string().into(),
            comment: comment.map(str::to_owned),
            operator: operator.to_owned(),
        };
        Ok(self.insist(approval).await?.into())
    }

    /// Waitpoints of one execution that are not closed, oldest first. Tells no tokens.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// # use ff_sdk::Suspension;
    /// # let id = task.execution_id();
    /// # task.suspend_on(Suspension::approval("review")?).await?;
    /// let open = engine.client().list_waitpoints(id).await?;
    /// assert_eq!(open[0].key.as_str(), "review");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_found`.
    pub async fn list_waitpoints(
        &self,
        execution_id: ExecutionId,
    ) -> Result<Vec<ListedWaitpoint>, SdkError> {
        self.ask(ListWaitpoints { execution_id }).await
    }

    /// All that waits for somebody in the client's namespace, oldest first: an inbox. Lanes: only
    /// these, or all.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// # use ff_sdk::Suspension;
    /// # task.suspend_on(Suspension::approval("review")?).await?;
    /// let inbox = engine.client().list_pending_waitpoints(vec![], None).await?;
    /// for waiting in &inbox.items {
    ///     println!("{} waits for {}", waiting.execution_id, waiting.key);
    /// }
    /// assert_eq!(inbox.items.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid_cursor` for a cursor of another list.
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// # use ff_sdk::Suspension;
    /// # let id = task.execution_id();
    /// # task.suspend_on(Suspension::signal("payment", "paid")?).await?;
    /// use ff_core::id::WaitpointKey;
    /// use ff_sdk::Signal;
    ///
    /// let payment: WaitpointKey = "payment".parse()?;
    /// let ticket = engine.client().read_waitpoint_token(id, payment).await?;
    /// let paid = Signal::new("paid", ticket.token);
    /// engine.client().deliver_signal(id, ticket.waitpoint_id, paid).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `waitpoint_not_found`, `waitpoint_closed` and `execution_not_found`.
    pub async fn read_waitpoint_token(
        &self,
        execution_id: ExecutionId,
        waitpoint: impl Into<WaitpointRef>,
    ) -> Result<WaitpointTicket, SdkError> {
        self.issue(execution_id, waitpoint.into(), None).await
    }

    /// A new token: the one before is refused from now on. It lasts as long as its waitpoint, or
    /// `ttl`.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// # use ff_sdk::{Signal, SuspendOutcome, Suspension};
    /// # let id = task.execution_id();
    /// # let payment = Suspension::signal("payment", "paid")?;
    /// # let SuspendOutcome::Suspended(at) = task.suspend_on(payment).await? else { panic!() };
    /// # let leaked = at.waitpoint().expect("a waitpoint").clone();
    /// # let client = engine.client();
    /// let fresh = client.remint_waitpoint_token(id, leaked.waitpoint_id, None).await?;
    /// let paid = Signal::new("paid", leaked.token);
    /// assert!(client.deliver_signal(id, leaked.waitpoint_id, paid).await.is_err());
    /// let paid = Signal::new("paid", fresh.token);
    /// client.deliver_signal(id, fresh.waitpoint_id, paid).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::read_waitpoint_token`].
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// # let id = task.execution_id();
    /// let ticket = task.create_pending_waitpoint("review", None).await?;
    /// engine.client().close_waitpoint(id, ticket.waitpoint_id, "not needed").await?;
    /// assert!(engine.client().list_waitpoints(id).await?.is_empty());
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `waitpoint_not_found` and `execution_not_found`.
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
