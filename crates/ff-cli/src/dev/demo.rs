//! The demonstration: a few executions and a worker for them.

use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt};
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{Authority, ExecutionId, Kind, LaneId, WorkerId, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{Claim, Complete, Fail, RegisterWorker, Submit, Task, UpdateProgress};
use ff_core::policy::{Backoff, BackoffCurve, Policy, RetryPolicy};
use ff_engine::Shutdown;
use uuid::Uuid;

const LANE: &str = "demo";
const GREET: &str = "greet";
/// Fails at its first attempt.
const FLAKY: &str = "flaky";
const RETRY_AFTER_MS: u64 = 1_000;
const DELAY_MS: u64 = 2_000;
/// How long the pretended work takes.
const WORK: Duration = Duration::from_millis(200);

/// Three greetings, one execution that is tried twice, one that begins later.
pub(crate) async fn submit(backend: &dyn Backend) -> anyhow::Result<()> {
    let mut submits = Vec::new();
    for name in ["Ada", "Grace", "Linus"] {
        submits.push(execution(backend, GREET, name)?);
    }
    let retry = RetryPolicy {
        max_retries: 3,
        backoff: Backoff { curve: BackoffCurve::Fixed { delay_ms: RETRY_AFTER_MS }, jitter: false },
        retryable_categories: Vec::new(),
    };
    let policy = Arc::new(Policy { retry, ..Policy::default() });
    submits.push(Submit { policy, ..execution(backend, FLAKY, "Murphy")? });
    let later = backend.server_time_ms().await?.after(DELAY_MS);
    let patient = execution(backend, GREET, "Penelope")?;
    submits.push(Submit { delay_until: Some(later), ..patient });
    for submitted in backend.submit_batch(submits).await? {
        submitted?;
    }
    Ok(())
}

fn execution(backend: &dyn Backend, kind: &str, name: &'static str) -> anyhow::Result<Submit> {
    let id = ExecutionId::solo(Uuid::now_v7(), &backend.settings().partitions);
    let submit = Submit::new(id, LaneId::new(LANE)?, Kind::new(kind)?);
    Ok(Submit { payload: Content::new(name), creator_identity: "ff dev".to_owned(), ..submit })
}

/// Works on the lane of the demonstration until the wish to stop; a task in hand is finished.
pub(crate) async fn work(backend: Arc<dyn Backend>, mut shutdown: Shutdown) -> anyhow::Result<()> {
    let wait = Duration::from_millis(limits::CLAIM_WAIT_MS);
    loop {
        // Registered again before each claim, so it lives as long as the worker.
        let registration =
            RegisterWorker::for_claim(&claim()?, "ff-dev", 3 * limits::CLAIM_WAIT_MS);
        backend.call(registration).await?;
        let Some(tasks) = shutdown.or(backend.claim(claim()?, wait)).await else { return Ok(()) };
        for task in tasks? {
            match handle(&*backend, &task).await {
                // The task is not ours any more; whoever has it now ends it.
                Err(error) if error.refusal().is_some() => {
                    tracing::warn!(%error, execution = %task.execution_id, "given up");
                }
                ended => ended?,
            }
        }
    }
}

fn claim() -> anyhow::Result<Claim> {
    Ok(Claim::new(
        WorkerId::new("ff-dev")?,
        WorkerInstanceId::new(format!("ff-dev-{}", std::process::id()))?,
        [LaneId::new(LANE)?],
    ))
}

async fn handle(backend: &dyn Backend, task: &Task) -> Result<(), EngineError> {
    let execution_id = task.execution_id;
    let authority = Authority::Fence(task.fence());
    tokio::time::sleep(WORK).await;
    if &*task.kind == FLAKY && task.retry_count == 0 {
        let reason = "the first attempt always fails".to_owned();
        let category = "transient".to_owned();
        let fail =
            Fail { execution_id, authority, reason, category, class: None, retry_after_ms: None };
        backend.call(fail).await?;
        return Ok(());
    }
    let message = "half of the greeting is thought out".to_owned();
    let progress = UpdateProgress { execution_id, fence: task.fence(), pct: 50, message };
    backend.call(progress).await?;
    tokio::time::sleep(WORK).await;
    let greeting = format!("Hello, {}!", String::from_utf8_lossy(&task.payload));
    let result = Some(Content::new(greeting));
    backend.call(Complete { execution_id, authority, result, next: None }).await?;
    Ok(())
}
