//! The small trait that every store implements, and typed calls over it.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _};
use serde::Serialize;

use crate::act::{self, Acts, CancelWholeFlow, ExplainWhole};
use crate::admission::{self, ByName};
use crate::errand::{self, Errands};
use crate::error::{Code, EngineError, Refusal};
use crate::event::Envelope;
use crate::explain;
use crate::id::{BudgetId, ExecutionId, FlowId};
use crate::limits;
use crate::machine::Settings;
use crate::operation::{
    CancelFlow, CascadeCompletion, Claim, ClaimForWorker, ClaimGrant, Claimed, Command, DeleteFlow,
    Deleted, FlowCancelled, Operation, Reconcile, Reconciled, Reply, ReportToAll, Submit,
    SubmitFlow, Submitted, SubmittedFlow, Task, Trim, Trimmed, UsageReported,
};
use crate::read::{
    Answer, Explanation, Follow, Followed, Query, Question, Repaired, StreamPage, Tail, Topic,
};
use crate::spared;
use crate::state::CancelPolicy;
use crate::tally::Tally;
use crate::time::TimestampMs;
use crate::turns::Turn;

/// Questions of one caller that are under way at a time.
const ASKED_AT_ONCE: usize = 64;

/// A call under way.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A store, or a server that stands before one.
///
/// Every command is atomic and answered on its own; a batch is not atomic. Dropping a pending call
/// does not undo it.
pub trait Backend: Upkeep {
    /// Carries out commands and answers each, in the same order.
    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>>;

    /// Tasks for a worker, looked for in all partitions. With nothing found it waits for work, up
    /// to `wait`, and then answers with none.
    /// Of what stands under limits it only sets aside: [`BackendExt::claim`] asks those.
    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>>;

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>>;

    /// What comes after a place in a topic; waits up to `wait` for the first of it.
    fn follow(&self, topic: Topic, wait: Duration) -> Pending<'_, Result<Followed, EngineError>>;

    /// Where a server stands before the store: who carries out acts of several steps as a whole, over
    /// there. A store has none, and whoever wants one of it takes its steps.
    fn acts(&self) -> Option<&dyn Acts> {
        None
    }
}

/// What serves boot, health and housekeeping.
pub trait Upkeep: Send + Sync + 'static {
    /// Short name of the kind of store: `sqlite`, `valkey`, `postgres`.
    fn backend_label(&self) -> &'static str;

    /// Who this store is.
    fn identity(&self) -> Identity;

    fn settings(&self) -> &Settings;

    /// What steps of this process mean for other homes and that is still to be done.
    fn errands(&self) -> &Errands;

    /// What steps of this process have done so far.
    fn tally(&self) -> &Tally;

    fn ping(&self) -> Pending<'_, Result<(), EngineError>>;

    /// The clock that decides.
    fn server_time_ms(&self) -> Pending<'_, Result<TimestampMs, EngineError>>;

    /// Removes records past their retention that no timer removes.
    fn trim(&self, trim: Trim) -> Pending<'_, Result<Trimmed, EngineError>>;

    /// Checks the invariants and makes right what records decide by themselves: places in queues,
    /// timers and lists are derived again, and what belongs to no record is removed. Records are
    /// never changed.
    fn repair(&self) -> Pending<'_, Result<Repaired, EngineError>>;

    /// The same for some records, in a store that is at work: what changes meanwhile is no violation.
    fn reconcile(&self, page: Reconcile) -> Pending<'_, Result<Reconciled, EngineError>>;

    /// Whether it is the caller's turn to do what one engine is enough for.
    fn take_turn(&self, turn: Turn) -> Pending<'_, Result<bool, EngineError>>;

    /// Takes no more calls, lets those under way end, and makes what was acknowledged durable.
    fn shutdown_prepare(&self, grace: Duration) -> Pending<'_, Result<(), EngineError>>;
}

/// Identity of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Identity {
    pub backend: &'static str,
    /// Version of the server or library behind it.
    pub version: String,
    /// What an acknowledgement means.
    pub durability: String,
}

/// Typed calls over [`Backend`].
pub trait BackendExt: Backend {
    /// Carries out one operation, and what it means for other homes.
    fn call<O: Operation>(
        &self,
        operation: O,
    ) -> impl Future<Output = Result<O::Reply, EngineError>> + Send {
        let pending = self.apply(vec![operation.into()]);
        async move {
            let reply = pending.await.pop();
            errand::carry_out_noted(self).await;
            O::reply(reply.unwrap_or_else(|| Err(EngineError::bug("no reply to a command")))?)
        }
    }

    /// Tasks for a worker, looked for in all partitions, that all their limits let in. With nothing
    /// found it waits for work, up to `wait`, and then answers with none.
    fn claim(
        &self,
        claim: Claim,
        wait: Duration,
    ) -> impl Future<Output = Result<Vec<Task>, EngineError>> + Send {
        admission::claim(self, claim, wait)
    }

    /// A claim of one execution by its name, by a grant or by an operator, with a slot of every quota
    /// policy that it stands under. A refusal leaves the grant valid.
    fn take_up<O: ByName>(
        &self,
        operation: O,
    ) -> impl Future<Output = Result<O::Reply, EngineError>> + Send {
        admission::take_up(self, operation)
    }

    /// For a scheduler that is not the worker: the next execution that all its limits let in, set
    /// aside for the worker by a grant. None: there is nothing for it.
    fn claim_for_worker(
        &self,
        claim: ClaimForWorker,
    ) -> impl Future<Output = Result<Option<ClaimGrant>, EngineError>> + Send {
        admission::claim_for_worker(self, claim)
    }

    /// Reports usage of an execution to every budget that it stands under; each is a step of its own,
    /// and has the same key.
    fn report_to_all(
        &self,
        report: ReportToAll,
    ) -> impl Future<Output = Result<Vec<(BudgetId, UsageReported)>, EngineError>> + Send {
        admission::report_to_all(self, report)
    }

    /// Asks one question.
    fn ask<Q: Question>(
        &self,
        question: Q,
    ) -> impl Future<Output = Result<Q::Answer, EngineError>> + Send {
        let pending = self.query(question.into());
        async move { Q::answer(pending.await?) }
    }

    /// Asks many questions at once, a few dozen at a time, and answers each in the same order.
    fn ask_all<Q: Question>(
        &self,
        questions: Vec<Q>,
    ) -> impl Future<Output = Vec<Result<Q::Answer, EngineError>>> + Send {
        let pending = questions.into_iter().map(|question| self.query(question.into()));
        let answers = stream::iter(pending.collect::<Vec<_>>()).buffered(ASKED_AT_ONCE);
        answers.map(|answer| Q::answer(answer?)).collect()
    }

    /// Why an execution is where it is, and what would change it; none if there is no such.
    fn explain(
        &self,
        execution_id: ExecutionId,
    ) -> impl Future<Output = Result<Option<Explanation>, EngineError>> + Send {
        async move {
            match self.acts() {
                Some(acts) => act::whole(acts, ExplainWhole { execution_id }).await,
                None => explain::explain(self, execution_id).await,
            }
        }
    }

    /// Submits many, each on its own, and answers in the same order.
    fn submit_batch(
        &self,
        submits: Vec<Submit>,
    ) -> impl Future<Output = Result<Vec<Result<Submitted, EngineError>>, EngineError>> + Send {
        let pending = match submits.len() {
            1..=limits::BATCH_ITEMS => {
                Ok(self.apply(submits.into_iter().map(Command::from).collect()))
            }
            count => Err(Refusal::invalid(
                "items",
                format!("a batch has 1 to {} items, this one {count}", limits::BATCH_ITEMS),
            )),
        };
        async move {
            let replies = pending?.await;
            Ok(replies.into_iter().map(|reply| Submit::reply(reply?)).collect())
        }
    }

    /// Submits a whole graph and waits until all its members are there. Should this process end
    /// in between, an engine carries it on.
    fn submit_graph(
        &self,
        submit: SubmitFlow,
    ) -> impl Future<Output = Result<SubmittedFlow, EngineError>> + Send
    where
        Self: Sync,
    {
        let large = submit.members.len() > limits::FLOW_STEP as usize;
        async move {
            if let Some(acts) = self.acts() {
                return act::whole(acts, submit).await;
            }
            let submitted = self.call(submit).await?;
            let flow_id = submitted.flow_id;
            while large && carry_on(self, flow_id).await? {}
            Ok(submitted)
        }
    }

    /// Removes a flow that has ended, with all its members. Should this process end in between, an engine
    /// carries it on.
    fn delete_flow(
        &self,
        flow_id: FlowId,
    ) -> impl Future<Output = Result<Deleted, EngineError>> + Send
    where
        Self: Sync,
    {
        async move {
            let deleted = self.call(DeleteFlow { flow_id }).await?;
            // A server has done so before it answers.
            while self.acts().is_none() && carry_on(self, flow_id).await? {}
            Ok(deleted)
        }
    }

    /// Cancels a flow, and carries it on until all whom it ends have ended; a cancel that spares
    /// running members waits for their ends too. Should `wait` run out, that is a timeout. Then, as
    /// when this process ends, the cancel stands and an engine carries it on.
    fn cancel_flow(
        &self,
        cancel: CancelFlow,
        wait: Duration,
    ) -> impl Future<Output = Result<FlowCancelled, EngineError>> + Send
    where
        Self: Sync,
    {
        let (flow_id, until) = (cancel.flow_id, Instant::now().checked_add(wait));
        async move {
            if let Some(acts) = self.acts() {
                return act::whole(acts, CancelWholeFlow { cancel, wait }).await;
            }
            let mut cancelled = self.call(cancel).await?;
            while !wait.is_zero() && cancelled.scheduled > 0 {
                if until.is_some_and(|until| Instant::now() >= until) {
                    let detail = "the cancel stands; its members are still being cancelled";
                    return Err(EngineError::Timeout { detail: detail.to_owned() });
                }
                if !carry_on(self, flow_id).await? {
                    cancelled.scheduled = 0;
                }
            }
            if !wait.is_zero() && cancelled.policy == CancelPolicy::CancelPending {
                spared::ended(self, flow_id, until).await?;
            }
            Ok(cancelled)
        }
    }

    /// Events after a place in the log.
    fn events(
        &self,
        follow: Follow,
        wait: Duration,
    ) -> impl Future<Output = Result<EventsAfter, EngineError>> + Send {
        let pending = self.follow(Topic::Events(follow), wait);
        async move {
            match pending.await? {
                Followed::Events { items, cursors, cursor, gap } => {
                    Ok(EventsAfter { items, cursors, cursor, gap })
                }
                other => Err(EngineError::bug(format!("events: got {other:?}"))),
            }
        }
    }

    /// Frames behind a place in an attempt's output; waits up to `wait` for the first of them, or
    /// for the end of the stream.
    fn tail(
        &self,
        tail: Tail,
        wait: Duration,
    ) -> impl Future<Output = Result<StreamPage, EngineError>> + Send {
        let pending = self.follow(Topic::Frames(tail), wait);
        async move {
            match pending.await? {
                Followed::Frames(page) => Ok(page),
                other => Err(EngineError::bug(format!("frames: got {other:?}"))),
            }
        }
    }

    /// Waits for a timer that is due before `known`.
    fn sooner_timer(
        &self,
        known: Option<TimestampMs>,
        wait: Duration,
    ) -> impl Future<Output = Result<Option<TimestampMs>, EngineError>> + Send {
        let pending = self.follow(Topic::Timers { known }, wait);
        async move {
            match pending.await? {
                Followed::Timers { sooner } => Ok(sooner),
                other => Err(EngineError::bug(format!("timers: got {other:?}"))),
            }
        }
    }
}

impl<B: Backend + ?Sized> BackendExt for B {}

/// Does a share of what a flow has left: whether there is more. One that is gone has nothing left.
async fn carry_on<B: Backend + ?Sized>(backend: &B, flow_id: FlowId) -> Result<bool, EngineError> {
    match backend.call(CascadeCompletion { flow_id }).await {
        Ok(cascaded) => Ok(cascaded.more),
        Err(error) if error.code() == Code::FlowNotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A stretch of the event log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventsAfter {
    pub items: Vec<Envelope>,
    /// Where to go on behind each of them, if that was asked for.
    pub cursors: Vec<String>,
    /// Where to go on, also when there are no items.
    pub cursor: String,
    /// Retention removed something before the first item.
    pub gap: bool,
}
