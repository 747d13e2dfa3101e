//! A deploy that stops until somebody approves it, and goes on from where it stopped.
//!
//! `cargo run -p approval [FILE]`

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use ff_backend_sqlite::SqliteStore;
use ff_core::backend::{Backend, BackendExt, Upkeep};
use ff_core::content::Content;
use ff_core::id::{
    Authority, ExecutionId, Kind, LaneId, SignalName, WaitpointKey, WorkerId, WorkerInstanceId,
};
use ff_core::operation::{
    Binding, Claim, Complete, DeliverSignal, IssuedWaitpoint, Message, RegisterWorker, Submit,
    Suspend, SuspendTimeout, Task,
};
use ff_core::state::{Condition, Matcher, SuspensionReason, TimeoutBehavior};
use ff_engine::{Engine, EngineOptions, Shutdown};
use uuid::Uuid;

#[tokio::main]
async fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "approval.db".to_owned());
    let store = Arc::new(SqliteStore::open_url(&format!("sqlite:{file}"))?);
    let (stop, shutdown) = Shutdown::channel();
    let engine = Engine::new(Arc::clone(&store) as Arc<dyn Backend>, EngineOptions::default());
    let engine = tokio::spawn(engine.run(shutdown));

    let id = submit(&*store).await?;
    let task = claim(&*store).await?;
    println!("built {}", String::from_utf8_lossy(&task.payload));
    let waitpoint = ask_for_approval(&*store, &task).await?;
    if let Some(why) = store.explain(id).await? {
        println!("why is it not running? {}", why.summary);
    }

    // The token goes to whoever may approve: in a mail, a chat message, a web hook.
    approve(&*store, id, &waitpoint).await?;

    let task = claim(&*store).await?;
    let answer = task.extras.resume_signals.first().context("it was resumed by a signal")?;
    println!("{} by {}", answer.name, answer.source_identity);
    let done = Complete {
        execution_id: id,
        authority: Authority::Fence(task.fence()),
        result: Some(Content::new("deployed")),
        next: None,
    };
    store.call(done).await?;
    println!("deployed in attempt {}, lease {}", task.attempt_index, task.lease_epoch);

    stop.send_replace(true);
    engine.await?;
    store.shutdown_prepare(Duration::from_secs(10)).await?;
    Ok(())
}

async fn submit(store: &dyn Backend) -> Result<ExecutionId> {
    let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
    let submit = Submit::new(id, LaneId::new("deploys")?, Kind::new("deploy")?);
    store.call(Submit { payload: Content::new("web 1.4.2"), ..submit }).await?;
    Ok(id)
}

async fn claim(store: &dyn Backend) -> Result<Task> {
    let claim = Claim::new(
        WorkerId::new("deployer")?,
        WorkerInstanceId::new("deployer-1")?,
        [LaneId::new("deploys")?],
    );
    store.call(RegisterWorker::for_claim(&claim, "example", 60_000)).await?;
    let tasks = store.claim(claim, Duration::from_secs(10)).await?;
    tasks.into_iter().next().context("there is a deploy to do")
}

/// Stops until a signal `approved` comes; after a day an operator is asked instead.
async fn ask_for_approval(store: &dyn Backend, task: &Task) -> Result<IssuedWaitpoint> {
    let key = WaitpointKey::new("approval")?;
    let condition = Condition::Single {
        waitpoint: key.clone(),
        name: Matcher::ByName(SignalName::new("approved")?),
    };
    let bindings = vec![Binding::fresh(key)];
    let suspend = Suspend {
        reason: SuspensionReason("waiting_for_approval".to_owned()),
        timeout: Some(SuspendTimeout::For(24 * 3_600_000)),
        timeout_behavior: Some(TimeoutBehavior::Escalate),
        ..Suspend::new(task.execution_id, task.fence(), bindings, condition)
    };
    let mut suspended = store.call(suspend).await?;
    suspended.waitpoints.pop().context("a suspend answers with its waitpoints")
}

async fn approve(store: &dyn Backend, id: ExecutionId, to: &IssuedWaitpoint) -> Result<()> {
    let signal = DeliverSignal::new(id, to, SignalName::new("approved")?);
    let message = Message { source_identity: "ada".to_owned(), ..signal.signal };
    let signalled = store.call(DeliverSignal { signal: message, ..signal }).await?;
    println!("signalled: {signalled:?}");
    Ok(())
}
