//! A runtime beside what else the program does.

use std::fmt;

use ff_core::error::EngineError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::WorkerRuntime;
use crate::error::SdkError;

/// A runtime that runs in a task of its own, see [`WorkerRuntime::spawn`]. Dropped, it ends at once
/// and takes its handlers with it; their leases then run out.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ff_sdk::{Client, WorkerConfig, WorkerRuntime};
///
/// # async fn greet() {}
/// let client = Client::connect("sqlite::memory:").await?;
/// let config = WorkerConfig::new("greeter");
/// let worker = WorkerRuntime::with_client(&client, config).on("greet", greet).spawn();
/// worker.stop().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a runtime that is dropped ends at once"]
pub struct RunningWorker {
    stop: CancellationToken,
    running: AbortOnDropHandle<Result<(), SdkError>>,
}

impl WorkerRuntime {
    /// Runs beside what else the program does, until it is told to stop.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// use std::time::Duration;
    /// use ff_sdk::runtime::{Payload, WorkerRuntime};
    /// use ff_sdk::{Client, Submission, WorkerConfig};
    ///
    /// async fn double(Payload(n): Payload<u32>) -> u32 {
    ///     2 * n
    /// }
    ///
    /// let client = Client::connect("sqlite::memory:").await?;
    /// let config = WorkerConfig::new("calculator");
    /// let worker = WorkerRuntime::with_client(&client, config).on("double", double).spawn();
    /// let submitted = client.submit(Submission::new("double").json(&21)?).await?;
    /// let doubled: u32 = submitted.wait_for_result(Duration::from_secs(10)).await?;
    /// assert_eq!(doubled, 42);
    /// worker.stop().await?;
    /// client.close().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn spawn(self) -> RunningWorker {
        let stop = CancellationToken::new();
        let running = tokio::spawn(self.run(stop.clone().cancelled_owned()));
        RunningWorker { stop, running: AbortOnDropHandle::new(running) }
    }
}

impl RunningWorker {
    /// Tells it to stop, and waits until it has: nothing more is claimed, and running tasks get
    /// their [`grace`](WorkerRuntime::grace).
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ff_sdk::{Client, WorkerConfig, WorkerRuntime};
    ///
    /// # async fn greet() {}
    /// let client = Client::connect("sqlite::memory:").await?;
    /// let config = WorkerConfig::new("greeter");
    /// let worker = WorkerRuntime::with_client(&client, config).on("greet", greet).spawn();
    /// worker.stop().await?;
    /// assert!(client.list_workers(None).await?.items.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`WorkerRuntime::run`].
    pub async fn stop(self) -> Result<(), SdkError> {
        self.stop.cancel();
        self.ended().await
    }

    /// Waits until it ends by itself: an operator has drained it, or it cannot go on.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ff_sdk::{Client, WorkerConfig, WorkerRuntime};
    ///
    /// # async fn greet() {}
    /// let client = Client::connect("sqlite::memory:").await?;
    /// let config = WorkerConfig::new("greeter");
    /// let runtime = WorkerRuntime::with_client(&client, config).max_concurrent(0);
    /// let worker = runtime.on("greet", greet).spawn();
    /// let error = worker.ended().await.unwrap_err();
    /// assert!(error.to_string().contains("at least one task"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`WorkerRuntime::run`].
    pub async fn ended(self) -> Result<(), SdkError> {
        let broken = |error| EngineError::bug(format!("the runtime ended by itself: {error}"));
        self.running.await.map_err(broken)?
    }
}

impl fmt::Debug for RunningWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_ended = self.running.is_finished();
        f.debug_struct("RunningWorker").field("has_ended", &has_ended).finish_non_exhaustive()
    }
}
