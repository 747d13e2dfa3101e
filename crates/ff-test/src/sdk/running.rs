//! A runtime of the SDK at work beside a test.

use std::future::Future;

use ff_core::backend::BackendExt as _;
use ff_core::id::{ExecutionId, Kind};
use ff_core::operation::Submit;
use ff_core::read::{ReadResult, Record};
use ff_core::state::PublicState;
use ff_sdk::runtime::RunningWorker;
use ff_sdk::{SdkError, WorkerRuntime};
use tokio::time::{interval, timeout};

use super::Workshop;
use crate::servers::LOOK;
use crate::world::{PATIENCE, policy};

/// A runtime that runs until it is told to stop.
pub struct Running(RunningWorker);

impl Running {
    pub fn start(runtime: WorkerRuntime) -> Self {
        Self(runtime.spawn())
    }

    /// Tells it to stop and waits until it has.
    pub async fn stop(self) {
        Self::wait(self.0.stop()).await;
    }

    /// Waits until it ends by itself.
    pub async fn end(self) {
        Self::wait(self.0.ended()).await;
    }

    async fn wait(ended: impl Future<Output = Result<(), SdkError>>) {
        timeout(PATIENCE, ended).await.expect("an end in time").expect("a good end");
    }
}

/// Looks again and again until there is something; for what nobody announces.
///
/// # Panics
/// When nothing comes in time; the message says `what`.
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let looking = async {
        let mut pause = interval(LOOK);
        loop {
            pause.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    };
    timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("not in time: {what}"))
}

impl Workshop {
    /// A runtime over a worker of its own.
    pub async fn runtime(&self) -> WorkerRuntime {
        WorkerRuntime::new(self.worker().await)
    }

    /// A submit of this kind that is tried once.
    pub fn once(&self, kind: &str) -> Submit {
        let policy = policy(r#"{"retry_policy":{"max_retries":0}}"#);
        Submit { kind: Kind::new(kind).expect("a kind"), policy, ..self.work() }
    }

    pub async fn submit_kind(&self, kind: &str) -> ExecutionId {
        self.submit(self.once(kind)).await
    }

    /// The record of an execution once it is in this state.
    pub async fn until(&self, id: ExecutionId, state: PublicState) -> Record {
        let what = format!("{id} becomes {state:?}");
        eventually(&what, || async {
            Some(self.describe(id).await).filter(|record| record.state.public_state == state)
        })
        .await
    }

    /// The result of an execution once it has completed; none if it has none.
    pub async fn result(&self, id: ExecutionId) -> Option<String> {
        self.until(id, PublicState::Completed).await;
        let read = ReadResult { execution_id: id, attempt_index: None };
        let content = self.store().ask(read).await.ok()?;
        Some(String::from_utf8(content.bytes.to_vec()).expect("text"))
    }
}
