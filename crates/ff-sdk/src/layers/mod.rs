//! Layers: around handlers, and around any backend.
//!
//! Around handlers they are tower layers, added by
//! [`WorkerRuntime::layer`](crate::runtime::WorkerRuntime::layer): [`TraceTasks`],
//! [`MeasureTasks`], [`RateLimit`], [`CircuitBreaker`]. Around a backend every call goes through
//! them: [`traced`], [`Metrics::around`], [`RateLimit::around`], [`CircuitBreaker::around`].
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
pub use ff_observe::{Metrics, traced};
pub use measure::{MeasureTasks, MeasuredService};
pub use rate_limit::{LimitedService, RateLimit};
pub use trace::{TraceTasks, TracedService};
