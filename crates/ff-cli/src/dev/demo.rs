//! The demonstration: a flow that shows what there is, and a worker for it.
//!
//! An outline, three drafts at a time that stream their words and spend a budget, one of them only at
//! its second attempt, a review that waits for a person, and what follows from an approval.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt};
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{
    Authority, BudgetId, Dimension, ExecutionId, FlowId, IdempotencyKey, Kind, LaneId, MemberName,
    Namespace, WaitpointKey, WorkerId, WorkerInstanceId,
};
use ff_core::limits;
use ff_core::operation::{
    AppendFrames, Binding, Claim, Complete, CreateBudget, CreateFlow, DeregisterWorker, Fail,
    GraphEdge, GraphMember, NewFrame, RegisterWorker, ReportToAll, Spender, Submit, SubmitFlow,
    Suspend, Task, UpdateProgress,
};
use ff_core::policy::{Backoff, BackoffCurve, Policy, RetryPolicy};
use ff_core::state::{
    Attached, BudgetScope, Condition, EdgeKind, Limits, Matcher, SuspensionReason,
};
use ff_engine::{Shutdown, acts};
use uuid::Uuid;

const LANE: &str = "demo";
/// Members: their names, their kinds and what they work on.
const MEMBERS: [(&str, &str, &str); 6] = [
    ("outline", "plan", "a story of three parts"),
    ("draft-1", "write", "Once a lease was granted to a worker."),
    ("draft-2", "write", "The worker was lost and the lease ran out."),
    ("draft-3", FLAKY, "Another took it up, and nothing was done twice."),
    ("review", REVIEW, ""),
    ("publish", "publish", "the story"),
];
const EDGES: [(&str, &str); 7] = [
    ("outline", "draft-1"),
    ("outline", "draft-2"),
    ("outline", "draft-3"),
    ("draft-1", "review"),
    ("draft-2", "review"),
    ("draft-3", "review"),
    ("review", "publish"),
];
/// Fails at its first attempt.
const FLAKY: &str = "write-flaky";
/// Waits for a person.
const REVIEW: &str = "review";
const APPROVAL: &str = "approval";
const WORDS: &str = "words";
/// The third draft goes over the soft limit.
const LIMITS: Limits = Limits { hard: 10_000, soft: 20 };
const RETRY_AFTER_MS: u64 = 500;
/// How long a piece of the pretended work takes.
const WORK: Duration = Duration::from_millis(50);

/// What is to be submitted.
pub(crate) struct Story {
    budget: CreateBudget,
    flow: SubmitFlow,
}

impl Story {
    pub(crate) fn new(backend: &dyn Backend) -> anyhow::Result<Self> {
        let scope = BudgetScope::Custom("demo".to_owned());
        let dimensions = BTreeMap::from([(Dimension::new(WORDS)?, LIMITS)]);
        let budget = CreateBudget::new(BudgetId::mint(), Namespace::default(), scope);
        let flow = graph(backend, budget.budget_id)?;
        Ok(Self { budget: CreateBudget { dimensions, ..budget }, flow })
    }

    /// The execution that somebody has to approve.
    pub(crate) fn review(&self) -> Option<ExecutionId> {
        let review = self.flow.members.iter().find(|member| &*member.name == REVIEW);
        review.map(|member| member.submit.execution_id)
    }

    pub(crate) async fn submit(self, backend: &dyn Backend) -> Result<(), EngineError> {
        backend.call(self.budget).await?;
        backend.submit_graph(self.flow).await?;
        Ok(())
    }
}

fn graph(backend: &dyn Backend, budget_id: BudgetId) -> anyhow::Result<SubmitFlow> {
    let flow_id = FlowId::mint();
    let partitions = &backend.settings().partitions;
    let retry = RetryPolicy {
        max_retries: 3,
        backoff: Backoff { curve: BackoffCurve::Fixed { delay_ms: RETRY_AFTER_MS }, jitter: false },
        retryable_categories: Vec::new(),
    };
    let policy = Arc::new(Policy { retry, ..Policy::default() });
    let member = |&(name, kind, text): &(&str, &str, &'static str)| -> anyhow::Result<_> {
        let id = ExecutionId::for_flow(Uuid::now_v7(), flow_id, partitions);
        let submit = Submit::new(id, LaneId::new(LANE)?, Kind::new(kind)?);
        let (payload, policy) = (Content::new(text), Arc::clone(&policy));
        let creator_identity = "ff dev".to_owned();
        let submit = Submit { payload, policy, creator_identity, ..submit };
        Ok(GraphMember { name: MemberName::new(name)?, submit })
    };
    let edge = |&(from, to): &(&str, &str)| -> anyhow::Result<_> {
        let (from, to) = (MemberName::new(from)?, MemberName::new(to)?);
        let (kind, name, data_passing_ref) = (EdgeKind::SuccessOnly, None, None);
        Ok(GraphEdge { from, to, kind, name, data_passing_ref })
    };
    let attached = Attached::new([budget_id], None);
    Ok(SubmitFlow {
        flow: CreateFlow { attached, ..CreateFlow::new(flow_id, Kind::new("demo")?) },
        members: MEMBERS.iter().map(member).collect::<Result<_, _>>()?,
        edges: EDGES.iter().map(edge).collect::<Result<_, _>>()?,
        groups: Vec::new(),
        edge_seed: Uuid::now_v7(),
    })
}

/// Works on the lane of the demonstration until the wish to stop, as many at a time as there are
/// drafts; a task in hand is finished.
pub(crate) async fn work(backend: Arc<dyn Backend>, shutdown: Shutdown) -> anyhow::Result<()> {
    let one = |number| worker(&*backend, shutdown.clone(), number);
    tokio::try_join!(one(1), one(2), one(3))?;
    Ok(())
}

async fn worker(backend: &dyn Backend, shutdown: Shutdown, number: u32) -> anyhow::Result<()> {
    let instance = WorkerInstanceId::new(format!("ff-dev-{}-{number}", std::process::id()))?;
    let claim = Claim::new(WorkerId::new("ff-dev")?, instance, [LaneId::new(LANE)?]);
    let worked = work_off(backend, shutdown, &claim).await;
    let Claim { namespace, worker_instance_id, .. } = claim;
    acts::deregister(backend, DeregisterWorker { namespace, worker_instance_id }).await?;
    worked
}

async fn work_off(
    backend: &dyn Backend,
    mut shutdown: Shutdown,
    claim: &Claim,
) -> anyhow::Result<()> {
    let wait = Duration::from_millis(limits::CLAIM_WAIT_MS);
    loop {
        // Registered again before each claim, so it lives as long as the worker.
        let registration = RegisterWorker::for_claim(claim, "ff-dev", 3 * limits::CLAIM_WAIT_MS);
        backend.call(registration).await?;
        let claiming = backend.claim(claim.clone(), wait);
        let Some(tasks) = shutdown.or(claiming).await else { return Ok(()) };
        for task in tasks? {
            match handle(backend, &task).await {
                // The task is not ours any more; whoever has it now ends it.
                Err(error) if is_refusal(&error) => {
                    tracing::warn!(%error, execution = %task.execution_id, "given up");
                }
                ended => ended?,
            }
        }
    }
}

fn is_refusal(error: &anyhow::Error) -> bool {
    error.downcast_ref::<EngineError>().is_some_and(|error| error.refusal().is_some())
}

async fn handle(backend: &dyn Backend, task: &Task) -> anyhow::Result<()> {
    match &*task.kind {
        FLAKY if task.retry_count == 0 => fail(backend, task, "transient").await,
        "write" | FLAKY => write(backend, task).await,
        REVIEW => review(backend, task).await,
        _ => {
            let message = "half of it is thought out".to_owned();
            let (execution_id, fence) = (task.execution_id, task.fence());
            backend.call(UpdateProgress { execution_id, fence, pct: 50, message }).await?;
            tokio::time::sleep(WORK).await;
            complete(backend, task, "done".to_owned()).await
        }
    }
}

/// Streams word after word, and tells the budget how many there were.
async fn write(backend: &dyn Backend, task: &Task) -> anyhow::Result<()> {
    let (execution_id, fence) = (task.execution_id, task.fence());
    let text = String::from_utf8_lossy(&task.payload).into_owned();
    for word in text.split_inclusive(' ') {
        let frames = vec![NewFrame::new("stdout", Content::new(word.to_owned()))];
        backend.call(AppendFrames { execution_id, fence, frames }).await?;
        tokio::time::sleep(WORK).await;
    }
    let words = text.split(' ').count() as u64;
    let usage = ReportToAll {
        spender: Spender { execution_id, attempt_index: task.attempt_index },
        dimensions: BTreeMap::from([(Dimension::new(WORDS)?, words)]),
        dedup_key: Some(IdempotencyKey::new(execution_id.to_string())?),
        mode: None,
    };
    backend.report_to_all(usage).await?;
    complete(backend, task, text).await
}

/// Waits for a person; resumed, it does what the person said.
async fn review(backend: &dyn Backend, task: &Task) -> anyhow::Result<()> {
    let Some(decision) = task.extras.resume_signals.first() else {
        let key = WaitpointKey::new(APPROVAL)?;
        let condition = Condition::Single { waitpoint: key.clone(), name: Matcher::Wildcard };
        let bindings = vec![Binding::fresh(key)];
        let suspend = Suspend::new(task.execution_id, task.fence(), bindings, condition);
        let reason = SuspensionReason("waiting_for_approval".to_owned());
        backend.call(Suspend { reason, ..suspend }).await?;
        return Ok(());
    };
    match &*decision.name {
        "denied" => fail(backend, task, "permanent").await,
        name => complete(backend, task, name.to_owned()).await,
    }
}

async fn fail(backend: &dyn Backend, task: &Task, category: &str) -> anyhow::Result<()> {
    let fail = Fail {
        execution_id: task.execution_id,
        authority: Authority::Fence(task.fence()),
        reason: format!("{} is made to fail here", task.kind),
        category: category.to_owned(),
        class: None,
        retry_after_ms: None,
    };
    backend.call(fail).await?;
    Ok(())
}

async fn complete(backend: &dyn Backend, task: &Task, result: String) -> anyhow::Result<()> {
    let complete = Complete {
        execution_id: task.execution_id,
        authority: Authority::Fence(task.fence()),
        result: Some(Content::new(result)),
        next: None,
    };
    backend.call(complete).await?;
    Ok(())
}
