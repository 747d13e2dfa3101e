//! Layers: around handlers, and around any backend.
//!
//! | what | around handlers | around a backend |
//! | --- | --- | --- |
//! | spans | [`TraceTasks`] | [`traced`] |
//! | durations and outcomes | [`MeasureTasks`] | [`Metrics::around`] |
//! | at most so many in a second | [`RateLimit`] | [`RateLimit::around`] |
//! | leave alone what keeps failing | [`CircuitBreaker`] | [`CircuitBreaker::around`] |
//!
//! Around handlers they are tower layers, added by
//! [`WorkerRuntime::layer`](crate::runtime::WorkerRuntime::layer) for all kinds and by
//! [`HandlerOptions::layer`](crate::runtime::HandlerOptions::layer) for one; one of your own is a
//! [`TaskLayer`](crate::runtime::TaskLayer). Around a backend every call goes through them, and
//! whoever is connected with it ([`Client::connect_with`](crate::Client::connect_with),
//! [`FlowFabricWorker::connect_with`](crate::FlowFabricWorker::connect_with)) notices nothing.
//!
//! ```
//! use ff_sdk::layers::{CircuitBreaker, RateLimit, traced};
//!
//! # fn backend() -> std::sync::Arc<dyn ff_core::backend::Backend> {
//! #     let options = ff_backend_sqlite::SqliteOptions::memory();
//! #     std::sync::Arc::new(ff_backend_sqlite::SqliteStore::open(options).expect("a store"))
//! # }
//! # let runtime = tokio::runtime::Runtime::new()?;
//! # let _guard = runtime.enter();
//! let backend = traced(backend());
//! let backend = RateLimit::per_second(500.0).around(CircuitBreaker::new().around(backend));
//! assert_eq!(backend.backend_label(), "sqlite");
//! # Ok::<(), std::io::Error>(())
//! ```

mod breaker;
mod bucket;
mod circuit_breaker;
mod measure;
mod rate_limit;
mod trace;

pub use circuit_breaker::{BreakerService, CircuitBreaker};
/// Give the same metrics to handlers ([`MeasureTasks`]) and to the backend.
///
/// ```
/// # use ff_sdk::testing::TestEngine;
/// # use ff_sdk::{Client, Submission};
/// use ff_sdk::layers::Metrics;
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// let metrics = Metrics::default();
/// let client = Client::connect_with(metrics.around(engine.backend()));
/// client.submit(Submission::new("greet")).await?;
/// # Ok(())
/// # }
/// ```
pub use ff_observe::Metrics;
/// Around a client's backend a span then stands for each call.
///
/// ```
/// # use ff_sdk::testing::TestEngine;
/// # use ff_sdk::Client;
/// # #[tokio::main] async fn main() {
/// # let engine = TestEngine::start().await;
/// let client = Client::connect_with(ff_sdk::layers::traced(engine.backend()));
/// # drop(client);
/// # }
/// ```
pub use ff_observe::traced;
pub use measure::{MeasureTasks, MeasuredService};
pub use rate_limit::{LimitedService, RateLimit};
pub use trace::{TraceTasks, TracedService};
