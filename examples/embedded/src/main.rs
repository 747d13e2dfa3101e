//! The engine inside a program: one process submits work, does it, and looks at what happened.
//!
//! `cargo run -p embedded [FILE]`

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use ff_backend_sqlite::SqliteStore;
use ff_core::backend::{Backend, BackendExt, Upkeep};
use ff_core::content::Content;
use ff_core::id::{Authority, ExecutionId, Kind, LaneId, WorkerId, WorkerInstanceId};
use ff_core::operation::{Claim, Complete, Fail, RegisterWorker, Submit, Task};
use ff_core::policy::Policy;
use ff_core::read::ReadResult;
use ff_core::state::PublicState;
use ff_engine::{Engine, EngineOptions, Shutdown};
use uuid::Uuid;

#[tokio::main]
async fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "embedded.db".to_owned());
    let store = Arc::new(SqliteStore::open_url(&format!("sqlite:{file}"))?);
    let (stop, shutdown) = Shutdown::channel();
    let engine = Engine::new(Arc::clone(&store) as Arc<dyn Backend>, EngineOptions::default());
    let engine = tokio::spawn(engine.run(shutdown));

    let id = submit(&*store, "thumbnail", "cat.png").await?;
    println!("submitted {id}");
    if let Some(why) = store.explain(id).await? {
        println!("why is it not running? {}", why.summary);
    }
    work_until_done(&*store, id).await?;
    let result = store.ask(ReadResult { execution_id: id, attempt_index: None }).await?;
    println!("result: {}", String::from_utf8_lossy(&result.bytes));

    stop.send_replace(true);
    engine.await?;
    store.shutdown_prepare(Duration::from_secs(10)).await?;
    Ok(())
}

/// Submits work that is tried again 100 ms after a failure.
async fn submit(store: &dyn Backend, kind: &str, payload: &str) -> Result<ExecutionId> {
    let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
    let policy = Policy::from_json(
        r#"{"retry_policy":{"max_retries":3,"backoff":{"type":"fixed","delay_ms":100}}}"#,
    )?;
    let submit = Submit {
        payload: Content::new(payload.to_owned()),
        policy: policy.into(),
        ..Submit::new(id, LaneId::new("images")?, Kind::new(kind)?)
    };
    store.call(submit).await?;
    Ok(id)
}

/// A worker: waits for tasks and does them.
async fn work_until_done(store: &dyn Backend, id: ExecutionId) -> Result<()> {
    loop {
        let claim = Claim::new(
            WorkerId::new("resizer")?,
            WorkerInstanceId::new("resizer-1")?,
            [LaneId::new("images")?],
        );
        store.call(RegisterWorker::for_claim(&claim, "example", 60_000)).await?;
        for task in store.claim(claim, Duration::from_secs(10)).await? {
            let state = handle(store, &task).await?;
            println!("attempt {} of {}: {}", task.attempt_index, task.kind, state.as_str());
            if task.execution_id == id && state == PublicState::Completed {
                return Ok(());
            }
        }
    }
}

/// Fails the first time, to show a retry.
async fn handle(store: &dyn Backend, task: &Task) -> Result<PublicState> {
    let (execution_id, authority) = (task.execution_id, Authority::Fence(task.fence()));
    if task.attempt_index == 0 {
        let fail = Fail {
            execution_id,
            authority,
            reason: "the disk was busy".to_owned(),
            category: "transient".to_owned(),
            class: None,
            retry_after_ms: None,
        };
        store.call(fail).await?;
        return Ok(PublicState::Delayed);
    }
    let text = format!("a thumbnail of {}", String::from_utf8_lossy(&task.payload));
    let result = Some(Content::new(text));
    store.call(Complete { execution_id, authority, result, next: None }).await?;
    Ok(PublicState::Completed)
}
